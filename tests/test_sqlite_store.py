"""What is special about the SQLite store, beside what every store promises."""

import asyncio
import contextlib
import os
import sqlite3
import subprocess
import sys
import threading
from dataclasses import dataclass
from datetime import timedelta

import pytest

import holdfast
from holdfast.entries import Fold, Mark
from holdfast.errors import (
    Conflict,
    Corrupt,
    DuplicateSession,
    InvalidInput,
    SessionNotFound,
    StoreClosed,
    StoreUnavailable,
)
from holdfast.file_lock import FileLock
from holdfast.ids import now
from holdfast.messages import Message
from holdfast.stores import Record, open_store
from holdfast.stores.requests import Request
from holdfast.stores.sqlite import commits, heads, many, statements
from holdfast.stores.sqlite import store as store_module


def run(scenario, tmp_path, **options):
    async def main():
        async with open_store(f"sqlite:{tmp_path}/chats.db", **options) as store:
            return await scenario(store)

    return asyncio.run(main())


async def session(store, *texts, key="k"):
    return await store.tenant().create(Record(key=key), [Message.user(text) for text in texts])


async def texts(store, id, branch="main"):
    return [each.entry.text for each in await store.tenant().read(id, branch)]


# Batches


@dataclass(slots=True)
class Breaks(Request):
    """Writes something, and then meets an error of SQLite or of Python."""

    error: Exception

    def run(self, shelf):
        shelf._db.execute("INSERT INTO clocks VALUES ('half', 1)")
        raise self.error


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (sqlite3.IntegrityError("no"), StoreUnavailable),
        (sqlite3.OperationalError("no"), StoreUnavailable),
        (TypeError("a row of another kind"), Corrupt),
        (MemoryError(), StoreUnavailable),
        (KeyError("a mistake"), Corrupt),
    ],
    ids=["constraint", "operation", "type", "memory", "key"],
)
def test_one_that_breaks_does_not_break_its_batch(tmp_path, error, wanted):
    """Everything is undone, and each of the others is done by itself."""

    async def scenario(store):
        tenant, record = store.tenant(), await session(store)
        results = await asyncio.gather(
            tenant.append(record.id, [Message.user("a")]),
            store.write(Breaks("", 0, error)),
            tenant.append(record.id, [Message.user("b")], after=99),
            tenant.append(record.id, [Message.user("c")]),
            return_exceptions=True,
        )
        assert [type(each).__name__ for each in results] == [
            "Appended",
            wanted.__name__,
            "Conflict",
            "Appended",
        ]
        assert await texts(store, record.id) == ["a", "c"]
        assert isinstance(results[2], Conflict)

    run(scenario, tmp_path)

    db = sqlite3.connect(tmp_path / "chats.db")
    assert db.execute("SELECT count(*) FROM clocks").fetchone() == (0,)
    db.close()


def test_who_is_interrupted_leaves_no_transaction_behind(tmp_path):
    """Control-C in the middle of a commit, in a program that goes on after it."""

    async def scenario(store):
        tenant, record = store.tenant(), await session(store)
        interrupted = asyncio.create_task(_quietly(store.write(Breaks("", 0, Interrupt()))))
        assert isinstance(await interrupted, Interrupt)
        await tenant.append(record.id, [Message.user("a")])
        assert await texts(store, record.id) == ["a"]

    run(scenario, tmp_path)


class Interrupt(BaseException):
    """As KeyboardInterrupt, which asyncio would take for itself."""


async def _quietly(work):
    try:
        return await work
    except Interrupt as error:
        return error


def test_appends_of_one_round_are_one_transaction(tmp_path):
    """The data version of the file moves once."""

    async def scenario(store):
        made = [await session(store, key=f"k{n}") for n in range(50)]
        db = sqlite3.connect(store.path)
        (before,) = db.execute("PRAGMA data_version").fetchone()
        ran = []
        whole = store._commits._transaction
        store._commits._transaction = lambda *each: ran.append(1) or whole(*each)
        tenant = store.tenant()
        await asyncio.gather(*(tenant.append(each.id, [Message.user("x")]) for each in made))
        assert len(ran) == 1
        assert db.execute("PRAGMA data_version").fetchone() != (before,)
        db.close()

    run(scenario, tmp_path)


