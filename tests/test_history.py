"""History: the log in memory. Its contract, the tests of its ancestor, and many threads at once."""

import random
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from holdfast.entries import Call, Fold, Mark, UnknownEntry
from holdfast.errors import InvalidInput
from holdfast.history import History, Turn
from holdfast.messages import Message, Role, ToolCall
from holdfast.parts import Image

CALL = ToolCall(id="call_1", name="search", arguments='{"q": "x"}')
OUTPUT = CALL.replace(output="42")


def say(*words):
    return [Message.user(word) for word in words]


def words(history):
    return [message.content for message in history.messages]


OTHERS = {
    "fold": Fold(first=1, last=1),
    "call": Call(model="acme:large"),
    "mark": Mark(what="interrupted"),
    "unknown": UnknownEntry(kind="hologram", raw=b'{"v":1,"hologram":{}}'),
}

NOT_ENTRIES = {
    "none": None,
    "text": "hello",
    "number": 7,
    "dict": {"role": "user", "content": "x"},
    "list": [],
    "list-of-messages": [Message.user("x")],
    "tuple": (Message.user("x"),),
    "call": CALL,
    "role": Role.USER,
    "class": Message,
    "object": object(),
    "history": History(),
}


# ---- the 14 black-box tests of the ancestor (S0-23), in its order


def test_a_new_history_has_an_id_and_no_messages():
    """S0-23 (1), S0-13, S0-14, S0-15: an id from the start, a UUID of version 7."""
    history = History()

    assert UUID(history.id).version == 7
    assert str(UUID(history.id)) == history.id
    assert len(history) == 0
    assert history.messages == ()
    assert history.snapshot() == ()
    assert history.turns() == ()
    assert history.head == 0


def test_two_histories_have_different_ids():
    """S0-23 (2), S0-15."""
    assert len({History().id for _ in range(100)}) == 100


def test_the_id_is_stable():
    """S0-23 (3), S0-16: whatever happens to the content."""
    history = History()
    id = history.id

    history.append(*say("a", "b"))
    history.replace(say("c"))
    history.clear()

    assert history.id == id
    with pytest.raises(AttributeError):
        history.id = "another"


def test_what_is_added_is_read():
    """S0-23 (4): role, content and tool calls."""
    history = History()

    history.append(Message.assistant("wait", [CALL]))

    (message,) = history.messages
    assert (message.role, message.content, message.tool_calls) == (Role.ASSISTANT, "wait", (CALL,))


def test_the_order_of_adding_is_the_order_of_reading():
    """S0-23 (5), S0-17: over the four roles."""
    history = History()

    history.append(Message.system("1"))
    history.append(Message.user("2"))
    history.append(Message.assistant("3"))
    history.append(Message.tool("4", "call_1"))

    assert [m.role for m in history.messages] == [
        *(Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL),
    ]
    assert words(history) == ["1", "2", "3", "4"]


@pytest.mark.parametrize("role", Role, ids=str)
def test_each_role_comes_back_as_it_went_in(role):
    """S0-23 (6), A3: the four, and the two older spellings."""
    history = History([Message(role, "x")])

    assert history.messages[0].role is role


def test_a_result_keeps_the_id_of_its_call():
    """S0-23 (7), S0-1: assistant call `call_1`, tool result for `call_1`."""
    history = History()

    history.append(Message.assistant(None, [CALL]), Message.tool("42", "call_1"))

    asked, told = history.messages
    assert asked.calls[0].id == told.tool_call_id == told.results[0].call_id == "call_1"


def test_tampering_with_the_list_that_was_read_changes_nothing():
    """S0-23 (8), S0-18, S0-19: neither length nor roles."""
    history = History([Message.user("a"), Message.assistant("b")])

    working = list(history.messages)
    working[0] = Message.system("forged")
    working.append(Message.tool("forged", "x"))
    with pytest.raises(TypeError):
        history.messages[0] = Message.system("forged")

    assert [m.role for m in history.messages] == [Role.USER, Role.ASSISTANT]


def test_tampering_with_a_tool_call_that_was_read_changes_nothing():
    """S0-23 (9), S0-18, S0-19: neither its name nor their number."""
    history = History([Message.assistant(None, [CALL])])

    with pytest.raises(AttributeError):
        history.messages[0].tool_calls[0].name = "forged"
    with pytest.raises(AttributeError):
        history.messages[0].tool_calls.append(CALL)

    assert [call.name for call in history.messages[0].tool_calls] == ["search"]


