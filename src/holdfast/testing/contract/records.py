"""Promises about records: create, load, delete."""

import asyncio
from datetime import timedelta, timezone

from holdfast import ids
from holdfast.entries import Entry
from holdfast.errors import (
    Busy,
    Conflict,
    Corrupt,
    DuplicateSession,
    HoldfastError,
    InvalidInput,
    SessionExpired,
    SessionNotFound,
    TooLarge,
)
from holdfast.frozen import FrozenDict
from holdfast.settings import Settings
from holdfast.stores.base import Tenant
from holdfast.stores.values import MAIN, Branch, Draft, Record
from holdfast.testing.contract.harness import (
    DAY,
    HOUR,
    NOON,
    ODD_JSON,
    Contract,
    Place,
    call,
    exact,
    mark,
    on_store,
    on_tenant,
    only,
    refused,
    said,
    session,
    texts,
    unchanged,
    unknown,
)

MS = timedelta(milliseconds=1)


def _full(**fields: object) -> Record:
    """A record in which a caller has given everything that he may."""
    given: dict[str, object] = {
        "key": "telegram:12345678",
        "id": ids.new_id(),
        "agent": "helper",
        "settings": Settings(model="vendor:m", temperature=0.5, extra=FrozenDict({"x": 1})),
        "metadata": ODD_JSON,
        "tools": ({"name": "look", "parameters": {"type": "object"}}, {"name": "go"}),
        "counters": {"turns": 3, "tokens": 2**53 + 1},
        "ttl": timedelta(days=30, seconds=1, microseconds=1),
        "parent": ids.new_id(),
    }
    return Record(**(given | fields))  # type: ignore[arg-type]


