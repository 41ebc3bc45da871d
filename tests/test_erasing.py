"""Erasing by session: what was said is gone from the log and from all that was made of it."""

import asyncio

import pytest

from holdfast import Message, Settings
from holdfast.entries import Fold
from holdfast.errors import Busy, InvalidInput, Overloaded
from holdfast.testing.fake_provider import Halt
from holdfast.window import Hybrid, Summarize
from sessions_for_tests import asks, asynchronous, call, messages, said, talking, tool_of, until

SECRET = "zqxjvk"


async def everything(session):
    """All that the store has of a session, as text: every branch, and the draft."""
    await session.refresh()
    tenant = session._tenant
    rows = [await tenant.read(session.id, branch.name) for branch in session.branches]
    return f"{[row.entry for line in rows for row in line]} {session._record.draft}"


async def assert_gone(session):
    assert SECRET not in await everything(session)
    assert (await session._tenant.search(SECRET)).items == ()


@pytest.fixture
def place(tmp_path):
    """A store on a file; when the test has ended, no byte of the secret is there."""
    yield f"sqlite:{tmp_path}/chats.db"
    for path in tmp_path.iterdir():
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


@asynchronous
async def test_a_message_is_gone_and_the_rest_is_as_it_was(place):
    async with talking(place, "Hello.", "Fine.") as (session, _):
        await session.send(f"I am {SECRET}.")
        await session.send("How are you?")
        first = (await session.read())[0]

        assert await session.erase(first) == 1

        await assert_gone(session)
        texts = [text for _, text in await said(session)]
        assert texts == ["Hello.", "How are you?", "Fine."]
        assert session.count == 4


@asynchronous
async def test_a_call_goes_with_its_results_and_they_with_it(place):
    look = tool_of("look", lambda **_: f"found {SECRET}")
    answers = (asks(call("c1", "look", at=SECRET)), "Done.")
    async with talking(place, *answers, tools=[look]) as (session, _):
        await session.send("Look.")
        result = (await session.read())[2]

        assert await session.erase(result.id) == 2

        await assert_gone(session)
        assert [text for _, text in await said(session)] == ["Look.", "Done."]


@asynchronous
async def test_a_turn_is_erased_by_its_number(place):
    async with talking(place, "Yes.", f"{SECRET}!", "Good.") as (session, _):
        for words in ("First.", f"Say {SECRET}.", "Third."):
            await session.send(words)

        await session.erase(2)

        await assert_gone(session)
        assert [turn.message.text for turn in await session.turns()] == ["First.", "Third."]


@pytest.mark.parametrize("what", ["none", 7, 0, -1, True, None, 1.5], ids=repr)
@asynchronous
async def test_what_is_not_there_cannot_be_erased(place, what):
    async with talking(place, "Hello.") as (session, _):
        await session.send("Hi.")

        with pytest.raises(InvalidInput):
            await session.erase(what)

        assert len(await messages(session)) == 2


@asynchronous
async def test_a_message_is_erased_from_all_branches(place):
    """One that another branch has, and one of which `replace` made a copy there."""
    async with talking(place, "Hello.") as (session, _):
        await session.send(f"I am {SECRET}.")
        (secret, answer) = await session.read()
        await session.replace([secret, answer])
        await session.revert(0)

        await session.erase(secret)

        await assert_gone(session)


@asynchronous
async def test_a_summary_on_another_branch_is_erased_too(place):
    async with talking(place, "Hello.", "Yes.") as (session, _):
        await session.send(f"I am {SECRET}.")
        await session.branch_at(1, "other")
        await session.send("Do you hear?")
        await session.fold(0, 2, Message.user(f"This is {SECRET}.", synthetic="summary"))
        await session.checkout("main")

        await session.erase((await session.read())[0])

        await assert_gone(session)
        await session.checkout("other")
        shown = [message.text for message in session.window().messages]
        assert shown[-2:] == ["Do you hear?", "Yes."] and "Hello." not in shown


async def long_talk(session, turns, secret=0):
    for turn in turns:
        words = SECRET if turn == secret else "nothing"
        await session.append(
            Message.user(f"Turn {turn}: {words}. {'word ' * 60}"),
            Message.assistant(f"Answer {turn}. {'word ' * 60}"),
        )


