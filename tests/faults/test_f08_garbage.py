"""F08: a service that answers garbage, in each of its wires.

Whatever comes, it is an answer or one of our errors; what there was of an answer is kept, and the
history goes on behind it in a request that every vendor accepts. Memory stays within the limit and
32 MiB.
"""

import asyncio
import gzip
import json
import sys
import zlib

import pytest

from bad_inputs import run
from faults import calls, talk
from faults.talk import ANSWER, SAID, SPOKEN, VENDORS, joined
from faults.tier import pick, some
from holdfast.errors import (
    AuthError,
    ConnectionFailed,
    Overloaded,
    ProtocolError,
    RateLimited,
)
from holdfast.messages import Stop
from loopback import Loopback, chunked, in_turn, until_closed, whole

MIB = 1024 * 1024
APIS = list(VENDORS)
STREAMED = [(api, True) for api in SPOKEN] + [(api, False) for api in APIS]
PAGE = b"<!doctype html><html><head><title>502 Bad Gateway</title></head></html>"


def tried(api, answers, make=calls.ours, stream=True, is_consistent=True):
    """The outcome of each answer, and everything that is wrong with any of them."""

    async def body(provider, server):
        outcomes, found = [], []
        for answer in answers:
            outcome = await calls.call(provider, server, answer, stream=stream)
            found += calls.complaints(api, outcome, is_consistent)
            outcomes.append(outcome)
        return outcomes, found

    options = {} if make is calls.Naive else {"timeout": calls.PATIENT}

    async def main():
        return await calls.with_server(api, body, make, **options)

    (outcomes, found), left = run(main())
    return outcomes, found + left


# The answer that all are made from


@pytest.mark.parametrize(("api", "stream"), STREAMED)
def test_without_a_fault_it_is_the_answer(api, stream):
    """Or the rows below would show nothing."""
    vendor = SPOKEN[api]
    body = joined(vendor.events(ANSWER)) if stream else vendor.document(ANSWER)
    answer = chunked(body) if stream else whole(body)

    (outcome,), found = tried(api, [answer], stream=stream)

    assert found == []
    response = outcome.response
    assert (response.text, response.stop) == (SAID, Stop.TOOL_USE)
    assert [json.loads(each.arguments) for each in response.calls] == [{"at": "the sky"}, {}]
    assert (response.usage.input, response.usage.output) == (11, 7)


# Not an answer at all


BODIES = {
    "a page": whole(PAGE, kind="text/html"),
    "a page as JSON": whole(PAGE),
    "a page as events": chunked(PAGE),
    "empty": whole(b""),
    "empty events": chunked(b""),
    "204": whole(b"", status=204),
    "206": whole(b'{"a":', status=206),
    "null": whole(b"null"),
    "a number": whole(b"5"),
    "a list": whole(b"[]"),
    "a list of nothing": whole(b"[null, 5, []]"),
    "an empty object": whole(b"{}"),
    "deep": whole(b'{"a":' * 100_000),
    "deep list": chunked(b"[" * 100_000),
    "events of nothing": chunked(b"data:\n\ndata: null\n\ndata: 5\n\ndata: []\n\n"),
    "words": whole(b"It works!", kind="text/plain"),
    "binary": whole(bytes(range(256)) * 40, kind="application/octet-stream"),
    "NUL": whole(bytes(1000)),
    "redirect": whole(b"", status=302, location="http://169.254.169.254/latest"),
    "not HTTP": b"\x16\x03\x01garbage\r\n\r\n",
    "wrong packing": whole(b"x", content_encoding="gzip"),
    "cut packing": whole(gzip.compress(b"{}" * 900)[:-9], content_encoding="gzip"),
    "unknown packing": whole(b"x", content_encoding="rot13"),
}


@pytest.mark.parametrize(("api", "stream"), STREAMED)
def test_what_is_no_answer_is_a_typed_error(api, stream):
    names = calls.few(api, BODIES)
    outcomes, found = tried(api, [BODIES[name] for name in names], stream=stream)

    assert found == []
    kinds = dict(zip(names, (type(each.error) for each in outcomes), strict=True))
    assert set(kinds.values()) <= {ProtocolError, ConnectionFailed, Overloaded}, kinds
    late = [name for name, each in zip(names, outcomes, strict=True) if each.took_s > 2]
    assert late == []


