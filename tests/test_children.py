"""Children of a session: made, numbered, merged or discarded exactly once, and nobody else's."""

import asyncio
import random
import sys
from datetime import timedelta
from pathlib import Path

import pytest

import holdfast
from cut_off import CutOff, Watched, cut_off_everywhere
from holdfast import branching, children, forking, ids, notes, outline
from holdfast.entries import Mark
from holdfast.errors import (
    Busy,
    Conflict,
    InvalidInput,
    SessionNotFound,
    TooLarge,
)
from holdfast.ids import IdSource
from holdfast.messages import Message, ToolCall
from holdfast.settings import Settings
from holdfast.stores import Record
from holdfast.stores.values import Limits
from processes import SAY, Script

HOUR = timedelta(hours=1)
TESTS = Path(__file__).parent
SILENT = (
    "[Isolated sub-agent scout ended without a visible assistant result: empty_after_tool_use.]"
)
DISCARDED = "[Isolated sub-agent scout discarded: too slow. Raw child history discarded.]"


@pytest.fixture(params=["memory", "sqlite"])
def url(request, tmp_path):
    return "memory:" if request.param == "memory" else f"sqlite:{tmp_path}/chats.db"


def run(scenario, url="memory:", **options):
    async def main():
        async with holdfast.open_store(url, **options) as store:
            return await scenario(store.tenant())

    return asyncio.run(main())


def asks(id, *more):
    calls = [ToolCall(id=each, name="look", arguments="{}") for each in (id, *more)]
    return Message.assistant(tool_calls=calls)


async def parent_of(tenant, *entries, key="k", **fields):
    said = entries or (Message.user("Find tea."), Message.assistant("I will ask."))
    return await tenant.create(Record(key=key, **fields), list(said))


async def child_of(tenant, record, *messages, **options):
    made = await children.create(tenant, record, "scout", **options)
    if messages:
        await tenant.append(made.id, list(messages))
    return made


WORK = (
    Message.user("Look for tea."),
    asks("c1"),
    Message.tool("Darjeeling, Assam", "c1"),
    Message.assistant("There are two: Darjeeling and Assam."),
)


async def messages(tenant, record):
    now = await tenant.load(record.key)
    return [each.entry for each in await tenant.read(now.id, now.branch, kind="message")]


async def texts(tenant, record):
    return [message.text for message in await messages(tenant, record)]


# ---- making ----


def test_a_child_is_a_session_of_its_own_under_the_key_of_its_parent(url):
    """S1-55: key `<parent>:child:<agent>:<unix nanos>`; the record says whose it is."""

    async def scenario(tenant):
        settings = Settings(model="fake:one")
        record = await parent_of(tenant, settings=settings, ttl=HOUR, tools=({"name": "look"},))
        before = ids.now_us() * 1_000

        child = await children.create(tenant, record, "scout")

        stem, nanos = child.key.rsplit(":", 1)
        assert stem == "k:child:scout"
        assert before <= int(nanos) <= ids.now_us() * 1_000
        assert child.record == await tenant.load(child.key)
        assert (child.record.parent, child.record.metadata["child_of"]) == (record.id, record.id)
        assert (child.agent, child.number, child.state) == ("scout", 1, "open")
        assert child.record.settings == settings
        assert child.record.ttl == HOUR
        assert child.record.tools == record.tools
        assert await tenant.read(child.id) == ()

    run(scenario, url)


def test_a_child_may_have_settings_and_tools_of_its_own(url):
    async def scenario(tenant):
        record = await parent_of(tenant, settings=Settings(model="fake:one"))

        child = await children.create(
            tenant, record, "scout", settings=Settings(model="fake:two"), tools=[{"name": "dig"}]
        )

        assert child.record.settings == Settings(model="fake:two")
        assert child.record.tools == ({"name": "dig"},)

    run(scenario, url)


def test_a_child_has_its_own_history_and_its_parent_sees_nothing_of_it(url):
    """S2-73, S2-115: each subagent has its own session and history."""

    async def scenario(tenant):
        record = await parent_of(tenant)
        before = await tenant.read(record.id)
        one = await child_of(tenant, record, *WORK)
        two = await child_of(tenant, record, Message.user("Look for coffee."))

        assert await tenant.read(record.id) == before
        assert await messages(tenant, one.record) == list(WORK)
        assert await texts(tenant, two.record) == ["Look for coffee."]

    run(scenario, url)


