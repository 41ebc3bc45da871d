"""Group commit: everything that was asked for while the last commit ran forms the next one.

A commit costs one sync of the disk, whether it holds one append or a thousand. So writers do not
commit for themselves: they queue, and wait for an answer of their own, which comes when the
transaction that holds their request is on disk. One that fails is answered with its error, and
the others in its transaction are not concerned.

Where the work is done depends on the disk. Handing it to a thread and back costs more than a
quick commit does, so while commits are quick they run in the event loop's own thread; when they are
not, or when another process holds the lock, a thread waits for the disk and the loop goes on.
What has to be done to the files after a commit then runs while the next requests come in.

All state here belongs to the thread of the event loop; the writing thread sees one batch at a time.
Of a batch that was answered nothing is kept: it would stand in the way of the next, which is as
large, in the caches of the processor and before the collector.
"""

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

from holdfast.errors import StoreUnavailable
from holdfast.stores.requests import Request

_Result = TypeVar("_Result")

BATCH_MAX = 1_024
QUICK_S = 0.000_3
CROWD = 32  # so many at once are worth a thread
LATEST = 9  # commits whose median tells how quick they are: one slow one says nothing

# What a batch comes to: a result or an error for each request, and how long the commit took. None
# when it could not start at once and was not allowed to wait. Who has more to do after the commit
# gives the results to `answer` before that, if there is one.
Results = list[Any]
Outcome = tuple[Results, float]
Answer = Callable[[Results], None]
Commit = Callable[[Sequence[Request[Any]], bool, Answer | None], Outcome | None]


class Ticket(Generic[_Result]):
    """A request that waits for its answer."""

    __slots__ = ("future", "is_settled", "is_taken", "is_withdrawn", "request", "result")

    def __init__(self, request: Request[_Result]) -> None:
        self.request = request
        self.result: _Result | BaseException
        self.future: asyncio.Future[None] | None = None
        self.is_taken = self.is_settled = self.is_withdrawn = False

    def settle(self, result: _Result | BaseException) -> None:
        """The outcome is certain."""
        self.result = result
        self.is_settled = True
        if self.future is not None and not self.future.done():
            self.future.set_result(None)

    async def wait(self) -> None:
        """Until it is settled."""
        while not self.is_settled:
            self.future = asyncio.get_running_loop().create_future()
            await self.future

    async def leave(self) -> None:
        """Withdraw it; or wait for the outcome, however often this is cancelled: it is near."""
        self.is_withdrawn = not self.is_taken
        while self.is_taken and not self.is_settled:
            with suppress(asyncio.CancelledError):
                await self.wait()

    def answer(self) -> _Result:
        """The result, or its error raised."""
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result


