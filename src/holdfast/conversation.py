"""A conversation: what is loaded of one branch of a session, and the way to add to it.

Opening loads what the window shows. Behind a deep fold that is the beginning and the tail: the
messages between are passed over, as a `Gap`, and read when somebody asks for them. Afterwards only
what is new is read, and after a fold what it hides is forgotten again, so the cost of a turn and
the memory of an open session do not grow with the length of the log.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from holdfast.entries import Call, Entry, Fold, Mark
from holdfast.errors import InvalidInput, SessionExpired, SessionNotFound
from holdfast.messages import Message, Role
from holdfast.parts import Part
from holdfast.steps.limits import NOTHING_SPENT, Spent
from holdfast.stores.base import Tenant
from holdfast.stores.values import Appended, Branch, Lease, Record, Stored
from holdfast.window.ledger import Ledger
from holdfast.window.view import Count, View

_NEAR = 64  # messages that others may have added: read so, it does not take a thread
_SMALL = 800  # bytes of an entry beside what it says
GAP_MIN = 64  # messages: fewer are not worth a second read
STEER = "steer"
_Read = TypeVar("_Read")


def _tell_nobody() -> None:
    return


class Gap(NamedTuple):
    """Messages that are not loaded: their positions from `start` to before `stop`.

    `turns` is how many turns begin among them, and `last` the seq of the last of them.
    """

    start: int
    stop: int
    turns: int
    last: int


class _Live:
    """A view that goes with the log: how many rows it has, and what it expects to come next."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.rows = 0
        self.folds = 0
        self.expected: list[tuple[int, str]] = []


