"""Tools in a turn: run side by side, answered in order, approved, missing, steered, and misused."""

import asyncio
import threading

import pytest

from holdfast import Message, Tool, ToolCall, tool
from holdfast.errors import Busy, HoldfastError, InvalidInput, SessionNotFound, ToolUnavailable
from holdfast.testing.fake_provider import Halt
from holdfast.tools import running
from sessions_for_tests import (
    KEY,
    Judged,
    asks,
    asynchronous,
    call,
    entries,
    marks,
    messages,
    opened,
    said,
    talking,
    tool_of,
    turn_count,
    until,
)


def results(messages):
    """(call id, text, is it an error) of the results among messages."""
    return [(m.tool_call_id, m.text, m.is_error) for m in messages if m.role == "tool"]


# Running


@asynchronous
async def test_a_tool_is_run_and_the_model_goes_on(url):
    """S0-29, S0-30, S2-6: call, result, answer: each is in the log, and the result says what was
    called.
    """

    @tool
    def weather(city: str) -> str:
        """The weather in a city."""
        return f"Sunny in {city}."

    answers = (asks(call("c1", "weather", city="Turin"), text="Let me see."), "It is sunny.")
    async with talking(url, *answers, tools=[weather]) as (session, model):
        result = await session.send("The weather in Turin?")

        assert result.text == "It is sunny." and result.rounds == 2
        assert await said(session) == [
            ("user", "The weather in Turin?"),
            ("assistant", "Let me see."),
            ("tool", "Sunny in Turin."),
            ("assistant", "It is sunny."),
        ]
        (run,) = result.calls
        assert (run.call.id, run.call.name, run.round) == ("c1", "weather", 1)
        assert (run.text, run.is_error) == ("Sunny in Turin.", False)
        assert run.message == (await messages(session))[2]
        assert results(model.given[1]) == [("c1", "Sunny in Turin.", False)]
        assert await turn_count(session) == 1


@asynchronous
async def test_tools_run_side_by_side(url):
    """Each waits for the other: one after the other they would never end."""
    both = asyncio.Barrier(2)

    async def meet(**_):
        await both.wait()
        return "met"

    async with talking(url, asks("meet", "meet"), "Done.", tools=[tool_of("meet", meet)]) as (s, _):
        result = await asyncio.wait_for(s.send("Meet!"), 10)

        assert [run.text for run in result.calls] == ["met", "met"]


@asynchronous
async def test_plain_functions_run_side_by_side_too(url):
    both = threading.Barrier(2, timeout=10)

    def meet(**_):
        both.wait()
        return "met"

    async with talking(url, asks("meet", "meet"), "Done.", tools=[tool_of("meet", meet)]) as (s, _):
        result = await s.send("Meet!")

        assert [run.text for run in result.calls] == ["met", "met"]


@asynchronous
async def test_eight_tools_run_at_a_time(url):
    """S2-35."""
    at_once, most = 0, 0

    async def work(**_):
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.05)
        at_once -= 1
        return "done"

    async with talking(url, asks(*["work"] * 20), "Done.", tools=[tool_of("work", work)]) as (s, _):
        result = await s.send("Work!")

        assert len(result.calls) == 20 and most == 8


@asynchronous
async def test_results_are_shown_in_the_order_of_the_calls(url):
    """S2-35: whichever was ready first."""
    answer = asks(*[call(f"c{n}", "wait", n=n) for n in range(4)])

    async def wait(n):
        await asyncio.sleep(0.1 * (4 - n))
        return f"done {n}"

    async with talking(url, answer, "Done.", tools=[tool_of("wait", wait)]) as (session, model):
        result = await session.send("Wait!")

        expected = [(f"c{n}", f"done {n}", False) for n in range(4)]
        assert results(model.given[1]) == expected
        assert [run.call.id for run in result.calls] == ["c0", "c1", "c2", "c3"]
        assert sorted(results(await messages(session))) == expected


