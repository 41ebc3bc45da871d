"""Clients that append to and read sessions at the same time, and note what they do.

The sessions are used in groups of 20, one group after the other, so that a whole read stays short
however long the run is. A fifth of the operations are reads, a fifth compare the head first.
"""

import asyncio
import random
import sqlite3
import threading
import time
from pathlib import Path

from faults.log import url_of
from holdfast.errors import Conflict
from holdfast.messages import Message
from holdfast.stores import open_store
from holdfast.stores.values import Record
from holdfast.testing.journal import Journal

open_store("sqlite:never-opened.db")  # imports all of the store, before any fork
GROUP = 20
OPERATIONS_IN_GROUP = 40


def groups(operations):
    """How many groups of sessions a client of so many operations goes through."""
    return max(1, operations // OPERATIONS_IN_GROUP)


def keys(operations):
    """The sessions that such clients use."""
    return [f"s{number}" for number in range(GROUP * groups(operations))]


def _session(rnd, number, operations):
    group = min(number // OPERATIONS_IN_GROUP, groups(operations) - 1)
    return f"s{group * GROUP + rnd.randrange(GROUP)}"


# ---- through a store ----


async def prepare(store, operations):
    """Make the sessions."""
    for key in keys(operations):
        await store.tenant().create(Record(key=key))


async def client(store, journal_path, name, operations, seed):
    """One client, through its own store or a shared one."""
    rnd, tenant, ids, heads = random.Random(seed), store.tenant(), {}, {}
    with Journal(journal_path, name) as journal:
        for number in range(operations):
            key = _session(rnd, number, operations)
            if key not in ids:
                ids[key] = (await tenant.load(key)).id
            choice = rnd.random()
            if choice < 0.2:
                start = journal.now()
                stored = await tenant.read(ids[key])
                journal.read(key, [each.entry.text for each in stored], start)
                heads[key] = stored[-1].seq if stored else 0
                continue
            value = f"{name}-{number}"
            start = journal.invoked(key, value)
            try:
                after = heads.get(key) if choice < 0.4 else None
                done = await tenant.append(ids[key], [Message.user(value)], after=after)
            except Conflict:
                journal.refused(key, value, start)
            else:
                journal.appended(key, value, start)
                heads[key] = done.last


async def judge(store, journal_path, operations):
    """The reads at the end, when everything else has returned."""
    tenant = store.tenant()
    with Journal(journal_path, "judge") as journal:
        for key in keys(operations):
            start = journal.now()
            stored = await tenant.read((await tenant.load(key)).id)
            journal.read(key, [each.entry.text for each in stored], start)


def store_process(path, folder, name, operations, seed):
    """A client in a process of its own."""

    async def main():
        async with open_store(url_of(path)) as store:
            await client(store, Path(folder, name), name, operations, seed)

    asyncio.run(main())


def store_threads(path, folder, count, operations):
    """Clients in threads, each with a loop and a store of its own; the errors they ended with."""
    errors = []

    def work(number):
        try:
            store_process(path, folder, f"thread{number}", operations, number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


# ---- on plain sqlite3 ----


def raw_prepare(path):
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=WAL").fetchone()
    connection.execute(
        "CREATE TABLE entries(session TEXT, seq INTEGER, value TEXT, PRIMARY KEY(session, seq))"
    )
    connection.close()


def raw_process(path, folder, name, operations, seed, fault):
    """A control. `fault` is "" (BEGIN IMMEDIATE), "deferred", or "no lock"."""
    rnd = random.Random(seed)
    connection = sqlite3.connect(path, isolation_level=None, timeout=30)
    begin = {"": "BEGIN IMMEDIATE", "deferred": "BEGIN DEFERRED"}.get(fault)
    with Journal(Path(folder, name), name) as journal:
        for number in range(operations):
            key = _session(rnd, number, operations)
            if rnd.random() < 0.2:
                start = journal.now()
                journal.read(key, raw_values(connection, key), start)
                continue
            value = f"{name}-{number}"
            start = journal.invoked(key, value)
            if begin:
                connection.execute(begin)
            sql = "SELECT coalesce(max(seq), 0) + 1 FROM entries WHERE session = ?"
            seq = connection.execute(sql, (key,)).fetchone()[0]
            if fault:
                time.sleep(0.001)  # time enough for another to be first
            connection.execute("INSERT OR REPLACE INTO entries VALUES (?, ?, ?)", (key, seq, value))
            if begin:
                connection.execute("COMMIT")
            journal.appended(key, value, start)
    connection.close()


def raw_values(connection, key):
    sql = "SELECT value FROM entries WHERE session = ? ORDER BY seq"
    return [value for (value,) in connection.execute(sql, (key,))]


def raw_judge(path, journal_path, operations):
    connection = sqlite3.connect(path)
    with Journal(journal_path, "judge") as journal:
        for key in keys(operations):
            start = journal.now()
            journal.read(key, raw_values(connection, key), start)
    connection.close()
