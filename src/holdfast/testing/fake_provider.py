"""A model that answers what it is told to: for tests of what is built on models.

    provider = FakeProvider("Hello.", calls("look", city="Turin"), Overloaded(), "Sunny.")
    reply = await provider.complete([Message.user("I am Ada.")])
    assert reply.text == "Hello." and provider.requests[0].messages[0].text == "I am Ada."

An answer is text, a Message, an error to be raised, a `Halt` (an answer that stops in the middle),
or a function from the request to one of them, plain or async; each is given once, in order. It
behaves as a real model does where that matters: what callbacks hear comes in pieces, thinking
before words before calls; a cancel is noticed between them and keeps what there was, tokens are
counted, and a request that is longer than its window is refused before anything is answered.
"""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

from holdfast.cancel import CancelToken
from holdfast.codec import plain
from holdfast.errors import Cancelled, ContextOverflow, InvalidInput, ProviderError
from holdfast.frozen import EMPTY, FrozenDict
from holdfast.messages import Message, Role, Stop, ToolCall
from holdfast.parts import Thinking
from holdfast.providers.base import Callbacks, Provider, Response
from holdfast.settings import Settings
from holdfast.tools import Tool
from holdfast.usage import Prices, Usage
from holdfast.window.render import render

CHARACTERS_A_TOKEN = 4
_ids = count(1)


class Request(NamedTuple):
    """What a model was asked."""

    messages: tuple[Message, ...]
    system: str | None
    tools: tuple[Tool, ...]
    schema: FrozenDict
    settings: Settings | None
    conversation: str | None

    @property
    def tokens(self) -> int:
        """Some four characters of everything that is said are a token."""
        said = sum(len(plain(message)) for message in self.messages)
        told = len(self.system or "") + sum(len(str(dict(t.declaration))) for t in self.tools)
        return (said + told) // CHARACTERS_A_TOKEN + 1


class Halt(NamedTuple):
    """An answer that stops after so many pieces: until `then` is set, or with that error.

    The error is raised with what was given by then as its `partial`, as a broken stream is.
    """

    answer: str | Message
    then: asyncio.Event | ProviderError
    after: int = 1


Answer = str | Message | BaseException | Halt
Script = Answer | Callable[[Request], Answer | Awaitable[Answer]]


