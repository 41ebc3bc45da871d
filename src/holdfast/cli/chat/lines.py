"""What was typed at the prompt, for the arrow keys of the next time. Nobody else can read it.

One line of JSON for each, the latest last. A disk that is full loses nothing but this.
"""

import json
import os
from pathlib import Path

BYTES_MAX = 1_000_000  # then the older half goes


class Lines:
    """The lines in a file; without a file, those of this run alone."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._typed = [] if path is None else _read(path)

    @property
    def all(self) -> list[str]:
        """The oldest first."""
        return list(self._typed)

    def add(self, text: str) -> None:
        """Remember this, unless it is what was typed just before."""
        if self._typed[-1:] == [text]:
            return
        self._typed.append(text)
        if self._path is not None:
            try:
                _append(self._path, text)
            except OSError:
                self._path = None  # it is full, or not ours: go on without


def _read(path: Path) -> list[str]:
    from holdfast.private_files import replace

    try:
        data = path.read_bytes()
        if len(data) > BYTES_MAX:
            data = data[-BYTES_MAX // 2 :].partition(b"\n")[2]
            replace(path, data)
    except OSError:
        return []
    return [text for line in data.splitlines() if (text := _typed(line))]


def _typed(line: bytes) -> str:
    try:
        text = json.loads(line)
    except ValueError:  # it was cut off
        return ""
    return text if isinstance(text, str) else ""


def _append(path: Path, text: str) -> None:
    from holdfast.private_files import make_folder, open_regular

    make_folder(path.parent)
    fd = open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(fd, json.dumps(text).encode() + b"\n")
    finally:
        os.close(fd)
