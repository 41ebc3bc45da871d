"""Nothing a caller passes in or gets back can change what is stored.

Every value type and every field that can hold a container goes through the same four trials:
spoil what was passed in, try to spoil what came back, spoil what a copy was made with, and smuggle
something mutable past the checks with msgspec's own tools. Each trial has a control that fails.
"""

import copy
import pickle
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from types import SimpleNamespace

import msgspec
import pytest
from msgspec.structs import force_setattr

from holdfast import events
from holdfast.entries import ENTRY_TYPES, Call, Fold, Mark, UnknownEntry
from holdfast.errors import InvalidInput
from holdfast.events import Outcome
from holdfast.frozen import FrozenDict, Value
from holdfast.history import History, Turn
from holdfast.messages import Message, Result, Role, ToolCall
from holdfast.parts import Audio, CallRef, File, Image, Opaque, Text, Thinking, Unknown
from holdfast.settings import Settings
from holdfast.usage import Prices, Usage

WHEN = datetime(2026, 3, 1, tzinfo=UTC)
REFUSED = (TypeError, AttributeError)


def an_object():
    return {"k": [1, {"deep": [2]}], "o": {"p": "q"}}


def some_parts():
    return [Text("a", extra=an_object()), Unknown(an_object()), Image(data=b"x")]


def some_calls():
    return [ToolCall(id="c", name="n", arguments="{}", extra=an_object())]


def a_record():
    return bytearray(b'{"v":1,"k":[1]}')


def some_bytes():
    return bytearray(b"\x01\x02")


# Every value type: what it is built from, apart from its containers.
BASE = {
    Text: {"text": "a"},
    Image: {"url": "u"},
    Audio: {"url": "u"},
    File: {"url": "u", "name": "n"},
    Thinking: {"text": "a", "signature": "s"},
    CallRef: {"id": "c"},
    Opaque: {"provider": "acme", "data": {}},
    Unknown: {"raw": None},
    ToolCall: {"id": "c", "name": "n", "arguments": "{}"},
    Result: {"call_id": "c", "name": "n", "content": "x", "is_error": False},
    Message: {"role": Role.USER, "content": "x", "id": "m", "timestamp": WHEN},
    Fold: {"first": 1, "last": 2, "replacement": Message.user("s"), "id": "f", "timestamp": WHEN},
    Call: {"model": "m", "usage": Usage(1, 2), "cost": Decimal(1), "id": "c", "timestamp": WHEN},
    Mark: {"what": "w", "id": "k", "timestamp": WHEN},
    UnknownEntry: {"kind": "k", "raw": b'{"v":1,"k":0}'},
    Usage: {"input": 1, "output": 2},
    Prices: {"input": Decimal(1), "output": Decimal(2)},
    Settings: {"model": "m"},
    Turn: {"index": 1, "first": 0, "last": 1},
    events.TurnStarted: {"session_id": "s", "message": Message.user("x")},
    events.TextDelta: {"text": "x"},
    events.ThinkingDelta: {"text": "x"},
    events.ToolCallStarted: {"id": "c", "name": "n"},
    events.ToolCallReady: {"call": ToolCall(id="c", name="n", arguments="{}")},
    events.ToolResult: {"message": Message.tool("x", "c")},
    events.UsageUpdate: {"usage": Usage(1, 2)},
    events.Folded: {"folds": ()},
    events.Retrying: {"error": "x", "attempt": 1, "attempts_max": 2, "delay_s": 1.0},
    events.TurnFinished: {"outcome": "response", "message": Message.assistant("x")},
    events.ConsolidationStarted: {"session_id": "s", "start": 0, "stop": 1},
    events.Consolidated: {"session_id": "s", "start": 0, "stop": 1, "usage": Usage(1, 2)},
    events.ConsolidationFailed: {
        "session_id": "s",
        "start": 0,
        "stop": 1,
        "error": "x",
        "attempt": 1,
        "attempts_max": 2,
    },
}

