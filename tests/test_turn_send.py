"""A turn, from what the user says to what the model answers: what is returned, and what is kept.

Everything here is seen from outside: through the session, through what the model was asked, and
through the log.
"""

import asyncio
import json
import logging
from datetime import UTC, datetime
from decimal import Decimal

import pytest

import holdfast
from holdfast import Message, Settings, Tool, Usage
from holdfast.errors import (
    AuthError,
    ConnectionFailed,
    ContentBlocked,
    HoldfastError,
    InvalidInput,
    InvalidRequest,
    Overloaded,
    ProtocolError,
    RateLimited,
    SessionNotFound,
)
from holdfast.events import (
    Outcome,
    Retrying,
    TextDelta,
    ThinkingDelta,
    ToolCallReady,
    ToolCallStarted,
    ToolResult,
    TurnFinished,
    TurnStarted,
    UsageUpdate,
)
from holdfast.parts import File, Image, Text, Thinking
from holdfast.testing import validators
from holdfast.testing.fake_provider import Halt
from holdfast.usage import Prices
from loopback import Loopback, until_closed, whole
from sessions_for_tests import (
    KEY,
    Judged,
    asks,
    asynchronous,
    call,
    chat_events,
    entries,
    events_of,
    marks,
    messages,
    opened,
    receipts,
    said,
    talking,
    tool_of,
    turn_count,
    wire_model,
)

PNG = b"\x89PNG\r\n\x1a\n"
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
PRICES = Prices(input=Decimal(3), output=Decimal(15))
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}


# What is returned, and what is kept


@asynchronous
async def test_a_turn_gives_the_answer_and_keeps_both_sides(url):
    """S2-6: the result holds what the turn added, the user's message first, and so does the log."""
    async with talking(url, "Hello, Ada.") as (session, model):
        result = await session.send("I am Ada.")

        assert result.text == str(result) == "Hello, Ada."
        assert result.outcome == "response" and result.outcome is Outcome.RESPONSE
        assert [message.role for message in result.messages] == ["user", "assistant"]
        assert result.message == result.messages[-1] and result.message.model == model.name
        assert (result.rounds, result.calls, result.pending) == (1, (), ())
        assert (result.data, result.limit) == (None, None)
        assert result.usage.input == model.requests[0].tokens and result.usage.output > 0
        assert tuple(session.messages) == tuple(result.messages)
        assert session.count == 2 and session.draft is None


@asynchronous
async def test_what_was_said_is_there_in_the_morning(file_url):
    """S2-75, S2-76: another manager on the same file finds the same messages, with their ids, and
    goes on.
    """
    async with talking(file_url, "Hello, Ada.") as (session, _):
        first = await session.send("I am Ada.")
    async with talking(file_url, "You are Ada.") as (session, model):
        found = await session.read(0, session.count)
        await session.send("Who am I?")

        assert tuple(found) == tuple(first.messages)
        assert model.texts == ["I am Ada.", "Hello, Ada.", "Who am I?"]


@asynchronous
async def test_each_turn_is_shown_all_that_came_before(url):
    """S2-63."""
    async with talking(url, "one", "two", "three") as (session, model):
        for text in "ABC":
            await session.send(text)

        assert model.texts == ["A", "one", "B", "two", "C"]
        assert [turn.index for turn in await session.turns()] == [1, 2, 3]


@asynchronous
async def test_the_system_prompt_and_the_tools_are_passed_to_the_model(url):
    settings = Settings(system="Be brief.", temperature=0.5)
    async with talking(url, "Yes.", settings=settings, tools=[tool_of("look")]) as (session, model):
        await session.send("Hello?")

        (request,) = model.requests
        assert request.system == "Be brief." and request.settings.temperature == 0.5
        assert [tool.name for tool in request.tools] == ["look"]
        assert await said(session) == [("user", "Hello?"), ("assistant", "Yes.")]


