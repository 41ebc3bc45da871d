"""What `Provider.complete` promises, over HTTP: sentence by sentence, with a wire of our own."""

import asyncio
import json
import logging
import threading
import time

import httpx2
import pytest

from bad_inputs import run
from holdfast.cancel import CancelToken
from holdfast.errors import (
    AuthError,
    Cancelled,
    ConnectionFailed,
    ContextOverflow,
    InvalidInput,
    InvalidRequest,
    Overloaded,
    ProtocolError,
    RateLimited,
)
from holdfast.history import History
from holdfast.messages import Message, Stop
from holdfast.providers.address import Address
from holdfast.providers.attempts import SameAttempts
from holdfast.providers.credentials import Secret
from holdfast.providers.pipe import Timeouts
from holdfast.usage import Prices, Usage
from loopback import Loopback, chunked, in_turn, until_closed, whole
from simple_wire import SimpleProvider, SimpleWire, simple

CANARY = "sk-hunter2-canary"
PLAIN = "correct horse battery".replace(" ", "-")  # nothing about it looks like a key
ASKED = [Message.user("Hello.")]
GOOD = {"think": "hm", "text": "Hello, Ada.", "usage": {"input": 5, "output": 3}, "end": "stop"}


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch):
    """The jitter between tries is tested where the tries are."""
    monkeypatch.setattr("holdfast.providers.retries.FIRST_BOUND_S", 0.01)


def events(*objects, done=False):
    lines = [f"data: {json.dumps(each)}\n\n" for each in objects]
    return "".join([*lines, "data: [DONE]\n\n" * done]).encode()


STREAM = events(
    {"think": "h"}, {"think": "m"}, {"text": "Hello, "}, {"text": "Ada."}, {"end": "stop"}
)


def completed(*answers, options=None, messages=ASKED, framing="events", **asked):
    """What comes of one call: the response or the error, and what the server was asked."""

    async def main():
        async with Loopback(*answers) as server:
            provider = simple(server.url, framing=framing, **(options or {}))
            try:
                outcome = await provider.complete(messages, **asked)
            except Exception as error:
                outcome = error
            await provider.close()
            return outcome, server

    return run(main())


def failed(kind, *answers, **asked):
    error, server = completed(*answers, **asked)
    assert type(error) is kind, repr(error)
    return error, server


# An answer


def test_an_answer_in_one_document_is_a_response():
    response, server = completed(whole(GOOD, request_id="req_7"))

    assert (response.text, response.thinking) == ("Hello, Ada.", "hm")
    assert (response.stop, response.request_id) == (Stop.STOP, "req_7")
    assert response.usage == Usage(5, 3)
    assert response.message.model == "simple:small"
    assert server.requests[0].json["stream"] is False
    assert server.requests[0].path == "/v1/answer"


def test_only_a_listener_makes_it_a_stream():
    """S2-11: on_chunk and its like; usage alone can wait for the end."""
    heard = []
    _, server = completed(whole(GOOD), on_usage_update=heard.append)
    assert server.requests[0].json["stream"] is False
    assert heard == [Usage(5, 3)]

    for name in ("on_chunk", "on_thinking", "on_tool_call"):
        _, server = completed(chunked(STREAM), **{name: heard.append})
        assert server.requests[0].json["stream"] is True


def test_callbacks_hear_in_order_and_calls_when_they_are_complete():
    """S2-11, S2-12: a call is told before the text that follows it."""
    heard = []
    call = {"id": "c1", "name": "add", "arguments": "{}"}
    body = events({"think": "hm"}, {"text": "a"}, {"call": call}, {"text": "b"}, {"end": "stop"})

    response, _ = completed(
        chunked(body),
        on_chunk=lambda words: heard.append(("text", words)),
        on_thinking=lambda words: heard.append(("thinking", words)),
        on_tool_call=lambda call: heard.append(("call", call.id)),
    )

    assert heard == [("thinking", "hm"), ("text", "a"), ("call", "c1"), ("text", "b")]
    assert [each.name for each in response.calls] == ["add"]


