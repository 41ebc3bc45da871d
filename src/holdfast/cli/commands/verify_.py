"""`holdfast verify`: hold every stored byte against its digest."""

from typing import TYPE_CHECKING

import click

from holdfast.cli import references
from holdfast.cli.app import App
from holdfast.cli.command import command as make
from holdfast.cli.failures import DAMAGED
from holdfast.cli.screen import counted, safe

if TYPE_CHECKING:
    from holdfast.stores.values import Verified

_WAY_OUT = (
    "What is damaged is left as it is, and never shown as if it were whole. Put a backup in its "
    "place (see Operations), or export what can be read, then holdfast rm the conversation."
)


@make("verify", epilog="The exit status is 5 where something is damaged. See also holdfast doctor.")
@click.argument("reference", required=False, metavar="[REF]")
@click.option("--json", "is_json", is_flag=True, help="For programs")
async def command(app: App, reference: str | None, is_json: bool) -> int:
    """Go over a conversation, or all, and report whatever is not what was written."""
    async with app.sessions() as sessions:
        key = None if reference is None else await references.find_key(sessions, reference)
        found = await sessions.verify(key, on_progress=app.screen.progress("verified"))
    if is_json:
        app.screen.json(
            {
                "sessions": found.sessions,
                "entries": found.entries,
                "problems": [each._asdict() for each in found.problems],
            }
        )
    else:
        _print(app, found)
    return DAMAGED if found.problems else 0


def _print(app: App, found: "Verified") -> None:
    for each in found.problems:
        app.screen.print(safe(str(each)))
    sessions = counted(found.sessions, "conversation")
    seen = f"went over {sessions} with {counted(found.entries, 'entry', 'entries')}: "
    if found.problems:
        app.screen.note(seen + counted(len(found.problems), "problem"), "red")
        app.screen.note(_WAY_OUT)
    else:
        app.screen.note(f"{seen}each byte is what was written", "green")
