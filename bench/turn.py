"""What does a turn cost beyond the store's own commits?

    python bench/turn.py [--check] [--quick] [--only NAME] [--folder PATH]

A model that answers at once; a real SQLite file at level "sync" on a real disk. The raw side
(bench/turn_raw.py) makes the same two commits with the same entries and nothing around them; the
two take turns. A session with 100,000 messages is folded so that its window is that of the small
one. Streams: 1,000 sessions in one process, each told five pieces a second, read by `async for`;
how late they come is compared with the same pieces read where they are made. What a piece costs in
CPU, kept in the journal and told as an event, is taken beyond what the model spends on making it;
and, where they come so slowly that hardly two are written together, beyond the same without a
journal.
About five minutes.

NAME is one of: turn, length, delta, stream, memory.

With --check the exit status is 1 when a bar is missed.
"""

import argparse
import asyncio
import gc
import statistics
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import turn_raw as raw
from stores import machine, real_disk
from turn_provider import REPLY, Instant, Paced, Torrent
from window_table import Bars

import holdfast
from holdfast.entries import Call, Fold
from holdfast.events import TextDelta
from holdfast.manager import SessionManager
from holdfast.messages import Message
from holdfast.session import Session
from holdfast.steps import drafts
from holdfast.steps.orders import Redact

NAMES = ("turn", "length", "delta", "stream", "memory")
SAID = "A question of some three hundred characters, as people ask them in a chat. " * 4
DELTAS = 20_000
SESSIONS = 1_000
RATE = 5.0  # pieces a second, of each session
LATE_MS_MAX = 20.0
STORED = 100
PAGE = 5_000


async def turn(bars: Bars, folder: Path, rounds: int) -> None:
    """A whole durable turn against its two commits."""
    print(f"\none turn after another, {rounds} rounds of 20, median of rounds (us)")
    async with holdfast.open(f"sqlite:{folder}/turn.db", model=Instant()) as sessions:
        ours = await sessions.get_or_create("ours")
        await filled(ours, STORED)
        bare = await bare_commits(sessions, ours)
        found = await taking_turns({"ours": ours.send, "raw": bare.turn}, rounds)
    print(f"  ours {found['ours']:.0f}, the two commits alone {found['raw']:.0f}")
    bars.most("a whole turn / its commits", found["ours"] / found["raw"], 2.5)


async def length(bars: Bars, folder: Path, rounds: int, long: int) -> None:
    """The same with a long log behind the window."""
    print(f"\na turn with {STORED} and with {long:,} messages stored (us)")
    async with holdfast.open(f"sqlite:{folder}/length.db", model=Instant()) as sessions:
        short = await sessions.get_or_create("short")
        await filled(short, STORED)
        old = await sessions.get_or_create("long")
        await filled(old, long)
        await hide_all_but(old, STORED)
    async with holdfast.open(f"sqlite:{folder}/length.db", model=Instant()) as sessions:
        start = time.perf_counter()
        old = await sessions.get("long")
        opened = (time.perf_counter() - start) * 1e3
        short = await sessions.get("short")
        found = await taking_turns({"short": short.send, "long": old.send}, rounds)
        loaded = len(old.messages)
    print(f"  {found['short']:.0f} and {found['long']:.0f}; opening the long one took {opened:.1f}")
    print(f"  ms and loaded {loaded} messages (the turns of this run included)")
    bars.most(f"cost at {long:,} stored / at {STORED}", found["long"] / found["short"], 1.1)


async def delta(bars: Bars, folder: Path, rounds: int) -> None:
    """What one piece of a streamed answer costs: journaled, told to an observer, kept."""
    print(f"\n{DELTAS:,} pieces of one answer, median of {rounds} (us of CPU each)")
    model = Torrent(DELTAS)
    async with holdfast.open(f"sqlite:{folder}/delta.db", model=model) as sessions:
        session = await sessions.get_or_create("delta")
        ours, bare = [], []
        for _ in range(rounds):
            heard: list[str] = []
            start = time.process_time()
            await model.complete([], on_chunk=heard.append)
            bare.append((time.process_time() - start) / DELTAS * 1e6)
            start = time.process_time()
            await session.send(SAID, on_event=ignore)
            ours.append((time.process_time() - start) / DELTAS * 1e6)
    middle, limit = statistics.median(ours), statistics.median(bare)
    print(f"  ours {middle:.2f}, made and put into a list {limit:.2f}")
    bars.most("a piece beyond making it, us of CPU", middle - limit, 20)


