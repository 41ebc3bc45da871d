"""What services say when they refuse, and which of our errors comes of it.

The sentences are the services' own. Which error each of them is was decided by reading it; the
lists below are that decision, and the code is held against them.
"""

import copy
import json
import os
import pickle
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from holdfast.providers import refusals
from holdfast.providers.failures import _PATTERNS, failure
from holdfast.providers.sentences import CODES, SEEN, VAGUE_CODES

CORPUS = Path(os.environ.get("HOLDFAST_CORPUS") or Path(__file__).parents[2] / "shared" / "corpus")
TRAFFIC = CORPUS / "traffic"
needs_traffic = pytest.mark.skipif(
    not TRAFFIC.is_dir(), reason=f"no recorded traffic in {CORPUS} (HOLDFAST_CORPUS)"
)

# Of each file the beginning of its name, as far as it is needed; then the error of every exchange
# in it that has a status of 400 or more.
REFUSED = {
    "anthropic/braintrust-sdk-python--test_anthropic_client_error-17bb07": InvalidRequest,
    "anthropic/dd-trace-py--anthropic_completion_invalid_api_key-3ce93b": AuthError,
    "anthropic/dd-trace-py--anthropic_v1_messages_post_d65e09ee-bb07b4": AuthError,
    "anthropic/ruby_llm--chat_real_error_scenarios_anthropic_claude-haiku": ContextOverflow,
    "azure-openai/ruby_llm--chat_error_handling_with_azure_grok": AuthError,
    "azure-openai/ruby_llm--chat_real_error_scenarios_azure_grok": RateLimited,
    "errors-reported/anthropic--400-prompt-too-long-1m": ContextOverflow,
    "errors-reported/anthropic--400-prompt-too-long.": ContextOverflow,
    "errors-reported/anthropic--429-rate-account": RateLimited,
    "errors-reported/anthropic--500-internal-2": Overloaded,
    "errors-reported/anthropic--529-overloaded": Overloaded,
    "errors-reported/code-assist--400-bad-signature-array": InvalidRequest,
    "errors-reported/code-assist--403-permission": AuthError,
    "errors-reported/code-assist--429-quota-exhausted": RateLimited,
    "errors-reported/code-assist--429-resource-exhausted-array": RateLimited,
    "errors-reported/code-assist--503-no-capacity": Overloaded,
    "errors-reported/github-models--400-unknown-model": InvalidRequest,
    "errors-reported/github-models--401-not-accessible": AuthError,
    "errors-reported/github-models--413-tokens-limit": ContextOverflow,
    "errors-reported/google--400-missing-signature": InvalidRequest,
    "errors-reported/google--429-exhausted": RateLimited,
    "errors-reported/google--503-overloaded": Overloaded,
    "errors-reported/ollama--400-no-tools": InvalidRequest,
    "errors-reported/ollama--404-no-model": InvalidRequest,
    "errors-reported/ollama--500-memory-2": Overloaded,
    "errors-reported/openai-chat--400-context-length-completion": ContextOverflow,
    "errors-reported/openai-chat--429-rate-tpm-ms": RateLimited,
    "errors-reported/openai-chat--429-rate-tpm.": RateLimited,
    "errors-reported/openai-chat--500-server-error": Overloaded,
    "github-models/github-models--ruby_llm--chat_error_handling_with_azure": AuthError,
    "github-models/github-models--ruby_llm--chat_real_error_scenarios_azure": RateLimited,
    "google/adk-go--TestModel_TrackingHeaders_verifies_headers_are_set_vertex": AuthError,
    "google/opentelemetry-python-contrib--test_generate_content_invalid_role": InvalidRequest,
    "google/opentelemetry-python-contrib--test_generate_content_invalid_temp": InvalidRequest,
    "google/opentelemetry-python-contrib--test_generate_content_missing_model": InvalidRequest,
    "google/pydantic-ai--test_model_name_suggestion_google": InvalidRequest,
    "google/pydantic-ai--test_multimodal_tool_return_matrix_direct-url": InvalidRequest,
    "google/pydantic-ai--test_multimodal_tool_return_matrix_tool_return": InvalidRequest,
    "google/ruby_llm--chat_real_error_scenarios_gemini_gemini-2_5-flash": RateLimited,
    "google/ruby_llm--chat_real_error_scenarios_vertexai_gemini-2_5": ContextOverflow,
    "ollama/openinference--test_chat_error_records_model_name": InvalidRequest,
    "ollama/ruby_llm--chat_real_error_scenarios_ollama_cloud": ContextOverflow,
    "openai-chat/openinference--TestInputValueImageHiding": InvalidRequest,
    "openai-chat/openinference--TestLM.test_exception_event_recorded": AuthError,
    "openai-chat/openinference--test_error_status_code_and_exception": AuthError,
    "openai-chat/openllmetry--test_agents_and_tools": InvalidRequest,
    "openai-chat/openllmetry--test_vision": InvalidRequest,
    "openai-chat/pydantic-ai--test_model_name_suggestion": InvalidRequest,
    "openai-chat/pydantic-ai--test_openai_o1_mini_system_role": InvalidRequest,
    "openai-compatible/langchaingo--TestOpenRouterStreaming": RateLimited,
    "openai-compatible/pydantic-ai--test_deepseek_responses_rejects": InvalidRequest,
    "openai-compatible/pydantic-ai--test_tool_use_failed_error-8aa987": InvalidRequest,
    "openai-compatible/ruby_llm--chat_error_handling_with_mistral": AuthError,
    "openai-compatible/ruby_llm--chat_error_handling_with_perplexity": AuthError,
    "openai-compatible/ruby_llm--chat_error_handling_with_xai": AuthError,
    "openai-compatible/ruby_llm--chat_real_error_scenarios_deepseek": ContextOverflow,
    "openai-responses/chatlas--test_parallel_chat_error_continue_mode": AuthError,
    "openai-responses/dd-trace-py--response_create_error": InvalidRequest,
    "openai-responses/dd-trace-py--response_error": AuthError,
    "openai-responses/opentelemetry-python-contrib--test_responses_create": InvalidRequest,
    "openai-responses/pydantic-ai--test_openai_responses_thinking_with_mod": InvalidRequest,
    "openai-responses/ruby_llm--chat_error_handling_with_openai": AuthError,
}

