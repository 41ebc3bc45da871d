"""Reading JSON that we did not write: what is refused, what is mended, and what is kept."""

import json
import math
import time
import tracemalloc

import pytest

from holdfast import codec
from holdfast.codec import writing
from holdfast.entries import Mark
from holdfast.errors import InvalidInput, TooLarge
from holdfast.frozen import FrozenDict
from holdfast.messages import Message
from holdfast.strict import Limits, parse

ROOMY = Limits(bytes_max=1024, depth_max=4, items_max=8)


# --- limits ---------------------------------------------------------------------------------


def test_the_limits_are_64_mib_64_levels_and_100000_elements():
    """The numbers are part of the contract: a caller may rely on what is taken."""
    assert (codec.LIMITS.bytes_max, codec.LIMITS.depth_max, codec.LIMITS.items_max) == (
        64 * 1024 * 1024,
        64,
        100_000,
    )


@pytest.mark.parametrize("text", ['"abcdefgh"', '"äöüé"'])
def test_a_document_of_exactly_the_size_is_taken_and_one_byte_more_is_not(text):
    """Size is counted in bytes of UTF-8, for bytes and for text (bad input 41)."""
    size = len(text.encode())

    assert parse(text.encode(), Limits(bytes_max=size)).value == json.loads(text)
    assert parse(text, Limits(bytes_max=size)).value == json.loads(text)
    with pytest.raises(TooLarge):
        parse(text.encode(), Limits(bytes_max=size - 1))
    with pytest.raises(TooLarge):
        parse(text, Limits(bytes_max=size - 1))


def nested(levels, kinds):
    """A document of that many levels, which are lists and objects in turn as `kinds` says."""
    document = ""
    for level in range(levels):
        kind = kinds[level % len(kinds)]
        document = f"[{document}]" if kind == "[" else f'{{"a":{document or 1}}}'
    return document


@pytest.mark.parametrize("kinds", ["[", "{", "[{"], ids=["lists", "objects", "both"])
def test_64_levels_are_taken_and_65_are_refused(kinds):
    """The boundary of bad input 38, in lists, objects and both."""
    assert json.loads(writing.dumps(parse(nested(64, kinds)).value)) == json.loads(
        nested(64, kinds)
    )

    with pytest.raises((InvalidInput, TooLarge)):
        parse(nested(65, kinds))


@pytest.mark.parametrize(
    "document",
    ["[" * 100_000, '{"a":' * 100_000, "[" * 100_000 + "]" * 100_000],
    ids=["lists", "objects", "closed lists"],
)
def test_endless_nesting_is_a_typed_error_and_no_recursion_error(document):
    """Bad input 38: a hundred thousand `[` ends some parsers with RecursionError."""
    with pytest.raises((InvalidInput, TooLarge)):
        parse(document)


def test_depth_follows_the_given_limit():
    assert parse("[[[[1]]]]", ROOMY).value == ((((1,),),),)

    with pytest.raises((InvalidInput, TooLarge)):
        parse("[[[[[1]]]]]", ROOMY)


@pytest.mark.parametrize("document", ["[1,2,3,4,5,6,7,8]", '{"a":1,"b":2,"c":[3,4,5,6]}'])
def test_elements_are_counted_up_to_the_limit(document):
    assert parse(document, ROOMY).value is not None


@pytest.mark.parametrize(
    "document",
    [
        "[1,2,3,4,5,6,7,8,9]",
        "[[1,2,3],[4,5,6],[7,8,9]]",
        '{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9}',
        "[[],[],[],[],[],[],[],[],[]]",
        "[{},{},{},{},{},{},{},{},{}]",
    ],
)
def test_more_elements_than_allowed_are_too_large(document):
    """Elements count in all, wherever they stand (bad input 40)."""
    with pytest.raises(TooLarge):
        parse(document, ROOMY)


@pytest.mark.parametrize(
    "document", ['["a,b,c,d,e,f,g,h,i,j,k"]', r'["\",,,,,,,,,,,,,,,,\\"]', '"[[[[[[[["']
)
def test_punctuation_inside_text_is_not_counted(document):
    """Only structure counts: a long sentence with commas or brackets is one element."""
    assert parse(document, ROOMY).value == (
        tuple(json.loads(document)) if document[0] == "[" else json.loads(document)
    )


