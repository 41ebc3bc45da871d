"""Truncate: the latest turns and the pinned ones stay, the rest is left out."""

from holdfast.frozen import Value
from holdfast.window.keep import is_note, kept, turns_shown
from holdfast.window.leave import left_out
from holdfast.window.outcome import measured
from holdfast.window.pairs import Pairs
from holdfast.window.plan import Plan, nothing, planned
from holdfast.window.situation import Situation
from holdfast.window.triggers import due
from holdfast.window.view import View


class Truncate(Value, frozen=True):
    """Keeps the latest turns, however long they are.

    keep_turns  so many; None is the budget's. The current one always stays
    turns_max   when so many turns are shown, it is due however small they are
    notify      the note in the place of the rest says who left it out, and why
    """

    keep_turns: int | None = None
    turns_max: int | None = None
    notify: bool = False

    @property
    def name(self) -> str:
        return "truncate"

    def plan(self, view: View, situation: Situation) -> Plan:
        items = view.items
        why = due(situation, turns_shown(items), self.turns_max)
        if why is None:
            return nothing(self.name, situation, f"not due: {situation.fill:.0%} is used")
        chosen = old(view, situation, self.keep_turns)
        if not chosen:
            return nothing(self.name, situation, f"{why}: everything is to be kept")
        by = self.name if self.notify else ""
        steps = left_out(view, items, chosen, situation, why, by)
        reason = f"{why}: {len(chosen)} messages before the turns to be kept leave"
        numbers = {"trigger": why, "items": len(chosen)}
        return measured(planned(self.name, situation, steps, reason, numbers), view, situation)

    def _settle(self) -> None:
        self._settle_counts(optional=("keep_turns", "turns_max"))
        self._settle_flags("notify")


def old(view: View, situation: Situation, keep_turns: int | None) -> list[int]:
    """The places of what is neither in the turns to be kept nor locked; notes alone are nothing."""
    items = view.items
    turns = situation.budget.keep_turns if keep_turns is None else keep_turns
    stays = kept(view, items, Pairs(view), situation.budget, max(1, turns))
    chosen = [place for place in range(len(items)) if not stays.has(place)]
    return chosen if any(not is_note(items[place]) for place in chosen) else []