# Errors in streams that began with 200: each event that speaks of one, in order.
REFUSED_IN_STREAM = {
    "anthropic/derived--in-stream-overloaded--dd-trace-py": (Overloaded,),
    "anthropic/derived--in-stream-overloaded--openinference": (Overloaded,),
    "anthropic/derived--in-stream-overloaded--pydantic-ai": (Overloaded,),
    # Its request allowed ten tokens, and ten came.
    "openai-compatible/pydantic-ai--test_openrouter_stream_error": (OutputLimit,),
    "openai-compatible/pydantic-ai--test_tool_use_failed_error_streaming": (InvalidRequest,),
    "openai-responses/ai--openai-error.1": (AuthError, AuthError),  # no credit
    # "Foobar", and a request that is larger than what a minute allows
    "openai-responses/prism--stream-unknown-error": (Overloaded, RateLimited),
}


def said(sentence, **fields):
    return {"error": {"message": sentence, **fields}}


def of(status, body, headers=(), **options):
    return failure("vendor", status, dict(headers), body, **options)


def name_of(path):
    return f"{path.parent.name}/{path.name}"


def expected_of(path, table):
    found = [kind for name, kind in table.items() if name_of(path).startswith(name)]
    assert len(found) <= 1, path
    return found[0] if found else None


def recorded():
    for path in sorted(TRAFFIC.glob("*/*.json")):
        for number, exchange in enumerate(json.loads(path.read_bytes())["exchanges"]):
            yield path, number, exchange["response"]


def error_events(response):
    """The events of a stream, and bodies, that hold an error of the service itself."""
    raw = response.get("sse") or response.get("ndjson") or ""
    lines = [line.removeprefix("data:").strip() for line in raw.splitlines()]
    events = [json.loads(line) for line in lines if line.startswith("{")]
    body = response.get("body")
    events += body if isinstance(body, list) else [body]
    for event in events:
        event = event if isinstance(event, dict) else {}
        inner = event["response"] if isinstance(event.get("response"), dict) else {}
        if event.get("error") or inner.get("error"):
            yield event


# The table


@pytest.mark.parametrize("seen", SEEN, ids=lambda seen: f"{seen.where}: {seen.sentence[:40]}")
def test_every_row_fits_its_sentence_and_no_row_of_another_error_does(seen):
    fits = {
        other.pattern: other.kind
        for other, pattern in zip(SEEN, _PATTERNS, strict=True)
        if pattern.search(seen.sentence)
    }

    assert fits.get(seen.pattern) is seen.kind
    assert set(fits.values()) == {seen.kind}
    assert seen.where


