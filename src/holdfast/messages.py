"""Messages: the one type in which everything that was said is kept, shown and sent.

A message is a value. It never changes, so a snapshot costs nothing and may be shared with any
thread, task or provider; what differs is a new message (`message.replace(...)`).
"""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, TypedDict, Unpack

import msgspec

from holdfast.errors import InvalidInput
from holdfast.frozen import EMPTY, FrozenDict, JSONObject, Value
from holdfast.identity import NO_ID, NO_TIME, settle_identity
from holdfast.parts import PART_TYPES, KnownPart, Part, Text

if TYPE_CHECKING:
    Content = str | tuple[Part, ...] | None
else:  # what the decoder finds by itself; the codec adds Unknown for what it cannot read
    Content = str | tuple[KnownPart, ...] | None

ContentInput = str | Sequence[Part | str] | None


class Role(StrEnum):
    """Who speaks. `function` and `model` are older spellings, kept as they were written."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    FUNCTION = "function"
    MODEL = "model"

    @classmethod
    def of(cls, name: str) -> "Role":
        """The role of this name, or InvalidInput: a name is spelled exactly as above."""
        try:
            return cls(name)
        except ValueError:
            known = ", ".join(cls)
            raise InvalidInput(f"role {name!r}", f"is unknown: use one of {known}") from None

    @property
    def canonical(self) -> "Role":
        """The role in today's words: model is assistant, function is tool."""
        return _CANONICAL.get(self, self)


_CANONICAL = {Role.MODEL: Role.ASSISTANT, Role.FUNCTION: Role.TOOL}


class Stop(StrEnum):
    """Why a model stopped, in one set of words for all vendors.

    A message keeps its reason as text (`message.stop == Stop.MAX_TOKENS`), because a vendor may
    have one that is not among these.
    """

    STOP = "stop"
    TOOL_USE = "tool_use"
    MAX_TOKENS = "max_tokens"
    SAFETY = "safety"
    ERROR = "error"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


class ToolCall(Value, frozen=True, kw_only=True):
    """The model asks for a tool to be run; or, with `output`, what came back.

    `arguments` is JSON text, exactly as the model wrote it. It may not parse: history keeps what
    was said, and whoever runs the tool decides what to do about it. `output` is the serialised
    response, in the style where a tool message lists its results as calls; `is_error` goes with
    it. `signature` is the vendor's proof that it made this call, sent back with it.
    """

    id: str
    name: str
    arguments: str
    output: str | None = None
    is_error: bool = False
    signature: str | None = None
    extra: JSONObject = EMPTY

    def _settle(self) -> None:
        self._settle_texts("id", "name", "arguments", optional=("output", "signature"))
        self._settle_flags("is_error")
        self._settle_objects("extra")


class Result(Value, frozen=True, kw_only=True):
    """What a tool gave back for the call `call_id`, in whichever style the message holds it."""

    call_id: str | None
    name: str | None
    content: Content
    is_error: bool

    def _settle(self) -> None:
        self._settle_texts(optional=("call_id", "name"))
        _settle_content(self)
        self._settle_flags("is_error")


class _Fields(TypedDict, total=False):
    """The keyword arguments that the short constructors pass on."""

    name: str | None
    author: str | None
    id: str
    timestamp: datetime
    model: str | None
    prefix: str | None
    stop: str | None
    synthetic: str | None
    extra: FrozenDict | dict[str, object]


class _Said(Value, frozen=True):
    role: Role
    content: Content = None