def test_clearing_leaves_no_messages():
    """S0-23 (10), S0-20, A18."""
    history = History(say("a", "b"))

    history.clear()

    assert len(history) == 0
    assert history.messages == history.snapshot() == history.slice() == history.turns() == ()


def test_adding_after_clearing_leaves_exactly_that():
    """S0-23 (11), S0-20."""
    history = History(say("a", "b"))

    history.clear()
    history.append(*say("c"))

    assert words(history) == ["c"]
    assert history.turns() == (Turn(index=1, first=0, last=0),)


@contextmanager
def switching_often():
    """Threads change places far more often than usual, so that races show."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def run_together(*workers):
    """Run all at once, and raise the first error of any."""
    errors, start = [], threading.Barrier(len(workers))

    def guarded(worker):
        try:
            start.wait()
            worker()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(w,), daemon=True) for w in workers]
    with switching_often():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if errors:
        raise errors[0]


def test_100_threads_add_100_messages():
    """S0-23 (12), S0-17, S0-21: exactly 100."""
    history = History()
    said = say(*map(str, range(100)))

    run_together(*(lambda m=m: history.append(m) for m in said))

    assert len(history) == 100
    assert set(history.messages) == set(said)


def test_100_threads_add_and_100_read():
    """S0-23 (13), S0-21: every reader sees a whole history."""
    history = History()
    seen = []

    run_together(
        *(lambda m=m: history.append(m) for m in say(*map(str, range(100)))),
        *(lambda: seen.append(history.messages) for _ in range(100)),
    )

    assert len(seen) == 100
    for messages in seen:
        assert history.messages[: len(messages)] == messages


def test_100_threads_add_and_100_clear():
    """S0-23 (14), S0-21: no error, and what is left are messages that were added once."""
    history = History()
    said = say(*map(str, range(100)))

    run_together(
        *(lambda m=m: history.append(m) for m in said), *(history.clear for _ in range(100))
    )

    assert len(set(history.messages)) == len(history) <= 100
    assert set(history.messages) <= set(said)
    assert history.head == 100


# ---- append


def test_the_seq_of_the_last_entry_is_returned():
    """Seq counts entries, from 1."""
    history = History()

    assert history.append(*say("a")) == 1
    assert history.append(*say("b", "c")) == 3
    assert history.append(OTHERS["mark"], OTHERS["fold"]) == 5
    assert history.head == 5


def test_a_seq_is_never_given_twice():
    """Not even after clear; and not after replace."""
    history = History(say("a", "b"))

    history.clear()
    assert history.head == 2
    assert history.append(*say("c")) == 3
    history.replace(say("d", "e"))
    assert history.head == 5
    assert history.append(*say("f")) == 6
    history.replace([])
    assert history.head == 6
    history.clear()
    assert history.append(*say("g")) == 7


def test_adding_nothing_changes_nothing():
    """Bad inputs 42: an empty batch."""
    history = History(say("a"))

    assert history.append() == 1
    assert words(history) == ["a"]
    assert History().append() == 0


def test_a_batch_of_50000_is_one_append():
    """Bad inputs 42."""
    said = [Message(Role.USER, "x", id="m") for _ in range(50_000)]
    history = History()

    assert history.append(*said) == 50_000
    assert len(history) == 50_000


@pytest.mark.parametrize("name", NOT_ENTRIES)
def test_what_is_not_an_entry_is_refused(name):
    """S0-2: one message type, by append, by replace, and by the constructor."""
    history = History(say("a"))

    with pytest.raises(InvalidInput):
        history.append(NOT_ENTRIES[name])
    with pytest.raises(InvalidInput):
        history.replace([NOT_ENTRIES[name]])
    with pytest.raises(InvalidInput):
        History([NOT_ENTRIES[name]])

    assert words(history) == ["a"]


@pytest.mark.parametrize("place", [0, 1, 2, 3], ids=["first", "second", "third", "last"])
@pytest.mark.parametrize("name", NOT_ENTRIES)
def test_one_bad_entry_among_good_ones_leaves_nothing(name, place):
    """All or none, wherever the bad one stands."""
    history = History([*say("a"), OTHERS["mark"]])
    before = history.snapshot()
    batch = [*say("b", "c"), OTHERS["call"]]
    batch.insert(place, NOT_ENTRIES[name])

    with pytest.raises(InvalidInput):
        history.append(*batch)
    with pytest.raises(InvalidInput):
        history.replace(batch)

    assert history.snapshot() == before
    assert history.head == 2
    assert len(history) == len(history.messages) == 1
    assert history.append(*say("d")) == 3


def test_an_entry_that_fails_late_leaves_nothing_either():
    """All or none, also when the entry looks right from outside."""
    history = History(say("a"))
    twisted = msgspec.structs.replace(Message.user("b"), tool_calls=(["no call"],))

    with pytest.raises(InvalidInput):
        history.append(*say("c"), twisted, *say("d"))

    assert words(history) == ["a"]
    assert history.snapshot() == history.messages
    assert history.head == 1


def test_an_iterable_that_fails_leaves_the_history_as_it_was():
    """Replace is all or none too."""
    history = History(say("a"))

    def failing():
        yield Message.user("b")
        raise KeyError

    with pytest.raises(KeyError):
        history.replace(failing())

    assert words(history) == ["a"]
    assert history.head == 1


def test_one_message_may_be_added_twice():
    """A log keeps what it is given; telling repetitions apart is the store's business."""
    (message,) = say("a")
    history = History()

    history.append(message, message)
    history.append(message)

    assert history.messages == (message,) * 3


