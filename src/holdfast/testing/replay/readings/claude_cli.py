"""What the `claude` program prints: a line of JSON for each thing that happens.

Words come in events of the Messages API (`stream_event`), and once more in whole messages
(`assistant`), which count where no events came. The program runs its tools itself: their calls and
their results (`user`) are blocks. Lines with a `parent_tool_use_id` belong to a subagent. The first
`result` is the end, and has the tokens of all together; one of an old program has none, and then
those of the last message are what is known.
"""

from typing import Any

from holdfast.testing.replay.readings import anthropic
from holdfast.testing.replay.readings.base import Reading, inner, loads, objects, string


def read(data: bytes) -> Reading:
    """What one run of the program said."""
    lines = [line for line in map(loads, data.split(b"\n")[:-1]) if isinstance(line, dict)]
    own = [line for line in lines if line.get("parent_tool_use_id") is None]
    end = next((at for at, line in enumerate(own) if line.get("type") == "result"), None)
    content, last, used = _content(own[:end])
    result = {} if end is None else own[end]
    subtype = string(result.get("subtype"))
    is_limit = subtype.startswith("error_max_")
    if end is not None and not is_limit and (result.get("is_error") or subtype != "success"):
        return Reading(error=result.get("errors") or result.get("result"))
    if not content and result.get("result"):
        content = [{"type": "text", "text": result["result"]}]
    reason = result.get("stop_reason") or last or "end_turn"
    stop = subtype.removeprefix("error_") if is_limit else reason
    usage = inner(result, "usage") or used
    message = {"content": content, "stop_reason": stop, "usage": usage}
    reading = anthropic.of_message(message, is_complete=end is not None)
    ours = [kind for kind in anthropic.CANONICAL if kind != "tool_use"]
    blocks = tuple(block for block in content if block.get("type") not in ours)
    return reading._replace(calls=(), blocks=blocks)


def _content(
    lines: list[dict[str, Any]],
) -> tuple[list[dict[str, Any]], Any, dict[str, Any]]:
    """All blocks, in order, why the model stopped last, and the tokens of its last message."""
    content: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = []
    streamed: set[Any] = set()
    last, used = None, dict[str, Any]()
    for line in [*lines, {"type": "stream_event", "event": {"type": "message_start"}}]:
        message, event = inner(line, "message") or line, inner(line, "event")
        if line.get("type") == "stream_event":
            if event.get("type") == "message_start":
                whole = anthropic.message_of(events)[0]
                content, last = content + whole["content"], whole.get("stop_reason") or last
                used = whole["usage"] or used
                events = []
                streamed.add(inner(event, "message").get("id"))
            events.append(event)
        elif line.get("type") == "assistant" and message.get("id") not in streamed:
            content += objects(message.get("content"))
            last = message.get("stop_reason") or last
            used = inner(message, "usage") or used
        elif line.get("type") == "user":
            told = objects(message.get("content"))
            content += [block for block in told if block.get("type") == "tool_result"]
    return content, last, used
