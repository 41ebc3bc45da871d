"""What the bytes of a write-ahead log (WAL) tell without SQLite, and the bug that makes us careful.

    WAL    = header 32 | frame | frame | ...
    header = magic 4 | version 4 | page size 4 | sequence 4 | salts 8 | checksums 8
    frame  = page number 4 | pages in the database, if it ends a commit 4 | salts 8 | checksums 8
             | page

All numbers are big-endian. When SQLite starts the file again from its beginning it changes the
salts and leaves the old frames behind, so a frame counts only with the salts of the header.

SQLite takes no locks on the WAL, so it may be opened and closed here. That is not so for the
database and its -shm file: closing any descriptor of those would drop the POSIX locks that
SQLite holds on them for the whole process.
"""

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

_HEADER = 32
_FRAME = 24
_MAGICS = (0x377F0682, 0x377F0683)  # words of checksums are little-endian, or big-endian
_MASK = 0xFFFFFFFF


class Header(NamedTuple):
    """Whose database it is, in which format, whether there is anything in it, and its stamp."""

    application_id: int
    user_version: int
    has_tables: bool
    stamp: int


class _Wal(NamedTuple):
    fd: int
    head: bytes
    page_size: int
    frames: int  # that the file has room for; those at the end may be old ones

    @property
    def salts(self) -> bytes:
        return self.head[16:24]

    def frame(self, index: int, size: int = _FRAME) -> bytes:
        at = _HEADER + index * (_FRAME + self.page_size)
        return os.pread(self.fd, size, at) if hasattr(os, "pread") else self._read(size, at)

    def _read(self, size: int, at: int) -> bytes:  # Windows
        os.lseek(self.fd, at, os.SEEK_SET)
        return os.read(self.fd, size)

    def is_live(self, index: int) -> bool:
        return self.frame(index)[8:16] == self.salts

    def live(self) -> Iterator[bytes]:
        """The frames, without their pages, up to the first that is an old one."""
        for index in range(self.frames):
            frame = self.frame(index)
            if frame[8:16] != self.salts:
                return
            yield frame

    def sound(self) -> Iterator[bytes]:
        """The same, up to the first that is not as it was written: what SQLite takes."""
        order = ">" if self.head[3] & 1 else "<"
        sums = _sums(self.head[:24], order, (0, 0))
        if sums != struct.unpack(">II", self.head[24:32]):
            return
        for index, frame in enumerate(self.live()):
            page = self.frame(index, _FRAME + self.page_size)[_FRAME:]
            sums = _sums(page, order, _sums(frame[:8], order, sums))
            if sums != struct.unpack(">II", frame[16:24]):
                return
            yield frame


def _sums(data: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    """Checksums that go on with `data`."""
    one, two = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = (one + first + two) & _MASK
        two = (two + second + one) & _MASK
    return one, two


def header_in(path: Path, *, is_checked: bool = False) -> Header | None:
    """What the last committed first page in the WAL says; None if it holds none.

    What a crash has torn may say anything. With `is_checked` only those frames count that SQLite
    would take, by their checksums; that reads all of the WAL, and some 10 MB in a second.
    """
    with _opened(path) as wal:
        if wal is None:
            return None
        found, committed = -1, -1
        for index, frame in enumerate(wal.sound() if is_checked else wal.live()):
            if frame[:4] == b"\0\0\0\1":
                found = index
            if frame[4:8] != b"\0\0\0\0":
                committed = found
        if committed < 0:
            return None
        page = wal.frame(committed, _FRAME + 112)[_FRAME:]
    return Header(
        application_id=int.from_bytes(page[68:72], "big", signed=True),
        user_version=int.from_bytes(page[60:64], "big", signed=True),
        has_tables=page[100:101] != b"\x0d" or page[103:105] != b"\0\0",
        stamp=int.from_bytes(page[40:44], "big"),
    )


def bytes_used(path: Path) -> int:
    """How much of the WAL is in use. The file itself keeps its size when it starts again."""
    with _opened(path) as wal:
        if wal is None:
            return 0
        low, high = 0, wal.frames  # live frames come first: find where they end
        while low < high:
            middle = (low + high) // 2
            if wal.is_live(middle):
                low = middle + 1
            else:
                high = middle
        return _HEADER + low * (_FRAME + wal.page_size) if low else 0


@contextmanager
def _opened(path: Path) -> Iterator[_Wal | None]:
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        fd = os.open(path, flags)
    except FileNotFoundError:
        yield None
        return
    try:
        head = os.read(fd, _HEADER)
        page_size = int.from_bytes(head[8:12], "big")
        if int.from_bytes(head[:4], "big") in _MAGICS and 512 <= page_size <= 65536:
            room = (os.fstat(fd).st_size - _HEADER) // (_FRAME + page_size)
            yield _Wal(fd, head, page_size, max(room, 0))
        else:
            yield None
    finally:
        os.close(fd)


def has_wal_reset_bug(version: tuple[int, ...]) -> bool:
    """Whether this SQLite can damage a database when a commit and a checkpoint meet.

    A distribution may have mended it under an old number; nothing tells, so we say yes.
    """
    if version[:2] == (3, 44):
        return version < (3, 44, 6)
    if version[:2] == (3, 50):
        return version < (3, 50, 7)
    return (3, 7, 0) <= version < (3, 51, 3) or version == (3, 52, 0)
