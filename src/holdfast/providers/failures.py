"""What a service's refusal is, as one of our errors.

`failure` looks at three things, in this order, and the first that knows decides (the tables of the
first two are in `sentences.py`):

1. CODES, the word that a vendor gives to the kind of error (`type`, `code`, `status`, `reason`).
   Words that say little, such as `invalid_request_error`, are asked only after all else.
2. SEEN, sentences: each pattern stands beside a sentence it was seen in, and where.
3. The HTTP status.

A limit on tokens in a time is never taken for a limit of the window. Both kinds of sentence
speak of tokens, limits and requests that are too large; to mistake the first for the second folds
history that had nothing wrong with it. So limits in a time come first in both tables, no
pattern of the window fits a sentence about time, and a 429 is believed to be one unless a code
says that it is not.

What no wait mends has the error of what does: an account without credit is AuthError, although
some services answer 429. A quota that is used up for days is RateLimited, with those days.
"""

import re
from collections.abc import Mapping

from holdfast.errors import (
    AuthError,
    ConnectionFailed,
    ContextOverflow,
    InvalidRequest,
    Overloaded,
    ProtocolError,
    ProviderError,
    RateLimited,
)
from holdfast.providers import waits
from holdfast.providers.refusals import Refusal, read, squeezed
from holdfast.providers.sentences import CODES, SEEN, VAGUE_CODES, Kind

# What a status means when nothing better is said. 413 is a matter of size, whatever the unit;
# 498 is Groq's for a full tier, 529 Anthropic's, 52x Cloudflare's.
_STATUSES: dict[int, Kind] = {
    **dict.fromkeys((401, 402, 403, 407), AuthError),
    **dict.fromkeys((405, 406), ProtocolError),
    **dict.fromkeys((409, 425, 498), Overloaded),
    408: ConnectionFailed,
    413: ContextOverflow,
    429: RateLimited,
}
# A page instead of JSON comes from somebody on the way; these say the same whoever says them.
_STATUSES_OF_PAGES = (401, 407, 413, 429)
_WAITING = (RateLimited, Overloaded, ConnectionFailed)

_COUNT = "[0-9][0-9,]{0,15}"
_PATTERNS = tuple(
    re.compile(re.sub(r"<(found|more|max)>", rf"(?P<\1>{_COUNT})", seen.pattern), re.IGNORECASE)
    for seen in SEEN
)


def _by_code(table: tuple[tuple[Kind, str], ...]) -> tuple[tuple[Kind, frozenset[str]], ...]:
    return tuple((kind, frozenset(map(squeezed, words.split()))) for kind, words in table)


_CODES, _VAGUE_CODES = _by_code(CODES), _by_code(VAGUE_CODES)


def failure(
    provider: str,
    status: int | None,
    headers: Mapping[str, str],
    body: bytes | object,
    *,
    in_stream: bool = False,
    now_s: float | None = None,
) -> ProviderError:
    """The error to raise for an answer that is none. Never raises itself.

    `status` is None if there was no answer. `body` is what came: bytes, text, or JSON that was
    parsed already. `in_stream`: it came as an event of a stream that had begun well, or the
    stream ended where it should not (with an empty body). `now_s` is for dates in the headers.
    """
    lower = {str(name).lower(): str(value) for name, value in headers.items()}
    refusal = read(lower, body)
    kind = _kind(status, refusal, in_stream)
    wait_s = waits.asked_s(lower, refusal, now_s) if kind in _WAITING else None
    if wait_s is None and kind is RateLimited:
        wait_s = waits.reset_s(lower, now_s)
    detail = refusal.detail or _described(status, refusal)
    facts = (detail, provider, status, refusal.request_id, wait_s)
    return ContextOverflow(*facts, *_tokens(refusal)) if kind is ContextOverflow else kind(*facts)


def _kind(status: int | None, refusal: Refusal, in_stream: bool) -> Kind:
    if refusal.is_html:
        return _kind_of_page(status)
    return (
        _first(_CODES, refusal)
        or _first_seen(refusal, is_limit=status == 429)
        or _precise(status)
        or _first(_VAGUE_CODES, refusal)
        or _inner(refusal)
        or _kind_of_rest(status, refusal, in_stream)
    )


def _kind_of_page(status: int | None) -> Kind:
    if status in _STATUSES_OF_PAGES or (status or 0) >= 500:
        return _precise(status) or ProtocolError
    return ProtocolError


def _kind_of_rest(status: int | None, refusal: Refusal, in_stream: bool) -> Kind:
    if status is not None and not 200 <= status < 300 and not refusal.is_empty:
        return InvalidRequest if 400 <= status < 500 else ProtocolError
    if in_stream:  # the request was good enough to begin: what failed is on the other side
        return ConnectionFailed if refusal.is_empty else Overloaded
    return ConnectionFailed if status is None else ProtocolError


def _first(table: tuple[tuple[Kind, frozenset[str]], ...], refusal: Refusal) -> Kind | None:
    return next((kind for kind, codes in table if codes & refusal.codes), None)


def _first_seen(refusal: Refusal, is_limit: bool) -> Kind | None:
    for seen, pattern in zip(SEEN, _PATTERNS, strict=True):
        if is_limit and seen.kind is ContextOverflow:
            continue
        if any(map(pattern.search, refusal.sentences)):
            return seen.kind
    return None


def _precise(status: int | None) -> Kind | None:
    if status is not None and 500 <= status < 600:
        return Overloaded
    return _STATUSES.get(status) if status is not None else None


def _inner(refusal: Refusal) -> Kind | None:
    """By a status inside the body, as in an event of a stream whose own status was 200."""
    inner = next((status for status in refusal.statuses if status >= 400), None)
    return None if inner is None else _precise(inner) or InvalidRequest


def _tokens(refusal: Refusal) -> tuple[int | None, int | None]:
    """How many tokens were sent (and asked for), and how many the window holds; if it was said."""
    for seen, pattern in zip(SEEN, _PATTERNS, strict=True):
        match = next(filter(None, map(pattern.search, refusal.sentences)), None)
        if match and seen.kind is ContextOverflow:
            counts = {name: _count(value) for name, value in match.groupdict().items() if value}
            found = counts.get("found")
            more = counts.get("more", 0)
            return (None if found is None else found + more), counts.get("max")
    return None, None


def _count(digits: str) -> int:
    return int(digits.replace(",", ""))


def _described(status: int | None, refusal: Refusal) -> str:
    """In our words, where the service used none."""
    if status is not None and 300 <= status < 400:
        return "the service sends its callers to another address"
    if refusal.is_html:
        return "a web page came instead of JSON"
    if refusal.is_empty:
        return "no answer came" if status is None else "the answer is empty"
    return ""
