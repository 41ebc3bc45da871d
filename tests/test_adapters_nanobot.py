"""Nanobot's lifecycle over a store of ours: its manager's names, its /new, its store object."""

import asyncio
import gc
import json
import logging
import threading

import pytest

from holdfast import Message
from holdfast.adapters import nanobot
from holdfast.errors import InvalidInput, Overloaded, SessionNotFound, StoreUnavailable, Unsupported
from holdfast.memory import Memory
from memories import Keeper
from nanobot_rules import Private
from nanobot_rules import Session as Theirs
from sessions_for_tests import until

KEY = "telegram:12345678"


@pytest.fixture
def url(tmp_path):
    return f"sqlite:{tmp_path / 'chats.db'}"


@pytest.fixture
def opened():
    """Opens managers and stores, and closes them."""
    found = []

    def opened(make, *given, **how):
        if "data" not in how:  # what is tested here does not depend on the disk
            how["durability"] = "fast"
        found.append(make(*given, **how))
        return found[-1]

    yield opened
    for each in found:
        each.close()


@pytest.fixture
def sessions(opened, url):
    return opened(nanobot.SessionManager, url=url)


def texts(session):
    return [each["content"] for each in session.messages]


def talk(sessions, *turns, key=KEY):
    session = sessions.get_or_create(key)
    for said, answer in turns:
        session.add_message("user", said)
        session.add_message("assistant", answer)
    sessions.save(session)
    return session


def stored(sessions, key=KEY, branch=None):
    """What is in the log."""

    async def read():
        session = await sessions.sessions.get(key)
        await session.refresh()
        rows = await session._tenant.read(session.id, branch or session.branch)
        return [row.entry.text for row in rows if isinstance(row.entry, Message)]

    return sessions._store.loop.run(read())


def branches(sessions, key=KEY):
    async def read():
        session = await sessions.sessions.get(key)
        await session.refresh()
        return [each.name for each in session.branches], session.branch

    return sessions._store.loop.run(read())


# A turn


def test_a_turn_is_in_the_log_when_it_is_saved(sessions, opened, url):
    """S4-30: after the loop the user's message and the answer are added, and saved together; who
    opens the session anew has them."""
    session = sessions.get_or_create(KEY)
    session.add_message("user", "Which tea?")
    session.add_message("assistant", "Earl Grey.", tools_used=["look"])
    assert opened(nanobot.SessionManager, url=url).get_or_create(KEY).messages == []

    sessions.save(session)

    assert sessions.get_or_create(KEY) is session
    again = opened(nanobot.SessionManager, url=url).get_or_create(KEY)
    assert texts(again) == ["Which tea?", "Earl Grey."]
    assert again.messages[1]["tools_used"] == ["look"]
    assert stored(sessions) == ["Which tea?", "Earl Grey."]


def test_each_save_adds_only_what_is_new(sessions):
    """S4-30: saving the whole list again appends nothing that is there."""
    session = talk(sessions, ("a", "b"))
    sessions.save(session)

    talk(sessions, ("c", "d"))

    assert stored(sessions) == ["a", "b", "c", "d"]
    assert branches(sessions) == (["main"], "main")


def test_a_message_has_its_time_and_an_extra_wins(sessions, opened, url):
    """S4-32: role, content and timestamp, and extras merged over them."""
    session = sessions.get_or_create(KEY)
    before = session.updated_at
    session.add_message("user", "a", timestamp="2026-01-01T00:00:00", media=["x.png"])
    sessions.save(session)

    assert list(session.messages[0]) == ["role", "content", "timestamp", "media"]
    assert session.messages[0]["timestamp"] == "2026-01-01T00:00:00"
    assert session.updated_at > before
    again = opened(nanobot.SessionManager, url=url).get_or_create(KEY).messages
    assert again[0]["timestamp"] == "2026-01-01T00:00:00"
    assert again[0]["media"] == ["x.png"]


@pytest.mark.parametrize("role", ["developer", "", 3])
def test_a_role_that_there_is_not_is_refused_when_it_is_added(sessions, role):
    session = sessions.get_or_create(KEY)

    with pytest.raises(InvalidInput):
        session.add_message(role, "a")

    assert session.messages == []


