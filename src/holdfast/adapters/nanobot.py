"""Nanobot's sessions, over the same log as all others.

    from holdfast.adapters import nanobot

    with nanobot.SessionManager("~/.nanobot/workspace") as sessions:
        session = sessions.get_or_create("telegram:12345678")
        history = session.get_history(max_messages=50)
        ...                                             # ask the model
        session.add_message("user", "Hello, I am Ada.")
        session.add_message("assistant", "Hello, Ada.")
        sessions.save(session)

A workspace of nanobot's is gone on with where it is; `url=` names any other store. It is
synchronous, as nanobot's own manager is: what is added is in memory until `save`, and on the disk
when that returns. Nanobot itself can be given `store_for_nanobot(url)` in the place of its files.
"""

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from copy import deepcopy
from datetime import datetime
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from weakref import WeakValueDictionary

from holdfast import ids
from holdfast.adapters import nanobot_history
from holdfast.adapters.nanobot_history import MESSAGES_MAX, REPLAYED, RESULT_CHARS
from holdfast.adapters.nanobot_locks import KeyLocks
from holdfast.adapters.nanobot_places import HOME, place_of
from holdfast.adapters.nanobot_store import SessionStore, store_for_nanobot
from holdfast.consolidation.wording import in_system
from holdfast.errors import (
    HoldfastError,
    InvalidInput,
    SessionExpired,
    SessionNotFound,
    TooLarge,
)
from holdfast.messages import Role

__all__ = [
    "ARCHIVE_FAILED",
    "STARTED",
    "Session",
    "SessionManager",
    "SessionStore",
    "store_for_nanobot",
]

STARTED = "New session started."
ARCHIVE_FAILED = "Memory archival failed, session not cleared. Please try again."
CACHED_MAX = 128
# What is of one conversation and not of one that is forked from it.
_VOLATILE = (
    "_last_summary",
    "goal_state",
    "pending_user_followups",
    "pending_user_turn",
    "runtime_checkpoint",
    "session_handle",
    "thread_goal",
    "title",
    "title_user_edited",
    "webui_recovery",
)

_log = logging.getLogger("holdfast")


class Session:
    """One conversation, as nanobot has it: a list of plain messages in memory."""

    def __init__(
        self,
        key: str,
        messages: list[dict[str, Any]] | None = None,
        created_at: datetime | None = None,
        updated_at: datetime | None = None,
        metadata: dict[str, Any] | None = None,
        last_consolidated: int = 0,
    ) -> None:
        now = _now()
        self.key = key
        self.messages: list[dict[str, Any]] = [] if messages is None else messages
        self.created_at = created_at or now
        self.updated_at = updated_at or now
        self.metadata: dict[str, Any] = {} if metadata is None else metadata
        self.last_consolidated = last_consolidated

    def __repr__(self) -> str:
        return f"<nanobot session {self.key!r}, {len(self.messages)} messages>"

    def add_message(self, role: str, content: Any, **extras: Any) -> None:
        """Add a message, with a `timestamp` of its own if one is given. It is stored by `save`."""
        Role.of(role)
        message = {"role": role, "content": content, "timestamp": _now().isoformat()} | extras
        self.messages.append(message)
        self.updated_at = _now()

    def get_history(
        self,
        max_messages: int = MESSAGES_MAX,
        max_tokens: int = 0,
        *,
        replayed: int = REPLAYED,
        result_chars: int = RESULT_CHARS,
        count: Callable[[Mapping[str, Any]], int] = nanobot_history.message_tokens,
    ) -> list[dict[str, Any]]:
        """The end of the conversation for a model; see `nanobot_history.history`."""
        return nanobot_history.history(
            self.messages,
            self.last_consolidated,
            max_messages=max_messages,
            max_tokens=max_tokens,
            replayed=replayed,
            result_chars=result_chars,
            count=count,
        )

    def clear(self) -> None:
        """Empty the conversation; key, metadata and the time it began stay."""
        self.messages = []
        self.last_consolidated = 0
        self.metadata.pop("_last_summary", None)
        self.updated_at = _now()

    def enforce_file_cap(
        self,
        on_archive: Callable[[list[dict[str, Any]]], object] | None = None,
        limit: int = 2000,
    ) -> None:
        """Keep at most `limit` messages: whole turns at the end, and no result without its call.

        `on_archive` is given those that go and are not summarised yet. If it fails, nothing has
        changed. In the log all of them stay, on the branch before.
        """
        before = self.messages
        if limit <= 0 or len(before) <= limit:
            return
        kept = nanobot_history.legal_end(before, limit)
        stay = {id(each) for each in kept}
        done = sum(id(each) in stay for each in before[: self.last_consolidated])
        gone = [each for each in before[self.last_consolidated :] if id(each) not in stay]
        if gone and on_archive is not None:
            on_archive(gone)
        self.messages = [each for each in before if id(each) in stay]
        self.last_consolidated = done
        self.updated_at = _now()


