"""Memory: older messages are summarised exactly once, behind the turns, and nothing is lost."""

import asyncio
import json
from datetime import timedelta

import pytest

import holdfast
from holdfast import Message, sync
from holdfast.errors import Busy, InvalidInput, Overloaded, ProtocolError, StoreError
from holdfast.events import Consolidated, ConsolidationFailed, ConsolidationStarted
from holdfast.memory import Memory
from holdfast.testing import FakeProvider
from memories import (
    KEY,
    Keeper,
    calls_with,
    counter,
    entries,
    facts,
    fast_folder,
    named,
    remembering,
    saves,
)
from sessions_for_tests import asynchronous, until

tmp_path = fast_folder
URLS = pytest.mark.parametrize("scheme", ["memory:", "sqlite", "jsonl"])


def place(scheme, tmp_path):
    names = {"sqlite": f"sqlite:{tmp_path}/chats.db", "jsonl": f"jsonl:{tmp_path}/chats"}
    return names.get(scheme, scheme)


# Exactly once


@URLS
@asynchronous
async def test_older_messages_are_summarised_behind_a_turn_and_the_counter_moves(scheme, tmp_path):
    """S4-39, S4-40, S4-38: in the background, once `window` are new; the last half stays."""
    async with remembering(place(scheme, tmp_path), tmp_path) as (sessions, memory, keeper):
        session = await sessions.get_or_create(KEY)
        for n in range(4):
            await session.send(f"say {n}")
        assert keeper.requests == []
        await session.send("say 4")
        await until(lambda: len(entries(memory, session)) == 1)
        await until(lambda: not memory._running)
        await session.refresh()

        assert counter(session) == 5
        assert len(facts(memory, session)) == 5
        assert (await memory.status(session))[:3] == (5, 5, False)


@asynchronous
async def test_a_turn_does_not_wait_for_it_and_close_does(tmp_path):
    """S4-39: the model that keeps is slow, and the turn is over; what was begun is finished."""
    go = asyncio.Event()

    async def slow(request):
        await go.wait()
        return saves()

    async with remembering("memory:", tmp_path, slow, window=2) as (sessions, memory, keeper):
        session = await sessions.get_or_create(KEY)
        async with asyncio.timeout(5):
            await session.send("hello")
        await until(lambda: keeper.requests)
        assert (await memory.status(session)).is_running
        assert entries(memory, session) == []
        asyncio.get_running_loop().call_later(0.05, go.set)

    assert entries(memory, session) == ["[2026-02-01 12:00] They met."]


@asynchronous
async def test_only_one_runs_for_a_session_however_many_ask(tmp_path):
    """S4-39: those that come meanwhile find nothing left to do."""
    running, most = 0, 0

    class Slow(Keeper):
        async def complete(self, *args, **options):
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.01)
            running -= 1
            return await super().complete(*args, **options)

    async with remembering("memory:", tmp_path, keeper=Slow()) as (sessions, memory, keeper):
        session = await sessions.get_or_create(KEY)
        memory.after = lambda *_: None
        await session.append(*named(0, 20))
        done = await asyncio.gather(*(memory.consolidate(session) for _ in range(8)))

        assert sum(done) == 15 and most == 1
        assert len(entries(memory, session)) == len(keeper.requests) == 1


@URLS
@asynchronous
async def test_messages_that_arrive_meanwhile_are_safe(scheme, tmp_path):
    """B5: the counter moves by what was summarised, and not by what is there by then."""
    opened = []

    async def meanwhile(request):
        sessions = opened[0]
        session = await sessions.get(KEY)
        await session.append(*named(60, 6))
        return Keeper().answer(request.messages[0].text)

    url = place(scheme, tmp_path)
    async with remembering(url, tmp_path, meanwhile, window=50) as (sessions, memory, _):
        opened.append(sessions)
        session = await sessions.get_or_create(KEY)
        memory.after = lambda *_: None
        await session.append(*named(0, 60))
        assert await memory.consolidate(session) == 35
        await session.refresh()
        assert counter(session) == 35
        assert await memory.consolidate(session) == 6

        assert facts(memory, session) == [f"- fact m{n}" for n in range(41)]
        assert " ".join(entries(memory, session)).count("m34") == 1


