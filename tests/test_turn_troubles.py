"""What somebody meets on the first day, with every vendor, through a session: a key that is wrong,
a model that is not there, a server that is down, a page in the place of an answer, an answer that
breaks off; and then it works.

The errors are typed and say what to do, what they say holds no key, the log stands as it was, and
the same session goes on when the trouble is over.
"""

import json
import logging
import traceback
from dataclasses import replace

import pytest

import holdfast
from holdfast.errors import (
    AuthError,
    ConnectionFailed,
    HoldfastError,
    InvalidRequest,
    Overloaded,
    ProtocolError,
)
from holdfast.parts import Image, Text
from holdfast.testing.replay.server import Answer, Server
from sessions_for_tests import asynchronous, tool_of
from vendor_wires import JSON, SECOND_WIRES, VENDORS

SECRET = "sk-canary-5f2b-of-nobody"
PAGE = "<html><title>Sign in to the guest network</title></html>"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)
# These are not given a key by whoever opens them.
WITHOUT_KEY = ("local", "code-assist", "copilot", "copilot, responses")
EVERYBODY = (*VENDORS, *SECOND_WIRES)
every_vendor = pytest.mark.parametrize("vendor", EVERYBODY, ids=lambda vendor: vendor.name)


def openai(message, code, kind="invalid_request_error"):
    return {"error": {"message": message, "type": kind, "code": code}}


def anthropic(kind, message):
    return {"type": "error", "error": {"type": kind, "message": message}}


def google(code, status, message, *details):
    error = {"code": code, "status": status, "message": message, "details": list(details)}
    return {"error": error}


REASON = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
WRONG_KEY = {
    "anthropic": (401, anthropic("authentication_error", f"invalid x-api-key {SECRET}")),
    "openai-chat": (401, openai(f"Incorrect API key provided: {SECRET}.", "invalid_api_key")),
    "openai-responses": (401, openai(f"Incorrect API key: {SECRET}.", "invalid_api_key")),
    "google": (400, google(400, "INVALID_ARGUMENT", "API key not valid.", REASON)),
    "code-assist": (401, google(401, "UNAUTHENTICATED", "Invalid authentication credentials.")),
    "ollama": (401, {"error": "unauthorized"}),
}
NO_MODEL = {
    "anthropic": (404, anthropic("not_found_error", "model: some-model")),
    "openai-chat": (404, openai("The model `some-model` does not exist.", "model_not_found")),
    "openai-responses": (400, openai("The requested model does not exist.", "model_not_found")),
    "google": (404, google(404, "NOT_FOUND", "models/some-model is not found for API version v1")),
    "code-assist": (404, google(404, "NOT_FOUND", "Requested entity was not found.")),
    "ollama": (404, {"error": "model 'some-model' not found"}),
}


def refusal(status, body):
    return Answer(status, JSON, json.dumps(body).encode(), is_chunked=False)


def page(status):
    return Answer(status, {"content-type": "text/html"}, PAGE.encode(), is_chunked=False)


class Troubled:
    """A session whose model is the vendor's, at a server that answers so; and what was told."""

    def __init__(self, vendor, caplog):
        self.vendor = vendor
        self.told = ""
        self._log = caplog
        caplog.set_level(logging.DEBUG)

    def opened(self, url, **options):
        given = {"tries_max": 1, **self.vendor.options, **options}
        if self.vendor.name not in WITHOUT_KEY:
            given["api_key"] = SECRET
        return self.vendor.opened(self.vendor.model, url, given)

    async def fails(self, url, *, stream=False):
        """The error of a turn; the log is as it was."""
        async with self.opened(url) as model, holdfast.open("memory:", model=model) as sessions:
            session = await sessions.get_or_create("cli:direct")
            try:
                if stream:
                    async for _ in session.stream("Hello."):
                        pass
                else:
                    await session.send("Hello.")
            except HoldfastError as error:
                assert session.count == 0 and session.draft is not None
                self._note(error, model)
                return error
        raise AssertionError("it was answered")

    def _note(self, error, model):
        shown = [str(error), repr(error), repr(error.args), repr(model), repr(vars(error))]
        shown += traceback.format_exception(error)
        self.told = "\n".join([*shown, self._log.text])


