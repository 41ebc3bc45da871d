"""Where a turn stops by itself: rounds, tokens, money, for a turn and for a session."""

import asyncio
from decimal import Decimal

import pytest

from holdfast import Role, Settings
from holdfast.errors import InvalidInput, LimitReached
from holdfast.notes import SUMMARY_TASK
from holdfast.testing.fake_provider import Halt
from holdfast.usage import Prices
from holdfast.window import Summarize
from sessions_for_tests import (
    Judged,
    asks,
    asynchronous,
    entries,
    messages,
    receipts,
    talking,
    tool_of,
    turn_count,
    until,
)

PRICES = Prices(input=Decimal(1_000), output=Decimal(1_000))
TOOLS = (tool_of("look"),)
OF_SESSION = ("session_rounds", "session_tokens", "session_cost")


def limited(**limits):
    return Settings(limits=limits)


def tokens(receipt):
    return receipt.usage.input + receipt.usage.output


@asynchronous
async def test_ten_rounds_are_enough(url):
    """S0-29: by default: a model that only calls tools is stopped, and that is no error."""
    async with talking(url, *[asks("look") for _ in range(30)], tools=TOOLS) as (session, model):
        result = await session.send("Look for ever!")

        assert result.outcome == "limit" and result.rounds == len(model.requests) == 10
        assert isinstance(result.limit, LimitReached)
        assert (result.limit.limit, result.limit.allowed) == ("rounds", 10)


@pytest.mark.parametrize("rounds", [1, 3])
@asynchronous
async def test_the_limit_of_rounds_is_the_sessions(url, rounds):
    answers = [asks("look") for _ in range(30)]
    async with talking(url, *answers, tools=TOOLS, settings=limited(rounds=rounds)) as (s, model):
        result = await s.send("Look for ever!")

        assert result.outcome == "limit" and len(model.requests) == rounds
        assert result.limit.allowed == rounds
        assert str(result)  # there is something to say


@asynchronous
async def test_a_turn_within_its_limits_is_not_stopped(url):
    """The control: as many rounds as are allowed, the last of which needs no tool."""
    answers = (asks("look"), asks("look"), "Seen.")
    async with talking(url, *answers, tools=TOOLS, settings=limited(rounds=3)) as (session, _):
        result = await session.send("Look!")

        assert (result.outcome, result.text, result.limit) == ("response", "Seen.", None)


@pytest.mark.parametrize("name", ["tokens", "session_tokens"])
@asynchronous
async def test_a_limit_of_tokens_stops_a_turn(url, name):
    """No call begins when as many are used."""
    answers = [asks("look") for _ in range(40)]
    settings = limited(rounds=40, **{name: 500})
    async with talking(url, *answers, tools=TOOLS, settings=settings) as (session, model):
        result = await session.send("Look for ever!")

        used = [tokens(receipt) for receipt in await receipts(session)]
        assert result.outcome == "limit" and result.limit.limit == name
        assert result.limit.allowed == 500
        assert 1 < len(model.requests) < 40 and sum(used[:-1]) < 500


@asynchronous
async def test_a_summary_in_a_turn_counts_for_its_limit(url):
    """It is a call of the model like any other: the turn that needed one has less to spend."""

    def answer(request):
        if request.messages[-1].text.startswith(SUMMARY_TASK[:40]):
            return "They looked. " * 200
        return asks("look") if request.messages[-1].role is Role.USER else "Seen."

    model = Judged(*[answer] * 200, context=2_000, output=300)
    options = {"model": model, "tools": TOOLS, "policy": Summarize(keep_turns=2)}
    async with talking(url, settings=limited(tokens=3_500), **options) as (session, _):
        results = [await session.send("word " * 150) for _ in range(12)]

        stopped = [result for result in results if result.outcome == "limit"]
        assert stopped and {result.limit.limit for result in stopped} == {"tokens"}
        assert all(result.limit.used >= 3_500 for result in stopped)


@pytest.mark.parametrize("name", ["cost", "session_cost"])
@asynchronous
async def test_a_limit_of_money_stops_a_turn(url, name):
    model = Judged(*[asks("look") for _ in range(40)], prices=PRICES)
    settings = limited(rounds=40, **{name: 0.5})
    async with talking(url, model=model, tools=TOOLS, settings=settings) as (session, _):
        result = await session.send("Look for ever!")

        paid = [receipt.cost for receipt in await receipts(session)]
        assert result.outcome == "limit" and result.limit.limit == name
        assert 1 < len(model.requests) < 40 and sum(paid[:-1]) < Decimal("0.5")
        assert result.cost == sum(paid)


