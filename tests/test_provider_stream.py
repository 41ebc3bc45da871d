"""Bytes in pieces become whole events, lines and elements.

Beside explicit cases there are the simple readers of `simple_streams`, which have the whole bytes
and know nothing of chunks; ours have to agree with them however the bytes are cut. Recorded
streams are data of others and not part of the project: HOLDFAST_CORPUS names their folder, and
without it those tests are skipped. `fuzz_stream.py` looks for more, for as long as it is let.
"""

import json
import os
import random
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.errors import ProtocolError
from holdfast.providers.stream import ArrayStream, Event, EventStream, LineStream
from simple_streams import check, outcome, pieces, simple_events, simple_lines, split_at

CORPUS = Path(os.environ.get("HOLDFAST_CORPUS") or Path(__file__).parents[2] / "shared" / "corpus")
RECORDED = sorted(p for p in (CORPUS / "traffic").glob("*/*.json"))
READERS = [EventStream, LineStream, ArrayStream]
KIB = 1024
MIB = 1024 * KIB


def read(reader, text):
    items, error, unfinished, _ = outcome(reader, [text])
    assert error is None
    return items, unfinished


def whole(text):
    """The events of a stream that ends where it may."""
    events, unfinished = read(EventStream(), text)
    assert not unfinished
    return [tuple(event) for event in events]


# ---- events ----


