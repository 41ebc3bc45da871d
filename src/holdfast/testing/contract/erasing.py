"""Promises about erase and clear: what is removed is really gone."""

import asyncio
from pathlib import Path

from holdfast import ids
from holdfast.entries import Entry
from holdfast.errors import Busy, Conflict, InvalidInput, LeaseLost
from holdfast.messages import Message, ToolCall
from holdfast.parts import Image, Text
from holdfast.settings import Settings
from holdfast.stores.base import Tenant
from holdfast.stores.values import MAIN, Record, Stored
from holdfast.testing.contract.harness import (
    HOUR,
    Contract,
    Place,
    call,
    fold,
    mark,
    on_store,
    on_tenant,
    refused,
    said,
    seqs,
    session,
    texts,
    unchanged,
    unknown,
)

RARE = "xyzzyplugh"


def _erased(row: Stored) -> Stored:
    return Stored(row.seq, row.position, row.branch, row.kind, None)


def _files_with(folder: Path, needle: str) -> list[str]:
    """The files of a store in which these letters stand, in whichever encoding."""
    codes = [needle.encode(code) for code in ("utf-8", "utf-16-le", "utf-16-be")]
    return [
        path.name
        for path in sorted(folder.rglob("*"))
        if path.is_file() and any(code in path.read_bytes() for code in codes)
    ]


class Erasing(Contract):
    @on_tenant("erase")
    async def test_the_place_of_what_was_erased_stays(self, t: Tenant) -> None:
        """Its seq, its kind and its position, and those of all others."""
        record = await session(t, "a", RARE, "c")
        before = await t.read(record.id)

        assert await t.erase(record.id, [2]) == 1

        assert await t.read(record.id) == (before[0], _erased(before[1]), before[2])
        assert await t.tail(record.id, count=2) == (_erased(before[1]), before[2])
        assert seqs(await t.read(record.id, start=1, stop=2)) == [2]
        loaded = await t.load(record.key)
        assert (loaded.seq, loaded.branches) == (3, record.branches)
        assert (await t.append(record.id, said("d"), after=3)).messages == 4

    @on_tenant("erase")
    async def test_it_says_how_many_still_had_something_to_say(self, t: Tenant) -> None:
        record = await session(t, "a", "b", "c", "d")

        assert await t.erase(record.id, []) == 0
        assert await t.erase(record.id, [2, 3]) == 2
        assert await t.erase(record.id, [2]) == 0
        assert await t.erase(record.id, [3, 4, 4]) == 1
        assert texts(await t.read(record.id)) == ["a", None, None, None]

    @on_tenant("erase")
    async def test_a_seq_that_is_not_there_and_nothing_is_erased(self, t: Tenant) -> None:
        record = await session(t, "a", "b")

        async with unchanged(t, record.key):
            for wrong in (3, 0, -1, 2**63):
                await refused(InvalidInput, t.erase(record.id, [1, wrong]))

    @on_tenant("erase", "clear")
    async def test_a_seq_that_was_cleared_is_not_there(self, t: Tenant) -> None:
        record = await session(t, "a", "b")
        await t.clear(record.id)
        done = await t.append(record.id, said("c"))

        async with unchanged(t, record.key):
            await refused(InvalidInput, t.erase(record.id, [1, done.last]))

    @on_tenant("erase")
    async def test_entries_of_every_kind_can_be_erased(self, t: Tenant) -> None:
        """Folds, receipts, marks, and what this version does not know."""
        entries: list[Entry] = [
            *said("a"),
            call(RARE),
            fold(1, 1, RARE),
            mark("noted", text=RARE),
            unknown("vote", f'"{RARE}"'),
            *said("b"),
        ]
        record = await t.create(Record(key="chat:1"), entries)
        before = await t.read(record.id)

        assert await t.erase(record.id, [2, 3, 4, 5]) == 4

        rows = await t.read(record.id)
        assert [_erased(row) for row in rows] == [_erased(row) for row in before]
        assert [row.entry is None for row in rows] == [False, True, True, True, True, False]
        assert seqs(await t.read(record.id, kind="vote")) == [5]
        assert RARE not in repr(await t.load(record.key))

    @on_tenant("erase", "branch")
    async def test_what_branches_share_is_erased_on_all(self, t: Tenant) -> None:
        record = await session(t, "a", "b")
        await t.branch(record.id, "other", parent="main", at=2)
        await t.append(record.id, said("c"), branch="other")

        assert await t.erase(record.id, [1, 3]) == 2

        assert texts(await t.read(record.id, "main")) == [None, "b"]
        assert texts(await t.read(record.id, "other")) == [None, "b", None]

    @on_tenant("erase", "verify")
    async def test_the_chain_still_verifies(self, t: Tenant) -> None:
        record = await session(t, *"abcdefgh")
        await t.erase(record.id, [1, 4, 8])
        await t.append(record.id, said("i"))
        await t.erase(record.id, [2])

        assert (await t.verify(record.id)).problems == ()
        assert (await t.verify()).problems == ()

    @on_tenant("erase", "search")
    async def test_search_no_longer_finds_it(self, t: Tenant) -> None:
        asked = ToolCall(id="c", name="look", arguments=f'{{"for": "{RARE}"}}')
        record = await t.create(
            Record(key="chat:1"),
            [*said(f"{RARE} here"), Message.assistant(None, [asked]), *said(f"{RARE} stays")],
        )
        assert [hit.stored.seq for hit in (await t.search(RARE)).items] == [3, 2, 1]

        await t.erase(record.id, [1, 2])

        assert [hit.stored.seq for hit in (await t.search(RARE)).items] == [3]
        assert (await t.search("here")).items == ()

    @on_store("erase")
    async def test_its_bytes_are_in_no_file(self, place: Place) -> None:
        """Not in the log, an index, a journal, or a place that was given back and not wiped;
        neither when it was large, nor after it was read, searched and written about."""
        t = place.tenant
        large = " ".join(f"{RARE}{number}" for number in range(20_000))
        record = await session(t, "before", f"say {RARE}", large, "after")
        await t.read(record.id)
        if "search" not in place.store.unsupported:
            await t.search(RARE)
        await t.append(record.id, said(f"once {RARE}"), once="x")

        await t.erase(record.id, [2, 3, 5])

        assert _files_with(place.tmp_path, RARE) == []
        await place.store.close()
        assert _files_with(place.tmp_path, RARE) == []

    @on_store("erase", shared=True)
    async def test_another_store_no_longer_sees_it(self, place: Place) -> None:
        """It may have read it before; a cache is no place for what was erased."""
        other = (await place.another()).tenant()
        record = await session(place.tenant, "a", RARE)
        assert texts(await other.read(record.id)) == ["a", RARE]

        await place.tenant.erase(record.id, [2])

        assert texts(await other.read(record.id)) == ["a", None]
        assert texts(await other.tail(record.id)) == ["a", None]

    @on_tenant("erase")
    async def test_a_large_part_said_twice_is_kept_for_the_other(self, t: Tenant) -> None:
        """However a store saves room: in one session or in two, and with other words around it."""
        data = bytes(range(256)) * 1_024
        picture = Image(data=data, media_type="image/png")
        long = "the same long answer of a tool " * 10_000
        both = [Message.user([Text(long), picture]), Message.user([picture, Text(long)])]
        one = await t.create(Record(key="one"), both)
        two = await t.create(Record(key="two"), both[:1])
        await t.append(one.id, both[:1])

        for seq, left in ((1, both[1:] + both[:1]), (3, both[1:]), (2, [])):
            await t.erase(one.id, [seq])
            rows = await t.read(one.id)
            assert [row.entry for row in rows if row.entry is not None] == left
        assert [row.entry for row in await t.read(two.id)] == both[:1]

    @on_tenant("erase", "delete")
    async def test_a_large_part_survives_the_session_that_said_it_first(self, t: Tenant) -> None:
        (message,) = said("a long text that two sessions share " * 10_000)
        one = await t.create(Record(key="one"), [message])
        two = await t.create(Record(key="two"), [message])

        await t.delete(one.id)

        assert [row.entry for row in await t.read(two.id)] == [message]

    @on_tenant("erase")
    async def test_of_many_who_erase_at_once_one_did_it(self, t: Tenant) -> None:
        record = await session(t, "a", "b")

        done = await asyncio.gather(*(t.erase(record.id, [1]) for _ in range(10)))

        assert sorted(done) == [0] * 9 + [1]


