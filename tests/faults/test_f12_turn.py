"""F12 on whole turns: a turn is cancelled at each of its awaits, in every way that there is.

When the cancel has come through, what the user said is stored, with what the model had said and a
mark, or the turn is complete. Nothing is held: the next turn begins at once. No task is left, and
the next request is one that every vendor accepts. Bad input 119 is in here.
"""

import asyncio
import itertools
import time
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest

import holdfast
from faults import turn_oracle, turns
from faults.tier import pick
from holdfast.cancel import CancelToken
from holdfast.entries import Mark
from holdfast.errors import Busy, HoldfastError
from holdfast.events import Outcome, TextDelta, ToolResult
from holdfast.messages import Role
from holdfast.steps import hold
from holdfast.testing.faults import loops
from holdfast.turn import Turn

WAYS = ("task", "token", "session", "stream", "loop")
SAID = ("u1", "u1 use 3 steps")
CANCEL_S_MAX = 1.0


WANTED = dict.fromkeys(("task", "stream", "loop"), "CancelledError") | {"timeout": "TimeoutError()"}


class Ended(NamedTuple):
    """How a turn ended that somebody cancelled: the outcome, or the error; what was heard."""

    outcome: str
    heard: str
    is_begun: bool
    took_s: float = 0.0  # from the first time that somebody stopped it


class Case:
    """A turn in a fresh session, and the ways to stop it."""

    def __init__(self, sessions, session, way):
        self.sessions = sessions
        self.session = session
        self.way = way
        self.token = CancelToken()
        self.heard = []
        self.is_begun = False
        self.sender = None
        self.turn = None
        self.stopped = 0
        self.stopped_at = None

    async def prepare(self):
        """What has to be so before the turn begins."""

    def stop(self):
        """Cancel, in this case's way, while it runs."""
        if self.sender.done():
            return
        self.stopped += 1
        self.stopped_at = self.stopped_at or time.monotonic()
        self.act()

    def act(self):
        if self.way in ("task", "stream"):
            self.sender.cancel()
        elif self.way == "token":
            self.token.cancel("it was asked for")
        elif self.way == "session":
            self.session.cancel()
        else:
            self.turn.cancel()

    async def run(self, said, k, times):
        """Send, and stop the turn at its k-th await."""
        workshop, tenant = self.sessions._workshop, self.sessions._workshop.tenant
        start, begin = workshop.start, tenant.begin

        def started(work):
            self.turn = start(loops.act_at(work, k, self.stop, times=times))
            return self.turn

        async def begun(*arguments, **options):
            lease = await begin(*arguments, **options)
            self.is_begun = True
            return lease

        workshop.start, tenant.begin = started, begun
        self.sender = asyncio.ensure_future(self._send(said))
        await asyncio.wait([self.sender])
        workshop.start, tenant.begin = start, begin
        took_s = time.monotonic() - (self.stopped_at or time.monotonic())
        return Ended(_outcome(self.sender), "".join(self.heard), self.is_begun, took_s)

    async def _send(self, said):
        if self.way != "stream":
            return await self.session.send(said, cancel=self.token, on_event=self._hear)
        stream = self.session.stream(said, on_event=self._hear)
        async for _ in stream:
            pass
        return stream.result

    def _hear(self, event):
        """What was said since the last thing that was stored whole."""
        if isinstance(event, TextDelta):
            self.heard.append(event.text)
        elif isinstance(event, ToolResult):
            self.heard.clear()


def _outcome(task):
    if task.cancelled():
        return "CancelledError"
    error = task.exception()
    return repr(error) if error else str(task.result().outcome)


class Place:
    """Where turns are run: a store, opened for each of them."""

    def __init__(self, url):
        self.url = url
        self.effects = Memory()
        self.model = turns.Model()

    @asynccontextmanager
    async def opened(self):
        made = turns.tools(self.effects)
        async with holdfast.open(self.url, model=self.model, tools=made) as sessions:
            yield sessions


async def cancelled(place, way, said, k, times=1, make=Case):
    """Stop one turn; how often it was stopped, and what was wrong."""
    key = f"s{next(_numbers)}"
    place.effects.clear()
    place.model.asked.clear()
    async with place.opened() as sessions:
        if place.url == "memory:":
            slow_down(sessions._workshop.tenant, is_begin_sure=way == "loop")
        session = await sessions.get_or_create(key, settings=turns.SETTINGS)
        before = asyncio.all_tasks()
        case = make(sessions, session, way)
        await case.prepare()
        ended = await case.run(said, k, times)
        wrong = [*ended_wrongly(ended, way, case.stopped), *await left_behind(before)]
        if place.url == "memory:" or way != "loop":
            wrong += await judge(place, sessions, session, ended, way)
    if place.url != "memory:" and way == "loop":  # whose loop has ended opens the store anew
        async with place.opened() as sessions:
            wrong += await judge(place, sessions, await sessions.get(key), ended, way)
    return case.stopped, wrong


