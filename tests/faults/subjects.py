"""The programs under test: what they do through a store, and what they were told is done.

The script of a turn is data, so that the programs on a store of ours and the controls on plain
sqlite3 can play the same one.
"""

import asyncio
import os
import signal
from datetime import timedelta
from pathlib import Path

from faults.controls import endless
from faults.log import Log, text_of, url_of, wal_size
from faults.oracle import sessions_of
from holdfast.entries import Fold, Mark
from holdfast.errors import HoldfastError
from holdfast.messages import Message
from holdfast.stores import open_store
from holdfast.stores.values import Record
from holdfast.testing.faults import lines
from holdfast.testing.faults.disk import file_size_max

for _url in ("sqlite:never-opened.db", "jsonl:never-opened"):
    open_store(_url)  # imports all of the store, before any fork
LEASE = timedelta(seconds=60)


def plain_script(rounds=3, width=4):
    """Sessions, batches, an erase and a delete: what a control can play too."""
    steps = []
    for number in range(rounds):
        key = f"s{number}"
        values = [f"{key}.{at}" for at in range(2 * width)]
        steps += [
            {"do": "create", "session": key},
            {"do": "append", "session": key, "values": values[:width]},
            {"do": "append", "session": key, "values": values[width:]},
            {"do": "erase", "session": key, "values": [values[1]]},
        ]
        if number % 2:
            steps.append({"do": "delete", "session": key})
    return steps


def turn_script(rounds=1):
    """Whole turns: lease, draft, input, partial output, calls with their results, the answer; then
    a fold, a branch, an erase, and sessions that are cleared and deleted."""
    steps = []
    for number in range(rounds):
        key, gone, wiped = f"turn{number}", f"gone{number}", f"wiped{number}"
        v = [f"{key}.{at}" for at in range(12)]
        steps += [
            {"do": "create", "session": key},
            {"do": "begin", "session": key, "input": f"{key} input"},
            {"do": "append", "session": key, "values": v[:1], "lease": True},
            {"do": "journal", "session": key, "chunk": "partial "},
            {"do": "journal", "session": key, "chunk": "output"},
            {"do": "append", "session": key, "values": v[1:5], "lease": True},
            {"do": "update", "session": key, "name": "title", "value": f"turn {number}"},
            {"do": "journal", "session": key, "chunk": ", and more"},
            {
                "do": "append",
                "session": key,
                "values": [v[5], f"mark!{v[6]}"],
                "lease": True,
                "finish": True,
            },
            {"do": "append", "session": key, "values": [f"fold!{v[7]}"]},
            {"do": "branch", "session": key, "name": "side", "parent": "main", "at": v[2]},
            {"do": "append", "session": key, "branch": "side", "values": v[8:10]},
            {"do": "append", "session": key, "values": v[10:12]},
            {"do": "erase", "session": key, "values": [v[1], v[8]]},
            {"do": "create", "session": gone},
            {"do": "append", "session": gone, "values": [f"{gone}.0", f"{gone}.1"]},
            {"do": "delete", "session": gone},
            {"do": "create", "session": wiped},
            {"do": "append", "session": wiped, "values": [f"{wiped}.0", f"{wiped}.1"]},
            {"do": "clear", "session": wiped},
            {"do": "append", "session": wiped, "values": [f"{wiped}.2"]},
        ]
    return steps


def play(path, log_path, steps):
    """Do the steps through the store at `path`, one after the other, and log them."""
    asyncio.run(_play(path, log_path, steps))


def play_for_ever(path, log_path, durability="sync"):
    """Create a session and append to it until the end comes."""
    asyncio.run(_play(path, log_path, endless(), durability=durability))


async def _play(path, log_path, steps, and_die=False, durability="sync"):
    log = Log(log_path)
    try:
        async with open_store(url_of(path), durability=durability) as store:
            player = Player(store.tenant())
            await _do_all(player, steps, log, path)
            if and_die:
                os.kill(os.getpid(), signal.SIGKILL)
    except HoldfastError:
        pass  # it could not be opened or closed; what was acknowledged is in the log


def _folded(value):
    """The value that a fold stands for: the first of its session."""
    return value.removeprefix("fold!").rpartition(".")[0] + ".0"


