"""FakeProvider: a model for tests, that behaves as a real one where it matters."""

import asyncio

import pytest

from holdfast import CancelToken, Message, Settings, Tool, ToolCall
from holdfast.errors import Cancelled, ContextOverflow, InvalidInput, Overloaded
from holdfast.testing import FakeProvider
from holdfast.testing.fake_provider import calls

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
