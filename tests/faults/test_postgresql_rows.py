"""C1, C2, C3, F11, F12, F13 and P1 on PostgreSQL: rows that every shared store has to pass.

The clients, the judges and the controls are those of the rows of the same names; here a server
stands in the place of a file.
"""

import asyncio
import json
import random
import signal
import time

import asyncpg
import pytest

from faults import clients
from faults import test_f12_cancel_at_every_await as f12
from faults.log import read_log, value_of
from faults.test_c1_c2_checker import killed_now_and_then, verdict
from faults.test_c3_barrier_open import HEAD_START_S, PROCESSES
from faults.test_f11_erase import ENTRIES, canary, filled
from faults.test_f13_paused_writer import TTL_MS, acknowledged, is_gone, late, wait_for
from faults.tier import need, pick
from holdfast.messages import Message
from holdfast.stores import open_store
from holdfast.stores.postgresql import outcomes
from holdfast.stores.values import Record
from holdfast.testing.checker import check
from holdfast.testing.faults import forks
from holdfast.testing.journal import read_journals
from postgres_proxy import Proxy
from postgres_server import name_of, server


@pytest.fixture
def url(tmp_path):
    """An empty store."""
    name = name_of(tmp_path)
    yield server().database(name)
    server().give_back(name)


def in_store(url, work):
    async def main():
        async with asyncio.timeout(600), open_store(url) as store:
            return await work(store)

    return asyncio.run(main())


# C1, C2


@pytest.mark.usefixtures("uncovered")
def test_tasks_of_one_process(url, tmp_path):
    """C1: 64 tasks, one store."""
    each, tasks = pick(8, 320), 64

    async def work(store):
        await clients.prepare(store, each)
        await asyncio.gather(
            *(
                clients.client(store, tmp_path / f"task{n}", f"task{n}", each, n)
                for n in range(tasks)
            )
        )
        await clients.judge(store, tmp_path / "judge", each)
        assert (await store.tenant().verify()).problems == ()

    in_store(url, work)

    assert verdict(tmp_path, each * tasks) == []


def test_processes_that_are_killed_now_and_then(programs, url, tmp_path):
    """C2: 8 processes, random SIGKILL. Nobody hears of a deadlock or a lock."""
    need(forks.missing())
    each, kills = pick(30, 1_875), pick(3, 40)
    in_store(url, lambda store: clients.prepare(store, each))

    errors = killed_now_and_then(
        programs("faults.clients:store_process"), each, 8, kills, url, str(tmp_path)
    )

    async def work(store):
        await clients.judge(store, tmp_path / "judge", each)
        assert (await store.tenant().verify()).problems == ()

    in_store(url, work)
    assert errors == []
    assert verdict(tmp_path, each * 8) == []


def test_reading_the_head_without_a_lock_is_caught(url, tmp_path):
    """Control: plain asyncpg that looks where the log ends, and writes behind it."""

    async def main():
        db = [await asyncpg.connect(url) for _ in range(4)]
        await db[0].execute("CREATE TABLE raw(session text, seq int, value text)")
        journals = [clients.Journal(tmp_path / f"{n}", f"{n}") for n in range(4)]

        async def client(n):
            for number in range(20):
                value = f"{n}-{number}"
                start = journals[n].invoked("s", value)
                seq = await db[n].fetchval("SELECT coalesce(max(seq), 0) + 1 FROM raw")
                await db[n].execute("DELETE FROM raw WHERE seq = $1", seq)
                await db[n].execute("INSERT INTO raw VALUES ('s', $1, $2)", seq, value)
                journals[n].appended("s", value, start)

        await asyncio.gather(*map(client, range(4)))
        start = journals[0].now()
        rows = await db[0].fetch("SELECT value FROM raw ORDER BY seq")
        journals[0].read("s", [row[0] for row in rows], start)
        await db[0].execute("DROP TABLE raw")
        for each in (*db, *journals):
            if (closing := each.close()) is not None:
                await closing

    asyncio.run(main())

    assert check(read_journals(sorted(tmp_path.iterdir()))) != []


# C3


def test_everybody_gets_in_and_one_creates(programs, tmp_path):
    """C3: 8 processes open a database in which nothing was ever done: 8 of 8, in every round."""
    need(forks.missing())
    program = programs("faults.opening:store")
    for number in range(pick(2, 50)):
        made = server().new_database()
        (tmp_path / str(number)).mkdir()
        start_ns = time.monotonic_ns() + int(HEAD_START_S * 10**9)
        notes = [tmp_path / str(number) / f"{who}" for who in range(PROCESSES)]
        runs = [
            program.start(server().url(made), str(note), start_ns, who)
            for who, note in enumerate(notes)
        ]
        errors = [run.stderr for run in runs if run.wait() != 0]
        said = [json.loads(note.read_text()) for note in notes if note.exists()]

        assert errors == []
        assert [note["created"] for note in said].count(True) == 1
        assert len({note["id"] for note in said}) == 1
        server().drop(made)