class Clearing(Contract):
    @on_store("clear")
    async def test_clear_empties_a_session_and_keeps_its_record(self, place: Place) -> None:
        t = place.tenant
        place.clock.set()
        given = Record(
            key="chat:1",
            agent="x",
            settings=Settings(model="v:m"),
            metadata={"m": 1},  # type: ignore[arg-type]
            tools=({"name": "look"},),  # type: ignore[arg-type]
            counters={"turns": 3},  # type: ignore[arg-type]
            ttl=HOUR,
            parent=ids.new_id(),
        )
        record = await t.create(given, [*said("a", "b"), fold(1, 2)])
        moment = place.clock.forward()

        cleared = await t.clear(record.id)

        assert await t.load(record.key) == cleared
        for name in ("key", "id", "agent", "settings", "metadata", "tools", "ttl", "parent"):
            assert getattr(cleared, name) == getattr(record, name), name
        assert (cleared.created_at, cleared.updated_at) == (record.created_at, moment)
        assert (cleared.counters, cleared.folds, cleared.draft) == ({}, (), None)
        assert await t.read(record.id) == await t.tail(record.id) == ()

    @on_tenant("clear", "branch")
    async def test_there_is_one_branch_again(self, t: Tenant) -> None:
        record = await session(t, "a", "b")
        await t.branch(record.id, "other", parent="main", at=1)
        await t.append(record.id, said("c"), branch="other")

        cleared = await t.clear(record.id)

        assert (cleared.branch, cleared.branches[0].name, len(cleared.branches)) == (MAIN, MAIN, 1)
        assert cleared.branches[0].count == 0
        await refused(InvalidInput, t.read(record.id, "other"))
        await refused(InvalidInput, t.append(record.id, said("x"), branch="other"))
        head = cleared.branches[0].head
        await t.append(record.id, said("d"), after=head)
        await t.branch(record.id, "other", parent="main", at=head + 1)
        assert texts(await t.read(record.id, "other")) == ["d"]

    @on_tenant("clear")
    async def test_no_seq_is_used_again(self, t: Tenant) -> None:
        """However often; and positions begin anew."""
        record = await session(t, "a", "b")
        used = {1, 2}
        for number in range(3):
            await t.clear(record.id)
            done = await t.append(record.id, said("c", "d"))
            rows = await t.read(record.id)

            assert used.isdisjoint(seqs(rows)), number
            assert min(seqs(rows)) > max(used)
            assert [row.position for row in rows] == [0, 1]
            assert (done.messages, (await t.load(record.key)).seq) == (2, done.last)
            used |= set(seqs(rows))

    @on_tenant("clear")
    async def test_an_append_that_was_prepared_before_is_a_conflict(self, t: Tenant) -> None:
        """Whenever its writer last looked: at the head, before it, or when nothing was there."""
        record = await session(t)
        await t.append(record.id, said("a", "b"))

        cleared = await t.clear(record.id)

        async with unchanged(t, record.key):
            for seen in (0, 1, 2):
                await refused(Conflict, t.append(record.id, said("stale"), after=seen))
        await t.append(record.id, said("c"), after=cleared.branch_named("main").head)
        assert texts(await t.read(record.id)) == ["c"]

    @on_tenant("clear")
    async def test_also_when_there_was_nothing_to_clear(self, t: Tenant) -> None:
        record = await session(t)

        cleared = await t.clear(record.id)

        await refused(Conflict, t.append(record.id, said("stale"), after=0))
        await t.append(record.id, said("a"), after=cleared.branch_named("main").head)

    @on_tenant("clear")
    async def test_what_was_written_to_meanwhile_is_not_cleared(self, t: Tenant) -> None:
        """Whoever has summed up a conversation clears what he has read, and nothing since."""
        record = await session(t, "a")
        seen = await t.load(record.key)
        await t.append(record.id, said("b"))

        await refused(Conflict, t.clear(record.id, seen=seen))
        assert texts(await t.read(record.id)) == ["a", "b"]

        seen = await t.load(record.key)
        await t.update(record.id, {"agent": "another"})
        await refused(Conflict, t.clear(record.id, seen=seen))
        await refused(InvalidInput, t.clear(ids.new_id(), seen=seen))

        await t.clear(record.id, seen=await t.load(record.key))
        assert await t.read(record.id) == ()

    @on_tenant("clear", "begin")
    async def test_what_a_turn_runs_on_is_not_cleared_if_it_was_only_seen_idle(
        self, t: Tenant
    ) -> None:
        record = await session(t, "a")
        lease = await t.begin(record.id, "me", HOUR, {})

        await refused(Busy, t.clear(record.id, seen=await t.load(record.key)))

        await t.release(lease)
        await t.clear(record.id, seen=await t.load(record.key))

    @on_tenant("clear", "begin")
    async def test_a_running_turn_loses_its_lease(self, t: Tenant) -> None:
        """Its draft is gone, it can write nothing, and another may begin."""
        record = await session(t, "a")
        lease = await t.begin(record.id, "one", HOUR, {"say": "b"})
        await t.journal(lease, "so far")

        cleared = await t.clear(record.id)

        assert cleared.draft is None
        async with unchanged(t, record.key):
            await refused(LeaseLost, t.append(record.id, said("b"), lease=lease))
            await refused(LeaseLost, t.journal(lease, "late"))
            await refused(LeaseLost, t.renew(lease))
            await t.release(lease, drop=True)
        assert (await t.begin(record.id, "two", HOUR, {})).left is None

    @on_tenant("clear", "search")
    async def test_search_finds_nothing_of_it(self, t: Tenant) -> None:
        record = await session(t, f"say {RARE}")
        other = await session(t, f"say {RARE}", key="other")
        await t.clear(record.id)

        assert [hit.session_id for hit in (await t.search(RARE)).items] == [other.id]

    @on_store("clear")
    async def test_the_bytes_are_in_no_file(self, place: Place) -> None:
        """Those of the entries, and those of a draft."""
        t = place.tenant
        record = await session(t, f"say {RARE}", f"{RARE} " * 20_000)
        if "begin" not in place.store.unsupported:
            lease = await t.begin(record.id, "one", HOUR, {"say": f"input {RARE}"})
            await t.journal(lease, f"output {RARE}")

        await t.clear(record.id)

        assert _files_with(place.tmp_path, RARE) == []
        await place.store.close()
        assert _files_with(place.tmp_path, RARE) == []

    @on_tenant("clear", "verify")
    async def test_the_chain_verifies_after_clear(self, t: Tenant) -> None:
        record = await session(t, "a", "b")
        await t.clear(record.id)
        await t.append(record.id, said("c"))

        assert (await t.verify()).problems == ()