@asynchronous
async def test_a_session_with_tools_of_its_own_offers_those(url):
    """`tools` of the session take the place of the manager's; those of a send, of both."""
    async with opened(url, "a", "b", "c", tools=[tool_of("look")]) as (sessions, model):
        session = await sessions.get_or_create(KEY, tools=[tool_of("walk")])
        await session.send("1")
        await session.send("2", tools=[tool_of("run")])
        await session.send("3", tools=())

        offered = [[tool.name for tool in request.tools] for request in model.requests]
        assert offered == [["walk"], ["run"], []]


@asynchronous
async def test_a_users_message_is_taken_as_it_is(url):
    message = Message.user("I am Ada.", author="ada", extra={"chat": 7})
    async with talking(url, "Hello.") as (session, _):
        result = await session.send(message)

        assert result.messages[0] == message
        assert (await messages(session))[0] == message


@asynchronous
async def test_parts_are_a_message_too(url):
    """B26: pictures and files go with the words, in the order they were given."""
    parts = ["What is this?", Image(data=PNG, media_type="image/png"), Text("And this?")]
    parts.append(File(data=b"%PDF-", name="a.pdf", media_type="application/pdf"))
    async with talking(url, "A picture.", "It was a picture.") as (session, model):
        result = await session.send(parts)
        await session.send("Again?")

        kinds = [type(part) for part in model.given[1][0].content]
        assert kinds == [Text, Image, Text, File]
        assert model.given[0][0].content[1].data == PNG
        assert result.messages[0].text == "What is this?And this?"


@pytest.mark.parametrize(
    ("given", "options"),
    [
        (7, {}),
        (None, {}),
        (Message.assistant("I am no user."), {}),
        (Message.system("Nor am I."), {}),
        ("\ud800", {}),
        ([object()], {}),
        ("x", {"cancel": "no token"}),
        ("x", {"schema": "no schema"}),
        ("x", {"schema": {"type": "nothing known"}}),
        ("x", {"schema": {"properties": {"a": {"$ref": "#/$defs/none"}}}}),
        ("x", {"schema": {"$ref": "https://localhost:1/elsewhere.json"}}),
        ("x", {"schema": {"$ref": "#"}}),
        ("x", {"wait": -1}),
        ("x", {"tools": ["no tool"]}),
        ("x", {"tools": Tool("alone", "Not in a list.", {})}),
        ("x", {"model": "no-vendor:x"}),
        ("x", {"model": 7}),
        ("x", {"on_event": 7}),
        ("x", {"once": 7}),
    ],
    ids=lambda value: ascii(value)[:30],
)
@asynchronous
async def test_what_cannot_be_sent_changes_nothing(url, given, options):
    """InvalidInput is told before anything is stored, and before the model is asked."""
    async with talking(url, "Hello.") as (session, model):
        with pytest.raises(InvalidInput):
            await session.send(given, **options)

        assert await entries(session) == [] and model.requests == []
        assert session.draft is None
        assert (await session.send("Hello?")).text == "Hello."


@pytest.mark.parametrize(
    "settings",
    [7, [], {"limits": {"roundz": 1}}, {"limits": {"rounds": "x"}}, {"limits": 7}]
    + [{"budget": {"start": 7}}, {"budget": {"stert": 0.5}}],
    ids=repr,
)
@asynchronous
async def test_settings_that_no_turn_could_keep_to_are_refused_at_once(url, settings):
    """And not by the next turn, when the session is stuck with them."""
    async with opened(url, "Hello.") as (sessions, _):
        session = await sessions.get_or_create(KEY)
        with pytest.raises(InvalidInput):
            await session.update(settings=settings)
        if isinstance(settings, dict):
            with pytest.raises(InvalidInput):
                await sessions.get_or_create("cli:new", settings=Settings.of(settings))

        assert (await session.send("Hello?")).text == "Hello."
        with pytest.raises(SessionNotFound):
            await sessions.get("cli:new")


