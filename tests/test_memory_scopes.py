"""Whose memory it is, where its files are, and what becomes of them when something is erased."""

import asyncio
import os
from datetime import timedelta
from pathlib import Path

import pytest

from holdfast import Message
from holdfast.consolidation.places import Places
from holdfast.errors import InvalidRequest, StoreError
from holdfast.retention import Retention
from holdfast.testing import FakeProvider
from memories import KEY, Keeper, entries, facts, fast_folder, later, named, remembering, saves
from processes import Script
from sessions_for_tests import asynchronous

tmp_path = fast_folder
WORKSPACE = {"scope": "workspace"}
KEYS = ["a/b", "a_b", "a:b", "..", ".", "/", "A", "a", "é", "e\u0301", "x" * 1_000, "\0", " ", "a "]


def everything(tmp_path):
    """All bytes of all files of a memory."""
    found = [path for path in (tmp_path / "memory").rglob("*") if path.is_file()]
    return b"\n".join(os.fsencode(path) + b"\n" + path.read_bytes() for path in found)


async def kept(sessions, memory, key, first, count):
    """A session with messages that are summarised."""
    session = await sessions.get_or_create(key)
    await session.append(*named(first, count))
    await memory.consolidate(session, is_all=True)
    return session


# Places


@pytest.mark.parametrize("scope", ["session", "tenant"])
def test_no_two_names_share_a_folder_and_none_leads_out(scope, tmp_path):
    """Whatever a key or a tenant is called."""
    places = Places(tmp_path, scope)

    found = {(t, k): places.of(t, k, "id") for t in KEYS for k in KEYS}

    assert len({*map(str, found.values())}) == len(KEYS) ** (2 if scope == "session" else 1)
    for path in found.values():
        assert path.parent == tmp_path / "memory" / f"{scope}s"
        assert path.name not in (".", "..") and len(path.name.encode()) <= 255
        path.mkdir(parents=True, exist_ok=True)
    assert len({str(path).casefold() for path in found.values()}) == len({*found.values()})


def test_a_workspace_is_nanobots(tmp_path):
    """S4-47: MEMORY.md and HISTORY.md in the folder `memory`, whoever speaks."""
    assert Places(f"{tmp_path}/", "workspace").of("t", "k", "i") == tmp_path / "memory"


@asynchronous
async def test_each_session_has_its_own_memory_unless_it_is_shared_on_purpose(tmp_path):
    """One person's facts never reach another's prompt unasked."""
    for scope, sees in (("session", False), ("tenant", True), ("workspace", True)):
        folder = tmp_path / scope
        chat = FakeProvider(*["Yes."] * 2)
        async with remembering("memory:", folder, chat=chat, options={"scope": scope}) as found:
            sessions, memory, _ = found
            await kept(sessions, memory, "web:ada", 0, 3)
            bob = await sessions.get_or_create("web:bob")
            await bob.send("Who is here?")
            assert ("fact m0" in (chat.requests[0].system or "")) is sees
        chat = FakeProvider("Yes.")
        async with remembering(
            "memory:", folder, chat=chat, options={"scope": scope}, tenant="other"
        ) as (sessions, _, _):
            await (await sessions.get_or_create("web:ada")).send("Who is here?")
            assert ("fact m0" in (chat.requests[0].system or "")) is (scope == "workspace")


@asynchronous
async def test_a_session_made_anew_under_its_key_remembers_nothing(tmp_path):
    """It has the key, and another id; and what the old one had is gone."""
    async with remembering("memory:", tmp_path) as (sessions, memory, _):
        session = await kept(sessions, memory, KEY, 0, 3)
        assert b"fact m0" in everything(tmp_path)
        await sessions.delete(KEY)
        assert b"m0" not in everything(tmp_path)
        session = await sessions.get_or_create(KEY)
        assert memory.text(session) == memory.history(session) == ""


# Many at once


