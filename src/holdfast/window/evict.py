"""Evict: whole turns leave, the oldest first, and if need be calls of the current one.

    plan = Evict().plan(view, situation)

Pass 1 takes whole turns before the current one, with their calls and results, until the request is
as small as it should be. Under pressure it also takes the latest turns that are kept otherwise,
and then summaries. Pass 2, under pressure too, takes calls inside the current turn, each with its
results. What `keep.py` locks is never taken. If all this is not enough it is done all the same;
only if there is nothing at all to take the plan has no steps, and says so.
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
    pairs = Pairs(items)
    stays = kept(view, items, pairs, situation.budget)
    turns = [range(group.start, group.stop) for group in view.groups() if group.turn < view.turn]
    taken: set[int] = set()

    def whole(places: Iterator[int]) -> Iterator[set[int]]:
        if more := pairs.with_all(places) - taken:
            taken.update(more)
            yield more

    for turn in turns:
        yield from whole(place for place in turn if _is_free(items, place, stays))
    if not is_deep:
        return
    for turn in turns:
        yield from whole(p for p in turn if p not in stays.locked and not _is_told(items[p]))
    for place, item in enumerate(items):
        if is_summary(item) and place not in stays.locked:
            yield from whole(iter((place,)))
    current = next((g for g in view.groups() if g.turn == view.turn), None)
    for group in pairs.answered(current.start, current.stop) if current else ():
        if stays.locked.isdisjoint(group):
            yield from whole(iter(group))


def _is_free(items: Sequence[Item], place: int, stays: Kept) -> bool:
    return not stays.has(place) and not _is_told(items[place])


def _is_told(item: Item) -> bool:
    """Whether it stands for what has gone already: a note goes with its neighbours, or stays."""
    return is_note(item) or is_summary(item)


def proactive(total: int, reserve: int, context: int) -> int:
    """How many tokens to free before a request, so that there is room for its answer."""
    return max(0, total + reserve - context)


def reactive(total: int, desired: int, context: int, reserve: int) -> int:
    """How many tokens to free after a model has refused a request as too long."""
    return max(total + min(desired, context // 2) - context, reserve)
