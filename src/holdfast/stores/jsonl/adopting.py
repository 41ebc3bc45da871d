"""What another program did to nanobot's file since we last wrote it, and what comes of that.

| found in the file                                  | done                                      |
|----------------------------------------------------|-------------------------------------------|
| lines behind ours                                  | they are appended to the branch in use    |
| lines of ours that say something else              | they are adopted, and a mark says so      |
| lines of ours are missing, and none behind them    | who wrote had not seen them, or a write   |
| with our id in it is there                         | was cut off: they are put there again     |
| others of ours are missing, or all of them         | a new branch begins where they went: the  |
|                                                    | old one keeps them                        |
| what cannot be read                                | what we know is put there again; the      |
|                                                    | original is set aside                     |

A nanobot that runs saves what it has in memory, and that may be older than the file. It read the
file at one moment, and lines that it read have our ids in them: so of ours it has seen everything
up to the last line that has one, and nothing behind it. Before a line that has none, and had none
when we looked the last time, it has seen everything too: it wrote all of that file itself. All
lines missing, in a file that is the same by its `created_at` and newer, is a conversation begun
anew (`/new`). Where something in the file cannot be read, nothing was left out: what is missing
stood there.
"""

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

from holdfast import codec
from holdfast.codec import foreign
from holdfast.codec.nanobot import Metadata
from holdfast.codec.writing import dumps
from holdfast.entries import Entry, Mark, kind_of
from holdfast.errors import InvalidInput
from holdfast.frozen import FrozenDict
from holdfast.messages import Message
from holdfast.stores import blobs, chain, requests
from holdfast.stores.document import Document, micros, read_document, write_document
from holdfast.stores.head import Line, Row
from holdfast.stores.jsonl import page
from holdfast.stores.jsonl.page import Page
from holdfast.stores.jsonl.state import State
from holdfast.stores.requests import Packed
from holdfast.stores.shelf import Shelf
from holdfast.stores.values import CURSOR

BRANCH = "nanobot"
_Lines = Sequence[tuple[bytes, tuple[Entry, ...]]]


class Difference(NamedTuple):
    """How the lines of a file differ from ours.

    same        how many at the beginning are equal
    found       from the place of each other line that is ours to its place in the file
    new         where lines begin that are not ours
    is_missing  some of ours are not there, and who wrote the file cannot have seen them
    is_other    it is another list than ours, from `same` on
    """

    same: int
    found: dict[int, int]
    new: int
    is_missing: bool
    is_other: bool


def differ(
    ours: Sequence[bytes],
    lines: _Lines,
    names_at: Callable[[int], set[str]],
    *,
    is_torn: bool = False,
) -> Difference:
    """Compare lines with ours, of which we know the marks, and by what each can be known."""
    same = 0
    for mark, (line, _) in zip(ours, lines, strict=False):
        if page.digest_of(line) != mark[: page.DIGEST_SIZE]:
            break
        same += 1
    places = {name: at for at in range(len(ours) - 1, same - 1, -1) for name in names_at(at)}
    found: dict[int, int] = {}
    new, seen = len(lines), same - 1
    for at in range(same, len(lines)):
        name, has_our_id = _name(*lines[at])
        place = places.get(name, -1)
        if place < 0 or place in found:
            new = min(new, at)
            continue
        if new < at or place < max(found, default=-1):
            return Difference(same, {}, same, False, True)
        found[place] = at
        seen = place if has_our_id or page.is_nanobot_s(ours[place]) else seen
    missing = [at for at in range(same, len(ours)) if at not in found]
    if missing and missing[0] < seen and not is_torn:  # it knew what came later: it left these out
        return Difference(same, {}, same, False, True)
    return Difference(same, found, new, bool(missing), False)


def _name(line: bytes, entries: Sequence[Entry]) -> tuple[str, bool]:
    """By what a line can be known, whatever it says, and whether that is our id."""
    entry = entries[0]
    if isinstance(entry, Message) and entry.id.encode() in line:
        return entry.id, True
    return _given(entry), False


