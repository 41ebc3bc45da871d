"""Promises about list: what was written to last comes first, page by page, filtered exactly."""

from datetime import timedelta, timezone
from typing import Any

from holdfast.errors import InvalidInput, TooLarge
from holdfast.stores.base import Tenant
from holdfast.stores.values import Page, Record, Summary
from holdfast.testing.contract.harness import (
    DAY,
    HOUR,
    NOON,
    ODD_JSON,
    Contract,
    Place,
    exact,
    on_store,
    on_tenant,
    only,
    refused,
    said,
    session,
)


async def _keys(t: Tenant, **filters: Any) -> list[str]:
    """The keys on all pages."""
    keys: list[str] = []
    page = await t.list(**filters)
    while True:
        keys += [item.key for item in page.items]
        if page.next is None:
            return keys
        assert page.items, "a page that is empty is the last one"
        page = await t.list(**filters, page=page.next)


class Lists(Contract):
    @on_tenant()
    async def test_nothing_to_list(self, t: Tenant) -> None:
        assert await t.list() == Page(())

    @on_store()
    async def test_a_summary_tells_what_the_record_says(self, place: Place) -> None:
        t = place.tenant
        place.clock.set()
        record = await session(t, "a", "b", agent="x", metadata=ODD_JSON)
        place.clock.forward()
        await t.append(record.id, said("c"))
        record = await t.load(record.key)

        found = only((await t.list()).items)

        assert found == Summary(
            record.id,
            record.key,
            "x",
            record.created_at,
            record.updated_at,
            record.metadata,
            "",
        )
        assert exact(found.metadata) == exact(ODD_JSON)

    @on_store()
    async def test_those_written_to_last_come_first(self, place: Place) -> None:
        """An append and an update are writes; a look is not."""
        t = place.tenant
        place.clock.set()
        ids = {}
        for key in "abcd":
            place.clock.forward()
            ids[key] = (await session(t, key=key)).id
        assert await _keys(t) == ["d", "c", "b", "a"]

        place.clock.forward()
        await t.append(ids["a"], said("x"))
        place.clock.forward()
        await t.update(ids["c"], {"agent": "x"})
        place.clock.forward()
        await t.load("d")
        await t.read(ids["b"])

        assert await _keys(t) == ["c", "a", "d", "b"]

    @on_store()
    async def test_expired_ones_are_listed_too(self, place: Place) -> None:
        place.clock.set()
        await session(place.tenant, key="old", ttl=HOUR)
        place.clock.forward(DAY)

        assert await _keys(place.tenant) == ["old"]

    @on_store()
    async def test_pages_hold_everything_once(self, place: Place) -> None:
        t = place.tenant
        place.clock.set()
        for number in range(23):
            place.clock.forward()
            await session(t, key=f"k{number}")
        newest_first = [f"k{number}" for number in reversed(range(23))]

        for limit in (1, 2, 7, 22, 23, 24, place.store.limits.page):
            assert await _keys(t, limit=limit) == newest_first
        assert len((await t.list(limit=7)).items) == 7
        assert (await t.list(limit=23)).next is None

    @on_store()
    async def test_sessions_of_the_same_moment_are_paged_too(self, place: Place) -> None:
        """A clock that stands still hides none of them and shows none twice."""
        t = place.tenant
        place.clock.set()
        keys = {f"k{number}" for number in range(30)}
        for key in keys:
            await session(t, key=key)

        found = await _keys(t, limit=4)

        assert len(found) == 30
        assert set(found) == keys

    @on_store("delete")
    async def test_paging_while_others_write(self, place: Place) -> None:
        """Sessions are written to, made and deleted between the pages: none is given twice, and
        none that was left alone is missing."""
        t = place.tenant
        place.clock.set()
        ids = {}
        for number in range(250):
            place.clock.forward()
            ids[f"k{number}"] = (await session(t, key=f"k{number}")).id
        touched = {f"k{number}" for number in range(0, 250, 3)}
        waiting = sorted(touched)

        keys: list[str] = []
        page = await t.list(limit=20)
        while page.next is not None:
            keys += [item.key for item in page.items]
            for turn, key in enumerate([waiting.pop() for _ in range(min(6, len(waiting)))]):
                place.clock.forward()
                if turn % 3 == 0:
                    await t.delete(ids[key])
                else:
                    await t.append(ids[key], said("x"))
            await session(t, key=f"new {len(keys)}")
            page = await t.list(limit=20, page=page.next)
        keys += [item.key for item in page.items]

        assert len(keys) == len(set(keys))
        assert ids.keys() - touched <= set(keys)

    @on_tenant()
    async def test_by_agent(self, t: Tenant) -> None:
        """Equal, not alike: no pattern, no other case, and no agent is an agent too."""
        for number, agent in enumerate(["x", "X", "x ", "", "%", "xy"]):
            await session(t, key=f"{number} {agent}", agent=agent)

        for number, agent in enumerate(["x", "X", "x ", "", "%", "xy"]):
            assert await _keys(t, agent=agent) == [f"{number} {agent}"]
        assert await _keys(t, agent="y") == await _keys(t, agent="_") == []
        assert len(await _keys(t)) == 6

    @on_tenant()
    async def test_by_metadata(self, t: Tenant) -> None:
        """Every name must be equal, and 1, True and "1" are three values."""
        values: list[Any] = [
            1,
            "1",
            True,
            0,
            False,
            "",
            "true",
            [1],
            ["1"],
            [True],
            [],
            {"a": 1},
            {"a": "1"},
            {"a": True},
            {"a": 1, "b": 2},
            {},
            [[1, {"a": None}]],
            2**53,
            2**53 + 1,
            0.5,
            "é",
            "e\u0301",
            "a\0b",
            "a",
            "%",
            "'; DROP TABLE sessions;--",
        ]
        for number, value in enumerate(values):
            await session(t, key=f"{number}", metadata={"v": value, "n": number})
        await session(t, key="none")

        for number, value in enumerate(values):
            assert await _keys(t, metadata={"v": value}) == [f"{number}"], value
        assert await _keys(t, metadata={"v": {"b": 2, "a": 1}}) == ["14"]
        assert await _keys(t, metadata={"v": 1, "n": 0}) == ["0"]
        assert await _keys(t, metadata={"v": 1, "n": 1}) == []
        assert await _keys(t, metadata={"v": 2}) == []
        assert await _keys(t, metadata={"other": 1}) == []
        assert len(await _keys(t, metadata={})) == len(values) + 1

    @on_tenant()
    async def test_nothing_in_a_name_of_metadata_is_special(self, t: Tenant) -> None:
        """No path, no operator, no SQL: a name is a name."""
        names = [
            "a.b",
            "a",
            "a') OR 1=1 --",
            "x' UNION SELECT key FROM sessions --",
            '"quoted"',
            "back\\slash",
            "$",
            "$.a",
            "[0]",
            "a[0]",
            "$ne",
            "",
            "é",
            "a\0b",
            "{}",
            "%s",
        ]
        for name in names:
            await session(t, key=f"has {name}", metadata={name: {"b": 1}})
        await session(t, key="other", metadata={"other": [{"b": 1}]})

        for name in names:
            assert await _keys(t, metadata={name: {"b": 1}}) == [f"has {name}"], name
            assert await _keys(t, metadata={name: 1}) == []
        assert await _keys(t, metadata={"$ne": None}) == []
        assert await _keys(t, metadata={"a.b": 1}) == []

    @on_tenant()
    async def test_metadata_as_it_is_now(self, t: Tenant) -> None:
        record = await session(t, metadata={"v": 1, "w": 1})
        await t.update(record.id, {"metadata": {"v": 2, "w": None}})

        assert await _keys(t, metadata={"v": 2}) == [record.key]
        assert await _keys(t, metadata={"v": 1}) == await _keys(t, metadata={"w": 1}) == []

    @on_tenant()
    async def test_by_the_time_of_the_last_write(self, t: Tenant) -> None:
        """From `since` on, and before `until`; to the microsecond, in any zone."""
        tick = timedelta(microseconds=1)
        for key, moment in (("a", NOON - tick), ("b", NOON), ("c", NOON + tick), ("d", NOON + DAY)):
            given = Record(key=key, created_at=NOON - DAY, updated_at=moment)
            await t.create(given, keep_times=True)

        assert await _keys(t) == ["d", "c", "b", "a"]
        assert await _keys(t, since=NOON) == ["d", "c", "b"]
        assert await _keys(t, until=NOON) == ["a"]
        assert await _keys(t, since=NOON, until=NOON + tick) == ["b"]
        assert await _keys(t, since=NOON, until=NOON) == []
        assert await _keys(t, since=NOON + DAY, until=NOON) == []
        east = timezone(timedelta(hours=9))
        assert await _keys(t, since=(NOON + tick).astimezone(east)) == ["d", "c"]
        assert await _keys(t, since=NOON.replace(year=1), until=NOON.replace(year=9999)) == [
            *"dcba"
        ]

    @on_store()
    async def test_filters_together_and_in_pages(self, place: Place) -> None:
        t = place.tenant
        place.clock.set()
        for number in range(40):
            place.clock.forward()
            await session(
                t, key=f"{number}", agent="xy"[number % 2], metadata={"third": number % 3}
            )

        found = await _keys(
            t, agent="y", metadata={"third": 0}, since=NOON + timedelta(seconds=11), limit=2
        )

        assert found == ["39", "33", "27", "21", "15"]

    @on_tenant()
    async def test_a_page_that_is_none_is_refused(self, t: Tenant) -> None:
        for number in range(3):
            await session(t, key=f"{number}")
        token = (await t.list(limit=1)).next
        assert token is not None

        for page in ("", "nonsense", "0", "' OR 1=1 --", "é", "\0", "eyJhIjoxfQ==", token[:-3]):
            await refused(InvalidInput, t.list(page=page))

    @on_store()
    async def test_a_page_of_another_tenant_shows_nothing_of_it(self, place: Place) -> None:
        place.clock.set()
        mine, theirs = place.store.tenant("mine"), place.store.tenant("theirs")
        for number in range(4):
            place.clock.forward()
            await session(theirs, key=f"theirs {number}")
            await session(mine, key=f"mine {number}")
        token = (await theirs.list(limit=2)).next

        try:
            found = await mine.list(page=token)
        except InvalidInput:
            return
        assert all(item.key.startswith("mine") for item in found.items)

    @on_store()
    async def test_a_limit_is_from_one_to_what_the_store_takes(self, place: Place) -> None:
        t = place.tenant
        await session(t)
        most = place.store.limits.page

        assert len((await t.list(limit=most)).items) == 1
        await refused(TooLarge, t.list(limit=most + 1))
        await refused((TooLarge, InvalidInput), t.list(limit=2**63))
        wrong: list[Any] = [-1, "1; DROP TABLE x", "1", 1.0, None, True]
        for limit in wrong:
            await refused(InvalidInput, t.list(limit=limit))
        try:
            nothing = await t.list(limit=0)
        except InvalidInput:
            return
        assert nothing.items == ()
