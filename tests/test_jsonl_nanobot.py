"""Nanobot and holdfast on one folder: each reads what the other wrote, and nothing is lost."""

import json
import os
from datetime import timedelta

import pytest

from holdfast import Message
from holdfast.entries import Call, Mark
from holdfast.errors import SessionNotFound
from holdfast.stores import open_store
from holdfast.stores.values import Record
from nanobot_rules import Nanobot, load, load_early
from sessions_for_tests import asynchronous

KEY = "cli:direct"


def texts(rows):
    return [row.entry.text for row in rows if isinstance(row.entry, Message)]


def marks(rows, what):
    return [row.entry for row in rows if isinstance(row.entry, Mark) and row.entry.what == what]


async def everything(store, branch=None):
    record = await store.tenant().load(KEY)
    return await store.tenant().read(record.id, branch or record.branch)


def file_of(folder):
    return folder / "cli_direct.jsonl"


def contents(folder):
    return [each["content"] for each in load(file_of(folder))[1]]


@pytest.mark.parametrize("is_early", [False, True])
@asynchronous
async def test_fifty_turns_by_turns(tmp_path, is_early):
    """S4-1: nanobot, started anew each time, and holdfast talk in one session; both see all of
    it."""
    nanobot = Nanobot(tmp_path, is_early=is_early)
    said = []
    async with open_store(f"jsonl:{tmp_path}") as store:
        await store.tenant().create(Record(key=KEY))
        for turn in range(25):
            said += [f"ours {turn} é", f"answer {turn} 北京"]
            record = await store.tenant().load(KEY)
            await store.tenant().append(
                record.id, [Message.user(said[-2]), Call(model="m"), Message.assistant(said[-1])]
            )
            nanobot.restart()
            assert [each["content"] for each in nanobot.session(KEY)[1]] == said
            said += [f"theirs {turn} ü", f"reply {turn} 🐘"]
            nanobot.say(KEY, "user", said[-2])
            nanobot.say(KEY, "assistant", said[-1], tools_used=["look"])
            nanobot.save(KEY)
            assert texts(await everything(store)) == said

        assert (await store.tenant().verify()).problems == ()
        rows = await everything(store)
        assert sum(isinstance(row.entry, Call) for row in rows) == 25
        assert marks(rows, "adopted") == []
        assert rows[3].entry.extra.get("tools_used") is None
    assert len({row.entry.id for row in rows}) == len(rows)
    assert contents(tmp_path) == said


@asynchronous
async def test_lines_that_a_running_nanobot_had_not_seen_are_there_again(tmp_path):
    """It saves from its cache, and drops them; the sidecar has them, and they come first."""
    nanobot = Nanobot(tmp_path)
    async with open_store(f"jsonl:{tmp_path}") as store:
        record = await store.tenant().create(Record(key=KEY), [Message.user("a")])
        nanobot.session(KEY)
        await store.tenant().append(record.id, [Message.assistant("b"), Mark(what="noted")])
        nanobot.say(KEY, "user", "c")
        nanobot.save(KEY)
        assert contents(tmp_path) == ["a", "c"]

        assert texts(await everything(store)) == ["a", "b", "c"]

        assert contents(tmp_path) == ["a", "b", "c"]
        await store.tenant().append(record.id, [Message.user("d")])
        assert texts(await everything(store)) == ["a", "b", "c", "d"]
        nanobot.say(KEY, "assistant", "e")
        nanobot.save(KEY)  # it has not seen "b" and "d" to this day
        assert texts(await everything(store)) == ["a", "b", "c", "d", "e"]
        assert contents(tmp_path) == ["a", "b", "c", "d", "e"]
        assert (await store.tenant().verify()).problems == ()


