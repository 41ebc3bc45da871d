"""Times as people say and read them."""

import re
from datetime import UTC, datetime, timedelta

from holdfast.cli.failures import USAGE, Failure

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGO = re.compile(r"(\d{1,6})([mhdw])\Z")


def moment(text: str) -> datetime:
    """The time that is meant: 7d ago, or a date, with a time of day or without."""
    if ago := _AGO.match(text):
        return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        raise Failure(
            f"{text!r} is no time: say 30m, 12h, 7d, 4w, 2026-01-31 or 2026-01-31T12:00", USAGE
        ) from None


def shown(when: datetime) -> str:
    """For people: how long ago, or the day."""
    now = datetime.now(UTC)
    seconds = (now - when).total_seconds()
    if 0 <= seconds < 60:
        return "just now"
    if 0 <= seconds < 3600:
        return f"{seconds // 60:.0f} min ago"
    here = when.astimezone()
    if here.date() == now.astimezone().date():
        return f"{here:%H:%M}"
    return f"{here:%Y-%m-%d %H:%M}"


def plain(when: datetime) -> str:
    """For programs: UTC, RFC 3339."""
    return when.astimezone(UTC).isoformat().replace("+00:00", "Z")
