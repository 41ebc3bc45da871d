"""A coding agent: it reads a program, runs its tests, mends it, and runs them again.

    python examples/coding_agent.py            asks before it writes or runs anything
    python examples/coding_agent.py --yes      does not ask

It works in a temporary folder with a small broken program in it. The model is scripted, so that
this runs without a key; `--model anthropic:claude-sonnet-4-5` asks a real one, with the same tools.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import holdfast
from holdfast import HoldfastError, Settings, Tool, ToolCall, tool
from holdfast.events import Event, Outcome, TextDelta, ToolCallReady, ToolResult
from holdfast.testing import FakeProvider
from holdfast.testing.fake_provider import calls

TASK = "The tests of calc.py fail. Find out why, and mend it."
SYSTEM = "You mend Python programs. Look before you write, and run the tests when you have written."
PROGRAM = "def double(n):\n    return n + n + 1\n"
MENDED = "def double(n):\n    return n + n\n"
TESTS = """\
import unittest

from calc import double


class Test(unittest.TestCase):
    def test_double(self):
        self.assertEqual(double(4), 8)
"""


def tools_for(folder: Path) -> list[Tool]:
    """Three tools that can reach this folder, and nothing outside of it."""

    def inside(name: str) -> Path:
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise ValueError(f"{name} is outside of the folder")  # the model reads this
        return path

    @tool(idempotent=True)
    def read_file(path: str) -> str:
        """The text of a file."""
        return inside(path).read_text(encoding="utf-8")

    @tool(approval=True)
    def write_file(path: str, content: str) -> str:
        """Write a file, in the place of one that is there."""
        inside(path).write_text(content, encoding="utf-8")
        return f"{path} is written"

    @tool(approval=True, idempotent=True, timeout=60)
    def run_tests() -> str:
        """Run the tests, and see what they print."""
        command = [sys.executable, "-B", "-m", "unittest", "-q"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=50)
        return "the tests pass" if done.returncode == 0 else f"they fail:\n{done.stderr[-2000:]}"

    return [read_file, write_file, run_tests]


def show(event: Event) -> None:
    """What happens, while it happens."""
    match event:
        case TextDelta(text=text):
            print(text, end="", flush=True)
        case ToolCallReady(call=call):
            print(f"\n-> {call.name} {call.arguments[:200]}", flush=True)
        case ToolResult(message=message):
            lines = (message.text or "").strip().splitlines()
            print(f"<- {lines[-1] if lines else 'nothing'}", flush=True)


async def work(session: holdfast.Session, agrees: Callable[[ToolCall], bool]) -> None:
    """Give the agent its task, and answer what it asks until it is done."""
    result = await session.send(TASK, on_event=show)
    while result.outcome is Outcome.PENDING:
        answers = {call.id: agrees(call) for call in result.pending}
        result = await session.resume(answers, on_event=show)
    print(f"\n-- {result.outcome}: {result.rounds} rounds, {result.usage.output} tokens written")


def ask(call: ToolCall) -> bool:
    """Whether the user lets this call run."""
    shown = json.dumps(json.loads(call.arguments or "{}"), ensure_ascii=False)[:200]
    try:
        return input(f"may I {call.name} {shown}? [y/N] ").strip().lower() == "y"
    except EOFError:
        return False


def script() -> FakeProvider:
    """A model that does what a good one would do."""
    return FakeProvider(
        calls("read_file", "Let me look at the program.", path="calc.py"),
        calls("run_tests", "It adds one too many. The tests should say so."),
        calls("write_file", "They do. I take it off.", path="calc.py", content=MENDED),
        calls("run_tests", "Once more."),
        lambda request: f"The last thing I know: {request.messages[-1].text}.",
    )


async def start(model: str | None, agrees: Callable[[ToolCall], bool]) -> bool:
    """Whether the program is mended in the end."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "calc.py").write_text(PROGRAM, encoding="utf-8")
        (folder / "test_calc.py").write_text(TESTS, encoding="utf-8")
        tools = tools_for(folder)
        async with holdfast.open("memory:", model=model or script(), tools=tools) as sessions:
            settings = Settings(system=SYSTEM, limits={"rounds": 20})
            await work(await sessions.get_or_create("agent:calc", settings=settings), agrees)
        return (folder / "calc.py").read_text(encoding="utf-8") != PROGRAM


def main() -> int:
    parser = argparse.ArgumentParser(description="An agent that mends a small program.")
    parser.add_argument("--yes", action="store_true", help="let it write and run without asking")
    parser.add_argument("--model", help="vendor:model; without it, a script")
    options = parser.parse_args()
    try:
        is_mended = asyncio.run(start(options.model, (lambda _: True) if options.yes else ask))
    except (HoldfastError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print("-- the program was changed" if is_mended else "-- the program is as it was")
    return 0


if __name__ == "__main__":
    sys.exit(main())
