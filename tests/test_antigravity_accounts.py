"""The accounts of the antigravity vendor: tokens, limits, turns, over a server on loopback."""

import asyncio
import json
import logging
import os
import stat
import time
import traceback
from pathlib import Path

import pytest

import code_assist as double
from bad_inputs import run
from code_assist import Google, held, limited, refusal, says, write
from faults import calls as faulty
from holdfast.cancel import CancelToken
from holdfast.errors import (
    AuthError,
    Cancelled,
    ConnectionFailed,
    InvalidInput,
    InvalidRequest,
    Overloaded,
    ProtocolError,
    RateLimited,
)
from holdfast.messages import Message
from holdfast.providers import open_provider
from holdfast.providers.antigravity import accounts_file
from processes import Script
from sessions_for_tests import until

MODEL = "antigravity:antigravity-gemini-3-flash"
QUOTA = "antigravity:gemini-3-flash"
ASKED = [Message.user("Hello.")]
HELLO = says("Hello.")
ENDED = refusal(503, "The service is currently unavailable.", "UNAVAILABLE")


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    for name in ("ANTIGRAVITY_ACCOUNTS", "ANTIGRAVITY_CLIENT_ID", "ANTIGRAVITY_CLIENT_SECRET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("holdfast.providers.retries.FIRST_BOUND_S", 0.01)


@pytest.fixture
def path(tmp_path):
    return write(tmp_path / "accounts.json", "ada", "bob", "cleo")


def outcome_of(google, path, *, model=MODEL, calls=1, options=None, **more):
    """What comes of calls, one after the other: responses and errors."""

    async def main():
        async with google:
            provider = open_provider(model, **google.options(path, **(options or {})))
            found = []
            for _ in range(calls):
                try:
                    found.append(await provider.complete(ASKED, **more))
                except Exception as error:
                    found.append(error)
            await provider.close()
            return found

    found = run(main())
    return found[0] if calls == 1 else found


def answered(google, path, **more):
    response = outcome_of(google, path, **more)
    assert not isinstance(response, Exception), repr(response)
    return response


def failed(kind, google, path, **more):
    error = outcome_of(google, path, **more)
    assert type(error) is kind, repr(error)
    return error


def with_token(name, expires_in_s, **more):
    entry = {"name": name, "refresh_token": f"refresh-{name}", "project": f"project-{name}"}
    entry |= {"access_token": f"token-{name}-0", "expires_at": time.time() + expires_in_s}
    return entry | more


def knowing(google, *names):
    """The server takes tokens that the file holds already."""
    google.tokens |= {f"token-{name}-0": name for name in names}
    return google


# Tokens


def test_a_token_belongs_to_the_messages_that_are_sent_and_not_to_a_history(path):
    """S2-101: it is asked for by `complete`, once, and nothing of it is in what came of it."""
    google = Google(HELLO)

    first, second = outcome_of(google, path, calls=2)

    assert [each.method for each in google.asked] == ["token", "generateContent", "generateContent"]
    assert google.turns == ["ada", "ada"]
    assert first.text == second.text == "Hello."
    assert "token-ada" not in repr(first) + repr(first.message)


@pytest.mark.parametrize(("left_s", "refreshes"), [(290, 1), (310, 0)])
def test_a_token_is_replaced_300_seconds_before_it_ends(tmp_path, left_s, refreshes):
    """S2-102: and what came instead is kept, with the time of its end."""
    path = write(tmp_path / "accounts.json", with_token("ada", left_s))
    google = knowing(Google(HELLO), "ada")

    answered(google, path)

    assert len(google.of("token")) == refreshes
    if refreshes:
        (form,) = [each.body for each in google.of("token")]
        assert form == {
            "grant_type": "refresh_token",
            "refresh_token": "refresh-ada",
            "client_id": "our-client",
            "client_secret": "hunter2-client",
        }
        kept = held(path)["ada"]
        assert kept["access_token"] == "token-ada-2"
        assert 3590 < kept["expires_at"] - time.time() <= 3600


def test_another_refresh_token_is_kept(path):
    google = Google(HELLO)
    google.token = double.whole(
        {"access_token": "token-ada-9", "expires_in": 3600, "refresh_token": "refresh-new"}
    )
    google.tokens["token-ada-9"] = "ada"

    answered(google, path)

    assert held(path)["ada"]["refresh_token"] == "refresh-new"


def test_calls_at_the_same_time_share_one_refresh(path):
    async def main():
        async with Google(HELLO, delay_s=0.05) as google:
            provider = open_provider(MODEL, **google.options(path))
            answers = await asyncio.gather(*(provider.complete(ASKED) for _ in range(12)))
            await provider.close()
            return [each.text for each in answers], len(google.of("token"))

    assert run(main()) == (["Hello."] * 12, 1)


def test_whoever_refreshes_may_be_cancelled_and_another_goes_on(path):
    """At once; and nothing runs on when nobody waits any more."""

    async def main():
        async with Google(HELLO, delay_s=0.3) as google:
            provider = open_provider(MODEL, **google.options(path))
            tasks = asyncio.all_tasks()
            token = CancelToken()
            first = asyncio.create_task(provider.complete(ASKED, cancel_token=token))
            await until(lambda: google.of("token"))
            second = asyncio.create_task(provider.complete(ASKED))
            await asyncio.sleep(0.05)
            token.cancel()
            with pytest.raises(Cancelled):
                await asyncio.wait_for(first, 0.2)
            text = (await second).text
            together = len(google.of("token"))

            alone = open_provider(MODEL, **google.options(write(path, "dora")))
            third = asyncio.create_task(alone.complete(ASKED))
            await until(lambda: len(google.of("token")) > together)
            third.cancel()
            await asyncio.gather(third, return_exceptions=True)
            left = [each for each in asyncio.all_tasks() - tasks if "serve" not in repr(each)]
            await provider.close()
            await alone.close()
            return text, together, left

    assert run(main()) == ("Hello.", 2, [])


def test_a_refresh_that_fails_fails_for_all_who_waited_for_it(path):
    async def main():
        async with Google(HELLO, delay_s=0.05, token=double.whole({"error": "no"}, 400)) as google:
            provider = open_provider(MODEL, **google.options(path))
            calls = [provider.complete(ASKED) for _ in range(5)]
            errors = await asyncio.gather(*calls, return_exceptions=True)
            await provider.close()
            return errors, len(google.of("token"))

    errors, refreshes = run(main())

    assert [type(each) for each in errors] == [AuthError] * 5 and refreshes == 1
    assert len({id(each) for each in errors}) == 5


def test_a_token_that_another_process_got_is_used(path):
    """It is in the file by then."""

    async def main():
        async with Google(HELLO) as google:
            provider = open_provider(MODEL, **google.options(path))
            await provider.complete(ASKED)
            write(path, with_token("ada", 3600))
            knowing(google, "ada")
            google.refused.add("token-ada-1")
            await provider.complete(ASKED)
            await provider.close()
            return google.turns, len(google.of("token"))

    assert run(main()) == (["ada", "ada"], 1)


def test_a_refusal_of_a_refresh_says_what_to_do(path):
    """Waiting does not mend it, and it is tried once."""
    body = {"error": "invalid_grant", "error_description": "Token has been expired or revoked."}
    google = Google(HELLO, token=double.whole(body, status=400))
    before = path.read_bytes()

    error = failed(AuthError, google, path)

    assert "'ada'" in str(error) and "sign in again" in str(error)
    assert (error.status, error.provider) == (400, "antigravity")
    assert len(google.asked) == 1 and path.read_bytes() == before


def test_a_token_endpoint_that_is_down_is_asked_again_within_the_usual_limits(path):
    """S2-102: its failures are those of a try; no account and no endpoint is changed for them."""
    google = Google(HELLO, token=double.whole({}, status=503))

    failed(Overloaded, google, path)

    assert [each.method for each in google.asked] == ["token"] * 5
    assert "limited_until" not in held(path)["ada"]


@pytest.mark.parametrize(
    "answer",
    [{}, {"access_token": 5}, {"access_token": "a\nb"}, {"access_token": "a", "expires_in": "x"}],
)
def test_an_answer_that_holds_no_token_is_none(path, answer):
    failed(ProtocolError, Google(HELLO, token=double.whole(answer)), path)


def test_the_client_is_the_users_own(tmp_path, monkeypatch):
    """B53: of the file, of the account, or of the environment; none is shipped."""
    without = {"client_id": None, "client_secret": None}
    path = write(tmp_path / "accounts.json", "ada", **without)
    error = failed(AuthError, Google(HELLO), path)
    assert "ANTIGRAVITY_CLIENT_ID" in str(error) and "client_id" in str(error)

    monkeypatch.setenv("ANTIGRAVITY_CLIENT_ID", "env-client")
    monkeypatch.setenv("ANTIGRAVITY_CLIENT_SECRET", "env-secret")
    google = Google(HELLO)
    answered(google, path)
    (form,) = [each.body for each in google.of("token")]
    assert (form["client_id"], form["client_secret"]) == ("env-client", "env-secret")

    entry = {"name": "ada", "refresh_token": "refresh-ada", "project": "p", "client_id": "own"}
    google = Google(HELLO)
    answered(google, write(path, entry))
    (form,) = [each.body for each in google.of("token")]
    assert form["client_id"] == "own" and "client_secret" not in form


def test_no_credential_is_shipped():
    """B53: nothing that looks like a client of Google's, or its secret, stands in the sources."""
    sources = Path(accounts_file.__file__).parents[2].rglob("*.py")
    texts = {path.name: path.read_text(encoding="utf-8") for path in sources}

    assert len(texts) > 100
    marks = ("GOC" + "SPX-", "apps.google" + "usercontent.com", "-----BEGIN")
    assert [name for name, text in texts.items() if any(mark in text for mark in marks)] == []


# Limits


def test_an_account_that_has_asked_too_much_makes_room_for_the_next(path):
    """S2-102, B42: it is noted for 60 seconds, the next one is asked at once, and all is kept."""
    heard = []
    google = Google(lambda account: limited() if account == "ada" else HELLO)

    response = answered(google, path, on_retry=lambda *facts: heard.append(facts))

    assert response.text == "Hello." and google.turns == ["ada", "bob"]
    assert [(type(error), tries, wait_s) for error, tries, wait_s in heard] == [(RateLimited, 1, 0)]
    assert 55 < held(path)["ada"]["limited_until"][QUOTA] - time.time() <= 60
    assert json.loads(path.read_text())["current"] == "bob"
    assert [each.project for each in google.questions] == ["project-ada", "project-bob"]


@pytest.mark.parametrize(
    ("refused", "wait_s"),
    [(limited("3600.5s"), 3600.5), (limited(retry_after="900"), 900), (limited("0s"), 60)],
)
def test_it_waits_as_long_as_the_service_says(path, refused, wait_s):
    """S2-102: by RetryInfo or Retry-After; nothing said is a minute."""
    google = Google(lambda account: refused if account == "ada" else HELLO)

    answered(google, path)

    left_s = held(path)["ada"]["limited_until"][QUOTA] - time.time()
    assert wait_s - 5 < left_s <= wait_s


def test_accounts_take_turns(path):
    """S2-102: round the whole list, and a later start goes on where this one stopped."""
    write(path, "ada", "bob", "cleo", current="bob")
    google = Google(HELLO, limited(), limited(), HELLO)

    outcome_of(google, path, calls=2)
    outcome_of(google, path)

    assert google.turns == ["bob", "bob", "cleo", "ada", "ada"]


def test_an_account_that_is_not_active_or_waits_is_passed_over(tmp_path):
    """S2-102: one that waits for another model is not."""
    later = time.time() + 900
    path = write(
        tmp_path / "accounts.json",
        {"name": "ada", "refresh_token": "refresh-ada", "active": False},
        {"name": "bob", "refresh_token": "refresh-bob", "limited_until": {QUOTA: later}},
        {"name": "cleo", "refresh_token": "refresh-cleo", "limited_until": {"other": later}},
    )
    google = Google(HELLO, also={"loadCodeAssist": double.whole({"cloudaicompanionProject": "p"})})

    answered(google, path)

    assert google.turns == ["cleo"]


def test_when_all_accounts_wait_the_first_is_asked_and_the_wait_is_told(tmp_path):
    """S2-102: RateLimited says when the first of them may ask again."""
    waits = {"ada": 900, "bob": 700, "cleo": 800}
    path = write(
        tmp_path / "accounts.json",
        *(
            with_token(name, 3600, limited_until={QUOTA: time.time() + wait_s})
            for name, wait_s in waits.items()
        ),
    )
    google = knowing(Google(limited("1000s")), *waits)

    error = failed(RateLimited, google, path)

    assert google.turns == ["ada"]
    assert 690 < error.retry_after_s <= 700
    assert "exhausted your capacity" in str(error)


def test_with_all_accounts_refused_each_is_asked_once(path):
    """S2-102: then nothing is left to try that could help within a minute."""
    google = Google(limited("90s"))

    error = failed(RateLimited, google, path)

    assert google.turns == ["ada", "bob", "cleo"]
    assert 85 < error.retry_after_s <= 90


def test_a_short_wait_is_waited_for(tmp_path):
    """As with any vendor: the only account may ask again soon."""
    path = write(tmp_path / "accounts.json", "ada")
    google = Google(limited("0.2s"), HELLO)

    assert answered(google, path).text == "Hello."


def test_no_more_than_five_tries_however_many_accounts(tmp_path):
    names = [f"user{number}" for number in range(9)]
    google = Google(limited())

    failed(RateLimited, google, write(tmp_path / "accounts.json", *names))

    assert google.turns == names[:5]


def test_rotation_can_be_switched_off(path):
    """S2-102: the first active account is used, and nothing is noted of it."""
    google = Google(limited("90s"))

    failed(RateLimited, google, path, options={"rotate": False})

    assert google.turns == ["ada"]
    assert "limited_until" not in held(path)["ada"]


def test_an_account_is_not_changed_once_output_was_shown(path):
    """The reader would see two beginnings; but the account is noted."""
    begun = double.document({"text": "Hel"}, finish=None)
    ended = {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "no"}}
    lines = "".join(f"data: {json.dumps(each)}\n\n" for each in ({"response": begun}, ended))
    heard = []

    error = failed(
        RateLimited, google := Google(double.chunked(lines.encode())), path, on_chunk=heard.append
    )

    assert heard == ["Hel"] and error.partial.text == "Hel"
    assert google.turns == ["ada"] and QUOTA in held(path)["ada"]["limited_until"]


