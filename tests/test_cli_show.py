"""`holdfast show`: who said what and when, with what was folded, cut off, or is not whole."""

import asyncio
import json
import os
import sqlite3
from datetime import timedelta

import pytest

import holdfast
from cli_conversations import CUT_OFF, FORK, HOSTILE, KEY, conversations
from holdfast import Message
from holdfast.steps import drafts
from postgres_server import server
from sessions_for_tests import asks, call


def test_a_conversation_is_shown_with_its_tools_folded_to_a_line(run):
    """Who, when and what; a call with its result is one line, and so is a thought."""
    status, out, _ = run("show", KEY)

    assert status == 0
    lines = out.splitlines()
    assert lines[0].startswith(f"{KEY}  clerk · anthropic:claude-sonnet-4-5 · 9 messages")
    assert "  ▸ thinking: I should look at the files. (27 characters)" in lines
    assert '  ▸ list_files path="src" depth=2 → ok, 13 bytes' in lines
    assert any(line.startswith("  ▸ fail → failed: ") for line in lines)
    assert "  The invoice of the café was paid in March." in lines
    assert [line for line in lines if "turn " in line][-1].startswith("user  ")
    assert "[an entry of a newer version: poll]" in lines
    assert not any(line.startswith("tool") for line in lines)


def test_full_unfolds_calls_results_and_thoughts(run):
    _, folded, _ = run("show", KEY)
    _, out, _ = run("show", KEY, "--full")

    assert '    "path": "src",' not in folded
    assert '    "path": "src",' in out.splitlines()
    assert "  two" in out.splitlines()
    assert "  Ada said hello." in out.splitlines()  # what the model is shown instead


def test_what_is_folded_says_so_where_it_hides_something(run):
    """The fold stands before the first message that it hides, with what is shown and why."""
    _, out, _ = run("show", KEY)

    lines = out.splitlines()
    fold = lines.index("[folded by hand: the model is shown a summary: it is old]")
    assert "folded" in lines[fold + 1]
    assert sum(" · folded" in line for line in lines) == 2


def test_turns_are_chosen_by_their_numbers(run):
    """One, a range, from one on, up to one; what is not there is an error that says so."""

    def turns(*arguments):
        _, out, _ = run("show", KEY, "--json", *arguments)
        return sorted({each["turn"] for each in json.loads(out)["messages"]})

    assert turns() == [1, 2, 3]
    assert turns("--turn", "2") == [2]
    assert turns("--turn", "2-") == [2, 3]
    assert turns("--turn", "-2") == [1, 2]
    assert turns("--turn", "1-2") == [1, 2]
    assert turns("--last", "1") == [3]
    assert turns("--last", "99") == [1, 2, 3]
    assert turns("--branch", "other", "--turn", "3") == [3]
    assert run("show", KEY, "--turn", "9")[0] == 3
    assert run("show", KEY, "--turn", "x")[0] == 2
    assert run("show", KEY, "--turn", "3-1")[2] == "error: 3-1 ends before it begins: say 1-3\n"
    assert run("show", KEY, "--turn", "1", "--last", "1")[0] == 2


def test_another_branch_is_shown_and_an_unknown_one_named_with_those_there_are(run):
    _, out, _ = run("show", KEY, "--branch", "other")
    status, _, err = run("show", KEY, "--branch", "third")

    assert "Four, I think." in out
    assert "The invoice" not in out
    assert "[here the branch leaves main]" in out
    assert (status, err) == (
        3,
        f"error: there is no branch 'third' in {KEY}: there are main, other\n",
    )


def test_a_turn_that_was_cut_off_is_shown_with_what_came_of_it(run):
    """Nothing of it is in the log yet: the draft has it, and the last line says what it is."""
    _, out, _ = run("show", CUT_OFF)

    lines = out.splitlines()
    assert "  Tell me a story." in lines
    assert "assistant  cut off" in lines
    assert "  Once upon a time" in lines
    assert lines[-1] == "[the turn was cut off, and can be resumed]"
    draft = json.loads(run("show", CUT_OFF, "--json")[1])["draft"]
    assert (draft["text"], draft["partial"], draft["state"]) == (
        "Tell me a story.",
        "Once upon a time",
        "cut off",
    )


