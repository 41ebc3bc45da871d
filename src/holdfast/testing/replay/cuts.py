"""A stream that breaks off is an error, with what had come kept, and never an answer."""

import re
from collections.abc import Iterator

from holdfast.errors import ProviderError
from holdfast.testing.replay import readings
from holdfast.testing.replay.adapter import Adapter
from holdfast.testing.replay.answers import difference, thinking_of
from holdfast.testing.replay.recordings import Exchange

SHORT = 4 * 1024
END = 2 * 1024
_EDGE = re.compile(rb"\r\n\r\n|\n\n|\r\r|,\r\n")  # of an event, or of an element of an array
_LINE = re.compile(rb"\n")


def places(exchange: Exchange, step: int = 1) -> list[int]:
    """Where to cut: everywhere in a short stream; else at the edges of its events and in its end.

    `step` thins out the places between the edges.
    """
    length = len(exchange.data)
    start = 0 if length <= SHORT else length - END
    edges = _edges(exchange)
    return sorted({*range(start, length, step), *(edge for edge in edges if edge < length), 0})


def _edges(exchange: Exchange) -> list[int]:
    """Behind each event."""
    edge = _LINE if exchange.is_lines else _EDGE
    return [match.end() for match in edge.finditer(exchange.data)]


def judge(exchange: Exchange, adapter: Adapter, step: int = 1) -> Iterator[str]:
    """Every cut that was taken for something else than a stream that broke off."""
    for at in places(exchange, step):
        if (wrong := _judge(exchange.cut(at), adapter)) is not None:
            yield f"cut after {at} of {len(exchange.data)} bytes: {wrong}"


def _judge(cut: Exchange, adapter: Adapter) -> str | None:
    reading = readings.read(cut)
    try:
        answer = adapter.read(cut)
    except ProviderError as error:
        return _partial(error, reading, readings.read(cut.cut(max(_edges(cut), default=0))))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        return f"{type(error).__name__}: {error}"
    if not reading.is_complete:
        return "taken for a complete answer"
    # Behind the end that the wire promises there may still be a usage, or nothing of importance.
    return difference(answer, reading, cut.wire or "")


def _partial(error: ProviderError, reading: readings.Reading, sure: readings.Reading) -> str | None:
    """The words that had come are kept: those of whole events surely, of a cut one perhaps."""
    partial = getattr(error, "partial", None)
    if reading.error or not (sure.text or sure.thinking):
        return None
    if partial is None:
        return "an error without what had come"
    text, thought = partial.message.text or "", thinking_of(partial.message)
    if not (reading.text.startswith(text) and text.startswith(sure.text)):
        return f"what had come: text {text[-60:]!r}, not {reading.text[-60:]!r}"
    ours, surely = ("".join(words.split()) for words in (thought, sure.thinking))
    if not ours.startswith(surely):
        return f"what had come: thinking {thought[-60:]!r}, not {sure.thinking[-60:]!r}"
    return None
