"""A recorded request, read into holdfast's own values: `conversation(exchange)`."""

from holdfast.testing.replay.history import (
    anthropic,
    claude_cli,
    code_assist,
    google,
    ollama,
    openai_chat,
    openai_responses,
)
from holdfast.testing.replay.history.base import Conversation
from holdfast.testing.replay.recordings import (
    ANTHROPIC,
    CLAUDE_CLI,
    CODE_ASSIST,
    GOOGLE,
    OLLAMA,
    OPENAI_CHAT,
    Exchange,
)

__all__ = ["Conversation", "conversation"]


def conversation(exchange: Exchange) -> Conversation | None:
    """What the request of an exchange says; None where it was not kept."""
    if not isinstance(exchange.request, dict) or exchange.wire is None:
        return None
    if exchange.wire == ANTHROPIC:
        return anthropic.conversation(exchange)
    if exchange.wire == CLAUDE_CLI:
        return claude_cli.conversation(exchange)
    if exchange.wire == OPENAI_CHAT:
        return openai_chat.conversation(exchange)
    if exchange.wire == GOOGLE:
        return google.conversation(exchange)
    if exchange.wire == CODE_ASSIST:
        return code_assist.conversation(exchange)
    if exchange.wire == OLLAMA:
        return ollama.conversation(exchange)
    return openai_responses.conversation(exchange)
