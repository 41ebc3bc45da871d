"""Events: what a running turn tells those who watch it."""

import copy
import math
import pickle
from decimal import Decimal

import msgspec
import pytest

from holdfast import events
from holdfast.entries import Fold
from holdfast.errors import InvalidInput
from holdfast.events import Outcome, TurnFinished
from holdfast.messages import Message, ToolCall
from holdfast.usage import Usage

SAID = Message.user("hi")
CALL = ToolCall(id="call_1", name="search", arguments="{}")
FOLD = Fold(first=1, last=2)

EXAMPLES = {
    "TurnStarted": {"session_id": "s-1", "message": SAID},
    "TextDelta": {"text": "words"},
    "ThinkingDelta": {"text": "hm"},
    "ToolCallStarted": {"id": "call_1", "name": "search"},
    "ToolCallReady": {"call": CALL},
    "ToolResult": {"message": Message.tool("42", "call_1")},
    "UsageUpdate": {"usage": Usage(input=1, output=2), "is_full": True},
    "Folded": {"folds": (FOLD, FOLD)},
    "Retrying": {"error": "overloaded", "attempt": 1, "attempts_max": 3, "delay_s": 0.5},
    "TurnFinished": {
        "outcome": "response",
        "message": Message.assistant("done"),
        "usage": Usage(input=1, output=2),
        "cost": Decimal("0.01"),
    },
    "ConsolidationStarted": {"session_id": "s-1", "start": 0, "stop": 9},
    "Consolidated": {
        "session_id": "s-1",
        "start": 0,
        "stop": 9,
        "entry": "They met.",
        "is_raw": True,
        "is_memory_changed": True,
        "usage": Usage(input=1, output=2),
    },
    "ConsolidationFailed": {
        "session_id": "s-1",
        "start": 0,
        "stop": 9,
        "error": "overloaded",
        "attempt": 1,
        "attempts_max": 3,
    },
}

TAGS = {
    "TurnStarted": "turn_started",
    "TextDelta": "text_delta",
    "ThinkingDelta": "thinking_delta",
    "ToolCallStarted": "tool_call_started",
    "ToolCallReady": "tool_call_ready",
    "ToolResult": "tool_result",
    "UsageUpdate": "usage_update",
    "Folded": "folded",
    "Retrying": "retrying",
    "TurnFinished": "turn_finished",
    "ConsolidationStarted": "consolidation_started",
    "Consolidated": "consolidated",
    "ConsolidationFailed": "consolidation_failed",
}

TEXT = [1, b"x", None, True, ["x"], "\ud800", "cut \ud83d"]
MESSAGE = ["hi", {"role": "user"}, [SAID], 1, CALL]
NUMBER = ["1", True, -1, None, math.nan]

REFUSED = {
    ("TurnStarted", "session_id"): TEXT,
    ("TurnStarted", "message"): [*MESSAGE, None],
    ("TextDelta", "text"): TEXT,
    ("ThinkingDelta", "text"): TEXT,
    ("ToolCallStarted", "id"): TEXT,
    ("ToolCallStarted", "name"): TEXT,
    ("ToolCallReady", "call"): [{"id": "x"}, "x", None, SAID, [CALL]],
    ("ToolResult", "message"): [*MESSAGE, None],
    ("UsageUpdate", "usage"): [{"input": 1}, None, 1, (1, 2)],
    ("UsageUpdate", "is_full"): [None, 1, "yes"],
    ("Folded", "folds"): [FOLD, [SAID], [None], None, "x", [{"first": 1, "last": 2}], 1],
    ("Retrying", "error"): TEXT,
    ("Retrying", "attempt"): [*NUMBER, 1.0],
    ("Retrying", "attempts_max"): [*NUMBER, 1.0],
    ("Retrying", "delay_s"): [*NUMBER, math.inf],
    ("TurnFinished", "outcome"): TEXT,
    ("TurnFinished", "message"): MESSAGE,
    ("TurnFinished", "usage"): [{"input": 1}, None, 1],
    ("TurnFinished", "cost"): [Decimal(-1), Decimal("nan"), "much", True, [1]],
    ("Consolidated", "entry"): TEXT,
    ("Consolidated", "is_raw"): [None, 1, "yes"],
    ("Consolidated", "is_memory_changed"): [None, 1, "yes"],
    ("Consolidated", "usage"): [{"input": 1}, None, 1, (1, 2)],
    ("ConsolidationFailed", "error"): TEXT,
    ("ConsolidationFailed", "attempt"): [*NUMBER, 1.0],
    ("ConsolidationFailed", "attempts_max"): [*NUMBER, 1.0],
}
for _kind in ("ConsolidationStarted", "Consolidated", "ConsolidationFailed"):
    REFUSED |= {(_kind, "session_id"): TEXT}
    REFUSED |= {(_kind, name): [*NUMBER, 1.0] for name in ("start", "stop")}

