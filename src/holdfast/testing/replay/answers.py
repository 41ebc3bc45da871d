"""(a) Does an answer, as an adapter read it, say what the bytes say?"""

import json
from collections.abc import Iterator
from typing import Any

from holdfast.errors import ContentBlocked, ProviderError
from holdfast.frozen import thaw
from holdfast.messages import Message
from holdfast.parts import Audio, File, Image, Opaque, Thinking
from holdfast.testing.replay import meaning, readings
from holdfast.testing.replay.adapter import Adapter, Answer
from holdfast.testing.replay.readings import Call, Reading
from holdfast.testing.replay.readings.base import digest
from holdfast.testing.replay.recordings import OPENAI_RESPONSES, Exchange
from holdfast.testing.replay.refused import expected
from holdfast.usage import Usage


def judge(exchange: Exchange, adapter: Adapter) -> tuple[Answer | None, str | None]:
    """The answer as the adapter reads it, and what is wrong with that, if anything."""
    reading = readings.read(exchange)
    try:
        answer = adapter.read(exchange)
    except ProviderError as error:
        return None, _judge_error(exchange, reading, error)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        return None, f"{type(error).__name__} instead of an answer: {error}"
    if reading.error or reading.is_blocked or not reading.is_complete:
        return None, f"an answer, where an error is due: {_short(reading.error or 'no end')}"
    return answer, difference(answer, reading, exchange.wire or "")


def _judge_error(exchange: Exchange, reading: Reading, error: ProviderError) -> str | None:
    kind = type(error)
    if reading.is_blocked:
        return None if kind is ContentBlocked else f"{kind.__name__}, not ContentBlocked"
    if reading.error is None:
        return None if not reading.is_complete else f"{kind.__name__} for a good answer: {error}"
    kinds = expected(exchange.status, reading.error)
    if kind in kinds:
        return None
    names = " or ".join(each.__name__ for each in kinds)
    return f"{kind.__name__}, not {names}: {_short(reading.error)}"


def difference(answer: Answer, reading: Reading, wire: str) -> str | None:
    """The first thing in which an answer differs from a reading of the same bytes."""
    return next(_differences(answer, reading, wire), None)


def _differences(answer: Answer, reading: Reading, wire: str) -> Iterator[str]:
    message = answer.message
    text = message.text or ""
    if text != reading.text and not (reading.refusal and text == reading.text + reading.refusal):
        yield f"text: {_apart(text, reading.text)}"
    if reading.refusal and reading.refusal not in _everything(message):
        yield f"refusal lost: {_short(reading.refusal)}"
    thinking = thinking_of(message)
    if wire == OPENAI_RESPONSES:  # parts of a summary, between which there may be a line
        if "".join(thinking.split()) != "".join(reading.thinking.split()):
            yield f"thinking: {_apart(thinking, reading.thinking)}"
    elif thinking != reading.thinking:
        yield f"thinking: {_apart(thinking, reading.thinking)}"
    yield from _calls(message, reading)
    yield from _kept(message, reading)
    if message.stop != reading.stop and message.stop not in reading.stops_also:
        yield f"stop: {message.stop!r}, not {reading.stop!r}"
    yield from _usage(answer.usage, reading)


def thinking_of(message: Message) -> str:
    """What the model thought, all of it."""
    parts = message.content if isinstance(message.content, tuple) else ()
    return "".join(part.text for part in parts if isinstance(part, Thinking) and not part.redacted)


def _calls(message: Message, reading: Reading) -> Iterator[str]:
    ours = [meaning.call_of(call) for call in message.calls]
    if len(ours) != len(reading.calls):
        names = [call.name for call in ours], [call.name for call in reading.calls]
        yield f"calls: {names[0]}, not {names[1]}"
    taken: set[str] = set()  # a service may give one id twice; of ours, each has its own
    for our, their in zip(ours, reading.calls, strict=False):
        if (wrong := _call(our, their, taken)) is not None:
            yield wrong
        taken.add(our.id or "")


def _call(our: Call, their: Call, taken: set[str]) -> str | None:
    is_free = their.id and their.id not in taken
    if not our.id or our.id in taken or (is_free and our.id != their.id):
        return f"call id: {our.id!r}, not {their.id!r}"
    if our.name != their.name:
        return f"call name: {our.name!r}, not {their.name!r}"
    if our.arguments != their.arguments:
        return f"arguments of {our.name}: {_short(our.arguments)}, not {_short(their.arguments)}"
    if their.signature and our.signature != their.signature:
        return f"signature of the call {our.name}: {_short(our.signature)}"
    return None


def _kept(message: Message, reading: Reading) -> Iterator[str]:
    """Nothing that has to be sent back one day is lost."""
    everything = _everything(message)
    for signature in reading.signatures:
        if json.dumps(signature)[1:-1] not in everything:
            yield f"signature lost: {_short(signature)}"
    parts = message.content if isinstance(message.content, tuple) else ()
    sealed = [p.signature for p in parts if isinstance(p, Thinking) and p.redacted]
    # Encrypted reasoning without words is sealed, too; the wires tell the two apart, we do not.
    known = {*reading.redacted, *reading.signatures}
    if not set(reading.redacted) <= set(sealed) <= known:
        yield f"redacted thinking: {_short(sealed)}, not {_short(reading.redacted)}"
    opaque = [thaw(part.data) for part in parts if isinstance(part, Opaque)]
    said = [meaning.said_of(data) for data in opaque]
    for block in reading.blocks:
        if meaning.said_of(block) not in said:
            yield f"block lost: {_short(block)}"
    media = {digest(p.data) for p in parts if isinstance(p, Image | Audio | File) and p.data}
    if lost := [each for each in reading.media if each not in media]:
        yield f"media lost: {lost[0]}"


def _everything(message: Message) -> str:
    """All the texts in a message, as one JSON text to look into."""
    parts = message.content if isinstance(message.content, tuple) else ()
    found: list[Any] = [message.content if isinstance(message.content, str) else None]
    found += [{name: _plain(getattr(part, name, None)) for name in _FIELDS} for part in parts]
    found += [(call.signature, thaw(call.extra)) for call in message.tool_calls]
    return json.dumps([*found, thaw(message.extra)], default=str)


_FIELDS = ("text", "signature", "extra", "data")


def _plain(value: Any) -> Any:
    return None if isinstance(value, bytes) else thaw(value)


def _usage(usage: Usage, reading: Reading) -> Iterator[str]:
    for name in ("input", "output", "cache_read", "cache_write", "reasoning"):
        ours, theirs = getattr(usage, name), getattr(reading.usage, name)
        if ours != theirs and not (name == "output" and ours in reading.outputs_also):
            yield f"usage.{name}: {ours}, not {theirs}"


def _apart(ours: str, theirs: str) -> str:
    """Both, from a little before the place where they part."""
    pairs = enumerate(zip(ours, theirs, strict=False))
    at = next((n for n, (a, b) in pairs if a != b), min(len(ours), len(theirs)))
    start = max(0, at - 20)
    return f"{_short(ours[start:])}, not {_short(theirs[start:])} (from character {start})"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 160 else f"{text[:120]}...{text[-30:]}"
