"""The database file: what it refuses, how it is set, and who may write when.

Races, deaths and forks are tried with real processes, each a small script of its own.
"""

import errno
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

import processes
from holdfast import file_lock, private_files
from holdfast.errors import (
    Corrupt,
    FormatTooNew,
    InvalidInput,
    StoreFull,
    StoreUnavailable,
)
from holdfast.stores.sqlite import file as sqlite_file
from holdfast.stores.sqlite import wal as sqlite_wal
from holdfast.stores.sqlite.file import (
    APPLICATION_ID,
    SETTINGS,
    SQLiteFile,
    has_wal_reset_bug,
    is_fatal,
    settings,
    translate,
)

posix_only = pytest.mark.skipif(os.name != "posix", reason="modes, links and signals are POSIX")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
needs_proc = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="/proc/locks is Linux")

START = f"""{processes.SAY}
import os, signal, sqlite3, sys, time
from pathlib import Path
from holdfast.stores.sqlite.file import SQLiteFile
path = sys.argv[1]
"""


class Script(processes.Script):
    start = START


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store" / "chat.db"


@pytest.fixture
def opened(path):
    file = SQLiteFile(path)
    file.open(1)
    yield file
    file.shut()


@pytest.fixture
def db(opened):
    db = opened.connect()
    yield db
    opened.close(db)


def contents(folder):
    """Every file in a folder, with its bytes."""
    return {each.name: each.read_bytes() for each in folder.iterdir()}


def fill(file, db, bytes_max):
    """Commit until the WAL uses so much; without checkpoints."""
    db.execute("CREATE TABLE IF NOT EXISTS t(x)")
    while sqlite_wal.bytes_used(Path(f"{file.path}-wal")) < bytes_max:
        db.execute("INSERT INTO t VALUES (zeroblob(500000))")


def foreign(path, *statements):
    """A database of another program."""
    path.parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement).fetchall()


# Paths


@pytest.mark.parametrize(
    "path",
    ["", ":memory:", "a\0b", "a\ud800", "folder/", b"bytes", None, 3],
    ids=["empty", "memory", "NUL", "surrogate", "folder", "bytes", "None", "number"],
)
def test_what_cannot_be_a_path_is_refused_at_once(path):
    """Before anything is touched, and as the mistake of an argument."""
    with pytest.raises(InvalidInput):
        SQLiteFile(path)


def test_a_durability_that_is_not_known_is_refused():
    """A level that nobody defined must not quietly become the weaker one."""
    with pytest.raises(InvalidInput, match=r"durability is .sync. or .fast."):
        SQLiteFile("a.db", durability="off")


