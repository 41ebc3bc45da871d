"""Tools: a function becomes a declaration, and what a model wrote becomes a call of it."""

import asyncio
import contextvars
import functools
import gc
import json
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum
from typing import Annotated, Any, Literal, Optional, TypedDict, Union

import msgspec
import pytest

from holdfast.errors import InvalidInput, ToolUnavailable
from holdfast.frozen import FrozenDict
from holdfast.tools import NO_PARAMETERS, Tool, tool


class Colour(Enum):
    RED = "red"
    GREEN = "green"


@dataclass
class Place:
    """Somewhere on earth."""

    lat: float
    lon: float = 0.0


class Filter(TypedDict, total=False):
    colour: Colour
    limit: int


class Tree(msgspec.Struct):
    name: str
    children: "list[Tree]" = []


class Strange:
    """Not a type that JSON knows."""


def schema_of(function):
    """The schema as plain JSON, the way a model gets it."""
    return json.loads(json.dumps(tool(function).parameters))


def properties_of(function):
    return schema_of(function)["properties"]


# ---- the value ----


def test_a_tool_has_a_name_and_usual_settings():
    """S2-23: name, description and JSON Schema; the rest is what most tools need."""
    made = Tool("look")

    assert (made.name, made.description, made.run) == ("look", "", None)
    assert made.parameters == {"type": "object", "properties": {}} == NO_PARAMETERS
    assert (made.idempotent, made.approval, made.timeout) == (False, False, 60.0)


def test_a_tool_cannot_change_and_neither_can_its_schema():
    """S2-23: what the caller does with the schema later does not reach the tool."""
    schema = {"type": "object", "properties": {"x": {"type": "string"}}}
    made = Tool("look", "Look.", schema)

    schema["properties"]["x"]["type"] = "number"

    assert made.parameters["properties"]["x"] == {"type": "string"}
    with pytest.raises(TypeError):
        made.parameters["type"] = "array"
    with pytest.raises(AttributeError):
        made.name = "other"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": ""}, "name is empty"),
        ({"name": 5}, "name is a string"),
        ({"name": "a\ud800"}, "surrogate"),
        ({"description": None}, "description is a string"),
        ({"parameters": []}, "parameters is a dict"),
        ({"parameters": {"type": "array"}}, '"type": "object"'),
        ({"parameters": {"properties": {}}}, '"type": "object"'),
        ({"parameters": {"type": "object", "properties": []}}, "parameters.properties"),
        ({"parameters": {"type": "object", "required": "x"}}, "parameters.required"),
        ({"parameters": {"type": "object", "required": [1]}}, "parameters.required"),
        ({"parameters": {"type": "object", "default": {1, 2}}}, "parameters.default is a set"),
        ({"parameters": {"type": "object", "x": float("nan")}}, "parameters.x is nan"),
        ({"run": "print"}, "run is a function"),
        ({"idempotent": 1}, "idempotent is True or False"),
        ({"approval": None}, "approval is True or False"),
        ({"timeout": 0}, "timeout is seconds above 0"),
        ({"timeout": -1.0}, "timeout is seconds"),
        ({"timeout": float("nan")}, "timeout is seconds"),
        ({"timeout": float("inf")}, "timeout is seconds"),
        ({"timeout": 10**400}, "timeout is seconds"),
        ({"timeout": True}, "timeout is seconds"),
        ({"timeout": "60"}, "timeout is seconds"),
    ],
    ids=str,
)
def test_a_tool_that_cannot_work_is_refused_when_it_is_built(fields, words):
    """S2-23: InvalidInput names the field, before anybody can store or send it."""
    with pytest.raises(InvalidInput) as caught:
        Tool(**{"name": "look", **fields})

    assert words in str(caught.value)


def test_any_text_is_a_name():
    """S2-23: providers map names to what their API allows; here nothing is lost."""
    names = ["files/read", "größe", "a b", "x" * 500]

    assert [Tool(name).name for name in names] == names


