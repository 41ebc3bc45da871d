"""The canonical message of the tau kernel (Go), byte for byte as its encoder writes it.

    {"role": ..., "content": ..., "tool_call_id": ..., "tool_calls": [{"id", "name", "arguments"}]}

The last two are left out when empty; `<`, `>`, `&`, U+2028 and U+2029 are escaped. It carries
nothing else of a message. Pictures are `image_url` parts. Both shapes of tool calls are read.
"""

from typing import Any

from holdfast.codec.plain import openai_content, read_plain
from holdfast.codec.writing import go_dumps
from holdfast.messages import Message

decode = read_plain


def encode(message: Message) -> bytes:
    """The message as the kernel writes it."""
    found: dict[str, Any] = {"role": str(message.role), "content": openai_content(message)}
    if message.tool_call_id:
        found["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        found["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments}
            for call in message.tool_calls
        ]
    return go_dumps(found)
