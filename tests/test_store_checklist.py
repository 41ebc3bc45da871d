"""What users of an earlier SQLite session store know, item by item, on ours."""

import asyncio
import sqlite3
from datetime import UTC, datetime, timedelta
from inspect import iscoroutinefunction

import pytest

import holdfast
from holdfast import ids, notes
from holdfast.entries import Fold
from holdfast.errors import DuplicateSession, InvalidInput, SessionExpired, SessionNotFound
from holdfast.ids import IdSource
from holdfast.messages import Message, ToolCall
from holdfast.settings import Settings
from holdfast.stores import Record
from holdfast.stores.base import Store, Tenant
from holdfast.stores.sqlite.settings import SETTINGS
from holdfast.tools import Tool

HOUR = timedelta(hours=1)
START = datetime(2026, 1, 1, tzinfo=UTC)
ASK = Message.user("Where is my parcel?")
CALL = ToolCall(id="call_1", name="track", arguments='{"parcel": 7}')
SAY = Message.assistant("I will look.", tool_calls=(CALL,), author="lango-orchestrator")
FOUND = ToolCall(id="call_1", name="track", arguments="", output='{"place": "Bremen"}')
TOLD = Message("tool", tool_calls=(FOUND,))


class Clock:
    """Stands still until it is moved."""

    def __init__(self):
        self.now = START

    def __call__(self):
        return int(self.now.timestamp() * 1_000_000) * 1_000


def run(scenario, url="memory:"):
    """Run a scenario on one tenant of a store; a second argument is the clock."""

    async def main():
        clock = Clock()
        with ids.using(IdSource(clock_ns=clock)):
            async with holdfast.open_store(url) as store:
                return await scenario(store.tenant(), clock)

    return asyncio.run(main())


@pytest.fixture(params=["memory", "sqlite"])
def url(request, tmp_path):
    return "memory:" if request.param == "memory" else f"sqlite:{tmp_path}/chats.db"


def rows_in(tmp_path, table):
    db = sqlite3.connect(tmp_path / "chats.db")
    try:
        return db.execute(f"SELECT * FROM {table}").fetchall()
    finally:
        db.close()


def test_sessions_messages_and_metadata_are_kept(url):
    """S1-1: sessions, their messages and their metadata."""

    async def scenario(tenant, clock):
        record = await tenant.create(Record(key="k", metadata={"title": "Parcel"}), [ASK])
        loaded = await tenant.load("k")
        assert (loaded.id, loaded.metadata) == (record.id, {"title": "Parcel"})
        assert [each.entry for each in await tenant.read(record.id)] == [ASK]

    run(scenario, url)


def test_new_sessions_have_unique_ids_in_the_file(tmp_path):
    """S1-2: each new session is a row of the file, with an id of its own."""

    async def scenario(tenant, clock):
        return [(await tenant.create(Record(key=f"k{n}"))).id for n in range(20)]

    made = run(scenario, f"sqlite:{tmp_path}/chats.db")

    assert len(set(made)) == 20
    assert {row[2] for row in rows_in(tmp_path, "sessions")} == set(made)


def test_a_session_belongs_to_its_agent(url):
    """S1-3: the agent it was made for is stored with it, and it is found by it."""

    async def scenario(tenant, clock):
        await tenant.create(Record(key="k", agent="helper"))
        await tenant.create(Record(key="other", agent="critic"))
        assert (await tenant.load("k")).agent == "helper"
        assert [each.key for each in (await tenant.list(agent="helper")).items] == ["k"]

    run(scenario, url)


def test_tools_are_stored_with_the_session(url):
    """S3-35: name, description and parameters, given once; what runs them is bound by name."""
    schema = {"type": "object", "properties": {"parcel": {"type": "integer"}}}
    track = Tool("track", "Where a parcel is.", schema, run=print)

    async def scenario(tenant, clock):
        await tenant.create(Record(key="k", tools=(track.declaration,)))
        (declaration,) = (await tenant.load("k")).tools
        assert declaration == {
            "name": "track",
            "description": "Where a parcel is.",
            "parameters": schema,
        }
        assert Tool.declared(declaration).bind(print) == track

    run(scenario, url)