@asynchronous
async def test_a_policy_is_one(url):
    async with talking(url) as (session, _):
        with pytest.raises(InvalidInput):
            await session.compact("smaller")
    with pytest.raises(InvalidInput):
        holdfast.open(url, policy="smaller")


@asynchronous
async def test_an_observer_that_is_a_coroutine_function_is_refused(url):
    """Nobody would await it."""

    async def listen(event):
        raise AssertionError("never called")

    async with talking(url, "Hello.") as (session, model):
        with pytest.raises(InvalidInput):
            await session.send("Hello?", on_event=listen)

        assert model.requests == []


@asynchronous
async def test_another_loop_is_refused(url):
    """A manager belongs to the loop that opened it: another one gets a typed error."""
    async with talking(url, "Hello.") as (session, model):

        def elsewhere():
            with pytest.raises(HoldfastError):
                asyncio.run(session.send("Hello?"))

        await asyncio.to_thread(elsewhere)

        assert model.requests == []
        assert (await session.send("Hello?")).text == "Hello."


# A call that fails


FAILURES = (
    Overloaded("full"),
    RateLimited("slowly", retry_after_s=3),
    AuthError("who?"),
    ConnectionFailed("cut"),
    InvalidRequest("no"),
    ContentBlocked("never"),
    ProtocolError("what?"),
)


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
@asynchronous
async def test_a_failed_call_leaves_the_history_as_it_was(url, error):
    """S2-25, B20: the provider's error reaches the caller unchanged; the log does not remember the
    attempt,
    and the draft does."""
    async with talking(url, "Hello.", error) as (session, _):
        await session.send("I am Ada.")
        before = await entries(session)
        with pytest.raises(type(error)) as raised:
            await session.send("Who am I?")

        assert raised.value is error
        assert await entries(session) == before and session.count == 2
        assert [message.text for message in session.messages] == ["I am Ada.", "Hello."]
        assert session.draft.text == session.draft.message.text == "Who am I?"
        assert not session.draft.is_running


@asynchronous
async def test_an_answer_that_breaks_off_is_a_failed_call(url):
    """Some words had come; they are no answer, and are not in the log."""
    broken = Halt("Hello, my dear", ConnectionFailed("cut"), after=2)
    async with talking(url, broken, "Hello.") as (session, model):
        with pytest.raises(ConnectionFailed):
            await session.send("I am Ada.")
        assert await messages(session) == [] and session.draft.text == "I am Ada."
        result = await session.send("I am Ada!")

        assert model.texts == ["I am Ada!"] and result.text == "Hello."


@asynchronous
async def test_another_send_replaces_a_draft_and_leaves_a_mark(url):
    """What failed is not in the history, but it can be seen that there was something."""
    async with talking(url, Overloaded("full"), "Hello, Bob.") as (session, model):
        with pytest.raises(Overloaded):
            await session.send("I am Ada.")
        assert await marks(session, "abandoned") == []
        await session.send("I am Bob.")

        assert model.texts == ["I am Bob."]
        assert await said(session) == [("user", "I am Bob."), ("assistant", "Hello, Bob.")]
        assert len(await marks(session, "abandoned")) == 1
        assert session.draft is None


@asynchronous
async def test_a_failure_in_the_second_round_keeps_the_first(url):
    """What finished is in the log: the answer with its call, and what the tool gave back."""
    answers = (asks("look"), Overloaded("full"))
    async with talking(url, *answers, tools=[tool_of("look")]) as (session, model):
        with pytest.raises(Overloaded):
            await session.send("Look!")

        roles = [role for role, _ in await said(session)]
        assert roles == ["user", "assistant", "tool"]
        model.add("Nothing there.")
        assert (await session.resume()).text == "Nothing there."


# Receipts


