"""Promises about export and restore: a session goes to another store as it is, or not at all."""

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from holdfast.errors import (
    Conflict,
    Corrupt,
    DuplicateSession,
    InvalidInput,
    OnceMismatch,
    SessionExpired,
    SessionNotFound,
)
from holdfast.stores.base import Tenant
from holdfast.stores.values import Part, Record, Stored
from holdfast.testing.contract.harness import (
    DAY,
    HOUR,
    ODD_JSON,
    Contract,
    Place,
    call,
    fold,
    mark,
    on_store,
    only,
    refused,
    said,
    seqs,
    session,
    state,
    unchanged,
    unknown,
)

Write = Callable[[Tenant, Record], Awaitable[object]]

# Whatever anybody may do to a session that was restored.
WRITES: dict[str, Write] = {
    "append": lambda t, r: t.append(r.id, said("x")),
    "begin": lambda t, r: t.begin(r.id, "somebody", HOUR, {}),
    "branch": lambda t, r: t.branch(r.id, "new", parent="main", at=1),
    "update": lambda t, r: t.update(r.id, {"agent": "x"}),
    "erase": lambda t, r: t.erase(r.id, [1]),
    "clear": lambda t, r: t.clear(r.id),
}


def _tenants(place: Place) -> tuple[Tenant, Tenant]:
    return place.store.tenant("from"), place.store.tenant("to")


async def varied(t: Tenant) -> Record:
    """A session with something of everything, whose log does not begin at 1."""
    record = await session(t, "gone", "too", key="chat:\0é", agent="helper", metadata=ODD_JSON)
    await t.clear(record.id)
    await t.append(record.id, [mark("first"), *said("a", "b"), unknown(), call()], once="turn 1")
    await t.branch(record.id, "early", parent="main", at=0)
    await t.branch(record.id, "other", parent="main", at=5)
    await t.append(record.id, said("on other"), branch="other", once="turn 2")
    await t.append(record.id, [*said("big " * 20_000), fold(5, 6)])
    await t.append(record.id, [*said("c"), mark("last")], branch="other")
    await t.append(record.id, [], once="nothing")
    await t.branch(record.id, "late", parent="other", at=9, use=False)
    await t.append(record.id, said("on late"), branch="late")
    await t.erase(record.id, [6, 9])
    await t.update(record.id, {"counters": {"n": 1}, "ttl": DAY, "branch": "main"})
    return record


async def move(source: Tenant, target: Tenant, id: str, step: int = 1_000) -> None:
    """Everything of a session, some entries at a time."""
    after, here = 0, None
    while True:
        part = await source.export(id, after, step)
        here = await target.restore(part, after=here)
        if not part.entries:
            named = await source.names(id)
            await target.restore(replace(part, named=named), after=here, is_whole=True)
            return
        after = part.entries[-1].seq


async def _all(t: Tenant, record: Record) -> Any:
    names, rows = await state(t, record.key)
    return names, rows, await t.names(record.id)


