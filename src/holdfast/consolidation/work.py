"""A consolidation: a range of messages read, a model asked what to keep of it, and that kept.

    look      what is new, and MEMORY.md as it stands
    ask       the model; this takes long, and nothing is locked but other consolidations
    check     under the lock: the counter, the messages and MEMORY.md are as they were
    keep      the files and the counter (`files` says how)

What has changed meanwhile is noticed: then what the model said is dropped, and it is made again
from what there is now. So nobody's update of MEMORY.md is lost, and what was erased is not kept.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from holdfast import ids
from holdfast.cancel import CancelToken
from holdfast.consolidation import counter, wording
from holdfast.consolidation.desk import Desk
from holdfast.consolidation.files import Entry, Files, Seen
from holdfast.consolidation.places import Places
from holdfast.consolidation.ranges import Range, is_due, range_of
from holdfast.consolidation.state import Move, Owner, changed
from holdfast.consolidation.waiting import held, in_thread
from holdfast.errors import (
    ContextOverflow,
    HoldfastError,
    ProviderError,
    SessionExpired,
    SessionNotFound,
    StoreUnavailable,
)
from holdfast.events import Consolidated, ConsolidationFailed, ConsolidationStarted, Event
from holdfast.messages import Message
from holdfast.providers.limits import limits_of
from holdfast.steps.answers import Exchange
from holdfast.steps.asking import asked
from holdfast.stores.values import Record, Stored
from holdfast.usage import Usage

_AGAIN_MAX = 8  # what the model says of a range is dropped so often before it is an error
_SHARE = 0.5  # of the window: as much is told at a time
_CHARACTERS_A_TOKEN = 3


class Said(NamedTuple):
    """What is to be kept of a range, and what it took.

    memory  the new MEMORY.md; None where nothing is new
    read    the digest of the MEMORY.md that the model had read; None where none was asked
    is_raw  the entry is the messages themselves
    """

    entry: str = ""
    memory: str | None = None
    read: str | None = None
    usage: Usage = Usage()
    is_raw: bool = False


class Rules(NamedTuple):
    """How a memory works."""

    window: int
    failures_max: int
    versions_max: int


class Part(NamedTuple):
    """Some of a session's messages, and the record that told of them."""

    record: Record
    range: Range
    rows: tuple[Stored, ...]

    @property
    def messages(self) -> list[Message]:
        return [row.entry for row in self.rows if type(row.entry) is Message]

    def cut(self, stop: int) -> "Part":
        """Only the first of them."""
        rows = tuple(row for row in self.rows if row.position < stop)
        return Part(self.record, Range(self.range.start, stop), rows)