@asynchronous
async def test_sessions_that_share_a_memory_lose_nobodys_update(tmp_path):
    """However many summarise at once, every fact is there once."""
    async with remembering("memory:", tmp_path, options=WORKSPACE) as (sessions, memory, _):
        found = [await sessions.get_or_create(f"web:{n}") for n in range(6)]
        for n, session in enumerate(found):
            await session.append(*named(10 * n, 5))
        await asyncio.gather(*(memory.consolidate(each, is_all=True) for each in found))

        told = sorted(facts(memory, found[0]))
        assert told == sorted(f"- fact m{10 * n + k}" for n in range(6) for k in range(5))
        assert len(entries(memory, found[0])) == 6


@asynchronous
async def test_an_update_of_an_older_memory_is_made_again(tmp_path):
    """Somebody has written to MEMORY.md while the model was asked: it is asked again, with that."""
    path = tmp_path / "memory" / "MEMORY.md"

    def meanwhile(request):
        path.write_text("- by hand\n")
        return Keeper().answer(request.messages[0].text)

    async with remembering("memory:", tmp_path, meanwhile, options=WORKSPACE) as found:
        sessions, memory, keeper = found
        path.parent.mkdir(parents=True)
        path.write_text("- before\n")
        session = await kept(sessions, memory, KEY, 0, 2)

        assert len(keeper.requests) == 2
        assert facts(memory, session) == ["- by hand", "- fact m0", "- fact m1"]
        assert len(entries(memory, session)) == 1


# Erasing


@asynchronous
async def test_erasing_a_message_takes_away_what_was_made_of_it(tmp_path):
    """
    The whole entry of HISTORY.md goes; of MEMORY.md each line that was written from then on; and
    so do old versions, and what other sessions are shown of it. What was there before stays.
    """
    chat = FakeProvider(*["Yes."] * 9)
    async with remembering("memory:", tmp_path, chat=chat, options=WORKSPACE) as found:
        sessions, memory, _ = found
        first = await kept(sessions, memory, "web:first", 0, 2)
        session = await kept(sessions, memory, KEY, 10, 3)
        await kept(sessions, memory, "web:third", 20, 2)
        other = await sessions.get_or_create("web:other")
        await other.send("Hello.")
        assert "m11" in chat.requests[-1].system

        await session.erase((await session.read())[1])

        assert facts(memory, first) == ["- fact m0", "- fact m1"]
        assert entries(memory, first) == ["[2026-02-01 12:00] m0 m1", "[2026-02-01 12:00] m20 m21"]
        for gone in (b"m10", b"m11", b"m12"):
            assert gone not in everything(tmp_path)
        await other.send("And now?")
        assert chat.requests[-1].system == "## Long-term Memory\n- fact m0\n- fact m1\n"
        assert (await memory.status(session))[:2] == (3, 0)


@asynchronous
async def test_erasing_what_was_never_summarised_changes_no_memory(tmp_path):
    """Nor do lines go that were written by hand."""
    async with remembering("memory:", tmp_path, options=WORKSPACE) as (sessions, memory, _):
        session = await kept(sessions, memory, KEY, 0, 2)
        path = tmp_path / "memory" / "MEMORY.md"
        path.write_text("- by hand\n" + path.read_text())
        await session.append(*named(2, 1))
        await session.erase((await session.read())[2])
        assert facts(memory, session) == ["- by hand", "- fact m0", "- fact m1"]
        await session.erase((await session.read())[0])
        assert facts(memory, session) == ["- by hand"]
        assert entries(memory, session) == []


@asynchronous
async def test_an_entry_that_somebody_has_changed_goes_line_by_line(tmp_path):
    """HISTORY.md is a file that people edit."""
    answers = [saves("[2026-02-01 12:00] secret one\nsecret two", "- x\n")]
    async with remembering("memory:", tmp_path, *answers, options=WORKSPACE) as found:
        sessions, memory, _ = found
        session = await kept(sessions, memory, KEY, 0, 2)
        path = tmp_path / "memory" / "HISTORY.md"
        path.write_text(path.read_text().replace("secret two", "my own words\nsecret two"))
        await session.erase((await session.read())[0])

        assert path.read_text().split() == ["my", "own", "words"]