def test_tools_are_compared_by_content_and_their_function():
    """S2-23: equal declarations with the same `run` are equal and have one hash."""

    @dataclass
    class Runner:  # dataclasses have no hash
        def __call__(self):
            return None

    runner = Runner()
    first = Tool("look", "Look.", {"type": "object", "properties": {}}, runner)
    same = Tool("look", "Look.", {"type": "object", "properties": {}}, runner)

    assert first == same
    assert hash(first) == hash(same)
    assert first != first.replace(approval=True)
    assert first != first.bind(print)
    assert first != "look"


def test_a_tool_that_reaches_itself_is_collected():
    """`run` may hold the tool; the collector finds such circles."""

    class Agent:
        def look(self):
            return "seen"

    agent = Agent()
    agent.tool = Tool("look", run=agent.look)
    gone = weakref.ref(agent)
    del agent

    gc.collect()

    assert gone() is None


# ---- declarations ----


def test_a_declaration_holds_only_what_is_unusual():
    """S3-35: name, description and parameters, and the settings that are not the default."""
    usual = Tool("look", "Look.").declaration
    unusual = Tool("pay", idempotent=True, approval=True, timeout=None).declaration

    assert usual == {"name": "look", "description": "Look.", "parameters": NO_PARAMETERS}
    assert list(unusual) == [
        "name",
        "description",
        "parameters",
        "idempotent",
        "approval",
        "timeout",
    ]
    assert (unusual["idempotent"], unusual["approval"], unusual["timeout"]) == (True, True, None)
    assert isinstance(unusual, FrozenDict)


def test_a_stored_declaration_gives_the_same_tool_without_its_function():
    """S3-35: what a session keeps is JSON; the function is bound again by name."""

    @tool(approval=True, timeout=5)
    def pay(amount: int, colour: Colour = Colour.RED):
        """Pay."""

    stored = json.dumps(pay.declaration)
    found = Tool.declared(json.loads(stored))

    assert found == pay.bind(None)
    assert found.run is None
    assert json.dumps(found.declaration) == stored
    assert found.bind(pay.run) == pay
    assert found.bind(pay) == pay
    assert found.bind(pay).check('{"amount": 1, "colour": "green"}')["colour"] is Colour.GREEN


@pytest.mark.parametrize(
    ("declaration", "words"),
    [
        ({"name": "look", "run": None}, "has 'run'"),
        ({"name": "look", "strict": True}, "has 'strict'"),
        ({"name": "look", 5: True}, "has 5"),
        ({"description": "nameless"}, "has no name"),
        ({"name": "look", "parameters": None}, "parameters is a dict"),
    ],
    ids=str,
)
def test_a_declaration_that_says_more_than_we_know_is_refused(declaration, words):
    """S3-35: an unknown key may be a condition, so it is named rather than dropped."""
    with pytest.raises(InvalidInput) as caught:
        Tool.declared(declaration)

    assert words in str(caught.value)


def test_a_declared_tool_cannot_run():
    """S2-23: calling or invoking it says which tool is missing."""
    declared = Tool("look")

    with pytest.raises(ToolUnavailable, match="look"):
        declared()
    with pytest.raises(ToolUnavailable, match="look"):
        asyncio.run(declared.invoke("{}"))


# ---- schemas from functions ----


def test_the_golden_schema_of_a_plain_function():
    """S2-23: hints, defaults and docstring in one place; parameters keep their order."""

    @tool
    def weather(city: str, days: int = 1, *, unit: Literal["c", "f"] = "c") -> str:
        """The weather in a city, right now.

        Rain is told in millimetres.

        Args:
            city: Its name, with the country
                if there are several.
            days (int, optional): How many to look ahead.
            unknown: Not a parameter.

        Returns:
            city: a sentence.
        """

    assert (
        json.dumps(weather.declaration, indent=2)
        == """\
{
  "name": "weather",
  "description": "The weather in a city, right now.\\n\\nRain is told in millimetres.",
  "parameters": {
    "type": "object",
    "properties": {
      "city": {
        "type": "string",
        "description": "Its name, with the country if there are several."
      },
      "days": {
        "type": "integer",
        "description": "How many to look ahead.",
        "default": 1
      },
      "unit": {
        "enum": [
          "c",
          "f"
        ],
        "default": "c"
      }
    },
    "required": [
      "city"
    ],
    "additionalProperties": false
  }
}"""
    )


