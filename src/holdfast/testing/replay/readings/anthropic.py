"""Anthropic's Messages API.

An answer is a message with blocks. A stream sends the message (`message_start`), nearly always
empty, each block empty (`content_block_start`), its pieces (`content_block_delta`), and at last the
reason and the usage (`message_delta`) and `message_stop`. Counts of tokens in `message_delta` are
totals, and replace those of the start.
"""

from typing import Any

from holdfast.testing.replay.readings.base import (
    Call,
    Reading,
    count,
    inner,
    loads,
    objects,
    parsed,
    sse_objects,
    string,
    total,
)
from holdfast.usage import Usage

STOPS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "refusal": "safety",
}
CANONICAL = ("text", "thinking", "redacted_thinking", "tool_use")


def read(data: bytes, is_sse: bool) -> Reading:
    """The answer in a body or a stream."""
    if is_sse:
        return _stream(sse_objects(data)[0])
    body = loads(data)
    if not isinstance(body, dict) or body.get("type") == "error" or "content" not in body:
        return Reading(error=body.get("error", body) if isinstance(body, dict) else body)
    return of_message(body, is_complete=True)


def _stream(events: list[dict[str, Any]]) -> Reading:
    message, is_complete, error = message_of(events)
    return of_message(message, is_complete=is_complete and error is None)._replace(error=error)


def message_of(events: list[dict[str, Any]]) -> tuple[dict[str, Any], bool, Any]:
    """The message that events tell of, whether it has ended, and the error among them."""
    message: dict[str, Any] = {"content": [], "usage": {}}
    blocks: dict[Any, dict[str, Any]] = {}
    is_complete, error = False, None
    for event in events:
        kind = event.get("type")
        if kind == "message_start":
            message |= inner(event, "message") | {"usage": dict(inner(event, "message", "usage"))}
        elif kind == "content_block_start":
            blocks[event.get("index")] = {"json": "", **inner(event, "content_block")}
        elif kind == "content_block_delta":
            _extend(blocks.setdefault(event.get("index"), {"json": ""}), inner(event, "delta"))
        elif kind == "message_delta":
            message |= {k: v for k, v in inner(event, "delta").items() if v is not None}
            message["usage"] |= {k: v for k, v in inner(event, "usage").items() if v is not None}
        elif kind == "message_stop":
            is_complete = True
            break  # what a file has behind it is another answer
        elif kind == "error":
            error = event.get("error") or event
    begun = objects(message["content"])  # by a tool that a server's code has called
    message["content"] = begun + [_finished(block) for block in blocks.values()]
    return message, is_complete, error


def _extend(block: dict[str, Any], delta: dict[str, Any]) -> None:
    """Each kind of delta continues the field that it is named for."""
    kind = delta.get("type")
    if kind == "text_delta":
        block["text"] = string(block.get("text")) + string(delta.get("text"))
    elif kind == "thinking_delta":
        block["thinking"] = string(block.get("thinking")) + string(delta.get("thinking"))
    elif kind == "signature_delta":
        block["signature"] = string(block.get("signature")) + string(delta.get("signature"))
    elif kind == "input_json_delta":
        block["json"] += string(delta.get("partial_json"))
    elif kind == "citations_delta":
        block["citations"] = [*(block.get("citations") or []), delta.get("citation")]
    elif kind == "compaction_delta":
        block["content"] = string(block.get("content")) + string(delta.get("content"))
        if "encrypted_content" in delta:
            block["encrypted_content"] = delta["encrypted_content"]


def _finished(block: dict[str, Any]) -> dict[str, Any]:
    text = block.pop("json")
    if text:
        block["input"] = parsed(text)
        if isinstance(block["input"], str) and block.get("type") not in CANONICAL:
            block["input"] = {"arguments": text}  # what goes back has to be an object
    return block


def of_message(message: dict[str, Any], *, is_complete: bool = True) -> Reading:
    """A message with all its blocks."""
    content = objects(message.get("content"))

    def of(kind: str) -> list[dict[str, Any]]:
        return [block for block in content if block.get("type") == kind]

    reason = message.get("stop_reason")
    stop = STOPS.get(reason, reason) if isinstance(reason, str) and reason else "unknown"
    return Reading(
        id=message.get("id"),
        text="".join(string(block.get("text")) for block in of("text")),
        thinking="".join(string(block.get("thinking")) for block in of("thinking")),
        calls=tuple(
            Call(block.get("id"), string(block.get("name")), block.get("input", {}))
            for block in of("tool_use")
        ),
        signatures=tuple(s for b in of("thinking") if (s := string(b.get("signature")))),
        redacted=tuple(string(block.get("data")) for block in of("redacted_thinking")),
        blocks=tuple(block for block in content if block.get("type") not in CANONICAL),
        stop=stop,
        usage=_usage(inner(message, "usage")),
        is_complete=is_complete,
    )


def _usage(raw: dict[str, Any]) -> Usage:
    """`input_tokens` is what was neither read from a cache nor written to one."""
    read = count(raw.get("cache_read_input_tokens"))
    write = count(raw.get("cache_creation_input_tokens"))
    fresh = count(raw.get("input_tokens"))
    return Usage(
        input=None if fresh is None else total(fresh, read, write),
        output=count(raw.get("output_tokens")),
        cache_read=read,
        cache_write=write,
        reasoning=count(inner(raw, "output_tokens_details").get("thinking_tokens")),
    )
