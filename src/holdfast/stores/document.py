"""The document of a session: what its record says besides the counters that every append moves.

    {"v":1,"id":"...","key":"cli:direct","agent":"helper","created":1763262000000000,...}

| name                                   | value                                              |
|----------------------------------------|----------------------------------------------------|
| v                                      | the version of this table: 1                       |
| tenant, id, key, agent, parent         | text; absent when empty                            |
| settings, metadata, counters           | objects; absent when empty                         |
| tools                                  | the declarations, a list of objects                |
| ttl                                    | microseconds; absent: for ever                     |
| created                                | microseconds since 1970                            |
| copied                                 | of a session from another store: the time of its   |
|                                        | last write there, and whether it is whole          |

It is kept with a digest of its bytes, by which loading goes, and with their CRC-32, which is quick
enough for lists. Key, agent and the like stand a second time in the columns of a table, to be found
by; the document is what counts, and the two are compared on loading.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

import msgspec

from holdfast.errors import Corrupt, FormatTooNew, InvalidInput
from holdfast.frozen import EMPTY, FrozenDict, decode_hook
from holdfast.settings import Settings
from holdfast.stores.values import Record

VERSION = 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
_from_timestamp = datetime.fromtimestamp
_EXACT_MAX = 4 * 10**15  # in the year 2096; a float is exact to the microsecond until then


class Document(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The fields of the table above."""

    v: int
    id: str
    key: str
    created: int
    agent: str = ""
    metadata: FrozenDict = EMPTY
    tenant: str = ""
    parent: str | None = None
    settings: FrozenDict = EMPTY
    counters: FrozenDict = EMPTY
    tools: tuple[FrozenDict, ...] = ()
    ttl: int | None = None
    copied: tuple[int, bool] | None = None


class ListedDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Those that a list shows, the metadata as it was decoded; the others are passed over."""

    v: int
    id: str
    key: str
    created: int
    agent: str = ""
    metadata: dict[str, Any] = {}


class Written(NamedTuple):
    """A document as it is stored."""

    body: bytes
    check: int
    digest: bytes


_Doc = TypeVar("_Doc", ListedDocument, Document)
_decode = msgspec.json.Decoder(Document, dec_hook=decode_hook).decode
_decode_listed = msgspec.json.Decoder(ListedDocument).decode
_decode_all_listed = msgspec.json.Decoder(list[ListedDocument]).decode
_encode = msgspec.json.Encoder().encode
_UNREADABLE = (msgspec.MsgspecError, InvalidInput, UnicodeDecodeError, RecursionError)


def micros(time: datetime) -> int:
    """Microseconds since 1970."""
    return (time - _EPOCH) // MICROSECOND


def time_at(micros: int) -> datetime:
    """The time that so many microseconds since 1970 are."""
    if 0 <= micros < _EXACT_MAX:
        return _from_timestamp(micros / 1_000_000, UTC)
    return _EPOCH + timedelta(microseconds=micros)


def document_of(record: Record, tenant: str, created: int) -> Document:
    """The document of a record that a caller gave."""
    return Document(
        v=VERSION,
        id=record.id,
        key=record.key,
        created=created,
        tenant=tenant,
        agent=record.agent,
        parent=record.parent,
        settings=FrozenDict(record.settings.values),
        metadata=record.metadata,
        counters=record.counters,
        tools=record.tools,
        ttl=None if record.ttl is None else record.ttl // MICROSECOND,
    )


def fields_of(document: Document) -> dict[str, Any]:
    """What the document says, as the fields of a Record."""
    return {
        "key": document.key,
        "id": document.id,
        "agent": document.agent,
        "settings": Settings.of(document.settings),
        "metadata": document.metadata,
        "tools": document.tools,
        "counters": document.counters,
        "ttl": None if document.ttl is None else timedelta(microseconds=document.ttl),
        "parent": document.parent,
        "created_at": time_at(document.created),
    }


def write_document(document: Document) -> Written:
    """The document, ready to be stored."""
    body = _encode(document)
    return Written(body, crc32(body), _digest(body))


def read_document(body: bytes, digest: bytes, where: str) -> Document:
    """The document in `body`, or Corrupt when it is not what was written."""
    return _read(_decode, body, _digest(body) == digest, where)


def read_listed(body: bytes, check: int, where: str) -> ListedDocument:
    """Of the document in `body`, what a list shows."""
    return _read(_decode_listed, body, crc32(body) == check, where)


def read_all_listed(documents: Sequence[tuple[bytes, int]]) -> list[ListedDocument]:
    """As `read_listed`, for many at once and quicker; fewer, or ValueError, if one is damaged."""
    try:
        found = _decode_all_listed(b"[%b]" % b",".join([body for body, _ in documents]))
    except _UNREADABLE as error:
        raise ValueError("one of them cannot be read") from error
    if [crc32(body) for body, _ in documents] != [check for _, check in documents]:
        raise ValueError("one of them is not what was written")
    return [each for each in found if each.v <= VERSION]


def _read(decode: Callable[[bytes], _Doc], body: bytes, is_whole: bool, where: str) -> _Doc:
    if not is_whole:
        raise Corrupt(where, "its record is not what was written")
    try:
        document = decode(body)
    except _UNREADABLE as error:
        raise Corrupt(where, f"its record cannot be read: {error}") from error
    if document.v > VERSION:
        raise FormatTooNew(where, document.v, VERSION)
    return document


def _digest(body: bytes) -> bytes:
    """16 bytes that tell this document from any other."""
    return blake2b(body, digest_size=16, person=b"holdfast.record").digest()
