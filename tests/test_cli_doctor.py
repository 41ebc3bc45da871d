"""`holdfast doctor` and `models`: each finding with its way out, and never a key."""

import asyncio
import json
import os
import sqlite3
from datetime import UTC, datetime, timedelta
from importlib.metadata import EntryPoint

import pytest

import holdfast
from commands import Commands, Inside
from holdfast import Message, ids
from holdfast.health import examine, machine, store
from holdfast.health.finding import Finding
from holdfast.providers import vendors
from holdfast.stores.postgresql.server import Standby
from postgres_server import server

KEY = "sk-ant-very-secret-0123456789"


@pytest.fixture
def cli(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(vendors.shutil, "which", lambda _: None)
    return Inside(tmp_path, monkeypatch, capfd)


def fill(url, when=None):
    async def main():
        clock = {} if when is None else {"clock_ns": lambda: int(when.timestamp() * 1e9)}
        with ids.using(ids.IdSource(**clock)):
            async with holdfast.open(url) as sessions:
                await (await sessions.get_or_create("cli:direct")).append(Message.user("hello"))

    asyncio.run(main())


def about(found, word):
    return [each for each in found if word in each["what"]]


# doctor


def test_a_machine_without_a_store_is_told_so(cli):
    ran = cli("doctor")

    assert ran.status == 0
    assert "there is none yet" in ran.out
    assert not (cli.home / "data").exists()


def test_a_store_that_is_as_it_should_be_has_no_errors(cli, monkeypatch):
    (cli.home / "data").mkdir(mode=0o700)
    fill(cli.store)

    found = cli("doctor", "--json").json

    assert {each["level"] for each in found} <= {"ok", "warning"}
    assert about(found, "journal mode wal, synchronous FULL")
    assert about(found, f"version {sqlite3.sqlite_version}")
    assert about(found, "MB are free")
    assert about(found, "the store is sqlite:")
    assert all(each["way_out"] for each in found if each["level"] != "ok")


def test_what_others_may_read_is_an_error_with_the_way_out(cli):
    (cli.home / "data").mkdir(mode=0o700)
    fill(cli.store)
    os.chmod(cli.home / "data" / "holdfast.db", 0o644)

    ran = cli("doctor", "-q")

    assert ran.status == 1
    assert "can be used by others" in ran.out and "chmod 600" in ran.out
    os.chmod(cli.home / "data" / "holdfast.db", 0o600)
    assert cli("doctor", "-q").status == 0


def test_a_folder_that_others_may_list_is_a_warning_because_the_file_is_ours_alone(cli, tmp_path):
    """A store in a folder of the user's choice: a script that waits for doctor does not wait."""
    folder = tmp_path / "project"
    folder.mkdir()
    folder.chmod(0o755)
    url = f"sqlite:{folder}/chats.db"
    fill(url)

    ran = cli("doctor", "-q", "--store", url)

    assert ran.status == 0
    assert "warning" in ran.out and "use a folder of the store's own" in ran.out


def test_the_version_of_sqlite_that_damages_is_a_warning_because_we_keep_out_of_its_way(
    cli, monkeypatch
):
    (cli.home / "data").mkdir(mode=0o700)
    fill(cli.store)
    for version, count in (((3, 40, 1), 1), ((3, 53, 0), 0)):
        monkeypatch.setattr(sqlite3, "sqlite_version_info", version)
        found = about(cli("doctor", "--json").json, "WAL-reset bug")
        assert [each["level"] for each in found] == ["warning"] * count
        assert all("keeps them apart" in each["way_out"] for each in found)


@pytest.mark.parametrize(
    ("kind", "level"), [("nfs4", "error"), ("overlay", "warning"), ("ext4", None)]
)
def test_a_doubtful_file_system_is_named(cli, monkeypatch, kind, level):
    (cli.home / "data").mkdir(mode=0o700)
    fill(cli.store)
    monkeypatch.setattr("holdfast.private_files.file_system", lambda _: kind)

    found = [e for e in cli("doctor", "--json").json if f"is on {kind}" in e["what"]]

    assert [each["level"] for each in found] == ([level] if level else [])


def test_too_little_room_is_an_error(cli, monkeypatch):
    (cli.home / "data").mkdir(mode=0o700)
    fill(cli.store)
    for free, level in ((10**6, "error"), (5 * 10**8, "warning"), (10**12, "ok")):
        monkeypatch.setattr(store, "_free", lambda _, free=free: free)
        found = about(cli("doctor", "--json").json, "MB are free")
        assert [each["level"] for each in found] == [level]


def test_a_clock_that_is_behind_the_store_is_an_error(cli):
    (cli.home / "data").mkdir(mode=0o700)
    fill(cli.store, datetime.now(UTC) + timedelta(days=2))

    ran = cli("doctor", "-q")

    assert ran.status == 1 and "clock" in ran.out and "set the clock" in ran.out


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda path: path.write_bytes(b"nonsense" * 200), "not a SQLite database"),
        (lambda path: path.write_bytes(b"x"), "not a SQLite database"),
        (lambda path: path.mkdir(), "directory"),
    ],
    ids=["nonsense", "short", "folder"],
)
def test_a_store_that_does_not_open_is_an_error_and_the_rest_is_told_too(cli, write, said):
    (cli.home / "data").mkdir(mode=0o700)
    write(cli.home / "data" / "holdfast.db")

    ran = cli("doctor")

    assert ran.status == 1
    assert said in ran.out and "holdfast: version" in ran.out and ran.err == ""


