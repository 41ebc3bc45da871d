"""Shorter forms of tool results and of what a user said, for a window that is too full.

    shorten_to(message, 2_000, count)     # as much of it as 2 000 tokens hold; None if all does
    shortened(message, 5_000)             # some 5 000 tokens less of it; None if it is short

What is left is the beginning, with a notice behind it that says what is missing and how to get at
it. The result itself always stays, because each call has one; pictures and files of what is
shortened go. The shorter form answers the same call, begins no turn, and has an id that follows
from its words: the same message cut in the same way is the same message.
"""

import re
from collections.abc import Callable
from typing import NamedTuple
from zlib import crc32

from holdfast.frozen import EMPTY
from holdfast.messages import Message, Role
from holdfast.notes import NOTICE, TRUNCATED
from holdfast.parts import Text

CHARACTERS_A_TOKEN = 4
LINES_KEPT = 20
CHARACTERS_KEPT = 2_000
TOKENS_MIN = 200  # what has fewer is not worth a notice
_SPACE_WITHIN = 200  # so far back a cut looks for a space, not to end within a word
_SHARE = 0.95  # of the part that should fit: characters are not tokens

_CONTENT = -1  # the place of the content, among those of the outputs
_ID = re.compile(r":shortened:[0-9a-f]{8}$")


def _ending(notice: str) -> re.Pattern[str]:
    """What finds a notice at the end of a text, with the size that it states."""
    pattern = re.escape(notice).replace(r"\{all\}", "(?P<all>[0-9]+ (?:line|character)s?)")
    return re.compile(r"(?:\n\n|^)" + re.sub(r"\\{\w+\\}", r"\\w+", pattern) + r"\Z")


_ENDINGS = (_ending(NOTICE), _ending(TRUNCATED))
_ENDING_LENGTH_MAX = 600


class _Words(NamedTuple):
    """A text, without the notice of an earlier cut, which said how long it had been: `all`."""

    text: str
    all: str = ""


def shorten_to(
    message: Message, tokens_max: int, count: Callable[[Message], int]
) -> Message | None:
    """As much of a message as `tokens_max` hold, or the notice alone where that is more.

    None when it is short enough already, when it is neither a result nor a user's, and when it
    could only be made longer.
    """
    before = count(message)
    shorter = message
    for place in _places(message):
        if count(shorter) <= tokens_max:
            break
        shorter = _cut_to(shorter, place, tokens_max, count)
    return shorter if count(shorter) < before else None


def shortened(message: Message, remove: int) -> Message | None:
    """A message with some `remove` tokens less, estimated by its characters; perhaps with fewer.

    Of many lines the first 20 are kept, of few the first 2 000 characters or more. None when it is
    short already, or neither a result nor a user's.
    """
    shorter = message
    for place in _places(message):
        text = _text(shorter, place)
        cut = _shortened(text, remove, _what(message)) if remove > 0 else None
        if cut is not None:
            shorter = _with(shorter, place, cut)
            remove -= (len(text) - len(cut)) // CHARACTERS_A_TOKEN
    return None if shorter is message else shorter


def _cut_to(
    message: Message, place: int, tokens_max: int, count: Callable[[Message], int]
) -> Message:
    """The message with its text in one place cut until it fits, or with only the notice there."""
    words = _words(_text(message, place))
    size = words.all or _lines(_line_count(words.text))
    notice = TRUNCATED.format(what=_what(message), all=size)
    least = _with(message, place, notice)
    around = count(least)
    keep = len(words.text) if around < tokens_max else 0
    while keep:
        shorter = _with(message, place, f"{_cut(words.text, keep)}\n\n{notice}")
        if (has := count(shorter)) <= tokens_max:
            return shorter
        keep = int(keep * _SHARE * (tokens_max - around) / (has - around))
    return least


