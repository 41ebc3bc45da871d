"""Messages and sessions of lango's store."""

import json

import msgspec
import pytest

from holdfast.codec import lango
from holdfast.entries import Mark
from holdfast.errors import InvalidInput
from holdfast.messages import Message, Role, ToolCall
from holdfast.providers.google import GoogleWire
from shapes import NOON, one, read


def test_an_empty_field_is_left_out_for_lango():
    """S1-29, S1-30, S1-31: but for role, content, timestamp, id, name and input."""
    message = Message.assistant(
        None, [ToolCall(id="c", name="f", arguments="")], author="", timestamp=NOON
    )

    assert lango.encode(message) == (
        b'{"role":"assistant","content":"","timestamp":"2026-02-01T12:00:00Z",'
        b'"toolCalls":[{"id":"c","name":"f","input":""}]}'
    )


def test_a_tools_message_becomes_a_result_for_lango():
    """A9, S1-25, S1-31, S1-49, B35: output is a response; its words are not written twice."""
    message = Message.tool('{"hits": 3}', "call_1", name="search", timestamp=NOON)

    found = json.loads(lango.encode(message))

    assert found["toolCalls"] == [
        {"id": "call_1", "name": "search", "input": "", "output": '{"hits": 3}'}
    ]
    assert found["content"] == ""


def test_an_answer_of_a_model_becomes_a_message_for_lango():
    """S1-49: its words put together, its call with the arguments in JSON and an id."""
    wire = GoogleWire("gemini-2.5-flash")
    reader = wire.reader(wire.answer(wire.ask([Message.user("hi")])))
    call = {"functionCall": {"name": "search", "args": {"q": "x"}}}
    parts = [{"text": "Let me "}, {"text": "look."}, call]
    reader.read({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]})
    message = reader.answer.response().message

    found = json.loads(lango.encode(message))

    assert (found["role"], found["content"]) == ("assistant", "Let me look.")
    (made,) = found["toolCalls"]
    assert made["id"].startswith("call_") and made["id"] != "call_"
    assert (made["name"], made["input"]) == ("search", '{"q":"x"}')


def lango_message(role, content="", *calls):
    written = {"role": role, "content": content, "timestamp": "2026-02-01T12:00:00Z"}
    made = [{"id": id, "name": "search", "input": "", **more} for id, more in calls]
    return one(lango.decode(json.dumps(written | ({"toolCalls": made} if made else {}))))


def test_a_history_of_lango_can_be_sent():
    """S1-49, S1-50: outputs are a tool's whoever holds them, and old results go by their order."""
    history = [
        lango_message("tool", "too late"),
        lango_message("user", "Hello."),
        lango_message("user", "Look."),
        lango_message("assistant", "", ("c1", {}), ("c2", {})),
        lango_message("tool", '{"hits":3}'),
        lango_message("tool", "three"),
        lango_message("assistant"),
        lango_message("model", "Again.", ("c3", {})),
        lango_message("user", "[1]", ("c3", {"output": "[1]"})),
        lango_message("assistant", "", ("c4", {})),
        lango_message("assistant", "", ("c4", {"output": "{}"})),
    ]
    wire = GoogleWire("gemini-2.5-flash")

    body = json.loads(msgspec.json.encode(wire.to_wire(wire.ask(history))))

    said = [
        (each["role"], [next(iter(part)) for part in each["parts"]]) for each in body["contents"]
    ]
    assert said == [
        ("user", ["text"] * 3),
        ("model", ["functionCall"] * 2),
        ("user", ["functionResponse"] * 2),
        ("model", ["text", "functionCall"]),
        ("user", ["functionResponse"]),
        ("model", ["functionCall"]),
        ("user", ["functionResponse"]),
    ]
    assert "too late" in body["contents"][0]["parts"][0]["text"]
    results = [
        part["functionResponse"] for content in body["contents"][2::2] for part in content["parts"]
    ]
    assert [(each["id"], each["response"]) for each in results] == [
        ("c1", {"hits": 3}),
        ("c2", {"result": "three"}),
        ("c3", {"result": "[1]"}),
        ("c4", {}),
    ]


def test_a_result_from_lango_is_a_result_here():
    """S1-26: id, name and output equal the original function-response metadata."""
    message = one(lango.decode(read("lango_result.json")))

    (result,) = message.results

    assert (result.call_id, result.name, result.content) == ("call_1", "search", '{"hits": 3}')
    assert message.calls == ()


def test_a_result_that_lango_wrote_twice_keeps_both_places():
    """S1-49: lango appends the response to the content as well; re-writing keeps its bytes."""
    data = (
        rb'{"role":"tool","content":"{\"hits\":3}","timestamp":"2026-02-01T12:00:00Z",'
        rb'"toolCalls":[{"id":"call_1","name":"search","input":"","output":"{\"hits\":3}"}]}'
    )

    assert lango.encode(one(lango.decode(data))) == data


@pytest.mark.parametrize(
    "time",
    [
        "2026-02-01T12:00:00Z",
        "2026-02-01T12:00:00.5Z",
        "2026-02-01T12:00:00.123456789Z",
        "2026-02-01T12:00:00+01:00",
        "2026-02-01T12:00:00.000005-08:00",
        "0001-01-01T00:00:00Z",
    ],
)
def test_the_time_that_lango_wrote_is_written_again(time):
    """Go writes nanoseconds and drops trailing zeros; the text of the time survives (S1-30)."""
    data = b'{"role":"user","content":"x","timestamp":"%b"}' % time.encode()

    found = one(lango.decode(data))

    assert found.timestamp.tzinfo is not None
    assert lango.encode(found) == data


