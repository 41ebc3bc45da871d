"""F12, for what some vendors do before a question is put: a token is had, an account is found, a
server is looked at. Cancelled at every await of that, by the task or by a token, nothing is left
behind, no lock is held, and the next call of the same provider is answered.
"""

import asyncio
import json
import time
from contextlib import asynccontextmanager

import pytest

from bad_inputs import run
from code_assist import Google, says, write
from faults import calls
from github_server import asking, chat, copilot
from holdfast.cancel import CancelToken
from holdfast.errors import Cancelled
from holdfast.messages import Message
from holdfast.providers import open_provider
from holdfast.providers.shared_work import SharedWork
from holdfast.testing.faults import loops
from ollama_double import Ollama

ASKED = [Message.user("Hello.")]
ACCOUNT = {"name": "ada", "refresh_token": "refresh-ada", "project": "project-ada"}


@asynccontextmanager
async def by_copilot(_folder):
    async with asking(copilot, chat()) as (provider, _):
        yield provider


@asynccontextmanager
async def by_ollama(_folder, api=None):
    ollama = Ollama()
    async with ollama.served(), open_provider("ollama:qwen3:8b", base_url=ollama.url, api=api) as p:
        yield p


def by_ollama_itself(folder):
    return by_ollama(folder, "native")


@asynccontextmanager
async def by_antigravity(folder):
    path = write(folder / "accounts.json", ACCOUNT)
    async with (
        Google(says("Hello.")) as google,
        open_provider("antigravity:antigravity-gemini-3-flash", **google.options(path)) as provider,
    ):
        yield provider
    assert json.loads(path.read_text())["accounts"][0]["name"] == "ada"  # it is never half written


WAYS = {
    "copilot": by_copilot,
    "ollama": by_ollama,
    "ollama's own": by_ollama_itself,
    "antigravity": by_antigravity,
}


async def cancelled_at(provider, k, how):
    """Whether a cancel at the k-th await found the call still going."""
    if how == "task":
        return (await loops.cancel_at(provider.complete(ASKED), k)).is_hit
    token, hit = CancelToken(), []

    def cancel():
        hit.append(True)
        token.cancel("enough")

    try:
        await loops.act_at(provider.complete(ASKED, cancel_token=token), k, cancel)
    except Cancelled:
        pass
    return bool(hit)


def swept(vendor, how, folder, patience_s=10):
    """At how many awaits, at which of them it took long to end, and what was left behind.

    There is a fresh provider for each await: it has nothing yet, and goes all the way.
    """

    async def main():
        k, is_hit, late = 0, True, []
        async with WAYS[vendor](folder) as provider:
            assert (await provider.complete(ASKED)).text  # everything is loaded
        tasks, sockets = asyncio.all_tasks(), calls.open_sockets()
        while is_hit:
            k += 1
            async with WAYS[vendor](folder) as provider:
                started = time.monotonic()
                is_hit = await cancelled_at(provider, k, how)
                late += [k] if time.monotonic() - started > 1 else []
                async with asyncio.timeout(patience_s):
                    assert (await provider.complete(ASKED)).text, k
        return k, late, await calls.leaks(tasks, sockets)

    return run(main())


@pytest.mark.parametrize("how", ["task", "token"])
@pytest.mark.parametrize("vendor", WAYS)
def test_a_cancel_at_every_await_before_a_call_leaves_nothing_behind(vendor, how, tmp_path):
    k, late, left = swept(vendor, how, tmp_path)

    assert k > 5
    assert late == [] and left == []


def test_control_work_that_nobody_takes_over_is_found(tmp_path, monkeypatch):
    """Whoever comes next would wait for the one who was cancelled."""

    async def done(self, key, work):
        if (going := self._going.get(key)) is not None:
            await going
        self._going[key] = asyncio.get_running_loop().create_future()
        result = await work()
        del self._going[key]
        return result

    monkeypatch.setattr(SharedWork, "done", done)

    with pytest.raises(TimeoutError):
        swept("copilot", "task", tmp_path, patience_s=0.3)
