"""Reading what Code Assist answers: Google's documents, taken out of their envelopes."""

from holdfast.messages import Stop
from holdfast.providers import fields
from holdfast.providers.answer import Answer
from holdfast.providers.fields import Object
from holdfast.providers.google_reader import VERTEX_REASONS, GoogleReader

_ENVELOPE = frozenset(("response", "traceId"))


class CodeAssistReader(GoogleReader):
    """Reads one answer. What else stands in an envelope is kept, and `traceId` names the request.

    Claude signs a thought behind it, in a part of its own, and stops for a call without giving a
    reason that Google has a word for.
    """

    def __init__(self, answer: Answer, vendor: str, *, is_gemini: bool) -> None:
        super().__init__(answer, vendor, VERTEX_REASONS)
        self._is_gemini = is_gemini

    def inside(self, document: Object) -> Object:
        if "response" not in document or document.get("error") is not None:
            return document
        for name in document.keys() - _ENVELOPE:
            self._keep(name, document[name])
        trace = document.get("traceId")
        if isinstance(trace, str) and trace:
            self.answer.about(request_id=trace)
        return fields.object_of(document, "response")

    def _read_words(self, part: Object, is_whole: bool) -> None:
        signature = fields.text_of(part, "thoughtSignature")
        is_behind = part.get("thought") is True and self.answer.is_thinking
        if self._is_gemini or not signature or not is_behind:
            super()._read_words(part, is_whole)
            return
        self.answer.add_thinking(fields.text_of(part, "text") or "")
        self.answer.sign(signature)
        self.answer.end_block()

    def _stop(self) -> None:
        super()._stop()
        if self._reason == "OTHER" and self.answer.has_calls and not self._is_gemini:
            self.answer.stopped(Stop.TOOL_USE)