# Refusals


def test_a_refused_token_is_replaced_once(path):
    """S2-102: 401 in the middle of a token's life; the second 401 is an AuthError."""

    async def main():
        async with Google(HELLO) as google:
            provider = open_provider(MODEL, **google.options(path))
            await provider.complete(ASKED)
            google.refused.add("token-ada-1")
            text = (await provider.complete(ASKED)).text
            turns = [each.account for each in google.questions]
            google.refused |= {f"token-ada-{number}" for number in range(9)}
            with pytest.raises(AuthError) as caught:
                await provider.complete(ASKED)
            await provider.close()
            return text, turns, caught.value, len(google.questions), len(google.of("token"))

    text, turns, error, questions, refreshes = run(main())

    assert text == "Hello." and turns == ["ada", None, "ada"]
    assert error.status == 401 and (questions, refreshes) == (5, 3)


def test_a_refused_token_is_replaced_once_for_each_account(tmp_path):
    """S2-102: the account whose turn it is next may have a token that is not taken, too."""
    path = write(tmp_path / "accounts.json", with_token("ada", 3600), with_token("bob", 3600))
    google = Google(limited(), HELLO)

    assert answered(google, path).text == "Hello."

    assert google.turns == [None, "ada", None, "bob"] and len(google.of("token")) == 2


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (refusal(403, "Denied.", "PERMISSION_DENIED"), AuthError, "account 'ada' has no quota"),
        (refusal(404, "Requested entity was not found.", "NOT_FOUND"), InvalidRequest, "no model"),
        (refusal(400, "tool_result_missing: toolu_1"), InvalidRequest, "add the result"),
        (
            refusal(400, "messages.2: `tool_use` ids were found without `tool_result` blocks"),
            InvalidRequest,
            "a call of a tool has no result",
        ),
        (refusal(400, "Request contains an invalid argument."), InvalidRequest, "invalid argument"),
    ],
)
def test_what_the_service_refuses_for_is_told(path, answer, kind, said):
    """S2-102: 403 is a quota or a permission, 404 a model, a missing result its own words."""
    google = Google(answer)

    error = failed(kind, google, path)

    assert said in str(error) and len(google.questions) == 1
    assert error.args[0] == error.detail
    assert "limited_until" not in held(path)["ada"]