class Message(_Said, frozen=True, kw_only=True):
    """One thing said, by system, user, assistant or tool.

    author     the agent or person who speaks, where several share a role
    name       the tool's name in a tool message; a participant's name elsewhere
    prefix     the digest of the prefix under which the thinking in it was signed
    stop       why the model stopped (see Stop)
    synthetic  what made it, if nobody said it: summary, notice, nudge, ...; never begins a turn
    timestamp  when it was said; for order there is the log. Text that says the same time in
               another way is kept in extra["timestamp"]
    extra      whatever else came with it, as JSON
    """

    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    author: str | None = None
    is_error: bool = False
    id: str = NO_ID
    timestamp: Annotated[datetime, msgspec.Meta(tz=True)] = NO_TIME
    model: str | None = None
    prefix: str | None = None
    stop: str | None = None
    synthetic: str | None = None
    extra: JSONObject = EMPTY

    @classmethod
    def system(cls, content: ContentInput, **fields: Unpack[_Fields]) -> "Message":
        """What the model is told about its task."""
        return cls(Role.SYSTEM, content, **fields)  # type: ignore[arg-type]

    @classmethod
    def user(cls, content: ContentInput, **fields: Unpack[_Fields]) -> "Message":
        """What the user says."""
        return cls(Role.USER, content, **fields)  # type: ignore[arg-type]

    @classmethod
    def assistant(
        cls,
        content: ContentInput = None,
        tool_calls: Sequence[ToolCall] = (),
        **fields: Unpack[_Fields],
    ) -> "Message":
        """What the model says, and the tools it asks for."""
        return cls(Role.ASSISTANT, content, tool_calls=tool_calls, **fields)  # type: ignore[arg-type]

    @classmethod
    def tool(
        cls,
        content: ContentInput,
        tool_call_id: str,
        *,
        is_error: bool = False,
        **fields: Unpack[_Fields],
    ) -> "Message":
        """What a tool gave back for the call `tool_call_id`."""
        return cls(
            Role.TOOL,
            content,  # type: ignore[arg-type]
            tool_call_id=tool_call_id,
            is_error=is_error,
            **fields,
        )

    @property
    def text(self) -> str | None:
        """The words in it, put together; None when there are none."""
        if not isinstance(self.content, tuple):
            return self.content or None
        return "".join(part.text for part in self.content if type(part) is Text) or None

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tools it asks for, in order."""
        return tuple(call for call in self.tool_calls if call.output is None)

    @property
    def results(self) -> tuple[Result, ...]:
        """What tools gave back: one for a tool message, or one for each call with an output."""
        if outputs := [call for call in self.tool_calls if call.output is not None]:
            return tuple(
                Result(
                    call_id=call.id,
                    name=call.name,
                    content=call.output,
                    is_error=call.is_error or self.is_error,
                )
                for call in outputs
            )
        if self.tool_call_id is None and self.role.canonical is not Role.TOOL:
            return ()
        return (
            Result(
                call_id=self.tool_call_id,
                name=self.name,
                content=self.content,
                is_error=self.is_error,
            ),
        )

    @property
    def starts_turn(self) -> bool:
        """A user's message that holds no tool result and is not synthetic begins a turn."""
        if (
            self.role is not Role.USER
            or self.synthetic is not None
            or self.tool_call_id is not None
        ):
            return False
        return all(call.output is None for call in self.tool_calls)

    def _settle(self) -> None:
        if type(self.role) is not Role:
            self._set("role", Role.of(self.role))
        _settle_content(self)
        self._settle_tuple("tool_calls", ToolCall)
        settle_identity(self)
        self._settle_texts(
            optional=("tool_call_id", "name", "author", "model", "prefix", "stop", "synthetic"),
        )
        self._settle_flags("is_error")
        self._settle_objects("extra")


def _settle_content(value: "Message | Result") -> None:
    content: object = value.content
    if isinstance(content, str):
        value._settle_texts("content")
    elif content is not None:
        if isinstance(content, list | tuple):
            parts = [Text(part) if isinstance(part, str) else part for part in content]
            value._set("content", parts)
        value._settle_tuple("content", PART_TYPES)


def opening(prompt: str, system: str | None = None) -> tuple[Message, ...]:
    """The first messages of a conversation: the system's, if it has anything to say; the user's."""
    first = (Message.system(system),) if system else ()
    return (*first, Message.user(prompt))
