"""Hybrid: the latest turns stay, those before them are summed up, and older ones are left out.

    ... ancient: left out ... | middle: summed up | recent: as they are

An ancient turn was in the middle once: what a summary kept of it is summed up again, with the
turns that are in the middle now, and is never just left out.
"""

from holdfast.frozen import Value
from holdfast.window.keep import is_summary, turns_shown
from holdfast.window.leave import left_out
from holdfast.window.outcome import measured
from holdfast.window.plan import Plan, nothing, planned
from holdfast.window.situation import Situation
from holdfast.window.summarize import SUMMARY_TOKENS_MAX, summed_up
from holdfast.window.triggers import due
from holdfast.window.truncate import old
from holdfast.window.view import View


class Hybrid(Value, frozen=True):
    """Keeps `recent` turns, and a summary of the `middle` ones before them.

    recent      so many, or as many as the budget keeps if that is more
    middle      so many turns before them are summed up; pinned ones stay as they are
    turns_max   when so many turns are shown, it is due however small they are
    tokens_max  the longest that a summary may be
    notify      the note in the place of ancient turns says who left them out, and why
    """

    recent: int = 5
    middle: int = 10
    turns_max: int | None = None
    tokens_max: int = SUMMARY_TOKENS_MAX
    notify: bool = False

    @property
    def name(self) -> str:
        return "hybrid"

    def plan(self, view: View, situation: Situation) -> Plan:
        items = view.items
        why = due(situation, turns_shown(items), self.turns_max)
        if why is None:
            return nothing(self.name, situation, f"not due: {situation.fill:.0%} is used")
        recent = max(1, self.recent, situation.budget.keep_turns)
        chosen = old(view, situation, recent)
        if not any(items[place].fold is None for place in chosen):
            return nothing(self.name, situation, f"{why}: everything is to be kept")
        start = view.turn - recent - self.middle  # the last turn that is ancient
        middle = [place for place in chosen if items[place].turn > start]
        told = [place for place in chosen if is_summary(items[place])]
        spared = () if middle else told  # no summary follows that they could be part of
        ancient = [p for p in chosen if items[p].turn <= start and p not in spared]
        by = self.name if self.notify else ""
        steps = left_out(view, items, ancient, situation, why, by)
        steps += summed_up(
            *(view, items, middle, situation, why), before=told, tokens_max=self.tokens_max
        )
        reason = f"{why}: {len(ancient)} messages leave, {len(middle)} are summed up"
        numbers = {"trigger": why, "items": len(chosen)}
        return measured(planned(self.name, situation, steps, reason, numbers), view, situation)

    def _settle(self) -> None:
        self._settle_counts("recent", "middle", "tokens_max", optional=("turns_max",))
        self._settle_flags("notify")
