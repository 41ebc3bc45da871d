"""A session whole, outside of any store: out of one, into another, and back."""

import asyncio
from datetime import UTC, datetime

import pytest

import holdfast
from holdfast import Message, ids
from holdfast.archive import archive_of, derived_id, put, take
from holdfast.entries import Call, Fold, Mark
from holdfast.errors import Conflict, Corrupt, DuplicateSession, InvalidInput
from holdfast.stores import Record, open_store
from holdfast.testing.contract.transfers import varied

LONG_AGO = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture(params=["memory", "sqlite", "jsonl"])
def url(request, tmp_path):
    return {
        "memory": "memory:",
        "sqlite": f"sqlite:{tmp_path}/chats.db",
        "jsonl": f"jsonl:{tmp_path}/sessions",
    }[request.param]


def run(scenario, url="memory:"):
    """Run a scenario on a store of memory and one at a URL."""

    async def main():
        async with open_store("memory:") as one, open_store(url) as other:
            return await scenario(one.tenant(), other.tenant())

    return asyncio.run(main())


async def talk(tenant, key="cli:direct", *texts):
    said = [Message.user(text) for text in texts or ("one", "two")]
    return await tenant.create(Record(key=key), said)


def test_a_session_arrives_with_everything_it_has(url):
    """
    Branches, folds, receipts, marks, kinds of entries that nobody knows, named appends and a turn
    that was cut off: what is taken from the other store is equal to what was put there.
    """

    async def scenario(one, other):
        record = await varied(one)
        archive = await take(one, record.id)

        restored = await put(other, archive)

        assert restored.outcome == "new"
        assert len({type(each.entry) for each in archive.entries}) >= 4
        assert len(archive.record.branches) > 1
        assert await take(other, record.id) == archive
        assert (await other.verify()).problems == ()

    run(scenario, url)


def test_an_archive_that_is_put_twice_is_there_already(url):
    async def scenario(one, other):
        record = await varied(one)
        archive = await take(one, record.id)
        await put(other, archive)
        before = await take(other, record.id)

        assert (await put(other, archive)).outcome == "there"
        assert (await put(one, archive)).outcome == "there"
        assert await take(other, record.id) == before

    run(scenario, url)


def test_a_later_archive_adds_what_is_new(url):
    async def scenario(one, other):
        record = await talk(one)
        early = await take(one, record.id)
        await put(other, early)
        await one.append(record.id, [Message.user("three")])
        await one.branch(record.id, "again", parent="main", at=1)
        late = await take(one, record.id)

        assert (await put(other, late)).outcome == "added"
        assert await take(other, record.id) == late
        assert (await put(other, early)).outcome == "there"
        assert await take(other, record.id) == late

    run(scenario, url)


def test_what_was_erased_since_is_erased_where_it_is_brought_up_to_date():
    async def scenario(one, other):
        record = await talk(one, "cli:direct", "secret", "two")
        await put(other, await take(one, record.id))
        await one.erase(record.id, [1])

        assert (await put(other, await take(one, record.id))).outcome == "added"
        assert (await other.read(record.id))[0].entry is None

    run(scenario)


def test_what_was_erased_does_not_come_back_by_itself():
    """An old archive holds what was erased; putting it back under the same key is refused."""

    async def scenario(one, _):
        record = await talk(one, "cli:direct", "secret", "two")
        archive = await take(one, record.id)
        await one.erase(record.id, [1])

        with pytest.raises(DuplicateSession):
            await put(one, archive)

        assert (await one.read(record.id))[0].entry is None

    run(scenario)


def test_a_session_that_has_gone_on_here_is_not_touched(url):
    async def scenario(one, other):
        record = await talk(one)
        await put(other, await take(one, record.id))
        await other.append(record.id, [Message.user("here")])
        await one.append(record.id, [Message.user("there")])
        before = await take(other, record.id)

        with pytest.raises(DuplicateSession):
            await put(other, await take(one, record.id))

        assert await take(other, record.id) == before

    run(scenario, url)


def test_a_key_of_another_session_is_not_touched(url):
    async def scenario(one, other):
        record = await talk(one)
        theirs = await talk(other, "cli:direct", "something else")
        archive = await take(one, record.id)

        with pytest.raises(DuplicateSession):
            await put(other, archive)

        assert (await other.load("cli:direct")).id == theirs.id
        assert (await put(other, archive, key="cli:mine")).outcome == "new"
        assert (await put(other, archive, key="cli:mine")).outcome == "there"
        assert (await put(one, archive, key="cli:copy")).outcome == "new"

    run(scenario, url)


def test_a_dry_run_writes_nothing(url):
    async def scenario(one, other):
        record = await talk(one)
        archive = await take(one, record.id)

        assert (await put(other, archive, dry_run=True)).outcome == "new"
        assert (await other.list()).items == ()

        await put(other, archive)
        await one.append(record.id, [Message.user("three")])
        assert (await put(other, await take(one, record.id), dry_run=True)).outcome == "added"
        assert await take(other, record.id) == archive

    run(scenario, url)


