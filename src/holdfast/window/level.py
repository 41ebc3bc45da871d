"""One level for tool results: the longest are cut to the length that makes enough room.

Cutting the longest one to nothing, and leaving one alone that is nearly as long, would lose the
most. So all that are longer than the level are cut to it, and the level is as high as it can be.
"""

from collections.abc import Iterable, Sequence

from holdfast.messages import Message
from holdfast.window.outcome import measured
from holdfast.window.plan import Plan, Step, nothing, planned, runs
from holdfast.window.shorten import shorten_to
from holdfast.window.situation import Situation
from holdfast.window.view import Item, View

_TRIES_MAX = 8


def levelled(
    view: View, places: Iterable[int], situation: Situation, tokens_max: int, by: str
) -> Plan:
    """The plan that cuts the longest of these items until the request has `tokens_max`, or as few
    as it can have."""
    items = view.items
    free = [place for place in places if runs(items, (place,))]
    plan = nothing(by, situation, "no tool result can be shortened")
    excess = situation.used - tokens_max
    for _ in range(_TRIES_MAX):  # a notice has tokens too, so once may not be enough
        level = _level([items[place].tokens for place in free], int(excess / situation.scale) + 1)
        steps = [step for place in free if (step := _cut(view, items[place], level, situation))]
        if steps:
            reason = f"{len(steps)} of the longest results are cut to {level} tokens"
            numbers: dict[str, object] = {"level": level, "items": len(steps)}
            plan = measured(planned(by, situation, steps, reason, numbers), view, situation)
        if not level or (left := plan.tokens_after - tokens_max) <= 0:
            break
        excess += left
    return plan


def _level(sizes: Sequence[int], excess: int) -> int:
    """The highest level to which sizes can be cut so that `excess` of them goes."""
    ordered = sorted(sizes, reverse=True)
    total = 0
    for number, size in enumerate(ordered, start=1):
        total += size
        below = ordered[number] if number < len(ordered) else 0
        if (level := (total - excess) // number) >= below:
            return level
    return 0


def _cut(view: View, item: Item, level: int, situation: Situation) -> Step | None:
    shorter = shorten_to(item.message, level, view.count)
    return None if shorter is None else shorter_step(view, item, shorter, situation)


def shorter_step(view: View, item: Item, shorter: Message, situation: Situation) -> Step:
    """The step that shows a shorter form of an item."""
    return Step(
        first=item.first,
        last=item.last,
        kind="shorten",
        replacement=shorter,
        tokens_before=situation.tokens(item.tokens),
        tokens_after=situation.tokens(view.count(shorter)),
        why="too long for the window",
    )
