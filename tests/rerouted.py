"""A client whose requests all come to one server on loopback, wherever they wanted to go.

async with rerouted(server.url) as (client, wanted):
    open_provider("openai:x", base_url="https://api.groq.com/openai/v1", client=client)
wanted                        # the addresses, as they were asked for
"""

from contextlib import asynccontextmanager

import httpx2


class _Rerouted(httpx2.AsyncHTTPTransport):
    def __init__(self, url, paths):
        super().__init__()
        self._server = httpx2.URL(url)
        self._paths = paths
        self.wanted = []

    async def handle_async_request(self, request):
        self.wanted.append(str(request.url))
        to = {"scheme": "http", "host": self._server.host, "port": self._server.port}
        if path := self._paths.get(self.wanted[-1]):
            to["path"] = path
        request.url = request.url.copy_with(**to)
        return await super().handle_async_request(request)


@asynccontextmanager
async def rerouted(url, paths=()):
    """The client, and the list of the addresses it was asked for; some have a path of their own."""
    transport = _Rerouted(url, dict(paths))
    async with httpx2.AsyncClient(transport=transport) as client:
        yield client, transport.wanted
