"""Shepherd's face: add_message, its names, its callback, its saved file, over a session of ours."""

import json
import re
import threading

import pytest

from holdfast import Message, Tool, ToolCall
from holdfast.adapters import shepherd
from holdfast.adapters.shepherd import (
    ASSISTANT,
    FUNCTION,
    SYSTEM,
    TOOL_REQUEST,
    TOOL_RESPONSE,
    USER,
    CallbackEvent,
    Sampling,
)
from holdfast.errors import InvalidInput, Overloaded
from holdfast.messages import Stop
from holdfast.parts import Text, Thinking
from holdfast.testing import FakeProvider
from holdfast.testing.fake_provider import calls
from holdfast.window import answer_tokens

WEATHER = Tool("weather", "The weather in a city.", {"type": "object", "properties": {}})


class Backend(FakeProvider):
    """A model that notices when it is closed, and that may think before it answers."""

    is_closed = False
    thought = ""

    async def close(self):
        self.is_closed = True

    async def complete(self, *asked, on_thinking=None, **how):
        if self.thought and on_thinking is not None:
            on_thinking(self.thought)
        response = await super().complete(*asked, **how)
        if not self.thought:
            return response
        content = (Thinking(self.thought), Text(response.text))
        return response.replace(message=response.message.replace(content=content))


@pytest.fixture
def talk(tmp_path):
    """Makes sessions on one file, and closes them."""
    opened = []

    def talk(*answers, tools=None, sampling=None, **how):
        session = shepherd.Session(
            f"sqlite:{tmp_path / 'chats.db'}",
            backend=Backend(*answers, **how),
            tools=tools,
            sampling=sampling or Sampling(),
        )
        opened.append(session)
        return session

    yield talk
    for session in opened:
        session.close()


class Heard:
    """A callback that remembers what it was told; it has had enough after `limit` events."""

    def __init__(self, limit=None):
        self.events = []
        self._limit = limit

    def __call__(self, *event):
        self.events.append(event)
        return self._limit is None or len(self.events) < self._limit

    @property
    def types(self):
        return [event[0] for event in self.events]


def cut_off(text):
    return Message.assistant(text, stop=str(Stop.MAX_TOKENS))


# ---- messages and what is known of them ----


def test_a_message_is_answered_and_both_are_kept(talk):
    """
    S3-1, S3-2: add_message routes to the backend, stores what was said with its tokens, and
    returns the response; another process finds it.
    """
    session = talk("Hello, Ada.")

    response = session.add_message(USER, "I am Ada.")

    again = talk()
    assert (response.content, response.finish_reason) == ("Hello, Ada.", "stop")
    assert [(m.get_role(), m.content) for m in again.messages] == [
        ("user", "I am Ada."),
        ("assistant", "Hello, Ada."),
    ]
    assert all(m.tokens > 0 for m in session.messages)
    assert response.prompt_tokens == session.backend.requests[0].tokens
    assert session.total_tokens == response.prompt_tokens + response.completion_tokens
    assert again.total_tokens == session.total_tokens


def test_old_turns_leave_the_window_when_the_context_fills(talk):
    """S3-1: what no longer fits is not shown to the backend, and stays in the log."""
    session = talk(*[f"Answer {n}." for n in range(12)], context=1_500, output=200)

    for n in range(12):
        session.add_message(USER, f"{n}: " + "word " * 100)

    shown = session.backend.requests[-1].messages
    assert len(session.messages) == 24
    assert len(shown) < 20 and shown[-1].text.startswith("11: ")
    assert all(request.tokens <= 1_500 for request in session.backend.requests)


def test_a_new_session_has_shepherds_names_and_nothing_in_them():
    """S3-4: every public name is there; indices begin at -1, tokens at 0."""
    with shepherd.Session() as session:
        assert (session.messages, session.total_tokens, session.tools) == ((), 0, ())
        assert session.backend is None
        assert (session.last_user_message_index, session.last_user_message_tokens) == (-1, 0)
        assert session.last_assistant_message_index == -1
        assert session.last_assistant_message_tokens == 0
        assert session.last_prompt_tokens == 0


