"""Ids: UUID version 7 in canonical text, strictly increasing in a process.

    unix time in ms 48 | version 4 | counter 12 | variant 2 | counter 62

The counter starts at a random place in each millisecond and then counts up. When the clock stands
still or goes back, the last millisecond is used on; so ids sort in the order in which they were
made, whatever the clock does. Sources can be replaced, with another clock and other
randomness, to repeat a run exactly:

    with ids.using(IdSource(clock_ns=lambda: 0, randbits=random.Random(7).getrandbits)):
        ...
"""

import os
import re
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta

from holdfast.errors import InvalidInput

_COUNTER_BITS = 74
_MS_MAX = 2**48 - 2**20  # the year 10889, with room to count on
_UUID7 = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _system_bits(count: int) -> int:
    return int.from_bytes(os.urandom((count + 7) // 8), "big") >> (-count % 8)


class IdSource:
    """Makes ids, and tells the time by the same clock. Safe for threads and across fork."""

    def __init__(
        self,
        *,
        clock_ns: Callable[[], int] = time.time_ns,
        randbits: Callable[[int], int] = _system_bits,
    ) -> None:
        self._clock_ns = clock_ns
        self._randbits = randbits
        self._lock = threading.Lock()
        self._ms = -1
        self._head = ""
        self._counter = 0
        _sources.add(self)

    def now(self) -> datetime:
        """The time by this source's clock, aware, in UTC."""
        return datetime.fromtimestamp(self._clock_ns() // 1_000 / 1_000_000, UTC)

    def new(self) -> str:
        """An id that is greater than every id this source gave before."""
        with self._lock:
            ms = min(max(self._clock_ns() // 1_000_000, 0), _MS_MAX)
            if ms > self._ms:
                self._start(ms)
            else:
                self._counter += 1
                if self._counter >> _COUNTER_BITS:
                    self._start(self._ms + 1)
            head, counter = self._head, self._counter
        low = 0x8000_0000_0000_0000 | counter & 0x3FFF_FFFF_FFFF_FFFF
        return f"{head}{counter >> 62:03x}-{low >> 48:04x}-{low & 0xFFFF_FFFF_FFFF:012x}"

    def _start(self, ms: int) -> None:
        self._ms = ms
        self._head = f"{ms >> 16:08x}-{ms & 0xFFFF:04x}-7"
        self._counter = self._randbits(_COUNTER_BITS - 1)  # the upper half is left to grow into

    def _after_fork(self) -> None:
        # The child must not go on from its parent's counter. One millisecond later it starts at
        # a random place of its own, and its ids still sort behind those it inherited.
        self._lock = threading.Lock()
        if self._ms >= 0:
            self._start(self._ms + 1)


_sources: "weakref.WeakSet[IdSource]" = weakref.WeakSet()
_default = IdSource()
_source: ContextVar[IdSource] = ContextVar("holdfast.ids", default=_default)

if hasattr(os, "register_at_fork"):

    def _after_fork_in_child() -> None:
        for source in list(_sources):
            source._after_fork()

    os.register_at_fork(after_in_child=_after_fork_in_child)


def now_us() -> int:
    """The time by the source in use, in microseconds since 1970."""
    return _source.get()._clock_ns() // 1_000


def new_id() -> str:
    """A new id from the source in use."""
    return _source.get().new()


def now() -> datetime:
    """The time, by the clock of the source in use."""
    return _source.get().now()


@contextmanager
def using(source: IdSource) -> Iterator[IdSource]:
    """Take ids and times from `source` inside the block (in this task or thread)."""
    token = _source.set(source)
    try:
        yield source
    finally:
        _source.reset(token)


def time_of(id: str) -> datetime:
    """When an id of ours was made, to the millisecond."""
    if type(id) is not str or not _UUID7.fullmatch(id):
        raise InvalidInput(f"id {id!r}", "is not a UUID of version 7")
    try:
        return _EPOCH + timedelta(milliseconds=int(id[:8] + id[9:13], 16))
    except OverflowError:
        raise InvalidInput(f"id {id!r}", "was made behind the year 9999") from None
