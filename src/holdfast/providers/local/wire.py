"""The wire of the embedded model: Chat Completions of its own server, as plain words.

Its model was taught neither tools nor media, so everything it is shown is text. With tools, it is
held to JSON that is an answer or a call (`calls.py`); then earlier turns are written in the same
form, and what it writes is taken apart again while it comes (`replies.py`).
"""

import re
from typing import Any, ClassVar

from holdfast.messages import Message, Role, Stop
from holdfast.providers.answer import Answer
from holdfast.providers.base import Callbacks, Response
from holdfast.providers.fields import Object
from holdfast.providers.local import calls
from holdfast.providers.local.grammar import portable
from holdfast.providers.local.replies import Reader as Replies
from holdfast.providers.names import Spelling
from holdfast.providers.openai_chat_reader import ChatReader
from holdfast.providers.prepare import Rules
from holdfast.providers.wire import Ask, Reader, Wire, merge, wanted

_ANY = Spelling(re.compile(r"(?!)"), 1_000)  # nobody but us reads names and ids
_RESULT = "[What {name} gave back] {text}"
_FAILED = "[{name} failed] {text}"
_RULES = Rules(
    vendor="local",
    tool_name=_ANY,
    call_id=_ANY,
    first_is_user=True,
    last_is_user=True,
    keeps_thinking=False,
    has_calls=False,
)

Fragment = tuple[str, str, str]  # the role, the words, and what was written to call tools


class LocalWire(Wire):
    """One local model."""

    vendor: ClassVar[str] = "local"
    api: ClassVar[str] = "openai-chat"
    rules = _RULES

    def fragment(self, message: Message) -> Fragment:
        """The role and the words of a message; its calls in the form in which they are written."""
        words = message.text or ""
        if message.role is Role.TOOL:
            form = _FAILED if message.is_error else _RESULT
            return "user", form.format(name=message.name, text=words), ""
        written = [calls.call_text(call.name, call.arguments) for call in message.tool_calls]
        called = "".join(written) if len(written) < 2 else f"[{', '.join(written)}]"
        return message.role.value, words, called

    def to_wire(self, ask: Ask) -> Object:
        prepared = ask.prepared
        said = [("system", prepared.system)] if prepared.system else []
        if prepared.tools:
            told = (prepared.system, calls.instructions(prepared.tools))
            said = [("system", "\n\n".join(filter(None, told)))]
            for asked, written in calls.shots(prepared.tools):
                said += [("user", asked), ("assistant", written)]
        for role, words, called in prepared.fragments:
            if prepared.tools and role == "assistant" and (words or not called):
                words = calls.answer_text(words)
            words = "\n\n".join(filter(None, (words, called)))
            if said and said[-1][0] == role:  # its template wants them to take turns
                words = f"{said.pop()[1]}\n\n{words}"
            said.append((role, words))
        body: Object = {
            "model": self.model,
            "messages": [{"role": role, "content": words} for role, words in said],
        }
        if prepared.tools:
            body["response_format"] = calls.response_format(prepared.tools, ask.schema)
        elif ask.schema is not None:
            schema = {"name": "answer", "schema": portable(ask.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        if ask.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        settings = ask.settings
        if settings.max_tokens is not None:
            body["max_tokens"] = max(settings.max_tokens, 1)
        if settings.temperature is not None:
            body["temperature"] = settings.temperature
        merge(body, wanted(ask, self.vendor))
        return body

    def path(self, ask: Ask) -> str:  # noqa: ARG002 - the same for all
        return "/v1/chat/completions"

    def reader(self, answer: Answer) -> Reader:
        return ChatReader(answer, vendor=self.vendor)

    def answer(self, ask: Ask, callbacks: Callbacks | None = None) -> Answer:
        kind = AnswerInJson if ask.prepared.tools else Answer
        return kind(self.name, names=ask.prepared.names, callbacks=callbacks)


class AnswerInJson(Answer):
    """An answer that is written as JSON, in the form of `calls.py`, and heard as what it says."""

    def __init__(self, model: str, **options: Any) -> None:
        super().__init__(model, **options)
        self._replies: Replies | None = Replies()

    def add_text(self, words: str) -> None:
        super().add_text(words if self._replies is None else self._replies.feed(words))

    def response(self) -> Response:
        if self._replies is not None:
            said, self._replies = self._replies.finish(), None
            self.add_text(said.rest)
            for number, (name, arguments) in enumerate(said.calls):
                self.begin_call(number, name=name)
                self.end_call(number, arguments=arguments)
            if said.calls:
                self.stopped(Stop.TOOL_USE)
        return super().response()
