"""A lock on a file of its own, between threads and between processes.

On POSIX it is flock: the kernel lets it go when the process dies, however it dies, and those who
wait get it nearly in turn. Trying again and again instead is not fair at all: with eight busy
processes one waited four seconds where the kernel's queue lets it wait 45 ms. But flock cannot
wait for a limited time, so a thread waits in its place, and is left behind when the time is up.

Windows has no flock; there one byte of the file is locked, and waiting is trying again.
"""

import os
import sys
import threading
import time
from pathlib import Path

from holdfast.private_files import open_regular

_PAUSE_S = 0.001
_FORK_WAIT_S = 30

if sys.platform == "win32":
    import msvcrt

    _CAN_WAIT = False

    def _try(fd: int) -> bool:
        os.lseek(fd, 0, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

    def _wait(fd: int) -> None:
        raise NotImplementedError

    def _let_go(fd: int) -> None:
        os.lseek(fd, 0, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    _CAN_WAIT = True

    def _try(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _wait(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX)

    def _let_go(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)


class _Waiter(threading.Thread):
    """Waits for the lock in the kernel's queue. If nobody wants it any more, it goes back.

    The descriptor belongs to the thread until `wait` has returned True.
    """

    def __init__(self, fd: int) -> None:
        super().__init__(name="holdfast-lock", daemon=True)
        self.fd = fd
        self._guard = threading.Lock()
        self._came = threading.Event()
        self._is_wanted = True
        self._is_over = False
        self._error: OSError | None = None

    def run(self) -> None:
        try:
            _wait(self.fd)
        except OSError as error:
            self._error = error
        with self._guard:
            if self._is_wanted and self._error is None:
                self._came.set()
                return
            self._is_over = True
            os.close(self.fd)
            self._came.set()

    def want(self) -> bool:
        """Take up waiting again. False if it has ended meanwhile."""
        with self._guard:
            self._is_wanted = not self._is_over
            return self._is_wanted

    def wait(self, timeout_s: float | None) -> bool:
        """Whether it came in time; if it did not, it is unwanted until `want` is called."""
        try:
            if not self._came.wait(timeout_s) and self._is_free():
                self._came.wait()
        except BaseException:
            self._give_up()
            raise
        with self._guard:
            if self._error is not None:
                raise self._error
            self._is_wanted = self._came.is_set()
            return self._is_wanted

    def _is_free(self) -> bool:
        # Two calls on one descriptor are one lock: if this one gets it, so does that of the
        # thread. It has to return before anybody may unlock, or it would lock again behind us.
        with self._guard:
            return not self._is_over and _try(self.fd)

    def _give_up(self) -> None:
        with self._guard:
            self._is_wanted = False
            if self._came.is_set() and not self._is_over:
                self._is_over = True
                os.close(self.fd)


class FileLock:
    """Held by one thread of one process at a time. Its file is made when it is first taken."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._name = str(path)
        self._threads = threading.Lock()
        self._holder: int | None = None
        self._fd = -1
        self._place: tuple[int, int] | None = None  # device and inode of the file that is open
        self._waiter: _Waiter | None = None
        self._is_forking = False

    @property
    def is_mine(self) -> bool:
        """Whether this thread holds it."""
        return self._holder == threading.get_ident()

    def acquire(self, timeout_s: float | None = 0) -> bool:
        """Whether it is ours now. 0 tries once, None waits as long as it takes."""
        assert not self.is_mine, "this thread holds the lock already"
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        left_s = _left(deadline)
        if not self._threads.acquire(timeout=-1 if left_s is None else left_s):
            return False
        is_held = False
        try:
            is_held = self._take(deadline)
        finally:
            if is_held:
                self._holder = threading.get_ident()
            else:
                self._drop()  # an interrupt may have come between the lock and the word of it
                self._threads.release()
        return is_held

    def release(self) -> None:
        """Let it go. Does nothing where it is not held, as in a child that was forked with it."""
        if self._holder is None:
            return
        self._holder = None
        try:
            if self._fd >= 0:
                _let_go(self._fd)
        except OSError:
            self._drop()  # closing lets go too
            raise
        finally:
            self._threads.release()

    def close(self) -> None:
        """Let the descriptor go; the next acquire opens another."""
        if self._threads.acquire(blocking=False):
            self._drop()
            self._threads.release()

    def before_fork(self) -> None:
        """No thread may be half way through acquire or release while the process is copied."""
        # Not for ever: a thread that holds the lock may itself wait for the one that forks.
        if not self.is_mine and self._threads.acquire(timeout=_FORK_WAIT_S):
            self._is_forking = True

    def after_fork_in_parent(self) -> None:
        if self._is_forking:
            self._is_forking = False
            self._threads.release()

    def after_fork_in_child(self) -> None:
        """The parent keeps what it holds, and the child begins with nothing.

        An inherited descriptor shares its flock with the parent. Closing it leaves the parent's
        lock alone; unlocking it would take the lock away from the parent.
        """
        if self._waiter is not None and self._waiter.want():
            os.close(self._waiter.fd)
        self._waiter = None
        self._drop()
        self._holder = None
        self._is_forking = False
        self._threads = threading.Lock()

    def _take(self, deadline: float | None) -> bool:
        while True:
            if self._take_once(deadline):
                if self._is_at_its_path():
                    return True
                self._drop()  # deleted while we waited: others would lock another file
            if deadline is not None and time.monotonic() >= deadline:
                return False

    def _is_at_its_path(self) -> bool:
        # As private_files.is_at, with one system call in the place of two: done for every commit.
        try:
            there = os.lstat(self._name)
        except FileNotFoundError:
            return False
        return (there.st_dev, there.st_ino) == self._place

    def _take_once(self, deadline: float | None) -> bool:
        if self._waiter is not None and self._waiter.want():
            return self._take_from(self._waiter, deadline)
        self._waiter = None
        if self._fd < 0:
            self._fd = open_regular(self.path, os.O_RDWR | os.O_CREAT)
            here = os.fstat(self._fd)
            self._place = here.st_dev, here.st_ino
        if _try(self._fd):
            return True
        if deadline is not None and time.monotonic() >= deadline:
            return False
        waiter = _Waiter(self._fd)
        try:
            if not _CAN_WAIT:
                raise RuntimeError
            waiter.start()
        except RuntimeError:  # no thread can be started, as while the interpreter shuts down
            time.sleep(_PAUSE_S)
            return False
        self._waiter, self._fd = waiter, -1
        return self._take_from(waiter, deadline)

    def _take_from(self, waiter: _Waiter, deadline: float | None) -> bool:
        if not waiter.wait(_left(deadline)):
            return False
        self._waiter, self._fd = None, waiter.fd
        return True

    def _drop(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def _left(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    return min(max(deadline - time.monotonic(), 0), threading.TIMEOUT_MAX)
