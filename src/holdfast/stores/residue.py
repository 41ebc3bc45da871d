"""Looks for bytes that should be gone, in files that are in use.

Another process does the looking: when this one closed a file that SQLite has open, POSIX would drop
the locks that SQLite holds on it.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

# Reads the needles, in hex, from its input. A piece begins with the end of the one before it.
_LOOK = """
import sys
needles = [bytes.fromhex(line) for line in sys.stdin]
longest = max(map(len, needles))
for path in sys.argv[1:]:
    try:
        with open(path, "rb") as file:
            end = b""
            while piece := file.read(1 << 22):
                piece = end + piece
                if any(needle in piece for needle in needles):
                    sys.exit(3)
                end = piece[-longest:]
    except FileNotFoundError:
        pass
"""


def is_left(needles: Sequence[bytes], paths: Sequence[Path]) -> bool:
    """Whether any of these bytes are in any of these files."""
    if not needles:
        return False
    done = subprocess.run(  # noqa: S603 - our own program, on paths that are arguments
        [sys.executable, "-I", "-S", "-c", _LOOK, *map(str, paths)],
        input="\n".join(needle.hex() for needle in needles),
        text=True,
        capture_output=True,
        check=False,
    )
    if done.returncode not in (0, 3):
        raise OSError(f"cannot look for what was removed: {done.stderr.strip()[-200:]}")
    return done.returncode == 3
