"""Every statement of the PostgreSQL store, as it is written; group commit has its own (`batch.py`).

Nothing imports this module while a program runs. Its constants and those of `tables.py` are
compiled once for all: after a change, `python tests/postgresql_statements.py` makes `statements.py`
of them, plain texts, which is what the store imports. Values are always bound, in the order of the
names given to `_text`.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Integer,
    LargeBinary,
    Select,
    Uuid,
    and_,
    any_,
    bindparam,
    case,
    column,
    delete,
    exists,
    func,
    insert,
    literal_column,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql import insert as insert_or

from holdfast.stores.compiled import Compiler, by
from holdfast.stores.postgresql.tables import (
    blobs,
    branches,
    clocks,
    dialect,
    documents,
    drafts,
    entries,
    format,
    is_behind,
    is_fold,
    is_message,
    is_placed,
    names,
    once,
    sessions,
    tenants,
    words,
)

CLOCK_MS = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"  # of the server
_clock: Any = literal_column(CLOCK_MS)
_TYPES: dict[str, Any] = {"limit": Integer()}


_sql = Compiler(dialect)
_text, _insert, _find, _update, _delete = (
    _sql.text,
    _sql.insert,
    _sql.find,
    _sql.update,
    _sql.delete,
)


def _bind(name: str, kind: Any = None) -> Any:
    return bindparam(name, type_=kind or _TYPES.get(name, BigInteger()))


# Sessions. What is read of one: where it stands, the fields of a Head, its check, and the time.

HEAD = (
    *("number", "id", "key", "agent", "created", "updated", "ttl", "marked", "seq"),
    *("branch", "branches", "token", "owner", "process", "boot", "until", "check"),
)
CHANGED = (
    *("agent", "updated", "ttl", "marked", "seq", "branch", "branches", "token", "owner"),
    *("process", "boot", "until", "check"),
)
PLACE = ("session", "version", "watched", "indexed", "writer")
_head = [*(sessions.c[name] for name in (*PLACE, *HEAD)), _clock]
_line = [column for column in branches.c if column.name not in ("session", "tenant")]

_is_one = sessions.c.session == bindparam("session")
FIND_HEAD = _text(select(*_head).where(_is_one), "session")
LOCK_HEAD = _text(select(*_head).where(_is_one).with_for_update(), "session")
_ids = bindparam("sessions", type_=ARRAY(Uuid()))
# Heads without a lock, each with its branch in use, and the number of its last chunk.
_last_chunk = (
    select(func.max(drafts.c.number))
    .where(drafts.c.session == sessions.c.session)
    .scalar_subquery()
)
_in_use = and_(branches.c.session == sessions.c.session, branches.c.number == sessions.c.branch)
_whole = select(*_head, _last_chunk, *_line)
FIND_HEADS = _text(
    _whole.join_from(sessions, branches, _in_use, isouter=True).where(
        sessions.c.session == any_(_ids)
    ),
    "sessions",
)
FIND_NAMED = _text(
    _whole.join_from(names, sessions, sessions.c.session == names.c.session)
    .join(branches, _in_use, isouter=True)
    .where(names.c.name == bindparam("name")),
    "name",
)
# Nobody who decided something on an earlier version gets it written after this.
FENCE = _text(
    update(sessions)
    .where(_is_one)
    .values(version=sessions.c.version + literal_column("1"), writer=bindparam("writer")),
    *("writer", "session"),
)
LOCK_VERSION = _text(
    select(sessions.c.version, sessions.c.writer).where(_is_one).with_for_update(), "session"
)
FIND_NAME = _find(names, [names.c.session], "name")
INSERT_NAME = _insert(names, "name", "tenant", "session")
DELETE_NAME = _delete(names, "name")
INSERT_SESSION = _text(
    insert(sessions)
    .values(
        {
            name: bindparam(name)
            for name in ("session", "tenant", "version", "writer", "watched", "indexed")
        }
        | {name: bindparam(name) for name in HEAD[1:]}
    )
    .returning(sessions.c.number),
    *("session", "tenant", "version", "writer", "watched", "indexed", *HEAD[1:]),
)
UPDATE_SESSION = _update(sessions, ("version", "writer", *CHANGED), "session")
WATCH_SESSION = _text(
    update(sessions).where(_is_one).values(watched=_clock + _bind("more")), "more", "session"
)
FIND_VERSION = _find(sessions, [sessions.c.version], "session")
DELETE_SESSION = _delete(sessions, "session")
FIND_DOCUMENT = _find(documents, [documents.c.body, documents.c.digest], "session")
INSERT_DOCUMENT = _insert(documents, "session", "tenant", "body", "check", "digest")
UPDATE_DOCUMENT = _update(documents, ("body", "check", "digest"), "session")
DELETE_DOCUMENT = _delete(documents, "session")


def _newest(*, is_of_agent: bool) -> str:
    chosen: Select[Any] = (
        select(
            *(sessions.c[name] for name in ("session", "number", "id", "updated", "key", "agent")),
            *(documents.c.body, documents.c.check),
        )
        .join_from(sessions, documents, documents.c.session == sessions.c.session)
        .where(
            sessions.c.tenant == bindparam("tenant"),
            sessions.c.updated >= _bind("since"),
            sessions.c.updated < _bind("until"),
            tuple_(sessions.c.updated, sessions.c.number)
            < tuple_(_bind("updated"), _bind("number")),
        )
    )
    bound = ["tenant", "since", "until", "updated", "number"]
    if is_of_agent:
        chosen = chosen.where(sessions.c.agent == _bind("agent", LargeBinary()))
        bound.append("agent")
    chosen = chosen.order_by(sessions.c.updated.desc(), sessions.c.number.desc())
    return _text(chosen.limit(_bind("limit")), *bound, "limit")


NEWEST = {is_of_agent: _newest(is_of_agent=is_of_agent) for is_of_agent in (False, True)}
OVERDUE = _text(
    select(*_head)
    .where(
        sessions.c.tenant == bindparam("tenant"),
        sessions.c.due < _bind("now"),
        or_(
            sessions.c.marked.is_(None),
            sessions.c.marked < _bind("marked"),
            sessions.c.marked > _bind("now"),
        ),
    )
    # In the order of the index, so that those who live are not read. It waits for no lock, so it
    # need not take them in the order of ids.
    .order_by(sessions.c.due)
    .limit(_bind("limit"))
    .with_for_update(skip_locked=True),
    *("tenant", "now", "marked", "limit"),
)

# Branches

FIND_LINES = _text(select(*_line).where(branches.c.session == bindparam("session")), "session")
INSERT_LINE = _insert(
    branches,
    *("session", "number", "tenant", "name", "parent", "fork", "base", "head", "count"),
    *("link", "check"),
)
UPDATE_LINE = _update(branches, ("head", "count", "link", "check"), "session", "number")
DELETE_LINES = _delete(branches, "session")

# Entries: the columns in the order of the fields of a Row.

ROW = ("seq", "branch", "position", "kind", "check", "link", "salt", "payload", "holes", "seal")
_row = [entries.c[name] for name in ROW]
_stretch = and_(
    entries.c.session == bindparam("session"),
    entries.c.branch == _bind("branch", Integer()),
    entries.c.seq > _bind("after"),
    entries.c.seq <= _bind("last"),
)
INSERT_ROW = _insert(entries, "session", "seq", "tenant", *ROW[1:-1])
FIND_ROW = _find(entries, _row, "session", "seq")
FIND_FIELDS = _text(
    select(entries.c.seq, entries.c.check, case((entries.c.holes.is_(None), entries.c.payload)))
    .where(_stretch, entries.c.position >= _bind("lowest"))
    .order_by(entries.c.seq)
    .limit(_bind("limit")),
    *("session", "branch", "after", "last", "lowest", "limit"),
)
FIND_ROWS = _text(
    select(*_row).where(_stretch).order_by(entries.c.seq).limit(_bind("limit")),
    *("session", "branch", "after", "last", "limit"),
)
FIND_FOLDS = _text(
    select(*_row).where(_stretch, is_fold).order_by(entries.c.seq),
    *("session", "branch", "after", "last"),
)
FIND_NEWS = _text(
    select(*_row)
    .where(entries.c.session == bindparam("session"), entries.c.seq > _bind("after"))
    .order_by(entries.c.seq)
    .limit(_bind("limit")),
    *("session", "after", "limit"),
)
FIND_PLACE = _text(
    select(entries.c.seq)
    .where(
        entries.c.session == bindparam("session"),
        entries.c.branch == _bind("branch", Integer()),
        entries.c.position < _bind("position"),
        is_placed,
    )
    .order_by(entries.c.position.desc())
    .limit(literal_column("1")),
    *("session", "branch", "position"),
)
_places = (
    func.unnest(
        bindparam("sessions", type_=ARRAY(Uuid())), bindparam("seqs", type_=ARRAY(BigInteger()))
    )
    .table_valued(column("session", Uuid()), column("seq", BigInteger()), name="places")
    .render_derived()
)
FIND_ROWS_AT = _text(
    select(entries.c.session, *_row).join_from(
        entries,
        _places,
        and_(entries.c.session == _places.c.session, entries.c.seq == _places.c.seq),
    ),
    *("sessions", "seqs"),
)
FIND_LINK = _find(entries, [entries.c.link], "session", "seq")
ERASE_ROW = _update(entries, ("check", "salt", "payload", "holes", "seal"), "session", "seq")
DELETE_ROWS = _delete(entries, "session")

# Large texts, named appends, drafts, clocks

FIND_BLOB = _find(blobs, [blobs.c.data], "session", "digest")
_one_more = insert_or(blobs).values(
    {name: bindparam(name) for name in ("session", "digest", "tenant", "count", "salt", "data")}
)
ADD_BLOB = _text(
    _one_more.on_conflict_do_update(
        index_elements=["session", "digest"],
        set_={"count": blobs.c.count + _one_more.excluded.count},
    ),
    *("session", "digest", "tenant", "count", "salt", "data"),
)
LEAVE_BLOB = _text(
    update(blobs)
    .where(by(blobs, "session", "digest"))
    .values(count=blobs.c.count - literal_column("1")),
    *("by_session", "by_digest"),
)
DELETE_UNUSED_BLOBS = _text(
    delete(blobs).where(by(blobs, "session"), blobs.c.count <= literal_column("0")), "by_session"
)
DELETE_BLOBS = _delete(blobs, "session")

ONCE = ("salt", "digest", "first", "last", "branch", "messages", "check")
FIND_ONCE = _find(once, [once.c[name] for name in ONCE], "session", "name")
INSERT_ONCE = _insert(once, "session", "name", "tenant", *ONCE)
FIND_NAMED_AFTER = _text(
    select(once.c.name, *(once.c[name] for name in ONCE))
    .where(once.c.session == bindparam("session"), once.c.name > _bind("after", LargeBinary()))
    .order_by(once.c.name)
    .limit(_bind("limit")),
    *("session", "after", "limit"),
)
FORGET_ONCE = _text(
    update(once)
    .where(
        once.c.session == bindparam("session"),
        once.c.first <= _bind("seq"),
        once.c.last >= _bind("seq"),
    )
    .values(salt=literal_column("NULL"), digest=literal_column("NULL")),
    *("session", "seq"),
)
DELETE_ONCE = _delete(once, "session")

FIND_DRAFT = _text(
    select(drafts.c.number, drafts.c.digest, drafts.c.data)
    .where(drafts.c.session == bindparam("session"), drafts.c.number > _bind("after", Integer()))
    .order_by(drafts.c.number),
    *("session", "after"),
)
INSERT_DRAFT = _insert(drafts, "session", "number", "tenant", "digest", "data")
LAST_CHUNK = _find(drafts, [func.max(drafts.c.number)], "session")
DELETE_DRAFT = _delete(drafts, "session")

FIND_CLOCK = _find(clocks, [clocks.c.seen], "tenant")
_seen = insert_or(clocks).values(tenant=bindparam("tenant"), seen=bindparam("seen"))
SAVE_CLOCK = _text(
    _seen.on_conflict_do_update(index_elements=["tenant"], set_={"seen": _seen.excluded.seen}),
    *("tenant", "seen"),
)

# Tenants

ADD_TENANT = _text(
    insert_or(tenants)
    .values(tenant=bindparam("tenant"), name=bindparam("name"))
    .on_conflict_do_nothing(),
    *("tenant", "name"),
)
FIND_TENANTS = _text(
    select(tenants.c.tenant, tenants.c.name)
    .where(tenants.c.tenant > bindparam("after"))
    .order_by(tenants.c.tenant)
    .limit(_bind("limit")),
    *("after", "limit"),
)
HAVE_SESSIONS = _text(
    select(tenants.c.tenant).where(
        exists().where(sessions.c.tenant == tenants.c.tenant).correlate(tenants)
    )
)

# The search index

BEHIND = _text(
    select(*_head)
    .where(
        sessions.c.tenant == bindparam("tenant"),
        sessions.c.session > bindparam("session"),
        is_behind,
    )
    .order_by(sessions.c.session)
    .limit(_bind("limit")),
    *("tenant", "session", "limit"),
)
UNREAD = _text(
    select(entries.c.rid, *_row)
    .where(
        entries.c.session == bindparam("session"),
        entries.c.seq > _bind("after"),
        entries.c.seq <= _bind("last"),
        is_message,
    )
    .order_by(entries.c.seq)
    .limit(_bind("limit")),
    *("session", "after", "last", "limit"),
)
SET_INDEXED = _update(sessions, ("indexed",), "session")
_word = insert_or(words).values(
    {name: bindparam(name) for name in ("session", "seq", "rid", "words")}
)
ADD_WORDS = _text(_word.on_conflict_do_nothing(), "session", "seq", "rid", "words")
_found = (
    select(words.c.rid, words.c.session, words.c.seq)
    .where(
        words.c.words.contains(bindparam("words", type_=ARRAY(BigInteger()))),
        words.c.rid < _bind("before"),
    )
    .order_by(words.c.rid.desc())
    .limit(_bind("limit"))
)
FIND_WORDS = _text(_found, "words", "before", "limit")
FORGET_WORDS = _delete(words, "session", "seq")
DELETE_WORDS = _delete(words, "session")

FIND_FORMAT = _text(select(format.c.version))
SAVE_FORMAT = _text(
    insert_or(format)
    .values(one=literal_column("true"), version=bindparam("version"))
    .on_conflict_do_update(index_elements=["one"], set_={"version": bindparam("version")}),
    "version",
)
EVERYTHING = (*(DELETE_ROWS, DELETE_WORDS, DELETE_LINES, DELETE_ONCE, DELETE_DRAFT, DELETE_BLOBS),)
