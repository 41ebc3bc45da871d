"""A copy of the whole file, as it is at one moment."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from holdfast.errors import InvalidInput
from holdfast.private_files import make_file, sync_folder
from holdfast.stores.sqlite.header import stamp

PAGES_AT_ONCE = 4_096


def back_up(db: sqlite3.Connection, target: Path, tell: Callable[[float], object]) -> None:
    """Copy the database to `target`, where there is nothing yet.

    The copy is made beside the target and gets its name when it is whole and on disk. It is one
    file, without a WAL, and with a stamp of its own: when it is put in the place of the original,
    the WAL of that is known as another's. What is written meanwhile is not in it.
    """
    if os.path.lexists(target):
        raise InvalidInput("path", f"there is something at {target} already")
    part = target.with_name(f"{target.name}.part")
    make_file(part)
    try:
        copy = sqlite3.connect(part)
        try:
            _copy(db, copy, tell)  # all but the stamp, which SQLite counts on from 0
            stamp(copy)
            copy.execute("PRAGMA journal_mode=DELETE")
        finally:
            copy.close()
        with part.open("rb") as file:
            os.fsync(file.fileno())
        os.link(part, target)  # and not over what may have come there meanwhile
    finally:
        part.unlink(missing_ok=True)
    sync_folder(target.parent)


def _copy(
    db: sqlite3.Connection, copy: sqlite3.Connection, tell: Callable[[float], object]
) -> None:
    """Some pages at a time. A transaction holds on to the moment: else every write begins anew."""

    def told(status: int, remaining: int, total: int) -> None:  # noqa: ARG001 - as it is called
        tell(1 - remaining / total if total else 1.0)

    db.execute("BEGIN")
    try:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        db.backup(copy, pages=PAGES_AT_ONCE, progress=told)
    finally:
        db.execute("ROLLBACK")
