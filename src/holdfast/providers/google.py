"""Google's generateContent, of the Gemini API and of Vertex: stateless, the whole conversation each
time.

Roles are user and model; results of tools are the user's. The model stands in the path. Tools are
one `Tool` with function declarations, their schemas as they are (`parametersJsonSchema`).

`settings.extra["google"]` goes into the body as it is, on top of what stands there: objects are
merged, tools are added to ours. With a `cachedContent` in it, our system instruction and tools are
left out, because the cache holds its own and Google takes them from no other place then.

`settings.thinking` is a level or a number of tokens. Gemini 3 has levels, and cannot think not at
all: "off" is its lowest. Gemini 2.5 has tokens; the levels are the numbers that Google gives them
in its OpenAI-compatible API. Models before that do not think, and are not asked to.
"""

import re
from typing import ClassVar
from urllib.parse import quote

from holdfast.errors import InvalidInput
from holdfast.messages import Message
from holdfast.providers import google_media
from holdfast.providers.answer import Answer
from holdfast.providers.fields import Object
from holdfast.providers.google_parts import Fragment, Fragments, contents
from holdfast.providers.google_reader import GEMINI_REASONS, VERTEX_REASONS, GoogleReader
from holdfast.providers.names import Spelling
from holdfast.providers.prepare import Rules
from holdfast.providers.wire import Ask, Framing, Reader, Wire, merge, wanted
from holdfast.tools import Tool

RULES = Rules(
    vendor="google",
    # 128 are published for the Gemini API by now, 64 for Vertex.
    tool_name=Spelling(re.compile(r"[^a-zA-Z0-9_.:-]"), 64, re.compile("[a-zA-Z_]")),
    call_id=Spelling(re.compile(r"[^ -~]"), 256),  # nothing is published: a line of text
    first_is_user=True,
    last_is_user=True,
    takes=google_media.takes,
)

_GENERATION = re.compile(r"gemini-(\d+)(?:\.(\d+))?")
_SIGNED = (3, 0)  # wants signatures back, has levels of thinking, reads media in responses
_THINKS = (2, 5)
_BUDGETS = {"off": 0, "minimal": 512, "low": 1024, "medium": 8192, "high": 24576}
_PRO_BUDGET_MIN = 128  # of 2.5 Pro, which cannot be told not to think


class GoogleWire(Wire):
    """Gemini. `project` and `location` are for Vertex, and make its path."""

    vendor: ClassVar[str] = "google"
    api: ClassVar[str] = "google"

    def __init__(
        self,
        model: str,
        *,
        vendor: str | None = None,
        project: str | None = None,
        location: str = "global",
        framing: Framing = "events",
    ) -> None:
        super().__init__(model, vendor=vendor)
        if framing not in ("events", "array"):
            raise InvalidInput("framing", f"is events or array, not {framing!r}")
        self.framing = framing
        self._is_vertex = project is not None
        self._path = _path(model, project, location)
        self._generation = generation(model)
        is_signed = self._generation >= _SIGNED
        self.fragments = Fragments(
            *(self.name, RULES.vendor),
            is_signed=is_signed,
            reads_media=is_signed,
            reads_addresses=self._is_vertex,
        )
        self.rules = RULES._replace(detaches=self.fragments.detaches)

    def fragment(self, message: Message) -> Fragment:
        return self.fragments.of(message)

    def to_wire(self, ask: Ask) -> Object:
        prepared = ask.prepared
        body: Object = {"contents": contents(prepared.fragments, prepared.settled, prepared.made)}
        extra = wanted(ask, self.vendor)
        if not extra.get("cachedContent"):
            if ask.prepared.system:
                body["systemInstruction"] = {"parts": [{"text": ask.prepared.system}]}
            if ask.prepared.tools:
                declared = [self.declaration(tool) for tool in ask.prepared.tools]
                body["tools"] = [{"functionDeclarations": declared}]
        if config := self._config(ask):
            body["generationConfig"] = config
        merge(body, extra)
        return body

    def path(self, ask: Ask) -> str:
        if not ask.stream:
            return f"{self._path}:generateContent"
        return f"{self._path}:streamGenerateContent" + "?alt=sse" * (self.framing == "events")

    def reader(self, answer: Answer) -> Reader:
        reasons = VERTEX_REASONS if self._is_vertex else GEMINI_REASONS
        return GoogleReader(answer, RULES.vendor, reasons)

    def declaration(self, tool: Tool) -> Object:
        """A tool, as the model is told of it."""
        return {
            "name": tool.name,
            "description": tool.description,
            "parametersJsonSchema": tool.parameters,
        }

    # How to answer

    def _config(self, ask: Ask) -> Object:
        settings = ask.settings
        config: Object = {}
        if settings.temperature is not None:
            config["temperature"] = settings.temperature
        if settings.max_tokens is not None:
            config["maxOutputTokens"] = max(1, settings.max_tokens)
        if ask.schema is not None:
            config["responseMimeType"] = "application/json"
            config["responseJsonSchema"] = ask.schema
        if settings.thinking is not None and self._generation >= _THINKS:
            config["thinkingConfig"] = self._thinking(settings.thinking)
        return config

    def _thinking(self, thinking: str | int) -> Object:
        is_pro = "-pro" in self.model
        if isinstance(thinking, int):
            budget = thinking
        elif thinking not in _BUDGETS:
            raise InvalidInput(
                "thinking", f"is one of {', '.join(_BUDGETS)}, or a number of tokens"
            )
        elif self._generation >= _SIGNED:
            level = "minimal" if thinking == "off" else thinking
            if is_pro:
                # Gemini 3 Pro knows low and high alone, 3.1 Pro medium as well.
                known = {"minimal": "low"} | (
                    {"medium": "high"} if self._generation == (3, 0) else {}
                )
                level = known.get(level, level)
            return {"thinkingLevel": level, "includeThoughts": thinking != "off"}
        else:
            budget = _BUDGETS[thinking]
        if is_pro and self._generation < _SIGNED:
            budget = max(budget, _PRO_BUDGET_MIN)
        return {"thinkingBudget": budget, "includeThoughts": thinking not in ("off", 0)}


def generation(model: str) -> tuple[int, int]:
    """Which Gemini this is; (0, 0) for what is none. Names without a number are the latest."""
    found = _GENERATION.search(model)
    if found:
        return int(found[1]), int(found[2] or 0)
    return _SIGNED if "gemini-" in model and "latest" in model else (0, 0)


def _path(model: str, project: str | None, location: str) -> str:
    """A model with a slash has its own place, such as `tunedModels/mine`."""
    named = model if "/" in model else f"models/{model}"
    if project is not None and not model.startswith("projects/"):
        named = named if named.startswith("publishers/") else f"publishers/google/{named}"
        named = f"projects/{project}/locations/{location}/{named}"
    return quote(named, safe="/@.-_~")
