"""Files of every year of nanobot, and of its Go port: all are read, and nothing in them is lost.

The files in `format/nanobot` are written by hand in the manner of each version; those of the corpus
were written by nanobot itself.
"""

import json
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from holdfast import Message
from holdfast.entries import Mark, UnknownEntry
from holdfast.errors import FormatTooNew
from holdfast.stores import Record, open_store
from holdfast.stores.jsonl import names
from holdfast.stores.jsonl.sidecar import VERSION
from nanobot_rules import load
from sessions_for_tests import asynchronous

FORMAT = Path(__file__).parent / "format"
ERAS = sorted((FORMAT / "nanobot").glob("*.jsonl"))
KEY = "telegram:1"
CORPUS = Path(os.environ.get("HOLDFAST_CORPUS", "/work/shared/corpus")) / "formats/nanobot-session"


def placed(path, folder):
    """A kept file in a folder, under the name that it had."""
    folder.mkdir(exist_ok=True)
    target = folder / path.name.partition("_")[2]
    shutil.copyfile(path, target)
    return target


@pytest.mark.parametrize("path", ERAS, ids=lambda path: path.name)
@asynchronous
async def test_every_year_is_read(tmp_path, path):
    """S4-24, B4: messages, times, tool calls, the metadata and the cursor; and the file stays as it
    is."""
    file = placed(path, tmp_path / "s")
    before = file.read_bytes()

    async with open_store(f"jsonl:{tmp_path}/s") as store:
        tenant = store.tenant()
        assert [each.key for each in (await tenant.list()).items] == [KEY]
        record = await tenant.load(KEY)
        rows = await tenant.read(record.id)
        assert (await tenant.verify()).problems == ()
        assert file.read_bytes() == before

        said = [row.entry for row in rows if isinstance(row.entry, Message)]
        assert (said[0].text, said[-1].text) == ("Where is my parcel? 包裹在哪里", "In Bremen.")
        assert all(each.timestamp.utcoffset() is not None for each in said)
        await tenant.append(record.id, [Message.user("And now?")])
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    old = [json.loads(line) for line in before.splitlines()]
    assert [line["content"] for line in load(file)[1] if "content" in line][-1] == "And now?"
    assert lines[0]["_type"] == "metadata"
    assert lines[1 : len(old)] == old[1:] or "id" in lines[1]
    for line, was in zip(lines[1:], old[1:], strict=False):
        assert {name: line[name] for name in was} == was  # nothing in it is lost


@asynchronous
async def test_the_cursor_of_each_year(tmp_path):
    """S4-23: a number beyond the messages is none, or all history would be hidden; also in the
    example of the document itself, which has 10 and two messages."""
    wanted = {"2026-02-01": 0, "2026-02-13": 1, "2026-08-23": 1, "go-document": 0}
    for path in ERAS:
        year = path.name.partition("_")[0]
        if year in wanted:
            placed(path, tmp_path / year)
            async with open_store(f"jsonl:{tmp_path / year}") as store:
                record = await store.tenant().load(KEY)
                assert record.counters.get("last_consolidated", 0) == wanted[year], year


@pytest.mark.parametrize("number", [-1, True, 1.5, "2", None, 99])
@asynchronous
async def test_a_cursor_that_cannot_be_one_is_none(tmp_path, number):
    """S4-23: not a whole number, below zero, or beyond the messages."""
    line = {"_type": "metadata", "key": KEY, "metadata": None, "last_consolidated": number}
    said = {"role": "user", "content": "a"}
    file = tmp_path / "telegram_1.jsonl"
    file.write_text(f"{json.dumps(line)}\n{json.dumps(said)}\n")

    async with open_store(f"jsonl:{tmp_path}") as store:
        record = await store.tenant().load(KEY)

    assert (record.counters, record.metadata) == ({}, {})


@asynchronous
async def test_times_of_the_go_port_are_kept_as_given(tmp_path):
    """B4: its times have a zone; what is in its metadata is not taken for them."""
    path = next(each for each in ERAS if each.name.startswith("go-port"))
    file = placed(path, tmp_path / "s")
    async with open_store(f"jsonl:{tmp_path}/s") as store:
        record = await store.tenant().load(KEY)
        assert record.created_at == datetime(2025, 12, 31, 23, 0, 0, 500_000, tzinfo=UTC)
        assert record.updated_at == datetime(2026, 2, 1, 12, 0, 0, 123_456, tzinfo=UTC)
        await store.tenant().append(record.id, [Message.user("b")])

    first, said, *_ = [json.loads(line) for line in file.read_bytes().splitlines()]
    assert first["created_at"] == "2026-01-01T00:00:00.5+01:00"
    assert first["metadata"] == {"updated_at": "not this"}
    assert len(first["updated_at"]) == 26
    assert said["timestamp"] == "2026-02-01T12:00:00Z"