@pytest.mark.parametrize(
    ("text", "events"),
    [
        (b"", []),
        (b"data: a\n\n", [("message", b"a")]),
        (b"data:a\n\n", [("message", b"a")]),
        (b"data:  a \n\n", [("message", b" a ")]),
        (b"data:\ta\n\n", [("message", b"\ta")]),
        (b"data: a: b\n\n", [("message", b"a: b")]),
        (b"event: ping\ndata: {}\n\n", [("ping", b"{}")]),
        (b"event:ping\ndata:{}\n\n", [("ping", b"{}")]),
        (b"data: {}\nevent: ping\n\n", [("ping", b"{}")]),
        (b"event: a\nevent: b\ndata: {}\n\n", [("b", b"{}")]),
        (b"event: a\nevent: \ndata: {}\n\n", [("message", b"{}")]),
        (b"event: \ndata: {}\n\n", [("message", b"{}")]),
        (b"event: a\ndata: 1\n\ndata: 2\n\n", [("a", b"1"), ("message", b"2")]),
        (b"data: a\ndata: b\n\n", [("message", b"a\nb")]),
        (b"data:  a\ndata:b\nevent:  c\n\n", [(" c", b" a\nb")]),
        (b"event: x\ndata: a\ndata: b\n\n", [("x", b"a\nb")]),
        (b"data: a\n: c\ndata\ndata:b\n\n", [("message", b"a\n\nb")]),
        # The example of the standard: one event with no text, one with a newline.
        (b"data\n\ndata\ndata\n\n", [("message", b""), ("message", b"\n")]),
        (b"event: a\n\ndata: 1\n\n", [("message", b"1")]),
        (b"event: a\n\n", []),
        (b": nothing\n\n: else\n\n", []),
        (b": OPENROUTER PROCESSING\n\ndata: 1\n\n", [("message", b"1")]),
        (b": c\ndata: 1\n\n", [("message", b"1")]),
        (b":\ndata: 1\n:\n\n", [("message", b"1")]),
        (b"id: 1\nretry: 0\ndata: 1\nid\n\nretry: 10\n\n", [("message", b"1")]),
        (b"Data: 1\ndata : 2\n data: 3\n\n", []),
        (b"<html>\n\n<body>\n\n", []),
        (b"\n\n\ndata: 1\n\n\n\n\ndata: 2\n\n\n", [("message", b"1"), ("message", b"2")]),
        (b"data: 1\r\rdata: 2\r\r", [("message", b"1"), ("message", b"2")]),
        (b"data: 1\r\n\r\ndata: 2\r\n\r\n", [("message", b"1"), ("message", b"2")]),
        (b"data: 1\n\r\ndata: 2\r\n\rdata: 3\r\r\n", [("message", b"%d" % n) for n in (1, 2, 3)]),
        (b"data: 1\r\n\n\r\n", [("message", b"1")]),
        (b"event: a\r\ndata: 1\r\ndata: 2\r\n\r\n", [("a", b"1\n2")]),
        (b"event: a\rdata: 1\rdata: 2\r\r", [("a", b"1\n2")]),
        (b"\xef\xbb\xbfdata: 1\n\n", [("message", b"1")]),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: 1\n\ndata: 2\n\n", [("message", b"2")]),
        (b"data: 1\n\n\xef\xbb\xbfdata: 2\n\n", [("message", b"1")]),
        (b"\xef\xbbdata: 1\n\ndata: 2\n\n", [("message", b"2")]),
        (b"data: a\x00b\n\nid: \x00\n\n", [("message", b"a\x00b")]),
        (b"event: \xff\ndata: \xc3\x28\n\n", [("\ufffd", b"\xc3\x28")]),
        # U+2028 and U+0085 end no line.
        ("data: a\u2028b\u0085c\n\n".encode(), [("message", "a\u2028b\u0085c".encode())]),
        (b"data: a\x0b\x0cb\n\n", [("message", b"a\x0b\x0cb")]),
    ],
    ids=repr,
)
def test_an_event_is_what_the_standard_says(text, events):
    """Line ends, comments, fields and blank lines by the WHATWG standard, cut anywhere."""
    assert whole(text) == events
    assert outcome(EventStream(), pieces(text, 1)) == outcome(EventStream(), [text])
    assert simple_events(text) == (events, False)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (b"data: 1", b"data: 1"),
        (b"data: [DONE]\n", b"data: [DONE]\n"),
        (b"data: [DONE]\r\n", b"data: [DONE]\n"),
        (b"\n\ndata: 1\ndata: 2\n", b"data: 1\ndata: 2\n"),
        (b"event: message_stop\n", b"event: message_stop\n"),
        (b"id: 7\n", b"id: 7\n"),
        (b"d", b"d"),
        (b"\xef", b"\xef"),
        (b"\xef\xbb\xbfx", b"x"),
        (b": half a comm", b": half a comm"),
        (b'{"error": "no stream"}', b'{"error": "no stream"}'),
    ],
    ids=repr,
)
def test_an_event_without_its_blank_line_is_left_over(text, left):
    """
    The end of the stream ends no event: a broken connection looks the same. What had begun is
    told, so that a mark of the end can be looked for in it.
    """
    for before in (b"", b"data: 0\n\n"):
        if before and text.startswith(b"\xef"):
            continue  # a byte order mark stands at the start
        reader = EventStream()

        events = reader.feed(before + text) + reader.finish()

        assert events == [Event("message", b"0")][: len(before)]
        assert reader.is_unfinished
        assert reader.left_over == left


@pytest.mark.parametrize("text", [b"", b"\n", b"\r", b": bye\n", b"event: a\n\n", b"\xef\xbb\xbf"])
def test_nothing_is_left_over_where_no_event_had_begun(text):
    assert whole(text) == []
    assert whole(b"data: 1\n\n" + text.lstrip(b"\xef\xbb\xbf")) == [("message", b"1")]


def test_an_event_is_there_as_soon_as_its_end_is():
    """A lone CR is a line end at once: an event is not held back for an LF that may not come."""
    reader = EventStream()

    assert reader.feed(b"data: 1\r\n\r") == [Event("message", b"1")]
    assert not reader.is_unfinished
    assert reader.feed(b"") == []
    assert reader.feed(b"\n") == []
    assert reader.feed(b"data: 2\r") == []
    assert reader.feed(b"\r") == [Event("message", b"2")]


# ---- lines ----


