"""A terminal to run the program in: a pseudo-terminal, and what a person would see on it.

    with Terminal(["holdfast", "chat"], environment) as terminal:
        terminal.wait_for("> ")
        terminal.type("I am Ada.\r")
        terminal.wait_for("Hello")

It waits for what is shown, and for nothing else: no time passes that need not. `screen` is what is
seen, `text` all that ever was, without the codes that steer a terminal.
"""

import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from fcntl import ioctl

import pyte

WAIT_S_MAX = 60.0
CTRL_C, CTRL_D, ENTER, ALT_ENTER, TAB = "\x03", "\x04", "\r", "\x1b\r", "\t"


class NotShown(AssertionError):
    """What was waited for did not come."""


class Terminal:
    """One program in one terminal."""

    def __init__(self, command, environment, *, columns=80, lines=40):
        self.raw = b""  # every byte that came
        self._screen = _Screen(columns, lines, history=10_000, ratio=0.5)
        self._stream = pyte.ByteStream(self._screen)
        self._command = command
        self._environment = {"TERM": "xterm-256color"} | environment
        self._size = (lines, columns)

    def __enter__(self):
        self._master, slave = pty.openpty()
        self._screen.answer = lambda data: os.write(self._master, data.encode())
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *self._size, 0, 0))
        self.process = subprocess.Popen(
            self._command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=self._environment,
            start_new_session=True,
            preexec_fn=_own_terminal,
        )
        os.close(slave)
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._master)

    # What a person does

    def type(self, text):
        """Press these keys."""
        os.write(self._master, text.encode())

    def paste(self, text):
        """As a terminal does that says so."""
        self.type(f"\x1b[200~{text}\x1b[201~")

    def kill(self):
        """As kill -9 does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    # What a person sees

    @property
    def screen(self):
        """The lines that are seen now."""
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    @property
    def text(self):
        """All lines, also those that have left the screen at its top."""
        above = ["".join(cell.data for cell in row).rstrip() for row in self._above]
        return "\n".join([*above, self.screen])

    @property
    def cells(self):
        """The same, character by character, each with its colours."""
        seen = self._screen.buffer
        rows = [seen[number] for number in range(self._screen.lines)]
        return [*self._above, *(self._cells(row) for row in rows)]

    @property
    def _above(self):
        return [self._cells(row) for row in self._screen.history.top]

    def _cells(self, row):
        return [row[place] for place in range(self._screen.columns)]

    def wait_for(self, *wanted, since=""):
        """Until all of this is shown, behind the last place where `since` is; the text then."""
        return self._wait(lambda: all(w in self._behind(since) for w in wanted), wanted)

    def wait_until(self, is_so):
        """Until this holds of the text."""
        return self._wait(lambda: is_so(self.text), is_so)

    def wait_for_prompt(self, number):
        """Until the prompt has come so many times, and nothing stands behind it."""
        lines = lambda: self.text.splitlines()  # noqa: E731
        return self._wait(
            lambda: sum(line[:1] == ">" for line in lines()) >= number and lines()[-1] == ">",
            f"prompt {number}",
        )

    def wait_for_end(self):
        """Until the program has ended; its exit status."""
        self._wait(lambda: self.process.poll() is not None, "its end")
        self._read_what_is_there()
        return self.process.returncode

    def _behind(self, since):
        text = self.text
        return text if not since else text.rpartition(since)[2] if since in text else ""

    def _wait(self, is_shown, wanted):
        until_s = time.monotonic() + WAIT_S_MAX
        while not is_shown():
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                raise NotShown(f"{wanted!r} is not shown:\n{self.text}")
            if self.process.poll() is not None and not self._read_what_is_there():
                if is_shown():
                    break
                raise NotShown(
                    f"{wanted!r} is not shown, and the program has ended "
                    f"({self.process.returncode}):\n{self.text}"
                )
            self._read(min(left_s, 0.5))
        return self.text

    def _read_what_is_there(self):
        found = False
        while self._read(0):
            found = True
        return found

    def _read(self, wait_s):
        if not select.select([self._master], [], [], wait_s)[0]:
            return False
        try:
            data = os.read(self._master, 65_536)
        except OSError:  # the other end is closed
            return False
        self.raw += data
        self._stream.feed(data.replace(b"\x1b[2m", b"\x1b[90m"))  # it knows no dim: grey here
        return bool(data)


class _Screen(pyte.HistoryScreen):
    """Answers when it is asked where its cursor is."""

    answer = None

    def write_process_input(self, data):
        self.answer(data)


def _own_terminal():
    """So that Ctrl-C reaches the program: the terminal is that of its session."""
    ioctl(0, termios.TIOCSCTTY, 0)
