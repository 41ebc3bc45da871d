"""Other processes that a test talks with, line by line."""

import subprocess
import sys

SAY = """
def say(word):
    print(word, flush=True)
"""


class Script:
    """A Python process that says words on lines of their own, and hears them.

    `start` is what a subclass has it do before the body.
    """

    start = ""

    def __init__(self, body, *args):
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", self.start + body, *map(str, args)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def hears(self):
        return self.process.stdout.readline().strip()

    def tell(self, word="go"):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def ends(self):
        """What was said, when it has ended well."""
        out, err = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, err
        return out.split()
