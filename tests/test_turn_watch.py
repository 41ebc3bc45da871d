"""A turn that runs in one process, watched in another: its words while they come, then its entries.

Whoever was cut off goes on by the seq of the last entry that it has seen; of the turn that runs it
sees all words again, from the first one, with their numbers.
"""

import asyncio
from itertools import takewhile

import pytest

import holdfast
from holdfast import Message
from holdfast.stores.values import Chunk, Stored
from postgres_server import name_of, server
from processes import Script
from sessions_for_tests import asynchronous, until

KEY = "cli:direct"

# Says what it is told to: each line is a piece, "." ends an answer, "?" calls a tool.
TALKER = """
import asyncio, sys
import holdfast
from holdfast import Message, Tool, ToolCall
from holdfast.providers.base import Provider, Response

class Told(Provider):
    vendor, model, calls = "fake", "told", 0

    async def complete(self, messages, *args, on_chunk, **options):
        words, calls = [], []
        while (piece := (await asyncio.to_thread(sys.stdin.readline)).strip()) != ".":
            if piece == "?":
                self.calls += 1
                calls = [ToolCall(id=f"call-{self.calls}", name="look", arguments="{}")]
                break
            words.append(piece + " ")
            on_chunk(words[-1])
        return Response(message=Message.assistant("".join(words), calls, stop="stop"))

async def main(url):
    tool = Tool("look", "Looks.", {"type": "object"}, lambda: "seen")
    async with holdfast.open(url, model=Told(), tools=[tool]) as sessions:
        session = await sessions.get_or_create("cli:direct")
        for number in range(2):
            await session.send(f"Question {number}?")
            say("answered")

asyncio.run(main(sys.argv[1]))
"""


class Talker(Script):
    start = "def say(word):\n    print(word, flush=True)\n"


@pytest.fixture(params=["sqlite", "postgresql"])
def shared_url(request, tmp_path):
    """A store that another process can open."""
    if request.param == "sqlite":
        yield f"sqlite:{tmp_path}/chats.db"
        return
    name = name_of(tmp_path)
    yield server().database(name)
    server().give_back(name)


class Watcher:
    """What is seen of a session, as it comes."""

    def __init__(self, session, after):
        self.seen = []
        self._watching = session.watch(after)
        self._task = asyncio.create_task(self._watch())

    async def _watch(self):
        async for news in self._watching:
            self.seen.append(news)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._watching.aclose()

    @property
    def entries(self):
        return [each for each in self.seen if isinstance(each, Stored)]

    @property
    def texts(self):
        said = [each.entry for each in self.entries if isinstance(each.entry, Message)]
        return [message.text for message in said]

    def hears(self, *words):
        """Whether the last things that were seen are these words, each of them once."""
        chunks = [*takewhile(is_chunk, reversed(self.seen))][::-1]
        return "".join(each.text for each in chunks).split() == [*words]


def is_chunk(news):
    return isinstance(news, Chunk)


@asynchronous
async def test_who_was_cut_off_goes_on_behind_what_it_has_seen(shared_url):
    async with holdfast.open(shared_url) as sessions:
        session = await sessions.get_or_create(KEY)
        with Talker(TALKER, shared_url) as talker:
            async with Watcher(session, 0) as first:
                for piece in ("one", "two"):
                    talker.tell(piece)
                await until(lambda: first.hears("one", "two"))
                assert not first.entries
                talker.tell("?")
                await until(lambda: "seen" in first.texts)
                talker.tell("three")
                await until(lambda: first.hears("three"))
            last = first.entries[-1].seq
            talker.tell("four")
            async with Watcher(session, last) as again:
                await until(lambda: again.hears("one", "two", "three", "four"))
                assert not again.entries
                talker.tell(".")
                await until(lambda: "three four " in again.texts)
                talker.tell("five")
                await until(lambda: again.hears("five"))
                talker.tell(".")
                await until(lambda: "five " in again.texts)
            talker.ends()

        numbers = [(each.token, each.number) for each in again.seen if is_chunk(each)]
        rows = [*first.entries, *again.entries]
        said = ["Question 0?", "one two ", "seen", "three four ", "Question 1?", "five "]
        assert [*first.texts, *again.texts] == said
        assert numbers == sorted(set(numbers))
        stored = await session._tenant.read(session.id, session.branch)
        kept = {row.seq: row.entry for row in stored if row.seq <= rows[-1].seq}
        assert [row.seq for row in rows] == sorted(kept)
        assert all(row.entry == kept[row.seq] for row in rows)


@asynchronous
async def test_what_a_killed_process_had_said_is_there_and_marked(shared_url):
    """Whoever watches sees the turn end as the next one finds it: words, and a mark."""
    async with holdfast.open(shared_url, model=holdfast.testing.FakeProvider("Hello.")) as sessions:
        session = await sessions.get_or_create(KEY)
        async with Watcher(session, 0) as watcher:
            with Talker(TALKER, shared_url) as talker:
                talker.tell("one")
                await until(lambda: watcher.hears("one"))

            async def is_cut_off():  # a server learns a moment later that nobody is there
                await session.refresh()
                return session.draft.is_cut_off

            await until(is_cut_off)
            assert session.draft.partial == "one "
            await session.send("Are you there?")
            await until(lambda: "Hello." in watcher.texts)

        assert watcher.texts == ["Question 0?", "one ", "Are you there?", "Hello."]
        interrupted = watcher.entries[1].entry
        assert interrupted.stop == "interrupted"
