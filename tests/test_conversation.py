"""A conversation, loaded in part, is the conversation: gaps, incremental views, other writers.

Long logs are folded by policies, again and again, as a turn does it. After each fold the live
conversation, one that is opened with gaps and one that has everything loaded show the same: the
same messages in the same places, of the same turns, with the same digest.
"""

import asyncio
from datetime import timedelta
from random import Random

import pytest

import random_windows as windows
from faults import window_judge as judge
from faults.tier import pick
from holdfast import open_store
from holdfast.conversation import GAP_MIN, Conversation, gaps_of, steered
from holdfast.entries import Call, Fold, Mark
from holdfast.errors import Conflict, InvalidInput
from holdfast.messages import Message, ToolCall
from holdfast.stores.values import MAIN, Record
from holdfast.usage import Usage
from holdfast.window import Budget, Situation
from holdfast.window.window import digest

FAMILY = "some"
LOGS = pick(2, 12)  # for each policy
MESSAGES = 1_100
POLICIES = judge.policies()


def on_a_store(act):
    """Run `act(tenant, record)` with a session in a store that is forgotten afterwards."""

    async def main():
        async with open_store("memory:") as store:
            tenant = store.tenant()
            return await act(tenant, await tenant.create(Record(key="cli:direct")))

    return asyncio.run(main())


async def opened(tenant, record, *, is_all=False, branch=None):
    """A conversation as somebody opens it who knows nothing but the key."""
    talk = Conversation(tenant, await tenant.load(record.key))
    if branch is not None:
        talk.branch = branch
    await talk.load(is_all=is_all)
    return talk


def view_of(talk, pending=()):
    return talk.view(FAMILY, windows.count, pending)


def shown(talk, pending=()):
    """All that a window can tell of a conversation."""
    view = view_of(talk, pending)
    items = [(each.message.id, each.first, each.last, each.turn) for each in view.items]
    return items, view.turn, view.total, digest(view, None, ())


def texts(talk):
    return [message.text for message in view_of(talk).rendered().messages]


# Long logs


def said_in(random, number):
    """Part of a conversation in which nothing is wrong, with ids that nobody else has."""
    for message in windows.talk(random)[:40]:
        calls = [each.replace(id=f"{number}:{each.id}") for each in message.tool_calls]
        id = message.tool_call_id
        yield message.replace(tool_calls=calls, tool_call_id=id and f"{number}:{id}")


def situation_of(random, view):
    """A window of some size that this view has outgrown, a little or by far."""
    share = random.choice((0.3, 0.6, 0.9))
    return Situation(
        limit=max(1, int(view.total * share)),
        used=view.total,
        budget=Budget(
            keep_turns=random.choice((0, 2, 5)), pinned=random.choice(((), (1,), (2, 5)))
        ),
        trigger=random.choice(("before", "after", "manual")),
    )


async def folded_by(policy, talk, random):
    """Fold as a turn does it: plan, place, append, forget. How many folds were made."""
    view = view_of(talk)
    situation = situation_of(random, view)
    made = judge.carried_out(policy.plan(view, situation), situation, random)
    folds = [talk.placed(fold) for fold in made]
    if folds:
        await talk.append(folds)
        talk.forget()
    return len(folds)


async def grown(talk, random, number):
    """More is said, with receipts and marks among it, sometimes while somebody looks on."""
    for message in said_in(random, number):
        entries = [message]
        if random.random() < 0.2:
            entries.append(Call(model="some:model", about=message.id, usage=Usage(1, 1)))
        if random.random() < 0.1:
            entries.append(Mark(what="started"))
        if random.random() < 0.3:
            view_of(talk, [message])
        await talk.append(entries)
        if random.random() < 0.1:
            view_of(talk)


