"""Z1: bytes that nobody thought of, into the readers of streams, for a minute.

Atheris looks for inputs that take another way through the code; `simple_streams.check` holds what
comes out against readers that are too simple to be wrong. A crash, a hang of a second or more than
256 MiB end the run.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path

from faults.tier import need, pick

TESTS = Path(__file__).parents[1]
SECONDS = pick(60, 300)
MISSING = None if importlib.util.find_spec("atheris") else "atheris is not installed"


def fuzz(program, folder, seconds):
    """Started by a shell: peak memory begins with that of the process that starts a program."""
    return subprocess.run(
        [
            *("sh", "-c", '"$@"; exit $?', "sh"),
            *(sys.executable, str(program), f"-max_total_time={seconds}"),
            *("-timeout=1", "-rss_limit_mb=256", f"-artifact_prefix={folder}/", str(folder)),
        ],
        cwd=TESTS,
        capture_output=True,
        text=True,
        timeout=seconds + 120,
    )


def test_no_bytes_break_the_readers_of_streams(tmp_path):
    need(MISSING)

    done = fuzz(TESTS / "fuzz_stream.py", tmp_path, SECONDS)

    assert done.returncode == 0, done.stderr[-2000:]
    assert "Done" in done.stderr + done.stdout


def test_control_a_reader_that_fails_is_found(tmp_path):
    """The same run with a check that fails when an event has a certain field."""
    need(MISSING)
    folder = tmp_path / "inputs"
    folder.mkdir()
    program = tmp_path / "broken.py"
    source = (TESTS / "fuzz_stream.py").read_text(encoding="utf-8")
    broken = "\n\ndef check(data):\n    assert b'retry' not in data\n\n\nSEEDS = ("
    program.write_text(source.replace("\nSEEDS = (", broken, 1), encoding="utf-8")

    done = subprocess.run(
        [
            sys.executable,
            str(program),
            "-max_total_time=10",
            f"-artifact_prefix={folder}/",
            str(folder),
        ],
        cwd=TESTS,
        env={"PYTHONPATH": str(TESTS), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode != 0 and "AssertionError" in done.stderr + done.stdout
