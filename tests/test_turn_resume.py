"""Turns that were cut off: by a failure, by a limit, by a process that was killed; and resumed.

The child processes here are real ones, and are really killed. What they leave is a file, and the
next manager that opens it goes on from what it says.
"""

import json
import signal

import pytest

from holdfast import CancelToken, Message, Settings
from holdfast.errors import InvalidInput, Overloaded
from holdfast.events import TurnFinished, TurnStarted
from holdfast.tools import running
from processes import SAY, Script
from sessions_for_tests import (
    KEY,
    Judged,
    asks,
    asynchronous,
    call,
    marks,
    messages,
    opened,
    said,
    talking,
    tool_of,
    turn_count,
)

# What a child process does until it is killed. It says "ready" when it stands where it should.
CHILD = (
    SAY
    + """
import asyncio, json, os, sys
import holdfast
from holdfast import Message, Tool, ToolCall
from holdfast.events import TextDelta
from holdfast.testing import FakeProvider
from holdfast.testing.fake_provider import Halt
from holdfast.tools import running

url, effects, where, once = sys.argv[1:]
SESSIONS = {}

def effect():
    with open(effects, "a") as file:
        file.write(json.dumps(running().key) + "\\n")

async def is_answered(session):
    rows = await session._tenant.read(session.id, session.branch)
    return any(isinstance(row.entry, Message) and row.entry.results for row in rows)

async def pay(**_):
    effect()
    session = SESSIONS["it"]
    if where == "steering":
        await session.steer("Also bread.")
    while not await is_answered(session):  # by the other tool
        await asyncio.sleep(0.01)
    say("ready")
    await asyncio.sleep(60)

async def look(**_):
    return "seen"

TOOLS = [
    Tool("pay", "Pays.", {"type": "object"}, pay, idempotent=where == "idempotent"),
    Tool("look", "Looks.", {"type": "object"}, look),
]
ASK = Message.assistant("Let me pay.", [
    ToolCall(id="p1", name="pay", arguments="{}"), ToolCall(id="l1", name="look", arguments="{}"),
])

async def think(_):
    say("ready")
    await asyncio.sleep(60)

async def told_late(_):
    session = SESSIONS["it"]
    await session.steer("Also bread.")
    append = session._tenant.append

    async def appended(*args, **options):
        done = await append(*args, **options)
        say("ready")  # what the model said is in the log, and nothing more
        await asyncio.sleep(60)
        return done

    session._tenant.append = appended
    return "Done."

async def main():
    answers = {
        "told late": [told_late],
        "thinking": [think],
        "speaking": [Halt("one two three", asyncio.Event(), 2)],
        "said again": ["Hello.", Halt("one two three", asyncio.Event(), 2)],
        "second round": [
            Message.assistant(None, [ToolCall(id="l1", name="look", arguments="{}")]),
            Halt("one two three", asyncio.Event(), 2),
        ],
        "tool": [ASK],
        "steering": [ASK],
        "idempotent": [ASK],
        "finished": ["Hello."],
    }[where]
    heard = []

    def listen(event):
        if isinstance(event, TextDelta) and where in ("speaking", "said again", "second round"):
            heard.append(event.text)
            if "".join(heard).endswith("one two"):
                # The words are stored behind the one who says them.
                asyncio.get_running_loop().call_later(1.0, say, "ready")

    async with holdfast.open(url, model=FakeProvider(*answers), tools=TOOLS) as sessions:
        session = SESSIONS["it"] = await sessions.get_or_create("cli:direct")
        go = Message.user("Go!")
        if where == "said again":
            await session.send(go)
        await session.send(go, once=once or None, on_event=listen)
        say("ready")
        await asyncio.sleep(60)

asyncio.run(main())
"""
)


class Dead:
    """A file that a killed process has left, and the keys with which its tool had an effect."""

    def __init__(self, tmp_path):
        self.url = f"sqlite:{tmp_path}/chats.db"
        self._effects = tmp_path / "effects"

    def kill(self, where, once=""):
        with Script(CHILD, self.url, self._effects, where, once) as child:
            word = child.hears()
            assert word == "ready", child.process.stderr.read()
            child.process.send_signal(signal.SIGKILL)
            child.process.wait()
        return self

    def effect(self, **_):
        """What the tool does here."""
        with self._effects.open("a") as file:
            file.write(json.dumps(running().key) + "\n")
        return "paid"

    @property
    def effects(self):
        if not self._effects.exists():
            return []
        return [json.loads(line) for line in self._effects.read_text().splitlines()]


@pytest.fixture
def dead(tmp_path):
    return Dead(tmp_path)


