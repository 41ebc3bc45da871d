"""Branches of a session: going back, going elsewhere, starting over, money, and being cut off."""

import asyncio
import sys
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

import holdfast
from cut_off import CutOff, Watched, cut_off_everywhere
from holdfast import branching, outline
from holdfast.entries import Call, Mark
from holdfast.errors import Conflict, InvalidInput
from holdfast.messages import Message, ToolCall
from holdfast.stores import Record
from holdfast.stores.values import Limits
from holdfast.usage import Usage
from processes import SAY, Script

HOUR = timedelta(hours=1)
TESTS = Path(__file__).parent


@pytest.fixture(params=["memory", "sqlite"])
def url(request, tmp_path):
    return "memory:" if request.param == "memory" else f"sqlite:{tmp_path}/chats.db"


def run(scenario, url="memory:", **options):
    async def main():
        async with holdfast.open_store(url, **options) as store:
            return await scenario(store.tenant())

    return asyncio.run(main())


def receipt(number):
    """The receipt of the call `number`, with what was spent up to it."""
    total = {"calls": number, "input": 10 * number, "output": number, "cost": f"0.{number:04}"}
    return Call(
        model="fake:one", usage=Usage(10, 1), cost=Decimal("0.0001"), extra={"spent": total}
    )


def dialogue(*numbers):
    """Turns of these numbers: a question, an answer and its receipt each."""
    entries = []
    for number in numbers:
        entries += [Message.user(f"q{number}"), Message.assistant(f"a{number}"), receipt(number)]
    return entries


async def session(tenant, entries=None, key="k"):
    return await tenant.create(Record(key=key), dialogue(1, 2, 3) if entries is None else entries)


async def said(tenant, record, branch=None):
    stored = await tenant.read(record.id, branch or record.branch, kind="message")
    return [each.entry and each.entry.text for each in stored]


async def marks(tenant, record, branch=None):
    stored = await tenant.read(record.id, branch or record.branch, kind="mark")
    return [(each.entry.what, dict(each.entry.data)) for each in stored]


# ---- turns ----


def test_a_turn_knows_its_place_its_entries_and_what_it_cost(url):
    """From the user's message up to the next; receipts and marks behind it belong to it."""

    async def scenario(tenant):
        entries = [Message.system("Be brief."), *dialogue(1, 2), Mark(what="noted"), receipt(3)]
        record = await session(tenant, entries)

        first, second = await outline.turns(tenant, record)

        assert (first.index, first.first, first.last) == (1, 1, 2)
        assert (first.first_seq, first.last_seq, first.message.text) == (2, 4, "q1")
        assert (first.usage, first.cost, first.calls) == (Usage(10, 1), Decimal("0.0001"), 1)
        assert (second.index, second.first, second.last) == (2, 3, 4)
        assert (second.first_seq, second.last_seq, second.message.text) == (5, 9, "q2")
        assert (second.usage, second.cost, second.calls) == (Usage(20, 2), Decimal("0.0002"), 2)

    run(scenario, url)


def test_only_what_a_user_says_begins_a_turn(url):
    """One definition, `Message.starts_turn`: no results, nothing synthetic, nothing erased."""

    async def scenario(tenant):
        call = ToolCall(id="c", name="look", arguments="{}")
        entries = [
            Message.user("q1"),
            Message.assistant(tool_calls=[call]),
            Message.tool("found", "c"),
            Message.user("go on", synthetic="nudge"),
            Message.user("q2"),
            Message.user("q3"),
        ]
        record = await session(tenant, entries)
        await tenant.erase(record.id, [5])

        found = await outline.turns(tenant, record)

        assert [(turn.message.text, turn.first, turn.last) for turn in found] == [
            ("q1", 0, 4),
            ("q3", 5, 5),
        ]
        assert (found[0].usage, found[0].cost, found[0].calls) == (Usage(), None, 0)

    run(scenario, url)


def test_a_session_without_a_user_has_no_turns(url):
    async def scenario(tenant):
        empty = await session(tenant, [], "empty")
        silent = await session(tenant, [Message.system("Be brief."), receipt(1)], "silent")

        assert await outline.turns(tenant, empty) == ()
        assert await outline.turns(tenant, silent) == ()

    run(scenario, url)


# ---- revert ----