@pytest.mark.parametrize("scope", ["session", "tenant", "workspace"])
@pytest.mark.parametrize("how", ["clear", "delete", "erase", "expire", "retain", "replace"])
@asynchronous
async def test_what_takes_a_conversation_away_takes_its_memory_too(how, scope, tmp_path):
    """And leaves everybody else's; the receipt of an erase says that memory was looked at."""
    ttl = timedelta(days=1)
    async with remembering("memory:", tmp_path, options={"scope": scope}) as (sessions, memory, _):
        other = await kept(sessions, memory, "web:other", 0, 2)
        session = await sessions.get_or_create(KEY, ttl=ttl)
        await kept(sessions, memory, KEY, 10, 3)
        assert b"m10" in everything(tmp_path)
        if how == "clear":
            await session.clear()
            assert memory.text(session) == ("" if scope == "session" else memory.text(other))
        elif how == "delete":
            await sessions.delete(KEY)
        elif how == "erase":
            receipt = await sessions.erase(KEY)
            assert any("MEMORY.md" in each and str(tmp_path) in each for each in receipt.looked)
        elif how == "retain":
            await other.append(Message.user("later"))
            assert len((await sessions.retain(Retention(count=1))).gone) == 1
        else:
            await expired(sessions, how, ttl)

        for gone in (b"m10", b"m11", b"m12"):
            assert gone not in everything(tmp_path)
        assert facts(memory, other) == ["- fact m0", "- fact m1"]
        assert entries(memory, other) == ["[2026-02-01 12:00] m0 m1"]


async def expired(sessions, how, ttl):
    with later(2 * ttl):
        if how == "replace":
            await sessions.get_or_create(KEY)
            return
        assert (await sessions.expire()).marked == 1
    with later(ttl * 11):
        assert (await sessions.expire()).deleted == 1


@asynchronous
async def test_one_memory_that_is_damaged_keeps_no_other_from_expiring(tmp_path, caplog):
    """What cannot be read is told in the log; and turns go on beside it."""
    async with remembering("memory:", tmp_path) as (sessions, memory, _):
        bad = await kept(sessions, memory, "web:bad", 0, 2)
        (Path(memory.paths(bad)[0]).parent / ".holdfast" / "state.json").write_text("{")
        ttl = timedelta(days=1)
        await sessions.get_or_create(KEY, ttl=ttl)
        await kept(sessions, memory, KEY, 10, 3)
        await expired(sessions, "expire", ttl)
        assert (await bad.send("Hello.")).text == "Yes."

    assert b"m10" not in everything(tmp_path)
    assert "state.json" in caplog.text


@asynchronous
async def test_a_session_that_retention_spares_keeps_its_memory(tmp_path):
    """It was written to while it was about to go."""
    async with remembering("memory:", tmp_path, options=WORKSPACE) as (sessions, memory, _):
        session = await kept(sessions, memory, KEY, 0, 2)
        await memory.leaving.doom(session._record)
        await session.append(*named(2, 1))
        await memory.leaving.bury_all()

        assert facts(memory, session) == ["- fact m0", "- fact m1"]


@asynchronous
async def test_what_was_erased_while_the_model_read_it_is_not_kept(tmp_path):
    """What it said of it is dropped, and it is asked again about the rest."""
    opened = []

    async def meanwhile(request):
        sessions = opened[0]
        session = await sessions.get(KEY)
        await session.erase((await session.read())[0])
        return Keeper().answer(request.messages[0].text)

    async with remembering("memory:", tmp_path, meanwhile) as (sessions, memory, keeper):
        opened.append(sessions)
        session = await kept(sessions, memory, KEY, 0, 3)

        assert len(keeper.requests) == 2
        assert facts(memory, session) == ["- fact m1", "- fact m2"]
        assert b"m0" not in everything(tmp_path)


