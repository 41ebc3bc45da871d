"""Names as a target spells them: always allowed, never mixed up, and back again."""

import re

from hypothesis import given
from hypothesis import strategies as st

from holdfast.providers.names import Names, Spelling

ALLOWED = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
SPELLING = Spelling(re.compile(r"[^A-Za-z0-9_-]"), 64, re.compile(r"[A-Za-z_]"))
names = st.text(max_size=80)


@given(names)
def test_whatever_a_name_is_it_is_written_as_the_target_allows(name):
    assert ALLOWED.fullmatch(SPELLING.fitted(name))
    assert ALLOWED.fullmatch(SPELLING.fitted_apart(name))


@given(names)
def test_a_name_that_is_allowed_stays_as_it_is(name):
    written = SPELLING.fitted_apart(name)

    assert (written == name) == bool(ALLOWED.fullmatch(name))
    assert SPELLING.fitted_apart(written) == written


@given(st.lists(names.filter(bool), max_size=8), names)
def test_tools_are_told_apart_and_called_back_by_our_name(offered, other):
    known = Names(SPELLING, offered)

    sent = {name: known.sent(name) for name in offered}

    assert len(set(sent.values())) == len(sent)
    assert all(known.back.get(written, written) == name for name, written in sent.items())
    assert known.sent(other) not in sent.values() or other in sent


def test_a_name_stays_readable():
    known = Names(SPELLING, ["fs.read", "weather"])

    assert known.sent("fs.read") == "fs_read"
    assert known.back == {"fs_read": "fs.read"}


def test_who_is_allowed_keeps_the_name_that_another_would_get():
    """However the tools are ordered."""
    for offered in (["a.b", "a_b"], ["a_b", "a.b"]):
        known = Names(SPELLING, offered)

        assert known.sent("a_b") == "a_b"
        assert known.sent("a.b").startswith("a_b_")


def test_ids_that_would_fall_together_are_kept_apart():
    assert SPELLING.fitted_apart("a b") != SPELLING.fitted_apart("a.b")
    assert SPELLING.fitted_apart("x" * 80) != SPELLING.fitted_apart("x" * 81)
