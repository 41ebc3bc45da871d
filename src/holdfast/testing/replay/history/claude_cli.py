"""A conversation out of what the `claude` program was told on its standard input."""

from typing import Any

from holdfast.testing.replay.history import anthropic
from holdfast.testing.replay.history.base import Conversation, plain_settings
from holdfast.testing.replay.recordings import Exchange

VENDOR = "claude-cli"


def conversation(exchange: Exchange) -> Conversation:
    """What the lines say; those of another kind, with which it is steered, say nothing."""
    model = f"{VENDOR}:{exchange.model}"
    told: list[Any] = exchange.request.get("stdin") or [exchange.request]
    said = [line.get("message", line) for line in told if isinstance(line, dict)]
    return Conversation(
        wire=exchange.wire or "",
        service=exchange.service,
        is_lenient=exchange.is_lenient,
        messages=tuple(
            message
            for raw in said
            if "role" in raw
            for message in anthropic.messages_of(raw, model)
        ),
        system=exchange.request.get("system") or None,
        settings=plain_settings(model),
    )
