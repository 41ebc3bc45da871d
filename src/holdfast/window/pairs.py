"""Pairs: which of the things shown belong together, as a call and its results do.

One of them must not go without the others: a call without its result is taken for one that failed,
and a result without its call is no result.
"""

from collections.abc import Iterable
from functools import cached_property

from holdfast.window.view import View


class Pairs:
    """What belongs together among the items of a view."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._items = view.items

    def with_all(self, places: Iterable[int]) -> set[int]:
        """These places, and all that cannot go without them."""
        found = set(places)
        waiting = list(found)
        while waiting:
            for seq in self._view.partners(self._items[waiting.pop()].first):
                other = self._places.get(seq)
                if other is not None and other not in found:
                    found.add(other)
                    waiting.append(other)
        return found

    def answered(self, start: int, stop: int) -> list[tuple[int, ...]]:
        """The calls that begin in items[start:stop] and have all their results, with these."""
        groups = {
            tuple(sorted(self.with_all((place,)))): None
            for place in range(start, stop)
            if self._view.is_answered(self._items[place].first)
        }
        return list(groups)

    @cached_property
    def _places(self) -> dict[int, int]:
        """The places of the items, by the seq of the message that each stands for."""
        places = {item.first: place for place, item in enumerate(self._items)}
        for place, item in enumerate(self._items):
            if item.fold is None:  # a message that is shown beside its fold is the message
                places[item.first] = place
        return places