# Every field that holds a container, and something mutable that a caller might pass for it.
CONTAINERS = {
    (Text, "extra"): an_object,
    (Image, "data"): some_bytes,
    (Image, "extra"): an_object,
    (Audio, "data"): some_bytes,
    (Audio, "extra"): an_object,
    (File, "data"): some_bytes,
    (File, "extra"): an_object,
    (Thinking, "extra"): an_object,
    (Opaque, "data"): an_object,
    (Unknown, "raw"): an_object,
    (ToolCall, "extra"): an_object,
    (Result, "content"): some_parts,
    (Message, "content"): some_parts,
    (Message, "tool_calls"): some_calls,
    (Message, "extra"): an_object,
    (Fold, "extra"): an_object,
    (Call, "extra"): an_object,
    (Call, "window"): an_object,
    (Mark, "extra"): an_object,
    (Mark, "data"): an_object,
    (UnknownEntry, "raw"): a_record,
    (Settings, "budget"): an_object,
    (Settings, "limits"): an_object,
    (Settings, "extra"): an_object,
    (events.Folded, "folds"): lambda: [Fold(first=1, last=2, extra=an_object())],
}


def name_of(case):
    return f"{case[0].__name__}.{case[1]}"


KINDS = pytest.mark.parametrize("kind", BASE, ids=lambda kind: kind.__name__)
FIELDS = pytest.mark.parametrize("case", CONTAINERS, ids=name_of)


def build(kind, **fields):
    given = {**BASE[kind], **fields}
    if "data" in fields and kind in (Image, Audio, File):
        del given["url"]
    return kind(**given)


def fields_of(value):
    return ("raw",) if isinstance(value, Unknown) else value.__struct_fields__


def full(kind):
    """A value with something in every container field that it has."""
    made = {f: make() for (owner, f), make in CONTAINERS.items() if owner is kind}
    return build(kind, **{f: bytes(m) if type(m) is bytearray else m for f, m in made.items()})


# ---- the instruments


def picture(value):
    """All that can be seen in a value, as text that shares nothing with it."""
    if isinstance(value, msgspec.Struct | Unknown):
        inside = ", ".join(f"{f}={picture(getattr(value, f))}" for f in fields_of(value))
        return f"{type(value).__name__}({inside})"
    if isinstance(value, dict):
        return f"dict({[(picture(k), picture(v)) for k, v in value.items()]})"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(picture, value))}]"
    if isinstance(value, datetime):
        return f"{value.isoformat()} {value.utcoffset()}"
    return repr(bytes(value) if isinstance(value, bytearray) else value)


def spoil(thing):
    """Change every container in it that can be changed; returns how many there were."""
    count = 0
    if isinstance(thing, dict) and not isinstance(thing, FrozenDict):
        count = 1 + sum(map(spoil, list(thing.values())))
        thing["spoiled"] = True
        thing.pop("k", None)
    elif isinstance(thing, list):
        count = 1 + sum(map(spoil, list(thing)))
        thing.reverse()
        thing.append("spoiled")
    elif isinstance(thing, tuple):
        count = sum(map(spoil, thing))
    elif isinstance(thing, bytearray):
        count = 1
        thing[0] ^= 0xFF
        thing.extend(b"spoiled")
    return count


LEAVES = (str, int, float, bool, type(None), bytes, Decimal, datetime, Role, Outcome)


def parts_of(value, path="value"):
    """Everything reachable from a value, with the way to it."""
    yield path, value
    if isinstance(value, msgspec.Struct | Unknown):
        for field in fields_of(value):
            yield from parts_of(getattr(value, field), f"{path}.{field}")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from parts_of(key, f"{path} key {key!r}")
            yield from parts_of(item, f"{path}[{key!r}]")
    elif isinstance(value, list | tuple | set):
        for at, item in enumerate(value):
            yield from parts_of(item, f"{path}[{at}]")


def check_frozen(value):
    """Everything reachable is of a type that cannot change; returns how much there was."""
    count = 0
    for path, thing in parts_of(value):
        count += 1
        kind = type(thing)
        if isinstance(thing, msgspec.Struct):
            assert kind.__struct_config__.frozen, f"{path} is a struct that is not frozen"
        elif kind is datetime:
            assert type(thing.tzinfo) is timezone, f"{path} has a zone of {type(thing.tzinfo)}"
        else:
            assert kind in (*LEAVES, tuple, FrozenDict, Unknown), f"{path} is a {kind.__name__}"
    return count


