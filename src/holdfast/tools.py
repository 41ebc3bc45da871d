"""Tools: what a model may ask for, how it is told about them, and how they are run.

    @tool
    def weather(city: str, unit: Literal["c", "f"] = "c") -> str:
        '''The weather in a city, right now.

        Args:
            city: Its name, with the country if there are several.
        '''

    weather.declaration                         # what the model is shown and the session keeps
    await weather.invoke('{"city": "Turin"}')   # what the model wrote, checked, then run
    weather("Turin")                            # still the function

A declaration is JSON and is stored; what runs it is Python and is bound to it by name.
"""

import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple, TypedDict, Unpack, overload

import msgspec

from holdfast import _arguments, _signature, _threads
from holdfast._signature import TypedFunction
from holdfast.cancel import CancelToken
from holdfast.errors import InvalidInput, ToolUnavailable
from holdfast.frozen import EMPTY, FrozenDict, Value

TIMEOUT_S = 60.0
TIMEOUT_S_MAX = 1e9  # some thirty years; more is None
NO_PARAMETERS = FrozenDict({"type": "object", "properties": {}})


class Running(NamedTuple):
    """The call that a tool is running for.

    turn     the id of the user's message that began the turn
    key      the same whenever this call is run again: what makes a tool safe to repeat
    cancel   cancelled when nobody waits for the result any more; a plain function has to look
    """

    session_id: str
    turn: str
    call_id: str
    key: str
    cancel: CancelToken


RUNNING: ContextVar[Running | None] = ContextVar("holdfast.tools.RUNNING", default=None)
# The keys of calls whose tools have not ended; with each the call in whose tool its turn was begun.
ACTIVE: dict[str, Running | None] = {}


def running() -> Running | None:
    """The call that the tool which asks was started for; None outside of a session's turn."""
    return RUNNING.get()


def is_awaited_by(session_id: str) -> bool:
    """Whether a turn of this session waits for the tool that asks, or for one that began it.

    What a tool has left behind, such as a task that reminds of something, is awaited by nobody.
    """
    each = RUNNING.get()
    for _ in range(len(ACTIVE)):
        if each is None or each.key not in ACTIVE:
            return False
        if each.session_id == session_id:
            return True
        each = ACTIVE[each.key]
    return False


class _Declared(Value, gc=True):  # `run` may reach anything, this tool too
    name: str
    description: str = ""
    parameters: Mapping[str, Any] = EMPTY
    run: Callable[..., Any] | None = None


