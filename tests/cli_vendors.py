"""A vendor for programs that run outside of the test: its server in a thread, on loopback.

with vendor("anthropic", ANTHROPIC.says("Hello.")) as (server, environment):
    ...          # `holdfast chat` with this environment asks it, with a key that it does not check
"""

from contextlib import contextmanager

from holdfast import sync
from holdfast.loop_thread import LoopThread
from holdfast.stores.values import Chunk
from holdfast.testing.replay.server import Server
from vendor_wires import VENDORS

ANTHROPIC = next(each for each in VENDORS if each.name == "anthropic")
KEY = "sk-ant-not-a-real-key-000000"


@contextmanager
def vendor(*answers):
    """The server, and what the environment of a program has to say so that it is asked."""
    thread = LoopThread("vendor")
    server = Server(*answers)
    thread.run(server.__aenter__())
    try:
        yield server, {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": KEY}
    finally:
        thread.run(server.__aexit__(None, None, None))
        thread.close()


def wait_for_partial(store, key, words):
    """Until another process would find this of an answer that is still coming in."""
    with sync.open(store) as sessions:
        said = ""
        for news in sessions.get(key).watch():
            if isinstance(news, Chunk):
                said += news.text
            if words in said:
                return
