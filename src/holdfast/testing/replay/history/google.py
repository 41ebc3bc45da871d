"""A conversation out of a body of generateContent.

Clients write its fields in camelCase or in snake_case; the service takes both. A call may have no
id: it gets one here, and results without an id take those of the calls before, by name.
"""

import re
from typing import Any

from holdfast.frozen import EMPTY, FrozenDict
from holdfast.messages import Message, ToolCall
from holdfast.parts import CallRef, File, Part, Text, Thinking
from holdfast.testing.replay.history.base import (
    Conversation,
    dumps,
    media,
    message_content,
    opaque,
    plain_settings,
    schema_tool,
    texts,
)
from holdfast.testing.replay.recordings import Exchange
from holdfast.tools import Tool

VENDOR = "google"
WRAPPERS = ("result", "output", "content", "return_value", "response")
# Whose names are the users' and the models' own.
FREE = (
    *("args", "response", "parameters", "responseSchema", "responseJsonSchema"),
    "parametersJsonSchema",
)
NO_ID = "call_without_id_"


def conversation(
    exchange: Exchange, vendor: str = VENDOR, model: str | None = None
) -> Conversation:
    """What the request says to a model of `vendor`."""
    body = camel(exchange.request)
    model = f"{vendor}:{model or exchange.model}"
    config = body.get("generationConfig") or {}
    contents = body.get("contents") or []
    tools = body.get("tools") or []
    tools = tools if isinstance(tools, list) else [tools]
    declared = [each for tool in tools for each in tool.get("functionDeclarations") or ()]
    instruction = body.get("systemInstruction") or {}
    parts = instruction.get("parts") or [] if isinstance(instruction, dict) else instruction
    thinking = (config.get("thinkingConfig") or {}).get("thinkingBudget")
    schema = config.get("responseJsonSchema") or config.get("responseSchema")
    return Conversation(
        wire=exchange.wire or "",
        service=exchange.service,
        is_lenient=exchange.is_lenient,
        messages=tuple(_messages(contents if isinstance(contents, list) else [contents], model)),
        system=texts(parts if isinstance(parts, list | str) else [parts]) or None,
        tools=tuple(_tool(each) for each in declared),
        response_schema=FrozenDict(schema) if isinstance(schema, dict) else None,
        settings=plain_settings(
            model,
            thinking=thinking,
            temperature=config.get("temperature"),
            max_tokens=config.get("maxOutputTokens"),
        ),
        is_elsewhere=bool(body.get("cachedContent")),
        left_out=tuple(
            f"tool {name}" for tool in tools for name in tool if name != "functionDeclarations"
        ),
    )


def camel(value: Any) -> Any:
    """The names of the wire in camelCase; what users and models wrote is left as it is."""
    if isinstance(value, list):
        return [camel(each) for each in value]
    if not isinstance(value, dict):
        return value
    named = {re.sub(r"_([a-z])", lambda m: m[1].upper(), key): each for key, each in value.items()}
    return {key: each if key in FREE else camel(each) for key, each in named.items()}


def _tool(raw: dict[str, Any]) -> Tool:
    parameters = raw.get("parametersJsonSchema") or raw.get("parameters")
    return schema_tool(raw["name"], raw.get("description"), parameters)


def _messages(contents: list[dict[str, Any]], model: str) -> list[Message]:
    found: list[Message] = []
    open_calls: list[ToolCall] = []
    count = 0
    for content in contents:
        parts = content.get("parts") or []
        parts = parts if isinstance(parts, list) else [parts]
        if content.get("role") == "model":
            message = _model(parts, model, count)
            count += len(message.tool_calls)
            open_calls += message.tool_calls
            found.append(message)
        else:
            found += _user(parts, open_calls, model)
    return found


def _user(parts: list[dict[str, Any]], open_calls: list[ToolCall], model: str) -> list[Message]:
    found: list[Message] = []
    said: list[Part] = []
    for part in parts:
        if response := part.get("functionResponse"):
            found += [Message.user(message_content(said))] if said else []
            said = []
            found.append(_result(response, open_calls, model))
        else:
            said.append(_part(part, model))
    return found + ([Message.user(message_content(said))] if said else [])


def _result(raw: dict[str, Any], open_calls: list[ToolCall], model: str) -> Message:
    name, id = raw.get("name"), raw.get("id")
    match = next((c for c in open_calls if (c.id == id if id else c.name == name)), None)
    if match is not None:
        open_calls.remove(match)
    media = raw.get("parts") or ()
    labels = {label for each in media if (label := _label(each)) is not None}
    said = unwrapped(_without_references(raw.get("response"), labels))
    inside = [_part(part, model) for part in media]
    content = (Text(said), *inside) if inside else said
    call_id = id or (match.id if match else f"{NO_ID}{name}")
    return Message.tool(content, call_id, name=name)


def _label(part: dict[str, Any]) -> str | None:
    """The name of a part of a result, by which its response may speak of it."""
    data = part.get("inlineData") or part.get("fileData") or {}
    return data.get("displayName")


def _without_references(said: Any, labels: set[str]) -> Any:
    """A response without `{"$ref": name}` where the part of that name follows: it says no more.

    None in the place of what says nothing else.
    """
    if isinstance(said, dict):
        if said.get("$ref") in labels and len(said) == 1:
            return None
        kept = {key: _without_references(each, labels) for key, each in said.items()}
        return {key: each for key, each in kept.items() if said[key] is None or each is not None}
    if isinstance(said, list):
        left = [_without_references(each, labels) for each in said]
        return left if not said or any(each is not None for each in left) else None
    return said


def unwrapped(response: Any) -> str:
    """The text of a result: that of its one field, where it is such a wrapper; else its JSON."""
    if isinstance(response, dict) and len(response) == 1:
        ((name, value),) = response.items()
        if name in WRAPPERS:
            return value if isinstance(value, str) else dumps(value)
    return dumps(response)


def _model(parts: list[dict[str, Any]], model: str, count: int) -> Message:
    found: list[Part] = []
    calls: list[ToolCall] = []
    for part in parts:
        if raw := part.get("functionCall"):
            id = raw.get("id") or f"{NO_ID}{count + len(calls)}"
            signature = part.get("thoughtSignature")
            arguments = dumps(raw.get("args") or {})
            calls.append(
                ToolCall(id=id, name=raw["name"], arguments=arguments, signature=signature)
            )
            found.append(CallRef(id))
        else:
            found.append(_part(part, model))
    while found and type(found[-1]) is CallRef:
        found.pop()
    return Message.assistant(message_content(found), calls, model=model)


def _part(part: dict[str, Any], model: str) -> Part:
    signature = part.get("thoughtSignature")
    if isinstance(part.get("text"), str):
        if part.get("thought"):
            return Thinking(part["text"], signature)
        return Text(part["text"], FrozenDict({"signature": signature}) if signature else EMPTY)
    inline, file = part.get("inlineData"), part.get("fileData")
    if inline and not (signature or part.get("thought") or "videoMetadata" in part):
        return media(inline.get("data"), inline.get("mimeType"), inline.get("displayName"))
    if file and "videoMetadata" not in part:
        return File(url=file["fileUri"], media_type=file.get("mimeType"))
    return opaque(model.partition(":")[0], part)
