"""The chain finds every change to a stored log, and lives on when an entry is erased."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.stores import chain
from holdfast.stores.head import Row

ROOT = chain.root("0197-session")


def rows_of(payloads, root=ROOT, first=1):
    previous, rows = root, []
    salts = chain.salts(len(payloads))
    for seq, (salt, payload) in enumerate(zip(salts, payloads, strict=True), start=first):
        link = chain.link(previous, seq, "message", chain.seal(salt, payload))
        rows.append(Row(seq, 0, seq - 1, "message", 0, link, salt, payload))
        previous = link
    return rows


def erased(row):
    return row._replace(payload=None, salt=None, seal=chain.seal(row.salt, row.payload))


def broken(rows, root=ROOT):
    return [seq for seq, _ in chain.broken(root, rows)]


def test_a_log_as_it_was_written_is_whole():
    """No row of a sound log is reported; an empty one is sound too."""
    assert broken(rows_of([b"a", b"b", b"", b"a"])) == []
    assert broken([]) == []


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=6), st.data())
def test_any_flipped_bit_is_found_in_its_row(payloads, data):
    """One bit, in payload, salt, link or kind, of any row: that row is named."""
    rows = rows_of(payloads)
    at = data.draw(st.integers(0, len(rows) - 1))
    field = data.draw(st.sampled_from(["payload", "salt", "link", "kind"]))
    value = getattr(rows[at], field)
    raw = bytearray(value.encode() if field == "kind" else value)
    if not raw:
        raw = bytearray(b"x")
    else:
        bit = data.draw(st.integers(0, len(raw) * 8 - 1))
        raw[bit // 8] ^= 1 << bit % 8
    spoiled = raw.decode("latin-1") if field == "kind" else bytes(raw)

    rows[at] = rows[at]._replace(**{field: spoiled})

    assert rows[at].seq in broken(rows)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda rows: rows[:1] + rows[2:],
        lambda rows: [rows[0], rows[2], rows[1], rows[3]],
        lambda rows: rows[1:],
        lambda rows: [*rows, rows[0]],
        lambda rows: [rows[0], rows[1]._replace(seq=9), *rows[2:]],
        lambda rows: [rows[0]._replace(payload=rows[1].payload, salt=rows[1].salt), *rows[1:]],
    ],
    ids=["missing", "swapped", "first missing", "repeated", "renumbered", "moved"],
)
def test_a_row_that_is_missing_or_moved_is_found(spoil):
    """The links say where each row belongs."""
    assert broken(spoil(rows_of([b"a", b"b", b"c", b"d"]))) != []


def test_a_row_of_another_session_does_not_fit():
    """Each session has a root of its own, so rows cannot be passed from one to another."""
    other = chain.root("0197-other")

    assert broken(rows_of([b"a"], other)) == [1]
    assert chain.root("a") != chain.root("b")


def test_one_flipped_bit_is_reported_once():
    """What stands behind a broken row is judged by the link before it."""
    rows = rows_of([b"a", b"b", b"c"])

    rows[1] = rows[1]._replace(payload=b"x")

    assert broken(rows) == [2]


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_log_with_an_erased_entry_still_verifies(at):
    """The seal stays in the place of what is gone, at the beginning, in the middle, at the end."""
    rows = rows_of([b"a", b"secret", b"c"])

    rows[at] = erased(rows[at])

    assert broken(rows) == []


def test_what_was_erased_cannot_be_guessed():
    """Two entries of the same text have seals of their own: trying texts finds nothing."""
    first, second = (erased(row) for row in rows_of([b"yes", b"yes"]))

    assert first.seal != second.seal
    assert chain.seal(b"\0" * chain.SIZE, b"yes") not in (first.seal, second.seal)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda seal: b"\0" * len(seal),
        lambda seal: seal + b"\0",
        lambda seal: seal[:-1],
    ],
    ids=["another", "longer", "shorter"],
)
def test_an_erased_seal_that_changed_is_found(spoil):
    """Erased rows are covered too, whatever a damaged file makes of their seals."""
    rows = [erased(row) for row in rows_of([b"a", b"b"])]

    rows[0] = rows[0]._replace(seal=spoil(rows[0].seal))

    assert broken(rows) == [1]


def test_a_row_that_is_half_erased_is_reported():
    """A payload without its salt, or neither and no seal, proves nothing."""
    row = rows_of([b"a"])[0]

    assert broken([row._replace(salt=None)]) == [1]
    assert broken([row._replace(payload=None)]) == [1]
    assert broken([row._replace(payload=None, salt=None)]) == [1]


def test_a_branch_hangs_on_the_entry_where_it_forks():
    """Its first link follows the link of that entry; the entries between belong to another line."""
    trunk = rows_of([b"a", b"b", b"c"])
    branch = rows_of([b"d"], trunk[0].link, first=4)

    assert broken([trunk[0], *branch]) == []
    assert broken([*trunk, *branch]) == [4]


def test_the_bytes_of_a_link_never_change():
    """A log written by any release verifies in every later one."""
    sealed = chain.seal(b"\x01" * 16, b"I am Ada.")

    assert chain.root("session").hex() == "5a36394057472dd6c87041e72e02f050"
    assert sealed.hex() == "24b09cc2b4da27388d11b89c3018a528"
    assert chain.link(chain.root("session"), 7, "message", sealed).hex() == (
        "1a692902da542f26c9da60798dd385c3"
    )


def test_salts_are_all_different():
    """Each entry has its own."""
    assert len(set(chain.salts(1_000))) == 1_000
    assert chain.salts(0) == []


@given(
    st.binary(min_size=16, max_size=16),
    st.integers(0, 2**40),
    st.integers(-1, 2**40),
    st.lists(
        st.tuples(
            st.sampled_from(["message", "fold", "call", "mark", "later", "späť"]),
            st.binary(max_size=200),
        ),
        max_size=4,
    ),
)
def test_new_rows_are_joined_as_they_are_verified(previous, seq, position, entries):
    """`rows` says in one breath what `verify` and every reader ask `seal`, `link` and `check`."""
    packed = [(kind, whole, b"kept", b"holes", {}) for kind, whole in entries]

    made = chain.rows(7, 3, seq, position, previous, packed)

    assert [(row[0], row[2], row[4], *row[8:]) for row in made] == [
        (7, 3, kind, b"kept", b"holes") for kind, _ in entries
    ]
    assert len({row[7] for row in made}) == len(made)
    for (kind, whole), (_, at, _, place, _, check, link, salt, _, _) in zip(
        entries, made, strict=True
    ):
        seq += 1
        position += kind == "message"
        assert (at, place) == (seq, position)
        assert link == chain.link(previous, seq, kind, chain.seal(salt, whole))
        assert check == chain.check(seq, position, kind, whole)
        previous = link
