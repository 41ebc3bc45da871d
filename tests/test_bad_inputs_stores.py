"""Bad inputs 1 to 62, each at every entrance of an open store where it makes sense.

The tables, in `bad_inputs.py` and here, say what comes of each: `stored` (given back exactly as it
was, beside all the others, by everything that looks for it), `nothing` (it finds nothing), or the
name of the error. An outcome that is not in the table fails. So does an error of Python or of the
driver; a change outside of the store's own files; a change to the session beside it; anything that
`verify` has to say; and an error that tells what was said, or a password.

Every group ends with negative controls: stores that are wrong, on which it has to fail. Where a
store lies and what lies there is tried in `test_bad_inputs_files.py`.
"""

import json
import sqlite3
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from pathlib import Path

import pytest

import holdfast
from bad_inputs import (
    ALSO,
    DAY,
    ELSEWHERE,
    HOUR,
    MIB,
    SECRET,
    STORES,
    TEXTS,
    VALUES,
    Case,
    Fake,
    Place,
    Sandbox,
    all_of,
    asked_for,
    is_same,
    outcome_of,
    place_in,
    run,
)
from holdfast import errors, ids
from holdfast.entries import Call, Fold, Mark, UnknownEntry
from holdfast.errors import Busy, HoldfastError
from holdfast.frozen import FrozenDict
from holdfast.messages import Message, Role, ToolCall
from holdfast.parts import File, Image, Opaque, Text, Unknown
from holdfast.settings import Settings
from holdfast.stores import Record
from holdfast.stores.values import Lease, Limits

NOON = datetime(2026, 2, 1, 12, tzinfo=UTC)


@pytest.fixture
def sandbox(tmp_path, monkeypatch):
    made = Sandbox(tmp_path).enter(monkeypatch)
    yield made
    made.empty()


# --- a place to try inputs in ---------------------------------------------------------------------


def unlisted(found, expected):
    """The outcomes that are not those of the table: what came, and what should have."""
    assert found.keys() == expected.keys()
    return {
        name: (found[name], expected[name])
        for name in found
        if found[name] not in expected[name].split("|")
    }


async def tried(enter, place, value, expected, private=()):
    """What comes of a value at an entrance, in the words of the tables.

    Where an error is `expected`, nothing but it may come of it.
    """
    before = {} if expected in ("stored", "nothing") else await place.everything()
    try:
        look = await enter(place, value)
        if isinstance(look, str):
            return look
        found = await look()
    except Exception as error:
        outcome = outcome_of(error, private)
        try:
            left = await place.everything() if before else {}
        except Exception as another:
            return f"{outcome}, and then a list is {outcome_of(another)}"
        # What the entrance made to work on may stay; it says nothing.
        changed = [each for each in left if left[each] != before.get(each, left[each])]
        made = [each for each in left.keys() - before.keys() if left[each].key[:8] != "subject "]
        return f"{outcome}, and something was changed" if changed or made else outcome
    if not is_same(found, value):
        return f"changed: {found!r:.80}"
    return "stored"


async def outcomes(place, entrances, value, expected):
    return {
        name: await tried(enter, place, value, expected[name]) for name, enter in entrances.items()
    }


# --- entrances for text ---------------------------------------------------------------------------
#
# An entrance puts a value into a place and returns how to look at what is there: a function that
# gives the value again if everything that goes by it finds it. Some only answer, with a word.

WRONG = "\N{WARNING SIGN} found something else"


async def as_key(place, value):
    t, agent = place.tenant, f"agent {ids.new_id()}"
    made = await t.create(Record(key=value, agent=agent), [Message.user("x")])

    async def look():
        there = await t.load(value)
        listed = [each.key for each in await all_of(t, agent=agent)]
        return there.key if there.id == made.id and listed == [value] else WRONG

    return look


async def as_key_by_the_manager(place, value):
    sessions = holdfast.SessionManager(place.store, "manager")
    tenant = place.store.tenant("manager")
    session = await sessions.get_or_create(value)
    await session.append(Message.user("x"))

    async def look():
        again = await sessions.get(value)
        kept = await tenant.load(value)
        return again.key if again is session and kept.id == session.id else WRONG

    return look


async def as_tenant(place, value):
    tenant = place.store.tenant(value)
    made = await tenant.create(Record(key="the same"), [Message.user(f"of {made_of(value)}")])

    async def look():
        again = place.store.tenant(value)
        there = await again.load("the same")
        read = await again.read(there.id)
        is_right = read[0].entry.text == f"of {made_of(value)}" and there.id == made.id
        listed = {each.id for each in await all_of(again) if each.key == "the same"}
        return again.name if is_right and listed == {made.id} else WRONG

    return look


async def as_tenant_by_the_manager(place, value):
    sessions = holdfast.SessionManager(place.store, value)
    session = await sessions.get_or_create("by the manager")

    async def look():
        there = await place.store.tenant(value).load("by the manager")
        return value if there.id == session.id else WRONG

    return look


async def as_agent(place, value):
    t = place.tenant
    made = await place.subject(agent=value)

    async def look():
        listed = await all_of(t, agent=value)
        is_right = made.id in {each.id for each in listed}
        is_right = is_right and all(each.agent == value for each in listed)
        return (await t.load(made.key)).agent if is_right else WRONG

    return look


async def as_agent_by_update(place, value):
    made = await place.subject()
    await place.tenant.update(made.id, {"agent": value})

    async def look():
        await place.tenant.update(made.id, {"metadata": {"seen": 1}}, expect={"agent": value})
        return (await place.tenant.load(made.key)).agent

    return look


async def as_parent(place, value):
    return record_look(place, await place.subject(parent=value), lambda record: record.parent)


async def as_settings(place, value):
    made = await place.subject(settings=Settings(model=value, system=value))

    def found(record):
        is_right = record.settings.model == record.settings.system
        return record.settings.system if is_right else WRONG

    return record_look(place, made, found)


async def as_metadata_name(place, value):
    mark = str(place._subjects)
    made = await place.subject(metadata={value: mark})

    async def look():
        listed = [each.id for each in await all_of(place.tenant, metadata={value: mark})]
        metadata = (await place.tenant.load(made.key)).metadata
        return next(iter(metadata)) if listed == [made.id] and len(metadata) == 1 else WRONG

    return look


async def as_metadata_value(place, value):
    name = f"value {place._subjects}"
    made = await place.subject(metadata={name: value})

    async def look():
        listed = [each.id for each in await all_of(place.tenant, metadata={name: value})]
        return (await place.tenant.load(made.key)).metadata[name] if listed == [made.id] else WRONG

    return look


async def as_changed_name(place, value):
    """A name of metadata by update, with others around it that stay."""
    made = await place.subject(metadata={"before": 1})
    await place.tenant.update(made.id, {"metadata": {value: 1}}, expect={"metadata": {value: None}})

    async def look():
        there = (await place.tenant.load(made.key)).metadata
        await place.tenant.update(made.id, {"metadata": {"after": 1}}, {"metadata": {value: 1}})
        return next(name for name in there if name != "before") if "before" in there else WRONG

    return look


async def as_counter(place, value):
    made = await place.subject(counters={value: 1})
    return record_look(place, made, lambda record: next(iter(record.counters)))


async def as_tool(place, value):
    made = await place.subject(tools=[{"name": value}])
    return record_look(place, made, lambda record: record.tools[0]["name"])


async def as_branch(place, value):
    made = await place.subject(Message.user("x"))
    await place.tenant.branch(made.id, value, parent="main", at=1)
    await place.tenant.append(made.id, [Message.user("on it")], branch=value)

    async def look():
        there = await place.tenant.load(made.key)
        read = await place.tenant.read(made.id, value)
        main = await place.tenant.read(made.id)
        is_right = (len(read), len(main), there.branch) == (2, 1, value)
        return read[1].branch if is_right else WRONG

    return look


async def as_once(place, value):
    made = await place.subject()
    first = await place.tenant.append(made.id, [Message.user("x")], once=value)

    async def look():
        again = await place.tenant.append(made.id, [Message.user("x")], once=value)
        read = await place.tenant.read(made.id)
        return value if again == first and len(read) == 1 else WRONG

    return look


