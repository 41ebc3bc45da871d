"""The shapes of other programs: kernel, lango, jaato, shepherd and nanobot.

Each shape has golden files, written by hand from the contract: value → bytes and bytes → value.
Times without a zone are read in UTC here, so that the machine's own zone does not matter.
"""

import json
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from holdfast import codec
from holdfast.codec import jaato, kernel, lango, nanobot, shepherd
from holdfast.entries import Mark, UnknownEntry
from holdfast.errors import InvalidInput, TooLarge
from holdfast.messages import Message, Role, ToolCall
from holdfast.parts import CallRef, Image, Text, Thinking, Unknown

GOLDEN = Path(__file__).parent / "golden" / "codec"
ID = "01950000-0000-7000-8000-00000000000"
NOON = datetime(2026, 2, 1, 12, tzinfo=UTC)

to_line = partial(nanobot.encode, zone=UTC)


def at(text, **more):
    """The fields of a message whose time stood as `text`, without a zone, in a nanobot line."""
    time = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return {"timestamp": time, "extra": {**more, "timestamp": text}}


def one(entries):
    (message,) = entries
    return message


def from_line(line):
    return one(nanobot.decode(line, zone=UTC))


def read(name):
    return (GOLDEN / name).read_bytes()


def same(found, expected, *carried):
    """Equal in what the shape carries; `carried` names more than the fields that all do."""
    fields = ("role", "content", "tool_calls", "tool_call_id", *carried)
    return [getattr(found, f) for f in fields] == [getattr(expected, f) for f in fields]


GOLDENS = {
    "kernel_text.json": (kernel.encode, kernel.decode, (), Message.user("Hello")),
    "kernel_calls.json": (
        kernel.encode,
        kernel.decode,
        (),
        Message.assistant(
            None,
            [ToolCall(id="call_1", name="render", arguments='{"html": "<b> & \u2028\u2029 é"}')],
        ),
    ),
    "kernel_result.json": (kernel.encode, kernel.decode, (), Message.tool("1 < 2", "call_1")),
    "kernel_picture.json": (
        kernel.encode,
        kernel.decode,
        (),
        Message.user(
            [
                Text("See:"),
                Image(url="https://example.com/a.png"),
                Image(data=b"\0\1\2", media_type="image/png"),
            ]
        ),
    ),
    "lango_call.json": (
        lango.encode,
        lango.decode,
        ("author", "timestamp"),
        Message.assistant(
            "Let me look.",
            [
                ToolCall(
                    id="call_1",
                    name="search",
                    arguments='{"q":"tea"}',
                    signature="c2ln",
                    extra={"thought": True},
                ),
                ToolCall(id="call_2", name="time", arguments=""),
            ],
            author="lango-orchestrator",
            timestamp=NOON,
        ),
    ),
    "lango_result.json": (
        lango.encode,
        lango.decode,
        ("author", "timestamp"),
        Message(
            Role.TOOL,
            "",
            tool_calls=(ToolCall(id="call_1", name="search", arguments="", output='{"hits": 3}'),),
            timestamp=NOON.replace(microsecond=5),
        ),
    ),
    "lango_escapes.json": (
        lango.encode,
        lango.decode,
        ("author", "timestamp"),
        Message(
            Role.MODEL,
            "1 < 2 & 3 > 2 \u2028",
            timestamp=NOON.replace(tzinfo=timezone(timedelta(hours=1))),
        ),
    ),
    "jaato_interleaved.json": (
        jaato.encode,
        jaato.decode,
        ("id",),
        Message(
            Role.MODEL,
            (Text("First Bern."), CallRef("call_1"), Text("Then Zürich.")),
            tool_calls=(
                ToolCall(id="call_1", name="weather", arguments='{"city":"Bern"}'),
                ToolCall(id="call_2", name="weather", arguments='{"city":"Zürich"}'),
            ),
            id=ID + "1",
        ),
    ),
    "jaato_thought.json": (
        jaato.encode,
        jaato.decode,
        ("id",),
        Message(Role.MODEL, (Thinking("Hm.", "c2ln"), Text("Hello.")), id=ID + "3"),
    ),
    "jaato_picture.json": (
        jaato.encode,
        jaato.decode,
        ("id",),
        Message.user(
            [
                Text("See:"),
                Image(data=b"\0\1\2", media_type="image/png"),
                Unknown({"type": "executable_code", "language": "python", "code": "1 + 1"}),
            ],
            id=ID + "4",
        ),
    ),
    "nanobot_user.jsonl": (
        to_line,
        partial(nanobot.decode, zone=UTC),
        ("id", "timestamp", "extra"),
        Message.user("Hello", id=ID + "1", **at("2026-02-01T12:00:00")),
    ),
    "nanobot_tools_used.jsonl": (
        to_line,
        partial(nanobot.decode, zone=UTC),
        ("id", "timestamp", "extra"),
        Message.assistant(
            "Hi there!",
            id=ID + "2",
            **at("2026-02-01T12:00:01.000005", tools_used=["web_search"]),
        ),
    ),
    "nanobot_call.jsonl": (
        to_line,
        partial(nanobot.decode, zone=UTC),
        ("id", "timestamp", "extra"),
        Message.assistant(
            None,
            [ToolCall(id="call_1", name="web_search", arguments='{"q": "Zürich"}')],
            id=ID + "3",
            **at("2026-02-23T12:00:00"),
        ),
    ),
    "nanobot_result.jsonl": (
        to_line,
        partial(nanobot.decode, zone=UTC),
        ("id", "timestamp", "extra", "name"),
        Message.tool(
            "12 °C", "call_1", name="web_search", id=ID + "4", **at("2026-02-23T12:00:00")
        ),
    ),
    "nanobot_reasoning.jsonl": (
        to_line,
        partial(nanobot.decode, zone=UTC),
        ("id", "timestamp", "extra"),
        Message.assistant(
            "Sunny.",
            id=ID + "5",
            **at(
                "2026-02-28T12:00:00",
                reasoning_content="Hm.",
                thinking_blocks=[{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}],
            ),
        ),
    ),
    "nanobot_late_fields.jsonl": (
        to_line,
        partial(nanobot.decode, zone=UTC),
        ("id", "timestamp", "extra"),
        Message.user(
            "/new",
            id=ID + "6",
            **at(
                "2026-05-01T12:00:00",
                media=["a.png"],
                _command=True,
                _channel_delivery={"id": 7},
                injected_event="x",
                cli_apps=[],
                _runtime_context={},
                _hidden_history=False,
            ),
        ),
    ),
    "nanobot_line_separator.jsonl": (
        to_line,
        partial(nanobot.decode, zone=UTC),
        ("id", "timestamp", "extra"),
        Message.user("one\u2028two\u2029three\x85four", id=ID + "7", **at("2026-02-20T12:00:00")),
    ),
    "nanobot_picture.jsonl": (
        to_line,
        partial(nanobot.decode, zone=UTC),
        ("id", "timestamp", "extra"),
        Message.user(
            [Text("See:"), Image(data=b"\0\1\2", media_type="image/png")],
            id=ID + "8",
            **at("2026-02-20T12:00:00"),
        ),
    ),
    "nanobot_our_fields.jsonl": (
        to_line,
        partial(nanobot.decode, zone=UTC),
        ("id", "timestamp", "extra", "author", "is_error", "model", "prefix", "stop", "synthetic"),
        Message(
            Role.ASSISTANT,
            "Hi",
            id=ID + "9",
            author="helper",
            is_error=True,
            model="vendor:model",
            prefix="ab12",
            stop="stop",
            synthetic="notice",
            **at("2026-02-20T12:00:00"),
        ),
    ),
}


