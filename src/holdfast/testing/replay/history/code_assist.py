"""A conversation out of a body of Code Assist: Google's, in an envelope."""

from dataclasses import replace

from holdfast.testing.replay.history import google
from holdfast.testing.replay.history.base import Conversation
from holdfast.testing.replay.recordings import Exchange

VENDOR = "antigravity"


def conversation(exchange: Exchange) -> Conversation:
    """What the request says."""
    inside = replace(exchange, request=exchange.request.get("request") or {})
    return google.conversation(inside, VENDOR, exchange.model)
