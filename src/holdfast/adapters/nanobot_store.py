"""The store that nanobot's own SessionManager takes: its sessions in any store of ours.

    from nanobot.session.manager import SessionManager

    store = holdfast.adapters.nanobot.store_for_nanobot("sqlite:chats.db")
    sessions = SessionManager(workspace, store=store)

Nanobot asks and saves from its own loop, and waits; so the store has a loop in a thread of its own.
What a session was when it was last loaded or saved is remembered as long as the session lives, by
its identity: nanobot's sessions are compared by what is in them, and have no hash.
"""

import weakref
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import holdfast.manager
from holdfast.adapters import nanobot_log, nanobot_places
from holdfast.adapters.nanobot_locks import KeyLocks
from holdfast.adapters.nanobot_log import Seen, Wanted
from holdfast.adapters.nanobot_places import Place
from holdfast.consolidation import counter
from holdfast.errors import (
    HoldfastError,
    SessionExpired,
    SessionNotFound,
    StoreUnavailable,
    Unsupported,
)
from holdfast.frozen import FrozenDict, freeze, thaw
from holdfast.loop_thread import LoopThread
from holdfast.messages import Message
from holdfast.stores.base import Tenant
from holdfast.stores.values import Record, Summary

PREVIEW_CHARS = 120
_FIRST = 8  # messages among which the preview of a session is looked for
_PAGE = 200


class SessionLike(Protocol):
    """What nanobot's sessions of every year have."""

    key: str
    messages: list[dict[str, Any]]
    metadata: dict[str, Any]
    last_consolidated: int


