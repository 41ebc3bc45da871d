"""Session keys: any text of 1 to 1,024 bytes, and nothing in it is special."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidInput, TooLarge
from holdfast.keys import KEY_BYTES_MAX, check_key, session_key

# Bad inputs 2 to 29 that are text: names of sessions like any other.
HOSTILE = {
    "dot": ".",
    "dots": "..",
    "traversal": "../../etc/cron.d/x",
    "backslashes": "..\\..\\x",
    "absolute": "/etc/passwd",
    "drive": "C:\\x",
    "share": "\\\\host\\share",
    "percent": "%2e%2e%2f",
    "percent-twice": "%252e%252e%252f",
    "overlong": "..%c0%af",
    "nul": "a\0b",
    "newline": "a\nb",
    "header": "a\r\nX-H: 1",
    "300-bytes": "k" * 300,
    "255-wide": "é" * 255,
    "con": "CON",
    "device": "nul.jsonl",
    "trailing-dot": "a.",
    "trailing-space": "a ",
    "leading-space": " a",
    "space": " ",
    "upper": "A",
    "lower": "a",
    "nfc": "caf\u00e9",
    "nfd": "cafe\u0301",
    "underscore": "telegram:a_b",
    "colons": "telegram:a:b",
    "slash": "telegram/a:b",
    "path": "u1/sessions/s2",
    "option": "-rf",
    "long-option": "--help",
    "at-file": "@file",
    "home": "~root",
    "own-jsonl": "a.jsonl",
    "own-tmp": "a.tmp",
    "own-lock": "a.lock",
    "own-wal": "a-wal",
    "rtl": "\u202eadmin",
    "joiner": "ad\u200dmin",
    "homoglyph": "\u0430dmin",
    "like": "%_*?[a-z]",
    "sql": "'; DROP TABLE sessions;--",
    "proto": "__proto__",
    "format": "{0.__class__}",
}

NOT_TEXT = {
    "none": None,
    "number": 1,
    "true": True,
    "operator": {"$ne": None},
    "list": [],
    "bytes": b"cli:direct",
    "tuple": ("cli", "direct"),
}


def test_the_longest_key_has_1024_bytes():
    """The limit that the documentation names."""
    assert KEY_BYTES_MAX == 1024


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_key_is_a_name_like_any_other(name):
    """Bad inputs 2 to 29: returned as it is, never cleaned: two keys never become one."""
    assert check_key(HOSTILE[name]) == HOSTILE[name]


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200))
def test_a_key_is_returned_unchanged(key):
    """No two keys name the same session: nothing is folded, cut, escaped or normalised."""
    assert check_key(key) == key
    assert session_key("cli", "x", key) == key


@pytest.mark.parametrize("name", NOT_TEXT)
def test_a_key_that_is_not_text_is_refused(name):
    """Bad inputs 26: an object as a key is how operators are injected."""
    with pytest.raises(InvalidInput, match="key"):
        check_key(NOT_TEXT[name])


def test_an_empty_key_is_refused():
    """Bad inputs 1."""
    with pytest.raises(InvalidInput, match="key"):
        check_key("")


@pytest.mark.parametrize("unit", ["k", "é", "€", "😀", "\0"], ids=["1", "2", "3", "4", "nul"])
def test_the_limit_counts_bytes_and_not_characters(unit):
    """Bad inputs 11, 12: what a file name or a column has to hold is bytes."""
    width = len(unit.encode())
    fits = unit * (1024 // width) + "k" * (1024 % width)

    assert check_key(fits) == fits
    with pytest.raises(TooLarge) as caught:
        check_key(fits + "k")

    assert caught.value.size == 1025
    assert caught.value.size_max == 1024


def test_a_key_of_a_mebibyte_is_refused_in_a_short_sentence():
    """Bad inputs 11: the error does not repeat the key at full length."""
    with pytest.raises(TooLarge) as caught:
        check_key("k" * 2**20)

    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("key", ["\ud800", "a\udc00b", "\ud83d\ude00"], ids=["high", "low", "pair"])
def test_a_key_with_a_lone_surrogate_is_refused(key):
    """Bad inputs 24: it can be neither stored nor sent."""
    with pytest.raises(InvalidInput):
        check_key(key)


def test_a_session_key_is_channel_and_chat_id():
    """S4-3: `channel:chat_id` by custom."""
    assert session_key("telegram", "12345678") == "telegram:12345678"
    assert session_key("cli", "direct") == "cli:direct"


def test_an_override_wins():
    """S4-3: the caller's own name for the session goes before the custom, as it is."""
    assert session_key("telegram", "12345678", "shared/room 7") == "shared/room 7"
    assert session_key("telegram", "12345678", override="x") == "x"


@pytest.mark.parametrize("override", [None, ""], ids=["none", "empty"])
def test_an_override_that_is_empty_does_not_win(override):
    """S4-3: nothing given is nothing wanted."""
    assert session_key("telegram", "12345678", override) == "telegram:12345678"


@pytest.mark.parametrize(
    ("field", "name"),
    [
        pytest.param(field, name, id=f"{field}-{name}")
        for field in ("channel", "chat_id", "override")
        for name in NOT_TEXT
        if (field, name) != ("override", "none")  # which says that there is no override
    ],
)
def test_what_is_not_text_never_becomes_part_of_a_key(field, name):
    """Bad inputs 26: `1` and `"1"` must not become one key, nor `None` and `"None"`."""
    given = {"channel": "telegram", "chat_id": "7", field: NOT_TEXT[name]}

    with pytest.raises(InvalidInput):
        session_key(**given)


@pytest.mark.parametrize("field", ["channel", "chat_id", "override"])
def test_a_session_key_goes_by_the_rules_for_keys(field):
    """Length and surrogates are checked on every way to a key."""
    given = {"channel": "telegram", "chat_id": "7"}

    with pytest.raises(InvalidInput):
        session_key(**{**given, field: "\ud800"})
    with pytest.raises(TooLarge):
        session_key(**{**given, field: "k" * 1025})
