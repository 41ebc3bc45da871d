"""Tokens estimated from the kinds of characters in a text, where no vocabulary is installed.

Each character adds a fraction of a token that depends on its kind, and each word and each run of
punctuation adds one too. The fractions were fitted, with 6 % on top, to what real vocabularies
count in prose of ten languages, code, JSON, logs, noise and conversations of agents, so that an
estimate is rarely low: `python bench/tokens.py` measures how good it is.
"""

import re
from collections.abc import Iterable

_Fractions = tuple[float, ...]
# In this order: lower case, upper case, a word, noise (letters and digits in a run too long for a
# word), digit, punctuation, a run of it, space, line end or tab; then beyond ASCII: symbols and
# dashes, Latin letters, Greek and Cyrillic, Hebrew and Arabic, Chinese and Japanese, Korean, other
# scripts, what needs more than 16 bits.
_FRACTIONS: dict[str, _Fractions] = {
    "o200k": (
        *(0.06, 0.26, 0.62, 0.72, 0.62, 0.15, 0.79, 0.19, 0.16),
        *(1.35, 1.67, 0.32, 0.42, 0.87, 0.76, 0.37, 1.85),
    ),
    "cl100k": (
        *(0.06, 0.29, 0.62, 0.75, 0.62, 0.15, 0.8, 0.17, 0.13),
        *(2.36, 3.06, 0.54, 0.9, 1.24, 1.42, 1.4, 2.84),
    ),
    "gemini": (
        *(0.06, 0.31, 0.57, 0.86, 1.12, 0.02, 1.15, 0.22, 0.52),
        *(1.43, 1.49, 0.28, 0.41, 0.71, 0.62, 0.31, 1.03),
    ),
    "claude-3": (
        *(0.07, 0.68, 0.59, 0.88, 0.52, 0.1, 1.11, 0.16, 0.63),
        *(2.38, 3.71, 0.46, 0.85, 1.12, 1.41, 0.91, 2.98),
    ),
    "claude-4.7": (
        *(0.29, 1.29, 0.01, 0.95, 0.51, 0.08, 1.34, 0.14, 0.53),
        *(3.55, 4.97, 0.43, 0.85, 1.09, 1.36, 0.91, 2.69),
    ),
    # The most that any of the vocabularies of open models needs.
    "other": (
        *(0.06, 0.39, 0.57, 0.91, 1.11, 0.02, 1.16, 0.22, 0.47),
        *(1.89, 4.01, 0.43, 0.62, 0.89, 1.13, 1.38, 4.16),
    ),
}
_FRACTIONS["gemma"] = _FRACTIONS["gemini"]

_LOWER = b"abcdefghijklmnopqrstuvwxyz"
_UPPER = _LOWER.upper()
_DIGITS = b"0123456789"
_BEYOND_ASCII = bytes(range(128, 256))
_NOISE = re.compile(rb"[A-Za-z0-9]{20,}")
_PUNCTUATION = bytes(set(range(33, 127)) - set(_LOWER + _UPPER + _DIGITS))

# The first code point behind each kind, in order, and the place of the kind in the fractions.
_RANGES = (
    (0x0250, 10),
    (0x0590, 11),
    (0x0900, 12),
    (0x2000, 15),
    (0x2E80, 9),
    (0xAC00, 13),
    (0xD7B0, 14),
    (0xF900, 15),
    (0xFB00, 13),
    (0xFE30, 15),
    (0xFE50, 13),
    (0xFF00, 15),
    (0xFFF0, 13),
    (0x10000, 15),
)
_LARGE = 16


def estimate(text: str, family: str) -> int:
    """About as many tokens as `text` has for a model of this family; at least 1 if it has any."""
    if not text:
        return 0
    fractions = _FRACTIONS.get(family, _FRACTIONS["other"])
    raw = text.encode("utf-8", "replace")
    tokens = _ascii(raw.translate(None, _BEYOND_ASCII), fractions)
    if not text.isascii():
        tokens += _beyond(map(ord, text), fractions)
    return max(1, round(min(tokens, len(raw))))  # no vocabulary needs more tokens than bytes


def _ascii(raw: bytes, fractions: _Fractions) -> float:
    """Counted by deleting: bytes.translate is many times faster than a loop."""
    plain = _NOISE.sub(b"", raw)
    lower, upper, digits, punctuation, spaces = (
        len(plain) - len(plain.translate(None, kind))
        for kind in (_LOWER, _UPPER, _DIGITS, _PUNCTUATION, b" ")
    )
    counts = (
        lower,
        upper,
        _runs(plain, _LETTERS_ALONE),
        len(raw) - len(plain),
        digits,
        punctuation,
        _runs(plain, _PUNCTUATION_ALONE),
        spaces,
        len(plain) - lower - upper - digits - punctuation - spaces,
    )
    return sum(count * fraction for count, fraction in zip(counts, fractions, strict=False))


def _beyond(points: Iterable[int], fractions: _Fractions) -> float:
    tokens = 0.0
    for point in points:
        if point >= 128:
            place = next((place for end, place in _RANGES if point < end), _LARGE)
            tokens += fractions[place]
    return tokens


def _alone(kept: bytes) -> bytes:
    """A translation that makes a space of everything else."""
    return bytes(byte if byte in kept else 32 for byte in range(256))


_LETTERS_ALONE = _alone(_LOWER + _UPPER)
_PUNCTUATION_ALONE = _alone(_PUNCTUATION)


def _runs(raw: bytes, alone: bytes) -> int:
    return len(raw.translate(alone).split())