async def judge(place, sessions, session, ended, way):
    """What is wrong with what was stored, and with the next turn."""
    wrong, tenant = [], sessions._workshop.tenant
    rows = await tenant.read(session.id, session.branch)
    if not (way == "loop" and is_drafted(session, rows)):
        wrong += stored_wrongly(ended, rows)
    try:
        await turn_oracle.go_on(session, "send", wrong)
    except HoldfastError as error:
        wrong.append(f"the next turn: {error!r}")
    rows = await tenant.read(session.id, session.branch)
    wrong += turn_oracle.ended_wrong(session, rows)
    wrong += turn_oracle.effects_wrong(place.effects, rows)
    for asked in place.model.asked:
        wrong += turn_oracle.request_problems(asked)
    return wrong


def slow_down(tenant, *, is_begin_sure):
    """Let every operation wait before it and after it. What is cancelled while it waits has not
    happened, or has: both are allowed to a store. With `is_begin_sure`, `begin` does not wait
    after it: then a loop that ends knows of its lease."""
    for name in ("load", "read", "append", "begin", "journal", "release"):
        operation = getattr(tenant, name)
        setattr(tenant, name, _slowed(operation, is_after=name != "begin" or not is_begin_sure))


def _slowed(operation, is_after):
    async def slow(*arguments, **options):
        await asyncio.sleep(0)
        result = await operation(*arguments, **options)
        if is_after:
            await asyncio.sleep(0)
        return result

    return slow


_numbers = itertools.count(1)


class Memory(turns.Effects):
    """Effects that are only remembered: tools of thousands of turns need no file."""

    def __init__(self):
        self.seen = []

    def add(self, what, key):
        self.seen.append((what, key))

    def all(self):
        return self.seen

    def clear(self):
        self.seen.clear()


async def left_behind(before):
    for _ in range(20):
        if asyncio.all_tasks() <= before:
            return []
        await asyncio.sleep(0.01)
    return [f"left behind: {each}" for each in asyncio.all_tasks() - before]


def ended_wrongly(ended, way, stopped):
    """A cancel of the task goes on as such; any other is an outcome. A turn may be complete."""
    wanted = WANTED.get(way, str(Outcome.CANCELLED))
    if ended.took_s > CANCEL_S_MAX:
        yield f"stopped by {way}, it took {ended.took_s:.2f} s to end"
    if ended.outcome not in (wanted, str(Outcome.RESPONSE)):
        yield f"stopped by {way}, it ended as {ended.outcome}"
    if not stopped and ended.outcome != str(Outcome.RESPONSE):
        yield f"nobody stopped it, and it ended as {ended.outcome}"


def is_drafted(session, rows):
    """Cancelled before it has started, a turn leaves its draft, and the next one stores it."""
    return not rows and session.draft is not None


def stored_wrongly(ended, rows):
    """Once begun, what was said is in the log; and if it was cut off, a mark is."""
    messages = turn_oracle.messages_of(rows)
    if not ended.is_begun:
        return
    if not messages or not messages[0].starts_turn:
        yield "what the user said is not stored"
        return
    said = [each for each in messages if each.role is Role.ASSISTANT]
    is_whole = bool(said) and not said[-1].calls and said[-1].stop not in turn_oracle.CUT_OFF
    if ended.heard and not any(ended.heard in (each.text or "") for each in said):
        yield f"heard and not stored: {ended.heard!r}, stored: {[each.text for each in said]}"
    if not is_whole and len(turn_oracle.marks_of(rows, "cancelled")) != 1:
        yield f"cut off, and {len(turn_oracle.marks_of(rows, 'cancelled'))} marks say so"
    if is_whole and turn_oracle.marks_of(rows, "cancelled"):
        yield "complete, and a mark says that it was cancelled"


async def sweep(url, way, said, times=1, ks=None, make=Case):
    """At every await, until the turn runs through: what was wrong, and how many there are."""
    place, wrong = Place(url), {}
    for k in ks or itertools.count(1):
        stopped, found = await cancelled(place, way, said, k, times, make)
        if found:
            wrong[k] = found
        if not stopped:
            break
    return wrong, k


# A loop that ends cancels its tasks once; others may be impatient.
CASES = [*itertools.product(WAYS, [1]), *itertools.product(WAYS[:-1], [3])]


@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize(("way", "times"), CASES)
def test_a_turn_that_is_cancelled_keeps_what_there_is(way, times, said):
    """In memory, at every await of the turn."""
    wrong, awaits = asyncio.run(sweep("memory:", way, said, times))

    assert wrong == {}
    assert awaits > 15


