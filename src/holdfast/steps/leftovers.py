"""What a turn that was cut off leaves behind, and what is appended so that nothing of it is lost.

cut off in its first call      the input, the words that had come, a mark `interrupted`
cut off in a later one         the words that had come, a mark `interrupted`
failed, and not tried again    a mark `abandoned`, with the input
a tool that was started        a result that says that its outcome is unknown
a call that waits for approval a result that says that it was declined, when somebody says
                               something else instead of answering
"""

from collections.abc import Sequence

from holdfast import codec
from holdfast.entries import Entry, Mark
from holdfast.frozen import FrozenDict
from holdfast.messages import Message, Role, ToolCall
from holdfast.notes import DECLINED, UNKNOWN_OUTCOME, cancel_note
from holdfast.parts import Part, Text, Thinking
from holdfast.steps import drafts
from holdfast.steps.drafts import FAILED, Draft
from holdfast.steps.standing import INTERRUPTED, Standing
from holdfast.stores.values import Stored

ABANDONED, CANCELLED, UNKNOWN = "abandoned", "cancelled", "unknown"


def left_over(draft: Draft, rows: Sequence[Stored], *, is_abandoned: bool) -> list[Entry]:
    """What has to be appended to the branch of `draft`, which has these rows at its end.

    A failed turn that is not abandoned is tried again, and leaves nothing.
    """
    if draft.ended == FAILED:
        return _abandoned(draft, rows) if is_abandoned else []
    if draft.ended:
        return []
    entries: list[Entry] = []
    place = _place(rows, draft.message.id)
    if place is None and not _is_sent(draft, rows):
        entries.append(draft.message)
    if (draft.partial or draft.thinking) and not _is_answered(draft, rows, place):
        entries.append(partial(draft.partial, draft.thinking))
    if entries:
        entries.append(Mark(what=INTERRUPTED, about=draft.message.id))
    return entries


def partial(words: str, thinking: str = "", stop: str = INTERRUPTED) -> Message:
    """What there was of an answer."""
    if not thinking:
        return Message.assistant(words or None, stop=stop)
    parts: list[Part] = [Thinking(thinking)]
    if words:
        parts.append(Text(words))
    return Message.assistant(parts, stop=stop)


def closed(standing: Standing) -> list[Entry]:
    """Results for calls that nobody will answer any more."""
    entries: list[Entry] = []
    for call in standing.waiting:
        if call.id in standing.started:
            entries += unknown(call)
        else:
            entries.append(declined(call))
    return entries


def cancelled(
    standing: Standing, about: str, why: str, words: Sequence[Message], *, is_noted: bool
) -> list[Entry]:
    """Behind the words of a turn that somebody has cancelled, with a note for the model or not."""
    entries = closed(standing)
    entries.append(Mark(what=CANCELLED, about=about, data=FrozenDict({"reason": why})))
    if is_noted:
        entries.append(cancel_note(words[0].text if words else None))
    return entries


def unknown(call: ToolCall) -> list[Entry]:
    """It was started, and how it ended is not known."""
    return [result(call, UNKNOWN_OUTCOME), Mark(what=UNKNOWN, about=call.id)]


def declined(call: ToolCall) -> Message:
    """Somebody did not agree."""
    return result(call, DECLINED)


def result(call: ToolCall, text: str, *, is_error: bool = True) -> Message:
    """What a model is told in the place of a tool's result."""
    return Message.tool(text, call.id, name=call.name, is_error=is_error)


def _abandoned(draft: Draft, rows: Sequence[Stored]) -> list[Entry]:
    for row in rows:
        mark = row.entry
        if type(mark) is Mark and (mark.what, mark.about) == (ABANDONED, draft.message.id):
            return []
    said = {} if _place(rows, draft.message.id) is not None else {"message": _written(draft)}
    return [Mark(what=ABANDONED, about=draft.message.id, data=FrozenDict(said))]


def abandoned(mark: Mark) -> Message | None:
    """What was said and never answered, if this mark keeps it."""
    return drafts.message_in(mark.data.get("message"))


def _written(draft: Draft) -> str:
    return codec.record(draft.message).decode()


def _is_answered(draft: Draft, rows: Sequence[Stored], place: int | None) -> bool:
    """Whether the answer that was journaled was stored before the turn was cut off."""
    return place is not None and has_answer(rows[place + 1 :], draft.at or 0)


def unstored(draft: Draft, rows: Sequence[Stored]) -> Draft:
    """The draft without an answer that is stored by now: its turn has these rows."""
    if _is_answered(draft, rows, _place(rows, draft.message.id)):
        return draft._replace(partial="", thinking="")
    return draft


def has_answer(rows: Sequence[Stored], at: int) -> bool:
    """Whether a model has said something behind the entry `at`; others may have beside a turn."""
    said = (row.entry for row in rows if row.seq > at and type(row.entry) is Message)
    return any(message.role.canonical is Role.ASSISTANT for message in said)


def _is_sent(draft: Draft, rows: Sequence[Stored]) -> bool:
    """Whether the same was sent before: cut off, the second had not yet looked."""
    said = (row.entry for row in rows if type(row.entry) is Message)
    return draft.once is not None and any(each.extra.get("once") == draft.once for each in said)


def _place(rows: Sequence[Stored], id: str) -> int | None:
    for place in range(len(rows) - 1, -1, -1):
        entry = rows[place].entry
        if type(entry) is Message and entry.id == id:
            return place
    return None
