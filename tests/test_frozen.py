"""Frozen JSON: a dict that cannot change, all the way down, and what may stand in it."""

import copy
import json
import math
import pickle
from collections import OrderedDict, namedtuple
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.frozen import DEPTH_MAX, DIGITS_MAX, EMPTY, FrozenDict, freeze, thaw

REFUSED = (TypeError, AttributeError)


class Colour(StrEnum):
    RED = "red"


class OldColour(str, Enum):  # noqa: UP042  (the older spelling is the case)
    BLUE = "blue"


class Size(IntEnum):
    BIG = 7


class Loud(str):
    """A str with room for attributes."""


class Odd(float):
    pass


Point = namedtuple("Point", "x y")

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=20,
)

# Every way in which a dict changes. The test below them sees to it that none is missing.
MUTATORS = {
    "__setitem__": lambda d: d.__setitem__("a", 9),
    "__delitem__": lambda d: d.__delitem__("a"),
    "__ior__": lambda d: d.__ior__({"a": 9}),
    "__init__": lambda d: d.__init__({"a": 9, "z": 1}),
    "clear": lambda d: d.clear(),
    "pop": lambda d: d.pop("a"),
    "popitem": lambda d: d.popitem(),
    "setdefault": lambda d: d.setdefault("z", 9),
    "update": lambda d: d.update({"a": 9}),
}

READERS = {
    *("__contains__", "__getitem__", "__iter__", "__len__", "__reversed__", "get", "items"),
    *("keys", "values", "copy", "__or__", "__ror__", "__eq__", "__ne__", "__lt__", "__le__"),
    *("__gt__", "__ge__", "__hash__", "__repr__", "__str__", "__format__", "__sizeof__"),
    *("__class__", "__class_getitem__", "__dir__", "__doc__", "__getattribute__", "__new__"),
    *("__getstate__", "__init_subclass__", "__reduce__", "__reduce_ex__", "__subclasshook__"),
    *("fromkeys",),  # a class method: it makes a new one, or none at all
}

STATEMENTS = {
    "d['a'] = 9": "d['a'] = 9",
    "d['z'] = 9": "d['z'] = 9",
    "del d['a']": "del d['a']",
    "d |= ...": "d |= {'a': 9}",
    "d.update(a=9)": "d.update(a=9)",
    "d.update(pairs)": "d.update([('a', 9)])",
    "d.update()": "d.update({'z': 9})",
    "d.pop(default)": "d.pop('z', None)",
    "d.setdefault(there)": "d.setdefault('a', 9)",
    "d['l'] += ...": "d['l'] += (9,)",
    "d['l'][0] = ...": "d['l'][0] = 9",
    "d['l'].append": "d['l'].append(9)",
    "d['d']['x'] = ...": "d['d']['x'] = 9",
    "d['d'].clear()": "d['d'].clear()",
    "d['l'][1]['y'] = ...": "d['l'][1]['y'] = 9",
    "d.attribute = ...": "d.attribute = 9",
    "d.__class__ = dict": "d.__class__ = dict",
    "d.__dict__": "d.__dict__['a'] = 9",
}


def plain():
    return {"a": 1, "l": [1, {"y": 2}], "d": {"x": [3]}}


def test_the_ways_to_change_a_dict_are_all_in_the_table():
    """A control of this file: what a later Python adds to dict has to be sorted in here."""
    changing = {name for name in dir(dict) if name not in READERS}

    assert changing - {"__setattr__", "__delattr__"} == set(MUTATORS)


@pytest.mark.parametrize("name", MUTATORS)
def test_the_table_does_change_a_plain_dict(name):
    """A control of this file: each entry of the table is a real change."""
    ordinary = plain()

    MUTATORS[name](ordinary)

    assert ordinary != plain()


@pytest.mark.parametrize("name", MUTATORS)
def test_a_frozen_dict_refuses_every_change(name):
    """S0-19, S0-34: whatever method is tried, the content stays. `__init__` may say nothing."""
    frozen = FrozenDict(plain())

    try:
        MUTATORS[name](frozen)
        is_refused = False
    except REFUSED:
        is_refused = True

    assert thaw(frozen) == plain()
    assert is_refused or name == "__init__"