def test_a_hostile_document_of_64_mib_is_refused_without_being_built():
    """Twenty million empty lists would take gigabytes: they are counted first (bad input 40)."""
    document = b"[" + b"[]," * ((64 * 1024 * 1024 - 8) // 3) + b"[]]"
    assert len(document) <= codec.LIMITS.bytes_max
    tracemalloc.start()
    try:
        begun = time.perf_counter()
        with pytest.raises(TooLarge):
            parse(document)
        took = time.perf_counter() - begun
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 400 * 1024 * 1024
    assert took < 20, "refusing is to be much quicker than reading"


# --- what is not JSON -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "document",
    [
        "",
        " ",
        "\n\t\r ",
        "{",
        "[1,]",
        '{"a":1,}',
        "{'a':1}",
        "[1 2]",
        "nul",
        "True",
        '"a',
        '"a\nb"',
        '"\\x41"',
        "01",
        "1.",
        ".5",
        "+1",
        "0x10",
        "1_000",
        "[1]]",
        "{} {}",
        "1 2",
        "[]x",
        "\x00",
        "[]\x00",
        "\xa0[]",
        "\x0b[]",
        "[]\x0c",
        "/**/[]",
        "[]//",
        '{"a"}',
        "{1:2}",
        "[,]",
        "-",
        "--1",
        '"\t"',
    ],
)
@pytest.mark.parametrize("form", ["text", "bytes"])
def test_what_is_not_json_is_refused(document, form):
    """Nothing, blanks, broken syntax and anything behind the value are InvalidInput."""
    with pytest.raises(InvalidInput):
        parse(document if form == "text" else document.encode())


@pytest.mark.parametrize(
    "document", ["NaN", "Infinity", "-Infinity", "[NaN]", '{"a":[{"b":-Infinity}]}', "nan", "inf"]
)
def test_numbers_that_json_does_not_have_are_refused(document):
    """Python's parser would take them, and nobody else would (bad input 36)."""
    with pytest.raises(InvalidInput):
        parse(document)


@pytest.mark.parametrize(
    "document", ["1e400", "-1e400", "[1E+999]", '{"a":1.5e309}', "1" * 400 + ".0"]
)
def test_numbers_beyond_a_floats_range_are_refused(document):
    """1e400 would load as infinity, and be written as something that is not JSON (36)."""
    with pytest.raises(InvalidInput):
        parse(document)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_other_encodings_are_refused(encoding):
    """JSON that is exchanged is UTF-8; anything else would be half understood."""
    with pytest.raises(InvalidInput):
        parse('{"role":"user"}'.encode(encoding))


def test_a_byte_order_mark_in_front_changes_nothing():
    """RFC 8259 lets a reader pass over it; programs on Windows write it."""
    assert parse(b"\xef\xbb\xbf[1]") == parse(b"[1]")
    assert parse("\ufeff[1]") == parse("[1]")

    with pytest.raises(InvalidInput):
        parse("\ufeff\ufeff[1]")


@pytest.mark.parametrize(
    "document",
    [
        '{"role":"user","role":"system"}',
        '[{"a":{"b":1,"b":1}}]',
        r'{"a":1,"\u0061":2}',
        '{"":1,"":2}',
    ],
    ids=["top", "deep", "escaped", "empty"],
)
def test_duplicate_keys_are_refused_at_any_level(document):
    """Which of the two counts differs from program to program (bad input 39)."""
    with pytest.raises(InvalidInput):
        parse(document)


def test_the_error_says_what_was_read():
    """A typed error names the thing and its trouble, for a person to act on."""
    with pytest.raises(InvalidInput, match="line 7"):
        parse('{"a":1,"a":2}', what="line 7")


# --- numbers --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "number",
    [2**53 + 1, 2**63, -(2**63) - 1, 2**64, 10**999, -(10**999), 0, -1],
    ids=lambda number: (
        f"{number:.3g}" if abs(number) < 10**300 else "of 1000 digits" + "-" * (number < 0)
    ),
)
def test_whole_numbers_stay_exact(number):
    """Up to 1,000 digits, whatever a float could hold (bad input 37)."""
    found = parse(f"[{number}]").value[0]

    assert found == number
    assert type(found) is int
    assert writing.dumps(found) == str(number)