def tools_of(dead, **options):
    return [tool_of("pay", dead.effect, **options), tool_of("look", lambda **_: "seen")]


# Nothing to resume


@asynchronous
async def test_there_is_nothing_to_resume_in_a_session_that_is_well(url):
    """Neither before the first turn, nor behind one that has ended."""
    async with talking(url, "Hello.") as (session, model):
        with pytest.raises(InvalidInput):
            await session.resume()
        await session.send("Hello?")
        with pytest.raises(InvalidInput):
            await session.resume()

        assert len(model.requests) == 1 and session.count == 2 and session.draft is None


@asynchronous
async def test_a_turn_that_was_cancelled_has_ended(url):
    """Who cancels does not want the rest."""
    async with talking(url, model=Judged("one two three", "four", pause_s=0.02)) as (session, _):
        result = await session.send(
            "Count!", on_event=lambda event: getattr(event, "text", "") != " two"
        )
        assert result.outcome == "cancelled"

        with pytest.raises(InvalidInput):
            await session.resume()


# After a failure


@asynchronous
async def test_a_failed_turn_is_resumed_with_its_own_input(url):
    async with talking(url, Overloaded("1"), Overloaded("2"), "Hello, Ada.") as (session, model):
        with pytest.raises(Overloaded):
            await session.send("I am Ada.")
        with pytest.raises(Overloaded):
            await session.resume()
        assert session.draft.text == "I am Ada."
        heard = []
        result = await session.resume(on_event=heard.append)

        assert result.text == "Hello, Ada." and heard and session.draft is None
        assert [given[-1].text for given in model.given] == ["I am Ada."] * 3
        assert await said(session) == [("user", "I am Ada."), ("assistant", "Hello, Ada.")]
        assert await marks(session, "abandoned") == [] == await marks(session, "interrupted")


@asynchronous
async def test_a_failed_turn_is_resumed_in_another_process(file_url):
    """The same message, by its id."""
    async with talking(file_url, Overloaded("full")) as (session, _):
        with pytest.raises(Overloaded):
            await session.send("I am Ada.")
        message = session.draft.message
    async with talking(file_url, "Hello, Ada.") as (session, _):
        assert session.draft.message == message and not session.draft.is_running
        result = await session.resume()

        assert result.messages[0] == message and result.text == "Hello, Ada."


@asynchronous
async def test_a_turn_is_resumed_as_it_was_asked_for(url):
    """With the model, the tools and the schema that it was sent with."""
    other = Judged(Overloaded("full"), '{"a": 1}', name="acme:other")
    async with talking(url, "Never.", providers=[other], tools=[tool_of("look")]) as (session, m):
        schema = {"type": "object"}
        with pytest.raises(Overloaded):
            await session.send("?", model=other, tools=(), schema=schema)
        result = await session.resume()

        assert result.message.model == "acme:other" and m.requests == []
        assert result.data == {"a": 1} and other.requests[-1].tools == ()
        assert dict(other.requests[-1].schema) == schema


@asynchronous
async def test_a_resumed_turn_is_told_from_its_start_to_its_end(url):
    async with talking(url, asks("look"), Overloaded("full"), "Seen.", tools=[tool_of("look")]) as (
        session,
        _,
    ):
        heard = []
        with pytest.raises(Overloaded):
            await session.send("Look!")
        result = await session.resume(on_event=heard.append)

        assert isinstance(heard[0], TurnStarted) and isinstance(heard[-1], TurnFinished)
        assert heard[0].message.text == "Look!" and heard[-1].message == result.message


@asynchronous
async def test_a_failure_behind_a_tool_does_not_run_it_again(url):
    ran = []
    tools = [tool_of("pay", lambda **_: ran.append(1) or "paid")]
    async with talking(url, asks("pay"), Overloaded("full"), "Paid.", tools=tools) as (s, model):
        with pytest.raises(Overloaded):
            await s.send("Pay!")
        result = await s.resume()

        assert result.text == "Paid." and ran == [1] and len(model.requests) == 3
        assert model.texts == ["Pay!", None, "paid"]


@asynchronous
async def test_a_send_behind_such_a_failure_begins_a_turn(url):
    """The first turn stays as far as it came."""
    tools = [tool_of("pay", lambda **_: "paid")]
    async with talking(url, asks("pay"), Overloaded("full"), "Yes.", tools=tools) as (s, model):
        with pytest.raises(Overloaded):
            await s.send("Pay!")
        result = await s.send("Have you paid?")

        assert result.text == "Yes."
        assert model.texts == ["Pay!", None, "paid", "Have you paid?"]
        assert await turn_count(s) == 2