class Conversation:
    """One branch of a session, as far as it is loaded.

    record   as last read
    rows     the loaded entries of the branch, in order
    folds    those in force
    head     the seq of the last entry that is known

    `changed_size` is called whenever other rows are loaded than before.
    """

    def __init__(
        self,
        tenant: Tenant,
        record: Record,
        ledger: Ledger | None = None,
        changed_size: Callable[[], object] = _tell_nobody,
    ) -> None:
        self.tenant = tenant
        self._changed_size = changed_size
        self.record = record
        self.branch = record.branch
        self.ledger = Ledger() if ledger is None else ledger
        self._has_learned = ledger is not None
        self.rows: list[Stored] = []
        self.folds: list[Stored] = []
        self.gaps: list[Gap] = []
        self.head = 0
        self.count = 0
        self.spent = NOTHING_SPENT
        self._views: dict[str, _Live] = {}
        self._fold_count = 0
        self._folds_seen = 0  # those up to this entry came with the record
        self._called: set[str] = set()  # the ids of all calls that are loaded
        self._counted: dict[str, int] = {}  # by model: its last request, by our counter
        self._went = 0  # tokens that folds took away since
        self._steering: dict[str, Message] = {}  # said to a running turn, and not taken up yet
        self.is_gone = False  # the session was deleted, has expired, or was made anew
        self._reading = asyncio.Lock()
        self._changes = 0  # of what is known here
        self._measured: tuple[list[Stored], int, int] = (self.rows, 0, 0)

    # What is there

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def is_in_use(self) -> bool:
        """Whether this is still the session's branch, as far as was seen."""
        return self.record.branch == self.branch

    @property
    def messages(self) -> tuple[Message, ...]:
        """Those of the tail without a gap."""
        start = self.gaps[-1].last if self.gaps else 0
        rows = self.rows if not start else [row for row in self.rows if row.seq > start]
        return tuple(row.entry for row in rows if type(row.entry) is Message)

    @property
    def size(self) -> int:
        """About how many bytes the loaded entries take. What was measured once is not again."""
        rows, done, size = self._measured
        if rows is not self.rows:
            done = size = 0
        size += sum(map(_size_of, self.rows[done:]))
        self._measured = (self.rows, len(self.rows), size)
        return size

    @property
    def last_call(self) -> Call | None:
        """The latest receipt that is loaded."""
        return next((row.entry for row in reversed(self.rows) if type(row.entry) is Call), None)

    @property
    def was_asked(self) -> bool:
        """Whether a model was ever asked on this branch, so that a prefix of it may be cached."""
        return bool(self.folds) or self.last_call is not None

    def turn(self, since: int | None = None) -> tuple[Stored, ...]:
        """The rows of the latest turn, or those from the entry `since` on."""
        start = len(self.rows)
        while start:
            start -= 1
            row = self.rows[start]
            if row.seq == since or (since is None and _starts_turn(row)):
                break
        return tuple(self.rows[start:])

    def turn_of(self, id: str, *, is_last: bool = False) -> tuple[Stored, ...] | None:
        """The rows of the turn that begins with the message of this id; None if it is not here.

        With `is_last` no other turn was run since: what begins one was only appended beside it, and
        the rows behind that are its own too.
        """
        for start in range(len(self.rows) - 1, -1, -1):
            if getattr(self.rows[start].entry, "id", None) == id:
                if not is_last:
                    return turn_at(self.rows, start)
                rest = self.rows[start + 1 :]
                return (self.rows[start], *(row for row in rest if not _starts_turn(row)))
        return None

    def since_reply(self) -> tuple[Stored, ...]:
        """The rows from the latest answer of a model on; none if there is no answer."""
        for start in range(len(self.rows) - 1, -1, -1):
            entry = self.rows[start].entry
            if type(entry) is Message and entry.role.canonical is Role.ASSISTANT:
                return tuple(self.rows[start:])
        return ()

    @property
    def steering(self) -> list[Message]:
        """What was said to the running turn and is not in the log as a message yet."""
        return list(self._steering.values())

    # Reading
    #
    # Who reads waits for who reads already, and reads again where something was appended here
    # meanwhile: an answer may come late, and what is older must never replace what is newer.

    async def load(self, *, is_all: bool = False) -> None:
        """Read what the window shows, or everything."""
        async with self._reading:
            await self._load(is_all=is_all)

    async def _load(self, *, is_all: bool = False) -> None:
        branch, gaps, rows = await self._steadily(lambda: self._read_shown(is_all=is_all))
        if gaps and not _is_whole(rows, set()):
            await self._load(is_all=True)
            return
        self.rows, self.gaps = [], gaps
        self.folds, self._folds_seen = [], 0
        if self.is_in_use:
            self.folds, self._folds_seen = list(self.record.folds), branch.head
        self.head, self.count = branch.head, branch.count
        self._steering, self._views, self._called = {}, {}, set()
        self.spent = NOTHING_SPENT
        self._take(rows)
        await self._fill_gaps()

    async def _steadily(self, read: Callable[[], Awaitable[_Read]]) -> _Read:
        """What is read while nothing changes here."""
        while True:
            changes = self._changes
            found = await read()
            if changes == self._changes:
                return found

    async def _read_shown(self, *, is_all: bool) -> tuple[Branch, list[Gap], list[Stored]]:
        """The rows that the window shows, or all, with the branch and what is passed over."""
        branch = self.record.branch_named(self.branch)
        gaps = [] if is_all or not self.is_in_use else gaps_of(self.record.folds)
        rows: list[Stored] = []
        start = 0
        for gap in gaps:
            rows += await self._read(start, gap.start)
            start = gap.stop
        return branch, gaps, rows + list(await self._read(start, None))

    async def _read_new(self) -> tuple[Stored, ...]:
        """The last message that is known, and what is behind it."""
        known = max(0, self.count - 1)
        read = await self._read(known, known + _NEAR)
        if read and read[-1].position == known + _NEAR - 1:
            read += await self._read(known + _NEAR, None)
        return read

    async def _read(self, start: int, stop: int | None) -> tuple[Stored, ...]:
        if stop is not None and start >= stop:
            return ()
        return await self.tenant.read(self.id, self.branch, start, stop)

    async def refresh(self) -> None:
        """See what others have written: the record, and what is new on the branch."""
        await self.look()
        await self.catch_up()

    async def look(self) -> None:
        """Read the record again."""
        async with self._reading:
            try:
                record = await self._steadily(lambda: self.tenant.load(self.record.key))
            except (SessionNotFound, SessionExpired):
                self.is_gone = True
                raise
            self.see(record)

    def see(self, record: Record) -> None:
        """The record as it is now. One of another session under the same key is refused."""
        if record.id != self.id:
            self.is_gone = True
            raise InvalidInput(
                f"session {self.record.key!r}", "was made anew: get it from the manager"
            )
        self.record = record
        self._changes += 1

    def drop_draft(self) -> None:
        """A turn has ended here, and its draft is gone."""
        if self.record.draft is not None:
            self.record = self.record.replace(draft=None)
        self._changes += 1

    async def catch_up(self) -> None:
        """Read what is new on the branch."""
        async with self._reading:
            await self._catch_up()

    async def _catch_up(self) -> None:
        read = await self._steadily(self._read_new)
        new = [row for row in read if row.seq > self.head]
        if (self.count or self.rows) and len(new) == len(read):
            await self._load()  # the last that was there is gone: the session was cleared
        elif not read:  # nothing is there, and nothing was: but it may have been, and was cleared
            self.head = max(self.head, self.record.branch_named(self.branch).head)
        elif self.gaps and not _is_whole(new, set(self._called)):
            await self._load(is_all=True)
        else:
            self._take(new)
            await self._fill_gaps()

    async def _fill_gaps(self) -> None:
        """Read what was passed over, if a fold came that shows some of it."""
        if self._shows_gaps:
            await self._load(is_all=True)

    @property
    def _shows_gaps(self) -> bool:
        return bool(self.gaps) and not _are_in(self.gaps, gaps_of(self.folds))

    def _take(self, rows: Iterable[Stored]) -> None:
        """Rows that follow those that are loaded."""
        self._changes += 1
        for row in rows:
            entry = row.entry
            if row.kind == "message":
                self.count = max(self.count, row.position + 1)
            if type(entry) is Message:
                self._steering.pop(entry.extra.get(STEER, ""), None)
                self._called.update(call.id for call in entry.tool_calls)
            elif type(entry) is Fold:
                self._fold(row, entry)
            elif type(entry) is Mark and entry.what == STEER:
                self._steering[entry.id] = steered(entry)
            spent = Spent.of(entry)
            if spent is not None and spent.calls >= self.spent.calls:  # one may come late
                self.spent = spent
            self.rows.append(row)
            self.head = max(self.head, row.seq)
        self._changed_size()

    def _fold(self, row: Stored, fold: Fold) -> None:
        if row.seq <= self._folds_seen:
            return
        self.folds = [each for each in self.folds if not covers(fold, each.entry)]
        self.folds.append(row)
        self._fold_count += 1

    # Writing

    async def append(
        self,
        entries: Sequence[Entry],
        *,
        lease: Lease | None = None,
        once: str | None = None,
        finish: bool = False,
    ) -> Appended:
        """Add entries behind the last one that is known; Conflict if there are others by now."""
        head = self.head
        done = await self.tenant.append(
            self.id,
            entries,
            branch=self.branch,
            after=head,
            lease=lease,
            once=once,
            finish=finish,
        )
        if done.branch != self.branch:  # a repeat, of what stands on another branch
            return done
        if done.last > self.head == head:
            self._took(done, entries)
            if self._shows_gaps:
                await self.load(is_all=True)
        elif done.last > self.head:  # it was loaded again meanwhile
            await self.catch_up()
        return done

    def _took(self, done: Appended, entries: Sequence[Entry]) -> None:
        said = sum(type(entry) is Message for entry in entries)
        position = done.messages - said - 1
        rows = []
        for seq, entry in enumerate(entries, done.first):
            position += type(entry) is Message
            kind = _KINDS.get(type(entry), "")
            rows.append(Stored(seq, max(0, position), self.branch, kind, entry))
        self._take(rows)

    def placed(self, fold: Fold) -> Fold:
        """The fold with what a reader needs to pass over what it hides: positions, turns, cost.

        One that hides results of calls that are shown stays as it is: in their place stand notes.
        """
        if fold.last - fold.first <= GAP_MIN:
            return fold
        covered = [
            row for row in self.rows if row.kind == "message" and fold.first <= row.seq <= fold.last
        ]
        if not covered or not _is_whole(covered, set()):
            return fold
        turns = sum(map(_starts_turn, covered[1:]))
        inside = [gap for gap in self.gaps if fold.first <= gap.last <= fold.last]
        turns += sum(gap.turns for gap in inside)
        last = max(covered[-1].position, max((gap.stop - 1 for gap in inside), default=0))
        place = {"at": [covered[0].position, last], "turns": turns, "spent": self.spent.values}
        return fold.replace(extra={**fold.extra, **place})

    def forget(self) -> None:
        """Let go of messages that folds hide."""
        gaps = gaps_of(self.folds)
        if gaps == self.gaps or not _are_in(self.gaps, gaps):
            return
        rows = [row for row in self.rows if not any(_is_in(row, gap) for gap in gaps)]
        called: set[str] = set()
        if _is_whole(rows, called):
            self.rows, self.gaps, self._views, self._called = rows, gaps, {}, called
            self._changed_size()

    # The view

    def view(self, family: str, count: Count, pending: Sequence[Message] = ()) -> View:
        """What a model that counts so is shown, with messages that are about to be appended."""
        live = self._views.get(family)
        wanted = [(seq, each.id) for seq, each in enumerate(pending, self.head + 1)]
        if live is None or not self._follow(live) or live.expected != wanted[: len(live.expected)]:
            live = self._views[family] = self._new_view(family, count)
        for place in range(len(live.expected), len(wanted)):
            live.view.add(wanted[place][0], pending[place])
        live.expected = wanted
        return live.view

    def _follow(self, live: _Live) -> bool:
        """Add what is new; False where it is not what was expected, or where folds came."""
        if live.folds != self._fold_count:
            return False
        waiting = live.expected
        for row in self.rows[live.rows :]:
            entry = row.entry
            if type(entry) is Message:
                if waiting:
                    if waiting.pop(0) != (row.seq, entry.id):
                        return False
                else:
                    live.view.add(row.seq, entry)
            live.rows += 1
        return True

    def _new_view(self, family: str, count: Count) -> _Live:
        live = _Live(View(self.ledger.counter(family, count)))
        gaps = iter(self.gaps)
        gap = next(gaps, None)
        for row in self.rows:
            while gap is not None and row.seq > gap.last:
                live.view.skip(gap.turns)
                gap = next(gaps, None)
            if type(row.entry) is Message:
                live.view.add(row.seq, row.entry)
        for fold in self.folds:
            if fold.entry is not None:
                live.view.add(fold.seq, fold.entry)
        live.rows, live.folds = len(self.rows), self._fold_count
        return live

    def learn(self, family: str, count: Count) -> None:
        """Let the ledger know what the receipts that are loaded have reported; once."""
        if self._has_learned:
            return
        self._has_learned = True
        self.ledger = Ledger(by=family)
        counter = self.ledger.counter(family, count)
        passed_over = [gap.last for gap in reversed(self.gaps)]
        turn: list[Entry] = []
        for row in self.rows:
            while passed_over and row.seq > passed_over[-1]:
                passed_over.pop()
                self.ledger.replay(turn, counter)
                self.ledger.skip()
                turn = []
            if _starts_turn(row):
                self.ledger.replay(turn, counter)
                self.ledger.end_turn()
                turn = []
            if row.entry is not None:
                turn.append(row.entry)
        self.ledger.replay(turn, counter)
        self.ledger.end_turn()

    # What came and went since a model was last asked

    def reported(self, model: str, counted: int) -> None:
        """A request to this model was counted so."""
        self._counted[model] = counted
        self._went = 0

    def folded(self, tokens: int) -> None:
        """So many tokens are no longer shown."""
        self._went += max(0, tokens)

    def changed(self, model: str, counted: int) -> int | None:
        """What came and went; None where that is no more than the difference."""
        if not self._went or model not in self._counted:
            return None
        came = counted - (self._counted[model] - self._went)
        return self._went + max(0, came)


