"""The sidecar: our own log of a session, beside nanobot's file and never read by nanobot.

A line is a CRC-32 of what follows, in eight hexadecimal digits, a space, and a JSON object with one
name. Lines up to and including one with `head` or `chunk` were written together: what stands
behind the last such line was cut off, and did not happen.

Behind the last line there may be zeros: room for what comes next. A write into it changes no size,
so that the disk has nothing but the bytes themselves to write. After a power cut any part of the
last write may then be missing, and not its end alone; where a part is missing there is a zero, and
no line has one. Every head tells how much was on the disk for certain when it was written: a zero
behind that says that what it stands in did not happen, and nothing that follows; a zero before it
is damage, as any other byte that is not what was written.

| name   | value                                                                              |
|--------|------------------------------------------------------------------------------------|
| v      | the version of this table: 2. The first line of every file; 1 had no room           |
| doc    | the document of the session, its CRC-32 and its digest                             |
| line   | a branch: number, name, parent, fork, base, head, count, link                      |
| row    | an entry: seq, branch, position, kind, check, link, salt, payload, holes, seal     |
| blob   | a large text: digest, text                                                         |
| once   | a named append: name, salt, digest, first, last, branch, messages                  |
| draft  | the input of a turn; null: there is no draft any more                              |
| chunk  | a piece of its output                                                              |
| shown  | the lines in nanobot's file: pairs of seq and digest                               |
| head   | the counters of the session, and what is known of nanobot's file; see HeadRecord    |

The file is only appended to, but for what must leave no byte behind: then it is written anew,
with what is in force and nothing else.
"""

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any
from zlib import crc32

import msgspec

from holdfast.errors import Corrupt, FormatTooNew
from holdfast.stores.blobs import digests
from holdfast.stores.document import Written
from holdfast.stores.head import Head, Line, Row
from holdfast.stores.held import Held
from holdfast.stores.shelf import Once
from holdfast.stores.values import Appended

VERSION = 2
ROOM_SINCE = 2
_CRC = 8
_ROOM, ROOM_MAX, _ROOM_PART = 4 * 1024, 64 * 1024, 4


class RowRecord(msgspec.Struct, array_like=True):
    """A row, the number that search orders by, and the payload as text."""

    seq: int
    branch: int
    position: int
    kind: str
    check: int
    link: bytes
    salt: bytes | None
    payload: str | None
    holes: bytes | None
    seal: bytes | None
    stamp: int


class LineRecord(msgspec.Struct, array_like=True):
    """A branch."""

    number: int
    name: str
    parent: int | None
    fork: int
    base: int
    head: int
    count: int
    link: bytes


class OnceRecord(msgspec.Struct, array_like=True):
    """A named append."""

    name: str
    salt: bytes | None
    digest: bytes | None
    first: int
    last: int
    branch: str
    messages: int


class HeadRecord(msgspec.Struct, omit_defaults=True):
    """A Head without its branches, and where nanobot's file stands.

    file        its name
    main        its inode, and its size when this was done
    was         inode, size and time of the file in whose place it was put, or is to be put
    born        `created_at` as text, where it is not our own
    extra       names in line 1 that are not ours, as JSON
    private     lines that follow it and are nobody's messages
    doc         where in this file the line with the document begins
    synced      how much of this file was on the disk for certain; the first head was there with it
    """

    number: int
    tenant: str
    id: str
    key: str
    agent: str
    created: int
    updated: int
    file: str
    main: tuple[int, int] = (0, 0)
    was: tuple[int, int, int] | None = None
    doc: int = 0
    ttl: int | None = None
    marked: int | None = None
    seq: int = 0
    branch: int = 0
    branches: int = 1
    token: int = 0
    owner: str | None = None
    process: str = ""
    boot: str = ""
    until: int = 0
    born: str = ""
    extra: str = ""
    private: list[str] = []
    synced: int = 0


class Record(msgspec.Struct, omit_defaults=True):
    """A line: one of these."""

    v: int = 0
    doc: tuple[str, int, bytes] | None = None
    line: LineRecord | None = None
    row: RowRecord | None = None
    blob: tuple[bytes, str] | None = None
    once: OnceRecord | None = None
    draft: str | msgspec.UnsetType | None = msgspec.UNSET
    chunk: str | None = None
    shown: list[tuple[int, bytes]] | None = None
    head: HeadRecord | None = None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Record).decode