def test_the_names_follow_the_conversation(talk):
    """S3-4: indices point at the last of each; tokens are those that the backend reported."""
    session = talk("Hello.", "Yes.")
    session.add_message(SYSTEM, "Be brief.")
    session.add_message(USER, "I am Ada.")

    response = session.add_message(USER, "Is it late?", prompt_tokens=77)

    assert (session.last_user_message_index, session.last_assistant_message_index) == (3, 4)
    assert session.last_user_message_tokens == 77
    assert session.last_assistant_message_tokens == response.completion_tokens
    assert (
        session.last_prompt_tokens == response.prompt_tokens == session.backend.requests[1].tokens
    )


def test_each_message_has_shepherds_fields(talk):
    """S3-5, S3-6, S3-7: six types, four roles; a request is an assistant's message with calls."""
    session = talk(calls("weather", "Looking.", city="Turin"), "Sunny.", tools=[WEATHER])
    session.add_message(SYSTEM, "Be brief.")
    session.add_message(USER, "How is it?")
    session.add_message(FUNCTION, "12 °C", tool_name="weather")

    system, user, request, result, answer = session.messages

    types = [m.type for m in (system, user, request, result, answer)]
    assert types == [SYSTEM, USER, TOOL_REQUEST, TOOL_RESPONSE, ASSISTANT]
    assert request.content == "Looking." and request.tool_calls[0].name == "weather"
    assert (result.tool_name, result.tool_call_id) == ("weather", request.tool_calls[0].id)
    assert result.content == "12 °C" and result.tokens > 0
    roles = [m.get_role() for m in session.messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant"]


def test_the_last_of_a_type_is_found_from_the_end(talk):
    """S3-38: messages can be walked in both directions, each with its role."""
    session = talk("One.", "Two.")
    session.add_message(USER, "First")
    session.add_message(USER, "Second")

    places = range(len(session.messages) - 1, -1, -1)
    last = next(i for i in places if session.messages[i].type == USER)

    assert [m.get_role() for m in session.messages] == ["user", "assistant"] * 2
    assert session.messages[last].content == "Second"
    assert last == session.last_user_message_index


def test_to_json_holds_role_and_content(talk):
    """S3-42: for saving, sending and logging."""
    session = talk("Hello.")
    session.add_message(SYSTEM, "Be brief.")
    session.add_message(USER, "Grüße")

    assert session.to_json() == {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Grüße"},
            {"role": "assistant", "content": "Hello."},
        ]
    }


def test_the_system_prompt_reaches_the_backend(talk):
    session = talk("Hello.", "Hello again.")
    session.add_message(SYSTEM, "Be brief.")

    session.add_message(USER, "Hi")
    session.add_message(SYSTEM, "Be long.")
    session.add_message(USER, "Hi")

    assert [request.system for request in session.backend.requests] == ["Be brief.", "Be long."]


# ---- tokens ----


def test_a_message_is_counted_unless_the_caller_did(talk):
    """S3-8: prompt_tokens 0 has the message counted, with its calls and names; else it is kept."""
    session = talk("One.", "Two.")

    session.add_message(USER, "word " * 50)
    session.add_message(USER, "word " * 50, prompt_tokens=1234)

    counted, given = (m.tokens for m in session.messages if m.type == USER)
    assert 30 < counted < 100
    assert given == 1234


@pytest.mark.parametrize(
    ("max_tokens", "expected"),
    [(0, answer_tokens(32_000, 4_096)), (200, 200), (-1, None)],
    ids=["desired", "given", "no limit"],
)
def test_an_answer_may_have_so_many_tokens(talk, max_tokens, expected):
    """S3-9: 0 is the share of the context that an answer should have; a number is that number."""
    session = talk("Hello.", context=32_000, output=4_096)

    session.add_message(USER, "Hi", max_tokens=max_tokens)

    assert session.backend.requests[0].settings.max_tokens == expected


def test_a_limit_holds_for_one_message_only(talk):
    """S3-9: the next message without one has the desired length again."""
    session = talk("Hello.", "Hello.", context=8_192)

    session.add_message(USER, "Hi", max_tokens=20)
    session.add_message(USER, "Hi")

    limits = [request.settings.max_tokens for request in session.backend.requests]
    assert limits == [20, 1408]


# ---- the callback ----