@pytest.mark.parametrize("way", WAYS)
def test_a_turn_on_disk_that_is_cancelled_keeps_what_there_is(fast_path, way):
    """With a store that works in another thread, where an append takes a while."""
    ks = pick(range(1, 40, 5), None)

    wrong, _ = asyncio.run(sweep(f"sqlite:{fast_path / 'store.db'}", way, SAID[1], ks=ks))

    assert wrong == {}


# Bad input 119


PLACES = (
    "before the first byte",
    "between deltas",
    "inside a tool",
    "inside the append",
    "twice",
    "during clean-up",
)


class Cancelling(Case):
    """Stops the turn where a place is reached, and not at a number."""

    def __init__(self, sessions, session, way, place):
        super().__init__(sessions, session, way)
        self.place = place
        self.is_due = {place} if place not in ("twice", "during clean-up") else {"between deltas"}

    def reached(self, where):
        if where not in self.is_due:
            return
        self.is_due.discard(where)
        asyncio.get_running_loop().call_soon(self.stop)
        if self.place == "twice":
            asyncio.get_running_loop().call_later(0.001, self.stop)
        if self.place == "during clean-up":
            self.is_due.add("clean-up")

    async def run(self, said):
        tenant = self.sessions._workshop.tenant
        append = tenant.append

        async def appended(id, entries, **options):
            is_over = any(isinstance(e, Mark) and e.what == "cancelled" for e in entries)
            self.reached("clean-up" if is_over else "inside the append")
            return await append(id, entries, **options)

        tenant.append = appended
        ended = await super().run(said, 0, 0)
        tenant.append = append
        return ended._replace(is_begun=True)

    def _hear(self, event):
        super()._hear(event)
        if isinstance(event, TextDelta) and len(self.heard) == 2:
            self.reached("between deltas")


class SlowModel(turns.Model):
    """Tells when it was asked, and takes a while before it says anything."""

    reached = None

    async def complete(self, messages, *more, **options):
        if self.reached is not None:
            self.reached("before the first byte")
        return await super().complete(messages, *more, **options)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("where", PLACES)
def test_bad_input_119_a_cancel_at_the_worst_moment(fast_path, way, where):
    """Wherever somebody thought of, in every way."""

    async def main():
        place = Place(f"sqlite:{fast_path / 'store.db'}")
        place.model = SlowModel(pause_s=0.002)
        case = None
        add = place.effects.add

        def added(what, key):
            add(what, key)
            case.reached("inside a tool")

        place.effects.add = added
        async with place.opened() as sessions:
            session = await sessions.get_or_create("s", settings=turns.SETTINGS)
            before = asyncio.all_tasks()
            case = Cancelling(sessions, session, way, where)
            place.model.reached = case.reached
            ended = await case.run("u1 use 3 steps")
            place.model.reached = None
            place.effects.add = add
            wrong = [*ended_wrongly(ended, way, case.stopped), *await left_behind(before)]
            return case, wrong + await judge(place, sessions, session, ended, way)

    case, wrong = asyncio.run(main())

    assert wrong == []
    assert case.stopped == (2 if where == "during clean-up" else 1) or where == "twice"


# Controls


async def keeps_nothing(self, answered):
    return Outcome.CANCELLED


async def holds_on(self, *_, **__):
    self.is_over = True


def test_a_turn_that_keeps_nothing_when_it_is_cancelled_is_caught(monkeypatch):
    monkeypatch.setattr(Turn, "_keep_cancelled", keeps_nothing)

    wrong, _ = asyncio.run(sweep("memory:", "token", "u1"))

    found = {each for found in wrong.values() for each in found}
    assert "what the user said is not stored" in found


def test_a_turn_that_does_not_let_go_is_caught(monkeypatch):
    monkeypatch.setattr(Turn, "_keep_cancelled", keeps_nothing)
    monkeypatch.setattr(hold.Hold, "let_go", holds_on)
    monkeypatch.setattr(turn_oracle, "WAIT_S", 0.05)

    wrong, _ = asyncio.run(sweep("memory:", "token", "u1", ks=[8]))

    assert any(Busy.__name__ in each for each in wrong[8]), wrong


def test_a_task_that_is_left_behind_is_caught(monkeypatch):
    async def leaves(self, answered):
        self.left = asyncio.ensure_future(asyncio.sleep(60))
        return Outcome.CANCELLED

    monkeypatch.setattr(Turn, "_keep_cancelled", leaves)

    wrong, _ = asyncio.run(sweep("memory:", "token", "u1", ks=[8]))

    assert any("left behind" in each for each in wrong[8]), wrong
