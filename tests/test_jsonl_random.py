"""Whatever two nanobots, an editor and crashes do to a file in any order, nothing of ours is lost.

A run is a seed. After every step: all that we said is on some branch, `verify` finds nothing but
what was set aside, and nanobot reads from its file exactly the branch in use.
"""

import asyncio
import os
import random

import pytest

from holdfast.entries import Mark
from holdfast.messages import Message
from holdfast.stores import Record, open_store
from nanobot_rules import Nanobot, load

KEY, FILE = "cli:direct", "cli_direct.jsonl"
STEPS = 30
SEEDS = 2_000 if os.environ.get("HOLDFAST_FAULTS") == "full" else 25


class World:
    """A store and two nanobots on one folder: a current one, and one that writes its file over."""

    def __init__(self, folder, seed):
        self.random = random.Random(seed)
        self.folder = folder
        self.file = folder / FILE
        self.nanobots = [Nanobot(folder), Nanobot(folder, is_early=True)]
        self.said = ["begin"]
        self.store = self._new()

    def _new(self):
        return open_store(f"jsonl:{self.folder}", durability="fast")

    async def append(self, number):
        record = await self.store.tenant().load(KEY)
        self.said.append(f"ours {number} é")
        entries = [Message.user(self.said[-1]), Mark(what="noted")]
        await self.store.tenant().append(record.id, entries, branch=record.branch)

    async def update(self, number):
        record = await self.store.tenant().load(KEY)
        await self.store.tenant().update(record.id, {"metadata": {"n": number}})

    async def branch(self, number):
        tenant = self.store.tenant()
        record = await tenant.load(KEY)
        rows = await tenant.read(record.id, record.branch)
        at = self.random.choice(rows).seq if rows else 0
        await tenant.branch(record.id, f"branch {number}", parent=record.branch, at=at)

    async def reopen(self, _):
        await self.store.close()
        self.store = await self._new()

    async def theirs(self, number):
        nanobot = self.random.choice(self.nanobots)
        nanobot.say(KEY, "user", f"theirs {number} ü")
        nanobot.save(KEY)

    async def restart(self, _):
        self.random.choice(self.nanobots).restart()

    async def shut_down(self, _):
        self.random.choice(self.nanobots).save(KEY)

    async def cut(self, _):
        size = self.file.stat().st_size
        os.truncate(self.file, max(0, size - self.random.randrange(1, 60)))

    async def edit(self, _):
        self.file.write_bytes(self.file.read_bytes().replace(b"begin", b"BEGIN"))

    async def check(self):
        tenant = self.store.tenant()
        record = await tenant.load(KEY)
        found = {each.name: await self._texts(record, each.name) for each in record.branches}
        everything = {text.replace("BEGIN", "begin") for texts in found.values() for text in texts}
        assert set(self.said) <= everything
        problems = (await tenant.verify()).problems
        assert [each for each in problems if "the original is" not in each.what] == []
        assert [each["content"] for each in load(self.file)[1]] == found[record.branch]

    async def _texts(self, record, branch):
        rows = await self.store.tenant().read(record.id, branch)
        return [row.entry.text for row in rows if isinstance(row.entry, Message)]


async def play(folder, seed):
    world = World(folder, seed)
    ours, theirs = (world.append, world.update, world.branch, world.reopen), world.theirs
    steps = [world.append, *ours, theirs, theirs, world.restart, world.shut_down]
    await world.store.open()
    await world.store.tenant().create(Record(key=KEY), [Message.user("begin")])
    for number in range(STEPS):
        await world.random.choice([*steps, world.cut, world.edit])(number)
        await world.check()
    await world.store.close()


@pytest.mark.parametrize("part", range(5))
def test_nothing_of_ours_is_lost_whatever_others_do(tmp_path, part):
    """B52: seeds, so that a run that fails can be repeated."""
    for seed in range(part, SEEDS, 5):
        folder = tmp_path / str(seed)
        folder.mkdir()
        try:
            asyncio.run(play(folder, seed))
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
