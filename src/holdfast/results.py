"""The result of a turn: how it ended, what was said, what it took. Read from the log."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from holdfast.entries import Call
from holdfast.errors import LimitReached
from holdfast.events import Outcome
from holdfast.frozen import EMPTY, FrozenDict
from holdfast.messages import Message, Role, Stop, ToolCall
from holdfast.notes import CANCELLED, CANCELLED_EARLY, NO_TEXT, STOPPED
from holdfast.steps.limits import NOTHING_SPENT
from holdfast.steps.pieces import last_answer
from holdfast.steps.standing import standing
from holdfast.stores.values import Stored
from holdfast.usage import Usage


class ToolRun(NamedTuple):
    """A call of the model in a turn: in which round, and the message that answers it, if any."""

    call: ToolCall
    round: int
    message: Message | None = None

    @property
    def text(self) -> str | None:
        """What came back, in words."""
        return None if self.message is None else self.message.text

    @property
    def is_error(self) -> bool:
        """Whether it failed. One that was not answered did not."""
        return self.message is not None and self.message.is_error


class TurnResult(NamedTuple):
    """How a turn ended, and what it took. `str(result)` is the text.

    outcome   response, pending, cancelled, max_tokens, blocked, limit; a failure is raised instead
    message   the last thing that the model said, if it said anything; where it was cut off and
              has gone on, in one piece
    messages  all that the turn added to the conversation, what the user said first
    calls     the tools that the model asked for, with what they gave back
    pending   those of them that wait for an answer: `session.resume({call.id: True})`
    usage     the tokens of all calls, added up; `cost` is what they cost, as far as that is known
    rounds    how many answers the model gave
    window    what the last call was shown, and what not and why (see `Window.manifest`)
    data      the value that the answer has, where a schema was asked for
    limit     which limit stopped it, if one did: raise it, then resume
    """

    outcome: Outcome
    message: Message | None = None
    messages: tuple[Message, ...] = ()
    calls: tuple[ToolRun, ...] = ()
    pending: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    cost: Decimal | None = None
    rounds: int = 0
    window: FrozenDict = EMPTY
    data: Any = None
    limit: LimitReached | None = None

    @property
    def text(self) -> str | None:
        """What the model said last, in words; None when it said nothing."""
        return None if self.message is None else self.message.text

    def __str__(self) -> str:
        if self.text:
            return self.text
        if self.outcome is Outcome.CANCELLED:
            return CANCELLED if self.messages else CANCELLED_EARLY
        if self.outcome is Outcome.RESPONSE:
            return NO_TEXT
        return STOPPED.format(why=self.outcome)


def result_of(
    rows: Sequence[Stored],
    outcome: Outcome,
    *,
    data: Any = None,
    limit: LimitReached | None = None,
) -> TurnResult:
    """The result of the turn that has these rows."""
    messages = tuple(row.entry for row in rows if type(row.entry) is Message)
    receipts = [row.entry for row in rows if type(row.entry) is Call]
    spent = NOTHING_SPENT
    usage = Usage()
    for receipt in receipts:
        usage += receipt.usage
        spent = spent.plus(receipt.usage, receipt.cost)
    replies = [message for message in messages if message.role.canonical is Role.ASSISTANT]
    return TurnResult(
        outcome=outcome,
        message=last_answer(messages),
        messages=messages,
        calls=_runs(messages),
        pending=standing(rows).waiting if outcome is Outcome.PENDING else (),
        usage=usage,
        cost=spent.cost,
        rounds=len(replies),
        window=receipts[-1].window if receipts else EMPTY,
        data=data,
        limit=limit,
    )


def outcome_of(reply: Message | None) -> Outcome:
    """How a turn ended whose last answer is this."""
    stop = None if reply is None else reply.stop
    return _OUTCOMES.get(stop or "", Outcome.RESPONSE)


_OUTCOMES = {
    str(Stop.MAX_TOKENS): Outcome.MAX_TOKENS,
    str(Stop.SAFETY): Outcome.BLOCKED,
    str(Stop.CANCELLED): Outcome.CANCELLED,
}


def _runs(messages: Sequence[Message]) -> tuple[ToolRun, ...]:
    runs: list[ToolRun] = []
    places: dict[str, int] = {}
    rounds = 0
    for message in messages:
        if message.role.canonical is Role.ASSISTANT:
            rounds += 1
            for call in message.calls:
                places[call.id] = len(runs)
                runs.append(ToolRun(call, rounds))
            continue
        for result in message.results:
            place = places.get(result.call_id or "")
            if place is not None and runs[place].message is None:
                runs[place] = runs[place]._replace(message=message)
    return tuple(runs)
