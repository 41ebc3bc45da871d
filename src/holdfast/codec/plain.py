"""Plain JSON: what a model or another program reads of a message.

    {"role", "content", "tool_calls", "tool_call_id", "name", "author"}

`role` and `content` are always there, the others when they are not empty, in this order; so a
message without them is exactly `{"role":...,"content":...}`. The bytes of a message never change
from one release to the next. Ids, times and everything else of ours are in `codec.record`.
"""

import base64
from typing import Any

import msgspec

from holdfast import strict
from holdfast.codec import foreign
from holdfast.entries import Entry
from holdfast.frozen import thaw
from holdfast.messages import Message, ToolCall
from holdfast.parts import Image, Part, Unknown, part_names
from holdfast.strict import LIMITS, Limits

_NAMES = ("role", "content", "tool_calls", "tool_call_id", "name", "author")


def plain(message: Message) -> bytes:
    """The plain JSON of a message, compact, in UTF-8."""
    return msgspec.json.encode(plain_dict(message))


def plain_dict(message: Message) -> dict[str, Any]:
    """The same as a dict that is yours to change."""
    content = message.content
    found: dict[str, Any] = {
        "role": str(message.role),
        "content": [part_dict(part) for part in content] if type(content) is tuple else content,
    }
    if message.tool_calls:
        found["tool_calls"] = [call_dict(call) for call in message.tool_calls]
    for name in ("tool_call_id", "name", "author"):
        if value := getattr(message, name):
            found[name] = value
    return found


def part_dict(part: Part) -> Any:
    """A part as JSON, what came with it in the place where it came."""
    if isinstance(part, Unknown):
        return thaw(part.raw)
    found: dict[str, Any] = thaw(msgspec.to_builtins(part))
    names = [name for name in part_names(found) if name != "extra"]
    return foreign.spread(found, found.pop("extra", {}), names)


def call_dict(call: ToolCall) -> dict[str, Any]:
    """A tool call, flat."""
    found = {"id": call.id, "name": call.name, "arguments": call.arguments}
    return found if call.output is None else found | {"output": call.output}


def openai_content(message: Message) -> Any:
    """The content as the OpenAI API has it, which others send: pictures are `image_url` parts."""
    if type(message.content) is not tuple:
        return message.content
    return [_openai_part(part) for part in message.content]


def _openai_part(part: Part) -> Any:
    if not isinstance(part, Image) or part.blob is not None:
        return part_dict(part)
    url = part.url
    if part.data is not None:
        encoded = base64.b64encode(part.data).decode()
        url = f"data:{part.media_type or ''};base64,{encoded}"
    return {"type": "image_url", "image_url": {"url": url, **part.extra}}


def read_plain(data: bytes | str, limits: Limits = LIMITS) -> tuple[Entry, ...]:
    """The message in plain JSON from anywhere, and a mark when characters had to be mended.

    Flat and nested tool calls are read. Other fields are kept in `extra`, parts that are unknown
    here as `Unknown`. What cannot be a message is InvalidInput.
    """
    value, mended = strict.parse(data, limits, "a message")
    raw = foreign.object_of(value, "a message")
    message = foreign.message_of(raw, _NAMES, extra=foreign.gather(raw, _NAMES))
    return foreign.with_marks(message, mended)