def check_way_in(make, keep):
    """Keep something mutable, spoil it, and see whether what was kept has changed."""
    passed = make()
    value = keep(passed)
    before = picture(value)

    assert spoil(passed) >= 1, "there was nothing to spoil"
    assert picture(passed) != picture(make()), "nothing was spoiled"
    assert picture(value) == before, "what was passed in changed what was kept"
    return value


def attacks_on(thing):
    """Statements that would change it, if they were not refused."""
    if isinstance(thing, msgspec.Struct | Unknown):
        for field in fields_of(thing):
            yield lambda field=field: setattr(thing, field, "spoiled")
            yield lambda field=field: delattr(thing, field)
        yield lambda: setattr(thing, "spoiled", 1)
        yield lambda: thing.__dict__.update(spoiled=1)
    elif isinstance(thing, dict):
        yield lambda: thing.__setitem__("spoiled", 1)
        yield lambda: thing.update(spoiled=1)
        yield lambda: thing.clear()
        yield lambda: thing.setdefault("spoiled", 1)
        yield lambda: thing.__ior__({"spoiled": 1})
        yield lambda: thing.pop(next(iter(thing), "k"))
        yield lambda: thing.popitem()
    elif isinstance(thing, tuple | list | bytes | bytearray):
        yield lambda: thing.__setitem__(0, 1)
        yield lambda: thing.__delitem__(0)
        yield lambda: thing.append(1)
        yield lambda: thing.clear()


def check_way_out(value):
    """Try every attack on everything reachable; returns how many were tried."""
    before, count = picture(value), 0
    for path, thing in parts_of(value):
        for attack in attacks_on(thing):
            count += 1
            try:
                attack()
            except REFUSED:
                continue
            raise AssertionError(f"{path} let itself be changed")
    assert picture(value) == before
    return count


# ---- the controls


def test_every_value_type_is_in_the_tables():
    """A control of this file: a type or a field added later cannot go untried."""
    homes = {"parts", "messages", "entries", "usage", "settings", "events", "history"}

    def below(kind):
        return {kind}.union(*map(below, kind.__subclasses__()))

    ours = {k for k in below(Value) if k.__module__.removeprefix("holdfast.") in homes}
    found = {kind for kind in ours if not any(child in kind.__subclasses__() for child in ours)}
    assert found | {Unknown} == set(BASE)


def test_every_container_field_is_in_the_table():
    """A control of this file: by the type that the field declares."""
    found = {
        (kind, field.name)
        for kind in BASE
        if kind is not Unknown
        for field in msgspec.structs.fields(kind)
        if any(word in str(field.type) for word in ("FrozenDict", "tuple", "bytes", "list", "dict"))
    }

    assert found | {(Unknown, "raw")} == set(CONTAINERS)


def test_the_trials_find_a_leak():
    """A control of this file: a holder that keeps what it was given fails every trial."""
    leaky = msgspec.defstruct("Leaky", ["extra"])
    planted = build(Message)
    force_setattr(planted, "extra", {"k": [1]})

    with pytest.raises(AssertionError, match="changed what was kept"):
        check_way_in(an_object, leaky)
    with pytest.raises(AssertionError, match="nothing to spoil"):
        check_way_in(lambda: ("a", 1), leaky)
    with pytest.raises(AssertionError, match="not frozen"):
        check_frozen(leaky(1))
    with pytest.raises(AssertionError, match="extra is a dict"):
        check_frozen(planted)
    with pytest.raises(AssertionError, match="let itself be changed"):
        check_way_out(planted)
    with pytest.raises(AssertionError, match="let itself be changed"):
        check_way_out(leaky(1))


@pytest.mark.parametrize("plant", [[1], {"a": 1}, {1}, bytearray(b"x")], ids=repr)
def test_the_walk_finds_something_mutable_at_any_depth(plant):
    """A control of this file: planted in an extra, a part and a tool call."""
    for holder in (
        SimpleNamespace(value=msgspec.structs.replace(build(Message), extra=plant)),
        SimpleNamespace(value=msgspec.structs.replace(build(Message), content=(plant,))),
        SimpleNamespace(
            value=msgspec.structs.replace(
                build(Message), tool_calls=(msgspec.structs.replace(build(ToolCall), extra=plant),)
            )
        ),
    ):
        with pytest.raises(AssertionError):
            check_frozen(holder.value)