@pytest.mark.parametrize("policy", POLICIES, ids=judge.name_of)
@pytest.mark.parametrize("seed", range(LOGS))
def test_what_is_loaded_in_part_shows_what_is_there(policy, seed):
    """The live one, one with gaps and one without: same items, same turns, same digest."""

    async def act(tenant, record):
        random = Random(seed)
        talk = await opened(tenant, record)
        folds = gaps = number = 0
        while talk.count < MESSAGES:
            for _ in range(random.choice((1, 4, 8))):
                number += 1
                await grown(talk, random, number)
            folds += await folded_by(policy, talk, random)
            whole = await opened(tenant, record, is_all=True)
            part = await opened(tenant, record)
            gaps += bool(part.gaps)

            found = shown(whole)

            assert shown(part) == found, f"opened anew at {talk.count}"
            assert shown(talk) == found, f"live at {talk.count}"
            assert part.messages == whole.messages[-len(part.messages) :]
            assert part.count == whole.count == len(whole.messages)
        return folds, gaps

    folds, gaps = on_a_store(act)

    assert folds and gaps, "nothing was passed over: the log shows nothing"


@pytest.mark.parametrize("seed", range(pick(40, 400)))
def test_folds_of_any_kind_show_the_same(seed):
    """Folds by hand, over each other, over what is hidden, opened again; by whoever appends."""

    async def act(tenant, record):
        random = Random(seed)
        live = await opened(tenant, record)
        said = [m for n in range(8) for m in said_in(random, n)]
        await tenant.append(record.id, said)
        await live.refresh()
        for _ in range(6):
            rows = [r for r in await tenant.read(record.id) if r.kind == "message"]
            first, last = sorted(random.choices(range(len(rows)), k=2))
            if random.random() < 0.3:
                first = last = random.randrange(len(rows))
            is_open = random.random() < 0.2
            words = Message.user("In short.", synthetic="summary")
            fold = Fold(
                first=rows[first].seq,
                last=rows[last].seq,
                replacement=None if is_open or random.random() < 0.5 else words,
                is_open=is_open,
            )
            if random.random() < 0.7:
                fold = live.placed(fold)
            if random.random() < 0.5:
                await tenant.append(record.id, [fold])
                await live.refresh()
            else:
                await live.append([fold])
                live.forget()
                await live.refresh()
            part = await opened(tenant, record)
            whole = await opened(tenant, record, is_all=True)

            assert shown(part) == shown(whole)
            assert shown(live) == shown(whole)

    on_a_store(act)


def test_control_a_fold_with_a_wrong_place_is_noticed():
    """One that counts a turn too few, and one whose place ends behind what it hides."""

    async def act(tenant, record):
        await tenant.append(record.id, plain(200))
        found = []
        for extra in ({"at": [0, 149], "turns": 73}, {"at": [0, 151], "turns": 74}):
            fold = Fold(first=1, last=150, extra=extra)
            await tenant.append(record.id, [fold])
            part = await opened(tenant, record)
            found.append(shown(part) == shown(await opened(tenant, record, is_all=True)))
        return found

    assert on_a_store(act) == [False, False]


# What others write


def plain(count, start=0):
    """Turns of a question and an answer, so many messages."""
    return [
        Message.assistant(f"m{at}") if at % 2 else Message.user(f"m{at}")
        for at in range(start, start + count)
    ]


def test_what_others_append_is_seen():
    """After `refresh`, and only what is new is read."""

    async def act(tenant, record):
        talk = await opened(tenant, record)
        view_of(talk)
        await tenant.append(record.id, plain(4))
        before = texts(talk)
        await talk.refresh()
        return before, texts(talk), talk.count, talk.head

    assert on_a_store(act) == ([], ["m0", "m1", "m2", "m3"], 4, 4)


def test_an_append_behind_what_was_not_seen_is_a_conflict():
    """And changes nothing here; after `refresh` it goes behind."""

    async def act(tenant, record):
        talk = await opened(tenant, record)
        await tenant.append(record.id, plain(1))
        with pytest.raises(Conflict):
            await talk.append(plain(1, 1))
        assert texts(talk) == []
        await talk.refresh()
        await talk.append(plain(1, 1))
        return texts(talk)

    assert on_a_store(act) == ["m0", "m1"]