@pytest.mark.parametrize("api", APIS)
def test_an_error_under_status_200_is_that_error(api):
    wrong = {"error": {"type": "authentication_error", "message": "invalid x-api-key"}}
    slow = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}

    outcomes, found = tried(api, [whole(wrong), whole(slow)])

    assert found == []
    assert [type(each.error) for each in outcomes] == [AuthError, RateLimited]


# Broken on the way


@pytest.mark.parametrize("api", APIS)
def test_a_document_cut_anywhere_is_never_an_answer(api):
    data = json.dumps(VENDORS[api].document(ANSWER)).encode()
    cuts = some(range(len(data)), pick(50, len(data)))

    outcomes, found = tried(api, [whole(data[:cut]) for cut in cuts], stream=False)

    assert found == []
    assert [each for each in outcomes if each.response is not None] == []


@pytest.mark.parametrize(("api", "stream"), STREAMED)
def test_a_field_of_another_type_is_an_answer_or_a_typed_error(api, stream):
    """Each place of each event, in turn, holds something else."""
    vendor = SPOKEN[api]
    if stream:
        events = vendor.events(ANSWER)
    else:
        events = [vendor.unknown._replace(data=vendor.document(ANSWER))]
    broken = [
        (number, path, other)
        for number, event in enumerate(events)
        if not isinstance(event.data, bytes)
        for path, other in talk.broken_types(event.data)
    ]

    def answer(number, path, other):
        data = talk.with_other(events[number].data, path, other)
        changed = events[number]._replace(data=data)
        if not stream:
            return whole(changed.data)
        return chunked(joined([*events[:number], changed, *events[number + 1 :]]))

    answers = [answer(*each) for each in calls.few(api, some(broken, pick(120, 4000)), 16)]
    for at in range(0, len(answers), 100):  # a program is started for each, which takes a while
        # Deltas and the whole that repeats them may differ; what was heard cannot be taken back.
        _, found = tried(api, answers[at : at + 100], stream=stream, is_consistent=False)

        assert found == []


@pytest.mark.parametrize("api", SPOKEN)
def test_bytes_that_are_no_utf8_become_replacement_characters(api):
    body = joined(SPOKEN[api].events((("text", "ab CANARY cd"),)))

    outcomes, found = tried(
        api, [chunked(body.replace(b"CANARY", bad)) for bad in (b"\xff", b"\xc3", b"\xed\xa0\x80")]
    )

    assert found == []
    assert all("\ufffd" in each.response.text for each in outcomes)


@pytest.mark.parametrize("api", SPOKEN)
def test_half_a_surrogate_pair_becomes_a_replacement_character(api):
    body = joined(SPOKEN[api].events((("text", "ab CANARY cd"),)))

    (outcome,), found = tried(api, [chunked(body.replace(b"CANARY", rb"\ud83d"))])

    assert found == []
    assert outcome.response.text == "ab \ufffd cd"


# More than was asked for


@pytest.mark.parametrize("api", SPOKEN)
def test_unknown_events_change_nothing(api):
    vendor = SPOKEN[api]
    events = vendor.events(ANSWER)
    bodies = [[*events[:at], vendor.unknown, *events[at:]] for at in range(1, len(events))]
    named = vendor.unknown._replace(name="sparkle", data={"type": "sparkle"})
    bodies += [[*events[:at], named, *events[at:]] for at in range(1, len(events))]

    outcomes, found = tried(api, [chunked(joined(body)) for body in calls.few(api, bodies)])

    assert found == []
    assert {each.response.text for each in outcomes} == {SAID}
    assert {len(each.response.calls) for each in outcomes} == {2}


@pytest.mark.parametrize("api", SPOKEN)
def test_a_second_end_and_events_behind_it_are_borne(api):
    vendor = SPOKEN[api]
    events = vendor.events(ANSWER)
    done = vendor.unknown._replace(name=None, data=b"[DONE]")
    bodies = [
        [*events, events[-1]],
        [*events, done, done],
        [*events, vendor.unknown],
        [*events, *vendor.events((("text", "again"),))],
    ]

    outcomes, found = tried(api, [chunked(joined(body)) for body in bodies])

    assert found == []
    assert all(each.response.text == SAID for each in outcomes[:3])


