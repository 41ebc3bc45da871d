"""What every store does before and after its rows: checks arguments, packs entries, makes pages.

A backend brings a `Shelf` and two ways to use it: `_write`, which runs a request inside a
transaction that is on disk when it returns, and `_read`, which runs a function on what was
committed at one moment.
"""

import asyncio
import re
import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from holdfast import codec, ids, text
from holdfast.entries import ENTRY_TYPES, Entry, kind_of
from holdfast.errors import HoldfastError, InvalidInput, SessionNotFound, StoreError, TooLarge
from holdfast.frozen import EMPTY, freeze
from holdfast.identity import NO_TIME, settled_time
from holdfast.keys import check_key
from holdfast.stores import blobs, exporting, requests, restoring, views
from holdfast.stores.base import GRACE, Tenant
from holdfast.stores.changes import checked as check_changes
from holdfast.stores.document import document_of, micros, time_at, write_document
from holdfast.stores.requests import EXPIRE_MAX, Packed, Request
from holdfast.stores.shelf import Shelf
from holdfast.stores.values import (
    MAIN,
    Appended,
    Chunk,
    Expired,
    Found,
    Lease,
    Limits,
    Named,
    Page,
    Part,
    Problem,
    Record,
    Stored,
    Summary,
    Verified,
    check_ttl,
)

_Result = TypeVar("_Result")
_LIST_PAGE = re.compile(r"l(-?[0-9]{1,18})\.([0-9]{1,18})")
_SEARCH_PAGE = re.compile(r"s([0-9]{1,18})")
_WATCH_STEP = 1_000
_LARGEST = 2**63 - 1
_WAITED_MAX = timedelta(days=1)
_NOBODY = "nobody"  # no session has this id
_NONE: dict[bytes, bytes] = {}  # the large texts of most entries; nobody writes to it
_encode = msgspec.json.Encoder().encode
_record = codec.record


