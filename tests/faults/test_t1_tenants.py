"""T1: what is another tenant's answers exactly as what nobody has.

Every public operation of a manager, and those of a session that take a key, are asked for a key of
another tenant's and for one that there is not. Both times the words are the same, nothing of the
other tenant's is in them, and nothing of it changes.
"""

import inspect
import re
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from bad_inputs import run
from faults.test_f11_erase import canary
from holdfast import Message
from holdfast.errors import InvalidInput, SessionNotFound
from holdfast.manager import SessionManager
from holdfast.retention import Retention
from holdfast.stores import open_store
from postgres_server import name_of, server

HIDDEN, THEIRS, NOBODYS = canary(1), "telegram:1234", "telegram:5678"
CHANGES = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d{4}-\d\d-\d\d[T ][\d:.+]+|datetime\([^)]*\)")


@pytest.fixture(params=["memory", "jsonl", "sqlite", "postgresql"])
def url(request, fast_path):
    if request.param == "postgresql":
        name = name_of(fast_path)
        yield server().database(name)
        server().give_back(name)
        return
    yield {
        "memory": "memory:",
        "jsonl": f"jsonl:{fast_path}/sessions",
        "sqlite": f"sqlite:{fast_path}/store.db",
    }[request.param]


async def said(session):
    """All that a session tells."""
    return (
        *(session.key, session.agent, session.settings, session.metadata, session.count),
        *(session.messages, session.draft, session.branches, session.folds, session.ttl),
        await session.read(),
        await session.turns(),
    )


async def got(session):
    return await said(await session)


async def forked(sessions, key):
    """The same again: what was made has this key alone."""
    return await said(await (await sessions.get("mine")).fork(key))


async def peeked(sessions, key):
    peek = await sessions.peek(key)
    return peek.record, await peek.turns()


async def restored(sessions, key):
    """What is put under this key is there, whoever else has one."""
    return await sessions.restore(await sessions.export("mine"), key=key)


OPERATIONS = {
    "get": lambda s, key: got(s.get(key)),
    "get everything": lambda s, key: got(s.get(key, load="all")),
    "get_or_create": lambda s, key: got(s.get_or_create(key)),
    "get_or_create with more": lambda s, key: got(
        s.get_or_create(key, agent="a", metadata={"a": 1}, ttl=timedelta(days=1))
    ),
    "invalidate": lambda s, key: plainly(s.invalidate(key)),
    "list": lambda s, key: s.list(),
    "list of an agent": lambda s, key: s.list(agent="their agent"),
    "list by metadata": lambda s, key: s.list(metadata={"of": key}),
    "search": lambda s, key: s.search(HIDDEN),
    "search in one": lambda s, key: s.search(HIDDEN, key=key),
    "delete": lambda s, key: s.delete(key),
    "erase": lambda s, key: s.erase(key),
    "expire": lambda s, key: s.expire(),
    "retain": lambda s, key: s.retain(
        Retention(age=timedelta(microseconds=1), agent="their agent")
    ),
    "retain by metadata": lambda s, key: s.retain(Retention(count=0, metadata={"of": key})),
    "copy": lambda s, key: copied(s, key),
    "fork": forked,
    "peek": lambda s, key: peeked(s, key),
    "export": lambda s, key: s.export(key),
    "restore": lambda s, key: restored(s, key),
    "verify": lambda s, key: s.verify(),
    "verify one": lambda s, key: s.verify(key),
}
WHOLE = {"backup", "close", "index", "places"}  # of the whole store: who holds it holds all tenants


async def plainly(value):
    return value


async def copied(sessions, key):
    """What arrived in another store, and what was told of it."""
    async with open_store("memory:") as target:
        heard = []
        done = await sessions.copy(target, key=key, on_progress=heard.append)
        return (
            done.sessions,
            done.entries,
            [each.key for each in (await target.tenant("mine").list()).items],
            await target.tenants(),
        )


def test_every_operation_of_a_manager_is_asked():
    """A new one has to be put into this row."""
    there = {
        name
        for name, _ in inspect.getmembers(SessionManager, inspect.isfunction)
        if not name.startswith("_")
    }

    assert there - WHOLE <= {name.split(" ")[0] for name in OPERATIONS}


async def outcome(sessions, operation, key):
    """What came of it, in words, without the key, ids and times."""
    try:
        found = f"returned {await operation(sessions, key)!r}"
    except Exception as error:
        found = f"raised {type(error).__name__}{error.args!r}: {error}"
    return CHANGES.sub("*", found.replace(key, "KEY"))


