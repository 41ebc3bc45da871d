"""What a manager lends its memory, and the sessions that it is asked about."""

from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, Protocol, runtime_checkable

from holdfast.messages import Message
from holdfast.steps.orders import Redact, redacted
from holdfast.steps.targets import Target
from holdfast.stores.base import Tenant
from holdfast.window.ledger import Ledger


@runtime_checkable
class Whose(Protocol):
    """A session, or its record: whose memory is meant."""

    @property
    def key(self) -> str: ...

    @property
    def id(self) -> str: ...


class Talk(Whose, Protocol):
    """A session, as far as a memory has to do with it."""

    @property
    def ledger(self) -> Ledger: ...

    async def refresh(self) -> None: ...


class Desk(NamedTuple):
    """The store, the model, the redaction, and tasks that the manager waits for."""

    tenant: Tenant
    target: Callable[[], Target]
    start: Callable[[Coroutine[Any, Any, None]], object]
    redact: Redact | None

    def redacted(self, text: str) -> str:
        """The text as it may be stored."""
        if self.redact is None or not text:
            return text
        return redacted(Message.assistant(text), self.redact).text or ""
