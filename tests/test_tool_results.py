"""What a tool gave back, as a model reads it: nothing is lost, cut or changed without a word."""

import array
import json
from collections import OrderedDict, UserDict, defaultdict, namedtuple
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from types import MappingProxyType
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import codec
from holdfast.errors import InvalidInput
from holdfast.frozen import FrozenDict
from holdfast.messages import Role, ToolCall
from holdfast.parts import Audio, CallRef, File, Image, Opaque, Text, Thinking, Unknown
from holdfast.steps.tool_results import (
    RESULT_BYTES_MAX,
    Content,
    answered,
    content_of,
    failed,
    unknown_tool,
)

CALL = ToolCall(id="call_1", name="look", arguments="{}")
PICTURE = Image(data=b"\x89PNG", media_type="image/png")
NAN, INFINITY = float("nan"), float("inf")


class Word(StrEnum):
    HELLO = "hello"


class Loud(str):
    def __str__(self):
        return "LOUD"


class Level(IntEnum):
    HIGH = 3


class Colour(Enum):
    RED = "red"


class Point(msgspec.Struct):
    y: int
    x: int = 0


@dataclass
class Place:
    lat: float
    name: str | None = None


Pair = namedtuple("Pair", "first second")


class Strange:
    """Not a type that JSON knows."""


# ---- what is returned ----


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("words", "words"),
        ("", ""),
        ("null", "null"),
        ("a\0b\x1b[2J\u2028\U0001f600", "a\0b\x1b[2J\u2028\U0001f600"),
        (Word.HELLO, "hello"),
        (Loud("as it is"), "as it is"),
        (None, "null"),
        (True, "true"),
        (0, "0"),
        (-7, "-7"),
        (10**30, "1" + "0" * 30),
        (1.5, "1.5"),
        (1e300, "1e300"),
        ([], "[]"),
        ({}, "{}"),
        ((), "[]"),
        ([1, "é", None, [2.0]], '[1,"é",null,[2.0]]'),
        ((1, 2), "[1,2]"),
        (["only", "words"], '["only","words"]'),
        ({"z": 1, "a": {"y": 2, "b": 3}}, '{"z":1,"a":{"y":2,"b":3}}'),
        ({1: "one", 2.5: "more"}, '{"1":"one","2.5":"more"}'),
        (OrderedDict(b=1, a=2), '{"b":1,"a":2}'),
        (defaultdict(int, a=1), '{"a":1}'),
        (MappingProxyType({"b": 1, "a": None}), '{"b":1,"a":null}'),
        (UserDict(a=[1]), '{"a":[1]}'),
        (FrozenDict({"a": (1, 2)}), '{"a":[1,2]}'),
        ({5}, "[5]"),
        (Point(1), '{"y":1,"x":0}'),
        ([Place(1.5)], '[{"lat":1.5,"name":null}]'),
        (Pair(1, "x"), '[1,"x"]'),
        (Level.HIGH, "3"),
        (Colour.RED, '"red"'),
        (datetime(2024, 2, 29, 12, tzinfo=UTC), '"2024-02-29T12:00:00Z"'),
        (date(2024, 2, 29), '"2024-02-29"'),
        (timedelta(minutes=1), '"PT60S"'),
        (UUID(int=5), '"00000000-0000-0000-0000-000000000005"'),
        (Decimal("1.10"), '"1.10"'),
        (b"caf\xc3\xa9", "café"),
        (bytearray(b"abc"), "abc"),
        (memoryview(b"abcdef")[::2], "ace"),
        (b"", ""),
        ({"raw": b"\xff\0"}, '{"raw":"/wA="}'),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_each_value_has_its_words(value, content):
    """Text as it is; everything else that JSON can carry as compact JSON, in its own order."""
    assert content_of(value) == (content, 0)
    assert type(content_of(value).content) is str


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS,
    lambda inner: st.lists(inner | TEXTS) | st.dictionaries(TEXTS, inner | TEXTS),
    max_leaves=20,
)


