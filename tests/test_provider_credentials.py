"""Keys are read when they are needed, and never shown."""

import asyncio
import copy
import pickle

import pytest

from holdfast.errors import AuthError, ConnectionFailed, InvalidInput
from holdfast.providers.address import Address
from holdfast.providers.credentials import Credentials, Hidden, Secret
from holdfast.providers.options import checked_headers

CANARY = "sk-hunter2-canary"


def read(credentials):
    found = asyncio.run(credentials.read("vendor"))
    return None if found is None else found.reveal()


def test_a_secret_shows_itself_nowhere():
    secret = Secret(CANARY)

    shown = [
        repr(secret),
        str(secret),
        f"{secret}",
        f"{secret!r:>9}",
        f"{[secret]}",
        f"{secret:>5}",
    ]

    assert all("***" in each and "hunter2" not in each for each in shown)
    assert secret.reveal() == CANARY


def test_a_secret_is_copied_and_not_pickled():
    secret = Secret(CANARY)

    assert copy.deepcopy(secret) is secret and copy.copy(secret) is secret
    with pytest.raises(TypeError, match="not pickled") as caught:
        pickle.dumps(secret)
    assert "hunter2" not in str(caught.value)


def test_a_key_is_what_was_given_or_the_first_variable_that_is_set(monkeypatch):
    monkeypatch.delenv("FIRST_KEY", raising=False)
    monkeypatch.setenv("SECOND_KEY", "from-environment")
    names = ("FIRST_KEY", "SECOND_KEY")

    assert read(Credentials("given", names)) == "given"
    assert read(Credentials(Secret("given"), names)) == "given"
    assert read(Credentials(None, names)) == "from-environment"
    assert read(Credentials(None)) is None


def test_the_environment_is_read_at_each_call(monkeypatch):
    credentials = Credentials(None, ("SOME_KEY",))
    monkeypatch.setenv("SOME_KEY", "one")
    first = read(credentials)
    monkeypatch.setenv("SOME_KEY", "two\n")

    assert (first, read(credentials)) == ("one", "two")


def test_a_key_may_be_a_function_even_an_async_one():
    keys = iter(["one", "two"])

    async def later():
        return Secret("later")

    credentials = Credentials(lambda: next(keys))

    assert [read(credentials), read(credentials)] == ["one", "two"]
    assert read(Credentials(later)) == "later"


def test_a_function_that_gives_nothing_is_not_replaced_by_the_environment(monkeypatch):
    monkeypatch.setenv("SOME_KEY", "another account's")

    assert read(Credentials(lambda: "", ("SOME_KEY",))) is None
    assert read(Credentials("", ("SOME_KEY",))) is None


@pytest.mark.parametrize("key", ["a\r\nX-Evil: 1", "a\nb", "a\0b", "schlüssel", "x" * 20_000])
def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(key):
    with pytest.raises(AuthError) as caught:
        read(Credentials(key))

    assert key not in str(caught.value)


@pytest.mark.parametrize("key", [5, b"bytes", ["k"]])
def test_a_key_of_another_type_is_refused(key):
    with pytest.raises(InvalidInput):
        Credentials(key)


def test_what_is_hidden_is_taken_out_of_all_texts_of_an_error():
    error = ConnectionFailed(f"no {CANARY} here", "vendor", 500, f"req-{CANARY}", 1.0)

    Hidden([Secret(CANARY), Secret("sk-hunter2"), None, Secret("")]).error(error)

    assert "hunter2" not in repr(error) + str(error) + error.detail + error.request_id
    assert error.status == 500 and error.retry_after_s == 1.0


def test_a_word_that_is_too_short_hides_nothing():
    assert Hidden([Secret("no")]).text("no way") == "no way"


@pytest.mark.parametrize(
    ("base", "path", "joined"),
    [
        ("https://x.example", "/v1/messages", "https://x.example/v1/messages"),
        ("https://x.example/", "v1/messages?a=1", "https://x.example/v1/messages?a=1"),
        ("https://x.example/v1", "/v1/messages", "https://x.example/v1/messages"),
        ("https://x.example/v1/", "/chat/completions", "https://x.example/v1/chat/completions"),
        ("https://x.example/v1", "/v1beta/models", "https://x.example/v1/v1beta/models"),
        ("https://x.example/vendor", "/vendor/x", "https://x.example/vendor/vendor/x"),
        ("http://[::1]:8080", "x", "http://[::1]:8080/x"),
    ],
)
def test_a_path_is_joined_to_its_base(base, path, joined):
    assert Address(base).join(path) == joined


def test_a_password_in_an_address_is_sent_and_not_shown():
    address = Address("https://ada:hunter2%2Dcanary@x.example:8443/v1")

    assert str(address) == "https://x.example:8443/v1"
    assert "hunter2" not in repr(address) + repr(vars(address)) + address.join("models")
    assert address.userinfo.reveal() == "Basic YWRhOmh1bnRlcjItY2FuYXJ5"


@pytest.mark.parametrize(
    "url",
    [
        *("", "x.example", "ftp://x.example", "https://", "file:///etc/passwd", 5, None, b"x"),
        *("https://x.example/?key=hunter2", "https://x.example/#hunter2", "https://x y.example"),
        *("https://x.example:99999", "https://[::1", "https://exämple.org", "https://x\n.example"),
        "https://x.example/" + "a" * 3000,
    ],
)
def test_an_address_that_is_none_is_refused_and_not_shown(url):
    with pytest.raises(InvalidInput, match="base_url") as caught:
        Address(url)

    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "is_loopback"),
    [
        *(("http://127.0.0.1:1", True), ("http://127.8.8.8", True), ("http://[::1]", True)),
        *(("http://localhost:1", True), ("http://a.localhost", True)),
        *(("http://localhost.evil.example", False), ("http://127.0.0.1.evil.example", False)),
        *(("http://10.0.0.1", False), ("http://0.0.0.0", False)),
    ],
)
def test_this_machine_is_told_from_others(url, is_loopback):
    assert Address(url).is_loopback is is_loopback


@pytest.mark.parametrize(
    "headers",
    [
        *({"x-a": "a\r\nX-Evil: 1"}, {"x a": "v"}, {"": "v"}, {"x-a:": "v"}, {5: "v"}, {"x-a": 5}),
        *({"Host": "evil.example"}, {"Content-Length": "5"}, {"x-a": ""}, [("a", "b")], "x-a: b"),
        {"Transfer-Encoding": "chunked"},
    ],
)
def test_a_header_that_would_change_the_request_is_refused(headers):
    with pytest.raises(InvalidInput):
        checked_headers(headers)


def test_headers_are_kept_as_secrets_by_their_lower_case_names():
    checked = checked_headers({"X-Tenant": "a", "Authorization": Secret(CANARY)})

    assert {name: value.reveal() for name, value in checked.items()} == {
        "x-tenant": "a",
        "authorization": CANARY,
    }
