"""Keep a conversation in a file, and show it.

    python examples/keep_a_conversation.py               a scripted conversation with a tool
    python examples/keep_a_conversation.py "I am Ada."   adds what you say, and shows all
    python examples/keep_a_conversation.py --show        shows what is kept

What is kept survives the program: one record a line, flushed to the disk before you are told that
it is kept. No model answers yet; what you say is written down.
"""

import argparse
import os
import sys
from pathlib import Path

from holdfast import History, HoldfastError, Message, ToolCall, codec, tool
from holdfast.errors import Corrupt


@tool
def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


def scripted() -> list[Message]:
    """A question, the tool that the model asks for, its result, and the answer."""
    call = ToolCall(id="call_1", name="add", arguments='{"a": 2, "b": 40}')
    result = add(**add.check(call.arguments))
    return [
        Message.user("What is 2 and 40?"),
        Message.assistant(tool_calls=[call]),
        Message.tool(str(result), call.id, name=call.name),
        Message.assistant("It is 42."),
    ]


def load(path: Path) -> History:
    """What the file keeps; nothing when there is no file yet."""
    history = History()
    if path.exists():
        lines = path.read_bytes().split(b"\n")
        for number, line in enumerate(lines[:-1], start=1):
            history.append(codec.read_record(line, f"{path}, line {number}"))
        if lines[-1]:
            raise Corrupt(f"{path}, line {len(lines)}", "it was not written to its end")
    return history


def keep(path: Path, history: History, messages: list[Message]) -> None:
    """Add the messages to the file, then to the history."""
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    with open(os.open(path, flags, 0o600), "ab") as file:
        file.write(b"".join(codec.record(message) + b"\n" for message in messages))
        file.flush()
        os.fsync(file.fileno())
    history.append(*messages)


def show(history: History) -> None:
    """The conversation, turn by turn."""
    for turn in history.turns():
        print(f"-- turn {turn.index}")
        for message in history.slice(turn.first, turn.last + 1):
            for call in message.calls:
                print(f"{message.role:>9}  calls {call.name}({call.arguments})")
            if message.text is not None:
                print(f"{message.role:>9}  {_printable(message.text)}")


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in text)


def main() -> int:
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    parser = argparse.ArgumentParser(description="Keep a conversation in a file, and show it.")
    parser.add_argument("text", nargs="*", help="what you say; without it, a scripted conversation")
    parser.add_argument("--show", action="store_true", help="only show what is kept")
    parser.add_argument("--file", type=Path, default=data / "holdfast" / "example.jsonl")
    options = parser.parse_args()
    try:
        history = load(options.file)
        if not options.show:
            said = [Message.user(" ".join(options.text))] if options.text else scripted()
            keep(options.file, history, said)
        show(history)
    except (HoldfastError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"-- {len(history)} messages are kept in {options.file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
