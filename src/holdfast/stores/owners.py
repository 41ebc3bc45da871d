"""Who is alive, so that a lease whose owner is gone is free at once.

A store that takes leases has one file in the folder, with a name nobody had before, and holds a
lock on that file until it is closed or its process ends. The kernel lets the lock go then, however
the process ends: a file that anybody can lock belongs to nobody any more.

The lock is a POSIX one, because a forked child does not inherit those. Their price: when a process
closes any descriptor of a file, it loses its locks on it. So a process never opens one of its own
files a second time; it knows their names.

Windows has no such locks. There a file that is still there counts as alive, and the lease's time
to live decides.
"""

import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from holdfast import private_files
from holdfast.errors import InvalidInput, StoreUnavailable
from holdfast.stores.disk_errors import translate

_NAME = re.compile("[0-9a-f]{32}")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_TRIES_MAX = 100

if sys.platform == "win32":

    def _lock(_fd: int) -> bool:
        return False

    _HAS_LOCKS = False
else:
    import fcntl

    def _lock(fd: int) -> bool:
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
        return True

    _HAS_LOCKS = True


# The owners of this process, with the descriptors that hold their locks. All work is done under the
# guard: between threads of one process the locks of the kernel exclude nobody.
_own: dict[str, int] = {}
_guard = threading.Lock()
_pid = os.getpid()


def _guard_here() -> threading.Lock:
    """The guard of this process. A forked child starts without owners, and with one of its own.

    This is looked at on every call rather than done by a hook of fork, because hooks of others
    may come here earlier. Closing what was inherited leaves the parent's locks alone.
    """
    global _guard, _pid
    if _pid != os.getpid():
        _guard, _pid = threading.Lock(), os.getpid()
        while _own:
            os.close(_own.popitem()[1])
    return _guard


class Owners:
    """The owner files in a folder, which is made when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._name = ""

    def mine(self) -> str:
        """The name of this owner; after a fork, the child has another than its parent."""
        with self._working():
            fd = _own.get(self._name)
            if fd is None or not private_files.is_at(fd, self._folder / self._name):
                self._end()  # or somebody deleted it: to all others we are gone
                private_files.make_folder(self._folder)
                self._name, fd = self._make()
                _own[self._name] = fd
            return self._name

    def is_gone(self, name: str) -> bool:
        """Whether the owner of this name has ended. One that cannot be known counts as alive."""
        if type(name) is not str or not _NAME.fullmatch(name):
            raise InvalidInput("the owner", "is not a name of 32 hexadecimal digits")
        with self._working():
            return self._is_gone(name)

    def sweep(self) -> int:
        """Remove the files of owners that have ended, and say how many there were."""
        with self._working():
            try:
                names = os.listdir(self._folder)
            except FileNotFoundError:
                return 0
            return sum(self._is_gone(name) for name in names if _NAME.fullmatch(name))

    def close(self) -> None:
        """Be gone."""
        with self._working():
            self._end()

    def _end(self) -> None:
        name, self._name = self._name, ""
        if (fd := _own.pop(name, None)) is not None:
            try:
                (self._folder / name).unlink(missing_ok=True)
            finally:
                os.close(fd)

    def _make(self) -> tuple[str, int]:
        for _ in range(_TRIES_MAX):
            name = os.urandom(16).hex()
            fd = private_files.open_regular(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
            # Somebody who sweeps may have come between, and found a file that nobody holds.
            if not _HAS_LOCKS or (_lock(fd) and private_files.is_at(fd, self._folder / name)):
                return name, fd
            os.close(fd)
        raise StoreUnavailable(str(self._folder), "an owner file cannot be made")

    def _is_gone(self, name: str) -> bool:
        if name in _own:
            return False
        path = self._folder / name
        try:
            fd = private_files.open_regular(path, os.O_RDWR)
        except FileNotFoundError:
            return True
        except PermissionError:
            return False  # of another user: we cannot know
        try:
            if not _lock(fd):
                return False
            if private_files.is_at(fd, path):
                path.unlink(missing_ok=True)
            return True
        finally:
            os.close(fd)

    @contextmanager
    def _working(self) -> Iterator[None]:
        with _guard_here():
            try:
                if self._folder.is_symlink():
                    raise StoreUnavailable(str(self._folder), "it is a link: remove it")
                yield
            except OSError as error:
                raise translate(error, str(self._folder)) from error


class Moment(NamedTuple):
    """A time by a clock that does not jump: milliseconds since the machine was started.

    Two moments can be compared if `boot` is the same; otherwise the machine was started again in
    between, and every process of the earlier one is gone.
    """

    boot: str
    ms: int


def moment() -> Moment:
    """Now; the same in all processes of this machine, and not stopped while it sleeps."""
    return Moment(_boot(), _clock_ns() // 1_000_000)


def _boot() -> str:
    global _boot_id
    if _boot_id is None:
        try:
            _boot_id = _BOOT_ID.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            _boot_id = ""  # the owner files are left to tell
    return _boot_id


_boot_id: str | None = None


def _clock_ns() -> int:
    if sys.platform == "linux":
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    else:  # noqa: RET505 (what follows a plain if cannot be reached, says mypy)
        return time.monotonic_ns()
