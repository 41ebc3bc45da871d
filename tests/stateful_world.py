"""What a state machine of turns moves: a file, sessions, models of four vendors, tools, and kills.

Everything that is said holds a word of its own ("zq17v"), whoever says it: so what was erased can
be looked for, in bytes too. The models and tools do what `plan` says, one answer after the other,
and then say something and end the turn. Whatever runs can be killed at any write: nothing that
comes behind it reaches the store, as when a process ends.
"""

import asyncio
import json
import os
import re
import signal
from contextlib import suppress
from itertools import count

import holdfast
from faults.turn_oracle import request_problems
from faults.turns import Effects
from holdfast import Message, Tool, ToolCall
from holdfast.errors import ConnectionFailed, HoldfastError, Overloaded
from holdfast.messages import Stop
from holdfast.notes import SUMMARY_TASK
from holdfast.parts import Image, Text, Thinking
from holdfast.steps import scribe
from holdfast.steps.cleanup import SENT
from holdfast.testing.fake_provider import FakeProvider, Halt
from holdfast.tools import running

VENDORS = ("anthropic:claude-sonnet-4-5", "openai:gpt-5", "google:gemini-2.5-pro", "fake:model")
SCHEMA = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154"
    "789c6360606060000000050001a5f645400000000049454e44ae426082"
)
WRITES = (
    "append",
    "begin",
    "journal",
    "journal_all",
    "release",
    "branch",
    "update",
    "erase",
    "clear",
    "create",
)
WORD = re.compile("zq[0-9a-u]+v")
_TASK = SUMMARY_TASK.split("{")[0]


class Killed(BaseException):
    """The process has ended here."""


class Words:
    """Words that nothing else holds."""

    def __init__(self, stem=""):
        self._count = count(1)
        self._stem = stem

    def next(self):
        return f"zq{self._stem}{next(self._count)}v"


class Model(FakeProvider):
    """Answers as the world has it; `wrong` is for what any vendor would refuse its requests."""

    def __init__(self, world, name):
        super().__init__(name=name)
        self._world = world

    async def complete(self, messages, system_instruction=None, tools=None, **options):
        self._world.asked += 1
        self._world.wrong += request_problems(messages, system_instruction, tools)
        self.add(self._world.answer)
        return await super().complete(messages, system_instruction, tools, **options)