# Endpoints


def at_endpoints(path, *answers, calls=1, **options):
    """What comes of calls where each endpoint has its own answer; and which were asked."""
    write(path, "ada", "bob", "cleo")

    async def main():
        servers = [Google(answer) for answer in answers]
        for server in servers:
            await server.__aenter__()
            server.tokens = servers[0].tokens
        provider = open_provider(
            MODEL,
            accounts=path,
            endpoints=[server.url for server in servers],
            token_url=f"{servers[0].url}/token",
            **options,
        )
        found = []
        for _ in range(calls):
            try:
                found.append((await provider.complete(ASKED)).text)
            except Exception as error:
                found.append(error)
        await provider.close()
        for server in servers:
            await server.__aexit__(None, None, None)
        return found[-1], [len(server.questions) for server in servers]

    return run(main())


def test_endpoints_are_tried_in_their_order(path):
    """S2-103: each at once, after one that has failed; every call begins with the first."""
    gone = refusal(404, "Requested entity was not found.", "NOT_FOUND")
    page = double.whole(b"<html>no</html>", kind="text/html")

    assert at_endpoints(path, ENDED, HELLO, HELLO) == ("Hello.", [1, 1, 0])
    assert at_endpoints(path, ENDED, gone, HELLO) == ("Hello.", [1, 1, 1])
    assert at_endpoints(path, page, b"garbage\r\n\r\n", HELLO) == ("Hello.", [1, 1, 1])
    assert at_endpoints(path, ENDED, HELLO, HELLO, calls=3) == ("Hello.", [3, 3, 0])