async def as_owner(place, value):
    made = await place.subject()
    lease = await place.tenant.begin(made.id, value, HOUR, {})

    async def look():
        try:
            await place.tenant.begin(made.id, "another", HOUR, {})
        except Busy as error:
            there = (await place.tenant.load(made.key)).draft
            is_right = error.holder == there.owner == lease.owner and there.is_running
            return there.owner if is_right else WRONG
        return WRONG

    return look


async def as_draft(place, value):
    made = await place.subject()
    await place.tenant.begin(made.id, "me", HOUR, {"input": value})
    return record_look(place, made, lambda record: record.draft.input["input"])


async def as_chunk(place, value):
    made = await place.subject()
    lease = await place.tenant.begin(made.id, "me", HOUR, {})
    await place.tenant.journal(lease, value)
    await place.tenant.journal(lease, "more")
    return record_look(place, made, lambda record: record.draft.chunks[0])


def record_look(place, made, found):
    async def look():
        return found(await place.tenant.load(made.key))

    return look


def made_of(value):
    return json.dumps(value)[:100] + str(len(value))


def entry_with(build, found):
    """An entrance: an entry made with a value, among others, and what is found in it again."""

    async def enter(place, value):
        entry = build(value)
        made = await place.subject(Message.user("before"))
        await place.tenant.append(made.id, [entry, Message.user("after")])

        async def look():
            read = await place.tenant.read(made.id)
            tail = await place.tenant.tail(made.id, count=50)
            if [each.entry for each in read] != [each.entry for each in tail] or len(read) != 3:
                return WRONG
            if not is_same(read[1].entry, entry):
                return WRONG
            return found(read[1].entry)

        return look

    return enter


def call_with(**fields):
    return ToolCall(**({"id": "c", "name": "f", "arguments": "{}"} | fields))


def unknown_with(kind):
    name = json.dumps(kind) if isinstance(kind, str) else "1"
    return UnknownEntry(kind=kind, raw=b'{"v":1, %b: [1.0 ]}' % name.encode())


SAID = {
    "text": (lambda v: Message.user(v), lambda e: e.content),
    "text of a part": (lambda v: Message.user([Text(v)]), lambda e: e.content[0].text),
    "author": (lambda v: Message.user("x", author=v, name=v), lambda e: e.author),
    "message id": (lambda v: Message.user("x", id=v), lambda e: e.id),
    "call id": (lambda v: Message.assistant(None, [call_with(id=v)]), lambda e: e.calls[0].id),
    "call name": (
        lambda v: Message.assistant(None, [call_with(name=v)]),
        lambda e: e.calls[0].name,
    ),
    "arguments": (
        lambda v: Message.assistant(None, [call_with(arguments=v)]),
        lambda e: e.calls[0].arguments,
    ),
    "output": (
        lambda v: Message(Role.TOOL, None, tool_calls=[call_with(output=v)]),
        lambda e: e.tool_calls[0].output,
    ),
    "result id": (lambda v: Message.tool("x", v), lambda e: e.tool_call_id),
    "result": (lambda v: Message.tool(v, "c"), lambda e: e.content),
    "file name": (lambda v: Message.user([File(data=b"x", name=v)]), lambda e: e.content[0].name),
    "image address": (lambda v: Message.user([Image(url=v)]), lambda e: e.content[0].url),
    "extra name": (lambda v: Message.user("x", extra={v: 1}), lambda e: next(iter(e.extra))),
    "extra value": (lambda v: Message.user("x", extra={"n": v}), lambda e: e.extra["n"]),
    "mark": (lambda v: Mark(what=v), lambda e: e.what),
    "mark data": (lambda v: Mark(what="x", data={"n": v}), lambda e: e.data["n"]),
    "fold": (lambda v: Fold(first=1, last=1, by=v, why=v), lambda e: e.why),
    "summary": (
        lambda v: Fold(first=1, last=1, replacement=Message.user(v)),
        lambda e: e.replacement.content,
    ),
    "model of a call": (lambda v: Call(model=v, request_id=v), lambda e: e.model),
    "kind of entry": (unknown_with, lambda e: e.kind),
}


async def as_query(place, value):
    """A query for a text finds the message that holds it, if there is a word in it."""
    made = await place.subject(Message.user(value))

    async def look():
        found = (await place.tenant.search(value, limit=1_000)).items
        if not any(letter.isalnum() for letter in value):
            return value if not found else WRONG
        return (
            value
            if {"control"}.isdisjoint(f.key for f in found)
            and any(each.session_id == made.id for each in found)
            else WRONG
        )

    return look


STORED_TEXT = {
    "key": as_key,
    "key by the manager": as_key_by_the_manager,
    "tenant": as_tenant,
    "tenant by the manager": as_tenant_by_the_manager,
    "agent": as_agent,
    "agent by update": as_agent_by_update,
    "parent": as_parent,
    "settings": as_settings,
    "metadata name": as_metadata_name,
    "metadata value": as_metadata_value,
    "metadata by update": as_changed_name,
    "counter": as_counter,
    "tool": as_tool,
    "branch": as_branch,
    "once": as_once,
    "owner": as_owner,
    "draft": as_draft,
    "chunk": as_chunk,
    "query": as_query,
    **{name: entry_with(*each) for name, each in SAID.items()},
}


# --- entrances that only answer -------------------------------------------------------------------


async def as_agent_to_list(place, value):
    found = await all_of(place.tenant, agent=f"nobody {value}" if type(value) is str else value)
    return "nothing" if not found else WRONG


async def as_name_to_list(place, value):
    found = await all_of(place.tenant, metadata={value: "nothing has this"})
    return "nothing" if not found else WRONG


async def as_page(place, value):
    await place.tenant.list(page=value)
    return "taken"


async def as_search_page(place, value):
    await place.tenant.search("controlword", page=value)
    return "taken"


async def as_session_to_search(place, value):
    await place.tenant.search("controlword", session=value)
    return "taken"


async def as_id(place, value):
    """An id that is asked for: every operation answers alike."""
    t = place.tenant
    found = set()
    for ask in (
        lambda: t.read(value),
        lambda: t.tail(value),
        lambda: t.append(value, [Message.user("x")]),
        lambda: t.begin(value, "me", HOUR, {}),
        lambda: t.line_up(value, "me", "here", waited=timedelta(0), patience=HOUR),
        lambda: t.branch(value, "new", parent="main", at=0),
        lambda: t.update(value, {"agent": "x"}),
        lambda: t.erase(value, [1]),
        lambda: t.clear(value),
        lambda: anext(t.watch(value)),
        *([] if value is None else [lambda: t.verify(value)]),
    ):
        try:
            await ask()
            return "taken"
        except Exception as error:
            found.add(outcome_of(error))
    try:
        if await t.delete(value):
            return "deleted something"
    except HoldfastError as error:
        found.add(outcome_of(error))
    return " or ".join(sorted(found))


async def as_record_id(place, value):
    await place.tenant.create(Record(key="an id of my own", id=value))
    return "taken"


async def as_field(place, value):
    made = await place.subject()
    await place.tenant.update(made.id, {value: {}})
    return "taken"


async def as_expected_field(place, value):
    made = await place.subject()
    await place.tenant.update(made.id, {"agent": "x"}, expect={value: {}})
    return "taken"


async def as_branch_to_use(place, value):
    """The name of a branch that is not there."""
    made = await place.subject(Message.user("x"))
    t = place.tenant
    found = set()
    for ask in (
        lambda: t.read(made.id, value),
        lambda: t.tail(made.id, value),
        lambda: t.append(made.id, [Message.user("x")], branch=value),
        lambda: t.branch(made.id, "new", parent=value, at=1),
        lambda: t.update(made.id, {"branch": value}),
    ):
        try:
            await ask()
            return "taken"
        except Exception as error:
            found.add(outcome_of(error))
    return " or ".join(sorted(found))


async def as_kind(place, value):
    record = place.control[0]
    found = await place.tenant.read(record.id, kind=value)
    return "nothing" if not found else WRONG


async def as_lease(place, value):
    """A lease that somebody made up: of no session, or of the control."""
    t = place.tenant
    found = set()
    forged = Lease(session_id=place.control[0].id, token=1, owner=value, ttl=HOUR)
    for lease, id in ((Lease(value, 1, "me", HOUR), value), (forged, forged.session_id)):
        for ask in (
            lambda lease=lease: t.journal(lease, "x"),
            lambda lease=lease: t.renew(lease),
            lambda lease=lease, id=id: t.append(id, [Message.user("x")], lease=lease),
        ):
            try:
                await ask()
                return "taken"
            except Exception as error:
                found.add(outcome_of(error))
    return " or ".join(sorted(found))