@asynchronous
async def test_lines_that_it_has_not_seen_are_there_again_after_each_of_its_saves(tmp_path):
    """Its own lines have no ids of ours in its cache, and have them in the file once we have
    written it anew: that is no conversation begun anew, however often it saves."""
    nanobot = Nanobot(tmp_path)
    nanobot.say(KEY, "user", "theirs 0")
    nanobot.save(KEY)
    said = ["theirs 0", "ours"]
    async with open_store(f"jsonl:{tmp_path}") as store:
        record = await store.tenant().load(KEY)
        await store.tenant().append(record.id, [Message.assistant("ours")])
        for number in range(1, 5):
            said.append(f"theirs {number}")
            nanobot.say(KEY, "user", said[-1])
            nanobot.save(KEY)

            assert texts(await everything(store)) == said
            assert contents(tmp_path) == said

        assert (await store.tenant().load(KEY)).branch == "main"
        assert (await store.tenant().verify()).problems == ()


@pytest.mark.parametrize("is_open", [True, False])
@asynchronous
async def test_lines_of_its_own_that_nanobot_leaves_out_make_a_branch(tmp_path, is_open):
    """S4-51: it keeps the end of a conversation alone. It wrote what it left out, so it knew it;
    what we show is what it shows, and the old branch has the rest."""
    nanobot = Nanobot(tmp_path)
    for number in range(6):
        nanobot.say(KEY, "user", f"theirs {number}")
    nanobot.save(KEY)
    async with open_store(f"jsonl:{tmp_path}") as store:
        assert len(await everything(store)) == 6
        if is_open:
            del nanobot.session(KEY)[1][:4]
            nanobot.save(KEY)
            assert texts(await everything(store)) == ["theirs 4", "theirs 5"]
    if not is_open:
        del nanobot.session(KEY)[1][:4]
        nanobot.save(KEY)

    async with open_store(f"jsonl:{tmp_path}") as store:
        assert texts(await everything(store)) == ["theirs 4", "theirs 5"]
        assert texts(await everything(store, "main")) == [f"theirs {number}" for number in range(6)]
        assert (await store.tenant().verify()).problems == ()
    assert contents(tmp_path) == ["theirs 4", "theirs 5"]


@asynchronous
async def test_a_nanobot_that_only_shuts_down_drops_nothing(tmp_path):
    """It saves what it has, which is less than what is there."""
    nanobot = Nanobot(tmp_path)
    async with open_store(f"jsonl:{tmp_path}") as store:
        record = await store.tenant().create(Record(key=KEY), [Message.user("a")])
        nanobot.session(KEY)
        await store.tenant().append(record.id, [Message.assistant("b")])
        nanobot.save(KEY)

    async with open_store(f"jsonl:{tmp_path}") as store:
        assert texts(await everything(store)) == ["a", "b"]
    assert contents(tmp_path) == ["a", "b"]


@asynchronous
async def test_a_conversation_that_nanobot_begins_anew_is_a_new_branch(tmp_path):
    """`/new` empties the list; what was said before stays on its branch, and nanobot does not see
    it again."""
    nanobot = Nanobot(tmp_path)
    async with open_store(f"jsonl:{tmp_path}") as store:
        await store.tenant().create(Record(key=KEY), [Message.user("a"), Message.assistant("b")])
        nanobot.new(KEY)
        nanobot.say(KEY, "user", "fresh")
        nanobot.save(KEY)

        assert texts(await everything(store)) == ["fresh"]

        assert texts(await everything(store, "main")) == ["a", "b"]
        assert contents(tmp_path) == ["fresh"]
        assert (await store.tenant().verify()).problems == ()


@asynchronous
async def test_a_line_that_was_changed_is_adopted_with_a_mark(tmp_path):
    """It is not corruption: the new text counts, the chain fits it, and a mark tells."""
    async with open_store(f"jsonl:{tmp_path}") as store:
        record = await store.tenant().create(
            Record(key=KEY), [Message.user("a"), Message.assistant("b"), Message.user("c")]
        )
        before = await everything(store)
        path = file_of(tmp_path)
        path.write_text(path.read_text().replace('"content": "b"', '"content": "edited"'))

        rows = await everything(store)

        assert texts(rows) == ["a", "edited", "c"]
        assert [row.entry.id for row in rows[:3]] == [row.entry.id for row in before]
        (mark,) = marks(rows, "adopted")
        assert mark.about == before[1].entry.id
        assert (await store.tenant().verify()).problems == ()
        assert any("changed" in each for each in store.problems())
        assert [hit.stored.seq for hit in (await store.tenant().search("edited")).items] == [2]
        await store.tenant().append(record.id, [Message.user("d")])
    assert contents(tmp_path) == ["a", "edited", "c", "d"]


