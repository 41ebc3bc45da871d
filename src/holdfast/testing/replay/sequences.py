"""Which request of a recording goes on with which answer.

A later exchange is the next of a conversation when its messages begin with those of the earlier
one, go on with the model's answer, and then say something new; or when it names the earlier
answer as the one that the service should remember (`previous_response_id`).
"""

from dataclasses import dataclass

from holdfast.messages import Message, Role
from holdfast.testing.replay import meaning, readings
from holdfast.testing.replay.history import Conversation, conversation
from holdfast.testing.replay.readings import Reading
from holdfast.testing.replay.recordings import Exchange, Recording


@dataclass(frozen=True)
class Next:
    """The next request. `answer` is the former answer as it stands in it (empty where the service
    remembered it), `tail` what was said after it."""

    exchange: Exchange
    conversation: Conversation
    answer: tuple[Message, ...]
    tail: tuple[Message, ...]
    is_remembered: bool = False


def next_of(recording: Recording, number: int) -> Next | None:
    """What came after exchange `number` in the same conversation, if that was recorded."""
    exchange = recording.exchanges[number]
    before = conversation(exchange)
    reading = readings.read(exchange) if exchange.wire else Reading(error=True)
    if before is None or reading.error or not reading.is_complete or not _says(reading):
        return None
    for later in recording.exchanges[number + 1 :]:
        if later.wire != exchange.wire:
            continue
        after = conversation(later)
        if after is None:
            continue
        remembered = isinstance(later.request, dict) and later.request.get("previous_response_id")
        if remembered and remembered == reading.id:
            return Next(later, after, (), _new(before, after), is_remembered=True)
        if found := _goes_on(later, before, after, reading):
            return found
    return None


def _says(reading: Reading) -> bool:
    """An answer that says nothing leaves nothing to look for."""
    return bool(reading.text or reading.refusal or reading.calls or reading.blocks or reading.media)


def _new(before: Conversation, after: Conversation) -> tuple[Message, ...]:
    """What was not said before: some clients repeat themselves, although the service remembers."""
    start = after.messages[: len(before.messages)]
    told = meaning.difference(meaning.items(start), meaning.items(before.messages), after.wire)
    return after.messages[len(before.messages) :] if told is None else after.messages


def _goes_on(
    exchange: Exchange, before: Conversation, after: Conversation, reading: Reading
) -> Next | None:
    if before.is_elsewhere or after.is_elsewhere:
        return None
    if before.messages and before.messages[-1].role.canonical is Role.ASSISTANT:
        return None  # the answer goes on with words that are already there
    start = meaning.items(before.messages)
    for at, message in enumerate(after.messages):
        if message.role.canonical is not Role.ASSISTANT:
            continue
        said = meaning.items(after.messages[:at])
        if len(said) > len(start):
            break
        if meaning.difference(said, start, after.wire) is None:
            end = at
            while end < len(after.messages) and _is_answer(after.messages[end]):
                end += 1
            answer = after.messages[at:end]
            if _is_of(answer, reading):
                return Next(exchange, after, answer, after.messages[end:])
    return None


def _is_answer(message: Message) -> bool:
    return message.role.canonical is Role.ASSISTANT


def _is_of(answer: tuple[Message, ...], reading: Reading) -> bool:
    """The same question may have been asked twice; this is the answer that it got here."""
    said = meaning.by_kind(meaning.items(answer))
    got = meaning.of_reading(reading)
    calls = [call[1:] for call in said["call"]]
    if calls or got["call"]:
        return calls == [call[1:] for call in got["call"]]
    return bool(said["text"] == got["text"])
