"""Writes the conversation that the folders `jsonl-1` and `jsonl-2` beside this file hold.

    python tests/format/make_jsonl.py FOLDER

As with `make_sqlite.py`: run once for a new format of the sidecars, and never again.
"""

import asyncio
import sys

from make_sqlite import START, write

from holdfast import ids


def main(path):
    now = iter(range(10**9))

    def clock():
        return int(START.timestamp()) * 10**9 + next(now) * 10**6

    with ids.using(ids.IdSource(clock_ns=clock)):
        asyncio.run(write(f"jsonl:{path}"))


if __name__ == "__main__":
    main(sys.argv[1])
