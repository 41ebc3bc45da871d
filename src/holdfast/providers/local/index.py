"""One wheel from the package index, fetched with pip.

pip runs in a process of its own, so the user's index, proxy and certificates are used as they are
set. Nothing is installed, nothing of the package is run, and what it depends on is left alone.
"""

import asyncio
import importlib.util
import os
import re
import stat
import sys
import sysconfig
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from holdfast.errors import ConnectionFailed, InvalidInput, ProtocolError, StoreFull

Progress = Callable[[int, int | None], object]

_CREDENTIALS = re.compile(r"//[^/\s]+@")
_LOOK_EVERY_S = 0.1
_LINES_MAX = 5
_NO_ROOM = ("No space left on device", "Disk quota exceeded", "not enough space on the disk")


async def fetch(
    package: str,
    version: str,
    folder: Path,
    on_progress: Progress | None = None,
    size: int | None = None,
) -> Path:
    """The wheel of this version, in `folder`, which has to be empty.

    `on_progress` hears when more bytes have come, of `size`. ConnectionFailed if the index does
    not give it. When this is cancelled, pip has ended before it returns.
    """
    log = folder / "log"
    with log.open("xb") as lines:
        process = await asyncio.create_subprocess_exec(
            *_command(f"{package}=={version}", folder),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=lines,
            stderr=lines,
            env=_environment(folder),
        )
    ended = asyncio.ensure_future(process.wait())
    told = -1
    try:
        while not ended.done():
            await asyncio.wait({ended}, timeout=_LOOK_EVERY_S)
            if on_progress is not None:
                come = await asyncio.to_thread(_come, folder, log)
                if come != told:
                    told = come
                    on_progress(come, size)
    finally:
        if not ended.done():
            process.kill()
        await asyncio.shield(ended)
    if process.returncode:
        raise _failed(f"{package} {version}", folder, log)
    return _wheel(folder, f"{package} {version}")


def _command(requirement: str, folder: Path) -> list[str]:
    # -P: a pip.py in the current folder is not pip. Only wheels: an sdist would be run. The cache
    # would keep a second copy of what is fetched once.
    options = ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--no-input"]
    quiet = ["--quiet", "--progress-bar=off", "--disable-pip-version-check"]
    return [
        *(sys.executable, "-P", "-m", "pip", "download"),
        *(*options, *quiet, "--dest", str(folder), requirement),
    ]


def _environment(folder: Path) -> dict[str, str]:
    # pip downloads into its temporary folder: there the growing file can be seen, it is on the
    # disk that has to have the room, and it is removed with the rest.
    temporary = folder / "tmp"
    temporary.mkdir()
    names = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))
    environment = {**os.environ, **names, "PIP_REQUIRE_HASHES": "0", "PIP_NO_COLOR": "1"}
    if importlib.util.find_spec("pip") is None:
        environment["PYTHONPATH"] = str(_bundled())
    return environment


def _bundled() -> Path:
    """The pip that comes with Python for new environments; it runs from its wheel as it is."""
    folders = [sysconfig.get_config_var("WHEEL_PKG_DIR")]
    ensurepip = importlib.util.find_spec("ensurepip")
    if ensurepip is not None and ensurepip.origin:
        folders.append(Path(ensurepip.origin).with_name("_bundled"))
    for folder in folders:
        for wheel in sorted(Path(folder).glob("pip-*.whl")) if folder else ():
            return wheel
    raise InvalidInput(
        "pip",
        f"is missing, and the weights come with it: install it for {sys.executable} (as with "
        "`uv pip install pip`), then try again",
    )


def _wheel(folder: Path, what: str) -> Path:
    found = list(folder.glob("*.whl"))
    if len(found) != 1:
        raise ProtocolError(f"pip gave {len(found)} wheels of {what}", "local")
    return found[0]


def _come(folder: Path, log: Path) -> int:
    """The size of the largest file so far: pip copies the whole one at last."""
    sizes = [0]
    for place, _, names in os.walk(folder):  # which passes over a folder that has just gone
        for path in (Path(place, name) for name in names):
            with suppress(OSError):  # pip has just moved it
                if path != log and stat.S_ISREG((there := path.lstat()).st_mode):
                    sizes.append(there.st_size)
    return max(sizes)


def _failed(what: str, folder: Path, log: Path) -> StoreFull | ConnectionFailed:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    # Of the tries to connect, the last; the errors behind it speak of versions that do not exist.
    warnings = [line for line in lines if line.startswith("WARNING")][-1:]
    errors = [line for line in lines if line.startswith("ERROR")][-_LINES_MAX:]
    said = " ".join(warnings + errors or lines[-_LINES_MAX:]) or "no word of why"
    said = _CREDENTIALS.sub("//****@", said)  # an index may be asked with a password
    if any(words in said for words in _NO_ROOM):
        return StoreFull(str(folder.parent), f"there is no room for {what}")
    return ConnectionFailed(
        f"the package index did not give {what} (pip: {said[:600]}); `pip config list` shows "
        "which index is asked",
        "local",
    )