def test_a_slow_disk_does_not_stop_the_loop(tmp_path, monkeypatch):
    """The same results, from the writing thread."""
    monkeypatch.setattr("holdfast.stores.writer.QUICK_S", -1.0)

    async def scenario(store):
        store._writer._quick_s = -1.0
        record = await session(store)
        tenant = store.tenant()
        for n in range(20):
            await tenant.append(record.id, [Message.user(str(n))])
        assert store._writer._thread is not None
        assert len(await texts(store, record.id)) == 20

    run(scenario, tmp_path)


# What is known of a session from the last transaction


def test_heads_are_read_once_while_nobody_else_writes(tmp_path):
    """The second append to a session reads nothing, and the chain goes on."""

    async def scenario(store):
        record = await session(store, "a")
        tenant = store.tenant()
        statements = []
        store._commits._db.set_trace_callback(statements.append)
        for text in "bcd":
            await tenant.append(record.id, [Message.user(text)])
        assert not [each for each in statements if each.startswith("SELECT")]
        assert [each for each in statements if each.startswith("INSERT")]
        assert await texts(store, record.id) == list("abcd")
        assert (await tenant.verify()).problems == ()

    run(scenario, tmp_path)


def test_what_many_turns_say_is_written_without_asking_for_each(tmp_path):
    """In few statements, whatever their number, and in the order of each of them."""
    many_turns = sum(count for count, _ in many.INSERT_DRAFTS) + 3

    async def scenario(store):
        tenant = store.tenant()
        made = [await session(store, key=f"k{n}") for n in range(many_turns)]
        leases = [await tenant.begin(each.id, "one", timedelta(hours=1), {}) for each in made]
        ran = []
        store._commits._db.set_trace_callback(ran.append)
        for said in ("a", "b\u2028c"):
            pieces = [(each, f"{said} {n}") for n, each in enumerate(leases) for _ in range(2)]
            assert not any(await tenant.journal_all(pieces))
        assert len([each for each in ran if "drafts" in each]) < len(leases)
        store._commits._db.set_trace_callback(None)
        for n in range(many_turns):
            wanted = (*[f"a {n}"] * 2, *[f"b\u2028c {n}"] * 2)
            assert (await tenant.load(f"k{n}")).draft.chunks == wanted

    run(scenario, tmp_path)


def test_what_is_said_dropped_and_said_again_in_one_batch(tmp_path):
    """What was gathered of a draft goes with it; what another session says stays."""

    async def scenario(store):
        tenant, hour = store.tenant(), timedelta(hours=1)
        one, other = [await session(store, key=key) for key in ("one", "other")]
        lease, beside = [await tenant.begin(each.id, "me", hour, {}) for each in (one, other)]
        again = lease._replace(token=lease.token + 1)
        ran = []
        whole = store._commits._transaction
        store._commits._transaction = lambda *each: ran.append(1) or whole(*each)
        await asyncio.gather(
            tenant.journal(lease, "gone"),
            tenant.journal(beside, "stays"),
            tenant.release(lease, drop=True),
            tenant.begin(one.id, "me", hour, {"said": "again"}),
            tenant.journal(again, "first"),
            tenant.journal(again, "second"),
        )

        assert len(ran) == 1
        draft = (await tenant.load("one")).draft
        assert (draft.chunks, draft.input["said"]) == (("first", "second"), "again")
        assert (await tenant.load("other")).draft.chunks == ("stays",)

    run(scenario, tmp_path)