def test_question_and_answer_are_appended(url):
    """S1-9, S1-10: what the user and the assistant said is behind what was there."""

    async def scenario(tenant, clock):
        record = await tenant.create(Record(key="k"), [ASK])
        await tenant.append(record.id, [Message.user("Hello?")])
        await tenant.append(record.id, [SAY])
        assert [each.entry.text for each in await tenant.read(record.id)] == [
            "Where is my parcel?",
            "Hello?",
            "I will look.",
        ]

    run(scenario, url)


def test_loading_by_key_gives_everything(tmp_path):
    """S1-11, S1-19, S1-20: what was created is there for the next process, with its messages."""
    url = f"sqlite:{tmp_path}/chats.db"
    settings = Settings(model="anthropic:claude", thinking="high")
    record = Record(key="k", agent="a", settings=settings, metadata={"n": 1}, ttl=HOUR)

    async def create(tenant, clock):
        await tenant.create(record, [ASK, SAY, TOLD])

    async def load(tenant, clock):
        loaded = await tenant.load("k")
        return loaded, [each.entry for each in await tenant.read(loaded.id)]

    run(create, url)
    loaded, messages = run(load, url)

    assert messages == [ASK, SAY, TOLD]
    for name in ("id", "key", "agent", "settings", "metadata", "ttl"):
        assert getattr(loaded, name) == getattr(record, name)


def test_an_unknown_key_is_not_found(url):
    """S1-12, S1-35: an error with the key in it."""

    async def scenario(tenant, clock):
        with pytest.raises(SessionNotFound, match="'nobody'"):
            await tenant.load("nobody")

    run(scenario, url)


def test_settings_are_stored_updated_and_loaded(url):
    """S1-13, S1-14, S1-15: model and thinking level are those of the last update."""

    async def scenario(tenant, clock):
        record = await tenant.create(Record(key="k", settings=Settings(model="one")))
        assert (await tenant.load("k")).settings == Settings(model="one")
        await tenant.update(record.id, {"settings": {"model": "two", "thinking": "low"}})
        assert (await tenant.load("k")).settings == Settings(model="two", thinking="low")

    run(scenario, url)


def test_deleting_leaves_no_row(tmp_path):
    """S1-16: neither of the session nor of its messages, in any table."""

    async def scenario(tenant, clock):
        record = await tenant.create(Record(key="k"), [ASK, SAY])
        await tenant.append(record.id, [TOLD], once="x")
        await tenant.begin(record.id, "me", HOUR, {"said": "more"})
        await tenant.delete(record.id)

    run(scenario, f"sqlite:{tmp_path}/chats.db")

    for table in ("sessions", "documents", "branches", "entries", "once", "drafts", "blobs"):
        assert rows_in(tmp_path, table) == []


def test_a_session_past_its_ttl_is_marked(url):
    """S1-17: marked first, deleted after the time of grace."""

    async def scenario(tenant, clock):
        await tenant.create(Record(key="k", ttl=HOUR))
        clock.now += HOUR * 2
        assert (await tenant.expire())[:2] == (1, 0)
        clock.now += timedelta(days=8)
        assert (await tenant.expire())[:2] == (0, 1)

    run(scenario, url)


def test_no_value_becomes_part_of_a_statement(url):
    """S1-18: values are bound, wherever they come from."""
    hostile = "x'; DROP TABLE sessions; --"

    async def scenario(tenant, clock):
        await tenant.create(Record(key="k"), [ASK])
        made = await tenant.create(Record(key=hostile, agent=hostile, metadata={hostile: hostile}))
        await tenant.append(made.id, [Message.user(hostile)], once=hostile)
        await tenant.branch(made.id, hostile, parent="main", at=1)
        assert (await tenant.load(hostile)).branch == hostile
        assert (await tenant.search(hostile)).items[0].key == hostile
        assert len((await tenant.list(agent=hostile)).items) == 1
        assert (await tenant.load("k")).seq == 1

    run(scenario, url)


def test_an_append_adds_rows_and_rewrites_none(tmp_path):
    """S1-21, B50: the rows that were there stay as and where they are."""
    url = f"sqlite:{tmp_path}/chats.db"

    async def fill(tenant, clock):
        return (await tenant.create(Record(key="k"), [Message.user(str(n)) for n in range(300)])).id

    id = run(fill, url)
    before = rows_in(tmp_path, "entries")

    async def append(tenant, clock):
        await tenant.append(id, [ASK])

    run(append, url)

    after = rows_in(tmp_path, "entries")
    assert after[:-1] == before


