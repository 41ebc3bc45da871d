"""A subagent: a child of a session, with the session that it works in."""

from typing import TYPE_CHECKING

from holdfast.child import Child, Summarize
from holdfast.messages import Message
from holdfast.stores.values import Appended, Record

if TYPE_CHECKING:
    from holdfast.session import Session


class Subagent(Child):
    """A child of a session, open: `session` is where it works."""

    def __init__(self, parent: "Session", record: Record, session: "Session") -> None:
        super().__init__(parent._tenant, parent._record, record)
        self.session = session
        self._home = parent

    async def merge(self, *, whole: bool = False, summarize: Summarize | None = None) -> Appended:
        appended = await super().merge(whole=whole, summarize=summarize)
        await self._home.refresh()
        return appended

    def _redacted(self, message: Message) -> Message:
        return self._home._bench.redacted(message)

    async def _delete(self) -> bool:
        async with self.session._bench.forgetting():
            return await super()._delete()

    async def discard(self, reason: str) -> None:
        await super().discard(reason)
        self.session._bench.talk.is_gone = True  # nobody is given it any more
        await self._home.refresh()
