"""Whatever is done with sessions, in whatever order, and wherever it is cut off.

After any sequence of send, cancel, crash, resume, steer, revert, branch, fork, swap, compact and
erase the next request is valid for every vendor, the log verifies, and no acknowledged message is
missing. `stateful_world` is what is moved, `stateful_book` the plain model that judges it after
each step. A crash stops everything at some write, before it or behind it; some are a SIGKILL.
"""

import asyncio
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from faults.tier import FULL, need, pick
from holdfast import CancelToken, Message, Role, Session, Settings
from holdfast.errors import Conflict, InvalidInput, ProviderError
from holdfast.events import TextDelta
from holdfast.outline import end_of
from holdfast.steps.drafts import FAILED, LIMIT, PENDING
from holdfast.steps.standing import INTERRUPTED
from holdfast.testing.faults import forks
from holdfast.window import Evict, Summarize, Truncate
from holdfast.window.render import Rendered
from stateful_book import Book
from stateful_world import SCHEMA, VENDORS, Killed, World, picture

SESSIONS_MAX = 3
STEP_S = 20
MEMORY = Path("/dev/shm")
ENDED = {"pending": PENDING, "limit": LIMIT}
POLICIES = (Truncate(keep_turns=1), Summarize(keep_turns=1), Evict())
KINDS = (
    *("text", "thinking", "look", "parallel", "pay", "cut", "empty", "overloaded", "broken"),
    *("steered", "beside", "left"),
)
WAYS = ("send", "stream", "left early", "detached", "token", "task", "cancel")
CUT_SHORT = ("left early", "token", "task", "cancel")

numbers = st.integers(0, 20)
plans = st.lists(st.sampled_from(KINDS), max_size=3)