@pytest.mark.parametrize("name", MUTATORS)
def test_the_shared_empty_dict_refuses_every_change(name):
    """EMPTY stands in every message without extra: one change would be in all of them."""
    with suppress(*REFUSED, KeyError):
        MUTATORS[name](EMPTY)

    assert EMPTY == {}
    assert len(EMPTY) == 0


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_cannot_change_a_frozen_dict_at_any_depth(name):
    """S0-34: nested arrays are tuples and nested objects are frozen too."""
    frozen = FrozenDict(plain())

    with pytest.raises(REFUSED):
        exec(STATEMENTS[name], {"d": frozen})

    assert thaw(frozen) == plain()


def test_every_level_of_a_frozen_dict_is_frozen():
    """All the way down: dicts become FrozenDicts, and lists become tuples."""
    frozen = FrozenDict(plain())

    assert type(frozen["l"]) is tuple
    assert type(frozen["l"][1]) is FrozenDict
    assert type(frozen["d"]) is FrozenDict
    assert type(frozen["d"]["x"]) is tuple


def test_what_was_passed_in_has_no_way_to_what_is_stored():
    """S0-34: the way in is a copy at every level."""
    mine = plain()
    frozen = FrozenDict(mine)

    mine["a"] = 9
    mine["l"].append(9)
    mine["l"][1]["y"] = 9
    mine["d"]["x"][0] = 9
    del mine["d"]

    assert thaw(frozen) == plain()


@pytest.mark.parametrize(
    "take",
    [dict, lambda d: {**d}, lambda d: d | {}, lambda d: {} | d, lambda d: dict(d.items()), thaw],
    ids=["dict", "unpack", "or", "ror", "items", "thaw"],
)
def test_a_copy_to_work_on_is_separate(take):
    """S0-19: what is changed in a copy is changed in the copy alone."""
    frozen = FrozenDict(plain())

    working = take(frozen)
    try:
        working["a"] = 9
        working["new"] = 9
    except REFUSED:
        assert type(working) is FrozenDict

    assert thaw(frozen) == plain()


def test_dict_copy_is_frozen_or_separate():
    """S0-19: `d.copy()` gives nothing through which the original changes."""
    frozen = FrozenDict(plain())

    twin = frozen.copy()
    try:
        twin["a"] = 9
    except REFUSED:
        assert type(twin) is FrozenDict

    assert frozen["a"] == 1


def test_thaw_gives_plain_dicts_and_lists_that_are_independent():
    """A copy to change, at every level; the next copy knows nothing of it."""
    frozen = FrozenDict(plain())

    first = thaw(frozen)
    first["l"][1]["y"] = 9
    first["d"]["x"].append(9)
    first["d"]["new"] = 9

    assert type(first) is dict
    assert type(first["l"]) is list
    assert type(first["l"][1]) is dict
    assert thaw(frozen) == plain()


@given(JSON)
def test_freezing_and_thawing_gives_the_same_json(value):
    """Nothing is lost or turned into something else on the way in and out."""
    again = thaw(freeze(value))

    assert again == value
    assert json.dumps(again) == json.dumps(value)


@given(JSON)
def test_a_frozen_value_is_hashable_and_encodes_as_its_json(value):
    """Frozen values are keys and members of sets, and JSON for every encoder."""
    frozen = freeze(value)

    hash(frozen)
    assert freeze(frozen) == frozen
    assert json.loads(json.dumps(frozen)) == value
    assert msgspec.json.encode(frozen) == msgspec.json.encode(value)


def test_equal_dicts_hash_alike_in_whatever_order():
    """Compared as a dict: the order of the names does not count."""
    one = FrozenDict({"a": 1, "b": [2, {"c": 3}]})
    two = FrozenDict({"b": [2, {"c": 3}], "a": 1})

    assert one == two
    assert hash(one) == hash(two)
    assert len({one, two}) == 1
    assert one != FrozenDict({"a": 1})
    assert one == {"a": 1, "b": (2, {"c": 3})}


