"""`holdfast copy`, `backup` and `verify`: whole stores, brought elsewhere and gone over."""

import asyncio
import errno
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys

import pytest

import holdfast
from commands import Commands, Inside
from holdfast import Message
from holdfast.stores import copying
from holdfast.testing.faults import disk
from postgres_server import server

SECRET = "hunter2"


async def fill(url, sessions=3, messages=2, tenant=""):
    async with holdfast.open(url, tenant=tenant, durability="fast") as opened:
        for number in range(sessions):
            session = await opened.get_or_create(f"telegram:{number}")
            await session.append(
                *(Message.user(f"word {n} of {number}{tenant}") for n in range(messages))
            )


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """The bytes of a store, made once."""
    path = tmp_path_factory.mktemp("filled") / "holdfast.db"
    asyncio.run(fill(f"sqlite:{path}"))
    asyncio.run(fill(f"sqlite:{path}", 1, tenant="other"))
    return path.read_bytes()


@pytest.fixture
def cli(tmp_path, monkeypatch, capfd, filled):
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data" / "holdfast.db").write_bytes(filled)
    os.chmod(tmp_path / "data" / "holdfast.db", 0o600)
    monkeypatch.chdir(tmp_path)
    return Inside(tmp_path, monkeypatch, capfd)


def damage(cli, old=b'"word 1 of 0"', new=b'"ward 1 of 0"'):
    path = cli.home / "data" / "holdfast.db"
    path.write_bytes(path.read_bytes().replace(old, new))


def keys(cli, *options):
    return sorted(each["key"] for each in cli("ls", "--json", *options).json)


# copy


@pytest.mark.parametrize("kind", ["sqlite", "jsonl", "postgresql"])
def test_all_conversations_are_copied_and_read_back(cli, kind):
    to = {"sqlite": "sqlite:copy.db", "jsonl": "jsonl:copy"}.get(kind) or server().database("copy")

    first, again = cli("copy", to), cli("copy", to, "--json")

    assert first.status == again.status == 0
    assert first.out.startswith("3 conversations in ")
    assert (again.json["sessions"], again.json["unchanged"], again.json["written"]) == (3, 3, 0)
    assert cli("verify", "--store", to).status == 0
    assert keys(cli, "--store", to) == keys(cli)


def test_those_that_are_named_are_copied(cli):
    ran = cli("copy", "sqlite:copy.db", "telegram:0", "@", "--json")

    assert ran.json["sessions"] == 2
    assert keys(cli, "--store", "sqlite:copy.db") == ["telegram:0", "telegram:2"]


def test_all_tenants_are_copied_if_it_is_said(cli):
    assert cli("copy", "sqlite:copy.db", "--all-tenants", "--json").json["sessions"] == 4
    assert keys(cli, "--store", "sqlite:copy.db", "--tenant", "other") == ["telegram:0"]


def test_what_is_something_else_there_is_left_and_told(cli):
    asyncio.run(fill("sqlite:copy.db", 1))

    ran = cli("copy", "sqlite:copy.db")

    assert ran.status == 4 and "it was left as it is" in ran.err
    assert ran.out.startswith("2 conversations in ")
    assert cli("copy", "sqlite:copy.db", "--skip-conflicts").status == 0