class SessionManager:
    """The sessions of a workspace, or of any store; each key has one session here.

    workspace  nanobot's; its sessions are found where the nanobot that used it last keeps them
    url        a store of ours, in the place of a workspace
    data       nanobot's data folder: current ones keep sessions in there
    options    go to `holdfast.open`; with `memory=`, what is saved is summarised in the background
    """

    def __init__(
        self,
        workspace: str | os.PathLike[str] | None = None,
        *,
        url: str | None = None,
        data: str | os.PathLike[str] = HOME,
        **options: Any,
    ) -> None:
        if (workspace is None) == (url is None):
            raise InvalidInput("workspace", "or url=, one of the two, says where the sessions are")
        place = None if workspace is None else place_of(workspace, data)
        self._store = SessionStore(
            url if place is None else place.url,  # type: ignore[arg-type]
            session=Session,
            place=place,
            legacy=Path(data).expanduser() / "sessions",
            **options,
        )
        self._locks = KeyLocks()
        self._lock = threading.Lock()  # of what follows
        self._all: WeakValueDictionary[str, Session] = WeakValueDictionary()
        self._held: OrderedDict[str, Session] = OrderedDict()

    @property
    def sessions(self) -> Any:
        """The manager of holdfast beneath, for what this face has no name for; on its own loop."""
        return self._store.sessions

    def close(self) -> None:
        """Let go of everything; what was not saved is not stored. Twice is fine."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def get_or_create(self, key: str) -> Session:
        """The session of this key: the same object to everybody who asks, as long as it lives."""
        with self._locks.of(key):
            session = self._all.get(key)
            if session is None:
                session = self._store.load(key) or Session(key)
            self._hold(session)
            return session

    def save(self, session: Session, *, fsync: bool = False) -> None:
        """Store what has changed since it was loaded or saved: all of what was added, or none."""
        with self._locks.of(session.key):
            self._store.save(session, fsync=fsync)
            self._hold(session)

    def flush_all(self) -> int:
        """Save what is held and has anything, as nanobot does when it shuts down; how many that
        were. One that cannot be saved is told in the log, and keeps no other from it."""
        with self._lock:
            held = list(self._held.values())
        return sum(map(self._flushed, held))

    def invalidate(self, key: str) -> None:
        """Forget the session here: it is loaded anew when it is asked for."""
        with self._lock:
            self._all.pop(key, None)
            self._held.pop(key, None)

    def list_sessions(self) -> list[dict[str, Any]]:
        """Every session: key, times, title, preview, path; those written to last first."""
        return self._store.list_sessions()

    def delete_session(self, key: str) -> bool:
        """Remove a session; False if there was none."""
        with self._locks.of(key):
            self.invalidate(key)
            return self._store.delete(key)

    def new(self, key: str) -> str:
        """What `/new` does: begin anew, and say so in nanobot's words.

        What is in memory is stored first. With a memory, it is given everything that it has not
        summarised before anything is removed; where that fails, everything stays as it is.
        """
        with self._locks.of(key):  # others have their sessions while the memory's model works
            session = self.get_or_create(key)
            try:
                self.save(session)
                self._store.loop.run(self._start_anew(key))
            except HoldfastError as error:
                _log.warning("%r was not cleared: %s", key, type(error).__name__)
                return ARCHIVE_FAILED
            session.clear()
            self._store.begun_anew(session)
            self.invalidate(key)
            return STARTED

    def get_memory_context(self, key: str) -> str:
        """What a session's memory holds, for the system prompt; "" if there is nothing."""
        return in_system(None, self._store.memory_of(key)) or ""

    def fork_session_before_user_index(
        self, source_key: str, target_key: str, before_user_index: int
    ) -> Session | None:
        """A new session that is what another was before its user's message of this number, from 0.

        None if there are not so many, or no such session. A target that is there is not replaced.
        """
        with self._locks.of(source_key):
            source = self._all.get(source_key) or self._store.load(source_key)
            if source is None or before_user_index < 0:
                return None
            places = [at for at, each in enumerate(source.messages) if each.get("role") == "user"]
            ends = [*places, len(source.messages)]
            if before_user_index >= len(ends):
                return None
            messages = deepcopy(source.messages[: ends[before_user_index]])
            metadata = {n: v for n, v in source.metadata.items() if n not in _VOLATILE}
            done = source.last_consolidated if source.last_consolidated <= len(messages) else 0
            target = Session(
                target_key, messages, metadata=deepcopy(metadata), last_consolidated=done
            )
        with self._locks.of(target_key):
            if self._store.read_metadata(target_key) is not None:
                raise InvalidInput("target_key", f"{target_key!r} is taken: delete that session")
            self.save(target, fsync=True)
            return target

    # Inside

    async def _start_anew(self, key: str) -> None:
        session = await self.sessions.get_or_create(key)
        memory = self.sessions.memory
        if memory is not None:
            await memory.start_anew(session)
            return
        _log.info("%r is cleared without a summary: no memory is configured", key)
        await session.clear()

    def _hold(self, session: Session) -> None:
        """Keep those that were used last; what is let go of is stored first."""
        with self._lock:
            self._all[session.key] = session
            self._held[session.key] = session
            self._held.move_to_end(session.key)
            many = max(len(self._held) - CACHED_MAX, 0)
            oldest = list(islice(self._held.values(), many))
        for each in oldest:
            self._let_go(each)

    def _let_go(self, session: Session) -> None:
        lock = self._locks.of(session.key)
        if not lock.acquire(blocking=False):
            return  # it is used just now, and goes another time
        try:
            if self._has_anything(session):
                self._store_oldest(session)
            with self._lock:
                if self._held.get(session.key) is session:
                    del self._held[session.key]
        finally:
            lock.release()

    def _has_anything(self, session: Session) -> bool:
        return bool(session.messages or session.metadata) or self._store.knows(session)

    def _flushed(self, session: Session) -> bool:
        if not self._has_anything(session):
            return False
        try:
            with self._locks.of(session.key):
                self._store.save(session)
        except HoldfastError as error:
            _log.warning("%r could not be saved: %s", session.key, error)
            return False
        return True

    def _store_oldest(self, session: Session) -> None:
        """What nobody can store any more must not keep others from their sessions."""
        try:
            self._store.save(session)
        except (SessionNotFound, SessionExpired, InvalidInput, TooLarge) as error:
            _log.warning("what was added to %r and not saved is lost: %s", session.key, error)


def _now() -> datetime:
    """As nanobot has it: the time here, without its zone."""
    return ids.now().astimezone().replace(tzinfo=None)