@pytest.mark.parametrize("api", [api for api in SPOKEN if SPOKEN[api].has_ids])
def test_arguments_split_anywhere_are_put_together(api):
    arguments = '{"at": "é漢😀 \\" \\\\ \\u00e9", "n": [1, {"x": null}]}'
    pieces = [(arguments[:cut], arguments[cut:]) for cut in range(len(arguments) + 1)]
    pieces.append(tuple(arguments))
    steps = [(("call", "call_1", "look", each),) for each in pieces]

    outcomes, found = tried(
        api,
        [
            chunked(joined(SPOKEN[api].events(each)))
            for each in calls.few(api, some(steps, pick(20, 100)))
        ],
    )

    assert found == []
    assert {each.response.calls[0].arguments for each in outcomes} == {arguments}


@pytest.mark.parametrize("api", [api for api in SPOKEN if SPOKEN[api].has_ids])
def test_calls_of_one_id_and_gaps_between_indexes_are_borne(api):
    """The next request has ids that differ, whatever the service gave."""
    vendor = SPOKEN[api]
    twice = (("call", "same", "look", ("{}",)), ("call", "same", "look", ('{"at": 1}',)))
    bodies = [
        vendor.events(twice),
        vendor.events(ANSWER, at=lambda number: number * 7 + 3),
        vendor.events((*twice, *twice), at=lambda number: 900 - number),
    ]

    outcomes, found = tried(api, [chunked(joined(body)) for body in bodies])

    assert found == []
    assert [len(each.response.calls) for each in outcomes] == [2, 2, 4]


@pytest.mark.parametrize("api", SPOKEN)
def test_an_error_in_the_middle_keeps_what_came_before(api):
    vendor = SPOKEN[api]
    events = vendor.events(ANSWER)
    places = calls.few(api, range(1, len(events)))
    bodies = [joined([*events[:at], vendor.error]) for at in places]

    outcomes, found = tried(api, [chunked(body) for body in bodies])

    assert found == []
    assert {type(each.error) for each in outcomes} == {Overloaded}
    assert outcomes[-1].partial.text == SAID
    assert all(SAID.startswith(each.heard) for each in outcomes)


# Refusals


ODD_WAITS = [
    "-1",
    "nan",
    "1000000000",
    "Wed, 21 Oct 2015 07:28:00 GMT",
    "5, 10",
    "",
    "soon",
    "1e400",
]


@pytest.mark.parametrize("status", [429, 503, 529])
def test_odd_waits_neither_hang_nor_break_a_call(status):
    """What is asked for and cannot be waited is no reason to wait."""
    body = {"error": {"type": "overloaded_error" if status != 429 else "rate_limit_error"}}
    answers = [whole(body, status=status, retry_after=wait) for wait in ODD_WAITS]

    outcomes, found = tried("anthropic", answers)

    assert found == []
    assert {type(each.error) for each in outcomes} == {RateLimited if status == 429 else Overloaded}
    waits = [each.error.retry_after_s for each in outcomes]
    assert all(wait is None or wait >= 0 for wait in waits)


def test_a_wait_of_years_is_not_waited():
    async def main():
        async with Loopback(whole({}, status=429, retry_after="999999999")) as server:
            provider = calls.ours("anthropic", server.url, tries_max=5)
            outcome = await calls.call(provider, server, server.answers[0])
            await provider.close()
            return outcome

    outcome = run(main())

    assert type(outcome.error) is RateLimited
    assert outcome.requests == 1 and outcome.took_s < 1


@pytest.mark.parametrize("api", APIS)
def test_tries_are_at_most_five_and_a_clear_refusal_is_sent_once(api, monkeypatch):
    """Promise 11."""
    monkeypatch.setattr("holdfast.providers.retries.FIRST_BOUND_S", 0.01)

    async def body(provider, server):
        busy = whole({"error": {"message": "busy"}}, status=503, retry_after="0.001")
        often = await calls.call(provider, server, busy)
        clear = whole({"error": {"message": "messages: wrong"}}, status=400)
        return often, await calls.call(provider, server, clear)

    def main():
        return calls.with_server(api, body, timeout=calls.PATIENT, tries_max=5)

    (often, clear), left = run(main())

    assert left == []
    assert (type(often.error), often.requests, clear.requests) == (Overloaded, 5, 1)


# Memory


