"""Completion in the shell: keys of conversations, quickly, and never an error among them."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import redirect_stderr, suppress
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from holdfast.cli.app import App
from holdfast.cli.screen import safe

_KEYS_MAX = 100


def quietly(complete: Callable[[], Any]) -> int:
    """Run what completes. A shell would print errors into the line that somebody types."""
    with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere), suppress(BaseException):
        complete()
    return 0


# A key has a colon in it, and bash takes what is before a colon for a word of its own. So the words
# are those of the line, and of what is offered, the part up to the last colon is typed already.
_BASH = """\
_holdfast_completion() {
    local IFS=$'\\n' line="${COMP_LINE:0:COMP_POINT}" typed="" kind value
    local -a words
    IFS=$' \\t' read -ra words <<< "$line"
    local at=$(( ${#words[@]} - 1 ))
    [[ "$line" == *[[:space:]] ]] && at=$(( at + 1 ))
    local word="${words[at]:-}"
    [[ "$COMP_WORDBREAKS" == *:* ]] && typed="${word%"${word##*:}"}"
    COMPREPLY=()
    while IFS=, read -r kind value; do
        case "$kind" in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("${value#"$typed"}") ;;
        esac
    done < <(COMP_WORDS="$line" COMP_CWORD=$at _HOLDFAST_COMPLETE=bash_complete "$1" 2>/dev/null)
    return 0
}
complete -o nosort -F _holdfast_completion holdfast
"""


def source(shell: str, program: click.Command) -> str:
    """What a shell has to be told."""
    if shell == "bash":
        return _BASH
    kind = get_completion_class(shell)
    assert kind is not None
    return kind(program, {}, "holdfast", "_HOLDFAST_COMPLETE").source()


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
