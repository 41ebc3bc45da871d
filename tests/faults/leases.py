"""Two writers of one session, under a lease; the first will be stopped while it has it."""

import asyncio
import time
from datetime import timedelta

from faults.controls import SCHEMA, connect
from faults.log import Log, text_of, url_of
from holdfast.errors import Busy, DuplicateSession, StoreError
from holdfast.messages import Message
from holdfast.stores import open_store
from holdfast.stores.values import Record

open_store("sqlite:never-opened.db")  # imports all of the store, before any fork
APPENDS_MAX = 2_000
PAUSE_S = 0.002


def hold(path, log_path, session, ttl_ms):
    """Take the lease, and append under it until it is lost."""
    asyncio.run(_write(path, log_path, session, ttl_ms, "a", APPENDS_MAX))


def take(path, log_path, session, ttl_ms):
    """Take the lease when it is free, and append three times."""
    asyncio.run(_write(path, log_path, session, ttl_ms, "b", 3))


async def _write(path, log_path, session, ttl_ms, name, count):
    log, ttl = Log(log_path), timedelta(milliseconds=ttl_ms)
    async with open_store(url_of(path)) as store:
        tenant = store.tenant()
        try:
            await tenant.create(Record(key=session))
        except DuplicateSession:
            pass
        id = (await tenant.load(session)).id
        while True:
            try:
                lease = await tenant.begin(id, name, ttl, {"text": name})
                break
            except Busy:
                await asyncio.sleep(0.01)
        for number in range(count):
            value = f"{name}{number}"
            log.begins({"do": "append", "session": session, "values": [value]})
            try:
                await tenant.append(id, [Message.user(text_of(value))], lease=lease)
            except StoreError as error:
                log.failed(error, typed=True)
                return
            log.done()
            await asyncio.sleep(PAUSE_S)


# ---- on plain sqlite3, without fencing ----


def raw_hold(path, log_path, session, ttl_ms):
    _raw_write(path, log_path, session, ttl_ms, "a", 150)


def raw_take(path, log_path, session, ttl_ms):
    _raw_write(path, log_path, session, ttl_ms, "b", 3)


def _raw_write(path, log_path, session, ttl_ms, name, count):
    log, connection = Log(log_path), connect(path)
    connection.executescript(SCHEMA)
    connection.execute("CREATE TABLE IF NOT EXISTS leases(session PRIMARY KEY, until REAL)")
    connection.execute("INSERT OR IGNORE INTO sessions VALUES (?)", (session,))
    while True:
        now = time.monotonic()
        rows = connection.execute("SELECT until FROM leases WHERE session = ?", (session,))
        if all(until < now for (until,) in rows):
            until = now + ttl_ms / 1000
            connection.execute("INSERT OR REPLACE INTO leases VALUES (?, ?)", (session, until))
            break
        time.sleep(0.01)
    for number in range(count):
        value = f"{name}{number}"
        log.begins({"do": "append", "session": session, "values": [value]})
        connection.execute(
            "INSERT INTO entries SELECT ?, coalesce(max(seq), 0) + 1, ? FROM entries "
            "WHERE session = ?",
            (session, text_of(value), session),
        )
        log.done()
        time.sleep(PAUSE_S)
    log.begins({"do": "append", "session": session, "values": ["the end"]})
    log.failed(RuntimeError("no more to write"), typed=True)
