"""Summarize: what is before the latest turns is summed up in one message.

    plan = Summarize().plan(view, situation)
    texts = [await write(transcript(step.messages)) for step in plan.to_summarize]
    folds = apply(plan, texts, tokens)

The plan changes nothing: whoever cannot write the summary, or fails to, leaves all as it is. One
summary stands in the place of all that is summed up, where that begins; what was summed up before
is part of it.
"""

from collections.abc import Sequence

from holdfast.frozen import Value
from holdfast.notes import summarized
from holdfast.window.keep import turns_shown
from holdfast.window.outcome import measured
from holdfast.window.plan import Plan, Step, nothing, planned, runs
from holdfast.window.situation import Situation
from holdfast.window.triggers import due
from holdfast.window.truncate import old
from holdfast.window.view import Item, View

SUMMARY_TOKENS_MAX = 2_000
_SHARE = 0.25  # of what is summed up: a summary that is nearly as long is none


class Summarize(Value, frozen=True):
    """Keeps the latest turns and a summary of the rest.

    keep_turns  so many; None is the budget's. The current one always stays
    turns_max   when so many turns are shown, it is due however small they are
    tokens_max  the longest that a summary may be
    """

    keep_turns: int | None = None
    turns_max: int | None = None
    tokens_max: int = SUMMARY_TOKENS_MAX

    @property
    def name(self) -> str:
        return "summarize"

    def plan(self, view: View, situation: Situation) -> Plan:
        items = view.items
        why = due(situation, turns_shown(items), self.turns_max)
        if why is None:
            return nothing(self.name, situation, f"not due: {situation.fill:.0%} is used")
        chosen = old(view, situation, self.keep_turns)
        # A summary alone is not summed up again: it would only lose.
        if not any(items[place].fold is None for place in chosen):
            return nothing(self.name, situation, f"{why}: everything is to be kept")
        steps = summed_up(view, items, chosen, situation, why, tokens_max=self.tokens_max)
        reason = f"{why}: {len(chosen)} messages before the turns to be kept are summed up"
        numbers = {"trigger": why, "items": len(chosen)}
        return measured(planned(self.name, situation, steps, reason, numbers), view, situation)

    def _settle(self) -> None:
        self._settle_counts("tokens_max", optional=("keep_turns", "turns_max"))


def summed_up(
    view: View,
    items: Sequence[Item],
    chosen: Sequence[int],
    situation: Situation,
    why: str,
    *,
    before: Sequence[int] = (),
    tokens_max: int = SUMMARY_TOKENS_MAX,
) -> list[Step]:
    """The steps that put one summary in the place of the first run of the chosen items.

    Other runs go without a word. The summary is also of the items in the places `before`.
    """
    messages = tuple(items[place].message for place in sorted({*before, *chosen}))
    tokens = situation.tokens(sum(items[place].tokens for place in chosen))
    least = situation.tokens(view.count(summarized(""))) * 2
    longest = max(least, min(tokens_max, int(tokens * _SHARE)))
    steps: list[Step] = []
    for start, stop in runs(items, chosen):
        gone = items[start:stop]
        is_first = not steps
        step = Step(
            first=gone[0].first,
            last=max(item.last for item in gone),
            kind="summarize" if is_first else "drop",
            messages=messages if is_first else (),
            tokens_before=situation.tokens(sum(item.tokens for item in gone)),
            tokens_after=longest if is_first else 0,
            why=why,
        )
        steps.append(step)
    return steps
