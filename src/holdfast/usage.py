"""Tokens used, and what they cost."""

from decimal import Context, Decimal, InvalidOperation, localcontext

from holdfast.errors import InvalidInput
from holdfast.frozen import Value

_EXACT = Context(prec=200)


class Prices(Value, frozen=True, kw_only=True):
    """What a million tokens cost. Without a cache price of its own, cached input costs as input."""

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    currency: str = "USD"

    def _settle(self) -> None:
        for name in ("input", "output", "cache_read", "cache_write"):
            price = getattr(self, name)
            if price is None and name.startswith("cache"):
                continue
            self._set(name, amount(name, price))
        self._settle_texts("currency")


def amount(name: str, money: object) -> Decimal:
    """An amount of money, exactly; InvalidInput when it is not a number from 0 up."""
    try:
        exact = Decimal(str(money))  # by its text: 0.1 is a tenth, not the float nearest to it
    except InvalidOperation:
        exact = Decimal("NaN")
    if not exact.is_finite() or exact < 0 or isinstance(money, bool):
        raise InvalidInput(name, f"is an amount of money from 0 up, not {money!r}")
    return exact


class Usage(Value, frozen=True):
    """Tokens of one call, or of several added up. None is "the vendor did not say"; 0 is none.

    input        the whole prompt, the part that came from a cache included
    output       everything written, reasoning included
    cache_read   the part of `input` that came from a cache
    cache_write  the part of `input` that was put into a cache
    reasoning    the part of `output` that was thought and not said
    """

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None

    @property
    def total(self) -> int | None:
        """Input and output together; None when either is unknown."""
        if self.input is None or self.output is None:
            return None
        return self.input + self.output

    def __add__(self, other: "Usage") -> "Usage":
        """The known tokens of both; unknown only where both are."""
        if not isinstance(other, Usage):
            return NotImplemented
        return Usage(*map(_sum, self._counts(), other._counts()))

    def cost(self, prices: Prices) -> Decimal | None:
        """What the tokens cost, exactly; None when input or output is unknown."""
        if self.input is None or self.output is None:
            return None
        read = self.cache_read or 0
        write = self.cache_write or 0
        read_price = prices.input if prices.cache_read is None else prices.cache_read
        write_price = prices.input if prices.cache_write is None else prices.cache_write
        fresh = max(0, self.input - read - write)
        with localcontext(_EXACT):  # whatever precision the caller's own context has
            total = fresh * prices.input + read * read_price + write * write_price
            return (total + self.output * prices.output).scaleb(-6)

    def _counts(self) -> tuple[int | None, ...]:
        return self.input, self.output, self.cache_read, self.cache_write, self.reasoning

    def _settle(self) -> None:
        self._settle_counts(optional=self.__struct_fields__)


def _sum(a: int | None, b: int | None) -> int | None:
    if a is None:
        return b
    return a if b is None else a + b