def test_making_the_object_touches_nothing(tmp_path, monkeypatch):
    """A tilde and a relative path are settled when the object is made; the disk is not touched."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    assert SQLiteFile("~/a/b.db").path == tmp_path / "a" / "b.db"
    assert SQLiteFile("b.db").path == tmp_path / "b.db"
    assert list(tmp_path.iterdir()) == []


@posix_only
@pytest.mark.parametrize("name", ["a?mode=memory.db", "a#b.db", "50%25.db", "file:x", "ä ö.db"])
def test_a_name_is_only_a_name(tmp_path, name):
    """Nothing in a path is read as a parameter of a URI."""
    file = SQLiteFile(tmp_path / name)
    file.open(1)
    file.close(file.connect())

    assert sorted(os.listdir(tmp_path)) == sorted([name, f"{name}-lock"])
    assert (tmp_path / name).read_bytes().startswith(b"SQLite format 3\0")


# What is made


@posix_only
def test_files_and_new_folders_are_for_us_alone(tmp_path):
    """B53: only the levels that we make get mode 0700; a folder that was there keeps its own."""
    there = tmp_path / "there"
    there.mkdir()
    there.chmod(0o755)
    umask = os.umask(0)
    try:
        file = SQLiteFile(there / "one" / "two" / "chat.db")
        file.open(1)
        db = file.connect()
        db.execute("CREATE TABLE t(x)")
    finally:
        os.umask(umask)

    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in there.rglob("*")}
    assert modes == {
        "one": 0o700,
        "two": 0o700,
        "chat.db": 0o600,
        "chat.db-wal": 0o600,
        "chat.db-shm": 0o600,
        "chat.db-lock": 0o600,
    }
    assert stat.S_IMODE(there.stat().st_mode) == 0o755
    file.close(db)


def test_without_create_a_missing_file_stays_missing(path):
    """Reading must not leave an empty database behind a misspelt name."""
    with pytest.raises(StoreUnavailable, match="no such file"):
        SQLiteFile(path, create=False).open(1)

    assert not path.parent.exists()


def test_the_file_says_whose_it_is(opened, db, path):
    """The mark is in the database itself, not only in its WAL."""
    header = path.read_bytes()[:100]

    assert header[68:72] == APPLICATION_ID.to_bytes(4, "big") == b"hold"
    assert header[18:20] == b"\2\2"  # WAL, to read and to write
    assert header[60:64] == b"\0\0\0\0"


def test_an_empty_file_is_taken(path):
    """As a process leaves it that was killed after making it, or `mktemp`."""
    path.parent.mkdir()
    path.touch()
    file = SQLiteFile(path)
    file.open(1)
    file.close(file.connect())

    assert path.read_bytes()[68:72] == b"hold"


def test_an_empty_database_that_is_in_wal_mode_already_is_made_ours(path):
    """As `PRAGMA journal_mode=wal` of another program leaves it: it can be opened again later."""
    foreign(path, "PRAGMA journal_mode=wal")
    assert path.read_bytes()[18:20] == b"\2\2"
    for _ in range(2):
        file = SQLiteFile(path)
        file.open(1)
        db = file.connect()
        assert path.read_bytes()[68:72] == b"hold"
        db.execute("CREATE TABLE IF NOT EXISTS t(x)")
        file.close(db)
        file.shut()


def can_trace():
    """Whether strace is here, and allowed to."""
    try:
        return not subprocess.run(["strace", "-o", "/dev/null", "true"]).returncode
    except OSError:
        return False


@pytest.mark.skipif(not can_trace(), reason="strace cannot be used here")
@pytest.mark.parametrize("call", ["openat", "pwrite64", "fdatasync", "unlink", "fchmod", "mkdir"])
def test_a_process_may_be_killed_at_any_point_of_making_the_file(tmp_path, call):
    """Whatever it left behind, the next one makes it good."""
    body = "print(os.getpid()); f = SQLiteFile(path); f.open(1); f.close(f.connect()); say('end')"
    number, status, path = 0, None, tmp_path / "none"
    while status != 0 and number < 300:
        number += 1
        path = tmp_path / str(number) / "chat.db"
        trace = ["strace", "-o", "/dev/null", "-P", path.parent, "-P", tmp_path, "-P", path]
        trace += [
            each for end in ("journal", "wal", "shm", "lock") for each in ("-P", f"{path}-{end}")
        ]
        inject = f"inject={call}:signal=KILL:when={number}"
        command = [*trace, "-e", inject, sys.executable, "-c", START + body, path]
        status = subprocess.run(command, capture_output=True).returncode
        file = SQLiteFile(path)
        file.open(1)
        with closing(file.connect()) as db:
            assert settings(db)["journal_mode"] == "wal"
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert db.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)

    assert status == 0, "it was never let through to its end"


# What is refused


@posix_only
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal", "-lock"])
@pytest.mark.parametrize("kind", ["symbolic link", "dangling link", "directory", "FIFO"])
def test_only_a_regular_file_is_opened(path, tmp_path, suffix, kind):
    """A link could lead our writes to any file; a FIFO would keep us waiting for ever."""
    path.parent.mkdir()
    name = Path(f"{path}{suffix}")
    aim = tmp_path / "aim"
    if kind == "symbolic link":
        aim.write_bytes(b"precious")
    if "link" in kind:
        name.symlink_to(aim)
    elif kind == "directory":
        name.mkdir()
    else:
        os.mkfifo(name)

    with pytest.raises(StoreUnavailable, match=f"{kind.split()[-1]}, not a regular file") as caught:
        SQLiteFile(path).open(1)

    assert caught.value.where == str(name)
    assert os.listdir(path.parent) == [name.name]
    assert not aim.exists() or aim.read_bytes() == b"precious"


@pytest.mark.parametrize(
    "data",
    [b"a text\n" * 1000, b"\0" * 8192, b"x", b"SQLite format 3\0" + b"\xff" * 4080],
    ids=["text", "zeros", "one byte", "only the magic"],
)
def test_what_is_not_a_database_is_left_alone(path, data):
    """It is reported as damage, byte for byte as it was, with nothing beside it."""
    path.parent.mkdir()
    path.write_bytes(data)

    with pytest.raises(Corrupt, match="not a SQLite database"):
        SQLiteFile(path).open(1)

    assert contents(path.parent) == {"chat.db": data}


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE mine(x)"],
        ["PRAGMA journal_mode=wal", "CREATE TABLE mine(x)"],
        ["PRAGMA application_id=7"],
        ["PRAGMA user_version=1"],
        ["PRAGMA application_id=7", "PRAGMA user_version=1", "CREATE VIEW v AS SELECT 1"],
    ],
    ids=["tables", "tables in WAL mode", "another id", "a version", "all of it"],
)
def test_the_database_of_another_program_is_left_alone(path, statements):
    """Not a byte changes, and no lock, WAL or shared memory is left beside it."""
    foreign(path, *statements)
    before = contents(path.parent)

    with pytest.raises(StoreUnavailable, match="another program"):
        SQLiteFile(path).open(1)

    assert contents(path.parent) == before
    assert list(before) == ["chat.db"]


def test_the_database_of_another_program_is_left_alone_if_a_wal_of_ours_lies_there(path):
    """Somebody has put it in the place of our file, and SQLite would write our pages into it."""
    file = SQLiteFile(path)
    file.open(1)
    db = file.connect()
    db.execute("CREATE TABLE t(x)")
    wal = Path(f"{path}-wal").read_bytes()
    file.close(db)
    file.shut()
    path.unlink()
    foreign(path, "CREATE TABLE mine(x)")
    Path(f"{path}-wal").write_bytes(wal)
    before = contents(path.parent)

    with pytest.raises(StoreUnavailable, match="another program"):
        SQLiteFile(path).open(1)

    assert contents(path.parent) == before


def test_tables_that_are_only_in_the_wal_are_seen(path):
    """The database itself is empty until the other program makes a checkpoint."""
    path.parent.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode=wal")
        other.execute("CREATE TABLE mine(x)")
        assert path.read_bytes()[103:105] == b"\0\0"
        before = contents(path.parent)

        with pytest.raises(StoreUnavailable, match="another program"):
            SQLiteFile(path).open(1)

        assert contents(path.parent) == before


def test_tables_that_come_between_opening_and_connecting_are_seen(opened):
    """A file that another program began to use meanwhile is not marked as ours."""
    foreign(opened.path, "CREATE TABLE mine(x)")
    before = opened.path.read_bytes()

    with pytest.raises(StoreUnavailable, match="another program"):
        opened.connect()

    assert opened.path.read_bytes() == before


def test_a_newer_format_is_refused_unchanged(opened, path):
    """What a newer holdfast wrote is not read, and not a byte of it changes."""
    db = opened.connect()
    db.execute("PRAGMA user_version=7")
    opened.close(db)
    before = contents(path.parent)

    with pytest.raises(FormatTooNew) as caught:
        SQLiteFile(path).open(6)

    assert caught.value.args == (str(path), 7, 6)
    assert contents(path.parent) == before
    SQLiteFile(path).open(7)


@pytest.mark.parametrize("checkpointed", [False, True])
def test_a_newer_format_that_is_still_in_the_wal_is_seen(path, checkpointed):
    """A newer holdfast migrated the file and was killed: the database knows nothing of it yet.

    With a checkpoint and later writes, the WAL's frames and the database both tell.
    """
    migrate = f"""