@asynchronous
async def test_a_window_of_one_summarises_everything_each_time(tmp_path):
    """B8: with nothing to keep back."""
    async with remembering("memory:", tmp_path, window=1) as (sessions, memory, _):
        session = await sessions.get_or_create(KEY)
        await session.append(*named(0, 1))
        await until(lambda: len(entries(memory, session)) == 1)
        await until(lambda: not memory._running)
        await session.append(*named(1, 2))
        await until(lambda: len(entries(memory, session)) == 2)

        assert facts(memory, session) == ["- fact m0", "- fact m1", "- fact m2"]


@pytest.mark.parametrize("wrong", [-3, 999])
@asynchronous
async def test_a_counter_that_is_wrong_loses_nothing(wrong, tmp_path):
    """B8, S4-22: below zero or beyond the end, it says nothing."""
    async with remembering("memory:", tmp_path, window=50) as (sessions, memory, _):
        session = await sessions.get_or_create(KEY)
        await session.append(*named(0, 30))
        await session._tenant.update(session.id, {"counters": {"last_consolidated": wrong}})

        assert await memory.consolidate(session) == 5
        assert facts(memory, session) == [f"- fact m{n}" for n in range(5)]


@asynchronous
async def test_what_another_branch_has_summarised_is_not_said_of_this_one(tmp_path):
    """S4-38: a counter means the messages of one branch; shared ones are not done twice."""
    async with remembering("memory:", tmp_path) as (sessions, memory, _):
        session = await sessions.get_or_create(KEY)
        memory.after = lambda *_: None
        await session.append(*named(0, 20))
        assert await memory.consolidate(session) == 15
        await session.revert(3)
        await session.append(*named(100, 10))
        assert (await memory.status(session))[:2] == (6, 10)
        assert await memory.consolidate(session) == 5
        await session.checkout("main")
        assert (await memory.status(session))[:2] == (15, 5)

        told = [f"- fact m{n}" for n in (*range(15), *range(100, 105))]
        assert facts(memory, session) == told


@asynchronous
async def test_the_counter_is_nanobots_in_its_files(tmp_path):
    """S4-38, S4-47: line 1 of its file has it, and memory is where nanobot has it."""
    options = {"scope": "workspace"}
    url = f"jsonl:{tmp_path}/sessions"
    async with remembering(url, tmp_path, options=options) as (sessions, memory, _):
        session = await sessions.get_or_create(KEY)
        memory.after = lambda *_: None
        await session.append(*named(0, 12))
        await memory.consolidate(session)

    line = json.loads(next((tmp_path / "sessions").glob("*.jsonl")).read_text().splitlines()[0])
    assert line["last_consolidated"] == 7
    assert (tmp_path / "memory" / "MEMORY.md").read_text().splitlines()[0] == "- fact m0"
    history = (tmp_path / "memory" / "HISTORY.md").read_text()
    assert history == "[2026-02-01 12:00] m0 m1 m2 m3 m4 m5 m6\n\n"


# What the model is told, and what it says


@asynchronous
async def test_the_model_is_told_the_conversation_as_lines_and_what_is_known(tmp_path):
    """S4-45, S4-48: who, when, which tools; results are cut to 500 characters, pictures named."""
    from datetime import UTC, datetime

    from holdfast import ToolCall
    from holdfast.parts import Image, Text

    time = datetime(2026, 2, 1, 12, 30, tzinfo=UTC)
    call = ToolCall(id="c", name="look", arguments="{}")
    said = [
        Message.user((Text("What is this?"), Image(url="https://a.b/c.png")), timestamp=time),
        Message.assistant("Let me see.", [call], timestamp=time),
        Message.tool("x" * 600, tool_call_id="c", timestamp=time),
        Message.assistant(None, [call.replace(id="d")], timestamp=time),
    ]
    async with remembering("memory:", tmp_path) as (sessions, memory, keeper):
        session = await sessions.get_or_create(KEY)
        await session.append(*said)
        await memory.consolidate(session, is_all=True)
        kept = [message.text for message in await session.read()]

    request = keeper.requests[0]
    assert request.system == (
        "You are a memory consolidation agent. "
        "Call the save_memory tool with your consolidation of the conversation."
    )
    assert request.messages[0].text == (
        "Process this conversation and call the save_memory tool with your consolidation.\n\n"
        "## Current Long-term Memory\n(empty)\n\n## Conversation to Process\n"
        "[2026-02-01T12:30] USER: What is this?\n[image]\n"
        "[2026-02-01T12:30] ASSISTANT [tools: look]: Let me see.\n"
        f"[2026-02-01T12:30] TOOL: {'x' * 500}\n... (truncated)"
    )
    assert request.tools[0].name == "save_memory"
    assert request.tools[0].parameters["required"] == ("history_entry", "memory_update")
    assert kept[2] == "x" * 600


