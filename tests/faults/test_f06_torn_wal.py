"""F06: the end of the write-ahead log is cut, flipped or blank, as after a torn write.

What opens is exactly what was there after some step: every step whose bytes are whole, and nothing
of the one that was torn. A block of the database that is blank is told, and never read as text.
"""

import signal

import pytest

from faults import oracle, subjects
from faults.log import read_log
from faults.tier import FULL, need, pick, some
from holdfast.testing.faults import damage, forks

STORE, RAW = "faults.subjects:play_and_die", "faults.controls:play_and_die"
BLOCK = 512
LOOKS = {STORE: oracle.read_store, RAW: oracle.read_raw}
EXAMINES = {STORE: oracle.examine, RAW: oracle.examine_raw}
BOTH = pytest.mark.parametrize("program", [STORE, RAW], ids=["the store", "plain sqlite3"])


@pytest.fixture(autouse=True)
def _can_run():
    need(forks.missing())


def killed(programs, folder, program, script=None):
    """A store whose log was never written back, and its steps."""
    (folder / "base").mkdir()
    steps = script or subjects.growing_script(program == STORE)
    run = programs(program).start(str(folder / "base" / "store.db"), str(folder / "log"), steps)
    assert run.wait() == -signal.SIGKILL, run.stderr
    return read_log(folder / "log")


def changed(folder, change, suffix="-wal"):
    """A copy of the store with one file changed; the path of its database."""
    copy = damage.copy(folder / "base", folder / "copy") / "store.db"
    file = copy.with_name(copy.name + suffix)
    file.write_bytes(change(file.read_bytes()))
    return copy


def prefix_of(found, states):
    """How many steps have happened in what was found; None if it is no state that ever was."""
    places = [at for at, state in enumerate(states) if state == found.sessions]
    return places[-1] if places and not found.complaints else None


@BOTH
def test_a_log_cut_anywhere_holds_every_step_before_the_cut(programs, fast_path, program):
    """At every 512 bytes, at every commit, and one byte to each side of it."""
    steps = killed(programs, fast_path, program)
    states = oracle.states(steps)
    size = (fast_path / "base" / "store.db-wal").stat().st_size
    sizes = [each.note["wal"] for each in steps]
    cuts = {*range(0, size, BLOCK), *(s + d for s in sizes for d in (-1, 0, 1) if s + d <= size)}
    assert sizes == sorted(sizes), "the log was written back meanwhile: the script is too long"

    for cut in some(sorted(cuts), 60 if program == STORE else 30):
        found = LOOKS[program](changed(fast_path, lambda wal, n=cut: damage.cut(wal, n)))

        whole = sum(end <= cut for end in sizes)
        at = prefix_of(found, states)
        assert at is not None, (cut, found)
        assert at >= whole, (cut, at, whole)


@BOTH
def test_a_log_with_a_flipped_bit_holds_every_step_before_it(programs, fast_path, program):
    """A frame that is not what was written ends the log there."""
    steps = killed(programs, fast_path, program)
    states = oracle.states(steps)
    size = (fast_path / "base" / "store.db-wal").stat().st_size
    sizes = [each.note["wal"] for each in steps]

    for bit in damage.bits(size, pick(25, 300), seed=6, start=32):
        found = LOOKS[program](changed(fast_path, lambda wal, n=bit: damage.flipped(wal, n)))

        whole = sum(end <= bit // 8 for end in sizes)
        at = prefix_of(found, states)
        assert at is not None, (bit, found)
        assert at >= whole, (bit, at, whole)


@BOTH
def test_a_log_that_ends_in_zeros_holds_every_step_before_them(programs, fast_path, program):
    """Blocks that were allocated and never written."""
    steps = killed(programs, fast_path, program)
    states = oracle.states(steps)
    size = (fast_path / "base" / "store.db-wal").stat().st_size
    sizes = [each.note["wal"] for each in steps]

    for start in some(range(0, size, 4 * BLOCK), 25):
        blank = changed(fast_path, lambda wal, n=start: damage.blanked(wal, n, size))
        found = LOOKS[program](blank)

        at = prefix_of(found, states)
        assert at is not None, (start, found)
        assert at >= sum(end <= start for end in sizes)


def blank_blocks(programs, folder, program):
    """What each blank block of the database does to a store that was closed."""
    name = program.replace("_and_die", "")
    script = subjects.growing_script(program == STORE)
    (folder / "base").mkdir()
    arguments = [str(folder / "base" / "store.db"), str(folder / "log"), script]
    assert programs(name).run(*arguments) == 0
    states = oracle.states(read_log(folder / "log"))
    size = (folder / "base" / "store.db").stat().st_size
    for start in some(range(0, size, BLOCK), 60):
        path = changed(folder, lambda data, n=start: damage.blanked(data, n, BLOCK), suffix="")
        yield start, EXAMINES[program](path, states)


def test_a_blank_block_of_the_database_is_noticed(programs, fast_path):
    """0 silent wrong answers, 0 uncaught errors."""
    answers = dict(blank_blocks(programs, fast_path, STORE))

    assert [(at, a) for at, a in answers.items() if a not in ("intact", "detected")] == []
    assert "detected" in answers.values()


def test_a_table_without_digests_is_caught(programs, fast_path):
    """Control: plain sqlite3 gives blank text back as if it had been written."""
    answers = dict(blank_blocks(programs, fast_path, RAW))

    assert "silent" in answers.values()
    assert not FULL or len(answers) > 20
