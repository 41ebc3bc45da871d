"""F06 for the room at the end of a sidecar: any part of the last write may be missing there.

A write into room that is on the disk already changes no size, so after a power cut it is not the
end alone that is missing: any sector of it may be, and what is there instead are zeros.
"""

import asyncio
import os
import shutil

import pytest

from faults.test_f06_torn_jsonl import FILE, KEY, look, nanobot_sees, sidecar, texts_of, turn_of
from faults.tier import some
from holdfast.entries import Mark
from holdfast.messages import Message
from holdfast.stores import open_store
from holdfast.stores.jsonl import sidecar as format_
from holdfast.stores.values import Record

SECTOR = 512


async def _write(folder, turns):
    async with open_store(f"jsonl:{folder}") as store:
        tenant = store.tenant()
        try:
            record = await tenant.load(KEY)
        except Exception:
            record = await tenant.create(Record(key=KEY))
        for turn in turns:
            await tenant.append(record.id, turn_of(turn))


@pytest.fixture
def states(fast_path):
    """The folder before the last append, and after it, which went into room."""
    folder = fast_path / "s"
    asyncio.run(_write(folder, range(3)))
    shutil.copytree(folder, fast_path / "before")
    asyncio.run(_write(folder, [3]))
    folder.rename(fast_path / "after")
    return fast_path


def arranged(states, log, main="before"):
    """A folder as a power cut may leave it."""
    place = states / "place"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(states / "after", place)
    shutil.copy(states / main / FILE, place / FILE)
    sidecar(place).write_bytes(log)
    return place


def logs(states):
    """The sidecar before and after, and where the last write is in it."""
    before, after = (sidecar(states / name).read_bytes() for name in ("before", "after"))
    assert len(before) == len(after), "it went into the room"
    return before, after, len(before.rstrip(b"\0")), len(after.rstrip(b"\0"))


def test_a_write_cut_at_every_byte(states):
    """What is not whole has not happened, whether room or nothing stands behind it."""
    before, after, start, end = logs(states)

    for cut in some(range(start, end + 1), 40):
        place = arranged(states, after[:cut] + before[cut:])
        nanobot_sees(place, texts_of(3))
        texts, _, problems = look(place)
        assert texts == texts_of(4 if cut == end else 3), cut
        assert problems == (), cut


def test_a_write_whose_beginning_is_missing_at_every_byte(states):
    """The end of it, with its head, may be there before the beginning is."""
    before, after, start, end = logs(states)

    for cut in some(range(start, end + 1), 40):
        texts, _, problems = look(arranged(states, before[:cut] + after[cut:]))
        assert texts == texts_of(4 if cut == start else 3), cut
        assert problems == (), cut


def test_any_sector_of_a_write_is_missing(states):
    """In every combination: all of it is there, or nothing has happened."""
    before, after, start, end = logs(states)
    sectors = range(start // SECTOR, -(-end // SECTOR))

    for chosen in some(range(2 ** len(sectors)), 40):
        log = bytearray(before)
        for at, sector in enumerate(sectors):
            if chosen >> at & 1:
                log[sector * SECTOR : (sector + 1) * SECTOR] = after[
                    sector * SECTOR : (sector + 1) * SECTOR
                ]
        texts, _, problems = look(arranged(states, bytes(log)))
        assert texts == texts_of(4 if log == after else 3), chosen
        assert problems == (), chosen


def test_zeros_in_what_was_synced_are_damage(states):
    """They hide nothing that was written later."""
    _, after, start, end = logs(states)
    at = after.index(b"asked 1")
    assert at < start

    log = format_.Log("a sidecar")
    log.read(after[:at] + bytes(7) + after[at + 7 :])

    assert log.size == end
    assert not log.is_torn
    assert sorted(log.held().rows) == [seq for seq in range(1, 13) if seq != 4]


def test_without_the_rule_half_a_write_counts(states, monkeypatch):
    """Control: a reader that looks for a whole head alone takes what is not whole."""
    before, after, start, end = logs(states)
    monkeypatch.setattr(format_, "_synced", lambda data, _: len(data))
    wrong = 0
    for cut in some(range(start + 1, end), 20):
        try:
            texts, _, problems = look(arranged(states, before[:cut] + after[cut:]))
            wrong += texts != texts_of(3) or problems != ()
        except Exception:
            wrong += 1

    assert wrong


def test_what_another_process_writes_into_the_room_is_seen(fast_path):
    """Although neither the size of the sidecar nor its time tells."""

    async def main():
        folder = fast_path / "s"
        await _write(folder, range(3))
        async with open_store(f"jsonl:{folder}") as one, open_store(f"jsonl:{folder}") as other:
            record = await one.tenant().load(KEY)
            log = sidecar(folder)
            was = log.stat()
            await other.tenant().append(record.id, turn_of(3))
            os.utime(log, ns=(was.st_atime_ns, was.st_mtime_ns))
            assert log.stat().st_size == was.st_size
            await one.tenant().append(record.id, turn_of(4))
            return await other.tenant().read(record.id), (await one.tenant().verify()).problems

    rows, problems = asyncio.run(main())

    assert [row.entry.text for row in rows if isinstance(row.entry, Message)] == texts_of(5)
    assert sum(isinstance(row.entry, Mark) for row in rows) == 5
    assert problems == ()


def test_a_list_shows_what_another_process_wrote_into_the_room(fast_path):
    """Likewise: what a list remembers of a session is not older than the session."""

    async def main():
        folder = fast_path / "s"
        await _write(folder, range(3))
        async with open_store(f"jsonl:{folder}") as one, open_store(f"jsonl:{folder}") as other:
            record = await one.tenant().load(KEY)
            (first,) = (await one.tenant().list()).items
            log = sidecar(folder)
            was = log.stat()
            await other.tenant().update(record.id, {"agent": "another"})
            os.utime(log, ns=(was.st_atime_ns, was.st_mtime_ns))
            assert log.stat().st_size == was.st_size
            return first.agent, [each.agent for each in (await one.tenant().list()).items]

    assert asyncio.run(main()) == ("", ["another"])


def test_a_head_does_not_vouch_for_what_another_process_wrote(states):
    """Who wrote the head before it may have been killed before he synced: of two writes that were
    under way, the later one proves nothing of the earlier."""
    _, after, start, end = logs(states)
    place = arranged(states, after, main="after")
    asyncio.run(_write(place, [4]))
    log = sidecar(place).read_bytes()
    assert log[:end] == after[:end]

    texts, _, problems = look(arranged(states, log[:start] + bytes(9) + log[start + 9 :]))

    assert texts == texts_of(3)
    assert problems == ()


def test_what_is_never_synced_has_no_room(fast_path):
    """At level "fast" the end is lost and nothing else, because there is no room to write into."""

    async def fast():
        async with open_store(f"jsonl:{fast_path / 's'}", durability="fast") as store:
            tenant = store.tenant()
            await tenant.append((await tenant.load(KEY)).id, turn_of(3))

    asyncio.run(_write(fast_path / "s", range(3)))
    log = sidecar(fast_path / "s")
    assert log.read_bytes().endswith(b"\0")

    asyncio.run(fast())

    assert log.read_bytes().endswith(b"\n")