def test_the_golden_schema_of_named_types():
    """S2-23: dataclasses, TypedDicts, enums and structs are defined once, without empty titles."""

    def find(place: Place, only: Filter, tree: Tree, colour: Colour = Colour.RED): ...

    assert schema_of(find) == {
        "type": "object",
        "properties": {
            "place": {"$ref": "#/$defs/Place"},
            "only": {"$ref": "#/$defs/Filter"},
            "tree": {"$ref": "#/$defs/Tree"},
            "colour": {"$ref": "#/$defs/Colour", "default": "red"},
        },
        "required": ["place", "only", "tree"],
        "additionalProperties": False,
        "$defs": {
            "Place": {
                "description": "Somewhere on earth.",
                "type": "object",
                "properties": {
                    "lat": {"type": "number"},
                    "lon": {"type": "number", "default": 0.0},
                },
                "required": ["lat"],
            },
            "Filter": {
                "type": "object",
                "properties": {
                    "colour": {"$ref": "#/$defs/Colour"},
                    "limit": {"type": "integer"},
                },
            },
            "Tree": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "children": {
                        "type": "array",
                        "items": {"$ref": "#/$defs/Tree"},
                        "default": [],
                    },
                },
                "required": ["name"],
            },
            "Colour": {"enum": ["green", "red"]},
        },
    }


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (Any, {}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (Literal[1, 2], {"enum": [1, 2]}),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045
        (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}),  # noqa: UP007
        (date, {"type": "string", "format": "date"}),
        (Annotated[int, msgspec.Meta(ge=1)], {"type": "integer", "minimum": 1}),
        (Annotated[str, "Words."], {"type": "string", "description": "Words."}),
        (
            Annotated[str, "Words.", msgspec.Meta(description="Meta's.")],
            {"type": "string", "description": "Meta's."},
        ),
    ],
    ids=str,
)
def test_each_plain_type_has_its_schema(hint, schema):
    """S2-23: what JSON can say about a type, msgspec says."""

    def function(x): ...

    function.__annotations__ = {"x": hint}

    assert properties_of(function) == {"x": schema}


def test_a_parameter_without_a_hint_takes_any_json_value():
    """S2-23: an unhinted function is still a tool."""

    def function(x, y=2): ...

    assert schema_of(function) == {
        "type": "object",
        "properties": {"x": {}, "y": {"default": 2}},
        "required": ["x"],
        "additionalProperties": False,
    }


def test_a_function_without_parameters_takes_none():
    """S2-23: an empty object, and nothing else."""

    def now(): ...

    assert schema_of(now) == {"type": "object", "properties": {}, "additionalProperties": False}


def test_only_defaults_that_json_can_hold_are_told():
    """S2-23: the others make a parameter optional all the same."""

    def function(
        a: str = None,  # noqa: RUF013
        b: Any = Strange(),  # noqa: B008
        c: float = float("inf"),
        d: date = date(2024, 2, 29),
        e: frozenset[str] = frozenset("ba"),
        f: Place = Place(1.0),  # noqa: B008
    ): ...

    schema = schema_of(function)
    defaults = {n: s["default"] for n, s in schema["properties"].items() if "default" in s}

    assert "required" not in schema
    assert defaults == {"a": None, "d": "2024-02-29", "e": ["a", "b"], "f": {"lat": 1, "lon": 0}}


def test_a_parameter_whose_default_is_none_takes_null():
    """S2-23: `x: str = None` is written by people, and models send null for it."""

    @tool
    def function(x: str = None): ...  # noqa: RUF013

    assert function.parameters["properties"]["x"]["anyOf"] == ({"type": "string"}, {"type": "null"})
    assert function.check('{"x": null}') == {"x": None}


