"""F09: a service that is slow, stalls, half closes, resets, or goes away in the middle.

An error comes no later than the limit on silence and a second; a cancel within a second. A stream
without its last event broke off, wherever that was, and is never a complete answer. No task, no
socket and no lock is left behind.
"""

import asyncio
import socket
import threading
import time

import pytest

from bad_inputs import run
from faults import calls
from faults.calls import LIMITS, limits
from faults.talk import ANSWER, PROGRAMS, SAID, SPOKEN, VENDORS, joined
from faults.tier import pick, some
from holdfast.cancel import CancelToken
from holdfast.errors import Cancelled, ConnectionFailed
from holdfast.messages import Message, Stop
from holdfast.testing.faults import loops
from loopback import Loopback, chunked, in_turn, until_closed, whole

APIS = list(SPOKEN)
HEAD = until_closed(b"")


def tried(api, answer, make=calls.ours, options=None, **more):
    """The outcome of one call, and everything that is wrong with it."""

    async def body(provider, server):
        outcome = await calls.call(provider, server, answer, **more)
        if outcome.response is None and not isinstance(outcome.error, TimeoutError):
            return outcome, calls.complaints(api, outcome)
        return outcome, []

    async def main():
        return await calls.with_server(api, body, make, **(options or {}))

    (outcome, found), left = run(main())
    return outcome, found + left


def tried_together(api, answers, options=None, **more):
    """The outcomes of many calls that run at once, by name, and everything that is wrong."""

    async def one(answer):
        async with Loopback(b"") as server:
            provider = calls.ours(api, server.url, **(options or {}))
            outcome = await calls.call(provider, server, answer, **more)
            await provider.close()
            return outcome

    async def main():
        before = asyncio.all_tasks(), calls.open_sockets()
        outcomes = await asyncio.gather(*map(one, answers.values()))
        return outcomes, await calls.leaks(*before)

    outcomes, found = run(main())
    for outcome in outcomes:
        found += calls.complaints(api, outcome)
    return dict(zip(answers, outcomes, strict=True)), found


# Silence


def silences(api):
    """Where a service may fall silent, by name: what was sent before it."""
    events = [event.encoded() for event in SPOKEN[api].events(ANSWER)]
    middle = len(events) // 2
    places = {
        "before anything": [],
        "behind the first event": [HEAD, events[0]],
        "inside an event": [HEAD, *events[:middle], events[middle][:-9]],
        "between events": [HEAD, *events[:middle]],
        "before the last event": [HEAD, *events[:-1]],
    }
    if api in PROGRAMS:
        return places
    document = whole(VENDORS[api].document(ANSWER))
    return places | {
        "inside the status": [b"HTTP/1.1 20"],
        "inside the head": [b"HTTP/1.1 200 OK\r\ncontent-type: text/ev"],
        "behind the head": [HEAD],
        "inside a chunk": [chunked(joined(VENDORS[api].events(ANSWER)))[:-60]],
        "inside a document": [document[:-20]],
        "inside an error": [whole(b"x" * 100, status=500)[:-50]],
    }


@pytest.mark.parametrize("api", APIS)
def test_silence_is_an_error_at_the_limit_wherever_it_falls(api):
    """Idle limit and a second, at most; what was heard is kept; the connection is closed."""
    answers = {
        where: in_turn(*pieces, pause_s=0.001, then="hang")
        for where, pieces in silences(api).items()
    }

    outcomes, found = tried_together(api, answers)

    assert found == []
    for where, outcome in outcomes.items():
        assert outcome.response is None, where
        idle_s = limits(api).idle
        assert idle_s * 0.9 <= outcome.took_s <= idle_s + 1, where
        if where == "inside an error":
            assert outcome.error.status == 500
            continue
        assert type(outcome.error) is ConnectionFailed, where
        assert "idle limit" in str(outcome.error), where


def test_a_document_that_does_not_come_is_an_error_at_the_limit():
    outcome, found = tried("openai-chat", in_turn(then="hang"), stream=False)

    assert found == []
    assert type(outcome.error) is ConnectionFailed and outcome.took_s <= LIMITS.idle + 1


def test_a_trickle_without_end_is_stopped_at_the_limit_of_all_together():
    """Each byte resets the limit on silence; comments do, too."""
    limits = LIMITS._replace(total=1.0)
    drip = in_turn(HEAD, *[b": still here\n\n"] * 400, pause_s=0.02)

    outcome, found = tried("anthropic", drip, options={"timeout": limits})

    assert found == []
    assert "total limit" in str(outcome.error)
    assert 0.9 <= outcome.took_s <= 2.0


def test_a_slow_answer_that_keeps_coming_is_an_answer():
    """Slower than any limit on silence, all together, and never silent for that long."""
    pieces = [event.encoded() for event in VENDORS["anthropic"].events(ANSWER)]

    outcome, found = tried("anthropic", in_turn(HEAD, *pieces, pause_s=LIMITS.idle / 6))

    assert found == []
    assert outcome.response.text == SAID
    assert outcome.took_s > LIMITS.idle


