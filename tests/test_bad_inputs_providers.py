"""Bad inputs 45 and 46 on their way to a model, and 106 to 116 on their way back, in every wire.

The table says what comes of each: `answer`, with what is looked at behind a comma, or the name of
the error, with `+` if what had come is kept. An outcome that is not in the table fails. So does an
error of Python or of the HTTP client, an error that tells a secret, a request that the vendor would
refuse, and a history that no vendor takes afterwards. What is not built yet is in LATER.
"""

import asyncio
import json
import ssl
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import NamedTuple

import pytest
import trustme

from bad_inputs import SECRET, outcome_of, run
from faults import calls
from faults.talk import ANSWER, SAID, VENDORS, Event, joined
from holdfast.errors import ConnectionFailed, ContextOverflow, InvalidInput
from holdfast.messages import Message, ToolCall
from holdfast.providers import open_provider
from holdfast.testing import validators
from loopback import Loopback, chunked, in_turn, until_closed, whole

MIB = 1024 * 1024
APIS = list(VENDORS)
INSIDE = {"code-assist": "google"}  # whose words stand in an envelope
# Of 114 what can be sent is here; what to do about it belongs to turns.
LATER = {114: "turns: compacting is not built yet"}
HELLO = (("text", "Hello, Ada."),)
CUT = (("text", "Hello, Ada."), ("call", "c1", "look", ('{"at": "the s',)))


class Case(NamedTuple):
    """`answer` makes what a vendor sends; `outcome` may differ by API."""

    number: int
    name: str
    answer: object
    outcome: str
    by_api: dict = MappingProxyType({})
    look: object = None
    stream: bool = True

    def expected(self, api):
        return self.by_api.get(INSIDE.get(api, api), self.outcome).split("|")


def events(vendor, steps=HELLO):
    return joined(vendor.events(steps))


def streamed(change, steps=HELLO, **more):
    """A stream whose bytes were changed."""
    return lambda vendor: chunked(change(events(vendor, steps)), **more)


def each_byte(vendor):
    body = events(vendor, (("text", "Hello, é漢😀."),)).replace(b"\n", b"\r\n")
    return in_turn(until_closed(b""), *(body[at : at + 1] for at in range(len(body))))


def said(response):
    return response.text


def called(response):
    return repr([call.name[:20] for call in response.calls])


def ended(response):
    return str(response.stop)


def counted(response):
    usage = response.usage
    return f"{usage.input} {usage.output}"


def with_usage(count):
    def answer(vendor):
        text = json.dumps(vendor.document(HELLO))
        for number in ("11", "18"):
            text = text.replace(f": {number}", f": {json.dumps(count)}")
        return whole(text.encode())

    return answer


def call_named(name, arguments="{}"):
    """A call under any name. A model that writes none at all is given as one that wrote `{}`."""

    def answer(vendor):
        return chunked(joined(vendor.events((("call", "c1", name, (arguments,)),))))

    return answer


def ended_by(steps=HELLO, **reasons):
    """A stream that stops for another reason, by vendor: a word, or None for none."""

    def answer(vendor):
        reason = reasons.get(INSIDE.get(vendor.api, vendor.api).replace("-", "_"))
        body = events(vendor, steps)
        if vendor.api == "openai-responses":
            return chunked(incomplete(vendor, steps, reason))
        for field in ("stop_reason", "finish_reason", "finishReason", "done_reason"):
            for word in ("end_turn", "tool_use", "stop", "tool_calls", "STOP"):
                old = f'"{field}": "{word}"'.encode()
                body = body.replace(old, f'"{field}": {json.dumps(reason)}'.encode())
        return chunked(body)

    return answer


def incomplete(vendor, steps, reason):
    """The same in Responses: what was being written when it ended has no end of its own."""
    *begun, last = vendor.events(steps)
    while begun[-1].name.endswith(".done"):
        begun.pop()
    response = last.data["response"] | {"status": "incomplete", "output": []}
    response["incomplete_details"] = None if reason is None else {"reason": reason}
    name = "response.incomplete"
    return joined([*begun, Event(name, {"type": name, "response": response})])


def refusal(status, message, **more):
    return lambda vendor: whole({"error": {"message": message} | more}, status=status)