@pytest.mark.parametrize("name", GOLDENS)
def test_a_message_is_written_in_the_bytes_of_the_other_program(name):
    """S0-26, S1-29..S1-31, S2-18, S4-13..S4-18, A2: one type, several codecs, exact bytes."""
    encode, _, _, message = GOLDENS[name]

    assert encode(message) == read(name)


@pytest.mark.parametrize("name", GOLDENS)
def test_the_bytes_of_the_other_program_are_read_as_this_message(name):
    """And nothing that the shape carries is lost, ids, thoughts and attachments included."""
    _, decode, carried, message = GOLDENS[name]

    assert same(one(decode(read(name))), message, *carried)


GOLDEN_BYTES = [*GOLDENS, "jaato_results.json"]


@pytest.mark.parametrize("name", GOLDEN_BYTES)
def test_what_was_read_is_written_as_the_same_bytes(name):
    """Bytes → value → bytes is the identity for every line of the shape's own writer."""
    encode, decode = GOLDENS[name][:2] if name in GOLDENS else (jaato.encode, jaato.decode)

    assert encode(one(decode(read(name)))) == read(name)


@pytest.mark.parametrize("name", GOLDEN_BYTES)
def test_what_was_read_also_survives_in_our_own_record(name):
    """Importing is not a dead end: every foreign field lives on in the record (S4-25)."""
    encode, decode = GOLDENS[name][:2] if name in GOLDENS else (jaato.encode, jaato.decode)
    message = one(decode(read(name)))

    kept = codec.read_record(codec.record(message))

    assert kept == message
    assert encode(kept) == read(name)


# --- kernel ---------------------------------------------------------------------------------


def test_the_kernel_knows_four_fields_and_flat_calls():
    """S0-6, S0-7, S0-26: role, content, tool_call_id, tool_calls; nothing else of a message."""
    message = Message(
        Role.ASSISTANT,
        "x",
        tool_calls=(
            ToolCall(
                id="c",
                name="f",
                arguments="{}",
                output="o",
                signature="s",
                is_error=True,
                extra={"a": 1},
            ),
        ),
        tool_call_id="t",
        name="n",
        author="a",
        extra={"b": 2},
        model="m",
    )

    assert kernel.encode(message) == (
        b'{"role":"assistant","content":"x","tool_call_id":"t",'
        b'"tool_calls":[{"id":"c","name":"f","arguments":"{}"}]}'
    )


def test_the_kernel_escapes_as_go_does():
    """S0-26: <, >, &, U+2028 and U+2029 are escaped, in keys and texts; the rest is UTF-8."""
    message = Message.user([Unknown({"type": "<&>", "é\u2029": "\0\n\x7f"})])

    found = kernel.encode(message)

    assert b"<" not in found
    assert rb"\u003c\u0026\u003e" in found
    assert "é".encode() + rb"\u2029" in found
    assert rb"\u0000\n" in found
    assert json.loads(found)["content"] == [{"type": "<&>", "é\u2029": "\0\n\x7f"}]


def test_the_kernel_reads_nested_calls_too():
    """S0-27: a later kernel writes `{id, type, function}`."""
    found = one(
        kernel.decode(
            b'{"role":"assistant","content":null,"tool_calls":'
            b'[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}'
        )
    )

    assert found.tool_calls == (ToolCall(id="c", name="f", arguments="{}"),)


def test_options_of_a_picture_are_kept_for_the_kernel():
    """S0-32: `image_url` is `{url, …options}`."""
    data = (
        b'{"role":"user","content":[{"type":"image_url",'
        b'"image_url":{"url":"https://example.com/a.png","detail":"high"}}]}'
    )

    assert kernel.encode(one(kernel.decode(data))) == data


# --- lango ----------------------------------------------------------------------------------


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
    """A9, S1-25, S1-31: non-empty output is a response; its words are not written twice."""
    message = Message.tool('{"hits": 3}', "call_1", name="search", timestamp=NOON)

    found = json.loads(lango.encode(message))

    assert found["toolCalls"] == [
        {"id": "call_1", "name": "search", "input": "", "output": '{"hits": 3}'}
    ]
    assert found["content"] == ""


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


# --- jaato ----------------------------------------------------------------------------------


def test_the_results_of_several_calls_are_read_from_one_message():
    """A9, S2-18: call id, name, result, error and attachments of each."""
    message = one(jaato.decode(read("jaato_results.json")))

    first, second = message.results

    assert (first.call_id, first.name, first.is_error) == ("call_1", "weather", False)
    assert json.loads(first.content) == {"t": 12}
    assert (second.call_id, second.content, second.is_error) == ("call_2", "no such city", True)
    assert message.id == ID + "2"
    assert "AAEC" in codec.record(message).decode()


def test_a_message_id_of_jaato_survives():
    """S2-17, S2-76, S2-77, B10: jaato's own serialiser loses it."""
    message = one(jaato.decode(read("jaato_thought.json")))

    assert message.id == ID + "3"
    assert json.loads(jaato.encode(message))["message_id"] == ID + "3"


