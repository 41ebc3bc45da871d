"""Promises about read and tail: by position, with what stands between the messages."""

import random

from holdfast.entries import Entry
from holdfast.errors import Corrupt, InvalidInput
from holdfast.stores.base import Tenant
from holdfast.stores.values import Record
from holdfast.testing.contract.harness import (
    Contract,
    Place,
    call,
    fold,
    kind_of,
    mark,
    on_store,
    on_tenant,
    positions,
    refused,
    said,
    seqs,
    session,
    texts,
    unknown,
)


def _mixed() -> list[Entry]:
    """Two entries before the first message, some behind each, three behind the last."""
    return [
        mark("begun"),  # 1
        call(),
        *said("a"),  # 3
        call(),
        unknown(),
        *said("b", "c"),  # 6 7
        fold(3, 6),
        *said("d"),  # 9
        mark(),
        call(),
        mark("end"),  # 12
    ]


class Reads(Contract):
    @on_tenant("branch", "erase")
    async def test_a_size_is_that_of_what_is_stored(self, t: Tenant) -> None:
        """Each entry counts once, on whatever branch; what was erased does not count."""
        record = await session(t)
        assert await t.size(record.id) == 0

        await t.append(record.id, said("a" * 50_000, "b" * 100))
        whole = await t.size(record.id)
        assert 50_100 <= whole <= 55_000
        await t.branch(record.id, "other", parent="main", at=2)
        assert await t.size(record.id) == whole
        await t.append(record.id, said("c" * 1_000), branch="other")
        assert whole + 1_000 <= await t.size(record.id) <= whole + 2_000

        await t.erase(record.id, [1])
        assert await t.size(record.id) <= 5_000

    @on_tenant()
    async def test_what_is_not_a_message_stands_with_the_one_before_it(self, t: Tenant) -> None:
        """And what comes before the first message stands with that one."""
        record = await t.create(Record(key="chat:1"), _mixed())

        assert seqs(await t.read(record.id, start=0, stop=1)) == [1, 2, 3, 4, 5]
        assert seqs(await t.read(record.id, start=1, stop=2)) == [6]
        assert seqs(await t.read(record.id, start=2, stop=3)) == [7, 8]
        assert seqs(await t.read(record.id, start=3, stop=4)) == [9, 10, 11, 12]
        assert seqs(await t.read(record.id, start=2)) == [7, 8, 9, 10, 11, 12]
        assert seqs(await t.read(record.id, stop=2)) == [1, 2, 3, 4, 5, 6]
        rows = await t.read(record.id)
        assert [row.position for row in rows] == positions(_mixed())
        assert [row.kind for row in rows] == [kind_of(entry) for entry in _mixed()]

    @on_tenant()
    async def test_a_log_without_messages(self, t: Tenant) -> None:
        """Everything in it is at position 0; when a message comes, that is at position 0 too."""
        record = await t.create(Record(key="chat:1"), [mark(), call()])
        assert [(row.seq, row.position) for row in await t.read(record.id)] == [(1, 0), (2, 0)]
        assert await t.read(record.id, start=1) == ()

        await t.append(record.id, said("a"))

        rows = await t.read(record.id, stop=1)
        assert [(row.seq, row.position) for row in rows] == [(1, 0), (2, 0), (3, 0)]

    @on_tenant()
    async def test_an_empty_log(self, t: Tenant) -> None:
        record = await session(t)

        assert await t.read(record.id) == await t.tail(record.id) == ()

    @on_tenant()
    async def test_beyond_the_end_there_is_nothing(self, t: Tenant) -> None:
        record = await session(t, "a", "b")

        for start, stop in ((2, None), (2, 9), (99, None), (1, 1), (0, 0), (1, 0), (2**63, 2**64)):
            assert await t.read(record.id, start=start, stop=stop) == ()
        assert texts(await t.read(record.id, start=1, stop=2**64)) == ["b"]

    @on_tenant()
    async def test_below_zero_is_refused(self, t: Tenant) -> None:
        """Positions are not Python's: -1 is a mistake, not the last one."""
        record = await session(t, "a", "b")

        await refused(InvalidInput, t.read(record.id, start=-1))
        await refused(InvalidInput, t.read(record.id, stop=-1))
        await refused(InvalidInput, t.tail(record.id, count=-1))

    @on_tenant()
    async def test_kind_leaves_out_entries_of_other_kinds(self, t: Tenant) -> None:
        """Positions stay as they are."""
        record = await t.create(Record(key="chat:1"), _mixed())
        everything = await t.read(record.id)
        for kind in ("message", "fold", "call", "mark", "vote"):
            rows = await t.read(record.id, kind=kind)

            assert rows == tuple(row for row in everything if row.kind == kind)
            assert rows != ()
        assert await t.read(record.id, kind="nothing of this kind") == ()
        assert seqs(await t.read(record.id, start=1, stop=3, kind="message")) == [6, 7]
        assert seqs(await t.read(record.id, start=3, kind="call")) == [11]

    @on_tenant()
    async def test_the_tail_is_the_last_messages_and_what_is_behind_them(self, t: Tenant) -> None:
        record = await t.create(Record(key="chat:1"), _mixed())
        everything = await t.read(record.id)

        assert seqs(await t.tail(record.id, count=1)) == [9, 10, 11, 12]
        assert seqs(await t.tail(record.id, count=2)) == [7, 8, 9, 10, 11, 12]
        assert await t.tail(record.id, count=3) == everything[5:]
        for count in (4, 5, 1_000):  # what stands before the first message may be with it
            assert everything[2:] == (await t.tail(record.id, count=count))[-10:]

    @on_tenant()
    async def test_fifty_messages_unless_told(self, t: Tenant) -> None:
        record = await session(t, *(str(number) for number in range(60)))

        assert texts(await t.tail(record.id)) == [str(number) for number in range(10, 60)]

    @on_tenant("branch")
    async def test_slices_of_a_long_log_are_those_of_a_list(self, t: Tenant) -> None:
        """Any start and stop, on two branches, with other entries strewn in."""
        chance = random.Random(1975)  # noqa: S311 - to be repeated, not to be secret
        entries: list[Entry] = []
        others: list[Entry] = [mark(), call(), unknown()]
        for number in range(1_200):
            entries += said(f"m{number}")
            entries += others[: chance.choice((0, 0, 0, 1, 2, 3))]
        record = await session(t)
        for start in range(0, len(entries), 100):
            await t.append(record.id, entries[start : start + 100])
        await t.branch(record.id, "other", parent="main", at=1_000)
        own = said(*(f"own {number}" for number in range(100)))
        await t.append(record.id, own, branch="other")
        for name, path in (("main", entries), ("other", [*entries[:1_000], *own])):
            places = positions(path)
            count = places[-1] + 1
            for _ in range(25):
                start, stop = chance.randrange(count + 20), chance.randrange(count + 20)
                rows = await t.read(record.id, name, start, stop)
                expected = [
                    (place, entry)
                    for place, entry in zip(places, path, strict=True)
                    if start <= place < stop
                ]

                assert [(row.position, row.entry) for row in rows] == expected, (start, stop)
            for size in (1, 7, 333):
                rows = await t.tail(record.id, name, size)
                assert [row.entry for row in rows] == path[places.index(count - size) :]

    @on_tenant("branch")
    async def test_an_unknown_branch_cannot_be_read(self, t: Tenant) -> None:
        record = await session(t, "a")

        await refused(InvalidInput, t.read(record.id, "nowhere"))
        await refused(InvalidInput, t.tail(record.id, "nowhere"))

    @on_store()
    async def test_reading_is_not_writing(self, place: Place) -> None:
        """Whoever looks at a session does not keep it alive."""
        t = place.tenant
        place.clock.set()
        record = await session(t, "a")
        place.clock.forward()

        await t.read(record.id)
        await t.tail(record.id)
        await t.load(record.key)
        await t.list()

        assert await t.load(record.key) == record

    @on_store()
    async def test_reading_finds_a_damaged_row(self, place: Place) -> None:
        """Corrupt, for every read that passes it; and only for those."""
        t = place.tenant
        record = await session(t, *(f"m{number}" for number in range(10)))
        await place.contract.damage(place.store, record.id, 6)

        await refused(Corrupt, t.read(record.id))
        await refused(Corrupt, t.read(record.id, start=5, stop=6))
        await refused(Corrupt, t.tail(record.id, count=5))
        assert texts(await t.read(record.id, stop=3)) == ["m0", "m1", "m2"]
