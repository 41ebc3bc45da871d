"""Entries: folds, calls, marks, and what a newer version wrote."""

import copy
import pickle
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import pytest

from holdfast import entries
from holdfast.entries import Call, Fold, Mark, UnknownEntry
from holdfast.errors import InvalidInput
from holdfast.frozen import FrozenDict, thaw
from holdfast.messages import Message
from holdfast.usage import Usage

WHEN = datetime(2026, 3, 1, 12, tzinfo=UTC)
SUMMARY = Message.user("They said hello.", synthetic="summary")

# class -> the least it needs
LEAST = {
    Fold: {"first": 1, "last": 4},
    Call: {"model": "acme:large"},
    Mark: {"what": "interrupted"},
    UnknownEntry: {"kind": "hologram", "raw": b'{"v":1,"hologram":7}'},
}

FULL = {
    Fold: {
        "id": "e-1",
        "timestamp": WHEN,
        "extra": {"k": [1]},
        "first": 2,
        "last": 2,
        "replacement": SUMMARY,
        "is_open": False,
        "by": "policy",
        "why": "too long",
        "tokens_before": 900,
        "tokens_after": 0,
    },
    Call: {
        "id": "e-1",
        "timestamp": WHEN,
        "extra": {"k": [1]},
        "model": "acme:large",
        "about": "m-1",
        "usage": Usage(input=10, output=2),
        "stop": "stop",
        "latency_ms": 1200,
        "cost": Decimal("0.0012"),
        "window": {"first": 1, "last": 9, "folds": [3]},
        "digest": "sha256:00",
        "request_id": "req-1",
    },
    Mark: {
        "id": "e-1",
        "timestamp": WHEN,
        "extra": {"k": [1]},
        "what": "mended",
        "about": "m-1",
        "data": {"pieces": 3, "where": ["content"]},
    },
    UnknownEntry: {"kind": "hologram", "raw": b' {"v": 1, "hologram":[ 1.0 ]}'},
}

TEXTS = {
    Fold: {"id", "by", "why"},
    Call: {"id", "model", "about", "stop", "digest", "request_id"},
    Mark: {"id", "what", "about"},
    UnknownEntry: {"kind"},
}
OPTIONAL_TEXTS = {"about", "stop", "digest", "request_id"}

COUNTS = {Fold: {"tokens_before", "tokens_after"}, Call: {"latency_ms"}}
OBJECTS = {Fold: {"extra"}, Call: {"extra", "window"}, Mark: {"extra", "data"}}


def pairs(table):
    return [
        pytest.param(k, f, id=f"{k.__name__}.{f}") for k, fs in table.items() for f in sorted(fs)
    ]


ALL = pytest.mark.parametrize("kind", LEAST, ids=lambda kind: kind.__name__)
NOT_TEXT = {"number": 1, "bytes": b"x", "true": True, "list": ["x"], "object": {"a": 1}}
NOT_COUNT = {
    "negative": -1,
    "float": 1.0,
    "true": True,
    "text": "1",
    "list": [1],
    "nan": float("nan"),
}
NOT_OBJECT = {
    "none": None,
    "list": [],
    "text": "x",
    "number": 1,
    "key": {1: 2},
    "bytes": {"a": b""},
}


def test_the_kinds_of_entries_are_those_that_were_designed():
    """A message, a fold, a call or a mark; other kinds are kept."""
    assert set(entries.ENTRY_TYPES) == {Message, *LEAST}


def test_the_tables_cover_every_field():
    """A control of this file: a field added later cannot go unchecked."""
    for kind, full in FULL.items():
        assert set(kind.__struct_fields__) == set(full)
        tested = TEXTS[kind] | COUNTS.get(kind, set()) | OBJECTS.get(kind, set())
        assert (
            set(full) - tested
            == {
                Fold: {"timestamp", "first", "last", "replacement", "is_open"},
                Call: {"timestamp", "usage", "cost"},
                Mark: {"timestamp"},
                UnknownEntry: {"raw"},
            }[kind]
        )


@ALL
def test_an_entry_keeps_what_it_was_given(kind):
    """Fold, call and mark carry what the design names."""
    entry = kind(**FULL[kind])

    for name, given in FULL[kind].items():
        kept = getattr(entry, name)
        assert (thaw(kept) if isinstance(kept, FrozenDict) else kept) == given


