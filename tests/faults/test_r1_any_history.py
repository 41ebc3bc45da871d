"""R1: whatever a history holds, the request made of it is one that the vendor accepts.

Thousands of histories as no careful program would leave them, for every wire, judged by validators
that share nothing with what makes the requests. The same messages, sent as they are, are refused in
most cases: that is the control.
"""

import json
from random import Random

import msgspec
import pytest

import random_histories as made
from faults.tier import pick
from holdfast.messages import Role
from holdfast.parts import Text
from holdfast.providers import prepare
from holdfast.providers.anthropic import AnthropicWire
from holdfast.providers.antigravity.wire import CodeAssistWire
from holdfast.providers.claude_cli.wire import ClaudeCliWire
from holdfast.providers.github_wires import CopilotChatWire, CopilotResponsesWire
from holdfast.providers.google import GoogleWire
from holdfast.providers.ollama import OllamaWire
from holdfast.providers.ollama_messages import OllamaMessagesWire
from holdfast.providers.openai_chat import OpenAIChatWire
from holdfast.providers.openai_chat_dialect import GITHUB
from holdfast.providers.openai_responses import OpenAIResponsesWire
from holdfast.testing import validators
from holdfast.window.render import Rendered, Shown, render
from vendor_wires import SERVICES

HISTORIES = pick(10_000, 60_000)  # for each wire
IN_WORDS = "claude-cli"  # there is little that could be wrong with words: fewer of them will do
# An envelope around Google's needs fewer, too, and so do rules that forbid next to nothing.
FEWER = {
    "code-assist": pick(1_500, 60_000),
    "ollama": pick(5_000, 60_000),
    IN_WORDS: pick(2_000, HISTORIES),
}
WIRES = {
    "anthropic": [
        AnthropicWire("claude-sonnet-4-5"),
        AnthropicWire("claude-opus-5-5"),
        AnthropicWire("claude-3-haiku-20240307"),
        OllamaMessagesWire("qwen3:8b"),
    ],
    "openai-chat": [OpenAIChatWire("gpt-4.1"), OpenAIChatWire("gpt-5")],
    "openai-responses": [OpenAIResponsesWire("gpt-5"), OpenAIResponsesWire("gpt-4.1")],
    "google": [GoogleWire("gemini-2.5-pro"), GoogleWire("gemini-3-pro-preview")],
    "code-assist": [
        CodeAssistWire("antigravity-claude-sonnet-4-5-thinking"),
        CodeAssistWire("antigravity-gemini-3-pro-high"),
        CodeAssistWire("gpt-oss-120b-medium"),
    ],
    "ollama": [OllamaWire("qwen3:8b"), OllamaWire("gpt-oss:20b", num_ctx=8_192)],
    "claude-cli": [ClaudeCliWire("sonnet"), ClaudeCliWire("opus", mode="delegated")],
}


def sent(wire, seed, own=None):
    """The history of this seed, and the body that the wire makes of it.

    What the model `own` said in it was said by the wire's.
    """
    random = Random(seed)
    history, tools = made.history(random), made.tools(random)
    if own is not None:
        history = [m.replace(model=wire.name) if m.model == own else m for m in history]
    ask = wire.ask(
        history,
        random.choice((None, "Be brief.")),
        tools,
        schema=made.schema(random),
        settings=made.settings(random),
        stream=random.random() < 0.5,
    )
    return history, ask, json.loads(msgspec.json.encode(wire.to_wire(ask)))


def says_something(message):
    if isinstance(message.content, tuple):
        return any(type(part) is not Text or part.text for part in message.content)
    return bool(message.content)


@pytest.mark.parametrize("api", WIRES)
def test_every_request_is_accepted(api):
    """Never raises, is never refused, and drops no user's message."""
    wires = WIRES[api]
    for seed in range(FEWER.get(api, HISTORIES)):
        wire = wires[seed % len(wires)]

        history, ask, body = sent(wire, seed)

        is_other = wire.vendor == "ollama"  # speaks that wire, and is not its vendor
        problems = validators.problems(api, body, model=wire.model, lenient=is_other)
        assert not problems, f"seed {seed}, {wire.model}: {problems[0]}"
        shown = {message.id for message in ask.prepared.messages}
        for message in history:
            is_said = message.role is Role.USER and not message.results and says_something(message)
            assert not is_said or message.id in shown, f"seed {seed}: a user's message is dropped"


