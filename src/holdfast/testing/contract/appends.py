"""Promises about append: all or none, in order, behind what the caller saw."""

from holdfast import codec, ids
from holdfast.entries import Entry
from holdfast.errors import Conflict, InvalidInput, SessionExpired, SessionNotFound
from holdfast.messages import Message
from holdfast.stores.base import Tenant
from holdfast.stores.values import Appended
from holdfast.testing.contract.harness import (
    HOUR,
    NOON,
    Contract,
    Place,
    call,
    fold,
    head,
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
    unchanged,
    unknown,
)


class Appends(Contract):
    @on_tenant()
    async def test_entries_come_back_in_the_order_of_their_seq(self, t: Tenant) -> None:
        """Seqs count from 1 without a gap, over several appends."""
        record = await session(t)
        for batch in (["a", "b"], ["c"], ["d", "e", "f"]):
            await t.append(record.id, said(*batch))

        rows = await t.read(record.id)

        assert texts(rows) == list("abcdef")
        assert seqs(rows) == [1, 2, 3, 4, 5, 6]
        assert [row.position for row in rows] == [0, 1, 2, 3, 4, 5]
        assert {row.branch for row in rows} == {"main"}
        assert (await t.load(record.key)).seq == 6

    @on_tenant()
    async def test_what_an_append_did_is_returned(self, t: Tenant) -> None:
        """The seq of its first and last entry, where, and how many messages there are now."""
        record = await session(t)

        first = await t.append(record.id, [*said("a", "b"), mark()])
        second = await t.append(record.id, said("c"))

        assert first == Appended(1, 3, "main", 2)
        assert second == Appended(4, 4, "main", 3)

    @on_tenant()
    async def test_every_kind_of_entry_comes_back_equal(self, t: Tenant) -> None:
        """Down to the bytes of its record, and with the same id and time."""
        record = await session(t)
        entries: list[Entry] = [mark(), *said("a"), call(), fold(2, 2), unknown(), *said("b")]

        await t.append(record.id, entries)

        rows = await t.read(record.id)
        assert [row.entry for row in rows] == entries
        assert [codec.record(row.entry) for row in rows if row.entry] == [
            codec.record(entry) for entry in entries
        ]
        assert [row.kind for row in rows] == [kind_of(entry) for entry in entries]
        assert [row.position for row in rows] == positions(entries) == [0, 0, 0, 0, 0, 1]

    @on_tenant()
    async def test_an_entry_of_an_unknown_kind_is_kept_byte_for_byte(self, t: Tenant) -> None:
        """A newer version wrote it; its spaces, its order and its numbers are its own."""
        record = await session(t)
        strange = [
            unknown("vote", ' {"b":1,  "a" : 1.50, "n":1e2}'),
            unknown("vote", '"\\u00e9\\u2028"'),
            unknown("../a kind'--", "null"),
        ]

        await t.append(record.id, strange)

        rows = await t.read(record.id)
        assert [row.entry for row in rows] == strange
        assert [row.kind for row in rows] == [entry.kind for entry in strange]

    @on_tenant()
    async def test_after_the_head_that_was_seen(self, t: Tenant) -> None:
        """The branch is where the caller thinks it is: the entries are added."""
        record = await session(t)
        assert record.branch_named("main").head == 0

        done = await t.append(record.id, said("a", "b"), after=0)
        await t.append(record.id, said("c"), after=done.last)

        assert texts(await t.read(record.id)) == ["a", "b", "c"]
        assert await head(t, record.key) == 3

    @on_tenant()
    async def test_after_a_head_that_moved_on_is_a_conflict(self, t: Tenant) -> None:
        """It says where the branch is now; nothing is written, and no seq is used up."""
        record = await session(t, "a", "b")

        async with unchanged(t, record.key):
            for seen in (0, 1):
                error = await refused(Conflict, t.append(record.id, said("late"), after=seen))
                assert (error.key, error.expected, error.found) == (record.key, seen, 2)
                assert error.field == ""

        assert (await t.append(record.id, said("c"), after=2)).first == 3

    @on_tenant()
    async def test_after_a_head_from_the_future_is_a_conflict(self, t: Tenant) -> None:
        """A caller who saw more than there is saw another log."""
        record = await session(t, "a")

        async with unchanged(t, record.key):
            error = await refused(Conflict, t.append(record.id, said("x"), after=2))
            await refused((Conflict, InvalidInput), t.append(record.id, said("x"), after=2**63))

        assert (error.key, error.expected, error.found) == (record.key, 2, 1)

    @on_tenant()
    async def test_after_none_means_behind_whatever_is_there(self, t: Tenant) -> None:
        record = await session(t, "a")
        await t.append(record.id, said("b"))

        done = await t.append(record.id, said("c"), after=None)

        assert (done.first, done.last) == (3, 3)

    @on_tenant()
    async def test_an_append_of_nothing(self, t: Tenant) -> None:
        """It says where the branch is: `first` is behind `last`. It can be a Conflict too."""
        record = await session(t)

        assert await t.append(record.id, []) == Appended(1, 0, "main", 0)
        await t.append(record.id, said("a", "b"))
        async with unchanged(t, record.key, but_time=True):
            assert await t.append(record.id, ()) == Appended(3, 2, "main", 2)
            assert await t.append(record.id, [], after=2) == Appended(3, 2, "main", 2)
            await refused(Conflict, t.append(record.id, [], after=1))

    @on_tenant()
    async def test_all_or_none(self, t: Tenant) -> None:
        """One thing in the batch that is not an entry, at any place, and nothing is written."""
        record = await session(t, "a")
        for place in range(4):
            batch: list[object] = list(said("x", "y", "z"))
            batch.insert(place, "not an entry")

            async with unchanged(t, record.key):
                await refused(InvalidInput, t.append(record.id, batch))  # type: ignore[arg-type]

        assert (await t.append(record.id, said("b"))).first == 2

    @on_tenant()
    async def test_a_long_batch_is_whole(self, t: Tenant) -> None:
        """Nothing is dropped, doubled or moved where a store cuts a batch for itself."""
        record = await session(t)
        batch = said(*(f"message {number}" for number in range(2_500)))

        done = await t.append(record.id, batch)

        assert done == Appended(1, 2_500, "main", 2_500)
        assert [row.entry for row in await t.read(record.id)] == batch

    @on_tenant()
    async def test_the_same_entry_twice_is_two_entries(self, t: Tenant) -> None:
        """Entries are told apart by their seq; a caller may repeat himself."""
        record = await session(t)
        (entry,) = said("again")

        await t.append(record.id, [entry, entry])
        await t.append(record.id, [entry])

        assert [row.entry for row in await t.read(record.id)] == [entry] * 3

    @on_tenant()
    async def test_times_do_not_order_entries(self, t: Tenant) -> None:
        """Equal times, times that go back, the years 1 and 9999: the order is that of seq."""
        record = await session(t)
        days = (5, 3, 3, 9, 1)
        said_then = [
            Message.user(str(number), timestamp=NOON.replace(day=day))
            for number, day in enumerate(days)
        ]
        said_then += [
            Message.user("5", timestamp=NOON.replace(year=9999)),
            Message.user("6", timestamp=NOON.replace(year=1, day=1)),
        ]
        for entry in said_then[:3]:
            await t.append(record.id, [entry])
        await t.append(record.id, said_then[3:])

        rows = await t.read(record.id)

        assert [row.entry for row in rows] == said_then
        assert texts(await t.tail(record.id, count=3)) == ["4", "5", "6"]

    @on_store()
    async def test_a_clock_that_goes_back_does_not_order_entries(self, place: Place) -> None:
        """Neither what is in them nor when they are stored has a say in it."""
        t = place.tenant
        place.clock.set()
        record = await session(t, "a")
        for text in ("b", "c", "d"):
            place.clock.forward(-HOUR)
            await t.append(record.id, said(text))

        assert texts(await t.read(record.id)) == ["a", "b", "c", "d"]
        assert texts(await t.tail(record.id, count=2)) == ["c", "d"]

    @on_tenant("delete")
    async def test_an_id_that_is_not_there(self, t: Tenant) -> None:
        """Unknown ids and those of deleted sessions are SessionNotFound."""
        record = await session(t, "a")
        await t.delete(record.id)

        for id in (ids.new_id(), record.id):
            error = await refused(SessionNotFound, t.append(id, said("x")))
            assert error.key == id

    @on_tenant("delete")
    async def test_a_stale_writer_never_writes_into_a_session_made_anew(self, t: Tenant) -> None:
        """The key is the same, and the id is another."""
        old = await session(t, "a", "b")
        await t.delete(old.id)
        new = await session(t, "c")

        async with unchanged(t, new.key):
            for after in (None, 1, 2):
                await refused(SessionNotFound, t.append(old.id, said("stale"), after=after))

        assert new.id != old.id
        assert texts(await t.read(new.id)) == ["c"]

    @on_store()
    async def test_an_expired_session_takes_no_entries(self, place: Place) -> None:
        """SessionExpired, and what is there stays as it is."""
        t = place.tenant
        place.clock.set()
        record = await session(t, "a", ttl=HOUR)
        place.clock.forward(HOUR)
        await t.append(record.id, said("b"))  # not more than an hour has passed
        place.clock.forward(HOUR * 2)

        error = await refused(SessionExpired, t.append(record.id, said("c")))

        assert error.key == record.key
        await t.update(record.id, {"ttl": None})
        assert texts(await t.read(record.id)) == ["a", "b"]

    @on_tenant()
    async def test_sessions_do_not_share_their_seqs(self, t: Tenant) -> None:
        one, two = await session(t, "a", key="one"), await session(t, "b", key="two")
        await t.append(one.id, said("c"))
        await t.append(two.id, said("d"))

        assert texts(await t.read(one.id)) == ["a", "c"]
        assert texts(await t.read(two.id)) == ["b", "d"]
        assert seqs(await t.read(one.id)) == seqs(await t.read(two.id)) == [1, 2]

    @on_tenant()
    async def test_an_unknown_branch_is_refused(self, t: Tenant) -> None:
        record = await session(t, "a")

        async with unchanged(t, record.key):
            await refused(InvalidInput, t.append(record.id, said("x"), branch="nowhere"))

    @on_tenant()
    async def test_the_record_follows_its_entries(self, t: Tenant) -> None:
        """seq, head and count are those of the last append, for every reader."""
        record = await session(t)
        for number in range(1, 6):
            done = await t.append(record.id, [*said("a"), mark()])
            loaded = await t.load(record.key)
            main = loaded.branch_named("main")

            assert (loaded.seq, main.head, main.count) == (done.last, done.last, number)
            assert done.messages == number
