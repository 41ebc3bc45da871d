"""The process of the local model: started once, shared, restarted, and never left behind.

The runtime here is a small module of our own that takes the place of the real one on the path, so
these tests need no extra and no weights. `test_local_model.py` runs the real one.
"""

import asyncio
import gc
import json
import os
import signal
import threading
import time
import urllib.error
import urllib.request

import pytest

from holdfast.errors import InvalidInput, Overloaded, ProtocolError
from holdfast.providers.local import server
from holdfast.providers.local.server import LocalServer
from processes import SAY, Script

RUNTIME = """
import http.server, json, os, sys, threading, time, types

print("words that are no answer", flush=True)

class CommonParams:
    def __init__(self):
        self.model = types.SimpleNamespace()
        self.cpuparams, self.cpuparams_batch = types.SimpleNamespace(), types.SimpleNamespace()

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        told = json.dumps(self.server.told).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)
    def log_message(self, *_):
        pass

class Server:
    def __init__(self, params):
        with open(params.model.path) as file:
            mood = file.read()
        if mood == "broken":
            os.write(2, b"E load: no such tensor\\n")
            raise RuntimeError("failed to init")
        if mood == "dies":
            os.write(2, b"terminate called without an active exception\\n")
            os.abort()
        if mood == "slow":
            time.sleep(60)
        listening = http.server.ThreadingHTTPServer((params.hostnames[0], params.port), Handler)
        listening.told = {
            "pid": os.getpid(), "keys": params.api_keys, "alias": sorted(params.model_alias),
            "n_ctx": params.n_ctx, "n_parallel": params.n_parallel,
            "threads": [params.cpuparams.n_threads, params.cpuparams_batch.n_threads],
            "argv": sys.orig_argv,
        }
        self.listening_address = "http://%s:%d" % listening.server_address
        threading.Thread(target=listening.serve_forever, daemon=True).start()
"""

PARENT = (
    SAY
    + """
import asyncio, sys, time
sys.path.insert(0, sys.argv[1])
from holdfast.providers.local.server import LocalServer
server = LocalServer(sys.argv[2], "tiny")
say(asyncio.run(server.address()))
"""
)


@pytest.fixture
def runtime(tmp_path, monkeypatch):
    """The folder of the runtime, first on the path of this process and so of its children."""
    folder = tmp_path / "runtime"
    folder.mkdir()
    (folder / "xllamacpp.py").write_text(RUNTIME)
    monkeypatch.syspath_prepend(folder)
    return folder


@pytest.fixture
def make(runtime, tmp_path):
    """Makes servers, and sees to it that none is left."""
    made = []

    def new(mood="good", **options):
        path = tmp_path / f"{mood}.gguf"
        path.write_text(mood)
        made.append(LocalServer(path, "tiny", **options))
        return made[-1]

    yield new
    for each in made:
        asyncio.run(each.close())
    assert server._registry == {}


def address(each):
    return asyncio.run(each.address())


def told(where):
    with urllib.request.urlopen(where, timeout=10) as answer:
        return json.load(answer)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            state = file.read().rpartition(")")[2].split()[0]
        # Its first thread may be done for before the others are.
        return state != "Z" or len(os.listdir(f"/proc/{pid}/task")) > 1
    except (FileNotFoundError, ProcessLookupError):
        return False


