"""Completion in the shell: keys of conversations, quickly, and never an error among them."""

import os
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from holdfast.cli.app import App
from holdfast.cli.screen import safe

_KEYS_MAX = 100


def quietly(complete: Callable[[], Any]) -> int:
    """Run what completes. A shell would print errors into the line that somebody types."""
    kept = sys.stderr
    with open(os.devnull, "w") as nowhere:
        sys.stderr = nowhere
        try:
            complete()
        except BaseException as error:  # noqa: BLE001 - there is nobody to tell
            return 0 if not isinstance(error, SystemExit) or error.code is None else 1
        finally:
            sys.stderr = kept
    return 0


def keys(context: click.Context, incomplete: str) -> list[CompletionItem]:
    """Keys that begin like this; none where they cannot be had."""
    try:
        found = _keys(App(**_given(context)), incomplete)
    except Exception:  # noqa: BLE001 - there is nobody to tell
        return []
    return [CompletionItem(key) for key in found if safe(key, keep="") == key]


def _given(context: click.Context) -> dict[str, Any]:
    """--store and --tenant, wherever they stand in the line."""
    found: dict[str, Any] = {}
    at: click.Context | None = context
    while at is not None:
        found = {n: v for n, v in at.params.items() if n in ("store", "tenant") and v} | found
        found = dict(at.obj or {}) | found
        at = at.parent
    return {name: found[name] for name in ("store", "tenant") if name in found}


def _keys(app: App, start: str) -> list[str]:
    url = app.store_url
    if url.startswith("sqlite:"):
        path = Path(url.removeprefix("sqlite:").removeprefix("//")).expanduser().absolute()
        if not os.path.lexists(f"{path}-wal"):
            return _keys_in(path, app.tenant, start)
    import asyncio

    return asyncio.run(_keys_of(app, start))


def _keys_in(path: Path, tenant: str, start: str) -> list[str]:
    """Straight from the file: to load the store would take longer than anybody waits for a key.

    Nobody has it open, so all of it is in the file, and nothing is put beside it.
    """
    db = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        rows = db.execute(
            "SELECT key FROM sessions WHERE tenant=? AND key>=? AND key<? ORDER BY key LIMIT ?",
            (tenant, start, start + "\U0010ffff", _KEYS_MAX),
        )
        return [key for (key,) in rows]
    finally:
        db.close()


async def _keys_of(app: App, start: str) -> list[str]:
    async with app.sessions() as sessions:
        page = await sessions.list(limit=1_000)
        return sorted(s.key for s in page.items if s.key.startswith(start))[:_KEYS_MAX]
