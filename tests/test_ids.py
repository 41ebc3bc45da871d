"""Ids: UUID version 7 as RFC 9562 has it, strictly increasing whatever the clock does."""

import asyncio
import contextvars
import random
import re
import subprocess
import sys
import textwrap
import threading
import time
import uuid
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import ids
from holdfast.errors import InvalidInput
from holdfast.ids import IdSource, new_id, time_of
from holdfast.messages import Message

CANONICAL = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")

MS = 1_000_000  # a millisecond in ns


def ms_of(id):
    """The first 48 bits, as RFC 9562 section 5.7 lays them out; written without our code."""
    return int(id.replace("-", "")[:12], 16)


def maximum(count):
    return 2**count - 1


class Clock:
    """A clock that shows what it was told to show."""

    def __init__(self, ns=0):
        self.ns = ns

    def __call__(self):
        return self.ns


def test_an_id_is_a_version_7_uuid_in_canonical_text():
    """S0-15, S0-25: version 7, RFC variant, 36 lower-case characters."""
    for _ in range(1000):
        id = new_id()

        parsed = uuid.UUID(id)
        assert type(id) is str
        assert CANONICAL.fullmatch(id)
        assert str(parsed) == id
        assert parsed.version == 7
        assert parsed.variant == uuid.RFC_4122


def test_the_first_48_bits_are_unix_milliseconds():
    """S0-25: the time of RFC 9562 5.7; the example there is 0x017F22E279B0."""
    source = IdSource(clock_ns=Clock(0x017F22E279B0 * MS + 999_999))

    assert source.new().startswith("017f22e2-79b0-7")


def test_an_id_made_now_says_now():
    """S0-25: the system clock is the one that counts, unless another was given."""
    before = time.time_ns() // MS
    id = IdSource().new()
    after = time.time_ns() // MS

    assert before <= ms_of(id) <= after


def test_ids_increase_strictly_inside_one_millisecond():
    """S0-25: more ids than a 12-bit sequence could tell apart, with the clock standing still."""
    source = IdSource(clock_ns=Clock(1_700_000_000_000 * MS))

    made = [source.new() for _ in range(20_000)]

    assert all(a < b for a, b in pairwise(made))
    assert {ms_of(id) for id in made} == {1_700_000_000_000}


CLOCK_STEPS = st.lists(
    st.one_of(
        st.just(0),
        st.integers(-5 * MS, 5 * MS),
        st.integers(-(10**18), 10**18),
        st.integers(-(10**23), 10**23),
    ),
    min_size=1,
    max_size=60,
)


@given(
    start=st.integers(-(10**18), 10**19),
    steps=CLOCK_STEPS,
    per_step=st.integers(1, 4),
    bits=st.sampled_from(["random", "maximum", "zero"]),
    seed=st.integers(0, 2**32),
)
def test_ids_increase_strictly_for_any_clock(start, steps, per_step, bits, seed):
    """S0-25: standing still, going back, jumping, before 1970, beyond 48 bits: always greater."""
    clock = Clock(start)
    randbits = {
        "random": random.Random(seed).getrandbits,
        "maximum": maximum,
        "zero": lambda count: 0,
    }[bits]
    source = IdSource(clock_ns=clock, randbits=randbits)

    made = []
    for step in steps:
        clock.ns += step
        made += [source.new() for _ in range(per_step)]

    assert all(CANONICAL.fullmatch(id) for id in made)
    assert all(a < b for a, b in pairwise(made))


