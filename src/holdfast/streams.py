"""A stream: the events of a turn while it runs, for `async for`.

    async for event in session.stream("And who am I?"):
        ...

Leaving the loop early cancels the turn, and what was said so far is kept. Where an exception may
leave it, `async with session.stream(...) as events` does so at once, and not when the garbage is
collected.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from types import TracebackType
from typing import Any, Self

from holdfast.cancel import CancelToken
from holdfast.errors import InvalidInput
from holdfast.events import Event
from holdfast.results import TurnResult
from holdfast.steps.observers import OnEvent

Start = Callable[[OnEvent], "asyncio.Task[TurnResult]"]


class Stream:
    """The events of one turn, to be read once; `result` when they have ended."""

    def __init__(self, start: Start, cancel: CancelToken, *, detach: bool = False) -> None:
        self.result: TurnResult | None = None
        self._start = start
        self._cancel = cancel
        self._detach = detach
        self._is_begun = False
        self._task: asyncio.Task[TurnResult] | None = None
        self._held: AsyncGenerator[Event, None] | None = None
        self._told: deque[Event] = deque()  # and not read yet
        self._reader: asyncio.Future[None] | None = None  # waits for more

    def __aiter__(self) -> AsyncIterator[Event]:
        if self._held is not None:
            return self._held
        if self._is_begun:
            raise InvalidInput("a stream", "is read once: ask for another")
        self._is_begun = True
        return self._events()

    async def __aenter__(self) -> Self:
        events = self.__aiter__()
        assert isinstance(events, AsyncGenerator)
        self._held = events
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Leave it now: the turn is cancelled, and what was said is kept when this returns."""
        self._is_begun = True
        if self._task is not None and not self._detach and not self._task.done():
            self._cancel.cancel("the stream was closed")
            await until_done(self._task)

    async def _events(self) -> AsyncGenerator[Event, None]:
        told, loop = self._told, asyncio.get_running_loop()
        task = self._task = self._start(self._tell)
        task.add_done_callback(self._wake)
        try:
            while told or not task.done():
                if told:
                    yield told.popleft()
                else:
                    self._reader = loop.create_future()
                    await self._reader
            self.result = task.result()
        finally:
            if not self._detach and not task.done():
                self._cancel.cancel("whoever read the stream has left")
                await until_done(task)
            seen(task)

    def _tell(self, event: Event) -> None:
        self._told.append(event)
        self._wake()

    def _wake(self, _: object = None) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)


async def finished(task: "asyncio.Task[TurnResult]", cancel: CancelToken) -> TurnResult:
    """What a turn gives. If whoever waits is cancelled, so is the turn, which keeps what it has."""
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        cancel.cancel("whoever waited has left")
        await until_done(task)
        raise
    return task.result()


async def until_done(task: "asyncio.Task[Any]") -> None:
    """Wait for a task that is about to end, however often the one who waits is cancelled."""
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            continue
    seen(task)


def seen(task: "asyncio.Task[Any]") -> None:
    """How a task ended is known, though nobody may be left to be told."""
    if task.done() and not task.cancelled():
        task.exception()
