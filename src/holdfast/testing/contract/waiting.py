"""Promises about the line of those who wait for a lease: one line, in the order of asking."""

import asyncio
from datetime import timedelta
from typing import Any

from holdfast.errors import Busy, InvalidInput, SessionNotFound, TooLarge
from holdfast.stores.base import Tenant
from holdfast.stores.values import Lease, Record
from holdfast.testing.contract.harness import (
    HOUR,
    Contract,
    Place,
    on_store,
    on_tenant,
    refused,
    said,
    session,
    unchanged,
)

NOW = timedelta(0)
SHORT = timedelta(milliseconds=50)


async def _line_up(t: Tenant, record: Record, *places: str) -> list[bool]:
    """These wait, the first of them for the longest time; whether it is the turn of each."""
    return [
        await t.line_up(record.id, place, place, waited=HOUR / number, patience=HOUR)
        for number, place in enumerate(places, 1)
    ]


async def _begin(t: Tenant, record: Record, place: str) -> Lease:
    return await t.begin(record.id, place, HOUR, {}, place=place)


class Waiting(Contract):
    @on_tenant("begin")
    async def test_who_has_waited_longest_is_first(self, t: Tenant) -> None:
        """In whichever order they came to the store; all others are told who is first."""
        record = await session(t)
        lease = await _begin(t, record, "holder")
        waited = {"b": timedelta(minutes=2), "c": NOW, "a": timedelta(minutes=3)}
        for place, since in waited.items():
            assert not await t.line_up(record.id, place, place, waited=since, patience=HOUR)

        for first, others in (("a", "bc"), ("b", "c"), ("c", "")):
            for place in [first, *list(others), ""]:
                await refused(Busy, t.begin(record.id, "x", HOUR, {}, place=place))
            await t.release(lease)
            for place in [*list(others), ""]:
                error = await refused(Busy, t.begin(record.id, "x", HOUR, {}, place=place))
                assert error.holder == first
            lease = await _begin(t, record, first)
        await t.release(lease)
        await t.begin(record.id, "nobody waits", HOUR, {})

    @on_tenant("begin")
    async def test_asking_again_tells_whose_turn_it_is(self, t: Tenant) -> None:
        record = await session(t)
        lease = await _begin(t, record, "holder")
        before = [await _line_up(t, record, "a", "b") for _ in range(3)]
        await t.append(record.id, said("x"), lease=lease, finish=True)
        behind = await _line_up(t, record, "a", "b")

        assert (before, behind) == ([[False, False]] * 3, [True, False])

    @on_tenant("begin")
    async def test_where_nobody_has_the_lease_the_first_may_have_it(self, t: Tenant) -> None:
        record = await session(t)

        assert await _line_up(t, record, "a", "b") == [True, False]
        await refused(Busy, _begin(t, record, "b"))
        await _begin(t, record, "a")

    @on_tenant("begin")
    async def test_who_steps_out_is_waited_for_no_longer(self, t: Tenant) -> None:
        """A place that is not there, and a session that is not, are no error."""
        record = await session(t)
        await _line_up(t, record, "a", "b")
        for _ in range(2):
            await t.step_out(record.id, "a")
        await t.step_out("gone", "a")

        assert await t.line_up(record.id, "b", "b", waited=NOW, patience=HOUR)
        await t.step_out(record.id, "b")
        await t.begin(record.id, "nobody waits", HOUR, {})

    @on_tenant("begin")
    async def test_who_does_not_take_its_turn_is_passed_over(self, t: Tenant) -> None:
        """And is where it was when it asks again: it has waited no less."""
        record = await session(t)
        await _line_up(t, record, "a", "b", "c")
        await refused(Busy, _begin(t, record, "b"))
        await asyncio.sleep(2.2)

        lease = await _begin(t, record, "b")
        await _line_up(t, record, "a")
        await t.release(lease)
        await refused(Busy, _begin(t, record, "c"))
        await _begin(t, record, "a")

    @on_tenant("begin")
    async def test_who_has_let_its_turn_pass_may_take_another(self, t: Tenant) -> None:
        """The time for it begins anew, when nobody was there to take it in between."""
        record = await session(t)
        await _line_up(t, record, "a", "b")
        await asyncio.sleep(2.2)

        assert await _line_up(t, record, "a") == [True]
        await _begin(t, record, "a")

    @on_tenant("begin")
    async def test_who_has_no_patience_left_is_passed_over(self, t: Tenant) -> None:
        record = await session(t)
        await t.line_up(record.id, "a", "a", waited=HOUR, patience=SHORT)
        await _line_up(t, record, "b")
        await asyncio.sleep(0.1)

        await _begin(t, record, "b")

    @on_tenant("begin")
    async def test_the_line_stays_while_leases_come_and_go(self, t: Tenant) -> None:
        """Whatever is done under a lease, and beside it."""
        record = await session(t)
        lease = await _begin(t, record, "holder")
        await _line_up(t, record, "a")
        lease = await t.renew(lease)
        await t.journal(lease, "so far")
        await t.append(record.id, said("b"))
        await t.update(record.id, {"metadata": {"n": 1}})
        await t.clear(record.id)

        assert (await refused(Busy, _begin(t, record, "b"))).holder == "a"
        await _begin(t, record, "a")

    @on_tenant("begin")
    async def test_waiting_changes_nothing_of_a_session(self, t: Tenant) -> None:
        record = await session(t, "a")

        async with unchanged(t, record.key):
            await _line_up(t, record, "a", "b")
            await t.step_out(record.id, "a")

    @on_store("begin", shared=True)
    async def test_the_line_is_one_for_all_stores(self, place: Place) -> None:
        """One that is closed waits no longer."""
        t, other = place.tenant, await place.another()
        there = other.tenant()
        record = await session(t)
        lease = await _begin(t, record, "holder")
        await _line_up(there, record, "a")
        await t.line_up(record.id, "b", "b", waited=NOW, patience=HOUR)
        await t.release(lease)

        assert (await refused(Busy, _begin(t, record, "b"))).holder == "a"
        await other.close()
        await _begin(t, record, "b")

    @on_store("begin")
    async def test_what_is_no_place_is_refused(self, place: Place) -> None:
        t, record = place.tenant, await session(place.tenant)
        id = record.id
        long = "x" * (place.store.limits.name_bytes + 1)
        wrong: dict[str, list[Any]] = {
            "place": ["", 1, "\ud800"],
            "owner": [None, "\ud800"],
            "waited": [None, 1, -SHORT, timedelta(days=2)],
            "patience": [None, 1, NOW, -SHORT],
        }
        right: dict[str, Any] = {"owner": "a", "place": "a", "waited": NOW, "patience": HOUR}

        async with unchanged(t, record.key):
            for name, values in wrong.items():
                for value in values:
                    given = {**right, name: value}
                    owner, at = given.pop("owner"), given.pop("place")
                    await refused(InvalidInput, t.line_up(id, owner, at, **given))
            await refused(TooLarge, t.line_up(id, "a", long, waited=NOW, patience=HOUR))
            await refused(TooLarge, t.begin(id, "a", HOUR, {}, place=long))
            for value in wrong["place"]:
                await refused(InvalidInput, t.step_out(id, value))
        await refused(SessionNotFound, t.line_up("gone", "a", "a", waited=NOW, patience=HOUR))
