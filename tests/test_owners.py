"""Who is alive: told by locks that the kernel lets go, with real processes that really die."""

import os
import stat
import threading

import pytest

import processes
from holdfast.errors import InvalidInput, StoreUnavailable
from holdfast.stores import owners
from holdfast.stores.owners import Moment, Owners, moment

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the locks are POSIX")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

START = f"""{processes.SAY}
import os, signal, sys, time
from pathlib import Path
from holdfast.stores.owners import Owners, moment
folder = Path(sys.argv[1])
mine = Owners(folder)
"""


class Script(processes.Script):
    start = START


LIVE = "say(mine.mine()); sys.stdin.readline()\n"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "owners"


@pytest.fixture
def here(folder):
    here = Owners(folder)
    yield here
    here.close()


def test_nothing_is_made_before_it_is_needed(folder):
    """Asking and sweeping leave no trace."""
    here = Owners(folder)

    assert here.is_gone("0" * 32)
    assert here.sweep() == 0
    here.close()
    assert not folder.exists()


def test_folder_and_file_are_for_us_alone(here, folder):
    """Modes 0700 and 0600, whatever the umask."""
    umask = os.umask(0)
    try:
        name = here.mine()
    finally:
        os.umask(umask)

    assert os.listdir(folder) == [name]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600


def test_we_are_not_gone(here):
    """And asking, however often, does not drop our lock."""
    name = here.mine()

    assert not here.is_gone(name)
    assert here.sweep() == 0
    assert here.mine() == name


def test_a_process_is_alive_until_it_ends(here, folder):
    """Its file is removed by the first who asks."""
    with Script(LIVE, folder) as script:
        name = script.hears()
        assert not here.is_gone(name)
        assert here.sweep() == 0
        script.tell()
        script.ends()

        assert (folder / name).exists()
        assert here.is_gone(name)
        assert not (folder / name).exists()
        assert here.is_gone(name)


def test_a_killed_process_is_gone_at_once(here, folder):
    """Nobody has to wait for a time to live."""
    with Script(LIVE, folder) as script:
        name = script.hears()
        script.process.kill()
        script.process.wait()

        assert here.is_gone(name)


def test_others_see_us_alive_until_we_close(here, folder):
    """From another process, which asks and sweeps."""
    name = here.mine()
    ask = "say(mine.is_gone(sys.stdin.readline().strip())); say(mine.sweep())\n"

    def told():
        with Script(ask, folder) as script:
            script.tell(name)
            return script.ends()

    assert told() == ["False", "0"]
    here.close()
    assert told() == ["True", "0"]
    assert os.listdir(folder) == []


def test_two_stores_of_a_process_are_two_owners(here, folder, tmp_path):
    """
    Each ends when it is closed, and not before, by whatever path it came. Neither opens the file
    of the other, not even to sweep: that would drop its lock.
    """
    (tmp_path / "link").symlink_to(folder.parent)
    name = here.mine()
    second = Owners(tmp_path / "link" / folder.name)
    assert second.mine() != name
    assert second.sweep() == 0
    assert not second.is_gone(name)

    second.close()
    second.close()
    with Script("say(mine.is_gone(sys.stdin.readline().strip()))\n", folder) as script:
        script.tell(name)
        assert script.ends() == ["False"]

    here.close()
    assert os.listdir(folder) == []
    assert here.mine() != name


def test_a_folder_that_is_a_link_is_not_followed(tmp_path):
    """Somebody else's files may be behind it, and dead owners are swept away."""
    other = tmp_path / "other"
    other.mkdir()
    (other / ("0" * 32)).touch()
    (tmp_path / "owners").symlink_to(other)

    for use in (Owners.mine, Owners.sweep):
        with pytest.raises(StoreUnavailable, match="link"):
            use(Owners(tmp_path / "owners"))

    assert os.listdir(other) == ["0" * 32]


def test_an_owner_file_that_was_deleted_is_replaced(here, folder):
    """To everybody else we are gone, so we come back under another name."""
    name = here.mine()
    (folder / name).unlink()

    assert here.mine() != name
    assert len(os.listdir(folder)) == 1


def test_sweeping_removes_the_dead_and_nothing_else(here, folder):
    """Not the living, not ourselves, and no file that is not an owner's."""
    mine = here.mine()
    (folder / "notes.txt").write_text("keep")
    with Script(LIVE, folder) as living:
        name = living.hears()
        for _ in range(3):
            with Script(LIVE, folder) as script:
                script.hears()
        assert len(os.listdir(folder)) == 6

        assert here.sweep() == 3

        assert sorted(os.listdir(folder)) == sorted([mine, name, "notes.txt"])


