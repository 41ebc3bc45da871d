"""A store made of dicts and lists, written from the words of the contract alone.

It is slow and forgets everything with the process, and it is small enough to be seen to be right:
the contract is tried on it, and on copies of it with one fault each (`test_contract_itself.py`).
Two objects with the same path share their data, as two processes would a file.
"""

import asyncio
import base64
import copy
import itertools
import json
import pickle
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from holdfast import codec, ids, text
from holdfast.entries import ENTRY_TYPES, Fold, UnknownEntry
from holdfast.errors import (
    Busy,
    Conflict,
    Corrupt,
    DuplicateSession,
    InvalidInput,
    LeaseLost,
    OnceMismatch,
    SessionExpired,
    SessionNotFound,
    StoreUnavailable,
    TooLarge,
)
from holdfast.frozen import FrozenDict, thaw
from holdfast.identity import NO_TIME, settled_time
from holdfast.keys import check_key
from holdfast.messages import Message
from holdfast.settings import Settings
from holdfast.stores import words
from holdfast.stores.base import GRACE, Store, Tenant
from holdfast.stores.values import (
    MAIN,
    Appended,
    Branch,
    Chunk,
    Draft,
    Expired,
    Found,
    Lease,
    Named,
    Origin,
    Page,
    Part,
    Problem,
    Record,
    Stored,
    Summary,
    Verified,
    check_ttl,
)

FIELDS = ("agent", "settings", "metadata", "counters", "tools", "ttl", "branch")
BY_NAME = ("settings", "metadata", "counters")
JUMP = timedelta(days=30)
_places: dict[str, dict[str, "Data"]] = {}


@dataclass
class Row:
    seq: int
    branch: str
    kind: str
    entry: Any
    number: int  # the order of all appends of a tenant


@dataclass
class Line:
    """A branch: where it leaves its parent, and its own rows."""

    parent: str | None
    fork: int
    rows: list[Row] = field(default_factory=list)


@dataclass
class Session:
    record: Record
    lines: dict[str, Line]
    seq: int = 0
    token: int = 0
    lease: tuple[Lease, float, Any] | None = None  # until when, and whose
    draft: Draft | None = None
    once: dict[str, tuple[Any, Appended]] = field(default_factory=dict)
    marked: datetime | None = None
    origin: Origin | None = None
    damage: set[int] = field(default_factory=set)


@dataclass
class Data:
    """What a tenant has."""

    sessions: dict[str, Session] = field(default_factory=dict)
    run: datetime | None = None
    numbers: Any = field(default_factory=itertools.count)


