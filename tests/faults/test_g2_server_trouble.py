"""G2: the server is restarted under load, and connections are ended at random moments.

Nothing that was acknowledged is lost, nothing is there twice, and writers go on by themselves; what
they are told meanwhile is a typed error.
"""

import asyncio
import random
import shutil
import tempfile
from pathlib import Path

import pytest

from faults.failover import SETTINGS, Writers, sql, wait_for
from faults.tier import pick
from holdfast.errors import StoreUnavailable
from holdfast.messages import Message
from holdfast.stores import open_store
from holdfast.stores.postgresql import outcomes
from holdfast.stores.values import Record
from postgres_server import Cluster, name_of, programs, reachable, server

END_ONE = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() ORDER BY random() LIMIT {}"""


@pytest.fixture(scope="module")
def cluster():
    """A server of its own, to be restarted."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-g2-"))
    folder.chmod(0o755)
    made = Cluster(reachable(programs(), folder), folder / "one", SETTINGS)
    made.create()
    made.start()
    yield made
    made.stop("immediate")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def url(tmp_path):
    name = name_of(tmp_path)
    yield server().database(name)
    server().give_back(name)


async def under_load(url, strike, writers=8):
    """`await strike(crowd)` while some write; what is wrong afterwards."""
    async with asyncio.timeout(600), open_store(url) as store:
        crowd = Writers(store, writers)
        await crowd.prepare()
        tasks = [asyncio.ensure_future(crowd.write(n)) for n in range(writers)]
        try:
            await strike(crowd)
        finally:
            await crowd.stop()
            await asyncio.gather(*tasks)
        return await crowd.complaints()


@pytest.mark.usefixtures("uncovered")
def test_the_server_is_restarted_under_load(cluster):
    """With and without time to say so; the writers are the same afterwards."""

    async def strike(crowd):
        for number in range(pick(2, 20)):
            await crowd.more(40)
            await asyncio.to_thread(cluster.stop, ("fast", "immediate")[number % 2])
            await asyncio.to_thread(cluster.start)
            assert await crowd.more() <= 10

    assert asyncio.run(under_load(cluster.url(), strike)) == []


async def _ended(database, times, crowd):
    rnd = random.Random(4)
    for _ in range(times):
        await asyncio.to_thread(server().sql, END_ONE.format(rnd.randrange(1, 4)), database)
        await crowd.more(rnd.randrange(1, 8))


@pytest.mark.usefixtures("uncovered")
def test_connections_are_ended_at_random_moments(url):
    """In the middle of a commit too."""
    database = url.rpartition("/")[2]

    complaints = asyncio.run(
        under_load(url, lambda crowd: _ended(database, pick(15, 1_000), crowd))
    )

    assert complaints == []


def test_asking_again_without_looking_is_caught(cluster, monkeypatch):
    """Control: who takes a lost answer for a commit that failed writes twice.

    A server that commits and is ended before it answers is rare; so commits wait for a standby that
    is not there, and are ended while they wait.
    """

    async def guessed(pool, server, tenants, shelf, writer):
        return {}

    monkeypatch.setattr(outcomes, "of_batch", guessed)

    async def main():
        async with asyncio.timeout(60), open_store(cluster.url()) as store:
            tenant = store.tenant()
            record = await tenant.create(Record(key="guessed"))
            await tenant.append(record.id, [Message.user("0")])
            await wait_for(cluster, "nobody")
            writing = asyncio.ensure_future(tenant.append(record.id, [Message.user("1")]))
            while not await sql(
                cluster,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                "wait_event = 'SyncRep'",
            ):
                pass
            await sql(cluster, "ALTER SYSTEM RESET synchronous_standby_names")
            await sql(cluster, "SELECT pg_reload_conf()")
            await writing
            return [each.entry.text for each in await tenant.read(record.id)]

    assert asyncio.run(main()) == ["0", "1", "1"]


def test_a_commit_that_was_ended_while_it_waited_is_there_once(cluster):
    """The same with the store as it is: looked up, and told when it is as safe as the rest."""

    async def main():
        async with asyncio.timeout(60), open_store(cluster.url()) as store:
            tenant = store.tenant()
            record = await tenant.create(Record(key="looked"))
            await tenant.append(record.id, [Message.user("0")])
            await wait_for(cluster, "nobody")
            writing = asyncio.ensure_future(tenant.append(record.id, [Message.user("1")]))
            waits = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
            while not (found := await sql(cluster, waits)):
                pass
            await sql(cluster, f"SELECT pg_terminate_backend({found[0][0]})")
            while not (again := await sql(cluster, f"{waits} AND pid <> {found[0][0]}")):
                pass
            assert again
            assert not writing.done()  # the look itself waits for the standby
            await sql(cluster, "ALTER SYSTEM RESET synchronous_standby_names")
            await sql(cluster, "SELECT pg_reload_conf()")
            done = await writing
            return done.last, [each.entry.text for each in await tenant.read(record.id)]

    assert asyncio.run(main()) == (2, ["0", "1"])


def test_a_commit_that_waits_for_a_standby_that_is_gone_is_given_up(cluster, monkeypatch):
    """A typed error that says what is not known; what was written shows when it can be looked."""
    monkeypatch.setattr("holdfast.stores.postgresql.server.COMMAND_S", 0.3)
    monkeypatch.setattr(outcomes, "PATIENCE_S", 0.5)

    async def main():
        async with asyncio.timeout(60), open_store(cluster.url()) as store:
            tenant = store.tenant()
            record = await tenant.create(Record(key="given up"))
            await wait_for(cluster, "nobody")
            try:
                with pytest.raises(StoreUnavailable, match="look"):
                    await tenant.append(record.id, [Message.user("1")])
                _, standbys = await store.look()
                assert standbys == ()
                assert any("no standby is in sync" in each for each in store.problems())
            finally:
                await wait_for(cluster, "")
            await tenant.append(record.id, [Message.user("2")])
            found = [each.entry.text for each in await tenant.read(record.id)]
            assert (await tenant.verify(record.id)).problems == ()
            return found

    assert asyncio.run(main()) in (["1", "2"], ["2"])
