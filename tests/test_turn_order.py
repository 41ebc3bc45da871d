"""Turns on one session, one after the other; what is written beside them; and turns sent twice."""

import asyncio
import time
from datetime import timedelta

import pytest

import holdfast
from holdfast import CancelToken, Message
from holdfast.errors import Busy, HoldfastError, LeaseLost, OnceMismatch, Overloaded, StoreError
from holdfast.stores.values import Lease
from holdfast.testing.fake_provider import Halt
from sessions_for_tests import (
    KEY,
    Judged,
    asks,
    asynchronous,
    marks,
    messages,
    opened,
    said,
    talking,
    tool_of,
    until,
)


def echo(request):
    return f"You said: {request.messages[-1].text}"


def texts_of(entries):
    return [text for _, text in entries]


# One after the other


@asynchronous
async def test_senders_are_served_in_the_order_they_came(url):
    """B45: each sees the turns before it, whole."""
    async with talking(url, *[echo] * 8) as (session, model):
        results = await asyncio.gather(*[session.send(f"m{n}") for n in range(8)])

        assert [result.text for result in results] == [f"You said: m{n}" for n in range(8)]
        expected = [t for n in range(8) for t in (f"m{n}", f"You said: m{n}")]
        assert texts_of(await said(session)) == expected
        assert [len(given) for given in model.given] == list(range(1, 16, 2))


@asynchronous
async def test_sessions_do_not_wait_for_each_other(url):
    """A turn that hangs on one is no matter to another."""
    async with opened(url, Halt("never", asyncio.Event(), 0), "Hello.") as (sessions, model):
        one, two = await sessions.get_or_create("cli:1"), await sessions.get_or_create("cli:2")
        hanging = asyncio.create_task(one.send("1"))
        await until(lambda: model.requests)

        assert (await asyncio.wait_for(two.send("2"), 5)).text == "Hello."
        one.cancel()
        assert (await hanging).outcome == "cancelled"


@asynchronous
async def test_who_does_not_wait_is_told_who_is_there(url):
    """B48: busy at once, with the holder's name; nothing of it is kept, and the turn goes on."""
    gate = asyncio.Event()
    async with talking(url, Halt("one two", gate, 1), "Fine.") as (session, model):
        turn = asyncio.create_task(session.send("1"))
        await until(lambda: model.requests)
        began = time.monotonic()
        with pytest.raises(Busy) as raised:
            await session.send("2", wait=0)
        assert time.monotonic() - began < 0.5
        assert raised.value.holder and raised.value.holder in str(raised.value)
        gate.set()

        assert (await turn).text == "one two"
        assert texts_of(await said(session)) == ["1", "one two"]
        assert (await session.send("3", wait=0)).text == "Fine."


@asynchronous
async def test_who_waits_in_vain_is_told_so(url):
    async with talking(url, Halt("one two", asyncio.Event(), 1), "Fine.") as (session, model):
        turn = asyncio.create_task(session.send("1"))
        await until(lambda: model.requests)
        began = time.monotonic()
        with pytest.raises(Busy):
            await session.send("2", wait=0.3)

        assert 0.25 < time.monotonic() - began < 2
        session.cancel()
        await turn
        assert (await session.send("3")).text == "Fine."


@asynchronous
async def test_two_managers_on_one_file_take_turns(file_url):
    """As two processes do: one waits for the other, and then sees what it wrote."""
    gate = asyncio.Event()
    async with (
        talking(file_url, Halt("one two", gate, 1)) as (session, model),
        talking(file_url, "Second.") as (other, other_model),
    ):
        first = asyncio.create_task(session.send("1"))
        await until(lambda: model.requests)
        with pytest.raises(Busy) as raised:
            await other.send("2", wait=0)
        assert raised.value.holder
        second = asyncio.create_task(other.send("2"))
        await asyncio.sleep(0.1)
        assert other_model.requests == []
        gate.set()
        await first

        assert (await asyncio.wait_for(second, 10)).text == "Second."
        assert other_model.texts == ["1", "one two", "2"]


