"""Sessions and branches as rows: how one is read and told from a damaged one, and which are known.

A head that was read or written is right as long as its row is at the same version. So one who
appends to a session again and again does not read it again: he says at which version he thinks it
is, and is told when it is not.
"""

from collections.abc import Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any
from zlib import crc32

import msgspec
from asyncpg.pgproto.pgproto import UUID

from holdfast.errors import Corrupt
from holdfast.stores.head import Head, Line
from holdfast.stores.postgresql.names import digest

KNOWN_MAX = 10_000
NOT_LOOKED = -1  # whether there is a draft, and how long it is
HEAD_START = 5  # where the fields of a Head begin in a row
HEAD_END = 21
CLOCK = 22  # what the server's clock said
LINE_START = 24  # where a branch begins that came with a head

_pack = msgspec.msgpack.Encoder().encode
_head_fields = attrgetter(
    *("tenant", "id", "key", "agent", "created", "updated", "ttl", "marked", "seq"),
    *("branch", "branches", "token", "owner", "process", "boot", "until"),
)
_line_fields = attrgetter("number", "name", "parent", "fork", "base", "head", "count", "link")

Place = tuple[str, str]  # tenant and id


class Known:
    """A session, where it stands, and what is known of it at one version.

    `is_complete` tells whether all branches are known, and `chunks` is the number of the last piece
    of its draft: None if there is no draft, NOT_LOOKED if nobody has looked.
    """

    __slots__ = (
        *("chunks", "head", "indexed", "is_complete", "session", "tenant", "version", "watched"),
        "writer",
    )

    def __init__(self, head: Head, session: Any, tenant: Any, version: int) -> None:
        self.head = head
        self.session = session
        self.tenant = tenant
        self.version = version
        self.writer: Any = None
        self.watched = 0
        self.indexed = 0
        self.is_complete = False
        self.chunks: int | None = NOT_LOOKED

    @property
    def place(self) -> Place:
        return self.head.tenant, self.head.id


@lru_cache(4_096)
def tenant_of(name: str) -> Any:
    """The digest that stands for a tenant."""
    return UUID(digest("tenant", name))


def session_of(tenant: str, id: str) -> Any:
    """The digest that stands for a session."""
    return UUID(digest("session", tenant, id))


def name_of(tenant: str, key: str) -> Any:
    """The digest that stands for a session's key."""
    return UUID(digest("key", tenant, key))


def head_check(head: Head) -> int:
    """What the row of this head is told by."""
    return crc32(_pack(_head_fields(head)))


def line_check(session: Any, line: Line) -> int:
    """What the row of this branch is told by."""
    return crc32(_pack(_line_fields(line)), crc32(session.bytes))


def read_known(tenant: str, row: Sequence[Any]) -> Known:
    """The session in a row; Corrupt if it is damaged."""
    session, version, watched, indexed, writer = row[:HEAD_START]
    number, id, key, agent, *counts, owner, process, boot, until = row[HEAD_START:HEAD_END]
    fields: list[Any] = [number, tenant, id.decode(), key.decode(), agent.decode(), *counts]
    fields += [None if owner is None else owner.decode(), process.decode(), boot.decode(), until]
    head = Head(*fields)
    if head_check(head) != row[HEAD_END] or session_of(tenant, head.id) != session:
        raise Corrupt(f"session {head.key!r}", "its row is not what was written")
    known = Known(head, session, tenant_of(tenant), version)
    known.watched, known.indexed, known.writer = watched, indexed, writer
    return known


def read_with_line(tenant: str, row: Sequence[Any]) -> Known:
    """The session in a row that goes on with its last chunk and its branch in use."""
    known = read_known(tenant, row)
    known.chunks = row[LINE_START - 1]
    if row[LINE_START] is not None:
        line = read_line(known, row[LINE_START:])
        known.head.lines[line.name] = line
        known.is_complete = known.head.branches == 1
    return known


def read_line(known: Known, row: Sequence[Any]) -> Line:
    """The branch in a row; Corrupt if it is damaged."""
    number, name, *rest, check = row
    line = Line(number, name.decode(), *rest)
    if line_check(known.session, line) != check:
        raise Corrupt(f"session {known.head.key!r}", "a branch of it is not what was written")
    return line


def changed(known: Known) -> tuple[Any, ...]:
    """What UPDATE_SESSION binds behind version and writer."""
    head = known.head
    return (
        *(head.agent.encode(), head.updated, head.ttl, head.marked, head.seq, head.branch),
        *(head.branches, head.token, None if head.owner is None else head.owner.encode()),
        *(head.process.encode(), head.boot.encode(), head.until, head_check(head)),
        known.session,
    )