def test_clearing_keeps_what_is_not_the_conversation(sessions, opened, url):
    """S4-32: messages and counter go; key, created_at and metadata stay. What was said is really
    gone, as nobody has written since."""
    session = talk(sessions, ("secret", "b"))
    session.metadata["title"] = "Tea"
    session.last_consolidated = 2
    sessions.save(session)

    session.clear()
    sessions.save(session)

    again = opened(nanobot.SessionManager, url=url).get_or_create(KEY)
    assert (again.messages, again.last_consolidated, again.metadata) == ([], 0, {"title": "Tea"})
    assert stored(sessions) == []
    assert branches(sessions) == (["main"], "main")
    talk(sessions, ("c", "d"))
    assert stored(sessions) == ["c", "d"]


def test_the_cursor_is_the_store_s_own_counter(sessions, opened, url):
    """S4-30: last_consolidated is saved with the rest; one beyond the messages is none."""
    session = talk(sessions, ("a", "b"))
    session.last_consolidated = 1
    sessions.save(session)
    assert opened(nanobot.SessionManager, url=url).get_or_create(KEY).last_consolidated == 1

    session.last_consolidated = 9
    sessions.save(session)

    assert opened(nanobot.SessionManager, url=url).get_or_create(KEY).last_consolidated == 0


def test_metadata_is_changed_name_by_name(sessions, opened, url):
    """What another process has set meanwhile is not undone; a name taken away is gone."""
    session = talk(sessions, ("a", "b"))
    session.metadata.update(title="Tea", old=1)
    sessions.save(session)
    other = opened(nanobot.SessionManager, url=url)
    theirs = other.get_or_create(KEY)
    theirs.metadata["goal"] = {"state": "met"}
    other.save(theirs)

    del session.metadata["old"]
    sessions.save(session)

    other.invalidate(KEY)
    assert other.get_or_create(KEY).metadata == {"title": "Tea", "goal": {"state": "met"}}


# Two writers


def test_what_another_process_said_meanwhile_is_kept(sessions, opened, url):
    """B46: who saves from memory has not seen it, and goes behind it."""
    mine = talk(sessions, ("a", "b"))
    other = opened(nanobot.SessionManager, url=url)
    talk(other, ("c", "d"))

    mine.add_message("user", "e")
    sessions.save(mine)

    assert stored(sessions) == ["a", "b", "c", "d", "e"]
    sessions.invalidate(KEY)
    assert texts(sessions.get_or_create(KEY)) == ["a", "b", "c", "d", "e"]


def test_two_that_begin_a_session_at_once_lose_nothing(sessions, opened, url):
    """B46: both found nothing; both are there."""
    mine = sessions.get_or_create(KEY)
    other = opened(nanobot.SessionManager, url=url)
    talk(other, ("a", "b"))

    mine.add_message("user", "c")
    sessions.save(mine)

    assert stored(sessions) == ["a", "b", "c"]


def test_clearing_a_list_that_has_not_seen_all_removes_nothing(sessions, opened, url):
    """The messages of another process are not what nanobot was asked to forget."""
    mine = talk(sessions, ("a", "b"))
    talk(opened(nanobot.SessionManager, url=url), ("c", "d"))

    mine.clear()
    sessions.save(mine)

    assert stored(sessions) == []
    assert branches(sessions)[1] == "nanobot"
    assert stored(sessions, branch="main") == ["a", "b", "c", "d"]


def test_a_changed_list_is_a_branch_and_the_old_one_keeps_everything(sessions):
    """A message that says something else, as after a migration, changes nothing that was said."""
    session = talk(sessions, ("a", "b"), ("c", "d"))
    session.messages[3]["content"] = "D"
    session.add_message("user", "e")
    sessions.save(session)

    assert stored(sessions) == ["a", "b", "c", "D", "e"]
    assert stored(sessions, branch="main") == ["a", "b", "c", "d"]
    session.add_message("assistant", "f")
    sessions.save(session)
    assert stored(sessions)[-2:] == ["e", "f"]
    session.messages.pop()
    sessions.save(session)
    assert stored(sessions) == ["a", "b", "c", "D", "e"]