def ignore(_: object) -> None:
    """Hears of a turn."""


async def slow(bars: Bars, folder: Path, rounds: int, seconds: float) -> None:
    """What keeping a piece costs where so few come that they can hardly be put together."""
    print(
        f"\n{SESSIONS:,} sessions of {RATE:g} pieces a second, median of {rounds} (us of CPU each)"
    )
    found: dict[str, list[float]] = {"kept": [], "not kept": []}
    pieces = int(RATE * 2 * seconds)
    for number in range(rounds):
        for name, redact in (("kept", None), ("not kept", as_it_is)):
            path = folder / f"slow-{number}-{name}.db"
            start = time.process_time()
            await streamed(path, RATE, pieces, seconds, redact=redact)
            found[name].append((time.process_time() - start) / SESSIONS / pieces * 1e6)
    kept, not_kept = (statistics.median(found[name]) for name in ("kept", "not kept"))
    print(f"  with everything around them: kept in the journal {kept:.1f}, not kept {not_kept:.1f}")
    bars.most("keeping a piece of slow answers, us of CPU", kept - not_kept, 20)


def as_it_is(message: Message) -> Message:
    """A hook in front of the store: where there is one, no piece is kept before the whole."""
    return message


async def stream(bars: Bars, folder: Path, seconds: float) -> None:
    """Many sessions at once, and the point from which pieces come late."""
    print(f"\n{SESSIONS:,} sessions streaming in one process: how late pieces come (ms)")
    head = ("raw p50", "raw p99", "ours p50", "ours p99", "added")
    print(f"  {'pieces/s':>10}" + "".join(f"{each:>10}" for each in head))
    knee = ""
    for rate in (RATE, 2 * RATE, 3 * RATE, 4 * RATE):
        pieces = int(rate * 2 * seconds)
        bare = steady(await raw.latencies(SESSIONS, rate, pieces, seconds), seconds)
        late = steady(
            await streamed(folder / f"stream-{rate:g}.db", rate, pieces, seconds), seconds
        )
        added = p99(late) - p99(bare)
        row = (statistics.median(bare), p99(bare), statistics.median(late), p99(late), added)
        print(
            f"  {SESSIONS * rate:>10,.0f}" + "".join(f"{each:>10.1f}" for each in row), flush=True
        )
        if rate == RATE:
            bars.most("added latency at 5,000 pieces/s, p99, ms", added, LATE_MS_MAX)
        if added > LATE_MS_MAX:
            knee = f"between {SESSIONS * (rate - RATE):,.0f} and {SESSIONS * rate:,.0f} pieces/s"
            break
    print(f"  the knee: {knee or f'beyond {SESSIONS * 4 * RATE:,.0f} pieces/s'}")


def steady(late: raw.Late, seconds: float) -> list[float]:
    """How late pieces were while all sessions were streaming: behind the last that began."""
    first = min(late.due)
    times = zip(late.due, late.ms, strict=True)
    return [ms for due, ms in times if first + seconds < due < first + 2 * seconds]


async def streamed(
    path: Path, rate: float, pieces: int, seconds: float, *, redact: Redact | None = None
) -> raw.Late:
    """Sessions that begin one after another, for so many seconds, and go on for twice as many."""
    late = raw.Late()

    async def one(sessions: SessionManager, number: int) -> None:
        session = await sessions.get_or_create(f"stream:{number}")
        await asyncio.sleep(seconds * number / SESSIONS)
        async for event in session.stream("Go on."):
            if type(event) is TextDelta:
                late.note(event.text)

    model = Paced(rate, pieces)
    async with holdfast.open(f"sqlite:{path}", model=model, redact=redact) as sessions:
        for number in range(SESSIONS):
            await sessions.get_or_create(f"stream:{number}")
        await asyncio.gather(*(one(sessions, number) for number in range(SESSIONS)))
    return late


