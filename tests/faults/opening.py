"""Processes that wait for the same moment, and then open a store that is not there yet, or get or
create a session of a manager."""

import asyncio
import json
import sqlite3
import time
from pathlib import Path

from faults.log import text_of, url_of
from holdfast.errors import DuplicateSession, SessionNotFound
from holdfast.manager import SessionManager
from holdfast.messages import Message
from holdfast.stores import open_store
from holdfast.stores.values import Record

open_store("sqlite:never-opened.db")  # imports all of the store, before any fork


def store(path, note, start_ns, who):
    """Get or create the session, and append one message."""
    _await(start_ns)
    Path(note).write_text(json.dumps(asyncio.run(_store(path, who))))


async def _store(path, who):
    async with open_store(url_of(path)) as store:
        tenant = store.tenant()
        try:
            record, created = await tenant.create(Record(key="shared")), True
        except DuplicateSession:
            record, created = await tenant.load("shared"), False
        await tenant.append(record.id, [Message.user(text_of(f"w{who}"))])
        return {"id": record.id, "created": created}


def manager(path, note, start_ns, who):
    """Get or create the session through a manager, and append one message."""
    _await(start_ns)
    Path(note).write_text(json.dumps(asyncio.run(_manager(path, who))))


def naive_manager(path, note, start_ns, who):
    """The same with a manager that looks first, and makes the session new if it saw none."""
    _await(start_ns)
    Path(note).write_text(json.dumps(asyncio.run(_manager(path, who, NaiveManager))))


async def _manager(path, who, kind=SessionManager):
    async with kind(open_store(url_of(path)), expire_every=None) as sessions:
        made, create = [], sessions._tenant.create

        async def counted(*record, **how):
            made.append(await create(*record, **how))
            return made[-1]

        sessions._tenant.create = counted
        session = await sessions.get_or_create("shared")
        await session.append(Message.user(text_of(f"w{who}")))
        return {"id": session.id, "created": bool(made)}


class NaiveManager(SessionManager):
    """Control: what one writes first."""

    async def get_or_create(self, key):
        try:
            record = await self._tenant.load(key)
        except SessionNotFound:
            await asyncio.sleep(0.01)  # time enough for another to look as well
            await self.delete(key)
            record = await self._tenant.create(Record(key=key))
        return await self._opened(record)


def raw(path, note, start_ns, who):
    """The same on plain sqlite3: look first, create then."""
    _await(start_ns)
    connection = sqlite3.connect(path, isolation_level=None, timeout=10)
    connection.execute("PRAGMA journal_mode=WAL").fetchone()
    connection.execute("CREATE TABLE IF NOT EXISTS sessions(session TEXT, id INTEGER)")
    row = connection.execute("SELECT id FROM sessions").fetchone()
    created = row is None
    time.sleep(0.005)  # time enough for another to look as well
    if created:
        connection.execute("INSERT INTO sessions VALUES ('shared', ?)", (who,))
    connection.close()
    Path(note).write_text(json.dumps({"id": who, "created": created}))


def _await(start_ns):
    while time.monotonic_ns() < start_ns:
        pass