@given(VALUES)
def test_json_says_what_the_value_was(value):
    """Read back, it is the same value, keys in the same order."""
    found = json.loads(content_of(value).content)

    assert found == value
    assert json.dumps(found) == json.dumps(value)


@pytest.mark.parametrize(
    ("value", "content"),
    [
        (NAN, '"NaN"'),
        (INFINITY, '"Infinity"'),
        ({"low": -INFINITY, "mean": [NAN, None]}, '{"low":"-Infinity","mean":["NaN",null]}'),
        (Place(NAN, "x"), '{"lat":"NaN","name":"x"}'),
        ({"n": Decimal("NaN")}, '{"n":"NaN"}'),
    ],
    ids=repr,
)
def test_a_number_that_json_has_no_word_for_is_told_in_a_string(value, content):
    """null would say that there is none."""
    assert content_of(value).content == content


def test_parts_stay_parts():
    """A picture reaches the model as a picture, alone or among words."""
    for made in (PICTURE, Text("x"), Audio(url="https://x/y"), File(data=b"%PDF", name="a.pdf")):
        assert content_of(made) == ((made,), 0)
    assert content_of([PICTURE, "below", Word.HELLO]).content == (
        PICTURE,
        Text("below"),
        Text("hello"),
    )
    assert content_of((PICTURE,)).content == (PICTURE,)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Strange(), "the result has a Strange in it, which JSON cannot carry: return text"),
        ({"a": [Strange()]}, "has a Strange in it"),
        ([object], "has a type in it"),
        (print, "has a builtin_function_or_method in it"),
        ((n for n in "ab"), "has a generator in it"),
        (ValueError("x"), "has a ValueError in it"),
        (Path("x"), "Path in it"),
        (1j, "has a complex in it"),
        (array.array("i", [1]), "has a array in it"),
        ({(1, 2): 3}, "has a tuple for a key, which JSON cannot carry"),
        (10**5_000, "is a int that JSON cannot carry"),
        (b"\xff\xfe", "is 2 bytes that are not UTF-8 text: return text, or an Image"),
        (bytearray(b"\xff"), "is 1 bytes that are not UTF-8"),
        ([PICTURE, {"a": 1}], "has a dict among its parts"),
        ([PICTURE, None], "has a NoneType among its parts"),
        (Thinking("hm"), "has a Thinking among its parts"),
        ([CallRef("c")], "has a CallRef among its parts"),
        (Opaque("x", {}), "has a Opaque among its parts"),
        (Unknown({"type": "new"}), "has a Unknown among its parts"),
    ],
    ids=lambda value: value[:60] if isinstance(value, str) else type(value).__name__,
)
def test_what_json_cannot_carry_is_told_by_its_type(value, words):
    """Bad input 117: an error that names it, and says what to return."""
    with pytest.raises(InvalidInput) as caught:
        content_of(value)

    assert words in str(caught.value)
    assert " at 0x" not in str(caught.value)


def test_a_value_that_holds_itself_is_refused():
    """Bad input 117: no endless walk, and none through a thousand levels."""
    circle = []
    circle.append(circle)
    deep = None
    for _ in range(100_000):
        deep = [deep]

    for value in (circle, deep, {"a": circle}):
        with pytest.raises(InvalidInput, match="nested too deeply, or holds itself"):
            content_of(value)
    while deep:  # or the interpreter takes it apart with its own stack
        deep = deep.pop()


# ---- broken characters ----


