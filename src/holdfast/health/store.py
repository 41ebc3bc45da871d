"""The store: does it open, did its settings take, is its place right, is there room."""

import shutil
import sqlite3
from datetime import timedelta
from pathlib import Path

from holdfast import ids
from holdfast.errors import HoldfastError
from holdfast.health.finding import Finding, Level
from holdfast.private_files import file_system
from holdfast.stores import open_store, place_of
from holdfast.stores.base import Store

ROOM_MIN = 64 * 1024 * 1024
ROOM_LOW = 1024 * 1024 * 1024
_AHEAD_MAX = timedelta(minutes=5)
# Of what a store finds doubtful, that with which it is safe all the same: it keeps commits and
# checkpoints apart by itself, its files are readable for nobody else in whatever folder, and a
# container or a role may be meant to be so.
_LESSER = ("WAL-reset bug", "entered or listed", "is on overlay", "above row-level security")


async def findings(url: str) -> list[Finding]:
    """What is to be said of the store at a URL; a store that is not there is not made."""
    try:
        place = place_of(url)
        if place is not None and not place.exists():
            return [*_room(place), Finding("ok", "store", f"there is none yet at {place}")]
        options = {} if url.startswith("memory:") else {"create": False}
        async with open_store(url, **options) as store:
            found = [*(_place(place) if place else ()), *await _opened(store)]
            found += [_doubtful(each) for each in store.problems()]
            return found + await _clock(store)
    except (HoldfastError, OSError) as error:
        what, _, way_out = str(error).rpartition(": ")
        if not what:
            what, way_out = way_out, "see what it says"
        return [Finding("error", "store", what, way_out)]


async def _opened(store: Store) -> list[Finding]:
    """What an open store says of itself."""
    kind = type(store).__name__
    if kind == "SQLiteStore":
        return _sqlite(store)
    if kind == "PostgreSQLStore":
        return await _postgresql(store)
    return [Finding("ok", "store", f"opens ({kind})")]


def _sqlite(store: Store) -> list[Finding]:
    from holdfast.stores.sqlite.store import SQLiteStore

    assert isinstance(store, SQLiteStore)
    told = store.look()
    synced = {2: "FULL", 1: "NORMAL", 3: "EXTRA"}.get(int(str(told["synchronous"])), "OFF")
    return [
        Finding("ok", "SQLite", f"version {sqlite3.sqlite_version}"),
        Finding("ok", "store", f"journal mode {told['journal_mode']}, synchronous {synced}"),
    ]


async def _postgresql(store: Store) -> list[Finding]:
    """Also each standby: right after its start one is async for a moment, whatever is set."""
    from holdfast.stores.postgresql.store import PostgreSQLStore

    assert isinstance(store, PostgreSQLStore)
    facts, standbys = await store.look()
    major, minor = divmod(facts.version, 10_000)
    found = [
        Finding("ok", "PostgreSQL", f"version {major}.{minor}"),
        Finding("ok", "store", f"synchronous_commit {facts.synchronous_commit}"),
    ]
    in_sync = [each for each in standbys if each.sync in ("sync", "quorum")]
    found += [
        Finding("ok", "standby", f"{each.name!r} is {each.state} and {each.sync}")
        for each in in_sync
    ]
    if not standbys and not facts.standby_names:
        found.append(Finding("ok", "standby", "there is none"))
    return found


def _doubtful(sentence: str) -> Finding:
    level: Level = "warning" if any(each in sentence for each in _LESSER) else "error"
    what, _, way_out = sentence.rpartition(": ")
    if not what:
        what, _, way_out = sentence.rpartition("; ")
    return Finding(level, "store", what or sentence, way_out if what else "")


def _place(place: Path) -> list[Finding]:
    files = [place] if place.is_file() else [each for each in place.rglob("*") if each.is_file()]
    size = sum(each.stat().st_size for each in files)
    kind = file_system(place.parent) or "an unknown file system"
    return [Finding("ok", "store", f"{place} has {size:,} bytes, on {kind}"), *_room(place)]


def _room(place: Path) -> list[Finding]:
    """How much is free where it is, or would be."""
    there = next(each for each in (place, *place.parents) if each.exists())
    free = _free(there)
    level: Level = "error" if free < ROOM_MIN else "warning" if free < ROOM_LOW else "ok"
    way_out = "" if level == "ok" else "free some space, or move the store with holdfast copy"
    return [Finding(level, "disk", f"{free / 1e6:,.0f} MB are free at {there}", way_out)]


def _free(there: Path) -> int:
    return shutil.disk_usage(there).free


async def _clock(store: Store) -> list[Finding]:
    """Whether anything was written later than now: then a clock is or was wrong."""
    newest = (await store.tenant().list(limit=1)).items
    now = ids.now()
    if newest and newest[0].updated_at - now > _AHEAD_MAX:
        ahead = newest[0].updated_at - now
        what = f"{newest[0].key!r} was written to {ahead} from now"
        return [Finding("error", "clock", what, "set the clock, of this machine or of the other")]
    return [Finding("ok", "clock", f"{now:%Y-%m-%d %H:%M:%S} UTC")]
