"""A session that starts as another one, and two branches compared."""

import asyncio
import random
from datetime import timedelta
from decimal import Decimal

import pytest

import holdfast
from cut_off import Watched
from holdfast import branching, forking
from holdfast.entries import Call, Fold, Mark
from holdfast.errors import DuplicateSession, InvalidInput, TooLarge
from holdfast.messages import Message, ToolCall
from holdfast.settings import Settings
from holdfast.stores import Record
from holdfast.stores.values import Limits
from holdfast.usage import Usage
from holdfast.window import View


@pytest.fixture(params=["memory", "sqlite"])
def url(request, tmp_path):
    return "memory:" if request.param == "memory" else f"sqlite:{tmp_path}/chats.db"


def run(scenario, url="memory:", **options):
    async def main():
        async with holdfast.open_store(url, **options) as store:
            return await scenario(store.tenant())

    return asyncio.run(main())


def receipt(number):
    return Call(model="fake:one", usage=Usage(number, 1), cost=Decimal(number) / 100)


def dialogue(*numbers):
    entries = []
    for number in numbers:
        entries += [Message.user(f"q{number}"), Message.assistant(f"a{number}"), receipt(number)]
    return entries


def texts(messages):
    return [message.text for message in messages]


async def entries(tenant, record, branch=None):
    return [each.entry for each in await tenant.read(record.id, branch or record.branch)]


async def shown(tenant, record):
    """What a model would be shown of the branch in use."""
    view = View(lambda _: 1)
    for each in await tenant.read(record.id, record.branch):
        if each.entry is not None:
            view.add(each.seq, each.entry)
    return view.rendered().messages


async def said_to_search(tenant, word):
    return len((await tenant.search(word)).items)


# ---- fork ----


def test_a_fork_starts_as_the_session_was_and_goes_its_own_way(url):
    """The same record but for key and id, the same entries with their ids; neither sees the
    other's next message."""

    async def scenario(tenant):
        record = Record(
            key="k",
            agent="helper",
            settings=Settings(model="fake:one"),
            metadata={"title": "Tea"},
            tools=({"name": "look"},),
            ttl=timedelta(days=3),
        )
        said = [*dialogue(1, 2), Mark(what="noted", data={"by": "me"})]
        record = await tenant.create(record, said)

        made = await forking.fork(tenant, record, "copy")

        assert (made.key, made.parent) == ("copy", record.id)
        assert made.id != record.id
        for name in ("agent", "settings", "metadata", "tools", "ttl"):
            assert getattr(made, name) == getattr(record, name)
        assert await entries(tenant, made) == said
        await tenant.append(made.id, [Message.user("here")])
        await tenant.append(record.id, [Message.user("there")])
        assert (await entries(tenant, made))[-1].text == "here"
        assert (await entries(tenant, record))[-1].text == "there"

    run(scenario, url)


def test_a_fork_can_start_behind_a_turn(url):
    async def scenario(tenant):
        record = await tenant.create(Record(key="k"), [Message.system("s"), *dialogue(1, 2, 3)])

        for turn, count in ((0, 1), (1, 4), (3, 10)):
            made = await forking.fork(tenant, record, f"at {turn}", at=turn)
            assert len(await entries(tenant, made)) == count

        with pytest.raises(InvalidInput):
            await forking.fork(tenant, record, "at 4", at=4)

    run(scenario, url)


def test_a_fork_has_the_branch_in_use_and_not_the_others(url):
    async def scenario(tenant):
        record = await tenant.create(Record(key="k"), dialogue(1, 2))
        record = (await branching.revert(tenant, record, 1)).record
        await tenant.append(record.id, dialogue(3), branch=record.branch)

        made = await forking.fork(tenant, record, "copy")

        messages = [each for each in await entries(tenant, made) if isinstance(each, Message)]
        assert texts(messages) == ["q1", "a1", "q3", "a3"]
        assert [branch.name for branch in made.branches] == ["main"]

    run(scenario, url)


def test_a_key_that_is_taken_is_refused(url):
    async def scenario(tenant):
        record = await tenant.create(Record(key="k"), dialogue(1))
        other = await tenant.create(Record(key="other"), dialogue(2))

        with pytest.raises(DuplicateSession):
            await forking.fork(tenant, record, "other")

        assert await tenant.load("other") == other

    run(scenario, url)


def test_what_does_not_fit_in_one_piece_is_not_made_at_all(url):
    """A fork is one commit; half a session under the key would be worse than none."""

    async def scenario(tenant):
        record = await tenant.create(Record(key="k"), dialogue(1))
        await tenant.append(record.id, dialogue(2))

        with pytest.raises(TooLarge):
            await forking.fork(tenant, record, "copy")
        made = await forking.fork(tenant, record, "copy", at=1)  # the key is still free

        assert len(await entries(tenant, made)) == 3

    run(scenario, url, limits=Limits(entries=5))


