"""F10: the clock goes back three days, ahead ten years, jumps at each look, stands still.

Order, conflicts and leases do not depend on it.
"""

import asyncio
import itertools
import random
import sqlite3
from datetime import UTC, datetime, timedelta

import pytest

from faults import oracle, subjects
from holdfast import ids
from holdfast.errors import Busy
from holdfast.messages import Message
from holdfast.stores import open_store
from holdfast.stores.values import Record

DAY = 86_400 * 10**9
NOW = 1_800_000_000 * 10**9


def steady():
    return itertools.count(NOW, 10**6)


def back_three_days():
    return itertools.chain(itertools.islice(steady(), 20), itertools.count(NOW - 3 * DAY, 10**6))


def ahead_ten_years():
    return itertools.chain(itertools.islice(steady(), 20), itertools.count(NOW + 3650 * DAY, 10**6))


def jumping():
    rnd = random.Random(10)
    return (NOW + rnd.randrange(-30 * DAY, 30 * DAY) for _ in itertools.count())


def standing_still():
    return itertools.repeat(NOW)


def backwards():
    return itertools.count(NOW, -(10**9))


CLOCKS = [back_three_days, ahead_ten_years, jumping, standing_still, backwards]


def using(clock):
    """Ids and times from this clock, and the same randomness each time."""
    ticks = iter(clock())
    source = ids.IdSource(clock_ns=lambda: next(ticks), randbits=random.Random(1).getrandbits)
    return ids.using(source)


async def played(path, clock):
    """A script with `after` given each time, by this clock: what is there, and how it was told."""
    with using(clock):
        async with open_store(f"sqlite:{path}") as store:
            tenant = store.tenant()
            player = subjects.Player(tenant)
            for step in subjects.turn_script(2):
                await player.do(step)
            record = await tenant.create(Record(key="compared"))
            head = 0
            for number in range(20):
                message = Message.user(f"compared {number}")
                done = await tenant.append(record.id, [message], after=head)
                head = done.last
            found = await tenant.read(record.id)
            sessions = await oracle.sessions_of_keys(tenant, ["turn0", "turn1", "wiped0"])
            problems = (await tenant.verify()).problems
    return sessions, [each.entry.text for each in found], problems


@pytest.mark.parametrize("clock", CLOCKS, ids=lambda clock: clock.__name__)
def test_the_order_does_not_depend_on_the_clock(fast_path, clock):
    """The same as with a steady clock: 0 conflicts, the same order, nothing to verify."""
    wanted = asyncio.run(played(fast_path / "steady.db", steady))

    found = asyncio.run(played(fast_path / "store.db", clock))

    assert found == wanted
    assert found[1] == [f"compared {number}" for number in range(20)]


@pytest.mark.parametrize("days", [-3, 3650])
def test_a_lease_does_not_end_when_the_clock_jumps(fast_path, days):
    """Somebody else is told Busy, whatever the time of day."""

    async def main():
        async with open_store(f"sqlite:{fast_path / 'store.db'}") as store:
            tenant = store.tenant()
            with using(steady):
                record = await tenant.create(Record(key="s"))
                lease = await tenant.begin(record.id, "a", timedelta(seconds=60), {"text": "x"})
            with using(lambda: itertools.count(NOW + days * DAY, 10**6)):
                with pytest.raises(Busy):
                    await tenant.begin(record.id, "b", timedelta(seconds=60), {"text": "y"})
                await tenant.append(record.id, [Message.user("z")], lease=lease, finish=True)

    asyncio.run(main())


def test_nothing_is_deleted_by_a_clock_that_looks_wrong(fast_path):
    """Ten years ahead, every session would have expired: told, and nothing done."""

    async def main():
        now = datetime.now(UTC)
        async with open_store(f"sqlite:{fast_path / 'store.db'}") as store:
            tenant = store.tenant()
            await tenant.create(Record(key="s", ttl=timedelta(days=1)))
            assert (await tenant.expire(now)).stopped == ""
            for jump in (timedelta(days=3650), timedelta(days=-3)):
                expired = await tenant.expire(now + jump)
                assert expired[:2] == (0, 0)
                assert expired.stopped
                now += jump
            return {each.key for each in (await tenant.list()).items}

    assert asyncio.run(main()) == {"s"}


def test_order_by_time_is_caught(fast_path):
    """Control: a table that sorts by its time stamps has another order when the clock goes back."""

    def stored(clock):
        ticks = iter(clock())
        connection = sqlite3.connect(":memory:")
        connection.execute("CREATE TABLE entries(time INTEGER, text TEXT)")
        rows = [(next(ticks), number) for number in range(30)]
        connection.executemany("INSERT INTO entries VALUES (?, ?)", rows)
        found = [n for (n,) in connection.execute("SELECT text FROM entries ORDER BY time")]
        connection.close()
        return found

    assert stored(back_three_days) != stored(steady)