async def memory(bars: Bars, folder: Path) -> None:
    """What an open session takes while nothing happens in it."""
    count, messages = 200, 20
    print(f"\n{count} open sessions of {messages} messages, idle (KiB each)")
    async with holdfast.open(f"sqlite:{folder}/memory.db", model=Instant()) as sessions:
        for number in range(count):
            await filled(await sessions.get_or_create(f"idle:{number}"), messages)
    async with holdfast.open(f"sqlite:{folder}/memory.db", model=Instant()) as sessions:
        warm = await sessions.get("idle:0")
        await warm.send(SAID)
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        held = [await sessions.get(f"idle:{number}") for number in range(1, count)]
        for session in held:
            await session.send(SAID)
        gc.collect()
        whole = tracemalloc.get_traced_memory()[0] - before
        texts = sum(sys.getsizeof(m) + len(m.text or "") for s in held for m in s.messages)
        tracemalloc.stop()
    own = (whole - texts) / len(held) / 1024
    each, said = whole / len(held) / 1024, texts / len(held) / 1024
    print(f"  {each:.1f} each, of which its messages {said:.1f}")
    bars.most("an idle open session beyond its messages, KiB", own, 50)


# ---- what the sides share ----


async def taking_turns(sides: dict, rounds: int) -> dict[str, float]:
    """Microseconds of one call of each side: the median over rounds of the median of 20."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, run in sides.items():
            times = []
            for _ in range(20):
                start = time.perf_counter()
                await run(SAID)
                times.append((time.perf_counter() - start) * 1e6)
            found[name].append(statistics.median(times))
    return {name: statistics.median(times) for name, times in found.items()}


async def bare_commits(sessions: SessionManager, like: Session) -> raw.Commits:
    """The raw side, on a session of its own, with a receipt and a draft as turns write them."""
    await like.send(SAID)
    rows = await sessions._tenant.tail(like.id, like.branch, 1)
    receipt = next(row.entry for row in rows if isinstance(row.entry, Call))
    bare = await sessions.get_or_create("raw")
    await filled(bare, STORED)
    draft = holdfast.frozen.FrozenDict(drafts.written(Message.user(SAID), "main"))
    return raw.Commits(sessions._tenant, bare.id, receipt, draft)


async def filled(session: Session, count: int) -> None:
    """Append so many messages, in pages."""
    for start in range(0, count, PAGE):
        size = min(PAGE, count - start)
        pairs = ((Message.user(SAID), Message.assistant(REPLY)) for _ in range(size // 2))
        await session.append(*(message for pair in pairs for message in pair))


async def hide_all_but(session: Session, count: int) -> None:
    """Fold everything but the end, as a policy would."""
    rows = [row for row in session._bench.talk.rows if row.kind == "message"]
    fold = Fold(first=rows[0].seq, last=rows[-count - 1].seq, by="bench", why="long ago")
    await session._bench.talk.append([session._bench.talk.placed(fold)])


def p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[98]


async def run(bars: Bars, folder: Path, names: list[str], quick: bool) -> None:
    if "turn" in names:
        await turn(bars, folder, rounds=5 if quick else 25)
    if "length" in names:
        long = 10_000 if quick else 100_000
        await length(bars, folder, rounds=5 if quick else 25, long=long)
    if "delta" in names:
        await delta(bars, folder, rounds=3 if quick else 9)
        await slow(bars, folder, rounds=1 if quick else 3, seconds=2 if quick else 4)
    if "stream" in names:
        await stream(bars, folder, seconds=3 if quick else 8)
    if "memory" in names:
        await memory(bars, folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail when a bar is missed")
    parser.add_argument("--quick", action="store_true", help="smaller, in about a minute")
    parser.add_argument("--only", choices=NAMES, help="one group of figures")
    parser.add_argument("--folder", type=Path, help="where to write (default: a temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder or real_disk()) as name:
        folder = Path(name)
        print(f"Python {sys.version.split()[0]}, {machine(folder)}")
        bars = Bars()
        names = [options.only] if options.only else list(NAMES)
        asyncio.run(run(bars, folder, names, options.quick))
        print(f"\nturn: {bars.verdict}")
        return 1 if options.check and bars.missed else 0


if __name__ == "__main__":
    sys.exit(main())
