"""The calls of a reply: which can run, which wait for somebody, which are answered already."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from holdfast.entries import Entry, Mark
from holdfast.errors import InvalidInput
from holdfast.frozen import FrozenDict
from holdfast.messages import Message, ToolCall
from holdfast.steps.leftovers import declined, result, unknown
from holdfast.steps.standing import STARTED, Standing
from holdfast.steps.tool_results import unknown_tool
from holdfast.tools import Tool

Answers = Mapping[str, bool | str]
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


def check_answers(answers: object, standing: Standing) -> Answers:
    """Answers are for calls that wait."""
    if answers is None:
        return {}
    if not isinstance(answers, Mapping):
        raise InvalidInput("answers", f"is a dict from call ids, not {type(answers).__name__}")
    waiting = {call.id for call in standing.waiting}
    for id, answer in answers.items():
        if id not in waiting:
            known = ", ".join(sorted(waiting)) or "none"
            raise InvalidInput("answers", f"has {id!r}: the calls that wait are {known}")
        if not isinstance(answer, bool | str):
            raise InvalidInput(f"answers[{id!r}]", "is True, False, or what the model is told")
    return answers


def _mark(what: str, call: ToolCall) -> Mark:
    return Mark(what=what, about=call.id)
