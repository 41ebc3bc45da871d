"""Observing through turns: what a user of a session sees of observations and reflections.

The models here answer questions, and write notes when they are asked for some.
"""

import asyncio

import pytest

from holdfast import Message, Settings
from holdfast.entries import Fold
from holdfast.errors import Overloaded
from holdfast.events import Folded
from holdfast.notes import OBSERVATION_TASK, REFLECTION_TASK
from holdfast.testing.fake_provider import Halt
from holdfast.window import Observe
from holdfast.window.observe import OBSERVATION, REFLECTION
from sessions_for_tests import (
    Judged,
    asks,
    asynchronous,
    entries,
    events_of,
    messages,
    opened,
    receipts,
    said,
    talking,
    tool_of,
    until,
)

SAID = "All work and no play makes a dull day. " * 8  # some eighty tokens
SECRET = "zqxjvk"
LITTLE = Observe(message_tokens=300, observations_max=1, merge_at=2)  # each after some turns


def is_task(request, task):
    return (request.messages[-1].text or "").startswith(task[:40])


def answering(request, notes=None):
    """An answer, or notes: `notes` gives them for the transcript if it is not None."""
    words = request.messages[-1].text or ""
    for kind, task in ((OBSERVATION, OBSERVATION_TASK), (REFLECTION, REFLECTION_TASK)):
        if is_task(request, task):
            secret = f" {SECRET}" if SECRET in words else ""
            return notes(words) if notes else f"- the {kind}{secret}"
    return f"Answer to {words[:12]} {SAID}"


def model(answer=answering, **options):
    return Judged(*[answer] * 200, **options)


async def talk(session, turns, first=0, **options):
    for turn in range(first, first + turns):
        await session.send(f"Question {turn:03} {SAID}", **options)


async def folds(session, branch=None):
    return [each for each in await entries(session, branch) if isinstance(each, Fold)]


def remembered(session):
    """What of its window is an observation or a reflection, in order."""
    return [fold.why for fold in sorted(session.window().folds, key=lambda fold: fold.first)]


def shown(session):
    return [message.text or "" for message in session.window().messages]


@asynchronous
async def test_what_was_said_is_observed_behind_a_turn(url):
    """S1-58: the answer is there, then older turns become notes; the log keeps all of it."""
    heard = []
    async with talking(url, model=model(), policy=LITTLE) as (session, given):
        await talk(session, 3, on_event=heard.append)
        assert await folds(session) == []
        await session.send(f"Question 003 {SAID}", on_event=heard.append)

        (fold,) = await folds(session)
        assert (fold.by, fold.why) == ("observe", OBSERVATION)
        assert events_of(Folded, heard)[-1].folds == (fold,)
        assert [text[:12] for text in shown(session)] == [
            "Question 000", "[Context Sum", "Question 003", "Answer to Qu",
        ]  # fmt: skip
        assert "- the observation" in shown(session)[1]
        assert session.count == 8 and "observation" not in str(await said(session))
        assert len(await receipts(session)) == 5  # four answers, and the notes
        assert sum(is_task(each, OBSERVATION_TASK) for each in given.requests) == 1
        assert is_task(given.requests[-1], OBSERVATION_TASK)


@asynchronous
async def test_observations_become_a_reflection_and_reflections_one(url):
    """S1-58: each is made of those before, and the model is shown few of them."""
    async with talking(url, model=model(), policy=LITTLE) as (session, given):
        seen = set()
        for turn in range(30):
            await session.send(f"Question {turn:03} {SAID}")
            kinds = remembered(session)
            assert kinds.count(OBSERVATION) <= 2 and kinds.count(REFLECTION) <= 2
            assert kinds == sorted(kinds, reverse=True)  # what is older is further put together
            seen.add(tuple(kinds))

        assert {(OBSERVATION,), (REFLECTION,), (REFLECTION, REFLECTION)} <= seen
        asked = [each for each in given.requests if is_task(each, REFLECTION_TASK)]
        assert len(asked) > 3 and not any("Question" in str(each.messages) for each in asked)
        assert "- the observation" in str(asked[0].messages)
        assert session.count == 60 and len(shown(session)) < 10


@asynchronous
async def test_calls_are_observed_with_their_results(url):
    """S1-58: whole turns go: nothing is left that a vendor would refuse (`talking` judges it)."""

    def answer(request):
        if request.messages[-1].role == "user" and not is_task(request, OBSERVATION_TASK):
            return asks("look") if "Question" in (request.messages[-1].text or "") else "Hm."
        return answering(request)

    tools = [tool_of("look", lambda **_: SAID)]
    async with talking(url, model=model(answer), policy=LITTLE, tools=tools) as (session, given):
        await talk(session, 8)

        written = [each for each in given.requests if is_task(each, OBSERVATION_TASK)]
        assert written and "[Response from look] All work" in written[0].messages[-1].text
        assert {fold.by for fold in await folds(session)} == {"observe"}


