"""Retention: what is old, too many or too large goes; what is used never does."""

from datetime import timedelta

import pytest

import holdfast
from holdfast import Message, ids
from holdfast.errors import InvalidInput
from holdfast.retention import Retention
from sessions_for_tests import asynchronous

DAY = timedelta(days=1)
ALL = [0, 1, 2, 5, 9]


async def fill(sessions, ages, size=10):
    """A session for each age in days, the oldest first."""
    now = ids.now_us()
    for age in sorted(ages, reverse=True):
        then = (now - age * DAY // timedelta(microseconds=1)) * 1_000
        with ids.using(ids.IdSource(clock_ns=lambda: then)):  # noqa: B023 - used at once
            session = await sessions.get_or_create(f"age:{age}")
            await session.append(Message.user("x" * size))


async def keys(sessions):
    return [each.key for each in (await sessions.list()).items]


POLICIES = {
    "age": (Retention(age=3 * DAY), [0, 1, 2]),
    "count": (Retention(count=2), [0, 1]),
    "age, but four stay": (Retention(age=3 * DAY, keep=4), [0, 1, 2, 5]),
    "age and count": (Retention(age=3 * DAY, count=2), [0, 1]),
    "none": (Retention(count=0), []),
    "none, but one stays": (Retention(count=0, keep=1), [0]),
    "size": (Retention(bytes=25_000), [0, 1]),
    "size, but three stay": (Retention(bytes=25_000, keep=3), [0, 1, 2]),
    "age that nobody has": (Retention(age=DAY * 100), ALL),
    "somebody else's": (Retention(count=0, agent="somebody else"), ALL),
}


@pytest.mark.parametrize("name", POLICIES)
def test_what_a_policy_does_not_keep_goes(name, url):
    """A dry run says the same, and deletes nothing."""
    policy, kept = POLICIES[name]

    @asynchronous
    async def scenario():
        async with holdfast.open(url) as sessions:
            await fill(sessions, ALL, size=10_000)

            said = await sessions.retain(policy, dry_run=True)
            assert len(await keys(sessions)) == len(ALL) and said.dry_run
            heard = []
            done = await sessions.retain(policy, on_gone=heard.append)

            assert await keys(sessions) == [f"age:{age}" for age in kept]
            if policy.agent is None:
                assert done.kept == said.kept == len(kept)
            assert [each.key for each in done.gone] == [each.key for each in said.gone]
            assert done.gone == tuple(heard)
            assert all(each.why for each in done.gone)
            assert (await sessions.retain(policy)).gone == ()

    scenario()


@asynchronous
async def test_what_is_used_meanwhile_stays(url, monkeypatch):
    """Written to after it was listed, or in a turn: neither is taken from under anybody."""
    async with holdfast.open(url) as sessions:
        await fill(sessions, [4, 5, 6, 7])
        tenant = sessions._tenant
        written, busy = await tenant.load("age:4"), await tenant.load("age:5")
        with ids.using(ids.IdSource(clock_ns=lambda: 1_700_000_000_000_000_000)):
            await tenant.begin(busy.id, "somebody", timedelta(hours=1), {})
        load = tenant.load

        async def load_late(key, **how):
            record = await load(key, **how)
            if key == written.key:
                await tenant.append(written.id, [Message.user("just now")])
            return record

        monkeypatch.setattr(tenant, "load", load_late)
        done = await sessions.retain(Retention(age=DAY * 3))

        assert sorted(await keys(sessions)) == ["age:4", "age:5"]
        assert sorted(done.spared) == ["age:4", "age:5"]
        assert [each.key for each in done.gone] == ["age:6", "age:7"]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"keep": 3},
        {"age": timedelta(0)},
        {"age": 5},
        {"count": -1},
        {"bytes": 1.5},
        {"count": 1, "keep": -1},
        {"count": 1, "agent": 5},
    ],
    ids=str,
)
def test_a_policy_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(InvalidInput):
        Retention(**wrong)


@asynchronous
async def test_something_that_is_no_policy_is_refused():
    async with holdfast.open("memory:") as sessions:
        with pytest.raises(InvalidInput, match="policy"):
            await sessions.retain({"count": 1})


def test_children_are_part_of_their_session(url):
    """They take no place of a conversation, stay with their parent, and go with it."""

    @asynchronous
    async def scenario():
        async with holdfast.open(url) as sessions:
            for key in ("a", "b", "c"):
                session = await sessions.get_or_create(key)
                await session.append(Message.user("?"))
                scout = await session.child("scout")
                await scout.session.child("scout's own")

            said = await sessions.retain(Retention(count=2))

            assert said.kept == 2 and {gone.key.split(":")[0] for gone in said.gone} == {"a"}
            left = await sessions.list()
            assert len(said.gone) == 3 and len(left.items) == 6

    scenario()


def test_children_that_are_asked_for_are_judged_themselves(url):
    @asynchronous
    async def scenario():
        async with holdfast.open(url) as sessions:
            session = await sessions.get_or_create("a")
            for _ in range(3):
                await session.child("scout")

            said = await sessions.retain(Retention(count=1, agent="scout"))

            assert (said.kept, len(said.gone)) == (1, 2)

    scenario()
