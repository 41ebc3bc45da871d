"""Sessions for the tests of turns: managers that are opened and closed, models that are judged.

A test is a coroutine function under `@asynchronous`, which gives it a loop of its own and a time
limit, and fails it if it leaves a task behind or an error that nobody saw. `opened` gives a manager
whose model is a `Judged` one: every request that reaches it has to be one that a vendor would take
as it is, without anything being mended on the way.
"""

import asyncio
import functools
import inspect
import json
import time
from contextlib import asynccontextmanager
from itertools import count

import holdfast
from holdfast import Message, Role, Tool, ToolCall
from holdfast.entries import Call, Mark
from holdfast.parts import Image, Text
from holdfast.testing import FakeProvider, validators

KEY = "cli:direct"
TEST_S = 30.0
SETTLE_S = 2.0
CANCEL_S = 1.0  # a cancel is promised to return within a second
_ids = count(1)


def asynchronous(test, seconds=TEST_S):
    """Run a coroutine function as a test; fixtures reach it by their names."""

    @functools.wraps(test)
    def run_test(**fixtures):
        asyncio.run(_watched(test(**fixtures), seconds))

    return run_test


async def _watched(coroutine, seconds=TEST_S):
    unseen = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: unseen.append(context))
    async with asyncio.timeout(seconds):
        await coroutine
    left = await tasks_left()
    assert not left, f"tasks were left behind: {left}"
    assert not unseen, f"errors that nobody saw: {unseen}"


async def tasks_left(but=()):
    """The tasks, other than this one, that do not end by themselves."""
    others = {asyncio.current_task(), *but}
    if waiting := asyncio.all_tasks() - others:
        await asyncio.wait(waiting, timeout=SETTLE_S)
    return asyncio.all_tasks() - others


async def until(condition, seconds=10.0):
    """Wait until a condition holds, which may be a coroutine function; return what it gave."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found := (await found if inspect.isawaitable(found) else found):
            return found
        assert time.monotonic() < end, "this was waited for in vain"
        await asyncio.sleep(0.005)


# Models


class Judged(FakeProvider):
    """A FakeProvider that keeps what it was `given`, and what a vendor would say against it."""

    def __init__(self, *answers, **options):
        super().__init__(*answers, **options)
        self.given = []
        self.problems = []

    async def complete(self, messages, *args, **options):
        self.given.append(tuple(messages))
        self.problems += map(str, validators.problems("openai-chat", chat_body(messages)))
        return await super().complete(messages, *args, **options)

    @property
    def texts(self):
        """What was said in the last request, in order."""
        return [message.text for message in self.given[-1]]


def chat_body(messages):
    """The request in OpenAI's words, with nothing mended."""
    return {"model": "m", "messages": [_chat_message(message) for message in messages]}


def _chat_message(message):
    said = {"role": str(message.role), "content": _chat_content(message.content)}
    if message.calls:
        said["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.calls
        ]
    if message.role is Role.TOOL:
        said["tool_call_id"] = message.tool_call_id
    return said


def _chat_content(content):
    if not isinstance(content, tuple):
        return content
    found = []
    for part in content:
        if isinstance(part, Text):
            found.append({"type": "text", "text": part.text})
        elif isinstance(part, Image):
            found.append({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}})
    return found or None


def call(id, name, **arguments):
    """A call, with an id that a test can speak of."""
    return ToolCall(id=id, name=name, arguments=json.dumps(arguments))


def asks(*calls, text=None, stop=None):
    """An answer that calls tools: each is a ToolCall, or a name (then its id is its own)."""
    made = [call(f"call-{next(_ids)}", each) if isinstance(each, str) else each for each in calls]
    return Message.assistant(text, made, stop=stop)


def tool_of(name, run=None, **options):
    """A tool that takes anything."""
    run = run or (lambda **_: "done")
    return Tool(name, f"The tool {name}.", {"type": "object"}, run, **options)


# Managers


@asynccontextmanager
async def opened(url, *answers, model=None, tools=(), **options):
    """A manager whose default model gives these answers: `manager.model` is that model.

    When it is left, the model must have been asked nothing that a vendor would refuse.
    """
    model = model or Judged(*answers)
    async with holdfast.open(url, model=model, tools=tools, **options) as sessions:
        yield sessions, model
    assert getattr(model, "problems", []) == []


@asynccontextmanager
async def talking(url, *answers, key=KEY, settings=None, **options):
    """A session on such a manager, and its model.

    When it is left, what is loaded has to be what is stored, and that what was written.
    """
    async with opened(url, *answers, **options) as (sessions, model):
        session = await sessions.get_or_create(key, settings=settings)
        yield session, model
        await session.refresh()
        stored = await messages(session)
        places = await session._tenant.read(session.id, session.branch, kind="message")
        assert session.count == len(places)
        assert list(session.messages) == stored[len(stored) - len(session.messages) :]
        assert (await session._tenant.verify()).problems == ()


# What is kept


async def entries(session, branch=None):
    """Everything in the log of a branch, in order."""
    stored = await session._tenant.read(session.id, branch or session.branch)
    return [each.entry for each in stored]


async def messages(session, branch=None):
    return [each for each in await entries(session, branch) if isinstance(each, Message)]


async def receipts(session, branch=None):
    return [each for each in await entries(session, branch) if isinstance(each, Call)]


async def marks(session, what, branch=None):
    found = [each for each in await entries(session, branch) if isinstance(each, Mark)]
    return [each for each in found if each.what == what]


async def said(session, branch=None):
    """(role, text) of every message of a branch."""
    return [(str(each.role), each.text) for each in await messages(session, branch)]


async def turn_count(session):
    """How many turns there are on the branch in use."""
    return sum(message.starts_turn for message in await messages(session))


def events_of(kind, events):
    return [event for event in events if isinstance(event, kind)]


# Over a real wire


def chat_event(delta, stop=None, usage=None):
    """One event of a Chat Completions stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": stop}
    body = {"id": "chat-1", "object": "chat.completion.chunk", "model": "small"}
    body["choices"] = [choice]
    if usage is not None:
        body["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1]}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def chat_events(*pieces, stop="stop", usage=(11, 7)):
    """A whole stream, as a list of what is sent piece by piece."""
    said = [chat_event({"role": "assistant", "content": piece}) for piece in pieces]
    return [*said, chat_event({}, stop, usage), b"data: [DONE]\n\n"]


def wire_model(server, **options):
    """The provider that asks a loopback server."""
    return holdfast.open_provider(
        "openai:small", base_url=f"{server.url}/v1", api_key="none", **options
    )