_KINDS: dict[type, str] = {Message: "message", Fold: "fold", Call: "call", Mark: "mark"}


def steered(mark: Mark) -> Message:
    """The message that comes of what was said to a running turn."""
    return Message.user(
        str(mark.data.get("text", "")),
        id=f"{mark.id}:said",
        timestamp=mark.timestamp,
        synthetic=STEER,
        extra={STEER: mark.id},
    )


def turn_at(rows: Sequence[Stored], start: int) -> tuple[Stored, ...]:
    """The rows of the turn that begins at a place."""
    stop = start + 1
    while stop < len(rows) and not _starts_turn(rows[stop]):
        stop += 1
    return tuple(rows[start:stop])


def gaps_of(folds: Iterable[Stored]) -> list[Gap]:
    """What folds hide and need not be loaded, in order: all but the first message of each."""
    found: list[tuple[Fold, Gap]] = []
    entries = [each.entry for each in folds if type(each.entry) is Fold]
    for fold in entries:
        place: Any = fold.extra.get("at")
        if fold.is_open or not place:
            continue
        first, last = place
        overlapping = [e for e in entries if e is not fold and _overlaps(e, fold)]
        if last - first > GAP_MIN and not overlapping:
            turns = int(fold.extra.get("turns", 0))
            found.append((fold, Gap(first + 1, last + 1, turns, fold.last)))
    return sorted(gap for _, gap in found)


