"""Whose a WAL or a journal is: what belongs to a file is never refused, whoever has left it there.

What does not belong to it is refused; that is tried in `test_bad_inputs_files.py`, and crashes in
the middle of everything in `faults/test_m2_strays.py`.
"""

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import processes
from holdfast.errors import StoreUnavailable
from holdfast.messages import Message
from holdfast.stores import Record, open_store
from holdfast.stores.sqlite import file as sqlite_file
from holdfast.stores.sqlite import header, journal, wal
from holdfast.stores.sqlite.file import SQLiteFile
from holdfast.stores.sqlite.formats import FORMAT
from holdfast.testing.faults import damage

OLD = sorted((Path(__file__).parent / "format").glob("sqlite-*.db"))
PAGE = 4096
FRAME = 24 + PAGE


@pytest.fixture
def path(tmp_path):
    return tmp_path / "chats.db"


def run(scenario, path, **options):
    async def main():
        async with open_store(f"sqlite:{path}", durability="fast", **options) as store:
            return await scenario(store)

    return asyncio.run(main())


async def said(store):
    """Write a session, if there is none yet; everything in it."""
    tenant = store.tenant()
    if not (await tenant.list()).items:
        await tenant.create(Record(key="k"), [Message.user(f"word {n}") for n in range(20)])
    record = await tenant.load("k")
    return [each.entry.text for each in await tenant.read(record.id)]


def stamp(path):
    """What is in the database itself."""
    return int.from_bytes(path.read_bytes()[40:44], "big")


def beside(path, suffix):
    return Path(f"{path}{suffix}")


def crashed(path, target):
    """The files of a store as they are now: what a crash of whoever uses it would leave."""
    for suffix in ("", "-wal", "-journal"):
        if beside(path, suffix).exists():
            shutil.copy(beside(path, suffix), beside(target, suffix))
    return target


# The stamp


def test_every_new_file_has_a_stamp_before_it_has_a_wal(tmp_path):
    """In the database itself, so that no WAL can be the only one to know."""
    stamps = set()
    for number in range(5):
        file = SQLiteFile(tmp_path / f"{number}.db")
        file.open(1)
        file.close(file.connect())
        stamps.add(stamp(file.path))

    assert len(stamps) == 5 and min(stamps) >= header.STAMP_MIN


