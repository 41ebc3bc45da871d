"""Where the files of a folder are, and the few things that are done with them.

DIR/telegram_12345678.jsonl         nanobot's file
DIR/.session-files.lock             nanobot's lock, and ours
DIR/.holdfast/logs/<digest>.log     the sidecar, by the digest of the key
DIR/.holdfast/aside/<digest>.*      originals of what could not be read, and of what was lost
DIR/.holdfast/temporary/            files that are being written
DIR/.holdfast/tenants/<digest>/     the folder of a tenant: the same again
"""

import os
import secrets
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from holdfast import private_files
from holdfast.stores.jsonl.names import SUFFIX, base64_name, digest_of, is_usable

OWN = ".holdfast"
LOCK = ".session-files.lock"
GONE = "gone"  # nanobot's file of a session that is being removed, until the rest of it is gone
_CHECKPOINT = ".checkpoint.json"
_READ_STEP = 1 << 22

# Inode, size and time of a file: what tells whether anybody has written to it.
Seen = tuple[int, int, int]


class Files:
    """The paths of one tenant's files."""

    def __init__(self, folder: Path, tenant: str) -> None:
        self.tenant = tenant
        own = folder / OWN
        self.folder = own / "tenants" / digest_of(tenant) if tenant else folder
        self.where = str(self.folder)
        self.logs = self.folder / OWN / "logs"
        self.aside = self.folder / OWN / "aside"
        self.temporary = self.folder / OWN / "temporary"
        self.clock = self.folder / OWN / "clock"
        self.name = self.folder / OWN / "tenant"

    def make(self) -> None:
        """Make the folders that are missing."""
        for folder in (self.logs, self.aside, self.temporary):
            private_files.make_folder(folder)

    def sign(self, tenant: str) -> None:
        """Write down whose folder it is: its name does not tell."""
        if not self.name.exists():
            write_new(self.name, [tenant.encode()], is_sync=True)

    def log(self, key: str) -> Path:
        """The sidecar of a key."""
        return self.logs / f"{digest_of(key)}.log"

    def main(self, file: str) -> Path:
        """Nanobot's file of this name."""
        return self.folder / file

    def new(self, key: str, kind: str) -> Path:
        """The name of a file while it is being written. There is one writer: he has the lock."""
        path = self.temporary / f"{digest_of(key)}.{kind}"
        path.unlink(missing_ok=True)
        return path

    def being_removed(self, key: str) -> Path:
        """What is left of nanobot's file while its session is removed."""
        return self.temporary / f"{digest_of(key)}.{GONE}"

    def copies(self, key: str) -> list[Path]:
        """What was set aside of a session."""
        with suppress(FileNotFoundError):
            return sorted(self.aside.glob(f"{digest_of(key)}.*"))
        return []

    def set_aside(self, key: str, data: bytes) -> Path:
        """Keep a copy of bytes that will not be in any other file; it is on the disk, whatever the
        level: they are not ours."""
        path = self.aside / f"{digest_of(key)}.{secrets.token_hex(8)}{SUFFIX}"
        write_new(path, [data], is_sync=True)
        private_files.sync_folder(self.aside)
        return path

    def checkpoints(self, key: str) -> list[Path]:
        """Where nanobot keeps what a running turn said."""
        names = base64_name(key).removesuffix(SUFFIX) + _CHECKPOINT
        return [self.folder / names] if is_usable(names) else []

    def sweep(self) -> None:
        """Remove what a process that died was writing; nobody writes while this runs.

        Where it was removing a session, that stays to be seen by whoever looks for the session.
        """
        with suppress(FileNotFoundError):
            for path in self.temporary.iterdir():
                is_removal = path.suffix == f".{GONE}"
                if not (is_removal and (self.logs / f"{path.stem}.log").exists()):
                    path.unlink()


def seen_at(path: Path | str) -> Seen | None:
    """What is there now; None if nothing is, or something that is not a regular file."""
    try:
        there = os.lstat(path)
    except FileNotFoundError:
        return None
    return (there.st_ino, there.st_size, there.st_mtime_ns)


def seen(fd: int) -> Seen:
    """The same of an open file."""
    there = os.fstat(fd)
    return (there.st_ino, there.st_size, there.st_mtime_ns)


def read_all(path: Path, start: int = 0) -> tuple[bytes, Seen]:
    """A file from `start` to its end."""
    fd = private_files.open_regular(path, os.O_RDONLY)
    try:
        pieces = []
        while piece := os.pread(fd, _READ_STEP, start):
            pieces.append(piece)
            start += len(piece)
        return b"".join(pieces), seen(fd)
    finally:
        os.close(fd)


def read_end(path: Path, size: int) -> bytes:
    """The last bytes of a file."""
    fd = private_files.open_regular(path, os.O_RDONLY)
    try:
        return os.pread(fd, size, max(os.fstat(fd).st_size - size, 0))
    finally:
        os.close(fd)


def write_new(path: Path, pieces: Iterable[bytes], *, is_sync: bool) -> Seen:
    """Write a file that is not there yet; it is gone again if that fails."""
    fd = private_files.open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        try:
            at = 0
            for piece in pieces:
                at = write_at(fd, piece, at)
            if is_sync:
                sync(fd)
            return seen(fd)
        finally:
            os.close(fd)
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


def write_at(fd: int, data: bytes, at: int) -> int:
    """Write all of it; where the next byte belongs."""
    while data:
        done = os.pwrite(fd, data, at)
        at += done
        data = data[done:]
    return at


if sys.platform == "darwin":
    import fcntl

    def sync(fd: int) -> None:
        """Have a file on the disk, not in its cache."""
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
else:

    def sync(fd: int) -> None:
        """Have a file on the disk."""
        getattr(os, "fdatasync", os.fsync)(fd)
