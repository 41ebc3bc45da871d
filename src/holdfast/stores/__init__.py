"""Stores: where records and entries are kept.

`open_store(url)` gives one; `base` says what each of them promises, and `values` what they take and
give. Every store is made of the same parts, and brings its own shelf:

    front      checks arguments and packs entries
    requests   what may be done to a session      ┐ on a shelf, inside one transaction
    views      from rows back to entries, checked ┘
    shelf      what a store has to bring along: `memory`, `sqlite`, `postgresql`
"""

from pathlib import Path
from typing import Any

from holdfast.errors import InvalidInput, Unsupported
from holdfast.stores.base import Store, Tenant
from holdfast.stores.values import Record, check_durability

__all__ = ["Record", "Store", "Tenant", "open_store", "place_of"]


def open_store(url: str, **options: Any) -> Store:
    """The store at a URL: `await` it, or use it in `async with`, and it is open.

        memory:             forgotten when it is closed
        sqlite:PATH         one file (sqlite:///PATH and sqlite:////ABSOLUTE/PATH are the same)
        jsonl:DIR           a folder of nanobot's session files; with ?names=base64url, or
                            ?names=plain, for new files the names of a nanobot of today or of early
                            2026 (unless told, those of the files that are there)
        postgresql://...    a PostgreSQL database; several hosts may be named (needs the extra
                            holdfast[postgres])

    Other schemes come from packages that register in the entry-point group `holdfast.stores`.
    `options` go to the store: `limits`, and for those on disk `durability`, "sync" or "fast".
    """
    if type(url) is not str:
        raise InvalidInput("a store URL", f"is a string, not {type(url).__name__}")
    scheme, colon, rest = url.partition(":")
    scheme = scheme.lower()
    if colon and scheme == "memory":
        from holdfast.stores.memory import MemoryStore

        if rest:
            raise InvalidInput("a store URL", "has nothing behind memory:")
        _check_options(options, "limits", "durability")
        check_durability(options.pop("durability", "sync"))  # it survives nothing, at either level
        return MemoryStore(**options)
    if colon and scheme == "sqlite":
        from holdfast.stores.sqlite.store import SQLiteStore

        _check_options(options, "limits", "durability", "create")
        return SQLiteStore(_path(rest), **options)
    if colon and scheme == "jsonl":
        from holdfast.stores.jsonl.store import JsonlStore

        _check_options(options, "limits", "durability", "create", "names")
        path, parameters = _folder(rest)
        return JsonlStore(path, **(parameters | options))
    if colon and scheme in ("postgresql", "postgres"):
        _check_options(options, "limits", "durability", "create")
        return _postgresql(url, options)
    if colon and (maker := _registered(scheme)) is not None:
        store = maker(url, **options)
        if not isinstance(store, Store):
            raise InvalidInput("a store URL", f"{scheme!r} is registered, but makes no Store")
        return store
    # Only the scheme is shown: what follows may hold a password.
    shown = f"begins with {scheme[:20]!r}" if colon else "has no scheme"
    raise InvalidInput(
        "a store URL", f"{shown}: use memory:, sqlite:PATH, jsonl:DIR or another store's"
    )


def place_of(url: str) -> Path | None:
    """The file or folder on this machine in which a store at this URL is; None, if in none."""
    scheme, _, rest = url.partition(":")
    match scheme.lower():
        case "sqlite":
            return Path(_path(rest)).expanduser()
        case "jsonl":
            return Path(_folder(rest)[0]).expanduser()
    return None


def _postgresql(url: str, options: dict[str, Any]) -> Store:
    try:
        from holdfast.stores.postgresql.store import PostgreSQLStore
    except ImportError as error:
        raise Unsupported(
            "open a postgresql: URL", "holdfast without asyncpg (pip install 'holdfast[postgres]')"
        ) from error
    return PostgreSQLStore(url, **options)


def _check_options(options: dict[str, Any], *known: str) -> None:
    for name in options:
        if name not in known:
            raise InvalidInput(f"option {name!r}", f"is unknown here: there are {', '.join(known)}")


def _path(rest: str) -> str:
    """The path in what follows `sqlite:`."""
    if "?" in rest:
        raise InvalidInput("a store URL", "has parameters, and a sqlite: URL takes none")
    if rest.startswith("///"):
        rest = rest[3:]
    elif rest.startswith("//"):
        raise InvalidInput("a store URL", "names a host: use sqlite:PATH or sqlite:///PATH")
    if not rest:
        raise InvalidInput("a store URL", "has no path: use sqlite:PATH, as in sqlite:chats.db")
    return rest


def _folder(rest: str) -> tuple[str, dict[str, Any]]:
    """The path and the parameters in what follows `jsonl:`."""
    path, mark, query = rest.partition("?")
    name, _, value = query.partition("=")
    if mark and (name != "names" or not value):
        raise InvalidInput("a store URL", "has parameters other than ?names=base64url or plain")
    if path.startswith("///"):
        path = path[3:]
    elif path.startswith("//"):
        raise InvalidInput("a store URL", "names a host: use jsonl:DIR or jsonl:///DIR")
    if not path:
        raise InvalidInput("a store URL", "has no folder: use jsonl:DIR, as in jsonl:sessions")
    return path, {"names": value} if mark else {}


def _registered(scheme: str) -> Any:
    from importlib.metadata import entry_points

    for each in entry_points(group="holdfast.stores"):
        if each.name == scheme:
            return each.load()
    return None