class SessionStore:
    """Nanobot's sessions, kept by holdfast. Any thread may use it.

    session   makes a session; nanobot's own class, or the one of this package
    private   makes of JSON what nanobot keeps as `provider_state`, if it is to be kept
    place     a folder of nanobot's, to which what lies in `legacy` is moved when it is asked for
    options   go to `holdfast.open`
    """

    def __init__(
        self,
        url: str,
        *,
        session: Callable[..., Any],
        private: Callable[[Any], Any] | None = None,
        place: Place | None = None,
        legacy: Path | None = None,
        **options: Any,
    ) -> None:
        self._make = session
        self._private = private
        self._place, self._legacy = place, legacy
        self._locks = KeyLocks()
        self._seen: dict[int, Seen] = {}
        self._absent: set[str] = set()
        self.loop = LoopThread("holdfast-nanobot")
        try:
            sessions = holdfast.manager.open(url, **options)
            self.sessions = self.loop.run(sessions.__aenter__())
        except BaseException:
            self.loop.close()
            raise

    def close(self) -> None:
        """Close the store; twice is fine."""
        if self.loop.is_closed:
            return
        try:
            self.loop.run(self.sessions.close())
        finally:
            self.loop.close()

    # What nanobot asks for

    def load(self, key: str) -> Any:
        """The session of this key, or None."""
        with self._locks.of(key):
            self._bring(key)
            found = self.loop.run(nanobot_log.load(self._tenant, key))
            if found is None:
                self._absent.add(key)
                return None
            session = self._make(
                key=key,
                messages=found.messages,
                created_at=_local(found.record.created_at),
                updated_at=_local(found.record.updated_at),
                metadata=thaw(found.record.metadata),
                last_consolidated=found.seen.cursor,
            )
            if self._private is not None and found.seen.private:
                session.provider_state = self._private(thaw(found.seen.private))
            self._remember(session, found.seen)
            return session

    def save(self, session: SessionLike, *, fsync: bool = False) -> None:  # noqa: ARG002
        """Store what has changed. It is on the disk afterwards, as the store was opened to do."""
        with self._locks.of(session.key):
            before = seen = self._seen.get(id(session))
            if seen is None and session.key in self._absent:
                seen = Seen()
            wanted = Wanted(
                session.key,
                list(session.messages),
                session.metadata,
                session.last_consolidated,
                self._private_of(session),
                self.sessions._workshop.redact,
            )
            try:
                self.loop.run(self._save(session, wanted, seen))
            except BaseException as error:
                is_known = isinstance(error, HoldfastError) and not isinstance(
                    error, StoreUnavailable
                )
                if not is_known and self._seen.get(id(session)) is before:
                    self._forget(session)  # it may be stored: the next save compares
                raise

    def memory_of(self, key: str) -> str:
        """What a session is told of the memory, also before it is made; "" without one."""
        memory = self.sessions.memory
        if memory is None:
            return ""
        return memory.text(self.loop.run(self._record(key)) or Record(key=key))

    def knows(self, session: object) -> bool:
        """Whether this very session was loaded or saved here."""
        return id(session) in self._seen

    def begun_anew(self, session: SessionLike) -> None:
        """This session was emptied, here and in the store: what it says next goes behind that."""
        with self._locks.of(session.key):
            found = self.loop.run(nanobot_log.load(self._tenant, session.key))
            if found is not None:
                self._remember(session, found.seen._replace(lines=(), seqs=()))

    def delete(self, key: str) -> bool:
        """Remove a session; False if there was none."""
        with self._locks.of(key):
            self._bring(key)
            self._absent.add(key)
            return self.loop.run(self.sessions.delete(key))

    def read(self, key: str) -> dict[str, Any] | None:
        """What is stored of a session, as plain values, or None."""
        with self._locks.of(key):
            self._bring(key)
            found = self.loop.run(nanobot_log.load(self._tenant, key))
        if found is None:
            return None
        record = found.record
        return _described(key, record) | {"messages": found.messages}

    def read_metadata(self, key: str) -> dict[str, Any] | None:
        """The same without the messages."""
        self._bring(key)
        record = self.loop.run(self._record(key))
        return None if record is None else _described(key, record)

    def update_metadata(
        self,
        key: str,
        updates: Mapping[str, Any],
        *,
        fsync: bool = False,  # noqa: ARG002
    ) -> bool:
        """Change these names of a session's metadata; False if there is no such session."""
        with self._locks.of(key):
            self._bring(key)
            record = self.loop.run(self._record(key))
            if record is None:
                return False
            self.loop.run(self._update(record, freeze(updates, "updates")))
            return True

    def list_sessions(self) -> list[dict[str, Any]]:
        """Every session, those written to last first."""
        return self.loop.run(self._list())

    # Inside

    @property
    def _tenant(self) -> Tenant:
        return self.sessions._tenant  # the log itself: nanobot keeps its own window

    def _bring(self, key: str) -> None:
        if self._place is None or self._legacy is None:
            return
        if self.loop.run(self._record(key)) is None:
            nanobot_places.bring(key, self._place, self._legacy)

    async def _record(self, key: str) -> Any:
        try:
            return await self._tenant.load(key)
        except (SessionNotFound, SessionExpired):
            return None

    async def _save(self, session: SessionLike, wanted: Wanted, seen: Seen | None) -> None:
        remember = partial(self._remember, session)
        try:
            await nanobot_log.save(self._tenant, wanted, seen, remember)
        finally:
            self.sessions.invalidate(session.key)
        if self.sessions.memory is not None:
            remember(await self._saved(session, self._seen[id(session)]))

    async def _update(self, record: Record, metadata: FrozenDict) -> None:
        await self._tenant.update(record.id, {"metadata": metadata})
        self.sessions.invalidate(record.key)

    async def _saved(self, session: SessionLike, seen: Seen) -> Seen:
        """More was said: it may be time to summarise what is older. What was summarised since the
        session was last here, it is told."""
        record = await self._tenant.load(session.key)
        if self.sessions.memory is not None:
            self.sessions.memory.after(record, record.branch_named(record.branch).count)
        at = counter.known(record)
        if at is None or session.last_consolidated != seen.cursor:
            return seen  # it says itself how much is summarised
        session.last_consolidated = at
        return seen._replace(cursor=at)

    async def _list(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        page: str | None = None
        while True:
            part = await self._tenant.list(limit=_PAGE, page=page)
            found += [await self._listed(each) for each in part.items]
            if (page := part.next) is None:
                return found

    async def _listed(self, each: Summary) -> dict[str, Any]:
        title = each.metadata.get("title")
        return {
            "key": each.key,
            "created_at": _local(each.created_at).isoformat(),
            "updated_at": _local(each.updated_at).isoformat(),
            "title": title if isinstance(title, str) else "",
            "preview": each.damage or await self._preview(each.key),
            "path": self.sessions._store.places()[0],
        }

    async def _preview(self, key: str) -> str:
        """What was said first, by a user if there is one among the first messages."""
        record = await self._record(key)
        if record is None:
            return ""
        stored = await self._tenant.read(record.id, record.branch, 0, _FIRST, kind="message")
        said = [each.entry for each in stored if isinstance(each.entry, Message)]
        said.sort(key=lambda message: not message.starts_turn)
        text = next((message.text for message in said if message.text), "") or ""
        text = " ".join(text.split())
        return text if len(text) <= PREVIEW_CHARS else text[: PREVIEW_CHARS - 1].rstrip() + "…"

    def _private_of(self, session: Any) -> Mapping[str, Any]:
        """What nanobot keeps of its provider's side; it is never shown."""
        if self._private is None or session.provider_state is None:
            return {}
        found: Mapping[str, Any] = session.provider_state.to_private_record()
        return found

    def _remember(self, session: SessionLike, seen: Seen) -> None:
        place = id(session)
        if place not in self._seen:
            weakref.finalize(session, self._seen.pop, place, None)
        self._seen[place] = seen
        self._absent.discard(session.key)

    def _forget(self, session: SessionLike) -> None:
        """It is not known what is stored of it."""
        self._seen.pop(id(session), None)
        self._absent.discard(session.key)


def store_for_nanobot(url: str, **options: Any) -> SessionStore:
    """The store for nanobot's own SessionManager (`store=`), at a URL of ours.

    It needs a nanobot whose SessionManager takes a store, of August 2026 or later.
    """
    try:
        from nanobot.providers.base import ProviderConversationState
        from nanobot.session.manager import Session
    except ImportError as error:
        raise Unsupported(
            "be the store of nanobot", "this Python without nanobot (pip install nanobot-ai)"
        ) from error
    private = ProviderConversationState.from_private_record
    return SessionStore(url, session=Session, private=private, **options)


def _described(key: str, record: Any) -> dict[str, Any]:
    return {
        "key": key,
        "created_at": _local(record.created_at).isoformat(),
        "updated_at": _local(record.updated_at).isoformat(),
        "metadata": thaw(record.metadata),
    }


def _local(time: datetime) -> datetime:
    """As nanobot has it: the time here, without its zone."""
    return time.astimezone().replace(tzinfo=None)
