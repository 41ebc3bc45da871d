"""F10 for the manager: what sessions say does not depend on the clock, nor does who has them.

Turns with tools, appends under a name, branches, forks and children are done by a clock that goes
back three days, ahead ten years, jumps at each look, stands still. Everything is in the order in
which it was done, nobody hears of a conflict, and one key is one object.
"""

import asyncio

import pytest

import holdfast
from bad_inputs import run
from faults.test_f10_clock import CLOCKS, DAY, NOW, back_three_days, standing_still, steady, using
from faults.turns import Model
from holdfast import ids, tool
from holdfast.errors import SessionNotFound
from holdfast.messages import Message
from holdfast.retention import Retention
from postgres_server import name_of, server


@pytest.fixture(params=["memory", "jsonl", "sqlite", "postgresql"])
def places(request, fast_path):
    """Two stores, empty."""
    kind = request.param
    if kind != "postgresql":
        suffix = {"memory": "memory:", "jsonl": "jsonl:{}/{}", "sqlite": "sqlite:{}/{}.db"}[kind]
        yield [suffix.format(fast_path, name) for name in ("steady", "other")]
        return
    names = [name_of(fast_path / name) for name in ("steady", "other")]
    yield [server().database(name) for name in names]
    for name in names:
        server().give_back(name)


@tool(name="step")
def step(what: str) -> str:
    """A step."""
    return f"did {what}"


async def played(url, clock, keep=tuple):
    """What is said in which session, and which sessions are one; `keep` is how it is read."""
    with using(clock):
        async with holdfast.open(url, model=Model(), tools=[step], expire_every=None) as sessions:
            await asyncio.gather(*(talk(sessions, key) for key in ("a", "b")))
            return {
                name_of_session(each.key): await told(sessions, each, keep)
                for each in (await sessions.list()).items
            }


def name_of_session(key):
    """The key, without the time in that of a child."""
    parent, colon, _ = key.partition(":child:")
    return f"{parent}{colon}"


async def talk(sessions, key):
    session = await sessions.get_or_create(key)
    for number in range(2):
        result = await session.send(f"{key}{number} use 2 steps", once=f"once {number}")
        again = await session.send(f"{key}{number} use 2 steps", once=f"once {number}")
        assert str(result) == str(again) and result.outcome == "response"
        await session.append(Message.user(f"beside {number}"))
        sessions.invalidate(key)
        assert await sessions.get_or_create(key) is session
    await session.revert(1)
    await session.send(f"{key}4")
    await session.fork(f"fork of {key}")
    child = await session.child("scout", inherit=2)
    await child.session.append(Message.user(f"in a child of {key}"))
    await child.merge(whole=True)


async def told(sessions, summary, keep):
    session = await sessions.get(summary.key, load="all")
    assert (await sessions._tenant.verify(session.id)).problems == ()
    messages = keep(session.messages)
    shown = keep(session.window().messages)
    return (
        [(str(each.role), each.text, len(each.results)) for each in messages],
        [(str(each.role), each.text) for each in shown],
        [each.name for each in session.branches],
        len(await session.turns()),
    )


@pytest.mark.parametrize("clock", CLOCKS, ids=lambda clock: clock.__name__)
def test_what_was_said_does_not_depend_on_the_clock(places, clock):
    """The same as with a steady clock: 0 conflicts, the same order, nothing to verify."""
    wanted = run(played(places[0], steady))

    assert run(played(places[1], clock)) == wanted
    assert len(wanted["a"][0]) > 4 and len(wanted) == 6


def by_time(messages):
    return sorted(messages, key=lambda message: message.timestamp)


@pytest.mark.parametrize("clock", [back_three_days], ids=lambda clock: clock.__name__)
def test_reading_by_time_is_caught(places, clock):
    """Control: a manager that goes by time stamps has another order when the clock goes back."""
    wanted = run(played(places[0], steady, by_time))

    assert run(played(places[1], clock, by_time)) != wanted


@pytest.mark.parametrize("days", [-3, 3650])
def test_a_session_without_an_end_is_there_whatever_the_clock_says(places, days):
    """No wrong clock lets it expire, from the cache or from the store, and it is made once."""

    async def main():
        async with holdfast.open(places[0], expire_every=None) as sessions:
            with using(steady):
                session = await sessions.get_or_create("a")
            moved = ids.IdSource(clock_ns=lambda: NOW + days * DAY)
            with ids.using(moved):
                assert await sessions.get_or_create("a") is session
                sessions.invalidate("a")
                assert await sessions.get_or_create("a") is session
                assert (await sessions.expire())[:2] == (0, 0)
                assert (await sessions.get_or_create("a")).id == session.id

    run(main())


def test_what_is_used_is_not_tidied_away_while_the_clock_stands_still(places):
    """Retention goes by what is written, not by when: what it has looked at has moved on."""

    async def main():
        async with holdfast.open(places[0], expire_every=None) as sessions:
            with using(standing_still):
                session = await sessions.get_or_create("a")
                await session.append(Message.user("first"))
                load = sessions._tenant.load

                async def load_late(key, **how):
                    record = await load(key, **how)
                    await sessions._tenant.append(session.id, [Message.user("just now")])
                    return record

                sessions._tenant.load = load_late
                done = await sessions.retain(Retention(count=0))
                sessions._tenant.load = load
                assert done.spared == ("a",) and done.gone == ()
                await session.refresh()
                assert session.count == 2
                with pytest.raises(SessionNotFound):
                    await sessions.get("b")

    run(main())