# F11


async def hits(database, word):
    """The tables of the store in which the bytes of a word still are, dead rows included."""
    db = await asyncpg.connect(server().admin(database))
    try:
        found = []
        for (table,) in await db.fetch(
            "SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 't', 'i') AND "
            "(relnamespace = 'holdfast'::regnamespace OR oid IN (SELECT reltoastrelid FROM "
            "pg_class WHERE relnamespace = 'holdfast'::regnamespace))"
        ):
            data = await db.fetchval(
                "SELECT pg_read_binary_file(pg_relation_filepath($1::regclass))", table
            )
            if word.encode() in data.lower():
                found.append(table)
        return found
    finally:
        await db.close()


async def swept(database):
    """What docs/stores.md says: VACUUM FULL writes the tables anew."""
    db = await asyncpg.connect(server().admin(database))
    try:
        for table in (
            "entries",
            "blobs",
            "drafts",
            "documents",
            "once",
            "sessions",
            "words",
            "branches",
        ):
            await db.execute(f"VACUUM FULL holdfast.{table}")
        await db.execute("CHECKPOINT")
    finally:
        await db.close()


@pytest.mark.parametrize("how", ["erase", "clear", "delete"])
def test_what_was_erased_is_in_no_table_after_vacuum(url, how):
    """F11: no reader sees it from then on; its bytes are in dead rows until the tables are written
    anew, and that they are found before shows that they would be found."""
    word, database = canary(7), url.rpartition("/")[2]

    async def work(store):
        tenant = store.tenant()
        id, seqs = await filled(tenant, "s", word, [kind for kind in ENTRIES if "long" not in kind])
        await (tenant.erase(id, seqs) if how == "erase" else getattr(tenant, how)(id))
        assert (await tenant.search(word)).items == ()
        await swept(database)
        left = await hits(database, word)
        assert (await tenant.verify()).problems == ()
        return left

    async def control(store):
        await filled(store.tenant(), "t", word, ["a message"])
        await swept(database)
        return await hits(database, word)

    if server().is_ours:  # on a server of somebody else's, nobody reads its files
        assert in_store(url, work) == []
        assert in_store(url, control) != []


# F12


@pytest.mark.parametrize("do", f12.WRITES)
def test_a_write_that_is_cancelled_has_happened_or_not(url, do):
    """F12: at each await, for every k until it runs through."""

    async def work(store):
        subject, wrong, is_hit, k = f12.StoreUnderTest(store.tenant()), {}, True, 0
        while is_hit:
            k += 1
            is_hit, found = await f12.cancelled(subject, do, k)
            if found:
                wrong[k] = found
        return wrong, k

    wrong, awaits = in_store(url, work)

    assert wrong == {}
    assert awaits > 1