def test_the_order_of_the_table_lets_no_row_hide_another():
    """Of two rows that fit a sentence the one that reads its numbers comes first."""
    for seen in SEEN:
        if "<found>" in seen.pattern:
            error = of(400, said(seen.sentence))

            assert error.tokens_found, seen.sentence
            assert error.tokens_max, seen.sentence


def test_every_code_stands_in_one_row():
    words = [refusals.squeezed(word) for _, line in CODES + VAGUE_CODES for word in line.split()]

    assert [word for word, times in Counter(words).items() if times > 1] == []


@pytest.mark.parametrize("table", [CODES, VAGUE_CODES], ids=["codes", "vague codes"])
def test_a_code_alone_is_enough(table):
    """Also in a stream of status 200 and with no words, wherever a vendor puts its code."""
    for kind, words in table:
        for code in words.split():
            for body in ({"error": {"code": code}}, {"type": "error", "error": {"type": code}}):
                error = of(200, body, in_stream=True)

                assert type(error) is kind, code


# Recorded traffic


@needs_traffic
def test_every_recorded_refusal_is_the_error_that_a_reader_takes_it_for(subtests):
    """Status, headers and body as recorded; as bytes and as parsed JSON."""
    checked = Counter()
    for path, number, response in recorded():
        if response["status"] < 400:
            continue
        with subtests.test(path=name_of(path), exchange=number):
            expected = expected_of(path, REFUSED)
            body = response["body"]
            given = (path.parent.name, response["status"], response["headers"])

            error = failure(*given, json.dumps(body).encode())
            again = failure(*given, body)

            assert type(error) is expected
            assert again.args == error.args
            assert error.detail
            assert error.status == response["status"]
            checked[name_of(path)] += 1

    assert len(checked) == len(REFUSED)


@needs_traffic
def test_every_error_recorded_inside_a_stream_is_the_error_that_a_reader_takes_it_for(subtests):
    checked = 0
    for path, _, response in recorded():
        events = list(error_events(response)) if response["status"] < 400 else []
        if not events:
            continue
        with subtests.test(path=name_of(path)):
            errors = [of(200, event, in_stream=True) for event in events]

            assert tuple(map(type, errors)) == expected_of(path, REFUSED_IN_STREAM)
            checked += 1

    assert checked == len(REFUSED_IN_STREAM)


@needs_traffic
def test_no_recorded_rate_limit_is_a_context_overflow_under_any_status():
    """Not even when a gateway lost the status, the headers and the codes."""
    for path, _, response in recorded():
        if expected_of(path, REFUSED) is RateLimited and response["status"] >= 400:
            sentence = of(429, response["body"]).detail
            for status in (200, 400, 413, 429, 500, None):
                assert type(of(status, said(sentence))) is not ContextOverflow, sentence


