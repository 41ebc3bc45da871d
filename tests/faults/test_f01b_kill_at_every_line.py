"""F01b: SIGKILL at every line of the store's code that a turn executes, in whichever thread."""

import json
import signal
from pathlib import Path

import pytest

from faults import oracle, subjects
from faults.log import read_log
from faults.tier import FULL, hunt, is_told, need
from holdfast.testing.faults import lines

STORE, RAW = "faults.subjects:play_to_line", "faults.controls:play_to_line"


@pytest.fixture(autouse=True)
def _can_run():
    need(lines.missing())


def sweep(forks, folder, look, script, short, *arguments, more=400, until=""):
    """Kill a run at the first execution of every line and at `more` later ones, or `until`
    something is said to be wrong; what was wrong, and how many lines there are."""
    counted = arranged(folder, "count", script)
    assert forks.run(*counted, 0, *arguments) == 0
    noted = Path(f"{counted[1]}.lines")
    numbers = lines.first_of_each(noted)
    names = dict(json.loads(noted.read_text()))
    later = range(1, len(names), max(1, len(names) // more))
    wrong = {}
    for number in hunt(sorted({*numbers, *later}), short, wrong, until):
        place = arranged(folder, f"p{number}", script)
        run = forks.start(*place, number, *arguments)
        assert run.wait() in (0, -signal.SIGKILL), run.stderr
        found = oracle.judge(read_log(place[1]), look(place[0]))
        if found:
            wrong[names[number]] = found
    return wrong, len(numbers)


def arranged(folder, name, script):
    (folder / name).mkdir()
    return [str(folder / name / "store.db"), str(folder / f"{name}.log"), script]


def test_every_line_may_be_the_last(programs, fast_path):
    """All lines of the store that a turn executes: 0 lost, 0 half done."""
    script = subjects.turn_script(1)

    wrong, count = sweep(programs(STORE), fast_path, oracle.read_store, script, 60)

    assert wrong == {}
    assert count >= 800


def test_a_batch_in_two_transactions_is_caught(programs, fast_path):
    """Control: a line between the two commits leaves half of a batch."""
    script, forks, half = subjects.plain_script(2), programs(RAW), "half of a step"

    wrong, count = sweep(forks, fast_path, oracle.read_raw, script, 80, "two commits", until=half)

    assert is_told(half, wrong)
    assert not FULL or count > 30


def test_plain_sqlite_passes_the_same_sweep(programs, fast_path):
    """With one transaction for each step no line is a bad place to die."""
    wrong, _ = sweep(programs(RAW), fast_path, oracle.read_raw, subjects.plain_script(2), 20)

    assert wrong == {}
