"""The limit for the JSONL figures of bench/stores.py: bare writes, each followed by a sync.

It writes bytes that are ready, as many as our store writes for the same turn, to the end of files
of its own: to two files, each synced, or to one. No lock, no line 1, no chain, nothing is encoded.
"""

import os
from pathlib import Path


class Raw:
    """Files that bytes are put behind."""

    def __init__(self, folder: Path, sizes: dict[str, int], filled: int) -> None:
        self._pieces = {name: os.urandom(size) for name, size in sizes.items()}
        self._fds: dict[str, int] = {}
        for name in sizes:
            fd = os.open(folder / name, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
            for _ in range(max(filled // (1 << 20), 1)):
                os.write(fd, bytes(min(filled, 1 << 20)))
            os.fsync(fd)
            self._fds[name] = fd

    def append(self) -> None:
        """A turn: each file in its turn, and on the disk before the next."""
        for name, fd in self._fds.items():
            os.write(fd, self._pieces[name])
            os.fdatasync(fd) if hasattr(os, "fdatasync") else os.fsync(fd)

    def close(self) -> None:
        for fd in self._fds.values():
            os.close(fd)
