"""How a change of a session comes into its two files.

An append: the sidecar first, synced; then the lines at the end of nanobot's file, escaped so that
no cut falls inside a character, and the 26 characters of `updated_at` over the old ones; synced. It
costs the same however long the files are.

Everything else, a new line 1, another branch, an erasure, writes nanobot's file anew: beside it
first, then the sidecar, which says which file is to be replaced, then the new one over the old one.

Whatever is cut off in between, the sidecar has the whole change or nothing of it, and nanobot's
file is one that nanobot loads with all its history; what is missing in it is put there by whoever
looks at the session next. A write that fails is undone.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from holdfast import private_files
from holdfast.codec import nanobot
from holdfast.stores.jsonl import page, sidecar
from holdfast.stores.jsonl.files import GONE, seen, seen_at, sync, write_at, write_new
from holdfast.stores.jsonl.sidecar import HeadRecord, Record
from holdfast.stores.jsonl.state import Change, State

_SHOWN_STEP = 500
_WASTE_MIN, _WASTE = 256 * 1024, 4
_ROW_BYTES = 250  # of a row beside its payload
Shown = list[tuple[int, bytes]]


class _Lines(NamedTuple):
    """What is put behind nanobot's file."""

    data: bytes
    shown: Shown


class _Anew(NamedTuple):
    """A file that is to be put in the place of nanobot's."""

    path: Path
    size: int
    inode: int
    shown: Shown
    time_at: int | None


def commit(state: State, *, is_sync: bool) -> None:
    """Write down `state.change`. OSError if that fails; then nothing has changed on disk."""
    change = state.change
    if change.is_empty:
        return
    if change.is_deleted:
        remove(state)
        return
    if change.is_taken and not change.is_shown_anew:
        _take(state, is_sync=is_sync)
    elif not (change.is_head or change.is_anew or change.is_draft):
        _append_chunks(state, has_room=is_sync)
    elif _needs_anew(state):
        _replace(state, is_sync=is_sync)
    else:
        _append(state, is_sync=is_sync)
    if change.is_purged:
        _wipe(state)
    state.change = Change()


def _needs_anew(state: State) -> bool:
    """Whether nanobot's file must be written anew; its title is compared when it may differ."""
    change = state.change
    if change.is_new or change.is_anew or change.is_shown_anew:
        return True
    if state.head.branch != state.record.branch:
        return True
    if change.is_document and state.title_of_document() != state.title:
        return True
    return state.time_at is None and bool(_new_lines(state))


def _new_lines(state: State) -> list[int]:
    """The new rows that nanobot is to see."""
    held, there = state.held, state.change.there
    rows, used = held.rows, held.head.branch
    return [
        seq
        for seq in state.change.rows
        if rows[seq].branch == used and page.is_shown(rows[seq].kind) and seq not in there
    ]


# Appending


def _append_chunks(state: State, *, has_room: bool) -> None:
    """Partial output: it need not survive a power cut."""
    chunks = state.held.chunks[len(state.held.chunks) - state.change.chunks :]
    data = sidecar.joined(Record(chunk=each) for each in chunks)
    _append_to_log(state, data, is_sync=False, has_room=has_room)


def _append(state: State, *, is_sync: bool) -> None:
    lines = _lines(state)
    inode, size, _ = state.main_seen
    head = _record(state, main=(inode, size + len(lines.data)))
    old = (state.log.size, size)
    # Before anything is written: what cannot be opened cannot be undone either.
    main = state.open("main") if lines.data else -1
    try:
        data = _records(state, head, lines.shown)
        _append_to_log(state, data, is_sync=is_sync, has_room=is_sync)
        if lines.data:
            _append_to_main(state, main, lines.data, is_sync=is_sync)
    except BaseException:
        _undo(state, *old)
        raise
    state.log.head = head
    state.log.shown.update(lines.shown)


def _lines(state: State) -> _Lines:
    shown: Shown = list(state.change.there.items())
    seqs = _new_lines(state)
    return _Lines(b"".join([_line(state, seq, shown, is_appended=True) for seq in seqs]), shown)


def _line(state: State, seq: int, shown: Shown, *, is_appended: bool) -> bytes:
    """A line, which is noted in `shown`."""
    entry = state.entry(seq)
    line = page.line_of(entry, is_appended=is_appended)
    shown.append((seq, page.mark_of(line[:-1], entry)))
    return line


