"""Token counters: exact where the vocabulary is installed, an honest estimate where it is not.

    count = counter("o200k")              # the family of a model: model_of(...).family
    count.count("Hello."), count.is_exact, count.error
    message_tokens(message, count)        # a whole message, with calls, thinking, pictures
    message_counter(count)                # the same for many: what a ledger takes
    prompt_tokens(messages, count, system=..., tools=...)

With the extra `tokens` text is counted by the vocabularies of splintr-rs, and Claude's by ctok, a
reconstruction that exists for Python 3.12 and later. Without ctok Claude's is counted as o200k
times a factor, or nearly the estimate if that is more; without either, by the kinds of characters
(`estimates.py`). Nothing is loaded before the first count. The errors stated are measured:
`python bench/tokens.py`.

What a request costs beyond its texts is not published. The constants in FRAMES were fitted to
recorded requests with reported usage; tests/test_provider_tokens.py holds them to it.
"""

import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, NamedTuple, Protocol

from holdfast.frozen import thaw
from holdfast.messages import Content, Message, ToolCall
from holdfast.parts import Audio, CallRef, File, Image, Opaque, Part, Text, Thinking
from holdfast.providers.estimates import estimate
from holdfast.providers.images import pdf_tokens, picture_tokens
from holdfast.tools import Tool


class Counter(Protocol):
    """Counts the tokens of a text, for one family of models.

    is_exact  counted as the model does, as far as recorded requests show
    error     otherwise: the relative error that 95 of 100 texts stay below
    """

    @property
    def name(self) -> str:
        """The family it counts for."""

    @property
    def is_exact(self) -> bool: ...

    @property
    def error(self) -> float: ...

    def count(self, text: str) -> int:
        """The tokens of `text` alone: no message around it."""


class _Counter:
    """A counter whose vocabulary is loaded by the first count."""

    def __init__(self, name: str, load: Callable[[], Callable[[str], int]], error: float) -> None:
        self.name = name
        self.is_exact = not error
        self.error = error
        self.count: Callable[[str], int] = self._first
        self._load = load

    def _first(self, text: str) -> int:
        self.count = self._load()  # twice when two threads are first: the same either way
        return self.count(text)

    def __repr__(self) -> str:
        how = "exact" if self.is_exact else f"error {self.error:.0%}"
        return f"<counter of {self.name} tokens, {how}>"


# The vocabularies by the names that splintr gives them.
_VOCABULARIES = {
    "o200k": "o200k_base",
    "cl100k": "cl100k_base",
    "llama3": "llama3",
    "gemma": "gemma3",
    "gemini": "gemma3",
    "qwen": "qwen3",
    "deepseek": "deepseek_v3",
    "mistral": "mistral_v3",
    "kimi": "kimi_k2",
    "glm": "glm4",
}
_GEMINI_ERROR = 0.05  # Gemini's own is not published; Gemma's was within 2 tokens of it

# The version that ctok counts for, the tokens it adds for a message around the text, and the
# factor and error of o200k in its place.
_CLAUDE = {"claude-3": ("3.0", 7, 1.2, 0.25), "claude-4.7": ("4.8", 6, 1.4, 0.30)}
_ESTIMATE_SHARE = 0.95

_ESTIMATE_ERRORS = {
    "o200k": 0.30,
    "cl100k": 0.30,
    "gemini": 0.20,
    "gemma": 0.20,
    "claude-3": 0.25,
    "claude-4.7": 0.25,
}
_ESTIMATE_ERROR = 0.75  # of a family that is not known: rather too many


@lru_cache(maxsize=64)
def counter(family: str) -> Counter:
    """The best counter that is installed for a family; an estimate for one that is not known."""
    if family in _CLAUDE and find_spec("ctok"):
        return _Counter(family, lambda: _ctok(family), 0.0)
    if find_spec("splintr"):
        if family in _CLAUDE:
            return scaled(family)
        if family in _VOCABULARIES:
            error = _GEMINI_ERROR if family == "gemini" else 0.0
            return _Counter(family, lambda: _splintr(_VOCABULARIES[family]), error)
    return estimator(family)


def estimator(family: str) -> Counter:
    """The counter by kinds of characters, whatever is installed."""
    error = _ESTIMATE_ERRORS.get(family, _ESTIMATE_ERROR)
    return _Counter(family, lambda: lambda text: estimate(text, family), error)


def scaled(family: str) -> Counter:
    """Claude's tokens as o200k times a factor, or nearly the estimate if more; needs splintr."""
    return _Counter(family, lambda: _scaled(family), _CLAUDE[family][3])


def _splintr(name: str) -> Callable[[str], int]:
    from splintr import Tokenizer

    # Words such as <|endoftext|> are text here, not the mark that they spell.
    encode = Tokenizer.from_pretrained(name).encode_ordinary

    def count(text: str) -> int:
        try:
            return len(encode(text))
        except UnicodeEncodeError:
            return len(encode(_encodable(text)))

    return count


def _scaled(family: str) -> Callable[[str], int]:
    count = _splintr(_VOCABULARIES["o200k"])
    factor = _CLAUDE[family][2]
    # The factor alone is a third too low for scripts that o200k has words for and Claude has not.
    return lambda text: max(
        round(count(text) * factor), round(estimate(text, family) * _ESTIMATE_SHARE)
    )


def _ctok(family: str) -> Callable[[str], int]:
    from ctok import token_count

    version, around, _, _ = _CLAUDE[family]
    return lambda text: max(0, token_count(_encodable(text), version) - around)


