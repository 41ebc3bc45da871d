"""`github:` on both of its paths: who is asked, what is asked and answered, how much fits."""

from contextlib import asynccontextmanager

import pytest

import holdfast
from bad_inputs import run
from github_server import (
    CATALOGUE,
    OAUTH,
    PAT,
    GitHub,
    asking,
    chat,
    copilot,
    document,
    events,
    item,
    models,
    refusal,
)
from holdfast.errors import (
    AuthError,
    ConnectionFailed,
    ContextOverflow,
    DoesNotFit,
    InvalidInput,
    InvalidRequest,
    Overloaded,
    RateLimited,
)
from holdfast.events import Folded
from holdfast.messages import Message, Stop, ToolCall
from holdfast.parts import Image, Text
from holdfast.providers import open_provider
from holdfast.providers.github_shared import FILE_VARIABLE
from holdfast.settings import Settings
from holdfast.testing import validators
from loopback import Loopback, in_turn, whole
from sessions_for_tests import asynchronous, events_of, messages, talking, tool_of

ASKED = [Message.user("Hello.")]
PNG = b"\x89PNG\r\n\x1a\n...."
LOOK = tool_of("look")
PATHS = {"models": models, "copilot": copilot}
# Where each path is asked, and the same through the other of OpenAI's APIs.
WAYS = {
    "models": (models, "openai/gpt-4.1", "/inference/chat/completions"),
    "copilot": (copilot, "openai/gpt-4.1", "/chat/completions"),
    "codex": (copilot, "gpt-5.1-codex", "/responses"),
}
every_path = pytest.mark.parametrize("path", PATHS)
every_way = pytest.mark.parametrize("way", WAYS)


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch):
    for name in ("GITHUB_TOKEN", FILE_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("holdfast.providers.retries.FIRST_BOUND_S", 0.01)


def called(opened, *answers, said=ASKED, model=None, options=None, **asked):
    """What comes of one call, or its error; and GitHub, which was asked."""

    async def main():
        more = {} if model is None else {"model": model}
        async with asking(opened, *answers, **more, **(options or {})) as (provider, github):
            try:
                return await provider.complete(said, **asked), github
            except Exception as error:
                return error, github

    return run(main())


def sent(opened, *args, **more):
    """The body of one call."""
    _, github = called(opened, *args, **more)
    return github.asked[0].json


# Which path


def opened(**options):
    return open_provider("github:openai/gpt-4.1", **options)


def path_of(provider):
    return {"models.github.ai": "models", "api.githubcopilot.com": "copilot"}[provider.address.host]


@pytest.fixture
def token_file(tmp_path):
    path = tmp_path / "token"
    path.write_text(OAUTH)
    path.chmod(0o600)
    return path


def test_the_path_follows_from_what_there_is_to_sign_in_with(token_file, monkeypatch):
    """S2-97: a key, passed or in the environment, is for GitHub Models; an OAuth token in a file
    is for Copilot, unless a key is passed; an option decides otherwise."""
    assert path_of(opened()) == "models"
    assert path_of(opened(api_key=OAUTH)) == "models"
    assert path_of(opened(api_key=PAT, path="copilot")) == "copilot"
    assert path_of(opened(token_file=token_file)) == "copilot"
    monkeypatch.setenv("GITHUB_TOKEN", PAT)
    assert path_of(opened()) == "models"
    monkeypatch.setenv(FILE_VARIABLE, str(token_file))
    assert path_of(opened()) == "copilot"
    assert path_of(opened(api_key=PAT)) == "models"
    assert path_of(opened(path="models")) == "models"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"path": "azure"}, "is models or copilot"),
        ({"path": "models", "token_file": "x"}, "is for Copilot"),
        ({"api_key": PAT, "token_url": "https://x.example/token"}, "is for Copilot"),
        ({"path": "copilot", "api_key": OAUTH, "token_file": "x"}, "pass one of them"),
        ({"path": "copilot", "token_file": 5}, "is the path of a file"),
        ({"token_file": ""}, "is the path of a file"),
        ({"path": "copilot", "token_url": "https://x.example/?key=a"}, "token_url"),
        ({"path": "copilot", "token": PAT}, "path, prices, .*token_file"),
        ({"tokenfile": PAT}, "token_file"),
    ],
)
def test_options_that_make_no_sense_are_refused_at_once(options, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        opened(**options)

    assert PAT not in str(caught.value)


def test_without_anything_to_sign_in_with_nothing_is_sent():
    for options, way_out in (({}, "GITHUB_TOKEN"), ({"path": "copilot"}, "token_file=")):
        with pytest.raises(AuthError, match=way_out):
            run(opened(**options).complete(ASKED))


def test_a_key_of_the_environment_goes_to_github_models(monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", PAT)

    response, github = called(models, options={"api_key": None})

    assert response.text == "Hello."
    assert github.asked[0].headers["authorization"] == f"Bearer {PAT}"


# What is asked


@every_way
def test_each_path_has_the_whole_conversation_in_every_request(way):
    """S2-96: nothing is kept between calls, by either of the paths: a request is a function of its
    messages, whatever was asked before."""
    opened, model, path = WAYS[way]
    short, long = ASKED, [*ASKED, Message.assistant("Hi."), Message.user("Who am I?")]
    answer = item() if way == "codex" else chat()

    async def main():
        async with asking(opened, answer, model=model) as (provider, github):
            for said in (long, short, long):
                assert (await provider.complete(said, "Be brief.")).text == "Hello."
        return github.asked

    first, other, again = run(main())

    assert [asked.path for asked in (first, other, again)] == [path] * 3
    assert first.body == again.body != other.body
    assert "Who am I?" not in other.body.decode()


def test_the_bodies_are_those_of_chat_completions():
    """S2-99: the system's words first; no content where there are only calls; arguments as text;
    a message for each result. B41: each of several results is sent."""
    calls = [ToolCall(id=f"c{n}", name="look", arguments='{"at": 1}') for n in (1, 2)]
    said = [*ASKED, Message.assistant(None, calls)]
    said += [Message.tool(f"seen {n}", f"c{n}", name="look") for n in (1, 2)]

    for opened in (models, copilot):
        body = sent(opened, said=said, system_instruction="Be brief.", tools=[LOOK])

        told = body["messages"]
        assert [each["role"] for each in told] == ["system", "user", "assistant", "tool", "tool"]
        assert told[2]["content"] is None
        assert [c["function"]["arguments"] for c in told[2]["tool_calls"]] == ['{"at": 1}'] * 2
        assert [(t["tool_call_id"], t["content"]) for t in told[3:]] == [
            ("c1", "seen 1"),
            ("c2", "seen 2"),
        ]
        assert body["tools"][0]["function"]["name"] == "look"


def test_the_bodies_for_codex_are_those_of_the_responses_api():
    """S2-99: instructions, calls and outputs as items, flat tools; nothing is stored there."""
    call = ToolCall(id="c1", name="look", arguments='{"at": 1}')
    said = [*ASKED, Message.assistant(None, [call]), Message.tool("seen", "c1")]

    body = sent(
        copilot,
        item(),
        said=said,
        model="gpt-5-codex",
        system_instruction="Be brief.",
        tools=[LOOK],
        conversation="telegram:1",
    )

    assert body["model"] == "gpt-5-codex" and body["instructions"] == "Be brief."
    assert [each.get("type") for each in body["input"]] == [
        *(None, "function_call", "function_call_output"),
    ]
    assert body["input"][1]["arguments"] == '{"at": 1}'
    assert body["tools"][0]["name"] == "look"
    assert body["store"] is False and "prompt_cache_key" not in body


@every_way
def test_names_are_fitted_and_ours_again_in_the_answer(way):
    """S2-99, B41: by the conversation, so that no other session is told of them."""
    opened, model, _ = WAYS[way]
    long = "look at it, " + "x" * 80
    tool = tool_of(long)
    name = sent(opened, item(), model=model, tools=[tool])["tools"][0]
    name = name.get("function", name)["name"]
    call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": name, "arguments": "{}"}
    answer = chat(None, ("c1", name, "{}"), reason="tool_calls")
    if way == "codex":
        answer = whole({"id": "r", "status": "completed", "output": [call]})

    response, _ = called(opened, answer, model=model, tools=[tool])

    assert len(name) <= 64 and name != long
    assert [each.name for each in response.calls] == [long]


@every_path
def test_pictures_and_schemas_are_sent(path):
    """B41: neither is ignored."""
    said = [Message.user([Text("See."), Image(data=PNG, media_type="image/png")])]
    schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}

    body = sent(PATHS[path], said=said, response_schema=schema)

    assert body["messages"][0]["content"][1]["image_url"]["url"].startswith("data:image/png;base64")
    assert body["response_format"]["json_schema"]["schema"] == schema


@pytest.mark.parametrize(
    ("model", "field"),
    [
        ("openai/gpt-4.1", "max_tokens"),
        ("openai/gpt-5-mini", "max_completion_tokens"),
        ("openai/o4-mini", "max_completion_tokens"),
        ("meta/llama-3.3-70b-instruct", "max_tokens"),
        ("claude-sonnet-4.5", "max_tokens"),
    ],
)
@every_path
def test_the_limit_on_an_answer_is_called_as_the_model_knows_it(path, model, field):
    body = sent(PATHS[path], model=model, settings=Settings(max_tokens=500, temperature=0.5))

    assert {name for name in body if name.startswith("max_")} == {field}
    assert ("temperature" in body) == (field == "max_tokens")


@every_path
def test_fields_of_the_caller_go_into_the_body(path):
    body = sent(PATHS[path], settings=Settings(extra={"github": {"seed": 7}}))

    assert body["seed"] == 7


def test_the_models_of_an_organisation_are_asked_and_listed():
    def acme(server):
        return models(server, base_url=f"{server.url}/orgs/acme/inference")

    async def main():
        async with asking(acme) as (provider, github):
            await provider.complete(ASKED)
            return github.asked[0].path, await provider.list_models("openai/")

    assert run(main()) == ("/orgs/acme/inference/chat/completions", ("openai/gpt-4.1",))


# What comes back


FINISHED = {
    "stop": Stop.STOP,
    "length": Stop.MAX_TOKENS,
    "tool_calls": Stop.TOOL_USE,
    "function_call": Stop.TOOL_USE,
    "content_filter": Stop.SAFETY,
}


@every_path
@pytest.mark.parametrize("reason", FINISHED)
def test_why_an_answer_ended_is_told_in_our_words(path, reason):
    """S2-100."""
    response, _ = called(PATHS[path], chat(reason=reason))

    assert response.stop == FINISHED[reason]
    assert (response.usage.input, response.usage.output) == (11, 7)
    assert response.message.model == "github:openai/gpt-4.1"


@every_path
def test_a_stream_tells_its_calls_whole_and_its_tokens(path):
    """B41: arguments come in pieces, of which only the first has a name; tokens are asked for."""
    pieces = [{"name": "look", "arguments": '{"a'}, {"arguments": 't": "s'}, {"arguments": 'ky"}'}]
    deltas = [{"tool_calls": [{"index": 0, "function": piece}]} for piece in pieces]
    deltas[0]["tool_calls"][0]["id"] = "call_1"
    stream = events({"content": "Let me "}, {"content": "look."}, *deltas, reason="tool_calls")
    heard, told = [], []

    response, github = called(
        PATHS[path], stream, on_chunk=heard.append, on_usage_update=told.append
    )

    assert github.asked[0].json["stream_options"] == {"include_usage": True}
    assert heard == ["Let me ", "look."]
    assert [(c.id, c.name, c.arguments) for c in response.calls] == [
        ("call_1", "look", '{"at": "sky"}')
    ]
    assert told[-1].input == 11 and response.stop == Stop.TOOL_USE


@every_path
def test_a_call_without_an_id_is_given_one(path):
    """S2-99: one of its own, or two calls of a tool would have the same."""
    answer = chat(None, (None, "look", "{}"), (None, "look", "{}"), reason="tool_calls")

    response, _ = called(PATHS[path], answer)

    ids = {call.id for call in response.calls}
    assert len(ids) == 2 and all(id.startswith("call_") for id in ids)


REFUSED = [
    (refusal("Bad credentials", 401, "unauthorized"), AuthError),
    (refusal("No access to model: openai/o3", 403, "no_access"), AuthError),
    (refusal("GitHub Models is disabled for this organization.", 403), AuthError),
    (refusal("Unknown model: openai/gpt-9", 400, "unknown_model"), InvalidRequest),
    (refusal("The requested model is not supported.", 400, "model_not_supported"), InvalidRequest),
    (
        refusal(
            "Rate limit of 15 per 60s exceeded for UserByModelByMinute. Please wait 42 seconds "
            "before retrying.",
            429,
            "RateLimitReached",
        ),
        RateLimited,
    ),
    (refusal("Too large.", 413), ContextOverflow),
    (refusal("Request body too large. Max size: 4000 tokens.", 400), ContextOverflow),
    (refusal("no", 400, "tokens_limit_reached"), ContextOverflow),
    (refusal("no", 400, "context_length_exceeded"), ContextOverflow),
    (refusal("prompt token count of 140499 exceeds the limit of 128000", 400), ContextOverflow),
    (refusal("oops", 500), Overloaded),
    (whole(b"<html><title>502</title></html>", status=502, kind="text/html"), Overloaded),
    (in_turn(then="reset"), ConnectionFailed),
]


@every_path
@pytest.mark.parametrize(("answer", "kind"), REFUSED)
def test_what_github_refuses_for_is_told_by_what_can_be_done(path, answer, kind):
    """S2-100."""
    error, _ = called(PATHS[path], answer)

    assert type(error) is kind, repr(error)
    assert error.provider == "github"


@every_path
def test_what_passes_by_itself_is_tried_again(path):
    """S2-100: 5xx and the network."""
    broken = [refusal("oops", 503, retry_after="0.01"), in_turn(then="reset")]

    response, github = called(PATHS[path], *broken, chat(), options={"tries_max": 5})

    assert response.text == "Hello." and len(github.asked) == 3


@every_path
@pytest.mark.parametrize(
    "words", ["Unknown model: openai/gpt-9", "The requested model is not supported."]
)
def test_a_model_that_is_not_there_leads_to_those_that_are(path, words):
    error, _ = called(PATHS[path], refusal(words, 400))

    assert "list_models()" in str(error)


NOT_FOUND = (
    "Invalid parameter: 'tool_call_id' of 'call_7' not found in 'tool_calls' of previous message."
)


@every_path
@pytest.mark.parametrize("status", [400, 404])
@pytest.mark.parametrize("words", [NOT_FOUND, "tool_call_id call_7 not found"])
def test_a_call_that_is_not_found_is_no_missing_model(path, status, words):
    """S2-100: the request is wrong, and the sentence says in what."""
    error, _ = called(PATHS[path], refusal(words, status))

    assert type(error) is InvalidRequest
    assert error.detail == words


def test_how_long_a_plan_makes_its_user_wait_is_read():
    """S2-100: of a limit by the minute or by the day."""
    error, _ = called(models, REFUSED[5][0])

    assert error.retry_after_s == 42.0


# How long a prompt may be


@every_path
def test_the_window_is_that_of_the_table_before_anything_is_known(path):
    """S2-100: of the table, and else 128,000."""

    async def main():
        async with Loopback(GitHub()) as server:
            known = PATHS[path](server).context_limit
            return known, PATHS[path](server, model="ada/unheard-of").context_limit

    assert run(main()) == (1_047_576, 128_000)


@pytest.mark.parametrize(
    ("path", "model", "limits"),
    [
        ("models", "openai/gpt-4.1", (1_048_576, 32_768)),
        ("models", "microsoft/phi-4", (16_384, 4_096)),
        ("models", "ada/no-limits", (128_000, 4_096)),
        ("copilot", "openai/gpt-4.1", (111_424, 16_384)),
        ("copilot", "claude-sonnet-4.5", (128_000, 16_000)),
    ],
)
@pytest.mark.parametrize("how", ["verify", "list_models"])
def test_the_window_is_that_of_the_catalogue_once_it_was_read(path, model, limits, how):
    """S2-100."""

    async def main():
        async with asking(PATHS[path], model=model) as (provider, _):
            await getattr(provider, how)()
            return provider.context_limit, provider.output_limit

    assert run(main()) == limits


def test_what_the_caller_knows_better_stands():
    async def main():
        async with asking(models, context_limit=20_000, output_limit=100) as (provider, _):
            await provider.verify()
            return provider.context_limit, provider.output_limit

    assert run(main()) == (20_000, 100)


@every_path
def test_the_models_are_listed(path):
    async def main():
        async with asking(PATHS[path]) as (provider, _):
            return await provider.list_models(), await provider.list_models("gpt")

    everything, some = run(main())

    if path == "models":
        assert everything == tuple(sorted(each["id"] for each in CATALOGUE)) and some == ()
    else:  # one is not agreed to
        assert everything == ("claude-sonnet-4.5", "gpt-4.1") and some == ("gpt-4.1",)


@every_path
def test_verify_says_what_is_wrong_with_the_token(path):
    async def main():
        async with asking(PATHS[path], api_key="ghp_wrong") as (provider, _):
            await provider.verify()

    with pytest.raises(AuthError, match="Bad credentials"):
        run(main())


@pytest.mark.parametrize("answer", [b"[1, 2]", b"[[]]", b"[", b'{"data": 5}', b"null", b""])
def test_a_list_of_models_that_is_none_is_a_typed_error(answer):
    async def main():
        async with Loopback(whole(answer)) as server, models(server) as provider:
            await provider.list_models()

    with pytest.raises(holdfast.errors.ProviderError):
        run(main())


@every_path
def test_a_window_that_a_refusal_tells_holds_from_then_on(path):
    """S2-100: the plan allows less than the model can; the option does not make it more."""
    gated = refusal(
        "Request body too large for gpt-4o model. Max size: 8000 tokens.",
        413,
        "tokens_limit_reached",
    )

    async def main():
        answers = (gated, refusal("Too large.", 413))
        async with asking(PATHS[path], *answers, context_limit=100_000) as (provider, _):
            found = []
            for _ in range(2):
                with pytest.raises(ContextOverflow) as caught:
                    await provider.complete(ASKED)
                found.append((caught.value.tokens_max, provider.context_limit))
            await provider.verify()
            return [*found, provider.context_limit]

    assert run(main()) == [(8000, 8000), (None, 8000), 8000]


SAID = "All work and no play makes a dull day. " * 75  # some 700 tokens
READS = tool_of("read", lambda **_: SAID * 4)


@asynccontextmanager
async def small_plan(url, window, *answers, **options):
    """A session whose model takes no more than this, and does not say so before it has to."""
    async with (
        asking(models, *answers, window=window) as (model, github),
        talking(url, model=model, settings=Settings(), **options) as (session, _),
    ):
        yield session, model, github


@asynchronous
async def test_a_turn_on_a_small_plan_gets_through_and_the_next_one_fits_at_once(file_url):
    """The first that is too long is refused once, in GitHub's words; after that the window is
    known, and nothing is refused any more. What was said is in every request."""
    answers = [document(f"Answer {number}.") for number in range(1, 16)]
    async with small_plan(file_url, 8_000, *answers) as (session, model, github):
        heard = []
        for number in range(1, 16):
            await session.send(f"Question {number}? {SAID}", on_event=heard.append)

        assert len(github.refused) == 1 and model.context_limit == 8_000
        assert events_of(Folded, heard)
        at = github.asked.index(github.refused[0]) + 1
        assert f"Question {at}?" in github.asked[at].body.decode()
        said = [message.text for message in await messages(session)]
        assert said[1::2] == [f"Answer {number}." for number in range(1, 16)]


@asynchronous
async def test_a_long_tool_loop_on_a_small_plan_fits_within_the_turn(file_url):
    """What one refusal teaches holds for the rest of the same turn."""
    looks = [document(None, (f"c{n}", "read", "{}"), reason="tool_calls") for n in range(1, 7)]
    answers = (*looks, document("Done."))
    async with small_plan(file_url, 8_000, *answers, tools=[READS]) as (session, _, github):
        result = await session.send("Read it all, please.")

        assert result.text == "Done."
        assert len(github.refused) == 1
        assert not validators.problems("openai-chat", github.asked[-1].json, lenient=True)


@asynchronous
async def test_a_question_that_no_plan_takes_is_told_so(file_url):
    async with small_plan(file_url, 1_000) as (session, model, _):
        with pytest.raises(DoesNotFit):
            await session.send(SAID * 10)

        assert model.context_limit == 1_000 and session.draft.text.startswith("All work")


# What nobody may see


@every_path
def test_no_token_is_in_an_error_or_a_repr(path):
    """Not even where the service repeats it."""
    secrets = {"models": [PAT], "copilot": [OAUTH, "tid=7;n=1;canary"]}[path]
    echo = refusal(f"I do not like {' and '.join(secrets)}.", 400)

    async def main():
        async with asking(PATHS[path], echo) as (provider, _):
            with pytest.raises(InvalidRequest, match="I do not like") as caught:
                await provider.complete(ASKED)
            error = caught.value
            return f"{provider!r} {error} {error!r} {error.args} {vars(provider)!r}"

    assert "canary" not in run(main())