@asynchronous
async def test_a_result_is_stored_when_it_is_there(url):
    """It does not wait for the slowest: a crash would lose what was done."""
    gate = asyncio.Event()

    async def slow(**_):
        await gate.wait()
        return "slow"

    tools = [tool_of("slow", slow), tool_of("fast", lambda **_: "fast")]
    async with talking(url, asks("slow", "fast"), "Done.", tools=tools) as (session, _):
        turn = asyncio.create_task(session.send("Both!"))

        async def texts():
            return [text for _, text in await said(session)]

        async def is_stored():
            return "fast" in await texts()

        await until(is_stored)
        assert "slow" not in await texts()
        gate.set()

        assert (await turn).text == "Done."


@asynchronous
async def test_a_mark_says_that_a_tool_has_started(url):
    """It stands in the log before the tool runs."""
    seen = []

    async def look(**_):
        seen.extend(await entries(session))
        return "done"

    async with talking(url, asks(call("c1", "look")), "Done.", tools=[tool_of("look", look)]) as (
        session,
        _,
    ):
        result = await session.send("Look!")

        (mark,) = await marks(session, "started")
        assert mark in seen and mark.about == "c1"
        assert mark.data["name"] == "look" and mark.data["message"] == result.messages[1].id


# What goes wrong


def breaks(**_):
    raise RuntimeError("the lamp is broken")


def exits(**_):
    raise SystemExit(3)


async def stops(**_):
    raise asyncio.CancelledError


def sleeps(**_):
    threading.Event().wait(0.5)


async def sleeps_well(**_):
    await asyncio.sleep(60)


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (breaks, "the lamp is broken"),
        (exits, ""),
        (stops, ""),
        (sleeps, "0.1 s"),
        (sleeps_well, "0.1 s"),
        (lambda **_: object(), ""),
    ],
    ids=["raises", "exits", "cancels", "sleeps", "sleeps well", "no JSON"],
)
@asynchronous
async def test_what_a_tool_does_wrong_is_told_to_the_model(url, run, words):
    """S0-29: an error result in words, and the turn goes on."""
    tools = [tool_of("lamp", run, timeout=0.1), tool_of("look")]
    async with talking(url, asks(call("c1", "lamp"), call("c2", "look")), "Oh.", tools=tools) as (
        session,
        model,
    ):
        result = await session.send("Light!")

        assert result.text == "Oh."
        (first, second) = results(model.given[1])
        assert first[0] == "c1" and first[2] and words in first[1]
        assert second == ("c2", "done", False)
        assert [run.is_error for run in result.calls] == [True, False]


@asynchronous
async def test_a_tool_that_nobody_knows_is_an_error_result(url):
    """The model made it up; it is told so, with the name."""
    async with talking(url, asks(call("c1", "fly")), "I cannot.", tools=[tool_of("walk")]) as (
        session,
        model,
    ):
        result = await session.send("Fly!")

        ((id, text, is_error),) = results(model.given[1])
        assert id == "c1" and is_error and "fly" in text
        assert result.text == "I cannot." and result.calls[0].is_error


@pytest.mark.parametrize(
    "arguments", ['{"city": ', "[1]", "null", '{"town": "Turin"}', '{"city": 7}']
)
@asynchronous
async def test_arguments_that_cannot_be_read_are_an_error_result(url, arguments):
    """The tool is not run, the model can read why, and the log keeps what it wrote."""
    ran = []

    @tool
    def weather(city: str) -> str:
        ran.append(city)
        return "Sunny."

    asked = asks(ToolCall(id="c1", name="weather", arguments=arguments))
    async with talking(url, asked, "Sorry.", tools=[weather]) as (session, model):
        result = await session.send("The weather?")

        ((id, text, is_error),) = results(await messages(session))
        assert (id, is_error) == ("c1", True) and text
        assert ran == [] and result.text == "Sorry."
        assert (await messages(session))[1].calls[0].arguments == arguments
        assert len(model.requests) == 2