@pytest.mark.parametrize(
    ("answer", "framing"),
    [
        (chunked(STREAM), "events"),
        (chunked(STREAM, kind=""), "events"),
        (chunked(STREAM, kind="text/plain; charset=utf-8"), "events"),
        (chunked(STREAM, kind="application/json"), "events"),
        (chunked(b"\xef\xbb\xbf: hi\n\n" + STREAM), "events"),
        (chunked(b'{"text": "Hello, "}\n{"text": "Ada."}\n{"end": "stop"}\n', kind=""), "lines"),
        (
            chunked(b'{"text":"Hello, Ada."}\n{"end":"stop"}\n', kind="application/x-ndjson"),
            "events",
        ),
        (chunked(b'[{"text":"Hello, Ada."},{"end":"stop"}]', kind="application/json"), "array"),
        (whole(GOOD), "events"),
        (whole(GOOD), "lines"),
        (whole(GOOD), "array"),
        (whole(GOOD, kind="text/event-stream"), "events"),
        (whole(GOOD, kind=""), "events"),
        (whole(GOOD, status=201), "events"),
        (whole(b"\n\n  " + json.dumps(GOOD).encode()), "events"),
    ],
    ids=[
        *("events", "untyped", "plain", "typed wrongly", "marked", "lines", "ndjson", "array"),
        *("document", "document for lines", "document for array", "document as events"),
        *("untyped document", "created", "blank before"),
    ],
)
@pytest.mark.parametrize("is_streamed", [True, False])
def test_an_answer_is_read_by_what_it_is(answer, framing, is_streamed):
    """Servers give a document for a stream, a stream for a document, and no media type at all."""
    heard = []
    listener = {"on_chunk": heard.append} if is_streamed else {}

    response, _ = completed(answer, framing=framing, **listener)

    assert response.text == "Hello, Ada."
    assert "".join(heard) == ("Hello, Ada." if is_streamed else "")


def test_what_follows_the_end_is_still_read():
    """The tokens come behind it at some services."""
    body = events({"text": "a"}, {"end": "stop"}, {"usage": {"input": 9}}, done=True)

    response, _ = completed(chunked(body), on_chunk=str)

    assert response.usage.input == 9


def test_garbage_behind_the_end_does_not_make_an_answer_worse():
    response, _ = completed(chunked(STREAM + b"data: {no JSON\n\n"), on_chunk=str)

    assert response.text == "Hello, Ada."


@pytest.mark.parametrize("then", ["hang", "reset", "close"])
def test_a_complete_answer_is_good_whatever_the_connection_does_then(then, monkeypatch):
    monkeypatch.setattr("holdfast.providers.replies.GRACE_S", 0.2)
    started = time.monotonic()

    response, _ = completed(in_turn(chunked(STREAM, ends=False), then=then), on_chunk=str)

    assert response.text == "Hello, Ada."
    assert time.monotonic() - started < 2


# What it says about itself


def test_the_limits_and_prices_are_those_of_the_options():
    prices = Prices(input=1, output=2)
    provider = simple("http://127.0.0.1:1", context_limit=1000, output_limit=100, prices=prices)

    assert (provider.context_limit, provider.output_limit) == (1000, 100)
    assert provider.prices == prices


def test_the_limits_of_an_unknown_model_are_a_guess_and_its_prices_unknown():
    provider = simple("http://127.0.0.1:1")

    assert provider.context_limit > 0 and provider.output_limit > 0
    assert provider.prices is None


TOO_LONG = {
    "message": "This model's maximum context length is 8192 tokens. However, your messages "
    "resulted in 9000 tokens. Please reduce the length of the messages.",
    "code": "context_length_exceeded",
}


def refused(*texts, **options):
    """What a provider takes for its limit after each refusal, each in these words."""

    async def main():
        answers = [whole(json.dumps({"error": each}).encode(), 400) for each in texts]
        async with Loopback(*answers) as server:
            provider, found = simple(server.url, **options), []
            for _ in texts:
                with pytest.raises(ContextOverflow):
                    await provider.complete(ASKED)
                found.append(provider.context_limit)
            await provider.close()
            return found

    return run(main())


