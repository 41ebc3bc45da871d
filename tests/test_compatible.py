"""Services that speak OpenAI's wires or Anthropic's: the base URL is all that it takes.

Each service of the corpus is asked what was asked of it, at its real address, over a connection
that ends at a server on this machine, which answers as recorded. The tables of the page about them
are held against those of the code.
"""

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from bad_inputs import run
from faults.talk import ANSWER, SAID, joined
from faults.talk import WIRES as TALK
from faults.tier import some
from holdfast.errors import AuthError, Overloaded, ProviderError
from holdfast.messages import Message, ToolCall
from holdfast.parts import Image, Text, Thinking
from holdfast.providers import anthropic_dialect, hosts, open_provider, openai_chat_dialect
from holdfast.providers.anthropic_dialect import CLAUDE, AnthropicDialect
from holdfast.providers.openai_chat_dialect import LONG_ID, NINE_LETTERS, SHORT_ID, Dialect
from holdfast.testing import validators
from holdfast.testing.replay.history import conversation
from holdfast.testing.replay.ours import adapters
from holdfast.testing.replay.recordings import OPENAI_RESPONSES, Recording, read_folder
from holdfast.testing.replay.server import Answer, Server
from loopback import Loopback, chunked, whole
from rerouted import rerouted
from test_replay_ours import facts, outcome

ROOT = Path(__file__).parent.parent
CORPUS = Path(os.environ.get("HOLDFAST_CORPUS") or ROOT.parent / "shared" / "corpus")
TRAFFIC = CORPUS / "traffic"
PAGE = (ROOT / "docs" / "providers" / "compatible.md").read_text(encoding="utf-8")
need_corpus = pytest.mark.skipif(not TRAFFIC.is_dir(), reason=f"there is no corpus at {CORPUS}")
ASKED = [Message.user("Hello.")]
CANARY = "sk-hunter2-canary"
PNG = b"\x89PNG\r\n\x1a\n...."

# The services of the corpus, and where each one's own pages say that it is.
BASES = {
    "avian": "https://api.avian.io/v1",
    "crusoecloud": "https://managed-inference-api-proxy.crusoecloud.com/v1",
    "deepseek": "https://api.deepseek.com",
    "groq": "https://api.groq.com/openai/v1",
    "huggingface": "https://router.huggingface.co/v1",
    "local-proxy": "http://localhost:4000",
    "mistral": "https://api.mistral.ai/v1",
    "openrouter": "https://openrouter.ai/api/v1",
    "perplexity": "https://api.perplexity.ai",
    "snowflakecomputing": "https://acme.snowflakecomputing.com/api/v2/cortex/v1",
    "vercel-gateway": "https://ai-gateway.vercel.sh/v1",
    "xai": "https://api.x.ai/v1",
    "zai": "https://api.z.ai/api/paas/v4",
    "azure-openai": "https://acme.openai.azure.com/openai/v1",
}
# Recorded at another address of the same service.
OTHER_PATHS = {
    *("/v1/chat/completions", "/together/v1/chat/completions", "/openai/responses"),
    *("/api/coding/paas/v4/chat/completions", "/models/chat/completions"),
}


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch):
    names = {*hosts.KEYS.values(), "OPENAI_API_KEY", "ANTHROPIC_API_KEY"}
    for name in (*names, "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


# OpenAI's wires, as recorded


def exchanges_of(service):
    folder = "azure-openai" if service == "azure-openai" else "openai-compatible"
    recordings = [each for each in read_folder(TRAFFIC / folder) if isinstance(each, Recording)]
    found = [e for each in recordings for e in each.exchanges if e.service == service]
    return [each for each in found if each.wire is not None and each.request is not None]


@need_corpus
def test_every_service_of_the_corpus_is_among_them():
    recordings = read_folder(TRAFFIC / "openai-compatible")
    found = {e.service for each in recordings for e in each.exchanges}

    assert found | {"azure-openai"} == BASES.keys()


async def asked_again(exchange):
    """What comes of the recorded question, where it went, and what was sent."""
    said = conversation(exchange)
    options = {"api": "responses" if exchange.wire == OPENAI_RESPONSES else "chat", "tries_max": 1}
    async with (
        Server(Answer.of(exchange)) as server,
        rerouted(server.url) as (client, wanted),
        open_provider(
            f"openai:{exchange.model}",
            base_url=BASES[exchange.service],
            client=client,
            api_key=CANARY,
            **options,
        ) as provider,
    ):
        told = {"on_chunk": lambda _: None} if exchange.is_stream else {}
        try:
            response = await provider.complete(
                said.messages,
                said.system,
                said.tools,
                response_schema=said.response_schema,
                settings=said.settings,
                **told,
            )
            read = facts(response)
        except ProviderError as error:
            read = type(error), error.status in (None, exchange.status)
        return read, wanted[0], server.requests[0]


@need_corpus
@pytest.mark.parametrize("service", BASES)
def test_a_service_of_the_corpus_works_by_its_base_url(service):
    """Asked in a form that it takes, at the recorded path, and its answer is read as it is."""
    judges = adapters()
    for exchange in some(exchanges_of(service), 8):
        read, url, request = run(asked_again(exchange))

        path = exchange.path.partition("?")[0].replace("//", "/")
        path = re.sub(r"^/openai/deployments/[^/]+", "/openai/v1", path)
        assert url.startswith(BASES[service] + "/")
        assert urlsplit(url).path == path or path in OTHER_PATHS, exchange.name
        is_lenient = exchange.is_lenient
        assert not validators.problems(exchange.wire, request.body, lenient=is_lenient)
        assert read == outcome(judges[exchange.wire], exchange), exchange.name
        assert request.headers["authorization"] == f"Bearer {CANARY}"


# Keys


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
@pytest.mark.parametrize("host", hosts.KEYS)
def test_the_key_of_a_service_is_in_its_own_variable(vendor, host, monkeypatch):
    """So that no other service's is sent to it where both are set."""
    usual = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}[vendor]
    url = f"https://{'acme.' if host.count('.') < 2 else ''}{host}/v1"

    def key():
        provider = open_provider(f"{vendor}:x", base_url=url)
        found = run(provider._credentials.read(vendor))
        return found and found.reveal()

    monkeypatch.setenv(usual, "sk-usual")
    assert key() == "sk-usual"  # as programs do that know no other
    monkeypatch.setenv(hosts.KEYS[host], CANARY)
    assert key() == CANARY


