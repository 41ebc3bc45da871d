"""What is special about the PostgreSQL store, beside what every store promises."""

import asyncio
import os
import socket
import subprocess
import sys
from datetime import timedelta

import asyncpg
import pytest
from asyncpg.connection import Connection

from holdfast.entries import Mark
from holdfast.errors import (
    Corrupt,
    FormatTooNew,
    InvalidInput,
    StoreClosed,
    StoreUnavailable,
    Unsupported,
)
from holdfast.messages import Message
from holdfast.stores import Record, open_store
from holdfast.stores.postgresql import pool, tables
from holdfast.stores.postgresql import statements as sql
from holdfast.stores.postgresql import store as store_module
from holdfast.stores.postgresql.errors import translated
from holdfast.stores.postgresql.heads import session_of, tenant_of
from holdfast.stores.postgresql.server import SETTINGS, as_array
from postgres_proxy import Proxy
from postgres_server import name_of, server

HOUR = timedelta(hours=1)
GUARDED = [table.name for table in tables.metadata.sorted_tables if "tenant" in table.c]


@pytest.fixture
def url(tmp_path):
    """An empty store."""
    name = name_of(tmp_path)
    yield server().database(name)
    server().give_back(name)


@pytest.fixture
def fresh():
    """A database in which nothing was ever done."""
    made = server().new_database()
    yield made
    server().drop(made)


def database_of(url):
    return url.rsplit("/", 1)[1]


def run(scenario, url, **options):
    async def main():
        async with asyncio.timeout(60), open_store(url, **options) as store:
            return await scenario(store)

    return asyncio.run(main())


async def session(store, *texts, key="k", tenant=""):
    messages = [Message.user(text) for text in texts]
    return await store.tenant(tenant).create(Record(key=key), messages)


async def texts(store, id):
    return [each.entry.text for each in await store.tenant().read(id)]


async def appended(store, record, text, **rest):
    return await store.tenant().append(record.id, [Message.user(text)], **rest)


# Batches


def test_appends_of_one_round_are_one_statement(url, monkeypatch):
    """Of many callers, to many sessions."""

    async def scenario(store):
        records = [await session(store, "a", key=f"k{n}") for n in range(10)]
        written, write = [], store._commits._write

        async def counted(link, tenants, shelf, tickets, **options):
            written.append(len(tickets))
            return await write(link, tenants, shelf, tickets, **options)

        monkeypatch.setattr(store._commits, "_write", counted)
        await asyncio.gather(*(appended(store, records[n % 10], f"{n}") for n in range(50)))
        assert written == [50]
        assert (await store.tenant().verify()).problems == ()

    run(scenario, url)


def test_two_branches_of_a_session_grow_in_one_statement(url):
    """Each by its own entries, with seqs that both share."""

    async def scenario(store):
        tenant, record = store.tenant(), await session(store, "a")
        await tenant.branch(record.id, "side", parent="main", at=1)
        for _ in range(2):  # the second time both branches are known
            await asyncio.gather(
                *(
                    tenant.append(record.id, [Message.user(f"{branch} {n}")], branch=branch)
                    for n in range(3)
                    for branch in ("main", "side")
                )
            )
        for branch in ("main", "side"):
            rows = await tenant.read(record.id, branch)
            assert [each.entry.text for each in rows] == ["a"] + [
                f"{branch} {n}" for n in range(3)
            ] * 2
        assert (await tenant.verify()).problems == ()

    run(scenario, url)


def test_a_head_that_is_known_is_not_read_again_and_one_that_moved_is(url):
    """Who appends again and again asks once; when another store wrote, it is told and goes on."""

    async def scenario(store):
        record = await session(store, "a")
        reads, read = [], store._commits._read

        async def counted(*arguments):
            reads.append(arguments)
            return await read(*arguments)

        store._commits._read = counted
        for n in range(5):
            await appended(store, record, f"{n}")
        assert len(reads) == 0
        async with open_store(url) as other:
            await appended(other, record, "theirs")
        done = await appended(store, record, "ours")
        assert len(reads) == 1
        assert done.first == 8
        assert (await texts(store, record.id))[-2:] == ["theirs", "ours"]

    run(scenario, url)


