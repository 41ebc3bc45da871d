"""Bad inputs 117 and 118: what tools may do to a session from inside a turn. 119, the cancel at the
worst moment, is in faults/test_f12_turn.py.

The table says what comes of each: `result` or `error`, which is what the model reads, or the name
of the error that the caller gets. An outcome that is not in the table fails. So does a session that
cannot be used afterwards, a change of any other session or file, anything on the terminal that the
tool did not write itself, and a task that is left behind.
"""

import asyncio
import threading
from typing import NamedTuple

import pytest

import holdfast
from bad_inputs import MIB, STORES, Sandbox, outcome_of, run
from faults.tier import pick
from holdfast import Message, Tool, ToolCall
from holdfast.testing import FakeProvider
from sessions_for_tests import tasks_left

CANARY = "the control says: canary 4711"
ESCAPES = "\x1b]52;c;cHduZWQ=\x07\x1b[2J"
LARGE = pick(64 * MIB, 1024 * MIB)
SESSIONS = pick(40, 1_000)
LIMIT_S = 0.1


class Odd(BaseException):
    """None of the errors that programs raise."""


class Bench:
    """What a tool has at hand: the manager, its own session, and what it left for later."""

    def __init__(self, sessions, session):
        self.sessions = sessions
        self.session = session
        self.gate = threading.Event()
        self.kept = []


class Case(NamedTuple):
    """`make` gives the function of a tool, on a bench; `outcome` may hold words of the result."""

    number: int
    name: str
    make: object
    outcome: str

    @property
    def id(self):
        return f"{self.number}-{self.name.replace(' ', '-')}"


def raising(error, *, is_async=True):
    def make(_bench):
        def act():
            raise error

        async def act_async():
            raise error

        return act_async if is_async else act

    return make


def returning(value):
    """`value()` in a tool that is a coroutine function."""

    def make(_bench):
        async def act():
            return value()

        return act

    return make


def never_returns(bench):
    async def act():
        await asyncio.sleep(3600)

    return act


def never_returns_in_a_thread(bench):
    def act():
        bench.gate.wait(60)

    return act


def gives_a_coroutine(bench):
    async def inner():
        return "inner"

    return lambda: inner()


def changes_it_later(bench):
    def act():
        bench.kept.append({"said": "before"})
        return bench.kept[0]

    return act


def writes_to_the_terminal(bench):
    def act():
        print(ESCAPES, flush=True)
        return "written"

    return act


def appends(bench):
    async def act():
        await bench.session.append(Message.user("said by the tool"))
        return "appended"

    return act


def sends(bench):
    async def act():
        await bench.session.send("said by the tool")

    return act


def deletes(bench):
    async def act():
        await bench.sessions._workshop.tenant.delete(bench.session.id)
        return "deleted"

    return act


def clears(bench):
    async def act():
        await bench.session.clear()
        return "cleared"

    return act


def starts_many(bench):
    async def act():
        made = [bench.sessions.get_or_create(f"sub {number}") for number in range(SESSIONS)]
        for session in await asyncio.gather(*made):
            await session.append(Message.user("sub"))
        return f"{len(made)} made"

    return act


CASES = [
    Case(117, "an error", raising(ValueError("no")), "error: no"),
    Case(117, "a BaseException", raising(Odd("odd")), "error: odd"),
    Case(117, "a BaseException in a thread", raising(Odd("odd"), is_async=False), "error: odd"),
    Case(117, "SystemExit", raising(SystemExit(3)), "error: 3"),
    Case(117, "SystemExit in a thread", raising(SystemExit(3), is_async=False), "error: 3"),
    Case(117, "GeneratorExit", raising(GeneratorExit()), "error: GeneratorExit"),
    Case(117, "CancelledError", raising(asyncio.CancelledError()), "error"),
    Case(117, "never returns", never_returns, "error"),
    Case(117, "never returns in a thread", never_returns_in_a_thread, "error"),
    Case(117, "a large result", returning(lambda: "x" * LARGE), "error"),
    Case(117, "an object", returning(object), "error"),
    Case(117, "a number that is none", returning(lambda: float("nan")), 'result: "NaN"'),
    Case(117, "bytes that are no text", returning(lambda: b"\xff\xfeh\0"), "error"),
    Case(117, "half of a pair", returning(lambda: "a\ud800b"), "result: a\ufffdb"),
    Case(117, "a coroutine", gives_a_coroutine, "result: inner"),
    Case(117, "its input, changed later", changes_it_later, 'result: {"said":"before"}'),
    Case(117, "escapes on stdout", writes_to_the_terminal, "result: written"),
    Case(118, "appends to its session", appends, "result: appended"),
    Case(118, "sends on its session", sends, "error"),
    Case(118, "deletes its session", deletes, "SessionNotFound"),
    Case(118, "clears its session", clears, "LeaseLost"),
    Case(118, "starts many sessions", starts_many, "result"),
]