def test_what_was_erased_is_not_copied_and_folds_follow_the_rest(url):
    """Seqs are others in the new log; marks stand in the place of what is gone."""

    async def scenario(tenant):
        said = [*dialogue(1, 2), Message.user("q3")]
        record = await tenant.create(Record(key="k"), said)
        summary = Message.system("They spoke of tea.", synthetic="summary")
        await tenant.append(record.id, [Fold(first=1, last=4, replacement=summary)])
        await tenant.append(record.id, [Fold(first=5, last=5), Fold(first=7, last=7)])
        await tenant.append(record.id, [Message.user("q4"), Fold(first=7, last=7, is_open=True)])
        await tenant.erase(record.id, [1, 5])
        assert await said_to_search(tenant, "q1") == 0

        made = await forking.fork(tenant, await tenant.load("k"), "copy")

        folds = [each for each in await entries(tenant, made) if isinstance(each, Fold)]
        assert [(fold.first, fold.last) for fold in folds] == [(1, 4), (5, 5), (7, 7), (7, 7)]
        messages = [each for each in await entries(tenant, made) if isinstance(each, Message)]
        assert texts(messages) == ["a1", "q2", "q3", "q4"]
        assert texts(await shown(tenant, made)) == ["They spoke of tea.", "q3", "q4"]
        assert await said_to_search(tenant, "q1") == 0
        assert await said_to_search(tenant, "q2") == 2

    run(scenario, url)


def test_folds_over_a_branch_say_the_same_in_a_log_without_the_other_branches(url):
    async def scenario(tenant):
        record = await tenant.create(Record(key="k"), dialogue(1, 2, 3))
        record = (await branching.revert(tenant, record, 1)).record
        done = await tenant.append(record.id, dialogue(4, 5), branch=record.branch)
        fold = Fold(first=done.first, last=done.first + 1)
        await tenant.append(record.id, [fold], branch=record.branch)

        made = await forking.fork(tenant, record, "copy")

        assert (await entries(tenant, made))[-1] == fold.replace(first=5, last=6)
        assert texts(await shown(tenant, made)) == ["q1", "a1", "q5", "a5"]

    run(scenario, url)


def random_log(seed):
    """Messages with calls and results, receipts, marks, and folds over ranges of any kind."""
    rng = random.Random(seed)
    log = []
    for number in range(rng.randrange(2, 40)):
        kind = rng.random()
        if kind < 0.45 or not log:
            log.append(Message.user(f"q{number}"))
        elif kind < 0.6:
            call = ToolCall(id=f"c{number}", name="look", arguments="{}")
            log += [Message.assistant(tool_calls=[call]), receipt(number)]
            log.append(Message.tool("found", f"c{number}"))
        elif kind < 0.8:
            first = rng.randrange(1, len(log) + 1)
            last = rng.randrange(first, len(log) + 1)
            note = Message.user(f"[{number}]", synthetic="summary")
            replacement = rng.choice([None, note])
            is_open = replacement is None and rng.random() < 0.3
            log.append(Fold(first=first, last=last, replacement=replacement, is_open=is_open))
        else:
            log.append(rng.choice([receipt(number), Mark(what="noted")]))
    return rng, log


def test_a_model_is_shown_the_same_of_a_fork(uncovered):
    """Whatever was folded, and on however many branches the log lies."""

    async def scenario(tenant):
        compared = 0
        for seed in range(150):
            rng, log = random_log(seed)
            record = await tenant.create(Record(key=f"k{seed}"), log)
            if rng.random() < 0.7:  # seqs with holes: entries of another branch between them
                at = rng.randrange(1, len(log) + 1)
                await tenant.append(record.id, [Message.user("aside")])
                record = await tenant.branch(record.id, "b", parent="main", at=at)
                folds = [Fold(first=rng.randrange(1, at + 1), last=at)]
                await tenant.append(record.id, [*dialogue(1), *folds, *dialogue(2)], branch="b")
                seqs = [each.seq for each in await tenant.read(record.id, "b")]
                first, last = sorted(rng.choices(seqs, k=2))
                await tenant.append(record.id, [Fold(first=first, last=last)], branch="b")
            if rng.random() < 0.3:
                await tenant.erase(record.id, [rng.randrange(1, len(log) + 1)])
            made = await forking.fork(tenant, record, f"copy{seed}")
            assert await shown(tenant, made) == await shown(tenant, record)
            compared += any(isinstance(each, Fold) for each in await entries(tenant, made))
        return compared

    assert run(scenario) > 100


# ---- diff ----