def test_an_endpoint_that_is_not_there_is_passed_over(path):
    async def main():
        async with Google(HELLO) as google:
            options = google.options(path) | {"endpoints": ["http://127.0.0.1:9", google.url]}
            provider = open_provider(MODEL, **options)
            text = (await provider.complete(ASKED)).text
            await provider.close()
            return text

    assert run(main()) == "Hello."


@pytest.mark.parametrize("status", [401, 403, 429, 400])
def test_no_other_endpoint_is_asked_for_what_is_about_the_account(path, status):
    """S2-103: 401, 403 and 429 never lead to another endpoint; nor does a request that is wrong."""
    refused = refusal(status, "no", "X")

    _, asked = at_endpoints(path, refused, HELLO, HELLO, rotate=False, tries_max=3)

    assert asked[1:] == [0, 0]


def test_no_room_for_a_model_is_not_the_fault_of_the_account(path):
    """429 with that reason: neither the account nor the endpoint is changed."""
    details = [{"@type": "x/google.rpc.ErrorInfo", "reason": "MODEL_CAPACITY_EXHAUSTED"}]
    full = refusal(429, "No capacity available", "RESOURCE_EXHAUSTED", details, retry_after="600")

    error, asked = at_endpoints(path, full, HELLO)

    assert type(error) is Overloaded and asked == [1, 0]
    assert "limited_until" not in held(path)["ada"]