ARGUMENTS = {"history_entry": "[2026-02-01 12:00] Met.", "memory_update": "- a\n"}


@pytest.mark.parametrize(
    ("arguments", "entry", "memory"),
    [
        (json.dumps(ARGUMENTS), "[2026-02-01 12:00] Met.", "- a\n"),
        (json.dumps(json.dumps(ARGUMENTS)), "[2026-02-01 12:00] Met.", "- a\n"),
        (json.dumps([ARGUMENTS]), "[2026-02-01 12:00] Met.", "- a\n"),
        (
            '{"history_entry": {"what": "é"}, "memory_update": ["a", 1]}',
            '{"what": "é"}',
            '["a", 1]',
        ),
        ('{"history_entry": "x \\ud800  \\n", "memory_update": ""}', "x \ufffd", ""),
    ],
)
@asynchronous
async def test_arguments_may_be_text_or_an_object_of_anything(arguments, entry, memory, tmp_path):
    """S4-46, S4-47: what is not text becomes JSON text; an empty update leaves what is there."""
    async with remembering("memory:", tmp_path, calls_with(arguments)) as (sessions, kept, _):
        session = await sessions.get_or_create(KEY)
        await session.append(*named(0, 4))
        await kept.consolidate(session, is_all=True)

        assert kept.history(session) == entry + "\n\n"
        assert kept.text(session) == memory


@pytest.mark.parametrize(
    "answer",
    [
        "I have nothing to save.",
        Message.assistant(None, [holdfast.ToolCall(id="c", name="other", arguments="{}")]),
        calls_with("{"),
        calls_with("[1, 2]"),
        calls_with('{"history_entry": "x"}'),
        calls_with('{"history_entry": null, "memory_update": "x"}'),
        saves(entry="  \n"),
        saves(memory="x" * 200_001),
    ],
)
@asynchronous
async def test_an_answer_that_saves_nothing_is_a_failure_and_changes_nothing(answer, tmp_path):
    """S4-46: the counter stays, and so do both files."""
    async with remembering("memory:", tmp_path, answer) as (sessions, memory, _):
        session = await sessions.get_or_create(KEY)
        await session.append(*named(0, 4))
        with pytest.raises(ProtocolError):
            await memory.consolidate(session, is_all=True)
        await session.refresh()

        assert counter(session) == 0
        assert memory.text(session) == memory.history(session) == ""
        assert (await memory.status(session)).failures == 1


@asynchronous
async def test_memory_is_rewritten_only_if_it_changed_and_what_it_was_is_kept(tmp_path):
    """S4-47: at most `versions_max` earlier versions."""
    answers = [saves(memory=f"- version {n}\n") for n in (1, 1, 2, 3, 4)]
    options = {"scope": "workspace", "versions_max": 2}
    async with remembering("memory:", tmp_path, *answers, options=options) as (sessions, memory, _):
        session = await sessions.get_or_create(KEY)
        path = tmp_path / "memory" / "MEMORY.md"
        inodes = []
        for n in range(5):
            await session.append(*named(n, 1))
            await memory.consolidate(session, is_all=True)
            inodes.append(path.stat().st_ino)

    versions = tmp_path / "memory" / ".holdfast" / "versions"
    assert inodes[0] == inodes[1] and len({*inodes}) >= 2
    assert {each.name: each.read_text() for each in versions.iterdir()} == {
        "4.md": "- version 2\n",
        "5.md": "- version 3\n",
    }
    for each in (path, *(tmp_path / "memory").rglob("*.json*"), *versions.iterdir()):
        assert each.stat().st_mode & 0o077 == 0


# Failures


@asynchronous
async def test_a_model_that_fails_changes_nothing_and_the_third_time_the_text_is_kept(tmp_path):
    """S4-49: the messages themselves go into HISTORY.md, so that nothing is lost."""
    events = []
    answers = [Overloaded(), "no", Overloaded()]
    options = {"on_event": events.append}
    async with remembering("memory:", tmp_path, *answers, options=options) as (sessions, memory, _):
        session = await sessions.get_or_create(KEY)
        await session.append(*named(0, 9))
        for kind in (Overloaded, ProtocolError):
            with pytest.raises(kind):
                await memory.consolidate(session)
            await session.refresh()
            assert counter(session) == 0
            assert memory.text(session) == memory.history(session) == ""
        assert await memory.consolidate(session) == 4
        await session.refresh()

        assert counter(session) == 4
        kept = memory.history(session)
        assert "[RAW] 4 messages\n" in kept
        assert [kept.count(f": m{n}\n") for n in range(5)] == [1, 1, 1, 1, 0]
        assert memory.text(session) == ""
        assert (await memory.status(session)).failures == 0
        kinds = [type(each) for each in events]
        assert kinds == [ConsolidationStarted, ConsolidationFailed] * 3 + [Consolidated]
        assert events[-1].is_raw and (events[-1].start, events[-1].stop) == (0, 4)
        assert [each.attempt for each in events[1:6:2]] == [1, 2, 3]


