"""Whole turns for the fault programme: a model, tools with an effect, and programs that use them.

What is said has a name that is unique in the run ("u1"), and everything that follows from it does
too: the calls ("u1/1", ...), the results, the answer. So what is there twice, or in a wrong place,
shows. The model and the tools remember nothing: after a crash they go on from what they are shown.

    "u1 use 3 steps"    three calls of the tool `step` at once, then the answer
    "u1"                the answer
"""

import asyncio
import json
import os
import signal
from contextlib import asynccontextmanager
from pathlib import Path

import holdfast
from faults.log import Log
from holdfast.codec import read_record
from holdfast.entries import Mark
from holdfast.errors import HoldfastError, InvalidInput
from holdfast.messages import Message, Role, ToolCall
from holdfast.settings import Settings
from holdfast.steps import scribe
from holdfast.testing.fake_provider import FakeProvider
from holdfast.testing.faults import damage, lines
from holdfast.tools import Tool, running
from holdfast.window.truncate import Truncate

CODE = (
    *("holdfast.manager", "holdfast.session", "holdfast.turn", "holdfast.conversation"),
    *("holdfast.steps", "holdfast.streams", "holdfast.results", "holdfast.workshop"),
)


# ---- who answers, and what is run ----


class Model(FakeProvider):
    """Answers from what it is shown alone. `asked` is what it was given, as it was given."""

    def __init__(self, pause_s=0.0, words=3, **options):
        super().__init__(pause_s=pause_s, **options)
        self.asked = []
        self._words = words

    async def complete(self, messages, *more, **options):
        self.asked.append(tuple(messages))
        self.add(lambda request: self.answer(request.messages))
        return await super().complete(messages, *more, **options)

    def answer(self, messages):
        return answer_to(messages, self._words)


def answer_to(messages, words=3):
    """The next message of the assistant: calls, until there are results, then an answer."""
    starts = [at for at, each in enumerate(messages) if each.starts_turn and each.text]
    if not starts:
        return Message.assistant("answer to nothing")
    said = messages[starts[-1]].text.split()
    name = said[0]
    results = [each for each in messages[starts[-1] :] if each.role is Role.TOOL]
    if "use" in said and not results:
        count = int(said[said.index("use") + 1])
        tool = said[said.index("use") + 2].removesuffix("s")
        return Message.assistant(f"looking for {name}", tool_calls=calls_of(name, tool, count))
    return Message.assistant(answer_text(name, words))


def calls_of(name, tool, count):
    return [
        ToolCall(id=f"{name}/{at}", name=tool, arguments=json.dumps({"what": f"{name}/{at}"}))
        for at in range(1, count + 1)
    ]


def answer_text(name, words=3):
    """The whole answer, so that half of one is known for what it is."""
    return " ".join([f"answer to {name}:", *(f"{name}.{at}" for at in range(words)), "end"])


def result_text(what):
    return f"did {what}"


class Effects:
    """Something outside that tools change: a file, with a line for each time."""

    def __init__(self, path):
        self.path = Path(path)

    def add(self, what, key):
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(file, json.dumps([what, key]).encode() + b"\n")
        os.close(file)

    def all(self):
        if not self.path.exists():
            return []
        return [tuple(json.loads(line)) for line in self.path.read_text().splitlines()]


def tools(effects, *, idempotent=False, is_async=True, pause_s=0.0, around=None):
    """The tool `step`, which has an effect. `around(where, what)` is called before and after it."""

    def act(what):
        if around is not None:
            around("before the effect", what)
        effects.add(what, running().key)
        if around is not None:
            around("after the effect", what)
        return result_text(what)

    async def act_async(what):
        await asyncio.sleep(pause_s)
        return act(what)

    parameters = {"type": "object", "properties": {"what": {"type": "string"}}}
    run = act_async if is_async else act
    return [Tool("step", "Does it.", parameters, run=run, idempotent=idempotent)]


