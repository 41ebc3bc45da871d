"""A file that holds a token: which forms are read, and what is refused."""

import json
import os
import re

import pytest

from holdfast.errors import AuthError, InvalidInput
from holdfast.providers.token_file import SIZE_MAX, path_of, read_token

TOKEN = "gho_hunter2canary"


@pytest.fixture
def put(tmp_path):
    def put(content, mode=0o600):
        path = tmp_path / "token"
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        path.chmod(mode)
        return path

    return put


def refused(path):
    with pytest.raises(AuthError) as caught:
        read_token(path)
    assert "canary" not in f"{caught.value} {caught.value!r} {caught.value.__cause__}"
    return str(caught.value)


APP = {"user": "ada", "oauth_token": TOKEN, "githubAppId": "Iv1.x"}


@pytest.mark.parametrize(
    "content",
    [
        TOKEN.encode(),
        TOKEN.encode() + b"\n",
        {"oauth_token": TOKEN},
        {"access_token": TOKEN, "token_type": "bearer"},
        {"github.com": APP},
        {"github.com:Iv1.x": APP},
        {"ghe.example": {"oauth_token": "other"}, "github.com:Iv1.x": {}, "github.com:Iv1.y": APP},
    ],
)
def test_a_token_is_read_in_the_forms_that_programs_leave_it(put, content):
    secret = read_token(put(content))

    assert secret.reveal() == TOKEN
    assert "canary" not in f"{secret!r} {secret}"


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b" \n", b"{", {}, {"user": "ada"}, {"oauth_token": ""}),
        *({"oauth_token": 5}, {"github.com.evil.example": APP}, {"github.com": TOKEN}),
        *({"github.com": {"oauth_token": None}}, b'{"oauth_token": "a", "oauth_token": "b"}'),
        b'{"a":' * 10_000,
        b"\xff\xfe" + TOKEN.encode(),
    ],
)
def test_a_file_without_a_token_is_refused_with_the_way_out(put, content):
    assert re.search("sign in again|name the file", refused(put(content)))


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o602, 0o601, 0o777])
def test_a_file_that_others_can_use_is_refused(put, mode):
    assert "chmod 600" in refused(put(TOKEN.encode(), mode))


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
def test_a_file_of_ones_own_is_read(put, mode):
    assert read_token(put(TOKEN.encode(), mode)).reveal() == TOKEN


def test_what_is_no_regular_file_is_refused(tmp_path):
    assert "no small file" in refused(tmp_path)
    assert "cannot be read (No such file" in refused(tmp_path / "none")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo, 0o600)
    assert "no small file" in refused(fifo)


def test_a_link_is_followed_to_a_file_that_is_judged_itself(put, tmp_path):
    """Programs that mount secrets do so by links."""
    link = tmp_path / "link"
    link.symlink_to(put(TOKEN.encode()))
    assert read_token(link).reveal() == TOKEN

    put(TOKEN.encode(), 0o644)
    assert "chmod 600" in refused(link)


def test_a_file_that_is_too_long_is_refused_and_not_cut(put):
    assert "no small file" in refused(put(b"x" * (SIZE_MAX + 1)))


@pytest.mark.parametrize("value", [5, "", b"x", ["x"]])
def test_what_is_no_path_is_refused(value):
    with pytest.raises(InvalidInput, match="token_file"):
        path_of(value, "token_file")


def test_a_path_may_begin_at_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))

    assert path_of("~/token", "token_file") == tmp_path / "token"
