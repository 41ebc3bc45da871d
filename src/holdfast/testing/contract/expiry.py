"""Promises about expire: marked first, deleted later, and never by a clock that looks wrong."""

from datetime import timedelta

from holdfast.errors import SessionNotFound
from holdfast.stores.base import Tenant
from holdfast.stores.values import Expired, Record
from holdfast.testing.contract.harness import (
    DAY,
    HOUR,
    NOON,
    Contract,
    Place,
    on_store,
    on_tenant,
    refused,
    said,
    session,
    texts,
)

SECOND = timedelta(seconds=1)
WEEK = timedelta(days=7)


async def _old(t: Tenant, key: str = "old", ttl: timedelta | None = HOUR) -> Record:
    """A session that was last written to at noon."""
    given = Record(key=key, created_at=NOON, updated_at=NOON, ttl=ttl)
    return await t.create(given, said("a"), keep_times=True)


async def _keys(t: Tenant) -> set[str]:
    return {item.key for item in (await t.list()).items}


class Expiry(Contract):
    @on_tenant("expire")
    async def test_a_session_is_marked_first_and_deleted_when_its_grace_is_over(
        self, t: Tenant
    ) -> None:
        """A week after the mark and not when it is exactly that old."""
        await _old(t)
        marked = NOON + HOUR * 2

        assert await t.expire(marked) == Expired(1, 0)
        assert await t.expire(marked + HOUR) == Expired(0, 0)
        assert await t.expire(marked + WEEK) == Expired(0, 0)
        assert await _keys(t) == {"old"}
        assert await t.expire(marked + WEEK + SECOND) == Expired(0, 1)

        assert await _keys(t) == set()
        await refused(SessionNotFound, t.load("old"))
        assert await t.expire(marked + WEEK + HOUR) == Expired(0, 0)

    @on_tenant("expire")
    async def test_those_that_have_not_expired_are_left_alone(self, t: Tenant) -> None:
        """Exactly the ttl is not more than it, and None is for ever."""
        await _old(t, "exactly", HOUR)
        await _old(t, "for ever", None)
        await _old(t, "long", DAY * 1000)
        await _old(t, "over", HOUR - SECOND)

        assert await t.expire(NOON + HOUR) == Expired(1, 0)
        assert await t.expire(NOON + HOUR + WEEK + SECOND) == Expired(1, 1)

        assert await _keys(t) == {"exactly", "for ever", "long"}

    @on_tenant("expire")
    async def test_nothing_is_deleted_in_the_run_that_marks_it(self, t: Tenant) -> None:
        """However long ago it expired, and with no grace at all."""
        await _old(t)

        assert await t.expire(NOON + DAY * 9999, grace=timedelta(0)) == Expired(1, 0)
        assert await t.expire(NOON + DAY * 9999 + SECOND, grace=timedelta(0)) == Expired(0, 1)

    @on_tenant("expire")
    async def test_the_grace_is_the_caller_s(self, t: Tenant) -> None:
        await _old(t)
        marked = NOON + DAY
        await t.expire(marked)

        assert await t.expire(marked + HOUR, grace=HOUR) == Expired(0, 0)
        assert await t.expire(marked + WEEK * 2, grace=WEEK * 2) == Expired(0, 0)
        assert await t.expire(marked + WEEK * 2 + SECOND, grace=DAY * 20) == Expired(0, 0)
        assert await t.expire(marked + WEEK * 2 + HOUR, grace=HOUR) == Expired(0, 1)

    @on_store("expire")
    async def test_now_is_the_time_unless_told(self, place: Place) -> None:
        t = place.tenant
        place.clock.set()
        await session(t, key="old", ttl=HOUR)
        assert await t.expire() == Expired(0, 0)

        place.clock.forward(HOUR * 2)
        assert await t.expire() == Expired(1, 0)
        place.clock.forward(WEEK + SECOND)
        assert await t.expire() == Expired(0, 1)

    @on_tenant("expire")
    async def test_a_clock_that_went_back_stops_it(self, t: Tenant) -> None:
        """The next run goes on from the clock as it is now."""
        await _old(t)
        await _old(t, "other", DAY * 8)
        await t.expire(NOON + DAY)  # marks "old"

        back = await t.expire(NOON + DAY - SECOND)
        assert (back.marked, back.deleted) == (0, 0)
        assert back.stopped

        assert await t.expire(NOON + DAY) == Expired(0, 0)
        assert await t.expire(NOON + DAY * 9) == Expired(1, 1)
        assert await _keys(t) == {"other"}

    @on_tenant("expire")
    async def test_a_clock_that_jumped_ahead_stops_it(self, t: Tenant) -> None:
        """By more than thirty days since the last run. A clock that was set wrong for a minute
        deletes nothing; one that is really there goes on."""
        await _old(t)
        await _old(t, "other", DAY * 2)
        assert await t.expire(NOON + DAY) == Expired(1, 0)
        far = NOON + DAY * 3650

        jumped = await t.expire(far)
        assert (jumped.marked, jumped.deleted) == (0, 0)
        assert jumped.stopped
        assert await _keys(t) == {"old", "other"}

        assert await t.expire(far + HOUR) == Expired(1, 1)
        assert await _keys(t) == {"other"}

    @on_tenant("expire")
    async def test_thirty_days_are_not_too_many(self, t: Tenant) -> None:
        await _old(t)
        await t.expire(NOON + DAY)

        assert await t.expire(NOON + DAY * 31) == Expired(0, 1)
        assert (await t.expire(NOON + DAY * 61 + SECOND)).stopped

    @on_tenant("expire")
    async def test_a_wrong_clock_that_was_put_right_deletes_nothing(self, t: Tenant) -> None:
        """Ten years ahead, then back: both are stopped, and then all is as before."""
        await _old(t, ttl=DAY * 30)
        await t.expire(NOON + DAY)

        assert (await t.expire(NOON + DAY * 3650)).stopped
        assert (await t.expire(NOON + DAY + HOUR)).stopped
        assert await t.expire(NOON + DAY + HOUR * 2) == Expired(0, 0)
        assert await _keys(t) == {"old"}

    @on_store("expire")
    async def test_a_mark_is_gone_when_the_session_is_written_to(self, place: Place) -> None:
        t = place.tenant
        place.clock.set()
        record = await session(t, "a", key="old", ttl=HOUR)
        place.clock.forward(DAY)
        assert await t.expire() == Expired(1, 0)
        await t.update(record.id, {"metadata": {"back": True}})

        place.clock.forward(WEEK + DAY)
        assert await t.expire() == Expired(1, 0)  # marked anew, and not deleted
        assert texts(await t.read(record.id)) == ["a"]
        place.clock.forward(WEEK + DAY)
        assert await t.expire() == Expired(0, 1)

    @on_store("expire", "begin")
    async def test_a_session_with_a_running_turn_is_not_deleted(self, place: Place) -> None:
        t = place.tenant
        place.clock.set()
        record = await session(t, "a", key="old", ttl=HOUR)
        lease = await t.begin(record.id, "one", DAY, {"say": "b"})
        for _ in range(3):
            place.clock.forward(WEEK + DAY)
            assert (await t.expire()).deleted == 0
        assert await _keys(t) == {"old"}

        await t.release(lease)
        place.clock.forward(WEEK + DAY)
        await t.expire()
        place.clock.forward(WEEK + DAY)
        await t.expire()

        assert await _keys(t) == set()

    @on_store("expire", "search")
    async def test_what_was_deleted_is_not_found_and_its_key_is_free(self, place: Place) -> None:
        t = place.tenant
        place.clock.set()
        record = await session(t, "word", ttl=HOUR)
        place.clock.forward(DAY)
        await t.expire()
        assert len((await t.search("word")).items) == 1
        place.clock.forward(WEEK + DAY)
        assert await t.expire() == Expired(0, 1)

        assert (await t.search("word")).items == ()
        assert (await session(t)).id != record.id

    @on_store("expire")
    async def test_tenants_expire_by_themselves(self, place: Place) -> None:
        """One tenant's run neither touches another's sessions nor counts as its run."""
        mine, theirs = place.store.tenant("mine"), place.store.tenant("theirs")
        await _old(mine)
        await _old(theirs)
        await mine.expire(NOON + DAY)
        assert await mine.expire(NOON + DAY + WEEK * 2) == Expired(0, 1)

        assert await _keys(theirs) == {"old"}
        assert await theirs.expire(NOON + HOUR * 2) == Expired(1, 0)

    @on_store("expire", shared=True)
    async def test_marks_and_runs_are_stored(self, place: Place) -> None:
        """Another process goes on where the last one stopped."""
        await _old(place.tenant)
        await place.tenant.expire(NOON + DAY)
        other = (await place.another()).tenant()

        assert (await other.expire(NOON + HOUR)).stopped
        assert await other.expire(NOON + DAY) == Expired(0, 0)
        assert await other.expire(NOON + DAY * 9) == Expired(0, 1)
        await refused(SessionNotFound, place.tenant.load("old"))
