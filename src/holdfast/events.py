"""Events: what a running turn tells those who watch it. Values, like everything said.

They come in this order: TurnStarted; then, for each model call, ThinkingDelta before TextDelta
before ToolCallStarted and ToolCallReady, with UsageUpdate and Retrying where they happen; a
ToolResult for each tool that ended; Folded when the window was folded; TurnFinished last.

A memory works behind the turns, so those who watch a turn do not hear of it: it has an observer of
its own, who hears ConsolidationStarted, then Consolidated or ConsolidationFailed.
"""

from decimal import Decimal
from enum import StrEnum

from holdfast.entries import Fold
from holdfast.errors import InvalidInput
from holdfast.frozen import Value
from holdfast.messages import Message, ToolCall
from holdfast.usage import Usage, amount


class Event(Value, frozen=True, tag_field="event", kw_only=True):
    """The base of the events: `event` tells them apart in JSON."""

    def _settle_is(self, name: str, kind: type) -> None:
        if not isinstance(getattr(self, name), kind):
            raise InvalidInput(name, f"is a {kind.__name__}")


class TurnStarted(Event, frozen=True, tag="turn_started", kw_only=True):
    """A turn begins on the session `session_id`, for the message said."""

    session_id: str
    message: Message

    def _settle(self) -> None:
        self._settle_texts("session_id")
        self._settle_is("message", Message)


class TextDelta(Event, frozen=True, tag="text_delta"):
    """More words of the answer."""

    text: str

    def _settle(self) -> None:
        self._settle_texts("text")


class ThinkingDelta(Event, frozen=True, tag="thinking_delta"):
    """More of what the model thinks."""

    text: str

    def _settle(self) -> None:
        self._settle_texts("text")


class ToolCallStarted(Event, frozen=True, tag="tool_call_started", kw_only=True):
    """The model begins to write a call; its arguments are still to come."""

    id: str
    name: str

    def _settle(self) -> None:
        self._settle_texts("id", "name")


class ToolCallReady(Event, frozen=True, tag="tool_call_ready"):
    """A call is complete."""

    call: ToolCall

    def _settle(self) -> None:
        self._settle_is("call", ToolCall)


class ToolResult(Event, frozen=True, tag="tool_result"):
    """A tool has ended; the message holds what it gave back."""

    message: Message

    def _settle(self) -> None:
        self._settle_is("message", Message)


class UsageUpdate(Event, frozen=True, tag="usage_update"):
    """The tokens of the running call, so far.

    `is_full` once in a turn: with the first that says that so much of the window is used as the
    budget allows, so that it will be folded behind the turn if the policy says so.
    """

    usage: Usage
    is_full: bool = False

    def _settle(self) -> None:
        self._settle_is("usage", Usage)
        self._settle_flags("is_full")


class Folded(Event, frozen=True, tag="folded"):
    """The window was folded."""

    folds: tuple[Fold, ...]

    def _settle(self) -> None:
        self._settle_tuple("folds", Fold)


class Retrying(Event, frozen=True, tag="retrying", kw_only=True):
    """A call failed and is tried again after `delay_s`; `error` says why in words."""

    error: str
    attempt: int
    attempts_max: int
    delay_s: float

    def _settle(self) -> None:
        self._settle_texts("error")
        self._settle_counts("attempt", "attempts_max")
        self._settle_number("delay_s")


class Outcome(StrEnum):
    """How a turn ended. A turn that failed raises its error instead."""

    RESPONSE = "response"
    PENDING = "pending"
    CANCELLED = "cancelled"
    MAX_TOKENS = "max_tokens"
    BLOCKED = "blocked"
    LIMIT = "limit"


class TurnFinished(Event, frozen=True, tag="turn_finished", kw_only=True):
    """The turn is over: how it ended, the last message, and what it all took."""

    outcome: Outcome
    message: Message | None = None
    usage: Usage = Usage()
    cost: Decimal | None = None

    def _settle(self) -> None:
        if self.outcome not in tuple(Outcome):
            known = ", ".join(Outcome)
            raise InvalidInput("outcome", f"{self.outcome!r} is unknown: use one of {known}")
        self._set("outcome", Outcome(self.outcome))
        self._settle_is("usage", Usage)
        if self.message is not None:
            self._settle_is("message", Message)
        if self.cost is not None:
            self._set("cost", amount("cost", self.cost))


class ConsolidationStarted(Event, frozen=True, tag="consolidation_started", kw_only=True):
    """The messages at positions `start` to before `stop` of a session are being summarised."""

    session_id: str
    start: int
    stop: int

    def _settle(self) -> None:
        self._settle_texts("session_id")
        self._settle_counts("start", "stop")


class Consolidated(Event, frozen=True, tag="consolidated", kw_only=True):
    """They are summarised: `entry` is in HISTORY.md now.

    `is_raw` says that no model could be had, and that the entry is the messages themselves.
    """

    session_id: str
    start: int
    stop: int
    entry: str = ""
    is_raw: bool = False
    is_memory_changed: bool = False
    usage: Usage = Usage()

    def _settle(self) -> None:
        self._settle_texts("session_id", "entry")
        self._settle_counts("start", "stop")
        self._settle_flags("is_raw", "is_memory_changed")
        self._settle_is("usage", Usage)


class ConsolidationFailed(Event, frozen=True, tag="consolidation_failed", kw_only=True):
    """The model could not say what to keep, and nothing was changed; `error` says why in words.

    At the last of `attempts_max` attempts the messages themselves are kept.
    """

    session_id: str
    start: int
    stop: int
    error: str
    attempt: int
    attempts_max: int

    def _settle(self) -> None:
        self._settle_texts("session_id", "error")
        self._settle_counts("start", "stop", "attempt", "attempts_max")