@pytest.mark.parametrize(
    "name",
    ["", "..", "../x", "/etc/passwd", "A" * 32, "0" * 31, "0" * 33, "0" * 32 + "\n", b"0" * 32, 0],
    ids=["empty", "up", "aside", "root", "upper", "short", "long", "newline", "bytes", "number"],
)
def test_a_name_that_is_not_one_of_ours_is_refused(here, name):
    """A lease that somebody wrote must not lead to a file elsewhere."""
    with pytest.raises(InvalidInput):
        here.is_gone(name)


@pytest.mark.parametrize("kind", ["link", "FIFO", "folder"])
def test_what_is_not_a_regular_file_is_not_taken_for_an_owner(here, folder, tmp_path, kind):
    """It is neither followed, nor waited for, nor removed."""
    here.mine()
    name = folder / ("a" * 32)
    aim = tmp_path / "aim"
    aim.write_text("precious")
    if kind == "link":
        name.symlink_to(aim)
    elif kind == "FIFO":
        os.mkfifo(name)
    else:
        name.mkdir()

    with pytest.raises(StoreUnavailable):
        here.is_gone(name.name)

    assert os.path.lexists(name) and aim.read_text() == "precious"


def test_a_folder_that_cannot_be_made_is_reported(tmp_path):
    """With the system's word for it."""
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreUnavailable, match="ENOTDIR"):
        Owners(tmp_path / "file" / "owners").mine()


@needs_fork
def test_a_forked_child_is_another_owner(folder):
    """It has a name of its own, and its end does not take its parent's lock away."""
    body = """
name = mine.mine()
child = os.fork()
if child == 0:
    assert not mine.is_gone(name), "to the child, its parent is alive"
    other = mine.mine()
    assert other != name
    mine.close()
    assert mine.is_gone(other)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert mine.mine() == name
say(name)
sys.stdin.readline()
"""
    with Script(body, folder) as script:
        name = script.hears()
        assert name, script.ends()

        assert not Owners(folder).is_gone(name)
        script.tell()
        script.ends()
    assert Owners(folder).is_gone(name)


@needs_fork
def test_a_child_does_not_keep_its_dead_parent_alive(folder):
    """The child has inherited the descriptor, and not the lock."""
    body = """
name = mine.mine()
if os.fork() == 0:
    say(name); sys.stdin.readline()
    os._exit(0)
time.sleep(60)
"""
    with Script(body, folder) as script:
        name = script.hears()
        assert not Owners(folder).is_gone(name)
        script.process.kill()
        script.process.wait()

        assert Owners(folder).is_gone(name)


def test_an_owner_is_never_swept_away_while_it_comes_to_be(folder):
    """One that sweeps may find the file between its making and its lock; then there is another."""
    busy = "end = time.monotonic() + 1\nwhile time.monotonic() < end: mine.sweep()\nsay('done')\n"
    come_and_go = """
end = time.monotonic() + 1
while time.monotonic() < end:
    name = mine.mine()
    assert (folder / name).exists()
    mine.close()
name = mine.mine()
say(name)
sys.stdin.readline()
"""
    folder.mkdir()
    sweepers = [Script(busy, folder) for _ in range(2)]
    with Script(come_and_go, folder) as script:
        name = script.hears()
        assert name, script.ends()

        assert [sweeper.ends() for sweeper in sweepers] == [["done"]] * 2
        assert not Owners(folder).is_gone(name)


def test_threads_of_a_process_do_not_sweep_each_other_away(folder):
    """POSIX locks exclude no thread, so the module does."""
    names, together = set(), threading.Barrier(8)

    def work():
        here = Owners(folder)
        together.wait()
        for _ in range(20):
            names.add(here.mine())
            here.sweep()
        together.wait()
        here.close()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(names) == 8
    assert os.listdir(folder) == []


def test_a_moment_is_the_same_in_all_processes(folder):
    """Between two moments here lies the one of another process, with the same boot id."""
    before = moment()
    with Script("say(' '.join(map(str, moment())))\n", folder) as script:
        said = script.ends()
    after = moment()

    there = Moment("", int(said[0])) if len(said) == 1 else Moment(said[0], int(said[1]))
    assert before <= there <= after
    assert before.boot == after.boot


def test_without_a_boot_id_there_is_still_a_clock(tmp_path, monkeypatch):
    """Where the system has none, the owner files alone tell who is gone."""
    monkeypatch.setattr(owners, "_BOOT_ID", tmp_path / "missing")
    monkeypatch.setattr(owners, "_boot_id", None)

    assert moment().boot == ""
    assert moment().ms > 0


def test_without_locks_a_file_counts_as_alive(here, folder, monkeypatch):
    """As on Windows: what cannot be known is left to the lease's time to live."""
    with Script(LIVE, folder) as script:
        name = script.hears()
    monkeypatch.setattr(owners, "_lock", lambda fd: False)
    monkeypatch.setattr(owners, "_HAS_LOCKS", False)

    assert here.mine() != name
    assert not here.is_gone(name)
    assert here.is_gone("0" * 32)
