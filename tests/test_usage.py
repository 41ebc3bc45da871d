"""Usage and prices: exact money, and None where the vendor did not say."""

import decimal
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.usage import Prices, Usage

FIELDS = ("input", "output", "cache_read", "cache_write", "reasoning")

# A million tokens of a real price list.
LIST = Prices(
    input=Decimal("3"),
    output=Decimal("15"),
    cache_read=Decimal("0.30"),
    cache_write=Decimal("3.75"),
)
PLAIN = Prices(input=Decimal("3"), output=Decimal("15"))

GOLDEN = {
    "plain": (Usage(input=1000, output=200), LIST, "0.006"),
    "one-token": (Usage(input=1, output=0), LIST, "0.000003"),
    "nothing": (Usage(input=0, output=0), LIST, "0"),
    "million": (Usage(input=1_000_000, output=1_000_000), LIST, "18"),
    "cache-read": (Usage(input=1000, output=200, cache_read=400), LIST, "0.00492"),
    "cache-write": (Usage(input=1000, output=200, cache_write=100), LIST, "0.006075"),
    "both": (Usage(input=1000, output=200, cache_read=400, cache_write=100), LIST, "0.004995"),
    "all-cached": (Usage(input=1000, output=0, cache_read=1000), LIST, "0.0003"),
    "read-and-written": (
        Usage(input=500, output=0, cache_read=400, cache_write=100),
        LIST,
        "0.000495",
    ),
    "cache-known-to-be-none": (Usage(input=1000, output=200, cache_read=0), LIST, "0.006"),
    "no-cache-price": (
        Usage(input=1000, output=200, cache_read=400, cache_write=100),
        PLAIN,
        "0.006",
    ),
    "reasoning-is-in-output": (Usage(input=1000, output=200, reasoning=150), LIST, "0.006"),
    "free": (Usage(input=10, output=10), Prices(input=Decimal(0), output=Decimal(0)), "0"),
    "free-cache": (
        Usage(input=1000, output=0, cache_read=1000),
        Prices(input=Decimal(3), output=Decimal(15), cache_read=Decimal(0)),
        "0",
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_the_cost_of_tokens(name):
    """Input counts the whole prompt, so the cached part is priced once, as cached."""
    usage, prices, expected = GOLDEN[name]

    cost = usage.cost(prices)

    assert cost == Decimal(expected)
    assert type(cost) is Decimal


@pytest.mark.parametrize(
    "usage",
    [Usage(), Usage(input=1), Usage(output=1), Usage(cache_read=1), Usage(input=0, cache_read=0)],
    ids=["nothing", "input", "output", "cache", "zero"],
)
def test_a_cost_that_cannot_be_known_is_none(usage):
    """None where the vendor did not say; not 0, which would look free."""
    assert usage.cost(LIST) is None


AMOUNTS = st.decimals(0, 10**6, places=8)
COUNTS = st.integers(0, 10**15)


@given(
    read=COUNTS,
    write=COUNTS,
    rest=COUNTS,
    output=COUNTS,
    prices=st.lists(AMOUNTS, min_size=4, max_size=4),
)
def test_the_cost_is_exact(read, write, rest, output, prices):
    """Exact to the last digit, compared with fractions."""
    usage = Usage(input=read + write + rest, output=output, cache_read=read, cache_write=write)
    asked = Prices(input=prices[0], output=prices[1], cache_read=prices[2], cache_write=prices[3])

    cost = usage.cost(asked)

    parts = zip((rest, output, read, write), prices, strict=True)
    assert Fraction(cost) == sum(count * Fraction(price) for count, price in parts) / 10**6


def test_the_cost_does_not_depend_on_the_callers_decimal_context():
    """Exact means exact: a context with 3 digits belongs to the caller's own sums."""
    usage = Usage(input=123_456_789, output=987_654_321, cache_read=1_111_111)
    expected = usage.cost(LIST)

    with decimal.localcontext() as context:
        context.prec = 3
        inside = usage.cost(LIST)

    assert inside == expected
    assert (
        Fraction(expected)
        == (
            (123_456_789 - 1_111_111) * Fraction(3)
            + 1_111_111 * Fraction(3, 10)
            + 987_654_321 * Fraction(15)
        )
        / 10**6
    )


def test_a_usage_says_what_it_was_told():
    """S2-20: prompt, output, cache and reasoning; None is "did not say", 0 is none."""
    usage = Usage(input=10, output=0, cache_read=None, cache_write=3, reasoning=0)

    assert [getattr(usage, name) for name in FIELDS] == [10, 0, None, 3, 0]
    assert Usage.__struct_fields__ == FIELDS
    assert [getattr(Usage(), name) for name in FIELDS] == [None] * 5


def test_the_total_is_input_and_output():
    """S2-20: cached and reasoning tokens are inside already."""
    assert Usage(input=10, output=5, cache_read=4, reasoning=3).total == 15
    assert Usage(input=10).total is None
    assert Usage(output=10).total is None
    assert Usage(input=0, output=0).total == 0


def test_adding_keeps_what_is_known():
    """Known tokens of both; unknown only where both are."""
    one = Usage(input=1, output=2, cache_read=3)
    two = Usage(input=10, output=20, cache_write=40)

    assert one + two == Usage(input=11, output=22, cache_read=3, cache_write=40)
    assert (one, two) == (
        Usage(input=1, output=2, cache_read=3),
        Usage(input=10, output=20, cache_write=40),
    )


USAGES = st.builds(Usage, *(st.none() | st.integers(0, 10**9) for _ in FIELDS))


@given(USAGES, USAGES, USAGES)
def test_adding_goes_in_any_order(a, b, c):
    """A sum over a session does not depend on how it is grouped."""
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a + Usage() == a


@pytest.mark.parametrize("other", [1, None, (1, 2), {"input": 1}], ids=str)
def test_a_usage_is_added_to_a_usage_only(other):
    """A slip is a TypeError, not a strange sum."""
    with pytest.raises((TypeError, InvalidInput)):
        Usage(input=1) + other


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize(
    "bad",
    [-1, 1.0, True, "1", b"1", [1], math.nan, Decimal(1)],
    ids=["negative", "float", "true", "text", "bytes", "list", "nan", "decimal"],
)
def test_a_number_of_tokens_is_a_whole_number_from_0_up(field, bad):
    """Typed, at once, and with the name of the field."""
    with pytest.raises(InvalidInput, match=field):
        Usage(**{field: bad})


@pytest.mark.parametrize("field", ["input", "output", "cache_read", "cache_write"])
@pytest.mark.parametrize(
    "bad",
    [Decimal(-1), Decimal("nan"), Decimal("snan"), Decimal("inf"), "much", "", True, [1], b"1"],
    ids=["negative", "nan", "snan", "inf", "words", "empty", "true", "list", "bytes"],
)
def test_a_price_is_a_number_from_0_up(field, bad):
    """Typed, at once, and with the name of the field."""
    given = {"input": Decimal(1), "output": Decimal(1), field: bad}

    with pytest.raises(InvalidInput, match=field):
        Prices(**given)


@pytest.mark.parametrize("field", ["input", "output"])
def test_a_price_of_none_is_taken_for_the_cache_only(field):
    """Without a cache price, cached input costs as input; without a price there is no cost."""
    with pytest.raises(InvalidInput, match=field):
        Prices(**{"input": Decimal(1), "output": Decimal(1), field: None})


@pytest.mark.parametrize(
    ("given", "kept"),
    [(Decimal("0.10"), "0.10"), (3, "3"), ("0.1", "0.1")],
    ids=["decimal", "int", "text"],
)
def test_a_price_is_kept_exactly(given, kept):
    """Money is a Decimal, whatever it came as."""
    price = Prices(input=given, output=Decimal(1)).input

    assert type(price) is Decimal
    assert price == Decimal(kept)


@pytest.mark.parametrize("number", [0.1, 3.75, 0.3, 1e-7], ids=str)
def test_a_price_given_as_a_float_is_what_the_reader_sees_or_refused(number):
    """0.1 means a tenth; 0.1000000000000000055 is not an amount of money anybody wrote."""
    try:
        price = Prices(input=number, output=Decimal(1)).input
    except InvalidInput:
        return

    assert price == Decimal(repr(number))


@pytest.mark.parametrize(
    "bad", [None, 1, b"USD", "\ud800"], ids=["none", "1", "bytes", "surrogate"]
)
def test_a_currency_is_text(bad):
    """Bad inputs 31."""
    with pytest.raises(InvalidInput, match="currency"):
        Prices(input=1, output=1, currency=bad)


def test_usage_and_prices_are_values():
    """Compared and hashed by content; they pickle."""
    usage = Usage(input=1, output=2)

    assert usage == Usage(1, 2)
    assert hash(usage) == hash(Usage(1, 2))
    assert usage != Usage(1, 3)
    assert pickle.loads(pickle.dumps(usage)) == usage
    assert pickle.loads(pickle.dumps(LIST)) == LIST
    assert hash(LIST) == hash(LIST.replace())
    assert LIST.currency == "USD"