def test_children_made_in_the_same_nanosecond_have_keys_of_their_own(url):
    """S1-55: a hundred at once, by a clock that stands still. S2-74: numbers start at 1."""

    async def scenario(tenant):
        record = await parent_of(tenant)
        with ids.using(IdSource(clock_ns=lambda: 1_700_000_000_123_456_789)):
            made = await asyncio.gather(
                *(children.create(tenant, record, "scout") for _ in range(100))
            )

        assert len({child.key for child in made}) == 100
        assert sorted(child.number for child in made) == list(range(1, 101))

    run(scenario, url)


def test_numbers_are_counted_for_each_session(url):
    """S2-74: ids per owner start at 1, and are not given again, not even after a clear."""

    async def scenario(tenant):
        one, two = await parent_of(tenant, key="one"), await parent_of(tenant, key="two")
        numbers = [(await child_of(tenant, record)).number for record in (one, one, two)]
        await tenant.clear(one.id)
        numbers.append((await child_of(tenant, one)).number)

        assert numbers == [1, 2, 1, 3]

    run(scenario, url)


@pytest.mark.parametrize(
    ("agent", "options"),
    [
        ("", {}),
        (None, {}),
        ("scout", {"inherit": -1}),
        ("scout", {"inherit": True}),
        ("scout", {"inherit": 1, "messages_max": 1.0}),
        ("\ud800", {}),
    ],
)
def test_what_cannot_be_a_child_is_refused(url, agent, options):
    async def scenario(tenant):
        record = await parent_of(tenant)

        with pytest.raises(InvalidInput):
            await children.create(tenant, record, agent, **options)

        assert await children.children(tenant, record) == ()

    run(scenario, url)


def test_a_key_that_would_be_too_long_is_refused(url):
    async def scenario(tenant):
        record = await parent_of(tenant, key="k" * 1_000)

        with pytest.raises(TooLarge):
            await children.create(tenant, record, "scout")

    run(scenario, url)


# ---- inheriting ----


def test_a_child_inherits_the_last_messages_that_stand_by_themselves(url):
    """S1-55: the last n, up to a cap; never a result without its call, nor the reverse."""

    async def scenario(tenant):
        said = (Message.user("q"), asks("c1", "c2"), Message.tool("1", "c1"))
        said += (Message.user("mind the rain", synthetic="steer"), Message.tool("2", "c2"))
        said += (Message.assistant("a"), asks("c3"))
        record = await parent_of(tenant, *said)

        async def inherited(**options):
            return await messages(tenant, (await child_of(tenant, record, **options)).record)

        assert await inherited(inherit=7) == list(said[:6])
        assert await inherited(inherit=100) == list(said[:6])
        assert await inherited(inherit=5) == [said[3], said[5]]
        assert await inherited(inherit=3) == [said[5]]
        assert await inherited(inherit=1) == []
        assert await inherited(inherit=0) == []
        assert await inherited(inherit=7, messages_max=2) == [said[5]]

    run(scenario, url)


def stands_alone(found):
    """Calls without a result behind them, and results without a call before them, by their ids."""
    called, answered, orphans = set(), set(), set()
    for message in found:
        called |= {call.id for call in message.calls}
        for result in message.results:
            answered.add(result.call_id)
            orphans |= {result.call_id} - called
    return orphans | (called - answered)


def test_no_end_of_any_history_is_inherited_with_half_a_pair(uncovered):
    """Several calls in a message, results in any order, some missing, words between them."""
    cut = 0
    for seed in range(300):
        rng = random.Random(seed)
        history, open_calls = [], []
        for number in range(rng.randrange(1, 25)):
            kind = rng.random()
            if kind < 0.3:
                names = [f"c{number}-{each}" for each in range(rng.randrange(1, 4))]
                history.append(asks(*names))
                open_calls += names
            elif kind < 0.7 and open_calls:
                id = open_calls.pop(rng.randrange(len(open_calls)))
                history.append(Message.tool("found", id))
            else:
                history.append(Message.user(f"q{number}"))
        for start in range(len(history)):
            end = history[start:]
            kept = children.paired(end)
            assert not stands_alone(kept)
            plain = [each for each in end if not each.calls and not each.results]
            assert [each for each in kept if each in plain] == plain
            if not stands_alone(end):
                assert kept == tuple(end)
            cut += bool(stands_alone(end))

    assert cut > 500


