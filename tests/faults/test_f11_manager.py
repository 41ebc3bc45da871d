"""F11 for the manager: when `erase` has returned, nothing of a session is in any file of the store.

A canary goes in by every way a program has: what is said, by whom, thinking, calls, results, what a
failed turn was told, partial output, titles, settings, tools, folds, branches, children. The raw
bytes of all files are searched, while the store is open and when it is closed.
"""

import asyncio
from datetime import timedelta

import pytest

import holdfast
from bad_inputs import run
from faults.test_f11_erase import canary, hits
from faults.test_postgresql_rows import hits as rows_with
from faults.test_postgresql_rows import swept
from faults.tier import need, pick
from holdfast import Message, Settings, Tool
from holdfast.errors import Overloaded
from holdfast.parts import File, Text, Thinking
from holdfast.testing import FakeProvider
from holdfast.testing.fake_provider import Halt, calls
from holdfast.testing.faults import forks
from postgres_server import name_of, server

COUNT = pick(1, 20)  # sessions
LONG = " and so on" * 20_000


@pytest.fixture
def folder(fast_path):
    (fast_path / "store").mkdir()
    return fast_path / "store"


@pytest.fixture(params=["sqlite", "jsonl"])
def url(request, folder):
    return {"sqlite": f"sqlite:{folder}/store.db", "jsonl": f"jsonl:{folder}/sessions"}[
        request.param
    ]


def model(word):
    """What a model may say, and how it may fail."""
    thought = Thinking(text=f"thinking of {word}", signature=f"sig{word}")
    return FakeProvider(
        calls("look", f"looking for {word}", where=word),
        Message.assistant([thought, Text(f"it is {word}")]),
        f"long {word} {LONG}",
        Halt(f"half of {word} {word}", Overloaded(f"no {word}"), after=2),
        "other",
        f"partial {word} {word} {word}",
    )


def look(word):
    async def look(**_):
        return f"found {word}"

    return Tool("look", f"Looks for {word}.", {"type": "object"}, look)


async def filled(sessions, key, word):
    """A session with the canary in all that a session can hold."""
    session = await sessions.get_or_create(
        key,
        agent=f"agent {word}",
        metadata={"title": f"about {word}"},
        settings=Settings(system=f"You know {word}."),
        model=model(word),
        tools=[look(word)],
    )
    await session.send(f"what is {word}?", once=f"once {word}")
    await session.send(
        Message.user(
            [Text("see"), File(data=word.encode() * 50, media_type="text/plain", name=word)]
        )
    )
    with pytest.raises(Overloaded):
        await session.send(f"again {word}")
    await session.append(Message.user(f"beside {word}", author=word, extra={"note": word}))
    await session.fold(0, 2, Message.user(f"summary of {word}"), why=word)
    await session.branch_at(1, f"branch {word}")
    await session.append(Message.user(f"on a branch {word}"))
    child = await session.child("scout", inherit=2)
    await child.session.append(Message.user(f"child {word}"))
    grandchild = await child.session.child("scout")
    await grandchild.session.append(Message.user(f"grandchild {word}"))
    await sessions.search(word)  # what was said is in the index now
    return session


async def neighbours(sessions, count):
    for number in range(count):
        session = await sessions.get_or_create(f"other:{number}", metadata={"title": "x" * 300})
        await session.append(Message.user("stays " * 50))


async def erased(url, places, erase=holdfast.SessionManager.erase, count=None):
    """Where the canary is after each erase of some sessions, others between them."""
    words = [canary(number) for number in range(count or COUNT)]
    count = len(words)
    found = []
    async with holdfast.open(url, expire_every=None) as sessions:
        for number, word in enumerate(words):
            await neighbours(sessions, number + 1)
            await filled(sessions, f"chat:{number}", word)
        assert await places(words)  # it would be found
        for number, word in enumerate(words):
            receipt = await erase(sessions, f"chat:{number}")
            assert not isinstance(receipt, holdfast.manager.Erased) or len(receipt.keys) == 3
            found += await places([word])
            found += [each.key for each in (await sessions.search(word)).items]
        left = [each.key for each in (await sessions.list()).items]
        assert not any(key.startswith("chat:") for key in left) or found
        assert len([key for key in left if key.startswith("other:")]) == count
        found += (await sessions._tenant.verify()).problems
    return found + await places(words)


def in_folder(folder):
    async def places(words):
        return await asyncio.to_thread(hits, folder, words)

    return places


def test_an_erased_session_is_in_no_file(url, folder):
    """With its children and theirs; and while the store is open."""
    assert run(erased(url, in_folder(folder))) == []


def test_an_erased_session_is_in_no_table_after_vacuum(fast_path):
    """PostgreSQL: no reader sees it from then on, and no row holds it once the tables are written
    anew, as docs/stores.md says."""
    name = name_of(fast_path)
    url = server().database(name)
    database = url.rpartition("/")[2]

    async def places(words):
        await swept(database)
        return [table for word in words for table in await rows_with(database, word)]

    try:
        if server().is_ours:  # on a server of somebody else's, nobody reads its files
            assert run(erased(url, places, count=1)) == []
    finally:
        server().give_back(name)


@pytest.mark.parametrize("what", ["message", "turn", "clear"])
def test_what_a_session_erases_is_in_no_file(url, folder, what):
    """A message, a turn, the conversation: with what was made of it."""
    word = canary(41)

    async def main():
        async with holdfast.open(url, model=FakeProvider(f"it is {word}")) as sessions:
            session = await sessions.get_or_create("a")
            await session.append(Message.user("first"), Message.assistant("stays"))
            if what == "turn":
                await session.send(f"what is {word}?")
            else:
                await session.append(Message.user(f"beside {word}"))
            await session.fold(1, 3, Message.user(f"summary of {word}"))
            await sessions.search(word)
            assert hits(folder, [word])
            if what == "clear":
                await session.clear()
            else:
                await session.erase(2 if what == "turn" else session.messages[2])
            assert hits(folder, [word]) == []
            assert (await sessions.search(word)).items == ()
            return word in repr([*session.messages, *session.folds])

    assert run(main()) is False
    assert hits(folder, [word]) == []


def test_readers_elsewhere_keep_no_erased_bytes(programs, folder):
    """Another process that has the file open, and reads all the time, is no excuse; title too."""
    need(forks.missing())
    url, word = f"sqlite:{folder}/store.db", canary(5)

    async def main():
        async with holdfast.open(url, expire_every=None) as sessions:
            await filled(sessions, "a", word)
            run = programs("faults.subjects:look_for_ever").start(str(folder / "store.db"))
            await asyncio.sleep(0.2)
            try:
                await sessions.erase("a")
                return await asyncio.to_thread(hits, folder, [word])
            finally:
                run.kill()
                run.wait()

    assert asyncio.run(main()) == []


# Controls


async def without_children(sessions, key):
    """An erase that knows of the named session alone."""
    record = await sessions._tenant.load(key)
    await sessions._tenant.clear(record.id)
    await sessions._tenant.delete(record.id)


async def expired(sessions, key):
    """What is only marked is still there."""
    session = await sessions.get(key)
    await session.update(ttl=timedelta(microseconds=1))
    await sessions.expire()


@pytest.mark.parametrize("erase", [without_children, expired], ids=lambda erase: erase.__name__)
def test_an_erase_that_forgets_something_is_caught(url, folder, erase):
    """Controls."""
    assert run(erased(url, in_folder(folder), erase)) != []