def test_a_number_of_1000_digits_is_taken_and_one_of_1001_is_refused():
    """Python itself gives up with ValueError at 4,300 (bad input 37)."""
    assert parse("9" * 1000).value == int("9" * 1000)
    assert parse("-" + "9" * 1000).value == -int("9" * 1000)

    for digits in (1001, 4301, 5000):
        with pytest.raises((InvalidInput, TooLarge)):
            parse("9" * digits)


@pytest.mark.parametrize("text", ["1.0", "0.1", "1e2", "1E-7", "5e-324", "1.7976931348623157e308"])
def test_a_float_stays_a_float(text):
    """1.0 is not 1: the type is part of what was said."""
    found = parse(text).value

    assert type(found) is float
    assert found == float(text)
    assert parse(writing.dumps(found)).value == found
    assert type(parse(writing.dumps(found)).value) is float


def test_minus_zero_keeps_its_sign():
    """Bad input 36: -0.0 equals 0.0, and is not the same."""
    found = parse("-0.0").value

    assert math.copysign(1, found) == -1
    assert writing.dumps(found) == "-0.0"


def test_true_false_null_and_numbers_stay_apart():
    assert [type(each) for each in parse("[true,false,null,1,0,1.0]").value] == [
        bool,
        bool,
        type(None),
        int,
        int,
        float,
    ]


# --- characters -----------------------------------------------------------------------------

HALVES = {
    "escaped high": (rb'"a\ud800b"', "a\ufffdb", 1),
    "escaped low": (rb'"a\udc00b"', "a\ufffdb", 1),
    "upper case": (rb'"\uDBFF"', "\ufffd", 1),
    "low before high": (rb'"\udc00\ud800"', "\ufffd\ufffd", 2),
    "high, then a letter as escape": (rb'"\ud800\u0041"', "\ufffdA", 1),
    "two highs and a low": (rb'"\ud800\ud83d\ude00"', "\ufffd\U0001f600", 1),
    "raw in a str": ('"a\ud800b"', "a\ufffdb", 1),
    "emoji cut in half": ('"\ud83d', None, None),
    "a whole pair, escaped": (rb'"\ud83d\ude00"', "\U0001f600", 0),
    "an escaped backslash before u": (rb'"\\ud800"', r"\ud800", 0),
    "an escaped backslash and a half": (rb'"\\\ud800"', "\\\ufffd", 1),
    "the replacement character itself": ('"\ufffd"', "\ufffd", 0),
}


@pytest.mark.parametrize("name", [name for name in HALVES if HALVES[name][1] is not None])
def test_half_of_a_surrogate_pair_becomes_the_replacement_character(name):
    """From a file it is mended and counted; a whole character is never touched (31, S4-27)."""
    document, text, mended = HALVES[name]

    assert parse(document) == (text, mended)


def test_an_unfinished_text_is_refused_even_when_cut_inside_a_pair():
    with pytest.raises(InvalidInput):
        parse(HALVES["emoji cut in half"][0])


@pytest.mark.parametrize(
    "raw",
    [
        b"\xed\xa0\x80",
        b"\xed\xa0\xbd\xed\xb8\x80",
        b"\xff",
        b"\xc3",
        b"\xc0\xaf",
        b"\xf8\x88\x80\x80\x80",
    ],
)
def test_bytes_that_are_not_utf8_become_replacement_characters(raw):
    """CESU-8, cut sequences, overlong forms: each piece is one U+FFFD, and all are counted (34)."""
    value, mended = parse(b'["a' + raw + b'b"]')

    assert value[0][0] == "a"
    assert value[0][-1] == "b"
    assert set(value[0][1:-1]) == {"\ufffd"}
    assert mended == value[0].count("\ufffd") >= 1


def test_keys_are_mended_too():
    value, mended = parse(rb'{"a\ud800":{"\udfff":1}}')

    assert value == {"a\ufffd": {"\ufffd": 1}}
    assert mended == 2


@pytest.mark.parametrize(
    "document",
    [
        rb'{"\ud800":1,"\udc00":2}',
        b'{"\xff":1,"\xfe":2}',
        rb'{"\ud800":1,"\ufffd":2}',
        '{"\ud800":1,"\udc00":2}',
    ],
    ids=["escaped", "bytes", "with the replacement itself", "raw"],
)
def test_keys_that_become_the_same_by_mending_are_refused(document):
    """Mending must not make one value hide another."""
    with pytest.raises(InvalidInput):
        parse(document)