def ends(pid, within_s=10.0):
    until = time.monotonic() + within_s
    while is_alive(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return not is_alive(pid)


# ---- starting ----


def test_it_listens_on_loopback_with_the_options_given(make):
    each = make(context_tokens=300, threads=3, parallel=2)
    where = address(each)
    facts = told(where)

    assert where.startswith("http://127.0.0.1:")
    assert facts["alias"] == ["tiny"]
    assert (facts["n_ctx"], facts["n_parallel"]) == (600, 2)
    assert facts["threads"] == [3, 3]


def test_the_key_is_not_where_other_users_can_read_it(make):
    each = make()
    facts = told(address(each))

    assert facts["keys"] == [each.key]
    assert len(each.key) >= 32
    assert not any(each.key in word for word in facts["argv"])
    assert each.key not in repr(each)


def test_one_process_serves_all_who_ask_for_the_same(make):
    one, two, other = make(), make(), make(context_tokens=99)

    assert address(one) == address(two) != address(other)
    assert one.key == two.key != other.key


def test_many_tasks_and_threads_at_once_start_one_process(make):
    made = [make() for _ in range(8)]
    found = []

    async def several():
        found.extend(await asyncio.gather(*(each.address() for each in made)))

    threads = [threading.Thread(target=lambda: asyncio.run(several())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 24
    assert len(set(found)) == 1


def test_the_next_event_loop_goes_on_with_the_same_process(make):
    each = make()

    assert address(each) == address(each) == address(each)


def test_a_process_that_died_is_started_anew_with_the_same_key(make):
    each = make()
    first = told(address(each))
    os.kill(first["pid"], signal.SIGKILL)
    assert ends(first["pid"])
    second = told(address(each))

    assert second["pid"] != first["pid"]
    assert second["keys"] == first["keys"]


def test_what_it_prints_does_not_reach_the_terminal(make, capfd):
    address(make())
    with pytest.raises(ProtocolError):
        address(make("broken"))

    assert capfd.readouterr() == ("", "")


# ---- not starting ----


def test_without_the_extra_the_way_out_is_told(make, monkeypatch):
    each = make()
    monkeypatch.setattr(server.importlib.util, "find_spec", lambda name: None)

    with pytest.raises(InvalidInput, match=r"pip install 'holdfast\[local\]'"):
        address(each)


def test_weights_that_are_not_there_are_named(runtime, tmp_path):
    each = LocalServer(tmp_path / "none.gguf", "tiny")

    with pytest.raises(InvalidInput, match=r"none\.gguf are not there"):
        address(each)
    asyncio.run(each.close())


@pytest.mark.parametrize("mood", ["broken", "dies"])
def test_its_last_words_are_in_the_error(make, mood):
    words = {"broken": "failed to init; .*E load: no such tensor", "dies": "terminate called"}

    with pytest.raises(ProtocolError, match=f"tiny did not start; .*{words[mood]}") as caught:
        address(make(mood))
    assert caught.value.provider == "local"


def test_a_start_that_takes_too_long_is_given_up(make):
    begun = time.monotonic()

    with pytest.raises(Overloaded, match=r"not up in 1\.5 s"):
        address(make("slow", start_s_max=1.5))
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize("name", ["context_tokens", "threads", "parallel"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "2"])
def test_a_number_that_is_none_is_refused(name, value):
    with pytest.raises(InvalidInput, match=name):
        LocalServer("x.gguf", "tiny", **{name: value})


# ---- ending ----


def test_the_last_who_closes_ends_the_process(make):
    one, two = make(), make()
    pid = told(address(one))["pid"]
    address(two)
    asyncio.run(one.close())
    assert is_alive(pid)
    asyncio.run(two.close())

    assert not is_alive(pid)


def test_closing_twice_or_without_a_start_is_fine(make):
    one, two = make(), make()
    pid = told(address(one))["pid"]
    address(two)
    for _ in range(3):
        asyncio.run(one.close())
    asyncio.run(make().close())

    assert is_alive(pid)


def test_a_closed_one_says_so(make):
    each = make()
    asyncio.run(each.close())

    with pytest.raises(InvalidInput, match="was closed"):
        address(each)


def test_closed_while_it_starts_it_leaves_no_process(make):
    each = make("slow", start_s_max=2.0)

    async def main():
        starting = asyncio.create_task(each.address())
        await asyncio.sleep(0.3)
        starting.cancel()
        await each.close()
        with pytest.raises(asyncio.CancelledError):
            await starting

    asyncio.run(main())
    gc.collect()  # an open pipe or a running process would be a warning

    assert server._registry == {}


def test_a_parent_that_is_killed_takes_it_along(runtime, tmp_path):
    (tmp_path / "good.gguf").write_text("good")
    with Script(PARENT + "time.sleep(60)", runtime, tmp_path / "good.gguf") as parent:
        pid = told(parent.hears())["pid"]
        parent.process.send_signal(signal.SIGKILL)
        parent.process.wait()

        assert ends(pid)


def test_a_parent_that_just_ends_takes_it_along(runtime, tmp_path):
    (tmp_path / "good.gguf").write_text("good")
    with Script(PARENT + "sys.stdin.readline()", runtime, tmp_path / "good.gguf") as parent:
        pid = told(parent.hears())["pid"]
        parent.tell()
        parent.ends()

        assert ends(pid)


def test_ctrl_c_is_for_the_parent_alone(make):
    each = make()
    facts = told(address(each))
    os.kill(facts["pid"], signal.SIGINT)
    time.sleep(0.1)

    assert told(address(each))["pid"] == facts["pid"]


# ---- forks ----

FORKING = (
    PARENT
    + """
import os
if os.fork() == 0:
    say(asyncio.run(server.address()))
    asyncio.run(server.close())
    say(os.getpid())
time.sleep(60)
"""
)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_has_its_own_and_does_not_keep_the_other_alive(runtime, tmp_path):
    (tmp_path / "good.gguf").write_text("good")
    with Script(FORKING, runtime, tmp_path / "good.gguf") as parent:
        first = parent.hears()
        second = parent.hears()
        forked = int(parent.hears())
        pid = told(first)["pid"]
        with pytest.raises(urllib.error.URLError):
            told(second)
        assert first != second
        parent.process.send_signal(signal.SIGKILL)
        parent.process.wait()
        has_ended = ends(pid)

        assert is_alive(forked)
        os.kill(forked, signal.SIGKILL)
        assert has_ended


def test_it_starts_no_second_one_after_a_cancelled_start(make):
    each = make()

    async def main():
        starting = asyncio.create_task(each.address())
        await asyncio.sleep(0)
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        return await each.address(), await each.address()

    one, two = asyncio.run(main())

    assert one == two