def _append_to_log(state: State, data: bytes, *, is_sync: bool, has_room: bool) -> None:
    """Into the room at its end, which is made when it is used up. Where nothing is ever synced,
    there is none: a power cut may then leave any part out, and not the end alone."""
    fd, log, there = state.open("log"), state.log, state.log_seen[1]
    end = log.size + len(data)
    has_room = has_room and log.version >= sidecar.ROOM_SINCE
    if there > log.size and (log.is_torn or not has_room):
        os.ftruncate(fd, log.size)  # what somebody was writing when he died
        there = log.size
    write_at(fd, data, log.size)
    if has_room and end > there:
        with suppress(OSError):  # a disk that is full may still have had room for this one
            write_at(fd, sidecar.room(end), end)
    if is_sync:
        sync(fd)
        log.synced = end
    log.size, log.is_torn, state.log_seen = end, False, seen(fd)


def _append_to_main(state: State, fd: int, data: bytes, *, is_sync: bool) -> None:
    write_at(fd, data, state.main_seen[1])
    assert state.time_at is not None
    write_at(fd, page.time_text(state.head.updated).encode(), state.time_at)
    if is_sync:
        sync(fd)
    state.main_seen = seen(fd)


def _undo(state: State, log_size: int, main_size: int) -> None:
    """Cut off what was written. A file that failed is never synced again through its descriptor."""
    for name, size in (("main", main_size), ("log", log_size)):
        fd, _ = state.fds.get(name, (-1, 0))
        with suppress(OSError):
            if fd >= 0 and os.fstat(fd).st_size > size:
                os.ftruncate(fd, size)
        state.shut(name)


# What is written down


def _record(state: State, **fields: object) -> HeadRecord:
    """The head that ends a write, before it is known where the document begins."""
    if state.change.is_document:
        fields["doc"] = state.log.size
    return state.next_record(synced=state.log.synced, **fields)


def _records(state: State, head: HeadRecord, shown: Shown) -> bytes:
    """What an append adds to the sidecar; the document first, because the head points to it."""
    held, change = state.held, state.change
    found: list[Record] = []
    if change.is_document:
        found.append(sidecar.document_record(held.document))
    found += [Record(blob=(digest, held.blobs[digest][1].decode())) for digest in change.blobs]
    found += [
        sidecar.line_record(line) for name, line in held.head.lines.items() if name in change.lines
    ]
    rows, stamps = held.rows, state.log.stamps
    found += [sidecar.row_record(rows[seq], stamps[seq]) for seq in change.rows]
    found += [sidecar.once_record(name, held.once[name]) for name in change.once]
    if shown:
        found += _shown_records(shown)
    chunks: list[str] = []
    if change.is_draft:
        found.append(sidecar.draft_record(held.draft))
        chunks = held.chunks
    elif change.chunks:
        chunks = held.chunks[len(held.chunks) - change.chunks :]
    found.append(Record(head=head))
    found += [Record(chunk=each) for each in chunks]
    return sidecar.joined(found)


def _shown_records(shown: Shown) -> Iterator[Record]:
    for at in range(0, len(shown), _SHOWN_STEP):
        yield Record(shown=shown[at : at + _SHOWN_STEP])


def _whole_log(state: State, head: HeadRecord, shown: Shown) -> Iterator[bytes]:
    """A sidecar with what is in force and nothing else."""
    first = sidecar.write(Record(v=sidecar.VERSION))
    yield first
    head.doc, head.synced = len(first), 0
    yield sidecar.write(sidecar.document_record(state.held.document))
    for record in sidecar.everything(state.held, state.log.stamps):
        yield sidecar.write(record)
    for record in _shown_records(shown):
        yield sidecar.write(record)
    yield sidecar.write(Record(head=head))
    for chunk in state.held.chunks:
        yield sidecar.write(Record(chunk=chunk))


# Replacing


def _take(state: State, *, is_sync: bool) -> None:
    """A sidecar for a file that was nanobot's alone, and stays as it is."""
    shown: Shown = list(state.change.there.items())
    head = _record(state, main=state.main_seen[:2])
    _put_log(state, head, shown, is_sync=is_sync)
    state.log.head, state.log.shown = head, dict(shown)


def compact(state: State, *, is_sync: bool) -> None:
    """Leave out of the sidecar what is of no use any more, if that is most of it."""
    rows = state.held.rows.values()
    live = sum(len(row.payload or b"") + _ROW_BYTES for row in rows)
    live += sum(len(data) for _, data in state.held.blobs.values())
    if state.log.size > max(_WASTE_MIN, _WASTE * live):
        shown = [(seq, state.log.shown[seq]) for seq in state.shown() if seq in state.log.shown]
        head = state.next_record()
        _put_log(state, head, shown, is_sync=is_sync)
        state.log.head, state.log.shown = head, dict(shown)