@asynchronous
async def test_each_call_has_a_receipt(url):
    """Which model, for which message, how many tokens, for how much, and what it was shown."""
    model = Judged(asks("look"), "Sunny.", prices=PRICES)
    async with talking(url, model=model, tools=[tool_of("look")]) as (session, _):
        result = await session.send("The weather?")

        first, second = await receipts(session)
        replies = [m for m in result.messages if m.role == "assistant"]
        assert [first.about, second.about] == [reply.id for reply in replies]
        assert first.model == second.model == "fake:model"
        assert (first.stop, second.stop) == ("tool_use", "stop")
        assert first.usage.input == model.requests[0].tokens
        assert second.usage.cost(PRICES) == second.cost and second.cost > 0
        assert first.latency_ms >= 0 and first.digest.startswith("sha256:")
        assert first.digest != second.digest
        assert (first.window["messages"], second.window["messages"]) == (1, 3)
        assert {"used", "limit", "folds", "counted", "tools", "by"} <= set(second.window)
        assert result.usage == first.usage + second.usage
        assert result.cost == first.cost + second.cost
        assert result.rounds == 2
        assert dict(result.window)["messages"] == 3


@asynchronous
async def test_without_prices_there_is_no_cost(url):
    async with talking(url, "Hello.") as (session, _):
        result = await session.send("Hello?")

        assert result.cost is None
        assert (await receipts(session))[0].cost is None


@asynchronous
async def test_the_digest_is_that_of_the_window_that_was_sent(url):
    """The same conversation shown again has the same digest; one word more has another."""
    digests = []
    for text in ("I am Ada.", "I am Ada.", "I am Bob."):
        message = Message.user(text, id="01900000-0000-7000-8000-000000000001", timestamp=EPOCH)
        async with talking(url, "Hello.", key=f"cli:{len(digests)}") as (session, _):
            await session.send(message)
            digests.append((await receipts(session))[0].digest)

    assert digests[0] == digests[1] != digests[2]


# Models


@asynchronous
async def test_a_turn_may_have_a_model_of_its_own(url):
    """For that turn alone, as an object or by the name of one that the manager was given."""
    other = Judged("I am other.", "I am still other.", name="acme:other")
    async with talking(url, "One.", "Two.", providers=[other]) as (session, model):
        results = [
            await session.send("1"),
            await session.send("2", model=other),
            await session.send("3", model="acme:other"),
            await session.send("4"),
        ]

        names = [result.message.model for result in results]
        assert names == ["fake:model", "acme:other", "acme:other", "fake:model"]
        assert [each.model for each in await receipts(session)] == names
        assert len(model.requests) == len(other.requests) == 2 and other.problems == []


@asynchronous
async def test_a_model_for_one_turn_does_not_take_the_place_of_its_namesake(url):
    """Two servers may have a model of the same name: the session goes on with its own. A turn that
    failed is gone on with by the one that it was begun with."""
    other = Judged("I am other.", Overloaded("full"), "Still other.", name="fake:model")
    async with talking(url, "One.", "Two.") as (session, model):
        await session.send("1", model=other)
        assert (await session.send("2")).text == "One."
        assert session.window(other).used and len(model.requests) == 1
        with pytest.raises(Overloaded):
            await session.send("3", model=other)
        assert (await session.resume()).text == "Still other."
        assert (await session.send("4")).text == "Two."
        assert len(other.requests) == 3 and other.problems == []


@asynchronous
async def test_a_tool_for_one_turn_does_not_take_the_place_of_its_namesake(url):
    ran = []
    mine = tool_of("look", lambda **_: ran.append("mine"))
    other = tool_of("look", lambda **_: ran.append("other"))
    answers = (asks("look"), "A.", asks("look"), "B.")
    async with opened(url, *answers) as (sessions, _):
        session = await sessions.get_or_create(KEY, tools=[mine])
        await session.send("1", tools=[other])
        await session.send("2")

        assert ran == ["other", "mine"]


@asynchronous
async def test_a_session_keeps_the_name_of_its_model(file_url):
    """The record has the name; the object is found again in what the manager is given."""
    async with opened(file_url) as (sessions, _):
        session = await sessions.get_or_create(KEY, model=Judged("One.", name="acme:own"))
        assert (await session.send("1")).message.model == "acme:own"
        assert session.settings.model == "acme:own"
    own = Judged("Two.", name="acme:own")
    async with opened(file_url, "never", providers=[own]) as (sessions, model):
        session = await sessions.get(KEY)
        assert (await session.send("2")).text == "Two." and model.requests == []


