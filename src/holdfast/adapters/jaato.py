"""Jaato's session files: a conversation that was begun there goes on here, and the other way round.

    session = await jaato.load(sessions, "20260201_120000.json")
    path = await jaato.save(session, folder)

What jaato says of a session besides its messages is kept in `metadata["jaato"]`, and is there again
when it is saved. Jaato is told when to save, how often, and how many sessions to keep; here each
step of a turn is stored when it is taken, and nothing is deleted but by `sessions.retain`.
"""

import asyncio
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from holdfast import ids, private_files
from holdfast.codec import jaato_state
from holdfast.errors import HoldfastError, InvalidInput
from holdfast.frozen import EMPTY, FrozenDict
from holdfast.manager import SessionManager
from holdfast.session import Session

KEPT = "jaato"  # in the metadata of a session
OURS = "holdfast_id"  # in the metadata of a file: whose it is
_NAMES_MAX = 1_000


async def load(
    sessions: SessionManager, path: str | PathLike[str], key: str | None = None
) -> Session:
    """A new session with what a file of jaato holds; its key is `jaato:<session_id>` unless given.

    InvalidInput where the file is none, or where a session of this key has messages.
    """
    data = await asyncio.to_thread(Path(path).read_bytes)
    state = jaato_state.decode(data)
    name = key or f"jaato:{state.said.get('session_id') or Path(path).stem}"
    kept = {**state.said, "mended": state.mended} if state.mended else state.said
    session = await sessions.get_or_create(name)
    await session.refresh()
    if session.count:
        raise InvalidInput("key", f"{name!r} has messages: name another one")
    await session.update(metadata={KEPT: kept})
    if state.messages:
        await session.append(*state.messages)
    return session


async def save(session: Session, folder: str | PathLike[str]) -> Path:
    """Write a session in jaato's file, in the place of what was saved of it before; where it is.

    Two sessions that began in the same second get two files.
    """
    messages = await session.read()
    turns = await session.turns()
    kept = session.metadata.get(KEPT)
    said: dict[str, Any] = {**(kept if isinstance(kept, FrozenDict) else EMPTY)}
    said.pop("mended", None)
    path = await asyncio.to_thread(_path, Path(folder), session)
    metadata = said.get("metadata") or {}
    said |= {
        "session_id": path.stem,
        "created_at": said.get("created_at") or _local(session.created_at),
        "updated_at": _local(ids.now()),
        "turn_count": len(turns),
        "turn_accounting": [_tokens(turn.usage) for turn in turns],
        "user_inputs": [turn.message.text or "" for turn in turns],
        "metadata": {**metadata, OURS: session.id},
    }
    data = jaato_state.encode(messages, FrozenDict(said))
    await asyncio.to_thread(private_files.replace, path, data)
    return path


def _path(folder: Path, session: Session) -> Path:
    """The file of this session: the first name that is free, or is its own already."""
    stem = session.created_at.astimezone().strftime("%Y%m%d_%H%M%S")
    for number in range(1, _NAMES_MAX):
        path = folder / (f"{stem}.json" if number == 1 else f"{stem}_{number}.json")
        private_files.check_regular(path)
        if not path.exists() or _is_of(path, session):
            return path
    raise InvalidInput("folder", f"has {_NAMES_MAX} sessions of {stem}: name another one")


def _is_of(path: Path, session: Session) -> bool:
    try:
        said = jaato_state.decode(path.read_bytes()).said
    except HoldfastError:
        return False  # somebody else's, and it stays
    metadata = said.get("metadata")
    return isinstance(metadata, Mapping) and metadata.get(OURS) == session.id


def _tokens(usage: Any) -> dict[str, int]:
    prompt, output = usage.input or 0, usage.output or 0
    return {"prompt": prompt, "output": output, "total": prompt + output}


def _local(time: Any) -> str:
    text: str = time.astimezone().replace(tzinfo=None).isoformat()
    return text
