"""Code Assist: Google's generateContent in an envelope, for Gemini and for models of others.

    {"model", "request": {"contents", ..., "sessionId"}, "requestType", "userAgent"}
    {"response": {"candidates", ...}, "traceId"}          an answer, or a piece of one

The inside is Google's wire, with what is said here of other models: the service translates what
it is asked for their vendors, so that Claude's own rules hold behind Google's names. The project
and the id of a request depend on who asks, and are added when it is sent (`tries.py`). An answer
that comes without its envelope is read as well.

- Claude is told every id of a call, the schemas of `schema.py`, and a schema for its answer in the
  system instruction. Thinking goes back to it if it is signed and something stands behind it.
- Gemini 3 thinks by level: a number of tokens is up to 8,192 low, up to 16,384 medium, else high.
  Where nobody says it, the level is that of the name, else low. Claude has tokens, 8,192 of them
  where nobody says it; while tools run it goes on thinking only if the turn began with a thought.
- Gemini 2.5 and older ones are asked as Google's wire asks them.

`settings.extra["antigravity"]` goes into the request inside the envelope.
"""

import hashlib
import re
from collections.abc import Sequence
from itertools import groupby
from typing import ClassVar

from holdfast.messages import Message, Role
from holdfast.parts import Media, Thinking
from holdfast.providers import google_media
from holdfast.providers.answer import Answer
from holdfast.providers.anthropic import BY_SCHEMA
from holdfast.providers.anthropic_blocks import IMAGES, PDF
from holdfast.providers.anthropic_models import Traits
from holdfast.providers.antigravity import families
from holdfast.providers.antigravity.reader import CodeAssistReader
from holdfast.providers.antigravity.schema import of_parameters
from holdfast.providers.fields import Object, encode
from holdfast.providers.google import RULES, GoogleWire
from holdfast.providers.google_parts import Fragment, Fragments
from holdfast.providers.names import Spelling
from holdfast.providers.wire import Ask, Reader
from holdfast.settings import Settings
from holdfast.tools import Tool

VENDOR = "antigravity"
BETA_OF_CLAUDE = "interleaved-thinking-2025-05-14"
OUTPUT_OF_CLAUDE = 64_000
BUDGET_OF_CLAUDE = 8_192
LEVELS = ((8_192, "low"), (16_384, "medium"))
_LEVELED = (3, 0)  # the first Gemini that thinks by level and signs its calls

# What is not Gemini's is held to the narrower of both vendors' rules.
_NAME = Spelling(re.compile(r"[^a-zA-Z0-9_-]"), 64, re.compile("[a-zA-Z_]"))
_CALL_ID = Spelling(re.compile(r"[^a-zA-Z0-9_-]"), 64)
_INLINE = IMAGES | {PDF}
# Whatever a Claude knows elsewhere, here it is told to think by a budget, as the old ones are.
_BY_BUDGET = Traits.of("")


