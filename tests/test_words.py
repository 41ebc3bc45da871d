"""The one tokeniser of search: what is indexed is found again, in every script."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.stores.words import WORD_LENGTH_MAX, fold, query, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  \n\t.,;:-_*\"'", []),
        ("Hello, WORLD!", ["hello", "world"]),
        ("read_file(path='a.txt')", ["read", "file", "path", "a", "txt"]),
        ("don't 3.14 x1", ["don", "t", "3", "14", "x1"]),
        ("Grüße aus Zürich", ["grusse", "aus", "zurich"]),
        ("naïve café, CAFÉ, cafe\u0301", ["naive", "cafe", "cafe", "cafe"]),
        ("ΑΘΉΝΑ Ёлка Й", ["αθηνα", "елка", "и"]),
        ("ﬁne ｆｕｌｌ １２", ["fine", "full", "12"]),
        ("北京塔", ["北京", "京塔", "塔"]),
        ("塔", ["塔"]),
        ("東京タワー", ["東京", "京タ", "タワ", "ワー", "ー"]),
        ("한국어", ["한국", "국어", "어"]),
        ("去Paris玩", ["去", "paris", "玩"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("สวัสดี", ["สวัสดี"]),
        ("\U00020000\U00020001", ["\U00020000\U00020001", "\U00020001"]),
        ("a\0b ☕ 😀", ["a", "b"]),
    ],
)
def test_a_text_is_cut_into_these_words(text, expected):
    """Words in scripts with spaces, pairs of characters in those without."""
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("北京", [("北京", False)]),
        ("京", [("京", True)]),
        ("北京塔 tower", [("北京", False), ("京塔", False), ("tower", False)]),
        ('"a b" -c* NOT (d)', [(w, False) for w in ("a", "b", "c", "not", "d")]),
        ("***", []),
    ],
)
def test_a_query_asks_for_these_words(text, expected):
    """Nothing in a query is an operator, and one CJK character may begin a pair."""
    assert query(text) == expected


@given(st.text(), st.text(), st.text())
def test_what_is_part_of_a_text_is_found_in_it(before, inside, after):
    """A query that stands in a text between spaces finds it, whatever it is made of."""
    indexed = words(f"{before} {inside} {after}")

    for word, is_prefix in query(inside):
        assert any(each.startswith(word) if is_prefix else each == word for each in indexed)


@given(st.text(alphabet="北京塔東タワー한국", min_size=1), st.data())
def test_every_part_of_a_cjk_run_is_found(text, data):
    """There are no spaces to search between: any stretch of characters may be meant."""
    start = data.draw(st.integers(0, len(text) - 1))
    stop = data.draw(st.integers(start + 1, len(text)))
    indexed = words(text)

    for word, is_prefix in query(text[start:stop]):
        assert any(each.startswith(word) if is_prefix else each == word for each in indexed)


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_the_quick_way_for_ascii_says_the_same_as_the_other(text):
    """Text with one more character, which is a word of its own, takes the other way."""
    assert words(f"{text} é") == [*words(text), "e"]


@given(st.text())
def test_folding_twice_changes_nothing(text):
    """What is indexed and what is asked for meet in one form."""
    assert [fold(word) for word in words(text)] == words(text)


def test_a_word_without_end_is_cut():
    """Nobody searches for the middle of a base64 block, and the index stays small."""
    assert words("x" * 10_000) == ["x" * WORD_LENGTH_MAX]
    assert words("é" * 10_000) == ["e" * WORD_LENGTH_MAX]
    assert query("x" * 10_000) == [("x" * WORD_LENGTH_MAX, False)]