class Records(Contract):
    @on_tenant()
    async def test_what_a_caller_may_give_is_taken(self, t: Tenant) -> None:
        """All of it, and exactly: JSON keeps its types, its depth, its odd names."""
        given = _full()

        made = await t.create(given)

        assert await t.load(given.key) == made
        for name in ("key", "id", "agent", "settings", "tools", "counters", "ttl", "parent"):
            assert getattr(made, name) == getattr(given, name), name
        for found in (made, await t.load(given.key)):
            assert exact(found.metadata) == exact(ODD_JSON)
            assert type(found.metadata) is FrozenDict

    @on_tenant()
    async def test_the_rest_is_the_store_s(self, t: Tenant) -> None:
        """What else stands in the record that is given has no effect."""
        given = Record(
            key="chat:1",
            branch="other",
            branches=(Branch(name="other", head=7, count=7),),
            seq=99,
            draft=Draft(token=5, owner="me"),
        )

        made = await t.create(given, said("a"))

        assert made == await t.load("chat:1")
        assert (made.branch, made.seq, made.draft, made.folds) == (MAIN, 1, None, ())
        assert made.branches == (Branch(name=MAIN, head=1, count=1),)

    @on_tenant()
    async def test_a_new_session_without_entries(self, t: Tenant) -> None:
        made = await t.create(Record(key="chat:1"))

        assert made.branches == (Branch(name=MAIN),)
        assert (made.seq, made.branch, made.agent, made.ttl) == (0, MAIN, "", None)
        assert await t.read(made.id) == ()

    @on_tenant()
    async def test_a_new_session_with_its_first_entries(self, t: Tenant) -> None:
        entries: list[Entry] = [mark(), *said("a", "b"), call(), unknown()]

        made = await t.create(Record(key="chat:1"), entries)

        assert made.branches == (Branch(name=MAIN, head=5, count=2),)
        assert made.seq == 5
        rows = await t.read(made.id)
        assert [row.entry for row in rows] == entries
        assert [row.seq for row in rows] == [1, 2, 3, 4, 5]
        assert (await t.append(made.id, said("c"), after=5)).first == 6

    @on_store()
    async def test_a_session_was_created_and_updated_now(self, place: Place) -> None:
        """Whatever times the record came with."""
        now = place.clock.set()
        old = Record(key="old", created_at=NOON - DAY * 9, updated_at=NOON - DAY)

        for record in (await place.tenant.create(old), await session(place.tenant)):
            assert record.created_at == record.updated_at == now
            assert await place.tenant.load(record.key) == record

    @on_store()
    async def test_times_are_kept_when_asked_for(self, place: Place) -> None:
        """As a copy from another store needs them: to the microsecond, in any zone."""
        t = place.tenant
        place.clock.set()
        east = timezone(timedelta(hours=5, minutes=30))
        created = (NOON - DAY * 400 + timedelta(microseconds=1)).astimezone(east)
        updated = NOON - DAY * 300 + timedelta(microseconds=999_999)
        given = Record(key="copy", created_at=created, updated_at=updated)

        made = await t.create(given, said("a"), keep_times=True)

        assert (made.created_at, made.updated_at) == (created, updated)
        assert await t.load("copy") == made
        place.clock.forward()
        await t.append(made.id, said("b"))
        later = await t.load("copy")
        assert (later.created_at, later.updated_at) == (created, ids.now())

    @on_store()
    async def test_a_copy_can_be_expired_when_it_is_made(self, place: Place) -> None:
        """Its time began when it was last written to, wherever that was."""
        place.clock.set()
        given = Record(key="c", created_at=NOON - DAY, updated_at=NOON - DAY, ttl=HOUR)

        await place.tenant.create(given, keep_times=True)

        await refused(SessionExpired, place.tenant.load("c"))

    @on_tenant()
    async def test_a_key_that_is_taken(self, t: Tenant) -> None:
        """DuplicateSession, and the session that has it stays as it is."""
        record = await session(t, "a", agent="first")

        async with unchanged(t, record.key):
            error = await refused(
                DuplicateSession, t.create(Record(key=record.key, agent="second"), said("b"))
            )

        assert error.key == record.key

    @on_tenant()
    async def test_an_id_that_is_taken(self, t: Tenant) -> None:
        """An id is for life: no second session gets it."""
        record = await session(t, "a")

        async with unchanged(t, record.key):
            await refused(HoldfastError, t.create(Record(key="other", id=record.id), said("b")))

        await refused(SessionNotFound, t.load("other"))

    @on_tenant()
    async def test_of_many_who_create_one_key_at_once_one_wins(self, t: Tenant) -> None:
        """It is his session that is there, with his entries and no others."""
        done = await asyncio.gather(
            *(t.create(Record(key="chat:1", agent=f"a{n}"), said(f"{n}")) for n in range(50)),
            return_exceptions=True,
        )

        won = only([each for each in done if isinstance(each, Record)])
        assert sum(isinstance(each, DuplicateSession) for each in done) == 49
        assert await t.load("chat:1") == won
        assert texts(await t.read(won.id)) == [won.agent[1:]]
        assert len((await t.list()).items) == 1

    @on_tenant()
    async def test_a_key_that_is_not_there(self, t: Tenant) -> None:
        await session(t, key="chat:1")

        for key in ("chat:2", "chat", "chat:1 ", "Chat:1", "chat:%", "chat:_", "*", "\0"):
            error = await refused(SessionNotFound, t.load(key))
            assert error.key == key

    @on_store()
    async def test_a_session_expires_when_more_than_its_ttl_has_passed(self, place: Place) -> None:
        """Not when exactly that has passed. Looking at it changes nothing."""
        t = place.tenant
        place.clock.set()
        record = await session(t, "a", ttl=HOUR)
        place.clock.forward(HOUR)
        assert await t.load(record.key) == record

        place.clock.forward(MS)
        for _ in range(2):
            error = await refused(SessionExpired, t.load(record.key))
            assert error.key == record.key
        place.clock.set(NOON + HOUR)  # as if the clock had been wrong

        assert await t.load(record.key) == record
        assert texts(await t.read(record.id)) == ["a"]

    @on_store()
    async def test_a_write_lets_the_time_begin_anew(self, place: Place) -> None:
        t = place.tenant
        place.clock.set()
        record = await session(t, ttl=HOUR)
        for number in range(1, 5):
            moment = place.clock.forward(HOUR - MS)
            if number % 2:
                await t.append(record.id, said("a"))
            else:
                await t.update(record.id, {"counters": {"turns": number}})
            assert (await t.load(record.key)).updated_at == moment
        assert (await t.load(record.key)).created_at == NOON

    @on_store()
    async def test_a_session_without_a_ttl_lives_for_ever(self, place: Place) -> None:
        place.clock.set()
        record = await session(place.tenant, "a")
        place.clock.forward(DAY * 36_500)

        assert await place.tenant.load(record.key) == record

    @on_store("delete")
    async def test_an_expired_session_still_has_its_key(self, place: Place) -> None:
        """Its data is still there, so nothing is made in its place until it is deleted."""
        t = place.tenant
        place.clock.set()
        record = await session(t, "a", ttl=HOUR)
        place.clock.forward(DAY)

        await refused(DuplicateSession, t.create(Record(key=record.key)))
        assert await t.delete(record.id)
        assert (await session(t)).id != record.id

    @on_store()
    async def test_an_expired_session_is_given_to_who_asks_for_it(self, place: Place) -> None:
        """Whoever lists, deletes or keeps books has to get at what has expired."""
        t = place.tenant
        place.clock.set()
        record = await session(t, "a", ttl=HOUR)
        before = await t.load(record.key)
        place.clock.forward(DAY)

        await refused(SessionExpired, t.load(record.key))
        assert await t.load(record.key, even_expired=True) == before
        await refused(SessionNotFound, t.load("nobody's", even_expired=True))

    @on_store()
    async def test_an_expired_session_is_replaced_when_asked_for(self, place: Place) -> None:
        """The new one has another id, and nothing of the old one."""
        t = place.tenant
        place.clock.set()
        old = await session(t, "a", ttl=HOUR, metadata={"of": "old"})
        await t.append(old.id, said("b"), once="x")
        place.clock.forward(DAY)

        new = await t.create(Record(key=old.key), said("c"), replace_expired=True)

        assert new.id != old.id
        assert (new.metadata, new.seq, new.ttl) == ({}, 1, None)
        assert await t.load(old.key) == new
        await refused(SessionNotFound, t.read(old.id))
        await t.append(new.id, said("d"), once="x")
        assert texts(await t.read(new.id)) == ["c", "d"]
        assert [item.id for item in (await t.list()).items] == [new.id]

    @on_store()
    async def test_a_living_session_is_not_replaced(self, place: Place) -> None:
        """Exactly its ttl has passed, or it has none."""
        t = place.tenant
        place.clock.set()
        for ttl in (HOUR, None):
            record = await session(t, "a", key=f"ttl {ttl}", ttl=ttl)
            place.clock.forward(HOUR)

            async with unchanged(t, record.key):
                again = t.create(Record(key=record.key), replace_expired=True)
                await refused(DuplicateSession, again)

    @on_store("begin")
    async def test_an_expired_session_with_a_running_turn_is_not_replaced(
        self, place: Place
    ) -> None:
        t = place.tenant
        place.clock.set()
        record = await session(t, "a", ttl=HOUR)
        lease = await t.begin(record.id, "one", DAY, {"say": "b"})
        place.clock.forward(DAY)
        await refused(DuplicateSession, t.create(Record(key=record.key), replace_expired=True))
        assert texts(await t.read(record.id)) == ["a"]

        await t.release(lease)

        new = await t.create(Record(key=record.key), replace_expired=True)
        assert new.id != record.id

    @on_store()
    async def test_of_many_who_replace_at_once_one_wins(self, place: Place) -> None:
        t = place.tenant
        place.clock.set()
        old = await session(t, "a", ttl=HOUR)
        place.clock.forward(DAY)

        done = await asyncio.gather(
            *(
                t.create(Record(key=old.key, ttl=HOUR), said(f"{n}"), replace_expired=True)
                for n in range(20)
            ),
            return_exceptions=True,
        )

        won = only([each for each in done if isinstance(each, Record)])
        assert sum(isinstance(each, DuplicateSession) for each in done) == 19
        assert await t.load(old.key) == won

    @on_store()
    async def test_what_cannot_be_created_replaces_nothing(self, place: Place) -> None:
        """The old session goes in the same commit in which the new one comes, or stays."""
        t = place.tenant
        place.clock.set()
        old, other = await session(t, "a", ttl=HOUR), await session(t, "b", key="other")
        place.clock.forward(DAY)
        large = Record(key=old.key, metadata={"x": "x" * place.store.limits.record_bytes})  # type: ignore[arg-type]

        await refused(TooLarge, t.create(large, replace_expired=True))
        taken = Record(key=old.key, id=other.id)
        await refused(HoldfastError, t.create(taken, replace_expired=True))

        await t.update(old.id, {"ttl": None})
        assert texts(await t.read(old.id)) == ["a"]

    @on_store()
    async def test_a_damaged_record_is_corrupt(self, place: Place) -> None:
        """And the other sessions are well."""
        t = place.tenant
        record, other = await session(t, "a"), await session(t, "b", key="other")
        await place.contract.damage(place.store, record.id, 0)

        await refused(Corrupt, t.load(record.key))

        assert await t.load("other") == other
        found = only([each for each in (await t.list()).items if each.id == record.id])
        assert found.damage
        assert {each.id for each in (await t.list()).items} == {record.id, other.id}

    @on_tenant("delete")
    async def test_delete_removes_a_session_with_everything_in_it(self, t: Tenant) -> None:
        record = await session(t, "a", "b")
        other = await session(t, "c", key="other")

        assert await t.delete(record.id) is True

        await refused(SessionNotFound, t.load(record.key))
        await refused(SessionNotFound, t.read(record.id))
        await refused(SessionNotFound, t.tail(record.id))
        await refused(SessionNotFound, t.update(record.id, {"agent": "x"}))
        assert [each.id for each in (await t.list()).items] == [other.id]
        assert texts(await t.read(other.id)) == ["c"]

    @on_tenant("delete")
    async def test_delete_twice_is_harmless(self, t: Tenant) -> None:
        record = await session(t, "a")

        assert [await t.delete(record.id) for _ in range(3)] == [True, False, False]
        assert await t.delete(ids.new_id()) is False

    @on_tenant("delete")
    async def test_what_was_written_to_meanwhile_is_not_deleted(self, t: Tenant) -> None:
        """Whoever tidies up takes away what he has looked at, and nothing that came since."""
        record = await session(t, "a")
        seen = await t.load(record.key)
        await t.append(record.id, said("b"))

        await refused(Conflict, t.delete(record.id, seen=seen))
        assert texts(await t.read(record.id)) == ["a", "b"]

        seen = await t.load(record.key)
        await t.update(record.id, {"agent": "another"})
        await refused(Conflict, t.delete(record.id, seen=seen))
        await refused(InvalidInput, t.delete(ids.new_id(), seen=seen))

        assert await t.delete(record.id, seen=await t.load(record.key))
        assert await t.delete(record.id, seen=seen) is False

    @on_tenant("delete", "begin")
    async def test_what_a_turn_runs_on_is_not_deleted_if_it_was_only_seen_idle(
        self, t: Tenant
    ) -> None:
        record = await session(t, "a")
        lease = await t.begin(record.id, "me", HOUR, {})
        seen = await t.load(record.key)

        await refused(Busy, t.delete(record.id, seen=seen))

        await t.release(lease)
        assert await t.delete(record.id, seen=await t.load(record.key))

    @on_tenant("delete")
    async def test_of_many_who_delete_at_once_one_did_it(self, t: Tenant) -> None:
        record = await session(t, "a")

        done = await asyncio.gather(*(t.delete(record.id) for _ in range(10)))

        assert sorted(done) == [False] * 9 + [True]

    @on_tenant("delete")
    async def test_a_session_made_anew_is_another_one(self, t: Tenant) -> None:
        """It has another id, and nothing of the old one."""
        old = await session(t, "a", "b", metadata={"of": "old"}, agent="old")
        await t.delete(old.id)

        new = await session(t)

        assert new.id != old.id
        assert (new.seq, new.metadata, new.agent, new.branches) == (
            0,
            {},
            "",
            (Branch(name=MAIN),),
        )
        assert await t.read(new.id) == ()
        await refused(SessionNotFound, t.read(old.id))
        assert await t.delete(old.id) is False
        assert await t.load(new.key) == new

    @on_store(shared=True)
    async def test_what_one_store_wrote_the_other_reads(self, place: Place) -> None:
        """Both are open all the time, and neither keeps an old state to itself."""
        one, two = place.tenant, (await place.another()).tenant()
        record = await session(one, "a", metadata={"n": 0})
        for number in range(1, 6):
            writer, reader = (one, two) if number % 2 else (two, one)
            await writer.append(record.id, said(f"{number}"), after=number)
            await writer.update(record.id, {"metadata": {"n": number}})

            assert await reader.load(record.key) == await writer.load(record.key)
            assert (await reader.load(record.key)).metadata == {"n": number}
            assert texts(await reader.tail(record.id, count=1)) == [f"{number}"]

    @on_store(shared=True)
    async def test_what_was_written_is_there_after_closing(self, place: Place) -> None:
        record = await session(place.tenant, "a", "b", metadata=ODD_JSON, ttl=HOUR)
        before = await place.tenant.load(record.key)
        await place.store.close()

        other = (await place.another()).tenant()

        assert await other.load(record.key) == before
        assert exact((await other.load(record.key)).metadata) == exact(ODD_JSON)
        assert texts(await other.read(record.id)) == ["a", "b"]
