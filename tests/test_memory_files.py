"""The files of a memory: changed so that a crash between any two of them shows nowhere."""

import json

import pytest

from holdfast.consolidation import disk, state
from holdfast.consolidation.files import Entry, Files
from holdfast.consolidation.state import Move, Owner
from holdfast.errors import Corrupt, FormatTooNew
from memories import fast_folder

tmp_path = fast_folder
OWNER = Owner(tenant="", key="cli:direct")


class Crash(BaseException):
    """The process ends here."""


class Crashing:
    """Lets the first `steps` changes of a file happen; the next is cut off before or behind."""

    def __init__(self, monkeypatch, steps, *, is_behind):
        self.steps = steps
        self.is_behind = is_behind
        for name in ("write", "add", "remove"):
            monkeypatch.setattr(disk, name, self._counted(getattr(disk, name)))

    def _counted(self, change):
        def changed(*args):
            self.steps -= 1
            if self.steps < 0 and not self.is_behind:
                raise Crash
            change(*args)
            if self.steps < 0:
                raise Crash

        return changed


def made(number, *, memory=True):
    """A consolidation of two messages."""
    seqs = (2 * number, 2 * number + 1)
    move = Move(session="s", branch="main", start=seqs[0], stop=seqs[1] + 1, seq=seqs[1])
    facts = "".join(f"- fact {n}\n" for n in range(number + 1))
    return Entry(OWNER, move, seqs, f"entry {number}", facts if memory else None)


@pytest.mark.parametrize("is_behind", [False, True])
@pytest.mark.parametrize("steps", range(9))
def test_a_crash_at_any_step_repeats_nothing_and_loses_nothing(
    steps, is_behind, tmp_path, monkeypatch
):
    """B6: it is there whole or not at all; asked for again, it is there once."""
    Files(tmp_path, 10).decide(made(0))
    Files(tmp_path, 10).moved(made(0).move)
    with monkeypatch.context() as patch:
        Crashing(patch, steps, is_behind=is_behind)
        try:
            Files(tmp_path, 10).decide(made(1))
        except Crash:
            pass
        else:
            assert steps > 5
    again = Files(tmp_path, 10)

    if made(1).move not in again.settled().moves:
        assert again.past() == "entry 0\n\n" and again.seen().memory == "- fact 0\n"
        again.decide(made(1))
    assert again.past() == "entry 0\n\nentry 1\n\n"
    assert again.seen().memory == "- fact 0\n- fact 1\n"
    assert [each.entry for each in again.made()] == ["entry 0", "entry 1"]
    assert again.settled().moves == (made(1).move,)


@pytest.mark.parametrize("is_behind", [False, True])
@pytest.mark.parametrize("steps", range(8))
def test_a_crash_while_it_is_erased_leaves_it_to_be_asked_for_again(
    steps, is_behind, tmp_path, monkeypatch
):
    """What tells which entries these are goes last."""
    for number in range(3):
        Files(tmp_path, 10).decide(made(number))
    with monkeypatch.context() as patch:
        Crashing(patch, steps, is_behind=is_behind)
        try:
            Files(tmp_path, 10).forget("s", [3])
        except Crash:
            pass
    Files(tmp_path, 10).forget("s", [3])

    assert Files(tmp_path, 10).past() == "entry 0\n\nentry 2\n\n"
    assert Files(tmp_path, 10).seen().memory == "- fact 0\n"
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or b"fact 1" not in path.read_bytes(), path
        assert path.is_dir() or b"entry 1" not in path.read_bytes(), path


def test_a_torn_entry_is_completed_and_what_others_added_is_kept(tmp_path):
    """B6: at every byte at which the write may have ended."""
    path = tmp_path / "HISTORY.md"
    for size in range(11):
        path.write_bytes(b"before\n\n" + b"an entry\n\n"[:size])
        for _ in range(2):
            disk.add(path, 8, b"an entry\n\n")
        assert path.read_bytes() == b"before\n\nan entry\n\n"
    path.write_bytes(b"before\n\nnanobot's\n\n")
    for _ in range(2):
        disk.add(path, 8, b"an entry\n\n")
    assert path.read_bytes() == b"before\n\nnanobot's\n\nan entry\n\n"
    path.write_bytes(b"cut")
    disk.add(path, 8, b"an entry\n\n")
    assert path.read_bytes() == b"cutan entry\n\n"


