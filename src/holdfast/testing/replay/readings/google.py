"""Google's generateContent, of the Gemini API and of Vertex, whole and streamed.

A stream is a sequence of answers, each with more parts, as server-sent events or as one JSON
array; the last usage counts. A part is text, thought (text with `thought`), a call, data, or
something of Google's own, and any of them may carry a `thoughtSignature`. The arguments of a
call may come in pieces (`partialArgs`), each with the path of the value that it belongs to.
"""

import base64
import binascii
import re
from copy import copy
from itertools import pairwise
from typing import Any

from holdfast.testing.replay.readings.base import (
    Call,
    Reading,
    array_items,
    count,
    digest,
    inner,
    loads,
    objects,
    sse_objects,
    string,
    total,
)
from holdfast.usage import Usage

# Vertex says the number of the enum in some recordings.
NUMBERS = (
    *("FINISH_REASON_UNSPECIFIED", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER"),
    *("BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MALFORMED_FUNCTION_CALL", "MODEL_ARMOR"),
)
STOPS = {
    "STOP": "stop",
    "MAX_TOKENS": "max_tokens",
    **dict.fromkeys(("SAFETY", "RECITATION", "PROHIBITED_CONTENT", "BLOCKLIST"), "safety"),
    **dict.fromkeys(("SPII", "IMAGE_SAFETY", "LANGUAGE", "MODEL_ARMOR"), "safety"),
    **dict.fromkeys(("IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"), "safety"),
    **dict.fromkeys(("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"), "error"),
    **dict.fromkeys(("OTHER", "FINISH_REASON_UNSPECIFIED"), "unknown"),
}


def read(data: bytes, is_sse: bool) -> Reading:
    """The answer in a body or a stream."""
    if is_sse:
        return of_chunks(sse_objects(data)[0], is_whole=False)
    if data.lstrip()[:1] == b"[":
        return of_chunks(objects(array_items(data.lstrip())), is_whole=False)
    body = loads(data)
    return of_chunks([body] if isinstance(body, dict) else [], is_whole=body is not None)


def of_chunks(chunks: list[dict[str, Any]], *, is_whole: bool) -> Reading:
    """One answer, or the pieces of one."""
    error = next((chunk["error"] for chunk in chunks if chunk.get("error")), None)
    candidates = [first for chunk in chunks if (first := _first(chunk))]
    reasons = [c["finishReason"] for c in reversed(candidates) if c.get("finishReason")]
    reason = next((each for each in reasons if each != NUMBERS[0]), None)  # said of what goes on
    blocked = any(inner(chunk, "promptFeedback").get("blockReason") for chunk in chunks)
    parts = [p for c in candidates for p in objects(inner(c, "content").get("parts"))]
    reading = _of_parts(parts)
    stop, also = _stop(reason, bool(reading.calls))
    return reading._replace(
        id=next((chunk["responseId"] for chunk in chunks if chunk.get("responseId")), None),
        stop=stop,
        stops_also=also,
        usage=(usage := _usage([u for chunk in chunks if (u := inner(chunk, "usageMetadata"))])),
        outputs_also=() if usage.output else (0,),  # Google leaves out what is 0
        # Where nobody answers, a whole document is not an answer, either.
        is_complete=error is None
        and ((is_whole and bool(candidates)) or reason is not None or blocked),
        error=error,
        is_blocked=blocked and not candidates,
    )


def _first(chunk: dict[str, Any]) -> dict[str, Any] | None:
    found = objects(chunk.get("candidates"))
    return next((each for each in found if each.get("index", 0) == 0), None)


def _stop(reason: Any, has_calls: bool) -> tuple[str, tuple[str, ...]]:
    if isinstance(reason, int):
        reason = NUMBERS[reason] if reason < len(NUMBERS) else "OTHER"
    if reason is None:
        return "unknown", ("tool_use",) if has_calls else ()
    stop = STOPS.get(reason)
    if stop is None:  # a word that is not in the table: as it is, or as what it amounts to
        return reason, ("error", "unknown", "safety")
    return ("tool_use" if has_calls and stop == "stop" else stop), ()


def _of_parts(parts: list[dict[str, Any]]) -> Reading:
    text, thinking, calls, blocks, media = (
        "",
        "",
        list[_Call](),
        list[dict[str, Any]](),
        list[str](),
    )
    for part in parts:
        if "functionCall" in part:
            _take_call(calls, part)
        elif isinstance(part.get("text"), str):
            if part.get("thought"):
                thinking += part["text"]
            else:
                text += part["text"]
        elif (inline := inner(part, "inlineData")) and not part.get("thought"):
            media.append(_digest(string(inline.get("data"))))
        elif set(part) - {"thoughtSignature", "thought"}:
            blocks.append(part)
    return Reading(
        text=text,
        thinking=thinking,
        calls=tuple(call.done() for call in calls if call.name),
        signatures=tuple(s for part in parts if (s := string(part.get("thoughtSignature")))),
        blocks=tuple(blocks),
        media=tuple(media),
    )


class _Call:
    """A call that may come in several parts."""

    def __init__(self) -> None:
        self.id: str | None = None
        self.name = ""
        self.arguments: dict[str, Any] = {}
        self.signature: str | None = None
        self.goes_on = False

    def done(self) -> Call:
        return Call(self.id, self.name, self.arguments, self.signature)


def _take_call(calls: list[_Call], part: dict[str, Any]) -> None:
    """A part without a name goes on with the call before it, if that one said it would go on."""
    raw = inner(part, "functionCall")
    if raw.get("name") or not calls or not calls[-1].goes_on:
        calls.append(_Call())
    call = calls[-1]
    call.id = call.id or raw.get("id")
    call.name = call.name or string(raw.get("name"))
    call.signature = call.signature or part.get("thoughtSignature")
    call.arguments |= inner(raw, "args")
    for piece in objects(raw.get("partialArgs")):
        _put(call.arguments, string(piece.get("jsonPath")), piece)
    call.goes_on = bool(raw.get("willContinue"))


def _put(arguments: dict[str, Any], path: str, piece: dict[str, Any]) -> None:
    """Put a value where its path says: $.a.b[0]. Texts come in pieces and are joined."""
    keys = [
        int(n) if n else a or b for a, n, b in re.findall(r"\.(\w+)|\[(\d+)\]|\['([^']*)'\]", path)
    ]
    holder: Any = arguments
    for key, following in pairwise(keys):
        holder = _slot(holder, key, [] if isinstance(following, int) else {})
    value = next((piece[k] for k in ("numberValue", "boolValue") if k in piece), None)
    if "stringValue" in piece:
        value = string(_slot(holder, keys[-1], "")) + piece["stringValue"]
    _slot(holder, keys[-1], value)
    holder[keys[-1]] = value


def _slot(holder: Any, key: Any, empty: Any) -> Any:
    if isinstance(holder, list):
        while len(holder) <= key:
            holder.append(copy(empty))
        return holder[key]
    return holder.setdefault(key, empty)


def _digest(data: str) -> str:
    try:
        return digest(base64.b64decode(data, validate=False))
    except binascii.Error:
        return digest(data.encode())


def _usage(said: list[dict[str, Any]]) -> Usage:
    """The last that was said of each count: a stream repeats them as they grow."""
    raw: dict[str, Any] = {}
    for each in said:
        raw |= each
    thoughts = count(raw.get("thoughtsTokenCount"))
    prompt = count(raw.get("promptTokenCount"))
    return Usage(
        input=None if prompt is None else total(prompt, count(raw.get("toolUsePromptTokenCount"))),
        output=total(count(raw.get("candidatesTokenCount")), thoughts),
        cache_read=count(raw.get("cachedContentTokenCount")),
        reasoning=thoughts,
    )
