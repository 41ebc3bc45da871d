"""Bad inputs 1 to 65 and 70 to 74, each at every entrance of the stores where it makes sense.

The tables, in `bad_inputs.py` and here, say what comes of each: `stored` (given back exactly as it
was, beside all the others, by everything that looks for it), `nothing` (it finds nothing), or the
name of the error. An outcome that is not in the table fails. So does an error of Python or of the
driver; a change outside of the store's own files; a change to the session beside it; anything that
`verify` has to say; and an error that tells what was said, or a password.

Every group ends with negative controls: stores that are wrong, on which it has to fail.
"""

import asyncio
import gc
import json
import os
import random
import select
import shutil
import signal
import sqlite3
import struct
import subprocess
import tempfile
import time
import warnings
from contextlib import asynccontextmanager, closing, contextmanager, nullcontext, suppress
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from pathlib import Path

import pytest

import holdfast
from bad_inputs import (
    ALSO,
    DATABASE,
    ELSEWHERE,
    MIB,
    SECRET,
    STORES,
    TEXTS,
    VALUES,
    Case,
    Sandbox,
    describe,
    is_same,
    outcome_of,
    run,
)
from holdfast import errors, ids
from holdfast.entries import Call, Fold, Mark, UnknownEntry
from holdfast.errors import Busy, HoldfastError
from holdfast.frozen import FrozenDict
from holdfast.messages import Message, Role, ToolCall
from holdfast.parts import File, Image, Opaque, Text, Unknown
from holdfast.settings import Settings
from holdfast.stores import Record, open_store
from holdfast.stores.sqlite import commits, file, header
from holdfast.stores.values import Lease, Limits

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
NOON = datetime(2026, 2, 1, 12, tzinfo=UTC)
posix_only = pytest.mark.skipif(os.name != "posix", reason="modes and links are POSIX")


@pytest.fixture
def sandbox(tmp_path, monkeypatch):
    return Sandbox(tmp_path).enter(monkeypatch)


# --- a place to try inputs in ---------------------------------------------------------------------


class Place:
    """An open store with a session, the control, that nothing may happen to."""

    def __init__(self, store):
        self.store = store
        self.tenant = store.tenant("")
        self.tenants = [self.tenant]
        self._subjects = 0

    async def prepare(self):
        await self.tenant.create(
            Record(key="control", agent="controller", metadata={"is": "control"}),
            [Message.user("controlword"), Mark(what="noted"), Message.assistant("said")],
        )
        record = await self.tenant.load("control")
        await self.tenant.branch(record.id, "side", parent="main", at=1, use=False)
        self.control = await self.state("control")

    async def subject(self, *entries, **fields):
        """A new session to do something to."""
        self._subjects += 1
        record = Record(key=f"subject {self._subjects}", **fields)
        return await self.tenant.create(record, entries)

    async def state(self, key):
        record = await self.tenant.load(key)
        return record, [await self.tenant.read(record.id, b.name) for b in record.branches]

    async def everything(self):
        """All sessions that can be listed; every write to one is seen by its time."""
        return {
            (tenant.name, each.id): each for tenant in self.tenants for each in await all_of(tenant)
        }

    async def wrong(self):
        """What is not as it was, or not as it was written, in sentences."""
        found = []
        if await self.state("control") != self.control:
            found.append("the control has changed")
        for tenant in self.tenants:
            found += map(str, (await tenant.verify()).problems)
        hits = await self.tenant.search("controlword")
        if [hit.key for hit in hits.items] != ["control"]:
            found.append("the control is not found")
        return found


@asynccontextmanager
async def place_in(sandbox, kind, **options):
    """A prepared place; what is wrong afterwards, in it or around it, fails."""
    before = sandbox.seen()
    async with sandbox.open(kind, **options) as store:
        place = Place(store)
        await place.prepare()
        yield place
        assert await place.wrong() == []
    assert sandbox.seen() == before


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


async def asked_for(ask, right=None):
    """`right`, or the error that came instead."""
    try:
        found = await ask()
    except Exception as error:
        return outcome_of(error)
    return "right" if right is None or right(found) else f"wrong: {found!r:.300}"


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


async def all_of(tenant, **filters):
    """All sessions in a list, page by page."""
    found, page = [], None
    while True:
        answer = await tenant.list(limit=100, page=page, **filters)
        found += answer.items
        if (page := answer.next) is None:
            return found


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


# --- options and URLs: 61, 63, 64 -----------------------------------------------------------------


def opened(url, **options):
    """What comes of opening a store, in the words of the tables."""

    async def scenario():
        async with open_store(url, **options) as store:
            tenant = store.tenant("t")
            await tenant.create(Record(key="k"), [Message.user("x")])
            assert [each.entry.text for each in await tenant.read((await tenant.load("k")).id)] == [
                "x"
            ]

    try:
        store = open_store(url, **options)
        if SECRET in repr(store) or SECRET in repr(holdfast.SessionManager(store)):
            return "a repr that tells a secret"
        run(scenario())
    except Exception as error:
        return outcome_of(error)
    return "opened"


URLS = {
    "empty": ("", "InvalidInput"),
    "no scheme": ("chats.db", "InvalidInput"),
    "colon": (":", "InvalidInput"),
    "no text": (5, "InvalidInput"),
    "None": (None, "InvalidInput"),
    "bytes": (b"memory:", "InvalidInput"),
    "a path": (Path("chats.db"), "InvalidInput"),
    "memory with a path": ("memory:x", "InvalidInput"),
    "memory with parameters": ("memory:?cache=shared", "InvalidInput"),
    "memory in capitals": ("MEMORY:", "opened"),
    "space before": (" memory:", "InvalidInput"),
    "unknown scheme": (f"redis://u:{SECRET}@h/0", "InvalidInput"),
    "another database": (f"postgresql://u:{SECRET}@h/d?sslmode=none", "InvalidInput"),
    "a password for SQLite": (f"sqlite://u:{SECRET}@h/chats.db", "InvalidInput"),
    "a password alone": (SECRET, "InvalidInput"),
    "scheme of 1 MiB": ("s" * MIB + ":", "InvalidInput"),
    "scheme with a NUL": ("sql\0ite:x", "InvalidInput"),
    "scheme that is a module": ("os.system:id", "InvalidInput"),
    "no file": ("sqlite:", "InvalidInput"),
    "no file behind slashes": ("sqlite:///", "InvalidInput"),
    "a host": ("sqlite://host/chats.db", "InvalidInput"),
    "SQLite's memory": ("sqlite::memory:", "InvalidInput"),
    "shared memory": ("sqlite:file:x?mode=memory&cache=shared", "InvalidInput"),
    "vfs": ("sqlite:data/chats.db?vfs=unix-none", "InvalidInput"),
    "parameters": ("sqlite:data/chats.db?mode=ro", "InvalidInput"),
    "half a character": ("sqlite:data/\ud800.db", "InvalidInput"),
    "NUL": ("sqlite:data/a\0b.db", "InvalidInput"),
    "folder by its slash": ("sqlite:data/", "InvalidInput"),
    "folder": ("sqlite:data", "StoreUnavailable"),
    "dot": ("sqlite:.", "StoreUnavailable|InvalidInput"),
    "two dots": ("sqlite:..", "StoreUnavailable|InvalidInput"),
    "a file as a folder": ("sqlite:canary/chats.db", "StoreUnavailable"),
    "a link": ("sqlite:link", "StoreUnavailable"),
    "a canary": ("sqlite:canary", "Corrupt|StoreUnavailable"),
    "a canary upwards": ("sqlite:../../../etc/passwd", "Corrupt|StoreUnavailable"),
    "a device": ("sqlite:/dev/null", "StoreUnavailable"),
    "a name of 300 bytes": ("sqlite:data/" + "k" * 300, "StoreUnavailable|InvalidInput"),
    "a path of 5,000 bytes": ("sqlite:data/" + "k/" * 2_500 + "x", "StoreUnavailable|InvalidInput"),
}


@pytest.mark.parametrize("name", URLS, ids=lambda name: f"64-{name}".replace(" ", "-"))
def test_a_url_has_the_outcome_in_the_table(sandbox, name):
    """64: no password in an error or a repr, and nothing that is not ours is opened or changed."""
    url, expected = URLS[name]
    before = sandbox.seen()

    assert opened(url) in expected.split("|")

    assert sandbox.seen() == before


