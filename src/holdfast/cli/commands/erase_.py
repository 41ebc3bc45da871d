"""`holdfast erase`: remove so that no byte is left."""

from typing import TYPE_CHECKING

import click

from holdfast.cli import references
from holdfast.cli.app import App
from holdfast.cli.asking import confirm
from holdfast.cli.command import command as make
from holdfast.cli.failures import NOT_FOUND, USAGE, Failure
from holdfast.cli.screen import counted, one_line, safe

if TYPE_CHECKING:
    from holdfast.manager import SessionManager
    from holdfast.messages import Message
    from holdfast.session import Session


@make(
    "erase",
    epilog="Examples:\n\n\b\n"
    "holdfast erase telegram:123\n"
    "holdfast erase telegram:123 --turn 4\n"
    "\nBackups, copies, exports and forks are other data, and keep what they have.",
)
@click.argument("reference", metavar="REF")
@click.option("--message", metavar="ID", help="Only this message, and what cannot stand without it")
@click.option("--turn", type=click.IntRange(1), help="Only this turn")
@click.option("--yes", "is_yes", is_flag=True, help="Do not ask; REF is named whole then")
@click.option("--dry-run", is_flag=True, help="Only say what would be erased")
@click.option("--json", "is_json", is_flag=True, help="For programs")
async def command(
    app: App,
    reference: str,
    message: str | None,
    turn: int | None,
    is_yes: bool,
    dry_run: bool,
    is_json: bool,
) -> None:
    """Remove a conversation with its children, a turn or a message, for good; it asks first.

    What was made of it (summaries, search index, memory) goes too. The receipt says where was
    looked.
    """
    if message is not None and turn is not None:
        raise Failure("say --message or --turn, not both", USAGE)
    look = references.find_whole if is_yes and not dry_run else references.find_key
    async with app.sessions() as sessions:
        key = await look(sessions, reference)
        if message is None and turn is None:
            if not dry_run:
                confirm(f"Erase all of {key}, for good?", is_yes=is_yes)
            await _whole(app, sessions, key, dry_run=dry_run, is_json=is_json)
            return
        session = await sessions.get(key)
        chosen = await _chosen(session, message, turn)
        said = f"{one_line(chosen.text or '', 60)!r}"
        what = f"turn {turn}, which begins {said}" if turn else f"the message {said}"
        if not dry_run:
            confirm(f"Erase {what} of {session.key}, for good?", is_yes=is_yes)
        erased = 0 if dry_run else await session.erase(turn or chosen)
        where = () if dry_run else sessions.places()
        _print(app, [session.key], erased, where, dry_run=dry_run, is_json=is_json, what=what)


async def _whole(
    app: App, sessions: "SessionManager", key: str, *, dry_run: bool, is_json: bool
) -> None:
    if dry_run:
        _print(app, [key], 0, (), dry_run=True, is_json=is_json, what=f"all of {key}")
        return
    done = await sessions.erase(key)
    _print(app, done.keys, done.entries, done.looked, dry_run=False, is_json=is_json, what="")


async def _chosen(session: "Session", start: str | None, turn: int | None) -> "Message":
    """The message that is meant, or the one that begins the turn."""
    if turn is not None:
        turns = await session.turns()
        if turn > len(turns):
            raise Failure(f"there are {len(turns)} turns: see holdfast show", NOT_FOUND)
        said = [each for each in await session.read() if each.starts_turn]
        return said[turn - 1]
    found = [each for each in await session.read() if start and each.id.startswith(start)]
    if len(found) != 1:
        many = "no message" if not found else "more than one message"
        raise Failure(
            f"{many} on this branch has an id that begins {start!r}: see holdfast show --json",
            NOT_FOUND,
        )
    return found[0]


def _print(
    app: App,
    keys: "list[str] | tuple[str, ...]",
    entries: int,
    looked: tuple[str, ...],
    *,
    dry_run: bool,
    is_json: bool,
    what: str,
) -> None:
    if is_json:
        receipt = {"keys": list(keys), "entries": entries, "looked": list(looked)}
        app.screen.json(receipt | {"dry_run": dry_run})
    elif dry_run:
        app.screen.print(safe(f"would erase {what}"))
    else:
        app.screen.print(
            safe(f"erased {counted(entries, 'entry', 'entries')} of {', '.join(keys)}")
        )
        app.screen.print("looked for what was in them, and found nothing any more:")
        for each in looked:
            app.screen.print(safe(f"  {each}"))
