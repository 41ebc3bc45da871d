"""Which conversation is meant.

@          the one written to last
@-1        the one before it, and so on
KEY        its key, whole: telegram:12345678
KEY…       the beginning of a key, or of an id, if no other begins like it
"""

import re
from typing import TYPE_CHECKING

from holdfast.cli.failures import NOT_FOUND, Failure

if TYPE_CHECKING:
    from holdfast.manager import SessionManager
    from holdfast.peek import Peek
    from holdfast.session import Session

_LATEST = re.compile(r"@(?:-(\d+))?\Z")
_PAGE = 1_000
_SHOWN = 5


class Unknown(Failure):
    """There is no such conversation."""

    def __init__(self, reference: str) -> None:
        super().__init__(f"there is no conversation {reference!r}: see holdfast ls", NOT_FOUND)


async def find_key(sessions: "SessionManager", reference: str) -> str:
    """The key of the conversation that is meant, or Failure."""
    if latest := _LATEST.match(reference):
        return await _latest(sessions, int(latest[1] or 0))
    from holdfast.errors import Corrupt, InvalidInput, SessionNotFound

    try:
        return (await sessions.peek(reference)).key
    except Corrupt:  # it is there, whatever can be done with it
        return reference
    except (SessionNotFound, InvalidInput):
        return await _beginning(sessions, reference)


async def find_whole(sessions: "SessionManager", reference: str) -> str:
    """The same for what is removed without a question: the beginning of a key is not enough.

    A script that runs again names what it has removed already, and another may begin like it.
    """
    from holdfast.errors import Corrupt

    key = await find_key(sessions, reference)
    if key == reference or _LATEST.match(reference):
        return key
    try:
        id = (await sessions.peek(key)).record.id
    except Corrupt:
        id = ""
    if id != reference:
        raise Failure(
            f"there is no conversation {reference!r}, and {key!r} only begins like it: with --yes, "
            "name it whole",
            NOT_FOUND,
        )
    return key


async def find(sessions: "SessionManager", reference: str) -> "Session":
    """The conversation that is meant, or Failure."""
    return await sessions.get(await find_key(sessions, reference))


async def look(sessions: "SessionManager", reference: str) -> "Peek":
    """The conversation that is meant, to be read without being opened, or Failure."""
    return await sessions.peek(await find_key(sessions, reference))


async def _latest(sessions: "SessionManager", back: int) -> str:
    page = await sessions.list(limit=min(back + 1, _PAGE))
    while page.next is not None and back >= len(page.items):
        back -= len(page.items)
        page = await sessions.list(limit=_PAGE, page=page.next)
    if back >= len(page.items):
        raise Failure("there are not as many conversations: see holdfast ls", NOT_FOUND)
    return page.items[back].key


async def _beginning(sessions: "SessionManager", start: str) -> str:
    found: list[str] = []
    page = await sessions.list(limit=_PAGE)
    while True:
        found += [s.key for s in page.items if s.key.startswith(start) or s.id.startswith(start)]
        if page.next is None or len(found) > _SHOWN:
            break
        page = await sessions.list(limit=_PAGE, page=page.next)
    if not start or not found:
        raise Unknown(start)
    if len(found) > 1:
        shown = ", ".join(found[:_SHOWN]) + (" and more" if len(found) > _SHOWN else "")
        raise Failure(f"{start!r} may be {shown}: give more of it", NOT_FOUND)
    return found[0]
