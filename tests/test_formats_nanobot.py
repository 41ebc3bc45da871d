"""Nanobot's session files: out, back, twice, cut off."""

import asyncio
import json
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings

import strategies as our
from archives import archives
from holdfast import Message, ToolCall, codec, formats
from holdfast.archive import archive_of, put, take
from holdfast.entries import UnknownEntry
from holdfast.errors import HoldfastError, InvalidInput
from holdfast.formats import nanobot
from holdfast.frozen import FrozenDict
from holdfast.parts import Image, Text, Thinking
from holdfast.stores import open_store

SLOW = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
THEN = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
# As nanobot itself wrote it in spring 2026: no ids, local times.
THEIRS = b"""\
{"_type": "metadata", "key": "telegram:1", "created_at": "2026-03-01T10:00:00.000001", \
"updated_at": "2026-03-01T10:00:05.000001", "metadata": {"x": 1}, "last_consolidated": 1}
{"role": "user", "content": "hello", "timestamp": "2026-03-01T10:00:01"}
{"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", \
"function": {"name": "f", "arguments": "{}"}}], "timestamp": "2026-03-01T10:00:02"}
{"role": "tool", "tool_call_id": "c1", "name": "f", "content": "ok", "mood": "good"}
{"_type": "provider_state", "state": {"a": 1}}
{"role": "assistant", "content": "done"}
"""


def written(archive):
    return b"".join(nanobot.write([archive]))


def example():
    said = [
        Message.user((Text("look"), Image(url="https://example.com/a.png")), timestamp=THEN),
        Message.assistant(
            (Thinking("hm", signature="s"), Text("yes")),
            tool_calls=[ToolCall(id="c", name="f", arguments="{}")],
            timestamp=THEN,
        ),
        Message.tool("fine", tool_call_id="c", timestamp=THEN),
    ]
    return archive_of("cli:direct", said, created_at=THEN, updated_at=THEN)


def said(archive):
    return [(each.id, codec.plain(each), each.timestamp) for each in archive.messages()]


@SLOW
@given(archives(entries=our.fair_messages))
def test_messages_come_back_with_their_ids_times_and_texts(archive):
    """What is written is read as the same messages, and written again as the same bytes."""
    data = written(archive)

    found = nanobot.read(data).archives[0]

    assert found.record.key == archive.record.key
    assert [m.id for m in found.messages()] == [m.id for m in archive.messages()]
    assert [m.text for m in found.messages()] == [m.text for m in archive.messages()]
    again = written(found)
    assert again.split(b"\n")[1:] == data.split(b"\n")[1:]


def test_an_export_next_to_its_original_is_there_already():
    async def main():
        async with open_store("memory:") as store:
            original = example()
            await put(store.tenant(), original)
            back = nanobot.read(written(original)).archives[0]
            return await put(store.tenant(), back)

    assert asyncio.run(main()).outcome == "there"


def test_a_file_of_nanobots_own_is_the_same_each_time_it_is_read():
    """Ids and times that its lines do not have are made of the lines."""
    one, two = nanobot.read(THEIRS).archives[0], nanobot.read(THEIRS).archives[0]

    assert formats.recognised(THEIRS).name == "nanobot"
    assert one == two
    assert len({each.entry.id for each in one.entries if isinstance(each.entry, Message)}) == 4
    assert [m.text for m in one.messages()] == ["hello", None, "ok", "done"]
    assert one.messages()[2].extra["mood"] == "good"
    assert one.record.metadata == {"x": 1}
    assert one.record.counters == {"last_consolidated": 1}
    kinds = [each.kind for each in one.entries]
    assert kinds == ["message", "message", "message", "nanobot:provider_state", "message"]
    assert written(one).split(b"\n")[1:3] != []


def test_a_file_that_has_grown_adds_what_is_new():
    more = b'{"role": "user", "content": "more", "timestamp": "2026-03-02T10:00:00"}\n'
    later = THEIRS.replace(b"10:00:05.000001", b"10:00:06.000001") + more

    async def main():
        async with open_store("memory:") as store:
            tenant = store.tenant()
            outcomes = []
            for data in (THEIRS, THEIRS, later, later, THEIRS):
                done = await put(tenant, nanobot.read(data).archives[0])
                outcomes.append(done.outcome)
            archive = await take(tenant, nanobot.read(later).archives[0].record.id)
            return outcomes, [m.text for m in archive.messages()]

    outcomes, texts = asyncio.run(main())
    assert outcomes == ["new", "there", "added", "there", "there"]
    assert texts[-1] == "more"


