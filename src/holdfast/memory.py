"""Memory: what conversations came to, in two files that people can read.

    memory = Memory("workspace", "anthropic:claude-haiku-4-5")
    async with holdfast.open("sqlite:chats.db", model=..., memory=memory) as sessions: ...

When `window` messages or more are not summarised, a model reads the older ones behind the turn, and
writes what is worth keeping: MEMORY.md holds what is true for long and is written anew, HISTORY.md
gets an entry. Then the session's counter moves by exactly what was summarised. The log keeps every
message. What is done when it is cut off stands in `consolidation.files`, what is done when somebody
else changes something meanwhile in `consolidation.work`.

A session's model is shown MEMORY.md, behind the system instruction, as it was when the session's
window was last folded, or before its first turn. So a prefix that is cached stays as it is.
"""

import logging
from typing import Any, NamedTuple

from holdfast.consolidation import counter
from holdfast.consolidation.desk import Desk, Talk, Whose
from holdfast.consolidation.files import VERSIONS_MAX, Files
from holdfast.consolidation.leaving import Leaving
from holdfast.consolidation.places import Places, Scope
from holdfast.consolidation.ranges import is_due
from holdfast.consolidation.showing import Showing
from holdfast.consolidation.state import Owner
from holdfast.consolidation.waiting import held, in_thread
from holdfast.consolidation.work import Rules, Work
from holdfast.errors import Conflict, HoldfastError, InvalidInput, SessionExpired, SessionNotFound
from holdfast.events import Event
from holdfast.providers import check_provider
from holdfast.providers.base import Provider
from holdfast.steps.observers import OnEvent, checked
from holdfast.stores.values import Record

_TRIES_MAX = 20
_log = logging.getLogger("holdfast")


class Status(NamedTuple):
    """How a session stands with its memory.

    consolidated  how many of its messages are summarised
    waiting       how many are not
    is_running    whether a model is being asked about them here
    failures      how often in a row that has failed, and `error`, what the last one said
    """

    consolidated: int
    waiting: int
    is_running: bool
    failures: int
    error: str


