"""Removing a whole session so that nothing of it is left, with a receipt."""

from typing import NamedTuple

from holdfast.children import family
from holdfast.errors import SessionNotFound
from holdfast.stores.base import Store, Tenant


class Erased(NamedTuple):
    """The receipt of an erase.

    keys      the sessions that are gone: the one that was named, and its children
    entries   how many entries they had
    looked    where the store has looked for what was in them, and found nothing any more
    """

    keys: tuple[str, ...]
    entries: int
    looked: tuple[str, ...]


async def erase_session(store: Store, tenant: Tenant, key: str) -> Erased:
    """Remove a session and its children, expired or not, and see that no byte of them is left.

    What was said is removed first, and looked for; then the record. Whatever stops it between, it
    is asked for again: the session is there until nothing of it is.
    """
    found = await family(tenant, await tenant.load(key, even_expired=True))
    entries = 0
    for record in reversed(found):  # the named one last: by it the others are found
        entries += record.seq
        try:
            await tenant.clear(record.id)
        except SessionNotFound:
            continue  # somebody else was as quick
        await tenant.delete(record.id)
    return Erased(tuple(record.key for record in found), entries, store.places())