@pytest.mark.parametrize("name", OF_SESSION)
@asynchronous
async def test_a_session_that_has_used_all_it_may_is_refused(url, name):
    """Before anything is sent; what is there stays as it is."""
    settings = limited(**{name: 0.001 if name == "session_cost" else 1})
    model = Judged("One.", "Two.", prices=PRICES)
    async with talking(url, model=model, settings=settings) as (session, _):
        await session.send("1")
        before = await entries(session)
        with pytest.raises(LimitReached) as raised:
            await session.send("2")

        assert raised.value.limit == name and raised.value.used >= raised.value.allowed
        assert len(model.requests) == 1 and await entries(session) == before


@pytest.mark.parametrize("name", OF_SESSION)
@asynchronous
async def test_a_call_that_somebody_cut_off_is_paid_for_too(url, name):
    """Its receipt has what the model had told by then, and limits count it."""
    settings = limited(**{name: 0.001 if name == "session_cost" else 1})
    model = Judged(Halt("one two", asyncio.Event()), "Two.", prices=PRICES)
    async with talking(url, model=model, settings=settings) as (session, _):
        turn = asyncio.create_task(session.send("1"))
        await until(lambda: session.cancel() if model.requests else False)
        result = await turn

        (receipt,) = await receipts(session)
        assert receipt.stop == "cancelled" and receipt.usage.input == result.usage.input > 0
        assert receipt.cost == result.cost > 0 and session.ledger.spent == receipt.usage
        with pytest.raises(LimitReached):
            await session.send("2")


@pytest.mark.parametrize("name", OF_SESSION)
@asynchronous
async def test_the_limit_of_a_session_holds_in_another_process(file_url, name):
    """What was used is in the log."""
    settings = limited(**{name: 0.001 if name == "session_cost" else 1})
    for turn in range(2):
        model = Judged("One.", prices=PRICES)
        async with talking(file_url, model=model, settings=settings) as (session, _):
            if turn == 0:
                await session.send("1")
            else:
                with pytest.raises(LimitReached):
                    await session.send("2")
                assert model.requests == []


@pytest.mark.parametrize("name", OF_SESSION)
@asynchronous
async def test_reverting_gives_nothing_back(url, name):
    """S2-63: what was paid for is paid for, also when nobody sees it any more."""
    settings = limited(**{name: 0.001 if name == "session_cost" else 1})
    model = Judged("One.", "Two.", prices=PRICES)
    async with talking(url, model=model, settings=settings) as (session, _):
        await session.send("1")
        await session.revert(0)
        with pytest.raises(LimitReached):
            await session.send("2")

        assert len(model.requests) == 1


@asynchronous
async def test_the_rounds_of_a_session_are_counted_over_its_turns(url):
    """The turn that meets the limit has what it had, and goes on when there is more."""
    answers = (asks("look"), "One.", asks("look"), "Two.")
    settings = limited(session_rounds=3)
    async with talking(url, *answers, tools=TOOLS, settings=settings) as (session, model):
        first = await session.send("1")
        second = await session.send("2")
        asked = len(model.requests)
        await session.update(settings={"limits": {"session_rounds": 4}})
        result = await session.resume()

        assert (first.outcome, second.outcome, asked) == ("response", "limit", 3)
        assert second.limit.limit == "session_rounds" and second.limit.used == 3
        assert result.text == "Two." and len(await messages(session)) == 8


@asynchronous
async def test_the_limit_of_a_turn_begins_anew_with_each_turn(url):
    settings = limited(tokens=200)
    async with talking(url, *["Yes."] * 4, settings=settings) as (session, _):
        outcomes = [(await session.send("Well?")).outcome for _ in range(4)]

        assert outcomes == ["response"] * 4


@asynchronous
async def test_a_turn_goes_on_behind_its_limit(url):
    """With a higher limit, `resume` takes it up where it stopped: no tool runs twice."""
    ran = []
    tools = [tool_of("look", lambda **_: ran.append(1) or "seen")]
    answers = (asks("look"), asks("look"), "Seen it all.")
    async with talking(url, *answers, tools=tools, settings=limited(rounds=2)) as (session, model):
        stopped = await session.send("Look!")
        assert stopped.outcome == "limit"
        await session.update(settings={"limits": {"rounds": 9}})
        result = await session.resume()

        assert (result.outcome, result.text) == ("response", "Seen it all.")
        assert len(ran) == 2 and len(model.requests) == 3
        assert await turn_count(session) == 1


@asynchronous
async def test_a_send_behind_a_limit_is_a_turn_of_its_own(url):
    """Every call has its result, whether the tool ran or not."""
    answers = (asks("look"), "Fine.")
    async with talking(url, *answers, tools=TOOLS, settings=limited(rounds=1)) as (session, model):
        assert (await session.send("Look!")).outcome == "limit"
        result = await session.send("Never mind.")

        assert result.text == "Fine." and model.texts[-1] == "Never mind."
        answered = {m.tool_call_id for m in await messages(session) if m.role == "tool"}
        asked = {c.id for m in await messages(session) for c in m.calls}
        assert answered == asked
        with pytest.raises(InvalidInput):
            await session.resume()
