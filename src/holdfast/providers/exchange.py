"""One question put to a service: tries, limits, cancelling, and what is kept when it fails.

What a try sends is said by its `Attempts`; each has an empty answer and a reader of its own. The
connection of a try that ends, for whatever reason, is given back or closed before anything is
raised. What carries a request (HTTP, a program that is started) is the affair of the pipe.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, Protocol, TypeVar

from holdfast.cancel import CancelToken
from holdfast.errors import Cancelled, ConnectionFailed, ProviderError
from holdfast.messages import Stop
from holdfast.providers.answer import Answer
from holdfast.providers.attempts import Attempts
from holdfast.providers.base import Callbacks, Response
from holdfast.providers.credentials import Hidden
from holdfast.providers.fields import Object
from holdfast.providers.pipe import Reply, Timeouts
from holdfast.providers.replies import read_document, read_reply
from holdfast.providers.retries import Retries, retried
from holdfast.providers.wire import Ask, Wire
from holdfast.providers.wire_provider import OnRetry

T = TypeVar("T")
Q = TypeVar("Q")
Sent = TypeVar("Sent", contravariant=True)


class Sends(Protocol[Sent]):
    """What carries a request there, and the answer back."""

    @property
    def timeouts(self) -> Timeouts: ...

    async def send(self, request: Sent, /) -> Reply: ...


class _Tries(Retries):
    is_amended = False  # what the attempts said of the last error

    def wait_s(
        self, error: BaseException, *, has_output: bool = False, is_amended: bool = False
    ) -> float | None:
        is_amended = is_amended or self.is_amended
        wait_s = super().wait_s(error, has_output=has_output, is_amended=is_amended)
        if error.__cause__ is None:
            return wait_s
        from holdfast.providers.pipe_errors import is_final  # it loads the HTTP client

        return None if is_final(error) else wait_s


class Exchange(Generic[Q]):
    """A request, and how it is tried."""

    def __init__(
        self,
        pipe: Sends[Q],
        attempts: Attempts[Q],
        provider: str,
        tries_max: int,
        explain: Callable[[ProviderError], None] | None = None,
    ) -> None:
        self._pipe = pipe
        self._attempts = attempts
        self._provider = provider
        self._hidden = Hidden(())
        self._tries = _Tries(tries_max=tries_max)
        self._explain = explain
        self._reply: Reply | None = None
        self._answer: Answer | None = None

    async def complete(
        self,
        wire: Wire,
        ask: Ask,
        callbacks: Callbacks,
        cancel_token: CancelToken | None = None,
        on_retry: OnRetry | None = None,
    ) -> Response:
        """The answer, read by the wire. What there is of one goes along with the error."""
        check = None if cancel_token is None else cancel_token.raise_if_cancelled

        async def read(reply: Reply) -> Response:
            answer = self._answer = wire.answer(ask, callbacks)
            answer.about(request_id=reply.request_id)
            await read_reply(reply, wire.reader(answer), wire.framing, self._provider, check)
            return answer.response()

        if cancel_token is None:
            return await self._tried(read, on_retry)
        try:
            async with cancel_token.guard():
                return await self._tried(read, on_retry)
        except Cancelled as cancelled:
            if self._answer is not None:
                cancelled.partial = self._answer.partial(Stop.CANCELLED)
            raise

    async def document(self, *, is_list: bool = False) -> Object:
        """The JSON object that answers; a list, if one `is_list`, is its `data`."""

        async def read(reply: Reply) -> Object:
            return await read_document(reply, self._provider, is_list=is_list)

        return await self._tried(read, None)

    async def _tried(
        self, read: Callable[[Reply], Coroutine[Any, Any, T]], on_retry: OnRetry | None
    ) -> T:
        total_s = self._pipe.timeouts.total
        limit = asyncio.timeout(total_s)
        try:
            async with limit:
                return await retried(
                    lambda: self._try(read),
                    retries=self._tries,
                    has_output=lambda: self._answer is not None and self._answer.has_output,
                    on_retry=on_retry,
                )
        except TimeoutError:
            if not limit.expired():  # a callback raised it
                raise
            late = ConnectionFailed(f"no complete answer within {total_s:g} s (total limit)")
            self._tell(late)
            raise late from None

    async def _try(self, read: Callable[[Reply], Coroutine[Any, Any, T]]) -> T:
        self._reply = self._answer = None
        self._tries.is_amended = False
        try:
            request, self._hidden = await self._attempts.next()
            self._reply = reply = await self._pipe.send(request)
            try:
                return await read(reply)
            finally:
                await reply.close()
        except ProviderError as error:
            self._place(error)
            if await self._attempts.renewed(error):
                return await self._try(read)
            self._tries.is_amended = await self._attempts.amended(error)
            self._tell(error)
            raise

    def _place(self, error: ProviderError) -> None:
        """Say where it failed."""
        error.provider = error.provider or self._provider
        if (reply := self._reply) is not None:
            error.status = reply.status if error.status is None else error.status
            error.request_id = error.request_id or reply.request_id

    def _tell(self, error: ProviderError) -> None:
        """Say who failed and how far the answer came, and nothing that is secret."""
        self._place(error)
        facts = (error.detail, error.provider, error.status, error.request_id, error.retry_after_s)
        error.args = (*facts, *error.args[len(facts) :])
        if self._explain is not None:
            self._explain(error)
        self._hidden.error(error)
        if error.partial is None and self._answer is not None:
            error.partial = self._answer.partial()