class NaiveTenant(Tenant):
    def __init__(self, store, name):
        self._store, self.name = store, name

    # What the faults of the tests are planted in.

    def is_expired(self, record, now):
        return record.ttl is not None and now - record.updated_at > record.ttl

    def is_replaceable(self, session):
        return self.is_expired(session.record, ids.now()) and not self.is_running(session)

    def is_stale(self, session, branch, after):
        return after is not None and after != self.head(session, branch)

    def is_lost(self, session, lease):
        return session.lease is None or session.lease[0].token != lease.token

    def content(self, entries):
        aside = {"id": "-", "timestamp": datetime(2000, 1, 1, tzinfo=UTC)}
        plain = [e if type(e) is UnknownEntry else e.replace(**aside) for e in entries]
        return [codec.record(entry) for entry in plain]

    def path(self, session, name):
        line = session.lines[name]
        if line.parent is None:
            return list(line.rows)
        return [r for r in self.path(session, line.parent) if r.seq <= line.fork] + line.rows

    def all_sessions(self):
        return list(self.data.sessions.values())

    def merged(self, old, new):
        return {name: value for name, value in (old | new).items() if value is not None}

    def add(self, session, branch, entries):
        for entry in entries:
            session.seq += 1
            kind = entry.kind if type(entry) is UnknownEntry else type(entry).__name__.lower()
            row = Row(session.seq, branch, kind, entry, next(self.data.numbers))
            session.lines[branch].rows.append(row)

    def said(self, entry):
        calls = [piece for c in entry.tool_calls for piece in (c.name, c.arguments, c.output or "")]
        return " ".join([entry.text or "", *calls])

    def same(self, one, two):
        return json.dumps(thaw(one), sort_keys=True) == json.dumps(thaw(two), sort_keys=True)

    def order(self, session):
        return session.record.updated_at, session.record.id

    def folds_in_force(self, folds):
        return tuple(
            f
            for f in folds
            if not any(
                g.seq > f.seq and g.entry.first <= f.entry.first and g.entry.last >= f.entry.last
                for g in folds
            )
        )

    # What all operations share.

    @property
    def data(self):
        if not self._store.is_open:
            raise StoreUnavailable("naive", "it is closed")
        return self._store.data.setdefault(self.name, Data())

    @property
    def limits(self):
        return self._store.limits

    def session(self, id):
        check_text(id, "id")
        if id not in self.data.sessions:
            raise SessionNotFound(id)
        return self.data.sessions[id]

    def line(self, session, name):
        check_text(name, "branch")
        if name not in session.lines:
            raise InvalidInput("branch", f"there is no {name!r}")
        return session.lines[name]

    def head(self, session, name):
        line = session.lines[name]
        return line.rows[-1].seq if line.rows else line.fork

    def wrote(self, session):
        session.record = session.record.replace(updated_at=ids.now())
        session.marked = None

    def is_running(self, session):
        if session.lease is None:
            return False
        _, until, store = session.lease
        return store.is_open and time.monotonic() < until

    def stored(self, session, branch):
        count = 0
        for row in self.path(session, branch):
            count += row.kind == "message"
            yield Stored(row.seq, max(count - 1, 0), row.branch, row.kind, row.entry)

    def record(self, session):
        if 0 in session.damage:
            raise Corrupt(session.record.key, "the record is damaged")
        branches = [
            Branch(
                name=name,
                parent=line.parent,
                fork=line.fork,
                head=self.head(session, name),
                count=sum(row.kind == "message" for row in self.path(session, name)),
            )
            for name, line in session.lines.items()
        ]
        rows = self.stored(session, session.record.branch)
        folds = [row for row in rows if isinstance(row.entry, Fold)]
        draft = session.draft
        if draft is not None:
            is_its = session.lease is not None and session.lease[0].token == draft.token
            draft = draft.replace(is_running=is_its and self.is_running(session))
        return session.record.replace(
            branches=tuple(branches), seq=session.seq, folds=self.folds_in_force(folds), draft=draft
        )

    def check_entries(self, entries):
        if not isinstance(entries, list | tuple):
            raise InvalidInput("entries", "is a sequence of entries")
        if len(entries) > self.limits.entries:
            raise TooLarge("entries", len(entries), self.limits.entries)
        for entry in entries:
            if type(entry) not in ENTRY_TYPES:
                raise InvalidInput("an entry", f"is not a {type(entry).__name__}")
            if (size := len(codec.record(entry))) > self.limits.entry_bytes:
                raise TooLarge("an entry", size, self.limits.entry_bytes)
        return tuple(entries)

    def check_record(self, record):
        parts = [record.settings.values, record.metadata, record.tools, record.counters]
        if (size := len(json.dumps(parts))) > self.limits.record_bytes:
            raise TooLarge("a record", size, self.limits.record_bytes)

    def check_name(self, value, what):
        check_text(value, what)
        if (size := len(value.encode())) > self.limits.name_bytes:
            raise TooLarge(what, size, self.limits.name_bytes)

    def check_limit(self, limit):
        check_count(limit, "limit", 1)
        if limit > self.limits.page:
            raise TooLarge("limit", limit, self.limits.page)

    # The operations.

    async def create(self, record, entries=(), *, keep_times=False, replace_expired=False):
        if not isinstance(record, Record):
            raise InvalidInput("record", "is a Record")
        check_flag(keep_times, "keep_times")
        check_flag(replace_expired, "replace_expired")
        entries = self.check_entries(entries)
        self.check_record(record)
        sessions = self.data.sessions
        others = [s for s in sessions.values() if s.record.key == record.key]
        if replace_expired:
            others = [s for s in others if not self.is_replaceable(s)]
        if record.id in sessions or others:
            raise DuplicateSession(record.key)
        self.data.sessions = sessions = {
            id: s for id, s in sessions.items() if s.record.key != record.key
        }
        times = {"created_at": ids.now(), "updated_at": ids.now()}
        if keep_times:
            own = {name: getattr(record, name) for name in times}
            times |= {name: moment for name, moment in own.items() if moment is not NO_TIME}
        theirs = {"branch": MAIN, "branches": (), "seq": 0, "folds": (), "draft": None}
        session = Session(record.replace(**theirs, **times), {MAIN: Line(None, 0)})
        sessions[record.id] = session
        self.add(session, MAIN, entries)
        return self.record(session)

    async def load(self, key, *, even_expired=False):
        check_key(key)
        for session in self.data.sessions.values():
            if session.record.key == key:
                if not even_expired:
                    self.check_living(session)
                return self.record(session)
        raise SessionNotFound(key)

    def check_living(self, session):
        record = session.record
        if self.is_expired(record, ids.now()):
            raise SessionExpired(record.key, (record.updated_at + record.ttl).isoformat())

    async def append(
        self, id, entries, *, branch=MAIN, after=None, lease=None, once=None, finish=False
    ):
        entries = self.check_entries(entries)
        check_flag(finish, "finish")
        if after is not None:
            check_count(after, "after")
        if lease is not None:
            check_lease(lease)
        elif finish:
            raise InvalidInput("finish", "needs a lease")
        if once is not None:
            self.check_name(once, "once")
        session = self.session(id)
        self.line(session, branch)
        if once in session.once:
            content, done = session.once[once]
            if content != self.content(entries):
                raise OnceMismatch(session.record.key, once)
            if finish and not self.is_lost(session, lease):
                session.lease = session.draft = None
            return done
        self.check_living(session)
        if lease is not None and (lease.session_id != id or self.is_lost(session, lease)):
            raise LeaseLost(session.record.key)
        if self.is_stale(session, branch, after):
            raise Conflict(session.record.key, after, self.head(session, branch))
        first = session.seq + 1 if entries else self.head(session, branch) + 1
        self.add(session, branch, entries)
        count = sum(row.kind == "message" for row in self.path(session, branch))
        done = Appended(first, self.head(session, branch), branch, count)
        if once is not None:
            session.once[once] = (self.content(entries), done)
        if finish:
            session.lease = session.draft = None
        self.wrote(session)
        return done

    async def begin(self, id, owner, ttl, draft, *, seen=None):
        self.check_name(owner, "owner")
        check_lease_ttl(ttl)
        if not isinstance(draft, dict):
            raise InvalidInput("draft", "is a dict")
        draft = FrozenDict(draft)
        session = self.session(id)
        if self.is_running(session):
            raise Busy(session.record.key, session.lease[0].owner)
        left = session.draft and session.draft.replace(is_running=False)
        if left and seen is not None and left.token != seen:
            raise Conflict(session.record.key, 0, 0, "draft")
        session.token += 1
        lease = Lease(id, session.token, owner, ttl, left)
        session.lease = (lease, time.monotonic() + ttl.total_seconds(), self._store)
        session.draft = Draft(token=session.token, owner=owner, input=draft)
        self.wrote(session)
        return lease

    def leased(self, lease):
        check_lease(lease)
        session = self.session(lease.session_id)
        if self.is_lost(session, lease):
            raise LeaseLost(session.record.key, session.lease[0].owner if session.lease else "")
        return session

    async def journal(self, lease, chunk):
        check_text(chunk, "chunk")
        if (size := len(chunk.encode())) > self.limits.chunk_bytes:
            raise TooLarge("a chunk", size, self.limits.chunk_bytes)
        session = self.leased(lease)
        session.draft = session.draft.replace(chunks=(*session.draft.chunks, chunk))

    async def renew(self, lease, ttl=None):
        if ttl is not None:
            check_lease_ttl(ttl)
        session = self.leased(lease)
        lease = lease._replace(ttl=ttl or lease.ttl)
        until = time.monotonic() + lease.ttl.total_seconds()
        session.lease = (lease, until, self._store)
        return lease

    async def release(self, lease, *, drop=False):
        check_flag(drop, "drop")
        try:
            session = self.leased(lease)
        except (LeaseLost, SessionNotFound):
            return
        session.lease = None
        if drop:
            session.draft = None

    async def branch(self, id, name, *, parent, at, use=True):
        self.check_name(name, "name")
        check_count(at, "at")
        check_flag(use, "use")
        session = self.session(id)
        self.line(session, parent)
        if name in session.lines:
            raise InvalidInput("name", f"{name!r} is taken")
        on_parent = {0, *(row.seq for row in self.path(session, parent))}
        if at not in on_parent:
            raise InvalidInput("at", f"{at} is not on {parent!r}")
        session.lines[name] = Line(parent, at)
        if use:
            session.record = session.record.replace(branch=name)
        self.wrote(session)
        return self.record(session)

    async def read(self, id, branch=MAIN, start=0, stop=None, *, kind=None):
        check_count(start, "start")
        if stop is not None:
            check_count(stop, "stop")
        if kind is not None:
            check_text(kind, "kind")
        session = self.session(id)
        self.line(session, branch)
        rows = [
            row
            for row in self.stored(session, branch)
            if row.position >= start and (stop is None or row.position < stop)
        ]
        if bad := session.damage & {row.seq for row in rows}:
            raise Corrupt(session.record.key, f"entry {min(bad)} is damaged")
        return tuple(row for row in rows if kind in (None, row.kind))

    async def tail(self, id, branch=MAIN, count=50):
        check_count(count, "count", 1)
        session = self.session(id)
        self.line(session, branch)
        messages = sum(row.kind == "message" for row in self.path(session, branch))
        return await self.read(id, branch, max(messages - count, 0))

    async def update(self, id, changes, expect=None):
        for given, what in ((changes, "changes"), ({} if expect is None else expect, "expect")):
            if not isinstance(given, dict) or not given.keys() <= set(FIELDS):
                raise InvalidInput(what, f"is a dict with some of {FIELDS}")
            if any(not isinstance(given.get(name, {}), dict) for name in BY_NAME):
                raise InvalidInput(what, "changes names")
        session = self.session(id)
        record = session.record
        new = {}
        for name, value in changes.items():
            old = getattr(record, name)
            if name == "settings":
                value = Settings.of(self.merged(old.values, value))
            elif name in BY_NAME:
                value = FrozenDict(self.merged(old, value))
            elif name == "branch":
                self.line(session, value)
            new[name] = value
        changed = record.replace(**new)
        self.check_record(changed)
        for name, value in (expect or {}).items():
            self.check_expected(record, name, value)
        session.record = changed
        self.wrote(session)
        return self.record(session)

    def check_expected(self, record, name, value):
        found = getattr(record, name)
        if name not in BY_NAME:
            if found != value:
                raise Conflict(record.key, 0, 0, name)
            return
        found = found.values if name == "settings" else found
        for each, wanted in value.items():
            if not self.same(found.get(each), wanted):
                raise Conflict(record.key, 0, 0, f"{name}.{each}")

    async def size(self, id):
        check_text(id, "id")
        session = self.session(id)
        rows = {row.seq: row for line in session.lines.values() for row in line.rows}
        return sum(len(codec.record(row.entry)) for row in rows.values() if row.entry is not None)

    async def delete(self, id, *, seen=None):
        check_text(id, "id")
        self.check_seen(id, seen)
        return self.data.sessions.pop(id, None) is not None

    def check_seen(self, id, seen):
        if seen is not None:
            if not isinstance(seen, Record) or seen.id != id:
                raise InvalidInput("seen", "is the record of this session")
            self.check_untouched(id, seen)

    def check_untouched(self, id, seen):
        session = self.data.sessions.get(id)
        if session is None:
            return
        if self.is_running(session):
            raise Busy(seen.key)
        now = self.record(session)
        if (now.seq, now.updated_at) != (seen.seq, seen.updated_at):
            raise Conflict(seen.key, seen.seq, now.seq)

    async def erase(self, id, seqs):
        if not isinstance(seqs, list | tuple):
            raise InvalidInput("seqs", "is a sequence of seqs")
        for seq in seqs:
            check_count(seq, "a seq", 1)
        session = self.session(id)
        rows = {row.seq: row for line in session.lines.values() for row in line.rows}
        if missing := set(seqs) - rows.keys():
            raise InvalidInput("seqs", f"{min(missing)} is not in the session")
        full = [rows[seq] for seq in set(seqs) if rows[seq].entry is not None]
        for row in full:
            row.entry = None
        if full:
            self.wrote(session)
        return len(full)

    async def clear(self, id, *, seen=None):
        self.check_seen(id, seen)
        session = self.session(id)
        session.seq += 1  # the head of the empty branch is one that nobody has seen
        session.lines = {MAIN: Line(None, session.seq)}
        session.lease = session.draft = None
        session.once = {}
        session.record = session.record.replace(branch=MAIN, counters={})
        self.wrote(session)
        return self.record(session)

    async def list(self, *, agent=None, metadata=None, since=None, until=None, limit=50, page=None):
        if agent is not None:
            check_text(agent, "agent")
        if metadata is not None and not isinstance(metadata, dict):
            raise InvalidInput("metadata", "is a dict")
        metadata = FrozenDict(metadata or {})
        since = since if since is None else settled_time(since, "since")
        until = until if until is None else settled_time(until, "until")
        self.check_limit(limit)
        before = None if page is None else read_token(page, 2)
        found = []
        for session in sorted(self.all_sessions(), key=self.order, reverse=True):
            r = session.record
            place = [r.updated_at.astimezone(UTC).isoformat("T", "microseconds"), r.id]
            if (
                (before is None or place < before)
                and agent in (None, r.agent)
                and (since is None or r.updated_at >= since)
                and (until is None or r.updated_at < until)
                and all(n in r.metadata and self.same(r.metadata[n], metadata[n]) for n in metadata)
            ):
                found.append((place, self.summary(session)))
        items = tuple(summary for _, summary in found[:limit])
        return Page(items, token(found[limit - 1][0]) if len(found) > limit else None)

    def summary(self, session):
        r = session.record
        damage = "the record is damaged" if 0 in session.damage else ""
        return Summary(r.id, r.key, r.agent, r.created_at, r.updated_at, r.metadata, damage)

    async def expire(self, now=None, *, grace=GRACE):
        now = settled_time(now, "now") if now is not None else ids.now()
        if not isinstance(grace, timedelta) or grace < timedelta(0):
            raise InvalidInput("grace", "is a timedelta from 0 up")
        last, self.data.run = self.data.run, now
        if last is not None and now < last:
            return Expired(0, 0, "the clock went back")
        if last is not None and now - last > JUMP:
            return Expired(0, 0, "the clock jumped ahead")
        marked = deleted = 0
        for id, session in list(self.data.sessions.items()):
            if not self.is_expired(session.record, now):
                continue
            if session.marked is None:
                session.marked, marked = now, marked + 1
            elif now - session.marked > grace and not self.is_running(session):
                del self.data.sessions[id]
                deleted += 1
        return Expired(marked, deleted)

    async def search(self, query, *, session=None, limit=20, page=None):
        check_text(query, "query")
        self.check_limit(limit)
        before = None if page is None else read_token(page, 1)[0]
        sessions = self.all_sessions() if session is None else [self.session(session)]
        wanted = words.query(query)
        if not wanted:
            return Page(())
        hits = []
        for each in sessions:
            for name in each.lines:
                numbers = {row.seq: row.number for row in each.lines[name].rows}
                for row in self.stored(each, name):
                    if row.seq in numbers and type(row.entry) is Message:
                        have = words.words(self.said(row.entry))
                        if all(is_there(word, prefix, have) for word, prefix in wanted):
                            bad = "it is damaged" if row.seq in each.damage else ""
                            row = msgspec.structs.replace(row, entry=None) if bad else row
                            found = Found(each.record.id, each.record.key, row, bad)
                            hits.append((numbers[row.seq], found))
        hits = sorted(hit for hit in hits if before is None or hit[0] < before)[::-1]
        items = tuple(found for _, found in hits[:limit])
        return Page(items, token([hits[limit - 1][0]]) if len(hits) > limit else None)

    async def watch(self, id, after=None):
        session = self.session(id)
        if after is not None:
            check_count(after, "after")
        seen = session.seq if after is None else after
        turn, number = 0, 0
        while True:
            session = self.session(id)
            fresh = [
                row
                for name in session.lines
                for row in self.stored(session, name)
                if row.branch == name and row.seq > seen
            ]
            for row in sorted(fresh, key=lambda row: row.seq):
                seen = row.seq
                yield row
            if session.draft is not None and self.is_running(session):
                if session.draft.token != turn:
                    turn, number = session.draft.token, 0
                for chunk in session.draft.chunks[number:]:
                    number += 1
                    yield Chunk(turn, number, chunk)
            await asyncio.sleep(0.002)

    def rows(self, session):
        """All entries, in the order of their seqs."""
        rows = [r for name in session.lines for r in self.stored(session, name) if r.branch == name]
        return sorted(rows, key=lambda row: row.seq)

    async def export(self, id, after=0, limit=1_000):
        check_count(after, "after")
        check_count(limit, "limit")
        session = self.session(id)
        rows = [row for row in self.rows(session) if row.seq > after]
        if session.damage & {row.seq for row in rows}:
            raise Corrupt(session.record.key, "it is damaged")
        record = self.record(session).replace(folds=())
        return Part(record, tuple(rows[:limit]), (), session.origin)

    async def names(self, id, after="", limit=1_000):
        check_text(after, "after")
        self.check_limit(limit)
        once = sorted(self.session(id).once.items())
        named = [Named(name, done, None, tuple(content)) for name, (content, done) in once]
        return tuple(each for each in named if each.name > after)[:limit]

    async def restore(self, part, *, after, is_whole=False):
        check_flag(is_whole, "is_whole")
        if not isinstance(part, Part) or not part.record.branches:
            raise InvalidInput("part", "is a Part with branches")
        record = part.record
        session = copy.deepcopy(self.restorable(record, after))
        root = record.branches[0]
        if session is None or session.lines[root.name].fork < root.fork:
            session = Session(record, {root.name: Line(None, root.fork)}, root.fork)
        for branch in record.branches:
            session.lines.setdefault(branch.name, Line(branch.parent, branch.fork))
        for stored in part.entries:
            self.put(session, stored)
        for name, done, _, content in part.named:
            session.once.setdefault(name, (list(content), done))
        session.draft = record.draft if record.draft and not record.draft.is_running else None
        session.token = session.draft.token if session.draft else session.token
        if session.draft:
            session.draft = session.draft.replace(owner="")
        session.record = record.replace(branches=(), seq=0, folds=(), draft=None)
        session.origin = Origin(record.updated_at, is_whole)
        if is_whole and self.record(session).branches != record.branches:
            raise InvalidInput("part", "does not make it whole")
        self.data.sessions[record.id] = session
        return session.seq

    def restorable(self, record, after):
        if after is None:
            if any(
                record.id == s.record.id or record.key == s.record.key for s in self.all_sessions()
            ):
                raise DuplicateSession(record.key)
            return None
        session = self.session(record.id)
        if self.is_touched(session):
            raise Conflict(record.key, 0, 0, "updated_at")
        if session.seq != after:
            raise Conflict(record.key, after, session.seq)
        return session

    def is_touched(self, session):
        return session.origin is None or session.origin.updated_at != session.record.updated_at

    def put(self, session, stored):
        if stored.branch not in session.lines:
            raise InvalidInput("part", "has an entry on no branch")
        if stored.entry is not None:
            entry = stored.entry
            kind = entry.kind if type(entry) is UnknownEntry else type(entry).__name__.lower()
            if stored.seq <= session.seq or stored.kind != kind:
                raise InvalidInput("part", f"has a wrong entry {stored.seq}")
        if stored.seq <= session.seq:
            rows = [row for line in session.lines.values() for row in line.rows]
            next(row for row in rows if row.seq == stored.seq).entry = None
            return
        row = Row(stored.seq, stored.branch, stored.kind, stored.entry, next(self.data.numbers))
        session.lines[stored.branch].rows.append(row)
        session.seq = stored.seq

    async def verify(self, id=None, *, on_progress=None):
        sessions = self.all_sessions() if id is None else [self.session(id)]
        problems = [
            Problem(s.record.key, "main" if seq else "", seq, "damaged")
            for s in sessions
            for seq in sorted(s.damage)
        ]
        count = sum(len(line.rows) for s in sessions for line in s.lines.values())
        return Verified(len(sessions), count, tuple(problems))