def test_a_host_that_does_not_answer_is_an_error_at_the_limit():
    """Its queue is full: the first packet of a connection is dropped, as on a cut link."""
    full = socket.socket()
    full.bind(("127.0.0.1", 0))
    full.listen(0)
    waiting = [socket.socket() for _ in range(4)]
    for each in waiting:
        each.setblocking(False)
        each.connect_ex(full.getsockname())

    async def main():
        url = f"http://127.0.0.1:{full.getsockname()[1]}"
        provider = calls.ours("anthropic", url, timeout=LIMITS._replace(connect=0.4))
        async with Loopback(b"") as server:
            outcome = await calls.call(provider, server, b"")
        await provider.close()
        return outcome

    try:
        outcome = run(main())
    finally:
        for each in (full, *waiting):
            each.close()

    assert type(outcome.error) is ConnectionFailed and "connect limit" in str(outcome.error)
    assert outcome.took_s <= 1.4


def test_a_service_that_does_not_read_is_an_error_at_the_limit():
    """The question does not fit into what lies between the two."""
    asked = [Message.user("x" * (pick(24, 60) * 1024 * 1024))]

    async def main():
        gone = asyncio.Event()

        async def deaf(_reader, writer):
            await gone.wait()
            writer.transport.abort()

        server = await asyncio.start_server(deaf, "127.0.0.1", 0, limit=1024)
        port = server.sockets[0].getsockname()[1]
        provider = calls.ours("openai-chat", f"http://127.0.0.1:{port}")
        started = time.monotonic()
        with pytest.raises(ConnectionFailed, match="idle limit"):
            await provider.complete(asked)
        took_s = time.monotonic() - started
        gone.set()
        await provider.close()
        server.close()
        return took_s

    assert run(main()) < LIMITS.idle + 2  # a second for preparing so much


def test_a_stall_before_any_output_is_told_at_once_and_tried_again():
    """Who listens to the tries hears of it at the limit."""
    heard = []
    good = chunked(joined(VENDORS["anthropic"].events(ANSWER)))

    async def main():
        async with Loopback(in_turn(HEAD, then="hang"), good) as server:
            provider = calls.ours("anthropic", server.url, tries_max=2)
            started = time.monotonic()
            response = await provider.complete(
                calls.ASKED,
                on_chunk=str,
                on_retry=lambda *_: heard.append(time.monotonic() - started),
            )
            await provider.close()
            return response

    assert run(main()).text == SAID
    assert len(heard) == 1 and heard[0] <= LIMITS.idle + 1


# The end comes too early


ENDS = ("close", "reset", "half")


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("then", ENDS)
def test_a_stream_without_its_last_event_broke_off(api, then):
    """Cut behind each event, by the end of the connection: what was heard is the partial answer."""
    events = [event.encoded() for event in SPOKEN[api].events(ANSWER)]
    ended = is_ended_at(api, events)
    for cut in calls.few(api, some(range(ended), pick(6, 100)), 3):
        answer = in_turn(HEAD + b"".join(events[:cut]), pause_s=0.02, then=then)

        outcome, found = tried(api, answer)

        assert found == []
        assert outcome.response is None, f"complete after {cut} of {len(events)} events"
        assert type(outcome.error) is ConnectionFailed
        assert SAID.startswith(outcome.heard)
        assert outcome.took_s < limits(api).idle + 1


def is_ended_at(api, events):
    """After how many events the answer is complete: all, or all but [DONE] and a count."""
    return len(events) - {"openai-chat": 2, "copilot": 2}.get(api, 0)


@pytest.mark.parametrize("api", APIS)
def test_a_tidy_end_of_the_transfer_is_no_end_of_the_answer(api):
    """A proxy that gives up ends its chunks as if all were well."""
    events = SPOKEN[api].events(ANSWER)

    for cut in some(range(1, is_ended_at(api, events)), pick(4, 100)):
        outcome, found = tried(api, chunked(joined(events[:cut])))

        assert found == []
        assert type(outcome.error) is ConnectionFailed, cut
        assert outcome.partial is None or outcome.partial.stop == Stop.ERROR


@pytest.mark.parametrize("api", APIS)
def test_a_stream_cut_inside_its_last_bytes_is_complete_only_with_its_end(api):
    """At every byte of the last event, [DONE] aside."""
    events = SPOKEN[api].events(ANSWER)[: is_ended_at(api, SPOKEN[api].events(ANSWER))]
    body = joined(events)
    last = len(events[-1].encoded())

    for cut in calls.few(api, some(range(len(body) - last, len(body) - 2), pick(12, 400)), 4):
        outcome, found = tried(api, chunked(body[:cut]))

        assert found == []
        assert outcome.response is None or is_whole(body[:cut], events), cut


