"""The limit for the JSONL figures of bench/stores.py: bare writes, each followed by a sync.

It writes bytes that are ready, as many as our store writes for the same turn, to the end of files
of its own: to two files, each synced, or to one; and the 26 characters of `updated_at` near the
beginning of nanobot's, which are part of every turn there. No lock, no chain, nothing is encoded.
`has_time=False` leaves the 26 characters out, for who wants to know what they cost; `has_room`
writes into zeros that are in the first file already, as ours does into its sidecar.
"""

import os
import secrets
from pathlib import Path

_TIME = b"2026-02-01T10:00:00.000000"
_TIME_AT = 92
_ROOM = 32 << 20  # for more turns than anybody measures


class Raw:
    """Files that bytes are put behind; the last one has a time in its first line."""

    def __init__(
        self,
        folder: Path,
        sizes: dict[str, int],
        filled: int,
        *,
        has_time: bool = True,
        has_room: bool = False,
    ) -> None:
        self._pieces = {name: os.urandom(size) for name, size in sizes.items()}
        self._fds: dict[str, int] = {}
        self._ends: dict[str, int] = {}
        fd = -1
        for name in sizes:
            path = folder / f"{name}-{secrets.token_hex(4)}"
            fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
            os.pwrite(fd, bytes(filled), 0)
            if has_room and not self._fds:
                os.pwrite(fd, bytes(_ROOM), filled)
            os.fsync(fd)
            self._fds[name] = fd
            self._ends[name] = filled
        self._timed = fd if has_time else -1

    def append(self) -> None:
        """A turn: each file in its turn, and on the disk before the next."""
        for name, fd in self._fds.items():
            self._ends[name] += os.pwrite(fd, self._pieces[name], self._ends[name])
            if fd == self._timed:
                os.pwrite(fd, _TIME, _TIME_AT)
            os.fdatasync(fd) if hasattr(os, "fdatasync") else os.fsync(fd)

    def close(self) -> None:
        for fd in self._fds.values():
            os.close(fd)