def test_two_branches_are_compared_by_where_they_forked(url):
    """What both begin with, what each has behind it, and what that cost."""

    async def scenario(tenant):
        record = await tenant.create(Record(key="k"), dialogue(1, 2))
        record = (await branching.revert(tenant, record, 1)).record
        await tenant.append(record.id, dialogue(3, 4), branch=record.branch)
        record = await tenant.load("k")

        found = await forking.diff(tenant, record, "main", "turn-1")

        assert (found.a, found.b, found.common, found.common_seq) == ("main", "turn-1", 2, 3)
        assert texts(found.only_a) == ["q2", "a2"]
        assert texts(found.only_b) == ["q3", "a3", "q4", "a4"]
        assert (found.usage_a, found.usage_b) == (Usage(2, 1), Usage(7, 2))
        assert (found.cost_a, found.cost_b) == (Decimal("0.02"), Decimal("0.07"))

    run(scenario, url)


def test_the_same_words_on_two_branches_are_not_the_same_messages(url):
    async def scenario(tenant):
        record = await tenant.create(Record(key="k"), dialogue(1))
        record = await branching.replace(tenant, record, [Message.user("q1")])

        found = await forking.diff(tenant, record, "main", record.branch)

        assert (found.common, found.common_seq) == (0, 0)
        assert (texts(found.only_a), texts(found.only_b)) == (["q1", "a1"], ["q1"])
        assert (found.cost_b, found.usage_b) == (None, Usage())

    run(scenario, url)


def test_a_branch_is_compared_with_itself_and_with_none(url):
    async def scenario(tenant):
        record = await tenant.create(Record(key="k"), dialogue(1))

        same = await forking.diff(tenant, record, "main", "main")

        assert (same.common, same.only_a, same.only_b) == (2, (), ())
        with pytest.raises(InvalidInput):
            await forking.diff(tenant, record, "main", "nowhere")

    run(scenario, url)


async def compared_naively(tenant, record, a, b):
    """By reading both whole, and counting while they are the same."""
    one, other = await tenant.read(record.id, a), await tenant.read(record.id, b)
    shared = 0
    while shared < min(len(one), len(other)) and one[shared].seq == other[shared].seq:
        shared += 1

    def of(kind, stored):
        return [each.entry for each in stored if isinstance(each.entry, kind)]

    return (
        len(of(Message, one[:shared])),
        of(Message, one[shared:]),
        of(Message, other[shared:]),
        sum((call.usage for call in of(Call, one[shared:])), Usage()),
        sum((call.usage for call in of(Call, other[shared:])), Usage()),
    )


def test_a_comparison_says_what_reading_both_branches_says(uncovered):
    """On trees of branches of any shape, cleared ones too, from a record that is older."""

    async def scenario(tenant):
        for seed in range(60):
            rng = random.Random(seed)
            record = await tenant.create(Record(key=f"k{seed}"), dialogue(1))
            if rng.random() < 0.2:
                record = await tenant.clear(record.id)
            for number in range(rng.randrange(1, 8)):
                parent = rng.choice(record.branches).name
                stored = await tenant.read(record.id, parent)
                at = rng.choice([0, *(each.seq for each in stored)])
                record = await tenant.branch(record.id, f"b{number}", parent=parent, at=at)
                for name in (f"b{number}", parent):
                    new = dialogue(*range(rng.randrange(0, 12)))[rng.randrange(3) :]
                    await tenant.append(record.id, new, branch=name)
                record = await tenant.load(record.key)
            await tenant.append(record.id, dialogue(9), branch=rng.choice(record.branches).name)
            for one in record.branches:
                for other in record.branches:
                    if one != other:
                        found = await forking.diff(tenant, record, one.name, other.name)
                        naive = await compared_naively(tenant, record, one.name, other.name)
                        common, only_a, only_b, usage_a, usage_b = naive
                        assert found.common == common
                        assert (list(found.only_a), list(found.only_b)) == (only_a, only_b)
                        assert (found.usage_a, found.usage_b) == (usage_a, usage_b)

    run(scenario)


def test_comparing_costs_what_differs_and_not_what_is_shared():
    """Two turns apart on a log of ten thousand messages: as many calls and rows as on a short one,
    whichever of the two is the longer."""

    async def scenario(tenant):
        costs = []
        for turns in (20, 5_000):
            log = dialogue(*range(turns))
            record = await tenant.create(Record(key=f"k{turns}"), log)
            record = (await branching.revert(tenant, record, turns - 2)).record
            await tenant.append(record.id, dialogue(1), branch=record.branch)
            watched = Watched(tenant)
            for pair in (("main", record.branch), (record.branch, "main")):
                found = await forking.diff(watched, await tenant.load(record.key), *pair)
                assert found.common == 2 * (turns - 2)
            costs.append((watched.asked, watched.rows))
        return costs

    few, many = run(scenario)
    assert few == many
    assert len(many[0]) == 4
    assert many[1] < 100
