"""The checker finds every kind of fault that it is there for, and none where there is none."""

import random
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.testing.checker import Anomaly, Operation, check
from holdfast.testing.journal import Journal, read_journals


def append(value, start, end, session="s", client="c", outcome="acknowledged"):
    return Operation(client, session, start, end, value, outcome)


def read(values, start, end, session="s", client="c"):
    return Operation(client, session, start, end, values=tuple(values))


def rules(operations, **options):
    return {anomaly.rule for anomaly in check(operations, **options)}


def linearisable(seed, count=300, sessions=4, clients=5):
    """A run that some correct store could have produced: each operation takes effect at one moment
    between its invocation and its return, and clients overlap."""
    rnd = random.Random(seed)
    steps = []
    for client in range(clients):
        now = rnd.randrange(100)
        for number in range(count // clients):
            start, effect = now, now + rnd.randrange(1, 50)
            now = effect + rnd.randrange(1, 50)
            kind = rnd.choices(
                ["append", "read", "refused", "unknown", "vanished"], [70, 20, 4, 3, 3]
            )
            steps.append((effect, rnd.random(), client, number, start, now, kind[0]))
            now += rnd.randrange(0, 10)
    logs = {f"s{n}": [] for n in range(sessions)}
    operations = []
    for _, _, client, number, start, end, kind in sorted(steps):
        session, value = f"s{rnd.randrange(sessions)}", f"{client}-{number}"
        who = f"c{client}"
        if kind == "read":
            operations.append(read(logs[session], start, end, session, who))
            continue
        if kind in ("append", "unknown"):
            logs[session].append(value)
        outcome = {"append": "acknowledged", "refused": "refused"}.get(kind, "unknown")
        returned = None if outcome == "unknown" else end
        operations.append(append(value, start, returned, session, who, outcome))
    last = max(op.returned_ns or op.invoked_ns for op in operations)
    for session, log in logs.items():
        operations.append(read(log, last + 1, last + 2, session, "judge"))
    rnd.shuffle(operations)
    return operations


@settings(max_examples=300)
@given(st.integers(0, 10**9))
def test_a_run_of_a_correct_store_has_no_anomaly(seed):
    """Overlapping, refused and unknown appends are in order when one order explains them all."""
    operations = linearisable(seed)

    assert check(operations) == []
    assert check(operations, one_clock=False) == []


FAULTS = {
    "a value twice": (
        [append("x", 1, 2), append("y", 3, 4), read("xyx", 5, 6)],
        {"a"},
    ),
    "an unknown append twice": (
        [append("x", 1, None, outcome="unknown"), append("y", 3, 4), read("xyx", 5, 6)],
        {"g"},
    ),
    "two reads in different order": (
        [append("x", 1, 9), append("y", 1, 9), read("yx", 2, 3), read("xy", 10, 11)],
        {"b"},
    ),
    "a value nobody appended": ([append("x", 1, 2), read("xz", 3, 4)], {"c"}),
    "a value of another session": (
        [append("x", 1, 2), append("z", 1, 2, "t"), read("xz", 3, 4), read("z", 3, 4, "t")],
        {"c"},
    ),
    "a value in two sessions": (
        [append("x", 1, 2), append("x", 1, 2, "t"), read("x", 3, 4), read("x", 3, 4, "t")],
        {"c"},
    ),
    "a refused append had an effect": (
        [append("x", 1, 2, outcome="refused"), read("x", 3, 4)],
        {"c"},
    ),
    "an acknowledged append is lost": (
        [append("x", 1, 2), append("y", 3, 4), read("y", 5, 6)],
        {"d"},
    ),
    "a read misses what was acknowledged": (
        [append("x", 1, 2), read("", 3, 4), read("x", 5, 6)],
        {"d"},
    ),
    "a later append comes first": (
        [append("x", 1, 2), append("y", 3, 4), read("yx", 5, 6)],
        {"e"},
    ),
    "a read goes back": (
        [append("x", 1, 9), read("x", 2, 3), read("", 4, 5), read("x", 10, 11)],
        {"f"},
    ),
    "nobody looked at the end": ([read("", 1, 2), append("x", 3, 4)], {"end"}),
    "nobody looked at all": ([append("x", 1, 2)], {"end"}),
}


@pytest.mark.parametrize("name", FAULTS)
def test_every_planted_fault_is_found_by_its_rule(name):
    """A checker that passes these would prove nothing about a store."""
    operations, expected = FAULTS[name]

    assert rules(operations) == expected


PLANTS = {
    "lost": lambda log, rnd: log[: (k := rnd.randrange(len(log)))] + log[k + 1 :],
    "doubled": lambda log, rnd: [*log, rnd.choice(log)],
    "first last": lambda log, rnd: [*log[1:], log[0]],
    "foreign": lambda log, rnd: [*log, "nobody"],
}


@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize("seed", range(20))
def test_a_fault_planted_at_random_in_a_long_run_is_found(plant, seed):
    """The final state of one session is spoiled; the rest stays as a correct store had it."""
    operations = linearisable(seed)
    rnd = random.Random(seed)
    final = max((op for op in operations if op.session == "s0"), key=lambda op: op.invoked_ns)
    sure = {op.value for op in operations if op.outcome == "acknowledged"}
    log = list(final.values)
    while True:
        spoiled = PLANTS[plant](log, rnd)
        if plant != "lost" or set(log) - set(spoiled) <= sure:
            break

    operations[operations.index(final)] = final._replace(values=tuple(spoiled))

    assert check(operations) != []


def test_clocks_of_several_machines_are_not_compared():
    """What looks stale between two clients may be their clocks; within one client it is a fault."""
    skewed = [
        append("x", 1, 2, client="a"),
        read("", 3, 4, client="b"),
        read("x", 5, 6, client="b"),
    ]
    stale = [append("x", 1, 2, client="a"), read("", 3, 4, client="a"), read("x", 5, 6, client="b")]

    assert rules(skewed) == {"d"}
    assert rules(skewed, one_clock=False) == set()
    assert rules(stale, one_clock=False) == {"d"}


def test_an_anomaly_says_in_words_what_is_wrong():
    """Whoever reads the report sees the session, the values and the rule."""
    (found,) = check([append("x", 1, 2), read("xz", 3, 4)])

    assert isinstance(found, Anomaly)
    assert str(found) == "session 's': 'z' is there, and was never appended (rule c)"


def test_a_journal_gives_back_what_was_noted(tmp_path):
    """Every kind of operation, with the note that ends an append in the place of its first."""
    with Journal(tmp_path / "one", client="c") as journal:
        start = journal.invoked("s", "x")
        journal.appended("s", "x", start)
        journal.refused("s", "y", journal.invoked("s", "y"))
        journal.unknown("s", "z", journal.invoked("s", "z"))
        journal.read("s", ["x"], journal.now())

    found = read_journals([tmp_path / "one"])

    assert [(op.value, op.outcome, op.values) for op in found] == [
        ("x", "acknowledged", None),
        ("y", "refused", None),
        ("z", "unknown", None),
        (None, "", ("x",)),
    ]
    assert found[0].invoked_ns == start <= found[0].returned_ns
    assert found[2].returned_ns is None
    assert check(found) == []


KILLED = """
import os, signal, sys
from holdfast.testing.journal import Journal
journal = Journal(sys.argv[1], client="c")
start = journal.invoked("s", "x")
journal.appended("s", "x", start)
journal.invoked("s", "y")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_client_had_begun_is_of_unknown_outcome(tmp_path):
    """A kill leaves no note that ends the append: it may be there, and it may not."""
    path = tmp_path / "one"

    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    begun = read_journals([path])
    path.write_text(path.read_text() + '{"client": "c", "sess')

    assert [(op.value, op.outcome) for op in begun] == [("x", "acknowledged"), ("y", "unknown")]
    assert read_journals([path]) == begun


def test_a_damaged_journal_is_refused(tmp_path):
    """A line in the middle that is no operation would hide what happened."""
    (tmp_path / "one").write_text('nonsense\n{"client": "c"}\n')

    with pytest.raises(InvalidInput, match="line 1"):
        read_journals([tmp_path / "one"])