# Each error, in words of each vendor


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        # the key, and what it pays for
        (401, {"type": "error", "error": {"type": "authentication_error"}}, AuthError),
        (403, {"type": "error", "error": {"type": "permission_error"}}, AuthError),
        (401, said("You must be a member", type="invalid_request_error"), AuthError),
        (400, said("API key not valid.", code=400, status="INVALID_ARGUMENT"), AuthError),
        (429, said("You exceeded your quota", code="insufficient_quota"), AuthError),
        (402, said("Insufficient Balance", code="invalid_request_error"), AuthError),
        (401, {"message": "Bad credentials"}, AuthError),
        (400, said("This organization has been disabled."), AuthError),
        (403, b"", AuthError),
        # limits in a time
        (429, b"", RateLimited),
        (429, b"<html><title>429 Too Many Requests</title></html>", RateLimited),
        (429, said("slow", type="requests"), RateLimited),
        (200, said("Too many requests", code=429), RateLimited),
        (429, [said("x", status="RESOURCE_EXHAUSTED")], RateLimited),
        # no room
        (429, said("That model is currently overloaded with other requests."), Overloaded),
        (429, said("The engine is currently overloaded, please try again later"), Overloaded),
        (429, said("x", details=[{"reason": "MODEL_CAPACITY_EXHAUSTED"}]), Overloaded),
        (529, b"", Overloaded),
        (503, b"Service Unavailable", Overloaded),
        (502, b"<html><head><title>502 Bad Gateway</title></head></html>", Overloaded),
        (504, b"", Overloaded),
        (498, said("Flex tier capacity exceeded"), Overloaded),
        # the window
        (400, said("x", code="context_length_exceeded"), ContextOverflow),
        (413, b"", ContextOverflow),
        (413, {"error": {"type": "request_too_large"}}, ContextOverflow),
        (400, said("x", type="exceed_context_size_error", n_ctx=8), ContextOverflow),
        (500, {"error": "the request exceeds the available context size"}, ContextOverflow),
        (400, b'{"object":"error","message":"maximum context length is 9 tokens', ContextOverflow),
        # the answer
        (400, said("max_tokens or model output limit was reached"), OutputLimit),
        (200, {"response": {"incomplete_details": {"reason": "max_output_tokens"}}}, OutputLimit),
        # the filter
        (400, said("x", code="content_filter", innererror={}), ContentBlocked),
        (200, {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}, ContentBlocked),
        (403, {"code": "no", "error": "Content violates usage guidelines."}, ContentBlocked),
        (400, said("Content Exists Risk", type="invalid_request_error"), ContentBlocked),
        # the request
        (404, {"error": {"type": "not_found_error", "message": "model: x"}}, InvalidRequest),
        (400, said("tool_call_id call_1 not found in previous messages"), InvalidRequest),
        (422, {"detail": [{"loc": ["body"], "msg": "Field required"}]}, InvalidRequest),
        (400, b"Bad Request", InvalidRequest),
        (200, said("unknown parameter", code=400), InvalidRequest),
        # somebody else
        (404, b"404 page not found", ProtocolError),
        (404, {"detail": "Not Found"}, ProtocolError),
        (200, b"<!DOCTYPE html><title>Log in to the hotel</title>", ProtocolError),
        (403, b"<html><title>Just a moment...</title></html>", ProtocolError),
        (301, b"", ProtocolError),
        (302, b"<html>Found</html>", ProtocolError),
        (400, b"", ProtocolError),
        (200, b"", ProtocolError),
        (200, b"\x00\xff\xfe", ProtocolError),
        (405, said("Method Not Allowed"), ProtocolError),
        # nobody
        (None, b"", ConnectionFailed),
        (None, None, ConnectionFailed),
        (None, "All connection attempts failed", ConnectionFailed),
        (408, b"", ConnectionFailed),
        (200, said("Connection error."), ConnectionFailed),
    ],
)
def test_the_error_says_what_the_caller_can_do(status, body, kind):
    assert type(of(status, body)) is kind


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"type": "error", "error": {"type": "overloaded_error"}}, Overloaded),
        ({"type": "error", "error": {"type": "api_error"}}, Overloaded),
        ({"error": {"message": "Foobar"}}, Overloaded),
        ({"error": {"message": "upstream", "code": 502}}, Overloaded),
        ({"error": {"message": "Unknown field", "code": 400}}, InvalidRequest),
        ('event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n', Overloaded),
        ('API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}', Overloaded),
        (b"", ConnectionFailed),
        (None, ConnectionFailed),
    ],
)
def test_an_error_inside_a_stream_of_status_200(body, kind):
    """
    The request was good enough to begin with. So an unknown event is a failure of the service,
    and a stream that ends too early is a connection that broke.
    """
    assert type(of(200, body, in_stream=True)) is kind


def test_what_a_gateway_passes_on_as_text_is_read():
    raw = json.dumps(said("prompt is too long: 9 tokens > 8 maximum"))

    error = of(400, said("Provider returned error", code=400, metadata={"raw": raw}))

    assert type(error) is ContextOverflow
    assert (error.tokens_found, error.tokens_max) == (9, 8)
    assert error.detail == "Provider returned error"


def test_what_users_and_models_wrote_is_not_taken_for_the_service():
    """A failed response repeats its instructions and its output beside the error."""
    words = "prompt is too long: 9 tokens > 8 maximum; rate limit exceeded; invalid api key"
    response = {
        "instructions": words,
        "input": [{"type": "message", "message": words}],
        "output": [{"type": "authentication_error", "content": words}],
        "error": {"message": "Foobar", "failed_generation": words},
    }

    error = of(200, {"type": "response.failed", "response": response}, in_stream=True)

    assert type(error) is Overloaded
    assert error.detail == "Foobar"


