"""Keeps what a turn has finished: in the log, behind whatever others have appended meanwhile."""

from collections.abc import Sequence

from holdfast.conversation import Conversation
from holdfast.entries import Entry
from holdfast.errors import Conflict, HoldfastError, LeaseLost
from holdfast.steps.hold import Hold
from holdfast.stores.values import Appended

ASIDE = "aside-{token}"


class Keeper:
    """Appends for one turn, under its lease."""

    def __init__(self, conversation: Conversation, hold: Hold) -> None:
        self.at = conversation.head  # the last entry of this turn, or before it
        self._talk = conversation
        self._hold = hold

    async def keep(
        self, entries: Sequence[Entry], *, finish: bool = False, once: str | None = None
    ) -> Appended:
        """Append `entries`; with `finish` that ends the turn, unless it was told something more.

        Others may append beside a turn: then what they said is read, and this goes behind it. If
        the lease is lost, it goes to a branch of its own, and LeaseLost is raised.
        """
        self._hold.journal.pause()
        while True:
            ends = finish and not self._talk.steering
            try:
                done = await self._talk.append(
                    entries, lease=self._hold.lease, once=once, finish=ends
                )
            except Conflict:
                await self._talk.refresh()
            except LeaseLost as error:
                await self._put_aside(entries, error)
                raise
            else:
                if done.branch == self._talk.branch:
                    self.at = max(self.at, done.last)
                if ends:
                    await self._hold.finished()
                return done

    async def _put_aside(self, entries: Sequence[Entry], error: LeaseLost) -> None:
        """Behind what this turn has kept, and not behind what those have who took over."""
        talk = self._talk
        self._hold.lost = error
        name = ASIDE.format(token=self._hold.lease.token)
        there = {getattr(row.entry, "id", "") for row in talk.rows if row.seq <= self.at}
        rest = [each for each in entries if getattr(each, "id", None) not in there]
        try:
            await talk.look()
            if talk.record.branches[0].fork <= self.at:  # it was not cleared: that is for good
                await talk.tenant.branch(talk.id, name, parent=talk.branch, at=self.at, use=False)
                await talk.tenant.append(talk.id, rest, branch=name)
        except HoldfastError as failed:  # the session may be gone
            raise error from failed