def test_all_endpoints_down_is_one_error_within_the_usual_limits(path):
    error, asked = at_endpoints(path, ENDED, ENDED, ENDED)

    assert type(error) is Overloaded and error.status == 503
    assert asked == [2, 2, 1]


def test_the_two_quotas_have_their_own_endpoints_and_headers():
    """S2-103."""
    ours = open_provider("antigravity:antigravity-gemini-3-pro-high")
    cli = open_provider("antigravity:gemini-3-pro-preview")
    claude = open_provider("antigravity:claude-sonnet-4-5-thinking")
    other = open_provider("antigravity:gemini-3-pro-high", quota="antigravity")

    hosts = [each.host.partition(".")[0] for each in ours.endpoints]
    assert hosts == ["daily-cloudcode-pa", "autopush-cloudcode-pa", "cloudcode-pa"]
    assert [each.host for each in ours.endpoints[:2]] == [
        "daily-cloudcode-pa.sandbox.googleapis.com",
        "autopush-cloudcode-pa.sandbox.googleapis.com",
    ]
    assert [str(each) for each in cli.endpoints] == ["https://cloudcode-pa.googleapis.com"]
    assert claude.endpoints[0].host == other.endpoints[0].host == ours.endpoints[0].host
    assert ours.headers["user-agent"].startswith("antigravity/")
    assert "user-agent" in cli.headers and cli.headers != ours.headers
    assert ours.wire.name_at_service == "gemini-3-pro-high"
    assert (ours.name, cli.name) == (
        "antigravity:antigravity-gemini-3-pro-high",
        "antigravity:gemini-3-pro-preview",
    )


def test_the_headers_of_a_quota_are_sent_and_can_be_set_otherwise(path):
    google = Google(HELLO)
    answered(google, path, options={"headers": {"User-Agent": "antigravity/9"}})
    (asked,) = google.questions

    assert asked.headers["user-agent"] == "antigravity/9"
    assert asked.headers["x-goog-api-client"].startswith("google-cloud-sdk")
    assert "x-goog-api-client" not in google.of("token")[0].headers