def test_what_is_made_of_a_child_is_nobodys_child():
    async def scenario():
        async with holdfast.open("memory:") as sessions:
            parent = await sessions.get_or_create("cli:direct")
            child = await parent.child("helper")
            archive = await sessions.export(child.session.key)

            await sessions.restore(archive, key="cli:own")

            assert len(await parent.children()) == 1
            assert not set((await sessions.get("cli:own")).metadata) & {"child_of", "child_number"}

    asyncio.run(scenario())


def test_what_is_written_meanwhile_is_in_the_archive_whole(monkeypatch):
    """The archive is of one moment: one during which nobody has written."""

    async def scenario(one, _):
        record = await talk(one)
        real = one.names
        left = [2]

        async def names(*arguments):
            if left[0]:
                left[0] -= 1
                await one.append(record.id, [Message.user("meanwhile")])
            return await real(*arguments)

        monkeypatch.setattr(one, "names", names)
        archive = await take(one, record.id)
        assert len(archive.entries) == 4
        assert archive.record.seq == 4

        left[0] = 1_000
        with pytest.raises(Conflict):
            await take(one, record.id)

    run(scenario)


def test_a_running_turn_stays_where_it_is():
    async def scenario(one, other):
        from datetime import timedelta

        record = await talk(one)
        lease = await one.begin(record.id, "me", timedelta(seconds=60), {"text": "hi"})
        assert (await take(one, record.id)).record.draft is None

        await one.release(lease)
        archive = await take(one, record.id)
        assert archive.record.draft is not None
        await put(other, archive)
        assert (await other.load("cli:direct")).draft.input == {"text": "hi"}

    run(scenario)


def test_damage_is_not_taken(tmp_path):
    """A flipped bit in the store: Corrupt, and no archive. Without it, there is one."""
    path = tmp_path / "chats.db"

    async def write():
        async with holdfast.open(f"sqlite:{path}") as sessions:
            session = await sessions.get_or_create("cli:direct")
            await session.append(Message.user("a sentence to be damaged"))

    async def read():
        async with holdfast.open(f"sqlite:{path}") as sessions:
            return await sessions.export("cli:direct")

    asyncio.run(write())
    assert asyncio.run(read()).messages()[0].text == "a sentence to be damaged"

    data = path.read_bytes()
    path.write_bytes(data.replace(b"to be damaged", b"to be demaged"))
    with pytest.raises(Corrupt):
        asyncio.run(read())


def test_the_line_of_a_branch_is_what_was_said_on_it():
    async def scenario(one, _):
        record = await talk(one, "cli:direct", "one", "two", "three")
        await one.branch(record.id, "other", parent="main", at=2)
        await one.append(record.id, [Message.user("else")], branch="other")
        await one.append(record.id, [Message.user("four")], branch="main")

        archive = await take(one, record.id)

        assert [m.text for m in archive.messages()] == ["one", "two", "else"]
        on_main = archive._replace(record=archive.record.replace(branch="main"))
        assert [m.text for m in on_main.messages()] == ["one", "two", "three", "four"]

    run(scenario)


def test_the_same_conversation_from_elsewhere_has_the_same_id():
    entries = [
        Message.user("hello", id="a", timestamp=LONG_AGO),
        Mark(what="x"),
        Fold(first=1, last=1),
        Call(model="m"),
        Message.assistant("hi", id="b", timestamp=LONG_AGO),
    ]

    one, two = (
        archive_of("k", entries[:count], created_at=LONG_AGO, updated_at=LONG_AGO)
        for count in (3, 5)
    )

    assert one.record.id == two.record.id
    assert ids.time_of(one.record.id) == LONG_AGO
    assert [each.position for each in two.entries] == [0, 0, 0, 0, 1]
    assert derived_id(LONG_AGO, "a", "b") != derived_id(LONG_AGO, "ab")

    async def scenario(tenant, _):
        assert (await put(tenant, one)).outcome == "new"
        assert (await put(tenant, two)).outcome == "added"
        assert (await put(tenant, two)).outcome == "there"
        assert await take(tenant, two.record.id) == two

    run(scenario)


@pytest.mark.parametrize(
    "change",
    [
        {"seq": 7, "head": 7, "count": 3},
        {"head": 1},
        {"count": 0},
        {"fork": 1},
        {"name": "other"},
        {"branch": "other"},
    ],
    ids=str,
)
def test_an_archive_that_makes_no_sense_is_refused_and_nothing_is_made(change):
    """What its branches say does not follow from its entries. Unchanged, it is taken."""
    said = [Message.user("one"), Message.user("two")]
    right = archive_of("k", said, created_at=LONG_AGO, updated_at=LONG_AGO)
    record = right.record
    branch = record.branches[0].replace(
        **{n: v for n, v in change.items() if n not in ("seq", "branch")}
    )
    own = {n: v for n, v in change.items() if n in ("seq", "branch")}
    wrong = right._replace(record=record.replace(branches=(branch,), **own))

    async def scenario(tenant, _):
        with pytest.raises(InvalidInput):
            await put(tenant, wrong)
        assert (await tenant.list()).items == ()
        await put(tenant, right)
        assert (await tenant.verify()).entries == 2

    run(scenario)