def _given(entry: Entry) -> str:
    """By what a line of nanobot's own can be known: who said it, and when."""
    if not isinstance(entry, Message):
        return kind_of(entry)
    return f"{entry.role} {entry.extra.get('timestamp')}"


def _names_at(state: State, seq: int) -> set[str]:
    """By what a line that we know can be known."""
    entry = state.entry(seq)
    return {_given(entry), entry.id} if isinstance(entry, Message) else {_given(entry)}


def adopt(shelf: Shelf, state: State, found: Page) -> list[str]:
    """Let the session be what the file says; what was done, in words. `state.change` holds it."""
    said: list[str] = []
    seqs = state.shown()
    ours = [state.log.shown.get(seq, b"") for seq in seqs]
    difference = differ(
        ours, found.lines, lambda at: _names_at(state, seqs[at]), is_torn=found.is_torn
    )
    if _is_begun_anew(state, found, difference):
        difference = difference._replace(is_missing=False, is_other=True)
    _adopt_title(shelf, state, found, said)
    if difference.is_other:
        _fork(shelf, state, seqs[: difference.same], found.lines[difference.same :], said)
        return said
    if changed := _changed(state, seqs, difference, found.lines):
        _change(shelf, state, changed, said)
    if new := found.lines[difference.new :]:
        _append(shelf, state, new)
        said.append(f"{len(new)} lines of another program were added")
    if difference.is_missing:
        said.append("lines that were missing are there again")
    state.change.is_shown_anew |= difference.is_missing or not found.is_plain
    return said


def _is_begun_anew(state: State, found: Page, difference: Difference) -> bool:
    """Whether none of our lines is there, because who wrote the file wanted none of them."""
    is_empty = difference.is_missing and not difference.same and not difference.found
    return is_empty and not found.is_torn and _is_newer(state, found.metadata)


def _is_newer(state: State, metadata: Metadata | None) -> bool:
    """Whether it is the same file by its beginning, and was written after we did."""
    if metadata is None:
        return False
    created, updated = _time(metadata.created_at), _time(metadata.updated_at)
    return created == state.head.created and updated is not None and updated > state.head.updated


def _time(text: str) -> int | None:
    try:
        return micros(foreign.time_of(text))
    except InvalidInput:
        return None


# Lines that say something else


def _changed(
    state: State, seqs: Sequence[int], difference: Difference, lines: _Lines
) -> dict[int, tuple[bytes, tuple[Entry, ...]]]:
    """By seq, the lines that do not say what ours do, however they are written."""
    found = {}
    for at, place in difference.found.items():
        seq, (line, entries) = seqs[at], lines[place]
        if _says_the_same(line, state.line(seq, is_appended=True)):
            state.change.there[seq] = page.mark_of(line, state.entry(seq))
        else:
            found[seq] = (line, entries)
    return found


def _says_the_same(line: bytes, ours: bytes) -> bool:
    """Whether two lines differ in their bytes alone; ours may have an id that the other has not."""
    one, other = json.loads(line), json.loads(ours)
    if "id" not in one:
        other.pop("id", None)
    return bool(one == other)


def _change(
    shelf: Shelf,
    state: State,
    changed: dict[int, tuple[bytes, tuple[Entry, ...]]],
    said: list[str],
) -> None:
    held = state.held
    marks: list[Entry] = []
    for seq, (_, entries) in changed.items():
        row, id = held.rows[seq], getattr(state.entry(seq), "id", None)
        kind, whole, kept, holes, texts = pack(_with_id(entries[0], id))
        held.drop_blobs(row)
        for digest in blobs.digests(holes):
            held.add_blob(digest, texts[digest])
        check = chain.check(seq, row.position, kind, whole)
        held.rows[seq] = row._replace(check=check, payload=kept, holes=holes, kind=kind)
        held.words.pop(seq, None)
        marks.append(Mark(what="adopted", about=id, data=FrozenDict({"seq": seq})))
    _link_anew(shelf, state)
    state.change.is_anew = True
    append_entries(shelf, state, marks)
    said.append(f"{len(changed)} lines that another program changed were adopted")


def _with_id(entry: Entry, id: str | None) -> Entry:
    return entry.replace(id=id) if isinstance(entry, Message) and id else entry