def _shortened(text: str, remove: int, what: str) -> str | None:
    """A text with some `remove` tokens less; None if it is not worth it."""
    if len(text) // CHARACTERS_A_TOKEN < TOKENS_MIN:
        return None
    words = _words(text)
    kept = words.text
    if is_by_lines := _line_count(kept) > LINES_KEPT:
        kept = "\n".join(kept.split("\n", LINES_KEPT)[:LINES_KEPT])
    # A few lines may be as long as many: then the characters decide.
    if (len(words.text) - len(kept)) // CHARACTERS_A_TOKEN < remove:
        left = len(words.text) - remove * CHARACTERS_A_TOKEN
        kept = _cut(kept, max(CHARACTERS_KEPT, left))
    cut = f"{kept}\n\n{_notice(words, kept, is_by_lines, what)}"
    return cut if len(kept) < len(words.text) and len(cut) < len(text) else None


def _notice(words: _Words, kept: str, is_by_lines: bool, what: str) -> str:
    lines = _lines(_line_count(words.text))
    if what == "Input":  # nobody can ask a tool for the rest of it
        return TRUNCATED.format(what=what, all=words.all or lines)
    size = words.all or (lines if is_by_lines else f"{len(words.text)} characters")
    shown = _line_count(kept) if "line" in size else len(kept)
    removed = (len(words.text) - len(kept)) // CHARACTERS_A_TOKEN
    return NOTICE.format(shown=shown, all=size, tokens=removed)


# Texts


def _words(text: str) -> _Words:
    for ending in _ENDINGS:
        if found := ending.search(text, max(0, len(text) - _ENDING_LENGTH_MAX)):
            return _Words(text[: found.start()], found["all"])
    return _Words(text)


def _cut(text: str, keep: int) -> str:
    """The first `keep` characters, up to a space where one is near."""
    if keep >= len(text):
        return text
    space = text.rfind(" ", max(0, keep - _SPACE_WITHIN), keep)
    return text[: space if space > 0 else keep]


def _line_count(text: str) -> int:
    # Not splitlines(), which takes characters for line ends that no tool means so.
    return text.count("\n") + 1


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"


# Places of texts in a message


def _places(message: Message) -> list[int]:
    """Where there is text that may be cut: the content, and outputs by their number.

    What comes with pictures or files is first, because to leave those out may be enough; then the
    longest.
    """
    if message.role is Role.SYSTEM:
        return []
    outputs = [n for n, call in enumerate(message.tool_calls) if call.output is not None]
    places = sorted(outputs, key=lambda n: -len(_text(message, n)))
    is_heard = message.role.canonical in (Role.USER, Role.TOOL)
    if not is_heard or not message.content or _repeats(message):
        return places
    if _has_more_than_text(message):
        return [_CONTENT, *places]
    return sorted([_CONTENT, *places], key=lambda n: -len(_text(message, n)))


def _text(message: Message, place: int) -> str:
    if place == _CONTENT:
        return message.text or ""
    return message.tool_calls[place].output or ""


def _with(message: Message, place: int, text: str) -> Message:
    """The message with other words in this place, under the id that goes with them."""
    content, calls = message.content, message.tool_calls
    if place == _CONTENT:
        content = text
    else:
        content = None if _repeats(message) else content
        calls = (*calls[:place], calls[place].replace(output=text), *calls[place + 1 :])
    outputs = [call.output or "" for call in calls]
    digest = crc32("\0".join([content if isinstance(content, str) else "", *outputs]).encode())
    return message.replace(
        content=content,
        tool_calls=calls,
        id=f"{_ID.sub('', message.id)}:shortened:{digest:08x}",
        synthetic="shortened",
        extra=EMPTY,
    )


def _what(message: Message) -> str:
    return "Output" if message.results else "Input"


def _repeats(message: Message) -> bool:
    """Whether the content has the words of the outputs once more, as some programs write them."""
    outputs = [call.output for call in message.tool_calls if call.output is not None]
    return bool(outputs) and message.content == "".join(outputs)


def _has_more_than_text(message: Message) -> bool:
    content = message.content
    return isinstance(content, tuple) and any(type(part) is not Text for part in content)
