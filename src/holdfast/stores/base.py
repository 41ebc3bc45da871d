"""The store contract: what every store promises, in words.

A store keeps records and entries and knows nothing else. `store.tenant(name)` gives the object
with the operations; no call crosses tenants, and another tenant's session answers exactly like one
that does not exist.

`load(key)` gives the record; everything after it takes the record's `id`, so that a stale writer
can never write into a session that was made anew under the same key.

The order of entries is their seq, never a time. Each promise here has a test in
`holdfast.testing.StoreContract`, and every store passes all of it. What a store cannot do it names
in `unsupported`, and raises Unsupported when asked.

Every operation checks its arguments before it does anything: InvalidInput and TooLarge mean that
nothing was changed. So do all the other errors named here.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

from holdfast.entries import Entry
from holdfast.errors import HoldfastError, Unsupported
from holdfast.stores.values import (
    LIMITS,
    MAIN,
    Appended,
    Chunk,
    Expired,
    Found,
    Lease,
    Limits,
    Named,
    Page,
    Part,
    Record,
    Stored,
    Summary,
    Verified,
)

GRACE = timedelta(days=7)


class Tenant(ABC):
    """One tenant's sessions, and all that can be done with them."""

    name: str

    @abstractmethod
    async def create(
        self,
        record: Record,
        entries: Sequence[Entry] = (),
        *,
        keep_times: bool = False,
        replace_expired: bool = False,
    ) -> Record:
        """Make a session, with its first entries on branch "main", or raise DuplicateSession.

        Of `record`, what a caller may give is taken; the rest is the store's. The session was
        created and updated now, unless `keep_times` asks for the record's own times, as a copy
        from another store does. An expired session still has its key; with `replace_expired` it
        is deleted in the same commit, if it has expired then and no turn runs on it.
        """

    @abstractmethod
    async def load(self, key: str, *, even_expired: bool = False) -> Record:
        """The session of this key, or SessionNotFound, or SessionExpired. Never deletes.

        A session has expired when more than its `ttl` has passed since it was last written to;
        with `even_expired` that is no reason not to give its record.
        A record that is not what was written is Corrupt.
        """

    @abstractmethod
    async def append(
        self,
        id: str,
        entries: Sequence[Entry],
        *,
        branch: str = MAIN,
        after: int | None = None,
        lease: Lease | None = None,
        once: str | None = None,
        finish: bool = False,
    ) -> Appended:
        """Add `entries` to the end of `branch`, all or none.

        `after` is the head of that branch as the caller last saw it; None means behind whatever is
        there. If the branch has moved on, Conflict says where it is now. With a `lease`, LeaseLost
        if it is not the one in force. A session that has expired is SessionExpired.

        `once` names this append for the life of the session, across its branches, until it is
        cleared. It is looked at first: a repeat with the same content (ids and times aside)
        returns the first result and writes nothing, and other content is OnceMismatch.

        `finish` also drops the draft and releases the lease, in the same commit; it needs a
        lease. A repeat with `once` finishes too.

        When this returns, the entries survive the process being killed and, at level "sync", the
        power going out. When it is cancelled, it was withdrawn or is complete by the time
        CancelledError is raised; it never happens later.
        """

    @abstractmethod
    async def begin(
        self,
        id: str,
        owner: str,
        ttl: timedelta,
        draft: Mapping[str, Any],
        *,
        seen: int | None = None,
        place: str = "",
    ) -> Lease:
        """Take the lease on a session and store the draft of its turn, in one commit.

        Busy names the `owner` who has it. A lease is free when it was released, when the process
        that took it is gone, and when its time is over, by a clock that does not jump. What
        is left of a turn that was cut off comes back in `lease.left`, and is replaced. `seen` is
        the token of the draft that the caller knows of, 0 for none: Conflict if another one would
        be replaced. While others wait in line for it, it is Busy for all but the first of them,
        who says by its `place` which one it is, and leaves the line with this.
        """

    @abstractmethod
    async def line_up(
        self, id: str, owner: str, place: str, *, waited: timedelta, patience: timedelta
    ) -> bool:
        """Wait in line for the lease on a session; whether it is free now for this one.

        `place` is a name that nobody else has. Who has `waited` longer stands further ahead, so the
        line is one for all processes. Calling it again asks how it stands. A place is lost when
        its process is gone, when its `patience` is over, and when it did not take a lease that was
        free for two seconds while another wanted it; then this call gives one again.
        """

    @abstractmethod
    async def step_out(self, id: str, place: str) -> None:
        """Wait no longer. No error if there is no such place, or no such session."""

    @abstractmethod
    async def journal(self, lease: Lease, chunk: str) -> None:
        """Add a piece of partial output to the draft, or raise LeaseLost.

        It survives the process being killed; it may be lost when the power goes out.
        """

    async def journal_all(
        self, pieces: Sequence[tuple[Lease, str]]
    ) -> Sequence[HoldfastError | None]:
        """`journal` for many turns at once; for each piece the error, or None where it is kept."""
        errors: list[HoldfastError | None] = []
        for lease, chunk in pieces:
            try:
                await self.journal(lease, chunk)
                errors.append(None)
            except HoldfastError as error:
                errors.append(error)
        return errors

    @abstractmethod
    async def renew(self, lease: Lease, ttl: timedelta | None = None) -> Lease:
        """Let the lease's time begin anew (with another `ttl` if given), or raise LeaseLost.

        A lease whose time is over can be renewed as long as nobody else has taken it.
        """

    @abstractmethod
    async def release(self, lease: Lease, *, drop: bool = False) -> None:
        """Give the lease back; with `drop`, forget the draft as well. No error if it was lost."""

    @abstractmethod
    async def branch(self, id: str, name: str, *, parent: str, at: int, use: bool = True) -> Record:
        """Open a branch that goes on from the entry `at` of `parent` (0: from the beginning).

        With `use` it becomes the branch in use. The cost does not depend on how long the log is.
        A name that is taken, an unknown parent, and an entry that is not on it are InvalidInput.
        """

    @abstractmethod
    async def read(
        self,
        id: str,
        branch: str = MAIN,
        start: int = 0,
        stop: int | None = None,
        *,
        kind: str | None = None,
    ) -> tuple[Stored, ...]:
        """The messages at positions `start` to `stop` of a branch, and what stands with them.

        Entries that are not messages stand with the last message before them, and those before
        the first message with that one. Without `stop`, to the end of the branch. Positions count
        from 0; beyond the end there is nothing, and below 0 is InvalidInput. `kind` leaves out
        entries of other kinds. Reading finds every damaged row that it passes: Corrupt.
        """

    @abstractmethod
    async def tail(self, id: str, branch: str = MAIN, count: int = 50) -> tuple[Stored, ...]:
        """The last `count` messages of a branch, and everything that stands behind the first."""

    @abstractmethod
    async def size(self, id: str) -> int:
        """How many bytes the entries of a session take, on all branches, without what holds them.

        What was erased takes none, and a large text that stands in several entries counts once.
        """

    @abstractmethod
    async def update(
        self,
        id: str,
        changes: Mapping[str, Any],
        expect: Mapping[str, Any] | None = None,
    ) -> Record:
        """Change fields of the record: agent, settings, metadata, counters, tools, ttl, branch.

        settings, metadata and counters are changed name by name: a name that is not mentioned
        stays as it is, and None takes a name away. So two writers who change different names
        never undo each other's work. `expect` has the same shape: Conflict unless each name in it
        still has that value (None: is not there). An unknown field is InvalidInput.
        An expired session may be updated; that, like every write, lets its time begin anew.
        """

    @abstractmethod
    async def delete(self, id: str, *, seen: Record | None = None) -> bool:
        """Remove a session with everything in it; False if it was not there.

        `seen` is its record as the caller last saw it: Conflict if it was written to since, and
        Busy if a turn runs on it.
        """

    @abstractmethod
    async def erase(self, id: str, seqs: Sequence[int]) -> int:
        """Really remove what these entries say; returns how many still had something to say.

        Their places stay (`Stored.entry` is None), and the chain still verifies. Afterwards the
        content is in no file of the store, no log, no index, no cache. A seq that is not in the
        session is InvalidInput, and then nothing is erased. StoreUnavailable may also mean that it
        is erased for every reader, but that its bytes could not be removed yet: ask again.
        """

    @abstractmethod
    async def clear(self, id: str, *, seen: Record | None = None) -> Record:
        """Really remove all entries, branches, drafts and `once` names; the record stays.

        `seen` is its record as the caller last saw it: Conflict if it was written to since, and
        Busy if a turn runs on it.

        There is one branch again, "main", and it is empty. Counters are emptied. No seq is used
        again, and an append that was prepared before is a Conflict. A running turn loses its lease.
        About StoreUnavailable, see `erase`.
        """

    @abstractmethod
    async def list(
        self,
        *,
        agent: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        page: str | None = None,
    ) -> Page[Summary]:
        """Sessions, those written to last first, expired ones included.

        `agent` and every name in `metadata` must be equal; `since` (inclusive) and `until`
        (exclusive) bound the time of the last write. A damaged record is listed as such and
        never hides the others. `page` is the `next` of the page before.
        """

    @abstractmethod
    async def expire(self, now: datetime | None = None, *, grace: timedelta = GRACE) -> Expired:
        """Mark sessions that have expired, and delete those marked longer than `grace` ago.

        A clock that went back, or that jumped ahead by more than 30 days since the last run,
        looks wrong: then nothing is deleted or marked, the reason is returned, and the next
        run trusts the clock again if it goes on from there. A mark is gone when the session is
        written to. A session with a running turn is not deleted.
        """

    async def index(  # noqa: B027 - most stores have nothing to do
        self, *, on_progress: Callable[[float, float | None], object] | None = None
    ) -> None:
        """Make ready for a search what was appended since the last one, as every search does.

        `on_progress` hears how many entries are done, and of how many if that is known. A store
        that has nothing to make ready does nothing.
        """

    @abstractmethod
    async def search(
        self,
        query: str,
        *,
        session: str | None = None,
        limit: int = 20,
        page: str | None = None,
    ) -> Page[Found]:
        """Messages that hold every word of `query`, the newest first. `session` is an id.

        Whole words count; case, width and accents do not. Chinese, Japanese and Korean are found
        by any run of characters. A query without a word finds nothing, and no sign in it is an
        operator. Everything appended before the call is searched, and it does not wait for what is
        appended later. A message that is damaged is told as such, without its content, and hides no
        other. What stays is on one page and no other, whatever comes and goes between pages.
        """

    @abstractmethod
    def watch(self, id: str, after: int | None = None) -> AsyncIterator[Stored | Chunk]:
        """Entries behind the seq `after` as they come, on all branches, and live partial output.

        Without `after`, from now on. Never ends by itself, but when the session is deleted:
        SessionNotFound. The chunks of the turn that runs are given from its beginning.
        """

    @abstractmethod
    async def export(self, id: str, after: int = 0, limit: int = 1_000) -> Part:
        """A session as it is at one moment, whether it has expired or not, for `restore`.

        Of its log, the entries behind the seq `after`, at most `limit`, and fewer if they are
        large; but at least one, if there is one and `limit` is not 0. Damage is Corrupt.
        """

    @abstractmethod
    async def names(self, id: str, after: str = "", limit: int = 1_000) -> tuple[Named, ...]:
        """The named appends of a session, for `restore`: at most `limit`, behind the name `after`.

        They are in the order of their names, by code points.
        """

    @abstractmethod
    async def restore(self, part: Part, *, after: int | None, is_whole: bool = False) -> int:
        """Make or continue a session as `part` says, with its ids, seqs and times.

        `after` is the seq that the session is at here, as last seen, and None if it is not here.
        What is here was restored before, and is never changed after anybody else has written to it:
        Conflict. So it is if the session is not at `after`. If there is another one with this key
        or id, DuplicateSession.

        Everything in the record is taken over, but a turn that runs: neither its lease nor its
        draft. Entries behind `after` are added, and named appends that are not known here. An entry
        that is here already may be given again when it has been erased: it is erased here too. If
        the record tells that the session was cleared, what is here is removed first. `is_whole`
        says that this completes the log: InvalidInput unless every branch then ends as the record
        says. Returns the seq that the session is at.
        """

    @abstractmethod
    async def verify(
        self, id: str | None = None, *, on_progress: Callable[[int], object] | None = None
    ) -> Verified:
        """Go over a session, or all of this tenant's, and report whatever is not what was written.

        Never raises for what it finds. `on_progress` hears how many sessions it has gone over.
        """


