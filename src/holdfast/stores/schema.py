"""What a session's rows hold in every SQL store: one schema, whatever the dialect.

A store adds what it finds rows by (a session's number or its digest, the tenant), its indexes, and
how a text is kept: text in PostgreSQL cannot hold a NUL, so there it is bytes.

`check` is a CRC-32 of what must not change unnoticed, `link` the place of a row in the chain of
its branch; `salt` and `payload` go when an entry is erased. Times are microseconds.
"""

from typing import Any

from sqlalchemy import BigInteger, Column, Integer, LargeBinary, Text
from sqlalchemy.types import TypeEngine

PLACE_STEP = 64  # every so many messages, one is found by its position

Type = type[TypeEngine[Any]]

# name, type, and "?" behind the names of those that may be missing
_FIELDS: dict[str, tuple[tuple[str, Type], ...]] = {
    "sessions": (
        ("id", Text),
        ("key", Text),
        ("agent", Text),
        ("created", BigInteger),
        ("updated", BigInteger),
        ("ttl?", BigInteger),
        ("marked?", BigInteger),
        ("seq", BigInteger),
        ("branch", Integer),
        ("branches", Integer),
        ("token", BigInteger),
        ("owner?", Text),
        ("process", Text),
        ("boot", Text),
        ("until", BigInteger),
        ("check", BigInteger),
    ),
    "documents": (
        ("body", LargeBinary),
        ("check", BigInteger),
        ("digest", LargeBinary),
    ),
    "branches": (
        ("name", Text),
        ("parent?", Integer),
        ("fork", BigInteger),
        ("base", BigInteger),
        ("head", BigInteger),
        ("count", BigInteger),
        ("link", LargeBinary),
        ("check", BigInteger),
    ),
    "entries": (
        ("branch", Integer),
        ("position", BigInteger),
        ("kind", Text),
        ("check", BigInteger),
        ("link", LargeBinary),
        ("salt?", LargeBinary),
        ("payload?", LargeBinary),
        ("holes?", LargeBinary),
        ("seal?", LargeBinary),
    ),
    "once": (
        ("salt?", LargeBinary),
        ("digest?", LargeBinary),
        ("first", BigInteger),
        ("last", BigInteger),
        ("branch", Text),
        ("messages", BigInteger),
        ("check", BigInteger),
    ),
    "drafts": (
        ("digest", LargeBinary),
        ("data", LargeBinary),
    ),
    "blobs": (
        ("count", BigInteger),
        ("salt", LargeBinary),
        ("data", LargeBinary),
    ),
}


def fields(table: str, text: Type) -> "list[Column[Any]]":
    """The columns of a table behind those that its rows are found by, with texts of type `text`."""
    return [
        Column(name.rstrip("?"), text if kind is Text else kind, nullable=name.endswith("?"))
        for name, kind in _FIELDS[table]
    ]