CASES = [
    pytest.param(name, field, bad, id=f"{name}.{field}-{at}")
    for (name, field), values in REFUSED.items()
    for at, bad in enumerate(values)
]
ALL = pytest.mark.parametrize("name", EXAMPLES)


def build(name, /, **changes):
    return getattr(events, name)(**{**EXAMPLES[name], **changes})


def test_every_event_is_in_the_tables():
    """A control of this file: an event or a field added later cannot go unchecked."""
    found = {kind.__name__: kind for kind in events.Event.__subclasses__()}

    assert set(found) == set(EXAMPLES) == set(TAGS)
    fields = {(name, field) for name, kind in found.items() for field in kind.__struct_fields__}
    assert fields == set(REFUSED)


@ALL
def test_an_event_keeps_what_it_was_given(name):
    """Text, thinking, tool and usage events, then the result."""
    event = build(name)

    for field, given in EXAMPLES[name].items():
        assert getattr(event, field) == given


@ALL
def test_events_are_values(name):
    """Compared and hashed by content; they pickle and copy."""
    event = build(name)

    assert event == build(name)
    assert hash(event) == hash(build(name))
    for twin in (pickle.loads(pickle.dumps(event)), copy.copy(event), copy.deepcopy(event)):
        assert type(twin) is type(event)
        assert twin == event


@ALL
def test_the_event_names_itself_in_json(name):
    """Names on the wire are chosen once; renaming a class changes no client."""
    written = msgspec.json.encode(build(name))

    assert msgspec.json.decode(written)["event"] == TAGS[name]
    assert msgspec.json.decode(written, type=getattr(events, name)) == build(name)


def test_all_events_are_read_as_one_union():
    """The names are all different, so a reader can tell what came."""
    union = events.TurnStarted
    for kind in events.Event.__subclasses__():
        union = union | kind

    for name in EXAMPLES:
        assert msgspec.json.decode(msgspec.json.encode(build(name)), type=union) == build(name)


@pytest.mark.parametrize(("name", "field", "bad"), CASES)
def test_an_event_refuses_what_its_field_cannot_hold(name, field, bad):
    """Typed, at once, and with the name of the field."""
    with pytest.raises(InvalidInput, match=field):
        build(name, **{field: bad})


def test_a_turn_may_end_without_a_message():
    """S2-21: a cancelled turn has said nothing."""
    event = events.TurnFinished(outcome="cancelled")

    assert (event.message, event.usage, event.cost) == (None, Usage(), None)


def test_folds_may_come_as_a_list():
    """A list is taken and kept as a tuple."""
    assert events.Folded([FOLD]).folds == (FOLD,)


def test_a_delay_may_be_a_whole_number():
    """JSON knows one kind of number."""
    assert build("Retrying", delay_s=2).delay_s == 2
    assert build("Retrying", delay_s=0).delay_s == 0


def test_a_turn_ends_in_one_of_six_ways():
    """S2-21: response, pending, cancelled, max_tokens, blocked or limit; a failure is raised."""
    for outcome in ("response", "pending", "cancelled", "max_tokens", "blocked", "limit"):
        assert TurnFinished(outcome=outcome).outcome is Outcome(outcome)
    with pytest.raises(InvalidInput, match="use one of response, pending"):
        TurnFinished(outcome="error")
