"""Calls that wait for somebody to agree: each is asked for, and y or n is the answer."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from holdfast.cli.chat.display import call_in_words
from holdfast.cli.chat.interrupts import raising

if TYPE_CHECKING:
    from holdfast.messages import ToolCall

_ANSWERS = {"y": True, "yes": True, "n": False, "no": False}


def answers(
    calls: "Sequence[ToolCall]", ask: Callable[[str], str] = input
) -> "dict[str, bool] | None":
    """What may run, by the id of the call; None if nobody wanted to say."""
    given: dict[str, bool] = {}
    for call in calls:
        answer = _answer(call_in_words(call), ask)
        if answer is None:
            return None
        given[call.id] = answer
    return given


def _answer(what: str, ask: Callable[[str], str]) -> bool | None:
    while True:
        try:
            with raising():
                said = ask(f"run {what}? [y/n] ").strip().lower()
        except (EOFError, KeyboardInterrupt):
            print()
            return None
        if said in _ANSWERS:
            return _ANSWERS[said]
