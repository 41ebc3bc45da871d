"""Reads what the Messages API answers, streamed or whole.

A stream opens a message, then one block after the other (`content_block_start`, deltas,
`content_block_stop`), then says why it stopped (`message_delta`) and that it ends (`message_stop`).
A whole answer is the same blocks in one document, so both go through `_begin` and `_end`.

| block               | becomes                                                               |
|---------------------|-----------------------------------------------------------------------|
| text                | Text; its citations are in `extra["citations"]`                       |
| thinking            | Thinking with its signature                                           |
| redacted_thinking   | Thinking, redacted                                                    |
| tool_use            | a call; who called it (`caller`) is in its `extra`                    |
| any other           | Opaque: server tools and their results, compaction, what is new       |

Counts are cumulative: what a `message_delta` says takes the place of what was said before. The
vendor's `input_tokens` leaves out what the cache was asked for; ours is the whole prompt.
"""

from typing import Any

from holdfast.errors import ProtocolError
from holdfast.messages import Stop
from holdfast.providers.answer import Answer
from holdfast.providers.failures import failure
from holdfast.providers.fields import (
    Object,
    count_of,
    decode_object,
    encode,
    object_of,
    objects_of,
    text_of,
)
from holdfast.providers.wire import Reader

VENDOR = "anthropic"
_STOPS = {
    "end_turn": Stop.STOP,
    "stop_sequence": Stop.STOP,
    "tool_use": Stop.TOOL_USE,
    "max_tokens": Stop.MAX_TOKENS,
    "model_context_window_exceeded": Stop.MAX_TOKENS,
    "refusal": Stop.SAFETY,
}
_CANONICAL = ("text", "thinking", "redacted_thinking", "tool_use")
# What is read by its name; all else that is said goes into `extra`. "self" is no name for a fact.
_IN_MESSAGE = frozenset(("type", "role", "content", "stop_reason", "usage", "self"))
_IN_DELTA = frozenset(("type", "delta", "usage", "self"))
_IN_TEXT = frozenset(("type", "text", "citations", "self"))
_IN_THINKING = frozenset(("type", "thinking", "signature", "self"))
_IN_CALL = frozenset(("type", "id", "name", "input", "key", "arguments", "signature", "self"))
_COUNTED = frozenset(
    (
        *("input_tokens", "output_tokens", "cache_read_input_tokens"),
        "cache_creation_input_tokens",
    )
)


