"""The rollback journal that lies beside a database, and whether SQLite may play it back.

    journal = header, in a sector of its own | record | record | ...
    header  = magic 8 | records 4 | nonce 4 | pages in the database 4 | sector size 4 | page size 4
    record  = page number 4 | page as it was | checksum 4

SQLite plays back any journal that has the right name, before it looks for a WAL. A database in WAL
mode has one of its own only while it is switched to WAL, or back: SQLite keeps the first page in
it, changes two bytes of that page, and deletes the journal; a crash may leave it there. What holds
anything else beside such a database belongs to another one, and would be written over ours.
"""

import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from holdfast.errors import StoreUnavailable
from holdfast.stores.sqlite.header import APPLICATION_ID, is_another

_MAGIC = bytes.fromhex("d9d505f920a163d7")
_HEADER = 28
_SECTOR_MIN = 512
_NOT_COUNTED = 0xFFFFFFFF  # as many records as there is room for

# Another process reads the database: if we closed it, the locks of SQLite on it would be dropped.
_LOOK = """
import os, sys
with open(sys.argv[1], "rb") as file:
    size = os.fstat(file.fileno()).st_size
    sys.stdout.buffer.write(size.to_bytes(8, "big") + file.read(100))
"""


class _Journal(NamedTuple):
    """A journal that SQLite would play back. `first` is its first record."""

    records: int
    nonce: int
    pages: int
    page_size: int
    first: bytes

    @property
    def is_whole(self) -> bool:
        """Whether the first record is as it was written; SQLite goes no further if not."""
        if len(self.first) < self.page_size + 8:
            return False
        page, found = self.first[4:-4], int.from_bytes(self.first[-4:], "big")
        return (self.nonce + sum(page[self.page_size - 200 : 0 : -200])) & 0xFFFFFFFF == found


class _Database(NamedTuple):
    """What the first 100 bytes of a database, and its size, say of it."""

    size: int
    head: bytes

    @property
    def is_ours_in_wal_mode(self) -> bool:
        return _number(self.head, 68) == APPLICATION_ID and self.head[18:20] == b"\2\2"

    @property
    def page_size(self) -> int:
        size = int.from_bytes(self.head[16:18], "big")
        return 65536 if size == 1 else size


def check_journal(path: Path) -> None:
    """StoreUnavailable if SQLite would play a journal back that is not of this database."""
    beside = Path(f"{path}-journal")
    journal = _read(beside)
    if journal is None:
        return
    database = _look_at(path)
    if not database.is_ours_in_wal_mode or _is_of(journal, database):
        return
    # If it is the same now, it lay there when the database was in WAL mode; else somebody is in
    # the middle of a transaction of another mode.
    if _read(beside) == journal:
        why = "it is the journal of another database: move it away (do not delete it)"
        raise StoreUnavailable(str(beside), why)


def _is_of(journal: _Journal, database: _Database) -> bool:
    """Whether it is from a switch to or from WAL, or nothing comes of it."""
    if journal.page_size != database.page_size:
        return False
    if journal.pages != -(-database.size // database.page_size):
        return False
    if not journal.records or not journal.is_whole:
        return True
    number, page = _number(journal.first, 0), journal.first[4:-4]
    is_ours = _number(page, 68) == APPLICATION_ID
    is_same = not is_another(_number(page, 40), _number(database.head, 40))
    return journal.records == 1 and number == 1 and is_ours and is_same


def _read(path: Path) -> _Journal | None:
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        fd = os.open(path, flags)
    except FileNotFoundError:
        return None
    try:
        size, head = os.fstat(fd).st_size, os.read(fd, _HEADER)
        if size < _SECTOR_MIN or head[:8] != _MAGIC:
            return None
        records, nonce, pages, sector, page_size = struct.unpack(">5I", head[8:])
        if not (_is_power(sector, 32) and _is_power(page_size, 512)):
            return None
        os.lseek(fd, sector, os.SEEK_SET)
        first = os.read(fd, page_size + 8)
    finally:
        os.close(fd)
    if records == _NOT_COUNTED:
        records = max(size - sector, 0) // (page_size + 8)
    return _Journal(records, nonce, pages, page_size, first)


def _look_at(path: Path) -> _Database:
    command = [sys.executable, "-I", "-S", "-c", _LOOK, str(path)]
    done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - our own program
    if done.returncode:
        raise OSError(f"cannot look at the database: {done.stderr.decode().strip()[-200:]}")
    return _Database(int.from_bytes(done.stdout[:8], "big"), done.stdout[8:])


def _is_power(number: int, least: int) -> bool:
    return least <= number <= 65536 and not number & (number - 1)


def _number(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "big")