class Work:
    """What is done for one session."""

    def __init__(
        self,
        desk: Desk,
        places: Places,
        rules: Rules,
        tell: Callable[[Event], None],
        key: str,
        id: str,
    ) -> None:
        self._desk = desk
        self._rules = rules
        self._tell = tell
        self._key = key
        self._id = id
        folder = places.of(desk.tenant.name, key, id)
        self._files = Files(folder, rules.versions_max)
        self._busy, self._lock = places.busy(folder), places.lock(folder)

    async def run(self, *, is_all: bool = False, if_due: bool = False) -> int:
        """Summarise what is new, as the range has it; how many messages that were.

        One at a time for each folder: nobody else asks a model about it meanwhile.
        """
        done = 0
        async with held(self._busy):
            wanted = await self._range(is_all=is_all, if_due=if_due)
            while wanted is not None and wanted.start < wanted.stop:
                stop = await self._keep_first(wanted)
                done += stop - wanted.start
                now = await self._range(is_all=True)
                if now is None or now.start != stop or stop == wanted.start:
                    break  # somebody has changed it
                wanted = Range(stop, wanted.stop)
        return done

    async def settle(self) -> None:
        """Carry out what was decided before a crash."""
        async with held(self._lock):
            await self._settle()

    async def _settle(self) -> None:
        now = await in_thread(self._files.settled)
        for move in now.moves:
            if move.session == self._id:
                await counter.move(self._desk.tenant, self._key, move)
                await in_thread(self._files.moved, move)

    # Look

    async def _range(self, *, is_all: bool = False, if_due: bool = False) -> Range | None:
        """What is to be summarised; None if nothing is."""
        await self.settle()
        record = await self._record()
        count = record.branch_named(record.branch).count
        at = await counter.position(self._desk.tenant, record)
        if counter.known(record) is None:
            await counter.adopt(self._desk.tenant, record, at)
        if if_due and not is_due(count, at, self._rules.window):
            return None
        return range_of(count, at, self._rules.window, is_all=is_all)

    async def _record(self) -> Record:
        record = await self._desk.tenant.load(self._key)
        if record.id != self._id:
            raise SessionNotFound(self._key)
        return record

    async def _read(self, wanted: Range) -> Part:
        record = await self._record()
        rows = await self._desk.tenant.read(
            record.id, record.branch, wanted.start, wanted.stop, kind="message"
        )
        return Part(record, wanted, rows)

    # Ask

    async def _keep_first(self, wanted: Range) -> int:
        """Summarise the first messages of a range, as many as a model takes; where that ends."""
        for _ in range(_AGAIN_MAX):
            part = self._fitting(await self._read(wanted))
            is_there = len(part.rows) == part.range.stop - part.range.start
            if not is_there or not await self._is_next(part):
                return wanted.start  # it was cleared or summarised, or another branch is in use
            started = ConsolidationStarted(
                session_id=self._id, start=part.range.start, stop=part.range.stop
            )
            self._tell(started)
            seen = await in_thread(self._files.seen)
            part, said = await self._ask(part, seen)
            if await self._keep(part, said):
                return part.range.stop
        raise StoreUnavailable("the memory", "it is changed by others all the time")

    def _fitting(self, part: Part) -> Part:
        """As many of the messages as the model can read at a time; at least one."""
        target = self._desk.target()
        limit = limits_of(target.provider, target.model).context
        left = int(limit * _SHARE) * _CHARACTERS_A_TOKEN
        for row in part.rows:
            said = wording.line(row.entry) if type(row.entry) is Message else None
            left -= len(said or "")
            if left < 0 and row.position > part.range.start:
                return part.cut(row.position)
        return part

    async def _ask(self, part: Part, seen: Seen) -> tuple[Part, Said]:
        """What is to be kept of the messages, or of fewer if these are too long for the model."""
        lines = [said for each in part.messages if (said := wording.line(each))]
        if not lines:
            return part, Said()
        try:
            return part, await self._asked(lines, seen)
        except ContextOverflow as error:
            start, stop = part.range
            if stop - start > 1:
                return await self._ask(part.cut(start + (stop - start) // 2), seen)
            return part, await self._failed(part, error)
        except ProviderError as error:
            return part, await self._failed(part, error)

    async def _asked(self, lines: Sequence[str], seen: Seen) -> Said:
        target = self._desk.target()
        exchange: Exchange = await asked(
            target,
            CancelToken(),
            [Message.user(wording.task(seen.memory, lines))],
            wording.SYSTEM,
            [wording.SAVE_MEMORY],
        )
        saved = wording.read_answer(exchange.response.message, target.name)
        entry, memory = self._desk.redacted(saved.entry), self._desk.redacted(saved.memory)
        is_new = bool(memory.strip()) and memory != seen.memory
        new = memory if is_new else None
        return Said(entry, new, seen.digest, exchange.response.usage)

    async def _failed(self, part: Part, error: HoldfastError) -> Said:
        """The model could not say what to keep: that is an error, and after some the messages
        themselves are kept."""
        failures = await self._note_failure(part, str(error))
        failed = ConsolidationFailed(
            session_id=self._id,
            start=part.range.start,
            stop=part.range.stop,
            error=str(error),
            attempt=failures,
            attempts_max=self._rules.failures_max,
        )
        self._tell(failed)
        if failures < self._rules.failures_max:
            raise error
        return Said(wording.raw(part.messages, ids.now()), is_raw=True)

    async def _note_failure(self, part: Part, why: str) -> int:
        """How often in a row it has failed; nothing is noted of what was removed meanwhile."""
        async with held(self._lock):
            now = await in_thread(self._files.settled)
            owner = now.owners.get(self._id) or self.owner
            if not await self._is_there(part):
                return owner.failures
            owner = changed(owner, {"failures": owner.failures + 1, "why": why})
            await in_thread(self._files.note, self._id, owner)
            return owner.failures

    @property
    def owner(self) -> Owner:
        """The session, as one that something is kept of."""
        return Owner(tenant=self._desk.tenant.name, key=self._key)

    # Check and keep

    async def _keep(self, part: Part, said: Said) -> bool:
        """Keep it; False if it is not of what there is now."""
        async with held(self._lock):
            await self._settle()
            now = await in_thread(self._files.seen)
            if said.read not in (None, now.digest):  # the entry may repeat what is not there now
                return False
            if not await self._is_as_read(part):
                return False
            move = Move(
                session=self._id,
                branch=part.record.branch,
                start=part.range.start,
                stop=part.range.stop,
                seq=part.rows[-1].seq,
            )
            seqs = tuple(row.seq for row in part.rows)
            entry = Entry(self.owner, move, seqs, said.entry, said.memory)
            await in_thread(self._files.decide, entry)
            await self._settle()
        self._tell(self._done(part, said))
        return True

    async def _is_as_read(self, part: Part) -> bool:
        """Whether the messages are those that were read, and still not summarised."""
        now = await self._read(part.range)
        if now.record.branch != part.record.branch or now.rows != part.rows:
            return False
        return await self._is_next(now)

    async def _is_there(self, part: Part) -> bool:
        """The same; a session that is gone has none."""
        try:
            return await self._is_as_read(part)
        except (SessionNotFound, SessionExpired):
            return False

    async def _is_next(self, part: Part) -> bool:
        """Whether the counter stands before these messages."""
        return await counter.position(self._desk.tenant, part.record) == part.range.start

    def _done(self, part: Part, said: Said) -> Consolidated:
        return Consolidated(
            session_id=self._id,
            start=part.range.start,
            stop=part.range.stop,
            entry=said.entry,
            is_raw=said.is_raw,
            is_memory_changed=said.memory is not None,
            usage=said.usage,
        )
