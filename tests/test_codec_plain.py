"""Plain JSON: what a model or another program reads of a message, and reading theirs."""

import base64
import json
from pathlib import Path

import pytest

from holdfast import codec
from holdfast.entries import Mark
from holdfast.errors import InvalidInput
from holdfast.messages import Message, Role, ToolCall
from holdfast.parts import CallRef, Image, Text, Thinking, Unknown

GOLDEN = Path(__file__).parent / "golden" / "codec"


def read(document):
    """The one message in a document, which is given as text, bytes or a Python value."""
    if not isinstance(document, (str, bytes)):
        document = json.dumps(document)
    (message,) = codec.read_plain(document)
    return message


def said(**fields):
    return {"role": "user", "content": "x", **fields}


def asked(**call):
    """The tool call as it is read from an assistant's message that holds just this one."""
    (found,) = read({"role": "assistant", "content": None, "tool_calls": [call]}).tool_calls
    return found


def same(found, expected):
    """Equal in everything but id and time, which plain JSON does not carry."""
    return found.replace(id="i", timestamp=expected.timestamp) == expected.replace(id="i")


GOLDENS = {
    "plain_text.json": Message.user("Hello"),
    "plain_nothing_said.json": Message.assistant(),
    "plain_calls.json": Message.assistant(
        "Let me see.",
        [
            ToolCall(id="call_1", name="weather", arguments='{"city": "Zürich"}'),
            ToolCall(id="call_2", name="time", arguments='{"zone": '),
        ],
        author="helper",
    ),
    "plain_result.json": Message.tool("12 °C", "call_1", name="weather"),
    "plain_legacy_result.json": Message(
        Role.FUNCTION,
        tool_calls=(ToolCall(id="call_1", name="weather", arguments="", output='{"t":12}'),),
        name="weather",
    ),
    "plain_parts.json": Message.user(
        [
            Text("See <b> & \u2028:"),
            Image(url="https://example.com/a.png"),
            Image(data=b"\0\1\2", media_type="image/png"),
            Unknown({"type": "hologram", "depth": 3}),
        ],
        name="ada",
    ),
}


@pytest.mark.parametrize("name", GOLDENS)
def test_a_message_is_written_as_these_very_bytes(name):
    """Plain JSON is byte-stable from release to release (S0-7, S0-8, S1-8, S1-22)."""
    assert codec.plain(GOLDENS[name]) == (GOLDEN / name).read_bytes()


@pytest.mark.parametrize("name", GOLDENS)
def test_these_bytes_are_read_as_this_message(name):
    """And what was read is written as the same bytes again (S0-24, S1-26)."""
    data = (GOLDEN / name).read_bytes()

    found = read(data)

    assert same(found, GOLDENS[name])
    assert codec.plain(found) == data


# --- writing --------------------------------------------------------------------------------


@pytest.mark.parametrize("role", Role)
def test_a_message_without_tool_fields_is_exactly_role_and_content(role):
    """S0-7, S0-8, S0-9, S1-8: the role as its text, and nothing that is empty."""
    message = Message(role, "x", id="m", model="m", stop="s", extra={"a": 1}, is_error=True)

    assert codec.plain(message) == b'{"role":"%b","content":"x"}' % role.value.encode()


def test_content_is_null_when_nothing_was_said():
    """S0-26: role and content are always there."""
    call = ToolCall(id="c", name="f", arguments="{}")

    assert codec.plain(Message.assistant(None, [call])) == (
        b'{"role":"assistant","content":null,"tool_calls":[{"id":"c","name":"f","arguments":"{}"}]}'
    )
    assert codec.plain(Message.assistant("")) == b'{"role":"assistant","content":""}'


def test_the_fields_stand_in_one_order_whatever_order_they_were_given_in():
    """role, content, tool_calls, tool_call_id, name, author."""
    message = Message(
        author="a",
        name="n",
        tool_call_id="t",
        tool_calls=[ToolCall(arguments="", name="f", id="c")],
        content="x",
        role=Role.TOOL,
    )

    assert list(codec.plain_dict(message)) == [
        "role",
        "content",
        "tool_calls",
        "tool_call_id",
        "name",
        "author",
    ]
    assert list(json.loads(codec.plain(message))) == list(codec.plain_dict(message))


@pytest.mark.parametrize("empty", ["tool_call_id", "name", "author"])
def test_empty_fields_are_left_out(empty):
    """S0-7, S1-22: omitted when empty."""
    assert codec.plain(Message.user("x", **{} if empty == "tool_call_id" else {empty: ""})) == (
        b'{"role":"user","content":"x"}'
    )
    assert codec.plain(Message(Role.USER, "x", **{empty: ""})) == b'{"role":"user","content":"x"}'