@asynchronous
async def test_private_lines_are_kept_and_shown_to_nobody(tmp_path):
    """S4-52: a provider's state stays behind line 1; records and roles that we do not know are
    entries that no model sees."""
    path = next(each for each in ERAS if each.name.startswith("2026-07-30"))
    file = placed(path, tmp_path / "s")
    state = file.read_bytes().splitlines()[1]
    async with open_store(f"jsonl:{tmp_path}/s") as store:
        tenant = store.tenant()
        record = await tenant.load(KEY)
        rows = await tenant.read(record.id)
        assert len([row for row in rows if isinstance(row.entry, Message)]) == 2
        kinds = [row.entry.kind for row in rows if isinstance(row.entry, UnknownEntry)]
        assert kinds == ["nanobot:later", "nanobot:observer"]
        await tenant.update(record.id, {"metadata": {"title": "t"}})

    lines = file.read_bytes().splitlines()
    assert lines[1] == state
    assert json.loads(lines[4]) == {"_type": "later", "what": [1]}


@asynchronous
async def test_a_file_in_both_names_is_one_session(tmp_path):
    """The key that is stored is the identity: the name that new files get comes first."""
    line = '{"_type": "metadata", "key": "cli:x", "metadata": {}, "last_consolidated": 0}\n'
    for name, text in ((names.plain_name("cli:x"), "old"), (names.base64_name("cli:x"), "new")):
        (tmp_path / name).write_text(line + json.dumps({"role": "user", "content": text}) + "\n")

    async with open_store(f"jsonl:{tmp_path}") as store:
        tenant = store.tenant()
        record = await tenant.load("cli:x")
        assert [row.entry.text for row in await tenant.read(record.id)] == ["new"]
        assert len((await tenant.list()).items) == 1


@asynchronous
async def test_a_stored_key_wins_over_the_name(tmp_path):
    """S4-8: a file under the name of one session with the key of another is that other's."""
    line = '{"_type": "metadata", "key": "cli:other", "metadata": {}, "last_consolidated": 0}\n'
    (tmp_path / "cli_direct.jsonl").write_text(line)

    async with open_store(f"jsonl:{tmp_path}") as store:
        tenant = store.tenant()
        assert [each.key for each in (await tenant.list()).items] == ["cli:other"]
        record = await tenant.create(Record(key="cli:direct"))
        await tenant.append(record.id, [Message.user("mine")])
    files = {path.name: path.read_text() for path in tmp_path.glob("*.jsonl")}
    assert files["cli_direct.jsonl"] == line
    assert len(files) == 2


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not here")
@asynchronous
async def test_files_that_nanobot_wrote(tmp_path):
    """All of the corpus: every message and every field comes back, in the bytes of Python."""
    for path in sorted(CORPUS.glob("*.jsonl")):
        folder = tmp_path / path.stem
        folder.mkdir()
        lines = path.read_bytes().splitlines(keepends=True)
        key = json.loads(lines[0])["key"]
        name = names.base64_name(key) if path.name.startswith("written") else "cli_direct.jsonl"
        shutil.copyfile(path, folder / name)
        async with open_store(f"jsonl:{folder}") as store:
            tenant = store.tenant()
            record = await tenant.load(key)
            rows = await tenant.read(record.id)
            assert sum(isinstance(row.entry, Message) for row in rows) == len(lines) - 1
            assert not any(isinstance(row.entry, Mark) for row in rows)
            await tenant.update(record.id, {"metadata": {"title": "t"}})  # writes all of it anew
        found = [json.loads(line) for line in (folder / name).read_bytes().splitlines()]
        for line, was in zip(found[1:], map(json.loads, lines[1:]), strict=True):
            assert {each: line[each] for each in was} == was
            assert list(line)[-1] == "id"


@asynchronous
async def test_a_sidecar_of_a_newer_format_is_refused_and_left_alone(tmp_path):
    """And the other sessions are listed."""
    async with open_store(f"jsonl:{tmp_path}") as store:
        tenant = store.tenant()
        for key in ("one", "two"):
            await tenant.create(Record(key=key))
        log = tmp_path / ".holdfast" / "logs" / f"{names.digest_of('one')}.log"
        newer = log.read_bytes().replace(b'{"v":%d}' % VERSION, b'{"v":9}', 1)
        log.write_bytes(newer)

        with pytest.raises(FormatTooNew):
            await tenant.load("one")
        listed = (await tenant.list()).items

        assert {each.key for each in listed if not each.damage} == {"two"}
        assert len(listed) == 2
    assert log.read_bytes() == newer


@asynchronous
async def test_a_list_is_in_the_order_of_time_and_not_of_text(tmp_path):
    """S4-33: times with a zone and without are mixed; nanobot itself compares their texts."""
    here = datetime.now().astimezone().utcoffset()
    noon = datetime(2026, 2, 1, 12, tzinfo=UTC)
    for minutes, key, is_local in ((0, "a:old", False), (1, "a:mid", True), (2, "a:new", False)):
        at = noon + timedelta(minutes=minutes)
        text = f"{at + here:%Y-%m-%dT%H:%M:%S}" if is_local else f"{at:%Y-%m-%dT%H:%M:%SZ}"
        line = {"_type": "metadata", "key": key, "created_at": text, "updated_at": text}
        (tmp_path / names.plain_name(key)).write_text(json.dumps(line) + "\n")

    async with open_store(f"jsonl:{tmp_path}") as store:
        listed = [each.key for each in (await store.tenant().list()).items]

    assert listed == ["a:new", "a:mid", "a:old"]
