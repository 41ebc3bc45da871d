"""Many conversations, page by page."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.manager import SessionManager
    from holdfast.stores.values import Summary

_PAGE = 1_000


async def summaries(
    sessions: "SessionManager",
    limit: int = 0,
    *,
    agent: str | None = None,
    since: datetime | None = None,
) -> AsyncIterator["Summary"]:
    """The conversations written to last, as many as are wanted; 0 is all."""
    left, next_page = limit or None, None
    while True:
        size = _PAGE if left is None else min(left, _PAGE)
        page = await sessions.list(agent=agent, since=since, limit=size, page=next_page)
        for summary in page.items:
            yield summary
        left = None if left is None else left - len(page.items)
        next_page = page.next
        if next_page is None or left == 0:
            return


async def saying(sessions: "SessionManager", words: str) -> AsyncIterator[str]:
    """The keys of the conversations in which a message holds these words, each once."""
    seen: set[str] = set()
    next_page = None
    while True:
        page = await sessions.search(words, limit=_PAGE, page=next_page)
        for found in page.items:
            if found.key not in seen:
                seen.add(found.key)
                yield found.key
        next_page = page.next
        if next_page is None:
            return
