"""Pairs: which of the things shown belong together, as a call and its results do.

One of them must not go without the others: a call without its result is taken for one that failed,
and a result without its call is no result.
"""

from collections.abc import Iterable, Sequence

from holdfast.messages import Message
from holdfast.window.render import calls_of, results_of
from holdfast.window.view import Item


class Pairs:
    """What belongs together among items. Each belongs to one group, most to one of their own."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items
        self._parent = list(range(len(items)))
        self._members: dict[int, list[int]] = {}
        self._find()

    def with_all(self, places: Iterable[int]) -> set[int]:
        """These places, and all that cannot go without them."""
        found: set[int] = set()
        for place in places:
            if place not in found:
                found.update(self._members[self._root(place)])
        return found

    def answered(self, start: int, stop: int) -> list[tuple[int, ...]]:
        """The calls that begin in items[start:stop] and have all their results, with these."""
        groups = [self._members[place] for place in range(start, stop) if place in self._members]
        return [tuple(group) for group in groups if self._is_answered(group)]

    def _find(self) -> None:
        callers: dict[str, int] = {}  # the latest that made a call of this id
        last: int | None = None  # what a result without an id answers
        for place, item in enumerate(self._items):
            if calls := calls_of(item.message):
                callers.update((call.id, place) for call in calls)
                last = place
                continue
            for id in _answers(item.message):
                owner = last if id is None else callers.get(id)
                if owner is not None:
                    self._join(owner, place)
        for place in range(len(self._items)):
            self._members.setdefault(self._root(place), []).append(place)

    def _join(self, one: int, other: int) -> None:
        first, second = sorted((self._root(one), self._root(other)))
        self._parent[second] = first  # the root is the first of all

    def _root(self, place: int) -> int:
        while (parent := self._parent[place]) != place:
            self._parent[place] = self._parent[parent]
            place = parent
        return place

    def _is_answered(self, group: list[int]) -> bool:
        messages = [self._items[place].message for place in group]
        calls = [call for message in messages for call in calls_of(message)]
        waiting = {call.id for call in calls if call.output is None}
        answers = [id for message in messages for id in _answers(message)]
        return bool(calls) and (waiting <= set(answers) or answers.count(None) >= len(waiting))


def _answers(message: Message) -> tuple[str | None, ...]:
    """The ids of the calls whose results a message holds; None for a result that names none."""
    return tuple(result.call_id for result in results_of(message))
