"""What services would say: the same small answer in the words of each, whole and streamed.

Most have wires of their own, by whose rules requests are judged; some have an accent. An answer
is a list of steps, ("text", words) and ("call", id, name, pieces of arguments). It is made of parts
that the rows then break.
"""

import json
from typing import NamedTuple

USAGE = {"input": 11, "output": 7}
ANSWER = (
    ("text", "Let me "),
    ("text", "look é漢😀."),
    ("call", "call_1", "look", ('{"at":', ' "the sky"}')),
    ("call", "call_2", "look", ("{}",)),
)
SAID = "Let me look é漢😀."


class Event(NamedTuple):
    """One event of a stream: its name, if the service gives one, and JSON or bytes."""

    name: str | None
    data: object

    def encoded(self):
        data = self.data if isinstance(self.data, bytes) else dumped(self.data)
        return (
            (b"event: %b\n" % self.name.encode() if self.name else b"") + b"data: " + data + b"\n\n"
        )


class Line(NamedTuple):
    """One line of a stream that has no events: JSON or bytes."""

    name: None
    data: object

    def encoded(self):
        return (self.data if isinstance(self.data, bytes) else dumped(self.data)) + b"\n"


def dumped(value):
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def joined(events):
    return b"".join(event.encoded() for event in events)


class Anthropic:
    name, api, model, has_ids = "anthropic", "anthropic", "claude-sonnet-4-5", True
    error = Event("error", {"type": "error", "error": {"type": "api_error", "message": "oops"}})
    unknown = Event("sparkle", {"type": "sparkle", "index": 3, "glitter": [1, {}]})

    def events(self, steps, at=lambda number: number):
        start = {"id": "msg_1", "type": "message", "role": "assistant", "model": self.model}
        start |= {"content": [], "usage": {"input_tokens": 11, "output_tokens": 1}}
        events = [self._event("message_start", message=start)]
        for number, step in enumerate(grouped(steps)):
            if step[0] == "text":
                block, kind, field = {"type": "text", "text": ""}, "text_delta", "text"
            else:
                block = {"type": "tool_use", "id": step[1], "name": step[2], "input": {}}
                kind, field = "input_json_delta", "partial_json"
            index = at(number)
            events.append(self._event("content_block_start", index=index, content_block=block))
            for piece in step[-1]:
                delta = {"type": kind, field: piece}
                events.append(self._event("content_block_delta", index=index, delta=delta))
            events.append(self._event("content_block_stop", index=index))
        why = {"stop_reason": "tool_use" if has_calls(steps) else "end_turn"}
        usage = {"output_tokens": USAGE["output"]}
        events.append(self._event("message_delta", delta=why, usage=usage))
        return [*events, self._event("message_stop")]

    def _event(self, kind, **fields):
        return Event(kind, {"type": kind} | fields)

    def document(self, steps):
        content = [
            {"type": "text", "text": "".join(step[1])}
            if step[0] == "text"
            else {"type": "tool_use", "id": step[1], "name": step[2], "input": parsed(step[3])}
            for step in grouped(steps)
        ]
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": "tool_use" if has_calls(steps) else "end_turn",
            "usage": {"input_tokens": 11, "output_tokens": 7},
        }


class Chat:
    name, api, model, has_ids = "openai", "openai-chat", "gpt-4.1", True
    options = {"api": "chat"}  # noqa: RUF012
    error = Event(None, {"error": {"type": "server_error", "message": "oops", "code": None}})
    unknown = Event(None, {"object": "sparkle", "choices": [], "glitter": [1, {}]})
    done = Event(None, b"[DONE]")

    def events(self, steps, at=lambda number: number):
        events = [self._event({"role": "assistant", "content": ""})]
        number = 0
        for step in steps:
            if step[0] == "text":
                events.append(self._event({"content": step[1]}))
                continue
            index = at(number)
            number += 1
            function = {"name": step[2], "arguments": ""}
            call = {"index": index, "id": step[1], "type": "function", "function": function}
            events.append(self._event({"tool_calls": [call]}))
            for piece in step[3]:
                call = {"index": index, "function": {"arguments": piece}}
                events.append(self._event({"tool_calls": [call]}))
        events.append(self._event({}, "tool_calls" if has_calls(steps) else "stop"))
        usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
        events.append(Event(None, self._chunk([]) | {"usage": usage}))
        return [*events, self.done]

    def _event(self, delta, why=None):
        return Event(None, self._chunk([{"index": 0, "delta": delta, "finish_reason": why}]))

    def _chunk(self, choices):
        about = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1}
        return about | {"model": self.model, "choices": choices}

    def document(self, steps):
        calls = [
            {
                "id": step[1],
                "type": "function",
                "function": {"name": step[2], "arguments": "".join(step[3])},
            }
            for step in steps
            if step[0] == "call"
        ]
        words = "".join(step[1] for step in steps if step[0] == "text")
        message = {"role": "assistant", "content": words or None} | (
            {"tool_calls": calls} if calls else {}
        )
        why = "tool_calls" if calls else "stop"
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": self.model,
            "choices": [{"index": 0, "message": message, "finish_reason": why}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
        }


