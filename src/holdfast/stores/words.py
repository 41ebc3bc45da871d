"""The words of a text, as search finds them again.

One tokeniser feeds the search index of every store, so that the same query finds the same messages
wherever they are kept. Text is folded (case, width, accents of letters), then cut:

* letters, digits and the marks on them make a word; everything else, `_` too, stands between words;
* Chinese, Japanese and Korean are written without spaces, so a run of them becomes its pairs of
  neighbouring characters, and its last character alone: 北京塔 is 北京, 京塔, 塔. A word of two
  characters is then found as itself, and one of a single character as the beginning of a pair.

A word is cut at 64 characters: nobody searches for the middle of a base64 block.
"""

import re
import unicodedata
from functools import cache
from itertools import pairwise

WORD_LENGTH_MAX = 64

# Han, kana, bopomofo, Hangul, and their extensions beyond the first plane.
_CJK = (
    "\u1100-\u11ff\u2e80-\u2fd5\u3005-\u3007\u3021-\u3029\u3031-\u3035\u303b\u3041-\u3096\u3099-\u309f"
    "\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb\uf900-\ufad9"
    "\U0001b000-\U0001b16f\U00020000-\U000323af"
)
# Accents that are folded away: those of Latin, Greek and Cyrillic letters. In other scripts a mark
# is a vowel, and a word without it is another word.
_ACCENTS = re.compile("(?<=[a-z\u0370-\u03ff\u0400-\u052f])[\u0300-\u036f]+")


_ASCII_WORD = re.compile("[0-9a-z]+")


@cache
def _run() -> re.Pattern[str]:
    """A run of CJK characters, or a word. Made when it is first needed: `re` knows no marks."""
    marks = "".join(chr(code) for code in range(0x300, 0x1E000) if _is_mark(code))
    letter = f"(?![{_CJK}])[^\\W_]"
    return re.compile(f"(?P<cjk>[{_CJK}]+)|{letter}(?:{letter}|[{marks}])*")


def _is_mark(code: int) -> bool:
    return unicodedata.category(chr(code))[0] == "M"


def fold(text: str) -> str:
    """The text as it is compared: É, é, e and a full-width ｅ are one letter."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", folded))


def words(text: str) -> list[str]:
    """The words to index, in order, as often as they occur."""
    return [word for run, is_cjk in _runs(text) for word in (_pairs(run) if is_cjk else (run,))]


def query(text: str) -> list[tuple[str, bool]]:
    """The words to look for, each with whether the beginning of an indexed word is enough.

    All of them must be found. Nothing in a query is an operator: quotes, stars and minus signs
    stand between words like any other sign.
    """
    found: list[tuple[str, bool]] = []
    for run, is_cjk in _runs(text):
        if is_cjk and len(run) > 1:
            found += [(pair, False) for pair in _pairs(run)[:-1]]
        else:
            found.append((run, is_cjk))
    return found


def _runs(text: str) -> list[tuple[str, bool]]:
    """The words and the CJK runs of a text, and which of them are the latter."""
    if text.isascii():  # most of what agents write, and ten times as quick
        return [(word[:WORD_LENGTH_MAX], False) for word in _ASCII_WORD.findall(text.lower())]
    return [
        (found[0], True) if found["cjk"] else (found[0][:WORD_LENGTH_MAX], False)
        for found in _run().finditer(fold(text))
    ]


def _pairs(run: str) -> list[str]:
    return [*map("".join, pairwise(run)), run[-1]]
