"""C4: two hundred conversations at once, over one client and one pool, and none sees another's.

Every message of a session holds its canary. The service, a real server on the loopback interface,
answers with the canary of the last thing that it was shown and counts all others; turns are
cancelled at random, so that connections are left with answers that nobody has read.
"""

import asyncio
import json
import re
from collections import Counter
from contextlib import suppress
from random import Random

import pytest

import holdfast
from bad_inputs import run
from faults import calls
from faults.talk import VENDORS
from faults.tier import pick
from holdfast.cancel import CancelToken
from holdfast.errors import HoldfastError
from holdfast.events import TextDelta
from loopback import KEEP, Loopback, head, whole
from postgres_server import name_of, server

API = "anthropic"
TASKS = pick(40, 200)
MESSAGES = pick(400, 100_000)  # in all, of users and of the model
TURNS_MAX = 10
CANARY = re.compile(r"canary-\d+")
LIMITS = calls.LIMITS._replace(connect=30.0, idle=30.0, total=60.0)


class Echo:
    """Answers with the canary that it was told last, in pieces or whole."""

    def __init__(self, seed=0, is_mixing=False):
        self.random = Random(seed)
        self.foreign = Counter()
        self.last = "canary-0"
        self._is_mixing = is_mixing

    async def answer(self, connection, asked):
        said = json.loads(asked.body)["messages"]
        found = [CANARY.findall(json.dumps(each)) for each in said]
        canary = found[-1][-1]
        self.foreign.update(each for every in found for each in every if each != canary)
        told, self.last = (self.last if self._is_mixing else canary), canary
        steps = [("text", f"{told} "), ("text", f"again {told}")]
        if not json.loads(asked.body).get("stream"):
            await connection.send(whole(VENDORS[API].document(steps)))
            return KEEP
        await connection.send(head(kind="text/event-stream", transfer_encoding="chunked") + b"\r\n")
        for event in VENDORS[API].events(steps):
            await asyncio.sleep(self.random.choice((0, 0, 0.001)))
            data = event.encoded()
            await connection.send(b"%x\r\n%b\r\n" % (len(data), data))
        await connection.send(b"0\r\n\r\n")
        return KEEP


class Talker:
    """One conversation: what it heard that was not its own."""

    def __init__(self, sessions, number, seed):
        self.sessions = sessions
        self.canary = f"canary-{number}"
        self.random = Random(f"{seed} {number}")
        self.foreign = []
        self.stopped = 0

    async def talk(self, turns):
        """In several sessions, so that no prompt grows long; how many messages there are."""
        starts = range(0, turns, TURNS_MAX)
        return sum([await self._talk(at, min(TURNS_MAX, turns - at)) for at in starts])

    async def _talk(self, start, turns):
        session = await self.sessions.get_or_create(f"chat {start} {self.canary}")
        for number in range(turns):
            await self._turn(session, number)
        self.look([each.text or "" for each in await session.read()])
        rows = await self.sessions._workshop.tenant.read(session.id)
        self.look([repr(row.entry) for row in rows])
        return sum(row.kind == "message" for row in rows)

    async def _turn(self, session, number):
        said, token, heard = f"{number}: I am {self.canary}", CancelToken(), []
        how = self.random.choice(("", "", "", "token", "task", "leave"))
        delay_s = self.random.random() / 50
        with suppress(HoldfastError, TimeoutError):
            if how == "leave":
                async with session.stream(said) as events:
                    async for event in events:
                        heard.append(str(event))
                        if self.random.random() < 0.3:
                            self.stopped += 1
                            break
            elif how == "task":
                async with asyncio.timeout(delay_s):
                    heard.append(str(await session.send(said)))
            else:
                if how == "token":
                    asyncio.get_running_loop().call_later(delay_s, token.cancel)
                listen = lambda e: heard.append(e.text) if isinstance(e, TextDelta) else None  # noqa: E731
                result = await session.send(said, cancel=token, on_event=listen)
                self.stopped += result.outcome == "cancelled"
                heard.append(str(result))
        self.look(heard)

    def look(self, texts):
        found = {canary for text in texts for canary in CANARY.findall(text)}
        self.foreign += found - {self.canary}


async def talked(url, echo, *, tasks=TASKS, messages=MESSAGES, key=None):
    """What all of them heard that was another's; how many messages there are; how often stopped."""
    before = asyncio.all_tasks(), calls.open_sockets()
    async with Loopback(echo.answer) as server:
        echo.server = server
        model = calls.ours(API, server.url, timeout=LIMITS)
        async with holdfast.open(url, model=model, durability="fast") as sessions:
            if key is not None:
                mix(sessions, key)
            talkers = [Talker(sessions, number, "seed") for number in range(tasks)]
            turns = messages // tasks // 2 + 1
            counts = await asyncio.gather(*(each.talk(turns) for each in talkers))
        await model.close()
    left = await calls.leaks(*before)
    foreign = Counter(each for talker in talkers for each in talker.foreign) + echo.foreign
    return foreign, sum(counts), sum(each.stopped for each in talkers), left


def mix(sessions, key):
    """Let the manager take the names of sessions for others."""
    get_or_create = sessions.get_or_create
    sessions.get_or_create = lambda name, **options: get_or_create(key(name), **options)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, fast_path):
    if request.param == "sqlite":
        yield f"sqlite:{fast_path / 'store.db'}"
        return
    name = name_of(fast_path)
    yield server().database(name)
    server().give_back(name)


def test_no_conversation_sees_anything_of_another(url):
    """0 of 100,000 messages, in what was heard, stored, and shown to the model."""
    echo = Echo()
    foreign, count, stopped, left = asyncio.run(talked(url, echo))

    assert foreign == {}
    assert left == []
    assert echo.server.connections < len(echo.server.requests) * 0.9  # they are used again
    assert count >= MESSAGES * 0.7
    assert stopped > TASKS / 10


MIXED = {"a character is lost": lambda name: name[:-1], "one for all": lambda _name: "default"}


@pytest.mark.parametrize("key", MIXED.values(), ids=MIXED)
def test_a_manager_that_mixes_sessions_up_is_caught(url, key):
    """Control: names that lose a character, and one session for all."""
    foreign, *_ = run(talked(url, Echo(), tasks=12, messages=48, key=key))

    assert foreign


def test_a_service_that_answers_another_is_caught(url):
    """Control: as a pool does which hands out a connection with an answer still in it."""
    foreign, *_ = run(talked(url, Echo(is_mixing=True), tasks=12, messages=48))

    assert foreign