def _link_anew(shelf: Shelf, state: State) -> None:
    """Make the chain fit what is stored now, on every branch."""
    held, lines = state.held, state.head.lines
    root = chain.root(state.head.id)
    for line in sorted(lines.values(), key=lambda line: line.number):
        link = held.rows[line.fork].link if line.fork in held.rows else root
        for seq in held.seqs.get(line.number, []):
            row = held.rows[seq]
            sealed = row.seal if row.payload is None else _sealed(state, row)
            assert sealed is not None
            link = chain.link(link, seq, row.kind, sealed)
            held.rows[seq] = row._replace(link=link)
        line.link = link
        shelf.save_line(state.head, line)


def _sealed(state: State, row: Row) -> bytes:
    assert row.salt is not None
    assert row.payload is not None
    blob = state.held.blobs
    whole = blobs.fill(row.payload, row.holes, lambda digest: blob[digest][1], f"entry {row.seq}")
    return chain.seal(row.salt, whole)


# Lines that are new, or in the place of others


def _append(shelf: Shelf, state: State, lines: _Lines) -> None:
    seq = state.head.seq + 1
    append_entries(shelf, state, [entry for _, entries in lines for entry in entries])
    for line, entries in lines:
        state.change.there[seq] = page.mark_of(line, entries[0])
        seq += len(entries)


def _fork(shelf: Shelf, state: State, same: Sequence[int], lines: _Lines, said: list[str]) -> None:
    """Another list than ours: a branch of its own, from the last line that both have."""
    head = state.head
    used = _used(state)
    number = 1 + sum(name.startswith(BRANCH) for name in head.lines)
    at = same[-1] if same else 0
    request = requests.OpenBranch(
        head.tenant, head.updated, head.id, f"{BRANCH}-{number}", used.name, at, True
    )
    request.run(shelf)
    _append(shelf, state, lines)
    append_entries(shelf, state, [Mark(what="adopted", data=FrozenDict({"from": used.name}))])
    state.change.is_shown_anew = True
    said.append(f"another program has left lines out: branch {used.name!r} keeps them")


def _used(state: State) -> Line:
    return next(each for each in state.head.lines.values() if each.number == state.head.branch)


def append_entries(shelf: Shelf, state: State, entries: Sequence[Entry]) -> None:
    """Put entries behind the branch in use, whether or not the session has expired."""
    if entries:
        head = state.head
        packed = [pack(entry) for entry in entries]
        requests.Append(
            *(head.tenant, head.updated, head.id, _used(state).name, packed),
            *(None, None, None, b"", False),
        ).run(shelf)


def pack(entry: Entry) -> Packed:
    """An entry as it is stored."""
    whole = codec.record(entry)
    return (kind_of(entry), whole, *blobs.cut(whole))


# Line 1


def _adopt_title(shelf: Shelf, state: State, found: Page, said: list[str]) -> None:
    """What line 1 and the lines that are nobody's messages say now."""
    private = [line.decode(errors="replace") for line in found.private]
    metadata = found.metadata
    shelf.save(state.head)
    if metadata is None:
        state.change.is_shown_anew = True
        return
    metadata = page.settled(metadata, len(found.lines))
    state.log.head = state.next_record(
        private=private,
        extra=dumps(metadata.extra) if metadata.extra else "",
    )
    title = (metadata.metadata, metadata.last_consolidated)
    if title != state.title:
        document = _document(state)
        counters = {**document.counters, CURSOR: title[1]}
        if not title[1]:
            del counters[CURSOR]
        fields = {"metadata": title[0], "counters": FrozenDict(counters)}
        document = Document(
            **{n: getattr(document, n) for n in document.__struct_fields__} | fields
        )
        shelf.save_document(state.head, write_document(document))
        state.title = title
        said.append("another program has changed its metadata")
    updated = _time(metadata.updated_at)
    if updated is not None and updated > state.head.updated:
        state.head.updated = updated


def _document(state: State) -> Document:
    written = state.held.document
    return read_document(written.body, written.digest, f"session {state.head.key!r}")
