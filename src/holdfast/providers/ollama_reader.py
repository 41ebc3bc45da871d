"""Reads what Ollama's own API answers, whole or line by line.

A stream is one document a line, each with a piece of the message, and is complete with the line
that says `done`. A whole answer is such a line. Calls come whole, in one line.

Some versions leave out of `prompt_eval_count` what they had in their cache; it is taken as it
comes, and `ollama_window.py` knows. What `/api/generate` answers, words in `response`, is read too.
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
from holdfast.providers.openai_chat_choices import keep
from holdfast.providers.wire import Reader

_STOPS = {"stop": Stop.STOP, "length": Stop.MAX_TOKENS}
_NO_FACTS = ("id", "request_id", "self")  # names that an answer has for itself
_KNOWN = frozenset(
    (
        *("model", "message", "response", "thinking", "done", "done_reason"),
        *("prompt_eval_count", "eval_count", "prompt_eval_cached_count"),
        *_NO_FACTS,
    )
)
_OF_EACH = frozenset(("created_at",))  # of every line; the last one's is kept
_IN_MESSAGE = frozenset(("role", "content", "thinking", "tool_calls", *_NO_FACTS))


class OllamaReader(Reader):
    """Folds one answer of `/api/chat`."""

    def __init__(self, answer: Answer, vendor: str = "ollama") -> None:
        super().__init__(answer)
        self._vendor = vendor
        self._calls = 0
        self._kept: Object = {}
        self._is_named = False

    def feed(self, name: str, data: bytes) -> None:  # noqa: ARG002 - lines have no name
        if not self.is_complete:
            self._take(decode_object(data))

    def read(self, body: Object) -> None:
        if not body.get("error") and "message" not in body and "response" not in body:
            raise ProtocolError("the answer has no message")
        self._take(body)
        self.is_complete = True

    def finish(self, left_over: bytes) -> None:
        """A last line may lack its newline: it is whole if it is a document."""
        if left_over and not self.is_complete:
            try:
                self.feed("", left_over)
            except ProtocolError:
                return

    def _take(self, line: Object) -> None:
        if line.get("error"):
            raise failure(self._vendor, None, {}, line, in_stream=True)
        if not self._is_named and (model := text_of(line, "model")):
            self._is_named = True
            self.answer.about(model=model)
        self._say(object_of(line, "message"))
        if "response" in line:
            self._say({"content": line["response"], "thinking": line.get("thinking")})
        is_done = line.get("done") is True
        if is_done or not (_KNOWN | _OF_EACH).issuperset(line):
            self._keep(line, _KNOWN if is_done else _KNOWN | _OF_EACH)
        if is_done:
            self._end(line)

    def _say(self, message: Object) -> None:
        self.answer.add_thinking(text_of(message, "thinking") or "")
        self.answer.add_text(text_of(message, "content") or "")
        for call in objects_of(message, "tool_calls"):
            self._call(call)
        if not _IN_MESSAGE.issuperset(message):
            self._keep(message, _IN_MESSAGE)

    def _call(self, call: Object) -> None:
        function = object_of(call, "function")
        arguments: Any = function.get("arguments")
        written = arguments if type(arguments) is str else encode(arguments or {})
        key, self._calls = self._calls, self._calls + 1
        self.answer.begin_call(key, id=text_of(call, "id"), name=text_of(function, "name"))
        self.answer.end_call(key, arguments=written)

    def _end(self, line: Object) -> None:
        self.is_complete = True
        self.answer.used(
            input=count_of(line, "prompt_eval_count"),
            output=count_of(line, "eval_count"),
            cache_read=count_of(line, "prompt_eval_cached_count"),
        )
        reason = text_of(line, "done_reason") or "stop"  # early versions have none
        stop = _STOPS.get(reason, reason)
        self.answer.stopped(Stop.TOOL_USE if self._calls and stop == Stop.STOP else stop)

    def _keep(self, holder: Object, known: frozenset[str]) -> None:
        """Whatever is said and is not known: in the answer's extra."""
        for name, value in holder.items():
            if name not in known:
                keep(self._kept, name, value)
                self.answer.about(**{name: self._kept.get(name)})
