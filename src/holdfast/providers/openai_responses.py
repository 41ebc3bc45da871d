"""OpenAI's Responses API, as OpenAI, Azure and compatible servers speak it.

Always stateless: nothing is stored on the other side (`store` is false), and the whole conversation
is sent each time. So reasoning comes encrypted, is kept as Thinking with its signature, and goes
back to the model that thought it (`openai_responses_items`). The answer is read in
`openai_responses_reader`.

    OpenAIResponsesWire("gpt-5")                                       # behind https://…/v1
    OpenAIResponsesWire("my-deployment", path="/openai/responses", api_version="2025-03-01-preview")
    OpenAIResponsesWire("deepseek-v4", vendor="deepseek", is_compatible=True)
"""

import re
from functools import partial
from typing import ClassVar
from urllib.parse import quote

from holdfast.errors import InvalidInput
from holdfast.frozen import FrozenDict
from holdfast.messages import Message
from holdfast.providers import openai_shared as shared
from holdfast.providers.answer import Answer
from holdfast.providers.fields import Object
from holdfast.providers.names import Spelling
from holdfast.providers.openai_responses_input import Fragment, joined
from holdfast.providers.openai_responses_items import CALL_ID_MAX, Items, led_somewhere
from holdfast.providers.openai_responses_media import takes
from holdfast.providers.openai_responses_reader import ResponsesReader
from holdfast.providers.prepare import Rules
from holdfast.providers.wire import Ask, Wire, merge, wanted
from holdfast.settings import Settings
from holdfast.tools import Tool

# "string too long. Expected a string with maximum length 128"; Chat Completions has 64, and so
# have servers that grew from it.
_TOOL_NAME = Spelling(re.compile(r"[^a-zA-Z0-9_-]"), 128)
_CALL_ID = Spelling(re.compile(r"[^!-~]"), CALL_ID_MAX)
_OUTPUT_TOKENS_MIN = 16  # "Expected a value >= 16"
_ENCRYPTED = "reasoning.encrypted_content"

# The lowest effort is for those that cannot do without.
_LOWEST = (
    (re.compile(r"(?<![a-z0-9])(o[1-9](?![0-9])|gpt-oss)"), "low"),
    (re.compile(r"gpt-5(?![.0-9])"), "minimal"),
)
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


class OpenAIResponsesWire(Wire):
    """One model behind the Responses API.

    path            behind the base URL
    api_version     Azure's, for the query
    reasons         whether the model reasons, where its name does not tell
    is_compatible   the server speaks this API, and is neither OpenAI's nor Azure's
    """

    vendor: ClassVar[str] = "openai"
    api: ClassVar[str] = "openai-responses"

    def __init__(
        self,
        model: str,
        *,
        vendor: str | None = None,
        path: str = "/responses",
        api_version: str | None = None,
        reasons: bool | None = None,
        is_compatible: bool = False,
    ) -> None:
        super().__init__(model, vendor=vendor)
        self._path = path if api_version is None else f"{path}?api-version={quote(api_version)}"
        self._reasons = shared.reasons(model) if reasons is None else reasons
        self._is_compatible = is_compatible
        self._options = vendor or self.vendor  # under which name settings.extra has ours
        self._items = Items(self.name, is_compatible)
        self.rules = Rules(
            vendor=self.vendor,
            tool_name=shared.TOOL_NAME if is_compatible else _TOOL_NAME,
            call_id=_CALL_ID,
            has_system_role=True,
            last_is_user=True,  # its models do not go on with words that are there
            takes=takes,
            has_any_arguments=True,
        )

    def fragment(self, message: Message) -> Fragment:
        """The items that one message becomes."""
        return self._items.fragment(message)

    def path(self, ask: Ask) -> str:  # noqa: ARG002 - the same for every question
        """Where the request goes."""
        return self._path

    def reader(self, answer: Answer) -> ResponsesReader:
        """A reader for one answer."""
        return ResponsesReader(answer, self.vendor, self.model)

    def to_wire(self, ask: Ask) -> Object:
        """The body of the request."""
        prepared = ask.prepared
        tidy = partial(led_somewhere, is_compatible=self._is_compatible)
        body: Object = {
            "model": self.model,
            "input": joined(prepared.fragments, tidy, ends_turn=self._is_compatible),
            "store": False,
        }
        if prepared.system:
            body["instructions"] = prepared.system
        if prepared.tools:
            body["tools"] = [_declared(tool) for tool in prepared.tools]
        if ask.schema is not None:
            body["text"] = {"format": _format(ask.schema)}
        if ask.stream:
            body["stream"] = True
        if ask.conversation:
            body["prompt_cache_key"] = shared.cache_key(ask.conversation)
        body |= self._settings(ask.settings)
        if self._reasons is not False:
            body["include"] = [_ENCRYPTED]
        merge(body, wanted(ask, self._options))
        return body

    def _settings(self, settings: Settings) -> Object:
        sent: Object = {}
        if settings.max_tokens is not None:
            sent["max_output_tokens"] = max(settings.max_tokens, _OUTPUT_TOKENS_MIN)
        if settings.temperature is not None and self._reasons is not True:
            sent["temperature"] = settings.temperature
        if settings.thinking is not None and self._reasons is not False:
            effort = self._effort(settings.thinking)
            is_off = settings.thinking in ("off", "none", 0)
            sent["reasoning"] = {"effort": effort} | ({} if is_off else {"summary": "auto"})
        return sent

    def _effort(self, thinking: str | int) -> str:
        if thinking in ("off", "none", 0):
            lowest = (effort for pattern, effort in _LOWEST if pattern.search(self.model.lower()))
            return next(lowest, "none")
        if isinstance(thinking, int):
            return shared.effort(thinking)
        if thinking not in _EFFORTS:
            known = ", ".join(("off", *_EFFORTS[1:]))
            raise InvalidInput("thinking", f"is one of {known}, or tokens, not {thinking!r}")
        return thinking


def _declared(tool: Tool) -> Object:
    # Without a word on it, the service makes a schema strict, and optional arguments required.
    return {"type": "function", **shared.function(tool), "strict": False}


def _format(schema: FrozenDict) -> Object:
    strict = shared.is_strict(schema)
    return {"type": "json_schema", "name": "answer", "schema": schema, "strict": strict}
