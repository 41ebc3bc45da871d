"""S1: thousands of turns with faults on, and nothing grows.

The programme is `tests/soak.py`, and takes minutes: here are a few seconds of it, and what it makes
of its measurements; `scripts/test soak` runs all of it.
"""

import asyncio

import pytest

import soak
from soak import MIB, Sample, slope_of

SHORT = ("0.01", "--warm", "0", "--turns", "60", "--sessions", "10", "--rate", "200")
STEADY = Sample(turns=0, rss=60.0, blocks=300_000, descriptors=20, tasks=30, threads=7, wal=MIB)


def ran(folder, *arguments):
    """A run; its sessions have been sound to the end."""
    run, problems = asyncio.run(soak.soaked(folder, soak.options_of(arguments)))
    assert problems == ()
    return run


def growth(run):
    """How many blocks are allocated for each turn."""
    half = run.samples[len(run.samples) // 2 :]
    return slope_of([(each.turns, each.blocks) for each in half]).value


def test_a_planted_leak_is_noticed(tmp_path):
    """Control: with every result kept, objects grow as they do not without."""
    for name in ("sound", "leaking"):
        (tmp_path / name).mkdir()
    sound = ran(tmp_path / "sound", *SHORT)
    leaking = ran(tmp_path / "leaking", *SHORT, "--leak", "2000")

    assert growth(leaking) > 500 and growth(leaking) > 2 * growth(sound)
    assert "objects" in soak.report(leaking, ())
    missed = {name for name, _, is_missed in sound.numbers() if is_missed}
    assert missed <= {"RSS", "objects", "append"}  # caches fill, which takes longer than this run
    assert sound.outcomes["response"] > 20 and len(sound.outcomes) > 1


def measured(**each_turn):
    """A run of 100,000 turns whose numbers grow by so much in each."""
    run = soak.Soak(None, "", soak.options_of(["10"]))
    for turns in range(0, 100_001, 2_000):
        grown = {name: getattr(STEADY, name) + by * turns for name, by in each_turn.items()}
        run.samples.append(STEADY._replace(turns=turns, **grown))
    for second in range(600):
        run.timed(second, 0.01)
    return run


LEAKS = {
    "RSS": {"rss": 2 / 100_000},
    "objects": {"blocks": 0.1},
    "descriptors": {"descriptors": 0.001},
    "tasks": {"tasks": 0.001},
    "threads": {"threads": 0.001},
    "WAL": {"wal": 1_000},
}


@pytest.mark.parametrize("name", LEAKS)
def test_each_number_that_grows_misses_its_bar(name):
    """Controls, one for each number; and nothing else is blamed."""
    assert soak.report(measured(**LEAKS[name]), ()) == [name]


def test_what_does_not_grow_meets_every_bar():
    """Also with a mebibyte of noise."""
    run = measured()
    run.samples = [each._replace(rss=each.rss + n % 2) for n, each in enumerate(run.samples)]

    assert soak.report(run, ()) == []


def test_appends_that_become_slow_and_rows_that_are_wrong_are_told():
    run = measured()
    for second in range(300, 600):
        run.timed(second, 0.05)

    assert soak.report(run, ("a row",)) == ["append", "verify"]
