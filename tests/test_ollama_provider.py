"""The provider of Ollama, against a server that behaves as Ollama does (`ollama_double.py`).

Which API is spoken; how large the window really is; and what is done about a prompt that the
server would cut, or has cut, without a word.
"""

import asyncio
import logging

import pytest

from bad_inputs import run
from holdfast import CancelToken, Message, Settings, Tool, open_provider
from holdfast.errors import (
    AuthError,
    ConnectionFailed,
    ContextOverflow,
    InvalidInput,
    InvalidRequest,
    Overloaded,
    ProtocolError,
)
from holdfast.messages import Stop
from holdfast.providers.pipe import Timeouts
from loopback import Loopback, in_turn, whole
from ollama_double import Ollama

HI = Message.user("Hello.")
MODEL = "ollama:qwen3:8b"
LOOKED = ["/api/version", "/api/show", "/api/ps", "/api/generate", "/api/ps"]


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch):
    """No variables, and short waits between tries."""
    for name in ("OLLAMA_HOST", "OLLAMA_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("holdfast.providers.retries.FIRST_BOUND_S", 0.01)


def words(count):
    """So many words, each of them a token of the model, and of the double."""
    return Message.user("so " * count)


def asking(ollama, *questions, name=MODEL, stream=False, **options):
    """What comes of each question, put to one provider: responses and errors."""
    listen = {"on_chunk": lambda _: None} if stream else {}

    async def main():
        found = []
        async with ollama.served(), open_provider(name, base_url=ollama.url, **options) as provider:
            for said in questions:
                try:
                    found.append(await provider.complete([said], **listen))
                except Exception as error:
                    found.append(error)
            return found, provider

    return run(main())


# Which API


@pytest.mark.parametrize("stream", [False, True])
def test_a_server_is_asked_in_the_api_that_is_like_anthropics(stream):
    """S2-94, S2-95: the Messages API of Ollama 0.14 and newer, without breakpoints for a cache."""
    ollama = Ollama("0.14.0")

    (response, _), _ = asking(ollama, HI, HI, stream=stream)

    assert (response.text, response.stop, response.model) == ("Fine.", Stop.STOP, "qwen3:8b")
    assert (response.usage.input, response.usage.output) == (1, 3)
    assert ollama.paths == [*LOOKED, "/v1/messages", "/v1/messages"]
    body = ollama.bodies("/v1/messages")[0]
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Hello."}]}]
    assert "cache_control" not in str(body) and "thinking" not in body


@pytest.mark.parametrize("stream", [False, True])
def test_an_older_server_is_asked_in_its_own_api(stream):
    """S2-95: by its version; it is asked for a window that a conversation fits into."""
    ollama = Ollama("0.13.5")

    (response, _), provider = asking(ollama, HI, HI, stream=stream)

    assert (response.text, response.stop) == ("Fine.", Stop.STOP)
    assert (response.usage.input, response.usage.output) == (1, 1)
    assert ollama.paths == ["/api/version", "/api/show", "/api/chat", "/api/chat"]
    body = ollama.bodies("/api/chat")[0]
    assert body["options"] == {"num_ctx": 32_768} and body["stream"] is stream
    assert ollama.loaded == {"qwen3:8b": 32_768}
    assert provider.context_limit == 32_768 and response.message.model == MODEL


@pytest.mark.parametrize("version", ["0.0.0", "", "0.20.1"])
def test_a_server_that_does_not_know_the_path_is_asked_in_its_own_api(version):
    """404, where the version says nothing or is wrong; it is remembered."""
    paths = {"/api/version", "/api/show", "/api/ps", "/api/generate", "/api/chat"}
    ollama = Ollama(version, has=paths)

    (first, second), _ = asking(ollama, HI, HI)

    assert (first.text, second.text) == ("Fine.", "Fine.")
    assert ollama.paths.count("/v1/messages") == 1
    assert ollama.paths[-2:] == ["/api/chat", "/api/chat"]


def test_calls_at_the_same_time_are_all_asked_in_its_own_api():
    """S2-95: each of them has met the 404, and the first has changed what all are asked in."""
    ollama = Ollama("0.0.0", has={"/api/show", "/api/ps", "/api/generate", "/api/chat"})

    async def main():
        async with ollama.served(), open_provider(MODEL, base_url=ollama.url) as provider:
            return await asyncio.gather(*(provider.complete([HI]) for _ in range(10)))

    assert [each.text for each in run(main())] == ["Fine."] * 10


def test_the_api_can_be_forced():
    """The version is then not asked; nor is the window, where it is asked for."""
    forced, native = Ollama(), Ollama()

    (response,), _ = asking(forced, HI, api="messages")
    (other,), _ = asking(native, HI, api="native", context_limit=8_192)

    assert (response.text, forced.paths) == ("Fine.", [*LOOKED[1:], "/v1/messages"])
    assert (other.text, native.paths) == ("Fine.", ["/api/chat"])
    with pytest.raises(InvalidInput, match="messages or native"):
        open_provider(MODEL, api="chat")


def test_a_server_that_is_too_old_for_what_was_asked_says_so():
    """S2-95: 404 means too old; the error ends with what to do."""
    old = Ollama("0.13.0")

    (error,), _ = asking(old, HI, api="messages")

    assert type(error) is ProtocolError and old.paths[-1] == "/v1/messages"
    assert str(error).endswith("update Ollama (0.14 or newer speaks this), or pass api='native'")


def test_a_service_that_has_nothing_but_the_one_path_is_asked_there():
    """A proxy may pass on one API alone: what else is not known stays unknown, asked for once."""
    ollama = Ollama(has={"/v1/messages"})

    (first, second), provider = asking(ollama, HI, HI)

    assert (first.text, second.text) == ("Fine.", "Fine.")
    assert ollama.paths == [*LOOKED, "/v1/messages", "/v1/messages"]
    assert provider.context_limit == 32_768


# The window


@pytest.mark.parametrize(
    ("server", "limit"),
    [
        (Ollama(window=4_096), 4_096),
        (Ollama(window=4_096, num_ctx=8_192), 8_192),
        (Ollama(tells=False), 32_768),
        (Ollama(tells=False, num_ctx=8_192), 8_192),
        (Ollama("0.13.0", num_ctx=8_192), 8_192),
        (Ollama("0.13.0", trained=2_048), 2_048),
        (Ollama("0.13.0", window=4_096), 32_768),
    ],
)
def test_the_real_window_is_found_out(server, limit):
    """S2-95: 32,768 where nothing is known. Loaded models have the window that the server says;
    others that of their card, or of what they were trained for; older servers are asked for one."""
    _, provider = asking(server, HI)

    assert provider.context_limit == limit
    assert provider.output_limit == min(8_192, limit // 2)


def test_calls_at_the_same_time_look_once():
    """They would load the model as often."""
    ollama = Ollama()

    async def main():
        async with ollama.served(), open_provider(MODEL, base_url=ollama.url) as provider:
            return await asyncio.gather(*(provider.complete([HI]) for _ in range(10)))

    answers = run(main())

    assert [each.text for each in answers] == ["Fine."] * 10
    assert [path for path in ollama.paths if path != "/v1/messages"] == LOOKED


def test_a_model_that_is_loaded_already_is_not_loaded_again():
    ollama = Ollama(window=8_192)
    ollama.loaded["qwen3:8b"] = 16_384

    _, provider = asking(ollama, HI)

    assert provider.context_limit == 16_384 and "/api/generate" not in ollama.paths


def test_a_window_that_is_said_is_the_window():
    """S2-95: overridable. In its own API it is asked for."""
    assert open_provider(MODEL).context_limit == 32_768
    assert open_provider(MODEL, context_limit=8_192).context_limit == 8_192
    assert open_provider("ollama:claude-3-5-sonnet").context_limit == 32_768  # the name of a copy

    native, other = Ollama(), Ollama(window=4_096)
    asking(native, HI, api="native", context_limit=16_384)
    _, provider = asking(other, HI, context_limit=16_384)

    assert native.loaded == {"qwen3:8b": 16_384}
    assert provider.context_limit == 4_096  # this one is not asked for one, and has less


@pytest.mark.parametrize(
    ("name", "host"), [("ollama:glm-4.7:cloud", ""), ("ollama:x:1b-cloud", "")]
)
def test_the_window_of_a_cloud_model_is_that_of_its_card(name, host):
    """It is not loaded here, and nobody cuts its prompts."""
    ollama = Ollama(models=(name.partition(":")[2],), trained=131_072)

    _, provider = asking(ollama, HI, name=name)

    assert provider.context_limit == 131_072
    assert ollama.paths == ["/api/version", "/api/show", "/v1/messages"]


# A prompt that is longer than it


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_that_would_be_cut_is_not_sent(stream):
    """The window is known before the first question, so nobody hears an answer to half of it."""
    ollama = Ollama(window=4_096)

    (error,), _ = asking(ollama, words(9_000), stream=stream)

    assert type(error) is ContextOverflow and error.partial is None
    assert error.tokens_found > 8_000 and error.tokens_max == 4_096
    assert "/v1/messages" not in ollama.paths
    assert "OLLAMA_CONTEXT_LENGTH" in str(error)


def test_a_server_with_a_larger_window_than_before_is_believed():
    """It was started anew: the window is asked for once more before a prompt is refused."""
    ollama = Ollama(window=4_096)

    async def main():
        async with ollama.served(), open_provider(MODEL, base_url=ollama.url) as provider:
            await provider.complete([HI])
            ollama.window = ollama.loaded["qwen3:8b"] = 16_384
            return await provider.complete([words(9_000)]), provider

    response, provider = run(main())

    assert response.usage.input == 9_000 and provider.context_limit == 16_384


VERSIONS = ["0.33.2", "0.20.0", "0.9.0"]


def smaller(ollama, *questions, window=4_096, name=MODEL, **options):
    """The same, on a server that was started anew with a smaller window behind the first."""
    listen = {"on_chunk": lambda _: None} if options.pop("stream", False) else {}

    async def main():
        found = []
        async with (
            ollama.served(),
            open_provider(name, base_url=ollama.url, **options) as provider,
        ):
            for said in questions:
                try:
                    found.append(await provider.complete([said], **listen))
                except ContextOverflow as error:
                    found.append(error)
                ollama.trained = window
                ollama.loaded[ollama.models[0]] = window
            return found, provider

    return run(main())


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_prompt_that_was_cut_in_silence_is_an_overflow(version, stream, caplog):
    """What was counted tells, whatever of it the server leaves: then the window is asked for. It
    is warned of, and the smaller window is the one that is known from then on."""
    ollama = Ollama(version, window=32_768)

    with caplog.at_level(logging.WARNING, "holdfast"):
        (_, error, again, short), provider = smaller(
            ollama, HI, words(9_000), words(9_000), HI, stream=stream
        )

    assert len(ollama.prompts[1]) < 9_000  # it was really cut
    assert type(error) is ContextOverflow and error.tokens_max == 4_096
    assert error.partial.text == "Fine." and error.partial.stop == Stop.ERROR
    assert provider.context_limit == 4_096
    assert type(again) is ContextOverflow and len(ollama.prompts) == 3  # the same was not sent
    assert short.text == "Fine."
    (told,) = caplog.messages
    assert f"to {len(ollama.prompts[1])}" in str(error) and "in silence" in told
    assert "4096" in told and "so so" not in told


@pytest.mark.parametrize("version", VERSIONS)
def test_a_cut_is_noticed_by_its_mark_where_the_vocabulary_is_not_known(version):
    """Our count may then be off by so much that 9,000 tokens could fit; what a cut leaves is half
    of the window or all of it, to the token."""
    ollama = Ollama(version, models=("phi4:latest",), window=32_768)

    (_, error), provider = smaller(ollama, HI, words(9_000), name="ollama:phi4")

    assert type(error) is ContextOverflow and error.partial is not None
    assert provider.context_limit == 4_096


def test_a_newer_server_is_told_to_refuse_instead():
    """`truncate` and `shift` in its own API: the refusal says how much there is and may be."""
    ollama = Ollama("0.33.2", trained=4_096)

    (error,), provider = asking(ollama, words(9_000), api="native", context_limit=32_768)

    assert type(error) is ContextOverflow and error.status == 400
    assert (error.tokens_found, error.tokens_max) == (9_000, 4_096)
    assert provider.context_limit == 4_096 and ollama.prompts == []


def test_a_refusal_that_names_an_impossible_window_is_not_remembered():
    """Or one mistaken sentence would leave no room for anything in this provider."""
    refusal = {"error": "request (9000 tokens) exceeds the available context size (4 tokens)"}

    async def main():
        async with Loopback(whole(refusal, status=400)) as other:
            options = {"api": "native", "context_limit": 8_192}
            async with open_provider(MODEL, base_url=other.url, **options) as provider:
                with pytest.raises(ContextOverflow):
                    await provider.complete([HI])
                return provider.context_limit

    assert run(main()) == 8_192


@pytest.mark.parametrize("api", ["native", "messages"])
def test_what_was_in_the_cache_is_not_taken_for_a_cut(api, caplog):
    """The rule: few tokens are a suspicion, the window decides. Versions that do not count what
    they had in their cache say 1 of a prompt that they have read whole."""
    ollama = Ollama("0.30.1", window=16_384, counts=False)
    again = Message.user("so " * 9_000 + "what?")

    with caplog.at_level(logging.WARNING, "holdfast"):
        (first, second), provider = asking(
            ollama, words(9_000), again, api=api, context_limit=16_384
        )

    assert (first.usage.input, second.usage.input) == (9_000, 1)
    assert ollama.prompts[1][-1] == "what?" and len(ollama.prompts[1]) == 9_001
    assert provider.context_limit == 16_384 and caplog.messages == []


def test_what_is_in_the_cache_does_not_excuse_a_cut():
    """Too long is too long, however much of it the server had read before."""
    ollama = Ollama("0.30.1", window=32_768, counts=False)

    (first, second), _ = smaller(ollama, words(3_000), words(9_000))

    assert first.usage.input == 3_000 and len(ollama.prompts[1]) == 2_050
    assert type(second) is ContextOverflow and second.partial.usage.input == 1


def test_without_a_window_nothing_is_held_against_an_answer(caplog):
    """Who neither says how large it is nor counts everything is believed."""
    ollama = Ollama("0.33.2", window=4_096, has={"/v1/messages"})

    (response,), provider = asking(ollama, words(9_000))

    assert response.text == "Fine." and provider.context_limit == 32_768


# Errors, in plain words


def test_no_server_says_how_to_start_one():
    async def main():
        async with Loopback(b"") as gone:
            url = gone.url
        async with open_provider(MODEL, base_url=url, tries_max=1) as provider:
            for asked in (provider.complete([HI]), provider.verify(), provider.list_models()):
                with pytest.raises(ConnectionFailed) as raised:
                    await asked
                assert "start it with `ollama serve`" in str(raised.value)

    run(main())


@pytest.mark.parametrize("api", [None, "native"])
def test_a_server_that_is_no_ollama_says_to_look_at_the_address(api):
    """And not to take the other API, which was tried."""

    async def main():
        nothing = whole(b"404 page not found", status=404, kind="text/plain")
        async with (
            Loopback(nothing) as other,
            open_provider(MODEL, base_url=other.url, api=api) as provider,
        ):
            with pytest.raises(ProtocolError) as raised:
                await provider.complete([HI])
            return str(raised.value)

    said = run(main())

    assert "check the address" in said and "api='native'" not in said


def test_a_server_that_comes_later_is_looked_at_then():
    """What could not be found out is found out when it answers."""

    async def main():
        ollama = Ollama(window=8_192)
        async with ollama.served(), Loopback(b"") as gone:
            provider = open_provider(MODEL, base_url=gone.url, tries_max=1)
            await gone.__aexit__()
            with pytest.raises(ConnectionFailed):
                await provider.complete([HI])
            provider.address = open_provider(MODEL, base_url=ollama.url).address
            response = await provider.complete([HI])
            await provider.close()
            return response, provider

    response, provider = run(main())

    assert response.text == "Fine." and provider.context_limit == 8_192


@pytest.mark.parametrize("version", VERSIONS)
def test_a_missing_model_says_which_command_pulls_it(version):
    """S2-95: whichever API says so."""
    (error,), _ = asking(Ollama(version), HI, name="ollama:qwen9:8b")

    assert type(error) is InvalidRequest and error.status == 404
    assert "run `ollama pull qwen9:8b`" in str(error)


REFUSALS = [
    (500, "model requires more system memory (5.0 GiB) than is available (3.9 GiB)", Overloaded,
     "free memory, use a smaller model"),
    (500, "llama runner process has terminated: cudaMalloc failed: out of memory", Overloaded,
     "free memory, use a smaller model"),
    (400, "library/gemma:2b does not support tools", InvalidRequest,
     "use a model that was taught to call tools"),
    (400, '"gemma:2b" does not support thinking', InvalidRequest, "leave settings.thinking out"),
    (401, "unauthorized", AuthError, "set OLLAMA_API_KEY"),
    (503, "server busy, please try again. maximum pending requests exceeded", Overloaded,
     "try again later"),
    (400, "the prompt is longer than the context length currently available to the model",
     ContextOverflow, "OLLAMA_CONTEXT_LENGTH"),
]  # fmt: skip


@pytest.mark.parametrize("api", ["native", "messages"])
@pytest.mark.parametrize(("status", "sentence", "kind", "way"), REFUSALS)
def test_a_refusal_says_what_to_do(api, status, sentence, kind, way):
    """S2-95: memory errors are reported as such; each ends with the way out."""
    body = {"error": sentence}
    if api == "messages":
        kind_of = {400: "invalid_request_error", 401: "authentication_error"}
        error = {"type": kind_of.get(status, "api_error"), "message": sentence}
        body = {"type": "error", "error": error}

    async def main():
        async with Loopback(whole(body, status=status)) as server:
            options = {"api": api, "context_limit": 8_192, "tries_max": 1}
            async with open_provider(MODEL, base_url=server.url, **options) as provider:
                with pytest.raises(kind) as raised:
                    await provider.complete([HI])
                return raised.value

    error = run(main())

    assert type(error) is kind and sentence[:40] in str(error) and way in str(error)


# Beside `complete`


def test_models_are_listed_and_the_server_verified():
    """S2-95: `GET /api/tags`; a name without a tag is also the latest."""

    async def main():
        async with Ollama().served() as ollama:
            for name in ("qwen3:8b", "llama3.2", "llama3.2:latest", "LLAMA3.2", "glm:cloud"):
                async with open_provider(f"ollama:{name}", base_url=ollama.url) as provider:
                    await provider.verify()
                    listed = await provider.list_models(), await provider.list_models("qwen")
            async with open_provider("ollama:qwen3", base_url=ollama.url) as provider:
                with pytest.raises(InvalidRequest, match="ollama pull qwen3`"):
                    await provider.verify()
            return listed, set(ollama.paths)

    (everything, some), paths = run(main())

    assert everything == ("llama3.2:latest", "qwen3:8b") and some == ("qwen3:8b",)
    assert paths == {"/api/tags"}


def test_verifying_is_given_up_after_five_seconds(monkeypatch):
    """S2-95."""
    from holdfast.providers import ollama_provider

    assert ollama_provider.LOOK_S_MAX == 5.0
    monkeypatch.setattr(ollama_provider, "LOOK_S_MAX", 0.2)

    async def main():
        async with (
            Loopback(in_turn(then="hang")) as server,
            open_provider(MODEL, base_url=server.url) as provider,
        ):
            with pytest.raises(ConnectionFailed, match=r"within 0\.2 s"):
                await provider.verify()

    run(main())


def test_tokens_are_counted_here():
    """The service has no endpoint for it."""

    async def main():
        async with (
            Ollama().served() as ollama,
            open_provider(MODEL, base_url=ollama.url) as provider,
        ):
            return await provider.count_tokens([words(100)]), ollama.paths

    count, paths = run(main())

    assert 90 < count < 130 and paths == []


def test_a_server_that_says_nothing_is_an_error_at_the_limit():
    """Looking for what is not known does not add to it."""
    limits = Timeouts(connect=1, idle=0.2, total=3)

    async def main():
        async with Loopback(in_turn(then="hang")) as server:
            options = {"timeout": limits, "tries_max": 1}
            async with open_provider(MODEL, base_url=server.url, **options) as provider:
                with pytest.raises(ConnectionFailed, match="idle limit"):
                    await provider.complete([HI])
            return len(server.requests)

    assert run(main()) == 2  # the version, and the question


def test_a_cancel_is_heard_while_something_is_looked_for():
    token = CancelToken()

    async def main():
        async with (
            Loopback(in_turn(then="hang")) as server,
            open_provider(MODEL, base_url=server.url) as provider,
        ):
            asyncio.get_running_loop().call_later(0.1, token.cancel, "enough")
            with pytest.raises(Exception, match="enough"):
                await provider.complete([HI], cancel_token=token)

    run(main())


# Keys


def headers_of(*, url="{}", **options):
    async def main():
        async with Ollama().served() as ollama:
            options.setdefault("api", "native")
            base = url.format(ollama.url.removeprefix("http://"))
            async with open_provider(MODEL, base_url=base, context_limit=8_192, **options) as model:
                await model.complete([HI])
            return ollama.requests[0].headers

    return run(main())


def test_a_key_that_nobody_looks_at_is_sent_where_there_is_no_other(monkeypatch):
    """S2-95: dummy key `ollama`."""
    assert headers_of()["authorization"] == "Bearer ollama"
    assert headers_of(api="messages")["authorization"] == "Bearer ollama"
    assert headers_of(api_key="a-real-key")["authorization"] == "Bearer a-real-key"
    assert headers_of(headers={"authorization": "Basic x"})["authorization"] == "Basic x"
    assert headers_of(url="http://ada:pw@{}")["authorization"].startswith("Basic ")
    assert "authorization" not in headers_of(headers={"x-api-key": "k"})
    monkeypatch.setenv("OLLAMA_API_KEY", "of-the-environment")
    assert headers_of()["authorization"] == "Bearer of-the-environment"


def test_a_client_that_brings_its_own_key_keeps_it():
    import httpx2

    async def main():
        async with (
            Ollama().served() as ollama,
            httpx2.AsyncClient(headers={"authorization": "Bearer own"}) as client,
        ):
            options = {"api": "native", "context_limit": 8_192, "client": client}
            provider = open_provider(MODEL, base_url=ollama.url, **options)
            await provider.complete([HI])
            return ollama.requests[0].headers["authorization"]

    assert run(main()) == "Bearer own"


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)

    assert headers_of()["authorization"] == "Bearer ollama"


def test_an_option_that_is_not_of_this_vendor_is_refused():
    for option in ("cache", "ttl", "betas", "output_tokens_max", "num_ctx"):
        with pytest.raises(InvalidInput, match=option):
            open_provider(MODEL, **{option: "5m"})


def test_thinking_and_tools_go_along_in_both():
    """A request with everything in it is one that the server takes."""
    tool = Tool("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}})
    settings = Settings(thinking="low", temperature=0.5, max_tokens=100)
    asked = ("/api/chat", "/v1/messages")

    async def main(api):
        async with Ollama().served() as ollama:
            options = {"api": api, "context_limit": 8_192}
            async with open_provider(MODEL, base_url=ollama.url, **options) as provider:
                await provider.complete([HI], "Be brief.", [tool], settings=settings)
            return next(body for path, body in ollama.asked if path in asked)

    native, messages = run(main("native")), run(main("messages"))

    assert native["think"] is True and native["tools"][0]["function"]["name"] == "look"
    assert native["options"] == {"num_ctx": 8_192, "num_predict": 100, "temperature": 0.5}
    assert messages["output_config"] == {"effort": "low"} and messages["temperature"] == 0.5
    assert messages["max_tokens"] == 100 and messages["tools"][0]["name"] == "look"