# When it fails

BAD = [
    "",
    " \n",
    asks("look"),
    Overloaded(),
    RuntimeError("boom"),
    Halt("one two three four", Overloaded(), 0),
]


@pytest.mark.parametrize(
    "bad", BAD, ids=["empty", "blank", "calls", "overloaded", "broken", "cut off"]
)
@asynchronous
async def test_a_failure_leaves_everything_as_it_is(url, bad):
    """S1-58: no turn fails, nothing is folded; and the next turn tries again."""
    works = []

    def answer(request):
        is_notes = is_task(request, OBSERVATION_TASK)
        return bad if is_notes and not works else answering(request)

    async with talking(url, model=model(answer), policy=LITTLE) as (session, given):
        await talk(session, 6)

        assert await folds(session) == [] and len(shown(session)) == session.count == 12
        assert session.draft is None
        tried = [each for each in given.requests if is_task(each, OBSERVATION_TASK)]
        assert len(tried) == 3
        paid = 3 if isinstance(bad, str | Message) else 0
        assert len(await receipts(session)) == 6 + paid
        works.append(True)
        await talk(session, 1, first=6)

        assert remembered(session) == [OBSERVATION]
        assert [text[:12] for text in shown(session)][-2:] == ["Question 006", "Answer to Qu"]


@asynchronous
async def test_a_reflection_that_fails_leaves_the_observations(url):
    """S1-58: and the other way round: what is due together is done together or not at all."""

    def answer(request):
        return Overloaded() if is_task(request, REFLECTION_TASK) else answering(request)

    async with talking(url, model=model(answer), policy=LITTLE) as (session, _):
        await talk(session, 10)

        assert set(remembered(session)) == {OBSERVATION} and session.count == 20
        assert shown(session)[-1].startswith("Answer to Question 00")


@asynchronous
async def test_what_was_paid_for_has_a_receipt_though_nothing_came_of_it(url):
    """S1-58: of two observations the second fails: neither is made, and the first was paid."""
    tried = []

    def answer(request):
        if is_task(request, OBSERVATION_TASK):
            tried.append(request)
            return Overloaded() if len(tried) == 2 else "- the observation"
        return answering(request)

    settings = Settings(budget={"pinned": [4]})
    options = {"model": model(answer), "policy": LITTLE, "settings": settings}
    async with talking(url, **options) as (session, _):
        for number in range(7):
            await session.append(
                Message.user(f"Question {number:03} {SAID}"), Message.assistant(SAID)
            )

        assert await session.compact() == ()
        assert len(tried) == 2 and len(await receipts(session)) == 1
        assert len(await session.compact()) == 2 and len(await receipts(session)) == 3


@asynchronous
async def test_a_failure_before_a_call_does_not_hold_it_up(url):
    """S1-58: when there is more than the budget has, it is tried first, and then done without."""

    def answer(request):
        return Overloaded() if is_task(request, OBSERVATION_TASK) else answering(request)

    policy = Observe(budget_tokens=1_000)
    async with talking(url, model=model(answer), policy=policy) as (session, given):
        for number in range(20):
            await session.append(
                Message.user(f"Question {number:03} {SAID}"), Message.assistant(SAID)
            )
        result = await session.send("And now?")

        assert result.text.startswith("Answer to And now?")
        assert [is_task(each, OBSERVATION_TASK) for each in given.requests] == [True, False, True]
        assert len(given.given[1]) == 41 and await folds(session) == []


@asynchronous
async def test_an_import_is_observed_before_the_first_call(url):
    """S1-58: what is before the current turn has no more than the budget."""
    async with talking(url, model=model(), policy=Observe(budget_tokens=1_000)) as (session, given):
        for number in range(20):
            await session.append(
                Message.user(f"Question {number:03} {SAID}"), Message.assistant(SAID)
            )
        await session.send("And now?")

        assert is_task(given.requests[0], OBSERVATION_TASK)
        assert given.requests[1].tokens < 1_000
        assert [message.text[:12] for message in given.given[1]] == [
            "Question 000", "[Context Sum", "All work and", "And now?",
        ]  # fmt: skip


@asynchronous
async def test_a_cancel_of_the_observing_leaves_the_answer(url):
    """S1-58: the turn has its answer, and it is the result."""
    never = asyncio.Event()

    def answer(request):
        if is_task(request, OBSERVATION_TASK):
            return Halt("one two three four", never, 0)
        return answering(request)

    async with talking(url, model=model(answer), policy=LITTLE) as (session, given):
        await talk(session, 3)
        turn = asyncio.create_task(session.send(f"Question 003 {SAID}"))
        await until(lambda: len(given.requests) == 5)
        session.cancel()
        result = await turn

        assert result.text.startswith("Answer to Question 003")
        assert await folds(session) == [] and session.count == 8 and session.draft is None