# ---- reading


def test_folds_calls_marks_and_unknown_entries_are_in_the_log_and_not_among_the_messages():
    """Kinds unknown to a reader are kept and skipped; len counts messages."""
    one, two = say("a", "b")
    log = [OTHERS["mark"], one, OTHERS["fold"], OTHERS["call"], two, OTHERS["unknown"]]
    history = History(log[:3])

    history.append(*log[3:])

    assert history.snapshot() == tuple(log)
    assert history.messages == (one, two)
    assert len(history) == 2
    assert history.head == 6
    assert history.slice(0, 1) == (one,)
    assert [(t.first, t.last) for t in history.turns()] == [(0, 0), (1, 1)]


@pytest.mark.parametrize("name", OTHERS)
def test_a_log_without_messages_has_a_length_of_zero(name):
    """Positions count messages; seq counts entries."""
    history = History([OTHERS[name]] * 3)

    assert len(history) == 0
    assert history.messages == ()
    assert history.turns() == ()
    assert history.snapshot() == (OTHERS[name],) * 3
    assert history.head == 3


def test_every_read_gives_the_very_objects_that_were_added():
    """S2-10, A30: zero-copy; a snapshot costs nothing."""
    log = [*say("a"), OTHERS["mark"], *say("b")]
    history = History(log)

    assert all(kept is given for kept, given in zip(history.snapshot(), log, strict=True))
    assert history.messages[0] is log[0]
    assert history.messages[1] is log[2]
    assert history.slice(1, 2)[0] is log[2]


@pytest.mark.parametrize("with_mark", [False, True], ids=["messages-only", "with-a-mark"])
def test_a_read_is_a_picture_of_its_moment(with_mark):
    """S0-18, S2-9: what is added or cleared later is not in it."""
    history = History([*say("a"), *([OTHERS["mark"]] if with_mark else [])])
    reads = history.messages, history.snapshot(), history.slice(), history.turns()
    lengths = [len(read) for read in reads]

    history.append(*say("b"))
    assert [len(read) for read in reads] == lengths
    history.replace(say("x", "y", "z"))
    history.clear()

    assert [len(read) for read in reads] == lengths
    assert all(type(read) is tuple for read in reads)
    assert reads[0][0].content == "a"


BOUNDS = [None, 0, 1, 3, 5, 6, 100, -1, -3, -5, -6, -100]


@pytest.mark.parametrize("start", BOUNDS, ids=str)
@pytest.mark.parametrize("stop", BOUNDS, ids=str)
def test_a_slice_is_a_python_slice(start, stop):
    """S2-9: None, negatives and bounds beyond the end mean what they mean for a list."""
    said = say("a", "b", "c", "d", "e")
    history = History([OTHERS["mark"], *said, OTHERS["call"]])

    got = history.slice(start, stop)

    assert got == tuple(said[start:stop])
    assert type(got) is tuple


def test_a_slice_with_one_bound_goes_to_the_end():
    """S2-9."""
    said = say("a", "b", "c")
    history = History(said)

    assert history.slice(1) == tuple(said[1:])
    assert history.slice(stop=1) == tuple(said[:1])
    assert history.slice() == tuple(said)


# ---- replace