@pytest.mark.parametrize(
    ("value", "content", "mended"),
    [
        ("a\ud800b", "a\ufffdb", 1),
        ("\ud83d\ude00", "\U0001f600", 0),
        (["\udc00", "x", "\ud800\ud800"], '["\ufffd","x","\ufffd\ufffd"]', 3),
        ({"k\ud800": {"v": "\ud800"}, "n": NAN}, '{"k\ufffd":{"v":"\ufffd"},"n":"NaN"}', 2),
        (Place(1.0, "\ud800"), '{"lat":1.0,"name":"\ufffd"}', 1),
        ([PICTURE, "\ud800"], (PICTURE, Text("\ufffd")), 1),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_half_of_a_surrogate_pair_is_replaced_and_counted(value, content, mended):
    """Nothing could store or send it; the message says how many there were."""
    found = content_of(value)
    message = answered(CALL, found)

    assert found == (content, mended)
    assert message.extra == ({"mended": mended} if mended else {})
    assert codec.record(message)


def test_keys_that_differ_in_broken_characters_alone_are_refused():
    """One of them would be lost."""
    with pytest.raises(InvalidInput, match="halves of surrogate pairs"):
        content_of(dict.fromkeys(("\ud800", "\udbff"), 1))


# ---- sizes ----


@pytest.mark.parametrize(
    "value_of",
    [
        lambda size: "x" * size,
        lambda size: "é" * (size // 2) + "x" * (size % 2),
        lambda size: b"x" * size,
        lambda size: ["x" * (size - 4)],
        lambda size: [PICTURE, "x" * (size - 4)],
        lambda size: Text("x" * size),
        lambda size: Image(data=b"x" * size),
        lambda size: File(url="data:" + "x" * (size - 5)),
    ],
    ids=["ascii", "letters", "bytes", "list", "among parts", "Text", "Image", "address"],
)
@pytest.mark.parametrize("size", [1_000, RESULT_BYTES_MAX], ids=str)
def test_what_is_just_small_enough_is_taken_whole_and_one_byte_more_is_refused(value_of, size):
    """An error says how large it was and what is allowed; nothing is cut."""
    whole = value_of(size)
    content = content_of(whole, size).content
    with pytest.raises(InvalidInput) as caught:
        content_of(value_of(size + 1), size)

    assert content == content_of(whole, 2 * size).content
    assert sum(map(len, texts_in(content))) >= size // 2
    assert str(caught.value) == (
        f"the result is too large: {size + 1:,} bytes, and at most {size:,} are taken; "
        "ask for a smaller part of it"
    )


def texts_in(content):
    if isinstance(content, str):
        return [content]
    return [getattr(part, "text", None) or part.data or part.url for part in content]


# ---- messages ----


def test_a_result_is_a_tool_message():
    """It answers the call, under the name of the tool."""
    message = answered(CALL, Content("seen"))

    assert (message.role, message.tool_call_id, message.name) == (Role.TOOL, "call_1", "look")
    assert (message.content, message.is_error, message.extra) == ("seen", False, {})


def test_an_error_is_a_tool_message_that_says_so():
    """The words of the error, or its name if it has none."""
    message = failed(CALL, LookupError("nothing \ud800"))

    assert (message.role, message.tool_call_id, message.name) == (Role.TOOL, "call_1", "look")
    assert (message.content, message.is_error) == ("error: nothing \ufffd", True)
    assert message.extra == {"mended": 1}
    assert failed(CALL, LookupError()).content == "error: LookupError"


def test_a_call_of_a_tool_that_is_not_offered_names_those_that_are():
    """A model can act on that."""
    message = unknown_tool(CALL, ["find", "read"])

    assert message.content == "error: there is no tool 'look': the tools are find, read"
    assert (message.is_error, message.tool_call_id, message.name) == (True, "call_1", "look")
    assert unknown_tool(CALL, []).content == (
        "error: there is no tool 'look': there are no tools now"
    )


def test_an_unknown_name_as_long_as_a_book_is_not_repeated():
    """Bad input 109: nor are ten thousand tools listed; the call's own name is kept."""
    call = CALL.replace(name="x\x1b[2J\n" * 10_000)

    message = unknown_tool(call, (f"tool {n}" for n in range(10_000)))

    assert len(message.content) < 5_000
    assert "\x1b" not in message.content
    assert message.content.endswith("tool 299, ...")
    assert message.name == call.name
