"""What every test shares: Hypothesis profiles, the summary of a run, and the count guard.

holdfast is not imported here, so that tests of importing it see a fresh start.
"""

import gc
import os
import signal
import sys
import time
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import settings

TESTS = Path(__file__).parent

# With the importlib mode pytest leaves this folder off the path. Helpers beside the tests are
# imported by their plain name; last on the path, they cannot hide anything.
sys.path.append(str(TESTS))

import count_guard  # noqa: E402

# A deadline would make a busy machine fail a test; the blob is what reproduces a failure that
# was seen elsewhere. Profile "ci", used where CI is set, looks at the same examples each time:
# what nobody changed cannot turn red. New examples are found on developers' machines.
settings.register_profile("default", deadline=None, derandomize=False, print_blob=True)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "default")
settings.load_profile(PROFILE)


# A shell has what it starts in the background ignore Ctrl-C, and its children after it; those of
# the tests are to be interrupted.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def uncovered():
    """For tests that try thousands of values: coverage rests, because it doubles their time, and
    the lines they reach are reached by plain tests too."""
    coverage = sys.modules.get("coverage")
    current = coverage.Coverage.current() if coverage else None
    if current is not None:
        current.stop()
    yield
    if current is not None:
        current.start()


@pytest.fixture(params=["memory", "sqlite"])
def url(request, tmp_path):
    """A store of each kind, empty."""
    return "memory:" if request.param == "memory" else f"sqlite:{tmp_path}/chats.db"


@pytest.fixture
def file_url(tmp_path):
    """A store that two managers, or two processes, can open."""
    return f"sqlite:{tmp_path}/chats.db"


@pytest.fixture
def local_name():
    """The name of the real local model; without its weights the test is skipped, by name."""
    from local_model import NAME, need_model

    need_model()
    return f"local:{NAME}"


def pytest_addoption(parser):
    group = parser.getgroup("holdfast")
    group.addoption(
        "--count-guard",
        action="store_true",
        help="fail if there are fewer tests than the count file says (for the whole suite)",
    )
    group.addoption(
        "--count-record",
        metavar="REASON",
        help="add the number of tests to the count file",
    )
    group.addoption(
        "--count-file",
        type=Path,
        default=TESTS / "count.txt",
        metavar="FILE",
        help="the log of the numbers of tests (default: tests/count.txt)",
    )
    group.addoption(
        "--summary-file",
        type=Path,
        metavar="FILE",
        help="write what ran and what was skipped to FILE rather than to the terminal",
    )
    group.addoption(
        "--failed-file",
        type=Path,
        metavar="FILE",
        help="write the names of the tests that failed to FILE, if nothing else is wrong",
    )


def pytest_collection_modifyitems(config, items):
    """Of the bad inputs, a server is given every eighth in the short tier: each takes it a while,
    and what comes of an input is decided in front of all stores."""
    if os.environ.get("HOLDFAST_FAULTS") == "full":
        return
    kept, left = [], []
    for item in items:
        is_of_server = item.name.partition("[")[2].startswith("postgresql")
        is_taken = crc32(item.name.encode()) % 8 == 0 and "all_texts" not in item.name
        if is_of_server and "test_bad_inputs" in item.nodeid and not is_taken:
            left.append(item)
        else:
            kept.append(item)
    if left and len(items) > len(left):
        config.hook.pytest_deselected(items=left)
        items[:] = kept


def pytest_collection_finish(session):
    """The tests themselves, many thousands, are there to the end: the collector need not go over
    them again and again."""
    gc.collect()
    gc.freeze()


def pytest_configure(config):
    config.pluginmanager.register(Observer(config), "holdfast-observer")


class Observer:
    """Counts what ran, tells it at the end, and lets the count guard judge."""

    def __init__(self, config):
        self.config = config
        self.started_at = time.monotonic()
        self.tally = count_guard.Tally()
        self.notes = []
        self.failed = {}  # their names, in order

    def pytest_collectreport(self, report):
        if report.failed:
            self.tally.failed += 1
        elif report.skipped:
            self.tally.skipped.append((report.nodeid, reason_of(report)))

    def pytest_runtest_logreport(self, report):
        if hasattr(report, "context"):  # a subtest; its test is reported by itself
            return
        if report.failed:
            self.tally.failed += 1
            self.failed[report.nodeid] = True
        elif report.skipped and hasattr(report, "wasxfail"):
            self.tally.xfailed.append((report.nodeid, report.wasxfail or "no reason given"))
        elif report.skipped:
            self.tally.skipped.append((report.nodeid, reason_of(report)))
        elif report.when == "call" and not hasattr(report, "wasxfail"):
            self.tally.passed += 1

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session, exitstatus):
        if exitstatus == pytest.ExitCode.TESTS_FAILED and self.config.option.failed_file:
            self.tell_failed(self.config.option)
        if exitstatus != pytest.ExitCode.OK or not self.config.option.count_guard:
            return  # a run that fails anyway says so itself
        verdict = self.judge(self.config.option.count_file)
        if verdict.sentence:
            self.notes.append(verdict.sentence)
        if not verdict.ok:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def tell_failed(self, option):
        """A run that is to pass if these do has to account for all others."""
        expected = count_guard.parse(option.count_file.read_text(encoding="utf-8"))
        if count_guard.judge(expected, self.tally.accounted + len(self.failed)).ok:
            names = "".join(f"{name}\n" for name in self.failed)
            option.failed_file.write_text(names, encoding="utf-8")

    def judge(self, path):
        reason = self.config.option.count_record
        where = f"tests/{path.absolute().relative_to(TESTS)}"
        try:
            text = path.read_text(encoding="utf-8")
            if reason:
                text = count_guard.record(text, self.tally.accounted, reason)
                path.write_text(text, encoding="utf-8")
            return count_guard.judge(count_guard.parse(text), self.tally.accounted, where)
        except ValueError as error:
            return count_guard.Verdict(False, f"{where}: {error}")

    def pytest_terminal_summary(self, terminalreporter):
        lines = count_guard.summary(self.tally) + self.notes
        file = self.config.option.summary_file
        if file is not None:
            lines[0] += f", in {time.monotonic() - self.started_at:.0f} s"
            file.write_text("\n".join(lines) + "\n", encoding="utf-8")
            return
        terminalreporter.section("what ran")
        for line in lines:
            terminalreporter.write_line(line)


def reason_of(report):
    """Why a test was skipped, without pytest's own word for it."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ") or "no reason given"


@pytest.fixture(scope="session")
def home_of_conversations(tmp_path_factory):
    """A home of the program, with the conversations of `cli_conversations`; it is only read."""
    import asyncio

    from cli_conversations import conversations

    home = tmp_path_factory.mktemp("home")
    (home / "data").mkdir()
    asyncio.run(conversations(f"sqlite:{home / 'data' / 'holdfast.db'}"))
    return home


@pytest.fixture
def run(home_of_conversations, monkeypatch, capsys):
    """Runs a command in this process: its status, what it printed, and what it said beside that."""
    from holdfast.cli import main

    monkeypatch.setenv("HOLDFAST_HOME", str(home_of_conversations))
    for name in ("HOLDFAST_STORE", "HOLDFAST_MODEL", "HOLDFAST_TENANT", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments):
        status = main(list(arguments))
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run
