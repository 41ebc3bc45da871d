"""Recorded requests as messages and tools, with the prompt tokens that the vendor reported.

For measuring token counters against the truth: `prompts(folder)` reads the traffic of a corpus.
Left out are requests that a count of what was sent cannot be right for: what the vendor added from
its own storage (files, addresses, caches, earlier responses), its own tools, and output schemas,
of which nobody knows how they are shown to the model.
"""

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from holdfast import Message, Tool, ToolCall
from holdfast.parts import File, Image, Text, Thinking

FOLDERS = ("anthropic", "openai-chat", "openai-responses", "azure-openai", "google")
VENDORS = {"anthropic": "anthropic", "azure-openai": "azure", "google": "google"}


class Prompt(NamedTuple):
    file: str
    vendor: str
    model: str
    system: str | None
    messages: list[Message]
    tools: list[Tool]
    tokens: int


class Unfit(Exception):
    """This request cannot be counted from what was sent."""


def prompts(traffic: Path, folders: tuple[str, ...] = FOLDERS) -> Iterator[Prompt]:
    for folder in folders:
        for path in sorted((traffic / folder).glob("*.json")):
            data = json.loads(path.read_text(encoding="utf-8"))
            for exchange in data["exchanges"] if data["provenance"] == "recorded" else ():
                body, path_said = exchange["request"]["body"], exchange["request"]["path"]
                tokens = _reported(exchange["response"])
                if (
                    not isinstance(body, dict)
                    or exchange["response"]["status"] != 200
                    or not tokens
                ):
                    continue
                body = body.get("generateContentRequest") or body
                found = re.search(r"models/([^:?]+)", path_said)
                model = body.get("model") or (found[1] if found else "")
                try:
                    said = _read(body)
                except Unfit:
                    continue
                vendor = VENDORS.get(folder, "openai")
                yield Prompt(path.name, vendor, model, *said, tokens)


# ---- what was reported ----


def _reported(response: dict) -> int:
    """The prompt tokens in the last report; all of them, those of a cache too."""
    tokens = 0
    for event in _events(response):
        for holder in (event, event.get("message"), event.get("response")):
            usage = isinstance(holder, dict) and (
                holder.get("usage") or holder.get("usageMetadata") or _counted(holder)
            )
            if isinstance(usage, dict):
                tokens = _prompt_of(usage) or tokens
    return tokens


def _counted(holder: dict) -> dict | None:
    if set(holder) == {"input_tokens"}:
        return holder
    return {"promptTokenCount": holder["totalTokens"]} if "totalTokens" in holder else None


def _prompt_of(usage: dict) -> int:
    names = ("cache_read_input_tokens", "cache_creation_input_tokens")
    cached = sum(usage.get(name) or 0 for name in names)
    known = ("promptTokenCount", "prompt_tokens", "input_tokens")
    return next((usage[name] or 0 for name in known if name in usage), 0) + cached


def _events(response: dict) -> Iterator[dict]:
    body = response.get("body")
    yield from (each for each in (body if isinstance(body, list) else [body]) if each)
    for line in (response.get("sse") or "").splitlines():
        if line.startswith("data:") and line[5:].strip().startswith("{"):
            yield json.loads(line[5:])


# ---- what was sent ----


def _read(body: dict) -> tuple[str | None, list[Message], list[Tool]]:
    odd = ("previous_response_id", "conversation", "cachedContent", "response_format", "container")
    odd += ("mcp_servers", "output_format", "output_config", "prompt", "context_management")
    config = body.get("generationConfig") or {}
    kind = ((body.get("text") or {}).get("format") or {}).get("type", "text")
    if any(body.get(name) for name in odd) or kind != "text":
        raise Unfit
    if any("schema" in name.lower() for name in config):
        raise Unfit
    tools = [_tool(each) for tool in _tools(body) for each in _declared(tool)]
    if "contents" in body:
        system = body.get("systemInstruction") or body.get("system_instruction") or {}
        parts = system.get("parts") or []
        said = "".join(p.get("text", "") for p in (parts if isinstance(parts, list) else [parts]))
        return said or None, [_google(each) for each in body["contents"]], tools
    if "input" in body:
        given = body["input"]
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        return body.get("instructions"), [_item(each) for each in items], tools
    system = body.get("system")
    if isinstance(system, list):
        system = "".join(_text(block) for block in system)
    return system, [_chat(each) for each in body.get("messages") or _unfit()], tools


def _unfit() -> Any:
    raise Unfit


def _tools(body: dict) -> list[dict]:
    return [*(body.get("tools") or ()), *(body.get("functions") or ())]


