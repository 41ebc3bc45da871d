"""holdfast's own adapters, as replay judges them.

An answer is read as `complete` reads it, by the same functions, only that the bytes come from a
recording and not from a socket. A request is what `complete` would have sent.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from holdfast.errors import ProviderError
from holdfast.providers.anthropic import AnthropicWire
from holdfast.providers.antigravity.wire import CodeAssistWire
from holdfast.providers.base import Response
from holdfast.providers.claude_cli.wire import ClaudeCliWire
from holdfast.providers.google import GoogleWire
from holdfast.providers.ollama import OllamaWire
from holdfast.providers.openai_chat import OpenAIChatWire
from holdfast.providers.openai_chat_dialect import HOSTS, UNKNOWN, Dialect
from holdfast.providers.openai_responses import OpenAIResponsesWire
from holdfast.providers.pipe import Reply
from holdfast.providers.replies import read_reply
from holdfast.providers.wire import Wire
from holdfast.testing.replay.adapter import Adapter
from holdfast.testing.replay.history.base import Conversation
from holdfast.testing.replay.recordings import (
    ANTHROPIC,
    CLAUDE_CLI,
    CODE_ASSIST,
    GOOGLE,
    OLLAMA,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    VERTEX,
    Exchange,
)

# Where a service is at home, if its name is no part of the host's.
_HOSTS = {
    "openai-chat": "api.openai.com",
    "azure-openai": "openai.azure.com",
    "github-models": "models.github.ai",
    "vercel-gateway": "ai-gateway.vercel.sh",
    "xai": "api.x.ai",
    "zai": "api.z.ai",
}


class RecordedReply(Reply):
    """A reply whose bytes are there already; a program's has no status."""

    def __init__(self, status: int | None, headers: Mapping[str, str], data: bytes) -> None:
        self.status = status
        self.headers = {name.lower(): value for name, value in headers.items()}
        self._data = data

    async def chunk(self) -> bytes:
        chunk, self._data = self._data, b""
        return chunk

    async def close(self) -> None:
        return


def reply_of(exchange: Exchange) -> RecordedReply:
    """The reply of a recorded exchange."""
    status = None if exchange.wire == CLAUDE_CLI else exchange.status
    return RecordedReply(status, exchange.headers, exchange.data)


class Ours:
    """The adapter of one wire, which `wire_of(service, model, is_lenient)` makes."""

    def __init__(self, wire_of: Callable[[str, str, bool], Wire]) -> None:
        self._wire_of = wire_of

    def read(self, exchange: Exchange) -> Response:
        """The answer in an exchange, or the error that it is."""
        wire = self._wire_of(exchange.service, exchange.model, exchange.is_lenient)
        answer = wire.answer(wire.ask(()))
        try:
            asyncio.run(
                read_reply(reply_of(exchange), wire.reader(answer), wire.framing, wire.vendor)
            )
            return answer.response()
        except ProviderError as error:
            error.partial = answer.partial()
            raise

    def body(self, conversation: Conversation) -> dict[str, Any]:
        """The request that says a conversation."""
        settings = conversation.settings
        model = (settings.model or "").partition(":")[2]
        wire = self._wire_of(conversation.service, model, conversation.is_lenient)
        ask = wire.ask(
            conversation.messages,
            conversation.system,
            conversation.tools,
            schema=conversation.response_schema,
            settings=settings,
        )
        body: dict[str, Any] = json.loads(msgspec.json.encode(wire.to_wire(ask)))
        return body


WIRES: Mapping[str, Callable[[str, str, bool], Wire]] = {
    ANTHROPIC: lambda _service, model, _is_lenient: AnthropicWire(model),
    # As recorded: nobody told the program to leave its tools alone.
    CLAUDE_CLI: lambda _service, model, _is_lenient: ClaudeCliWire(model, mode="delegated"),
    CODE_ASSIST: lambda _service, model, _is_lenient: CodeAssistWire(model),
    GOOGLE: lambda service, model, _is_lenient: GoogleWire(
        model, project="ours" if service == VERTEX else None
    ),
    OLLAMA: lambda _service, model, _is_lenient: OllamaWire(model),
    OPENAI_CHAT: lambda service, model, _: OpenAIChatWire(model, dialect=dialect(service)),
    OPENAI_RESPONSES: lambda _, model, is_lenient: OpenAIResponsesWire(
        model, is_compatible=is_lenient
    ),
}


def adapters() -> Mapping[str, Adapter]:
    """An adapter for each wire."""
    return {wire: Ours(wire_of) for wire, wire_of in WIRES.items()}


def wire_for(exchange: Exchange) -> Wire:
    """The wire that a recorded exchange was on."""
    return WIRES[exchange.wire or ""](exchange.service, exchange.model, exchange.is_lenient)


def dialect(service: str) -> Dialect:
    """The dialect of a service by its name in a recording."""
    host = _HOSTS.get(service) or next((host for host in HOSTS if service in host), "")
    return HOSTS.get(host, UNKNOWN)
