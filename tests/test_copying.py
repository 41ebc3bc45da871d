"""Copying sessions from one store to another: everything arrives, or it is said what did not."""

import asyncio
import sqlite3
import tempfile
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import holdfast
from copies import IDS, PAIRS, STORES, Proxy, everything, pair, same
from faults.tier import pick
from holdfast import Message
from holdfast.entries import Call, Fold, Mark, UnknownEntry
from holdfast.errors import (
    Corrupt,
    InvalidInput,
    NotCopied,
    SessionNotFound,
    StoreUnavailable,
    Unsupported,
)
from holdfast.stores import Record, open_store, tally
from holdfast.stores.base import Store
from holdfast.stores.copying import copy
from holdfast.stores.values import Problem
from holdfast.testing.contract.harness import mark, said, session
from holdfast.testing.contract.transfers import varied

HOUR = timedelta(hours=1)
ALL_PAIRS = pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
MEMORY = ("memory", "memory")


@pytest.fixture(params=[1, 3, 2_000])
def step(request, monkeypatch):
    """How many entries a part has."""
    monkeypatch.setattr("holdfast.stores.replica.STEP", request.param)


# Everything arrives


def run(kinds, folder, scenario):
    """Run a scenario on two tenants."""

    async def main():
        async with asyncio.timeout(60), pair(kinds, folder) as (source, target):
            return await scenario(source, target)

    return asyncio.run(main())


@ALL_PAIRS
@pytest.mark.usefixtures("step")
def test_a_session_arrives_as_it_is(kinds, tmp_path):
    """Key, id, times, seqs, branches, folds, what is unknown, large or erased, named appends."""

    async def scenario(source, target):
        await varied(source)
        copied = await copy(source, target)

        assert (copied.sessions, copied.written) == (1, 11)
        assert await same(source, target)

    run(kinds, tmp_path, scenario)


@ALL_PAIRS
def test_what_was_done_is_not_done_again(kinds, tmp_path):
    """A second copy looks at the records, and writes nothing; `recheck` reads everything."""

    async def scenario(source, target):
        for number in range(5):
            await session(source, "a", "b", key=f"chat:{number}")
        await copy(source, target)
        again = await copy(source, target)
        checked = await copy(source, target, recheck=True)

        assert (again.sessions, again.unchanged, again.written) == (5, 5, 0)
        assert (checked.sessions, checked.written, checked.entries) == (5, 0, 10)
        assert await same(source, target)

    run(kinds, tmp_path, scenario)


CHANGES = {
    "append": lambda t, id: t.append(id, said("more")),
    "named": lambda t, id: t.append(id, [], once="late"),
    "erase": lambda t, id: t.erase(id, [1, 3]),
    "clear": lambda t, id: t.clear(id),
    "branch": lambda t, id: t.branch(id, "new", parent="main", at=2),
    "update": lambda t, id: t.update(id, {"metadata": {"x": 1.0}, "ttl": HOUR}),
    "begin": lambda t, id: _cut_off(t, id),
}


async def _cut_off(tenant, id):
    lease = await tenant.begin(id, "somebody", HOUR, {"say": "x"})
    await tenant.journal(lease, "half")
    await tenant.release(lease)


@ALL_PAIRS
@pytest.mark.parametrize("change", CHANGES)
def test_what_changed_since_is_brought_up_to_date(kinds, change, tmp_path):
    """Whatever was done to the source: added, taken away, set."""

    async def scenario(source, target):
        record = await session(source, "a", "b", "c", metadata={"x": 1})
        await copy(source, target)
        await CHANGES[change](source, record.id)
        copied = await copy(source, target)

        assert copied.unchanged == 0
        assert await same(source, target)

    run(kinds, tmp_path, scenario)