def test_a_finish_drops_the_draft_whatever_was_done_in_between(url):
    """A session that was updated during its turn has no draft left when the turn is over."""

    async def scenario(store):
        tenant, record = store.tenant(), await session(store, "a")
        lease = await tenant.begin(record.id, "one", HOUR, {"say": "b"})
        await tenant.update(record.id, {"metadata": {"title": "x"}})
        await tenant.journal(lease, "so far")
        await tenant.update(record.id, {"metadata": {"title": "y"}})
        await tenant.append(record.id, [Message.user("b")], lease=lease, finish=True)
        assert (await tenant.load("k")).draft is None

    run(scenario, url)


def test_one_that_cannot_be_written_does_not_stand_in_the_way_of_the_others(url):
    """A session whose place is taken by a row that nobody wrote; its neighbours go on."""

    async def scenario(store):
        broken, sound = await session(store, key="broken"), await session(store, key="sound")
        db = await asyncpg.connect(server().admin(database_of(url)))
        await db.execute(
            'INSERT INTO holdfast.entries(session, seq, tenant, branch, position, kind, "check", '
            "link) SELECT session, 1, tenant, 0, 0, '\\x00', 0, '\\x00' FROM holdfast.sessions "
            "WHERE id = $1",
            broken.id.encode(),
        )
        await db.close()
        results = await asyncio.gather(
            appended(store, sound, "a"),
            appended(store, broken, "b"),
            appended(store, sound, "c"),
            return_exceptions=True,
        )
        assert [type(each).__name__ for each in results] == ["Appended", "StoreUnavailable"] + [
            "Appended"
        ]
        assert sorted(await texts(store, sound.id)) == ["a", "c"]

    run(scenario, url)


# A second wall


async def counts(db):
    return {name: await db.fetchval(f"SELECT count(*) FROM holdfast.{name}") for name in GUARDED}


def test_whoever_does_not_say_for_whom_he_asks_sees_nothing(url):
    """Row-level security on every table that holds something of a tenant, for its owner too."""

    async def scenario(store):
        for name in ("mine", "theirs"):
            tenant = store.tenant(name)
            record = await session(store, "a", "b" * 100_000, tenant=name)
            await tenant.append(record.id, [Message.user("c")], once="x")
            await tenant.begin(record.id, "one", HOUR, {})
            await tenant.expire()
        db = await asyncpg.connect(url)
        setting = f"SELECT set_config('{tables.SETTING}', $1, false)"
        assert set((await counts(db)).values()) == {0}
        await db.fetchval(setting, f"{{{tenant_of('nobody')}}}")
        assert set((await counts(db)).values()) == {0}
        await db.fetchval(setting, f"{{{tenant_of('mine')}}}")
        mine = await counts(db)
        assert all(mine.values())
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await db.execute(
                "INSERT INTO holdfast.clocks VALUES ($1, 0)", tenant_of("somebody else")
            )
        await db.fetchval(setting, f"{{{tenant_of('mine')},{tenant_of('theirs')}}}")
        assert await counts(db) == {name: 2 * count for name, count in mine.items()}
        await db.close()

    run(scenario, url)


def test_without_the_policy_everything_would_be_seen(url):
    """Control: the same rows, for a role that is above the rules."""

    async def scenario(store):
        await session(store, "a", tenant="mine")
        db = await asyncpg.connect(server().admin(database_of(url)))
        assert (await counts(db))["entries"] == 1
        await db.close()

    run(scenario, url)


def test_the_tenants_who_have_sessions_are_told(url):
    """Their names are seen by nobody who does not ask for all of them."""

    async def scenario(store):
        names = ("", "a\0b", "ü", "gone")
        for name in names:
            await session(store, "a", tenant=name)
        gone = await store.tenant("gone").load("k")
        await store.tenant("gone").delete(gone.id)
        assert await store.tenants() == ("", "a\0b", "ü")

    run(scenario, url)


def test_the_index_of_words_holds_no_word(url):
    """Only numbers, and those of another tenant for the same word are others."""

    async def scenario(store):
        for name in ("mine", "theirs"):
            await session(store, "walrus", tenant=name)
            await store.tenant(name).search("walrus")
        db = await asyncpg.connect(url)
        mine, theirs = [row[0] for row in await db.fetch("SELECT words FROM holdfast.words")]
        assert len(mine) == len(theirs) == 2  # the word, and the session
        assert not set(mine) & set(theirs)
        await db.close()

    run(scenario, url)


