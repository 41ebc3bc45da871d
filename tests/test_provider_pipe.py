"""The pipe: limits, sizes, redirects, event loops, and whose client it is."""

import asyncio
import gzip
import time

import httpx2
import pytest

from bad_inputs import run
from holdfast.errors import ConnectionFailed, InvalidInput, ProtocolError
from holdfast.providers import pipe
from holdfast.providers.credentials import Headers, Secret
from holdfast.providers.pipe import Pipe, Request, Timeouts
from loopback import Loopback, chunked, in_turn, until_closed, whole

FAST = Timeouts(connect=0.3, idle=0.3, total=5.0)
DEAD = "http://127.0.0.1:9"  # where no proxy is


async def fetched(pipe, url):
    reply = await pipe.send(Request("POST", url, Headers(), b"{}"))
    try:
        return await reply.body()
    finally:
        await reply.close()


def test_a_body_comes_whole_and_unpacked():
    async def main():
        packed = gzip.compress(b"hello " * 1000)
        async with Loopback(whole(packed, content_encoding="gzip")) as server:
            pipe = Pipe()
            body = await fetched(pipe, server.url)
            await pipe.close()
            return body, server.requests[0]

    body, asked = run(main())

    assert body == b"hello " * 1000
    assert "gzip" in asked.headers["accept-encoding"]
    assert asked.body == b"{}"


def test_connections_are_used_again():
    async def main():
        async with Loopback(whole(b"{}")) as server:
            pipe = Pipe()
            for _ in range(3):
                await fetched(pipe, server.url)
            await pipe.close()
            return server.connections, len(server.requests)

    assert run(main()) == (1, 3)


def test_any_number_of_calls_can_be_under_way():
    """A pool that is used up would let a session wait for another's answer."""

    async def main():
        all_there = asyncio.Barrier(150)

        async def together(connection, asked):
            await all_there.wait()
            await connection.send(whole(b"{}"))

        async with Loopback(together) as server:
            pipe = Pipe(timeouts=Timeouts(connect=5, idle=20, total=20))
            await asyncio.gather(*(fetched(pipe, server.url) for _ in range(150)))
            await pipe.close()

    run(main())


def test_an_answer_that_does_not_come_is_an_error_when_the_limit_is_over():
    async def main():
        async with Loopback(in_turn(then="hang")) as server:
            pipe = Pipe(timeouts=FAST)
            started = time.monotonic()
            with pytest.raises(ConnectionFailed, match=r"0\.3 s \(idle limit\)"):
                await fetched(pipe, server.url)
            await asyncio.wait_for(server.closed.wait(), 1)
            await pipe.close()
            return time.monotonic() - started

    assert 0.3 <= run(main()) < 1.3


def test_bytes_that_keep_coming_are_waited_for():
    """The limit is between two pieces, not for all of them."""

    async def main():
        pieces = [b"1\r\n.\r\n"] * 8
        start = chunked(b"", ends=False)
        async with Loopback(in_turn(start, *pieces, b"0\r\n\r\n", pause_s=0.1)) as server:
            pipe = Pipe(timeouts=FAST)
            body = await fetched(pipe, server.url)
            await pipe.close()
            return body

    assert run(main()) == b"." * 8


def test_no_connection_within_its_limit_is_an_error():
    """A host whose queue is full does not answer at all."""
    import socket

    full = socket.socket()
    full.bind(("127.0.0.1", 0))
    full.listen(0)
    waiting = []
    for _ in range(4):
        each = socket.socket()
        each.setblocking(False)
        each.connect_ex(full.getsockname())
        waiting.append(each)

    async def main():
        pipe = Pipe(timeouts=FAST)
        started = time.monotonic()
        with pytest.raises(ConnectionFailed, match=r"within 0\.3 s \(connect limit\)"):
            await fetched(pipe, f"http://127.0.0.1:{full.getsockname()[1]}")
        await pipe.close()
        return time.monotonic() - started

    try:
        assert 0.3 <= run(main()) < 1.3
    finally:
        for each in (full, *waiting):
            each.close()


def test_nobody_listening_is_told_with_the_systems_reason():
    async def main():
        async with Loopback(b"") as server:
            url = server.url
        pipe = Pipe()
        try:
            await fetched(pipe, url)
        finally:
            await pipe.close()

    with pytest.raises(ConnectionFailed, match=r"no connection to 127\.0\.0\.1:\d+"):
        run(main())


