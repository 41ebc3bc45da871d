"""Nanobot's session files: the messages of the branch in use, one a line.

The lines are those of `codec.nanobot`. What nanobot has no name for rides in extra keys, so a
message loses nothing; what stands beside messages in our log is not there. A line without an id or
a time gets one that is made of the line and those before it, so that it is the same next time.
"""

import random
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, tzinfo
from hashlib import blake2b
from typing import NamedTuple

from holdfast import ids
from holdfast.archive import Archive, archive_of
from holdfast.codec import foreign, nanobot
from holdfast.codec.nanobot import Metadata
from holdfast.entries import Entry, UnknownEntry
from holdfast.errors import InvalidInput, TooLarge
from holdfast.formats.base import Format, Reading, losses_of
from holdfast.frozen import FrozenDict
from holdfast.messages import Message
from holdfast.stores.jsonl.names import keys_of
from holdfast.stores.values import CURSOR

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BLANK = b" \t\r"
_KIND = "nanobot:"
_NOT_THERE = (
    *("others", "branches", "folds", "calls", "marks", "erased", "once", "draft"),
    *("settings", "agent", "counters", "tools", "ttl"),
)


def write(archives: Iterable[Archive]) -> Iterator[bytes]:
    """The file of a conversation; nanobot's have one each."""
    first, *more = archives
    if more:
        raise InvalidInput("a file of nanobot", "holds one conversation: write each to its own")
    record, count = first.record, len(first.messages())
    cursor = record.counters.get(CURSOR, 0)
    yield nanobot.encode_metadata(
        Metadata(
            key=record.key,
            created_at=_local(record.created_at),
            updated_at=_local(record.updated_at),
            metadata=record.metadata,
            last_consolidated=cursor if type(cursor) is int and cursor > 0 else 0,
        ).within(count)
    )
    for each in first.line():
        entry = each.entry
        if isinstance(entry, Message) or _is_line(entry):
            assert isinstance(entry, Message | UnknownEntry)
            yield nanobot.encode(entry)


def losses(archive: Archive) -> list[str]:
    found = losses_of(archive, FORMAT.title, *_NOT_THERE)
    unknown = [each for each in archive.entries if isinstance(each.entry, UnknownEntry)]
    if count := sum(not _is_line(each.entry) for each in unknown):
        found.append(f"not in {FORMAT.title}: {count:,} entries of unknown kinds")
    return found


def read(data: bytes, name: str = "", *, zone: tzinfo | None = None) -> Reading:
    """The conversation in a file; its key is the one in line 1, or that which its name tells."""
    found = _Found(name)
    lines = data.removeprefix(BOM_UTF8).split(b"\n")
    *whole, rest = lines  # what stands behind the last newline was cut off, or is a whole line
    for number, line in enumerate(whole, start=1):
        found.add(number, line, zone)
    try:
        found.add(len(lines), rest, zone)
    except InvalidInput:
        if not found.lines:
            raise
        found.notes.append(f"line {len(lines)} is cut off, and was left out")
    return Reading((found.archive(),), tuple(found.notes))


def recognises(data: bytes) -> bool:
    line = data.removeprefix(BOM_UTF8).lstrip().partition(b"\n")[0]
    try:
        found = nanobot.decode(line)
    except (InvalidInput, TooLarge):
        return False
    return isinstance(found, Metadata) or isinstance(found[0], Message)


FORMAT = Format(
    name="nanobot",
    title="nanobot's JSONL",
    suffix=".jsonl",
    write=write,
    losses=losses,
    read=read,
    recognises=recognises,
)


class _Placed(NamedTuple):
    """Where ids and times come from that a line does not have."""

    time: datetime
    digest: bytes

    def source(self) -> ids.IdSource:
        nanoseconds = int((self.time - _EPOCH).total_seconds() * 1_000_000) * 1_000
        randbits = random.Random(self.digest).getrandbits  # noqa: S311 - to be the same again
        return ids.IdSource(clock_ns=lambda: nanoseconds, randbits=randbits)


class _Found:
    """What has been read of a file so far."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._metadata = Metadata()
        self._entries: list[Entry] = []
        self._place = _Placed(_EPOCH, b"")
        self._zone: tzinfo | None = None
        self.lines = 0
        self.notes: list[str] = []

    def add(self, number: int, line: bytes, zone: tzinfo | None) -> None:
        if not (line := line.strip(_BLANK)):
            return
        digest = blake2b(self._place.digest + line, digest_size=16).digest()
        with ids.using(_Placed(self._place.time, digest).source()):
            try:
                found = nanobot.decode(line, zone=zone)
            except InvalidInput as error:
                raise InvalidInput(f"line {number}:", str(error)) from None
            except TooLarge as error:
                raise TooLarge(f"line {number}: {error.what}", error.size, error.size_max) from None
        self.lines += 1
        self._zone = zone
        if isinstance(found, Metadata):
            self._metadata = found
            time, mended = self._time(found.created_at) or self._place.time, found.mended
            digest = self._place.digest  # this line is another each time that nanobot saves
        else:
            self._entries += found
            said = found[0]
            time = said.timestamp if isinstance(said, Message) else self._place.time
            mended = len(found) - 1
        if mended:
            self.notes.append(f"line {number} has broken characters: they became U+FFFD")
        self._place = _Placed(time, digest)

    def archive(self) -> Archive:
        metadata = self._metadata
        if not self.lines:
            raise InvalidInput("the file", "holds no conversation")
        times = [each.timestamp for each in self._entries if isinstance(each, Message)]
        created = self._time(metadata.created_at) or (times[0] if times else _EPOCH)
        updated = self._time(metadata.updated_at) or (times[-1] if times else created)
        for name in metadata.extra:
            self.notes.append(f"line 1 has {name!r}, which no session has room for")
        cursor = metadata.within(len(times)).last_consolidated
        return archive_of(
            self._key(),
            self._entries,
            created_at=created,
            updated_at=updated,
            metadata=metadata.metadata,
            counters=FrozenDict({CURSOR: cursor} if cursor else {}),
        )

    def _key(self) -> str:
        keys = keys_of(self._name) if self._name.endswith(".jsonl") else []
        if not self._metadata.key and not keys:
            raise InvalidInput("the file", "does not say which session it is: name a key")
        return self._metadata.key or keys[0]

    def _time(self, text: str) -> datetime | None:
        try:
            return foreign.time_of(text, self._zone) if text else None
        except InvalidInput:
            return None


def _is_line(entry: Entry | None) -> bool:
    return isinstance(entry, UnknownEntry) and entry.kind.startswith(_KIND)


def _local(time: datetime) -> str:
    """As nanobot has it: of this machine, without its zone."""
    return time.astimezone().replace(tzinfo=None).isoformat(timespec="microseconds")