def _overlaps(a: Fold, b: Fold) -> bool:
    return a.first <= b.last and b.first <= a.last


def covers(later: Entry | None, earlier: Entry | None) -> bool:
    """Whether a later fold hides all that an earlier one does."""
    if type(later) is not Fold:
        return False
    return type(earlier) is Fold and later.first <= earlier.first and earlier.last <= later.last


def _is_in(row: Stored, gap: Gap) -> bool:
    return gap.start <= row.position < gap.stop


def _are_in(gaps: Iterable[Gap], others: Sequence[Gap]) -> bool:
    """Whether each of these gaps is one of the others, or a part of one."""
    return all(any(o.start <= gap.start and gap.stop <= o.stop for o in others) for gap in gaps)


def _size_of(row: Stored) -> int:
    """About what an entry takes in memory, its large texts above all."""
    entry = row.entry
    if type(entry) is not Message:
        return _SMALL
    content = entry.content or ""
    parts = [content] if isinstance(content, str) else [_text_of(part) for part in content]
    calls = (f"{call.arguments}{call.output or ''}" for call in entry.tool_calls)
    return _SMALL + sum(map(len, parts)) + sum(map(len, calls))


def _text_of(part: Part) -> str | bytes:
    """What is long in a part: its text, or its data."""
    found = getattr(part, "text", None) or getattr(part, "data", None)
    return found if isinstance(found, str | bytes) else ""


def _starts_turn(row: Stored) -> bool:
    return type(row.entry) is Message and row.entry.starts_turn


def _is_whole(rows: Iterable[Stored], called: set[str]) -> bool:
    """Whether the call of each result is among them: then nothing that is shown was passed over."""
    for message in _messages(rows):
        called.update(call.id for call in message.tool_calls)
        if any(result.call_id not in called for result in message.results):
            return False
    return True


def _messages(rows: Iterable[Stored]) -> Iterator[Message]:
    return (row.entry for row in rows if type(row.entry) is Message)
