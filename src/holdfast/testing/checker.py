"""Did every append arrive once, in order, in its own session? Judges a recorded run.

Clients append values that are unique in the whole run, read whole sessions, and note when each
operation was invoked and when it returned. What they noted is then held against seven rules:

    a  the longest read of a session holds no value twice
    b  every read is the beginning of the longest
    c  every value was appended to that session, and not refused
    d  a value acknowledged before a read was invoked is in that read
    e  if one append returned before another was invoked, it comes first
    f  a read is not behind one that returned before it was invoked
    g  an append of unknown outcome is there once or not at all

Together they say that each session is linearisable: there is one order of the appends that every
read, in every process, at every moment agrees with. The cost is O(n log n), because values are
unique and a read shows all of them.

A run ends with a read of each session, invoked when everything else has returned; without it
nothing could be said of what came last, and that is an anomaly too.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple


class Operation(NamedTuple):
    """One append or read. `returned_ns` is None when nobody knows how it ended.

    `outcome` of an append is acknowledged, refused (it had no effect: a Conflict) or unknown; a
    read has `values` and no outcome.
    """

    client: str
    session: str
    invoked_ns: int
    returned_ns: int | None
    value: str | None = None
    outcome: str = ""
    values: tuple[str, ...] | None = None


class Anomaly(NamedTuple):
    """A rule that was broken, where, and how."""

    rule: str
    session: str
    words: str

    def __str__(self) -> str:
        return f"session {self.session!r}: {self.words} (rule {self.rule})"


def check(operations: Iterable[Operation], *, one_clock: bool = True) -> list[Anomaly]:
    """Every rule that the run broke, session by session; nothing when all is well.

    With `one_clock` false the clients ran on several machines, whose clocks cannot be compared:
    rules d, e and f are then applied to each client's own operations.
    """
    sessions: dict[str, list[Operation]] = {}
    homes: dict[str, set[str]] = {}
    for operation in operations:
        sessions.setdefault(operation.session, []).append(operation)
        if operation.value is not None:
            homes.setdefault(operation.value, set()).add(operation.session)
    found = [
        Anomaly("c", min(homes[value]), f"{value!r} was appended to {len(homes[value])} sessions")
        for value in homes
        if len(homes[value]) > 1
    ]
    for name, all_of_it in sessions.items():
        found += _check_session(name, all_of_it, homes, one_clock)
    return found


def _check_session(
    name: str, operations: list[Operation], homes: dict[str, set[str]], one_clock: bool
) -> list[Anomaly]:
    reads = [each for each in operations if each.values is not None]
    appends = {each.value: each for each in operations if each.value is not None}
    longest = max((_values(each) for each in reads), key=len, default=())
    place: dict[str, int] = {}
    for index, value in enumerate(longest):
        place.setdefault(value, index)  # the first, where rule a is broken
    broken = [
        *_check_values(longest, appends, name, homes),
        *_check_prefixes(reads, longest),
        *_check_end(operations, reads),
    ]
    groups = [operations]
    if not one_clock:
        clients = sorted({each.client for each in operations})
        groups = [[each for each in operations if each.client == client] for client in clients]
    for group in groups:
        broken += _check_order(group, place)
        broken += _check_reads(group, place)
    return [Anomaly(rule, name, words) for rule, words in broken]


def _values(read: Operation) -> tuple[str, ...]:
    assert read.values is not None
    return read.values


def _check_values(
    longest: tuple[str, ...],
    appends: dict[str, Operation],
    name: str,
    homes: dict[str, set[str]],
) -> Iterable[tuple[str, str]]:
    for value, count in Counter(longest).items():
        append = appends.get(value)
        if count > 1:
            rule = "g" if append is not None and append.outcome == "unknown" else "a"
            yield rule, f"{value!r} is there {count} times"
        if append is None:
            others = homes.get(value, set()) - {name}
            whose = f"was appended to session {min(others)!r}" if others else "was never appended"
            yield "c", f"{value!r} is there, and {whose}"
        elif append.outcome == "refused":
            yield "c", f"{value!r} is there, and its append was refused"


def _check_prefixes(reads: list[Operation], longest: tuple[str, ...]) -> Iterable[tuple[str, str]]:
    for read in reads:
        values = _values(read)
        if values != longest[: len(values)]:
            differ = next(i for i, value in enumerate(values) if value != longest[i])
            here = f"a read of {read.client} has {values[differ]!r} at place {differ}"
            yield "b", f"{here}, and the longest has {longest[differ]!r}"


def _check_end(operations: list[Operation], reads: list[Operation]) -> Iterable[tuple[str, str]]:
    final = max(reads, key=lambda read: read.invoked_ns, default=None)
    others = [each for each in operations if each is not final]
    last = max((each.returned_ns or each.invoked_ns for each in others), default=0)
    if final is None or final.invoked_ns < last:
        yield "end", "no read was invoked when everything else had returned"


def _check_order(group: list[Operation], place: dict[str, int]) -> Iterable[tuple[str, str]]:
    done = [
        (place[each.value], each)
        for each in group
        if each.value in place and each.outcome == "acknowledged"
    ]
    earliest: tuple[int, str] | None = None  # the first return among those that stand behind
    for _, each in sorted(done, key=lambda pair: pair[0], reverse=True):
        if earliest is not None and earliest[0] < each.invoked_ns:
            yield (
                "e",
                f"{each.value!r} stands before {earliest[1]!r}, which returned before it began",
            )
        assert each.returned_ns is not None and each.value is not None
        if earliest is None or each.returned_ns < earliest[0]:
            earliest = (each.returned_ns, each.value)


def _check_reads(group: list[Operation], place: dict[str, int]) -> Iterable[tuple[str, str]]:
    """Each read is as long as everything that returned before it demands."""
    never = len(place) + 1  # longer than any read: a value that is nowhere
    demands: list[tuple[int, int, str, str]] = []  # when, how long, rule, words
    for each in group:
        if each.returned_ns is None:
            continue
        if each.values is not None:
            words = f"it is behind a read of {each.client}"
            demands.append((each.returned_ns, len(each.values), "f", words))
        elif each.outcome == "acknowledged":
            assert each.value is not None
            words = f"{each.value!r} was acknowledged before, and is missing"
            demands.append((each.returned_ns, place.get(each.value, never - 1) + 1, "d", words))
    demands.sort(key=lambda demand: demand[0])
    times = [demand[0] for demand in demands]
    highest: list[tuple[int, str, str]] = []  # the greatest demand up to each of them
    for _, length, rule, words in demands:
        before = highest[-1] if highest else (0, "", "")
        highest.append((length, rule, words) if length > before[0] else before)
    for read in group:
        index = bisect_left(times, read.invoked_ns) - 1
        if read.values is not None and index >= 0 and len(read.values) < highest[index][0]:
            _, rule, words = highest[index]
            yield rule, f"a read of {read.client} has {len(read.values)} values: {words}"