@asynchronous
async def test_resume_can_be_cancelled(url):
    token = CancelToken()
    token.cancel()
    async with talking(url, Overloaded("full"), "Fine.") as (session, _):
        with pytest.raises(Overloaded):
            await session.send("Go!")
        result = await session.resume(cancel=token)

        assert result.outcome == "cancelled"
        stored = await said(session) == [("user", "Go!")]
        assert stored or session.draft.text == "Go!"  # what the user said is not lost
        assert (await session.send("Well?")).text == "Fine."


# After a crash


@asynchronous
async def test_nothing_is_cut_off_in_a_turn_that_had_ended(dead):
    """The control: a process that is killed afterwards leaves nothing to resume."""
    dead.kill("finished")
    async with talking(dead.url, "Fine.") as (session, _):
        assert await said(session) == [("user", "Go!"), ("assistant", "Hello.")]
        assert session.draft is None
        with pytest.raises(InvalidInput):
            await session.resume()
        await session.send("Well?")

        assert await marks(session, "interrupted") == []


@pytest.mark.parametrize("way", ["resume", "send"])
@asynchronous
async def test_a_crash_while_the_model_thinks_loses_nothing(dead, way):
    """What the user said is in the draft, and nobody holds the session."""
    dead.kill("thinking")
    async with talking(dead.url, "Fine.") as (session, model):
        assert session.draft.text == "Go!" and not session.draft.is_running
        assert await messages(session) == []
        result = await (session.resume() if way == "resume" else session.send("Hello?", wait=0))

        assert result.text == "Fine." and session.draft is None
        kept = await said(session)
        assert kept[0] == ("user", "Go!") and "Go!" in model.texts[0]
        (mark,) = await marks(session, "interrupted")
        assert mark.about == (await messages(session))[0].id
        if way == "send":
            assert ("user", "Hello?") in kept and await turn_count(session) == 2
        else:
            assert await turn_count(session) == 1


@asynchronous
async def test_a_crash_keeps_what_is_said_in_a_message_that_was_sent_before(dead):
    """The same object, sent again, is another message in the log: the first is not taken for it."""
    dead.kill("said again")
    async with talking(dead.url, "Fine.") as (session, _):
        assert session.draft.text == "Go!" and session.draft.partial == "one two"
        await session.send("Well?")

        assert [text for _, text in await said(session)] == [
            *("Go!", "Hello."),
            *("Go!", "one two"),
            *("Well?", "Fine."),
        ]
        kept = await messages(session)
        assert len({message.id for message in kept}) == len(kept)


@pytest.mark.parametrize("way", ["resume", "send"])
@asynchronous
async def test_a_crash_while_the_model_speaks_keeps_what_it_said(dead, way):
    """Input and partial are appended first, marked as interrupted."""
    dead.kill("speaking")
    async with talking(dead.url, "three.") as (session, model):
        assert session.draft.partial == "one two" and not session.draft.is_running
        result = await (session.resume() if way == "resume" else session.send("Go on."))

        user, partial = (await messages(session))[:2]
        assert (user.text, partial.text) == ("Go!", "one two")
        assert partial.role == "assistant" and partial.stop == "interrupted"
        (mark,) = await marks(session, "interrupted")
        assert mark.about == user.id and result.outcome == "response"
        assert model.texts[:2] == ["Go!", "one two"]
        if way == "send":
            assert model.texts == ["Go!", "one two", "Go on."]


@asynchronous
async def test_a_crash_in_the_second_round_keeps_the_first(dead):
    """No tool runs again whose result is there."""
    dead.kill("second round")
    ran = []
    tools = [tool_of("look", lambda **_: ran.append(1))]
    async with talking(dead.url, "All seen.", tools=tools) as (session, model):
        result = await session.resume()

        roles = [(role, text) for role, text in await said(session)]
        assert roles[:3] == [("user", "Go!"), ("assistant", None), ("tool", "seen")]
        assert result.text.endswith("All seen.") and ran == []
        assert "seen" in model.texts and await turn_count(session) == 1


@pytest.mark.parametrize("way", ["resume", "send"])
@asynchronous
async def test_a_tool_that_was_cut_off_is_not_run_again(dead, way):
    """S2-36: nobody knows whether it has paid: the model is told so, and the log has a mark."""
    dead.kill("tool")
    async with talking(dead.url, "I do not know.", tools=tools_of(dead)) as (session, model):
        before = await messages(session)
        assert [m.tool_call_id for m in before if m.role == "tool"] == ["l1"]
        result = await (session.resume() if way == "resume" else session.send("Well?"))

        assert result.text == "I do not know." and len(dead.effects) == 1
        shown = {m.tool_call_id: m for m in model.given[0] if m.role == "tool"}
        assert shown["p1"].is_error and "known" in shown["p1"].text
        assert shown["l1"].text == "seen"
        (mark,) = await marks(session, "unknown")
        assert mark.about == "p1"