ANSWERING = {
    "agent to list": (as_agent_to_list, "nothing"),
    "metadata name to list": (as_name_to_list, "nothing"),
    "page": (as_page, "InvalidInput"),
    "search page": (as_search_page, "InvalidInput"),
    "session to search": (as_session_to_search, "SessionNotFound"),
    "session id": (as_id, "SessionNotFound"),
    "record id": (as_record_id, "InvalidInput"),
    "field": (as_field, "InvalidInput"),
    "expected field": (as_expected_field, "InvalidInput"),
    "branch to use": (as_branch_to_use, "InvalidInput"),
    "kind to read": (as_kind, "nothing"),
    "lease": (as_lease, "LeaseLost or SessionNotFound"),
}


# --- text: 1 to 35 and 48 to 60 -------------------------------------------------------------------


def expected_of(case):
    """What has to come of a text at every entrance."""
    expected = {name: case.expected(name) for name in STORED_TEXT}
    for name, (_, answer) in ANSWERING.items():
        if case.outcome == "InvalidInput":  # text that can be nowhere
            answer = "InvalidInput or LeaseLost" if name == "lease" else "InvalidInput"
        expected[name] = case.others.get(name, answer)
    return expected


ALL_TEXT = STORED_TEXT | {name: enter for name, (enter, _) in ANSWERING.items()}


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in TEXTS])
@pytest.mark.parametrize("kind", STORES)
def test_a_text_has_the_outcome_in_the_table_at_every_entrance(sandbox, kind, case):
    """A key is only a key: it is kept exactly, or refused, and names nothing outside."""

    async def scenario():
        async with place_in(sandbox, kind) as place:
            return await outcomes(place, ALL_TEXT, case.made(), expected)

    expected = expected_of(case)
    assert unlisted(run(scenario()), expected) == {}


async def together(place, entrances, cases):
    """All values at an entrance of one place, then each looked at: those that are not themselves.

    What one value puts there another may not find, move or hide.
    """
    wrong = []
    own = place.tenant
    for name, enter in entrances.items():
        if name != "key":  # a tenant for each, so that lists stay short
            place.tenant = place.store.tenant(name)
        looks = []
        for case in cases:
            if case.expected(name) == "stored":
                value = case.made()
                try:
                    looks.append((case, value, await enter(place, value)))
                except Exception as error:
                    wrong.append(f"{case.id} as {name}: {outcome_of(error)}")
        for case, value, look in looks:
            try:
                found = await look()
            except Exception as error:
                wrong.append(f"{case.id} as {name}: {outcome_of(error)}")
            else:
                if not is_same(found, value):
                    wrong.append(f"{case.id} as {name}: {found!r:.80}")
        place.tenant = own
    return wrong


@pytest.mark.parametrize("kind", STORES)
def test_all_texts_are_told_apart_at_each_entrance(sandbox, kind):
    """Case, normal forms, trailing dots, wildcards: no two of the table are the same anywhere."""
    short = [case for case in TEXTS if case.name != "1 MiB"]

    async def scenario():
        async with place_in(sandbox, kind) as place:
            return await together(place, STORED_TEXT, short)

    assert run(scenario()) == []


@pytest.mark.parametrize("kind", STORES)
def test_all_names_are_told_apart_in_one_session(sandbox, kind):
    """Branches, `once` names, names of metadata, and message ids, all of one session."""
    names = [c.made() for c in TEXTS if c.expected("branch") == "stored"]

    async def scenario():
        async with place_in(sandbox, kind) as place:
            t = place.tenant
            made = await place.subject()
            for number, name in enumerate(names):
                await t.branch(made.id, name, parent="main", at=0, use=False)
                said = Message.user(f"said {number}", id=name)
                await t.append(made.id, [said], branch=name, once=name)
                await t.update(made.id, {"metadata": {name: number}, "counters": {name: number}})
            for number, name in enumerate(names):
                (row,) = await t.read(made.id, name)
                assert (row.entry.id, row.entry.text) == (name, f"said {number}")
                again = await t.append(
                    made.id, [Message.user(f"said {number}")], branch="main", once=name
                )
                assert (again.branch, again.messages) == (name, 1)
            record = await t.load(made.key)
            assert record.metadata == {name: number for number, name in enumerate(names)}
            assert record.counters == record.metadata
            assert [branch.name for branch in record.branches] == ["main", *names]

    run(scenario())


def test_deleting_one_key_leaves_those_that_look_like_it(sandbox):
    """27: what a wildcard would match is still there when the session named by it is gone."""
    keys = [case.made() for case in TEXTS if case.expected("key") == "stored"]

    async def scenario(kind):
        async with place_in(sandbox, kind) as place:
            t = place.tenant
            made = {key: await t.create(Record(key=key), [Message.user("x")]) for key in keys}
            for gone in (
                "%",
                "_",
                "*",
                "?",
                "[a-z]",
                "a",
                "A",
                ".",
                "..",
                "'; DROP TABLE sessions;--",
            ):
                assert await t.delete(made.pop(gone).id)
                assert not await t.delete(gone)
            left = {each.key: each.id for each in await all_of(t) if each.key != "control"}
            assert left == {key: record.id for key, record in made.items()}

    for kind in STORES:
        run(scenario(kind))


# --- values that are no text: 26, 34, 44 ----------------------------------------------------------

# Where None means "none given", and where any JSON may stand.
NOT_GIVEN = (
    *("parent", "settings", "once", "text", "author", "output", "result id", "result"),
    *("file name", "agent to list", "page", "search page", "session to search", "kind to read"),
    *("summary", "image address"),
)
# Where it would be the key of a dict, which Python itself refuses to make of these.
NAMES = (
    *("metadata name", "metadata by update", "counter", "extra name", "metadata name to list"),
    *("field", "expected field"),
)
JSON_HERE = ("metadata value", "tool", "draft", "extra value", "mark data")
NOT_TEXT = [
    Case(26, "an operator", {"$ne": None}),
    Case(26, "an empty list", [], others=dict.fromkeys(("text", "result", "summary"), "stored")),
    Case(26, "one", 1),
    Case(26, "true", True),
    Case(26, "null", None),
    Case(
        34, "bytes that are not UTF-8", b"\xff\xfe", others=dict.fromkeys(JSON_HERE, "InvalidInput")
    ),
    Case(44, "a real", 1.5),
]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in NOT_TEXT])
@pytest.mark.parametrize("kind", STORES)
def test_what_is_no_text_is_refused_where_text_belongs(sandbox, kind, case):
    """26: an id that a caller took from JSON may be anything; it is text, or InvalidInput."""
    value = case.made()
    left_out = NOT_GIVEN if value is None else NAMES if type(value) in (dict, list) else ()
    entrances = {name: enter for name, enter in ALL_TEXT.items() if name not in left_out}

    async def scenario():
        async with place_in(sandbox, kind) as place:
            return await outcomes(place, entrances, value, expected)

    expected = {
        name: case.expected(name, "stored" if name in JSON_HERE else "InvalidInput")
        for name in entrances
    }
    expected["lease"] = "InvalidInput or LeaseLost"  # a made up one that names the control
    assert unlisted(run(scenario()), expected) == {}


# --- JSON values: 31 to 60 ------------------------------------------------------------------------


def record_with(field, found):
    async def enter(place, value):
        return record_look(place, await place.subject(**field(value)), found)

    return enter


async def as_listed_value(place, value):
    """What is in the metadata of one session finds that session."""
    name = f"value {place._subjects}"
    made = await place.subject(metadata={name: value})
    await place.subject(metadata={name: "another"})

    async def look():
        listed = [each.id for each in await all_of(place.tenant, metadata={name: value})]
        return value if listed == [made.id] else WRONG

    return look


async def as_updated_value(place, value):
    made = await place.subject(metadata={"n": "before", "stays": 1})
    await place.tenant.update(made.id, {"metadata": {"n": value}}, {"metadata": {"n": "before"}})

    async def look():
        expect = {"metadata": {"n": value, "stays": 1}}
        await place.tenant.update(made.id, {"metadata": {"seen": 1}}, expect)
        return (await place.tenant.load(made.key)).metadata.get("n")

    return look