@pytest.mark.parametrize(
    ("text", "lines", "unfinished"),
    [
        (b"", [], False),
        (b'{"a":1}\n{"b":2}\n', [b'{"a":1}', b'{"b":2}'], False),
        (b'{"a":1}\r\n\r\n  \n{"b":2}\n', [b'{"a":1}', b'{"b":2}'], False),
        (b'{"a":1}\n{"b":2}', [b'{"a":1}'], True),
        (b'{"a":1}\n{"b"', [b'{"a":1}'], True),
        (b"12", [], True),
        (b"1\n \t\r", [b"1"], False),
        (b"\xef\xbb\xbf1\n\xff\xfe\n", [b"1", b"\xff\xfe"], False),
        ('"\u2028\u0085"\n'.encode(), ['"\u2028\u0085"'.encode()], False),
        (b'{"a":\r1}\n', [b'{"a":\r1}'], False),
    ],
    ids=repr,
)
def test_a_line_ends_with_its_newline(text, lines, unfinished):
    """Blank lines are passed over; a last line without its newline is left over, not given."""
    assert read(LineStream(), text) == (lines, unfinished)
    assert outcome(LineStream(), pieces(text, 1)) == outcome(LineStream(), [text])
    assert simple_lines(text) == (lines, unfinished)


# ---- elements ----


@pytest.mark.parametrize(
    "text",
    [
        b"[]",
        b" [ ] \r\n",
        b"\xef\xbb\xbf[1]",
        b'[{"a": 1}\n,\r\n{"b": [2, {"c": []}]}\n]\n',
        rb'["]", "\"", "\\", "a\\\"[", "\u005d", {"}]": "{[\\"}, "", [""]]',
        b"[1, -2.5e3 ,true,null\n,\tfalse]",
        b"[[[]], [[], []], {}]",
        '["é 漢 😀", {"é": "😀"}]'.encode(),
    ],
    ids=repr,
)
def test_the_elements_of_an_array_come_one_by_one(text):
    """What json finds in the whole array, the reader finds in any pieces of it."""
    expected = json.loads(text.decode("utf-8-sig"))

    items, unfinished = read(ArrayStream(), text)

    assert [json.loads(item) for item in items] == expected
    assert not unfinished
    assert outcome(ArrayStream(), pieces(text, 1)) == outcome(ArrayStream(), [text])


def test_an_element_is_there_as_soon_as_it_is_closed():
    """An object is not held back until the comma behind it, which may be seconds away."""
    reader = ArrayStream()

    assert reader.feed(b'[{"a": "}') == []
    assert reader.left_over == b'{"a": "}'
    assert reader.feed(b'"}') == [b'{"a": "}"}']
    assert reader.left_over == b"" and reader.is_unfinished  # the array has not ended
    assert reader.feed(b', "x"') == [b'"x"']
    assert reader.feed(b", 12") == []
    assert reader.feed(b"3") == []
    assert reader.feed(b"]") == [b"123"]
    assert not reader.is_unfinished


@pytest.mark.parametrize(
    ("text", "items", "words"),
    [
        (b'{"error": {"code": 400}}', [], "b'{' stands before the array"),
        (b"<html>", [], "b'<' stands before the array"),
        (b"[,1]", [], "b',' stands before the first element"),
        (b"[1,,2]", [b"1"], "b',' stands behind a comma"),
        (b"[1,]", [b"1"], "b']' stands behind a comma"),
        (b"[{} {}]", [b"{}"], "b'{' stands behind an element"),
        (b'["a"}', [b'"a"'], "b'}' stands behind an element"),
        (b"[}", [], "b'}' stands before the first element"),
        (b"[1] [2]", [b"1"], "b'[' stands after the array"),
        (b"[]\x00", [], "b'\\x00' stands after the array"),
    ],
    ids=repr,
)
def test_what_is_no_array_is_said_so(text, items, words):
    """Good elements come first, then the error; it stays."""
    reader = ArrayStream()

    found, error, unfinished, _ = outcome(reader, [text])

    assert found == items
    assert words in error and "not a JSON array" in error
    assert unfinished
    assert outcome(ArrayStream(), pieces(text, 1)) == (found, error, unfinished, b"")
    with pytest.raises(ProtocolError):
        reader.feed(b"")
    with pytest.raises(ProtocolError):
        reader.finish()


