"""F01 and F01b on a memory: SIGKILL at every system call on its files and on the store, and at
every line of its code.

A consolidation changes two files and a counter in a store. After each kill no entry of HISTORY.md
is there twice, and none is lost (B6); after a kill while something is erased it can be asked for
again, and then nothing of it is left.
"""

import json
import signal
from pathlib import Path

import pytest

from faults import remembering
from faults.tier import hunt, is_told, need, pick, some
from holdfast.testing.faults import damage, lines, strace

PROGRAMS = {"keep": remembering.judge_kept, "erase": remembering.judge_erased}
SCOPE = "workspace"


@pytest.fixture
def folder(programs, fast_path):
    """Stores and memories to be copied: `keep` has nothing summarised yet, `erase` all of it."""
    for name in PROGRAMS:
        made = [str(fast_path / name), SCOPE, name == "erase"]
        assert programs("faults.remembering:prepare").run(*made) == 0
    return fast_path


def lines_sweep(forks, folder, program, short, fault="", file="", until=""):
    """Kill a program at the first execution of every line (of `file`), or `until` something is said
    to be wrong; what was wrong, how many lines there are, and how many runs were killed."""
    need(lines.missing())
    place = damage.copy(folder / program, folder / "count")
    assert forks.run(program, 0, str(place), SCOPE, fault) == 0
    names = dict(json.loads(Path(f"{place}.lines").read_text()))
    numbers = [each for each in lines.first_of_each(f"{place}.lines") if file in names[each]]
    wrong, kills = {}, 0
    for number in hunt(numbers, short, wrong, until):
        place = damage.copy(folder / program, folder / "place")
        run = forks.start(program, number, str(place), SCOPE, fault)
        status = run.wait()
        assert status in (0, -signal.SIGKILL), run.stderr
        kills += status < 0
        if found := PROGRAMS[program](place, SCOPE):
            wrong[names[number]] = found
    return wrong, len(numbers), kills


def calls_sweep(forks, folder, program, short, fault=""):
    """Kill a program at every change of a file."""
    need(strace.missing())
    place = damage.copy(folder / program, folder / "count")
    seen = strace.calls(forks, [str(place), SCOPE, fault], place)
    wrong, hits = {}, 0
    for at, point in enumerate(some(strace.points(seen), short)):
        place = damage.copy(folder / program, folder / f"p{at}")
        files = [path.replace("/count/", f"/p{at}/") for path in strace.files(seen)]
        outcome = strace.inject(forks, [str(place), SCOPE, fault], files, point)
        assert outcome.status in (0, -signal.SIGKILL), (point, outcome.stderr)
        hits += outcome.is_hit
        if found := PROGRAMS[program](place, SCOPE):
            wrong[point] = found
    return wrong, hits


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_line_may_be_the_last(programs, folder, program):
    """B6: nothing is there twice, nothing is lost, and the next process goes on with it."""
    short = 14 if program == "keep" else 8
    found = lines_sweep(programs("faults.remembering:to_line"), folder, program, short)
    wrong, count, kills = found

    assert wrong == {}
    assert count >= 150
    assert kills >= pick(6, 145)


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_change_of_a_file_may_be_the_last(programs, folder, program):
    """B6: the same at the system calls, on the files of the memory and of the store."""
    forks = programs(f"faults.remembering:{program}")
    wrong, hits = calls_sweep(forks, folder, program, 10 if program == "keep" else 6)

    assert wrong == {}
    assert hits >= pick(3, 60 if program == "keep" else 30)


@pytest.mark.parametrize(
    ("program", "fault", "what"),
    [
        ("keep", "undecided", "2 times"),
        ("keep", "counted_first", "0 times"),
        ("erase", "forgotten_first", "HISTORY.md has"),
    ],
)
def test_a_memory_without_its_promise_is_caught(programs, folder, program, fault, what):
    """Control: files before the decision, the counter before the files, provenance before both."""
    forks = programs("faults.remembering:to_line")
    wrong, _, _ = lines_sweep(forks, folder, program, 16, fault, "consolidation/files.py", what)

    assert is_told(what, wrong), wrong