@asynchronous
async def test_failures_are_counted_across_processes(tmp_path):
    """S4-49: a program that runs once a day comes to the third as well."""
    for n in range(3):
        answers = [Overloaded()]
        url = f"sqlite:{tmp_path}/chats.db"
        async with remembering(url, tmp_path, *answers) as (sessions, memory, _):
            session = await sessions.get_or_create(KEY)
            if not n:
                await session.append(*named(0, 9))
            if n < 2:
                with pytest.raises(Overloaded):
                    await memory.consolidate(session)
            else:
                assert await memory.consolidate(session) == 4


@asynchronous
async def test_a_failure_in_the_background_breaks_no_turn_and_is_tried_again(tmp_path, caplog):
    """S4-39, S4-49: it is told to the observer and readable afterwards."""
    options = {"on_event": lambda _: 1 / 0}
    answers = [Overloaded()]
    async with remembering("memory:", tmp_path, *answers, window=2, options=options) as found:
        sessions, memory, _ = found
        session = await sessions.get_or_create(KEY)
        assert (await session.send("one")).text == "Yes."
        await until(lambda: not memory._running)
        assert (
            "Overloaded" in (await memory.status(session)).error
            or (await memory.status(session)).failures == 1
        )
        await session.send("two")
        await until(lambda: entries(memory, session))

        assert (await memory.status(session)).failures == 0
    assert "could not be consolidated" in caplog.text


@asynchronous
async def test_a_model_that_raises_anything_in_the_background_breaks_no_turn(tmp_path, caplog):
    """S4-39: a provider may be anybody's. It is told in the log, and is asked again."""

    def broken(_):
        raise ZeroDivisionError

    async with remembering("memory:", tmp_path, broken, window=2) as (sessions, memory, _):
        session = await sessions.get_or_create(KEY)
        assert (await session.send("one")).text == "Yes."
        await until(lambda: not memory._running)
        await session.send("two")
        await until(lambda: entries(memory, session))

    assert "ZeroDivisionError" in caplog.text


@asynchronous
async def test_more_than_a_model_can_read_is_summarised_in_pieces(tmp_path):
    """S4-49: each piece by itself, and each counts when it is done."""
    said = [Message.user(f"m{n} " + "x" * 3_000 + f": m{n}") for n in range(20)]
    keeper = Keeper(context=8_000)
    async with remembering("memory:", tmp_path, keeper=keeper) as (sessions, memory, _):
        session = await sessions.get_or_create(KEY)
        memory.after = lambda *_: None
        await session.append(*said)
        assert await memory.consolidate(session, is_all=True) == 20

        assert len(keeper.requests) > 2
        assert facts(memory, session) == [f"- fact m{n}" for n in range(20)]
        assert " ".join(entries(memory, session)).count("m7") == 1


# Starting anew


@URLS
@asynchronous
async def test_starting_anew_summarises_everything_and_then_clears(scheme, tmp_path):
    """S4-41, S4-44: before clearing; the counter is 0 afterwards, and memory keeps what it has."""
    async with remembering(place(scheme, tmp_path), tmp_path) as (sessions, memory, _):
        session = await sessions.get_or_create(KEY)
        await session.append(*named(0, 7))
        await memory.start_anew(session)

        assert session.count == 0 and session.messages == () and counter(session) == 0
        assert facts(memory, session) == [f"- fact m{n}" for n in range(7)]
        await session.append(*named(7, 3))
        await memory.start_anew(session)
        assert facts(memory, session) == [f"- fact m{n}" for n in range(10)]


