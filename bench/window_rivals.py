"""What others do with a full window, as policies that fold: for bench/window.py.

Fixed steps and summaries at a threshold are what most programs have that do more than trim. They
leave no note in the place of what is gone. `Fit` is what every policy falls back to when a prompt
would not fit at all.
"""

from collections.abc import Sequence

from holdfast.messages import Role
from holdfast.window.plan import Plan, Step, nothing, planned, runs
from holdfast.window.situation import Situation
from holdfast.window.view import Group, Item, View


class FixedSteps:
    """From one share of the limit on, whole turns go, the oldest first, down to another share."""

    def __init__(self, start: float, target: float) -> None:
        self.start = start
        self.target = target

    @property
    def name(self) -> str:
        return f"steps {self.start:.0%} to {self.target:.0%}".replace("%", "")

    def plan(self, view: View, situation: Situation) -> Plan:
        if situation.used <= self.start * situation.limit:
            return nothing(self.name, situation, "below the start")
        gone, _ = oldest_turns(view, situation.used - self.target * situation.limit)
        return _dropped(self.name, view, gone, situation)


class SummarizeAt:
    """From a share of the limit on, all but the last turns are summed up.

    A summary has a tenth of the tokens that it sums up, from 100 to 1,000, and never more than a
    tenth of the limit.
    """

    def __init__(self, start: float = 0.8, keep_turns: int = 5) -> None:
        self.start = start
        self.keep_turns = keep_turns

    @property
    def name(self) -> str:
        return f"summarize at {self.start:.0%}".replace("%", "")

    def plan(self, view: View, situation: Situation) -> Plan:
        if situation.used <= self.start * situation.limit:
            return nothing(self.name, situation, "below the start")
        old = [group for group in view.groups() if group.turn > 0][: -self.keep_turns]
        if not old:
            return nothing(self.name, situation, "there are only turns that are kept")
        items = view.items[old[0].start : old[-1].stop]
        tokens = sum(item.tokens for item in items)
        size = min(max(100, tokens // 10), 1_000, situation.limit // 10)
        if size >= tokens:
            return nothing(self.name, situation, "a summary would not be shorter")
        step = Step(
            first=items[0].first,
            last=max(item.last for item in items),
            kind="summarize",
            messages=tuple(item.message for item in items),
            tokens_before=tokens,
            tokens_after=size,
        )
        return planned(self.name, situation, [step], "over the start")


class Fit:
    """Whole turns go, the oldest first, until the prompt fits; and if the current turn alone does
    not, its oldest calls with their results."""

    name = "fit"

    def plan(self, view: View, situation: Situation) -> Plan:
        if not situation.over:
            return nothing(self.name, situation, "it fits")
        gone, left = oldest_turns(view, situation.over)
        if left > 0:
            gone += _inside(view, left)
        return _dropped(self.name, view, gone, situation)


def oldest_turns(view: View, excess: float) -> tuple[list[int], float]:
    """The items of whole turns with `excess` tokens or more, and what of these is left over.

    The current turn is never among them, nor what stands before the first.
    """
    gone: list[int] = []
    for group in view.groups():
        if excess <= 0 or group.turn == view.turn:
            break
        if group.turn > 0:
            gone += range(group.start, group.stop)
            excess -= group.tokens
    return gone, excess


def _inside(view: View, excess: float) -> list[int]:
    """The oldest calls of the current turn, with their results; its first and last are kept."""
    gone: list[int] = []
    *_, group = view.groups()
    for start, stop in _exchanges(view.items, group)[1:-1]:
        if excess <= 0:
            break
        gone += range(start, stop)
        excess -= sum(item.tokens for item in view.items[start:stop])
    return gone


def _exchanges(items: Sequence[Item], group: Group) -> list[tuple[int, int]]:
    """What is said in a turn, each with the results behind it."""
    starts = [
        index
        for index in range(group.start, group.stop)
        if items[index].message.role is not Role.TOOL
    ]
    return list(zip(starts, [*starts[1:], group.stop], strict=True))


def _dropped(name: str, view: View, gone: Sequence[int], situation: Situation) -> Plan:
    items = view.items
    steps = [
        Step(
            first=items[start].first,
            last=max(item.last for item in items[start:stop]),
            kind="drop",
            tokens_before=sum(item.tokens for item in items[start:stop]),
        )
        for start, stop in runs(items, gone)
    ]
    return planned(name, situation, steps, "the oldest turns go")