HEAD_FIELDS = [name for name in Head.__slots__ if name != "lines"]
_fields_of = attrgetter(*HEAD_FIELDS)


class Log:
    """What a sidecar says, record by record; `held` is None while there is no head."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.head: HeadRecord | None = None
        self.is_head_damaged = False
        self.lines: dict[str, Line] = {}
        self.document = Written(b"", 0, b"")
        self.stamps: dict[int, int] = {}
        self.shown: dict[int, bytes] = {}
        self.size = 0
        self.version = VERSION
        self.synced = 0  # so much is on the disk for certain, as far as we know
        self.is_torn = False  # something stands behind `size` that is no room
        self._held: Held | None = None

    def begin(self, head: Head, document: Written, file: str) -> None:
        """A session that is new, and not in a file yet."""
        self.head = HeadRecord(**head_fields(head), file=file)
        self._held = Held(head, document)
        self.lines = head.lines

    def read(self, data: bytes) -> None:
        """Take in what follows in the file. `size` is then where the last whole write ends."""
        at = start = self.size
        group: list[tuple[Record, bool]] = []
        for line in self._certain(data).split(b"\n")[:-1]:
            at += len(line) + 1
            found, is_whole = parse(line)
            if found is None:
                continue  # what is missing shows: entries are counted, and a head ends a write
            if found.v > VERSION:
                raise FormatTooNew(self.where, found.v, VERSION)
            self.version = found.v or self.version
            group.append((found, is_whole))
            if found.head is not None and is_whole:
                self.synced = max(self.synced or at, found.head.synced)
            if found.head is not None or found.chunk is not None:
                self._take(group)
                group, self.size = [], at
        self.is_torn = bool(data[self.size - start :].strip(b"\0"))

    def _certain(self, data: bytes) -> bytes:
        """What was written before anything that is missing, without the room behind it."""
        told = data.rstrip(b"\0")
        if b"\0" not in told:
            return told
        is_all = not self.size
        if is_all and (first := parse(told.partition(b"\n")[0])[0]) is not None:
            self.version = first.v
        if self.version < ROOM_SINCE:
            return told
        torn = told.find(b"\0", max(_synced(told, self.synced) - self.size, 0))
        return told if torn < 0 else told[:torn]

    def held(self) -> Held:
        """The session; Corrupt if the file tells too little of it."""
        if self._held is None or self.head is None:
            raise Corrupt(self.where, "its head is missing")
        if self.is_head_damaged:
            raise Corrupt(self.where, "its head is not what was written")
        return self._held

    def _take(self, group: list[tuple[Record, bool]]) -> None:
        last, is_whole = group[-1]
        if last.head is not None:
            self.head, self.is_head_damaged = last.head, not is_whole
            if self._held is None:
                self._held = Held(head_of(last.head), self.document)
            else:
                copy_head(last.head, self._held.head)
        if self._held is None:
            return  # a chunk of nothing
        for each, _ in group:
            self._apply(each, self._held)
        self._held.head.lines = self.lines

    def _apply(self, each: Record, held: Held) -> None:
        if each.row is not None:
            row = row_of(each.row)
            held.add(row)
            self.stamps[row.seq] = each.row.stamp
            for digest in digests(row.holes):
                held.add_blob(digest, held.blobs.get(digest, (0, b""))[1])
        elif each.line is not None:
            line = each.line
            self.lines[line.name] = Line(*msgspec.structs.astuple(line))
        elif each.doc is not None:
            body, check, digest = each.doc
            held.document = self.document = Written(body.encode(), check, digest)
        elif each.blob is not None:
            digest, text = each.blob
            held.blobs[digest] = (held.blobs.get(digest, (0, b""))[0], text.encode())
        elif each.once is not None:
            name, salt, digest_, *result = msgspec.structs.astuple(each.once)
            held.once[name] = Once(salt, digest_, Appended(*result))
        elif each.draft is not msgspec.UNSET:
            held.draft = None if each.draft is None else each.draft.encode()
            held.chunks = []
        elif each.chunk is not None:
            held.chunks.append(each.chunk)
        elif each.shown is not None:
            self.shown.update(each.shown)


def room(size: int) -> bytes:
    """The room for what follows in a file of this size: more in a long one, and up to where a page
    ends, so that it is no page more."""
    return bytes(-size % _ROOM + min(size // _ROOM_PART, ROOM_MAX) // _ROOM * _ROOM)


def _synced(data: bytes, synced: int) -> int:
    """How much of a file is on the disk for certain, by the heads that are in this."""
    at = 0
    for line in data.split(b"\n")[:-1]:
        at += len(line) + 1
        found, is_whole = parse(line)
        if is_whole and found is not None and found.head is not None:
            synced = max(synced or at, found.head.synced)
    return synced


def parse(line: bytes) -> tuple[Record | None, bool]:
    """The record in a line, if it can be read, and whether it is what was written."""
    body = line[_CRC + 1 :]
    try:
        return _decode(body), b"%08x" % crc32(body) == line[:_CRC]
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError):
        return None, False


def write(record: Record) -> bytes:
    """The line of a record."""
    return joined([record])


def last_head(data: bytes) -> HeadRecord | None:
    """The head at the end of a file, of which `data` is the end; None if it is not in there."""
    for line in reversed(data.split(b"\n")[1:-1]):
        found, is_whole = parse(line)
        if found is None or not is_whole:
            return None
        if found.head is not None:
            return found.head
    return None


def head_fields(head: Head | HeadRecord) -> dict[str, Any]:
    """What a Head and its record have in common."""
    return dict(zip(HEAD_FIELDS, _fields_of(head), strict=True))


def record_of(head: Head, last: HeadRecord) -> HeadRecord:
    """The record of a Head, with what the one before it knew of nanobot's file."""
    own = _fields_of(head)
    known = (last.file, last.main, None, last.doc)
    fields = (*own[:7], *known, *own[7:], last.born, last.extra, last.private)
    return HeadRecord(*fields)