def test_a_missing_key_names_the_variable_of_the_service():
    provider = open_provider("openai:x", base_url="https://api.groq.com/openai/v1")

    with pytest.raises(AuthError, match="set GROQ_API_KEY or OPENAI_API_KEY"):
        run(provider.complete(ASKED))


@pytest.mark.parametrize(
    "host", ["evilopenrouter.ai", "openrouter.ai.evil.example", "notapi.groq.com", "x.example"]
)
def test_a_host_that_only_looks_like_a_service_is_none(host):
    url = f"https://{host}/v1"

    assert hosts.key_variables(url, ("A",)) == ("A",)
    assert openai_chat_dialect.dialect_of(url) == openai_chat_dialect.UNKNOWN
    assert anthropic_dialect.dialect_of(url) == CLAUDE


# Anthropic's wire, elsewhere

CLAUDES = {
    "api.anthropic.com": "https://api.anthropic.com",
    "openrouter.ai": "https://openrouter.ai/api",
    "ai-gateway.vercel.sh": "https://ai-gateway.vercel.sh",
    "api.deepseek.com": "https://api.deepseek.com/anthropic",
    "api.moonshot.ai": "https://api.moonshot.ai/anthropic",
    "api.moonshot.cn": "https://api.moonshot.cn/anthropic",
    "api.kimi.com": "https://api.kimi.com/coding",
    "api.minimax.io": "https://api.minimax.io/anthropic",
    "api.minimaxi.com": "https://api.minimaxi.com/anthropic",
    "api.z.ai": "https://api.z.ai/api/anthropic",
    "open.bigmodel.cn": "https://open.bigmodel.cn/api/anthropic",
    "aliyuncs.com": "https://dashscope-intl.aliyuncs.com/apps/anthropic",
}
MODEL = "some-model"


def test_every_service_of_the_table_is_tried():
    assert CLAUDES.keys() == anthropic_dialect.HOSTS.keys()


