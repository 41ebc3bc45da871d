"""Text: a lone surrogate never gets in; everything else is kept, NUL included."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import text
from holdfast.errors import InvalidInput

HIGH, LOW = "\ud83d", "\ude00"

ANY_TEXT = st.text(st.characters())  # surrogates included
STORABLE = st.text(st.characters(exclude_categories=["Cs"]))
WITH_HALVES = st.text(
    st.sampled_from(["a", "\0", "é", "\U0001f600", HIGH, LOW, "\ud800", "\udfff"])
)

KEPT = {
    "empty": "",
    "nul": "a\0b",
    "only-nul": "\0",
    "noncharacters": "\ufffe\uffff\U0010ffff",
    "replacement": "\ufffd",
    "line-ends": "a\u2028b\u2029c\x85d\x0be\x0cf\rg\r\nh",
    "combining": "e" + "\u0301" * 10_000,
    "rtl": "\u202eabc",
    "emoji": "👩‍👩‍👧",
    "last-before-surrogates": "\ud7ff",
    "first-after-surrogates": "\ue000",
    "terminal": "\x1b]52;c;x\x07",
}

LONE = {
    "high-alone": "\ud800",
    "low-alone": "\udc00",
    "last-high": "\udbff",
    "last-low": "\udfff",
    "at-the-start": HIGH + "abc",
    "at-the-end": "abc" + HIGH,
    "in-the-middle": "ab" + LOW + "cd",
    "behind-nul": "\0" + HIGH,
    "wrong-order": LOW + HIGH,
    "two-highs": HIGH + HIGH,
    "after-a-megabyte": "x" * 2**20 + LOW,
    "as-surrogateescape-leaves-it": b"\xff".decode("utf-8", "surrogateescape"),
}


def halves(sentence):
    """Count and mend by reading one character after the other: slow, and plainly right."""
    out, lone, at = [], 0, 0
    while at < len(sentence):
        here, then = sentence[at], sentence[at + 1 : at + 2]
        if "\ud800" <= here <= "\udbff" and "\udc00" <= then <= "\udfff":
            out.append(chr(0x10000 + ((ord(here) - 0xD800) << 10) + (ord(then) - 0xDC00)))
            at += 2
            continue
        is_half = "\ud800" <= here <= "\udfff"
        lone += is_half
        out.append("\ufffd" if is_half else here)
        at += 1
    return "".join(out), lone


@pytest.mark.parametrize("name", KEPT)
def test_text_that_utf_8_can_carry_is_accepted_and_kept(name):
    """Bad inputs 32, 33, 35: NUL, noncharacters and odd line ends are plain characters."""
    sentence = KEPT[name]

    text.check(sentence, "content")

    assert text.mend(sentence) == (sentence, 0)
    assert text.decode(sentence.encode()) == (sentence, 0)


@pytest.mark.parametrize("name", LONE)
def test_a_lone_surrogate_from_a_caller_is_a_typed_error_that_names_it(name):
    """Bad inputs 31: in every position; the error says which text it was."""
    with pytest.raises(InvalidInput, match="the seventh field") as caught:
        text.check(LONE[name], "the seventh field")

    str(caught.value).encode()  # the error itself can be printed and stored


def test_two_halves_side_by_side_are_refused_from_a_caller():
    """A Python string that holds a pair in halves cannot be written as UTF-8 either."""
    with pytest.raises(InvalidInput):
        text.check("a" + HIGH + LOW, "content")


@pytest.mark.parametrize("name", LONE)
def test_a_lone_surrogate_from_elsewhere_becomes_a_replacement_and_is_counted(name):
    """Bad inputs 31: text from a model, a tool or a file is mended, and nothing else changes."""
    mended, count = text.mend(LONE[name])

    assert (mended, count) == halves(LONE[name])
    assert count >= 1
    assert mended.count("\ufffd") == count


def test_a_pair_in_halves_becomes_its_character_and_is_no_damage():
    """An emoji cut in half by a stream and put together again is the emoji."""
    assert text.mend("a" + HIGH + LOW + "b") == ("a😀b", 0)
    assert text.mend(HIGH + HIGH + LOW + LOW) == ("\ufffd😀\ufffd", 2)


def test_a_replacement_that_was_there_before_is_not_counted():
    """The count is of what was mended here, so that a mark is left only where one is due."""
    assert text.mend("\ufffd" + HIGH) == ("\ufffd\ufffd", 1)
    assert text.decode("\ufffd".encode() + b"\xff") == ("\ufffd\ufffd", 1)


@given(ANY_TEXT | WITH_HALVES)
def test_mending_agrees_with_the_slow_reading_and_the_result_can_be_stored(sentence):
    """Bad inputs 31, for any text: the result passes the check that callers get."""
    mended, count = text.mend(sentence)

    assert (mended, count) == halves(sentence)
    text.check(mended, "mended")
    assert text.mend(mended) == (mended, 0)


@given(ANY_TEXT | WITH_HALVES)
def test_the_check_refuses_exactly_what_utf_8_cannot_carry(sentence):
    """Neither more nor less: all storable text gets in."""
    try:
        sentence.encode()
        is_storable = True
    except UnicodeEncodeError:
        is_storable = False

    try:
        text.check(sentence, "content")
        is_accepted = True
    except InvalidInput:
        is_accepted = False
    assert is_accepted == is_storable


@given(STORABLE)
def test_bytes_that_are_utf_8_are_read_as_they_are(sentence):
    """Nothing is lost where nothing is wrong; a byte order mark is a character too."""
    assert text.decode(sentence.encode()) == (sentence, 0)
    assert text.decode(b"\xef\xbb\xbf" + sentence.encode()) == ("\ufeff" + sentence, 0)


@given(st.binary())
def test_bytes_that_are_not_utf_8_become_replacements_and_are_counted(data):
    """Bad inputs 34: never an exception; each bad piece is one U+FFFD, and the rest is kept."""
    genuine = data.count("\ufffd".encode())

    read, count = text.decode(data)

    assert read == data.decode("utf-8", "replace")
    assert read.count("\ufffd") - count == genuine
    text.check(read, "read")


def test_utf_16_from_a_tool_is_damage_that_is_counted():
    """Bad inputs 34: UTF-16LE output of a tool, with its byte order mark."""
    read, count = text.decode(b"\xff\xfe" + "hé".encode("utf-16-le"))

    assert read == "\ufffd\ufffdh\0\ufffd\0"
    assert count == 3


@pytest.mark.parametrize("data", [b"\xed\xa0\x80", b"\xed\xa0\xbd\xed\xb8\x80"], ids=["one", "two"])
def test_surrogates_written_as_bytes_do_not_get_in(data):
    """CESU-8, as some tools write it, is not UTF-8."""
    read, count = text.decode(b"a" + data + b"b")

    text.check(read, "read")
    assert count > 0
    assert read.startswith("a")
    assert read.endswith("b")