JSON_ENTRANCES = {
    "metadata": record_with(lambda v: {"metadata": {"n": v}}, lambda r: r.metadata["n"]),
    "metadata by update": as_updated_value,
    "counters": record_with(lambda v: {"counters": {"n": v}}, lambda r: r.counters["n"]),
    "tools": record_with(lambda v: {"tools": [{"n": v}]}, lambda r: r.tools[0]["n"]),
    "settings": record_with(
        lambda v: {"settings": Settings(extra={"n": v})}, lambda r: r.settings.extra["n"]
    ),
    "draft": as_draft,
    **{
        name: entry_with(*each)
        for name, each in {
            "extra": SAID["extra value"],
            "extra of a call": (
                lambda v: Message.assistant(None, [call_with(extra={"n": v})]),
                lambda e: e.tool_calls[0].extra["n"],
            ),
            "extra of a part": (
                lambda v: Message.user([Text("x", extra={"n": v})]),
                lambda e: e.content[0].extra["n"],
            ),
            "opaque": (
                lambda v: Message.user([Opaque("vendor", {"n": v})]),
                lambda e: e.content[0].data["n"],
            ),
            "unknown part": (
                lambda v: Message.user([Unknown({"n": v})]),
                lambda e: e.content[0].raw["n"],
            ),
            "mark": SAID["mark data"],
            "window of a call": (
                lambda v: Call(model="m", window={"n": v}),
                lambda e: e.window["n"],
            ),
            "extra of a summary": (
                lambda v: Fold(
                    first=1, last=1, replacement=Message.user("x", extra={"n": v}), extra={"n": v}
                ),
                lambda e: e.replacement.extra["n"],
            ),
        }.items()
    },
}
FOUND_BY = {"metadata to list": as_listed_value}
# `update` takes None for "away with it".
AWAY = {"metadata by update": "stored"}


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in VALUES])
@pytest.mark.parametrize("kind", STORES)
def test_a_value_has_the_outcome_in_the_table_at_every_entrance(sandbox, kind, case):
    """An exact round trip, or a typed error when it is stored; never a later failure."""
    entrances = JSON_ENTRANCES | FOUND_BY

    async def scenario():
        async with place_in(sandbox, kind) as place:
            return await outcomes(place, entrances, case.made(), expected)

    expected = {name: case.expected(name) for name in entrances}
    expected["metadata to list"] = case.expected("metadata")
    assert unlisted(run(scenario()), expected) == {}


@pytest.mark.parametrize("kind", STORES)
def test_all_values_are_told_apart_in_one_store(sandbox, kind):
    """1 and True, 0.0 and -0.0, 2**53 + 1 and its neighbour: none is another."""
    small = [case for case in VALUES if case.number != 55 and "MiB" not in case.name]

    async def scenario():
        async with place_in(sandbox, kind) as place:
            return await together(place, JSON_ENTRANCES, small)

    assert run(scenario()) == []


@pytest.mark.parametrize("kind", STORES)
def test_a_value_that_only_looks_equal_is_not_found(sandbox, kind):
    """60: a filter is a value to be equal to, never an operator, a pattern or a type."""
    has = {"n": 1, "t": True, "s": "1", "o": {"$ne": None}, "l": [1], "z": 0.5, "x": "a%b"}
    asked = [
        *({"n": True}, {"n": "1"}, {"n": 1.5}, {"n": None}, {"n": {"$ne": 2}}, {"n": [1]}),
        *({"t": 1}, {"t": "true"}, {"s": 1}, {"s": "%"}, {"s": "_"}, {"x": "a%"}, {"x": "a_b"}),
        *({"o": {}}, {"o": {"$ne": 1}}, {"o": None}, {"l": []}, {"l": 1}, {"l": [True]}),
        *({"": 1}, {"missing": None}, {"n.n": 1}, {"$": 1}, {"n": 1, "missing": 1}, {"z": "0.5"}),
        *({"$where": "1"}, {"$or": [{"n": 1}]}, {"n": {"$regex": ".*"}}, {"N": 1}),
    ]

    async def scenario():
        async with place_in(sandbox, kind) as place:
            made = await place.subject(metadata=has)
            found = await all_of(place.tenant, metadata=has)
            assert [each.id for each in found] == [made.id]
            return [each for each in asked if await all_of(place.tenant, metadata=each)]

    assert run(scenario()) == []


# --- messages: 39 to 47, 52, 54 -------------------------------------------------------------------


async def as_first_entries(place, build):
    entries = build()
    return entries_look(place, await place.subject(*entries), build, entries)


async def as_appended(place, build):
    entries = build()
    made = await place.subject()
    await place.tenant.append(made.id, entries)
    return entries_look(place, made, build, entries)


async def as_appended_by_the_session(place, build):
    entries = build()
    sessions = holdfast.SessionManager(place.store)
    session = await sessions.get_or_create((await place.subject()).key)
    await session.append(*entries)

    async def look():
        return build if is_same(await session.read(), tuple(entries)) else WRONG

    return look


def entries_look(place, made, build, entries):
    async def look():
        read = await place.tenant.read(made.id)
        return build if is_same([each.entry for each in read], entries) else WRONG

    return look


def said(*fields, **more):
    return lambda: [Message(*fields, **more)]


def asked(*calls):
    return Message.assistant(None, [call_with(**call) for call in calls])


def picture(**fields):
    return lambda: [Message.user([Image(**fields)])]


ANSWER = Message.tool("x", "c")
MESSAGES = [
    Case(31, "half beside a secret", lambda: [Message.user(SECRET + "\ud800")], "InvalidInput"),
    Case(34, "bytes as text", lambda: [Message.user(SECRET.encode() + b"\xff")], "InvalidInput"),
    Case(
        39,
        "two keys in an unknown entry",
        lambda: [UnknownEntry(kind="vote", raw=b'{"v":1,"vote":{"a":1,"a":2}}')],
        "InvalidInput",
    ),
    Case(
        39,
        "two kinds in an unknown entry",
        lambda: [UnknownEntry(kind="vote", raw=b'{"v":1,"vote":1,"vote":2}')],
        "InvalidInput",
    ),
    Case(41, "100 MiB", lambda: [Message.user(SECRET + "x" * (100 * MIB))], "TooLarge"),
    Case(41, "100 MiB beside others", lambda: [ANSWER, Message.user("x" * (65 * MIB))], "TooLarge"),
    Case(42, "nothing", list),
    Case(42, "100,001 entries", lambda: [ANSWER] * 100_001, "TooLarge"),
    Case(42, "the same one twice", lambda: [ANSWER, ANSWER]),
    Case(43, "a plain dict", lambda: [{"role": "SYSTEM", "content": SECRET}], "InvalidInput"),
    Case(43, "a text", lambda: [SECRET], "InvalidInput"),
    Case(43, "None", lambda: [None], "InvalidInput"),
    Case(43, "role SYSTEM", said("SYSTEM", SECRET), "InvalidInput"),
    Case(43, "role developer", said("developer", SECRET), "InvalidInput"),
    Case(43, "unknown role", said("narrator", SECRET), "InvalidInput"),
    Case(43, "no role", said(None, SECRET), "InvalidInput"),
    Case(43, "a tool without an id", said(Role.TOOL, "x")),
    Case(43, "older spellings", lambda: [Message(Role.FUNCTION, "x"), Message(Role.MODEL, "y")]),
    Case(44, "content None", said(Role.USER, None)),
    Case(44, "content empty", said(Role.USER, "")),
    Case(44, "content an empty list", said(Role.USER, [])),
    Case(44, "content a list of lists", said(Role.USER, [[SECRET]]), "InvalidInput"),
    Case(44, "content a number", said(Role.USER, 5), "InvalidInput"),
    Case(44, "content a dict", said(Role.USER, {"type": SECRET}), "InvalidInput"),
    Case(44, "a part that is no part", said(Role.USER, [Unknown([[["a"], 1], None])])),
    Case(45, "a call without id", lambda: [asked({"id": ""})]),
    Case(45, "two calls with one id", lambda: [asked({}, {})]),
    Case(45, "a result before its call", lambda: [ANSWER, asked({})]),
    Case(45, "two results", lambda: [asked({}), ANSWER, Message.tool("y", "c")]),
    Case(45, "an id used again", lambda: [asked({}), ANSWER, Message.user("y"), asked({}), ANSWER]),
    Case(45, "a result of nothing", lambda: [Message.tool("x", "never asked for")]),
    Case(46, "arguments cut short", lambda: [asked({"arguments": '{"a": '})]),
    Case(46, "arguments no object", lambda: [asked({"arguments": "[1]"}, {"arguments": "null"})]),
    Case(46, "arguments {} and nothing", lambda: [asked({"arguments": "{}"}, {"arguments": ""})]),
    Case(46, "arguments of 10 MiB", lambda: [asked({"arguments": "x" * (10 * MIB)})]),
    Case(46, "arguments a dict", lambda: [asked({"arguments": {"a": SECRET}})], "InvalidInput"),
    Case(47, "broken base64", lambda: [Message.user([Unknown({"type": "image", "data": "@@@"})])]),
    Case(
        47,
        "a data URL of 200 MiB",
        lambda: [Message.user([Image(url="data:," + "A" * (200 * MIB))])],
        "TooLarge",
    ),
    Case(47, "SVG with a script", picture(data=b"<svg onload=x>", media_type="image/svg+xml")),
    Case(47, "a zip bomb", lambda: [Message.user([File(data=b"PK\3\4" * 99, name="../a.zip")])]),
    Case(47, "every byte", picture(data=bytes(range(256)) * 200)),
    Case(47, "no bytes", picture(data=b"")),
    Case(
        48,
        "like what is kept apart",
        lambda: [Message.user("x" * 40_000, extra={"holes": "00" * 24, "blob": "x" * 40_000})],
    ),
    Case(49, "a name of a large text", lambda: [Message.user([Image(blob="../../canary")])]),
]
MESSAGE_ENTRANCES = {
    "create": as_first_entries,
    "append": as_appended,
    "session": as_appended_by_the_session,
}


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in MESSAGES])
@pytest.mark.parametrize("kind", STORES)
def test_messages_have_the_outcome_in_the_table(sandbox, kind, case):
    """All of them come back as they were and in their order, or none is stored."""

    async def scenario():
        async with place_in(sandbox, kind) as place:
            return await outcomes(place, MESSAGE_ENTRANCES, case.value, expected)

    expected = dict.fromkeys(MESSAGE_ENTRANCES, case.outcome)
    assert unlisted(run(scenario()), expected) == {}