def test_a_time_of_our_own_is_written_as_go_writes_it():
    """Go's RFC3339Nano drops trailing zeros: a half second is `.5`."""
    data = lango.encode(Message.user("x", timestamp=NOON.replace(microsecond=500_000)))

    assert json.loads(data)["timestamp"] == "2026-02-01T12:00:00.5Z"


def test_thought_and_signature_of_a_call_survive_and_old_calls_have_none():
    """S1-27: omitted when empty; old rows load as false and none."""
    first, second = one(lango.decode(read("lango_call.json"))).tool_calls

    assert first.signature == "c2ln"
    assert first.extra["thought"] is True
    assert second.signature is None
    assert not second.extra.get("thought")


@pytest.mark.parametrize("role", ["user", "assistant", "tool", "function", "model", "system"])
def test_lango_roles_are_kept_as_spelled(role):
    """S1-4..S1-8, S1-32: model and function are not rewritten; `system` rows exist too."""
    data = b'{"role":"%b","content":"x","timestamp":"2026-02-01T12:00:00Z"}' % role.encode()

    found = one(lango.decode(data))

    assert found.role is Role(role)
    assert lango.encode(found) == data


def test_an_unknown_field_of_a_lango_message_or_call_survives():
    data = (
        b'{"role":"assistant","content":"x","timestamp":"2026-02-01T12:00:00Z",'
        b'"toolCalls":[{"id":"c","name":"f","input":"{}","cost":1}],"mood":[1,null]}'
    )

    found = one(lango.decode(data))

    assert found.extra["mood"] == (1, None)
    assert json.loads(lango.encode(found)) == json.loads(data)


@pytest.mark.parametrize("role", ["bot", "SYSTEM", None, 1])
def test_lango_refuses_an_unknown_role(role):
    """A4: invalid in lango, and an error here."""
    with pytest.raises(InvalidInput):
        lango.decode(
            json.dumps({"role": role, "content": "x", "timestamp": "2026-02-01T12:00:00Z"})
        )


@pytest.mark.parametrize("calls", [True, 1, 1.5, "call", {"id": "c"}, [1], [None], ["x"]])
def test_malformed_calls_of_lango_are_refused(calls):
    """S0-24: malformed tool-call JSON is a typed error."""
    message = {"role": "assistant", "content": "", "timestamp": "2026-02-01T12:00:00Z"}

    with pytest.raises(InvalidInput):
        lango.decode(json.dumps({**message, "toolCalls": calls}))


def test_an_old_function_message_keeps_its_name_in_lango():
    """A tool's message is written as a result; in the legacy style it has a name and no id."""
    message = Message(Role.FUNCTION, '{"t": 12}', name="weather", timestamp=NOON)

    (result,) = one(lango.decode(lango.encode(message))).results

    assert (result.name, result.content) == ("weather", '{"t": 12}')


SESSION = lango.Session(
    key="telegram:12345678",
    agent_id="helper",
    channel_type="telegram",
    channel_id="12345678",
    history=(Message.user("Hello", timestamp=NOON),),
    metadata={"lang": "de"},
    model="m",
    created_at=NOON,
    updated_at=NOON.replace(microsecond=500_000),
)


def test_a_lango_session_is_written_in_these_bytes():
    """S1-29: key, agentId, channelType, channelId, history, metadata, model, times."""
    assert lango.encode_session(SESSION) == read("lango_session.json")


def test_an_empty_lango_session_leaves_out_what_is_empty():
    """S1-29: agentId, channelType, channelId, metadata and model are omitted when empty."""
    session = lango.Session(key="cli:direct", created_at=NOON, updated_at=NOON)

    assert lango.encode_session(session) == read("lango_empty_session.json")


@pytest.mark.parametrize("name", ["lango_session.json", "lango_empty_session.json"])
def test_a_lango_session_is_read_and_written_as_the_same_bytes(name):
    assert lango.encode_session(lango.decode_session(read(name))) == read(name)


def test_a_lango_session_is_read_as_what_it_says():
    found = lango.decode_session(read("lango_session.json"))

    assert found.replace(history=(), extra={}) == SESSION.replace(history=(), extra={})
    assert [message.content for message in found.history] == ["Hello"]


def test_a_lango_session_without_history_may_say_null():
    """Go writes a nil slice as null."""
    found = lango.decode_session(
        b'{"key":"k","history":null,"createdAt":"2026-02-01T12:00:00Z","updatedAt":"2026-02-01T12:00:00Z"}'
    )

    assert found.history == ()


def test_a_mark_about_mended_characters_ends_the_history_of_a_session():
    data = read("lango_session.json").replace(b"Hello", rb"Hello\ud800")

    found = lango.decode_session(data)

    assert found.history[0].content == "Hello\ufffd"
    assert isinstance(found.history[-1], Mark)


def test_unknown_fields_of_a_lango_session_survive():
    data = read("lango_empty_session.json").replace(b'"key"', b'"mood":[1],"key"')

    found = lango.decode_session(data)

    assert found.extra["mood"] == (1,)
    assert json.loads(lango.encode_session(found)) == json.loads(data)


def test_broken_characters_in_a_session_without_messages_leave_a_mark():
    """Whatever was mended is said, also where there is no message to say it of."""
    session = json.dumps({"key": "k\ud800", "createdAt": "2026-02-01T12:00:00Z"})[:-1]

    found = lango.decode_session(session + ',"updatedAt":"2026-02-01T12:00:00Z"}')

    assert found.key == "k\ufffd"
    assert [mark.what for mark in found.history] == ["mended"]