# Projects


OWN_PROJECT = "userDefinedCloudaicompanionProject"


def account_without_project(path):
    return write(path, {"name": "ada", "refresh_token": "refresh-ada"})


def test_a_project_is_found_out_once_and_kept(path):
    async def main():
        also = {"loadCodeAssist": double.whole({"cloudaicompanionProject": "rain-1"})}
        async with Google(HELLO, also=also) as google:
            provider = open_provider(MODEL, **google.options(account_without_project(path)))
            await asyncio.gather(*(provider.complete(ASKED) for _ in range(4)))
            await provider.complete(ASKED)
            await provider.close()
            return google

    google = run(main())

    assert len(google.of("loadCodeAssist")) == 1
    assert google.of("loadCodeAssist")[0].body["metadata"]["pluginType"] == "GEMINI"
    assert {each.project for each in google.questions} == {"rain-1"}
    assert held(path)["ada"]["project"] == "rain-1"


def test_a_new_account_is_enrolled_where_that_is_free(path, monkeypatch):
    """The service takes a while for it."""
    monkeypatch.setattr("holdfast.providers.antigravity.projects.PAUSE_S", 0.01)
    tiers = [{"id": "standard-tier"}, {"id": "free-tier", "isDefault": True}]
    done = {"done": True, "response": {"cloudaicompanionProject": {"id": "free-1"}}}
    google = Google(
        HELLO,
        also={
            "loadCodeAssist": double.whole({"allowedTiers": tiers}),
            "onboardUser": double.whole({"name": "operations/7"}),
            "operation": [double.whole({"name": "operations/7"}), double.whole(done)],
        },
    )

    answered(google, account_without_project(path))

    assert google.of("onboardUser")[0].body["tierId"] == "free-tier"
    assert len(google.of("operation")) == 2
    assert google.questions[0].project == held(path)["ada"]["project"] == "free-1"


@pytest.mark.parametrize(
    ("loaded", "said"),
    [
        (
            {"allowedTiers": [{"id": "x", "isDefault": True, OWN_PROJECT: True}]},
            "'ada' has no project",
        ),
        ({"currentTier": {"id": "standard-tier"}}, "make one"),
        ({"ineligibleTiers": [{"reasonMessage": "Not in your country."}]}, "Not in your country."),
        ({}, "has no project"),
    ],
)  # fmt: skip
def test_an_account_that_gets_no_project_is_told_what_to_do(path, loaded, said):
    google = Google(HELLO, also={"loadCodeAssist": double.whole(loaded)})

    error = failed(AuthError, google, account_without_project(path))

    assert said in str(error) and '"project"' in str(error)
    assert google.questions == []


def test_an_enrolment_that_does_not_end_is_an_error(path, monkeypatch):
    monkeypatch.setattr("holdfast.providers.antigravity.projects.PAUSE_S", 0.001)
    also = {
        "loadCodeAssist": double.whole({"allowedTiers": [{"id": "free", "isDefault": True}]}),
        "onboardUser": double.whole({"name": "operations/7"}),
        "operation": double.whole({}),
    }
    also["operation"] = double.whole({"name": "operations/7"})

    failed(
        ConnectionFailed,
        Google(HELLO, also=also),
        account_without_project(path),
        options={"tries_max": 1},
    )


def test_a_project_that_was_passed_is_used_where_an_account_has_none(path):
    google = Google(HELLO)

    answered(google, account_without_project(path), options={"project": "given-1"})

    assert google.questions[0].project == "given-1" and "project" not in held(path)["ada"]


# The file


def test_what_is_written_is_for_nobody_else(path, tmp_path):
    """S2-102: mode 0600 whatever the umask; whole; and nothing is left beside it but the lock."""
    old = os.umask(0)
    try:
        answered(Google(HELLO), path)
    finally:
        os.umask(old)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    beside = {each.name: stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()}
    assert beside == {"accounts.json": 0o600, "accounts.json.lock": 0o600}


def test_what_stands_in_the_file_besides_is_kept(tmp_path):
    mine = {"name": "ada", "refresh_token": "refresh-ada", "project": "p", "note": {"by": "me"}}
    path = write(tmp_path / "accounts.json", mine, comment="Grüße")

    answered(Google(HELLO), path)

    assert json.loads(path.read_text())["comment"] == "Grüße"
    assert held(path)["ada"]["note"] == {"by": "me"}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_file_that_others_may_read_is_refused(tmp_path, mode):
    """S2-102: with the way out, and before anything is sent."""
    google = Google(HELLO)
    path = write(tmp_path / "accounts.json", "ada", mode=mode)

    error = failed(AuthError, google, path)

    assert "run chmod 600 on it" in str(error) and str(path) in str(error)
    assert google.asked == []