def head_of(record: HeadRecord) -> Head:
    """The Head in a record, without its branches."""
    return Head(**head_fields(record))


def copy_head(record: HeadRecord, head: Head) -> None:
    """Let a Head be as in a record."""
    for name in HEAD_FIELDS:
        setattr(head, name, getattr(record, name))


def row_of(record: RowRecord) -> Row:
    """The Row in a record."""
    each = record
    payload = None if each.payload is None else each.payload.encode()
    fields = (each.seq, each.branch, each.position, each.kind, each.check, each.link, each.salt)
    return Row(*fields, payload, each.holes, each.seal)


def row_record(row: Row, stamp: int) -> Record:
    """The record of a row."""
    payload = None if row.payload is None else row.payload.decode()
    return Record(row=RowRecord(*row[:7], payload, row.holes, row.seal, stamp))


def line_record(line: Line) -> Record:
    """The record of a branch."""
    return Record(
        line=LineRecord(
            *(line.number, line.name, line.parent, line.fork),
            *(line.base, line.head, line.count, line.link),
        )
    )


def once_record(name: str, once: Once) -> Record:
    """The record of a named append."""
    return Record(once=OnceRecord(name, once.salt, once.digest, *once.result))


def document_record(document: Written) -> Record:
    """The record of a document."""
    return Record(doc=(document.body.decode(), document.check, document.digest))


def draft_record(body: bytes | None) -> Record:
    """The record of a draft, or of its end."""
    return Record(draft=None if body is None else body.decode())


def everything(held: Held, stamps: dict[int, int]) -> Iterator[Record]:
    """The records of a whole session, but for its head."""
    for digest, (_, data) in held.blobs.items():
        yield Record(blob=(digest, data.decode()))
    for line in sorted(held.head.lines.values(), key=lambda line: line.number):
        yield line_record(line)
    for seq in held.order:
        yield row_record(held.rows[seq], stamps[seq])
    for name, once in held.once.items():
        yield once_record(name, once)
    if held.draft is not None:
        yield draft_record(held.draft)


def joined(records: Iterable[Record]) -> bytes:
    """The lines of several records."""
    bodies = list(map(_encode, records))
    return b"".join([b"%08x %b\n" % (crc32(body), body) for body in bodies])
