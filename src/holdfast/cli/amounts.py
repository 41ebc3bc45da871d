"""Amounts as people read them: tokens, sizes, money, shares. What nobody knows is a `?`."""

from decimal import Decimal

UNKNOWN = "?"


def tokens(count: int | None, *, is_estimate: bool = False) -> str:
    """1,204, or ~1,204 where it is estimated."""
    if count is None:
        return UNKNOWN
    return f"{'~' if is_estimate else ''}{count:,}"


def size(text: str) -> str:
    """How long a text is."""
    count = len(text.encode("utf-8", "surrogatepass"))
    if count < 1_000:
        return "1 byte" if count == 1 else f"{count} bytes"
    return f"{count / 1_000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


def money(cost: Decimal | None, priced: int = 1, calls: int = 1) -> str:
    """In the currency of the prices; with a + where only a part of the calls has a known price."""
    if cost is None:
        return UNKNOWN if calls else "0"
    digits = 2 if cost >= 100 else 4
    return f"{cost:,.{digits}f}{'+' if priced < calls else ''}"


def share(part: float | None) -> str:
    return UNKNOWN if part is None else f"{100 * part:.0f} %"
