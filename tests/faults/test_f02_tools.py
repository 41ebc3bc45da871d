"""F02: a process is killed around its tools, and the turn is gone on with by another.

A tool that may not be run twice has its effect at most once. If it was started and its result was
not stored, the model is told that the outcome is unknown, and a mark says so. One that may be run
again is, under the same key.
"""

import os
import signal
from collections import Counter
from itertools import product

import pytest

from faults import turn_oracle, turns
from faults.log import read_log
from faults.tier import need, pick, some
from holdfast.messages import Role
from holdfast.notes import UNKNOWN_OUTCOME
from holdfast.testing.faults import forks

PLAY = "faults.turns:play_tool"
PLACES = ("before the effect", "after the effect", "before the append", "after the append")
CALLS = ("u1/1", "u1/2", "u1/3")
KINDS = [{"is_async": True}, {"is_async": False}, {"is_async": True, "pause_s": 0.002}]


@pytest.fixture(autouse=True)
def _can_run():
    need(forks.missing())


def cases(idempotent):
    """Every place, of every call, in every kind of tool, and both ways to go on."""
    every = product(PLACES, CALLS, KINDS, ("resume", "send"))
    return some([(*case, idempotent) for case in every], 16)


def killed(program, folder, case, made=turns.tools):
    """What is wrong after one case; the effects of each call, and the rows."""
    where, what, kind, how, idempotent = case
    options = kind | {"idempotent": idempotent}
    place = turns.arranged(folder, "place", where, what, options)
    run = program.start(*place)
    assert run.wait() == -signal.SIGKILL, run.stderr
    effects = turns.Effects(f"{place[0]}.effects")
    judged = turn_oracle.judge(
        place[0],
        read_log(place[1]),
        how,
        effects=effects,
        made=made(effects, idempotent=idempotent),
        is_idempotent=idempotent,
    )
    return judged, Counter(what for what, _ in effects.all())


def results(rows):
    return {
        each.tool_call_id: each.text
        for each in turn_oracle.messages_of(rows)
        if each.role is Role.TOOL
    }


def test_a_tool_that_may_not_run_twice_does_not(programs, turn_folder):
    """Killed anywhere: at most one effect each, and what is not known is said not to be."""
    for case in cases(idempotent=False):
        where, what, *_ = case

        judged, count = killed(programs(PLAY), turn_folder, case)

        assert judged.wrong == [], case
        assert all(times == 1 for times in count.values()), case
        told = results(judged.rows)
        is_stored = where == "after the append"
        assert told[what] == (turns.result_text(what) if is_stored else UNKNOWN_OUTCOME), case
        marks = {mark.about for mark in turn_oracle.marks_of(judged.rows, "unknown")}
        assert marks == {call for call in CALLS if told[call] == UNKNOWN_OUTCOME}, case


def test_a_tool_that_may_run_again_does_so_under_the_same_key(programs, turn_folder):
    """Gone on with, every call has its result; another send leaves what is unknown."""
    for case in cases(idempotent=True):
        how = case[3]

        judged, count = killed(programs(PLAY), turn_folder, case)

        assert judged.wrong == [], case
        assert max(count.values(), default=0) <= 2, case
        if how == "resume":
            assert results(judged.rows) == {each: turns.result_text(each) for each in CALLS}, case
            assert set(count) == set(CALLS), case


def test_a_kill_at_any_moment_of_the_tools_leaves_one_effect(programs, turn_folder):
    """Not where somebody thought of, but after so many milliseconds."""
    program = programs("faults.turns:play_slow_tools")
    unknown = 0
    for number in range(pick(6, 200)):
        place = turns.arranged(turn_folder, "place")
        run = program.start(*place, number * 7 % 23)
        assert run.wait() == -signal.SIGKILL, run.stderr

        judged = turn_oracle.judge(place[0], read_log(place[1]), ("resume", "send")[number % 2])

        assert judged.wrong == [], number
        unknown += len(turn_oracle.marks_of(judged.rows, "unknown"))

    assert unknown


def test_a_tool_that_is_run_again_without_asking_is_caught(programs, turn_folder):
    """Control: whoever goes on takes it for one that may run twice."""

    def careless(effects, **_):
        return turns.tools(effects, idempotent=True)

    case = ("after the effect", "u1/2", KINDS[0], "resume", False)

    judged, count = killed(programs(PLAY), turn_folder, case, made=careless)

    assert count["u1/2"] == 2
    assert any("was done 2 times" in each for each in judged.wrong), judged.wrong


def test_a_rerun_under_another_key_is_caught(programs, turn_folder):
    """Control: the key is made anew for every run."""

    def forgetful(effects, **_):
        add = effects.add
        effects.add = lambda what, key: add(what, f"{key}:{os.getpid()}")
        return turns.tools(effects, idempotent=True)

    case = ("after the effect", "u1/2", KINDS[0], "resume", True)

    judged, _ = killed(programs(PLAY), turn_folder, case, made=forgetful)

    assert any("under another key" in each for each in judged.wrong), judged.wrong