ANSWERED = "answer, Hello, Ada."
WAITS = ["-1", "nan", "1000000000", "Wed, 21 Oct 2015 07:28:00 GMT", "1, 2", "later"]
BROKEN_OFF = "ConnectionFailed|ConnectionFailed+"
NO_EVENTS = {"ollama": BROKEN_OFF}  # it sends lines, and what does not belong there is its end
OVERFLOWS = {
    "Anthropic": "prompt is too long: 210000 tokens > 200000 maximum",
    "OpenAI": "This model's maximum context length is 128000 tokens. However, your messages "
    "resulted in 130000 tokens. Please reduce the length of the messages.",
    "OpenAI Responses": "Your input exceeds the context window of this model. Please adjust your "
    "input and try again.",
    "Google": "The input token count (1200000) exceeds the maximum number of tokens allowed "
    "(1048576).",
    "xAI": "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
    "Groq": "Please reduce the length of the messages or completion.",
    "OpenRouter": "This endpoint's maximum context length is 32768 tokens. However, you requested "
    "about 40000 tokens (39000 of text input, 1000 in the output).",
    "Mistral": "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 "
    "maximum context length",
    "llama.cpp": "the request exceeds the available context size. try increasing the context size "
    "or enable context shift",
    "vLLM": "This model's maximum context length is 4096 tokens. However, you requested 5000 "
    "tokens (4000 in the messages, 1000 in the completion).",
}

CASES = [
    # How events are written
    Case(
        106,
        "no blank line",
        streamed(lambda b: b.replace(b"\n\n", b"\n")),
        BROKEN_OFF,
        {"ollama": ANSWERED},
        said,
    ),
    Case(106, "split at every byte", each_byte, "answer, Hello, é漢😀.", look=said),
    Case(106, "a mark", streamed(lambda b: b"\xef\xbb\xbf" + b), ANSWERED, look=said),
    Case(106, "comments", streamed(lambda b: b": x\n\n:\n" + b), ANSWERED, NO_EVENTS, said),
    Case(106, "comments only", streamed(lambda b: b": x\n\n" * 9), BROKEN_OFF),
    Case(
        106,
        "no data",
        streamed(lambda b: b"event: ping\n\nid: 1\n\n" + b),
        ANSWERED,
        NO_EVENTS,
        said,
    ),
    Case(106, "retry", streamed(lambda b: b"retry: 0\n\n" + b), ANSWERED, NO_EVENTS, said),
    Case(106, "CR alone", streamed(lambda b: b.replace(b"\n", b"\r")), ANSWERED, NO_EVENTS, said),
    Case(
        106,
        "a line of 10 MiB",
        streamed(lambda b: b": " + b"x" * 10 * MIB + b"\n\n" + b),
        ANSWERED,
        NO_EVENTS,
        said,
    ),
    Case(
        106,
        "NUL",
        streamed(lambda b: b"\0\n\n" + b),
        "ProtocolError|" + ANSWERED,
        NO_EVENTS,
        said,
    ),
    # How a stream ends
    Case(107, "no end", streamed(lambda b: b[: b.rindex(b"Ada")]), BROKEN_OFF),
    Case(
        107,
        "two ends",
        lambda v: chunked(events(v) + v.events(HELLO)[-1].encoded()),
        ANSWERED,
        look=said,
    ),
    Case(
        107,
        "events after it",
        lambda v: chunked(events(v) + v.unknown.encoded()),
        ANSWERED,
        look=said,
    ),
    Case(
        107,
        "an error after text",
        lambda v: chunked(joined([*v.events(HELLO)[:-1], v.error])),
        "Overloaded+",
    ),
    # What is no answer
    Case(108, "a page", lambda v: whole(b"<html>hi</html>", kind="text/html"), "ProtocolError"),
    Case(
        108,
        "an error in 200",
        lambda v: whole({"error": {"message": "no"}}),
        "ProtocolError",
        stream=False,
    ),
    Case(108, "204", lambda v: whole(b"", status=204), "ProtocolError"),
    Case(108, "206", lambda v: whole(events(v), status=206), "ProtocolError"),
    Case(
        108,
        "a redirect inside",
        lambda v: whole(b"", status=307, location="http://169.254.169.254/"),
        "ProtocolError",
    ),
    # Calls
    Case(109, "a name not offered", call_named("rm_rf"), "answer, ['rm_rf']", look=called),
    Case(109, "an empty name", call_named(""), "answer, ['']", look=called),
    Case(109, "a name of 10 KiB", call_named("n" * 10240), f"answer, {['n' * 20]}", look=called),
    Case(109, "control characters", call_named("a\nb\x00"), r"answer, ['a\nb\x00']", look=called),
    Case(109, "arguments null", call_named("look", "null"), "answer, ['look']", look=called),
    # Why it ended
    Case(
        110,
        "no reason",
        ended_by(),
        "answer, unknown",
        {"google": "ConnectionFailed+", "ollama": "answer, stop"},  # its early versions gave none
        look=ended,
    ),
    Case(
        110,
        "an unknown reason",
        ended_by(
            anthropic="sparkle",
            openai_chat="sparkle",
            google="SPARKLE",
            openai_responses="sparkle",
            ollama="sparkle",
        ),
        "answer, sparkle",
        {"google": "answer, SPARKLE"},
        look=ended,
    ),
    Case(
        110,
        "length in arguments",
        ended_by(
            CUT,
            anthropic="max_tokens",
            openai_chat="length",
            openai_responses="max_output_tokens",
            google="MAX_TOKENS",
            ollama="length",
        ),
        "answer, max_tokens",
        {},
        look=ended,
    ),
    Case(
        110,
        "a filter",
        ended_by(
            anthropic="refusal",
            openai_chat="content_filter",
            openai_responses="content_filter",
            google="SAFETY",
        ),
        "answer, safety",
        {"ollama": "answer, stop"},  # has none
        look=ended,
    ),
    # Tokens
    Case(111, "negative", with_usage(-5), "answer, None 7", look=counted, stream=False),
    Case(111, "huge", with_usage(10**30), "answer, None 7", look=counted, stream=False),
    Case(111, "text", with_usage("many"), "answer, None 7", look=counted, stream=False),
    # Waits
    *(
        Case(112, wait, lambda v, wait=wait: whole({}, status=429, retry_after=wait), "RateLimited")
        for wait in WAITS
    ),
    # Windows
    *(Case(113, name, refusal(400, words), "ContextOverflow") for name, words in OVERFLOWS.items()),
    Case(113, "only 400", refusal(400, "400"), "InvalidRequest"),
]


