"""Imports point one way.

The modules of holdfast form layers. Each may import the layers above it in LAYERS and its
siblings in the same layer; nothing imports the faces. The imports are read from the source
with `ast`, those inside functions and under TYPE_CHECKING too, so nothing has to be installed
and nothing is run. A few things that have no place in the package are looked for as well.

The checker is a function from sources to sentences, and the second half of this file feeds
it with small wrong sources, to see that it finds them.
"""

import ast
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "src"

VALUES = (
    "text",
    "frozen",
    "strict",
    "ids",
    "identity",
    "keys",
    "strict",
    "identity",
    "parts",
    "messages",
    "entries",
    "usage",
    "ids",
    "keys",
    "cancel",
    "events",
    "tools",
    "_signature",
    "_arguments",
    "_threads",
    "settings",
    "notes",
)
FACES = ("sync", "testing", "adapters", "formats", "telemetry", "cli", "web", "__main__")
LAYERS = (
    ("errors",),
    VALUES,
    ("codec",),
    ("private_files", "file_lock"),
    ("history", "window"),
    ("stores", "providers"),
    ("turn", "memory", "consolidation", "conversation", "results", "steps"),
    (
        "session",
        "manager",
        "streams",
        "workshop",
        "workbench",
        "erasing",
        "bindings",
        "inputs",
        "turn_queue",
        "outline",
        "peek",
        "preview",
        "bills",
        "branching",
        "forking",
        "archive",
        "health",
        "child",
        "children",
        "subagent",
        "live",
        "loop_thread",
        "removal",
        "retention",
        "sweeping",
    ),
    FACES,
    ("__main__",),
)
LAYER_OF = {unit: number for number, layer in enumerate(LAYERS) for unit in layer}

# In these layers even neighbours keep apart, or one could not be had without the other.
APART = {LAYER_OF["stores"], LAYER_OF["sync"]}
# `python -m holdfast` is the program, and `holdfast export` writes formats
STARTS = {"__main__": {"cli"}, "cli": {"formats"}}

# Which modules may import what is not in the standard library.
THIRD_PARTY = {
    "msgspec": {
        *VALUES,
        "codec",
        "window",
        "stores",
        "providers",
        "steps",
        "consolidation",
        "testing",
    },
    "jsonschema": {"steps"},
    "referencing": {"steps"},  # of jsonschema, which looks up references by it
    "sqlalchemy": {"stores"},
    "asyncpg": {"stores"},
    "httpx2": {"providers", "testing"},
    "splintr": {"providers"},
    "ctok": {"providers"},
    # The vendors' SDKs, asked by `testing.replay.sdks` where they are installed.
    **{sdk: {"testing"} for sdk in ("anthropic", "openai", "google", "ollama", "httpx")},
    "xllamacpp": {"providers"},
    "nanobot": {"adapters"},  # where it is installed, it is given a store of ours
    "click": {"cli"},
    "prompt_toolkit": {"cli"},
}

# These run code that they find in data.
FORBIDDEN_MODULES = {"pickle", "marshal", "shelve", "yaml"}
FORBIDDEN_NAMES = {
    "eval": "eval runs code that it finds in data",
    "exec": "exec runs code that it finds in data",
    "builtins.eval": "eval runs code that it finds in data",
    "builtins.exec": "exec runs code that it finds in data",
    "uuid.uuid4": "uuid4 does not sort by time; ids come from holdfast.ids",
}
# The event loop keeps only a weak reference: a task nobody holds may vanish while it runs.
TASK_MAKERS = {"asyncio.create_task", "asyncio.ensure_future"}


@dataclass(frozen=True)
class Import:
    """`target` is the dotted name as far as it can be a module. `typing`: for checkers only."""

    target: str
    line: int
    typing: bool
    inside_function: bool


# ---- reading ----


