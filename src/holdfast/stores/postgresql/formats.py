"""The versions of the PostgreSQL store's format, and how a database gets from one to the next.

| version | what came with it                                                       |
|---------|-------------------------------------------------------------------------|
| 1       | everything: see `tables.py`                                             |

The version is in the table `format`. A database that is behind is brought up when it is opened, in
one transaction and under a lock that all processes share: it is at the old version or at the new
one. Steps only add. A newer version is refused unread.
"""

from typing import Any

from asyncpg import exceptions as pg

from holdfast.errors import Corrupt, FormatTooNew, StoreUnavailable
from holdfast.stores.postgresql import statements as sql
from holdfast.stores.postgresql.names import SCHEMA

FORMAT = 1
_LOCK = 0x686F_6C64_6661_7374  # "holdfast"
_HAS_SCHEMA = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)"
_COLUMNS = """SELECT table_name, column_name FROM information_schema.columns
    WHERE table_schema = $1"""
_POLICIES = """SELECT relname FROM pg_class WHERE relnamespace = $1::regnamespace
    AND relkind IN ('r', 'p') AND relrowsecurity AND relforcerowsecurity"""


def _steps(version: int) -> tuple[str, ...]:
    """What makes this version of the one before."""
    return {1: sql.TABLES}[version]


async def bring_up(raw: Any, where: str, *, create: bool = True) -> None:
    """Bring a database up to this version, and see that its tables are ours."""
    if await _version(raw, where) != FORMAT:
        if not create and not await raw.fetchval(_HAS_SCHEMA, SCHEMA):
            raise StoreUnavailable(where, "there is no store in this database")
        async with raw.transaction():
            # Others may wait here longer than a lock is usually waited for.
            await raw.execute("SET LOCAL lock_timeout = 0")
            await raw.execute("SET LOCAL statement_timeout = '120s'")
            await raw.fetchrow("SELECT pg_advisory_xact_lock($1)", _LOCK)
            await _build(raw, where)
    await _check(raw, where)


async def _version(raw: Any, where: str) -> int:
    try:
        version = int(await raw.fetchval(sql.FIND_FORMAT) or 0)
    except (pg.UndefinedTableError, pg.InvalidSchemaNameError):
        return 0
    if version > FORMAT:
        raise FormatTooNew(where, version, FORMAT)
    return version


async def _build(raw: Any, where: str) -> None:
    if not await raw.fetchval(_HAS_SCHEMA, SCHEMA):
        await raw.execute(f"CREATE SCHEMA {SCHEMA}")
    is_there = await raw.fetchval("SELECT to_regclass($1) IS NOT NULL", f"{SCHEMA}.format")
    version = await _version(raw, where) if is_there else 0
    for step in range(version + 1, FORMAT + 1):
        for statement in _steps(step):
            await raw.execute(statement)
        await raw.fetchrow(sql.SAVE_FORMAT, step)


async def _check(raw: Any, where: str) -> None:
    """Our tables have the columns that we made, and their policies are in force."""
    found: dict[str, set[str]] = {}
    for table, column in await raw.fetch(_COLUMNS, SCHEMA):
        found.setdefault(table, set()).add(column)
    guarded = {row[0] for row in await raw.fetch(_POLICIES, SCHEMA)}
    for table, columns in sql.COLUMNS.items():
        if not found.get(table, set()).issuperset(columns):
            raise Corrupt(where, f"its table {table!r} is not as holdfast made it")
        if "tenant" in columns and table not in guarded:
            raise Corrupt(where, f"its table {table!r} has no row-level security any more")