def test_what_another_store_wrote_is_not_overlooked(tmp_path):
    """Two stores on one file, turn about: each knows a head that the other has moved."""

    async def scenario(store):
        record = await session(store)
        async with open_store(f"sqlite:{store.path}") as other:
            tenants = (store.tenant(), other.tenant())
            for number in range(10):
                done = await tenants[number % 2].append(
                    record.id, [Message.user(str(number))], after=number
                )
                assert done.last == number + 1
            with pytest.raises(Conflict):
                await tenants[0].append(record.id, [Message.user("late")], after=9)
            await tenants[1].delete(record.id)
            with pytest.raises(SessionNotFound):
                await tenants[0].append(record.id, [Message.user("gone")])

    run(scenario, tmp_path)


def test_what_another_program_damaged_is_not_overlooked(tmp_path):
    """A row that changed under a head that was known."""

    async def scenario(store):
        record = await session(store, "a")
        db = sqlite3.connect(store.path)
        with db:
            db.execute("UPDATE sessions SET seq = seq + 1")
        db.close()
        with pytest.raises(Corrupt):
            await store.tenant().append(record.id, [Message.user("b")])

    run(scenario, tmp_path)


def test_more_sessions_than_are_kept_in_mind(tmp_path, monkeypatch):
    """They are forgotten, and read again."""
    monkeypatch.setattr(heads, "KNOWN_MAX", 3)

    async def scenario(store):
        made = [await session(store, key=f"k{n}") for n in range(9)]
        tenant = store.tenant()
        for _ in range(3):
            for each in made:
                await tenant.append(each.id, [Message.user("x")])
        assert len(store._commits._heads.by_id) <= 3 + 1
        assert [len(await texts(store, each.id)) for each in made] == [3] * 9

    run(scenario, tmp_path)


def test_nothing_is_kept_in_mind_of_sessions_that_were_deleted(tmp_path):
    """However many come and go while nobody else writes: a process may run for months."""

    async def scenario(store):
        tenant = store.tenant()
        for number in range(20):
            record = await session(store, "a", key=f"k{number}")
            if number % 2:
                await tenant.clear(record.id)
            await tenant.delete(record.id)
        known = store._commits._heads
        assert (known.by_id, known.complete) == ({}, set())

    run(scenario, tmp_path)


def test_a_turn_that_cannot_begin_leaves_nothing_behind(tmp_path, monkeypatch):
    """The file that shows who has the lease cannot be made; the appends beside it are done."""

    async def scenario(store):
        tenant, record = store.tenant(), await session(store)
        with monkeypatch.context() as broken:
            broken.setattr(store._owners, "mine", _unavailable)
            results = await asyncio.gather(
                tenant.append(record.id, [Message.user("a")]),
                tenant.begin(record.id, "me", timedelta(minutes=1), {"text": "hi"}),
                tenant.append(record.id, [Message.user("b")]),
                return_exceptions=True,
            )
        assert [type(each).__name__ for each in results] == [
            "Appended",
            "StoreUnavailable",
            "Appended",
        ]
        assert (await tenant.verify()).problems == ()
        lease = await tenant.begin(record.id, "me", timedelta(minutes=1), {"text": "hi"})
        assert lease.token == 1
        assert await texts(store, record.id) == ["a", "b"]

    run(scenario, tmp_path)


def _unavailable():
    raise StoreUnavailable("owners", "the folder cannot be written to")


def test_what_is_damaged_is_not_deleted_for_being_old(tmp_path):
    """And it does not keep the others from being deleted."""

    async def scenario(store):
        tenant = store.tenant()
        for key, text in (("a", "x"), ("damaged", "y" * 100_000), ("b", "z")):
            record = Record(key=key, ttl=timedelta(seconds=1))
            await tenant.create(record, [Message.user(text)])
        db = sqlite3.connect(store.path)
        with db:
            assert db.execute("DELETE FROM blobs").rowcount == 1
        db.close()
        later = now() + timedelta(days=1)
        assert (await tenant.expire(later, grace=timedelta(0))).marked == 3
        found = await tenant.expire(later + timedelta(hours=1), grace=timedelta(0))
        assert found.deleted == 2
        assert [each.key for each in (await tenant.list()).items] == ["damaged"]

    run(scenario, tmp_path)