@pytest.mark.parametrize("kind", [Fold, Call, Mark], ids=lambda kind: kind.__name__)
def test_an_entry_has_an_id_and_a_time_from_the_start(kind):
    """Like a message; ids sort in the order of making."""
    before = datetime.now(UTC)
    one, two = kind(**LEAST[kind]), kind(**LEAST[kind])

    assert UUID(one.id).version == 7
    assert one.id < two.id
    assert before <= one.timestamp <= two.timestamp
    assert one.extra == {}


def test_what_is_not_given_is_unknown():
    """None means that nobody said."""
    fold, call, mark = Fold(first=1, last=1), Call(model="m"), Mark(what="w")

    assert (fold.replacement, fold.by, fold.why) == (None, "", "")
    assert (fold.tokens_before, fold.tokens_after) == (None, None)
    assert (call.about, call.stop, call.latency_ms, call.cost) == (None, None, None, None)
    assert (call.digest, call.request_id, call.window, call.usage) == (None, None, {}, Usage())
    assert (mark.about, mark.data) == (None, {})


@ALL
def test_entries_are_compared_and_hashed_by_content(kind):
    """Values."""
    assert kind(**FULL[kind]) == kind(**FULL[kind])
    assert hash(kind(**FULL[kind])) == hash(kind(**FULL[kind]))
    named = {"raw": b'{"v":1,"something else":7}'} if kind is UnknownEntry else {}
    for text in TEXTS[kind]:
        other = {**FULL[kind], text: "something else"} | named
        assert kind(**FULL[kind]) != kind(**other)


@ALL
def test_entries_pickle_and_copy(kind):
    """Shared freely, with other processes too."""
    entry = kind(**FULL[kind])

    for twin in (pickle.loads(pickle.dumps(entry)), copy.copy(entry), copy.deepcopy(entry)):
        assert type(twin) is kind
        assert twin == entry


@ALL
def test_entries_go_by_name_only(kind):
    """Many fields of one type: nothing is told by its position."""
    with pytest.raises(TypeError):
        kind(*LEAST[kind].values())


@pytest.mark.parametrize(("kind", "field"), pairs(TEXTS))
@pytest.mark.parametrize("name", [*NOT_TEXT, "surrogate", "cut"])
def test_a_text_field_takes_storable_text_only(kind, field, name):
    """Bad inputs 31, 41: typed, at once, and with the name of the field."""
    bad = {**NOT_TEXT, "surrogate": "\ud800", "cut": "a\ud83d"}[name]

    with pytest.raises(InvalidInput, match=field):
        kind(**{**LEAST[kind], field: bad})


@pytest.mark.parametrize(("kind", "field"), pairs(TEXTS))
def test_none_and_nul_in_text_fields(kind, field):
    """NUL is kept everywhere; None only where it means that there is none."""
    named = {"raw": b'{"v":1,"a\\u0000b":7}'} if kind is UnknownEntry else {}
    assert getattr(kind(**{**LEAST[kind], field: "a\0b"} | named), field) == "a\0b"
    if field in OPTIONAL_TEXTS:
        assert getattr(kind(**{**LEAST[kind], field: None}), field) is None
    else:
        with pytest.raises(InvalidInput, match=field):
            kind(**{**LEAST[kind], field: None})


@pytest.mark.parametrize(("kind", "field"), pairs(COUNTS))
@pytest.mark.parametrize("name", NOT_COUNT)
def test_a_count_is_a_whole_number_from_0_up(kind, field, name):
    """True is not 1 token, and there is no half token."""
    with pytest.raises(InvalidInput, match=field):
        kind(**{**LEAST[kind], field: NOT_COUNT[name]})


@pytest.mark.parametrize(("kind", "field"), pairs(COUNTS))
@pytest.mark.parametrize("count", [None, 0, 1, 2**40], ids=str)
def test_a_count_may_be_unknown_or_zero(kind, field, count):
    """None is "nobody said", and 0 is none."""
    assert getattr(kind(**{**LEAST[kind], field: count}), field) == count


@pytest.mark.parametrize(("kind", "field"), pairs(OBJECTS))
@pytest.mark.parametrize("name", NOT_OBJECT)
def test_an_object_field_takes_a_json_object_only(kind, field, name):
    """Bad inputs 55: null is not an empty object."""
    with pytest.raises(InvalidInput, match=field):
        kind(**{**LEAST[kind], field: NOT_OBJECT[name]})


