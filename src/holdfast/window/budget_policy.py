"""BudgetPolicy: single messages leave, by how much they are worth, until enough is free.

| class       | what it is                                             | when it leaves            |
|-------------|--------------------------------------------------------|---------------------------|
| LOCKED      | what `keep.py` locks: the first request among it       | never                     |
| CONDITIONAL | what was put in beside the conversation: notices,      | first, all of it at once  |
|             | nudges                                                 |                           |
| EPHEMERAL   | everything else                                        | oldest turn first, within |
|             |                                                        | a turn the largest first  |
| PARTIAL     | nothing, unless `classify` says so                     | then, by whole turns,     |
|             |                                                        | oldest first              |
| PRESERVABLE | the last words of a turn with two calls or more, which | last, oldest first, and   |
|             | sum it up; summaries                                   | under pressure only       |

The turns that the budget keeps stay whole, whatever class their messages have. A call and its
results leave together, as the one of them that is worth most.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from holdfast.errors import InvalidInput
from holdfast.frozen import Value
from holdfast.messages import Message, Role
from holdfast.notes import CALLS
from holdfast.window.keep import is_note, is_summary, kept, turns_shown
from holdfast.window.leave import left_out, with_notes
from holdfast.window.outcome import measured, taken
from holdfast.window.pairs import Pairs
from holdfast.window.plan import Plan, Step, nothing, planned
from holdfast.window.situation import Situation
from holdfast.window.triggers import due, goal, is_pressed
from holdfast.window.view import Group, Item, View

LOCKED = "locked"
PRESERVABLE = "preservable"
PARTIAL = "partial"
EPHEMERAL = "ephemeral"
CONDITIONAL = "conditional"
# In the order in which they leave.
CLASSES = (CONDITIONAL, EPHEMERAL, PARTIAL, PRESERVABLE, LOCKED)
_WORTH = {name: worth for worth, name in enumerate(CLASSES)}

Classify = Callable[[Message], str | None]


class BudgetPolicy(Value, frozen=True, kw_only=True):
    """Frees what is over the budget's target, the least valuable first.

    classify  the class of a message, or None for the one it has by itself; what is locked stays so
    notify    a note in the place of the first that left says who left it out, and why
    """

    classify: Classify | None = None
    notify: bool = False

    @property
    def name(self) -> str:
        return "budget"

    def plan(self, view: View, situation: Situation) -> Plan:
        items = view.items
        why = due(situation, turns_shown(items))
        if why is None:
            return nothing(self.name, situation, f"not due: {situation.fill:.0%} is used")
        start = nothing(self.name, situation, f"{why}: nothing may leave, or has to")
        waiting = self._candidates(view, items, situation)

        def of(chosen: set[int]) -> Plan:
            return self._planned(view, items, chosen, situation, why)

        return taken(items, waiting, situation, goal(situation), start, of)

    def _planned(
        self, view: View, items: Sequence[Item], chosen: set[int], situation: Situation, why: str
    ) -> Plan:
        if self.notify:
            places = with_notes(items, chosen)
            steps = left_out(view, items, places, situation, why, self.name)
        else:  # without a note: what leaves is seldom a whole turn
            places = with_notes(items, chosen, view.turn)
            steps = left_out(view, items, places, situation, why)
            steps = [_without_note(step) for step in steps]
        reason = f"{why}: {len(chosen)} messages leave, the least valuable first"
        numbers = {"trigger": why, "goal": goal(situation), "items": len(chosen)}
        return measured(planned(self.name, situation, steps, reason, numbers), view, situation)

    def _candidates(
        self, view: View, items: Sequence[Item], situation: Situation
    ) -> Iterator[set[int]]:
        """What may leave, in the order in which it does; a pair leaves together."""
        pairs = Pairs(view)
        stays = kept(view, items, pairs, situation.budget)
        free = [p for p in range(len(items)) if not stays.has(p) and not is_note(items[p])]
        groups = {min(group): group for group in (pairs.with_all((p,)) for p in free)}
        own = classes(view, items)
        by_class: dict[str, list[set[int]]] = {name: [] for name in CLASSES}
        for first in sorted(groups):
            named = [self._class(items[p].message, own[p]) for p in groups[first]]
            by_class[max(named, key=_WORTH.__getitem__)].append(groups[first])
        yield set().union(*by_class[CONDITIONAL])
        yield from sorted(by_class[EPHEMERAL], key=lambda group: _by_age_and_size(items, group))
        yield from _by_turns(items, by_class[PARTIAL])
        if is_pressed(situation):
            yield from by_class[PRESERVABLE]

    def _class(self, message: Message, own: str) -> str:
        given = self.classify(message) if self.classify is not None else None
        if given is None:
            return own
        if given not in _WORTH:
            raise InvalidInput("classify", f"gives one of {', '.join(CLASSES)}, not {given!r}")
        return given

    def _settle(self) -> None:
        self._settle_flags("notify")
        if self.classify is not None and not callable(self.classify):
            raise InvalidInput("classify", "is a function from a message to a class, or None")


def _without_note(step: Step) -> Step:
    """But for one that tells of the calls of the current turn."""
    is_told = step.replacement is not None and CALLS in step.replacement.extra
    return step if is_told else step.replace(replacement=None, tokens_after=0)


def classes(view: View, items: Sequence[Item]) -> list[str]:
    """The class that each item has by itself; what is kept is not looked at."""
    found = [_class(item) for item in items]
    for group in view.groups():
        if (place := _turn_summary(items, group)) is not None:
            found[place] = PRESERVABLE
    return found


def _class(item: Item) -> str:
    if is_summary(item):
        return PRESERVABLE
    is_beside = item.message.synthetic is not None and item.fold is None
    return CONDITIONAL if is_beside and not item.message.results else EPHEMERAL


def _turn_summary(items: Sequence[Item], group: Group) -> int | None:
    """The place of a turn's last words, if it ends with words and had results to sum up."""
    turn = range(group.start, group.stop)
    results = sum(len(items[place].message.results) for place in turn)
    answers = [p for p in turn if items[p].message.role.canonical is Role.ASSISTANT]
    if results < 2 or not answers:
        return None
    last = items[answers[-1]].message
    return answers[-1] if last.text and not last.tool_calls else None


def _by_age_and_size(items: Sequence[Item], group: Iterable[int]) -> tuple[int, int]:
    return items[min(group)].turn, -sum(items[place].tokens for place in group)


def _by_turns(items: Sequence[Item], groups: Iterable[set[int]]) -> Iterator[set[int]]:
    found: dict[int, set[int]] = {}
    for group in groups:
        found.setdefault(items[min(group)].turn, set()).update(group)
    yield from (found[turn] for turn in sorted(found))