def test_what_is_damaged_is_not_copied_and_stops_no_other(cli):
    damage(cli)

    ran = cli("copy", "sqlite:copy.db", "--json")

    assert ran.status == 5
    assert ran.json["sessions"] == 2 and len(ran.json["failed"]) == 1


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("copy",), 2, "TO_URL"),
        (("copy", "foo"), 2, "has no scheme"),
        (("copy", "foo:bar"), 2, "begins with 'foo'"),
        (("copy", "sqlite:copy.db", "nobody"), 3, "there is no conversation"),
        (("copy", "sqlite:copy.db", "@", "--all-tenants"), 2, "not both"),
        (("copy", "sqlite:data/holdfast.db"), 2, "this is the store that is copied"),
        (("copy", "sqlite:a.db", "--store", "sqlite:missing.db"), 3, "there are no conversations"),
        (("copy", f"postgresql://u:{SECRET}@127.0.0.1:1/x"), 1, "cannot be reached"),
        (("copy", "sqlite:a.db", f"postgresql://u:{SECRET}@127.0.0.1:1/x"), 2, "--store FROM copy"),
        (("backup",), 2, "FILE"),
        (("backup", "data"), 1, "is there already"),
        (("backup", "no/where/b.db"), None, "no"),
        (("backup", "b.db", "--store", "memory:"), None, ""),
        (("verify", "nobody"), 3, "there is no conversation"),
        (("verify", "--store", "sqlite:missing.db"), 3, "there are no conversations"),
        (("verify", "--store", "sqlite:foreign.db"), 1, "foreign.db"),
        (("verify", "--store", "sqlite:text.db"), 5, "text.db"),
        (("verify", "--store", "sqlite:short.db"), 5, "short.db"),
        (("verify", "--store", "sqlite:newer.db"), 1, "update holdfast"),
        (("verify", "--store", "sqlite:data"), 1, "data"),
        (("ls", "--store", "sqlite:text.db"), 5, "text.db"),
    ],
    ids=lambda value: " ".join(value).replace("/", "_") if isinstance(value, tuple) else "",
)
def test_what_cannot_be_done_is_said_in_a_sentence(cli, tmp_path, filled, arguments, status, said):
    """No traceback, no secret, one sentence that ends with the way out; and nothing is changed."""
    strange_files(tmp_path, filled)
    before = {p: p.read_bytes() for p in tmp_path.glob("*.db")}

    ran = cli(*arguments)

    if status is None:
        assert ran.status in (0, 1, 2, 3)
    else:
        assert (ran.status, ran.out) == (status, "")
        assert ran.err.startswith("error: ") and ran.err.count("\n") == 1
    assert said in ran.err and SECRET not in ran.err
    assert {p: p.read_bytes() for p in before} == before
    assert keys(cli) == ["telegram:0", "telegram:1", "telegram:2"]


def strange_files(folder, filled):
    """A database of another program, no database, half of one, and one of a later release."""
    with sqlite3.connect(folder / "foreign.db") as db:
        db.execute("CREATE TABLE mine (x)")
    db.close()
    (folder / "text.db").write_bytes(b"not a database at all" * 100)
    (folder / "short.db").write_bytes(filled[:300])
    newer = bytearray(filled)
    newer[60:64] = (999).to_bytes(4, "big")
    (folder / "newer.db").write_bytes(bytes(newer))


def test_without_the_package_for_postgresql_it_says_what_to_install(cli, monkeypatch):
    monkeypatch.setitem(sys.modules, "holdfast.stores.postgresql.store", None)

    ran = cli("copy", "postgresql://db.example/chats")

    assert ran.status == 2 and "pip install 'holdfast[postgres]'" in ran.err


def test_a_copy_that_is_interrupted_goes_on_where_it_was(cli, monkeypatch):
    """Ctrl-C in the middle: status 130, the way out, and the next run brings the rest."""
    asyncio.run(fill(cli.store, 40))
    real, calls = copying.Replica.bring, []

    async def bring(self, **options):
        calls.append(self)
        if len(calls) == 21:
            os.kill(os.getpid(), signal.SIGINT)
        return await real(self, **options)

    with monkeypatch.context() as patch:
        patch.setattr(copying.Replica, "bring", bring)
        ran = cli("copy", "sqlite:copy.db")

    assert (ran.status, ran.out) == (130, "")
    assert "run it again" in ran.err and ran.err.endswith("interrupted\n")
    there = keys(cli, "--store", "sqlite:copy.db")
    assert 0 < len(there) < 40
    assert cli("verify", "--store", "sqlite:copy.db").status == 0
    rest = cli("copy", "sqlite:copy.db", "--json")
    assert (rest.status, rest.json["sessions"]) == (0, 40)
    assert 0 < rest.json["unchanged"] <= len(there)


