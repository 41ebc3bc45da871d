"""Archives of every kind for the tests of formats, made by Hypothesis."""

from datetime import timedelta

from hypothesis import strategies as st

import strategies as our
from holdfast.archive import Archive
from holdfast.entries import kind_of
from holdfast.frozen import FrozenDict
from holdfast.settings import Settings
from holdfast.stores.values import Appended, Branch, Draft, Named, Record, Stored

KEYS = st.sampled_from(["cli:direct", "telegram:1", "a/b", "日本", "-"])
NAMES = ("main", "other", "third 'x'")


@st.composite
def archives(draw, entries=None):
    """A log on up to three branches, as a store would give it."""
    entries = our.entries if entries is None else entries
    branches, stored, seq = {"main": Branch(name="main")}, [], 0
    for _ in range(draw(st.integers(0, 6))):
        free = [name for name in NAMES if name not in branches]
        if free and seq and draw(st.integers(0, 3)) == 0:
            _open(draw, branches, free[0], stored)
            continue
        name = draw(st.sampled_from(list(branches)))
        seq += 1
        stored.append(_said(draw, branches, name, seq, entries))
    record = Record(
        key=draw(KEYS),
        id="0197f0c5-0000-7000-8000-000000000001",
        agent=draw(our.texts),
        settings=Settings.of({"extra": draw(our.json_objects)}),
        metadata=FrozenDict(draw(our.json_objects)),
        tools=tuple(draw(st.lists(our.json_objects.map(FrozenDict), max_size=1))),
        counters=FrozenDict(draw(our.json_objects)),
        ttl=draw(st.none() | st.integers(1, 10**15).map(lambda us: timedelta(microseconds=us))),
        parent=draw(our.optional_texts),
        created_at=draw(our.times),
        updated_at=draw(our.times),
        branch=draw(st.sampled_from(list(branches))),
        branches=tuple(branches.values()),
        seq=seq,
        draft=draw(st.none() | st.just(Draft(token=1, owner="me", input=FrozenDict({"a": 1})))),
    )
    return Archive(record, tuple(stored), tuple(draw(st.lists(named(), max_size=1))))


def _open(draw, branches, name, stored):
    fork = draw(st.sampled_from(stored))
    base = branches[fork.branch]
    count = sum(
        each.kind == "message" and each.seq <= fork.seq and each.branch == fork.branch
        for each in stored
    )
    inherited = 0
    if base.parent is not None:
        inherited = _base_of(branches, base.name, stored)
    branches[name] = Branch(
        name=name, parent=fork.branch, fork=fork.seq, head=fork.seq, count=inherited + count
    )


def _base_of(branches, name, stored):
    own = sum(each.kind == "message" and each.branch == name for each in stored)
    return branches[name].count - own


def _said(draw, branches, name, seq, entries):
    entry = draw(st.none() | entries)
    kind = "message" if entry is None else kind_of(entry)
    branch = branches[name]
    count = branch.count + (kind == "message")
    branches[name] = branch.replace(head=seq, count=count)
    return Stored(seq, max(count - 1, 0), name, kind, entry)


def named():
    return st.builds(
        lambda name, salt: Named(
            name, Appended(1, 1, "main", 1), salt, None if salt is None else b"d" * 16
        ),
        our.words,
        st.none() | st.binary(min_size=16, max_size=16),
    )
