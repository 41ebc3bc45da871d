"""How long does search take, and how large is its index?

    python bench/search.py [--messages 1000000] [--rounds 5] [--check]

Builds a log of messages of about 60 words in a temporary folder (bench/search_texts.py), fills the
index behind it, the first half in large batches and the second in batches of 256, and looks for 60
words: 20 rare, 20 middling, 10 common, 10 Chinese or Japanese; newest first, 20 hits. Every search
is for one tenant, who said everything. A million messages take about three minutes and 1 GB.

With --check the exit status is 1 when a bar is missed.
"""

import argparse
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from measure import Bars
from search_texts import texts

from holdfast import Message, codec
from holdfast.stores.sqlite import search

TENANT = "acme"
MESSAGES_PER_SESSION = 50
BATCH = 256
LOG = (
    """CREATE TABLE entries(rid INTEGER PRIMARY KEY, session INTEGER, seq INTEGER, branch INTEGER,
        position INTEGER, kind TEXT, payload BLOB)""",
    "CREATE TABLE sessions(number INTEGER PRIMARY KEY, tenant TEXT, key TEXT)",
)


def build(db: sqlite3.Connection, count: int) -> int:
    """Write the log; how many bytes its payloads have."""
    for statement in LOG:
        db.execute(statement)
    sessions = count // MESSAGES_PER_SESSION + 1
    written = 0

    def rows() -> Iterator[tuple[int, int, bytes]]:
        nonlocal written
        for index, text in enumerate(texts(count)):
            message = Message.assistant(text) if index % 2 else Message.user(text)
            record = codec.record(message)
            written += len(record)
            yield index % sessions + 1, index // sessions + 1, record

    db.execute("BEGIN")
    numbers = ((number, TENANT, f"chat:{number}") for number in range(1, sessions + 1))
    db.executemany("INSERT INTO sessions VALUES(?, ?, ?)", numbers)
    insert = (
        "INSERT INTO entries(session, seq, branch, position, kind, payload)"
        " VALUES(?1, ?2, 0, ?2, 'message', ?3)"
    )
    db.executemany(insert, rows())
    db.execute("COMMIT")
    return written


def in_transaction(db: sqlite3.Connection, run: Callable[[], int | None]) -> int:
    db.execute("BEGIN IMMEDIATE")
    result = run()
    db.execute("COMMIT")
    return result or 0


def fill(db: sqlite3.Connection, batch: int, until: int) -> list[float]:
    """Fill the index as far as `until`; the seconds that each batch took."""
    seconds: list[float] = []
    done = True
    while done and search.pending(db) > until:
        start = time.perf_counter()
        done = bool(in_transaction(db, lambda: search.fill(db, batch)))
        seconds.append(time.perf_counter() - start)
    return seconds


def queries(db: sqlite3.Connection, count: int) -> dict[str, list[str]]:
    """What to look for, by how often it is there."""
    db.execute("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, words, row)")
    found = [row for row in db.execute("SELECT term, doc FROM vocabulary") if row[0][0] != "_"]
    rnd = random.Random(4)

    def some(number: int, least: float, most: float, ascii: bool = True) -> list[str]:
        fitting = [
            word
            for word, messages in found
            if least <= messages <= most and word.isascii() is ascii and (ascii or len(word) == 2)
        ]
        return rnd.sample(fitting, min(number, len(fitting)))

    single = {
        "rare": some(20, 1, 50),
        "middling": some(20, count * 0.001, count * 0.01),
        "common": some(10, count * 0.2, count),
        "CJK pairs": some(10, 2, count, ascii=False),
    }
    often = some(10, count * 0.002, count, ascii=False)
    pairs = [f"{a} {b}" for a in single["common"][:5] for b in single["middling"][:4]]
    return single | {
        "(CJK single)": [word[0] for word in single["CJK pairs"]],
        "(common AND middling)": pairs,
        "(two middling)": [" ".join(rnd.sample(single["middling"], 2)) for _ in range(10)],
        "(common, never with)": [f"{a} {b}" for a in single["common"] for b in often[:2]],
    }


def timed(db: sqlite3.Connection, asked: list[str], session: int | None = None) -> list[float]:
    """The milliseconds of each search, sorted."""
    found = []
    for query in asked:
        start = time.perf_counter()
        search.find(db, query, tenant=TENANT, session=session, before=None, limit=20)
        found.append((time.perf_counter() - start) * 1_000)
    return sorted(found)


def quantile(values: list[float], part: float) -> float:
    return values[min(len(values) - 1, int(len(values) * part))]


def report(name: str, values: list[float]) -> None:
    p50, p95 = quantile(values, 0.5), quantile(values, 0.95)
    print(f"  {name:<24}{p50:>10.2f}{p95:>10.2f}{values[-1]:>10.2f}{len(values):>8}")


def measure(db: sqlite3.Connection, asked: dict[str, list[str]], rounds: int) -> list[float]:
    """Print how long each kind of search takes; all the times of the 60 words."""
    print(f"  {'search, ms':<24}{'p50':>10}{'p95':>10}{'max':>10}{'n':>8}")
    total: list[float] = []
    for name, group in asked.items():
        times = timed(db, group * rounds)
        report(name, times)
        if not name.startswith("("):
            total += times
    words = [word for name, group in asked.items() if name[0] != "(" for word in group]
    report("(60 words, one session)", timed(db, words, session=1))
    report("60 words", sorted(total))
    return sorted(total)


def size(db: sqlite3.Connection, path: Path) -> int:
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.stat().st_size


def run(folder: Path, count: int, rounds: int, check: bool) -> int:
    path = folder / "search.db"
    db = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON"):
        db.execute(f"PRAGMA {pragma}")
    start = time.perf_counter()
    payload = build(db, count)
    log = size(db, path)
    took = time.perf_counter() - start
    print(f"{count} messages, {payload / count:.0f} bytes each, written in {took:.0f} s")

    for statement in search.TABLES:
        db.execute(statement)
    for batch, until in ((10_000, count // 2), (BATCH, 0)):
        before = search.pending(db)
        seconds = sorted(fill(db, batch, until))
        each = sum(seconds) / (before - search.pending(db))
        print(
            f"  filled in batches of {batch}: {1 / each:.0f} messages/s, {each * 1e6:.0f} us each;"
            f" a batch takes {quantile(seconds, 0.5) * 1e3:.0f} ms (p50),"
            f" {quantile(seconds, 0.99) * 1e3:.0f} ms (p99)"
        )
    index = size(db, path) - log
    asked = queries(db, count)
    print("\nas it was filled")
    total = measure(db, asked, rounds)

    start = time.perf_counter()
    in_transaction(db, lambda: search.purge(db))
    print(f"\nafter a purge, which took {time.perf_counter() - start:.1f} s")
    measure(db, asked, rounds)
    print()

    bars = Bars()
    bars.row("search for 60 words, p50", quantile(total, 0.5), 50, 1.0, "ms")
    bars.row("search for 60 words, p95", quantile(total, 0.95), 250, 1.0, "ms")
    bars.row("index, against payload", index / 1e6, payload / 1e6, 0.45, "MB")
    db.close()
    return bars.status(check)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--messages", type=int, default=1_000_000, help="(default 1,000,000)")
    parser.add_argument("--rounds", type=int, default=5, help="of each search (default 5)")
    parser.add_argument("--check", action="store_true", help="fail when a bar is missed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return run(Path(folder), options.messages, options.rounds, options.check)


if __name__ == "__main__":
    sys.exit(main())