@asynchronous
async def test_models_are_swapped_in_mid_conversation_and_back(url):
    """S2-71, S2-72: each is passed the whole conversation; the first one finds its own thinking
    again.
    """
    thought = Message.assistant([Thinking("Hm.", signature="signed"), Text("Hello.")])
    other = Judged("I know.", name="acme:other")
    async with talking(url, thought, "Back.") as (session, model):
        first = await session.send("I am Ada.")
        await session.send("Do you know me?", model=other)
        await session.send("And you?")

        assert other.texts == ["I am Ada.", "Hello.", "Do you know me?"]
        assert model.texts == [*other.texts, "I know.", "And you?"]
        assert model.given[-1][1] == first.message
        assert model.given[-1][1].content[0].signature == "signed" and other.problems == []


# A schema


@asynchronous
async def test_an_answer_that_follows_a_schema_is_data(url):
    async with talking(url, '{"name": "Ada"}') as (session, model):
        result = await session.send("Who am I?", schema=SCHEMA)

        assert result.data == {"name": "Ada"} and result.text == '{"name": "Ada"}'
        assert dict(model.requests[0].schema)["required"] in (["name"], ("name",))


@pytest.mark.parametrize("bad", ["Ada", '{"name": 7}', '{"name": "Ada", "age": 36}', '{"name": '])
@asynchronous
async def test_an_answer_that_does_not_follow_is_repaired_once(url, bad):
    """The model is told what is wrong and asked again; both replies are in the log."""
    async with talking(url, bad, '{"name": "Ada"}') as (session, model):
        result = await session.send("Who am I?", schema=SCHEMA)

        assert result.data == {"name": "Ada"} and len(model.requests) == 2
        replies = [text for role, text in await said(session) if role == "assistant"]
        assert replies == [bad, '{"name": "Ada"}']
        assert await turn_count(session) == 1


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
@asynchronous
async def test_a_number_that_json_does_not_have_is_no_data(url, number):
    """Python reads it; whoever writes the value as JSON could not."""
    async with talking(url, f'{{"degrees": {number}}}', '{"degrees": 3}') as (session, model):
        result = await session.send("How is it?", schema={"type": "object"})

        assert result.data == {"degrees": 3} and "there is no" in model.texts[-1]


@asynchronous
async def test_an_answer_that_never_follows_is_a_protocol_error(url):
    """After one repair; the replies are in the log, and the next turn works."""
    async with talking(url, "Ada", "Ada!", '{"name": "Ada"}', "Fine.") as (session, model):
        with pytest.raises(ProtocolError):
            await session.send("Who am I?", schema=SCHEMA)
        assert len(model.requests) == 2
        replies = [text for role, text in await said(session) if role == "assistant"]
        assert replies == ["Ada", "Ada!"]
        result = await session.send("Again!", schema=SCHEMA)

        assert result.data == {"name": "Ada"}
        assert (await session.send("Well?")).data is None


@asynchronous
async def test_sent_again_such_an_answer_is_the_same_error(url):
    """It is no answer without data, and the model is not asked again."""
    async with talking(url, "Ada", "Ada!") as (session, model):
        for _ in range(2):
            with pytest.raises(ProtocolError, match="does not follow"):
                await session.send("Who am I?", schema=SCHEMA, once="a")

        assert len(model.requests) == 2 and session.draft is None


# Continuations, nudges, and answers that are none


def cut(text):
    return Message.assistant(text, stop="max_tokens")