@pytest.mark.parametrize("text", [b"", b"[", b"[1", b"[1,", b"[{}", b'["a', b'["\\', b"[[]"])
def test_an_array_without_its_bracket_is_unfinished(text):
    _, unfinished = read(ArrayStream(), text)

    assert unfinished


def test_nesting_costs_no_stack():
    """A million brackets are counted, not followed; the decoder has its own limit."""
    deep = b"[" * 1_000_000 + b"]" * 1_000_000

    assert read(ArrayStream(), b"[" + deep + b"]") == ([deep], False)


# ---- limits ----


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("reader", "fits", "too_large", "words"),
    [
        (EventStream, b"data: 1234\r\n\r\n", b"data: 12345\n\n", "an event of the answer has more"),
        (EventStream, b"\n\n\ndata: 1234\n\n", b"data: 1\n: 2\n\n", "an event of the answer"),
        (EventStream, b"data:\ndata\n\n", b"unknown: 123", "an event of the answer has more"),
        (LineStream, b'"12345678"\n', b'"123456789"\n', "a line of the answer has more"),
        (LineStream, b"1\n\n\n\n\n\n\n\n\n", b"1\n" + b" " * 11, "a line of the answer has more"),
        (ArrayStream, b'["12345678"]', b'["123456789"]', "an element of the answer has more"),
        (ArrayStream, b"[1234567890            ]", b"[12345678901", "an element of the answer"),
        (ArrayStream, b"[[1,2,[],4]]", b"[[1,2,[],45]]", "an element of the answer"),
    ],
)
def test_an_item_has_a_largest_size(reader, fits, too_large, words, size):
    """At the limit it passes, one byte above it is an error, in whatever pieces."""
    _, error, unfinished, _ = outcome(reader(size_max=10), pieces(fits, size))
    assert (error, unfinished) == (None, False)

    _, error, unfinished, _ = outcome(reader(size_max=10), pieces(too_large, size))
    assert words in error and "than 10 bytes" in error
    assert unfinished


def test_what_came_before_the_error_is_given():
    """One chunk with two good events and one that is too large: two events, then the error."""
    reader = EventStream(size_max=20)

    assert len(reader.feed(b"data: 1\n\ndata: 2\n\ndata: " + b"3" * 20)) == 2
    with pytest.raises(ProtocolError, match="more than 20 bytes"):
        reader.feed(b"\n\n")


@pytest.mark.parametrize("reader", READERS)
def test_sixteen_mebibytes_pass_and_no_more(reader):
    """The limit is 16 MiB unless told otherwise."""
    before, after = {EventStream: (b"", b"\n\n"), LineStream: (b"", b"\n")}.get(
        reader, (b"[", b"]")
    )
    item = b'"' + b"x" * (16 * MIB - 2) + b'"'
    event = b"data: " + item[6:]
    text = event if reader is EventStream else item

    (found,), unfinished = read(reader(), before + text + after)
    assert not unfinished
    assert found == (Event("message", item[6:]) if reader is EventStream else item)

    assert outcome(reader(), [before + text[:-1] + b'xx"' + after])[1] is not None


# ---- any pieces ----

FRAGMENTS = st.sampled_from(
    [b"data", b"event", b"data: ", b"data:", b"event: ", b"id: 1", b"retry: 0", b":", b" ", b"\n"]
    + [b"\n\n", b"\r", b"\r\n", b"\r\n\r\n", b"\xef\xbb\xbf", b"\xef", b"x", b"\x00", b"\xff"]
    + ["é😀".encode(), b'{"a":1}', b"[", b"]", b"{", b"}", b",", b'"', b"\\", b"\\u005b", b"12"]
)
TEXTS = st.one_of(st.binary(max_size=200), st.lists(FRAGMENTS, max_size=40).map(b"".join))
CUTS = st.lists(st.integers(0, 10_000), max_size=12)