def test_replacing_puts_other_messages_in_the_place_of_everything():
    """S2-9: a copy of the list that was given."""
    history = History([*say("a", "b"), OTHERS["mark"]])
    other = say("x", "y", "z")

    assert history.replace(other) is None
    other.append("forged")

    assert words(history) == ["x", "y", "z"]
    assert len(history.snapshot()) == 3


@pytest.mark.parametrize(
    "kind",
    [list, tuple, iter, lambda said: (m for m in said)],
    ids=["list", "tuple", "iter", "gen"],
)
def test_any_iterable_will_do(kind):
    """Replace(messages), and the constructor."""
    said = say("a", "b")
    history = History(kind(said))
    assert history.messages == tuple(said)

    history.replace(kind(said[:1]))

    assert history.messages == tuple(said[:1])


def test_replacing_with_its_own_messages_keeps_them():
    """S2-9: the usual way to drop the oldest."""
    history = History(say("a", "b", "c"))

    history.replace(history.messages)
    assert words(history) == ["a", "b", "c"]
    history.replace(history.slice(-2))

    assert words(history) == ["b", "c"]


def test_an_iterable_may_read_and_change_the_history_it_is_for():
    """A1: no lock is held while somebody else's code runs."""
    history = History(say("a", "b"))

    def reading():
        for message in history.messages:
            history.append(OTHERS["mark"])
            assert len(history) == 2
            yield message

    done = threading.Thread(target=lambda: history.replace(reading()), daemon=True)
    done.start()
    done.join(5)

    assert not done.is_alive(), "replace waits for itself"
    assert words(history) == ["a", "b"]
    assert history.head == 6


# ---- turns


def turns_of(*messages):
    return [(t.index, t.first, t.last) for t in History(messages).turns()]


USER, MODEL, TOOL = Message.user("u"), Message(Role.MODEL, "m"), Message.tool("t", "call_1")
ASKING = Message(Role.MODEL, None, tool_calls=[CALL])
ANSWERING = Message(Role.USER, None, tool_calls=[OUTPUT])
NOTICE = Message.user("[cancelled]", synthetic="notice")
SYSTEM = Message.system("s")

SEGMENTS = {
    "nothing": ([], []),
    "one": ([USER], [(1, 0, 0)]),
    "exchange": ([USER, MODEL], [(1, 0, 1)]),
    "verified-by-the-ancestor": (
        [MODEL, USER, ASKING, TOOL, USER],
        [(0, 0, 0), (1, 1, 3), (2, 4, 4)],
    ),
    "nobody-spoke": ([SYSTEM, MODEL, TOOL], [(0, 0, 2)]),
    "system-first": ([SYSTEM, USER, MODEL], [(0, 0, 0), (1, 1, 2)]),
    "two-in-a-row": ([USER, USER], [(1, 0, 0), (2, 1, 1)]),
    "synthetic-first": ([NOTICE, USER], [(0, 0, 0), (1, 1, 1)]),
    "synthetic-between": ([USER, MODEL, NOTICE, MODEL, USER], [(1, 0, 3), (2, 4, 4)]),
    "results-from-the-user": ([USER, ASKING, ANSWERING, MODEL, USER], [(1, 0, 3), (2, 4, 4)]),
    "image-first": ([Message.user([Image(data=b"x")]), MODEL], [(1, 0, 1)]),
    "function": ([USER, Message(Role.FUNCTION, "f", name="f"), USER], [(1, 0, 1), (2, 2, 2)]),
    "with-marks": ([OTHERS["mark"], USER, OTHERS["call"], MODEL, OTHERS["mark"]], [(1, 0, 1)]),
}


@pytest.mark.parametrize("name", SEGMENTS)
def test_turns_go_from_one_spoken_user_message_to_the_next(name):
    """A17, S2-47, S2-64, B30: turn 0 is what stands before the first; tool messages stay inside."""
    messages, expected = SEGMENTS[name]

    assert turns_of(*messages) == expected


def test_the_sizes_of_the_ancestors_example_are_1_3_1():
    """S2-47: [model, user, model+calls, tool, user]."""
    turns = History([MODEL, USER, ASKING, TOOL, USER]).turns()

    assert [turn.last - turn.first + 1 for turn in turns] == [1, 3, 1]
    assert [turn.index for turn in turns] == [0, 1, 2]


