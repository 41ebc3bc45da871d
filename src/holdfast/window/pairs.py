"""Pairs: which of the things shown belong together, as a call and its results do.

One of them must not go without the others: a call without its result is taken for one that failed,
and a result without its call is no result.
"""

from collections.abc import Iterable

from holdfast.window.view import View


class Pairs:
    """What belongs together among the items of a view."""

    def __init__(self, view: View) -> None:
        self._pairs = view.pairs()
        self._groups: dict[int, list[int]] = {}  # of a place that is not alone: all, with itself
        for pair in self._pairs:
            for place in pair.results:
                self._join(pair.caller, place)

    def with_all(self, places: Iterable[int]) -> set[int]:
        """These places, and all that cannot go without them."""
        found = set(places)
        for place in tuple(found):
            if group := self._groups.get(place):
                found.update(group)
        return found

    def answered(self, start: int, stop: int) -> list[tuple[int, ...]]:
        """The calls that begin in items[start:stop] and have all their results, with these."""
        groups = {
            tuple(sorted(self._groups.get(pair.caller, (pair.caller,)))): pair.is_answered
            for pair in self._pairs
            if start <= pair.caller < stop
        }
        return [group for group, is_answered in groups.items() if is_answered]

    def _join(self, one: int, other: int) -> None:
        group = self._groups.setdefault(one, [one])
        more = self._groups.get(other, [other])
        if group is not more:
            group += more
            self._groups.update(dict.fromkeys(more, group))