def test_a_message_without_id_gets_one():
    """jaato's own files have none."""
    found = one(jaato.decode(b'{"role":"user","parts":[{"type":"text","text":"x"}]}'))

    assert found.id
    assert found.text == "x"


def test_the_order_of_words_and_calls_is_kept():
    """S2-18: text, call, text, call, text — as it was said, through our record too."""
    parts = [
        {"type": "text", "text": "a"},
        {"type": "function_call", "id": "1", "name": "f", "args": {}},
        {"type": "function_call", "id": "2", "name": "g", "args": {}},
        {"type": "text", "text": "b"},
        {"type": "function_call", "id": "3", "name": "h", "args": {}},
        {"type": "text", "text": "c"},
    ]
    data = json.dumps({"role": "model", "parts": parts, "message_id": "m"}).encode()

    found = codec.read_record(codec.record(one(jaato.decode(data))))

    assert [call.id for call in found.tool_calls] == ["1", "2", "3"]
    assert found.text == "abc"
    assert json.loads(jaato.encode(found))["parts"] == parts


@pytest.mark.parametrize(
    "arguments", ['{"city": "Bern"}', '{"city":"Bern"}', '{ "b":1.0, "a":[1,2] }', "{}"]
)
def test_arguments_are_an_object_for_jaato_and_come_back_as_the_model_wrote_them(arguments):
    """S2-18: args is an object; A8: the text of the arguments is kept exactly."""
    message = Message.assistant(None, [ToolCall(id="c", name="f", arguments=arguments)])

    data = jaato.encode(message)

    assert json.loads(data)["parts"][0]["args"] == json.loads(arguments)
    assert one(jaato.decode(data)).tool_calls[0].arguments == arguments


@pytest.mark.parametrize("arguments", ['{"a": ', "", "null", "[1]", '"x"', '{"a":1,"a":2}', "NaN"])
def test_arguments_that_are_no_object_are_not_replaced_by_one(arguments):
    """A8: invalid JSON is kept and reported, not replaced by `{}`."""
    message = Message.assistant(None, [ToolCall(id="c", name="f", arguments=arguments)])

    assert one(jaato.decode(jaato.encode(message))).tool_calls[0].arguments == arguments


def test_the_signature_of_a_call_survives_jaato():
    """S1-27, S2-24: what proves the vendor's thinking is not dropped on the way."""
    call = ToolCall(id="c", name="f", arguments="{}", signature="c2ln")

    found = one(jaato.decode(jaato.encode(Message.assistant(None, [call]))))

    assert found.tool_calls == (call,)


@pytest.mark.parametrize("output", ["12 °C", '{"t": 12}', '{"t":12}', "", "null", "12", '"x"', "{"])
def test_what_a_tool_gave_back_is_the_same_text_after_jaato(output):
    """S1-26: the serialised response is kept exactly, JSON or not."""
    message = Message.tool(output, "c", name="f", is_error=True)

    (result,) = one(jaato.decode(jaato.encode(message))).results

    assert (result.call_id, result.name, result.content, result.is_error) == (
        "c",
        "f",
        output,
        True,
    )


@pytest.mark.parametrize(
    "result", [None, True, 12, 1.5, "x", [], {}, {"a": [1, {"b": None}]}, '{"t": 12}', 2**63]
)
def test_any_json_may_be_a_result_of_jaato(result):
    """S2-18: result is any JSON, and stays of its type."""
    part = {
        "type": "function_response",
        "call_id": "c",
        "name": "f",
        "result": result,
        "is_error": False,
    }
    data = json.dumps({"role": "tool", "parts": [part], "message_id": "m"}).encode()

    found = json.loads(jaato.encode(one(jaato.decode(data))))["parts"][0]

    assert found["result"] == result
    assert type(found["result"]) is type(result)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "thought", "thought": "Hm."},
        {"type": "thought", "thought": "Hm.", "signature": "s"},
        {"type": "executable_code", "code": "1"},
        {"type": "code_execution_result", "output": "2"},
        {"type": "unknown", "repr": "<x>"},
        {"type": "inline_data", "mime_type": "audio/wav", "data": "AAEC"},
        {"type": "inline_data", "mime_type": "application/pdf", "data": "AAEC"},
        {"type": "inline_data", "mime_type": "image/png", "data": "broken!"},
        {"type": "text", "text": ""},
        {"type": "text", "text": "x", "mood": 1},
        {"no": "type"},
        7,
    ],
    ids=json.dumps,
)
def test_every_kind_of_part_survives(part):
    """S2-18, S2-24, S2-77, B10: thoughts, code and media do not become `[Unrecognized part]`."""
    data = json.dumps({"role": "model", "parts": [part], "message_id": "m"}).encode()

    found = codec.read_record(codec.record(one(jaato.decode(data))))

    assert json.loads(jaato.encode(found))["parts"] == [part]


@pytest.mark.parametrize(
    ("role", "written"),
    [
        ("user", "user"),
        ("model", "model"),
        ("assistant", "model"),
        ("tool", "tool"),
        ("function", "tool"),
    ],
)
def test_jaato_has_three_roles(role, written):
    """S2-17: user, model, tool."""
    data = jaato.encode(Message(Role(role), "x", tool_call_id="c" if written == "tool" else None))

    assert json.loads(data)["role"] == written


@pytest.mark.parametrize(
    "data",
    [b"[]", b"{}", b'{"role":"bot","parts":[]}', b'{"role":"user","parts":5}', b'{"parts":[]}'],
)
def test_what_is_no_message_of_jaato_is_refused(data):
    with pytest.raises(InvalidInput):
        jaato.decode(data)


@pytest.mark.parametrize(
    "parts", [[CallRef("gone")], [Text("x"), CallRef("gone")], [CallRef("gone"), Text("x")]]
)
def test_the_place_of_a_call_that_is_not_there_is_not_lost(parts):
    """Nothing that gets in is lost: what jaato has no part for is written in our own JSON."""
    data = jaato.encode(Message.assistant(parts, id="i"))

    assert jaato.encode(one(jaato.decode(data))) == data


# --- shepherd -------------------------------------------------------------------------------

CONVERSATION = (
    Message.system("Be brief."),
    Message.user("Grüße"),
    Message.assistant(None, [ToolCall(id="c", name="f", arguments="{}")]),
    Message.tool("12 °C", "c", name="f"),
)


