"""`holdfast rm`: remove conversations."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli import references, times
from holdfast.cli.app import App
from holdfast.cli.asking import confirm
from holdfast.cli.command import command as make
from holdfast.cli.failures import FAILED, USAGE, Failure
from holdfast.cli.screen import counted, safe

if TYPE_CHECKING:
    from holdfast.manager import SessionManager
    from holdfast.retention import Retained, Retention


@make(
    "rm",
    epilog="Examples:\n\n\b\n"
    "holdfast rm telegram:123\n"
    "holdfast rm --older-than 90d --keep 100 --dry-run\n"
    "\nRemoved conversations may leave traces on the disk and in backups: holdfast erase leaves "
    "none.",
)
@click.argument("references", nargs=-1, metavar="[REF]...")
@click.option("--older-than", metavar="TIME", help="Those not written to since: 90d, 2026-01-31")
@click.option(
    "--keep", type=click.IntRange(0), help="So many that were written to last stay, whatever else"
)
@click.option("--agent", help="With --older-than or --keep: only those of this agent")
@click.option("--yes", "is_yes", is_flag=True, help="Do not ask; REF is named whole then")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed")
@click.option("--json", "is_json", is_flag=True, help="For programs")
async def command(
    app: App,
    references: tuple[str, ...],
    older_than: str | None,
    keep: int | None,
    agent: str | None,
    is_yes: bool,
    dry_run: bool,
    is_json: bool,
) -> int:
    """Remove conversations, named or by their age and number; it asks first.

    What is written to meanwhile is not removed for its age.
    """
    is_policy = older_than is not None or keep is not None
    if is_policy == bool(references) or (agent is not None and not is_policy):
        raise Failure(
            "name conversations, or say --older-than or --keep: see holdfast rm --help", USAGE
        )
    async with app.sessions() as sessions:
        if is_policy:
            policy = _policy(older_than, keep, agent)
            done = await _retain(app, sessions, policy, is_yes=is_yes, dry_run=dry_run)
        else:
            done = await _remove(sessions, references, is_yes=is_yes, dry_run=dry_run)
    done["dry_run"] = dry_run
    if is_json:
        app.screen.json(done)
    else:
        _print(app, done)
    return FAILED if done["failed"] else 0


async def _remove(
    sessions: "SessionManager", named: tuple[str, ...], *, is_yes: bool, dry_run: bool
) -> dict[str, Any]:
    look = references.find_whole if is_yes and not dry_run else references.find_key
    keys = list(dict.fromkeys([await look(sessions, each) for each in named]))
    if not dry_run:
        confirm(f"Remove {_listed(keys)}?", is_yes=is_yes)
    gone = [key for key in keys if dry_run or await sessions.delete(key)]
    return {"removed": [{"key": key, "why": "named"} for key in gone], "spared": [], "failed": []}


async def _retain(
    app: App, sessions: "SessionManager", policy: "Retention", *, is_yes: bool, dry_run: bool
) -> dict[str, Any]:
    if not dry_run and not is_yes:
        would = await sessions.retain(policy, dry_run=True)
        if not would.gone:
            return _told(would)
        many = counted(len(would.gone), "conversation")
        confirm(f"Remove {many}, and keep {would.kept:,}?", is_yes=False)
    tell, count = app.screen.progress("removed"), 0

    def gone(_: object) -> None:
        nonlocal count
        tell(count := count + 1)

    return _told(await sessions.retain(policy, dry_run=dry_run, on_gone=gone))


def _policy(older_than: str | None, keep: int | None, agent: str | None) -> "Retention":
    from holdfast.retention import Retention

    if older_than is None:
        return Retention(count=keep, agent=agent)
    age = datetime.now(UTC) - times.moment(older_than)
    return Retention(age=age, keep=keep or 0, agent=agent)


def _told(done: "Retained") -> dict[str, Any]:
    return {
        "removed": [{"key": each.key, "why": each.why} for each in done.gone],
        "spared": list(done.spared),
        "failed": [{"key": key, "why": why} for key, why in done.failed],
    }


def _print(app: App, done: dict[str, Any]) -> None:
    for each in done["removed"]:
        app.screen.print(safe(each["key"], keep=""))
    verb = "would be removed" if done["dry_run"] else "removed"
    app.screen.note(f"{len(done['removed']):,} {verb}")
    for key in done["spared"]:
        app.screen.note(safe(f"{key} was written to meanwhile, and stays"))
    for each in done["failed"]:
        app.screen.note(safe(f"{each['key']} could not be removed: {each['why']}"), "red")


def _listed(keys: list[str]) -> str:
    if len(keys) > 5:
        return f"{len(keys)} conversations"
    return ", ".join(keys)