file = SQLiteFile(path); file.open(9); db = file.connect()
db.execute("CREATE TABLE t(x)")
db.execute("PRAGMA user_version=9")
if {checkpointed}:
    with file.locked():
        file.checkpoint(db)
db.execute("INSERT INTO t VALUES (1)")
os.kill(os.getpid(), signal.SIGKILL)
"""
    with Script(migrate, path) as script:
        script.process.wait(60)
    before = contents(path.parent)
    assert before["chat.db"][60:64] == (b"\0\0\0\t" if checkpointed else b"\0\0\0\0")

    with pytest.raises(FormatTooNew) as caught:
        SQLiteFile(path).open(8)

    assert caught.value.found == 9
    assert contents(path.parent) == before


def test_a_migration_that_was_not_committed_does_not_count(path):
    """Frames of an open transaction may stand in the WAL; only committed ones speak."""
    migrate = """
file = SQLiteFile(path); file.open(9); db = file.connect()
db.execute("CREATE TABLE t(x)")
db.execute("PRAGMA cache_size=1")
db.execute("BEGIN IMMEDIATE")
db.execute("PRAGMA user_version=9")
db.execute("INSERT INTO t VALUES (zeroblob(1000000))")
os.kill(os.getpid(), signal.SIGKILL)
"""
    with Script(migrate, path) as script:
        script.process.wait(60)
    assert Path(f"{path}-wal").stat().st_size > 500_000

    file = SQLiteFile(path)
    file.open(8)
    with closing(file.connect()) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (0,)


@pytest.mark.parametrize("has_lock", [False, True])
def test_a_checkpoint_that_was_cut_short_is_no_damage(path, has_lock):
    """
    The first page goes to the database before the others, so its count of pages is ahead of the
    file; SQLite calls that malformed, if it is read without the WAL.
    """
    write = """
file = SQLiteFile(path); file.open(1); db = file.connect()
db.execute("CREATE TABLE t(x)")
db.execute("INSERT INTO t VALUES (zeroblob(100000))")
os.kill(os.getpid(), signal.SIGKILL)
"""
    with Script(write, path) as script:
        script.process.wait(60)
    wal = Path(f"{path}-wal").read_bytes()
    frames = [wal[at : at + 4120] for at in range(32, len(wal), 4120)]
    page = [frame[24:] for frame in frames if frame[:4] == b"\0\0\0\1"][-1]
    assert path.stat().st_size == len(page) == 4096
    path.write_bytes(page)
    if not has_lock:
        Path(f"{path}-lock").unlink()

    file = SQLiteFile(path)
    file.open(1)
    with closing(file.connect()) as db:
        assert db.execute("SELECT length(x) FROM t").fetchone() == (100_000,)
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_negative_format_is_damage(opened, path):
    """No holdfast ever wrote one."""
    db = opened.connect()
    db.execute("PRAGMA user_version=-3")
    opened.close(db)

    with pytest.raises(Corrupt, match="its format is -3"):
        SQLiteFile(path).open(1)


@needs_proc
def test_looking_at_a_file_keeps_the_locks_that_sqlite_has_on_it(opened, db, path):
    """
    Closing any descriptor of a file drops this process' POSIX locks on it, and without them
    another process would take the WAL away. So no descriptor of our own is opened.
    """

    def locks():
        inode = path.stat().st_ino
        return [
            line for line in Path("/proc/locks").read_text().splitlines() if f":{inode} " in line
        ]

    db.execute("CREATE TABLE t(x)")
    assert len(locks()) == 1

    again = SQLiteFile(path)
    again.open(1)
    again.close(again.connect())
    again.problems()

    assert len(locks()) == 1
    assert Path(f"{path}-wal").stat().st_size > 0


# Settings


@pytest.mark.parametrize(("durability", "synchronous"), [("sync", 2), ("fast", 1)])
def test_every_setting_is_as_it_should_be(path, durability, synchronous):
    """Read back from the connection itself."""
    file = SQLiteFile(path, durability=durability)
    file.open(1)
    with closing(file.connect()) as db:
        found = settings(db)

        assert found == dict(SETTINGS) | {"synchronous": synchronous}
        assert found["journal_mode"] == "wal"
        assert found["wal_autocheckpoint"] == 0
        assert db.isolation_level is None


@pytest.mark.parametrize("name", [name for name, _ in SETTINGS])
def test_a_setting_that_does_not_take_is_an_error(opened, monkeypatch, name):
    """It is named, with what was wanted and what was found; the connection is closed."""
    read = sqlite_file.settings
    monkeypatch.setattr(sqlite_file, "settings", lambda db: read(db) | {name: "other"})

    with pytest.raises(StoreUnavailable, match=f"keeps {name} at 'other', and .* is needed"):
        opened.connect()

    assert not Path(f"{opened.path}-wal").exists()


def test_a_database_that_cannot_be_switched_to_wal_is_an_error(opened, monkeypatch):
    """Another program sits on it: the switch is tried again for a time, then refused."""
    monkeypatch.setattr(sqlite_file, "OPEN_WAIT_S", 0.2)
    with closing(sqlite3.connect(opened.path, isolation_level=None)) as other:
        other.execute("PRAGMA application_id=0x686F6C64")
        other.execute("BEGIN")
        other.execute("SELECT * FROM sqlite_master").fetchall()
        with pytest.raises(StoreUnavailable):
            sqlite_impatient(monkeypatch, opened)
        other.execute("COMMIT")

    opened.close(opened.connect())


def sqlite_impatient(monkeypatch, file):
    """Connect with a busy timeout of a moment."""
    with monkeypatch.context() as patch:
        patch.setattr(sqlite_file, "BUSY_MS", 50)
        patch.setitem(file.wanted, "busy_timeout", 50)
        file.connect()


def test_a_planted_view_runs_no_function_of_ours(opened, db):
    """trusted_schema=OFF: a function that is not marked as harmless cannot be used by a schema."""
    calls = []
    db.create_function("note", 1, calls.append)
    db.execute("CREATE VIEW planted AS SELECT note('gotcha')")

    with pytest.raises(sqlite3.OperationalError, match="unsafe use"):
        db.execute("SELECT * FROM planted").fetchall()

    assert calls == []


def test_no_extension_can_be_loaded(db):
    """Neither through Python nor through SQL."""
    with pytest.raises(sqlite3.OperationalError):
        db.execute("SELECT load_extension('x')")


def test_a_connection_may_be_used_by_another_thread(db):
    """Whoever holds it guards it."""
    found = []
    thread = threading.Thread(target=lambda: found.extend(db.execute("SELECT 1")))
    thread.start()
    thread.join()

    assert found == [(1,)]


def test_many_processes_may_open_a_fresh_path_at_once(path):
    """All of them make the file, switch it to WAL and write, and none is refused."""
    body = """