def test_a_conversation_is_written_as_shepherd_writes_it():
    """S3-42: role and content of each; content is text, so nothing said is empty text."""
    assert shepherd.encode(CONVERSATION) == read("shepherd_session.json")


def test_what_shepherd_wrote_is_read_and_written_as_the_same_bytes():
    data = read("shepherd_session.json")

    found = shepherd.decode(data)

    assert [message.role for message in found] == [message.role for message in CONVERSATION]
    assert [message.text or "" for message in found] == ["Be brief.", "Grüße", "", "12 °C"]
    assert shepherd.encode(found) == data


def test_an_empty_conversation_is_an_empty_list():
    assert shepherd.encode([]) == b'{"messages":[]}'
    assert shepherd.decode(b'{"messages":[]}') == ()


def test_shepherds_keys_may_come_in_any_order():
    """Its JSON library sorts keys: content comes before role."""
    (found,) = shepherd.decode(b'{"messages":[{"content":"x","role":"user"}]}')

    assert (found.role, found.content) == (Role.USER, "x")


@pytest.mark.parametrize(
    ("message", "kind", "role"),
    [
        (Message.system("x"), "SYSTEM", "system"),
        (Message.user("x"), "USER", "user"),
        (Message.assistant("x"), "ASSISTANT", "assistant"),
        (Message(Role.MODEL, "x"), "ASSISTANT", "assistant"),
        (
            Message.assistant("x", [ToolCall(id="c", name="f", arguments="")]),
            "TOOL_REQUEST",
            "assistant",
        ),
        (Message.tool("x", "c"), "TOOL_RESPONSE", "tool"),
        (Message(Role.FUNCTION, "x"), "FUNCTION", "tool"),
    ],
    ids=["system", "user", "assistant", "model", "request", "response", "function"],
)
def test_a_message_has_one_of_shepherds_types(message, kind, role):
    """S3-5, S3-6, S3-7: six types and four roles; FUNCTION maps to a tool's response."""
    assert shepherd.message_type(message) == kind
    assert json.loads(shepherd.encode([message]))["messages"][0]["role"] == role


def test_shepherd_refuses_an_unknown_role():
    """A4: the source turns it into a user; here it is an error."""
    with pytest.raises(InvalidInput, match="narrator"):
        shepherd.decode(b'{"messages":[{"role":"narrator","content":"x"}]}')


@pytest.mark.parametrize(
    "data", [b"[]", b"{}", b'{"messages":{}}', b'{"messages":[1]}', b'{"messages":null}']
)
def test_what_is_no_conversation_of_shepherd_is_refused(data):
    with pytest.raises(InvalidInput):
        shepherd.decode(data)


# --- nanobot: metadata ----------------------------------------------------------------------

METADATA = nanobot.Metadata(
    key="telegram:12345678",
    created_at="2026-01-01T00:00:00",
    updated_at="2026-02-01T12:00:01.000005",
)


def test_the_metadata_line_of_the_contract_is_reproduced_exactly():
    """S4-11, S4-12, S4-15, S4-20: Python's spaces, key order, `\\n` behind the line."""
    assert nanobot.encode_metadata(METADATA) == read("nanobot_metadata.jsonl")
    assert nanobot.decode(read("nanobot_metadata.jsonl")) == METADATA


def test_metadata_with_a_title_and_an_offset_is_written_in_these_bytes():
    """S4-24: title, goal_state and others live in the inner object."""
    metadata = METADATA.replace(
        metadata={"title": "Grüße", "title_user_edited": True, "goal_state": None},
        last_consolidated=2,
    )

    assert nanobot.encode_metadata(metadata) == read("nanobot_metadata_titled.jsonl")
    assert nanobot.decode(read("nanobot_metadata_titled.jsonl")) == metadata
    assert nanobot.encode_metadata(metadata, ascii=True) == read(
        "nanobot_metadata_titled.jsonl"
    ).replace("Grüße".encode(), rb"Gr\u00fc\u00dfe")


def offset(value):
    line = {"_type": "metadata", "key": "k", "metadata": {}, "last_consolidated": value}
    return json.dumps(line).encode()


@pytest.mark.parametrize("value", [-1, 1.0, 1.5, "1", True, False, None, [], {}, -(2**70)])
def test_an_offset_that_cannot_be_one_is_zero(value):
    """S4-23: otherwise all history would be hidden (bad input 56)."""
    found = nanobot.decode(offset(value)).last_consolidated

    assert found == 0
    assert type(found) is int


def test_an_offset_beyond_the_messages_is_zero():
    """S4-22, S4-23: it must never exceed the number of messages (bad input 56)."""
    file = offset(3) + b"\n" + b'{"role": "user", "content": "x"}\n' * 2

    assert nanobot.decode_file(file, zone=UTC).metadata.last_consolidated == 0
    assert METADATA.replace(last_consolidated=2).within(2).last_consolidated == 2
    assert METADATA.replace(last_consolidated=3).within(2).last_consolidated == 0


def test_an_offset_that_equals_the_number_of_messages_stays():
    file = offset(2) + b"\n" + b'{"role": "user", "content": "x"}\n' * 2

    assert nanobot.decode_file(file, zone=UTC).metadata.last_consolidated == 2


def test_unknown_records_and_metadata_lines_do_not_count_as_messages():
    """The offset is an index into the messages; private records are none (S4-22)."""
    file = (
        offset(2)
        + b'\n{"_type": "provider_state", "state": {}}\n{"role": "user", "content": "x"}\n'
    )

    assert nanobot.decode_file(file, zone=UTC).metadata.last_consolidated == 0


@pytest.mark.parametrize("value", ["null", "{}"])
def test_metadata_that_is_null_is_empty(value):
    """S4-23 (bad input 55): nanobot itself coerced it after a crash."""
    line = b'{"_type": "metadata", "key": "k", "metadata": %b}' % value.encode()

    assert nanobot.decode(line).metadata == {}


def test_metadata_of_the_first_era_has_neither_key_nor_offset():
    """S4-24: 2026-02-01."""
    found = nanobot.decode(
        b'{"_type": "metadata", "created_at": "2026-02-01T11:00:00", "metadata": {}}'
    )

    assert (found.key, found.last_consolidated) == (None, 0)
    assert found.created_at == "2026-02-01T11:00:00"


