"""Nanobot's file: line 1 with the metadata, then a message a line.

What is read here may have been written by anybody, cut off anywhere, or be no such file at all.
Whatever is intact in it is found: a line that cannot be read may still hold a whole message behind
half of another, and zeros, as a power cut leaves them, stand between lines.
"""

import re
from codecs import BOM_UTF8
from datetime import datetime
from hashlib import blake2b
from typing import NamedTuple

from holdfast.codec import nanobot
from holdfast.codec.nanobot import Metadata
from holdfast.entries import Entry, UnknownEntry
from holdfast.errors import InvalidInput, TooLarge
from holdfast.messages import Message

BYTES_MAX = 1 << 28  # of a file that is not ours yet
TIME_SIZE = 26
DIGEST_SIZE = 8
ARCHIVED = "last_archived"
_BLANK = b" \t\r\n\0"
_STARTS_MAX = 1_000  # of messages that are looked for in one broken line
_START = re.compile(rb'\{\s*"')
_PRIVATE = "nanobot:provider_state"
_TIME = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}")
_UPDATED = b'"updated_at": "'
_METADATA = b'"metadata": '
NO_TIME = "1970-01-01T00:00:00.000000"


class Page(NamedTuple):
    """What a file holds: its lines as they stand there, each with what it says.

    `metadata` is None where there is none, `private` are the lines that are no messages for
    anybody, and `lost` counts the pieces that cannot be read; it is torn if there is any, or zeros,
    in whose place lines may have stood.
    """

    metadata: Metadata | None
    private: tuple[bytes, ...]
    lines: tuple[tuple[bytes, tuple[Entry, ...]], ...]
    lost: int
    is_plain: bool  # every line, as it is, is one that nanobot reads too
    is_torn: bool


def read_page(data: bytes) -> Page:
    """Everything in a file that is not known yet."""
    metadata: Metadata | None = None
    private: list[bytes] = []
    lines: list[tuple[bytes, tuple[Entry, ...]]] = []
    lost = 0
    is_plain = data.endswith(b"\n") and not data.startswith(BOM_UTF8)
    for raw in data.removeprefix(BOM_UTF8).split(b"\n"):
        line = raw.strip(_BLANK)
        if not line:
            is_plain = is_plain and b"\0" not in raw
            continue
        pieces, broken = _pieces(line)
        lost += broken
        is_plain = is_plain and not broken and len(raw.strip()) == len(line)
        for piece, found in pieces:
            if isinstance(found, Metadata):
                is_plain = is_plain and not lines and metadata is None
                metadata = found
            elif isinstance(found[0], UnknownEntry) and found[0].kind == _PRIVATE:
                private.append(piece)
            else:
                lines.append((piece, found))
    is_torn = lost > 0 or b"\0" in data
    is_plain = is_plain and metadata is not None
    return Page(metadata, tuple(private), tuple(lines), lost, is_plain, is_torn)


def _pieces(line: bytes) -> tuple[list[tuple[bytes, Metadata | tuple[Entry, ...]]], int]:
    """What can be read of a line, and whether something in it cannot."""
    if (found := _decoded(line)) is not None:
        return [(line, found)], 0
    for start, _ in zip(_START.finditer(line, 1), range(_STARTS_MAX), strict=False):
        piece = line[start.start() :].strip(_BLANK)
        found = _decoded(piece)
        if found is not None and _is_record(found):
            before, _ = _before(line[: start.start()])
            return [*before, (piece, found)], 1
    before, _ = _before(line)
    return before, 1


def _before(line: bytes) -> tuple[list[tuple[bytes, Metadata | tuple[Entry, ...]]], int]:
    """A whole message before what cannot be read, as zeros or another half line leave it."""
    for end in (line.rfind(b"}\0"), line.find(b"}{")):
        if end >= 0:
            piece = line[: end + 1].strip(_BLANK)
            found = _decoded(piece)
            if found is not None and _is_record(found):
                return [(piece, found)], 0
    found = _decoded(line.strip(_BLANK))
    if found is not None and _is_record(found):
        return [(line.strip(_BLANK), found)], 0
    return [], 1


def _is_record(found: Metadata | tuple[Entry, ...]) -> bool:
    """Whether it is one of nanobot's own lines, and not an object that stood inside another."""
    if isinstance(found, Metadata):
        return True
    return isinstance(found[0], Message) or _is_typed(found[0])


def _is_typed(entry: Entry) -> bool:
    return isinstance(entry, UnknownEntry) and entry.kind not in ("nanobot:None", "nanobot:")


def _decoded(line: bytes) -> Metadata | tuple[Entry, ...] | None:
    if not line.startswith(b"{"):
        return None
    try:
        return nanobot.decode(line)
    except (InvalidInput, TooLarge):
        return None


def settled(metadata: Metadata, count: int) -> Metadata:
    """Line 1 with the cursor that nanobot goes by, in a file of `count` messages: since August
    2026 it is called `last_archived`, and stands beside the old name."""
    archived = metadata.extra.get(ARCHIVED)
    if type(archived) is int:
        metadata = metadata.replace(last_consolidated=max(archived, 0))
    return metadata.within(count)


def is_shown(kind: str) -> bool:
    """Whether an entry of this kind has a line in nanobot's file."""
    return kind == "message" or (kind.startswith("nanobot:") and kind != _PRIVATE)


def line_of(entry: Message | UnknownEntry, *, is_appended: bool) -> bytes:
    """The line of an entry: in Python's own bytes, or escaped, so that no cut falls into one."""
    return nanobot.encode(entry, ascii=is_appended)


def digest_of(line: bytes) -> bytes:
    """A line, as it stands in the file, in eight bytes."""
    return blake2b(line, digest_size=DIGEST_SIZE).digest()


def mark_of(line: bytes, entry: Entry) -> bytes:
    """The digest of a line, and behind it whether our id is in there."""
    has_id = isinstance(entry, Message) and entry.id.encode() in line
    return digest_of(line) + (b"i" if has_id else b"")


def is_nanobot_s(mark: bytes) -> bool:
    """Whether a line that we know stands there as nanobot wrote it, without an id of ours."""
    return len(mark) == DIGEST_SIZE


def time_text(micros: int) -> str:
    """A time as nanobot has it, local and without its zone; always 26 characters."""
    try:
        return datetime.fromtimestamp(micros / 1_000_000).isoformat(timespec="microseconds")  # noqa: DTZ006
    except (ValueError, OverflowError, OSError):
        return NO_TIME


def place_of_time(line: bytes) -> int | None:
    """Where in line 1 `updated_at` begins, if it can be overwritten there."""
    at = line.find(_UPDATED)
    inner = line.find(_METADATA)
    if at < 0 or 0 <= inner < at:
        return None  # it may be one inside the metadata
    start = at + len(_UPDATED)
    end = start + TIME_SIZE
    return start if _TIME.fullmatch(line[start:end]) and line[end : end + 1] == b'"' else None
