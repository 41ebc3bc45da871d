"""What is special about sessions in files: memory, processes, and where everything lies."""

import asyncio
import errno
import json
import os
import shutil
import stat
from datetime import timedelta
from pathlib import Path

import pytest

import holdfast
from holdfast import private_files
from holdfast.errors import Corrupt, InvalidInput, SessionNotFound, StoreUnavailable
from holdfast.messages import Message
from holdfast.stores import Record, open_store
from holdfast.stores.jsonl import files, writing
from holdfast.stores.jsonl import folder as folders
from holdfast.testing import FakeProvider
from nanobot_rules import load
from sessions_for_tests import asynchronous

HOUR = timedelta(hours=1)


@asynchronous
async def test_sessions_that_were_let_go_are_found_again(tmp_path, monkeypatch):
    """S4-1: few are held in memory; all are found, by key and by id."""
    monkeypatch.setattr(folders, "_HELD_BYTES", 1)
    monkeypatch.setattr(folders, "_HELD_MIN", 2)
    async with open_store(f"jsonl:{tmp_path}/s", durability="fast") as store:
        tenant = store.tenant()
        made = [await tenant.create(Record(key=f"k:{n}"), [Message.user(f"{n}")]) for n in range(8)]
        for record in made:
            await tenant.append(record.id, [Message.user("again")])
        for n, record in enumerate(made):
            rows = await tenant.read(record.id)
            assert [row.entry.text for row in rows] == [f"{n}", "again"]
            assert (await tenant.load(record.key)).id == record.id
        assert len((await tenant.search("again")).items) == 8


