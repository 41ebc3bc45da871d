"""An independent reading of every recorded answer: `read(exchange)`."""

from holdfast.testing.replay.readings import anthropic, google, openai_chat, openai_responses
from holdfast.testing.replay.readings.base import Call, Reading, loads
from holdfast.testing.replay.recordings import ANTHROPIC, GOOGLE, OPENAI_CHAT, Exchange

__all__ = ["Call", "Reading", "read"]


def read(exchange: Exchange) -> Reading:
    """What the service answered, from the raw bytes."""
    if exchange.status >= 400:
        return Reading(
            error=loads(exchange.data) or {"message": exchange.data.decode("utf-8", "replace")}
        )
    if exchange.wire == ANTHROPIC:
        return anthropic.read(exchange.data, exchange.is_sse)
    if exchange.wire == OPENAI_CHAT:
        return openai_chat.read(exchange.data, exchange.is_sse)
    if exchange.wire == GOOGLE:
        return google.read(exchange.data, exchange.is_sse)
    return openai_responses.read(exchange.data, exchange.is_sse)