def test_reverting_keeps_the_turns_up_to_a_number_and_destroys_nothing(url):
    """S2-65: 1-based; what came later stays on the branch that is left."""

    async def scenario(tenant):
        record = await session(tenant)
        before = await tenant.read(record.id, "main")

        done = await branching.revert(tenant, record, 1)

        assert (done.turns_removed, done.turn_count, done.branch) == (2, 1, "turn-1")
        assert done.message == "Reverted to turn 1: 2 turns removed"
        assert done.record == await tenant.load("k")
        assert done.record.branch == "turn-1"
        assert await said(tenant, done.record) == ["q1", "a1"]
        assert await tenant.read(record.id, "main") == before
        kept = await tenant.read(record.id, "turn-1", kind="call")
        assert [each.seq for each in kept] == [3]

    run(scenario, url)


def test_reverting_to_the_last_turn_does_nothing(url):
    """S2-65: n = turns is a success that removes nothing, and no branch is made."""

    async def scenario(tenant):
        record = await session(tenant)
        watched = Watched(tenant)

        done = await branching.revert(watched, record, 3)

        assert (done.turns_removed, done.turn_count, done.branch) == (0, 3, "main")
        assert done.message == "Already at turn 3"
        assert watched.asked == ["read"]
        assert await tenant.load("k") == record

    run(scenario, url)


@pytest.mark.parametrize("turn", [-1, 4, 10**30, True, 1.0, "1", None])
def test_a_turn_that_is_not_there_is_refused(url, turn):
    """S2-65: out of range is a ValueError with words, and nothing was changed."""

    async def scenario(tenant):
        record = await session(tenant)

        with pytest.raises(ValueError, match="turn") as caught:
            await branching.revert(tenant, record, turn)

        assert isinstance(caught.value, InvalidInput)
        assert await tenant.load("k") == record

    run(scenario, url)


def test_reverting_to_turn_0_keeps_what_stands_before_the_first(url):
    async def scenario(tenant):
        with_system = await session(tenant, [Message.system("Be brief."), *dialogue(1)], "a")
        without = await session(tenant, dialogue(1), "b")
        marked = await session(tenant, [Mark(what="noted"), *dialogue(1)], "c")

        assert await said(tenant, (await branching.revert(tenant, with_system, 0)).record) == [
            "Be brief."
        ]
        assert await said(tenant, (await branching.revert(tenant, without, 0)).record) == []
        done = await branching.revert(tenant, marked, 0)
        assert [what for what, _ in await marks(tenant, done.record)] == ["noted", "branched"]

    run(scenario, url)


def test_a_session_goes_on_after_it_was_reverted_and_can_be_reverted_again(url):
    """A branch of a branch keeps what it shares with both."""

    async def scenario(tenant):
        record = (await branching.revert(tenant, await session(tenant), 2)).record
        await tenant.append(record.id, dialogue(4, 5), branch=record.branch)

        again = await branching.revert(tenant, await tenant.load("k"), 3)
        back = await branching.revert(tenant, again.record, 1)

        assert await said(tenant, again.record) == ["q1", "a1", "q2", "a2", "q4", "a4"]
        assert await said(tenant, back.record) == ["q1", "a1"]
        assert [each.name for each in back.record.branches] == [
            "main",
            "turn-2",
            "turn-3",
            "turn-1",
        ]

    run(scenario, url)


def test_a_cleared_session_can_be_reverted(url):
    """Seqs go on after a clear, and 0 still means the beginning."""

    async def scenario(tenant):
        record = await session(tenant)
        await tenant.clear(record.id)
        await tenant.append(record.id, dialogue(4))

        done = await branching.revert(tenant, await tenant.load("k"), 0)

        assert await said(tenant, done.record) == []
        assert (await tenant.verify(record.id)).problems == ()

    run(scenario, url)


# ---- names ----


def test_branches_without_a_name_are_called_after_their_turn(url):
    async def scenario(tenant):
        record = await session(tenant)
        names = []
        for turn in (2, 2, 2, 0):
            record = await branching.branch_at(tenant, record, turn)
            names.append(record.branch)
        record = await branching.replace(tenant, record, [Message.user("new")])

        assert [*names, record.branch] == ["turn-2", "turn-2-2", "turn-2-3", "turn-0", "replaced"]

    run(scenario, url)


def test_a_name_that_another_process_took_is_passed_over(url):
    """The record is older than the branch of that name; the store says so, and another is tried."""

    async def scenario(tenant):
        record = await session(tenant)
        for name in ("turn-1", "turn-1-2"):
            await tenant.branch(record.id, name, parent="main", at=1, use=False)

        done = await branching.revert(tenant, record, 1)

        assert done.branch == "turn-1-3"
        assert await said(tenant, done.record) == ["q1", "a1"]

    run(scenario, url)


