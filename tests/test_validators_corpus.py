"""Real requests through the validators: what a vendor took has no problem, what it refused has one.

The corpus is data of others and not part of the project: HOLDFAST_CORPUS names its folder, and
without it these tests are skipped. Of its traffic, the files count that were recorded between a
client and the real service; in fixtures and derived files the request was not kept, or not sent.
"""

import json
import os
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from holdfast.testing import validators

ROOT = Path(__file__).parent.parent
CORPUS = Path(os.environ.get("HOLDFAST_CORPUS") or ROOT.parent / "shared" / "corpus")
TRAFFIC = CORPUS / "traffic"
FOLDERS = (
    *("anthropic", "openai-chat", "openai-responses", "azure-openai", "openai-compatible"),
    *("google", "ollama"),
)

needs_traffic = pytest.mark.skipif(
    not TRAFFIC.is_dir(), reason=f"no corpus of traffic in {CORPUS} (HOLDFAST_CORPUS)"
)

# Accepted then, and against the published rules: the problems it has, and why it is kept apart.
ODD = {
    # An early recording, with claude-3-opus: the result names the call of another run. Today the
    # answer is "unexpected `tool_use_id` found in `tool_result` blocks".
    "dd-trace-py--anthropic_completion_tools_call_with_tool_result_stream_helper-9da467.json": {
        "tool-result-without-call",
        "tool-call-without-result",
    },
}

# Refused for what the structure of a request cannot show: the sentence, and what it is about.
NOT_STRUCTURE = {
    r"prompt is too long: \d+ tokens": "the length, in the vendor's tokens",
    r"maximum context length is \d+ tokens": "the length, in the vendor's tokens",
    r"input token count \(\d+\) exceeds": "the length, in the vendor's tokens",
    r"exceeded max context length by \d+ tokens": "the length, in the vendor's tokens",
    r"Error while downloading https?://": "an address that the vendor could not read",
    r"Cannot fetch content from the provided URL": "an address that the vendor could not read",
    r"requested model '[^']+' does not exist": "the name of a model",
    r"Incorrect API key provided": "the key",
    r"Tool call validation failed": "what the model answered",
}


class Exchange(NamedTuple):
    """A recorded request, ready for its validator, and what was answered."""

    file: str
    number: int
    api: str
    body: object
    options: dict
    status: int
    answer: object

    def problems(self):
        return validators.problems(self.api, self.body, **self.options)


def exchanges_of(folder):
    for path in sorted((TRAFFIC / folder).glob("*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["provenance"] != "recorded":
            continue
        for number, raw in enumerate(data["exchanges"]):
            if raw["api"] == "ollama-generate":
                continue  # not a conversation
            yield _exchange(folder, path.name, number, raw)


def _exchange(folder, file, number, raw):
    body, options = raw["request"]["body"], {}
    if raw["api"].startswith(("messages", "count-tokens")) and folder == "anthropic":
        api = "anthropic"
        if raw["api"] == "count-tokens":  # takes the same body, but for the one limit
            body = {**body, "max_tokens": 64_000}
    elif raw["api"] in {"chat-completions", "responses"}:
        api = "openai-chat" if raw["api"] == "chat-completions" else "openai-responses"
        # Google and Ollama have endpoints that speak OpenAI's wire: compatible servers.
        options = {"lenient": folder in {"openai-compatible", "google", "ollama"}}
    elif raw["api"] == "ollama-chat":
        api = "ollama"
    else:
        api = "google"
        options = {"model": raw["request"]["path"].partition("models/")[2].partition(":")[0]}
        if raw["api"].startswith("count-tokens"):  # the request may stand inside an envelope
            body = body.get("generateContentRequest", body)
    answer = raw["response"].get("body")
    return Exchange(file, number, api, body, options, raw["response"]["status"], answer)


@needs_traffic
@pytest.mark.parametrize("folder", FOLDERS)
def test_every_request_that_was_accepted_has_no_problem(folder, subtests):
    accepted = [each for each in exchanges_of(folder) if each.status < 400]
    for each in accepted:
        if each.file in ODD:
            assert {problem.rule for problem in each.problems()} == ODD[each.file]
            continue
        with subtests.test(file=each.file, number=each.number):
            assert [str(problem) for problem in each.problems()] == []

    assert len(accepted) > 30


@needs_traffic
def test_every_request_that_was_refused_for_its_structure_has_a_problem(subtests):
    """A refusal that is about something else is listed with what it is about; none is unused."""
    refused = [each for folder in FOLDERS for each in exchanges_of(folder) if each.status == 400]
    unused = set(NOT_STRUCTURE)
    caught = 0
    for each in refused:
        sentence = json.dumps(each.answer, ensure_ascii=False)
        reasons = {pattern for pattern in NOT_STRUCTURE if re.search(pattern, sentence)}
        unused -= reasons
        caught += not reasons
        with subtests.test(file=each.file, number=each.number):
            assert reasons or each.problems(), sentence

    assert unused == set()
    assert caught > 0


def without_one(value):
    """Copies of `value`, each without one of its calls or one of its results."""
    if isinstance(value, dict):
        for key, inner in value.items():
            for less in without_one(inner):
                yield {**value, key: less}
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            if is_half_of_a_pair(inner):
                yield value[:number] + value[number + 1 :]
            for less in without_one(inner):
                yield value[:number] + [less] + value[number + 1 :]


def is_half_of_a_pair(item):
    if not isinstance(item, dict):
        return False
    of_google = {"functionCall", "function_call", "functionResponse", "function_response"}
    types = {"tool_use", "tool_result", "function_call", "function_call_output"}
    is_chat_call = item.get("type") == "function" and "id" in item
    return (
        is_chat_call
        or item.get("role") == "tool"
        or bool(of_google.intersection(item) or types.intersection([item.get("type")]))
    )


@needs_traffic
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_call_or_a_result_taken_out_of_an_accepted_request_is_missed(folder, subtests):
    """
    But for two cases, where the other half is not in the body: the server has it, or it is
    the search for a tool.
    """
    tried = 0
    for each in exchanges_of(folder):
        elsewhere = {"previous_response_id", "conversation"}.intersection(each.body)
        if each.status >= 400 or elsewhere or "tool_search_call" in json.dumps(each.body):
            continue
        for number, body in enumerate(without_one(each.body)):
            tried += 1
            with subtests.test(file=each.file, number=each.number, taken=number):
                assert each._replace(body=body).problems() != []

    assert tried > 10


@needs_traffic
def test_the_odd_requests_are_still_there():
    files = {path.name for folder in FOLDERS for path in (TRAFFIC / folder).glob("*.json")}

    assert set(ODD) - files == set()