@asynchronous
async def test_what_a_tool_does_to_its_result_later_changes_nothing(url):
    """Bad input 117: the value is taken when it is given."""
    found = {"city": "Turin"}
    answers = (asks("look"), "Turin.", "Still Turin.")
    async with talking(url, *answers, tools=[tool_of("look", lambda **_: found)]) as (session, m):
        await session.send("Where?")
        found["city"] = "Milan"
        await session.send("Where?")

        assert "Milan" not in str(m.given[-1]) and "Turin" in m.given[-1][2].text


# The key


@asynchronous
async def test_a_tool_is_told_the_key_of_its_run(url):
    """Of the session, the turn and the call: what makes an effect happen once."""
    seen = {}

    async def look(**_):
        seen["async"] = running()

    def see(**_):
        seen["plain"] = running()

    tools = [tool_of("look", look), tool_of("see", see)]
    answers = (asks(call("c1", "look"), call("c2", "see")), "Done.")
    async with talking(url, *answers, tools=tools) as (session, _):
        result = await session.send("Look!")

        turn = result.messages[0].id
        assert seen["async"].key == f"{session.id}:{turn}:c1"
        assert seen["plain"].key == f"{session.id}:{turn}:c2"
        assert (seen["async"].session_id, seen["async"].turn) == (session.id, turn)
        assert seen["async"].call_id == "c1" and not seen["async"].cancel.is_cancelled
        assert running() is None


# Approval


def paying(paid, **options):
    async def pay(amount=0):
        paid.append(amount)
        return f"paid {amount}"

    return tool_of("pay", pay, approval=True, **options)


@asynchronous
async def test_a_tool_that_asks_for_approval_suspends_the_turn(url):
    """Nothing is stored for that call until it is answered; what needs no approval has run."""
    paid = []
    answers = (asks(call("p1", "pay", amount=12), call("l1", "look")), "Paid.")
    async with talking(url, *answers, tools=[paying(paid), tool_of("look")]) as (session, model):
        result = await session.send("Pay!")

        assert result.outcome == "pending" and [c.id for c in result.pending] == ["p1"]
        assert paid == [] and len(model.requests) == 1
        assert results(await messages(session)) == [("l1", "done", False)]
        assert [mark.about for mark in await marks(session, "started")] == ["l1"]
        done = await session.resume({"p1": True})

        assert (done.outcome, done.text, paid) == ("response", "Paid.", [12])
        assert results(model.given[1]) == [("p1", "paid 12", False), ("l1", "done", False)]
        assert session.draft is None and await turn_count(session) == 1


@asynchronous
async def test_an_approval_may_come_in_another_process(file_url):
    """The turn's state is the log: another manager on the same file goes on with it."""
    paid = []
    asked = asks(call("p1", "pay", amount=12))
    async with talking(file_url, asked, tools=[paying(paid)]) as (session, _):
        assert (await session.send("Pay!")).outcome == "pending"
    async with talking(file_url, "Paid.", tools=[paying(paid)]) as (session, model):
        result = await session.resume({"p1": True})

        assert result.text == "Paid." and paid == [12]
        assert results(model.given[0]) == [("p1", "paid 12", False)]


@pytest.mark.parametrize(
    ("answer", "is_error", "words"),
    [(False, True, ""), ("Ask the bank first.", False, "Ask the bank first.")],
    ids=["declined", "text"],
)
@asynchronous
async def test_an_answer_may_be_no_or_words(url, answer, is_error, words):
    """The tool does not run; the model reads that it was declined, or the words."""
    paid = []
    answers = (asks(call("p1", "pay", amount=12)), "I see.")
    async with talking(url, *answers, tools=[paying(paid)]) as (session, model):
        await session.send("Pay!")
        result = await session.resume({"p1": answer})

        ((id, text, has_failed),) = results(model.given[1])
        assert id == "p1" and words in text and paid == [] and result.text == "I see."
        assert has_failed == is_error


