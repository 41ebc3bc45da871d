"""Sessions in memory: for tests, for simulation, and for what need not last.

Everything happens in the loop's own thread, at once and in the order asked for: no I/O, no threads,
no clock but the lease's. So a run with a seeded event loop repeats exactly.
"""

import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import ClassVar, TypeVar

from holdfast.errors import StoreClosed, Unsupported
from holdfast.stores import words
from holdfast.stores.base import Store
from holdfast.stores.bell import Bell
from holdfast.stores.chain import NewRow
from holdfast.stores.document import Written
from holdfast.stores.front import Front
from holdfast.stores.head import Head, Row, Stamp
from holdfast.stores.held import Held, HeldShelf, is_overdue
from holdfast.stores.requests import Request
from holdfast.stores.shelf import Listed, Shelf
from holdfast.stores.values import LIMITS, Limits, check_limits

_Result = TypeVar("_Result")


class MemoryShelf(HeldShelf):
    """The rows of all tenants, in dictionaries."""

    def __init__(self) -> None:
        self._sessions: dict[int, Held] = {}
        self._ids: dict[tuple[str, str], int] = {}
        self._keys: dict[tuple[str, str], int] = {}
        self._numbers = 0
        self._clocks: dict[str, int] = {}
        self._appended = 0
        # In the order of appends: which message it was, its session, and its seq. No number is
        # used again, so that one who pages through hits is not misled when others are deleted.
        self._messages: list[tuple[int, int, int]] = []

    def held(self, number: int) -> Held:
        return self._sessions[number]

    # Sessions

    def find(self, tenant: str, id: str) -> Head | None:
        number = self._ids.get((tenant, id))
        return None if number is None else self._sessions[number].head

    def find_key(self, tenant: str, key: str) -> Head | None:
        number = self._keys.get((tenant, key))
        return None if number is None else self._sessions[number].head

    def insert(self, head: Head, document: Written) -> None:
        self._numbers += 1
        head.number = self._numbers
        self._sessions[head.number] = Held(head, document)
        self._ids[head.tenant, head.id] = head.number
        self._keys[head.tenant, head.key] = head.number

    def delete(self, head: Head) -> None:
        self.clear(head)
        del self._sessions[head.number]
        del self._ids[head.tenant, head.id]
        del self._keys[head.tenant, head.key]

    def newest(
        self,
        tenant: str,
        *,
        agent: str | None,
        since: int | None,
        until: int | None,
        before: tuple[int, int] | None,
        limit: int,
    ) -> Sequence[Listed]:
        wanted = [
            each
            for each in self._sessions.values()
            if each.head.tenant == tenant
            and (agent is None or each.head.agent == agent)
            and (since is None or each.head.updated >= since)
            and (until is None or each.head.updated < until)
            and (before is None or (each.head.updated, each.head.number) < before)
        ]
        wanted.sort(key=lambda each: (each.head.updated, each.head.number), reverse=True)
        return [
            (each.head.number, each.head.id, each.head.updated, *each.document[:2])
            for each in wanted[:limit]
        ]

    def overdue(self, tenant: str, now: int, marked: int, limit: int) -> Sequence[Head]:
        heads = [
            each.head
            for each in self._sessions.values()
            if each.head.tenant == tenant and is_overdue(each.head, now, marked)
        ]
        return heads[:limit]

    def tenants(self) -> set[str]:
        """Those who have sessions."""
        return {tenant for tenant, _ in self._ids}

    # Entries

    def add_rows(self, head: Head, rows: Sequence[NewRow]) -> None:
        super().add_rows(head, rows)
        for number, seq, _, _, kind, *_ in rows:
            if kind == "message":
                self._appended += 1
                self._messages.append((self._appended, number, seq))

    def clear(self, head: Head) -> None:
        super().clear(head)
        self._messages = [each for each in self._messages if each[1] != head.number]

    def purge(self) -> None:
        pass  # there are no files

    # Leases

    def stamp(self, ttl: timedelta) -> Stamp:
        return Stamp("", "", time.monotonic_ns() + ttl // timedelta(microseconds=1) * 1_000)

    def is_over(self, stamp: Stamp) -> bool:
        return time.monotonic_ns() > stamp.until

    # The rest

    def search(
        self, tenant: str, query: str, session: int | None, before: int | None, limit: int
    ) -> Sequence[tuple[int, Head, Row]]:
        wanted = words.query(query)
        found: list[tuple[int, Head, Row]] = []
        end = len(self._messages) if before is None else bisect_left(self._messages, (before,))
        for place in range(end - 1, -1, -1) if wanted else ():
            at, number, seq = self._messages[place]
            each = self._sessions[number]
            if each.head.tenant != tenant or session not in (None, number):
                continue
            if self.has_words(each, seq, wanted):
                found.append((at, each.head, each.rows[seq]))
                if len(found) == limit:
                    break
        return found

    def clock_seen(self, tenant: str) -> int | None:
        return self._clocks.get(tenant)

    def save_clock_seen(self, tenant: str, now: int) -> None:
        self._clocks[tenant] = now


class MemoryTenant(Front):
    """One tenant's sessions in memory."""

    def __init__(self, name: str, store: "MemoryStore") -> None:
        super().__init__(name, store.limits)
        self._store = store

    async def _write(self, request: Request[_Result]) -> _Result:
        result = request.run(self._store.shelf())
        self._store.bell.ring()
        return result

    async def _read(
        self,
        function: Callable[[Shelf], _Result],
        rows: int = 1,  # noqa: ARG002 - all the same here
    ) -> _Result:
        return function(self._store.shelf())

    async def _changed(self) -> None:
        await self._store.bell.wait()


class MemoryStore(Store):
    """A store that forgets everything when it is closed."""

    unsupported: ClassVar[frozenset[str]] = frozenset({"backup"})

    def __init__(self, *, limits: Limits = LIMITS) -> None:
        self.limits = check_limits(limits)
        self._shelf: MemoryShelf | None = None
        self._is_closed = False
        self.bell = Bell()

    def tenant(self, name: str = "") -> MemoryTenant:
        return MemoryTenant(name, self)

    async def tenants(self) -> tuple[str, ...]:
        return tuple(sorted(self.shelf().tenants()))

    async def open(self) -> None:
        if self._is_closed:
            raise StoreClosed("memory")
        self._shelf = self._shelf or MemoryShelf()

    async def backup(
        self,
        path: str | Path,  # noqa: ARG002 - whatever it is
        *,
        on_progress: Callable[[float], object] | None = None,  # noqa: ARG002 - likewise
    ) -> None:
        raise Unsupported("make a backup", "the memory store")

    async def close(self) -> None:
        self._shelf, self._is_closed = None, True
        self.bell.ring()

    def shelf(self) -> MemoryShelf:
        """The rows, while the store is open."""
        if self._shelf is None:
            why = "the store is closed" if self._is_closed else "the store is not open yet"
            raise StoreClosed("memory", why)
        return self._shelf