def test_the_order_of_the_names_is_kept():
    """What is read back is written again as it was."""
    assert list(FrozenDict({"z": 1, "a": 2, "m": 3})) == ["z", "a", "m"]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_frozen_dict_pickles(protocol):
    """Values travel to other processes; what arrives is as frozen as what left."""
    frozen = FrozenDict(plain())

    twin = pickle.loads(pickle.dumps(frozen, protocol))

    assert type(twin) is FrozenDict
    assert twin == frozen
    assert hash(twin) == hash(frozen)
    assert type(twin["l"]) is tuple
    assert type(twin["d"]) is FrozenDict


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy], ids=["copy", "deepcopy"])
def test_a_frozen_dict_copies_into_a_frozen_dict(way):
    """No copy is a way around being frozen."""
    frozen = FrozenDict(plain())

    twin = way(frozen)

    assert type(twin) is FrozenDict
    assert twin == frozen
    assert type(twin["l"][1]) is FrozenDict


NOT_JSON = {
    "nan": math.nan,
    "infinity": math.inf,
    "minus-infinity": -math.inf,
    "1e400": float("1e400"),
    "odd-nan": Odd("nan"),
    "object": object(),
    "bytes": b"x",
    "bytearray": bytearray(b"x"),
    "set": {1},
    "frozenset": frozenset([1]),
    "datetime": datetime(2026, 1, 1),
    "decimal": Decimal(1),
    "complex": 1j,
    "function": len,
    "class": dict,
    "generator": (i for i in ()),
    "number-as-key": {1: 2},
    "none-as-key": {None: 2},
    "true-as-key": {True: 2},
    "tuple-as-key": {(): 2},
    "bytes-as-key": {b"k": 2},
    "surrogate": "\ud800",
    "half-emoji": "ok \ud83d",
    "surrogate-in-key": {"\udc00": 1},
    "pure-enum": Enum("Pure", "X").X,
}


@pytest.mark.parametrize("name", NOT_JSON)
def test_what_json_cannot_say_is_refused_with_its_place(name):
    """Bad inputs 31, 36, 44: the error leads to the one bad value in a large object."""
    value = {"outer_name": [0, {"inner_name": NOT_JSON[name]}]}

    with pytest.raises(InvalidInput) as caught:
        freeze(value, "extra")

    words = str(caught.value)
    assert "extra" in words
    assert words.index("outer_name") < words.index("1") < words.index("inner_name")
    words.encode()


@pytest.mark.parametrize("name", NOT_JSON)
def test_what_json_cannot_say_is_refused_at_the_top_too(name):
    """The same rule without anything around it."""
    with pytest.raises(InvalidInput, match="data"):
        freeze(NOT_JSON[name], "data")


def lists(depth):
    value = []
    for _ in range(depth - 1):
        value = [value]
    return value


def objects(depth):
    value = {}
    for _ in range(depth - 1):
        value = {"k": value}
    return value


def tuples(depth):
    value = ()
    for _ in range(depth - 1):
        value = (value,)
    return value


NESTS = pytest.mark.parametrize(
    "nest", [lists, objects, tuples], ids=["lists", "objects", "tuples"]
)


@NESTS
def test_64_levels_are_accepted(nest):
    """Bad inputs 38: the limit is 64, and 64 is inside."""
    assert DEPTH_MAX == 64

    frozen = freeze(nest(64))

    depth, level = 1, frozen
    while level:
        level = level["k"] if isinstance(level, dict) else level[0]
        depth += 1
    assert depth == 64


@NESTS
def test_65_levels_are_refused(nest):
    """Bad inputs 38: 65 is outside."""
    with pytest.raises(InvalidInput):
        freeze(nest(65))


@NESTS
def test_a_value_inside_64_levels_does_not_count_as_a_level(nest):
    """Bad inputs 38: a level is a list or an object; a number in the innermost is none."""
    value = [7] if nest is lists else (7,) if nest is tuples else {"k": 7}
    for _ in range(63):
        value = [value] if nest is lists else (value,) if nest is tuples else {"k": value}

    assert str(thaw(freeze(value))).count("7") == 1


@NESTS
def test_a_hundred_thousand_levels_are_a_typed_error(nest):
    """Bad inputs 38: never a RecursionError."""
    with pytest.raises(InvalidInput):
        freeze(nest(100_000))


def test_depth_counts_through_what_was_frozen_before():
    """Bad inputs 38: 65 levels are 65 levels, also when they were frozen one by one."""
    value = FrozenDict()
    for _ in range(63):
        value = FrozenDict({"k": value})

    with pytest.raises(InvalidInput):
        FrozenDict({"k": value})