def claude(host, answers, body, **options):
    """`body(provider)` with a provider of this service; and what was asked, and where."""

    async def main():
        async with (
            Loopback(*answers) as server,
            rerouted(server.url) as (client, wanted),
            open_provider(
                f"anthropic:{MODEL}",
                base_url=CLAUDES[host],
                client=client,
                api_key=CANARY,
                tries_max=1,
                **options,
            ) as provider,
        ):
            return await body(provider), server.requests, wanted

    return run(main())


TALKER = TALK["anthropic"]
STREAM = chunked(joined(TALKER.events(ANSWER)))


@pytest.mark.parametrize("host", CLAUDES)
def test_a_service_that_speaks_anthropics_wire_works_by_its_base_url(host):
    """With the key in the header it wants; breakpoints only where they are of use."""
    dialect = anthropic_dialect.HOSTS[host]

    async def body(provider):
        return await provider.complete(ASKED, "Be brief." * 900, on_chunk=str)

    response, (asked,), (url,) = claude(host, [STREAM], body)

    assert response.text == SAID and response.message.model == f"anthropic:{MODEL}"
    assert url == f"{CLAUDES[host]}/v1/messages"
    found = {name for name, value in asked.headers.items() if CANARY in value}
    assert found == {"authorization" if dialect.is_bearer else "x-api-key"}
    assert not validators.problems("anthropic", asked.json)
    assert (b"cache_control" in asked.body) == dialect.has_cache


@pytest.mark.parametrize("host", CLAUDES)
def test_tokens_are_counted_here_where_a_service_does_not_count(host):
    async def body(provider):
        return await provider.count_tokens(ASKED)

    count, requests, _ = claude(host, [whole({"input_tokens": 1234})], body)

    if anthropic_dialect.HOSTS[host].has_count:
        assert count == 1234 and requests[0].path == "/v1/messages/count_tokens"
    else:
        assert 1 < count < 30 and requests == []


@pytest.mark.parametrize("status", [404, 405, 501])
def test_a_server_that_does_not_know_the_question_counts_nothing(status):
    """Which is no error, unless it is Anthropic's own."""

    async def main(**options):
        refused = whole({"error": {"message": "not found"}}, status=status)
        async with Loopback(refused) as server, rerouted(server.url) as (client, _):
            at = {"base_url": server.url} if not options else {"client": client, **options}
            async with open_provider(f"anthropic:{MODEL}", tries_max=1, **at) as provider:
                counts = {await provider.count_tokens(ASKED) for _ in range(3)}
                return counts.pop(), len(server.requests)

    count, asked = run(main())
    assert 1 < count < 30 and asked == 1
    with pytest.raises(ProviderError):
        run(main(base_url="https://api.anthropic.com", api_key=CANARY))


def test_any_other_failure_to_count_is_an_error():
    async def main():
        async with (
            Loopback(whole({}, status=503)) as server,
            open_provider("anthropic:x", base_url=server.url, tries_max=1) as provider,
        ):
            await provider.count_tokens(ASKED)

    with pytest.raises(Overloaded):
        run(main())


def sent_to(host, *said, **options):
    async def body(provider):
        await provider.complete(said)

    _, (asked,), _ = claude(host, [whole(TALKER.document(ANSWER))], body, **options)
    return asked.json


@pytest.mark.parametrize("host", CLAUDES)
def test_thinking_that_nobody_signed_goes_back_where_nobody_signs(host):
    """In a tool loop some of them refuse a request without it; Anthropic refuses it with it."""
    call = ToolCall(id="c1", name="look", arguments="{}")
    own = f"anthropic:{MODEL}"
    thought = Message.assistant([Thinking("hm"), Text("Let me.")], [call], model=own)
    signed = Message.assistant([Thinking("oh", "c2ln"), Text("So.")], model=own)
    said = [*ASKED, thought, Message.tool("seen", "c1"), signed, Message.user("And?")]

    messages = sent_to(host, *said)["messages"]

    blocks = [block for each in messages for block in each["content"]]
    found = [(b["thinking"], b["signature"]) for b in blocks if b["type"] == "thinking"]
    unsigned = [] if anthropic_dialect.HOSTS[host].signs else [("hm", "")]
    assert found == [*unsigned, ("oh", "c2ln")]


