"""Calls that are written as words, and arguments that lost their types on the way."""

import json
import time

import pytest

from holdfast import Tool
from holdfast.messages import Stop
from holdfast.parts import CallRef, Text
from holdfast.providers.base import Callbacks
from holdfast.providers.claude_cli.answer import AnswerWithCalls
from holdfast.providers.claude_cli.calls import Splitter, Written, call_text, instructions
from holdfast.providers.claude_cli.typed import typed

LOOK = '<tool_call>\n{"name": "look", "arguments": {"at": "the sky"}}\n</tool_call>'
SAID = Written("look", '{"at": "the sky"}')


def split(*pieces):
    """What comes of the pieces; words that follow each other put together."""
    splitter, found = Splitter(), []
    for piece in pieces:
        found += splitter.feed(piece)
    found += splitter.finish()
    joined = []
    for each in found:
        if isinstance(each, str) and joined and isinstance(joined[-1], str):
            joined[-1] += each
        else:
            joined.append(each)
    return joined


WRITTEN = {
    "words alone": ("It rains. ", ["It rains. "]),
    "a call alone": (LOOK, [SAID]),
    "words, then a call": (f"Let me see.\n\n{LOOK}", ["Let me see.", SAID]),
    "two calls": (f"{LOOK}\n\n{LOOK}\n", [SAID, SAID]),
    "words behind a call": (f"{LOOK}\n\nThat was it.", [SAID, "That was it."]),
    "a list of calls": (
        '<tool_call>[{"name": "a", "arguments": {}}, {"name": "b", "arguments": {}}]</tool_call>',
        [Written("a", "{}"), Written("b", "{}")],
    ),
    "tags in the arguments": (
        '<tool_call>{"name": "put", "arguments": {"text": "</tool_call> <tool_call>"}}</tool_call>',
        [Written("put", '{"text": "</tool_call> <tool_call>"}')],
    ),
    "an escaped quote": (
        '<tool_call>{"name": "say", "arguments": {"text": "\\"</tool_call>\\""}}</tool_call>',
        [Written("say", '{"text": "\\"</tool_call>\\""}')],
    ),
    "arguments that do not parse": (
        '<tool_call>{"name": "look", "arguments": {"at": }}</tool_call>',
        [Written("look", '{"at": }')],
    ),
    "a call that was cut off": (
        'See: <tool_call>{"name": "look", "arguments": {"at": "the s',
        ["See:", Written("look", '{"at": "the s')],
    ),
    "no call between the tags": (
        "Write <tool_call>your call</tool_call> so.",
        ["Write", "<tool_call>your call</tool_call>so."],
    ),
    "a tag that is none": ("a <tool_calls> and a < b <tool", ["a <tool_calls> and a < b <tool"]),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_words_and_calls_are_taken_apart(case):
    written, expected = WRITTEN[case]
    joined = [each for each in expected if isinstance(each, Written)]

    found = split(written)

    assert [each for each in found if isinstance(each, Written)] == joined
    words = "".join(each for each in found if isinstance(each, str))
    assert words == "".join(each for each in expected if isinstance(each, str))


@pytest.mark.parametrize("case", WRITTEN)
def test_it_does_not_matter_where_the_text_is_cut(case):
    """At every place, and into single characters."""
    written, _ = WRITTEN[case]
    whole = split(written)

    assert all(split(written[:at], written[at:]) == whole for at in range(len(written)))
    assert split(*written) == whole


def test_words_are_given_as_they_come():
    """Nothing waits but what may become a call, and the space before it."""
    splitter = Splitter()

    assert list(splitter.feed("It is ")) == ["It is"]
    assert list(splitter.feed("1 <")) == [" 1"]
    assert list(splitter.feed(" 2")) == [" < 2"]
    assert list(splitter.feed("\n<tool")) == []
    assert list(splitter.feed('_call>{"name": "a", "arguments": {}}</tool')) == []
    assert list(splitter.feed("_call>")) == [Written("a", "{}")]


def test_a_call_that_holds_a_file_is_put_together_in_time():
    """Half a mebibyte in small pieces, with tags in it: not again and again from its beginning."""
    text = ("line </tool_call> x\n" * 25_000)[: 512 * 1024]
    written = call_text("write", json.dumps({"text": text}))
    started = time.process_time()

    (call,) = split(*(written[at : at + 4096] for at in range(0, len(written), 4096)))
    plain = call_text("write", json.dumps({"text": "x" * 512 * 1024}))
    (other,) = split(*(plain[at : at + 8] for at in range(0, len(plain), 8)))

    assert json.loads(call.arguments) == {"text": text} and len(other.arguments) > 512 * 1024
    assert time.process_time() - started < 3


def test_an_earlier_call_is_written_as_the_model_writes_it():
    """S2-108: what a model is shown of its own calls is the form that it is told to use."""
    assert split(call_text("look", '{"at": "the sky"}')) == [SAID]
    assert split(call_text("look", "{broken")) == [Written("look", "{broken")]


def test_the_tools_are_told_in_words_with_their_schemas():
    """S2-108: the system prompt describes the tools; sorted, so that a cache can read it again."""
    look = Tool("look", "Look at something.", {"type": "object", "properties": {"at": {}}})
    add = Tool("add", "Add.", {"type": "object", "properties": {}})

    told = instructions([look, add])

    assert told == instructions([add, look])
    lines = [json.loads(line) for line in told.splitlines()[-2:]]
    assert [line["name"] for line in lines] == ["add", "look"]
    assert lines[1] == {
        "name": "look",
        "description": "Look at something.",
        "parameters": {"type": "object", "properties": {"at": {}}},
    }


# In an answer


LOOKS = (Tool("look", "", {"type": "object", "properties": {}}),)


def answered(*pieces, tools=LOOKS):
    heard = []
    answer = AnswerWithCalls("claude-cli:x", tools, callbacks=Callbacks(heard.append, None, None))
    for piece in pieces:
        answer.add_text(piece)
    answer.stopped(Stop.STOP)
    return answer.response(), heard


def test_calls_in_the_words_become_calls():
    response, heard = answered("Let me ", "see.\n\n", LOOK[:20], LOOK[20:], "\n\nDone.")

    assert [(call.name, call.arguments) for call in response.calls] == [("look", SAID.arguments)]
    (call,) = response.calls
    assert call.id
    assert response.message.content == (Text("Let me see."), CallRef(call.id), Text("Done."))
    assert heard == ["Let me", " see.", "Done."]
    assert response.stop == Stop.TOOL_USE


def test_without_tools_words_are_words():
    response, heard = answered(LOOK, tools=())

    assert response.text == LOOK and response.calls == () and heard == [LOOK]
    assert response.stop == Stop.STOP


def test_a_call_that_is_not_complete_is_no_part_of_a_partial_answer():
    answer = AnswerWithCalls("claude-cli:x", [Tool("look")])
    answer.add_text("See. " + LOOK[:-20])

    assert answer.partial().message.content == "See."
    assert answer.partial().calls == ()


def test_words_that_were_held_back_stand_before_what_follows_them():
    """A block that ends in the beginning of a tag is words."""
    answer = AnswerWithCalls("claude-cli:x", [Tool("look")])
    answer.add_text("a <")
    answer.begin_block()
    answer.add_text("b")

    assert answer.response().text == "a <b"


def test_a_call_may_go_on_in_the_next_block():
    """The program goes on by itself where a limit has cut the model off."""
    answer = AnswerWithCalls("claude-cli:x", [Tool("look")])
    answer.begin_block()
    answer.add_text(LOOK[:30])
    answer.end_block()
    answer.begin_block()
    answer.add_text(LOOK[30:])

    (call,) = answer.response().calls
    assert (call.name, call.arguments) == SAID


# Types


SCHEMA = {
    "type": "object",
    "properties": {
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "deep": {"type": "boolean"},
        "code": {"type": "string"},
        "either": {"type": ["string", "integer"]},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "level": {"enum": [1, 2]},
        "word": {"enum": ["1", "2"]},
        "tags": {"type": "array", "items": {"type": "integer"}},
        "place": {"$ref": "#/$defs/Place"},
        "anything": {},
    },
    "additionalProperties": {"type": "integer"},
    "$defs": {"Place": {"type": "object", "properties": {"zip": {"type": "integer"}}}},
}
RESTORED = [
    ({"count": "5"}, {"count": 5}),
    ({"share": "5"}, {"share": 5}),
    ({"share": "0.5"}, {"share": 0.5}),
    ({"deep": "true"}, {"deep": True}),
    ({"deep": "False"}, {"deep": False}),
    ({"maybe": "null"}, {"maybe": None}),
    ({"maybe": "3"}, {"maybe": 3}),
    ({"level": "2"}, {"level": 2}),
    ({"tags": "[1, 2]"}, {"tags": [1, 2]}),
    ({"tags": ["1", 2]}, {"tags": [1, 2]}),
    ({"place": '{"zip": "10100"}'}, {"place": {"zip": 10100}}),
    ({"place": {"zip": "10100"}}, {"place": {"zip": 10100}}),
    ({"other": "7"}, {"other": 7}),
]
KEPT = [
    {"code": "123"},
    {"code": "true"},
    {"either": "123"},
    {"word": "1"},
    {"anything": "123"},
    {"count": "many"},
    {"count": "5.5"},
    {"deep": "yes"},
    {"share": "NaN"},
    {"share": "1e999"},
    {"count": 5, "tags": [1]},
    {"count": {"x": "1"}},
]


@pytest.mark.parametrize(("given", "wanted"), RESTORED, ids=lambda value: json.dumps(value))
def test_a_text_becomes_what_the_schema_wants(given, wanted):
    """S2-110: the program hands on numbers and the like as texts; the schema restores them."""
    assert json.loads(typed(json.dumps(given), SCHEMA)) == wanted


@pytest.mark.parametrize("word", ["anyOf", "oneOf", "allOf"])
@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"near": "5", "name": "5"}, {"near": 5, "name": "5"}),
        ('{"near": "5"}', {"near": 5}),
        ([{"near": "5"}], [{"near": 5}]),
        (["5"], ["5"]),
        ("null", "null"),
    ],
)
def test_what_a_field_holds_may_be_one_of_several_schemas(word, given, wanted):
    """S2-110: as a field of a typed function that is optional, or described beside its type."""
    place = {"type": "object", "properties": {"near": {"type": "integer"}}}
    place["properties"]["name"] = {"type": "string"}
    ways = [{"$ref": "#/$defs/Place"}, {"type": "array", "items": {"$ref": "#/$defs/Place"}}]
    field = {word: ways, "description": "where"}
    schema = {"type": "object", "properties": {"at": field}, "$defs": {"Place": place}}

    assert json.loads(typed(json.dumps({"at": given}), schema)) == {"at": wanted}