def test_a_store_of_postgresql_tells_how_it_commits(cli):
    url = server().database("doctor")
    fill(url)

    found = cli("doctor", "--json", "--store", url).json

    assert about(found, "synchronous_commit on")
    assert [each["level"] for each in about(found, "fsync")] == ["error"]  # of the test server
    assert about(found, "there is none") and not about(found, "postgres:")


def test_a_standby_that_is_not_in_sync_yet_is_an_error_that_can_be_waited_for(monkeypatch):
    """Right after its start a standby is async, whatever is set: the primary alone has the data."""
    import holdfast.stores.postgresql.store as place

    url = server().database("standby")
    fill(url)
    for sync, levels in (("async", ["error"]), ("sync", ["ok"])):
        standbys = (Standby("two", "streaming", sync),)

        async def told(_, standbys=standbys):
            return standbys

        monkeypatch.setattr(place, "standbys_of", told)
        found = [each for each in asyncio.run(examine(url)) if "'two'" in each.what]
        assert [each.level for each in found] == levels


def test_keys_are_named_by_their_variables_alone(cli):
    ran = cli("doctor", ANTHROPIC_API_KEY=KEY, HTTPS_PROXY=f"http://u:{KEY}@proxy:80")

    assert "anthropic: ANTHROPIC_API_KEY is set" in ran.out
    assert "HTTPS_PROXY is http://***@proxy:80" in ran.out
    assert KEY not in ran.out + ran.err


def test_no_password_of_a_store_is_shown(cli):
    ran = cli("doctor", HOLDFAST_STORE=f"postgresql://u:{KEY}@127.0.0.1:1/x")

    assert ran.status == 1 and "cannot be reached" in ran.out
    assert KEY not in ran.out + ran.err


def test_settings_that_are_wrong_or_mean_nothing_are_told(cli):
    (cli.home / "config").mkdir()
    path = cli.home / "config" / "config.toml"
    path.write_text('color = "never"\n')
    os.chmod(path, 0o644)

    ran = cli("doctor", "-q", HOLDFAST_STROE="x")

    assert ran.status == 1
    assert "config.toml can be used by others" in ran.out
    assert "HOLDFAST_STROE is set, and means nothing here" in ran.out


