"""A primary and its standby, and writers who go on whatever happens to them."""

import asyncio
import shutil
import signal
import time

import asyncpg

from holdfast.errors import StoreUnavailable
from holdfast.messages import Message
from holdfast.stores import open_store
from holdfast.stores.values import Record
from postgres_proxy import Proxy
from postgres_server import Cluster, programs, reachable

SETTINGS = {
    "fsync": "off",  # processes are killed here, and no machine loses its power
    "full_page_writes": "off",
    "autovacuum": "off",
    "shared_buffers": "16MB",
    "wal_level": "replica",
    "max_wal_senders": "4",
    "wal_retrieve_retry_interval": "100ms",
    "wal_sender_timeout": "5s",
    "hot_standby": "on",
}
WAIT_MAX_S = 20.0
RESUME_MAX_S = 10.0


class Pair:
    """Two servers, of which one follows the other; they change places."""

    def __init__(self, folder, *, is_sync=True):
        folder.chmod(0o755)
        self._folder = folder
        self._is_sync = is_sync
        self._count = 0
        bin = reachable(programs(), folder)
        self.primary = Cluster(bin, folder / "first", SETTINGS)
        self.standby = None
        self.primary.create()
        self.primary.start()

    def follow(self):
        """Give the primary a standby in the place of the server that is gone, and wait for it."""
        self._count += 1
        made = self.primary.standby(self._folder / f"standby{self._count}")
        if self.standby is not None:
            made.port = self.standby.port  # where clients look for it
            shutil.rmtree(self.standby.folder, ignore_errors=True)
        with open(made.data / "postgresql.auto.conf", "a") as file:
            file.write("synchronous_standby_names = ''\n")
        made.start()
        self.standby = made
        if self._is_sync:
            asyncio.run(sql(self.primary, "ALTER SYSTEM SET synchronous_standby_names = '*'"))
            asyncio.run(sql(self.primary, "SELECT pg_reload_conf()"))
        # Right after its start a standby says "async", whatever it will be.
        wanted = "sync" if self._is_sync else "async"
        asyncio.run(until(self.primary, f"sync_state = '{wanted}'"))

    def switch(self):
        """Promote the standby; the old primary is gone."""
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary

    def close(self):
        for each in (self.primary, self.standby):
            if each is not None and each.is_running():
                each.signal(signal.SIGCONT)
                each.stop("immediate")


async def sql(cluster, statement):
    connection = await asyncpg.connect(cluster.url(), timeout=5)
    try:
        return await connection.fetch(statement)
    finally:
        await connection.close()