@asynchronous
async def test_a_line_written_in_other_bytes_is_not_a_change(tmp_path):
    """Spaces, the order of names and escapes say nothing."""
    async with open_store(f"jsonl:{tmp_path}") as store:
        record = await store.tenant().create(Record(key=KEY))
        await store.tenant().append(record.id, [Message.user("é 北京"), Message.assistant("b")])
        path = file_of(tmp_path)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text(
            "".join(
                json.dumps(dict(reversed(each.items())), separators=(",", ":"), ensure_ascii=False)
                + "\n"
                for each in lines
            )
        )

        rows = await everything(store)

        assert texts(rows) == ["é 北京", "b"]
        assert marks(rows, "adopted") == []


@asynchronous
async def test_lines_left_out_of_the_middle_make_a_branch(tmp_path):
    """What another program cut away is kept on the branch it was on."""
    async with open_store(f"jsonl:{tmp_path}") as store:
        said = [Message.user(text) for text in "abcd"]
        await store.tenant().create(Record(key=KEY), said)
        path = file_of(tmp_path)
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(lines[:2] + lines[3:]))

        assert texts(await everything(store)) == ["a", "c", "d"]
        assert texts(await everything(store, "main")) == list("abcd")
        assert (await store.tenant().verify()).problems == ()


@asynchronous
async def test_what_nanobot_says_in_line_1_is_adopted(tmp_path):
    """S4-12, S4-20: its metadata is the session's metadata, and its cursor is a counter; both
    ways."""
    async with open_store(f"jsonl:{tmp_path}") as store:
        said = [Message.user(text) for text in "abcd"]
        record = await store.tenant().create(Record(key=KEY, metadata={"title": "old"}), said)
        path = file_of(tmp_path)
        first, *lines = path.read_text().splitlines(keepends=True)
        line = json.loads(first)
        assert (line["metadata"], line["last_consolidated"]) == ({"title": "old"}, 0)
        line |= {"metadata": {"title": "new"}, "last_consolidated": 2, "last_archived": 2}
        path.write_text("".join([json.dumps(line) + "\n", *lines]))

        found = await store.tenant().load(KEY)

        assert (found.metadata, found.counters) == ({"title": "new"}, {"last_consolidated": 2})
        await store.tenant().update(record.id, {"metadata": {"more": 1}})
        line = json.loads(path.read_text().splitlines()[0])
        assert line["metadata"] == {"title": "new", "more": 1}
        assert (line["last_consolidated"], line["last_archived"]) == (2, 2)


@asynchronous
async def test_the_branch_in_use_is_what_nanobot_sees(tmp_path):
    """A revert or a checkout writes its file anew; the other branches are kept where it never
    looks."""
    async with open_store(f"jsonl:{tmp_path}") as store:
        tenant = store.tenant()
        record = await tenant.create(Record(key=KEY), [Message.user("a"), Message.user("b")])
        await tenant.branch(record.id, "other", parent="main", at=1)
        await tenant.append(record.id, [Message.user("c")], branch="other")
        assert contents(tmp_path) == ["a", "c"]
        await tenant.append(record.id, [Message.user("hidden")], branch="main")
        assert contents(tmp_path) == ["a", "c"]

        await tenant.update(record.id, {"branch": "main"})

        assert contents(tmp_path) == ["a", "b", "hidden"]