class World:
    """A store on a file, opened and dropped again and again."""

    def __init__(self, path, stem=""):
        self.path = path
        self.words = Words(stem)
        self.effects = Effects(f"{path}.effects")
        self.plan = []
        self.asked = 0
        self.wrong = []
        self.acknowledged = []  # (session id, branch, entries)
        self.begun = []  # (session id, message)
        self.session = None  # whose turn runs: for what is done beside it
        self._writes_left = None
        self._is_before = False
        self._is_dead = False
        self._kill = self._die

    # Managers

    async def open(self):
        scribe.JOURNAL_S = 0.001  # short answers are written down in pieces too
        models = [Model(self, name) for name in VENDORS]
        self.manager = await holdfast.open(
            f"sqlite:{self.path}", model=models[-1], providers=models[:-1], tools=self.tools()
        )
        self._is_dead = False
        self._writes_left = None
        self.tenant = self.manager._workshop.tenant
        for name in WRITES:
            setattr(self.tenant, name, self._written(name, getattr(self.tenant, name)))

    async def close(self):
        await self.manager.close()

    async def drop(self):
        """As when the process ends: nothing is finished, and the system lets go of its files."""
        self._is_dead = True
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others)
        await self.manager._store.close()

    # Kills

    def kill_at(self, write, *, is_before, kill=None):
        """End at this write, counted from 1: before it, or when it is done."""
        self._writes_left, self._is_before = write, is_before
        self._kill = kill or self._die

    def kill_never(self):
        self._writes_left = None

    def _die(self):
        self._is_dead = True
        raise Killed

    def _written(self, name, write):
        async def written(*args, **options):
            if self._is_dead:
                raise Killed
            is_last = self._writes_left == 1
            if self._writes_left is not None:
                self._writes_left -= 1
            if is_last and self._is_before:
                self._kill()
            done = await write(*args, **options)
            if is_last:
                self._kill()
            self._note(name, args, done)
            return done

        return written

    def _note(self, name, args, done):
        if name == "append":
            kept = [each for each in args[1] if getattr(each, "what", "") != SENT]
            self.acknowledged.append((args[0], done.branch, kept))
        elif name == "begin" and "message" in args[3]:
            self.begun.append((args[0], holdfast.codec.read_record(args[3]["message"].encode())))

    # What models say

    async def answer(self, request):
        """The next message of the model."""
        if request.messages and (request.messages[-1].text or "").startswith(_TASK):
            return "In short: " + " ".join(WORD.findall(request.messages[-1].text))
        kind = self.plan.pop(0) if self.plan else "text"
        return await getattr(self, f"_{kind}")()

    def _words(self, many=3):
        return " ".join(self.words.next() for _ in range(many))

    async def _text(self):
        return self._words()

    async def _thinking(self):
        parts = [Thinking(self._words(), signature="c2lnbmVk"), Text(self._words())]
        return Message.assistant(parts)

    async def _look(self):
        return self._calls("look")

    async def _parallel(self):
        return self._calls("look", "fail", "again", "nothing", text=self._words())

    async def _pay(self):
        return self._calls("pay", "look", text=self._words())

    async def _cut(self):
        return Message.assistant(self._words(), stop=str(Stop.MAX_TOKENS))

    async def _empty(self):
        return Message.assistant(None, stop=str(Stop.STOP))

    async def _overloaded(self):
        return Overloaded("full")

    async def _broken(self):
        return Halt(self._words(), ConnectionFailed("cut"), after=2)

    async def _data(self):
        return json.dumps({"word": self.words.next()})

    async def _endless(self):
        return Halt(self._words(), asyncio.Event(), after=2)

    async def _steered(self):
        await self.session.steer(self.words.next())
        return self._words()

    async def _beside(self):
        await self.session.append(Message.user(self.words.next(), synthetic="note"))
        return self._words()

    async def _left(self):
        await self.session.branch_at(0)
        return self._words()

    def _calls(self, *names, text=None):
        calls = [self._call(name) for name in names]
        return Message.assistant(text, calls)

    def _call(self, name):
        number, at = self.words.next(), self.words.next()
        return ToolCall(id=f"call-{number[1:]}", name=name, arguments=f'{{"at": "{at}"}}')

    # What tools do

    def tools(self):
        parameters = {"type": "object", "properties": {"at": {"type": "string"}}}

        def made(name, run, **options):
            return Tool(name, f"The tool {name}.", parameters, run, **options)

        return [
            made("look", self._do),
            made("pay", self._do, approval=True),
            made("fail", self._fail),
            made("again", self._again, idempotent=True),
        ]

    async def _do(self, at):
        self.effects.add("once", running().key)
        await asyncio.sleep(0)
        return f"seen {self.words.next()} at {at}"

    async def _again(self, at):
        self.effects.add("again", running().key)
        return f"seen again {self.words.next()} at {at}"

    async def _fail(self, at):
        self.effects.add("once", running().key)
        raise RuntimeError(f"out of order at {at}")


def picture(words):
    """Something said with a picture in it."""
    return [Text(words), Image(data=PICTURE, media_type="image/png")]


# In a process of its own


def play_and_die(path, key, stem, plan, write, is_before):
    """A turn on the session, killed at a write."""
    asyncio.run(_play_and_die(path, key, stem, plan, write, is_before))


async def _play_and_die(path, key, stem, plan, write, is_before):
    world = World(path, stem)
    await world.open()
    world.session = await world.manager.get(key)
    world.plan = list(plan)
    world.kill_at(write, is_before=is_before, kill=lambda: os.kill(os.getpid(), signal.SIGKILL))
    with suppress(HoldfastError):
        await world.session.send(world.words.next())
    os.kill(os.getpid(), signal.SIGKILL)