# The window


@pytest.mark.parametrize(
    ("sentence", "found", "most"),
    [
        (
            (
                "This model's maximum context length is 8192 tokens. However, your messages "
                "resulted in 8545 tokens. Please reduce the length of the messages."
            ),
            8545,
            8192,
        ),
        (
            (
                "This model's maximum context length is 4097 tokens. However, you requested 4120 "
                "tokens (3120 in the messages, 1000 in the completion)."
            ),
            4120,
            4097,
        ),
        (
            (
                "This model's maximum context length is 32768 tokens and your request has 40000 "
                "input tokens"
            ),
            40000,
            32768,
        ),
        (
            (
                "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum "
                "context length is 8192 tokens and your request has 5000 input tokens"
            ),
            5000 + 4096,
            8192,
        ),
        ("Prompt would need 9,001 tokens but limit is 8,192 tokens", 9001, 8192),
        (
            (
                "input length and `max_tokens` exceed context limit: 198276 + 21333 > 200000, "
                "decrease input length or `max_tokens` and try again"
            ),
            198276 + 21333,
            200000,
        ),
        (
            (
                "This endpoint's maximum context length is 16384 tokens. However, you requested "
                "about 94307 tokens (94307 of text input)."
            ),
            94307,
            16384,
        ),
        (
            "The input token count exceeds the maximum number of tokens allowed 1048576.",
            None,
            1048576,
        ),
        ("Requested token count exceeds the model's maximum context length of 9 tokens", None, 9),
        ("Your input exceeds the context window of this model.", None, None),
        ("The number of tokens exceeds the context length of this model", None, None),
    ],
)
@pytest.mark.parametrize("status", [400, 413, 200, 500])
def test_an_overflow_says_how_much_was_sent_and_how_much_fits(sentence, found, most, status):
    """S3-34, S2-61, B32: every wording, and the numbers in it; what is asked for counts as sent."""
    error = of(status, said(sentence, type="invalid_request_error"))

    assert type(error) is ContextOverflow
    assert (error.tokens_found, error.tokens_max) == (found, most)


@pytest.mark.parametrize(
    "sentence",
    [
        (
            "This request would exceed your organization's rate limit of 30,000 input tokens per "
            "minute (org: x, model: claude-opus-4-20250514). Please reduce the prompt length or "
            "the maximum tokens requested, or try again later."
        ),
        "Rate limit of 64000 per 60s exceeded for UserByModelByMinuteTokens. Please wait 9 s.",
        "qwen3-coder is temporarily rate-limited upstream: context length 262144 tokens",
        "Number of request tokens has exceeded your per-minute rate limit",
        (
            "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit "
            "30000, Requested 342389. The input or output tokens must be reduced in order to run."
        ),
        (
            "Request too large for model `llama-3.3-70b-versatile` in organization `org_x` service "
            "tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 14810, please "
            "reduce your message size and try again."
        ),
        (
            "Quota exceeded for metric: generativelanguage.googleapis.com/"
            "generate_content_paid_tier_input_token_count, limit: 1000000, model: gemini-2.5-flash"
        ),
        "Too many tokens, please wait before trying again.",
        "Too many tokens per day, please wait before trying again.",
        "Rate limit reached for gpt-4.1 on tokens per min (TPM): Limit 30000, Used 28039",
    ],
)
@pytest.mark.parametrize("status", [200, 400, 413, 429, 500])
def test_a_limit_on_tokens_in_a_time_is_never_an_overflow(sentence, status):
    """B38, S2-61: a session that takes one for the other folds history that was not too long."""
    assert type(of(status, said(sentence, type="invalid_request_error"))) is RateLimited


