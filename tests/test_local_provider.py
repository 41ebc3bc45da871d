"""The local model as a provider; and its server as a real one for the adapters of three vendors.

Nothing here asks whether an answer is right. What is streamed, cancelled, refused and counted is.
"""

import asyncio
import time

import pytest

from holdfast import CancelToken, Message, Settings, Tool, ToolCall, open_provider
from holdfast.errors import AuthError, Cancelled, ContextOverflow, InvalidInput
from holdfast.messages import Stop
from holdfast.providers.local.server import LocalServer
from holdfast.providers.local.wire import LocalWire
from holdfast.usage import Usage
from local_model import NAME, need_model

WEATHER = Tool(
    "get.weather",
    "Get the weather in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
FEW = Settings(max_tokens=24, temperature=0.0)
HI = Message.user("Hello! Who are you?")
STORY = Message.user("Tell me a very long story about a whale.")


def run(scenario, name=f"local:{NAME}", **options):
    """Run a scenario with the provider, which is closed behind it."""
    need_model()

    async def main():
        async with open_provider(name, **options) as provider:
            return await asyncio.wait_for(scenario(provider), 120)

    return asyncio.run(main())


# The provider


def test_a_real_answer_is_streamed():
    heard, used = [], []

    async def scenario(provider):
        return await provider.complete(
            [HI], "Be brief.", settings=FEW, on_chunk=heard.append, on_usage_update=used.append
        )

    response = run(scenario)

    assert len(heard) > 3 and "".join(heard) == response.text
    assert response.stop in (Stop.STOP, Stop.MAX_TOKENS)
    assert response.usage == used[-1] and response.usage.input > 10 and response.usage.output > 3
    assert (response.model, response.message.model) == (NAME, f"local:{NAME}")


def test_whole_and_streamed_answers_are_the_same():
    async def scenario(provider):
        whole = await provider.complete([HI], settings=FEW)
        streamed = await provider.complete([HI], settings=FEW, on_chunk=lambda _: None)
        return whole, streamed

    whole, streamed = run(scenario)

    assert whole.text == streamed.text
    assert (whole.stop, whole.usage.output) == (streamed.stop, streamed.usage.output)


def test_tools_are_called_by_constrained_json_and_their_results_go_back():
    """A call has the tool's own name and arguments that its schema takes; a result is read."""
    heard = []

    async def scenario(provider):
        asked = [Message.user("What is the weather in Tokyo?")]
        settings = Settings(max_tokens=80, temperature=0.0)
        for _ in range(6):
            response = await provider.complete(
                asked, None, [WEATHER], settings=settings, on_tool_call=heard.append
            )
            if response.calls:
                break
            asked.append(Message.user("Use the tool get.weather for Tokyo."))
        (call,) = response.calls
        WEATHER.check(call.arguments)
        said = [*asked, response.message, Message.tool("sunny, 21 degrees", call.id)]
        after = await provider.complete(said, None, [WEATHER], settings=settings)
        return call, response, after

    call, response, after = run(scenario)

    assert (call.name, response.stop, heard[-1]) == ("get.weather", Stop.TOOL_USE, call)
    assert after.text or after.calls


def test_an_answer_follows_a_schema():
    schema = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}

    async def scenario(provider):
        return await provider.complete([HI], response_schema=schema, settings=FEW)

    text = run(scenario).text or ""

    assert text.lstrip().startswith("{") and '"age"' in text


def test_a_cancel_ends_it_within_a_second_and_keeps_what_had_come():
    async def scenario(provider):
        token = CancelToken()
        heard = []

        def chunk(piece):
            heard.append(piece)
            if len(heard) == 3:
                token.cancel("enough")
                scenario.at = time.monotonic()

        with pytest.raises(Cancelled) as raised:
            await provider.complete([STORY], on_chunk=chunk, cancel_token=token)
        took = time.monotonic() - scenario.at
        again = await provider.complete([HI], settings=FEW)  # the server is free again
        return raised.value, took, heard, again

    error, took, heard, again = run(scenario)

    assert took < 1
    assert error.partial.text == "".join(heard) and error.partial.stop == Stop.CANCELLED
    assert again.text


def test_more_than_the_window_is_a_context_overflow_with_its_numbers():
    async def scenario(provider):
        with pytest.raises(ContextOverflow) as raised:
            await provider.complete([Message.user("word " * 2000)])
        return raised.value, provider.context_limit

    error, limit = run(scenario, context_limit=512)

    assert limit == error.tokens_max == 512
    assert error.tokens_found > 2000


def test_tokens_are_counted_by_the_model_itself():
    async def scenario(provider):
        counted = await provider.count_tokens([HI], "Be brief.")
        response = await provider.complete([HI], "Be brief.", settings=FEW)
        return counted, response.usage.input, await provider.list_models("smol")

    counted, used, listed = run(scenario)

    assert abs(counted - used) <= 4
    assert listed == (NAME,)


def test_providers_of_one_model_share_a_process():
    async def scenario(provider):
        async with open_provider(f"local:{NAME}") as other:
            await provider.verify()
            await other.verify()
            return str(provider.address), str(other.address)

    first, second = run(scenario)

    assert first == second


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("local:nothing", {}),
        (f"local:{NAME}", {"context_limit": 10**9}),
        (f"local:{NAME}", {"threads": 0}),
        (f"local:{NAME}", {"base_url": "http://127.0.0.1:1"}),
        (f"local:{NAME}", {"nonsense": 1}),
    ],
)
def test_a_wrong_option_is_found_when_it_is_opened(name, options):
    with pytest.raises(InvalidInput):
        open_provider(name, **options)


