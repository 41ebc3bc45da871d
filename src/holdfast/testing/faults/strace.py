"""A kill or an error at the n-th system call that a program makes on the files of a store.

    seen = calls(forks, arguments, folder)             # one run, to see what there is to break
    for point in points(seen):
        outcome = inject(forks, arguments, files(seen), point, "signal=KILL")

A kill comes instead of the call: what the call would have done has not happened. An error
(`error=EIO`) is returned once, or with `forever` from the n-th call on.

strace counts each kind of call by itself and for each thread by itself, and so do we: the point
`pwrite64, 3` is the third pwrite64 of whichever thread gets there first.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.testing.faults.forks import Forks

CHANGES = (
    *("write", "pwrite64", "writev", "pwritev", "pwritev2", "fsync", "fdatasync"),
    *("sync_file_range", "fallocate", "truncate", "ftruncate", "rename", "renameat", "renameat2"),
    *("unlink", "unlinkat", "mkdir", "mkdirat", "rmdir", "link", "linkat", "symlink", "symlinkat"),
    *("chmod", "fchmod", "fchmodat", "open", "openat", "creat"),
)
ERRORS = ("EIO", "ENOSPC", "EDQUOT", "EROFS", "EMFILE", "EINTR")
_CALL = re.compile(r"^(\d+) +(\w+)\((.*)$")


class Call(NamedTuple):
    """A system call of the listing run: the `number`th of its kind in its thread, on `path`."""

    thread: int
    kind: str
    number: int
    path: str


class Point(NamedTuple):
    """Where to break a run."""

    kind: str
    number: int


class Outcome(NamedTuple):
    """How a broken run ended. `is_hit` says whether it ever came to the point."""

    status: int
    is_hit: bool
    trace: list[str]
    stderr: str


def missing() -> str:
    """Why system calls cannot be broken here, or ""."""
    if sys.platform != "linux":
        return "system calls can be broken on Linux only"
    if shutil.which("strace") is None:
        return "strace is not installed"
    true = shutil.which("true") or "true"
    tried = subprocess.run(  # noqa: S603
        ["strace", "-qq", "-e", "inject=close:error=EIO:when=99", true],  # noqa: S607
        capture_output=True,
        text=True,
    )
    return "" if tried.returncode == 0 else f"strace does not work here: {tried.stderr.strip()}"


def calls(
    forks: Forks, arguments: Sequence[Any], folder: Path, kinds: Iterable[str] = CHANGES
) -> list[Call]:
    """The calls that one whole run makes on the files in `folder`, in order."""
    status, trace, stderr = _traced(forks, arguments, ["-e", f"trace={_set(kinds)}"])
    if status != 0:
        raise RuntimeError(f"the run that nobody broke ended with status {status}: {stderr}")
    inside = re.compile(r"[<\"](" + re.escape(str(folder.resolve())) + r"/[^>\"]*)")
    found: list[Call] = []
    threads: dict[str, int] = {}
    numbers: Counter[tuple[str, str]] = Counter()
    for line in trace:
        call, path = _CALL.match(line), inside.search(line)
        if call is None or path is None:
            continue
        numbers[call[1], call[2]] += 1
        thread = threads.setdefault(call[1], len(threads))
        found.append(Call(thread, call[2], numbers[call[1], call[2]], path[1]))
    return found


def files(seen: Iterable[Call]) -> list[str]:
    """The files that were touched; calls on others are not counted when a run is broken."""
    return sorted({call.path.removesuffix(" (deleted)") for call in seen})


def points(seen: Iterable[Call], kinds: Iterable[str] = CHANGES) -> list[Point]:
    """Every point that can be broken, each once."""
    wanted = set(kinds)
    return list(dict.fromkeys(Point(c.kind, c.number) for c in seen if c.kind in wanted))


def inject(
    forks: Forks,
    arguments: Sequence[Any],
    only: Iterable[str],
    point: Point,
    what: str = "signal=KILL",
    *,
    forever: bool = False,
    watch: Iterable[str] = (),
) -> Outcome:
    """Break one run at `point`: `what` is `signal=KILL` or `error=EIO`. `watch` traces more."""
    when = f"{point.number}{'+' if forever else ''}"
    options = ["-e", f"trace={_set([point.kind, *watch])}"]
    options += ["-e", f"inject={point.kind}:{what}:when={when}"]
    for path in only:
        options += ["-P", path]
    status, trace, stderr = _traced(forks, arguments, options)
    is_hit = any("(INJECTED)" in line for line in trace) if "error" in what else status < 0
    return Outcome(status, is_hit, trace, stderr)


def _set(kinds: Iterable[str]) -> str:
    return ",".join(f"?{kind}" for kind in dict.fromkeys(kinds))  # "?": not on every machine


def _traced(
    forks: Forks, arguments: Sequence[Any], options: list[str]
) -> tuple[int, list[str], str]:
    handle, name = tempfile.mkstemp(prefix="holdfast-strace-")
    os.close(handle)
    run = forks.start(*arguments, traced=True)
    # -y: file names beside descriptors
    command = ["strace", "-f", "-qq", "-y", "-o", name, *options, "-p", str(run.pid)]
    with subprocess.Popen(  # noqa: S603
        command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as tracer:
        try:
            status = run.wait()
        finally:
            _, said = tracer.communicate(timeout=60)
    trace = Path(name).read_text(encoding="utf-8", errors="replace").splitlines()
    os.unlink(name)
    return status, trace, run.stderr + said
