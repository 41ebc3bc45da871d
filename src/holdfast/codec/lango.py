"""Messages and sessions of lango's store (Go).

    message  role, content (text), timestamp, toolCalls, author
    call     id, name, input, output, thought, thoughtSignature
    session  key, agentId, channelType, channelId, history, metadata, model, createdAt, updatedAt

Empty fields are left out, but for role, content, timestamp, id, name, input, key, history and the
times. A call with an output is a result: a tool's message is written as one, and its words are not
written a second time as content. Of content in parts, the words are carried.
"""

from datetime import datetime
from typing import Any

from holdfast import strict
from holdfast.codec import foreign
from holdfast.codec.writing import go_dumps, go_time
from holdfast.entries import Entry
from holdfast.errors import InvalidInput
from holdfast.frozen import EMPTY, FrozenDict, Value
from holdfast.messages import Message, Role, ToolCall
from holdfast.strict import LIMITS, Limits

_MESSAGE = ("role", "content", "timestamp", "toolCalls", "author", "name")
_CALL = ("id", "name", "input", "output", "thought", "thoughtSignature")
_SESSION = {
    "key": "key",
    "agentId": "agent_id",
    "channelType": "channel_type",
    "channelId": "channel_id",
    "model": "model",
}
_SESSION_NAMES = (*_SESSION, "history", "metadata", "createdAt", "updatedAt")


class Session(Value, frozen=True, kw_only=True):
    """A session as lango keeps it. `metadata` maps text to text."""

    key: str
    agent_id: str = ""
    channel_type: str = ""
    channel_id: str = ""
    history: tuple[Entry, ...] = ()
    metadata: FrozenDict = EMPTY
    model: str = ""
    created_at: datetime
    updated_at: datetime
    extra: FrozenDict = EMPTY

    def _settle(self) -> None:
        self._settle_texts(*_SESSION.values())
        self._settle_objects("metadata", "extra")
        for name, value in self.metadata.items():
            if type(value) is not str:
                raise InvalidInput(f"metadata.{name}", "is text: lango keeps no other values")


def encode(message: Message) -> bytes:
    """The message as lango's store writes it."""
    return go_dumps(_message_dict(message))


def decode(data: bytes | str, limits: Limits = LIMITS) -> tuple[Entry, ...]:
    """The message that lango wrote, and a mark when characters had to be mended."""
    value, mended = strict.parse(data, limits, "a message")
    return foreign.with_marks(_message(foreign.object_of(value, "a message")), mended)


def encode_session(session: Session) -> bytes:
    """The session with its history, as lango's store writes it."""
    found: dict[str, Any] = {"key": session.key}
    for name, own in _SESSION.items():
        if name not in ("key", "model") and getattr(session, own):
            found[name] = getattr(session, own)
    found["history"] = [_message_dict(m) for m in session.history if isinstance(m, Message)]
    if session.metadata:
        found["metadata"] = session.metadata
    if session.model:
        found["model"] = session.model
    times = {"createdAt": go_time(session.created_at), "updatedAt": go_time(session.updated_at)}
    return go_dumps(foreign.spread(found | times, session.extra, _SESSION_NAMES))


def decode_session(data: bytes | str, limits: Limits = LIMITS) -> Session:
    """The session that lango wrote; a mark about mended characters ends its history."""
    value, mended = strict.parse(data, limits, "a session")
    raw = foreign.object_of(value, "a session")
    history = raw.get("history") or ()
    if type(history) is not tuple:
        raise InvalidInput("history", "is a list of messages")
    messages: tuple[Entry, ...] = tuple(
        _message(foreign.object_of(item, "a message")) for item in history
    )
    return Session(
        **{own: raw[name] for name, own in _SESSION.items() if name in raw},
        history=(*messages, *foreign.mended_marks(None, mended)),
        metadata=foreign.object_of(raw.get("metadata") or EMPTY, "metadata"),
        created_at=foreign.time_of(raw.get("createdAt")),
        updated_at=foreign.time_of(raw.get("updatedAt")),
        extra=foreign.gather(raw, _SESSION_NAMES),  # type: ignore[arg-type]
    )


def _message_dict(message: Message) -> dict[str, Any]:
    # A tool's message holds its words in one place: as the output of its call.
    is_tool = message.role.canonical is Role.TOOL
    is_result = is_tool and message.tool_call_id is not None and not message.tool_calls
    found: dict[str, Any] = {
        "role": str(message.role),
        "content": "" if is_result else message.text or "",
        "timestamp": foreign.time_text(message) or go_time(message.timestamp),
    }
    calls = _result_calls(message) if is_result else message.tool_calls
    if calls:
        found["toolCalls"] = [_call_dict(call) for call in calls]
    if message.author:
        found["author"] = message.author
    if message.name and not is_result:  # lango has no place for it, and keeps what it finds
        found["name"] = message.name
    extra = {name: value for name, value in message.extra.items() if name != "timestamp"}
    return foreign.spread(found, extra, _MESSAGE)


def _result_calls(message: Message) -> tuple[ToolCall, ...]:
    id, name = message.tool_call_id or "", message.name or ""
    return (ToolCall(id=id, name=name, arguments="", output=message.text or ""),)


def _call_dict(call: ToolCall) -> dict[str, Any]:
    found: dict[str, Any] = {"id": call.id, "name": call.name, "input": call.arguments}
    if call.output is not None:
        found["output"] = call.output
    if call.extra.get("thought") is True:
        found["thought"] = True
    if call.signature:
        found["thoughtSignature"] = call.signature
    extra = {k: v for k, v in call.extra.items() if k != "thought" or v is not True}
    return foreign.spread(found, extra, _CALL)


def _message(raw: FrozenDict) -> Message:
    fields: dict[str, Any] = {"tool_calls": foreign.calls_of(raw.get("toolCalls"), _call)}
    if "timestamp" in raw:
        fields |= foreign.time_fields(raw["timestamp"])
    fields["extra"] = {**foreign.gather(raw, _MESSAGE), **fields.get("extra", {})}
    return foreign.message_of(
        FrozenDict({k: raw[k] for k in raw if k != "toolCalls"}), _MESSAGE, **fields
    )


def _call(raw: FrozenDict) -> ToolCall:
    extra = foreign.gather(raw, _CALL)
    if raw.get("thought") not in (None, False):
        extra["thought"] = raw["thought"]
    return ToolCall(
        id=raw.get("id") or "",
        name=raw.get("name") or "",
        arguments=foreign.arguments_of(raw.get("input")),
        output=raw.get("output"),
        signature=raw.get("thoughtSignature") or None,
        extra=extra,
    )