@posix_only
def test_an_absolute_path_to_a_file_of_others_is_refused_unchanged(sandbox):
    """64: sqlite:////etc/passwd."""
    before = sandbox.seen()

    for url in (f"sqlite:///{sandbox.root}/etc/passwd", f"sqlite:{sandbox.root}/etc/passwd"):
        assert opened(url) in ("Corrupt", "StoreUnavailable")

    assert sandbox.seen() == before


# As the name of the file: plain characters, whatever they mean to a shell, a URL or SQLite.
PLAIN_NAMES = [
    *(
        "a b",
        "a#b",
        "a%20b",
        "%2e%2e%2fx",
        "file:x",
        "a;b",
        "-rf",
        "$HOME",
        "a\\b",
        "a\nb",
        "~root",
    ),
    *("a:memory:", "\u202eb", "caf\u00e9", "cafe\u0301", "'; DROP TABLE x;--", "{0}", "CON", "a."),
]


@posix_only
@pytest.mark.parametrize("name", PLAIN_NAMES)
def test_a_file_has_the_very_name_that_was_asked_for(sandbox, name):
    """64: the store is at that name and beside it, and nowhere else."""
    folder = sandbox.root / "alone"
    folder.mkdir(mode=0o700)
    before = sandbox.seen()

    assert opened(f"sqlite:{folder}/{name}") == "opened"

    added = sandbox.seen().keys() - before.keys()
    assert f"alone/{name}" in added
    assert {each for each in added if not each.startswith(f"alone/{name}")} == set()
    shutil.rmtree(folder)
    folder.mkdir(mode=0o700)
    assert sandbox.seen() == before


OPTIONS = {
    "durability": [("sync", "opened"), ("fast", "opened"), ("SYNC", "InvalidInput")]
    + [
        (each, "InvalidInput") for each in ("", None, True, 2, ["sync"], b"sync", "sync; x", "full")
    ],
    "limits": [(Limits(page=5), "opened")]
    + [(each, "InvalidInput") for each in (None, {}, {"page": 5}, 5, "none", Limits)],
    "table": [(each, "InvalidInput") for each in ("m; DROP", '"m"', "m" * 64, "select", "t\xe4")],
    "schema": [("public", "InvalidInput")],
    "password": [(SECRET, "InvalidInput")],
}


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        pytest.param(name, *each, id=f"{63 if name in ('table', 'schema') else 64}-{name}-{number}")
        for name, values in OPTIONS.items()
        for number, each in enumerate(values)
    ],
)
def test_an_option_has_the_outcome_in_the_table(sandbox, option, value, expected):
    """61, 63, 64: an option that is unknown, or has another value than it may, is InvalidInput."""
    assert opened(sandbox.url("sqlite"), **{option: value}) == expected


@pytest.mark.parametrize("option", ["durability", "table", "password"])
def test_the_memory_store_refuses_options_that_it_has_not(option):
    """61: an unknown setting is an error of ours."""
    assert opened("memory:", **{option: SECRET}) == "InvalidInput"


@pytest.mark.parametrize(
    "limits", [None, {}, 5, Limits], ids=["64-None", "64-dict", "64-five", "64-class"]
)
def test_the_memory_store_takes_limits_only_as_limits(limits):
    assert opened("memory:", limits=limits) == "InvalidInput"


# --- what has our names: 21, 22, 23 ---------------------------------------------------------------


def put(kind, path, target):
    """Something else at a name of ours; what it leads to is `target`."""
    if kind == "link to a file":
        path.symlink_to(target)
    elif kind == "link to nothing":
        path.symlink_to(target.with_name("nothing"))
    elif kind == "link to a folder":
        path.symlink_to(target.parent, target_is_directory=True)
    elif kind == "link to itself":
        path.symlink_to(path)
    elif kind == "FIFO":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()


KINDS = [
    "link to a file",
    "link to nothing",
    "link to a folder",
    "link to itself",
    "FIFO",
    "folder",
]


@posix_only
@pytest.mark.parametrize(
    ("suffix", "kind"),
    [
        pytest.param(
            s, k, id=f"{21 if 'link' in k else 23}-{s or 'database'}-{k.replace(' ', '-')}"
        )
        for s in ("", "-wal", "-shm", "-journal", "-lock", "-owners")
        for k in KINDS
        if (s, k) != ("-owners", "folder")
    ],
)
def test_a_name_of_ours_that_leads_elsewhere_is_refused(sandbox, suffix, kind):
    """21, 22, 23: who can put a link there could have any file written, or deleted."""
    victims = sandbox.root / "victims"
    victims.mkdir()
    for name in ("file", "0" * 32, "f" * 32):  # the latter look like names that we give
        (victims / name).write_text("canary")
    put(kind, beside(sandbox.path, suffix), victims / "file")
    before = sandbox.seen()

    async def scenario():
        async with sandbox.open("sqlite") as store:
            tenant = store.tenant("")
            record = await tenant.create(Record(key="k"))
            lease = await tenant.begin(record.id, "me", HOUR, {})
            await tenant.release(lease)

    with pytest.raises(HoldfastError) as caught:
        run(scenario())

    assert outcome_of(caught.value) == "StoreUnavailable"
    assert sandbox.seen() == before
    assert describe(beside(sandbox.path, suffix), content=False).split()[0][0] in "lpd"


@posix_only
def test_a_hard_link_is_told(sandbox):
    """23: a second name of the file may be anybody's."""

    async def scenario():
        async with sandbox.open("sqlite") as store:
            os.link(sandbox.path, sandbox.root / "second")
            return store.problems()

    assert any("hard link" in each and str(sandbox.path) in each for each in run(scenario()))


@posix_only
def test_a_folder_that_is_a_link_holds_the_store_and_nothing_else_is_touched(sandbox):
    """22: a folder may be on another disk; its link is followed once, by the system."""
    elsewhere = sandbox.root / "elsewhere"
    sandbox.data.rename(elsewhere)
    sandbox.data.symlink_to(elsewhere, target_is_directory=True)
    before = sandbox.seen()

    assert opened(sandbox.url("sqlite")) == "opened"

    added = sandbox.seen().keys() - before.keys()
    assert added and all(each.startswith(f"elsewhere/{DATABASE}") for each in added)


# --- the environment: 65 --------------------------------------------------------------------------

EVIL = "import os\nopen(os.path.join(os.path.dirname(__file__), 'imported'), 'a').close()\n"


@pytest.mark.parametrize("kind", STORES)
def test_nothing_is_taken_from_a_hostile_environment(sandbox, monkeypatch, kind):
    """65: no module from PYTHONPATH or the working folder, and no text in temporary files."""
    for folder in (sandbox.work, sandbox.temporary):
        for name in ("sitecustomize", "usercustomize", "json", "sqlite3", "sys", "site", "re"):
            (folder / f"{name}.py").write_text(EVIL)
    monkeypatch.setenv("PYTHONPATH", str(sandbox.temporary))
    monkeypatch.setenv("PYTHONSTARTUP", str(sandbox.temporary / "json.py"))
    monkeypatch.setenv("SQLITE_TMPDIR", str(sandbox.temporary))

    async def scenario():
        async with place_in(sandbox, kind) as place:
            made = await place.subject(*[Message.user(f"word{n} " * 500) for n in range(300)])
            await place.tenant.search("word7")
            await place.tenant.list(metadata={"a": 1})
            await place.tenant.erase(made.id, [1, 2, 3])
            await place.tenant.clear(made.id)
            await place.tenant.delete(made.id)

    run(scenario())


