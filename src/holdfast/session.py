"""A session: one conversation, kept in a store."""

from datetime import datetime

from holdfast.entries import Fold
from holdfast.errors import InvalidInput
from holdfast.frozen import FrozenDict
from holdfast.messages import Message
from holdfast.settings import Settings
from holdfast.stores.base import Tenant
from holdfast.stores.values import Appended, Branch, Draft, Record, Stored


class Session:
    """One conversation. A `SessionManager` gives it out, the same object to everybody who asks.

    What it says of itself is as fresh as the last `append` or `refresh`: another process may have
    written since.
    """

    def __init__(self, tenant: Tenant, record: Record) -> None:
        self._tenant = tenant
        self._record = record

    def __repr__(self) -> str:
        return f"<Session {self.key!r}, {self.count} messages on {self.branch!r}>"

    @property
    def key(self) -> str:
        return self._record.key

    @property
    def id(self) -> str:
        return self._record.id

    @property
    def agent(self) -> str:
        return self._record.agent

    @property
    def settings(self) -> Settings:
        return self._record.settings

    @property
    def metadata(self) -> FrozenDict:
        return self._record.metadata

    @property
    def branch(self) -> str:
        return self._record.branch

    @property
    def branches(self) -> tuple[Branch, ...]:
        return self._record.branches

    @property
    def created_at(self) -> datetime:
        return self._record.created_at

    @property
    def updated_at(self) -> datetime:
        return self._record.updated_at

    @property
    def draft(self) -> Draft | None:
        return self._record.draft

    @property
    def folds(self) -> tuple[Stored, ...]:
        """The folds on the branch in use that no later one covers whole."""
        return self._record.folds

    @property
    def count(self) -> int:
        """How many messages are on the branch in use."""
        return self._record.branch_named(self.branch).count

    async def append(self, *messages: Message, once: str | None = None) -> Appended:
        """Add messages behind whatever is on the branch in use, all or none.

        With `once`, repeating the call with the same content changes nothing and returns what the
        first call did.
        """
        for message in messages:
            if not isinstance(message, Message):
                raise InvalidInput("messages", f"are of type Message, not {type(message).__name__}")
        appended = await self._tenant.append(self.id, messages, branch=self.branch, once=once)
        await self.refresh()
        return appended

    async def read(self, start: int = 0, stop: int | None = None) -> tuple[Message, ...]:
        """The messages at these positions of the branch in use; erased ones are left out."""
        stored = await self._tenant.read(self.id, self.branch, start, stop, kind="message")
        return tuple(each.entry for each in stored if isinstance(each.entry, Message))

    async def fold(
        self, start: int, stop: int, replacement: Message | None = None, *, why: str = ""
    ) -> Appended:
        """In the window, show the messages at positions `start` to `stop` as `replacement`, or not.

        They stay in the log. A range that is empty or not all there is InvalidInput.
        """
        stored = await self._tenant.read(self.id, self.branch, start, stop, kind="message")
        if not stored or len(stored) != stop - start:
            raise InvalidInput("stop", f"{start} to {stop} are not messages of {self.branch!r}")
        fold = Fold(first=stored[0].seq, last=stored[-1].seq, replacement=replacement, why=why)
        appended = await self._tenant.append(self.id, [fold], branch=self.branch)
        await self.refresh()
        return appended

    async def refresh(self) -> None:
        """See what others have written."""
        record = await self._tenant.load(self.key)
        if record.id != self.id:
            raise InvalidInput("session", f"{self.key!r} was made anew: get it from the manager")
        self._record = record