@pytest.mark.parametrize("given", KEPT, ids=lambda value: json.dumps(value))
def test_what_fits_the_schema_stays_to_the_letter(given):
    """S2-110: the real string "123" stays one where a string is wanted, or may be."""
    written = json.dumps(given, indent=1)

    assert typed(written, SCHEMA) == written


@pytest.mark.parametrize("written", ["", "{", "[1]", '"5"', "{" * 5000])
def test_what_is_no_object_is_left_alone(written):
    assert typed(written, SCHEMA) == written


def test_a_number_beyond_all_range_is_not_lost_beside_one_that_is_restored():
    written = '{"count": "5", "share": 1e999}'

    assert typed(written, SCHEMA) == written


def test_a_schema_that_refers_to_itself_has_an_end():
    schema = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}

    assert typed('{"a": "1"}', schema) == '{"a": "1"}'


def test_arguments_of_both_kinds_of_calls_are_restored():
    """S2-110: in words, and in blocks of the vendor's."""
    tool = Tool("look", "", {"type": "object", "properties": {"n": {"type": "integer"}}})
    answer = AnswerWithCalls("claude-cli:x", [tool])
    answer.add_text('<tool_call>{"name": "look", "arguments": {"n": "1"}}</tool_call>')
    answer.begin_call(0, name="look")
    answer.end_call(0, arguments='{"n": "2"}')

    assert [json.loads(call.arguments) for call in answer.response().calls] == [{"n": 1}, {"n": 2}]