# ---- what was promised ----


def watch(sessions, log):
    """Note what the store has acknowledged, as facts that hold whatever comes after them."""
    tenant = sessions._workshop.tenant
    append, begin = tenant.append, tenant.begin

    async def appended(id, entries, **options):
        done = await append(id, entries, **options)
        if options.get("once") is not None and done.first <= (options.get("after") or 0):
            return done  # a repeat under its name writes nothing: what the first wrote was noted
        kept = [[type(each).__name__, each.id] for each in entries if hasattr(each, "id")]
        note(log, do="kept", session=id, branch=done.branch, entries=kept)
        return done

    async def begun(id, owner, ttl, draft, **options):
        lease = await begin(id, owner, ttl, draft, **options)
        note(log, do="begun", session=id, message=read_record(draft["message"].encode()).id)
        return lease

    tenant.append, tenant.begin = appended, begun


def note(log, **fact):
    log.begins(fact)
    log.done()


# ---- programs ----


@asynccontextmanager
async def opened(path, model, made, **options):
    async with holdfast.open(f"sqlite:{path}", model=model, tools=made, **options) as sessions:
        yield sessions


SETTINGS = Settings(system="You are of use.")


async def whole_turns(sessions, log, rounds=1):
    """Turns with tools at once and without, folds, `once`, a stream; a session that is deleted."""
    for number in range(1, rounds + 1):
        session = await sessions.get_or_create("chat", settings=SETTINGS)
        for said, once in ((f"u{number}a use 3 steps", None), (f"u{number}b", f"once {number}")):
            result = await session.send(said, once=once)
            note(log, do="answered", session="chat", said=said, text=result.text)
        await session.compact(Truncate(keep_turns=1))
        streamed = f"u{number}c use 2 steps"
        async for _ in session.stream(streamed):
            pass
        note(log, do="answered", session="chat", said=streamed, text=answer_text(f"u{number}c"))
        gone = await sessions.get_or_create(f"gone{number}")
        note(log, do="created", session=f"gone{number}")
        await gone.send("g")
        log.begins({"do": "delete", "session": f"gone{number}"})
        await sessions._workshop.tenant.delete(gone.id)
        log.done()


def arranged(folder, name, *arguments):
    """A fresh copy of the store in `new`, and the arguments of a program that uses it."""
    place = damage.copy(folder / "new", folder / name)
    return [str(place / "store.db"), str(place / "log"), *arguments]


def prepare(path, log_path):
    """A store with the session in it, so that no kill is spent on making one."""
    asyncio.run(_prepare(path, Log(log_path)))


async def _prepare(path, log):
    async with opened(path, Model(), []) as sessions:
        await sessions.get_or_create("chat", settings=SETTINGS)
        note(log, do="created", session="chat")


def play(path, log_path, rounds=1, fault=""):
    """The turns, on the SQLite store at `path`."""
    scribe.JOURNAL_S = 0.001  # short answers are written down in pieces too
    asyncio.run(_play(path, log_path, rounds, fault))


async def _play(path, log_path, rounds, fault):
    log, effects = Log(log_path), Effects(f"{path}.effects")
    async with opened(path, Model(pause_s=0.001), tools(effects)) as sessions:
        if fault:
            FAULTS[fault](sessions)
        watch(sessions, log)
        await whole_turns(sessions, log, rounds)


def play_to_line(path, log_path, number, rounds=1, fault=""):
    """The same, until the `number`th line of the turn's code; 0: note all lines."""
    files = lines.modules(*CODE)
    if number:
        lines.kill_at(files, number)
        play(path, log_path, rounds, fault)
    else:
        write = lines.record(files)
        play(path, log_path, rounds, fault)
        write(f"{log_path}.lines")


# ---- turns with a fault, which have to be found out ----