def test_a_temporary_folder_that_is_not_there_is_not_needed(sandbox, monkeypatch):
    """65: TMPDIR may point anywhere."""
    for name in ("TMPDIR", "SQLITE_TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(name, "/nonexistent/\nfolder")
    monkeypatch.setattr(tempfile, "tempdir", None)

    async def scenario():
        async with place_in(sandbox, "sqlite") as place:
            made = await place.subject(*[Message.user("word " * 5_000) for n in range(50)])
            await place.tenant.search("word")
            await place.tenant.erase(made.id, [1])

    run(scenario())


@posix_only
@pytest.mark.parametrize(
    "mode", [0o777, 0o707, 0o770, 0o1777], ids=["65-777", "65-707", "65-770", "65-1777"]
)
def test_a_folder_that_others_can_write_to_is_named(sandbox, mode):
    """65: whoever can write there can replace the file; `problems` says so, and the way out."""

    async def scenario():
        async with sandbox.open("sqlite") as store:
            sound = store.problems()
            sandbox.data.chmod(mode)
            return sound, store.problems()

    sound, found = run(scenario())

    assert not any(f"{sandbox.data} can" in each for each in sound)
    assert any(str(sandbox.data) in each and "chmod 700" in each for each in found)


# --- files of the SQLite store: a sound one, and what may come of a damaged one -------------------

LARGE = "large " * 8_000


async def fill(store):
    """Sessions of which one has a row in every table."""
    tenant = store.tenant("")
    await tenant.create(
        Record(key="control", agent="controller", metadata={"is": "control"}),
        [Message.user("controlword"), Mark(what="noted"), Message.assistant("said")],
    )
    record = Record(
        key="victim",
        agent="robot",
        settings=Settings(model="vendor:model", system="be kind"),
        metadata={"is": "victim"},
        tools=[{"name": "look"}],
        counters={"turns": 2},
        ttl=3_650 * DAY,
        parent="another",
    )
    victim = await tenant.create(record, [Message.user("victimword"), Message.assistant("aye")])
    await tenant.append(
        victim.id,
        [
            Fold(first=1, last=2, replacement=Message.user("in short")),
            Call(model="vendor:model"),
            Mark(what="noted", data={"a": 1}),
            Message.tool(LARGE, "c"),
            UnknownEntry(kind="vote", raw=b'{"v":1,"vote":[1.0 ]}'),
        ],
        once="turn 1",
    )
    await tenant.branch(victim.id, "side", parent="main", at=2)
    await tenant.append(victim.id, [Message.user("on the side")], branch="side")
    lease = await tenant.begin(victim.id, "worker", HOUR, {"input": "hello"})
    await tenant.journal(lease, "partial")
    await tenant.release(lease)
    await store.tenant("other").create(Record(key="victim"), [Message.user("of another")])
    await tenant.search("victimword")
    await tenant.expire()


class Truth:
    """What was written: a session as it was read from the sound file."""

    def __init__(self, record, read, summary):
        self.record = record
        self.id = record.id
        self.read = read
        self.summary = summary

    @classmethod
    async def of(cls, tenant, key):
        record = await tenant.load(key)
        read = {
            branch.name: await tenant.read(record.id, branch.name) for branch in record.branches
        }
        (summary,) = [each for each in await all_of(tenant) if each.key == key]
        return cls(record, read, summary)


class Sound:
    """A sound file, and the truth about it."""

    def __init__(self, folder):
        self.path = folder / DATABASE
        folder.mkdir()

        async def made():
            async with open_store(f"sqlite:{self.path}", durability="fast") as store:
                await fill(store)
            async with open_store(f"sqlite:{self.path}", durability="fast") as store:
                self.control = await Truth.of(store.tenant(""), "control")
                self.victim = await Truth.of(store.tenant(""), "victim")
                self.other = await Truth.of(store.tenant("other"), "victim")

        run(made())
        self.loose = folder / "loose.db"
        shutil.copy(self.path, self.loose)
        self.schema = loosened(self.loose)
        with closing(sqlite3.connect(self.path)) as db:
            (self.number,) = db.execute(
                "SELECT number FROM sessions WHERE id = ? AND tenant = ''", (self.victim.id,)
            ).fetchone()

    def copy_to(self, path):
        shutil.copy(self.path, path)
        path.chmod(0o600)
        return path


def loosened(path):
    """Let every column be NULL, in the text of the schema; the text as it was."""
    with closing(sqlite3.connect(path)) as db:
        texts = dict(db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'"))
        db.execute("PRAGMA journal_mode=DELETE")
        db.execute("PRAGMA writable_schema=ON")
        for name, text in texts.items():
            if "VIRTUAL" not in text and not name.startswith("sqlite_"):
                loose = text.replace(" NOT NULL", "")
                db.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (loose, name))
        db.commit()
    return texts


def tightened(db, texts):
    db.execute("PRAGMA writable_schema=ON")
    for name, text in texts.items():
        if not name.startswith("sqlite_"):
            db.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (text, name))
    db.commit()
    db.execute("PRAGMA journal_mode=WAL")


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return Sound(tmp_path_factory.mktemp("sound") / "store")


DAMAGE = ("Corrupt", "StoreUnavailable", "SessionNotFound")


async def wrongs_of_victim(store, sound):
    """What the damaged session answers that is neither right nor an error about damage."""
    tenant, truth = store.tenant(""), sound.victim
    found = {"load": await asked_for(lambda: tenant.load("victim"), truth.record.__eq__)}
    for branch, rows in truth.read.items():
        found[f"read {branch}"] = await asked_for(
            lambda branch=branch: tenant.read(truth.id, branch), rows.__eq__
        )
        found[f"tail {branch}"] = await asked_for(
            lambda branch=branch: tenant.tail(truth.id, branch, 1),
            lambda few, rows=rows: few and rows[-len(few) :] == few,
        )
    found["list"] = await asked_for(
        lambda: all_of(tenant),
        lambda items: all(
            each.damage or each in (truth.summary, sound.control.summary) for each in items
        ),
    )
    found["search"] = await asked_for(
        lambda: tenant.search("victimword"),
        lambda page: all(
            each.session_id == truth.id and each.stored == truth.read["main"][0]
            for each in page.items
        ),
    )
    found["verify"] = await asked_for(lambda: tenant.verify(truth.id))
    return {name: each for name, each in found.items() if each not in ("right", *DAMAGE)}


async def wrongs_of_control(store, sound, *, is_searched=True):
    """What another session in the same file does not do as before."""
    tenant, truth = store.tenant(""), sound.control
    other = store.tenant("other")
    found = {
        "load": await asked_for(lambda: tenant.load("control"), truth.record.__eq__),
        "read": await asked_for(lambda: tenant.read(truth.id), truth.read["main"].__eq__),
        "tail": await asked_for(lambda: tenant.tail(truth.id), truth.read["main"].__eq__),
        "list": await asked_for(lambda: all_of(tenant), lambda items: truth.summary in items),
        "list by agent": await asked_for(
            lambda: all_of(tenant, agent="controller"), [truth.summary].__eq__
        ),
        "list by metadata": await asked_for(
            lambda: all_of(tenant, metadata={"is": "control"}), [truth.summary].__eq__
        ),
        "verify": await asked_for(lambda: tenant.verify(truth.id), lambda v: v.problems == ()),
        "verify all": await asked_for(lambda: tenant.verify()),
        "load of another tenant": await asked_for(
            lambda: other.load("victim"), sound.other.record.__eq__
        ),
        "list of another tenant": await asked_for(
            lambda: all_of(other), [sound.other.summary].__eq__
        ),
    }
    if is_searched:
        found["search"] = await asked_for(
            lambda: tenant.search("controlword"),
            lambda page: [each.key for each in page.items] == ["control"],
        )
    return {f"control: {name}": each for name, each in found.items() if each != "right"}


def is_refusal(outcome):
    """Whether it is an error of ours, and a decent one."""
    kind = getattr(errors, outcome, None)
    return isinstance(kind, type) and issubclass(kind, HoldfastError)


async def wrongs_of_writing(store, sound):
    """What goes wrong when both are written to; the damaged one may refuse, the other may not."""
    tenant, truth = store.tenant(""), sound.victim
    first = truth.read["main"]
    turn = [each.entry for each in first if each.seq > 2]
    found = {
        "once": await asked_for(
            lambda: tenant.append(truth.id, turn, once="turn 1"),
            lambda done: tuple(done) == (3, 7, "main", 3),
        ),
        "begin": await asked_for(lambda: tenant.begin(truth.id, "me", HOUR, {})),
        "append": await asked_for(lambda: tenant.append(truth.id, [Message.user("more")])),
        "update": await asked_for(lambda: tenant.update(truth.id, {"metadata": {"a": 1}})),
        "branch": await asked_for(lambda: tenant.branch(truth.id, "new", parent="main", at=1)),
        "expire": await asked_for(lambda: tenant.expire()),
    }
    wrong = {n: each for n, each in found.items() if each != "right" and not is_refusal(each)}
    control = sound.control
    more = [Message.user("more")]
    head = control.record.branches[0].head
    done = await asked_for(
        lambda: tenant.append(control.id, more, after=head), lambda done: done.messages == 3
    )
    if done != "right":
        wrong["control: append"] = done
    count = len(control.read["main"]) + (done == "right")
    read = await asked_for(
        lambda: tenant.read(control.id),
        lambda rows: rows[:3] == control.read["main"] and len(rows) == count,
    )
    if read != "right":
        wrong["control: read again"] = read
    return wrong


