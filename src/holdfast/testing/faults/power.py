"""The power goes out: everything the kernel had not written to the disk is gone.

    with Disk(folder) as disk:
        start_writing(disk.path)
        disk.cut()          # from here on every write fails, and nothing more reaches the disk
        stop_writing()
        disk.back()         # mounted again; what is there now is what a restart would find

A file system in a file, on a loop device. The cut is the file system's own shutdown call, told not
to write its log first. It drops whatever was not synced; it does not reorder or tear what was, nor
does it play a disk that lies about having written.
"""

import os
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

KINDS = {"ext4": 64 << 20, "xfs": 320 << 20}  # and the smallest useful size of each
_SHUTDOWN = 0x8004587D  # _IOR('X', 125, u32), the same for both
_NO_LOG_FLUSH = 2
_UNMOUNT_TRIES = 200
_PAUSE_S = 0.01


def missing(kind: str = "ext4") -> str:
    """Why the power cannot be cut here, or ""."""
    if sys.platform != "linux":
        return "the power can be cut on Linux only"
    if os.geteuid() != 0:
        return "mounting a file system needs root"
    for program in (f"mkfs.{kind}", "mount", "umount"):
        if _which(program) is None:
            return f"{program} is not installed"
    if not Path("/dev/loop-control").exists():
        return "there are no loop devices"
    return ""


class Disk:
    """A file system of its own, mounted at `path`; `folder` gets its image and its mount point."""

    def __init__(self, folder: Path, kind: str = "ext4", size: int = 0) -> None:
        self._kind = kind
        self._image = folder.resolve() / "disk.img"
        self.path = folder / "disk"
        self._is_mounted = False
        self.path.mkdir()
        with self._image.open("xb") as image:
            image.truncate(size or KINDS[kind])
        force = ["-F"] if kind == "ext4" else ["-f"]
        _run([f"mkfs.{kind}", "-q", *force, str(self._image)])

    def mount(self) -> None:
        """Make it usable."""
        _run(["mount", "-t", self._kind, "-o", "loop", str(self._image), str(self.path)])
        self._is_mounted = True

    def cut(self) -> None:
        """The power goes out now. Programs see errors; end them before `back`."""
        import fcntl  # here, so that `missing` can be asked where there is none

        folder = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, _SHUTDOWN, struct.pack("I", _NO_LOG_FLUSH))
        finally:
            os.close(folder)

    def back(self) -> None:
        """The power is back: the file system recovers by itself, and is mounted again."""
        self.unmount()
        self.mount()

    def unmount(self) -> None:
        """Let go of it. Waits a little for programs that are just ending."""
        for _ in range(_UNMOUNT_TRIES):
            try:
                _run(["umount", str(self.path)])
            except OSError:
                time.sleep(_PAUSE_S)
            else:
                self._is_mounted = False
                self._await_release()
                return
        _run(["umount", "--lazy", str(self.path)])
        self._is_mounted = False
        raise OSError(f"{self.path} was still in use: end the program before the power comes back")

    def _await_release(self) -> None:
        """Wait until the loop device is free: mounted before, it would be the same as it was."""
        for _ in range(_UNMOUNT_TRIES):
            backing = Path("/sys/block").glob("loop*/loop/backing_file")
            if str(self._image) not in [_first_line(each) for each in backing]:
                return
            time.sleep(_PAUSE_S)
        raise OSError(f"the loop device of {self._image} is still in use")

    def __enter__(self) -> Self:
        self.mount()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._is_mounted:
            self.unmount()
        self._image.unlink()


def _first_line(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").rstrip("\n")
    except OSError:  # released meanwhile
        return ""


def _which(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def _run(command: Sequence[str]) -> None:
    program = _which(command[0]) or command[0]
    done = subprocess.run([program, *command[1:]], capture_output=True, text=True)  # noqa: S603
    if done.returncode != 0:
        raise OSError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
