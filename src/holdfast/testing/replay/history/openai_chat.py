"""A conversation out of a body of Chat Completions."""

from typing import Any

from holdfast.frozen import FrozenDict
from holdfast.messages import Message, Role, ToolCall
from holdfast.parts import Audio, File, Part, Text, Thinking
from holdfast.testing.replay.history.base import (
    Conversation,
    data_url,
    decoded,
    dumps,
    message_content,
    opaque,
    plain_settings,
    schema_tool,
    texts,
)
from holdfast.testing.replay.recordings import Exchange
from holdfast.tools import Tool

VENDOR = "openai"
BLOCKS = "openai-chat"  # whose parts of a message these are: the other wire has its own


def conversation(exchange: Exchange) -> Conversation:
    """What the request says. The system's words at the beginning are its system."""
    body = exchange.request
    model = f"{VENDOR}:{exchange.model}"
    raw = list(body["messages"])
    first = next((n for n, m in enumerate(raw) if not _is_system(m)), len(raw))
    system = "\n\n".join(texts(message.get("content")) for message in raw[:first])
    tools = body.get("tools") or [
        {"type": "function", "function": f} for f in body.get("functions") or ()
    ]
    own = [tool for tool in tools if "function" not in tool]
    form = body.get("response_format") or {}
    schema = (form.get("json_schema") or {}).get("schema")
    return Conversation(
        wire=exchange.wire or "",
        service=exchange.service,
        is_lenient=exchange.is_lenient,
        messages=tuple(_message(message, model) for message in raw[first:]),
        system=system or None,
        tools=tuple(_tool(tool["function"]) for tool in tools if "function" in tool),
        response_schema=FrozenDict(schema) if isinstance(schema, dict) else None,
        settings=plain_settings(
            model,
            thinking=body.get("reasoning_effort"),
            temperature=body.get("temperature"),
            max_tokens=body.get("max_completion_tokens") or body.get("max_tokens"),
        ),
        left_out=tuple(f"tool {tool.get('type')}" for tool in own),
    )


def _is_system(message: dict[str, Any]) -> bool:
    return message["role"] in ("system", "developer")


def _tool(raw: dict[str, Any]) -> Tool:
    return schema_tool(raw["name"], raw.get("description"), raw.get("parameters"))


def _message(raw: dict[str, Any], model: str) -> Message:
    role, content = raw["role"], raw.get("content")
    parts = [_part(block) for block in content] if isinstance(content, list) else []
    said = content if isinstance(content, str) else message_content(parts)
    if role in ("tool", "function"):
        name = raw.get("name")
        if role == "function" or "tool_call_id" not in raw:
            return Message(Role.of(role), said, name=name)
        return Message.tool(said, raw["tool_call_id"], name=name)
    if role == "assistant":
        return _assistant(raw, said, model)
    return Message(Role.SYSTEM if _is_system(raw) else Role.of(role), said, name=raw.get("name"))


def _assistant(raw: dict[str, Any], said: str | tuple[Part, ...] | None, model: str) -> Message:
    thoughts: list[Part] = []
    details = raw.get("reasoning_details")
    words = raw.get("reasoning_content") or raw.get("reasoning")
    if isinstance(details, list) and details:
        thoughts.append(opaque(BLOCKS, {"reasoning_details": details}))
    elif isinstance(words, str) and words:
        thoughts.append(Thinking(words))
    if thoughts:
        rest: list[Part] = [Text(said)] if isinstance(said, str) and said else []
        said = (*thoughts, *rest, *(said if isinstance(said, tuple) else ()))
    calls = [_call(call) for call in raw.get("tool_calls") or ()]
    if legacy := raw.get("function_call"):
        name = legacy["name"]
        calls.append(ToolCall(id=name, name=name, arguments=legacy.get("arguments") or ""))
    return Message.assistant(said, calls, name=raw.get("name"), model=model)


def _call(raw: dict[str, Any]) -> ToolCall:
    function = raw.get("function") or {}
    if not function:
        custom = raw.get("custom") or {}
        function = {"name": custom.get("name"), "arguments": custom.get("input")}
    arguments = function.get("arguments") or ""
    if not isinstance(arguments, str):  # Mistral takes them as they are
        arguments = dumps(arguments)
    return ToolCall(id=raw.get("id") or "", name=function.get("name") or "", arguments=arguments)


def _part(block: Any) -> Part:
    if isinstance(block, str):
        return Text(block)
    kind = block.get("type")
    if kind == "text":
        return Text(block["text"])
    if kind == "image_url":
        url = block["image_url"]
        return data_url(url if isinstance(url, str) else url["url"])
    if kind == "input_audio":
        sound = block["input_audio"]
        return Audio(data=decoded(sound.get("data")), media_type=f"audio/{sound.get('format')}")
    if kind == "file" and isinstance(block["file"].get("file_data"), str):
        file = block["file"]
        return data_url(file["file_data"], file.get("filename"), File)
    return opaque(BLOCKS, {name: value for name, value in block.items() if name != "cache_control"})
