"""C3: eight processes open a store that is not there yet, and get or create the same session.

All succeed, exactly one of them creates it, and what each of them appended is there.
"""

import json
import time

import pytest

from faults import oracle
from faults.tier import need, pick
from holdfast.testing.faults import forks

PROCESSES = 8
HEAD_START_S = 0.05


@pytest.fixture(autouse=True)
def _can_run():
    need(forks.missing())


def race(program, folder, number):
    """One round; what each process said, and the errors of those that failed."""
    (folder / str(number)).mkdir()
    path = folder / str(number) / "store.db"
    start_ns = time.monotonic_ns() + int(HEAD_START_S * 10**9)
    notes = [folder / f"{number}-{who}" for who in range(PROCESSES)]
    runs = [program.start(str(path), str(note), start_ns, who) for who, note in enumerate(notes)]
    errors = [run.stderr for run in runs if run.wait() != 0]
    return path, [json.loads(note.read_text()) for note in notes if note.exists()], errors


def test_everybody_gets_in_and_one_creates(programs, fast_path):
    """8 of 8, in every round."""
    for number in range(pick(5, 50)):
        path, said, errors = race(programs("faults.opening:store"), fast_path, number)

        assert errors == []
        assert [note["created"] for note in said].count(True) == 1
        assert len({note["id"] for note in said}) == 1
        found = oracle.read_store(path, use=False)
        assert found.complaints == []
        wanted = sorted(f"w{who}" for who in range(PROCESSES))
        assert sorted(found.sessions["shared"].branches["main"]) == wanted


def test_looking_first_and_creating_then_is_caught(programs, fast_path):
    """Control: plain sqlite3, select-then-insert: some round has an error, or two creators."""
    for number in range(20):
        _, said, errors = race(programs("faults.opening:raw"), fast_path, number)
        if errors or [note["created"] for note in said].count(True) != 1:
            return

    pytest.fail("nobody got in anybody's way: this row has no barrier")