class Player:
    """Does steps through a tenant of a store, and keeps what later steps need."""

    def __init__(self, tenant):
        self.tenant = tenant
        self.ids = {}
        self.leases = {}
        self.seqs = {}
        self.branches = {}
        self.absent = set()

    def can(self, step):
        """Whether the steps before have left what this one needs."""
        needed = [*step.get("values", [])] if step["do"] == "erase" else []
        needed += [step["at"]] if step["do"] == "branch" else []
        needed += [_folded(value) for value in step.get("values", []) if value[:5] == "fold!"]
        needs_lease = step.get("lease") or step["do"] in ("journal", "release")
        has_lease = step["session"] in self.leases or not needs_lease
        has_branch = step.get("branch", "main") in ("main", *self.branches.get(step["session"], ()))
        has_session = step["session"] not in self.absent
        return has_lease and has_branch and has_session and set(needed) <= self.seqs.keys()

    async def do(self, step):
        return await getattr(self, f"do_{step['do']}")(step, step["session"])

    async def do_look(self, step, key):
        return {"sessions": await sessions_of(self.tenant)}

    async def id(self, key):
        if key not in self.ids:
            self.ids[key] = (await self.tenant.load(key)).id
        return self.ids[key]

    async def do_create(self, step, key):
        self.absent.add(key)
        self.ids[key] = (await self.tenant.create(Record(key=key))).id
        self.absent.remove(key)

    async def do_append(self, step, key):
        values = step["values"]
        done = await self.tenant.append(
            await self.id(key),
            [self._entry(value) for value in values],
            branch=step.get("branch", "main"),
            lease=self.leases[key] if step.get("lease") else None,
            once=values[0],
            finish=step.get("finish", False),
        )
        assert done.last - done.first == len(values) - 1
        self.seqs |= {value: done.first + at for at, value in enumerate(values)}
        if step.get("finish"):
            del self.leases[key]

    def _entry(self, value):
        kind, _, _ = value.rpartition("!")
        if kind == "mark":
            return Mark(what="note", data={"text": text_of(value)})
        if kind == "fold":
            first = self.seqs[_folded(value)]
            return Fold(first=first, last=first, replacement=Message.user(text_of(value)))
        return Message.user(text_of(value))

    async def do_begin(self, step, key):
        draft = {"text": step["input"]}
        self.leases[key] = await self.tenant.begin(await self.id(key), "subject", LEASE, draft)

    async def do_journal(self, step, key):
        await self.tenant.journal(self.leases[key], step["chunk"])

    async def do_release(self, step, key):
        await self.tenant.release(self.leases.pop(key), drop=True)

    async def do_branch(self, step, key):
        await self.tenant.branch(
            await self.id(key),
            step["name"],
            parent=step["parent"],
            at=self.seqs[step["at"]],
            use=False,
        )
        self.branches.setdefault(key, []).append(step["name"])

    async def do_update(self, step, key):
        await self.tenant.update(await self.id(key), {"metadata": {step["name"]: step["value"]}})

    async def do_erase(self, step, key):
        seqs = [self.seqs[value] for value in step["values"]]
        assert await self.tenant.erase(await self.id(key), seqs) == len(seqs)

    async def do_clear(self, step, key):
        await self.tenant.clear(await self.id(key))

    async def do_delete(self, step, key):
        assert await self.tenant.delete(await self.id(key))


def look(path):
    """Open the store, read all of it, and close it."""
    asyncio.run(_look(path))


async def _look(path):
    async with open_store(url_of(path)) as store:
        await sessions_of(store.tenant())


def growing_script(whole):
    """Sessions that only grow, so that the log of the database does too. `whole` is for a store of
    ours; a control knows fewer steps."""
    steps = []
    for number in range(3):
        key = f"g{number}"
        v = [f"{key}.{at}" for at in range(8)]
        steps += [
            {"do": "create", "session": key},
            {"do": "append", "session": key, "values": v[:3]},
            {"do": "append", "session": key, "values": v[3:4]},
        ]
        if whole:
            steps += [
                {"do": "begin", "session": key, "input": f"{key} input"},
                {"do": "append", "session": key, "values": v[4:6], "lease": True},
                {"do": "journal", "session": key, "chunk": f"{key} partial"},
                {"do": "update", "session": key, "name": "title", "value": f"grown {number}"},
                {"do": "branch", "session": key, "name": "side", "parent": "main", "at": v[1]},
                {"do": "append", "session": key, "branch": "side", "values": v[6:7]},
            ]
        steps.append({"do": "append", "session": key, "values": v[7:]})
    return steps


def play_and_die(path, log_path, steps):
    """The same as `play`, and then gone without a word."""
    asyncio.run(_play(path, log_path, steps, and_die=True))


def play_with_short_writes(path, log_path, steps, room):
    """The first half of the steps while no file can grow by more than `room`, then the rest."""
    asyncio.run(_play_with_short_writes(path, Log(log_path), steps, room))


async def _play_with_short_writes(path, log, steps, room):
    half = len(steps) // 2
    async with open_store(url_of(path)) as store:
        player = Player(store.tenant())
        await _do_all(player, steps[:1], log, path)
        with file_size_max(wal_size(path) + room):
            await _do_all(player, steps[1:half], log, path)
        await _do_all(player, steps[half:], log, path)


async def _do_all(player, steps, log, path):
    for step in steps:
        if not player.can(step):
            continue  # a step that it builds on has failed
        log.begins(step)
        try:
            note = await player.do(step)
        except Exception as error:
            log.failed(error, typed=isinstance(error, HoldfastError))
        else:
            log.done(**(note or {"wal": wal_size(path)}))


def play_to_line(path, log_path, steps, number):
    """Play the steps, and die at the `number`th line of the store's code; 0: note all lines."""
    files = lines.modules("holdfast.stores")
    if number:
        lines.kill_at(files, number)
        play(path, log_path, steps)
    else:
        write = lines.record(files)
        play(path, log_path, steps)
        write(f"{log_path}.lines")


def look_for_ever(path):
    """Have the store open, and read all of it again and again."""

    async def main():
        async with open_store(url_of(path)) as store:
            while True:
                await sessions_of_anything(store.tenant())
                await asyncio.sleep(0.002)

    asyncio.run(main())


async def sessions_of_anything(tenant):
    """Read every session, whatever is in it."""
    for summary in (await tenant.list()).items:
        await tenant.read(summary.id)


def open_and_tell(path, said_path):
    """Open the store and use it, and write down whether that went well."""

    async def main():
        async with open_store(url_of(path)) as store:
            await store.tenant().create(Record(key="s"))

    try:
        asyncio.run(main())
        said = "open"
    except HoldfastError as error:
        said = f"{type(error).__name__}: {error}"
    Path(said_path).write_text(said)


def open_only(path):
    """Open the store, and close it."""

    async def main():
        async with open_store(url_of(path)):
            pass

    asyncio.run(main())