def test_the_dict_is_yours_to_change_and_the_message_stays_as_it_was():
    """S0-34: neither what was passed in nor what came back can change what is stored."""
    raw = {"type": "hologram", "layers": [1]}
    message = Message.user([Unknown(raw), Text("x", extra={"a": [1]})], extra={"b": [2]})
    before = codec.plain(message)

    raw["layers"].append(2)
    found = codec.plain_dict(message)
    found["content"][0]["layers"].append(3)
    found["content"][1]["a"].append(4)
    found["role"] = "system"

    assert codec.plain(message) == before


def test_arguments_are_written_exactly_as_the_model_wrote_them():
    """A8: spaces, order, duplicate keys and broken JSON stay, for the sake of prompt caches."""
    for arguments in ['{"b" : 1,\n "a":1.0}', '{"a":1,"a":2}', '{"a": ', "", "null", "[1]", "x"]:
        message = Message.assistant(None, [ToolCall(id="c", name="f", arguments=arguments)])

        found = read(codec.plain(message))

        assert json.loads(codec.plain(message))["tool_calls"][0]["arguments"] == arguments
        assert found.tool_calls[0].arguments == arguments


# --- tool calls -----------------------------------------------------------------------------


def test_flat_and_nested_calls_are_the_same_call():
    """S0-4, S0-5, S0-27: the wire's nested form is read into the flat one."""
    nested = asked(id="c", type="function", function={"name": "f", "arguments": '{"a": 1}'})
    flat = asked(id="c", name="f", arguments='{"a": 1}')

    assert nested == flat == ToolCall(id="c", name="f", arguments='{"a": 1}')


@pytest.mark.parametrize("raw", [{}, {"function": {}}, {"type": "function", "function": {}}])
def test_an_empty_object_is_a_call_in_which_everything_is_empty(raw):
    """S0-24: `{}` decodes to an all-empty tool call."""
    assert asked(**raw) == ToolCall(id="", name="", arguments="")


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({"city": "Zürich", "n": [1, 2.0]}, None),
        ({}, None),
        ([1, 2], None),
        ('{"city": "Bern"}', '{"city": "Bern"}'),
        ('{"city": ', '{"city": '),
        ("not json", "not json"),
        ("", ""),
    ],
)
@pytest.mark.parametrize("form", ["flat", "nested"])
def test_arguments_are_text_and_an_object_is_written_as_text(raw, text, form):
    """A8: text is kept word for word, parsing or not; an object becomes JSON that says the same."""
    if form == "flat":
        found = asked(id="c", name="f", arguments=raw)
    else:
        found = asked(id="c", type="function", function={"name": "f", "arguments": raw})

    if text is None:
        assert json.loads(found.arguments) == raw
    else:
        assert found.arguments == text


@pytest.mark.parametrize("form", ["flat", "nested"])
def test_absent_and_null_arguments_are_not_an_object_that_nobody_wrote(form):
    """A8: nothing is replaced by `{}`; absent is empty, as in Go, and null says nothing more."""
    absent = {"name": "f"}
    null = {"name": "f", "arguments": None}
    if form == "nested":
        absent, null = {"function": absent}, {"function": null}

    assert asked(id="c", **absent).arguments == ""
    assert asked(id="c", **null).arguments in ("", "null")


@pytest.mark.parametrize(
    "calls",
    [
        5,
        "call",
        True,
        {"id": "c"},
        [1],
        ["call"],
        [None],
        [[]],
        [{"id": 1, "name": "f", "arguments": ""}],
        [{"id": "c", "name": ["f"], "arguments": ""}],
        [{"id": "c", "function": "f"}],
        [{"id": "c", "function": {"name": {}}}],
    ],
)
def test_malformed_tool_calls_are_refused(calls):
    """S0-24: malformed tool-call JSON is an error, and no guess."""
    with pytest.raises(InvalidInput):
        codec.read_plain(json.dumps({"role": "assistant", "content": None, "tool_calls": calls}))


@pytest.mark.parametrize("calls", [None, []])
def test_no_tool_calls_may_be_written_as_null_or_an_empty_list(calls):
    assert read(said(tool_calls=calls)).tool_calls == ()