def test_string_annotations_are_resolved():
    """S2-23: `from __future__ import annotations` changes nothing, and the return type is free."""
    source = """
from __future__ import annotations
from typing import Annotated
from enum import Enum

class Size(Enum):
    SMALL = "s"

def function(size: Size, text: Annotated[str, "Words."] = "x") -> NotThere: ...
"""
    namespace = {}
    exec(source, namespace)

    def quoted(colour: "Colour"): ...

    made = tool(namespace["function"])

    assert made.parameters["properties"]["text"]["description"] == "Words."
    assert made.check({"size": "s"}) == {"size": namespace["Size"].SMALL}
    assert properties_of(quoted) == {"colour": {"$ref": "#/$defs/Colour"}}


def refuse_args(*numbers: int): ...
def refuse_kwargs(x: int, **options: str): ...
def refuse_complex(z: complex): ...
def refuse_strange(x: int, items: list[Strange]): ...
def refuse_callable(run: Callable[[int], str]): ...
def refuse_union(when: str | datetime): ...
def refuse_unresolved(x: "Missing"): ...  # noqa: F821
def refuse_positional(x: int, /): ...


@pytest.mark.parametrize(
    ("function", "parameter"),
    [
        (refuse_args, "*numbers"),
        (refuse_kwargs, "**options"),
        (refuse_complex, "z"),
        (refuse_strange, "items"),
        (refuse_callable, "run"),
        (refuse_union, "when"),
        (refuse_unresolved, "x"),
        (refuse_positional, "x"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_json_cannot_carry_is_refused_when_the_tool_is_made(function, parameter):
    """S2-23: InvalidInput names the parameter and the tool, and ends with the way out."""
    with pytest.raises(InvalidInput) as caught:
        tool(function)

    words = str(caught.value)
    assert words.startswith(f"parameter '{parameter}' of tool '{function.__name__}' ")
    assert ": " in words
    assert " at 0x" not in words


def yields():
    yield 1


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (5, "not int"),
        (Strange, "not Strange"),
        (classmethod(print), "classmethod"),
        (lambda: None, "pass name="),
        (yields, "return a list"),
    ],
    ids=["number", "class", "classmethod", "lambda", "generator"],
)
def test_what_is_no_function_is_refused(thing, words):
    """S2-23: a tool is made from something that can be called and returns one value."""
    with pytest.raises(InvalidInput) as caught:
        tool(thing)

    assert words in str(caught.value)


def test_the_decorator_can_say_more_than_the_function():
    """S2-23: name, description and settings given to the decorator win."""

    @tool(name="files/read", description="Read.", idempotent=True, approval=True, timeout=None)
    def read(path: str):
        """Not this."""

    made = tool(lambda x: x, name="same")

    assert (read.name, read.description) == ("files/read", "Read.")
    assert (read.idempotent, read.approval, read.timeout) == (True, True, None)
    assert (made.name, made(5)) == ("same", 5)


def test_a_schema_is_the_same_in_every_process():
    """S2-23: the request to a model is cached by its bytes, so no set order may leak into them."""
    program = """
from typing import Literal
from holdfast.tools import tool
@tool
def f(a: Literal["x", "y", "z"] = "x", b: set[str] = {"p", "q", "r"}, c: int | str | None = 1): ...
import msgspec; print(msgspec.json.encode(f.declaration).decode())
"""
    path = ":".join(sys.path)
    seen = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONPATH": path, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in "123"
    }

    assert len(seen) == 1


# ---- docstrings ----


def google(first, second, third):
    """Short.

    Arguments:
        first: One
            goes on.

            And on: here.
        second (dict[str, int]): Two.
        third:
            Three.

    Raises:
        first: never.
    """


def rest(first, second, third):
    """
    Short.

    :param first: One
        goes on. And on: here.
    :type first: int
    :param int second: Two.
    :param third: Three.
    :returns: nothing
        first: never.
    """


def numpy(first, second, third):
    """Short.

    Parameters
    ----------
    first : int
        One
        goes on. And on: here.
    second
        Two.
    third : str, optional
        Three.

    Returns
    -------
    first
        never.
    """


