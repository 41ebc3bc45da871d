"""Copying sessions from one store to another, while both are in use.

    copied = await copy(old_store, new_store)

Given two stores, it copies the sessions of all tenants. A session arrives as it is: the same key,
id, times and seqs. What has been done is to be seen in the target alone, so a copy that was killed
is started again and goes on where it was. Sessions are listed the last written first; those that
are written to meanwhile come up again, and are brought up to date. What the target has under the
same key, and did not get from here, is never touched.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypedDict

from holdfast.errors import (
    Conflict,
    DuplicateSession,
    HoldfastError,
    InvalidInput,
    NotCopied,
    SessionExpired,
    SessionNotFound,
    StoreFull,
    StoreUnavailable,
    Unsupported,
)
from holdfast.keys import check_key
from holdfast.stores.base import Store, Tenant
from holdfast.stores.replica import MOVED, Brought, Differs, Replica
from holdfast.stores.tally import Copied, Observer, Place, Progress, Tally
from holdfast.stores.values import Page, Problem, Summary

__all__ = ["Copied", "Progress", "copy"]

AT_ONCE = 8  # sessions, so that their commits go together
PASSES_MAX = 3
_PAGE = 500
_FATAL = (StoreUnavailable, StoreFull, Unsupported)  # no other session would fare better


OnConflict = Literal["error", "skip"]


class Choice(TypedDict, total=False):
    """What `copy` takes beside source and target."""

    key: str | None
    agent: str | None
    metadata: Mapping[str, Any] | None
    since: datetime | None
    until: datetime | None
    on_conflict: OnConflict
    on_progress: Observer | None
    recheck: bool


async def copy(
    source: Store | Tenant,
    target: Store | Tenant,
    *,
    key: str | None = None,
    agent: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    on_conflict: OnConflict = "error",
    on_progress: Observer | None = None,
    recheck: bool = False,
) -> Copied:
    """Copy sessions, expired ones too, and verify each entry by reading it back.

    Two stores: the sessions of all tenants that the source tells. Two tenants: those of one. `key`
    chooses one session; agent, metadata, since and until choose as `list` does. What an earlier
    copy has brought and nobody has written to is not read again, unless `recheck` asks for it.

    At the end NotCopied is raised if anything failed or, but with `on_conflict="skip"`, is
    something else in the target; its `copied` tells all. Everything else was copied then. A store
    that cannot be reached ends the copy at once. `on_progress` is called at most every 100 ms, and
    at the end.
    """
    if on_conflict not in ("error", "skip"):
        raise InvalidInput("on_conflict", f"is 'error' or 'skip', not {on_conflict!r}")
    chosen = {"agent": agent, "metadata": metadata, "since": since, "until": until}
    run = Tally(on_progress, recheck)
    pairs = [
        _Pair(run, *each, None if key is None else check_key(key), chosen)
        for each in await _tenants(source, target)
    ]
    if on_progress is not None:
        for pair in pairs:
            await pair.survey()
    for pair in pairs:
        await pair.copy()
    run.tell(is_last=True)
    copied = run.copied()
    problems = copied.failed + (copied.conflicts if on_conflict == "error" else ())
    if problems:
        raise NotCopied(problems, copied)
    return copied


async def _tenants(source: Store | Tenant, target: Store | Tenant) -> list[tuple[Tenant, Tenant]]:
    if isinstance(source, Tenant) and isinstance(target, Tenant):
        return [(source, target)]
    if isinstance(source, Store) and isinstance(target, Store):
        return [(source.tenant(each), target.tenant(each)) for each in await source.tenants()]
    raise InvalidInput("source and target", "are two stores, or two tenants")


@dataclass(slots=True)
class _Pair:
    """A tenant in the source, and the same one in the target."""

    run: Tally
    source: Tenant
    target: Tenant
    key: str | None
    chosen: dict[str, Any]

    async def survey(self) -> None:
        """How much there is to do."""
        async for each in self._sessions():
            self.run.sessions_total += 1
            try:
                record = (await self.source.export(each.id, limit=0)).record
            except HoldfastError:
                continue  # told when it is met
            self.run.entries_total += record.seq - record.branches[0].fork

    async def copy(self) -> None:
        """Copy all that are chosen, then those that were written to since, a few times over."""
        newest: datetime | None = None
        for _ in range(PASSES_MAX):
            sessions = self._sessions(newest)
            first = await anext(sessions, None)
            if first is None:
                return
            known = await self._pass(first, sessions, newest)
            if known or self.key is not None:
                return
            newest = first.updated_at
        await self._look(newest)

    async def _look(self, newest: datetime | None) -> None:
        """Say what has been written to since it was brought for the last time."""
        async for each in self._sessions(newest):
            place = (self.source.name, each.id or each.key)
            if each.damage or place in self.run.conflicts or place in self.run.failed:
                continue
            if not await Replica(self.source, self.target, each.id).is_level():
                self.run.moved[place] = Problem(each.key, "", 0, MOVED)

    async def _pass(
        self, first: Summary, sessions: AsyncIterator[Summary], newest: datetime | None
    ) -> bool:
        """Bring these sessions; whether they had all been brought before."""
        lock = asyncio.Lock()
        waiting: list[Summary] = [first]
        news = 0

        async def next_one() -> Summary | None:
            async with lock:
                return waiting.pop() if waiting else await anext(sessions, None)

        async def work() -> None:
            nonlocal news
            while (each := await next_one()) is not None:
                news += await self._bring(each, is_first=newest is None)

        await _all(*(work() for _ in range(AT_ONCE)))
        return not news

    async def _sessions(self, newest: datetime | None = None) -> AsyncIterator[Summary]:
        """Those that are chosen; with `newest`, those written to then or later."""
        if self.key is not None:
            yield await self._one(self.key)
            return
        chosen = dict(self.chosen)
        if newest is not None:
            chosen["since"] = max(newest, chosen["since"] or newest)
        page: Page[Summary] = await self.source.list(**chosen, limit=_PAGE)
        while True:
            for each in page.items:
                yield each
            if page.next is None:
                return
            page = await self.source.list(**chosen, limit=_PAGE, page=page.next)

    async def _one(self, key: str) -> Summary:
        try:
            record = await self.source.load(key)
        except SessionExpired:
            page: Page[Summary] = await self.source.list(limit=_PAGE)
            while True:  # only the list tells of it
                for each in page.items:
                    if each.key == key:
                        return each
                if page.next is None:
                    raise SessionNotFound(key) from None
                page = await self.source.list(limit=_PAGE, page=page.next)
        times = (record.created_at, record.updated_at)
        return Summary(record.id, record.key, record.agent, *times, record.metadata)

    async def _bring(self, each: Summary, *, is_first: bool) -> bool:
        """Bring one session, and note what came of it; whether there was anything to do."""
        run, place = self.run, (self.source.name, each.id or each.key)
        if not is_first and (place in run.conflicts or place in run.failed):
            return False
        run.key = each.key
        run.moved.pop(place, None)
        if each.damage:
            run.failed[place] = Problem(each.key, "", 0, each.damage)
            return False
        told = run.tell if place in run.outcomes else run.count  # nothing is counted twice
        replica = Replica(self.source, self.target, each.id, told)
        try:
            brought = await replica.bring(recheck=run.recheck and is_first)
        except Differs as error:
            run.conflicts[place] = error.problem(each.key)
        except (Conflict, DuplicateSession) as error:
            run.conflicts[place] = Problem(each.key, "", 0, str(error))
        except SessionNotFound:  # it was deleted
            run.moved[place] = Problem(each.key, "", 0, "it was deleted while it was copied")
        except _FATAL:
            raise
        except HoldfastError as error:
            run.failed[place] = Problem(each.key, "", 0, str(error))
        else:
            return self._note(place, each.key, brought)
        finally:
            run.written += replica.written
            run.tell()
        run.outcomes.pop(place, None)
        return True

    def _note(self, place: Place, key: str, brought: Brought) -> bool:
        if brought.why and brought.outcome != "ahead":
            self.run.moved[place] = Problem(key, "", 0, brought.why)
        is_known = brought.outcome in ("unchanged", "ahead")
        if not (is_known and place in self.run.outcomes):
            self.run.outcomes[place] = brought
        return not is_known


async def _all(*tasks: Any) -> None:
    """Run tasks side by side; the first error ends them all, and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            for each in tasks:
                group.create_task(each)
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
