"""Reading what Google answers: whole, or a stream of documents of the same shape.

Each document has candidates with parts, and what is known of tokens by then. Parts of a stream are
pieces of one block, where they are of one kind; but a part with a signature is kept apart, because
it has to go back as it came. A signature that comes on an empty text, at the end of a stream, is
kept as an opaque part: the same part goes back.

A stream is complete when a candidate says why it finished. "Unspecified" is not such a word: it is
what a service writes that writes out defaults.
"""

from collections.abc import Mapping
from typing import Any

from holdfast.errors import ContentBlocked, ProtocolError
from holdfast.messages import Stop
from holdfast.providers import fields, google_media
from holdfast.providers.answer import Answer
from holdfast.providers.failures import failure
from holdfast.providers.fields import Object
from holdfast.providers.google_arguments import Arguments
from holdfast.providers.wire import Reader

STOPS: Mapping[str, str] = {
    "STOP": Stop.STOP,
    "MAX_TOKENS": Stop.MAX_TOKENS,
    **dict.fromkeys(
        (
            *("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"),
            *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "MODEL_ARMOR"),
        ),
        Stop.SAFETY,
    ),
    **dict.fromkeys(
        (
            *("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"),
            *("MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE"),
        ),
        Stop.ERROR,
    ),
    **dict.fromkeys(("OTHER", "IMAGE_OTHER"), Stop.UNKNOWN),
}
UNSPECIFIED = "FINISH_REASON_UNSPECIFIED"

