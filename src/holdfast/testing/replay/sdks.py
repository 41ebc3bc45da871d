"""The vendors' own SDKs as readers of the same bytes: an opinion that is not ours.

They are installed with the extra `oracles`. Each is given a transport that answers as recorded;
what its parser and its accumulator make of it is turned into a Reading by the function that also
reads whole bodies. So the SDK vouches for the framing and for how the pieces are put together.
"""

import json
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from holdfast.testing.replay.readings import (
    Reading,
    anthropic,
    google,
    ollama,
    openai_chat,
    openai_responses,
)
from holdfast.testing.replay.recordings import (
    ANTHROPIC,
    CODE_ASSIST,
    GOOGLE,
    OLLAMA,
    OPENAI_CHAT,
    Exchange,
)
from holdfast.testing.replay.server import Answer

_PACKAGES = {ANTHROPIC: "anthropic", GOOGLE: "google.genai", OLLAMA: "ollama"}
ASK = "Hello."


def missing(wire: str) -> str | None:
    """Why the SDK of a wire cannot be asked; None when it can."""
    if wire == CODE_ASSIST:
        return "there is no SDK of Code Assist"
    package = _PACKAGES.get(wire, "openai")
    try:
        is_there = find_spec(package) is not None
    except ModuleNotFoundError:  # the package that it would be in
        is_there = False
    return None if is_there else f"{package} is not installed (the extra oracles)"


def read(exchange: Exchange) -> Reading:
    """What the SDK reads; raises whatever the SDK raises."""
    if exchange.wire == ANTHROPIC:
        return _anthropic(exchange)
    if exchange.wire == GOOGLE:
        return _google(exchange)
    if exchange.wire == OLLAMA:
        return _ollama(exchange)
    return _chat(exchange) if exchange.wire == OPENAI_CHAT else _responses(exchange)


def _client(exchange: Exchange) -> Any:
    """An HTTP client that answers as recorded, whatever it is asked."""
    httpx2 = import_module("httpx2")
    return httpx2.Client(transport=_transport(exchange, httpx2))


def _transport(exchange: Exchange, httpx: Any) -> Any:
    answer = Answer.of(exchange)

    def respond(_: Any) -> Any:
        return httpx.Response(answer.status, headers=dict(answer.headers), content=answer.data)

    return httpx.MockTransport(respond)


def _anthropic(exchange: Exchange) -> Reading:
    client = import_module("anthropic").Anthropic(
        api_key="none", max_retries=0, http_client=_client(exchange)
    )
    asked: dict[str, Any] = {
        "model": "any",
        "max_tokens": 1,
        "messages": [{"role": "user", "content": ASK}],
    }
    if not exchange.is_sse:
        return anthropic.of_message(client.messages.create(**asked).to_dict(mode="json"))
    with client.messages.stream(**asked) as stream:
        return anthropic.of_message(stream.get_final_message().to_dict(mode="json"))


def _openai(exchange: Exchange) -> Any:
    return import_module("openai").OpenAI(
        api_key="none", max_retries=0, http_client=_client(exchange)
    )


def _chat(exchange: Exchange) -> Reading:
    completions = _openai(exchange).chat.completions
    asked = {"model": "any", "messages": [{"role": "user", "content": ASK}]}
    if not exchange.is_sse:
        return openai_chat.of_body(completions.create(**asked).to_dict(mode="json"))
    with completions.stream(**asked) as stream:
        return openai_chat.of_body(stream.get_final_completion().to_dict(mode="json"))


def _responses(exchange: Exchange) -> Reading:
    responses = _openai(exchange).responses
    if not exchange.is_sse:
        made = responses.create(model="any", input=ASK)
        return openai_responses.of_body(made.to_dict(mode="json"))
    with responses.stream(model="any", input=ASK) as stream:
        return openai_responses.of_body(stream.get_final_response().to_dict(mode="json"))


def _google(exchange: Exchange) -> Reading:
    genai = import_module("google.genai")
    client = genai.Client(
        api_key="none", http_options=genai.types.HttpOptions(httpx_client=_client(exchange))
    )
    try:
        asked = {"model": "any", "contents": ASK}
        if exchange.is_sse:
            chunks = list(client.models.generate_content_stream(**asked))
        else:
            chunks = [client.models.generate_content(**asked)]
    finally:
        client.close()
    return google.of_chunks([_plain(chunk) for chunk in chunks], is_whole=not exchange.is_sse)


def _ollama(exchange: Exchange) -> Reading:
    """Its types have no ids of calls, and nothing of a cache."""
    client = import_module("ollama").Client(transport=_transport(exchange, import_module("httpx")))
    asked: dict[str, Any] = {"model": "any", "stream": exchange.is_lines}
    if exchange.api == "ollama-generate":
        said = client.generate(prompt=ASK, **asked)
    else:
        said = client.chat(messages=[{"role": "user", "content": ASK}], **asked)
    documents = [each.model_dump() for each in (said if exchange.is_lines else [said])]
    return ollama.of_lines(documents)


def _plain(chunk: Any) -> dict[str, Any]:
    text: str = chunk.model_dump_json(by_alias=True, exclude_none=True)
    plain: dict[str, Any] = json.loads(text)
    return plain


def differences(reading: Reading, sdk: Reading) -> list[str]:
    """In what the two differ, as far as both speak of it."""
    aspects: list[tuple[str, Callable[[Reading], Any]]] = [
        ("text", lambda each: each.text),
        ("thinking", lambda each: each.thinking),
        ("refusal", lambda each: each.refusal),
        ("stop", lambda each: each.stop),
        ("usage", lambda each: each.usage),
        ("calls", lambda each: [(call.id, call.name, call.arguments) for call in each.calls]),
        ("signatures", lambda each: sorted(map(_one_alphabet, each.signatures))),
        ("redacted", lambda each: list(each.redacted)),
    ]
    return [
        f"{name}: {of(reading)!r}, and the SDK {of(sdk)!r}"
        for name, of in aspects
        if of(reading) != of(sdk)
    ]


def _one_alphabet(signature: str) -> str:
    """Google's SDK writes base64 in the other alphabet."""
    return signature.replace("-", "+").replace("_", "/").rstrip("=")