def test_the_table_has_what_it_says():
    assert {case.number for case in CASES} == {117, 118}
    assert len({case.id for case in CASES}) == len(CASES)


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_whatever_a_tool_does_the_session_goes_on(tmp_path, monkeypatch, capfd, kind, case):
    sandbox = Sandbox(tmp_path / "sandbox").enter(monkeypatch)
    before = sandbox.seen()

    outcome, wrong = run(tried(sandbox, kind, case))

    assert wrong == []
    assert outcome == case.outcome or outcome.startswith(f"{case.outcome}: ")
    assert sandbox.seen() == before
    out, err = capfd.readouterr()
    assert (out.replace(f"{ESCAPES}\n", ""), err) == ("", "")


async def tried(sandbox, kind, case):
    """The outcome of a turn with this tool, and what is wrong afterwards."""
    call = Message.assistant("", tool_calls=[ToolCall(id="c1", name="act", arguments="{}")])
    model = FakeProvider(call, "Fine.", "And on.", "And on.")
    async with holdfast.open(sandbox.url(kind), model=model) as sessions:
        control = await sessions.get_or_create("control")
        await control.append(Message.user(CANARY))
        session = await sessions.get_or_create("subject")
        bench = Bench(sessions, session)
        tool = Tool("act", run=case.make(bench), timeout=LIMIT_S if "never" in case.name else 30.0)
        outcome = await outcome_of_turn(session, tool)
        for kept in bench.kept:
            kept["said"] = "after"
        bench.gate.set()
        wrong = await wrong_afterwards(sessions, model, outcome, bench)
    left = await tasks_left()
    return outcome, wrong + [f"left behind: {each}" for each in left]


async def outcome_of_turn(session, tool):
    try:
        result = await session.send("Do it.", tools=[tool])
    except Exception as error:
        return outcome_of(error)
    (done,) = result.calls
    if result.text != "Fine.":
        return f"answered with {result.text!r}"
    words = (done.message.text or "").removeprefix("error: ")
    return f"{'error' if done.message.is_error else 'result'}: {words}"[:200]


async def wrong_afterwards(sessions, model, outcome, bench):
    """What is wrong with the store and with the next turn."""
    wrong, tenant = [], sessions._workshop.tenant
    wrong += map(str, (await tenant.verify()).problems)
    control = await sessions.get("control", load="all")
    if [each.text for each in control.messages] != [CANARY]:
        wrong.append("the control has changed")
    session = await sessions.get_or_create("subject")
    later = await session.send("And now?")
    if later.text not in ("Fine.", "And on."):
        wrong.append(f"the next turn says {later.text!r}")
    for asked in model.requests:
        if CANARY in repr(asked.messages):
            wrong.append("the model was shown another session")
    stored = [each.text for each in await session.read()]
    if any("after" in (text or "") for text in stored):
        wrong.append("a stored result has changed")
    return wrong


# Controls


def test_a_tool_that_changes_another_session_is_caught(tmp_path, monkeypatch):
    def writes_elsewhere(bench):
        async def act():
            await (await bench.sessions.get("control")).append(Message.user("intruder"))
            return "written"

        return act

    sandbox = Sandbox(tmp_path / "sandbox").enter(monkeypatch)

    _, wrong = run(tried(sandbox, "memory", Case(0, "elsewhere", writes_elsewhere, "")))

    assert "the control has changed" in wrong


def test_a_result_that_is_kept_by_reference_is_caught(tmp_path, monkeypatch):
    """What would be stored if nobody had made a copy."""
    sandbox = Sandbox(tmp_path / "sandbox").enter(monkeypatch)

    def late(bench):
        async def act():
            bench.kept.append({"said": "before"})
            return "after"

        return act

    _, wrong = run(tried(sandbox, "memory", Case(0, "by reference", late, "")))

    assert "a stored result has changed" in wrong