def test_what_was_inherited_begins_in_the_middle_of_a_branch(url):
    """The branch in use is the one that is inherited from."""

    async def scenario(tenant):
        record = await parent_of(tenant)
        record = (await branching.revert(tenant, record, 0)).record
        await tenant.append(record.id, [Message.user("other")], branch=record.branch)

        child = await child_of(tenant, record, inherit=5)

        assert await texts(tenant, child.record) == ["other"]

    run(scenario, url)


# ---- merging ----


def test_a_child_is_merged_as_the_last_thing_it_said(url):
    """S1-55: the default is the last non-empty assistant message, as one assistant message; the
    child's own turns never come to the parent with it."""

    async def scenario(tenant):
        record = await parent_of(tenant)
        empty = [Message.assistant(" \n"), asks("c9"), Message.tool("nothing", "c9")]
        child = await child_of(tenant, record, *WORK, *empty)

        done = await child.merge()

        said = await messages(tenant, record)
        assert [each.text for each in said[2:]] == ["There are two: Darjeeling and Assam."]
        assert (said[2].role, said[2].author, said[2].tool_calls) == ("assistant", "scout", ())
        assert (done.first, done.last, done.branch) == (3, 3, "main")
        assert len(await outline.turns(tenant, record)) == 1
        assert child.state == "merged"
        assert await messages(tenant, child.record) == [*WORK, *empty]

    run(scenario, url)


@pytest.mark.parametrize("whole", [False, True])
def test_a_second_merge_is_an_error(url, whole):
    """S1-55: by the same object, and by one who finds the child later."""

    async def scenario(tenant):
        record = await parent_of(tenant)
        child = await child_of(tenant, record, *WORK)
        await child.merge(whole=whole)
        before = await messages(tenant, record)
        (found,) = await children.children(tenant, record)

        for each in (child, found):
            with pytest.raises(InvalidInput, match="merged already"):
                await each.merge(whole=whole)
            with pytest.raises(InvalidInput, match="merged already"):
                await each.discard("too slow")

        assert await messages(tenant, record) == before

    run(scenario, url)


def test_a_whole_merge_brings_everything_said_in_the_child(url):
    """S1-55: not what it inherited, nor what the system told it; and none of it is a turn of the
    parent's user."""

    async def scenario(tenant):
        record = await parent_of(tenant)
        told = Message.system("You are a scout.")
        child = await child_of(tenant, record, told, *WORK, inherit=2)
        await child.merge(whole=True)

        said = (await messages(tenant, record))[2:]
        assert [each.id for each in said] == [each.id for each in WORK]
        assert [each.text for each in said] == [each.text for each in WORK]
        assert {each.author for each in said} == {"scout"}
        assert said[0].synthetic == "child"
        assert said[1].calls == WORK[1].calls
        assert len(await outline.turns(tenant, record)) == 1

    run(scenario, url)


def test_what_a_child_inherited_is_not_its_result(url):
    """The parent's own last words do not come back as the child's."""

    async def scenario(tenant):
        record = await parent_of(tenant)
        child = await child_of(tenant, record, Message.user("Look."), inherit=2)
        await child.merge()

        assert (await texts(tenant, record))[2:] == [SILENT]

    run(scenario, url)