@asynchronous
async def test_senders_of_two_managers_are_served_in_the_order_they_came(file_url, monkeypatch):
    """Those who came first to one do not go before who came earlier to the other."""
    monkeypatch.setattr("holdfast.stores.waiting.TURN", timedelta(hours=1))  # however slow it is
    gate = asyncio.Event()
    came = [("a", one) for one in range(4)] + [("b", 0), ("a", 4), ("b", 1), ("b", 2), ("a", 5)]
    async with (
        talking(file_url, Halt("One.", gate, after=0), *["Yes."] * 20) as (here, _),
        talking(file_url, *["Yes."] * 20) as (there, _),
    ):
        sends = []
        for where, number in came:
            sender = here if where == "a" else there
            sends.append(asyncio.create_task(sender.send(f"{where}{number}")))
            await asyncio.sleep(0.03)  # by the clock of leases they came one after the other
        gate.set()
        await asyncio.gather(*sends)

        asked = [text for role, text in await said(here) if role == "user"]
        assert asked == [f"{where}{number}" for where, number in came]


@pytest.mark.parametrize("way", ["cancel", "in vain"])
@asynchronous
async def test_who_waits_no_longer_is_not_waited_for(file_url, way):
    gate = asyncio.Event()
    async with (
        talking(file_url, Halt("One.", gate, after=0), "Two.") as (here, busy),
        talking(file_url) as (there, model),
        talking(file_url, "Three.") as (last, _),
    ):
        running = asyncio.create_task(here.send("1"))
        await until(lambda: busy.requests)
        token = CancelToken()
        waits = there.send("never", cancel=token, wait=None if way == "cancel" else 0.05)
        task = asyncio.create_task(waits)
        await asyncio.sleep(0.1)
        token.cancel()
        (outcome,) = await asyncio.gather(task, return_exceptions=True)
        gate.set()
        await running
        result = await last.send("2", wait=0)

        assert isinstance(outcome, Busy) or outcome.outcome == "cancelled"
        assert result.text == "Three." and not model.requests


@asynchronous
async def test_many_turns_of_two_managers_are_all_there(file_url):
    """None is lost, and no two are mixed."""
    async with (
        talking(file_url, *[echo] * 10) as (session, _),
        talking(file_url, *[echo] * 10) as (other, _),
    ):
        sends = [each.send(f"{n}{name}") for n in range(10) for name, each in _both(session, other)]
        await asyncio.gather(*sends)

        found = texts_of(await said(session))
        assert len(found) == 40
        assert [f"You said: {text}" for text in found[0::2]] == found[1::2]
        assert sorted(found[0::2]) == sorted(f"{n}{name}" for n in range(10) for name in "ab")


def _both(session, other):
    return (("a", session), ("b", other))


@asynchronous
async def test_a_send_sees_what_another_manager_has_changed(file_url):
    """The branch in use, the messages, the settings: a session is refreshed before it sends."""
    async with (
        talking(file_url, "one", "two") as (session, _),
        talking(file_url, "three") as (other, model),
    ):
        await session.send("1")
        await session.send("2")
        await session.revert(1)
        await session.append(Message.user("Meanwhile.", synthetic="x"))
        await session.update(settings={"system": "Be brief."})
        await other.send("3")

        assert model.texts == ["1", "one", "Meanwhile.", "3"]
        assert model.requests[0].system == "Be brief."


# Written beside a turn


@pytest.mark.parametrize("where", ["here", "in another manager"])
@asynchronous
async def test_an_append_beside_a_turn_is_kept(file_url, where):
    """It is in the log where it was written, and the turn goes on behind it."""
    gate = asyncio.Event()
    async with (
        talking(file_url, Halt("one two", gate, 1), "Fine.") as (session, model),
        talking(file_url) as (other, _),
    ):
        turn = asyncio.create_task(session.send("Count!"))
        await until(lambda: model.requests)
        writer = session if where == "here" else other
        await asyncio.wait_for(
            writer.append(Message.assistant("By the way."), Message.user("Oh.", synthetic="x")), 5
        )
        gate.set()
        result = await turn

        assert result.outcome == "response"
        assert texts_of(await said(session)) == ["By the way.", "Oh.", "Count!", "one two"]
        await session.send("Well?")
        assert model.texts[-5:] == ["By the way.", "Oh.", "Count!", "one two", "Well?"]


