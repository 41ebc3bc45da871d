"""With nanobot itself: one of February 2026, and the current one. Run by `scripts/test nanobot`.

Each version is installed from the package index into an environment of its own, which is kept in
HOLDFAST_NANOBOT_CACHE, or in the user's cache folder. What cannot be installed fails.
"""

import json
import os
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest

import holdfast
from holdfast import Message, ToolCall
from holdfast.adapters import nanobot as face
from holdfast.entries import Call, Mark
from holdfast.errors import SessionNotFound
from holdfast.memory import Memory
from holdfast.stores import open_store
from holdfast.stores.values import Record
from memories import Keeper
from sessions_for_tests import asynchronous

VERSIONS = {"0.1.4.post2": "plain", "0.3.5": "base64url"}
CURRENT = "0.3.5"
KEY = "telegram:12345678"
TURNS = 50
ANSWER_S = 60
SOURCE = Path(holdfast.__file__).parent.parent


def environment(version):
    """The interpreter of an environment with this nanobot; made if it is not there."""
    cache = os.environ.get("HOLDFAST_NANOBOT_CACHE") or os.path.expanduser("~/.cache/holdfast")
    folder = Path(cache) / f"nanobot-{version}"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        install = [python, "-m", "pip", "install", "--quiet", f"nanobot-ai=={version}"]
        subprocess.run(install, check=True)
        (folder / "ready").touch()
    return python


def environment_with_ours(version):
    """The same, with what holdfast needs; holdfast itself is the one that is tested."""
    python = environment(version)
    ready = python.parent.parent / "ready-for-ours"
    if not ready.exists():
        needed = [each for each in requires("holdfast") if "extra ==" not in each]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *needed], check=True)
        ready.touch()
    return python