say("ready")
sys.stdin.readline()
file = SQLiteFile(path); file.open(1); db = file.connect()
with file.locked():
    db.execute("CREATE TABLE IF NOT EXISTS t(x)")
    db.execute("INSERT INTO t VALUES (1)")
say(db.execute("PRAGMA journal_mode").fetchone()[0])
file.close(db)
"""
    for _ in range(3):
        scripts = [Script(body, path) for _ in range(8)]
        assert [script.hears() for script in scripts] == ["ready"] * 8
        for script in scripts:
            script.tell()

        assert [script.ends() for script in scripts] == [["wal"]] * 8
        with closing(sqlite3.connect(path)) as db:
            assert db.execute("SELECT count(*) FROM t").fetchone() == (8,)
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        for each in path.parent.iterdir():
            each.unlink()


# A file that goes away


def test_a_file_that_was_replaced_or_deleted_is_noticed(opened, path, tmp_path):
    """It is not made anew by connecting: that would be an empty history."""
    assert not opened.moved()
    path.rename(tmp_path / "elsewhere")

    assert opened.moved()
    with pytest.raises(StoreUnavailable, match="CANTOPEN"):
        opened.connect()
    assert not path.exists()

    path.touch()
    assert opened.moved()
    with pytest.raises(StoreUnavailable, match="replaced or deleted"):
        opened.connect()


# The lock


def test_the_lock_excludes_threads(opened):
    """One flock would let all threads of a process in at once."""
    inside, most = [], []

    def work():
        for _ in range(50):
            with opened.locked():
                inside.append(1)
                most.append(len(inside))
                time.sleep(0.0001)
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(most) == 200 and max(most) == 1


def test_the_lock_excludes_two_objects_on_one_path(opened, path):
    """Two stores in one process are as far apart as two processes."""
    other = SQLiteFile(path)
    with opened.locked():
        assert not other.lock()
        assert not other.lock(0.05)

    assert other.lock()
    assert not opened.lock()
    other.unlock()
    assert opened.lock()
    opened.unlock()


HOLD = """
file = SQLiteFile(path); file.open(1)
assert file.lock()
say("held")
sys.stdin.readline()
file.unlock()
"""


def test_the_lock_excludes_processes(opened, path):
    """And comes to the one that waits when the other lets it go."""
    with Script(HOLD, path) as script:
        assert script.hears() == "held"
        assert not opened.lock()
        with pytest.raises(StoreUnavailable, match=r"locked for 0\.05 s"), opened.locked(0.05):
            pass
        script.tell()

        assert opened.lock(30)
        opened.unlock()
        script.ends()


@posix_only
def test_the_lock_of_a_killed_process_is_free(opened, path):
    """The kernel lets it go, and the one that waits gets it at once."""
    with Script(HOLD, path) as script:
        assert script.hears() == "held"
        threading.Timer(0.1, script.process.kill).start()

        assert opened.lock(30)

        opened.unlock()


@posix_only
def test_a_wait_that_was_given_up_leaves_nothing_behind(opened, path):
    """The thread that waited in our place gives the lock back, or the next wait takes it up."""
    with Script(HOLD, path) as script:
        assert script.hears() == "held"
        threads = threading.active_count()
        for _ in range(5):
            assert not opened.lock(0.02)
        assert threading.active_count() == threads + 1
        script.tell()
        script.ends()

    other = SQLiteFile(path)
    assert other.lock(30)
    other.unlock()
    assert opened.lock(30)
    opened.unlock()


def test_the_lock_waits_for_ever_if_asked_to(opened, path):
    """None has no limit."""
    with Script(HOLD, path) as script:
        assert script.hears() == "held"
        threading.Timer(0.1, script.tell).start()

        assert opened.lock(None)
        opened.unlock()
        script.ends()


def test_an_error_inside_the_block_lets_the_lock_go(opened, path):
    """Whatever it is."""
    with pytest.raises(KeyboardInterrupt), opened.locked():
        raise KeyboardInterrupt

    assert SQLiteFile(path).lock()


@posix_only
@pytest.mark.parametrize("came", [False, True])
def test_an_interrupted_wait_does_not_keep_the_lock(opened, path, monkeypatch, came):
    """Ctrl-C may come before the lock or just behind it; the thread that waits gives it back."""
    other = SQLiteFile(path)

    def interrupted(event, timeout_s=None):
        if came:
            other.unlock()
            wait(event)
        raise KeyboardInterrupt

    wait = threading.Event.wait
    assert other.lock()
    with monkeypatch.context() as patch:
        patch.setattr(file_lock._Waiter, "start", quiet_start(patch, interrupted))
        with pytest.raises(KeyboardInterrupt):
            opened.lock(30)
    other.unlock()

    assert other.lock(30)
    other.unlock()
    assert opened.lock(30)
    opened.unlock()


def quiet_start(patch, interrupted):
    """Start a waiter as ever, and have only the wait for it interrupted."""

    def start(waiter):
        threading.Thread.start(waiter)
        patch.setattr(waiter._came, "wait", lambda timeout_s=None: interrupted(waiter._came))

    return start


def test_where_no_thread_can_wait_the_lock_is_tried_again(opened, path, monkeypatch):
    """As on Windows, and while the interpreter shuts down."""
    monkeypatch.setattr(file_lock, "_CAN_WAIT", False)
    other = SQLiteFile(path)
    assert other.lock()
    assert not opened.lock(0.02)
    threading.Timer(0.05, other._lock.release).start()

    assert opened.lock(30)
    opened.unlock()


@posix_only
def test_a_lock_file_that_was_deleted_is_noticed(opened, path):
    """Otherwise one process would lock a file that no other can see."""
    lock = Path(f"{path}-lock")
    assert opened.lock()
    opened.unlock()
    lock.unlink()
    with Script(HOLD, path) as script:
        assert script.hears() == "held"

        assert not opened.lock()
        threading.Timer(0.05, lock.unlink).start()
        threading.Timer(0.1, script.tell).start()
        assert opened.lock(30)
        script.ends()

    assert lock.stat().st_ino == os.fstat(opened._lock._fd).st_ino
    opened.unlock()


@posix_only
def test_the_lock_is_not_passed_on_to_programs(opened):
    """A program that we start must not hold our lock after we are gone."""
    with opened.locked():
        assert not os.get_inheritable(opened._lock._fd)


@posix_only
def test_everybody_gets_a_turn(opened, path):
    """Of four busy processes none is left out for long. A machine that is busy itself may leave one
    out for a second; a lock that does so leaves one out every time."""
    assert any(_is_fair(path) for _ in range(5))


def _is_fair(path):
    body = """