def test_an_entry_begins_on_a_line_of_its_own(tmp_path):
    """S4-47: also where somebody has left HISTORY.md without an end of line."""
    (tmp_path / "HISTORY.md").write_text("by hand")
    Files(tmp_path, 10).decide(made(0))

    assert Files(tmp_path, 10).past() == "by hand\n\nentry 0\n\n"


def test_memory_that_did_not_change_is_not_touched_by_erasing_its_entry(tmp_path):
    """An entry with which nothing was learned has left nothing in MEMORY.md."""
    files = Files(tmp_path, 10)
    files.decide(made(0))
    files.decide(made(1, memory=False))
    files.decide(made(2))
    files.forget("s", [3])

    assert files.seen().memory == "- fact 0\n- fact 1\n- fact 2\n"
    assert files.past() == "entry 0\n\nentry 2\n\n"


def test_an_entry_whose_words_another_one_ends_with_is_the_one_that_goes(tmp_path):
    """And of two that say the same, one goes."""
    files = Files(tmp_path, 10)
    for number, entry in enumerate(["They said hello", "Rain", "hello", "hello"]):
        files.decide(made(number)._replace(entry=entry))
    files.forget("s", [4])
    assert files.past() == "They said hello\n\nRain\n\nhello\n\n"
    files.forget("s", [6])

    assert files.past() == "They said hello\n\nRain\n\n"


def test_what_was_remembered_without_an_entry_is_forgotten_too(tmp_path):
    """Redaction may leave nothing of an entry; MEMORY.md was still made of the messages."""
    files = Files(tmp_path, 10)
    files.decide(made(0))
    files.decide(made(1)._replace(entry=""))
    assert files.past() == "entry 0\n\n" and files.seen().memory == "- fact 0\n- fact 1\n"
    files.forget("s", [3])

    assert files.past() == "entry 0\n\n" and files.seen().memory == "- fact 0\n"


def test_what_a_failure_said_goes_with_the_message_that_it_may_repeat(tmp_path):
    """How often it has failed stays."""
    files = Files(tmp_path, 10)
    files.note("s", Owner(tenant="", key="cli:direct", failures=2, why="cannot read 'fact 0'"))
    files.forget("s", [3])

    assert files.settled().owners["s"] == Owner(tenant="", key="cli:direct", failures=2)


@pytest.mark.parametrize("text", ["{", "[]", '{"v":1,"number":"x"}', "\\x00", '{"v":"1"}'])
def test_a_state_that_cannot_be_read_is_told_with_its_place(text, tmp_path):
    """Nothing is guessed: what it decided is not known."""
    files = Files(tmp_path, 10)
    files.decide(made(0))
    (tmp_path / ".holdfast" / "state.json").write_text(text)

    with pytest.raises(Corrupt, match=r"state\.json"):
        files.settled()


def test_a_state_of_a_newer_version_is_left_alone(tmp_path):
    files = Files(tmp_path, 10)
    files.decide(made(0))
    path = tmp_path / ".holdfast" / "state.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "v": 2}))
    before = path.read_bytes()

    with pytest.raises(FormatTooNew):
        files.decide(made(1))
    assert path.read_bytes() == before


def test_a_line_keeps_its_origin_for_as_long_as_it_stands_word_for_word():
    lines = state.origins("a\nb\n\n", "a\nhand\n", {state.digest("a"): 3}, 5)

    assert lines == {state.digest("a"): 3, state.digest("b"): 5}
    assert state.without("a\nb\nhand\n", lines, 5) == "a\nhand\n"
    assert state.without("a\nb\nhand\n", lines, 3) == "hand\n"
    assert state.without("a\nb\n", lines, 1) == ""
