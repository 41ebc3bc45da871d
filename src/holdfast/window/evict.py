"""Evict: whole turns leave, the oldest first, and if need be calls of the current one.

    plan = Evict().plan(view, situation)

Pass 1 takes whole turns before the current one, with their calls and results, until the request is
as small as it should be. Under pressure it also takes the latest turns that are kept otherwise,
and then summaries. Pass 2, under pressure too, takes calls inside the current turn, each with its
results; a note in their place says which they were. What `keep.py` locks is never taken. If all
this is not enough it is done all the same; only if there is nothing at all to take the plan has no
steps, and says so.
"""

from collections.abc import Iterator, Sequence

from holdfast.frozen import Value
from holdfast.window.keep import Kept, is_note, is_summary, kept, turns_shown
from holdfast.window.leave import left_out, with_notes
from holdfast.window.outcome import measured, taken
from holdfast.window.pairs import Pairs
from holdfast.window.plan import Plan, nothing, planned
from holdfast.window.situation import Situation
from holdfast.window.triggers import due, goal, is_pressed
from holdfast.window.view import Item, View

NAME = "evict"
NOTHING_LEFT = "context full and no messages available for eviction"


class Evict(Value, frozen=True, kw_only=True):
    """Leaves out the oldest turns, down to the budget's target.

    notify  the note in their place says who left them out, and why
    """

    notify: bool = False

    @property
    def name(self) -> str:
        return NAME

    def plan(self, view: View, situation: Situation) -> Plan:
        why = due(situation, turns_shown(view.items))
        if why is None:
            return nothing(self.name, situation, f"not due: {situation.fill:.0%} is used")
        return evicted(
            view,
            situation,
            goal(situation),
            why=why,
            is_deep=is_pressed(situation),
            notify=self.notify,
        )

    def _settle(self) -> None:
        self._settle_flags("notify")


def evicted(
    view: View,
    situation: Situation,
    tokens_max: int,
    *,
    why: str,
    is_deep: bool,
    notify: bool = False,
) -> Plan:
    """The plan that brings the request down to `tokens_max`, or as near to it as can be.

    With `is_deep` it may take what would rather be kept. It takes no more than it has to.
    """
    items = view.items
    is_enough = situation.used <= tokens_max
    reason = f"no more than {tokens_max} tokens are used" if is_enough else NOTHING_LEFT
    start = nothing(NAME, situation, f"{why}: {reason}")

    def of(chosen: set[int]) -> Plan:
        places = with_notes(items, chosen)
        steps = left_out(view, items, places, situation, why, NAME if notify else "")
        reason = f"{why}: {len(chosen)} messages leave, oldest first"
        numbers = {"trigger": why, "goal": tokens_max, "items": len(chosen)}
        return measured(planned(NAME, situation, steps, reason, numbers), view, situation)

    waiting = _candidates(view, items, situation, is_deep)
    return taken(items, waiting, situation, tokens_max, start, of)


def _candidates(
    view: View, items: Sequence[Item], situation: Situation, is_deep: bool
) -> Iterator[set[int]]:
    """What may go, in the order in which it goes; a pair goes together."""
    pairs = Pairs(view)
    stays = kept(view, items, pairs, situation.budget)
    yield from old_turns(view, items, pairs, stays)
    if not is_deep:
        return
    yield from latest_turns(view, items, pairs, stays)
    for place, item in enumerate(items):
        if is_summary(item) and place not in stays.locked:
            yield pairs.with_all((place,))
    current = next((g for g in view.groups() if g.turn == view.turn), None)
    for group in pairs.answered(current.start, current.stop) if current else ():
        if stays.locked.isdisjoint(group) and not is_note(items[group[0]]):
            yield set(group)


def old_turns(view: View, items: Sequence[Item], pairs: Pairs, stays: Kept) -> Iterator[set[int]]:
    """The turns that may go before others, the oldest first."""
    return _free(view, items, pairs, stays.locked | stays.recent)


def latest_turns(
    view: View, items: Sequence[Item], pairs: Pairs, stays: Kept
) -> Iterator[set[int]]:
    """The turns that would rather be kept, the oldest first, but for the one that is running."""
    return _free(view, items, pairs, stays.locked)


def _free(
    view: View, items: Sequence[Item], pairs: Pairs, stays: frozenset[int]
) -> Iterator[set[int]]:
    """What may go of each turn before the current one. What stands for what has gone already goes
    with its neighbours, or stays."""
    for turn in _turns(view, items):
        free = {place for place in turn if place not in stays and not _is_told(items[place])}
        if free:
            yield pairs.with_all(free)


def _is_told(item: Item) -> bool:
    """Whether it stands for what has gone already."""
    return item.message.synthetic is not None and (is_note(item) or is_summary(item))


def _turns(view: View, items: Sequence[Item]) -> Iterator[range]:
    """The places of the items of each turn before the current one; found as they are asked for."""
    start = 0
    while start < len(items) and (turn := items[start].turn) < view.turn:
        stop = start + 1
        while stop < len(items) and items[stop].turn == turn:
            stop += 1
        yield range(start, stop)
        start = stop


def proactive(total: int, reserve: int, context: int) -> int:
    """How many tokens to free before a request, so that there is room for its answer."""
    return max(0, total + reserve - context)


def reactive(total: int, desired: int, context: int, reserve: int) -> int:
    """How many tokens to free after a model has refused a request as too long."""
    return max(total + min(desired, context // 2) - context, reserve)
