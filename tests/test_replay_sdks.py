"""The vendors' SDKs read the same bytes as the judge's own readings, and say the same.

Where an SDK cannot read a recording, or reads it in another way, that is listed with its reason.
"""

import os
import re
import warnings
from pathlib import Path

import pytest

import replay_recordings as ours
from holdfast.testing.replay import readings, sdks
from holdfast.testing.replay.recordings import CLAUDE_CLI, CODE_ASSIST, WIRES, read_folder

pytestmark = pytest.mark.usefixtures("uncovered")

HAVE_SDK = [wire for wire in WIRES if wire not in (CODE_ASSIST, CLAUDE_CLI)]

ROOT = Path(__file__).parent.parent
CORPUS = Path(os.environ.get("HOLDFAST_CORPUS") or ROOT.parent / "shared" / "corpus")
TRAFFIC = CORPUS / "traffic"
needs_traffic = pytest.mark.skipif(
    not TRAFFIC.is_dir(), reason=f"no corpus of traffic in {CORPUS} (HOLDFAST_CORPUS)"
)

# What an SDK raises or says otherwise, and why the reading is right all the same.
REASONS = {
    r"LengthFinishReasonError": "its stream helper refuses an answer that was cut at max_tokens",
    r"Expected list delta entry to have an `index`": "it cannot join citations in pieces",
    r"Lifecycle response identity changed": "it insists on one id; Copilot changes it",
    r"'int' object has no attribute 'upper'": "it does not know finishReason as a number",
    r"Data should be valid base64": "a signature in a fixture that somebody has shortened",
}
OTHERWISE = {
    "ai--anthropic-tool-search-bm25": "two answers in one file; the SDK reads on after the end",
}


LEAST = {"ollama": 25}  # of so many recordings, where there are not a hundred


def own_reading(exchange):
    """Without what an SDK has no place for: Ollama's knows no ids of calls, and no cache."""
    reading = readings.read(exchange)
    if exchange.wire != "ollama":
        return reading
    calls = tuple(call._replace(id=None) for call in reading.calls)
    return reading._replace(calls=calls, usage=reading.usage.replace(cache_read=None))


def why_not(exchange):
    if exchange.is_stream and not (exchange.is_sse or exchange.is_lines):
        return "the SDK asks for events, and cannot read the array"
    return next((why for name, why in OTHERWISE.items() if name in exchange.file), None)


def sdk_reading(exchange):
    with warnings.catch_warnings():  # enums that the SDK does not know yet
        warnings.simplefilter("ignore")
        return sdks.read(exchange)


@pytest.mark.parametrize("name", [*HAVE_SDK, *(f"{wire} stream" for wire in HAVE_SDK)])
def test_our_own_recordings_are_read_alike(name):
    wire, _, stream = name.partition(" ")
    if reason := sdks.missing(wire):
        pytest.skip(reason)
    exchange = ours.ALL[wire](stream=bool(stream)).exchanges[0]

    assert sdks.differences(own_reading(exchange), sdk_reading(exchange)) == []


@needs_traffic
@pytest.mark.parametrize("wire", HAVE_SDK)
def test_recorded_answers_are_read_alike(wire, subtests):
    if reason := sdks.missing(wire):
        pytest.skip(reason)
    alike, otherwise = 0, 0
    exchanges = [each for recording in read_folder(TRAFFIC) for each in recording.exchanges]
    for exchange in exchanges:
        if exchange.wire != wire or exchange.why_not or why_not(exchange):
            continue
        reading = own_reading(exchange)
        if reading.error or reading.is_blocked:
            continue
        with subtests.test(name=exchange.name):
            try:
                sdk = sdk_reading(exchange)
            except Exception as error:
                said = f"{type(error).__name__}: {error}"
                assert any(re.search(pattern, said) for pattern in REASONS), said
                otherwise += 1
                continue
            assert sdks.differences(reading, sdk) == []
            alike += 1

    assert alike >= LEAST.get(wire, 100)
    assert otherwise < 12


def test_a_difference_is_told():
    reading = readings.Reading(text="a", calls=(readings.Call("1", "f", {}),))

    found = sdks.differences(reading, readings.Reading(text="b"))

    assert [each.partition(":")[0] for each in found] == ["text", "calls"]
