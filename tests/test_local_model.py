"""The real local model: real weights from the package index, streamed over real HTTP.

Nothing here asks whether an answer is right, which a model of this size does not promise; the
shape of what comes is tested, and what happens when a conversation is too long, a reader leaves, or
the process that started it is killed.

The weights are pulled once, into HOLDFAST_DATA or the usual folder. Without the extra `local`, or
where they cannot be pulled, these tests are skipped by name.
"""

import asyncio
import json
import os
import signal
import time

import pytest

from holdfast import Tool, tool
from holdfast.errors import ContextOverflow, ProtocolError
from holdfast.providers.failures import failure
from holdfast.providers.local.calls import instructions, response_format, shots
from holdfast.providers.local.replies import Reader, read
from holdfast.providers.local.server import LocalServer
from holdfast.providers.stream import EventStream
from local_model import NAME, need_model
from processes import SAY, Script

CONTEXT_TOKENS = 512


@pytest.fixture(scope="session")
def gguf():
    """The weights, pulled once for all runs."""
    return need_model()


@pytest.fixture(scope="module")
def server(gguf):
    made = LocalServer(gguf, NAME, context_tokens=CONTEXT_TOKENS)
    yield made
    asyncio.run(made.close())


class Answer:
    """An answer that is read as it comes, over a plain connection."""

    def __init__(self, status, headers, reader, writer):
        self.status = status
        self.headers = headers
        self._reader = reader
        self._writer = writer

    async def chunks(self):
        if self.headers.get("transfer-encoding") != "chunked":
            yield await self._reader.readexactly(int(self.headers["content-length"]))
            return
        while size := int(await self._reader.readline(), 16):
            yield (await self._reader.readexactly(size + 2))[:-2]

    async def body(self):
        return b"".join([chunk async for chunk in self.chunks()])

    async def events(self):
        stream = EventStream()
        async for chunk in self.chunks():
            for event in stream.feed(chunk):
                yield event

    async def close(self):
        self._writer.close()
        await self._writer.wait_closed()


async def ask(server, path, body=None, key=None):
    """The answer to one request, once its headers are here."""
    host, _, port = (await server.address()).removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    data = b"" if body is None else json.dumps(body).encode()
    lines = [
        f"{'GET' if body is None else 'POST'} {path} HTTP/1.1",
        f"host: {host}",
        f"authorization: Bearer {server.key if key is None else key}",
        "content-type: application/json",
        f"content-length: {len(data)}",
        "connection: close",
    ]
    writer.write("\r\n".join([*lines, "", ""]).encode() + data)
    status = int((await reader.readline()).split()[1])
    headers = {}
    while line := (await reader.readline()).decode().strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip().lower()
    return Answer(status, headers, reader, writer)


def answered(server, path, body=None, **options):
    """Status and JSON of an answer that is not streamed."""

    async def main():
        answer = await ask(server, path, body, **options)
        found = await answer.body()
        await answer.close()
        return answer.status, json.loads(found)

    return asyncio.run(asyncio.wait_for(main(), 120))


def streamed(server, path, body):
    """All events of a streamed answer, with the time at which each was here."""

    async def main():
        answer = await ask(server, path, {**body, "stream": True})
        assert answer.status == 200
        found = [(event, time.monotonic()) async for event in answer.events()]
        await answer.close()
        return found

    return asyncio.run(asyncio.wait_for(main(), 120))


def saying(words, **more):
    return {
        "messages": [{"role": "user", "content": words}],
        "max_tokens": 24,
        "temperature": 0,
        **more,
    }


# ---- two wires ----


def test_chat_completions_come_as_a_stream(server):
    asked = saying("Count from one to ten.", stream_options={"include_usage": True})
    found = streamed(server, "/v1/chat/completions", asked)
    *parts, last = [event.data for event, _ in found]
    documents = [json.loads(part) for part in parts]
    choices = [choice for each in documents for choice in each["choices"]]
    usage = next(each["usage"] for each in documents if each.get("usage"))

    assert last == b"[DONE]"
    assert len(documents) > 5
    assert found[-1][1] - found[0][1] > 0.05  # not all at once
    assert "".join(choice["delta"].get("content") or "" for choice in choices)
    assert choices[-1]["finish_reason"] in ("stop", "length")
    assert {each["model"] for each in documents} == {NAME}
    assert usage["prompt_tokens"] > 5
    assert 1 <= usage["completion_tokens"] <= 24