@asynchronous
async def test_an_append_while_a_tool_runs_is_kept(file_url):
    """The call and its result find each other around it."""
    gate, begun = asyncio.Event(), asyncio.Event()

    async def work(**_):
        begun.set()
        await gate.wait()
        return "worked"

    async with (
        talking(file_url, asks("work"), "Done.", tools=[tool_of("work", work)]) as (session, model),
        talking(file_url) as (other, _),
    ):
        turn = asyncio.create_task(session.send("Work!"))
        await begun.wait()
        await other.append(Message.user("Beside.", synthetic="x"))
        gate.set()

        assert (await turn).text == "Done."
        found = texts_of(await said(session))
        assert found.index("Beside.") < found.index("worked") < found.index("Done.")
        assert "Beside." in model.texts


@pytest.mark.parametrize("where", ["here", "in another manager"])
@asynchronous
async def test_a_revert_beside_a_turn_wins(file_url, where):
    """The result is on a branch of its own, the caller gets a typed error, and the branch in use
    is what the revert made of it."""
    gate = asyncio.Event()
    answers = ("one", "two", Halt("three three", gate, 1), "Fine.")
    async with (
        talking(file_url, *answers) as (session, model),
        talking(file_url) as (other, _),
    ):
        await session.send("1")
        await session.send("2")
        turn = asyncio.create_task(session.send("3"))
        await until(lambda: len(model.requests) == 3)
        reverter = session if where == "here" else other
        await reverter.refresh()
        reverted = await asyncio.wait_for(reverter.revert(1), 5)
        gate.set()
        with pytest.raises(StoreError):
            await turn
        await session.refresh()

        assert reverted.turn_count == 1 and session.branch == reverted.branch
        assert texts_of(await said(session)) == ["1", "one"]
        lines = [texts_of(await said(session, branch.name)) for branch in session.branches]
        assert ["1", "one", "2", "two", "3", "three three"] in lines
        assert (await session.send("Well?")).text == "Fine."
        assert model.texts == ["1", "one", "Well?"]


async def steal(url, key=KEY):
    """Take the lease from the turn that runs, as if its time were over."""
    async with holdfast.open_store(url) as store:
        tenant = store.tenant()
        draft = (await tenant.load(key)).draft
        assert draft.is_running
        id = (await tenant.load(key)).id
        held = Lease(id, draft.token, draft.owner, timedelta(minutes=1))
        await tenant.release(held)
        lease = await tenant.begin(id, "the thief", timedelta(minutes=5), {})
        await tenant.append(id, [Message.user("Mine."), Message.assistant("Yes.")], lease=lease)
        await tenant.release(lease, drop=True)


@asynchronous
async def test_a_turn_that_lost_its_lease_leaves_the_log_alone(file_url):
    """Another ran a turn meanwhile: this one's answer is on a branch of its own, and LeaseLost."""
    gate = asyncio.Event()
    async with talking(file_url, Halt("one two", gate, 1), "Fine.") as (session, model):
        turn = asyncio.create_task(session.send("Count!"))
        await until(lambda: model.requests)
        await steal(file_url)
        gate.set()
        with pytest.raises(LeaseLost):
            await turn
        await session.refresh()

        assert texts_of(await said(session)) == ["Mine.", "Yes."]
        lines = [texts_of(await said(session, branch.name)) for branch in session.branches]
        assert any(line[-2:] == ["Count!", "one two"] for line in lines)
        assert (await session.send("Well?")).text == "Fine."
        assert model.texts == ["Mine.", "Yes.", "Well?"]


@asynchronous
async def test_a_turn_that_lost_its_lease_runs_no_tool(file_url):
    """Another may be running it."""
    gate, ran = asyncio.Event(), []
    answer = Halt(asks("pay", text="one two"), gate, 1)
    tools = [tool_of("pay", lambda **_: ran.append(1))]
    async with talking(file_url, answer, tools=tools) as (session, model):
        turn = asyncio.create_task(session.send("Pay!"))
        await until(lambda: model.requests)
        await steal(file_url)
        gate.set()
        with pytest.raises(LeaseLost):
            await turn

        assert ran == []


