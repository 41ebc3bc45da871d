"""Notes: what holdfast says in a conversation on its own behalf.

Such a message is `synthetic`: nobody said it, and it begins no turn.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any
from zlib import crc32

from holdfast.errors import InvalidInput
from holdfast.frozen import FrozenDict
from holdfast.messages import Message, Result, Role

TIMED_OUT = "[This response was interrupted due to a timeout]"
COMPACTED = "[Compacted Summary]\n"
UNANSWERED = "No result: the call was cut off before it finished."
ORPHAN = "[Result of {name}, whose call is not shown]"
CONTINUE = "[continue]"
BLANK = "[nothing that can be shown]"
FOLDED_RESULT = "[The result of this call is no longer shown.]"
FOLDED = "[{count} not shown here.]"
CALLS_FOLDED = "[{count} of this turn and what came of {them} not shown here any more{calls}]"
NOTIFIED = "[System: {count} no longer shown, to make room for what follows (by {by}).]"
SUMMARY = "[Context Summary - Previous conversation compressed]\n{summary}\n[End Context Summary]"
CUT = " [...]"
CANCELLED = "[Generation cancelled]"
CANCELLED_EARLY = "[Cancelled before start]"
STOPPED = "[Model stopped: {why}]"
NO_TEXT = "[The model gave no answer in words.]"
CANCEL_NOTE = '[System: Your previous response was cancelled by the user after: "{said}"]'
CANCEL_NOTE_EARLY = (
    "[System: Your previous response was cancelled by the user before any output was generated.]"
)
UNKNOWN_OUTCOME = (
    "error: the call was cut off before its result was kept. Whether it took effect is not known; "
    "it was not run again. Check before you repeat it."
)
DECLINED = "error: the call was not run: it was declined."
NUDGE = "[Your last answer was empty. Go on: call a tool, or answer in words.]"
REPAIR = "[Your last answer does not follow the schema: {why}. Answer again, with JSON alone.]"
SUMMARY_TASK = (
    "Sum up the conversation below for yourself: you will go on with it, and see this summary in "
    "the place of what it sums up. Keep facts, names, numbers, decisions, file names, results of "
    "tools, and what is still to be done. Use at most {words} words, and no preface."
)
OBSERVATION_TASK = (
    "Note down what was said in the conversation below, for yourself: you will go on with it, and "
    "see these notes in the place of what was said. It was said from {first} to {last}. Write a "
    "list with a line for each note, and begin each with its date. Keep facts, names, numbers, "
    "decisions, file names, results of tools, and what is still to be done. Use at most {words} "
    "words, and no preface."
)
REFLECTION_TASK = (
    "Below are notes on a conversation that you go on with, older ones first. Write a shorter list "
    "that takes their place: put together what belongs together, leave out what later notes have "
    "made untrue, and keep dates, facts, names, numbers, decisions, and what is still to be done. "
    "Use at most {words} words, and no preface."
)
NOT_SHOWN = "[{kind} that this model is not shown]"
NOTICE = (
    "[NOTICE: This tool result was automatically truncated because it caused the prompt to exceed "
    "the model's context window. Only the first {shown} of {all} are shown above ({tokens} "
    "estimated tokens removed). If you need more content, re-invoke the tool with offset/limit "
    "parameters to read in smaller chunks.]"
)
TRUNCATED = (
    "[TRUNCATED: {what} too large for context window]\n"
    "Original length: {all}\n"
    "To read more, ask for a smaller part of it."
)
CHILD_SILENT = (
    "[Isolated sub-agent {agent} ended without a visible assistant result: empty_after_tool_use.]"
)
CHILD_DISCARDED = "[Isolated sub-agent {agent} discarded: {reason}. Raw child history discarded.]"
SUBAGENT = "[SUBAGENT agent_id={number} event={event}]"


CALLS = "calls"  # in the extra of a note: the calls that it tells of


class SubagentEvent(StrEnum):
    """What a session is told of its children. Progress is not among it."""

    COMPLETED = "COMPLETED"
    IDLE = "IDLE"
    ERROR = "ERROR"
    CANCELLED = "CANCELLED"
    CLARIFICATION_REQUESTED = "CLARIFICATION_REQUESTED"
    PERMISSION_REQUESTED = "PERMISSION_REQUESTED"


def timed_out() -> Message:
    """In the place of an answer that took too long."""
    return Message.assistant(TIMED_OUT, synthetic="timeout")


def compacted(summary: str) -> Message:
    """In the place of messages that are folded: the replacement of a Fold."""
    return Message.system(COMPACTED + summary, synthetic="summary")


def folded(turns: int, before: Message) -> Message:
    """In the place of turns that are folded without a summary: the last said before `before`."""
    count = "1 earlier turn" if turns == 1 else f"{turns} earlier turns"
    return Message(
        Role.USER,
        FOLDED.format(count=count),
        id=f"{before.id}:folded:{turns}",  # other words, another id: counts are kept by it
        timestamp=before.timestamp,
        synthetic="folded",
    )


def calls_folded(counts: Mapping[str, int], latest: Sequence[str], before: Message) -> Message:
    """In the place of calls that are folded within their turn, the last of them `before`.

    `counts` is how many of each tool, and `latest` are those that are told one by one.
    """
    count = sum(counts.values())
    told = ", ".join(f"{name} {times}" for name, times in counts.items() if name)
    if latest:
        listed = "; ".join(latest)
        told = listed if len(latest) == count else f"{told}; the latest: {listed}"
    text = CALLS_FOLDED.format(
        count="1 earlier call" if count == 1 else f"{count} earlier calls",
        them="it are" if count == 1 else "them are",
        calls=f": {told}" if told else "",
    )
    return Message(
        Role.USER,
        text,
        id=f"{before.id}:folded:{crc32(text.encode()):08x}",
        timestamp=before.timestamp,
        synthetic="folded",
        extra=FrozenDict({CALLS: {"counts": dict(counts), "latest": list(latest)}}),
    )


def told_calls(note: Message) -> tuple[dict[str, int], list[str]]:
    """What such a note tells, so that a later one can tell it too; nothing if it is another."""
    told: Any = note.extra.get(CALLS)
    try:
        counts = {str(name): int(times) for name, times in told["counts"].items()}
        return counts, list(map(str, told["latest"]))
    except (TypeError, KeyError, ValueError, AttributeError):  # it may have come from anywhere
        return {}, []


def notified(turns: int, by: str, before: Message) -> Message:
    """The same for a model that is to know who did it, and why."""
    count = "1 earlier turn is" if turns == 1 else f"{turns} earlier turns are"
    return Message(
        Role.USER,
        NOTIFIED.format(count=count, by=by),
        id=f"{before.id}:notified:{turns}:{by}",
        timestamp=before.timestamp,
        synthetic="folded",
    )


def folded_result(message: Message, result: Result, index: int) -> Message:
    """In the place of a result that is folded while its call is shown."""
    return Message(
        Role.TOOL,
        FOLDED_RESULT,
        tool_call_id=result.call_id,
        name=result.name,
        is_error=result.is_error,
        id=f"{message.id}:{index}:folded",
        timestamp=message.timestamp,
        synthetic="folded",
    )


def summarized(summary: str) -> Message:
    """In the place of messages that were summed up."""
    return Message.user(SUMMARY.format(summary=summary), synthetic="summary")


def nudge(words: str = NUDGE) -> Message:
    """So that a model that stopped without an answer goes on."""
    return Message.user(words, synthetic="nudge")


def cancel_note(said: str | None) -> Message:
    """So that a model knows that its last answer was cut off, and where."""
    words = CANCEL_NOTE_EARLY
    if said:
        words = CANCEL_NOTE.format(said=said if len(said) <= 100 else f"{said[:100]}…")
    return Message.user(words, synthetic="cancelled")


def child_silent(agent: str) -> Message:
    """In the place of what a child came to, when it said nothing in the end."""
    return Message.assistant(CHILD_SILENT.format(agent=agent), author=agent, synthetic="child")


def child_discarded(agent: str, reason: str) -> Message:
    """That there was a child, and why nothing of it is kept."""
    said = CHILD_DISCARDED.format(agent=agent, reason=reason)
    return Message.assistant(said, author=agent, synthetic="child")


def subagent(agent: str, number: int, event: str, text: str = "") -> Message:
    """Something happened in a child that its parent has to know; InvalidInput for anything else."""
    if event not in list(SubagentEvent):
        known = ", ".join(SubagentEvent)
        raise InvalidInput(f"event {event!r}", f"is not told to a parent: use one of {known}")
    head = SUBAGENT.format(number=number, event=str(event))
    return Message.user(f"{head}\n{text}" if text else head, author=agent, synthetic="child")