def outcome_words(case, outcome):
    """What came of a call, in the words of the table."""
    if outcome.error is not None:
        return outcome_of(outcome.error) + ("+" if outcome.partial is not None else "")
    return f"answer, {case.look(outcome.response)}" if case.look else "answer"


def unlisted(api, cases, make=calls.ours):
    """The cases whose outcome is not in the table, and everything else that is wrong."""

    async def body(provider, server):
        found = {}
        for case in cases:
            outcome = await calls.call(
                provider, server, case.answer(VENDORS[api]), stream=case.stream
            )
            words = outcome_words(case, outcome)
            wrong = calls.complaints(api, outcome)
            if words not in case.expected(api) or wrong:
                found[case.number, case.name] = (words, *wrong[:2])
        return found

    found, left = run(calls.with_server(api, body, make))
    return found | ({"left": left} if left else {})


@pytest.mark.parametrize("number", sorted({case.number for case in CASES}))
@pytest.mark.parametrize("api", APIS)
def test_an_answer_has_an_outcome_of_the_table(api, number):
    assert unlisted(api, [case for case in CASES if case.number == number]) == {}


def test_every_number_is_tried_or_named():
    """Of 106 to 116; those after them are turns'."""
    elsewhere = {115, 116}  # below: they need certificates, and two calls

    assert {case.number for case in CASES} | elsewhere | LATER.keys() == set(range(106, 117))


# --- what goes out: histories that no careful program would leave ---------------------------------


def asked(*calls_made, content=None):
    made = [
        ToolCall(**({"id": "c", "name": "look", "arguments": "{}"} | each)) for each in calls_made
    ]
    return Message.assistant(content, made)


HISTORIES = [
    (45, "a call without id", lambda: [asked({"id": ""})]),
    (45, "two calls with one id", lambda: [asked({}, {})]),
    (45, "an id used again", lambda: [asked({}), GOT, Message.user("y"), asked({}), GOT]),
    (45, "a result before its call", lambda: [GOT, asked({})]),
    (45, "two results", lambda: [asked({}), GOT, GOT]),
    (45, "a result of another session", lambda: [Message.tool("x", "theirs"), asked({}), GOT]),
    (46, "arguments cut", lambda: [asked({"arguments": '{"a": '}), GOT]),
    (46, "arguments that are no object", lambda: [asked({"arguments": "[1]"}), GOT]),
    (46, "arguments of 10 MiB", lambda: [asked({"arguments": "x" * 10 * MIB}), GOT]),
    (46, "arguments {}", lambda: [asked({"arguments": "{}"}), GOT]),
    (46, "no arguments", lambda: [asked({"arguments": ""}), GOT]),
    (114, "a summary that is empty", lambda: [summary("")]),
    (114, "a summary with calls", lambda: [summary("Then:", [asked({}).tool_calls[0]])]),
    (114, "a summary longer than what it sums up", lambda: [summary("x" * MIB)]),
]


