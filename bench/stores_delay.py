"""256 callers on a disk that is 1 ms slower, for bench/stores.py.

A shim, compiled at run time and loaded before the C library, sleeps in fsync and fdatasync. Both
sides run under it, in a process of its own.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from stores_append import Burst, many_callers
from stores_table import sync_us

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

static int later(const char *name, int fd) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    usleep(1000);
    return real(fd);
}
int fsync(int fd) { return later("fsync", fd); }
int fdatasync(int fd) { return later("fdatasync", fd); }
"""


def missing() -> str | None:
    """What is needed and is not here."""
    if not sys.platform.startswith("linux"):
        return "LD_PRELOAD is used on Linux alone"
    return None if shutil.which("gcc") else "there is no gcc to compile a slower fsync with"


def delayed(folder: Path, rounds: int) -> tuple[float, dict[str, list[Burst]]]:
    """The time of a sync under the shim in us, and what `many_callers` finds under it."""
    source, library, slow = folder / "delay.c", folder / "delay.so", folder / "slow"
    source.write_text(SHIM)
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"], check=True)
    slow.mkdir()
    done = subprocess.run(
        [sys.executable, __file__, slow, str(rounds)],
        env={**os.environ, "LD_PRELOAD": str(library)},
        stdout=subprocess.PIPE,
        check=True,
    )
    us, found = json.loads(done.stdout)
    return us, {name: [Burst(*each) for each in bursts] for name, bursts in found.items()}


def main() -> None:
    folder, rounds = Path(sys.argv[1]), int(sys.argv[2])
    found = asyncio.run(many_callers(folder, rounds=rounds, sustained_s=0))
    print(json.dumps([sync_us(folder), found]))


if __name__ == "__main__":
    main()