def test_calls_keep_their_order_and_may_share_an_id():
    """Bad input 45: history keeps what was said; pairing is for whoever runs the tools."""
    calls = [{"id": "c", "name": name, "arguments": ""} for name in ("f", "g", "f")]

    found = read({"role": "assistant", "content": None, "tool_calls": calls})

    assert [call.name for call in found.tool_calls] == ["f", "g", "f"]


def test_unknown_fields_of_a_call_are_kept():
    """S1-27: what other programs put beside a call (`thought`, an index) survives."""
    nested = asked(
        id="c",
        type="function",
        index=2,
        thought=True,
        function={"name": "f", "arguments": "", "x": [1]},
    )
    flat = asked(id="c", name="f", arguments="", index=2)

    assert nested.extra["index"] == 2
    assert nested.extra["thought"] is True
    assert "x" in json.dumps(nested.extra)
    assert flat.extra == {"index": 2}


def test_output_and_signature_of_a_call_are_read():
    """S1-25, S1-26: id, name and output of a function response come back as they were."""
    found = asked(id="c", name="f", arguments="", output='{"t": 12}')

    assert (found.id, found.name, found.output) == ("c", "f", '{"t": 12}')


# --- fields and roles -----------------------------------------------------------------------


def test_unknown_fields_land_in_extra_and_survive_in_the_record():
    """Unknown fields met on reading land in `extra` and survive."""
    extra = {"reasoning_content": "Hm.", "tools_used": ["a"], "n": {"x": [1, None, 1.0]}}

    found = read(said(**extra))

    assert json.loads(json.dumps(found.extra)) == extra
    assert codec.read_record(codec.record(found)) == found


@pytest.mark.parametrize("role", Role)
def test_every_role_is_read_and_kept_as_spelled(role):
    """S0-3, S1-4, S1-5, S1-7, S1-32: typed inside, text at the boundary, legacy words kept."""
    found = read(said(role=role.value))

    assert found.role is role
    assert json.loads(codec.plain(found))["role"] == role.value
    assert found.role.canonical in (Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL)


@pytest.mark.parametrize("role", ["SYSTEM", "developer", "User", "bot", "", "user ", "rôle"])
def test_an_unknown_role_is_refused_by_name(role):
    """A4: an error in strict codecs, never quietly a user; it says which role (bad input 43)."""
    with pytest.raises(InvalidInput) as caught:
        codec.read_plain(json.dumps(said(role=role)))

    assert repr(role) in str(caught.value)


@pytest.mark.parametrize("role", [None, 1, True, ["user"], {"role": "user"}])
def test_a_role_that_is_not_text_is_refused(role):
    with pytest.raises(InvalidInput):
        codec.read_plain(json.dumps(said(role=role)))


def test_a_message_without_a_role_is_refused():
    with pytest.raises(InvalidInput, match="role"):
        codec.read_plain(b'{"content":"x"}')


@pytest.mark.parametrize("document", ["[]", "1", '"user"', "null", "true", '[{"role":"user"}]'])
def test_what_is_not_an_object_is_not_a_message(document):
    with pytest.raises(InvalidInput):
        codec.read_plain(document)


@pytest.mark.parametrize("field", ["tool_call_id", "name", "author"])
@pytest.mark.parametrize("value", [1, True, [], {}, 1.5])
def test_a_text_field_that_is_not_text_is_refused(field, value):
    """Bad input 26 in a message's own ids: a typed error rather than a later failure."""
    with pytest.raises(InvalidInput):
        codec.read_plain(json.dumps(said(**{field: value})))


@pytest.mark.parametrize("field", ["tool_call_id", "name", "author"])
def test_a_text_field_that_is_null_is_not_there(field):
    assert getattr(read(said(**{field: None})), field) is None


# --- content --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "content"),
    [
        ('{"role":"user","content":null}', None),
        ('{"role":"user"}', None),
        ('{"role":"user","content":""}', ""),
        ('{"role":"user","content":"a\\u0000b"}', "a\0b"),
        ('{"role":"user","content":[]}', ()),
    ],
)
def test_content_may_be_null_missing_empty_or_text(document, content):
    """Bad input 44."""
    assert read(document).content == content


@pytest.mark.parametrize("content", [1, 1.5, True, False, 0])
def test_content_that_is_neither_text_nor_parts_is_refused(content):
    """Bad input 44: a number is not something said."""
    with pytest.raises(InvalidInput):
        codec.read_plain(json.dumps(said(content=content)))