class Responses:
    name, api, model, has_ids = "openai", "openai-responses", "gpt-5", True
    options = {"api": "responses"}  # noqa: RUF012
    error = Event("error", {"type": "error", "code": "server_error", "message": "oops"})
    unknown = Event("response.sparkle", {"type": "response.sparkle", "glitter": [1, {}]})

    def events(self, steps, at=lambda number: number):
        events = [self._event("response.created", response=self._response("in_progress", []))]
        items = []
        for number, step in enumerate(grouped(steps)):
            begun, item = self._item(number, step)
            place = {"output_index": at(number), "item_id": item["id"]}
            events.append(
                self._event("response.output_item.added", output_index=at(number), item=begun)
            )
            kind = "output_text" if step[0] == "text" else "function_call_arguments"
            if step[0] == "text":
                place["content_index"] = 0
            events += [
                self._event(f"response.{kind}.delta", delta=piece, **place) for piece in step[-1]
            ]
            whole = {"text" if step[0] == "text" else "arguments": "".join(step[-1])}
            events.append(self._event(f"response.{kind}.done", **whole, **place))
            events.append(
                self._event("response.output_item.done", output_index=at(number), item=item)
            )
            items.append(item)
        whole = self._response("completed", items)
        return [*events, self._event("response.completed", response=whole)]

    def _event(self, kind, **fields):
        return Event(kind, {"type": kind} | fields)

    def _item(self, number, step):
        if step[0] == "text":
            begun = {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": []}
            text = {"type": "output_text", "text": "".join(step[1]), "annotations": []}
            return begun, begun | {"content": [text], "status": "completed"}
        begun = {"type": "function_call", "id": f"fc_{number}", "call_id": step[1], "name": step[2]}
        return begun | {"arguments": ""}, begun | {"arguments": "".join(step[3])}

    def _response(self, status, items):
        usage = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}
        return {
            "id": "resp_1",
            "object": "response",
            "status": status,
            "model": self.model,
            "output": items,
            "error": None,
            "usage": usage if items else None,
        }

    def document(self, steps):
        items = [self._item(number, step)[1] for number, step in enumerate(grouped(steps))]
        return self._response("completed", items)