file = SQLiteFile(path); file.open(1)
say("ready"); sys.stdin.readline()
end, turns = time.monotonic() + 1, 0
while time.monotonic() < end:
    with file.locked():
        time.sleep(0.002)
    turns += 1
say(turns)
"""
    scripts = [Script(body, path) for _ in range(4)]
    assert [script.hears() for script in scripts] == ["ready"] * 4
    for script in scripts:
        script.tell()

    turns = [int(script.ends()[0]) for script in scripts]
    return min(turns) * 5 > max(turns)


# The WAL


def test_a_checkpoint_is_made_only_under_the_lock(opened, db):
    """Otherwise it could meet a commit."""
    with pytest.raises(AssertionError):
        opened.checkpoint(db)


def test_checkpoints_come_due_as_the_wal_fills(opened, db, monkeypatch):
    """
    Nothing while it is small, PASSIVE when it is not; after that the file keeps its size, and
    nothing is due before as much again was written.
    """
    assert opened.checkpoint_due() is None
    fill(opened, db, sqlite_file.WAL_CHECKPOINT_BYTES)
    assert opened.checkpoint_due() == "PASSIVE"

    with opened.locked():
        busy, pages, moved = opened.checkpoint(db)

    assert not busy and pages == moved > 1000
    assert opened.wal_bytes() > sqlite_file.WAL_CHECKPOINT_BYTES
    assert opened.checkpoint_due() is None
    db.execute("INSERT INTO t VALUES (1)")  # starts the WAL again
    assert opened.wal_bytes() > sqlite_file.WAL_CHECKPOINT_BYTES
    assert opened.checkpoint_due() is None
    fill(opened, db, sqlite_file.WAL_CHECKPOINT_BYTES)
    assert opened.checkpoint_due() == "PASSIVE"
    monkeypatch.setattr(sqlite_file, "WAL_TRUNCATE_BYTES", 1)
    assert opened.checkpoint_due() == "TRUNCATE"


def test_a_reader_in_the_way_is_waited_for_only_a_little(opened, db):
    """TRUNCATE moves what it can, says so, and empties the WAL when the reader has gone."""
    fill(opened, db, 100_000)
    reader = opened.connect()
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM t").fetchall()
    db.execute("INSERT INTO t VALUES (1)")

    with opened.locked():
        busy, pages, moved = opened.checkpoint(db, mode="TRUNCATE", wait_ms=20)
    assert busy and 0 < moved < pages
    assert settings(db)["busy_timeout"] == 10_000

    reader.execute("COMMIT")
    with opened.locked():
        busy, _, _ = opened.checkpoint(db, mode="TRUNCATE")
    assert not busy
    assert opened.wal_bytes() == 0
    opened.close(reader)


def test_the_wal_stays_bounded(opened, db):
    """With readers that come and go, over many times the limit of the WAL."""
    db.execute("PRAGMA synchronous=0")
    db.execute("CREATE TABLE t(x)")
    reader, largest = opened.connect(), 0
    for number in range(200):
        if number % 20 == 0:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM t").fetchall()
        if number % 20 == 15:
            reader.execute("COMMIT")
        with opened.locked():
            db.execute("DELETE FROM t")
            db.execute("INSERT INTO t VALUES (zeroblob(1000000))")
            if mode := opened.checkpoint_due():
                opened.checkpoint(db, mode=mode)
        largest = max(largest, opened.wal_bytes())
    opened.close(reader)

    assert sqlite_file.WAL_CHECKPOINT_BYTES < largest < 64 * 1024 * 1024


@pytest.mark.parametrize("size", [0, 10, 32, 100])
def test_a_wal_that_is_no_wal_tells_nothing(tmp_path, size):
    """Neither an empty nor a strange file is taken for frames."""
    wal = tmp_path / "x-wal"
    wal.write_bytes(b"\xff" * size)

    assert sqlite_wal.header_in(wal) is None
    assert sqlite_wal.bytes_used(wal) == 0
    assert sqlite_wal.bytes_used(tmp_path / "missing") == 0


def test_the_last_to_close_takes_the_wal_away(opened, path):
    """And nobody else does."""
    first, second = opened.connect(), opened.connect()
    first.execute("CREATE TABLE t(x)")

    opened.close(first)
    assert Path(f"{path}-wal").stat().st_size > 0
    opened.close(second)
    assert sorted(os.listdir(path.parent)) == ["chat.db", "chat.db-lock"]


def test_a_connection_is_closed_even_if_the_lock_cannot_be_had(opened, path, monkeypatch):
    """Who holds the lock has a connection too, so this close writes nothing."""
    monkeypatch.setattr(sqlite_file, "CLOSE_WAIT_S", 0.02)
    other = SQLiteFile(path)
    other.open(1)
    db, another = opened.connect(), other.connect()
    db.execute("CREATE TABLE t(x)")

    with other.locked():
        opened.close(db)
    with pytest.raises(sqlite3.ProgrammingError):
        db.execute("SELECT 1")
    with opened.locked():
        opened.close(another)  # in the thread that holds the lock


# Fork

FORK = """
file = SQLiteFile(path); file.open(1)
db = file.connect()
def before():
    global db
    file.close(db); db = None
