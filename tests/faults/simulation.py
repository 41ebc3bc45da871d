"""A world in which everything goes wrong that can, in an order that a seed decides.

Processes are managers on one store in memory, or on one PostgreSQL. They run turns, append beside
them, steer, cancel, revert and fold, on one session, and up to five times in a run something
happens to an operation of the store: it fails, it fails after it was done, it takes longer than a
lease lasts, or its process sleeps for so long, or dies: then nothing more of it reaches the store.
Models fail as well. Time is that of the loop, so leases run out in no time at all; with a server it
is real, but all of it passes quickly.

`python -m faults.simulation SEED`, in the folder of the tests, runs one and tells what happened.
"""

import asyncio
import gc
import json
import random
import sys
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from unittest.mock import patch

from faults import turn_oracle, turns
from holdfast.cancel import CancelToken
from holdfast.entries import Mark
from holdfast.errors import (
    ConnectionFailed,
    HoldfastError,
    InvalidInput,
    Overloaded,
    StoreUnavailable,
)
from holdfast.manager import SessionManager
from holdfast.messages import Message
from holdfast.steps import hold
from holdfast.stores import front, memory, open_store, requests
from holdfast.stores.postgresql import server as pg_server
from holdfast.testing.faults import loops
from holdfast.window.truncate import Truncate

FAULTS_MAX = 5
PROCESSES_MAX = 4
ACTIONS = 3
STALL_S = 45.0  # longer than a lease
LIMIT_S = 50_000.0
SPEED = 50  # at which time passes where there is a server
LEASE = timedelta(seconds=30) / SPEED  # by the server's clock, which does not hurry
OPERATIONS = (
    *(
        "load",
        "read",
        "tail",
        "append",
        "begin",
        "journal",
        "journal_all",
        "renew",
        "release",
        "branch",
    ),
)


class Clock:
    """The clock of leases, and of those who wait for them: the loop's own."""

    def monotonic(self):
        return asyncio.get_running_loop().time()

    def monotonic_ns(self):
        return int(self.monotonic() * 1e9)


class World:
    """One run: what was done, what was promised, what happened."""

    def __init__(self, seed, faults_max=FAULTS_MAX):
        self.rnd = random.Random(seed)
        self.faults = faults_max
        self.names = 0
        self.trace = []
        self.kept = {}
        self.begun = {}
        self.answered = []
        self.effects = []
        self.untyped = []

    def name(self, letter):
        self.names += 1
        return f"{letter}{self.names}"

    def note(self, *what):
        self.trace.append((round(asyncio.get_running_loop().time(), 6), *what))

    def fault(self, *kinds):
        """One of these faults, seldom, and not too often."""
        if self.faults <= 0 or self.rnd.random() > 0.05:
            return None
        self.faults -= 1
        return self.rnd.choice(kinds)

    def is_lucky(self, chance):
        return self.rnd.random() < chance


class Model(turns.Model):
    """Fails now and then, before it says anything or in the middle."""

    def __init__(self, world):
        super().__init__()
        self.world = world

    async def complete(self, messages, *more, **options):
        await asyncio.sleep(self.world.rnd.random())
        fault = self.world.fault("overloaded", "broken")
        if fault == "overloaded":
            raise Overloaded("on purpose", self.name)
        if fault == "broken":
            options["on_chunk"]("half an ")
            raise ConnectionFailed("on purpose", self.name)
        return await super().complete(messages, *more, **options)

    def answer(self, messages):
        """Calls have names of their own each time: asked anew, a model makes new ones."""
        answer = super().answer(messages)
        calls = [self._renamed(call) for call in answer.tool_calls]
        return answer.replace(tool_calls=calls) if calls else answer

    def _renamed(self, call):
        id = self.world.name(f"{call.id}/")
        return call.replace(id=id, arguments=json.dumps({"what": id}))


