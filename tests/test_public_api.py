"""The surface: `import holdfast` gives the public names and nothing else."""

import importlib
import re

import pytest

import holdfast

# The whole surface, as designed. A name outside it needs a change of the design first.
DESIGNED = (
    "Message",
    "Role",
    "ToolCall",
    "Tool",
    "tool",
    "Usage",
    "Settings",
    "CancelToken",
    "History",
    "Session",
    "SessionManager",
    "TurnResult",
    "open_store",
    "open_provider",
    "open",
    "HoldfastError",
)


def test_all_holds_the_designed_names():
    assert sorted(holdfast.__all__) == sorted(DESIGNED)


def test_dir_shows_the_public_names_and_dunders_only():
    """Tab completion is documentation: a helper that shows up there gets used."""
    shown = {name for name in dir(holdfast) if not re.fullmatch(r"__\w+__", name)}

    assert shown == set(DESIGNED)


@pytest.mark.parametrize("name", DESIGNED)
def test_a_public_name_is_the_object_at_its_home(name):
    """One class, one identity: isinstance works whichever way it was imported."""
    value = getattr(holdfast, name)

    assert value.__module__.startswith("holdfast.")
    assert getattr(importlib.import_module(value.__module__), name) is value
    assert getattr(holdfast, name) is value


@pytest.mark.parametrize("name", ["Sesion", "messages_of", "_private"])
def test_an_unknown_name_is_named_in_the_error(name):
    with pytest.raises(AttributeError, match=rf"holdfast.*{name}"):
        getattr(holdfast, name)


def test_importing_an_unknown_name_is_an_import_error():
    with pytest.raises(ImportError, match="Sesion"):
        exec("from holdfast import Sesion", {})


def test_a_star_import_gives_exactly_the_public_names():
    names = {}
    exec("from holdfast import *", names)

    assert set(names) - {"__builtins__"} == set(DESIGNED)