def read_package(folder=SOURCES):
    """Return the source of each module by its dotted name."""
    sources = {}
    for path in sorted((folder / "holdfast").rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        sources[name] = path.read_text(encoding="utf-8")
    return sources


def imports_of(tree):
    """Yield every import of a module. A relative one has a target that begins with a dot."""
    todo = [(node, False, False) for node in tree.body]
    while todo:
        node, typing, inside = todo.pop()
        for target in _targets(node):
            yield Import(target, node.lineno, typing, inside)
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if isinstance(node, ast.If) and _is_type_checking(node.test):
            todo += [(child, True, inside) for child in node.body]
            todo += [(child, typing, inside) for child in node.orelse]
        else:
            todo += [(child, typing, inside) for child in ast.iter_child_nodes(node)]


def _targets(node):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        start = "." * node.level + (node.module or "")
        return [f"{start}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
        ("import_module", "__import__")
    ):
        literal = [arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant)]
        return [value for value in literal if isinstance(value, str)]
    return []


def _is_type_checking(test):
    return ast.unparse(test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


# ---- judging ----


def complaints(sources):
    """Return a sentence for each thing in `sources` that the rules do not allow."""
    found = []
    edges = {}
    for module, source in sources.items():
        tree = ast.parse(source)
        imports = list(imports_of(tree))
        if module != "holdfast" and _unit(module) not in LAYER_OF:
            found.append(f"{module} is in no layer: add it to LAYERS")
            continue
        for each in imports:
            sentence = _judge_root(each) if module == "holdfast" else _judge(module, each)
            if sentence:
                found.append(f"{module}:{each.line} {sentence}")
        found += [f"{module}:{line} {what}" for line, what in _forbidden(tree)]
        edges[module] = _runs(module, imports, sources)
    return sorted(found) + _cycles(edges)


def _unit(module):
    """holdfast.stores.sqlite belongs to stores."""
    return module.split(".")[1] if "." in module else ""


def _judge_root(each):
    """holdfast/__init__.py loads the rest on demand, and imports nothing of it by itself."""
    top = each.target.split(".")[0]
    if each.target.startswith("."):
        return f"imports {each.target}: write relative imports out"
    if each.typing or (top == "holdfast" and each.inside_function):
        return None
    if top == "holdfast" or top not in sys.stdlib_module_names:
        return f"imports {each.target} at once: load it when it is asked for"
    return None


def _judge(module, each):
    """Return what is wrong with one import, or None."""
    top = each.target.split(".")[0]
    if each.target.startswith("."):
        return f"imports {each.target}: write relative imports out"
    if top in FORBIDDEN_MODULES:
        return f"imports {top}, which runs code that it finds in data"
    if top == "holdfast":
        return _judge_ours(_unit(module), each)
    if top in sys.stdlib_module_names or (each.typing and top == "_typeshed"):
        return None
    if _unit(module) not in THIRD_PARTY.get(top, ()):
        return f"imports {top}, which is not allowed here: see THIRD_PARTY"
    return None


def _judge_ours(here, each):
    there = _unit(each.target)
    if there not in LAYER_OF:
        return f"imports {each.target}, which is in no layer: import a name from its own module"
    if here == there:
        return None
    if LAYER_OF[there] > LAYER_OF[here]:
        return f"imports {each.target}, which is below {here}: imports point upwards only"
    is_started = there in STARTS.get(here, ())
    if LAYER_OF[there] == LAYER_OF[here] in APART and not each.typing and not is_started:
        return f"imports {each.target}: {here} and {there} keep apart"
    return None


def _forbidden(tree):
    """Yield line and sentence for each forbidden name, and each task that nobody keeps."""
    aliases = _aliases(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            sentence = FORBIDDEN_NAMES.get(_dotted(node, aliases))
            if sentence:
                yield node.lineno, sentence
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            maker = _dotted(node.value.func, aliases)
            if maker in TASK_MAKERS:
                yield node.lineno, f"drops the result of {maker}: a task nobody holds may vanish"


def _aliases(tree):
    """Map each imported name to what it stands for: `from uuid import uuid4 as new`."""
    aliases = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            aliases |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            aliases |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    return aliases


def _dotted(node, aliases):
    if isinstance(node, ast.Name):
        return aliases.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value, aliases)}.{node.attr}"
    return "?"


# ---- cycles ----


