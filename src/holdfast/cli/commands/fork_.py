"""`holdfast fork`: a new conversation that starts as another one."""

import shlex
from typing import TYPE_CHECKING

import click

from holdfast.cli import references
from holdfast.cli.app import App
from holdfast.cli.command import command as make
from holdfast.cli.failures import BUSY, Failure
from holdfast.cli.screen import counted, safe

if TYPE_CHECKING:
    from holdfast.session import Session

_TRIES_MAX = 1_000


@make(
    "fork",
    epilog="Examples:\n\n\b\n"
    "holdfast fork telegram:123 experiment --at 4\n"
    "\nA branch inside the same conversation is made in holdfast chat, with /branch.",
)
@click.argument("reference", metavar="REF")
@click.argument("key", required=False)
@click.option("--at", metavar="TURN", type=click.IntRange(1), help="As it was behind this turn")
@click.option("--json", "is_json", is_flag=True, help="For programs")
async def command(app: App, reference: str, key: str | None, at: int | None, is_json: bool) -> None:
    """A new conversation that starts as this one; prints its key.

    Without KEY it is named after the one that it comes from.
    """
    from holdfast.errors import DuplicateSession

    async with app.sessions() as sessions:
        session = await references.find(sessions, reference)
        try:
            forked = await (_forked(session, at) if key is None else session.fork(key, at))
        except DuplicateSession as error:
            raise Failure(
                f"there is a conversation {error.key!r} already: name another key", BUSY
            ) from error
        if is_json:
            app.screen.json(
                {"key": forked.key, "id": forked.id, "from": session.key, "messages": forked.count}
            )
            return
        app.screen.print(safe(forked.key, keep=""))
        named = safe(shlex.quote(forked.key), keep="")
        app.screen.note(f"{counted(forked.count, 'message')}; go on with: holdfast chat -s {named}")


async def _forked(session: "Session", at: int | None) -> "Session":
    """Under the first free name."""
    from holdfast.errors import DuplicateSession

    for number in range(2, _TRIES_MAX):
        try:
            return await session.fork(f"{session.key}-{number}", at)
        except DuplicateSession:
            continue
    raise Failure(f"{session.key!r} was forked often: name a key", BUSY)
