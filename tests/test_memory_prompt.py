"""What a model is shown of a memory, and when: a prefix that is cached stays as it is."""

from itertools import pairwise

import pytest

from holdfast import Settings
from holdfast.codec import plain
from holdfast.consolidation.wording import in_system
from holdfast.testing import FakeProvider
from holdfast.window.truncate import Truncate
from memories import KEY, entries, fast_folder, named, remembering, saves
from sessions_for_tests import asynchronous, until

tmp_path = fast_folder
WORKSPACE = {"scope": "workspace"}


def rendered(request):
    """A request as bytes: the system prompt, then the messages."""
    return b"\n".join([(request.system or "").encode(), *map(plain, request.messages)])


def write(tmp_path, text):
    folder = tmp_path / "memory"
    folder.mkdir(exist_ok=True)
    (folder / "MEMORY.md").write_text(text)


@pytest.mark.parametrize(
    ("system", "memory", "wanted"),
    [
        ("Be kind.", "- Ada\n", "Be kind.\n\n## Long-term Memory\n- Ada\n"),
        (None, "- Ada", "## Long-term Memory\n- Ada"),
        ("Be kind.", "", "Be kind."),
        ("Be kind.", " \n", "Be kind."),
        (None, "", None),
    ],
)
def test_memory_stands_behind_the_system_prompt_under_its_heading(system, memory, wanted):
    """S4-47: and nothing does where there is none."""
    assert in_system(system, memory) == wanted


@asynchronous
async def test_what_is_known_is_shown_before_the_first_turn(tmp_path):
    """S4-47: nothing is cached then; also what somebody wrote by hand."""
    write(tmp_path, "- The user is Ada.\n")
    chat = FakeProvider("Hello Ada.")
    async with remembering("memory:", tmp_path, chat=chat, options=WORKSPACE) as (sessions, _, _):
        session = await sessions.get_or_create(KEY, settings=Settings(system="Be kind."))
        shown = session.window().system
        await session.send("Who am I?")

    assert chat.requests[0].system == "Be kind.\n\n## Long-term Memory\n- The user is Ada.\n"
    assert shown == chat.requests[0].system


@asynchronous
async def test_the_prefix_stays_the_same_while_memory_changes_until_a_fold(tmp_path):
    """
    Each request begins with the very bytes of the one before, in another process too, whatever
    becomes of MEMORY.md; at a fold the new text comes in.
    """
    url, requests = f"sqlite:{tmp_path}/chats.db", []
    quiet = {"options": WORKSPACE, "window": 1_000}
    write(tmp_path, "- at first\n")
    for process in range(3):
        chat = FakeProvider(*["Yes."] * 4)
        async with remembering(url, tmp_path, chat=chat, **quiet) as (sessions, _, _):
            session = await sessions.get_or_create(KEY)
            for n in range(2):
                await session.send(f"say {process} {n}")
                write(tmp_path, f"- later {process} {n}\n")
        requests += chat.requests

    for before, after in pairwise(map(rendered, requests)):
        assert after.startswith(before + b"\n")
    assert {request.system for request in requests} == {"## Long-term Memory\n- at first\n"}

    chat = FakeProvider("Yes.", "Yes.")
    async with remembering(url, tmp_path, chat=chat, **quiet) as (sessions, _, _):
        session = await sessions.get(KEY)
        assert await session.compact(Truncate(keep_turns=1))
        write(tmp_path, "- after the fold\n")
        await session.send("and now?")
        assert session.window().system == chat.requests[0].system
    assert chat.requests[0].system == "## Long-term Memory\n- later 2 1\n"


@asynchronous
async def test_a_fold_in_a_turn_brings_in_what_is_known_by_then(tmp_path):
    """S4-47: the call behind the fold is the first that sees it."""
    write(tmp_path, "- old\n")
    chat = FakeProvider(*["Yes."] * 40, context=2_000)
    settings = Settings(budget={"reserve": 200, "keep_turns": 1}, max_tokens=100)
    async with remembering(
        "memory:", tmp_path, chat=chat, options=WORKSPACE, policy=Truncate(keep_turns=1)
    ) as (sessions, memory, _):
        memory.after = lambda *_: None
        session = await sessions.get_or_create(KEY, settings=settings)
        for n in range(12):
            await session.send(f"{n} " + "word " * 120)
            write(tmp_path, "- new\n")
            if session.folds:
                break
        await session.send("again")

    told = [request.system for request in chat.requests]
    first = told.index("## Long-term Memory\n- new\n")
    assert first > 1
    assert set(told[:first]) == {"## Long-term Memory\n- old\n"}
    assert set(told[first:]) == {"## Long-term Memory\n- new\n"}


@asynchronous
async def test_a_session_that_was_asked_before_sees_it_at_its_next_fold(tmp_path):
    """What was summarised behind a turn does not change what the next turn begins with."""
    chat = FakeProvider(*["Yes."] * 9)
    async with remembering("memory:", tmp_path, *[saves()] * 4, chat=chat, window=4) as found:
        sessions, memory, _ = found
        session = await sessions.get_or_create(KEY)
        await session.send("one")
        await session.send("two")
        await until(lambda: entries(memory, session))
        await session.send("three")
        assert {request.system for request in chat.requests} == {None}
        await session.fold(0, 2)
        await session.send("four")

        assert chat.requests[-1].system == "## Long-term Memory\n- Ada lives in Turin.\n"


@asynchronous
async def test_starting_anew_begins_with_what_was_just_summarised(tmp_path):
    """S4-41: the new conversation has nothing cached."""
    chat = FakeProvider(*["Yes."] * 9)
    async with remembering("memory:", tmp_path, saves(), chat=chat) as (sessions, memory, _):
        session = await sessions.get_or_create(KEY)
        await session.send("I live in Turin.")
        await memory.start_anew(session)
        await session.send("Where do I live?")

    assert [request.system for request in chat.requests] == [
        None,
        "## Long-term Memory\n- Ada lives in Turin.\n",
    ]


@asynchronous
async def test_what_memory_writes_is_redacted(tmp_path):
    """The hook that messages go through before they are stored goes over what a model wrote."""

    def redact(message):
        return message.replace(content=(message.text or "").replace("zqxjvk", "***"))

    answers = [saves("[2026-02-01 12:00] zqxjvk", "- zqxjvk\n")]
    async with remembering("memory:", tmp_path, *answers, redact=redact) as (sessions, memory, _):
        session = await sessions.get_or_create(KEY)
        await session.append(*named(0, 2))
        await memory.consolidate(session, is_all=True)
        assert memory.text(session) == "- ***\n"

    for path in (tmp_path / "memory").rglob("*"):
        assert path.is_dir() or b"zqxjvk" not in path.read_bytes()