def test_a_session_that_was_deleted_is_not_made_again_by_who_still_has_it(sessions, opened, url):
    """A stale list would bring back what somebody has removed."""
    mine = talk(sessions, ("a", "b"))
    assert opened(nanobot.SessionManager, url=url).delete_session(KEY)

    mine.add_message("user", "c")
    with pytest.raises(SessionNotFound):
        sessions.save(mine)

    sessions.invalidate(KEY)
    assert sessions.get_or_create(KEY).messages == []


def test_what_is_no_json_is_refused_whole(sessions):
    """The place is named, and nothing of the turn is stored."""
    session = sessions.get_or_create(KEY)
    session.add_message("user", "a")
    session.add_message("assistant", "b", when=object())

    with pytest.raises(InvalidInput, match=r"messages\[1\]"):
        sessions.save(session)

    session.messages.pop()
    session.add_message("assistant", "half \ud83d a pair")
    sessions.save(session)
    assert stored(sessions) == ["a", "half \ufffd a pair"]


# The manager


def once_failing(monkeypatch, tenant, name):
    """Once, this is done, and whoever asked for it is told that it cannot be."""
    really = getattr(tenant, name)

    async def done(*given, **how):
        monkeypatch.setattr(tenant, name, really)
        await really(*given, **how)
        raise StoreUnavailable("the store", "it is gone")

    monkeypatch.setattr(tenant, name, done)


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("name", ["append", "update"])
def test_a_save_that_fails_behind_the_append_says_nothing_twice(
    sessions, opened, url, monkeypatch, name, is_new
):
    """S4-30: what is stored by then is known, or found out at the next save."""
    session = sessions.get_or_create(KEY) if is_new else talk(sessions, ("a", "b"))
    session.metadata["title"] = "whales"
    once_failing(monkeypatch, sessions._store._tenant, name)
    session.add_message("user", "c")
    with pytest.raises(StoreUnavailable):
        sessions.save(session)

    session.add_message("assistant", "d")
    sessions.save(session)

    again = opened(nanobot.SessionManager, url=url).get_or_create(KEY)
    assert texts(again) == texts(session) == [*([] if is_new else ["a", "b"]), "c", "d"]
    assert again.metadata == {"title": "whales"}
    assert branches(sessions)[0] == ["main"]


def test_metadata_that_is_no_json_is_refused_before_anything_is_stored(sessions):
    """All of what was added, or none."""
    session = talk(sessions, ("a", "b"))
    session.add_message("user", "c")
    session.metadata["when"] = object()

    with pytest.raises(InvalidInput, match=r"metadata\.when"):
        sessions.save(session)

    assert stored(sessions) == ["a", "b"]
    del session.metadata["when"]
    sessions.save(session)
    assert stored(sessions) == ["a", "b", "c"]


def test_one_object_for_each_key(sessions):
    """S4-28: a session that is here is given as it is; one that is not is loaded, or empty."""
    session = sessions.get_or_create(KEY)

    assert sessions.get_or_create(KEY) is session
    assert sessions.get_or_create("cli:direct") is not session


def test_eight_threads_are_given_one_object(sessions):
    """S4-29: however many ask at once."""
    gate, found = threading.Barrier(8), []

    def ask():
        gate.wait()
        found.append(sessions.get_or_create(KEY))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert len({id(each) for each in found}) == 1


def test_invalidate_drops_what_was_not_saved(sessions):
    """S4-31: the next one is loaded anew."""
    session = talk(sessions, ("a", "b"))
    session.add_message("user", "not saved")

    sessions.invalidate(KEY)

    assert sessions.get_or_create(KEY) is not session
    assert texts(sessions.get_or_create(KEY)) == ["a", "b"]


def test_a_live_object_stays_unique_and_a_let_go_one_is_stored(sessions, monkeypatch):
    """S4-50: of those that nobody uses so many are held; what is let go of loses nothing."""
    monkeypatch.setattr(nanobot, "CACHED_MAX", 2)
    kept = sessions.get_or_create("cli:kept")
    sessions.get_or_create("cli:unsaved").add_message("user", "a")
    for number in range(3):
        sessions.get_or_create(f"cli:{number}")
    gc.collect()

    assert sessions.get_or_create("cli:kept") is kept
    assert [each["key"] for each in sessions.list_sessions()] == ["cli:unsaved"]
    assert texts(sessions.get_or_create("cli:unsaved")) == ["a"]