@pytest.mark.parametrize("reader", READERS)
@given(text=TEXTS, cuts=CUTS, start=st.sampled_from([b"", b"["]), size_max=st.integers(1, 60))
@example(text=b"\xef\xbb\xbf\r\n\r\n", cuts=[1, 2, 4, 5, 6], start=b"", size_max=1)
def test_any_pieces_give_the_same(reader, text, cuts, start, size_max):
    """Items, error and what is left over do not depend on how the bytes arrived."""
    text = start + text

    at_once = outcome(reader(size_max), [text])

    assert outcome(reader(size_max), split_at(text, cuts)) == at_once
    assert outcome(reader(size_max), pieces(text, 1)) == at_once


@given(text=TEXTS, cuts=CUTS)
def test_events_and_lines_are_those_of_the_simple_reader(text, cuts):
    """Any bytes at all, not only good streams."""
    for reader, simple in ((EventStream(), simple_events), (LineStream(), simple_lines)):
        items, error, unfinished, _ = outcome(reader, split_at(text, cuts))

        assert error is None
        assert (items, unfinished) == simple(text)


@given(st.builds(lambda head, text: head + text, st.binary(max_size=6), TEXTS))
@example(b"")
def test_the_fuzzer_finds_nothing(data):
    """What `fuzz_stream.py` runs for minutes holds for some examples, here."""
    check(data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=5), CUTS, st.sampled_from([None, 2]), st.booleans())
def test_the_elements_are_those_of_json(values, cuts, indent, ascii_only):
    text = json.dumps(values, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "replace")

    items, error, unfinished, _ = outcome(ArrayStream(), split_at(text, cuts))

    assert (error, unfinished) == (None, False)
    assert [json.loads(item) for item in items] == json.loads(text)


# ---- cut short ----

STREAMS = [
    (
        EventStream,
        b"event: a\r\ndata: {}\r\n\r\n: c\r\n\r\ndata: 1\r\ndata: 2\r\n\r\ndata: [DONE]\r\n\r\n",
    ),
    (EventStream, "event: a\ndata: é\nid: 1\n\n\n:\n\ndata\n\ndata: [DONE]\n\n".encode()),
    (LineStream, '{"a": "é"}\n\n{"b": 12}\r\n12\n'.encode()),
    (ArrayStream, '[{"a": "é]\\""},\n 12, "x", [1, {}]]\n'.encode()),
]


def cut_short(reader, text):
    """Hold the stream, cut at each byte, against the whole one."""
    items, unfinished = read(reader(), text)
    assert not unfinished
    for end in range(len(text)):
        some, broken = read(reader(), text[:end])
        assert some == items[: len(some)]
        if reader is ArrayStream:
            assert broken == bool(text[end:].strip())
        elif not broken:  # then the cut is between two items, and the rest is a stream too
            assert some + read(reader(), text[end:])[0] == items


@pytest.mark.parametrize(("reader", "text"), STREAMS)
def test_a_stream_that_breaks_off_gives_nothing_of_its_own(reader, text):
    """
    Cut at any byte, it gives the first items of the whole stream and no other, and says that
    something is left over if it was cut inside an item.
    """
    cut_short(reader, text)


# ---- the time and the room it takes ----


