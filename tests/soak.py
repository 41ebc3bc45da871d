"""S1, the soak: thousands of turns with faults on, and nothing grows.

    scripts/test soak [MINUTES] [--sessions 2000] [--rate 50] [--folder PATH] [--leak 1]

2,000 sessions in a SQLite file, 100 of which are talking, 50 turns a second in all. One in ten
turns goes wrong: the model fails, stops in the middle, calls a tool that fails; the caller cancels,
leaves the stream, or gives up. Beside them messages are appended, sessions opened, searched and
listed. One that has talked for some ten turns is deleted or erased and made anew, and another one
talks in its place: so there is as much as before, and what grows is a leak. Every few seconds the
process is measured.

It begins with 8,000 turns as fast as they go, until caches are full: ours, SQLite's, and the places
that the allocator has made. What is held against the bars is what comes after them:

    RSS           less than 1 MiB more for every 100,000 turns
    objects       allocated blocks of Python, which tell a leak sooner: 50 more for 1,000 turns
    descriptors, tasks, threads
                  no more at the end than in the first of those measurements, but for a few
    append        the 99th percentile within twice that of the first minute
    WAL           never more than 64 MiB

The slope of a short run is not known well: it is printed with its standard error, and a bar is
missed when the slope is above it by more than two of these. The exit status is then 1. With --leak
every result is kept with so many objects, which has to be noticed.
"""

import argparse
import asyncio
import gc
import logging
import math
import os
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import NamedTuple

sys.path.append(str(Path(__file__).parent))

import holdfast
from faults.turns import Model
from holdfast import Message, Tool
from holdfast.errors import HoldfastError, Overloaded, SessionNotFound
from holdfast.events import TextDelta
from holdfast.live import Cache
from holdfast.testing.fake_provider import Halt

MINUTES, SESSIONS, RATE, AT_ONCE = 10.0, 2_000, 50, 16
TALKING, TURNS, WARM = 100, 10, 8_000
CACHE = Cache(sessions=200, bytes=16 * 1024 * 1024)
RSS_MAX, BLOCKS_MAX, WAL_MAX, SLOWER_MAX = 1.0, 50.0, 64 * 1024 * 1024, 2.0
SOME = {"descriptors": 6, "tasks": AT_ONCE, "threads": 4}  # as many as turns may run
MIB = 1024 * 1024
GROUPS = 8  # of measurements
STEP = 1.02  # from one length of time to the next


class Forgetful(Model):
    """A model that keeps nothing of what it was asked, and fails now and then."""

    def __init__(self, random):
        super().__init__(pause_s=0.0005, words=20)
        self._random = random

    def answer(self, messages):
        self.requests.clear()
        self.asked.clear()
        answer = super().answer(messages)
        match self._random.randrange(40):
            case 0:
                return Overloaded("busy")
            case 1 if not answer.calls:
                return Halt(answer, Overloaded("it broke off"), after=3)
        return answer


class Sample(NamedTuple):
    """The process, after so many turns."""

    turns: int
    rss: float
    blocks: int
    descriptors: int
    tasks: int
    threads: int
    wal: int


class Slope(NamedTuple):
    """How much a number grows for each turn, and how well that is known."""

    value: float
    error: float

    def __str__(self):
        return f"{self.value:+.2f} (+-{self.error:.2f})"

    def is_above(self, most):
        return self.value - 2 * self.error > most