BAD = {
    "no JSON": ("{", "cannot be read"),
    "twice": ('{"accounts": [], "accounts": []}', "twice"),
    "a list": ("[]", '{"accounts": [...]}'),
    "no accounts": ("{}", 'no list "accounts"'),
    "none": ('{"accounts": []}', '"active"'),
    "a number": ('{"accounts": [5]}', "is no object"),
    "no name": ('{"accounts": [{"refresh_token": "a"}]}', '"name"'),
    "one name": (
        '{"accounts": [{"name": "a", "refresh_token": "a"}, {"name": "a", "refresh_token": "b"}]}',
        "two accounts of one name",
    ),
    "no token": ('{"accounts": [{"name": "a"}]}', '"refresh_token"'),
    "active": ('{"accounts": [{"name": "a", "refresh_token": "b", "active": "no"}]}', "nor false"),
    "times": ('{"accounts": [{"name": "a", "refresh_token": "b", "expires_at": "x"}]}', "seconds"),
    "limits": (
        '{"accounts": [{"name": "a", "refresh_token": "b", "limited_until": 5}]}',
        '"limited_until"',
    ),
    "project": ('{"accounts": [{"name": "a", "refresh_token": "b", "project": 5}]}', '"project"'),
    "header": (
        '{"accounts": [{"name": "a", "refresh_token": "b", "access_token": "hunter2é"}]}',
        '"access_token"',
    ),
    "too long": ('{"accounts": [], "x": "' + "x" * 2_000_000 + '"}', "cannot be read"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_is_none_is_refused_with_its_place(tmp_path, name):
    text, said = BAD[name]
    path = tmp_path / "accounts.json"
    path.write_text(text)
    path.chmod(0o600)

    error = failed(AuthError, Google(HELLO), path)

    assert said in str(error) and str(path) in str(error)
    assert "hunter2" not in str(error)
    assert error.__cause__ is None  # that of a parser has all that the file holds


def test_a_file_that_is_elsewhere_or_nowhere_is_refused(tmp_path):
    real = write(tmp_path / "real.json", "ada")
    link = tmp_path / "link.json"
    link.symlink_to(real)
    os.mkfifo(tmp_path / "pipe")

    assert "symbolic link" in str(failed(AuthError, Google(HELLO), link))
    assert "FIFO" in str(failed(AuthError, Google(HELLO), tmp_path / "pipe"))
    assert "is not there" in str(failed(AuthError, Google(HELLO), tmp_path / "none.json"))
    assert "directory" in str(failed(AuthError, Google(HELLO), tmp_path))


def test_a_file_that_cannot_be_written_is_an_error_and_stays_as_it_was(path, monkeypatch):
    before = path.read_bytes()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "no space")))

    error = failed(AuthError, Google(HELLO), path)

    monkeypatch.undo()
    assert "cannot be written" in str(error) and "No space left" in str(error)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir() if each.name.endswith(".tmp")] == []


def test_a_limit_that_cannot_be_noted_is_an_error_and_no_other_try(tmp_path, monkeypatch):
    """Behind one that was noted: what was said of that one does not count for it."""
    path = write(tmp_path / "accounts.json", *(with_token(n, 3600) for n in ("ada", "bob", "cleo")))
    google = knowing(Google(limited()), "ada", "bob", "cleo")
    replace, count = os.replace, []

    def once(*paths):
        count.append(paths)
        if len(count) > 1:
            raise OSError(30, "read-only")
        replace(*paths)

    monkeypatch.setattr("os.replace", once)

    error = failed(AuthError, google, path)

    assert "cannot be written" in str(error) and google.turns == ["ada", "bob"]


def test_nothing_is_left_behind(path):
    """B42: no connection and no task, whatever came of the calls."""

    async def main():
        async with Google(limited("9s"), HELLO, refusal(400, "no"), delay_s=0.01) as google:
            provider = open_provider(MODEL, **google.options(path))
            before = asyncio.all_tasks(), faulty.open_sockets()
            for _ in range(2):
                await asyncio.gather(provider.complete(ASKED), return_exceptions=True)
            await provider.close()
            return await faulty.leaks(*before)

    assert run(main()) == []


