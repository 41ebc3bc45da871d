"""A session whole, outside of any store: taken out of one, put into another, or back.

    archive = await take(tenant, id)
    restored = await put(other_tenant, archive)

What is put keeps its ids, seqs and times, so the same archive put twice is found to be there, and a
later one of the same session adds what is new. What a store has already, and did not get from an
archive or copy of this session, is never touched.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Literal, NamedTuple

from holdfast.child import LINKS
from holdfast.codec import plain
from holdfast.entries import Entry, kind_of
from holdfast.errors import Conflict, DuplicateSession, SessionNotFound
from holdfast.frozen import EMPTY, FrozenDict
from holdfast.keys import check_key
from holdfast.messages import Message
from holdfast.settings import Settings
from holdfast.stores.base import Tenant
from holdfast.stores.replica import Differs, Replica, compare, said
from holdfast.stores.restoring import check_whole
from holdfast.stores.values import MAIN, Branch, Named, Part, Record, Stored

_STEP = 50_000  # entries in a commit; a session of fewer is put in one piece
_NAMES_STEP = 1_000
_ROUNDS_MAX = 4
Told = Callable[[int], object]


class Archive(NamedTuple):
    """A session at one moment.

    `record` is without its folds, which are among the entries, and without a turn that runs.
    `entries` are those of all branches in the order of their seqs; one that was erased is None.
    `named` are the appends that were made with `once`.
    """

    record: Record
    entries: tuple[Stored, ...] = ()
    named: tuple[Named, ...] = ()

    def line(self) -> tuple[Stored, ...]:
        """The entries of the branch in use, those of its parents up to where it comes from."""
        name: str | None = self.record.branch
        last, taken = self.record.seq, {}
        while name is not None:
            taken[name] = last
            branch = self.record.branch_named(name)
            name, last = branch.parent, branch.fork
        return tuple(each for each in self.entries if each.seq <= taken.get(each.branch, 0))

    def messages(self) -> tuple[Message, ...]:
        """The messages of the branch in use."""
        return tuple(each.entry for each in self.line() if type(each.entry) is Message)


class Restored(NamedTuple):
    """What came of an archive.

    new      the session was not there
    added    it was there as an earlier archive or copy has brought it, and is up to date now
    there    it was there, with everything that is in the archive
    """

    outcome: Literal["new", "added", "there"]
    key: str
    messages: int


def archive_of(
    key: str,
    entries: Sequence[Entry],
    *,
    created_at: datetime,
    updated_at: datetime,
    agent: str = "",
    settings: Settings | None = None,
    metadata: FrozenDict = EMPTY,
    counters: FrozenDict = EMPTY,
) -> Archive:
    """The archive of a conversation that comes from elsewhere, with one branch.

    The same key and beginning give the same id, so that it is known when it comes again.
    """
    stored, position = [], -1
    for seq, entry in enumerate(entries, start=1):
        position += type(entry) is Message
        stored.append(Stored(seq, max(position, 0), MAIN, kind_of(entry), entry))
    count = len(stored)
    record = Record(
        key=key,
        id=derived_id(created_at, key),
        agent=agent,
        settings=settings or Settings(),
        metadata=metadata,
        counters=counters,
        created_at=created_at,
        updated_at=updated_at,
        branches=(Branch(name=MAIN, head=count, count=position + 1),),
        seq=count,
    )
    return Archive(record, tuple(stored))


def derived_id(time: datetime, *texts: str) -> str:
    """A UUID of version 7 that is the same whenever it is made of the same time and texts."""
    digest = blake2b("\0".join(texts).encode(), digest_size=10, person=b"holdfast.id").digest()
    ms = min(max(int(time.timestamp() * 1_000), 0), 2**48 - 2**20)
    bits = int.from_bytes(digest, "big")
    low = 0x8000_0000_0000_0000 | bits & 0x3FFF_FFFF_FFFF_FFFF
    head = f"{ms >> 16:08x}-{ms & 0xFFFF:04x}-7{bits >> 68:03x}"
    return f"{head}-{low >> 48:04x}-{low & 0xFFFF_FFFF_FFFF:012x}"


# Out of a store


async def take(tenant: Tenant, id: str, *, on_progress: Told | None = None) -> Archive:
    """The session as it is at one moment. Corrupt if any of it is not what was written."""
    for _ in range(_ROUNDS_MAX):
        first = (await tenant.export(id, limit=0)).record
        entries = await _entries(tenant, id, on_progress)
        named = await _named(tenant, id)
        last = (await tenant.export(id, limit=0)).record
        if said(first) == said(last):
            if last.draft is not None and last.draft.is_running:
                last = last.replace(draft=None)
            return Archive(last.replace(folds=()), tuple(entries), tuple(named))
    raise Conflict(last.key, first.seq, last.seq)


async def _entries(tenant: Tenant, id: str, told: Told | None) -> list[Stored]:
    entries: list[Stored] = []
    while True:
        part = await tenant.export(id, entries[-1].seq if entries else 0, _STEP)
        entries += part.entries
        if told is not None:
            told(len(entries))
        if not part.entries or entries[-1].seq >= part.record.seq:
            return entries


async def _named(tenant: Tenant, id: str) -> list[Named]:
    named: list[Named] = []
    while found := await tenant.names(id, named[-1].name if named else "", _NAMES_STEP):
        named += found
    return named


# Into a store


async def put(
    tenant: Tenant,
    archive: Archive,
    *,
    key: str | None = None,
    dry_run: bool = False,
    on_progress: Told | None = None,
) -> Restored:
    """Make the session of an archive, or bring it up to date; with `dry_run`, only tell.

    Under another `key` than its own it is another session, the same one each time. What is put is
    read back. DuplicateSession if something else has its key, or has become of it; InvalidInput if
    it is no whole session.
    """
    check_whole(Part(archive.record, archive.entries))
    if key is not None and check_key(key) != archive.record.key:
        archive = _renamed(archive, key)
    record = archive.record
    count = len(archive.messages())
    there = await _there(tenant, record.id)
    if there is None:
        if await _is_taken(tenant, archive):
            return Restored("there", record.key, count)
    elif there.record.key != record.key:
        return await put(tenant, _renamed(archive, record.key), dry_run=dry_run)
    elif await _has(tenant, there, archive):
        return Restored("there", record.key, count)
    if not dry_run:
        await _bring(tenant, archive, on_progress)
    return Restored("new" if there is None else "added", record.key, count)


async def _bring(tenant: Tenant, archive: Archive, told: Told | None) -> None:
    done = 0

    def tell(entries: int) -> None:
        nonlocal done
        done += entries
        if told is not None:
            told(done)

    try:
        await Replica(_Source(archive), tenant, archive.record.id, tell).bring()
    except (Conflict, Differs) as error:
        raise DuplicateSession(archive.record.key) from error


class _Source:
    """An archive, as a store gives a session."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive

    async def export(self, id: str, after: int = 0, limit: int = 1_000) -> Part:  # noqa: ARG002
        record, entries, _ = self._archive
        if not limit:
            return Part(record)
        found = entries if not after else [each for each in entries if each.seq > after]
        return Part(record, tuple(found[:_STEP]))

    async def names(self, id: str, after: str = "", limit: int = 1_000) -> tuple[Named, ...]:  # noqa: ARG002
        named = sorted(self._archive.named)
        return tuple(each for each in named if each.name > after)[:limit]