@asynchronous
async def test_an_answer_that_was_cut_is_continued_into_one_message(url):
    """The user sees one answer in one round; the tokens of all its calls are counted."""
    async with talking(url, cut("one "), cut("two "), "three") as (session, model):
        result = await session.send("Count!")

        assert result.text == "one two three" and result.outcome == "response"
        assert await said(session) == [("user", "Count!"), ("assistant", "one two three")]
        assert result.message.stop == "stop" and result.rounds == 1
        assert len(model.requests) == 3
        assert result.usage.input == sum(request.tokens for request in model.requests)
        assert (await messages(session))[-1] == result.message


@asynchronous
async def test_an_answer_is_continued_ten_times_at_most(url):
    async with talking(url, *[cut("x ")] * 20) as (session, model):
        result = await session.send("Go on for ever!")

        assert len(model.requests) == 11
        assert result.outcome == "max_tokens" and result.text == "x " * 11
        assert result.message.stop == "max_tokens" and len(await said(session)) == 2


@asynchronous
async def test_an_answer_is_continued_up_to_ten_thousand_tokens(url):
    """Of what is written: no call begins when there are as many."""
    async with talking(url, *[cut("word " * 4_800)] * 5) as (session, model):
        result = await session.send("A novel!")

        each = result.usage.output // len(model.requests)
        assert each > 5_000  # two are more than ten thousand
        assert len(model.requests) == 2 and result.outcome == "max_tokens"


@asynchronous
async def test_continuing_can_be_turned_off(url):
    settings = Settings(limits={"continuations": 0})
    async with talking(url, cut("one "), "two", settings=settings) as (session, model):
        result = await session.send("Count!")

        assert (result.outcome, result.text) == ("max_tokens", "one ")
        assert len(model.requests) == 1


@asynchronous
async def test_a_call_that_was_cut_is_not_continued(url):
    """Words after half of a call would be another message's."""
    answers = (asks("look", text="Let me", stop="max_tokens"), "Fine.")
    async with talking(url, *answers, tools=[tool_of("look")]) as (session, _):
        await session.send("Look!")

        asked = [message for message in await messages(session) if message.calls]
        assert [message.text for message in asked] in ([], ["Let me"])


@pytest.mark.parametrize("stop", ["tool_use", "unknown"])
@asynchronous
async def test_a_model_that_says_nothing_is_nudged(url, stop):
    """S2-34: in the user's name, but not as the user: it begins no turn."""
    async with talking(url, Message.assistant(None, stop=stop), "Oh. Hello.") as (session, model):
        result = await session.send("Hello?")

        assert result.text == "Oh. Hello." and len(model.requests) == 2
        nudges = [each for each in model.given[-1] if each.synthetic == "nudge"]
        assert len(nudges) == 1 and nudges[0].role == "user"
        assert await turn_count(session) == 1


@asynchronous
async def test_a_model_is_nudged_three_times_at_most(url):
    """S2-34."""
    silent = Message.assistant(None, stop="tool_use")
    async with talking(url, *[silent] * 9, "Hello.") as (session, model):
        await session.send("Hello?")

        nudges = [each for each in await messages(session) if each.synthetic == "nudge"]
        assert len(model.requests) == 4 and len(nudges) == 3
        for _ in range(5):
            model._answers.pop(0)
        assert (await session.send("Now?")).text == "Hello."


@asynchronous
async def test_an_empty_answer_has_words_for_the_caller_and_a_warning(url, caplog):
    """S1-28: a constant text, and a warning that names the session."""
    silent = Message.assistant(None, stop="stop")
    async with talking(url, silent, silent, "Hello.") as (session, _):
        with caplog.at_level(logging.WARNING):
            first = await session.send("Hello?")
            second = await session.send("Hello?")

        assert str(first) == str(second)
        assert str(first).startswith("[") and str(first).endswith("]")
        warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
        assert len([words for words in warnings if KEY in words]) == 2
        assert first.outcome == "response"
        assert str(await session.send("Hello?")) == "Hello."