class FakeProvider(Provider):
    """A model that gives the answers it was made with. `requests` are those it was asked."""

    def __init__(
        self,
        *answers: Script,
        name: str = "fake:model",
        context: int = 200_000,
        output: int = 8_000,
        prices: Prices | None = None,
        pause_s: float = 0.0,
    ) -> None:
        """`pause_s` is waited before each piece of an answer."""
        self.vendor, _, self.model = name.partition(":")
        self.requests: list[Request] = []
        self.prices = prices
        self._answers = list(answers)
        self._context = context
        self._output = output
        self._pause_s = pause_s

    @property
    def context_limit(self) -> int:
        return self._context

    @property
    def output_limit(self) -> int:
        return self._output

    def add(self, *answers: Script) -> None:
        """More answers, behind those that are left."""
        self._answers += answers

    async def count_tokens(
        self,
        messages: Sequence[Message],
        system_instruction: str | None = None,
        tools: Sequence[Tool] | None = None,
    ) -> int:
        asked = (render(messages).messages, system_instruction, tuple(tools or ()))
        return Request(*asked, EMPTY, None, None).tokens

    async def complete(
        self,
        messages: Sequence[Message],
        system_instruction: str | None = None,
        tools: Sequence[Tool] | None = None,
        *,
        response_schema: Mapping[str, Any] | None = None,
        settings: Settings | None = None,
        conversation: str | None = None,
        cancel_token: CancelToken | None = None,
        on_chunk: Callable[[str], object] | None = None,
        on_usage_update: Callable[[Usage], object] | None = None,
        on_thinking: Callable[[str], object] | None = None,
        on_tool_call: Callable[[ToolCall], object] | None = None,
        on_retry: Callable[[ProviderError, int, float], object] | None = None,  # noqa: ARG002
    ) -> Response:
        request = Request(
            tuple(render(messages).messages),
            system_instruction,
            tuple(tools or ()),
            FrozenDict(response_schema or {}),
            settings,
            conversation,
        )
        self.requests.append(request)
        if request.tokens > self._context:
            raise ContextOverflow(
                f"{request.tokens} tokens exceed the limit of {self._context}",
                self.name,
                400,
                tokens_found=request.tokens,
                tokens_max=self._context,
            )
        cancel = cancel_token or CancelToken()
        answer, halt = await self._next(request, cancel)
        used = Usage(input=request.tokens)
        if on_usage_update is not None:
            on_usage_update(used)
        saying = _Saying(answer, cancel, self._pause_s, halt, used)
        await saying.all(Callbacks(on_chunk, on_usage_update, on_thinking, on_tool_call))
        usage = used.replace(output=len(plain(answer)) // CHARACTERS_A_TOKEN + 1)
        if on_usage_update is not None:
            on_usage_update(usage)
        return Response(message=answer, usage=usage, model=self.model, id=f"answer-{next(_ids)}")

    async def _next(self, request: Request, cancel: CancelToken) -> tuple[Message, Halt | None]:
        """The next answer, as a message of this model, and where it halts; an error is raised."""
        if not self._answers:
            raise InvalidInput("FakeProvider", "has no answer left: give it more with add(...)")
        answer: Any = self._answers.pop(0)
        if callable(answer) and not isinstance(answer, BaseException):
            answer = answer(request)
        if inspect.isawaitable(answer):
            answer = await _awaited(answer, cancel)
        if isinstance(answer, BaseException):
            raise answer
        halt = answer if isinstance(answer, Halt) else None
        return self._message(answer if halt is None else halt.answer), halt

    def _message(self, answer: Any) -> Message:
        if isinstance(answer, str):
            answer = Message.assistant(answer)
        if not isinstance(answer, Message) or answer.role is not Role.ASSISTANT:
            raise InvalidInput("an answer", f"is text or an assistant's message, not {answer!r}")
        stop = answer.stop or (Stop.TOOL_USE if answer.calls else Stop.STOP)
        return answer.replace(model=self.name, stop=str(stop))


class _Saying:
    """An answer, given piece by piece; what was given by then is in the error that ends it."""

    def __init__(
        self,
        answer: Message,
        cancel: CancelToken,
        pause_s: float,
        halt: Halt | None,
        used: Usage,
    ) -> None:
        self._answer = answer
        self._cancel = cancel
        self._pause_s = pause_s
        self._halt = halt
        self._used = used
        self._given = 0
        self._said = ""
        self._called: list[ToolCall] = []

    async def all(self, tell: Callbacks) -> None:
        """Thoughts, word by word, and calls, as far as anybody listens."""
        for thought in self._thoughts() if tell.on_thinking is not None else ():
            await self._wait()
            tell.on_thinking(thought)  # type: ignore[misc]
        for piece in _pieces(self._answer.text) if tell.on_chunk is not None else ():
            await self._wait()
            self._said += piece
            tell.on_chunk(piece)  # type: ignore[misc]
        for call in self._answer.calls if tell.on_tool_call is not None else ():
            await self._wait()
            self._called.append(call)
            tell.on_tool_call(call)  # type: ignore[misc]
        await self._wait()

    def _thoughts(self) -> Iterator[str]:
        content = self._answer.content
        for part in content if isinstance(content, tuple) else ():
            if isinstance(part, Thinking) and part.text:
                yield part.text

    async def _wait(self) -> None:
        """Before a piece, and before the end."""
        halt = self._halt if self._halt and self._given >= self._halt.after else None
        self._given += 1
        try:
            async with self._cancel.guard():
                await asyncio.sleep(self._pause_s)
                if halt is not None and isinstance(halt.then, asyncio.Event):
                    await halt.then.wait()
        except Cancelled as error:
            error.partial = self._partial(Stop.CANCELLED)
            raise
        if halt is not None and isinstance(halt.then, ProviderError):
            halt.then.partial = self._partial(Stop.ERROR)
            raise halt.then

    def _partial(self, stop: Stop) -> Response:
        message = Message.assistant(self._said or None, tool_calls=self._called, stop=str(stop))
        said = len(self._said) // CHARACTERS_A_TOKEN
        return Response(message=message, usage=self._used.replace(output=said))


async def _awaited(answer: Awaitable[Any], cancel: CancelToken) -> Any:
    if cancel.is_cancelled and inspect.iscoroutine(answer):
        answer.close()  # nobody will wait for it
    async with cancel.guard():
        return await answer


def _pieces(text: str | None) -> Iterator[str]:
    """Words, each but the first with the space before it."""
    for place, word in enumerate(text.split(" ") if text else ()):
        yield f" {word}" if place else word


def calls(name: str, text: str | None = None, **arguments: Any) -> Message:
    """An answer that calls a tool, with these arguments."""
    written = json.dumps(arguments, ensure_ascii=False)
    call = ToolCall(id=f"call-{next(_ids)}", name=name, arguments=written)
    return Message.assistant(text, tool_calls=[call])
