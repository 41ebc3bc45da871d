"""How full the window was, drawn in characters: tokens upwards, turns to the right."""

from collections.abc import Iterator, Sequence
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from holdfast.cli.screen import Screen, wrapped

if TYPE_CHECKING:
    from holdfast.bills import Fill

_HEIGHT = 10
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_NEAR = 0.2  # a limit that is further away than this share of it would leave nothing to see


class _Column(NamedTuple):
    """One or more turns side by side: the fullest of them."""

    first: int
    tokens: int | None
    is_reported: bool
    folds: int


def plot(screen: Screen, fills: Sequence[tuple[int, "Fill"]], width: int) -> Iterator[str]:
    """The turns, by number, with how full each was. Nothing where nobody knows of any."""
    known = [fill.tokens for _, fill in fills if fill.tokens is not None]
    if not known:
        return
    limits = [fill.limit for _, fill in fills if fill.limit is not None]
    limit = limits[-1] if limits else None
    is_near = limit is not None and max(known) >= _NEAR * limit
    top = max([*known, *([limit] if limit is not None and is_near else [])]) or 1
    margin = len(f"{top:,}") + 2
    room = max(1, width - margin - 1)
    columns = list(_columns(fills, room))
    wide = max(1, min(4, room // len(columns)))
    signs = [screen.sign(sign, plain) for sign, plain in (("│", "|"), ("╌", "-"), ("▾", "v"))]
    bar, dash, folded = signs
    for row in range(_HEIGHT, 0, -1):
        is_limit = is_near and limit is not None and row == ceil(limit / top * _HEIGHT)
        label = f"{round(top * row / _HEIGHT):,}" if row in (_HEIGHT, _HEIGHT // 2) else ""
        label = f"{limit:,}" if is_limit else label
        empty = dash if is_limit else " "
        cells = "".join(_cell(screen, each, row, top, empty, wide) for each in columns)
        yield f"{label:>{margin - 1}} {bar}{cells.rstrip() if not is_limit else cells}"
    yield " " * (margin + 1) + _axis(columns, wide)
    if any(each.folds for each in columns):
        marks = "".join((folded if each.folds else " ").ljust(wide) for each in columns)
        yield " " * (margin + 1) + screen.styled(marks.rstrip(), "magenta")
    yield from _legend(screen, fills, columns, limit, width, is_near=is_near)


def _columns(fills: Sequence[tuple[int, "Fill"]], room: int) -> Iterator[_Column]:
    step = ceil(len(fills) / room)
    for start in range(0, len(fills), step):
        some = fills[start : start + step]
        fullest = max(some, key=lambda each: -1 if each[1].tokens is None else each[1].tokens)[1]
        folds = sum(fill.folds for _, fill in some)
        yield _Column(some[0][0], fullest.tokens, fullest.is_reported, folds)


def _cell(screen: Screen, column: _Column, row: int, top: int, empty: str, wide: int) -> str:
    """What one line of the plot has for a column, `wide` characters of which the last is free."""
    solid, gap = max(1, wide - 1), empty if wide > 1 else ""
    if column.tokens is None:
        return ("?" if row == 1 else empty) * solid + gap
    eighths = round(column.tokens / top * _HEIGHT * 8) - (row - 1) * 8
    if column.tokens and row == 1:
        eighths = max(1, eighths)
    if eighths <= 0:
        return empty * solid + gap
    if screen.sign("█", "#") == "#":
        return ("#" if eighths >= 4 else ".") * solid + gap
    styles = () if column.is_reported else ("dim",)
    return screen.styled(_EIGHTHS[min(8, eighths)] * solid, *styles) + gap


def _axis(columns: Sequence[_Column], wide: int) -> str:
    """The numbers of some turns, where there is room for them."""
    line = ""
    for place, column in enumerate(columns):
        if len(line) <= place * wide and (wide > 1 or place % 10 == 0):
            line = line.ljust(place * wide) + str(column.first) + " "
    return line.rstrip()


def _legend(
    screen: Screen,
    fills: Sequence[tuple[int, "Fill"]],
    columns: Sequence[_Column],
    limit: int | None,
    width: int,
    *,
    is_near: bool,
) -> Iterator[str]:
    each = ceil(len(fills) / len(columns))
    told = ["tokens of the last prompt of each turn" if each == 1 else f"{each} turns a column"]
    if limit is None:
        told.append("the limit is not known")
    else:
        told.append(f"limit {limit:,}" + ("" if is_near else ", far above"))
    if any(column.folds for column in columns):
        told.append(f"{screen.sign('▾', 'v')} folded")
    if any(column.tokens is not None and not column.is_reported for column in columns):
        told.append("dim: estimated")
    text = f" {screen.sign('·', '-')} ".join(told)
    for line in wrapped(text, width):
        yield screen.styled(line, "dim")