@asynchronous
async def test_a_clear_beside_a_turn_wins(url):
    """The conversation is gone, and the turn that ran does not bring it back."""
    gate = asyncio.Event()
    async with talking(url, "one", Halt("two two", gate, 1), "Fine.") as (session, model):
        await session.send("1")
        turn = asyncio.create_task(session.send("2"))
        await until(lambda: len(model.requests) == 2)
        await asyncio.wait_for(session.clear(), 5)
        gate.set()
        with pytest.raises(HoldfastError):
            await turn
        await session.refresh()

        assert await messages(session) == []
        assert (await session.send("3")).text == "Fine." and model.texts == ["3"]


@asynchronous
async def test_a_clear_beside_the_first_turn_wins(url):
    """On no branch is there anything of what was said, or of the answer that came too late."""
    gate = asyncio.Event()
    async with talking(url, Halt("one one", gate, 1)) as (session, model):
        turn = asyncio.create_task(session.send("1"))
        await until(lambda: len(model.requests) == 1)
        await asyncio.wait_for(session.clear(), 5)
        gate.set()
        with pytest.raises(LeaseLost):
            await turn
        await session.refresh()

        tenant = session._bench.tenant
        found = [await tenant.read(session.id, branch.name) for branch in session.branches]
        assert not any(found)


# Sent twice


@asynchronous
async def test_what_was_sent_once_is_not_sent_again(url):
    """The first result, whole, without a call."""
    async with talking(url, asks("look"), "Hello.", tools=[tool_of("look")]) as (session, model):
        first = await session.send("Hello?", once="m-1")
        again = await session.send("Hello?", once="m-1")

        assert (again.text, again.outcome) == (first.text, first.outcome)
        assert tuple(again.messages) == tuple(first.messages)
        assert again.usage == first.usage and again.rounds == first.rounds
        assert [run.call for run in again.calls] == [run.call for run in first.calls]
        assert len(model.requests) == 2 and session.count == 4


@asynchronous
async def test_once_holds_in_another_manager_and_after_other_turns(file_url):
    async with talking(file_url, "Hello.", "Other.") as (session, _):
        first = await session.send("Hello?", once="m-1")
        await session.send("And now?", once="m-2")
    async with talking(file_url) as (session, model):
        again = await session.send("Hello?", once="m-1")

        assert again.text == "Hello." and tuple(again.messages) == tuple(first.messages)
        assert model.requests == [] and session.count == 4


@asynchronous
async def test_a_once_that_is_used_for_something_else_is_refused(url):
    async with talking(url, "Hello.", "Fine.") as (session, model):
        await session.send("Hello?", once="m-1")
        with pytest.raises(OnceMismatch) as raised:
            await session.send("Good bye.", once="m-1")

        assert raised.value.once == "m-1" and len(model.requests) == 1
        assert texts_of(await said(session)) == ["Hello?", "Hello."]
        assert (await session.send("Good bye.", once="m-2")).text == "Fine."


@pytest.mark.parametrize("where", ["here", "in another manager"])
@asynchronous
async def test_who_sends_again_while_it_runs_gets_the_same_result(file_url, where):
    """A client that lost its connection, and asks again before the answer is there."""
    gate = asyncio.Event()
    async with (
        talking(file_url, Halt("one two", gate, 1)) as (session, model),
        talking(file_url) as (other, other_model),
    ):
        first = asyncio.create_task(session.send("Count!", once="m-1"))
        await until(lambda: model.requests)
        sender = session if where == "here" else other
        again = asyncio.create_task(sender.send("Count!", once="m-1"))
        await asyncio.sleep(0.2)
        assert not again.done()
        gate.set()
        results = await asyncio.wait_for(asyncio.gather(first, again), 10)

        assert [result.text for result in results] == ["one two", "one two"]
        assert tuple(results[0].messages) == tuple(results[1].messages)
        assert len(model.requests) + len(other_model.requests) == 1
        assert texts_of(await said(session)) == ["Count!", "one two"]


@asynchronous
async def test_a_failed_turn_is_tried_again_with_the_same_once(url):
    """S2-28: one message of the user, however often it was tried; nothing was abandoned."""
    async with talking(url, Overloaded("1"), Overloaded("2"), "Hello.") as (session, model):
        for _ in range(2):
            with pytest.raises(Overloaded):
                await session.send("Hello?", once="m-1")
        result = await session.send("Hello?", once="m-1")

        assert result.text == "Hello." and len(model.requests) == 3
        assert texts_of(await said(session)) == ["Hello?", "Hello."]
        assert await marks(session, "abandoned") == []