@pytest.mark.parametrize("more", [0, 1, 2, 3, 4, 9])
@pytest.mark.parametrize("before", [0, 1, 3])
def test_a_session_that_was_cleared_elsewhere_is_empty_here(before, more):
    """Whatever was said since, and however much: nothing of what was there is shown again."""

    async def act(tenant, record):
        await tenant.append(record.id, plain(before))
        talk = await opened(tenant, record)
        texts(talk)
        await tenant.clear(record.id)
        await tenant.append(record.id, plain(more, 100))
        await talk.refresh()
        return texts(talk), talk.count, shown(talk) == shown(await opened(tenant, record))

    assert on_a_store(act) == ([f"m{100 + at}" for at in range(more)], more, True)


def test_what_was_said_and_cleared_unseen_is_no_conflict_for_ever():
    """A session that was empty is empty again, and yet its head is another: a turn on it would
    append, be told of a conflict, look, see nothing new, and append again, without an end."""

    async def act(tenant, record):
        talk = await opened(tenant, record)
        await tenant.append(record.id, plain(2))
        await tenant.clear(record.id)
        with pytest.raises(Conflict):
            await talk.append(plain(1))
        await talk.refresh()
        await talk.append(plain(1, 7))
        return texts(talk), shown(talk) == shown(await opened(tenant, record))

    assert on_a_store(act) == (["m7"], True)


@pytest.mark.parametrize("said", [0, 2])
def test_a_cleared_session_has_spent_nothing(said):
    """What was spent stands in receipts, and they are gone."""

    async def act(tenant, record):
        receipt = Call(model="some:model", extra={"spent": {"calls": 1, "input": 5, "output": 7}})
        await tenant.append(record.id, [*plain(said), receipt])
        talk = await opened(tenant, record)
        before = talk.spent.tokens
        await tenant.clear(record.id)
        await tenant.append(record.id, plain(2))
        await talk.refresh()
        return before, talk.spent.tokens

    assert on_a_store(act) == (12, 0)


def test_what_was_spent_is_known_when_its_receipt_is_passed_over():
    """A fold may hide the latest receipt: then it says itself what was spent by then."""

    async def act(tenant, record):
        receipt = Call(model="some:model", extra={"spent": {"calls": 1, "input": 5, "output": 7}})
        talk = await opened(tenant, record)
        await talk.append([*plain(100), receipt, *plain(100)])
        fold = talk.placed(Fold(first=1, last=150))
        await talk.append([fold])
        talk.forget()
        part = await opened(tenant, record)
        assert part.gaps and talk.gaps
        return talk.spent.tokens, part.spent.tokens

    assert on_a_store(act) == (12, 12)


def test_a_session_made_anew_under_the_key_is_refused():
    """A stale object never goes on in another session."""

    async def act(tenant, record):
        talk = await opened(tenant, record)
        await tenant.delete(record.id)
        await tenant.create(Record(key=record.key))
        with pytest.raises(InvalidInput):
            await talk.refresh()

    on_a_store(act)


def test_a_branch_that_is_left_is_still_followed():
    """`is_in_use` says that it was left; what comes on it is read, and its folds are its own."""

    async def act(tenant, record):
        talk = await opened(tenant, record)
        await talk.append(plain(200))
        await talk.append([talk.placed(Fold(first=1, last=150))])
        talk.forget()
        await tenant.branch(record.id, "other", parent=MAIN, at=4)
        await tenant.append(record.id, plain(1, 4), branch="other")
        await tenant.append(record.id, plain(1, 200))
        await talk.refresh()
        other = await opened(tenant, record)
        left = await opened(tenant, record, branch=MAIN)

        assert not talk.is_in_use and other.is_in_use
        assert texts(talk) == texts(left) == [f"m{at}" for at in range(150, 201)]
        assert texts(other) == [f"m{at}" for at in range(5)]
        assert shown(talk) == shown(left)
        assert other.folds == [] and len(left.folds) == 1

    on_a_store(act)


def test_a_load_beside_an_append_leaves_no_hole():
    """Whoever loads everything while a turn appends may see an older state; then it is read."""

    async def act(tenant, record):
        slow = Slow(tenant)
        talk = Conversation(slow, await tenant.load(record.key))
        await talk.load()
        await talk.append(plain(2))
        slow.reads = asyncio.Event()
        loading = asyncio.create_task(talk.load(is_all=True))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await talk.append(plain(2, 2))
        slow.appends = asyncio.Event()
        appending = asyncio.create_task(talk.append(plain(2, 4)))
        await slow.appended.wait()
        slow.reads.set()
        await loading
        slow.appends.set()
        await appending
        return texts(talk)

    assert on_a_store(act) == [f"m{at}" for at in range(6)]


