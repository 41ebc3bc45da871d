"""The calls of a turn: which can run, which wait for somebody, which are answered already."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from holdfast.cancel import CancelToken
from holdfast.entries import Entry, Mark
from holdfast.errors import InvalidInput
from holdfast.frozen import FrozenDict
from holdfast.messages import Message, ToolCall
from holdfast.steps.leftovers import declined, result, unknown
from holdfast.steps.orders import Answers, Setup
from holdfast.steps.standing import STARTED, Standing, standing
from holdfast.steps.tool_results import unknown_tool
from holdfast.steps.tool_runs import Job
from holdfast.stores.values import Stored
from holdfast.tools import Running, Tool

APPROVED, DECLINED = "approved", "declined"


class Sorted(NamedTuple):
    """Calls, by what is to be done with them.

    run      those that can run, with their tools
    answers  results for those that will not
    waiting  those for which somebody has to agree
    missing  the names of tools that nobody can run here
    """

    run: tuple[tuple[ToolCall, Tool], ...] = ()
    answers: tuple[Entry, ...] = ()
    waiting: tuple[ToolCall, ...] = ()
    missing: tuple[str, ...] = ()


class Round(NamedTuple):
    """What is to be done next with the calls of a reply.

    entries  what is appended first: answers for those that will not run, marks for those that will
    jobs     those that run now
    waiting  those for which somebody has to agree
    missing  the names of tools that nobody can run here
    """

    entries: tuple[Entry, ...]
    jobs: tuple[Job, ...]
    waiting: tuple[ToolCall, ...]
    missing: tuple[str, ...]


class Calls:
    """The calls of one turn: as the model made them, and which of them this turn has started.

    They run with the arguments that the model gave, whatever of those may be stored.
    """

    def __init__(
        self, setup: Setup, answers: Answers, session: str, turn: str, cancel: CancelToken
    ) -> None:
        self._tools = setup.tools
        self._redacted = setup.redacted
        self._answers = answers
        self._session = session
        self._turn = turn
        self._cancel = cancel
        self._made: dict[str, ToolCall] = {}
        self._started: set[str] = set()

    def begin(self, said: Message, reply: Message) -> list[Entry]:
        """Marks for the calls that can run at once; `reply` is what is stored of what was said.

        They are appended with it, and stand in the log before anything runs.
        """
        self._made = {call.id: call for call in said.calls}
        return self._start(reply, sort_calls(Standing(reply, reply.calls), self._tools, {}).run)

    def round(self, now: Standing) -> Round:
        """What is to be done with the calls that wait."""
        assert now.reply is not None
        others = now._replace(started=now.started - self._started)  # not by this turn
        found = sort_calls(others, self._tools, self._answers)
        fresh = [run for run in found.run if run[0].id not in self._started]
        told = [self._redacted(e) if isinstance(e, Message) else e for e in found.answers]
        entries = (*told, *self._start(now.reply, fresh))
        jobs = tuple(
            Job(self._made.get(call.id, call), tool, self._running(call))
            for call, tool in found.run
        )
        return Round(entries, jobs, found.waiting, found.missing)

    def _start(self, reply: Message, runs: Sequence[tuple[ToolCall, Tool]]) -> list[Entry]:
        self._started |= {call.id for call, _ in runs}
        return started(reply, runs)

    def _running(self, call: ToolCall) -> Running:
        key = f"{self._session}:{self._turn}:{call.id}"
        return Running(self._session, self._turn, call.id, key, self._cancel)


def sort_calls(standing: Standing, tools: Sequence[Tool], answers: Answers) -> Sorted:
    """What to do with the calls that wait. Answers are True, False, or what the model is told."""
    offered = {tool.name: tool for tool in tools}
    run: list[tuple[ToolCall, Tool]] = []
    done: list[Entry] = []
    waiting: list[ToolCall] = []
    missing: list[str] = []
    for call in standing.waiting:
        tool = offered.get(call.name)
        answer = answers.get(call.id)
        if tool is None:
            done.append(unknown_tool(call, list(offered)))
        elif call.id in standing.started and not tool.idempotent:
            done += unknown(call)
        elif isinstance(answer, str):
            done += [_mark(APPROVED, call), result(call, answer, is_error=False)]
        elif answer is False:
            done += [_mark(DECLINED, call), declined(call)]
        elif tool.approval and not answer:
            waiting.append(call)
        elif tool.run is None:
            missing.append(call.name)
        else:
            run.append((call, tool))
            if tool.approval:
                done.append(_mark(APPROVED, call))
    return Sorted(tuple(run), tuple(done), tuple(waiting), tuple(missing))


def started(reply: Message, runs: Sequence[tuple[ToolCall, Tool]]) -> list[Entry]:
    """The marks that stand in the log before tools run."""
    return [
        Mark(
            what=STARTED,
            about=call.id,
            data=FrozenDict({"message": reply.id, "name": call.name}),
        )
        for call, _ in runs
    ]


def are_answered(answers: object, rows: Sequence[Stored]) -> bool:
    """Whether there are answers, and all of them are for calls that have their results."""
    if not isinstance(answers, Mapping) or not answers:
        return False
    return _answered(rows) >= answers.keys()


def check_answers(answers: object, rows: Sequence[Stored]) -> Answers:
    """Answers are for calls that wait; those that were given before change nothing."""
    if answers is None:
        return {}
    if not isinstance(answers, Mapping):
        raise InvalidInput("answers", f"is a dict from call ids, not {type(answers).__name__}")
    waiting = {call.id for call in standing(rows).waiting}
    answered = _answered(rows)
    for id, answer in answers.items():
        if id not in waiting and id not in answered:
            known = ", ".join(sorted(waiting)) or "none"
            raise InvalidInput("answers", f"has {id!r}: the calls that wait are {known}")
        if not isinstance(answer, bool | str):
            raise InvalidInput(f"answers[{id!r}]", "is True, False, or what the model is told")
    return answers


def _answered(rows: Sequence[Stored]) -> set[str]:
    said = (row.entry for row in rows if type(row.entry) is Message)
    return {result.call_id or "" for message in said for result in message.results}


def _mark(what: str, call: ToolCall) -> Mark:
    return Mark(what=what, about=call.id)
