"""What an Ollama server says of itself, and the rule by which a cut is told from a cache."""

import pytest

from holdfast.errors import InvalidInput
from holdfast.messages import Message, ToolCall
from holdfast.parts import Image, Thinking
from holdfast.providers import ollama_server as server
from holdfast.providers import open_provider
from holdfast.providers.ollama import OllamaWire
from holdfast.providers.ollama_window import Sent, is_cut, is_suspicious, sent
from holdfast.providers.tokens import estimator
from holdfast.tools import Tool

# Where it is

HOSTS = {
    "localhost": "http://localhost:11434",
    "127.0.0.1": "http://127.0.0.1:11434",
    "0.0.0.0": "http://127.0.0.1:11434",
    "0.0.0.0:8080": "http://127.0.0.1:8080",
    "http://0.0.0.0:11434": "http://127.0.0.1:11434",
    ":8080": "http://127.0.0.1:8080",
    "::": "http://127.0.0.1:11434",
    "[::]:8080": "http://127.0.0.1:8080",
    "::1": "http://[::1]:11434",
    "[::1]": "http://[::1]:11434",
    "[::1]:8080": "http://[::1]:8080",
    "gpu.lan": "http://gpu.lan:11434",
    "gpu.lan:8080": "http://gpu.lan:8080",
    "http://gpu.lan": "http://gpu.lan",
    "https://gpu.lan": "https://gpu.lan",
    "https://gpu.lan:8443/": "https://gpu.lan:8443",
    "https://gpu.lan/ollama": "https://gpu.lan/ollama",
    "http://localhost:11434/v1": "http://localhost:11434",
    "http://localhost:11434/api/": "http://localhost:11434",
    '"127.0.0.1:11434"': "http://127.0.0.1:11434",
    " gpu.lan ": "http://gpu.lan:11434",
}


@pytest.mark.parametrize(("given", "address"), HOSTS.items())
def test_a_server_is_found_in_every_spelling(given, address, monkeypatch):
    """S2-95: as the variable is read by Ollama itself, and `base_url` likewise."""
    monkeypatch.setenv("OLLAMA_HOST", given)

    assert str(open_provider("ollama:x").address) == address
    monkeypatch.delenv("OLLAMA_HOST")
    assert str(open_provider("ollama:x", base_url=given).address) == address


def test_without_the_variable_it_is_this_machine(monkeypatch):
    """S2-95: http://localhost:11434; a variable that is empty is none."""
    for value in (None, ""):
        monkeypatch.setenv("OLLAMA_HOST", "") if value == "" else monkeypatch.delenv(
            "OLLAMA_HOST", raising=False
        )
        assert str(open_provider("ollama:x").address) == "http://localhost:11434"


@pytest.mark.parametrize("given", ["ftp://x", "x y", "http://a b", "x:port", "http://x?key=1", 5])
def test_what_is_no_address_is_refused_without_being_repeated(given):
    with pytest.raises(InvalidInput, match="base_url"):
        open_provider("ollama:x", base_url=given)


def test_a_password_in_an_address_is_not_shown():
    provider = open_provider("ollama:x", base_url="https://ada:hunter2@gpu.lan")

    assert repr(provider) == "<provider ollama:x at https://gpu.lan>"


# What it says


@pytest.mark.parametrize(
    ("version", "speaks"),
    [
        ("0.14.0", True),
        ("0.14.0-rc1", True),
        ("0.33.2", True),
        ("1.0", True),
        ("0.13.5", False),
        ("0.9.6", False),
        ("0.0.0", None),
        ("", None),
        (None, None),
        (14, None),
    ],
)
def test_the_version_says_which_api_there_is(version, speaks):
    assert server.speaks_messages({"version": version}) is speaks


@pytest.mark.parametrize(
    ("listed", "model", "same"),
    [
        ("llama3.2:latest", "llama3.2", True),
        ("llama3.2:latest", "llama3.2:latest", True),
        ("llama3.2:1b", "llama3.2", False),
        ("llama3.2:1b", "llama3.2:1B", True),
        ("hf.co/a/b:Q4", "hf.co/a/b:q4", True),
        ("localhost:5000/a/b:latest", "localhost:5000/a/b", True),
        (None, "llama3.2", False),
    ],
)
def test_a_name_without_a_tag_is_the_latest(listed, model, same):
    """S2-95."""
    assert server.is_same(listed, model) is same


def test_a_card_says_what_a_model_was_trained_for_and_is_loaded_with():
    card = {
        "parameters": 'stop    "num_ctx 5"\nnum_ctx                        8192\ntop_k 20',
        "model_info": {"general.size": 1, "llama.context_length": 131_072},
    }

    assert server.card_of(card) == (131_072, 8_192)


