"""The count guard: the log of the number of tests, and the runs it lets pass or not."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import count_guard
from count_guard import Line, Tally

TESTS = Path(__file__).parent


def test_the_log_parses_and_each_fall_has_a_reason():
    """tests/count.txt is written by people too, and has to stay readable."""
    lines = count_guard.parse((TESTS / "count.txt").read_text(encoding="utf-8"))

    assert count_guard.problems(lines) == []


def test_a_line_is_a_number_and_a_reason():
    assert count_guard.parse("3 the first tests\n12  more\n") == [
        Line(3, "the first tests"),
        Line(12, "more"),
    ]


@pytest.mark.parametrize(
    "text", ["", "12\n", "12 \n", "twelve tests\n", "-1 below nothing\n", "3 good\n\n4 good\n"]
)
def test_a_line_without_number_or_reason_is_refused(text):
    with pytest.raises(ValueError, match=r"line \d|empty"):
        count_guard.parse(text)


def test_lowering_the_number_needs_a_reason():
    """Raising it does not: more tests explain themselves."""
    assert count_guard.problems([Line(3, "a"), Line(9, "b"), Line(8, "merged two tests")]) == []

    (found,) = count_guard.problems([Line(3, "a"), Line(9, "b"), Line(8, "oops")])
    assert "line 3" in found
    assert "from 9 to 8" in found


def test_fewer_passed_tests_fail_the_run():
    verdict = count_guard.judge([Line(20, "before"), Line(10, "now")], passed=9)

    assert not verdict.ok
    assert "9 tests are accounted for" in verdict.sentence
    assert "10" in verdict.sentence
    assert "tests/count.txt" in verdict.sentence


def test_as_many_passed_tests_pass_in_silence():
    assert count_guard.judge([Line(10, "now")], passed=10) == count_guard.Verdict(True)


def test_more_passed_tests_pass_and_ask_to_be_recorded():
    verdict = count_guard.judge([Line(10, "now")], passed=11)

    assert verdict.ok
    assert "scripts/test --record" in verdict.sentence


def test_recording_adds_a_line_and_keeps_the_others():
    assert count_guard.record("3 first\n", 5, " stores\nand codecs ") == (
        "3 first\n5 stores and codecs\n"
    )
    assert count_guard.record("3 first", 5, "more") == "3 first\n5 more\n"
    assert count_guard.record("3 first\n", 3, "nothing new") == "3 first\n"


@pytest.mark.parametrize("reason", ["", " ", "oops"])
def test_recording_fewer_tests_needs_a_reason(reason):
    with pytest.raises(ValueError, match="line"):
        count_guard.record("3 first\n", 2, reason)


def test_the_summary_names_each_skipped_test_with_its_reason():
    tally = Tally(passed=4, skipped=[("b", "no database"), ("a", "only on Windows")])

    assert count_guard.summary(tally) == [
        "tests: 4 passed, 2 skipped",
        "skipped: a: only on Windows",
        "skipped: b: no database",
    ]


@pytest.fixture
def suite(tmp_path):
    """A small suite with our conftest: two tests pass, one is skipped, two pass in one test."""
    for name in ("conftest.py", "count_guard.py"):
        shutil.copy(TESTS / name, tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")
    (tmp_path / "test_small.py").write_text(
        "import pytest\n"
        "def test_one(): pass\n"
        "def test_two(subtests):\n"
        "    with subtests.test('a'): pass\n"
        "    with subtests.test('b'): pass\n"
        "@pytest.mark.skip(reason='no moon tonight')\n"
        "def test_three(): pass\n"
        "@pytest.mark.xfail(reason='not built')\n"
        "def test_four(): assert False\n"
    )

    def run(count, *arguments):
        (tmp_path / "count.txt").write_text(count)
        return subprocess.run(
            [sys.executable, "-m", "pytest", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )

    return run


def test_a_run_with_fewer_tests_than_recorded_fails(suite):
    """The guard is tried for real: a lost test turns a green run red."""
    done = suite("4 first\n", "--count-guard")

    assert done.returncode == 1
    assert "3 tests are accounted for, and tests/count.txt says 4" in done.stdout
    assert "skipped: test_small.py::test_three: no moon tonight" in done.stdout
    assert "failed as expected: test_small.py::test_four: not built" in done.stdout


def test_a_run_of_a_part_is_not_judged(suite):
    done = suite("3 first\n", "-k", "test_one")

    assert done.returncode == 0, done.stdout


def test_recording_changes_the_log(suite, tmp_path):
    done = suite("4 first\n", "--count-guard", "--count-record", "test_five was a duplicate")

    assert done.returncode == 0, done.stdout
    assert (tmp_path / "count.txt").read_text() == "4 first\n3 test_five was a duplicate\n"


def test_a_failing_run_records_nothing(suite, tmp_path):
    (tmp_path / "test_bad.py").write_text("def test_bad(): assert False\n")

    done = suite("1 first\n", "--count-guard", "--count-record", "more tests of things")

    assert done.returncode == 1
    assert (tmp_path / "count.txt").read_text() == "1 first\n"


def test_a_run_names_the_tests_that_failed(suite, tmp_path):
    """Those can be tried once more; all others have to be accounted for."""
    (tmp_path / "test_bad.py").write_text(
        "import pytest\n"
        "@pytest.fixture\n"
        "def broken(): assert False\n"
        "@pytest.mark.parametrize('word', ['a b', 'c'])\n"
        "def test_bad(word): assert word == 'c'\n"
        "def test_worse(broken): pass\n"
    )
    failed = tmp_path / "failed"

    suite("7 first\n", "--count-guard", f"--failed-file={failed}")
    assert not failed.exists()

    suite("6 first\n", "--count-guard", f"--failed-file={failed}")
    assert failed.read_text() == "test_bad.py::test_bad[a b]\ntest_bad.py::test_worse\n"

    done = suite("1 first\n", f"@{failed}")
    assert "2 failed" in done.stdout or "1 failed, 1 error" in done.stdout


def test_a_run_that_passes_names_none(suite, tmp_path):
    done = suite("3 first\n", "--count-guard", f"--failed-file={tmp_path / 'failed'}")

    assert done.returncode == 0
    assert not (tmp_path / "failed").exists()
