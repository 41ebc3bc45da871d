"""OpenAI's Chat Completions, and what other servers make of it.

An answer has choices, of which the first is read. A stream sends pieces of it: text is joined,
calls are joined by their `index`. What compatible servers add or leave out:

- thinking is in `reasoning_content` or `reasoning`, in pieces of `reasoning_details` beside it or
  alone, or in the list that `content` may be; signatures and sealed thinking are in
  `reasoning_details`, `thought_signature` and `extra_content`
- a chunk may hold the whole `message` so far beside its delta, or at the end in its place
- the usage comes with the last choice, or in it, in a chunk without choices, or as `x_groq.usage`
- calls may lack their index or their id; two calls may share an index and differ in their id
- `[DONE]` may be missing, and so may `finish_reason`: either is an end
"""

import json
from typing import Any

from holdfast.testing.replay.readings.base import (
    Call,
    Reading,
    count,
    first_count,
    inner,
    loads,
    objects,
    parsed,
    sse_objects,
    string,
)
from holdfast.usage import Usage

STOPS = {
    **dict.fromkeys(("stop", "end_turn", "stop_sequence", "eos"), "stop"),
    **dict.fromkeys(("tool_calls", "function_call", "tool_use"), "tool_use"),
    **dict.fromkeys(("length", "max_tokens", "model_length"), "max_tokens"),
    **dict.fromkeys(("content_filter", "safety", "sensitive"), "safety"),
    "network_error": "error",
}


def read(data: bytes, is_sse: bool) -> Reading:
    """The answer in a body or a stream."""
    if is_sse:
        return _stream(*sse_objects(data))
    body = loads(data)
    if not isinstance(body, dict) or body.get("error") or not objects(body.get("choices")):
        return Reading(error=(body.get("error") or body) if isinstance(body, dict) else body)
    return of_body(body)


def of_body(body: dict[str, Any]) -> Reading:
    """A whole completion."""
    choice = _first(body)
    body = {"choice_usage": choice.get("usage"), **body}
    # `finish_details` is what an early model with eyes had in its place.
    reason = choice.get("finish_reason") or inner(choice, "finish_details").get("type")
    return _reading(body, inner(choice, "message"), reason, is_complete=True)


def _first(body: dict[str, Any]) -> dict[str, Any]:
    """The choice with the index 0; of a server that counts nothing, the first."""
    choices = objects(body.get("choices"))
    return next((each for each in choices if each.get("index", 0) in (0, None)), {})


def _stream(chunks: list[dict[str, Any]], is_done: bool) -> Reading:
    message: dict[str, Any] = {"texts": [], "details": [], "calls": [], "thinking": []}
    last: dict[str, Any] = {}
    reason, error, whole = None, None, dict[str, Any]()
    for chunk in chunks:
        error = error or chunk.get("error")
        last |= {k: v for k, v in chunk.items() if k in ("id", "usage", "x_groq") and v}
        choice = _first(chunk)
        _extend(message, inner(choice, "delta"))
        whole = inner(choice, "message") or whole
        last |= {"choice_usage": choice["usage"]} if choice.get("usage") else {}
        reason = choice.get("finish_reason") or reason
    message["tool_calls"] = message.pop("calls")
    if not any(message["texts"]) and not message["tool_calls"]:  # no delta said anything
        message |= whole | {"texts": [whole.get("content")]}
    is_complete = (is_done or reason is not None) and error is None
    reading = _reading(last, message, reason, is_complete=is_complete)
    return reading._replace(error=error)


def _extend(message: dict[str, Any], delta: dict[str, Any]) -> None:
    message["texts"] += [delta.get("content"), _spoken(delta)]
    message["thinking"].append(delta)
    message["details"] += objects(delta.get("reasoning_details"))
    for name in ("thought_signature", "extra_content"):
        if delta.get(name):
            message[name] = delta[name]
    message["refusal"] = string(message.get("refusal")) + string(delta.get("refusal"))
    if legacy := inner(delta, "function_call"):
        so_far = message.setdefault("function_call", {"name": "", "arguments": ""})
        for name in so_far:
            so_far[name] += string(legacy.get(name))
    pieces = objects(delta.get("tool_calls"))
    for place, piece in enumerate(pieces):
        _extend_call(message["calls"], piece, place if len(pieces) > 1 else None)


def _extend_call(calls: list[dict[str, Any]], piece: dict[str, Any], place: int | None) -> None:
    """Put a piece to the call that it continues, or begin a new one.

    `place`: among several pieces that came at once.
    """
    index, id = piece.get("index"), piece.get("id")
    found = [call for call in calls if call["index"] == index and index is not None]
    if index is None:
        found = [call for call in calls if id and call["id"] == id]
        if not found and not id and not inner(piece, "function").get("name"):
            found = calls[-1:] if place is None else calls[place : place + 1]
    call = found[-1] if found else None
    if call is None or (id and call["id"] and id != call["id"] and _name(piece)):
        calls.append({"index": index, "id": id, "type": piece.get("type"), **_empty()})
        call = calls[-1]
    call["id"] = call["id"] or id
    call["type"] = call["type"] or piece.get("type")
    for kind, field in (("function", "arguments"), ("custom", "input")):
        if inner(piece, kind).get("name") != call[kind]["name"]:  # some repeat it in each piece
            call[kind]["name"] += string(inner(piece, kind).get("name"))
        arguments = inner(piece, kind).get(field)
        written = json.dumps(arguments) if isinstance(arguments, dict) else string(arguments)
        call[kind][field] += written
    if piece.get("extra_content"):
        call["extra_content"] = piece["extra_content"]


