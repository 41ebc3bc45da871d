"""`open_provider`: names, options, and what is loaded for them."""

import importlib.metadata
import inspect
import os
import subprocess
import sys
from base64 import b64encode
from pathlib import Path

import pytest

import holdfast
from bad_inputs import run
from holdfast.errors import AuthError, InvalidInput
from holdfast.messages import Message
from holdfast.parts import Image, Text
from holdfast.providers import Provider, open_provider
from holdfast.providers.github_copilot import CopilotProvider
from holdfast.providers.github_provider import GitHubProvider
from holdfast.providers.local.provider import LocalProvider
from holdfast.providers.ollama_provider import OllamaProvider
from loopback import Loopback, whole

CANARY = "sk-hunter2-canary"
ASKED = [Message.user("Hello.")]
VENDORS = {"anthropic": "claude-sonnet-4-5", "google": "gemini-2.5-pro", "openai": "gpt-5"}
# Those who sell the models of others are here too, of which nothing is known of prices.
ALL = VENDORS | {"github": "openai/gpt-4.1", "antigravity": "gemini-2.5-pro"}
VARIABLES = (
    *("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    *("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL"),
    *("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", "GITHUB_TOKEN"),
    *("GITHUB_COPILOT_TOKEN_FILE", "ANTIGRAVITY_ACCOUNTS", "OLLAMA_HOST", "OLLAMA_API_KEY"),
)


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def asked_of(name, answer=None, at="", messages=ASKED, **options):
    """What a server is asked in one call, whatever comes of it."""

    async def main():
        async with Loopback(answer or whole({"error": {"message": "no"}}, status=400)) as server:
            provider = open_provider(name, base_url=server.url + at, **options)
            with pytest.raises(holdfast.errors.ProviderError):
                await provider.complete(messages)
            await provider.close()
            return server.requests[0]

    return run(main())


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_provider_has_its_name_and_knows_its_limits(vendor):
    provider = open_provider(f"{vendor}:{VENDORS[vendor]}")

    assert isinstance(provider, Provider)
    assert provider.name == f"{vendor}:{VENDORS[vendor]}"
    assert provider.context_limit >= 200_000 and provider.output_limit >= 8_000
    assert provider.prices is not None


def test_it_is_a_public_name():
    assert holdfast.open_provider is open_provider


@pytest.mark.parametrize(
    "name", ["", ":", "gpt-5", "openai:", "openai: ", ":gpt-5", 5, None, "openai:a\nb", b"openai:x"]
)
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises(InvalidInput):
        open_provider(name)


@pytest.mark.parametrize("model", ["../../x", "a/../b", "x" * 600, "a\x00b", "a\u202eb"])
def test_a_model_whose_name_would_lead_elsewhere_is_refused(model):
    with pytest.raises(InvalidInput, match="model"):
        open_provider(f"google:{model}")


def test_an_unknown_vendor_is_told_the_known_ones():
    known = "anthropic, antigravity, claude-cli, github, google, local, ollama, openai"
    with pytest.raises(InvalidInput, match=rf"'antropic'.*{known}"):
        open_provider("antropic:claude-sonnet-4-5")


@pytest.mark.parametrize("vendor", ALL)
def test_an_unknown_option_is_told_the_known_ones(vendor):
    with pytest.raises(InvalidInput, match=r"'apikey'.*api_key, .*base_url, .*client"):
        open_provider(f"{vendor}:x", apikey=CANARY)


def test_an_option_of_the_wire_reaches_it():
    assert open_provider("anthropic:claude-sonnet-4-5", ttl="1h").wire._ttl == "1h"
    with pytest.raises(InvalidInput, match="ttl"):
        open_provider("anthropic:claude-sonnet-4-5", ttl="2h")


# Keys and addresses


@pytest.mark.parametrize(
    ("vendor", "variable"),
    [
        *(("anthropic", "ANTHROPIC_API_KEY"), ("openai", "OPENAI_API_KEY")),
        *(("google", "GEMINI_API_KEY"), ("google", "GOOGLE_API_KEY")),
        ("github", "GITHUB_TOKEN"),
    ],
)
def test_a_missing_key_names_its_variable(vendor, variable):
    async def main():
        await open_provider(f"{vendor}:x").complete(ASKED)

    with pytest.raises(AuthError, match=variable):
        run(main())


@pytest.mark.parametrize(
    ("vendor", "variable", "header", "value"),
    [
        ("anthropic", "ANTHROPIC_API_KEY", "x-api-key", CANARY),
        ("openai", "OPENAI_API_KEY", "authorization", f"Bearer {CANARY}"),
        ("google", "GEMINI_API_KEY", "x-goog-api-key", CANARY),
        ("google", "GOOGLE_API_KEY", "x-goog-api-key", CANARY),
        ("github", "GITHUB_TOKEN", "authorization", f"Bearer {CANARY}"),
    ],
)
def test_a_key_of_the_environment_goes_into_its_header(
    vendor, variable, header, value, monkeypatch
):
    monkeypatch.setenv(variable, CANARY)

    asked = asked_of(f"{vendor}:x")

    assert asked.headers[header] == value
    assert CANARY not in asked.path + asked.body.decode()


@pytest.mark.parametrize("vendor", ALL)
def test_a_server_on_this_machine_needs_no_key(vendor):
    asked = asked_of(f"{vendor}:x")

    assert not {"authorization", "x-api-key", "x-goog-api-key"} & asked.headers.keys()


def test_where_each_vendor_is_asked():
    assert asked_of("anthropic:claude-x").path == "/v1/messages"
    assert asked_of("anthropic:claude-x").headers["anthropic-version"] == "2023-06-01"
    assert asked_of("anthropic:claude-x", at="/v1").path == "/v1/messages"
    assert asked_of("openai:gpt-x", at="/v1").path == "/v1/chat/completions"
    assert asked_of("openai:gpt-x", at="/v1", api="responses").path == "/v1/responses"
    assert asked_of("google:gemini-x").path == "/models/gemini-x:generateContent"


def test_an_address_of_the_environment_is_used(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://one.example")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://two.example/v1")

    assert str(open_provider("anthropic:x").address) == "https://one.example"
    assert str(open_provider("openai:x").address) == "https://two.example/v1"
    assert open_provider("openai:x").wire.api == "openai-chat"


def test_openai_itself_is_asked_through_responses_and_others_through_chat():
    assert open_provider("openai:gpt-5").wire.api == "openai-responses"
    assert open_provider("openai:gpt-5", api="chat").wire.api == "openai-chat"
    other = open_provider("openai:x", base_url="https://openrouter.ai/api/v1")
    assert other.wire.api == "openai-chat"
    with pytest.raises(InvalidInput, match="responses or chat"):
        open_provider("openai:x", api="completions")


def test_a_server_is_spoken_to_in_its_dialect():
    from holdfast.providers.openai_chat_dialect import MISTRAL, OPENAI

    mistral = open_provider("openai:x", base_url="https://api.mistral.ai/v1")
    assert mistral.wire.dialect == MISTRAL
    own = open_provider("openai:x", base_url="https://proxy.example/v1", dialect=OPENAI)
    assert own.wire.dialect == OPENAI


def test_azure_by_its_endpoint(monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("OPENAI_API_KEY", "another-service's")
    endpoint = "https://name.openai.azure.com/"

    def url(**options):
        provider = open_provider("openai:my-gpt", azure=endpoint, **options)
        assert provider.name == "openai:my-gpt" and provider.key_header == "api-key"
        return provider.address.join(provider.wire.path(provider.wire.ask(ASKED))).removeprefix(
            "https://name.openai.azure.com"
        )

    assert url() == "/openai/v1/chat/completions"
    assert url(api="responses") == "/openai/v1/responses"
    dated = {"api_version": "2024-10-21"}
    assert url(**dated) == "/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21"
    assert url(api="responses", **dated) == "/openai/responses?api-version=2024-10-21"


@pytest.mark.parametrize(
    "options",
    [
        {"azure": True},
        {"azure": "name.openai.azure.com"},
        {"azure": "https://x.example", "api_version": "1&key=2"},
        {"azure": "https://x.example", "base_url": "https://y.example"},
        {"api_version": "2024-10-21"},
    ],
)
def test_azure_without_what_it_needs_is_refused(options):
    with pytest.raises(InvalidInput):
        open_provider("openai:my-gpt", **options)


def test_azure_by_the_environment(monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://name.openai.azure.com")

    provider = open_provider("openai:my-gpt", azure=True)

    assert str(provider.address) == "https://name.openai.azure.com/openai/v1"


def test_vertex_by_a_project_and_a_token():
    provider = open_provider(
        "google:gemini-2.5-pro", project="p1", location="europe-west4", access_token=lambda: CANARY
    )

    url = provider.address.join(provider.wire.path(provider.wire.ask(ASKED)))

    assert url == (
        "https://europe-west4-aiplatform.googleapis.com/v1/projects/p1/locations/europe-west4"
        "/publishers/google/models/gemini-2.5-pro:generateContent"
    )
    asked = asked_of("google:gemini-2.5-pro", project="p1", access_token=CANARY)
    assert asked.headers["authorization"] == f"Bearer {CANARY}"
    with pytest.raises(InvalidInput, match="location"):
        open_provider("google:x", project="p1", location="evil.example/")
    with pytest.raises(InvalidInput, match="access_token"):
        open_provider("google:x", access_token="a", api_key="b")


# Beside complete


def test_anthropic_counts_tokens_at_the_service():
    async def main():
        async with Loopback(whole({"input_tokens": 14})) as server:
            provider = open_provider("anthropic:claude-x", base_url=server.url)
            count = await provider.count_tokens(ASKED, "Be brief.")
            await provider.close()
            return count, server.requests[0]

    count, asked = run(main())

    assert count == 14
    assert asked.path == "/v1/messages/count_tokens"
    assert asked.json["model"] == "claude-x" and "max_tokens" not in asked.json


def test_google_counts_tokens_at_the_service():
    async def main(**options):
        async with Loopback(whole({"totalTokens": 31})) as server:
            provider = open_provider("google:gemini-x", base_url=server.url, **options)
            count = await provider.count_tokens(ASKED, "Be brief.")
            await provider.close()
            return count, server.requests[0]

    count, asked = run(main())
    assert (count, asked.path) == (31, "/models/gemini-x:countTokens")
    assert asked.json["generateContentRequest"]["model"] == "models/gemini-x"
    assert asked.json["generateContentRequest"]["systemInstruction"]

    count, asked = run(main(project="p"))
    assert asked.path.endswith("/publishers/google/models/gemini-x:countTokens")
    assert asked.json["contents"]


def test_openai_tokens_are_counted_here():
    async def main():
        return await open_provider("openai:gpt-5").count_tokens(ASKED)

    assert 1 < run(main()) < 30


def listed(name, *pages):
    async def main():
        async with Loopback(*map(whole, pages)) as server:
            provider = open_provider(name, base_url=server.url)
            names = await provider.list_models()
            await provider.close()
            return names, [asked.path for asked in server.requests]

    return run(main())


def test_models_are_listed_page_by_page():
    first = {"data": [{"id": "claude-b"}], "has_more": True, "last_id": "a/b"}
    names, paths = listed("anthropic:x", first, {"data": [{"id": "claude-a"}], "has_more": False})
    assert names == ("claude-a", "claude-b")
    assert paths == ["/v1/models?limit=1000", "/v1/models?limit=1000&after_id=a%2Fb"]

    first = {"models": [{"name": "models/gemini-b"}], "nextPageToken": "t&="}
    names, paths = listed("google:x", first, {"models": [{"name": "models/gemini-a"}]})
    assert names == ("gemini-a", "gemini-b")
    assert paths == ["/models?pageSize=1000", "/models?pageSize=1000&pageToken=t%26%3D"]

    names, paths = listed("openai:x", {"data": [{"id": "gpt-a"}]})
    assert (names, paths) == (("gpt-a",), ["/models"])


def test_a_list_of_models_without_end_is_left_after_a_while():
    page = {"data": [{"id": "x"}], "has_more": True, "last_id": "x"}

    names, paths = listed("anthropic:x", page)

    assert names == ("x",) and len(paths) == 100


# What is loaded, and who else is there


def loaded(code):
    program = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


HTTP = {"httpx2", "httpx", "aiohttp", "ssl", "asyncio"}


def test_importing_providers_loads_no_client_and_no_vendor():
    modules = loaded("import holdfast.providers")

    assert not modules & HTTP
    assert not [name for name in modules if name.startswith("holdfast.providers.anth")]


@pytest.mark.parametrize("vendor", VENDORS)
def test_opening_a_provider_loads_its_own_module_and_no_client(vendor):
    modules = loaded(
        f"import holdfast\nholdfast.open_provider('{vendor}:{VENDORS[vendor]}', api_key='x')"
    )

    ours = modules_of_vendors(modules)
    assert {name for name in VENDORS if f"{name}_provider" in ours} == {vendor}
    assert not [name for name in ours for other in VENDORS if other != vendor and other in name]
    assert not modules & HTTP


@pytest.mark.parametrize("path", ["models", "copilot"])
def test_opening_a_path_of_github_loads_what_it_needs_and_no_client(path):
    modules = loaded(
        f"import holdfast\nholdfast.open_provider('github:x', api_key='x', path='{path}')"
    )

    assert not modules & HTTP
    assert ("holdfast.providers.github_copilot" in modules) == (path == "copilot")
    assert not {f"holdfast.providers.{name}_provider" for name in VENDORS} & modules


def modules_of_vendors(modules):
    return {name.split(".")[2] for name in modules if name.startswith("holdfast.providers.")}


def test_ollama_is_a_small_variation_of_anthropic():
    """S2-94: opening it loads that wire, no other vendor's provider, and no client."""
    modules = loaded("import holdfast\nholdfast.open_provider('ollama:qwen3')")

    ours = modules_of_vendors(modules)
    assert {"ollama_messages", "anthropic", "anthropic_reader"} <= ours
    assert {name for name in ours if name.endswith("_provider")} == {
        "http_provider",
        "ollama_provider",
        "wire_provider",
    }
    assert "ollama" not in ours and not modules & HTTP


def test_the_probe_sees_a_client():
    assert loaded("import httpx2") & HTTP


# What all of them have


KINDS = [type(open_provider(f"{vendor}:{VENDORS[vendor]}")) for vendor in VENDORS]
KINDS += [Provider, LocalProvider, GitHubProvider, CopilotProvider, OllamaProvider]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_provider_has_one_way_to_ask_it(kind):
    """S2-1, S2-2: the conversation goes in whole; whatever else may be said, is said by name."""
    taken = inspect.signature(kind.complete).parameters.values()
    plain = inspect.Signature([each.replace(annotation=inspect.Parameter.empty) for each in taken])
    gone = ("create_session", "get_history", "send_message", "send_tool_results")

    assert str(plain) == (
        "(self, messages, system_instruction=None, tools=None, *, response_schema=None, "
        "settings=None, conversation=None, cancel_token=None, on_chunk=None, "
        "on_usage_update=None, on_thinking=None, on_tool_call=None, on_retry=None)"
    )
    assert inspect.iscoroutinefunction(kind.complete)
    assert [name for name in dir(kind) if name.startswith((*gone, "stream", "append"))] == []


def test_a_provider_has_what_the_design_names():
    """S2-14: what is opened needs no connecting, and what was used stands in the response."""
    public = {name for name in dir(Provider) if not name.startswith("_")}

    assert public == {
        *("name", "complete", "count_tokens", "context_limit", "output_limit", "list_models"),
        *("verify", "close", "preflight"),
    }


def test_to_complete_is_all_that_a_provider_has_to_do():
    """S2-4: pairs of calls and results are made whole before, in one place for all of them."""
    folder = Path(inspect.getfile(Provider)).parent
    rendering = [
        path.name
        for path in folder.rglob("*.py")
        if "import Repair, Shown, render" in path.read_text()
    ]

    assert Provider.__abstractmethods__ == {"complete"}
    assert Other("big").name == "other:big"
    assert rendering == ["prepare.py"]


@pytest.mark.parametrize("vendor", ALL)
def test_a_message_of_parts_goes_the_same_way_as_text(vendor):
    """S2-70, B26: words and a picture, among other messages."""
    picture = b"\x89PNG\r\n\x1a\n...."
    said = Message.user([Text("What is this?"), Image(data=picture, media_type="image/png")])

    asked = asked_of(f"{vendor}:{ALL[vendor]}", messages=[*ASKED, said])

    assert b"Hello." in asked.body and b"What is this?" in asked.body
    assert b64encode(picture) in asked.body


@pytest.mark.parametrize("vendor", ALL)
def test_opening_and_asking_leave_the_environment_as_it_is(vendor):
    """B44: it belongs to all sessions of the process."""
    before = dict(os.environ)

    asked_of(f"{vendor}:{ALL[vendor]}", api_key=CANARY)

    assert dict(os.environ) == before


class Other(Provider):
    vendor = "other"

    def __init__(self, model, **options):
        self.model = model
        self.options = options

    async def complete(self, *args, **more):
        raise NotImplementedError


def register(monkeypatch, **makers):
    class Entry:
        def __init__(self, name, maker):
            self.name = name
            self.load = lambda: maker

    entries = [Entry(*each) for each in makers.items()]
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda *, group: entries * (group[-9:] == "providers")
    )


def test_others_register_their_own(monkeypatch):
    register(monkeypatch, other=Other, openai=Other)

    provider = open_provider("other:big", colour="red")

    assert (provider.name, provider.options) == ("other:big", {"colour": "red"})
    assert not isinstance(open_provider("openai:gpt-5"), Other)  # what is built in comes first
    with pytest.raises(InvalidInput, match="other"):
        open_provider("unknown:x")


def test_what_is_registered_has_to_make_a_provider(monkeypatch):
    register(monkeypatch, other=lambda model: model)

    with pytest.raises(InvalidInput, match="makes no Provider"):
        open_provider("other:x")


@pytest.mark.parametrize(
    ("model", "options", "most"),
    [
        ("claude-3-haiku-20240307", {}, 4_096),
        ("claude-sonnet-4-5", {}, 8_192),
        ("claude-3-haiku-20240307", {"output_limit": 1_000}, 1_000),
        ("nobody-knows-me", {}, 8_192),
    ],
)
def test_a_model_is_not_asked_to_write_more_than_it_can(model, options, most):
    """Anthropic refuses such a request, and the default is more than its first models write."""
    provider = open_provider(f"anthropic:{model}", api_key="k", **options)

    body = provider.wire.to_wire(provider.wire.ask([Message.user("hi")]))

    assert body["max_tokens"] == most