def test_the_window_that_a_service_names_is_kept_to(caplog):
    """It is said once. What a refusal does not say, or says of more than is known, changes
    nothing."""
    unsaid = {**TOO_LONG, "message": "Too long."}
    more = {**TOO_LONG, "message": TOO_LONG["message"].replace("8192", "8900")}

    assert refused(TOO_LONG, TOO_LONG, unsaid, more) == [8192] * 4
    assert caplog.text.count("8192 tokens") == 1
    assert refused(TOO_LONG, context_limit=4_000) == [4_000]


def test_a_limit_that_the_request_has_not_passed_is_another_limit():
    """Then the words were not understood."""
    fits = {**TOO_LONG, "message": TOO_LONG["message"].replace("9000", "7000")}

    assert refused(fits)[0] > 8192


def test_tokens_are_counted_here_where_the_service_does_not():
    async def main():
        return await simple("http://127.0.0.1:1").count_tokens(ASKED, "Be brief.")

    assert 2 < run(main()) < 40


def test_models_are_listed_by_name():
    async def main():
        listed = {"data": [{"id": "b-2"}, {"id": "a-1"}, {"id": 5}, {}, "x"]}
        async with Loopback(whole(listed)) as server:
            provider = simple(server.url + "/v1")
            found = await provider.list_models(), await provider.list_models("b")
            await provider.verify()
            await provider.close()
            return found, server.requests

    found, requests = run(main())

    assert found == (("a-1", "b-2"), ("b-2",))
    assert {(asked.method, asked.path) for asked in requests} == {("GET", "/v1/models")}


def test_verify_raises_what_the_service_says():
    async def main():
        refused = whole({"error": {"message": "bad key"}}, status=401)
        async with Loopback(refused) as server, simple(server.url, api_key="wrong") as provider:
            await provider.verify()

    with pytest.raises(AuthError, match="bad key"):
        run(main())


# Failures and tries


def test_what_passes_by_itself_is_tried_again_with_the_same_bytes():
    """S2-12: on_retry hears the error, the failures so far, and the seconds."""
    heard = []
    wait = whole({"error": {"message": "slow down"}}, status=429, retry_after="0.05")
    full = whole({"error": {"message": "overloaded"}}, status=529)

    response, server = completed(
        wait, full, whole(GOOD), on_retry=lambda *facts: heard.append(facts)
    )

    assert response.text == "Hello, Ada."
    assert [(type(error), failures) for error, failures, _ in heard] == [
        (RateLimited, 1),
        (Overloaded, 2),
    ]
    assert heard[0][2] >= 0.05
    assert len({asked.body for asked in server.requests}) == 1 and len(server.requests) == 3


def test_a_body_is_made_once_however_often_it_is_sent():
    async def main():
        busy = whole({}, status=503, retry_after="0.01")
        async with Loopback(busy, whole(GOOD)) as server, simple(server.url) as provider:
            await provider.complete(ASKED)
            return provider.wire.made, len(server.requests)

    assert run(main()) == (1, 2)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_no_wait_mends_is_sent_once(status):
    error, server = completed(whole({"error": {"message": "no"}}, status=status))

    assert isinstance(error, InvalidRequest | AuthError)
    assert (error.status, error.provider) == (status, "simple")
    assert len(server.requests) == 1


def test_tries_are_bounded_by_the_option():
    answer = whole({}, status=503, retry_after="0.01")

    _, server = failed(Overloaded, answer, options={"tries_max": 2})

    assert len(server.requests) == 2


class Stale(SameAttempts):
    """Asks with a stale key first, and with a good one when that was refused, once."""

    key = "stale"

    async def next(self):
        return self._provider.signed(self._outgoing, Secret(self.key))

    async def amended(self, error):
        was, self.key = self.key, "good"
        error.detail += f" ({was})"
        return error.status == 401 and was == "stale"


class TwoKeys(SimpleProvider):
    def attempts(self, outgoing):
        return Stale(self, outgoing)