def summary(words, calls_made=()):
    """In the place of messages that were folded."""
    return Message.assistant(words, calls_made, synthetic="summary")


GOT = Message.tool("seen", "c")


@pytest.mark.parametrize("api", APIS)
def test_a_broken_history_is_sent_as_a_request_that_the_vendor_accepts(api):
    """S2-37, B22: through the whole of it; what is judged are the bytes that the server got."""

    async def body(provider, server):
        found = {}
        for number, name, history in HISTORIES:
            messages = [Message.user("Hello."), *history()]
            server.answers = [whole(VENDORS[api].document(HELLO))]
            server.requests.clear()
            try:
                response = await provider.complete(messages)
            except Exception as error:
                found[number, name] = outcome_of(error)
                continue
            vendor, sent = VENDORS[api], server.requests[0].json
            problems = validators.problems(vendor.api, sent, lenient=True, model=vendor.model)
            if problems or response.text != "Hello, Ada.":
                found[number, name] = problems
        return found

    found, left = run(calls.with_server(api, body, timeout=30))

    assert found == {}
    assert left == []


@pytest.mark.parametrize("api", APIS)
def test_an_overflow_is_sent_once(api):
    """114: whatever would cure it, the same request would not."""
    refused = {"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}}

    async def body(provider, server):
        server.answers = [whole(refused, status=400)] * 5
        with pytest.raises(ContextOverflow) as raised:
            await provider.complete([Message.user("Hello.")])
        return raised.value, len(server.requests)

    (error, count), left = run(calls.with_server(api, body, tries_max=5))

    assert (error.tokens_found, error.tokens_max, count, left) == (210_000, 200_000, 1, [])


# --- 115: who is on the other side ----------------------------------------------------------------


def served(ca, *names, **validity):
    """The TLS of a server with a certificate for these names."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(*names, **validity).configure_cert(context)
    return context


def from_day(day):
    now = datetime.now(UTC)
    return {"not_before": now + timedelta(days=day - 9), "not_after": now + timedelta(days=day)}


def old_tls(ca):
    context = served(ca, "127.0.0.1")
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.maximum_version = ssl.TLSVersion.TLSv1
    return context


TLS = {
    "expired": (lambda ca: served(ca, "127.0.0.1", **from_day(-2)), "has expired"),
    "not yet valid": (lambda ca: served(ca, "127.0.0.1", **from_day(40)), "not yet valid"),
    "wrong name": (lambda ca: served(ca, "other.example"), "mismatch"),
    "self-signed": (
        lambda _ca: served(trustme.CA(), "127.0.0.1"),
        "unable to get local issuer|self",
    ),
    "downgrade": (old_tls, "TLS"),
    "no TLS": (lambda _ca: None, "TLS"),
}


@pytest.fixture
def trusted(tmp_path, monkeypatch):
    """An authority that this machine trusts."""
    ca = trustme.CA()
    ca.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    return ca


async def over_tls(context, on_retry=None):
    """What comes of a call to a server with this TLS, whose key and address hold a secret."""
    document = whole(VENDORS["anthropic"].document(HELLO))
    greeting = b"" if context else b"HTTP/1.1 400 Bad Request\r\n\r\n"
    async with Loopback(document, tls=context, greeting=greeting) as server:
        url = f"https://127.0.0.1:{server.port}"
        provider = open_provider("anthropic:claude-x", base_url=url, api_key=SECRET, tries_max=2)
        try:
            asked = [Message.user("Hello.")]
            outcome = (await provider.complete(asked, on_retry=on_retry)).text
        except Exception as error:
            outcome = error
        await provider.close()
        return outcome, server


@pytest.mark.parametrize("name", TLS)
def test_a_service_that_cannot_show_who_it_is_gets_nothing(trusted, name):
    """Typed, with the reason, at once; neither key nor question left this machine."""
    make, reason = TLS[name]
    tried_again = []

    error, server = run(over_tls(make(trusted), lambda *facts: tried_again.append(facts)))

    assert outcome_of(error) == "ConnectionFailed"
    assert any(each in str(error) for each in reason.split("|")), str(error)
    assert not [each for each in server.requests if SECRET in str(each.headers)]
    # What no wait mends is not tried again; a service that just hangs up may be there next time.
    assert len(tried_again) <= (name == "downgrade")


def test_a_service_that_shows_who_it_is_gets_the_question(trusted):
    """Or the rows above would show nothing."""
    outcome, server = run(over_tls(served(trusted, "127.0.0.1")))

    assert outcome == "Hello, Ada."
    assert server.requests[0].headers["x-api-key"] == SECRET


def test_a_proxy_of_the_environment_does_not_see_what_is_said_over_tls(trusted, monkeypatch):
    """It is asked for a tunnel, and told the host alone."""

    async def main():
        async with Loopback(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n") as proxy:
            monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", f"//ada:{SECRET}@"))
            monkeypatch.delenv("NO_PROXY", raising=False)
            provider = open_provider("anthropic:claude-x", api_key=SECRET, tries_max=1)
            try:
                await provider.complete([Message.user("Hello.")])
            except Exception as error:
                return error, proxy.requests
            finally:
                await provider.close()

    error, requests = run(main())

    assert outcome_of(error) == "ConnectionFailed"
    assert [(each.method, each.path) for each in requests] == [("CONNECT", "api.anthropic.com:443")]
    assert SECRET not in str(requests)


@pytest.mark.parametrize(
    "url",
    [f"https://x.example/?key={SECRET}", f"https://x.example/#{SECRET}", f"ftp://a:{SECRET}@x"],
)
def test_a_key_in_an_address_is_refused_and_not_told(url):
    with pytest.raises(InvalidInput) as caught:
        open_provider("google:gemini-x", base_url=url)

    assert outcome_of(caught.value) == "InvalidInput"


def test_a_password_in_an_address_is_not_told_by_an_error():
    async def main():
        async with Loopback(b"") as server:
            url = server.url.replace("//", f"//ada:{SECRET}@")
        provider = open_provider("openai:x", base_url=url, tries_max=1)
        try:
            await provider.complete([Message.user("Hello.")])
        except Exception as error:
            return error
        finally:
            await provider.close()

    assert outcome_of(run(main())) == "ConnectionFailed"


# --- 116: answers that belong to others -----------------------------------------------------------


def test_the_same_answer_twice_is_two_messages():
    async def body(provider, server):
        server.answers = [whole(VENDORS["anthropic"].document(ANSWER))]
        asked = [Message.user("Hello.")]
        return [await provider.complete(asked) for _ in range(2)]

    (one, two), left = run(calls.with_server("anthropic", body))

    assert (one.text, one.id) == (two.text, two.id) == (SAID, "msg_1")
    assert one.message.id != two.message.id
    assert left == []


def test_an_answer_that_nobody_asked_for_is_given_to_nobody():
    """It lies on the connection when the next call begins."""
    vendor = VENDORS["anthropic"]

    async def talkative(connection, _asked):
        good = whole(vendor.document((("text", "mine"),)))
        await connection.send(good + whole(vendor.document((("text", "another's"),))))
        await connection.hang()

    async def body(provider, server):
        server.answers = [talkative]
        first = await provider.complete([Message.user("Hello.")])
        await asyncio.sleep(0.05)
        second = await provider.complete([Message.user("Hello.")])
        return first.text, second.text, server.connections

    (first, second, connections), left = run(calls.with_server("anthropic", body))

    assert (first, second, connections) == ("mine", "mine", 2)
    assert left == []


# --- controls -------------------------------------------------------------------------------------


def test_an_outcome_that_is_not_in_the_table_is_found_out():
    case = Case(106, "wrong", lambda v: chunked(events(v)), "ProtocolError", look=said)

    assert unlisted("anthropic", [case]) == {(106, "wrong"): ("answer, Hello, Ada.",)}


def test_a_naive_client_is_found_out():
    cases = [case for case in CASES if case.number in (107, 108)]

    found = unlisted("anthropic", cases, calls.Naive)

    assert (107, "no end") in found
    assert (108, "an error in 200") in found or (108, "a page") in found


def test_a_secret_in_an_error_is_found_out():
    assert outcome_of(ConnectionFailed(f"no {SECRET}")) == "ConnectionFailed that tells a secret"
