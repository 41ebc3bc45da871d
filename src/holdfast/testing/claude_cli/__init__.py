"""A stand-in for the `claude` program: a real program on disk, that answers what it is told to.

    stand_in = StandIn(folder, says("Hello."), says("It rains.", thought="Weather?"))
    provider = holdfast.open_provider("claude-cli:sonnet", program=stand_in.path)
    ...
    stand_in.calls[0].said      # what its model would have been shown: the whole session

An answer is a tuple of steps, played one after the other: lines (`says`, `plays`, `line`), bytes as
they are (`raw`), words on the error output (`error`), a pause (`wait`), an end (`leave`, `kill`), a
process of its own (`starts`), what a server answers (`relay`). Answers are given in turn, the last
one again when they run out. `program.py` says how it behaves otherwise.
"""

import base64
import json
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.testing.claude_cli import program

Step = dict[str, Any]
Answer = tuple[Step, ...]


@dataclass(frozen=True)
class Started:
    """One start of the program: what it was given, and what it made of that.

    said      the messages that its model would have been shown, those of before included
    lost      the session that it was to go on with and does not know
    files     names of files that it found in a message, and would have read into it
    commands  commands that it found there, and would have carried out
    """

    arguments: tuple[str, ...]
    environment: dict[str, str]
    cwd: str
    system: str | None = None
    stdin: tuple[dict[str, Any], ...] = ()
    session: str | None = None
    said: tuple[dict[str, Any], ...] = ()
    lost: str | None = None
    files: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()

    @property
    def is_resumed(self) -> bool:
        """Whether it was to go on with a session."""
        return any(each.startswith("--resume") for each in self.arguments)

    @property
    def texts(self) -> list[str]:
        """The words of all messages in `said`, in order."""
        blocks = [block for message in self.said for block in message["content"]]
        return [block["text"] for block in blocks if block.get("type") == "text"]


class StandIn:
    """The program, in a folder that it keeps its notes in. For systems with `/bin/sh`."""

    def __init__(
        self, folder: str | os.PathLike[str], *answers: Answer, is_logged_in: bool = True
    ) -> None:
        self.folder = Path(folder)
        for name in ("calls", "sessions"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        script = {"answers": [*answers] or [says("Hello.")], "is_logged_in": is_logged_in}
        (self.folder / "script.json").write_text(json.dumps(script), encoding="utf-8")
        self.path = str(self.folder / "claude")
        line = [sys.executable, "-IS", program.__file__, str(self.folder)]
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec {shlex.join(line)} "$@"\n')
            os.fchmod(file.fileno(), 0o755)

    @property
    def calls(self) -> list[Started]:
        """Its starts so far, in order."""
        notes = sorted((self.folder / "calls").glob("*.json"))
        return [_started(json.loads(each.read_bytes())) for each in notes]

    def forget_sessions(self) -> None:
        """As if the program had tidied up."""
        for each in (self.folder / "sessions").glob("*.json"):
            each.unlink()


def _started(note: dict[str, Any]) -> Started:
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in note.items()
    }
    return Started(**fields)


# Answers


def says(
    text: str = "",
    *,
    thought: str = "",
    tool: tuple[str, Any] | None = None,
    model: str = "claude-sonnet-4-6",
    tokens: tuple[int, int] = (11, 7),
    cost: float = 0.001,
) -> Answer:
    """An answer in words, or in a call of a tool that the program does not know (`name, input`).

    As the program prints it: each block in events, and whole; then, behind a call, what its model
    is told about it; then the result.
    """
    blocks: list[dict[str, Any]] = []
    if thought:
        blocks.append({"type": "thinking", "thinking": thought, "signature": "c2ln"})
    if text:
        blocks.append({"type": "text", "text": text})
    if tool is not None:
        use = {"type": "tool_use", "id": "toolu_1", "name": tool[0], "input": tool[1]}
        blocks.append(use)
    stop = "end_turn" if tool is None else "tool_use"
    usage = {"input_tokens": tokens[0], "output_tokens": tokens[1]}
    lines = [_init(model), *_message(blocks, stop, model, usage)]
    if tool is not None:
        lines.append(_unknown(tool[0]))
    subtype = "success" if tool is None else "error_max_turns"
    return (*map(line, lines), line(result(text, subtype, stop, usage, cost)))


