"""The view of a log, written from the words of its contract alone (`holdfast/window/view.py`).

It keeps nothing between two questions and asks every message about every fold, so that each
sentence of the contract can be found here as a line. `test_window_view.py` holds the real one
against it, at every entry of random logs.
"""

from typing import NamedTuple

from holdfast.entries import Fold
from holdfast.messages import Message, Role
from holdfast.notes import folded_result


class Shown(NamedTuple):
    """An item, without its tokens."""

    message: Message
    first: int
    last: int
    turn: int
    fold: Fold | None


class Answer(NamedTuple):
    """A result, with the message that called for it: its seq, and the id of the call there.

    `named` is the id that the result itself names. `is_first` tells it from a second result of
    the same call.
    """

    index: int
    named: str | None
    caller: int | None
    call_id: str
    is_first: bool


def naive_items(log, *, turns=0):
    """What is shown of `log`, a list of (seq, entry): all items, in order."""
    said = [(seq, entry) for seq, entry in log if type(entry) is Message]
    folds = naive_folds(log)
    turn_of = _turns(said, turns)
    answers = _answers(said)
    folded = {seq for seq, _ in said if _is_folded(seq, log)}
    hidden = _hidden(said, folds, folded, answers)
    shown = []
    for seq, message in said:
        shown += [
            Shown(fold.replacement, fold.first, fold.last, turn_of[seq], fold)
            for fold in _standing_at(seq, said, folds)
        ]
        if seq not in hidden:
            shown.append(Shown(message, seq, seq, turn_of[seq], None))
        elif seq in folded:
            for answer in answers[seq]:
                if _leaves_a_note(seq, answer, folds, hidden):
                    note = folded_result(message, results_of(message)[answer.index], answer.index)
                    shown.append(Shown(note, seq, seq, turn_of[seq], None))
    return shown


def naive_pairs(log):
    """Each message with calls with each that has results of them, as (seq, seq)."""
    answers = _answers([(seq, entry) for seq, entry in log if type(entry) is Message])
    return [
        (answer.caller, seq)
        for seq, found in answers.items()
        for answer in found
        if answer.caller is not None
    ]


def naive_folds(log):
    """The folds that no later one covers whole, in the order in which they were made."""
    folds = [entry for _, entry in log if type(entry) is Fold]
    return [
        fold
        for at, fold in enumerate(folds)
        if not any(
            later.first <= fold.first and fold.last <= later.last for later in folds[at + 1 :]
        )
    ]


def naive_turn(log, *, turns=0):
    """The number of the latest turn."""
    return turns + sum(type(entry) is Message and entry.starts_turn for _, entry in log)


def _turns(said, turns):
    """The turn of each message."""
    return {seq: naive_turn(said[: at + 1], turns=turns) for at, (seq, _) in enumerate(said)}


def _is_folded(seq, log):
    """Whether the latest fold over the message hides it."""
    over = [fold for _, fold in log if type(fold) is Fold and fold.first <= seq <= fold.last]
    return bool(over) and not over[-1].is_open


def _standing_at(seq, said, folds):
    """The folds whose replacements stand in the place of this message, the outermost first."""
    standing = []
    for fold in folds:
        covered = [each for each, _ in said if fold.first <= each <= fold.last]
        if fold.replacement is not None and covered and covered[0] == seq:
            standing.append(fold)
    return sorted(standing, key=lambda fold: fold.first)  # stable: else as they were made


def _hidden(said, folds, folded, answers):
    """The messages that are not shown: folded, or nothing but results of calls that are not."""
    hidden = set()
    for seq, message in said:
        is_cut_off = has_only_results(message) and all(
            answer.caller is not None and not _call_is_shown(answer, folds, hidden)
            for answer in answers[seq]
        )
        if seq in folded or is_cut_off:
            hidden.add(seq)
    return hidden


def _call_is_shown(answer, folds, hidden):
    """Whether there is a call of the result, and its message or one in its place is shown."""
    if answer.caller is None:
        return False
    return answer.caller not in hidden or any(
        any(answer.call_id in (None, call.id) for call in calls_of(fold.replacement))
        for fold in _replacing(answer.caller, folds)
    )


def _leaves_a_note(seq, answer, folds, hidden):
    """Whether a folded result is missed: its call is shown, and nothing answers it instead."""
    ids = (answer.call_id, answer.named)  # a result need not name its call, nor what replaces it
    is_answered = any(
        any(result.call_id in ids for result in results_of(fold.replacement))
        for fold in _replacing(seq, folds)
    )
    return answer.is_first and _call_is_shown(answer, folds, hidden) and not is_answered


def _replacing(seq, folds):
    return [fold for fold in folds if fold.replacement and fold.first <= seq <= fold.last]


def _answers(said):
    """For each message, whom its results answer."""
    taken = set()  # calls that have a result, as (seq, place in the message)
    answers = {}
    for at, (seq, message) in enumerate(said):
        calls = calls_of(message)
        taken |= {(seq, place) for place, call in enumerate(calls) if call.output is not None}
        answers[seq] = []
        for index, result in enumerate(() if calls else results_of(message)):
            caller, place = _call_of(result, said[:at], taken)
            call_id = result.call_id
            if place is not None:
                taken.add((caller, place))
                call_id = calls_of(dict(said)[caller])[place].id
            answers[seq].append(Answer(index, result.call_id, caller, call_id, place is not None))
    return answers


def _call_of(result, before, taken):
    """The message that called for a result, and the place of the call if that is not answered.

    It is the latest that has a call of the result's id. A result without an id answers the next
    call of its name in the latest message with calls.
    """
    for seq, message in reversed(before):
        calls = list(enumerate(calls_of(message)))
        if result.call_id is not None:
            of_it = [place for place, call in calls if call.id == result.call_id]
        elif calls:
            of_it = [place for place, call in calls if result.name in (None, call.name)]
        else:
            of_it = []
        if of_it:
            return seq, next((place for place in of_it if (seq, place) not in taken), None)
        if calls and result.call_id is None:
            return None, None
    return None, None


def calls_of(message):
    """The calls that a message makes, of which some may hold their output already.

    Only the assistant calls; outputs without arguments are results, whoever holds them.
    """
    is_result = all(call.output is not None and not call.arguments for call in message.tool_calls)
    return () if message.role.canonical is not Role.ASSISTANT or is_result else message.tool_calls


def results_of(message):
    """What a message says that tools gave back."""
    if any(call.output is not None for call in message.tool_calls):
        return message.results
    is_users = message.role is Role.USER and message.tool_call_id is not None
    return message.results if is_users or message.role.canonical is Role.TOOL else ()


def has_only_results(message):
    """Whether nothing else would be lost with the results of a message."""
    results = results_of(message)
    if not results or calls_of(message):
        return False
    if any(call.output is not None for call in message.tool_calls):
        repeated = "".join(str(result.content) for result in results)
        return not message.content or message.content == repeated
    return True
