"""What a folder of memory knows of itself, beside the two files that people read.

| file in `.holdfast`  | what it holds                                                          |
|----------------------|------------------------------------------------------------------------|
| `state.json`         | `State`: put in place whole; it decides whether a consolidation is done |
| `made.jsonl`         | a `Made` a line: which messages each entry of HISTORY.md was made of    |
| `versions/<n>.md`    | MEMORY.md as it was before consolidation n changed it                   |
| `shown/<session>.json` | a `Shown`: the memory that a session's model is shown                 |

All of it is JSON of version 1. A session is named by its id, which is never used again.
"""

from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from holdfast.errors import Corrupt, FormatTooNew

VERSION = 1
_Kind = TypeVar("_Kind")


class Owner(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session that something was kept of.

    failures   how often in a row its model could not say what to keep, and `why`
    is_doomed  it is about to be deleted by its store: once it is gone, so is what is kept of it
    """

    tenant: str
    key: str
    failures: int = 0
    why: str = ""
    is_doomed: bool = False


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """What a session's counter has to do: from `start` to `stop` on a branch.

    `seq` is that of the last message before `stop`, by which the place is known again.
    """

    session: str
    branch: str
    start: int
    stop: int
    seq: int


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """A consolidation that is decided, and perhaps not carried out.

    memory      the new text of MEMORY.md; None leaves it alone
    lines       what `State.lines` is afterwards
    entry       what is added to HISTORY.md, at the byte `history_at`
    made        the line that is added to made.jsonl, at the byte `made_at`
    """

    move: Move
    memory: str | None
    lines: dict[str, int]
    entry: str
    history_at: int
    made: str
    made_at: int


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What decides.

    number    how many consolidations there were
    lines     for each line of MEMORY.md that a consolidation wrote, by its digest, which one
    moves     counters that have to be moved in the store
    owners    the sessions that something is kept of, by their ids
    """

    v: int = VERSION
    number: int = 0
    lines: dict[str, int] = {}
    pending: Pending | None = None
    moves: tuple[Move, ...] = ()
    owners: dict[str, Owner] = {}


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of HISTORY.md: the number of its consolidation, and the messages it was made of.

    `is_remembered` says that MEMORY.md was changed with it.
    """

    number: int
    session: str
    seqs: tuple[int, ...]
    entry: str
    is_remembered: bool


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What a session's model is shown of the memory, as it was behind consolidation `number`."""

    tenant: str
    key: str
    number: int
    text: str


def read(data: bytes, kind: type[_Kind], where: Path) -> _Kind:
    """The value in these bytes; Corrupt where they cannot be one."""
    try:
        found = msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Corrupt(str(where), f"it cannot be read: {error}") from error
    version = getattr(found, "v", VERSION)
    if version > VERSION:
        raise FormatTooNew(str(where), version, VERSION)
    return found


def written(value: Any) -> bytes:
    """The value as one line."""
    return msgspec.json.encode(value) + b"\n"


def digest(text: str | bytes) -> str:
    """What stands for a text and for no other."""
    data = text.encode() if isinstance(text, str) else text
    return blake2b(data, digest_size=12).hexdigest()


def origins(memory: str, before: str, lines: dict[str, int], number: int) -> dict[str, int]:
    """For each line of the new memory that a consolidation wrote, which one: that of before, where
    it stands there word for word. Lines that somebody wrote by hand are not among them."""
    old = set(before.splitlines())
    found = {}
    for line in memory.splitlines():
        name = digest(line)
        if line.strip() and line not in old:
            found[name] = number
        elif name in lines:
            found[name] = lines[name]
    return found


def without(memory: str, lines: dict[str, int], first: int) -> str:
    """The memory without the lines that consolidation `first` or a later one wrote."""
    kept = [line for line in memory.splitlines(keepends=True) if lines.get(_name(line), 0) < first]
    text = "".join(kept)
    return text if text.strip() else ""


def _name(line: str) -> str:
    return digest(line.splitlines()[0]) if line.strip() else ""


def changed(value: _Kind, changes: dict[str, Any]) -> _Kind:
    """The value with other fields."""
    return msgspec.structs.replace(value, **changes)  # type: ignore[type-var]
