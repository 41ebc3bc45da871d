"""How a turn ended, in words and as an exit status; and what follows where it is not over."""

from typing import TYPE_CHECKING

from holdfast.cli.chat.approvals import answers
from holdfast.cli.chat.talk import Talk
from holdfast.cli.failures import FAILED, INTERRUPTED, REFUSED

if TYPE_CHECKING:
    from holdfast.results import TurnResult

_STATUSES = {"cancelled": INTERRUPTED, "blocked": REFUSED, "limit": FAILED, "pending": FAILED}


def status(result: "TurnResult") -> int:
    """For a program: 0 when there is an answer."""
    return _STATUSES.get(result.outcome, 0)


def told(result: "TurnResult", way_on: str = "/resume goes on") -> str:
    """What somebody has to know who has read the answer; "" when that is all."""
    match str(result.outcome):
        case "cancelled":
            kept = "what was said is kept" if result.messages else "nothing was said"
            return f"[stopped; {kept}]"
        case "max_tokens":
            return "[the answer was cut: it was as long as it may be]"
        case "blocked":
            return "[the service's filter stopped the answer]"
        case "limit":
            return f"[stopped: {result.limit or 'a limit is reached'}; {way_on}]"
        case "pending":
            names = ", ".join(call.name for call in result.pending)
            return f"[it waits until somebody agrees to {names}; {way_on}]"
    return "" if result.text else "[the model gave no answer in words]"


async def settle(talk: Talk, result: "TurnResult") -> "TurnResult":
    """Ask what has to be asked, until the turn is over or nobody answers."""
    while result.pending:
        agreed = answers(result.pending)
        if agreed is None:
            break
        result = await talk.resume(agreed)
    return result


async def go_on(talk: Talk) -> "TurnResult":
    """Go on with the turn that was cut off, failed, or waits."""
    agreed = answers(talk.pending) if talk.pending else None
    return await settle(talk, await talk.resume(agreed))