# --- poisoned rows: 71 ----------------------------------------------------------------------------

PICKLE = b"cos\nsystem\n(S'touch pwned'\ntR."
NOT_UTF8 = object()
POISONS = {
    "BLOB": {
        "NULL": None,
        "text": "' OR 1=1 --",
        "not UTF-8": NOT_UTF8,
        "nothing": b"",
        "pickle": PICKLE,
        "msgpack ext": b"\xc7\x03\x05abc",
        "deep JSON": b"[" * 100_000,
        "one": 1,
    },
    "TEXT": {
        "NULL": None,
        "text": "' OR 1=1 --",
        "not UTF-8": NOT_UTF8,
        "nothing": "",
        "pickle": PICKLE,
        "deep JSON": "[" * 100_000,
    },
    "INTEGER": {
        "NULL": None,
        "text": "' OR 1=1 --",
        "not UTF-8": NOT_UTF8,
        "pickle": PICKLE,
        "zero": 0,
        "minus one": -1,
        "five": 5,
        "largest": 2**63 - 1,
        "real": 1.5,
    },
}


def family(declared):
    for name, word in (("BLOB", "BLOB"), ("TEXT", "TEXT"), ("TEXT", "CHAR"), ("INTEGER", "INT")):
        if word in declared.upper():
            return name
    return "BLOB"


def columns():
    """All columns of all tables that the store makes: table, column, family."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / DATABASE

        async def made():
            async with open_store(f"sqlite:{path}", durability="fast"):
                pass

        run(made())
        gc.collect()  # so that nothing of the store is left when its folder goes
        with closing(sqlite3.connect(path)) as db:
            return columns_in(db)


def columns_in(db):
    tables = db.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    ).fetchall()
    return [
        (table, row[1], family(row[2]))
        for (table,) in sorted(tables)
        for row in db.execute(f'PRAGMA table_info("{table}")')
    ]


def poisoned(path, sound, table, column, value):
    """A file in which one row of the victim's has another value; False if SQLite refuses it."""
    shutil.copy(sound.loose, path)
    path.chmod(0o600)
    with closing(sqlite3.connect(path)) as db:
        found = db.execute(f'PRAGMA table_info("{table}")').fetchall()
        names = [row[1] for row in found]
        keys = [row[1] for row in found if row[5]] or ["rowid"]
        if table == "sessions":
            where = f"number = {sound.number}"
        elif "session" in names:
            where = f"session = {sound.number}"
        else:
            where = "1"
        chosen = ", ".join(f'"{key}"' if key != "rowid" else key for key in keys)
        row = db.execute(f'SELECT {chosen} FROM "{table}" WHERE {where} LIMIT 1').fetchone()
        assert row is not None, f"the sound file has nothing in {table}"
        is_key = " AND ".join(f'"{key}" IS ?' if key != "rowid" else "rowid IS ?" for key in keys)
        put, values = ("CAST(x'ff61' AS TEXT)", ()) if value is NOT_UTF8 else ("?", (value,))
        try:
            db.execute("PRAGMA ignore_check_constraints=ON")
            db.execute(f'UPDATE "{table}" SET "{column}" = {put} WHERE {is_key}', (*values, *row))
            db.commit()
        except sqlite3.Error:
            return False
        tightened(db, sound.schema)
    return True


class Child:
    """Functions that run one after the other in a process of their own, where they may hang."""

    def __init__(self, functions):
        self._names = list(functions)
        self._reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # that this process has threads
            self._child = os.fork()
        if self._child == 0:
            try:
                for function in functions.values():
                    os.write(writing, json.dumps(function()).encode()[:60_000] + b"\n")
            finally:
                os._exit(0)
        os.close(writing)

    def results(self, deadline):
        """What they returned, as JSON would; of the first that did not, that it hangs or died."""
        said, end = b"", "died"
        try:
            while True:
                left = max(0, deadline - time.monotonic())
                if not select.select([self._reading], [], [], left)[0]:
                    end = "hangs"
                    break
                if not (piece := os.read(self._reading, 65_536)):
                    break
                said += piece
        finally:
            os.close(self._reading)
            with suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)
        lines = said.decode().split("\n")[:-1]
        found = dict(zip(self._names, map(json.loads, lines), strict=False))
        return found | {name: {"it": end} for name in self._names[len(lines) :][:1]}


def guarded_all(functions, seconds=15, at_once=2):
    """The results of functions that may hang or crash, and not take this process with them."""
    if not hasattr(os, "fork"):
        return {name: function() for name, function in functions.items()}
    deadline = time.monotonic() + seconds
    names = list(functions)
    shares = [{name: functions[name] for name in names[n::at_once]} for n in range(at_once)]
    found = {}
    for child in [Child(share) for share in shares if share]:
        found |= child.results(deadline)
    return found


def guarded(function, seconds=15):
    """The same for one."""
    return guarded_all({"it": function}, seconds)["it"]


async def wrongs(path, sound, *, is_searched=True):
    """Everything that a store on this file does wrong; a file that it refuses whole is its right
    only where the damage is in no session's rows."""
    try:
        store = await open_store(f"sqlite:{path}", durability="fast")
    except Exception as error:
        return {"open": outcome_of(error)}
    try:
        found = await wrongs_of_control(store, sound, is_searched=is_searched)
        found |= await wrongs_of_victim(store, sound)
        found |= await wrongs_of_writing(store, sound)
        return found
    finally:
        await store.close()


OF_SEARCH = ("search", "words")
OWN_SUFFIXES = {"", "-wal", "-shm", "-journal", "-lock", "-owners"}


# What cannot be told: a name that was never used, and a time of the last write in a list, which
# shows columns and records; loading the session tells.
UNTOLD = {
    ("once", "session"): "once",
    ("once", "name"): "once",
    ("sessions", "updated"): "list",
}


@pytest.mark.parametrize(
    ("table", "column", "kind"),
    [pytest.param(*each, id=f"71-{each[0]}.{each[1]}") for each in columns()],
)
def test_a_poisoned_row_is_damage_of_its_session_alone(sandbox, sound, table, column, kind):
    """71: the session it belongs to says so or is right; another loads, reads and is listed."""
    is_index = table.partition("_")[0] in OF_SEARCH
    before = sandbox.seen()
    asking = {}
    for name, value in POISONS[kind].items():
        path = sandbox.root / f"{name} poison" / DATABASE
        path.parent.mkdir(mode=0o700)
        if poisoned(path, sound, table, column, value):
            asking[name] = partial(wrongs, path, sound, is_searched=not is_index)

    found = guarded_all({name: lambda ask=ask: run(ask()) for name, ask in asking.items()})

    untold = UNTOLD.get((table, column))
    wrong = {name: each.keys() - {untold} for name, each in found.items()}
    assert {name: found[name] for name in found if wrong[name]} == {}
    assert found
    for folder in sandbox.root.glob("* poison"):
        assert {each.name.removeprefix(DATABASE) for each in folder.iterdir()} <= OWN_SUFFIXES
        shutil.rmtree(folder)
    assert sandbox.seen() == before


def test_every_table_has_a_row_to_poison(sound):
    with closing(sqlite3.connect(sound.path)) as db:
        found = {
            table: db.execute(f'SELECT 1 FROM "{table}"').fetchone() for table, *_ in columns_in(db)
        }

    assert all(found.values()), found


def test_a_row_that_cannot_be_decoded_leaves_other_reads_fresh(sandbox, sound):
    """71: after an error, what was appended is seen; no reader stays in the past."""
    assert poisoned(sandbox.path, sound, "sessions", "agent", NOT_UTF8)

    async def scenario():
        async with sandbox.open("sqlite") as store:
            tenant = store.tenant("")
            with suppress(HoldfastError):
                await tenant.list()
            with suppress(HoldfastError):
                await tenant.load("victim")
            await tenant.append(sound.control.id, [Message.user("more")])
            return (await tenant.load("control")).seq

    assert run(scenario()) == sound.control.record.seq + 1


# --- other people's schema, pages and logs: 70 ----------------------------------------------------