def test_what_was_said_on_a_branch_of_the_child_is_what_counts(url):
    async def scenario(tenant):
        record = await parent_of(tenant)
        child = await child_of(tenant, record, *WORK, inherit=2)
        other = (await branching.revert(tenant, await tenant.load(child.key), 1)).record
        await tenant.append(child.id, [Message.assistant("Only Assam.")], branch=other.branch)

        await child.merge(whole=True)

        assert (await texts(tenant, record))[2:] == ["Only Assam."]

    run(scenario, url)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_summary_can_be_made_of_what_was_said(url, is_async):
    async def scenario(tenant):
        def summarize(said):
            return f"{len(said)} messages, the last: {said[-1].text}"

        async def summarize_later(said):
            await asyncio.sleep(0)
            return summarize(said)

        record = await parent_of(tenant)
        child = await child_of(tenant, record, *WORK, inherit=2)

        await child.merge(summarize=summarize_later if is_async else summarize)

        (said,) = (await messages(tenant, record))[2:]
        assert said.text == "4 messages, the last: There are two: Darjeeling and Assam."
        assert (said.role, said.author, said.synthetic) == ("assistant", "scout", "summary")
        with pytest.raises(InvalidInput):
            await child.merge(whole=True, summarize=summarize)
        with pytest.raises(InvalidInput, match="merged already"):
            await child.merge(summarize=lambda _: pytest.fail("nobody pays for it twice"))

    run(scenario, url)


@pytest.mark.parametrize("whole", [False, True])
def test_a_child_that_said_nothing_leaves_a_note(url, whole):
    """S1-55: the parent's model is told that there is no result, and not left to guess."""

    async def scenario(tenant):
        record = await parent_of(tenant)
        child = await child_of(tenant, record, *([] if whole else WORK[:3]))
        await child.merge(whole=whole)

        (said,) = (await messages(tenant, record))[2:]
        assert (said.text, said.author, said.starts_turn) == (SILENT, "scout", False)

    run(scenario, url)


def test_a_summary_that_fails_or_a_parent_that_is_gone_leaves_the_child_to_be_merged(url):
    """B47: a child is not marked as merged before its parent has it."""

    async def scenario(tenant):
        def fail(said):
            raise RuntimeError(len(said))

        record = await parent_of(tenant)
        child = await child_of(tenant, record, *WORK)
        with pytest.raises(RuntimeError):
            await child.merge(summarize=fail)
        assert (await tenant.load(child.key)).metadata.get("child_state") is None
        await child.merge()
        assert (await texts(tenant, record))[2:] == [WORK[-1].text]

        orphan = await child_of(tenant, record, *WORK)
        await tenant.delete(record.id)
        with pytest.raises(SessionNotFound):
            await orphan.merge()
        assert (await tenant.load(orphan.key)).metadata.get("child_state") is None
        await orphan.discard("too slow")
        with pytest.raises(SessionNotFound):
            await tenant.load(orphan.key)

    run(scenario, url)


def test_what_is_too_much_for_the_parent_can_still_be_summed_up(url):
    """B47: a failed append loses nothing."""

    async def scenario(tenant):
        record = await parent_of(tenant)
        child = await child_of(tenant, record, *WORK)
        await tenant.append(child.id, list(WORK))
        with pytest.raises(TooLarge):
            await child.merge(whole=True)

        await child.merge()

        assert (await texts(tenant, record))[2:] == [WORK[-1].text]

    run(scenario, url, limits=Limits(entries=5))


def test_a_child_whose_turn_runs_is_not_merged(url):
    async def scenario(tenant):
        record = await parent_of(tenant)
        child = await child_of(tenant, record, *WORK)
        lease = await tenant.begin(child.id, "scout's process", HOUR, {"text": "more"})

        with pytest.raises(Busy, match="scout's process"):
            await child.merge()
        await tenant.release(lease, drop=True)
        await child.merge()

        assert len(await messages(tenant, record)) == 3

    run(scenario, url)


def test_a_child_is_merged_into_the_branch_that_is_in_use(url):
    """Its parent may have gone elsewhere since it was made."""

    async def scenario(tenant):
        record = await parent_of(tenant)
        child = await child_of(tenant, record, *WORK)
        await branching.replace(tenant, await tenant.load("k"), [Message.user("new")])
        await child.merge()

        assert await texts(tenant, record) == ["new", WORK[-1].text]

    run(scenario, url)


# ---- discarding ----