@pytest.mark.parametrize(
    "card",
    [
        {},
        {"model_info": [], "parameters": 5},
        {"model_info": {"x.context_length": "many"}, "parameters": "num_ctx -1"},
        {"model_info": {"x.context_length": -1}, "parameters": "num_ctx many"},
    ],
)
def test_a_card_that_says_nothing_usable_says_nothing(card):
    assert server.card_of(card) == (None, None)


@pytest.mark.parametrize(
    ("document", "window"),
    [
        ({"models": [{"name": "a:latest", "context_length": 8_192}]}, 8_192),
        ({"models": [{"model": "b"}, {"model": "a", "context_length": 4_096}]}, 4_096),
        ({"models": [{"name": "b", "context_length": 8_192}]}, None),
        ({"models": [{"name": "a", "context_length": 0}]}, None),
        ({"models": ["a", 5]}, None),
        ({"models": {}}, None),
        ({}, None),
    ],
)
def test_the_window_of_a_loaded_model(document, window):
    assert server.loaded_in(document, "a") == window


# Cut, or in the cache

LONG = Sent(at_least=9_000, tokens=9_500, at_most=10_000)
CLOSE = Sent(at_least=4_000, tokens=4_200, at_most=4_400)  # it may be more than 4,096, or not
SHORT = Sent(at_least=3_000, tokens=3_150, at_most=3_300)


@pytest.mark.parametrize(
    ("size", "counted", "window", "cut"),
    [
        # what cannot have fitted was cut, whatever was counted of it
        (LONG, 2_050, 4_096, True),
        (LONG, 4_096, 4_096, True),
        (LONG, 3_500, 4_096, True),  # whole messages were dropped
        (LONG, 1, 4_096, True),
        (LONG, 0, 4_096, True),
        # what fits was not, however little was counted of it
        (LONG, 2_050, 32_768, False),
        (LONG, 1, 32_768, False),
        (SHORT, 1, 4_096, False),
        (SHORT, 2_050, 4_096, False),
        # and in between it is the number that a cut leaves
        (CLOSE, 2_050, 4_096, True),
        (CLOSE, 2_053, 4_096, True),
        (CLOSE, 4_096, 4_096, True),
        (CLOSE, 300, 4_096, False),
        (CLOSE, 3_000, 4_096, False),
    ],
)
def test_the_window_decides_whether_a_prompt_was_cut(size, counted, window, cut):
    """S2-95: and not how few tokens were counted, which a cache explains as well."""
    assert is_suspicious(size, counted, window) or not cut
    assert (is_suspicious(size, counted, window) and is_cut(size, counted, window)) is cut


def test_a_prompt_that_was_counted_whole_is_no_suspicion():
    assert not is_suspicious(LONG, 9_500, 4_096) and not is_suspicious(LONG, 12_000, None)
    assert is_suspicious(LONG, 8_000, None) and is_suspicious(LONG, 8_000, 32_768)
    unsure = LONG._replace(at_least=2_000)  # a vocabulary that is not known
    assert is_suspicious(unsure, 4_096, 32_768) and not is_suspicious(unsure, 8_000, 32_768)
    assert not is_suspicious(CLOSE, 4_100, 32_768) and is_suspicious(CLOSE, 4_100, 4_096)


def measured(*messages, tools=(), system=None):
    wire = OllamaWire("phi4")
    return sent(wire.ask(messages, system, tools), estimator("o200k"))


def test_only_words_count_for_certain():
    """A template may drop what was thought, and a picture costs each model something else."""
    story = Message.user("It was a dark night. " * 500)
    thought = Message.assistant([Thinking("hm " * 900), *"y"], model="ollama:phi4")
    picture = Message.user([Image(data=b"\x89PNG\r\n\x1a\n", media_type="image/png")])
    plain = measured(story)

    assert 1_000 < plain.at_least < plain.tokens < plain.at_most
    for more in (thought, picture):
        size = measured(story, more, Message.user("So?"))
        assert size.at_least - plain.at_least < 20 and size.tokens - plain.tokens > 200


def test_calls_results_system_and_tools_are_measured():
    call = ToolCall(id="c", name="look", arguments='{"at": "%s"}' % ("sky " * 900))
    said = [Message.user("Go."), Message.assistant(None, [call]), Message.tool("blue " * 900, "c")]
    tool = Tool("look", "Looks. " * 900, {"type": "object"})
    sizes = [measured(*said), measured(*said, tools=[tool]), measured(*said, system="Hm. " * 900)]

    assert sizes[0].at_least > 1_000
    assert all(each.at_least > sizes[0].at_least + 300 for each in sizes[1:])


def test_a_short_prompt_is_not_measured():
    """No window is too small for it, and no vocabulary is loaded."""
    assert measured(Message.user("Hello."), system="Be brief.") == (0, 0, 0)
