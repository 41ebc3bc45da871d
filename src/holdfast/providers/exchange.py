"""One question put to a service: tries, limits, cancelling, and what is kept when it fails.

The body of the request is encoded once, however often it is sent; each try has an empty answer and
a reader of its own. The connection of a try that ends, for whatever reason, is given back or closed
before anything is raised.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from holdfast.cancel import CancelToken
from holdfast.errors import Cancelled, ConnectionFailed, ProviderError
from holdfast.messages import Stop
from holdfast.providers.answer import Answer
from holdfast.providers.base import Callbacks, Response
from holdfast.providers.credentials import Hidden
from holdfast.providers.fields import Object
from holdfast.providers.pipe import Pipe, Reply, Request
from holdfast.providers.pipe_errors import is_final
from holdfast.providers.replies import read_document, read_reply
from holdfast.providers.retries import Retries, retried
from holdfast.providers.wire import Ask, Wire

OnRetry = Callable[[ProviderError, int, float], object]
T = TypeVar("T")


class _Tries(Retries):
    def wait_s(self, error: BaseException, *, has_output: bool = False) -> float | None:
        wait_s = super().wait_s(error, has_output=has_output)
        return None if is_final(error) else wait_s


class Exchange:
    """A request that is ready to be sent, and how it is tried."""

    def __init__(
        self, pipe: Pipe, request: Request, provider: str, hidden: Hidden, tries_max: int
    ) -> None:
        self._pipe = pipe
        self._request = request
        self._provider = provider
        self._hidden = hidden
        self._tries_max = tries_max
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

    async def document(self) -> Object:
        """The JSON object that answers."""

        async def read(reply: Reply) -> Object:
            return await read_document(reply, self._provider)

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
                    retries=_Tries(tries_max=self._tries_max),
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
        try:
            self._reply = reply = await self._pipe.send(self._request)
            try:
                return await read(reply)
            finally:
                await reply.close()
        except ProviderError as error:
            self._tell(error)
            raise

    def _tell(self, error: ProviderError) -> None:
        """Say who failed and how far the answer came, and nothing that is secret."""
        reply = self._reply
        error.provider = error.provider or self._provider
        if reply is not None:
            error.status = reply.status if error.status is None else error.status
            error.request_id = error.request_id or reply.request_id
        facts = (error.detail, error.provider, error.status, error.request_id, error.retry_after_s)
        error.args = (*facts, *error.args[len(facts) :])
        self._hidden.error(error)
        if error.partial is None and self._answer is not None:
            error.partial = self._answer.partial()
