"""Tool calls by constrained JSON: asked for, and read back, whatever the schemas and texts are."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Tool, text, tool
from holdfast.providers.local.calls import (
    answer_text,
    call_text,
    instructions,
    response_format,
    shots,
)
from holdfast.providers.local.grammar import portable
from holdfast.providers.local.replies import Reader, read

SCALARS = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(max_size=5)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner)
)
WORDS = st.sampled_from(
    ["$ref", "$defs", "type", "enum", "const", "properties", "required", "items", "pattern"]
    + ["anyOf", "oneOf", "allOf", "minItems", "maxItems", "minLength", "maxLength"]
    + ["minimum", "maximum", "exclusiveMinimum", "additionalProperties"]
)
POINTERS = st.sampled_from(
    ["#", "#/", "#/$defs/a", "#/properties/a", "#/anyOf/0", "#/anyOf/9", "https://x/y", "", "a", 5]
)
TYPES = st.sampled_from(["string", "integer", "array", "object", "null", "odd"])
SCHEMAS = st.recursive(
    SCALARS
    | st.builds(lambda to: {"$ref": to}, POINTERS)
    | st.builds(lambda t: {"type": t}, TYPES),
    lambda inner: (
        st.dictionaries(WORDS | st.sampled_from("ab"), inner, max_size=4)
        | st.lists(inner, max_size=3)
        | st.builds(lambda a: {"properties": {"a": a}}, inner)
        | st.builds(lambda a: {"$defs": {"a": a}, "anyOf": [a, {"$ref": "#/$defs/a"}]}, inner)
    ),
    max_leaves=12,
)
SURROGATES = st.text(st.characters(), max_size=30)


@tool
def weather(city: str, unit: str = "c") -> str:
    """The weather in a city, right now.

    Args:
        city: Its name.
    """


@tool
def add(a: int, b: float) -> float:
    """Add two numbers."""


def schema_of(*tools):
    return response_format(tools)["json_schema"]["schema"]


def pieces_of(written, cuts):
    edges = sorted({0, len(written), *(cut % (len(written) + 1) for cut in cuts)})
    return [written[start:end] for start, end in pairwise(edges)]


def in_pieces(pieces):
    reader = Reader()
    shown = "".join(reader.feed(piece) for piece in pieces)
    said = reader.finish()
    assert shown + said.rest == said.text
    return said


# ---- asking ----


def test_an_answer_or_a_call_of_each_tool_is_asked_for():
    answer, first, second = schema_of(weather, add)["oneOf"]

    assert list(answer["properties"]) == ["answer"]
    assert first["properties"]["name"] == {"const": "weather"}
    assert first["properties"]["arguments"]["required"] == ["city"]
    assert second["properties"]["arguments"]["properties"]["a"] == {"type": "integer"}
    for way in (answer, first, second):
        assert way["required"] == list(way["properties"])
        assert way["additionalProperties"] is False


def test_an_answer_may_have_a_schema_of_its_own():
    asked = response_format([add], {"type": "object", "properties": {"n": {"type": "integer"}}})
    answer = asked["json_schema"]["schema"]["oneOf"][0]["properties"]["answer"]

    assert answer["properties"] == {"n": {"type": "integer"}}


def test_the_tools_are_told_in_a_line_each():
    """S3-37: each parameter by its name and type."""
    assert instructions([weather, add]).splitlines()[1:] == [
        "- weather(city: string, unit: string): The weather in a city, right now.",
        "- add(a: integer, b: number): Add two numbers.",
    ]


def test_the_examples_are_what_the_grammar_allows():
    said, first, second = [read(written) for _, written in shots([weather, add])]

    assert said.text and not said.calls
    assert first.calls == (("weather", '{"city": "some city"}'),)
    assert second.calls == (("add", '{"a": 5, "b": 5}'),)
    assert shots([]) == ()


def test_an_example_has_a_value_that_the_schema_names():
    properties = {
        "a": {"enum": ["x", "y"]},
        "b": {"default": [1]},
        "c": {"examples": ["z"]},
        "d": {},
        "e": True,
    }
    odd = Tool(
        "odd", "", {"type": "object", "properties": properties, "required": [*"abcde", "none"]}
    )
    _, (asked, written) = shots([odd])

    assert asked == "Use odd."
    assert json.loads(written)["arguments"] == {
        "a": "x",
        "b": [1],
        "c": "z",
        "d": "some d",
        "e": "some e",
    }


# ---- schemas ----


@pytest.mark.parametrize(
    ("schema", "kept"),
    [
        (True, {}),
        ({}, {}),
        ({"type": "odd"}, {}),
        ({"type": []}, {}),
        ({"type": ["string", "null"]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"type": "string", "pattern": "a(?=b)", "title": "t"}, {"type": "string"}),
        ({"type": "string", "minLength": 5, "maxLength": 2}, {"type": "string"}),
        ({"type": "string", "maxLength": 9}, {"type": "string", "maxLength": 9}),
        ({"type": "string", "maxLength": 10**9}, {"type": "string"}),
        ({"type": "string", "format": "date"}, {"type": "string", "format": "date"}),
        ({"type": "string", "format": "email"}, {"type": "string"}),
        ({"type": "integer", "exclusiveMinimum": 3}, {"type": "integer", "minimum": 4}),
        ({"type": "integer", "minimum": 3, "maximum": 2}, {"type": "integer"}),
        ({"type": "integer", "minimum": 0.5}, {"type": "integer"}),
        ({"type": "array", "minItems": 3, "maxItems": 2}, {"type": "array", "items": {}}),
        ({"items": {"type": "null"}}, {"type": "array", "items": {"type": "null"}}),
        ({"enum": []}, {}),
        ({"enum": ["a", 1, None]}, {"enum": ["a", 1, None]}),
        ({"const": {"a": [1]}}, {"const": {"a": [1]}}),
        ({"oneOf": []}, {}),
        ({"anyOf": [{"type": "null"}, {}]}, {}),
        ({"not": {"type": "string"}}, {}),
        ({"$ref": "https://example.com/schema"}, {}),
        ({"$ref": "#/nowhere"}, {}),
        ({"$ref": "#"}, {}),
        ({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"enum": ["x"]}}}, {"enum": ["x"]}),
        (
            {"type": "object", "additionalProperties": {"type": "null"}},
            {"type": "object", "additionalProperties": {"type": "null"}},
        ),
    ],
)
def test_of_a_schema_this_is_kept(schema, kept):
    assert portable(schema) == kept


def test_properties_are_kept_with_those_that_are_required():
    given_schema = {
        "properties": {"a": {"type": "null"}, "b": False, "c": True},
        "required": ["c", "b", "none"],
    }

    assert portable(given_schema) == {
        "type": "object",
        "properties": {"a": {"type": "null"}, "c": {}},
        "required": ["c"],
        "additionalProperties": False,
    }


def test_parts_that_are_all_objects_become_one():
    one, two = {"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}
    merged = portable({"allOf": [one, two, True]})

    assert list(merged["properties"]) == ["a", "b"]
    assert merged["required"] == ["a"]


def test_a_tree_keeps_its_references_and_two_tools_do_not_mix_theirs():
    def tree(kind):
        node = {"properties": {"v": {"type": kind}, "next": {"$ref": "#/$defs/node~1x"}}}
        return {
            "type": "object",
            "properties": {"root": {"$ref": "#/$defs/node~1x"}},
            "$defs": {"node/x": node},
        }

    schema = schema_of(Tool("a", "", tree("string")), Tool("b", "", tree("integer")))
    kinds = []
    for way in schema["oneOf"][1:]:
        name = way["properties"]["arguments"]["properties"]["root"]["$ref"].rpartition("/")[2]
        node = schema["$defs"][name]
        assert node["properties"]["next"] == {"$ref": f"#/$defs/{name}"}
        kinds.append(node["properties"]["v"]["type"])

    assert kinds == ["string", "integer"]


def test_references_that_lead_on_and_on_end_somewhere():
    many = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(5_000)}
    schema = portable({"$ref": "#/$defs/d0", "$defs": many})

    assert len(json.dumps(schema)) < 1_000_000


def test_a_schema_that_is_nested_too_deeply_is_anything():
    schema: dict = {}
    for _ in range(100_000):
        schema = {"items": schema}

    assert portable(schema) == {}


@given(SCHEMAS)
def test_any_schema_gives_one_that_the_runtime_takes(schema):
    """Only known words, only references that lead to something, no bounds without room."""
    found = portable(schema)
    definitions = found.get("$defs", {})

    def check(node, is_behind):
        assert isinstance(node, dict)
        if "$ref" in node:
            assert is_behind  # or a definition might begin with itself
            assert node["$ref"].removeprefix("#/$defs/") in definitions
        for low, high in (("minItems", "maxItems"), ("minLength", "maxLength")):
            assert node.get(low, 0) <= node.get(high, 1_000)
        assert set(node.get("required", ())) <= set(node.get("properties", ()))
        for part in node.get("anyOf", ()):
            check(part, False)
        for part in node.get("properties", {}).values():
            check(part, True)
        for part in (node.get(word) for word in ("items", "additionalProperties")):
            if not isinstance(part, bool | None):
                check(part, True)

    json.dumps(found)
    check({key: value for key, value in found.items() if key != "$defs"}, False)
    for node in definitions.values():
        check(node, False)


# ---- reading ----


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('{"answer": "Hi."}', "Hi."),
        (' {\n "answer" : "Hi."\n}\n', "Hi."),
        ('{"answer": "a\\n\\"b\\" \\u00e9 \\ud83d\\ude00 \\/"}', 'a\n"b" é 😀 /'),
        ('{"answer": "\\ud83d"}', "\ufffd"),
        ('{"answer": "\\ude00\\ud83d x"}', "\ufffd\ufffd x"),
        ('{"answer": ""}', ""),
        # cut off
        ('{"answer": "Hi th', "Hi th"),
        ('{"answer": "Hi \\u00', "Hi \ufffd"),
        ('{"answer": "Hi \\', "Hi \ufffd"),
        ('{"answer": "Hi \\ud83d', "Hi \ufffd"),
        ('{"answer": "Hi"', "Hi"),
        ('{"answer', '{"answer'),
        ('{"name": "add", "arguments": {"a"', '{"name": "add", "arguments": {"a"'),
        # in another form
        ("", ""),
        ("Hello.", "Hello."),
        ("[]", "[]"),
        ("5", "5"),
        ('{"answer": {"n": 1.0}}', '{"n": 1.0}'),
        ('{"answer": [1, "x"] }', '[1, "x"]'),
        ('{"answer": "x", "name": 1}', 'x, "name": 1}'),
        ('{"answer": "x"} and more', "x} and more"),
        ('{"answer": "bad \\x \\u12g4"}', "bad \\x \\u12g4"),
        ('{"name": "", "arguments": {}}', '{"name": "", "arguments": {}}'),
        ('{"name": 1, "arguments": {}}', '{"name": 1, "arguments": {}}'),
        ('{"name": "add"}', '{"name": "add"}'),
        ('[{"name": "add", "arguments": {}}, 1]', '[{"name": "add", "arguments": {}}, 1]'),
        ('{"ans wer": "x"}', '{"ans wer": "x"}'),
        ("\ud83d", "\ufffd"),
    ],
)
def test_these_words_are_said(written, said):
    """Whole, and character by character."""
    for found in (read(written), in_pieces(written)):
        assert found.text == said
        assert found.calls == ()


@pytest.mark.parametrize(
    ("written", "calls"),
    [
        ('{"name": "add", "arguments": {"a": 1.0, "b":2}}', [("add", '{"a": 1.0, "b":2}')]),
        ('\n{ "arguments" : {} ,"name":"x" }', [("x", "{}")]),
        ('[{"name": "x", "arguments": [1 ,2]}, {"name": "y", "arguments": {}}]',)
        + ([("x", "[1 ,2]"), ("y", "{}")],),
        ('{"name": "\\u00e9", "arguments": null}', [("é", "null")]),
        ('{"name": "x", "arguments": "{\\"a\\": "}', [("x", '{"a": ')]),
    ],
)
def test_these_calls_are_made(written, calls):
    for found in (read(written), in_pieces(written)):
        assert found.text == ""
        assert list(found.calls) == calls


@given(SURROGATES, st.booleans(), st.lists(st.integers(0, 500)))
def test_an_answer_is_read_back_however_it_is_cut(words, is_ascii, cuts):
    written = json.dumps({"answer": words}, ensure_ascii=is_ascii)

    assert in_pieces(pieces_of(written, cuts)) == (text.mend(words)[0], (), "")


@given(st.text(max_size=40))
def test_the_words_of_an_answer_are_shown_at_once(words):
    """Nothing is held back but half of a character."""
    reader = Reader()
    shown = reader.feed(answer_text(words).removesuffix('"}'))

    assert shown == words


@given(st.text(min_size=1, max_size=10), JSON, st.lists(st.integers(0, 500)))
def test_a_call_is_read_back_however_it_is_cut(name, arguments, cuts):
    written = json.dumps(arguments, indent=1)
    found = in_pieces(pieces_of(call_text(name, written), cuts))

    assert found == ("", ((name, written),), "")


@given(st.text(max_size=30))
def test_arguments_that_do_not_parse_are_kept(arguments):
    assert read(call_text("x", arguments)).calls == (("x", arguments),)


@given(st.text(st.sampled_from('{}[]":,\\ answerunm1\n\ud83d\ude00'), max_size=40), st.data())
def test_any_text_is_read_and_its_cuts_do_not_matter(written, data):
    """Nothing is raised, and what comes out is text that can be kept."""
    written = data.draw(st.sampled_from(["", '{"answer":"', '{"name":"x","arguments":'])) + written
    found = in_pieces(pieces_of(written, data.draw(st.lists(st.integers(0, 60)))))

    assert (found.text, found.calls) == read(written)[:2]
    text.check(found.text + "".join(map("".join, found.calls)), "it")


def test_json_that_is_nested_too_deeply_is_text():
    written = "[" * 200_000

    assert read(written).text == written