def test_a_stamp_stays_whatever_is_done_to_the_file(path):
    """Erasing, writing all of it anew, tables of others: it is counted on, and never another."""
    run(said, path)
    before = stamp(path)

    async def scenario(store):
        record = await store.tenant().load("k")
        await store.tenant().erase(record.id, [3])
        await store.tenant().clear(record.id)

    run(scenario, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in ("VACUUM", "CREATE TABLE notes(a)", "ANALYZE", "REINDEX", "VACUUM"):
            db.execute(statement)

    assert before < stamp(path) < before + 20
    assert not header.is_another(stamp(path), before)


@pytest.mark.parametrize("old", OLD, ids=lambda old: old.stem)
def test_a_file_without_a_stamp_gets_one_when_it_is_opened(path, old):
    """And can be opened again whatever of that has reached the database and what the WAL."""
    shutil.copy(old, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA schema_version = 12")  # as SQLite counts by itself
    assert stamp(path) < header.STAMP_MIN

    async def scenario(store):
        crashed(path, path.with_name("crashed.db"))
        return len((await store.tenant().list()).items)

    assert run(scenario, path) == 1
    assert stamp(path) >= header.STAMP_MIN
    left = path.with_name("crashed.db")
    assert stamp(left) < header.STAMP_MIN
    assert wal.header_in(beside(left, "-wal")).stamp >= header.STAMP_MIN
    assert run(scenario, left) == 1


def test_a_backup_has_a_stamp_of_its_own(path):
    async def scenario(store):
        await said(store)
        await store.backup(path.with_name("copy.db"))

    run(scenario, path)

    copy = stamp(path.with_name("copy.db"))
    assert copy >= header.STAMP_MIN and header.is_another(copy, stamp(path))


@pytest.mark.parametrize(
    ("found", "own", "is_another"),
    [
        (3, 7, False),
        (2**30, 7, False),  # an older file that was just given its stamp
        (2**30, 2**30, False),
        (2**30 + 60_000, 2**30, False),
        (2**30 - 60_000, 2**30, False),  # the database was asked a moment later
        (2**30 + 70_000, 2**30, True),
        (7, 2**30, True),
        (0, 0, False),
    ],
)
def test_stamps_are_of_two_files_when_counting_does_not_lead_there(found, own, is_another):
    assert header.is_another(found, own) is is_another


# Every WAL has the first page


def test_every_wal_of_ours_has_the_first_page_from_its_first_commit_on(path, monkeypatch):
    """After each checkpoint, by whichever of two stores, and whichever of them writes next."""
    monkeypatch.setattr(sqlite_file, "WAL_CHECKPOINT_BYTES", 50_000)
    monkeypatch.setattr(sqlite_file, "WAL_TRUNCATE_BYTES", 120_000)
    monkeypatch.setattr("holdfast.stores.sqlite.commits.CHECKPOINT_ROWS", 1)
    salts, missing = set(), []

    async def scenario(one):
        await said(one)
        async with open_store(f"sqlite:{path}", durability="fast") as other:
            record = await one.tenant().load("k")
            for number in range(120):
                tenant = (one if number % 3 else other).tenant()
                if number % 40 == 39:
                    await tenant.delete((await tenant.create(Record(key="gone"))).id)
                await tenant.update(record.id, {"metadata": {"n": number}})
                log = beside(path, "-wal")
                if wal.bytes_used(log):
                    salts.add(log.read_bytes()[16:24])
                    missing.append(wal.header_in(log) is None)

    run(scenario, path)

    assert len(salts) > 5, "the WAL was not started again"
    assert not any(missing)


# What a crash leaves


def killed(path):
    """A store whose process is gone, with all but its first tables in the WAL."""

    async def scenario(store):
        texts = await said(store)
        crashed(path, path.with_name("killed.db"))
        return texts

    return path.with_name("killed.db"), run(scenario, path)


def first_pages(log):
    """Where the first pages are in a WAL."""
    return [at for at in range(32, len(log), FRAME) if log[at : at + 4] == b"\0\0\0\1"]


def test_a_torn_first_page_in_the_wal_is_no_reason_to_refuse(path):
    """
    The last one may be anything: SQLite knows by its checksum that it was never written, and so
    do we, before we say that it speaks of another program, format or file.
    """
    left, _ = killed(path)
    whole = beside(left, "-wal").read_bytes()
    at = first_pages(whole)[-1] + 24
    fields = [*range(at + 40, at + 44), *range(at + 60, at + 64), *range(at + 68, at + 72)]
    for place in fields:
        for torn in (damage.blanked(whole, place, 1), damage.flipped(whole, place * 8 + 6)):
            beside(left, "-wal").write_bytes(torn)
            with closing(sqlite3.connect(crashed(left, path.with_name("plain.db")))) as db:
                (expected,) = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            file = SQLiteFile(crashed(left, path.with_name("ours.db")))

            file.open(FORMAT)

            with closing(file.connect()) as db:
                found = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            file.shut()
            assert found == (expected,)


def test_frames_count_as_far_as_their_checksums_are_right(path):
    """A WAL that is whole says the same with checksums as without; a torn one what came before."""
    left, _ = killed(path)
    log = beside(left, "-wal")
    whole = log.read_bytes()
    found = wal.header_in(log)
    assert found is not None and wal.header_in(log, is_checked=True) == found
    first, last = first_pages(whole)[0], first_pages(whole)[-1]
    assert first < last

    log.write_bytes(damage.flipped(whole, (last + 24 + 41) * 8))  # in the stamp
    assert wal.header_in(log) == found._replace(stamp=found.stamp ^ 1 << 16)
    assert wal.header_in(log, is_checked=True) == found
    log.write_bytes(damage.flipped(whole, (first + 3_000) * 8))
    assert wal.header_in(log, is_checked=True) is None
    log.write_bytes(damage.flipped(whole, 26 * 8))  # a checksum of the header
    assert wal.header_in(log, is_checked=True) is None


# What other programs leave


def restored(db, path):
    """Put all of another store into this file, as `.restore` of the sqlite3 shell does."""
    run(said, path.with_name("other.db"))
    with closing(sqlite3.connect(path.with_name("other.db"))) as other:
        other.backup(db)


SHELL = {
    "a row": ["CREATE TABLE notes(a)", "INSERT INTO notes VALUES(1)"],
    "all anew": ["VACUUM"],
    "many tables": [f"CREATE TABLE notes{n}(a)" for n in range(2_000)],
    "a checkpoint, then a row": ["PRAGMA wal_checkpoint", "UPDATE search SET purges = purges + 1"],
    "an empty WAL": ["PRAGMA wal_checkpoint(TRUNCATE)"],
    "a row in a new WAL": [
        "PRAGMA wal_checkpoint(TRUNCATE)",
        "UPDATE search SET purges = purges + 1",
    ],
    "another mode": ["PRAGMA journal_mode=DELETE", "CREATE TABLE notes(a)"],
    "another mode and back": [
        *("PRAGMA journal_mode=PERSIST", "CREATE TABLE notes(a)", "PRAGMA journal_mode=WAL"),
        "INSERT INTO notes VALUES(1)",
    ],
    "a transaction of another mode": [
        *("PRAGMA journal_mode=TRUNCATE", "PRAGMA cache_size=1", "BEGIN IMMEDIATE"),
        *("UPDATE entries SET payload = zeroblob(9000)", "UPDATE documents SET body = 'x'"),
    ],
    "a transaction": [
        *("PRAGMA cache_size=1", "BEGIN IMMEDIATE"),
        *("UPDATE entries SET payload = zeroblob(9000)", "PRAGMA application_id=1"),
    ],
    "everything from another store": [restored],
}


@pytest.mark.parametrize("is_stamped", [True, False], ids=["stamped", "older"])
@pytest.mark.parametrize("what", SHELL)
def test_what_plain_sqlite_has_done_is_no_reason_to_refuse(path, what, is_stamped):
    """Not while it has the file open, and not when it was killed."""
    texts = run(said, path)
    if not is_stamped:
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("PRAGMA schema_version=30")
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as db:
        for statement in SHELL[what]:
            if callable(statement):
                statement(db, path)
            else:
                db.execute(statement).fetchall()
        left = crashed(path, path.with_name("left.db"))
        SQLiteFile(path).open(FORMAT)

        assert run(said, left) == texts
        with closing(sqlite3.connect(left)) as after:
            assert after.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_file_that_another_process_uses_all_the_time_is_never_refused(path):
    """It commits, checkpoints, erases and writes all anew, while the file is opened and opened."""
    body = """
import asyncio, sys
from holdfast.messages import Message
from holdfast.stores import Record, open_store
from holdfast.stores.sqlite import commits, file
file.WAL_CHECKPOINT_BYTES, commits.CHECKPOINT_ROWS = 50_000, 1

async def main():
    async with open_store(f"sqlite:{sys.argv[1]}", durability="fast") as store:
        record = await store.tenant().create(Record(key="k"))
        say("ready")
        number = 0
        while True:
            number += 1
            done = await store.tenant().append(record.id, [Message.user("x" * 3000)])
            if number % 10 == 0:
                await store.tenant().erase(record.id, [done.last])
            if number % 7 == 0:
                store._commits._db.execute("VACUUM")

asyncio.run(main())
"""

    class Script(processes.Script):
        start = processes.SAY

    with Script(body, path) as script:
        assert script.hears() == "ready"
        for _ in range(60):
            file = SQLiteFile(path)
            file.open(FORMAT)
            file.shut()
        assert script.process.poll() is None


# Journals


def test_a_switch_of_our_own_is_not_taken_for_a_stray(path):
    """As a crash leaves it: two bytes of the first page are changed, and the journal is there."""
    run(said, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=DELETE")
    before = path.read_bytes()
    page = bytearray(before[:PAGE])
    page[18:20] = b"\2\2"
    path.write_bytes(page + before[PAGE:])

    beside(path, "-journal").write_bytes(_journal(before))
    journal.check_journal(path)
    strays = [
        *(_journal(before, pages=2), _journal(before, number=2), _journal(before, records=2)),
        _journal(damage.flipped(before, 41 * 8)),  # another stamp
        _journal(damage.flipped(before, 70 * 8)),  # another program
    ]
    for stray in strays:
        beside(path, "-journal").write_bytes(stray)
        with pytest.raises(StoreUnavailable, match="journal of another database"):
            journal.check_journal(path)

    beside(path, "-journal").write_bytes(_journal(before))
    assert len(run(said, path)) == 20
    assert not beside(path, "-journal").exists()


def _journal(data, *, pages=None, number=1, records=1):
    """The journal of a transaction that changes the first page of a database."""
    page, nonce = data[:PAGE], 12345
    total = nonce + sum(page[at] for at in range(PAGE - 200, 0, -200))
    header = [records, nonce, pages or len(data) // PAGE, 512, PAGE]
    return b"".join(
        (
            bytes.fromhex("d9d505f920a163d7"),
            b"".join(each.to_bytes(4, "big") for each in header),
            bytes(484),
            number.to_bytes(4, "big") + page + total.to_bytes(4, "big"),
        )
    )


def test_a_journal_that_sqlite_would_not_play_back_is_left_to_it(path):
    """Nothing, zeros where its head was, a record that is torn or not counted yet."""
    texts = run(said, path)
    database = path.read_bytes()
    whole = _journal(database)
    for data in (
        *(b"", bytes(600), whole[:100], bytes(28) + whole[28:], whole[:600]),
        *(whole[:512] + bytes(PAGE + 8), _journal(database, number=2, records=0)),
    ):
        beside(path, "-journal").write_bytes(data)

        assert run(said, path) == texts
