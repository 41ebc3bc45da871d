"""Messages in parts, as jaato (Python) serialises them.

    message            role (user, model, tool), parts, message_id
    text               text
    function_call      id, name, args (an object), arguments (the model's own text), signature
    function_response  call_id, name, result (any JSON), is_error, attachments
    inline_data        mime_type, data (base64)
    thought            thought, signature

Each part has its `type`. jaato itself drops message ids, thoughts and attachments on saving; here
they are written and read. Parts that jaato does not have are written in our own JSON, and kinds
unknown here are kept as they are. The order of words and calls is kept by CallRef.
"""

from typing import Any

import msgspec

from holdfast import strict
from holdfast.codec import foreign
from holdfast.codec.plain import part_dict
from holdfast.codec.writing import dumps
from holdfast.entries import Entry
from holdfast.errors import InvalidInput
from holdfast.frozen import FrozenDict
from holdfast.messages import Message, Role, ToolCall
from holdfast.parts import CallRef, Image, Part, Text, Thinking, Unknown, known_part_of
from holdfast.strict import LIMITS, Limits

_MESSAGE = ("role", "parts", "message_id")
_RESULT = ("type", "call_id", "name", "arguments", "result", "is_error", "signature")
_CALL = ("type", "id", "name", "args", "arguments", "signature")
_DATA = ("type", "mime_type", "data")
_THOUGHT = ("type", "thought", "signature")
_ROLES = {Role.ASSISTANT: "model", Role.FUNCTION: "tool"}
# In ToolCall.extra: the result was a JSON value and not text, so it is written as one again.
_IS_JSON = "result_is_json"


def encode(message: Message) -> bytes:
    """The message in jaato's parts."""
    return dumps(message_dict(message)).encode()


def message_dict(message: Message) -> dict[str, Any]:
    """The same before it is text."""
    role = _ROLES.get(message.role, str(message.role))
    found = {"role": role, "parts": _part_dicts(message), "message_id": message.id}
    return foreign.spread(found, message.extra, _MESSAGE)


def decode(data: bytes | str, limits: Limits = LIMITS) -> tuple[Entry, ...]:
    """The message in jaato's parts, and a mark when characters had to be mended."""
    value, mended = strict.parse(data, limits, "a message")
    return foreign.with_marks(message_of(foreign.object_of(value, "a message")), mended)


def message_of(raw: FrozenDict) -> Message:
    """The message in an object that was read."""
    parts = raw.get("parts", ())
    if type(parts) is not tuple:
        raise InvalidInput("parts", "is a list of parts")
    content, calls = _read_parts(parts)
    fields: dict[str, Any] = {"content": content, "tool_calls": calls}
    if type(raw.get("message_id")) is str and raw["message_id"]:
        fields["id"] = raw["message_id"]
    fields["extra"] = foreign.gather(raw, _MESSAGE)
    return Message(Role.of(str(raw.get("role"))), **fields)


def _part_dicts(message: Message) -> list[Any]:
    if message.tool_call_id is not None and not message.tool_calls:
        return [_result_dict(message)]
    content = message.content
    parts: tuple[Part, ...] = (Text(content),) if isinstance(content, str) else content or ()
    waiting = list(message.tool_calls)
    found = []
    for part in parts:
        here = [call for call in waiting if isinstance(part, CallRef) and call.id == part.id]
        if here:
            waiting.remove(here[0])
        found.append(_call_dict(here[0]) if here else _part_dict(part))
    return found + [_call_dict(call) for call in waiting]


def _part_dict(part: Part) -> Any:
    if isinstance(part, Image) and part.data is not None:
        data = msgspec.to_builtins(part)["data"]
        found = {"type": "inline_data", "mime_type": part.media_type, "data": data}
        return foreign.spread(found, part.extra, _DATA)
    if isinstance(part, Thinking) and not part.redacted:
        found = {"type": "thought", "thought": part.text}
        if part.signature is not None:
            found["signature"] = part.signature
        return foreign.spread(found, part.extra, _THOUGHT)
    return part_dict(part)


