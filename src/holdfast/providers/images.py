"""How many tokens a picture or a document costs, by the formulas that the vendors publish.

| rule        | whose                              | counts                                  |
|-------------|------------------------------------|-----------------------------------------|
| grid        | Claude up to 4.6                   | squares of 28 pixels, at most 1,568     |
| grid-hi     | Claude from 4.7                    | the same, at most 4,784                 |
| tiles, -... | gpt-4o, gpt-4.1, gpt-5, o1, o3     | a base, and tiles of 512 pixels         |
| patch-N     | gpt-5.4 and later, minis and nanos | squares of 32 pixels, times N           |
| gemini-1    | Gemini 1.5                         | 258 a picture                           |
| gemini-2    | Gemini 2.0 and 2.5                 | 258 a tile, of some 768 pixels          |
| gemini-3    | Gemini 3                           | 1,120 a picture                         |
| none        | models that take no pictures       | nothing                                 |
| other       | everybody else                     | 256 a tile of 448 pixels, at most 1,536 |

Vendors make large pictures smaller first, so there is a most that each can cost. A picture whose
size is not known is counted as one of UNKNOWN_SIZE, which is about that most.
"""

import math
import re

from holdfast.providers.image_size import image_size

UNKNOWN_SIZE = (1_600, 1_200)
OTHER_TOKENS_MAX = 1_536
_OTHER_TILE, _OTHER_TILE_TOKENS = 448, 256
PDF_BYTES_A_PAGE = 50_000  # when its pages cannot be counted
PAGES_MAX = 1_000

_GRIDS = {"grid": (1_568, 1_568), "grid-hi": (2_576, 4_784)}  # longest edge, most squares
_TILES = {
    "tiles": (85, 170),
    "tiles-o1": (75, 150),
    "tiles-5": (70, 140),
    "tiles-4om": (2_833, 5_667),
}
_PATCHES_MAX = 1_536
_PATCHES_MAX_LATER = 2_500  # from gpt-5.4
_PAGE = re.compile(rb"/Type\s{0,4}/Page\b(?!s)")
# A page is text and a picture of it; Gemini counts the picture alone.
_PAGE_TOKENS = {"gemini-1": 258, "gemini-2": 258, "gemini-3": 560, "grid": 3_000, "grid-hi": 3_500}
_PAGE_TOKENS_ELSE = 1_000


def picture_tokens(data: bytes | None, rule: str) -> int:
    """What the picture in these bytes costs; None is a picture that is somewhere else."""
    width, height = (data and image_size(data)) or UNKNOWN_SIZE
    return size_tokens(width, height, rule)


def size_tokens(width: int, height: int, rule: str) -> int:
    """What a picture of this size costs. An unknown rule is "other"."""
    if rule in _GRIDS:
        edge, most = _GRIDS[rule]
        return _squares(*_within(width, height, edge), 28, most)
    if rule in _TILES:
        base, each = _TILES[rule]
        return base + each * _tiles(width, height)
    if rule.startswith("patch-"):
        return _patches(width, height, rule.removeprefix("patch-"))
    if rule == "gemini-1":
        return 258
    if rule == "gemini-2":
        return 258 * _crops(width, height)
    if rule == "gemini-3":
        return 1_120
    return 0 if rule == "none" else _other(width, height)


def pdf_tokens(data: bytes | None, rule: str) -> int:
    """What a PDF costs, by its pages; None is one that is somewhere else, counted as one page."""
    pages = 1
    if data:
        pages = len(_PAGE.findall(data)) or 1 + len(data) // PDF_BYTES_A_PAGE
    return min(pages, PAGES_MAX) * _PAGE_TOKENS.get(rule, _PAGE_TOKENS_ELSE)


def _other(width: int, height: int) -> int:
    tiles = math.ceil(width / _OTHER_TILE) * math.ceil(height / _OTHER_TILE)
    return min(OTHER_TOKENS_MAX, tiles * _OTHER_TILE_TOKENS)


def _within(width: int, height: int, edge: int) -> tuple[int, int]:
    """The size, made smaller until no edge is longer than `edge`."""
    return _scaled(width, height, min(1.0, edge / max(width, height)))


def _scaled(width: int, height: int, scale: float) -> tuple[int, int]:
    """In whole pixels, as pictures are: 512.0000001 would be two tiles."""
    return max(1, round(width * scale)), max(1, round(height * scale))


def _squares(width: int, height: int, side: int, most: int) -> int:
    """Squares that cover the picture; one that needs more than `most` is made smaller first."""
    count = math.ceil(width / side) * math.ceil(height / side)
    return min(count, most)


def _tiles(width: int, height: int) -> int:
    """Into a square of 2,048 pixels, the shorter edge to 768, then tiles of 512."""
    wide, high = _within(width, height, 2_048)
    wide, high = _scaled(wide, high, min(1.0, 768 / min(wide, high)))
    return math.ceil(wide / 512) * math.ceil(high / 512)


def _patches(width: int, height: int, factor: str) -> int:
    try:
        times = float(factor)
    except ValueError:
        return _other(width, height)
    most = _PATCHES_MAX_LATER if times == 1 else _PATCHES_MAX
    return math.ceil(_squares(*_within(width, height, 2_048), 32, most) * times)


def _crops(width: int, height: int) -> int:
    """One up to 384 pixels; then crops of two thirds of the shorter edge, from 256 to 768."""
    if max(width, height) <= 384:
        return 1
    wide, high = _within(width, height, 3_072)
    unit = min(768, max(256, min(wide, high) // 1.5))
    return math.ceil(wide / unit) * math.ceil(high / unit)
