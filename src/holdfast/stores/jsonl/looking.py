"""Looking at nanobot's file before a session is used: is it what we left there?"""

import os
from abc import abstractmethod
from codecs import BOM_UTF8
from contextlib import suppress

from holdfast import ids, private_files
from holdfast.codec import foreign, nanobot
from holdfast.codec.nanobot import Metadata
from holdfast.codec.writing import dumps
from holdfast.entries import Mark
from holdfast.errors import HoldfastError, InvalidInput
from holdfast.frozen import FrozenDict
from holdfast.stores import requests
from holdfast.stores.document import micros
from holdfast.stores.head import Head
from holdfast.stores.held import HeldShelf
from holdfast.stores.jsonl import adopting, page, writing
from holdfast.stores.jsonl.files import Seen, read_all, seen_at
from holdfast.stores.jsonl.folder import Folder
from holdfast.stores.jsonl.page import Page
from holdfast.stores.jsonl.place import Place
from holdfast.stores.jsonl.sidecar import HeadRecord
from holdfast.stores.jsonl.state import State
from holdfast.stores.values import CURSOR, Record

_NOTES_MAX = 100


class StateShelf(HeldShelf):
    """A shelf on sessions in files."""

    @abstractmethod
    def state(self, head: Head) -> State:
        """The session of a head that was found."""


def is_as_left(folder: Folder, head: HeadRecord) -> bool:
    """Whether nanobot's file has the inode and the size that we left it with."""
    there = seen_at(f"{folder.where}/{head.file}")
    return there is not None and there[:2] == head.main


def look(shelf: StateShelf, place: Place, state: State) -> bool:
    """Bring a session up to what nanobot's file says. False if that is gone, and the session too.

    A file that we have read before, and to which another process of ours has appended, is not read
    again if it has the size that the sidecar tells of.
    """
    there = state.main_there()
    if there is None:
        _bury(place, state)
        return False
    if there == state.main_seen:
        return True
    is_left_so = there[0] == state.main_seen[0] and there[:2] == state.record.main
    has_news, state.has_news = state.has_news, False
    if has_news and is_left_so and state.time_at is not None:
        state.main_seen = there
        return True
    data, seen = read_all(state.main_path)
    if state.record.was is not None and seen == tuple(state.record.was):
        state.change.is_head = state.change.is_shown_anew = True  # it was to be replaced
        _settle(place, state, seen, None)
    elif _is_known(state, data, seen):
        with suppress(OSError):
            writing.compact(state, is_sync=place.is_sync)
    else:
        found = page.read_page(data)
        if found.metadata is not None and found.metadata.key not in (None, "", state.record.key):
            _move(place, state)
        else:
            _adopt(shelf, place, state, data, seen, found)
    return True


def _move(place: Place, state: State) -> None:
    """The file has become another session's: ours gets one of its own, with all that we know."""
    name = place.folder(state.record.tenant).free_name(state.record.key)
    state.move(name)
    place.notes.append(f"session {state.head.key!r}: its file is another's now, {name!r} is ours")
    _settle(place, state, (0, 0, 0), None)


def _is_known(state: State, data: bytes, seen: Seen) -> bool:
    """Whether every line is one that we know, in the right place."""
    if data.startswith(BOM_UTF8):
        return False  # which nanobot cannot read
    first, *lines = data.split(b"\n")
    private = [line.encode() for line in state.record.private]
    shown = state.shown()
    if lines[-1:] != [b""] or lines[: len(private)] != private:
        return False
    lines = lines[len(private) : -1]
    if len(lines) != len(shown) or any(
        page.digest_of(line) != state.log.shown.get(seq, b"")[: page.DIGEST_SIZE]
        for line, seq in zip(lines, shown, strict=True)
    ):
        return False
    with suppress(HoldfastError):
        metadata = nanobot.decode(first)
        ours = state.metadata(len(shown))
        names = ("key", "metadata", "last_consolidated", "extra")
        if isinstance(metadata, Metadata) and all(
            getattr(metadata, name) == getattr(ours, name) for name in names
        ):
            _settle_title(state, seen, first)
            return True
    return False


def _settle_title(state: State, seen: Seen, first: bytes) -> None:
    state.main_seen = seen
    state.title = state.title_of_document()
    state.time_at = page.place_of_time(first)