def _encodable(text: str) -> str:
    """The text with a replacement for each half of a character, which no vocabulary takes."""
    return text.encode("utf-8", "replace").decode()


# ---- messages ----


class Frame(NamedTuple):
    """What is added to the texts: for a request, a message, a call, a result, tools, each tool."""

    request: int
    message: int
    call: int
    result: int
    tools: int
    tool: int
    images: str


_CLAUDE_FRAME = Frame(4, 3, 40, 30, 490, 22, "grid-hi")
_OPENAI_FRAME = Frame(3, 4, 8, 4, 10, 0, "tiles")
FRAMES = {
    "claude-3": _CLAUDE_FRAME._replace(images="grid"),
    "claude-4.7": _CLAUDE_FRAME,
    "o200k": _OPENAI_FRAME,
    "cl100k": _OPENAI_FRAME,
    "gemini": Frame(0, 1, 4, 4, 0, 4, "gemini-3"),
}
OTHER_FRAME = Frame(5, 5, 20, 10, 180, 10, "other")

AUDIO_TOKENS_A_SECOND = 32  # Gemini's; OpenAI counts 10
AUDIO_BYTES_A_SECOND = 16_000  # 128 kbit/s
AUDIO_SECONDS_UNKNOWN = 60
SEALED_CHARACTERS_A_TOKEN = 5  # what a vendor sealed is base64, of text with some 4 bytes a token
_SEALED_MIN = 400


def prompt_tokens(
    messages: Iterable[Message],
    count: Counter,
    *,
    system: str | None = None,
    tools: Iterable[Tool] = (),
    images: str | None = None,
) -> int:
    """A whole request. `images` is the model's rule for pictures, if it has one of its own."""
    frame = FRAMES.get(count.name, OTHER_FRAME)
    said = sum(map(message_counter(count, images), messages))
    around = frame.request + (frame.message + count.count(system) if system else 0)
    return around + said + tools_tokens(tools, count)


def message_tokens(message: Message, count: Counter, images: str | None = None) -> int:
    """A message as part of a request: its words, thinking, calls, results and pictures."""
    return message_counter(count, images)(message)


def message_counter(count: Counter, images: str | None = None) -> Callable[[Message], int]:
    """What counts the tokens of messages, as `message_tokens` does: for many of them."""
    frame = FRAMES.get(count.name, OTHER_FRAME)
    rule = images or frame.images
    around = frame.message

    def tokens(message: Message) -> int:
        content = message.content
        if type(content) is str:
            found = around + count.count(content)
        else:
            found = around + _content(content, count, rule)
        if message.tool_calls:
            found += _calls(message.tool_calls, count, frame)
        return found if message.tool_call_id is None else found + frame.result

    return tokens


def _calls(calls: Iterable[ToolCall], count: Counter, frame: Frame) -> int:
    tokens = 0
    for call in calls:
        if call.output is None:
            tokens += frame.call + count.count(call.name) + count.count(call.arguments)
            # Gemini's signature holds what was thought, of which not all is shown again.
            tokens += _sealed(call.signature or "") // 3
        else:
            tokens += frame.result + count.count(call.output)
    return tokens


def tools_tokens(tools: Iterable[Tool], count: Counter) -> int:
    """The declarations of the tools, as a model is shown them."""
    frame = FRAMES.get(count.name, OTHER_FRAME)
    texts = [
        _json({"name": t.name, "description": t.description, "parameters": thaw(t.parameters)})
        for t in tools
    ]
    if not texts:
        return 0
    return frame.tools + sum(frame.tool + count.count(text) for text in texts)


def _content(content: Content, count: Counter, images: str) -> int:
    if isinstance(content, str):
        return count.count(content)
    return sum(_part(part, count, images) for part in content or ())


def _part(part: Part, count: Counter, images: str) -> int:
    if isinstance(part, Text):
        return count.count(part.text)
    if isinstance(part, Thinking):
        return _sealed(part.signature or "") if part.redacted else count.count(part.text)
    if isinstance(part, Image):
        return picture_tokens(part.data, images)
    if isinstance(part, File):
        return _file(part, count, images)
    if isinstance(part, Audio):
        seconds = AUDIO_SECONDS_UNKNOWN
        if part.data is not None:
            seconds = 1 + len(part.data) // AUDIO_BYTES_A_SECOND
        return seconds * AUDIO_TOKENS_A_SECOND
    if isinstance(part, CallRef):
        return 0  # only the place of a call, which is counted by itself
    return _value(part.data if isinstance(part, Opaque) else part.raw, count)


def _file(part: File, count: Counter, images: str) -> int:
    """A PDF by its pages, a picture as one, and anything else as the text it holds."""
    kind = part.media_type or ""
    if kind.startswith("image/"):
        return picture_tokens(part.data, images)
    if part.data is None or kind == "application/pdf" or part.data.startswith(b"%PDF"):
        return pdf_tokens(part.data, images)
    return count.count(part.data.decode("utf-8", "replace"))


def _value(value: Any, count: Counter) -> int:
    """A vendor's own block: its JSON, but for what is sealed in it."""
    if isinstance(value, dict):
        return sum(count.count(key) + _value(item, count) for key, item in value.items())
    if isinstance(value, tuple | list):
        return sum(_value(item, count) for item in value)
    if isinstance(value, str):
        sealed = len(value) >= _SEALED_MIN and " " not in value
        return _sealed(value) if sealed else count.count(value)
    return 1


def _sealed(text: str) -> int:
    return len(text) // SEALED_CHARACTERS_A_TOKEN


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
