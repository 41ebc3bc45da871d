"""What must be true of a session after any fault in a turn, whatever the fault was.

what the store has acknowledged is there, once
what a user said is there as soon as `begin` returned: in the log, or in the draft
the log is one that a turn could have written: `broken_rules` says how not
the session can be used: `resume` goes on, or `send` begins anew, at once
what a model is shown then is a request that every vendor accepts
a tool that may not be run twice was not
"""

import asyncio
import time
from collections import Counter
from itertools import pairwise
from typing import NamedTuple

import msgspec

from faults import oracle
from faults.talk import WIRES
from faults.turns import Effects, Model, answer_text, opened, result_text, tools
from holdfast.entries import Call, Mark
from holdfast.errors import HoldfastError, InvalidInput, SessionNotFound
from holdfast.messages import Message, Role
from holdfast.notes import UNKNOWN_OUTCOME
from holdfast.providers import open_provider
from holdfast.steps.standing import INTERRUPTED
from holdfast.testing import validators

CUT_OFF = ("interrupted", "cancelled")
WAIT_S = 1.0


class Judged(NamedTuple):
    """What is wrong, and what was seen on the way."""

    wrong: list
    rows: tuple = ()
    result: object = None


# ---- the log ----


def messages_of(rows):
    return [row.entry for row in rows if isinstance(row.entry, Message)]


def marks_of(rows, what):
    return [row.entry for row in rows if isinstance(row.entry, Mark) and row.entry.what == what]


def broken_rules(rows, *, is_ended=True):
    """How the rows of a branch are none that turns could have written. With `is_ended`, all turns
    have come to their end."""
    wrong = [*_twice(rows), *_unpaired(rows, is_ended), *_unreceipted(rows), *_unmarked(rows)]
    spent = [row.entry.extra["spent"]["calls"] for row in rows if isinstance(row.entry, Call)]
    if spent != sorted(set(spent)):
        wrong.append(f"what was spent does not grow: {spent}")
    return wrong


def _twice(rows):
    ids = Counter(row.entry.id for row in rows if hasattr(row.entry, "id"))
    texts = Counter(_answered_inputs(messages_of(rows)))
    results = Counter(each.tool_call_id for each in messages_of(rows) if each.role is Role.TOOL)
    for what, counts in (("an entry", ids), ("an input", texts), ("a result", results)):
        for name, count in counts.items():
            if count > 1:
                yield f"{what} is there {count} times: {name!r}"


def _answered_inputs(messages):
    """What was said, but for what was cut off before it had an answer and is said again later."""
    starts = [place for place, each in enumerate(messages) if each.starts_turn]
    texts = [messages[place].text for place in starts]
    for number, (start, stop) in enumerate(pairwise([*starts, len(messages)])):
        replies = [each for each in messages[start:stop] if each.role is Role.ASSISTANT]
        is_answered = any(not each.calls and each.stop != INTERRUPTED for each in replies)
        if is_answered or texts[number] not in texts[number + 1 :]:
            yield texts[number]


def _unpaired(rows, is_ended):
    waiting = set()
    for message in messages_of(rows):
        if message.role is Role.ASSISTANT:
            if waiting:
                yield f"the model went on before {sorted(waiting)} were answered"
            waiting = {call.id for call in message.calls}
        for result in message.results:
            if result.call_id not in waiting:
                yield f"a result of {result.call_id!r}, which did not wait for one"
            waiting.discard(result.call_id)
    if is_ended and waiting:
        yield f"{sorted(waiting)} were never answered"


def _unreceipted(rows):
    receipts = {row.entry.about for row in rows if isinstance(row.entry, Call)}
    for message in messages_of(rows):
        if message.role is not Role.ASSISTANT or message.stop in CUT_OFF:
            continue
        if message.id not in receipts:
            yield f"no receipt for {message.text!r}"


def _unmarked(rows):
    started = {mark.about for mark in marks_of(rows, "started")}
    unknown = {mark.about for mark in marks_of(rows, "unknown")}
    lost = set()
    for message in messages_of(rows):
        if message.role is not Role.TOOL:
            continue
        if message.text == UNKNOWN_OUTCOME:
            lost.add(message.tool_call_id)
        elif not message.is_error and message.tool_call_id not in started:
            yield f"{message.tool_call_id!r} ran, and no mark says that it was started"
        if not message.is_error and message.text != result_text(message.tool_call_id):
            yield f"{message.tool_call_id!r} is answered with {message.text!r}"
    if lost != unknown:
        yield f"unknown by their results: {sorted(lost)}, by marks: {sorted(unknown)}"


def half_answers(rows):
    """Answers that are cut off and do not say so."""
    for message in messages_of(rows):
        text = message.text or ""
        if message.role is not Role.ASSISTANT or not text.startswith("answer to u"):
            continue
        if message.stop not in CUT_OFF and not text.endswith(" end"):
            yield f"half an answer is taken for a whole one: {text!r}"


# ---- requests ----


_wires = {}


def request_problems(messages, system=None, tools=None):
    """Why a request with these messages would be refused: our own rule of pairs, as they are given,
    and those of every vendor."""
    found = [*_gaps(messages)]
    for api, vendor in WIRES.items():
        if api not in _wires:
            name, options = f"{vendor.name}:{vendor.model}", getattr(vendor, "options", {})
            _wires[api] = open_provider(name, **options).wire
        wire = _wires[api]
        asked = wire.to_wire(wire.ask(messages, system, tools))
        body = msgspec.json.decode(msgspec.json.encode(asked))
        problems = validators.problems(api, body, model=vendor.model)
        found += [f"{api} refuses: {each}" for each in problems]
    return found