@asynchronous
async def test_what_is_not_answered_stays_pending(url):
    paid = []
    answers = (asks(call("p1", "pay", amount=1), call("p2", "pay", amount=2)), "Paid.")
    async with talking(url, *answers, tools=[paying(paid)]) as (session, model):
        assert len((await session.send("Pay!")).pending) == 2
        half = await session.resume({"p2": True})

        assert half.outcome == "pending" and [c.id for c in half.pending] == ["p1"]
        assert paid == [2] and len(model.requests) == 1
        again = await session.resume()
        assert again.outcome == "pending" and paid == [2]
        done = await session.resume({"p1": False})
        assert done.text == "Paid." and paid == [2]
        assert [id for id, _, _ in results(model.given[1])] == ["p1", "p2"]


@asynchronous
async def test_an_answer_to_a_call_that_does_not_wait_is_refused(url):
    """And nothing was done about the others."""
    paid = []
    async with talking(url, asks(call("p1", "pay")), "Paid.", tools=[paying(paid)]) as (s, model):
        await s.send("Pay!")
        with pytest.raises(InvalidInput):
            await s.resume({"p1": True, "p9": True})

        assert paid == [] and len(model.requests) == 1
        assert (await s.resume({"p1": True})).text == "Paid."


@asynchronous
async def test_another_send_declines_what_waits(url):
    """The user went on; every call has its result, and the tool never runs."""
    paid = []
    answers = (asks(call("p1", "pay", amount=12)), "Not paid.")
    async with talking(url, *answers, tools=[paying(paid)]) as (session, model):
        await session.send("Pay!")
        result = await session.send("Never mind.")

        assert result.text == "Not paid." and paid == []
        ((id, _, is_error),) = results(model.given[1])
        assert (id, is_error) == ("p1", True) and model.texts[-1] == "Never mind."
        with pytest.raises(InvalidInput):
            await session.resume({"p1": True})
        assert paid == []


# Nothing to run it


@asynchronous
async def test_a_tool_that_is_only_declared_is_unavailable_and_the_turn_waits(file_url):
    """Whoever has it goes on with the turn."""
    declared = Tool("pay", "Pays.")
    answers = (asks(call("p1", "pay")),)
    async with talking(file_url, *answers, tools=[declared]) as (session, _):
        with pytest.raises(ToolUnavailable) as raised:
            await session.send("Pay!")

        assert raised.value.name == "pay"
        assert [role for role, _ in await said(session)] == ["user", "assistant"]
    ran = []
    able = declared.bind(lambda **_: ran.append(1) or "paid")
    async with talking(file_url, "Paid.", tools=[able]) as (session, model):
        result = await session.resume()

        assert result.text == "Paid." and ran == [1]
        assert results(model.given[0]) == [("p1", "paid", False)]


@asynchronous
async def test_tools_of_a_session_are_bound_by_name(file_url):
    """The record keeps the declaration; what runs it comes from the manager."""
    async with opened(file_url) as (sessions, _):
        await sessions.get_or_create(KEY, tools=[Tool("look", "Looks.")])
    answers = (asks("look"), "Seen.")
    async with talking(file_url, *answers, tools=[tool_of("look"), tool_of("walk")]) as (s, model):
        result = await s.send("Look!")

        assert result.text == "Seen." and result.calls[0].text == "done"
        assert [(t.name, t.description) for t in model.requests[0].tools] == [("look", "Looks.")]


# Steering


@asynchronous
async def test_steering_is_seen_at_the_next_step(url):
    """S2-33: as a user's message that begins no turn, behind the results."""

    async def shop(**_):
        await session.steer("Also bread.")
        seen.append("Also bread." in str(await entries(session)) or session.draft is not None)
        return "milk"

    seen = []
    async with talking(url, asks("shop"), "Milk and bread.", tools=[tool_of("shop", shop)]) as (
        session,
        model,
    ):
        result = await session.send("Buy milk.")

        assert model.texts[-1] == "Also bread." and model.given[1][-1].synthetic == "steer"
        assert model.given[1][-1].role == "user" and result.text == "Milk and bread."
        assert "Also bread." in [text for _, text in await said(session)]
        assert await turn_count(session) == 1 and seen == [True]