def _put_log(state: State, head: HeadRecord, shown: Shown, *, is_sync: bool) -> None:
    """A new sidecar in the place of the old one, if there is one."""
    fresh = state.files.new(state.head.key, "log")
    log = state.log_path
    data = list(_whole_log(state, head, shown))
    try:
        write_new(fresh, data, is_sync=is_sync or _is_there(log))
        state.shut("log")
        _rename(fresh, log, is_sync=is_sync)
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
    there = seen_at(log)
    assert there is not None
    state.log.size, state.log_seen = sum(map(len, data)), there
    state.log.version = sidecar.VERSION
    state.log.synced, state.log.is_torn = state.log.size, False


def _replace(state: State, *, is_sync: bool) -> None:
    anew = _write_page(state, is_sync=is_sync)
    main = state.main_path
    old_size = state.log.size
    is_anew = state.change.is_new or state.change.is_anew
    try:
        head = _record(state, main=(anew.inode, anew.size), was=seen_at(main))
        if is_anew:
            _put_log(state, head, anew.shown, is_sync=is_sync)
        else:
            data = _records(state, head, anew.shown)
            _append_to_log(state, data, is_sync=is_sync, has_room=is_sync)
        state.shut("main")
        kept = _keep(state, main)
        _rename(anew.path, main, is_sync=is_sync)
    except BaseException:
        _undo_replace(state, anew.path, old_size, is_anew=is_anew)
        raise
    with suppress(OSError):
        kept.unlink(missing_ok=True)
    here = seen_at(main)
    assert here is not None
    state.main_seen, state.log.head = here, head
    state.log.shown = dict(anew.shown) if is_anew else state.log.shown | dict(anew.shown)
    state.log.lines = state.head.lines
    state.title, state.time_at = state.title_of_document(), anew.time_at


def _write_page(state: State, *, is_sync: bool) -> _Anew:
    """Nanobot's file as it is to be, under another name."""
    seqs = state.shown()
    first = nanobot.encode_metadata(state.metadata(len(seqs)))
    shown: Shown = []

    def pieces() -> Iterator[bytes]:
        yield first
        yield from (line.encode() + b"\n" for line in state.record.private)
        for seq in seqs:
            yield _line(state, seq, shown, is_appended=False)

    path = state.files.new(state.head.key, "page")
    inode, size, _ = write_new(path, pieces(), is_sync=is_sync or _is_there(state.main_path))
    return _Anew(path, size, inode, shown, page.place_of_time(first))


def _is_there(target: Path) -> bool:
    """Whether a file is to be replaced. The new one is then on the disk first, at every level: what
    is in the old one may have been safe for years, and a rename can be there before its bytes."""
    return os.path.lexists(target)


def _rename(source: Path, target: Path, *, is_sync: bool) -> None:
    os.replace(source, target)
    if is_sync:
        private_files.sync_folder(target.parent)


def _keep(state: State, main: Path) -> Path:
    """A second name for nanobot's file, until the one in its place is there for good."""
    kept = state.files.new(state.head.key, "old")
    with suppress(OSError):
        os.link(main, kept)
    return kept


def _undo_replace(state: State, fresh: Path, log_size: int, *, is_anew: bool) -> None:
    """A new session is not there. Where the sidecar was put in the place of another, nanobot's
    file is written anew by whoever looks next."""
    files = state.files
    main, kept = state.main_path, files.temporary / f"{fresh.stem}.old"
    with suppress(OSError):
        fresh.unlink(missing_ok=True)
    if state.change.is_new and not state.change.is_replacing:
        for path in (main, state.log_path):
            with suppress(OSError):
                path.unlink(missing_ok=True)
    elif not is_anew:
        with suppress(OSError):
            os.replace(kept, main)
        _undo(state, log_size, state.main_seen[1])


def remove(state: State) -> None:
    """Everything of a session. Nanobot's file goes first: without it there is no session."""
    files, main = state.files, state.main_path
    gone = files.new(state.record.key, GONE)
    try:
        os.replace(main, gone)
        private_files.sync_folder(files.folder)
        finish_removal(state)
    except BaseException:
        with suppress(OSError):
            os.replace(gone, main)
        raise


def finish_removal(state: State) -> None:
    """What is to be done when nanobot's file is out of the way; the sidecar is the last to go,
    because it is what leads here again."""
    state.shut()
    files, key = state.files, state.record.key
    for path in (*files.checkpoints(key), *files.copies(key), state.log_path):
        path.unlink(missing_ok=True)
    with suppress(OSError):  # it is removed; what is left of it in `temporary` is swept away
        files.being_removed(key).unlink(missing_ok=True)
        private_files.sync_folder(files.logs)


def _wipe(state: State) -> None:
    """Remove every copy of what a session held before."""
    for path in (*state.files.copies(state.head.key), *state.files.checkpoints(state.head.key)):
        path.unlink(missing_ok=True)
    state.files.sweep()
