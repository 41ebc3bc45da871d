"""What shepherd's session takes and gives: types of messages, events, messages, responses."""

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from holdfast.errors import InvalidInput
from holdfast.events import Outcome
from holdfast.messages import ToolCall


class MessageType(StrEnum):
    """Who speaks. TOOL_REQUEST is the model that asks for tools; FUNCTION is the old response."""

    SYSTEM = "SYSTEM"
    USER = "USER"
    ASSISTANT = "ASSISTANT"
    TOOL_REQUEST = "TOOL_REQUEST"
    TOOL_RESPONSE = "TOOL_RESPONSE"
    FUNCTION = "FUNCTION"


SYSTEM, USER, ASSISTANT = MessageType.SYSTEM, MessageType.USER, MessageType.ASSISTANT
TOOL_REQUEST, TOOL_RESPONSE = MessageType.TOOL_REQUEST, MessageType.TOOL_RESPONSE
FUNCTION = MessageType.FUNCTION


class CallbackEvent(StrEnum):
    """What a callback hears of, in this order; then STOP's content is the finish reason."""

    THINKING = "THINKING"
    CONTENT = "CONTENT"
    STOP = "STOP"
    TOOL_CALL = "TOOL_CALL"
    TOOL_CALLS_COMPLETE = "TOOL_CALLS_COMPLETE"


Callback = Callable[[CallbackEvent, str, str, str], object]


class Message(NamedTuple):
    """A message as shepherd has it: a view, which changes nothing."""

    type: MessageType
    content: str
    tokens: int = 0
    tool_name: str = ""
    tool_call_id: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    pre_injection_content: str = ""

    def get_role(self) -> str:
        """system, user, assistant or tool."""
        return ROLES[self.type]


ROLES = {
    SYSTEM: "system",
    USER: "user",
    ASSISTANT: "assistant",
    TOOL_REQUEST: "assistant",
    TOOL_RESPONSE: "tool",
    FUNCTION: "tool",
}


class Response(NamedTuple):
    """What came of a message.

    finish_reason  stop, length, tool_calls, content_filter, cancelled, limit; "" where no model was
                   asked
    tool_calls     those that wait for a TOOL_RESPONSE
    """

    content: str = ""
    finish_reason: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    tool_calls: tuple[ToolCall, ...] = ()


FINISH_REASONS = {
    Outcome.RESPONSE: "stop",
    Outcome.PENDING: "tool_calls",
    Outcome.CANCELLED: "cancelled",
    Outcome.MAX_TOKENS: "length",
    Outcome.BLOCKED: "content_filter",
    Outcome.LIMIT: "limit",
}


def type_of(type: object) -> MessageType:
    """The type of a message that a caller adds, or InvalidInput."""
    try:
        kind = MessageType(str(type))
    except ValueError:
        known = ", ".join(MessageType)
        raise InvalidInput("type", f"{type!r} is unknown: use one of {known}") from None
    if kind is TOOL_REQUEST:
        raise InvalidInput("type", "TOOL_REQUEST is what a model says: add the TOOL_RESPONSE")
    return kind


def check_tokens(name: str, value: object, least: int) -> None:
    """InvalidInput for what is no number of tokens."""
    if type(value) is not int or value < least:
        raise InvalidInput(name, f"is a whole number from {least} up, not {value!r}")
