"""How much of the fault programme runs: a short tier with every test run, all of it on demand.

`HOLDFAST_FAULTS=full` asks for all of it. The tests are the same in both, with other numbers. What
cannot run here is skipped by name in the short tier, and fails in the full one: there a skipped row
would be a promise that nobody looked at.
"""

import os

import pytest

FULL = os.environ.get("HOLDFAST_FAULTS", "") == "full"


def pick(short, full):
    """The number for this tier."""
    return full if FULL else short


def some(points, short):
    """All of them in the full tier; in the short one at most `short`, evenly spread."""
    points = list(points)
    if FULL or len(points) <= short:
        return points
    return [points[at * (len(points) - 1) // (short - 1)] for at in range(short)]


def need(*reasons):
    """Go on only if every tool can run: each reason is what its `missing()` said."""
    for reason in reasons:
        if reason and FULL:
            pytest.fail(f"a row of the full tier cannot run: {reason}")
        if reason:
            pytest.skip(reason)
