"""Tools for testing what is built on holdfast, and holdfast itself.

| module          | what it gives you                                                              |
|-----------------|--------------------------------------------------------------------------------|
| `contract`      | `StoreContract`: subclass it, and pytest runs every promise against your store |
| `fake_provider` | `FakeProvider`: a model that answers what it is told to                        |
| `journal`       | writes down what the clients of a run did                                      |
| `checker`       | judges such a run: lost, doubled, reordered, stale, mixed up                   |
| `validators`    | judges a request: would the vendor accept it?                                  |
| `prompt_cache`  | bills requests: what would Anthropic's prompt cache have read?                 |
| `replay`        | recorded traffic: a server that answers with it, and a judge of adapters       |
"""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.testing.contract import StoreContract
    from holdfast.testing.fake_provider import FakeProvider

__all__ = ["FakeProvider", "StoreContract"]
_HOMES = {"FakeProvider": "fake_provider", "StoreContract": "contract"}

# Under pytest, a broken promise shows both sides of the comparison; pytest itself is not needed.
if _pytest := sys.modules.get("pytest"):
    _pytest.register_assert_rewrite("holdfast.testing.contract")


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'holdfast.testing' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"holdfast.testing.{_HOMES[name]}"), name)