def after():
    global db
    db = file.connect()
file.on_fork(before, after)
with file.locked():
    db.execute("CREATE TABLE t(x)")
def write(who, times):
    for _ in range(times):
        with file.locked():
            db.execute("BEGIN IMMEDIATE")
            db.execute("INSERT INTO t VALUES (?)", (who,))
            db.execute("COMMIT")
"""


@needs_fork
def test_parent_and_child_both_work_after_a_fork(path):
    """Each with connections and a lock of its own; what both wrote is there, and whole."""
    body = """
child = os.fork()
write("child" if child == 0 else "parent", 50)
if child == 0:
    file.close(db)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert Path(path + "-wal").stat().st_size > 0, "the child took the WAL away"
write("parent", 1)
for row in db.execute("SELECT x || '=' || count(*) FROM t GROUP BY x ORDER BY x"):
    say(row[0])
say(db.execute("PRAGMA integrity_check").fetchone()[0])
file.close(db)
"""
    assert Script(FORK + body, path).ends() == ["child=50", "parent=51", "ok"]


@needs_fork
def test_a_forked_child_neither_holds_nor_frees_its_parents_lock(path):
    """
    The child begins without the lock, and closing the descriptor that it inherited leaves the
    parent's lock alone. Leaving the block in the child does nothing.
    """
    body = """
hold = file.locked()
hold.__enter__()
child = os.fork()
if child == 0:
    assert not file.lock(), "the child believes it has the lock"
    hold.__exit__(None, None, None)
    other = SQLiteFile(path)
    assert not other.lock(), "the parent's lock is gone"
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
other = SQLiteFile(path)
assert not other.lock()
hold.__exit__(None, None, None)
assert other.lock()
say("good")
"""
    assert Script(FORK + body, path).ends() == ["good"]


@needs_fork
def test_a_child_does_not_keep_a_dead_parents_lock(path, opened):
    """The parent is killed while it holds the lock; the child lives on, and the lock is free."""
    body = """
assert file.lock()
if os.fork() == 0:
    say("child"); sys.stdin.readline()
    os._exit(0)
time.sleep(60)
"""
    with Script(FORK + body, path) as script:
        assert script.hears() == "child"
        assert not opened.lock()
        script.process.kill()

        assert opened.lock(30)
        opened.unlock()


@needs_fork
def test_a_fork_waits_for_a_thread_that_holds_the_lock(path):
    """So the child never inherits half a transaction, and its lock works."""
    body = """
import threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of fork in a process with threads
inside = threading.Event()
def work():
    with file.locked():
        inside.set()
        time.sleep(0.3)
        say("thread")
thread = threading.Thread(target=work); thread.start(); inside.wait()
before(); file._before_fork.clear(); file._after_fork.clear()
child = os.fork()
if child == 0:
    assert file.lock(30)
    say("child")
    os._exit(0)
os.waitpid(child, 0)
thread.join()
assert file.lock(30)
say("parent")
"""
    assert Script(FORK + body, path).ends() == ["thread", "child", "parent"]


@needs_fork
def test_a_callback_that_fails_does_not_keep_the_others_from_running(path):
    """What fails before a fork is printed by Python, and the fork goes on."""
    body = """