# ---- in


@FIELDS
def test_what_was_passed_in_cannot_change_what_is_stored(case):
    """S0-19, S0-34: lists, dicts, nested extra, bytes, parts and tool calls."""
    kind, field = case

    try:
        value = check_way_in(CONTAINERS[case], lambda passed: build(kind, **{field: passed}))
    except InvalidInput:
        assert CONTAINERS[case] in (
            some_bytes,
            a_record,
        )  # to refuse a bytearray is to be safe from it
        return

    assert getattr(value, field)
    check_frozen(value)


@FIELDS
def test_what_a_copy_was_made_with_cannot_change_the_copy(case):
    """S0-34: `replace`, and `copy.replace` where Python has it, go by the same rules."""
    kind, field = case
    if kind is Unknown:
        assert not hasattr(Unknown(1), "replace")
        return
    original = build(kind)
    before = picture(original)
    ways = [type(original).replace, type(original).__replace__]
    ways += [copy.replace] if hasattr(copy, "replace") else []
    other = {"url": None} if field == "data" and kind is not Mark and kind is not Opaque else {}

    for way in ways:
        try:
            twin = check_way_in(
                CONTAINERS[case], lambda passed, way=way: way(original, **{**other, field: passed})
            )
        except InvalidInput:
            assert CONTAINERS[case] in (some_bytes, a_record)
            continue
        assert getattr(twin, field)
        check_frozen(twin)

    assert picture(original) == before


@pytest.mark.parametrize("kind", [Image, Audio, File], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("wrap", [bytearray, memoryview], ids=["bytearray", "memoryview"])
def test_bytes_that_can_change_are_copied_or_refused(kind, wrap):
    """S0-34: data is bytes afterwards, whatever it was before."""
    buffer = bytearray(b"\x01\x02")
    try:
        part = kind(data=buffer if wrap is bytearray else memoryview(buffer))
    except InvalidInput:
        return
    buffer[0] = 0xFF

    assert type(part.data) is bytes
    assert part.data == b"\x01\x02"


@pytest.mark.parametrize(
    "make", [Message.system, Message.user, Message.assistant], ids=["s", "u", "a"]
)
def test_the_short_constructors_copy_too(make):
    """S0-34: there is no way in without a copy."""
    check_frozen(check_way_in(some_parts, make))
    check_frozen(check_way_in(an_object, lambda extra: make("x", extra=extra)))
    check_frozen(check_way_in(some_calls, lambda calls: Message.assistant("x", calls)))
    check_frozen(check_way_in(some_parts, lambda parts: Message.tool(parts, "c")))


def test_settings_read_from_an_object_do_not_depend_on_it():
    """S0-34: `Settings.of` copies as well."""
    check_frozen(check_way_in(lambda: {"budget": an_object(), "new": an_object()}, Settings.of))


def test_text_with_state_of_its_own_becomes_plain_text_or_is_refused():
    """A subclass of str may carry anything; what is stored carries words."""

    class Loud(str):
        pass

    loud = Loud("x")
    loud.attachment = ["mutable"]
    for build_one in (
        lambda: Message.user(loud),
        lambda: Message.user("x", author=loud),
        lambda: Message.user("x", extra={"k": loud}),
        lambda: ToolCall(id=loud, name="n", arguments="{}"),
        lambda: Text(loud),
    ):
        try:
            value = build_one()
        except InvalidInput:
            continue
        check_frozen(value)


# ---- out


@KINDS
def test_what_came_back_cannot_be_changed(kind):
    """S0-18, S0-19, A30: every attack on everything reachable is refused."""
    value = full(kind)

    assert check_frozen(value) > len(fields_of(value))
    assert check_way_out(value) >= 2 * len(fields_of(value)) + 2


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "replace": lambda value: value.replace(),
    "copy.replace": lambda value: getattr(copy, "replace", type(value).__replace__)(value),
    "structs.replace": msgspec.structs.replace,
    **{
        f"pickle-{n}": lambda value, n=n: pickle.loads(pickle.dumps(value, n))
        for n in range(pickle.HIGHEST_PROTOCOL + 1)
    },
}


