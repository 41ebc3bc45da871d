"""Reads what Chat Completions answer, whole or streamed, from OpenAI and from those like it.

When is a streamed answer complete? `[DONE]` ends it everywhere, also where no reason to stop was
given (Snowflake never gives one). Some servers leave `[DONE]` out; a connection that breaks
between two events looks just the same there. So what else may end a stream is said by the dialect:

- "done": nothing. OpenAI, Azure and all others of which it is known that they write it.
- "usage": the reason to stop and the tokens have both come, and the body ended cleanly. The
  tokens come last, or together with the reason; nothing of the answer can be missing behind them.
- "finish": the reason has come, and the body ended cleanly; for a server that counts no tokens.

A stream that is cut before its reason to stop is never complete.

What has no place in a message is kept in `Response.extra` under the vendor's name for it, whether
it stood beside the choices, in the choice or in the message: `logprobs`, `annotations`,
`content_filter_results`, `system_fingerprint`, `citations`, `x_groq`, the raw `usage`; `choices`
has the others where several were asked for. Padding (`obfuscation`) is dropped.
"""

from typing import Any

from holdfast.errors import ProtocolError, ProviderError
from holdfast.messages import Stop
from holdfast.parts import Image
from holdfast.providers import fields
from holdfast.providers.answer import Answer
from holdfast.providers.failures import failure
from holdfast.providers.fields import Object
from holdfast.providers.openai_chat_calls import Calls, signature_of
from holdfast.providers.openai_chat_choices import Sound, add_choice, keep
from holdfast.providers.openai_chat_media import from_url
from holdfast.providers.openai_chat_usage import counts
from holdfast.providers.wire import Reader

CHAT = "openai-chat"  # whose opaque blocks these are: the other wire of the vendor has its own
STOPS: dict[str, str] = {
    **dict.fromkeys(("stop", "end_turn", "eos", "stop_sequence"), Stop.STOP),
    **dict.fromkeys(("length", "max_tokens", "model_length"), Stop.MAX_TOKENS),
    **dict.fromkeys(("tool_calls", "function_call", "tool_use"), Stop.TOOL_USE),
    **dict.fromkeys(("content_filter", "safety", "sensitive"), Stop.SAFETY),
    **dict.fromkeys(("error", "network_error"), Stop.ERROR),
}
SEALED_REASONING = "reasoning_text"  # Copilot's: `reasoning_opaque` is its seal
REASONING = ("reasoning_content", "reasoning", SEALED_REASONING)
# What every event of a stream has, so that most of them need no further look.
_USUAL = frozenset(
    ("id", "object", "created", "model", "choices", "usage", "obfuscation", "p", "error")
)
_REPEATED = (_USUAL | {"system_fingerprint", "service_tier", "provider"}) - {"error"}
_OF_CHOICE = frozenset(("index", "delta", "message", "finish_reason", "usage", "error"))
_OFTEN_NULL = frozenset(("logprobs", "native_finish_reason")) | _OF_CHOICE
_SAID = frozenset(("role", "content", "tool_calls", "function_call", "refusal"))
_MORE = frozenset((*REASONING, "reasoning_details", "reasoning_opaque", "images", "audio")) | _SAID
_SEALED = frozenset(("text", "summary", "signature", "data"))


