"""When messages are due, and which: by how many there are, and how many were summarised before."""

from typing import NamedTuple


class Range(NamedTuple):
    """The messages at positions `start` to before `stop`."""

    start: int
    stop: int


def usable(counter: object, count: int) -> int:
    """A counter as far as it can be one.

    One that is below zero, or beyond the messages that there are, says nothing: then all of them
    are taken, for what is summarised twice is not lost.
    """
    return counter if type(counter) is int and 0 <= counter <= count else 0


def is_due(count: int, counter: int, window: int) -> bool:
    """Whether `window` or more messages are not summarised yet."""
    return count - usable(counter, count) >= window


def range_of(count: int, counter: int, window: int, *, is_all: bool = False) -> Range | None:
    """What is summarised now: everything new but the last half window, or really everything.

    None if there is nothing new. The counter is at `stop` afterwards.
    """
    start = usable(counter, count)
    stop = count if is_all else count - window // 2
    return Range(start, stop) if stop > start else None
