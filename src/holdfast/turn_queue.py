"""Turns of one session in one process: one at a time, in the order in which they were asked for."""

import asyncio

from holdfast.cancel import CancelToken
from holdfast.errors import Busy
from holdfast.steps.waiting import Waiting
from holdfast.tools import is_awaited_by


class TurnQueue:
    """Where turns wait for each other. Those of other processes are waited for by the lease.

    The first who waits here stands in the line for the lease, where all processes see it, as soon
    as the turn before it has left that line: of one session there is one in it at a time.
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._lock = asyncio.Lock()  # of the turn that runs
        self._front = asyncio.Lock()  # of the first who waits; served in order
        self._running: CancelToken | None = None
        self._ahead: Waiting | None = None  # the one whose turn runs, or is to run next

    def cancel(self, reason: str) -> bool:
        """Stop the turn that runs; False if there is none. From any thread."""
        running = self._running
        return running is not None and running.cancel(reason)

    def turn(self, session_id: str, key: str, waiting: Waiting, cancel: CancelToken) -> "Place":
        """Run a turn here when it is its turn.

        Busy if it waits in vain, and for a tool that this session waits for: it would wait for
        itself.
        Cancelled while it waits, it is Cancelled.
        """
        if is_awaited_by(session_id):
            raise Busy(key, f"{self._owner}, which waits for this tool")
        return Place(self, key, waiting, cancel)

    async def wait(self, key: str, waiting: Waiting, cancel: CancelToken) -> None:
        if not self._lock.locked() and not self._front.locked():
            await self._lock.acquire()  # at once: one that is cancelled already is stored as well
            return
        if not waiting.left_s:
            raise Busy(key, self._owner)
        try:
            async with asyncio.timeout(waiting.left_s), cancel.guard(), self._front:
                if self._ahead is not None:
                    await self._ahead.is_settled.wait()
                if self._lock.locked():
                    await waiting.line_up()
                await self._lock.acquire()
        except TimeoutError:
            raise Busy(key, self._owner) from None

    def enter(self, waiting: Waiting, cancel: CancelToken) -> None:
        """This turn runs now."""
        self._ahead, self._running = waiting, cancel

    def leave(self) -> None:
        """It has ended: the next one may run."""
        self._ahead = self._running = None
        self._lock.release()


class Place:
    """A turn that waits, then runs: `async with`."""

    __slots__ = ("_cancel", "_key", "_queue", "_waiting")

    def __init__(self, queue: TurnQueue, key: str, waiting: Waiting, cancel: CancelToken) -> None:
        self._queue = queue
        self._key = key
        self._waiting = waiting
        self._cancel = cancel

    async def __aenter__(self) -> None:
        try:
            await self._queue.wait(self._key, self._waiting, self._cancel)
        except BaseException:
            await self._waiting.step_out()
            raise
        self._queue.enter(self._waiting, self._cancel)

    async def __aexit__(self, *_: object) -> None:
        self._queue.leave()
        await self._waiting.step_out()