class Front(Tenant):
    """The operations of one tenant, over whatever keeps the rows."""

    def __init__(self, name: str, limits: Limits) -> None:
        _check_name(name, "tenant", limits, is_empty_allowed=True)
        self.name = name
        self._limits = limits

    @abstractmethod
    async def _write(self, request: Request[_Result]) -> _Result:
        """Run a request in a transaction; when this returns it is committed."""

    async def _write_all(
        self, requests: Sequence[Request[_Result]]
    ) -> list[_Result | BaseException]:
        """Run several at once, as `_write` does each of them; for each its result or its error."""
        return await asyncio.gather(*map(self._write, requests), return_exceptions=True)

    @abstractmethod
    async def _read(self, function: Callable[[Shelf], _Result], rows: int = 1) -> _Result:
        """Run a function on what is committed now. `rows` is about how many it goes over."""

    @abstractmethod
    async def _changed(self) -> None:
        """Return when something may have been written by anybody; soon in any case."""

    # Sessions

    async def create(
        self,
        record: Record,
        entries: Sequence[Entry] = (),
        *,
        keep_times: bool = False,
        replace_expired: bool = False,
    ) -> Record:
        _check_kind(record, "record", Record)
        _check_kind(keep_times, "keep_times", bool)
        _check_kind(replace_expired, "replace_expired", bool)
        now = ids.now_us()
        created, updated = (
            now if not keep_times or each is NO_TIME else micros(each)
            for each in (record.created_at, record.updated_at)
        )
        for each in (created, updated):
            _check_time(each)
        _check_record(record, self.name, created, self._limits)
        packed = self._pack(entries)
        return await self._write(
            requests.Create(self.name, now, record, packed, updated, created, replace_expired)
        )

    async def load(self, key: str, *, even_expired: bool = False) -> Record:
        check_key(key)
        now = None if even_expired else ids.now_us()
        return await self._read(lambda shelf: views.load(shelf, self.name, key, now))

    async def update(
        self, id: str, changes: Mapping[str, Any], expect: Mapping[str, Any] | None = None
    ) -> Record:
        wanted = check_changes(changes, "changes")
        expected = EMPTY if expect is None else check_changes(expect, "expect")
        limit = self._limits.record_bytes
        _check_size("changes, in bytes,", len(_encode(wanted)), limit)
        return await self._write(
            requests.Update(self.name, ids.now_us(), _id(id), wanted, expected, limit)
        )

    async def delete(self, id: str, *, seen: Record | None = None) -> bool:
        last = _seen(seen, id)
        return await self._write(requests.Delete(self.name, ids.now_us(), _id(id), last))

    async def clear(self, id: str, *, seen: Record | None = None) -> Record:
        last = _seen(seen, id)
        return await self._write(requests.Clear(self.name, ids.now_us(), _id(id), last))

    async def list(
        self,
        *,
        agent: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        page: str | None = None,
    ) -> Page[Summary]:
        if agent is not None:
            _check_text(agent, "agent")
        wanted: Mapping[str, Any] = EMPTY
        if metadata is not None:
            _check_kind(metadata, "metadata", Mapping)
            wanted = freeze(metadata, "metadata")
        first = None if since is None else micros(settled_time(since, "since"))
        last = None if until is None else micros(settled_time(until, "until"))
        self._check_limit(limit)
        before = None
        if (found := _check_page(page, _LIST_PAGE)) is not None:
            before = (int(found[1]), int(found[2]))
        return await self._read(
            lambda shelf: views.listed(
                shelf,
                self.name,
                agent=agent,
                metadata=wanted,
                since=first,
                until=last,
                before=before,
                limit=limit,
            ),
            rows=10_000 if wanted else limit,
        )

    async def expire(self, now: datetime | None = None, *, grace: timedelta = GRACE) -> Expired:
        at = ids.now_us() if now is None else micros(settled_time(now, "now"))
        _check_kind(grace, "grace", timedelta)
        if grace < timedelta(0):
            raise InvalidInput("grace", f"is from zero up, not {grace}")
        marked = deleted = 0
        while True:  # in transactions of bounded size, so that others get their turn
            done = await self._write(requests.Expire(self.name, at, grace))
            marked, deleted = marked + done.marked, deleted + done.deleted
            if done.marked + done.deleted < EXPIRE_MAX:
                return Expired(marked, deleted, done.stopped)

    async def verify(
        self, id: str | None = None, *, on_progress: Callable[[int], object] | None = None
    ) -> Verified:
        if id is not None:
            _id(id)
            entries, wrong = await self._read(lambda shelf: self._verify_one(shelf, id), rows=10**6)
            return Verified(1, entries, tuple(wrong))
        sessions = entries = 0
        problems: list[Problem] = []
        page: str | None = None
        while True:
            listed = await self.list(page=page, limit=self._limits.page)
            for each in listed.items:
                sessions += 1
                if on_progress is not None:
                    on_progress(sessions)
                try:
                    found = await self.verify(each.id or _NOBODY)
                except SessionNotFound:
                    if each.damage:  # or it was deleted meanwhile
                        problems.append(Problem(each.key, "", 0, each.damage))
                    continue
                except StoreError as error:
                    problems.append(Problem(each.key, "", 0, str(error)))
                    continue
                entries += found.entries
                problems += found.problems
            if (page := listed.next) is None:
                return Verified(sessions, entries, tuple(problems))

    def _verify_one(self, shelf: Shelf, id: str) -> tuple[int, Sequence[Problem]]:
        return views.problems(shelf, views.head_of(shelf, self.name, id))

    async def export(self, id: str, after: int = 0, limit: int = 1_000) -> Part:
        after, limit = _count(after, "after"), _count(limit, "limit")
        _check_size("limit", limit, self._limits.entries)
        _id(id)

        def export(shelf: Shelf) -> Part:
            return exporting.export(shelf, views.head_of(shelf, self.name, id), after, limit)

        return await self._read(export, rows=limit)

    async def names(self, id: str, after: str = "", limit: int = 1_000) -> tuple[Named, ...]:
        _check_text(after, "after")
        self._check_limit(limit)
        _id(id)

        def names(shelf: Shelf) -> tuple[Named, ...]:
            return exporting.names(shelf, views.head_of(shelf, self.name, id), after, limit)

        return await self._read(names, rows=limit)

    async def restore(self, part: Part, *, after: int | None, is_whole: bool = False) -> int:
        _check_kind(is_whole, "is_whole", bool)
        if after is not None:
            after = _count(after, "after")
        packed = self._pack_part(part)
        record, draft = part.record, None
        _check_record(record, self.name, micros(record.created_at), self._limits)
        if record.draft is not None and not record.draft.is_running:
            draft = _encode(record.draft.input)
        return await self._write(
            restoring.Restore(
                self.name, ids.now_us(), record.id, part, packed, draft, after, is_whole
            )
        )

    # Entries

    async def append(
        self,
        id: str,
        entries: Sequence[Entry],
        *,
        branch: str = MAIN,
        after: int | None = None,
        lease: Lease | None = None,
        once: str | None = None,
        finish: bool = False,
    ) -> Appended:
        if branch != MAIN:
            _check_branch(branch, "branch", self._limits)
        if after is not None:
            after = _count(after, "after")
        if finish is not False:
            _check_kind(finish, "finish", bool)
        if lease is not None:
            self._check_lease(lease, id)
        elif finish:
            raise InvalidInput("finish", "needs a lease: it gives that back")
        packed = self._pack(entries)
        content = b""
        if once is not None:
            _check_name(once, "once", self._limits)
            content = b"\n".join(_content(kind, whole) for kind, whole, *_ in packed)
        return await self._write(
            requests.Append(
                self.name,
                ids.now_us(),
                _id(id),
                branch,
                packed,
                after,
                lease,
                once,
                content,
                finish,
            )
        )

    async def size(self, id: str) -> int:
        _id(id)
        return await self._read(
            lambda shelf: views.size(shelf, views.head_of(shelf, self.name, id)), rows=10**6
        )

    async def branch(self, id: str, name: str, *, parent: str, at: int, use: bool = True) -> Record:
        _check_name(name, "name", self._limits)
        _check_branch(parent, "parent", self._limits)
        at = _count(at, "at")
        _check_kind(use, "use", bool)
        return await self._write(
            requests.OpenBranch(self.name, ids.now_us(), _id(id), name, parent, at, use)
        )

    async def read(
        self,
        id: str,
        branch: str = MAIN,
        start: int = 0,
        stop: int | None = None,
        *,
        kind: str | None = None,
    ) -> tuple[Stored, ...]:
        _check_branch(branch, "branch", self._limits)
        start = _count(start, "start")
        if stop is not None:
            stop = max(_count(stop, "stop"), start)
        if kind is not None:
            _check_text(kind, "kind")
        _id(id)

        def read(shelf: Shelf) -> tuple[Stored, ...]:
            head = views.head_of(shelf, self.name, id)
            return views.read(shelf, head, branch, start, stop, kind)

        return await self._read(read, rows=10**6 if stop is None else stop - start)

    async def tail(self, id: str, branch: str = MAIN, count: int = 50) -> tuple[Stored, ...]:
        _check_branch(branch, "branch", self._limits)
        count = _count(count, "count")
        _id(id)

        def tail(shelf: Shelf) -> tuple[Stored, ...]:
            return views.tail(shelf, views.head_of(shelf, self.name, id), branch, count)

        return await self._read(tail, rows=count)

    async def erase(self, id: str, seqs: Sequence[int]) -> int:
        _check_kind(seqs, "seqs", (list, tuple, range))
        for seq in seqs:
            _count(seq, "seqs", 1)
        return await self._write(
            requests.Erase(
                self.name, ids.now_us(), _id(id), sorted({min(seq, _LARGEST) for seq in seqs})
            )
        )

    async def search(
        self,
        query: str,
        *,
        session: str | None = None,
        limit: int = 20,
        page: str | None = None,
    ) -> Page[Found]:
        _check_text(query, "query")
        if session is not None:
            _id(session)
        self._check_limit(limit)
        found = _check_page(page, _SEARCH_PAGE)
        before = None if found is None else int(found[1])
        return await self._read(
            lambda shelf: views.found(shelf, self.name, query, session, before, limit),
            rows=10_000,
        )

    def watch(self, id: str, after: int | None = None) -> AsyncIterator[Stored | Chunk]:
        if after is not None:
            after = _count(after, "after")
        return self._watch(_id(id), after)

    async def _watch(self, id: str, after: int | None) -> AsyncIterator[Stored | Chunk]:
        token = number = 0

        def news(shelf: Shelf) -> tuple[Sequence[Stored], Sequence[Chunk]]:
            assert after is not None
            return views.news(shelf, self.name, id, after, (token, number), _WATCH_STEP)

        if after is None:
            after = await self._read(lambda shelf: views.head_of(shelf, self.name, id).seq)
        while True:
            entries, chunks = await self._read(news, rows=_WATCH_STEP)
            for stored in entries:
                after = stored.seq
                yield stored
            for chunk in chunks:
                token, number = chunk.token, chunk.number
                yield chunk
            if not entries and not chunks:
                await self._changed()

    # Turns

    async def begin(
        self,
        id: str,
        owner: str,
        ttl: timedelta,
        draft: Mapping[str, Any],
        *,
        seen: int | None = None,
        place: str = "",
    ) -> Lease:
        _check_name(place, "place", self._limits, is_empty_allowed=True)
        _check_name(owner, "owner", self._limits, is_empty_allowed=True)
        _check_kind(ttl, "ttl", timedelta)
        check_ttl(ttl)
        _check_kind(draft, "draft", Mapping)
        body = _encode(freeze(draft, "draft"))
        _check_size("a draft, in bytes,", len(body), self._limits.entry_bytes)
        known = None if seen is None else _count(seen, "seen")
        return await self._write(
            requests.Begin(self.name, ids.now_us(), _id(id), owner, ttl, body, known, place)
        )

    async def line_up(
        self, id: str, owner: str, place: str, *, waited: timedelta, patience: timedelta
    ) -> bool:
        _check_name(owner, "owner", self._limits, is_empty_allowed=True)
        _check_name(place, "place", self._limits)
        _check_kind(waited, "waited", timedelta)
        _check_kind(patience, "patience", timedelta)
        check_ttl(patience)
        if not timedelta(0) <= waited <= _WAITED_MAX:
            raise InvalidInput("waited", f"is between nothing and {_WAITED_MAX}, not {waited}")
        since = time.monotonic() - waited.total_seconds()  # the write may have to wait as well
        request = requests.LineUp(self.name, ids.now_us(), _id(id), owner, place, since, patience)
        return await self._write(request)

    async def step_out(self, id: str, place: str) -> None:
        _check_name(place, "place", self._limits)
        await self._write(requests.StepOut(self.name, ids.now_us(), _id(id), place))

    async def journal(self, lease: Lease, chunk: str) -> None:
        await self._write(self._journaled(lease, chunk, ids.now_us()))

    async def journal_all(
        self, pieces: Sequence[tuple[Lease, str]]
    ) -> Sequence[HoldfastError | None]:
        now = ids.now_us()
        asked = [self._journaled_or_error(*each, now) for each in pieces]
        right = [each for each in asked if isinstance(each, requests.Journal)]
        found = await self._write_all(right)
        written = iter(found)
        return [
            each if isinstance(each, HoldfastError) else _error(next(written)) for each in asked
        ]

    def _journaled_or_error(
        self, lease: Lease, chunk: str, now: int
    ) -> requests.Journal | HoldfastError:
        try:
            return self._journaled(lease, chunk, now)
        except HoldfastError as error:
            return error

    def _journaled(self, lease: Lease, chunk: str, now: int) -> requests.Journal:
        id = self._check_lease(lease)
        _check_text(chunk, "chunk")
        size = len(chunk) if chunk.isascii() else len(chunk.encode())
        _check_size("a chunk, in bytes,", size, self._limits.chunk_bytes)
        return requests.Journal(self.name, now, id, lease, chunk)

    async def renew(self, lease: Lease, ttl: timedelta | None = None) -> Lease:
        id = self._check_lease(lease)
        check_ttl(ttl)
        return await self._write(
            requests.Renew(self.name, ids.now_us(), id, lease, lease.ttl if ttl is None else ttl)
        )

    async def release(self, lease: Lease, *, drop: bool = False) -> None:
        id = self._check_lease(lease)
        _check_kind(drop, "drop", bool)
        await self._write(requests.Release(self.name, ids.now_us(), id, lease, drop))

    # Arguments

    def _pack(self, entries: Sequence[Entry]) -> Sequence[Packed]:
        """The entries as they are stored."""
        _check_kind(entries, "entries", (list, tuple))
        _check_size("a batch, in entries,", len(entries), self._limits.entries)
        bytes_max = self._limits.entry_bytes
        packed: list[Packed] = []
        for entry in entries:
            if type(entry) not in ENTRY_TYPES:
                raise InvalidInput("entries", f"holds a {type(entry).__name__}, which is no entry")
            kind, whole = kind_of(entry), _record(entry)
            if len(whole) < blobs.SIZE_MIN:
                packed.append((kind, whole, whole, None, _NONE))
            else:
                _check_size("an entry, in bytes,", len(whole), bytes_max)
                packed.append((kind, whole, *blobs.cut(whole)))
        return packed

    def _pack_part(self, part: Part) -> Sequence[Packed]:
        """The entries of a part as they are stored, those too that were erased."""
        _check_kind(part, "part", Part)
        _check_kind(part.record, "a part's record", Record)
        branches = part.record.branches
        if not branches or branches[0].parent is not None:
            raise InvalidInput("a part", "has no first branch")
        for each in branches:
            _check_name(each.name, "the name of a branch", self._limits)
        packed: list[Packed] = []
        for stored in part.entries:
            _check_kind(stored, "a part's entry", Stored)
            _count(stored.seq, "a seq", 1)
            _check_text(stored.kind, "a kind")
            if stored.entry is None:
                packed.append(restoring.packed_erased(stored.kind))
            else:
                packed += self._pack([stored.entry])
                if packed[-1][0] != stored.kind:
                    raise InvalidInput("a part", f"calls entry {stored.seq} a {stored.kind!r}")
        return packed

    def _check_lease(self, lease: Lease, id: str | None = None) -> str:
        _check_kind(lease, "lease", Lease)
        if id is not None and lease.session_id != id:
            raise InvalidInput("lease", "is one on another session")
        _count(lease.token, "the token of a lease")
        _check_kind(lease.ttl, "the ttl of a lease", timedelta)
        check_ttl(lease.ttl)
        return _id(lease.session_id)

    def _check_limit(self, limit: int) -> None:
        _check_size("limit", _count(limit, "limit", 1), self._limits.page)


