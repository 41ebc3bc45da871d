"""holdfast: the session layer for LLM agents.

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

TYPE_CHECKING = False  # type checkers take it for true, and `typing` need not be imported

if TYPE_CHECKING:
    from holdfast.cancel import CancelToken
    from holdfast.errors import HoldfastError
    from holdfast.history import History
    from holdfast.manager import SessionManager, open
    from holdfast.messages import Message, Role, ToolCall
    from holdfast.providers import open_provider
    from holdfast.results import TurnResult
    from holdfast.session import Session
    from holdfast.settings import Settings
    from holdfast.stores import open_store
    from holdfast.tools import Tool, tool
    from holdfast.usage import Usage

__all__ = [
    "CancelToken",
    "History",
    "HoldfastError",
    "Message",
    "Role",
    "Session",
    "SessionManager",
    "Settings",
    "Tool",
    "ToolCall",
    "TurnResult",
    "Usage",
    "open",
    "open_provider",
    "open_store",
    "tool",
]

_HOMES = {
    "CancelToken": "cancel",
    "History": "history",
    "HoldfastError": "errors",
    "Message": "messages",
    "Role": "messages",
    "Session": "session",
    "SessionManager": "manager",
    "Settings": "settings",
    "Tool": "tools",
    "ToolCall": "messages",
    "TurnResult": "results",
    "Usage": "usage",
    "open": "manager",
    "open_provider": "providers",
    "open_store": "stores",
    "tool": "tools",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"holdfast.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
