"""Other orders of the same tasks, and a cancel at every await.

    run(seed, main)                 # main() in an event loop that picks the next task by the seed

    for k in count(1):              # cancel store.append(...) at its k-th await, for every k
        outcome = await cancel_at(store.append(...), k)
        if not outcome.is_hit:
            break

    await act_at(turn, k, token.cancel)     # the same, with a cancel that comes from elsewhere

The loop has virtual time: when nothing is ready the clock jumps to the next timer, so a schedule
with an hour of sleeping takes a millisecond. Threads are outside of it. A failing seed fails again.
Where something outside of the loop has to be waited for, such as a server, `hurried(main, 50)` lets
real time pass, so many times as quickly, and the order is what it happens to be.
"""

import asyncio
import collections
import random
import selectors
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, NamedTuple, TypeVar

_Result = TypeVar("_Result")


def missing() -> str:
    """Why the seeded loop cannot run here, or "". It reaches into the loop of the library."""
    loop = asyncio.SelectorEventLoop()
    try:
        needed = ("_ready", "_scheduled", "_run_once")
        absent = [name for name in needed if not hasattr(loop, name)]
    finally:
        loop.close()
    return f"the event loop of this Python has no {', '.join(absent)}" if absent else ""


class SeededLoop(asyncio.SelectorEventLoop):
    """Runs what is ready in an order that the seed decides, in virtual time."""

    def __init__(self, seed: int) -> None:
        self._now = 0.0
        self._order = random.Random(seed)  # noqa: S311
        super().__init__()

    def time(self) -> float:
        """The virtual time, in seconds from 0."""
        return self._now

    def _run_once(self) -> None:
        ready: collections.deque[Any] = self._ready  # type: ignore[attr-defined]
        if len(ready) > 1:
            shuffled = list(ready)
            self._order.shuffle(shuffled)
            ready.clear()
            ready.extend(shuffled)
        # One that was cancelled would leave the loop to wait for the next, in real time.
        timers = [each for each in self._scheduled if not each.cancelled()]  # type: ignore[attr-defined]
        if not ready and timers:
            self._now = max(self._now, min(each.when() for each in timers))
        super()._run_once()  # type: ignore[misc]


class HurriedLoop(asyncio.SelectorEventLoop):
    """A loop in which `speed` seconds pass in each."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        super().__init__(_HurriedSelector(speed))

    def time(self) -> float:
        """The time of this loop, in seconds."""
        return time.monotonic() * self._speed


class _HurriedSelector(selectors.DefaultSelector):
    def __init__(self, speed: float) -> None:
        super().__init__()
        self._speed = speed

    def select(self, timeout: float | None = None) -> Any:
        return super().select(timeout and timeout / self._speed)


def run(seed: int, main: Callable[[], Coroutine[Any, Any, _Result]]) -> _Result:
    """`main()` in a seeded loop of its own. What it leaves running is cancelled."""
    with asyncio.Runner(loop_factory=lambda: SeededLoop(seed)) as runner:
        return runner.run(main())


def hurried(main: Callable[[], Coroutine[Any, Any, _Result]], speed: float) -> _Result:
    """`main()` in a loop of its own in which time passes so many times as quickly."""
    with asyncio.Runner(loop_factory=lambda: HurriedLoop(speed)) as runner:
        return runner.run(main())


class Outcome(NamedTuple):
    """How a coroutine that was cancelled at its k-th await ended.

    Without `is_hit` it had fewer awaits than that, and nobody cancelled it.
    """

    is_hit: bool
    is_cancelled: bool
    result: object = None
    error: BaseException | None = None


async def cancel_at(
    work: Awaitable[Any], k: int, *, times: int = 1, delay_s: float = 0.0
) -> Outcome:
    """Let `work` run as a task, and cancel it while it waits for the k-th time (from 1).

    With `times`, it is cancelled again at each of the waits that follow. With `delay_s` the cancel
    comes so much later, wherever the work is by then; it may have ended.
    """
    counted = _Counted(work, k, times, delay_s)
    task = asyncio.ensure_future(counted.run())
    counted.action = task.cancel
    await asyncio.wait([task])
    if task.cancelled():
        return Outcome(counted.is_hit, True)
    error = task.exception()
    return Outcome(counted.is_hit, False, None if error else task.result(), error)


async def act_at(
    work: Awaitable[_Result], k: int, action: Callable[[], object], *, times: int = 1
) -> _Result:
    """What `work` gives; while it waits for the k-th time (from 1), `action` is called by the loop.

    With `times`, it is called again at each of the waits that follow. So a cancel that comes from
    elsewhere can be tried at every await of what it is to stop.
    """
    result: _Result = await _Counted(work, k, times, 0.0, action)
    return result


class _Counted:
    """Passes on what a coroutine waits for, and counts."""

    def __init__(
        self,
        work: Awaitable[Any],
        k: int,
        times: int,
        delay_s: float,
        action: Callable[[], object] = lambda: None,
    ) -> None:
        self.action = action
        self._work = work
        self._delay_s = delay_s
        self._due = range(k, k + times)
        self._waits = 0
        self.is_hit = False

    async def run(self) -> Any:
        return await self

    def __await__(self) -> Generator[Any, Any, Any]:
        inner = self._work.__await__()
        send: Callable[[], Any] = lambda: next(inner)  # noqa: E731
        while True:
            try:
                waits_for = send()
            except StopIteration as done:
                return done.value
            self._waits += 1
            if self._waits in self._due:
                self.is_hit = True
                asyncio.get_running_loop().call_later(self._delay_s, self.action)
            try:
                value = yield waits_for
                send = _sender(inner, value)
            except BaseException as error:  # noqa: BLE001 - the coroutine decides what to do
                send = _thrower(inner, error)


def _sender(inner: Generator[Any, Any, Any], value: Any) -> Callable[[], Any]:
    return lambda: inner.send(value)


def _thrower(inner: Generator[Any, Any, Any], error: BaseException) -> Callable[[], Any]:
    return lambda: inner.throw(error)
