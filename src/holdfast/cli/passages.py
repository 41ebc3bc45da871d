"""The place in a text where the words stand that were looked for."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from holdfast.cli.screen import Screen, safe

_WORD = re.compile(r"[^\W_]+")


class Passage(NamedTuple):
    """A piece of a text on one line, and in it the places of the words, as [start, stop)."""

    text: str
    places: tuple[tuple[int, int], ...]


def passage(text: str, wanted: str, width: int) -> Passage:
    """About `width` characters around the first of the words, with all of them that are in it."""
    found = list(_places(text, wanted))
    first, last = found[0] if found else (0, 0)
    start = max(0, min(first - width // 3, len(text) - width))
    stop = min(len(text), max(start + width, last))
    if start:  # not in the middle of a word, if there is another place near
        space = text.find(" ", start, first)
        start = space + 1 if space != -1 and space - start < width // 4 else start
    head, tail = "…" if start else "", "…" if stop < len(text) else ""
    shift = len(head) - start
    inside = [(a + shift, b + shift) for a, b in found if start <= a and b <= stop]
    return Passage(head + text[start:stop] + tail, tuple(inside))


def shown(screen: Screen, found: Passage) -> str:
    """A passage for a terminal, its words in colour, in one line."""
    parts, at = [], 0
    for start, stop in found.places:
        parts.append(_flat(found.text[at:start]))
        parts.append(screen.styled(_flat(found.text[start:stop]), "bold", "red"))
        at = stop
    return "".join([*parts, _flat(found.text[at:])]).strip()


def _flat(text: str) -> str:
    return safe(re.sub(r"\s", " ", text), keep="")


def _places(text: str, wanted: str) -> Iterator[tuple[int, int]]:
    """Where words stand that are compared as the search does: case, width and accents aside."""
    from holdfast.stores.words import fold, query

    words = {word for word, _ in query(wanted)}
    runs = [word for word in words if not word.isascii()]
    for match in _WORD.finditer(text):
        folded = fold(match[0])
        if folded in words:
            yield match.span()
        elif any(each in folded for each in runs):  # a run without spaces: Chinese, Japanese
            yield from _inside(match, runs)


def _inside(match: re.Match[str], runs: list[str]) -> Iterator[tuple[int, int]]:
    from holdfast.stores.words import fold

    at, text = match.start(), match[0]
    if len(fold(text)) != len(text):
        yield match.span()
        return
    folded, place = fold(text), 0
    while place < len(folded):
        long = max((len(each) for each in runs if folded.startswith(each, place)), default=0)
        if long:
            yield at + place, at + place + long
        place += long or 1
