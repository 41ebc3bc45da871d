"""What a model has written in the form of `calls.py`, as words and calls.

    reader = Reader()
    for piece in pieces:
        show(reader.feed(piece))    # the words of an answer, while they come
    said = reader.finish()          # all of it; said.rest was not shown yet

However the text is cut into pieces, what is shown and what is said at the end are the same, and the
words shown are the beginning of `said.text`. Nothing is raised: text in another form is an answer
as it stands, and so is what stands behind the end of one.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from holdfast import text as unicode

_OPENING = '{"answer":"'
_OPENED = re.compile(r'[ \t\n\r]*\{[ \t\n\r]*"answer"[ \t\n\r]*:[ \t\n\r]*"')
_SPACE = re.compile(r"[ \t\n\r]*")
_PLAIN = re.compile(r'[^"\\]+')
_ESCAPE = re.compile(r'\\(?:(["\\/bfnrt])|u([0-9a-fA-F]{4}))')
_ESCAPE_BEGUN = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?")
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_DECODER = json.JSONDecoder()


class Said(NamedTuple):
    """What a model has written: words, or calls as name and arguments.

    Arguments are JSON text as the model wrote it. `rest` is the end of `text` that `feed` had
    not given.
    """

    text: str
    calls: tuple[tuple[str, str], ...]
    rest: str


def read(written: str) -> Said:
    """The whole of what was written, at once."""
    reader = Reader()
    reader.feed(written)
    return reader.finish()


class Reader:
    """Takes what a model writes in pieces."""

    def __init__(self) -> None:
        self._step = self._open
        self._left = ""  # not understood yet
        self._half = ""  # the first half of a surrogate pair
        self._shown: list[str] = []

    def feed(self, piece: str) -> str:
        """The words that this piece adds to the answer; "" while it may be a call."""
        self._left += piece
        return self._show("".join(self._step()))

    def finish(self) -> Said:
        """What was written in all. An answer that was cut off is its words so far."""
        words = ""
        calls: tuple[tuple[str, str], ...] = ()
        if self._step in (self._open, self._wait):
            words, calls = _whole(self._left)
        elif self._step == self._answer and self._left:
            words = "\ufffd"  # an escape that was cut off
        rest = self._show(words) + unicode.mend(self._half)[0]
        return Said("".join(self._shown) + unicode.mend(self._half)[0], calls, rest)

    # Each step takes what it understands from `_left`, yields words, and goes on to the next.

    def _open(self) -> Iterator[str]:
        opened = _OPENED.match(self._left)
        if opened:
            self._left = self._left[opened.end() :]
            self._step = self._answer
            yield from self._answer()
        elif not _OPENING.startswith(_without_space(self._left)):
            self._step = self._wait

    def _wait(self) -> Iterator[str]:
        """Another form: it may be a call, and is looked at when it is whole."""
        yield from ()

    def _answer(self) -> Iterator[str]:
        text, at = self._left, 0
        while at < len(text) and text[at] != '"':
            plain = _PLAIN.match(text, at)
            escape = None if plain else _ESCAPE.match(text, at)
            if plain or escape:
                match = plain or escape
                assert match is not None
                yield match[0] if plain else _unescaped(match)
                at = match.end()
            elif _ESCAPE_BEGUN.fullmatch(text, at):
                break  # the next piece has the rest
            else:
                yield text[at]  # no escape of JSON: a backslash
                at += 1
        self._left = text[at:]
        if self._left.startswith('"'):
            self._left = self._left[1:]
            self._step = self._close
            yield from self._close()

    def _close(self) -> Iterator[str]:
        if _without_space(self._left) not in ("", "}"):
            self._step = self._behind
            yield from self._behind()

    def _behind(self) -> Iterator[str]:
        words, self._left = self._left, ""
        yield words

    def _show(self, words: str) -> str:
        words = self._half + words
        self._half = words[-1:] if "\ud800" <= words[-1:] <= "\udbff" else ""
        shown = unicode.mend(words.removesuffix(self._half))[0]
        self._shown.append(shown)
        return shown


def _unescaped(escape: re.Match[str]) -> str:
    letter, code = escape.groups()
    return chr(int(code, 16)) if code else _LETTERS.get(letter, letter)


def _without_space(text: str) -> str:
    return text.translate({ord(space): None for space in " \t\n\r"})


def _whole(written: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Text that is no plain answer: calls, an answer that is a JSON value, or something else."""
    mended = unicode.mend(written)[0]
    try:
        value = json.loads(mended)
    except (ValueError, RecursionError):
        return mended, ()
    if isinstance(value, list):
        calls = [_call(raw) for raw in _elements(mended)]
    else:
        calls = [_call(mended)] if isinstance(value, dict) else []
    good = tuple(call for call in calls if call is not None)
    if good and len(good) == len(calls):
        return "", good
    if isinstance(value, dict) and list(value) == ["answer"]:
        return next(raw for key, _, raw in _members(mended) if key == "answer"), ()
    return mended, ()


def _call(raw: str) -> tuple[str, str] | None:
    if not raw.lstrip(" \t\n\r").startswith("{"):
        return None
    members = {key: (value, text) for key, value, text in _members(raw)}
    if set(members) != {"name", "arguments"}:
        return None
    name, (value, text) = members["name"][0], members["arguments"]
    if not isinstance(name, str) or not name:
        return None
    arguments = value if isinstance(value, str) else text
    return unicode.mend(name)[0], unicode.mend(arguments)[0]


# These two walk over text that is known to parse.


def _members(raw: str) -> Iterator[tuple[str, Any, str]]:
    """Key, value, and the value as it was written."""
    at = _skip(raw, raw.index("{") + 1)
    while raw[at] != "}":
        key, at = _DECODER.raw_decode(raw, at)
        start = _skip(raw, _skip(raw, at) + 1)  # behind the colon
        value, at = _DECODER.raw_decode(raw, start)
        yield key, value, raw[start:at]
        at = _next(raw, at)


def _elements(raw: str) -> Iterator[str]:
    at = _skip(raw, raw.index("[") + 1)
    while raw[at] != "]":
        _, end = _DECODER.raw_decode(raw, at)
        yield raw[at:end]
        at = _next(raw, end)


def _next(raw: str, at: int) -> int:
    at = _skip(raw, at)
    return _skip(raw, at + 1) if raw[at] == "," else at


def _skip(raw: str, at: int) -> int:
    space = _SPACE.match(raw, at)
    assert space is not None  # it may be empty
    return space.end()