@pytest.mark.parametrize("kind", STORES)
def test_a_batch_of_50000_messages_is_stored_whole(sandbox, kind):
    """42: a long batch is one append, and its entries come back in their order."""
    batch = [Message(Role.USER, str(n), id=f"m{n}", timestamp=NOON) for n in range(50_000)]

    async def scenario():
        async with place_in(sandbox, kind) as place:
            made = await place.subject()
            appended = await place.tenant.append(made.id, batch, after=0)
            assert (appended.first, appended.last, appended.messages) == (1, 50_000, 50_000)
            assert (await place.tenant.append(made.id, [])).last == 50_000
            assert [each.entry for each in await place.tenant.read(made.id)] == batch

    run(scenario())


@pytest.mark.parametrize("kind", STORES)
def test_a_million_names_are_data_like_any_other_up_to_the_limits(sandbox, kind):
    """40: an object is not counted by its names but by its bytes; more is TooLarge."""
    many = FrozenDict(dict.fromkeys(map(str, range(10**6)), 0))
    some = dict.fromkeys(map(str, range(50_000)), 0)

    async def scenario():
        async with place_in(sandbox, kind, limits=Limits(entry_bytes=8 * MIB)) as place:
            made = await place.subject()
            await place.tenant.append(made.id, [Mark(what="some", data=some)])
            (row,) = await place.tenant.read(made.id)
            assert dict(row.entry.data) == some
            for ask in (
                lambda: place.tenant.append(made.id, [Mark(what="many", data=many)]),
                lambda: place.subject(metadata=many),
            ):
                with pytest.raises(HoldfastError) as caught:
                    await ask()
                assert outcome_of(caught.value) == "TooLarge"

    run(scenario())


@pytest.mark.parametrize("kind", STORES)
def test_a_result_is_not_that_of_another_session_s_call(sandbox, kind):
    """45: two sessions that use one call id, one message id and one `once` name share nothing."""

    async def scenario():
        async with place_in(sandbox, kind) as place:
            t = place.tenant
            one, other = await place.subject(), await place.subject()
            question = asked({"id": "c"}).replace(id="m")
            await t.append(one.id, [question], once="turn 1")
            await t.append(other.id, [Message.tool("y", "c", id="m")], once="turn 1")
            assert [each.entry for each in await t.read(one.id)] == [question]
            assert [each.entry.tool_call_id for each in await t.read(other.id)] == ["c"]

    run(scenario())


@pytest.mark.parametrize("kind", STORES)
def test_errors_about_a_session_tell_nothing_that_was_said(sandbox, kind):
    """51: content, metadata and drafts are in no error, whatever goes wrong with them."""
    message, other = Message.user(f"{SECRET} 1"), Message.user(f"{SECRET} 2")

    async def scenario():
        async with place_in(sandbox, kind) as place:
            t = place.tenant
            made = await place.subject(message, metadata={"name": SECRET}, counters={"n": SECRET})
            await t.append(made.id, [message], once="turn")
            lease = await t.begin(made.id, "me", HOUR, {"input": SECRET})
            await t.journal(lease, SECRET)
            large = {"name": SECRET * MIB}
            asking = {
                "OnceMismatch": lambda: t.append(made.id, [other], once="turn"),
                "Conflict": lambda: t.append(made.id, [other], after=77),
                "Conflict of a field": lambda: t.update(
                    made.id, {"agent": "x"}, {"metadata": {"name": SECRET + "!"}}
                ),
                "Busy": lambda: t.begin(made.id, "another", HOUR, {"input": SECRET}),
                "LeaseLost": lambda: t.append(made.id, [other], lease=lease._replace(token=9)),
                "DuplicateSession": lambda: t.create(made.replace(metadata={"name": SECRET})),
                "TooLarge": lambda: t.update(made.id, {"metadata": large}),
                "TooLarge chunk": lambda: t.journal(lease, SECRET * MIB),
                "InvalidInput of settings": lambda: t.update(
                    made.id, {"settings": {"system": [SECRET]}}
                ),
                "InvalidInput of a draft": lambda: t.begin(
                    made.id, "x", HOUR, {"input": [SECRET, float("nan")]}
                ),
                "InvalidInput of a query": lambda: t.search(SECRET + "\ud800"),
                "InvalidInput of a list": lambda: t.list(metadata={"name": {SECRET}}),
            }
            found = {}
            for name, ask in asking.items():
                try:
                    await ask()
                    found[name] = "nothing"
                except Exception as error:
                    found[name] = outcome_of(error)
            return found

    found = run(scenario())
    assert unlisted(found, {name: name.split()[0] for name in found}) == {}


# --- times: 54 ------------------------------------------------------------------------------------

EAST, WEST = timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))
REFUSED_TIMES = {
    "naive": datetime(2026, 1, 1),
    "text": "2026-01-01T00:00:00Z",
    "negative": -1,
    "seconds": 1769947200.5,
    "a day": NOON.date(),
    "a list": [],
}
TIMES = {
    "year 1": datetime(1, 1, 1, tzinfo=timezone(timedelta(0))),
    "year 1 east": datetime(1, 1, 1, tzinfo=EAST),
    "year 9999": datetime.max.replace(tzinfo=UTC),
    "year 9999 west": datetime.max.replace(tzinfo=WEST),
    "ten years on": NOON.replace(year=2036),
    "before 1970": datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    "with seconds": NOON.replace(tzinfo=timezone(timedelta(hours=1, seconds=7))),
}


async def as_timestamp(place, value):
    message = Message.user("x", timestamp=value)
    made = await place.subject(message)

    async def look():
        (row,) = await place.tenant.read(made.id)
        return value if row.entry == message and row.entry.timestamp == value else WRONG

    return look