def test_a_copy_that_is_killed_goes_on_where_it_was(cli):
    """SIGKILL at some moment of it: nothing is damaged, and the next run brings the rest."""
    asyncio.run(fill(cli.store, 40))
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast", "copy", "sqlite:copy.db"],
        env=Commands(cli.home).environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while process.poll() is None and not (cli.home / "copy.db-wal").exists():
        os.sched_yield()
    process.kill()
    process.wait()

    rest = cli("copy", "sqlite:copy.db", "--json")
    assert (rest.status, rest.json["sessions"]) == (0, 40)
    assert cli("verify", "--store", "sqlite:copy.db").status == 0


@pytest.mark.skipif(disk.missing() != "", reason=disk.missing() or "-")
def test_a_full_disk_ends_a_copy_and_a_backup_with_the_way_out(cli, tmp_path):
    """Status 1 and a sentence; the source is as it was, and with room it goes through."""
    with disk.SmallDisk(tmp_path, 1 << 20) as small:
        small.fill(64 * 1024)
        for arguments in (["copy", f"sqlite:{small.path}/c.db"], ["backup", f"{small.path}/b.db"]):
            ran = cli(*arguments)
            assert ran.status == 1 and ran.err.startswith("error: "), ran.err
            assert "Traceback" not in ran.err
        small.free()
        assert cli("copy", f"sqlite:{small.path}/c.db").status == 0
        assert cli("backup", f"{small.path}/b.db").status == 0
    assert cli("verify").status == 0


@pytest.mark.skipif(disk.missing() != "", reason=disk.missing() or "-")
def test_a_read_only_folder_is_told(cli, tmp_path):
    """Root may write anywhere but on a file system that is mounted read-only."""
    with disk.SmallDisk(tmp_path, 1 << 20) as small:
        subprocess.run(["mount", "-o", "remount,ro", str(small.path)], check=True)
        for arguments in (
            ["copy", f"sqlite:{small.path}/c.db"],
            ["backup", f"{small.path}/b.db"],
            ["export", "@", "-o", f"{small.path}/a.json"],
        ):
            ran = cli(*arguments)
            assert ran.status == 1 and ran.err.startswith("error: "), ran.err
            assert os.strerror(errno.EROFS).lower() in ran.err.lower() or "write" in ran.err
    assert cli("verify").status == 0


# backup


def test_a_backup_is_a_store_and_is_never_overwritten(cli, tmp_path):
    ran = cli("backup", "monday.db", "--json")

    assert ran.json["path"] == str(tmp_path / "monday.db")
    assert ran.json["bytes"] == (tmp_path / "monday.db").stat().st_size
    assert stat.S_IMODE(os.stat("monday.db").st_mode) == 0o600
    assert cli("verify", "--store", ran.json["url"]).status == 0
    before = (tmp_path / "monday.db").read_bytes()
    assert cli("backup", "monday.db").status == 1
    assert (tmp_path / "monday.db").read_bytes() == before


def test_a_backup_of_files_is_a_folder(cli):
    cli("copy", "jsonl:files")

    ran = cli("backup", "monday", "--store", "jsonl:files", "--json")

    assert ran.json["url"].startswith("jsonl:")
    assert keys(cli, "--store", ran.json["url"]) == keys(cli)


# verify


def test_a_store_that_is_whole_is_told_to_be(cli):
    ran = cli("verify")

    assert (ran.status, ran.out) == (0, "")
    assert "3 conversations with 6 entries" in ran.err
    assert cli("verify", "telegram:1", "--json").json == {
        "sessions": 1,
        "entries": 2,
        "problems": [],
    }


def test_each_damage_is_told_with_its_place_and_the_way_out(cli):
    damage(cli)

    ran = cli("verify")
    assert ran.status == 5
    assert ran.out.count("session 'telegram:0', branch 'main', entry 2") == 1
    assert "backup" in ran.err
    problems = cli("verify", "--json").json["problems"]
    assert problems[0]["key"] == "telegram:0" and problems[0]["seq"] == 2
    assert cli("verify", "telegram:1").status == 0
    assert cli("verify", "telegram:0").status == 5


def test_the_json_of_each_is_one_document(cli):
    for arguments in (["copy", "sqlite:copy.db"], ["backup", "b.db"], ["verify"]):
        json.loads(cli(*arguments, "--json").out)
