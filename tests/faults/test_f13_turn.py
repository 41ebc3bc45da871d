"""F13 on whole turns: a process is stopped in its turn for longer than its lease, and wakes up.

Meanwhile another one has run a turn. The first gets LeaseLost; what it still had goes to a branch
of its own, and nothing of it to the one in use, where the other has cleaned up behind it.
"""

import asyncio
import signal
import time
from itertools import count

import pytest

from faults import turn_oracle, turns
from faults.log import read_log
from faults.test_f13_paused_writer import is_gone, wait_for
from faults.tier import need, pick
from holdfast.messages import Role
from holdfast.testing.faults import forks

SAID = ("u1", "u1 use 3 steps")
TAKEN_S = 5.0


@pytest.fixture(autouse=True)
def _can_run():
    need(forks.missing())


def facts(log, do):
    return [each.step for each in read_log(log) if each.step["do"] == do]


def paused(holder, taker, folder, number):
    """One round; where the store is, and the logs of both. None if it could not be tried."""
    place = turns.arranged(folder, f"place{number}")
    path, logs = place[0], [folder / f"{who}{number}" for who in ("a", "b")]
    said = SAID[number % 2]
    first = holder.start(path, str(logs[0]), said)
    wait_for(lambda: facts(logs[0], "kept" if "use" in said else "begun"))
    time.sleep(number % 7 / 100)  # somewhere in it
    first.signal(signal.SIGSTOP)
    second = taker.start(path, str(logs[1]), "v1 use 2 steps")
    try:
        second.wait(TAKEN_S)
    except TimeoutError:  # stopped inside a commit, the first holds the lock of the whole file
        first.kill()
        first.wait()
        return None
    first.signal(signal.SIGCONT)
    wait_for(lambda: facts(logs[0], "ended") or is_gone(first.pid))
    assert first.wait() == 0, first.stderr
    return path, logs


async def stored(path):
    """The rows of every branch; which is in use; what is wrong with the store."""
    async with turns.opened(path, turns.Model(), []) as sessions:
        session = await sessions.get("chat")
        tenant = sessions._workshop.tenant
        rows = {each.name: await tenant.read(session.id, each.name) for each in session.branches}
        return rows, session, (await tenant.verify()).problems


def judge(path, logs):
    """What is wrong after a round, in sentences."""
    rows, session, problems = asyncio.run(stored(path))
    used = rows[session.branch]
    wrong = [str(each) for each in problems]
    wrong += turn_oracle.broken_rules(used)
    wrong += turn_oracle.effects_wrong(turns.Effects(f"{path}.effects"), used)
    if [each["error"] for each in facts(logs[0], "ended")] != ["LeaseLost"]:
        wrong.append(f"the first ended with {facts(logs[0], 'ended')}")
    if [each["error"] for each in facts(logs[1], "ended")] != [""]:
        wrong.append(f"the second ended with {facts(logs[1], 'ended')}")
    wrong += misplaced(rows, session.branch, facts(logs[0], "kept"), facts(logs[1], "kept"))
    if session.draft is not None:
        wrong.append(f"a draft is left: {session.draft.text!r}")
    return wrong


def misplaced(rows, used, firsts, seconds):
    """What the first has written behind the other's first entry, and what is not there at all."""
    others = {id for fact in seconds for _, id in fact["entries"]}
    own = {id for fact in firsts for _, id in fact["entries"]} - others
    ids = [getattr(row.entry, "id", None) for row in rows[used]]
    start = min(ids.index(id) for id in others if id in ids)
    late = [id for id in ids[start:] if id in own]
    if late:
        yield f"written late on the branch in use: {late}"
    if asides := [name for name in rows if name.startswith("aside")]:
        words = [each.text for each in turn_oracle.messages_of(rows[asides[0]])]
        if "u1" not in words[0]:
            yield f"put aside without what was said: {words}"
    else:
        yield "nothing was put aside"


def each_paused(holder, taker, folder, rounds, *, numbers=None):
    """So many rounds that could be tried, with their numbers."""
    tried = 0
    for number in numbers or count():
        found = paused(holder, taker, folder, number)
        if found is not None:
            yield number, found
            tried += 1
        if tried == rounds:
            return
        assert number < 3 * rounds + 30, "it hardly ever stopped in the middle"


def test_a_turn_that_was_stopped_is_told_and_put_aside(programs, turn_folder):
    """100 of 100, in the model and in tools."""
    holder, taker = programs("faults.pauses:hold"), programs("faults.pauses:take")

    for number, found in each_paused(holder, taker, turn_folder, pick(4, 100)):
        assert judge(*found) == [], number


def test_what_the_stopped_turn_had_said_is_kept_and_marked(programs, turn_folder):
    """The other one found it in the draft: the input and the words, interrupted."""
    holder, taker = programs("faults.pauses:hold"), programs("faults.pauses:take")
    [(_, (path, _))] = each_paused(holder, taker, turn_folder, 1, numbers=count(4, 2))

    rows, session, _ = asyncio.run(stored(path))
    said = turn_oracle.messages_of(rows[session.branch])
    assert [each.text for each in said if each.starts_turn] == ["u1", "v1 use 2 steps"]
    assert turn_oracle.marks_of(rows[session.branch], "interrupted")
    assert all(e.stop == "interrupted" for e in said[1:2] if e.role is Role.ASSISTANT)


def test_a_turn_without_fencing_is_caught(programs, turn_folder):
    """Control: it goes on under a lease that it does not hold any more."""
    holder, taker = programs("faults.pauses:hold_unfenced"), programs("faults.pauses:take")
    [(_, found)] = each_paused(holder, taker, turn_folder, 1, numbers=count(2, 2))

    wrong = judge(*found)
    assert any("written late" in each for each in wrong), wrong
