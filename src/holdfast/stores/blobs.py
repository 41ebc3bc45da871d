"""Large texts are kept apart from the rows they belong to.

An image, a document or a long tool output would make every row that holds it slow to pass, and
the same picture is often sent again. So a text of 32 KiB or more inside a payload is cut out and
kept once for the session, under its digest, with a count of the rows that need it.

What is cut are the bytes between the quotes of a JSON string, and `holes` says where they stood:

    for each hole: offset in the payload that is left, 8 bytes | digest, 16 bytes

Put back, they make the very bytes that were written; the chain is made over those.
"""

import re
from collections.abc import Callable
from hashlib import blake2b

from holdfast.errors import Corrupt

SIZE_MIN = 32 * 1024
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_HOLE = 24


def cut(payload: bytes) -> tuple[bytes, bytes | None, dict[bytes, bytes]]:
    """The payload without its large texts, the holes they leave, and the texts by digest."""
    if len(payload) < SIZE_MIN:
        return payload, None, {}
    kept: list[bytes] = []
    holes: list[bytes] = []
    texts: dict[bytes, bytes] = {}
    offset = done = 0
    for found in _STRING.finditer(payload):
        start, stop = found.start() + 1, found.end() - 1
        if stop - start < SIZE_MIN:
            continue
        text = payload[start:stop]
        digest = blake2b(text, digest_size=16).digest()
        texts[digest] = text
        kept.append(payload[done:start])
        offset += start - done
        holes.append(offset.to_bytes(8, "big") + digest)
        done = stop
    if not holes:
        return payload, None, {}
    return b"".join([*kept, payload[done:]]), b"".join(holes), texts


def digests(holes: bytes | None) -> list[bytes]:
    """The digests of the texts that belong into these holes, one for each hole."""
    return [holes[at + 8 : at + _HOLE] for at in range(0, len(holes), _HOLE)] if holes else []


def fill(
    payload: bytes, holes: bytes | None, text_of: Callable[[bytes], bytes | None], where: str
) -> bytes:
    """The payload as it was written, with its large texts in their places."""
    if not holes:
        return payload
    pieces = []
    done = 0
    for at in range(0, len(holes), _HOLE):
        offset = int.from_bytes(holes[at : at + 8], "big")
        text = text_of(holes[at + 8 : at + _HOLE])
        if text is None or not done <= offset <= len(payload):
            raise Corrupt(where, "a large part of it is missing")
        pieces += [payload[done:offset], text]
        done = offset
    return b"".join([*pieces, payload[done:]])
