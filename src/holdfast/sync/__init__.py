"""holdfast for synchronous code: scripts, notebooks, WSGI.

    from holdfast import sync

    with sync.open("sqlite:chats.db", model="anthropic:claude-sonnet-4-5") as sessions:
        session = sessions.get_or_create("cli:direct")
        print(session.send("Hello, I am Ada."))
        for event in session.stream("And who am I?"):
            ...

The names, arguments and promises are those of `holdfast`, without `await`. Everything runs on one
event loop in a thread; `faces` tells how, and `__init__.pyi`, which is made of the asynchronous
classes (`python tests/sync_stub.py`), tells editors and type checkers what there is.
"""

from holdfast import manager, memory, peek, providers, session, stores, streams
from holdfast.providers import base as providers_base
from holdfast.stores import base as stores_base
from holdfast.sync.faces import Face, sync

__all__ = [
    "Memory",
    "Peek",
    "Provider",
    "Session",
    "SessionManager",
    "Store",
    "Stream",
    "Subagent",
    "Tenant",
    "open",
    "open_provider",
    "open_store",
]


class SessionManager(Face, of=manager.SessionManager):
    pass


class Session(Face, of=session.Session):
    pass


class Subagent(Face, of=session.Subagent):
    pass


class Stream(Face, of=streams.Stream):
    pass


class Peek(Face, of=peek.Peek):
    pass


class Memory(Face, of=memory.Memory):
    pass


class Store(Face, of=stores_base.Store):
    pass


class Tenant(Face, of=stores_base.Tenant):
    pass


class Provider(Face, of=providers_base.Provider):
    pass


open = sync(manager.open)
open_store = sync(stores.open_store)
open_provider = sync(providers.open_provider)


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
