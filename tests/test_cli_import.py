"""The program starts at once: it loads what a command needs, and nothing else.

What is loaded is counted; `bench/cli.py` measures how long it takes.
"""

import json
import subprocess
import sys

import pytest

from commands import Commands

PROGRAM = """
import contextlib, io, sys
before = set(sys.modules)
from holdfast.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    assert main(sys.argv[1:]) in (0, None)
added = sorted(set(sys.modules) - before)
import json
print(json.dumps(added))
"""
HEAVY = ("sqlalchemy", "httpx2", "asyncpg", "splintr", "ctok", "xllamacpp", "jsonschema", "h11")
VENDORS = (
    "anthropic",
    "openai",
    "google",
    "ollama",
    "github",
    "antigravity",
    "local",
    "claude_cli",
)


@pytest.fixture
def commands(tmp_path):
    return Commands(tmp_path)


def loaded(commands, *arguments):
    """The modules that a command adds to a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        env=commands.environment,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_help_loads_no_engine(commands):
    """The list of commands needs click, the list, and words for errors."""
    found = loaded(commands, "--help")

    ours = {name for name in found if name.startswith("holdfast")}
    assert ours <= {
        "holdfast",
        "holdfast.errors",
        "holdfast.cli",
        "holdfast.cli.app",
        "holdfast.cli.command",
        "holdfast.cli.config",
        "holdfast.cli.failures",
        "holdfast.cli.program",
        "holdfast.cli.screen",
        "holdfast.text",
    }
    assert not {"asyncio", "msgspec", "sqlite3"} & found


def test_a_list_loads_no_provider_and_no_library_for_one(commands):
    """`holdfast ls` opens a store: that takes the engine, and nobody who talks to models."""
    (commands.home / "data").mkdir()
    made = (
        "import asyncio, sys, holdfast\n"
        "async def make():\n"
        "    async with holdfast.open(sys.argv[1]) as sessions:\n"
        "        session = await sessions.get_or_create('a')\n"
        "        await session.append(holdfast.Message.user('Hello.'))\n"
        "asyncio.run(make())"
    )
    subprocess.run([sys.executable, "-c", made, commands.store], check=True, timeout=120)

    found = loaded(commands, "ls")

    assert "sqlite3" in found  # the store was really opened
    assert not {name for name in found if name.partition(".")[0] in HEAVY}
    vendors = {f"holdfast.providers.{name}" for name in VENDORS}
    assert not vendors & found
    assert not {name for name in found if name.endswith("_provider")}
    assert len([name for name in found if name.startswith("holdfast")]) <= 190