class Slow:
    """A tenant whose answers come when they are let through."""

    def __init__(self, tenant):
        self._tenant = tenant
        self.reads = self.appends = None
        self.appended = asyncio.Event()

    def __getattr__(self, name):
        return getattr(self._tenant, name)

    async def read(self, *args, **kwargs):
        found = await self._tenant.read(*args, **kwargs)
        if self.reads is not None:
            await self.reads.wait()
        return found

    async def append(self, *args, **kwargs):
        done = await self._tenant.append(*args, **kwargs)
        if self.appends is not None:
            self.appended.set()
            await self.appends.wait()
        return done


# Answers that come late


class Late:
    """A tenant whose answers are true, and old when they come."""

    def __init__(self, tenant):
        self._tenant = tenant
        self._gates = {}

    def __getattr__(self, name):
        return getattr(self._tenant, name)

    def hold(self, name):
        """Keep the next answer to this question back, until the event is set."""
        gate = self._gates[name] = asyncio.Event()
        return gate

    async def _answered(self, name, answer):
        found = await answer
        if gate := self._gates.pop(name, None):
            await gate.wait()
        return found

    async def read(self, *place):
        return await self._answered("read", self._tenant.read(*place))

    async def load(self, key):
        return await self._answered("load", self._tenant.load(key))


async def meanwhile(late, name, asked, *then):
    """Ask; when the answer is made, and before it comes, let all this happen."""
    gate = late.hold(name)
    tasks = [asyncio.ensure_future(asked)]
    await asyncio.sleep(0.001)
    for each in then:
        tasks.append(asyncio.ensure_future(each))
        await asyncio.sleep(0.001)
    gate.set()
    await asyncio.gather(*tasks)


@pytest.mark.parametrize("by", ["refresh", "catch_up"])
def test_what_others_begin_is_seen_though_an_older_answer_says_there_is_nothing(by):
    """Two ask at once, and the record is newer than the rows: they are not taken for known."""

    async def act(tenant, record):
        late = Late(tenant)
        talk = await opened(late, record)
        receipt = Call(model="some:model", extra={"spent": {"calls": 1, "input": 5, "output": 7}})
        entries = [Message.user("one"), Message.assistant("two"), receipt]
        await meanwhile(
            late, "read", getattr(talk, by)(), tenant.append(record.id, entries), talk.look()
        )
        await talk.refresh()
        return texts(talk), talk.spent.calls, talk.head

    assert on_a_store(act) == (["one", "two"], 1, 3)


@pytest.mark.parametrize("is_all", [True, False])
def test_what_is_appended_stays_though_an_older_answer_is_without_it(is_all):
    async def act(tenant, record):
        await tenant.append(record.id, [Message.user("one"), Message.assistant("two")])
        late = Late(tenant)
        talk = await opened(late, record)
        await meanwhile(
            late, "read", talk.load(is_all=is_all), talk.append([Message.user("three")])
        )
        return texts(talk), talk.head

    assert on_a_store(act) == (["one", "two", "three"], 3)


def test_a_turn_that_has_ended_is_over_though_an_older_record_says_it_runs():
    async def act(tenant, record):
        late = Late(tenant)
        talk = await opened(late, record)
        lease = await tenant.begin(record.id, "one", timedelta(minutes=1), {})

        async def end():
            await tenant.release(lease, drop=True)
            talk.drop_draft()

        await meanwhile(late, "load", talk.look(), end())
        return talk.record.draft

    assert on_a_store(act) is None


# What is let go


def test_what_a_fold_hides_is_forgotten():
    """The memory of an open session does not grow with the log; the first of it stays."""

    async def act(tenant, record):
        talk = await opened(tenant, record)
        await talk.append(plain(400))
        await talk.append([talk.placed(Fold(first=1, last=390))])
        talk.forget()
        return len(talk.rows), len(talk.messages), talk.count, texts(talk)

    rows, messages, count, words = on_a_store(act)

    assert (rows, messages, count) == (12, 10, 400)  # the first, ten, and the fold
    assert words == [f"m{at}" for at in range(390, 400)]


