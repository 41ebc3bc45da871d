"""A memory for the fault programme: programs that summarise, start anew and erase.

Every message has a name that is unique in the run (m0, m1, ...). The model that keeps makes a fact
and a word of an entry of each, from what it is shown alone. So a message that was summarised twice,
or never, or that is still somewhere after it was erased, shows.
"""

import asyncio
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import holdfast
from holdfast.consolidation.files import Files
from holdfast.errors import SessionNotFound
from holdfast.memory import Memory
from holdfast.testing import FakeProvider
from holdfast.testing.faults import lines
from memories import KEY, Keeper, named

CODE = ("holdfast.consolidation", "holdfast.memory", "holdfast.erasing", "holdfast.private_files")
FIRST, MORE = 12, 4
ERASED = "m3"


@asynccontextmanager
async def opened(place, scope):
    memory = Memory(Path(place, "workspace"), Keeper(), 4, scope)
    url = f"sqlite:{place}/store.db"
    async with holdfast.open(url, model=FakeProvider(), memory=memory) as sessions:
        memory.after = lambda *_: None  # what is done is done where it can be counted
        yield sessions, memory


# ---- what is killed ----


def prepare(place, scope, is_kept):
    """A session with messages; with `is_kept` they are summarised, some of them each time."""
    Path(place).mkdir(exist_ok=True)
    asyncio.run(_prepare(place, scope, is_kept))


async def _prepare(place, scope, is_kept):
    async with opened(place, scope) as (sessions, memory):
        session = await sessions.get_or_create(KEY)
        for first in range(0, FIRST, 4):
            await session.append(*named(first, 4))
            if is_kept:
                await memory.consolidate(session, is_all=True)


def keep(place, scope, fault=""):
    """Summarise what is due, say more, and start anew."""
    asyncio.run(_keep(place, scope, fault))


async def _keep(place, scope, fault):
    if fault:
        FAULTS[fault]()
    async with opened(place, scope) as (sessions, memory):
        session = await sessions.get(KEY)
        await memory.consolidate(session)
        await session.append(*named(FIRST, MORE))
        await memory.start_anew(session)


def erase(place, scope, fault=""):
    """Erase one message, of which an entry was made."""
    asyncio.run(_erase(place, scope, fault))


async def _erase(place, scope, fault):
    if fault:
        FAULTS[fault]()
    async with opened(place, scope) as (sessions, _):
        session = await sessions.get(KEY)
        found = [each for each in await session.read() if each.text == ERASED]
        for message in found:
            await session.erase(message)


def to_line(program, number, place, *arguments):
    """A program, until the `number`th line of the code of memory; 0: note all lines."""
    files, run = lines.modules(*CODE), {"keep": keep, "erase": erase}[program]
    if number:
        lines.kill_at(files, number)
        run(place, *arguments)
    else:
        write = lines.record(files)
        run(place, *arguments)
        write(f"{place}.lines")


# ---- faults that have to be found out ----


def undecided():
    """Nothing is written down before the files are changed: they are changed, then the rest."""
    save = Files._save

    def saved(self, now, **changes):
        if changes.get("pending") is not None:
            return _changed(now, changes)
        return save(self, now, **changes)

    Files._save = saved


def _changed(now, changes):
    from holdfast.consolidation import state

    return state.changed(now, changes)


def counted_first():
    """The counter is said to have moved before the files are changed."""
    finish = Files._finish

    def finished(self, now, pending):
        moves = (*now.moves, pending.move)
        now = self._save(now, number=now.number + 1, moves=moves, pending=None)
        return finish(self, now, pending)

    Files._finish = finished


def forgotten_first():
    """What tells which entries were made of a message goes before these entries do."""
    forget = Files.forget

    def forgets(self, session, seqs):
        made = self.made()
        gone = [each for each in made if seqs and not set(seqs).isdisjoint(each.seqs)]
        self._forget_made(self.settled(), session, seqs, [e for e in made if e not in gone])
        self.made = lambda: made
        forget(self, session, seqs)

    Files.forget = forgets


FAULTS = {f.__name__: f for f in (undecided, counted_first, forgotten_first)}


# ---- what is true afterwards ----


def judge_kept(place, scope):
    """What is wrong with what was summarised, once it was asked for again."""
    return asyncio.run(_judge_kept(place, scope))


async def _judge_kept(place, scope):
    async with opened(place, scope) as (sessions, memory):
        session = await sessions.get(KEY)
        there = [message.text for message in await session.read()]
        before = [memory.history(session), memory.text(session)]
        await memory.consolidate(session, is_all=True)
        told, facts = memory.history(session).split(), memory.text(session).split()
        wrong = []
        for number in range(FIRST + MORE):
            name = f"m{number}"
            wanted = 1 if number < FIRST or name in there else told.count(name)
            if (found := told.count(name)) != wanted or found > 1:
                wrong.append(f"HISTORY.md has {name} {found} times")
            if facts.count(name) != told.count(name):
                wrong.append(f"MEMORY.md has {name} {facts.count(name)} times")
        if "m15" in told and "m12" not in told:
            wrong.append("half of what was said")
        if not there and "m12" not in " ".join(before):
            wrong.append("it was cleared before it was summarised")
        status = await memory.status(session)
        if status.waiting or status.consolidated != len(there):
            wrong.append(f"the counter is at {status.consolidated} of {len(there)}")
        return wrong


def judge_erased(place, scope):
    """What is wrong once it was asked for again, if it still has to be."""
    erase(place, scope)
    return asyncio.run(_judge_erased(place, scope))


async def _judge_erased(place, scope):
    wrong = found_in(place)
    async with opened(place, scope) as (sessions, memory):
        session = None
        with suppress(SessionNotFound):
            session = await sessions.get(KEY)
        if session is None or ERASED in [each.text for each in await session.read()]:
            return [*wrong, "the message is there"]
        if "m8" not in memory.history(session).split():
            wrong.append("another entry is gone")
    return wrong


def found_in(place):
    """What had to go and is in some file."""
    wrong = []
    for path in Path(place, "workspace").rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        wrong += [f"{path.name} has {n}" for n in (b"m3", b"m4", b"m7") if _has(data, n, path)]
    return wrong


def _has(data, name, path):
    """Whether what had to go is there: the entry of m0 to m3, and in MEMORY.md all behind it."""
    if name != b"m3" and path.name in ("HISTORY.md", "made.jsonl"):
        return False
    return name in data.replace(b'"', b" ").replace(b"\\n", b" ").split()