@pytest.mark.parametrize("kind", ["summary", "notice", "nudge", "cancelled"])
def test_a_synthetic_message_never_begins_a_turn(kind):
    """A17, B30: nobody said it, so nobody's turn begins with it."""
    synthetic = Message.user("x", synthetic=kind)

    assert turns_of(synthetic) == [(0, 0, 0)]
    assert turns_of(USER, synthetic, synthetic) == [(1, 0, 2)]


def test_turns_follow_append_replace_and_clear():
    """A17: one segmentation, computed from what is there."""
    history = History([USER, MODEL])
    history.append(TOOL)
    assert [(t.first, t.last) for t in history.turns()] == [(0, 2)]

    history.append(USER)
    assert [(t.index, t.first, t.last) for t in history.turns()] == [(1, 0, 2), (2, 3, 3)]
    history.replace([MODEL, USER])
    assert [(t.index, t.first, t.last) for t in history.turns()] == [(0, 0, 0), (1, 1, 1)]
    history.clear()
    assert history.turns() == ()


@given(st.lists(st.sampled_from([USER, MODEL, TOOL, ASKING, ANSWERING, NOTICE, SYSTEM])))
def test_turns_cover_every_message_once(messages):
    """A17: without holes and without overlap, in order."""
    turns = History(messages).turns()

    positions = [at for turn in turns for at in range(turn.first, turn.last + 1)]
    assert positions == list(range(len(messages)))
    for turn in turns:
        assert messages[turn.first].starts_turn == (turn.index > 0)
        assert not any(m.starts_turn for m in messages[turn.first + 1 : turn.last + 1])
    assert [t.index for t in turns] == list(
        range(0 if turns and turns[0].index == 0 else 1, len(turns) + (not turns or turns[0].index))
    )


# ---- the rest


def test_a_repr_tells_how_much_there_is_and_not_what():
    """Bad inputs 51: a history in a log line or a traceback gives no secrets away."""
    history = History([*say("sk-secret-canary"), Message.user("x", extra={"k": "AKIA-canary"})])

    shown = repr(history)

    assert "History" in shown
    assert "canary" not in shown
    assert len(shown) < 200
    assert repr(History())


def test_the_contract_has_the_four_operations_of_the_ancestor_and_the_designed_ones():
    """S0-13, S2-9: id, append, messages, clear; snapshot, slice, replace, turns, len."""
    public = {name for name in dir(History) if not name.startswith("_")}

    assert public >= {
        *("id", "append", "messages", "clear", "snapshot", "slice", "replace", "turns")
    }


def test_the_last_message_is_a_slice_and_to_drop_it_is_a_replacement():
    """S2-16: `last` and `pop_last` in two words; reading twice copies nothing."""
    history = History(say("a", "b", "c"))

    assert history.slice(-1) == history.messages[-1:] == tuple(history.messages[2:])
    assert history.messages is history.messages
    history.replace(history.slice(None, -1))
    assert words(history) == ["a", "b"]
    history.clear()
    assert history.slice(-1) == ()


def test_a_new_history_may_begin_with_entries():
    """The same rules as for append."""
    history = History([*say("a"), OTHERS["mark"]])

    assert len(history) == 1
    assert history.head == 2


# ---- a model


def turns_by_hand(messages):
    """Turns as A17 says, in the plainest way."""
    groups = []
    for at, message in enumerate(messages):
        if message.starts_turn or not groups:
            index = groups[-1][0] + 1 if groups else int(message.starts_turn)
            groups.append([index, at, at])
        groups[-1][2] = at
    return [tuple(group) for group in groups]


ENTRIES = st.lists(
    st.sampled_from([USER, MODEL, TOOL, ASKING, ANSWERING, NOTICE, SYSTEM, *OTHERS.values()])
    | st.builds(Message.user, st.text("ab\0", max_size=3)),
    max_size=5,
)
PLACES = st.none() | st.integers(-12, 12)


