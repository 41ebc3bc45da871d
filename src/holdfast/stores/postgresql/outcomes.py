"""What became of a write whose connection broke while the server was asked to commit it.

It is looked up, never guessed. The session is locked, so that whoever is in the middle of a
commit is waited for, and fenced: its version is counted up, so that a statement that is still on
its way can do nothing any more. Then what was to be written is either there or not: any write is
known by the name of its transaction, as long as it was the last, and an entry for ever by its link,
which has random salt in it.

The fence is a commit itself, so what it found is as safe as any commit when the answer is given.
"""

import asyncio
import time
from typing import Any

from asyncpg.pgproto.pgproto import UUID

from holdfast.errors import StoreUnavailable
from holdfast.stores.postgresql import statements as sql
from holdfast.stores.postgresql.batch import BatchShelf
from holdfast.stores.postgresql.errors import is_lost, is_passing
from holdfast.stores.postgresql.names import digest
from holdfast.stores.postgresql.pool import Pool
from holdfast.stores.postgresql.server import Link, Server
from holdfast.stores.postgresql.shelf import PostgresShelf

PATIENCE_S = 30.0
AGAIN_S = 0.1


async def of_batch(
    pool: Pool, server: Server, tenants: str, shelf: BatchShelf, writer: Any
) -> dict[Any, bool | None]:
    """For each session, whether the batch was written to it; None if nobody knows."""
    evidence = shelf.evidence()

    async def look(link: Link) -> dict[Any, bool | None]:
        return {
            session: await _is_written(
                link, session, shelf.touched[session].version, writer, evidence.get(session)
            )
            for session in sorted(shelf.touched)
        }

    found: dict[Any, bool | None] = await _looked(pool, server, tenants, look)
    for known in shelf.touched.values():
        known.version += 1  # that of the fence
    return found


async def of_one(
    pool: Pool, server: Server, tenants: str, shelf: PostgresShelf, writer: Any
) -> bool:
    """Whether a transaction was committed."""

    async def look(link: Link) -> list[bool | None]:
        gone = [
            await link.raw.fetchrow(sql.LOCK_VERSION, session) is None for session in shelf.deleted
        ]
        return gone + [
            await _is_written(link, session, known.version, writer, None)
            for session, known in shelf.touched.items()
        ]

    found: list[bool | None] = await _looked(pool, server, tenants, look)
    if None in found:
        raise unknown(server.where)
    for known in shelf.touched.values():
        known.version += 1  # that of the fence
    return bool(found) and all(found)


async def _is_written(
    link: Link, session: Any, before: int, writer: Any, evidence: tuple[int, bytes] | None
) -> bool | None:
    row = await link.raw.fetchrow(sql.LOCK_VERSION, session)
    if row is None:
        return False  # it was never made, or it is deleted, whatever was in it
    version, last = row
    fence = UUID(digest("fence", str(writer)))
    await link.raw.execute(sql.FENCE, fence if version == before else last, session)
    if last == writer:
        return True
    if version == before or last == fence:
        return False
    if evidence is None:
        return None  # another wrote then
    found = await link.raw.fetchrow(sql.FIND_LINK, session, evidence[0])
    return found is not None and bool(found[0] == evidence[1])


async def _looked(pool: Pool, server: Server, tenants: str, look: Any) -> Any:
    """What `look` finds in a transaction, as soon as there is a server again."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            async with asyncio.timeout(PATIENCE_S), pool.lend() as link:
                await link.begin(tenants)
                found = await look(link)
                await link.raw.execute("COMMIT")
                return found
        except Exception as error:
            if not (is_lost(error) or is_passing(error)):
                raise
            if time.monotonic() > end:
                raise unknown(server.where) from error
            pool.drop_idle()
            await asyncio.sleep(AGAIN_S)


def unknown(where: str) -> StoreUnavailable:
    """What is told when nobody can find out: the one case in which an error means neither."""
    return StoreUnavailable(
        where,
        "the connection broke in the middle of a commit, and what became of it could not be found "
        "out: look before you ask again, or name appends with `once`",
    )
