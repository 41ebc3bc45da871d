"""The tries of one request: what each of them sends, and what is changed between two.

Most vendors send the same each time, with the key as it is then. A vendor whose token may turn out
to be stale, or who has several accounts or addresses, makes its own `Attempts` for each request
(`HttpProvider.attempts`): `amended` hears of every failure, and a try that will be different now is
worth making at once, whatever the error was. The limits of `retries.py` hold for those tries, too.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from holdfast.errors import ProviderError
from holdfast.frozen import EMPTY
from holdfast.providers.credentials import Hidden
from holdfast.providers.pipe import Request

if TYPE_CHECKING:
    from holdfast.providers.http_provider import HttpProvider

Q = TypeVar("Q")  # what is sent: a request over HTTP, a question to a program


class Outgoing(NamedTuple):
    """A request without credentials. `url` is asked at each try, because an address may change."""

    method: str
    url: Callable[[], str]
    body: bytes | None = None
    headers: Mapping[str, str] = EMPTY


class Attempt(NamedTuple, Generic[Q]):
    """A request as it is sent, and what of it is secret."""

    request: Q
    hidden: Hidden


class Attempts(ABC, Generic[Q]):
    """The tries of one request."""

    @abstractmethod
    async def next(self) -> Attempt[Q]:
        """What the next try sends. A ProviderError here is a try that failed."""

    async def renewed(self, error: ProviderError) -> bool:  # noqa: ARG002 - others look at it
        """Nobody was let in: whether there is another key now. Then the try is made again, which is
        no second try: nothing was asked yet. Says so once."""
        return False

    async def amended(self, error: ProviderError) -> bool:  # noqa: ARG002 - others look at it
        """A try failed: whether the next one is different, so that it need not wait.

        May say more in the error, which is raised if there is no other try.
        """
        return False


class SameAttempts(Attempts[Request]):
    """The same each time, with the key as it is then."""

    def __init__(self, provider: "HttpProvider", outgoing: Outgoing) -> None:
        self._provider = provider
        self._outgoing = outgoing

    async def next(self) -> Attempt[Request]:
        return self._provider.signed(self._outgoing, await self._provider.key())


class FixedAttempts(Attempts[Q]):
    """One request that is ready to be sent: what a vendor has to ask before it can be asked, or a
    question to a program."""

    def __init__(self, attempt: Attempt[Q]) -> None:
        self._attempt = attempt

    async def next(self) -> Attempt[Q]:
        return self._attempt