def test_a_short_fold_is_not_worth_a_gap():
    """Two reads would cost more than the messages do."""

    async def act(tenant, record):
        talk = await opened(tenant, record)
        await talk.append(plain(GAP_MIN + 10))
        return talk.placed(Fold(first=1, last=GAP_MIN))

    assert not on_a_store(act).extra


def test_a_fold_between_a_call_and_its_result_is_not_passed_over():
    """A note stands for the result, so whoever opens the session has to see it."""

    async def act(tenant, record):
        talk = await opened(tenant, record)
        call = Message.assistant(None, [ToolCall(id="c1", name="look", arguments="{}")])
        result = Message.tool("Sunny.", "c1")
        await talk.append([Message.user("?"), call, result, *plain(200), Message.user("!")])
        fold = talk.placed(Fold(first=3, last=150))
        await talk.append([fold])
        part = await opened(tenant, record)
        return part.gaps, shown(part) == shown(talk)

    assert on_a_store(act) == ([], True)


def test_a_late_result_of_a_call_that_was_passed_over_loads_everything():
    """Whether it is shown depends on a message that is not here."""

    async def act(tenant, record):
        talk = await opened(tenant, record)
        call = Message.assistant(None, [ToolCall(id="c1", name="look", arguments="{}")])
        await talk.append([*plain(100), call, *plain(100)])
        await talk.append([talk.placed(Fold(first=1, last=150))])
        talk.forget()
        assert talk.gaps
        await tenant.append(record.id, [Message.tool("Sunny.", "c1")])
        await talk.refresh()
        return talk.gaps, shown(talk) == shown(await opened(tenant, record, is_all=True))

    assert on_a_store(act) == ([], True)


def test_gaps_are_only_where_one_fold_says_all():
    """Folds over each other, open ones and those without a place hide nothing from a reader."""

    async def act(tenant, record):
        talk = await opened(tenant, record)
        await talk.append(plain(400))
        place = talk.placed(Fold(first=1, last=200))
        over = talk.placed(Fold(first=150, last=300))
        await talk.append([place])
        alone = gaps_of(talk.folds)
        await talk.append([over])
        return alone, gaps_of(talk.folds)

    alone, both = on_a_store(act)

    assert [(gap.start, gap.stop, gap.last) for gap in alone] == [(1, 200, 200)]
    assert both == []


# Views of what is about to be said


def test_what_is_pending_is_shown_and_then_there():
    """The same view goes on when it has come; nothing is counted twice."""

    async def act(tenant, record):
        talk = await opened(tenant, record)
        await talk.append(plain(2))
        said = Message.user("m2")
        first = view_of(talk, [said])
        expected = shown(talk, [said])
        await talk.append([said, Mark(what="started")])
        return first is view_of(talk), expected == shown(talk)

    assert on_a_store(act) == (True, True)


def test_what_was_pending_and_never_came_is_gone():
    """After a failed call; also when something else came instead of it, or before it."""

    async def act(tenant, record):
        talk = await opened(tenant, record)
        said, other = Message.user("said"), Message.user("other")
        assert len(view_of(talk, [said]).items) == 1
        assert len(view_of(talk).items) == 0
        view_of(talk, [said])
        await talk.append([other])
        assert texts(talk) == ["other"]
        view_of(talk, [said])
        await talk.append([Mark(what="started"), said])
        return texts(talk), shown(talk) == shown(await opened(tenant, record))

    assert on_a_store(act) == (["other", "said"], True)


def test_what_was_said_to_a_running_turn_waits_until_it_is_a_message():
    """In the order in which it was said, and also for whoever opens the session later."""

    async def act(tenant, record):
        talk = await opened(tenant, record)
        marks = [Mark(what="steer", data={"text": f"s{n}"}) for n in range(2)]
        await tenant.append(record.id, marks)
        await talk.refresh()
        waiting = [message.text for message in (await opened(tenant, record)).steering]
        await talk.append([steered(marks[0])])
        return waiting, [message.text for message in talk.steering]

    assert on_a_store(act) == (["s0", "s1"], ["s1"])
