"""The sessions of one tenant: found by key or id, loaded, and kept while nobody else writes.

Everything here is done under the lock of the folder. A session that was loaded is held in memory;
whether its files are still the ones it was made of is told by their inodes, sizes and times, once
in each transaction. What another process of ours has appended is read from where we stopped; what
another program did to nanobot's file is adopted.
"""

import os
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from holdfast import private_files
from holdfast.codec import nanobot
from holdfast.codec.nanobot import Metadata
from holdfast.errors import Corrupt, FormatTooNew, HoldfastError, StoreUnavailable
from holdfast.stores.document import Written
from holdfast.stores.jsonl import names, page, sidecar
from holdfast.stores.jsonl.files import Files, Seen, read_all, read_end, seen_at
from holdfast.stores.jsonl.sidecar import HeadRecord, Log
from holdfast.stores.jsonl.state import State

_TAIL = 16 * 1024
_LINE_MAX = 8 * 1024 * 1024  # of nanobot's line 1
_HELD_BYTES = 64 * 1024 * 1024
_HELD_MIN = 8
_TICK_NS = 2 * 10**9  # no file system tells times more coarsely


class Listing(NamedTuple):
    """A session as a list shows it; `problem` is why it cannot be shown."""

    head: HeadRecord
    document: Written
    problem: str = ""