async def wait_for(cluster, names):
    """Let commits wait for these standbys, or for none, and come back when they do.

    A server that reads its settings anew does so a little after it was asked to.
    """
    await sql(cluster, f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
    await sql(cluster, "SELECT pg_reload_conf()")
    end = time.monotonic() + WAIT_MAX_S
    while await _commits_wait(cluster) != bool(names):
        assert time.monotonic() < end, f"commits never came to wait for {names!r}"


async def _commits_wait(cluster):
    connection = await asyncpg.connect(cluster.url(), timeout=5)
    try:
        await connection.execute("SELECT pg_logical_emit_message(true, '', '')", timeout=0.2)
    except TimeoutError:
        return True
    finally:
        connection.terminate()
    return False


async def until(cluster, condition, *, is_there=True):
    """Wait until there is a standby of which this is true, or until there is none."""
    look = f"SELECT FROM pg_stat_replication WHERE state = 'streaming' AND {condition}"
    end = time.monotonic() + WAIT_MAX_S
    while bool(await sql(cluster, look)) != is_there:
        assert time.monotonic() < end, f"it never came to that: {condition} is {is_there}"
        await asyncio.sleep(0.02)


class Writers:
    """Some who append numbers to sessions of their own, one after the other.

    `told` are the values that were acknowledged, by session; `doubtful` those of which an error
    said that it is not known; `refused` those that failed otherwise.
    """

    def __init__(self, store, count):
        self._store = store
        self._count = count
        self.told = {}
        self.asked = {}
        self.ids = {}
        self.acknowledged = 0
        self.errors = []
        self._stop = False

    async def prepare(self):
        for n in range(self._count):
            self.ids[n] = (await self._store.tenant().create(Record(key=f"s{n}"))).id
            self.told[n], self.asked[n] = [], []

    async def write(self, n):
        number = 0
        while not self._stop:
            number += 1
            value = f"{n}-{number}"
            self.asked[n].append(value)
            try:
                await self._store.tenant().append(self.ids[n], [Message.user(value)])
            except StoreUnavailable as error:
                self.errors.append(error)
                await asyncio.sleep(0.05)
                continue
            self.told[n].append(value)
            self.acknowledged += 1

    async def more(self, count=None):
        """Wait until so many more were acknowledged (as many as write); how long it took."""
        start, wanted = time.monotonic(), self.acknowledged + (count or self._count)
        while self.acknowledged < wanted:
            assert time.monotonic() - start < WAIT_MAX_S, f"they do not go on: {self.errors[-1:]}"
            await asyncio.sleep(0.005)
        return time.monotonic() - start

    async def stop(self):
        self._stop = True

    async def complaints(self):
        """What is lost, doubled, out of order, invented or not contiguous."""
        found = []
        for n, id in self.ids.items():
            rows = await self._store.tenant().read(id)
            there = [row.entry.text for row in rows]
            if [row.seq for row in rows] != list(range(1, len(rows) + 1)):
                found.append(f"s{n} is not contiguous")
            if len(set(there)) != len(there):
                found.append(f"s{n} has something twice")
            if lost := set(self.told[n]) - set(there):
                found.append(f"s{n} lost {sorted(lost)[:5]}")
            if set(there) - set(self.asked[n]) or there != sorted(there, key=_number):
                found.append(f"s{n} has what nobody wrote, or in another order")
        found += map(str, (await self._store.tenant().verify()).problems)
        return found


def _number(value):
    return int(value.partition("-")[2])


async def rounds(pair, count, how, writers=8):
    """`count` failovers under load; what is wrong afterwards, and how long the writers paused."""
    pauses = []
    first, second = pair.primary.url(), pair.standby.url()
    async with Proxy(first) as one, Proxy(second) as two:
        hosts = ",".join(each.url.partition("@")[2].partition("/")[0] for each in (one, two))
        async with open_store(f"postgresql://postgres@{hosts}/postgres") as store:
            crowd = Writers(store, writers)
            await crowd.prepare()
            tasks = [asyncio.ensure_future(crowd.write(n)) for n in range(writers)]
            proxies = {pair.primary.port: one, pair.standby.port: two}
            try:
                for number in range(count):
                    await crowd.more(writers * 5)
                    old = pair.primary
                    await _struck(pair, proxies, how, crowd)
                    await asyncio.to_thread(pair.switch)
                    pauses.append(await crowd.more())
                    proxies[old.port].is_dead = False
                    if old.is_running():
                        await asyncio.to_thread(_gone, old)
                    if number + 1 < count:
                        await asyncio.to_thread(pair.follow)
            finally:
                await crowd.stop()
                await asyncio.gather(*tasks)
            return await crowd.complaints(), pauses


def _gone(cluster):
    cluster.signal(signal.SIGCONT)
    cluster.kill()


async def _struck(pair, proxies, how, crowd):
    """The primary is killed, or cut off, or paused; or it dies while its standby is behind."""
    if how == "cut":
        proxies[pair.primary.port].is_dead = True
    elif how == "paused":
        pair.primary.signal(signal.SIGSTOP)
    else:
        if how == "behind":
            await sql(pair.standby, "ALTER SYSTEM SET primary_conninfo = ''")
            await sql(pair.standby, "SELECT pg_reload_conf()")
            await until(pair.primary, "true", is_there=False)
            await crowd.more()
        await asyncio.to_thread(pair.primary.kill)