@pytest.mark.parametrize("how", ["message", "clear", "delete", "erase"])
@asynchronous
async def test_a_model_that_fails_on_what_was_removed_meanwhile_leaves_no_note_of_it(how, tmp_path):
    """Its error may repeat what it was asked; the name of the session is told to nobody either."""
    opened = []

    async def meanwhile(_):
        sessions = opened[0]
        session = await sessions.get(KEY)
        if how in ("delete", "erase"):
            await getattr(sessions, how)(KEY)
        else:
            await (session.clear() if how == "clear" else session.erase(1))
        return InvalidRequest("cannot read m0")

    async with remembering("memory:", tmp_path, meanwhile) as (sessions, memory, _):
        opened.append(sessions)
        with pytest.raises(InvalidRequest):
            await kept(sessions, memory, KEY, 0, 3)

        assert b"m0" not in everything(tmp_path) and KEY.encode() not in everything(tmp_path)


@asynchronous
async def test_what_was_read_of_a_memory_and_erased_meanwhile_is_not_kept(tmp_path):
    """Another session's model may repeat it in its entry, also where it changes no memory."""
    opened = []

    async def repeats(request):
        ada = await opened[0].get("web:ada")
        await ada.erase((await ada.read())[0])
        assert "- fact m0" in request.messages[0].text
        return saves("[2026-02-01 12:00] Bob knows of m0.", "")

    async with remembering("memory:", tmp_path, options=WORKSPACE) as (sessions, memory, keeper):
        opened.append(sessions)
        await kept(sessions, memory, "web:ada", 0, 2)
        keeper.add(repeats)
        bob = await kept(sessions, memory, "web:bob", 10, 2)

        assert entries(memory, bob) == ["[2026-02-01 12:00] m10 m11"]
        assert b"m0" not in everything(tmp_path)


@asynchronous
async def test_nothing_is_shown_to_a_session_that_was_erased_meanwhile(tmp_path, caplog):
    """A fold brings in what memory holds just when somebody else erases the session."""
    async with remembering("memory:", tmp_path, options=WORKSPACE) as (sessions, memory, _):
        await kept(sessions, memory, "web:ada", 0, 2)
        record = (await sessions.peek("web:ada")).record
        session = await kept(sessions, memory, KEY, 10, 2)
        gone = (await sessions.peek(KEY)).record
        await sessions.erase(KEY)

        assert await memory.showing.show(gone, "before") == "before"
        assert "m0" in await memory.showing.show(record, "before")
        await sessions.get_or_create(KEY)
        assert await memory.showing.show(gone, "before") == "before"
        assert session.id.encode() not in everything(tmp_path)
        assert KEY.encode() not in everything(tmp_path)


@asynchronous
async def test_a_child_that_is_discarded_leaves_nothing_in_a_memory(tmp_path):
    """Deleted with all that was said in it; what others have said stays."""
    async with remembering("memory:", tmp_path, options=WORKSPACE) as (sessions, memory, _):
        parent = await kept(sessions, memory, KEY, 0, 2)
        child = await parent.child("helper")
        await child.session.append(*named(10, 2))
        await memory.consolidate(child.session, is_all=True)
        await child.discard("not needed")

        assert facts(memory, parent) == ["- fact m0", "- fact m1"]
        assert b"m10" not in everything(tmp_path)


