"""A disk that fills up and is freed again, and a write that stops half-way.

with SmallDisk(folder, size=1 << 20) as disk:
    disk.fill()         # ENOSPC from here on
    disk.free()

with file_size_max(70_000):
    ...                 # a write across byte 70,000 of any file is short, the next one fails
"""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

_PIECE = 1 << 16


def missing() -> str:
    """Why a small disk cannot be mounted here, or "". `file_size_max` needs no root."""
    if sys.platform != "linux":
        return "a small disk can be mounted on Linux only"
    return "" if os.geteuid() == 0 else "mounting a small disk needs root"


class SmallDisk:
    """A file system of `size` bytes in memory, mounted at `path` inside `folder`."""

    def __init__(self, folder: Path, size: int) -> None:
        self.path = folder / "small"
        self._size = size
        self._ballast = self.path / "ballast"

    def fill(self, leave: int = 0) -> None:
        """Take all the room but the last `leave` bytes."""
        room = self.room() - leave
        with self._ballast.open("ab", buffering=0) as ballast:
            while room > 0:
                try:
                    room -= ballast.write(bytes(min(room, _PIECE)))
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    return

    def free(self) -> None:
        """Give back what `fill` took."""
        self._ballast.unlink(missing_ok=True)

    def room(self) -> int:
        """How many bytes are free."""
        found = os.statvfs(self.path)
        return found.f_bavail * found.f_frsize

    def __enter__(self) -> Self:
        self.path.mkdir()
        options = f"size={self._size},mode=0700"
        _run("mount", "-t", "tmpfs", "-o", options, "holdfast", str(self.path))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            _run("umount", str(self.path))
        except OSError:
            _run("umount", "--lazy", str(self.path))
            if error is None:  # else what went wrong is known already
                raise


@contextmanager
def file_size_max(size: int) -> Iterator[None]:
    """In this process, no file can grow beyond `size` bytes: short writes, then EFBIG.

    Python ignores the signal that comes with it.
    """
    import resource  # here, so that `missing` can be asked where there is none

    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)  # noqa: S603
    if done.returncode != 0:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