@asynchronous
async def test_only_we_can_read_what_we_write(tmp_path):
    """B53: files are 0600 and folders 0700, whatever the umask is."""
    old = os.umask(0)
    try:
        async with open_store(f"jsonl:{tmp_path}/s") as store:
            record = await store.tenant("other").create(Record(key="a:b"), [Message.user("x")])
            await store.tenant("other").append(record.id, [Message.user("y")])
            await store.tenant().create(Record(key="a:b"))
    finally:
        os.umask(old)

    for path in (tmp_path / "s").rglob("*"):
        mode = stat.S_IMODE(path.lstat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path


@asynchronous
async def test_a_tenant_is_where_nanobot_never_looks(tmp_path):
    """Its files are in a folder of its own, beside nothing of nanobot's."""
    async with open_store(f"jsonl:{tmp_path}") as store:
        await store.tenant("acme/../x").create(Record(key="a:b"), [Message.user("x")])

    assert list(tmp_path.glob("*.jsonl")) == []
    assert len(list(tmp_path.glob(".holdfast/tenants/*/a_b.jsonl"))) == 1


@asynchronous
async def test_an_erased_message_is_in_no_file_and_no_copy(tmp_path):
    """Not in nanobot's file, not in the sidecar, and not in what was set aside."""
    line = json.dumps({"_type": "metadata", "key": "a:b", "metadata": {}, "last_consolidated": 0})
    said = [json.dumps({"role": "user", "content": text}) for text in ("xyzzyplugh", "stays")]
    (tmp_path / "a_b.jsonl").write_text("\n".join([line, *said, "{broken xyzzyplugh"]))
    async with open_store(f"jsonl:{tmp_path}") as store:
        tenant = store.tenant()
        record = await tenant.load("a:b")
        assert len(list((tmp_path / ".holdfast/aside").iterdir())) == 1
        lease = await tenant.begin(record.id, "me", HOUR, {})
        await tenant.journal(lease, "xyzzyplugh")
        await tenant.release(lease, drop=True)
        await tenant.erase(record.id, [1])

        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert not any(b"xyzzyplugh" in path.read_bytes() for path in files)
        contents = [json.loads(each) for each in (tmp_path / "a_b.jsonl").read_text().splitlines()]
        assert [each["content"] for each in contents[1:]] == ["stays"]
        assert (await tenant.verify()).problems == ()


@pytest.mark.parametrize("name", ["a_b.jsonl", ".session-files.lock", ".holdfast"])
@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
@asynchronous
async def test_a_name_that_leads_elsewhere_is_never_followed(tmp_path, name, kind):
    """A session whose name is taken by something else gets another; our own names are refused."""
    place, outside = tmp_path / "s", tmp_path / "outside"
    place.mkdir(mode=0o700)
    outside.mkdir()
    (outside / "canary").write_text("canary")
    if kind == "link":
        (place / name).symlink_to(outside if name == ".holdfast" else outside / "canary")
    elif kind == "fifo":
        os.mkfifo(place / name)
    else:
        (place / name).mkdir()

    try:
        async with open_store(f"jsonl:{place}") as store:
            record = await store.tenant().create(Record(key="a:b"), [Message.user("x")])
            await store.tenant().append(record.id, [Message.user("y")])
            assert len(await store.tenant().read(record.id)) == 2
    except (StoreUnavailable, Corrupt):
        assert name != "a_b.jsonl"
    else:
        assert name == "a_b.jsonl" or (name, kind) == (".holdfast", "folder")
    assert (outside / "canary").read_text() == "canary"
    assert [path.name for path in outside.iterdir()] == ["canary"]


@asynchronous
async def test_a_backup_has_files_and_nothing_that_leads_elsewhere(tmp_path):
    """A link, to a file, to a folder or to nothing, and what is no file: none of it is followed,
    none of it stands in the way."""
    place, outside, target = (tmp_path / name for name in ("s", "outside", "backup"))
    outside.mkdir()
    (outside / "canary").write_text("canary")
    async with open_store(f"jsonl:{place}") as store:
        record = await store.tenant("t").create(Record(key="a:b"), [Message.user("x")])
        (place / "file.jsonl").symlink_to(outside / "canary")
        (place / ".holdfast" / "folder").symlink_to(outside)
        (place / "nothing.jsonl").symlink_to(tmp_path / "nowhere")
        os.mkfifo(place / "fifo.jsonl")

        await store.backup(target)

    assert not any(path.is_symlink() for path in target.rglob("*"))
    assert not any(path.name in ("canary", "fifo.jsonl") for path in target.rglob("*"))
    assert "canary" not in "".join(p.read_text() for p in target.glob("*.jsonl"))
    async with open_store(f"jsonl:{target}", create=False) as store:
        assert len(await store.tenant("t").read(record.id)) == 1


@asynchronous
async def test_a_backup_inside_the_folder_does_not_hold_itself(tmp_path):
    async with open_store(f"jsonl:{tmp_path / 's'}") as store:
        await store.tenant().create(Record(key="a:b"), [Message.user("x")])
        await store.backup(tmp_path / "s" / "backup")

    found = sorted(path.name for path in (tmp_path / "s" / "backup").iterdir())
    assert found == [".holdfast", "a_b.jsonl"]


@asynchronous
async def test_a_backup_that_cannot_be_whole_is_none(tmp_path, monkeypatch):
    """What cannot be read is told as it is, and nothing is left of it."""
    real = shutil.copy2

    def copy2(source, path, **options):
        if str(source).endswith(".jsonl"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), source)
        return real(source, path, **options)

    async with open_store(f"jsonl:{tmp_path / 's'}") as store:
        await store.tenant().create(Record(key="a:b"), [Message.user("x")])
        monkeypatch.setattr(shutil, "copy2", copy2)

        with pytest.raises(StoreUnavailable, match="EACCES"):
            await store.backup(tmp_path / "backup")

    assert not (tmp_path / "backup").exists()


@pytest.mark.parametrize(
    "url",
    ["jsonl:", "jsonl://host/x", "jsonl:x?names=other", "jsonl:x?mode=rw", "jsonl:x?names="],
)
def test_a_url_that_makes_no_sense_is_refused(url):
    """With words of its own, before anything is touched."""
    with pytest.raises(InvalidInput):
        open_store(url)