class Sessions(RuleBasedStateMachine):
    """Two or three sessions on one file."""

    programs = None  # where turns run that are killed

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else None))
        self.runner = asyncio.Runner()
        self.runner.get_loop().set_exception_handler(lambda *_: None)  # what is killed leaves some
        self.world = World(self.folder / "chats.db")
        self.book = Book(self.world)
        self.children = []
        self.once = {}
        self.kills = 0
        self.erasable = frozenset()
        self.has_failed = False

    @initialize()
    def begin(self):
        self.run(self.world.open())
        self.run(self._create())

    async def _create(self):
        told = Settings(system="Be of use.", budget={"context": 4_000, "reserve": 500})
        await self.world.manager.get_or_create("a", settings=told)
        self.book.keys.append("a")

    def run(self, work):
        try:
            return self.runner.run(within(STEP_S, work))
        except BaseException:
            self.has_failed = True
            raise

    def do(self, step, number, *args):
        """A step on one of the sessions."""
        keys = self.book.keys
        self.run(self._do(step, keys[number % len(keys)], *args))

    async def _do(self, step, key, *args):
        self.world.session = session = await self.world.manager.get(key)
        self.world.plan = []
        await session.refresh()
        before = session.draft
        await step(session, *args)
        if step in (
            self._append,
            self._update,
            self._revert,
            self._branch_at,
            self._checkout,
            self._replace,
            self._fork,
            self._child,
            self._compact,
            self._fold,
        ):
            assert session.draft == before

    # Turns

    @rule(
        at=numbers, plan=plans, way=st.sampled_from(WAYS), model=st.sampled_from((None, *VENDORS))
    )
    def send(self, at, plan, way, model):
        self.do(self._send, at, plan, way, model)

    @rule(at=numbers, plan=plans, model=st.sampled_from(VENDORS))
    def send_a_picture(self, at, plan, model):
        self.do(self._send, at, plan, "send", model, picture(self.world.words.next()))

    async def _send(self, session, plan, way, model, said=None):
        said = said or self.world.words.next()
        self.world.plan = [*plan, *["endless"] * (way in CUT_SHORT)]
        result, error = await outcome(self._sent(session, said, way, model))
        await session.refresh()
        self._judge(session, result, error)

    async def _sent(self, session, said, way, model):
        token = CancelToken()
        if way == "send":
            return await session.send(said, model=model)
        if way in ("token", "cancel"):
            stop = token.cancel if way == "token" else session.cancel

            def heard(event):
                if isinstance(event, TextDelta) and not self.world.plan:
                    stop()

            return await session.send(said, model=model, cancel=token, on_event=heard)
        if way == "task":
            return await self._stopped(session, said, model)
        stream = session.stream(said, model=model, detach=way == "detached")
        async with stream as events:
            async for event in events:
                if isinstance(event, TextDelta) and way != "stream" and not self.world.plan:
                    break
        if way == "detached":
            return await stream._task
        return stream.result or stream._task.result()

    async def _stopped(self, session, said, model):
        reached = asyncio.Event()

        def heard(event):
            if isinstance(event, TextDelta) and not self.world.plan:
                reached.set()

        task = asyncio.create_task(session.send(said, model=model, on_event=heard))
        waiting = asyncio.create_task(reached.wait())
        await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        task.cancel()
        with suppress(asyncio.CancelledError):
            return await task

    def _judge(self, session, result, error):
        """What a turn gives is in the log, and the draft says how it ended."""
        draft = session.draft
        if isinstance(error, ProviderError) and "follow the schema" not in str(error):
            assert draft is not None and draft.ended == FAILED, draft
        if result is None:
            return
        self.book.given += [(session.key, message.id) for message in result.messages]
        ended = ENDED.get(str(result.outcome))
        assert (None if draft is None else draft.ended) == ended, (result.outcome, draft)

    @rule(at=numbers, name=st.sampled_from(("x", "y")), plan=plans)
    def send_once(self, at, name, plan):
        self.do(self._send_once, at, name, plan)

    async def _send_once(self, session, name, plan):
        word, first = self.once.setdefault((session.id, name), (self.world.words.next(), None))
        name = f"{name}{word[1:]}"  # what is erased is not said again
        there = self.book.ids(session.key)
        asked, self.world.plan = self.world.asked, list(plan)
        was_pending = session.draft is not None
        result, error = await outcome(session.send(word, once=name))
        await session.refresh()
        self._judge(session, result, error)
        if result is not None and first in there and not was_pending:
            assert (result.messages[0].id, self.world.asked) == (first, asked)
        if result is not None:
            self.once[session.id, name[0]] = word, result.messages[0].id

    @rule(at=numbers, is_good=st.booleans())
    def send_with_a_schema(self, at, is_good):
        self.do(self._send_with_a_schema, at, is_good)

    async def _send_with_a_schema(self, session, is_good):
        self.world.plan = ["text", "data"] if is_good else ["text", "text"]
        work = session.send(self.world.words.next(), schema=SCHEMA)
        result, error = await outcome(work)
        if result is None or result.outcome == "response":
            assert (error is None) is is_good and (not is_good or set(result.data) == {"word"})

    @rule(at=numbers, plan=plans, answer=st.sampled_from((True, False, "later", None)))
    def resume(self, at, plan, answer):
        self.do(self._resume, at, plan, answer)

    async def _resume(self, session, plan, answer):
        await session.refresh()
        self.world.plan = list(plan)
        is_due = session.draft is not None and session.draft.branch == session.branch
        answers = None if answer is None else dict.fromkeys(waiting(session), answer)
        try:
            result, error = await outcome(session.resume(answers))
        except InvalidInput:
            assert not is_due
            return
        await session.refresh()
        self._judge(session, result, error)

    # Beside turns

    @rule(at=numbers, many=st.integers(1, 3))
    def append(self, at, many):
        self.do(self._append, at, many)

    async def _append(self, session, many):
        said = [Message.user(self.world.words.next(), synthetic="note") for _ in range(many)]
        await session.append(*said)
        self.book.given += [(session.key, message.id) for message in said]

    @rule(at=numbers, model=st.sampled_from(VENDORS), rounds=st.integers(1, 3))
    def update(self, at, model, rounds):
        self.do(self._update, at, model, rounds)

    async def _update(self, session, model, rounds):
        await session.update(model=model, settings={"limits": {"rounds": rounds}})
        assert session.settings.model == model

    # Branches

    @rule(at=numbers, turn=numbers)
    def revert(self, at, turn):
        self.do(self._revert, at, turn)

    async def _revert(self, session, turn):
        count = len(await session.turns())
        done = await session.revert(turn % (count + 1))
        assert len(await session.turns()) == turn % (count + 1) == done.turn_count

    @rule(at=numbers, turn=numbers)
    def branch_at(self, at, turn):
        self.do(self._branch_at, at, turn)

    async def _branch_at(self, session, turn):
        branch = await session.branch_at(turn % (len(await session.turns()) + 1))
        assert session.branch == branch.name

    @rule(at=numbers, number=numbers)
    def checkout(self, at, number):
        self.do(self._checkout, at, number)

    async def _checkout(self, session, number):
        await session.refresh()
        name = session.branches[number % len(session.branches)].name
        assert (await session.checkout(name)).name == name == session.branch

    @rule(at=numbers, first=st.integers(0, 5))
    def replace(self, at, first):
        self.do(self._replace, at, first)

    async def _replace(self, session, first):
        kept = [*(await session.read())[first:], Message.user(self.world.words.next())]
        await session.replace(kept)
        assert await session.read() == tuple(kept)

    # Sessions

    @precondition(lambda self: len(self.book.keys) < SESSIONS_MAX)
    @rule(at=numbers, turn=st.none() | numbers)
    def fork(self, at, turn):
        self.do(self._fork, at, turn)

    async def _fork(self, session, turn):
        key = f"fork{self.world.words.next()}"
        turn = None if turn is None else turn % (len(await session.turns()) + 1)
        said = await session.read()
        fork = await session.fork(key, turn)
        self.book.keys.append(key)
        copied = await fork.read()
        assert copied == said[: len(copied)] and (turn is not None or copied == said)

    @precondition(lambda self: len(self.book.keys) < SESSIONS_MAX)
    @rule(at=numbers, inherit=st.integers(0, 4), plan=plans)
    def child(self, at, inherit, plan):
        self.do(self._child, at, inherit, plan)

    async def _child(self, session, inherit, plan):
        child = await session.child("helper", inherit)
        self.book.keys.append(child.key)
        self.children.append((session.key, child.key))
        self.world.plan, self.world.session = list(plan), child.session
        await outcome(child.session.send(self.world.words.next()))

    @precondition(lambda self: self.children)
    @rule(at=numbers, how=st.sampled_from(("whole", "summary", "discard")))
    def end_child(self, at, how):
        self.run(self._end_child(at, how))

    async def _end_child(self, at, how):
        parent_key, key = self.children[at % len(self.children)]
        parent = await self.world.manager.get(parent_key)
        (child,) = [each for each in await parent.children() if each.key == key]
        count, is_open = parent.count, child.state == "open"
        try:
            if how == "discard":
                await child.discard("not needed")
                self._discarded(child)
            else:
                await child.merge(whole=how == "whole")
            assert is_open and parent.count > count
        except InvalidInput:
            assert not is_open

    def _discarded(self, child):
        self.book.cleared(child.session)
        self.book.keys.remove(child.key)
        self.children = [pair for pair in self.children if child.key not in pair]

    # Windows, and what goes

    @rule(at=numbers, policy=st.sampled_from(POLICIES))
    def compact(self, at, policy):
        self.do(self._compact, at, policy)

    async def _compact(self, session, policy):
        await session.compact(policy)

    @rule(at=numbers, start=numbers, many=st.integers(1, 4), is_hidden=st.booleans())
    def fold(self, at, start, many, is_hidden):
        self.do(self._fold, at, start, many, is_hidden)

    async def _fold(self, session, start, many, is_hidden):
        await session.refresh()
        if session.count:
            first = start % session.count
            last = min(session.count, first + many)
            words = " ".join(each.text or "" for each in await session.read(first, last))
            note = None if is_hidden else Message.user(f"Folded: {words}", synthetic="fold")
            try:
                await session.fold(first, last, note)
            except InvalidInput:
                assert is_hidden and not await is_answered(session)

    @rule(at=numbers, number=numbers, is_turn=st.booleans())
    def erase(self, at, number, is_turn):
        self.do(self._erase, at, number, is_turn)

    async def _erase(self, session, number, is_turn):
        said = await session.read()
        turns = await session.turns()
        if not said or (is_turn and not turns):
            return
        if is_turn:
            turn = turns[number % len(turns)]
            chosen = {each.id for each in await session.read(turn.first, turn.last + 1)}
            what = turn.index
        else:
            message = said[number % len(said)]
            chosen, what = {message.id}, (message if number % 2 else message.id)
        self.erasable = frozenset(self.book.may_erase(session.key, chosen))
        assert await session.erase(what) >= len(chosen)
        self.book.erased(session, self.erasable)
        self.once = {n: v for n, v in self.once.items() if v[0] not in self.book.gone[session.id]}
        await self.book.check_searched(session)

    @rule(at=numbers)
    def clear(self, at):
        self.do(self._clear, at)

    async def _clear(self, session):
        await session.clear()
        self._cleared(session)
        assert (session.count, session.messages, session.draft) == (0, (), None)

    def _cleared(self, session):
        self.book.cleared(session)
        self.once = {name: value for name, value in self.once.items() if name[0] != session.id}

    # Ends

    @rule()
    def reopen(self):
        self.run(self._close())
        self.run(self.world.open())

    async def _close(self):
        await self.world.close()
        self.book.check_bytes()

    CRASHES = ("send", "resume", "append", "revert", "replace", "fork", "compact", "erase", "clear")

    @rule(
        at=numbers,
        step=st.sampled_from(CRASHES),
        number=numbers,
        plan=plans,
        write=st.integers(1, 8),
        is_before=st.booleans(),
    )
    def crash(self, at, step, number, plan, write, is_before):
        if step == "fork" and len(self.book.keys) >= SESSIONS_MAX:
            return
        args = {
            "send": (plan, "send", VENDORS[number % len(VENDORS)]),
            "resume": (plan, True),
            "erase": (number, bool(number % 3)),
            "compact": (POLICIES[number % len(POLICIES)],),
            "clear": (),
        }.get(step, (number,))
        self.world.kill_at(write, is_before=is_before)
        keys = self.book.keys
        work = self._crash(getattr(self, f"_{step}"), keys[at % len(keys)], args)
        self.run(work)

    async def _crash(self, step, key, args):
        try:
            await self._do(step, key, *args)
        except Killed:
            self.kills += 1
            await self.world.drop()
            await self.world.open()
            await self._see_what_came_of_it(step, key)
        finally:
            self.world.kill_never()

    async def _see_what_came_of_it(self, step, key):
        """What was cut off may have happened."""
        if step == self._clear:
            record = await self.world.tenant.load(key)
            rows = await self.world.tenant.read(record.id)
            if len(record.branches) == 1 and not rows:
                self._cleared(await self.world.manager.get(key))
        elif step == self._erase:
            for session_id in list(self.book.inputs):
                self.book.unsay(session_id, self.erasable)
        elif step == self._fork:
            listed = await self.world.tenant.list()
            self.book.keys += [each.key for each in listed.items if each.key not in self.book.keys]

    @precondition(lambda self: self.programs is not None)
    @rule(at=numbers, plan=plans, write=st.integers(1, 8), is_before=st.booleans())
    def kill(self, at, plan, write, is_before):
        """A turn in another process, which is killed, while this one has the file open."""
        key = self.book.keys[at % len(self.book.keys)]
        self.kills += 1
        stem = f"k{self.kills}n"
        run = self.programs.start(str(self.world.path), key, stem, plan, write, is_before)
        assert run.wait() == -9, run.stderr

    @invariant()
    def all_is_well(self):
        if self.book.keys:
            self.run(self.book.check(self.erasable))
        self.erasable = frozenset()

    def teardown(self):
        try:
            if self.has_failed:
                self.run(self.world.drop())
            elif self.book.keys:
                for key in self.book.keys:
                    self.run(self._last_turn(key))
                self.run(self._close())
        finally:
            self.runner.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    async def _last_turn(self, key):
        """Whatever was done: the next turn is answered."""
        self.world.plan = []
        session = await self.world.manager.get(key)
        result = await session.send(self.world.words.next())
        assert result.outcome == "response" and session.draft is None
        assert self.world.wrong == []


