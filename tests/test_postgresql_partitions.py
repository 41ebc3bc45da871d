"""The PostgreSQL store works on partitioned tables: the recipe of docs/scale.md is run here."""

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from holdfast.errors import Conflict, SessionNotFound
from holdfast.messages import Message
from holdfast.stores import Record, open_store
from holdfast.stores.postgresql import statements as sql
from holdfast.stores.postgresql.heads import tenant_of
from holdfast.stores.postgresql.lanes import BATCHES_MAX
from holdfast.stores.postgresql.names import SETTING
from postgres_server import ROLE, recipe, server

HOUR = timedelta(hours=1)
PARTS = 8
PARTED = [table for table, columns in sql.COLUMNS.items() if "session" in columns]


@pytest.fixture
def fresh():
    """A database with an empty store."""
    made = server().new_database()
    run(_nothing, made)
    yield made
    server().drop(made)


@pytest.fixture
def database(fresh):
    """A database whose store was partitioned before anything was written to it."""
    server().sql(recipe(), fresh, ROLE)
    return fresh


def run(scenario, database):
    async def main():
        async with asyncio.timeout(60), open_store(server().url(database)) as store:
            return await scenario(store)

    return asyncio.run(main())


async def _nothing(_store):
    pass


def test_every_table_that_knows_of_a_session_is_partitioned(database):
    """By `session`, and `names` by its own key; with the same columns, indexes and policies."""
    found = server().sql(
        "SELECT partrelid::regclass::text, pg_get_partkeydef(partrelid),"
        " (SELECT count(*) FROM pg_inherits WHERE inhparent = partrelid)"
        " FROM pg_partitioned_table",
        database,
    )
    plain = server().new_database()
    run(_nothing, plain)
    shapes = [_shape(name) for name in (plain, database)]
    server().drop(plain)

    keys = {name: "name" if name == "names" else "session" for name in PARTED}
    assert {tuple(row) for row in found} == {
        (f"holdfast.{name}", f"HASH ({key})", PARTS) for name, key in keys.items()
    }
    assert shapes[0] == shapes[1]


def _shape(database):
    """Columns, indexes and policies of our tables; storage options of what holds the rows."""
    names = ",".join(f"'{name}'" for name in PARTED)
    columns = server().sql(
        "SELECT table_name, column_name, data_type, is_nullable, is_identity, column_default"
        f" FROM information_schema.columns WHERE table_name IN ({names})",
        database,
    )
    indexes = server().sql(
        "SELECT c.relname, i.indisprimary, am.amname, pg_get_expr(indpred, indrelid),"
        " ARRAY(SELECT pg_get_indexdef(indexrelid, k + 1, true)"
        " FROM generate_subscripts(indkey, 1) k)"
        " FROM pg_index i JOIN pg_class c ON c.oid = indrelid JOIN pg_class x ON x.oid = indexrelid"
        f" JOIN pg_am am ON am.oid = x.relam WHERE c.relname IN ({names})",
        database,
    )
    policies = server().sql(
        f"SELECT tablename, policyname, cmd, qual FROM pg_policies WHERE tablename IN ({names})",
        database,
    )
    options = server().sql(
        "SELECT DISTINCT regexp_replace(relname, '_[0-9]$', ''), reloptions FROM pg_class"
        " WHERE relnamespace = 'holdfast'::regnamespace AND relkind = 'r'",
        database,
    )
    return [sorted(map(repr, rows)) for rows in (columns, indexes, policies, options)]


def test_a_store_that_was_written_to_is_not_partitioned(fresh):
    """Its rows would be gone; they are all there."""

    async def write(store):
        await store.tenant().create(Record(key="k"), [Message.user("a")])

    async def read(store):
        return len(await store.tenant().read((await store.tenant().load("k")).id))

    run(write, fresh)
    with pytest.raises(asyncpg.RaiseError, match="was written to"):
        server().sql(recipe(), fresh, ROLE)

    assert run(read, fresh) == 1


