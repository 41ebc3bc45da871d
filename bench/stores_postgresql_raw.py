"""asyncpg and SQL written by hand: the same rows in the same tables.

It asks nothing: it is the only one who writes, so it knows every head, it has no policy to pass
(its role is above them), and links, salts and checks are made once. One statement writes the turns
of as many sessions as it is given.
"""

import os
import time
from collections.abc import Sequence
from typing import Any

import asyncpg
from stores_data import TENANT, Turn

from holdfast.stores.postgresql.heads import session_of, tenant_of

_WRITE = """
WITH moved AS (
    UPDATE holdfast.sessions s SET version = s.version + 1, updated = m.updated, seq = m.seq,
        "check" = m."check"
    FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[])
        AS m(session, updated, seq, "check") WHERE s.session = m.session
), grown AS (
    UPDATE holdfast.branches b SET head = g.head, count = g.count, link = g.link,
        "check" = g."check"
    FROM unnest($5::uuid[], $6::bigint[], $7::bigint[], $8::bytea[], $9::bigint[])
        AS g(session, head, count, link, "check") WHERE b.session = g.session AND b.number = 0
)
INSERT INTO holdfast.entries (session, seq, tenant, branch, position, kind, "check", link, salt,
    payload)
SELECT * FROM unnest($10::uuid[], $11::bigint[], $12::uuid[], $13::int[], $14::bigint[],
    $15::bytea[], $16::bigint[], $17::bytea[], $18::bytea[], $19::bytea[])
"""
_SALT, _LINK, _CHECK = os.urandom(16), os.urandom(16), 0x8765_4321


class Raw:
    """A connection, and where every log ends."""

    def __init__(self, db: Any, write: Any, ids: Sequence[str]) -> None:
        self._db = db
        self._write = write
        self._tenant = tenant_of(TENANT)
        self._heads = {id: [session_of(TENANT, id), 0, 0] for id in ids}

    @classmethod
    async def connected(cls, url: str, ids: Sequence[str]) -> "Raw":
        db = await asyncpg.connect(url, server_settings={"jit": "off"})
        raw = cls(db, await db.prepare(_WRITE), ids)
        heads = await db.fetch(
            "SELECT s.session, s.seq, b.count FROM holdfast.sessions s JOIN holdfast.branches b "
            "ON b.session = s.session"
        )
        known = {row[0]: list(row) for row in heads}
        raw._heads = {id: known[head[0]] for id, head in raw._heads.items()}
        return raw

    async def close(self) -> None:
        await self._db.close()

    async def append(self, work: Sequence[tuple[str, Turn]]) -> None:
        """A turn for each of these sessions, in one statement."""
        now = time.time_ns() // 1_000
        rows, moved, grown = [], [], []
        for id, turn in work:
            head = self._heads[id]
            session, seq, count = head
            for kind, payload in turn.rows:
                seq += 1
                count += kind == "message"
                rows.append(
                    (
                        *(session, seq, self._tenant, 0, count - 1, kind.encode(), _CHECK, _LINK),
                        *(_SALT, payload),
                    )
                )
            head[1:] = seq, count
            moved.append((session, now, seq, _CHECK))
            grown.append((session, seq, count, _LINK, _CHECK))
        columns = [column for part in (moved, grown, rows) for column in zip(*part, strict=True)]
        await self._write.fetch(*columns)