def test_the_author_of_a_message_is_stored(url):
    """S1-23, S1-24: and it is there after loading; a message without one has none."""

    async def scenario(tenant, clock):
        record = await tenant.create(Record(key="k"), [ASK, SAY])
        authors = [each.entry.author for each in await tenant.read(record.id)]
        assert authors == [None, "lango-orchestrator"]

    run(scenario, url)


def test_the_interface_has_what_a_store_needs():
    """S1-33: create, get, update, delete, append, list on a tenant; close on the store."""
    for name in ("create", "load", "update", "delete", "append", "list"):
        assert iscoroutinefunction(getattr(Tenant, name)), name
    assert iscoroutinefunction(Store.close)


def test_the_tables_of_the_file(tmp_path):
    """S1-34: a key is unique and not empty, rows belong to a session, lists have their index."""
    url = f"sqlite:{tmp_path}/chats.db"

    async def scenario(tenant, clock):
        record = await tenant.create(Record(key="k"))
        with pytest.raises(InvalidInput):
            Record(key="")
        clock.now += HOUR
        updated = await tenant.update(record.id, {"agent": "other"})
        assert (updated.created_at, updated.updated_at) == (START, START + HOUR)

    run(scenario, url)

    db = sqlite3.connect(tmp_path / "chats.db")
    keys = {
        tuple(c[2] for c in db.execute(f"PRAGMA index_info('{i[1]}')"))
        for i in db.execute("PRAGMA index_list(sessions)")
        if i[2]
    }
    newest = [c[2] for c in db.execute("PRAGMA index_info(sessions_newest)")]
    owners = {row[2] for row in db.execute("PRAGMA foreign_key_list(entries)")}
    db.close()
    assert ("tenant", "key") in keys
    assert newest[:2] == ["tenant", "updated"]
    assert owners == {"sessions"}


def test_the_three_errors_name_their_key(url):
    """S1-35: not found, expired, duplicate; each is a class of its own and shows the key."""

    async def scenario(tenant, clock):
        await tenant.create(Record(key="a key", ttl=HOUR))
        with pytest.raises(DuplicateSession, match="'a key'"):
            await tenant.create(Record(key="a key"))
        clock.now += HOUR * 2
        with pytest.raises(SessionExpired, match="'a key'"):
            await tenant.load("a key")

    run(scenario, url)


def test_a_new_session_was_made_and_updated_now(url):
    """S1-36: whatever times the caller's record has; its first messages are in the same commit."""

    async def scenario(tenant, clock):
        old = START - HOUR * 99
        made = await tenant.create(Record(key="k", created_at=old, updated_at=old), [ASK])
        assert (made.created_at, made.updated_at, made.seq) == (START, START, 1)
        with pytest.raises(DuplicateSession):
            await tenant.create(Record(key="k"), [SAY])
        assert len(await tenant.read(made.id)) == 1

    run(scenario, url)


def test_loading_goes_by_seq_and_the_ttl_is_strict(url):
    """S1-37, B14: in the order of appending, whatever the times say; expired is later than the
    ttl."""

    async def scenario(tenant, clock):
        late, early = Message.user("1", timestamp=START), Message.user("2", timestamp=START - HOUR)
        record = await tenant.create(Record(key="k", ttl=HOUR), [late, early])
        assert [each.entry.text for each in await tenant.read(record.id)] == ["1", "2"]
        clock.now += HOUR
        assert (await tenant.load("k")).id == record.id
        clock.now += timedelta(microseconds=1)
        with pytest.raises(SessionExpired):
            await tenant.load("k")
        assert len(await tenant.read(record.id)) == 2

    run(scenario, url)


def test_updating(url):
    """S1-38, B16: an unknown session is not found; the time moves; fields can be emptied again."""

    async def scenario(tenant, clock):
        with pytest.raises(SessionNotFound):
            await tenant.update(ids.new_id(), {"agent": "x"})
        record = await tenant.create(Record(key="k", agent="a", metadata={"x": 1}), [ASK])
        clock.now += HOUR
        changed = await tenant.update(record.id, {"agent": "", "metadata": {"x": None}})
        assert (changed.agent, changed.metadata, changed.updated_at) == ("", {}, START + HOUR)
        assert len(await tenant.read(record.id)) == 1

    run(scenario, url)


