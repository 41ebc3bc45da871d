"""Promises about update: name by name, all of it or nothing."""

import asyncio
from datetime import timedelta
from typing import Any

from holdfast.errors import Conflict, InvalidInput, SessionExpired
from holdfast.settings import Settings
from holdfast.stores.base import Tenant
from holdfast.stores.values import ALL_TIME, Record
from holdfast.testing.contract.harness import (
    DAY,
    HOUR,
    ODD_JSON,
    Contract,
    Place,
    exact,
    on_store,
    on_tenant,
    refused,
    said,
    session,
    texts,
    unchanged,
)


class Updates(Contract):
    @on_tenant()
    async def test_each_field_can_be_changed(self, t: Tenant) -> None:
        """One at a time; the others stay as they are."""
        record = await session(t, "a", agent="x", metadata={"m": 1}, counters={"c": 1}, ttl=HOUR)
        tools = ({"name": "look", "parameters": {"type": "object"}},)
        for changes, field, expected in (
            ({"agent": "é"}, "agent", "é"),
            ({"settings": {"model": "v:m"}}, "settings", Settings(model="v:m")),
            ({"metadata": {"n": [1, {"o": None}]}}, "metadata", {"m": 1, "n": (1, {"o": None})}),
            ({"counters": {"d": 2}}, "counters", {"c": 1, "d": 2}),
            ({"tools": list(tools)}, "tools", tools),
            ({"tools": ()}, "tools", ()),
            ({"ttl": DAY}, "ttl", DAY),
            ({"ttl": None}, "ttl", None),
            ({"agent": ""}, "agent", ""),
        ):
            before = await t.load(record.key)
            after = await t.update(record.id, changes)

            assert getattr(after, field) == expected
            same = {field: getattr(before, field), "updated_at": before.updated_at}
            assert after.replace(**same) == before
            assert await t.load(record.key) == after

    @on_tenant()
    async def test_several_fields_at_once(self, t: Tenant) -> None:
        record = await session(t)

        done = await t.update(
            record.id, {"agent": "a", "metadata": {"m": 1}, "counters": {"c": 2}, "ttl": HOUR}
        )

        assert (done.agent, done.metadata, done.counters, done.ttl) == (
            "a",
            {"m": 1},
            {"c": 2},
            HOUR,
        )

    @on_tenant()
    async def test_a_name_that_is_not_mentioned_stays_as_it_is(self, t: Tenant) -> None:
        """A value that is an object is one value: it is replaced, not merged."""
        record = await session(
            t,
            metadata={"keep": 1, "change": {"x": 1}},
            counters={"keep": 2, "change": 3},
            settings=Settings(model="v:m", system="be kind", max_tokens=5),
        )

        done = await t.update(
            record.id,
            {
                "metadata": {"change": {"y": 2}, "new": True},
                "counters": {"change": 4},
                "settings": {"system": "be brief", "temperature": 1.0},
            },
        )

        assert exact(done.metadata) == exact({"keep": 1, "change": {"y": 2}, "new": True})
        assert done.counters == {"keep": 2, "change": 4}
        assert done.settings == Settings(
            model="v:m", system="be brief", max_tokens=5, temperature=1.0
        )

    @on_tenant()
    async def test_none_takes_a_name_away(self, t: Tenant) -> None:
        """One that is not there too."""
        record = await session(
            t,
            metadata={"a": 1, "b": 2},
            counters={"a": 1, "b": 2},
            settings=Settings(model="v:m", system="be kind"),
        )

        done = await t.update(
            record.id,
            {
                "metadata": {"a": None, "never": None},
                "counters": {"b": None},
                "settings": {"model": None},
            },
        )

        assert (done.metadata, done.counters) == ({"b": 2}, {"a": 1})
        assert done.settings == Settings(system="be kind")

    @on_tenant()
    async def test_values_are_kept_exactly(self, t: Tenant) -> None:
        record = await session(t)

        done = await t.update(record.id, {"metadata": ODD_JSON})

        assert exact(done.metadata) == exact(ODD_JSON)
        assert exact((await t.load(record.key)).metadata) == exact(ODD_JSON)

    @on_tenant()
    async def test_a_value_that_changes_its_type_has_changed(self, t: Tenant) -> None:
        """1, 1.0, True and "1" are four values, though Python takes three of them for equal."""
        record = await session(t, metadata={"n": 1})
        for value in (True, 1, 1.0, "1", [1], 1):
            done = await t.update(record.id, {"metadata": {"n": value}})

            assert exact(done.metadata["n"]) == exact(value)
            assert exact((await t.load(record.key)).metadata["n"]) == exact(value)

    @on_tenant()
    async def test_expect_lets_pass_what_is_as_expected(self, t: Tenant) -> None:
        record = await session(
            t, agent="x", metadata={"a": {"b": [1]}}, ttl=HOUR, settings=Settings(model="v:m")
        )
        expect: dict[str, Any] = {
            "agent": "x",
            "metadata": {"a": {"b": [1]}, "nothing": None},
            "counters": {"turns": None},
            "settings": {"model": "v:m", "system": None},
            "ttl": HOUR,
            "tools": (),
            "branch": "main",
        }

        done = await t.update(record.id, {"counters": {"turns": 1}}, expect)

        assert done.counters == {"turns": 1}

    @on_tenant()
    async def test_expect_is_a_conflict_when_a_value_is_another(self, t: Tenant) -> None:
        """Any one of them is enough, and nothing is changed."""
        record = await session(
            t, agent="x", metadata={"a": 1, "t": True}, ttl=HOUR, settings=Settings(model="v:m")
        )
        wrong: list[dict[str, Any]] = [
            {"agent": "y"},
            {"agent": "x", "metadata": {"a": 2}},
            {"metadata": {"a": 1, "b": 1}},
            {"metadata": {"a": None}},
            {"metadata": {"a": "1"}},
            {"metadata": {"a": True}},
            {"metadata": {"t": 1}},
            {"counters": {"turns": 0}},
            {"settings": {"model": None}},
            {"settings": {"model": "v:n"}},
            {"ttl": None},
            {"ttl": DAY},
            {"tools": [{"name": "look"}]},
            {"branch": "other"},
        ]

        async with unchanged(t, record.key):
            for expect in wrong:
                error = await refused(
                    Conflict, t.update(record.id, {"metadata": {"a": 9}, "agent": "z"}, expect)
                )
                assert error.key == record.key
                assert error.field.startswith(tuple(expect))

    @on_tenant()
    async def test_such_a_conflict_tells_no_values(self, t: Tenant) -> None:
        """They may be private, and errors are logged."""
        record = await session(t, agent="found this", metadata={"name": "found this"})
        for expect in ({"agent": "seen that"}, {"metadata": {"name": "seen that"}}):
            error = await refused(Conflict, t.update(record.id, {"agent": "z"}, expect))

            assert error.field.startswith(tuple(expect))
            assert (error.key, error.expected, error.found) == (record.key, 0, 0)
            assert "this" not in f"{error} {error.args}"
            assert "that" not in f"{error} {error.args}"

    @on_tenant()
    async def test_an_unknown_field_is_refused(self, t: Tenant) -> None:
        """So is one that only the store may change; the rest of the changes is not made either."""
        record = await session(t, agent="x")

        async with unchanged(t, record.key):
            for name in (
                "nope",
                "Agent",
                "",
                "key",
                "id",
                "seq",
                "parent",
                "created_at",
                "updated_at",
                "branches",
                "folds",
                "draft",
                "agent = 'x', key",
            ):
                await refused(InvalidInput, t.update(record.id, {"agent": "y", name: "x"}))
                await refused(InvalidInput, t.update(record.id, {"agent": "y"}, {name: "x"}))

    @on_tenant("branch")
    async def test_the_branch_in_use_can_be_changed(self, t: Tenant) -> None:
        """To one that is there."""
        record = await session(t, "a")
        await t.branch(record.id, "other", parent="main", at=1)

        assert (await t.update(record.id, {"branch": "main"})).branch == "main"
        assert (await t.update(record.id, {"branch": "other"})).branch == "other"
        async with unchanged(t, record.key):
            await refused(InvalidInput, t.update(record.id, {"branch": "nowhere"}))

    @on_tenant()
    async def test_a_ttl_is_above_zero(self, t: Tenant) -> None:
        record = await session(t, ttl=HOUR)

        async with unchanged(t, record.key):
            for ttl in (timedelta(0), -HOUR, ALL_TIME + DAY, 3600, "1h"):
                await refused(InvalidInput, t.update(record.id, {"ttl": ttl}))

    @on_store()
    async def test_an_expired_session_may_be_updated(self, place: Place) -> None:
        """Which lets its time begin anew, with the old ttl or another."""
        t = place.tenant
        place.clock.set()
        record = await session(t, "a", ttl=HOUR)
        place.clock.forward(DAY)
        await refused(SessionExpired, t.load(record.key))

        moment = place.clock.forward(DAY)
        done = await t.update(record.id, {"metadata": {"back": True}})

        assert (done.updated_at, done.ttl) == (moment, HOUR)
        assert await t.load(record.key) == done
        assert texts(await t.read(record.id)) == ["a"]
        await t.append(record.id, said("b"))

    @on_tenant()
    async def test_writers_of_different_names_do_not_undo_each_other(self, t: Tenant) -> None:
        record = await session(t, metadata={"keep": 0})

        await asyncio.gather(
            *(
                t.update(record.id, {field: {f"n{n}": n}})
                for n in range(25)
                for field in ("metadata", "counters")
            ),
            *(t.append(record.id, said("a")) for _ in range(10)),
            t.update(record.id, {"agent": "x"}),
            t.update(record.id, {"settings": {"model": "v:m"}}),
            t.update(record.id, {"settings": {"system": "be kind"}}),
        )

        done = await t.load(record.key)
        names = {f"n{n}": n for n in range(25)}
        assert (done.metadata, done.counters) == ({"keep": 0} | names, names)
        assert (done.agent, done.seq) == ("x", 10)
        assert done.settings == Settings(model="v:m", system="be kind")

    @on_store(shared=True)
    async def test_writers_in_two_stores_do_not_either(self, place: Place) -> None:
        record = await session(place.tenant)
        tenants = (place.tenant, (await place.another()).tenant())

        await asyncio.gather(
            *(tenants[n % 2].update(record.id, {"metadata": {f"n{n}": n}}) for n in range(30))
        )

        for t in tenants:
            assert (await t.load(record.key)).metadata == {f"n{n}": n for n in range(30)}

    @on_tenant()
    async def test_of_many_who_expect_the_same_value_one_wins(self, t: Tenant) -> None:
        """A counter can be counted up without a lease."""
        record = await session(t, counters={"n": 0})

        for number in range(5):
            done = await asyncio.gather(
                *(
                    t.update(
                        record.id, {"counters": {"n": number + 1}}, {"counters": {"n": number}}
                    )
                    for _ in range(10)
                ),
                return_exceptions=True,
            )
            assert sum(isinstance(each, Record) for each in done) == 1
            assert sum(isinstance(each, Conflict) for each in done) == 9

    @on_tenant()
    async def test_an_update_leaves_the_entries_alone(self, t: Tenant) -> None:
        """And an append prepared before it is no Conflict."""
        record = await session(t, "a", "b")

        await t.update(record.id, {"agent": "x"})

        assert (await t.append(record.id, said("c"), after=2)).first == 3

    @on_tenant()
    async def test_what_the_caller_changes_later_is_not_stored(self, t: Tenant) -> None:
        """A dict belongs to whoever made it; the store keeps what it was when it was given."""
        inner: list[Any] = [1]
        metadata: dict[str, Any] = {"a": inner}
        record = await session(t, metadata=metadata)
        changes = {"metadata": {"b": inner}}
        done = await t.update(record.id, changes)
        inner.append(2)
        metadata["c"] = changes["metadata"]["d"] = 3  # type: ignore[assignment]

        assert done.metadata == {"a": (1,), "b": (1,)}
        assert (await t.load(record.key)).metadata == {"a": (1,), "b": (1,)}

    @on_tenant("begin")
    async def test_a_draft_that_is_changed_later_is_not(self, t: Tenant) -> None:
        record = await session(t)
        draft = {"say": ["a"]}
        lease = await t.begin(record.id, "one", HOUR, draft)
        draft["say"].append("b")
        draft["more"] = ["c"]

        stored = (await t.load(record.key)).draft
        assert stored is not None
        assert stored.input == {"say": ("a",)}
        await t.release(lease)
        left = (await t.begin(record.id, "two", HOUR, {})).left
        assert left is not None
        assert left.input == {"say": ("a",)}

    @on_tenant()
    async def test_a_list_of_entries_that_is_changed_later_is_not(self, t: Tenant) -> None:
        record = await session(t)
        entries = said("a", "b")
        appending = asyncio.create_task(t.append(record.id, entries))
        await asyncio.sleep(0)  # it has begun
        entries.clear()

        await appending

        assert texts(await t.read(record.id)) == ["a", "b"]
