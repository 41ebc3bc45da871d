"""The beginning of a turn: what the turns before it have left, and whether it was run before."""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from holdfast import codec
from holdfast.conversation import Conversation, turn_at
from holdfast.entries import Mark
from holdfast.errors import Conflict, InvalidInput, OnceMismatch
from holdfast.frozen import FrozenDict
from holdfast.messages import Message, Role
from holdfast.steps import drafts
from holdfast.steps.calls import are_answered
from holdfast.steps.drafts import Draft
from holdfast.steps.hold import Hold
from holdfast.steps.keeper import Keeper
from holdfast.steps.leftovers import CANCELLED, LEFT, closed, is_marked, left_over
from holdfast.steps.orders import Answers, Order
from holdfast.steps.standing import is_unfinished, standing
from holdfast.stores.values import Stored

SENT = "sent"
_TAIL = 50  # messages: so near to its end a turn that was left on another branch is looked for


class Start(NamedTuple):
    """Where a turn begins.

    message  what the user said
    is_new   it is not in the log yet
    past     its rows, if the turn was run before, to its end
    """

    message: Message
    is_new: bool = False
    past: tuple[Stored, ...] | None = None


def draft_for(talk: Conversation, order: Order, options: Mapping[str, Any]) -> dict[str, Any]:
    """What is stored before anything else: the input, or that of the turn gone on with."""
    before = talk.record.draft
    left = drafts.read(before)
    if left is not None and (order.message is None or left.is_sent_as(order.once, talk.branch)):
        message, branch, once = left.message, left.branch, left.once
    elif order.message is not None:
        message, branch, once = order.message, talk.branch, order.once
    else:
        rows = talk.turn()
        first = rows[0].entry if rows else None
        message = first if isinstance(first, Message) else Message.user(None)
        branch, once = talk.branch, None
    return drafts.written(message, branch, once=once, options=options, before=before)


async def start(talk: Conversation, hold: Hold, keeper: Keeper, order: Order) -> Start:
    """Clean up behind the turns before; find out what was said, and whether it is answered."""
    await talk.catch_up()
    keeper.at = talk.head  # what is put aside from now on was decided behind this
    if order.message is None:
        return await _start_again(talk, hold, keeper, order.answers)
    return await _start_new(talk, hold, keeper, order.message, order.once)


async def _start_new(
    talk: Conversation, hold: Hold, keeper: Keeper, message: Message, once: str | None
) -> Start:
    """Begin a turn with what the user says, or find the one that was begun with it before."""
    left = hold.left
    if left is not None and left.is_sent_as(once, talk.branch):
        await _clean_up(talk, hold, keeper, is_again=True)
        return await _go_on(talk, keeper, left, message)
    await _clean_up(talk, hold, keeper, is_again=False)
    was_sent = once is not None and await _was_sent(talk, keeper, message, once)
    if was_sent and (found := await _sent_before(talk, once or "")):
        return found
    rows = None if left is None else talk.turn_of(left.message.id, is_last=True)
    if rows and (entries := closed(standing(rows))):
        await keeper.keep(entries)
    await _close_before(talk, keeper)
    if steering := talk.steering:  # said to a turn that was cut off before it heard of it
        await keeper.keep(steering)
    return Start(message, is_new=True)


async def _start_again(
    talk: Conversation, hold: Hold, keeper: Keeper, answers: Answers | None
) -> Start:
    """Go on with the turn that was cut off, failed or waits; or find that it has these answers."""
    left = hold.left
    is_here = left is not None and left.branch == talk.branch
    await _clean_up(talk, hold, keeper, is_again=is_here)
    if left is not None and is_here:
        begun = await _go_on(talk, keeper, left, left.message)
    else:
        rows = talk.turn()
        if not rows or not isinstance(first := rows[0].entry, Message):
            raise nothing_to_resume()
        await _close_before(talk, keeper, first)
        begun = _found(talk, talk.turn())
    if begun.past is not None and not are_answered(answers, begun.past):
        raise nothing_to_resume()
    return begun


async def _go_on(talk: Conversation, keeper: Keeper, left: Draft, message: Message) -> Start:
    """Go on with the turn of a draft, which is sent as `message` again, if it has a name.

    It may have been cut off before it was seen that the same was sent before.
    """
    if left.once is not None and await _was_sent(talk, keeper, message, left.once):
        is_here = talk.turn_of(left.message.id) is not None
        if not is_here and (found := await _sent_before(talk, left.once)):
            return found
    await _close_before(talk, keeper, left.message)
    rows = talk.turn_of(left.message.id, is_last=True)
    return Start(left.message, is_new=True) if rows is None else _found(talk, rows)