@given(steps=st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=40))
def test_an_id_tells_the_latest_time_that_was_seen(steps):
    """S0-25: when the clock goes back, the last millisecond is used on; else it is the clock's."""
    clock = Clock(1_700_000_000_000 * MS)
    source = IdSource(clock_ns=clock, randbits=random.Random(7).getrandbits)
    latest = 0

    for step in steps:
        clock.ns += step
        latest = max(latest, clock.ns // MS)
        assert ms_of(source.new()) == latest


@pytest.mark.parametrize(
    "randbits",
    [maximum, lambda count: 2**74 - 1, lambda count: 2**74 - 3],
    ids=["all-that-was-asked-for", "the-whole-counter", "nearly-the-whole-counter"],
)
def test_a_counter_that_overflows_still_gives_a_greater_id(randbits):
    """S0-25: randomness that starts at the very top leaves no room in this millisecond."""
    source = IdSource(clock_ns=Clock(1_700_000_000_000 * MS), randbits=randbits)

    made = [source.new() for _ in range(200)]

    assert all(CANONICAL.fullmatch(id) for id in made)
    assert all(a < b for a, b in pairwise(made))
    assert 1_700_000_000_000 <= ms_of(made[0]) <= ms_of(made[-1]) <= 1_700_000_000_200


def test_sixteen_threads_get_distinct_ids_that_increase_in_each():
    """S0-25: one source, no lock of the caller's: unique over all, increasing within each."""
    source = IdSource()
    made = [[] for _ in range(16)]
    start = threading.Barrier(16)

    def work(mine):
        start.wait()
        mine.extend(source.new() for _ in range(2000))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all(len(mine) == 2000 for mine in made)
    assert len({id for mine in made for id in mine}) == 32_000
    for mine in made:
        assert mine == sorted(mine)


def test_an_id_is_greater_than_every_id_that_was_finished_before():
    """S0-25: the order holds between threads too, wherever one waited for the other."""
    source = IdSource(clock_ns=Clock(5 * MS))
    made = []
    for _ in range(50):
        thread = threading.Thread(target=lambda: made.append(source.new()))
        thread.start()
        thread.join()
        made.append(source.new())

    assert made == sorted(set(made))


@given(seed=st.integers(), clock=st.lists(st.integers(0, 10**19), min_size=1, max_size=20))
def test_the_same_seed_and_clock_give_the_same_ids(seed, clock):
    """A run can be repeated exactly."""

    def run():
        hand = Clock()
        source = IdSource(clock_ns=hand, randbits=random.Random(seed).getrandbits)
        made = []
        for hand.ns in clock:
            made.append(source.new())
        return made

    assert run() == run()


def test_another_seed_gives_other_ids():
    """A control of the test above: the ids do depend on the randomness."""
    first, second = (
        IdSource(clock_ns=Clock(MS), randbits=random.Random(seed).getrandbits) for seed in (1, 2)
    )

    assert first.new() != second.new()


def test_two_sources_with_system_randomness_do_not_meet():
    """S0-23: two sessions have different ids, even when their clocks agree."""
    made = [IdSource(clock_ns=Clock(MS)).new() for _ in range(1000)]

    assert len(set(made)) == 1000


def seeded(ns=0, seed=7):
    return IdSource(clock_ns=Clock(ns), randbits=random.Random(seed).getrandbits)


def test_using_a_source_gives_its_ids_and_times_inside_the_block_only():
    """Ids and times come from the source in use; afterwards everything is as before."""
    expected = seeded(5 * MS)
    expected = [expected.new(), expected.new()]

    with ids.using(seeded(5 * MS)) as source:
        inside = [new_id(), new_id()]
        time_inside = ids.now()

    assert isinstance(source, IdSource)
    assert inside == expected
    assert time_inside == datetime(1970, 1, 1, 0, 0, 0, 5000, tzinfo=UTC)
    assert ms_of(new_id()) > 10**12
    assert abs(ids.now() - datetime.now(UTC)) < timedelta(minutes=1)


def test_messages_take_ids_and_times_from_the_source_in_use():
    """A whole run can be repeated exactly, messages included."""
    runs = []
    for _ in range(2):
        with ids.using(seeded(1_700_000_000_000 * MS)):
            runs.append([Message.user("a"), Message.assistant("b")])

    assert runs[0] == runs[1]
    assert runs[0][0].timestamp == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_blocks_nest_and_an_error_ends_them_too():
    """The inner source is gone at the end of the inner block, however that ends."""
    with ids.using(seeded(1 * MS)):
        with ids.using(seeded(2 * MS)):
            assert ms_of(new_id()) == 2
        assert ms_of(new_id()) == 1
        with pytest.raises(KeyError), ids.using(seeded(3 * MS)):
            raise KeyError(new_id())
        assert ms_of(new_id()) == 1
    assert ms_of(new_id()) > 10**12


def test_a_source_in_use_here_is_not_in_use_in_another_thread():
    """`using` holds in this task or thread; a test cannot disturb its neighbours."""
    seen = []
    with ids.using(seeded(3 * MS)):
        thread = threading.Thread(target=lambda: seen.append(new_id()))
        thread.start()
        thread.join()

    assert ms_of(seen[0]) > 10**12
    assert contextvars.Context().run(lambda: ms_of(new_id())) > 10**12


def test_tasks_that_run_together_have_their_own_sources():
    """`using` holds in this task or thread."""

    async def one(ns):
        with ids.using(seeded(ns)):
            await asyncio.sleep(0)
            first = ms_of(new_id())
            await asyncio.sleep(0)
            return {first, ms_of(new_id())}

    async def both():
        return await asyncio.gather(one(4 * MS), one(9 * MS))

    assert asyncio.run(both()) == [{4}, {9}]


@given(ms=st.integers(0, 253_402_300_799_999))
def test_the_time_of_an_id_is_its_millisecond(ms):
    """S0-25: ids carry their time of creation, to the millisecond, up to the year 9999."""
    made = IdSource(clock_ns=Clock(ms * MS + 123)).new()

    told = time_of(made)
    assert told == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    assert told.utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    "id",
    [
        "",
        "cli:direct",
        "not-a-uuid-at-all-but-36-characters-",
        "017f22e2-79b0-4cc3-98c4-dc0c0c07398f",
        "00000000-0000-0000-0000-000000000000",
        "017f22e2-79b0-7zzz-zzzz-zzzzzzzzzzzz",
        "01_f22e2-79b0-7cc3-98c4-dc0c0c07398f",
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398f-",
        None,
        7,
        b"017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
    ],
    ids=[
        "empty",
        "key",
        "letters",
        "version-4",
        "nil",
        "not-hex-behind-the-time",
        "underscore",
        "one-more-dash",
        "none",
        "number",
        "bytes",
    ],
)
def test_an_id_that_is_not_ours_has_no_time(id):
    """What is not a version 7 UUID gets a typed error, not some year."""
    with pytest.raises(InvalidInput):
        time_of(id)