class Store(ABC):
    """A place where sessions are kept: `await open_store(url)`, or `async with open_store(url)`."""

    unsupported: ClassVar[frozenset[str]] = frozenset()
    limits: Limits = LIMITS

    @abstractmethod
    def tenant(self, name: str = "") -> Tenant:
        """The sessions of one tenant. Any text is a name, and no two names share anything."""

    async def tenants(self) -> tuple[str, ...]:
        """The tenants that have sessions."""
        raise Unsupported("tell its tenants", f"the {type(self).__name__}")

    @abstractmethod
    async def open(self) -> None:
        """Make the store ready; what is wrong with it is told now and not later."""

    @abstractmethod
    async def backup(
        self, path: str | Path, *, on_progress: Callable[[float], object] | None = None
    ) -> None:
        """Write a copy of the whole store, as it is at one moment, to a place that is empty.

        What is written to the store meanwhile is in the copy whole or not at all. The copy can
        be opened as a store. `on_progress` hears which share of it is done, up to 1.0, from any
        thread; what it raises ends the copying, and nothing is left of it.
        """

    @abstractmethod
    async def close(self) -> None:
        """Finish what was asked for, then let go of everything. Later calls: StoreUnavailable.

        It is gone through with when it is cancelled; whoever calls it again waits for the end.
        """

    def problems(self) -> list[str]:
        """What is wrong with the place where the data is, each with the way out."""
        return []

    def places(self) -> tuple[str, ...]:
        """Where its data may be, in words: what an erase goes through."""
        return (type(self).__name__,)

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