async def _close_before(talk: Conversation, keeper: Keeper, message: Message | None = None) -> None:
    """Answer the calls that were left open before a message, or before what is said next."""
    since = talk.since_reply()
    now = None if message is None else talk.turn_of(message.id)
    is_before = bool(since) and (now is None or since[0].seq < now[0].seq)
    if is_before and (entries := closed(standing(since))):
        await keeper.keep(entries)


def nothing_to_resume() -> InvalidInput:
    """Said before anything is changed, as far as that can be seen then."""
    return InvalidInput("the session", "has no turn to go on with: send something")


def _found(talk: Conversation, rows: tuple[Stored, ...]) -> Start:
    """A turn that is in the log. One that was told more, and has not heard of it, is not over."""
    is_over = standing(rows).is_over and not talk.steering
    return Start(_said(rows), past=rows if is_over else None)


def _said(rows: Sequence[Stored]) -> Message:
    message = rows[0].entry
    assert isinstance(message, Message)
    return message


async def _clean_up(talk: Conversation, hold: Hold, keeper: Keeper, *, is_again: bool) -> None:
    """Store what a turn that was cut off has left. With `is_again` it will be gone on with."""
    left = hold.left
    if left is None:
        return
    for before in left.before:
        is_same = is_again and before.message.id == left.message.id
        await _clean_up_behind(talk, hold, keeper, before, is_again=is_same)
    await _clean_up_behind(talk, hold, keeper, left, is_again=is_again)


async def _clean_up_behind(
    talk: Conversation, hold: Hold, keeper: Keeper, draft: Draft, *, is_again: bool
) -> None:
    is_here = draft.branch == talk.branch
    rows = talk.rows if is_here else await talk.tenant.tail(talk.id, draft.branch, _TAIL)
    entries = left_over(draft, rows, is_abandoned=not is_again)
    if not entries:
        return
    if draft.once is not None and entries[0] is draft.message:
        with suppress(OnceMismatch):  # refused, if it had come so far
            await _was_sent(talk, keeper, draft.message, draft.once)
    if is_here:
        await keeper.keep(entries)
    else:
        await talk.tenant.append(talk.id, entries, branch=draft.branch, lease=hold.lease)


# Once


async def _was_sent(talk: Conversation, keeper: Keeper, message: Message, once: str) -> bool:
    """Write down that this is sent once; whether it was before, on whichever branch."""
    digest = hashlib.sha256(codec.plain(message)).hexdigest()
    mark = Mark(what=SENT, data=FrozenDict({"once": once, "input": digest}))
    last = talk.head
    try:
        done = await keeper.keep([mark], once=f"send:{once}")
    except OnceMismatch:
        raise OnceMismatch(talk.record.key, once) from None
    return done.branch != talk.branch or done.first <= last


async def _sent_before(talk: Conversation, once: str) -> Start | None:
    """The turn that was sent under this name; None if it is to be asked, for all that is known.

    That is so where it never came into the log, and where it was cut off and others have come
    since: then it is asked again, behind them. On a branch that was left it is not gone on with,
    and not run a second time: Conflict.
    """
    if (rows := _sent_as(talk.rows, once)) is None and talk.gaps:
        await talk.load(is_all=True)
        rows = _sent_as(talk.rows, once)
    if rows is not None:
        is_answered = _is_answered(rows)
        if not is_answered and rows[-1].seq >= talk.rows[-1].seq:
            return Start(_said(rows))
        return Start(_said(rows), past=rows) if is_answered or _is_given_up(rows) else None
    await talk.look()
    for branch in talk.record.branches:
        rows = _sent_as(await talk.tenant.read(talk.id, branch.name), once)
        if rows is not None and not _is_answered(rows) and not _is_given_up(rows):
            raise Conflict(talk.record.key, branch.head, talk.head)
        if rows is not None:
            return Start(_said(rows), past=rows)
    return None


def _is_answered(rows: Sequence[Stored]) -> bool:
    """Whether a turn that has left no draft came to an end; notes behind that open it no more."""
    said = (row.entry for row in rows if type(row.entry) is Message)
    replies = (message for message in said if message.role.canonical is Role.ASSISTANT)
    return any(not reply.calls and not is_unfinished(reply) for reply in replies)


def _is_given_up(rows: Sequence[Stored]) -> bool:
    """Whether somebody was told how it ended, if without an answer."""
    id = _said(rows).id
    return any(is_marked(rows, what, id) for what in (CANCELLED, LEFT))


def _sent_as(rows: Sequence[Stored], once: str) -> tuple[Stored, ...] | None:
    for start in range(len(rows) - 1, -1, -1):
        entry = rows[start].entry
        if type(entry) is Message and entry.extra.get("once") == once:
            return turn_at(rows, start)
    return None