def _error(found: BaseException | None) -> HoldfastError | None:
    """What went wrong with a request; what is no error of ours is raised."""
    if found is None or isinstance(found, HoldfastError):
        return found
    raise found


def _seen(record: Record | None, id: str) -> tuple[int, int] | None:
    """The seq and the time of a record that a caller saw."""
    if record is None:
        return None
    _check_kind(record, "seen", Record)
    if record.id != id:
        raise InvalidInput("seen", "is the record of another session")
    return record.seq, micros(record.updated_at)


def _id(id: str) -> str:
    if type(id) is not str:
        raise InvalidInput("id", f"is a string, not {type(id).__name__}")
    text.check(id, "id")
    return id


def _check_record(record: Record, tenant: str, created: int, limits: Limits) -> None:
    size = len(write_document(document_of(record, tenant, created)).body)
    _check_size("a record, in bytes,", size, limits.record_bytes)


def _check_time(micros: int) -> None:
    try:
        time_at(micros)
    except OverflowError:
        raise InvalidInput("a time", "is not within the years 1 to 9999 in UTC") from None


def _content(kind: str, payload: bytes) -> bytes:
    """What an entry says, whoever made it when: without its id and time."""
    said = msgspec.json.decode(payload)
    fields = said.get(kind)
    for each in (fields, fields.get("replacement") if isinstance(fields, dict) else None):
        if isinstance(each, dict):
            each.pop("id", None)
            each.pop("timestamp", None)
    return _encode(said)