@pytest.mark.parametrize("data", [written(example()), THEIRS], ids=["ours", "theirs"])
def test_a_file_that_is_cut_anywhere_gives_what_is_intact(data):
    """
    Every line that is whole comes back as it was, a line that is cut off is told, and nothing half
    is ever read.
    """
    whole = nanobot.read(data, "telegram_1.jsonl").archives[0]

    for end in range(1, len(data)):
        lines = data[:end].count(b"\n")
        rest = data[:end].rpartition(b"\n")[2]
        is_line = data[end : end + 1] == b"\n"
        try:
            found, notes = nanobot.read(data[:end], "telegram_1.jsonl")
        except InvalidInput:
            assert lines == 0 and not is_line
            continue
        assert said(found[0]) == said(whole)[: len(found[0].messages())]
        assert len(found[0].entries) == max(lines - 1 + is_line, 0)
        assert bool(notes) == bool(rest and not is_line)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"role": "user", "role": "user", "content": ""}', "twice"),
        (b'{"role": "user", "content": NaN}', "NaN"),
        (b"not json", "JSON"),
        (b"[1]", "line 2"),
    ],
)
def test_a_line_that_cannot_be_right_is_named(line, why):
    first, _, rest = THEIRS.partition(b"\n")

    with pytest.raises(InvalidInput, match=f"line 2.*{why}|line 2"):
        nanobot.read(first + b"\n" + line + b"\n" + rest)


def test_broken_characters_are_mended_and_told():
    data = THEIRS.replace(b"hello", b"h\xffllo")

    found, notes = nanobot.read(data)

    assert found[0].messages()[0].text == "h\ufffdllo"
    assert any("line 2" in note and "U+FFFD" in note for note in notes)
    assert nanobot.read(data) == (found, notes)


@pytest.mark.parametrize(
    ("name", "key"),
    [("telegram_1.jsonl", "telegram:1"), ("dGVsZWdyYW06MQ.jsonl", "telegram:1")],
)
def test_a_file_without_a_key_has_the_one_that_its_name_tells(name, key):
    """As nanobot before 2026-02-20 wrote them."""
    data = THEIRS.replace(b'"key": "telegram:1", ', b"")

    assert nanobot.read(data, name).archives[0].record.key == key
    with pytest.raises(InvalidInput, match="name a key"):
        nanobot.read(data)


def test_what_is_not_in_the_file_is_told():
    archive = example()
    record = archive.record.replace(agent="helper", metadata=FrozenDict({"kept": 1}))
    unknown = UnknownEntry(kind="poem", raw=b'{"v":1,"poem":{}}')
    stored = archive.entries[0].__class__(4, 2, "main", "poem", unknown)
    archive = archive._replace(record=record, entries=(*archive.entries, stored))

    told = nanobot.losses(archive)

    assert "not in nanobot's JSONL: 1 agent's name" in told
    assert "not in nanobot's JSONL: 1 entries of unknown kinds" in told
    assert len(told) == 2
    assert nanobot.losses(example()) == []


def test_two_conversations_do_not_fit_into_one_file():
    with pytest.raises(InvalidInput, match="one conversation"):
        b"".join(nanobot.write([example(), example()]))


def test_what_nanobot_reads_is_what_it_would_have_written():
    """Line 1 has its names in its order, and each line is JSON with a role."""
    first, *lines = written(example()).decode().splitlines()

    assert list(json.loads(first))[:4] == ["_type", "key", "created_at", "updated_at"]
    assert all(json.loads(line)["role"] for line in lines)
    assert "T" in json.loads(first)["created_at"] and "+" not in json.loads(first)["created_at"]


def test_noise_is_an_error_of_ours():
    for noise in (b"", b"\n\n", b"\xff\xfe", b"{}", b'{"role": "poet"}', b"null\n" * 3):
        try:
            found = nanobot.read(noise, "a_b.jsonl")
        except HoldfastError:
            continue
        assert found.archives[0].messages() == ()