import warnings
def fail():
    raise ValueError("no")
sys.unraisablehook = lambda unraisable: say(unraisable.exc_value)
file._before_fork.insert(0, fail)
child = os.fork()
if child == 0:
    write("child", 1)
    file.close(db)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
say(db.execute("SELECT count(*) FROM t").fetchone()[0])
file.close(db)
"""
    assert Script(FORK + body, path).ends() == ["no", "1"]


# Findings


@posix_only
def test_a_private_file_on_a_sound_system_has_no_problems(opened, db, monkeypatch):
    """Silence has to mean something."""
    monkeypatch.setattr(sqlite_file, "has_wal_reset_bug", lambda version: False)
    monkeypatch.setattr(private_files, "file_system", lambda folder: "ext4")

    assert opened.problems(db) == []


@posix_only
def test_what_is_doubtful_is_said_with_the_way_out(opened, db, monkeypatch, path, tmp_path):
    """Modes, a second name, the version, the file system, and a setting that was changed."""
    path.chmod(0o644)
    path.parent.chmod(0o755)
    os.link(path, tmp_path / "second")
    db.execute("PRAGMA synchronous=0")
    monkeypatch.setattr(sqlite_file, "has_wal_reset_bug", lambda version: True)
    monkeypatch.setattr(private_files, "file_system", lambda folder: "nfs4")

    found = opened.problems(db)

    assert len(found) == 6
    for words in (
        f"{path} can be used by others: run chmod 600",
        f"{path} has a second name",
        "listed by others: run chmod 700",
        "is on nfs4, where locks cannot be trusted: use a local disk",
        "the WAL-reset bug): holdfast keeps them apart",
        "synchronous at 0, and 2 is needed: connect again",
    ):
        assert sum(words in each for each in found) == 1, words


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/", "ext4"),
        ("/home/ada", "ext4"),
        ("/mnt/share/x", "cifs"),
        ("/mnt/shared", "ext4"),
        ("/mnt/my disk/x", "fuse.sshfs"),
        ("/over", "overlay"),
    ],
)
def test_the_file_system_is_that_of_the_nearest_mount(tmp_path, monkeypatch, folder, kind):
    """By whole names, with escapes read, and the later of two mounts on one place."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
        "30 22 0:40 / /mnt/share rw - cifs //host/share rw\n"
        "31 22 0:41 / /mnt/my\\040disk rw master:2 shared:3 - fuse.sshfs me@host: rw\n"
        "32 22 0:42 / /over rw - tmpfs tmpfs rw\n"
        "33 22 0:43 / /over rw - overlay overlay rw\n"
        "a line that nobody understands\n"
    )
    monkeypatch.setattr(private_files, "_MOUNTS", mounts)

    assert private_files.file_system(Path(folder)) == kind


def test_a_system_that_does_not_tell_its_mounts_is_not_blamed(tmp_path, monkeypatch):
    """No finding rather than a guess."""
    monkeypatch.setattr(private_files, "_MOUNTS", tmp_path / "missing")

    assert private_files.file_system(tmp_path) == ""


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("3.6.23", False),
        ("3.7.0", True),
        ("3.40.1", True),
        ("3.44.5", True),
        ("3.44.6", False),
        ("3.45.0", True),
        ("3.50.6", True),
        ("3.50.7", False),
        ("3.51.0", True),
        ("3.51.2", True),
        ("3.51.3", False),
        ("3.52.0", True),
        ("3.53.0", False),
        ("4.0.0", False),
    ],
)
def test_versions_with_the_wal_reset_bug_are_known(version, expected):
    """Everything from 3.7.0 on but the mended ones; 3.52.0 was withdrawn."""
    assert has_wal_reset_bug(tuple(map(int, version.split(".")))) is expected


# Errors


def sqlite_error(code, kind=sqlite3.OperationalError):
    """An error as SQLite's module raises it, with a message that must not be passed on."""
    error = kind("SECRET in table t")
    error.sqlite_errorcode = getattr(sqlite3, code)
    error.sqlite_errorname = code
    return error