def test_messages_come_as_a_stream(server):
    found = streamed(server, "/v1/messages", saying("Count from one to ten."))
    documents = [json.loads(event.data) for event, _ in found]
    kinds = [each["type"] for each in documents]
    texts = [e["delta"]["text"] for e in documents if e["type"] == "content_block_delta"]

    assert kinds[0] == "message_start"
    assert kinds[-1] == "message_stop"
    assert len(texts) > 5
    assert "".join(texts)
    assert documents[-2]["delta"]["stop_reason"] in ("end_turn", "max_tokens")


def test_the_same_seed_gives_the_same_answer(server):
    asked = saying("Tell me about the sea.", seed=7, temperature=0.8)
    one, two = (answered(server, "/v1/chat/completions", asked)[1] for _ in range(2))

    assert one["choices"][0]["message"]["content"] == two["choices"][0]["message"]["content"]


def test_who_has_no_key_gets_no_answer(server):
    for path in ("/v1/chat/completions", "/v1/messages"):
        assert answered(server, path, saying("Hello."), key="wrong")[0] == 401


# ---- limits ----


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_a_conversation_that_is_too_long_is_a_context_overflow(server, path):
    status, said = answered(server, path, saying("word " * 2 * CONTEXT_TOKENS))
    error = failure("local", status, {}, said)

    assert status == 400
    assert said["error"]["type"] == "exceed_context_size_error"
    assert isinstance(error, ContextOverflow)
    assert said["error"]["n_ctx"] == CONTEXT_TOKENS
    assert said["error"]["n_prompt_tokens"] > CONTEXT_TOKENS


def test_each_of_those_answered_at_once_has_the_whole_context(gguf):
    server = LocalServer(gguf, NAME, context_tokens=256, parallel=2)
    try:
        _, slots = answered(server, "/slots")
        status, said = answered(server, "/v1/chat/completions", saying("word " * 300))
    finally:
        asyncio.run(server.close())

    assert [slot["n_ctx"] for slot in slots] == [256, 256]
    assert (status, said["error"]["n_ctx"]) == (400, 256)


def test_a_reader_who_leaves_frees_the_place(server):
    """There is one place: who comes next would wait for all the words nobody reads."""

    async def main():
        endless = saying("Count.", max_tokens=-1, ignore_eos=True, stream=True)
        answer = await ask(server, "/v1/chat/completions", endless)
        events = answer.events()
        for _ in range(3):
            await anext(events)
        await events.aclose()
        busy = await is_busy(server)
        await answer.close()
        left_at = time.monotonic()
        while await is_busy(server):
            assert time.monotonic() < left_at + 30
        return busy, time.monotonic() - left_at

    async def is_busy(server):
        answer = await ask(server, "/slots")
        (slot,) = json.loads(await answer.body())
        await answer.close()
        return slot["is_processing"]

    busy, freed_s = asyncio.run(asyncio.wait_for(main(), 60))

    assert busy
    assert freed_s < 1.0


# ---- the process ----

PARENT = (
    SAY
    + """
import asyncio, sys, time
from holdfast.providers.local.server import LocalServer
server = LocalServer(sys.argv[1], "killed", context_tokens=128)
say(asyncio.run(server.address()))
time.sleep(60)
"""
)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="there is no /proc here")
def test_it_ends_with_a_parent_that_is_killed(gguf):
    with Script(PARENT, gguf) as parent:
        assert parent.hears().startswith("http://127.0.0.1:")
        (pid,) = children(parent.process.pid)
        parent.process.send_signal(signal.SIGKILL)
        parent.process.wait()
        until = time.monotonic() + 10
        while os.path.exists(f"/proc/{pid}/task") and time.monotonic() < until:
            time.sleep(0.02)

        assert not os.path.exists(f"/proc/{pid}/task")


