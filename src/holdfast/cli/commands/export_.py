"""`holdfast export`: conversations as files."""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli import references
from holdfast.cli.app import App
from holdfast.cli.command import command as make
from holdfast.cli.failures import FAILED, USAGE, Failure
from holdfast.cli.screen import safe

if TYPE_CHECKING:
    from holdfast.archive import Archive
    from holdfast.formats import Format
    from holdfast.manager import SessionManager

_PAGE = 1_000


@make(
    "export",
    epilog="Examples:\n\n\b\n"
    "holdfast export telegram:123 -o ada.json\n"
    "holdfast export @ -f markdown | less\n"
    "holdfast export --all -f nanobot -o FOLDER\n"
    "\nWhat JSON holds comes back whole with holdfast import.",
)
@click.argument("references", nargs=-1, metavar="[REF]...")
@click.option("--all", "is_all", is_flag=True, help="All conversations")
@click.option(
    "-f", "--format", "name", help="json, nanobot, markdown; else what the file's name says"
)
@click.option(
    "-o",
    "--output",
    default="-",
    metavar="FILE",
    help="A file, a folder for a file each, or - (stdout)",
)
@click.option("--force", is_flag=True, help="Overwrite a file")
async def command(
    app: App,
    references: tuple[str, ...],
    is_all: bool,
    name: str | None,
    output: str,
    force: bool,
) -> None:
    """Write conversations to a file, or to stdout.

    JSON carries everything; nanobot's JSONL and Markdown carry the messages of the branch in use,
    and what is left out is told. A file is readable for you alone.
    """
    import asyncio

    from holdfast import formats

    if is_all == bool(references):
        raise Failure("name conversations, or say --all: see holdfast ls", USAGE)
    chosen = formats.named(name or _by_name(output))
    async with app.sessions() as sessions:
        keys = await _keys(sessions, references)
        loop = asyncio.get_running_loop()

        def archives(keys: Iterable[str]) -> "Iterator[Archive]":
            """One after the other, taken from the store when the one before is written."""
            for key in keys:
                taken = asyncio.run_coroutine_threadsafe(sessions.export(key), loop).result()
                for loss in chosen.losses(taken):
                    app.screen.note(safe(f"{key}: {loss}"))
                yield taken

        if output != "-" and _is_folder(output):
            for key in keys:
                path = Path(output) / _file_name(key, chosen)
                await asyncio.to_thread(_write, app, path, chosen, archives([key]), force)
            return
        if len(keys) > 1 and not chosen.holds_many:
            raise Failure(f"{chosen.title} holds one conversation: say -o FOLDER", USAGE)
        if output == "-":
            await asyncio.to_thread(_print, app, chosen.write(archives(keys)))
        else:
            await asyncio.to_thread(_write, app, Path(output), chosen, archives(keys), force)


def _is_folder(output: str) -> bool:
    return Path(output).is_dir()


def _by_name(output: str) -> str:
    """The format that the name of a file asks for."""
    suffix = Path(output).suffix.lower()
    return {".md": "markdown", ".markdown": "markdown", ".jsonl": "nanobot"}.get(suffix, "json")


async def _keys(sessions: "SessionManager", named: tuple[str, ...]) -> list[str]:
    if named:
        return list(dict.fromkeys([await references.find_key(sessions, each) for each in named]))
    keys, page = [], await sessions.list(limit=_PAGE)
    while True:
        keys += [each.key for each in page.items]
        if page.next is None:
            return keys
        page = await sessions.list(limit=_PAGE, page=page.next)


def _file_name(key: str, chosen: "Format") -> str:
    """A name that no other key has."""
    from holdfast.stores.jsonl import names

    if chosen.name == "nanobot":
        return names.names_of(key, is_base64=True)[0]
    return names.own_name(key).removesuffix(names.SUFFIX) + chosen.suffix


def _write(
    app: App, path: Path, chosen: "Format", archives: "Iterator[Archive]", force: bool
) -> None:
    from holdfast import private_files

    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise Failure(f"{path} is no file: name another, or say -o - and redirect it", FAILED)
    if path.exists() and not force:
        raise Failure(f"{path} is there already: name another file, or say --force", FAILED)
    try:
        size = private_files.write(path, chosen.write(archives), is_new=not force)
    except OSError as error:
        error.filename = str(path)  # not the one beside it, which nobody has named
        raise
    app.screen.note(safe(f"{path}: {size:,} bytes"), "green")


def _print(app: App, pieces: Iterator[bytes]) -> None:
    """The very bytes, but to a terminal: no stored text steers that."""
    for piece in pieces:
        if app.screen.is_terminal:
            app.screen.print(safe(piece.decode()), end="")
        else:
            sys.stdout.buffer.write(piece)
    sys.stdout.flush()
