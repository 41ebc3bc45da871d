"""F03: the n-th system call on the files of a store fails, once or from then on.

The step that meets it ends well or with an error of ours, and then nothing of it is there, neither
for the program itself nor for the next one. When the fault was a single one, the program goes on
without a restart. When a sync of the log failed the kernel has forgotten what it could not write:
nothing more is committed through that descriptor.
"""

import itertools
import re

import pytest

from faults import oracle, subjects
from faults.log import read_log
from faults.tier import FULL, need, some
from holdfast.testing.faults import forks, strace

STORE, RAW = "faults.subjects:play", "faults.controls:play"
STORE_DIES, RAW_DIES = "faults.subjects:play_and_die", "faults.controls:play_and_die"
SYNCS = ("fsync", "fdatasync")
FILES = pytest.mark.parametrize("file", ["store.db", "store.sessions"], ids=["sqlite", "jsonl"])
_CALL = re.compile(
    r"(fsync|fdatasync|close|pwrite64)\((\d+<[^>]*(?:-wal|\.log|\.jsonl)>).*\)\s+= (-?\d+)"
)
LOOK = {"do": "look", "session": ""}


def faults_of(kind):
    """The errors that a call of this kind can meet, each once and for ever."""
    errors = [e for e in strace.ERRORS if e != "EMFILE" or kind.startswith("open")]
    pairs = itertools.product(errors, (False, True))
    return [(e, forever) for e, forever in pairs if (e, forever) != ("EINTR", True)]


def in_turn(points):
    """Each point meets a few of its errors, and over all points every error has its turn."""
    for at, point in enumerate(points):
        faults = faults_of(point.kind)
        yield from ((point, *faults[(2 * at + n) % len(faults)]) for n in range(2))


def syncs_for_ever(points):
    """From each sync on, all of them fail, with every error that a sync can meet."""
    syncs = [point for point in points if point.kind in SYNCS]
    return ((p, e, forever) for p in syncs for e, forever in faults_of(p.kind) if forever)


def broken_runs(
    forks, folder, script, short, *arguments, cases=in_turn, broken=None, file="store.db"
):
    """Run the script with each point broken, as `cases` makes them of the points.

    `broken` is the program that is broken, where it is not the one whose calls are counted.
    """
    counted = arranged(folder, "count", script, arguments, file)
    seen = strace.calls(forks, counted, folder / "count")
    chosen = some(cases(strace.points(seen)), short)
    for at, (point, error, forever) in enumerate(chosen):
        place = arranged(folder, f"p{at}", script, arguments, file)
        files = [path.replace("/count/", f"/p{at}/") for path in strace.files(seen)]
        outcome = strace.inject(
            broken or forks,
            place,
            files,
            point,
            f"error={error}",
            forever=forever,
            watch=[*SYNCS, "close", "pwrite64"],
        )
        yield (point, error, forever), place, outcome


def arranged(folder, name, script, arguments, file="store.db"):
    (folder / name).mkdir()
    return [str(folder / name / file), str(folder / f"{name}.log"), script, *arguments]


def commits_through_a_dead_descriptor(trace):
    """Commits on a log through a descriptor whose sync had failed before, and was not closed."""
    failed, written, found = set(), set(), []
    for line in trace:
        call = _CALL.search(line)
        if call is None:
            continue
        kind, descriptor, result = call.groups()
        if kind == "close":
            failed.discard(descriptor)
            written.discard(descriptor)
        elif kind == "pwrite64" and descriptor in failed:
            written.add(descriptor)
        elif kind in SYNCS and result == "-1" and "EINTR" not in line:
            failed.add(descriptor)
        elif kind in SYNCS and descriptor in written:
            found.append(f"committed through a descriptor whose sync had failed: {line}")
    return found


