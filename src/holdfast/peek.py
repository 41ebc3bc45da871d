"""A session, looked at without being opened.

    peek = await sessions.peek("telegram:12345678")
    async for turn in peek.turns():
        print(turn.number, [row.entry for row in turn.rows])

A session that is open has what its window shows, a model and tools, and is one object for all who
ask. To show what was said none of that is needed: a peek reads the rows that it is asked for, of
any branch, also of a session that has expired or whose model is not there.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from holdfast import children, forking, ids, outline
from holdfast.entries import Call, Fold, Mark
from holdfast.messages import Message
from holdfast.steps import drafts
from holdfast.steps.drafts import Draft
from holdfast.steps.limits import Spent
from holdfast.stores.base import Tenant
from holdfast.stores.values import Branch, Record, Stored
from holdfast.window.view import in_force

_Timed: Any = (Message, Fold, Call, Mark)
_PAGE = 500  # messages that are read at a time
_LOG_PAGE = 200  # entries; few enough that a store on disk hands them to no thread


class TurnRows(NamedTuple):
    """The entries of a turn; those before the first are turn 0. `number` is None if not known."""

    number: int | None
    rows: tuple[Stored, ...]


class Line(NamedTuple):
    """A branch on its way from its parent.

    shared   how many messages it has from there
    turn     the last turn that it has from there, whole or in part
    own      how many messages are its own
    began, ended
             when the first and the last entry of its own was written; None when it has none
    """

    branch: Branch
    shared: int
    turn: int
    own: int
    began: datetime | None
    ended: datetime | None


class Peek:
    """What a store has of a session, as of the moment at which it was looked at."""

    def __init__(self, tenant: Tenant, record: Record) -> None:
        self._tenant = tenant
        self.record = record

    def __repr__(self) -> str:
        return f"<Peek {self.key!r}, {self.branch.count} messages on {self.branch.name!r}>"

    @property
    def key(self) -> str:
        return self.record.key

    @property
    def branch(self) -> Branch:
        """The branch in use."""
        return self.record.branch_named(self.record.branch)

    @property
    def expired_at(self) -> datetime | None:
        """When it expired; None if it has not."""
        if self.record.ttl is None:
            return None
        end = self.record.updated_at + self.record.ttl
        return end if end < ids.now() else None

    @property
    def draft(self) -> Draft | None:
        """A turn that runs, failed, waits, or was cut off; None when there is none."""
        return drafts.read(self.record.draft)

    # Rows

    async def read(
        self, start: int = 0, stop: int | None = None, *, branch: str | None = None
    ) -> tuple[Stored, ...]:
        """The messages at these positions of a branch, with the entries that stand beside them."""
        return await self._tenant.read(self.record.id, branch or self.record.branch, start, stop)

    async def turns(self, branch: str | None = None) -> AsyncIterator[TurnRows]:
        """All of a branch, turn by turn; no more is held than one turn and a page."""
        count = self.record.branch_named(branch or self.record.branch).count
        number, held = 0, list[Stored]()
        for start in range(0, max(1, count), _PAGE):
            stop = None if start + _PAGE >= count else start + _PAGE
            for row in await self.read(start, stop, branch=branch):
                if _starts_turn(row):
                    if held:
                        yield TurnRows(number, tuple(held))
                    number, held = number + 1, []
                held.append(row)
        if held:
            yield TurnRows(number, tuple(held))

    async def last_turns(self, count: int, branch: str | None = None) -> tuple[TurnRows, ...]:
        """The last turns of a branch. No more of it is read than it takes, so that their numbers
        are known only where that is all."""
        name, whole = branch or self.record.branch, list[bool]()

        def find(rows: tuple[Stored, ...]) -> list[list[Stored]] | None:
            turns = _by_turns(rows)
            whole[:] = [outline.is_whole(rows)]
            begun = sum(_starts_turn(turn[0]) for turn in turns)
            return turns if whole[0] or begun > count else None

        turns = await outline.look_back(self._tenant, self.record.id, name, find) or []
        first = 0 if turns and not _starts_turn(turns[0][0]) else 1
        numbered = [
            TurnRows(number if whole[0] else None, tuple(rows))
            for number, rows in enumerate(turns, start=first)
        ]
        return tuple(numbered[-count:] if count else [])

    async def log(self) -> AsyncIterator[Stored]:
        """The entries of all branches, each once, in the order in which they were written."""
        after = 0
        is_whole = False
        while not is_whole:
            part = await self._tenant.export(self.record.id, after, _LOG_PAGE)
            for row in part.entries:
                yield row
            after = part.entries[-1].seq if part.entries else part.record.seq
            is_whole = after >= part.record.seq

    async def receipts(self, since: datetime | None = None) -> AsyncIterator[Call]:
        """The calls that were made in this session, on all its branches.

        A session that was forked begins with receipts of another one: they are left out.
        """
        if self.record.parent is not None:
            since = max(since or self.record.created_at, self.record.created_at)
        async for row in self.log():
            if isinstance(row.entry, Call) and (since is None or row.entry.timestamp >= since):
                yield row.entry

    async def turn_at(self, position: int, branch: str | None = None) -> int:
        """The number of the turn in which the message at a position stands."""
        rows = await self.read(0, position + 1, branch=branch)
        return sum(map(_starts_turn, rows))

    # What is said of them

    async def folds(self, branch: str | None = None) -> tuple[Fold, ...]:
        """The folds on a branch that no later one covers whole, in the order they were made."""
        if branch in (None, self.record.branch):
            rows: Sequence[Stored] = self.record.folds
        else:
            rows = await self._tenant.read(self.record.id, branch, kind="fold")
        return in_force(outline.entries_of(Fold, rows))

    async def spent(self) -> Spent:
        """What the session has spent by its last receipt, on all its branches."""
        rows = await outline.look_back(
            self._tenant, self.record.id, self.record.branch, _rows_that_tell
        )
        return Spent() if rows is None else rows

    async def lines(self) -> tuple[Line, ...]:
        """The branches, with where they left their parents."""
        return tuple([await self._line(each) for each in self.record.branches])

    async def _line(self, branch: Branch) -> Line:
        id, name = self.record.id, branch.name
        shared, own = await forking.behind(self._tenant, id, name, branch.fork)
        times = [each.timestamp for each in outline.entries_of(_Timed, own)]
        return Line(
            branch,
            shared,
            await self.turn_at(shared - 1, name) if shared else 0,
            branch.count - shared,
            min(times, default=None),
            max(times, default=None),
        )

    async def children(self) -> list[Record]:
        """The records of the sessions that were made for subagents of this one."""
        found = await children.children(self._tenant, self.record)
        return [each.record for each in found]

    async def diff(self, a: str, b: str | None = None) -> forking.Diff:
        """What two branches share, what only one of them has, and what each cost behind that.

        Without `b` it is the branch in use.
        """
        return await forking.diff(self._tenant, self.record, a, b or self.record.branch)


def _rows_that_tell(rows: tuple[Stored, ...]) -> Spent | None:
    for row in reversed(rows):
        if (spent := Spent.of(row.entry)) is not None:
            return spent
    return None


def _starts_turn(row: Stored) -> bool:
    return isinstance(row.entry, Message) and row.entry.starts_turn


def _by_turns(rows: Iterable[Stored]) -> list[list[Stored]]:
    turns: list[list[Stored]] = []
    for row in rows:
        if _starts_turn(row) or not turns:
            turns.append([])
        turns[-1].append(row)
    return turns
