"""Memories for tests: managers that have one, and models that say what to keep."""

import json
import os
import tempfile
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

import holdfast
from holdfast import Message, ToolCall, ids
from holdfast.memory import Memory
from holdfast.testing import FakeProvider

KEY = "cli:direct"
IN_MEMORY = Path("/dev/shm")


@pytest.fixture
def fast_folder():
    """A folder of its own, in memory where the system has such a place."""
    is_there = IN_MEMORY.is_dir() and os.access(IN_MEMORY, os.W_OK)
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if is_there else None) as folder:
        yield Path(folder)


def later(by):
    """The clock, so much later, and standing still."""
    end = (ids.now_us() + by // timedelta(microseconds=1)) * 1_000
    return ids.using(ids.IdSource(clock_ns=lambda: end))


def saves(entry="[2026-02-01 12:00] They met.", memory="- Ada lives in Turin.\n", **more):
    """An answer that calls save_memory, with arguments as a model writes them."""
    return calls_with(json.dumps({"history_entry": entry, "memory_update": memory, **more}))


def calls_with(arguments):
    call = ToolCall(id="c1", name="save_memory", arguments=arguments)
    return Message.assistant(None, [call])


class Keeper(FakeProvider):
    """Keeps what it is told to; without an answer of its own, a fact for each message it reads.

    MEMORY.md then has a line for each message, HISTORY.md an entry with all of them, so what is
    lost or there twice shows. It goes by what it is shown alone.
    """

    def __init__(self, *answers, **options):
        super().__init__(*answers, name="fake:keeper", **options)

    async def complete(self, messages, *more, **options):
        if not self._answers:
            self.add(lambda request: self.answer(request.messages[0].text))
        return await super().complete(messages, *more, **options)

    def answer(self, task):
        _, _, rest = task.partition("## Current Long-term Memory\n")
        memory, _, said = rest.partition("\n\n## Conversation to Process\n")
        names = [line.rpartition(": ")[2] for line in said.splitlines()]
        facts = [] if memory == "(empty)" else memory.splitlines()
        facts += [f"- fact {name}" for name in names]
        return saves(f"[2026-02-01 12:00] {' '.join(names)}", "\n".join(facts) + "\n")


@asynccontextmanager
async def remembering(
    url, folder, *answers, keeper=None, window=10, chat=None, options=None, **more
):
    """A manager with a memory: (sessions, memory, the model that keeps)."""
    keeper = keeper or Keeper(*answers)
    memory = Memory(folder, keeper, window, **(options or {}))
    model = chat or FakeProvider(*["Yes."] * 200)
    async with holdfast.open(url, model=model, memory=memory, **more) as sessions:
        yield sessions, memory, keeper


def named(first, count):
    """So many messages with names that are unique: m0, m1, ..."""
    said = (Message.user, Message.assistant)
    return [said[n % 2](f"m{n}") for n in range(first, first + count)]


def counter(session):
    return session._record.counters.get("last_consolidated", 0)


def entries(memory, session):
    """The entries of HISTORY.md."""
    return [each for each in memory.history(session).split("\n\n") if each]


def facts(memory, session):
    return memory.text(session).splitlines()