@pytest.mark.parametrize("function", [google, rest, numpy], ids=lambda f: f.__name__)
def test_parameters_are_described_in_three_styles(function):
    """S2-23: Google, reST and NumPy docstrings say the same; the description ends before them."""
    made = tool(function)
    texts = {name: part["description"] for name, part in made.parameters["properties"].items()}

    assert made.description == "Short."
    assert texts == {
        "first": "One goes on. And on: here.",
        "second": "Two.",
        "third": "Three.",
    }


def test_numpy_entries_may_share_their_words():
    """S2-23: `x, y : float` describes both."""

    def function(x, y):
        """
        Parameters
        ----------
        x, y : float
            A coordinate.
        """

    assert [part["description"] for part in properties_of(function).values()] == [
        "A coordinate."
    ] * 2


@pytest.mark.parametrize(
    ("docstring", "description"),
    [
        (None, ""),
        ("", ""),
        ("One line.", "One line."),
        ("Several.\n\n    Indented:\n        so.", "Several.\n\nIndented:\n    so."),
        ("Says Args: in a sentence.", "Says Args: in a sentence."),
        ("Short.\n\n    Returns:\n        A number.", "Short.\n\nReturns:\n    A number."),
        ("Short.\n\n    Args:\n", "Short."),
        ("Args:\n        x: Only this.", ""),
    ],
    ids=repr,
)
def test_the_description_is_what_stands_before_the_parameters(docstring, description):
    """S2-23: all of it, with its paragraphs; nothing is made up when there is none."""

    def function(x=0): ...

    function.__doc__ = docstring

    assert tool(function).description == description


# ---- kinds of functions ----


class Box:
    def __init__(self, number=0):
        self.number = number

    @tool
    def add(self, x: int) -> int:
        """Add to the box."""
        return self.number + x

    @tool
    async def add_soon(self, x: int) -> int:
        return self.number + x

    @tool
    @staticmethod
    def static(x: int) -> int:
        return x

    @staticmethod
    @tool
    def outer_static(x: int) -> int:
        return x

    @classmethod
    def classy(cls, x: int) -> str:
        return f"{cls.__name__} {x}"

    async def __call__(self, x: int) -> int:
        """Call the box."""
        return self.number + x


@functools.wraps(Box.classy)
def wrapped(*args, **kwargs):
    return Box.classy(*args, **kwargs)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (Box(40).add, 42),
        (Box(40).add_soon, 42),
        (Box.static, 2),
        (Box().outer_static, 2),
        (tool(Box.classy), "Box 2"),
        (tool(wrapped), "Box 2"),
        (tool(Box(40), name="box"), 42),
        (tool(functools.partial(Box.classy)), "Box 2"),
    ],
    ids=["method", "async", "static", "outer", "class", "wraps", "object", "partial"],
)
def test_self_and_cls_never_appear(made, expected):
    """S2-23: methods, static methods, wrapped functions and objects are tools like any other."""
    assert made.parameters["properties"] == {"x": {"type": "integer"}}
    assert asyncio.run(made.invoke('{"x": 2}')) == expected


def test_a_method_is_a_tool_of_its_object():
    """S2-23: taken from the class it has no object yet, and says so."""
    box = Box(1)

    assert box.add(1) == 2
    assert Box.add(box, 1) == 2
    assert box.add == box.add
    assert box.add != Box(1).add
    assert box.add.description == "Add to the box."
    with pytest.raises(InvalidInput, match="take it from an object"):
        asyncio.run(Box.add.invoke('{"x": 1}'))


def test_a_decorated_function_is_called_as_before():
    """S2-23: a direct call checks nothing and converts nothing, and any keyword is free."""

    @tool
    def join(self_, run, name="x", function=None):
        return self_, run, name, function

    assert join(1, "2", name=[3], function=4) == (1, "2", [3], 4)


# ---- arguments ----


