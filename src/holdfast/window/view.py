"""The view: what a model is shown of a log, with its folds applied.

    view = View(count)                    # count: tokens of a message, for one family of models
    for seq, entry in log:                # the entries of one branch, in order
        view.add(seq, entry)
    view.rendered()                       # messages that can be sent
    view.total                            # their tokens
    view.items                            # what is shown and what it stands for: what policies see

A message is shown unless the latest fold over it hides it. A fold's replacement stands in the place
of the first message that the fold covers; a fold that a later one covers whole says nothing any
more, one that is covered in part still shows its replacement. An open fold shows what earlier ones
hid.

A call and its results go together. A result whose call is hidden is hidden too; one that is hidden
while its call is shown leaves a note in its place, so that the model does not take the call for one
that failed. A call or a result that a replacement carries counts as that of the messages for which
it stands.

A message more costs what that message costs; a fold costs one pass over all.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from holdfast.entries import Entry, Fold
from holdfast.messages import Message, Result, ToolCall
from holdfast.notes import folded_result
from holdfast.window.render import Rendered, Renderer, calls_of, results_of, says_more

Count = Callable[[Message], int]


class Item(msgspec.Struct, frozen=True, gc=False):
    """Something that is shown: a message of the log, or what a fold puts in the place of some.

    message    what is shown, before it is rendered
    tokens     of it, as counted
    first      the seq of the message, or of the first and the last that the fold covers
    last
    turn       the turn of the first of them, counted from 1; 0 is what stands before all turns
    fold       the fold, if it is one
    """

    message: Message
    tokens: int
    first: int
    last: int
    turn: int
    fold: Fold | None = None


class Group(msgspec.Struct, frozen=True, gc=False):
    """What is shown of one turn: items[start:stop]."""

    turn: int
    start: int
    stop: int
    tokens: int


class _Said(msgspec.Struct, gc=False):
    """A message of the log, and what it belongs to."""

    seq: int
    message: Message
    turn: int
    calls: tuple[ToolCall, ...] = ()
    answers: "tuple[_Answer, ...]" = ()
    has_only_answers: bool = False


class _Answer(msgspec.Struct, frozen=True, gc=False):
    """A result, the one of this place in its message, and the message that called for it.

    `call_id` is the call's, as the log has it. A second result of a call is not `is_first`: it is
    not missed when it is hidden.
    """

    place: int
    result: Result
    caller: _Said | None
    call_id: str | None
    is_first: bool


class View:
    """A log as a model is shown it. `turns` is how many turns stand before what is added.

    `count` gives the tokens of a message: the one by which everything here is counted.
    """

    def __init__(self, count: Count, *, turns: int = 0) -> None:
        self.count = count
        self._turns_before = turns
        self._turn = turns
        self._said: list[_Said] = []
        self._folds: list[Fold] = []
        self._callers: dict[str, _Said] = {}  # the latest message that made a call of this id
        self._last_caller: _Said | None = None
        self._partners: dict[int, list[int]] = {}
        self._waiting: dict[int, tuple[int, ...]] = {}  # calls without a result, by their message
        self._hidden: set[int] = set()  # the messages that are not shown
        self._last_folded = 0
        self._items: list[Item] = []
        self._renderer = Renderer(count)
        self._made: dict[Any, Any] = {}
        self._rendered: Rendered | None = None
        self._is_stale = False  # folds came since it was last looked at

    @property
    def items(self) -> tuple[Item, ...]:
        """All that is shown, in order, before it is rendered."""
        self._look()
        return tuple(self._items)

    @property
    def folds(self) -> tuple[Fold, ...]:
        """The folds that say something, in the order in which they were made."""
        return tuple(self._folds)

    @property
    def turn(self) -> int:
        """The number of the latest turn; 0 when there is none."""
        return self._turn

    @property
    def total(self) -> int:
        """The tokens of all that is shown, rendered."""
        self._look()
        return self._renderer.total

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens of each message that is shown, rendered."""
        self._look()
        return tuple(self._renderer.tokens)

    def __len__(self) -> int:
        """How many items are shown."""
        self._look()
        return len(self._items)

    def add(self, seq: int, entry: Entry) -> None:
        """The next entry of the branch. Entries that are never shown change nothing."""
        if type(entry) is Message:
            self._look()
            said = self._place(seq, entry)
            self._said.append(said)
            if seq <= self._last_folded:
                self._show_again()
            elif not self._is_cut_off(said):
                self._show(self._item(said))
            self._rendered = None
        elif type(entry) is Fold:
            self._fold(entry)
            self._is_stale = True

    def skip(self, turns: int) -> None:
        """Here stand messages that folds hide and nobody loaded; so many turns begin in them."""
        self._turn += turns

    def rendered(self) -> Rendered:
        """What is shown, as it can be sent."""
        self._look()
        if self._rendered is None:
            self._rendered = self._renderer.rendered(self._made)
        return self._rendered

    def hashed(self, encode: Callable[[Message], bytes]) -> "hashlib._Hash":
        """A hash over all that is shown, each message as `encode` writes it; yours to go on with.

        What was hashed before is kept, as long as nothing in it changes.
        """
        self._look()
        return self._renderer.hashed(encode)

    def with_folds(self, folds: Iterable[Fold]) -> "View":
        """Another view: as this one would be with these folds."""
        view = View(self.count, turns=self._turns_before)
        for each in self._said:
            view._turn = each.turn - each.message.starts_turn  # some may have been passed over
            view._said.append(view._place(each.seq, each.message))
        for fold in (*self._folds, *folds):
            view._fold(fold)
        view._show_again()
        return view

    def groups(self) -> tuple[Group, ...]:
        """The items by turns, in order."""
        self._look()
        found: list[Group] = []
        turn, start, tokens = 0, 0, 0
        for index, item in enumerate(self._items):
            if item.turn != turn:
                if index > start:
                    found.append(Group(turn, start, index, tokens))
                turn, start, tokens = item.turn, index, 0
            tokens += item.tokens
        if self._items:
            found.append(Group(turn, start, len(self._items), tokens))
        return tuple(found)

    @property
    def partners(self) -> Mapping[int, Sequence[int]]:
        """By the seq of a message with calls, those of its results; by that of a result, those of
        the messages that it answers."""
        return self._partners

    def is_answered(self, seq: int) -> bool:
        """Whether a message has calls, and each of them a result."""
        return self._waiting.get(seq) == ()

    # The log

    def _place(self, seq: int, message: Message) -> _Said:
        """A message, with its turn and, if it has results, who called for them."""
        self._turn += message.starts_turn
        said = _Said(seq, message, self._turn)
        if calls := calls_of(message):
            said.calls = calls
            open = tuple(at for at, call in enumerate(calls) if call.output is None)
            self._waiting[seq] = open
            self._last_caller = said
            for call in calls:
                self._callers[call.id] = said
        elif results := results_of(message):
            said.answers = tuple(self._answer(*each) for each in enumerate(results))
            self._pair(said)
            said.has_only_answers = not says_more(message, results)
        return said

    def _answer(self, place: int, result: Result) -> _Answer:
        """As `render` has it: to the latest call of its id, or without one by its name."""
        id, name = result.call_id, result.name
        caller = self._last_caller if id is None else self._callers.get(id)
        if caller is None:
            return _Answer(place, result, None, id, False)
        open = self._waiting[caller.seq]
        for at in open:
            call = caller.calls[at]
            if call.id == id or (id is None and name in (None, call.name)):
                self._waiting[caller.seq] = tuple(each for each in open if each != at)
                return _Answer(place, result, caller, call.id, True)
        if id is None and name is not None and all(call.name != name for call in caller.calls):
            caller = None
        return _Answer(place, result, caller, id, False)

    def _pair(self, said: _Said) -> None:
        for answer in said.answers:
            if answer.caller is not None:
                self._partners.setdefault(answer.caller.seq, []).append(said.seq)
                self._partners.setdefault(said.seq, []).append(answer.caller.seq)

    def _fold(self, fold: Fold) -> None:
        self._folds = [each for each in self._folds if not _covers(fold, each)] + [fold]
        self._last_folded = max(self._last_folded, fold.last)

    # What is shown

    def _look(self) -> None:
        """Several folds cost one pass: it is made when somebody looks."""
        if self._is_stale:
            self._is_stale = False
            self._show_again()

    def _show_again(self) -> None:
        """Everything from the beginning, after a fold."""
        self._items = []
        self._renderer = Renderer(self.count)
        for item in self._all_items():
            self._show(item)
        self._rendered = None

    def _show(self, item: Item) -> None:
        self._items.append(item)
        self._renderer.add(item.message)

    def _item(self, said: _Said) -> Item:
        return Item(said.message, self.count(said.message), said.seq, said.seq, said.turn)

    def _all_items(self) -> Iterator[Item]:
        self._hide()
        waiting = sorted(self._folds, key=lambda each: each.first)
        place = 0
        for said in self._said:
            while place < len(waiting) and waiting[place].first <= said.seq:
                if said.seq <= waiting[place].last:  # or it is over nothing that is there
                    yield from self._replacement(waiting[place], said.turn)
                place += 1
            if said.seq not in self._hidden:
                yield self._item(said)
            elif said.answers:
                yield from self._notes(said)

    def _hide(self) -> None:
        """Find the messages that are not shown, with the results whose calls are not."""
        self._hidden = set(covered([said.seq for said in self._said], self._folds))
        for said in self._said:
            if said.answers and self._is_cut_off(said):
                self._hidden.add(said.seq)

    def _is_cut_off(self, said: _Said) -> bool:
        """Whether a message has nothing but results of calls that are not shown."""
        return said.has_only_answers and not any(
            answer.caller is None or self._has_call(answer) for answer in said.answers
        )

    def _has_call(self, answer: _Answer) -> bool:
        """Whether the call of a result is shown: in its message, or in what stands for that."""
        caller = answer.caller
        if caller is None or caller.seq not in self._hidden:
            return caller is not None
        standing = self._standing_for(caller.seq)
        calls = [call.id for each in standing for call in calls_of(each)]
        return bool(calls) if answer.call_id is None else answer.call_id in calls

    def _replacement(self, fold: Fold, turn: int) -> Iterator[Item]:
        message = fold.replacement
        if message is None or fold.is_open:
            return
        yield Item(message, self.count(message), fold.first, fold.last, turn, fold)

    def _notes(self, said: _Said) -> Iterator[Item]:
        """In the place of results that are hidden while their calls are shown."""
        standing = self._standing_for(said.seq)
        answered = {result.call_id for each in standing for result in results_of(each)}
        for answer in said.answers:
            ids = (answer.call_id, answer.result.call_id)  # a result need not name its call
            is_missed = answer.is_first and answered.isdisjoint(ids)
            if is_missed and self._has_call(answer):
                note = folded_result(said.message, answer.result, answer.place)
                yield Item(note, self.count(note), said.seq, said.seq, said.turn)

    def _standing_for(self, seq: int) -> list[Message]:
        """The replacements of the folds over a message."""
        over = (fold for fold in self._folds if fold.first <= seq <= fold.last)
        return [fold.replacement for fold in over if fold.replacement is not None]


def in_force(folds: Iterable[Fold]) -> tuple[Fold, ...]:
    """The folds that say something: those that no later one covers whole."""
    found: list[Fold] = []
    for fold in folds:
        found = [each for each in found if not _covers(fold, each)] + [fold]
    return tuple(found)


def _covers(later: Fold, earlier: Fold) -> bool:
    return later.first <= earlier.first and earlier.last <= later.last


def covered(seqs: Sequence[int], folds: Sequence[Fold]) -> Iterator[int]:
    """Those of `seqs`, in order, that the latest fold over them hides."""
    starting = sorted(enumerate(folds), key=lambda each: each[1].first)
    over: list[tuple[int, Fold]] = []
    place = 0
    for seq in seqs:
        while place < len(starting) and starting[place][1].first <= seq:
            over.append(starting[place])
            place += 1
        over = [each for each in over if each[1].last >= seq]
        if over and not max(over, key=lambda each: each[0])[1].is_open:
            yield seq
