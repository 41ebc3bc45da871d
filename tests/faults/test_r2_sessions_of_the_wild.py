"""R2: sessions that other programs left broken are accepted at the first request.

The shapes are those of reports about other frameworks: each bricked a session there, because every
later request was refused. Here they are stored, loaded and sent, over a real connection, to a
server that records what it gets; the validators judge it. What was repaired is told, and what is
stored stays as it was.
"""

import asyncio
import json

import pytest

import holdfast
from holdfast import Message, ToolCall, open_provider
from holdfast.parts import Image, Text, Thinking
from holdfast.testing import validators
from holdfast.testing.replay.server import Answer, Server
from holdfast.window.render import render


def call(id, name="look", arguments="{}", **more):
    return ToolCall(id=id, name=name, arguments=arguments, **more)


def asks(*ids, content="Let me look."):
    return Message.assistant(content, [call(id) for id in ids])


HI, NOW = Message.user("hi"), Message.user("and now?")

# name: the messages, and what has to be told of their repair
SHAPES = {
    "a limit cut between call and output": (
        [Message.tool("sunny", "c1"), Message.assistant("It is sunny."), NOW],
        {"orphan"},
    ),
    "resumed after an approval: the output is stored, the call never was": (
        [HI, Message.tool("approved", "c9", name="delete"), NOW],
        {"orphan"},
    ),
    "a call that nobody answered": ([HI, asks("c1"), NOW], {"unanswered"}),
    "a call that nobody answered, as the last message": ([HI, asks("c1")], {"unanswered"}),
    "fewer results than calls": (
        [HI, asks("c1", "c2", "c3"), Message.tool("1", "c1"), NOW],
        {"unanswered"},
    ),
    "more results than calls": (
        [HI, asks("c1"), Message.tool("1", "c1"), Message.tool("2", "c2"), NOW],
        {"orphan"},
    ),
    "the user spoke before the tool came back": (
        [HI, asks("c1"), Message.user("wait"), Message.tool("1", "c1"), NOW],
        {"moved"},
    ),
    "a result twice": (
        [HI, asks("c1"), Message.tool("1", "c1"), Message.tool("1", "c1"), NOW],
        {"orphan"},
    ),
    "a run that was stored twice": (
        [HI, asks("c1"), Message.tool("1", "c1")] * 2 + [NOW],
        {"renamed"},
    ),
    "results in the wrong order": (
        [HI, asks("c1", "c2"), Message.tool("2", "c2"), Message.tool("1", "c1"), NOW],
        set(),
    ),
    "cancelled in the middle of a tool, with words": (
        [HI, asks("c1", content="I was just about to"), Message.user("stop"), NOW],
        {"unanswered"},
    ),
    "a compaction that kept the results and dropped the calls": (
        [
            Message.system("[Summary] they talked", synthetic="summary"),
            Message.tool("1", "c1"),
            Message.tool("2", "c2"),
            NOW,
        ],
        {"orphan"},
    ),
    "a repair that answered the call of another message": (
        [HI, asks("c1"), asks("c2"), Message.tool("2", "c2"), Message.tool("1", "c1"), NOW],
        {"moved"},
    ),
    "characters that no vendor likes": (
        [Message.user("a\x00b \ufffd \u2028 🙂"), Message.assistant("\u200b"), NOW],
        set(),
    ),
    "an answer that is empty": (
        [HI, Message.assistant(""), Message.assistant(None), NOW],
        {"empty"},
    ),
    "only blanks": ([Message.user("  \n"), Message.assistant(" "), NOW], set()),
    "thinking of another model": (
        [
            HI,
            Message.assistant([Thinking("hm", "c2ln"), Text("ok")], [call("c1")], model="x:y"),
            Message.tool("1", "c1"),
            NOW,
        ],
        set(),
    ),
    "only thinking": (
        [HI, Message.assistant([Thinking("hm", "c2ln")], model="x:y"), NOW],
        set(),
    ),
    "ids that another vendor made": (
        [HI, asks("call|with:odd/chars", "x" * 300), Message.tool("1", "x" * 300), NOW],
        {"unanswered"},
    ),
    "arguments that broke off": (
        [HI, Message.assistant(None, [call("c1", arguments='{"path": "a')]), NOW],
        {"unanswered"},
    ),
    "a picture whose bytes are elsewhere": ([Message.user([Image(blob="ab" * 16)]), NOW], set()),
    "the assistant has the first word": ([Message.assistant("Welcome!"), NOW], set()),
    "nothing at all": ([], set()),
}
ANSWERS = {
    "anthropic": {
        "id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "ok"}],
    },
    "openai-chat": {
        "id": "c", "model": "m",
        "choices": [{"index": 0, "message": {"content": "ok"}, "finish_reason": "stop"}],
    },
    "openai-responses": {
        "id": "r", "model": "m", "status": "completed",
        "output": [{"type": "message", "content": [{"type": "output_text", "text": "ok"}]}],
    },
    "google": {
        "candidates": [{"content": {"parts": [{"text": "ok"}]}, "finishReason": "STOP"}],
    },
}  # fmt: skip
PROVIDERS = {
    "anthropic": ("anthropic:claude-sonnet-4-5", {}),
    "openai-chat": ("openai:gpt-4.1", {"api": "chat"}),
    "openai-responses": ("openai:gpt-5", {"api": "responses"}),
    "google": ("google:gemini-3-pro-preview", {}),
}


async def sent(store, messages, api):
    """Store the messages, load them, ask the provider: the body it sent, and the messages then."""
    name, options = PROVIDERS[api]
    data = json.dumps(ANSWERS[api]).encode()
    answer = Answer(headers={"content-type": "application/json"}, data=data, is_chunked=False)
    async with holdfast.open(store) as sessions, Server(answer) as server:
        session = await sessions.get_or_create("telegram:1")
        if messages:
            await session.append(*messages)
        before = await session.read()
        provider = open_provider(name, api_key="k", base_url=server.url, tries_max=1, **options)
        try:
            response = await provider.complete(before, "Be brief.")
        finally:
            await provider.close()
        assert response.text == "ok" and len(server.requests) == 1
        return server.requests[0].body, before, await session.read()


@pytest.mark.parametrize("api", PROVIDERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_broken_session_is_accepted_at_the_first_request(shape, api, tmp_path):
    messages, told = SHAPES[shape]
    messages = [message.replace(id=f"m{n}") for n, message in enumerate(messages)]

    body, before, after = asyncio.run(sent(f"sqlite:{tmp_path / 'x.db'}", messages, api))

    assert validators.problems(api, body, model=PROVIDERS[api][0].partition(":")[2]) == []
    assert before == after == tuple(messages)
    assert told <= {repair.what for repair in render(before).repairs}


def naive(message):
    """A message as a program sends it that does not look what stands around it."""
    if message.tool_call_id is not None:
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.text or ""}
    made = {"role": message.role.value, "content": message.text}
    if message.tool_calls:
        made["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in message.tool_calls
        ]
    return made


def test_control_sent_as_they_are_most_are_refused():
    refused = 0
    for messages, _ in SHAPES.values():
        body = {"model": "gpt-4.1", "messages": [naive(message) for message in messages]}
        refused += bool(validators.problems("openai-chat", body))

    assert refused > len(SHAPES) / 2
