"""What a `StandIn` starts in the place of `claude`: runs on its own, with nothing but Python.

    python program.py FOLDER [the arguments of claude]

Checks its arguments and its standard input as the program does, notes them in the folder, and plays
what the folder says. Like the program it keeps sessions, finds commands and names of files in the
text that a message ends with, and says so in `result` when it cannot go on.
"""

from __future__ import annotations

import binascii
import json
import os
import sys
import time

# The rest is imported where it is needed: tests start this program very often.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

# The options that are known here, and whether they have a value.
KNOWN = {
    **dict.fromkeys(("print", "verbose", "include-partial-messages", "strict-mcp-config"), False),
    "no-session-persistence": False,
    **dict.fromkeys(("output-format", "input-format", "model", "tools", "max-turns"), True),
    **dict.fromkeys(("system-prompt-file", "append-system-prompt-file", "effort"), True),
    **dict.fromkeys(("setting-sources", "permission-mode", "resume", "add-dir"), True),
    **dict.fromkeys(("allowedTools", "mcp-config"), True),
}
SESSION = "SESSION"  # in what is played: the id of the session


def main() -> None:
    folder, *given = sys.argv[1:]
    with open(os.path.join(folder, "script.json"), encoding="utf-8") as file:
        script = json.load(file)
    if given[:2] == ["auth", "status"]:
        _say({"loggedIn": script["is_logged_in"]})
        sys.exit(0 if script["is_logged_in"] else 1)
    Run(folder, given).play(script)


