"""Makes the types of `holdfast.sync` out of those of the asynchronous classes.

    python tests/sync_stub.py           writes src/holdfast/sync/__init__.pyi
    python tests/sync_stub.py --print   shows it

The rules are those of `holdfast.sync.faces`, on source text: no `async`, an async iterator is a
generator, one of our objects is its face. Signatures and docstrings are taken as they stand, with
the imports that they need. tests/test_sync.py holds the file against what this makes.
"""

import ast
import sys
from itertools import chain
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "holdfast"
STUB = SOURCE / "sync" / "__init__.pyi"

CLASSES = {  # where they are, a class behind its base, whose names it is given too
    "SessionManager": ["manager:SessionManager"],
    "Session": ["session:Session"],
    "Subagent": ["child:Child", "subagent:Subagent"],
    "Stream": ["streams:Stream"],
    "Peek": ["peek:Peek"],
    "Memory": ["memory:Memory"],
    "Store": ["stores.base:Store"],
    "Tenant": ["stores.base:Tenant"],
    "Provider": ["providers.base:Provider"],
}
MADE = ("SessionManager", "Memory")  # by those who use them
FUNCTIONS = ["manager:open", "stores:open_store", "providers:open_provider"]
RENAMED = {"__aenter__": "__enter__", "__aexit__": "__exit__", "__aiter__": "__iter__"}
RENAMED["aclose"] = "close"
ITERATORS = {"AsyncIterator", "AsyncGenerator"}
# A model may be passed as either.
GIVEN = {"Model": "str | Provider | AsyncProvider", "Provider": "Provider | AsyncProvider"}
GIVEN["Talk"] = GIVEN["Whose"] = "Session"  # what a memory has to do with of one
HEADER = '"""Made by tests/sync_stub.py of the asynchronous classes. Do not edit."""'


def stub():
    """The text of the file."""
    needed, body = set(), []
    for name, places in CLASSES.items():
        members = {}
        for place in places:
            tree, node = _find(place)
            found = dict(_members(node, is_made=name in MADE))
            needed |= set(_imports(place, tree, found.values()))
            members |= found
        body.append(ast.ClassDef(name, [], [], [*members.values()], [], type_params=[]))
    for place in FUNCTIONS:
        tree, node = _find(place)
        body.append(_function(node))
        needed |= set(_imports(place, tree, body[-1:]))
    return "\n\n".join([HEADER, "\n".join(sorted(needed)), *map(ast.unparse, body)]) + "\n"


def _find(place):
    module, name = place.split(":")
    path = SOURCE / module.replace(".", "/")
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return tree, next(each for each in tree.body if getattr(each, "name", None) == name)


def _members(node, *, is_made):
    """What a class has, by name; with how it is made, if callers make it."""
    for each in node.body:
        if isinstance(each, ast.Expr):
            yield "__doc__", each
        elif isinstance(each, ast.AnnAssign) and not each.target.id.startswith("_"):
            yield each.target.id, each
        elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            if each.name == "__init__":
                yield from _attributes(each)
            if (
                not each.name.startswith("_")
                or each.name in RENAMED
                or (is_made and each.name == "__init__")
            ):
                yield each.name, _function(each)


def _attributes(init):
    """Those that a caller may read: `self.result: X = ...`, and `self.name = name`."""
    types = {each.arg: each.annotation for each in init.args.args}
    for each in init.body:
        target = (
            each.target if isinstance(each, ast.AnnAssign) else getattr(each, "targets", [0])[0]
        )
        is_own = isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self"
        if is_own and not target.attr.startswith("_"):
            found = each.annotation if isinstance(each, ast.AnnAssign) else types[each.value.id]
            yield (
                target.attr,
                ast.AnnAssign(ast.Name(target.attr), _Returned().visit(found), None, 1),
            )


def _function(node):
    kept = [node.body[0]] if ast.get_docstring(node) else []
    decorators = [each for each in node.decorator_list if ast.unparse(each) == "property"]
    made = ast.FunctionDef(
        RENAMED.get(node.name, node.name),
        _Given().visit(node.args),
        [*kept, ast.Expr(ast.Constant(...))],
        decorators,
        _Returned().visit(node.returns),
        type_params=[],
    )
    return ast.fix_missing_locations(made)


class _Given(ast.NodeTransformer):
    def visit_Name(self, node):
        return ast.parse(GIVEN.get(node.id, node.id), mode="eval").body


class _Returned(ast.NodeTransformer):
    def visit_Constant(self, node):
        return ast.parse(node.value, mode="eval").body if isinstance(node.value, str) else node

    def visit_Name(self, node):
        return ast.Name("Iterator" if node.id in ITERATORS else node.id)


def _imports(place, tree, body):
    """The lines that bring what this part of the text speaks of."""
    used = {node.id for each in body for node in ast.walk(each) if isinstance(node, ast.Name)}
    nested = (each.body for each in tree.body if isinstance(each, ast.If))  # for checkers alone
    for node in [*tree.body, *chain.from_iterable(nested)]:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) in used - {*CLASSES}:
                    yield ast.unparse(ast.ImportFrom(node.module, [alias], 0))
        elif isinstance(node, ast.Assign | ast.ClassDef):
            name = node.name if isinstance(node, ast.ClassDef) else ast.unparse(node.targets[0])
            if name in used - {*CLASSES}:
                yield f"from holdfast.{place.split(':')[0]} import {name}"
    if "Iterator" in used:
        yield "from collections.abc import Iterator"
    if "AsyncProvider" in used:
        yield "from holdfast.providers.base import Provider as AsyncProvider"


if __name__ == "__main__":
    if "--print" in sys.argv:
        print(stub())
    else:
        STUB.write_text(stub(), encoding="utf-8")