def slope_of(pairs):
    """The line through the points that is nearest to them.

    One measurement is much like the one before, so the means of some tell how well it is known.
    """
    if len(pairs) < 3:
        return Slope(0.0, float("inf"))
    size = max(1, len(pairs) // GROUPS)
    groups = [pairs[at : at + size] for at in range(0, len(pairs), size)]
    pairs = [tuple(map(statistics.fmean, zip(*group, strict=True))) for group in groups]
    xs, ys = [x for x, _ in pairs], [y for _, y in pairs]
    found = statistics.linear_regression(xs, ys)
    middle = statistics.fmean(xs)
    rest = sum((y - found.slope * x - found.intercept) ** 2 for x, y in pairs) / (len(pairs) - 2)
    return Slope(found.slope, (rest / sum((x - middle) ** 2 for x in xs)) ** 0.5)


def percentile(times, part=0.99):
    """The time, of which so many were no longer."""
    left = times.total() * part
    for place in sorted(times):
        left -= times[place]
        if left <= 0:
            return STEP**place
    return 0.0


class Soak:
    """One run: what it does, and what it measures."""

    def __init__(self, sessions, folder, options):
        self.sessions = sessions
        self.folder = folder
        self.options = options
        self.random = Random(options.seed)
        self.turns = 0
        self.talking = [self.any_key() for _ in range(min(TALKING, options.sessions))]
        self.outcomes = Counter()
        self.samples = []
        self.appends = Counter(), Counter()  # in the first minute, and after: how often how long
        self.kept = []
        self.start = time.monotonic()

    # What is done

    async def run(self):
        """Turns at their moments, as many at once as there are hands, and measurements."""
        for number in range(self.options.sessions):
            await self.made(f"soak:{number}")
        await asyncio.gather(*(self.warm() for _ in range(AT_ONCE)))
        self.turns, self.appends = 0, (Counter(), Counter())
        self.outcomes.clear()
        self.start = time.monotonic()
        end = self.start + self.options.minutes * 60
        measuring = asyncio.create_task(self.measure())
        await asyncio.gather(*(self.hand(end, number) for number in range(AT_ONCE)))
        measuring.cancel()
        self.samples.append(self.sample())

    async def warm(self):
        while self.turns < self.options.warm:
            await self.turn()

    async def hand(self, end, number):
        pause_s = AT_ONCE / self.options.rate
        moment = self.start + pause_s * number / AT_ONCE
        while time.monotonic() < end or self.turns < self.options.turns:
            await asyncio.sleep(max(0.0, moment - time.monotonic()))
            moment += pause_s
            await self.turn()

    async def turn(self):
        """A turn of a session, and now and then something beside it."""
        place = self.random.randrange(len(self.talking))
        try:
            session = await self.sessions.get_or_create(self.talking[place])
            result = await self.said(session)
            self.outcomes[str(getattr(result, "outcome", "left"))] += 1
            if self.options.leak:
                self.kept.append((result, [object() for _ in range(self.options.leak)]))
            await self.beside(session)
            if self.random.random() < 1 / TURNS:
                await self.anew(place)
        except (HoldfastError, TimeoutError) as error:
            self.outcomes[type(error).__name__] += 1
        self.turns += 1

    def any_key(self):
        return f"soak:{self.random.randrange(self.options.sessions)}"

    async def made(self, key):
        """A session with a few messages in it."""
        session = await self.sessions.get_or_create(key, metadata={"title": "x" * 100})
        if not session.count:
            await session.append(*[Message.user(f"{key} has said {n}") for n in range(4)])

    async def anew(self, place):
        """This one has talked enough: it goes, is made anew, and another one talks."""
        key, self.talking[place] = self.talking[place], self.any_key()
        with suppress(SessionNotFound):
            if self.random.random() < 0.01:
                await self.sessions.erase(key)
            else:
                await self.sessions.delete(key)
        await self.made(key)

    async def said(self, session):
        said = f"u{self.turns} use 1 step" if self.random.random() < 0.3 else f"u{self.turns}"
        match self.random.randrange(40):
            case 0:
                async with asyncio.timeout(self.random.random() / 50):
                    return await session.send(said)
            case 1:
                async with session.stream(said) as events:
                    async for event in events:
                        if isinstance(event, TextDelta):
                            break
                return None
            case 2:
                asyncio.get_running_loop().call_later(self.random.random() / 50, session.cancel)
        return await session.send(said, wait=5)

    async def beside(self, session):
        chance = self.random.random()
        if chance < 0.3:
            start = time.monotonic()
            await session.append(Message.user(f"beside {self.turns}"))
            self.timed(start - self.start, time.monotonic() - start)
        elif chance < 0.32:
            await self.sessions.list(limit=20)
        elif chance < 0.34:
            await self.sessions.search(f"u{self.random.randrange(self.turns + 1)}", limit=5)
        elif chance < 0.35:
            self.sessions.invalidate(session.key)
        elif chance < 0.65:
            await self.made(self.any_key())

    # What is measured

    def timed(self, when, seconds):
        """An append, counted by its length to some percent: to keep each would be a leak."""
        first_s = min(60.0, self.options.minutes * 60 / 3)
        self.appends[when >= first_s][round(math.log(max(seconds, 1e-6), STEP))] += 1

    async def measure(self):
        every_s = max(0.1, min(5.0, self.options.minutes))
        while True:
            await asyncio.sleep(every_s)
            self.samples.append(self.sample())
            if self.options.verbose:
                print(*self.samples[-1], flush=True)

    def sample(self):
        gc.collect()
        wal = Path(f"{self.folder}/soak.db-wal")
        return Sample(
            self.turns,
            _resident_kib() / 1024,
            sys.getallocatedblocks(),
            len(os.listdir("/proc/self/fd")),
            len(asyncio.all_tasks()),
            threading.active_count(),
            wal.stat().st_size if wal.exists() else 0,
        )

    def numbers(self):
        """What came of it, each with its bar: (name, words, whether it was missed)."""
        settled = self.samples
        rss = slope_of([(each.turns / 100_000, each.rss) for each in settled])
        blocks = slope_of([(each.turns / 1_000, each.blocks) for each in settled])
        words = f"{settled[0].rss:.1f} -> {settled[-1].rss:.1f} MiB, {rss} MiB a 100,000 turns"
        yield "RSS", f"{words}, at most {RSS_MAX:g}", rss.is_above(RSS_MAX)
        words = f"{settled[0].blocks:,} -> {settled[-1].blocks:,}, {blocks} a 1,000 turns"
        yield "objects", f"{words}, at most {BLOCKS_MAX:g}", blocks.is_above(BLOCKS_MAX)
        third = max(1, len(settled) // 3)
        for name, more in SOME.items():
            first = max(getattr(each, name) for each in settled[:third])
            last = max(getattr(each, name) for each in settled[-third:])
            yield name, f"{first} -> {last}", last > first + more
        yield self._appends()
        wal = max(each.wal for each in self.samples)
        yield "WAL", f"{wal / MIB:.1f} MiB, at most {WAL_MAX // MIB}", wal > WAL_MAX

    def _appends(self):
        first, rest = map(percentile, self.appends)
        words = f"p99 {first * 1e3:.1f} ms in the first minute, {rest * 1e3:.1f} ms after"
        return "append", f"{words}, at most {SLOWER_MAX:g} times", rest > SLOWER_MAX * first


def _resident_kib():
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def step_of(random):
    """A tool that fails now and then."""

    async def step(**_):
        if random.random() < 0.1:
            raise RuntimeError("this step has failed")
        return "done"

    return Tool("step", "A step.", {"type": "object"}, step)


async def soaked(folder, options):
    """A run, and what was wrong with the store afterwards."""
    random = Random(options.seed)
    url = f"sqlite:{folder}/soak.db"
    async with holdfast.open(
        url, model=Forgetful(random), tools=[step_of(random)], cache=CACHE, expire_every=None
    ) as sessions:
        run = Soak(sessions, folder, options)
        await run.run()
        problems = (await sessions._tenant.verify()).problems
    return run, problems


def report(run, problems):
    """Print the numbers; the names of those that missed their bar."""
    seconds = time.monotonic() - run.start
    print(f"{run.turns:,} turns in {seconds:.0f} s, {run.turns / seconds:.1f} a second")
    print(f"how they ended: {', '.join(f'{n:,} {name}' for name, n in run.outcomes.most_common())}")
    missed = []
    for name, words, is_missed in run.numbers():
        print(f"{name:<12}{words}{'  MISSED' if is_missed else ''}")
        missed += [name] if is_missed else []
    print(f"{'verify':<12}{len(problems)} problems{'  MISSED' if problems else ''}")
    return missed + (["verify"] if problems else [])


def options_of(arguments):
    parser = argparse.ArgumentParser(prog="scripts/test soak", description=__doc__.split("\n")[0])
    parser.add_argument("minutes", nargs="?", type=float, default=MINUTES, help="how long (10)")
    parser.add_argument("--sessions", type=int, default=SESSIONS, help="how many (2,000)")
    parser.add_argument("--rate", type=float, default=RATE, help="turns a second (50)")
    parser.add_argument("--turns", type=int, default=0, help="and at least so many turns")
    parser.add_argument("--warm", type=int, default=WARM, help="turns before that (8,000)")
    parser.add_argument("--seed", type=int, default=1, help="another order of things")
    parser.add_argument("--folder", default=None, help="where the file is made")
    parser.add_argument("--verbose", action="store_true", help="print each measurement")
    parser.add_argument("--leak", type=int, default=0, help="keep results and so many objects")
    return parser.parse_args(arguments)


def main(arguments):
    options = options_of(arguments)
    logging.disable(logging.WARNING)  # faults are on
    with tempfile.TemporaryDirectory(prefix="holdfast-soak-", dir=options.folder) as folder:
        missed = report(*asyncio.run(soaked(folder, options)))
    print(f"missed: {', '.join(missed)}" if missed else "all bars met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
