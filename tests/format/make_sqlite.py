"""Writes the conversation that the files `sqlite-N.db` in this folder hold.

    python tests/format/make_sqlite.py FORMAT FILE

A file of each format is kept as the version that introduced it wrote it, and every later version
has to open it. This is run once for a new format, with the code of that day; a file that is here is
never made again.
"""

import asyncio
import sys
from datetime import UTC, datetime, timedelta

from holdfast import ids
from holdfast.entries import Call, Fold, Mark, UnknownEntry
from holdfast.messages import Message, ToolCall
from holdfast.settings import Settings
from holdfast.stores import Record, open_store
from holdfast.stores.sqlite import formats, store
from holdfast.usage import Usage

START = datetime(2026, 1, 1, tzinfo=UTC)


async def write(url):
    async with open_store(url) as opened:
        tenant = opened.tenant()
        record = await tenant.create(
            Record(
                key="telegram:1",
                agent="helper",
                settings=Settings(model="anthropic:claude", temperature=0.5),
                metadata={"title": "Parcels", "n": 1},
                tools=({"name": "track"},),
                ttl=timedelta(days=300_000),
            ),
            [Message.user("Where is my parcel? 包裹在哪里"), Message.assistant("I look.")],
        )
        call = ToolCall(id="call_1", name="track", arguments='{"parcel": 7}')
        await tenant.append(
            record.id,
            [
                Message.assistant(tool_calls=(call,), author="helper"),
                Mark(what="started", about="call_1"),
                Message.tool("In Bremen. " * 4000, "call_1"),
                Call(model="anthropic:claude", usage=Usage(10, 5)),
                Fold(first=1, last=2, replacement=Message.system("A parcel is looked for.")),
                UnknownEntry(kind="dream", raw=b'{"v":1,"dream":{"of":"parcels"}}'),
            ],
            after=2,
            once="update-1",
        )
        await tenant.branch(record.id, "again", parent="main", at=2)
        await tenant.append(record.id, [Message.user("Never mind.")], branch="again")
        lease = await tenant.begin(record.id, "worker-1", timedelta(hours=1), {"said": "More?"})
        await tenant.journal(lease, "There ")
        await tenant.journal(lease, "is more.")
        await opened.tenant("other").create(Record(key="telegram:1"), [Message.user("Mine.")])


def main(version, path):
    formats.FORMAT = store.FORMAT = version
    store.INDEX_AFTER_S = 3600  # no index is made
    now = iter(range(10**9))

    def clock():
        return int(START.timestamp()) * 10**9 + next(now) * 10**6

    with ids.using(ids.IdSource(clock_ns=clock)):
        asyncio.run(write(f"sqlite:{path}"))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