def test_the_callback_hears_of_the_answer_while_it_comes(talk):
    """S3-3, S3-10: the backend is given the callback's ears; it is told type, content, tool, id."""
    session = talk("Hello dear Ada.")
    heard = Heard()

    response = session.add_message(USER, "I am Ada.", heard)

    content = [event for event in heard.events if event[0] is CallbackEvent.CONTENT]
    assert len(content) > 1
    assert "".join(words for _, words, _, _ in content) == response.content == "Hello dear Ada."
    assert {event[2:] for event in content} == {("", "")}


def test_a_callback_that_returns_false_stops_the_answer(talk):
    """S3-3: what had come by then is kept, and the callback is not called again."""
    session = talk("one " * 500, pause_s=0.01)
    heard = Heard(limit=3)

    response = session.add_message(USER, "Count.", heard)

    assert response.finish_reason == "cancelled"
    assert len(heard.events) == 3
    kept = session.messages[-1]
    assert kept.type == ASSISTANT and 0 < len(kept.content) < 200


def test_what_a_callback_raises_reaches_the_caller_and_stops_the_answer(talk):
    session = talk("one " * 500, pause_s=0.01)

    def broken(*_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        session.add_message(USER, "Count.", broken)

    assert session.messages[0].content == "Count."
    assert len(session.messages[-1].content) < 200
    session.backend.add("Fine.")
    assert session.add_message(USER, "And now?").content == "Fine."


def test_the_callback_hears_of_one_response_in_this_order(talk):
    """
    S3-44: thinking and content, then STOP when the message is stored, then a TOOL_CALL for each
    call, then TOOL_CALLS_COMPLETE.
    """
    two = Message.assistant(
        "Looking around.",
        tool_calls=[
            ToolCall(id="a", name="weather", arguments='{"city":"Turin"}'),
            ToolCall(id="b", name="weather", arguments='{"city":"Oslo"}'),
        ],
    )
    session = talk(two, tools=[WEATHER])
    session.backend.thought = "Two cities."
    stored = []

    def callback(*event):
        heard(*event)
        if event[0] is CallbackEvent.STOP:
            stored.append([m.type for m in session.messages])

    heard = Heard()
    response = session.add_message(USER, "How is it?", callback)

    end = heard.events[-4:]
    assert heard.types[0] is CallbackEvent.THINKING
    assert set(heard.types[1:-4]) == {CallbackEvent.CONTENT}
    assert end == [
        (CallbackEvent.STOP, "tool_calls", "", ""),
        (CallbackEvent.TOOL_CALL, '{"city":"Turin"}', "weather", "a"),
        (CallbackEvent.TOOL_CALL, '{"city":"Oslo"}', "weather", "b"),
        (CallbackEvent.TOOL_CALLS_COMPLETE, "", "", ""),
    ]
    assert stored == [[USER, TOOL_REQUEST]]
    assert response.finish_reason == "tool_calls"


def test_thinking_is_not_content(talk):
    """B32: what a model thinks is not stored as what it said."""
    session = talk("Four.")
    session.backend.thought = "Two and two."

    response = session.add_message(USER, "2 + 2?", Heard())

    assert response.content == session.messages[-1].content == "Four."


def test_a_tool_may_be_run_in_the_callback(talk):
    """
    B49: a message that is added while the callback runs has a callback of its own; nothing is
    swapped and restored.
    """
    session = talk(calls("weather"), "Sunny.", tools=[WEATHER])
    outer, inner = Heard(), Heard()

    def callback(*event):
        outer(*event)
        if event[0] is CallbackEvent.TOOL_CALL:
            session.add_message(TOOL_RESPONSE, "12 °C", inner, event[2], event[3])

    session.add_message(USER, "How is it?", callback)

    assert [m.content for m in session.messages][-2:] == ["12 °C", "Sunny."]
    assert outer.types[-1] is CallbackEvent.TOOL_CALLS_COMPLETE
    assert CallbackEvent.CONTENT not in outer.types
    assert inner.types[-1] is CallbackEvent.STOP


def test_a_message_that_is_added_while_another_is_answered_waits_for_it(talk):
    """B49: also from inside the callback of the other; none of them hangs."""
    session = talk("One two three.", "Four.", pause_s=0.01)
    nested = []

    def callback(event, *_):
        if event is CallbackEvent.CONTENT and not nested:
            nested.append(None)
            nested[0] = session.add_message(USER, "Second")

    first = session.add_message(USER, "First", callback)

    said = [m.content for m in session.messages]
    assert said == ["First", "One two three.", "Second", "Four."]
    assert (first.content, nested[0].content) == ("One two three.", "Four.")


# ---- tools ----


def test_the_backend_goes_on_when_every_call_is_answered(talk):
    """S3-1: the tools are declared to the backend, and the caller runs them."""
    two = Message.assistant(
        tool_calls=[
            ToolCall(id="a", name="weather", arguments="{}"),
            ToolCall(id="b", name="weather", arguments="{}"),
        ]
    )
    session = talk(two, "Sunny in both.", tools=[WEATHER])
    asked = session.add_message(USER, "How is it?")

    half = session.add_message(TOOL_RESPONSE, "12 °C", tool_id="b")
    whole = session.add_message(TOOL_RESPONSE, "9 °C", tool_id="a")

    assert [tool.name for tool in session.backend.requests[0].tools] == ["weather"]
    assert [call.id for call in asked.tool_calls] == ["a", "b"]
    assert [call.id for call in half.tool_calls] == ["a"] and half.finish_reason == "tool_calls"
    assert whole == whole._replace(content="Sunny in both.", finish_reason="stop", tool_calls=())
    results = [m for m in session.backend.requests[1].messages if m.results]
    assert [m.text for m in results] == ["9 °C", "12 °C"]


def test_another_process_can_answer_a_call(talk):
    talk(calls("weather"), tools=[WEATHER]).add_message(USER, "How is it?")

    later = talk("Sunny.")
    response = later.add_message(TOOL_RESPONSE, "12 °C")

    assert response.content == "Sunny."


def test_an_answer_that_was_stopped_before_it_began_has_no_content(talk):
    """What the model said before the tool ran is not the answer to what came of it."""

    def stopped(_):
        session.session.cancel()
        return "Sunny."

    session = talk(calls("weather", "Looking."), stopped, tools=[WEATHER])
    session.add_message(USER, "How is it?")

    response = session.add_message(TOOL_RESPONSE, "12 °C")

    assert (response.content, response.finish_reason) == ("", "cancelled")


@pytest.mark.parametrize("how", [{"tool_id": "x"}, {"tool_name": "sky"}], ids=["id", "name"])
def test_a_result_that_nobody_asked_for_is_refused(talk, how):
    session = talk(calls("weather"), tools=[WEATHER])
    session.add_message(USER, "How is it?")

    with pytest.raises(InvalidInput, match="weather"):
        session.add_message(TOOL_RESPONSE, "12 °C", **how)

    assert len(session.messages) == 2


def test_a_failed_answer_is_raised_and_can_be_gone_on_with(talk):
    """A22: no error hides in a response; the user's message is not lost."""
    session = talk(Overloaded("busy"), "Hello.")
    with pytest.raises(Overloaded):
        session.add_message(USER, "I am Ada.")

    response = session.resume()

    assert response.content == "Hello."
    assert [m.content for m in session.messages] == ["I am Ada.", "Hello."]


@pytest.mark.parametrize("type", ["NARRATOR", TOOL_REQUEST, 7], ids=str)
def test_what_is_no_type_of_a_caller_is_refused(talk, type):
    session = talk("Hello.")

    with pytest.raises(InvalidInput):
        session.add_message(type, "x")

    assert session.messages == ()


@pytest.mark.parametrize(
    ("content", "how"),
    [
        ("", {}),
        (5, {}),
        ("\ud800", {}),
        ("x", {"prompt_tokens": -1}),
        ("x", {"prompt_tokens": "9"}),
        ("x", {"max_tokens": -2}),
        ("x", {"max_tokens": 1.5}),
    ],
    ids=["empty", "number", "surrogate", "less than none", "text", "no limit", "half"],
)
def test_what_is_no_message_is_refused_and_nothing_is_kept(talk, content, how):
    """B33: an empty message of the user is none."""
    session = talk("Hello.")

    with pytest.raises(InvalidInput):
        session.add_message(USER, content, **how)

    assert session.messages == () and session.backend.requests == []


@pytest.mark.parametrize(
    "how", [{"url": "nowhere:"}, {"key": ""}, {"backend": "fake:model"}], ids=["url", "key", "name"]
)
def test_a_session_that_cannot_be_opened_leaves_no_thread(how):
    with pytest.raises(InvalidInput):
        shepherd.Session(**how)

    assert "holdfast-shepherd" not in [thread.name for thread in threading.enumerate()]


def test_without_a_backend_nothing_is_answered_and_the_way_out_is_told():
    with shepherd.Session() as session:
        with pytest.raises(InvalidInput, match=r"session\.backend"):
            session.add_message(USER, "Hi")

        assert session.messages == ()


# ---- continuing ----


def test_an_answer_that_was_cut_off_is_continued_into_one_message(talk):
    """
    S3-11, B33: while the reason is length the backend is asked again, the content is put
    together and the last reason holds. It goes on from its own words: nobody says nothing to it.
    """
    session = talk(cut_off("One, "), cut_off("two, "), "three.")

    response = session.add_message(USER, "Count.")

    assert (response.content, response.finish_reason) == ("One, two, three.", "stop")
    assert [m.content for m in session.messages] == ["Count.", "One, two, three."]
    shown = [[m.text for m in request.messages] for request in session.backend.requests]
    assert shown == [["Count."], ["Count.", "One, "], ["Count.", "One, two, "]]


def test_continuing_has_an_end(talk):
    """S3-12: ten continuations with the same limit, whose tokens are added up, in one message."""
    session = talk(*[cut_off(f"{n} ") for n in range(20)])

    response = session.add_message(USER, "Count.", max_tokens=50)

    requests = session.backend.requests
    assert len(requests) == 11
    assert {request.settings.max_tokens for request in requests} == {50}
    assert response.finish_reason == "length"
    assert response.content == "".join(f"{n} " for n in range(11))
    assert len(session.messages) == 2
    assert response.completion_tokens >= 11


def test_a_continuation_that_fails_keeps_what_there_was(talk):
    """S3-12: the loop stops on a failed continuation."""
    session = talk(cut_off("One, "), Overloaded("busy"))

    response = session.add_message(USER, "Count.")

    assert (response.content, response.finish_reason) == ("One, ", "length")


# ---- clearing, backends, threads ----


def test_clearing_keeps_the_system_prompt_and_the_tools(talk):
    """S3-39: all but SYSTEM messages goes, and the total is that of what is left."""
    session = talk("Hello.", "Who are you?", tools=[WEATHER])
    session.add_message(SYSTEM, "Be brief.")
    session.add_message(USER, "I am Ada.")
    full = session.total_tokens

    session.clear_history()

    assert [m.get_role() for m in session.messages] == ["system"]
    assert session.total_tokens == session.messages[0].tokens < full
    assert (session.last_user_message_index, session.last_prompt_tokens) == (-1, 0)
    assert [tool.name for tool in session.tools] == ["weather"]
    session.add_message(USER, "Who am I?")
    assert [m.text for m in session.backend.requests[1].messages] == ["Who am I?"]
    assert session.backend.requests[1].system == "Be brief."


def test_system_messages_in_the_log_are_kept_too(talk):
    """S3-39: also those that another face has written there."""
    session = talk("Hello.")
    session._loop.run(session.session.append(Message.system("From elsewhere."), Message.user("x")))

    session.clear_history()

    assert [m.content for m in session.messages] == ["From elsewhere."]


def test_the_backend_belongs_to_the_caller(talk):
    """S3-41: a session refers to its backend, and leaves it open when it closes."""
    session = talk("Hello.")
    session.add_message(USER, "Hi")

    session.close()

    assert session.backend.is_closed is False


def test_another_backend_goes_on_with_the_conversation(talk):
    """S3-24, S3-41: messages stay, and what was reported by one does not hold for the other."""
    session = talk("Hello, Ada.")
    session.add_message(USER, "I am Ada.")
    other = Backend("You are Ada.", name="other:model")

    session.backend = other
    before = session.last_prompt_tokens
    response = session.add_message(USER, "Who am I?")

    assert before == 0
    assert response.content == "You are Ada."
    shown = [m.text for m in other.requests[0].messages]
    assert shown == ["I am Ada.", "Hello, Ada.", "Who am I?"]


def test_threads_take_turns_and_readers_need_not_wait(talk):
    """S3-40, A1: a message is answered before the next is asked; readers see whole snapshots."""
    session = talk("First answer.", "Second answer.", pause_s=0.05)
    begun = threading.Event()
    responses = {}

    def add(name):
        responses[name] = session.add_message(USER, name, lambda *_: begun.set())

    first = threading.Thread(target=add, args=["First"])
    first.start()
    assert begun.wait(10)
    second = threading.Thread(target=add, args=["Second"])
    second.start()
    seen = [m.content for m in session.messages]
    first.join(20)
    second.join(20)

    assert len(seen) in (0, 2)
    assert responses["First"].content == "First answer."
    assert responses["Second"].content == "Second answer."
    assert [m.content for m in session.messages] == [
        "First",
        "First answer.",
        "Second",
        "Second answer.",
    ]


def test_a_closed_session_says_so(talk):
    session = talk("Hello.")
    session.close()
    session.close()

    with pytest.raises(InvalidInput, match="closed"):
        session.add_message(USER, "Hi")


# ---- the saved file ----


def test_a_session_is_saved_as_shepherd_saves_it(talk, tmp_path):
    """
    S3-43: version 1, local time, who answered, the messages with their tokens and what they
    have of tools, and two indices; nothing else. It is there whole or not at all.
    """
    asked = Message.assistant(tool_calls=[ToolCall(id="a", name="weather", arguments="{}")])
    session = talk(asked, "Sunny.", tools=[WEATHER])
    session.add_message(SYSTEM, "Be brief.")
    session.add_message(USER, "Wie ist es, süß?", prompt_tokens=9)
    session.add_message(TOOL_RESPONSE, "12 °C", prompt_tokens=4)

    path = session.save(tmp_path)

    text = path.read_text(encoding="utf-8")
    saved = json.loads(text)
    tokens = [row.pop("tokens") for row in saved["messages"]]
    assert path.name == ".shepherd_session.fake.json"
    assert text == json.dumps(json.loads(text), indent=2, sort_keys=True, ensure_ascii=False)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", saved.pop("timestamp"))
    call = {"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    assert json.loads(saved["messages"][1].pop("tool_calls_json")) == [call]
    assert saved == {
        "version": 1,
        "provider": "fake",
        "model": "model",
        "messages": [
            {"role": "user", "content": "Wie ist es, süß?"},
            {"role": "assistant", "content": ""},
            {"role": "tool", "content": "12 °C", "tool_name": "weather", "tool_call_id": "a"},
            {"role": "assistant", "content": "Sunny."},
        ],
        "last_user_message_index": 0,
        "last_assistant_message_index": 3,
    }
    assert (tokens[0], tokens[2]) == (9, 4) and all(tokens)
    assert [each.name for each in tmp_path.glob(".shepherd*")] == [path.name]


def test_a_save_that_fails_leaves_the_file_as_it_was(talk, tmp_path, monkeypatch):
    """S3-43: the new file is written beside the old one, then renamed."""
    session = talk("Hello.")
    path = session.save(tmp_path)
    before = path.read_bytes()
    session.add_message(USER, "I am Ada.")
    monkeypatch.setattr("os.fsync", lambda fd: (_ for _ in ()).throw(OSError("no space")))

    with pytest.raises(OSError, match="no space"):
        session.save(tmp_path)

    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.glob(".shepherd*")] == [path.name]


def test_a_saved_session_is_gone_on_with(talk, tmp_path):
    """S3-43: what was saved is loaded, with its tokens and calls, and can be answered."""
    asked = Message.assistant(tool_calls=[ToolCall(id="a", name="weather", arguments="{}")])
    session = talk(asked, "Sunny.", "Bye.", tools=[WEATHER])
    session.add_message(USER, "How is it?", prompt_tokens=9)
    session.add_message(TOOL_RESPONSE, "12 °C")
    path = session.save(tmp_path)
    before = session.messages

    session.clear_history()
    session.load(path)

    assert session.messages == before
    assert session.add_message(USER, "Thanks.").content == "Bye."
    assert [m.text for m in session.backend.requests[-1].messages][2] == "12 °C"


def test_a_file_is_not_loaded_over_a_conversation(talk, tmp_path):
    session = talk("Hello.")
    session.add_message(USER, "I am Ada.")
    path = session.save(tmp_path)

    with pytest.raises(InvalidInput, match="clear_history"):
        session.load(path)

    assert len(session.messages) == 2


ONE = {"role": "user", "content": "x", "tokens": 1}


@pytest.mark.parametrize(
    "saved",
    [
        {"version": 2, "messages": []},
        {"messages": []},
        {"version": 1},
        {"version": 1, "messages": [{"role": "narrator", "content": "x"}]},
        {"version": 1, "messages": [{"role": "user", "content": 5}]},
        {"version": 1, "messages": [ONE | {"tool_calls_json": "no JSON"}]},
        [],
    ],
    ids=["newer", "none", "empty", "role", "content", "calls", "list"],
)
def test_what_shepherd_did_not_save_is_refused(talk, tmp_path, saved):
    """S3-43, A4: another version, an unknown role and what is no text are told, not guessed at."""
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(saved))
    session = talk()

    with pytest.raises(InvalidInput):
        session.load(path)

    assert session.messages == ()


