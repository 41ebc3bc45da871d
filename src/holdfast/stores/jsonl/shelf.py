"""The shelf of the JSONL store: one transaction on the folders of all tenants, under their lock.

A session is looked at once in a transaction: whether its files are still those it was made of, and
if not, what has become of it. What is changed in it is noted, and written by `commit`.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from zlib import crc32

from holdfast.errors import HoldfastError, StoreError
from holdfast.stores import words
from holdfast.stores.chain import NewRow
from holdfast.stores.document import Written
from holdfast.stores.head import Head, Line, Row
from holdfast.stores.held import Held, is_overdue
from holdfast.stores.jsonl import looking, writing
from holdfast.stores.jsonl.folder import Folder, Listing
from holdfast.stores.jsonl.place import Place
from holdfast.stores.jsonl.sidecar import HeadRecord, Log
from holdfast.stores.jsonl.state import State
from holdfast.stores.owners import moment
from holdfast.stores.shelf import Listed, Once

_MS = timedelta(milliseconds=1)


class JsonlShelf(looking.StateShelf):
    """Sessions in files. `changed` are those that were written to, in order."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._states: dict[int, State] = {}
        self._by_id: dict[tuple[str, str], State | None] = {}
        self._by_key: dict[tuple[str, str], State | None] = {}
        self._names: dict[int, tuple[str, str, str]] = {}
        self._last: State | None = None
        self._replaced: dict[tuple[str, str], State] = {}
        self.changed: dict[int, State] = {}

    def held(self, number: int) -> Held:
        return self._states[number].held

    def state(self, head: Head) -> State:
        return self._states[head.number]

    # Finding

    def find(self, tenant: str, id: str) -> Head | None:
        if (tenant, id) not in self._by_id:
            folder = self._place.folder(tenant)
            self._remember(tenant, folder.by_id(id), id=id)
        return self._head(self._by_id[tenant, id])

    def find_key(self, tenant: str, key: str) -> Head | None:
        if (tenant, key) not in self._by_key:
            folder = self._place.folder(tenant)
            self._remember(tenant, folder.by_key(key), key=key)
            if self._by_key[tenant, key] is None and (name := folder.stranger(key)) is not None:
                looking.take_in(self, self._place, folder, name, key)
        return self._head(self._by_key[tenant, key])

    def _head(self, state: State | None) -> Head | None:
        if state is None:
            return None
        self._last = state
        return state.head

    def _remember(
        self, tenant: str, state: State | None, *, id: str | None = None, key: str | None = None
    ) -> None:
        if id is not None:
            self._by_id[tenant, id] = None
        if key is not None:
            self._by_key[tenant, key] = None
        if state is None or state.change.is_deleted:
            return
        is_looked_at = self._by_id.get((tenant, state.record.id)) is state
        self.register(state)
        if not is_looked_at and not looking.look(self, self._place, state):
            self._drop(state)

    def register(self, state: State) -> None:
        """This session is known in this transaction."""
        record = state.record
        self._states[record.number] = state
        self._by_id[record.tenant, record.id] = state
        self._by_key[record.tenant, record.key] = state

    def _drop(self, state: State) -> None:
        record = state.record
        self._by_id[record.tenant, record.id] = None
        self._by_key[record.tenant, record.key] = None

    def _note(self, head: Head) -> State:
        """The session, to which something is done."""
        state = self._states[head.number]
        self.changed[head.number] = state
        return state

    # Sessions

    def insert(self, head: Head, document: Written) -> None:
        folder = self._place.folder(head.tenant)
        head.number = self._place.number()
        old = self._replaced.pop((head.tenant, head.key), None)
        taken = self._place.taken
        file = taken or (old.record.file if old else folder.free_name(head.key))
        state = State(folder.files, Log(f"session {head.key!r}"))
        state.log.begin(head, document, file)
        state.change.is_new = state.change.is_head = True
        if old is not None:
            state.change.is_replacing = state.change.is_purged = True
            self.changed.pop(old.record.number, None)
            folder.forget(folder.files.log(head.key).name)
        self.register(state)
        self._note(head).change.lines.update(head.lines)

    def save(self, head: Head) -> None:
        self._note(head).change.is_head = True

    def move(self, head: Head) -> None:
        self._note(head).change.is_head = True

    def delete(self, head: Head) -> None:
        state = self._note(head)
        state.change.is_deleted = True
        self._replaced[head.tenant, head.key] = state
        self._drop(state)

    def save_document(self, head: Head, document: Written) -> None:
        super().save_document(head, document)
        self._note(head).change.is_document = True

    def newest(
        self,
        tenant: str,
        *,
        agent: str | None,
        since: int | None,
        until: int | None,
        before: tuple[int, int] | None,
        limit: int,
    ) -> Sequence[Listed]:
        wanted = [
            (head.updated, head.number, head.id, document)
            for head, document in self._all(tenant)
            if (agent is None or head.agent == agent)
            and (since is None or head.updated >= since)
            and (until is None or head.updated < until)
            and (before is None or (head.updated, head.number) < before)
        ]
        wanted.sort(key=lambda each: each[:2], reverse=True)
        return [
            (number, id, updated, document.body, document.check)
            for updated, number, id, document in wanted[:limit]
        ]

    def names(self, number: int) -> tuple[str, str, str]:
        return self._names[number] if number in self._names else super().names(number)

    def overdue(self, tenant: str, now: int, marked: int, limit: int) -> Sequence[Head]:
        found: list[Head] = []
        for record, _ in self._all(tenant):
            if is_overdue(record, now, marked) and len(found) < limit:  # type: ignore[arg-type]
                with suppress(StoreError):  # what is damaged is not deleted for being old
                    head = self.find(tenant, record.id)
                    if head is not None:
                        found.append(head)
        return found

    def _all(self, tenant: str) -> Iterator[tuple[HeadRecord, Written]]:
        """Every session of a tenant as a list shows it. What is wrong with one hides no other."""
        folder = self._place.folder(tenant)
        listings = folder.listings()
        known = {listing.head.file for _, listing in listings}
        if strangers := list(folder.strangers(known)):
            for name in strangers:
                with suppress(StoreError):
                    key = folder.key_of(name)
                    if key is not None and self.find_key(tenant, key) is None:
                        looking.take_in(self, self._place, folder, name, key)
            listings = folder.listings()
        for name, listing in listings:
            if (found := self._listed(folder, tenant, name, listing)) is not None:
                yield found

    def _listed(
        self, folder: Folder, tenant: str, name: str, listing: Listing
    ) -> tuple[HeadRecord, Written] | None:
        head, document = listing.head, listing.document
        if listing.problem:
            head.number = crc32(name.encode())
        elif not looking.is_as_left(folder, head):
            with suppress(HoldfastError):
                if self.find(tenant, head.id) is None:
                    return None
                state = self._states[self._by_id[tenant, head.id].record.number]  # type: ignore[union-attr]
                head, document = state.next_record(), state.held.document
        self._names[head.number] = (head.id, head.key, head.agent)
        return head, document

    # Branches

    def add_line(self, head: Head, line: Line) -> None:
        super().add_line(head, line)
        self._note(head).change.lines.add(line.name)

    def save_line(self, head: Head, line: Line) -> None:
        self._note(head).change.lines.add(line.name)

    # Entries

    def add_rows(self, head: Head, rows: Sequence[NewRow]) -> None:
        super().add_rows(head, rows)
        state = self._note(head)
        seqs = [row[1] for row in rows]
        state.change.rows += seqs
        state.log.stamps.update(zip(seqs, self._place.stamps(len(seqs)), strict=True))

    def erase_rows(self, head: Head, rows: Sequence[tuple[Row, bytes]]) -> None:
        super().erase_rows(head, rows)
        self._note(head).change.is_anew = True

    def clear(self, head: Head) -> None:
        super().clear(head)
        state = self._note(head)
        state.log.stamps.clear()
        state.log.lines = head.lines
        state.change.rows.clear()
        state.change.is_anew = True

    def purge(self) -> None:
        assert self._last is not None
        change = self._note(self._last.head).change
        change.is_anew = change.is_purged = change.is_head = True

    # Large texts

    def add_blob(self, head: Head, digest: bytes, data: bytes) -> None:
        is_known = digest in self.held(head.number).blobs
        super().add_blob(head, digest, data)
        if not is_known:
            self._note(head).change.blobs.add(digest)

    # Named appends

    def add_once(self, head: Head, name: str, once: Once) -> None:
        super().add_once(head, name, once)
        self._note(head).change.once.append(name)

    # Drafts

    def save_draft(self, head: Head, body: bytes) -> None:
        super().save_draft(head, body)
        self._note(head).change.is_draft = True

    def add_chunk(self, head: Head, text: str) -> None:
        super().add_chunk(head, text)
        self._note(head).change.chunks += 1

    def drop_draft(self, head: Head) -> None:
        super().drop_draft(head)
        change = self._note(head).change
        change.is_draft, change.chunks = True, 0

    # Leases

    def stamp(self, head: Head, ttl: timedelta) -> None:
        now = moment()
        head.process, head.boot, head.until = (
            self._place.owners.mine(),
            now.boot,
            now.ms + ttl // _MS,
        )

    def is_over(self, head: Head) -> bool:
        now = moment()
        is_late = head.boot != now.boot or now.ms > head.until
        return is_late or self._place.owners.is_gone(head.process)

    # The rest

    def search(
        self, tenant: str, query: str, session: int | None, before: int | None, limit: int
    ) -> Sequence[tuple[int, Head, Row]]:
        wanted = words.query(query)
        if not wanted:
            return []
        places = sorted(self._messages(tenant, session, before), reverse=True)
        found: list[tuple[int, Head, Row]] = []
        for stamp, number, seq in places:
            held = self._states[number].held
            if self.has_words(held, seq, wanted):
                found.append((stamp, held.head, held.rows[seq]))
                if len(found) == limit:
                    break
        return found

    def _messages(
        self, tenant: str, session: int | None, before: int | None
    ) -> Iterator[tuple[int, int, int]]:
        """Every message: when it was appended, the number of its session, and its seq."""
        if session is None:
            for record, _ in list(self._all(tenant)):
                with suppress(StoreError):
                    self.find(tenant, record.id)
        for state in list(self._states.values()):
            record = state.record
            if record.tenant != tenant or session not in (None, record.number):
                continue
            if self._by_id.get((tenant, record.id)) is not state:
                continue  # deleted
            for seq, stamp in state.log.stamps.items():
                if state.held.rows[seq].kind == "message" and (before is None or stamp < before):
                    yield stamp, record.number, seq

    def clock_seen(self, tenant: str) -> int | None:
        return self._place.folder_clock(tenant)

    def save_clock_seen(self, tenant: str, now: int) -> None:
        self._place.save_folder_clock(tenant, now)

    # The end

    def commit(self, state: State, *, is_sync: bool) -> None:
        """Write down what was done to a session."""
        folder = self._place.folder(state.record.tenant)
        is_deleted = state.change.is_deleted
        writing.commit(state, is_sync=is_sync)
        if is_deleted:
            folder.gone(state.name)
        else:
            folder.keep(state)

    def half_done(self) -> bool:
        """Whether something was done to a session and not written down; it is forgotten then."""
        found = [state for state in self.changed.values() if not state.change.is_empty]
        for state in found:
            self.forget(state)
        return bool(found)

    def forget(self, state: State) -> None:
        """What is in memory cannot be trusted: let the next one read the files."""
        self._by_id = {name: each for name, each in self._by_id.items() if each is not state}
        self._by_key = {name: each for name, each in self._by_key.items() if each is not state}
        self._place.folder(state.record.tenant).forget(state.name)
        state.shut()
