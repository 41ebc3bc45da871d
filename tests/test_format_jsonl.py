"""A folder of every format of our sidecars opens whole, wherever it was copied to.

Files of nanobot's own years are in `test_jsonl_eras.py`, with a sidecar that is too new.
"""

import asyncio
import shutil
from pathlib import Path

import pytest

from holdfast.stores import open_store
from holdfast.stores.jsonl.sidecar import VERSION
from old_conversation import read_everything, use

FOLDERS = sorted((Path(__file__).parent / "format").glob("jsonl-*"))


def run(scenario, path):
    async def main():
        async with open_store(f"jsonl:{path}") as store:
            return await scenario(store)

    return asyncio.run(main())


@pytest.fixture(params=FOLDERS, ids=lambda path: path.stem)
def old(request, tmp_path):
    """A copy of a folder that a former version wrote."""
    return Path(shutil.copytree(request.param, tmp_path / "sessions"))


def test_there_is_a_folder_of_every_format():
    assert [path.stem for path in FOLDERS] == [f"jsonl-{n}" for n in range(1, VERSION + 1)]


def test_everything_in_an_old_folder_is_read(old):
    """And nothing in it is written anew: it is what its sidecars say, in whichever place."""
    logs = {path: path.read_bytes() for path in old.rglob("*.log")}

    run(read_everything, old)

    assert {path: path.read_bytes() for path in old.rglob("*.log")} == logs


def test_an_old_folder_is_used_like_a_new_one(old):
    """Appended to, searched, erased from, verified."""
    run(use, old)