@pytest.mark.parametrize(
    "policy",
    [Summarize(keep_turns=1), Hybrid(1, 2), Hybrid(1, 9)],
    ids=["summarize", "hybrid", "hybrid with a long middle"],
)
@pytest.mark.parametrize("again", [False, True], ids=["once", "twice"])
@asynchronous
async def test_a_summary_of_several_parts_is_erased_with_any_of_them(place, policy, again):
    """
    Promise 19: between pinned turns are several parts, and one summary stands where the first of
    them was, for all. What was summed up of it later goes too.
    """
    summary = f"They spoke of {SECRET}. "
    settings = Settings(budget={"pinned": [3], "keep_turns": 1})
    async with talking(place, *[summary] * 2, policy=policy, settings=settings) as (session, _):
        await long_talk(session, range(1, 8), secret=5)
        assert await session.compact()
        if again:
            await long_talk(session, range(8, 12))
            assert await session.compact()
        assert SECRET in str(session.window().messages)
        before = len(session.window().messages)

        await session.erase((await session.read(8, 9))[0])

        await assert_gone(session)
        shown = [message.text or "" for message in session.window().messages]
        assert len(shown) <= before and not any("Answer 4" in text for text in shown)


@asynchronous
async def test_a_summary_of_something_else_stays(place):
    """Folds that somebody makes one after the other are each made of what they hide."""
    async with talking(place) as (session, _):
        await long_talk(session, range(1, 5), secret=1)
        secret, rest = f"This is {SECRET}.", "This is all else."
        made = [
            Fold(
                first=first,
                last=last,
                replacement=Message.user(words, synthetic="summary"),
                by="me",
            )
            for first, last, words in ((1, 2, secret), (3, 4, rest))
        ]
        await session._tenant.append(session.id, made, branch=session.branch)
        await session.refresh()

        await session.erase((await session.read(0, 1))[0])

        await assert_gone(session)
        assert "This is all else." in str(session.window().messages)


@asynchronous
async def test_the_words_of_a_turn_that_waits_are_erased_from_its_draft(place):
    """The journal holds what the model said before the turn was suspended."""
    pay = tool_of("pay", approval=True)
    answers = (asks(call("c1", "pay"), text=f"I pay {SECRET}."), "As you like.")
    async with talking(place, *answers, tools=[pay]) as (session, _):
        await session.send("Pay.")
        assert SECRET in await everything(session)

        await session.erase((await session.read())[1])

        await assert_gone(session)
        assert (session.draft.text, session.draft.ended) == ("Pay.", "pending")
        result = await session.resume()
        assert (result.text, session.draft) == ("As you like.", None)


@pytest.mark.parametrize("is_left", [False, True])
@asynchronous
async def test_what_was_never_answered_can_be_erased(place, is_left):
    """It is in a draft, or in the mark that says that another was sent instead."""
    async with talking(place, Overloaded("full"), "Fine.") as (session, _):
        with pytest.raises(Overloaded):
            await session.send(f"I am {SECRET}.")
        unanswered = session.draft.message
        if is_left:
            await session.send("Hello?")

        await session.erase(unanswered)

        await assert_gone(session)
        assert session.draft is None


@asynchronous
async def test_a_draft_of_another_message_stays(place):
    async with talking(place, "Hello.", Overloaded("full"), "Fine.") as (session, _):
        await session.send(f"I am {SECRET}.")
        with pytest.raises(Overloaded):
            await session.send("And you?")

        await session.erase(1)

        await assert_gone(session)
        assert (session.draft.text, session.draft.ended) == ("And you?", "failed")
        assert (await session.resume()).text == "Fine."


@asynchronous
async def test_what_a_running_turn_says_cannot_be_erased(place):
    """It would say it again; what stands before it can go."""
    go = asyncio.Event()
    async with talking(place, "Hello.", Halt("Fine.", go)) as (session, _):
        await session.send("Hi.")
        turn = asyncio.create_task(session.send("How are you?"))
        await until(lambda: session.draft is not None or _looked(session))
        running = session.draft.message

        with pytest.raises(Busy):
            await session.erase(running)

        assert await session.erase(1) == 2
        go.set()
        assert (await turn).text == "Fine."


async def _looked(session):
    await session.refresh()
    return session.draft is not None and session.draft.is_running


@asynchronous
async def test_a_copy_in_a_fork_is_its_own(place):
    async with talking(place, "Hello.") as (session, _):
        await session.send("I am Ada.")
        fork = await session.fork("cli:other")

        await session.erase(1)

        assert [each.text for each in await fork.read()] == ["I am Ada.", "Hello."]
        assert await session.read() == ()


@asynchronous
async def test_steering_is_erased_with_its_mark(place):
    async def steer(_):
        await session.steer(f"And {SECRET}.")
        return "One."

    async with talking(place, steer, "Two.") as (session, _):
        await session.send("Count.")
        steered = next(each for each in await session.read() if each.synthetic == "steer")

        await session.erase(steered)

        await assert_gone(session)
