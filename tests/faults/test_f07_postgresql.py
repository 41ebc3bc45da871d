"""F07 on PostgreSQL: a value that is not what was written, in each column of each table.

Nothing that is damaged comes back as if it were not, `verify` tells, and a neighbour is as he was.
"""

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from faults.tier import some
from holdfast.errors import StoreError
from holdfast.messages import Message
from holdfast.stores import open_store
from holdfast.stores.postgresql import tables
from holdfast.stores.values import Record
from postgres_server import name_of, server

HOUR = timedelta(hours=1)
TABLES = ("sessions", "documents", "branches", "entries", "once", "drafts", "blobs")
# Keys and counters of the store's own; what is empty here; and names by which nothing is found
# any more when they are damaged.
OTHERS = ("session", "tenant", "version", "writer", "watched", "indexed", "number", "rid")
EMPTY = ("marked", "parent", "seal")
COLUMNS = [
    (table.name, column.name)
    for table in tables.metadata.sorted_tables
    if table.name in TABLES
    for column in table.c
    if column.name not in (*OTHERS, *EMPTY)
    and column.computed is None  # nobody can write those
    and (table.name, column.name)
    not in (("once", "name"), ("blobs", "salt"), ("blobs", "count"), ("documents", "check"))
]


@pytest.fixture
def name(tmp_path):
    name = name_of(tmp_path)
    yield name
    server().give_back(name)


async def filled(tenant, key):
    """A session with something in every table."""
    made = Record(key=key, agent="helper", ttl=HOUR)
    record = await tenant.create(made, [Message.user("a")])
    await tenant.append(record.id, NAMED, once="o")
    lease = await tenant.begin(record.id, "one", HOUR, {"say": "d"})
    await tenant.journal(lease, "so far")
    return record


NAMED = [Message.user("c"), Message.user("x" * 40_000)]


async def seen(tenant, record):
    """All that a caller can see of it."""
    loaded = await tenant.load(record.key)
    rows = await tenant.read(record.id)
    return loaded, rows, await tenant.append(record.id, NAMED, once="o")


async def damage(url, record, table, column):
    """Change the last value in a column of a session, by one or by one bit."""
    db = await asyncpg.connect(url)
    rows = await db.fetch(
        f'SELECT ctid, "{column}" FROM holdfast.{table} WHERE "{column}" IS NOT NULL AND session = '
        "(SELECT session FROM holdfast.sessions WHERE id = $1) ORDER BY ctid",
        record.id.encode(),
    )
    where, value = rows[-1]
    new = value + 1 if isinstance(value, int) else bytes([value[0] ^ 1]) + value[1:]
    await db.execute(f'UPDATE holdfast.{table} SET "{column}" = $1 WHERE ctid = $2', new, where)
    await db.close()


@pytest.mark.parametrize(("table", "column"), some(COLUMNS, 14), ids=lambda name: name)
def test_a_damaged_column_is_found_and_harms_nobody_else(name, table, column):
    """Whichever it is."""
    url = server().database(name)

    async def main():
        async with asyncio.timeout(60):
            async with open_store(url) as store:
                sick = await filled(store.tenant(), "sick")
                sound = await filled(store.tenant(), "sound")
                before = await seen(store.tenant(), sound)
            await damage(server().admin_of(name), sick, table, column)
            async with open_store(url) as store:
                tenant = store.tenant()
                problems = (await tenant.verify()).problems
                try:
                    await seen(tenant, sick)
                    error = None
                except StoreError as found:
                    error = found
                assert problems or error
                assert not any(each.key == "sound" for each in problems)
                after = await seen(tenant, sound)
                assert after[1:] == before[1:]
                assert after[0].draft.chunks == before[0].draft.chunks
                assert len((await tenant.list()).items) == 2

    asyncio.run(main())


def test_a_column_without_a_check_is_caught(name):
    """Control: what nothing is held against comes back changed, and nobody tells."""
    url = server().database(name)

    async def main():
        async with open_store(url) as store:
            sick = await filled(store.tenant(), "sick")
            await damage(server().admin_of(name), sick, "sessions", "watched")
            return (await store.tenant().verify()).problems

    assert asyncio.run(main()) == ()
