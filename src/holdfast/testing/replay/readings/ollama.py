"""Ollama's own API: one document, or one a line with a piece of the message in each.

The words are in `message.content` (`/api/chat`) or in `response` (`/api/generate`). A call comes
whole; newer servers give it an id. The line with `"done": true` is the end, and has the tokens.
"""

from typing import Any

from holdfast.testing.replay.readings.base import (
    Call,
    Reading,
    count,
    inner,
    lines,
    loads,
    objects,
    parsed,
    string,
)
from holdfast.usage import Usage

STOPS = {"stop": "stop", "length": "max_tokens", "": "stop"}


def read(data: bytes, is_lines: bool) -> Reading:
    """The answer in a body or a stream."""
    if is_lines:
        found = [value for value in map(loads, lines(data)) if isinstance(value, dict)]
        return of_lines(found)
    body = loads(data)
    if not isinstance(body, dict):
        return Reading(error=body)
    return of_lines([{**body, "done": True}])


def of_lines(documents: list[dict[str, Any]]) -> Reading:
    """A stream, as far as it came."""
    error = next((each["error"] for each in documents if each.get("error")), None)
    last = next((each for each in documents if each.get("done") is True), {})
    said = [inner(each, "message") for each in documents]
    calls = tuple(_call(raw) for each in said for raw in objects(each.get("tool_calls")))
    reason = string(last.get("done_reason"))
    stop = STOPS.get(reason, reason) if last else "unknown"
    return Reading(
        text="".join(string(m.get("content")) for m in said)
        + "".join(string(each.get("response")) for each in documents),
        thinking="".join(string(m.get("thinking")) for m in said)
        + "".join(string(each.get("thinking")) for each in documents),
        calls=calls,
        stop="tool_use" if calls and stop == "stop" else stop,
        usage=Usage(
            input=count(last.get("prompt_eval_count")),
            output=count(last.get("eval_count")),
            cache_read=count(last.get("prompt_eval_cached_count")),
        ),
        is_complete=bool(last) and error is None,
        error=error,
    )


def _call(raw: dict[str, Any]) -> Call:
    function = inner(raw, "function")
    arguments = function.get("arguments") or {}
    if isinstance(arguments, str):  # of servers that only speak the wire
        arguments = parsed(arguments)
    return Call(raw.get("id") or None, string(function.get("name")), arguments)