@ALL_PAIRS
def test_expired_sessions_and_all_tenants(kinds, tmp_path):
    """Given two stores, nobody is left out."""

    async def main():
        folders = (tmp_path / "one", tmp_path / "two")
        for folder in folders:
            folder.mkdir()
        one, two = (STORES[kind](folder) for kind, folder in zip(kinds, folders, strict=True))
        async with one, two:
            names = ["", "a", "a\0b", "é"]
            for name in names:
                await session(one.tenant(name), "a", key="chat:1")
            old = await session(one.tenant("a"), "b", key="old", ttl=timedelta(microseconds=1))
            copied = await copy(one, two)

            assert copied.sessions == 5
            assert await two.tenants() == tuple(sorted(names))
            for name in names:
                assert await same(one.tenant(name), two.tenant(name))
            await two.tenant("a").delete(old.id)
            assert (await copy(one.tenant("a"), two.tenant("a"), key="old")).sessions == 1

    asyncio.run(main())


# Random sessions

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.just("big\0é" * 9_000)
ENTRIES = st.lists(
    st.one_of(
        TEXTS.map(Message.user),
        TEXTS.map(lambda text: Message.assistant(text, extra={"unknown": [1, 1.0, None]})),
        TEXTS.map(lambda text: Mark(what="noted", data={"text": text})),
        st.integers(1, 9).map(lambda at: Fold(first=at, last=at + 2)),
        st.just(Call(model="vendor:model")),
        st.integers().map(
            lambda n: UnknownEntry(kind="vote", raw=f'{{"v":1,"vote": {n}}}'.encode())
        ),
    ),
    max_size=5,
)
SEEDS = st.integers(0, 10**6)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), SEEDS, ENTRIES),
        st.tuples(st.just("append"), SEEDS, ENTRIES),
        st.tuples(st.just("once"), SEEDS, ENTRIES),
        st.tuples(st.just("branch"), SEEDS, st.text("ab\0é", min_size=1, max_size=3)),
        st.tuples(st.just("erase"), SEEDS, st.none()),
        st.tuples(st.just("update"), SEEDS, st.dictionaries(TEXTS, TEXTS, max_size=2)),
        st.tuples(st.sampled_from(["clear", "cut off", "copy"]), SEEDS, st.none()),
    ),
    max_size=15,
)


async def perform(tenant, target, id, operation):
    """One random operation; what is refused is refused in both."""
    name, seed, value = operation
    record = (await tenant.export(id, limit=0)).record
    branch = record.branches[seed % len(record.branches)]
    if name in ("append", "once"):
        once = f"name {seed % 5}" if name == "once" else None
        await tenant.append(id, value, branch=branch.name, once=once)
    elif name == "branch":
        rows = await tenant.read(id, branch.name)
        at = rows[seed % len(rows)].seq if rows else 0
        await tenant.branch(id, value, parent=branch.name, at=at, use=seed % 2 == 0)
    elif name == "erase":
        rows = await tenant.read(id, branch.name)
        await tenant.erase(id, [row.seq for row in rows if row.seq % 3 == seed % 3])
    elif name == "update":
        await tenant.update(id, {"metadata": value, "counters": {"n": seed}})
    elif name == "clear":
        await tenant.clear(id)
    elif name == "cut off":
        await _cut_off(tenant, id)
    else:
        await copy(tenant, target)


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
@settings(max_examples=pick(10, 300), suppress_health_check=[HealthCheck.too_slow])
@given(
    operations=OPERATIONS, key=st.text(min_size=1, max_size=20), step=st.sampled_from([1, 4, 99])
)
@pytest.mark.usefixtures("uncovered")
def test_any_session_arrives_equal(kinds, operations, key, step):
    """However it was made, and however often it was copied on the way."""

    async def scenario(source, target):
        try:
            record = await source.create(Record(key=key))
        except InvalidInput:
            return
        for operation in operations:
            try:
                await perform(source, target, record.id, operation)
            except (InvalidInput, holdfast.errors.OnceMismatch):
                pass
        await copy(source, target)

        assert await same(source, target)

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("holdfast.stores.replica.STEP", step)
        run(kinds, Path(folder), scenario)