@pytest.mark.parametrize("remove", ["clear", "delete"])
def test_what_is_damaged_can_be_removed_by_who_asks_for_it(tmp_path, remove):
    """Its words leave the search index with it, though nobody knows any more which they were."""

    async def scenario(store):
        tenant = store.tenant()
        record = await session(store, "lost " + "y" * 100_000)
        other = await tenant.create(Record(key="other"), [Message.user("kept")])
        await store.index_all()
        db = sqlite3.connect(store.path)
        with db:
            assert db.execute("DELETE FROM blobs").rowcount == 1
        assert (await tenant.verify()).problems

        await getattr(tenant, remove)(record.id)

        assert (await tenant.verify()).problems == ()
        assert await texts(store, other.id) == ["kept"]
        assert len((await tenant.search("kept")).items) == 1
        assert not (await tenant.search("lost")).items
        vocabulary = "CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, words, row)"
        db.execute(vocabulary)
        assert db.execute(
            "SELECT term FROM temp.terms WHERE term IN ('kept', 'lost')"
        ).fetchall() == [("kept",)]
        db.close()

    run(scenario, tmp_path)


def test_an_update_that_could_not_be_shown_changes_nothing(tmp_path):
    """The record it would answer with has a fold that is damaged: refused before, not after."""

    async def scenario(store):
        tenant, record = store.tenant(), await session(store, "a", "b")
        await tenant.append(record.id, [Fold(first=1, last=2)])
        db = sqlite3.connect(store.path)
        with db:
            db.execute("UPDATE entries SET position = 7 WHERE kind = 'fold'")
        for refused in (
            tenant.update(record.id, {"agent": "other"}),
            tenant.branch(record.id, "try", parent="main", at=1),
        ):
            with pytest.raises(Corrupt):
                await refused
        assert db.execute("SELECT agent, branches FROM sessions").fetchone() == ("", 1)
        db.close()

    run(scenario, tmp_path)


def test_an_append_does_not_ask_for_the_times_of_the_wal(tmp_path, monkeypatch):
    """Who asks makes the next write set new ones, and every sync write the inode as well."""
    asked = []
    for name in ("stat", "lstat"):
        real = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda path, *a, real=real, **b: asked.append(path) or real(path, *a, **b)
        )

    async def scenario(store):
        record = await session(store, "a")
        asked.clear()
        for _ in range(10):
            await store.tenant().append(record.id, [Message.user("b")])
        assert asked and not [path for path in asked if str(path).endswith("-wal")]

    run(scenario, tmp_path)


# Reading


def test_long_and_short_reads_give_the_same(tmp_path):
    """Whether they run in the loop's own thread or in another."""

    async def scenario(store):
        record = await session(store, *(str(n) for n in range(1000)))
        tenant = store.tenant()
        everything = [int(each.entry.text) for each in await tenant.read(record.id)]
        pieces = []
        for start in range(0, 1000, 100):
            some = await tenant.read(record.id, start=start, stop=start + 100)
            pieces += [int(each.entry.text) for each in some]
        assert everything == pieces == list(range(1000))

    run(scenario, tmp_path)


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (statements.FIND_PLACE, "entries_placed"),
        (statements.FIND_FOLDS, "entries_folds"),
        (statements.FIND_ROWS, "sqlite_autoindex_entries_1"),
        (statements.FIND_FIELDS, "sqlite_autoindex_entries_1"),
        (statements.FIND_ALL_FIELDS, "sqlite_autoindex_entries_1"),
        (statements.NEWEST[False, False], "sessions_newest"),
        (statements.NEWEST[True, True], "sessions_newest"),
        (statements.FIND_KEY, "sqlite_autoindex_sessions_1"),
        (many.find_heads(4), "sqlite_autoindex_sessions_2"),
        (statements.OVERDUE, "sessions_mortal"),
    ],
    ids=[
        *("place", "folds", "rows", "fields", "all-fields", "newest", "newest-of-agent", "key"),
        *("heads", "overdue"),
    ],
)
def test_what_is_read_often_is_found_by_an_index(tmp_path, statement, index):
    """And is not sorted afterwards: the cost does not grow with what is stored."""

    async def scenario(store):
        await session(store)

    run(scenario, tmp_path)

    db = sqlite3.connect(tmp_path / "chats.db")
    values = [1] * statement.count("?")
    plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
    db.close()
    assert any(index in line for line in plan), plan
    assert not any("TEMP B-TREE" in line for line in plan), plan