def is_whole(data, events):
    """Only blank bytes are missing: the mark that ends it can be told."""
    return data.rstrip() == joined(events).rstrip()


# Cancelling


@pytest.mark.parametrize("api", APIS)
def test_a_cancel_is_heard_within_a_second_wherever_it_falls(api):
    token = CancelToken()
    timer = threading.Timer(0.3, token.cancel, ["enough"])
    answers = {
        where: in_turn(*pieces, pause_s=0.001, then="hang")
        for where, pieces in silences(api).items()
    }
    timer.start()

    patient = limits(api)._replace(idle=20, total=30)
    outcomes, found = tried_together(api, answers, {"timeout": patient}, cancel_token=token)
    timer.join()

    assert found == []
    for where, outcome in outcomes.items():
        assert type(outcome.error) is Cancelled, (where, outcome.error)
        assert outcome.took_s < 1.3, where


def test_a_cancel_at_every_await_leaves_nothing_behind():
    """The task is cancelled at its k-th await, for every k: the next call works, on a connection
    that holds no other's answer."""
    vendor = VENDORS["anthropic"]

    async def main():
        count = asyncio.all_tasks()
        async with Loopback(b"") as server:
            server.answers = [chunked(joined(vendor.events(ANSWER)))]
            provider = calls.ours("anthropic", server.url)
            await provider.complete(calls.ASKED, on_chunk=str)  # everything is loaded
            before, k = calls.open_sockets(), 0
            while True:
                k += 1
                work = provider.complete(calls.ASKED, on_chunk=str, cancel_token=CancelToken())
                outcome = await loops.cancel_at(work, k)
                response = await provider.complete(calls.ASKED, on_chunk=str)
                assert response.text == SAID
                if not outcome.is_hit:
                    break
            await provider.close()
            after = calls.open_sockets() - before
        return k, len(after), await calls.leaks(count, set(before))

    k, more, left = run(main())

    assert k > 5
    assert more <= 2  # those of the server, about to close
    assert [each for each in left if "Task" in each] == []


def test_many_calls_cancelled_at_random_leave_nothing_behind():
    async def slow(connection, asked):
        await connection.send(HEAD)
        for event in VENDORS["anthropic"].events(ANSWER):
            await asyncio.sleep(0.01)
            await connection.send(event.encoded())

    async def body(provider, server):
        async def one(number):
            token = CancelToken()
            timer = asyncio.get_running_loop().call_later(number % 30 / 100, token.cancel)
            try:
                answer = await provider.complete(calls.ASKED, on_chunk=str, cancel_token=token)
            except Cancelled as error:
                return error.partial is None or SAID.startswith(error.partial.text or "")
            finally:
                timer.cancel()
            return answer.text == SAID

        server.answers = [slow]
        return await asyncio.gather(*(one(number) for number in range(pick(60, 1000))))

    results, left = run(calls.with_server("anthropic", body))

    assert all(results)
    assert left == []


# Controls: what one writes first is found out


def test_a_naive_client_is_found_out_by_silence():
    """It waits for ever; the row's own patience ends it."""
    outcome, _ = tried(
        "anthropic", in_turn(HEAD, then="hang"), make=calls.Naive, limit_s=LIMITS.idle + 1
    )

    assert isinstance(outcome.error, TimeoutError)


def test_a_naive_client_takes_a_broken_stream_for_an_answer():
    events = VENDORS["anthropic"].events(ANSWER)

    outcome, _ = tried("anthropic", chunked(joined(events[:5])), make=calls.Naive)

    assert outcome.response is not None


def test_a_naive_client_does_not_hear_a_cancel():
    token = CancelToken()
    timer = threading.Timer(0.05, token.cancel)
    timer.start()

    outcome, _ = tried(
        "anthropic",
        in_turn(HEAD, then="hang"),
        make=calls.Naive,
        limit_s=1.1,
        cancel_token=token,
    )
    timer.join()

    assert not isinstance(outcome.error, Cancelled)


class Leaky(calls.Naive):
    """Leaves a connection and a task behind."""

    async def complete(self, *args, **more):
        _, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.task = asyncio.ensure_future(asyncio.sleep(60))
        raise ConnectionFailed("on purpose")

    async def close(self):
        pass


def test_what_is_left_behind_is_found_out():
    kept = []

    def leaky(api, url):
        provider = Leaky(api, url)
        provider.port = int(url.rpartition(":")[2])
        kept.append(provider)
        return provider

    async def body(provider, server):
        with pytest.raises(ConnectionFailed):
            await provider.complete(calls.ASKED)

    async def main():
        (_, left), provider = await calls.with_server("anthropic", body, leaky), kept[0]
        provider.task.cancel()
        provider.writer.transport.abort()
        await asyncio.sleep(0)
        await provider.client.aclose()
        return left

    left = run(main())

    assert any("Task" in each for each in left)
    assert any("socket" in each for each in left)