def test_content_that_is_an_object_is_refused_or_kept_whole():
    """Bad input 44: a round trip or a typed error, never something in between."""
    raw = {"parts": [{"text": "x"}]}
    try:
        found = read(said(content=raw))
    except InvalidInput:
        return

    assert json.loads(codec.plain(found))["content"] in (raw, [raw])


def test_nested_lists_and_scalars_in_a_list_are_kept_as_unknown():
    """Bad input 44: elements that are no parts are not lost and not guessed at."""
    raw = [["a", ["b"]], 1, None, True, 1.0, {}, {"type": 7}, {"text": "no type"}]

    found = read(said(content=raw))

    assert json.loads(codec.plain(found))["content"] == raw
    assert all(isinstance(part, Unknown) for part in found.content)


def test_a_text_in_a_list_is_words():
    """The OpenAI and LangChain shapes allow it; its words count as the message's."""
    found = read(said(content=["a", {"type": "text", "text": "b"}]))

    assert found.text.replace("\n", "") == "ab"


def test_known_parts_are_read_and_their_unknown_fields_kept_in_place():
    """S2-18: parts in order, with whatever came along."""
    raw = [
        {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
        {"type": "thinking", "text": "hm", "signature": "s"},
        {"type": "call", "id": "c"},
        {"type": "text", "text": "b"},
    ]

    found = read({"role": "assistant", "content": raw})

    assert found.content == (
        Text("a", extra={"cache_control": {"type": "ephemeral"}}),
        Thinking("hm", "s"),
        CallRef("c"),
        Text("b"),
    )
    assert json.loads(codec.plain(found))["content"] == raw


@pytest.mark.parametrize(
    "raw",
    [
        {"type": "text"},
        {"type": "text", "text": 5},
        {"type": "image"},
        {"type": "image", "data": "AAEC", "url": "https://example.com"},
        {"type": "image", "data": "not base64!"},
        {"type": "image", "data": "AAE"},
        {"type": "image_url"},
        {"type": "image_url", "image_url": 5},
        {"type": "image_url", "image_url": {}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,@@@"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAE"}},
        {"type": "call"},
        {"type": "opaque", "provider": "p"},
        {"type": "thinking", "text": None},
    ],
    ids=json.dumps,
)
def test_a_part_that_is_not_quite_one_is_kept_as_it_was(raw):
    """Bad input 47: a broken picture does not lose the message, and is not repaired by guess."""
    found = read(said(content=[raw]))

    assert codec.plain(found) == codec.plain(read(codec.plain(found)))
    if isinstance(found.content[0], Unknown):
        assert found.content[0].raw == raw
    else:
        assert isinstance(found.content[0], Image)
        assert found.content[0].url == raw["image_url"]["url"]


def test_a_picture_by_address_is_an_image():
    """S0-32: `image_url` is how others write pictures; options beside the address are kept."""
    url = {"url": "https://example.com/a.png", "detail": "high"}

    (image,) = read(said(content=[{"type": "image_url", "image_url": url}])).content

    assert isinstance(image, Image)
    assert image.url == "https://example.com/a.png"
    assert "high" in json.dumps(image.extra)


def test_a_picture_in_a_data_url_is_its_bytes():
    """S0-32: data URLs hold the picture itself."""
    data = bytes(range(256))
    url = "data:image/png;base64," + base64.b64encode(data).decode()

    (image,) = read(said(content=[{"type": "image_url", "image_url": {"url": url}}])).content

    assert image == Image(data=data, media_type="image/png")


def test_an_svg_with_a_script_is_only_bytes():
    """Bad input 47: kept as data; showing it is somebody else's decision."""
    svg = b"<svg onload=alert(1)/>"
    url = "data:image/svg+xml;base64," + base64.b64encode(svg).decode()

    (image,) = read(said(content=[{"type": "image_url", "image_url": {"url": url}}])).content

    assert image == Image(data=svg, media_type="image/svg+xml")


def test_text_is_what_the_text_parts_say():
    """S2-19: the text parts together, or None when there are none."""
    assert read(said(content=[{"type": "image", "url": "u"}])).text is None
    assert read(said(content=None)).text is None


def test_reading_gives_a_new_id_and_an_aware_time():
    """Plain JSON has neither, and every message has both for life."""
    first, second = read(said()), read(said())

    assert first.id != second.id
    assert first.timestamp.tzinfo is not None
    assert not any(isinstance(entry, Mark) for entry in codec.read_plain(json.dumps(said())))


def test_text_and_bytes_are_read_alike():
    document = json.dumps(said(content="Grüße"), ensure_ascii=False)

    assert same(read(document), read(document.encode()))
