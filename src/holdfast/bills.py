"""Bills: what calls used and cost, added up without inventing a number.

    bill = Bill()
    for call in calls:
        bill = bill.plus(call)
    bill.usage, bill.cost, bill.priced, bill.cache_share

A vendor that did not say how many tokens it read has not read none, and a call whose price nobody
knows was not free: a sum tells of how many calls it is.
"""

from collections.abc import Iterable
from decimal import Context, Decimal, localcontext
from typing import NamedTuple

from holdfast.entries import Call, Fold
from holdfast.messages import Message
from holdfast.stores.values import Stored
from holdfast.usage import Usage

_EXACT = Context(prec=200)
_NOTHING = Usage()


class Bill(NamedTuple):
    """Some calls, added up.

    usage    tokens, as far as they were told; None where nobody told any
    cost     in the currency of the models' prices; None when no price was known
    told     of how many calls the prompt is known
    priced   of how many calls the cost is known
    cached   tokens of prompts that came from a cache, of `cacheable`: the prompts of the calls that
             told how much of them did
    """

    calls: int = 0
    usage: Usage = _NOTHING
    cost: Decimal | None = None
    told: int = 0
    priced: int = 0
    cached: int = 0
    cacheable: int = 0

    @property
    def cache_share(self) -> float | None:
        """Which share of the prompts came from a cache, from 0 to 1; None when nobody told."""
        return self.cached / self.cacheable if self.cacheable else None

    def plus(self, call: Call) -> "Bill":
        """With another call."""
        used = call.usage
        has_cache = used.input is not None and used.cache_read is not None
        return self + Bill(
            1,
            used,
            call.cost,
            int(used.input is not None),
            int(call.cost is not None),
            (used.cache_read or 0) if has_cache else 0,
            (used.input or 0) if has_cache else 0,
        )

    def __add__(self, other: "Bill") -> "Bill":  # type: ignore[override]
        costs = [each for each in (self.cost, other.cost) if each is not None]
        with localcontext(_EXACT):
            cost = sum(costs, Decimal(0)) if costs else None
        return Bill(
            self.calls + other.calls,
            self.usage + other.usage,
            cost,
            self.told + other.told,
            self.priced + other.priced,
            self.cached + other.cached,
            self.cacheable + other.cacheable,
        )


class Fill(NamedTuple):
    """How full the window was when a turn's last prompt was sent.

    tokens       of that prompt; None where nobody knows
    is_reported  whether the model's service counted them; else they are estimated
    limit        how many the prompt may have had; None where that was not kept
    folds        how many folds were made in the turn
    """

    tokens: int | None
    is_reported: bool
    limit: int | None
    folds: int


def bill_of(rows: Iterable[Stored]) -> Bill:
    """The calls among some entries."""
    bill = Bill()
    for row in rows:
        if isinstance(row.entry, Call):
            bill = bill.plus(row.entry)
    return bill


def fill_of(rows: Iterable[Stored]) -> Fill:
    """How full the window was in a turn, which has these entries."""
    entries = [row.entry for row in rows]
    answers = {each.id for each in entries if isinstance(each, Message)}
    prompts = [each for each in entries if isinstance(each, Call) and each.about in answers]
    folds = sum(isinstance(each, Fold) for each in entries)
    if not prompts:
        return Fill(None, False, None, folds)
    last = prompts[-1]
    used, limit = last.window.get("used"), last.window.get("limit")
    reported = last.usage.input
    tokens = reported if reported is not None else used if type(used) is int else None
    return Fill(tokens, reported is not None, limit if type(limit) is int else None, folds)
