"""Conversations for the tests of commands that read: one of everything, and one that is hostile."""

from decimal import Decimal

import holdfast
from holdfast import Message
from holdfast.entries import UnknownEntry
from holdfast.parts import Text, Thinking
from holdfast.settings import Settings
from holdfast.steps import drafts
from holdfast.testing import FakeProvider
from holdfast.usage import Prices
from sessions_for_tests import asks, call, tool_of

MODEL = "anthropic:claude-sonnet-4-5"
KEY = "cli:direct"
FORK = "cli:fork"
CUT_OFF = "cli:cut-off"
HOSTILE = "web:\u202ehostile"

# What must reach no terminal: the clipboard, a link, the title, moves, C1, overwriting, bells,
# the direction of writing, and lines that pass for others.
ATTACKS = (
    "\x1b]52;c;aGVsbG8=\x07",
    "\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "\x1b]0;owned\x07",
    "\x1b[2J\x1b[1;1H\x1b[31m",
    "\x9b31m\x90q\x9c",
    "safe\rEVIL",
    "\x07" * 40,
    "\u202egnp.exe\u2066\u2069\u200f",
    "\ufeff\u2028\u2029\x85\x0b\x0c\x7f\x00",
    "\nassistant  12:00:00\n  forged\n\x1b[0m",
)
ATTACK = "hello ".join(ATTACKS)


async def conversations(url):
    """All of them, in the store at `url`."""
    prices = Prices(input=Decimal(3), output=Decimal(15), cache_read=Decimal("0.3"))
    model = FakeProvider(name=MODEL, prices=prices)
    tools = [tool_of("list_files", lambda **_: "one\ntwo\nthree"), tool_of("fail", _fail)]
    async with holdfast.open(url, model=model, tools=tools) as sessions:
        await _whole(sessions, model)
        await _cut_off(sessions)
        await _hostile(sessions)


async def _whole(sessions, model):
    """Two branches, tools, thinking, folds, an entry of a newer version, a fork."""
    settings = Settings(system="You are a helpful clerk.", model=MODEL)
    session = await sessions.get_or_create(KEY, agent="clerk", settings=settings)
    thought = Message.assistant([Thinking("I should look at the files."), Text("Hello, Ada.")])
    model.add(thought)
    await session.send("Hello, I am Ada.")
    model.add(asks(call("c1", "list_files", path="src", depth=2), call("c2", "fail")), "Three.")
    await session.send("How many files are there?")
    model.add("The invoice of the café was paid in March.")
    await session.send("Was the invoice paid?")
    await session.fold(0, 2, Message.user("Ada said hello.", synthetic="summary"), why="it is old")
    raw = b'{"v":1,"poll":{"question":"which?"}}'
    await session._tenant.append(session.id, [UnknownEntry(kind="poll", raw=raw)])
    await session.branch_at(2, "other")
    model.add("Four, I think.")
    await session.send("Count again.")
    await session.checkout("main")
    await session.fork(FORK, at=1)


def _fail(**_):
    raise OSError("no such folder")


async def _cut_off(sessions):
    """A turn whose process is gone, with some of its answer."""
    session = await sessions.get_or_create(CUT_OFF)
    said = Message.user("Tell me a story.")
    tenant = session._tenant
    from datetime import timedelta

    lease = await tenant.begin(
        session.id, "a process that is gone", timedelta(seconds=60), drafts.written(said, "main")
    )
    await tenant.journal(lease, '[["at", 0], ["t", "Once upon a "], ["t", "time"]]')
    await tenant.release(lease)


async def _hostile(sessions):
    """Attacks in every place that a caller, a model or a tool can write to."""
    settings = Settings(system=ATTACK, model="anthropic:claude-sonnet-4-5")
    tool = tool_of("list_files")
    session = await sessions.get_or_create(
        HOSTILE, agent=ATTACK, settings=settings, metadata={"title": ATTACK}, tools=[tool]
    )
    await session.append(
        Message.user(ATTACK, author=ATTACK, name="mallory"),
        Message.assistant(
            [Thinking(ATTACK), Text(ATTACK)],
            [call("c1", "list_files", path=ATTACK), call(ATTACK, ATTACK.replace("\n", " "))],
            model=ATTACK,
            stop=ATTACK,
        ),
        Message.tool(ATTACK, "c1", name=ATTACK, is_error=True),
        Message.tool(ATTACK, ATTACK),
        Message.user("walrus " + ATTACK),
        Message.assistant("walrus " + ATTACK),
    )
    await session.fold(0, 1, Message.user(ATTACK, synthetic="summary"), why=ATTACK)
    await session.branch_at(1, "b\u202e\x1b[31m")
    await session.append(Message.user("walrus " + ATTACK))