def _runs(module, imports, sources):
    """Return the modules that importing or using `module` runs, as far as they are ours."""
    reached = set()
    for each in imports:
        if each.typing or not each.target.startswith("holdfast."):
            continue
        parts = each.target.split(".")
        prefixes = [".".join(parts[:n]) for n in range(2, len(parts) + 1)]
        known = [name for name in prefixes if name in sources]
        # Its packages run first, unless they are ours and running already.
        reached |= {name for name in known[:-1] if not f"{module}.".startswith(f"{name}.")}
        reached |= set(known[-1:])
    return reached - {module}


def _cycles(edges):
    """Return a sentence for each cycle met on a walk through `edges`."""
    found = []
    done = set()

    def walk(module, path):
        if module in path:
            found.append("cycle: " + " -> ".join([*path[path.index(module) :], module]))
        elif module not in done:
            for target in sorted(edges.get(module, ())):
                walk(target, [*path, module])
            done.add(module)

    for module in sorted(edges):
        if module != "holdfast":  # it reaches everything, on demand
            walk(module, [])
    return found


# ---- the package ----


def test_the_package_keeps_to_its_layers():
    """Every import of every module points up or sideways, and nothing forbidden is used."""
    sources = read_package()
    found = complaints(sources)

    assert "holdfast" in sources
    assert len(sources) > 1
    assert not found, "\n".join(found)


# ---- the checker ----


def test_good_sources_are_not_reported():
    assert (
        complaints(
            {
                "holdfast": (
                    "from importlib import import_module\n"
                    "from typing import TYPE_CHECKING\n"
                    "if TYPE_CHECKING:\n    from holdfast.messages import Message as Message\n"
                    "def __getattr__(name):\n    from holdfast.messages import Message\n"
                ),
                "holdfast.errors": "from __future__ import annotations\nimport json",
                "holdfast.messages": (
                    "import uuid\nfrom msgspec import Struct\nfrom holdfast.parts import Part\n"
                    "uuid.UUID(int=0)"
                ),
                "holdfast.parts": (
                    "import typing\n"
                    "if typing.TYPE_CHECKING:\n    from holdfast.messages import Message"
                ),
                "holdfast.codec": "from holdfast.codec.rows import read",
                "holdfast.codec.rows": "from holdfast.codec import names\nimport msgspec",
                "holdfast.codec.names": "from holdfast import errors",
                "holdfast.stores.base": (
                    "from typing import TYPE_CHECKING\n"
                    "if TYPE_CHECKING:\n    from holdfast.providers.base import Provider"
                ),
                "holdfast.turn": (
                    "import asyncio\nfrom holdfast import stores\nimport holdfast.window.plan\n"
                    "async def run():\n    task = asyncio.create_task(go())\n    await task"
                ),
                "holdfast.cli.chat": "from holdfast.cli.words import hi\nimport holdfast.manager",
            }
        )
        == []
    )