@asynchronous
async def test_starting_anew_keeps_everything_when_the_model_fails(tmp_path):
    """S4-41, S4-44, B7: a typed error says so, and it can be done again."""
    async with remembering("memory:", tmp_path, Overloaded()) as (sessions, memory, _):
        session = await sessions.get_or_create(KEY)
        await session.append(*named(0, 7))
        with pytest.raises(Overloaded) as failed:
            await memory.start_anew(session)
        await session.refresh()

        assert "was not cleared" in failed.value.__notes__[0]
        assert [message.text for message in await session.read()] == [f"m{n}" for n in range(7)]
        await memory.start_anew(session)
        assert session.count == 0 and len(facts(memory, session)) == 7


@asynchronous
async def test_what_comes_while_it_starts_anew_is_summarised_too(tmp_path):
    """B7: a message that arrives during the model call is neither cleared unseen nor lost."""
    opened = []

    async def meanwhile(request):
        sessions = opened[0]
        await (await sessions.get(KEY)).append(*named(7, 2))
        return Keeper().answer(request.messages[0].text)

    async with remembering("memory:", tmp_path, meanwhile) as (sessions, memory, _):
        opened.append(sessions)
        session = await sessions.get_or_create(KEY)
        await session.append(*named(0, 7))
        await memory.start_anew(session)

        assert session.count == 0
        assert facts(memory, session) == [f"- fact m{n}" for n in range(9)]


@asynchronous
async def test_starting_anew_clears_nothing_under_a_turn_that_runs(tmp_path):
    """S4-41: what that turn says would be lost; what was said before is summarised by then."""
    async with remembering("memory:", tmp_path) as (sessions, memory, _):
        session = await sessions.get_or_create(KEY)
        await session.append(*named(0, 3))
        lease = await session._tenant.begin(session.id, "another", timedelta(hours=1), {})
        with pytest.raises(Busy) as failed:
            await memory.start_anew(session)

        assert "was not cleared" in failed.value.__notes__[0]
        assert len(await session.read()) == 3
        await session._tenant.release(lease, drop=True)
        await memory.start_anew(session)
        assert session.count == 0 and len(facts(memory, session)) == 3


# Where it may not be used


@pytest.mark.parametrize(
    "wrong",
    [
        {"window": 0},
        {"window": True},
        {"window": "9"},
        {"scope": "world"},
        {"scope": ["session"]},
        {"failures_max": 0},
        {"versions_max": -1},
        {"model": None},
        {"model": "small"},
        {"model": "nobody:small"},
        {"folder": ""},
        {"folder": 3},
    ],
    ids=str,
)
def test_what_a_memory_cannot_be_made_of_is_refused(wrong, tmp_path):
    with pytest.raises(InvalidInput):
        Memory(**{"folder": tmp_path, "model": "ollama:small", **wrong})


@asynchronous
async def test_a_memory_belongs_to_one_manager_at_a_time(tmp_path):
    """The next one may have it: when that one is closed, and when a store could not be opened."""
    memory = Memory(tmp_path, FakeProvider())
    (tmp_path / "folder.db").mkdir()
    with pytest.raises(StoreError):
        await holdfast.open(f"sqlite:{tmp_path}/folder.db", memory=memory)
    for _ in range(2):
        async with holdfast.open("memory:", memory=memory) as sessions:
            assert sessions.memory is memory
            with pytest.raises(InvalidInput, match="make one for each"):
                await holdfast.open("memory:", memory=memory)
            session = await sessions.get_or_create(KEY)
        assert memory.text(session) == ""
    with pytest.raises(InvalidInput, match="is a holdfast"):
        holdfast.open("memory:", memory=str(tmp_path))


@asynchronous
async def test_a_session_is_asked_about_and_not_its_key(tmp_path):
    async with remembering("memory:", tmp_path) as (_, memory, _):
        for ask in (memory.text, memory.history, memory.paths):
            with pytest.raises(InvalidInput, match="not 'cli:direct'"):
                ask(KEY)
        for work in (memory.consolidate, memory.start_anew, memory.status):
            with pytest.raises(InvalidInput, match="not 'cli:direct'"):
                await work(KEY)


def test_a_memory_without_await(tmp_path):
    """S4-41: synchronous code has all of it, by the manager's own memory or by one of its own."""
    given = sync.Memory(tmp_path, Keeper(), 4)
    with sync.open("memory:", model=FakeProvider("Yes."), memory=given) as sessions:
        session = sessions.get_or_create(KEY)
        session.append(*named(0, 3))
        assert sessions.memory is given
        assert given.consolidate(session) == 1
        given.start_anew(session)
        assert session.count == 0
        assert given.text(session).splitlines() == ["- fact m0", "- fact m1", "- fact m2"]
        assert given.status(session).waiting == 0
