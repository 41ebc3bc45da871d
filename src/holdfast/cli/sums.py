"""Calls, added up: rows of a table, and the same for programs."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from holdfast.cli import amounts
from holdfast.cli.screen import Screen, one_line

if TYPE_CHECKING:
    from holdfast.bills import Bill
    from holdfast.entries import Call

HEADS = ["CALLS", "IN", "FROM CACHE", "TO CACHE", "OUT", "THOUGHT", "COST"]


class Sums:
    """Calls, added up by what they have in common."""

    def __init__(self, by: str) -> None:
        self._by = by
        self._bills: dict[str, Bill] = {}
        self.damaged: list[str] = []

    def add(self, key: str, call: "Call") -> None:
        from holdfast.bills import Bill

        of = {"model": call.model, "session": key}.get(self._by)
        name = f"{call.timestamp.astimezone():%Y-%m-%d}" if of is None else of
        self._bills[name] = self._bills.get(name, Bill()).plus(call)

    @property
    def _rows(self) -> Iterable[tuple[str, "Bill"]]:
        """Days in their order; models and sessions with what cost most, then most tokens, first."""
        if self._by == "day":
            return sorted(self._bills.items())
        return sorted(
            self._bills.items(),
            key=lambda each: (-(each[1].cost or 0), -(each[1].usage.total or 0), each[0]),
        )

    @property
    def _total(self) -> "Bill":
        from holdfast.bills import Bill

        return sum(self._bills.values(), Bill())

    def plain(self) -> dict[str, Any]:
        return {
            "by": self._by,
            "rows": [{self._by: name, **plain_bill(bill)} for name, bill in self._rows],
            "total": plain_bill(self._total),
            "damaged": self.damaged,
        }

    def print(self, screen: Screen) -> None:
        rows = [[*cells_of(bill), one_line(name, 200)] for name, bill in self._rows]
        screen.table([*rows, [*cells_of(self._total), "in all"]], [*HEADS, self._by.upper()])


def cells_of(bill: "Bill") -> list[str]:
    used = bill.usage
    if not bill.calls:
        return ["0", *[""] * (len(HEADS) - 1)]
    read = amounts.tokens(used.cache_read)
    if used.cache_read is not None:
        read += f" ({amounts.share(bill.cache_share)})"
    return [
        str(bill.calls),
        amounts.tokens(used.input) + ("+" if 0 < bill.told < bill.calls else ""),
        read,
        amounts.tokens(used.cache_write),
        amounts.tokens(used.output),
        amounts.tokens(used.reasoning),
        amounts.money(bill.cost, bill.priced, bill.calls),
    ]


def plain_bill(bill: "Bill") -> dict[str, Any]:
    used = bill.usage
    return {
        "calls": bill.calls,
        "input": used.input,
        "output": used.output,
        "cache_read": used.cache_read,
        "cache_write": used.cache_write,
        "reasoning": used.reasoning,
        "cache_share": bill.cache_share,
        "cost": None if bill.cost is None else str(bill.cost),
        "calls_with_tokens": bill.told,
        "calls_with_cost": bill.priced,
    }
