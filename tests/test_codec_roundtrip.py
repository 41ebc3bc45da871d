"""Round trips, tried on thousands of values: what is written is read back, and stays.

What each shape carries is said at its test. Whatever text comes in from elsewhere ends as a
value or as an error of ours, and never as any other exception.
"""

import json
import math
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import strategies as some
from holdfast import codec, strict
from holdfast.codec import jaato, kernel, lango, nanobot, shepherd, writing
from holdfast.errors import HoldfastError
from holdfast.messages import Role
from holdfast.parts import CallRef, Image

pytestmark = pytest.mark.usefixtures("uncovered")

NOON = datetime(2026, 2, 1, 12, tzinfo=UTC)
often = settings(
    max_examples=1000,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def to_line(message):
    return nanobot.encode(message.replace(timestamp=NOON), zone=UTC)


def without_orphans(message):
    """The same without places of calls that the message does not hold."""
    if not isinstance(message.content, tuple):
        return message
    ids = {call.id for call in message.tool_calls}
    parts = [p for p in message.content if not isinstance(p, CallRef) or p.id in ids]
    return message.replace(content=parts)


def as_they_stand(message):
    """The calls in the order of their places among the words, then those that have none."""
    waiting, placed = list(message.tool_calls), []
    for part in message.content if isinstance(message.content, tuple) else ():
        call = next((c for c in waiting if isinstance(part, CallRef) and c.id == part.id), None)
        if call is not None:
            waiting.remove(call)
            placed.append(call)
    return placed + waiting


def only(entries):
    (entry,) = entries
    return entry


# --- our own record -------------------------------------------------------------------------


@often
@given(some.entries)
def test_a_record_gives_back_an_equal_entry_by_either_path_and_is_byte_stable(entry):
    """Everything is carried: fast path, strict path and bytes agree (S1-26, S2-75, S2-76)."""
    data = codec.record(entry)

    fast = codec.read_record(data)
    strictly = only(codec.read_foreign_record(data))

    assert fast == entry
    assert strictly == entry
    assert repr(fast) == repr(strictly)
    assert codec.record(fast) == data
    assert codec.record(strictly) == data


@settings(often, max_examples=500)
@given(some.known_entries, some.json_values, st.integers(0, 5))
def test_a_record_with_a_field_of_a_newer_version_loses_nothing(entry, value, place):
    """The row is read by the strict path, and the new field lands in extra."""
    data = codec.record(entry)
    kind = data[data.index(b',"') + 2 : data.index(b'":{')]
    head = b'{"v":1,"%b":{' % kind
    newer = head + b'"mood%d":%b,' % (place, writing.dumps(value).encode()) + data[len(head) :]

    found = codec.read_record(newer)

    assert (
        found.extra[f"mood{place}"] == only(codec.read_foreign_record(newer)).extra[f"mood{place}"]
    )
    assert json.loads(json.dumps(found.extra[f"mood{place}"])) == json.loads(writing.dumps(value))
    rest = {key: each for key, each in found.extra.items() if key != f"mood{place}"}
    assert found.replace(extra=rest) == entry


# --- the shapes -----------------------------------------------------------------------------


@often
@given(some.messages)
def test_plain_and_kernel_and_shepherd_are_fixed_points(message):
    """
    Plain carries role, content, calls with their outputs, tool_call_id, name and author; the
    kernel role, content, tool_call_id and calls; shepherd role and words. Read and written
    again, each gives the same bytes (S0-7, S0-24, S0-26, S3-42).
    """
    plain = codec.plain(message)
    found = only(codec.read_plain(plain))

    assert codec.plain(found) == plain
    assert json.loads(plain) == json.loads(json.dumps(codec.plain_dict(message)))
    assert (found.role, found.text) == (message.role, message.text)
    assert [(c.id, c.name, c.arguments, c.output) for c in found.tool_calls] == [
        (c.id, c.name, c.arguments, c.output) for c in message.tool_calls
    ]

    go = kernel.encode(message)
    assert kernel.encode(only(kernel.decode(go))) == go
    assert not set(go.decode()) & set("<>&\u2028\u2029")

    told = shepherd.encode([message, message])
    assert shepherd.encode(shepherd.decode(told)) == told


@often
@given(some.fair_messages)
def test_lango_is_a_fixed_point(message):
    """
    It carries role, words, time, author, and of calls id, name, input, output and signature
    (S1-26, S1-30, S1-31). A tool's message becomes a result.
    """
    data = lango.encode(message)
    found = only(lango.decode(data))

    assert lango.encode(found) == data
    assert found.role == message.role
    assert found.timestamp == message.timestamp
    assert (found.author or None) == (message.author or None)
    if message.tool_calls:
        assert [(c.id, c.name, c.arguments, c.output or "") for c in found.tool_calls] == [
            (c.id, c.name, c.arguments, c.output or "") for c in message.tool_calls
        ]
        assert [c.signature or None for c in found.tool_calls] == [
            c.signature or None for c in message.tool_calls
        ]
    elif message.tool_call_id is not None and message.text and message.role.canonical is Role.TOOL:
        assert [(r.call_id, r.name or "") for r in found.results] == [
            (r.call_id, r.name or "") for r in message.results
        ]
    elif not message.results:
        assert (found.text or "") == (message.text or "")


@often
@given(some.lango_sessions)
def test_a_lango_session_gives_back_an_equal_session(session):
    """All its fields, and of its messages role, words, time and author (S1-29, S1-30)."""
    data = lango.encode_session(session)
    found = lango.decode_session(data)

    assert lango.encode_session(found) == data
    assert found.replace(history=(), extra={}) == session.replace(history=(), extra={})
    assert [(m.role, m.timestamp) for m in found.history] == [
        (m.role, m.timestamp) for m in session.history
    ]


@often
@given(some.fair_messages)
def test_jaato_is_a_fixed_point(message):
    """
    It carries id, role, parts in order, calls (id, name, arguments, signature) and results
    (call id, name, payload, error, attachments), and what rides in extra (S2-17, S2-18, A8, B10).
    """
    message = without_orphans(message)
    data = jaato.encode(message)
    found = only(jaato.decode(data))

    assert jaato.encode(found) == data
    assert found.id == message.id
    if message.role.canonical is Role.ASSISTANT and not message.results:
        assert [(c.id, c.name, c.arguments) for c in found.tool_calls] == [
            (c.id, c.name, c.arguments) for c in as_they_stand(message)
        ]
        assert (found.text or "") == (message.text or "")


@often
@given(some.fair_messages, some.zones)
def test_nanobot_gives_back_an_equal_message(message, zone):
    """
    A line carries every field: calls, parts and extra included. The text of the time is kept
    beside it; pictures come back from the form in which nanobot sends them (S4-13, S4-25).
    """
    if not 2 < message.timestamp.year < 9998:  # the ends of time have a test of their own
        message = message.replace(timestamp=message.timestamp.replace(year=2026, day=1))
    line = nanobot.encode(message, zone=zone)
    found = only(nanobot.decode(line, zone=zone))

    assert nanobot.encode(found, zone=zone) == line
    assert line.count(b"\n") == 1
    extra = {name: value for name, value in found.extra.items() if name != "timestamp"}
    carried = found.replace(content=message.content, extra=extra)
    assert carried == message
    assert found.text == message.text
    if not any(isinstance(part, Image) for part in message.content or ()):
        assert found.content == message.content
    assert codec.read_record(codec.record(found)) == found

    escaped = nanobot.encode(message, zone=zone, ascii=True)
    assert escaped.isascii()
    assert json.loads(escaped) == json.loads(line)


@often
@given(some.nanobot_metadata)
def test_nanobot_metadata_gives_back_equal_metadata(metadata):
    """S4-12: every key."""
    line = nanobot.encode_metadata(metadata)

    found = nanobot.decode(line)

    assert found == metadata
    assert nanobot.encode_metadata(found) == line


# --- whatever comes in from elsewhere -------------------------------------------------------

READERS = {
    "plain": codec.read_plain,
    "record": codec.read_record,
    "foreign record": codec.read_foreign_record,
    "kernel": kernel.decode,
    "lango": lango.decode,
    "lango session": lango.decode_session,
    "jaato": jaato.decode,
    "shepherd": shepherd.decode,
    "nanobot line": lambda data: nanobot.decode(data, zone=UTC),
    "nanobot file": lambda data: nanobot.decode_file(
        data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass"), zone=UTC
    ),
}


def into_every_reader(data):
    for name, read in READERS.items():
        if name == "record" and isinstance(data, str):
            continue
        try:
            found = read(data)
        except HoldfastError:
            continue
        is_storable(found)


def is_storable(found):
    """What a reader lets in is a value that any store can keep and give back."""
    entries = getattr(found, "entries", getattr(found, "history", found))
    for entry in entries if isinstance(entries, tuple) else ():
        assert codec.read_record(codec.record(entry)) == entry


PLACES = [
    "%s",
    '{"v":1,"message":%s}',
    '{"v":1,"message":{"role":"user","id":"i","timestamp":"2026-02-01T12:00:00Z","content":[%s]}}',
    '{"v":1,"fold":{"id":"i","timestamp":"2026-02-01T12:00:00Z","first":1,"last":2,"replacement":%s}}',
    '{"v":1,"call":{"id":"i","timestamp":"2026-02-01T12:00:00Z","model":"m","usage":%s}}',
    '{"v":1,"mark":{"id":"i","timestamp":"2026-02-01T12:00:00Z","what":"x","data":%s,"new":%s}}',
    '{"role":"user","content":[%s],"parts":[%s],"timestamp":"2026-02-01T12:00:00Z"}',
    '{"role":"model","tool_calls":[%s],"toolCalls":[%s],"timestamp":"2026-02-01T12:00:00Z"}',
    '{"messages":[%s]}',
    '{"key":"k","createdAt":"2026-02-01T12:00:00Z","updatedAt":"2026-02-01T12:00Z","history":[%s]}',
    '{"_type":"metadata","metadata":%s}',
]


@often
@given(some.foreign_objects, st.sampled_from(PLACES) | st.just("%s"))
def test_any_object_in_any_place_ends_as_a_value_or_as_our_error(raw, place):
    """The right names and wrong values: alone, in a row, a session, a list of parts or calls."""
    into_every_reader(place.replace("%s", json.dumps(raw)).encode())


@often
@given(
    st.one_of(
        st.binary(max_size=64),
        st.text(st.sampled_from('{}[]",:\\u0dD8c1-.eE+ntf \n\0\ud800é'), max_size=32).map(
            lambda text: text.encode("utf-8", "surrogatepass")
        ),
        st.text(st.sampled_from('{}[]",:\\u0dD8c1-.eE+ntf \n\0\ud800é'), max_size=32),
    )
)
def test_any_bytes_and_any_text_end_as_a_value_or_as_our_error(data):
    """Noise, cut documents, halves of pairs: nothing but our own errors."""
    into_every_reader(data)


PAIRS = [
    (codec.plain, "plain"),
    (codec.record, "record"),
    (codec.record, "foreign record"),
    (lango.encode, "lango"),
    (jaato.encode, "jaato"),
    (to_line, "nanobot line"),
]


@often
@given(some.fair_messages, st.integers(0, 10**6), st.integers(0, 255))
def test_a_damaged_document_ends_as_a_value_or_as_our_error(message, place, byte):
    """One byte changed in what each writer wrote, for the reader of the same shape."""
    for write, name in PAIRS:
        good = write(message)
        at = place % len(good)
        try:
            found = READERS[name](good[:at] + bytes([byte]) + good[at + 1 :])
        except HoldfastError:
            continue
        is_storable(found)


# --- the strict parser ----------------------------------------------------------------------


def same_json(found, expected):
    """Equal in value and type, all the way down, with tuples for lists."""
    if isinstance(expected, dict):
        return (
            isinstance(found, dict)
            and list(found) == list(expected)
            and all(same_json(found[key], expected[key]) for key in expected)
        )
    if isinstance(expected, list):
        return (
            type(found) is tuple
            and len(found) == len(expected)
            and all(same_json(a, b) for a, b in zip(found, expected, strict=True))
        )
    if isinstance(expected, float):
        return (
            type(found) is float
            and math.copysign(1, found) == math.copysign(1, expected)
            and (found == expected)
        )
    return type(found) is type(expected) and found == expected


@often
@given(some.json_values, st.booleans(), st.sampled_from([None, 2]))
def test_the_strict_parser_agrees_with_pythons_on_every_good_document(value, ascii, indent):
    """What both accept, both read alike, from text and from bytes."""
    text = json.dumps(value, ensure_ascii=ascii, indent=indent)

    found = strict.parse(text)

    assert same_json(found.value, json.loads(text))
    assert found.mended == 0
    assert strict.parse(text.encode()) == found
    assert same_json(strict.parse(writing.dumps(found.value)).value, json.loads(text))


@often
@given(st.text(st.sampled_from('{}[]",:\\u0041nte1-.E+ \nx'), max_size=24))
def test_the_strict_parser_accepts_nothing_that_pythons_does_not(text):
    """Stricter than Python, never looser."""
    try:
        found = strict.parse(text)
    except HoldfastError:
        return

    assert same_json(found.value, json.loads(text))


@pytest.mark.parametrize("form", ["bytes", "text"])
def test_the_readers_are_all_here(form):
    """A reader that is added to the codec belongs into the table above."""
    into_every_reader(b"{}" if form == "bytes" else "{}")

    assert len(READERS) == 10