def as_record_time(**fields):
    async def enter(place, value):
        given = dict.fromkeys(fields, value)
        record = Record(key=f"subject {place._subjects} {sorted(fields)}", **given)
        made = await place.tenant.create(record, keep_times=True)

        async def look():
            there = await place.tenant.load(record.key)
            listed = [each for each in await all_of(place.tenant) if each.id == made.id]
            for name in fields:
                if not getattr(there, name) == getattr(listed[0], name) == value:
                    return WRONG
            return value

        return look

    return enter


def as_bound(name):
    async def enter(place, value):
        await place.tenant.list(**{name: value})

        async def look():
            return value

        return look

    return enter


async def as_now(place, value):
    tenant = place.store.tenant("expiring")
    await tenant.expire(value)

    async def look():
        return value

    return look


TIME_ENTRANCES = {
    "message": as_timestamp,
    "created_at": as_record_time(created_at=1),
    "both": as_record_time(created_at=1, updated_at=1),
    "since": as_bound("since"),
    "until": as_bound("until"),
    "expire": as_now,
}


@pytest.mark.parametrize(
    "name", [*REFUSED_TIMES, *TIMES], ids=lambda n: f"54-{n}".replace(" ", "-")
)
@pytest.mark.parametrize("kind", STORES)
def test_a_time_is_kept_or_refused_everywhere(sandbox, kind, name):
    """54: any moment with a zone can be stored, or is refused at once; nothing else can."""
    is_time = name in TIMES
    value = TIMES[name] if is_time else REFUSED_TIMES[name]

    async def scenario():
        async with place_in(sandbox, kind) as place:
            return await outcomes(place, TIME_ENTRANCES, value, expected)

    expected = dict.fromkeys(TIME_ENTRANCES, "stored" if is_time else "InvalidInput")
    if name in ("year 1 east", "year 9999 west"):  # beyond the years that UTC has
        expected |= dict.fromkeys(("created_at", "both"), "stored|InvalidInput")
    assert unlisted(run(scenario()), expected) == {}


TTLS = [
    *(("zero", timedelta(0)), ("negative", timedelta(-1)), ("the largest", timedelta.max)),
    *(("a number", 1), ("text", "1 day"), ("a real", 1.5), ("true", True)),
]


@pytest.mark.parametrize(
    "ttl", [t for _, t in TTLS], ids=[f"54-ttl-{n}".replace(" ", "-") for n, _ in TTLS]
)
@pytest.mark.parametrize("kind", STORES)
def test_a_time_to_live_is_above_zero_and_bounded(sandbox, kind, ttl):
    """54: of sessions and of leases, given by anybody."""

    async def as_ttl(place, value):
        await place.subject(ttl=value)
        return "taken"

    async def as_updated_ttl(place, value):
        await place.tenant.update((await place.subject()).id, {"ttl": value})
        return "taken"

    async def as_lease_ttl(place, value):
        await place.tenant.begin((await place.subject()).id, "me", value, {})
        return "taken"

    async def as_renewed_ttl(place, value):
        lease = await place.tenant.begin((await place.subject()).id, "me", HOUR, {})
        await place.tenant.renew(lease, value)
        return "taken"

    async def as_ttl_of_a_lease_made_up(place, value):
        lease = await place.tenant.begin((await place.subject()).id, "me", HOUR, {})
        await place.tenant.renew(lease._replace(ttl=value))
        return "taken"

    entrances = {
        "create": as_ttl,
        "update": as_updated_ttl,
        "begin": as_lease_ttl,
        "renew": as_renewed_ttl,
        "renew a lease made up": as_ttl_of_a_lease_made_up,
    }

    async def scenario():
        async with place_in(sandbox, kind) as place:
            return {n: await tried(e, place, ttl, "stored") for n, e in entrances.items()}

    assert unlisted(run(scenario()), dict.fromkeys(entrances, "InvalidInput")) == {}


@pytest.mark.parametrize(
    "grace", [timedelta.max, 365_000 * DAY], ids=["54-the-largest", "54-1,000-years"]
)
@pytest.mark.parametrize("kind", STORES)
def test_a_grace_of_any_length_deletes_nothing(sandbox, kind, grace):
    """54: a grace longer than all time is one that never ends, or is refused as what it is."""

    async def scenario():
        async with place_in(sandbox, kind) as place:
            await place.tenant.create(
                Record(
                    key="old",
                    ttl=DAY,
                    created_at=NOON.replace(year=2020),
                    updated_at=NOON.replace(year=2020),
                ),
                keep_times=True,
            )
            for _ in range(2):
                try:
                    done = await place.tenant.expire(grace=grace)
                except Exception as error:
                    return outcome_of(error)
            assert done.deleted == 0 and len(await all_of(place.tenant)) == 2
            return "answered"

    assert run(scenario()) in ("answered", "InvalidInput", "TooLarge")


# --- metadata: 55 ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", STORES)
def test_metadata_of_64_mib_is_too_large_by_every_way(sandbox, kind):
    """55: at once, or in pieces that are small enough; and what was there stays."""
    large, piece = "x" * (64 * MIB), "x" * (3 * MIB // 2)

    async def scenario():
        async with place_in(sandbox, kind) as place:
            t = place.tenant
            made = await place.subject(metadata={"a": 1})
            sessions = holdfast.SessionManager(place.store)
            asking = (
                lambda: place.subject(metadata={"a": large}),
                lambda: t.update(made.id, {"metadata": {"a": large}}),
                lambda: sessions.get_or_create("large", metadata={"a": large}),
                lambda: place.subject(settings=Settings(system=large)),
                lambda: place.subject(agent=large),
                lambda: t.update(made.id, {"agent": large}),
            )
            found = [await asked_for(ask) for ask in asking]
            for name in "bcd":
                update = partial(t.update, made.id, {"metadata": {name: piece}})
                found.append(await asked_for(update))
            assert (await t.load(made.key)).metadata == {"a": 1, "b": piece, "c": piece}
            return found

    assert run(scenario()) == ["TooLarge"] * 6 + ["right", "right", "TooLarge"]


@pytest.mark.parametrize("kind", STORES)
def test_metadata_null_is_refused_or_empty(sandbox, kind):
    """55: None is no object; where it means "none given", it is the empty one."""

    async def scenario():
        async with place_in(sandbox, kind) as place:
            sessions = holdfast.SessionManager(place.store)
            assert (await sessions.get_or_create("null", metadata=None)).metadata == {}
            made = await place.subject(metadata={"a": 1})
            asking = (
                lambda: place.subject(metadata=None),
                lambda: place.tenant.update(made.id, {"metadata": None}),
                lambda: place.tenant.update(made.id, None),
                lambda: sessions.get_or_create("list", metadata=[1]),
                lambda: place.tenant.list(metadata=[("a", 1)]),
            )
            found = [await asked_for(ask) for ask in asking]
            assert (await place.tenant.load(made.key)).metadata == {"a": 1}
            return found

    assert run(scenario()) == ["InvalidInput"] * 5


# --- tenants: 30 ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", STORES)
def test_one_key_and_one_id_under_many_tenants_are_many_sessions(sandbox, kind):
    """30: whatever is done to one of them, the others do not notice."""
    names = [case.made() for case in TEXTS if case.expected("tenant") == "stored"][:40]

    async def scenario():
        async with place_in(sandbox, kind) as place:
            id = ids.new_id()
            tenants = [place.store.tenant(name) for name in names]
            for number, tenant in enumerate(tenants):
                record = Record(key="shared", id=id, agent="a", metadata={"of": number})
                await tenant.create(record, [Message.user(f"sharedword of {number}")])
                await tenant.append(id, [Message.user("more")], once="turn")
            await tenants[1].delete(id)
            await tenants[2].clear(id)
            await tenants[3].erase(id, [1])
            await tenants[4].update(id, {"metadata": {"of": "changed"}})
            await tenants[5].begin(id, "me", HOUR, {})
            await tenants[6].branch(id, "side", parent="main", at=1)
            for number, tenant in enumerate(tenants[7:], 7):
                record = await tenant.load("shared")
                listed = [each.metadata["of"] for each in await all_of(tenant, agent="a")]
                found = [
                    each.stored.entry.text for each in (await tenant.search("sharedword")).items
                ]
                assert (record.metadata["of"], record.draft, record.branch) == (
                    number,
                    None,
                    "main",
                )
                assert (listed, found) == ([number], [f"sharedword of {number}"])
                assert len(await tenant.read(id)) == 2
                assert (await tenant.verify()).problems == ()

    run(scenario())


# --- limits, offsets and pages: 61, 62 ------------------------------------------------------------

LIMITS_TRIED = [
    Case(62, "minus one", -1, "InvalidInput"),
    Case(62, "zero", 0, "InvalidInput"),
    Case(62, "one", 1, "right"),
    Case(62, "the most", 1_000, "right"),
    Case(62, "one more", 1_001, "TooLarge"),
    Case(62, "2**63", 2**63, "TooLarge"),
    Case(62, "2**64", 2**64, "TooLarge"),
    Case(62, "5,000 digits", 10**5000, "TooLarge"),
    Case(62, "-2**64", -(2**64), "InvalidInput"),
    Case(62, "minus 5,000 digits", -(10**5000), "InvalidInput"),
    Case(62, "SQL", "1; DROP TABLE sessions", "InvalidInput"),
    Case(62, "text", "1", "InvalidInput"),
    Case(62, "NaN", float("nan"), "InvalidInput"),
    Case(62, "infinity", float("inf"), "InvalidInput"),
    Case(62, "a real", 1.0, "InvalidInput"),
    Case(62, "true", True, "InvalidInput"),
    Case(62, "a list", [1], "InvalidInput"),
    Case(62, "bytes", b"1", "InvalidInput"),
]
OFFSETS = {
    "read start": lambda t, id, v: t.read(id, start=v),
    "read stop": lambda t, id, v: t.read(id, stop=v),
    "tail": lambda t, id, v: t.tail(id, count=v),
    "after": lambda t, id, v: t.append(id, [Message.user("x")], after=v),
    "at": lambda t, id, v: t.branch(id, "side", parent="main", at=v),
    "seqs": lambda t, id, v: t.erase(id, [v]),
}
# What is beyond the end: nothing there, everything up to there, another head, no such entry.
BEYOND = {
    **dict.fromkeys(("read start", "read stop", "tail"), "right"),
    "after": "Conflict",
    "at": "InvalidInput",
    "seqs": "InvalidInput",
}


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in LIMITS_TRIED])
@pytest.mark.parametrize("kind", STORES)
def test_a_limit_or_an_offset_has_the_outcome_in_the_table(sandbox, kind, case):
    """62: a whole number within its bounds, or InvalidInput or TooLarge; nothing is changed."""
    value = case.made()

    async def scenario():
        async with place_in(sandbox, kind) as place:
            t = place.tenant
            found = {
                "list": await asked_for(lambda: t.list(limit=value)),
                "search": await asked_for(lambda: t.search("x", limit=value)),
            }
            for name, ask in OFFSETS.items():
                made = await place.subject(Message.user("x"), Message.user("y"))
                found[name] = await asked_for(lambda ask=ask, made=made: ask(t, made.id, value))
                if name in ("after", "at", "seqs") and found[name] != "right":
                    assert await t.load(made.key) == made
            return found

    expected = dict.fromkeys(("list", "search"), case.outcome)
    if case.outcome == "InvalidInput" and value != 0:
        expected |= dict.fromkeys(OFFSETS, "InvalidInput")
    elif value == 0:
        expected |= dict.fromkeys(OFFSETS, "right")
        expected |= {"after": "Conflict", "seqs": "InvalidInput"}
    elif value == 1:
        expected |= dict.fromkeys(OFFSETS, "right") | {"after": "Conflict"}
    else:
        expected |= BEYOND
    assert unlisted(run(scenario()), expected) == {}


