"""Damaged files: flipped bits, a cut tail, a blanked block, over copies of what is whole.

for bit in bits(len(data), count=300, seed=7):
    path.write_bytes(flipped(data, bit))
"""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path


def missing() -> str:
    """Files can be damaged everywhere."""
    return ""


def bits(size: int, count: int, seed: int, start: int = 0) -> Iterator[int]:
    """`count` different bits of the bytes from `start` to `size`, the same ones for a seed."""
    room = range(start * 8, size * 8)
    yield from random.Random(seed).sample(room, min(count, len(room)))  # noqa: S311


def flipped(data: bytes, bit: int) -> bytes:
    """The data with one bit the other way."""
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def cut(data: bytes, size: int) -> bytes:
    """The data as far as it was written before the end came."""
    return data[:size]


def blanked(data: bytes, start: int, size: int) -> bytes:
    """The data with zeros in a block that was allocated and never written."""
    stop = min(start + size, len(data))
    return data[:start] + bytes(stop - start) + data[stop:]


def copy(source: Path, target: Path) -> Path:
    """A fresh copy of a folder, in place of what was there; the folder `target`."""
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(source, target)
    return target
