"""Ollama's own API, `/api/chat`: for servers that are too old for the other, and by choice.

One message becomes one message of the wire: a text, the pictures beside it, thinking and calls.

- Arguments are an object there. What is no object goes as `{"arguments": "what was written"}`.
- A result names its tool; the id of its call goes along for servers that know ids.
- Thinking goes back to the model that thought it. It is turned on or off; gpt-oss alone is told
  how hard to think, and refused elsewhere is what it takes.
- The size of the window is asked for (`options.num_ctx`). A prompt that is longer is to be
  refused (`truncate`), and an answer that fills the window to end there (`shift`); servers that
  do not know these two fields cut in silence, which `ollama_window.py` looks for.
- An answer by a schema is held to it (`format`).

`settings.extra["ollama"]` goes into the body as it is, its `options` into ours.
"""

from base64 import b64encode
from typing import ClassVar

import msgspec

from holdfast.messages import Message, Role, ToolCall
from holdfast.notes import BLANK
from holdfast.parts import Image, Text, Thinking
from holdfast.providers import openai_shared as shared
from holdfast.providers.answer import Answer
from holdfast.providers.fields import Object
from holdfast.providers.ollama_messages import BETWEEN, VENDOR, in_words, takes
from holdfast.providers.ollama_reader import OllamaReader
from holdfast.providers.openai_chat_dialect import LONG_ID
from holdfast.providers.prepare import Rules
from holdfast.providers.wire import Ask, Framing, Reader, Wire, merge, wanted

_LEVELS = {"minimal": "low", "low": "low", "medium": "medium"}  # all others are high
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class OllamaWire(Wire):
    """Chat by Ollama's own API, for one model. `num_ctx` is the window to ask for, in tokens."""

    vendor: ClassVar[str] = VENDOR
    api: ClassVar[str] = "ollama"
    framing: Framing = "lines"

    def __init__(
        self, model: str, *, vendor: str | None = None, num_ctx: int | None = None
    ) -> None:
        super().__init__(model, vendor=vendor)
        self._vendor = vendor or self.vendor
        self._num_ctx = num_ctx
        self.rules = Rules(
            vendor=self._vendor,
            tool_name=shared.TOOL_NAME,
            call_id=LONG_ID,
            first_is_user=True,
            last_is_user=True,
            takes=takes,
        )

    def path(self, ask: Ask) -> str:  # noqa: ARG002 - the same for all
        return "/api/chat"

    def reader(self, answer: Answer) -> Reader:
        return OllamaReader(answer, self._vendor)

    # The body

    def to_wire(self, ask: Ask) -> Object:
        prepared = ask.prepared
        told = [_encode({"role": "system", "content": prepared.system})] if prepared.system else []
        body: Object = {
            "model": self.model,
            "messages": msgspec.Raw(b"[%b]" % b",".join([*told, *prepared.fragments])),
            "stream": ask.stream,  # it would stream if nothing were said
            "truncate": False,
            "shift": False,
        }
        if prepared.tools:
            tools = {tool.name: tool for tool in prepared.tools}.values()
            body["tools"] = [{"type": "function", "function": shared.function(t)} for t in tools]
        if ask.schema is not None:
            body["format"] = ask.schema
        if ask.settings.thinking is not None:
            body["think"] = self._think(ask.settings.thinking)
        if options := self._options(ask):
            body["options"] = options
        merge(body, wanted(ask, self._vendor))
        return body

    def _think(self, thinking: str | int) -> bool | str:
        word = shared.effort(thinking)
        if word == "none" or "gpt-oss" not in self.model.lower():
            return word != "none"
        return _LEVELS.get(word, "high")

    def _options(self, ask: Ask) -> Object:
        settings = ask.settings
        options = {
            "num_ctx": self._num_ctx,
            "num_predict": settings.max_tokens,
            "temperature": settings.temperature,
        }
        return {name: value for name, value in options.items() if value is not None}

    # One message

    def fragment(self, message: Message) -> bytes:
        role = message.role
        made: Object = {"role": role.value, "content": ""}
        said = in_words(message)
        parts = said.content if isinstance(said.content, tuple) else ()
        made["content"] = said.content if isinstance(said.content, str) else _text(parts)
        if images := [b64encode(p.data or b"").decode() for p in parts if isinstance(p, Image)]:
            made["images"] = images
        if thought := "".join(part.text for part in parts if isinstance(part, Thinking)):
            made["thinking"] = thought
        if message.tool_calls:
            made["tool_calls"] = [_call(call) for call in message.tool_calls]
        if role is Role.TOOL:
            made |= {"tool_name": message.name or "", "tool_call_id": message.tool_call_id or ""}
        elif not (made["content"] or made.keys() - {"role", "content"}):
            made["content"] = BLANK
        return _encode(made)


def _text(parts: tuple[object, ...]) -> str:
    return BETWEEN.join(part.text for part in parts if isinstance(part, Text) and part.text)


def _call(call: ToolCall) -> Object:
    function = {"name": call.name, "arguments": _arguments(call.arguments)}
    return {"id": call.id, "function": function}


def _arguments(written: str) -> object:
    """The arguments, which have to be an object: as they were written, if they are one."""
    try:
        if type(_decode(written)) is dict:
            return msgspec.Raw(written.encode())
    except (msgspec.DecodeError, RecursionError):
        pass
    return {"arguments": written} if written.strip() else {}