async def within(seconds, work):
    async with asyncio.timeout(seconds):
        return await work


async def is_answered(session):
    """Whether the last turn has an answer that asks for nothing more."""
    last = (await session.turns())[-1]
    said = await session.read(last.first, last.last + 1)
    is_reply = said[-1].role is Role.ASSISTANT and not said[-1].calls
    return is_reply and said[-1].stop != INTERRUPTED


async def outcome(work):
    """What a turn gave, or the typed error that it may end with."""
    try:
        return await work, None
    except (ProviderError, Conflict) as error:
        return None, error


def waiting(session):
    """The calls that wait for an answer."""
    from holdfast.steps.standing import standing

    return [call.id for call in standing(session._bench.talk.turn()).waiting]


def settled(examples, steps, **options):
    """The same examples each time, unless far more of them are asked for."""
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=not FULL,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        **options,
    )


@pytest.fixture(scope="module")
def killed():
    need(forks.missing())
    with forks.Forks("stateful_world:play_and_die") as programs:
        yield programs


def test_whatever_is_done_the_next_request_is_valid_and_nothing_is_missing(killed, uncovered):
    machine = type("Killed", (Sessions,), {"programs": killed})
    phases = pick([Phase.generate], list(Phase))  # to shrink an example takes minutes
    tries = settled(pick(12, 1_500), pick(18, 40), phases=phases)
    run_state_machine_as_test(machine, settings=tries)