@tool
def everything(
    number: int,
    ratio: float = 0.0,
    place: Place | None = None,
    colour: Colour = Colour.RED,
    when: datetime | None = None,
    tags: set[str] = frozenset(),
    pair: tuple[int, str] = (0, ""),
    only: Filter | None = None,
    names: dict[int, str] | None = None,
    positive: Annotated[int, msgspec.Meta(gt=0)] = 1,
    anything: Any = None,
):
    return None


def test_arguments_come_back_as_the_hinted_types():
    """S2-23: what JSON cannot say, the hints do; what was left out stays out."""
    text = json.dumps(
        {
            "number": 1,
            "ratio": 2,
            "place": {"lat": 1.5},
            "colour": "green",
            "when": "2024-02-29T12:00:00Z",
            "tags": ["a", "b"],
            "pair": [1, "x"],
            "only": {"colour": "red"},
            "names": {"1": "one"},
            "anything": {"deep": [1, None]},
        }
    )

    found = everything.check(text)

    assert found == {
        "number": 1,
        "ratio": 2.0,
        "place": Place(1.5),
        "colour": Colour.GREEN,
        "when": datetime(2024, 2, 29, 12, tzinfo=UTC),
        "tags": {"a", "b"},
        "pair": (1, "x"),
        "only": {"colour": Colour.RED},
        "names": {1: "one"},
        "anything": {"deep": [1, None]},
    }
    assert type(found["ratio"]) is float
    assert everything.check(json.loads(text)) == found


@pytest.mark.parametrize("text", ["", " ", "\n", "{}", {}], ids=repr)
def test_no_text_means_no_arguments(text):
    """S2-23: models send nothing at all for a tool without parameters."""

    @tool
    def now(): ...

    assert now.check(text) == {}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", "argument 'number' is missing: the arguments are number, ratio"),
        ("{", "arguments is not JSON: "),
        ('{"number": 1', "line 1, column 13"),
        ("number=1", "arguments is not JSON: "),
        ('{"number": 1} trailing', "arguments is not JSON: Extra data"),
        ("[1]", "arguments is one JSON object, not list"),
        ("null", "arguments is one JSON object, not null"),
        ('"{}"', "arguments is one JSON object, not str"),
        (b"{}", "arguments is one JSON object, not bytes"),
        (None, "arguments is one JSON object, not null"),
        ('{"number": NaN}', "holds NaN"),
        ('{"number": -Infinity}', "holds -Infinity"),
        ('{"number": 1e999}', "arguments holds 1e999"),
        ({"number": float("nan")}, "arguments.number is nan"),
        ('{"number": 1, "number": 2}', "arguments has the key 'number' twice"),
        ('{"number": 1, "only": {"limit": 1, "limit": 1}}', "arguments has the key 'limit' twice"),
        ('{"number": "\\ud800"}', "argument 'number' is wrong: Expected int, got str"),
        ({5: 1}, "has the key 5"),
        ('{"number": ' + "[" * 100_000, "arguments is nested too deeply"),
        ('{"number": ' + "[" * 100 + "]" * 100 + "}", "nested too deeply"),
        ('{"number": ' + "9" * 5000 + "}", "digits"),
        ('{"number": "1"}', "argument 'number' is wrong: Expected int, got str; wanted: "),
        ('{"number": 1.0}', 'got float; wanted: {"type":"integer"}'),
        ('{"number": true}', "argument 'number' is wrong: Expected int, got bool"),
        ('{"number": null}', "argument 'number' is wrong: Expected int, got null"),
        ('{"number": 1, "ratio": "1"}', "argument 'ratio' is wrong: Expected float, got str"),
        ('{"number": 1, "place": {}}', "argument 'place' is wrong: Object missing required field"),
        ('{"number": 1, "place": {"lat": "x"}}', "argument 'place.lat' is wrong: Expected float"),
        ('{"number": 1, "colour": "blue"}', 'value \'blue\'; wanted: {"enum":["green","red"]}'),
        ('{"number": 1, "when": "soon"}', "argument 'when' is wrong: Invalid RFC3339"),
        ('{"number": 1, "tags": [1]}', "argument 'tags[0]' is wrong: Expected str, got int"),
        ('{"number": 1, "pair": [1]}', "argument 'pair' is wrong: Expected array of length 2"),
        ('{"number": 1, "names": {"x": ""}}', "argument 'names' is wrong: Expected int, got str"),
        ('{"number": 1, "positive": 0}', "argument 'positive' is wrong: Expected int >= 1"),
        ('{"number": 1, "town": "x"}', "argument 'town' is unknown: the arguments are number, "),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_wrong_arguments_are_told_in_words_that_a_model_can_act_on(arguments, words):
    """S2-23: the argument by its name, what was found and what was wanted; no insides of ours."""
    with pytest.raises(InvalidInput) as caught:
        everything.check(arguments)

    assert words in str(caught.value)
    assert len(str(caught.value)) < 1000
    assert "Traceback" not in str(caught.value)
    assert " at 0x" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_an_error_does_not_repeat_a_book():
    """S2-23: a model that sent a megabyte is not sent it back."""
    with pytest.raises(InvalidInput) as wrong:
        everything.check({"number": 1, "colour": "x - at `$.number`" * 100_000})
    with pytest.raises(InvalidInput) as unknown:
        everything.check({"number": 1, "x" * 1_000_000: 1})

    assert str(wrong.value).startswith("argument 'colour' is wrong: Invalid enum value")
    assert len(str(wrong.value)) < 1000
    assert len(str(unknown.value)) < 1000


