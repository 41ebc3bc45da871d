"""`holdfast backup`: a copy of the whole store, as it is at one moment."""

import os
import shlex
from pathlib import Path

import click

from holdfast.cli.app import App
from holdfast.cli.command import command as make
from holdfast.cli.failures import FAILED, Failure
from holdfast.cli.screen import safe


@make(
    "backup",
    epilog="Examples:\n\n\b\nholdfast backup monday.db\nholdfast --store sqlite:monday.db verify\n",
)
@click.argument("path", metavar="FILE")
@click.option("--json", "is_json", is_flag=True, help="For programs")
def command(app: App, path: str, is_json: bool) -> None:
    """Copy the whole store, all tenants, to a new FILE (a folder, for a jsonl: store).

    It is of one moment, while others write, and can be opened as a store. What is there already is
    not overwritten.
    """
    import asyncio

    target = Path(path).expanduser().absolute()
    if os.path.lexists(target):
        raise Failure(f"{path} is there already: name another place, or remove it", FAILED)
    asyncio.run(_back_up(app, target))
    url = f"{'jsonl' if target.is_dir() else 'sqlite'}:{target}"
    files = [target] if target.is_file() else [p for p in target.rglob("*") if p.is_file()]
    size = sum(each.stat().st_size for each in files)
    if is_json:
        app.screen.json({"path": str(target), "url": url, "bytes": size})
    else:
        app.screen.note(f"{safe(path)} has {size:,} bytes; to see that it is whole:", "green")
        app.screen.note(f"holdfast --store {safe(shlex.quote(url))} verify")


async def _back_up(app: App, target: Path) -> None:
    tell = app.screen.progress("copied", unit=0.01, name="%")
    async with app.sessions() as sessions:
        await sessions.backup(target, on_progress=lambda share: tell(share, 1.0))