class Tool(_Declared, kw_only=True):
    """Something a model may ask for.

    name         any text; providers map it to what their API allows
    parameters   a JSON Schema of type object; none given means no parameters
    run          called with the arguments as keywords; None in a tool that is only declared
    idempotent   may be run again when it is not known whether it ran
    approval     somebody has to agree before it runs
    timeout      seconds that one run may take, or None
    """

    idempotent: bool = False
    approval: bool = False
    timeout: float | None = TIMEOUT_S

    @classmethod
    def declared(cls, declaration: Mapping[str, Any]) -> "Tool":
        """The tool of a stored `declaration`, without what runs it.

        A key that is not known is refused: it may be a condition (as `approval` is) that this
        version would not keep.
        """
        known = [name for name in cls.__struct_fields__ if name != "run"]
        for key in declaration:
            if key not in known:
                raise InvalidInput(
                    "the declaration of a tool", f"has {key!r}: known are {', '.join(known)}"
                )
        if "name" not in declaration:
            raise InvalidInput("the declaration of a tool", "has no name")
        return cls(**declaration)

    @property
    def declaration(self) -> FrozenDict:
        """What is stored with a session: the name, the words, the schema, and what is unusual."""
        always = ("name", "description", "parameters")
        usual = {"idempotent": False, "approval": False, "timeout": TIMEOUT_S}
        unusual = [name for name, value in usual.items() if getattr(self, name) != value]
        return FrozenDict({name: getattr(self, name) for name in (*always, *unusual)})

    def bind(self, run: Callable[..., Any] | None) -> "Tool":
        """The same tool with something to run it: a function, or another tool's `run`."""
        return self.replace(run=run)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the function as it is: nothing is checked, and there is no time limit."""
        if self.run is None:
            raise ToolUnavailable(self.name)
        return self.run(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> "Tool":
        """A tool made from a method in a class: `box.add` is the tool of that box."""
        if instance is None or not (isinstance(self.run, TypedFunction) and self.run.is_method):
            return self
        return self.bind(self.run.bound(instance))

    def __hash__(self) -> int:
        return hash((self.name, self.description, self.parameters))  # `run` may have no hash

    def check(self, arguments: str | Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as `run` takes them, or InvalidInput in words that a model can act on.

        Takes JSON text as the model wrote it ("" means none), or the object itself. A tool made
        by `@tool` gets values of the hinted types, with nothing guessed: "1" is not an int. For
        other tools only the names are checked, that the required are there and, where the schema
        has additionalProperties false, that no others are; the values are for the tool to check.
        """
        given = _arguments.read(arguments)
        _arguments.check_names(given, self.parameters)
        if not isinstance(self.run, TypedFunction):
            return given
        try:
            return self.run.convert(given)
        except msgspec.ValidationError as error:
            raise _arguments.mistyped(str(error), self.parameters) from None

    async def invoke(
        self,
        arguments: str | Mapping[str, Any],
        *,
        read: Callable[[Any], Any] = lambda found: found,
    ) -> Any:
        """Check the arguments, run the tool, and give back what it returned.

        A plain function runs in a thread of its own, so that the loop goes on. Past `timeout`
        seconds this raises TimeoutError; a thread cannot be stopped, so a plain function is left to
        end by itself, and what it returns is lost. What the tool raises is passed on unchanged (but
        for a plain function's StopIteration and KeyboardInterrupt, which would hang or end the
        loop: each is a RuntimeError).

        `read` makes of the result what is given back, where the tool ran and within its time:
        a copy, before anybody can change it.
        """
        import asyncio

        if self.run is None:
            raise ToolUnavailable(self.name)
        if isinstance(self.run, TypedFunction) and self.run.is_method:
            raise InvalidInput(f"tool {self.name!r}", "is a method: take it from an object")
        checked = self.check(arguments)
        try:
            async with asyncio.timeout(self.timeout) as limit:
                return await _run(self.run, checked, read)
        except TimeoutError as error:
            if not limit.expired():  # the tool's own
                raise
            raise TimeoutError(f"tool {self.name!r} took over {self.timeout:g} s") from error

    def _settle(self) -> None:
        self._settle_texts("name", "description")
        if not self.name:
            raise InvalidInput("name", "is empty: a model calls a tool by its name")
        self._settle_parameters()
        if isinstance(self.run, Tool):
            self._set("run", self.run.run)
        if self.run is not None and not callable(self.run):
            raise InvalidInput("run", f"is a function or None, not {type(self.run).__name__}")
        self._settle_flags("idempotent", "approval")
        self._settle_timeout()

    def _settle_parameters(self) -> None:
        self._settle_objects("parameters")
        if not self.parameters:
            self._set("parameters", NO_PARAMETERS)
        if self.parameters.get("type") != "object":
            raise InvalidInput("parameters", 'is a JSON Schema with "type": "object" at its top')
        if not isinstance(self.parameters.get("properties", EMPTY), dict):
            raise InvalidInput("parameters.properties", "is a dict: the schema of each argument")
        required = self.parameters.get("required", ())
        if not (isinstance(required, tuple) and all(isinstance(name, str) for name in required)):
            raise InvalidInput("parameters.required", "is a list of names")

    def _settle_timeout(self) -> None:
        value = self.timeout
        if value is None:
            return
        if type(value) not in (int, float) or not 0 < value <= TIMEOUT_S_MAX:
            raise InvalidInput(
                "timeout", f"is seconds above 0, or None for no limit, not {value!r}"
            )
        self._set("timeout", float(value))


class _Options(TypedDict, total=False):
    idempotent: bool
    approval: bool
    timeout: float | None


@overload
def tool(
    function: Callable[..., Any],
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Unpack[_Options],
) -> Tool: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, **options: Unpack[_Options]
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Unpack[_Options],
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a Tool from a typed function, plain or async: `@tool`, or `@tool(approval=True)`.

    The schema comes from the hints (a parameter without one takes any JSON value; one whose
    default is None takes null), the words from the docstring in Google, NumPy or reST style, or
    from Annotated[str, "the words"]. InvalidInput names a parameter that JSON cannot carry.
    """

    def make(function: Callable[..., Any]) -> Tool:
        found = _signature.read(function, name)
        words = found.description if description is None else description
        return Tool(found.name, words, found.parameters, found.run, **options)

    return make if function is None else make(function)


def _is_async(run: Callable[..., Any]) -> bool:
    function = run.function if isinstance(run, TypedFunction) else run
    call = getattr(type(function), "__call__", None)  # noqa: B004 - of an object with async __call__
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


async def _run(
    run: Callable[..., Any], arguments: dict[str, Any], read: Callable[[Any], Any]
) -> Any:
    if _is_async(run):
        return read(await run(**arguments))

    def call() -> Any:
        found = run(**arguments)
        return found if inspect.isawaitable(found) else read(found)

    found = await _threads.call(call, "holdfast-tool")
    return read(await found) if inspect.isawaitable(found) else found
