"""The judge's own opinion on refusals, held against the list that was made by reading them."""

import json

import pytest

from holdfast.errors import (
    AuthError,
    ContentBlocked,
    ContextOverflow,
    InvalidRequest,
    Overloaded,
    RateLimited,
)
from holdfast.testing.replay import readings
from holdfast.testing.replay.recordings import read_file
from holdfast.testing.replay.refused import expected
from test_provider_failures import (
    REFUSED,
    REFUSED_IN_STREAM,
    TRAFFIC,
    expected_of,
    needs_traffic,
)


@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        (401, "no", AuthError),
        (403, "no", AuthError),
        (429, "Request too large: tokens per min. Reduce the length of the messages", RateLimited),
        (413, "too large", ContextOverflow),
        (413, "too large on tokens per minute (TPM): Limit 6000, Requested 9000", RateLimited),
        (400, "Your request exceeded model token limit: 8192", ContextOverflow),
        (400, "Range of input length should be [1, 30720]", ContextOverflow),
        (400, "prompt token count of 130000 exceeds the limit of 128000", ContextOverflow),
        (529, "Overloaded", Overloaded),
        (503, "", Overloaded),
        (404, "model: x", InvalidRequest),
        (400, "prompt is too long: 200001 tokens > 200000 maximum", ContextOverflow),
        (400, "messages.0: bad", InvalidRequest),
        (200, "You've hit your session limit · resets 3pm", RateLimited),
        (200, "Claude AI usage limit reached|1760000000", RateLimited),
        (200, "Not logged in · Please run /login", AuthError),
        (200, {"type": "overloaded_error", "message": "Overloaded"}, Overloaded),
    ],
)
def test_a_refusal_is_one_error(status, said, kind):
    assert expected(status, {"error": said}) == (kind,)


@pytest.mark.parametrize(
    ("status", "said", "kinds"),
    [
        (429, "The engine is currently overloaded", (RateLimited, Overloaded)),
        (403, "x requires moderation. Your input was flagged", (AuthError, ContentBlocked)),
        (400, "Input data may contain inappropriate content", (ContentBlocked, InvalidRequest)),
        (400, "User location is not supported for the API use.", (AuthError, InvalidRequest)),
    ],
)
def test_where_two_errors_are_as_good_both_are(status, said, kinds):
    assert expected(status, {"error": said}) == kinds


@needs_traffic
def test_the_judge_agrees_with_the_list(subtests):
    """Of every recorded refusal of a vendor that is built."""
    judged = 0
    for path in sorted(TRAFFIC.glob("*/*.json")):
        kinds = expected_of(path, REFUSED) or expected_of(path, REFUSED_IN_STREAM)
        if kinds is None:
            continue
        kinds = kinds if isinstance(kinds, tuple) else (kinds,)
        for exchange in read_file(path).exchanges:
            reading = None if exchange.why_not else readings.read(exchange)
            if reading is None or not reading.error:
                continue
            judged += 1
            with subtests.test(path=path.name, number=exchange.number):
                found = expected(exchange.status, reading.error)
                assert kinds[0] in found, json.dumps(reading.error)[:300]

    assert judged > 50
