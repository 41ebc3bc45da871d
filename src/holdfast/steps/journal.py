"""The journal of a turn: its output, written down while it comes.

A piece costs an append to a list. What has gathered is written every so often by the scribe, one
write at a time, so a slow disk makes larger pieces, not a queue.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import msgspec

from holdfast.steps.scribe import Scribe
from holdfast.stores.base import Tenant
from holdfast.stores.values import Lease

_encode = msgspec.json.Encoder().encode
_PIECE_LENGTH_MAX = 200_000  # in characters: a store takes a megabyte at a time


class Journal:
    """What a running turn has said so far. With `is_silent` nothing is written down."""

    def __init__(
        self, tenant: Tenant, lease: Lease, scribe: Scribe, *, is_silent: bool = False
    ) -> None:
        self.lease = lease
        self._tenant = tenant
        self._scribe = scribe
        self._is_silent = is_silent
        # Kind, text, kind, text: pairs would be more objects for the garbage collector to look at.
        self._waiting: list[Any] = []
        self._is_asked = False  # the scribe, to write
        self._is_written = False  # by the scribe, now
        self.is_stopped = False  # what was said is in the log, or about to be
        self._wants_end: asyncio.Future[None] | None = None  # of what is being written
        self.at = 0  # the entry behind which the answer will stand
        self.words: list[str] = []
        self.thoughts: list[str] = []

    @property
    def text(self) -> str:
        """The words of the answer that comes in."""
        return "".join(self.words)

    def begin(self, at: int) -> None:
        """A model is asked, with the branch at the entry `at`."""
        self.is_stopped = False
        self.at, self.words, self.thoughts = at, [], []
        self._waiting = ["at", at]

    def say(self, text: str) -> None:
        """More words."""
        self.words.append(text)
        self._add("t", text)

    def think(self, text: str) -> None:
        """More thoughts."""
        self.thoughts.append(text)
        self._add("k", text)

    async def end(self, why: str) -> None:
        """The turn is over, but its draft remains."""
        await self.stop()
        self._waiting += ("end", why)
        for chunk in self._taken():
            await self._tenant.journal(self.lease, chunk)

    def pause(self) -> None:
        """Write no more, because what was said is about to be appended."""
        self.is_stopped = True
        if self._is_asked:
            self._is_asked = False
            self._scribe.journals.remove(self)

    async def stop(self) -> None:
        """Write no more, and wait for what is being written."""
        self.pause()
        while self._is_written:
            self._wants_end = asyncio.get_running_loop().create_future()
            await self._wants_end

    def _add(self, kind: str, text: str) -> None:
        if self._is_silent:
            return
        self._waiting += (kind, text)
        if not self._is_asked:
            self._ask()

    # What the scribe calls

    def take(self) -> Sequence[str]:
        """What has gathered, to be written now; nothing if it was stopped meanwhile."""
        self._is_asked = False
        if self.is_stopped or self._is_written or not self._waiting:
            return ()
        self._is_written = True
        return self._taken()

    def written(self) -> None:
        """What was taken, if anything was, is written, or could not be."""
        self._is_written = False
        if self._wants_end is not None and not self._wants_end.done():
            self._wants_end.set_result(None)
        if self._waiting:
            self._ask()

    def _ask(self) -> None:
        if not self._is_written and not self.is_stopped:
            self._is_asked = True
            self._scribe.journals.add(self)

    def _taken(self) -> Sequence[str]:
        taken, self._waiting = self._waiting, []
        kinds, said = taken[::2], taken[1::2]
        if kinds.count("t") == len(kinds) and sum(map(len, said)) <= _PIECE_LENGTH_MAX:
            return (_json([["t", "".join(said)]]),)  # as it nearly always is
        return tuple(_chunks(zip(kinds, said, strict=True)))


def _json(pieces: list[list[Any]]) -> str:
    return _encode(pieces).decode()


def _chunks(pieces: Iterable[tuple[str, Any]]) -> Iterator[str]:
    """The pieces as JSON, those of a kind put together, in texts that a store takes."""
    chunk: list[list[Any]] = []
    length = 0
    for kind, group in groupby(pieces, key=lambda piece: piece[0]):
        said = [value for _, value in group]
        for value in _split("".join(said)) if kind in ("t", "k") else said:
            size = len(value) if isinstance(value, str) else 0
            if chunk and length + size > _PIECE_LENGTH_MAX:
                yield _json(chunk)
                chunk, length = [], 0
            chunk.append([kind, value])
            length += size
    yield _json(chunk)


def _split(text: str) -> list[str]:
    return [text[at : at + _PIECE_LENGTH_MAX] for at in range(0, len(text), _PIECE_LENGTH_MAX)]
