"""Rounds: for each of many, something some time after it has asked; with one timer for them all.

A timer for each would be five objects for the garbage collector to look at, and there may be
thousands of turns.
"""

import asyncio
from collections.abc import Callable
from contextvars import Context
from itertools import takewhile
from typing import Generic, TypeVar

_Item = TypeVar("_Item")

GRAIN_S = 0.02  # those that are due so soon after one another are called together


class Rounds(Generic[_Item]):
    """Calls `go` with those whose time has come, in the order in which they have asked."""

    def __init__(self, go: Callable[[list[_Item]], object], wait_s: Callable[[], float]) -> None:
        """`wait_s` says how long the next one waits; nobody is called before those who wait."""
        self._go = go
        self._wait_s = wait_s
        self._due: dict[_Item, float] = {}  # in the order in which they have asked
        self._timer: asyncio.TimerHandle | None = None
        self._context = Context()  # of nobody: whoever asks first does not speak for the others

    def __len__(self) -> int:
        """How many wait."""
        return len(self._due)

    def add(self, item: _Item) -> None:
        """Have it called in the next round that is due for it."""
        loop = asyncio.get_running_loop()
        self._due[item] = loop.time() + self._wait_s()
        if self._timer is None:
            self._plan(loop)

    def remove(self, item: _Item) -> None:
        """It need not be called any more."""
        self._due.pop(item, None)
        if not self._due and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _plan(self, loop: asyncio.AbstractEventLoop) -> None:
        due = next(iter(self._due.values()))
        self._timer = loop.call_at(due, self._tick, loop, context=self._context)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now = loop.time() + GRAIN_S
        called = [item for item, _ in takewhile(lambda each: each[1] <= now, self._due.items())]
        for item in called:
            del self._due[item]
        if self._due:
            self._plan(loop)
        self._go(called)