@asynchronous
async def test_a_turn_that_waits_for_approval_is_the_same_when_it_is_sent_again(url):
    """It still waits, and the tool has not run."""
    ran = []
    tools = [tool_of("pay", lambda **_: ran.append(1), approval=True)]
    async with talking(url, asks("pay"), "Paid.", tools=tools) as (session, model):
        first = await session.send("Pay!", once="m-1")
        again = await session.send("Pay!", once="m-1")

        assert first.outcome == again.outcome == "pending"
        assert [c.id for c in again.pending] == [c.id for c in first.pending]
        assert ran == [] and len(model.requests) == 1
        done = await session.resume({first.pending[0].id: True})
        assert done.text == "Paid." and ran == [1]


@asynchronous
async def test_what_is_appended_later_does_not_open_a_turn_that_has_ended(url):
    """A note behind the answer is no question: sent again under its name, the first is returned."""
    async with talking(url, "Hello.", "Again?") as (session, model):
        first = await session.send("Hello?", once="m-1")
        await session.append(Message.user("It is noon.", synthetic="note"))

        again = await session.send("Hello?", once="m-1")

        assert (again.text, again.outcome) == (first.text, "response")
        assert len(model.requests) == 1 and session.count == 3


@pytest.mark.parametrize("way", ["revert", "replace"])
@asynchronous
async def test_once_holds_on_all_branches(url, way):
    """Its scope is the session: whoever delivers again does not know that somebody went back."""
    async with talking(url, "Hello.", "Again?") as (session, model):
        first = await session.send("Hello?", once="m-1")
        await (session.revert(0) if way == "revert" else session.replace([]))

        again = await session.send("Hello?", once="m-1")

        assert tuple(again.messages) == tuple(first.messages) and again.usage == first.usage
        assert len(model.requests) == 1 and session.count == 0 and session.draft is None


@asynchronous
async def test_ten_who_send_the_same_at_once_are_one_turn(url):
    model = Judged("one two", pause_s=0.01)
    async with talking(url, model=model) as (session, _):
        sends = [session.send("Count!", once="m-1") for _ in range(10)]
        results = await asyncio.gather(*sends)

        assert {result.text for result in results} == {"one two"} and len(model.requests) == 1
        assert session.count == 2


# Many at once


@asynchronous
async def test_sessions_are_never_mixed_up(url):
    """Fifty at a time on one manager and one model: each is shown its own words alone."""

    async def slow_echo(request):
        await asyncio.sleep(0.001 * (hash(request.messages[-1].text) % 5))
        return echo(request)

    async with opened(url, *[slow_echo] * 200) as (sessions, model):

        async def talk(number):
            session = await sessions.get_or_create(f"cli:{number}")
            for turn in range(4):
                result = await session.send(f"canary-{number}-{turn}")
                assert result.text == f"You said: canary-{number}-{turn}"
            return texts_of(await said(session))

        found = await asyncio.gather(*map(talk, range(50)))

        for number, texts in enumerate(found):
            assert len(texts) == 8 and all(f"canary-{number}-" in text for text in texts)
        for given in model.given:
            assert len({message.text.split("canary-")[1].split("-")[0] for message in given}) == 1


@asynchronous
async def test_an_approval_that_comes_twice_runs_the_tool_once(file_url):
    """Two people press the button, at two machines: both are told how it ended."""
    ran = []

    async def pay(**_):
        ran.append(1)
        await asyncio.sleep(0.05)
        return "paid"

    tools = [tool_of("pay", pay, approval=True)]
    asked = asks("pay")
    async with (
        talking(file_url, asked, "Paid.", tools=tools) as (session, _),
        talking(file_url, "Paid.", tools=tools) as (other, _),
    ):
        await session.send("Pay!")
        answers = {asked.calls[0].id: True}
        found = await asyncio.gather(session.resume(answers), other.resume(answers))

        assert ran == [1] and [each.text for each in found] == ["Paid.", "Paid."]
        assert texts_of(await said(session)) == ["Pay!", None, "paid", "Paid."]