def _check_kind(value: object, what: str, kind: type | tuple[type, ...]) -> None:
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        names = " or ".join(each.__name__ for each in kinds)
        raise InvalidInput(what, f"is a {names}, not {type(value).__name__}")


def _check_text(value: object, what: str) -> None:
    if type(value) is not str:
        raise InvalidInput(what, f"is a string, not {type(value).__name__}")
    text.check(value, what)


def _check_name(
    value: object, what: str, limits: Limits, *, is_empty_allowed: bool = False
) -> None:
    _check_text(value, what)
    assert isinstance(value, str)
    if not value and not is_empty_allowed:
        raise InvalidInput(what, "is empty")
    _check_size(f"{what}, in bytes,", len(value.encode()), limits.name_bytes)


def _check_branch(value: object, what: str, limits: Limits) -> None:
    """A name of a branch that may be there."""
    _check_text(value, what)
    if isinstance(value, str) and len(value) > limits.name_bytes:
        raise InvalidInput(what, f"has {len(value)} characters: no branch has so long a name")


def _count(value: object, what: str, least: int = 0) -> int:
    """A number from `least` up; one that is larger than any log is as good as the largest."""
    if type(value) is not int:
        raise InvalidInput(what, f"is a whole number, not {type(value).__name__}")
    if value < least:
        raise InvalidInput(what, f"is {max(value, -_LARGEST)}, and begins at {least}")
    return min(value, _LARGEST)


def _check_size(what: str, size: int, size_max: int) -> None:
    if size > size_max:
        raise TooLarge(what, size, size_max)


def _check_page(page: object, form: re.Pattern[str]) -> re.Match[str] | None:
    if page is None:
        return None
    found = form.fullmatch(page) if type(page) is str else None
    if found is None:
        raise InvalidInput("page", "is not one that this list has given: begin without it")
    return found
