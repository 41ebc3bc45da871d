"""An independent reading of every recorded answer: `read(exchange)`."""

from holdfast.testing.replay.readings import (
    anthropic,
    claude_cli,
    code_assist,
    google,
    ollama,
    openai_chat,
    openai_responses,
)
from holdfast.testing.replay.readings.base import Call, Reading, loads
from holdfast.testing.replay.recordings import (
    ANTHROPIC,
    CLAUDE_CLI,
    CODE_ASSIST,
    GOOGLE,
    OLLAMA,
    OPENAI_CHAT,
    Exchange,
)

__all__ = ["Call", "Reading", "read"]


def read(exchange: Exchange) -> Reading:
    """What the service answered, from the raw bytes."""
    if exchange.status >= 400:
        return Reading(
            error=loads(exchange.data) or {"message": exchange.data.decode("utf-8", "replace")}
        )
    if exchange.wire == ANTHROPIC:
        return anthropic.read(exchange.data, exchange.is_sse)
    if exchange.wire == CLAUDE_CLI:
        return claude_cli.read(exchange.data)
    if exchange.wire == OPENAI_CHAT:
        return openai_chat.read(exchange.data, exchange.is_sse)
    if exchange.wire == GOOGLE:
        return google.read(exchange.data, exchange.is_sse)
    if exchange.wire == CODE_ASSIST:
        return code_assist.read(exchange.data, exchange.is_sse)
    if exchange.wire == OLLAMA:
        return ollama.read(exchange.data, exchange.is_lines)
    return openai_responses.read(exchange.data, exchange.is_sse)
