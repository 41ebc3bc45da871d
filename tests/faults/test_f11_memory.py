"""F11 for memories: what was erased is in no file of a memory, nor in the store beside it.

A model repeats the canary in all that it keeps: MEMORY.md, again and again in other words, so that
there are earlier versions; HISTORY.md; what sessions are shown. The raw bytes of all files are
searched, while everything is open and when it is closed.
"""

from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from bad_inputs import run
from faults.test_f11_erase import canary, hits
from faults.tier import pick
from holdfast import Message
from holdfast.consolidation.leaving import Leaving
from holdfast.errors import Overloaded
from holdfast.retention import Retention
from holdfast.testing import FakeProvider
from memories import later, remembering, saves

SCOPES = pytest.mark.parametrize("scope", ["session", "tenant", "workspace"])
HOWS = pytest.mark.parametrize(
    "how", ["message", "turn", "clear", "delete", "erase", "expire", "retain", "child", "replace"]
)
TTL = timedelta(days=1)


@pytest.fixture
def folder(fast_path):
    (fast_path / "all").mkdir()
    return fast_path / "all"


async def kept(memory, keeper, session, word, times):
    """Summarised so many times, each in other words; once by nobody, and then as it is."""
    for number in range(times):
        await session.append(Message.user(f"{word} says {number}"))
        facts = memory.text(session) + f"- {word} is known {number}\n"
        keeper.add(saves(f"[2026-02-01 12:00] {word} said {number}.", facts))
        await memory.consolidate(session, is_all=True)
    await session.append(Message.user(f"{word} says more"))
    keeper.add(*[Overloaded("busy")] * 2)
    for _ in range(2):
        with suppress(Overloaded):
            await memory.consolidate(session, is_all=True)


async def erased(folder, scope, how):
    """Where the canary is behind it, and whether what others have said is there."""
    word, other_word = canary(7), canary(8)
    options = {"scope": scope, "failures_max": 2}
    keeper = FakeProvider(name="fake:keeper")
    url = f"sqlite:{folder}/store.db"
    chat = FakeProvider(*["Yes."] * 40)
    more = {"keeper": keeper, "options": options, "chat": chat, "expire_every": None}
    async with remembering(url, folder, **more) as (sessions, memory, _):
        other = await sessions.get_or_create("other")
        await kept(memory, keeper, other, other_word, 2)
        home = await sessions.get_or_create("home")
        session = await sessions.get_or_create("chat", ttl=TTL)
        child = await home.child("scout")
        if how == "child":
            session = child.session
        await kept(memory, keeper, session, word, pick(2, 12))
        await session.send("Who is it?")  # it is shown what is known
        await other.send("Who is it?")
        assert {"MEMORY.md", "HISTORY.md"} <= names(hits(folder, [word]))
        await take_away(sessions, session, child, how, word)
        found = hits(folder, [word])
        is_kept = other_word in memory.text(other) and other_word in memory.history(other)
    return found + hits(folder, [word]), is_kept


def names(paths):
    return {Path(each).name for each in paths}


async def take_away(sessions, session, child, how, word):
    if how == "message":
        for message in await session.read():
            if word in (message.text or ""):
                await session.erase(message)
    elif how == "turn":
        for _ in range(len(await session.turns())):
            await session.erase(1)
    elif how == "clear":
        await session.clear()
    elif how == "delete":
        await sessions.delete("chat")
    elif how == "erase":
        assert (await sessions.erase("chat")).looked
    elif how == "retain":
        await (await sessions.get("home")).append(Message.user("later"))
        await (await sessions.get("other")).append(Message.user("later"))
        policy = Retention(count=2)
        assert "chat" in [each.key for each in (await sessions.retain(policy)).gone]
    elif how == "child":
        await child.discard("not needed")
    else:
        with later(2 * TTL):
            if how == "replace":
                await sessions.get_or_create("chat")
                return
            await sessions.expire()
        with later(11 * TTL):
            await sessions.expire()


@SCOPES
@HOWS
def test_what_was_erased_is_in_no_file_of_a_memory(folder, scope, how):
    """However it goes; and what others have said is still known."""
    found, is_kept = run(erased(folder, scope, how))

    assert found == []
    assert is_kept


# Controls


@pytest.mark.parametrize("how", ["message", "delete", "erase"])
def test_an_erase_that_forgets_the_memory_is_caught(folder, how, monkeypatch):
    """Control: the store alone is taken care of."""
    monkeypatch.setattr(Leaving, "_forget", lambda *_: None)
    found, _ = run(erased(folder, "workspace", how))

    assert {"MEMORY.md", "HISTORY.md"} <= names(found)
