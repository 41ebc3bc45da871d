"""Notes: what holdfast says in a conversation on its own behalf.

Such a message is `synthetic`: nobody said it, and it begins no turn.
"""

from holdfast.messages import Message, Result, Role

TIMED_OUT = "[This response was interrupted due to a timeout]"
COMPACTED = "[Compacted Summary]\n"
UNANSWERED = "No result: the call was cut off before it finished."
ORPHAN = "[Result of {name}, whose call is not shown]"
CONTINUE = "[continue]"
BLANK = "[nothing that can be shown]"
FOLDED_RESULT = "[The result of this call is no longer shown.]"
FOLDED = "[{count} not shown here.]"
NOTIFIED = "[System: {count} no longer shown, to make room for what follows (by {by}).]"
SUMMARY = "[Context Summary - Previous conversation compressed]\n{summary}\n[End Context Summary]"
CUT = " [...]"
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