def with_two_keys(*answers, **options):
    async def main():
        async with Loopback(*answers) as server:
            provider = TwoKeys(SimpleWire("small"), Address(server.url), **options)
            heard = []
            try:
                outcome = await provider.complete(ASKED, on_chunk=heard.append)
            except Exception as error:
                outcome = error
            await provider.close()
            return outcome, heard, [asked.headers["authorization"] for asked in server.requests]

    return run(main())


NO = {"error": {"message": "no"}}


def test_a_vendor_may_send_something_else_at_the_next_try():
    """Whatever the error was: a refused key is not mended by waiting, and by another key it is."""
    response, _, keys = with_two_keys(whole(NO, status=401), chunked(STREAM))
    error, _, twice = with_two_keys(whole(NO, status=401))
    once, _, one = with_two_keys(whole(NO, status=401), tries_max=1)

    assert response.text == "Hello, Ada."
    assert keys == twice == ["Bearer stale", "Bearer good"]
    assert type(error) is AuthError and "no (good)" in str(error) and "no (good)" in error.args
    assert type(once) is AuthError and one == ["Bearer stale"]


def test_another_key_does_not_begin_an_answer_again():
    broken = chunked(events({"text": "Hel"}, {"error": {"type": "authentication_error"}}))

    error, heard, keys = with_two_keys(broken, chunked(STREAM))

    assert type(error) is AuthError
    assert heard == ["Hel"] and keys == ["Bearer stale"]


def test_nothing_is_tried_again_once_output_was_shown():
    """The reader would see two beginnings."""
    heard = []
    broken = chunked(events({"text": "Hel"}), ends=False)

    error, server = failed(ConnectionFailed, broken, chunked(STREAM), on_chunk=heard.append)

    assert heard == ["Hel"]
    assert len(server.requests) == 1
    assert (error.partial.text, error.partial.stop) == ("Hel", Stop.ERROR)


def test_a_stream_that_broke_before_any_output_is_tried_again():
    broken = chunked(b"", ends=False)

    response, server = completed(broken, chunked(STREAM), on_chunk=str)

    assert response.text == "Hello, Ada."
    assert len(server.requests) == 2


def test_a_partial_answer_has_what_came_and_no_open_call():
    call = {"id": "c1", "name": "add", "arguments": "{}"}
    body = events({"think": "hm"}, {"text": "Hel"}, {"call": call}, {"usage": {"input": 4}})

    error, _ = failed(ConnectionFailed, until_closed(body, request_id="req_9"), on_chunk=str)

    partial = error.partial
    assert (partial.text, partial.thinking, partial.usage.input) == ("Hel", "hm", 4)
    assert [each.id for each in partial.calls] == ["c1"]
    assert (error.request_id, partial.request_id) == ("req_9", "req_9")
    assert "broke off" in str(error)


def test_an_error_inside_a_stream_keeps_what_came_before_it():
    body = events({"text": "Hel"}, {"error": {"type": "overloaded_error", "message": "busy"}})

    error, _ = failed(Overloaded, chunked(body, x_request_id="r5"), on_chunk=str)

    assert error.partial.text == "Hel"
    assert (error.status, error.request_id, error.detail) == (200, "r5", "busy")


def test_the_limit_of_all_together_ends_tries_and_waits():
    started = time.monotonic()
    answer = whole({}, status=503, retry_after="5")

    error, _ = failed(ConnectionFailed, answer, options={"timeout": Timeouts(1, 1, 0.4)})

    assert "within 0.4 s (total limit)" in str(error)
    assert time.monotonic() - started < 1.4


def test_a_stream_that_never_ends_is_stopped_at_the_limit_with_what_came():
    piece = events({"text": "x"})
    drip = b"%x\r\n%b\r\n" % (len(piece), piece)
    start = chunked(b"", ends=False)

    error, _ = failed(
        ConnectionFailed,
        in_turn(start, *[drip] * 200, pause_s=0.05),
        options={"timeout": Timeouts(1, 1, 0.5)},
        on_chunk=str,
    )

    assert "total limit" in str(error)
    assert error.partial.text.startswith("xx")


