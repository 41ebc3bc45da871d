"""What the sessions of a manager share: the store, models, tools, and the turns that run."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack
from typing import Any, TypedDict, TypeVar
from weakref import WeakKeyDictionary

from holdfast.cancel import CancelToken
from holdfast.consolidation.desk import Desk
from holdfast.errors import InvalidInput
from holdfast.frozen import EMPTY, freeze
from holdfast.memory import Memory
from holdfast.providers import open_provider
from holdfast.providers.base import Provider
from holdfast.settings import Settings
from holdfast.steps.orders import Redact
from holdfast.steps.scribe import Scribe
from holdfast.steps.targets import Target
from holdfast.stores.base import Tenant
from holdfast.tools import Tool
from holdfast.window.cache_aware import CacheAware
from holdfast.window.plan import Policy

Model = str | Provider
_Result = TypeVar("_Result")


class Shared(TypedDict, total=False):
    """What the sessions of a manager share; `holdfast.open` says what each is."""

    model: Model | None
    providers: Iterable[Provider]
    tools: Iterable[Tool]
    budget: Mapping[str, Any]
    policy: Policy | None
    redact: Redact | None
    owner: str | None
    memory: Memory | None


class Workshop:
    """Models are found by name, opened once, and closed with the manager if it opened them."""

    def __init__(
        self,
        tenant: Tenant,
        *,
        model: Model | None = None,
        providers: Iterable[Provider] = (),
        tools: Iterable[Tool] = (),
        budget: Mapping[str, Any] = EMPTY,
        policy: Policy | None = None,
        redact: Redact | None = None,
        owner: str | None = None,
        memory: Memory | None = None,
    ) -> None:
        self.tenant = tenant
        self.scribe = Scribe(tenant)
        self.tools = checked_tools(tools)
        self.budget = freeze(budget, "budget")
        self.policy: Policy = policy or CacheAware()
        self.redact = redact
        self.owner = owner or f"{socket.gethostname()}:{os.getpid()}"
        self.model: str | None = None
        self.open_session: Callable[[str], Awaitable[Any]] = _no_sessions
        self.changed_size: Callable[[str], object] = _tell_nobody  # the key of a session
        self._targets: dict[str, Target] = {}
        self._opened: list[Provider] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._cancels: WeakKeyDictionary[asyncio.Task[Any], CancelToken] = WeakKeyDictionary()
        for provider in providers:
            self._register(provider)
        if model is not None:
            self.model = self._register(model)
        self.memory = checked_memory(memory)

    def has(self, name: str) -> bool:
        """Whether a model of this name was passed to open, or is open already."""
        return name in self._targets

    def target(self, name: str) -> Target:
        """The model of this name: an object that was passed to open, or else opened now."""
        if name not in self._targets:
            provider = open_provider(name)
            self._opened.append(provider)
            self._targets[name] = Target(provider)
        return self._targets[name]

    def completed(self, settings: Settings) -> Settings:
        """A session's settings, with the manager's budget where they have none."""
        if settings.budget or not self.budget:
            return settings
        return settings.replace(budget=self.budget)

    def _register(self, model: Model) -> str:
        if isinstance(model, Provider):
            self._targets[model.name] = Target(model)
        return model_name(model)

    def _finder(self, model: Model) -> Callable[[], Target]:
        """What gives a model, which no session finds by its name if it is an object."""
        if isinstance(model, Provider):
            target = Target(model)
            return lambda: target
        return lambda: self.target(model)

    # The memory

    def use_memory(self) -> None:
        """Lend the memory what it works with, until `close`."""
        if self.memory is not None:
            find = self._finder(self.memory.model)
            self.memory.use(Desk(self.tenant, find, self.start, self.redact))

    def leave_memory(self) -> None:
        """Somebody else may use it."""
        if self.memory is not None:
            self.memory.let_go()

    # Tasks

    def start(self, work: Coroutine[Any, Any, _Result]) -> asyncio.Task[_Result]:
        """Run something to its end, whoever waits for it or does not."""
        task = self.check_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def ends_by(self, task: asyncio.Task[Any], cancel: CancelToken) -> None:
        """How `close` ends it where it cannot wait; others are cancelled as tasks."""
        self._cancels[task] = cancel

    def check_loop(self) -> asyncio.AbstractEventLoop:
        """The loop that runs; it has to be the one in which the manager was opened."""
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        if self._loop is not loop:
            raise InvalidInput(
                "the event loop", "is not the one that opened these sessions: open them here too"
            )
        return loop

    async def close(self, first: Callable[[], Awaitable[None]] | None = None) -> None:
        """Do this, wait for the turns that run, then close the models that were opened here.

        Cancelled, it ends the turns, which keep what they have, and waits for that.
        """
        try:
            if first is not None:
                await first()
            while self._tasks:
                await asyncio.wait(list(self._tasks))
        except asyncio.CancelledError:
            await self._end_tasks()
            raise
        finally:
            self.leave_memory()
            await self._close_models()

    async def _end_tasks(self) -> None:
        """End what runs, and what that begins at its end; cancelled once more, wait no longer."""
        told: set[asyncio.Task[Any]] = set()
        while self._tasks:
            for task in self._tasks - told:
                told.add(task)
                if (cancel := self._cancels.get(task)) is not None:
                    cancel.cancel("the sessions were closed")
                else:
                    task.cancel()
            await asyncio.wait(list(self._tasks), return_when=asyncio.FIRST_COMPLETED)

    async def _close_models(self) -> None:
        async with AsyncExitStack() as stack:  # one that fails keeps none of the others open
            while self._opened:
                stack.push_async_callback(self._opened.pop().close)


def _tell_nobody(_: str) -> None:
    return


async def _no_sessions(key: str) -> Any:
    raise InvalidInput(f"session {key!r}", "is opened by a manager, and there is none")


def model_name(model: object) -> str:
    """The name under which a session keeps a model."""
    if isinstance(model, str):
        return model
    if isinstance(model, Provider):
        return model.name
    raise InvalidInput("model", f"is vendor:model or a provider, not {type(model).__name__}")


def checked_memory(memory: object) -> Memory | None:
    """A memory that a caller gave."""
    if memory is None or isinstance(memory, Memory):
        return memory
    raise InvalidInput("memory", f"is a holdfast.memory.Memory, not {type(memory).__name__}")


def checked_tools(tools: Iterable[Tool]) -> tuple[Tool, ...]:
    """Tools that a model can tell apart."""
    if not isinstance(tools, Iterable):
        raise InvalidInput("tools", f"is a list of tools, not {tools!r:.80}")
    found = tuple(tools)
    names: set[str] = set()
    for each in found:
        if not isinstance(each, Tool):
            raise InvalidInput("tools", f"are made by @tool or Tool(...), not {each!r:.80}")
        if each.name in names:
            raise InvalidInput("tools", f"has {each.name!r} twice")
        names.add(each.name)
    return found
