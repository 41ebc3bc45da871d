"""A conversation out of a body of Anthropic's Messages API."""

from typing import Any

from holdfast.frozen import FrozenDict
from holdfast.messages import Message, Role, ToolCall
from holdfast.parts import CallRef, File, Image, Part, Text, Thinking
from holdfast.testing.replay.history.base import (
    Conversation,
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

VENDOR = "anthropic"


def conversation(exchange: Exchange) -> Conversation:
    """What the request says."""
    body = exchange.request
    model = f"{VENDOR}:{exchange.model}"
    thinking = body.get("thinking") or {}
    tools = [tool for tool in body.get("tools") or () if "input_schema" in tool]
    own = [tool for tool in body.get("tools") or () if "input_schema" not in tool]
    schema = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
    return Conversation(
        wire=exchange.wire or "",
        service=exchange.service,
        is_lenient=exchange.is_lenient,
        messages=tuple(each for raw in body["messages"] for each in messages_of(raw, model)),
        system=texts(body.get("system")) or None,
        tools=tuple(map(_tool, tools)),
        response_schema=FrozenDict(schema["schema"]) if schema.get("schema") else None,
        settings=plain_settings(
            model,
            thinking=thinking.get("budget_tokens"),
            temperature=body.get("temperature"),
            max_tokens=body.get("max_tokens"),
        ),
        left_out=tuple(f"tool {tool.get('type')}" for tool in own),
    )


def _tool(raw: dict[str, Any]) -> Tool:
    return schema_tool(raw["name"], raw.get("description"), raw["input_schema"])


def messages_of(raw: dict[str, Any], model: str) -> list[Message]:
    """A message of theirs: one of ours, or several, since a result is a message of its own."""
    content = raw["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if raw["role"] == "assistant":
        return [_assistant(blocks, model)]
    found: list[Message] = []
    said: list[Part] = []
    for block in blocks:
        if block.get("type") == "tool_result":
            found += _said(raw["role"], said)
            said = []
            found.append(_result(block))
        else:
            said.append(_part(block))
    return found + _said(raw["role"], said)


def _said(role: str, parts: list[Part]) -> list[Message]:
    return [Message(Role.of(role), message_content(parts))] if parts else []


def _result(block: dict[str, Any]) -> Message:
    content = block.get("content")
    blocks = content if isinstance(content, list) else []
    inside: list[Part] = [_part(each) for each in blocks]
    said = content if isinstance(content, str) else message_content(inside)
    return Message.tool(said, block["tool_use_id"], is_error=bool(block.get("is_error")))


def _assistant(blocks: list[dict[str, Any]], model: str) -> Message:
    parts: list[Part] = []
    calls: list[ToolCall] = []
    for block in blocks:
        if block.get("type") == "tool_use":
            calls.append(
                ToolCall(id=block["id"], name=block["name"], arguments=dumps(block["input"]))
            )
            parts.append(CallRef(block["id"]))
        else:
            parts.append(_part(block))
    while parts and type(parts[-1]) is CallRef:  # a call has a place only before other words
        parts.pop()
    return Message.assistant(message_content(parts), calls, model=model)


def _part(block: dict[str, Any]) -> Part:
    kind, source = block.get("type"), block.get("source")
    extra = {name: block[name] for name in ("citations",) if block.get(name)}
    if kind == "text":
        return Text(block["text"], FrozenDict(extra))
    if kind == "thinking":
        return Thinking(block["thinking"], block.get("signature"))
    if kind == "redacted_thinking":
        return Thinking("", block.get("data"), redacted=True)
    if kind in ("image", "document") and isinstance(source, dict) and not extra:
        part = Image if kind == "image" else File
        if source.get("type") == "base64":
            return part(data=decoded(source.get("data")), media_type=source.get("media_type"))
        if source.get("type") == "url":
            return part(url=source["url"])
    return opaque(VENDOR, {name: value for name, value in block.items() if name != "cache_control"})