def test_unknown_fields_of_metadata_survive():
    """S4-25."""
    line = read("nanobot_metadata.jsonl").replace(b"}\n", b', "mood": [1.0]}\n')

    found = nanobot.decode(line)

    assert found.extra == {"mood": (1.0,)}
    assert json.loads(nanobot.encode_metadata(found)) == json.loads(line)


@pytest.mark.parametrize("name", ["key", "created_at", "updated_at", "metadata"])
@pytest.mark.parametrize("value", [5, [1], True, "text"], ids=json.dumps)
def test_metadata_of_the_wrong_type_is_refused_or_kept(name, value):
    """Nothing that gets in is lost: what cannot be used survives, or is refused by name."""
    line = json.dumps({"_type": "metadata", name: value}).encode()
    try:
        found = nanobot.decode(line)
    except InvalidInput:
        return

    assert json.loads(nanobot.encode_metadata(found))[name] == value


@pytest.mark.parametrize("time", ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00", "yesterday", ""])
def test_times_of_metadata_are_the_text_that_stood_there(time):
    """A13, B4: Python's, Go's and broken ones alike."""
    line = json.dumps({"_type": "metadata", "created_at": time, "updated_at": time}).encode()

    found = nanobot.decode(line)

    assert (found.created_at, found.updated_at) == (time, time)


# --- nanobot: messages ----------------------------------------------------------------------


def test_a_line_of_nanobot_itself_gets_our_id_behind_and_stays_the_same_before_it():
    """S4-14, S4-25: what nanobot wrote is written again, and our id is the last key."""
    for name in GOLDENS:
        if name.startswith("nanobot") and "our_fields" not in name:
            ours = read(name)
            theirs = ours[: ours.rindex(b', "id"')] + b"}\n"

            found = from_line(theirs)

            assert to_line(found) == theirs[:-2] + b', "id": "%b"}\n' % found.id.encode()


def test_the_id_is_the_last_key_even_behind_extra_fields():
    message = Message.user("x", id="i", timestamp=NOON, author="a", extra={"zz": 1, "name2": 2})

    assert list(json.loads(to_line(message)))[-1] == "id"


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (NOON, "2026-02-01T12:00:00"),
        (NOON.replace(microsecond=5), "2026-02-01T12:00:00.000005"),
        (NOON.astimezone(timezone(timedelta(hours=5, minutes=30))), "2026-02-01T12:00:00"),
    ],
)
def test_a_time_of_our_own_is_written_in_local_time_without_a_zone(time, text):
    """S4-16: Python's isoformat; microseconds only when there are any."""
    assert json.loads(to_line(Message.user("x", timestamp=time)))["timestamp"] == text


def test_the_zone_is_where_nanobot_runs():
    zone = timezone(timedelta(hours=2))
    message = Message.user("x", timestamp=NOON)

    line = nanobot.encode(message, zone=zone)

    assert json.loads(line)["timestamp"] == "2026-02-01T14:00:00"
    assert one(nanobot.decode(line, zone=zone)).timestamp == NOON


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-02-01T12:00:00", NOON),
        ("2026-02-01T12:00:00Z", NOON),
        ("2026-02-01T12:00:00.000Z", NOON),
        ("2026-02-01T13:00:00+01:00", NOON),
        ("2026-02-01 12:00:00", NOON),
        ("2026-02-01T12:00:00.123456789Z", NOON.replace(microsecond=123456)),
        ("0001-01-01T00:00:00", datetime(1, 1, 1, tzinfo=UTC)),
        ("9999-12-31T23:59:59.999999", datetime.max.replace(tzinfo=UTC)),
        ("2036-02-01T12:00:00", NOON.replace(year=2036)),
    ],
)
def test_a_time_is_understood_and_written_as_it_stood(text, time):
    """S4-16, S4-17, A13, B4: every writer's time, kept as given (bad input 54)."""
    line = json.dumps({"role": "user", "content": "x", "timestamp": text}).encode()

    found = from_line(line)

    assert found.timestamp == time
    assert json.loads(to_line(found))["timestamp"] == text


@pytest.mark.parametrize(
    "value", ["yesterday", "", -1, 1769947200, 1.5, None, True, [], "0000-00-00"]
)
def test_a_time_that_is_none_does_not_lose_the_message(value):
    """S4-26: nanobot takes now for a bad timestamp; the text that stood there is kept (54)."""
    line = json.dumps({"role": "user", "content": "x", "timestamp": value}).encode()

    found = from_line(line)

    assert found.content == "x"
    assert found.timestamp.tzinfo is not None
    if value is not None:
        assert json.loads(to_line(found))["timestamp"] == value


def test_a_line_without_a_time_gets_one():
    """S4-24: not every era wrote one for every message."""
    assert from_line(b'{"role": "user", "content": "x"}').timestamp.tzinfo is not None


EASTERN, WESTERN = timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))


@pytest.mark.parametrize("zone", [UTC, EASTERN, WESTERN], ids=["utc", "east", "west"])
@pytest.mark.parametrize("own", [UTC, EASTERN, WESTERN], ids=["utc", "east", "west"])
@pytest.mark.parametrize("time", [datetime.min, datetime.max], ids=["first", "last"])
def test_the_first_and_the_last_moment_can_be_written(time, own, zone):
    """Bad input 54: years 0001 and 9999, in whichever zone; no OverflowError on a later day."""
    message = Message.user("x", id="i", timestamp=time.replace(tzinfo=own))

    found = one(nanobot.decode(nanobot.encode(message, zone=zone), zone=zone))

    assert found.timestamp == message.timestamp
    assert one(lango.decode(lango.encode(message))).timestamp == message.timestamp
    assert codec.read_record(codec.record(message)) == message
    assert codec.read_foreign_record(codec.record(message)) == (message,)


@pytest.mark.parametrize("hour", range(7, 12))
@pytest.mark.parametrize("day", [datetime(2026, 11, 1), datetime(2026, 3, 8)], ids=["back", "on"])
def test_a_time_of_our_own_survives_the_hour_in_which_clocks_change(day, hour):
    """
    01:30 comes twice in the night in which clocks go back: a local time alone would lose an hour.
    Text of a time that would not be read as the same time is no text for it (54).
    """
    zone = ZoneInfo("America/Los_Angeles")
    message = Message.user("x", timestamp=day.replace(hour=hour, minute=30, tzinfo=UTC))

    found = one(nanobot.decode(nanobot.encode(message, zone=zone), zone=zone))

    assert found.timestamp == message.timestamp