@pytest.mark.parametrize("kind", STORES)
def test_an_offset_past_the_end_shows_what_is_there_and_no_more(sandbox, kind):
    """62: 2**63 and beyond are as good as the end."""

    async def scenario():
        async with place_in(sandbox, kind) as place:
            t = place.tenant
            made = await place.subject(*[Message.user(str(n)) for n in range(3)])
            for far in (3, 2**31, 2**63 - 1, 2**63, 2**64, 10**400):
                assert await t.read(made.id, start=far) == ()
                assert await t.read(made.id, start=far, stop=far) == ()
                assert await t.read(made.id, start=0, stop=far) == await t.read(made.id)
                assert await t.tail(made.id, count=far) == await t.read(made.id)

    run(scenario())


FORGED = [
    *("l", "l1", "l1.", "l.1", "l1.1.1", "l1.1\n", " l1.1", "L1.1", "s", "s1\n", "s-1", "S1"),
    *(
        "l\u0661.\u0661",
        "s\u0661",
        "l1e3.1",
        "l0x1.1",
        "l1;DROP.1",
        f"l{'9' * 19}.1",
        f"s{'9' * 19}",
    ),
    *(f"l1.{'9' * 5000}", "l--1.1", "l1.-1", "l1.1 OR 1=1", "s1 OR 1=1", "\0", "l1\0.1"),
]


@pytest.mark.parametrize("kind", STORES)
def test_a_page_that_was_not_given_is_refused_or_shows_nothing_of_others(sandbox, kind):
    """62: a page token names a place in one's own list; made up, it is an error or just a place."""

    async def scenario():
        async with place_in(sandbox, kind) as place:
            other = place.store.tenant("other")
            for tenant in (place.tenant, other):
                for number in range(4):
                    record = Record(key=f"of {tenant.name or 'mine'} {number}")
                    await tenant.create(record, [Message.user("pageword")])
            lists = (await other.list(limit=1)).next
            hits = (await other.search("pageword", limit=1)).next
            asking = [partial(place.tenant.list, page=page) for page in (*FORGED, hits, "x")]
            search = partial(place.tenant.search, "pageword")
            asking += [partial(search, page=page) for page in (*FORGED, lists, "x")]
            assert {await asked_for(ask) for ask in asking} == {"InvalidInput"}
            for page in (lists, f"l{'9' * 18}.{'9' * 18}", f"l-{'9' * 18}.0", "l0.0"):
                shown = (await place.tenant.list(page=page, limit=1_000)).items
                assert all("other" not in each.key for each in shown)
            for page in (hits, f"s{'9' * 18}", "s0", "s1"):
                shown = (await place.tenant.search("pageword", page=page, limit=1_000)).items
                assert all("other" not in each.key for each in shown)

    run(scenario())


@pytest.mark.parametrize("kind", STORES)
def test_an_unknown_filter_is_an_error_or_finds_nothing(sandbox, kind):
    """61: never "all rows"."""

    async def scenario():
        async with place_in(sandbox, kind) as place:
            t = place.tenant
            assert (await t.list(metadata={"unknown": 1})).items == ()
            assert (await t.list(metadata={"agent": "controller"})).items == ()
            assert (await t.list(agent="unknown")).items == ()
            assert await t.read(place.control[0].id, kind="unknown") == ()
            assert (await t.search("unknownword")).items == ()
            for name in ("owner", "key", "tenant", "where", "limit; DROP"):
                with pytest.raises(TypeError):  # Python's own, for an argument that there is not
                    await t.list(**{name: "x"})
                with pytest.raises(HoldfastError):
                    await t.update(place.control[0].id, {name: "x"})

    run(scenario())


