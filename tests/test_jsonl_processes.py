"""Several processes on one folder, and processes that fork, each a small script of its own."""

import asyncio
import os
from datetime import timedelta

import pytest

import processes
from holdfast.messages import Message
from holdfast.stores import Record, open_store

WRITERS, APPENDS = 4, 25
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

START = (
    processes.SAY
    + """
import asyncio, os, sys
from holdfast.messages import Message
from holdfast.stores import Record, open_store
url = sys.argv[1]
"""
)


class Writer(processes.Script):
    start = START


def run(scenario, folder):
    async def main():
        async with open_store(f"jsonl:{folder}", durability="fast") as store:
            return await scenario(store.tenant())

    return asyncio.run(main())


async def texts(tenant, key):
    record = await tenant.load(key)
    rows = await tenant.read(record.id)
    return [row.entry.text for row in rows if isinstance(row.entry, Message)]


def test_several_processes_on_one_session_lose_and_double_nothing(tmp_path):
    """Each sees what the others wrote; a batch stays together, and all agree on the order."""
    run(lambda tenant: tenant.create(Record(key="shared")), tmp_path)
    body = f"""
async def main():
    async with open_store(url, durability="fast") as store:
        tenant = store.tenant()
        record = await tenant.load("shared")
        say("ready")
        sys.stdin.readline()
        for n in range({APPENDS}):
            batch = [Message.user(f"{{sys.argv[2]}}.{{n}}.{{part}}") for part in range(2)]
            await tenant.append(record.id, batch, once=f"{{sys.argv[2]}}.{{n}}")
asyncio.run(main())
"""
    writers = [Writer(body, f"jsonl:{tmp_path}", number) for number in range(WRITERS)]
    for writer in writers:
        assert writer.hears() == "ready"
    for writer in writers:
        writer.tell()
    for writer in writers:
        writer.ends()

    said = run(lambda tenant: texts(tenant, "shared"), tmp_path)

    for number in range(WRITERS):
        mine = [text for text in said if text.startswith(f"{number}.")]
        assert mine == [f"{number}.{n}.{part}" for n in range(APPENDS) for part in range(2)]
    pairs = zip(said[::2], said[1::2], strict=True)
    assert all(one[:-2] == other[:-2] for one, other in pairs)
    assert len(said) == WRITERS * APPENDS * 2


def test_a_lease_of_a_process_that_died_is_free(tmp_path):
    """At once, however long it was taken for."""
    run(lambda tenant: tenant.create(Record(key="shared")), tmp_path)
    body = """
from datetime import timedelta
async def main():
    async with open_store(url) as store:
        record = await store.tenant().load("shared")
        lease = await store.tenant().begin(record.id, "dead", timedelta(hours=9), {"said": "x"})
        await store.tenant().journal(lease, "so far")
        say("taken")
        sys.stdin.readline()
asyncio.run(main())
"""

    async def begin(tenant):
        record = await tenant.load("shared")
        return await tenant.begin(record.id, "next", timedelta(hours=1), {})

    with Writer(body, f"jsonl:{tmp_path}") as writer:
        assert writer.hears() == "taken"

    left = run(begin, tmp_path).left

    assert (left.owner, left.input, left.chunks) == ("dead", {"said": "x"}, ("so far",))


@needs_fork
def test_parent_and_child_go_on_after_a_fork(tmp_path):
    """The child uses the store that it inherited, in a loop of its own."""
    body = """
async def append(store, text):
    record = await store.tenant().load("shared")
    await store.tenant().append(record.id, [Message.user(text)])

async def main():
    store = await open_store(url)
    await store.tenant().create(Record(key="shared"))
    await append(store, "before")
    return store

loop = asyncio.new_event_loop()
store = loop.run_until_complete(main())
child = os.fork()
if child == 0:
    asyncio.run(append(store, "child"))
    os._exit(0)
loop.run_until_complete(append(store, "parent"))
assert os.waitpid(child, 0)[1] == 0
loop.run_until_complete(append(store, "after"))
loop.run_until_complete(store.close())
loop.close()
say("done")
"""
    with Writer(body, f"jsonl:{tmp_path}") as writer:
        assert writer.ends() == ["done"]

    said = run(lambda tenant: texts(tenant, "shared"), tmp_path)

    assert (said[0], said[-1], sorted(said[1:-1])) == ("before", "after", ["child", "parent"])
