"""One session, brought to another store: copied, compared, and brought up to date.

The log is gone over in parts, from its beginning. What the target has not yet is restored there;
then the same part is read back from the target and held against what the source said, entry by
entry. A session that is written to meanwhile is gone over again, a few times; what is erased or
cleared in the source behind our back is found on the way, and removed from the target.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec
from msgspec.structs import astuple, replace

from holdfast import codec
from holdfast.errors import Conflict, Corrupt, DuplicateSession, SessionNotFound
from holdfast.stores.base import Tenant
from holdfast.stores.values import Named, Part, Problem, Record, Stored

STEP = 2_000  # entries in a part
NAMES_STEP = 1_000
ROUNDS_MAX = 4
MOVED = "it was written to while it was copied"
_encode = msgspec.json.Encoder(order="sorted").encode


class Brought(NamedTuple):
    """What came of a session.

    copied      the target has all of it
    unchanged   it had all of it before
    ahead       it had, and has been written to since; the source has not
    moved       the source was written to all the time, and the target is a little behind it
    """

    outcome: Literal["copied", "unchanged", "ahead", "moved"]
    why: str = ""


class Differs(Exception):
    """The first place where two sessions are not the same."""

    def __init__(self, what: str, branch: str = "", seq: int = 0) -> None:
        super().__init__(what, branch, seq)
        self.what, self.branch, self.seq = what, branch, seq

    def __str__(self) -> str:
        place = f"branch {self.branch!r}, entry {self.seq}: " if self.seq else ""
        return place + self.what

    def problem(self, key: str) -> Problem:
        """The finding as it is reported."""
        return Problem(key, self.branch, self.seq, self.what)


class Source(Protocol):
    """What sessions are brought from: the tenant of a store, or what answers like one."""

    async def export(self, id: str, after: int = 0, limit: int = 1_000) -> Part: ...

    async def names(self, id: str, after: str = "", limit: int = 1_000) -> tuple[Named, ...]: ...


class _Again(Exception):
    """Another copy of the same session writes to the target: see how far it is."""


class Replica:
    """A session in `source`, and what there is of it in `target`.

    `told` is given the number of entries each time that some are known to be in the target, and
    `written` counts those that were put there.
    """

    def __init__(
        self, source: Source, target: Tenant, id: str, told: Callable[[int], None] = lambda _: None
    ) -> None:
        self._source, self._target, self._id, self._told = source, target, id, told
        self._seq: int | None = None  # of the target; None: it is not there
        self.written = 0
        self._done = 0  # the seq up to which `told` has been told

    async def bring(self, *, recheck: bool = False) -> Brought:
        """Make the target the same as the source.

        Conflict and DuplicateSession if it is something else already, Differs with the place
        if it is known; Corrupt if either cannot be read, or does not come back as it was written.
        """
        now = await self._source.export(self._id, limit=0)
        there = await self._there()
        if there is not None and (found := self._compared(now, there)) is not None:
            if found.outcome != "unchanged" or not recheck:
                self._told(now.record.seq - now.record.branches[0].fork)
                return found
        elif there is not None and not _is_ours(there):
            await self._compare_all()
            return Brought("unchanged", _unfinished(now.record))
        for _ in range(ROUNDS_MAX):
            try:
                if (record := await self._round()) is not None:
                    return Brought("copied", _unfinished(record))
            except _Again:
                continue
        return Brought("moved", MOVED)

    async def is_level(self) -> bool:
        """Whether the target has everything, as far as the records tell."""
        now, there = await self._source.export(self._id, limit=0), await self._there()
        return there is not None and self._compared(now, there) is not None

    def _compared(self, now: Part, there: Part) -> Brought | None:
        """What the two records tell, if they tell enough."""
        origin = there.origin
        if origin is None or not origin.is_whole:
            return None
        if not _is_ours(there):
            is_old = origin.updated_at == now.record.updated_at
            return Brought("ahead", "the target has been written to since") if is_old else None
        if said(now.record) == said(there.record):
            return Brought("unchanged", _unfinished(now.record))
        return None

    async def _there(self) -> Part | None:
        try:
            there = await self._target.export(self._id, limit=0)
        except SessionNotFound:
            self._seq = None
            return None
        self._seq = there.record.seq
        return there

    # One round

    async def _round(self) -> Record | None:
        """Go over the log once, and finish if the source stood still meanwhile."""
        first: Record | None = None
        after = 0
        while True:
            part = await self._source.export(self._id, after, STEP)
            first = first or part.record
            await self._take(part, after)
            if _is_end(part):
                break
            after = part.entries[-1].seq
        await self._take_names(part)
        last = await self._source.export(self._id, limit=0)
        if said(last.record) != said(first):
            return None
        await self._restore(last, (), is_whole=True)
        back = await self._target.export(self._id, limit=0)
        if said(back.record) != said(last.record):
            raise _damaged(last.record.key, Differs("the record is not what was written"))
        return last.record

    async def _take(self, part: Part, after: int) -> None:
        """Let the target have this part, and read it back."""
        here = -1 if self._seq is None else self._seq
        new = tuple(each for each in part.entries if each.seq > here)
        if new or self._seq is None:
            await self._restore(part, new)
        back = await self._back(part, after)
        if gone := _gone(part.entries, back.entries):
            await self._restore(part, gone)
            back = await self._back(part, after)
        try:
            compare(part, back)
        except Differs as error:
            raise _damaged(part.record.key, error) from None
        if part.entries and part.entries[-1].seq > self._done:
            self._told(sum(each.seq > self._done for each in part.entries))
            self._done = part.entries[-1].seq

    async def _take_names(self, part: Part) -> None:
        """Let the target know the named appends. It may do so already."""
        after = ""
        while named := await self._source.names(self._id, after, NAMES_STEP):
            if missing := await self._missing(named, after):
                await self._restore(replace(part, named=missing), ())
                if missing := await self._missing(named, after):
                    lost = Differs(f"the named append {missing[0].name!r} is missing")
                    raise _damaged(part.record.key, lost)
            after = named[-1].name

    async def _missing(self, named: Sequence[Named], after: str) -> tuple[Named, ...]:
        """Those of these names that the target does not have, or has otherwise."""
        there = set(await self._target.names(self._id, after, len(named)))
        return tuple(each for each in named if each not in there)

    async def _restore(
        self, part: Part, entries: Sequence[Stored], *, is_whole: bool = False
    ) -> None:
        part = replace(part, entries=tuple(entries))
        try:
            here = await self._target.restore(part, after=self._seq, is_whole=is_whole)
            self._seq, self.written = here, self.written + len(entries)
        except (Conflict, DuplicateSession, SessionNotFound):
            there = await self._there()
            if there is None or not _is_ours(there):
                raise
            raise _Again from None

    async def _back(self, part: Part, after: int) -> Part:
        """The same part of the target. It may come in several."""
        wanted = len(part.entries)
        back = await self._target.export(self._id, after, max(wanted, 1))
        while back.entries and len(back.entries) < wanted:
            more = await self._target.export(
                self._id, back.entries[-1].seq, wanted - len(back.entries)
            )
            if not more.entries:
                break
            back = replace(more, entries=(*back.entries, *more.entries))
        return back

    # A session that is there already, and not from here

    async def _compare_all(self) -> None:
        """See that the target is the same, or raise Differs."""
        after = 0
        while True:
            part = await self._source.export(self._id, after, STEP)
            back = await self._back(part, after)
            compare(part, back)
            if _is_end(part):
                break
            after = part.entries[-1].seq
        name = ""
        while named := await self._source.names(self._id, name, NAMES_STEP):
            if missing := await self._missing(named, name):
                raise Differs(f"the named append {missing[0].name!r} is missing")
            name = named[-1].name
        if said(part.record) != said(back.record):
            raise Differs("its record, or what was said after these entries, is another")


def compare(part: Part, back: Part) -> None:
    """Whether two parts are the same, entry by entry; Differs says where they are not."""
    for one, two in zip(part.entries, back.entries, strict=False):
        if (one.seq, one.position, one.branch, one.kind) != (
            *(two.seq, two.position, two.branch, two.kind),
        ):
            raise Differs("another entry stands here", one.branch, one.seq)
        if _bytes(one) != _bytes(two):
            raise Differs("it says something else", one.branch, one.seq)
    if len(part.entries) > len(back.entries):
        first = part.entries[len(back.entries)]
        raise Differs("it is missing", first.branch, first.seq)


def said(record: Record) -> bytes:
    """A record as bytes that differ when anything in it does. A running turn is left out."""
    draft = None
    if record.draft is not None and not record.draft.is_running:
        draft = (record.draft.token, record.draft.input, record.draft.chunks)
    # As tuples: a struct is written without what is the very object of a default, so that two
    # that are equal may be different bytes.
    branches = [astuple(each) for each in record.branches]
    fields = (record.settings.values, record.ttl, record.created_at, record.updated_at, record.seq)
    names = (record.key, record.id, record.agent, record.parent, record.branch)
    return _encode(
        (*names, *fields, record.metadata, record.tools, record.counters, branches, draft)
    )


def _bytes(stored: Stored) -> bytes | None:
    return None if stored.entry is None else codec.record(stored.entry)


def _gone(entries: Sequence[Stored], back: Sequence[Stored]) -> tuple[Stored, ...]:
    """The entries that were erased in the source, and are still in the target."""
    there = {each.seq for each in back if each.entry is not None}
    return tuple(each for each in entries if each.entry is None and each.seq in there)


def _is_ours(part: Part) -> bool:
    """Whether nobody has written to it but who copied it."""
    return part.origin is not None and part.origin.updated_at == part.record.updated_at


def _is_end(part: Part) -> bool:
    return not part.entries or part.entries[-1].seq >= part.record.seq


def _unfinished(record: Record) -> str:
    is_running = record.draft is not None and record.draft.is_running
    return "a turn runs on it, which stays where it is" if is_running else ""


def _damaged(key: str, found: Differs) -> Corrupt:
    place = f", branch {found.branch!r}, entry {found.seq}" if found.seq else ""
    return Corrupt(f"the copy of session {key!r}{place}", found.what)
