"""Jaato's session files: read, written, and what jaato configures."""

import json
import os
import stat

import pytest

from holdfast import Message
from holdfast.adapters import jaato
from holdfast.codec import jaato_state
from holdfast.errors import InvalidInput, StoreUnavailable
from holdfast.frozen import FrozenDict
from holdfast.parts import Image, Text
from holdfast.retention import Retention
from holdfast.testing import FakeProvider
from sessions_for_tests import asks, asynchronous, call, opened, tool_of

URL = "memory:"


def state(**changed):
    """A file as jaato writes it."""
    return {
        "version": "2.1",
        "session_id": "20260201_120000",
        "description": "Tea",
        "created_at": "2026-02-01T12:00:00.000001",
        "updated_at": "2026-02-01T12:05:00",
        "turn_count": 1,
        "turn_accounting": [{"prompt": 10, "output": 5, "total": 15}],
        "user_inputs": ["Which tea?"],
        "metadata": {"a": 1},
        "connection": {"project": "p", "location": "l", "model": "gemini"},
        "workspace_path": "/w",
        "history": [
            {"role": "user", "parts": [{"type": "text", "text": "Which tea? é"}]},
            {
                "role": "model",
                "parts": [{"type": "function_call", "id": "c1", "name": "look", "args": {"a": 1}}],
            },
            {
                "role": "tool",
                "parts": [
                    {
                        "type": "function_response",
                        "call_id": "c1",
                        "name": "look",
                        "result": {"tea": "Earl Grey"},
                        "is_error": False,
                    }
                ],
            },
            {
                "role": "model",
                "parts": [
                    {"type": "text", "text": "Earl Grey."},
                    {"type": "inline_data", "mime_type": "image/png", "data": "AAEC"},
                    {"type": "unknown", "repr": "<Part>"},
                ],
            },
        ],
        "budget_state": {"used": 3},
        "interrupted_turn": None,
        "later": [1],
    } | changed


def written(tmp_path, name="20260201_120000.json", **changed):
    path = tmp_path / name
    path.write_text(json.dumps(state(**changed), indent=2, ensure_ascii=False))
    return path


@asynchronous
async def test_a_session_of_jaato_goes_on_here_and_back(tmp_path):
    """S2-78: every name and every kind of part comes back, also those that nobody knows here."""
    async with opened(URL, model=FakeProvider("Boil it.")) as (sessions, _):
        session = await jaato.load(sessions, written(tmp_path))
        assert session.key == "jaato:20260201_120000"
        assert [each.role for each in session.messages] == ["user", "model", "tool", "model"]
        assert json.loads(session.messages[2].results[0].content) == {"tea": "Earl Grey"}
        await session.send("How?")

        path = await jaato.save(session, tmp_path)

        found = json.loads(path.read_text())
        first = state()
        assert list(found)[:14] == list(first)[:14]
        same = set(first) - {"updated_at", "session_id", "turn_count", "turn_accounting"}
        for name in same - {"user_inputs", "metadata", "history"}:
            assert found[name] == first[name], name
        assert found["metadata"] == {"a": 1, "holdfast_id": session.id}
        assert [each["parts"] for each in found["history"][:4]] == [
            each["parts"] for each in first["history"]
        ]
        assert found["history"][4]["parts"] == [{"type": "text", "text": "How?"}]
        assert (found["turn_count"], found["user_inputs"]) == (2, ["Which tea? é", "How?"])
        assert "\\u00e9" not in path.read_text() and '\n  "version": "2.1"' in path.read_text()


@asynchronous
async def test_what_was_said_here_is_a_file_of_jaato(tmp_path):
    """S2-78: turns with their tokens, and ids that come back."""
    async with opened(URL, asks(call("c1", "look")), "Done.", tools=[tool_of("look")]) as (
        sessions,
        _,
    ):
        session = await sessions.get_or_create("cli:direct")
        await session.send([Text("Look!"), Image(data=b"\x00\x01", media_type="image/png")])
        path = await jaato.save(session, tmp_path)

        again = await jaato.load(sessions, path, key="cli:again")

        there, here = await again.read(), await session.read()
        assert [each.id for each in there] == [each.id for each in here]
        assert [each.calls for each in there] == [each.calls for each in here]
        assert [each.results for each in there] == [each.results for each in here]
        assert there[0].content == here[0].content and there[3].text == "Done."
        found = json.loads(path.read_text())
        (turn,) = found["turn_accounting"]
        assert turn["total"] == turn["prompt"] + turn["output"] > 0
        assert path.name == found["session_id"] + ".json"
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