class Memory:
    """The memory of the sessions of one manager: `holdfast.open(url, memory=Memory(...))`."""

    def __init__(
        self,
        folder: Any,
        model: str | Provider,
        window: int = 100,
        scope: Scope = "session",
        *,
        on_event: OnEvent | None = None,
        failures_max: int = 3,
        versions_max: int = VERSIONS_MAX,
    ) -> None:
        """
        folder        where the files are: in `memory` below it, as in a workspace of nanobot
        model         "vendor:model" or a provider: who says what to keep
        window        so many messages that are not summarised are too many; half of them are left
        scope         whose memory it is: each "session" has its own, or the sessions of a "tenant"
                      share one, or all that use this folder do ("workspace")
        on_event      a function that hears of each consolidation (`holdfast.events`)
        failures_max  after so many failures in a row the messages themselves go into HISTORY.md
        versions_max  how many earlier versions of MEMORY.md are kept
        """
        for name, value in (("window", window), ("failures_max", failures_max)):
            _check_number(name, value, 1)
        _check_number("versions_max", versions_max, 0)
        if not isinstance(model, Provider):
            check_provider(model)  # by its name it is opened much later, behind some turn
        self.model = model
        self.window = window
        self._places = Places(folder, scope)
        self._rules = Rules(window, failures_max, versions_max)
        self._on_event = checked(on_event)
        self._desk: Desk | None = None
        self._is_used = False
        self._running: set[str] = set()

    def __repr__(self) -> str:
        return f"<Memory below {self._places.root}, of a {self._places.scope}>"

    def use(self, desk: Desk) -> None:
        """Work for a manager; for one at a time."""
        if self._is_used:
            raise InvalidInput("memory", "is another manager's already: make one for each")
        self._desk, self._is_used = desk, True

    def let_go(self) -> None:
        """That manager is closed: what is kept can be read, and another one may come."""
        self._is_used = False

    # What there is

    def text(self, session: Whose) -> str:
        """MEMORY.md of a session."""
        return self._files(session).seen().memory

    def history(self, session: Whose) -> str:
        """HISTORY.md of a session."""
        return self._files(session).past()

    def paths(self, session: Whose) -> tuple[str, str]:
        """Where MEMORY.md and HISTORY.md of a session are."""
        files = self._files(session)
        return str(files.memory), str(files.history)

    async def status(self, session: Talk) -> Status:
        """How a session stands with its memory."""
        await self._work(*_named(session)).settle()
        record = await self._lent.tenant.load(session.key)
        at = await counter.position(self._lent.tenant, record)
        now = await in_thread(self._files(session).settled)
        owner = now.owners.get(session.id) or Owner(tenant="", key="")
        waiting = record.branch_named(record.branch).count - at
        return Status(at, waiting, session.id in self._running, owner.failures, owner.why)

    # Consolidating

    async def consolidate(self, session: Talk, *, is_all: bool = False) -> int:
        """Summarise what is new of a session, but the last half window, or really all of it.

        Returns how many messages that were. A model that fails is a ProviderError; it has changed
        nothing then.
        """
        return await self._work(*_named(session)).run(is_all=is_all)

    async def start_anew(self, session: Talk) -> None:
        """Summarise everything that is new, then clear the conversation: `/new`.

        What memory holds stays. If the model fails, or the files cannot be written, that is a
        ProviderError or a StoreError, nothing is cleared, and it can be done again; a turn that
        runs is Busy.
        """
        key, _ = _named(session)
        for _ in range(_TRIES_MAX):
            try:
                await self.consolidate(session, is_all=True)
                record = await self._cleared(session)
            except HoldfastError as error:
                error.add_note(f"session {key!r} was not cleared: nothing of it is lost")
                raise
            if record is not None:
                session.ledger.clear()
                await session.refresh()
                return
        raise Conflict(key, 0, 0, "messages")

    async def _cleared(self, session: Talk) -> Record | None:
        """The session without its conversation; None if something came to it meanwhile."""
        tenant, files = self._lent.tenant, self._files(session)
        async with held(self._places.lock(files.folder)):
            seen = await tenant.load(session.key)
            if seen.id != session.id:
                raise SessionNotFound(session.key)
            at = await counter.position(tenant, seen)
            if at < seen.branch_named(seen.branch).count:
                return None
            try:
                return await tenant.clear(seen.id, seen=seen)
            except Conflict:
                return None

    def after(self, record: Record, count: int) -> None:
        """There are so many messages now: if enough is new, summarise it in the background."""
        at = counter.known(record)
        if record.id not in self._running and is_due(count, at or 0, self.window):
            self._running.add(record.id)
            self._lent.start(self._behind(record.key, record.id))

    async def _behind(self, key: str, id: str) -> None:
        try:
            while await self._work(key, id).run(if_due=True):
                pass
        except (SessionNotFound, SessionExpired):
            return
        except HoldfastError as error:
            _log.warning("session %r could not be consolidated: %s", key, error)
        except Exception:  # noqa: BLE001 - a model may be anybody's, and nobody waits for this
            _log.exception("session %r could not be consolidated", key)
        finally:
            self._running.discard(id)

    # For the manager

    @property
    def showing(self) -> Showing:
        """What models are shown."""
        return Showing(self._lent, self._places)

    @property
    def leaving(self) -> Leaving:
        """How what it has of sessions and messages goes when these do."""
        return Leaving(self._lent.tenant, self._places)

    # Inside

    @property
    def _lent(self) -> Desk:
        if self._desk is None:
            raise InvalidInput(
                "memory", "has no sessions yet: pass it to holdfast.open(memory=...)"
            )
        return self._desk

    def _files(self, session: Whose) -> Files:
        folder = self._places.of(self._lent.tenant.name, *_named(session))
        return Files(folder, self._rules.versions_max)

    def _work(self, key: str, id: str) -> Work:
        return Work(self._lent, self._places, self._rules, self._tell, key, id)

    def _tell(self, event: Event) -> None:
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception:  # noqa: BLE001 - whoever watches cannot be mended here
            _log.exception("an observer of a memory failed")


def _named(session: Whose) -> tuple[str, str]:
    if not isinstance(session, Whose):
        raise InvalidInput("session", f"is one that the manager gave, not {session!r:.80}")
    return session.key, session.id


def _check_number(name: str, value: object, least: int) -> None:
    if type(value) is not int or value < least:
        raise InvalidInput(name, f"is a whole number from {least} up, not {value!r:.80}")
