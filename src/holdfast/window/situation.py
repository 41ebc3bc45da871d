"""The situation in which a policy decides: how full the window is, what it costs, what was seen."""

from holdfast.errors import InvalidInput
from holdfast.frozen import Value
from holdfast.usage import Prices
from holdfast.window.budget import Budget

TRIGGERS = ("before", "after", "manual", "overflow")


class Situation(Value, frozen=True, kw_only=True):
    """What a policy is told beside the view. All tokens are the model's, as best known.

    limit        the most that the next request may have, system prompt and tools included
    used         what it has as the view stands
    margin       so much more it may have, where `used` is estimated
    base         the part of it that is no message: system prompt, tools, frame
    scale        tokens of the model for each token that the view counts
    budget       what the caller wants
    trigger      when it is asked: before a call, after a turn, by hand, after a context overflow
    prices       what tokens cost; None when that is not known
    cache_ttl_s  how long the prompt is cached after a call; None when it is not, or not known
    pause_s      how long ago the last call was; None when there was none
    """

    limit: int
    used: int
    margin: int = 0
    base: int = 0
    scale: float = 1.0
    budget: Budget = Budget()
    trigger: str = "before"
    prices: Prices | None = None
    cache_ttl_s: float | None = None
    pause_s: float | None = None

    @property
    def fill(self) -> float:
        """The share of the limit that is used."""
        return self.used / self.limit if self.limit else float("inf")

    @property
    def over(self) -> int:
        """How many tokens there may be too many; 0 when it fits for certain.

        It is what is planned by, and refuses nothing: see `is_too_long`.
        """
        return max(0, self.used + self.margin - self.limit)

    @property
    def is_too_long(self) -> bool:
        """Whether the request does not fit, as best known.

        One that only might not, by the margin, is sent: the model says so if it is too long.
        """
        return self.used > self.limit

    def tokens(self, counted: int) -> int:
        """So many tokens of the model for tokens that the view counted; rather one too many."""
        return -int(-counted * self.scale // 1)

    def _settle(self) -> None:
        self._settle_counts("limit", "used", "margin", "base")
        self._settle_number("scale", optional=("cache_ttl_s", "pause_s"))
        if not self.scale:
            raise InvalidInput("scale", "is more than 0")
        if self.trigger not in TRIGGERS:
            known = ", ".join(TRIGGERS)
            raise InvalidInput("trigger", f"is one of {known}, not {self.trigger!r}")
        if not isinstance(self.budget, Budget):
            raise InvalidInput("budget", f"is a Budget, not {type(self.budget).__name__}")
        if self.prices is not None and not isinstance(self.prices, Prices):
            raise InvalidInput("prices", f"is a Prices or None, not {type(self.prices).__name__}")
