"""What do values cost beyond bare msgspec?

    python bench/values.py [--rounds 15] [--check]

Ours against msgspec alone on structs with the same fields (bench/values_raw.py), in one run, on a
mix of 20,000 messages of about 720 bytes of JSON: words, thinking with a signature and a tool call,
a tool's result. Memory and snapshots are of a history of 10,000 messages.

With --check the exit status is 1 when a bar is missed.
"""

import argparse
import gc
import random
import sys
import tracemalloc
from collections import deque
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import values_raw as raw
from measure import Bars, best_ns

from holdfast import History, Message, ToolCall, codec
from holdfast.parts import Text, Thinking

SNAPSHOTS = 20
WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "and", "writes", "é"]


def messages(count: int) -> list[Message]:
    """A mix of messages as agents have them; always the same."""
    rnd = random.Random(1)

    def words(n: int) -> str:
        return " ".join(rnd.choices(WORDS, k=n))

    def hexes() -> str:
        return f"{rnd.getrandbits(128):032x}"

    def make(index: int) -> Message:
        kind = index % 4
        if kind == 0:
            return Message.user(words(80))
        if kind == 1:
            arguments = f'{{"path":"src/{hexes()}","lines":[1,200]}}'
            call = ToolCall(id=f"toolu_{hexes()}", name="read_file", arguments=arguments)
            thinking = Thinking(words(50), hexes() * 3)
            said = (thinking, Text(words(20)))
            return Message.assistant(said, [call], model="vendor:model", stop="tool_use")
        if kind == 2:
            return Message.tool(words(110), f"toolu_{hexes()}", name="read_file")
        return Message.assistant(words(90), model="vendor:model", stop="stop")

    return [make(index) for index in range(count)]


def traced_bytes(build: Callable[[], object]) -> int:
    """The memory that what `build` returns takes."""
    gc.collect()
    tracemalloc.start()
    kept = build()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del kept
    return size


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15, help="of each side (default 15)")
    parser.add_argument("--check", action="store_true", help="fail when a bar is missed")
    options = parser.parse_args()

    ours = messages(20_000)
    rows = [codec.record(message) for message in ours]
    raw_rows = [row.removeprefix(b'{"v":1,"message":').removesuffix(b"}") for row in rows]
    theirs = [raw.decode(row) for row in raw_rows]
    assert [codec.read_record(row) for row in rows] == ours
    assert [raw.encode(message) for message in theirs] == raw_rows
    print(f"{len(ours)} messages, {sum(map(len, rows)) / len(rows):.0f} bytes of JSON each\n")

    bars = Bars()
    found = best_ns(
        {
            "decode": lambda: deque(map(codec.read_record, rows), 0),
            "raw decode": lambda: deque(map(raw.decode, raw_rows), 0),
            "encode": lambda: deque(map(codec.record, ours), 0),
            "checked decode": lambda: deque(map(raw.decode_checked, raw_rows), 0),
            "raw encode": lambda: deque(map(raw.encode, theirs), 0),
        },
        options.rounds,
    )
    each = {name: ns / len(ours) for name, ns in found.items()}
    bars.row("read a record", each["decode"], each["raw decode"], 1.5, "ns")
    bars.row("write a record", each["encode"], each["raw encode"], 1.5, "ns")

    checked = each["checked decode"] / each["raw decode"]
    print(f"(msgspec alone with the checks in __post_init__ reads at {checked:.2f})")

    some, raw_some = rows[:10_000], raw_rows[:10_000]
    ours_kib = traced_bytes(lambda: History(codec.read_record(row) for row in some)) / 1024
    raw_kib = traced_bytes(lambda: [raw.decode(row) for row in raw_some]) / 1024
    bars.row("history of 10,000 messages", ours_kib, raw_kib, 1.3, "KiB")

    history, plain_list, more = History(ours[:10_000]), ours[:10_000], Message.user("one more")

    def snapshots() -> None:
        for _ in range(SNAPSHOTS):
            history.append(more)  # so that the tuple has to be made anew
            history.snapshot()

    def tuples() -> None:
        for _ in range(SNAPSHOTS):
            plain_list.append(more)
            tuple(plain_list)

    found = best_ns({"ours": snapshots, "tuple": tuples}, options.rounds)
    us = {name: ns / SNAPSHOTS / 1_000 for name, ns in found.items()}
    bars.row("append, then snapshot of 10,000", us["ours"], us["tuple"], 2.0, "us")
    return bars.status(options.check)


if __name__ == "__main__":
    sys.exit(main())
