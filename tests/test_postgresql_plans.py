"""What is asked of all sessions of a tenant finds its rows by an index, however many others are
there. docs/scale.md counts on it."""

from uuid import UUID

import pytest

from holdfast.stores import Record
from holdfast.stores.postgresql import statements as sql
from holdfast.stores.postgresql.heads import tenant_of
from holdfast.stores.postgresql.names import SETTING
from postgres_server import run, server

COUNT = 5_000
# Sessions that differ only in when they expire, and of which every hundredth is not indexed yet.
MANY = f"""INSERT INTO holdfast.sessions (session, tenant, version, writer, watched, indexed, id,
        key, agent, created, updated, ttl, seq, branch, branches, token, process, boot, until,
        "check")
    SELECT gen_random_uuid(), s.tenant, 1, s.writer, 0, (n % 100 <> 0)::int, s.id, s.key, s.agent,
        0, n, 1000, 1, 0, 1, 0, s.process, s.boot, 0, 0
    FROM holdfast.sessions s, generate_series(1, {COUNT}) n;
    INSERT INTO holdfast.documents (session, tenant, body, "check", digest)
    SELECT s.session, s.tenant, d.body, d."check", d.digest
    FROM holdfast.documents d JOIN holdfast.sessions s ON s.session <> d.session;
    ANALYZE"""


@pytest.fixture(scope="module")
def database():
    from holdfast.stores import open_store

    made = server().new_database()

    async def fill():
        async with open_store(server().url(made)) as store:
            await store.tenant().create(Record(key="k"))

    run(fill())
    server().sql(MANY, made)
    yield made
    server().drop(made)


@pytest.mark.parametrize(
    ("statement", "values", "index"),
    [
        (sql.OVERDUE, (1_010, 0, 500), "sessions_mortal"),
        (sql.BEHIND, (UUID(int=0), 8), "sessions_unindexed"),
        (sql.NEWEST[False], (0, 10**15, 10**15, 0, 50), "sessions_newest"),
    ],
    ids=["expire", "search", "list"],
)
def test_a_few_of_many_sessions_are_found_without_reading_the_others(
    database, statement, values, index
):
    """Of the table itself, no more rows are read than the statement gives."""
    lines = run(_plan(server().url(database), statement, (tenant_of(""), *values)))

    assert any(f"using {index} " in line for line in lines)
    assert not [line for line in lines if "Seq Scan on sessions" in line or "Removed" in line]


def test_which_tenants_have_sessions_is_found_by_one_session_of_each(database):
    """Not by reading the sessions of all of them."""
    lines = run(_plan(server().url(database), sql.HAVE_SESSIONS, ()))

    (read,) = [line for line in lines if " on sessions " in line]
    assert "rows=1.00 " in f"{read} " or "rows=1 " in read, lines


async def _plan(url, statement, values):
    import asyncpg

    db = await asyncpg.connect(url)
    try:
        # As the store's own role: a policy can keep a condition from being looked up in an index.
        await db.execute(f"SET {SETTING} = '{{{tenant_of('')}}}'")
        rows = await db.fetch(f"EXPLAIN (ANALYZE, COSTS OFF) {statement}", *values)
    finally:
        await db.close()
    return [row[0] for row in rows]