@pytest.mark.parametrize(
    ("module", "source", "said"),
    [
        # layers
        ("holdfast.errors", "from holdfast.messages import Message", "below errors"),
        ("holdfast.messages", "import holdfast.codec.rows", "below messages"),
        ("holdfast.window.plan", "from holdfast import stores", "below window"),
        ("holdfast.history", "def f():\n    from holdfast.turn import run", "below history"),
        ("holdfast.history", "class A:\n    import holdfast.turn", "below history"),
        ("holdfast.history", "try:\n    import holdfast.turn\nexcept E: pass", "below history"),
        (
            "holdfast.tools",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import holdfast.session",
            "below tools",
        ),
        (
            "holdfast.tools",
            "if TYPE_CHECKING:\n    pass\nelse:\n    import holdfast.session",
            "below tools",
        ),
        (
            "holdfast.turn",
            "import importlib\nimportlib.import_module('holdfast.session')",
            "below turn",
        ),
        ("holdfast.session", "import holdfast.testing", "below session"),
        # neighbours that keep apart
        ("holdfast.stores.sql", "from holdfast.providers import base", "keep apart"),
        ("holdfast.providers.x", "def f():\n    import holdfast.stores", "keep apart"),
        ("holdfast.cli.chat", "from holdfast.web import serve", "keep apart"),
        ("holdfast.sync", "import holdfast.formats.openai", "keep apart"),
        # what is in no layer
        ("holdfast.helpers", "", "holdfast.helpers is in no layer"),
        ("holdfast.messages", "from holdfast.helpers import f", "in no layer"),
        ("holdfast.messages", "import holdfast", "in no layer"),
        ("holdfast.codec", "from holdfast import Message", "in no layer"),
        # how
        ("holdfast.messages", "from . import parts", "relative"),
        ("holdfast.messages", "from .parts import Part", "relative"),
        ("holdfast.stores.sql", "from ..errors import Conflict", "relative"),
        ("holdfast", "from .messages import Message", "relative"),
        # the root
        ("holdfast", "from holdfast.messages import Message", "at once"),
        ("holdfast", "try:\n    import msgspec\nexcept ImportError: pass", "at once"),
        # third parties
        ("holdfast.errors", "import msgspec", "msgspec, which is not allowed"),
        ("holdfast.history", "from msgspec.json import encode", "msgspec, which is not allowed"),
        ("holdfast.messages", "import attrs", "attrs, which is not allowed"),
        ("holdfast.session", "def f():\n    import requests", "requests, which is not allowed"),
        # what has no place here
        ("holdfast.codec", "import pickle", "runs code"),
        ("holdfast.codec", "from marshal import loads", "runs code"),
        ("holdfast.codec", "def f():\n    import shelve", "runs code"),
        ("holdfast.formats.x", "import yaml", "runs code"),
        ("holdfast.codec", "eval('1')", "eval runs code"),
        ("holdfast.codec", "import builtins as b\nb.exec('1')", "exec runs code"),
        ("holdfast.ids", "import uuid\nnew = uuid.uuid4", "uuid4"),
        ("holdfast.ids", "from uuid import uuid4 as new\nnew()", "uuid4"),
        ("holdfast.turn", "import asyncio\nasyncio.create_task(f())", "drops the result"),
        ("holdfast.turn", "from asyncio import create_task\ncreate_task(f())", "drops the result"),
        ("holdfast.turn", "import asyncio as a\na.ensure_future(f())", "drops the result"),
    ],
)
def test_a_wrong_source_is_reported(module, source, said):
    (found,) = complaints({module: source})

    assert found.startswith(module)
    assert said in found


def test_the_line_is_told():
    (found,) = complaints({"holdfast.errors": "import json\n\nimport holdfast.ids\n"})

    assert found.startswith("holdfast.errors:3 ")


@pytest.mark.parametrize(
    "sources",
    [
        {
            "holdfast.parts": "import holdfast.messages",
            "holdfast.messages": "from holdfast.parts import Part",
        },
        {
            "holdfast.parts": "def f():\n    from holdfast.messages import Message",
            "holdfast.messages": "from holdfast.parts import Part",
        },
        {
            "holdfast.ids": "import holdfast.keys",
            "holdfast.keys": "import holdfast.text",
            "holdfast.text": "import holdfast.ids",
        },
        # Importing a module of a package runs the package first.
        {
            "holdfast.history": "from holdfast.window.plan import plan",
            "holdfast.window": "from holdfast.history import History",
            "holdfast.window.plan": "",
        },
    ],
    ids=["two", "in a function", "three", "through a package"],
)
def test_a_cycle_is_reported(sources):
    (found,) = complaints(sources)

    assert found.startswith("cycle: ")
    assert found.count("->") == (3 if len(sources) == 3 and "holdfast.ids" in sources else 2)


def test_a_cycle_for_type_checkers_is_none():
    source = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import holdfast."

    assert complaints({"holdfast.ids": source + "keys", "holdfast.keys": source + "ids"}) == []


def test_modules_are_found_by_their_names(tmp_path):
    for name in ("__init__.py", "errors.py", "stores/__init__.py", "stores/sql.py"):
        path = tmp_path / "holdfast" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("# nothing")

    assert sorted(read_package(tmp_path)) == [
        "holdfast",
        "holdfast.errors",
        "holdfast.stores",
        "holdfast.stores.sql",
    ]