@every_vendor
@pytest.mark.parametrize("stream", [False, True], ids=["sent", "streamed"])
@asynchronous
async def test_a_wrong_key_is_said_to_be_wrong_and_not_repeated(vendor, stream, caplog):
    """Not in a text, a repr, the log or a traceback, even where the service says it."""
    troubled = Troubled(vendor, caplog)
    async with Server(*[refusal(*WRONG_KEY[vendor.api])] * 3) as server:
        error = await troubled.fails(server.url, stream=stream)

    assert type(error) is AuthError and SECRET not in troubled.told
    assert "api_key=" in str(error) or "accounts=" in str(error) or "token_file=" in str(error)


@every_vendor
@asynchronous
async def test_a_model_that_is_not_there_is_looked_for_elsewhere(vendor, caplog):
    """The way out names the list of those that are."""
    troubled = Troubled(vendor, caplog)
    async with Server(*[refusal(*NO_MODEL[vendor.api])] * 3) as server:
        error = await troubled.fails(server.url)

    assert type(error) is InvalidRequest
    assert "list_models()" in str(error) and vendor.model in str(error)


@every_vendor
@pytest.mark.parametrize(
    ("status", "kind"), [(200, ProtocolError), (502, Overloaded)], ids=["good", "gateway"]
)
@asynchronous
async def test_a_page_is_no_answer(vendor, status, kind, caplog):
    """It is told by its title: somebody on the way has sent it."""
    troubled = Troubled(vendor, caplog)
    async with Server(*[page(status)] * 3) as server:
        error = await troubled.fails(server.url, stream=True)

    assert type(error) is kind and "guest network" in str(error)
    assert SECRET not in troubled.told


@every_vendor
@asynchronous
async def test_a_server_that_is_down_is_said_to_be(vendor, caplog):
    troubled = Troubled(vendor, caplog)

    error = await troubled.fails("http://127.0.0.1:9")

    assert type(error) is ConnectionFailed and "127.0.0.1:9" in str(error)
    assert "address" in str(error) or "start it" in str(error)
    assert SECRET not in troubled.told


@every_vendor
@pytest.mark.parametrize("stream", [False, True], ids=["sent", "streamed"])
@asynchronous
async def test_an_answer_that_breaks_off_is_an_error_with_what_had_come(vendor, stream, caplog):
    troubled = Troubled(vendor, caplog)
    whole = vendor.says("One moment please, there is more to be said.")
    cut = replace(whole, stop_at=len(whole.data) * 3 // 5)
    async with Server(*[cut] * 3) as server:
        error = await troubled.fails(server.url, stream=stream)

    assert type(error) is ConnectionFailed and SECRET not in troubled.told
    assert "One moment please, there is more to be said.".startswith(error.partial.text)


# Ollama's second wire asks a server first what it has: see test_turn_ollama.py.
@pytest.mark.parametrize("vendor", [*VENDORS, SECOND_WIRES[1]], ids=lambda vendor: vendor.name)
@asynchronous
async def test_when_the_trouble_is_over_the_session_goes_on(vendor):
    """A refusal, then a picture, a tool and words: one conversation, and nothing twice."""
    weather = tool_of("weather", lambda **_: "It rains.")
    broken = page(200)
    answers = [
        broken,
        vendor.says("One moment.", call="weather"),
        vendor.says("Rain.", number=2),
        vendor.says("As I said.", number=3),
    ]
    async with Server(*answers) as server:
        given = {"tries_max": 1, **vendor.options}
        model = vendor.opened(vendor.model, server.url, given)
        async with model, holdfast.open("memory:", model=model, tools=[weather]) as sessions:
            session = await sessions.get_or_create("cli:direct")
            with pytest.raises(ProtocolError):
                await session.send("How is the weather?")
            result = await session.send(
                [Text("And here?"), Image(data=PNG, media_type="image/png")]
            )
            after = await session.send("Sure?")

            assert (result.text, after.text) == ("Rain.", "As I said.")
            roles = [message.role for message in await session.read(0, session.count)]
            assert roles == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    bodies = [request.body for request in server.requests if request.body]
    assert vendor.problems(bodies[-1]) == [] and "How is the weather?" not in vendor.texts(
        bodies[-1]
    )
