"""F01b on whole turns: SIGKILL at every line of the turn's own code that a turn executes."""

import json
import signal
from pathlib import Path

import pytest

from faults import turn_oracle
from faults.log import read_log
from faults.tier import hunt, is_told, need, pick
from faults.turns import arranged
from holdfast.testing.faults import lines

PLAY = "faults.turns:play_to_line"
NEXT = ("resume", "send")


@pytest.fixture(autouse=True)
def _can_run():
    need(lines.missing())


def sweep(forks, folder, short, *arguments, file="", until=""):
    """Kill the turns at the first execution of every line (of `file`), or `until` something is said
    to be wrong; what was wrong, how many lines there are, and how many runs were killed."""
    counted = arranged(folder, "count", 0, *arguments)
    assert forks.run(*counted) == 0
    noted = Path(f"{counted[1]}.lines")
    names = dict(json.loads(noted.read_text()))
    numbers = [number for number in lines.first_of_each(noted) if file in names[number]]
    wrong, kills = {}, 0
    for at, number in enumerate(hunt(numbers, short, wrong, until)):
        place = arranged(folder, "place", number, *arguments)
        run = forks.start(*place)
        status = run.wait()
        assert status in (0, -signal.SIGKILL), run.stderr
        kills += status < 0
        judged = turn_oracle.judge(place[0], read_log(place[1]), NEXT[at % 2])
        if judged.wrong:
            wrong[names[number]] = judged.wrong
    return wrong, len(numbers), kills


def test_every_line_of_a_turn_may_be_the_last(programs, turn_folder):
    """Manager, session, turn, its steps, what it knows of the log: 0 lost, 0 twice, 0 stuck."""
    wrong, count, kills = sweep(programs(PLAY), turn_folder, 30)

    assert wrong == {}
    assert count >= 800
    assert kills >= pick(25, 780)


def test_a_result_that_is_acknowledged_too_early_is_caught(programs, turn_folder):
    """Control: the store says that it has it, and writes it a little later."""
    forks, lost = programs(PLAY), "acknowledged and lost"

    wrong, _, _ = sweep(forks, turn_folder, 12, 1, "late results", file="tool_runs.py", until=lost)

    assert is_told(lost, wrong), wrong
