"""The whole store on disk: its folder, its lock, who is alive in it, and in which order things were
said in it."""

import os
import time
from contextlib import suppress
from pathlib import Path

from holdfast import private_files
from holdfast.errors import StoreUnavailable
from holdfast.file_lock import FileLock
from holdfast.stores.jsonl.files import LOCK, OWN, Files, read_end, sync, write_at
from holdfast.stores.jsonl.folder import Folder
from holdfast.stores.jsonl.names import are_base64
from holdfast.stores.jsonl.sidecar import ROOM_MAX, last_head
from holdfast.stores.owners import Owners

_STAMP_SIZE = 8
_TAIL = 64 * 1024


class Place:
    """A folder of session files, and what is known of it in this process.

    `names` is "base64url", "plain", or None: whatever the files that are there have.
    """

    def __init__(self, folder: Path, *, names: str | None, is_sync: bool) -> None:
        self.path = folder
        self.where = str(folder)
        self.is_sync = is_sync
        self.lock = FileLock(folder / LOCK)
        self.owners = Owners(folder / OWN / "owners")
        self.notes: list[str] = []  # what was adopted, in words
        self.taken = ""  # the name of a file that is being taken in
        self._names = names
        self._folders: dict[str, Folder] = {}
        self._stamps = folder / OWN / "stamp"
        self._stamp = 0
        self._stamp_fd = -1
        self._begun = 0  # the last number when this transaction began
        self._settled = -1  # the same when our last one ended

    def make(self, *, create: bool) -> None:
        """Make the folder ready. A folder that is not there is an error unless it may be made."""
        if not create and not self.path.is_dir():
            raise StoreUnavailable(self.where, "there is no such folder")
        private_files.make_folder(self.path)
        if self.path.is_symlink():
            raise StoreUnavailable(self.where, "it is a link: name the folder itself")
        own = self.path / OWN
        if own.is_symlink():
            raise StoreUnavailable(str(own), "it is a link: remove it")

    def folder(self, tenant: str) -> Folder:
        """The sessions of a tenant. The lock is held."""
        found = self._folders.get(tenant)
        if found is None:
            files = Files(self.path, tenant)
            files.make()
            files.sweep()
            if tenant:
                files.sign(tenant)
            found = Folder(files, is_base64=self._is_base64(files))
            self._folders[tenant] = found
        return found

    def _is_base64(self, files: Files) -> bool:
        """Whether new files are to have the names that a current nanobot looks for."""
        if self._names is not None:
            return self._names == "base64url"
        return are_base64(os.listdir(files.folder))

    def tenants(self) -> list[str]:
        """Those who have sessions."""
        found = [""] if self.folder("").has_sessions() else []
        for path in (self.path / OWN / "tenants").glob(f"*/{OWN}/tenant"):
            name = path.read_text(encoding="utf-8")
            if self.folder(name).has_sessions():
                found.append(name)
        return sorted(found)

    def shrink(self) -> None:
        """Let go of what need not be in memory."""
        for folder in self._folders.values():
            folder.shrink()

    def forget(self) -> None:
        """Let go of everything in memory."""
        for folder in self._folders.values():
            for name in list(folder.states):
                folder.forget(name)
        self._folders.clear()
        if self._stamp_fd >= 0:
            os.close(self._stamp_fd)
            self._stamp_fd = -1

    def begin(self) -> None:
        """A transaction begins. What another process has written since the last one may be new."""
        self._begun = self.last_stamp()
        if self._begun != self._settled:
            for folder in self._folders.values():
                folder.others_wrote()

    # The order of things

    def stamps(self, count: int) -> range:
        """Numbers that are greater than any that this store gave before, in whatever process."""
        if not self._stamp:
            self._stamp = max(self._begun, time.time_ns() // 1_000)
        first = self._stamp + 1
        self._stamp += count
        return range(first, first + count)

    def last_stamp(self) -> int:
        """The last number that was given."""
        if self._stamp_fd < 0:
            self._stamp_fd = private_files.open_regular(self._stamps, os.O_RDWR | os.O_CREAT)
        return int.from_bytes(os.pread(self._stamp_fd, _STAMP_SIZE, 0), "big")

    def number(self) -> int:
        """The number of a new session. It is on disk before it is used, and never given again."""
        self.last_stamp()  # opens the file
        counted = os.pread(self._stamp_fd, _STAMP_SIZE, _STAMP_SIZE)
        last = int.from_bytes(counted, "big") if len(counted) == _STAMP_SIZE else self._highest()
        write_at(self._stamp_fd, (last + 1).to_bytes(_STAMP_SIZE, "big"), _STAMP_SIZE)
        sync(self._stamp_fd)
        return last + 1

    def _highest(self) -> int:
        """The highest number that any session has, when nobody has counted them."""
        found = [0]
        for path in self.path.glob(f"{OWN}/**/logs/*.log"):
            end, *_ = read_end(path, _TAIL + ROOM_MAX).partition(b"\0")  # whole, or not: it has one
            head = last_head(b"\n" + end)
            found.append(head.number if head is not None else 0)
        return max(found)

    def settle(self) -> None:
        """A transaction is over: what was given is written down, and whoever watches looks."""
        stamp, self._stamp = self._stamp or self._begun + 1, 0
        self._settled = -1
        with suppress(OSError):  # what is committed is committed; the clock goes on without it
            write_at(self._stamp_fd, stamp.to_bytes(_STAMP_SIZE, "big"), 0)
            self._settled = stamp

    def version(self) -> int:
        """A number that changes when anybody, nanobot too, has written."""
        with suppress(OSError):
            return hash((self.last_stamp(), os.stat(self.path).st_mtime_ns))
        return 0

    # The clock of `expire`

    def folder_clock(self, tenant: str) -> int | None:
        """When `expire` was last run."""
        with suppress(OSError, ValueError):
            return int(self.folder(tenant).files.clock.read_text(encoding="ascii"))
        return None

    def save_folder_clock(self, tenant: str, now: int) -> None:
        """Remember it."""
        self.folder(tenant).files.clock.write_text(str(now), encoding="ascii")
