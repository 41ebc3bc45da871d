"""A conversation out of a body of Ollama's own API."""

from typing import Any

from holdfast.frozen import FrozenDict
from holdfast.messages import Message, Role, ToolCall
from holdfast.parts import Image, Part, Text, Thinking
from holdfast.testing.replay.history.base import (
    Conversation,
    decoded,
    dumps,
    message_content,
    plain_settings,
    schema_tool,
)
from holdfast.testing.replay.recordings import Exchange
from holdfast.tools import Tool

VENDOR = "ollama"


def conversation(exchange: Exchange) -> Conversation:
    """What the request says. The system's words at the beginning are its system.

    `/api/generate` has one question, in `prompt`.
    """
    body = exchange.request
    model = f"{VENDOR}:{exchange.model}"
    raw = list(body.get("messages") or _question(body))
    first = next((n for n, m in enumerate(raw) if m["role"] != "system"), len(raw))
    system = "\n\n".join(message.get("content") or "" for message in raw[:first])
    schema, options = body.get("format"), body.get("options") or {}
    return Conversation(
        wire=exchange.wire or "",
        service=exchange.service,
        is_lenient=exchange.is_lenient,
        messages=_messages(raw[first:], model),
        system=system or None,
        tools=tuple(_tool(tool["function"]) for tool in body.get("tools") or ()),
        response_schema=FrozenDict(schema) if isinstance(schema, dict) else None,
        settings=plain_settings(
            model,
            temperature=options.get("temperature"),
            max_tokens=options.get("num_predict"),
        ),
    )


def _question(body: dict[str, Any]) -> list[dict[str, Any]]:
    asked = {"role": "user", "content": body.get("prompt"), "images": body.get("images")}
    return [{"role": "system", "content": body.get("system")}, asked]


def _tool(raw: dict[str, Any]) -> Tool:
    return schema_tool(raw["name"], raw.get("description"), raw.get("parameters"))


def _messages(raw: list[dict[str, Any]], model: str) -> tuple[Message, ...]:
    """Results answer the calls before them in their order, where no ids say which."""
    made: list[Message] = []
    open_calls: list[ToolCall] = []
    for number, each in enumerate(raw):
        message = _message(each, model, number)
        if message.role is Role.TOOL and not message.tool_call_id:
            call = open_calls.pop(0) if open_calls else None
            message = message.replace(tool_call_id=call.id if call else f"none_{number}")
        open_calls += message.calls
        made.append(message)
    return tuple(made)


def _message(raw: dict[str, Any], model: str, number: int) -> Message:
    parts: list[Part] = []
    if raw.get("thinking"):
        parts.append(Thinking(raw["thinking"]))
    if raw.get("content"):
        parts.append(Text(raw["content"]))
    parts += [Image(data=decoded(data)) for data in raw.get("images") or ()]
    said = message_content(parts)
    role = raw["role"]
    if role == "tool":
        return Message(
            Role.TOOL, said, tool_call_id=raw.get("tool_call_id"), name=raw.get("tool_name")
        )
    if role == "assistant":
        calls = [_call(c, f"call_{number}_{n}") for n, c in enumerate(raw.get("tool_calls") or ())]
        return Message.assistant(said, calls, model=model)
    return Message(Role.of(role), said)


def _call(raw: dict[str, Any], id: str) -> ToolCall:
    function = raw["function"]
    arguments = dumps(function.get("arguments") or {})
    return ToolCall(id=raw.get("id") or id, name=function["name"], arguments=arguments)