def result(
    text: str = "",
    subtype: str = "success",
    stop: str | None = "end_turn",
    usage: dict[str, Any] | None = None,
    cost: float = 0.0,
    **more: Any,
) -> dict[str, Any]:
    """The last line of an answer."""
    said = {"type": "result", "subtype": subtype, "is_error": False, "num_turns": 1}
    said |= {"result": text, "stop_reason": stop, "session_id": program.SESSION}
    return said | {"usage": usage or {}, "total_cost_usd": cost, **more}


def fails(words: str, *, code: int = 1, **more: Any) -> Answer:
    """How the program tells of an error: in an answer of its own, and in the result."""
    message: dict[str, Any] = {"model": "<synthetic>", "role": "assistant"}
    message |= {"content": [{"type": "text", "text": words}]}
    own = {"type": "assistant", "message": message, "parent_tool_use_id": None}
    last = result(words, stop="stop_sequence", **{"is_error": True, **more})
    return (line(_init("claude-sonnet-4-6")), line(own), line(last), leave(code))


def plays(ndjson: str | bytes) -> Answer:
    """Lines as they were recorded."""
    data = ndjson if isinstance(ndjson, bytes) else ndjson.encode()
    return (raw(data),)


def _init(model: str) -> dict[str, Any]:
    about = {"type": "system", "subtype": "init", "session_id": program.SESSION, "model": model}
    return about | {"tools": [], "mcp_servers": [], "permissionMode": "default"}


def _message(
    blocks: Sequence[dict[str, Any]], stop: str, model: str, usage: dict[str, Any]
) -> list[dict[str, Any]]:
    start: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "model": model}
    begun: dict[str, Any] = start | {
        "content": [],
        "stop_reason": None,
        "usage": usage | {"output_tokens": 1},
    }
    lines = [_event("message_start", message=begun)]
    for index, block in enumerate(blocks):
        empty, deltas = _in_pieces(block)
        lines.append(_event("content_block_start", index=index, content_block=empty))
        lines += [_event("content_block_delta", index=index, delta=each) for each in deltas]
        whole = start | {"content": [block], "stop_reason": None, "usage": usage}
        lines.append({"type": "assistant", "message": whole, "parent_tool_use_id": None})
        lines.append(_event("content_block_stop", index=index))
    delta = {"stop_reason": stop, "stop_sequence": None}
    lines.append(_event("message_delta", delta=delta, usage=usage))
    return [*lines, _event("message_stop")]


def _event(kind: str, **fields: Any) -> dict[str, Any]:
    event = {"type": "stream_event", "event": {"type": kind, **fields}}
    return event | {"session_id": program.SESSION, "parent_tool_use_id": None}


def _in_pieces(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if block["type"] == "text":
        words = block["text"].split(" ", 3)  # the first ones one by one, then the rest
        pieces = [f" {word}" if number else word for number, word in enumerate(words)]
        return {"type": "text", "text": ""}, [{"type": "text_delta", "text": p} for p in pieces]
    if block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": block["thinking"]}]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return block | {"thinking": "", "signature": ""}, deltas
    written = json.dumps(block["input"])
    pieces = [written[: len(written) // 2], written[len(written) // 2 :]]
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return block | {"input": {}}, deltas


def _unknown(name: str) -> dict[str, Any]:
    words = f"<tool_use_error>Error: No such tool available: {name}</tool_use_error>"
    block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": words, "is_error": True}
    message = {"role": "user", "content": [block]}
    return {"type": "user", "message": message, "parent_tool_use_id": None}


# Steps


def line(value: dict[str, Any]) -> Step:
    """A line of JSON. "SESSION" in it becomes the id of the session."""
    return {"line": value}


def raw(data: bytes) -> Step:
    """Bytes as they are."""
    return {"raw": base64.b64encode(data).decode()}


def error(words: str) -> Step:
    """A line on the error output."""
    return {"error": words}


def wait(seconds: float) -> Step:
    """A pause; a long one is a program that hangs."""
    return {"wait_s": seconds}


def leave(code: int) -> Step:
    """The end, at once."""
    return {"leave": code}


def kill(number: int = signal.SIGKILL) -> Step:
    """The end by a signal."""
    return {"kill": int(number)}


def starts(*command: str) -> Step:
    """A process in a session of its own, as the program starts its tools."""
    return {"start": list(command)}


def relay(url: str) -> Answer:
    """What a server on this machine answers: its body is printed as it comes."""
    return ({"relay": url},)
