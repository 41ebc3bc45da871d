"""The first day with a vendor: nothing is set up yet, or it is set up wrongly.

Each error is of the type that says what can be done, and is one sentence that ends with that; it
has no secret in it, and nothing was sent anywhere.
"""

import asyncio
import json
import os

import pytest

from holdfast import Message, open_provider
from holdfast.errors import AuthError, ConnectionFailed, InvalidInput
from loopback import Loopback

SECRET = "hunter2-canary-0123456789"
NOWHERE = "http://127.0.0.1:9"
START = "start it with `ollama serve`, or say where it is (OLLAMA_HOST, base_url=)"
CLIENTS = "put your own client_id and client_secret into the accounts file, or set "
CLIENTS += "ANTIGRAVITY_CLIENT_ID and ANTIGRAVITY_CLIENT_SECRET"
CLAUDE = "install Claude Code and log in with it once, or pass program="
TOKEN = "pass token_file=, or set GITHUB_COPILOT_TOKEN_FILE"
ACCOUNTS = "pass accounts=, the path of your accounts file, or set ANTIGRAVITY_ACCOUNTS"
ACCOUNT = {"name": "ada", "refresh_token": SECRET, "project": "p"}
CLIENT = {"client_id": "mine", "client_secret": SECRET}


@pytest.fixture(autouse=True)
def _nothing_is_set_up(monkeypatch, tmp_path):
    words = ("API_KEY", "TOKEN", "OLLAMA", "ANTHROPIC", "OPENAI", "GOOGLE", "GEMINI", "ANTIGRAVITY")
    for name in os.environ:
        if any(word in name for word in words):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", str(tmp_path))


def told(name, **options):
    """The error of a first question."""

    async def main():
        async with open_provider(name, tries_max=1, **options) as provider:
            await provider.complete([Message.user("Hello.")])

    with pytest.raises(Exception) as raised:  # noqa: PT011 - of any type, which is looked at
        asyncio.run(main())
    return raised.value


def put(path, content, mode=0o600):
    """A file with this content; its path."""
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    path.chmod(mode)
    return path


def chain(error):
    """All that a log may show of an error."""
    said = []
    while error is not None:
        said += [str(error), repr(error), repr(vars(error)), str(getattr(error, "doc", ""))]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return " ".join(said)


NOTHING = {
    "anthropic:claude-sonnet-4-5": "set ANTHROPIC_API_KEY, or pass api_key=",
    "openai:gpt-5": "set OPENAI_API_KEY, or pass api_key=",
    "google:gemini-2.5-pro": "set GEMINI_API_KEY or GOOGLE_API_KEY, or pass api_key=",
    "github:openai/gpt-4.1": "set GITHUB_TOKEN, or pass api_key=",
    "antigravity:gemini-3-pro": ACCOUNTS,
}


@pytest.mark.parametrize("name", NOTHING)
def test_without_a_key_it_says_where_to_put_one(name):
    """And nothing behind it that is about a key that is there."""
    error = told(name)

    vendor = name.partition(":")[0]
    assert type(error) is AuthError
    assert str(error) == f"{vendor}: there is no key: {NOTHING[name]}"


def test_without_a_token_copilot_says_where_to_put_one():
    error = told("github:gpt-4.1", path="copilot")

    assert type(error) is AuthError
    assert str(error) == f"github: there is no OAuth token: {TOKEN}"


def test_without_a_server_ollama_says_how_to_start_it():
    async def gone():
        async with Loopback(b"") as server:
            return server.url

    error = told("ollama:qwen3", base_url=asyncio.run(gone()))

    assert type(error) is ConnectionFailed and str(error).endswith(f": {START}")
    assert str(error).startswith("ollama: no connection to 127.0.0.1:")


@pytest.mark.parametrize("program", ["claude", "/nowhere/claude", "/"])
def test_without_its_program_claude_says_to_install_it(program):
    error = told("claude-cli:sonnet", program=program)

    assert type(error) is InvalidInput
    assert str(error) == f"the program {program!r} is not there: {CLAUDE}"


@pytest.mark.parametrize(
    ("name", "known"),
    [("olama:qwen3", "ollama, openai"), ("copilot:gpt-5", "github"), ("qwen3", "vendor:model")],
)
def test_a_name_that_nobody_has_says_which_there_are(name, known):
    error = told(name)

    assert type(error) is InvalidInput and known in str(error)


TOKENS = {
    "others may read it": (SECRET, 0o644, "run chmod 600 on it"),
    "nothing in it": ("", 0o600, "sign in again"),
    "no token in it": ({"user": SECRET}, 0o600, "sign in again"),
    "cut off": (f'{{"oauth_token": "{SECRET}', 0o600, "sign in again"),
    "a key twice": (f'{{"{SECRET}": 1, "{SECRET}": 2}}', 0o600, "sign in again"),
    "two lines": (f"{SECRET}\n{SECRET}", 0o600, "pass api_key="),
}


@pytest.mark.parametrize("what", TOKENS)
def test_a_token_file_that_is_wrong_says_what_to_do(what, tmp_path):
    content, mode, way_out = TOKENS[what]

    error = told("github:gpt-4.1", token_file=put(tmp_path / "token", content, mode))

    assert type(error) is AuthError and str(error).endswith(f": {way_out}")
    assert SECRET not in chain(error)


MEND = "mend it, as the documentation shows"
SHEETS = {
    "others may read it": ({**CLIENT, "accounts": [ACCOUNT]}, 0o644, "run chmod 600 on it"),
    "nothing in it": ("", 0o600, MEND),
    "cut off": (f'{{"client_secret": "{SECRET}', 0o600, MEND),
    "no account": ({**CLIENT, "accounts": []}, 0o600, 'set "active" to true for one'),
    "no refresh token": ({**CLIENT, "accounts": [{"name": "ada"}]}, 0o600, MEND),
    "the same name": ({**CLIENT, "accounts": [ACCOUNT, ACCOUNT]}, 0o600, MEND),
    "no client": ({"accounts": [ACCOUNT]}, 0o600, CLIENTS),
}


@pytest.mark.parametrize("what", SHEETS)
def test_an_accounts_file_that_is_wrong_says_what_to_do(what, tmp_path):
    content, mode, way_out = SHEETS[what]
    path = put(tmp_path / "accounts.json", content, mode)

    error = told("antigravity:gemini-3-pro", accounts=path, base_url=NOWHERE, token_url=NOWHERE)

    assert type(error) is AuthError and str(error).endswith(f": {way_out}")
    assert SECRET not in chain(error)


def test_an_accounts_file_that_is_not_there_says_to_make_one(tmp_path):
    error = told("antigravity:gemini-3-pro", accounts=tmp_path / "accounts.json")

    assert type(error) is AuthError
    assert str(error).endswith(" is not there: make one, as the documentation shows")
