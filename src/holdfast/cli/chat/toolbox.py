"""Tools from a file of the user's own: the functions in it that `@tool` has made tools of."""

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.failures import NOT_FOUND, USAGE, Failure

if TYPE_CHECKING:
    from holdfast.tools import Tool


def tools_in(path: Path) -> "tuple[Tool, ...]":
    """The tools that a file of Python makes; it is run for that."""
    from holdfast.tools import Tool

    if not path.is_file():
        raise Failure(f"there is no file {path}: name one of Python with tools in it", NOT_FOUND)
    try:
        names = runpy.run_path(str(path))
    except (Exception, SystemExit) as error:
        raise Failure(
            f"{path} cannot be run ({type(error).__name__}: {error}): mend it", USAGE
        ) from error
    found = {each.name: each for each in names.values() if isinstance(each, Tool)}
    if not found:
        raise Failure(f"{path} has no tools: put @holdfast.tool above a typed function", USAGE)
    return tuple(found.values())