def test_a_discarded_child_is_gone_and_its_parent_knows_why(url):
    """S1-55: one note, and no word of the child is left in the store."""

    async def scenario(tenant):
        record = await parent_of(tenant)
        child = await child_of(tenant, record, *WORK)
        assert len((await tenant.search("Darjeeling")).items) == 2

        await child.discard("too slow")

        said = await messages(tenant, record)
        assert [each.text for each in said[2:]] == [DISCARDED]
        assert (said[2].author, said[2].starts_turn) == ("scout", False)
        assert (await tenant.search("Darjeeling")).items == ()
        for again in (child.merge(), child.discard("too slow")):
            with pytest.raises(InvalidInput, match="gone"):
                await again
        assert len(await messages(tenant, record)) == 3

    run(scenario, url)


class Deleting(Watched):
    """A tenant on which another process deletes the child before the call number `at`."""

    def __init__(self, tenant, at, id):
        super().__init__(tenant)
        self._place, self._id = at, id

    def __getattr__(self, name):
        call = super().__getattr__(name)

        async def called(*args, **kwargs):
            if len(self.asked) + 1 == self._place:
                await self._tenant.delete(self._id)
            return await call(*args, **kwargs)

        return called


@pytest.mark.parametrize("way", ["merge()", "merge whole", "summarize", "discard"])
def test_a_child_that_is_deleted_at_any_moment_is_gone_or_home(url, way):
    """S1-55: before the parent was told it is an error, after it nothing is missing."""

    async def end(child):
        if way == "discard":
            await child.discard("too slow")
        elif way == "summarize":
            await child.merge(summarize=lambda said: said[-1].text)
        else:
            await child.merge(whole=way == "merge whole")

    async def scenario(tenant):
        ends = []
        for at in range(1, 8):
            record = await parent_of(tenant, key=f"k{at}")
            child = await child_of(tenant, record, *WORK)
            child._tenant = Deleting(tenant, at, child.id)
            try:
                await end(child)
                is_done = True
            except InvalidInput:
                is_done = False
            ends.append((is_done, len(child._tenant.asked) >= at))
            told = len(await messages(tenant, record)) > 2
            assert told or not is_done
        return ends

    ends = run(scenario, url)
    assert ends[0] == (False, True)
    assert ends[-1] == (True, False)


@pytest.mark.parametrize("reason", ["", "  ", None, 7])
def test_a_child_is_discarded_for_a_reason(url, reason):
    async def scenario(tenant):
        record = await parent_of(tenant)
        child = await child_of(tenant, record)

        with pytest.raises(InvalidInput):
            await child.discard(reason)

        assert child.record == await tenant.load(child.key)

    run(scenario, url)


# ---- cut off in between ----

MERGED = {"summary": [WORK[-1].text], "whole": [each.text for each in WORK]}


async def merge(tenant, record, child):
    await child.merge()


async def merge_whole(tenant, record, child):
    await child.merge(whole=True)


async def discard(tenant, record, child):
    await child.discard("too slow")


async def marked_first(tenant, record, child):
    """B47: as it was done before."""
    expected = {"metadata": {"child_state": None}}
    await tenant.update(child.id, {"metadata": {"child_state": "merged"}}, expect=expected)
    await tenant.append(record.id, [Message.assistant(WORK[-1].text)])


async def marked_last(tenant, record, child):
    """The other way round, without a name for the append."""
    if (await tenant.load(child.key)).metadata.get("child_state"):
        raise InvalidInput("child", "was merged already")
    await tenant.append(record.id, [Message.assistant(WORK[-1].text)])
    await tenant.update(child.id, {"metadata": {"child_state": "merged"}})


async def after_a_cut(tenant, function):
    """What a parent was given by one who was cut off, anywhere, and one who came after him."""
    found = []

    async def scenario(at, when):
        key = f"{when} {at}"
        record = await parent_of(tenant, key=key)
        child = await child_of(tenant, record, *WORK)
        watched = Watched(tenant, at, when)
        child._tenant = watched
        is_cut_off = False
        try:
            await function(watched, record, child)
        except CutOff:
            is_cut_off = True
        between = (await texts(tenant, record))[2:]
        child._tenant = tenant
        for _ in range(2):
            try:
                await function(tenant, record, child)
            except (InvalidInput, Conflict):
                pass
        found.append((between, (await texts(tenant, record))[2:]))
        return is_cut_off

    assert await cut_off_everywhere(scenario) >= 4
    return found