def test_an_error_tells_of_the_last_try_alone():
    """The first had an answer that began; the second had none at all."""
    begun = chunked(events({"usage": {"input": 4}}), ends=False)

    error, server = failed(ConnectionFailed, begun, b"", on_chunk=str, options={"tries_max": 2})

    assert len(server.requests) == 2
    assert (error.status, error.partial) == (None, None)


def test_an_error_that_somebody_holds_does_not_hold_its_connection():
    """A traceback keeps everything alive that it passed."""

    async def main():
        start = chunked(events({"text": "Hel"}), ends=False)
        async with Loopback(in_turn(start, then="hang")) as server:
            provider = simple(server.url)
            with pytest.raises(ZeroDivisionError) as held:
                await provider.complete(ASKED, on_chunk=lambda words: 1 / 0)
            await asyncio.wait_for(server.closed.wait(), 1)
            await provider.close()
            return held

    run(main())


@pytest.mark.parametrize("raised", [KeyError("mine"), TimeoutError(), httpx2.ReadError("mine")])
def test_what_a_callback_raises_reaches_the_caller(raised):
    def on_chunk(words):
        raise raised

    error, server = completed(chunked(STREAM), on_chunk=on_chunk)

    assert error is raised
    assert len(server.requests) == 1


# Answers that are none


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (whole(b"<!doctype html><title>Welcome</title>", kind="text/html"), ProtocolError),
        (whole(b"<html>x</html>"), ProtocolError),
        (whole(b"<?xml version='1.0'?><a/>", kind="application/xml"), ProtocolError),
        (whole(b"It works!", kind="text/plain"), ProtocolError),
        (whole(b""), ProtocolError),
        (whole(b"", status=204), ProtocolError),
        (whole(b'{"text":', status=206), ProtocolError),
        (whole(b'{"text": "Hel'), ProtocolError),
        (whole(b"{}"), ProtocolError),
        (whole(b'"text"'), ProtocolError),
        (whole({"text": 5, "end": "stop"}), ProtocolError),
        (whole({"error": {"type": "rate_limit_error", "message": "slow"}}), RateLimited),
        (whole({"error": "no such thing", "code": "invalid_api_key"}), AuthError),
        (whole(b"", status=302, location="http://169.254.169.254/"), ProtocolError),
    ],
    ids=[
        *("page", "page as JSON", "xml", "words", "empty", "204", "206", "cut", "nothing"),
        *("text", "wrong type", "limit in 200", "key in 200", "redirect"),
    ],
)
@pytest.mark.parametrize("is_streamed", [True, False])
def test_an_answer_that_is_none_is_a_typed_error(answer, kind, is_streamed):
    listener = {"on_chunk": str} if is_streamed else {}

    error, _ = failed(kind, answer, options={"tries_max": 1}, **listener)

    assert error.provider == "simple"
    assert error.partial is None or error.partial.text is None


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_names_the_host(status):
    """The key would go to whoever is named there."""

    async def main():
        async with Loopback(whole(GOOD)) as other:
            location = f"{other.url}/steal?key=hunter2"
            away = whole(b"", status=status, location=location)
            async with Loopback(away) as server, simple(server.url, api_key=CANARY) as provider:
                with pytest.raises(ProtocolError, match="redirect") as caught:
                    await provider.complete(ASKED)
            return other.requests, str(caught.value), other.url

    requests, words, url = run(main())

    assert requests == []
    assert url.removeprefix("http://") in words and "base_url" in words
    assert "hunter2" not in words


def test_of_a_huge_error_only_the_beginning_is_read():
    sent = []

    async def endless(connection, asked):
        start = chunked(b"", status=400, kind="application/json", ends=False)
        await connection.send(start)
        piece = b"10000\r\n" + b"x" * 65536 + b"\r\n"
        while True:
            await connection.send(piece)
            sent.append(65536)

    error, _ = failed(InvalidRequest, endless)

    assert error.status == 400
    assert sum(sent) < 32 * 1024 * 1024  # what the sockets hold, beside the first MiB


# Cancelling