@KINDS
@pytest.mark.parametrize("way", COPIES)
def test_a_copy_is_equal_and_as_frozen_as_the_original(kind, way):
    """S0-19, A30: no way of copying is a way around."""
    value = full(kind)
    if kind is Unknown and "replace" in way:
        assert not isinstance(value, msgspec.Struct)
        return

    twin = COPIES[way](value)

    assert twin == value
    assert hash(twin) == hash(value)
    assert picture(twin) == picture(value)
    check_frozen(twin)
    check_way_out(twin)
    assert picture(twin) == picture(value)


@KINDS
def test_setting_and_deleting_any_attribute_is_refused(kind):
    """S0-19: on every struct, for every field, and for names that are not there."""
    value = full(kind)
    before = picture(value)

    for name in (*fields_of(value), "spoiled", "__class__"):
        with pytest.raises(REFUSED):
            setattr(value, name, "x")
    for name in (*fields_of(value), "spoiled"):
        with pytest.raises(REFUSED):
            delattr(value, name)

    assert picture(value) == before


def test_calling_the_constructor_again_changes_nothing():
    """`__init__` on a value that is there is refused, or does nothing."""
    for kind in BASE:
        value = full(kind)
        before = picture(value)
        with suppress(*REFUSED):
            value.__init__(**{**BASE[kind], **({"raw": "spoiled"} if kind is Unknown else {})})

        assert picture(value) == before, kind.__name__


def test_derived_views_are_frozen_too():
    """S2-19: text, calls and results lead to nothing that can change."""
    message = Message(Role.TOOL, some_parts(), tool_call_id="c", extra=an_object())
    asking = Message.assistant(some_parts(), some_calls())
    before = picture(message), picture(asking)

    for view in (message.results, asking.calls, message.text, asking.results):
        check_frozen(view)
        check_way_out(view)
    assert message.results
    assert asking.calls
    assert (picture(message), picture(asking)) == before


def test_the_values_of_settings_are_a_copy_to_work_on():
    """S0-19: what is changed in `values` is changed there alone."""
    settings = full(Settings)
    before = picture(settings)

    values = settings.values
    assert spoil(values) >= 1

    assert picture(settings) == before
    assert picture(settings.values) != picture(values)


# ---- the history


def a_log():
    return [full(kind) for kind in ENTRY_TYPES]


def test_lists_given_to_a_history_are_not_kept():
    """S0-34: by the constructor, by append and by replace."""
    first, second, third = a_log(), a_log(), a_log()
    history = History(first)
    history.append(*second)
    kept = picture(history.snapshot())
    spoil(first)
    spoil(second)
    assert picture(history.snapshot()) == kept

    history.replace(third)
    kept = picture(history.snapshot())
    spoil(third)
    assert picture(history.snapshot()) == kept


@pytest.mark.parametrize(
    "read",
    [lambda h: h.messages, lambda h: h.snapshot(), lambda h: h.slice(), lambda h: h.turns()],
    ids=["messages", "snapshot", "slice", "turns"],
)
def test_what_a_history_gives_back_cannot_change_it(read):
    """S0-18, S0-19, S0-23, A30: everything read is a tuple of values."""
    history = History(a_log())
    before = picture(history.snapshot())

    got = read(history)
    assert type(got) is tuple
    assert got
    check_frozen(got)
    check_way_out(got)
    working = list(got)
    working.reverse()
    working.append("spoiled")

    assert picture(history.snapshot()) == before


MUTABLE = {
    "list": lambda: ["x"],
    "empty-list": list,
    "dict": lambda: {"a": 1},
    "empty-dict": dict,
    "bytearray": lambda: bytearray(b"x"),
    "set": lambda: {"x"},
    "tuple-with-a-list": lambda: (["x"],),
    "object": SimpleNamespace,
}

# How a value that was tampered with gets into an entry, without any check.
HOLDERS = {
    **{
        kind: lambda value: msgspec.structs.replace(build(Message), content=(value,))
        for kind in (Text, Image, Audio, File, Thinking, CallRef, Opaque)
    },
    ToolCall: lambda value: msgspec.structs.replace(build(Message), tool_calls=(value,)),
    Usage: lambda value: msgspec.structs.replace(build(Call), usage=value),
    **{kind: lambda value: value for kind in ENTRY_TYPES},
}