def _adopt(
    shelf: StateShelf, place: Place, state: State, data: bytes, seen: Seen, found: Page
) -> None:
    state.title = state.title_of_document()
    is_damaged = found.lost > 0 and not _is_torn_line_of_ours(state, found, data)
    said = adopting.adopt(shelf, state, found)
    if is_damaged:
        _keep_original(shelf, state, found, data)
    place.notes += [f"session {state.head.key!r}: {each}" for each in said]
    del place.notes[:-_NOTES_MAX]
    first = data.partition(b"\n")[0] if found.is_plain else None
    _settle(place, state, seen, first)


def _keep_original(shelf: StateShelf, state: State, found: Page, data: bytes) -> None:
    """A copy of what cannot be read whole, and a mark that says how much that is."""
    kept = state.files.set_aside(state.head.key, data)
    told = FrozenDict({"lines": found.lost, "kept": kept.name})
    adopting.append_entries(shelf, state, [Mark(what="damaged", data=told)])


def _is_torn_line_of_ours(state: State, found: Page, data: bytes) -> bool:
    """Whether all that cannot be read is the beginning of a line that we know."""
    torn = data.rpartition(b"\n")[2]
    seqs = state.shown()[len(found.lines) :]
    return (
        found.lost == 1
        and bool(torn)
        and bool(seqs)
        and any(
            state.line(seqs[0], is_appended=is_appended).startswith(torn)
            for is_appended in (True, False)
        )
    )


def _settle(place: Place, state: State, seen: Seen, first: bytes | None) -> None:
    """Write down what was found."""
    state.main_seen = seen
    state.time_at = None if first is None else page.place_of_time(first)
    if state.change.is_head:
        writing.commit(state, is_sync=place.is_sync)


def _bury(place: Place, state: State) -> None:
    """Nanobot's file is gone: somebody deleted the session, or it was never finished.

    Its sidecar is set aside, so that whoever did it by mistake can have it back; unless we were
    removing all of it, and were cut off.
    """
    state.shut()
    log = state.log_path
    if state.files.being_removed(state.record.key).exists():
        writing.finish_removal(state)
    else:
        os.replace(log, state.files.aside / f"{log.stem}.{state.record.id}.log")
        if place.is_sync:
            private_files.sync_folder(state.files.aside)
    place.folder(state.record.tenant).gone(log.name)


# Files that were nanobot's alone


def take_in(shelf: StateShelf, place: Place, folder: Folder, name: str, key: str) -> None:
    """Make a session of a file that another program has made."""
    path = folder.files.main(name)
    data, seen = read_all(path)
    found = page.read_page(data)
    metadata = found.metadata or Metadata()
    metadata = page.settled(metadata, len(found.lines))
    counters = {CURSOR: metadata.last_consolidated} if metadata.last_consolidated else {}
    record = Record(key=key, metadata=metadata.metadata, counters=FrozenDict(counters))
    created, updated = (_time(each, seen) for each in (metadata.created_at, metadata.updated_at))
    tenant = folder.files.tenant
    entries = [entry for _, entries in found.lines for entry in entries]
    place.taken = name
    try:
        requests.Create(
            *(tenant, ids.now_us(), record, [adopting.pack(entry) for entry in entries]),
            *(updated, created, False),
        ).run(shelf)
    finally:
        place.taken = ""
    head = shelf.find_key(tenant, key)
    assert head is not None
    state = shelf.state(head)
    _note_lines(state, found)
    state.log.head = state.next_record(
        born=metadata.created_at if foreign.is_time(metadata.created_at) else "",
        extra=dumps(metadata.extra) if metadata.extra else "",
        private=[line.decode(errors="replace") for line in found.private],
    )
    if found.lost:
        _keep_original(shelf, state, found, data)
    state.change.is_taken, state.change.is_shown_anew = True, not found.is_plain
    state.title = state.title_of_document()
    _settle(place, state, seen, data.partition(b"\n")[0] if found.is_plain else None)
    folder.keep(state)


def _note_lines(state: State, found: Page) -> None:
    seq = 1
    for line, entries in found.lines:
        state.change.there[seq] = page.mark_of(line, entries[0])
        seq += len(entries)


def _time(text: str, seen: Seen) -> int:
    """The time in a text, or that of the file."""
    try:
        return micros(foreign.time_of(text))
    except InvalidInput:
        return seen[2] // 1_000
