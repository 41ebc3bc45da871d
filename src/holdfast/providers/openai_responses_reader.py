"""Reads an answer of OpenAI's Responses API, streamed or whole.

An answer is a list of items. While it streams, words are passed on as they come, and each item is
said whole once it is done; the last event has all items again, and is the truth: the message is
made of it, as it would be of a body that came in one piece. Whatever was missed on the way is
told then. Places in the list tell items apart, because some servers change ids from one event to
the next; an answer whose last event has no items is made of those that were done.

What the items become is in the table; the way back is in `openai_responses_items`.

| item               | becomes                                                               |
|--------------------|-----------------------------------------------------------------------|
| message            | Text, one for each part; id, phase and annotations in `extra`         |
| reasoning          | Thinking: summary and text, signed with the encrypted content         |
| function_call      | ToolCall                                                              |
| custom_tool_call   | ToolCall with the free text as {"input": text}, and "type" in `extra` |
| everything else    | Opaque                                                                |
"""

from collections.abc import Callable
from typing import Any

from holdfast.errors import ProtocolError
from holdfast.messages import Stop
from holdfast.providers import fields
from holdfast.providers import openai_shared as shared
from holdfast.providers.answer import Answer
from holdfast.providers.failures import failure
from holdfast.providers.fields import Object
from holdfast.providers.wire import Reader

_Place = tuple[Any, ...]

# What a body says of the request, or what is read elsewhere; all else is a fact to be kept.
_READ = {
    *("id", "object", "model", "status", "output", "usage", "error", "incomplete_details", "type"),
    *("instructions", "tools", "tool_choice", "parallel_tool_calls", "text", "reasoning", "prompt"),
    *("temperature", "top_p", "top_logprobs", "presence_penalty", "frequency_penalty", "store"),
    *("max_output_tokens", "max_tool_calls", "truncation", "background", "include", "metadata"),
    *("previous_response_id", "prompt_cache_key", "prompt_cache_retention", "safety_identifier"),
    *("user", "context_management", "request_id", "self"),
}
_COUNTS = {
    *("input_tokens", "output_tokens", "total_tokens"),
    *("input_tokens_details", "output_tokens_details"),
}
_CALL = {
    *("type", "call_id", "name", "arguments", "input", "status", "id"),
    *("key", "signature", "self"),  # words of ours
}
_STOPS = {"max_output_tokens": Stop.MAX_TOKENS, "content_filter": Stop.SAFETY}
_RUNNING = ("queued", "in_progress")