class Process:
    """A manager, and what it does until it dies."""

    def __init__(self, world, store, number):
        self.world = world
        self.name = f"p{number}"
        self.is_dead = False
        self.asleep_until = 0.0
        self.model = Model(world)
        self.sessions = SessionManager(
            store, model=self.model, tools=self._tools(), owner=self.name
        )
        tenant = self.sessions._workshop.tenant
        for name in OPERATIONS:
            setattr(tenant, name, self._risky(name, getattr(tenant, name)))

    def _tools(self):
        (step,) = turns.tools(self)
        inner = step.run

        async def run(what):
            await asyncio.sleep(self.world.rnd.random() * 2)
            self._check()
            return await inner(what)

        return [step.bind(run)]

    def add(self, what, key):
        """The effect of a tool."""
        self.world.effects.append((what, key))

    def _check(self):
        if self.is_dead:
            raise StoreUnavailable(self.name, "its process is dead")

    async def _awake(self):
        await asyncio.sleep(max(0.0, self.asleep_until - asyncio.get_running_loop().time()))
        self._check()

    def _risky(self, name, operation):
        async def risky(*arguments, **options):
            self._check()
            await asyncio.sleep(self.world.rnd.choice((0, 0, 0.001)))
            await self._awake()
            fault = self.world.fault("before", "after", "stall", "sleep", "crash")
            self.world.note(self.name, name, fault)
            if fault == "crash":
                self.is_dead = True
            elif fault == "stall":
                await asyncio.sleep(STALL_S)
            elif fault == "sleep":
                self.asleep_until = asyncio.get_running_loop().time() + STALL_S
            elif fault == "before":
                raise StoreUnavailable(name, "on purpose")
            await self._awake()
            result = await operation(*arguments, **options)
            if fault == "after":
                raise StoreUnavailable(name, "on purpose, afterwards")
            self._promise(name, arguments, options)
            return result

        return risky

    def _promise(self, name, arguments, options):
        if name == "append" and options.get("once") is None:  # a repeat writes nothing
            entries = [each for each in arguments[1] if hasattr(each, "id")]
            self.world.kept |= {each.id: each for each in entries}
        elif name == "begin":
            message = turns.read_record(arguments[3]["message"].encode())
            self.world.begun[message.id] = message.text

    # What it does

    async def live(self):
        with suppress(HoldfastError):
            self.session = await self.sessions.get_or_create("chat", settings=turns.SETTINGS)
            await asyncio.gather(self._act(), self._act(), self._disturb())

    async def _act(self):
        for _ in range(ACTIONS):
            if not self.is_dead:
                await self._try(self.world.rnd.choice((self._send, self._send, self._resume)))
            await asyncio.sleep(self.world.rnd.random())

    async def _disturb(self):
        acts = (self._append, self._steer, self._cancel, self._revert, self._compact)
        for _ in range(ACTIONS):
            await asyncio.sleep(self.world.rnd.random() * 3)
            if not self.is_dead:
                await self._try(self.world.rnd.choice(acts))

    async def _try(self, action):
        self.world.note(self.name, action.__name__)
        try:
            await action()
        except (HoldfastError, asyncio.CancelledError) as error:
            self.world.note(self.name, action.__name__, type(error).__name__)
        except Exception as error:
            self.world.untyped.append(error)

    async def _send(self):
        name = self.world.name("u")
        said = f"{name} use 2 steps" if self.world.is_lucky(0.6) else name
        once = name if self.world.is_lucky(0.5) else None
        for _ in range(3):
            try:
                return await self._send_once(said, once)
            except HoldfastError:
                if once is None or self.is_dead:
                    raise
        return None

    async def _send_once(self, said, once):
        rnd, token = self.world.rnd, CancelToken()
        how = rnd.choice(("", "", "", "token", "task", "leave"))
        if how == "leave":
            async with self.session.stream(said, once=once) as stream:
                async for _ in stream:
                    if self.world.is_lucky(0.1):
                        break
            return
        task = asyncio.ensure_future(self.session.send(said, once=once, cancel=token))
        loop = asyncio.get_running_loop()
        stop = {"token": token.cancel, "task": task.cancel}.get(how)
        timer = None if stop is None else loop.call_later(rnd.random() * 3, stop)
        try:
            result = await task
        finally:
            if timer is not None:
                timer.cancel()
        if result.outcome == "response" and result.text:
            self.world.answered.append((said, result.message.id))

    async def _resume(self):
        with suppress(InvalidInput):
            await self.session.resume()

    async def _append(self):
        await self.session.append(Message.user(self.world.name("b")))

    async def _steer(self):
        await self.session.steer(self.world.name("s"))

    async def _cancel(self):
        self.session.cancel()

    async def _revert(self):
        count = len(await self.session.turns())
        if count > 1:
            await self.session.revert(count - 1)

    async def _compact(self):
        await self.session.compact(Truncate(keep_turns=1))


# ---- one run ----


