"""Ollama's Anthropic-compatible API: the wire of Anthropic, as Ollama reads it.

It turns each request into one of its own API, so this is a variation of `AnthropicWire`:

- No breakpoints for a cache; the server keeps what it has computed by itself.
- Nobody signs thinking, so it goes back to its model without a signature. A level of thinking
  is its `effort`, a number of tokens turns it on, and "off" has to be said: models that can
  think do unless told not to. One that cannot is not asked.
- Only pictures are taken, and only their bytes. A document that is text goes as text; any other
  is named in its place.
- It puts the texts of a message together without anything between them. So there is a blank
  line between two, wherever they came from.
- It knows no schema for an answer: the model is told it in the system instruction.

The size of the window is the server's affair in this API; see `ollama_window.py`.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from holdfast.messages import Message, Role
from holdfast.parts import File, Image, Text
from holdfast.providers import anthropic_blocks
from holdfast.providers.answer import Answer
from holdfast.providers.anthropic import AnthropicWire
from holdfast.providers.anthropic_fragments import Fragment
from holdfast.providers.anthropic_models import Thought, Traits
from holdfast.providers.anthropic_reader import AnthropicReader
from holdfast.providers.fields import Object
from holdfast.providers.openai_chat_media import media_type, text_of
from holdfast.providers.wire import Reader

VENDOR = "ollama"
IMAGES = frozenset(("image/png", "image/jpeg", "image/webp"))
BETWEEN = "\n\n"
_TRAITS = Traits(
    has_schema=False,
    is_adaptive=True,
    takes_budget=True,
    takes_temperature=True,
    thinks_unasked=True,
    always_thinks=False,
)
_TEXT = b'{"type":"text","text":"'
_APART = _TEXT + b"\\n\\n"


class OllamaMessagesWire(AnthropicWire):
    """The Messages API of Ollama, for one model."""

    vendor = VENDOR

    def __init__(
        self, model: str, *, vendor: str | None = None, output_tokens_max: int | None = None
    ) -> None:
        super().__init__(model, vendor=vendor, cache=False, output_tokens_max=output_tokens_max)
        self.rules = self.rules._replace(takes=takes)

    @staticmethod
    def traits_of(model: str) -> Traits:  # noqa: ARG004 - a name says nothing here
        return _TRAITS

    def reader(self, answer: Answer) -> Reader:
        return _MessagesReader(answer, self._vendor)

    def fragment(self, message: Message) -> Fragment:
        return anthropic_blocks.fragment(in_words(message), self.name, self._vendor, signs=False)

    # Of Anthropic's wire, said otherwise

    def _takes_temperature(self, thought: Thought) -> bool:  # noqa: ARG002 - also with thinking
        return True

    def _marked(self, body: Object, fragments: Sequence[Fragment]) -> Sequence[Fragment]:
        return list(_apart(super()._marked(body, fragments)))


class _MessagesReader(AnthropicReader):
    """An answer that says nothing has no content there, and is an answer all the same."""

    def read(self, body: Object) -> None:
        is_empty = body.get("type") == "message" and body.get("content") is None
        super().read({**body, "content": []} if is_empty else body)


def takes(part: Any, role: Role) -> bool:
    """Whether a message of this role may hold this picture or document, in either of its APIs."""
    if role is Role.ASSISTANT or not getattr(part, "data", None):
        return False
    if isinstance(part, Image):
        return media_type(part) in IMAGES
    return isinstance(part, File) and text_of(part) is not None


def in_words(message: Message) -> Message:
    """What a user or a tool says, with documents as text, and texts in a row as one."""
    content = message.content
    if message.role is Role.ASSISTANT or not isinstance(content, tuple):
        return message
    parts: list[Any] = []
    for part in content:
        said = Text(text_of(part) or "") if isinstance(part, File) else part
        if isinstance(said, Image) and not said.media_type:
            said = said.replace(media_type=media_type(said))
        if isinstance(said, Text) and parts and isinstance(parts[-1], Text):
            said = Text(f"{parts.pop().text}{BETWEEN}{said.text}")
        parts.append(said)
    return message.replace(content=tuple(parts))


def _apart(fragments: Sequence[Fragment]) -> Iterator[Fragment]:
    """The fragments, with a blank line before a text that follows a text of the same role."""
    role, last = "", b""
    for each in fragments:
        if not each.blocks:
            continue
        first, *others = each.blocks
        if each.role == role and first.startswith(_TEXT) and last.startswith(_TEXT):
            first = _APART + first.removeprefix(_TEXT)
            yield Fragment.of(each.role, (first, *others), *each[3:])
        else:
            yield each
        role, last = each.role, each.blocks[-1]