# What is chosen


def test_one_session_and_those_that_a_list_would_show(tmp_path):
    async def scenario(source, target):
        a = await session(source, "a", key="a", agent="x", metadata={"n": 1})
        await session(source, "b", key="b", agent="x", metadata={"n": 2})
        await session(source, "c", key="c", agent="y", metadata={"n": 1})

        async def arrived(**chosen):
            await copy(source, target, **chosen)
            found = sorted(await everything(target))
            for each in (await target.list()).items:
                await target.delete(each.id)
            return found

        assert await arrived(key="b") == ["b"]
        assert await arrived(agent="x") == ["a", "b"]
        assert await arrived(metadata={"n": 1}) == ["a", "c"]
        assert await arrived(agent="x", metadata={"n": 1}) == ["a"]
        assert await arrived(until=a.updated_at + timedelta(microseconds=1)) == ["a"]
        assert await arrived(since=a.updated_at + timedelta(microseconds=1)) == ["b", "c"]
        with pytest.raises(SessionNotFound):
            await copy(source, target, key="nobody")

    run(MEMORY, tmp_path, scenario)


def test_arguments_that_make_no_sense(tmp_path):
    async def scenario(source, target):
        async with open_store("memory:") as store:
            with pytest.raises(InvalidInput, match="two stores, or two tenants"):
                await copy(source, store)
        with pytest.raises(InvalidInput, match="on_conflict"):
            await copy(source, target, on_conflict="overwrite")
        with pytest.raises(InvalidInput):
            await copy(source, target, key="")

    run(MEMORY, tmp_path, scenario)


def test_a_store_that_cannot_tell_its_tenants_says_so():
    async def main():
        async with open_store("memory:") as store:
            with pytest.raises(Unsupported, match="tenants"):
                await Store.tenants(store)

    asyncio.run(main())


# Conflicts


async def _one_of_each(source, target):
    """A good session, one whose key is another's in the target, and one that both have written."""
    await session(source, "good", key="good")
    await session(source, "ours", key="taken")
    await session(target, "theirs", key="taken")
    both = await session(source, "a", key="both")
    await copy(source, target, key="both")
    await source.append(both.id, said("there"))
    await target.append(both.id, said("here"))


@ALL_PAIRS
@pytest.mark.parametrize("on_conflict", ["error", "skip"])
def test_what_the_target_has_is_never_overwritten(kinds, on_conflict, tmp_path):
    """It is told at the end, with its place, after everything else was copied."""

    async def scenario(source, target):
        await _one_of_each(source, target)
        before = await everything(target)
        if on_conflict == "error":
            with pytest.raises(NotCopied) as caught:
                await copy(source, target)
            copied = caught.value.copied
            assert caught.value.problems == copied.conflicts
        else:
            copied = await copy(source, target, on_conflict="skip")

        assert {(each.key, each.seq) for each in copied.conflicts} == {("taken", 0), ("both", 2)}
        after = await everything(target)
        assert after.pop("good") == (await everything(source))["good"]
        assert after == before

    run(kinds, tmp_path, scenario)


def test_a_session_that_went_on_in_the_target_is_no_conflict(tmp_path):
    """As long as the source has nothing new: it has been moved."""

    async def scenario(source, target):
        record = await session(source, "a")
        await copy(source, target)
        await target.append(record.id, said("b"))
        before = await everything(target)
        copied = await copy(source, target, recheck=True)

        assert (copied.ahead, copied.sessions, copied.conflicts) == (1, 0, ())
        assert await everything(target) == before

    run(MEMORY, tmp_path, scenario)


