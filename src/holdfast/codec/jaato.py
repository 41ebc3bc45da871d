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
from holdfast.frozen import EMPTY, FrozenDict
from holdfast.messages import Message, Role, ToolCall
from holdfast.parts import CallRef, Image, Part, Text, Thinking, Unknown
from holdfast.strict import LIMITS, Limits

_RESULT = ("type", "call_id", "name", "result", "is_error", "signature")
_CALL = ("type", "id", "name", "args", "signature")
_ROLES = {Role.ASSISTANT: "model", Role.FUNCTION: "tool"}
# In ToolCall.extra: the result was a JSON value and not text, so it is written as one again.
_IS_JSON = "result_is_json"


def encode(message: Message) -> bytes:
    """The message in jaato's parts."""
    role = _ROLES.get(message.role, str(message.role))
    found = {"role": role, "parts": _part_dicts(message), "message_id": message.id}
    return dumps(found | message.extra).encode()


def decode(data: bytes | str, limits: Limits = LIMITS) -> tuple[Entry, ...]:
    """The message in jaato's parts, and a mark when characters had to be mended."""
    value, mended = strict.parse(data, limits, "a message")
    raw = foreign.object_of(value, "a message")
    parts = raw.get("parts", ())
    if type(parts) is not tuple:
        raise InvalidInput("parts", "is a list of parts")
    content, calls = _read_parts(parts)
    fields: dict[str, Any] = {"content": content, "tool_calls": calls, "message_id": None}
    if type(raw.get("message_id")) is str and raw["message_id"]:
        fields["id"] = raw["message_id"]
    known = {"role", "parts", "message_id"}
    fields["extra"] = foreign.extra_of(raw, known, EMPTY)
    del fields["message_id"]
    return foreign.with_marks(Message(Role.of(str(raw.get("role"))), **fields), mended)


def _part_dicts(message: Message) -> list[Any]:
    if message.tool_call_id is not None and not message.tool_calls:
        return [_result_dict(message)]
    content = message.content
    parts: tuple[Part, ...] = (Text(content),) if isinstance(content, str) else content or ()
    waiting = {call.id: call for call in message.tool_calls}
    found = []
    for part in parts:
        if isinstance(part, CallRef) and part.id in waiting:
            found.append(_call_dict(waiting.pop(part.id)))
        else:
            found.append(_part_dict(part))
    return found + [_call_dict(call) for call in message.tool_calls if call.id in waiting]


def _part_dict(part: Part) -> Any:
    if isinstance(part, Image) and part.data is not None:
        found = msgspec.to_builtins(part)
        extra = {k: v for k, v in part.extra.items() if k not in ("type", "mime_type", "data")}
        return {"type": "inline_data", "mime_type": part.media_type, "data": found["data"], **extra}
    if isinstance(part, Thinking) and not part.redacted:
        found = {"type": "thought", "thought": part.text}
        if part.signature is not None:
            found["signature"] = part.signature
        return found | {k: v for k, v in part.extra.items() if k not in found}
    return part_dict(part)


def _call_dict(call: ToolCall) -> dict[str, Any]:
    extra = {k: v for k, v in call.extra.items() if k != _IS_JSON}
    if call.signature is not None:
        extra["signature"] = call.signature
    if call.output is None:
        found = {"type": "function_call", "id": call.id, "name": call.name}
        return found | _args(call.arguments) | extra
    result = strict.parse(call.output).value if call.extra.get(_IS_JSON) else call.output
    found = {"type": "function_response", "call_id": call.id, "name": call.name}
    return found | {"result": result, "is_error": call.is_error} | extra


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
    for raw in parts:
        kind = raw.get("type") if type(raw) is FrozenDict else None
        if kind == "function_call":
            calls.append(_read_call(raw))
            content.append(CallRef(calls[-1].id))
        elif kind == "function_response":
            calls.append(_read_result(raw))
        else:
            content.append(_read_part(raw, kind))
    while content and type(content[-1]) is CallRef:  # a call that no words follow needs no place
        content.pop()
    if not content:
        return None, tuple(calls)
    first = content[0]
    if len(content) == 1 and type(first) is Text and not first.extra:
        return first.text, tuple(calls)
    return tuple(content), tuple(calls)


def _read_call(raw: FrozenDict) -> ToolCall:
    args, text = raw.get("args"), raw.get("arguments")
    is_same = type(text) is str and _args(text).get("args") == args and type(args) is FrozenDict
    known = (*_CALL, "arguments") if is_same else _CALL
    return ToolCall(
        id=raw.get("id") or "",
        name=raw.get("name") or "",
        arguments=foreign.arguments_of(text if is_same else args),
        signature=raw.get("signature"),
        extra=foreign.extra_of(raw, known, EMPTY),
    )


def _read_result(raw: FrozenDict) -> ToolCall:
    result = raw.get("result")
    is_text = type(result) is str
    return ToolCall(
        id=raw.get("call_id") or "",
        name=raw.get("name") or "",
        arguments="",
        output=result if is_text else dumps(result),
        is_error=bool(raw.get("is_error")),
        signature=raw.get("signature"),
        extra=foreign.extra_of(raw, _RESULT, {} if is_text else {_IS_JSON: True}),
    )


def _read_part(raw: Any, kind: Any) -> Part:
    if kind == "inline_data":
        rest = {name: raw[name] for name in raw if name not in ("type", "mime_type")}
        image = foreign.part_of(
            FrozenDict({"type": "image", "media_type": raw.get("mime_type"), **rest})
        )
        return Unknown(raw) if type(image) is Unknown else image
    if kind == "thought" and type(raw.get("thought")) is str:
        extra = foreign.extra_of(raw, ("type", "thought", "signature"), EMPTY)
        return Thinking(raw["thought"], raw.get("signature"), extra=extra)
    return foreign.part_of(raw)