class Folder:
    """The files of a tenant, and the sessions in memory."""

    def __init__(self, files: Files, *, is_base64: bool) -> None:
        self.files = files
        self.where = files.where
        self._logs = str(files.logs)
        self.is_base64 = is_base64
        self.states: OrderedDict[str, State] = OrderedDict()  # by the name of the sidecar
        self._ids: dict[str, str] = {}
        self._has_more = False  # than when `shrink` last looked
        self.is_complete = False  # every id is known; until another process writes
        self._listings: dict[str, tuple[Seen, Listing]] = {}
        self._young: set[str] = set()  # those of `_listings` that had just been written to

    # Finding

    def by_key(self, key: str) -> State | None:
        """The session of this key, as it stands in memory or in its sidecar."""
        return self.at(self.files.log(key).name)

    def by_id(self, id: str) -> State | None:
        """The session of this id."""
        name = self._ids.get(id)
        state = None if name is None else self.at(name)
        if state is not None and state.record.id == id:
            return state
        self._ids.pop(id, None)
        if self.is_complete:
            return None
        for name, listing in self.listings():
            if listing.head.id == id:
                return self.at(name)
        self.is_complete = True
        return None

    def at(self, name: str) -> State | None:
        """The session with this sidecar, brought up to what its sidecar says now."""
        there = seen_at(f"{self._logs}/{name}")
        state = self.states.get(name)
        if there is None:
            self.gone(name)
            return None
        if state is None or there != state.log_seen or state.has_more():
            state = self._catch_up(name, state, there)
        self.states.move_to_end(name)
        return state

    def forget(self, name: str) -> None:
        """Let go of a session in memory."""
        state = self.states.pop(name, None)
        if state is not None:
            state.shut()

    def gone(self, name: str) -> None:
        """A session is there no more: know nothing of it."""
        state, listed = self.states.get(name), self._listings.pop(name, None)
        self._young.discard(name)
        if state is not None:
            self._ids.pop(state.record.id, None)
        if listed is not None:
            self._ids.pop(listed[1].head.id, None)
        self.forget(name)

    def keep(self, state: State) -> None:
        """Hold a session, as it is now."""
        name = state.name
        self._listings.pop(name, None)
        if self.states.get(name) is not state:
            self._has_more = self._has_more or name not in self.states
            self.states[name] = state
        self._ids[state.record.id] = name

    def shrink(self) -> None:
        """Let go of sessions that were not used for long, when those in memory are large."""
        if not self._has_more:
            return
        self._has_more = False
        size = sum(state.log.size for state in self.states.values())
        while size > _HELD_BYTES and len(self.states) > _HELD_MIN:
            name, state = next(iter(self.states.items()))
            size -= state.log.size
            self.forget(name)

    def _catch_up(self, name: str, state: State | None, there: Seen) -> State:
        path = self.files.logs / name
        data, seen = b"", there
        if state is not None and there[0] == state.log_seen[0] and not state.log.is_torn:
            data, seen = read_all(path, state.log.size)
        if state is None or not data.strip(b"\0"):  # another file, or changed in some other way
            self.forget(name)
            state = State(self.files, Log(f"session log {name}"))
            data, seen = read_all(path)
        else:
            state.has_news = True
        state.log_seen = seen
        state.log.read(data)
        state.log.held()
        self.keep(state)
        return state

    # Lists

    def logs(self) -> list[str]:
        """The names of all sidecars."""
        with suppress(FileNotFoundError):
            return sorted(name for name in os.listdir(self.files.logs) if name.endswith(".log"))
        return []

    def has_sessions(self) -> bool:
        """Whether there is any."""
        return bool(self.logs()) or any(self.key_of(name) for name in self.strangers(set()))

    def listings(self) -> list[tuple[str, Listing]]:
        """Every sidecar, and what a list shows of its session."""
        return [(name, each) for name in self.logs() if (each := self.listing(name)) is not None]

    def strangers(self, known: set[str]) -> Iterator[str]:
        """The names of nanobot's files that are not among the known ones."""
        with suppress(FileNotFoundError), os.scandir(self.files.folder) as found:
            files = sorted(
                each.name
                for each in found
                if each.name.endswith(names.SUFFIX) and each.is_file(follow_symlinks=False)
            )
            yield from (name for name in files if name not in known)

    def listing(self, name: str) -> Listing | None:
        """What a list shows of a session, without loading it."""
        there = seen_at(f"{self._logs}/{name}")
        found = self._listings.get(name)
        if there is None:
            self.gone(name)
            return None
        if found is None or found[0] != there:
            try:
                listing = self._read_listing(name)
            except (HoldfastError, OSError) as error:
                listing = _unreadable(name, error)
            found = self._listings[name] = there, listing
            self._ids[listing.head.id] = name
            if time.time_ns() - there[2] < _TICK_NS:
                self._young.add(name)
        return found[1]

    def others_wrote(self) -> None:
        """Another process of ours has written: there may be more sessions, and more in a sidecar.

        A write into its room changes no size, and in the same tick of the clock that files go by
        no time either: what was read of one so young is read again.
        """
        self.is_complete = False
        for name in self._young:
            self._listings.pop(name, None)
        self._young.clear()

    def _read_listing(self, name: str) -> Listing:
        path = self.files.logs / name
        first, _ = sidecar.parse(_read_piece(path, 0).rstrip(b"\n"))
        if first is not None and first.v > sidecar.VERSION:
            raise FormatTooNew(f"session log {name}", first.v, sidecar.VERSION)
        end = read_end(path, _TAIL + sidecar.ROOM_MAX).rstrip(b"\0")
        is_whole = end.endswith(b"\n") and b"\0" not in end
        head = sidecar.last_head(end) if is_whole else None
        if head is not None:
            data = _read_piece(path, head.doc)
            record, is_sound = sidecar.parse(data.partition(b"\n")[0])
            if record is not None and record.doc is not None:
                body, check, digest = record.doc
                return Listing(head, Written(body.encode(), check, digest))
            if record is None or not is_sound:
                return Listing(head, Written(b"", 0, b""))
        state = self.at(name)
        if state is None:
            raise Corrupt(name, "it is gone")
        return Listing(state.record, state.held.document)

    # Names

    def free_name(self, key: str) -> str:
        """The name for the file of a new session, which no other session has."""
        for name in names.names_for(key, is_base64=self.is_base64):
            path = self.files.main(name)
            there = seen_at(path)
            if there is None or (path.is_file() and not path.is_symlink() and not there[1]):
                return name
        raise StoreUnavailable(str(self.files.folder), f"every name for {key!r} is taken")

    def stranger(self, key: str) -> str | None:
        """The file of this key that nanobot has made, if there is one."""
        for name in names.names_of(key, is_base64=self.is_base64):
            path = self.files.main(name)
            there = seen_at(path)
            if there is not None and there[1] and self.key_of(name, key) == key:
                return name
        return None

    def key_of(self, name: str, wanted: str | None = None) -> str | None:
        """Whose file this is, or None. Where no key is stored, `wanted` is preferred."""
        path = self.files.main(name)
        if path.is_symlink() or not path.is_file():
            return None
        try:
            first = (
                _read_piece(path, 0, _LINE_MAX).lstrip(b"\xef\xbb\xbf \t\r\n\0").partition(b"\n")[0]
            )
        except (OSError, HoldfastError):
            return None
        stored = _stored_key(first)
        if stored is None:
            return self._unstored_key(name, wanted)
        return stored or _likeliest(name, wanted)

    def _unstored_key(self, name: str, wanted: str | None) -> str | None:
        """The same of a file whose first line is no metadata: the whole of it has to be read."""
        found = self.read_page(name)
        if found is None or (found.metadata is None and not found.lines):
            return None
        stored = found.metadata.key if found.metadata is not None else None
        return stored or _likeliest(name, wanted)

    def read_page(self, name: str) -> "page.Page | None":
        """What a file holds; None if it is too large to be one."""
        path = self.files.main(name)
        there = seen_at(path)
        if there is None or there[1] > page.BYTES_MAX:
            return None
        with suppress(OSError, StoreUnavailable):
            return page.read_page(read_all(path)[0])
        return None


def _stored_key(first: bytes) -> str | None:
    """The key in line 1: "" if it is metadata without one, None if it is something else."""
    try:
        found = nanobot.decode(first)
    except HoldfastError:
        return None
    return (found.key or "") if isinstance(found, Metadata) else None


def _likeliest(name: str, wanted: str | None) -> str | None:
    keys = names.keys_of(name)
    return wanted if wanted in keys else next(iter(keys), None)


def _read_piece(path: Path, start: int, size: int = -1) -> bytes:
    """A line of a file, from `start` on; not more than `size` of it."""
    with os.fdopen(private_files.open_regular(path, os.O_RDONLY), "rb") as file:
        file.seek(start)
        return file.readline(size)


def _unreadable(name: str, error: Exception) -> Listing:
    head = HeadRecord(0, "", "", "", "", 0, 0, "")
    head.key = name
    return Listing(head, Written(b"", 0, b""), str(error))