async def lived(world, make, url=None):
    """Run the world to its end; what is wrong with what is left."""
    shared = memory.MemoryStore()
    number = 0
    while number < PROCESSES_MAX:
        processes = [make(world, store_of(url, shared), number + at) for at in (1, 2)]
        number += 2
        for each in processes:
            await each.sessions.__aenter__()
        await asyncio.gather(*(each.live() for each in processes))
        await asyncio.gather(*(each.sessions._workshop.close() for each in processes))
        if url is not None:
            await asyncio.gather(*(each.sessions._store.close() for each in processes))
        if not any(each.is_dead for each in processes):
            break
    world.faults = 0
    last = make(world, store_of(url, shared), 0)
    async with asyncio.timeout(LIMIT_S), last.sessions:
        return await judged(world, last)


def store_of(url, shared):
    """The store of a process: everybody's own, if there is a server between them."""
    return shared if url is None else open_store(url)


async def judged(world, last):
    wrong = [f"an error that is none of ours: {each!r}" for each in world.untyped]
    sessions, tenant = last.sessions, last.sessions._workshop.tenant
    session = await sessions.get_or_create("chat", settings=turns.SETTINGS)
    if world.is_lucky(0.5):
        with suppress(InvalidInput):
            await session.resume()
    later = await session.send("after all")
    if later.text != turns.answer_text("after"):
        wrong.append(f"the next turn is answered with {later.text!r}")
    wrong += turn_oracle.request_problems(last.model.asked[-1])
    rows = {each.name: await tenant.read(session.id, each.name) for each in session.branches}
    for branch, found in rows.items():
        is_ended = branch == session.branch
        rules = turn_oracle.broken_rules(found, is_ended=is_ended)
        wrong += [f"on {branch!r}: {each}" for each in (*rules, *turn_oracle.half_answers(found))]
    wrong += [*promised_wrongly(world, rows), *effects_wrongly(world)]
    wrong += [str(problem) for problem in (await tenant.verify()).problems]
    if session.draft is not None:
        wrong.append(f"a draft is left: {session.draft.text!r}")
    return wrong


def promised_wrongly(world, rows):
    there, about, texts = set(), set(), {None}  # who only resumes says nothing
    for found in rows.values():
        there |= {row.entry.id for row in found if hasattr(row.entry, "id")}
        texts |= {each.text for each in turn_oracle.messages_of(found)}
        abandoned = turn_oracle.marks_of(found, "abandoned")
        about |= {mark.about for mark in abandoned}
    for id, entry in world.kept.items():
        if id not in there:
            what = entry.what if isinstance(entry, Mark) else getattr(entry, "text", "")
            yield f"acknowledged and lost: {type(entry).__name__} {what!r}"
    for id, text in world.begun.items():
        if id not in there | about and text not in texts:  # sent again, it may have another id
            yield f"what the user said is lost: {text!r}"
    for said, id in world.answered:
        if id not in there:
            yield f"answered and lost: {said!r}"


def effects_wrongly(world):
    count = Counter(what for what, _ in world.effects)
    for what, times in count.items():
        if times > 1:
            yield f"{what!r} was done {times} times"


def run_on(url, seed, make=Process):
    """One run of a seed on a server, inside `hurry`: what is wrong, and the trace of it."""
    world = World(seed)
    return loops.hurried(lambda: lived(world, make, url), SPEED), world.trace


@contextmanager
def hurry():
    """Let leases be short, and have patience with a server that does not hurry."""
    with (
        patch.object(hold, "LEASE", LEASE),
        patch.object(pg_server, "CONNECT_S", SPEED * pg_server.CONNECT_S),
        patch.object(pg_server, "COMMAND_S", SPEED * pg_server.COMMAND_S),
    ):
        yield


def run(seed, make=Process, faults_max=FAULTS_MAX):
    """One run of a seed: what is wrong, and the trace of what happened."""
    world = World(seed, faults_max)
    clocks = (patch.object(module, "time", Clock()) for module in (front, memory, requests))
    with ExitStack() as patched:
        for clock in clocks:
            patched.enter_context(clock)
        gc.disable()  # what it finds would be closed at a time of its own choice
        try:
            return loops.run(seed, lambda: lived(world, make)), world.trace
        finally:
            gc.enable()


def tell(seed):
    """What happened in the run of a seed, and what is wrong, in lines."""
    wrong, trace = run(seed)
    for at, *what in trace:
        print(f"{at:12.6f}", *what)
    print(*(wrong or ["nothing is wrong"]), sep="\n")


if __name__ == "__main__":
    tell(int(sys.argv[1]))