PROBE = """
import asyncio, sys
sys.path[:0] = {paths!r}
import httpx2
from faults import calls
from holdfast.errors import ProviderError

def peak_kib():
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])

async def main():
    more = {{}} if {naive!r} else {{"timeout": calls.PATIENT}}
    provider = (calls.Naive if {naive!r} else calls.ours)("anthropic", {url!r}, **more)
    async def ask(**more):
        try:
            response = await provider.complete(calls.ASKED, **more)
            return "answer"
        except ProviderError as error:
            return type(error).__name__
        except Exception as error:
            return "untyped " + type(error).__name__
    await ask()    # everything is loaded
    before = peak_kib()
    outcome = await ask(**({{"on_chunk": len}} if {stream!r} else {{}}))
    print(outcome, (peak_kib() - before) // 1024)
    await provider.close()

asyncio.run(main())
"""


def bomb(size):
    """So many zeros, packed."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    piece = bytes(MIB)
    return b"".join([packer.compress(piece) for _ in range(size // MIB)] + [packer.flush()])


def memory(answer, *, stream, naive=False):
    """What a call came to, and by how many MiB the peak grew, in a process of its own."""

    async def main():
        async with Loopback(whole({}, status=400), answer) as server:
            code = PROBE.format(paths=sys.path, url=server.url, stream=stream, naive=naive)
            child = await asyncio.create_subprocess_exec(
                sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE
            )
            told, _ = await child.communicate()
            return told.decode().rsplit(" ", 1)

    outcome, grown = run(main())
    return outcome, int(grown)


@pytest.mark.parametrize("stream", [True, False])
def test_a_bomb_is_stopped_at_the_limit(stream):
    """Zeros, two hundred times smaller when packed, for a limit of 64 MiB."""
    kind = "text/event-stream" if stream else "application/json"
    packed = bomb(pick(256, 4096) * MIB)
    answer = whole(packed, content_encoding="gzip", kind=kind)

    outcome, grown = memory(answer, stream=stream)

    assert outcome == "ProtocolError"
    assert grown <= 64 + 32


def test_an_event_without_end_is_stopped_at_the_limit():
    outcome, grown = memory(chunked(b"data: " + b"x" * (80 * MIB)), stream=True)

    assert outcome == "ProtocolError"
    assert grown <= 64 + 32


@pytest.mark.parametrize("api", SPOKEN)
def test_ten_mebibytes_in_one_delta_are_taken(api):
    words = "a long story. " * (10 * MIB // 14)
    body = joined(SPOKEN[api].events((("text", words),)))

    (outcome,), found = tried(api, [chunked(body)])

    assert found == []
    assert outcome.response.text == words


def test_a_stream_of_more_than_the_limit_is_stopped_with_what_came():
    vendor = VENDORS["anthropic"]
    pieces = [event.encoded() for event in vendor.events((("text", "x" * 1000),) * 40)]
    answer = in_turn(until_closed(b""), *pieces, pause_s=0.005)

    async def body(provider, server):
        return await calls.call(provider, server, answer)

    def main():
        return calls.with_server("anthropic", body, size_max=20_000)

    outcome, left = run(main())

    assert left == []
    assert type(outcome.error) is ProtocolError and "size_max" in str(outcome.error)
    assert len(outcome.partial.text) >= 10_000


# Controls: what one writes first is found out


def test_a_naive_client_is_found_out_by_garbage():
    _, found = tried("anthropic", [BODIES["a page"]], make=calls.Naive, stream=False)

    assert any("none of ours" in each for each in found)


def test_a_naive_client_is_found_out_by_a_bomb():
    answer = whole(bomb(256 * MIB), content_encoding="gzip")

    outcome, grown = memory(answer, stream=False, naive=True)

    assert outcome.startswith("untyped")
    assert grown > 64 + 32


def test_a_naive_client_goes_where_a_redirect_leads():
    async def main():
        async with Loopback(whole({})) as other:

            async def body(provider, server):
                away = whole(b"", status=307, location=other.url)
                await calls.call(provider, server, away, stream=False)
                return len(other.requests)

            naive, _ = await calls.with_server("anthropic", body, calls.Naive)
            ours, _ = await calls.with_server("anthropic", body)
            return naive, ours - naive

    assert run(main()) == (1, 0)


def test_a_history_that_no_vendor_takes_is_found_out(monkeypatch):
    """The judge of what is sent afterwards is awake."""
    from holdfast.testing import validators

    monkeypatch.setattr(validators, "problems", lambda *_, **__: ["no"])
    answer = chunked(joined(VENDORS["anthropic"].events(ANSWER)))

    _, found = tried("anthropic", [answer])

    assert found
