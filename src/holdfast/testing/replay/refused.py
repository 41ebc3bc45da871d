"""Which of our errors a recorded refusal should become, judged apart from `holdfast.providers`.

By the status, the code and a few words of the answer. Where two errors are as good (a service
that has no credit for you says 429 or 402), both are accepted: what is looked for is an error
that sends the caller the wrong way.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from holdfast.errors import (
    AuthError,
    ConnectionFailed,
    ContentBlocked,
    ContextOverflow,
    InvalidRequest,
    OutputLimit,
    Overloaded,
    ProtocolError,
    ProviderError,
    RateLimited,
)

Kinds = tuple[type[ProviderError], ...]

_CONTEXT = re.compile(
    r"context.?(?:length|window|size)|maximum context|prompt (?:is )?too long|"
    r"input (?:token count|length|is too long)[^.]*exceed|too many (?:input )?tokens|"
    r"(?:maximum|max) (?:prompt|input|number of) ?(?:tokens|length)|tokens_limit_reached|"
    r"exceeds the maximum number of tokens|reduce the length|exceeded model token limit|"
    r"range of input length|prompt exceeds|cannot exceed \d+ - received|max_prompt_tokens|"
    r"prompt token count of \d+ exceeds|max_new_tokens`? must be"
)
_KEY = re.compile(
    r"api.?key|unauthori[sz]ed|authenticat|permission|credential|access token|"
    r"logged in|/login"
)
_CREDIT = re.compile(
    r"insufficient_quota|credit balance|no credit|billing|insufficient (?:funds|balance)"
)
_FILTER = re.compile(
    r"content_?filter|content management policy|responsibleai|safety (?:system|filter)|"
    r"was flagged|moderation|inappropriate content|data_?inspection|sensitive content"
)
_PLACE = re.compile(r"location is not supported|country, region")
_LIMIT_IN_TIME = re.compile(
    r"rate.?limit|per min|per day|tokens per|requests per|tpm|rpm|too many requests|quota|"
    r"resource.?exhausted|usage limit|hit your .{0,20}limit"
)
_BUSY = re.compile(
    r"overloaded|api_error|server_error|internal|unavailable|capacity|try again later|timeout"
)
_FULL = re.compile(r"overloaded|capacity")
_OUTPUT = re.compile(r"token limit reached|max_tokens|output limit")
_INVALID = re.compile(r"invalid_request|not_found|validation failed|tool_use_failed|bad.?request")

_STATUSES: dict[int, Kinds] = {
    **dict.fromkeys((401, 402, 403, 407), (AuthError,)),
    408: (ConnectionFailed, Overloaded),
    413: (ContextOverflow,),
    **dict.fromkeys((409, 425, 498), (Overloaded,)),
    429: (RateLimited,),
}


def expected(status: int, error: Any) -> Kinds:
    """The errors that are right for an answer of this `status` that says `error`.

    A stream may say two things, one after the other: either decides.
    """
    if status < 400 and isinstance(error, list):
        return tuple(kind for each in error for kind in expected(status, each))
    words = " ".join(_words(error)).lower()
    if status >= 400:
        return _of_status(status, words)
    inside = [_of_status(code, words) for code in _codes(error)]
    return (
        inside[0] + _of_words(words) if inside else _of_words(words) or (Overloaded, ProtocolError)
    )


def _of_status(status: int, words: str) -> Kinds:
    if status == 429:  # never a matter of the window, whatever it says of tokens
        if _CREDIT.search(words):
            return (RateLimited, AuthError)
        # Nobody's limit but the service's own: either says to come again later.
        return (RateLimited, Overloaded) if _FULL.search(words) else (RateLimited,)
    if status >= 500:
        return (Overloaded,)
    if status == 413 and _LIMIT_IN_TIME.search(words):
        return (RateLimited,)
    if status == 403 and _FILTER.search(words):
        return (AuthError, ContentBlocked)
    if status in _STATUSES:
        return _STATUSES[status]
    if _CONTEXT.search(words) and not _LIMIT_IN_TIME.search(words):
        return (ContextOverflow,)
    if _KEY.search(words) and "signature" not in words:
        return (AuthError, InvalidRequest)
    if _CREDIT.search(words) or _PLACE.search(words):
        return (AuthError, InvalidRequest)
    return (ContentBlocked, InvalidRequest) if _FILTER.search(words) else (InvalidRequest,)


def _of_words(words: str) -> Kinds:
    """In a stream there is no status; what the event says has to do."""
    table: tuple[tuple[re.Pattern[str], Kinds], ...] = (
        (_CREDIT, (AuthError, RateLimited)),
        (_LIMIT_IN_TIME, (RateLimited,)),
        (_CONTEXT, (ContextOverflow,)),
        (_OUTPUT, (OutputLimit,)),
        (_KEY, (AuthError,)),
        (_FILTER, (ContentBlocked,)),
        (_INVALID, (InvalidRequest,)),
        (_BUSY, (Overloaded,)),
    )
    return next((kinds for pattern, kinds in table if pattern.search(words)), ())


def _words(value: Any) -> Iterator[str]:
    """Every text in an error that is the service's own."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, each in value.items():
            if name not in ("failed_generation", "input", "prompt"):
                yield from _words(each)
    elif isinstance(value, list):
        for each in value:
            yield from _words(each)


def _codes(error: Any) -> list[int]:
    text = json.dumps(error)
    found = re.findall(r'"(?:code|status|status_code)": "?([45]\d\d)\b', text)
    return [int(code) for code in found]