@pytest.mark.parametrize(
    ("function", "given"),
    [(merge, MERGED["summary"]), (merge_whole, MERGED["whole"]), (discard, [DISCARDED])],
)
def test_who_is_cut_off_has_given_the_parent_all_or_nothing_and_the_next_one_the_rest(
    url, function, given
):
    """S1-55, B47: at every call of the store, before and after it: exactly once, never half."""

    async def scenario(tenant):
        found = await after_a_cut(tenant, function)
        left = (await tenant.list(metadata={"child_state": "merging"})).items
        return found, left

    found, left = run(scenario, url)
    assert all(between in ([], given) for between, _ in found)
    assert all(after == given for _, after in found)
    assert len([between for between, _ in found if not between]) >= 3
    assert left == ()


@pytest.mark.parametrize(("function", "count"), [(marked_first, 0), (marked_last, 2)])
def test_merging_in_the_obvious_ways_is_noticed(function, count):
    """The check above finds a child that was lost, and one that was merged twice."""

    async def scenario(tenant):
        return await after_a_cut(tenant, function)

    assert count in {len(after) for _, after in run(scenario)}


def test_another_summary_after_a_cut_is_not_a_second_one(url):
    """A model says it in other words each time; what the parent was given first counts."""

    async def scenario(tenant):
        record = await parent_of(tenant)
        child = await child_of(tenant, record, *WORK)
        words = iter(["Two kinds.", "Two sorts."])
        child._tenant = Watched(tenant, 5, "after")
        with pytest.raises(CutOff):
            await child.merge(summarize=lambda _: next(words))
        assert child._tenant.asked[-1] == "append"
        child._tenant = tenant
        assert (await tenant.load(child.key)).metadata["child_state"] == "merging"
        with pytest.raises(InvalidInput, match="is being merged"):
            await child.discard("too slow")

        with pytest.raises(InvalidInput, match="merged already"):
            await child.merge(summarize=lambda _: next(words))

        assert (await texts(tenant, record))[2:] == ["Two kinds."]
        assert (await tenant.load(child.key)).metadata["child_state"] == "merged"

    run(scenario, url)


def test_another_reason_after_a_cut_is_not_a_second_note(url):
    async def scenario(tenant):
        record = await parent_of(tenant)
        child = await child_of(tenant, record, *WORK)
        child._tenant = Watched(tenant, 4, "after")
        with pytest.raises(CutOff):
            await child.discard("too slow")
        assert child._tenant.asked[-1] == "append"
        (found,) = await children.children(tenant, record)
        with pytest.raises(InvalidInput, match="discarded"):
            await found.merge()

        await found.discard("not needed")

        assert (await texts(tenant, record))[2:] == [DISCARDED]
        assert await children.children(tenant, record) == ()

    run(scenario, url)


class Other(Script):
    start = f"""
import asyncio, sys
sys.path.append({str(TESTS)!r})
import holdfast
from cut_off import Watched, kill
from holdfast import children
from holdfast.errors import InvalidInput
{SAY}
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("way", ["merge()", "discard('too slow')"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_that_is_killed_gives_the_parent_its_child_once(tmp_path, way, when):
    """S1-55: SIGKILL at every call; the next process begins again, and is the last or too late."""
    url = f"sqlite:{tmp_path}/chats.db"
    body = f"""
url, at, when = sys.argv[1], int(sys.argv[2]), sys.argv[3]
async def main():
    async with holdfast.open_store(url) as store:
        tenant = store.tenant()
        (child,) = await children.children(tenant, await tenant.load("k"))
        child._tenant = Watched(tenant, at, when, kill)
        await child.{way}
        say("done")