@pytest.mark.parametrize("is_packed", [False, True])
def test_more_than_the_limit_is_refused_while_it_comes(is_packed):
    """Counted when it is unpacked, so that a small answer cannot become a huge one."""
    size = 3 * 1024 * 1024
    body = gzip.compress(bytes(size)) if is_packed else bytes(size)
    packed = {"content_encoding": "gzip"} if is_packed else {}

    async def main():
        async with Loopback(whole(body, **packed)) as server:
            pipe = Pipe(size_max=2 * 1024 * 1024)
            try:
                await fetched(pipe, server.url)
            finally:
                await pipe.close()

    with pytest.raises(ProtocolError, match="more than 2097152 bytes"):
        run(main())


def test_as_much_as_the_limit_is_taken():
    async def main():
        async with Loopback(whole(bytes(1000))) as server:
            pipe = Pipe(size_max=1000)
            body = await fetched(pipe, server.url)
            await pipe.close()
            return body

    assert run(main()) == bytes(1000)


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (b"HTTP/1.1 two hundred\r\n\r\n", ProtocolError, "is no HTTP"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", ConnectionFailed, "closed the connection"),
        (b"", ConnectionFailed, "closed the connection"),
        (in_turn(whole(bytes(9))[:-4]), ConnectionFailed, "closed the connection"),
        (chunked(b"abc", ends=False), ConnectionFailed, "closed the connection"),
        (whole(b"not packed", content_encoding="gzip"), ProtocolError, "cannot be unpacked"),
    ],
    ids=["status", "ssh", "nothing", "length", "chunks", "gzip"],
)
def test_an_answer_that_is_no_good_http_is_a_typed_error(answer, kind, words):
    async def main():
        async with Loopback(answer) as server:
            pipe = Pipe()
            try:
                await fetched(pipe, server.url)
            finally:
                await pipe.close()

    with pytest.raises(kind, match=words):
        run(main())


def test_a_pipe_works_in_one_event_loop_after_the_other():
    """A script calls asyncio.run more than once; a connection of the first loop must not be met
    in the second."""
    pipe = Pipe()

    async def main():
        async with Loopback(whole(b"{}")) as server:
            body = await fetched(pipe, server.url)
            await pipe.close()
            return body

    assert [run(main()) for _ in range(3)] == [b"{}"] * 3
    assert pipe._clients == {}


