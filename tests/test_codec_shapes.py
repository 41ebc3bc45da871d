"""What holds for every shape of another program: golden bytes, and nothing lost or mixed up.

Each shape has golden files, written by hand from its contract: value → bytes and bytes → value.
"""

import json
from datetime import UTC, datetime, timedelta, timezone
from functools import partial

import pytest

from holdfast import codec
from holdfast.codec import jaato, kernel, lango, nanobot, shepherd
from holdfast.errors import InvalidInput, TooLarge
from holdfast.messages import Message, Role, ToolCall
from holdfast.parts import Text, Unknown
from shapes import GOLDENS, NOON, one, read, same, to_line


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