def edited(path, *statements, is_schema=False):
    """Run statements on a file, as another program would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        if is_schema:
            db.execute("PRAGMA writable_schema=ON")
        for statement in statements:
            db.execute(statement)
    return path


def beside(path, suffix):
    return path.with_name(path.name + suffix)


def bytes_of(path):
    return describe(path), sorted(each.name for each in path.parent.glob(f"{DATABASE}*"))


PLANTED = {
    "trigger that deletes": [
        "CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM sessions WHERE number = 1; END"
    ],
    "trigger that changes": [
        "CREATE TRIGGER t AFTER UPDATE ON sessions BEGIN UPDATE documents SET body = x'00'; END"
    ],
    "trigger that refuses": [
        "CREATE TRIGGER t BEFORE INSERT ON entries BEGIN SELECT RAISE(ABORT, 'no'); END"
    ],
    "trigger that ignores": [
        "CREATE TRIGGER t BEFORE INSERT ON entries BEGIN SELECT RAISE(IGNORE); END"
    ],
    "trigger of another table": [
        "CREATE TABLE x(a)",
        "CREATE TRIGGER t AFTER INSERT ON x BEGIN DELETE FROM sessions; END",
    ],
    "view for a table": [
        "ALTER TABLE clocks RENAME TO hidden",
        "CREATE VIEW clocks AS SELECT tenant, load_extension('x') AS seen FROM hidden",
    ],
    "generated column": [
        "ALTER TABLE entries ADD COLUMN g GENERATED ALWAYS AS (length(payload)) VIRTUAL"
    ],
    "another column": ["ALTER TABLE sessions ADD COLUMN x DEFAULT 1"],
    "unique index": ["CREATE UNIQUE INDEX x ON sessions(agent)"],
    "index of an expression": ["CREATE INDEX x ON entries(abs(position))"],
    "partial index": ["CREATE UNIQUE INDEX x ON entries(kind) WHERE rid < 0"],
    "table missing": ["DROP TABLE drafts"],
    "table renamed": ["ALTER TABLE once RENAME TO twice"],
    "index missing": ["DROP INDEX sessions_newest"],
}


def refused(sandbox):
    """What comes of opening the file, which must not be changed if it is refused."""
    before = bytes_of(sandbox.path)[0]

    async def scenario():
        async with sandbox.open("sqlite"):
            return "opened"

    try:
        return run(scenario())
    except Exception as error:
        outcome = outcome_of(error)
    return outcome if bytes_of(sandbox.path)[0] == before else f"{outcome}, and it was changed"


@pytest.mark.parametrize("name", PLANTED, ids=lambda name: f"70-{name}".replace(" ", "-"))
def test_a_schema_that_somebody_has_changed_is_refused(sandbox, sound, name):
    """70: what would run by itself, or is not as we made it, is seen before anything is written."""
    before = sandbox.seen()
    sound.copy_to(sandbox.path)
    edited(sandbox.path, *PLANTED[name])

    assert refused(sandbox) == "Corrupt"

    assert sandbox.seen() == before


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("CREATE TABLE notes(a)", id="70-table-of-others"),
        pytest.param("CREATE VIEW v AS SELECT load_extension('x')", id="70-view-of-others"),
        pytest.param("CREATE TABLE n(a, b AS (a || load_extension('x')))", id="70-generated"),
        pytest.param("ANALYZE", id="70-statistics"),
    ],
)
def test_what_stands_beside_our_tables_is_harmless(sandbox, sound, statement):
    """70: it is never asked; everything works as before."""
    before = sandbox.seen()
    sound.copy_to(sandbox.path)
    with suppress(sqlite3.Error):  # some versions refuse to make such a table
        edited(sandbox.path, statement)

    assert guarded(lambda: run(wrongs(sandbox.path, sound))) == {}

    assert sandbox.seen() == before


SCHEMA_EDITS = {
    "constraint away": "UPDATE sqlite_schema SET sql = replace(sql, ' NOT NULL', '')"
    " WHERE name = 'entries'",
    "no SQL": "UPDATE sqlite_schema SET sql = 'nonsense' WHERE name = 'entries'",
    "SQL of another kind": "UPDATE sqlite_schema SET sql = 'CREATE TABLE entries(a)'"
    " WHERE name = 'entries'",
    "two tables on one page": "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM"
    " sqlite_schema WHERE name = 'documents') WHERE name = 'blobs'",
    "index on a page of a table": "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM"
    " sqlite_schema WHERE name = 'entries') WHERE name = 'sessions_newest'",
    "page that is not there": "UPDATE sqlite_schema SET rootpage = 1000000 WHERE name = 'drafts'",
    "page of the schema": "UPDATE sqlite_schema SET rootpage = 1 WHERE name = 'clocks'",
    "table away": "DELETE FROM sqlite_schema WHERE name = 'once'",
    "a name twice": "INSERT INTO sqlite_schema SELECT * FROM sqlite_schema WHERE name = 'clocks'",
    "everything away": "DELETE FROM sqlite_schema",
}


@pytest.mark.parametrize("name", SCHEMA_EDITS, ids=lambda name: f"70-{name}".replace(" ", "-"))
def test_an_edited_schema_is_damage_or_changes_nothing(sandbox, sound, name):
    """70: refused as it is, or every answer is right or an error about damage."""
    sound.copy_to(sandbox.path)
    edited(sandbox.path, SCHEMA_EDITS[name], is_schema=True)
    outcome = guarded(lambda: {"open": refused(sandbox)})["open"]
    if outcome == "opened":
        wrong = guarded(lambda: run(wrongs(sandbox.path, sound)))
        answers = {each for each in wrong.values() if each not in DAMAGE}
        assert answers == set()
    else:
        assert outcome in ("Corrupt", "StoreUnavailable")


@pytest.mark.parametrize("size", [512, 1024, 65536], ids=lambda size: f"70-pages-of-{size}")
def test_a_file_with_pages_of_any_size_works(sandbox, sound, size):
    """70: a size that SQLite has is as good as ours."""
    sound.copy_to(sandbox.path)
    edited(
        sandbox.path,
        *("PRAGMA journal_mode=DELETE", f"PRAGMA page_size={size}", "VACUUM"),
        "PRAGMA journal_mode=WAL",
    )
    with closing(sqlite3.connect(sandbox.path)) as db:
        assert db.execute("PRAGMA page_size").fetchone() == (size,)

    assert guarded(lambda: run(wrongs(sandbox.path, sound))) == {}


@pytest.mark.parametrize("size", [0, 3, 256, 513, 65535], ids=lambda size: f"70-header-says-{size}")
def test_a_file_with_pages_of_a_size_that_there_is_not_is_refused(sandbox, sound, size):
    sound.copy_to(sandbox.path)
    with sandbox.path.open("r+b") as file:
        file.seek(16)
        file.write(size.to_bytes(2, "big"))

    assert refused(sandbox) in ("Corrupt", "StoreUnavailable")


JOURNAL_MAGIC = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
PAGE_SIZE = 4096


def foreign_store(folder, *, is_growing=True):
    """The bytes of the database and the WAL of another store, while that is in use.

    If it is not growing, all that was written since it was opened is two bytes of a draft.
    """
    folder.mkdir()
    path = folder / "foreign.db"

    async def made():
        async with open_store(f"sqlite:{path}", durability="fast") as store:
            for number in range(20):
                record = Record(key=f"foreign {number}")
                last = await store.tenant("").create(record, [Message.user(f"foreign {SECRET}")])
            if is_growing:
                return path.read_bytes(), beside(path, "-wal").read_bytes()
            lease = await store.tenant("").begin(last.id, "me", HOUR, {})
        async with open_store(f"sqlite:{path}", durability="fast") as store:
            await store.tenant("").journal(lease, "ab")
            return path.read_bytes(), beside(path, "-wal").read_bytes()

    return run(made())


def foreign_program(folder, mode):
    """The same of another program's database; or its journal, in the middle of a transaction."""
    folder.mkdir()
    path = folder / "program.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"PRAGMA journal_mode={mode}")
        db.execute("CREATE TABLE notes(a)")
        db.executemany("INSERT INTO notes VALUES(?)", [("x" * 3_000,)] * 200)
        db.execute("PRAGMA cache_size=5")
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE notes SET a = 'y' || a")
        log = Path(f"{path}-{'wal' if mode == 'WAL' else 'journal'}")
        found = path.read_bytes(), log.read_bytes()
        db.execute("COMMIT")
    return found


def own_bytes(sandbox):
    """Every file of the store, with its bytes."""
    return {
        path.name: path.read_bytes() for path in sandbox.data.glob(f"{DATABASE}*") if path.is_file()
    }


