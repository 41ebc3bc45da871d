"""A file of every format that ever was opens whole; a newer one is left alone."""

import asyncio
import shutil
import sqlite3
from pathlib import Path

import pytest

from holdfast.errors import Corrupt, FormatTooNew
from holdfast.stores import open_store
from holdfast.stores.sqlite import formats
from holdfast.stores.sqlite.formats import FORMAT
from old_conversation import read_everything, use

FOLDER = Path(__file__).parent / "format"
FILES = sorted(FOLDER.glob("sqlite-*.db"))


def run(scenario, path):
    async def main():
        async with open_store(f"sqlite:{path}") as store:
            return await scenario(store)

    return asyncio.run(main())


def schema(path):
    db = sqlite3.connect(path)
    try:
        return set(db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema"))
    finally:
        db.close()


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def old(request, tmp_path):
    """A copy of a file that a former version wrote."""
    return Path(shutil.copy(request.param, tmp_path / "chats.db"))


def test_there_is_a_file_of_every_format():
    assert [path.stem for path in FILES] == [f"sqlite-{n}" for n in range(1, FORMAT + 1)]


def test_everything_in_an_old_file_is_read(old):
    """Records, entries of all kinds, branches, drafts, large texts, what is unknown, tenants."""
    run(read_everything, old)


def test_an_old_file_is_used_like_a_new_one(old):
    """Appended to, searched, erased from, verified; a name that was used is still used."""
    run(use, old)


def test_an_old_file_becomes_a_file_of_today(old, tmp_path):
    """The same tables and indexes as one that is made now: what a step adds is all there is."""

    async def scenario(store):
        pass

    run(scenario, old)
    run(scenario, tmp_path / "new.db")

    assert schema(old) == schema(tmp_path / "new.db")


def test_a_newer_file_is_not_touched(tmp_path):
    """Not by a byte, and nothing is put beside it."""
    path = Path(shutil.copy(FILES[-1], tmp_path / "chats.db"))
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version={FORMAT + 1}")
    db.close()
    for beside in tmp_path.glob("chats.db-*"):
        beside.unlink()
    before = path.read_bytes()

    with pytest.raises(FormatTooNew) as error:
        run(None, path)

    assert (error.value.found, error.value.known) == (FORMAT + 1, FORMAT)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.glob("chats.db?*") if "lock" not in each.name] == []


def test_a_step_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    """All or nothing: the next attempt begins where the first one did."""
    path = Path(shutil.copy(FILES[0], tmp_path / "chats.db"))
    whole = formats._steps
    monkeypatch.setattr(formats, "_steps", lambda n: (*whole(n), "CREATE TABLE words(x)"))

    async def scenario(store):
        record = await store.tenant().load("telegram:1")
        assert len(await store.tenant().read(record.id, "main")) == 8

    with pytest.raises(Corrupt):
        run(scenario, path)
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone() == (1,)
    db.close()
    monkeypatch.undo()

    run(scenario, path)
