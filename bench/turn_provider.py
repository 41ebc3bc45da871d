"""Models for bench/turn.py: at once, so many pieces in a second, or as many as it can."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from holdfast.messages import Message
from holdfast.providers.base import Provider, Response
from holdfast.tools import Tool
from holdfast.usage import Usage

REPLY = "An answer of some five hundred characters. " * 12


class Instant(Provider):
    """Answers at once."""

    vendor = "openai"
    model = "gpt-5-mini"

    async def complete(
        self,
        messages: Sequence[Message],
        system_instruction: str | None = None,  # noqa: ARG002
        tools: Sequence[Tool] | None = None,  # noqa: ARG002
        *,
        on_chunk: Callable[[str], object] | None = None,
        **_: Any,
    ) -> Response:
        if on_chunk is not None:
            on_chunk(REPLY)
        message = Message.assistant(REPLY, stop="stop", model=self.name)
        return Response(message=message, usage=Usage(130 * len(messages), 130))


class Paced(Provider):
    """Says `pieces` pieces, `rate` in a second; each is the time at which it was due."""

    vendor = "openai"
    model = "gpt-5-mini"

    def __init__(self, rate: float, pieces: int) -> None:
        self.rate = rate
        self.pieces = pieces

    async def complete(
        self,
        messages: Sequence[Message],
        system_instruction: str | None = None,  # noqa: ARG002
        tools: Sequence[Tool] | None = None,  # noqa: ARG002
        *,
        on_chunk: Callable[[str], object] | None = None,
        **_: Any,
    ) -> Response:
        assert on_chunk is not None
        said = []
        start = time.perf_counter()
        for number in range(1, self.pieces + 1):
            due = start + number / self.rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            said.append(f"{due:.6f} ")
            on_chunk(said[-1])
        message = Message.assistant("".join(said), stop="stop", model=self.name)
        return Response(message=message, usage=Usage(130 * len(messages), 2 * self.pieces))


class Torrent(Provider):
    """Says many short pieces as quickly as it can, and lets others run now and then."""

    vendor = "openai"
    model = "gpt-5-mini"

    def __init__(self, pieces: int) -> None:
        self.pieces = pieces

    async def complete(
        self,
        messages: Sequence[Message],
        system_instruction: str | None = None,  # noqa: ARG002
        tools: Sequence[Tool] | None = None,  # noqa: ARG002
        *,
        on_chunk: Callable[[str], object] | None = None,
        **_: Any,
    ) -> Response:
        assert on_chunk is not None
        for number in range(self.pieces):
            on_chunk("word ")
            if number % 20 == 0:
                await asyncio.sleep(0)
        message = Message.assistant("word " * self.pieces, stop="stop", model=self.name)
        return Response(message=message, usage=Usage(130 * len(messages), self.pieces))