@pytest.mark.parametrize("version", ["1.0", "1.9", "2.0", "2.1", "2.9", 2])
def test_versions_1_and_2_are_read(version):
    """S2-78: and a field that an older one lacks is no reason to refuse it."""
    old = {"version": version, "history": state()["history"]}

    assert len(jaato_state.decode(json.dumps(old)).messages) == 4


@pytest.mark.parametrize(
    "changed",
    [
        {"version": "3.0"},
        {"version": None},
        {"history": None},
        {"history": ["x"]},
        {"metadata": []},
        {"user_inputs": "x"},
        {"turn_count": "1"},
    ],
)
def test_what_is_no_session_of_jaato_is_refused(changed):
    """S2-78: with what is wrong; nothing is read in part."""
    with pytest.raises(InvalidInput):
        jaato_state.decode(json.dumps(state(**changed)))
    with pytest.raises(InvalidInput):
        jaato_state.decode(json.dumps(state())[:-30])


def test_a_file_of_nothing_has_every_name():
    """S2-78: null or empty where nothing is known."""
    found = json.loads(jaato_state.encode([], FrozenDict()))

    assert list(found) == list(jaato_state.NAMES)
    assert (found["history"], found["metadata"], found["description"]) == ([], {}, None)


@asynchronous
async def test_two_sessions_of_one_second_get_two_files(tmp_path):
    """B11: one never overwrites the other, and each is written again in its own place."""
    async with opened(URL) as (sessions, _):
        found = [await sessions.get_or_create(f"cli:{n}") for n in range(3)]
        for each in found:
            await each.append(Message.user(each.key))
        paths = [await jaato.save(each, tmp_path) for each in found]
        (tmp_path / paths[0].name).with_suffix(".txt").write_text("no session")

        assert [await jaato.save(each, tmp_path) for each in found] == paths

        assert len(set(paths)) == 3
        for each, path in zip(found, paths, strict=True):
            assert json.loads(path.read_text())["user_inputs"] == [each.key]


@asynchronous
async def test_a_session_that_is_there_is_not_added_to(tmp_path):
    """S2-78: a file is the beginning of a session, or of none."""
    async with opened(URL) as (sessions, _):
        await jaato.load(sessions, written(tmp_path))
        with pytest.raises(InvalidInput, match="has messages"):
            await jaato.load(sessions, written(tmp_path))


@asynchronous
async def test_a_link_in_the_place_of_a_file_is_refused(tmp_path):
    """B54: who puts one there would have us write anywhere."""
    async with opened(URL) as (sessions, _):
        session = await sessions.get_or_create("cli:direct")
        path = await jaato.save(session, tmp_path)
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(StoreUnavailable):
            await jaato.save(session, tmp_path)


@asynchronous
async def test_what_jaato_configures_is_asked_of_the_manager(tmp_path):
    """S2-79, B12: nothing has to be saved on exit or after so many turns; sessions are listed with
    the newest first, the last one is resumed by asking for it, and the oldest of more than 20 go
    only when somebody says so; removing tells whether there was anything."""
    url = f"sqlite:{tmp_path / 'chats.db'}"
    async with opened(url, *["Hello."] * 22) as (sessions, _):
        for number in range(22):
            await (await sessions.get_or_create(f"cli:{number}")).send("Hi.")
        async with opened(url) as (others, _):  # nobody has closed anything
            (last,) = (await others.list(limit=1)).items
            assert last.key == "cli:21"
            assert len((await others.get(last.key)).messages) == 2

        page = await sessions.list(limit=100)
        assert [each.key for each in page.items] == [f"cli:{n}" for n in range(21, -1, -1)]
        await sessions.retain(Retention(count=20))

        left = {each.key for each in (await sessions.list(limit=100)).items}
        assert left == {f"cli:{n}" for n in range(2, 22)}
        assert await sessions.delete("cli:21") is True
        assert await sessions.delete("cli:21") is False