def test_a_session_that_cannot_be_stored_keeps_nobody_from_theirs(
    sessions, opened, url, monkeypatch, caplog
):
    """S4-50: one that was deleted elsewhere, or that holds what is no JSON, is let go of; what is
    lost with it is told."""
    monkeypatch.setattr(nanobot, "CACHED_MAX", 1)
    gone = talk(sessions, ("a", "b"), key="cli:gone")
    opened(nanobot.SessionManager, url=url).delete_session("cli:gone")
    gone.add_message("user", "c")

    sessions.get_or_create("cli:bad").add_message("user", "d", when=object())
    sessions.get_or_create("cli:fine")

    assert "'cli:gone'" in caplog.text and "'cli:bad'" in caplog.text


def test_one_that_is_used_just_now_is_not_let_go_of_and_waited_for(sessions, monkeypatch):
    """S4-50: it goes when somebody else is asked for after it."""
    monkeypatch.setattr(nanobot, "CACHED_MAX", 1)
    talk(sessions, ("a", "b"), key="cli:used")
    taken, go = threading.Event(), threading.Event()

    def use():
        with sessions._locks.of("cli:used"):
            taken.set()
            go.wait(30)

    thread = threading.Thread(target=use)
    thread.start()
    assert taken.wait(30)
    sessions.get_or_create("cli:next")
    held = list(sessions._held)
    go.set()
    thread.join()
    sessions.get_or_create("cli:last")

    assert held == ["cli:used", "cli:next"]
    assert list(sessions._held) == ["cli:last"]


def test_at_a_shutdown_everything_that_is_held_is_saved(sessions, opened, url, caplog):
    """S4-50: `flush_all`, as nanobot calls it; one that cannot be saved keeps no other from it."""
    talk(sessions, ("a", "b")).add_message("user", "c")
    sessions.get_or_create("cli:bad").add_message("user", "d", when=object())
    sessions.get_or_create("cli:new").add_message("user", "e")
    sessions.get_or_create("cli:empty")

    assert sessions.flush_all() == 2

    again = opened(nanobot.SessionManager, url=url)
    assert texts(again.get_or_create(KEY)) == ["a", "b", "c"]
    assert sorted(each["key"] for each in again.list_sessions()) == ["cli:new", KEY]
    assert "'cli:bad'" in caplog.text


def test_a_list_has_the_newest_first(sessions):
    """S4-33: with a title and what was said first."""
    talk(sessions, ("x" * 200, "b"), key="cli:old")
    session = talk(sessions, ("Which\n tea?", "b"))
    session.metadata["title"] = "Tea"
    sessions.save(session)

    first, second = sessions.list_sessions()

    assert (first["key"], first["title"], first["preview"]) == (KEY, "Tea", "Which tea?")
    assert second["key"] == "cli:old"
    assert len(second["preview"]) == 120
    assert first["updated_at"] > second["updated_at"]


def test_a_workspace_or_a_url_is_needed(url, tmp_path):
    for given in ({}, {"workspace": tmp_path, "url": url}):
        with pytest.raises(InvalidInput, match="one of the two"):
            nanobot.SessionManager(**given)


# /new


def remembering(opened, url, folder, *answers, window=100):
    """A manager with a memory in nanobot's own place: (sessions, the model that keeps)."""
    keeper = Keeper(*answers)
    memory = Memory(folder, keeper, window, scope="workspace")
    return opened(nanobot.SessionManager, url=url, memory=memory), keeper


def test_new_without_a_memory_says_so_and_clears(sessions, caplog):
    """S4-44: the conversation is gone, the reply is nanobot's, and the log told that nothing is
    kept of it."""
    session = talk(sessions, ("a", "b"))
    caplog.set_level(logging.INFO, "holdfast")

    assert sessions.new(KEY) == "New session started."

    assert session.messages == []
    assert stored(sessions) == []
    assert "no memory" in caplog.text
    assert sessions.get_or_create(KEY) is not session


