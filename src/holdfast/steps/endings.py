"""What is left of a turn's draft when the turn lets go of its session."""

from typing import NamedTuple

from holdfast.errors import Conflict, InvalidInput, OnceMismatch, ToolUnavailable
from holdfast.events import Outcome
from holdfast.steps import drafts
from holdfast.steps.drafts import Draft
from holdfast.steps.orders import Order

_REFUSED = (InvalidInput, OnceMismatch, Conflict)  # of what cannot be sent so, ever
_WAITING = {Outcome.PENDING: drafts.PENDING, Outcome.LIMIT: drafts.LIMIT}


class Ending(NamedTuple):
    """The draft stays, and says why the turn ended; or it is dropped."""

    why: str = ""
    is_dropped: bool = False


def ending_of(outcome: Outcome) -> Ending:
    """Of a turn that ended: one that waits for something can be gone on with."""
    why = _WAITING.get(outcome, "")
    return Ending(why, is_dropped=not why)


def failed(
    error: BaseException, order: Order, left: Draft | None, branch: str, *, has_started: bool
) -> Ending:
    """Of a turn that failed: there, unless nothing was begun. `left` is what was there before."""
    why = drafts.PENDING if isinstance(error, ToolUnavailable) else drafts.FAILED
    if has_started:
        return Ending(why)
    if order.message is None or (left is not None and left.is_sent_as(order.once, branch)):
        # It could not even start: what was left of it before is as it was.
        return Ending(is_dropped=True) if left is None else Ending(left.ended)
    return Ending(why, is_dropped=isinstance(error, _REFUSED))
