"""What stays, whatever a policy would like to leave out.

| stays               | because                                                              |
|---------------------|----------------------------------------------------------------------|
| system messages     | they say what the model is there for                                 |
| the first request   | it says what all the rest is about                                   |
| the last request    | it is what has to be answered                                        |
| the last answer     | it explains the results that follow it                               |
| pinned turns        | the caller said so                                                   |
| the latest turns    | `keep_turns` of them; whoever has no choice may take these last      |

With a call stay its results, and with a result its call.
"""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.messages import Role
from holdfast.window.budget import Budget
from holdfast.window.pairs import Pairs
from holdfast.window.view import Item, View


class Kept(NamedTuple):
    """Places of items: those that always stay, and those of the latest turns."""

    locked: frozenset[int]
    recent: frozenset[int]

    def has(self, place: int) -> bool:
        """Whether it stays as long as there is a choice."""
        return place in self.locked or place in self.recent


def kept(
    view: View, items: Sequence[Item], pairs: Pairs, budget: Budget, keep_turns: int | None = None
) -> Kept:
    """What stays of `items`; `keep_turns` is the budget's unless it is given."""
    turns = budget.keep_turns if keep_turns is None else keep_turns
    latest = view.turn - turns
    start = len(items)
    while start and items[start - 1].turn > latest:
        start -= 1
    locked = pairs.with_all(_locked(items, frozenset(budget.pinned)))
    return Kept(frozenset(locked), frozenset(pairs.with_all(range(start, len(items)))))


def is_request(item: Item) -> bool:
    """Whether it is what a user asked, perhaps shortened."""
    message = item.message
    if message.role is not Role.USER:
        return False
    return message.starts_turn or (message.synthetic == "shortened" and not message.results)


def is_note(item: Item) -> bool:
    """Whether it only says that something is not shown."""
    return item.fold is not None and item.message.synthetic == "folded"


def is_summary(item: Item) -> bool:
    """Whether it sums up what is not shown."""
    message = item.message
    if message.synthetic != "summary":
        return False
    return not message.tool_calls and not message.results


def turns_shown(items: Sequence[Item]) -> int:
    """How many turns a model is shown the beginning of."""
    return sum(map(is_request, items))


def _locked(items: Sequence[Item], pinned: frozenset[int]) -> set[int]:
    # A summary may be written as the system's; that is not what the model was told.
    found = {
        place
        for place, item in enumerate(items)
        if (item.message.role is Role.SYSTEM and item.fold is None) or item.turn in pinned
    }
    first = next((place for place, item in enumerate(items) if is_request(item)), None)
    if first is not None and items[first].turn == 1:
        found.add(first)
    backwards = range(len(items) - 1, -1, -1)
    last_request = next((place for place in backwards if is_request(items[place])), None)
    last_answer = next((place for place in backwards if _is_answer(items[place])), None)
    return found | {place for place in (last_request, last_answer) if place is not None}


def _is_answer(item: Item) -> bool:
    return item.message.role.canonical is Role.ASSISTANT