def test_new_gives_everything_to_the_memory_first(opened, url, tmp_path):
    """S4-44: also what was not saved yet."""
    sessions, _ = remembering(opened, url, tmp_path)
    talk(sessions, ("a", "b")).add_message("user", "c")

    assert sessions.new(KEY) == "New session started."

    assert (tmp_path / "memory" / "MEMORY.md").read_text() == "- fact a\n- fact b\n- fact c\n"
    assert sessions.get_memory_context(KEY).startswith("## Long-term Memory\n- fact a\n")
    assert sessions.get_or_create(KEY).messages == []


def test_new_that_fails_keeps_everything(opened, url, tmp_path):
    """S4-44: the reply is nanobot's, and nothing was cleared."""
    sessions, _ = remembering(opened, url, tmp_path, Overloaded())
    session = talk(sessions, ("a", "b"))

    reply = sessions.new(KEY)

    assert reply == "Memory archival failed, session not cleared. Please try again."
    assert sessions.get_or_create(KEY) is session
    assert texts(session) == stored(sessions) == ["a", "b"]
    assert sessions.get_memory_context(KEY) == ""


def test_new_holds_up_nobody_else_while_its_model_works(opened, url, tmp_path):
    """Whoever has another session goes on; who asks for this one waits."""
    asked, go = threading.Event(), threading.Event()

    async def slow(request):
        asked.set()
        assert await asyncio.to_thread(go.wait, 30)
        return keeper.answer(request.messages[0].text)

    sessions, keeper = remembering(opened, url, tmp_path, slow)
    talk(sessions, ("a", "b"))
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(sessions.new(KEY))),
        threading.Thread(target=lambda: found.append(sessions.get_or_create(KEY).messages)),
    ]
    threads[0].start()
    assert asked.wait(30)
    threads[1].start()

    other = talk(sessions, ("c", "d"), key="cli:other")
    assert sessions.fork_session_before_user_index("cli:other", "cli:fork", 1) is not None
    assert sessions.delete_session("cli:fork")
    assert texts(other) == ["c", "d"] and found == []
    go.set()
    for each in threads:
        each.join(30)

    assert found == ["New session started.", []]


def test_what_is_saved_is_summarised_in_the_background(opened, url, tmp_path):
    """S4-39: behind the save; who has the session is told at the next one how far that has come."""
    for process in range(3):
        sessions, keeper = remembering(opened, url, tmp_path, window=4)
        session = talk(sessions, (f"a{process}", f"b{process}"))
        assert session.last_consolidated == max(process - 1, 0) * 2
        sessions.close()
        assert len(keeper.requests) == min(process, 1)

    facts = "- fact a0\n- fact b0\n- fact a1\n- fact b1\n"
    assert (tmp_path / "memory" / "MEMORY.md").read_text() == facts
    assert opened(nanobot.SessionManager, url=url).get_or_create(KEY).last_consolidated == 4


def test_who_has_a_session_is_told_at_its_next_save_how_far_it_is_summarised(opened, url, tmp_path):
    """S4-38: the list itself is not touched behind its back."""
    sessions, _ = remembering(opened, url, tmp_path, window=2)
    session = talk(sessions, ("a", "b"))
    memory = sessions.sessions.memory
    sessions._store.loop.run(until(lambda: not memory._running))
    assert session.last_consolidated == 0

    talk(sessions, ("c", "d"))
    assert session.last_consolidated == 1
    session.last_consolidated = 4  # nanobot's own word counts
    sessions.save(session)

    assert opened(nanobot.SessionManager, url=url).get_or_create(KEY).last_consolidated == 4
    assert session.last_consolidated == 4


def test_who_still_has_the_session_goes_on_with_the_new_one(sessions):
    """S4-44: the object that was emptied says what it says next behind that, on no other branch."""
    session = talk(sessions, ("a", "b"))
    sessions.new(KEY)

    session.add_message("user", "fresh")
    sessions.save(session)

    assert stored(sessions) == ["fresh"]
    assert branches(sessions) == (["main"], "main")


