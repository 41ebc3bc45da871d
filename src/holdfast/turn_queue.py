"""Turns of one session in one process: one at a time, in the order in which they were asked for."""

import asyncio

from holdfast.cancel import CancelToken
from holdfast.errors import Busy
from holdfast.steps.hold import WAIT_S_MAX
from holdfast.tools import running


class TurnQueue:
    """Where turns wait for each other. Those of other processes are waited for by the lease."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._lock = asyncio.Lock()  # served in order
        self._running: CancelToken | None = None

    def cancel(self, reason: str) -> bool:
        """Stop the turn that runs; False if there is none. From any thread."""
        running = self._running
        return running is not None and running.cancel(reason)

    def turn(self, session_id: str, key: str, wait_s: float | None, cancel: CancelToken) -> "Place":
        """Run a turn here when it is its turn; with the seconds it may wait for others elsewhere.

        Busy if that takes longer than `wait_s`, and for a tool of this very session, which would
        wait for itself. Cancelled while it waits, it is Cancelled.
        """
        inside = running()
        if inside is not None and inside.session_id == session_id:
            raise Busy(key, f"{self._owner}, which waits for this tool")
        return Place(self, key, WAIT_S_MAX if wait_s is None else wait_s, cancel)

    async def wait(self, key: str, wait_s: float, cancel: CancelToken) -> float:
        if not self._lock.locked():
            await self._lock.acquire()  # at once: one that is cancelled already is stored as well
            return wait_s
        if not wait_s:
            raise Busy(key, self._owner)
        loop = asyncio.get_running_loop()
        start = loop.time()
        try:
            async with asyncio.timeout(wait_s), cancel.guard():
                await self._lock.acquire()
        except TimeoutError:
            raise Busy(key, self._owner) from None
        return max(0.0, wait_s - (loop.time() - start))

    def enter(self, cancel: CancelToken) -> None:
        """This turn runs now."""
        self._running = cancel

    def leave(self) -> None:
        """It has ended: the next one may run."""
        self._running = None
        self._lock.release()


class Place:
    """A turn that waits, then runs: `async with`."""

    __slots__ = ("_cancel", "_key", "_queue", "_wait_s")

    def __init__(self, queue: TurnQueue, key: str, wait_s: float, cancel: CancelToken) -> None:
        self._queue = queue
        self._key = key
        self._wait_s = wait_s
        self._cancel = cancel

    async def __aenter__(self) -> float:
        left_s = await self._queue.wait(self._key, self._wait_s, self._cancel)
        self._queue.enter(self._cancel)
        return left_s

    async def __aexit__(self, *_: object) -> None:
        self._queue.leave()
