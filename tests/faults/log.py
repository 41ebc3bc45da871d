"""What a program under test was asked to do, and what it acknowledged, as it happened.

A program writes a line before each step and one after it, with O_APPEND and a single write, so
that it may be killed at any moment. A step is a dict:

    {"do": "create",  "session": s}
    {"do": "append",  "session": s, "branch": b, "values": [...], "finish": bool}
    {"do": "begin",   "session": s, "input": text}
    {"do": "journal", "session": s, "chunk": text}
    {"do": "release", "session": s}
    {"do": "branch",  "session": s, "name": b, "parent": b, "at": value}
    {"do": "update",  "session": s, "name": n, "value": v}
    {"do": "erase",   "session": s, "values": [...]}
    {"do": "clear",   "session": s}
    {"do": "delete",  "session": s}
    {"do": "look",    "session": ""}             read everything, and note what was seen

A value names one entry. It is unique in the run, and the text stored for it follows from it, so
that a text with one wrong character shows.
"""

import json
import os
import time
import zlib
from pathlib import Path
from typing import NamedTuple

TEXT_MAX = 3_000


class Step(NamedTuple):
    """A step, and how it ended: "acknowledged", "failed" (with a typed error), or "unknown".

    The note of an acknowledged one has the time, `at_ns`, by the monotonic clock.
    """

    step: dict
    outcome: str
    error: str = ""
    note: dict | None = None


class Log:
    """The writing end."""

    def __init__(self, path):
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def begins(self, step):
        self._write({"step": step})

    def done(self, **note):
        self._write({"done": note | {"at_ns": time.monotonic_ns()}})

    def failed(self, error, typed):
        self._write({"failed": f"{type(error).__name__}: {error}", "typed": typed})

    def _write(self, line):
        os.write(self._file, json.dumps(line).encode() + b"\n")


def read_log(path):
    """The steps in order; one that neither ended nor failed has the outcome "unknown"."""
    steps = []
    data = Path(path).read_bytes() if Path(path).exists() else b""
    for line in data.split(b"\n")[:-1]:
        found = json.loads(line)
        if "step" in found:
            steps.append(Step(found["step"], "unknown"))
        elif "done" in found:
            steps[-1] = Step(steps[-1].step, "acknowledged", "", found["done"])
        else:
            outcome = "failed" if found["typed"] else "crashed"
            steps[-1] = Step(steps[-1].step, outcome, found["failed"])
    return steps


def text_of(value):
    """The text that is stored for a value: a few bytes or a few pages, always the same."""
    digest = zlib.crc32(value.encode())
    size = digest % TEXT_MAX if digest % 3 else digest % 60
    return f"{value}|" + (f"{digest:08x} " * (size // 9 + 1))[:size]


def value_of(text):
    """The value of a stored text; a text that none has is given back as it is."""
    value = text.partition("|")[0]
    return value if text_of(value) == text else f"not what was written: {text[:80]!r}"


def url_of(path):
    """The store at a path: a folder of session files by its suffix, or a database; what is a URL
    already stays one."""
    if "://" in str(path):
        return str(path)
    return f"jsonl:{path}" if str(path).endswith(".sessions") else f"sqlite:{path}"


def wal_size(path):
    """How long the log of the database at `path` is now."""
    try:
        return os.stat(f"{path}-wal").st_size
    except FileNotFoundError:
        return 0