def test_a_lock_that_nobody_lets_go_is_an_error_and_not_a_wait_for_ever(path, monkeypatch):
    monkeypatch.setattr(accounts_file, "LOCK_WAIT_S", 0.1)
    lock = accounts_file.FileLock(path.with_name("accounts.json.lock"))
    assert lock.acquire(0)

    error = failed(AuthError, Google(HELLO), path)

    lock.release()
    lock.close()
    assert "locked" in str(error)


WRITER = """
import asyncio, sys, time
from holdfast.providers.antigravity import accounts
from holdfast.providers.antigravity.accounts_file import AccountsFile

async def main(path, me, count):
    file = AccountsFile(path)
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(count)):
        until = time.time() + 900
        await file.change(lambda d: accounts.limit(d, me, f"{me}-{number}", until, time.time()))
        found = await file.read()
        assert f"{me}-{number}" in found.account(me).limited_until

asyncio.run(main(*sys.argv[1:]))
"""


def test_processes_that_change_the_file_at_once_lose_nothing(path):
    """Each change is made to what the file holds then, under its lock."""
    names = ("ada", "bob", "cleo")
    scripts = [Script(WRITER, path, name, 12) for name in names]
    for script in scripts:
        assert script.hears() == "ready"
    for script in scripts:
        script.tell()
    for script in scripts:
        script.ends()

    kept = held(path)
    for name in names:
        assert set(kept[name]["limited_until"]) == {f"{name}-{number}" for number in range(12)}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


# Options and secrets


def test_accounts_come_from_the_option_or_the_environment(path, monkeypatch):
    with pytest.raises(AuthError, match="ANTIGRAVITY_ACCOUNTS"):
        run(open_provider(MODEL).complete(ASKED))

    monkeypatch.setenv("ANTIGRAVITY_ACCOUNTS", str(path))
    assert answered(Google(HELLO), None).text == "Hello."
    assert open_provider(MODEL, api_key="a-token").keeper is None


@pytest.mark.parametrize(
    "options",
    [
        *(
            {"accounts": 5},
            {"accounts": ""},
            {"rotate": "no"},
            {"project": ""},
            {"project": "a\nb"},
        ),
        *({"quota": "x"}, {"endpoints": []}, {"endpoints": "https://x.example"}),
        *({"endpoints": ["https://a:b@x.example"]}, {"token_url": "ftp://x.example"}),
        {"endpoints": ["https://x.example"], "base_url": "https://x.example"},
        {"accounts": "/tmp/x", "api_key": "x"},
        {"colour": "red"},
    ],
)
def test_an_option_that_cannot_be_is_refused(options):
    with pytest.raises(InvalidInput):
        open_provider(MODEL, **options)


def test_a_token_of_the_callers_own_is_sent_with_the_project(path):
    google = Google(HELLO)
    google.tokens["mine"] = "me"

    answered(google, None, options={"api_key": lambda: "mine", "project": "p-1"})

    (asked,) = google.asked
    assert (asked.account, asked.project) == ("me", "p-1")


def test_secrets_are_in_no_error_no_repr_and_no_log(path, caplog):
    """Even where the service repeats them."""
    caplog.set_level(logging.DEBUG)
    secrets = ("hunter2-client", "refresh-ada", "token-ada-1")
    repeated = refusal(400, f"no {' '.join(secrets)} here")

    async def main():
        async with Google(repeated) as google:
            provider = open_provider(MODEL, **google.options(path))
            shown = [repr(provider), repr(vars(provider.keeper))]
            with pytest.raises(InvalidRequest) as caught:
                await provider.complete(ASKED)
            google.token = double.whole({"error": f"no {' '.join(secrets)}"}, status=400)
            google.refused.add("token-ada-1")
            with pytest.raises(AuthError) as again:
                await provider.complete(ASKED)
            shown.append(repr(vars(provider.keeper)))
            await provider.close()
            return shown, caught.value, again.value

    shown, *errors = run(main())
    told = [*shown, caplog.text, *("".join(traceback.format_exception(each)) for each in errors)]
    told += [repr(each.args) + str(vars(each)) for each in errors]

    assert "token-ada-1" not in "".join(told)
    refreshing = [*shown, caplog.text, str(errors[1]), repr(errors[1].args), str(vars(errors[1]))]
    assert not {secret for secret in secrets for text in refreshing if secret in text}
