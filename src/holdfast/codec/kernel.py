"""The canonical message of the tau kernel (Go), byte for byte as its encoder writes it.

    {"role": ..., "content": ..., "tool_call_id": ..., "tool_calls": [{"id", "name", "arguments"}]}

The last two are left out when empty; `<`, `>`, `&`, U+2028 and U+2029 are escaped. It carries
nothing else of a message. Pictures are `image_url` parts. Both shapes of tool calls are read.
"""

import base64
from typing import Any

from holdfast.codec.plain import part_dict, read_plain
from holdfast.codec.writing import go_dumps
from holdfast.messages import Message
from holdfast.parts import Image, Part

decode = read_plain


def encode(message: Message) -> bytes:
    """The message as the kernel writes it."""
    found: dict[str, Any] = {"role": str(message.role), "content": content(message)}
    if message.tool_call_id:
        found["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        found["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments}
            for call in message.tool_calls
        ]
    return go_dumps(found)


def content(message: Message) -> Any:
    """The content in the shape of the OpenAI API, which the kernel and others send."""
    if type(message.content) is not tuple:
        return message.content
    return [_part(part) for part in message.content]


def _part(part: Part) -> Any:
    if not isinstance(part, Image) or part.blob is not None:
        return part_dict(part)
    url = part.url
    if part.data is not None:
        encoded = base64.b64encode(part.data).decode()
        url = f"data:{part.media_type or ''};base64,{encoded}"
    return {"type": "image_url", "image_url": {"url": url, **part.extra}}