asyncio.run(main())
"""

    async def prepare(tenant):
        await child_of(tenant, await parent_of(tenant), *WORK)

    async def look(tenant):
        record = await tenant.load("k")
        states = [child.state for child in await children.children(tenant, record)]
        return (await texts(tenant, record))[2:], states

    run(prepare, url)
    found = []
    is_done = False
    for at in range(1, 12):
        with Other(body, url, at, when) as other:
            is_done = other.hears() == "done"
            other.process.wait(timeout=60)
        found.append(run(look, url))
        if is_done or found[-1][1] in ([], ["merged"]):
            break

    given = [WORK[-1].text] if way == "merge()" else [DISCARDED]
    assert found[-1] == (given, ["merged"] if way == "merge()" else [])
    assert all(said in ([], given) for said, _ in found)
    assert len(found) >= 4


@pytest.mark.parametrize("ways", [("merge()", "merge()"), ("merge()", "discard('too slow')")])
def test_of_two_processes_one_brings_the_child_home(tmp_path, ways):
    """S1-55: for the other it is an error; the parent is told once, whoever won."""
    url = f"sqlite:{tmp_path}/chats.db"
    body = """
async def main():
    async with holdfast.open_store(sys.argv[1]) as store:
        tenant = store.tenant()
        found = await children.children(tenant, await tenant.load("k"))
        say("ready")
        sys.stdin.readline()
        for child in found:
            try:
                await child.WAY
                say("done")
            except InvalidInput:
                say("late")
asyncio.run(main())
"""

    async def prepare(tenant):
        record = await parent_of(tenant)
        for _ in range(20):
            await child_of(tenant, record, *WORK)

    run(prepare, url)
    scripts = [Other(body.replace("WAY", way), url) for way in ways]
    with scripts[0] as one, scripts[1] as two:
        for each in scripts:
            assert each.hears() == "ready"
        for each in scripts:
            each.tell()
        said = list(zip(one.ends(), two.ends(), strict=True))

    async def look(tenant):
        return (await texts(tenant, await tenant.load("k")))[2:]

    assert {tuple(sorted(each)) for each in said} == {("done", "late")}
    given = run(look, url)
    assert len(given) == 20
    won = [each.index("done") for each in said]
    assert given.count(WORK[-1].text) == len([way for way in won if ways[way] == "merge()"])


# ---- whose they are ----


def test_a_session_lists_its_own_children_and_no_others(url):
    """S2-74: another owner's are not listed, nor found by their number."""

    async def scenario(tenant):
        mine, other = await parent_of(tenant, key="mine"), await parent_of(tenant, key="other")
        one = await child_of(tenant, mine)
        theirs = [await child_of(tenant, other), await child_of(tenant, other)]
        two = await child_of(tenant, mine)
        of_child = await child_of(tenant, one.record)

        found = await children.children(tenant, mine)

        assert [(child.number, child.id) for child in found] == [(1, one.id), (2, two.id)]
        assert (await children.find(tenant, mine, 2)).id == two.id
        assert (await children.find(tenant, other, 2)).id == theirs[1].id
        assert [child.id for child in await children.children(tenant, one.record)] == [of_child.id]
        for number in (0, 3, "1", None):
            with pytest.raises(InvalidInput):
                await children.find(tenant, mine, number)
        with pytest.raises(InvalidInput):
            children.Child(tenant, mine, theirs[0].record)

    run(scenario, url)


def test_more_children_than_a_page_of_a_list_holds_are_all_listed(url):
    async def scenario(tenant):
        record = await parent_of(tenant)
        for _ in range(105):
            await child_of(tenant, record)

        found = await children.children(tenant, record)

        assert [child.number for child in found] == list(range(1, 106))

    run(scenario, url)


def test_a_session_that_only_says_that_it_is_a_child_is_none(url):
    """Metadata can be written by anybody who has the session; the parent of a record cannot."""

    async def scenario(tenant):
        record = await parent_of(tenant)
        links = {"child_of": record.id, "child_number": 1, "child_inherited": 0}
        await tenant.create(Record(key="false", metadata=links))

        assert await children.children(tenant, record) == ()
        with pytest.raises(InvalidInput):
            await children.find(tenant, record, 1)

    run(scenario, url)


def test_a_fork_of_a_child_is_nobodys_child(url):
    async def scenario(tenant):
        record = await parent_of(tenant)
        child = await child_of(tenant, record, *WORK)

        made = await forking.fork(tenant, child.record, "copy")

        assert made.metadata == {}
        assert [each.id for each in await children.children(tenant, record)] == [child.id]
        assert await children.children(tenant, child.record) == ()

    run(scenario, url)