def test_a_pipe_serves_two_event_loops_at_once():
    import threading

    pipe, results = Pipe(), []

    async def main(barrier):
        async with Loopback(whole(b"{}")) as server:
            await fetched(pipe, server.url)
            barrier.wait(10)
            results.append(await fetched(pipe, server.url))
            await pipe.close()

    barrier = threading.Barrier(2)
    threads = [threading.Thread(target=lambda: asyncio.run(main(barrier))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert results == [b"{}"] * 2


def test_a_lent_client_is_used_with_our_limits_and_is_not_closed():
    """The caller's own limits, headers and redirects would undo ours; what he sends along stays."""

    async def main():
        elsewhere = whole(b"", status=302, location="/other")
        async with Loopback(in_turn(then="hang"), elsewhere) as server:
            headers = {"x-own": "yes"}
            async with httpx2.AsyncClient(
                headers=headers, timeout=None, follow_redirects=True
            ) as client:
                pipe = Pipe(client=client, timeouts=FAST)
                with pytest.raises(ConnectionFailed):
                    await fetched(pipe, server.url)
                reply = await pipe.send(Request("POST", server.url, Headers(), b"{}"))
                await reply.close()
                await pipe.close()
                return reply.status, client.is_closed, server.requests

    status, is_closed, requests = run(main())

    assert (status, is_closed) == (302, False)
    assert [asked.headers["x-own"] for asked in requests] == ["yes", "yes"]


def test_a_lent_client_belongs_to_its_first_event_loop():
    client = httpx2.AsyncClient()
    pipe = Pipe(client=client)

    async def main():
        async with Loopback(until_closed(b"{}")) as server:
            return await fetched(pipe, server.url)

    assert run(main()) == b"{}"
    with pytest.raises(InvalidInput, match="another event loop"):
        run(main())


def test_a_lent_client_that_is_closed_is_refused():
    async def main():
        client = httpx2.AsyncClient()
        await client.aclose()
        await fetched(Pipe(client=client), "http://127.0.0.1:1")

    with pytest.raises(InvalidInput, match="is closed"):
        run(main())


def test_closing_twice_is_fine_and_a_later_call_opens_another_client():
    async def main():
        async with Loopback(whole(b"{}")) as server:
            pipe = Pipe()
            await pipe.close()
            for _ in range(2):
                await fetched(pipe, server.url)
                await pipe.close()
                await pipe.close()
            return server.connections

    assert run(main()) == 2


def test_a_proxy_is_asked_instead_of_the_host():
    async def main():
        async with Loopback(whole(b"by proxy")) as server:
            proxy = Secret(f"http://ada:hunter2-canary@127.0.0.1:{server.port}")
            pipe = Pipe(proxy=proxy)
            body = await fetched(pipe, "http://service.example/v1/x")
            await pipe.close()
            return body, server.requests[0]

    body, asked = run(main())

    assert body == b"by proxy"
    assert asked.path == "http://service.example/v1/x"
    assert asked.headers["proxy-authorization"].startswith("Basic ")


def test_a_proxy_of_the_environment_is_asked(monkeypatch):
    async def main():
        async with Loopback(whole(b"by proxy")) as server:
            monkeypatch.setenv("HTTP_PROXY", server.url)
            monkeypatch.delenv("NO_PROXY", raising=False)
            pipe = Pipe()
            body = await fetched(pipe, "http://service.example/v1/x")
            await pipe.close()
            return body

    assert run(main()) == b"by proxy"


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY"])
@pytest.mark.parametrize("named", ["127.0.0.1", "localhost"])
def test_this_machine_is_asked_directly_whatever_the_environment_has(variable, named, monkeypatch):
    """A proxy elsewhere could not reach it; one that cannot be used, and certificates that are not
    there, are nothing to it either. What the caller passes counts."""
    monkeypatch.setenv(variable, "gopher://nowhere" if variable == "ALL_PROXY" else DEAD)
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/certificates.pem")
    monkeypatch.delenv("NO_PROXY", raising=False)

    async def main():
        async with Loopback(whole(b"direct")) as server:
            url = server.url.replace("127.0.0.1", named)
            direct, told = Pipe(), Pipe(proxy=Secret(DEAD), timeouts=FAST)
            body = await fetched(direct, url)
            monkeypatch.delenv("SSL_CERT_FILE")
            with pytest.raises(ConnectionFailed):
                await fetched(told, url)
            await direct.close()
            await told.close()
            return body

    assert run(main()) == b"direct"


def test_a_proxy_that_cannot_be_used_is_told_without_its_password(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "gopher://ada:hunter2-canary@proxy.example")

    async def main():
        await fetched(Pipe(), "http://service.example/")

    with pytest.raises(InvalidInput, match="proxy") as caught:
        run(main())

    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("option", "limits"),
    [
        (None, Timeouts()),
        (5, Timeouts(5, 5, 5)),
        (60.0, Timeouts(10, 60, 60)),
        (Timeouts(1, 2, 3), Timeouts(1, 2, 3)),
    ],
)
def test_a_timeout_is_seconds_or_all_three_limits(option, limits):
    assert Timeouts.of(option) == limits


@pytest.mark.parametrize(
    "option", [0, -1, "5", True, float("nan"), float("inf"), (1, 2, 3), Timeouts(connect=None)]
)
def test_a_timeout_that_is_none_is_refused(option):
    with pytest.raises(InvalidInput, match="timeout"):
        Timeouts.of(option)


def test_a_request_shows_no_value_of_a_header():
    request = Request("POST", "https://x.example", Headers({"x-api-key": "hunter2-canary"}))

    assert "hunter2" not in repr(request)
    assert "x-api-key" in repr(request)


def test_certificates_are_loaded_once_for_all_clients(monkeypatch):
    """Loading them takes longer than all else; those of other files are others."""
    first = pipe._certificates(True)

    assert pipe._certificates(True) is first
    assert pipe._certificates(False) is not first
    monkeypatch.setenv("SSL_CERT_DIR", "/nowhere")
    assert pipe._certificates(True) is not first