# Connections


def test_a_search_ends_while_others_go_on_writing(url, monkeypatch):
    """However fast they are: it waits for what was there when it was asked for."""
    monkeypatch.setattr(store_module, "INDEX_STEP", 2)

    async def scenario(store):
        tenant = store.tenant()
        records = [await session(store, "word", key=f"k{number}") for number in range(9)]
        submit, fills = store._lanes.submit, []

        async def submit_and_write(request):
            found = await submit(request)
            if type(request).__name__ == "_FillIndex":
                fills.append(found)
                assert len(fills) < 20, "it goes on for ever"
                for each in records:
                    await tenant.append(each.id, [Mark(what="noted")])
            return found

        monkeypatch.setattr(store._lanes, "submit", submit_and_write)
        assert len((await tenant.search("word")).items) == 9
        assert fills

    run(scenario, url)


@pytest.mark.parametrize("options", ["", "?notify=off"])
def test_a_session_that_somebody_has_locked_holds_up_no_other(url, options):
    """A machine that stands still in a transaction, or one that is long: those who write to other
    sessions go on, first in the same batch and then in the next ones."""

    async def scenario(store):
        records = [await session(store, key=f"k{n}") for n in range(4)]
        async with open_store(url) as other, other._pool.lend() as link, asyncio.timeout(60):
            await link.begin(as_array([tenant_of("")]))
            await link.raw.fetch(sql.LOCK_HEAD, session_of("", records[0].id))
            for text in ("a", "b"):
                tasks = [asyncio.ensure_future(appended(store, each, text)) for each in records]
                await asyncio.gather(*tasks[1:])
                assert not tasks[0].done()
            await link.raw.execute("ROLLBACK")
        await asyncio.gather(*tasks)
        return [await texts(store, each.id) for each in records]

    first, *others = run(scenario, f"{url}{options}")

    assert sorted(first) == ["a", "b"]
    assert others == [["a", "b"]] * 3


@pytest.mark.parametrize("do", ["create", "update", "begin", "branch", "erase", "clear", "delete"])
def test_any_other_commit_whose_answer_is_lost_is_looked_up(url, do):
    """It has happened once, and its caller is told what came of it."""

    async def main():
        async with Proxy(url) as proxy, open_store(proxy.url) as store, asyncio.timeout(60):
            tenant, record = store.tenant(), await session(store, "a", "b")
            calls = {
                "create": lambda: tenant.create(Record(key="new")),
                "update": lambda: tenant.update(
                    record.id, {"metadata": {"n": 1}}, {"metadata": {"n": None}}
                ),
                "begin": lambda: tenant.begin(record.id, "one", HOUR, {}),
                "branch": lambda: tenant.branch(record.id, "side", parent="main", at=1),
                "erase": lambda: tenant.erase(record.id, [1]),
                "clear": lambda: tenant.clear(record.id),
                "delete": lambda: tenant.delete(record.id),
            }
            proxy.cut_when = lambda data: b"COMMIT" in data and proxy.cuts == 0
            found = await calls[do]()
            assert proxy.cuts == 1
            if do in ("erase", "delete"):
                assert found == 1
            elif do != "begin":
                assert found == await tenant.load("new" if do == "create" else "k")
            assert (await tenant.verify()).problems == ()

    asyncio.run(main())


def test_a_connection_of_one_who_was_cancelled_is_not_lent_again(url):
    """Its answer may still be on the way, and the next one would take it for his own."""

    async def main():
        async with Proxy(url) as proxy, open_store(proxy.url) as store, asyncio.timeout(60):
            records = [await session(store, f"canary {n}", key=f"k{n}") for n in range(4)]
            proxy.delay_s = 0.05
            tasks = [asyncio.ensure_future(texts(store, record.id)) for record in records]
            await asyncio.sleep(0.08)
            before = set(store._pool.links())
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            assert all(task.cancelled() for task in tasks)
            assert not before & set(store._pool.links())
            proxy.delay_s = 0
            for n, record in enumerate(records):
                assert await texts(store, record.id) == [f"canary {n}"]

    asyncio.run(main())