def test_a_changed_time_is_written_and_not_the_old_text():
    """The text beside the time is for the same time only."""
    found = from_line(read("nanobot_user.jsonl")).replace(timestamp=NOON.replace(year=2030))

    assert json.loads(to_line(found))["timestamp"] == "2030-02-01T12:00:00"


def test_separators_inside_a_line_do_not_split_it():
    """S4-18: split on `\\n` only (bad input 35)."""
    file = read("nanobot_metadata.jsonl") + read("nanobot_line_separator.jsonl") * 2

    entries = nanobot.decode_file(file, zone=UTC).entries

    assert [message.content for message in entries] == ["one\u2028two\u2029three\x85four"] * 2


def test_characters_are_escaped_on_request_only():
    """A torn write cannot cut a character in two when every byte is ASCII."""
    message = Message.user("Grüße \U0001f600\u2028", id="i", timestamp=NOON)

    assert nanobot.encode(message, zone=UTC, ascii=True) == (
        rb'{"role": "user", "content": "Gr\u00fc\u00dfe \ud83d\ude00\u2028", '
        rb'"timestamp": "2026-02-01T12:00:00", "id": "i"}' + b"\n"
    )
    assert "Grüße \U0001f600\u2028".encode() in to_line(message)


def test_a_line_holds_no_line_end_but_its_own():
    for text in ("a\nb", "a\r\nb", "\n", "\x0b\x0c\x1c\x1d\x1e\x85"):
        line = to_line(Message.user(text, extra={"a\n": "\n"}, id="i\n"))

        assert line.count(b"\n") == 1
        assert line.endswith(b"}\n")
        assert from_line(line).content == text


def test_a_half_surrogate_in_a_file_is_mended_with_a_mark():
    """S4-27: in nanobot it makes the save fail after the file was truncated."""
    message, mark = nanobot.decode(rb'{"role": "user", "content": "x\ud800"}', zone=UTC)

    assert message.content == "x\ufffd"
    assert (mark.what, mark.about) == ("mended", message.id)
    assert to_line(message).decode()


@pytest.mark.parametrize(
    "line",
    [
        b'{"_type": "provider_state", "state": {"a":  1.0, "b": "\\u0041"}}',
        b'{"_type":"provider_state","state":{}}',
        b'{"_type": "future", "role": "user", "content": "x"}',
        b'{"_type": null, "role": "user", "content": "x"}',
        b'{"_type": 7}',
        b'{"role": "developer", "content": "x",  "timestamp": "2026-02-01T12:00:00"}',
        b'{"role": "SYSTEM", "content": "x"}',
        b'{"role": "", "content": "x"}',
    ],
)
def test_an_unknown_record_or_role_is_kept_as_it_is_and_is_no_message(line):
    """S4-25, A4: it survives load → save untouched, and is never shown to a model."""
    (found,) = nanobot.decode(line, zone=UTC)

    assert isinstance(found, UnknownEntry)
    assert found.raw.rstrip(b"\n") == line
    file = nanobot.decode_file(read("nanobot_metadata.jsonl") + line + b"\n", zone=UTC)
    assert file.entries == (found,)


@pytest.mark.parametrize(
    "extra",
    [
        {"_type": "metadata"},
        {"_type": "metadata", "key": "other", "last_consolidated": 99, "metadata": {}},
        {"_type": "provider_state"},
        {"role": "system"},
        {"content": "y"},
        {"id": "other"},
        {"tool_calls": [{"id": "c", "name": "f", "arguments": ""}]},
    ],
    ids=json.dumps,
)
def test_a_message_cannot_pass_for_a_metadata_line_or_for_another_message(extra):
    """Bad input 48: whatever extra holds, the line reads as the message that was written."""
    message = Message.user("x", id="i", timestamp=NOON, extra=extra)
    try:
        line = to_line(message)
    except InvalidInput:
        return

    found = from_line(line)

    assert isinstance(found, Message)
    assert (found.role, found.content, found.id, found.tool_calls) == (Role.USER, "x", "i", ())
    file = nanobot.decode_file(nanobot.encode_metadata(METADATA) + line, zone=UTC)
    assert file.metadata == METADATA
    assert len(file.entries) == 1


def test_words_that_look_like_metadata_are_words():
    """Bad input 48."""
    text = read("nanobot_metadata.jsonl").decode()

    assert from_line(to_line(Message.user(text))).content == text


@pytest.mark.parametrize(
    "name", ["author", "is_error", "model", "prefix", "stop", "synthetic", "id"]
)
@pytest.mark.parametrize("value", [5, [1], {"a": 1}, None, 1.5], ids=json.dumps)
def test_a_field_of_nanobots_that_is_named_like_ours_is_not_lost(name, value):
    """S4-25: another program may use the name for something else; load → save keeps it."""
    line = json.dumps({"role": "user", "content": "x", name: value}).encode()

    found = from_line(line)
    written = json.loads(to_line(found))

    if name != "id":  # whose place on the line is ours
        assert written[name] == value
    assert from_line(to_line(found)).replace(timestamp=NOON, extra={}) == found.replace(
        timestamp=NOON, extra={}
    )


def test_empty_texts_and_absent_ones_stay_apart_on_a_line():
    """What our own fields hold comes back equal."""
    for message in (
        Message.user("", id="i", timestamp=NOON, name="", author="", model="", stop=""),
        Message.user(None, id="i", timestamp=NOON),
        Message(Role.TOOL, "x", tool_call_id="", id="i", timestamp=NOON),
    ):
        found = from_line(to_line(message))

        assert found.replace(extra={}) == message


# --- nanobot: files -------------------------------------------------------------------------


def test_a_file_of_the_first_era_is_read():
    """S4-24, 2026-02-01: no key, no offset, ASCII-escaped."""
    file = nanobot.decode_file(read("nanobot_era_2026_02_01.jsonl"), zone=UTC)

    assert file.metadata == nanobot.Metadata(
        created_at="2026-02-01T11:00:00", updated_at="2026-02-01T12:00:00"
    )
    assert [(m.role.value, m.content) for m in file.entries] == [
        ("user", "Grüße \U0001f600"),
        ("assistant", "Hi there!"),
    ]
    assert json.loads(to_line(file.entries[1]))["timestamp"] == "2026-02-01T12:00:01.500000"