@pytest.mark.parametrize(
    "character",
    [
        "\x00",
        "\x01",
        "\x0b",
        "\x0c",
        "\r",
        "\x1b",
        "\x7f",
        "\x85",
        "\u2028",
        "\u2029",
        "\ufeff",
        "\ufffe",
        "\uffff",
        "\ufdd0",
        "\U0001ffff",
        "\u202e",
        "\u200d",
        "\U0010ffff",
    ],
)
def test_every_other_character_is_kept(character):
    """NUL, separators, noncharacters and marks are text like any other (bad inputs 32, 33, 35)."""
    text = f"a{character}b"

    assert parse(json.dumps(text)) == (text, 0)
    if character >= " ":
        assert parse(json.dumps(text, ensure_ascii=False).encode()) == (text, 0)
    assert parse(writing.dumps(text)) == (text, 0)


def test_ten_thousand_combining_marks_are_one_text():
    text = "e" + "\u0301" * 10_000

    assert parse(json.dumps(text, ensure_ascii=False)).value == text


@pytest.mark.parametrize(
    "reader",
    [
        lambda text: codec.read_plain(b'{"role":"tool","content":"%b"}' % text),
        lambda text: codec.read_plain(b'{"role":"tool","content":null,"%b":1}' % text),
        lambda text: codec.read_plain(
            b'{"role":"assistant","content":null,"tool_calls":[{"id":"c","name":"f","arguments":"%b"}]}'
            % text
        ),
        lambda text: codec.read_foreign_record(
            b'{"v":1,"message":{"role":"user","content":"%b","id":"i","timestamp":"2026-02-01T12:00:00Z"}}'
            % text
        ),
    ],
    ids=["content", "key", "arguments", "record"],
)
def test_a_mended_message_is_followed_by_a_mark_that_names_it(reader):
    """A lone surrogate becomes U+FFFD *with a mark*, so that the change can be seen (S4-27)."""
    message, mark = reader(rb"x\ud800\udc00\ud800y")

    assert isinstance(message, Message)
    assert isinstance(mark, Mark)
    assert (mark.what, mark.about) == ("mended", message.id)
    assert mark.data["characters"] == 1


def test_a_message_with_nothing_to_mend_comes_alone():
    assert len(codec.read_plain(b'{"role":"user","content":"\xef\xbf\xbd"}')) == 1


# --- what comes out -------------------------------------------------------------------------


def test_what_comes_back_is_frozen_all_the_way_down():
    """Nobody can change what is stored, extra fields included (S0-34)."""
    value = parse('{"a":[{"b":[1]}]}').value

    assert type(value) is FrozenDict
    assert type(value["a"]) is tuple
    assert type(value["a"][0]) is FrozenDict
    assert type(value["a"][0]["b"]) is tuple
    with pytest.raises(TypeError):
        value["a"] = 1
    with pytest.raises(TypeError):
        value["a"][0].update(c=1)


@pytest.mark.parametrize(
    "document",
    [
        '{"lc":1,"type":"constructor","id":["os","system"],"kwargs":{"a":1}}',
        '{"__reduce__":["os.system",["id"]],"__class__":"x","$type":"T","!!python/object":"y"}',
        '{"__proto__":{"a":1},"constructor":{"b":2}}',
    ],
)
def test_constructor_envelopes_are_only_data(document):
    """Bad input 49: nothing is built but plain JSON values."""
    assert json.loads(writing.dumps(parse(document).value)) == json.loads(document)


DUMPED = {"a": [1, -0.0, 2.5, None, True], "é\u2028": '\0\x7f\n"\\/<&>\U0001f600', "": {}}


@pytest.mark.parametrize("spaced", [False, True])
@pytest.mark.parametrize("ascii", [False, True])
def test_dumping_writes_the_bytes_of_pythons_own_encoder(spaced, ascii):
    """Compact or with Python's spaces, escaped or not; the keys in their order (S4-15)."""
    separators = (", ", ": ") if spaced else (",", ":")
    value = parse(json.dumps(DUMPED)).value

    text = writing.dumps(value, spaced=spaced, ascii=ascii)

    assert text == json.dumps(DUMPED, separators=separators, ensure_ascii=ascii)