def _gaps(messages):
    """Calls that are not answered before anything else is said, and answers to none."""
    waiting = set()
    for message in messages:
        if message.role is Role.TOOL:
            if message.tool_call_id not in waiting:
                yield f"the request answers {message.tool_call_id!r}, which is not asked for"
            waiting.discard(message.tool_call_id)
            continue
        if waiting:
            yield f"the request leaves {sorted(waiting)} open"
        waiting = {call.id for call in message.calls}
    if waiting:
        yield f"the request ends with {sorted(waiting)} open"
    if not messages:
        yield "the request asks for nothing"


# ---- a session after a crash ----


def judge(path, steps, how, **options):
    """What is wrong with the session "chat" after a program on the store at `path` was killed.

    `steps` is what the program noted; `how` is what is done next: "resume" or "send".
    """
    try:
        judged = asyncio.run(_judge(path, steps, how, **options))
    except HoldfastError as error:
        judged = Judged([f"it cannot be used: {type(error).__name__}: {error}"])
    return judged._replace(wrong=[*judged.wrong, *oracle.integrity(path)])


async def _judge(path, steps, how, effects=None, made=None, is_idempotent=False):
    effects = effects or Effects(f"{path}.effects")
    model = Model()
    facts = [each.step for each in steps if each.outcome == "acknowledged"]
    started = time.monotonic()
    async with opened(path, model, made or tools(effects)) as sessions:
        tenant = sessions._workshop.tenant
        wrong = [*await _other_sessions(tenant, steps)]
        try:
            session = await sessions.get("chat")
        except SessionNotFound:
            return Judged(wrong)
        seconds = time.monotonic() - started
        if seconds > oracle.REOPEN_MAX_S:
            wrong.append(f"opening it again took {seconds:.2f} s")
        wrong += [str(problem) for problem in (await tenant.verify()).problems]
        rows = await tenant.read(session.id, session.branch)
        wrong += [*_lost(session, rows, facts), *broken_rules(rows, is_ended=False)]
        result = await go_on(session, how, wrong)
        rows = await tenant.read(session.id, session.branch)
        wrong += [*_lost(session, rows, facts, is_ended=True), *ended_wrong(session, rows)]
        for asked in model.asked:
            wrong += request_problems(asked)
        wrong += effects_wrong(effects, rows, is_idempotent=is_idempotent)
    return Judged(wrong, rows, result)


async def _other_sessions(tenant, steps):
    """A session that was deleted is gone; one that was not is there."""
    there = {summary.key for summary in (await tenant.list(limit=1000)).items}
    deleted = {e.step["session"]: e.outcome for e in steps if e.step["do"] == "delete"}
    made = {e.step["session"] for e in steps if e.step["do"] == "created"}
    lost = made - there - deleted.keys()
    back = {key for key in there if deleted.get(key) == "acknowledged"}
    return [f"lost sessions: {lost}"] * bool(lost) + [f"back again: {back}"] * bool(back)


def _lost(session, rows, facts, *, is_ended=False):
    """What was acknowledged and is not there. With `is_ended`, a draft does not count any more."""
    there = {row.entry.id for row in rows if hasattr(row.entry, "id")}
    draft = None if is_ended else session.draft
    drafted = set() if draft is None else {each.message.id for each in (draft, *draft.before)}
    for fact in facts:
        if fact["session"] not in (session.id, "chat"):
            continue
        if fact["do"] == "kept":
            for kind, id in fact["entries"]:
                if id not in there:
                    yield f"acknowledged and lost: {kind} {id}"
        elif fact["do"] == "begun" and fact["message"] not in there | drafted:
            yield f"what the user said is lost: {fact['message']}"
        elif fact["do"] == "answered":
            texts = [each.text for each in messages_of(rows)]
            if fact["said"] not in texts or fact["text"] not in texts:
                yield f"answered and lost: {fact['said']!r}"


async def go_on(session, how, wrong):
    """Go on with the turn that was cut off, if it was, then say something new."""
    result = None
    if how == "resume":
        is_due = session.draft is not None
        try:
            result = await session.resume(wait=WAIT_S)
        except InvalidInput as error:
            if is_due:
                wrong.append(f"there is a draft, and resume says: {error}")
        if result is not None and result.outcome != "response":
            wrong.append(f"gone on with, the turn ended as {result.outcome}")
    later = await session.send("after all", wait=WAIT_S)
    if later.text != answer_text("after"):
        wrong.append(f"the next turn is answered with {later.text!r}")
    return result


def ended_wrong(session, rows):
    """What is wrong when every turn has ended."""
    found = [*broken_rules(rows), *half_answers(rows)]
    if session.draft is not None:
        found.append(f"a draft is left: {session.draft.text!r}")
    if [each.id for each in session.messages] != [each.id for each in messages_of(rows)][
        -len(session.messages) :
    ]:
        found.append("the session shows another conversation than the log has")
    return found


def effects_wrong(effects, rows, *, is_idempotent=False):
    """Effects that came twice, without a call, or not at all although their result is there."""
    count = Counter(what for what, _ in effects.all())
    keys = {}
    for what, key in effects.all():
        keys.setdefault(what, set()).add(key)
    called = {call.id for message in messages_of(rows) for call in message.calls}
    for what, times in count.items():
        if times > 1 and not is_idempotent:
            yield f"{what!r} was done {times} times"
        if what not in called:
            yield f"{what!r} was done, and nobody asked for it"
        if len(keys[what]) > 1:
            yield f"{what!r} was run again under another key: {sorted(keys[what])}"
    for message in messages_of(rows):
        is_done = message.role is Role.TOOL and not message.is_error
        if is_done and not count[message.tool_call_id]:
            yield f"{message.tool_call_id!r} has a result, and was never done"
