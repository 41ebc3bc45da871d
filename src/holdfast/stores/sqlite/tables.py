"""The tables of the SQLite store, and every statement that is run on them.

| table     | a row for each                  | found by                                           |
|-----------|---------------------------------|----------------------------------------------------|
| sessions  | session: what an append moves | number; tenant and key; id; tenant and last write  |
| documents | session: what it says of itself | session                                            |
| branches  | branch                          | session and number, or name                        |
| entries   | entry of a log                  | session and seq; every 64th message by position    |
| once      | named append                    | session and name                                   |
| drafts    | draft (number 0) and its chunks | session and number                                 |
| blobs     | large text, with its references | session and digest                                 |
| clocks    | tenant whose sessions expire    | tenant                                             |

Rows that change have a check, a CRC-32 of what must not change unnoticed.

The log is a rowid table beside a small index, and not clustered by session: a row then goes to
the end of the file, wherever the session's other rows are.

Nothing imports this module while a program runs, and only here is SQLAlchemy needed. Its constants
are compiled once for all: after a change, `python tests/sqlite_statements.py` makes `statements.py`
of them, plain texts, which is what the store imports. Values are always bound.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Select,
    Table,
    Text,
    UniqueConstraint,
    and_,
    bindparam,
    case,
    delete,
    func,
    literal_column,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects import sqlite

from holdfast.stores.compiled import Compiler, by
from holdfast.stores.schema import PLACE_STEP, fields

_metadata = MetaData()
_NO: Any = literal_column("0")  # an OFFSET, or SQLAlchemy binds one


def _session() -> "Column[int]":
    """The session that a row belongs to; it goes with it."""
    owner = ForeignKey("sessions.number", ondelete="CASCADE")
    return Column("session", Integer, owner, primary_key=True, autoincrement=False)


sessions = Table(
    "sessions",
    _metadata,
    Column("number", Integer, primary_key=True),
    Column("tenant", Text, nullable=False),
    *fields("sessions", Text),
    UniqueConstraint("tenant", "key"),
    UniqueConstraint("id", "tenant"),
    Index("sessions_newest", "tenant", "updated", "number", "agent"),
    sqlite_autoincrement=True,  # no number is ever used again
)
Index("sessions_mortal", sessions.c.tenant, sqlite_where=sessions.c.ttl.is_not(None))

documents = Table(
    "documents",
    _metadata,
    _session(),
    *fields("documents", Text),
)

branches = Table(
    "branches",
    _metadata,
    _session(),
    Column("number", Integer, primary_key=True, autoincrement=False),
    *fields("branches", Text),
    UniqueConstraint("session", "name"),
    sqlite_with_rowid=False,
)

entries = Table(
    "entries",
    _metadata,
    Column("rid", Integer, primary_key=True),
    Column("session", Integer, ForeignKey("sessions.number", ondelete="CASCADE"), nullable=False),
    Column("seq", BigInteger, nullable=False),
    *fields("entries", Text),
    UniqueConstraint("session", "seq"),
)
_is_placed = and_(
    entries.c.position % literal_column(str(PLACE_STEP)) == literal_column("0"),
    entries.c.kind == literal_column("'message'"),
)
_is_fold = entries.c.kind == literal_column("'fold'")
Index(
    "entries_placed",
    entries.c.session,
    entries.c.branch,
    entries.c.position,
    sqlite_where=_is_placed,
)
Index("entries_folds", entries.c.session, entries.c.seq, sqlite_where=_is_fold)

once = Table(
    "once",
    _metadata,
    _session(),
    Column("name", Text, primary_key=True),
    *fields("once", Text),
    sqlite_with_rowid=False,
)

drafts = Table(
    "drafts",
    _metadata,
    _session(),
    Column("number", Integer, primary_key=True, autoincrement=False),
    *fields("drafts", Text),
    sqlite_with_rowid=False,
)

blobs = Table(
    "blobs",
    _metadata,
    _session(),
    Column("digest", LargeBinary, primary_key=True),
    *fields("blobs", Text),
)

clocks = Table(
    "clocks",
    _metadata,
    Column("tenant", Text, primary_key=True),
    Column("seen", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

_sql = Compiler(sqlite.dialect(paramstyle="qmark"))
_text, _insert, _find, _update, _delete = (
    _sql.text,
    _sql.insert,
    _sql.find,
    _sql.update,
    _sql.delete,
)


# What makes the tables.
TABLES = tuple(made for table in _metadata.sorted_tables for made in _sql.table(table))

# Sessions: the columns in the order of the fields of a Head, and those that change.

_HEAD = (
    *("number", "tenant", "id", "key", "agent", "created", "updated", "ttl", "marked", "seq"),
    *("branch", "branches", "token", "owner", "process", "boot", "until", "check"),
)
_MOVED = (
    *("agent", "updated", "ttl", "marked", "seq", "branch", "branches", "token", "owner"),
    *("process", "boot", "until", "check"),
)
_LISTED = ("number", "id", "updated")
_head = [sessions.c[name] for name in _HEAD]
_line = [column for column in branches.c if column.name != "session"]

FIND_KEY = _find(sessions, _head, "tenant", "key")
INSERT_SESSION = _insert(sessions, *_HEAD[1:])
UPDATE_SESSION = _update(sessions, _MOVED, "number")
MOVE_SESSION = _update(sessions, ("updated", "seq", "check"), "number")
FIND_NAMES = _find(sessions, [sessions.c[name] for name in ("id", "key", "agent")], "number")
DELETE_SESSION = _delete(sessions, "number")
FIND_DOCUMENT = _find(documents, [documents.c.body, documents.c.digest], "session")
INSERT_DOCUMENT = _insert(documents, "session", "body", "check", "digest")
UPDATE_DOCUMENT = _update(documents, ("body", "check", "digest"), "session")


# A head by its id, with the branch in use; `many.py` makes it one for many ids.
_in_use = and_(branches.c.session == sessions.c.number, branches.c.number == sessions.c.branch)
FIND_HEADS = _text(
    select(*_head, *_line)
    .join_from(sessions, branches, _in_use, isouter=True)
    .where(sessions.c.id.in_([bindparam("id")])),
    "id",
)


def _newest(*, is_of_agent: bool, is_bounded: bool) -> str:
    chosen: Select[Any] = (
        select(*(sessions.c[name] for name in _LISTED), documents.c.body, documents.c.check)
        .join_from(sessions, documents, documents.c.session == sessions.c.number)
        .where(sessions.c.tenant == bindparam("tenant"))
    )
    names = ["tenant"]
    if is_of_agent:
        chosen = chosen.where(sessions.c.agent == bindparam("agent"))
        names.append("agent")
    if is_bounded:
        chosen = chosen.where(
            sessions.c.updated >= bindparam("since"), sessions.c.updated < bindparam("until")
        )
        names += ["since", "until"]
    before = tuple_(sessions.c.updated, sessions.c.number) < tuple_(
        bindparam("updated"), bindparam("number")
    )
    chosen = chosen.where(before).order_by(sessions.c.updated.desc(), sessions.c.number.desc())
    return _text(chosen.limit(bindparam("limit")).offset(_NO), *names, "updated", "number", "limit")


NEWEST = {
    (is_of_agent, is_bounded): _newest(is_of_agent=is_of_agent, is_bounded=is_bounded)
    for is_of_agent in (False, True)
    for is_bounded in (False, True)
}
FIND_TENANTS = _text(select(sessions.c.tenant).distinct().order_by(sessions.c.tenant))
OVERDUE = _text(
    select(*_head)
    .where(
        sessions.c.tenant == bindparam("tenant"),
        sessions.c.ttl.is_not(None),
        sessions.c.updated + sessions.c.ttl < bindparam("now"),
        or_(
            sessions.c.marked.is_(None),
            sessions.c.marked < bindparam("marked"),
            sessions.c.marked > bindparam("now"),
        ),
    )
    .limit(bindparam("limit"))
    .offset(_NO),
    *("tenant", "now", "marked", "now", "limit"),
)

# Branches

FIND_LINE = _find(branches, _line, "session", "name")
FIND_LINES = _find(branches, _line, "session")
INSERT_LINE = _insert(branches, *(column.name for column in branches.c))
UPDATE_LINE = _update(branches, ("head", "count", "link", "check"), "session", "number")
DELETE_LINES = _delete(branches, "session")

# Entries: the columns in the order of the fields of a Row.

_ROW = (
    *("seq", "branch", "position", "kind", "check", "link", "salt", "payload", "holes", "seal"),
)
_row = [entries.c[name] for name in _ROW]
_stretch = and_(
    entries.c.session == bindparam("session"),
    entries.c.branch == bindparam("branch"),
    entries.c.seq > bindparam("after"),
    entries.c.seq <= bindparam("last"),
)
INSERT_ROW = _insert(entries, "session", *_ROW[:-1])
INSERT_PLAIN_ROW = _insert(entries, "session", *_ROW[:-2])  # without holes; see `many.py`
FIND_ROW = _find(entries, _row, "session", "seq")
_fields = [entries.c.seq, entries.c.check, case((entries.c.holes.is_(None), entries.c.payload))]
FIND_FIELDS = _text(
    select(*_fields)
    .where(_stretch, entries.c.position >= bindparam("lowest"))
    .order_by(entries.c.seq),
    *("session", "branch", "after", "last", "lowest"),
)
FIND_ALL_FIELDS = _text(  # of a session with one branch, from the beginning on
    select(*_fields)
    .where(
        entries.c.session == bindparam("session"),
        entries.c.seq > bindparam("after"),
        entries.c.seq <= bindparam("last"),
    )
    .order_by(entries.c.seq),
    *("session", "after", "last"),
)
FIND_ROWS = _text(
    select(*_row).where(_stretch).order_by(entries.c.seq), "session", "branch", "after", "last"
)
FIND_FOLDS = _text(
    select(*_row).where(_stretch, _is_fold).order_by(entries.c.seq),
    *("session", "branch", "after", "last"),
)
FIND_NEWS = _text(
    select(*_row)
    .where(entries.c.session == bindparam("session"), entries.c.seq > bindparam("after"))
    .order_by(entries.c.seq)
    .limit(bindparam("limit"))
    .offset(_NO),
    *("session", "after", "limit"),
)
FIND_PLACE = _text(
    select(entries.c.seq)
    .where(
        entries.c.session == bindparam("session"),
        entries.c.branch == bindparam("branch"),
        entries.c.position < bindparam("position"),
        _is_placed,
    )
    .order_by(entries.c.position.desc())
    .limit(literal_column("1"))
    .offset(_NO),
    *("session", "branch", "position"),
)
FIND_RID = _find(entries, [entries.c.rid], "session", "seq")
FIND_BY_RID = _text(
    select(*_head, *_row)
    .join_from(entries, sessions, sessions.c.number == entries.c.session)
    .where(entries.c.rid == bindparam("rid")),
    "rid",
)
FIND_HOLES = _find(entries, [entries.c.holes, entries.c.session], "rid")
SOME_SALTS = _text(
    select(entries.c.salt)
    .where(entries.c.session == bindparam("session"), entries.c.salt.is_not(None))
    .limit(literal_column("64"))
    .offset(_NO),
    "session",
)
FIND_ALL = _text(
    select(entries.c.rid, *_row).where(entries.c.session == bindparam("session")), "session"
)
ERASE_ROW = _update(entries, ("check", "salt", "payload", "holes", "seal"), "session", "seq")
DELETE_ROWS = _delete(entries, "session")

# Large texts, named appends, drafts, clocks

FIND_BLOB = _find(blobs, [blobs.c.data], "session", "digest")
COUNT_BLOB = _text(
    update(blobs)
    .where(by(blobs, "session", "digest"))
    .values(count=blobs.c.count + bindparam("more")),
    *("more", "by_session", "by_digest"),
)
INSERT_BLOB = _insert(blobs, "session", "digest", "count", "salt", "data")
_is_unused = and_(by(blobs, "session", "digest"), blobs.c.count <= literal_column("0"))
FIND_UNUSED_BLOB = _text(select(blobs.c.salt).where(_is_unused), "by_session", "by_digest")
DELETE_BLOB = _text(delete(blobs).where(_is_unused), "by_session", "by_digest")
DELETE_BLOBS = _delete(blobs, "session")

_ONCE = ("salt", "digest", "first", "last", "branch", "messages", "check")
FIND_ONCE = _find(once, [once.c[name] for name in _ONCE], "session", "name")
FIND_NAMED = _text(
    select(once.c.name, *(once.c[name] for name in _ONCE))
    .where(once.c.session == bindparam("session"), once.c.name > bindparam("after"))
    .order_by(once.c.name)
    .limit(bindparam("limit"))
    .offset(_NO),
    *("session", "after", "limit"),
)
INSERT_ONCE = _insert(once, "session", "name", *_ONCE)
FORGET_ONCE = _text(
    update(once)
    .where(
        once.c.session == bindparam("by_session"),
        once.c.first <= bindparam("seq"),
        once.c.last >= bindparam("seq"),
    )
    .values(salt=None, digest=None),
    *("salt", "digest", "by_session", "seq", "seq"),
)
DELETE_ONCE = _delete(once, "session")

FIND_DRAFT = _text(
    select(drafts.c.number, drafts.c.digest, drafts.c.data)
    .where(drafts.c.session == bindparam("session"), drafts.c.number > bindparam("after"))
    .order_by(drafts.c.number),
    *("session", "after"),
)
INSERT_DRAFT = _insert(drafts, "session", "number", "digest", "data")
LAST_CHUNK = _find(drafts, [func.max(drafts.c.number)], "session")
DELETE_DRAFT = _delete(drafts, "session")

FIND_CLOCK = _find(clocks, [clocks.c.seen], "tenant")
DELETE_CLOCK = _delete(clocks, "tenant")
INSERT_CLOCK = _insert(clocks, "tenant", "seen")