@pytest.mark.parametrize(
    ("status", "kind", "code", "sentence"),
    [
        (401, AuthError, "authentication_error", "invalid x-api-key"),
        (429, RateLimited, "rate_limit_error", "Number of requests has exceeded your rate limit"),
        (529, Overloaded, "overloaded_error", "Overloaded"),
        (
            400,
            RateLimited,
            "invalid_request_error",
            (
                "You have reached your specified API usage limits. You will regain access on "
                "2026-11-01 at 00:00 UTC."
            ),
        ),
        (
            400,
            ContextOverflow,
            "invalid_request_error",
            "prompt is too long: 210000 tokens > 200000 maximum",
        ),
        (404, InvalidRequest, "not_found_error", "model: claude-1"),
    ],
)
def test_what_anthropic_refuses_for(status, kind, code, sentence):
    """S2-93: and a limit that is reached says until when."""
    body = {"type": "error", "error": {"type": code, "message": sentence}}

    error = failure("anthropic", status, {}, body, now_s=NOW_S)

    assert type(error) is kind
    if "regain" in sentence:
        assert NOW_S + error.retry_after_s == datetime(2026, 11, 1, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        # by words it is both; the code and the status know better
        (429, said("maximum context length is 8 tokens"), RateLimited),
        (429, said("x", code="context_length_exceeded"), ContextOverflow),
        (413, said("Request too large", type="tokens", code="rate_limit_exceeded"), RateLimited),
        # tokens that are neither
        (402, said("You requested up to 65536 tokens, but can only afford 6666"), AuthError),
        (401, said("token expired or limit exceeded"), AuthError),
        (
            400,
            said(
                "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens "
                "for claude-3-5-sonnet-20241022"
            ),
            InvalidRequest,
        ),
        (
            400,
            said(
                "max_tokens is too large: 100000. This model supports at most 16384 completion "
                "tokens, whereas you provided 100000."
            ),
            InvalidRequest,
        ),
        # limits that are neither
        (400, said("n must not exceed the limit of 8"), InvalidRequest),
        (400, said("context: maximum number of images exceeded"), InvalidRequest),
    ],
)
def test_near_misses(status, body, kind):
    """B38."""
    assert type(of(status, body)) is kind


# How long to wait


NOW_S = 1_792_567_680.0  # Wed, 21 Oct 2026 07:28:00 GMT


@pytest.mark.parametrize(
    ("headers", "body", "wait_s"),
    [
        ({"retry-after": "20"}, b"", 20.0),
        ({"Retry-After": " 1.5 "}, b"", 1.5),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT"}, b"", 30.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:27:30 GMT"}, b"", 0.0),
        ({"retry-after-ms": "1250", "retry-after": "2"}, b"", 1.25),
        ({"retry-after-ms": "0", "retry-after": "1"}, b"", 1.0),
        ({}, said("x", details=[{"@type": "RetryInfo", "retryDelay": "48.5s"}]), 48.5),
        ({}, said("Please try again in 174ms. Visit"), 0.174),
        ({}, said("Please try again in 1m26.4s. Visit"), 86.4),
        ({}, said("Please retry after 26 seconds."), 26.0),
        ({}, said("x", type="usage_limit_reached", resets_in_seconds=3600), 3600.0),
        ({}, said("x", retry_after=2.5), 2.5),
        ({}, said("Please wait 4321 seconds before retrying."), 4321.0),
        ({}, f"Claude AI usage limit reached|{int(NOW_S) + 60}", 60.0),
        ({}, said("Your quota will reset after 161h39m41s."), 581981.0),
        ({}, said("You will regain access on 2026-10-21 at 07:30 UTC."), 120.0),
        ({"x-ratelimit-reset-tokens": "6m0s"}, b"", 360.0),
        ({"x-ratelimit-reset": str(int(NOW_S * 1000) + 5000)}, b"", 5.0),
        ({"x-ratelimit-reset": str(int(NOW_S) + 7)}, b"", 7.0),
        ({"anthropic-ratelimit-input-tokens-reset": "2026-10-21T07:28:09Z"}, b"", 9.0),
        (
            {
                "x-ratelimit-reset-requests": "8h",
                "x-ratelimit-remaining-requests": "9",
                "x-ratelimit-reset-tokens": "2s",
                "x-ratelimit-remaining-tokens": "0",
            },
            b"",
            2.0,
        ),
        ({"retry-after": "3", "x-ratelimit-reset-tokens": "6m0s"}, b"", 3.0),
        ({"retry-after": "soon"}, b"", None),
        ({"retry-after": "-5"}, b"", None),
        ({"retry-after": "nan"}, b"", None),
        ({"retry-after": "9" * 400}, b"", None),
        ({"x-ratelimit-reset-tokens": "?"}, b"", None),
        ({}, said("Please try again later."), None),
        ({}, said("x", retry_after="soon"), None),
        ({}, said("x", retry_after=None), None),
        ({}, b"", None),
    ],
)
def test_a_rate_limit_says_how_long_to_wait(headers, body, wait_s):
    error = of(429, body, headers, now_s=NOW_S)

    assert type(error) is RateLimited
    assert error.retry_after_s == (None if wait_s is None else pytest.approx(wait_s))


