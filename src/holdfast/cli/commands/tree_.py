"""`holdfast tree`: the branches of a conversation."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli import times
from holdfast.cli.app import App
from holdfast.cli.command import command as make
from holdfast.cli.listing import summaries
from holdfast.cli.references import look
from holdfast.cli.screen import Screen, one_line, safe

if TYPE_CHECKING:
    from holdfast.manager import SessionManager
    from holdfast.peek import Line, Peek
    from holdfast.stores.values import Record

_EPILOG = """\b
Examples:
  holdfast tree @
  holdfast tree @ --all --json"""


@make("tree", epilog=_EPILOG)
@click.argument("reference", metavar="[REF]", default="@")
@click.option(
    "--all", "is_all", is_flag=True, help="Look through all conversations for those made from it"
)
@click.option("--json", "is_json", is_flag=True, help="For programs")
async def command(app: App, reference: str, is_all: bool, is_json: bool) -> None:
    """The branches of the conversation REF: where each left which, and how long it is."""
    async with app.sessions() as sessions:
        peek = await look(sessions, reference)
        lines = await peek.lines()
        made = await peek.children()
        parent = None
        if is_all:
            parent, made = await _relatives(app, sessions, peek)
    if is_json:
        app.screen.json(_plain(peek, lines, made, parent))
        return
    for text in _drawn(app.screen, peek, lines):
        app.screen.print(text)
    if parent is not None:
        app.screen.print(f"made from {one_line(parent, 200)}")
    for record in made:
        kind = "child" if "child_of" in record.metadata else "fork"
        agent = f" ({one_line(record.agent, 40)})" if record.agent else ""
        app.screen.print(f"{kind}: {one_line(record.key, 200)}{agent}")


async def _relatives(
    app: App, sessions: "SessionManager", peek: "Peek"
) -> tuple[str | None, list["Record"]]:
    """The key of the session that it was made from, and the records of those made from it."""
    from holdfast.errors import StoreError

    tell = app.screen.progress("conversations")
    parent, made, done = None, [], 0
    async for summary in summaries(sessions):
        done += 1
        tell(done)
        try:
            record = (await sessions.peek(summary.key)).record
        except StoreError:  # damaged, or removed a moment ago
            continue
        if record.id == peek.record.parent:
            parent = record.key
        if record.parent == peek.record.id:
            made.append(record)
    return parent, made


def _drawn(screen: Screen, peek: "Peek", lines: tuple["Line", ...]) -> Iterator[str]:
    yield screen.styled(safe(peek.key, keep=""), "bold")
    by_parent: dict[str | None, list[Line]] = {}
    for line in lines:
        by_parent.setdefault(line.branch.parent, []).append(line)
    waiting = [("", line, line is by_parent[None][-1]) for line in reversed(by_parent[None])]
    last, tee, bar = (
        screen.sign(sign, plain) for sign, plain in (("└─ ", "`- "), ("├─ ", "|- "), ("│  ", "|  "))
    )
    while waiting:
        indent, line, is_last = waiting.pop()
        yield f"{indent}{last if is_last else tee}{_told(screen, peek, line)}"
        below = sorted(by_parent.get(line.branch.name, ()), key=lambda each: -each.branch.fork)
        deeper = indent + ("   " if is_last else bar)
        waiting += [(deeper, each, place == 0) for place, each in enumerate(below)]


def _told(screen: Screen, peek: "Peek", line: "Line") -> str:
    is_used = line.branch.name == peek.record.branch
    name = one_line(line.branch.name, 60)
    told = [f"{line.own:,} message{'' if line.own == 1 else 's'} of its own"]
    if line.branch.parent is not None:
        told.insert(0, f"from turn {line.turn}" if line.turn else "from the beginning")
    if line.ended is not None:
        told.append(times.shown(line.ended))
    rest = screen.styled(f" {screen.sign('·', '-')} ".join(told), "dim")
    shown = f"{screen.styled(name, 'bold', 'green')}  *" if is_used else name
    return f"{shown}  {rest}"


def _plain(
    peek: "Peek", lines: tuple["Line", ...], made: list["Record"], parent: str | None
) -> dict[str, Any]:
    return {
        "key": peek.record.key,
        "id": peek.record.id,
        "branch": peek.record.branch,
        "parent_id": peek.record.parent,
        "parent_key": parent,
        "branches": [
            {
                "name": line.branch.name,
                "parent": line.branch.parent,
                "fork_seq": line.branch.fork,
                "fork_turn": line.turn,
                "shared_messages": line.shared,
                "own_messages": line.own,
                "messages": line.branch.count,
                "is_in_use": line.branch.name == peek.record.branch,
                "began_at": None if line.began is None else times.plain(line.began),
                "ended_at": None if line.ended is None else times.plain(line.ended),
            }
            for line in lines
        ],
        "made_from_it": [
            {
                "key": record.key,
                "id": record.id,
                "agent": record.agent,
                "kind": "child" if "child_of" in record.metadata else "fork",
                "state": record.metadata.get("child_state"),
            }
            for record in made
        ],
    }
