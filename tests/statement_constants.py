"""Makes a module of plain constants out of a module that compiles its statements with SQLAlchemy.

What a store runs is compiled once for all and kept as text, so that whoever opens the store has
nothing to load and nothing to compile. `sqlite_statements.py` and `postgresql_statements.py` are
the two that are made so; each writes its module when it is run, and shows it with `--print`.
"""

import ast
import inspect
import re
import sys

WIDTH = 100


def module(docstring, *sources):
    """The text of a module with every public constant of `sources`, in their order.

    A constant has a name in capitals, and is made of strings, numbers, truth values, tuples and
    dicts. A text that has a name already is called by it inside of others.
    """
    names, parts = {}, []
    for name, value in (pair for source in sources for pair in _constants(source)):
        parts.append(f"{name} = {_shown(value, names, room=WIDTH - len(name) - 3)}")
        if isinstance(value, str):
            names[value] = name
    return "\n".join([f'"""{docstring}\n"""\n', *parts]) + "\n"


def _constants(source):
    """What a module calls in capitals, without what it has imported."""
    for node in ast.parse(inspect.getsource(source)).body:
        name = ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else ""
        if name.isupper() and not name.startswith("_"):
            yield name, getattr(source, name)


def main(path, text):
    """What the script is run for."""
    if "--print" in sys.argv:
        print(text, end="")
    else:
        path.write_text(text, encoding="utf-8")


def _shown(value, names, room, indent=""):
    """A value as the formatter would write it, where `room` characters are left in the line."""
    if isinstance(value, str):
        return names.get(value) or _text(value, room, indent)
    if isinstance(value, tuple):
        return _several([(None, each) for each in value], "()", names, room, indent)
    if isinstance(value, dict):
        return _several(list(value.items()), "{}", names, room, indent)
    assert value is None or isinstance(value, int)
    return repr(value)


def _several(items, brackets, names, room, indent):
    inner = indent + "    "
    made = []
    for key, value in items:
        start = "" if key is None else f"{_shown(key, names, WIDTH)}: "
        made.append(start + _shown(value, names, WIDTH - len(inner + start) - 1, inner))
    comma = "," if len(made) == 1 and brackets == "()" else ""
    line = f"{brackets[0]}{', '.join(made)}{comma}{brackets[1]}"
    if len(line) <= room and "\n" not in line:
        return line
    return "\n".join([brackets[0], *(f"{inner}{each}," for each in made), indent + brackets[1]])


def _text(text, room, indent):
    """A text; where it is too long for a line, its lines in brackets, broken between words."""
    if len(line := _quoted(text)) <= room:
        return line
    inner = indent + "    "
    if len(line) <= WIDTH - len(inner):
        return f"(\n{inner}{line}\n{indent})"
    pieces = [""]
    for word in re.findall(r"\s*\S+[^\S\n]*\n?|\s+", text):
        if pieces[-1].endswith("\n") or len(_quoted(pieces[-1] + word)) > WIDTH - len(inner):
            pieces.append("")
        pieces[-1] += word
    return "\n".join(["(", *(inner + _quoted(each) for each in pieces), f"{indent})"])


def _quoted(text):
    """A literal, in double quotes unless the other ones need fewer escapes."""
    quote = "'" if text.count('"') > text.count("'") else '"'
    plain = text.replace("\\", "\\\\").replace(quote, f"\\{quote}")
    return quote + plain.replace("\n", "\\n").replace("\t", "\\t") + quote
