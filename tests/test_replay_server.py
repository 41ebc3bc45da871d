"""The loopback server: the recorded bytes, in any pieces, and every way to break off."""

import asyncio
import json
from urllib.parse import urlsplit

import pytest

import replay_recordings as ours
from holdfast.testing.replay.server import Answer, Server

RECORDED = ours.anthropic(stream=True).exchanges[0]
ASK = b'{"model": "x"}'


async def connect(server):
    address = urlsplit(server.url)
    return await asyncio.open_connection(address.hostname, address.port)


async def post(reader, writer, path="/v1/messages", data=ASK):
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(data)}\r\n\r\n"
    writer.write(head.encode() + data)
    status = (await reader.readline()).decode().split(" ", 2)
    headers = {}
    while (line := await reader.readline()).strip():
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    return int(status[1]), headers


async def body_of(reader, headers):
    """The pieces that came, and whether the transfer ended as it should."""
    if "content-length" in headers:
        data = await reader.read(int(headers["content-length"]))
        return [data], len(data) == int(headers["content-length"])
    pieces = []
    while line := await reader.readline():
        length = int(line, 16)
        if length == 0:
            await reader.readline()
            return pieces, True
        pieces.append(await reader.readexactly(length))
        await reader.readline()
    return pieces, False


async def asked(answer):
    async with Server(answer) as server:
        reader, writer = await connect(server)
        status, headers = await post(reader, writer)
        pieces, ended = await body_of(reader, headers)
        writer.close()
        return status, headers, pieces, ended


@pytest.mark.parametrize(
    ("how", "count"),
    [({}, 1), ({"piece": 1}, len(RECORDED.data)), ({"cuts": [3, 5, 10**9]}, 3)],
    ids=["whole", "one byte at a time", "at places"],
)
def test_the_recorded_bytes_come_in_the_pieces_asked_for(how, count):
    status, headers, pieces, ended = asyncio.run(asked(Answer.of(RECORDED, **how)))

    assert (status, ended, len(pieces)) == (200, True, count)
    assert b"".join(pieces) == RECORDED.data
    assert headers["transfer-encoding"] == "chunked"


def test_status_headers_and_body_are_as_recorded():
    refusal = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    raw = ours.exchange("messages", "/v1/messages", {}, refusal, status=529)
    raw["response"]["headers"]["retry-after"] = "7"
    exchange = ours.made("anthropic", raw).exchanges[0]

    status, headers, pieces, ended = asyncio.run(asked(Answer.of(exchange)))

    assert (status, headers["retry-after"], ended) == (529, "7", True)
    assert json.loads(b"".join(pieces)) == refusal
    assert "transfer-encoding" not in headers


def test_a_connection_that_breaks_off_sends_so_much_and_no_end():
    status, _, pieces, ended = asyncio.run(asked(Answer.of(RECORDED, stop_at=100)))

    assert (status, ended) == (200, False)
    assert b"".join(pieces) == RECORDED.data[:100]


def test_a_stream_may_end_tidily_too_early():
    """What a proxy does that loses its other side: the transfer is whole, the answer is not."""
    _, _, pieces, ended = asyncio.run(asked(Answer.of(RECORDED, stop_at=100, then="end")))

    assert ended
    assert b"".join(pieces) == RECORDED.data[:100]


def test_a_body_that_breaks_off_is_shorter_than_it_says():
    whole = ours.anthropic().exchanges[0]

    _, headers, pieces, ended = asyncio.run(asked(Answer.of(whole, stop_at=10)))

    assert int(headers["content-length"]) == len(whole.data)
    assert (b"".join(pieces), ended) == (whole.data[:10], False)


def test_a_server_that_stalls_notices_who_hangs_up():
    async def run():
        async with Server(Answer.of(RECORDED, stop_at=50, then="stall")) as server:
            reader, writer = await connect(server)
            await post(reader, writer)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await body_of(reader, {})
            assert not server.closed.is_set()
            writer.close()
            async with asyncio.timeout(5):
                await server.closed.wait()

    asyncio.run(run())


def test_answers_are_given_in_turn_and_requests_are_kept():
    """On one connection, which stays open between two answers."""

    async def run():
        answers = (Answer(data=b"{}", is_chunked=False), Answer(429, data=b"no", is_chunked=False))
        async with Server(*answers) as server:
            reader, writer = await connect(server)
            statuses = []
            for path in ("/a", "/b", "/c"):
                status, headers = await post(reader, writer, path)
                await body_of(reader, headers)
                statuses.append(status)
            writer.close()
            return statuses, server.requests

    statuses, requests = asyncio.run(run())

    assert statuses == [200, 429, 429]
    assert [request.path for request in requests] == ["/a", "/b", "/c"]
    assert requests[0].body == {"model": "x"}
    assert requests[0].method == "POST"