@asynchronous
async def test_a_session_whose_file_was_deleted_is_gone(tmp_path):
    """Nanobot deletes by removing its file. Our log of it is set aside, and not lost."""
    async with open_store(f"jsonl:{tmp_path}") as store:
        await store.tenant().create(Record(key=KEY), [Message.user("a")])
        file_of(tmp_path).unlink()

        with pytest.raises(SessionNotFound):
            await store.tenant().load(KEY)

        assert (await store.tenant().list()).items == ()
        assert len(list((tmp_path / ".holdfast" / "aside").iterdir())) == 1
        again = await store.tenant().create(Record(key=KEY), [Message.user("b")])
        await store.tenant().delete(again.id)
    assert list((tmp_path / ".holdfast" / "aside").iterdir()) == []


@asynchronous
async def test_only_the_last_lines_and_26_characters_are_written(tmp_path):
    """S4-14, S4-21, B50: an append leaves every other byte of the file as it was."""
    async with open_store(f"jsonl:{tmp_path}") as store:
        record = await store.tenant().create(Record(key=KEY), [Message.user("a é")])
        before = file_of(tmp_path).read_bytes()
        inode = file_of(tmp_path).stat().st_ino
        await store.tenant().append(record.id, [Message.assistant("b é")])
        after = file_of(tmp_path).read_bytes()

    assert file_of(tmp_path).stat().st_ino == inode
    place = before.index(b'"updated_at": "') + 15
    assert after[:place] == before[:place]
    assert after[place + 26 : len(before)] == before[place + 26 :]
    assert after[place : place + 26] > before[place : place + 26]
    assert after[len(before) :].isascii()
    assert json.loads(after.splitlines()[-1])["content"] == "b é"
    assert "é".encode() in before  # what is written anew is in Python's own bytes


@asynchronous
async def test_february_reads_what_we_write(tmp_path):
    """S4-11: the first nanobots give up at any line that they cannot read: there is none."""
    async with open_store(f"jsonl:{tmp_path}") as store:
        record = await store.tenant().create(Record(key=KEY, ttl=timedelta(days=1)))
        await store.tenant().append(record.id, [Message.user("a"), Mark(what="x")])
        await store.tenant().append(record.id, [Message.assistant("b\u2028c\x85")])

    assert [each["content"] for each in load_early(file_of(tmp_path))] == ["a", "b\u2028c\x85"]


@asynchronous
async def test_a_file_that_another_session_takes_over_is_left_to_it(tmp_path):
    """Nanobot before June 2026 gives two keys one file. What it writes under the other key is that
    session's; ours goes on in a file of its own, and nothing of the one gets into the other."""
    async with open_store(f"jsonl:{tmp_path}") as store:
        tenant = store.tenant()
        record = await tenant.create(Record(key="telegram_a:b"), [Message.user("mine")])
        nanobot = Nanobot(tmp_path)
        nanobot.cache["telegram:a_b"] = ({"created_at": "2026-02-01T00:00:00", "metadata": {}}, [])
        nanobot.say("telegram:a_b", "user", "theirs")
        nanobot.save("telegram:a_b")

        assert texts(await tenant.read(record.id)) == ["mine"]

        other = await tenant.load("telegram:a_b")
        assert texts(await tenant.read(other.id)) == ["theirs"]
        await tenant.append(record.id, [Message.user("more of mine")])
        assert {each.key for each in (await tenant.list()).items} == {
            "telegram_a:b",
            "telegram:a_b",
        }
    async with open_store(f"jsonl:{tmp_path}") as store:
        assert texts(await store.tenant().read(record.id)) == ["mine", "more of mine"]
        assert texts(await store.tenant().read(other.id)) == ["theirs"]


@asynchronous
async def test_a_change_of_the_same_length_in_the_same_file_is_seen(tmp_path):
    """An editor that writes in place leaves inode and size as they were."""
    async with open_store(f"jsonl:{tmp_path}") as store:
        await store.tenant().create(Record(key=KEY), [Message.user("aaa"), Message.user("bbb")])
        path = file_of(tmp_path)
        time_ns = path.stat().st_mtime_ns
        with path.open("r+b") as file:
            file.seek(path.read_bytes().index(b'"bbb"') + 1)
            file.write(b"xxx")
        os.utime(path, ns=(time_ns + 10**9, time_ns + 10**9))  # clocks of files are coarse

        assert texts(await everything(store)) == ["aaa", "xxx"]
