"""FakeProvider: a model for tests, that behaves as a real one where it matters."""

import asyncio

import pytest

from holdfast import CancelToken, Message, Settings, Tool, ToolCall
from holdfast.errors import (
    Cancelled,
    ConnectionFailed,
    ContextOverflow,
    InvalidInput,
    Overloaded,
)
from holdfast.parts import Text, Thinking
from holdfast.testing import FakeProvider
from holdfast.testing.fake_provider import Halt, calls

ASKED = [Message.user("I am Ada.")]


def run(coroutine):
    return asyncio.run(coroutine)


def test_it_gives_its_answers_in_order():
    """Text, messages, errors, and what a function makes of the request."""
    provider = FakeProvider(
        "Hello.",
        Message.assistant("Cut.", stop="max_tokens"),
        Overloaded("busy"),
        lambda request: f"You said: {request.messages[-1].text}",
    )

    assert run(provider.complete(ASKED)).text == "Hello."
    assert run(provider.complete(ASKED)).stop == "max_tokens"
    with pytest.raises(Overloaded, match="busy"):
        run(provider.complete(ASKED))
    assert run(provider.complete(ASKED)).text == "You said: I am Ada."


def test_it_remembers_what_it_was_asked():
    provider = FakeProvider("Yes.", name="acme:large")
    look = Tool("look")
    settings = Settings(temperature=0.5)

    reply = run(
        provider.complete(ASKED, "Be brief.", [look], settings=settings, conversation="c-1")
    )

    (request,) = provider.requests
    assert request.messages == tuple(ASKED) and request.system == "Be brief."
    assert request.tools == (look,) and request.settings == settings
    assert request.conversation == "c-1"
    assert reply.message.model == "acme:large" and reply.message.stop == "stop"
    assert reply.usage.input == request.tokens > 0 and reply.usage.output > 0


def test_an_answer_comes_in_pieces():
    """Words one by one, then calls; together they are the answer."""
    heard = []
    provider = FakeProvider(calls("look", "Let me see.", city="Turin"))

    reply = run(provider.complete(ASKED, on_chunk=heard.append, on_tool_call=heard.append))

    assert heard == ["Let", " me", " see.", reply.calls[0]]
    assert reply.calls[0].arguments == '{"city": "Turin"}' and reply.stop == "tool_use"


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_cancel_keeps_what_there_was(after):
    token, heard = CancelToken(), []

    def listen(piece):
        heard.append(piece)
        if len(heard) == after:
            token.cancel("enough")

    async def cancelled():
        if not after:
            token.cancel("enough")
        await FakeProvider("one two three").complete(ASKED, cancel_token=token, on_chunk=listen)

    with pytest.raises(Cancelled, match="enough") as raised:
        run(cancelled())

    partial = raised.value.partial
    assert (partial.text or "").split() == ["one", "two", "three"][:after]
    assert partial.message.stop == "cancelled"


def test_a_cancel_is_noticed_in_a_pause():
    async def cancelled():
        token = CancelToken()
        asyncio.get_running_loop().call_later(0.01, token.cancel)
        await FakeProvider("never", pause_s=60).complete(ASKED, cancel_token=token)

    with pytest.raises(Cancelled):
        run(asyncio.wait_for(cancelled(), 5))


def test_a_request_that_is_too_long_is_refused():
    """Before an answer is used up, with the numbers that vendors give."""
    provider = FakeProvider("Fine.", context=100)
    long = [Message.user("word " * 200)]

    with pytest.raises(ContextOverflow) as raised:
        run(provider.complete(long))

    assert (raised.value.tokens_found, raised.value.tokens_max) == (
        run(provider.count_tokens(long)),
        100,
    )
    assert run(provider.complete(ASKED)).text == "Fine."


def test_any_history_can_be_sent():
    """As with a real provider: a call without a result is given one."""
    provider = FakeProvider("Yes.")
    call = ToolCall(id="c1", name="look", arguments="{}")

    run(provider.complete([*ASKED, Message.assistant(tool_calls=[call])]))

    assert [message.role for message in provider.requests[0].messages] == [
        "user",
        "assistant",
        "tool",
    ]


def test_without_an_answer_left_it_says_so():
    provider = FakeProvider()

    with pytest.raises(InvalidInput, match="no answer left"):
        run(provider.complete(ASKED))
    provider.add("Now.")
    assert run(provider.complete(ASKED)).text == "Now."


@pytest.mark.parametrize("bad", [1, None, Message.user("I am no model.")], ids=repr)
def test_what_no_model_says_is_refused(bad):
    with pytest.raises(InvalidInput, match="an answer"):
        run(FakeProvider(bad).complete(ASKED))


def test_it_thinks_before_it_speaks():
    """What it thinks is heard first, and what it takes is known before and after."""
    heard, used = [], []
    answer = Message.assistant([Thinking("Who is she?", "signed"), Text("Hello, Ada.")])

    reply = run(
        FakeProvider(answer).complete(
            ASKED, on_thinking=heard.append, on_chunk=heard.append, on_usage_update=used.append
        )
    )

    assert heard == ["Who is she?", "Hello,", " Ada."] and reply.thinking == "Who is she?"
    assert used[0].output is None and used[-1] == reply.usage
    assert used[0].input == used[-1].input


def test_an_answer_halts_until_it_may_go_on():
    heard = []

    async def halted():
        gate = asyncio.Event()
        provider = FakeProvider(Halt("one two three", gate, after=2))
        answering = asyncio.create_task(provider.complete(ASKED, on_chunk=heard.append))
        await asyncio.sleep(0.05)
        assert heard == ["one", " two"] and not answering.done()
        gate.set()
        return await answering

    assert run(halted()).text == "one two three"
    assert heard == ["one", " two", " three"]


def test_an_answer_breaks_off():
    """As a stream does: the error has what was given by then."""
    provider = FakeProvider(Halt("one two three", ConnectionFailed("cut"), after=1))

    with pytest.raises(ConnectionFailed) as raised:
        run(provider.complete(ASKED, on_chunk=lambda _: None))

    assert raised.value.partial.text == "one"


def test_an_answer_may_be_waited_for():
    """A function of the request may be async; a cancel is noticed while it runs."""

    async def slow(request):
        await asyncio.sleep(60 if request.system else 0.01)
        return "At last."

    async def cancelled():
        token = CancelToken()
        asyncio.get_running_loop().call_later(0.01, token.cancel)
        await FakeProvider(slow).complete(ASKED, "Take your time.", cancel_token=token)

    assert run(FakeProvider(slow).complete(ASKED)).text == "At last."
    with pytest.raises(Cancelled):
        run(asyncio.wait_for(cancelled(), 5))


def test_an_answer_that_nobody_waits_for_is_not_begun():
    """The call was cancelled before: no coroutine is left that never ran."""
    begun = []

    async def answer(request):
        begun.append(request)

    token = CancelToken()
    token.cancel()

    with pytest.raises(Cancelled):
        run(FakeProvider(answer).complete(ASKED, cancel_token=token))
    assert begun == []