def test_a_type_that_checks_itself_is_heard():
    """S2-23: the words of a dataclass's own check reach the model."""

    @tool
    def book(when: Early): ...

    with pytest.raises(InvalidInput, match="argument 'when' is wrong: come before noon"):
        book.check('{"when": {"hour": 13}}')


@dataclass
class Early:
    hour: int

    def __post_init__(self):
        if self.hour > 11:
            raise ValueError("come before noon")


def test_a_tool_with_a_written_schema_has_its_names_checked():
    """S2-23: required names and unknown ones; the values are the tool's own business."""
    closed = Tool(
        "look",
        parameters={
            "type": "object",
            "properties": {"where": {"type": "string"}, "far": {}},
            "required": ["where"],
            "additionalProperties": False,
        },
    )
    open_ = Tool("look", parameters={"type": "object"})

    assert closed.check('{"where": 5}') == {"where": 5}
    assert open_.check('{"any": [1]}') == {"any": [1]}
    with pytest.raises(InvalidInput, match="'where' is missing: the arguments are where, far"):
        closed.check('{"far": 1}')
    with pytest.raises(InvalidInput, match="'near' is unknown"):
        closed.check('{"where": "", "near": 1}')


def test_checked_arguments_are_the_tools_own():
    """S2-23: a tool that changes its arguments does not change what the caller holds."""
    given = {"items": [1]}

    Tool("look").check(given)["items"].append(2)

    assert given == {"items": [1]}


def test_a_tool_bound_to_an_older_declaration_still_checks_its_hints():
    """S3-35: the stored schema may be older than the function; neither is passed over."""

    @tool
    def look(where: int): ...

    older = Tool("look", parameters={"type": "object", "properties": {"place": {}}}).bind(look)

    with pytest.raises(InvalidInput, match="Expected int"):
        older.check('{"where": "x"}')
    with pytest.raises(InvalidInput, match="missing required field where"):
        older.check("{}")


# ---- running ----


def test_an_async_function_runs_in_the_loop():
    """S2-23: in the same thread, with the arguments converted."""

    @tool
    async def look(colour: Colour):
        return colour, threading.current_thread()

    assert asyncio.run(look.invoke('{"colour": "red"}')) == (Colour.RED, threading.main_thread())


def test_a_plain_function_runs_in_a_thread_and_the_loop_goes_on():
    """S2-23: a slow tool does not stop the others, and sees the caller's context."""
    context = contextvars.ContextVar("context")
    go_on = threading.Event()

    @tool
    def look():
        return go_on.wait(10), threading.current_thread(), context.get()

    async def main():
        context.set("the caller's")
        task = asyncio.create_task(look.invoke(""))
        await asyncio.sleep(0.02)
        go_on.set()
        return await task

    was_set, thread, value = asyncio.run(main())

    assert was_set
    assert thread is not threading.main_thread()
    assert value == "the caller's"