def test_json_has_everything_of_each_message(run):
    """What `codec.plain` has, and id, place, turn and time; a program need not ask twice."""
    _, out, _ = run("show", KEY, "--json")

    told = json.loads(out)
    first, second = told["messages"][:2]
    assert (told["key"], told["count"], told["branches"]) == (KEY, 9, ["main", "other"])
    assert (first["role"], first["content"], first["turn"]) == ("user", "Hello, I am Ada.", 1)
    assert (first["seq"], first["position"], first["folded"]) == (1, 0, True)
    assert first["timestamp"].endswith("Z")
    assert second["content"][0] == {"type": "thinking", "text": "I should look at the files."}
    calls = next(each["tool_calls"] for each in told["messages"] if "tool_calls" in each)
    assert [each["name"] for each in calls] == ["list_files", "fail"]
    assert [fold["why"] for fold in told["folds"]] == ["it is old"]
    assert {"started", "branched"} <= {mark["what"] for mark in told["marks"]}


def test_references_are_keys_beginnings_and_places(run):
    """A key, the beginning of one, the latest; one that may be several says which."""
    assert run("show", "cli:dir")[1] == run("show", KEY)[1]
    assert run("show", "@")[1] == run("show")[1] == run("show", HOSTILE)[1]
    status, _, err = run("show", "cli:")
    assert status == 3
    assert all(key in err for key in (KEY, CUT_OFF, FORK))
    assert run("show", "@-99")[0] == 3
    assert run("show", "nobody")[0] == 3


def test_marks_and_erased_messages_are_told(run, tmp_path):
    """Cancelled, abandoned, a tool whose outcome is not known, and what was erased."""
    url = f"sqlite:{tmp_path / 'marks.db'}"
    asyncio.run(_marks(url))

    _, out, _ = run("show", "marks", "--store", url)

    assert "[cancelled: the user has left]" in out
    assert "[this was never answered]" in out
    assert "  Never mind." in out
    assert "▸ rm → outcome unknown" in out
    assert "[message 0 was erased]" in out
    assert "image image/png 3 bytes" in out
    assert "a block of openai" in out


async def _marks(url):
    from holdfast import codec
    from holdfast.entries import Mark
    from holdfast.parts import Image, Opaque

    left = codec.record(Message.user("Never mind.")).decode()
    async with holdfast.open(url) as sessions:
        session = await sessions.get_or_create("marks")
        await session.append(Message.user("secret"), Message.assistant("I see."))
        await session._tenant.append(
            session.id,
            [
                Message.user([Image(data=b"abc", media_type="image/png")]),
                asks(call("c1", "rm")),
                Mark(what="started", about="c1"),
                Message.tool("nobody knows", "c1", is_error=True),
                Mark(what="unknown", about="c1"),
                Message.assistant([Opaque("openai", {"type": "reasoning"})]),
                Mark(what="cancelled", data={"reason": "the user has left"}),
                Mark(what="abandoned", data={"message": left}),
            ],
        )
        record = await sessions._tenant.load("marks")
        await sessions._tenant.erase(record.id, [1])


def test_ids_of_calls_that_are_counted_anew_in_each_answer_are_told_apart(run, tmp_path):
    """Each call is shown with its own result, and a late one stands by itself."""
    url = f"sqlite:{tmp_path / 'ids.db'}"
    asyncio.run(_counted_anew(url))

    lines = run("show", "ids", "--store", url)[1].splitlines()

    assert "  ▸ look at=1 → ok, 3 bytes" in lines
    assert "  ▸ look at=2 → ok, 4 bytes" in lines
    assert "  ▸ result of look: again (5 bytes)" in lines


async def _counted_anew(url):
    async with holdfast.open(url) as sessions:
        session = await sessions.get_or_create("ids")
        await session.append(
            Message.user("Look."),
            asks(call("call_0", "look", at=1)),
            Message.tool("one", "call_0"),
            asks(call("call_0", "look", at=2)),
            Message.tool("four", "call_0"),
            Message.tool("again", "call_0", name="look"),
        )


def test_an_answer_that_is_stored_by_now_is_not_shown_twice(run, tmp_path):
    """A turn that was cut off between its answer and its end: the draft has the answer too."""
    url = f"sqlite:{tmp_path / 'twice.db'}"
    asyncio.run(_stored_by_now(url))

    _, out, _ = run("show", "twice", "--store", url)

    assert out.count("Once upon a time") == 1
    assert out.count("Tell me a story.") == 1
    assert "[the turn was cut off" in out
    assert json.loads(run("show", "twice", "--json", "--store", url)[1])["draft"]["partial"] == ""