class CodeAssistWire(GoogleWire):
    """One model. `quota` is "antigravity" or "gemini-cli", if its name is not to say it."""

    vendor: ClassVar[str] = VENDOR
    api: ClassVar[str] = "code-assist"

    def __init__(self, model: str, *, vendor: str | None = None, quota: str | None = None) -> None:
        super().__init__(model, vendor=vendor)
        self.family = families.family_of(model, quota)
        self.name_at_service = families.name_at_service(model)
        self.is_gemini = families.is_gemini(model)
        self._is_thinking_claude = families.is_thinking_claude(model)
        is_signed = self.is_gemini and self._generation >= _LEVELED
        self.fragments = Fragments(self.name, VENDOR, is_signed=is_signed, reads_media=is_signed)
        self.rules = RULES._replace(vendor=VENDOR, detaches=self.fragments.detaches)
        if not self.is_gemini:
            traits = Traits.of(model)
            self.rules = self.rules._replace(
                tool_name=_NAME,
                call_id=_CALL_ID,
                has_blank_text=False,
                binds_prefix="claude" in model and traits.binds_prefix,
                takes=_takes,
            )

    def fragment(self, message: Message) -> Fragment:
        if not self.is_gemini and _is_model(message):
            message = _as_claude_takes_it(message)
        return super().fragment(message)

    def to_wire(self, ask: Ask) -> Object:
        request = super().to_wire(ask if self.is_gemini else _with_schema_told(ask))
        if ask.conversation:
            # It tells conversations apart, and need not say who talks in them.
            digest = hashlib.blake2b(ask.conversation.encode(), digest_size=16).hexdigest()
            request.setdefault("sessionId", digest)
        return {"model": self.name_at_service, "request": request, **self.family.envelope}

    def path(self, ask: Ask) -> str:
        return method("streamGenerateContent?alt=sse" if ask.stream else "generateContent")

    def headers(self, ask: Ask) -> dict[str, str]:  # noqa: ARG002 - the same for all
        return {"anthropic-beta": BETA_OF_CLAUDE} if self._is_thinking_claude else {}

    def reader(self, answer: Answer) -> Reader:
        return CodeAssistReader(answer, VENDOR, is_gemini=self.is_gemini)

    def declaration(self, tool: Tool) -> Object:
        if self.is_gemini:
            return super().declaration(tool)
        parameters = of_parameters(tool.parameters)
        return {"name": tool.name, "description": tool.description, "parameters": parameters}

    # How to answer

    def _config(self, ask: Ask) -> Object:
        if "claude" in self.model:
            return self._config_of_claude(ask)
        config = super()._config(ask)
        if self._generation >= _LEVELED and "thinkingConfig" not in config:
            config["thinkingConfig"] = {"thinkingLevel": families.level_of(self.model)}
        return config

    def _config_of_claude(self, ask: Ask) -> Object:
        """It writes up to its limit, and takes no temperature beside a thought, or above 1."""
        most = min(ask.settings.max_tokens or OUTPUT_OF_CLAUDE, OUTPUT_OF_CLAUDE)
        settings = ask.settings.replace(max_tokens=most)
        config = super()._config(ask._replace(settings=settings))
        budget = _budget_of_claude(settings) if self._is_thinking_claude else None
        if budget is not None and _may_think(ask.prepared.messages):
            config["thinkingConfig"] = {"thinkingBudget": budget, "includeThoughts": True}
            config.pop("temperature", None)
        if "temperature" in config:
            config["temperature"] = min(config["temperature"], 1.0)
        return config

    def _thinking(self, thinking: str | int) -> Object:
        if isinstance(thinking, int) and self._generation >= _LEVELED:
            level = next((level for most, level in LEVELS if thinking <= most), "high")
            return super()._thinking(level if thinking else "off")
        return super()._thinking(thinking)


def method(name: str) -> str:
    """The path of a method of the service."""
    return f"v1internal:{name}"


def _with_schema_told(ask: Ask) -> Ask:
    """The question with the schema of its answer in the system instruction."""
    if ask.schema is None:
        return ask
    told = BY_SCHEMA + encode(ask.schema)
    system = f"{ask.prepared.system}\n\n{told}" if ask.prepared.system else told
    return ask._replace(schema=None, prepared=ask.prepared._replace(system=system))


def _budget_of_claude(settings: Settings) -> int | None:
    """How many tokens it may think, of those that it may write."""
    if settings.thinking is None:
        settings = settings.replace(thinking=BUDGET_OF_CLAUDE)
    thought = _BY_BUDGET.thought(settings, OUTPUT_OF_CLAUDE).thinking
    return None if thought is None else int(thought["budget_tokens"])


def _may_think(messages: Sequence[Message]) -> bool:
    """Whether the turn whose tools are running, if one is, began with a thought.

    "When `thinking` is enabled, a final `assistant` message must start with a thinking block."
    Words of the user behind the results do not end such a turn.
    """
    said = [_as_claude_takes_it(each) if _is_model(each) else each for each in reversed(messages)]
    spoken = [each for each in said if each.content or each.tool_calls or not _is_model(each)]
    first: list[Message] = []  # what the model said first in this turn
    for is_model, group in groupby(spoken, key=_is_model):
        together = list(group)[::-1]
        if is_model:
            first = together
        elif not any(each.role is Role.TOOL for each in together):
            break
    if not any(each.tool_calls for each in first):
        return True
    content = first[0].content
    return isinstance(content, tuple) and type(content[0]) is Thinking


def _is_model(message: Message) -> bool:
    return message.role is Role.ASSISTANT


def _as_claude_takes_it(message: Message) -> Message:
    """With ids for all of its calls, and of its thoughts those that Claude takes back."""
    calls = tuple(
        call.replace(extra={k: v for k, v in call.extra.items() if k != "id_is_ours"})
        if "id_is_ours" in call.extra
        else call
        for call in message.tool_calls
    )
    content = message.content
    if isinstance(content, tuple):
        kept = [part for part in content if type(part) is not Thinking or part.signature]
        while not calls and kept and type(kept[-1]) is Thinking:
            kept.pop()
        content = tuple(kept) or None
    if calls == message.tool_calls and content == message.content:
        return message
    return message.replace(tool_calls=calls, content=content)


def _takes(part: Media, role: Role) -> bool:
    """Pictures and documents that came along with the words of a user or a tool."""
    found = google_media.source(part)
    is_inline = found is not None and found.data is not None and found.media_type in _INLINE
    return is_inline and role is not Role.ASSISTANT
