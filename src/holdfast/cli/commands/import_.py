"""`holdfast import`: conversations from files."""

import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.app import App, NoStore
from holdfast.cli.command import command as make
from holdfast.cli.failures import BUSY, USAGE, Failure, sentence, status_of, words_of
from holdfast.cli.screen import counted, safe

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from holdfast.archive import Archive
    from holdfast.formats import Reading
    from holdfast.manager import SessionManager


@make(
    "import",
    epilog="Examples:\n\n\b\n"
    "holdfast import ada.json\n"
    "holdfast import ~/.nanobot/sessions/*.jsonl\n"
    "cat ada.json | holdfast import - --key ada\n",
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-f", "--format", "name", help="json or nanobot; else what the file holds tells")
@click.option("--key", help="Under this key, as a conversation of its own")
@click.option("--dry-run", is_flag=True, help="Only say what would come of it")
@click.option("--json", "is_json", is_flag=True, help="For programs")
async def command(
    app: App,
    files: tuple[str, ...],
    name: str | None,
    key: str | None,
    dry_run: bool,
    is_json: bool,
) -> int:
    """Bring conversations from files (- is stdin) into the store.

    They keep their ids and times: what is there already is found to be so, and a later export of
    the same conversation adds what is new. What has another conversation's key is not touched: say
    --key. Of a file that cannot be read whole, nothing is imported, but that a last line of JSONL
    that is cut off is left out, and told.
    """
    import asyncio

    if key is not None and len(files) > 1:
        raise Failure("--key is for one file: import them one by one", USAGE)
    if app.store_url.startswith("memory:"):
        raise Failure("memory: is forgotten at once: say --store sqlite:PATH", USAGE)
    told: dict[str, Any] = {"conversations": [], "notes": [], "dry_run": dry_run}
    readings, status = _read_all(app, files, name, key)
    try:
        async with _place(app, dry_run=dry_run) as sessions:
            for file, reading in readings:
                _tell_notes(app, file, reading, told)
                for archive in reading.archives:
                    done = await _restore(app, sessions, archive, key, dry_run=dry_run)
                    told["conversations"].append({"file": file, **done})
                    _print(app, done, is_json=is_json, dry_run=dry_run)
                    status = status or (BUSY if done["outcome"] == "conflict" else 0)
    except asyncio.CancelledError:
        app.screen.note("what was imported is there: run it again, and it goes on")
        raise
    if is_json:
        app.screen.json(told)
    return status


@asynccontextmanager
async def _place(app: App, *, dry_run: bool) -> "AsyncIterator[SessionManager]":
    """The store, made if need be; for a look at what would be, nothing is made."""
    try:
        async with app.sessions(create=not dry_run) as sessions:
            yield sessions
    except NoStore:
        async with App("memory:").sessions(create=True) as sessions:
            yield sessions


def _read_all(
    app: App, files: tuple[str, ...], name: str | None, key: str | None
) -> "tuple[list[tuple[str, Reading]], int]":
    """What the files hold, before anything is written or made; and the status of what is wrong.

    Of several files, one that is wrong keeps no other from being imported.
    """
    readings: list[tuple[str, Reading]] = []
    status = 0
    for file in files:
        try:
            readings.append((file, _read(file, name, key)))
        except (Failure, OSError) as error:
            if len(files) == 1:
                raise
            app.screen.note(f"error: {sentence(error)}", "red")
            status = status or status_of(error)
    if not readings:
        raise Failure("nothing was imported: none of these files can be read", status)
    return readings, status


def _read(file: str, name: str | None, key: str | None) -> "Reading":
    """What a file holds. Nothing has been written yet."""
    from holdfast import formats
    from holdfast.cli.chat.interrupts import raising
    from holdfast.errors import HoldfastError
    from holdfast.stores.jsonl.names import base64_name

    with raising():
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    try:
        if name is None and file.endswith(".md"):
            name = "markdown"
        chosen = formats.recognised(data) if name is None else formats.named(name)
        if chosen.read is None:
            raise Failure(
                f"{chosen.title} is for people, and cannot be imported: export as JSON", USAGE
            )
        reading = chosen.read(data, base64_name(key) if key else Path(file).name)
        if key is not None and len(reading.archives) != 1:
            raise Failure(
                f"{file} holds {len(reading.archives)} conversations, and --key is for one", USAGE
            )
        return reading
    except HoldfastError as error:
        raise Failure(
            f"{file}: {words_of(error)}; nothing of it was imported: is it whole?", status_of(error)
        ) from error


async def _restore(
    app: App, sessions: "SessionManager", archive: "Archive", key: str | None, *, dry_run: bool
) -> dict[str, Any]:
    from holdfast.errors import DuplicateSession

    tell = app.screen.progress("imported", name="entries")
    total = len(archive.entries)
    try:
        done = await sessions.restore(
            archive, key=key, dry_run=dry_run, on_progress=lambda count: tell(count, total)
        )
    except DuplicateSession as error:
        why = f" ({error.__cause__})" if error.__cause__ else ""
        return {
            "key": error.key,
            "outcome": "conflict",
            "messages": 0,
            "why": f"another one has this key{why}",
        }
    return {**done._asdict(), "why": ""}


def _tell_notes(app: App, file: str, reading: "Reading", told: dict[str, Any]) -> None:
    for note in reading.notes:
        app.screen.note(safe(f"{file}: {note}"), "yellow")
        told["notes"].append({"file": file, "note": note})


def _print(app: App, done: dict[str, Any], *, is_json: bool, dry_run: bool) -> None:
    if done["outcome"] == "conflict":
        app.screen.note(
            safe(f"{done['key']}: {done['why']}, and was left as it is: say --key"), "red"
        )
    elif not is_json:
        would = "would be " if dry_run and done["outcome"] != "there" else ""
        words = {"new": "new", "added": "brought up to date", "there": "there already"}
        many = counted(done["messages"], "message")
        app.screen.print(safe(f"{done['key']}: {would}{words[done['outcome']]}, {many}"))