def test_weights_that_are_none_are_told_with_the_last_words(tmp_path, capfd):
    (tmp_path / "bad.gguf").write_bytes(b"GGUF and nothing else")
    server = LocalServer(tmp_path / "bad.gguf", "bad")

    with pytest.raises(
        ProtocolError, match=r"bad did not start.*(failed to load model|Failed to init server)"
    ):
        asyncio.run(server.address())
    asyncio.run(server.close())
    assert capfd.readouterr() == ("", "")


# ---- tools ----


@tool
def get_weather(city: str) -> str:
    """The weather in a city, right now."""


@tool
def add(a: float, b: float) -> float:
    """Add two numbers."""


def with_tools(words, *tools, **more):
    messages = [{"role": "system", "content": instructions(tools)}]
    for said, written in shots(tools):
        messages += [
            {"role": "user", "content": said},
            {"role": "assistant", "content": written},
        ]
    messages.append({"role": "user", "content": words})
    return saying("", messages=messages, response_format=response_format(tools), **more)


@pytest.mark.parametrize(
    "words", ["What is the weather in Tokyo?", "Compute 3 plus 4.", "Hello!", "Who wrote Hamlet?"]
)
def test_with_tools_there_is_an_answer_or_a_call_that_the_tool_takes(server, words):
    asked = with_tools(words, get_weather, add, max_tokens=96)
    events = streamed(server, "/v1/chat/completions", asked)
    documents = [json.loads(event.data) for event, _ in events if event.data != b"[DONE]"]
    pieces = [c["delta"].get("content") or "" for each in documents for c in each["choices"]]
    reader = Reader()
    shown = "".join(map(reader.feed, pieces))
    said = reader.finish()
    reason = documents[-1]["choices"][-1]["finish_reason"]

    assert shown + said.rest == said.text
    assert not (said.text and said.calls)
    if reason == "stop":  # else it was cut off
        written = json.loads("".join(pieces))
        assert set(written) in ({"answer"}, {"name", "arguments"})
        assert len(said.calls) == ("name" in written)
    for name, arguments in said.calls:
        {"get_weather": get_weather, "add": add}[name].check(arguments)


ODD = {
    "anything": True,
    "tree": {"$ref": "#/$defs/tree"},
    "self": {"$ref": "#/properties/self"},
    "root": {"$ref": "#"},
    "elsewhere": {"$ref": "https://example.com/schema"},
    "nowhere": {"$ref": "#/nowhere"},
    "no_room": {"type": "array", "minItems": 3, "maxItems": 2},
    "no_room_either": {"type": "string", "minLength": 5, "maxLength": 2},
    "upside_down": {"type": "integer", "minimum": 9, "maximum": 1},
    "empty": {"enum": []},
    "no_way": {"oneOf": []},
    "type": {"type": ["weird"]},
    "pattern": {"type": "string", "pattern": "(?=x)\\d+("},
    "long": {"type": "string", "minLength": 900, "maxLength": 10**9},
    'name\nwith "quotes" é': {"allOf": [{"properties": {"x": {}}}, {"properties": {"y": {}}}]},
    "any_of": {"anyOf": [{"$ref": "#/properties/any_of"}, {"type": "null"}]},
}


@pytest.mark.parametrize("name", ODD)
def test_no_schema_of_a_tool_is_refused_or_ends_the_process(server, name):
    schema = {
        "type": "object",
        "properties": ODD,
        "required": [name],
        "$defs": {"tree": {"properties": {"left": {"$ref": "#/$defs/tree"}}}},
    }
    only = schema | {"properties": {name: ODD[name]}}
    before = asyncio.run(server.address())
    for given in (only, schema):
        asked = with_tools("Do it.", Tool("odd", "", given), max_tokens=4)
        status, said = answered(server, "/v1/chat/completions", asked)
        assert status == 200, said

    assert asyncio.run(server.address()) == before


def test_a_tool_without_parameters_is_called_with_none(server):
    only = Tool("now", "The time.")
    asked = with_tools("What is the time?", only, max_tokens=40)
    del asked["response_format"]["json_schema"]["schema"]["oneOf"][0]
    status, said = answered(server, "/v1/chat/completions", asked)
    ((name, arguments),) = read(said["choices"][0]["message"]["content"]).calls

    assert status == 200
    assert (name, json.loads(arguments)) == ("now", {})
