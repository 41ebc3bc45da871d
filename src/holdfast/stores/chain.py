"""The chain: what makes a flipped, moved or missing row of a log show.

    seal = H(salt ‖ payload)                      16 bytes, of one entry alone
    link = H(previous link ‖ seq ‖ kind ‖ seal)   16 bytes, of everything up to this entry

H is BLAKE2b, cut to 16 bytes. A row keeps its payload, its salt and its link. The first entry of a
session hangs on the session's root, which no other session shares, and the first entry of a branch
on the link of the entry at which the branch forks.

Erasing drops payload and salt, and keeps the seal: the chain still verifies, and because the salt
is gone nobody can find out what was there by trying texts.

    check = CRC-32 of payload, begun with seq, position and the CRC-32 of kind

Reading a long log must be quick, and two digests a row would cost as much as everything else. So a
row also has a check, which tells a flipped bit as surely as a digest does, and reading goes by
that; the chain, which also tells what was done on purpose, is for `verify`.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from struct import Struct, unpack
from typing import Protocol
from zlib import crc32

from holdfast.entries import KINDS

SIZE = 16
_DRAW = 1_024  # salts at once
_begin = blake2b(digest_size=SIZE).copy  # costs less than making one
SPREAD = 0x9E37_79B1  # odd, so that no two positions begin alike


class _Kinds(dict[str, tuple[Callable[..., bytes], bytes, int]]):
    """For each kind what its links and checks are made with; the kinds that we know are at hand.

    What puts together the bytes of a link, quicker than `+`; the kind in bytes; and its CRC-32.
    """

    def __missing__(self, kind: str) -> tuple[Callable[..., bytes], bytes, int]:
        name = kind.encode()
        return Struct(f">{SIZE}sQ{len(name)}s{SIZE}s").pack, name, crc32(name)


_KINDS = _Kinds()
_KINDS |= {kind: _KINDS[kind] for kind in KINDS}


class _Starts(dict[str, int]):
    """The CRC-32 of each kind, for those who read and need nothing else."""

    def __missing__(self, kind: str) -> int:
        return crc32(kind.encode())


STARTS = _Starts({kind: start for kind, (_, _, start) in _KINDS.items()})


# A new row: the number of the session, then the fields of a Row but the seal.
NewRow = tuple[int, int, int, int, str, int, bytes, bytes, bytes, bytes | None]


class Linked(Protocol):
    """A stored row, as far as the chain is concerned. An erased one has a seal and nothing else."""

    @property
    def seq(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def link(self) -> bytes: ...
    @property
    def salt(self) -> bytes | None: ...
    @property
    def payload(self) -> bytes | None: ...
    @property
    def seal(self) -> bytes | None: ...


# Random bytes are drawn for many rows at once, because every draw is a system call. Threads need no
# lock: a list gives each of its items to one of them.
_drawn: list[bytes] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drawn.clear)  # the parent has them too


def salt() -> bytes:
    """A fresh salt."""
    while True:
        try:
            return _drawn.pop()
        except IndexError:
            _drawn.extend(unpack(f"{SIZE}s" * _DRAW, os.urandom(SIZE * _DRAW)))


def salts(count: int) -> list[bytes]:
    """Fresh salts, one for each entry."""
    return [salt() for _ in range(count)]


def root(session_id: str) -> bytes:
    """What the first entry of a session hangs on."""
    return blake2b(session_id.encode(), digest_size=SIZE, person=b"holdfast.root").digest()


def seal(salt: bytes, payload: bytes) -> bytes:
    """The entry in 16 bytes; without the salt, nobody can tell what they are of."""
    hash = _begin()
    hash.update(salt)
    hash.update(payload)
    return hash.digest()


def link(previous: bytes, seq: int, kind: str, sealed: bytes) -> bytes:
    """The log up to and including this entry, in 16 bytes.

    Every part but the kind has a fixed size, so no two different rows are the same bytes here.
    """
    _, name, _ = _KINDS[kind]
    hash = _begin()
    # As they stand, and not packed: of a damaged seal that is too long, all has to count.
    hash.update(previous + seq.to_bytes(8, "big") + name + sealed)
    return hash.digest()


def rows(
    session: int,
    branch: int,
    seq: int,
    position: int,
    previous: bytes,
    entries: Iterable[tuple[str, bytes, bytes, bytes | None, object]],
) -> list[NewRow]:
    """New entries as rows, behind the one that has this seq, position and link.

    Everything that is appended goes through here: `salt`, `seal`, `link` and `check` in one
    breath, because to call each of them costs a third of what they do.
    """
    begin = _begin
    made = []
    for kind, whole, kept, holes, _ in entries:
        seq += 1
        if kind == "message":
            position += 1
        pack, name, start = _KINDS[kind]
        own = salt()
        hash = begin()
        hash.update(own)
        hash.update(whole)
        sealed = hash.digest()
        hash = begin()
        hash.update(pack(previous, seq, name, sealed))
        previous = hash.digest()
        check = crc32(whole, seq ^ start ^ position * SPREAD)
        made.append((session, seq, branch, position, kind, check, previous, own, kept, holes))
    return made


def check(seq: int, position: int, kind: str, payload: bytes | None) -> int:
    """What a row is told by when it is read; of an erased one too, which has no payload."""
    return crc32(payload or b"", seq ^ STARTS[kind] ^ position * SPREAD)


def broken(previous: bytes, rows: Iterable[Linked]) -> Iterator[tuple[int, str]]:
    """The seq of each row that is not what was written, and how that shows.

    `rows` are those of one branch, in order, behind the link `previous`. A row after a broken one
    is judged by the link that is stored before it, so that one flipped bit is reported once.
    """
    last = 0
    for row in rows:
        if row.seq <= last:
            yield row.seq, f"it stands behind entry {last}"
        last = row.seq
        if row.payload is not None and row.salt is not None:
            sealed = seal(row.salt, row.payload)
        elif row.payload is None and row.salt is None and row.seal is not None:
            sealed = row.seal
        else:
            yield row.seq, "it is half erased"
            previous = row.link
            continue
        if link(previous, row.seq, row.kind, sealed) != row.link:
            yield row.seq, "its link does not fit what is stored"
        previous = row.link
