"""Our SQLite store as one more contender of a benchmark of session stores; see bench/peers.py."""

from adapters.base import Adapter

from holdfast import Message, ToolCall
from holdfast.stores import Record, open_store

open_store("sqlite:unused.db")  # opens nothing, and loads what an import of other stores loads

PRELOAD_ENTRIES = 3_000


class Sqlite(Adapter):
    """A session is its id; appends go behind whatever is there."""

    durable = "power"
    level = "sync"

    async def open(self):
        self.store = await open_store(f"sqlite:{self.root / 's.db'}", durability=self.level)
        self.tenant = self.store.tenant()

    async def close(self):
        await self.store.close()

    async def session(self, sid, create=False):
        if create:
            return (await self.tenant.create(Record(key=sid))).id
        return (await self.tenant.load(sid)).id

    def native(self, message):
        content = message["content"]
        if message["role"] == "tool":
            return Message.tool(content, message["tool_call_id"], name=message["name"])
        if message["role"] == "user":
            return Message.user(content)
        calls = [
            ToolCall(id=each["id"], **each["function"]) for each in message.get("tool_calls", ())
        ]
        return Message.assistant(content, calls)

    def text(self, native):
        return native.text

    async def append(self, handle, turn):
        await self.tenant.append(handle, turn)

    async def history(self, sid):
        id = (await self.tenant.load(sid)).id
        return [each.entry for each in await self.tenant.read(id)]

    async def tail(self, sid, n, total):  # noqa: ARG002 - the total is not needed
        id = (await self.tenant.load(sid)).id
        return [each.entry for each in await self.tenant.tail(id, count=n)]

    async def latest(self, n):
        return [each.key for each in (await self.tenant.list(limit=n)).items]

    async def preload(self, sid, turns):
        id = await self.session(sid, create=True)
        entries = [self.native(message) for turn in turns for message in turn]
        for start in range(0, len(entries), PRELOAD_ENTRIES):
            await self.tenant.append(id, entries[start : start + PRELOAD_ENTRIES])


class SqliteFast(Sqlite):
    """At the level that survives the death of the process, and not a power cut."""

    durable = "process"
    level = "fast"