# Its server, for the adapters of two vendors


@pytest.fixture(scope="module")
def server():
    made = LocalServer(need_model(), NAME, context_tokens=512)
    yield made
    asyncio.run(made.close())


VENDORS = {
    "anthropic": lambda address: (f"anthropic:{NAME}", {"base_url": address}),
    "chat": lambda address: (f"openai:{NAME}", {"base_url": f"{address}/v1", "api": "chat"}),
    # It speaks the API that is like Anthropic's, as Ollama does, and nothing else of Ollama's.
    "ollama": lambda address: (f"ollama:{NAME}", {"base_url": address}),
}


def asked(server, vendor, scenario, **options):
    async def main():
        name, more = VENDORS[vendor](await server.address())
        key = {"api_key": server.key}
        async with open_provider(name, tries_max=1, **(key | more | options)) as provider:
            return await asyncio.wait_for(scenario(provider), 120)

    return asyncio.run(main())


@pytest.mark.parametrize("vendor", VENDORS)
def test_an_adapter_streams_from_a_real_server(server, vendor):
    heard = []

    async def scenario(provider):
        return await provider.complete([HI], "Be brief.", settings=FEW, on_chunk=heard.append)

    response = asked(server, vendor, scenario)

    assert len(heard) > 3 and "".join(heard) == response.text
    assert response.stop in (Stop.STOP, Stop.MAX_TOKENS)
    assert response.usage.input > 10 and response.usage.output > 3
    assert response.usage != Usage() and response.id


@pytest.mark.parametrize("vendor", VENDORS)
def test_an_adapter_cancels_on_a_real_server_and_the_slot_is_free(server, vendor):
    async def scenario(provider):
        token = CancelToken()
        started = []

        def chunk(_):
            started.append(time.monotonic())
            token.cancel("enough")

        with pytest.raises(Cancelled) as raised:
            await provider.complete([STORY], on_chunk=chunk, cancel_token=token)
        took = time.monotonic() - started[0]
        begun = time.monotonic()
        await provider.complete([HI], settings=Settings(max_tokens=1))
        return raised.value.partial, took, time.monotonic() - begun

    partial, took, next_s = asked(server, vendor, scenario)

    assert took < 1 and partial.text
    assert next_s < 5  # a story would have taken longer


@pytest.mark.parametrize("vendor", VENDORS)
def test_an_adapter_tells_a_real_overflow(server, vendor):
    async def scenario(provider):
        with pytest.raises(ContextOverflow) as raised:
            await provider.complete([Message.user("word " * 2000)])
        return raised.value

    error = asked(server, vendor, scenario)

    assert error.tokens_found > 2000 and error.tokens_max == 512


@pytest.mark.parametrize("vendor", VENDORS)
def test_an_adapter_tells_a_wrong_key_without_repeating_it(server, vendor):
    async def scenario(provider):
        with pytest.raises(AuthError) as raised:
            await provider.complete([HI])
        return str(raised.value), repr(provider)

    shown = asked(server, vendor, scenario, api_key="sk-very-secret")

    assert all("sk-very-secret" not in each for each in shown)


# The wire


def test_without_tools_the_answer_is_what_is_written():
    """An answer that looks like the form of a call is left alone if no tool was offered."""
    wire = LocalWire(NAME)
    ask = wire.ask([HI])
    answer = wire.answer(ask)

    answer.add_text('{"answer": "hm"}')

    assert answer.response().text == '{"answer": "hm"}'


def test_calls_and_results_of_the_history_are_words():
    wire = LocalWire(NAME)
    look = ToolCall(id="c", name="look", arguments='{"a": 1}')
    cut = ToolCall(id="d", name="x", arguments="{")
    results = (Message.tool("1", "c"), Message.tool("no", "d", is_error=True))

    body = wire.to_wire(wire.ask([HI, Message.assistant(None, [look, cut]), *results]))

    roles = [message["role"] for message in body["messages"]]
    assert roles == ["user", "assistant", "user"]
    assert body["messages"][1]["content"].startswith('[{"name": "look", "arguments": {"a": 1}}')
    assert "gave back] 1" in body["messages"][2]["content"]
    assert "x failed] no" in body["messages"][2]["content"]


@pytest.mark.parametrize("offered", [(), (WEATHER,)], ids=["no tools", "tools"])
def test_words_that_stood_beside_a_call_are_told_with_it(offered):
    """Another vendor's model said something and called a tool in one message: both are shown."""
    wire = LocalWire(NAME)
    look = ToolCall(id="c", name="look", arguments="{}")
    said = Message.assistant('I "look".', [look], model="other:model")

    body = wire.to_wire(wire.ask([HI, said, Message.tool("1", "c")], None, offered))

    words, _, called = body["messages"][-2]["content"].partition("\n\n")
    assert words == ('{"answer": "I \\"look\\"."}' if offered else 'I "look".')
    assert called == '{"name": "look", "arguments": {}}'