# Some answers have the number of a reason instead of its name; the two services count apart.
_FIRST = (UNSPECIFIED, "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER")
GEMINI_REASONS = (
    *(*_FIRST, "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MALFORMED_FUNCTION_CALL"),
    *("IMAGE_SAFETY", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "IMAGE_PROHIBITED_CONTENT"),
    *("IMAGE_OTHER", "NO_IMAGE", "IMAGE_RECITATION"),
)
VERTEX_REASONS = (
    *(*_FIRST, "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MALFORMED_FUNCTION_CALL"),
    *("MODEL_ARMOR", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
    *("IMAGE_OTHER", "UNEXPECTED_TOOL_CALL", "NO_IMAGE"),
)

_READ = frozenset(("candidates", "usageMetadata", "modelVersion", "responseId"))
_OF_CANDIDATE = frozenset(("content", "index"))
_OF_CALL = frozenset(("id", "name", "args", "partialArgs", "willContinue"))
_OF_WORDS = frozenset(("text", "thought", "thoughtSignature"))
_ADDED_UP = ("logprobsResult", "citationMetadata")  # lists that a stream gives piece by piece
_TAKEN = ("self", "model", "id", "request_id")  # names that mean something to `Answer.about`


class _Call:
    """A call that is being written."""

    def __init__(self, key: int, id: str | None) -> None:
        self.key = key
        self.id = id
        self.arguments = Arguments()
        self.signature: str | None = None
        self.extra: dict[str, Any] = {} if id else {"id_is_ours": True}


class GoogleReader(Reader):
    """Reads one answer. `vendor` is whose opaque parts these are, `reasons` how it counts them."""

    def __init__(
        self, answer: Answer, vendor: str = "google", reasons: tuple[str, ...] = GEMINI_REASONS
    ) -> None:
        super().__init__(answer)
        self._vendor = vendor
        self._reasons = reasons
        self._is_named = False
        self._kept: Object = {}
        self._metadata: Object = {}
        self._usage: Object = {}
        self._others: list[Object] = []
        self._calls = 0
        self._call: _Call | None = None
        self._reason = ""

    def inside(self, document: Object) -> Object:
        """The answer, or a piece of it, in a document of the service."""
        return document

    def feed(self, name: str, data: bytes) -> None:  # noqa: ARG002 - all events have one name
        self._take(self.inside(fields.decode_object(data)), is_whole=False)

    def read(self, body: Object) -> None:
        body = self.inside(body)
        self._take(body, is_whole=True)
        # The document came whole, so that is all, even if it does not say why.
        self.is_complete = self.is_complete or bool(body.get("candidates"))

    def finish(self, left_over: bytes) -> None:
        """An event that only lacks the blank line behind it is whole: half an object is none."""
        try:
            event = fields.decode_object(left_over.strip().removeprefix(b"data:"))
        except ProtocolError:
            return
        self._take(self.inside(event), is_whole=False)

    def _take(self, event: Object, *, is_whole: bool) -> None:
        if event.get("error") is not None:
            raise failure(self._vendor, None, {}, event, in_stream=True)
        # Most documents of a stream say the same as the last but for the words.
        usage = event.get("usageMetadata")
        if usage is not None and usage != self._usage:
            self._usage = fields.object_of(event, "usageMetadata")
            self._use(self._usage)
        for name in event:
            if name not in _READ:
                self._keep(name, event[name])
        if not self._is_named:
            self._name(event)
        candidates = fields.objects_of(event, "candidates")
        for candidate in candidates:
            if candidate.get("index"):
                self._keep_other(candidate)
            else:
                self._read(candidate, is_whole)
        if not candidates and (feedback := fields.object_of(event, "promptFeedback")):
            self._check(feedback)
        if self._reason:
            self._stop()

    # Facts

    def _name(self, event: Object) -> None:
        model, id = fields.text_of(event, "modelVersion"), fields.text_of(event, "responseId")
        self.answer.about(model=model, id=id)
        self._is_named = model is not None and id is not None

    def _keep(self, name: str, fact: Any) -> None:
        """Keep what there is no place for; the last word counts, but an empty one is none."""
        if self._kept.get(name) == fact or fact in ({}, []):
            return
        if name in _ADDED_UP and name in self._kept:
            fact = _added(self._kept[name], fact)
        self._kept[name] = fact
        self.answer.about(**{f"{name}_" if name in _TAKEN else name: fact})

    def _keep_other(self, candidate: Object) -> None:
        """Of several answers the first counts; the others are kept as they come."""
        self._others.append(candidate)
        if len(self._others) == 1:
            self.answer.about(candidates=self._others)

    def _use(self, usage: Object) -> None:
        """The tokens by now; what is not said again is as it was."""
        if not self._metadata:
            self.answer.about(usageMetadata=self._metadata)  # kept as it is at the end
        self._metadata.update(usage)
        known = self._metadata
        input = _sum(known, "promptTokenCount", "toolUsePromptTokenCount")
        output = _sum(known, "candidatesTokenCount", "thoughtsTokenCount")
        total = fields.count_of(known, "totalTokenCount")
        if output is None and total is not None and input is not None:
            output = max(0, total - input)  # what is 0 is left out
        self.answer.used(
            input=input,
            output=output,
            reasoning=fields.count_of(known, "thoughtsTokenCount"),
            cache_read=fields.count_of(known, "cachedContentTokenCount"),
        )

    def _check(self, feedback: Object) -> None:
        """Raise, if the prompt was blocked."""
        reason = feedback.get("blockReason")
        if reason:
            words = fields.text_of(feedback, "blockReasonMessage")
            said = f": {words}" if words else ""
            raise ContentBlocked(f"the prompt was blocked ({reason}){said}", self._vendor)

    # The answer

    def _read(self, candidate: Object, is_whole: bool) -> None:
        content = candidate.get("content")
        if content is not None:
            for part in fields.objects_of(fields.object_of(candidate, "content"), "parts"):
                text = part.get("text")
                if len(part) == 1 and type(text) is str and not is_whole:  # as nearly all are
                    self.answer.add_text(text)
                else:
                    self._read_part(part, text, is_whole)
        if candidate.keys() <= _OF_CANDIDATE:
            return
        for name in candidate:
            if name not in _OF_CANDIDATE:
                self._keep(name, candidate[name])
        reason = self._named(candidate.get("finishReason"))
        if reason and reason != UNSPECIFIED:
            self._reason = reason
            self.is_complete = True

    def _named(self, reason: Any) -> str | None:
        if reason is None or type(reason) is str:
            return reason
        if type(reason) is not int:
            raise ProtocolError("finishReason is a word or its number")
        return self._reasons[reason] if 0 <= reason < len(self._reasons) else f"REASON_{reason}"

    def _stop(self) -> None:
        if self._call is not None:
            self._end_call(is_broken=self._reason != "STOP")
        stop = STOPS.get(self._reason, self._reason)
        if stop == Stop.STOP and self.answer.has_calls:
            stop = Stop.TOOL_USE
        self.answer.stopped(stop)

    def _read_part(self, part: Object, text: Any, is_whole: bool) -> None:
        if "functionCall" in part:
            self._read_call(part)
        elif text is not None or part.keys() <= _OF_WORDS:
            self._read_words(part, is_whole)
        elif "inlineData" in part and part.get("thought") is not True:
            self._read_media(part)
        else:
            self.answer.add_opaque(self._vendor, part)

    def _read_words(self, part: Object, is_whole: bool) -> None:
        answer, words = self.answer, fields.text_of(part, "text") or ""
        signature = fields.text_of(part, "thoughtSignature")
        is_thinking = part.get("thought") is True
        if signature and not words and not is_thinking:
            answer.add_opaque(self._vendor, {"text": "", "thoughtSignature": signature})
            return
        if signature:
            answer.end_block()
        (answer.add_thinking if is_thinking else answer.add_text)(words)
        if signature:
            answer.sign(signature)
        if words and (more := {name: part[name] for name in part.keys() - _OF_WORDS}):
            answer.note(part=more)
        if signature or is_whole:
            answer.end_block()

    def _read_media(self, part: Object) -> None:
        blob = fields.object_of(part, "inlineData")
        signature = fields.text_of(part, "thoughtSignature")
        extra = {"signature": signature} if signature else {}
        try:
            made = google_media.made(
                fields.text_of(blob, "data") or "", fields.text_of(blob, "mimeType"), **extra
            )
        except ValueError:
            raise ProtocolError("inlineData is not base64") from None
        self.answer.add_part(made)  # type: ignore[arg-type]

    # Calls

    def _read_call(self, part: Object) -> None:
        """A call, or some more of the one that was said to go on."""
        said = fields.object_of(part, "functionCall")
        id, name = fields.text_of(said, "id"), fields.text_of(said, "name")
        if self._call is not None and name is not None and (id is None or id != self._call.id):
            self._end_call()
        if self._call is None:
            if not said:
                return  # the end of a call that has ended
            self._call = _Call(self._calls, id)
            self._calls += 1
            self.answer.begin_call(self._call.key, id=id, name=name)
        call = self._call
        call.signature = fields.text_of(part, "thoughtSignature") or call.signature
        if part.get("thought") is True:
            call.extra["thought"] = True
        if more := {each: said[each] for each in said.keys() - _OF_CALL}:
            call.extra["fields"] = more
        call.arguments.add_all(fields.object_of(said, "args"))
        for piece in fields.objects_of(said, "partialArgs"):
            call.arguments.add(piece)
        if said.get("willContinue") is not True:
            self._end_call()

    def _end_call(self, *, is_broken: bool = False) -> None:
        call, self._call = self._call, None
        assert call is not None
        arguments = call.arguments.text(is_broken=is_broken)
        self.answer.end_call(call.key, arguments=arguments, signature=call.signature, **call.extra)


def _sum(known: Object, first: str, second: str) -> int | None:
    a, b = fields.count_of(known, first), fields.count_of(known, second)
    return None if a is None and b is None else (a or 0) + (b or 0)


def _added(old: Any, new: Any) -> Any:
    """Lists of two pieces of one fact, one behind the other."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **{name: _added(old.get(name), new[name]) for name in new}}
    return old + new if isinstance(old, list) and isinstance(new, list) else new