SMUGGLED = [case for case in CONTAINERS if case[0] in HOLDERS]


def accepted(kind, field):
    """The mutable things that a history stores when they stand in this field."""
    history = History([Message.user("before")])
    kept = picture(history.snapshot())
    taken = []
    for plant, make in MUTABLE.items():
        entry = HOLDERS[kind](msgspec.structs.replace(full(kind), **{field: make()}))
        ways = {
            "append": lambda entry=entry: history.append(entry),
            "append among": lambda entry=entry: history.append(Message.user("a"), entry),
            "replace": lambda entry=entry: history.replace([Message.user("a"), entry]),
            "History": lambda entry=entry: History([entry]),
        }
        for way, store in ways.items():
            try:
                store()
                taken.append(f"{plant} by {way}")
            except InvalidInput:
                continue
    if not taken:
        assert picture(history.snapshot()) == kept
        assert history.head == 1
    return taken


@pytest.mark.parametrize("case", SMUGGLED, ids=name_of)
def test_a_history_refuses_a_container_that_msgspec_let_through(case):
    """S0-34: msgspec.structs.replace checks nothing; whoever stores the result has to."""
    assert accepted(*case) == []


@pytest.mark.parametrize("kind", HOLDERS, ids=lambda kind: kind.__name__)
def test_a_history_refuses_something_mutable_in_any_other_field(kind):
    """S0-34: a list in the place of a name can change as well."""
    others = [field for field in kind.__struct_fields__ if (kind, field) not in CONTAINERS]

    assert {field: taken for field in others if (taken := accepted(kind, field))} == {}


def test_a_subclass_of_a_message_is_a_message_or_refused():
    """A class of somebody's own must not vanish from the messages, nor open them."""

    class Loose(Message, frozen=False):
        pass

    class Longer(Message, frozen=True, kw_only=True):
        more: list = msgspec.field(default_factory=list)

    for kind in (Loose, Longer):
        message = kind(Role.USER, "x")
        history = History()
        try:
            history.append(message)
        except InvalidInput:
            continue

        assert len(history.messages) == len(history) == len(history.snapshot()) == 1
        check_frozen(history.snapshot())


def test_a_history_looks_into_the_replacement_of_a_fold():
    """S0-34: a message inside an entry is a message too."""
    tampered = msgspec.structs.replace(build(Message), extra={"k": [1]})
    fold = msgspec.structs.replace(build(Fold), replacement=tampered)

    with pytest.raises(InvalidInput):
        History().append(fold)


def test_a_history_refuses_mutable_things_deep_inside_frozen_ones():
    """S0-34: at any depth of content and extra."""
    spoiled_part = msgspec.structs.replace(build(Opaque), data={"k": 1})
    for content in (
        (Text("good"), spoiled_part),
        (Text("good"), msgspec.structs.replace(build(Text), extra={"k": [1]})),
        (Text("good"), msgspec.structs.replace(build(Image), data=bytearray(b"x"), url=None)),
        [Text("good")],
    ):
        with pytest.raises(InvalidInput):
            History().append(msgspec.structs.replace(build(Message), content=content))


class Wandering(tzinfo):
    """A zone whose offset its owner can change."""

    hours = 2

    def utcoffset(self, when):
        return timedelta(hours=self.hours)


def test_a_history_refuses_a_time_whose_zone_can_change():
    """S0-34: a stored time must not move."""
    zone = Wandering()
    moved = msgspec.structs.replace(build(Message), timestamp=datetime(2026, 1, 1, tzinfo=zone))
    history = History()

    try:
        history.append(moved)
    except InvalidInput:
        return
    before = history.messages[0].timestamp.astimezone(UTC)
    zone.hours = 9

    assert history.messages[0].timestamp.astimezone(UTC) == before


def test_a_history_takes_what_was_honestly_replaced():
    """A control of the refusals: the same tool with frozen values is no offence."""
    history = History()

    for kind in ENTRY_TYPES:
        history.append(msgspec.structs.replace(full(kind)), full(kind))

    assert history.head == 2 * len(ENTRY_TYPES)