@asynchronous
async def test_steering_from_another_manager_reaches_the_turn(file_url):
    """Whoever can write to the session can steer it."""
    gate, begun = asyncio.Event(), asyncio.Event()

    async def shop(**_):
        begun.set()
        await gate.wait()
        return "milk"

    answers = (asks("shop"), "Both.")
    async with (
        talking(file_url, *answers, tools=[tool_of("shop", shop)]) as (session, model),
        talking(file_url) as (other, _),
    ):
        turn = asyncio.create_task(session.send("Buy milk."))
        await begun.wait()
        await other.steer("Also bread.")
        gate.set()
        await turn

        assert model.texts[-1] == "Also bread."


@asynchronous
async def test_steering_in_the_last_step_is_not_lost(url):
    """S2-33: it was accepted, so it is in the log, or the model was asked once more."""

    async def answer(request):
        await session.steer("And a joke.")
        return "Here you are."

    async with talking(url, answer, "A joke.") as (session, _):
        await session.send("A poem!")

        assert "And a joke." in [text for _, text in await said(session)]


@asynchronous
async def test_without_a_turn_there_is_nothing_to_steer(url):
    async with talking(url, "Hello.") as (session, _):
        with pytest.raises(InvalidInput):
            await session.steer("Left!")
        await session.send("Hello?")
        with pytest.raises(InvalidInput):
            await session.steer("Left!")

        assert "Left!" not in str(await entries(session))


@pytest.mark.parametrize("words", ["", None, 7, ["Left!"], Message.user("Left!")], ids=repr)
@asynchronous
async def test_steering_is_words(url, words):
    """A picture would be lost on the way: it is refused, and the turn goes on."""
    refused = []

    async def steered(_):
        with pytest.raises(InvalidInput) as raised:
            await session.steer(words)
        refused.append(raised.value)
        return "Hello."

    async with talking(url, steered) as (session, _):
        assert (await session.send("Hello?")).text == "Hello."
        assert len(refused) == 1


# A tool and its own session (bad input 118)


@asynchronous
async def test_a_tool_may_append_to_its_own_session(url):
    """What it said is kept, and the turn goes on behind it."""

    async def note(**_):
        await session.append(Message.user("A note.", synthetic="note"))
        return "noted"

    async with talking(url, asks("note"), "Done.", "Yes.", tools=[tool_of("note", note)]) as (
        session,
        model,
    ):
        result = await asyncio.wait_for(session.send("Note!"), 10)
        await session.send("Noted?")

        texts = [text for _, text in await said(session)]
        assert result.text == "Done." and texts.count("A note.") == 1
        assert texts.index("A note.") < texts.index("Done.")
        assert "A note." in model.texts


@asynchronous
async def test_a_tool_cannot_send_on_its_own_session(url):
    """It would wait for itself: Busy at once. It may catch that; else the model reads it."""
    caught = []

    async def send(**_):
        try:
            await session.send("I too!")
        except Busy as error:
            caught.append(error)
            raise
        return "sent"

    async def resume(**_):
        try:
            await session.resume()
        except Busy as error:
            caught.append(error)
            raise

    tools = [tool_of("send", send), tool_of("resume", resume)]
    async with talking(url, asks("send", "resume"), "Busy.", tools=tools) as (session, model):
        result = await asyncio.wait_for(session.send("Send!"), 5)

        assert result.text == "Busy." and len(caught) == 2
        assert [run.is_error for run in result.calls] == [True, True]
        assert len(model.requests) == 2 and await turn_count(session) == 1


@asynchronous
async def test_a_tool_of_a_child_cannot_send_on_the_session_that_waits_for_it(url):
    """That would wait for itself as well, by way of the child's turn."""
    caught = []

    async def tell(**_):
        try:
            await session.send("And you?")
        except Busy as error:
            caught.append(error)
            raise

    async def delegate(**_):
        child = await session.child("helper")
        return str(await child.session.send("Help!", tools=[tool_of("tell", tell)]))

    answers = [asks("delegate"), asks("tell"), "Busy.", "Done."]
    async with talking(url, *answers, tools=[tool_of("delegate", delegate)]) as (session, _):
        result = await asyncio.wait_for(session.send("Delegate!"), 5)

        assert result.text == "Done." and result.calls[0].text == "Busy." and len(caught) == 1


