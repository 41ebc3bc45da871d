"""Notes: what holdfast says in a conversation on its own behalf.

Such a message is `synthetic`: nobody said it, and it begins no turn.
"""

from holdfast.messages import Message

TIMED_OUT = "[This response was interrupted due to a timeout]"
COMPACTED = "[Compacted Summary]\n"
UNANSWERED = "No result: the call was cut off before it finished."
ORPHAN = "[Result of {name}, whose call is not shown]"
CONTINUE = "[continue]"
BLANK = "[nothing that can be shown]"
NOT_SHOWN = "[{kind} that this model is not shown]"


def timed_out() -> Message:
    """In the place of an answer that took too long."""
    return Message.assistant(TIMED_OUT, synthetic="timeout")


def compacted(summary: str) -> Message:
    """In the place of messages that are folded: the replacement of a Fold."""
    return Message.system(COMPACTED + summary, synthetic="summary")