def test_the_time_of_the_last_id_there_can_be_is_an_answer_or_a_typed_error():
    """48 bits of milliseconds reach the year 10889, which datetime cannot say."""
    with pytest.raises(InvalidInput):
        time_of("ffffffff-ffff-7fff-bfff-ffffffffffff")


def test_now_is_aware_and_in_utc():
    """An aware timestamp."""
    told = IdSource(clock_ns=Clock(1_700_000_000_123_456_789)).now()

    assert told == datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=UTC)
    assert told.tzinfo is UTC


FORK = """
    import os, sys, threading
    from holdfast import ids
    from holdfast.ids import IdSource

    still = IdSource(clock_ns=lambda: 1_700_000_000_000_000_000)
    sources = {"still": still.new, "default": ids.new_id}

    def child(name, generations):
        # The inherited newest id, then ids made after the fork, in the child and its child.
        made = [sources[name]() for _ in range(50)]
        if generations:
            made += fork(name, generations - 1)
        return made

    def fork(name, generations):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            with os.fdopen(write, "w") as out:
                out.write(" ".join(child(name, generations)))
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as answer:
            got = answer.read().split()
        os.waitpid(pid, 0)
        return got

    for name, make in sources.items():
        inherited = [make() for _ in range(50)]
        children = [fork(name, 1) for _ in range(6)]
        parent = [make() for _ in range(50)]
        assert [len(got) for got in children] == [100] * 6, "a child died"
        everything = inherited + parent + [id for got in children for id in got]
        assert len(set(everything)) == len(everything), f"{name}: one id was given twice"
        for got in children:
            assert min(got) > max(inherited), f"{name}: a child's id sorts before its past"
            assert got == sorted(got), f"{name}: a child's ids are out of order"
        assert parent == sorted(parent) and parent[0] > inherited[-1]
    print("distinct")
"""

FORK_BUSY = """
    import os, signal, sys, threading
    from holdfast import ids

    sys.setswitchinterval(1e-6)
    stop = threading.Event()

    def work():
        while not stop.is_set():
            ids.new_id()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(40):
        pid = os.fork()
        if pid == 0:
            signal.alarm(5)
            ids.new_id()
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        assert status == 0, f"the child ended with {status}"
    stop.set()
    for thread in threads:
        thread.join()
    print("alive")
"""


def run_alone(script):
    """In a process of its own: this one may have threads, and warns about forking with them."""
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=20, env={"PYTHONPATH": ":".join(sys.path)}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork on Windows")
def test_a_forked_child_gives_other_ids_that_sort_behind_what_it_inherited():
    """S0-25: parent, children and grandchildren share a past and never an id."""
    assert run_alone(FORK) == "distinct"


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork on Windows")
def test_a_child_forked_while_threads_make_ids_can_make_ids():
    """A lock held by another thread at the fork is held for ever in the child, unless renewed."""
    assert run_alone(FORK_BUSY) == "alive"