def test_another_tenant_sees_no_children():
    async def main():
        async with holdfast.open_store("memory:") as store:
            mine, other = store.tenant("mine"), store.tenant("other")
            record = await parent_of(mine)
            await child_of(mine, record)
            await parent_of(other)

            assert await children.children(other, record) == ()
            with pytest.raises(SessionNotFound):
                await children.create(other, record, "scout")

    asyncio.run(main())


def test_two_processes_number_the_children_of_a_session_together(tmp_path):
    """S2-74: no number twice, and none left out."""
    url = f"sqlite:{tmp_path}/chats.db"
    body = """
async def main():
    async with holdfast.open_store(sys.argv[1]) as store:
        tenant = store.tenant()
        record = await tenant.load("k")
        say("ready")
        sys.stdin.readline()
        for _ in range(20):
            say((await children.create(tenant, record, "scout")).number)
asyncio.run(main())
"""
    run(parent_of, url)
    with Other(body, url) as one, Other(body, url) as two:
        for each in (one, two):
            assert each.hears() == "ready"
        for each in (one, two):
            each.tell()
        numbers = [int(number) for number in (*one.ends(), *two.ends())]

    assert sorted(numbers) == list(range(1, 41))


# ---- events ----


@pytest.mark.parametrize(
    "event",
    [
        "COMPLETED",
        "IDLE",
        "ERROR",
        "CANCELLED",
        "CLARIFICATION_REQUESTED",
        "PERMISSION_REQUESTED",
    ],
)
def test_a_parent_is_told_of_what_it_has_to_know(url, event):
    """S2-74: `[SUBAGENT agent_id=X event=E]` and words; it is not a turn of the user's."""

    async def scenario(tenant):
        record = await parent_of(tenant)
        await child_of(tenant, record)
        child = await child_of(tenant, record)

        for _ in range(2):
            await child.report(event, "Which tea?", once=f"{event} 1")

        (said,) = (await messages(tenant, record))[2:]
        assert said.text == f"[SUBAGENT agent_id=2 event={event}]\nWhich tea?"
        assert (said.role, said.author, said.starts_turn) == ("user", "scout", False)
        assert notes.subagent("scout", 2, event).text == f"[SUBAGENT agent_id=2 event={event}]"

    run(scenario, url)


@pytest.mark.parametrize("event", ["PROGRESS", "completed", "", None, 7])
def test_progress_is_not_told(url, event):
    """S2-74: only essential events reach the parent."""

    async def scenario(tenant):
        record = await parent_of(tenant)
        child = await child_of(tenant, record)

        with pytest.raises(InvalidInput):
            await child.report(event, "Still looking.")

        assert len(await messages(tenant, record)) == 2

    run(scenario, url)


# ---- what it costs ----


def test_a_long_child_is_merged_by_its_end():
    """Ten thousand messages in the child or in the parent: as many calls and rows as for a few."""

    async def scenario(tenant):
        costs = []
        for count in (100, 10_000):
            long = [Message.user(f"m{number}") for number in range(count)]
            record = await parent_of(tenant, *long, key=f"k{count}")
            watched = Watched(tenant)
            child = await children.create(watched, record, "scout", inherit=10)
            await tenant.append(child.id, [*long, Mark(what="noted"), *WORK])
            await child.merge()
            costs.append((watched.asked, watched.rows))
        return costs

    few, many = run(scenario)
    assert few == many
    made = ["load", "list", "update", "tail", "create"]
    merged = ["load", "tail", "update", "load", "append", "update"]
    assert many[0] == made + merged
    assert many[1] <= 30


@pytest.mark.parametrize("whole", [False, True])
def test_what_was_inherited_and_put_on_another_branch_is_not_its_result(url, whole):
    """S1-55: `replace` gives what is kept a new place; it is still what the parent has said."""

    async def scenario(tenant):
        record = await parent_of(tenant)
        child = await children.create(tenant, record, "scout", inherit=2)
        inherited = await messages(tenant, child.record)
        now = await branching.replace(tenant, child.record, [*inherited, Message.assistant("Own.")])
        child.record = now

        await child.merge(whole=whole)

        told = (await messages(tenant, record))[len(inherited) :]
        assert [each.text for each in told] == ["Own."]

    run(scenario, url)