class Nanobot:
    """A process with nanobot in it."""

    def __init__(self, version, folder):
        driver = Path(__file__).with_name("nanobot_driver.py")
        python = (environment_with_ours if version == CURRENT else environment)(version)
        home = folder / "home"
        for each in (home, folder / "workspace"):
            each.mkdir(parents=True)
        self._process = subprocess.Popen(
            [python, driver, folder / "workspace", folder / "data" / "sessions"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(SOURCE)},
        )

    def ask(self, do, **asked):
        self._process.stdin.write(json.dumps({"do": do} | asked) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"nanobot ended with {self._process.wait(ANSWER_S)} at {do}"
        return json.loads(line)

    def close(self):
        self._process.stdin.close()
        self._process.wait(ANSWER_S)
        self._process.stdout.close()


@pytest.fixture(params=VERSIONS)
def nanobot(request, tmp_path):
    found = Nanobot(request.param, tmp_path)
    found.folder = found.ask("start")
    found.url = f"jsonl:{found.folder}?names={VERSIONS[request.param]}"
    yield found
    found.close()


def files_of(nanobot):
    return list(Path(nanobot.folder).glob("*.jsonl"))


def contents(messages):
    return [each["content"] for each in messages]


async def texts(store, branch=None):
    record = await store.tenant().load(KEY)
    rows = await store.tenant().read(record.id, branch or record.branch)
    return [row.entry.text for row in rows if isinstance(row.entry, Message)]


@asynchronous
async def test_nanobot_loads_what_we_wrote(nanobot):
    """Messages with everything in them, appended and written anew; and it lists the session."""
    call = ToolCall(id="call_1", name="look", arguments='{"at": "é"}')
    async with open_store(nanobot.url) as store:
        record = await store.tenant().create(
            Record(key=KEY, metadata={"title": "Ü"}), [Message.user("a é 🐘"), Mark(what="x")]
        )
        said = [Message.assistant("", [call]), Message.tool("b\u2028c", "call_1")]
        await store.tenant().append(record.id, [*said, Call(model="m"), Message.assistant("d")])

    nanobot.ask("start")
    found = nanobot.ask("messages", key=KEY)

    assert contents(found) == ["a é 🐘", "", "b\u2028c", "d"]
    assert found[1]["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"at": "é"}'}
    assert found[2]["tool_call_id"] == "call_1"
    assert nanobot.ask("metadata", key=KEY) == {"title": "Ü"}
    assert nanobot.ask("list") == [KEY]


@asynchronous
async def test_we_load_what_nanobot_wrote(nanobot):
    """With every field that it keeps; and what it wrote is not touched by reading it."""
    nanobot.ask("say", key=KEY, role="user", content="a é")
    nanobot.ask("say", key=KEY, role="assistant", content="b", extra={"tools_used": ["look"]})
    (path,) = files_of(nanobot)
    before = path.read_bytes()

    async with open_store(nanobot.url) as store:
        assert await texts(store) == ["a é", "b"]
        record = await store.tenant().load(KEY)
        rows = await store.tenant().read(record.id)
        assert rows[1].entry.extra["tools_used"] == ("look",)
        assert (await store.tenant().verify()).problems == ()

    assert path.read_bytes() == before


@asynchronous
async def test_fifty_turns_by_turns(nanobot):
    """Nanobot is started anew between: each sees everything that the other said, and nothing is
    there twice."""
    said = []
    async with open_store(nanobot.url) as store:
        record = await store.tenant().create(Record(key=KEY))
        for turn in range(TURNS):
            if turn % 2:
                nanobot.ask("start")
                for role in ("user", "assistant"):
                    said.append(f"{role} of nanobot {turn} ü")
                    nanobot.ask("say", key=KEY, role=role, content=said[-1])
            else:
                said += [f"ours {turn} é", f"answer {turn} 北京"]
                messages = [Message.user(said[-2]), Call(model="m"), Message.assistant(said[-1])]
                await store.tenant().append(record.id, messages)
            nanobot.ask("start")
            assert contents(nanobot.ask("messages", key=KEY)) == said
            assert await texts(store) == said
        assert (await store.tenant().verify()).problems == ()


@asynchronous
async def test_a_live_nanobot_drops_nothing_for_good(nanobot):
    """It saves from its cache. What we said meanwhile is put back in front of what it added."""
    async with open_store(nanobot.url) as store:
        record = await store.tenant().create(Record(key=KEY), [Message.user("a")])
        nanobot.ask("start")
        assert contents(nanobot.ask("messages", key=KEY)) == ["a"]
        await store.tenant().append(record.id, [Message.assistant("b")])
        nanobot.ask("say", key=KEY, role="user", content="c")

        assert await texts(store) == ["a", "b", "c"]

        nanobot.ask("say", key=KEY, role="assistant", content="d")  # it still has not seen "b"
        assert await texts(store) == ["a", "b", "c", "d"]
        nanobot.ask("start")
        assert contents(nanobot.ask("messages", key=KEY)) == ["a", "b", "c", "d"]


@asynchronous
async def test_a_live_nanobot_that_spoke_first_may_save_as_often_as_it_likes(nanobot):
    """Its own lines have ids of ours in the file, and none in its cache."""
    said = ["a", "ours"]
    nanobot.ask("say", key=KEY, role="user", content="a")
    async with open_store(nanobot.url) as store:
        record = await store.tenant().load(KEY)
        await store.tenant().append(record.id, [Message.assistant("ours")])
        for number in range(4):
            said.append(f"theirs {number}")
            nanobot.ask("say", key=KEY, role="user", content=said[-1])
            assert await texts(store) == said

    nanobot.ask("start")
    assert contents(nanobot.ask("messages", key=KEY)) == said


@asynchronous
async def test_a_conversation_that_it_begins_anew(nanobot):
    """Its `/new` leaves what was said on the old branch."""
    async with open_store(nanobot.url) as store:
        await store.tenant().create(Record(key=KEY), [Message.user("a"), Message.assistant("b")])
        nanobot.ask("start")
        nanobot.ask("new", key=KEY)
        nanobot.ask("say", key=KEY, role="user", content="fresh")

        assert await texts(store) == ["fresh"]

        assert await texts(store, "main") == ["a", "b"]
        nanobot.ask("start")
        assert contents(nanobot.ask("messages", key=KEY)) == ["fresh"]


@asynchronous
async def test_what_it_deletes_is_gone(nanobot):
    """A session is deleted by removing its file."""
    async with open_store(nanobot.url) as store:
        await store.tenant().create(Record(key=KEY), [Message.user("a")])
        for path in files_of(nanobot):
            path.unlink()

        with pytest.raises(SessionNotFound):
            await store.tenant().load(KEY)


# A store of ours for a current nanobot


@pytest.fixture(params=["sqlite", "jsonl"])
def current(request, tmp_path):
    """A current nanobot whose manager keeps its sessions in a store of ours."""
    found = Nanobot(CURRENT, tmp_path)
    found.url = f"{request.param}:{tmp_path / 'ours'}"
    found.ask("start", url=found.url)
    yield found
    found.close()


def test_a_current_nanobot_keeps_its_sessions_in_a_store_of_ours(current):
    """What it saves is there for the next one, with every field; and it lists, names and removes
    sessions."""
    current.ask("say", key=KEY, role="user", content="a é 🐘")
    current.ask("say", key=KEY, role="assistant", content="b", extra={"tools_used": ["look"]})
    current.ask("say", key="cli:direct", role="user", content="other")
    assert current.ask("rename", key=KEY, title="Tea") is True
    assert current.ask("flush") == 2

    current.ask("start", url=current.url)

    found = current.ask("messages", key=KEY)
    assert contents(found) == ["a é 🐘", "b"]
    assert found[1]["tools_used"] == ["look"]
    assert contents(current.ask("read", key=KEY)["messages"]) == ["a é 🐘", "b"]
    assert sorted(current.ask("titles")) == [
        ["cli:direct", "", "other"],
        [KEY, "Tea", "a é 🐘"],
    ]
    assert [each["role"] for each in current.ask("history", key=KEY, max=5)] == [
        "user",
        "assistant",
    ]
    assert current.ask("delete", key="cli:direct") is True
    current.ask("start", url=current.url)
    assert current.ask("list") == [KEY]


def test_what_it_keeps_of_its_provider_comes_back_and_is_no_message(current):
    """S4-52: the private record of a current nanobot."""
    kept = {
        "kind": "openai_responses",
        "provider": "openai",
        "model": "m",
        "version": 1,
        "payload": {"id": "r1"},
        "pending_messages": [],
    }
    current.ask("say", key=KEY, role="user", content="a")
    saved = current.ask("private", key=KEY, set=kept)

    current.ask("start", url=current.url)

    assert current.ask("private", key=KEY) == saved
    assert contents(current.ask("messages", key=KEY)) == ["a"]


def test_it_begins_anew_and_forks_in_a_store_of_ours(current):
    """What was said before is gone, as it asked for; a fork has the prefix."""
    for number in range(2):
        current.ask("say", key=KEY, role="user", content=f"u{number}")
        current.ask("say", key=KEY, role="assistant", content=f"a{number}")
    assert contents(current.ask("fork", key=KEY, to="cli:fork", at=1)) == ["u0", "a0"]
    current.ask("new", key=KEY)
    current.ask("say", key=KEY, role="user", content="fresh")

    current.ask("start", url=current.url)

    assert contents(current.ask("messages", key=KEY)) == ["fresh"]
    assert contents(current.ask("messages", key="cli:fork")) == ["u0", "a0"]


@asynchronous
async def test_what_it_wrote_in_a_store_of_ours_is_a_session_like_any_other(current):
    """And what is said there without it is not lost by its next save."""
    current.ask("say", key=KEY, role="user", content="a")
    async with open_store(current.url) as store:
        record = await store.tenant().load(KEY)
        await store.tenant().append(record.id, [Message.assistant("ours")])
        current.ask("say", key=KEY, role="user", content="b")

        assert await texts(store) == ["a", "ours", "b"]
        assert (await store.tenant().verify()).problems == ()


# Nanobot's face over its own workspace


def test_the_face_goes_on_where_nanobot_left_off(nanobot, tmp_path):
    """It is pointed at the workspace, and each sees what the other said."""
    nanobot.ask("say", key=KEY, role="user", content="a")
    nanobot.ask("say", key=KEY, role="assistant", content="b")

    with face.SessionManager(tmp_path / "workspace", data=tmp_path / "data") as sessions:
        session = sessions.get_or_create(KEY)
        assert contents(session.get_history()) == ["a", "b"]
        session.add_message("user", "c")
        session.add_message("assistant", "d")
        sessions.save(session)
        fresh = sessions.get_or_create("cli:direct")
        fresh.add_message("user", "e")
        sessions.save(fresh)

    nanobot.ask("start")
    assert contents(nanobot.ask("messages", key=KEY)) == ["a", "b", "c", "d"]
    assert contents(nanobot.ask("messages", key="cli:direct")) == ["e"]
    assert sorted(nanobot.ask("list")) == ["cli:direct", KEY]


@pytest.mark.parametrize("most", [2, 3, 5, 500])
def test_the_face_gives_a_model_what_nanobot_gives_it(nanobot, tmp_path, most):
    """S4-34, S4-36: the same messages with the same names."""
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    said = [
        ("user", "one", {}),
        ("assistant", "", {"tool_calls": [call]}),
        ("tool", "seen", {"tool_call_id": "c1", "name": "look"}),
        ("assistant", "first", {}),
        ("user", "two", {}),
        ("assistant", "second", {}),
    ]
    for role, content, extra in said:
        nanobot.ask("say", key=KEY, role=role, content=content, extra=extra)
    theirs = nanobot.ask("history", key=KEY, max=most)

    with face.SessionManager(tmp_path / "workspace", data=tmp_path / "data") as sessions:
        assert sessions.get_or_create(KEY).get_history(most) == theirs


def test_the_memory_of_a_workspace_is_gone_on_with_and_nanobot_reads_it(nanobot, tmp_path):
    """S4-47: MEMORY.md and HISTORY.md in their places, and the counter in line 1. What was there is
    kept, and told to a model here; what was learned here is told to a model there."""
    folder = tmp_path / "workspace" / "memory"
    folder.mkdir(exist_ok=True)
    (folder / "MEMORY.md").write_text("- The user is Ada.\n")
    (folder / "HISTORY.md").write_text("[2026-01-01 10:00] They met.\n\n")
    for number in range(4):
        nanobot.ask("say", key=KEY, role=["user", "assistant"][number % 2], content=f"m{number}")

    keeper = Keeper()
    memory = Memory(tmp_path / "workspace", keeper, window=4, scope="workspace")
    given = {"data": tmp_path / "data", "memory": memory}
    with face.SessionManager(tmp_path / "workspace", **given) as sessions:
        assert "Ada" in sessions.get_memory_context(KEY)
        session = sessions.get_or_create(KEY)
        session.add_message("user", "m4")
        sessions.save(session)

    known = "- The user is Ada.\n- fact m0\n- fact m1\n- fact m2\n"
    assert (folder / "MEMORY.md").read_text() == known
    history = (folder / "HISTORY.md").read_text()
    assert history == "[2026-01-01 10:00] They met.\n\n[2026-02-01 12:00] m0 m1 m2\n\n"
    (line, *_) = files_of(nanobot)[0].read_text().splitlines()
    assert json.loads(line)["last_consolidated"] == 3
    nanobot.ask("start")
    assert nanobot.ask("memory").strip() == f"## Long-term Memory\n{known}".strip()
