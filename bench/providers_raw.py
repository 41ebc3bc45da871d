"""The limit for bench/providers.py: what a stream costs anybody, and what a body costs anybody.

Events are split at the blank line, their data is decoded by msgspec, and the words are put
together. A window is turned into bytes by msgspec alone, from dicts that are there already.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

decode = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode


def read(chunks: Iterable[bytes], words: Callable[[Any], str | None]) -> str:
    """The words of a stream; `words` finds them in an event."""
    said: list[str] = []
    left = b""
    for chunk in chunks:
        *events, left = (left + chunk).split(b"\n\n")
        for event in events:
            data = event.rpartition(b"data: ")[2]
            if data != b"[DONE]" and (more := words(decode(data))):
                said.append(more)
    return "".join(said)
