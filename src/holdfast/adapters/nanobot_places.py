"""Where nanobot keeps the sessions of a workspace, and where it kept them before.

| from         | place                                                                         |
|--------------|-------------------------------------------------------------------------------|
| the start    | `~/.nanobot/sessions/`, for all workspaces together                           |
| February 16  | `<workspace>/sessions/`, to which a session is moved when it is first asked for |
| August 7     | `<data folder>/sessions/<workspace id>/`, the id being in                     |
|              | `<workspace>/.nanobot/workspace-id`; names are base64url                      |

All in 2026. A link is refused wherever one of these should be: it could lead to anybody's files.
"""

import os
import re
from pathlib import Path
from typing import NamedTuple

from holdfast import private_files
from holdfast.codec import nanobot
from holdfast.errors import HoldfastError, StoreUnavailable
from holdfast.file_lock import FileLock
from holdfast.stores.jsonl.files import LOCK, read_all
from holdfast.stores.jsonl.names import are_base64, is_usable, keys_of, names_of, plain_name

HOME = Path("~/.nanobot")
_ID = re.compile(r"[0-9a-f]{32}")
_LOCK_WAIT_S = 10.0


class Place(NamedTuple):
    """The folder of a workspace's sessions, and how a new file is named there."""

    folder: Path
    is_base64: bool

    @property
    def url(self) -> str:
        """For `open_store`."""
        return f"jsonl:{self.folder}?names={'base64url' if self.is_base64 else 'plain'}"


def place_of(workspace: str | os.PathLike[str], data: str | os.PathLike[str] = HOME) -> Place:
    """Where the sessions of a workspace are, whichever nanobot was there last."""
    root = private_files.absolute(workspace)
    for each in (root, root / ".nanobot", root / ".nanobot" / "workspace-id", root / "sessions"):
        _refuse_link(each)
    marker = root / ".nanobot" / "workspace-id"
    if not marker.exists():
        folder = root / "sessions"
        return Place(folder, folder.is_dir() and are_base64(os.listdir(folder)))
    name = marker.read_text(encoding="utf-8").strip()
    if not _ID.fullmatch(name):
        raise StoreUnavailable(str(marker), "it holds no id of 32 hexadecimal digits: mend it")
    folder = private_files.absolute(data) / "sessions" / name
    _refuse_link(folder)
    return Place(folder, is_base64=True)


def bring(key: str, place: Place, legacy: Path) -> bool:
    """Move the session of a key from the oldest place, where there is none in this one.

    Whoever is cut off in between has moved it, or not; it is never in neither place. A file that
    belongs to another key stays where it is.
    """
    name = plain_name(key)
    if not is_usable(name) or private_files.absolute(legacy) == place.folder:
        return False
    old = legacy / name
    for each in (legacy, old):
        _refuse_link(each)
    if not old.is_file():
        return False
    lock = FileLock(place.folder / LOCK)
    if not lock.acquire(_LOCK_WAIT_S):
        raise StoreUnavailable(str(place.folder), f"others kept it for {_LOCK_WAIT_S:g} s")
    try:
        return _move(key, old, place)
    finally:
        lock.release()
        lock.close()


def _move(key: str, old: Path, place: Place) -> bool:
    names = names_of(key, is_base64=place.is_base64)
    if any(os.path.lexists(place.folder / name) for name in names):
        return False
    data, _ = read_all(old)
    if not _belongs(data, key, old.name):
        return False
    private_files.replace(place.folder / names[0], data)
    old.unlink()
    private_files.sync_folder(old.parent)
    return True


def _belongs(data: bytes, key: str, name: str) -> bool:
    """Whether a file is of this key: line 1 says so, or says nothing and the name may be its."""
    try:
        found = nanobot.decode(data.lstrip().partition(b"\n")[0])
    except HoldfastError:
        return False
    if not isinstance(found, nanobot.Metadata):
        return False
    return found.key == key if found.key else key in keys_of(name)


def _refuse_link(path: Path) -> None:
    if path.is_symlink():
        raise StoreUnavailable(str(path), "it is a link: name the place itself, or remove it")
