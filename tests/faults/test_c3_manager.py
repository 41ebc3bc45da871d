"""C3 for the manager: eight processes get or create the same session at the same moment.

On a store that is not there yet, and where the session has expired: in each round exactly one makes
it, all get the same one, and what each of them said is there.
"""

import asyncio
import json
import time
from collections import namedtuple
from datetime import timedelta

import pytest

import holdfast
from faults.log import text_of, url_of
from faults.test_c3_barrier_open import HEAD_START_S, PROCESSES
from faults.tier import need, pick
from holdfast import ids
from holdfast.testing.faults import forks
from postgres_server import server

Round = namedtuple("Round", "said errors keys texts problems")


@pytest.fixture(autouse=True)
def _can_run():
    need(forks.missing())


@pytest.fixture(params=["sqlite", "jsonl", "postgresql"])
def fresh(request, fast_path):
    """Gives a place for a store in which nothing was ever done."""
    made = []

    def place(number):
        if request.param == "postgresql":
            made.append(server().new_database())
            return server().url(made[-1])
        suffix = {"sqlite": "db", "jsonl": "sessions"}[request.param]
        return str(fast_path / f"{number}.{suffix}")

    yield place
    for name in made:
        server().drop(name)


def race(program, place, folder):
    """One round: what each process said, the errors, and what there is afterwards."""
    start_ns = time.monotonic_ns() + int(HEAD_START_S * 10**9)
    notes = [folder / f"note-{who}" for who in range(PROCESSES)]
    for note in notes:
        note.unlink(missing_ok=True)
    runs = [program.start(place, str(note), start_ns, who) for who, note in enumerate(notes)]
    errors = [run.stderr for run in runs if run.wait() != 0]
    said = [json.loads(note.read_text()) for note in notes if note.exists()]
    return Round(said, errors, *asyncio.run(_found(place)))


async def _found(place):
    async with holdfast.open(url_of(place), expire_every=None) as sessions:
        keys = [each.key for each in (await sessions.list()).items]
        texts = sorted(each.text for each in await (await sessions.get("shared")).read())
        return keys, texts, (await sessions._tenant.verify()).problems


def complaints(found):
    """What is wrong with a round."""
    wrong = list(found.errors) + list(found.problems)
    if [note["created"] for note in found.said].count(True) != 1:
        wrong.append("not exactly one has created it")
    if len({note["id"] for note in found.said}) != 1:
        wrong.append("they were given different sessions")
    if found.keys != ["shared"]:
        wrong.append(f"there are {found.keys}")
    if found.texts != sorted(text_of(f"w{who}") for who in range(PROCESSES)):
        wrong.append("what was said is not what is there")
    return wrong


def test_one_creates_and_all_get_it(programs, fresh, fast_path):
    """8 of 8, in every round."""
    for number in range(pick(1, 50)):
        assert complaints(race(programs("faults.opening:manager"), fresh(number), fast_path)) == []


def test_one_that_has_expired_is_made_anew_once(programs, fresh, fast_path):
    """The rule for expired ones holds for all who ask at once: the old one goes, one is made."""
    for number in range(pick(1, 20)):
        place = fresh(number)
        old = asyncio.run(expired(place))

        found = race(programs("faults.opening:manager"), place, fast_path)

        assert complaints(found) == []
        assert found.said[0]["id"] != old


async def expired(place):
    """Make the session, a day ago, for an hour."""
    then = time.time_ns() - 86_400 * 10**9
    async with holdfast.open(url_of(place), expire_every=None) as sessions:
        with ids.using(ids.IdSource(clock_ns=lambda: then)):
            return (await sessions.get_or_create("shared", ttl=timedelta(hours=1))).id


def test_a_manager_that_looks_first_and_creates_then_is_caught(programs, fresh, fast_path):
    """Control: some round has an error, two creators, or words that went with a session."""
    for number in range(10):
        if complaints(race(programs("faults.opening:naive_manager"), fresh(number), fast_path)):
            return

    pytest.fail("nobody got in anybody's way: this row has no barrier")