class Run:
    """One start of the program."""

    def __init__(self, folder: str, given: list[str]) -> None:
        self.folder = folder
        self.options = _options(given)
        self.note: dict[str, Any] = {"arguments": given, "environment": dict(os.environ)}
        self.note |= {"cwd": os.getcwd(), "system": self._system(), "files": [], "commands": []}
        self.session: dict[str, Any] = {"cwd": os.getcwd(), "said": []}

    def play(self, script: dict[str, Any]) -> None:
        number = self._number()
        self.id = self._resumed(number)
        lines = self._told()
        self.note |= {"stdin": lines, "session": self.id}
        for line in lines:
            self.session["said"].append(line["message"])
            self._interpret(line["message"]["content"])
        self._keep()
        self._write("calls", f"{number:06}.json", self.note | {"said": self.session["said"]})
        answers = script["answers"]
        for step in answers[min(number, len(answers) - 1)] if lines else ():
            self._step(step)

    # What it was given

    def _system(self) -> str | None:
        for name in ("system-prompt-file", "append-system-prompt-file"):
            if path := self.options.get(name):
                try:
                    with open(path, encoding="utf-8") as file:
                        return file.read()
                except OSError:
                    _refuse(f"Error: System prompt file not found: {path}")
        return None

    def _number(self) -> int:
        """Of this start, counted from 0; no other start gets the same."""
        number = 0
        while True:
            try:
                os.close(os.open(f"{self.folder}/calls/{number}", os.O_CREAT | os.O_EXCL))
                return number
            except FileExistsError:
                number += 1

    def _resumed(self, number: int) -> str:
        id = self.options.get("resume")
        if id is None:
            return f"00000000-0000-4000-8000-{number + 1:012}"
        try:
            with open(f"{self.folder}/sessions/{id}.json", encoding="utf-8") as file:
                session = json.load(file)
        except OSError:
            session = {}
        if session.get("cwd") != os.getcwd():
            self._write("calls", f"{number:06}.json", self.note | {"lost": id})
            lost = f"No conversation found with session ID: {id}"
            _complain(lost)
            result = {"type": "result", "subtype": "error_during_execution", "is_error": True}
            _say({**result, "num_turns": 0, "session_id": id, "errors": [lost]})
            sys.exit(1)
        self.session = session
        return str(id)

    def _told(self) -> list[dict[str, Any]]:
        """The lines on the standard input; what is no message ends the program, without a word."""
        lines = []
        for text in sys.stdin.buffer:
            try:
                line = json.loads(text)
                assert line["type"] == "user" and line["message"]["role"] == "user"
                assert isinstance(line["message"]["content"], str | list)
            except (ValueError, KeyError, TypeError, AssertionError):
                sys.exit(0)
            lines.append(line)
        return lines

    def _interpret(self, content: Any) -> None:
        """What the program would make of the text that a message ends with."""
        if isinstance(content, list):
            last = content[-1] if content else {}
            content = last.get("text", "") if last.get("type") == "text" else ""
        if content.startswith("/") and "/" not in content[1:].split(" ")[0]:
            self.note["commands"].append(content)
        self.note["files"] += [word for word in content.split() if word.startswith("@")]

    # What it does

    def _step(self, step: dict[str, Any]) -> None:
        if "line" in step:
            _say(_named(step["line"], self.id))
            self._hear(step["line"])
        elif "raw" in step:
            _print(binascii.a2b_base64(step["raw"]))
        elif "error" in step:
            _complain(step["error"])
        elif "wait_s" in step:
            time.sleep(step["wait_s"])
        elif "leave" in step:
            os._exit(step["leave"])
        elif "kill" in step:
            os.kill(os.getpid(), step["kill"])
        elif "start" in step:
            import subprocess

            subprocess.Popen(step["start"], start_new_session=True)  # noqa: S603 - of the test
        elif "relay" in step:
            self._relay(step["relay"])

    def _hear(self, line: dict[str, Any]) -> None:
        """The session keeps what the model said."""
        if line.get("type") == "assistant":
            self.session["said"].append(line["message"])
            self._keep()

    def _keep(self) -> None:
        if "no-session-persistence" not in self.options:
            self._write("sessions", f"{self.id}.json", self.session)

    def _relay(self, url: str) -> None:
        """Ask a server what to print, and print it as it comes."""
        import http.client
        from urllib.parse import urlsplit

        parts = urlsplit(url)
        server = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        body = {"said": self.session["said"], "system": self.note["system"] or ""}
        server.request("POST", parts.path or "/", json.dumps(body))
        try:
            reply = server.getresponse()
            while chunk := reply.read1(65536):
                _print(chunk)
        except (http.client.HTTPException, OSError) as error:
            _complain(f"API Error: {type(error).__name__}")
            os._exit(1)

    def _write(self, folder: str, name: str, value: dict[str, Any]) -> None:
        path = f"{self.folder}/{folder}/{name}"
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            json.dump(value, file)
        os.replace(f"{path}.new", path)


def _options(given: list[str]) -> dict[str, str]:
    """The options by their names, as the program would take them."""
    found: dict[str, str] = {}
    rest = iter(given)
    for each in rest:
        name, is_joined, value = each.removeprefix("--").partition("=")
        if not each.startswith("--") or name not in KNOWN:
            _refuse(f"error: unknown option '{each.partition('=')[0]}'")
        found[name] = value if is_joined or not KNOWN[name] else next(rest, "")
    if "print" not in found:
        _refuse("Error: Input must be provided either through stdin or as a prompt argument")
    if found.get("output-format") == "stream-json" and "verbose" not in found:
        _refuse("Error: When using --print, --output-format=stream-json requires --verbose")
    return found


def _named(value: Any, id: str) -> Any:
    if isinstance(value, dict):
        return {name: _named(each, id) for name, each in value.items()}
    if isinstance(value, list):
        return [_named(each, id) for each in value]
    return id if value == SESSION else value


def _say(line: dict[str, Any]) -> None:
    _print(json.dumps(line, ensure_ascii=False).encode() + b"\n")


def _print(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _complain(words: str) -> None:
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()


def _refuse(why: str) -> NoReturn:
    _complain(why)
    sys.exit(1)


if __name__ == "__main__":
    main()