def _renamed(archive: Archive, key: str) -> Archive:
    """The same as another session. What is made of a child is nobody's child."""
    record = archive.record
    metadata = {name: value for name, value in record.metadata.items() if name not in LINKS}
    id = derived_id(record.created_at, record.id, key)
    return archive._replace(record=record.replace(key=key, id=id, metadata=FrozenDict(metadata)))


async def _there(tenant: Tenant, id: str) -> Part | None:
    try:
        return await tenant.export(id, limit=0)
    except SessionNotFound:
        return None


async def _is_taken(tenant: Tenant, archive: Archive) -> bool:
    """Whether another session with this key says the same; DuplicateSession if it says other."""
    try:
        other = await tenant.load(archive.record.key, even_expired=True)
    except SessionNotFound:
        return False
    if not _says_all(await take(tenant, other.id), archive):
        raise DuplicateSession(other.key)
    return True


async def _has(tenant: Tenant, there: Part, archive: Archive) -> bool:
    """Whether the session that is there has all of it; DuplicateSession if it cannot be added."""
    found = await take(tenant, archive.record.id)
    is_ours = there.origin is not None and there.origin.updated_at == there.record.updated_at
    try:
        compare(Part(archive.record, archive.entries), Part(found.record, found.entries))
    except Differs as error:
        if is_ours and _goes_on(found, archive):
            return False
        if _says_all(found, archive):
            return True
        raise DuplicateSession(archive.record.key) from error
    is_whole = there.origin is None or there.origin.is_whole or not is_ours
    if is_whole and found.record.updated_at >= archive.record.updated_at:
        return True
    if not is_ours:
        raise DuplicateSession(archive.record.key)
    return False


def _says_all(found: Archive, archive: Archive) -> bool:
    """Whether a session begins with all messages of an archive, whatever else there is of it."""
    ours, theirs = archive.messages(), found.messages()
    return bool(ours) and _said(theirs[: len(ours)]) == _said(ours)


def _said(messages: Sequence[Message]) -> list[tuple[str, bytes]]:
    return [(each.id, plain(each)) for each in messages]


def _goes_on(found: Archive, archive: Archive) -> bool:
    """Whether the archive is the same log later on: longer, with more erased, or begun anew."""
    if archive.record.branches[0].fork > found.record.branches[0].fork:
        return True
    gone = {each.seq for each in archive.entries if each.entry is None}
    kept = tuple(
        Stored(each.seq, each.position, each.branch, each.kind, None) if each.seq in gone else each
        for each in found.entries
    )
    try:
        compare(Part(found.record, kept), Part(archive.record, archive.entries))
    except Differs:
        return False
    return True