class GroupCommit:
    """The queue in front of a store that one may write to at a time.

    `commit(requests, may_wait, answer)` runs a batch. It never raises. `after` is called when one
    is done.
    """

    def __init__(
        self, commit: Commit, after: Callable[[], None] = lambda: None, *, quick_s: float = QUICK_S
    ) -> None:
        self._commit = commit
        self._after = after
        self._quick_s = quick_s
        self._loop = asyncio.get_running_loop()
        self._queue: deque[Ticket[Any]] = deque()
        self._is_planned = False
        self._is_away = False
        self._latest_s: deque[float] = deque(maxlen=LATEST)
        self._usual_s = 0.0
        self._thread: threading.Thread | None = None
        # What is being written, and what it came to. The thread does not hold them itself: it would
        # let go of them only when the loop leaves it the interpreter, long after all were answered.
        self._batch: list[Ticket[Any]] = []
        self._outcome: Outcome | None = None
        self._work: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._is_closed = False
        self._drained: asyncio.Future[None] | None = None

    async def submit(self, request: Request[_Result]) -> _Result:
        """The result of a request, when it is committed.

        Cancelled before a batch took it, it is withdrawn; afterwards it is waited for, and the
        cancellation goes on when the outcome is certain.
        """
        ticket = Ticket(request)
        self._ask((ticket,))
        try:
            if not self._is_planned and not self._is_away:
                await self._lead()
            if not ticket.is_settled:  # as in `wait`, but for one coroutine more in every caller
                ticket.future = self._loop.create_future()
                await ticket.future
        except asyncio.CancelledError:
            await ticket.leave()
            raise
        return ticket.answer()

    async def submit_all(
        self, requests: Sequence[Request[_Result]]
    ) -> list[_Result | BaseException]:
        """For each of several requests its result or its error, as `submit` gives that of one."""
        tickets = [Ticket(request) for request in requests]
        self._ask(tickets)
        try:
            if not self._is_planned and not self._is_away:
                await self._lead()
            for ticket in tickets:
                if not ticket.is_settled:
                    await ticket.wait()
        except asyncio.CancelledError:
            for ticket in tickets:
                await ticket.leave()
            raise
        return [ticket.result for ticket in tickets]

    def _ask(self, tickets: Sequence[Ticket[Any]]) -> None:
        if self._is_closed:
            raise StoreUnavailable("the store", "it is closed")
        self._queue.extend(tickets)

    async def _lead(self) -> None:
        """Run the next batch, as the first who asked for one, when all who can ask now have."""
        self._is_planned = True
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            self._loop.call_soon(self._start)  # the others still want it
            raise
        self._start()

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits for anything."""
        return not self._queue and not self._is_away

    def _plan(self) -> None:
        """Take a batch in the next round of the loop, when all who can ask now have asked."""
        if not self._is_planned and not self._is_away:
            self._is_planned = True
            self._loop.call_soon(self._start)

    def _start(self) -> None:
        self._is_planned = False
        batch = self._batch = self._take()
        if not batch:  # all were withdrawn
            self._finish(([], self._usual_s))
            return
        if self._is_quick(batch):
            outcome = self._commit([ticket.request for ticket in batch], False, None)
            if outcome is not None:
                self._finish(outcome)
                return
        if not self._has_thread():
            waited = self._commit([ticket.request for ticket in batch], True, None)
            assert waited is not None
            self._finish(waited)
            return
        self._is_away = True
        self._work.put(True)

    def _has_thread(self) -> bool:
        """Whether there is one to write in; one is started when it is first needed."""
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="holdfast-writer", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return False  # the system allows no more; better a loop that waits than no answer
            self._thread = thread
        return True

    def _is_quick(self, batch: Sequence[Ticket[Any]]) -> bool:
        """Whether it is worth no thread."""
        if len(batch) > CROWD or self._usual_s > self._quick_s:
            return False
        return not any(ticket.request.is_long for ticket in batch)

    def _take(self) -> list[Ticket[Any]]:
        batch: list[Ticket[Any]] = []
        while self._queue and len(batch) < BATCH_MAX:
            ticket = self._queue.popleft()
            if not ticket.is_withdrawn:
                ticket.is_taken = True
                batch.append(ticket)
        return batch

    def _run(self) -> None:
        while self._work.get():
            requests = [ticket.request for ticket in self._batch]
            self._outcome = self._commit(requests, True, self._answer)
            del requests
            self._tell_loop(self._back)

    def _answer(self, results: Results) -> None:
        self._tell_loop(self._settle, results)

    def _tell_loop(self, function: Callable[..., None], *values: Any) -> None:
        """From the thread that writes."""
        with suppress(RuntimeError):  # the loop is closed: nobody waits for an answer
            self._loop.call_soon_threadsafe(function, *values)

    def _back(self) -> None:
        outcome, self._outcome = self._outcome, None
        assert outcome is not None
        self._is_away = False
        self._finish(outcome)

    def _settle(self, results: Results) -> None:
        """Answer everybody, if that was not done before."""
        batch, self._batch = self._batch, []
        if batch:
            for ticket, result in zip(batch, results, strict=True):
                ticket.settle(result)

    def _finish(self, outcome: Outcome) -> None:
        results, commit_s = outcome
        self._latest_s.append(commit_s)
        self._usual_s = sorted(self._latest_s)[len(self._latest_s) // 2]
        self._settle(results)
        self._after()
        if self._queue:
            self._plan()
        elif self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    async def close(self) -> None:
        """Answer everybody, then let the thread go."""
        self._is_closed = True
        while self._queue or self._is_away:
            self._drained = self._loop.create_future()
            await self._drained
        if self._thread is not None:
            self._work.put(False)
            self._thread.join()
            self._thread = None