@pytest.mark.parametrize("moment", ["before", "connecting", "head", "between", "waiting"])
def test_a_cancel_is_heard_within_a_second_and_closes_the_connection(moment):
    token = CancelToken()
    start = chunked(events({"text": "Hel"}), ends=False)
    answers = {
        "connecting": in_turn(then="hang"),
        "head": in_turn(b"HTTP/1.1 200 OK\r\n", then="hang"),
        "between": in_turn(start, then="hang"),
        "waiting": whole({}, status=503, retry_after="30"),
        "before": whole(GOOD),
    }

    async def main():
        if moment == "before":
            token.cancel("stop it")
        async with Loopback(answers[moment]) as server:
            provider = simple(server.url)
            timer = threading.Timer(0.2, token.cancel, ["stop it"])
            timer.start()
            started = time.monotonic()
            with pytest.raises(Cancelled, match="stop it") as caught:
                await provider.complete(ASKED, on_chunk=str, cancel_token=token)
            took = time.monotonic() - started
            if moment not in ("before", "waiting"):
                await asyncio.wait_for(server.closed.wait(), 1)
            await provider.close()
            timer.join()
            return caught.value, took, server.requests

    cancelled, took, requests = run(main())

    assert took < 1.2
    assert (len(requests) == 0) is (moment == "before")
    if moment == "between":
        assert (cancelled.partial.text, cancelled.partial.stop) == ("Hel", Stop.CANCELLED)
    else:
        assert cancelled.partial is None


def test_a_cancel_in_a_callback_stops_before_the_next_piece():
    token, heard = CancelToken(), []

    def on_chunk(words):
        heard.append(words)
        token.cancel()

    error, _ = failed(Cancelled, chunked(STREAM), on_chunk=on_chunk, cancel_token=token)

    assert heard == ["Hello, "]
    assert error.partial.text == "Hello, "


def test_cancelling_the_task_closes_the_connection():
    async def main():
        asked = asyncio.Event()

        async def silent(connection, _asked):
            asked.set()
            await connection.hang()

        async with Loopback(silent) as server:
            provider = simple(server.url)
            task = asyncio.ensure_future(provider.complete(ASKED, cancel_token=CancelToken()))
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(server.closed.wait(), 1)
            await provider.close()

    run(main())


def test_one_object_serves_many_calls_at_once_and_keeps_them_apart():
    """B49: answers and callbacks belong to a call, and not to the object."""

    async def echo(connection, asked):
        said = asked.json["messages"][-1]["text"]
        await asyncio.sleep(0.02)
        await connection.send(chunked(events({"text": said}, {"end": "stop"})))

    async def main():
        async with Loopback(echo) as server, simple(server.url) as provider:
            said = [f"canary {number}" for number in range(60)]
            heard = [[] for _ in said]
            calls = [
                provider.complete([Message.user(each)], on_chunk=listener.append)
                for each, listener in zip(said, heard, strict=True)
            ]
            answers = [each.text for each in await asyncio.gather(*calls)]
            return answers == said, heard == [[each] for each in said]

    assert run(main()) == (True, True)


# What is kept between calls


def test_a_provider_keeps_nothing_of_a_conversation():
    """S2-1: what is asked is what was passed, whatever the object was asked before."""

    async def main():
        async with Loopback(whole(GOOD)) as server, simple(server.url) as provider:
            first = await provider.complete([Message.user("One.")])
            await provider.complete([Message.user("Two.")])
            await provider.complete([Message.user("One."), first.message, Message.user("Three.")])
            return [[each["text"] for each in asked.json["messages"]] for asked in server.requests]

    assert run(main()) == [["One."], ["Two."], ["One.", "Hello, Ada.", "Three."]]


def test_what_a_history_gave_is_a_snapshot_while_the_call_is_under_way():
    """S2-3: the log may grow meanwhile; what was passed does not, and nobody can change it."""
    history = History(ASKED)

    async def main():
        async with Loopback(chunked(STREAM)) as server, simple(server.url) as provider:
            shown = history.messages
            await provider.complete(
                shown, on_chunk=lambda words: history.append(Message.user(words))
            )
            return shown, server.requests[0].json["messages"]

    shown, asked = run(main())

    assert shown == tuple(ASKED) and len(history) == 3
    assert asked == [{"role": "user", "text": "Hello."}]
    with pytest.raises(AttributeError):
        shown[0].content = "Goodbye."