@pytest.mark.parametrize("kind", [Fold, Call, Mark], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    "bad",
    [datetime(2026, 1, 1), "2026-01-01T00:00:00Z", 0, None],
    ids=["naive", "text", "number", "none"],
)
def test_the_time_of_an_entry_has_a_zone(kind, bad):
    """Bad inputs 54."""
    with pytest.raises(InvalidInput, match="timestamp"):
        kind(**LEAST[kind], timestamp=bad)


@pytest.mark.parametrize("kind", [Fold, Call, Mark], ids=lambda kind: kind.__name__)
def test_the_time_of_an_entry_is_kept_in_a_plain_form(kind):
    """The same rule as for messages."""
    zone = timezone(timedelta(hours=2), "here")

    kept = kind(**LEAST[kind], timestamp=WHEN.astimezone(zone)).timestamp

    assert kept == WHEN
    assert kept.utcoffset() == timedelta(hours=2)


@pytest.mark.parametrize(
    ("first", "last"),
    [(2, 1), (0, 1), (0, 0), (-1, 1), (1, -1), (1.0, 2), (1, "2"), (True, 2), (1, True), (None, 1)],
    ids=str,
)
def test_a_fold_covers_a_range_of_the_log(first, last):
    """Seq counts from 1, and `first..last` holds at least one entry."""
    with pytest.raises(InvalidInput):
        Fold(first=first, last=last)


@pytest.mark.parametrize(
    "bad",
    ["summary", {"role": "user"}, [SUMMARY], (), 1],
    ids=["text", "dict", "list", "tuple", "1"],
)
def test_a_fold_shows_a_message_or_nothing(bad):
    """Shown as `replacement`, or not at all."""
    with pytest.raises(InvalidInput, match="replacement"):
        Fold(first=1, last=2, replacement=bad)


@pytest.mark.parametrize("bad", [None, {}, {"input": 1}, 7, (1, 2)], ids=str)
def test_the_usage_of_a_call_is_a_usage(bad):
    """One type for tokens used."""
    with pytest.raises(InvalidInput, match="usage"):
        Call(model="m", usage=bad)


@pytest.mark.parametrize(
    "bad", [Decimal(-1), Decimal("nan"), Decimal("inf"), "much", True, [1]], ids=str
)
def test_the_cost_of_a_call_is_an_amount_of_money(bad):
    """Exact, finite, from 0 up."""
    with pytest.raises(InvalidInput, match="cost"):
        Call(model="m", cost=bad)


def test_the_cost_of_a_call_is_exact():
    """Money is a Decimal, whatever it came as."""
    assert Call(model="m", cost=Decimal("0.10")).cost == Decimal("0.10")
    assert type(Call(model="m", cost=3).cost) is Decimal


@pytest.mark.parametrize("bad", ["text", None, 1, [1], {"kind": "x"}], ids=str)
def test_an_unknown_entry_is_bytes(bad):
    """Kinds unknown to a reader are kept, byte for byte."""
    with pytest.raises(InvalidInput, match="raw"):
        UnknownEntry(kind="x", raw=bad)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"junk",
        b"7",
        b'{"x":1}',
        b'{"v":1}',
        b'{"v":1,"y":1}',
        b'{"v":1,"x":1,"y":1}',
        b'{"v":2,"x":1}',
        b'{"v":true,"x":1}',
        b'{"v":1,"x":1,"x":2}',
        b'{"v":1,"x":"\\ud800"}',
        b'{"v":1,"x":"\xff"}',
        b'{"v":1,"x":NaN}',
    ],
)
def test_an_unknown_entry_that_could_not_be_read_again_is_refused(raw):
    """What is kept is a record: no store finds out later that it is none."""
    with pytest.raises(InvalidInput, match="raw"):
        UnknownEntry(kind="x", raw=raw)


@pytest.mark.parametrize("kind", ["message", "fold", "call", "mark"])
def test_an_entry_of_a_known_kind_is_not_unknown(kind):
    """It would be read as what it is."""
    with pytest.raises(InvalidInput, match="kind"):
        UnknownEntry(kind=kind, raw=b'{"v":1,"%b":{}}' % kind.encode())


def test_a_fold_can_show_the_messages_again():
    """It says so, and has nothing to show in their place."""
    assert Fold(first=1, last=2, is_open=True).is_open
    assert not Fold(first=1, last=2).is_open

    with pytest.raises(InvalidInput, match="replacement"):
        Fold(first=1, last=2, replacement=SUMMARY, is_open=True)
    for bad in (None, 1, "yes"):
        with pytest.raises(InvalidInput, match="is_open"):
            Fold(first=1, last=2, is_open=bad)
