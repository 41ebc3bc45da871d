"""What people see: colour where it is wanted, text that cannot steer a terminal, progress.

Everything that was stored or received goes through `safe` before it is printed: what could move the
cursor, change the title, or turn the direction of writing is shown as what it is.
"""

import json
import os
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from holdfast.text import safe as safe

if TYPE_CHECKING:
    from holdfast.cli.pager import Pager

_STYLES = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}


def one_line(text: str, width: int) -> str:
    """The beginning of a text, in one line of this many columns."""
    flat = " ".join(safe(text[: width * 4 + 100], keep=" \t\n").split())
    return cut(flat, width)


def wrapped(text: str, width: int) -> list[str]:
    """The lines of a text that is safe already, none wider than this, broken between words."""
    found: list[str] = []
    for line in text.split("\n"):
        while columns(line) > width:
            head = _fitting(line, width)
            space = head.rfind(" ")
            if space > 0 and head[:space].strip():
                head = head[:space]
            found.append(head)
            line = line[len(head) :].lstrip(" ")
        found.append(line)
    return found


def _fitting(text: str, width: int) -> str:
    """As much of a text as so many columns hold, and never nothing."""
    for at, c in enumerate(text):
        width -= _columns(c)
        if width < 0:
            return text[: max(1, at)]
    return text


def columns(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(_columns(c) for c in text)


def cut(text: str, width: int) -> str:
    """The text, or as much of it as there is room for, with a sign that it was cut."""
    if columns(text) <= width:
        return text
    room, kept = width - 1, []
    for c in text:
        room -= _columns(c)
        if room < 0:
            break
        kept.append(c)
    return "".join(kept).rstrip() + "…"


_open_line: set[TextIO] = set()  # stderr, while a line of progress stands there


def end_line() -> None:
    """End the line of progress, if there is one, before anything else is said on stderr."""
    if _open_line:
        _open_line.clear()
        print(file=sys.stderr, flush=True)


def counted(count: int, one: str, many: str = "") -> str:
    """So many of something: 1 message, 2,000 messages."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


class Screen:
    """Where a command prints: data to stdout, everything else to stderr."""

    def __init__(self, color: str = "auto") -> None:
        self.is_terminal = _is_terminal(sys.stdout)
        self._color = color
        self._pager: Pager | None = None

    @property
    def width(self) -> int:
        """Columns; of a file or a pipe, as many as anybody wants."""
        if not self.is_terminal:
            return 10_000 if "COLUMNS" not in os.environ else shutil.get_terminal_size().columns
        return max(20, shutil.get_terminal_size().columns)

    @property
    def has_color(self) -> bool:
        """Whether stdout is coloured."""
        return self._has_color(sys.stdout)

    @property
    def can_rewrite(self) -> bool:
        """Whether a line can be written again over itself, and somebody sees that."""
        is_seen = self.is_terminal and _is_terminal(sys.stderr)
        return is_seen and os.environ.get("TERM", "dumb") != "dumb"

    def styled(self, text: str, *styles: str, on: TextIO | None = None) -> str:
        """The text, already safe, in a style, where there is colour."""
        if not text or not styles or not self._has_color(on or sys.stdout):
            return text
        return f"\x1b[{';'.join(_STYLES[style] for style in styles)}m{text}\x1b[0m"

    def print(self, text: str = "", *, end: str = "\n") -> None:
        """To stdout, or the pager. The text is safe already: see `safe`."""
        end_line()
        (self._pager or sys.stdout).write(text + end)

    @contextmanager
    def paged(self, *, is_wanted: bool = True) -> Iterator[None]:
        """What is printed in here goes through a pager where it is longer than the screen."""
        if not is_wanted or not self.is_terminal or os.environ.get("TERM") == "dumb":
            yield
            return
        from holdfast.cli.pager import paged

        with paged(shutil.get_terminal_size().lines - 1, self._use_pager):
            yield

    def _use_pager(self, pager: "Pager | None") -> None:
        self._pager = pager

    def sign(self, sign: str, plain: str) -> str:
        """A sign, or what stands for it where it cannot be written."""
        try:
            sign.encode(sys.stdout.encoding or "ascii")
        except UnicodeEncodeError:
            return plain
        return sign

    def note(self, text: str, *styles: str) -> None:
        """To stderr, for people; on a terminal no word is cut in two."""
        end_line()
        lines = wrapped(text, self.width) if _is_terminal(sys.stderr) else [text]
        styled = [self.styled(line, *(styles or ("dim",)), on=sys.stderr) for line in lines]
        print("\n".join(styled), file=sys.stderr, flush=True)

    def json(self, value: Any) -> None:
        """One JSON document, for programs; indented on a terminal."""
        indent = 2 if self.is_terminal else None
        text = json.dumps(value, ensure_ascii=not _is_utf8(sys.stdout), indent=indent)
        self.print(_safe_json(text))

    def table(self, rows: Iterable[Sequence[str]], heads: Sequence[str]) -> None:
        """Rows under their heads; the last column takes the room that is left."""
        lines = [list(heads), *([safe(cell, keep="") for cell in row] for row in rows)]
        widths = [max(columns(line[i]) for line in lines) for i in range(len(heads) - 1)]
        for number, line in enumerate(lines):
            cells = [
                cell + " " * (width - columns(cell))
                for cell, width in zip(line, widths, strict=False)
            ]
            text = cut("  ".join([*cells, line[-1]]).rstrip(), self.width)
            self.print(self.styled(text, "dim") if number == 0 else text)

    def progress(self, what: str, unit: float = 1, name: str = "") -> Callable[..., None]:
        """A function to call with how much is done, and of how much: shown in one line.

        Nothing is shown where stderr is no terminal.
        """
        if not _is_terminal(sys.stderr):
            return lambda *_: None
        shown = ""

        def tell(done: float, total: float | None = None) -> None:
            nonlocal shown
            part = f"{done / unit:,.0f}" + (f" of {total / unit:,.0f}" if total else "")
            text = f"{what}: {part}{' ' + name if name else ''}"
            if text == shown:
                return
            blank = " " * max(0, len(shown) - len(text))
            print(f"\r{text}{blank}", end="", file=sys.stderr, flush=True)
            _open_line.add(sys.stderr)
            if total is not None and done >= total:
                end_line()
            shown = text

        return tell

    def _has_color(self, stream: TextIO) -> bool:
        if self._color != "auto":
            return self._color == "always"
        if os.environ.get("NO_COLOR"):
            return False
        if os.environ.get("FORCE_COLOR"):
            return True
        return _is_terminal(stream) and os.environ.get("TERM") != "dumb"


def _safe_json(text: str) -> str:
    """The same JSON, with what could steer a terminal as its escapes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c == "\n" or unicodedata.category(c) == "Zs" else _escaped(c)
        for c in text
    )


def _escaped(c: str) -> str:
    units = c.encode("utf-16-be", "surrogatepass")
    pairs = (units[at : at + 2] for at in range(0, len(units), 2))
    return "".join(f"\\u{int.from_bytes(pair):04x}" for pair in pairs)


def _columns(c: str) -> int:
    if c < "\u0300":
        return 1
    if unicodedata.combining(c) or unicodedata.category(c) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # it is closed
        return False


def _is_utf8(stream: TextIO) -> bool:
    return (stream.encoding or "").lower().replace("-", "") == "utf8"