class ResponsesReader(Reader):
    """Folds the events, or the body, of one answer of `model` into an Answer."""

    def __init__(self, answer: Answer, vendor: str, model: str) -> None:
        super().__init__(answer)
        self._vendor = vendor
        # xAI names its own tools in items that elsewhere ask the program to do something.
        self._has_server_customs = "grok" in model.lower()
        self._done: dict[int, Object] = {}
        self._begin()

    def _begin(self) -> None:
        self._place: _Place = ()  # of the words that go on
        self._said: dict[_Place, int] = {}  # characters, of the others
        self._length = 0  # characters, of these
        self._thinking_at: int | None = None  # the item of the block of thinking that goes on
        self._has_ids = False  # reasoning that can go back led to what comes now
        self._is_refused = False

    # A stream

    def feed(self, name: str, data: bytes) -> None:
        """One event."""
        if self.is_complete or (data[:1] != b"{" and data.strip() == b"[DONE]"):
            return
        event = fields.decode_object(data)
        kind = event.get("type", name)
        if kind == "response.output_text.delta":
            self._on_text(event)
        elif type(kind) is str and (handle := _HANDLERS.get(kind)) is not None:
            handle(self, event)
        elif event.get("error") and "response" not in event:
            self._on_error(event)

    def _on_text(self, event: Object) -> None:
        delta = event.get("delta")
        if type(delta) is not str:
            delta = fields.text_of(event, "delta") or ""
        index = event.get("output_index")
        place = (len(self._done) if index is None else index, event.get("content_index") or 0)
        if place != self._place:
            self._go_to(place)
        self._length += len(delta)
        self.answer.add_text(delta)

    def _on_thinking(self, event: Object) -> None:
        delta = fields.text_of(event, "delta") or ""
        of = "summary_index" if "summary_index" in event else "content_index"
        self._think(self._index(event), (of, fields.count_of(event, of) or 0), delta)

    def _on_arguments(self, event: Object) -> None:
        index = self._index(event)
        if self.answer.has_call(index):
            self.answer.add_arguments(index, fields.text_of(event, "delta") or "")

    def _on_added(self, event: Object) -> None:
        item = fields.object_of(event, "item")
        if self._is_call(item):
            id, called = fields.text_of(item, "call_id"), fields.text_of(item, "name")
            self.answer.begin_call(self._index(event), id=id, name=called)

    def _on_item(self, event: Object) -> None:
        item = fields.object_of(event, "item")
        index = self._index(event)
        if index not in self._done:
            self._say(index, item)
            self._done[index] = item

    def _on_begun(self, event: Object) -> None:
        body = fields.object_of(event, "response")
        self.answer.about(model=fields.text_of(body, "model"), id=fields.text_of(body, "id"))

    def _on_end(self, event: Object) -> None:
        body = fields.object_of(event, "response")
        items = fields.objects_of(body, "output")
        if len(self._done) < len(items):
            for index, item in enumerate(items):
                if index not in self._done:
                    self._say(index, item)
        if not items and self._said.keys() | {self._place} <= self._places_done():
            items = list(self._done.values())
        if items:  # else what came in pieces is all there is
            self.answer.rewrite()
            self._begin()
        status = body.get("status") or event["type"].removeprefix("response.")
        self.read({**body, "status": status, "output": items})

    def _on_failure(self, event: Object) -> None:
        body = fields.object_of(event, "response")
        self._read_usage(body)
        raise failure(self._vendor, None, {}, body.get("error") or body, in_stream=True)

    def _on_error(self, event: Object) -> None:
        error = event.get("error") or event
        raise failure(self._vendor, None, {}, error, in_stream=True)

    # A whole answer

    def read(self, body: Object) -> None:
        """The whole answer."""
        status = fields.text_of(body, "status")
        if status == "failed" or "output" not in body:
            if status != "failed" and not body.get("error"):
                raise ProtocolError("what came is no answer: it has no output")
            self._on_failure({"response": body})
        for index, item in enumerate(fields.objects_of(body, "output")):
            self._say(index, item)
        self._read_usage(body)
        self._read_facts(body)
        self.answer.stopped(self._stop(status, body))
        self.is_complete = status not in _RUNNING

    def _read_usage(self, body: Object) -> None:
        usage = fields.object_of(body, "usage")
        read = fields.object_of(usage, "input_tokens_details")
        written = fields.object_of(usage, "output_tokens_details")
        self.answer.used(
            input=fields.count_of(usage, "input_tokens"),
            output=fields.count_of(usage, "output_tokens"),
            cache_read=fields.count_of(read, "cached_tokens"),
            cache_write=fields.count_of(read, "cache_write_tokens"),
            reasoning=fields.count_of(written, "reasoning_tokens"),
        )
        more = {name: value for name, value in usage.items() if name not in _COUNTS and value}
        self.answer.about(usage=more or None)

    def _read_facts(self, body: Object) -> None:
        facts = {name: value for name, value in body.items() if name not in _READ and value}
        known = {name: fields.text_of(body, name) for name in ("model", "id", "request_id")}
        self.answer.about(**known, **facts)

    def _stop(self, status: str | None, body: Object) -> str:
        if status == "incomplete":
            reason = fields.text_of(fields.object_of(body, "incomplete_details"), "reason")
            return _STOPS.get(reason or "", reason or Stop.UNKNOWN)
        if status == "cancelled":
            return Stop.CANCELLED
        if self._is_refused:
            return Stop.SAFETY
        return Stop.TOOL_USE if self.answer.has_calls else Stop.STOP

    # Items

    def _say(self, index: int, item: Object) -> None:
        """Say of an item what was not said yet."""
        kind = item.get("type")
        if kind == "message":
            self._say_message(index, item)
        elif kind == "reasoning":
            self._say_reasoning(index, item)
        elif not self._is_call(item):
            self.answer.add_opaque(self._vendor, item)
        elif item.get("status") == "incomplete":
            self.answer.about(incomplete_call=item)  # which nobody may run
        else:
            self._say_call(index, item)

    def _say_message(self, index: int, item: Object) -> None:
        about = {"id": fields.text_of(item, "id")} if self._has_ids else {}
        about["phase"] = fields.text_of(item, "phase")
        for number, part in enumerate(fields.objects_of(item, "content")):
            kind = part.get("type")
            if kind not in ("output_text", "refusal"):
                self.answer.add_opaque(self._vendor, part)
                self._place = ()
                continue
            self._go_to((index, number))
            said = fields.text_of(part, "text" if kind == "output_text" else "refusal") or ""
            self.answer.add_text(said[self._length :])
            self._length = max(self._length, len(said))
            facts: Object = {name: part.get(name) for name in ("annotations", "logprobs")} | about
            if kind == "refusal":
                self._is_refused = facts["refusal"] = True
            if said:
                self.answer.note(**{name: value for name, value in facts.items() if value})

    def _say_reasoning(self, index: int, item: Object) -> None:
        summary, content = fields.objects_of(item, "summary"), fields.objects_of(item, "content")
        for of, parts in (("summary_index", summary), ("content_index", content)):
            for number, part in enumerate(parts):
                self._think(index, (of, number), fields.text_of(part, "text") or "", is_whole=True)
        signature = fields.text_of(item, "encrypted_content")
        self._has_ids = bool(signature or content)
        facts: Object = {"id": fields.text_of(item, "id")} if self._has_ids else {}
        if content or len(summary) > 1:
            facts |= {"summary": summary, "content": content}
        facts = {name: value for name, value in facts.items() if value}
        if self._thinking_at != index and signature:
            self.answer.begin_block(is_thinking=True)
        if signature:
            self.answer.sign(signature, **facts)
        elif self._thinking_at == index:
            self.answer.note(**facts)
        self.answer.end_block()
        self._thinking_at = None
        self._leave()

    def _say_call(self, index: int, item: Object) -> None:
        is_custom = item["type"] == "custom_tool_call"
        written = fields.text_of(item, "input" if is_custom else "arguments")
        id = fields.text_of(item, "call_id") or fields.text_of(item, "id")
        facts = {name: value for name, value in item.items() if name not in _CALL and value}
        if self._has_ids and fields.text_of(item, "id"):
            facts["id"] = item["id"]
        if is_custom:
            facts["type"], written = "custom", shared.text_arguments(written or "")
        self._leave()
        self.answer.begin_call(index, id=id, name=fields.text_of(item, "name"))
        self.answer.end_call(index, arguments=written, **facts)

    def _is_call(self, item: Object) -> bool:
        kind = item.get("type")
        if kind == "custom_tool_call":
            return not self._has_server_customs
        return kind == "function_call"

    # Words

    def _think(self, index: int, part: _Place, words: str, *, is_whole: bool = False) -> None:
        """More of a part of the reasoning, or, if `is_whole`, all of it. Parts are paragraphs."""
        place = (index, *part)
        if place != self._place:
            goes_on = self._thinking_at == index
            is_new = place not in self._said
            self._leave()
            self._enter(place)
            if not goes_on:
                self.answer.begin_block(is_thinking=True)
                self._thinking_at = index
            elif is_new:
                self.answer.add_thinking("\n\n")
        if is_whole:
            words = words[self._length :]
        self._length += len(words)
        self.answer.add_thinking(words)

    def _go_to(self, place: _Place) -> None:
        """The words that come now belong there."""
        if place != self._place:
            self._leave()
            self._enter(place)
            self.answer.begin_block()

    def _leave(self) -> None:
        if self._place:
            self._said[self._place] = self._length
        self._place, self._length = (), 0

    def _index(self, event: Object) -> int:
        """The place of an item in the answer: as it says, or behind those that are done."""
        index = event.get("output_index")
        if type(index) is int:
            return index
        if index is None:
            return len(self._done)
        raise ProtocolError("output_index is a number")

    def _places_done(self) -> set[_Place]:
        """Where words were said, and the item is done."""
        return {place for place in self._said if place[0] in self._done} | {()}

    def _enter(self, place: _Place) -> None:
        try:
            self._length = self._said.get(place, 0)
        except TypeError:
            raise ProtocolError("the place of a part is a number") from None
        self._place = place


_HANDLERS: dict[str, Callable[[ResponsesReader, Object], None]] = {
    "response.refusal.delta": ResponsesReader._on_text,
    "response.reasoning_summary_text.delta": ResponsesReader._on_thinking,
    "response.reasoning_text.delta": ResponsesReader._on_thinking,
    "response.function_call_arguments.delta": ResponsesReader._on_arguments,
    "response.custom_tool_call_input.delta": ResponsesReader._on_arguments,
    "response.output_item.added": ResponsesReader._on_added,
    "response.output_item.done": ResponsesReader._on_item,
    "response.created": ResponsesReader._on_begun,
    "response.completed": ResponsesReader._on_end,
    "response.incomplete": ResponsesReader._on_end,
    "response.cancelled": ResponsesReader._on_end,
    "response.failed": ResponsesReader._on_failure,
    "error": ResponsesReader._on_error,
}
