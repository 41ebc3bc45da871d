"""What Copilot wants beside OpenAI's two APIs: a few headers, and the bare names of its models.

`X-Initiator` says who set the call off: one by the user is billed as a request of theirs, one that
only brings the results of tools is not. Pictures have to be announced.
"""

from holdfast.messages import Message
from holdfast.parts import Image
from holdfast.providers import openai_shared as shared
from holdfast.providers.fields import Object
from holdfast.providers.openai_chat import OpenAIChatWire
from holdfast.providers.openai_chat_dialect import COPILOT, Dialect
from holdfast.providers.openai_responses import OpenAIResponsesWire
from holdfast.providers.wire import Ask

VENDOR = "github"
_PUBLISHER = "openai/"  # as GitHub Models spells the same models


class CopilotChatWire(OpenAIChatWire):
    """Chat Completions at Copilot."""

    def __init__(self, model: str, *, dialect: Dialect | None = None) -> None:
        if dialect is None:
            is_claude = bare(model).startswith("claude")
            dialect = COPILOT._replace(effort="thinking_budget") if is_claude else COPILOT
        super().__init__(model, vendor=VENDOR, dialect=dialect)

    def headers(self, ask: Ask) -> dict[str, str]:
        return headers_of(ask)

    def to_wire(self, ask: Ask) -> Object:
        return {**super().to_wire(ask), "model": bare(self.model)}


class CopilotResponsesWire(OpenAIResponsesWire):
    """The Responses API at Copilot, which knows no key for its cache."""

    def __init__(self, model: str, *, reasons: bool | None = None) -> None:
        super().__init__(model, vendor=VENDOR, reasons=reasons)
        self.rules = self.rules._replace(tool_name=shared.TOOL_NAME)

    def headers(self, ask: Ask) -> dict[str, str]:
        return headers_of(ask)

    def to_wire(self, ask: Ask) -> Object:
        return {**super().to_wire(ask._replace(conversation=None)), "model": bare(self.model)}


def is_for_responses(model: str) -> bool:
    """Whether Copilot answers for this model through the Responses API."""
    return "codex" in model.lower()


def bare(model: str) -> str:
    """The name of a model without OpenAI's in front of it."""
    return model.removeprefix(_PUBLISHER)


def headers_of(ask: Ask) -> dict[str, str]:
    """The headers that depend on what is asked."""
    messages = ask.prepared.messages
    headers = {"x-initiator": "user" if messages[-1].starts_turn else "agent"}
    if any(map(_has_picture, messages)):
        headers["copilot-vision-request"] = "true"
    return headers


def _has_picture(message: Message) -> bool:
    content = message.content
    return type(content) is tuple and any(type(part) is Image for part in content)