def _declared(tool: dict) -> list[dict]:
    several = tool.get("functionDeclarations") or tool.get("function_declarations")
    if several:
        return several
    if tool.get("type", "function") not in ("function", "custom") or "format" in tool:
        raise Unfit
    single = tool.get("function") or tool
    return [single] if "name" in single else _unfit()


def _tool(declared: dict) -> Tool:
    names = ("parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema")
    schema = next((declared[name] for name in names if declared.get(name)), {})
    return Tool(declared["name"], declared.get("description") or "", schema | {"type": "object"})


def _text(block: dict) -> str:
    return block["text"] if block.get("type", "text") == "text" else _unfit()


def _data(url: str) -> bytes:
    head, _, data = url.partition("base64,")
    return base64.b64decode(data + "==") if head.startswith("data:") and data else _unfit()


def _chat(raw: dict) -> Message:
    """A message of Anthropic's wire or of Chat Completions."""
    parts: list = []
    calls = [_call(each) for each in raw.get("tool_calls") or ()]
    content = raw.get("content")
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content or ():
        kind = block["type"]
        if kind == "text":
            parts.append(Text(block["text"]))
        elif kind == "tool_use":
            calls.append(_call_of(block["id"], block["name"], block["input"]))
        elif kind == "tool_result":
            calls.append(_result(block))
        elif kind == "thinking":
            parts.append(Thinking(block["thinking"], block.get("signature")))
        elif kind == "image" and block["source"]["type"] == "base64":
            parts.append(Image(data=base64.b64decode(block["source"]["data"])))
        elif kind == "image_url":
            parts.append(Image(data=_data(_url(block["image_url"]))))
        elif kind == "file":
            parts.append(File(data=_data(block["file"].get("file_data") or "")))
        else:
            raise Unfit
    role = "system" if raw["role"] == "developer" else raw["role"]
    return Message(role, parts, tool_calls=calls, tool_call_id=raw.get("tool_call_id"))


def _url(raw: Any) -> str:
    return raw["url"] if isinstance(raw, dict) else raw


def _call(raw: dict) -> ToolCall:
    function = raw.get("function") or _unfit()
    return ToolCall(id=raw["id"], name=function["name"], arguments=function["arguments"])


def _call_of(id: str, name: str, arguments: Any) -> ToolCall:
    return ToolCall(id=id, name=name, arguments=json.dumps(arguments, ensure_ascii=False))


def _result(block: dict) -> ToolCall:
    content = block.get("content") or ""
    if not isinstance(content, str):
        content = "".join(_text(each) for each in content)
    return ToolCall(id=block["tool_use_id"], name="", arguments="", output=content)


def _item(raw: dict) -> Message:
    """An item of the Responses API."""
    kind = raw.get("type", "message")
    if kind == "function_call":
        call = ToolCall(id=raw["call_id"], name=raw["name"], arguments=raw["arguments"])
        return Message.assistant(tool_calls=[call])
    if kind == "function_call_output" and isinstance(raw["output"], str):
        return Message.tool(raw["output"], raw["call_id"])
    if kind != "message":
        raise Unfit
    parts: list = []
    content = raw["content"]
    blocks = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
    for block in blocks:
        if block["type"] in ("input_text", "output_text"):
            parts.append(Text(block["text"]))
        elif block["type"] == "input_image":
            parts.append(Image(data=_data(block.get("image_url") or "")))
        else:
            raise Unfit
    return Message("system" if raw["role"] == "developer" else raw["role"], parts)


def _google(raw: dict) -> Message:
    parts: list = []
    calls = []
    for block in raw["parts"]:
        inline = block.get("inlineData") or block.get("inline_data")
        call = block.get("functionCall") or block.get("function_call")
        result = block.get("functionResponse") or block.get("function_response")
        if call:
            made = _call_of("", call["name"], call.get("args") or {})
            signature = block.get("thoughtSignature") or block.get("thought_signature")
            calls.append(made.replace(signature=signature))
        elif result and not result.get("parts"):
            output = json.dumps(result.get("response"), ensure_ascii=False)
            calls.append(ToolCall(id="", name=result["name"], arguments="", output=output))
        elif inline:
            parts.append(_inline(inline))
        elif "text" in block and not block.get("thought"):
            parts.append(Text(block["text"]))
        else:
            raise Unfit
    return Message(
        "user" if raw.get("role", "user") == "user" else "model", parts, tool_calls=calls
    )


def _inline(inline: dict) -> Image | File:
    kind = inline.get("mimeType") or inline.get("mime_type")
    data = base64.b64decode(inline["data"].replace("-", "+").replace("_", "/") + "==")
    if kind.startswith("image/"):
        return Image(data=data, media_type=kind)
    if kind.startswith(("audio/", "video/")):
        raise Unfit
    return File(data=data, media_type=kind)