def test_it_goes_on_when_the_server_has_ended_every_connection(url):
    """Reads, appends, leases and watchers, without a word to their callers."""

    async def scenario(store):
        tenant, record = store.tenant(), await session(store, "a")
        lease = await tenant.begin(record.id, "one", HOUR, {})
        await appended(store, record, "b")
        name = database_of(url)
        await asyncio.to_thread(server().sql, END, name)
        assert await texts(store, record.id) == ["a", "b"]
        await asyncio.to_thread(server().sql, END, name)
        await appended(store, record, "c", lease=lease)
        await tenant.journal(lease, "so far")
        async with open_store(url) as other, asyncio.timeout(60):
            # The connection that tells that we are alive comes back by itself, in its own time.
            while not (await other.tenant().load("k")).draft.is_running:
                pass
        assert await texts(store, record.id) == ["a", "b", "c"]

    run(scenario, url)


READS = {
    "tenants": lambda store, _: store.tenants(),
    "look": lambda store, _: store.look(),
    "load": lambda store, _: store.tenant().load("k"),
    "read": lambda store, id: store.tenant().read(id),
    "list": lambda store, _: store.tenant().list(),
    "search": lambda store, _: store.tenant().search("a"),
    "verify": lambda store, _: store.tenant().verify(),
    "export": lambda store, id: store.tenant().export(id),
}


@pytest.mark.parametrize("do", READS)
def test_what_is_read_is_read_again_when_the_connection_breaks(url, do):
    """At its first and at its second request; nobody is told."""

    async def main():
        async with Proxy(url) as proxy, open_store(proxy.url) as store:
            record = await session(store, "a")
            wanted = await READS[do](store, record.id)
            for number in (1, 2):
                requests = iter(range(1, 1_000))
                proxy.cut_when = lambda _, n=number, r=requests: next(r) == n
                assert await READS[do](store, record.id) == wanted
            assert proxy.cuts == 2

    asyncio.run(main())


END = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()"""


def test_a_server_that_does_not_answer_is_given_up(url, monkeypatch):
    """A typed error within a bounded time; and it goes on when the server is there again."""
    monkeypatch.setattr(pool, "LONG_S", 0.1)
    monkeypatch.setattr("holdfast.stores.postgresql.server.CONNECT_S", 0.2)

    async def main():
        async with Proxy(url) as proxy, open_store(proxy.url) as store, asyncio.timeout(60):
            record = await session(store, "a")
            proxy.is_dead = True
            with pytest.raises(StoreUnavailable):
                await texts(store, record.id)
            writing = asyncio.ensure_future(appended(store, record, "b"))
            await asyncio.sleep(0.5)
            proxy.is_dead = False
            await writing
            assert await texts(store, record.id) == ["a", "b"]

    asyncio.run(main())


@pytest.mark.parametrize("do", ["open", "read", "write"])
def test_a_connection_closed_between_two_steps_of_a_request_is_no_damage(url, monkeypatch, do):
    """The driver finds nothing where its protocol was: that is a connection which is lost."""
    prepare, closed = Connection._get_statement, []

    async def prepared(link, *args, **options):
        statement = await prepare(link, *args, **options)
        if len(closed) < 2:
            closed.append(link)
            link.terminate()
        return statement

    async def main():
        async with open_store(url) as store, asyncio.timeout(60):
            record = await session(store, "a")
            monkeypatch.setattr(Connection, "_get_statement", prepared)
            if do == "open":
                async with open_store(url) as another:
                    assert await texts(another, record.id) == ["a"]
            elif do == "write":
                await appended(store, record, "b")
            assert await texts(store, record.id) == (["a", "b"] if do == "write" else ["a"])
            assert len(closed) == 2

    asyncio.run(main())


def test_a_row_of_a_wrong_kind_is_damage_all_the_same():
    """What our own code stumbles over is no lost connection, though it finds nothing as well."""
    with pytest.raises(Corrupt, match="AttributeError"), translated("there"):
        None.bind_execute  # noqa: B018


def test_who_finds_all_connections_in_use_is_told_so(url):
    """Within the limit, and with the way out."""

    async def scenario(store):
        store._pool._wait_s = 0.05
        async with store._pool.lend(), store._pool.lend():
            with pytest.raises(StoreUnavailable, match="pool"):
                await store.tenant().load("k")

    run(scenario, f"{url}?pool=2")


def test_what_connects_while_the_store_is_closed_leaves_no_connection(url, monkeypatch):
    """Who waits for a connection is told, and one that comes too late is closed as well: that of a
    read, and the one that is kept."""

    async def main():
        store = open_store(f"{url}?pool=2")
        await store.open()
        record = await session(store, "a")
        store._pool.drop_idle()
        connect, made = store._server.connect, []
        are_made, is_closed = asyncio.Event(), asyncio.Event()

        async def late():
            link = await connect()
            made.append(link)
            if len(made) == 3:  # two in the pool, for whom a third waits; and the one that is kept
                are_made.set()
            await is_closed.wait()
            return link

        monkeypatch.setattr(store._server, "connect", late)
        asked = [asyncio.create_task(texts(store, record.id)) for _ in range(3)]
        asked.append(asyncio.create_task(store._holder.hold()))
        await are_made.wait()

        await store.close()
        is_closed.set()

        found = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(each) for each in found] == [StoreClosed] * 4
        assert all(link.is_closed for link in made)

    asyncio.run(asyncio.wait_for(main(), 60))


def test_every_wait_has_a_limit(url):
    """The server itself ends statements, waits for locks, and transactions that are left open."""

    async def scenario(store):
        async with store._pool.lend() as link:
            names = ("statement", "lock", "idle_in_transaction_session")
            await link.begin("{}")
            found = [await link.raw.fetchval(f"SHOW {name}_timeout") for name in names]
            await link.raw.execute("COMMIT")
            return found

    assert run(scenario, url) == ["30s", "10s", "30s"]
    assert run(scenario, f"{url}?notify=off") == ["30s", "10s", "30s"]
    assert run(scenario, f"{url}?statement_timeout=7s") == ["7s", "10s", "30s"]


def test_a_store_comes_back_while_the_server_still_holds_its_lost_connection(url, monkeypatch):
    """The server has not noticed that it leads nowhere, and keeps the lock of those who are alive
    for it: it is told to let it go, and not waited for."""
    monkeypatch.setitem(SETTINGS, "lock_timeout", "60s")

    async def main():
        async with Proxy(url) as proxy, open_store(proxy.url) as store, asyncio.timeout(30):
            tenant, record = store.tenant(), await session(store, "a")
            other = await session(store, key="other")
            lease = await tenant.begin(record.id, "one", HOUR, {})
            proxy.forget()

            await tenant.begin(other.id, "one", HOUR, {})

            await appended(store, record, "b", lease=lease)
            async with open_store(url) as another:
                assert (await another.tenant().load("k")).draft.is_running

    asyncio.run(main())


def test_a_connection_that_nobody_uses_is_kept_alive(url):
    """From both sides, in the pool and where it is listened: a firewall forgets what is silent."""

    async def scenario(store):
        await store._holder.hold()
        found = []
        async with store._pool.lend() as lent:
            for link in (lent, *store._holder.links()):
                ours = link.raw._transport.get_extra_info("socket")
                assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
                names = ("idle", "interval", "count")
                found.append([await link.raw.fetchval(f"SHOW tcp_keepalives_{n}") for n in names])
                if hasattr(socket, "TCP_KEEPIDLE"):
                    assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60
        return found

    assert run(scenario, url) == [["60", "10", "3"]] * 2
    assert run(scenario, f"{url}?tcp_keepalives_idle=7") == [["7", "10", "3"]] * 2


FORK = """
import asyncio, os, sys
from holdfast.messages import Message
from holdfast.stores import open_store
from holdfast.stores.values import Record

async def write(tenant, id, who):
    for n in range(10):
        await tenant.append(id, [Message.user(f"{who} {n}")])

async def main(url):
    store = await open_store(url)
    tenant = store.tenant()
    record = await tenant.create(Record(key="k"), [Message.user("before")])
    await tenant.append(record.id, [Message.user("warm")])
    pid = os.fork()
    if pid == 0:
        async def child():
            await write(tenant, record.id, "child")
            await store.close()
        try:
            asyncio.run(child())
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    await write(tenant, record.id, "parent")
    _, status = os.waitpid(pid, 0)
    assert status == 0, status
    await tenant.append(record.id, [Message.user("after")])
    found = [each.entry.text for each in await tenant.read(record.id)]
    wanted = [f"{who} {n}" for who in ("child", "parent") for n in range(10)]
    assert sorted(found) == sorted(["before", "warm", "after"] + wanted), found
    assert (await tenant.verify()).problems == ()
    await store.close()
    print("fine")