def test_the_same_session_by_other_means_is_no_conflict(tmp_path):
    """A backup holds the same sessions, though nobody has copied them."""

    async def main():
        async with open_store(f"sqlite:{tmp_path}/one.db") as one:
            record = await varied(one.tenant())
            await one.backup(tmp_path / "two.db")
            async with open_store(f"sqlite:{tmp_path}/two.db") as two:
                copied = await copy(one, two)
                assert (copied.unchanged, copied.written) == (1, 0)
                await one.tenant().append(record.id, said("more"))
                with pytest.raises(NotCopied):
                    await copy(one, two)

    asyncio.run(main())


# Damage


def _break(path, statement, *values):
    db = sqlite3.connect(path)
    with db:
        db.execute(statement, values)
    db.close()


BROKEN = {
    "a flipped bit": "UPDATE entries SET payload = CAST(replace(payload, 'b', 'c') AS BLOB) "
    "WHERE seq = 2",
    "an entry is missing": "DELETE FROM entries WHERE seq = 2",
    "the last one is": "DELETE FROM entries WHERE seq = 3",
    "the record": "UPDATE documents SET body = CAST(body || ' ' AS BLOB)",
}


@pytest.mark.parametrize("statement", BROKEN.values(), ids=BROKEN)
def test_a_damaged_session_does_not_stop_the_others(statement, tmp_path):
    """It is told at the end, with its place; damage does not travel."""

    async def scenario(source, target):
        bad = await source.create(Record(key="bad"), [*said("a"), mark("b"), *said("c")])
        joint = "AND" if "WHERE" in statement else "WHERE"
        its = "session = (SELECT number FROM sessions WHERE id = ?)"
        _break(tmp_path / "one" / "chats.db", f"{statement} {joint} {its}", bad.id)
        for name in "xyz":
            await session(source, "fine", key=name)
        with pytest.raises(NotCopied, match="'bad'") as caught:
            await copy(source, target)

        (problem,) = caught.value.copied.failed
        assert problem.key == "bad"
        if "seq" in statement:
            assert "entry" in problem.what
        assert caught.value.copied.sessions == 3
        assert {"x", "y", "z"} <= set(await everything(target))

    run(("sqlite", "memory"), tmp_path, scenario)


# Targets that do not keep what they are given: each is found out by reading back.


class DropsAMark(Proxy):
    def operation(self, name, args, rest):
        if name == "restore":
            kept = tuple(each for each in args[0].entries if each.kind != "mark")
            args = (replace(args[0], entries=kept),)
        return super().operation(name, args, rest)


class Renumbers(Proxy):
    def operation(self, name, args, rest):
        if name == "restore":
            shifted = [replace(each, seq=each.seq + 1) for each in args[0].entries]
            args = (replace(args[0], entries=tuple(shifted)),)
        return super().operation(name, args, rest)


class ChangesAWord(Proxy):
    def operation(self, name, args, rest):
        if name == "restore":
            entries = [
                each
                if each.kind != "message" or each.entry is None
                else replace(each, entry=each.entry.replace(extra={"n": 1.0}))
                for each in args[0].entries
            ]
            args = (replace(args[0], entries=tuple(entries)),)
        return super().operation(name, args, rest)


class ForgetsNames(Proxy):
    def operation(self, name, args, rest):
        if name == "restore":
            args = (replace(args[0], named=()),)
        return super().operation(name, args, rest)


class ChangesTheRecord(Proxy):
    def operation(self, name, args, rest):
        if name == "restore":
            record = args[0].record
            args = (replace(args[0], record=record.replace(metadata={"n": True})),)
        return super().operation(name, args, rest)


FAULTS = {
    DropsAMark: "entry 2",
    Renumbers: "entry 1",
    ChangesAWord: "entry 1",
    ForgetsNames: "named append 'turn'",
    ChangesTheRecord: "the record",
}