def test_what_is_stored_was_redacted(opened, url):
    """The hook of `open` is asked for every message, whoever says it."""

    def redact(message):
        return message.replace(content=(message.text or "").replace("secret", "***"))

    sessions = opened(nanobot.SessionManager, url=url, redact=redact)
    session = talk(sessions, ("a secret", "b"))
    talk(sessions, ("c secret", "d"))
    session.messages[1]["content"] = "B secret"
    sessions.save(session)

    assert stored(sessions) == ["a ***", "B ***", "c ***", "d"]
    assert stored(sessions, branch="main") == ["a ***", "b", "c ***", "d"]


# Cutting and forking


def test_a_cap_keeps_whole_turns_and_counts_anew(sessions):
    """S4-51: the end of the conversation stays, the counter says which of it are summarised, and
    what was not is archived; the log has everything."""
    session = talk(sessions, ("a", "b"), ("c", "d"), ("e", "f"))
    session.last_consolidated = 1
    archived = []

    session.enforce_file_cap(archived.extend, limit=3)
    sessions.save(session)

    assert [each["content"] for each in archived] == ["b", "c", "d"]
    assert (texts(session), session.last_consolidated) == (["e", "f"], 0)
    assert stored(sessions) == ["e", "f"]
    assert stored(sessions, branch="main") == ["a", "b", "c", "d", "e", "f"]


def test_a_counter_inside_what_stays_counts_only_that(sessions):
    """S4-51: of five summarised messages one stays."""
    session = talk(sessions, ("a", "b"), ("c", "d"), ("e", "f"))
    session.last_consolidated = 5

    session.enforce_file_cap(limit=2)

    assert (texts(session), session.last_consolidated) == (["e", "f"], 1)


def test_an_archive_that_fails_changes_nothing(sessions):
    """S4-51: the callback's error is raised, and list and counter are as they were."""
    session = talk(sessions, ("a", "b"), ("c", "d"))
    session.last_consolidated = 1

    def fail(_):
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        session.enforce_file_cap(fail, limit=2)

    assert (texts(session), session.last_consolidated) == (["a", "b", "c", "d"], 1)


@pytest.mark.parametrize(
    ("index", "wanted", "cursor"), [(0, 0, 0), (1, 2, 0), (2, 4, 3), (3, 6, 3)]
)
def test_a_fork_has_what_was_before_a_user_s_message(sessions, opened, url, index, wanted, cursor):
    """S4-51: the prefix, without what is only of the first conversation; the counter, or 0."""
    session = talk(sessions, ("a", "b"), ("c", "d"), ("e", "f"))
    session.metadata.update(title="Tea", language="en", goal_state={"met": False})
    session.last_consolidated = 3
    sessions.save(session)

    sessions.fork_session_before_user_index(KEY, "cli:fork", index)

    fork = opened(nanobot.SessionManager, url=url).get_or_create("cli:fork")
    assert texts(fork) == ["a", "b", "c", "d", "e", "f"][:wanted]
    assert (fork.metadata, fork.last_consolidated) == ({"language": "en"}, cursor)
    assert stored(sessions) == ["a", "b", "c", "d", "e", "f"]


def test_a_fork_that_cannot_be_is_none_and_replaces_nothing(sessions):
    """S4-51: no such message, no such session; a key that is taken is an error."""
    talk(sessions, ("a", "b"))
    talk(sessions, ("c", "d"), key="cli:taken")

    assert sessions.fork_session_before_user_index(KEY, "cli:fork", 2) is None
    assert sessions.fork_session_before_user_index(KEY, "cli:fork", -1) is None
    assert sessions.fork_session_before_user_index("cli:none", "cli:fork", 0) is None
    with pytest.raises(InvalidInput, match="taken"):
        sessions.fork_session_before_user_index(KEY, "cli:taken", 1)
    assert stored(sessions, "cli:taken") == ["c", "d"]


# The store object


@pytest.fixture
def store(opened, url):
    return opened(nanobot.SessionStore, url, session=Theirs, private=Private.from_private_record)


