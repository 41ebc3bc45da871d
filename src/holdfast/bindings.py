"""What a session knows by name, bound to objects: its models and its tools.

A record keeps names and declarations. Objects that were passed to this session come first, so that
two sessions may have tools or models of the same name that are not the same; then those of the
manager. What was passed for one turn is for that turn, and for going on with it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from holdfast.errors import InvalidInput
from holdfast.frozen import EMPTY, FrozenDict
from holdfast.providers.base import Provider
from holdfast.steps.drafts import Draft
from holdfast.steps.schemas import Schema
from holdfast.steps.targets import Target
from holdfast.tools import Tool
from holdfast.workshop import Model, Workshop, checked_tools, model_name


class Choice(NamedTuple):
    """What a caller has chosen for one turn; None is as the session has it.

    `options` is the same by name, for the draft: a turn is gone on with as it was begun.
    """

    options: Mapping[str, Any] = EMPTY
    tools: tuple[Tool, ...] | None = None
    model: Model | None = None
    schema: Schema | None = None


class Bindings:
    """The models and tools of one session."""

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop
        self._tools: dict[str, Tool] = {}
        self._targets: dict[str, Target] = {}
        self._tools_of_turn: dict[str, Tool] = {}
        self._targets_of_turn: dict[str, Target] = {}

    def adopt(self, other: "Bindings") -> None:
        """Know what another session was given too, where this one was given nothing."""
        self._tools = {**other._tools, **self._tools}
        self._targets = {**other._targets, **self._targets}

    # Models

    def use_model(self, model: Model) -> str:
        """The name of a model; an object is remembered under it."""
        return _remember(model, self._targets)

    def target(self, *models: Model | None) -> Target:
        """The first model that there is: one that is given, the session's, the manager's."""
        chosen = next((each for each in (*models, self._workshop.model) if each is not None), None)
        if chosen is None:
            raise InvalidInput(
                "model", "is missing: pass one to open, get_or_create, update or send"
            )
        name = model_name(chosen)
        own, of_turn = self._targets.get(name), self._targets_of_turn.get(name)
        if isinstance(chosen, Provider):
            known = (each for each in (own, of_turn) if each and each.provider is chosen)
            return next(known, None) or Target(chosen)
        if own is None and of_turn is not None and not self._workshop.has(name):
            return of_turn
        return own or self._workshop.target(name)

    # Tools

    def use_tools(self, tools: Iterable[Tool]) -> tuple[FrozenDict, ...]:
        """The declarations of tools; what runs them is remembered."""
        found = checked_tools(tools)
        self._tools.update(_runnable(found))
        return tuple(tool.declaration for tool in found)

    def bound(self, declarations: Iterable[Mapping[str, Any]]) -> tuple[Tool, ...]:
        """Tools from their declarations, with what runs them, where anything here does."""
        return _bound(declarations, {**self._known_tools, **self._tools})

    @property
    def _known_tools(self) -> dict[str, Tool]:
        """What the turn and the manager have, for where the session has nothing."""
        return {**self._tools_of_turn, **_runnable(self._workshop.tools)}

    # One turn

    def choose(
        self,
        tools: Iterable[Tool] | None,
        model: Model | None,
        schema: Mapping[str, Any] | None,
    ) -> Choice:
        """What a caller wants for one turn."""
        options: dict[str, Any] = {}
        if model is not None:
            options["model"] = name = _remember(model, self._targets_of_turn)
            if isinstance(model, str):
                self._targets_of_turn.pop(name, None)
        found = None if tools is None else checked_tools(tools)
        if found is not None:
            options["tools"] = tuple(tool.declaration for tool in found)
            self._tools_of_turn.update(_runnable(found))
        checker = None if schema is None else Schema(schema)
        if checker is not None:
            options["schema"] = checker.declared
        return Choice(options, found, model, checker)

    def chosen_in(self, draft: Draft | None) -> Choice:
        """What was wanted for a turn that is gone on with."""
        if draft is None:
            return Choice()
        options = draft.options
        tools, schema, name = options.get("tools"), options.get("schema"), options.get("model")
        passed = self._targets_of_turn.get(name or "")
        runnable = {**self._known_tools, **self._tools, **self._tools_of_turn}
        return Choice(
            options,
            None if tools is None else _bound(tools, runnable),
            name if passed is None else passed.provider,
            None if schema is None else Schema(schema),
        )


def _remember(model: Model, targets: dict[str, Target]) -> str:
    """The name of a model, under which an object is then found."""
    name = model_name(model)
    if isinstance(model, Provider) and (name not in targets or targets[name].provider is not model):
        targets[name] = Target(model)
    return name


def _runnable(tools: Iterable[Tool]) -> dict[str, Tool]:
    return {tool.name: tool for tool in tools if tool.run is not None}


def _bound(
    declarations: Iterable[Mapping[str, Any]], by_name: Mapping[str, Tool]
) -> tuple[Tool, ...]:
    found = []
    for declared in map(Tool.declared, declarations):
        known = by_name.get(declared.name)
        found.append(declared if known is None else declared.bind(known.run))
    return tuple(found)
