"""Limits: where a turn stops, and what a session has spent.

    settings = Settings(limits={"rounds": 20, "cost": "0.50", "session_cost": 5})

| limit          | of                                                              | default |
|----------------|-----------------------------------------------------------------|---------|
| rounds         | answers of the model in one turn; 0 is as many as it likes      | 10      |
| tokens         | read and written in one turn, all calls added up                | none    |
| cost           | of one turn, in the currency of the model's prices              | none    |
| session_rounds | calls of a model in the whole session, all its branches; those  | none    |
|                | that continue an answer or sum up count as well                 |         |
| session_tokens | of the whole session, likewise                                  | none    |
| session_cost   |                                                                 | none    |
| continuations  | of one answer that was cut off because it was too long          | 10      |

What a session has spent stands in its latest receipt, so nothing has to be added up.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from holdfast.entries import Call, Fold, Mark
from holdfast.errors import InvalidInput, LimitReached
from holdfast.frozen import Value
from holdfast.usage import Usage, amount

ROUNDS_MAX = 10
CONTINUATIONS_MAX = 10
CONTINUED_TOKENS_MAX = 10_000


class Spent(NamedTuple):
    """What calls have used so far. `cost` is None while no price is known."""

    calls: int = 0
    input: int = 0
    output: int = 0
    cost: Decimal | None = None

    @property
    def tokens(self) -> int:
        return self.input + self.output

    def plus(self, usage: Usage, cost: Decimal | None) -> "Spent":
        """With another call."""
        known = [each for each in (self.cost, cost) if each is not None]
        return Spent(
            self.calls + 1,
            self.input + (usage.input or 0),
            self.output + (usage.output or 0),
            sum(known, Decimal(0)) if known else None,
        )

    def since(self, before: "Spent") -> "Spent":
        """What was used after it was so much."""
        cost = None if self.cost is None else self.cost - (before.cost or Decimal(0))
        used = (self.calls - before.calls, self.input - before.input, self.output - before.output)
        return Spent(*used, cost)

    @property
    def values(self) -> dict[str, Any]:
        """As JSON, for a receipt."""
        cost = None if self.cost is None else str(self.cost)
        return {"calls": self.calls, "input": self.input, "output": self.output, "cost": cost}

    @classmethod
    def of(cls, entry: object) -> "Spent | None":
        """What a receipt says, the mark at the start of a branch, or a fold that hides receipts."""
        holder = entry.extra if isinstance(entry, Call | Fold) else None
        holder = entry.data if type(entry) is Mark else holder
        spent: Any = None if holder is None else holder.get("spent")
        if not isinstance(spent, Mapping):
            return None
        cost = spent.get("cost")
        counts = (spent.get("calls", 0), spent.get("input", 0), spent.get("output", 0))
        return cls(*counts, None if cost is None else amount("cost", cost))


NOTHING_SPENT = Spent()


class Limits(Value, frozen=True, kw_only=True):
    """Where a turn stops; None is no limit."""

    rounds: int = ROUNDS_MAX
    tokens: int | None = None
    cost: Decimal | None = None
    session_rounds: int | None = None
    session_tokens: int | None = None
    session_cost: Decimal | None = None
    continuations: int = CONTINUATIONS_MAX

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Limits":
        """The limits in `settings.limits`."""
        if not isinstance(values, Mapping):
            raise InvalidInput("limits", f"is a dict, not {type(values).__name__}")
        for name in values:
            if name not in cls.__struct_fields__:
                known = ", ".join(cls.__struct_fields__)
                raise InvalidInput(f"limits.{name}", f"is not known: there are {known}")
        return cls(**values)

    def met(self, rounds: int, turn: Spent, session: Spent) -> LimitReached | None:
        """The limit that forbids another call, after so many rounds."""
        if self.rounds and rounds >= self.rounds:
            return LimitReached("rounds", self.rounds, rounds)
        for name, allowed, used in (
            ("tokens", self.tokens, turn.tokens),
            ("cost", self.cost, turn.cost),
            ("session_rounds", self.session_rounds, session.calls),
            ("session_tokens", self.session_tokens, session.tokens),
            ("session_cost", self.session_cost, session.cost),
        ):
            if allowed is not None and used is not None and used >= allowed:
                return LimitReached(name, float(allowed), float(used))
        return None

    def _settle(self) -> None:
        counts = ("tokens", "session_rounds", "session_tokens")
        self._settle_counts("rounds", "continuations", optional=counts)
        for name in ("cost", "session_cost"):
            if (money := getattr(self, name)) is not None:
                self._set(name, amount(name, money))


class Meter:
    """Counts a turn against its limits. `limit` is the one that it has met, if it did."""

    def __init__(self, limits: Limits, before: Spent) -> None:
        self.rounds = 0
        self.limit: LimitReached | None = None
        self._limits = limits
        self._before = before

    def is_over(self, spent: Spent) -> bool:
        """Whether a limit forbids to ask again. One that forbids to begin is raised."""
        limit = self._limits.met(self.rounds, spent.since(self._before), spent)
        if limit is not None and not self.rounds:
            raise limit
        self.limit = limit
        return limit is not None