def test_a_date_is_held_against_the_clock_of_the_service():
    headers = {
        "Date": "Wed, 21 Oct 2015 07:28:00 GMT",
        "Retry-After": "Wed, 21 Oct 2015 07:28:10 GMT",
    }

    assert of(503, b"", headers).retry_after_s == 10.0


def test_only_what_time_can_mend_has_a_time():
    headers = {"retry-after": "3"}

    waits = {status: of(status, b"", headers).retry_after_s for status in (429, 503, 401, 413, 301)}

    assert waits == {429: 3.0, 503: 3.0, 401: None, 413: None, 301: None}


# What else is kept, and what must not be


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({"request-id": "req_011A"}, b""),
        ({"X-Request-Id": "req_011A"}, b""),
        ({"apim-request-id": "req_011A"}, b""),
        ({"x-goog-request-id": "req_011A"}, b""),
        ({"request-id": "<REQUEST_ID>"}, {"request_id": "req_011A"}),
        ({}, {"error": {"message": "x"}, "request_id": "req_011A"}),
        ({}, {"error": {"details": [{"@type": "RequestInfo", "requestId": "req_011A"}]}}),
    ],
)
def test_the_request_id_is_kept(headers, body):
    assert of(400, body, headers).request_id == "req_011A"


def test_the_request_id_is_found_in_a_sentence():
    error = of(500, said("Please include the request ID req_1332ed8a813a4caaa2f0f3c55a6a68cb in"))

    assert error.request_id == "req_1332ed8a813a4caaa2f0f3c55a6a68cb"


SECRETS = (
    "sk-ant-api03-Zk3mX9qL2vB7nR5tY8wP1cD4fG6hJ0kM",
    "sk-proj-abc_DEF-123456789",
    "AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuv",
    "ya29.a0AfH6SMBx-abcdefghij_klmnop",
    "gsk_Zk3mX9qL2vB7nR5tY8wP1cD4",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N",
    "0123456789abcdef0123456789abcdef",
)


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "sentence",
    [
        "Incorrect API key provided: {}. You can find your API key at https://example.com.",
        "invalid credentials (Authorization: Bearer {})",
        "GET https://example.com/v1/models?key={}&alt=sse failed",
        '{{"api_key":"{}"',
        "x-api-key '{}' is not valid",
        "who is {}?",
    ],
)
@pytest.mark.parametrize("status", [400, 401, 429, 500])
def test_no_secret_is_repeated(secret, sentence, status):
    words = sentence.format(secret)

    for body in (said(words), words, words.encode(), [said(words)]):
        error = of(status, body, {"x-request-id": words})
        shown = f"{error} {error!r} {error.args} {error.detail} {error.__dict__}"

        assert secret not in shown
        assert secret[8:20] not in shown


@pytest.mark.parametrize("secret", SECRETS[:-1])
def test_a_key_is_no_request_id(secret):
    """The last of the secrets is left out: it looks like an id."""
    assert of(400, {"request_id": secret}, {"x-request-id": secret}).request_id is None


@pytest.mark.parametrize("key", ["test", "invalid-key", "hunter2", "<not-a-r****key>"])
def test_what_is_announced_as_a_key_is_one_however_it_looks(key):
    error = of(401, said(f"Incorrect API key provided: {key}. You can find your API key at x."))

    assert error.detail.startswith("Incorrect API key provided: ")
    assert error.detail.endswith("***. You can find your API key at x.")
    assert key not in str(error)


def test_no_half_of_a_secret_is_left_over_where_a_sentence_is_cut():
    """Masks are short, so many keys in a row bring the end of a long sentence into sight."""
    for padding in range(60):
        words = "a" * padding + f" {SECRETS[0]}" * 200

        detail = of(400, said(words)).detail

        assert detail.endswith("***")
        assert "sk-" not in detail and "Zk3m" not in detail


