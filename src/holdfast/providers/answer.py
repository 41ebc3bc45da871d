"""An answer while it comes in.

A reader of a wire knows the vendor's words; `Answer` knows what an answer is. It puts the pieces
into one message in the order in which they came, tells the callbacks, maps tool names back to
ours, and gives the Response at the end, or what there is of it when the end never came.

Words go on in the block that was written last, if it is of the same kind; `begin_block` forces a
new one. Calls are named by a key of the wire's own (an index, an item id) until they are ended,
and may be written at the same time. A CallRef marks the place of a call that something follows.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import msgspec

from holdfast import ids, text
from holdfast.errors import ProtocolError
from holdfast.frozen import EMPTY, FrozenDict
from holdfast.messages import Content, Message, Stop, ToolCall
from holdfast.parts import CallRef, Image, Opaque, Part, Text, Thinking
from holdfast.providers.base import Callbacks, Response
from holdfast.usage import Usage

CALLS_MAX = 10_000


class _Words:
    """A block of text or thinking that is being written."""

    __slots__ = ("extra", "is_thinking", "pieces", "signature")

    def __init__(self, is_thinking: bool) -> None:
        self.is_thinking = is_thinking
        self.pieces: list[str] = []
        self.signature: str | None = None
        self.extra: dict[str, Any] = {}


class _Call:
    """A call that is being written; `made` once it is complete."""

    __slots__ = ("extra", "id", "made", "name", "pieces", "signature")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.pieces: list[str] = []
        self.signature: str | None = None
        self.extra: dict[str, Any] = {}
        self.made: ToolCall | None = None


class Answer:
    """The answer of `model` ("vendor:model"), signed under `prefix`.

    `names` has our names of the tools that were offered under another one.
    """

    def __init__(
        self,
        model: str,
        *,
        prefix: str | None = None,
        names: Mapping[str, str] = EMPTY,
        callbacks: Callbacks | None = None,
        new_id: Callable[[], str] = ids.new_id,
    ) -> None:
        self._model = model
        self._prefix = prefix
        self._names = names
        self._on_chunk, self._on_usage, self._on_thinking, self._on_call = callbacks or Callbacks()
        self._new_id = new_id
        self._blocks: list[_Words | _Call | Part] = []
        self._words: _Words | None = None  # the block that goes on
        self._half = ""  # of a surrogate pair
        self._calls: dict[Hashable, _Call] = {}
        self._usage = Usage()
        self._stop: str | None = None
        self._facts: dict[str, str] = {}
        self._extra: dict[str, Any] = {}
        self._mended = 0
        self.has_output = False  # a callback was given something

    # Words

    def add_text(self, words: str) -> None:
        """More words of the answer."""
        if not words:
            return
        block = self._words
        if block is None or block.is_thinking:
            block = self._begin_words(is_thinking=False)
        if self._half or not words.isascii():
            words = self._whole(words)
            if not words:
                return
        block.pieces.append(words)
        if self._on_chunk is not None:
            self.has_output = True
            self._on_chunk(words)

    def add_thinking(self, words: str) -> None:
        """More of what the model thinks."""
        if not words:
            return
        block = self._words
        if block is None or not block.is_thinking:
            block = self._begin_words(is_thinking=True)
        if self._half or not words.isascii():
            words = self._whole(words)
            if not words:
                return
        block.pieces.append(words)
        if self._on_thinking is not None:
            self.has_output = True
            self._on_thinking(words)

    @property
    def is_thinking(self) -> bool:
        """Whether the block that goes on is one of thinking."""
        return self._words is not None and self._words.is_thinking

    def begin_block(self, *, is_thinking: bool = False) -> None:
        """The words that follow are a block of their own, even if no word follows."""
        self._begin_words(is_thinking)

    def end_block(self) -> None:
        """The block that was written last is complete: more words begin another."""
        self._flush_half()
        self._words = None

    def sign(self, signature: str, **extra: Any) -> None:
        """More of the signature of the block of words that was written last; one if there is none.

        A block of thinking that has a signature is kept even without words.
        """
        block = self._words or self._begin_words(is_thinking=True)
        block.signature = (block.signature or "") + text.mend(signature)[0]
        block.extra.update(extra)

    def note(self, **extra: Any) -> None:
        """Facts about the block of words that was written last (`part.extra`)."""
        (self._words or self._begin_words(is_thinking=False)).extra.update(extra)

    def add_redacted(self, data: str, **extra: Any) -> None:
        """A block of thinking that the vendor sealed."""
        self.add_part(Thinking("", text.mend(data)[0], redacted=True, extra=_mended(extra)))

    def add_opaque(self, vendor: str, data: Mapping[str, Any]) -> None:
        """A block that has no form of ours: goes back to `vendor` as it came."""
        self.add_part(Opaque(vendor, _mended(data)))

    def add_image(self, data: bytes, media_type: str | None, **extra: Any) -> None:
        """A picture that the model made."""
        self.add_part(Image(data=data, media_type=media_type, extra=FrozenDict(extra)))

    def add_part(self, part: Part) -> None:
        """A block that came whole."""
        self.end_block()
        self._blocks.append(part)

    # Calls

    def begin_call(self, key: Hashable, *, id: str | None = None, name: str | None = None) -> None:
        """A call begins, or more is known of it. What is said twice is said once."""
        call = self._calls.get(key)
        if call is None:
            if len(self._calls) >= CALLS_MAX:
                raise ProtocolError(f"the answer has more than {CALLS_MAX} calls")
            self.end_block()
            call = self._calls[key] = _Call()
            self._blocks.append(call)
        if id and not call.id:
            call.id = text.mend(id)[0]
        if name and not call.name:
            call.name = text.mend(name)[0]

    def has_call(self, key: Hashable) -> bool:
        """Whether a call of this key has begun."""
        return key in self._calls

    def add_arguments(self, key: Hashable, piece: str) -> None:
        """More of the arguments of a call."""
        if key not in self._calls:
            self.begin_call(key)
        self._calls[key].pieces.append(piece)

    def end_call(
        self,
        key: Hashable,
        *,
        arguments: str | None = None,
        signature: str | None = None,
        **extra: Any,
    ) -> None:
        """A call is complete. `arguments`, if given, are all of them."""
        self.begin_call(key)
        call = self._calls[key]
        if call.made is not None:
            return
        written, mended = text.mend("".join(call.pieces) if arguments is None else arguments)
        self._mended += mended
        call.made = ToolCall(
            id=self._id_of(call),
            name=self._names.get(call.name, call.name),
            arguments=written or "{}",
            signature=None if signature is None else text.mend(signature)[0],
            extra=_mended(extra),
        )
        if self._on_call is not None:
            self.has_output = True
            self._on_call(call.made)

    def _id_of(self, call: _Call) -> str:
        """The service's, unless it gave none, or another call the same."""
        taken = {each.made.id for each in self._calls.values() if each.made is not None}
        if call.id and call.id not in taken:
            return call.id
        return f"call_{self._new_id().replace('-', '')}"

    def end_calls(self, *but: Hashable) -> None:
        """Every call but these is complete."""
        for key, call in self._calls.items():
            if call.made is None and key not in but:
                self.end_call(key)

    # Facts

    def used(self, **counts: int | None) -> None:
        """Tokens, as far as they are known by now; None adds nothing to what was said before."""
        known = {name: count for name, count in counts.items() if count is not None}
        usage = msgspec.structs.replace(self._usage, **known)  # unchecked: `fields.count_of` did
        if usage != self._usage:
            self._usage = usage
            if self._on_usage is not None:
                self._on_usage(usage)

    @property
    def usage(self) -> Usage:
        """The tokens as far as they are known."""
        return self._usage

    @property
    def text(self) -> str:
        """The words so far."""
        words = [each for each in self._blocks if type(each) is _Words and not each.is_thinking]
        return "".join(piece for each in words for piece in each.pieces)

    @property
    def has_calls(self) -> bool:
        """Whether the model calls any tool."""
        return bool(self._calls)

    @property
    def stop(self) -> str | None:
        """Why the model stopped, as far as that was said."""
        return self._stop

    def stopped(self, reason: str) -> None:
        """Why the model stopped: a Stop, or a word of the vendor's that is none of them."""
        self._stop = text.mend(reason)[0]

    def about(
        self,
        *,
        model: str | None = None,
        id: str | None = None,
        request_id: str | None = None,
        **extra: Any,
    ) -> None:
        """Who answered, under which id, and whatever else the vendor says; None says nothing."""
        facts = {"model": model, "id": id, "request_id": request_id}
        self._facts |= {k: text.mend(v)[0] for k, v in facts.items() if v is not None}
        self._extra |= {name: fact for name, fact in extra.items() if fact is not None}

    # The end

    def rewrite(self) -> None:
        """All that came is going to be said again, by a service that sends it whole at the end.

        The callbacks heard it already and hear no more of it.
        """
        self._blocks, self._words, self._half, self._calls, self._mended = [], None, "", {}, 0
        self._on_chunk = self._on_thinking = self._on_call = None

    def response(self) -> Response:
        """The answer, complete."""
        self.end_calls()
        return self._response(self._stop or Stop.UNKNOWN)

    def partial(self, stop: str = Stop.ERROR) -> Response | None:
        """What there is of it, without calls that are not complete; None if there is nothing."""
        if not self._blocks and self._usage == Usage():
            return None
        return self._response(stop)

    def _response(self, stop: str) -> Response:
        self._flush_half()
        content, calls, has_thinking = self._composed()
        message = Message.assistant(
            content,
            calls,
            model=self._model,
            prefix=self._prefix if has_thinking else None,
            stop=stop,
            extra={"mended": self._mended} if self._mended else EMPTY,
        )
        return Response(
            message=message,
            usage=self._usage,
            extra=_mended(self._extra),
            **self._facts,
        )

    def _composed(self) -> tuple[Content, list[ToolCall], bool]:
        parts: list[Part] = []
        calls: list[ToolCall] = []
        for block in self._blocks:
            if type(block) is _Words:
                if (part := _part_of(block)) is not None:
                    parts.append(part)
            elif type(block) is not _Call:
                parts.append(block)  # type: ignore[arg-type]
            elif block.made is not None:
                calls.append(block.made)
                parts.append(CallRef(block.made.id))
        while parts and type(parts[-1]) is CallRef:
            parts.pop()
        has_thinking = any(type(part) is Thinking for part in parts)
        if len(parts) == 1 and type(only := parts[0]) is Text and not only.extra:
            return only.text, calls, False
        return tuple(parts) or None, calls, has_thinking

    # Pieces of text

    def _begin_words(self, is_thinking: bool) -> _Words:
        self._flush_half()
        self._words = block = _Words(is_thinking)
        self._blocks.append(block)
        return block

    def _whole(self, words: str) -> str:
        """The words without half a surrogate pair at their end, which waits for the other half."""
        words, self._half = self._half + words, ""
        if words and "\ud800" <= words[-1] <= "\udbff":
            words, self._half = words[:-1], words[-1]
        words, mended = text.mend(words)
        self._mended += mended
        return words

    def _flush_half(self) -> None:
        if self._half:
            self._half = ""
            self._mended += 1
            if self._words is not None:
                self._words.pieces.append("\ufffd")


def _part_of(words: _Words) -> Part | None:
    said = "".join(words.pieces)
    if words.is_thinking:
        if not said and words.signature is None:
            return None
        return Thinking(said, words.signature, extra=_mended(words.extra))
    if words.signature is not None:
        words.extra["signature"] = words.signature
    return Text(said, extra=_mended(words.extra)) if said or words.signature is not None else None


def _mended(value: Mapping[str, Any]) -> FrozenDict:
    """JSON that a service sent, frozen, without lone surrogates."""
    try:
        return FrozenDict(value) if value else EMPTY
    except ValueError:
        pass
    try:
        return FrozenDict(_mend(value))
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"a part of the answer cannot be kept: {error}") from None


def _mend(value: Any) -> Any:
    if isinstance(value, str):
        return text.mend(value)[0]
    if isinstance(value, Mapping):
        return {text.mend(str(key))[0]: _mend(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mend(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value