def test_depth_counts_through_what_was_frozen_before_in_lists():
    """Bad inputs 38: the same with lists and objects by turns."""
    value = freeze(lists(60))

    with pytest.raises(InvalidInput):
        freeze([[[[{"k": value}]]]])


def test_a_value_that_holds_itself_is_a_typed_error():
    """Bad inputs 38: endless depth ends at the limit too."""
    loop = []
    loop.append(loop)
    ring = {}
    ring["me"] = [ring]

    for value in (loop, ring):
        with pytest.raises(InvalidInput):
            freeze(value)


def test_a_frozen_dict_built_by_hand_goes_by_the_same_rules():
    """FrozenDict(...) is no way around the checks."""
    for bad in NOT_JSON.values():
        with pytest.raises(InvalidInput):
            FrozenDict({"k": bad})
    with pytest.raises(InvalidInput):
        FrozenDict(objects(65))


@pytest.mark.parametrize("sign", [1, -1], ids=["positive", "negative"])
@pytest.mark.parametrize(
    "number", [10**999, 10**1000 - 1, 10**1000 - 10**999], ids=["smallest", "largest", "9000"]
)
def test_an_integer_of_1000_digits_is_kept(number, sign):
    """Bad inputs 37: exactly 1,000 digits are inside."""
    assert DIGITS_MAX == 1000
    assert len(str(number)) == 1000

    assert freeze([number * sign]) == (number * sign,)


@pytest.mark.parametrize("sign", [1, -1], ids=["positive", "negative"])
@pytest.mark.parametrize("number", [10**1000, 10**5000, 1 << 10**6], ids=["1001", "5001", "bits"])
def test_an_integer_of_more_digits_is_refused(number, sign):
    """Bad inputs 37: Python itself would refuse to print 5,000 digits, and later."""
    with pytest.raises(InvalidInput) as caught:
        freeze({"n": number * sign}, "extra")

    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "number", [2**53 + 1, 2**63, 2**64, -(2**63) - 1], ids=["2^53+1", "2^63", "2^64", "-2^63-1"]
)
def test_a_large_integer_stays_exact(number):
    """Bad inputs 37: no detour through a float."""
    (kept,) = freeze([number])

    assert kept == number
    assert type(kept) is int


def test_minus_zero_keeps_its_sign():
    """Bad inputs 36: -0.0 goes in and out as -0.0."""
    (kept,) = freeze([-0.0])

    assert math.copysign(1, kept) == -1


def test_a_boolean_stays_a_boolean_and_a_float_a_float():
    """True is not 1 in JSON, and 1.0 is not 1."""
    kept = freeze([True, False, 1, 0, 1.0, None])

    assert [type(item) for item in kept] == [bool, bool, int, int, float, type(None)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Colour.RED, "red"),
        (OldColour.BLUE, "blue"),
        (Loud("loud"), "loud"),
        (Size.BIG, 7),
        (Odd(1.5), 1.5),
        (Point(1, 2), (1, 2)),
        (OrderedDict(a=1), {"a": 1}),
    ],
    ids=["str-enum", "old-str-enum", "str", "int-enum", "float", "namedtuple", "ordered-dict"],
)
def test_a_subclass_becomes_the_plain_type(value, expected):
    """A subclass may carry state of its own that can change; JSON knows none of it."""
    kept = freeze({"k": value})["k"]

    assert kept == expected
    assert type(kept) in (str, int, float, tuple, FrozenDict)


def test_a_name_that_is_a_str_subclass_becomes_a_plain_str_or_is_refused():
    """Keys are values like the others."""
    for key in (Colour.RED, Loud("red")):
        try:
            (kept,) = freeze({key: 1})
        except InvalidInput:
            continue

        assert type(kept) is str
        assert kept == "red"


def test_odd_names_are_names():
    """Bad inputs 40, 48, 49: empty, long, and such as look like somebody's envelope."""
    odd = {
        "": 1,
        "\0": 2,
        "k" * 2**20: 3,
        "__class__": "x",
        "__reduce__": [],
        "_type": "metadata",
        "lc": 1,
        "$type": "y",
        "\ufffe": 4,
    }

    assert thaw(freeze(odd)) == odd


def test_many_names_are_kept():
    """Bad inputs 40: a large object is slow at worst, and complete."""
    assert len(freeze({str(i): i for i in range(100_000)})) == 100_000
