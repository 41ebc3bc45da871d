"""C5: processes, tasks and faults on one session, in an order that a seed decides.

In each run up to five things go wrong: an operation of the store fails, or fails after it was done,
or takes longer than a lease; a process sleeps as long, or dies; a model breaks off. Others append,
steer, cancel, revert and fold meanwhile. Afterwards nothing that was acknowledged is missing,
nothing is there twice, no tool has run again, every chain verifies, and the session can be used.
"""

import logging
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from threading import Lock

import pytest

from faults import simulation
from faults.tier import need, pick
from holdfast.stores.head import Head
from holdfast.stores.values import Appended
from holdfast.testing.faults import loops
from postgres_server import server

SEEDS = pick(60, 2_000)
CONTROL_SEEDS = 150
AT_ONCE = 8


@pytest.fixture(autouse=True)
def _can_run(caplog):
    need(loops.missing())
    caplog.set_level(logging.ERROR, "holdfast")  # it warns of everything that goes wrong


def failures(seeds, make=simulation.Process, enough=10):
    """What is wrong, by seed, with how to see it again; after `enough` it is given up."""
    found = {}
    for seed in seeds:
        wrong, _ = simulation.run(seed, make)
        if wrong:
            found[f"cd tests; python -m faults.simulation {seed}"] = wrong
        if len(found) >= enough:
            break
    return found


def test_nothing_is_lost_or_done_twice_in_any_order_of_things():
    assert failures(range(SEEDS)) == {}


def wrong_on_server(seeds, make=simulation.Process):
    """What is wrong, by seed; a few of them at once, because they mostly wait."""
    databases = SimpleQueue()
    for number in range(AT_ONCE):
        databases.put(f"c5-{number}")

    def one(seed):
        name = databases.get()
        with lock:
            url = server().database(name)
        found, _ = simulation.run_on(url, seed, make)
        with lock:
            server().give_back(name)
        databases.put(name)
        return seed, found

    lock = Lock()
    with simulation.hurry(), ThreadPoolExecutor(AT_ONCE) as threads:
        return {seed: found for seed, found in threads.map(one, seeds) if found}


def test_nothing_is_lost_or_done_twice_on_a_server():
    """Each process with connections of its own to a PostgreSQL. A seed decides what is tried."""
    assert wrong_on_server(range(pick(AT_ONCE, 2_000))) == {}


def test_a_seed_happens_again_as_it_did():
    """The same trace to the last step; and another seed is another story."""
    for seed in range(pick(5, 50)):
        first, again = simulation.run(seed), simulation.run(seed)

        assert first == again, seed
        assert len(first[1]) > 20

    assert simulation.run(0)[1] != simulation.run(1)[1]


def test_every_kind_of_fault_happens():
    """And nothing of it is so rare that it is never tried."""
    traces = [simulation.run(seed)[1] for seed in range(pick(120, 400))]

    kinds = {step[-1] for trace in traces for step in trace}
    assert {"before", "after", "stall", "sleep", "crash", "LeaseLost", "Conflict"} <= kinds


# Controls


class Forgetful(simulation.Process):
    """Its store acknowledges what is appended beside a turn, and forgets it."""

    def _risky(self, name, operation):
        async def forgets(id, entries, **options):
            if options.get("lease") is None and options.get("after") is None:
                return Appended(1, 1, options.get("branch", "main"), 1)
            return await operation(id, entries, **options)

        return super()._risky(name, forgets if name == "append" else operation)


class Careless(simulation.Process):
    """Takes every tool for one that may run again."""

    def _tools(self):
        return [tool.replace(idempotent=True) for tool in super()._tools()]


class Repeating(simulation.Process):
    """Its store does not know what `once` means."""

    def _risky(self, name, operation):
        async def repeats(id, entries, **options):
            return await operation(id, entries, **options | {"once": None})

        return super()._risky(name, repeats if name == "append" else operation)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (Forgetful, "acknowledged and lost"),
        (Careless, "was done 2 times"),
        (Repeating, "an input is there 2 times"),
    ],
)
def test_a_fault_that_was_planted_is_found(make, words):
    found = failures(range(CONTROL_SEEDS), make, enough=1)

    assert any(words in each for wrong in found.values() for each in wrong), found


def test_a_fault_that_was_planted_is_found_on_a_server():
    found = wrong_on_server(range(2 * AT_ONCE), Forgetful)

    assert any("acknowledged and lost" in each for wrong in found.values() for each in wrong), found


def test_a_lease_that_is_not_fenced_is_found(monkeypatch):
    """Whoever slept through the end of his lease writes on."""
    monkeypatch.setattr(Head, "check_lease", lambda self, lease: None)

    assert failures(range(CONTROL_SEEDS), enough=1)