def test_a_name_that_is_given_is_used_or_refused(url):
    async def scenario(tenant):
        record = await branching.branch_at(tenant, await session(tenant), 3, "again")
        assert (record.branch, await said(tenant, record)) == (
            "again",
            ["q1", "a1", "q2", "a2", "q3", "a3"],
        )

        for name in ("again", "main", "", 7):
            with pytest.raises(InvalidInput):
                await branching.branch_at(tenant, record, 1, name)

        assert await tenant.load("k") == record

    run(scenario, url)


# ---- checkout and replace ----


def test_checking_out_uses_another_branch(url):
    async def scenario(tenant):
        record = (await branching.revert(tenant, await session(tenant), 1)).record

        main = await branching.checkout(tenant, record, "main")

        assert main.branch == (await tenant.load("k")).branch == "main"
        assert await branching.checkout(tenant, main, "main") is main
        with pytest.raises(InvalidInput):
            await branching.checkout(tenant, main, "nowhere")

    run(scenario, url)


def test_replacing_goes_on_with_other_messages_and_keeps_the_old_ones(url):
    """However many they are: more than one append may take, and in order."""

    async def scenario(tenant):
        record = await session(tenant)
        messages = [Message.user(f"m{number}") for number in range(2_500)]

        replaced = await branching.replace(tenant, record, messages)

        stored = await tenant.read(record.id, replaced.branch, kind="message")
        assert [each.entry for each in stored] == messages
        assert await said(tenant, record, "main") == ["q1", "a1", "q2", "a2", "q3", "a3"]
        with pytest.raises(InvalidInput):
            await branching.replace(tenant, replaced, ["text"])

    run(scenario, url, limits=Limits(entries=1_500))


def test_replacing_with_nothing_is_an_empty_branch(url):
    async def scenario(tenant):
        record = await branching.replace(tenant, await session(tenant), [])

        assert await said(tenant, record) == []
        assert record.branch_named(record.branch).count == 0

    run(scenario, url)


# ---- others beside it ----


@pytest.mark.parametrize("way", ["revert", "branch_at", "replace", "checkout"])
def test_who_changes_branches_second_is_told(url, way):
    """Turn 2 of another branch is another turn: Conflict, and the first one's branch is in use."""

    async def scenario(tenant):
        record = await session(tenant)
        await tenant.branch(record.id, "aside", parent="main", at=3, use=False)
        first = (await branching.revert(tenant, record, 1)).record
        function = getattr(branching, way)
        argument = {"replace": [Message.user("new")], "checkout": "aside"}.get(way, 2)

        with pytest.raises(Conflict):
            await function(tenant, record, argument)

        assert (await tenant.load("k")).branch == first.branch

    run(scenario, url)


def test_a_turn_that_runs_meets_a_conflict_when_its_branch_is_left(url):
    """It appends behind the head it saw; the mark moved that, and says where to."""

    async def scenario(tenant):
        record = await session(tenant)
        head = record.branch_named("main").head
        lease = await tenant.begin(record.id, "me", HOUR, {"text": "q4"})

        done = await branching.revert(tenant, record, 1)

        assert await marks(tenant, record, "main") == [("left", {"to": "turn-1"})]
        assert done.record == await tenant.load("k")
        with pytest.raises(Conflict):
            await tenant.append(record.id, dialogue(4), after=head, lease=lease)

    run(scenario, url)


def test_a_turn_that_begins_while_a_branch_is_opened_is_told_as_well(url):
    """What counts is who runs when the branch is changed, not when the record was read."""

    async def scenario(tenant):
        record = await session(tenant)
        await tenant.begin(record.id, "me", HOUR, {"text": "q4"})
        assert record.draft is None

        await branching.checkout(tenant, record, (await _aside(tenant, record)).branches[-1].name)

        assert await marks(tenant, record, "main") == [("left", {"to": "aside"})]

    run(scenario, url)


async def _aside(tenant, record):
    return await tenant.branch(record.id, "aside", parent="main", at=9, use=False)


def test_no_mark_is_left_where_no_turn_runs(url):
    """A turn that was cut off holds nothing up."""

    async def scenario(tenant):
        record = await session(tenant)
        lease = await tenant.begin(record.id, "me", HOUR, {"text": "q4"})
        await tenant.release(lease)
        record = await tenant.load("k")
        assert record.draft is not None

        await branching.revert(tenant, record, 1)

        assert await marks(tenant, record, "main") == []

    run(scenario, url)


# ---- money ----


def total(number):
    return dict(receipt(number).extra["spent"])


