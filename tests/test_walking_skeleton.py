"""A turn by hand, over nothing but the store: begun, killed in a tool, resumed, reverted, erased.

The loop that does this by itself comes later. Here its steps are written out one by one, to see
that what a store promises is enough to build it on: every step is in the log before the next one
begins, and whoever comes after a crash can tell from the log alone what to do.
"""

import asyncio
import signal
import subprocess
import sys
from datetime import timedelta

import pytest

import holdfast
from holdfast.entries import Call, Mark
from holdfast.errors import Busy, LeaseLost
from holdfast.messages import Message, ToolCall
from holdfast.usage import Usage

LEASE = timedelta(minutes=5)
SECRET = "my account number is 4711-0815"
PAY = ToolCall(id="call_1", name="pay", arguments='{"amount": 12}')

# What the first process does until it is killed, in the middle of running a tool.
FIRST_PROCESS = """
import asyncio, sys, time
from datetime import timedelta
import holdfast
from holdfast.entries import Call, Mark
from holdfast.messages import Message, ToolCall
from holdfast.usage import Usage

async def main(url, said):
    async with holdfast.open_store(url) as store:
        tenant = store.tenant()
        session = await tenant.load("cli:direct")
        lease = await tenant.begin(session.id, "first", timedelta(minutes=5), {"said": said})
        await tenant.journal(lease, "I will ")
        await tenant.journal(lease, "pay that.")
        call = ToolCall(id="call_1", name="pay", arguments='{"amount": 12}')
        reply = Message.assistant("I will pay that.", tool_calls=(call,))
        receipt = Call(model="scripted:one", about=reply.id, usage=Usage(20, 7))
        user = Message.user(said)
        await tenant.append(session.id, [user, reply, receipt], after=0, lease=lease, once="turn-1")
        await tenant.append(session.id, [Mark(what="started", about="call_1")], lease=lease)
        await tenant.journal(lease, "paying")
        print(lease.token, flush=True)
        time.sleep(60)

asyncio.run(main(*sys.argv[1:]))
"""


class Scripted:
    """A provider that says what it was given to say, one answer a call."""

    def __init__(self, *answers):
        self._answers = list(answers)
        self.shown = []

    async def complete(self, messages):
        self.shown.append(messages)
        return self._answers.pop(0)


def kill_in_the_tool(url):
    """Run the first process until its tool has started; return the token of its lease."""
    first = subprocess.Popen(
        [sys.executable, "-c", FIRST_PROCESS, url, SECRET], stdout=subprocess.PIPE, text=True
    )
    token = int(first.stdout.readline())
    first.send_signal(signal.SIGKILL)
    first.communicate()
    return token


async def messages(tenant, session, branch="main"):
    stored = await tenant.read(session.id, branch, kind="message")
    return [each.entry for each in stored]


async def resume(tenant, session, provider):
    """Finish the turn that the log says was cut off. A tool of unknown outcome is not run again."""
    lease = await tenant.begin(session.id, "second", LEASE, {"resumes": True})
    stored = await tenant.read(session.id)
    started = {each.entry.about for each in stored if each.kind == "mark"}
    answered = {result.call_id for each in stored for result in _results(each.entry)}
    assert lease.left.chunks == ("I will ", "pay that.", "paying")
    unknown = [
        Message.tool("The outcome is unknown: we were cut off.", tool_call_id=id, is_error=True)
        for id in started - answered
    ]
    await tenant.append(session.id, [*unknown, Mark(what="interrupted")], lease=lease)
    reply = await provider.complete(await messages(tenant, session))
    receipt = Call(model="scripted:one", about=reply.id, usage=Usage(40, 9))
    head = (await tenant.load(session.key)).branch_named("main").head
    await tenant.append(session.id, [reply, receipt], after=head, lease=lease, finish=True)


def _results(entry):
    return entry.results if isinstance(entry, Message) else ()


def bytes_on_disk(folder):
    """Read by another process: to close a file that SQLite has open here would drop its locks."""
    files = [str(path) for path in folder.rglob("*") if path.is_file()]
    return subprocess.run(["cat", *files], capture_output=True, check=True).stdout


def test_a_turn_survives_everything(tmp_path):
    """The whole life of a conversation, through two processes and three of its branches."""
    asyncio.run(_live(tmp_path, f"sqlite:{tmp_path}/chats.db"))


async def _live(tmp_path, url):
    async with holdfast.open(url) as sessions:
        session = await sessions.get_or_create("cli:direct", agent="helper")
        assert session.count == 0

    token = await asyncio.to_thread(kill_in_the_tool, url)

    async with holdfast.open_store(url) as store:
        tenant = store.tenant()
        record = await tenant.load("cli:direct")

        # Killed: what was finished is there, the draft is too, and nobody holds the lease.
        assert record.draft.input == {"said": SECRET}
        assert not record.draft.is_running
        said = await messages(tenant, record)
        assert [message.text for message in said] == [SECRET, "I will pay that."]
        assert said[1].tool_calls == (PAY,)

        # Resumed, from the log alone; the tool is not run a second time.
        provider = Scripted(Message.assistant("I cannot tell whether I have paid."))
        await resume(tenant, record, provider)
        assert provider.shown[0][-1].is_error
        assert len(await messages(tenant, record)) == 4

        # The first process, had it lived on, could not write any more.
        late = (await tenant.begin(record.id, "third", LEASE, {}))._replace(token=token)
        with pytest.raises(LeaseLost):
            await tenant.append(record.id, [Message.user("I am late")], lease=late)
        with pytest.raises(Busy, match="third"):
            await tenant.begin(record.id, "fourth", LEASE, {})

        # Reverted: another line from before the turn, and nothing of the old one is gone.
        record = await tenant.branch(record.id, "again", parent="main", at=0)
        await tenant.append(record.id, [Message.user("Let us begin anew.")], branch="again")
        assert record.branch == "again"
        assert len(await messages(tenant, record, "main")) == 4
        assert [m.text for m in await messages(tenant, record, "again")] == ["Let us begin anew."]

        # Erased: what was said is in no file, and the chain of what is left still holds.
        assert SECRET.encode() in bytes_on_disk(tmp_path)
        assert await tenant.erase(record.id, [1]) == 1
        await tenant.release(late._replace(token=token + 2), drop=True)
        assert SECRET.encode() not in bytes_on_disk(tmp_path)
        assert (await messages(tenant, record, "main"))[0] is None
        assert (await tenant.verify()).problems == ()

    # And it is all there in the morning.
    async with holdfast.open(url) as sessions:
        session = await sessions.get("cli:direct")
        assert session.branch == "again" and session.count == 1
        await session.append(Message.user("Good morning."), once="morning")
        await session.append(Message.user("Good morning."), once="morning")
        assert [m.text for m in await session.read()] == ["Let us begin anew.", "Good morning."]
