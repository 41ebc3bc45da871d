"""`holdfast ls`: conversations, the latest first."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from holdfast.cli import times
from holdfast.cli.app import App
from holdfast.cli.command import command as make
from holdfast.cli.screen import one_line

if TYPE_CHECKING:
    from holdfast.manager import SessionManager
    from holdfast.stores.values import Summary

_PAGE = 1_000
_TITLE_COLUMNS = 200


@make("ls")
@click.option(
    "-n", "limit", type=click.IntRange(0), default=50, show_default=True, help="How many; 0 is all"
)
@click.option("--agent", help="Only those of this agent")
@click.option("--since", metavar="TIME", help="Only those written to since: 12h, 7d, 2026-01-31")
@click.option("--json", "is_json", is_flag=True, help="For programs")
async def command(
    app: App, limit: int, agent: str | None, since: str | None, is_json: bool
) -> None:
    """Conversations, the one written to last first: key, when, how long, how it began."""
    after = times.moment(since) if since else None
    async with app.sessions() as sessions:
        rows = [
            await _row(sessions, summary)
            async for summary in _summaries(sessions, limit, agent, after)
        ]
    if is_json:
        app.screen.json([row.plain() for row in rows])
    elif rows:
        app.screen.table([row.cells() for row in rows], ["KEY", "WHEN", "MESSAGES", "BEGAN WITH"])
    else:
        app.screen.note("there are no such conversations: holdfast chat begins one")


class _Row(NamedTuple):
    summary: "Summary"
    messages: int | None
    title: str

    def plain(self) -> dict[str, Any]:
        summary = self.summary
        return {
            "key": summary.key,
            "id": summary.id,
            "agent": summary.agent,
            "created_at": times.plain(summary.created_at),
            "updated_at": times.plain(summary.updated_at),
            "messages": self.messages,
            "title": self.title,
            "damage": summary.damage,
        }

    def cells(self) -> list[str]:
        count = "?" if self.messages is None else str(self.messages)
        title = f"damaged: {self.summary.damage}" if self.summary.damage else self.title
        return [self.summary.key, times.shown(self.summary.updated_at), count, title]


async def _summaries(
    sessions: "SessionManager", limit: int, agent: str | None, since: datetime | None
) -> AsyncIterator["Summary"]:
    """As many as are wanted, page by page."""
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


async def _row(sessions: "SessionManager", summary: "Summary") -> _Row:
    """What one line tells of a conversation. One that is damaged or expired hides no other."""
    from holdfast.errors import StoreError

    try:
        session = await sessions.get(summary.key)
        first = await session.read(0, 3)
    except StoreError as error:
        return _Row(summary, None, one_line(str(error), _TITLE_COLUMNS))
    said = next((m.text for m in first if m.role.canonical == "user" and m.text), "")
    return _Row(summary, session.count, one_line(said, _TITLE_COLUMNS))