def in_time(chunks, limit_s=20):
    """The chunks, as long as there is time; each piece of work between two of them is short."""
    end = time.monotonic() + limit_s
    for chunk in chunks:
        assert time.monotonic() < end
        yield chunk
    assert time.monotonic() < end


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(("size", "piece"), [(MIB, 1), (15 * MIB, KIB)])
def test_a_large_item_in_small_pieces_takes_linear_time(uncovered, reader, size, piece):
    """About a second; to look with each piece at all that is there would take minutes."""
    start, end = {EventStream: (b"data: ", b"\n\n"), LineStream: (b"", b"\n")}.get(
        reader, (b"[", b"]")
    )
    data = b'"' + b"\\\\ab" * (size // 4) + b'"'
    text = start + data + end

    items, error, unfinished, _ = outcome(reader(), in_time(pieces(text, piece)))

    assert (error, unfinished) == (None, False)
    assert items == [("message", data) if reader is EventStream else data]


@pytest.mark.parametrize(
    ("reader", "text"),
    [
        (EventStream, b"\n" * MIB),
        (EventStream, b"\r" * MIB),
        (EventStream, b":\n\n" * (MIB // 3)),
        (EventStream, b"data\n" * (MIB // 5) + b"\n"),
        (EventStream, b"x\n" * (MIB // 2) + b"\n"),
        (LineStream, b"\n" * MIB),
        (ArrayStream, b"[" + b"1," * (MIB // 2) + b"1]"),
        (ArrayStream, b"[" + b" " * MIB + b"]"),
        (ArrayStream, b'["' + b'\\"' * (MIB // 2) + b'"]'),
        (ArrayStream, b"[[" + b'"",' * (MIB // 3) + b'""]]'),
    ],
    ids=lambda value: repr(value[:12]) if isinstance(value, bytes) else value.__name__,
)
def test_odd_streams_take_linear_time(uncovered, reader, text):
    """Many small things instead of a large one: in one chunk and in several."""
    at_once = outcome(reader(), in_time([text]))

    assert outcome(reader(), in_time(pieces(text, KIB))) == at_once
    assert at_once[1:3] == (None, False)


@pytest.mark.parametrize(
    "line", [b"data: %s\n\n", b"event: a\ndata: %s\n\n", b"data:ab\n" * 2**20 + b"\n"]
)
def test_a_large_event_is_not_held_many_times(uncovered, line):
    """At most the limit and 32 MiB (F08), whatever the event is made of."""
    text = line % (b"x" * (16 * MIB - 20)) if b"%s" in line else line
    chunks = pieces(text, 64 * KIB)
    del text
    tracemalloc.start()
    try:
        reader = EventStream()
        for chunk in chunks:
            events = reader.feed(chunk)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(events) == 1
    assert peak <= 48 * MIB


# ---- recorded streams ----


def recorded(path):
    for exchange in json.loads(path.read_bytes())["exchanges"]:
        answer = exchange["response"]
        for form, reader, simple in (
            ("sse", EventStream, simple_events),
            ("ndjson", LineStream, simple_lines),
        ):
            if answer.get(form) is not None:
                yield reader, simple, answer[form].encode()


@pytest.mark.skipif(not RECORDED, reason=f"no recorded traffic in {CORPUS} (HOLDFAST_CORPUS)")
def test_recorded_streams_are_read_as_the_simple_reader_reads_them(uncovered, subtests):
    """Every recorded stream: in one chunk, byte by byte, in random pieces; short ones cut short."""
    chance = random.Random(0)
    count = 0
    for path in RECORDED:
        with subtests.test(path=path.name):
            for reader, simple, text in recorded(path):
                items, unfinished = simple(text)
                cuts = [chance.randrange(len(text) + 1) for _ in range(len(text) // 100 + 1)]
                at_once = outcome(reader(), [text])
                assert at_once[:3] == (items, None, unfinished)
                assert outcome(reader(), pieces(text, 1)) == at_once
                assert outcome(reader(), split_at(text, cuts)) == at_once
                if len(text) <= 4 * KIB and not unfinished:
                    cut_short(reader, text)
                count += 1
    assert count > 100


@pytest.mark.skipif(not RECORDED, reason=f"no recorded traffic in {CORPUS} (HOLDFAST_CORPUS)")
def test_recorded_arrays_are_read_element_by_element():
    """A Google stream without alt=sse is one array; its elements come out as they went in."""
    bodies = [
        exchange["response"]["body"]
        for path in RECORDED
        for exchange in json.loads(path.read_bytes())["exchanges"]
        if isinstance(exchange["response"].get("body"), list)
    ]
    assert bodies
    for body in bodies:
        text = json.dumps(body, indent=2, ensure_ascii=False).encode()

        items, error, unfinished, _ = outcome(ArrayStream(), pieces(text, 7))

        assert (error, unfinished) == (None, False)
        assert [json.loads(item) for item in items] == body
