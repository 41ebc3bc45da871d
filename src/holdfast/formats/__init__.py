"""Formats in which conversations leave holdfast and come back.

    from holdfast import formats

    archive = await sessions.export("telegram:1")
    chosen = formats.named("markdown")
    data = b"".join(chosen.write([archive]))
    print(chosen.losses(archive))            # ["not in Markdown: 3 thinking signatures", ...]

    for archive in formats.recognised(data).read(data).archives:
        await sessions.restore(archive)

| name     | file     | holds                                                 | read again |
|----------|----------|-------------------------------------------------------|------------|
| json     | .json    | everything, of any number of conversations            | yes        |
| nanobot  | .jsonl   | the messages of the branch in use, as nanobot has them| yes        |
| markdown | .md      | the same, for people                                  | no         |

Each is a module with one `Format`. Others come from packages that register one in the entry-point
group `holdfast.formats`.
"""

from importlib import import_module

from holdfast.errors import InvalidInput
from holdfast.formats.base import Format, Reading

__all__ = ["Format", "Reading", "named", "names", "recognised"]

# In the order in which they are asked whether a file is theirs.
_MODULES = {"json": "document", "nanobot": "nanobot", "markdown": "markdown"}
_GROUP = "holdfast.formats"


def names() -> tuple[str, ...]:
    """Of all formats there are."""
    return (*_MODULES, *sorted(set(_registered()) - set(_MODULES)))


def named(name: str) -> Format:
    """The format of this name, or InvalidInput."""
    if module := _MODULES.get(name):
        found: Format = import_module(f"holdfast.formats.{module}").FORMAT
        return found
    if (registered := _registered().get(name)) is None:
        raise InvalidInput(f"format {name[:80]!r}", f"is unknown: there are {', '.join(names())}")
    loaded = registered.load()  # type: ignore[attr-defined]
    if not isinstance(loaded, Format):
        raise InvalidInput(f"format {name!r}", "is registered, but is no Format")
    return loaded


def recognised(data: bytes) -> Format:
    """The format that data is in, by what it holds; InvalidInput if it is in none."""
    for name in names():
        found = named(name)
        if found.recognises(data):
            return found
    shown = ", ".join(names())
    raise InvalidInput("the file", f"is in no format that is known here ({shown}): name one")


def _registered() -> dict[str, object]:
    from importlib.metadata import entry_points

    return {each.name: each for each in entry_points(group=_GROUP)}