asyncio.run(main(sys.argv[1]))
"""


def test_parent_and_child_go_on_after_a_fork(url):
    """Each with connections of its own."""
    done = subprocess.run(
        [sys.executable, "-c", FORK, url], capture_output=True, text=True, timeout=60
    )

    assert done.stdout == "fine\n", done.stderr


def test_another_loop_is_told_to_open_its_own(url):
    """A store belongs to the loop that opened it."""

    async def opened():
        return await open_store(url)

    async def used(store):
        with pytest.raises(InvalidInput, match="loop"):
            await store.tenant().load("k")

    with asyncio.Runner() as loop:
        store = loop.run(opened())

        asyncio.run(used(store))

        loop.run(store.close())


# Watching


def test_writers_tell_of_sessions_that_are_watched_and_of_no_others(url):
    """NOTIFY takes a lock that all commits of a server share."""

    async def scenario(store):
        watched, other = await session(store, key="one"), await session(store, key="two")
        heard = []
        watching = store.tenant().watch(watched.id)
        first = asyncio.ensure_future(anext(watching))
        await asyncio.sleep(0.2)
        async with open_store(url) as another:
            listen = store._holder._on_news
            store._holder._on_news = lambda channel: (heard.append(channel), listen(channel))
            for n in range(5):
                await appended(another, other, f"{n}")
            await appended(another, watched, "hello")
            stored = await asyncio.wait_for(first, 5)
        assert stored.entry.text == "hello"
        assert len([each for each in heard if each is not None]) == 1
        await watching.aclose()

    run(scenario, url)


def test_what_is_written_while_a_watcher_reads_is_not_missed(url):
    """The bell rings between his look and his waiting."""

    async def scenario(store):
        record = await session(store, "a")
        async with store.watching("", record.id) as watched:
            await watched.news()  # from here on he is told
            store._heard(None)
            await asyncio.wait_for(watched.news(), 2)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(watched.news(), 0.05)

    run(scenario, url)


def test_behind_a_pooler_nothing_outlives_a_transaction(url):
    """notify=off: watching by looking, leases by their time, settings in every transaction."""

    async def scenario(store):
        tenant, record = store.tenant(), await session(store, "a", "x" * 100_000)
        watching = tenant.watch(record.id)
        first = asyncio.ensure_future(anext(watching))
        await asyncio.sleep(0.1)
        async with open_store(f"{url}?notify=off") as other:
            await appended(other, record, "b", once="b")
        assert (await asyncio.wait_for(first, 5)).entry.text == "b"
        await watching.aclose()
        lease = await tenant.begin(record.id, "one", timedelta(milliseconds=50), {})
        await tenant.journal(lease, "so far")
        await asyncio.sleep(0.1)
        assert (await tenant.begin(record.id, "two", HOUR, {})).left.chunks == ("so far",)
        assert [hit.stored.seq for hit in (await tenant.search("b")).items] == [3]
        async with store._pool.lend() as link:
            assert not await link.raw.fetchval(f"SELECT current_setting('{tables.SETTING}', true)")
            assert await link.raw.fetchval("SELECT count(*) FROM pg_prepared_statements") == 0
            assert await link.raw.fetchval("SELECT count(*) FROM holdfast.entries") == 0

    run(scenario, f"{url}?notify=off")


# The server and the format


def test_a_newer_format_is_refused_unread(fresh):
    run(_nothing, server().url(fresh))
    server().sql("UPDATE holdfast.format SET version = 99", fresh)

    with pytest.raises(FormatTooNew):
        run(_nothing, server().url(fresh))


def test_a_store_whose_policies_were_taken_away_is_not_opened(fresh):
    """And one without one of its columns neither."""
    run(_nothing, server().url(fresh))
    server().sql("ALTER TABLE holdfast.entries NO FORCE ROW LEVEL SECURITY", fresh)
    with pytest.raises(Corrupt, match="row-level security"):
        run(_nothing, server().url(fresh))
    server().sql("ALTER TABLE holdfast.entries FORCE ROW LEVEL SECURITY", fresh)
    server().sql("ALTER TABLE holdfast.entries DROP COLUMN seal", fresh)
    with pytest.raises(Corrupt, match="entries"):
        run(_nothing, server().url(fresh))


def test_a_database_without_a_store_is_left_alone_if_asked(fresh):
    with pytest.raises(StoreUnavailable, match="no store"):
        run(_nothing, server().url(fresh), create=False)

    assert server().sql("SELECT FROM pg_namespace WHERE nspname = 'holdfast'", fresh) == []


def test_the_level_of_durability_is_read_back(url):
    """Whatever the server or the role has as its default."""
    name = database_of(url)
    for level, default, wanted in (
        ("sync", "off", "on"),
        ("sync", "remote_apply", "on"),
        ("fast", "on", "off"),
    ):
        server().sql(f"ALTER DATABASE {name} SET synchronous_commit = {default}")

        async def scenario(store, wanted=wanted):
            async with store._pool.lend() as link:
                assert await link.raw.fetchval("SHOW synchronous_commit") == wanted

        run(scenario, url, durability=level)
    server().sql(f"ALTER DATABASE {name} RESET synchronous_commit")


def test_what_is_doubtful_about_the_server_is_named(url):
    """Each with the way out; a sound setting is not blamed."""

    async def look(store):
        return store.problems()

    name = database_of(url)
    found = run(look, url)
    as_superuser = run(look, server().admin(name))

    if server().is_ours:
        assert any("fsync" in each for each in found)
    assert not any("row-level security" in each for each in found)
    assert any("row-level security" in each for each in as_superuser)


async def _nothing(store):
    pass


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:hunter2@h/db?pool=none",
        "postgresql://u:hunter2@h/db?pool=1",
        "postgresql://u:hunter2@h/db?notify=perhaps",
        "postgresql://u:hunter2@h:/db",
        "postgresql://u:hunter2@h:port/db",
        "postgresql://u:hunter2@[h/db",
        "postgresql://u:hunter2@127.0.0.1:1/db",
        "postgresql://u:hunter2@127.0.0.1:1,127.0.0.1:2/db",
        "postgresql://u:hunter2@127.0.0.1:1/db?sslmode=perhaps",
        "postgresql://u:hunter2@h/db\0",
    ],
)
def test_a_url_that_leads_nowhere_tells_no_password(url, monkeypatch):
    """A typed error, and nothing of the password in it or behind it."""
    monkeypatch.setattr("holdfast.stores.postgresql.store.TRIES_MAX", 1)

    with pytest.raises((InvalidInput, StoreUnavailable)) as caught:
        run(_nothing, url)

    error = caught.value
    while error is not None:
        assert "hunter2" not in f"{error} {error!r}"
        error = error.__cause__ or error.__context__


def test_a_store_that_is_shown_tells_no_password():
    store = open_store("postgresql://u:hunter2@h/db")

    for each in (store, store.__dict__, store._server.__dict__):
        assert "hunter2" not in repr(each)


def test_several_hosts_and_the_one_that_can_be_written_to_is_used(url):
    """Also when it is not the first; with what its user and its options are for all of them."""
    host = url.partition("@")[2].partition("/")[0]

    async def scenario(store):
        record = await session(store, "a")
        assert await texts(store, record.id) == ["a"]

    run(scenario, url.replace(host, f"127.0.0.1:1,{host}"))


def test_without_the_extra_it_says_what_to_install():
    """And nothing of it is imported before it is asked for."""
    body = """
import sys
sys.modules["asyncpg"] = None
from holdfast.stores import open_store
from holdfast.errors import Unsupported
open_store("memory:")
try:
    open_store("postgresql://h/db")
except Unsupported as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", body], capture_output=True, text=True)

    assert "holdfast[postgres]" in done.stdout, done.stderr


def test_a_backup_is_not_made_here_and_the_way_out_is_named(url, tmp_path):
    async def scenario(store):
        with pytest.raises(Unsupported, match="pg_dump"):
            await store.backup(tmp_path / "copy")

    run(scenario, url)
    assert not os.path.exists(tmp_path / "copy")