def test_pictures_are_named_to_a_service_that_takes_none():
    picture = Message.user([Text("See."), Image(data=PNG, media_type="image/png")])

    told = sent_to("api.deepseek.com", picture)["messages"][0]["content"]

    assert [block["type"] for block in told] == ["text", "text"] and "image" in told[1]["text"]
    assert sent_to("api.z.ai", picture)["messages"][0]["content"][1]["type"] == "image"


def test_whoever_knows_better_decides():
    system = "Be brief. " * 900

    async def body(provider):
        return await provider.complete(ASKED, system)

    answers = [whole(TALKER.document(ANSWER))]
    _, (marked,), _ = claude("api.z.ai", answers, body, cache=True)
    _, (plain,), _ = claude("openrouter.ai", answers, body, cache=False)
    _, (own,), _ = claude("api.z.ai", answers, body, dialect=CLAUDE)

    assert b"cache_control" in marked.body and b"cache_control" not in plain.body
    assert b"cache_control" in own.body and own.headers["x-api-key"] == CANARY


# The page


def quirks(dialect, usual, words):
    """What is special about a dialect, in words."""
    differs = [name for name in dialect._fields if getattr(dialect, name) != getattr(usual, name)]
    unsaid = [name for name in differs if (name, getattr(dialect, name)) not in words]
    assert unsaid == [], "a quirk that the page has no words for"
    return ", ".join(words[name, getattr(dialect, name)] for name in differs)


CHAT_WORDS = {
    ("max_tokens", "max_completion_tokens"): "`max_completion_tokens`",
    ("has_file_urls", True): "documents by their address",
    ("call_id", SHORT_ID): "call ids of 40 characters",
    ("call_id", NINE_LETTERS): "call ids of nine letters",
    ("call_id", LONG_ID): "call ids of 128 characters",
    ("thinking", "never"): "thinking does not go back",
    ("thinking", "calls"): "thinking goes back with calls",
    ("no_thinking", ""): "a message with calls always has thinking",
    ("no_thinking", " "): "a message with calls always has thinking",
    ("effort", "reasoning"): "thinking by `reasoning`",
    ("effort", "thinking"): "thinking on or off",
    ("effort", "enable_thinking"): "thinking on or off, and a budget",
    ("is_openai", True): "settings by the name of the model",
    ("has_usage_option", False): "`stream_options` is not sent",
    ("has_schema", False): "schemas are told in words",
    ("has_parts", False): "one text a message",
    ("has_images", False): "no pictures",
    ("has_files", True): "documents and sound",
    ("has_names", True): "names of participants",
    ("has_cache_key", True): "`prompt_cache_key`",
    ("has_system_role", False): "system messages first",
    ("last_is_user", True): "the user has the last word",
    ("alternates", True): "user and assistant take turns",
    ("joins_choices", True): "choices are one answer",
    ("ends", "usage"): "a stream may end without `[DONE]`",
}
CLAUDE_WORDS = {
    ("is_bearer", True): "the key as a bearer's token",
    ("has_cache", False): "no breakpoints",
    ("has_count", False): "tokens counted here",
    ("has_media", False): "no pictures or documents",
    ("signs", False): "thinking goes back unsigned",
}


def rows(title):
    """The rows of the table under a heading of the page."""
    section = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    found = [line.strip("|").split("|") for line in section.splitlines() if line[:3] == "| `"]
    return {row[0].strip().strip("`"): [cell.strip() for cell in row[1:]] for row in found}


def expected(table, usual, words):
    keys = {host: f"`{hosts.KEYS[host]}`" if host in hosts.KEYS else "" for host in table}
    return {host: [keys[host], quirks(d, usual, words)] for host, d in table.items()}


def test_the_page_tells_how_each_service_differs_in_chat_completions():
    """The table of the page is that of the code; the last row is any other server."""
    table = {**openai_chat_dialect.HOSTS, "any other": openai_chat_dialect.UNKNOWN}

    assert rows("Chat Completions") == expected(table, Dialect(), CHAT_WORDS)


def test_the_page_tells_how_each_service_differs_in_the_messages_api():
    table = {**anthropic_dialect.HOSTS, "any other": CLAUDE}

    assert rows("The Messages API") == expected(table, AnthropicDialect(), CLAUDE_WORDS)
