"""Sessions and branches as rows: how one is read and told from a damaged one, and which are known.

A head that was read or written in one transaction is right in the next one too, if nobody else
has written in between. SQLite tells: its data version changes with every commit of another
connection. So one who appends to the same sessions again and again does not read them again.
"""

from collections.abc import Sequence
from operator import attrgetter
from zlib import crc32

import msgspec

from holdfast.errors import Corrupt
from holdfast.stores.head import Head, Line

KNOWN_MAX = 4_096
NO_VERSION = -1

_pack = msgspec.msgpack.Encoder().encode
_head_fields = attrgetter(
    *("number", "tenant", "id", "key", "agent", "created", "updated", "ttl", "marked", "seq"),
    *("branch", "branches", "token", "owner", "process", "boot", "until"),
)
_line_fields = attrgetter("number", "name", "parent", "fork", "base", "head", "count", "link")


class Heads:
    """The sessions that are known at one version of the data, each with some of its branches.

    `complete` are the numbers of those of which all branches are known, and `chunks` has of those
    that have a draft the number of its last piece, as far as that is known.
    """

    __slots__ = ("by_id", "chunks", "complete", "version")

    def __init__(self, version: int = NO_VERSION) -> None:
        self.version = version
        self.by_id: dict[tuple[str, str], Head] = {}
        self.complete: set[int] = set()
        self.chunks: dict[int, int] = {}

    def at(self, version: int) -> "Heads":
        """What is known at this version."""
        is_right = version == self.version and len(self.by_id) <= KNOWN_MAX
        return self if is_right else Heads(version)


def head_check(head: Head) -> int:
    """What the row of this head is told by."""
    return crc32(_pack(_head_fields(head)))


def line_check(session: int, line: Line) -> int:
    """What the row of this branch is told by."""
    return crc32(_pack(_line_fields(line)), session)


def read_head(fields: Sequence[object]) -> Head:
    """The head in a row; Corrupt if it is damaged."""
    head = Head(*fields[:-1])  # type: ignore[arg-type]
    if crc32(_pack(fields[:-1])) != fields[-1]:
        raise Corrupt(f"session {head.key!r}", "its row is not what was written")
    return head


def read_line(head: Head, fields: Sequence[object]) -> Line:
    """The branch in a row; Corrupt if it is damaged."""
    if crc32(_pack(fields[:-1]), head.number) != fields[-1]:
        raise Corrupt(f"session {head.key!r}", "a branch of it is not what was written")
    return Line(*fields[:-1])  # type: ignore[arg-type]