@asynchronous
async def test_what_a_tool_has_left_behind_may_send_when_it_has_ended(url):
    """Such as a reminder: nobody waits for that, so it waits its turn as all others do."""
    left, gate = [], asyncio.Event()

    async def remind():
        await gate.wait()
        return await session.send("It is time!")

    async def later(**_):
        left.append(asyncio.create_task(remind()))
        return "I will"

    answers = [asks("later"), Halt("Good.", gate), "Thank you."]
    async with talking(url, *answers, tools=[tool_of("later", later)]) as (session, _):
        turn = asyncio.create_task(session.send("Remind me!"))
        await until(lambda: left)
        gate.set()

        assert (await turn).text == "Good."
        assert (await asyncio.wait_for(left[0], 5)).text == "Thank you."


@asynchronous
async def test_a_tool_may_delete_its_own_session(url):
    """The turn ends with a typed error; the session is gone, and nothing brings it back."""
    async with opened(url, asks("end"), "Never said.", "Hello.", tools=[]) as (sessions, model):

        async def end(**_):
            await session._tenant.delete(session.id)
            return "gone"

        session = await sessions.get_or_create(KEY, tools=[tool_of("end", end)])
        with pytest.raises(HoldfastError):
            await asyncio.wait_for(session.send("End!", tools=[tool_of("end", end)]), 10)

        with pytest.raises(SessionNotFound):
            await sessions.get(KEY)
        model._answers[:] = ["Hello."]
        anew = await sessions.get_or_create(KEY)
        assert anew.id != session.id and (await anew.send("Hello?")).text == "Hello."


@asynchronous
async def test_a_tool_may_start_a_hundred_sessions(url):
    """Each with a turn of its own, side by side with the turn that the tool runs in."""
    children = Judged(*["I am here."] * 100, name="acme:child")

    async def start(**_):
        async def one(number):
            child = await sessions.get_or_create(f"sub:{number}", model=children)
            return (await child.send("Are you there?")).text

        return ",".join(set(await asyncio.gather(*map(one, range(100)))))

    async with opened(url, asks("start"), "All of them.", tools=[tool_of("start", start)]) as (
        sessions,
        _,
    ):
        session = await sessions.get_or_create(KEY, tools=[tool_of("start", start)])
        result = await session.send("Start!")

        assert result.calls[0].text == "I am here." and result.text == "All of them."
        assert len(children.requests) == 100 and children.problems == []
        assert [len(given) for given in children.given] == [1] * 100


@asynchronous
async def test_a_tool_may_have_a_child_of_its_session(url):
    """A subagent has a conversation of its own; what it found is merged back once."""
    child_model = Judged("It is 42.", name="acme:child")

    async def ask(**_):
        child = await session.child("thinker")
        await child.session.send("What is it?", model=child_model)
        await child.merge()
        return "asked"

    async with talking(url, asks("ask"), "42.", tools=[tool_of("ask", ask)]) as (session, model):
        result = await session.send("Ask!")

        assert result.text == "42." and child_model.texts == ["What is it?"]
        assert "What is it?" not in str(await messages(session))
        assert [text for _, text in await said(session)].count("It is 42.") == 1
        assert await turn_count(session) == 1 and len(model.requests) == 2


@asynchronous
async def test_tools_are_not_run_by_two_at_once(file_url):
    """While a tool runs here, another manager cannot resume the turn."""
    gate, ran = asyncio.Event(), []

    async def work(**_):
        ran.append(1)
        await gate.wait()
        return "done"

    tools = [tool_of("work", work)]
    async with (
        talking(file_url, asks("work"), "Done.", tools=tools) as (session, _),
        talking(file_url, tools=tools) as (other, _),
    ):
        turn = asyncio.create_task(session.send("Work!"))
        await until(lambda: ran)
        with pytest.raises(Busy):
            await other.resume(wait=0)
        gate.set()

        assert (await turn).text == "Done." and ran == [1]
