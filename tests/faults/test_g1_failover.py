"""G1: the primary is lost under load, and its standby is promoted.

Nothing that was acknowledged is lost, nothing is there twice, and the writers go on by themselves
within 10 s. The full tier also cuts the network to the primary, and pauses it.
"""

import asyncio
import shutil
import tempfile
from pathlib import Path

import pytest

from faults.failover import RESUME_MAX_S, Pair, rounds
from faults.tier import FULL, pick


@pytest.fixture
def pair(request):
    folder = Path(tempfile.mkdtemp(prefix="holdfast-pair-"))
    made = Pair(folder, is_sync=getattr(request, "param", True))
    yield made
    made.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.usefixtures("uncovered")
@pytest.mark.parametrize("how", ["killed", "cut", "paused"] if FULL else ["killed"])
def test_the_primary_is_lost_and_nothing_that_was_told_is(pair, how):
    """0 lost, 0 twice, contiguous; the writers resume."""
    pair.follow()

    complaints, pauses = asyncio.run(rounds(pair, pick(2, 10), how))

    assert complaints == []
    assert max(pauses) <= RESUME_MAX_S


@pytest.mark.parametrize("pair", [False], indirect=True, ids=["asynchronous"])
def test_a_standby_that_is_not_synchronous_is_caught(pair):
    """Control: what it has not got yet is lost with the primary."""
    pair.follow()

    complaints, _ = asyncio.run(rounds(pair, 1, "behind"))

    assert any("lost" in each for each in complaints), complaints
