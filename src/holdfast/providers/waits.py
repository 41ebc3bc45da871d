"""How long a service asks its callers to wait, in seconds, out of the many ways to say so.

    retry-after-ms: 1250                      retry-after: 20
    retry-after: Wed, 21 Oct 2026 07:28:00 GMT
    {"@type": ".../google.rpc.RetryInfo", "retryDelay": "48s"}
    "Please try again in 1m26.4s."            "You will regain access on 2026-01-01 at 00:00 UTC."
    x-ratelimit-reset-tokens: 6m0s            x-ratelimit-reset: 1754667660000
    anthropic-ratelimit-tokens-reset: 2026-10-21T07:28:00Z

A moment is compared with the `date` that the service itself sent, where it did: its clock made
both. What cannot be understood is no wait at all.
"""

import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from holdfast.providers.refusals import Refusal

_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,15})?")
_PIECE = re.compile(
    r"\s{0,3}(\d{1,12}(?:\.\d{1,15})?)\s{0,3}"
    r"(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?)(?![a-z])",
    re.IGNORECASE,
)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_ANNOUNCED = re.compile(
    r"\b(?:(?:try again|retry|resets?)\s(?:in|after)|please wait)\b", re.IGNORECASE
)
_REGAIN = re.compile(r"\bregain access on (\d{4}-\d\d-\d\d) at (\d\d:\d\d) UTC")
_UNTIL = re.compile(r"\blimit reached\|(\d{10})\b")
_RESETS = re.compile(r"(?:x|anthropic)-ratelimit-(?:reset(?P<what>-.+)?|(?P<kind>.+)-reset)")
_EPOCH_S = 1e9  # smaller numbers are spans, larger ones are moments
_EPOCH_MS = 1e11


def asked_s(headers: Mapping[str, str], refusal: Refusal, now_s: float | None) -> float | None:
    """What the service asks for; `now_s` is the time, if it is not to be looked up."""
    now_s = _now_s(headers) if now_s is None else now_s
    return next((wait for wait in _asked(headers, refusal, now_s) if wait is not None), None)


def reset_s(headers: Mapping[str, str], now_s: float | None) -> float | None:
    """When the limits that are used up are filled again; of all limits, if none is said to be."""
    now_s = _now_s(headers) if now_s is None else now_s
    waits: dict[str, float] = {}
    for name, value in headers.items():
        match = _RESETS.fullmatch(name)
        wait = _span_s(value, now_s) if match else None
        if match and wait is not None:
            waits[(match["what"] or match["kind"] or "").strip("-")] = wait
    used_up = [wait for what, wait in waits.items() if _remaining(headers, what) == 0]
    return max(used_up or waits.values(), default=None)


def _asked(headers: Mapping[str, str], refusal: Refusal, now_s: float) -> Iterator[float | None]:
    wait_ms = _NUMBER.fullmatch(headers.get("retry-after-ms", ""))
    # 0 ms beside `retry-after: 1` was recorded from Azure: no answer, rather than no wait.
    yield float(wait_ms[0]) / 1000 if wait_ms and float(wait_ms[0]) > 0 else None
    yield _span_s(headers.get("retry-after", ""), now_s)
    yield from (_duration_s(delay) for delay in refusal.delays)
    yield from (_said_s(sentence, now_s) for sentence in refusal.sentences)


def _said_s(sentence: str, now_s: float) -> float | None:
    announced = _ANNOUNCED.search(sentence)
    if announced:
        return _duration_s(sentence, announced.end())
    regain = _REGAIN.search(sentence)
    if regain:
        return _moment_s(f"{regain[1]}T{regain[2]}Z", now_s)
    until = _UNTIL.search(sentence)  # the Claude CLI
    return _span_s(until[1], now_s) if until else None


def _span_s(value: str, now_s: float) -> float | None:
    value = value.strip()
    if not _NUMBER.fullmatch(value):
        wait = _duration_s(value)
        return _moment_s(value, now_s) if wait is None else wait
    number = float(value)
    if number < _EPOCH_S:
        return number
    return max(0.0, (number / 1000 if number > _EPOCH_MS else number) - now_s)


def _duration_s(words: str, at: int = 0) -> float | None:
    """Such as 174ms, 3.89s, 6m0s, 161h39m41s, 26 seconds."""
    total = None
    while piece := _PIECE.match(words, at):
        unit = piece[2].lower()
        scale = _SECONDS["ms"] if unit.startswith(("ms", "mil")) else _SECONDS[unit[0]]
        total = (total or 0.0) + float(piece[1]) * scale
        at = piece.end()
    return None if total is None else round(total, 6)


def _moment_s(value: str, now_s: float) -> float | None:
    try:
        moment = datetime.fromisoformat(value) if value[:1].isdigit() else _http_date(value)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return max(0.0, moment.timestamp() - now_s)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _http_date(value: str) -> datetime:
    return parsedate_to_datetime(value[:60])


def _now_s(headers: Mapping[str, str]) -> float:
    since_1970_s = _moment_s(headers.get("date", ""), 0.0)
    return since_1970_s or time.time()


def _remaining(headers: Mapping[str, str], what: str) -> float | None:
    names = (f"x-ratelimit-remaining-{what}".rstrip("-"), f"anthropic-ratelimit-{what}-remaining")
    values = (_NUMBER.fullmatch(headers.get(name, "")) for name in names)
    return next((float(value[0]) for value in values if value), None)