@pytest.mark.parametrize(
    ("code", "expected", "fatal"),
    [
        ("SQLITE_FULL", StoreFull, True),
        ("SQLITE_IOERR_SHMSIZE", StoreFull, True),
        ("SQLITE_IOERR", StoreUnavailable, True),
        ("SQLITE_IOERR_FSYNC", StoreUnavailable, True),
        ("SQLITE_IOERR_WRITE", StoreUnavailable, True),
        ("SQLITE_READONLY", StoreUnavailable, True),
        ("SQLITE_READONLY_DBMOVED", StoreUnavailable, True),
        ("SQLITE_CANTOPEN", StoreUnavailable, False),
        ("SQLITE_PERM", StoreUnavailable, False),
        ("SQLITE_BUSY", StoreUnavailable, False),
        ("SQLITE_BUSY_SNAPSHOT", StoreUnavailable, False),
        ("SQLITE_LOCKED", StoreUnavailable, False),
        ("SQLITE_PROTOCOL", StoreUnavailable, False),
        ("SQLITE_INTERRUPT", StoreUnavailable, False),
        ("SQLITE_NOMEM", StoreUnavailable, True),
        ("SQLITE_MISUSE", StoreUnavailable, False),
        ("SQLITE_CORRUPT", Corrupt, True),
        ("SQLITE_CORRUPT_INDEX", Corrupt, True),
        ("SQLITE_NOTADB", Corrupt, True),
        ("SQLITE_FORMAT", Corrupt, False),
        ("SQLITE_MISMATCH", Corrupt, False),
        ("SQLITE_CONSTRAINT_UNIQUE", Corrupt, False),
        ("SQLITE_ERROR", Corrupt, False),
        ("SQLITE_TOOBIG", InvalidInput, False),
    ],
)
def test_errors_of_sqlite_become_ours(code, expected, fatal):
    """By their code; the name of it is in the text, and what SQLite said is not."""
    error = sqlite_error(code)
    ours = translate(error, "chat.db")

    assert type(ours) is expected
    assert "SECRET" not in str(ours)
    assert expected is InvalidInput or (code in str(ours) and "chat.db" in str(ours))
    assert is_fatal(error) is fatal


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(errno.ENOSPC, "SECRET"), StoreFull),
        (OSError(errno.EDQUOT, "SECRET"), StoreFull),
        (OSError(errno.EFBIG, "SECRET"), StoreFull),
        (OSError(errno.EROFS, "SECRET"), StoreUnavailable),
        (OSError(errno.EACCES, "SECRET", "/SECRET"), StoreUnavailable),
        (OSError(errno.EMFILE, "SECRET"), StoreUnavailable),
        (OSError(errno.EIO, "SECRET"), StoreUnavailable),
        (OSError("SECRET"), StoreUnavailable),
        (MemoryError(), StoreUnavailable),
        (sqlite3.ProgrammingError("SECRET"), StoreUnavailable),
        (RuntimeError("SECRET"), StoreUnavailable),
        (OverflowError("SECRET"), InvalidInput),
        (sqlite3.DataError("SECRET"), InvalidInput),
        (UnicodeEncodeError("utf-8", "SECRET\ud800", 6, 7, "SECRET"), InvalidInput),
    ],
    ids=lambda value: repr(value)[:60] if isinstance(value, Exception) else None,
)
def test_errors_of_the_system_become_ours(error, expected):
    """By their number; neither words nor paths are passed on."""
    ours = translate(error, "chat.db")

    assert type(ours) is expected
    assert "SECRET" not in str(ours)


def test_our_own_errors_pass_and_tell_of_their_cause():
    """Whoever catches an error of ours can ask whether its connection is lost."""
    error = StoreUnavailable("chat.db", "no")
    assert translate(error, "elsewhere") is error
    assert not is_fatal(error)

    error.__cause__ = sqlite_error("SQLITE_IOERR")
    assert is_fatal(error)
    assert is_fatal(MemoryError())
    assert not is_fatal(KeyboardInterrupt())


def test_codes_of_real_errors_are_found(opened, db):
    """Python passes the extended code on, so the table above is what happens."""
    db.execute("CREATE TABLE t(x INTEGER PRIMARY KEY, y NOT NULL)")
    cases = {
        "INSERT INTO t VALUES (1, NULL)": (Corrupt, "SQLITE_CONSTRAINT_NOTNULL"),
        "INSERT INTO t VALUES ('text', 1)": (Corrupt, "SQLITE_MISMATCH"),
        "SELECT * FROM missing": (Corrupt, "SQLITE_ERROR"),
    }
    for statement, (expected, name) in cases.items():
        with pytest.raises(sqlite3.Error) as caught:
            db.execute(statement)

        ours = translate(caught.value, "chat.db")
        assert type(ours) is expected and name in str(ours)
        assert statement not in str(ours)

    db.execute("PRAGMA max_page_count=1")
    with pytest.raises(sqlite3.OperationalError) as caught:
        db.execute("INSERT INTO t VALUES (2, zeroblob(1000000))")
    assert type(translate(caught.value, "chat.db")) is StoreFull


def can_mount():
    """Whether a tmpfs can be mounted in a namespace that ends with its process."""
    try:
        return not subprocess.run([*IN_TMPFS, "/tmp", "true"], capture_output=True).returncode
    except OSError:
        return False


MOUNT = 'mount -t tmpfs -o size=1m tmpfs "$1" && shift && exec "$@"'
IN_TMPFS = ["unshare", "--mount", "sh", "-c", MOUNT, "sh"]


@pytest.mark.skipif(not can_mount(), reason="a tmpfs cannot be mounted here")
def test_a_full_disk_is_reported_and_the_file_works_again(tmp_path):
    """Nothing is lost, and nobody has to start anew when there is room."""
    body = """
from holdfast.stores.sqlite.file import is_fatal, translate
file = SQLiteFile(path); file.open(1); db = file.connect()
db.execute("CREATE TABLE t(x)")
filler = Path(path + ".filler")
try:
    filler.write_bytes(b"x" * 2_000_000)
except OSError as error:
    say(type(translate(error, path)).__name__)
try:
    db.execute("INSERT INTO t VALUES (zeroblob(200000))")
except sqlite3.OperationalError as error:
    say(type(translate(error, path)).__name__)
    say(is_fatal(error))
file.close(db)
filler.unlink()
db = file.connect()
db.execute("INSERT INTO t VALUES (zeroblob(200000))")
say(db.execute("SELECT count(*) FROM t").fetchone()[0])
file.close(db)
"""
    command = [*IN_TMPFS, tmp_path, sys.executable, "-c", START + body, tmp_path / "chat.db"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert ended.stdout.split() == ["StoreFull", "StoreFull", "True", "1"], ended.stderr
    assert os.listdir(tmp_path) == []


@posix_only
def test_a_lock_that_cannot_be_opened_is_reported(path, opened):
    """As the store being out of reach, with the system's word for it."""
    opened.shut()
    for each in path.parent.iterdir():
        each.unlink()
    path.parent.rmdir()

    with pytest.raises(StoreUnavailable, match="ENOENT"):
        opened.lock()