@pytest.mark.parametrize(
    ("index", "expected"), [(0, 0), (1, -1), (-5, -1), ("0", -1), (None, -1), (True, -1)]
)
def test_indices_out_of_range_are_reset(index, expected):
    """S3-43: a file may say what it likes about a list that it has itself."""
    saved = {"version": 1, "messages": [ONE], "last_user_message_index": index}

    found = shepherd.shepherd_file.read(json.dumps(saved).encode())

    assert found.last_user_message_index == expected
    assert found.last_assistant_message_index == -1


@pytest.mark.parametrize(
    ("provider", "name"),
    [
        ("anthropic", ".shepherd_session.anthropic.json"),
        ("../my server:8080/ü", ".shepherd_session...-my-server-8080--.json"),
        ("gpt-4.1_x", ".shepherd_session.gpt-4.1-x.json"),
    ],
)
def test_the_name_of_the_file_has_no_surprises(provider, name):
    """S3-43: what is no letter, digit, dash or dot becomes a dash."""
    assert shepherd.shepherd_file.file_name(provider) == name


# ---- sampling ----


def test_sampling_is_sent_where_it_is_set(talk):
    """S3-45: -1 and -999 are the backend's own defaults, and are not sent."""
    session = talk(
        "Hello.", "Hello.", sampling=Sampling(temperature=0.2, top_p=0.9, presence_penalty=-1.0)
    )

    session.add_message(USER, "Hi")
    session.sampling = Sampling(user="tenant-7")
    session.add_message(USER, "Hi")

    first, second = (request.settings for request in session.backend.requests)
    assert first.temperature == 0.2
    assert first.extra["fake"] == {"top_p": 0.9, "presence_penalty": -1.0}
    assert second.temperature is None
    assert second.extra["fake"] == {"user": "tenant-7"}


@pytest.mark.parametrize(
    ("vendor", "expected"),
    [
        ("anthropic", {"top_p": 0.9, "top_k": 5, "metadata": {"user_id": "u"}}),
        ("openai", {"top_p": 0.9, "frequency_penalty": 0.5, "user": "u"}),
        ("google", {"generationConfig": {"topP": 0.9, "topK": 5, "frequencyPenalty": 0.5}}),
        (
            "local",
            {"top_p": 0.9, "top_k": 5, "min_p": 0.1, "frequency_penalty": 0.5, "user": "u"},
        ),
    ],
)
def test_each_vendor_is_told_in_its_own_words(vendor, expected):
    """S3-45: a user's id is sent where the vendor has a field for it."""
    sampling = Sampling(top_p=0.9, top_k=5, min_p=0.1, frequency_penalty=0.5, user="u")

    assert sampling.request(vendor) == expected


def test_the_sampling_of_nobody_is_nothing():
    """S3-45: what is not set is not in the request."""
    assert Sampling().request("openai") == {}


def test_a_sampling_that_is_none_is_refused():
    with pytest.raises(InvalidInput, match="top_p"):
        shepherd.Session(sampling=Sampling(top_p="much"))