def test_a_connection_is_kept_between_calls():
    """S2-5: that is no history."""

    async def main():
        async with Loopback(whole(GOOD)) as server:
            async with simple(server.url) as provider:
                for _ in range(3):
                    await provider.complete(ASKED)
            return server.connections, len(server.requests)

    assert run(main()) == (1, 3)


# Secrets


def test_a_missing_key_names_the_variable_before_anything_is_sent(monkeypatch):
    monkeypatch.delenv("SIMPLE_API_KEY", raising=False)

    async def main():
        await simple("https://service.example").complete(ASKED)

    with pytest.raises(AuthError, match="SIMPLE_API_KEY"):
        run(main())


def test_a_key_is_sent_and_shown_nowhere(monkeypatch, caplog):
    """Not in the words of a service that repeats it, and not in the log of any library."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("SIMPLE_API_KEY", CANARY)
    said = {"error": {"message": f"the word {CANARY} is wrong, {CANARY[3:]} too"}}

    error, server = failed(InvalidRequest, whole(said, status=400))

    assert server.requests[0].headers["authorization"] == f"Bearer {CANARY}"
    seen = [repr(error), str(error), repr(error.args), caplog.text]
    assert CANARY not in "".join(seen)


@pytest.mark.parametrize(
    "body",
    [{"text": CANARY, "end": 5}, {"error": {"message": f"no {CANARY}"}}, {"error": f"so {PLAIN}"}],
    ids=["wrong type", "error", "plain"],
)
def test_a_key_that_comes_back_in_a_stream_is_not_told(body):
    options = {"api_key": CANARY, "tries_max": 1, "headers": {"x-token": PLAIN}}
    error, _ = completed(chunked(events(body), x_request_id=PLAIN), on_chunk=str, options=options)

    words = repr(error) + str(error)
    assert CANARY not in words and PLAIN not in words


def test_a_provider_shows_its_name_and_address_alone():
    provider = simple(
        "https://ada:hunter2-canary@x.example/v1",
        api_key=CANARY,
        headers={"x-secret": CANARY},
        proxy="http://ada:hunter2-canary@proxy.example",
    )

    assert repr(provider) == "<provider simple:small at https://x.example/v1>"
    assert "hunter2" not in repr(vars(provider))


def test_a_password_in_the_address_is_sent_instead_of_a_key_of_the_environment(monkeypatch):
    monkeypatch.setenv("SIMPLE_API_KEY", CANARY)

    async def main(**options):
        async with Loopback(whole(GOOD)) as server:
            url = server.url.replace("//", "//ada:pw@")
            async with simple(url, **options) as provider:
                await provider.complete(ASKED)
            return server.requests[0].headers["authorization"]

    assert run(main()) == "Basic YWRhOnB3"
    assert run(main(api_key="mine")) == "Bearer mine"


def test_own_headers_are_sent_and_come_last():
    options = {"api_key": "x", "headers": {"Authorization": "Own 1", "X-Tenant": "t"}}

    _, server = completed(whole(GOOD), options=options)

    assert server.requests[0].headers["authorization"] == "Own 1"
    assert server.requests[0].headers["x-tenant"] == "t"


@pytest.mark.parametrize(
    "options",
    [
        *({"tries_max": 0}, {"tries_max": 6}, {"tries_max": "3"}, {"size_max": -1}),
        *({"context_limit": 0}, {"output_limit": 1.5}, {"prices": 3}, {"timeout": "soon"}),
        *({"headers": {"a b": "c"}}, {"api_key": 5}, {"proxy": "proxy.example"}),
    ],
)
def test_a_wrong_option_is_refused_at_once(options):
    with pytest.raises(InvalidInput):
        simple("https://x.example", **options)


def test_a_proxy_beside_a_lent_client_is_refused():
    with pytest.raises(InvalidInput, match="proxy"):
        simple("https://x.example", client=httpx2.AsyncClient(), proxy="http://p.example")