async def _stored_by_now(url):
    async with holdfast.open(url) as sessions:
        session = await sessions.get_or_create("twice")
        said = Message.user("Tell me a story.")
        draft = drafts.written(said, "main")
        lease = await session._tenant.begin(session.id, "gone", timedelta(seconds=60), draft)
        await session._tenant.journal(lease, '[["at", 0], ["t", "Once upon a time"]]')
        answer = Message.assistant("Once upon a time")
        await session._tenant.append(session.id, [said, answer], lease=lease)
        await session._tenant.release(lease)


def test_only_the_end_is_read_where_only_the_end_is_shown(tmp_path, run, monkeypatch):
    """Of ten thousand messages `--last 2` reads a few dozen."""
    url = f"sqlite:{tmp_path / 'long.db'}"
    asyncio.run(_long(url))
    read = []
    from holdfast.stores.front import Front

    for name in ("read", "tail"):
        real = getattr(Front, name)

        async def counted(*arguments, _real=real, **options):
            rows = await _real(*arguments, **options)
            read.append(len(rows))
            return rows

        monkeypatch.setattr(Front, name, counted)

    status, out, _ = run("show", "long", "--last", "2", "--store", url)

    assert status == 0
    assert "question 4999" in out
    assert "question 4998" in out
    assert "question 4997" not in out
    assert sum(read) <= 64


async def _long(url):
    async with holdfast.open(url, durability="fast") as sessions:
        session = await sessions.get_or_create("long")
        said = [
            message
            for number in range(5_000)
            for message in (Message.user(f"question {number}"), Message.assistant("answer"))
        ]
        await session._tenant.append(session.id, said)


def test_a_damaged_conversation_says_so_and_hides_no_other(tmp_path, run):
    """Exit status 5 for the one, and everything as it was for those beside it."""
    path = tmp_path / "damaged.db"
    asyncio.run(conversations(f"sqlite:{path}"))
    with sqlite3.connect(path) as db:
        (number,) = db.execute("SELECT number FROM sessions WHERE key = ?", (KEY,)).fetchone()
        db.execute(
            "UPDATE entries SET payload = CAST(replace(replace(CAST(payload AS TEXT), "
            "'Three.', 'Seven.'), 'in March', 'in April') AS BLOB) WHERE session = ?",
            (number,),
        )
    url = f"sqlite:{path}"

    status, _, err = run("show", KEY, "--store", url)
    listed = json.loads(run("ls", "--json", "-l", "--store", url)[1])

    assert status == 5
    assert err.startswith("error: ")
    assert "run verify or restore a backup" in err
    assert "Traceback" not in err
    assert run("show", FORK, "--store", url)[0] == 0
    assert len(listed) == 4
    summed = json.loads(run("usage", "--json", "--store", url)[1])
    assert summed["damaged"] == [KEY]
    assert summed["rows"] == []
    assert run("usage", KEY, "--store", url)[0] == 5
    status, _, err = run("search", "invoice", "--store", url)
    assert (status, "damaged: cli:direct" in err) == (0, True)
    assert run("search", "walrus", "--store", url)[0] == 0
    assert run("tree", KEY, "--store", url)[0] == 5


@pytest.mark.parametrize("kind", ["jsonl", "postgresql"])
def test_all_kinds_of_stores_are_read_alike(home_of_conversations, tmp_path, run, kind):
    """The same conversation from nanobot's files, and from a server."""
    url = f"jsonl:{tmp_path / 'files'}" if kind == "jsonl" else server().database("reading")
    asyncio.run(_copied(f"sqlite:{home_of_conversations / 'data' / 'holdfast.db'}", url))

    for command in (["show", KEY], ["search", "invoice"], ["tree", KEY], ["usage", KEY]):
        theirs, ours = run(*command, "--json", "--store", url), run(*command, "--json")
        assert theirs[0] == ours[0] == 0
        assert theirs[1] == ours[1]


def test_a_store_in_memory_has_nothing_to_read(run):
    """It is forgotten at the end of each command: that is said, and not that it is empty."""
    status, _, err = run("show", KEY, "--store", "memory:")

    assert (status, err.startswith("error: memory: is forgotten")) == (2, True)


async def _copied(source, target):
    async with holdfast.open(source) as sessions:
        await sessions.copy(target)


@pytest.mark.parametrize("command", [["show"], ["context"], ["tree"], ["usage", "@"]])
def test_where_there_is_nothing_yet_the_way_in_is_named(command, tmp_path, run, monkeypatch):
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))

    status, out, err = run(*command)

    assert (status, out) == (3, "")
    assert err.endswith("holdfast chat begins one\n")
    assert not os.listdir(tmp_path)