def refused_for(sandbox, sound, suffix):
    """What is wrong when a stray lies beside the file: it has to be named, nothing may change,
    and when it is moved away everything has to be there."""
    before, outside = own_bytes(sandbox), sandbox.seen()
    stray = beside(sandbox.path, suffix)

    async def opened():
        async with sandbox.open("sqlite"):
            pass

    try:
        run(opened())
        found = ["it was opened"]
    except Exception as error:
        is_told = f"{stray.name}: " in str(error) and "move it away" in str(error)
        found = [] if outcome_of(error) == "StoreUnavailable" and is_told else [repr(error)]
    if own_bytes(sandbox) != before or sandbox.seen() != outside:
        found.append("something was changed")
    if stray.exists():
        stray.rename(sandbox.temporary / "stray")
    wrong = guarded(lambda: run(wrongs(sandbox.path, sound)))
    return found + [f"{name}: {each}" for name, each in wrong.items()]


def wal_after_a_checkpoint(folder):
    """The WAL of another store, started again from its beginning by whoever came next."""
    folder.mkdir()
    path = folder / "foreign.db"

    async def made():
        async with open_store(f"sqlite:{path}", durability="fast") as store:
            record = await store.tenant("").create(Record(key="foreign"))
            lease = await store.tenant("").begin(record.id, "me", HOUR, {})
            with store._file.locked():
                store._commits._move(store._commits._db, "PASSIVE")
            await store.tenant("").journal(lease, "ab")
            return beside(path, "-wal").read_bytes()

    return run(made())


STRAY_WALS = {
    "of a store that grew": lambda folder: foreign_store(folder)[1],
    "of a store that changed two bytes": lambda folder: foreign_store(folder, is_growing=False)[1],
    "of a store after a checkpoint": wal_after_a_checkpoint,
}


@pytest.mark.parametrize("name", STRAY_WALS, ids=lambda name: f"70-{name}".replace(" ", "-"))
@pytest.mark.parametrize("is_new", [False, True], ids=["70-used-before", "70-never-locked"])
def test_the_wal_of_another_store_is_refused_unchanged(sandbox, sound, tmp_path, name, is_new):
    """70: SQLite takes any WAL of the right name; ours carries the stamp of its file."""
    wal = STRAY_WALS[name](tmp_path / "foreign")
    sound.copy_to(sandbox.path)
    if not is_new:
        beside(sandbox.path, "-lock").touch(0o600)
    beside(sandbox.path, "-wal").write_bytes(wal)

    assert refused_for(sandbox, sound, "-wal") == []


def test_the_wal_of_the_original_is_refused_beside_a_backup(sandbox, sound, tmp_path):
    """70: who puts a backup in the place of a store may forget that its WAL lies there too."""
    wal, backup = [], tmp_path / "backup.db"
    sound.copy_to(sandbox.path)

    async def scenario():
        async with sandbox.open("sqlite") as store:
            await store.backup(backup)
            await store.tenant("").append(sound.control.id, [Message.user("later")])
            wal.append(beside(sandbox.path, "-wal").read_bytes())

    run(scenario())
    sandbox.empty()
    shutil.copy(backup, sandbox.path)
    beside(sandbox.path, "-wal").write_bytes(wal[0])

    assert refused_for(sandbox, sound, "-wal") == []


def test_the_wal_of_another_program_is_refused_unchanged(sandbox, sound, tmp_path):
    """70: it would turn our file into its own."""
    _, wal = foreign_program(tmp_path / "foreign", "WAL")
    sound.copy_to(sandbox.path)
    beside(sandbox.path, "-wal").write_bytes(wal)

    assert refused(sandbox) in ("StoreUnavailable", "Corrupt")

    assert beside(sandbox.path, "-wal").read_bytes() == wal


def test_a_wal_of_noise_changes_nothing(sandbox, sound):
    noise = random.Random(70).randbytes(100_000)
    sound.copy_to(sandbox.path)
    beside(sandbox.path, "-wal").write_bytes(noise)

    assert guarded(lambda: run(wrongs(sandbox.path, sound))) == {}


def journal_of_a_store(folder):
    """Of a copy of our own kind, in the mode that has journals, when it is about to commit."""
    path = folder / "foreign.db"
    path.write_bytes(foreign_store(folder / "made")[0])
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=DELETE")
        db.execute("BEGIN IMMEDIATE")
        db.execute("CREATE TABLE notes AS SELECT 1")  # and so the first page is in it
        db.execute("PRAGMA cache_size=1")
        db.execute("CREATE TABLE more AS SELECT zeroblob(500000)")
        journal = beside(path, "-journal").read_bytes()
        db.execute("ROLLBACK")
    return journal


STRAY_JOURNALS = {
    "of another program": lambda folder: foreign_program(folder / "made", "DELETE")[1],
    "of another store": journal_of_a_store,
    # Nothing but a header, which says that the database had one page: SQLite would cut it.
    "that cuts": lambda folder: struct.pack(">8s5I484x", JOURNAL_MAGIC, 0, 1, 1, 512, PAGE_SIZE),
    "of pages of another size": lambda folder: struct.pack(
        ">8s5I484x1032x", JOURNAL_MAGIC, 1, 1, 1, 512, 1024
    ),
}


@pytest.mark.parametrize("name", STRAY_JOURNALS, ids=lambda name: f"70-{name}".replace(" ", "-"))
def test_a_hot_journal_of_another_database_is_refused_unchanged(sandbox, sound, tmp_path, name):
    """70: SQLite plays it back into any file; one in WAL mode has none of its own."""
    (tmp_path / "foreign").mkdir()
    journal = STRAY_JOURNALS[name](tmp_path / "foreign")
    assert journal[:8] == JOURNAL_MAGIC
    sound.copy_to(sandbox.path)
    assert sandbox.path.read_bytes()[16:20] == PAGE_SIZE.to_bytes(2, "big") + b"\2\2"
    beside(sandbox.path, "-journal").write_bytes(journal)

    assert refused_for(sandbox, sound, "-journal") == []


def test_a_hot_journal_of_noise_changes_nothing(sandbox, sound):
    noise = random.Random(71).randbytes(100_000)
    sound.copy_to(sandbox.path)
    beside(sandbox.path, "-journal").write_bytes(noise)
    outcome = guarded(lambda: {"open": refused(sandbox)})["open"]

    if outcome == "opened":
        assert guarded(lambda: run(wrongs(sandbox.path, sound))) == {}
    else:
        assert outcome in ("StoreUnavailable", "Corrupt")


def test_a_transaction_of_another_program_that_was_cut_off_is_undone(sandbox, sound, tmp_path):
    """70: a hot journal that does belong to the file brings back what it was."""
    path = sound.copy_to(tmp_path / "cut.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=DELETE")
        db.execute("PRAGMA cache_size=1")
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE documents SET body = zeroblob(9000), digest = zeroblob(9000)")
        db.execute("UPDATE entries SET payload = zeroblob(9000), link = zeroblob(9000)")
        cut, journal = path.read_bytes(), beside(path, "-journal").read_bytes()
        db.execute("ROLLBACK")
    assert journal[:4] == b"\xd9\xd5\x05\xf9"
    sandbox.path.write_bytes(cut)
    sandbox.path.chmod(0o600)
    beside(sandbox.path, "-journal").write_bytes(journal)

    assert guarded(lambda: run(wrongs(sandbox.path, sound))) == {}


# --- formats: 72 ----------------------------------------------------------------------------------

VERSIONS = {
    "newer": (["PRAGMA user_version=99"], "FormatTooNew"),
    "newest": (["PRAGMA user_version=2147483647"], "FormatTooNew"),
    "negative": (["PRAGMA user_version=-1"], "Corrupt"),
    "older with newer tables": (["PRAGMA user_version=1"], "Corrupt"),
    "none with tables": (["PRAGMA user_version=0"], "Corrupt"),
    "half an index": (["DROP TABLE words"], "Corrupt"),
    "index without its state": (["DROP TABLE search"], "Corrupt"),
    "older with half an index": (["DROP TABLE words", "PRAGMA user_version=1"], "Corrupt"),
    "older with a table missing": (
        ["DROP TABLE words", "DROP TABLE search", "DROP TABLE blobs", "PRAGMA user_version=1"],
        "Corrupt",
    ),
    "another program": (["PRAGMA application_id=1"], "StoreUnavailable"),
    "nobody": (["PRAGMA application_id=0"], "StoreUnavailable"),
}