def test_going_back_gives_no_money_back(url):
    """A new branch begins with what was spent on the one that is left, not with what it shares."""

    async def scenario(tenant):
        record = (await branching.revert(tenant, await session(tenant), 1)).record

        assert await marks(tenant, record) == [
            ("branched", {"from": "main", "at": 3, "spent": total(3)})
        ]
        assert await branching.spent(tenant, record) == total(3)
        again = (await branching.revert(tenant, record, 0)).record
        assert await branching.spent(tenant, again) == total(3)
        new = await branching.replace(tenant, again, [Message.user("new")])
        assert await branching.spent(tenant, new) == total(3)

    run(scenario, url)


def test_going_to_another_branch_gives_no_money_back_either(url):
    """What was spent meanwhile is written down there, and only if it is more than stands there."""

    async def scenario(tenant):
        record = (await branching.revert(tenant, await session(tenant), 1)).record
        await tenant.append(record.id, dialogue(4), branch=record.branch)

        main = await branching.checkout(tenant, record, "main")
        assert await branching.spent(tenant, main) == total(4)
        back = await branching.checkout(tenant, main, "turn-1")
        assert await branching.spent(tenant, back) == total(4)
        assert [what for what, _ in await marks(tenant, back, "main")] == ["branched"]
        assert [what for what, _ in await marks(tenant, back)] == ["branched"]

    run(scenario, url)


class Late:
    """A tenant on which a turn is finished and paid for just before the branch is changed."""

    def __init__(self, tenant):
        self._tenant = tenant

    def __getattr__(self, name):
        return getattr(self._tenant, name)

    async def update(self, id, *args, **kwargs):
        await self._tenant.append(id, dialogue(4))
        return await self._tenant.update(id, *args, **kwargs)


@pytest.mark.parametrize("way", ["revert", "branch_at", "replace", "checkout"])
def test_what_is_spent_while_a_branch_is_opened_is_spent(url, way):
    """A turn may end between counting the money and leaving its branch."""

    async def scenario(tenant):
        record = await session(tenant)
        await tenant.branch(record.id, "aside", parent="main", at=3, use=False)
        argument = {"replace": [Message.user("new")], "checkout": "aside"}.get(way, 2)

        await getattr(branching, way)(Late(tenant), record, argument)

        now = await tenant.load("k")
        assert now.branch != "main"
        assert await branching.spent(tenant, now) == total(4)

    run(scenario, url)


@pytest.mark.parametrize("later", [0, 15, 16, 17, 300])
def test_the_last_receipt_is_found_however_far_back_it_is(url, later):
    async def scenario(tenant):
        entries = [Message.system("s"), *dialogue(1, 2), receipt(3)]
        entries += [Message.user(f"m{number}") for number in range(later)]
        record = await session(tenant, entries)

        assert await branching.spent(tenant, record) == total(3)

    run(scenario, url)


def test_where_no_receipt_says_it_nothing_is_known_of_money(url):
    async def scenario(tenant):
        record = await session(tenant, [Message.user("q"), Call(model="fake:one")])

        assert await branching.spent(tenant, record) is None
        done = await branching.revert(tenant, record, 0)
        assert await marks(tenant, done.record) == [
            ("branched", {"from": "main", "at": 0, "spent": None})
        ]

    run(scenario, url)


# ---- cut off in between ----

NEW = [Message.user(f"new {number}") for number in range(1_200)]
WAYS = {
    "revert": lambda tenant, record: branching.revert(tenant, record, 1),
    "branch_at": lambda tenant, record: branching.branch_at(tenant, record, 1),
    "replace": lambda tenant, record: branching.replace(tenant, record, NEW),
    "checkout": lambda tenant, record: branching.checkout(tenant, record, "aside"),
}
WANTED = {"replace": [each.text for each in NEW], "checkout": ["q1", "a1"]}


async def use_at_once(tenant, record):
    """As one would write it first: the branch is in use, and then it is filled."""
    await tenant.branch(record.id, "replaced", parent="main", at=0)
    mark = Mark(what="branched", data={"from": "main", "at": 0, "spent": total(3)})
    for page in ([mark, *NEW[:999]], NEW[999:]):
        await tenant.append(record.id, page, branch="replaced")


async def wrong_after_a_cut(tenant, function, wanted):
    """What is wrong with a session whose branch was changed by one who was cut off, anywhere."""
    wrong = set()

    async def scenario(at, when):
        key = f"{when} {at}"
        record = await session(tenant, key=key)
        await tenant.branch(record.id, "aside", parent="main", at=3, use=False)
        await tenant.begin(record.id, "me", HOUR, {"text": "q4"})
        is_cut_off = False
        try:
            await function(Watched(tenant, at, when), record)
        except CutOff:
            is_cut_off = True
        now = await tenant.load(key)
        messages = await said(tenant, now)
        if now.branch == "main":
            wrong.update({"old"} if messages != ["q1", "a1", "q2", "a2", "q3", "a3"] else ())
        else:
            wrong.update({"new"} if messages != wanted else ())
            wrong.update({"money"} if await branching.spent(tenant, now) != total(3) else ())
        return is_cut_off

    assert await cut_off_everywhere(scenario) >= 6
    return wrong