# The controls: faults that have to be found


def lossy_append(monkeypatch):
    """Of messages that are appended together only the first is kept."""
    append = Session.append

    async def appended(self, *messages, **options):
        return await append(self, *messages[:1], **options)

    monkeypatch.setattr(Session, "append", appended)


def tools_run_again(monkeypatch):
    """A tool that was cut off is taken for one that was never started."""
    monkeypatch.setattr("holdfast.steps.calls.started", lambda *_: [])


def shallow_erase(monkeypatch):
    """Only what was asked for is erased, and no fold that was made of it."""

    async def none(*_):
        return set()

    monkeypatch.setattr("holdfast.erasing._fold_again", none)


def forgotten_drafts(monkeypatch):
    """What a turn before has left is not looked at."""

    async def nothing(*_, **__):
        return None

    monkeypatch.setattr("holdfast.steps.cleanup._clean_up", nothing)


def unrepaired(monkeypatch):
    """What is shown is not made fit to be sent."""
    monkeypatch.setattr(
        "holdfast.window.view.View.rendered",
        lambda self: Rendered(tuple(item.message for item in self.items), ()),
    )


def wrong_place(monkeypatch):
    """A branch is opened one entry too early."""
    monkeypatch.setattr("holdfast.branching.end_of", lambda *args: max(0, end_of(*args) - 1))


QUICK = (lossy_append, forgotten_drafts, unrepaired, wrong_place)
SLOW = (tools_run_again, shallow_erase)  # to find


@pytest.mark.parametrize("fault", pick(QUICK, QUICK + SLOW))
def test_control_a_fault_is_found(fault, monkeypatch, uncovered):
    fault(monkeypatch)
    tries = settled(60, 25, phases=[Phase.generate])

    with pytest.raises(BaseException) as raised:  # noqa: PT011 - whatever notices it
        run_state_machine_as_test(Sessions, settings=tries)

    assert not isinstance(raised.value, KeyboardInterrupt)
