"""A conversation as a recorded request holds it, in holdfast's own values.

Written apart from what makes our requests: these modules read bodies, `providers` writes them.
"""

import base64
import binascii
import json
from dataclasses import dataclass, field
from typing import Any

from holdfast.frozen import FrozenDict
from holdfast.messages import Message
from holdfast.parts import Audio, File, Image, Opaque, Part, Text
from holdfast.settings import Settings
from holdfast.tools import Tool


@dataclass(frozen=True)
class Conversation:
    """What a request says, and how it wants to be answered.

    `tools` are those that the caller runs; tools of the vendor's own are in `left_out`, with
    whatever else has no canonical form. `is_elsewhere`: the service was told to remember what
    came before, so the messages are the last of a longer conversation.
    """

    wire: str
    service: str
    is_lenient: bool
    messages: tuple[Message, ...]
    system: str | None = None
    tools: tuple[Tool, ...] = ()
    response_schema: FrozenDict | None = None
    settings: Settings = field(default_factory=Settings)
    is_elsewhere: bool = False
    left_out: tuple[str, ...] = ()


def message_content(parts: list[Part]) -> str | tuple[Part, ...] | None:
    """As holdfast keeps it: a lone text is a string, nothing is None."""
    if not parts:
        return None
    if len(parts) == 1 and type(parts[0]) is Text and not parts[0].extra:
        return parts[0].text
    return tuple(parts)


def opaque(vendor: str, data: dict[str, Any]) -> Part:
    """A block of the vendor's own."""
    return Opaque(vendor, FrozenDict(data))


def dumps(value: Any) -> str:
    """The JSON text of a value."""
    return json.dumps(value, ensure_ascii=False)


def decoded(data: Any) -> bytes:
    """The bytes of base64; of what is none, the text itself, so that it still has a digest."""
    text = data if isinstance(data, str) else ""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return text.encode()


def media(data: Any, media_type: str | None, name: str | None = None) -> Part:
    """Data of this type as the part it is."""
    kind = (media_type or "").partition("/")[0]
    if kind == "image":
        return Image(data=decoded(data), media_type=media_type)
    if kind == "audio":
        return Audio(data=decoded(data), media_type=media_type)
    return File(data=decoded(data), media_type=media_type, name=name)


def data_url(url: str, name: str | None = None, kind: type[Image | File] = Image) -> Part:
    """`data:image/png;base64,...` as bytes, any other address as an address."""
    head, comma, data = url.partition(",")
    if url.startswith("data:") and comma:
        media_type = head[5:].partition(";")[0] or None
        if kind is Image:
            return Image(data=decoded(data), media_type=media_type)
        return media(data, media_type, name)
    return kind(url=url)


def schema_tool(name: str, description: Any, parameters: Any) -> Tool:
    """A tool that is declared; one without parameters takes none."""
    schema = _lower_types(parameters) if isinstance(parameters, dict) else {}
    return Tool(name, description or "", {"properties": {}, **schema, "type": "object"})


def _lower_types(schema: Any) -> Any:
    """Google writes the types of a schema in capitals, or as the numbers of its enum."""
    if isinstance(schema, list):
        return [_lower_types(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    lowered = {key: _lower_types(each) for key, each in schema.items()}
    kind = lowered.get("type")
    if isinstance(kind, str):
        lowered["type"] = kind.lower()
    elif isinstance(kind, int) and 0 < kind < len(_TYPES):
        lowered["type"] = _TYPES[kind]
    return lowered


_TYPES = ("", "string", "number", "integer", "boolean", "array", "object")


def texts(content: Any, sep: str = "\n\n") -> str:
    """The words of a text or of a list of text blocks."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return sep.join(
        str(block.get("text", "")) if isinstance(block, dict) else str(block) for block in blocks
    )


def plain_settings(model: str, **values: Any) -> Settings:
    """The settings that were given; what is of another type than ours is left out."""
    thinking = values.get("thinking")
    temperature, limit = values.get("temperature"), values.get("max_tokens")
    return Settings(
        model=model,
        thinking=thinking if isinstance(thinking, str | int) and thinking != -1 else None,
        temperature=temperature if isinstance(temperature, int | float) else None,
        max_tokens=limit if isinstance(limit, int) else None,
    )