def test_the_store_does_all_its_work_on_partitions(database):
    """Create, append, once, leases, reading, listing, searching, erasing, deleting."""

    async def scenario(store):
        tenant = store.tenant()
        record = await tenant.create(Record(key="k"), [Message.user("green tea")])
        done = await tenant.append(record.id, [Message.user("or black")], after=1, once="a")
        again = await tenant.append(record.id, [Message.user("or black")], after=1, once="a")
        assert (done.last, again.last) == (2, 2)
        with pytest.raises(Conflict):
            await tenant.append(record.id, [Message.user("late")], after=1)

        lease = await tenant.begin(record.id, "one", HOUR, {"said": "which"})
        await tenant.journal(lease, "so far")
        await tenant.append(record.id, [Message.user("x" * 100_000)], lease=lease, finish=True)

        assert [each.seq for each in await tenant.read(record.id)] == [1, 2, 3]
        assert (await tenant.load("k")).id == record.id
        assert [each.stored.seq for each in (await tenant.search("black")).items] == [2]
        assert await tenant.erase(record.id, [2]) == 1
        assert (await tenant.search("black")).items == ()
        assert (await tenant.verify()).problems == ()
        assert await tenant.delete(record.id)
        with pytest.raises(SessionNotFound):
            await tenant.load("k")

    run(scenario, database)


def test_a_hundred_sessions_are_appended_to_in_two_statements_at_most(database):
    """They are in all partitions, and are listed in the order in which they were written."""

    async def scenario(store):
        tenant = store.tenant()
        made = await asyncio.gather(*(tenant.create(Record(key=f"k{n}")) for n in range(100)))
        written, write = [], store._commits._write

        async def counted(link, tenants, shelf, tickets, **options):
            written.append(len(tickets))
            return await write(link, tenants, shelf, tickets, **options)

        store._commits._write = counted
        await asyncio.gather(*(tenant.append(each.id, [Message.user("a")]) for each in made))
        assert sum(written) == 100
        assert len(written) <= BATCHES_MAX
        for each in made[:3]:
            await tenant.append(each.id, [Message.user("b")])
        newest = (await tenant.list(limit=100)).items
        assert len(newest) == 100
        assert [each.id for each in newest[:3]] == [each.id for each in made[2::-1]]

    run(scenario, database)
    for name in ("sessions", "entries"):
        found = [server().sql(f"SELECT FROM holdfast.{name}_{n}", database) for n in range(PARTS)]
        assert all(found)


def test_tenants_are_kept_apart_on_partitions_too(database):
    """The owner sees no row without naming a tenant, and none in a partition by itself."""

    async def scenario(store):
        for tenant in ("a", "b"):
            await store.tenant(tenant).create(Record(key="k"), [Message.user(f"of {tenant}")])
        read = await store.tenant("a").load("k")
        assert [e.entry.text for e in await store.tenant("a").read(read.id)] == ["of a"]
        assert [
            each.stored.entry.text for each in (await store.tenant("b").search("of")).items
        ] == ["of b"]

    async def seen(tenant):
        db = await asyncpg.connect(server().url(database))
        if tenant:
            digests = tenant_of(tenant)
            await db.execute(f"SET {SETTING} = '{{{digests}}}'")
        found = {}
        for name in ("sessions", "entries", "names"):
            whole = await db.fetchval(f"SELECT count(*) FROM holdfast.{name}")
            parts = [
                await db.fetchval(f"SELECT count(*) FROM holdfast.{name}_{n}") for n in range(PARTS)
            ]
            found[name] = (whole, sum(parts))
        await db.close()
        return found

    run(scenario, database)
    assert asyncio.run(seen(None)) == dict.fromkeys(("sessions", "entries", "names"), (0, 0))
    assert asyncio.run(seen("a")) == dict.fromkeys(("sessions", "entries", "names"), (1, 0))
