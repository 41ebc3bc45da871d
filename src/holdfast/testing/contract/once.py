"""Promises about `once`: the name of an append, which makes it safe to repeat."""

import asyncio
from datetime import timedelta

from holdfast.entries import Entry
from holdfast.errors import Conflict, InvalidInput, OnceMismatch
from holdfast.messages import Message, ToolCall
from holdfast.stores.base import Tenant
from holdfast.stores.values import Appended
from holdfast.testing.contract.harness import (
    HOUR,
    NOON,
    Contract,
    call,
    fold,
    mark,
    on_tenant,
    refused,
    said,
    session,
    texts,
    unchanged,
    unknown,
)


def _batch() -> list[Entry]:
    """The same content each time, with new ids and times."""
    asked = ToolCall(id="c1", name="look", arguments='{"at": 1}')
    return [
        Message.user("a", extra={"n": 1}),
        Message.assistant("b", [asked], model="m"),
        mark("noted", n=1),
        call(),
        unknown(),
    ]


class Once(Contract):
    @on_tenant()
    async def test_a_repeat_returns_the_first_result_and_writes_nothing(self, t: Tenant) -> None:
        """Its entries have new ids and times, as those of a caller who tries again do."""
        record = await session(t)
        first = await t.append(record.id, _batch(), once="turn 1")
        await t.append(record.id, said("between"))

        async with unchanged(t, record.key):
            again = await t.append(record.id, _batch(), once="turn 1")
            other_time = [Message.user("a", extra={"n": 1}, timestamp=NOON), *_batch()[1:]]
            assert await t.append(record.id, other_time, once="turn 1") == first

        assert again == first == Appended(1, 5, "main", 2)

    @on_tenant()
    async def test_other_content_is_a_mismatch(self, t: Tenant) -> None:
        """Whatever differs: a word, a field, the order, an entry more or less."""
        record = await session(t)
        first = await t.append(record.id, _batch(), once="turn 1")
        a, b, noted, called, voted = _batch()
        assert isinstance(a, Message)
        assert isinstance(b, Message)
        others: list[list[Entry]] = [
            [a.replace(content="A"), b, noted, called, voted],
            [a.replace(role="system"), b, noted, called, voted],
            [a.replace(extra={"n": "1"}), b, noted, called, voted],
            [a.replace(extra={"n": True}), b, noted, called, voted],
            [a, b.replace(tool_calls=()), noted, called, voted],
            [a, b.replace(model="other"), noted, called, voted],
            [a, b, mark("noted", n=2), called, voted],
            [a, b, noted, call("other"), voted],
            [a, b, noted, called, unknown("vote", "1")],
            [a, b, noted, called, fold(1, 1)],
            [b, a, noted, called, voted],
            [a, b, noted, called],
            [a, b, noted, called, voted, voted],
            [],
        ]

        async with unchanged(t, record.key):
            for other in others:
                error = await refused(OnceMismatch, t.append(record.id, other, once="turn 1"))
                assert (error.key, error.once) == (record.key, "turn 1")
            assert await t.append(record.id, _batch(), once="turn 1") == first

    @on_tenant()
    async def test_it_is_looked_at_before_everything_else(self, t: Tenant) -> None:
        """A caller who does not know how his append ended repeats it as it was: `after` too."""
        record = await session(t, "first")
        done = await t.append(record.id, said("a"), after=1, once="x")

        async with unchanged(t, record.key):
            assert await t.append(record.id, said("a"), after=1, once="x") == done
            assert await t.append(record.id, said("a"), after=99, once="x") == done
            await refused(OnceMismatch, t.append(record.id, said("b"), after=1, once="x"))

    @on_tenant()
    async def test_a_refused_append_does_not_use_its_name(self, t: Tenant) -> None:
        record = await session(t, "first")
        await refused(Conflict, t.append(record.id, said("a"), after=0, once="x"))

        await t.append(record.id, said("b"), after=1, once="x")

        assert texts(await t.read(record.id)) == ["first", "b"]

    @on_tenant("branch")
    async def test_a_name_holds_across_branches(self, t: Tenant) -> None:
        """The first result is that of the branch on which it was written."""
        record = await session(t, "a")
        await t.branch(record.id, "other", parent="main", at=1)
        done = await t.append(record.id, said("b"), once="x")

        async with unchanged(t, record.key):
            assert await t.append(record.id, said("b"), branch="other", once="x") == done
            await refused(OnceMismatch, t.append(record.id, said("c"), branch="other", once="x"))

        assert texts(await t.read(record.id, "other")) == ["a"]

    @on_tenant()
    async def test_names_belong_to_a_session_and_are_told_apart_exactly(self, t: Tenant) -> None:
        one, two = await session(t, key="one"), await session(t, key="two")
        names = ["x", "X", "x ", "x\0", "caf\u00e9", "cafe\u0301", "%", "_", "'; DROP TABLE x;--"]
        for record in (one, two):
            for name in names:
                await t.append(record.id, said(name), once=name)
                await t.append(record.id, said(name), once=name)

            assert texts(await t.read(record.id)) == names

    @on_tenant()
    async def test_an_empty_name_is_a_name_or_is_refused(self, t: Tenant) -> None:
        """It is not taken for no name at all, which would write twice."""
        record = await session(t)
        try:
            await t.append(record.id, said("a"), once="")
            await t.append(record.id, said("a"), once="")
        except InvalidInput:
            assert texts(await t.read(record.id)) == []
        else:
            assert texts(await t.read(record.id)) == ["a"]

    @on_tenant()
    async def test_an_append_of_nothing_can_be_named(self, t: Tenant) -> None:
        record = await session(t, "a")
        first = await t.append(record.id, [], once="x")
        await t.append(record.id, said("b"))

        assert await t.append(record.id, [], once="x") == first
        await refused(OnceMismatch, t.append(record.id, said("c"), once="x"))

    @on_tenant("clear")
    async def test_after_clear_a_name_is_free_again(self, t: Tenant) -> None:
        record = await session(t)
        first = await t.append(record.id, said("a"), once="x")
        await t.clear(record.id)

        second = await t.append(record.id, said("b"), once="x")

        assert second.first > first.last
        assert texts(await t.read(record.id)) == ["b"]

    @on_tenant("delete")
    async def test_a_session_made_anew_has_no_names(self, t: Tenant) -> None:
        old = await session(t)
        await t.append(old.id, said("a"), once="x")
        await t.delete(old.id)
        new = await session(t)

        await t.append(new.id, said("b"), once="x")

        assert texts(await t.read(new.id)) == ["b"]

    @on_tenant("erase")
    async def test_erasing_does_not_let_a_repeat_write(self, t: Tenant) -> None:
        """What was erased at a user's wish does not come back because a caller tries again."""
        record = await session(t)
        first = await t.append(record.id, said("a"), once="x")
        await t.erase(record.id, [1])

        try:
            assert await t.append(record.id, said("a"), once="x") == first
        except OnceMismatch:
            pass  # the store no longer knows what it was

        assert texts(await t.read(record.id)) == [None]

    @on_tenant()
    async def test_many_repeats_at_once_are_stored_once(self, t: Tenant) -> None:
        record = await session(t)

        done = await asyncio.gather(
            *(t.append(record.id, said("a", "b"), once="x") for _ in range(20))
        )

        assert set(done) == {Appended(1, 2, "main", 2)}
        assert texts(await t.read(record.id)) == ["a", "b"]

    @on_tenant("begin")
    async def test_a_repeat_of_a_finish_is_harmless(self, t: Tenant) -> None:
        """The first try released the lease, so the second has none; it returns the first result,
        and leaves alone who has the lease now."""
        record = await session(t)
        lease = await t.begin(record.id, "one", HOUR, {"say": "a"})
        done = await t.append(record.id, said("a"), lease=lease, once="x", finish=True)

        assert await t.append(record.id, said("a"), lease=lease, once="x", finish=True) == done

        second = await t.begin(record.id, "two", HOUR, {"say": "b"})
        async with unchanged(t, record.key):
            assert await t.append(record.id, said("a"), lease=lease, once="x", finish=True) == done
        await t.journal(second, "still mine")

    @on_tenant("begin")
    async def test_a_repeat_finishes_too(self, t: Tenant) -> None:
        """The first try came without `finish`, or with an earlier lease."""
        record = await session(t)
        await t.append(record.id, said("a"), once="x")
        lease = await t.begin(record.id, "one", HOUR, {"say": "a"})

        await t.append(record.id, said("a"), lease=lease, once="x", finish=True)

        assert (await t.load(record.key)).draft is None
        assert (await t.begin(record.id, "two", HOUR, {})).left is None
        assert texts(await t.read(record.id)) == ["a"]

    @on_tenant("begin")
    async def test_a_repeat_with_a_lost_lease_returns_the_first_result(self, t: Tenant) -> None:
        record = await session(t)
        lease = await t.begin(record.id, "one", timedelta(milliseconds=20), {})
        done = await t.append(record.id, said("a"), lease=lease, once="x")
        await asyncio.sleep(0.05)
        await t.begin(record.id, "two", HOUR, {})

        assert await t.append(record.id, said("a"), lease=lease, once="x") == done
