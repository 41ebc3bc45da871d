"""The outcome of a plan: what the window will really have, seen before anything is done.

A policy adds up what it takes away. What a model is then shown may differ: a result goes with its
call, a note has tokens of its own, a call that is left without its result is given one. So the
folds are tried on a view, and that is counted.
"""

from collections.abc import Callable, Iterator, Sequence

from holdfast.errors import InvalidInput
from holdfast.messages import Message
from holdfast.notes import CUT
from holdfast.window.plan import Plan, Step, apply
from holdfast.window.situation import Situation
from holdfast.window.view import Item, View


def outcome(plan: Plan, view: View) -> View:
    """The view with the folds of a plan; summaries that are to be written say nothing yet."""
    steps = [_as_drop(step) if step.kind == "summarize" else step for step in plan.steps]
    return view.with_folds(apply(plan.replace(steps=steps)))


def measured(plan: Plan, view: View, situation: Situation) -> Plan:
    """The plan with the tokens that the request will have; summaries are counted at their longest.

    One that would free nothing is a plan without steps.
    """
    used = situation.used
    if not plan.steps:
        return plan.replace(tokens_before=used, tokens_after=used)
    unwritten = sum(view.count(_unwritten(step)) for step in plan.to_summarize)
    total = outcome(plan, view).total - unwritten
    longest = sum(step.tokens_after for step in plan.to_summarize)
    freed = situation.tokens(view.total) - situation.tokens(total) - longest
    if freed <= 0:
        reason = f"{plan.reason}; but that would free nothing"
        return plan.replace(steps=(), reason=reason, tokens_before=used, tokens_after=used)
    return plan.replace(tokens_before=used, tokens_after=max(0, used - freed))


def _as_drop(step: Step) -> Step:
    return step.replace(kind="drop", replacement=_unwritten(step))


def _unwritten(step: Step) -> Message:
    """In the place of a summary; the same one whenever it is made."""
    last = step.messages[-1]
    return Message.user(CUT, id=f"{last.id}:summary", timestamp=last.timestamp, synthetic="summary")


def checked(plan: Plan, view: View) -> Plan:
    """The plan, if its steps are of things that are shown, in order and apart; else InvalidInput.

    Each step runs from the first message of an item to the last of one, both included.
    """
    if not plan.steps:
        return plan
    items = view.items
    firsts, lasts = {item.first for item in items}, {item.last for item in items}
    end = 0
    for step in plan.steps:
        name = f"the step from {step.first} to {step.last}"
        if step.first > step.last:
            raise InvalidInput(name, "ends before it begins")
        if step.first not in firsts or step.last not in lasts:
            raise InvalidInput(name, "is not of messages that are shown")
        if step.first <= end:
            raise InvalidInput(name, f"begins within the one before, which ends at {end}")
        end = step.last
    return plan


def taken(
    items: Sequence[Item],
    waiting: Iterator[set[int]],
    situation: Situation,
    tokens_max: int,
    plan: Plan,
    planned: Callable[[set[int]], Plan],
) -> Plan:
    """The plan that takes of what is waiting, in order, until no more than `tokens_max` are left.

    What goes is added up first, and then the plan of it is counted, which costs more: mostly once
    or twice. What went before something larger and turns out to fit is given back, the latest
    first. `plan` is what holds if nothing has to be taken, or nothing is there.
    """
    chosen: set[int] = set()
    order: list[set[int]] = []
    while (excess := plan.tokens_after - tokens_max) > 0:
        before = len(order)
        found = 0
        for places in waiting:
            if more := places - chosen:
                order.append(more)
                chosen |= more
                found += sum(items[place].tokens for place in more)
            if situation.tokens(found) >= excess:
                break
        if len(order) == before:
            break
        plan = planned(chosen)
    return _with_back(items, order, situation, tokens_max, plan, planned)


def _with_back(
    items: Sequence[Item],
    order: list[set[int]],
    situation: Situation,
    tokens_max: int,
    plan: Plan,
    planned: Callable[[set[int]], Plan],
) -> Plan:
    """The plan without what was taken and need not have been, before something larger went."""
    back: set[int] = set()
    room = tokens_max - plan.tokens_after
    current = items[-1].turn if items else 0
    older = [places for places in order if items[min(places)].turn < current]
    for places in sorted(older, key=min, reverse=True):
        room -= situation.tokens(sum(items[place].tokens for place in places))
        if room < 0:
            break
        back |= places
    if not back:
        return plan
    less = planned(set().union(*order) - back)
    return less if less.tokens_after <= tokens_max else plan


def joined(plan: Plan, more: Plan, view: View, situation: Situation) -> Plan:
    """A plan, and what was planned for its outcome, as one plan for the view before both."""
    kept = [step for step in plan.steps if not any(_covers(other, step) for other in more.steps)]
    steps = sorted([*kept, *more.steps], key=lambda step: step.first)
    both = plan.replace(
        steps=tuple(steps),
        reason=f"{plan.reason}; {more.reason}",
        numbers={**plan.numbers, "items": _items(plan) + _items(more)},
    )
    return measured(both, view, situation)


def _covers(later: Step, earlier: Step) -> bool:
    return later.first <= earlier.first and earlier.last <= later.last


def _items(plan: Plan) -> int:
    return int(plan.numbers.get("items", 0))