async def _to_be_spoiled(source):
    record = await source.create(
        Record(key="k", metadata={"n": 1}), [Message.user("a", extra={"n": 1}), mark()]
    )
    await source.append(record.id, said("b"), once="turn")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_target_that_keeps_something_else_is_found_out(fault, tmp_path):
    """The difference is told with its place, and the copy is not called whole."""

    async def scenario(source, target):
        await _to_be_spoiled(source)
        with pytest.raises(NotCopied, match=FAULTS[fault]):
            await copy(source, fault(target))

        origin = (await target.export((await target.list()).items[0].id)).origin
        assert fault is ChangesTheRecord or not origin.is_whole

    run(MEMORY, tmp_path, scenario)


@pytest.mark.parametrize("fault", [DropsAMark, ChangesAWord])
def test_without_reading_back_it_would_not_be(fault, tmp_path, monkeypatch):
    """The control: a copy that compares nothing is content, and the judge of these tests is not."""
    monkeypatch.setattr("holdfast.stores.replica.compare", lambda part, back: None)

    async def scenario(source, target):
        await _to_be_spoiled(source)
        await copy(source, fault(target))

        with pytest.raises((AssertionError, Corrupt)):
            await same(source, target)

    run(MEMORY, tmp_path, scenario)


class Unreachable(Proxy):
    def operation(self, name, args, rest):
        if name == "restore":
            raise StoreUnavailable("the target", "it is gone")
        return super().operation(name, args, rest)


def test_a_store_that_cannot_be_reached_ends_the_copy(tmp_path):
    """No other session would fare better."""

    async def scenario(source, target):
        for key in "abc":
            await session(source, "a", key=key)
        with pytest.raises(StoreUnavailable):
            await copy(source, Unreachable(target))

    run(MEMORY, tmp_path, scenario)


# Turns, and progress


def test_a_running_turn_is_told_and_stays(tmp_path):
    """A draft in the target would say that the turn was cut off, and have it run twice."""

    async def scenario(source, target):
        record = await session(source, "a")
        lease = await source.begin(record.id, "somebody", HOUR, {"say": "x"})
        for _ in range(2):
            copied = await copy(source, target)
            assert copied.moved == (
                Problem(record.key, "", 0, "a turn runs on it, which stays where it is"),
            )
            assert (await target.load(record.key)).draft is None
        await source.release(lease)
        copied = await copy(source, target)

        assert copied.moved == ()
        assert await same(source, target)

    run(MEMORY, tmp_path, scenario)


@pytest.mark.usefixtures("step")
def test_progress_is_told_at_a_bounded_rate(tmp_path, monkeypatch):
    """Numbers only grow, end at their totals, and come no faster than promised."""
    now = [0.0]

    def clock():
        now[0] += 0.03
        return now[0]

    monkeypatch.setattr(tally.time, "monotonic", clock)
    told = []

    async def scenario(source, target):
        for number in range(20):
            await session(source, *"abcde", key=f"chat:{number}")
        await copy(source, target, on_progress=lambda each: told.append((now[0], each)))

    run(MEMORY, tmp_path, scenario)

    times, steps = [at for at, _ in told], [each for _, each in told]
    assert all(two - one >= 0.1 for one, two in pairwise(times[:-1]))
    assert [each.entries for each in steps] == sorted(each.entries for each in steps)
    assert {(each.sessions_total, each.entries_total) for each in steps} == {(20, 100)}
    assert steps[-1][:4] == (20, 20, 100, 100)


def test_a_manager_copies_its_sessions(tmp_path):
    """To a URL or an open store."""

    async def main():
        async with holdfast.open("memory:", tenant="x") as sessions:
            first = await sessions.get_or_create("chat:1")
            await first.append(Message.user("a"))
            assert (await sessions.copy(f"sqlite:{tmp_path}/chats.db")).sessions == 1
            async with open_store(f"sqlite:{tmp_path}/chats.db") as store:
                assert (await sessions.copy(store)).unchanged == 1
                assert await everything(store.tenant("x"))

    asyncio.run(main())
