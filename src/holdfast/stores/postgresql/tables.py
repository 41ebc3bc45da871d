"""The tables of the PostgreSQL store.

| table     | a row for each                          | key                        |
|-----------|-----------------------------------------|----------------------------|
| names     | session: from its key to its id         | name                       |
| sessions  | session: what an append moves           | session                    |
| documents | session: what it says of itself         | session                    |
| branches  | branch                                  | session and number         |
| entries   | entry of a log                          | session and seq            |
| once      | named append                            | session and name           |
| drafts    | draft (number 0) and its chunks         | session and number         |
| blobs     | large text, with its references         | session and digest         |
| words     | message that can be found: its words    | session and seq            |
| clocks    | tenant whose sessions expire            | tenant                     |
| tenants   | tenant who ever had a session: its name | tenant                     |
| format    | version of the format                   | one                        |

`session` is a digest of tenant and id: 16 bytes that are spread evenly, so that tables can be
partitioned or distributed by it. The name of a tenant is a digest too. Nothing refers to another
table by a constraint; what belongs to a session goes when the session is deleted.

`version` grows with every write to a session: whoever decided something on version 7 has it written
only if the session is at version 7 still. `writer` names the transaction that wrote last. `watched`
is until when, by the server's clock, somebody wants to hear of writes. `indexed` is the seq up to
which search has read the log. `due` is when a session expires: a column, since under a policy
PostgreSQL looks up no sum in an index.

Whatever a caller can name is stored as bytes: text of PostgreSQL cannot hold a NUL. Only `words`
has no policy: it holds nothing but numbers (see `search.py`), and its index would not be used.

Nothing imports this module while a program runs: see `queries.py`.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Computed,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Sequence,
    Table,
    Uuid,
    and_,
    literal_column,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import asyncpg
from sqlalchemy.schema import CreateSequence

from holdfast.stores.compiled import Compiler
from holdfast.stores.postgresql.names import CENSUS, SCHEMA, SETTING
from holdfast.stores.schema import PLACE_STEP, fields

metadata = MetaData(schema=SCHEMA)
dialect = asyncpg.dialect()  # type: ignore[no-untyped-call]


def _session() -> "Column[Any]":
    return Column("session", Uuid, primary_key=True)


def _tenant() -> "Column[Any]":
    return Column("tenant", Uuid, nullable=False)


names = Table(
    "names",
    metadata,
    Column("name", Uuid, primary_key=True),  # a digest of tenant and key
    _tenant(),
    Column("session", Uuid, nullable=False),
)

sessions = Table(
    "sessions",
    metadata,
    _session(),
    _tenant(),
    Column("number", BigInteger, Identity(always=True), nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("writer", Uuid, nullable=False),
    Column("watched", BigInteger, nullable=False),
    Column("indexed", BigInteger, nullable=False),
    *fields("sessions", LargeBinary),
    Column("due", BigInteger, Computed("updated + ttl", persisted=True)),
    Index("sessions_newest", "tenant", "updated", "number"),
    postgresql_with={"fillfactor": 80},
)
Index(
    "sessions_mortal",
    sessions.c.tenant,
    sessions.c.due,
    postgresql_where=sessions.c.due.is_not(None),
)
is_behind = sessions.c.indexed < sessions.c.seq
Index("sessions_unindexed", sessions.c.tenant, sessions.c.session, postgresql_where=is_behind)

documents = Table(
    "documents",
    metadata,
    _session(),
    _tenant(),
    *fields("documents", LargeBinary),
)

branches = Table(
    "branches",
    metadata,
    _session(),
    Column("number", Integer, primary_key=True, autoincrement=False),
    _tenant(),
    *fields("branches", LargeBinary),
    postgresql_with={"fillfactor": 80},
)

# The order in which entries came, over all sessions: search shows the newest first.
order = Sequence("entries_order", metadata=metadata, data_type=BigInteger)
entries = Table(
    "entries",
    metadata,
    _session(),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    _tenant(),
    Column("rid", BigInteger, order, server_default=order.next_value(), nullable=False),
    *fields("entries", LargeBinary),
)


def _kind(name: str) -> Any:
    return entries.c.kind == literal_column(rf"'\x{name.encode().hex()}'::bytea")


is_message = _kind("message")
is_fold = _kind("fold")
is_placed = and_(
    entries.c.position % literal_column(str(PLACE_STEP)) == literal_column("0"), is_message
)
Index(
    "entries_placed",
    *(entries.c.session, entries.c.branch, entries.c.position),
    postgresql_where=is_placed,
)
Index("entries_folds", entries.c.session, entries.c.seq, postgresql_where=is_fold)

once = Table(
    "once",
    metadata,
    _session(),
    Column("name", LargeBinary, primary_key=True),
    _tenant(),
    *fields("once", LargeBinary),
)

drafts = Table(
    "drafts",
    metadata,
    _session(),
    Column("number", Integer, primary_key=True, autoincrement=False),
    _tenant(),
    *fields("drafts", LargeBinary),
)

blobs = Table(
    "blobs",
    metadata,
    _session(),
    Column("digest", LargeBinary, primary_key=True),
    _tenant(),
    *fields("blobs", LargeBinary),
)

words = Table(
    "words",
    metadata,
    _session(),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("rid", BigInteger, nullable=False),
    Column("words", postgresql.ARRAY(BigInteger), nullable=False),
    Index("words_found", "words", postgresql_using="gin"),
)

clocks = Table(
    "clocks",
    metadata,
    Column("tenant", Uuid, primary_key=True),
    Column("seen", BigInteger, nullable=False),
)

tenants = Table(
    "tenants",
    metadata,
    Column("tenant", Uuid, primary_key=True),
    Column("name", LargeBinary, nullable=False),
)

format = Table(
    "format",
    metadata,
    Column("one", Boolean, primary_key=True),
    Column("version", Integer, nullable=False),
    CheckConstraint("one"),
)

_OPEN = (words, format)


def _ddl() -> list[str]:
    """What makes the tables, in an empty schema, and their policies."""
    compiler = Compiler(dialect)
    made = [str(CreateSequence(order).compile(dialect=dialect))]
    for table in metadata.sorted_tables:
        made += compiler.table(table)
        if table not in _OPEN:
            also = f" OR current_setting('{CENSUS}', true) = 'on'" if table is tenants else ""
            made += _policy(f"{SCHEMA}.{table.name}", also)
    return made


def _policy(table: str, also: str) -> list[str]:
    """Whoever does not say for whom he asks sees nothing; neither does the table's owner.

    The setting is read once a statement, because it stands in a subquery.
    """
    allowed = f"(SELECT nullif(current_setting('{SETTING}', true), '')::uuid[])::uuid[]"
    return [
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
        f"CREATE POLICY tenants ON {table} USING (tenant = ANY ({allowed}){also})",
    ]


TABLES = tuple(_ddl())
COLUMNS = {table.name: tuple(column.name for column in table.c) for table in metadata.sorted_tables}
