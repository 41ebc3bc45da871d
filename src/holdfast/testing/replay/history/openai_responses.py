"""A conversation out of a body of the Responses API.

Its items are a flat list; those that a model made in one answer stand next to each other and
become one message: reasoning and the service's own calls as Opaque, words as text, calls as calls.
"""

from typing import Any

from holdfast.frozen import FrozenDict
from holdfast.messages import Message, Role, ToolCall
from holdfast.parts import CallRef, File, Part, Text, Thinking
from holdfast.testing.replay.history.base import (
    Conversation,
    data_url,
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
CALLS = ("function_call", "custom_tool_call")
RESULTS = ("function_call_output", "custom_tool_call_output")


def conversation(exchange: Exchange) -> Conversation:
    """What the request says. The system's words at the beginning are its system."""
    body = exchange.request
    model = f"{VENDOR}:{exchange.model}"
    items = body.get("input")
    items = [{"role": "user", "content": items}] if isinstance(items, str) else list(items or ())
    first = next((n for n, item in enumerate(items) if not _is_system(item)), len(items))
    said = [body["instructions"]] if isinstance(body.get("instructions"), str) else []
    said += [texts(item.get("content")) for item in items[:first]]
    tools = body.get("tools") or ()
    form = (body.get("text") or {}).get("format") or {}
    return Conversation(
        wire=exchange.wire or "",
        service=exchange.service,
        is_lenient=exchange.is_lenient,
        messages=tuple(_messages(items[first:], model)),
        system="\n\n".join(said) or None,
        tools=tuple(_tool(tool) for tool in tools if tool.get("type") == "function"),
        response_schema=FrozenDict(form["schema"]) if form.get("schema") else None,
        settings=plain_settings(
            model,
            thinking=(body.get("reasoning") or {}).get("effort"),
            temperature=body.get("temperature"),
            max_tokens=body.get("max_output_tokens"),
        ),
        is_elsewhere=bool(
            body.get("previous_response_id") or body.get("conversation") or body.get("prompt")
        ),
        left_out=tuple(f"tool {t.get('type')}" for t in tools if t.get("type") != "function"),
    )


def _is_system(item: dict[str, Any]) -> bool:
    is_message = item.get("type", "message") == "message"
    return is_message and item.get("role") in ("system", "developer")


def _tool(raw: dict[str, Any]) -> Tool:
    return schema_tool(raw["name"], raw.get("description"), raw.get("parameters"))


def _messages(items: list[dict[str, Any]], model: str) -> list[Message]:
    found: list[Message] = []
    answer: list[dict[str, Any]] = []  # the items of the model's, so far
    for item in items:
        kind, role = item.get("type", "message"), item.get("role")
        if kind in RESULTS or (kind == "message" and role != "assistant"):
            found += _answer(answer, model)
            answer = []
            found.append(_other(item, kind))
        else:
            answer.append(item)
    return found + _answer(answer, model)


def _other(item: dict[str, Any], kind: str) -> Message:
    if kind in RESULTS:
        return Message.tool(_content(item.get("output")), item["call_id"])
    role = Role.SYSTEM if _is_system(item) else Role.of(item["role"])
    return Message(role, _content(item.get("content")))


def _content(content: Any) -> str | tuple[Part, ...] | None:
    if isinstance(content, str) or content is None:
        return content
    return message_content([_part(block) for block in content])


def _answer(items: list[dict[str, Any]], model: str) -> list[Message]:
    if not items:
        return []
    parts: list[Part] = []
    calls: list[ToolCall] = []
    for item in items:
        kind = item.get("type", "message")
        if kind in CALLS:
            calls.append(_call(item, kind))
            parts.append(CallRef(item["call_id"]))
        elif kind == "message":
            content = item.get("content")
            blocks = [{"text": content}] if isinstance(content, str) else content or []
            parts += [_said(block) for block in blocks]
        elif kind == "reasoning":
            parts.append(_thought(item))
        else:
            parts.append(opaque(VENDOR, item))
    while parts and type(parts[-1]) is CallRef:
        parts.pop()
    return [Message.assistant(message_content(parts), calls, model=model)]


def _call(item: dict[str, Any], kind: str) -> ToolCall:
    if kind == "function_call":
        return ToolCall(id=item["call_id"], name=item["name"], arguments=item["arguments"])
    written, custom = dumps({"input": item["input"]}), FrozenDict({"type": "custom"})
    return ToolCall(id=item["call_id"], name=item["name"], arguments=written, extra=custom)


def _thought(item: dict[str, Any]) -> Part:
    told = [*(item.get("summary") or ()), *(item.get("content") or ())]
    words = "\n\n".join(str(each.get("text") or "") for each in told)
    known = {name: item[name] for name in ("id", "summary", "content") if item.get(name)}
    return Thinking(words, item.get("encrypted_content"), extra=FrozenDict(known))


def _said(block: dict[str, Any]) -> Part:
    if block.get("type", "output_text") in ("output_text", "text", "input_text"):
        return Text(block["text"])
    return opaque(VENDOR, block)


def _part(block: dict[str, Any]) -> Part:
    kind = block.get("type")
    if kind in ("input_text", "text", "output_text"):
        return Text(block["text"])
    if kind == "input_image" and isinstance(block.get("image_url"), str):
        return data_url(block["image_url"])
    if kind == "input_file" and isinstance(block.get("file_data"), str):
        return data_url(block["file_data"], block.get("filename"), File)
    if kind == "input_file" and isinstance(block.get("file_url"), str):
        return File(url=block["file_url"], name=block.get("filename"))
    return opaque(VENDOR, block)