# What becomes of it


@asynchronous
async def test_what_was_observed_is_known_in_another_process(file_url):
    """S1-58: nothing of it is in memory alone: it goes on where it was."""
    async with talking(file_url, model=model(), policy=LITTLE) as (session, _):
        await talk(session, 16)
        kinds, window = remembered(session), tuple(session.window().messages)
    async with talking(file_url, model=model(), policy=LITTLE) as (session, given):
        assert remembered(session) == kinds and tuple(session.window().messages) == window
        await talk(session, 6, first=16)

        written = [each for each in given.requests if is_task(each, OBSERVATION_TASK)]
        assert written and "Question 012" not in str(written[0].messages)
        assert REFLECTION in remembered(session)


@asynchronous
async def test_a_crash_while_observing_loses_nothing(file_url):
    """S1-58: the answer is in the log by then; the next process observes."""
    never = asyncio.Event()

    def answer(request):
        return (
            Halt("one two three four", never, 0)
            if is_task(request, OBSERVATION_TASK)
            else answering(request)
        )

    async with opened(file_url, model=model(answer), policy=LITTLE) as (sessions, given):
        session = await sessions.get_or_create("cli:direct")
        await talk(session, 3)
        turn = asyncio.create_task(session.send(f"Question 003 {SAID}"))
        await until(lambda: len(given.requests) == 5)
        turn.cancel()
        await asyncio.wait([turn])
    async with talking(file_url, model=model(), policy=LITTLE) as (session, _):
        assert session.count == 8 and await folds(session) == []
        await talk(session, 1, first=4)

        assert remembered(session) == [OBSERVATION] and session.count == 10


@asynchronous
async def test_a_branch_has_the_observations_of_its_line(file_url):
    """S1-58: what was observed behind the turn that is gone back to is as it was said again."""
    async with talking(file_url, model=model(), policy=LITTLE) as (session, _):
        await talk(session, 16)
        kinds, first = remembered(session), session.branch
        await session.revert(3)

        assert remembered(session) == [] and session.count == 6
        assert [text[:12] for text in shown(session)][::2] == [f"Question 00{n}" for n in range(3)]
        await talk(session, 2, first=3)
        assert remembered(session) == [OBSERVATION]
        await session.checkout(first)
        assert remembered(session) == kinds and REFLECTION in kinds


@asynchronous
async def test_a_copy_knows_them_too(file_url):
    """S1-58: in a fork the numbers of the entries are others."""
    async with talking(file_url, model=model(), policy=LITTLE) as (session, _):
        await talk(session, 10)
        await session.revert(8)
        await talk(session, 6, first=8)
        copy = await session.fork("cli:copy")

        kinds = remembered(session)
        assert remembered(copy) == kinds and shown(copy) == shown(session)
        await talk(copy, 6, first=14)
        assert set(remembered(copy)) <= {OBSERVATION, REFLECTION} and copy.count == 40


@pytest.mark.parametrize("turns", [4, 8, 16], ids=["observed", "reflected", "merged"])
@asynchronous
async def test_what_is_erased_is_gone_from_all_that_was_made_of_it(tmp_path, turns):
    """S1-58, promise 19: from the observation, the reflection made of that, and the file."""
    url = f"sqlite:{tmp_path}/chats.db"
    async with talking(url, model=model(), policy=LITTLE) as (session, _):
        await session.send(f"Question 000 {SAID}")
        await session.send(f"The word is {SECRET}. {SAID}")
        await talk(session, turns, first=2)
        kinds = [kind for kind, text in zip(remembered(session), shown(session)[1:], strict=False)
                 if SECRET in text]  # fmt: skip
        assert kinds == [OBSERVATION if turns == 4 else REFLECTION]
        made = [fold for fold in await folds(session) if SECRET in str(fold.replacement)]
        assert len(made) >= {4: 1, 8: 2, 16: 3}[turns]
        (secret,) = [each for each in await messages(session) if SECRET in (each.text or "")
                     and each.role == "user"]  # fmt: skip

        await session.erase(secret)

        assert SECRET not in str(shown(session)) + str(await entries(session))
        assert (await session._tenant.search(SECRET)).items == ()
        await talk(session, 5, first=80)  # and it goes on from there
        assert SECRET not in str(shown(session)) + str(await entries(session))
        assert {OBSERVATION, REFLECTION} & set(remembered(session))
    for path in tmp_path.iterdir():
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


@asynchronous
async def test_it_can_be_asked_for(url):
    """S1-58: by whoever runs a loop of his own, however little was said."""
    async with talking(url, model=model()) as (session, _):
        for number in range(4):
            await session.append(
                Message.user(f"Question {number:03} {SAID}"), Message.assistant(SAID)
            )
        (fold,) = await session.compact(Observe())

        assert (fold.by, fold.why) == ("observe", OBSERVATION)
        assert await session.compact(Observe()) == ()