def test_the_detail_is_the_services_own_sentence_on_one_short_line():
    error = of(400, said("Please use a valid\n\trole: " + "user, model. " * 500))

    assert error.detail.startswith("Please use a valid role: user, model. user,")
    assert len(error.detail) <= refusals.DETAIL_LENGTH_MAX
    assert "\n" not in error.detail


def test_no_control_character_reaches_the_terminal_of_who_reads_it():
    error = of(400, said("model \x1b[2J\x00 not\u2028found \ud800"))

    assert error.detail == "model [2J not found \ufffd"


@pytest.mark.parametrize(
    ("status", "body", "detail"),
    [
        (404, {"error": "model 'x' not found"}, "model 'x' not found"),
        (401, {"detail": "Invalid API Key"}, "Invalid API Key"),
        (502, b"<html><head><title>502 Bad\nGateway</title>", "502 Bad Gateway"),
        (502, b"<html>", "a web page came instead of JSON"),
        (302, b"", "the service sends its callers to another address"),
        (500, b"", "the answer is empty"),
        (None, b"", "no answer came"),
    ],
)
def test_the_detail_is_found_where_vendors_put_it(status, body, detail):
    assert of(status, body).detail == detail


def test_an_error_pickles_and_copies():
    error = of(400, said("prompt is too long: 9 tokens > 8 maximum"), {"request-id": "req_1"})

    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is ContextOverflow
        assert other.args == error.args
        assert (other.tokens_found, other.tokens_max) == (9, 8)


# Everything else


def test_a_huge_body_is_cut_before_it_is_searched():
    """Ten megabytes take no longer than a page; what a service says, it says at the beginning."""
    filler = b"a" * 10_000_000

    error = of(
        400, b'{"error":{"message":"prompt is too long: 9 tokens > 8 maximum","x":"' + filler
    )

    assert type(error) is ContextOverflow
    assert type(of(400, filler)) is InvalidRequest
    assert type(of(400, said("rate limit exceeded " + "b " * 5_000_000))) is RateLimited


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"error":' * 50_000,
        b'{"error":' * 50_000 + b"1" + b"}" * 50_000,
        b'{"error":{"code":' + b"9" * 5_000 + b"}}",
        b'{"error":{"message":"\\ud800"}}',
        b'{"a":NaN}',
        {"error": {"code": 10**400, "status": float("nan")}},
        {1: 2, None: 3, "error": {"message": {"error": [[[["x"]]]]}}},
        {"error": ["x"] * 100_000},
        [[[["x"] * 200] * 200] * 200] * 200,
        "\ud800 rate limit exceeded",
        object(),
    ],
    ids=range(12),
)
def test_bodies_that_break_parsers_give_an_error_too(body):
    error = of(400, body)

    assert isinstance(error, ProviderError)
    assert str(error).encode()


words = st.sampled_from(
    [seen.sentence for seen in SEEN]
    + [code for _, line in CODES + VAGUE_CODES for code in line.split()]
    + ["error", "message", "429", "48s", "retry after 5", "sk-abc", "{", "\ud800", "<html>"]
)
names = st.sampled_from(
    ["error", "errors", "message", "code", "type", "status", "details", "detail", "metadata"]
    + ["raw", "response", "retryDelay", "request_id", "reason", "x"]
)
leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | words
trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)
header_names = st.sampled_from(
    ["Retry-After", "retry-after-ms", "Date", "x-ratelimit-reset-tokens", "x-request-id"]
    + ["x-ratelimit-remaining-tokens", "anthropic-ratelimit-tokens-reset", "x-ratelimit-reset"]
)
header_values = (
    st.text(max_size=30) | st.from_regex(r"[0-9a-zA-Z,:.+ -]{1,30}") | st.integers().map(str)
)


@given(
    st.none() | st.integers(),
    st.dictionaries(header_names, header_values, max_size=4),
    st.binary(max_size=60) | trees | trees.map(lambda tree: json.dumps(tree).encode()),
    st.booleans(),
)
def test_any_answer_gives_an_error_and_never_an_exception(status, headers, body, in_stream):
    error = failure("vendor", status, headers, body, in_stream=in_stream)

    assert isinstance(error, ProviderError)
    assert type(error) is not ProviderError
    assert str(error)
    assert len(error.detail) <= refusals.DETAIL_LENGTH_MAX
    assert error.detail.isprintable()
    assert error.retry_after_s is None or 0 <= error.retry_after_s < float("inf")
    assert "sk-abc" not in repr(error)
