"""`holdfast ls`: conversations, the latest first."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from holdfast.cli import amounts, times
from holdfast.cli.app import App, NoStore
from holdfast.cli.command import command as make
from holdfast.cli.listing import saying, summaries
from holdfast.cli.screen import one_line

if TYPE_CHECKING:
    from holdfast.manager import SessionManager
    from holdfast.peek import Peek
    from holdfast.steps.limits import Spent
    from holdfast.stores.values import Summary

_TITLE_COLUMNS = 200
_EPILOG = """\b
Examples:
  holdfast ls --since 7d
  holdfast ls -q "invoice paid" -l
  holdfast ls -n 0 --json | jq -r '.[].key'"""


@make("ls", epilog=_EPILOG)
@click.option(
    "-n", "limit", type=click.IntRange(0), default=50, show_default=True, help="How many; 0 is all"
)
@click.option("-q", "words", metavar="WORDS", help="Only those in which these words are said")
@click.option("--agent", help="Only those of this agent")
@click.option("--since", metavar="TIME", help="Only those written to since: 12h, 7d, 2026-01-31")
@click.option("-l", "--long", "is_long", is_flag=True, help="Also tokens and cost")
@click.option("--json", "is_json", is_flag=True, help="For programs")
async def command(
    app: App,
    limit: int,
    words: str | None,
    agent: str | None,
    since: str | None,
    is_long: bool,
    is_json: bool,
) -> None:
    """Conversations, the one written to last first: key, when, how long, how it began."""
    after = times.moment(since) if since else None
    tell = app.screen.progress("conversations")
    rows: list[_Row] = []
    try:
        async with app.sessions() as sessions:
            async for summary in _wanted(sessions, words, limit, agent, after):
                rows.append(await _row(sessions, summary, is_long=is_long))
                if limit == 0 or limit > 1_000:
                    tell(len(rows))
    except NoStore:
        if not app.is_default_store:
            raise
    if is_json:
        app.screen.json([row.plain(is_long=is_long) for row in rows])
    elif rows:
        heads = ["KEY", "WHEN", "MESSAGES", *(["IN", "OUT", "COST"] if is_long else [])]
        app.screen.table([row.cells(is_long=is_long) for row in rows], [*heads, "BEGAN WITH"])
    else:
        app.screen.note("there are no such conversations: holdfast chat begins one")


class _Row(NamedTuple):
    """What one line tells. `state` is empty for one at which nothing has to be done."""

    summary: "Summary"
    messages: int | None
    title: str
    state: str = ""
    spent: "Spent | None" = None

    def plain(self, *, is_long: bool) -> dict[str, Any]:
        summary, spent = self.summary, self.spent
        found: dict[str, Any] = {
            "key": summary.key,
            "id": summary.id,
            "agent": summary.agent,
            "created_at": times.plain(summary.created_at),
            "updated_at": times.plain(summary.updated_at),
            "messages": self.messages,
            "title": self.title,
            "state": self.state,
            "damage": summary.damage or (self.title if self.state == "damaged" else ""),
        }
        if is_long:
            found["spent"] = None if spent is None or not spent.calls else spent.values
        return found

    def cells(self, *, is_long: bool) -> list[str]:
        count = "?" if self.messages is None else str(self.messages)
        state = f"[{self.state}] " if self.state else ""
        cells = [one_line(self.summary.key, 60), times.shown(self.summary.updated_at), count]
        if is_long:
            spent = self.spent
            if spent is None:
                cells += [amounts.UNKNOWN] * 3
            else:
                cost = amounts.money(spent.cost, spent.calls, spent.calls)
                cells += [amounts.tokens(spent.input), amounts.tokens(spent.output), cost]
        return [*cells, state + self.title]


async def _wanted(
    sessions: "SessionManager",
    words: str | None,
    limit: int,
    agent: str | None,
    since: datetime | None,
) -> AsyncIterator["Summary"]:
    if words is None:
        async for summary in summaries(sessions, limit, agent=agent, since=since):
            yield summary
        return
    keys = {key async for key in saying(sessions, words)}
    found = 0
    async for summary in summaries(sessions, agent=agent, since=since):
        if not keys or (limit and found == limit):
            return
        if summary.key in keys:
            keys.remove(summary.key)
            found += 1
            yield summary


async def _row(sessions: "SessionManager", summary: "Summary", *, is_long: bool) -> _Row:
    """What one line tells of a conversation. One that is damaged hides no other."""
    from holdfast.errors import SessionNotFound, StoreError

    try:
        peek = await sessions.peek(summary.key)
        first = await peek.read(0, 3)
        spent = await peek.spent() if is_long else None
    except SessionNotFound:
        return _Row(summary, None, "removed a moment ago", "gone")
    except StoreError as error:
        why = summary.damage or str(error)
        return _Row(summary, None, one_line(why, _TITLE_COLUMNS), "damaged")
    said = [row.entry for row in first]
    title = next((text for each in said if (text := _said_by_user(each))), "")
    state = _state(peek)
    return _Row(summary, peek.branch.count, one_line(title, _TITLE_COLUMNS), state, spent)


def _said_by_user(entry: Any) -> str | None:
    from holdfast.messages import Message

    if isinstance(entry, Message) and entry.role.canonical == "user":
        return entry.text
    return None


def _state(peek: "Peek") -> str:
    """What somebody has to know before going on with it."""
    if peek.expired_at is not None:
        return "expired"
    draft = peek.draft
    if draft is None:
        return ""
    return draft.ended or ("running" if draft.is_running else "cut off")