class AgainstAList(RuleBasedStateMachine):
    """A history does what a plain list of entries would do, and counts what it was given."""

    def __init__(self):
        super().__init__()
        self.history = History()
        self.id = self.history.id
        self.model = []
        self.given = 0
        self.pictures = []

    @rule(entries=ENTRIES)
    def append(self, entries):
        self.given += len(entries)
        self.model += entries

        assert self.history.append(*entries) == self.given

    @rule(entries=ENTRIES, place=st.integers(0, 5), bad=st.sampled_from(sorted(NOT_ENTRIES)))
    def append_something_bad(self, entries, place, bad):
        entries = [*entries[:place], NOT_ENTRIES[bad], *entries[place:]]

        with pytest.raises(InvalidInput):
            self.history.append(*entries)
        with pytest.raises(InvalidInput):
            self.history.replace(entries)

    @rule(entries=ENTRIES)
    def replace(self, entries):
        self.given += len(entries)
        self.model = list(entries)

        self.history.replace(iter(entries))

    @rule(start=PLACES, stop=PLACES)
    def keep_a_slice(self, start, stop):
        kept = self.messages()[start:stop]
        self.given += len(kept)
        self.model = kept

        self.history.replace(self.history.slice(start, stop))

    @rule()
    def clear(self):
        self.model = []

        self.history.clear()

    @rule()
    def remember(self):
        self.pictures.append((self.history.snapshot(), list(self.model)))

    @rule(start=PLACES, stop=PLACES)
    def slice(self, start, stop):
        assert self.history.slice(start, stop) == tuple(self.messages()[start:stop])

    def messages(self):
        return [entry for entry in self.model if isinstance(entry, Message)]

    @invariant()
    def agrees(self):
        messages = self.messages()
        assert self.history.snapshot() == tuple(self.model)
        assert self.history.messages == tuple(messages)
        assert len(self.history) == len(messages)
        assert self.history.head == self.given
        assert self.history.id == self.id
        turns = [(t.index, t.first, t.last) for t in self.history.turns()]
        assert turns == turns_by_hand(messages)

    @invariant()
    def old_pictures_stay(self):
        for snapshot, model in self.pictures:
            assert snapshot == tuple(model)


TestAgainstAList = AgainstAList.TestCase
TestAgainstAList.settings = settings(max_examples=60, stateful_step_count=30)


# ---- many threads

SIZES = (1, 2, 3, 5)


def group(author, number):
    """Messages that are appended together; each says where it belongs."""
    size = SIZES[number % len(SIZES)]
    return [Message(Role.USER, f"{number} {at} {size}", author=author) for at in range(size)]


def check_log(entries):
    """No group is torn, and in each thread the groups follow one another without a gap.

    A clear or a replace takes everything away at once, so what is left of a thread is a run of
    groups without a hole. Returns the groups that were found: (author, number), in order.
    """
    found, newest, at = [], {}, 0
    while at < len(entries):
        author = entries[at].author
        number, place, size = map(int, entries[at].content.split())
        assert place == 0, f"torn: group {number} of {author} begins with message {place}"
        members = [(m.author, m.content) for m in entries[at : at + size]]
        whole = [(author, f"{number} {p} {size}") for p in range(size)]
        assert members == whole, f"torn: group {number} of {author} is {members}"
        if author in newest:
            expected = newest[author] + 1
            assert number >= expected, f"out of order: {author} {number} behind {newest[author]}"
            assert number == expected, f"lost: {author} {expected}"
        newest[author] = number
        found.append((author, number))
        at += size
    return found


def check_all_there(entries, expected):
    """`expected` says for each author the groups that must be at the end of its run."""
    found = check_log(entries)
    count = Counter(found)
    assert not count or max(count.values()) == 1, "a group is there twice"
    for author, numbers in expected.items():
        missing = [number for number in numbers if (author, number) not in count]
        assert not missing, f"lost: {author} {missing}"


def check_seqs(returned, head):
    """Each append got a range of its own, in order within its thread, none beyond the head.

    `returned` says for each thread what append gave back, as pairs (seq of the last, size).
    """
    taken = set()
    for pairs in returned:
        assert pairs == sorted(pairs), "seqs are out of order within a thread"
        for last, size in pairs:
            places = set(range(last - size + 1, last + 1))
            assert not places & taken, f"seq {sorted(places & taken)} was given twice"
            assert 1 <= min(places) <= max(places) <= head, "a seq is outside the log"
            taken |= places
    return len(taken)


def test_the_check_accepts_a_good_log():
    """A control of the checks below."""
    log = [*group("a", 7), *group("b", 0), *group("a", 8), *group("b", 1)]

    assert check_log(log) == [("a", 7), ("b", 0), ("a", 8), ("b", 1)]
    assert check_log([]) == []
    check_all_there(log, {"a": [7, 8], "b": [0, 1]})
    assert check_seqs([[(2, 2), (6, 1)], [(5, 3)]], head=6) == 6