class NaiveStore(Store):
    tenant_type = NaiveTenant

    def __init__(self, path, data=None):
        self.data = _places.setdefault(str(path), {} if data is None else data)
        self.path = path
        self.is_open = False

    def tenant(self, name=""):
        check_text(name, "tenant")
        if (size := len(name.encode())) > self.limits.name_bytes:
            raise TooLarge("tenant", size, self.limits.name_bytes)
        return self.tenant_type(self, name)

    async def open(self):
        self.is_open = True

    async def backup(self, path, *, on_progress=None):
        if not self.is_open:
            raise StoreUnavailable("naive", "it is closed")
        if not isinstance(path, str | Path):
            raise InvalidInput("path", "is a path")
        tell = on_progress or (lambda share: None)
        tell(0.0)
        write_backup(Path(path), self.data)
        tell(1.0)

    async def close(self):
        self.is_open = False


def write_backup(path, data):
    if path.exists():
        raise InvalidInput("path", "is not empty")
    copied = copy.deepcopy({name: (each.sessions, each.run) for name, each in data.items()})
    for sessions, _ in copied.values():
        for session in sessions.values():
            session.lease = None
    path.write_bytes(pickle.dumps({name: Data(*each) for name, each in copied.items()}))


def open_backup(path):
    return NaiveStore(path, pickle.loads(path.read_bytes()))


def is_there(word, prefix, have):
    return any(each.startswith(word) for each in have) if prefix else word in have


def token(place):
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def read_token(page, length):
    check_text(page, "page")
    try:
        place = json.loads(base64.b64decode(page, altchars=b"-_", validate=True))
        if not isinstance(place, list) or len(place) != length:
            raise ValueError
    except ValueError:
        raise InvalidInput("page", "is not the `next` of a page") from None
    return place


def check_text(value, what):
    if type(value) is not str:
        raise InvalidInput(what, "is a string")
    text.check(value, what)


def check_count(value, what, least=0):
    if type(value) is not int or value < least:
        raise InvalidInput(what, f"is a whole number from {least} up")


def check_flag(value, what):
    if type(value) is not bool:
        raise InvalidInput(what, "is True or False")


def check_lease(lease):
    if type(lease) is not Lease:
        raise InvalidInput("lease", "is a Lease")


def check_lease_ttl(ttl):
    if ttl is None:
        raise InvalidInput("ttl", "is a timedelta")
    check_ttl(ttl)