def test_deleting_twice_is_success(url):
    """S1-39: a session that is not there is deleted."""

    async def scenario(tenant, clock):
        record = await tenant.create(Record(key="k"))
        assert await tenant.delete(record.id) is True
        assert await tenant.delete(record.id) is False

    run(scenario, url)


def test_appending_lets_the_time_begin_anew(url):
    """S1-40: an unknown session is not found; a message without a time gets one; ttl slides."""

    async def scenario(tenant, clock):
        with pytest.raises(SessionNotFound):
            await tenant.append(ids.new_id(), [ASK])
        record = await tenant.create(Record(key="k", ttl=HOUR))
        clock.now += HOUR
        await tenant.append(record.id, [Message.user("still here")])
        clock.now += HOUR
        assert (await tenant.load("k")).updated_at == START + HOUR
        (stored,) = await tenant.read(record.id)
        assert stored.entry.timestamp == START + HOUR

    run(scenario, url)


def test_a_note_about_a_timeout_is_an_assistants_message(url):
    """S1-42: the words that users of that store know, and no turn of its own."""

    async def scenario(tenant, clock):
        record = await tenant.create(Record(key="k"), [ASK, notes.timed_out()])
        note = (await tenant.read(record.id))[-1].entry
        assert note.text == "[This response was interrupted due to a timeout]"
        assert note.role == "assistant" and not note.starts_turn

    run(scenario, url)


def test_compacting_is_a_fold(url):
    """S1-43, B13: messages up to an index are shown as a summary, in one step; the log keeps
    them."""

    async def main():
        async with holdfast.open(url) as sessions:
            session = await sessions.get_or_create("k")
            await session.append(ASK, SAY, TOLD)
            with pytest.raises(InvalidInput):
                await session.fold(0, 4, notes.compacted("too far"))
            assert session.folds == ()

            await session.fold(0, 2, notes.compacted("A parcel is looked for."))

            fold = session.folds[0].entry
            assert isinstance(fold, Fold) and (fold.first, fold.last) == (1, 2)
            assert fold.replacement.role == "system"
            assert fold.replacement.text == "[Compacted Summary]\nA parcel is looked for."
            assert await session.read() == (ASK, SAY, TOLD)

    asyncio.run(main())


def test_a_list_shows_the_last_written_first(url):
    """S1-44: key and times, newest update first."""

    async def scenario(tenant, clock):
        made = []
        for key in "abc":
            made.append(await tenant.create(Record(key=key)))
            clock.now += HOUR
        await tenant.append(made[0].id, [ASK])
        found = (await tenant.list()).items
        assert [each.key for each in found] == ["a", "c", "b"]
        assert (found[0].created_at, found[0].updated_at) == (START, START + HOUR * 3)

    run(scenario, url)


def test_opening_a_file(tmp_path, monkeypatch):
    """S1-45: `~/` is the home folder; foreign keys are on; tables are made; old rows are read."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    async def scenario(tenant, clock):
        await tenant.create(Record(key="k"), [ASK])

    run(scenario, "sqlite:~/chats.db")

    assert dict(SETTINGS)["foreign_keys"] == 1
    assert len(rows_in(tmp_path, "entries")) == 1


def test_the_tests_of_the_earlier_store(url):
    """S1-59: its own list: fields, unknown keys, model, tool calls, twice deleted, made anew."""

    async def scenario(tenant, clock):
        record = await tenant.create(Record(key="k", ttl=HOUR, settings=Settings(model="m")))
        await tenant.update(record.id, {"settings": {"model": "n"}})
        assert (await tenant.load("k")).settings.model == "n"
        await tenant.append(record.id, [SAY, TOLD])
        said, told = (each.entry for each in await tenant.read(record.id))
        assert said.tool_calls == (CALL,)
        assert told.tool_calls[0].output == '{"place": "Bremen"}'
        clock.now += HOUR * 2
        with pytest.raises(SessionExpired):
            await tenant.append(record.id, [ASK])
        with pytest.raises(DuplicateSession):
            await tenant.create(Record(key="k"))
        await tenant.delete(record.id)
        again = await tenant.create(Record(key="k"))
        assert again.id != record.id and again.seq == 0

    run(scenario, url)