@pytest.mark.parametrize("way", WAYS)
def test_who_is_cut_off_leaves_the_old_branch_in_use_or_the_new_one_complete(url, way):
    """At every call of the store, before and after it; and what was spent is known in any case."""

    async def scenario(tenant):
        return await wrong_after_a_cut(tenant, WAYS[way], WANTED.get(way, ["q1", "a1"]))

    assert run(scenario, url) == set()


def test_a_branch_in_use_before_it_is_filled_is_noticed():
    """The check above finds it."""

    async def scenario(tenant):
        return await wrong_after_a_cut(tenant, use_at_once, WANTED["replace"])

    assert run(scenario) == {"new", "money"}


HERE = f"""
import asyncio, sys
sys.path.append({str(TESTS)!r})
import holdfast
from cut_off import Watched, kill
from holdfast import branching
from holdfast.errors import Conflict
from holdfast.messages import Message
{SAY}
"""


class Other(Script):
    start = HERE


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_that_is_killed_leaves_the_old_branch_or_the_whole_new_one(tmp_path, when):
    """The same with SIGKILL, on a file: another process opens it afterwards."""
    url = f"sqlite:{tmp_path}/chats.db"
    body = """
url, at, when = sys.argv[1], int(sys.argv[2]), sys.argv[3]
async def main():
    async with holdfast.open_store(url) as store:
        tenant = Watched(store.tenant(), at, when, kill)
        record = await store.tenant().load("k")
        await branching.replace(tenant, record, [Message.user(f"n{n}") for n in range(1_200)])
        say("done")
asyncio.run(main())
"""
    run(session, url)
    found = []
    for at in range(1, 20):
        with Other(body, url, at, when) as other:
            is_done = other.hears() == "done"
            other.process.wait(timeout=60)

        async def look(tenant):
            record = await tenant.load("k")
            assert (await tenant.verify(record.id)).problems == ()
            return record.branch, len(await said(tenant, record))

        found.append(run(look, url))
        if is_done:
            break

    assert is_done
    assert len(found) >= 5
    assert {count for branch, count in found if branch == "main"} == {6}
    assert {count for branch, count in found if branch != "main"} == {1_200}


def test_two_processes_open_branches_side_by_side(tmp_path):
    """Each gets names of its own; each branch begins with its mark; nobody's work is lost."""
    url = f"sqlite:{tmp_path}/chats.db"
    body = """
async def main():
    async with holdfast.open_store(sys.argv[1]) as store:
        tenant = store.tenant()
        say("ready")
        sys.stdin.readline()
        opened = conflicts = 0
        while opened < 15:
            try:
                record = await branching.branch_at(tenant, await tenant.load("k"), 1)
            except Conflict:
                conflicts += 1
                continue
            opened += 1
            say(record.branch)
asyncio.run(main())
"""
    run(session, url)
    with Other(body, url) as one, Other(body, url) as two:
        for each in (one, two):
            assert each.hears() == "ready"
        for each in (one, two):
            each.tell()
        names = [*one.ends(), *two.ends()]

    async def look(tenant):
        record = await tenant.load("k")
        return record, [await marks(tenant, record, name) for name in names]

    record, found = run(look, url)
    assert len(set(names)) == len(names) == 30
    assert record.branch in names
    assert all(what == "branched" for each in found for what, _ in each)
    assert all(each for each in found)


# ---- what it costs ----


@pytest.mark.parametrize("way", WAYS)
def test_the_store_is_asked_as_often_for_ten_thousand_messages_as_for_a_few(way):
    """The number of calls does not grow with the log."""

    async def scenario(tenant):
        asked = []
        for turns in (10, 5_000):
            record = await session(tenant, dialogue(*range(1, turns + 1)), f"{way} {turns}")
            await tenant.branch(record.id, "aside", parent="main", at=3, use=False)
            watched = Watched(tenant)
            await WAYS[way](watched, record)
            asked.append((watched.asked, watched.rows))
        return asked

    (few, rows), (many, more_rows) = run(scenario)
    assert few == many
    assert len(few) <= 6
    if way in ("replace", "checkout"):  # the others have to count turns
        assert more_rows <= rows + 16
