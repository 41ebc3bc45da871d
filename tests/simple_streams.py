"""The framings of `holdfast.providers.stream`, read as simply as can be, and ways to cut bytes.

The simple readers have the whole bytes at once. That of events goes through the sentences of the
WHATWG standard ("Interpreting an event stream") one after the other. Each returns the items, and
whether the stream broke off inside one. `check` is what our readers are held to, by tests and by
the fuzzer.
"""

import json
import re
from itertools import pairwise

from holdfast.errors import ProtocolError
from holdfast.providers.stream import SIZE_MAX, ArrayStream, EventStream, LineStream

MARK = b"\xef\xbb\xbf"


def simple_events(text):
    *lines, last = re.split(rb"\r\n|\n|\r", text.removeprefix(MARK))
    events, data, name, begun = [], bytearray(), b"", False
    for line in lines:
        if line == b"":
            if data != b"":
                events.append((name.decode("utf-8", "replace") or "message", bytes(data[:-1])))
            data, name, begun = bytearray(), b"", False
        elif not line.startswith(b":"):
            begun = True
            field, value = line.split(b":", 1) if b":" in line else (line, b"")
            if value.startswith(b" "):
                value = value[1:]
            if field == b"event":
                name = value
            elif field == b"data":
                data += value + b"\n"
    return events, begun or last != b""


def simple_lines(text):
    *lines, last = text.removeprefix(MARK).split(b"\n")
    return [line.strip() for line in lines if line.strip()], last.strip() != b""


def outcome(reader, chunks):
    """All items, the sentence of the error behind them, and what was left over."""
    items, error = [], None
    try:
        for chunk in chunks:
            items += reader.feed(chunk)
        items += reader.finish()
    except ProtocolError as found:
        error = str(found)
    return items, error, reader.is_unfinished, b"" if error else reader.left_over


def pieces(text, size):
    return [text[at : at + size] for at in range(0, len(text), size)]


def split_at(text, cuts):
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[a:b] for a, b in pairwise(places)]


def check(data):
    """Assert that no reader depends on the cuts, and that the simple ones read the same.

    The first six bytes choose the reader, its limit and the cuts; the others are the stream.
    """
    head, text = data[:6].ljust(6, b"\0"), data[6:]
    reader, simple = (
        (EventStream, simple_events),
        (LineStream, simple_lines),
        (ArrayStream, None),
    )[head[0] % 3]
    size_max = head[1] or SIZE_MAX
    cuts = [byte * (len(text) // 256 + 1) + byte for byte in head[2:]]
    at_once = outcome(reader(size_max), [text])
    assert outcome(reader(size_max), split_at(text, cuts)) == at_once
    assert outcome(reader(size_max), pieces(text, 1)) == at_once
    items, error, unfinished, _ = at_once
    if simple and not error:
        assert (items, unfinished) == simple(text)
    elif reader is ArrayStream:
        _check_array(text, items, is_whole=not error and not unfinished)


def _check_array(text, items, is_whole):
    """Where json can read the whole, it reads the same elements."""
    try:
        values = json.loads(text.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return
    if is_whole:
        # Not the values: NaN is not equal to itself.
        assert isinstance(values, list)
        assert repr([json.loads(item) for item in items]) == repr(values)