@pytest.mark.parametrize(("scope", "waiting"), [("session", 6), ("workspace", 2)])
@asynchronous
async def test_a_fork_begins_with_what_the_memory_has_where_they_share_one(
    scope, waiting, tmp_path
):
    """What is shared is not summarised twice, and the prompt of the fork begins the same."""
    chat = FakeProvider(*["Yes."] * 9)
    async with remembering("memory:", tmp_path, chat=chat, options={"scope": scope}) as found:
        sessions, memory, _ = found
        session = await kept(sessions, memory, KEY, 0, 2)
        await session.send("Hello.")
        await memory.consolidate(session, is_all=True)
        await session.send("And now?")
        fork = await session.fork("web:fork")
        await fork.send("Here?")
        systems = [request.system for request in chat.requests]

        assert (await memory.status(fork)).waiting == waiting + 2
        assert systems[:2] == ["## Long-term Memory\n- fact m0\n- fact m1\n"] * 2
        assert systems[2] == (None if scope == "session" else systems[1])


@asynchronous
async def test_a_conversation_that_was_cleared_while_the_model_read_it_is_not_kept(tmp_path):
    """Nothing is written of it, and the counter stays where clearing has put it."""
    opened = []

    async def meanwhile(request):
        sessions = opened[0]
        await (await sessions.get(KEY)).clear()
        return Keeper().answer(request.messages[0].text)

    async with remembering("memory:", tmp_path, meanwhile) as (sessions, memory, _):
        opened.append(sessions)
        session = await kept(sessions, memory, KEY, 0, 3)

        assert memory.text(session) == memory.history(session) == ""
        assert (await memory.status(session))[:2] == (0, 0)


@asynchronous
async def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path):
    """Somebody else's file is neither read nor written."""
    async with remembering("memory:", tmp_path, options=WORKSPACE) as (sessions, memory, _):
        (tmp_path / "memory").mkdir()
        (tmp_path / "elsewhere").write_text("secret")
        (tmp_path / "memory" / "MEMORY.md").symlink_to(tmp_path / "elsewhere")
        session = await sessions.get_or_create(KEY)
        await session.append(*named(0, 2))
        with pytest.raises(StoreError):
            await memory.consolidate(session, is_all=True)

    assert (tmp_path / "elsewhere").read_text() == "secret"


class Keeping(Script):
    """Summarises a session of its own and one that all share, when it is told to."""

    start = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from memories import named, remembering

async def main(folder, number):
    url, options = f"sqlite:{folder}/chats.db", {"scope": "workspace"}
    async with remembering(url, folder, options=options) as (sessions, memory, _):
        memory.after = lambda *_: None
        own = await sessions.get_or_create(f"web:{number}")
        shared = await sessions.get_or_create("web:shared")
        await own.append(*named(10 * number, 4))
        print("ready", flush=True)
        sys.stdin.readline()
        work = [memory.consolidate(each, is_all=True) for each in (own, shared)]
        print(*await asyncio.gather(*work), flush=True)

from pathlib import Path
"""


def test_processes_that_share_a_memory_lose_nothing_and_repeat_nothing(tmp_path):
    """S4-39: two that summarise at once, each its own session, and both the same one."""
    asyncio.run(shared_by_processes(tmp_path, is_new=True))
    body = "asyncio.run(main(Path(sys.argv[2]), int(sys.argv[3])))"
    here = Path(__file__).parent
    with Keeping(body, here, tmp_path, 1) as one, Keeping(body, here, tmp_path, 2) as two:
        assert [each.hears() for each in (one, two)] == ["ready", "ready"]
        for each in (one, two):
            each.tell()
        done = sorted([*map(int, one.ends()), *map(int, two.ends())])
    told, known = asyncio.run(shared_by_processes(tmp_path))

    assert done == [0, 4, 4, 4]
    assert len(told) == 3
    names = [f"m{first + n}" for first in (10, 20, 90) for n in range(4)]
    assert sorted(known) == sorted(f"- fact {name}" for name in names)


async def shared_by_processes(tmp_path, *, is_new=False):
    """The memory; with `is_new` there is something to be summarised first."""
    url = f"sqlite:{tmp_path}/chats.db"
    async with remembering(url, tmp_path, options=WORKSPACE) as (sessions, memory, _):
        session = await sessions.get_or_create("web:shared")
        if is_new:
            await session.append(*named(90, 4))
        return entries(memory, session), facts(memory, session)