class AnthropicReader(Reader):
    """Folds one answer of the Messages API into an Answer.

    `runs_tools`: whoever gave the answer runs its tools, too, so a call is one of the blocks that
    go back as they came. Several readers may write into one answer, one after the other.
    """

    def __init__(self, answer: Answer, vendor: str = VENDOR, *, runs_tools: bool = False) -> None:
        super().__init__(answer)
        self._vendor = vendor
        self._canonical = _CANONICAL[:-1] if runs_tools else _CANONICAL
        self._blocks: dict[int, Object] = {}  # those that are open
        self._opaque: set[int] = set()  # of them, those that go back as they came
        self._pieces: dict[int, list[str]] = {}  # of JSON that a block's input is written in
        self._citations: list[Object] | None = None  # of the text that is being written
        self._usage: Object = {}

    def feed(self, name: str, data: bytes) -> None:
        if self.is_complete:
            return
        self.take(decode_object(data), name)

    def take(self, event: Object, name: str = "message") -> None:
        """One event, decoded."""
        kind = event.get("type") or name
        if kind == "content_block_delta":
            delta = event.get("delta")
            if type(delta) is dict and delta.get("type") == "text_delta":
                words = delta.get("text")
                if type(words) is str and not self._opaque:  # nearly always
                    self.answer.add_text(words)
                    return
            self._add(_index_of(event), object_of(event, "delta"))
        elif kind == "content_block_start":
            self._begin(_index_of(event), object_of(event, "content_block"))
        elif kind == "content_block_stop":
            self._end(_index_of(event))
        elif kind == "message_start":
            self._open(object_of(event, "message"))
        elif kind == "message_delta":
            self._close(event)
        elif kind == "message_stop":
            self._end_all()
            self.is_complete = True
        elif kind == "error":
            raise failure(self._vendor, None, {}, event, in_stream=True)

    def read(self, body: Object) -> None:
        if body.get("type") == "error" or ("error" in body and "content" not in body):
            raise failure(self._vendor, None, {}, body, in_stream=True)
        if body.get("content") is None:
            raise ProtocolError("the answer has no content")
        self._open(body)
        self.is_complete = True

    # The message

    def _open(self, message: Object) -> None:
        """What is known of the message when it begins: in a whole answer, all of it.

        A stream that goes on behind a tool which a server's code has called may begin with blocks.
        """
        self.answer.about(
            model=text_of(message, "model"),
            id=text_of(message, "id"),
            **_others(message, _IN_MESSAGE | {"model", "id", "request_id"}),
        )
        for number, block in enumerate(objects_of(message, "content")):
            index = -1 - number  # those of a stream, which may follow, are counted from 0
            self._begin(index, block)
            self._end(index)
        self.stopped(message)
        self.used(object_of(message, "usage"))

    def _close(self, event: Object) -> None:
        delta = object_of(event, "delta")
        self.answer.about(**_others(event, _IN_DELTA), **_others(delta, _IN_MESSAGE | event.keys()))
        self.stopped(delta)
        self.used(object_of(event, "usage"))

    def stopped(self, holder: Object) -> None:
        """Why the model stopped, if that is said."""
        reason = text_of(holder, "stop_reason")
        if reason is not None:
            self.answer.stopped(_STOPS.get(reason, reason))

    def used(self, usage: Object) -> None:
        """Tokens, in the vendor's words."""
        self._usage |= {name: said for name, said in usage.items() if said is not None}
        fresh = count_of(self._usage, "input_tokens")
        read = count_of(self._usage, "cache_read_input_tokens")
        written = count_of(self._usage, "cache_creation_input_tokens")
        details = self._usage.get("output_tokens_details")
        self.answer.used(
            input=None if fresh is None else fresh + (read or 0) + (written or 0),
            output=count_of(self._usage, "output_tokens"),
            cache_read=read,
            cache_write=written,
            reasoning=count_of(details, "thinking_tokens") if type(details) is dict else None,
        )
        if others := _others(self._usage, _COUNTED):
            self.answer.about(usage=others)

    # Its blocks

    def _begin(self, index: int, block: Object) -> None:
        for open_one in list(self._blocks):  # of which nobody said that they ended
            if open_one == index or open_one in self._opaque:
                self._end(open_one)
        self._blocks[index] = block
        kind = text_of(block, "type")
        if kind not in self._canonical:
            self._opaque.add(index)
        if kind == "text":
            self._begin_text(block)
        elif kind == "thinking":
            self.answer.begin_block(is_thinking=True)
            self.answer.add_thinking(text_of(block, "thinking") or "")
            self._sign(text_of(block, "signature"))
            self._note(_others(block, _IN_THINKING))
        elif kind == "redacted_thinking":
            self.answer.add_redacted(text_of(block, "data") or "")
        elif kind == "tool_use" and index not in self._opaque:
            id, name = text_of(block, "id"), text_of(block, "name")
            self.answer.begin_call((self, index), id=id, name=name)

    def _begin_text(self, block: Object) -> None:
        self.answer.begin_block()
        self._citations = None
        self.answer.add_text(text_of(block, "text") or "")
        for citation in objects_of(block, "citations"):
            self._cite(citation)
        self._note(_others(block, _IN_TEXT))

    def _add(self, index: int, delta: Object) -> None:
        """More of a block."""
        kind = delta.get("type")
        block = self._blocks[index] if index in self._opaque else {}
        if block.get("type") and kind != "input_json_delta":
            _extend(block, delta)
        elif kind == "text_delta":
            self.answer.add_text(text_of(delta, "text") or "")
        elif kind == "thinking_delta":
            self.answer.add_thinking(text_of(delta, "thinking") or "")
        elif kind == "input_json_delta":
            self._add_json(index, text_of(delta, "partial_json") or "")
        elif kind == "citations_delta":
            self._cite(object_of(delta, "citation"))
        elif kind == "signature_delta":
            self._sign(text_of(delta, "signature"))

    def _add_json(self, index: int, piece: str) -> None:
        if piece:
            self._pieces.setdefault(index, []).append(piece)

    def _cite(self, citation: Object) -> None:
        if self._citations is None:
            self._citations = []
            self.answer.note(citations=self._citations)
        self._citations.append(citation)

    def _sign(self, signature: str | None) -> None:
        if signature:
            self.answer.sign(signature)

    def _note(self, others: Object) -> None:
        if others:
            self.answer.note(**others)

    def _end(self, index: int) -> None:
        block = self._blocks.get(index)
        if block is None:
            return
        if index in self._opaque:
            if written := "".join(self._pieces.pop(index, ())):
                block["input"] = _input_of(written)
            self.answer.add_opaque(self._vendor, block)
        elif block.get("type") == "tool_use":
            self._end_call(index, block)
        else:
            self.answer.end_block()
        del self._blocks[index]
        self._opaque.discard(index)

    def _end_call(self, index: int, block: Object) -> None:
        arguments = "".join(self._pieces.pop(index, ()))
        if not arguments and block.get("input"):  # it came whole
            arguments = encode(block["input"])
        self.answer.end_call((self, index), arguments=arguments, **_others(block, _IN_CALL))

    def _end_all(self) -> None:
        for index in list(self._blocks):
            self._end(index)


def _index_of(event: Object) -> int:
    index = event.get("index")
    if type(index) is not int:
        raise ProtocolError("a block of the answer has no index")
    return index


def _others(holder: Object, known: frozenset[str]) -> Object:
    """What else is said, as far as anything is."""
    return {name: said for name, said in holder.items() if name not in known and said is not None}


def _input_of(written: str) -> Any:
    """What a server's tool was called with; if it is no JSON object, something that is."""
    try:
        return decode_object(written)
    except ProtocolError:
        return {"arguments": written}


def _extend(block: Object, delta: Object) -> None:
    """Add a delta of a kind that may be new: texts and lists go on, all else is replaced."""
    if delta.get("type") == "citations_delta":
        delta = {"citations": [delta.get("citation")]}
    for name, more in delta.items():
        before = block.get(name)
        if name == "type" or (more is None and before is not None):
            continue
        is_longer = type(more) in (str, list) and type(before) is type(more)
        block[name] = before + more if is_longer else more