def test_a_store_gives_nanobot_s_own_sessions(store):
    """What it saves it loads, with every field; and what is private stays so (S4-52)."""
    assert store.load(KEY) is None
    session = Theirs(KEY, metadata={"title": "Tea"})
    session.say("user", "a", media=["x.png"])
    session.provider_state = Private({"id": "r1"})
    store.save(session, fsync=True)

    again = store.load(KEY)

    assert type(again) is Theirs
    assert (texts(again), again.metadata) == (["a"], {"title": "Tea"})
    assert again.messages[0]["media"] == ["x.png"]
    assert again.provider_state == Private({"id": "r1"})
    assert "r1" not in json.dumps(store.read(KEY))
    again.provider_state = None
    store.save(again)
    assert store.load(KEY).provider_state is None


def test_a_detached_snapshot_does_not_make_a_live_session_stale(store):
    """Nanobot loads a second object of the same session, and saves the first one later."""
    first = store.load(KEY) or Theirs(KEY)
    first.say("user", "a")
    store.save(first)
    store.load(KEY).say("user", "never saved")

    first.say("assistant", "b")
    store.save(first)

    assert texts(store.load(KEY)) == ["a", "b"]


def test_a_store_forgets_sessions_that_are_gone(store):
    """It remembers what a session was as long as that lives, and no longer."""
    session = Theirs(KEY)
    store.save(session)
    assert len(store._seen) == 1

    del session
    gc.collect()

    assert store._seen == {}


def test_a_store_reads_and_changes_metadata_alone(store):
    session = Theirs(KEY, metadata={"a": 1})
    session.say("user", "a")
    store.save(session)

    assert store.update_metadata(KEY, {"b": [2]}) is True
    assert store.update_metadata("cli:none", {"b": 2}) is False

    assert store.read_metadata(KEY)["metadata"] == {"a": 1, "b": [2]}
    assert store.read_metadata("cli:none") is None
    assert store.read("cli:none") is None
    assert texts(store.load(KEY)) == ["a"]
    assert store.read(KEY)["key"] == KEY


def test_a_store_deletes(store):
    store.save(Theirs(KEY))

    assert store.delete(KEY) is True
    assert store.delete(KEY) is False
    assert store.load(KEY) is None


def test_a_hidden_summary_in_the_middle_changes_the_list_and_not_the_log(store):
    """A current nanobot inserts a message where its summary ends: a branch, and all is kept."""
    session = Theirs(KEY)
    for text in "abcd":
        session.say("user", text)
    store.save(session)
    session.messages.insert(2, {"role": "user", "content": "go on", "_hidden_history": True})
    session.last_consolidated = 2
    store.save(session)

    again = store.load(KEY)

    assert texts(again) == ["a", "b", "go on", "c", "d"]
    assert again.last_consolidated == 2


def test_without_nanobot_its_store_says_what_to_install(url):
    with pytest.raises(Unsupported, match="pip install nanobot-ai"):
        nanobot.store_for_nanobot(url)


# Workspaces


def workspace(tmp_path, *, is_current=False):
    folder = tmp_path / "workspace"
    if is_current:
        (folder / ".nanobot").mkdir(parents=True)
        (folder / ".nanobot" / "workspace-id").write_text("0123456789abcdef" * 2 + "\n")
    return folder


def write(path, *contents, key=KEY):
    path.parent.mkdir(parents=True, exist_ok=True)
    first = {"_type": "metadata", "created_at": "2026-02-01T12:00:00", "metadata": {}}
    first |= {} if key is None else {"key": key}
    lines = [first, *({"role": "user", "content": each} for each in contents)]
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))


def test_a_workspace_is_gone_on_with(opened, tmp_path):
    """The files that an early nanobot wrote are found and written to, under its names."""
    path = workspace(tmp_path) / "sessions" / "telegram_12345678.jsonl"
    write(path, "a")

    talk(opened(nanobot.SessionManager, workspace(tmp_path), data=tmp_path / "data"), ("b", "c"))

    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [each.get("content") for each in lines] == [None, "a", "b", "c"]


def test_a_current_workspace_is_found_by_its_id(opened, tmp_path):
    """S4-10: since August the sessions are outside, under the id of the workspace."""
    folder = tmp_path / "data" / "sessions" / ("0123456789abcdef" * 2)
    path = folder / "dGVsZWdyYW06MTIzNDU2Nzg.jsonl"
    write(path, "a")
    sessions = opened(
        nanobot.SessionManager, workspace(tmp_path, is_current=True), data=tmp_path / "data"
    )

    talk(sessions, ("b", "c"))
    talk(sessions, ("d", "e"), key="cli:new")

    assert len(path.read_text().splitlines()) == 4
    assert (folder / "Y2xpOm5ldw.jsonl").exists()


