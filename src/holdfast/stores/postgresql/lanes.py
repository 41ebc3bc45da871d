"""The queue in front of a PostgreSQL store: what is asked of one session, one after the other.

Every session has a lane. Appends and partial output that stand first in their lanes go into one
batch (`batch.py`); whatever else stands first in its lane gets a transaction of its own. What comes
back from a batch undone stands first in its lane again, and the first of it is not put into a batch
another time. Some batches and transactions run at the same time, and never two on one session.

A caller waits for an answer of his own. Cancelled before his request was taken, it is withdrawn;
afterwards he waits until its outcome is certain.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Hashable, Sequence
from typing import Any, TypeVar

from holdfast.errors import StoreUnavailable
from holdfast.stores.requests import Append, Create, Journal, OfSession, Request
from holdfast.stores.writer import Ticket as Waiting

_Result = TypeVar("_Result")

BATCH_MAX = 1_024
BATCHES_MAX = 2
CROWD = 32  # so many at once are worth two batches
_HOT = {Append, Journal}  # asked for by their type alone: an ABC takes long to answer


class Ticket(Waiting[_Result]):
    """A request that waits for its answer in a lane."""

    __slots__ = ("is_alone", "place")

    def __init__(self, request: Request[_Result]) -> None:
        super().__init__(request)
        self.place: Any = _lane_of(request)  # tenant and id, where it is about a session
        self.is_alone = type(request) not in _HOT


class Lanes:
    """`run_one` settles the ticket that it is given, and `run_batch` all but those that it returns.
    Neither ever raises."""

    def __init__(
        self,
        run_batch: Callable[[Sequence[Ticket[Any]]], Coroutine[Any, Any, list[Ticket[Any]]]],
        run_one: Callable[[Ticket[Any]], Coroutine[Any, Any, None]],
        ones_max: int,
    ) -> None:
        self._run_batch = run_batch
        self._run_one = run_one
        self._ones_max = ones_max
        self._loop = asyncio.get_running_loop()
        self._lanes: dict[Hashable, deque[Ticket[Any]]] = {}
        self._ready: dict[Hashable, None] = {}
        self._is_planned = self._is_closed = False
        self._batches = self._ones = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def submit(self, request: Request[_Result]) -> _Result:
        """The result of a request, when it is committed."""
        if self._is_closed:
            raise StoreUnavailable("the store", "it is closed")
        ticket = Ticket(request)
        key = ticket.place
        lane = self._lanes.get(key)
        if lane is None:
            self._lanes[key] = deque((ticket,))
            self._ready[key] = None
            self._plan()
        else:
            lane.append(ticket)
        try:
            await ticket.wait()
        except asyncio.CancelledError:
            await ticket.leave()
            raise
        return ticket.answer()

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits for anything."""
        return not self._lanes

    def _plan(self) -> None:
        """Start in the next round of the loop, when all who can ask now have asked."""
        if not self._is_planned:
            self._is_planned = True
            self._loop.call_soon(self._start)

    def _start(self) -> None:
        self._is_planned = False
        keys: list[Hashable] = []
        batch: list[Ticket[Any]] = []
        room = self._room()
        for key in list(self._ready):
            lane = self._lanes[key]
            while lane and lane[0].is_withdrawn:
                lane.popleft()
            if not lane:
                del self._ready[key], self._lanes[key]
            elif lane[0].is_alone:
                if self._ones < self._ones_max:
                    del self._ready[key]
                    self._ones += 1
                    self._spawn(self._one(key, _take(lane)))
            elif self._batches < BATCHES_MAX and len(batch) < room:
                del self._ready[key]
                keys.append(key)
                _take_hot(lane, batch)
        if keys:
            self._batches += 1
            self._spawn(self._batch(keys, batch))
            if self._batches < BATCHES_MAX and self._ready:
                self._plan()

    def _room(self) -> int:
        """How many requests the next batch takes.

        A crowd is split: while the server writes one half, the other is made ready here. If all
        went together, one would always wait for the other.
        """
        waiting = len(self._ready)
        is_crowd = self._batches == 0 and waiting >= CROWD
        return min(BATCH_MAX, waiting // BATCHES_MAX) if is_crowd else BATCH_MAX

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _one(self, key: Hashable, ticket: Ticket[Any]) -> None:
        try:
            await self._run_one(ticket)
        finally:
            self._ones -= 1
            self._free([key])

    async def _batch(self, keys: list[Hashable], batch: list[Ticket[Any]]) -> None:
        try:
            left = await self._run_batch([ticket for ticket in batch if not ticket.is_withdrawn])
            for ticket in reversed(left):
                self._lanes[ticket.place].appendleft(ticket)
            for ticket in left:
                self._lanes[ticket.place][0].is_alone = True
        finally:
            self._batches -= 1
            self._free(keys)

    def _free(self, keys: Sequence[Hashable]) -> None:
        """These lanes go on."""
        for key in keys:
            if self._lanes[key]:
                self._ready[key] = None
            else:
                del self._lanes[key]
        if self._ready:
            self._plan()

    async def close(self) -> None:
        """Answer everybody."""
        self._is_closed = True
        while self._lanes or self._tasks:
            if self._tasks:
                await asyncio.wait(self._tasks)
            else:
                await asyncio.sleep(0)


def _take(lane: deque[Ticket[Any]]) -> Ticket[Any]:
    ticket = lane.popleft()
    ticket.is_taken = not ticket.is_withdrawn
    return ticket


def _take_hot(lane: deque[Ticket[Any]], batch: list[Ticket[Any]]) -> None:
    """All that may go into a batch, as far as there is room."""
    while lane and not lane[0].is_alone and len(batch) < BATCH_MAX:
        batch.append(_take(lane))


def _lane_of(request: Request[Any]) -> Hashable:
    if type(request) in _HOT or isinstance(request, OfSession):
        return request.tenant, request.id  # type: ignore[attr-defined]
    if isinstance(request, Create):
        return request.tenant, request.record.key, ""
    return type(request), request.tenant
