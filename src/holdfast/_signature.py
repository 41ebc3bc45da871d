"""Reads a Python function as a tool: its hints become a JSON Schema, its docstring the words.

msgspec knows what JSON can say about a type and how to make the type from JSON; here its struct
of the arguments is built from a signature, and its schema is put in the words of the docstring.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial
from types import MethodType, SimpleNamespace
from typing import Any, NamedTuple, Optional, get_type_hints

import msgspec

from holdfast.errors import InvalidInput
from holdfast.frozen import freeze

# How a docstring's list of parameters begins, and how each of its entries does.
_DOCSTRING_STYLES = (
    (  # Google
        r"^(?:Args|Arguments|Parameters|Params):[ ]*$",
        r"(?P<names>\w+)\s*(?:\(.*?\))?\s*:\s*(?P<text>.*)",
    ),
    (  # NumPy
        r"^Parameters[ ]*\n-{3,}[ ]*$",
        r"(?P<names>\w+(?:,\s*\w+)*)\s*(?::.*)?(?P<text>)",
    ),
    (  # reST
        r"(?=^:param\s)",
        r":param\s+(?:[^:]*\s)?(?P<names>\w+)\s*:\s*(?P<text>.*)",
    ),
)


class TypedFunction:
    """A function, with the struct that its arguments are checked against and converted by.

    Equal when the functions are. `is_method` says that it still lacks the object it belongs to.
    """

    __slots__ = ("_arguments", "function", "is_method")

    def __init__(
        self, function: Callable[..., Any], arguments: type[msgspec.Struct], is_method: bool
    ) -> None:
        self.function = function
        self.is_method = is_method
        self._arguments = arguments

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def bound(self, instance: object) -> "TypedFunction":
        """The method of this object."""
        return TypedFunction(MethodType(self.function, instance), self._arguments, False)

    def convert(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The same arguments as the hints want them; msgspec.ValidationError if they do not fit."""
        found = msgspec.convert(dict(arguments), self._arguments, strict=True, str_keys=True)
        return {name: getattr(found, name) for name in arguments}

    def __eq__(self, other: object) -> bool:
        return self.function == other.function if isinstance(other, TypedFunction) else False

    def __hash__(self) -> int:
        return hash(self.function)

    def __repr__(self) -> str:
        return f"<typed function {_name(self.function)}>"


class Signature(NamedTuple):
    """What a function says about itself."""

    name: str
    description: str
    parameters: dict[str, Any]
    run: TypedFunction


def read(function: Any, name: str | None = None) -> Signature:
    """The signature of a function or other callable; InvalidInput says what is in the way."""
    if isinstance(function, staticmethod):
        function = function.__func__
    _check_callable(function)
    name = _name(function) if name is None else name
    if name == "<lambda>":
        raise InvalidInput("a lambda", "has no name: pass name=...")
    source = _source(function)
    description, texts = read_docstring(inspect.getdoc(source) or "")
    parameters = _parameters(function, name)
    is_method = (
        inspect.isfunction(function) and bool(parameters) and parameters[0].name in ("self", "cls")
    )
    parameters = parameters[is_method:]
    hints = _hints(source, name)
    types = {each.name: _type(each, hints, name) for each in parameters}
    arguments = msgspec.defstruct(
        "arguments",
        [_field(each, types[each.name]) for each in parameters],
        kw_only=True,
        forbid_unknown_fields=True,
    )
    schema = _schema(arguments)
    for each in parameters:
        notes = getattr(hints.get(each.name), "__metadata__", ())
        words = next((note for note in notes if isinstance(note, str)), texts.get(each.name))
        _add_words(schema["properties"][each.name], words, each.default)
    return Signature(name, description, schema, TypedFunction(function, arguments, is_method))


