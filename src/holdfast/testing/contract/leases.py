"""Promises about leases: one turn at a time, its draft, and what is left when it is cut off."""

import asyncio
from datetime import timedelta

from holdfast.errors import Busy, Conflict, InvalidInput, LeaseLost, SessionNotFound, TooLarge
from holdfast.stores.base import Tenant
from holdfast.stores.values import Lease, Record
from holdfast.testing.contract.harness import (
    DAY,
    HOUR,
    Contract,
    Place,
    on_store,
    on_tenant,
    only,
    refused,
    said,
    session,
    texts,
    unchanged,
)

SHORT = timedelta(milliseconds=50)


async def _passed() -> None:
    """Wait until a lease of SHORT is over."""
    await asyncio.sleep(0.1)


async def _lost(t: Tenant, record: Record) -> tuple[Lease, Lease]:
    """A lease that another owner has taken over, and the one in force."""
    old = await t.begin(record.id, "one", SHORT, {"say": "old"})
    await _passed()
    return old, await t.begin(record.id, "two", HOUR, {"say": "new"})


class Leases(Contract):
    @on_tenant("begin")
    async def test_begin_gives_a_lease_and_stores_the_draft(self, t: Tenant) -> None:
        record = await session(t)
        draft = {"say": "hello", "n": [1, 2.5, None, True], "deep": {"er": "é"}}

        lease = await t.begin(record.id, "worker 7", HOUR, draft)

        assert (lease.session_id, lease.owner, lease.ttl) == (record.id, "worker 7", HOUR)
        assert lease.left is None
        stored = (await t.load(record.key)).draft
        assert stored is not None
        assert (stored.token, stored.owner) == (lease.token, "worker 7")
        assert stored.input == {"say": "hello", "n": (1, 2.5, None, True), "deep": {"er": "é"}}
        assert stored.chunks == ()
        assert stored.is_running

    @on_tenant("begin")
    async def test_a_second_begin_is_busy_and_names_the_owner(self, t: Tenant) -> None:
        """The owner himself gets no second one: the name is for people."""
        record = await session(t)
        await t.begin(record.id, "worker 7", HOUR, {"say": "mine"})

        async with unchanged(t, record.key):
            for owner in ("worker 8", "worker 7"):
                error = await refused(Busy, t.begin(record.id, owner, HOUR, {"say": "other"}))
                assert (error.key, error.holder) == (record.key, "worker 7")

    @on_tenant("begin")
    async def test_one_of_many_who_begin_at_once_gets_the_lease(self, t: Tenant) -> None:
        record = await session(t)

        done = await asyncio.gather(
            *(t.begin(record.id, f"w{n}", HOUR, {"n": n}) for n in range(30)),
            return_exceptions=True,
        )

        lease = only([each for each in done if isinstance(each, Lease)])
        assert {each.holder for each in done if isinstance(each, Busy)} == {lease.owner}
        draft = (await t.load(record.key)).draft
        assert draft is not None
        assert draft.owner == lease.owner

    @on_tenant("begin")
    async def test_sessions_do_not_wait_for_each_other(self, t: Tenant) -> None:
        one, two = await session(t, key="one"), await session(t, key="two")
        await t.begin(one.id, "a", HOUR, {})

        await t.begin(two.id, "b", HOUR, {})

    @on_tenant("begin")
    async def test_a_lease_is_free_when_it_was_released(self, t: Tenant) -> None:
        record = await session(t)
        first = await t.begin(record.id, "one", HOUR, {})
        await t.release(first)

        second = await t.begin(record.id, "two", HOUR, {})

        assert second.token > first.token

    @on_tenant("begin")
    async def test_a_lease_is_free_when_its_time_is_over(self, t: Tenant) -> None:
        record = await session(t)
        first = await t.begin(record.id, "one", SHORT * 10, {})
        await refused(Busy, t.begin(record.id, "two", HOUR, {}))
        await asyncio.sleep(0.6)

        second = await t.begin(record.id, "two", HOUR, {})

        assert second.token > first.token

    @on_store("begin")
    async def test_the_time_of_a_lease_is_not_that_of_the_clock_on_the_wall(
        self, place: Place
    ) -> None:
        """A clock that jumps, ahead or back, neither frees a lease nor keeps one."""
        t = place.tenant
        place.clock.set()
        record = await session(t)
        await t.begin(record.id, "one", HOUR, {})
        for jump in (DAY * 3650, -DAY * 7300):
            place.clock.forward(jump)
            await refused(Busy, t.begin(record.id, "two", HOUR, {}))

        other = await session(t, key="other")
        await t.begin(other.id, "one", SHORT, {})
        place.clock.forward(-DAY)
        await _passed()
        await t.begin(other.id, "two", HOUR, {})

    @on_tenant("begin")
    async def test_tokens_grow_with_every_lease(self, t: Tenant) -> None:
        """However a lease ended; so whoever has the greater one is the later."""
        record = await session(t)
        tokens = []
        for number in range(8):
            lease = await t.begin(record.id, "w", SHORT if number % 4 == 3 else HOUR, {})
            tokens.append(lease.token)
            if number % 4 == 0:
                await t.release(lease)
            elif number % 4 == 1:
                await t.release(lease, drop=True)
            elif number % 4 == 2:
                await t.append(record.id, said("a"), lease=lease, finish=True)
            else:
                await _passed()

        assert tokens == sorted(set(tokens))

    @on_tenant("begin", "clear")
    async def test_tokens_grow_across_clear(self, t: Tenant) -> None:
        record = await session(t)
        first = await t.begin(record.id, "one", HOUR, {})
        await t.clear(record.id)

        assert (await t.begin(record.id, "two", HOUR, {})).token > first.token

    @on_tenant("begin")
    async def test_what_is_written_under_a_lost_lease_is_refused(self, t: Tenant) -> None:
        """A turn that was thought dead comes back, late: it cannot do anything any more."""
        record = await session(t, "a")
        old, new = await _lost(t, record)

        async with unchanged(t, record.key):
            for after in (None, 1):
                error = await refused(
                    LeaseLost, t.append(record.id, said("late"), lease=old, after=after)
                )
                assert error.key == record.key
            await refused(LeaseLost, t.append(record.id, said("x"), lease=old, finish=True))
            await refused(LeaseLost, t.append(record.id, said("x"), lease=old, once="x"))
            await refused(LeaseLost, t.append(record.id, [], lease=old))
            await refused(LeaseLost, t.journal(old, "late"))
            await refused(LeaseLost, t.renew(old))
            await refused(LeaseLost, t.renew(old, HOUR))
            await t.release(old)
            await t.release(old, drop=True)

        await t.append(record.id, said("b"), lease=new)
        assert texts(await t.read(record.id)) == ["a", "b"]

    @on_tenant("begin")
    async def test_what_is_written_under_a_released_lease_is_refused(self, t: Tenant) -> None:
        record = await session(t, "a")
        lease = await t.begin(record.id, "one", HOUR, {"say": "x"})
        await t.release(lease)

        async with unchanged(t, record.key):
            await refused(LeaseLost, t.append(record.id, said("late"), lease=lease))
            await refused(LeaseLost, t.journal(lease, "late"))
            await refused(LeaseLost, t.renew(lease))
            await t.release(lease)

    @on_tenant("begin")
    async def test_a_lease_whose_time_is_over_works_until_another_takes_it(self, t: Tenant) -> None:
        """A slow turn that nobody waited for may finish."""
        record = await session(t)
        lease = await t.begin(record.id, "one", SHORT, {"say": "a"})
        await _passed()

        await t.journal(lease, "so far")
        await t.append(record.id, said("a"), lease=lease)
        renewed = await t.renew(lease, HOUR)

        assert renewed.token == lease.token
        await refused(Busy, t.begin(record.id, "two", HOUR, {}))
        draft = (await t.load(record.key)).draft
        assert draft is not None
        assert draft.chunks == ("so far",)

    @on_tenant("begin")
    async def test_renew_lets_the_time_begin_anew(self, t: Tenant) -> None:
        """With the same time to live, or with another."""
        record = await session(t)
        lease = await t.begin(record.id, "one", timedelta(milliseconds=400), {})
        for _ in range(4):
            await asyncio.sleep(0.15)
            lease = await t.renew(lease)
            assert lease.ttl == timedelta(milliseconds=400)
        await refused(Busy, t.begin(record.id, "two", HOUR, {}))

        lease = await t.renew(lease, SHORT)

        assert (lease.ttl, lease.owner, lease.session_id) == (SHORT, "one", record.id)
        await _passed()
        await t.begin(record.id, "two", HOUR, {})

    @on_tenant("begin")
    async def test_an_append_under_a_lease_and_one_without(self, t: Tenant) -> None:
        """A lease is asked for by those who have one; `after` still holds."""
        record = await session(t)
        lease = await t.begin(record.id, "one", HOUR, {})
        await t.append(record.id, said("a"), lease=lease)
        await t.append(record.id, said("b"))

        await refused(Conflict, t.append(record.id, said("c"), lease=lease, after=1))
        await t.append(record.id, said("c"), lease=lease, after=2)

        assert texts(await t.read(record.id)) == ["a", "b", "c"]
        await t.journal(lease, "still mine")

    @on_tenant("begin")
    async def test_a_lease_of_another_session_is_not_one_of_this(self, t: Tenant) -> None:
        one, two = await session(t, key="one"), await session(t, key="two")
        lease = await t.begin(one.id, "w", HOUR, {})
        await t.begin(two.id, "w", HOUR, {})

        async with unchanged(t, "one"), unchanged(t, "two"):
            await refused(
                (LeaseLost, InvalidInput), t.append(two.id, said("x"), lease=lease, finish=True)
            )

    @on_tenant("begin")
    async def test_chunks_are_kept_in_order(self, t: Tenant) -> None:
        record = await session(t)
        lease = await t.begin(record.id, "one", HOUR, {"say": "a"})
        pieces = [f"{number} \u2028\0é🐘" for number in range(50)]
        for piece in pieces:
            await t.journal(lease, piece)

        draft = (await t.load(record.key)).draft

        assert draft is not None
        assert draft.chunks == tuple(pieces)
        assert draft.input == {"say": "a"}
        assert draft.is_running
        assert await t.read(record.id) == ()

    @on_store("begin")
    async def test_chunks_of_many_turns_are_kept_each_for_itself(self, place: Place) -> None:
        """Those that cannot be kept have their errors, and do not concern the others."""
        t = place.tenant
        records = [await session(t, key=f"k{number}") for number in range(4)]
        leases = [await t.begin(record.id, "one", HOUR, {}) for record in records]
        await t.release(leases[1])
        await t.delete(records[2].id)
        large = "x" * (place.store.limits.chunk_bytes + 1)

        errors = await t.journal_all(
            [*((lease, "Hel") for lease in leases), (leases[3], large), (leases[3], "lo")]
        )

        first, lost, gone, *last = errors
        assert [first, *last[::2]] == [None, None, None]
        assert isinstance(lost, LeaseLost)
        assert isinstance(gone, LeaseLost | SessionNotFound)
        assert isinstance(last[1], TooLarge)
        for number, chunks in ((0, ("Hel",)), (1, ()), (3, ("Hel", "lo"))):
            draft = (await t.load(f"k{number}")).draft
            assert draft is not None
            assert draft.chunks == chunks

    @on_tenant("begin")
    async def test_no_draft_is_replaced_that_the_caller_has_not_seen(self, t: Tenant) -> None:
        """He would keep what it holds, and was about to keep that of another, or of none."""
        record = await session(t)
        first = await t.begin(record.id, "one", HOUR, {"say": "a"}, seen=0)
        await t.release(first)

        async with unchanged(t, record.key):
            for seen in (0, first.token + 1):
                await refused(Conflict, t.begin(record.id, "two", HOUR, {}, seen=seen))

        second = await t.begin(record.id, "two", HOUR, {"say": "b"}, seen=first.token)
        await t.release(second, drop=True)
        third = await t.begin(record.id, "three", HOUR, {}, seen=second.token)
        assert third.left is None

    @on_tenant("begin")
    async def test_what_is_left_of_a_turn_that_was_cut_off(self, t: Tenant) -> None:
        """The next lease gets its input and its output so far, once."""
        record = await session(t)
        first = await t.begin(record.id, "one", SHORT, {"say": "a"})
        await t.journal(first, "Hel")
        await t.journal(first, "lo")
        await _passed()
        cut_off = (await t.load(record.key)).draft
        assert cut_off is not None
        assert not cut_off.is_running

        second = await t.begin(record.id, "two", HOUR, {"say": "b"})

        left = second.left
        assert left is not None
        assert (left.token, left.owner, left.input) == (first.token, "one", {"say": "a"})
        assert left.chunks == ("Hel", "lo")
        assert not left.is_running
        now = (await t.load(record.key)).draft
        assert now is not None
        assert (now.token, now.owner, now.input) == (second.token, "two", {"say": "b"})
        assert now.chunks == ()
        assert now.is_running

    @on_tenant("begin")
    async def test_release_keeps_the_draft(self, t: Tenant) -> None:
        record = await session(t)
        lease = await t.begin(record.id, "one", HOUR, {"say": "a"})
        await t.journal(lease, "so far")

        await t.release(lease)

        draft = (await t.load(record.key)).draft
        assert draft is not None
        assert draft.chunks == ("so far",)
        assert not draft.is_running
        left = (await t.begin(record.id, "two", HOUR, {})).left
        assert left is not None
        assert left.chunks == ("so far",)

    @on_tenant("begin")
    async def test_release_with_drop_forgets_the_draft(self, t: Tenant) -> None:
        record = await session(t)
        lease = await t.begin(record.id, "one", HOUR, {"say": "a"})
        await t.journal(lease, "so far")

        await t.release(lease, drop=True)

        assert (await t.load(record.key)).draft is None
        assert (await t.begin(record.id, "two", HOUR, {})).left is None

    @on_tenant("begin")
    async def test_finish_appends_drops_the_draft_and_releases(self, t: Tenant) -> None:
        """In one step: who begins next finds the entries, and nothing left over."""
        record = await session(t)
        lease = await t.begin(record.id, "one", HOUR, {"say": "a"})
        await t.journal(lease, "so far")

        done = await t.append(record.id, said("a", "b"), lease=lease, finish=True)

        loaded = await t.load(record.key)
        assert (loaded.draft, loaded.seq, done.last) == (None, 2, 2)
        assert (await t.begin(record.id, "two", HOUR, {})).left is None
        await refused(LeaseLost, t.journal(lease, "late"))
        await refused(LeaseLost, t.append(record.id, said("late"), lease=lease))

    @on_tenant("begin")
    async def test_finish_without_entries(self, t: Tenant) -> None:
        record = await session(t, "a")
        lease = await t.begin(record.id, "one", HOUR, {"say": "a"})

        await t.append(record.id, [], lease=lease, finish=True)

        assert (await t.load(record.key)).draft is None
        await t.begin(record.id, "two", HOUR, {})

    @on_tenant("begin")
    async def test_a_finish_that_is_refused_finishes_nothing(self, t: Tenant) -> None:
        record = await session(t, "a")
        lease = await t.begin(record.id, "one", HOUR, {"say": "a"})

        async with unchanged(t, record.key):
            await refused(
                Conflict, t.append(record.id, said("b"), lease=lease, after=0, finish=True)
            )

        await refused(Busy, t.begin(record.id, "two", HOUR, {}))

    @on_tenant("begin")
    async def test_finish_needs_a_lease(self, t: Tenant) -> None:
        record = await session(t, "a")

        async with unchanged(t, record.key):
            await refused(InvalidInput, t.append(record.id, said("b"), finish=True))

    @on_tenant("begin", "delete")
    async def test_a_lease_ends_with_its_session(self, t: Tenant) -> None:
        """Also when there is a new session of the same key."""
        record = await session(t, "a")
        lease = await t.begin(record.id, "one", HOUR, {})
        await t.delete(record.id)
        await session(t, "b")

        async with unchanged(t, record.key):
            await refused((LeaseLost, SessionNotFound), t.journal(lease, "late"))
            await refused((LeaseLost, SessionNotFound), t.renew(lease))
            await refused(SessionNotFound, t.append(record.id, said("x"), lease=lease))
            await t.release(lease, drop=True)

    @on_store("begin", shared=True)
    async def test_busy_across_two_stores_on_the_same_data(self, place: Place) -> None:
        record = await session(place.tenant)
        lease = await place.tenant.begin(record.id, "one", HOUR, {"say": "a"})
        other = (await place.another()).tenant()

        error = await refused(Busy, other.begin(record.id, "two", HOUR, {}))

        assert error.holder == "one"
        seen = (await other.load(record.key)).draft
        assert seen is not None
        assert seen.is_running
        await place.tenant.release(lease)
        left = (await other.begin(record.id, "two", HOUR, {})).left
        assert left is not None
        assert left.input == {"say": "a"}
        await refused(LeaseLost, place.tenant.journal(lease, "late"))

    @on_store("begin", shared=True)
    async def test_a_store_that_is_closed_frees_its_leases_at_once(self, place: Place) -> None:
        """What is left of its turns is cut off."""
        record = await session(place.tenant)
        store = await place.another()
        lease = await store.tenant().begin(record.id, "one", HOUR, {"say": "a"})
        await store.tenant().journal(lease, "so far")
        await store.close()

        draft = (await place.tenant.load(record.key)).draft
        assert draft is not None
        assert not draft.is_running
        left = (await place.tenant.begin(record.id, "two", HOUR, {})).left

        assert left is not None
        assert left.chunks == ("so far",)
