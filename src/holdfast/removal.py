"""Removing a whole session so that nothing of it is left, with a receipt."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import NamedTuple

from holdfast.children import family
from holdfast.errors import Busy, Conflict, SessionNotFound
from holdfast.memory import Memory
from holdfast.stores.base import Store, Tenant
from holdfast.stores.values import Record

_TRIES_MAX = 100


class Erased(NamedTuple):
    """The receipt of an erase.

    keys      the sessions that are gone: the one that was named, and its children
    entries   how many entries they had
    looked    where the store has looked for what was in them, and found nothing any more; and the
              memory, whose files have nothing that was made of them
    """

    keys: tuple[str, ...]
    entries: int
    looked: tuple[str, ...]


async def erase_session(
    store: Store,
    tenant: Tenant,
    key: str,
    found: Callable[[Sequence[Record]], object],
    *,
    memory: Memory | None = None,
) -> Erased:
    """Remove a session and its children, expired or not, and see that no byte of them is left.

    What a memory has of them goes first, then what was said, which is looked for; then the record,
    if nothing was written to it meanwhile: a turn that comes to its end just now would leave its
    words behind. Then all of it is done again. Whatever stops it, it is asked for again: the
    session is there until nothing of it is. `found` is told the sessions before they go.
    """
    entries: dict[str, int] = {}
    records = await family(tenant, await tenant.load(key, even_expired=True))
    for tries_left in reversed(range(_TRIES_MAX)):
        found(records)
        try:
            for record in reversed(records):  # the named one last: by it the others are found
                await _erase(tenant, record, entries, memory)
            break
        except (Busy, Conflict):
            if not tries_left:
                raise
        try:
            record = await tenant.load(key, even_expired=True)
        except SessionNotFound:  # somebody else was as quick
            break
        if record.id != records[0].id:  # and made it anew
            break
        records = await family(tenant, record)
    looked = store.places() if memory is None else (*store.places(), *memory.leaving.where())
    return Erased(tuple(reversed(entries)), sum(entries.values()), looked)


async def _erase(
    tenant: Tenant, record: Record, entries: dict[str, int], memory: Memory | None
) -> None:
    """One session; how many entries it had goes to `entries`."""
    entries[record.key] = max(record.seq, entries.get(record.key, 0))
    async with nullcontext() if memory is None else memory.leaving.forgetting(record):
        try:
            cleared = await tenant.clear(record.id)
            await tenant.delete(record.id, seen=cleared)
        except SessionNotFound:
            return  # somebody else was as quick
