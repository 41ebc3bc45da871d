"""Messages in parts, as jaato serialises them, without its losses."""

import json

import pytest

from holdfast import codec
from holdfast.codec import jaato
from holdfast.errors import InvalidInput
from holdfast.messages import Message, Role, ToolCall
from holdfast.parts import CallRef, Text
from shapes import ID, one, read


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
