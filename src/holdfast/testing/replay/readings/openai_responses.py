"""OpenAI's Responses API.

An answer has a list of output items: messages, calls, reasoning, and what the service did with
tools of its own. A stream begins each item (`output_item.added`), continues it in deltas, ends it
whole (`output_item.done`), and ends itself with the whole answer in `response.completed`,
`.incomplete` or `.failed`. Where both are there the last word counts.
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
)
from holdfast.usage import Usage

ENDS = ("response.completed", "response.incomplete", "response.failed")
CANONICAL = ("message", "reasoning", "function_call", "custom_tool_call")
WHY_INCOMPLETE = {"max_output_tokens": "max_tokens", "content_filter": "safety"}


def read(data: bytes, is_sse: bool) -> Reading:
    """The answer in a body or a stream."""
    if is_sse:
        return _stream(sse_objects(data)[0])
    body = loads(data)
    if not isinstance(body, dict) or body.get("error") or not isinstance(body.get("output"), list):
        return Reading(error=(body.get("error") or body) if isinstance(body, dict) else body)
    return of_body(body)


def of_body(body: dict[str, Any]) -> Reading:
    """A whole response, which is none while the service works on it in the background."""
    is_complete = body.get("status") not in ("queued", "in_progress")
    return _reading(body, objects(body.get("output")), is_complete=is_complete)


def _stream(events: list[dict[str, Any]]) -> Reading:
    items: dict[Any, dict[str, Any]] = {}
    response: dict[str, Any] = {}
    is_complete = False
    errors: list[Any] = []
    for event in events:
        if is_complete:
            break
        kind = string(event.get("type"))
        response = inner(event, "response") or response
        if kind in ("response.output_item.added", "response.output_item.done"):
            _put(items, event)
        elif kind.endswith(".delta"):
            _extend(items.setdefault(_index(items, event), {}), kind, event)
        elif kind in ENDS:
            is_complete = kind != "response.failed"
        if kind in ("error", "response.failed"):
            errors.append(event.get("error") or inner(event, "response", "error") or event)
    output = objects(response.get("output")) if is_complete else []
    reading = _reading(response, output or _in_order(items), is_complete=is_complete)
    # There may be two, which say different things: an `error`, and the end that it led to.
    return reading._replace(error=errors or None, is_complete=is_complete and not errors)


def _put(items: dict[Any, dict[str, Any]], event: dict[str, Any]) -> None:
    """An item, begun or done. Some servers do not say again what its pieces said."""
    so_far, item = items.get(event.get("output_index"), {}), inner(event, "item")
    said = {name: value for name, value in item.items() if value or not so_far.get(name)}
    items[event.get("output_index")] = so_far | said


def _index(items: dict[Any, dict[str, Any]], event: dict[str, Any]) -> Any:
    """Which item a piece belongs to; some servers tell it by the item's id alone."""
    found = (at for at, item in items.items() if item.get("id") == event.get("item_id"))
    return event.get("output_index", next(found, None))


def _in_order(items: dict[Any, dict[str, Any]]) -> list[dict[str, Any]]:
    return [items[index] for index in sorted(items, key=lambda index: index or 0)]


def _extend(item: dict[str, Any], kind: str, event: dict[str, Any]) -> None:
    """A piece of an item that is not done yet; what is done holds all of it again."""
    delta = string(event.get("delta"))
    if kind == "response.output_text.delta":
        _extend_part(item, "content", event.get("content_index"), "output_text", delta)
    elif kind == "response.refusal.delta":
        _extend_part(item, "content", event.get("content_index"), "refusal", delta)
    elif kind == "response.reasoning_summary_text.delta":
        _extend_part(item, "summary", event.get("summary_index"), "summary_text", delta)
    elif kind == "response.reasoning_text.delta":
        _extend_part(item, "content", event.get("content_index"), "reasoning_text", delta)
    elif kind == "response.function_call_arguments.delta":
        item["arguments"] = string(item.get("arguments")) + delta
    elif kind == "response.custom_tool_call_input.delta":
        item["input"] = string(item.get("input")) + delta


def _extend_part(item: dict[str, Any], field: str, index: Any, kind: str, delta: str) -> None:
    item.setdefault("type", "reasoning" if "text" in kind and field == "summary" else "message")
    parts = item.setdefault(field, [])
    if not isinstance(parts, list):
        parts = item[field] = []
    while len(parts) <= (index or 0):
        parts.append({"type": kind})
    part = parts[index or 0]
    name = "refusal" if kind == "refusal" else "text"
    part[name] = string(part.get(name)) + delta


def _reading(
    response: dict[str, Any], items: list[dict[str, Any]], *, is_complete: bool
) -> Reading:
    thoughts = [item for item in items if item.get("type") == "reasoning"]
    said = [
        part
        for item in items
        if item.get("type") == "message"
        for part in objects(item.get("content"))
    ]
    # xAI's own tools are named in items with which others ask their caller to run something.
    is_xai = string(response.get("model")).startswith("grok")
    canonical = CANONICAL[:-1] if is_xai else CANONICAL
    # What was cut off in the middle of its arguments is no call.
    called = [item for item in items if item.get("type") in canonical[2:]]
    calls = tuple(_call(item) for item in called if item.get("status") != "incomplete")
    stop, also = _stop(response, bool(calls))
    if stop == "stop" and any(part.get("type") == "refusal" for part in said):
        stop = "safety"
    return Reading(
        id=response.get("id"),
        text="".join(string(p.get("text")) for p in said if p.get("type") == "output_text"),
        refusal="".join(string(p.get("refusal")) for p in said if p.get("type") == "refusal"),
        thinking="".join(map(_thinking, thoughts)),
        calls=calls,
        signatures=tuple(s for item in thoughts if (s := string(item.get("encrypted_content")))),
        blocks=tuple(item for item in items if item.get("type") not in canonical),
        stop=stop,
        stops_also=also,
        usage=_usage(inner(response, "usage")),
        is_complete=is_complete,
        error=response.get("error") if response.get("status") == "failed" else None,
    )


def _thinking(item: dict[str, Any]) -> str:
    """The summary, and the thoughts themselves where a server shows them."""
    parts = objects(item.get("summary")) + objects(item.get("content"))
    return "".join(string(part.get("text")) for part in parts)


def _call(item: dict[str, Any]) -> Call:
    if item.get("type") == "custom_tool_call":
        said = {"input": string(item.get("input"))}  # text, as the arguments of a tool
        return Call(item.get("call_id"), string(item.get("name")), said)
    arguments = parsed(string(item.get("arguments")))
    return Call(item.get("call_id"), string(item.get("name")), arguments)


def _stop(response: dict[str, Any], has_calls: bool) -> tuple[str, tuple[str, ...]]:
    status = response.get("status")
    if status == "incomplete":
        why = inner(response, "incomplete_details").get("reason")
        if not isinstance(why, str):
            return "unknown", ("max_tokens",)  # as in recordings that their source has trimmed
        return WHY_INCOMPLETE.get(why, why), ()
    if status in ("completed", "complete", None):
        return ("tool_use" if has_calls else "stop"), ("unknown",) if status is None else ()
    return {"failed": "error", "cancelled": "cancelled"}.get(status, "unknown"), ()


def _usage(raw: dict[str, Any]) -> Usage:
    details = inner(raw, "input_tokens_details")
    return Usage(
        input=count(raw.get("input_tokens")),
        output=count(raw.get("output_tokens")),
        cache_read=count(details.get("cached_tokens")),
        cache_write=count(details.get("cache_write_tokens")),
        reasoning=count(inner(raw, "output_tokens_details").get("reasoning_tokens")),
    )