def _call_dict(call: ToolCall) -> dict[str, Any]:
    found: dict[str, Any]
    if call.output is None:
        found = {"type": "function_call", "id": call.id, "name": call.name}
        found |= _args(call.arguments)
    else:
        is_json = call.extra.get(_IS_JSON) is True
        result = strict.parse(call.output).value if is_json else call.output
        found = {"type": "function_response", "call_id": call.id, "name": call.name}
        found |= {"result": result, "is_error": call.is_error}
        if call.arguments:
            found["arguments"] = call.arguments
    if call.signature is not None:
        found["signature"] = call.signature
    extra = {k: v for k, v in call.extra.items() if k != _IS_JSON or v is not True}
    return foreign.spread(found, extra, _CALL if call.output is None else _RESULT)


def _args(arguments: str) -> dict[str, Any]:
    """The object in the arguments, with their text where ours would differ; or the text alone."""
    try:
        value, mended = strict.parse(arguments)
    except ValueError:
        return {"args": arguments}
    if type(value) is not FrozenDict or mended:
        return {"args": arguments}
    return {"args": value} if dumps(value) == arguments else {"args": value, "arguments": arguments}


def _result_dict(message: Message) -> dict[str, Any]:
    content = message.content if isinstance(message.content, tuple) else ()
    media = [_part_dict(part) for part in content if type(part) is not Text]
    found = {
        "type": "function_response",
        "call_id": message.tool_call_id,
        "name": message.name or "",
        "result": message.text or "",
        "is_error": message.is_error,
    }
    return found | ({"attachments": media} if media else {})


def _read_parts(
    parts: tuple[Any, ...],
) -> tuple[tuple[Part, ...] | str | None, tuple[ToolCall, ...]]:
    content: list[Part] = []
    calls: list[ToolCall] = []
    places: list[Part] = []  # of calls; one that no words follow is not needed
    for raw in parts:
        kind = raw.get("type") if type(raw) is FrozenDict else None
        if type(kind) is str and kind in _READERS:
            calls.append(_READERS[kind](raw))
            places.append(CallRef(calls[-1].id))
        else:
            content += [*places, _read_part(raw, kind)]
            places.clear()
    if not content:
        return None, tuple(calls)
    first = content[0]
    if len(content) == 1 and type(first) is Text and not first.extra:
        return first.text, tuple(calls)
    return tuple(content), tuple(calls)


def _read_call(raw: FrozenDict) -> ToolCall:
    args, text = raw.get("args"), raw.get("arguments")
    is_same = type(text) is str and type(args) is FrozenDict and _args(text).get("args") == args
    extra = foreign.gather(raw, _CALL)
    if "arguments" in raw and not is_same:  # somebody's own, and not the text of these args
        extra["arguments"] = text
    return ToolCall(
        id=raw.get("id") or "",
        name=raw.get("name") or "",
        arguments=foreign.arguments_of(text if is_same else args),
        signature=raw.get("signature"),
        extra=extra,
    )


def _read_result(raw: FrozenDict) -> ToolCall:
    result = raw.get("result")
    is_text = type(result) is str
    extra = foreign.gather(raw, _RESULT)
    return ToolCall(
        id=raw.get("call_id") or "",
        name=raw.get("name") or "",
        arguments=raw.get("arguments") or "",
        output=result if is_text else dumps(result),
        is_error=bool(raw.get("is_error")),
        signature=raw.get("signature"),
        extra=extra if is_text else extra | {_IS_JSON: True},
    )


_READERS = {"function_call": _read_call, "function_response": _read_result}


def _read_part(raw: Any, kind: Any) -> Part:
    if kind == "inline_data":
        own = {"type": "image", "media_type": raw.get("mime_type"), "data": raw.get("data")}
        extra = FrozenDict(foreign.gather(raw, _DATA))
        return known_part_of(FrozenDict(own | {"extra": extra})) or Unknown(raw)
    if kind == "thought":
        own = {"type": "thinking", "text": raw.get("thought"), "signature": raw.get("signature")}
        extra = FrozenDict(foreign.gather(raw, _THOUGHT))
        return known_part_of(FrozenDict(own | {"extra": extra})) or Unknown(raw)
    return foreign.any_part_of(raw)
