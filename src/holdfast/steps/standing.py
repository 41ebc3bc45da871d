"""Where a turn stands, seen from the log alone.

The state of a turn is its messages: whoever has read them knows what comes next, in whichever
process, however the turn was cut off.
"""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.entries import Mark
from holdfast.messages import Message, Role, ToolCall
from holdfast.stores.values import Stored

STARTED, INTERRUPTED = "started", "interrupted"
PAUSED = "pause_turn"  # Anthropic: a tool of its own is at work; asked again, the model goes on


class Standing(NamedTuple):
    """What comes next in a turn.

    reply    the latest answer of the model, if there is one
    waiting  those of its calls that have no result: they are next
    started  the ids of those of them that were started before
    is_over  nothing comes next
    Otherwise the model is asked.
    """

    reply: Message | None = None
    waiting: tuple[ToolCall, ...] = ()
    started: frozenset[str] = frozenset()
    is_over: bool = False


def is_unfinished(reply: Message) -> bool:
    """Whether there is more to an answer than has been said: the model is asked to go on."""
    return reply.stop in (INTERRUPTED, PAUSED)


def standing(rows: Sequence[Stored]) -> Standing:
    """Where the turn stands that has these rows."""
    reply: Message | None = None
    waiting: dict[str, ToolCall] = {}
    started: set[str] = set()
    is_over = False
    for row in rows:
        entry = row.entry
        if type(entry) is Mark:
            if (
                entry.what == STARTED
                and reply is not None
                and entry.data.get("message") == reply.id
            ):
                started.add(entry.about or "")
        elif type(entry) is Message:
            if entry.role.canonical is Role.ASSISTANT:
                reply = entry
                waiting = {call.id: call for call in entry.calls}
                started = set()
                is_over = not waiting and not is_unfinished(entry)
            else:
                for result in entry.results:
                    waiting.pop(result.call_id or "", None)
                is_over = False
    if waiting:
        return Standing(reply, tuple(waiting.values()), frozenset(started & waiting.keys()))
    return Standing(reply, is_over=is_over)