GITHUBS = [
    OpenAIChatWire("openai/gpt-4.1", vendor="github", dialect=GITHUB),
    OpenAIChatWire("meta/llama-3.3-70b-instruct", vendor="github", dialect=GITHUB),
    CopilotChatWire("claude-sonnet-4.5"),
    CopilotChatWire("gpt-5-mini"),
    CopilotResponsesWire("gpt-5-codex"),
]


def test_every_request_to_github_is_accepted():
    """In the accents of its two paths; thoughts of its own are among the messages."""
    for seed in range(pick(1_500, 60_000)):
        wire = GITHUBS[seed % len(GITHUBS)]

        _, _, body = sent(wire, seed, own="somebody:else")

        is_lenient = type(wire) is CopilotChatWire  # it has fields of its own
        problems = validators.problems(wire.api, body, lenient=is_lenient, model=wire.model)
        assert not problems, f"seed {seed}, {wire.model}: {problems[0]}"


def test_every_request_to_a_service_with_an_accent_is_accepted():
    """Of each host in the tables; who wants the user to have the last word gets that."""
    wires = [each.opened(each.model, "http://127.0.0.1:9", {}).wire for each in SERVICES]
    for seed in range(pick(1_500, 60_000)):
        wire = wires[seed % len(wires)]

        _, _, body = sent(wire, seed, own="somebody:else")

        problems = validators.problems(wire.api, body, lenient=True, model=wire.model)
        assert not problems, f"seed {seed}, {wire.model}: {problems[0]}"
        is_answered = body["messages"][-1]["role"] == "assistant"
        assert not (wire.rules.last_is_user and is_answered), f"seed {seed}, {wire.model}"


@pytest.mark.parametrize("api", WIRES)
def test_a_request_is_made_of_itself_again(api):
    """What was rendered and prepared once is passed on as it is."""
    wire = WIRES[api][0]
    for seed in range(FEWER.get(api, HISTORIES) // 20):
        _, ask, body = sent(wire, seed)

        again = wire.ask(
            ask.prepared.messages,
            ask.prepared.system,
            ask.prepared.tools,
            schema=ask.schema,
            settings=ask.settings,
            stream=ask.stream,
        )

        assert json.loads(msgspec.json.encode(wire.to_wire(again))) == body, f"seed {seed}"


@pytest.mark.parametrize("api", [api for api in WIRES if api != IN_WORDS])
def test_control_without_repairs_many_are_refused(api, monkeypatch):
    """The same histories without `render`: the validators find what is wrong with them."""
    wire, refused, count = WIRES[api][0], 0, 300

    def unrendered(messages, **_):
        said = [message for message in messages if message.role in (Role.USER, Role.ASSISTANT)]
        return Rendered(Shown(said), ())

    monkeypatch.setattr(prepare, "render", unrendered)
    for seed in range(count):
        _, _, body = sent(wire, seed)
        refused += bool(validators.problems(api, body, model=wire.model))

    assert refused > count / 5


def test_control_words_that_end_a_message_would_be_interpreted(monkeypatch):
    """The program reads files and commands out of them: what stands behind them is needed."""
    monkeypatch.setattr("holdfast.providers.claude_cli.wire.BEHIND", "see @notes.txt")

    _, _, body = sent(WIRES[IN_WORDS][0], 1)

    assert [each.rule for each in validators.problems(IN_WORDS, body)] == ["interpreted"]


def test_control_the_histories_are_broken():
    """Most of them need a repair, of every kind that there is."""
    repairs = [
        each.what for seed in range(500) for each in render(made.history(Random(seed))).repairs
    ]

    assert {"unanswered", "moved", "orphan", "renamed", "misplaced", "empty"} <= set(repairs)
    assert len(repairs) > 500