class ChatReader(Reader):
    """Folds one answer of Chat Completions."""

    def __init__(
        self,
        answer: Answer,
        *,
        vendor: str = "openai",
        ends: str = "done",
        joins_choices: bool = False,
    ) -> None:
        super().__init__(answer)
        self._vendor = vendor
        self._ends = ends
        self._joins_choices = joins_choices
        self._signature: str | None = None  # of the whole message
        self._seal: str | None = None  # of thinking that is not the last block
        self._calls = Calls(answer)
        self._sound = Sound()
        self._kept: Object = {}
        self._named: set[str] = set()  # which of id and model are known
        self._thought: Any = None  # what kind of thinking was read last, if it goes on
        self._of_block: frozenset[str] = frozenset()  # the fields of that block of thinking
        self._has_choice = False
        self._has_usage = False
        self._is_refused = False
        self._is_stream = True
        self._reason = ""

    def feed(self, name: str, data: bytes) -> None:
        if self.is_complete:
            return
        if name == "error":
            raise failure(self._vendor, None, {}, data, in_stream=True)
        if data[:1] != b"{" and (mark := data.strip()) in (b"", b"[DONE]"):
            if mark and self._has_choice:
                self._end()
            return
        self._read_event(fields.decode_object(data))

    def read(self, body: Object) -> None:
        self._is_stream = False
        self._raise_error(body)
        choices = fields.objects_of(body, "choices")
        if not choices:
            raise _no_answer(self._vendor, body)
        first = next((each for each in choices if not each.get("index")), choices[0])
        self._read_choice(first)
        others = []
        for choice in choices:
            if choice is first:
                continue
            if self._is_joined(choice):
                self._read_choice(choice)
            else:
                others.append(choice)
        self._put_facts(body)
        self.answer.about(choices=others or None)
        self._end()

    def finish(self, left_over: bytes) -> None:
        if self.is_complete:
            return
        if left_over:  # the mark itself can be cut from the newline behind it
            is_end = left_over.strip() in (b"data: [DONE]", b"data:[DONE]") and self._has_choice
        else:
            is_end = bool(self._reason) and (
                self._ends == "finish" or (self._ends == "usage" and self._has_usage)
            )
        if is_end:
            self._end()

    def _end(self) -> None:
        if (sound := self._sound.part()) is not None:
            self.answer.add_part(sound)
        if self._signature:
            self.answer.sign(self._signature, field="extra_content")
        if self._seal:  # it came behind the words: thinking without any
            self.answer.begin_block(is_thinking=True)
            self.answer.sign(self._seal, field=SEALED_REASONING)
        self._calls.end()
        self.is_complete = True

    # One event

    def _read_event(self, event: Object) -> None:
        for choice in fields.objects_of(event, "choices"):
            if choice.get("index") and not self._is_joined(choice):
                add_choice(self._kept, choice)
                self.answer.about(choices=self._kept["choices"])
            else:
                self._read_choice(choice)
        if (
            len(self._named) < 2
            or event.get("usage")
            or self._reason
            or not _REPEATED.issuperset(event)
        ):
            self._raise_error(event)
            self._put_facts(event)

    def _is_joined(self, choice: Object) -> bool:
        """Whether a further choice is more of the first one: calls, and no words of its own."""
        if not self._joins_choices:
            return False
        said = choice.get("message", choice.get("delta"))
        return type(said) is dict and bool(said.get("tool_calls")) and not said.get("content")

    def _read_choice(self, choice: Object) -> None:
        self._has_choice = True
        said = choice.get("delta")
        if "message" in choice or type(said) is not dict:
            said = self._said_in(choice)
        self._read_message(said)
        if (
            not _OFTEN_NULL.issuperset(choice)
            or choice.get("logprobs") is not None
            or choice.get("native_finish_reason") is not None
        ):
            self._keep(choice, _OF_CHOICE)
        if choice.get("finish_reason") or choice.get("finish_details"):
            self._stop(choice)
        if choice.get("error"):
            self._raise_error(choice)
        if choice.get("usage"):  # Moonshot has it here
            self._put_usage(fields.object_of(choice, "usage"))

    def _said_in(self, choice: Object) -> Object:
        """What is new in a choice that has a `message`.

        In a stream that may be all of the answer so far, beside the delta (Perplexity) or alone at
        the end (MiniMax); or a piece, of a server that has no deltas.
        """
        whole, delta = fields.object_of(choice, "message"), fields.object_of(choice, "delta")
        if not self._is_stream:
            return whole if "message" in choice else delta
        if any(value for name, value in delta.items() if name != "role"):
            return delta
        said = self.answer.text
        if not said and not self.answer.has_calls:
            return whole
        words, is_end = whole.get("content"), bool(choice.get("finish_reason"))
        is_again = is_end and type(words) is str and words.startswith(said)
        return delta if is_again or "delta" in choice else whole

    def _stop(self, choice: Object) -> None:
        reason = fields.text_of(choice, "finish_reason")
        if not reason:  # the first models that saw pictures
            reason = fields.text_of(fields.object_of(choice, "finish_details"), "type")
        if not reason:
            return
        self._reason = reason
        stop = STOPS.get(reason) or STOPS.get(reason.lower(), reason)
        self._calls.end()
        if stop == Stop.STOP and self._is_refused:
            stop = Stop.SAFETY
        elif stop == Stop.STOP and self.answer.has_calls:
            stop = Stop.TOOL_USE  # some servers say "stop" of such an answer, too
        self.answer.stopped(stop)

    def _raise_error(self, holder: Object) -> None:
        """An error where an answer should be, although the status was good."""
        if holder.get("error") or holder.get("object") == "error":
            raise failure(self._vendor, None, {}, holder, in_stream=True)

    # What is said

    def _read_message(self, said: Object) -> None:
        if not _SAID.issuperset(said):
            self._read_more(said)
        content = said.get("content")
        if type(content) is str:
            if content:
                self._thought = None
                self.answer.add_text(content)
        elif content is not None:
            self._read_parts(content)
        if refusal := said.get("refusal"):
            self._refuse(refusal)
        if (calls := said.get("tool_calls")) is not None:
            self._thought = None
            self._calls.read(calls)
        if said.get("function_call"):
            self._thought = None
            self._calls.read_old(fields.object_of(said, "function_call"))

    def _read_parts(self, parts: Any) -> None:
        if type(parts) is not list:
            raise ProtocolError("content is a text or a list")
        for part in parts:
            if type(part) is str:
                self.answer.add_text(part)
            elif type(part) is dict:
                self._read_part(part)
            else:
                raise ProtocolError("content holds texts and objects")

    def _read_part(self, part: Object) -> None:
        kind = part.get("type")
        if kind in ("text", "output_text"):
            self._thought = None
            self.answer.add_text(fields.text_of(part, "text") or "")
        elif kind == "refusal":
            self._refuse(part.get("refusal"))
        elif kind == "thinking":  # Mistral: the thinking is a list of parts itself
            inner = part.get("thinking")
            for each in inner if type(inner) is list else [inner]:
                words = fields.text_of(each, "text") if type(each) is dict else each
                self._think(words if type(words) is str else "", "content")
        elif kind == "image_url" and (image := _image(part)) is not None:
            self.answer.add_part(image)
        else:
            self._thought = None
            self.answer.add_opaque(CHAT, part)

    def _refuse(self, refusal: Any) -> None:
        if type(refusal) is not str:
            raise ProtocolError("refusal is a text")
        if refusal and not self._is_refused:
            self._is_refused = True
            self.answer.begin_block()
            self.answer.note(refusal=True)
            self.answer.stopped(Stop.SAFETY)
        self.answer.add_text(refusal)

    def _read_more(self, said: Object) -> None:
        """What few servers send: thinking, pictures, sound, and facts."""
        field = next((name for name in REASONING if said.get(name)), None)
        words = said[field] if field else ""
        if type(words) is not str:
            self.answer.about(**{str(field): words})
            field, words = None, ""
        if details := said.get("reasoning_details"):
            self._read_details(fields.objects_of({"details": details}, "details"), field, words)
        elif field:
            self._think(words, field)
        for image in fields.objects_of(said, "images"):
            if (shown := _image(image)) is not None:
                self.answer.add_part(shown)
        if said.get("audio"):
            self.answer.add_text(self._sound.add(fields.object_of(said, "audio")))
        if signature := signature_of(said.get("extra_content")):
            self._signature = signature
        if seal := fields.text_of(said, "reasoning_opaque"):
            self._put_seal(seal)
        if not _MORE.issuperset(said):
            self._keep(said, _MORE)

    # Thinking

    def _think(self, words: str, field: str) -> None:
        if not words:
            return
        if self._thought != field:
            self.answer.begin_block(is_thinking=True)
            self.answer.note(field=field)
            self._thought = field
        self.answer.add_thinking(words)

    def _put_seal(self, seal: str) -> None:
        if self._thought == SEALED_REASONING:
            self.answer.sign(seal)
        else:
            self._seal = seal

    def _read_details(self, details: list[Object], field: str | None, words: str) -> None:
        """OpenRouter's blocks: the words once, as they also stand in `reasoning`."""
        if len(details) == 1 and self._goes_on(details[0]):
            more = details[0].get("text")
            if type(more) is str and more == (words or more):
                self.answer.add_thinking(more)
                return
        said = [_words(detail) for detail in details]
        is_same = not words or words == "".join(said)
        if not is_same:
            self._think(words, field or "")
        for detail, text in zip(details, said, strict=True):
            about: Object = {"field": field} if field and is_same else {}
            rest = {k: v for k, v in detail.items() if k not in _SEALED and v is not None}
            data = detail.get("data")
            if type(data) is str or not is_same:
                self._thought = None
                if type(data) is not str:
                    self.answer.begin_block(is_thinking=True)
                    self.answer.sign("", **about, detail=detail)
                else:
                    self.answer.add_redacted(data, detail=rest)
                continue
            self._read_detail(detail, text, about, rest)

    def _goes_on(self, detail: Object) -> bool:
        """Whether this is more of the block before, and nothing new about it: most pieces are."""
        return self._thought == _block_of(detail) and self._of_block.issuperset(detail)

    def _read_detail(self, detail: Object, words: str, about: Object, rest: Object) -> None:
        if self._thought != (key := _block_of(detail)):
            self.answer.begin_block(is_thinking=True)
            self._thought = key
        self._of_block = frozenset(detail) - {"signature"}
        self.answer.note(**about, detail=rest)
        self.answer.add_thinking(words)
        if signature := fields.text_of(detail, "signature"):
            self.answer.sign(signature)

    # Facts

    def _put_facts(self, holder: Object) -> None:
        self._put_names(holder)
        request_id = holder.get("request_id")
        if type(request_id) is str:
            self.answer.about(request_id=request_id or None)
        self._keep(holder, _USUAL, is_told_again=True)
        usage = holder.get("usage")
        if not usage and type(holder.get("x_groq")) is dict:
            usage = holder["x_groq"].get("usage")
        if usage:
            self._put_usage(fields.object_of({"usage": usage}, "usage"))

    def _put_names(self, holder: Object) -> None:
        for name in ("id", "model"):
            if name not in self._named and (found := fields.text_of(holder, name)):
                self._named.add(name)
                self.answer.about(**{name: found})

    def _put_usage(self, usage: Object) -> None:
        self._has_usage = True
        self.answer.used(**counts(usage))
        self.answer.about(usage=usage)

    def _keep(self, holder: Object, known: frozenset[str], *, is_told_again: bool = False) -> None:
        """Whatever is said and is not known: in the answer's extra.

        `is_told_again`: a list may hold what was told before, and go on (Perplexity's sources).
        """
        for name, value in holder.items():
            if name not in known and name not in ("request_id", "id", "model"):
                before = self._kept.get(name) if is_told_again else None
                if type(before) is list and type(value) is list:
                    value = value[len(before) :] if value[: len(before)] == before else value
                keep(self._kept, name, value)
                self.answer.about(**{name: self._kept.get(name)})


def _no_answer(vendor: str, body: Object) -> ProviderError:
    """Some services refuse under the status of a good answer: then in their own words."""
    error = failure(vendor, 200, {}, body)
    error.status = None  # it says nothing of what went wrong
    why = "the answer has no choices"
    error.detail = f"{why}: {error.detail}" if error.detail else why
    return error


def _block_of(detail: Object) -> tuple[Any, Any]:
    return detail.get("type"), detail.get("index")


def _words(detail: Object) -> str:
    return fields.text_of(detail, "text") or fields.text_of(detail, "summary") or ""


def _image(part: Object) -> Image | None:
    image = part.get("image_url")
    url = image.get("url") if type(image) is dict else image
    return from_url(url) if type(url) is str else None