async def foreign_answers(url, calls, delay_s):
    """Who got what belongs to another, when half of all callers are cancelled on a slow line."""
    sessions, foreign, rnd = 20, [], random.Random(3)
    async with Proxy(url) as proxy, open_store(f"{proxy.url}?pool={pick(20, 100)}") as store:
        tenant = store.tenant()
        ids = [
            (await tenant.create(Record(key=f"s{n}"), [Message.user(f"canary{n} 0")])).id
            for n in range(sessions)
        ]
        proxy.delay_s = delay_s

        async def call(number):
            mine = number % sessions
            if number % 3 == 0:
                await tenant.append(ids[mine], [Message.user(f"canary{mine} {number}")])
            found = await tenant.tail(ids[mine], count=rnd.choice([5, 50]))
            record = await tenant.load(f"s{mine}")
            said = {each.entry.text.split()[0] for each in found}
            if said != {f"canary{mine}"} or record.id != ids[mine]:
                foreign.append((number, said, record.key))

        at_once = pick(100, 500)
        for start in range(0, calls, at_once):
            tasks = [asyncio.ensure_future(call(start + n)) for n in range(at_once)]
            await asyncio.sleep(rnd.random() * delay_s * 20)
            for task in rnd.sample(tasks, at_once // 2):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            errors = [t.exception() for t in tasks if not t.cancelled() and t.exception()]
            foreign += errors
        proxy.delay_s = 0
    return foreign


@pytest.mark.usefixtures("uncovered")
def test_nobody_gets_anothers_answer(url):
    """F12: behind a line on which answers come late."""
    calls, delay_s = pick(200, 10_000), pick(0.002, 0.1)

    assert asyncio.run(foreign_answers(url, calls, delay_s)) == []


def test_a_connection_that_is_lent_again_is_caught():
    """Control: a client that lends a line again whose user was cancelled gives out the answer that
    was still on its way. (asyncpg by itself would not: it is a second wall.)"""

    async def echo(reader, writer):
        while line := await reader.readline():
            writer.write(line)
        writer.close()

    async def main():
        there = await asyncio.start_server(echo, "127.0.0.1", 0)
        port = there.sockets[0].getsockname()[1]
        foreign = []
        async with Proxy(f"any://u@127.0.0.1:{port}", delay_s=0.05) as proxy:
            where = proxy.url.rpartition(":")[2]
            reader, writer = await asyncio.open_connection("127.0.0.1", where)
            lock = asyncio.Lock()

            async def ask(n):
                async with lock:
                    writer.write(b"%d\n" % n)
                    if int(await reader.readline()) != n:
                        foreign.append(n)

            asked = asyncio.ensure_future(ask(1))
            await asyncio.sleep(0.001)
            asked.cancel()
            await asyncio.wait([asked])
            await ask(2)
            writer.close()
        there.close()
        return foreign

    assert asyncio.run(main()) != []


# F13


def test_the_late_append_of_a_writer_that_was_stopped_is_refused(programs, url, tmp_path):
    """F13: LeaseLost, every time; and what both were told is stored, is."""
    need(forks.missing())
    holder, taker = programs("faults.leases:hold"), programs("faults.leases:take")
    for number in range(pick(3, 100)):
        logs = [tmp_path / f"{who}{number}" for who in ("a", "b")]
        first = holder.start(url, str(logs[0]), f"s{number}", TTL_MS)
        wait_for(lambda logs=logs, number=number: len(read_log(logs[0])) > 3 + number % 5)
        first.signal(signal.SIGSTOP)
        second = taker.start(url, str(logs[1]), f"s{number}", TTL_MS)
        second.wait(20.0)
        first.signal(signal.SIGCONT)
        wait_for(
            lambda logs=logs, first=first: (
                read_log(logs[0])[-1].outcome == "failed" or is_gone(first.pid)
            )
        )
        first.kill()
        first.wait()
        ours, theirs = map(read_log, logs)

        async def texts(store, number=number):
            tenant = store.tenant()
            id = (await tenant.load(f"s{number}")).id
            return [value_of(each.entry.text) for each in await tenant.read(id)]

        values = in_store(url, texts)
        told = [value for log in (ours, theirs) for value in acknowledged(log)]
        assert ours[-1].error.startswith("LeaseLost"), ours[-1]
        assert all(each.outcome == "acknowledged" for each in theirs), theirs
        assert late(values) == []
        assert sorted(values) == sorted(told)


# P1


async def cut_appends(url, count):
    """Appends through a line that is cut behind every second one; what is there, and how many cuts
    there were. The server has always done what it was asked when the line is cut."""
    async with Proxy(url) as proxy, open_store(proxy.url) as store, asyncio.timeout(600):
        tenant = store.tenant()
        record = await tenant.create(Record(key="s"))
        await tenant.append(record.id, [Message.user("0")])
        for n in range(1, count):
            cuts = proxy.cuts
            proxy.cut_when = lambda data, n=n, cuts=cuts: (
                n % 2 and b"message" in data and proxy.cuts == cuts
            )
            await tenant.append(record.id, [Message.user(f"{n}")], once=None if n % 4 else f"{n}")
        proxy.cut_when = None
        return [each.entry.text for each in await tenant.read(record.id)], proxy.cuts


@pytest.mark.usefixtures("uncovered")
def test_a_commit_whose_answer_is_lost_is_looked_up(url):
    """P1: each append is there once, and its caller is told so."""
    count = pick(20, 2_000)

    found, cuts = asyncio.run(cut_appends(url, count))

    assert found == [f"{n}" for n in range(count)]
    assert cuts == count // 2


def test_guessing_that_it_was_not_written_is_caught(url, monkeypatch):
    """Control: who asks again without looking has written twice."""

    async def guessed(pool, server, tenants, shelf, writer):
        return {}

    monkeypatch.setattr(outcomes, "of_batch", guessed)

    found, _ = asyncio.run(cut_appends(url, 20))

    assert len(found) > len(set(found))
