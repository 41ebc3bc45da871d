"""`holdfast copy`: bring conversations to another store, while both are in use."""

import re
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli import references
from holdfast.cli.app import App
from holdfast.cli.command import command as make
from holdfast.cli.failures import BUSY, DAMAGED, USAGE, Failure
from holdfast.cli.screen import counted, safe

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from holdfast.stores.base import Store
    from holdfast.stores.copying import Copied, Progress

_IS_URL = re.compile(r"(sqlite|jsonl|memory|postgres(ql)?):", re.IGNORECASE)


@make(
    "copy",
    epilog="Examples:\n\n\b\n"
    "holdfast copy sqlite:elsewhere.db\n"
    "holdfast --store sqlite:chats.db copy postgresql://db.example/chats\n"
    "\nWhat was interrupted goes on where it was when it is run again.",
)
@click.argument("to", metavar="TO_URL")
@click.argument("references", nargs=-1, metavar="[REF]...")
@click.option("--skip-conflicts", is_flag=True, help="What is something else there is no error")
@click.option("--recheck", is_flag=True, help="Read again what an earlier copy has brought")
@click.option("--all-tenants", "is_all", is_flag=True, help="The conversations of every tenant")
@click.option("--json", "is_json", is_flag=True, help="For programs")
async def command(
    app: App,
    to: str,
    references: tuple[str, ...],
    skip_conflicts: bool,
    recheck: bool,
    is_all: bool,
    is_json: bool,
) -> int:
    """Copy conversations to another store: all, or those that are named.

    They keep their ids, times and branches; each entry is read back and compared. Both stores may
    be in use. What the other store has under the same key, and did not get from here, is never
    touched.
    """
    import asyncio

    from holdfast.cli.config import shown
    from holdfast.stores import open_store, place_of

    if is_all and references:
        raise Failure("say --all-tenants, or name conversations, not both", USAGE)
    if any(_IS_URL.match(each) for each in references):  # not repeated: it may hold a password
        raise Failure(
            "one store is named behind copy, the one to copy to: the other is that of --store, as "
            "in holdfast --store FROM copy TO",
            USAGE,
        )
    here, there = place_of(app.store_url), place_of(to)
    if to == app.store_url or (here is not None and there is not None and _is_same(here, there)):
        raise Failure("this is the store that is copied: name another one", USAGE)
    choice: dict[str, Any] = {"on_conflict": "skip" if skip_conflicts else "error"}
    choice |= {"recheck": recheck, "on_progress": _progress(app)}
    results: list[Copied] = []
    try:
        async with open_store(to) as target:
            async for copied in _copies(app, target, references, is_all, choice):
                results.append(copied)  # noqa: PERF401 - each counts, also when a later one fails
    except asyncio.CancelledError:
        app.screen.note("what was copied is there: run it again, and it goes on where it was")
        raise
    _print(app, results, shown(to), is_json=is_json)
    if any(each.failed for each in results):
        return DAMAGED
    is_taken = any(each.conflicts for each in results) and not skip_conflicts
    return BUSY if is_taken else 0


async def _copies(
    app: App, target: "Store", named: tuple[str, ...], is_all: bool, choice: dict[str, Any]
) -> "AsyncIterator[Copied]":
    """What came of each copy. One that has problems tells them, and is no error yet."""
    from holdfast.errors import NotCopied
    from holdfast.stores.copying import copy

    async with app.sessions() as sessions:
        keys = [await references.find_key(sessions, each) for each in named]
        chosen: list[dict[str, Any]] = [{"key": key} for key in keys] or [{}]
        for each in chosen:
            try:
                if is_all:
                    yield await copy(sessions.store, target, **choice)
                else:
                    yield await sessions.copy(target, **each, **choice)
            except NotCopied as error:
                yield error.copied


def _progress(app: App) -> Any:
    tell = app.screen.progress("copied", name="entries")

    def told(progress: "Progress") -> None:
        tell(progress.entries, progress.entries_total)

    return told


def _is_same(here: Any, there: Any) -> bool:
    try:
        return bool(here.samefile(there))
    except OSError:
        return False


def _print(app: App, results: "list[Copied]", to: str, *, is_json: bool) -> None:
    total = {
        name: sum(getattr(each, name) for each in results)
        for name in ("sessions", "unchanged", "entries", "written", "ahead")
    }
    told = {
        name: [problem for each in results for problem in getattr(each, name)]
        for name in ("moved", "conflicts", "failed")
    }
    if is_json:
        problems = {name: [each._asdict() for each in found] for name, found in told.items()}
        app.screen.json(total | problems)
        return
    app.screen.print(
        safe(
            f"{counted(total['sessions'], 'conversation')} in {to}, {total['unchanged']:,} of them "
            f"from before; {counted(total['written'], 'entry', 'entries')} written, all read back"
        )
    )
    ways_out = {
        "moved": "copy again when that is over",
        "conflicts": "it was left as it is; remove it there, or say --skip-conflicts",
        "failed": "see holdfast verify",
    }
    for name, found in told.items():
        for each in found:
            app.screen.note(
                safe(f"{each}: {ways_out[name]}"), "yellow" if name == "moved" else "red"
            )
