"""A copy of the whole file, as it is at one moment."""

import os
import sqlite3
from pathlib import Path

from holdfast.errors import InvalidInput
from holdfast.stores.private_files import make_file, sync_folder
from holdfast.stores.sqlite.header import stamp


def back_up(db: sqlite3.Connection, target: Path) -> None:
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
            db.backup(copy)  # all but the stamp, which SQLite counts on from 0
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