# Processes and loops

FORK = """
import asyncio, os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)
import holdfast
from holdfast.messages import Message
from holdfast.stores import Record

async def child(store, id):
    tenant = store.tenant()
    for n in range(20):
        await tenant.append(id, [Message.user(f"child {n}")])
    await store.close()

async def main(url):
    store = await holdfast.open_store(url)
    tenant = store.tenant()
    record = await tenant.create(Record(key="k"))
    await tenant.append(record.id, [Message.user("before")])
    pid = os.fork()
    if pid == 0:
        # The running loop is the parent's: leave it as it is, and run another in a thread.
        import threading
        thread = threading.Thread(target=lambda: asyncio.run(child(store, record.id)))
        thread.start(); thread.join()
        os._exit(0)
    for n in range(20):
        await tenant.append(record.id, [Message.user(f"parent {n}")])
        await asyncio.sleep(0.001)
    _, status = os.waitpid(pid, 0)
    assert status == 0, status
    await tenant.append(record.id, [Message.user("after")])
    found = [each.entry.text for each in await tenant.read(record.id)]
    assert sorted(found) == sorted(
        ["before", "after"] + [f"{who} {n}" for who in ("child", "parent") for n in range(20)]
    ), found
    assert (await tenant.verify()).problems == ()
    await store.close()
    print("fine")

asyncio.run(main(sys.argv[1]))
"""