@asynchronous
async def test_an_error_never_has_words_in_its_place(url, caplog):
    """S1-28, the other half: what failed is raised, and nobody is warned of an empty answer."""
    async with talking(url, Overloaded("full")) as (session, _):
        with caplog.at_level(logging.WARNING), pytest.raises(Overloaded):
            await session.send("Hello?")

        assert [r for r in caplog.records if KEY in r.getMessage()] == []


@asynchronous
async def test_an_answer_that_was_blocked_is_an_outcome(url):
    """A reply that the service stopped is no error; the next turn works."""
    blocked = Message.assistant("I would", stop="safety")
    async with talking(url, blocked, "Hello.") as (session, _):
        result = await session.send("Do it!")

        assert result.outcome == "blocked"
        assert (await session.send("Hello?")).outcome == "response"


# Observers


def check_order(events):
    """As `holdfast.events` has it."""
    assert isinstance(events[0], TurnStarted) and isinstance(events[-1], TurnFinished)
    assert len(events_of(TurnStarted, events)) == len(events_of(TurnFinished, events)) == 1
    ranks = {ThinkingDelta: 1, TextDelta: 2, ToolCallStarted: 3, ToolCallReady: 3}
    rank = 0
    begun, ready, ended = set(), set(), set()
    for event in events:
        if type(event) in ranks:
            assert ranks[type(event)] >= rank, f"{event} came late"
            rank = ranks[type(event)]
        if isinstance(event, ToolCallStarted):
            assert event.id not in ready
            begun.add(event.id)
        elif isinstance(event, ToolCallReady):
            ready.add(event.call.id)
        elif isinstance(event, ToolResult):
            assert event.message.tool_call_id in ready
            ended.add(event.message.tool_call_id)
            rank = 0  # the next call of the model may begin
    assert begun <= ready and ended == ready


@asynchronous
async def test_an_observer_sees_it_all_in_order(url):
    """S0-31: started; for each call thinking, words, calls; results; finished. Nothing is left
    out.
    """
    first = asks(call("c1", "look"), call("c2", "look"))
    first = first.replace(content=(Thinking("Where?", "s"), Text("Let me see.")))
    events = []
    async with talking(url, first, "It is sunny.", tools=[tool_of("look")]) as (session, _):
        result = await session.send("The weather?", on_event=events.append)

        check_order(events)
        started, finished = events[0], events[-1]
        assert started.session_id == session.id and started.message == result.messages[0]
        assert [event.text for event in events_of(ThinkingDelta, events)] == ["Where?"]
        words = "".join(event.text for event in events_of(TextDelta, events))
        assert words == "Let me see.It is sunny."
        results = [event.message for event in events_of(ToolResult, events)]
        assert sorted(m.tool_call_id for m in results) == ["c1", "c2"]
        assert events_of(UsageUpdate, events)
        assert finished.outcome == result.outcome and finished.message == result.message
        assert (finished.usage, finished.cost) == (result.usage, result.cost)


@asynchronous
async def test_a_failing_observer_never_breaks_a_turn(url):
    def fail(event):
        raise ValueError("the observer is broken")

    async with talking(url, asks("look"), "Fine.", tools=[tool_of("look")]) as (session, _):
        result = await session.send("Look!", on_event=fail)

        assert result.text == "Fine." and session.count == 4


@asynchronous
async def test_an_observer_that_returns_false_stops_the_turn(url):
    """As a cancel does: what was said by then is kept."""
    heard = []

    def listen(event):
        heard.append(event)
        return not (isinstance(event, TextDelta) and event.text == " two")

    async with talking(url, model=Judged("one two three four", "Fine.", pause_s=0.01)) as (s, _):
        result = await s.send("Count!", on_event=listen)

        assert result.outcome == "cancelled"
        assert result.message.stop == "cancelled"
        assert "one two three four".startswith(result.text) and result.text.startswith("one two")
        assert result.text != "one two three four"
        assert (await s.send("Go on.")).text == "Fine."