def _check_callable(function: Any) -> None:
    if isinstance(function, classmethod):
        raise InvalidInput("a classmethod", "has no class yet: use tool(TheClass.method) below it")
    if not callable(function) or inspect.isclass(function):
        raise InvalidInput("function", f"is a function or method, not {_name(function)}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidInput(f"function {_name(function)!r}", "yields: return a list instead")


def _name(function: Any) -> str:
    while isinstance(function, partial):
        function = function.func
    return getattr(function, "__name__", None) or type(function).__name__


def _source(function: Any) -> Any:
    """The function that carries the hints and the docstring."""
    while isinstance(function, partial):
        function = function.func
    if not inspect.isroutine(function):
        function = type(function).__call__
    return inspect.unwrap(function)


def _parameters(function: Any, name: str) -> list[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:
        raise InvalidInput(f"tool {name!r}", "has no signature: wrap it in a function") from None
    for each in parameters:
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            raise InvalidInput(
                _where(str(each).partition(":")[0], name),
                "cannot be described to a model: name each parameter, or take one list or dict",
            )
        if each.kind is each.POSITIONAL_ONLY:
            raise InvalidInput(
                _where(each.name, name), "has no name for a caller: take the / out of the signature"
            )
    return parameters


def _hints(source: Any, name: str) -> dict[str, Any]:
    hints: dict[str, Any] = {}
    for parameter, hint in getattr(source, "__annotations__", {}).items():
        if parameter == "return":  # never needed, so it need not be importable either
            continue
        holder = SimpleNamespace(__annotations__={parameter: hint})
        namespace = getattr(source, "__globals__", {})
        try:
            hints |= get_type_hints(holder, globalns=namespace, include_extras=True)
        except (NameError, AttributeError, TypeError, SyntaxError) as error:
            raise InvalidInput(
                _where(parameter, name),
                f"has a hint that cannot be resolved ({error}): import or define its type at the "
                "top of the module, outside of TYPE_CHECKING and of functions",
            ) from error
    return hints


def _type(parameter: inspect.Parameter, hints: Mapping[str, Any], name: str) -> Any:
    hint = hints.get(parameter.name, Any)
    if parameter.default is None:
        hint = Optional[hint]  # noqa: UP045 - `hint | None` fails for some hints
    try:
        msgspec.json.schema(hint)
    except (TypeError, NameError, AttributeError) as error:
        why = str(error).splitlines()[0].partition(" - type")[0]
        known = "" if "custom types" in why else f" ({why})"
        raise InvalidInput(
            _where(parameter.name, name),
            f"has the type {inspect.formatannotation(hint)}, which has no JSON form{known}: use "
            "plain types, dataclasses, TypedDicts, enums or msgspec structs, and convert inside",
        ) from error
    return hint


def _field(parameter: inspect.Parameter, hint: Any) -> Any:
    if parameter.default is parameter.empty:
        return parameter.name, hint
    # What is left out stays out, and the function's own default applies; this one is never seen.
    return parameter.name, hint, msgspec.field(default_factory=lambda: None)


def _schema(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    (top,), found = msgspec.json.schema_components([arguments], ref_template="#/$defs/{name}")
    own = found.pop(top["$ref"].rpartition("/")[2])
    schema = {"type": "object", "properties": own["properties"]}
    if own["required"]:
        schema["required"] = own["required"]
    schema["additionalProperties"] = False
    for name, part in found.items():
        if name.endswith(part.get("title", name)):  # says nothing that the name does not
            part.pop("title", None)
        if not part.get("required", True):
            del part["required"]
    if found:
        schema["$defs"] = found
    return schema


def _add_words(schema: dict[str, Any], words: str | None, default: Any) -> None:
    if words:
        schema.setdefault("description", words)
    if default is inspect.Parameter.empty:
        return
    try:
        schema["default"] = freeze(msgspec.to_builtins(default, order="deterministic"))
    except (TypeError, ValueError):  # JSON cannot hold it; the parameter is optional anyway
        pass


def _where(parameter: str, name: str) -> str:
    return f"parameter {parameter!r} of tool {name!r}"


def read_docstring(docstring: str) -> tuple[str, dict[str, str]]:
    """The words before the list of parameters, and what the list says about each of them."""
    for start, entry in _DOCSTRING_STYLES:
        found = re.search(start, docstring, re.MULTILINE)
        if found:
            texts = _read_entries(docstring[found.end() :], re.compile(entry))
            return docstring[: found.start()].strip(), texts
    return docstring.strip(), {}


def _read_entries(section: str, entry: re.Pattern[str]) -> dict[str, str]:
    """Entries begin at the indent of the first; deeper lines continue one, a lesser ends all."""
    texts: dict[str, list[str]] = {}
    lines: list[str] = []  # of the entry that is being read
    indent: int | None = None
    for line in filter(str.strip, section.splitlines()):
        depth = len(line) - len(line.lstrip())
        indent = depth if indent is None else indent
        if depth < indent:
            break
        if depth > indent:
            lines.append(line.strip())
            continue
        found = entry.fullmatch(line.strip())
        lines = [found["text"]] if found else []
        for name in re.findall(r"\w+", found["names"]) if found else ():
            texts.setdefault(name, lines)
    return {name: " ".join(lines).strip() for name, lines in texts.items()}