def test_a_file_with_provider_state_is_read_and_the_state_is_kept():
    """S4-24, 2026-07-30: the second line is private, never shown or sent as a message."""
    data = read("nanobot_era_2026_07_30.jsonl")

    file = nanobot.decode_file(data, zone=UTC)

    state, *messages = file.entries
    assert isinstance(state, UnknownEntry)
    assert state.raw.rstrip(b"\n") == data.split(b"\n")[1]
    assert [type(message) for message in messages] == [Message, Message]
    assert file.metadata.last_consolidated == 1


def test_a_file_of_the_go_port_is_read_and_its_times_are_kept():
    """S4-17, A13: compact, keys sorted, times in UTC with `Z`."""
    file = nanobot.decode_file(read("nanobot_go.jsonl"), zone=timezone(timedelta(hours=3)))

    first, second = file.entries
    assert file.metadata.key == "telegram:12345678"
    assert file.metadata.last_consolidated == 1
    assert (first.content, first.timestamp) == ("1 < 2", NOON)
    assert second.extra["tools_used"] == ("web_search",)
    line = nanobot.encode(first, zone=timezone(timedelta(hours=3)))
    assert json.loads(line)["timestamp"] == "2026-02-01T12:00:00Z"


def test_the_seeds_own_example_is_read_with_its_whole_history():
    """S4-12, S4-23: last_consolidated is 10 with two messages; nothing may be hidden."""
    file = nanobot.decode_file(read("nanobot_seed_example.jsonl"), zone=UTC)

    assert file.metadata.last_consolidated == 0
    assert [m.content for m in file.entries] == ["Hello", "Hi there!"]


def test_blank_lines_are_skipped_and_the_last_metadata_counts():
    """S4-19: metadata is recognised wherever it stands."""
    first = nanobot.encode_metadata(METADATA)
    last = nanobot.encode_metadata(METADATA.replace(key="other"))
    user = read("nanobot_user.jsonl")

    file = nanobot.decode_file(b"\n" + first + b"  \n\n" + user + b"\r\n" + last, zone=UTC)

    assert file.metadata.key == "other"
    assert len(file.entries) == 1


def test_a_file_without_metadata_is_read():
    """S4-19: a record without `_type` metadata is a message."""
    file = nanobot.decode_file(read("nanobot_user.jsonl"), zone=UTC)

    assert file.metadata == nanobot.Metadata()
    assert len(file.entries) == 1


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b""])
def test_a_file_may_end_its_lines_in_any_way(ending):
    """Windows writes `\\r\\n`, and a last line may lack its end."""
    data = read("nanobot_user.jsonl").rstrip(b"\n") + ending

    assert len(nanobot.decode_file(data, zone=UTC).entries) == 1


def test_a_line_that_cannot_be_read_is_named():
    """B1: one broken line must not be taken for an empty session; the error says which."""
    good = read("nanobot_metadata.jsonl") + read("nanobot_user.jsonl")

    for bad in (b'{"role": "user", "con', b"\0\0\0", b"[]", b"1", good[:40]):
        with pytest.raises(InvalidInput, match=r"line 3\b"):
            nanobot.decode_file(good + bad + b"\n" + good, zone=UTC)


def test_a_line_of_many_megabytes_is_read():
    """B3: in the Go port a line over 1 MiB loses the session."""
    text = "x" * (2 * 1024 * 1024)
    file = read("nanobot_metadata.jsonl") + to_line(Message.user(text))

    assert nanobot.decode_file(file, zone=UTC).entries[0].content == text


def test_the_empty_file_has_nothing_in_it():
    """Bad input 66, as far as the codec goes."""
    for data in (b"", b"\n", b"\n\n  \n"):
        assert nanobot.decode_file(data, zone=UTC) == (nanobot.Metadata(), ())


def test_a_whole_file_is_written_as_it_was_but_for_our_ids():
    """S4-14, S4-21, S4-25: load → save keeps every line of Python's nanobot."""
    lines = [read(name) for name in GOLDENS if name.startswith("nanobot")]
    data = read("nanobot_metadata_titled.jsonl") + b"".join(lines)

    file = nanobot.decode_file(data, zone=UTC)

    assert nanobot.encode_metadata(file.metadata) + b"".join(map(to_line, file.entries)) == data


# --- all of them ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decode", "data"),
    [
        (kernel.decode, b'{"role":"user","content":"x","content":"y"}'),
        (
            lango.decode,
            b'{"role":"user","role":"system","content":"","timestamp":"2026-02-01T12:00:00Z"}',
        ),
        (jaato.decode, b'{"role":"user","parts":[{"type":"text","text":"a","text":"b"}]}'),
        (shepherd.decode, b'{"messages":[{"role":"user","content":"x","content":"y"}]}'),
        (nanobot.decode, b'{"role": "user", "content": "x", "content": "y"}'),
        (lango.decode_session, b'{"key":"a","key":"b"}'),
    ],
    ids=["kernel", "lango", "jaato", "shepherd", "nanobot", "lango session"],
)
def test_every_reader_refuses_duplicate_keys(decode, data):
    """Bad input 39: all readers of foreign JSON go by the same rules."""
    with pytest.raises(InvalidInput):
        decode(data)


COLLIDING = {
    "lango": (lango.encode, lango.decode, ["role", "content", "timestamp", "toolCalls", "author"]),
    "jaato": (jaato.encode, jaato.decode, ["role", "parts", "message_id"]),
    "nanobot": (
        to_line,
        partial(nanobot.decode, zone=UTC),
        ["_type", "role", "content", "tool_calls", "tool_call_id", "name", "author", "id"],
    ),
}
COLLIDING_CALLS = {
    "lango": ["id", "name", "input", "output", "thought", "thoughtSignature"],
    "jaato": ["type", "id", "name", "args", "arguments", "signature"],
    "nanobot": ["id", "type", "function", "output", "is_error", "signature", "name", "arguments"],
}


def written_and_read(shape, message):
    """What comes back of a message; None when the writer refuses it with a typed error."""
    encode, decode, _ = COLLIDING[shape]
    try:
        data = encode(message)
    except InvalidInput:
        return None
    return one(decode(data))


