"""Fuzz the readers of `holdfast.providers.stream` with Atheris.

    pip install atheris
    python tests/fuzz_stream.py -max_total_time=60 -timeout=1 -rss_limit_mb=256 FOLDER

FOLDER keeps the inputs that reached something new, for the next run; an empty one is given a
few to start from. `simple_streams.check` says what is held against what.
"""

import sys
from pathlib import Path

import atheris

# What is watched for new paths has to be imported in here.
with atheris.instrument_imports(include=["holdfast.providers", "simple_streams"]):
    from simple_streams import check

SEEDS = (
    b"event: a\r\ndata: {}\r\n\r\n: c\n\ndata\ndata:1\nid: 1\n\nretry: 0\rdata: [DONE]\n\n",
    b'\xef\xbb\xbf{"a":1}\r\n\n \n{"b":2}\n12',
    b'\xef\xbb\xbf [{"a": "]\\"\\\\"}\n,\r\n12 , "x\\u005d", [1, {}, ["\\""]], null]\n',
)


def main():
    folders = [Path(word) for word in sys.argv[1:] if not word.startswith("-")]
    if folders and folders[0].is_dir() and not any(folders[0].iterdir()):
        for number, seed in enumerate(SEEDS):
            (folders[0] / f"seed-{number}").write_bytes(bytes([number, 0, 7, 20, 33, 90]) + seed)
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