def _empty() -> dict[str, Any]:
    return {"function": {"name": "", "arguments": ""}, "custom": {"name": "", "input": ""}}


def _name(piece: dict[str, Any]) -> Any:
    return inner(piece, "function").get("name") or inner(piece, "custom").get("name")


def _reading(
    body: dict[str, Any], message: dict[str, Any], reason: Any, *, is_complete: bool
) -> Reading:
    deltas = message.get("thinking", [message])
    contents = message.get("texts", [message.get("content"), _spoken(message)])
    calls = _calls(message)
    details = message.get("details") or objects(message.get("reasoning_details"))
    told = inner(body, "usage") or inner(body, "x_groq", "usage") or inner(body, "choice_usage")
    usage, outputs_also = _usage(told)
    stop = _stop(reason, declined=bool(string(message.get("refusal"))))
    return Reading(
        id=body.get("id"),
        text="".join(map(_text, contents)),
        thinking="".join(map(_thinking, deltas)) + "".join(map(_thinking_parts, contents)),
        calls=calls,
        signatures=_signatures(message, details),
        refusal=string(message.get("refusal")),
        stop="tool_use" if calls and stop == "stop" else stop,
        stops_also=("tool_use",) if calls and stop == "unknown" else (),
        usage=usage,
        outputs_also=outputs_also,
        is_complete=is_complete,
    )


def _stop(reason: Any, *, declined: bool) -> str:
    if not isinstance(reason, str) or not reason:
        return "unknown"
    stop = STOPS.get(reason) or STOPS.get(reason.lower(), reason)
    return "safety" if declined and stop == "stop" else stop


def _text(content: Any) -> str:
    parts = objects(content)
    return string(content) + "".join(
        string(part.get("text")) for part in parts if part.get("type") in ("text", "output_text")
    )


def _spoken(message: dict[str, Any]) -> str:
    """The words of what is said aloud."""
    return string(inner(message, "audio").get("transcript"))


def _thinking_parts(content: Any) -> str:
    """Mistral's: `{"type": "thinking", "thinking": [{"type": "text", "text": ...}]}`."""
    parts = [part for part in objects(content) if part.get("type") == "thinking"]
    return "".join(string(p.get("thinking")) or _text(p.get("thinking")) for p in parts)


def _thinking(message: dict[str, Any]) -> str:
    """The same words may stand in several fields; the first that has some is taken."""
    for name in ("reasoning_content", "reasoning", "reasoning_text"):
        if string(message.get(name)):
            return string(message[name])
    details = objects(message.get("reasoning_details"))
    return "".join(string(d.get("text")) or string(d.get("summary")) for d in details)


def _signatures(message: dict[str, Any], details: list[dict[str, Any]]) -> tuple[str, ...]:
    found = [string(d.get(name)) for d in details for name in ("signature", "data")]
    found.append(string(message.get("thought_signature")))
    holders = [message, *objects(message.get("tool_calls"))]
    found += [string(inner(h, "extra_content", "google").get("thought_signature")) for h in holders]
    return tuple(dict.fromkeys(each for each in found if each))


def _calls(message: dict[str, Any]) -> tuple[Call, ...]:
    found = []
    for call in objects(message.get("tool_calls")):
        function, custom = inner(call, "function"), inner(call, "custom")
        if call.get("type") == "custom" or (custom.get("name") and not function.get("name")):
            found.append(
                Call(
                    call.get("id"),
                    string(custom.get("name")),
                    {"input": string(custom.get("input"))},
                )
            )
        else:
            arguments = function.get("arguments")
            value = parsed(arguments) if isinstance(arguments, str) else arguments or {}
            found.append(Call(call.get("id") or None, string(function.get("name")), value))
    legacy = inner(message, "function_call")
    if legacy.get("name"):  # some servers send an empty one with every answer
        found.append(Call(None, legacy["name"], parsed(string(legacy.get("arguments")))))
    return tuple(found)


def _usage(raw: dict[str, Any]) -> tuple[Usage, tuple[int, ...]]:
    prompt, written = count(raw.get("prompt_tokens")), count(raw.get("completion_tokens"))
    details = inner(raw, "prompt_tokens_details")
    cached = (details.get("cached_tokens"), raw.get("prompt_cache_hit_tokens"))
    reasoning = first_count(
        inner(raw, "completion_tokens_details").get("reasoning_tokens"), raw.get("reasoning_tokens")
    )
    usage = Usage(
        input=prompt,
        output=written,
        cache_read=first_count(
            *cached, raw.get("cached_tokens"), raw.get("cache_read_input_tokens")
        ),
        cache_write=first_count(
            details.get("cache_write_tokens"), raw.get("cache_creation_input_tokens")
        ),
        reasoning=reasoning,
    )
    return usage, _outputs_also(usage, count(raw.get("total_tokens")))


def _outputs_also(usage: Usage, whole: int | None) -> tuple[int, ...]:
    """Some servers do not count what was thought in `completion_tokens`; a total may tell."""
    if usage.input is None or usage.output is None:
        return ()
    also = []
    if whole is not None and whole > usage.input + usage.output:
        also.append(whole - usage.input)
    if usage.reasoning and usage.reasoning > usage.output:
        also.append(usage.output + usage.reasoning)
    return tuple(also)