@pytest.mark.parametrize("value", [None, "other", 7, [], {}], ids=json.dumps)
@pytest.mark.parametrize(
    ("shape", "name"), [(shape, name) for shape in COLLIDING for name in COLLIDING[shape][2]]
)
def test_an_extra_field_never_overrides_a_field_of_the_message(shape, name, value):
    """Bad input 48: what rides in extra cannot change role, words, calls, author or id."""
    call = ToolCall(id="c", name="f", arguments="{}")
    message = Message(
        Role.MODEL, "x", tool_calls=(call,), author="a", id="i", timestamp=NOON, extra={name: value}
    )

    found = written_and_read(shape, message)

    if found is not None:
        assert isinstance(found, Message)
        assert (found.role, found.text) == (message.role, message.text)
        assert [(c.id, c.name, c.arguments) for c in found.tool_calls] == [("c", "f", "{}")]
        assert found.author == (None if shape == "jaato" else "a")
        assert found.id == "i" or shape == "lango"


@pytest.mark.parametrize("value", [None, "other", 7, [], {}], ids=json.dumps)
@pytest.mark.parametrize(
    ("shape", "name"), [(shape, name) for shape in COLLIDING for name in COLLIDING_CALLS[shape]]
)
def test_an_extra_field_never_overrides_a_field_of_a_call(shape, name, value):
    """The same for what rides beside a call; `thought` is lango's own name for an extra field."""
    call = ToolCall(id="c", name="f", arguments="{}", signature="s", extra={name: value})
    message = Message.assistant("x", [call], id="i", timestamp=NOON)

    found = written_and_read(shape, message)

    if found is not None:
        assert [(c.id, c.name, c.arguments, c.output, c.signature) for c in found.tool_calls] == [
            ("c", "f", "{}", None, "s")
        ]


@pytest.mark.parametrize("shape", ["plain", "nanobot", "kernel", "jaato"])
@pytest.mark.parametrize("name", ["type", "text"])
def test_an_extra_field_never_overrides_a_field_of_a_part(shape, name):
    """And for what rides beside a part."""
    encode, decode = {
        "plain": (codec.plain, codec.read_plain),
        "kernel": (kernel.encode, kernel.decode),
        **{other: COLLIDING[other][:2] for other in ("nanobot", "jaato")},
    }[shape]
    message = Message.user([Text("x", extra={name: "other"})], id="i", timestamp=NOON)
    try:
        data = encode(message)
    except InvalidInput:
        return

    (part,) = one(decode(data)).content

    assert isinstance(part, Text)
    assert part.text == "x"


def test_one_message_goes_through_every_shape():
    """A2, S0-2, S2-118: one type; role, words and calls are the same in each shape."""
    message = Message.assistant(
        "Let me look.",
        [ToolCall(id="c", name="f", arguments='{"a":1}')],
        author="helper",
        timestamp=NOON,
    )

    for encode, decode in [
        (codec.plain, codec.read_plain),
        (kernel.encode, kernel.decode),
        (lango.encode, lango.decode),
        (jaato.encode, jaato.decode),
        (to_line, partial(nanobot.decode, zone=UTC)),
    ]:
        found = one(decode(encode(message)))

        assert found.role.canonical is Role.ASSISTANT
        assert found.text == "Let me look."
        assert found.tool_calls == message.tool_calls


def test_a_line_that_is_too_large_is_named():
    """S4-26: who has to mend a file is told which line it is."""
    long = b'{"role": "user", "content": "%b"}\n' % (b"x" * 300)

    with pytest.raises(TooLarge, match="line 2"):
        nanobot.decode_file(
            read("nanobot_metadata.jsonl") + long, limits=codec.Limits(bytes_max=300)
        )


def test_metadata_that_another_program_could_not_hold_is_refused():
    """S1-29: lango's metadata maps text to text; S4-22: nanobot's counter counts messages."""
    with pytest.raises(InvalidInput, match=r"metadata\.n"):
        lango.Session(key="k", metadata={"n": 1}, created_at=NOON, updated_at=NOON)
    with pytest.raises(InvalidInput, match="last_consolidated"):
        nanobot.Metadata(last_consolidated=-1)


def test_an_extra_that_is_called_extra_comes_back_as_it_was():
    """What a caller keeps may have any name, also the one under which we put what collides."""
    for extra in ({"extra": {"role": 1}}, {"extra": {"a": 1}}, {"role": 0, "extra": 5}):
        message = Message.user("x", id="i", timestamp=NOON, extra=extra)

        found = one(nanobot.decode(to_line(message), zone=UTC))

        assert {k: v for k, v in found.extra.items() if k != "timestamp"} == message.extra
        assert found.role is Role.USER


def test_a_call_that_is_no_function_keeps_its_type():
    """S0-27: other types of calls exist, and are not passed off as functions."""
    raw = (
        b'{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"custom","name":"f"}]}'
    )

    (call,) = one(codec.read_plain(raw)).tool_calls

    assert (call.name, call.extra) == ("f", {"type": "custom"})


def test_a_picture_whose_data_cannot_be_rebuilt_is_kept_as_it_is():
    """S0-32: not base64, base64 in another spelling, and no data at all."""
    for url in ("data:image/png;base64,@", "data:image/png;base64,QQ", "data:image/png", "data:,x"):
        raw = {"type": "image_url", "image_url": {"url": url}}
        data = json.dumps({"role": "user", "content": [raw]})

        (part,) = one(codec.read_plain(data)).content

        assert part == Unknown(raw)


def test_results_without_words_are_what_shepherd_shows():
    """S3-42: a message that lists outputs says them."""
    calls = [ToolCall(id=i, name="f", arguments="", output=f"out {i}") for i in ("1", "2")]

    data = shepherd.encode([Message(Role.TOOL, None, tool_calls=calls)])

    assert json.loads(data)["messages"] == [{"role": "tool", "content": "out 1\nout 2"}]


def test_a_history_that_is_no_list_is_no_session_of_lango():
    """S1-29: history is a list of messages."""
    with pytest.raises(InvalidInput, match="history"):
        lango.decode_session(b'{"key":"k","history":{"a":1},"createdAt":"2026-02-01T12:00:00Z"}')


def test_the_ends_of_the_calendar_are_written_with_their_zone():
    """S4-16, bad input 54: where there is no local time, the zone says which time it is."""
    west = timezone(timedelta(hours=-5))
    first = Message.user("x", timestamp=datetime(1, 1, 1, tzinfo=UTC))

    line = nanobot.encode(first, zone=west)

    assert json.loads(line)["timestamp"] == "0001-01-01T00:00:00+00:00"
    assert one(nanobot.decode(line, zone=west)).timestamp == first.timestamp
