"""What the fault rows share."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from holdfast.testing.faults.forks import Forks

# A kill loses nothing that was written, synced or not; in memory the rows that kill are faster.
MEMORY = Path("/dev/shm")


@pytest.fixture
def fast_path():
    """A folder of its own, in memory where the system has such a place."""
    is_there = MEMORY.is_dir() and os.access(MEMORY, os.W_OK)
    folder = Path(tempfile.mkdtemp(prefix="holdfast-faults-", dir=MEMORY if is_there else None))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def programs():
    """The programs under test, each imported once: `programs("faults.controls:play")`."""
    running = {}

    def program(name):
        if name not in running:
            running[name] = Forks(name)
        return running[name]

    yield program
    for forks in running.values():
        forks.close()


@pytest.fixture
def turn_folder(programs, fast_path):
    """A folder with a store in `new`, to be copied: the session is there, and nothing was said."""
    (fast_path / "new").mkdir()
    made = [str(fast_path / "new" / name) for name in ("store.db", "log")]
    assert programs("faults.turns:prepare").run(*made) == 0
    return fast_path
