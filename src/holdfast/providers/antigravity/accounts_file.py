"""The file of the user's accounts: read when it has changed, and written whole.

It is for nobody but the user: one that others may read is refused, and what is written has mode
0600. Several processes may use it. A change is made under a lock beside it (`NAME.lock`), to what
the file holds then, and the new file takes the place of the old one, so that none is ever half
written and no change of another process is lost.

File work is done in threads of its own: a lock may be a long time in coming.
"""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from holdfast import private_files, strict
from holdfast._threads import call
from holdfast.errors import InvalidInput, StoreError, TooLarge
from holdfast.file_lock import FileLock
from holdfast.frozen import thaw
from holdfast.providers.antigravity.accounts import Sheet, sheet, wrong

LOCK_WAIT_S = 10.0
_LIMITS = strict.Limits(bytes_max=1024 * 1024)
_THREAD = "holdfast-accounts"
_MAKE_ONE = "make one, as the documentation shows"
_OTHER_FILE = "name the file that holds your accounts"


class AccountsFile:
    """One file, for any number of tasks and threads."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = private_files.absolute(path)
        self._where = str(self.path)
        self._read: tuple[tuple[int, int, int], Sheet] | None = None  # how it was, what it held

    async def read(self) -> Sheet:
        """What it holds now. AuthError if it cannot be used, with the way out."""
        known = self._read
        if known is not None:
            with suppress(OSError):  # which is told by those who read it
                if known[0] == _seen(os.lstat(self.path)):
                    return known[1]
        found: Sheet = await call(self._load, _THREAD)
        return found

    async def change(self, edit: Callable[[dict[str, Any]], None]) -> Sheet:
        """Have `edit` change its JSON; what it holds then, on the disk."""
        found: Sheet = await call(lambda: self._changed(edit), _THREAD)
        return found

    def _load(self) -> Sheet:
        return self._parsed()[1]

    def _parsed(self) -> tuple[dict[str, Any], Sheet]:
        """Its JSON, and what that means."""
        try:
            private_files.check_regular(self.path)
            doubts = private_files.problems(self.path)
            with os.fdopen(private_files.open_regular(self.path, os.O_RDONLY), "rb") as file:
                seen = _seen(os.fstat(file.fileno()))
                data = file.read(_LIMITS.bytes_max + 1)
        except FileNotFoundError:
            raise wrong(self._where, "is not there", _MAKE_ONE) from None
        except (OSError, StoreError) as error:
            raise wrong(self._where, f"cannot be read: {_said(error)}", _OTHER_FILE) from error
        if doubts:
            raise wrong(self._where, "is not safe to use", "; ".join(doubts))
        try:
            document = thaw(strict.parse(data, _LIMITS, "it").value)
        except (InvalidInput, TooLarge) as error:
            # Without its cause, which has all that the file holds.
            raise wrong(self._where, f"cannot be read: {error}") from None
        found = sheet(document, self._where)
        self._read = seen, found
        return document, found

    def _changed(self, edit: Callable[[dict[str, Any]], None]) -> Sheet:
        lock = FileLock(self.path.with_name(f"{self.path.name}.lock"))
        try:
            if not lock.acquire(LOCK_WAIT_S):
                why = f"was locked by another process for {LOCK_WAIT_S:g} s"
                raise wrong(self._where, why, "try again")
            try:
                document, _ = self._parsed()
                edit(document)
                private_files.replace(self.path, _written(document))
                return self._load()
            finally:
                lock.release()
        except (OSError, StoreError) as error:
            why = f"cannot be written ({_said(error)})"
            raise wrong(self._where, why, "put it where tokens and limits can be kept") from error
        finally:
            lock.close()


def _seen(there: os.stat_result) -> tuple[int, int, int]:
    return there.st_ino, there.st_size, there.st_mtime_ns


def _written(document: dict[str, Any]) -> bytes:
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


def _said(error: OSError | StoreError) -> str:
    if isinstance(error, OSError):
        return os.strerror(error.errno) if error.errno else type(error).__name__
    return str(getattr(error, "why", error))
