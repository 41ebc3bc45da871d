"""A session that comes from another store: what it takes to put a part of it where it belongs.

What comes in keeps its seqs, because folds, branches and named appends speak of them. So the log in
the target is at every moment the beginning of the log in the source, and one who was interrupted
sees in the target itself where to go on. The document of the session remembers (`copied`) at what
time it was last written to in the source. Every other write moves the session's time, and then the
two differ: it has gone its own way, and nothing is put into it any more.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from holdfast.errors import Conflict, DuplicateSession, InvalidInput, SessionNotFound
from holdfast.stores import chain, views
from holdfast.stores.document import Document, document_of, micros, write_document
from holdfast.stores.head import Head, Line, Row, branches_of
from holdfast.stores.requests import OfSession, Packed, add_entries
from holdfast.stores.shelf import Once, Shelf
from holdfast.stores.values import Branch, Draft, Part, Stored

_NOTHING: dict[bytes, bytes] = {}


@dataclass(slots=True)
class _Opening:
    """A branch to open, with so many messages before it."""

    branch: Branch
    base: int


@dataclass(slots=True)
class _Run:
    """Entries to add on one branch, from the seq `first` on without a gap."""

    branch: str
    first: int
    packed: list[Packed] = field(default_factory=list)


class _Plan:
    """What a part asks for, found out before anything is changed."""

    def __init__(
        self, part: Part, lines: dict[str, Line], seq: int, row_at: Callable[[int], Row | None]
    ) -> None:
        self.steps: list[_Opening | _Run] = []
        self.seq = seq
        self._root = part.record.branches[0]
        self._numbers = {each.name: at for at, each in enumerate(part.record.branches)}
        self._waiting = list(part.record.branches[len(lines) :])[::-1]
        self._ends = {line.name: (line.head, line.count) for line in lines.values()}
        self._row_at = row_at
        self._places: dict[int, tuple[str, int]] = {}  # of the entries of this part

    def add(self, stored: Stored, packed: Packed) -> None:
        """One entry more."""
        if stored.seq <= self.seq:
            raise InvalidInput("a part", f"holds entry {stored.seq} behind entry {self.seq}")
        while stored.branch not in self._ends and self._open():
            pass
        if stored.branch not in self._ends:
            raise InvalidInput("a part", f"has an entry of {stored.branch!r} before that branch")
        count = self._ends[stored.branch][1] + (stored.kind == "message")
        last = self.steps[-1] if self.steps else None
        is_next = stored.seq == self.seq + 1
        if not (isinstance(last, _Run) and last.branch == stored.branch and is_next):
            last = _Run(stored.branch, stored.seq)
            self.steps.append(last)
        last.packed.append(packed)
        self.seq = stored.seq
        self._ends[stored.branch] = (stored.seq, count)
        self._places[stored.seq] = (stored.branch, count)

    def end(self, part: Part, *, is_whole: bool) -> None:
        """Open what can be opened; if that is to be all, see that it is."""
        while self._open():
            pass
        if not is_whole:
            return
        wanted = {each.name: (each.head, each.count) for each in part.record.branches}
        if self._ends != wanted or self.seq > part.record.seq:
            raise InvalidInput("a part", "does not make the session whole")
        self.seq = part.record.seq

    def _open(self) -> bool:
        """Open the next branch, if the entry that it comes from is there."""
        if not self._waiting or self._waiting[-1].fork > self.seq:
            return False
        branch = self._waiting.pop()
        base = self._base(branch)
        if branch.parent not in self._ends or base is None:
            raise InvalidInput("a part", f"has a branch {branch.name!r} that comes from nowhere")
        self.steps.append(_Opening(branch, base))
        self._ends[branch.name] = (branch.fork, base)
        return True

    def _base(self, branch: Branch) -> int | None:
        """How many messages a branch inherits."""
        if branch.fork in (0, self._root.fork):
            return 0
        if (place := self._places.get(branch.fork)) is not None:
            return place[1] if place[0] == branch.parent else None
        row = self._row_at(branch.fork)
        if row is None or row.branch != self._numbers.get(branch.parent or ""):
            return None
        return row.position + 1


@dataclass(slots=True)
class Restore(OfSession[int]):
    """A part of a session of another store, put where it belongs."""

    part: Part
    packed: Sequence[Packed]  # the entries of the part
    draft: bytes | None
    after: int | None
    is_whole: bool

    is_long = True

    def run(self, shelf: Shelf) -> int:
        head = self._found(shelf)
        is_anew = head is None or self._is_cleared(shelf, head)
        if is_anew or head is None:
            root = self._first_line()
            plan = self._plan({root.name: root}, root.fork, lambda _: None)
            again: list[tuple[Row, bytes]] = []
            here = root.fork
            head = self._begin(shelf, head, root)
        else:
            here, found = head.seq, head
            plan = self._plan(views.lines_of(shelf, head), here, lambda seq: shelf.row(found, seq))
            again = self._again(shelf, head)
        self._carry_out(shelf, head, plan)
        self._erase(shelf, head, here, again)
        for each in self.part.named:
            if shelf.once(head, each.name) is None:
                shelf.add_once(head, each.name, Once(each.salt, each.digest, each.result))
        self._take_over(shelf, head, plan.seq)
        return head.seq

    # Looking, before anything is changed

    def _found(self, shelf: Shelf) -> Head | None:
        """The session as far as it is here; Conflict if it is not ours to write to."""
        key = self.part.record.key
        head = shelf.find(self.tenant, self.id)
        if self.after is None:
            if head is not None or shelf.find_key(self.tenant, key) is not None:
                raise DuplicateSession(key)
            return None
        if head is None:
            raise SessionNotFound(self.id)
        copied = views.document(shelf, head).copied
        if copied is None or copied[0] != head.updated or head.key != key:
            raise Conflict(head.key, 0, 0, "updated_at")
        if head.seq != self.after:
            raise Conflict(head.key, self.after, head.seq)
        return head

    def _is_cleared(self, shelf: Shelf, head: Head) -> bool:
        """Whether the log begins further on than it does here."""
        lines = views.lines_of(shelf, head)
        root, there = views.root_of(lines, head), self.part.record.branches[0]
        if root.fork < there.fork:
            return True
        here = [(each.name, each.parent, each.fork) for each in branches_of(lines)]
        known = [(each.name, each.parent, each.fork) for each in self.part.record.branches]
        if known[: len(here)] != here:
            raise Conflict(head.key, 0, 0, "branches")
        return False

    def _plan(
        self, lines: dict[str, Line], here: int, row_at: Callable[[int], Row | None]
    ) -> _Plan:
        plan = _Plan(self.part, lines, here, row_at)
        for stored, packed in zip(self.part.entries, self.packed, strict=True):
            if stored.seq > here:
                plan.add(stored, packed)
            elif stored.entry is not None:
                raise InvalidInput("a part", f"holds entry {stored.seq}, which is here already")
        plan.end(self.part, is_whole=self.is_whole)
        return plan

    def _again(self, shelf: Shelf, head: Head) -> list[tuple[Row, bytes]]:
        """The entries that are here, and were erased where they come from."""
        found = []
        for each in self.part.entries:
            if each.seq > head.seq:
                break
            if (row := shelf.row(head, each.seq)) is None:
                raise InvalidInput("a part", f"has an entry {each.seq} that is not here")
            if row.payload is not None and row.salt is not None:
                found.append((row, chain.seal(row.salt, views.payload(shelf, head, row))))
        return found

    # Doing

    def _begin(self, shelf: Shelf, head: Head | None, root: Line) -> Head:
        """The session with nothing in it: a new one, or the one that is here, cleared."""
        if head is not None:
            shelf.clear(head)
            shelf.purge()
            shelf.add_line(head, root)
            head.seq, head.branch, head.branches = root.fork, root.number, 1
            return head
        document = self._document()
        head = Head(
            number=0,
            tenant=self.tenant,
            id=document.id,
            key=document.key,
            agent=document.agent,
            created=document.created,
            updated=micros(self.part.record.updated_at),
            ttl=document.ttl,
            seq=root.fork,
            lines={root.name: root},
        )
        shelf.insert(head, write_document(document))
        return head

    def _first_line(self) -> Line:
        root = self.part.record.branches[0]
        return Line(0, root.name, None, root.fork, 0, root.fork, 0, chain.root(self.id))

    def _carry_out(self, shelf: Shelf, head: Head, plan: _Plan) -> None:
        for step in plan.steps:
            if isinstance(step, _Run):
                head.seq = step.first - 1
                add_entries(shelf, head, head.lines[step.branch], step.packed)
            else:
                shelf.add_line(head, self._line(shelf, head, step.branch, step.base))
                head.branches += 1

    def _line(self, shelf: Shelf, head: Head, branch: Branch, base: int) -> Line:
        assert branch.parent is not None
        link = chain.root(self.id)
        if branch.fork not in (0, self.part.record.branches[0].fork):
            row = shelf.row(head, branch.fork)
            assert row is not None
            link = row.link
        parent = head.lines[branch.parent].number
        number, fork = head.branches, branch.fork
        return Line(number, branch.name, parent, fork, base, fork, base, link)

    def _erase(
        self, shelf: Shelf, head: Head, here: int, again: Sequence[tuple[Row, bytes]]
    ) -> None:
        """Entries that came erased have said nothing here; those that were here must be gone."""
        for each in self.part.entries:
            if each.entry is None and each.seq > here:
                row = shelf.row(head, each.seq)
                assert row is not None and row.salt is not None
                shelf.erase_rows(head, [(row, chain.seal(row.salt, b""))])
        if any(each.seq <= here for each in self.part.entries):
            shelf.erase_rows(head, again)
            shelf.purge()  # even if they were erased before: it may not have gone through

    def _take_over(self, shelf: Shelf, head: Head, seq: int) -> None:
        """The head and the document, as they are in the source."""
        record, document = self.part.record, self._document()
        head.seq = max(seq, head.seq)
        head.agent, head.ttl = document.agent, document.ttl
        head.touch(micros(record.updated_at))
        if record.branch in head.lines:
            head.branch = head.lines[record.branch].number
        if self.is_whole:
            self._take_draft(shelf, head, record.draft)
        shelf.save_document(head, write_document(document))
        shelf.save(head)

    def _take_draft(self, shelf: Shelf, head: Head, draft: Draft | None) -> None:
        """What a turn left that was cut off. One that runs is left to who runs it."""
        shelf.drop_draft(head)
        if draft is not None and self.draft is not None:
            head.token = max(head.token, draft.token)
            shelf.save_draft(head, self.draft)
            for chunk in draft.chunks:
                shelf.add_chunk(head, chunk)

    def _document(self) -> Document:
        record = self.part.record
        document = document_of(record, self.tenant, micros(record.created_at))
        copied = (micros(record.updated_at), self.is_whole)
        return msgspec.structs.replace(document, copied=copied)


def check_whole(part: Part) -> None:
    """InvalidInput unless this one part is a whole session, which `restore` would take."""
    if not part.record.branches or part.record.branches[0].parent is not None:
        raise InvalidInput("a part", "has no first branch")
    part.record.branch_named(part.record.branch)
    root = part.record.branches[0]
    line = Line(0, root.name, None, root.fork, 0, root.fork, 0, b"")
    plan = _Plan(part, {root.name: line}, root.fork, lambda _: None)
    for stored in part.entries:
        plan.add(stored, packed_erased(stored.kind))
    plan.end(part, is_whole=True)


def packed_erased(kind: str) -> Packed:
    """An entry that says nothing, to be put where one was erased."""
    return (kind, b"", b"", None, _NOTHING)