QUERIES = {
    "no word": " \t\n !?*\"'()-:^",
    "operators": '"controlword" OR said NOT NEAR(controlword said) t:controlword controlword*',
    "open quote": '"controlword',
    "column": "t : controlword",
    "marks": "_s1 _t00 controlword",
    "NUL": "controlword\0",
    "5,000 words": " ".join(f"w{n}" for n in range(5_000)),
    "30,000 words": " ".join(f"w{n}" for n in range(30_000)),
    "1 MiB of one word": "w" * MIB,
    "1 MiB of quotes": '"' * MIB,
    "1 MiB of Chinese": "\u5317\u4eac" * (MIB // 6),
    "10,000 combining marks": "e" + "\u0301" * 10_000,
    "union": "x') UNION SELECT body FROM documents --",
}


@pytest.mark.parametrize("name", QUERIES, ids=lambda name: f"60-{name}".replace(" ", "-"))
@pytest.mark.parametrize("kind", STORES)
def test_a_query_of_any_kind_is_answered(sandbox, kind, name):
    """58, 60: no sign is an operator, and no length is too much; or TooLarge says that it is."""

    async def scenario():
        async with place_in(sandbox, kind) as place:
            try:
                found = (await place.tenant.search(QUERIES[name])).items
            except Exception as error:
                return outcome_of(error)
            return [each.key for each in found]

    expected = ["control"] if name in ("open quote", "NUL") else []
    assert run(scenario()) in (expected, "TooLarge")


# --- negative controls ----------------------------------------------------------------------------


class Lowercasing(Fake):
    class Tenant(Fake.Tenant):
        async def create(self, record, *rest, **more):
            return await self._real.create(record.replace(key=record.key.lower()), *rest, **more)

        async def load(self, key):
            return await self._real.load(key.lower())


class Cutting(Fake):
    """Keys end at a NUL, as they do in C."""

    class Tenant(Fake.Tenant):
        async def create(self, record, *rest, **more):
            key = record.key.partition("\0")[0] or "empty"
            return await self._real.create(record.replace(key=key), *rest, **more)

        async def load(self, key):
            return await self._real.load(key.partition("\0")[0] or "empty")


class Dropping(Fake):
    """Carriage returns get lost."""

    class Tenant(Fake.Tenant):
        async def append(self, id, entries, **more):
            entries = [
                each.replace(content=each.content.replace("\r", ""))
                if type(each) is Message and type(each.content) is str
                else each
                for each in entries
            ]
            return await self._real.append(id, entries, **more)


class Liking(Fake):
    """A filter is a pattern."""

    class Tenant(Fake.Tenant):
        async def list(self, *, agent=None, **more):
            return await self._real.list(agent=None if agent == "%" else agent, **more)


def litter():
    Path("left behind").touch()


def overwrite():
    Path("canary").write_text("something else")


class Littering(Fake):
    class Tenant(Fake.Tenant):
        async def create(self, record, *rest, **more):
            litter()
            return await self._real.create(record, *rest, **more)


class Overwriting(Fake):
    class Tenant(Fake.Tenant):
        async def create(self, record, *rest, **more):
            overwrite()
            return await self._real.create(record, *rest, **more)


class Raw(Fake):
    class Tenant(Fake.Tenant):
        async def load(self, key):
            raise sqlite3.OperationalError("near x: syntax error")


class Telling(Fake):
    class Tenant(Fake.Tenant):
        async def append(self, id, entries, **more):
            raise errors.InvalidInput("entries", f"cannot be stored: {entries!r}")


class Changing(Fake):
    """What is refused has an effect on another session."""

    class Tenant(Fake.Tenant):
        async def branch(self, id, *rest, **more):
            control = await self._real.load("control")
            await self._real.append(control.id, [Message.user("x")])
            return await self._real.branch(id, *rest, **more)


def case_of(cases, name):
    (found,) = [case for case in cases if case.name == name]
    return found


async def faked(sandbox, fake, function):
    """What a check says of a wrong store, and whether the control and the sandbox are as before."""
    before = sandbox.seen()
    async with sandbox.open("memory") as store:
        place = Place(store)
        await place.prepare()
        place.store, place.tenant = fake(store), fake(store).tenant("")
        found = await function(place)
        place.store, place.tenant = store, store.tenant("")
        return found, await place.wrong(), sandbox.seen() == before


CONTROLS = [
    (Lowercasing, "capital", "key", f"changed: {WRONG!r}"),
    (Cutting, "NUL in the middle", "key", f"changed: {WRONG!r}"),
    (Dropping, "lone return", "text", f"changed: {WRONG!r}"),
    (Liking, "percent", "agent", f"changed: {WRONG!r}"),
    (Raw, "dot", "key", "raw OperationalError"),
    (Fake, "capital", "key", "stored"),
]


@pytest.mark.parametrize(
    ("fake", "name", "entrance", "expected"),
    CONTROLS,
    ids=[f"{fake.__name__}-{entrance}" for fake, _, entrance, _ in CONTROLS],
)
def test_control_a_wrong_store_does_not_pass_for_one_value(sandbox, fake, name, entrance, expected):
    value = case_of(TEXTS, name).made()

    found, _, _ = run(
        faked(sandbox, fake, lambda p: tried(STORED_TEXT[entrance], p, value, "stored"))
    )

    assert found == expected


@pytest.mark.parametrize("fake", [Lowercasing, Cutting], ids=["Lowercasing", "Cutting"])
def test_control_values_that_collide_are_noticed(sandbox, fake):
    """Each of two keys may look right by itself."""
    found, _, _ = run(
        faked(sandbox, fake, lambda p: together(p, {"key": STORED_TEXT["key"]}, TEXTS))
    )

    assert any("DuplicateSession" in each for each in found)


@pytest.mark.parametrize("fake", [Littering, Overwriting], ids=["Littering", "Overwriting"])
def test_control_a_change_outside_of_the_store_is_noticed(sandbox, fake):
    found, wrong, is_untouched = run(
        faked(sandbox, fake, lambda p: tried(STORED_TEXT["key"], p, "a", "stored"))
    )

    assert (found, wrong, is_untouched) == ("stored", [], False)


def test_control_a_change_to_the_session_beside_is_noticed(sandbox):
    found, wrong, _ = run(
        faked(sandbox, Changing, lambda p: tried(STORED_TEXT["branch"], p, "", "InvalidInput"))
    )

    assert found == "InvalidInput, and something was changed"
    assert wrong == ["the control has changed"]


def test_control_an_error_that_tells_what_was_said_is_noticed(sandbox):
    found, _, _ = run(
        faked(sandbox, Telling, lambda p: tried(STORED_TEXT["text"], p, SECRET, "stored"))
    )

    assert found == "InvalidInput that tells a secret"


def test_control_an_error_without_end_is_noticed():
    error = errors.DuplicateSession("k" * MIB)

    assert outcome_of(error) == f"DuplicateSession of {len(str(error))} characters"


def test_control_a_change_of_a_json_value_is_noticed():
    """Python takes these for equal."""
    pairs = [(1, True), (0.0, -0.0), (1, 1.0), ({"a": [1]}, {"a": [True]}), ("a", "a\0")]

    assert [pair for pair in pairs if is_same(*pair)] == []
    assert is_same({"a": (1, None)}, {"a": [1, None]})


# --- accounting -----------------------------------------------------------------------------------

MINE = {*range(1, 66), *range(70, 75)}
TESTS_OF_THEIR_OWN = {
    **dict.fromkeys((21, 22, 23), "a_name_of_ours_that_leads_elsewhere, a_hard_link, a_folder"),
    30: "one_key_and_one_id_under_many_tenants",
    39: "messages_have_the_outcome",
    **dict.fromkeys((54,), "a_time_is_kept, a_time_to_live, a_grace"),
    55: "metadata_of_64_mib, metadata_null",
    61: "an_unknown_filter, an_option",
    62: "a_limit_or_an_offset, an_offset_past_the_end, a_page_that_was_not_given",
    63: "an_option",
    64: "a_url, an_absolute_path, a_file_has_the_very_name",
    65: "nothing_is_taken_from_a_hostile_environment, a_folder_that_others_can_write_to",
    70: "a_schema, an_edited_schema, a_file_with_pages, the_wal_of_another, a_hot_journal",
    71: "a_poisoned_row",
    72: "a_format, an_older_format",
    74: "an_open_store, a_file_that_stays_deleted, an_append_after_the_wal_was_deleted",
}


def missing_numbers(tables, others):
    return MINE - {case.number for table in tables for case in table} - {*others}


def test_every_number_from_1_to_65_and_70_to_74_is_in_a_table():
    """Every bad input has a row, a test of its own, or a layer that will take it."""
    tables = (TEXTS, VALUES, NOT_TEXT, MESSAGES, LIMITS_TRIED)
    here = Path(__file__)
    texts = here.read_text() + here.with_name("test_bad_inputs_files.py").read_text()

    assert missing_numbers(tables, {*TESTS_OF_THEIR_OWN, *ELSEWHERE}) == set()
    assert {*ELSEWHERE, *ALSO, *TESTS_OF_THEIR_OWN} <= MINE
    for names in TESTS_OF_THEIR_OWN.values():
        for name in names.split(", "):
            assert f"\ndef test_{name}" in texts, name


def test_control_a_number_that_is_left_out_is_noticed():
    left = [case for case in TEXTS if case.number != 27]

    assert missing_numbers(
        (left, VALUES, NOT_TEXT, MESSAGES, LIMITS_TRIED), TESTS_OF_THEIR_OWN
    ) == {
        27,
        73,
    }