def test_a_file_of_settings_that_cannot_be_read_is_a_finding(cli):
    (cli.home / "config").mkdir()
    (cli.home / "config" / "config.toml").write_text("store = [")

    ran = cli("doctor", "--store", "sqlite:x.db")

    assert ran.status == 1 and "is not TOML" in ran.out and ran.err == ""


def test_a_plugin_that_does_not_load_disturbs_no_other(monkeypatch):
    broken = EntryPoint("broken", "no_such_module:thing", "holdfast.formats")
    right = EntryPoint("right", "holdfast.formats.document:FORMAT", "holdfast.formats")
    monkeypatch.setattr(
        machine, "entry_points", lambda group: [broken, right] if "formats" in group else []
    )

    found = [each for each in machine.findings() if each.about == "plugins"]

    assert [each.level for each in found] == ["error", "ok"]
    assert found[0].way_out


def test_a_package_that_is_missing_is_named_with_how_to_install_it(monkeypatch):
    monkeypatch.setattr(machine, "find_spec", lambda name: None)

    found = [each for each in machine.findings() if each.about == "extras"]

    assert Finding("ok", "extras", "installed: none") in found
    assert any("pip install 'holdfast[postgres]'" in each.way_out for each in found)


# models


def test_models_that_can_be_used_are_listed_with_windows_and_prices(cli):
    ran = cli("models", ANTHROPIC_API_KEY=KEY)

    assert ran.status == 0 and KEY not in ran.out + ran.err
    row = next(line for line in ran.out.splitlines() if "anthropic:claude-sonnet-4-5 " in line)
    assert row.split() == ["anthropic:claude-sonnet-4-5", "200,000", "64,000", "3", "15", "0.30"]
    assert "openai:" not in ran.out and "openai: set OPENAI_API_KEY" in ran.err


def test_all_models_are_listed_if_it_is_said(cli):
    found = cli("models", "--all", "--json").json

    names = {each["name"]: each for each in found["vendors"]}
    assert set(names) >= {"anthropic", "openai", "google", "github", "ollama", "claude-cli"}
    assert not names["openai"]["is_usable"] and names["openai"]["way_out"]
    one = names["anthropic"]["models"][0]
    assert set(one) == {"name", "context", "output", "prices_per_million", "is_known"}
    assert found["as_of"]


def test_each_model_that_is_listed_can_be_opened_by_its_name():
    """What the list shows is what -m takes. Antigravity's wants a file of accounts beforehand."""
    for vendor in set(vendors.vendors()) - {"antigravity"}:
        for model in vendors.models_of(vendor):
            holdfast.open_provider(f"{vendor}:{model.name}")


def test_an_unknown_vendor_is_refused_with_the_names_of_all(cli):
    ran = cli("models", "nobody")

    assert (ran.status, ran.out) == (3, "") and "anthropic, openai" in ran.err


def test_a_vendor_that_cannot_be_asked_is_told_with_status_6(cli):
    """`--live` on a server that is not there; without it nothing is asked."""
    address = "http://127.0.0.1:1"

    assert cli("models", "ollama", OLLAMA_HOST=address).status == 0
    ran = cli("models", "ollama", "--live", "--json", OLLAMA_HOST=address)

    assert ran.status == 6
    assert ran.json["vendors"][0]["error"]


def test_doctor_and_models_load_no_model_and_no_client(cli):
    """They look whether a package is there without importing it."""
    script = (
        "import sys; from holdfast.cli import main; main(['doctor']); main(['models', '--all']);"
        "print([n for n in ('httpx2', 'xllamacpp', 'splintr') if n in sys.modules])"
    )
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=Commands(cli.home).environment,
        timeout=60,
    )

    assert done.stdout.splitlines()[-1] == "[]"


def test_json_of_the_doctor_is_a_list_of_findings(cli):
    found = json.loads(cli("doctor", "--json").out)

    assert all(set(each) == {"level", "about", "what", "way_out"} for each in found)