@asynchronous
async def test_only_false_stops_a_turn(url):
    """None is what a function without a return gives, and 0 may be a count."""
    for answer in (None, 0, "", []):
        async with talking(url, "one two", key=f"cli:{answer}") as (session, _):
            result = await session.send("Count!", on_event=lambda _, answer=answer: answer)

            assert result.outcome == "response"


# Over a real wire


@asynchronous
async def test_a_turn_over_http(url):
    """A server of OpenAI's kind: what it is sent is what the vendor would take."""
    answer = until_closed(b"".join(chat_events("Hello,", " Ada.")), x_request_id="req-7")
    async with (
        Loopback(answer) as server,
        wire_model(server) as model,
        talking(url, model=model) as (session, _),
    ):
        heard = []
        result = await session.send("I am Ada.", on_event=heard.append)
        again = await session.send("Who am I?")

        assert result.text == again.text == "Hello, Ada."
        assert "".join(e.text for e in events_of(TextDelta, heard)) == "Hello, Ada."
        assert result.usage == Usage(input=11, output=7)
        assert (await receipts(session))[0].request_id == "req-7"
    bodies = [asked.json for asked in server.requests]
    assert [m["content"] for m in bodies[1]["messages"]][-3:] == [
        "I am Ada.",
        "Hello, Ada.",
        "Who am I?",
    ]
    for body in bodies:
        assert validators.problems("openai-chat", body, lenient=True) == []


@asynchronous
async def test_a_retry_is_told(url):
    """A service that is full for a moment is asked again, and whoever watches hears of it."""
    full = whole({"error": {"message": "overloaded"}}, status=503, retry_after="0")
    answer = until_closed(b"".join(chat_events("Hello.")))
    async with (
        Loopback(full, answer) as server,
        wire_model(server) as model,
        talking(url, model=model) as (session, _),
    ):
        heard = []
        result = await session.send("Hello?", on_event=heard.append)

        (retry,) = events_of(Retrying, heard)
        assert result.text == "Hello." and retry.attempt == 1
        assert await said(session) == [("user", "Hello?"), ("assistant", "Hello.")]


@asynchronous
async def test_a_turn_with_a_real_model(file_url, local_name):
    """The local one, by its name: the first command works for everyone."""
    settings = Settings(max_tokens=12, temperature=0.0, limits={"continuations": 0})
    async with holdfast.open(file_url, model=local_name) as sessions:
        session = await sessions.get_or_create(KEY, settings=settings)
        heard = []
        first = await session.send("Hello! Who are you?", on_event=heard.append)
        second = await session.send("And what can you do?")

        assert first.text and second.text and session.count == 4
        assert "".join(event.text for event in events_of(TextDelta, heard)) == first.text
        assert second.usage.input > first.usage.input > 0
        assert json.loads(json.dumps(session.settings.values))["max_tokens"] == 12


# What is durable, and when


class Slow:
    """Every call of these operations of a store takes a while; `told` is what ended, in order."""

    def __init__(self, monkeypatch, session, *names):
        self.told = []
        kind = type(session._tenant)
        for name in names:
            monkeypatch.setattr(kind, name, self._slow(name, getattr(kind, name)))

    def _slow(self, name, operation):
        async def slow(tenant, *args, **options):
            await asyncio.sleep(0.1)
            found = await operation(tenant, *args, **options)
            self.told.append(name)
            return found

        return slow


@asynchronous
async def test_each_step_is_durable_before_the_next_begins(url, monkeypatch):
    """The input before the model is asked, the call before the tool runs, the result before the
    model is asked again, the answer before the caller has it."""

    def ask(answer):
        def asked(_):
            store.told.append("asked")
            return answer

        return asked

    def run(**_):
        store.told.append("run")
        return "seen"

    async with talking(url, ask(asks("look")), ask("Seen."), tools=[tool_of("look", run)]) as (
        session,
        _,
    ):
        store = Slow(monkeypatch, session, "begin", "append")
        await session.send("Look!")

        steps = ["begin", "asked", "append", "run", "append", "asked", "append"]
        assert store.told == steps
