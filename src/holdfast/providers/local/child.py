"""The process that the local model runs in: `python -m holdfast.providers.local.child`.

Its parent, `server.py`, writes one line of JSON to its standard input (the options; the key is
among them, and arguments could be read by other users) and reads one from its standard output: the
address, or why there is none. From then on the pipe only says that the parent lives: when it
closes, however that came about, this process ends at once.
"""

import importlib
import json
import os
import signal
import sys
import threading
import time
from typing import Any

_LOOK_EVERY_S = 1.0
_ERRORS_ONLY = 1
_PROMPT_CACHE_MIB = 128  # 8 GiB if nothing is said


def main() -> None:
    parent = os.getppid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which may go on
    options = json.loads(sys.stdin.buffer.readline() or b"null")
    if options is None:
        return  # the parent was gone before it could ask
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever the runtime prints is no answer
    threading.Thread(target=_end_with_the_pipe, daemon=True).start()
    try:
        server = start(options)
        said = {"address": server.listening_address}
    except Exception as error:  # noqa: BLE001 - told to the parent, which raises it
        said = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(said), file=answer, flush=True)
    answer.close()
    # A process that the parent has forked keeps the pipe open, but it is no parent of ours.
    while "address" in said and os.getppid() == parent:
        time.sleep(_LOOK_EVERY_S)
    sys.stderr.flush()
    os._exit(0)


def start(options: dict[str, Any]) -> Any:
    """The server of llama.cpp, with its threads, listening on loopback."""
    xllamacpp = importlib.import_module("xllamacpp")  # it has no types
    params = xllamacpp.CommonParams()
    params.model.path = options["path"]
    params.model_alias = {options["name"]}  # else the path would be the name
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [options["key"]]
    params.n_parallel = options["parallel"]
    params.n_ctx = options["context_tokens"] * options["parallel"]  # divided among them
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options["threads"]
    params.cache_ram_mib = _PROMPT_CACHE_MIB
    params.use_jinja = True
    params.warmup = False
    params.offline = True
    params.ui = False
    params.verbosity = _ERRORS_ONLY
    return xllamacpp.Server(params)


def _end_with_the_pipe() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main()