@asynchronous
async def test_a_folder_that_must_be_there_is_not_made(tmp_path):
    """With create=False."""
    with pytest.raises(StoreUnavailable):
        await open_store(f"jsonl:{tmp_path}/s", create=False)

    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def happened(monkeypatch):
    """What was done to files, in order, once `watch` was called: its name and two suffixes."""
    noted = []

    def note(name, function):
        def called(*arguments, **options):
            noted.append((name, *(Path(str(each)).suffix for each in arguments[:2])))
            return function(*arguments, **options)

        return called

    def watch():
        monkeypatch.setattr(writing.os, "replace", note("replace", os.replace))
        monkeypatch.setattr(files, "sync", note("sync", files.sync))
        monkeypatch.setattr(writing, "sync", note("sync", writing.sync))
        folder = private_files.sync_folder
        monkeypatch.setattr(private_files, "sync_folder", note("folder", folder))
        return noted

    return watch


@asynchronous
async def test_a_new_file_is_on_the_disk_with_its_name_before_it_counts(tmp_path, happened):
    """S4-50, B2: beside the old one, synced, the sidecar before it, and the folder after it."""
    async with open_store(f"jsonl:{tmp_path}/s") as store:
        record = await store.tenant().create(Record(key="a:b"), [Message.user("x")])
        noted = happened()
        await store.tenant().update(record.id, {"metadata": {"title": "t"}})

    assert [each[0] for each in noted] == ["sync", "sync", "replace", "folder"]
    assert noted[2] == ("replace", ".page", ".jsonl")
    assert list((tmp_path / "s/.holdfast/temporary").iterdir()) == []


@asynchronous
async def test_what_takes_the_place_of_a_file_is_on_the_disk_at_every_level(tmp_path, happened):
    """S4-50, B2: level "fast" may lose the end. A file that was replaced by one that is not on the
    disk yet would be lost as a whole, with what was safe for years."""
    async with open_store(f"jsonl:{tmp_path}/s", durability="fast") as store:
        tenant = store.tenant()
        record = await tenant.create(Record(key="a:b"), [Message.user("x"), Message.user("y")])
        noted = happened()
        await tenant.update(record.id, {"metadata": {"title": "t"}})
        await tenant.erase(record.id, [1])

    page = [("sync", ""), ("replace", ".page", ".jsonl")]
    log = [("sync", ""), ("replace", ".log", ".log")]
    assert [each for each in noted if each[0] != "folder"] == [*page, page[0], *log, page[1]]


@asynchronous
async def test_what_a_process_that_died_was_writing_is_removed(tmp_path):
    """S4-52: no temporary file outlives the next opening; nothing in it was promised to anybody."""
    for tenant in ("", "acme"):
        async with open_store(f"jsonl:{tmp_path}/s") as store:
            await store.tenant(tenant).create(Record(key="a:b"), [Message.user("x")])
        (folder,) = [
            each
            for each in tmp_path.glob("**/temporary")
            if bool(tenant) == ("tenants" in each.parts)
        ]
        (folder / "left.page").write_bytes(b"half a file")

        async with open_store(f"jsonl:{tmp_path}/s") as store:
            assert len((await store.tenant(tenant).list()).items) == 1

        assert list(folder.iterdir()) == []


@pytest.mark.parametrize("steps", range(1, 7))
def test_a_session_that_was_being_deleted_leaves_nothing_behind(tmp_path, steps):
    """S4-52: who dies in the middle of deleting has promised nothing: the session is there or not.
    But what is left of one that nobody finds could not be deleted again: who looks next does it."""
    url = f"jsonl:{tmp_path}/s"

    async def made():
        async with open_store(url) as store:
            record = await store.tenant().create(Record(key="a:b"), [Message.user("a secret")])
            (log,) = (tmp_path / "s/.holdfast/logs").iterdir()
            (tmp_path / "s/.holdfast/aside" / f"{log.stem}.x.jsonl").write_bytes(b"a secret")
            await store.tenant().create(Record(key="c:d"), [Message.user("another")])
            return record.id

    async def deleted(id):
        left = steps

        def then_dies(function):
            def called(*given, **options):
                nonlocal left
                done = function(*given, **options)
                left -= 1
                return done if left else os._exit(0)

            return called

        async with open_store(url) as store:
            writing.os.replace = then_dies(os.replace)
            Path.unlink = then_dies(Path.unlink)
            await store.tenant().delete(id)
        os._exit(0)

    async def looked():
        async with open_store(url) as store:
            return sorted(each.key for each in (await store.tenant().list()).items)

    id = asyncio.run(made())
    if not (child := os.fork()):
        asyncio.run(deleted(id))
    assert os.waitpid(child, 0)[1] == 0

    found = asyncio.run(looked())

    assert found == (["a:b", "c:d"] if steps == 1 else ["c:d"])
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(b"a secret" in path.read_bytes() for path in left) == ("a:b" in found)


