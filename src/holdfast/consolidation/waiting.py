"""Locks and files for tasks: what may take a while is waited for without holding up the loop."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from holdfast import private_files
from holdfast.file_lock import FileLock
from holdfast.stores.disk_errors import translate

_PAUSE_S = 0.005
_PAUSE_S_MAX = 0.05
_Result = TypeVar("_Result")


@asynccontextmanager
async def held(path: Path) -> AsyncIterator[None]:
    """Have the lock at this path, between tasks and between processes.

    Each time it is another descriptor, which the kernel tells apart even inside one process. Its
    file is taken away at the end, as there is one for each folder: whoever waits notices.
    """
    lock = FileLock(path)
    pause_s = _PAUSE_S
    while True:
        with _translated(path):
            private_files.make_folder(path.parent)
            if lock.acquire(0):
                break
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, _PAUSE_S_MAX)
    try:
        yield
    finally:
        _let_go(lock)


def _let_go(lock: FileLock) -> None:
    with suppress(OSError):  # it stays then, which does no harm
        lock.path.unlink()
    lock.release()
    lock.close()


async def in_thread(function: Callable[..., _Result], *args: Any) -> _Result:
    """What a function that works on files returns. A cancel waits until it has ended.

    What it is in the middle of is under a lock, and nobody may let go of that before.
    """
    work = asyncio.ensure_future(asyncio.to_thread(_call, function, args))
    try:
        return await asyncio.shield(work)
    finally:
        while not work.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([work])


def _call(function: Callable[..., _Result], args: tuple[Any, ...]) -> _Result:
    try:
        return function(*args)
    except (OSError, MemoryError) as error:
        raise translate(error, "the memory") from error


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """What the system says of a file, in the words of holdfast."""
    try:
        yield
    except OSError as error:
        raise translate(error, str(path)) from error