BROKEN = {
    "without-its-head": (group("a", 1)[1:], "torn"),
    "without-its-tail": (group("a", 3)[:-1], "torn"),
    "with-a-hole": ([group("a", 3)[0], *group("a", 3)[2:]], "torn"),
    "with-another-inside": ([*group("a", 1)[:1], *group("b", 0), *group("a", 1)[1:]], "torn"),
    "cut-by-the-next": ([*group("a", 3)[:2], *group("a", 4)], "torn"),
    "inside-out": (group("a", 2)[::-1], "torn"),
    "swapped": ([*group("a", 2), *group("a", 1)], "out of order"),
    "twice": ([*group("a", 1), *group("a", 1)], "out of order"),
    "swapped-with-others-between": (
        [*group("a", 2), *group("b", 5), *group("a", 1)],
        "out of order",
    ),
    "with-a-gap": ([*group("a", 1), *group("b", 1), *group("a", 3)], "lost"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_the_check_finds_torn_reordered_and_lost_groups(name):
    """A control of the checks below: each kind of damage is seen, and named."""
    log, kind = BROKEN[name]

    with pytest.raises(AssertionError, match=kind):
        check_log(log)


def test_the_check_finds_a_group_that_is_missing_at_the_end_or_altogether():
    """A control of the checks below."""
    log = [*group("a", 1), *group("a", 2)]

    for expected in ({"a": [1, 2, 3]}, {"a": [0]}, {"b": [0]}):
        with pytest.raises(AssertionError, match="lost"):
            check_all_there(log, expected)


@pytest.mark.parametrize(
    ("returned", "head"),
    [([[(2, 2), (1, 1)]], 2), ([[(2, 2)], [(2, 1)]], 2), ([[(3, 2)]], 2), ([[(1, 2)]], 2)],
    ids=["order", "twice", "beyond", "before"],
)
def test_the_check_finds_seqs_that_cannot_be(returned, head):
    """A control of the checks below."""
    with pytest.raises(AssertionError):
        check_seqs(returned, head)


class Appender:
    """Appends numbered groups until told to stop, and remembers what append gave back."""

    def __init__(self, history, name):
        self.history, self.name = history, name
        self.next, self.returned, self.safe_from = 0, [], None

    def append(self):
        messages = group(self.name, self.next)
        self.next += 1
        self.returned.append((self.history.append(*messages), len(messages)))

    def run(self, until, calm, more=15):
        while not until.is_set():
            self.append()
            time.sleep(0)
        calm.wait(20)  # nobody clears any more: what is appended from here on has to stay
        self.safe_from = self.next
        for _ in range(more):
            self.append()


class Reader:
    """Reads in every way there is, and checks what it sees."""

    def __init__(self, history, seed):
        self.history, self.random = history, random.Random(seed)
        self.reads = self.groups = 0

    def read(self):
        way = self.random.randrange(4)
        if way == 0:
            self.groups += len(check_log(self.history.snapshot()))
        elif way == 1:
            self.groups += len(check_log(self.history.messages))
        elif way == 2:
            self.groups += len(check_log(self.history.slice()))
        else:
            turns = self.history.turns()
            assert [t.first for t in turns[1:]] == [t.last + 1 for t in turns[:-1]], "turns torn"
            assert all(t.index == at for at, t in enumerate(turns, start=1))
            assert len(self.history) >= 0
        self.reads += 1

    def run(self, until):
        while not until.is_set():
            self.read()
            time.sleep(0.002)


class Disturber:
    """Clears, or replaces everything with a group of its own, again and again."""

    def __init__(self, history, name, replaces):
        self.history, self.name, self.replaces = history, name, replaces
        self.count = self.entries = 0

    def run(self, until):
        while not until.is_set():
            if self.replaces:
                messages = group(self.name, self.count)
                self.history.replace(messages)
                self.entries += len(messages)
            else:
                self.history.clear()
            self.count += 1
            time.sleep(0.005)


def test_100_threads_appending_reading_and_clearing_for_two_seconds():
    """S0-21, S0-22, A1: nothing is lost, torn or reordered within a thread."""
    history = History()
    appenders = [Appender(history, f"appender-{n}") for n in range(60)]
    readers = [Reader(history, n) for n in range(30)]
    disturbers = [Disturber(history, f"disturber-{n}", n % 2 == 1) for n in range(10)]
    stop, calm, done = threading.Event(), threading.Event(), threading.Event()
    disturbers_left = threading.Semaphore(0)

    def disturb(disturber):
        try:
            disturber.run(stop)
        finally:
            disturbers_left.release()

    def conduct():
        time.sleep(2)
        stop.set()
        for _ in disturbers:
            assert disturbers_left.acquire(timeout=20)
        calm.set()
        time.sleep(0.2)
        done.set()

    run_together(
        conduct,
        *(lambda a=a: a.run(stop, calm) for a in appenders),
        *(lambda r=r: r.run(done) for r in readers),
        *(lambda d=d: disturb(d) for d in disturbers),
    )

    check_all_there(history.snapshot(), {a.name: range(a.safe_from, a.next) for a in appenders})
    given = check_seqs([a.returned for a in appenders], history.head)
    assert given == sum(size for a in appenders for _, size in a.returned)
    assert history.head == given + sum(d.entries for d in disturbers)
    assert history.snapshot() == history.messages

    # It was a real trial: everybody did their part.
    assert all(a.safe_from > 0 and a.next == a.safe_from + 15 for a in appenders)
    assert all(d.count > 1 for d in disturbers)
    assert all(r.reads > 1 for r in readers)
    assert sum(r.groups for r in readers) > 1000


def test_with_nobody_clearing_everything_is_there():
    """S0-21: 100 threads, and exactly what was appended, in each thread's order."""
    history = History()
    appenders = [Appender(history, f"appender-{n}") for n in range(60)]
    readers = [Reader(history, n) for n in range(40)]
    seen, calm = threading.Event(), threading.Event()
    seen.set()
    calm.set()

    run_together(
        *(lambda a=a: a.run(seen, calm, more=25) for a in appenders),
        *(lambda r=r: [r.read() for _ in range(5)] for r in readers),
    )

    found = check_log(history.snapshot())
    assert sorted(found) == sorted((a.name, n) for a in appenders for n in range(25))
    assert history.messages == history.snapshot()
    assert len(history) == history.head == 60 * sum(SIZES[n % 4] for n in range(25))
    assert check_seqs([a.returned for a in appenders], history.head) == history.head


READS = {
    "messages": lambda history: len(history.messages),
    "snapshot": lambda history: len(history.snapshot()),
    "slice": lambda history: len(history.slice()),
    "len": len,
    "turns": lambda history: len(history.turns()),
    "head": lambda history: history.head,
}


def lengths_seen(history, change, read, seconds=0.3):
    """What a reader sees while a writer changes the history over and over.

    Two threads find more than many: with many, most wait for the lock and look at nothing.
    """
    stop, seen = threading.Event(), set()

    def conduct():
        time.sleep(seconds)
        stop.set()

    def write():
        while not stop.is_set():
            change()

    def watch():
        while not stop.is_set():
            seen.add(read(history))

    run_together(conduct, write, watch)
    return seen


@pytest.mark.parametrize("name", [name for name in READS if name != "head"])
@pytest.mark.parametrize("marks", [0, 2000], ids=["messages-only", "marks-first"])
def test_nobody_sees_the_moment_between_the_old_and_the_new(name, marks):
    """S0-21, A1: replace is one step; 40 messages become 40 others, and are never 0 or 7."""
    log = [*[OTHERS["mark"]] * marks, *say(*map(str, range(40)))]
    history = History(log)

    seen = lengths_seen(history, lambda: history.replace(log), READS[name])

    assert seen == {40 + marks if name == "snapshot" else 40}


@pytest.mark.parametrize("name", READS)
def test_nobody_sees_a_part_of_a_batch(name):
    """A1: what is appended together is there together, by every way of reading."""
    said = say(*map(str, range(40)))
    history = History()

    def change():
        if len(history.snapshot()) > 4000:
            history.clear()
        history.append(*said)

    seen = lengths_seen(history, change, READS[name])

    assert len(seen) > 1
    assert {count % 40 for count in seen} == {0}


def test_the_seq_that_append_returned_is_the_place_of_the_entry():
    """Under 16 threads, the entry with seq n is the nth that was appended."""
    history = History()
    appenders = [Appender(history, f"appender-{n}") for n in range(16)]

    run_together(*(lambda a=a: [a.append() for _ in range(50)] for a in appenders))

    log = history.snapshot()
    for appender in appenders:
        for number, (last, size) in enumerate(appender.returned):
            assert [(m.author, m.content) for m in log[last - size : last]] == [
                (m.author, m.content) for m in group(appender.name, number)
            ]