@asynchronous
async def test_a_cursor_beyond_the_messages_is_not_written(tmp_path):
    """S4-22, B52: it would hide all history from nanobot."""
    async with open_store(f"jsonl:{tmp_path}") as store:
        tenant = store.tenant()
        record = await tenant.create(Record(key="a:b"), [Message.user("x")])
        written = []
        for cursor in (99, 1):
            await tenant.update(record.id, {"counters": {"last_consolidated": cursor}})
            first = (tmp_path / "a_b.jsonl").read_text().splitlines()[0]
            written.append(json.loads(first)["last_consolidated"])

    assert written == [0, 1]


@asynchronous
async def test_nothing_is_kept_in_mind_of_sessions_that_are_gone(tmp_path):
    """However many come and go: those that were deleted, and those whose file another program took
    away, also where they were listed before."""
    async with open_store(f"jsonl:{tmp_path}/s", durability="fast") as store:
        tenant = store.tenant()
        for n in range(12):
            record = await tenant.create(Record(key=f"k:{n}"), [Message.user("a")])
            if n % 2:
                await tenant.list()
            if n % 3:
                await tenant.delete(record.id)
            else:
                (tmp_path / "s" / f"k_{n}.jsonl").unlink()
                with pytest.raises(SessionNotFound):
                    await tenant.load(record.key)
        folder = store._place.folder("")
        assert (folder._ids, folder._listings, folder.states) == ({}, {}, {})


@asynchronous
async def test_a_manager_on_nanobot_s_files(tmp_path):
    """S4-2: sessions and turns as on any store; what was said is in a file that nanobot reads."""
    async with holdfast.open(f"jsonl:{tmp_path}", model=FakeProvider("Hello, Ada.")) as sessions:
        session = await sessions.get_or_create("cli:direct")
        assert str(await session.send("I am Ada.")) == "Hello, Ada."
        assert await sessions.get_or_create("cli:direct") is session

    _, said = load(tmp_path / "cli_direct.jsonl")
    assert [each["content"] for each in said] == ["I am Ada.", "Hello, Ada."]
    async with holdfast.open(f"jsonl:{tmp_path}") as sessions:
        session = await sessions.get("cli:direct")
        assert [each.text for each in await session.read()] == ["I am Ada.", "Hello, Ada."]


@asynchronous
async def test_what_is_of_no_use_any_more_is_left_out_in_time(tmp_path):
    """Drafts of turns that ended stand in the sidecar until it is loaded again."""
    place = tmp_path / "s"
    async with open_store(f"jsonl:{place}", durability="fast") as store:
        tenant = store.tenant()
        record = await tenant.create(Record(key="a:b"), [Message.user("x")])
        for _ in range(6):
            lease = await tenant.begin(record.id, "me", HOUR, {"said": "y"})
            await tenant.journal(lease, "partial " * 10_000)
            await tenant.append(record.id, [Message.user("z")], lease=lease, finish=True)
        before = await tenant.read(record.id)
    (log,) = (place / ".holdfast/logs").iterdir()
    assert log.stat().st_size > 400_000

    for _ in range(2):
        async with open_store(f"jsonl:{place}", durability="fast") as store:
            assert await store.tenant().read(record.id) == before
            assert (await store.tenant().verify()).problems == ()
            await store.tenant().append(record.id, [Message.user("more")])
            before = await store.tenant().read(record.id)

    assert log.stat().st_size < 20_000