@FILES
@pytest.mark.usefixtures("uncovered")
def test_every_failing_call_is_told_and_leaves_nothing_half_done(programs, fast_path, file):
    """Typed errors only; old data equal; usable afterwards; no commit after a failed sync."""
    need(strace.missing())
    script = [*subjects.turn_script(1), LOOK]
    wrong, hits = {}, 0

    for case, place, outcome in broken_runs(programs(STORE), fast_path, script, 60, file=file):
        steps = read_log(place[1])
        found = oracle.judge(steps, oracle.read_store(place[0]))
        if outcome.status != 0:
            found.append(f"it ended with status {outcome.status}: {outcome.stderr[-500:]}")
        failed = [each for each in steps if each.outcome == "failed"]
        faults = sum(
            "(INJECTED)" in line for line in outcome.trace
        )  # each thread counts for itself
        if not case[2] and len(failed) > faults:
            found.append(f"{faults} faults, but {[e.error for e in failed]}")
        found += commits_through_a_dead_descriptor(outcome.trace)
        hits += outcome.is_hit
        if found:
            wrong[case] = found

    assert wrong == {}
    assert hits > (200 if FULL else 40)


@FILES
def test_what_was_refused_when_no_sync_works_any_more_is_not_there(programs, fast_path, file):
    """A refused commit lies in the log whole. It is written over or cut off, although that is not
    synced either; so it does not come back when the program is gone without closing the store."""
    need(strace.missing())
    script = [*subjects.turn_script(1), LOOK]
    wrong, refused = {}, 0

    runs = broken_runs(
        programs(STORE),
        fast_path,
        script,
        12,
        cases=syncs_for_ever,
        broken=programs(STORE_DIES),
        file=file,
    )
    for case, place, _ in runs:
        steps = read_log(place[1])
        refused += any(each.outcome == "failed" for each in steps)
        if found := oracle.judge(steps, oracle.read_store(place[0])):
            wrong[case] = found

    assert wrong == {}
    assert refused > (20 if FULL else 4)


def test_a_program_that_leaves_what_it_refused_in_the_log_is_caught(programs, fast_path):
    """Control: plain sqlite3 rolls back, and the next one to open the file finds it committed."""
    need(strace.missing())
    wrong = []

    runs = broken_runs(
        programs(RAW),
        fast_path,
        subjects.plain_script(),
        12,
        cases=syncs_for_ever,
        broken=programs(RAW_DIES),
    )
    for _, place, _ in runs:
        wrong += oracle.judge(read_log(place[1]), oracle.read_raw(place[0]))

    assert any("should not be" in each or "goes on with" in each for each in wrong)


def test_plain_sqlite_passes_the_same_sweep(programs, fast_path):
    """A program that tells what failed, and rolls back, is found in order."""
    need(strace.missing())
    script = subjects.plain_script()

    for case, place, _ in broken_runs(programs(RAW), fast_path, script, 20):
        if case[2]:
            continue  # after such an end plain sqlite3 finds what it had refused: see above
        assert oracle.judge(read_log(place[1]), oracle.read_raw(place[0])) == [], case


def test_a_program_that_takes_an_error_for_success_is_caught(programs, fast_path):
    """Control: it acknowledges what was never stored."""
    need(strace.missing())
    wrong = []

    for _, place, _ in broken_runs(
        programs(RAW), fast_path, subjects.plain_script(), 20, "swallow"
    ):
        wrong += oracle.judge(read_log(place[1]), oracle.read_raw(place[0]))

    assert any("lost" in sentence for sentence in wrong)


SHORT_WRITES = {
    "the store": ("faults.subjects:play_with_short_writes", oracle.read_store),
    "the store in files": ("faults.subjects:play_with_short_writes", oracle.read_store),
    "plain sqlite3": ("faults.controls:play_with_short_writes", oracle.read_raw),
}


@pytest.mark.parametrize("who", SHORT_WRITES)
def test_a_write_that_stops_half_way_is_told_and_undone(programs, fast_path, who):
    """No file can grow beyond a point that falls inside a write; later it can again."""
    need(forks.missing())
    program, look = SHORT_WRITES[who]
    script = subjects.growing_script(who != "plain sqlite3")
    is_files = who == "the store in files"
    rooms = range(4_000, 16_000, 257) if is_files else range(24_000, 60_000, 617)

    for room in some(rooms, 15):
        file = "store.sessions" if is_files else "store.db"
        place = arranged(fast_path, f"p{room}", script, [room], file)
        run = programs(program).start(*place)
        assert run.wait() == 0, run.stderr
        steps = read_log(place[1])
        assert oracle.judge(steps, look(place[0])) == [], room
        assert steps[-1].outcome == "acknowledged", (room, steps[-1])
