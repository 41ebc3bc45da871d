"""What is judged: the two halves of a provider, for one wire."""

from typing import Any, Protocol

from holdfast.messages import Message
from holdfast.testing.replay.history.base import Conversation
from holdfast.testing.replay.recordings import Exchange
from holdfast.usage import Usage


class Answer(Protocol):
    """What a reader makes of an answer: holdfast's Response, as far as it is looked at."""

    @property
    def message(self) -> Message: ...

    @property
    def usage(self) -> Usage: ...


class Adapter(Protocol):
    """One wire. Both are plain functions of their arguments."""

    def read(self, exchange: Exchange) -> Answer:
        """The answer in `exchange.data`, or the ProviderError that it is (`error.partial`: an
        Answer with what had come, or None)."""
        ...

    def body(self, conversation: Conversation) -> dict[str, Any]:
        """The request that says this conversation; `conversation.settings.model` names the
        model as "vendor:model"."""
        ...