@pytest.mark.parametrize("name", VERSIONS, ids=lambda name: f"72-{name}".replace(" ", "-"))
def test_a_format_that_is_not_ours_is_refused_with_its_bytes_unchanged(sandbox, sound, name):
    """72: newer, negative, or left half-way by somebody; nothing is put beside it but the lock."""
    statements, expected = VERSIONS[name]
    sound.copy_to(sandbox.path)
    edited(sandbox.path, *statements)
    before = bytes_of(sandbox.path)

    assert refused(sandbox) == expected

    after = bytes_of(sandbox.path)
    assert after[0] == before[0]
    if expected == "FormatTooNew":
        assert after[1] == before[1]


def test_an_older_format_is_brought_up_and_loses_nothing(sandbox, sound):
    """72: version 1 had no search index; it is made, and everything is found."""
    sound.copy_to(sandbox.path)
    edited(sandbox.path, "DROP TABLE words", "DROP TABLE search", "PRAGMA user_version=1")

    assert guarded(lambda: run(wrongs(sandbox.path, sound))) == {}


# --- while the store is open: 74 ------------------------------------------------------------------


async def answers_meanwhile(store, sound, *, is_erasing):
    """What is asked while something is wrong: right, or an error of ours."""
    tenant, truth = store.tenant(""), sound.control
    asking = {
        "load": (lambda: tenant.load("control"), lambda found: found.key == "control"),
        "read": (lambda: tenant.read(truth.id), lambda rows: rows[:3] == truth.read["main"]),
        "list": (
            lambda: all_of(tenant),
            lambda found: {each.key for each in found} >= {"control", "victim"},
        ),
        "search": (lambda: tenant.search("controlword"), lambda page: len(page.items) == 1),
        "verify": (lambda: tenant.verify(), None),
        "update": (lambda: tenant.update(truth.id, {"counters": {"n": 1}}), None),
        "begin": (lambda: tenant.begin(sound.victim.id, "me", HOUR, {}), None),
        "erase": (lambda: tenant.erase(sound.victim.id, [1]), None),
        "append": (lambda: tenant.append(truth.id, [Message.user("meanwhile")]), None),
    }
    if not is_erasing:
        del asking["erase"]
    found = {name: await asked_for(ask, right) for name, (ask, right) in asking.items()}
    problems = await asked_for(lambda: asyncio.to_thread(store.problems))
    return found | {"problems": problems}


async def wrongs_while_open(sandbox, sound, disturbance, *, is_erasing=True):
    """Disturb a store that is in use, ask it, undo that, and ask again; all that went wrong."""
    async with sandbox.open("sqlite") as store:
        await answers_before(store, sound)
        with disturbance(sandbox):
            meanwhile = await answers_meanwhile(store, sound, is_erasing=is_erasing)
        found = {
            f"meanwhile: {name}": each
            for name, each in meanwhile.items()
            if each != "right" and not is_refusal(each)
        }
        tenant, truth = store.tenant(""), sound.control
        count = len(truth.read["main"]) + (meanwhile["append"] == "right")
        afterwards = {
            "load": await asked_for(lambda: tenant.load("control")),
            "read": await asked_for(
                lambda: tenant.read(truth.id),
                lambda rows: rows[:3] == truth.read["main"] and len(rows) == count,
            ),
            "append": await asked_for(
                lambda: tenant.append(truth.id, [Message.user("afterwards")]),
                lambda done: done.messages == count,  # one of the entries is a mark
            ),
            "list": await asked_for(
                lambda: all_of(tenant),
                lambda found: {e.key for e in found} == {"control", "victim"},
            ),
            "search": await asked_for(
                lambda: tenant.search("afterwards"), lambda page: len(page.items) == 1
            ),
            "verify": await asked_for(lambda: tenant.verify(), lambda v: v.problems == ()),
            "begin": await asked_for(
                lambda: tenant.begin(truth.id, "me", HOUR, {}), lambda lease: lease.token == 1
            ),
        }
        found |= {f"afterwards: {n}": each for n, each in afterwards.items() if each != "right"}
    return found


async def answers_before(store, sound):
    """Have connections that read, and one that writes."""
    tenant = store.tenant("")
    await asyncio.gather(*[tenant.read(sound.control.id) for _ in range(4)])
    await tenant.load("victim")
    await tenant.search("controlword")


@contextmanager
def overwritten(sandbox, change):
    """Other bytes in the same file, and then the old ones again."""
    whole = sandbox.path.read_bytes()
    with sandbox.path.open("r+b") as file:
        change(file, len(whole))
    yield
    with sandbox.path.open("r+b") as file:
        file.write(whole)
        file.truncate(len(whole))


@contextmanager
def moved(path, put=None):
    """Something at another place for a while, and whatever `put` makes in its place."""
    aside = path.with_name(f"{path.name} aside")
    path.rename(aside)
    if put is not None:
        put(path)
    yield
    if os.path.lexists(path):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    aside.rename(path)


@contextmanager
def unwritable(paths):
    """Files or folders that cannot be changed. Modes do not stop root, an attribute does."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    modes = {path: path.stat().st_mode for path in paths}
    for path in paths:
        if is_root:
            done = subprocess.run(["chattr", "+i", path], capture_output=True, check=False)
            if done.returncode:
                pytest.skip("root, on a file system without attributes")
        else:
            path.chmod(0o400 if path.is_file() else 0o500)
    try:
        yield
    finally:
        for path, mode in modes.items():
            if is_root:
                subprocess.run(["chattr", "-i", path], capture_output=True, check=False)
            else:
                path.chmod(mode)


def own_files(sandbox):
    """The files of the store that are written to; -shm is mapped, and must stay as it is."""
    return [
        path
        for path in sandbox.data.glob(f"{DATABASE}*")
        if path.is_file() and not path.name.endswith("-shm")
    ]


IN_PLACE = {
    "truncated to nothing": lambda file, size: file.truncate(0),
    "truncated to half": lambda file, size: file.truncate(size // 2),
    "truncated to 100 bytes": lambda file, size: file.truncate(100),
    "zeros": lambda file, size: file.write(bytes(size)),
    "noise": lambda file, size: file.write(random.Random(74).randbytes(size)),
    "header changed": lambda file, size: file.write(b"nonsense" * 12),
}
DISTURBANCES = {
    "deleted": lambda s: moved(s.path),
    "replaced by nothing": lambda s: moved(s.path, lambda path: path.touch()),
    "replaced by a folder": lambda s: moved(s.path, lambda path: path.mkdir()),
    "replaced by a link": lambda s: moved(s.path, lambda path: path.symlink_to(s.root / "canary")),
    "replaced by a copy": lambda s: moved(
        s.path, lambda path: shutil.copy(path.with_name(f"{path.name} aside"), path)
    ),
    "folder removed": lambda s: moved(s.data),
    "folder replaced": lambda s: moved(s.data, lambda path: path.mkdir()),
    "lock removed": lambda s: moved(beside(s.path, "-lock")),
    "lock a folder": lambda s: moved(beside(s.path, "-lock"), lambda path: path.mkdir()),
    "lock a link": lambda s: moved(
        beside(s.path, "-lock"), lambda path: path.symlink_to(s.root / "canary")
    ),
    "read-only": lambda s: unwritable(own_files(s)),
    "folder read-only": lambda s: unwritable([s.data]),
    "nothing at all": lambda s: nullcontext(),
}


@posix_only
@pytest.mark.parametrize("name", IN_PLACE, ids=lambda name: f"74-{name}".replace(" ", "-"))
def test_an_open_store_survives_what_is_written_to_its_file(sandbox, sound, name):
    """74: other bytes for a while, and then the old ones again."""
    sound.copy_to(sandbox.path)

    def disturbed():
        # Erasing moves the log into the file, and the old bytes would then be too old.
        return run(
            wrongs_while_open(
                sandbox, sound, lambda s: overwritten(s, IN_PLACE[name]), is_erasing=False
            )
        )

    assert guarded(disturbed, seconds=20) == {}


@posix_only
@pytest.mark.parametrize("name", DISTURBANCES, ids=lambda name: f"74-{name}".replace(" ", "-"))
def test_an_open_store_survives_what_is_done_to_its_file(sandbox, sound, name):
    """74: meanwhile an error of ours or the truth; afterwards it works, without reopening."""
    before = sandbox.seen()
    sound.copy_to(sandbox.path)

    found = guarded(lambda: run(wrongs_while_open(sandbox, sound, DISTURBANCES[name])), seconds=20)

    assert found == {}
    assert sandbox.seen() == before


@posix_only
def test_a_file_that_stays_deleted_is_told_with_the_way_out(sandbox, sound):
    """74: nothing is made anew behind the caller's back; opening the path again does that."""

    async def scenario():
        async with sandbox.open("sqlite") as store:
            sandbox.path.unlink()
            for ask in (store.tenant("").load("control"), store.tenant("").create(Record(key="k"))):
                with pytest.raises(HoldfastError) as caught:
                    await ask
                assert outcome_of(caught.value) == "StoreUnavailable"
                assert "replaced or deleted" in str(caught.value)
            assert not sandbox.path.exists()
        async with sandbox.open("sqlite") as store:
            assert (await store.tenant("").list()).items == ()

    sound.copy_to(sandbox.path)
    run(scenario())


