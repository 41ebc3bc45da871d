"""The public API as a user types it. mypy checks this file in strict mode; nothing runs it."""

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, assert_type

import holdfast
from holdfast import (
    CancelToken,
    History,
    HoldfastError,
    Message,
    Role,
    Settings,
    Tool,
    ToolCall,
    Usage,
    codec,
    sync,
    tool,
)
from holdfast.entries import Call, Entry, Fold, Mark, UnknownEntry
from holdfast.errors import Conflict, InvalidInput, ProviderError, RateLimited
from holdfast.events import Event, Outcome, TextDelta, TurnFinished
from holdfast.history import Turn
from holdfast.ids import new_id
from holdfast.keys import session_key
from holdfast.messages import Result
from holdfast.parts import Image, Part, Text, Thinking
from holdfast.providers import Provider, Response
from holdfast.providers.pipe import Timeouts
from holdfast.providers.preflight import Preflight
from holdfast.results import TurnResult
from holdfast.stores.values import Record
from holdfast.tools import Running, running
from holdfast.usage import Prices

said = Message.user("I am Ada.", author="ada", timestamp=datetime.now(UTC), extra={"mood": "good"})
reply = Message.assistant(
    ["Hello ", Thinking("who is Ada?", signature="x"), Image(url="https://example.com/ada.png")],
    [ToolCall(id="c1", name="greet", arguments="{}")],
    model="vendor:model",
)
result = Message.tool("done", "c1", name="greet", is_error=False)
short = Message(Role.USER, "hi")

assert_type(said.role, Role)
assert_type(said.role.canonical, Role)
assert_type(said.text, str | None)
assert_type(reply.content, str | tuple[Part, ...] | None)
assert_type(reply.tool_calls, tuple[ToolCall, ...])
assert_type(reply.calls, tuple[ToolCall, ...])
assert_type(result.results, tuple[Result, ...])
assert_type(said.replace(content="I am Grace."), Message)
assert_type(said.timestamp, datetime)

said.content = "other"  # type: ignore[misc]
Message.user(5)  # type: ignore[arg-type]
Message.user("x", colour="red")  # type: ignore[call-arg]

history = History()
assert_type(history.append(said, reply, Mark(what="interrupted")), int)
assert_type(history.messages, tuple[Message, ...])
assert_type(history.snapshot(), tuple[Entry, ...])
assert_type(history.slice(0, 1), tuple[Message, ...])
assert_type(history.turns(), tuple[Turn, ...])
assert_type(len(history), int)
history.replace([said])
history.clear()

assert_type(codec.plain(said), bytes)
assert_type(codec.plain_dict(said), dict[str, Any])
assert_type(codec.record(said), bytes)
assert_type(codec.read_record(b""), Message | Fold | Call | Mark | UnknownEntry)
assert_type(codec.read_plain(b""), tuple[Entry, ...])

usage = Usage(input=100, output=20) + Usage(cache_read=50)
assert_type(usage.total, int | None)
prices = Prices(input=Decimal(3), output=Decimal(15))
assert_type(usage.cost(prices), Decimal | None)

settings = Settings(
    model="vendor:model", thinking="high", temperature=0.2, limits={"rounds": 3}, extra={"a": 1}
)
assert_type(settings.thinking, str | int | None)
assert_type(Settings.of({"model": "vendor:model"}), Settings)


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(idempotent=True, approval=True, timeout=5.0)
async def fetch(url: str) -> str:
    """Fetch a page."""
    return url


assert_type(add, Tool)
assert_type(fetch, Tool)
assert_type(running(), Running | None)


async def use_tools(token: CancelToken) -> None:
    async with token.guard():
        await add.invoke('{"a": 1, "b": 2}')
    arguments: Mapping[str, Any] = add.check('{"a": 1, "b": 2}')
    del arguments


token = CancelToken()
assert_type(token.cancel("stop"), bool)
assert_type(token.is_cancelled, bool)
assert_type(token.child(), CancelToken)

try:
    raise RateLimited("slow down", retry_after_s=3.0)
except ProviderError as error:
    assert_type(error.retry_after_s, float | None)
except Conflict as error:
    assert_type(error.found, int)
except InvalidInput as error:
    assert_type(error.why, str)
except HoldfastError:
    pass

event = TextDelta("hel")
assert_type(event.text, str)
assert_type(TurnFinished(outcome=Outcome.RESPONSE).message, Message | None)
assert_type(Fold(first=1, last=2).replacement, Message | None)
assert_type(Call(model="vendor:model").usage, Usage)
assert_type(Text("x").text, str)
assert_type(new_id(), str)
assert_type(session_key("telegram", "1"), str)
assert_type(holdfast.Message, type[Message])


async def use_provider() -> None:
    assert_type(holdfast.open_provider("openai:gpt-5"), Provider)
    limits = Timeouts(connect=5, idle=60, total=600)
    async with holdfast.open_provider("anthropic:claude-x", timeout=limits) as provider:
        response = await provider.complete([said], "Be brief.", [add], on_chunk=print)
        assert_type(response, Response)
        assert_type(response.text, str | None)
        assert_type(response.calls, tuple[ToolCall, ...])
        assert_type(response.usage, Usage)
        assert_type(await provider.count_tokens([said]), int)
        assert_type(provider.preflight([said], "Be brief.", [add]), Preflight)
        assert_type(await provider.list_models(), tuple[str, ...])
    provider.complete("Hello.", on_chunk=5)  # type: ignore[arg-type, unused-coroutine]


def use_sync(provider: Provider) -> None:
    with sync.open("sqlite:chats.db", model=provider, durability="fast") as sessions:
        assert_type(sessions, sync.SessionManager)
        talk = sessions.get_or_create("cli:direct", model=sync.open_provider("openai:gpt-5"))
        assert_type(talk, sync.Session)
        assert_type(talk.send("Hello."), TurnResult)
        assert_type(talk.messages, tuple[Message, ...])
        for event in talk.stream("And?", detach=True):
            assert_type(event, Event)
        with talk.stream("And?") as events:
            assert_type(events, sync.Stream)
            assert_type(events.result, TurnResult | None)
        child = talk.child("helper")
        assert_type(child.session, sync.Session)
        assert_type(child.record, Record)
        assert_type(talk.children(), tuple[sync.Subagent, ...])
    with sync.open_store("memory:") as store:
        assert_type(store.tenant(), sync.Tenant)
        assert_type(store.tenant().load("cli:direct"), Record)
    assert_type(sync.open_provider("openai:gpt-5").complete([said]), Response)
    talk.send(5)  # type: ignore[arg-type]
