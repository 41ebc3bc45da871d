"""What a turn is given: how it is run, and what is asked of it."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from holdfast import ids
from holdfast.conversation import Conversation
from holdfast.errors import InvalidInput
from holdfast.frozen import EMPTY
from holdfast.messages import Message
from holdfast.settings import Settings
from holdfast.steps.schemas import Schema
from holdfast.steps.scribe import Scribe
from holdfast.steps.targets import Target
from holdfast.steps.windows import Windows
from holdfast.tools import Tool

Answers = Mapping[str, bool | str]  # for calls that wait, by their ids
Redact = Callable[[Message], Message]


class Setup(NamedTuple):
    """How a turn is run: who is asked, with which tools, how its window is kept."""

    target: Target
    settings: Settings
    tools: tuple[Tool, ...]
    windows: Windows
    scribe: Scribe
    owner: str
    redact: Redact | None = None
    schema: Schema | None = None
    options: Mapping[str, Any] = EMPTY

    def redacted(self, message: Message) -> Message:
        """The message as it may be stored."""
        return redacted(message, self.redact)


class Order(NamedTuple):
    """What is asked of a turn. Without a message, one that was cut off is gone on with.

    `is_given`: the message is an object of the caller's, who may have sent it before.
    """

    message: Message | None = None
    once: str | None = None
    answers: Answers | None = None
    wait_s: float | None = None
    is_given: bool = False

    def on(self, talk: Conversation) -> "Order":
        """The same, of a message that does not stand in the log: one that is said again is another.

        By its id it is told after a crash whether it has come into the log.
        """
        if self.message is None or not self.is_given or talk.turn_of(self.message.id) is None:
            return self
        return self._replace(message=self.message.replace(id=ids.new_id()))


def redacted(message: Message, redact: Redact | None) -> Message:
    """The message as it may be stored."""
    if redact is None:
        return message
    kept: object = redact(message)
    if not isinstance(kept, Message):
        raise InvalidInput("redact", f"gives a Message back, not {type(kept).__name__}")
    if _place(kept) != _place(message):
        raise InvalidInput(
            "redact",
            "changes more than what is said: give message.replace(content=...) back, which keeps "
            "its id, its role, and the ids of calls",
        )
    return kept


def _place(message: Message) -> tuple[object, ...]:
    """What a turn goes by. A result that lost the id of its call would let the tool run again."""
    return (
        message.id,
        message.role,
        message.synthetic,
        message.stop,
        [call.id for call in message.calls],
        [result.call_id for result in message.results],
    )
