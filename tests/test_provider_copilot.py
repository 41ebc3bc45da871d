"""Copilot: the token that is had for the user's own, and what differs there from OpenAI's wires."""

import asyncio
import json
import time

import pytest

from bad_inputs import run
from faults.test_f08_garbage import BODIES
from github_server import (
    EXPIRED,
    OAUTH,
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
from holdfast.cancel import CancelToken
from holdfast.errors import (
    AuthError,
    Cancelled,
    ConnectionFailed,
    Overloaded,
    ProtocolError,
    ProviderError,
)
from holdfast.messages import Message, ToolCall
from holdfast.parts import Image, Text, Thinking
from holdfast.providers import open_provider
from holdfast.providers.address import Address
from holdfast.providers.github_copilot import TOKEN_URL
from holdfast.providers.github_token import CopilotToken
from holdfast.providers.pipe import Timeouts
from holdfast.settings import Settings
from loopback import Loopback, in_turn, whole
from rerouted import rerouted
from test_provider_github import called

ASKED = [Message.user("Hello.")]


# The token


@pytest.mark.parametrize(
    ("model", "answer", "path", "bare"),
    [
        ("openai/gpt-4.1", chat(), "/chat/completions", "gpt-4.1"),
        ("claude-sonnet-4.5", chat(), "/chat/completions", "claude-sonnet-4.5"),
        ("openai/gpt-5.1-codex", item(), "/responses", "gpt-5.1-codex"),
        ("gpt-5-Codex-mini", item(), "/responses", "gpt-5-Codex-mini"),
    ],
)
def test_copilot_is_asked_with_its_own_token_and_headers(model, answer, path, bare):
    """S2-98: where, with which headers and name; the user's own token goes to GitHub alone."""
    response, github = called(copilot, answer, model=model)
    asked = github.asked[0]

    assert response.text == "Hello." and response.message.model == f"github:{model}"
    assert (asked.method, asked.path, asked.json["model"]) == ("POST", path, bare)
    assert asked.headers["authorization"] == "Bearer tid=7;n=1;canary"
    assert asked.headers["copilot-integration-id"] == "vscode-chat"
    assert asked.headers["editor-version"] and asked.headers["editor-plugin-version"]
    assert OAUTH not in f"{asked.headers}{asked.body}"


def test_a_caller_may_name_another_editor():
    _, github = called(copilot, options={"headers": {"Editor-Version": "vim/9.1"}})

    assert github.asked[0].headers["editor-version"] == "vim/9.1"


def test_an_answer_may_take_two_minutes_to_come():
    """S2-98; other services are given five."""
    provider = open_provider("github:gpt-4.1", path="copilot")
    patient = open_provider("github:gpt-4.1", path="copilot", timeout=500)

    assert provider._pipe.timeouts == Timeouts(idle=120.0)
    assert patient._pipe.timeouts.total == 500


def test_a_refused_token_is_had_anew_and_the_call_repeated_once():
    """S2-98: with the same bytes; nobody hears of it."""
    heard, waits = [], []

    async def main():
        stream = events({"content": "Hel"}, {"content": "lo."})
        async with asking(copilot, stream) as (provider, github):
            await provider.complete(ASKED)
            github.revoke()
            response = await provider.complete(
                ASKED, on_chunk=heard.append, on_retry=lambda *facts: waits.append(facts)
            )
            return response, github

    response, github = run(main())
    posted = [asked for asked in github.server.requests if asked.method == "POST"]

    assert response.text == "Hello." and heard == ["Hel", "lo."] and waits == []
    assert github.exchanges == 2
    used = [asked.headers["authorization"] for asked in posted]
    assert used == ["Bearer tid=7;n=1;canary"] * 2 + ["Bearer tid=7;n=2;canary"]
    assert posted[1].body == posted[2].body


def test_a_token_that_is_refused_again_is_an_error_after_one_repetition():
    """S2-98: once, and not for ever."""
    always = whole(EXPIRED, status=401, kind="text/plain")

    error, github = called(copilot, always, options={"tries_max": 5})

    assert type(error) is AuthError and "token expired" in str(error) and error.status == 401
    assert len(github.asked) == 2 and github.exchanges == 2


def test_a_list_of_models_is_asked_for_again_as_well():
    async def main():
        async with asking(copilot) as (provider, github):
            await provider.list_models()
            github.revoke()
            return await provider.list_models("gpt"), github.exchanges

    assert run(main()) == (("gpt-4.1",), 2)


def test_no_other_refusal_asks_for_a_new_token():
    error, github = called(copilot, refusal("no access", 403))

    assert type(error) is AuthError and github.exchanges == 1 and len(github.asked) == 1


def test_calls_at_the_same_time_share_one_exchange():
    async def main():
        async with asking(copilot) as (provider, github):
            await asyncio.gather(*(provider.complete(ASKED) for _ in range(20)))
            github.revoke()
            await asyncio.gather(*(provider.complete(ASKED) for _ in range(20)))
            return github.exchanges

    assert run(main()) == 2


def test_one_provider_serves_one_loop_after_the_other():
    github = GitHub()
    made = []

    async def main():
        async with Loopback(github) as server:
            if not made:
                made.append(copilot(server))
            made[0].address = Address(server.url)
            await asyncio.gather(*(made[0].complete(ASKED) for _ in range(3)))
            await made[0].close()

    for _ in range(3):
        run(main())

    assert github.exchanges == 1 and len(github.asked) == 9


@pytest.mark.parametrize(
    ("said", "good_for_s"),
    [
        ({"refresh_in": 1500, "expires_at": 0}, 1500),
        ({"expires_at": 1800}, 1500),
        ({"refresh_in": 0, "expires_at": 1800}, 1500),
        ({"refresh_in": "soon", "expires_at": None}, 1500),
        ({"expires_at": -100_000}, 60),
        ({}, 1500),
    ],
)
def test_a_token_is_had_anew_before_it_expires(said, good_for_s):
    """S2-98: when GitHub says to, or some minutes before its end; a clock that is wrong does not
    make every call an exchange."""
    if said.get("expires_at"):
        said = said | {"expires_at": int(time.time()) + said["expires_at"]}
    now, fetched = [1000.0], []

    async def fetch():
        fetched.append(now[0])
        return {"token": f"t{len(fetched)}", **said}

    token = CopilotToken(fetch, clock=lambda: now[0])

    async def read_at(seconds):
        now[0] = 1000 + seconds
        return (await token.read()).reveal()

    async def main():
        at = (0, good_for_s - 5, good_for_s + 5, good_for_s + 10)
        return [await read_at(seconds) for seconds in at]

    assert run(main()) == ["t1", "t1", "t2", "t2"]


def test_only_the_refused_token_is_dropped():
    """Two calls hear of it; the second finds the new one there already."""
    count = []

    async def fetch():
        count.append(1)
        return {"token": f"t{len(count)}"}

    async def main():
        token = CopilotToken(fetch)
        old = await token.read()
        token.drop(old)
        await token.read()
        token.drop(old)
        return (await token.read()).reveal(), len(count)

    assert run(main()) == ("t2", 2)


EXCHANGES = {
    "wrong": (whole({"message": "Bad credentials"}, status=401), AuthError, "sign in"),
    "no seat": (whole({"message": "No access to Copilot"}, status=403), AuthError, "sign in"),
    "a PAT": (whole({"message": "Not Found"}, status=404), AuthError, "sign in"),
    "no token": (whole({"expires_at": 5}), AuthError, "sign in"),
    "another type": (whole({"token": ["t"]}), AuthError, "sign in"),
    "two lines": (whole({"token": "a\nb: c"}), AuthError, "no header"),
    "no JSON": (whole(b"<html></html>", kind="text/html"), ProtocolError, "a web page"),
    "down": (refusal("down", 503), Overloaded, "down"),
    "gone": (in_turn(then="reset"), ConnectionFailed, "broke"),
    "away": (whole(b"", status=302, location="http://evil.example/"), ProtocolError, "redirect"),
}


@pytest.mark.parametrize("case", EXCHANGES)
def test_an_exchange_that_fails_is_a_typed_error_and_nothing_is_asked(case):
    """The way out is to sign in again where no token is given; nothing secret is told."""
    answer, kind, words = EXCHANGES[case]

    async def main():
        async with Loopback(answer) as server, copilot(server) as provider:
            with pytest.raises(kind, match=words) as caught:
                await provider.complete(ASKED)
            return caught.value, [asked.path for asked in server.requests]

    error, paths = run(main())

    assert paths == ["/token"] and error.provider == "github"
    assert "canary" not in f"{error} {error!r} {error.args}"


def test_an_exchange_that_fails_is_tried_five_times_as_every_call(monkeypatch):
    """S2-98, promise 11: and not five times in each try of the call."""
    monkeypatch.setattr("holdfast.providers.retries.FIRST_BOUND_S", 0.01)
    tries = []

    async def main():
        down = refusal("down", 503)
        async with Loopback(down) as server, copilot(server, tries_max=5) as provider:
            with pytest.raises(Overloaded):
                await provider.complete(ASKED, on_retry=lambda *_: tries.append(len(tries)))
            return len(server.requests)

    assert run(main()) == 5 and len(tries) == 4


def test_an_exchange_that_fails_fails_for_all_who_wait_for_it():
    """They do not try one after the other."""

    async def main():
        down = in_turn(refusal("down", 503), pause_s=0.1)
        async with Loopback(down) as server, copilot(server) as provider:
            asked = (provider.complete(ASKED) for _ in range(10))
            errors = await asyncio.gather(*asked, return_exceptions=True)
            return {type(each) for each in errors}, len(server.requests)

    assert run(main()) == ({Overloaded}, 1)


@pytest.mark.parametrize("case", BODIES)
def test_garbage_instead_of_a_token_is_a_typed_error(case):
    """F08, for what comes before a call."""

    async def main():
        async with Loopback(BODIES[case]) as server, copilot(server) as provider:
            with pytest.raises(ProviderError) as caught:
                await provider.complete(ASKED)
            return type(caught.value)

    assert run(main()) in (AuthError, ProtocolError, ConnectionFailed, Overloaded)


def test_an_exchange_that_falls_silent_is_an_error_at_the_limit():
    """F09: also when the token is renewed in the middle of a call."""
    limits = Timeouts(connect=1.0, idle=0.3, total=5.0)

    async def main():
        async with asking(copilot, timeout=limits) as (provider, github):
            await provider.complete(ASKED)
            github.revoke()
            github._exchange = lambda _: in_turn(then="hang")
            started = time.monotonic()
            with pytest.raises(ConnectionFailed, match="idle limit"):
                await provider.complete(ASKED)
            return time.monotonic() - started

    assert run(main()) < 1.3


def test_an_exchange_that_hangs_hears_a_cancel():
    async def main():
        async with Loopback(in_turn(then="hang")) as server, copilot(server) as provider:
            token = CancelToken()
            asyncio.get_running_loop().call_later(0.1, token.cancel)
            started = time.monotonic()
            with pytest.raises(Cancelled):
                await provider.complete(ASKED, cancel_token=token)
            return time.monotonic() - started

    assert run(main()) < 1.1


def test_an_exchange_that_hangs_when_the_token_is_renewed_hears_a_cancel():
    async def main():
        async with asking(copilot) as (provider, github):
            await provider.complete(ASKED)
            github.revoke()
            hang = in_turn(then="hang")
            github._exchange = lambda _: hang
            token = CancelToken()
            asyncio.get_running_loop().call_later(0.1, token.cancel)
            with pytest.raises(Cancelled):
                await provider.complete(ASKED, cancel_token=token)

    run(main())


def test_the_token_file_is_read_at_each_exchange(tmp_path):
    """Who signs in again need not start the program again; a file that others can read is not
    read at all."""
    path = tmp_path / "apps.json"
    path.write_text(json.dumps({"github.com:Iv1.x": {"oauth_token": "gho_old"}}))
    path.chmod(0o600)

    async def main():
        async with asking(copilot, api_key=None, token_file=path) as (provider, github):
            with pytest.raises(AuthError, match="Bad credentials"):
                await provider.complete(ASKED)
            path.write_text(json.dumps({"github.com:Iv1.x": {"oauth_token": OAUTH}}))
            await provider.complete(ASKED)
            path.chmod(0o644)
            await provider.complete(ASKED)  # it is not needed yet
            github.revoke()
            with pytest.raises(AuthError, match="chmod 600"):
                await provider.complete(ASKED)
            return github.exchanges

    assert run(main()) == 1


# Where Copilot is


def wanted(api, **options):
    """Where two calls go to whose token says that Copilot is at `api`."""

    async def main():
        async with (
            Loopback(GitHub(document={"endpoints": {"api": api}})) as server,
            rerouted(server.url, paths={TOKEN_URL: "/token"}) as (client, found),
        ):
            given = {"path": "copilot", "api_key": OAUTH, "client": client} | options
            provider = open_provider("github:gpt-4.1", **given)
            await provider.complete(ASKED)
            await provider.complete(ASKED)
            return found

    return run(main())


def test_copilot_is_asked_where_github_says_that_it_is():
    """A token of a company is refused elsewhere ("421 Misdirected Request")."""
    assert wanted("https://api.business.githubcopilot.com") == [
        "https://api.github.com/copilot_internal/v2/token",
        *["https://api.business.githubcopilot.com/chat/completions"] * 2,
    ]


@pytest.mark.parametrize(
    "api",
    [
        *("https://evil.example", "https://githubcopilot.com.evil.example", 5, None, "", "x"),
        *("http://api.business.githubcopilot.com", "https://evilgithubcopilot.com", "https://["),
    ],
)
def test_a_token_goes_nowhere_but_to_githubs(api):
    """S2-98: else it is the usual address."""
    assert set(wanted(api)[1:]) == {"https://api.githubcopilot.com/chat/completions"}


def test_an_address_of_the_caller_stands():
    at = wanted("https://api.business.githubcopilot.com", base_url="https://proxy.example/copilot")

    assert at[1] == "https://proxy.example/copilot/chat/completions"


def test_a_proxy_on_this_machine_needs_no_token():
    """As any server on this machine: it may have a token of its own."""

    async def main():
        async with Loopback(chat()) as server, copilot(server, api_key=None) as provider:
            await provider.complete(ASKED)
            return [(asked.path, "authorization" in asked.headers) for asked in server.requests]

    assert run(main()) == [("/chat/completions", False)]


# What differs on the wire


def headers_for(*said, **more):
    _, github = called(copilot, said=list(said), **more)
    return github.asked[0].headers


@pytest.mark.parametrize("model", ["gpt-4.1", "gpt-5-codex"])
def test_who_set_a_call_off_is_told(model):
    """What only brings results is not billed as a request of the user's."""
    call = ToolCall(id="c1", name="look", arguments="{}")
    went = [*ASKED, Message.assistant(None, [call]), Message.tool("seen", "c1")]
    noted = Message.user("[go on]", synthetic="nudge")
    more = {"model": model}

    assert headers_for(*ASKED, **more)["x-initiator"] == "user"
    assert headers_for(*went, Message.user("And?"), **more)["x-initiator"] == "user"
    assert headers_for(*went, **more)["x-initiator"] == "agent"
    assert headers_for(*ASKED, noted, **more)["x-initiator"] == "agent"


@pytest.mark.parametrize("model", ["gpt-4.1", "gpt-5-codex"])
def test_pictures_are_announced(model):
    picture = Message.user([Text("See."), Image(data=b"\x89PNG\r\n\x1a\n", media_type="image/png")])

    assert "copilot-vision-request" not in headers_for(*ASKED, model=model)
    assert headers_for(*ASKED, picture, model=model)["copilot-vision-request"] == "true"


def test_an_assistant_speaks_in_one_text():
    """A list of parts of an assistant's is refused there."""
    said = [*ASKED, Message.assistant([Text("a"), Text("b")]), Message.user("c")]

    _, github = called(copilot, said=said)

    assert github.asked[0].json["messages"][1]["content"] == "a\n\nb"


def choice(index, reason="tool_calls", **message):
    return {"index": index, "finish_reason": reason, "message": {"role": "assistant", **message}}


def call_of(id):
    return {"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}}


def test_an_answer_that_comes_in_several_choices_is_one():
    """Claude's: the words in one, each call in another; else the calls would be lost."""
    choices = [
        choice(0, content="Let me look."),
        choice(1, tool_calls=[call_of("toolu_1")]),
        choice(2, tool_calls=[call_of("toolu_2")]),
    ]

    response, _ = called(copilot, whole(document() | {"choices": choices}))

    assert response.text == "Let me look." and response.stop == "tool_use"
    assert [call.id for call in response.calls] == ["toolu_1", "toolu_2"]
    assert "choices" not in response.extra


def test_choices_that_were_asked_for_are_told_apart():
    """They have words of their own."""
    choices = [choice(0, "stop", content="One."), choice(1, "stop", content="Another.")]
    settings = Settings(extra={"github": {"n": 2}})

    response, _ = called(copilot, whole(document() | {"choices": choices}), settings=settings)

    assert response.text == "One."
    assert response.extra["choices"][0]["message"]["content"] == "Another."


def test_a_stream_that_comes_in_several_choices_is_one():
    def piece(index, **delta):
        return {"choices": [{"index": index, "delta": delta, "finish_reason": None}]}

    calls = [{"index": 0, **call_of(f"toolu_{n}")} for n in (1, 2)]
    pieces = [piece(0, content="Let me look."), *(piece(0, tool_calls=[c]) for c in calls[:1])]
    pieces.append(piece(1, tool_calls=[calls[1]]))
    pieces.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    data = "".join(f"data: {json.dumps(each)}\n\n" for each in pieces) + "data: [DONE]\n\n"

    response, _ = called(copilot, whole(data.encode(), kind="text/event-stream"), on_chunk=str)

    assert [call.id for call in response.calls] == ["toolu_1", "toolu_2"]


THOUGHT = {"content": None, "reasoning_text": "I look it up."}
SEAL = {"reasoning_opaque": "c2VhbGVk"}
TALK = {
    "whole": document() | {"choices": [choice(0, "stop", **THOUGHT | SEAL | {"content": "Hi."})]},
    "sealed at once": [{"reasoning_text": "I look "}, {"reasoning_text": "it up.", **SEAL}],
    "sealed apart": [{"reasoning_text": "I look it up."}, SEAL],
    "sealed with the words": [{"reasoning_text": "I look it up."}, {"content": "Hi", **SEAL}],
    "sealed at the end": [{"reasoning_text": "I look it up."}, {"content": "Hi."}, SEAL],
}


@pytest.mark.parametrize("case", TALK)
def test_thinking_goes_back_with_its_seal(case):
    """The words alone are refused ("Invalid signature in thinking block"), and Gemini loses its
    thread without the seal."""
    answer = TALK[case]
    said_all = isinstance(answer, dict) or any(
        "." in (each.get("content") or "") for each in answer
    )
    if isinstance(answer, list):
        answer = events(*answer, *([] if said_all else [{"content": "."}]))
        more = {"on_chunk": str}
    else:
        answer, more = whole(answer), {}

    response, _ = called(copilot, answer, **more)
    _, github = called(copilot, said=[*ASKED, response.message, Message.user("Go on.")])

    back = github.asked[0].json["messages"][1]
    assert response.thinking == "I look it up."
    assert (back["reasoning_text"], back["reasoning_opaque"]) == ("I look it up.", "c2VhbGVk")
    assert back["content"] == response.text


def test_thinking_without_a_seal_or_of_another_model_does_not_go_back():
    response, _ = called(
        copilot, events({"reasoning_text": "hm"}, {"content": "Hi."}), on_chunk=str
    )
    other = Thinking("hm", signature="x", extra={"field": "reasoning_text"})
    strange = Message.assistant([other, Text("Hi.")], model="github:another")

    for message in (response.message, strange):
        _, github = called(copilot, said=[*ASKED, message, Message.user("Go on.")])

        assert (
            not {"reasoning_text", "reasoning_opaque"} & github.asked[0].json["messages"][1].keys()
        )


@pytest.mark.parametrize(
    ("thinking", "model", "field", "value"),
    [
        ("low", "claude-sonnet-4.5", "thinking_budget", 2_048),
        ("high", "claude-sonnet-4.5", "thinking_budget", 16_384),
        (4_000, "claude-sonnet-4.5", "thinking_budget", 4_000),
        (10, "claude-sonnet-4.5", "thinking_budget", 1_024),
        ("low", "openai/gpt-5-mini", "reasoning_effort", "low"),
        ("off", "claude-sonnet-4.5", None, None),
        ("low", "openai/gpt-4.1", None, None),
    ],
)
def test_how_hard_to_think_is_said_as_the_model_knows_it(thinking, model, field, value):
    _, github = called(copilot, model=model, settings=Settings(thinking=thinking))
    body = github.asked[0].json

    assert {n: body[n] for n in ("thinking_budget", "reasoning_effort") if n in body} == (
        {} if field is None else {field: value}
    )


def test_reasoning_of_codex_goes_back_without_the_id_that_copilot_does_not_take():
    """It gives ids of 400 letters, another in each event, and takes 64; without one it finds what
    it has sealed."""
    long = "x" * 408
    reasoning = {"type": "reasoning", "summary": [], "encrypted_content": "c2VhbGVk", "id": long}
    call = {"type": "function_call", "id": long[::-1], "call_id": "call_1", "name": "look"}
    output = [reasoning, call | {"arguments": "{}"}]
    answer = whole({"id": "r", "status": "completed", "output": output})

    response, _ = called(copilot, answer, model="gpt-5-codex")
    said = [*ASKED, response.message, Message.tool("seen", "call_1")]
    _, github = called(copilot, item(), said=said, model="gpt-5-codex")

    back = github.asked[0].json["input"]
    assert [each.get("type") for each in back[1:]] == [
        *("reasoning", "function_call", "function_call_output"),
    ]
    assert back[1]["encrypted_content"] == "c2VhbGVk"
    assert all("id" not in each for each in back)


def test_a_conversation_that_began_on_one_path_goes_on_on_the_other():
    """Both have the model under one name; what only one of them can read is left out."""
    sealed = events({"reasoning_text": "hm", **SEAL}, {"content": "Hi."})
    response, _ = called(copilot, sealed, on_chunk=str)

    _, github = called(models, said=[*ASKED, response.message, Message.user("Go on.")])

    assert github.asked[0].json["messages"][1] == {"role": "assistant", "content": "Hi."}


def test_kept_connections_are_of_use_after_an_exchange():
    """The exchange and the calls share one client."""

    async def main():
        async with asking(copilot) as (provider, github):
            for _ in range(3):
                await provider.complete(ASKED)
            return github.server.connections

    assert run(main()) == 1
