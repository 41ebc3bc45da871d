"""Retention: which sessions are kept, and which go because they are old, many or large.

A run looks at every session once, the last written to first, and decides by what it sees then. What
is written to before its turn comes to be deleted stays, and so does what a turn runs on: whoever
uses a session never loses it to tidying up.

The children of a session are part of it: they are not counted as sessions, they are weighed with
it, and they go when it goes.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from holdfast import ids
from holdfast.child import OF
from holdfast.errors import Busy, Conflict, InvalidInput, SessionNotFound, StoreError
from holdfast.frozen import EMPTY, JSONObject, Value
from holdfast.memory import Memory
from holdfast.stores.base import Tenant
from holdfast.stores.values import Record, Summary, check_ttl

_PAGE = 500


class Retention(Value, frozen=True, kw_only=True):
    """What is kept. A session goes if any of the first three says so, and the rest allows it.

    age        those that were written to longer ago go
    count      of the others, so many that were written to last stay
    bytes      of the others, the last ones stay that have so many bytes of entries together
    keep       so many that were written to last stay, whatever the rest says
    agent, metadata
               it is about sessions that have these alone, as in `list`
    """

    age: timedelta | None = None
    count: int | None = None
    bytes: int | None = None
    keep: int = 0
    agent: str | None = None
    metadata: JSONObject = EMPTY

    def _settle(self) -> None:
        check_ttl(self.age, "age")
        self._settle_counts(
            "keep", *(n for n in ("count", "bytes") if getattr(self, n) is not None)
        )
        self._settle_texts(optional=("agent",))
        self._settle_objects("metadata")
        if self.age is None and self.count is None and self.bytes is None:
            raise InvalidInput("a Retention", "says nothing: give it an age, a count or bytes")


class Gone(NamedTuple):
    """A session that a run has deleted, or would have."""

    key: str
    id: str
    why: str


class Retained(NamedTuple):
    """What a run came to.

    spared   keys of those that were used meanwhile, and stay for now
    failed   keys of those that cannot be read or deleted, and why
    """

    kept: int
    gone: tuple[Gone, ...]
    spared: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    dry_run: bool = False


async def retain(
    tenant: Tenant,
    policy: Retention,
    *,
    dry_run: bool = False,
    on_gone: Callable[[Gone], object] | None = None,
    memory: Memory | None = None,
) -> Retained:
    """Delete what the policy does not keep, also from a memory; with `dry_run`, only tell."""
    if not isinstance(policy, Retention):
        raise InvalidInput("policy", f"is a Retention, not {type(policy).__name__}")
    # All of it is listed first: deleting while paging would hide some of what follows.
    listed = [each async for each in _sessions(tenant, policy)]
    families = _families(listed)
    run = _Run(tenant, policy, dry_run, on_gone or _tell_nobody, memory, families)
    children = {child.id for family in families.values() for child in family}
    for summary in listed:
        if summary.id not in children:
            await run.look_at(summary)
    return Retained(run.kept, tuple(run.gone), tuple(run.spared), tuple(run.failed), dry_run)


class _Run:
    """One run over the sessions of a tenant, those first that were written to last."""

    def __init__(
        self,
        tenant: Tenant,
        policy: Retention,
        dry_run: bool,
        on_gone: Callable[[Gone], object],
        memory: Memory | None,
        families: Mapping[str, Sequence[Summary]],
    ) -> None:
        self._tenant = tenant
        self._policy = policy
        self._dry_run = dry_run
        self._on_gone = on_gone
        self._memory = memory
        self._families = families
        self._now = ids.now()
        self._bytes = 0
        self.kept = 0
        self.gone: list[Gone] = []
        self.spared: list[str] = []
        self.failed: list[tuple[str, str]] = []

    async def look_at(self, summary: Summary) -> None:
        if summary.damage:
            self.failed.append((summary.key, summary.damage))
            return
        try:
            why = await self._why(summary)
            if why:
                await self._delete(summary, why)
                for child in self._families.get(summary.id, ()):
                    await self._take_along(child, summary)
                return
        except SessionNotFound:
            return  # somebody else was first
        except (Busy, Conflict):
            self.spared.append(summary.key)
        except StoreError as error:
            self.failed.append((summary.key, str(error)))
            return
        self.kept += 1

    async def _take_along(self, child: Summary, parent: Summary) -> None:
        """A child goes with its parent, unless it is used on its own."""
        try:
            await self._delete(child, f"it is a child of {parent.key}")
        except SessionNotFound:
            return
        except (Busy, Conflict):
            self.spared.append(child.key)
        except StoreError as error:
            self.failed.append((child.key, str(error)))

    async def _why(self, summary: Summary) -> str:
        """Why a session is not kept; nothing if it is."""
        policy = self._policy
        if self.kept < policy.keep:
            await self._weigh(summary)
            return ""
        if policy.age is not None and self._now - summary.updated_at > policy.age:
            return f"not written to for {self._now - summary.updated_at}"
        if policy.count is not None and self.kept >= policy.count:
            return f"not among the last {policy.count}"
        size = await self._weigh(summary)
        if policy.bytes is not None and self._bytes > policy.bytes:
            self._bytes -= size
            return f"with it there were more than {policy.bytes:,} bytes"
        return ""

    async def _weigh(self, summary: Summary) -> int:
        """Add up what is kept, if the policy asks for that."""
        if self._policy.bytes is None:
            return 0
        family = (summary, *self._families.get(summary.id, ()))
        size = sum([await self._tenant.size(each.id) for each in family])
        self._bytes += size
        return size

    async def _delete(self, summary: Summary, why: str) -> None:
        gone = Gone(summary.key, summary.id, why)
        if not self._dry_run:
            seen = await self._tenant.load(summary.key, even_expired=True)
            if not _is_as_listed(seen, summary):
                raise Conflict(summary.key, 0, 0, "updated_at")
            if self._memory is not None:  # what it has goes behind: the session may yet stay
                await self._memory.leaving.doom(seen)
            if not await self._tenant.delete(summary.id, seen=seen):
                raise SessionNotFound(summary.key)
            if self._memory is not None:
                await self._memory.leaving.bury(seen)
        self.gone.append(gone)
        self._on_gone(gone)


def _is_as_listed(record: Record, summary: Summary) -> bool:
    return (record.id, record.updated_at) == (summary.id, summary.updated_at)


def _families(listed: Sequence[Summary]) -> dict[str, list[Summary]]:
    """The children of each session, and theirs, as far as both are listed."""
    by_id = {each.id: each for each in listed if not each.damage}
    families: dict[str, list[Summary]] = defaultdict(list)
    for each in by_id.values():
        first, seen = each, {each.id}
        while (parent := by_id.get(str(first.metadata.get(OF)))) and parent.id not in seen:
            first = parent
            seen.add(parent.id)
        if first is not each:
            families[first.id].append(each)
    return families


async def _sessions(tenant: Tenant, policy: Retention) -> AsyncIterator[Summary]:
    chosen: Mapping[str, Any] = {"agent": policy.agent, "metadata": policy.metadata or None}
    page: str | None = None
    while True:
        found = await tenant.list(limit=_PAGE, page=page, **chosen)
        for each in found.items:
            yield each
        if found.next is None:
            return
        page = found.next


def _tell_nobody(_: Gone) -> None:
    return