def test_a_plain_function_that_returns_an_awaitable_is_awaited():
    """S2-23: a decorator may hide that a function is async."""

    async def inside(x):
        return x + 1

    @tool
    def look(x: int):
        return inside(x)

    assert asyncio.run(look.invoke({"x": 1})) == 2


def test_a_written_tool_is_run_with_keywords():
    """S2-23: plain and async functions alike."""

    async def soon(**kwargs):
        return kwargs

    assert asyncio.run(Tool("a", run=dict).invoke('{"x": 1}')) == {"x": 1}
    assert asyncio.run(Tool("a", run=soon).invoke('{"x": 1}')) == {"x": 1}


def test_what_a_tool_raises_is_passed_on_unchanged():
    """S2-23: whoever runs the turn decides what becomes of it."""
    error = LookupError("nothing there")

    @tool
    def look():
        raise error

    @tool
    async def look_soon():
        raise error

    for each in (look, look_soon):
        with pytest.raises(LookupError) as caught:
            asyncio.run(each.invoke(""))
        assert caught.value is error


def test_a_stray_stop_iteration_does_not_hang_the_turn():
    """S2-23: next() on an empty iterator in a plain function ends as a RuntimeError."""

    @tool(timeout=5)
    def first(items: list[int]):
        return next(iter(items))

    with pytest.raises(RuntimeError, match="StopIteration"):
        asyncio.run(first.invoke('{"items": []}'))


def test_wrong_arguments_never_reach_the_function():
    """S2-23: the check comes first."""
    ran = []

    @tool
    def look(x: int):
        ran.append(x)

    with pytest.raises(InvalidInput):
        asyncio.run(look.invoke('{"x": "1"}'))

    assert ran == []


def test_a_tool_that_takes_too_long_is_left():
    """S2-23: TimeoutError names the tool and its limit; a thread is left to end by itself."""
    go_on = threading.Event()

    @tool(timeout=0.05)
    def stuck():
        go_on.wait(10)

    @tool(timeout=0.05)
    async def asleep():
        await asyncio.sleep(10)

    async def main():
        times = []
        for each in (stuck, asleep):
            start = time.monotonic()
            with pytest.raises(TimeoutError, match=rf"tool '{each.name}' took over 0\.05 s"):
                await each.invoke("")
            times.append(time.monotonic() - start)
        go_on.set()
        return times

    assert all(0.04 < seconds < 2 for seconds in asyncio.run(main()))


def test_a_tools_own_timeout_error_is_its_own():
    """S2-23: only the limit of the tool is put in our words."""

    @tool
    async def fetch():
        raise TimeoutError("the server did not answer")

    with pytest.raises(TimeoutError, match="the server did not answer"):
        asyncio.run(fetch.invoke(""))


@pytest.mark.parametrize("is_async", [True, False])
def test_cancelling_passes_through(is_async):
    """S2-23: a cancelled turn does not wait for its tools."""
    go_on = threading.Event()

    async def soon():
        await asyncio.sleep(10)

    made = tool(soon) if is_async else Tool("stuck", run=lambda: go_on.wait(10), timeout=None)

    async def main():
        task = asyncio.create_task(made.invoke(""))
        await asyncio.sleep(0.02)
        start = time.monotonic()
        task.cancel()
        await asyncio.wait([task], timeout=5)
        go_on.set()
        return task.cancelled(), time.monotonic() - start

    cancelled, seconds = asyncio.run(main())

    assert cancelled
    assert seconds < 2


def test_importing_the_module_loads_no_event_loop():
    """A program that only declares tools does not pay for one."""
    program = "import sys, holdfast.tools; print({'asyncio', 'logging'} & set(sys.modules))"

    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )

    assert done.stdout.strip() == "set()"