@pytest.mark.parametrize("key", [KEY, None])
@pytest.mark.parametrize("is_current", [False, True])
def test_a_session_in_the_oldest_place_is_moved_when_it_is_first_asked_for(
    opened, tmp_path, is_current, key
):
    """S4-10: one session, and not the others that lie there."""
    data = tmp_path / "data"
    old = data / "sessions" / "telegram_12345678.jsonl"
    write(old, "a", key=key)
    other = data / "sessions" / "cli_direct.jsonl"
    write(other, "b", key="cli:direct")
    place = workspace(tmp_path, is_current=is_current)
    sessions = opened(nanobot.SessionManager, place, data=data)

    assert texts(sessions.get_or_create(KEY)) == ["a"]

    assert not old.exists()
    assert other.exists()
    talk(sessions, ("c", "d"))
    sessions.invalidate(KEY)
    assert texts(sessions.get_or_create(KEY)) == ["a", "c", "d"]


def test_what_is_in_the_workspace_is_not_replaced_from_the_oldest_place(opened, tmp_path):
    """S4-10: a session that is there is the one."""
    data = tmp_path / "data"
    write(data / "sessions" / "telegram_12345678.jsonl", "old")
    write(workspace(tmp_path) / "sessions" / "telegram_12345678.jsonl", "new")

    sessions = opened(nanobot.SessionManager, workspace(tmp_path), data=data)

    assert texts(sessions.get_or_create(KEY)) == ["new"]
    assert (data / "sessions" / "telegram_12345678.jsonl").exists()


def test_a_file_of_another_key_stays_in_the_oldest_place(opened, tmp_path):
    """S4-10: many keys have one name there, and the key that is stored tells whose it is."""
    data = tmp_path / "data"
    write(data / "sessions" / "telegram_12345678.jsonl", "a", key="telegram_12345678")

    sessions = opened(nanobot.SessionManager, workspace(tmp_path), data=data)

    assert sessions.get_or_create(KEY).messages == []
    assert (data / "sessions" / "telegram_12345678.jsonl").exists()
    assert texts(sessions.get_or_create("telegram_12345678")) == ["a"]


def test_a_session_that_is_deleted_is_also_gone_from_the_oldest_place(opened, tmp_path):
    """S4-10: it would come back when it is asked for again."""
    data = tmp_path / "data"
    write(data / "sessions" / "telegram_12345678.jsonl", "a")
    sessions = opened(nanobot.SessionManager, workspace(tmp_path), data=data)

    assert sessions.delete_session(KEY) is True

    assert sessions.get_or_create(KEY).messages == []
    assert list((data / "sessions").iterdir()) == []


@pytest.mark.parametrize("where", ["file", "legacy", "sessions", "state", "marker", "namespace"])
def test_a_link_is_refused_wherever_it_stands(tmp_path, where):
    """S4-10: who can put one there could have us read or write anybody's file."""
    data, place = tmp_path / "data", workspace(tmp_path, is_current=where in ("namespace",))
    mine, theirs = tmp_path / "mine", tmp_path / "theirs.jsonl"
    write(theirs, "secret")
    mine.mkdir()
    place.mkdir(exist_ok=True)
    links = {
        "file": (data / "sessions" / "telegram_12345678.jsonl", theirs),
        "legacy": (data / "sessions", mine),
        "sessions": (place / "sessions", mine),
        "state": (place / ".nanobot", mine),
        "marker": (place / ".nanobot" / "workspace-id", theirs),
        "namespace": (data / "sessions" / ("0123456789abcdef" * 2), mine),
    }
    link, target = links[where]
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)

    with (
        pytest.raises(StoreUnavailable, match="link"),
        nanobot.SessionManager(place, data=data) as sessions,
    ):
        sessions.get_or_create(KEY)

    assert theirs.exists()
    assert list(mine.iterdir()) == []
