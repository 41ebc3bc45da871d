"""Reading a folder of recordings."""

import json

import replay_recordings as ours
from holdfast.testing.replay.recordings import Recording, Unreadable, read_folder


def test_a_folder_is_read_in_the_order_of_its_names(tmp_path):
    raw = ours.raw_file("anthropic", ours.exchange("messages", "/v1/messages", None, {}))
    for name in ("b", "a"):
        (tmp_path / f"{name}.json").write_text(json.dumps(raw))
    (tmp_path / "INDEX.json").write_text("[]")
    (tmp_path / "c.json").write_text("{")

    first, second, third = read_folder(tmp_path)

    assert [first.file, second.file] == ["a.json", "b.json"]
    assert isinstance(first, Recording)
    assert isinstance(third, Unreadable)


def test_the_wire_is_told_by_the_api():
    def wire(provider, api):
        raw = ours.exchange(api, "/", {}, {})
        (exchange,) = ours.made(provider, raw).exchanges
        return exchange.wire, exchange.why_not

    assert wire("anthropic", "messages") == ("anthropic", None)
    assert wire("azure-openai", "responses") == ("openai-responses", None)
    assert wire("openai-compatible", "chat-completions") == ("openai-chat", None)
    assert wire("google", "stream-generate-content-vertex") == ("google", None)
    assert wire("google", "count-tokens-vertex") == (None, "not a model call")
    assert wire("code-assist", "code-assist-stream") == ("code-assist", None)
    assert wire("ollama", "ollama-chat") == ("ollama", None)
    assert wire("claude-cli", "claude-cli-stream-json") == ("claude-cli", None)


def test_the_bytes_are_those_that_were_sent():
    stream = "event: ping\r\ndata: {}\r\n\r\n"
    text, array, body = ours.made(
        "google",
        ours.exchange("stream-generate-content", "/", {}, stream),
        ours.exchange("stream-generate-content", "/", {}, [{"a": "é"}, {"b": 1}]),
        ours.exchange("generate-content", "/", {}, {"half": "\ud800"}),
    ).exchanges

    assert (text.data, text.is_stream) == (stream.encode(), True)
    assert (json.loads(array.data), array.is_stream) == ([{"a": "é"}, {"b": 1}], True)
    assert (json.loads(body.data), body.is_stream) == ({"half": "\ud800"}, False)
    assert text.cut(5).data == b"event"


def test_the_model_is_found_in_body_address_or_answer():
    def model(path, request, answer=None):
        raw = ours.exchange("generate-content", path, request, answer or {})
        return ours.made("google", raw).exchanges[0].model

    assert model("/v1beta/models/gemini-x:generateContent?alt=sse", {}) == "gemini-x"
    assert model("/", None, {"modelVersion": "gemini-y"}) == "gemini-y"
    assert ours.anthropic().exchanges[0].model == "claude-x"