def late_input(sessions):
    """What the user says is stored with the answer and not before."""
    tenant = sessions._workshop.tenant
    begin = tenant.begin

    async def begun(id, owner, ttl, draft, **options):
        return await begin(id, owner, ttl, {"text": "something"}, **options)

    tenant.begin = begun


def late_results(sessions):
    """An append is acknowledged at once, and written a little later."""
    tenant = sessions._workshop.tenant
    append = tenant.append
    waiting = []

    async def appended(id, entries, **options):
        if waiting:
            await waiting.pop()
        if {each.role for each in said(entries)} != {Role.TOOL}:
            return await append(id, entries, **options)
        done = await append(id, [Mark(what="later")], **options)
        options["after"] = None
        waiting.append(asyncio.ensure_future(_later(append, id, entries, options)))
        return done

    tenant.append = appended


async def _later(append, id, entries, options):
    await asyncio.sleep(0.002)
    return await append(id, entries, **options)


def said(entries):
    return [each for each in entries if isinstance(each, Message)]


FAULTS = {"late input": late_input, "late results": late_results}


# ---- killed around a tool ----


def play_tool(path, log_path, where, what, options):
    """One turn with three tools; killed at a place of the call `what`."""
    asyncio.run(_play_tool(path, log_path, where, what, options))


async def _play_tool(path, log_path, where, what, options):
    log, effects = Log(log_path), Effects(f"{path}.effects")

    def around(place, at):
        if (place, at) == (where, what):
            os.kill(os.getpid(), signal.SIGKILL)

    made = tools(effects, around=around, **options)
    async with opened(path, Model(), made) as sessions:
        watch(sessions, log)
        around_appends(sessions._workshop.tenant, around)
        session = await sessions.get_or_create("chat", settings=SETTINGS)
        try:
            await session.send("u1 use 3 steps")
        except HoldfastError as error:
            note(log, do="failed", session="chat", error=repr(error))


def around_appends(tenant, around):
    """Call `around` before and after each append of a result, with the call it answers."""
    append = tenant.append

    async def appended(id, entries, **options):
        results = [each.tool_call_id for each in said(entries) if each.role is Role.TOOL]
        for call in results:
            around("before the append", call)
        done = await append(id, entries, **options)
        for call in results:
            around("after the append", call)
        return done

    tenant.append = appended


def go_on(path, log_path, how):
    """What comes after a crash: the turn is gone on with, or another begun."""
    asyncio.run(_go_on(path, log_path, how))


async def _go_on(path, log_path, how):
    log, effects = Log(log_path), Effects(f"{path}.effects")
    async with opened(path, Model(), tools(effects)) as sessions:
        watch(sessions, log)
        session = await sessions.get_or_create("chat", settings=SETTINGS)
        note(log, do="created", session="chat")
        try:
            if how == "resume":
                await session.resume()
        except InvalidInput:
            pass  # nothing was cut off
        await session.send(f"v{os.getpid()} use 2 steps")


def play_slow_tools(path, log_path, after_ms):
    """One turn with tools that take their time, killed so much after the first has begun."""
    asyncio.run(_play_slow_tools(path, log_path, after_ms))


async def _play_slow_tools(path, log_path, after_ms):
    log, effects = Log(log_path), Effects(f"{path}.effects")
    loop = asyncio.get_running_loop()

    def around(place, what):
        if (place, what) == ("before the effect", "u1/1"):
            loop.call_later(after_ms / 1000, os.kill, os.getpid(), signal.SIGKILL)

    made = [each.bind(_slowed(each.run)) for each in tools(effects, around=around)]
    async with opened(path, Model(), made) as sessions:
        watch(sessions, log)
        session = await sessions.get_or_create("chat", settings=SETTINGS)
        await session.send("u1 use 8 steps")
        await asyncio.sleep(60)


def _slowed(run):
    async def slow(what):
        await asyncio.sleep(int(what.rpartition("/")[2]) / 300)
        result = await run(what)
        await asyncio.sleep(0.003)
        return result

    return slow
