"""F01: SIGKILL at every system call that a store makes on its files, over whole turns.

After each kill everything acknowledged is there, the step that was cut off is there whole or not
at all, and the store can be used at once. Asking again for that step, with the same `once`, stores
it exactly once.
"""

import asyncio
import signal

import pytest

from faults import oracle, subjects
from faults.log import read_log, url_of
from faults.tier import hunt, is_told, need, pick, some
from holdfast.stores import open_store
from holdfast.testing.faults import damage, strace

STORE, RAW = "faults.subjects:play", "faults.controls:play"
FILES = pytest.mark.parametrize("file", ["store.db", "store.sessions"], ids=["sqlite", "jsonl"])


@pytest.fixture(autouse=True)
def _can_run():
    need(strace.missing())


def sweep(forks, folder, look, script, short, *arguments, after=None, file="store.db", until=""):
    """Kill a run at every point, or `until` something is said to be wrong: what was wrong at each
    point where something was, and how many points were hit.

    Which thread does what depends on how fast the disk is just now, and calls are counted for each
    thread; so some runs come to their end before they come to the point. They are judged as well.
    """
    counted = arranged(folder, "count", script, arguments, file)
    seen = strace.calls(forks, counted, folder / "count")
    wrong, hits = {}, 0
    for at, point in enumerate(hunt(strace.points(seen), short, wrong, until)):
        place = arranged(folder, f"p{at}", script, arguments, file)
        files = [path.replace("/count/", f"/p{at}/") for path in strace.files(seen)]
        outcome = strace.inject(forks, place, files, point)
        assert outcome.status in (0, -signal.SIGKILL), (point, outcome.stderr)
        hits += outcome.is_hit
        steps = read_log(place[1])
        found = oracle.judge(steps, look(place[0]))
        if after is not None:
            found += after(place[0], steps)
        if found:
            wrong[point] = found
    return wrong, hits


def arranged(folder, name, script, arguments, file="store.db"):
    (folder / name).mkdir()
    return [str(folder / name / file), str(folder / f"{name}.log"), script, *arguments]


def ask_again(path, steps):
    """Ask again for the append that was cut off, as a caller would who never got an answer."""
    if not steps or steps[-1].outcome != "unknown" or steps[-1].step["do"] != "append":
        return []
    step = steps[-1].step
    return asyncio.run(_ask_again(path, step))


async def _ask_again(path, step):
    async with open_store(url_of(path)) as store:
        player = subjects.Player(store.tenant())
        session = await store.tenant().load(step["session"])
        for branch in session.branches:
            for each in await store.tenant().read(session.id, branch.name):
                player.seqs[oracle.entry_value(each)] = each.seq
        again = step | {"lease": False, "finish": False}
        await player.do(again)
        await player.do(again)
        found = await oracle.session_of(store.tenant(), step["session"])
    values = found.branches[step.get("branch", "main")]
    counts = [values.count(value) for value in step["values"]]
    return [] if set(counts) == {1} else [f"asked for again, it is there {counts} times"]


@FILES
def test_every_kill_leaves_what_was_acknowledged(programs, fast_path, file):
    """The store, over append, begin, journal, finish, branch, update, erase, clear and delete."""
    rounds = pick(1, 2 if file == "store.db" else 3)  # it makes fewer calls
    script, look = subjects.turn_script(rounds), oracle.read_store

    wrong, hits = sweep(programs(STORE), fast_path, look, script, 60, after=ask_again, file=file)

    assert wrong == {}
    assert hits >= pick(30, 400)


@FILES
def test_a_kill_while_it_recovers_from_a_kill_changes_nothing(programs, fast_path, file):
    """The process that opens the store after a kill is killed as well, at every point."""
    base = arranged(fast_path, "base", subjects.turn_script(1), [], file)
    forks = programs(STORE)
    seen = strace.calls(forks, arranged(fast_path, "count", base[2], [], file), fast_path / "count")
    point = strace.points(seen, ["pwrite64"])[60]
    files = [path.replace("/count/", "/base/") for path in strace.files(seen)]
    assert strace.inject(forks, base, files, point).is_hit

    wrong = kill_while_recovering(programs("faults.subjects:look"), fast_path, base, file)

    assert wrong == {}


def kill_while_recovering(forks, folder, base, file):
    source, steps = folder / "base", read_log(base[1])
    damage.copy(source, folder / "seen")
    seen = strace.calls(forks, [str(folder / "seen" / file)], folder / "seen")
    wrong = {}
    for at, point in enumerate(some(strace.points(seen), 20)):
        place = damage.copy(source, folder / f"again{at}")
        files = [path.replace("/seen/", f"/{place.name}/") for path in strace.files(seen)]
        strace.inject(forks, [str(place / file)], files, point)
        found = oracle.judge(steps, oracle.read_store(place / file))
        if found:
            wrong[point] = found
    return wrong


def test_plain_sqlite_passes_the_same_sweep(programs, fast_path):
    """One transaction for each step, on plain sqlite3: the sweep itself breaks nothing."""
    wrong, hits = sweep(programs(RAW), fast_path, oracle.read_raw, subjects.plain_script(), 25)

    assert wrong == {}
    assert hits >= 20


def test_a_batch_in_two_transactions_is_caught(programs, fast_path):
    """Control: half of a batch is found after some kill."""
    script = subjects.plain_script()

    forks, half = programs(RAW), "half of a step"

    wrong, _ = sweep(forks, fast_path, oracle.read_raw, script, 25, "two commits", until=half)

    assert is_told(half, wrong)


def test_a_file_that_is_written_over_is_caught(programs, fast_path):
    """Control: between the moment it is emptied and the moment it is written, a session is lost."""
    script, forks = subjects.plain_script(), programs("faults.controls:play_files")

    options = {"file": "store.sessions", "until": "lost"}

    wrong, _ = sweep(forks, fast_path, oracle.read_files, script, 25, **options)

    assert is_told("lost", wrong)