class Transfers(Contract):
    @on_store("export", "restore", "branch", "erase", "clear")
    async def test_a_restored_session_is_the_same_session(self, place: Place) -> None:
        """Key, id, times, seqs, branches, kinds, what was erased: everything that can be read."""
        for number, step in enumerate((1, 2, 3, 1_000)):
            source, target = place.store.tenant(f"from {number}"), place.store.tenant(f"to {step}")
            record = await varied(source)
            place.clock.forward()

            await move(source, target, record.id, step)

            assert await _all(target, record) == await _all(source, record)
            assert (await target.verify()).problems == ()
            moved = (await target.export(record.id, limit=0)).origin
            assert moved == ((await source.load(record.key)).updated_at, True)

    @on_store("export", "restore")
    async def test_it_goes_on_as_it_would_have(self, place: Place) -> None:
        """The next seq is the next one; a repeat is known; what was said is found."""
        source, target = _tenants(place)
        record = await session(source, "a", "needle")
        done = await source.append(record.id, said("b"), once="turn 1")
        await move(source, target, record.id)

        assert await target.append(record.id, said("b"), once="turn 1") == done
        await refused(OnceMismatch, target.append(record.id, said("c"), once="turn 1"))
        assert (await target.append(record.id, said("d"), after=3)).first == 4
        if "search" not in place.store.unsupported:
            assert only((await target.search("needle")).items).stored.seq == 2

    @on_store("export", "restore")
    async def test_names_are_in_their_order(self, place: Place) -> None:
        """Some at a time; by code points, whatever they are made of."""
        t = place.tenant
        record = await session(t, "a")
        names = ["é", "z", "a\0b", "a", "A", "\U0001f418", "\uffee", "a b", "10", "9", "e\u0301"]
        for name in names:
            await t.append(record.id, said(name), once=name)

        found = await t.names(record.id, limit=4)
        while more := await t.names(record.id, found[-1].name, 4):
            found += more

        assert [each.name for each in found] == sorted(names)
        assert sorted(each.result.first for each in found) == list(range(2, 13))

    @on_store("export", "restore", "branch")
    async def test_parts_are_in_the_order_of_seqs(self, place: Place) -> None:
        """Whatever branch they are on; each with the record of that moment."""
        t = place.tenant
        record = await session(t, "a", "b")
        await t.branch(record.id, "other", parent="main", at=1)
        await t.append(record.id, said("c"), branch="other")
        await t.append(record.id, said("d"))

        first, rest = await t.export(record.id, 0, 3), await t.export(record.id, 3, 3)

        assert seqs(first.entries) == [1, 2, 3]
        assert seqs(rest.entries) == [4]
        assert [each.branch for each in first.entries] == ["main", "main", "other"]
        assert first.record == rest.record == await t.load(record.key)
        assert (await t.export(record.id, 4, 3)).entries == ()
        assert (await t.export(record.id, limit=0)).entries == ()

    @on_store("export", "restore")
    async def test_nobody_else_s_writing_is_lost(self, place: Place) -> None:
        """Once anybody has done anything to it, the session is not restored any further."""
        source = place.store.tenant("from")
        record = await session(source, "a")
        for name in sorted(WRITES.keys() - place.store.unsupported):
            target = place.store.tenant(name)
            await move(source, target, record.id)
            place.clock.forward()
            await WRITES[name](target, record)
            after = (await target.load(record.key)).seq
            part = await source.export(record.id, limit=0)

            async with unchanged(target, record.key):
                await refused(Conflict, target.restore(part, after=after))

    @on_store("export", "restore")
    async def test_nor_is_a_session_that_was_made_there(self, place: Place) -> None:
        source, target = _tenants(place)
        record = await session(source, "a")
        part = await source.export(record.id)
        await session(target, "mine", key=record.key)

        async with unchanged(target, record.key):
            await refused(DuplicateSession, target.restore(part, after=None))
        async with unchanged(source, record.key):
            await refused(DuplicateSession, source.restore(part, after=None))
            await refused(Conflict, source.restore(replace(part, entries=()), after=1))
        await refused(SessionNotFound, target.restore(part, after=0))

    @on_store("export", "restore")
    async def test_of_two_who_restore_one_is_behind(self, place: Place) -> None:
        """`after` is the seq that the session is at: who was overtaken is told so."""
        source, target = _tenants(place)
        record = await session(source, "a", "b")
        first, second = await source.export(record.id, 0, 1), await source.export(record.id, 1, 1)
        await target.restore(first, after=None)
        await target.restore(second, after=1)

        async with unchanged(target, record.key):
            error = await refused(Conflict, target.restore(second, after=1))

        assert (error.expected, error.found) == (1, 2)

    @on_store("export", "restore", "erase")
    async def test_what_was_erased_since_is_erased_there(self, place: Place) -> None:
        source, target = _tenants(place)
        record = await session(source, "needle", "b")
        await move(source, target, record.id)
        place.clock.forward()
        await source.erase(record.id, [1])

        part = await source.export(record.id)
        await target.restore(replace(part, entries=part.entries[:1]), after=2, is_whole=True)

        assert await state(target, record.key) == await state(source, record.key)
        if "search" not in place.store.unsupported:
            assert (await target.search("needle")).items == ()

    @on_store("export", "restore", "clear")
    async def test_what_was_cleared_since_is_gone_there(self, place: Place) -> None:
        source, target = _tenants(place)
        record = await session(source, "a", "b")
        await source.append(record.id, said("c"), once="turn 1")
        await move(source, target, record.id)
        await source.clear(record.id)
        await source.append(record.id, said("new"))

        await target.restore(await source.export(record.id), after=3, is_whole=True)

        assert await state(target, record.key) == await state(source, record.key)
        assert (await target.append(record.id, said("other"), once="turn 1")).first == 6

    @on_store("export", "restore", "erase")
    async def test_erasing_moves_the_time_of_the_last_write(self, place: Place) -> None:
        """By which one who copies sees that there is something to do."""
        record = await session(place.tenant, "a")
        place.clock.set()
        place.clock.forward(DAY)
        await place.tenant.erase(record.id, [1])

        assert (await place.tenant.load(record.key)).updated_at != record.updated_at

    @on_store("export", "restore")
    async def test_an_expired_session_can_be_moved(self, place: Place) -> None:
        """And has expired there too: its time does not begin anew."""
        source, target = _tenants(place)
        place.clock.set()
        record = await session(source, "a", ttl=HOUR)
        place.clock.forward(DAY)

        await move(source, target, record.id)

        await refused(SessionExpired, target.load(record.key))
        moved = (await target.export(record.id)).record
        assert moved == (await source.export(record.id)).record

    @on_store("export", "restore", "begin")
    async def test_a_running_turn_stays_where_it_is(self, place: Place) -> None:
        """What one left that was cut off goes along, and can be taken up there."""
        source, target = _tenants(place)
        record = await session(source, "a")
        lease = await source.begin(record.id, "worker", HOUR, {"say": "x"})
        await source.journal(lease, "half")
        await move(source, target, record.id)
        assert (await target.load(record.key)).draft is None

        await source.release(lease)
        part = await source.export(record.id, 1)
        await target.restore(part, after=1, is_whole=True)

        moved, left = (await target.load(record.key)).draft, (await source.load(record.key)).draft
        assert moved is not None
        assert left is not None
        assert (moved.token, moved.input, moved.chunks) == (left.token, left.input, left.chunks)
        again = await target.begin(record.id, "another", HOUR, {})
        assert again.token > lease.token
        assert again.left is not None
        assert (again.left.input, again.left.chunks) == ({"say": "x"}, ("half",))

    @on_store("export", "restore", "branch")
    async def test_what_does_not_fit_together_is_not_taken(self, place: Place) -> None:
        """Nothing is changed, and no session is left half made."""
        source, target = _tenants(place)
        record = await session(source, "a", "b", "c")
        await source.branch(record.id, "other", parent="main", at=2)
        part = await source.export(record.id)
        a, b, c = part.entries
        wrong: list[Part] = [
            replace(part, entries=(a, b)),
            replace(part, entries=(a, c)),
            replace(part, entries=(b, a, c)),
            replace(part, entries=(a, a, b, c)),
            replace(part, entries=(a, b, c, Stored(4, 3, "main", "message", c.entry))),
            replace(part, entries=(a, b, Stored(3, 2, "nowhere", "message", c.entry))),
            replace(part, entries=(a, b, Stored(3, 2, "main", "mark", c.entry))),
            replace(part, record=part.record.replace(branches=())),
        ]

        for each in wrong:
            await refused(InvalidInput, target.restore(each, after=None, is_whole=True))
        await refused(SessionNotFound, target.load(record.key))

        assert await target.restore(part, after=None, is_whole=True) == 3

    @on_store("export", "restore")
    async def test_damage_does_not_travel(self, place: Place) -> None:
        record = await session(place.tenant, "a", "b", "c")
        await self.damage(place.store, record.id, 2)

        await refused(Corrupt, place.tenant.export(record.id))
