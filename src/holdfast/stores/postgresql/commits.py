"""What is written to the server: batches of appends in one statement, all else in transactions.

A batch is decided on heads that are known, or were just read. The statement says which sessions
were still as they were thought to be. The others are decided again on fresh heads, and at last, if
somebody keeps getting in between, one by one under a lock, for which nobody else has to wait. An
error is told only if it was decided on a head that was right.

When a connection breaks, nobody knows whether the server has committed: see `outcomes.py`.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from asyncpg.exceptions import LockNotAvailableError
from asyncpg.pgproto.pgproto import UUID

from holdfast import ids
from holdfast.errors import Corrupt, HoldfastError
from holdfast.stores.postgresql import outcomes
from holdfast.stores.postgresql import statements as sql
from holdfast.stores.postgresql.batch import BatchShelf, Elsewhere
from holdfast.stores.postgresql.errors import is_lost, is_passing, translate
from holdfast.stores.postgresql.heads import (
    KNOWN_MAX,
    Known,
    Place,
    read_with_line,
    session_of,
    tenant_of,
)
from holdfast.stores.postgresql.holder import Holder
from holdfast.stores.postgresql.lanes import Ticket
from holdfast.stores.postgresql.pool import Pool
from holdfast.stores.postgresql.server import Link, Server, as_array
from holdfast.stores.postgresql.shelf import PostgresShelf
from holdfast.stores.requests import Journal, OfSession, Request

Written = dict[Any, bool | None]
TRIES_MAX = 5
ROUNDS_MAX = 3  # of deciding a batch again, before a lock is taken


class Commits:
    """The one who writes, in this process."""

    def __init__(self, server: Server, pool: Pool, holder: Holder) -> None:
        self._server = server
        self._pool = pool
        self._holder = holder
        self._known: dict[Place, Known] = {}

    # Batches

    async def batch(self, tickets: Sequence[Ticket[Any]]) -> list[Ticket[Any]]:
        """Answer these, which are all appends or partial output; but for those that come back, of
        which each needs a transaction of its own."""
        left, rounds, tries = list(tickets), 0, 0
        alone: list[Ticket[Any]] = []
        is_skipping = False
        while left and rounds < ROUNDS_MAX:
            try:
                left = await self._round(left, alone, is_skipping=is_skipping)
                rounds = ROUNDS_MAX if is_skipping else rounds + 1
            except Exception as error:  # noqa: BLE001 - told to those whom it concerns
                left = [ticket for ticket in left if not ticket.is_settled and ticket not in alone]
                self._forget(left)
                tries += 1
                if isinstance(error, HoldfastError) or (is_lost(error) and tries == TRIES_MAX):
                    for ticket in left:
                        ticket.settle(translate(error, self._server.where))
                    return alone
                if is_lost(error):
                    self._pool.drop_idle()
                    await asyncio.sleep(pause_s(tries))
                elif isinstance(error, LockNotAvailableError) and not is_skipping:
                    is_skipping = True
                else:
                    break  # one of them is the reason: each is tried by itself
        undone = {*left, *alone}
        return [ticket for ticket in tickets if ticket in undone]

    async def _round(
        self, tickets: Sequence[Ticket[Any]], alone: list[Ticket[Any]], *, is_skipping: bool
    ) -> list[Ticket[Any]]:
        """Decide and write; those that have to be decided again. What is raised wrote nothing."""
        places = list(dict.fromkeys(ticket.place for ticket in tickets))
        tenants = as_array(sorted({tenant_of(tenant) for tenant, _ in places}))
        async with self._pool.lend() as link:
            if not self._server.address.is_pooled:
                await link.allow(tenants)
                await link.hurry()
            fresh = [place for place in places if place not in self._known]
            damaged = await self._read(link, tenants, fresh) if fresh else {}
            known = {place: self._known[place] for place in places if place in self._known}
            shelf = BatchShelf(known, damaged, self._holder)
            results = [_decided(each.request, shelf) for each in tickets]
            written: Written = {}
            if shelf.touched:
                written = await self._write(link, tenants, shelf, tickets, is_skipping=is_skipping)
        settled = self._settled(shelf, places, fresh, written)
        return self._answered(tickets, results, settled, alone)

    def _settled(
        self,
        shelf: BatchShelf,
        places: Sequence[Place],
        fresh: Sequence[Place],
        written: "Written",
    ) -> dict[Place, bool | None]:
        """Of each session, whether what was decided on it holds; None if nobody knows."""
        settled: dict[Place, bool | None] = dict.fromkeys(places, False)
        settled |= dict.fromkeys(fresh, True)
        for known in shelf.touched.values():
            settled[known.place] = written.get(known.session, False)
            known.version += 1
        for place in places:
            if not settled[place]:
                self._known.pop(place, None)
        return settled

    def _answered(
        self,
        tickets: Sequence[Ticket[Any]],
        results: Sequence[Any],
        settled: dict[Place, bool | None],
        alone: list[Ticket[Any]],
    ) -> list[Ticket[Any]]:
        left: list[Ticket[Any]] = []
        for ticket, result in zip(tickets, results, strict=True):
            is_right = settled[ticket.place]
            if is_right is None:
                ticket.settle(outcomes.unknown(self._server.where))
            elif not is_right:
                left.append(ticket)
            elif isinstance(result, Elsewhere):
                alone.append(ticket)
            else:
                ticket.settle(result)
        return left

    async def _read(
        self, link: Link, tenants: str, places: Sequence[Place]
    ) -> dict[Place, HoldfastError]:
        """Read these heads; what is wrong with those that cannot be read."""
        if len(self._known) > KNOWN_MAX:
            self._known.clear()
        wanted = {session_of(*place): place for place in places}
        async with _transaction(link, tenants, is_needed=self._server.address.is_pooled):
            rows = await link.raw.fetch(sql.FIND_HEADS, list(wanted))
        damaged: dict[Place, HoldfastError] = {}
        for row in rows:
            place = wanted[row[0]]
            try:
                known = read_with_line(place[0], row)
            except Corrupt as error:  # told to who asks for it, and to nobody else
                damaged[place] = error
            except (TypeError, ValueError) as error:
                damaged[place] = Corrupt(self._server.where, f"a row is damaged ({error!r:.40})")
            else:
                self._known[place] = known
        return damaged

    async def _write(
        self,
        link: Link,
        tenants: str,
        shelf: BatchShelf,
        tickets: Sequence[Ticket[Any]],
        *,
        is_skipping: bool,
    ) -> "Written":
        """Run the statement; for each session, whether it was written to."""
        writer = UUID(ids.new_id())
        is_fast = all(type(each.request) is Journal for each in tickets)
        statement, values = shelf.statement(writer, is_fast=is_fast, is_skipping=is_skipping)
        try:
            async with _transaction(link, tenants, is_needed=self._server.address.is_pooled):
                rows = await link.raw.fetch(statement, *values)
        except Exception as error:
            if not is_lost(error):
                raise
            self._pool.drop(link)
            self._pool.drop_idle()
            return await outcomes.of_batch(self._pool, self._server, tenants, shelf, writer)
        return {row[0]: True for row in rows}

    def _forget(self, tickets: Sequence[Ticket[Any]]) -> None:
        for ticket in tickets:
            self._known.pop(ticket.place, None)

    # Transactions

    async def one(self, ticket: Ticket[Any]) -> None:
        """Answer this one, in a transaction of its own."""
        try:
            ticket.settle(await self._one(ticket.request))
        except Exception as error:  # noqa: BLE001 - the caller is answered, whatever it is
            ticket.settle(translate(error, self._server.where))
        except BaseException as error:
            ticket.settle(error)
            raise

    async def _one(self, request: Request[Any]) -> Any:
        writer = UUID(ids.new_id())
        place = (request.tenant, request.id) if isinstance(request, OfSession) else None
        for tries in range(1, TRIES_MAX + 1):
            if place is not None:
                self._known.pop(place, None)
            try:
                return await self._try(request, writer)
            except Exception as error:
                is_worth_it = is_lost(error) or is_passing(error)
                if not is_worth_it or tries == TRIES_MAX:
                    raise
                if is_lost(error):
                    self._pool.drop_idle()
                await asyncio.sleep(pause_s(tries))
        raise AssertionError

    async def _try(self, request: Request[Any], writer: Any) -> Any:
        """Run a request in a transaction. What is raised here was not committed."""
        tenants = as_array([tenant_of(request.tenant)])
        async with self._pool.lend() as link:
            shelf = PostgresShelf(link, self._holder, writer)
            await link.begin(tenants)
            try:
                if type(request) is Journal:
                    await link.raw.execute("SET LOCAL synchronous_commit = off")
                result = await shelf.run(request.run)
                await shelf.run(PostgresShelf.finish)
            except HoldfastError:
                await link.raw.execute("ROLLBACK")
                raise
            try:
                await link.raw.execute("COMMIT")
            except Exception as error:
                if not is_lost(error):
                    raise
                self._pool.drop(link)
                self._pool.drop_idle()
                if not await outcomes.of_one(self._pool, self._server, tenants, shelf, writer):
                    raise
        for known in shelf.touched.values():
            known.version += 1
            self._known[known.place] = known
        for known in shelf.deleted.values():
            self._known.pop(known.place, None)
        return result


@asynccontextmanager
async def _transaction(link: Link, tenants: str, *, is_needed: bool) -> AsyncIterator[None]:
    """One statement is a transaction by itself, but for a pooler, which keeps no setting."""
    if not is_needed:
        yield
        return
    await link.begin(tenants, is_hurried=True)
    yield
    await link.raw.execute("COMMIT")


def _decided(request: Request[Any], shelf: BatchShelf) -> Any:
    try:
        return request.run(shelf)
    except HoldfastError as error:
        # A repeat is answered before anything else is looked at, and may be one.
        return error if getattr(request, "once", None) is None else Elsewhere()
    except Elsewhere as error:
        return error


def pause_s(tries: int) -> float:
    """How long to wait before the next try: longer each time, and not in step with others."""
    return float(0.05 * 3 ** (tries - 1) * random.uniform(0.5, 1.0))  # noqa: S311 - not a secret
