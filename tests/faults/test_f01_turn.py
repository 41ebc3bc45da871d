"""F01 on whole turns: SIGKILL at every system call on the store, then `resume` or another `send`.

Everything acknowledged is there once, what the user said is there as soon as the turn has begun,
and the session goes on at once, with a request that every vendor accepts.
"""

import shutil
import signal

import pytest

from faults import turn_oracle
from faults.log import read_log
from faults.tier import hunt, is_told, need, pick, some
from faults.turns import arranged
from holdfast.testing.faults import damage, strace

PLAY = "faults.turns:play"
NEXT = ("resume", "send")


@pytest.fixture(autouse=True)
def _can_run():
    need(strace.missing())


def store_files(seen, place):
    """The files of the store that a run touches, in its own folder."""
    files = [path for path in strace.files(seen) if not path.endswith(("/log", ".effects"))]
    return [path.replace("/count/", f"/{place}/") for path in files]


def points_of(seen):
    """Where the store is touched."""
    calls = [call for call in seen if not call.path.endswith(("/log", ".effects"))]
    return strace.points(calls)


def sweep(forks, folder, short, *arguments, until=""):
    """Kill the turns at every point, or `until` something is said to be wrong: what was wrong at
    each, and how many points were hit."""
    seen = strace.calls(forks, arranged(folder, "count", *arguments), folder / "count")
    wrong, hits = {}, 0
    for at, point in enumerate(hunt(points_of(seen), short, wrong, until)):
        place = arranged(folder, f"p{at}", *arguments)
        outcome = strace.inject(forks, place, store_files(seen, f"p{at}"), point)
        assert outcome.status in (0, -signal.SIGKILL), (point, outcome.stderr)
        hits += outcome.is_hit
        judged = turn_oracle.judge(place[0], read_log(place[1]), NEXT[at % 2])
        if judged.wrong:
            wrong[point] = judged.wrong
        shutil.rmtree(folder / f"p{at}")
    return wrong, hits


def test_every_kill_in_a_turn_leaves_what_was_acknowledged(programs, turn_folder):
    """Tools in parallel, folds, `once`, a stream, a session that is deleted."""
    wrong, hits = sweep(programs(PLAY), turn_folder, 20, pick(1, 3))

    assert wrong == {}
    assert hits >= pick(12, 400)


def test_a_kill_while_a_turn_is_gone_on_with_changes_nothing(programs, turn_folder):
    """Killed once in the turn, and once more wherever the next process has come to by then."""
    seen = strace.calls(programs(PLAY), arranged(turn_folder, "count"), turn_folder / "count")
    first = spread(points_of(seen), pick(2, 12))
    wrong = {}

    for at, point in enumerate(first):
        base = arranged(turn_folder, f"base{at}")
        strace.inject(programs(PLAY), base, store_files(seen, f"base{at}"), point)
        wrong |= kill_again(programs("faults.turns:go_on"), turn_folder, f"base{at}", point)

    assert wrong == {}


def spread(points, count):
    return [points[at * (len(points) - 1) // (count - 1)] for at in range(count)]


def kill_again(forks, folder, base, first):
    """Kill the process that goes on, at every point; then go on in a third one."""
    wrong = {}
    damage.copy(folder / base, folder / "count2")
    arguments = [str(folder / "count2" / "store.db"), str(folder / "count2" / "log"), "resume"]
    seen = strace.calls(forks, arguments, folder / "count2")
    for at, point in enumerate(some(points_of(seen), 5)):
        how = NEXT[at % 2]
        place = damage.copy(folder / base, folder / "again")
        files = [path.replace("/count2/", "/again/") for path in store_files(seen, "again")]
        strace.inject(forks, [str(place / "store.db"), str(place / "log"), how], files, point)
        judged = turn_oracle.judge(place / "store.db", read_log(place / "log"), NEXT[at // 2 % 2])
        if judged.wrong:
            wrong[first, point] = judged.wrong
    shutil.rmtree(folder / "count2")
    return wrong


def test_an_input_that_is_stored_with_its_answer_is_caught(programs, turn_folder):
    """Control: killed while the model is asked, what the user said is nowhere."""
    lost = "what the user said is lost"

    wrong, _ = sweep(programs(PLAY), turn_folder, 12, 1, "late input", until=lost)

    assert is_told(lost, wrong), wrong