@asynchronous
async def test_an_idempotent_tool_is_run_again_with_the_same_key(dead):
    """So that whoever is paid can tell that it is the same payment."""
    dead.kill("idempotent")
    tools = tools_of(dead, idempotent=True)
    async with talking(dead.url, "Paid.", tools=tools) as (session, model):
        result = await session.resume()

        first, second = dead.effects
        turn = (await messages(session))[0].id
        assert first == second == f"{session.id}:{turn}:p1"
        assert result.text == "Paid." and await marks(session, "unknown") == []
        shown = {m.tool_call_id: m for m in model.given[0] if m.role == "tool"}
        assert shown["p1"].text == "paid" and not shown["p1"].is_error


@asynchronous
async def test_another_send_does_not_run_it_again_even_then(dead):
    """S1-54: the user went on: what was not finished has an unknown outcome."""
    dead.kill("idempotent")
    async with talking(dead.url, "Well.", tools=tools_of(dead, idempotent=True)) as (session, m):
        await session.send("Something else.")

        assert len(dead.effects) == 1
        assert [mark.about for mark in await marks(session, "unknown")] == ["p1"]
        assert m.texts[-1] == "Something else."


@pytest.mark.parametrize("where", ["thinking", "speaking", "tool"])
@asynchronous
async def test_what_was_sent_once_goes_on_after_a_crash(dead, where):
    """A client that sends the same again: its message is in the log once, and has an answer."""
    dead.kill(where, once="m-1")
    async with talking(dead.url, "Here you are.", tools=tools_of(dead)) as (session, model):
        result = await session.send("Go!", once="m-1")
        again = await session.send("Go!", once="m-1")

        assert result.text.endswith("Here you are.") and again.text == result.text
        assert [text for role, text in await said(session) if role == "user"] == ["Go!"]
        assert len(model.requests) == 1 and len(dead.effects) == (where == "tool")


@pytest.mark.parametrize("where", ["steering", "told late"])
@pytest.mark.parametrize("way", ["resume", "send"])
@asynchronous
async def test_steering_survives_a_crash(dead, where, way):
    """It was durable when it was accepted: the model sees it when the turn goes on."""
    dead.kill(where)
    answers = ("And bread.", "And bread it is.")  # it may be a step of its own
    async with talking(dead.url, *answers, tools=tools_of(dead)) as (session, model):
        await (session.resume() if way == "resume" else session.send("Well?"))

        assert model.texts.count("Also bread.") == 1
        assert [text for _, text in await said(session)].count("Also bread.") == 1


@asynchronous
async def test_a_crash_leaves_a_file_that_verifies(dead):
    dead.kill("tool")
    async with opened(dead.url, "Fine.", tools=tools_of(dead)) as (sessions, _):
        session = await sessions.get(KEY)
        await session.resume()

        assert (await session._tenant.verify()).problems == ()


# A child that ends by itself, in the middle of a commit's way


EXITS = CHILD.replace('say("ready")', "os._exit(3)").replace('say, "ready"', "os._exit, 3")


@pytest.mark.parametrize("where", ["thinking", "speaking", "tool"])
@asynchronous
async def test_a_process_that_ends_without_a_word_is_a_crash_too(dead, where):
    """os._exit: nothing is closed, and nothing is said."""
    with Script(EXITS, dead.url, dead._effects, where, "") as child:
        child.process.wait(30)
        assert child.process.returncode == 3
    async with talking(dead.url, "Fine.", tools=tools_of(dead)) as (session, model):
        assert not session.draft.is_running
        result = await session.resume(wait=0)

        assert result.text.endswith("Fine.") and len(dead.effects) == (where == "tool")
        assert (await messages(session))[0].text == "Go!" and len(model.requests) == 1


# After a limit


@asynchronous
async def test_a_turn_is_resumed_behind_its_limit_in_another_process(file_url):
    ran = []
    tools = [tool_of("look", lambda **_: ran.append(1) or "seen")]
    settings = Settings(limits={"rounds": 1})
    asked = asks(call("c1", "look"))
    async with talking(file_url, asked, tools=tools, settings=settings) as (session, _):
        assert (await session.send("Look!")).outcome == "limit"
        await session.update(settings={"limits": {"rounds": 5}})
    async with talking(file_url, "Seen.", tools=tools) as (session, model):
        result = await session.resume()

        assert (result.outcome, result.text) == ("response", "Seen.")
        assert ran == [1] and [m.role for m in model.given[0]] == ["user", "assistant", "tool"]


