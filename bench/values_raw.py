"""The limit for bench/values.py: msgspec alone, on structs with the same fields.

No checks, no versions, no holdfast: what the library can do when nothing is promised.
"""

from datetime import datetime
from enum import StrEnum

import msgspec


class Base(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    pass


class Text(Base, tag_field="type", tag="text"):
    text: str
    extra: dict = {}


class Thinking(Base, tag_field="type", tag="thinking"):
    text: str
    signature: str | None = None
    redacted: bool = False
    extra: dict = {}


class Image(Base, tag_field="type", tag="image", kw_only=True):
    data: bytes | None = None
    url: str | None = None
    blob: str | None = None
    media_type: str | None = None
    extra: dict = {}


class ToolCall(Base, kw_only=True):
    id: str
    name: str
    arguments: str
    output: str | None = None
    is_error: bool = False
    signature: str | None = None
    extra: dict = {}


class Role(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    FUNCTION = "function"
    MODEL = "model"


class Message(Base, kw_only=True):
    role: Role
    content: str | tuple[Text | Thinking | Image, ...] | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    author: str | None = None
    is_error: bool = False
    id: str
    timestamp: datetime
    model: str | None = None
    prefix: str | None = None
    stop: str | None = None
    synthetic: str | None = None
    extra: dict = {}


class CheckedMessage(Message, kw_only=True):
    """The same with a check in `__post_init__`, which msgspec also runs for what it decodes."""

    def __post_init__(self) -> None:
        for name in ("tool_call_id", "name", "author", "model", "prefix", "stop", "synthetic"):
            value = getattr(self, name)
            if value is not None and type(value) is not str:
                raise TypeError(name)
        if type(self.content) not in (str, tuple, type(None)) or self.timestamp.tzinfo is None:
            raise TypeError("content or timestamp")


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Message).decode
decode_checked = msgspec.json.Decoder(CheckedMessage).decode
