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


def hunt(points, short, wrong, until):
    """The points of `some`. A control, which looks for something wrong, goes on to all others
    `until` one of the findings in `wrong` has these words."""
    first = some(points, short)
    others = [point for point in points if point not in first] if until else []
    for point in (*first, *others):
        yield point
        if until and is_told(until, wrong):
            return


def is_told(words, wrong):
    """Whether one of the findings has these words."""
    return any(words in " ".join(found) for found in wrong.values())


def need(*reasons):
    """Go on only if every tool can run: each reason is what its `missing()` said."""
    for reason in reasons:
        if reason and FULL:
            pytest.fail(f"a row of the full tier cannot run: {reason}")
        if reason:
            pytest.skip(reason)
