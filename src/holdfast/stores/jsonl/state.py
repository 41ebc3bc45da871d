"""A session that is held in memory, and where its two files stood when that was made."""

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from holdfast import private_files
from holdfast.codec import read_record
from holdfast.codec.nanobot import Metadata
from holdfast.entries import UnknownEntry
from holdfast.frozen import EMPTY, FrozenDict
from holdfast.messages import Message
from holdfast.stores import blobs
from holdfast.stores import head as heads
from holdfast.stores.document import read_document
from holdfast.stores.head import Head, Row
from holdfast.stores.held import Held
from holdfast.stores.jsonl import page, sidecar
from holdfast.stores.jsonl.files import Files, Seen, seen_at
from holdfast.stores.jsonl.sidecar import HeadRecord, Log
from holdfast.stores.values import CURSOR
from holdfast.strict import parse


@dataclass(slots=True)
class Change:
    """What a transaction did to a session.

    rows, lines, blobs, once    what is to be written down of each
    there           the digests of lines that are in nanobot's file already
    chunks          how many of them are new
    is_new          there was no such session
    is_replacing    it has the key and the files of one that is deleted with it
    is_taken        its file was nanobot's alone until now
    is_anew         nothing may be left in the sidecar of what was removed
    is_purged       nor in any copy
    is_shown_anew   nanobot's file has to be written anew
    """

    rows: list[int] = field(default_factory=list)
    lines: set[str] = field(default_factory=set)
    blobs: set[bytes] = field(default_factory=set)
    once: list[str] = field(default_factory=list)
    there: dict[int, bytes] = field(default_factory=dict)
    chunks: int = 0
    is_head: bool = False
    is_document: bool = False
    is_draft: bool = False
    is_new: bool = False
    is_replacing: bool = False
    is_taken: bool = False
    is_purged: bool = False
    is_deleted: bool = False
    is_anew: bool = False
    is_shown_anew: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing was done."""
        is_written = self.is_head or self.is_draft or self.is_anew or self.chunks > 0
        return not is_written and not self.is_deleted


@dataclass(slots=True)
class State:
    """A session and its files. `log_seen` and `main_seen` are what they were when last looked at.

    `title` is what nanobot's line 1 says of the document, and `time_at` where in it the time of
    the last write is, if it can be overwritten there. It `has_news` while another process of ours
    has written to the sidecar, and nanobot's file was not looked at since.
    """

    files: Files
    log: Log
    log_seen: Seen = (0, 0, 0)
    main_seen: Seen = (0, 0, 0)
    title: tuple[FrozenDict, int] = (EMPTY, 0)
    time_at: int | None = None
    has_news: bool = False
    change: Change = field(default_factory=Change)
    fds: dict[str, tuple[int, int]] = field(default_factory=dict)

    _name: str = ""

    @property
    def name(self) -> str:
        """The name of the sidecar, by which a folder knows the session."""
        if not self._name:
            self._name = self.log_path.name
        return self._name

    @property
    def log_path(self) -> Path:
        """The sidecar."""
        return self.files.log(self.record.key)

    @property
    def main_path(self) -> Path:
        """Nanobot's file."""
        return self.files.main(self.record.file)

    def main_there(self) -> Seen | None:
        """What is there now in the place of nanobot's file."""
        return seen_at(f"{self.files.where}/{self.record.file}")

    def move(self, file: str) -> None:
        """Have another file for nanobot, which is still to be written."""
        self.shut("main")
        self.log.head = self.next_record(file=file)
        self.change.is_head = self.change.is_shown_anew = True

    @property
    def held(self) -> Held:
        return self.log.held()

    @property
    def record(self) -> HeadRecord:
        assert self.log.head is not None
        return self.log.head

    @property
    def head(self) -> Head:
        return self.held.head

    def next_record(self, **fields: object) -> HeadRecord:
        """The head as it is now, with what is known of nanobot's file."""
        found = sidecar.record_of(self.head, self.record)
        for name, value in fields.items():
            setattr(found, name, value)
        return found

    def shown(self) -> list[int]:
        """The seqs of the entries that nanobot is to see, in order."""
        held, head = self.held, self.head
        used = next((each for each in head.lines.values() if each.number == head.branch), None)
        if used is None:
            return []
        return [
            seq
            for stretch in heads.path(head.lines, used)
            for seq in held.seqs.get(stretch.branch, ())
            if stretch.after < seq <= stretch.last and _is_shown(held.rows[seq])
        ]

    def entry(self, seq: int) -> Message | UnknownEntry:
        """What an entry says that has a line."""
        held = self.held
        row = held.rows[seq]
        assert row.payload is not None
        whole = row.payload
        if row.holes is not None:
            whole = blobs.fill(
                whole, row.holes, lambda digest: held.blobs[digest][1], f"entry {seq}"
            )
        entry = read_record(whole)
        assert isinstance(entry, (Message, UnknownEntry))
        return entry

    def line(self, seq: int, *, is_appended: bool) -> bytes:
        """The line of an entry in nanobot's file."""
        return page.line_of(self.entry(seq), is_appended=is_appended)

    def metadata(self, count: int) -> Metadata:
        """Line 1 of nanobot's file, in which `count` messages are."""
        head, record = self.head, self.record
        values, cursor = self.title_of_document()
        extra = self.extra()
        if page.ARCHIVED in extra:
            extra = FrozenDict({**extra, page.ARCHIVED: cursor if cursor <= count else 0})
        return Metadata(
            key=head.key,
            created_at=record.born or page.time_text(head.created),
            updated_at=page.time_text(head.updated),
            metadata=values,
            last_consolidated=cursor,
            extra=extra,
        ).within(count)

    def extra(self) -> FrozenDict:
        """What else stands in line 1."""
        text = self.record.extra
        return parse(text, what="line 1").value if text else EMPTY

    def title_of_document(self) -> tuple[FrozenDict, int]:
        """What line 1 has to say of the document."""
        written = self.held.document
        document = read_document(written.body, written.digest, f"session {self.head.key!r}")
        cursor = document.counters.get(CURSOR)
        return document.metadata, cursor if type(cursor) is int and cursor > 0 else 0

    def has_more(self) -> bool:
        """Whether another process of ours has written into the room at the end of the sidecar,
        which its size does not tell, and its time only as finely as the system has it."""
        if self.log_seen[1] == self.log.size or self.log.is_torn:
            return False
        fd, inode = self.fds.get("log", (-1, 0))
        if fd >= 0 and inode == self.log_seen[0]:
            return os.pread(fd, 1, self.log.size) != b"\0"
        fd = private_files.open_regular(self.log_path, os.O_RDONLY)
        try:
            return os.pread(fd, 1, self.log.size) != b"\0"
        finally:
            os.close(fd)

    def open(self, name: Literal["log", "main"]) -> int:
        """A descriptor of the sidecar or of nanobot's file, kept for later."""
        wanted = (self.log_seen if name == "log" else self.main_seen)[0]
        fd, inode = self.fds.get(name, (-1, 0))
        if fd >= 0 and inode == wanted:
            return fd
        self.shut(name)
        path = self.log_path if name == "log" else self.main_path
        fd = private_files.open_regular(path, os.O_RDWR)
        self.fds[name] = (fd, os.fstat(fd).st_ino)
        return fd

    def shut(self, *names: str) -> None:
        """Close descriptors."""
        for name in names or tuple(self.fds):
            fd, _ = self.fds.pop(name, (-1, 0))
            if fd >= 0:
                with suppress(OSError):
                    os.close(fd)


def _is_shown(row: Row) -> bool:
    return row.payload is not None and page.is_shown(row.kind)