class Google:
    name, api, model, has_ids = "google", "google", "gemini-2.5-pro", False
    error = Event(None, {"error": {"code": 500, "message": "oops", "status": "INTERNAL"}})
    unknown = Event(None, {"glitter": [1, {}]})

    def events(self, steps, at=None):
        parts = [self._part(step) for step in steps]
        documents = [self._document([part]) for part in parts]
        last = self._document([])
        last["candidates"][0]["finishReason"] = "STOP"
        last["usageMetadata"] = {"promptTokenCount": 11, "candidatesTokenCount": 7}
        return [Event(None, document) for document in (*documents, last)]

    def _part(self, step):
        if step[0] == "text":
            return {"text": step[1]}
        return {"functionCall": {"name": step[2], "args": parsed(step[3])}}

    def _document(self, parts):
        content = {"role": "model", "parts": parts}
        return {"candidates": [{"content": content, "index": 0}], "modelVersion": self.model}

    def document(self, steps):
        document = self._document([self._part(step) for step in steps])
        document["candidates"][0]["finishReason"] = "STOP"
        return document | {"usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 7}}


class Copilot(Chat):
    """Chat Completions, only that the model thinks, and that an answer may be in three choices."""

    name, model = "github", "claude-sonnet-4.5"
    options = {"path": "copilot"}  # noqa: RUF012

    def events(self, steps, at=lambda number: number):
        first, *events = super().events(steps, at)
        thought = [{"reasoning_text": "I "}, {"reasoning_text": "look."}, {"reasoning_opaque": "c"}]
        return [first, *map(self._event, thought), *events]

    def document(self, steps):
        document = super().document(steps)
        (choice,) = document["choices"]
        message = choice["message"]
        message |= {"reasoning_text": "I look.", "reasoning_opaque": "c2VhbGVk"}
        calls = message.pop("tool_calls", [])
        apart = [{"message": {"role": "assistant", "tool_calls": [call]}} for call in calls]
        choices = [choice, *({**choice, **each} for each in apart)]
        return document | {"choices": [{**c, "index": n} for n, c in enumerate(choices)]}


class CopilotResponses(Responses):
    """The Responses API, for some of its models."""

    name, model = "github", "gpt-5.1-codex"
    options = {"path": "copilot"}  # noqa: RUF012


class CodeAssist(Google):
    name, api = "antigravity", "code-assist"
    unknown = Event(None, {"response": {"glitter": [1, {}]}, "sparkle": {"at": 1}})

    def _document(self, parts):
        return super()._document(parts) | {"responseId": "r1"}

    def events(self, steps, at=None):
        return [Event(name, self._wrapped(data)) for name, data in super().events(steps)]

    def document(self, steps):
        return self._wrapped(super().document(steps))

    def _wrapped(self, document):
        return {"response": document, "traceId": "trace-1"}


class Ollama:
    """Its own API: a line for each piece, calls whole."""

    name, api, model, has_ids = "ollama", "ollama", "qwen3", False
    options = {"api": "native", "context_limit": 1_000_000_000}  # noqa: RUF012
    error = Line(None, {"error": "an error was encountered while running the model: oops"})
    unknown = Line(None, {"glitter": [1, {}]})

    def events(self, steps, at=None):
        last = self._document({"content": ""}) | self._end(steps)
        return [*(Line(None, self._document(self._said(step))) for step in steps), Line(None, last)]

    def _said(self, step):
        if step[0] == "text":
            return {"content": step[1]}
        function = {"name": step[2], "arguments": parsed(step[3])}
        return {"content": "", "tool_calls": [{"id": step[1], "function": function}]}

    def _document(self, message):
        said = {"role": "assistant", **message}
        return {"model": self.model, "created_at": "now", "message": said, "done": False}

    def _end(self, steps):
        counts = {"prompt_eval_count": 11, "eval_count": USAGE["output"]}
        return {"done": True, "done_reason": "stop", **counts}

    def document(self, steps):
        said = [self._said(step) for step in steps]
        message = {"content": "".join(each["content"] for each in said)}
        if calls := [call for each in said for call in each.get("tool_calls", ())]:
            message["tool_calls"] = calls
        return self._document(message) | self._end(steps)


class OllamaMessages(Anthropic):
    """Its other API. What it looks at before the first question has tests of its own."""

    name, model = "ollama", "qwen3"
    options = {"api": "messages", "context_limit": 1_000_000_000}  # noqa: RUF012


class ClaudeCli:
    """A program, whose lines hold the events of Anthropic; it has no document."""

    name, api, model, has_ids = "claude-cli", "claude-cli", "sonnet", True
    unknown = Line(None, {"type": "sparkle", "index": 3, "glitter": [1, {}]})

    @property
    def error(self):
        refusal = {"type": "error", "error": {"type": "api_error", "message": "oops"}}
        words = f"API Error: 500 {json.dumps(refusal)}"
        return self._line("result", subtype="success", is_error=True, result=words)

    def events(self, steps, at=lambda number: number):
        said = Anthropic().events(steps, at)
        events = [self._line("stream_event", event=each.data) for each in said]
        how = "error_max_turns" if has_calls(steps) else "success"
        usage = {f"{name}_tokens": count for name, count in USAGE.items()}
        end = self._line("result", subtype=how, is_error=False, usage=usage, session_id="s")
        return [self._line("system", subtype="init"), *events, end]

    def _line(self, kind, **fields):
        return Line(None, {"type": kind, **fields})


WIRES = {each.api: each() for each in (Anthropic, Chat, Responses, Google, CodeAssist, Ollama)}
VENDORS = WIRES | {
    "copilot": Copilot(),
    "copilot-responses": CopilotResponses(),
    "ollama-messages": OllamaMessages(),
}
# Programs are started for each call: a few rows each, and only as streams.
PROGRAMS = {each.api: each() for each in (ClaudeCli,)}
SPOKEN = VENDORS | PROGRAMS
SPEAKERS = WIRES | PROGRAMS  # each wire once


def grouped(steps):
    """Text that follows text is one block."""
    blocks = []
    for step in steps:
        if step[0] == "call":
            blocks.append(step)
        elif blocks and blocks[-1][0] == "text":
            blocks[-1] = ("text", (*blocks[-1][1], step[1]))
        else:
            blocks.append(("text", (step[1],)))
    return blocks


def has_calls(steps):
    return any(step[0] == "call" for step in steps)


def parsed(pieces):
    """Arguments as an object, for wires that have no other; what is none is given as one."""
    try:
        return json.loads("".join(pieces))
    except ValueError:
        return {"arguments": "".join(pieces)}


def broken_types(value, path=()):
    """Copies of a JSON value in which one place, each in turn, has another type."""
    for other in (None, True, -5, 1.5, "x", [], {}, [None], {"x": 1}):
        if type(other) is not type(value):
            yield path, other
    if isinstance(value, dict):
        for name, item in value.items():
            yield from broken_types(item, (*path, name))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from broken_types(item, (*path, number))


def with_other(value, path, other):
    """A copy of a value with something else at a path."""
    if not path:
        return other
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = with_other(copy[path[0]], path[1:], other)
    return copy