async def state(sessions):
    """All of a tenant, to the byte."""
    found = []
    for each in (await sessions.list(limit=500)).items:
        part = await sessions._tenant.export(each.id)
        found.append((each, part))
    return repr(sorted(found, key=repr))


async def compared(mine, theirs):
    """Every operation for both keys; what is wrong with it, each time from the same beginning."""
    await filled(theirs)
    before, wrong = await state(theirs), []
    for name, operation in OPERATIONS.items():
        answers = []
        for key in (THEIRS, NOBODYS):
            await emptied(mine)
            answers.append(await outcome(mine, operation, key))
            if HIDDEN in answers[-1].replace(f"'{HIDDEN}'", "") or "their" in answers[-1]:
                wrong.append(f"{name} tells of them: {answers[-1]}")
        if answers[0] != answers[1]:
            wrong.append(f"{name}: {answers[0]}, and not {answers[1]}")
        if await state(theirs) != before:
            wrong.append(f"{name} has changed what is theirs")
            return wrong
    return wrong


async def filled(sessions):
    session = await sessions.get_or_create(
        THEIRS, agent="their agent", metadata={"of": THEIRS, "title": f"their {HIDDEN}"}
    )
    await session.append(Message.user(f"their {HIDDEN}"), Message.assistant("their answer"))
    child = await session.child("their scout")
    await child.session.append(Message.user(f"their {HIDDEN}"))
    await sessions.search(HIDDEN)


async def emptied(sessions):
    """One session, with nothing in common with theirs."""
    await sessions.retain(Retention(count=0))
    session = await sessions.get_or_create("mine")
    await session.append(Message.user("my own"))


async def matrix(url, wrap=None):
    async with two(url) as (mine, theirs):
        if wrap is not None:
            wrap(mine, theirs)
        return await compared(mine, theirs)


def test_what_is_anothers_is_as_if_it_were_not_there(url):
    """Byte by byte the same answer, whatever is asked."""
    assert run(matrix(url)) == []


@asynccontextmanager
async def two(url):
    """Managers of two tenants on one store: mine, and theirs."""
    async with (
        open_store(url) as store,
        SessionManager(store, "theirs", expire_every=None) as theirs,
        SessionManager(store, "mine", expire_every=None) as mine,
    ):
        yield mine, theirs


@pytest.mark.parametrize("pages", ["list", "search"])
def test_pages_of_another_tenant_open_nothing(url, pages):
    """A place in their list is refused, or leads to what is mine."""
    asked = () if pages == "list" else (HIDDEN,)

    async def main():
        async with two(url) as (mine, theirs):
            for n in range(3):
                await (await theirs.get_or_create(f"their:{n}")).append(Message.user(HIDDEN))
            await emptied(mine)
            page = await getattr(theirs, pages)(*asked, limit=1)
            assert page.next is not None
            try:
                return repr(await getattr(mine, pages)(*asked, page=page.next))
            except InvalidInput as refused:
                return str(refused).replace(page.next, "PAGE")

    found = run(main())
    assert "their" not in found and HIDDEN not in found


def test_one_key_in_two_managers_is_two_objects(url):
    """Also in one process, on one store, from two caches."""

    async def main():
        async with two(url) as (mine, theirs):
            a, b = await theirs.get_or_create("a"), await mine.get_or_create("a")
            await a.append(Message.user(HIDDEN))
            await b.refresh()
            assert a is not b and a.id != b.id and b.count == 0

    run(main())


# Controls


def sharing(mine, _theirs):
    """A manager that forgets whose sessions it was opened for."""
    mine._tenant = mine._workshop.tenant = mine._store.tenant("theirs")


def telling(mine, theirs):
    """A manager that says that there is something that one may not have."""
    load = mine._tenant.load

    async def load_first(key, **how):
        try:
            return await load(key, **how)
        except SessionNotFound:
            await theirs._tenant.load(key)
            raise PermissionError("this session is not yours") from None

    mine._tenant.load = load_first


def caching(mine, theirs):
    """A manager whose cache knows keys alone."""
    load = mine._load

    async def load_from_cache(key):
        try:
            return await load(key)
        except SessionNotFound:
            return await theirs.get(key)

    mine._load = load_from_cache


@pytest.mark.parametrize("wrap", [sharing, telling, caching], ids=lambda wrap: wrap.__name__)
def test_a_manager_that_lets_something_through_is_caught(url, wrap):
    """Controls."""
    assert run(matrix(url, wrap)) != []
