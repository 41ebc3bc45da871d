"""The real local model, for tests that need one: its weights, pulled once for all runs."""

import asyncio
import importlib.util
from functools import cache

import pytest

from holdfast.errors import HoldfastError
from holdfast.providers.local import weights

NAME = "smollm2-135m"


@cache
def _weights():
    """The file, or why there is none."""
    if importlib.util.find_spec("xllamacpp") is None:
        return "the extra 'local' is not installed: pip install 'holdfast[local]'"
    try:
        return weights.weights(NAME) or asyncio.run(weights.pull(NAME))
    except HoldfastError as error:
        return f"the weights of {NAME} cannot be pulled: {error}"


def need_model():
    """The weights; without them the test is skipped, by name."""
    found = _weights()
    if isinstance(found, str):
        pytest.skip(found)
    return found