@posix_only
def test_an_append_after_the_wal_was_deleted_is_refused_or_kept(sandbox, sound):
    """74: what was acknowledged into a file that no longer has a name is lost with the process."""
    sound.copy_to(sandbox.path)
    copy = sandbox.root / "copy.db"

    async def scenario():
        async with sandbox.open("sqlite") as store:
            tenant = store.tenant("")
            await tenant.append(sound.control.id, [Message.user("before")])
            beside(sandbox.path, "-wal").unlink()
            try:
                done = await tenant.append(sound.control.id, [Message.user("after")])
            except HoldfastError as error:
                return outcome_of(error)
            for suffix in ("", "-wal"):  # as if the process were killed now
                with suppress(FileNotFoundError):
                    shutil.copy(f"{sandbox.path}{suffix}", f"{copy}{suffix}")
        async with open_store(f"sqlite:{copy}") as store:
            left = (await store.tenant("").load("control")).seq
            return "kept" if left == done.last else f"{done.last - left} appends are lost"

    assert run(scenario()) in ("kept", "StoreUnavailable", "Corrupt")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_closed_store_makes_no_files_when_the_process_forks(sandbox, sound):
    """74: what was closed is let go of; its folder may be gone, or another's."""
    sound.copy_to(sandbox.path)

    async def scenario():
        store = await sandbox.open("sqlite")
        await store.close()
        return store

    store = run(scenario())
    sandbox.empty()

    assert guarded(lambda: {"it": "ran"}) == {"it": "ran"}

    assert bytes_of(sandbox.path) == ("nothing", [])
    del store


# --- negative controls ----------------------------------------------------------------------------


class Fake:
    """A store that is the memory store but for what a subclass gets wrong."""

    def __init__(self, store):
        self._real = store

    def __getattr__(self, name):
        return getattr(self._real, name)

    def tenant(self, name=""):
        return self.Tenant(self._real.tenant(name))

    class Tenant:
        def __init__(self, real):
            self._real = real

        def __getattr__(self, name):
            return getattr(self._real, name)


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


class Hiding(Fake):
    """Damage is passed over."""

    class Tenant(Fake.Tenant):
        async def read(self, *rest, **more):
            return (await self._real.read(*rest, **more))[1:]

        async def load(self, key):
            return (await self._real.load(key)).replace(agent="nobody")

        async def search(self, *rest, **more):
            raise sqlite3.DatabaseError("malformed")

        async def append(self, id, entries, **more):
            raise errors.Corrupt("session", "damaged")


def test_control_wrong_answers_of_a_damaged_file_are_noticed(sandbox, sound):
    sound.copy_to(sandbox.path)

    async def scenario():
        async with sandbox.open("sqlite") as store:
            fake = Hiding(store)
            return (
                await wrongs_of_victim(fake, sound)
                | await wrongs_of_control(fake, sound)
                | await wrongs_of_writing(fake, sound)
            )

    found = run(scenario())

    assert found["load"].startswith("wrong") and found["read main"].startswith("wrong")
    assert found["search"] == found["control: search"] == "raw DatabaseError"
    assert found["control: append"] == "Corrupt"


def without_looking(*_):
    """In place of what looks at a WAL or a journal: it never finds anything."""
    return False


STRAYS = [
    *(("-wal", name, make) for name, make in STRAY_WALS.items()),
    *(("-journal", name, make) for name, make in STRAY_JOURNALS.items()),
]


@pytest.mark.parametrize(("suffix", "name", "make"), STRAYS, ids=lambda each: str(each)[:40])
def test_control_a_store_that_takes_any_wal_or_journal_is_noticed(
    sandbox, sound, tmp_path, monkeypatch, suffix, name, make
):
    monkeypatch.setattr(header, "is_another", without_looking)
    monkeypatch.setattr(file, "check_journal", without_looking)
    (tmp_path / "foreign").mkdir()
    stray = make(tmp_path / "foreign" / "made" if suffix == "-wal" else tmp_path / "foreign")
    sound.copy_to(sandbox.path)
    beside(sandbox.path, suffix).write_bytes(stray)

    assert refused_for(sandbox, sound, suffix)


@pytest.mark.parametrize("name", [name for name in STRAY_WALS if "grew" not in name])
def test_control_a_wal_that_was_started_without_its_first_page_is_noticed(
    sandbox, sound, tmp_path, monkeypatch, name
):
    monkeypatch.setattr(commits, "write_first_page", without_looking)
    sound.copy_to(sandbox.path)
    beside(sandbox.path, "-wal").write_bytes(STRAY_WALS[name](tmp_path / "foreign"))

    assert refused_for(sandbox, sound, "-wal")


def test_control_a_sound_file_has_no_wrongs(sandbox, sound):
    sound.copy_to(sandbox.path)

    assert guarded(lambda: run(wrongs(sandbox.path, sound))) == {}


def test_control_a_poison_is_really_in_the_file(sandbox, sound):
    assert poisoned(sandbox.path, sound, "entries", "payload", PICKLE)

    with closing(sqlite3.connect(sandbox.path)) as db:
        (count,) = db.execute(
            "SELECT count(*) FROM entries WHERE payload = ?", (PICKLE,)
        ).fetchone()
        text = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'entries'").fetchone()

    assert count == 1
    assert text == (sound.schema["entries"],)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_control_what_hangs_or_dies_is_noticed():
    assert guarded(lambda: select.select([], [], [], 30), seconds=0.2) == {"it": "hangs"}
    assert guarded(lambda: os.kill(os.getpid(), signal.SIGKILL)) == {"it": "died"}
    assert guarded(lambda: {"a": 1}) == {"a": 1}


def test_control_a_changed_file_is_noticed(sandbox, sound):
    before = sound.copy_to(sandbox.path) and bytes_of(sandbox.path)
    edited(sandbox.path, "PRAGMA user_version=1")

    assert bytes_of(sandbox.path) != before


class Forgetful(Fake):
    """After an error nothing is remembered, and errors are those of the system."""

    class Tenant(Fake.Tenant):
        async def load(self, key):
            raise OSError(5, "Input/output error")

        async def append(self, id, entries, **more):
            return await self._real.append(id, [], **more)


def test_control_a_store_that_does_not_recover_is_noticed(sandbox, sound, monkeypatch):
    sound.copy_to(sandbox.path)
    real = sandbox.open

    @asynccontextmanager
    async def wrong(kind):
        async with real(kind) as store:
            yield Forgetful(store)

    monkeypatch.setattr(sandbox, "open", wrong)
    monkeypatch.setitem(globals(), "answers_before", lambda store, sound: asyncio.sleep(0))

    found = run(wrongs_while_open(sandbox, sound, lambda sandbox: nullcontext()))

    assert found["meanwhile: load"] == found["afterwards: load"] == "raw OSError"
    assert found["afterwards: append"].startswith("wrong")


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

    assert missing_numbers(tables, {*TESTS_OF_THEIR_OWN, *ELSEWHERE}) == set()
    assert {*ELSEWHERE, *ALSO, *TESTS_OF_THEIR_OWN} <= MINE
    for names in TESTS_OF_THEIR_OWN.values():
        for name in names.split(", "):
            assert any(f"test_{name}" in each for each in globals()), name


def test_control_a_number_that_is_left_out_is_noticed():
    left = [case for case in TEXTS if case.number != 27]

    assert missing_numbers(
        (left, VALUES, NOT_TEXT, MESSAGES, LIMITS_TRIED), TESTS_OF_THEIR_OWN
    ) == {
        27,
        73,
    }