# Sent again, when others came first


@asynchronous
@pytest.mark.parametrize("where", ["thinking", "speaking", "tool"])
async def test_what_was_cut_off_is_asked_again_behind_what_came_since(dead, where):
    """An update that is delivered again after another one has its answer, once."""
    dead.kill(where, once="m-1")
    async with talking(dead.url, "To you.", "To Go.", tools=tools_of(dead)) as (session, model):
        await session.send("Me too!", once="m-2")

        result = await session.send("Go!", once="m-1")
        again = await session.send("Go!", once="m-1")

        assert (result.outcome, result.text) == ("response", "To Go.")
        assert again.text == "To Go." and len(model.requests) == 2
        assert [m.text for m in await session.read() if m.role == "user"] == [
            "Go!",
            "Me too!",
            "Go!",
        ]
        assert len(dead.effects) == (where == "tool")


@asynchronous
async def test_a_kill_while_it_is_asked_again_leaves_one_question_more(dead):
    """The words that had come stand behind the second question, and are gone on with."""
    dead.kill("thinking", once="m-1")
    async with talking(dead.url, "To you.") as (session, _):
        await session.send("Me too!", once="m-2")
    dead.kill("speaking", once="m-1")

    async with talking(dead.url, " three") as (session, _):
        result = await session.send("Go!", once="m-1")

        assert result.text == "one two three"
        said_now = [(str(m.role), m.text) for m in await session.read()]
        assert said_now[-3:] == [("user", "Go!"), ("assistant", "one two"), ("assistant", " three")]
        assert [role for role, _ in said_now].count("user") == 3


@asynchronous
async def test_an_answer_that_was_cut_off_by_a_kill_is_given_whole(dead):
    """The log has it in two pieces; who sends it on sends all of it."""
    dead.kill("speaking", once="m-1")
    async with talking(dead.url, " three four") as (session, _):
        result = await session.send("Go!", once="m-1")

        assert str(result) == "one two three four"
        assert result.message.id == session.messages[-1].id
        assert [m.text for m in session.messages] == ["Go!", "one two", " three four"]


@asynchronous
async def test_what_waited_and_was_left_is_not_asked_again(url):
    """Its caller was told that it waits, and said something else: that was an answer."""
    asked = asks("pay")
    tools = [tool_of("pay", lambda **_: "paid", approval=True)]
    async with talking(url, asked, "Something else.", tools=tools) as (session, model):
        await session.send("Pay!", once="m-1")
        await session.send("Never mind.", once="m-2")

        again = await session.send("Pay!", once="m-1")

        assert again.outcome == "cancelled" and again.text is None
        assert len(model.requests) == 2 and len(await marks(session, "left")) == 1


@asynchronous
async def test_an_answer_given_twice_gives_the_same_result(url):
    """The button is pressed twice; other answers for a turn that is over are refused."""
    asked = asks("pay")
    tools = [tool_of("pay", lambda **_: "paid", approval=True)]
    async with talking(url, asked, "Paid.", tools=tools) as (session, model):
        await session.send("Pay!")
        answers = {asked.calls[0].id: True}
        first = await session.resume(answers)

        again = await session.resume(answers)

        assert (again.text, again.outcome) == (first.text, "response") == ("Paid.", "response")
        assert len(model.requests) == 2 and session.draft is None
        with pytest.raises(InvalidInput, match="no turn to go on with"):
            await session.resume({"another": True})


@asynchronous
async def test_a_service_that_pauses_is_asked_to_go_on(url):
    """A tool of its own is at work: the answer is in pieces, and the turn is not over."""
    paused = Message.assistant("Let me search. ", stop="pause_turn")
    async with talking(url, paused, "It is sunny.") as (session, model):
        result = await session.send("The weather?")

        assert (result.outcome, result.text) == ("response", "Let me search. It is sunny.")
        assert (result.rounds, len(model.requests)) == (2, 2)
        assert [m.text for m in await session.read()][1:] == ["Let me search. ", "It is sunny."]


@asynchronous
async def test_a_service_that_pauses_for_ever_meets_the_limit_of_rounds(url):
    paused = [Message.assistant("Still searching. ", stop="pause_turn") for _ in range(11)]
    async with talking(url, *paused) as (session, model):
        result = await session.send("The weather?")

        assert (result.outcome, len(model.requests)) == ("limit", 10)
