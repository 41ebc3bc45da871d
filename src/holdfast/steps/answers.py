"""What a model said in answer to a request, and the receipts for it."""

from decimal import Decimal
from typing import Any, NamedTuple, TypeGuard, TypeVar

from holdfast.entries import Call
from holdfast.errors import ProtocolError
from holdfast.frozen import EMPTY, FrozenDict
from holdfast.messages import Message, Role
from holdfast.providers.base import Response
from holdfast.steps.limits import Spent
from holdfast.steps.targets import Target
from holdfast.usage import Usage

_Piece = TypeVar("_Piece")


class Exchange(NamedTuple):
    """One call of a model, and what came of it."""

    response: Response
    latency_ms: int


class Answered(NamedTuple):
    """What a model said, in one message, and the calls that it took.

    `cancelled` is why the answer was cut off by somebody; None when it was not. Then there may be
    no message. `shown` and `digest` are of the window that the model was given. `cut` is the call
    that was cut off, if it is known what it took.
    """

    message: Message | None
    exchanges: tuple[Exchange, ...] = ()
    cancelled: str | None = None
    shown: FrozenDict = EMPTY
    digest: str | None = None
    cut: Exchange | None = None

    @property
    def text(self) -> str | None:
        """The words of it."""
        return None if self.message is None else self.message.text

    @property
    def reported(self) -> Usage:
        """What the first call was given, and all that was written."""
        written = sum((each.response.usage for each in self.exchanges), Usage())
        return self.exchanges[0].response.usage.replace(
            output=written.output, reasoning=written.reasoning
        )


def is_answer(response: object) -> TypeGuard[Response]:
    """Whether it is what a provider promises to give."""
    return _wrong_with(response) is None


def checked_answer(response: object, model: str) -> Response:
    """The answer of a provider, or a ProtocolError that says what is wrong with it."""
    if is_answer(response):
        return response
    raise ProtocolError(f"the provider gave {_wrong_with(response)}", model)


def piece(given: object, kind: type[_Piece], model: str) -> _Piece:
    """What a provider tells while it works, or a ProtocolError that says what it gave instead."""
    if isinstance(given, kind):
        return given
    raise ProtocolError(
        f"the provider gave {type(given).__name__} to a callback, not {kind.__name__}", model
    )


def _wrong_with(response: object) -> str | None:
    if not isinstance(response, Response):
        return f"{type(response).__name__} back, not a Response"
    message: object = response.message
    usage: object = response.usage
    if not isinstance(message, Message):
        return f"a response with {type(message).__name__} for a message"
    if message.role.canonical is not Role.ASSISTANT:
        return f"a message of the {message.role} for an answer"
    if not isinstance(usage, Usage):
        return f"a response with {type(usage).__name__} for its usage"
    ids = [call.id for call in message.calls]
    if not all(ids) or len(set(ids)) < len(ids):
        return "calls that cannot be told apart by their ids"
    return None


def receipts(answered: Answered, target: Target, spent: Spent) -> list[Call]:
    """A receipt for each call, with what the session has spent by then."""
    made = []
    about = None if answered.message is None else answered.message.id
    cut = () if answered.cut is None else (answered.cut,)
    for response, latency_ms in (*answered.exchanges, *cut):
        cost = cost_of(response.usage, target)
        spent = spent.plus(response.usage, cost)
        extra: dict[str, Any] = {"spent": spent.values}
        if response.id is not None:
            extra["response"] = response.id
        made.append(
            Call(
                model=target.name,
                about=about,
                usage=response.usage,
                stop=response.stop,
                latency_ms=latency_ms,
                cost=cost,
                window=answered.shown,
                digest=answered.digest,
                request_id=response.request_id,
                extra=FrozenDict(extra),
            )
        )
    return made


def cost_of(usage: Usage, target: Target) -> Decimal | None:
    """What a call cost, as far as its price is known."""
    prices = target.prices
    return None if prices is None else usage.cost(prices)
