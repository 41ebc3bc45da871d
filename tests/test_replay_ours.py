"""Every recorded answer, through holdfast's own adapters; in memory, and over a real connection.

The bars are those of the command: `python -m holdfast.testing.replay FOLDER`.
"""

import asyncio
import os
from pathlib import Path

import pytest

from holdfast import Message
from holdfast.errors import ProviderError
from holdfast.providers.address import Address
from holdfast.providers.http_provider import HttpProvider
from holdfast.testing.replay.check import check_folder, table
from holdfast.testing.replay.ours import adapters, wire_for
from holdfast.testing.replay.recordings import BUILT, Recording, read_folder
from holdfast.testing.replay.server import Answer, Server

ROOT = Path(__file__).parent.parent
CORPUS = Path(os.environ.get("HOLDFAST_CORPUS") or ROOT.parent / "shared" / "corpus")
TRAFFIC = CORPUS / "traffic"
need_corpus = pytest.mark.skipif(not TRAFFIC.is_dir(), reason=f"there is no corpus at {CORPUS}")
FOLDERS = (*BUILT, "errors-reported")


@need_corpus
@pytest.mark.parametrize("folder", FOLDERS)
def test_the_bars_of_replay_are_met(folder):
    """(a) and (b) 100 %, (c) 98 %; what is missing is in the message."""
    report = check_folder(TRAFFIC / folder, adapters())

    lines = [line for line in table(report) if "FAILED" in line]
    for what in ("a", "b"):
        passed, count = report.share(what)
        assert passed == count, lines[:3]
    passed, count = report.share("c")
    assert passed >= 0.98 * count, lines[:3]


# What a program prints goes through a program: see test_provider_claude_cli.py.
OVER_HTTP = [folder for folder in FOLDERS if folder != "claude-cli"]


@need_corpus
@pytest.mark.parametrize("folder", OVER_HTTP)
def test_over_a_connection_it_is_the_same(folder):
    """A server answers as recorded, byte for byte, cut into pieces of odd sizes."""
    judged, count = adapters(), 0
    recordings = [each for each in read_folder(TRAFFIC / folder) if isinstance(each, Recording)]
    for exchange in (each for recording in recordings for each in recording.exchanges):
        if exchange.wire is not None:
            read = asyncio.run(over_http(exchange, piece=len(exchange.data) // 5 + 1 + count % 7))

            assert read == outcome(judged[exchange.wire], exchange), exchange.name
            count += 1
    assert count


def outcome(adapter, exchange):
    """What matters of an answer, or which error it is."""
    try:
        return facts(adapter.read(exchange))
    except ProviderError as error:
        return type(error), error.status in (None, exchange.status)


class AnyProvider(HttpProvider):
    vendor = "recorded"


async def over_http(exchange, piece):
    told = {"on_chunk": lambda _: None} if exchange.is_stream else {}
    async with Server(Answer.of(exchange, piece=piece)) as server:
        provider = AnyProvider(wire_for(exchange), Address(server.url), tries_max=1)
        try:
            return facts(await provider.complete([Message.user("Hello.")], **told))
        except ProviderError as error:
            return type(error), error.status in (None, exchange.status)
        finally:
            await provider.close()


def facts(response):
    message = response.message
    calls = [(call.name, call.arguments, call.signature) for call in message.tool_calls]
    return message.text, calls, message.stop, response.usage, response.model
