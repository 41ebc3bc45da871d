"""What tells an entry from all others: its id and its time.

A caller who gives none gets new ones. On disk both are always there, and a row without them is
damaged; so "not given" has to be told apart from every value that can be given. That is what the
two objects NO_ID and NO_TIME are for: they are known by identity, and no entry ever holds them.
"""

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

from holdfast import ids
from holdfast.errors import InvalidInput

if TYPE_CHECKING:
    from holdfast.entries import EntryValue
    from holdfast.messages import Message

NO_ID = "".join(("no", " id"))  # made at run time, so that no literal is the same object
NO_TIME = datetime(1, 1, 1, tzinfo=UTC)


def settle_identity(entry: "Message | EntryValue") -> None:
    """Give a new entry its id and time, or check those that the caller gave."""
    entry._set("id", ids.new_id() if entry.id is NO_ID else entry.id)
    entry._settle_texts("id")
    if not entry.id:
        raise InvalidInput("id", "is empty: leave it out to get a new one")
    is_new = entry.timestamp is NO_TIME
    entry._set("timestamp", ids.now() if is_new else settled_time(entry.timestamp, "timestamp"))


def has_identity(entry: "Message | EntryValue") -> bool:
    """Whether a decoded entry came with its id and its time."""
    return entry.id is not NO_ID and entry.timestamp is not NO_TIME and entry.id != ""


def settled_time(time: object, what: str) -> datetime:
    """The same time with a fixed offset, or InvalidInput unless it is a datetime with a zone."""
    if not isinstance(time, datetime):
        raise InvalidInput(what, f"is a datetime, not {type(time).__name__}")
    offset = time.utcoffset()
    if offset is None:
        raise InvalidInput(what, "has no zone: use datetime.now(timezone.utc), or astimezone()")
    if type(time) is datetime and type(time.tzinfo) is timezone and not offset % _MINUTE:
        return time
    if offset % _MINUTE:  # RFC 3339 has no place for it
        try:
            time, offset = time.astimezone(UTC), timedelta(0)
        except OverflowError:
            raise InvalidInput(what, "is not within the years 1 to 9999 in UTC") from None
    return datetime.combine(time.date(), time.time(), timezone(offset))


_MINUTE = timedelta(minutes=1)