def test_parent_and_child_go_on_after_a_fork(tmp_path):
    """Each with connections of its own; nothing is lost, and the file is whole."""
    done = subprocess.run(
        [sys.executable, "-c", FORK, f"sqlite:{tmp_path}/chats.db"],
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.stdout == "fine\n", done.stderr


FORK_WHILE_READING = """
import asyncio, os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)
import holdfast
from holdfast.messages import Message
from holdfast.stores import Record

async def main(url):
    async with holdfast.open_store(url) as store:
        tenant = store.tenant()
        record = await tenant.create(Record(key="k"), [Message.user("a")] * 500)
        for _ in range(10):
            reading = [asyncio.create_task(tenant.read(record.id)) for _ in range(12)]
            await asyncio.sleep(0)
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            assert [len(each) for each in await asyncio.gather(*reading)] == [500] * 12
            os.waitpid(pid, 0)
    print("fine")

asyncio.run(main(sys.argv[1]))
"""


def test_who_reads_in_a_thread_while_the_process_forks_waits_for_it(tmp_path):
    """The connections are closed for that moment. The store is not."""
    done = subprocess.run(
        [sys.executable, "-c", FORK_WHILE_READING, f"sqlite:{tmp_path}/chats.db"],
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.stdout == "fine\n", done.stderr


def test_another_loop_is_told_to_open_its_own(tmp_path):
    """A store belongs to the loop that opened it."""

    async def opened():
        return await open_store(f"sqlite:{tmp_path}/chats.db")

    async def used(store):
        with pytest.raises(InvalidInput, match="loop"):
            await store.tenant().load("k")

    store = asyncio.run(opened())

    asyncio.run(used(store))


def test_before_it_is_open_and_after_it_is_closed(tmp_path):
    """A typed error that says which."""

    async def main():
        store = open_store(f"sqlite:{tmp_path}/chats.db")
        for ask in (store.problems, store.look):
            with pytest.raises(StoreClosed, match="not open yet"):
                ask()
        with pytest.raises(StoreClosed, match=r"not open yet.*async with"):
            await store.tenant().load("k")
        await store.open()
        await store.open()
        await store.close()
        await store.close()
        with pytest.raises(StoreUnavailable, match="closed"):
            await store.tenant().load("k")
        with pytest.raises(StoreUnavailable, match="closed"):
            await store.open()

    asyncio.run(main())


@pytest.mark.parametrize("url", ["sqlite:{}/chats.db", "jsonl:{}/chats.db"])
def test_who_could_not_open_it_tries_again(tmp_path, url):
    """As soon as what was in the way is gone, the same object can be used."""
    place = tmp_path / "chats.db"

    async def main():
        place.symlink_to(tmp_path / "elsewhere")
        store = open_store(url.format(tmp_path))
        with pytest.raises(StoreUnavailable):
            await store.open()
        place.unlink()
        async with store:
            record = await session(store, "a")
            assert await texts(store, record.id) == ["a"]

    asyncio.run(main())


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors are looked at in /proc")
@pytest.mark.parametrize(
    ("url", "lock"), [("sqlite:{}/chats.db", "chats.db-lock"), ("jsonl:{}", ".session-files.lock")]
)
def test_who_stops_waiting_for_an_open_leaves_nothing_open(tmp_path, url, lock):
    """The thread cannot be stopped: what it opens it closes. Whoever opens it then finds it so."""
    others = FileLock(tmp_path / lock)

    async def give_up():
        store = open_store(url.format(tmp_path))
        await store.open()
        await store.close()
        assert others.acquire()
        store = open_store(url.format(tmp_path))
        opening = asyncio.create_task(store.open())
        while "holdfast-lock" not in [each.name for each in threading.enumerate()]:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(opening, 10)
        others.release()
        return store

    async def open_after_all():
        store = await give_up()
        await store.open()
        await session(store, "a")
        assert (await store.tenant().load("k")).seq == 1
        await store.close()

    asyncio.run(give_up())
    others.close()
    assert _open_below(tmp_path) == []
    asyncio.run(open_after_all())
    others.close()
    assert _open_below(tmp_path) == []


def _open_below(folder):
    """The files in a folder of which this process has a descriptor."""
    found = []
    for each in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{each}"))
    return [each for each in found if each.startswith(f"{folder}/")]


def test_a_file_that_was_deleted_is_not_written_to(tmp_path):
    """What is written to a file without a name is gone when it is closed: refused, both ways."""

    async def scenario(store):
        record = await session(store, "a")
        os.rename(store.path, tmp_path / "elsewhere.db")
        for use in (
            store.tenant().append(record.id, [Message.user("b")]),
            store.tenant().load("k"),
        ):
            with pytest.raises(StoreUnavailable, match="replaced or deleted"):
                await use
        os.rename(tmp_path / "elsewhere.db", store.path)
        await store.tenant().append(record.id, [Message.user("b")])
        assert await texts(store, record.id) == ["a", "b"]

    run(scenario, tmp_path)


# Erasing


def test_what_is_still_in_the_file_is_written_anew(tmp_path, monkeypatch):
    """SQLite may leave copies behind; whether it did is looked at, and then all is rewritten."""
    found = [True, False]
    monkeypatch.setattr(commits, "is_left", lambda salts, files: found.pop(0))

    async def scenario(store):
        record = await session(store, "a secret")
        assert await store.tenant().erase(record.id, [1]) == 1
        assert (await store.tenant().verify()).problems == ()

    run(scenario, tmp_path)

    assert found == []


def test_what_cannot_be_removed_is_not_called_erased(tmp_path, monkeypatch):
    """The caller is told, and the others in the batch are not concerned."""
    monkeypatch.setattr(commits, "is_left", lambda salts, files: True)

    async def scenario(store):
        record = await session(store, "a secret")
        results = await asyncio.gather(
            store.tenant().append(record.id, [Message.user("beside")]),
            store.tenant().erase(record.id, [1]),
            return_exceptions=True,
        )
        assert results[0].last == 2
        assert isinstance(results[1], StoreUnavailable)
        assert [
            each.entry and each.entry.text for each in await store.tenant().read(record.id)
        ] == [
            None,
            "beside",
        ]

    run(scenario, tmp_path)


def test_a_checkpoint_that_fails_does_not_repeat_what_is_committed(tmp_path, monkeypatch):
    """The commit is done; the WAL is moved another time."""
    monkeypatch.setattr(commits, "CHECKPOINT_ROWS", 0)

    async def scenario(store):
        record = await session(store)

        def fail():
            raise sqlite3.OperationalError("disk I/O error")

        monkeypatch.setattr(store._file, "checkpoint_due", fail)
        for text in "abc":
            await store.tenant().append(record.id, [Message.user(text)])
        assert await texts(store, record.id) == ["a", "b", "c"]

    run(scenario, tmp_path)


def test_a_backup_is_for_us_alone_and_never_over_something(tmp_path):
    """A file of one piece with mode 0600."""

    async def scenario(store):
        await session(store, "a")
        await store.backup(tmp_path / "copy.db")
        with pytest.raises(InvalidInput, match="already"):
            await store.backup(tmp_path / "copy.db")

    run(scenario, tmp_path)

    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600
    assert not list(tmp_path.glob("copy.db?*"))


def test_deleted_words_are_purged_when_there_is_time(tmp_path):
    """They are not found at once, and not in the file soon afterwards."""

    async def scenario(store):
        record = await session(store, "xylophone")
        assert len((await store.tenant().search("xylophone")).items) == 1
        await store.tenant().delete(record.id)
        assert (await store.tenant().search("xylophone")).items == ()
        await store.index_all()
        await session(store, "other", key="other")
        await store._index()

    run(scenario, tmp_path)

    assert b"xylophone" not in (tmp_path / "chats.db").read_bytes()


def test_a_search_ends_while_others_go_on_writing(tmp_path, monkeypatch):
    """However fast they are: it waits for what was there when it was asked for."""
    monkeypatch.setattr(store_module, "INDEX_STEP", 2)

    async def scenario(store):
        tenant = store.tenant()
        records = [await session(store, "word", key=f"k{number}") for number in range(9)]
        submit, fills = store._writer.submit, []

        async def submit_and_write(request):
            found = await submit(request)
            if type(request).__name__ == "_FillIndex":
                fills.append(found)
                assert len(fills) < 20, "it goes on for ever"
                for each in records:
                    await tenant.append(each.id, [Mark(what="noted")])
            return found

        monkeypatch.setattr(store._writer, "submit", submit_and_write)
        assert len((await tenant.search("word")).items) == 9
        assert fills

    run(scenario, tmp_path)


# Sessions


def test_one_live_object_for_a_key(tmp_path):
    """However many ask at once."""

    async def main():
        async with holdfast.open(f"sqlite:{tmp_path}/chats.db") as sessions:
            asked = (sessions.get_or_create("cli:direct") for _ in range(50))
            found = await asyncio.gather(*asked)
            assert len({id(each) for each in found}) == 1
            assert await sessions.get("cli:direct") is found[0]

    asyncio.run(main())


@pytest.mark.parametrize("url", ["memory:", "sqlite:{}/chats.db"])
def test_who_takes_an_id_that_is_taken_is_told_whose_it_is(tmp_path, url):
    """Under the key that was asked for there is nothing that could be loaded."""

    async def main():
        async with open_store(url.format(tmp_path)) as store:
            record = await session(store, "a", key="first")
            with pytest.raises(DuplicateSession, match="'first'"):
                await store.tenant().create(Record(key="other", id=record.id))

    asyncio.run(main())


@pytest.mark.parametrize("gone", [1, 2, 3])
def test_a_row_that_is_gone_is_noticed_when_the_log_is_read(tmp_path, gone):
    """Also one that is no message: a mark that a tool was started decides what is run again."""

    async def scenario(store):
        tenant = store.tenant()
        entries = [Message.user("a"), Mark(what="started"), Message.user("b"), Message.user("c")]
        record = await tenant.create(Record(key="k"), entries)
        db = sqlite3.connect(store.path)
        db.execute("DELETE FROM entries WHERE seq = ?", (gone,))
        db.commit()
        db.close()
        for read in (tenant.read(record.id), tenant.tail(record.id, count=3)):
            with pytest.raises(Corrupt):
                await read

    run(scenario, tmp_path)
