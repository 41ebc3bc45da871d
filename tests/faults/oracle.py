"""What must be true of a store after any fault, whatever the fault was.

    every acknowledged step is there, whole and in order
    nothing is there that was not asked for
    of the step that was cut off, all is there or nothing
    of a step that failed with a typed error, nothing is there

`judge` compares a log with what was found and knows nothing of any store; `read_store` and
`read_raw` look into a store of ours and into the table of a control.
"""

import asyncio
import copy
import json
import sqlite3
import time
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from faults.log import url_of, value_of
from holdfast.errors import HoldfastError, SessionNotFound, StoreError
from holdfast.messages import Message
from holdfast.stores import open_store
from holdfast.stores.values import Record
from nanobot_rules import load_early

REOPEN_MAX_S = 1.0


class Session(NamedTuple):
    """A session as a model sees it: values in order for each branch (None: erased)."""

    branches: dict
    metadata: dict
    draft: list


class Found(NamedTuple):
    """What is in a store, and what it complained about while it was looked at."""

    sessions: dict
    complaints: list
    seconds: float


# ---- the model ----


def apply(after, step):
    """Do one more step to the sessions."""
    do, key = step["do"], step["session"]
    if do == "create":
        after[key] = Session({"main": []}, {}, [])
    elif do == "append":
        after[key].branches[step.get("branch", "main")].extend(step["values"])
        if step.get("finish"):
            after[key].draft.clear()
    elif do == "begin":
        after[key].draft[:] = [step["input"]]
    elif do == "journal":
        after[key].draft.append(step["chunk"])
    elif do == "release":
        after[key].draft.clear()
    elif do == "branch":
        parent = after[key].branches[step["parent"]]
        after[key].branches[step["name"]] = parent[: parent.index(step["at"]) + 1]
    elif do == "update":
        after[key].metadata[step["name"]] = step["value"]
    elif do == "erase":
        for values in after[key].branches.values():
            values[:] = [None if value in step["values"] else value for value in values]
    elif do == "clear":
        after[key] = Session({"main": []}, after[key].metadata, [])
    elif do == "delete":
        del after[key]
    elif do == "look":
        pass
    else:
        raise ValueError(do)


def states(steps):
    """The sessions after each acknowledged step, the empty store first."""
    sessions, found = {}, [{}]
    for each in steps:
        if each.outcome == "acknowledged":
            apply(sessions, each.step)
            found.append(copy.deepcopy(sessions))
    return found


def allowed(steps):
    """Every state that may be found: with the step that was cut off, and without it.

    An erase or a clear that failed may have happened as well: what was to go cannot be read any
    more, and the error says that its bytes are still in some file. Asking again mends that.
    """
    found = [{}]
    for each in steps:
        if each.step["do"] == "look" and each.outcome == "acknowledged":
            seen = {key: Session(*parts) for key, parts in each.note["sessions"].items()}
            found = [state for state in found if _same(seen, state, True)] or found
        elif each.outcome == "unknown" or _may_have_happened(each):
            more = copy.deepcopy(found)
            for state in more:
                apply(state, each.step)
            found += more
        elif each.outcome == "acknowledged":
            for state in found:
                apply(state, each.step)
    return found


def _may_have_happened(each):
    return each.outcome == "failed" and each.step["do"] in ("erase", "clear")


def judge(steps, found, *, drafts=True):
    """What is wrong with what was found, in sentences; nothing when all is well.

    Partial output may be lost when the power goes out: then `drafts` is false.
    """
    wrong = [*found.complaints]
    wrong += [f"{e.step['do']} ended with {e.error}" for e in steps if e.outcome == "crashed"]
    wrong += _looks(steps)
    may = allowed(steps)
    if not any(_same(found.sessions, each, drafts) for each in may):
        wrong += _differences(found.sessions, may[0], drafts)
    return wrong


def _looks(steps):
    """What the program itself saw, when it looked: exactly what it had been told."""
    for at, each in enumerate(steps):
        if each.step["do"] == "look" and each.outcome == "acknowledged":
            may = allowed(steps[:at])
            seen = {key: Session(*parts) for key, parts in each.note["sessions"].items()}
            if not any(_same(seen, state, True) for state in may):
                yield from (f"in the program: {w}" for w in _differences(seen, may[0], True))


def _same(found, wanted, drafts):
    if found.keys() != wanted.keys():
        return False
    return all(
        found[key].branches == wanted[key].branches
        and found[key].metadata == wanted[key].metadata
        and (not drafts or found[key].draft == wanted[key].draft)
        for key in wanted
    )


def _differences(found, wanted, drafts):
    for key in found.keys() | wanted.keys():
        if key not in found:
            yield f"session {key!r} is lost"
        elif key not in wanted:
            yield f"session {key!r} is there, and should not be"
        elif found[key].branches != wanted[key].branches:
            yield _first_difference(key, found[key].branches, wanted[key].branches)
        elif not _same({key: found[key]}, {key: wanted[key]}, drafts):
            yield f"session {key!r} is {found[key]}, not {wanted[key]}"


def _first_difference(key, found, wanted):
    if found.keys() != wanted.keys():
        return f"session {key!r} has the branches {sorted(found)}, not {sorted(wanted)}"
    for name in wanted:
        for at, (is_there, should_be) in enumerate(zip(found[name], wanted[name], strict=False)):
            if is_there != should_be:
                return f"{key!r}, {name!r} has {is_there!r} at {at}, not {should_be!r}"
        if len(found[name]) < len(wanted[name]):
            lost = wanted[name][len(found[name]) :]
            return f"{key!r}, {name!r} has lost {len(lost)} acknowledged, from {lost[0]!r}"
        if len(found[name]) > len(wanted[name]):
            more = found[name][len(wanted[name]) :]
            return f"{key!r}, {name!r} goes on with {more}, which is half of a step or none at all"
    return f"session {key!r} differs"


# ---- looking ----


def read_store(path, *, use=True):
    """Open the store at `path`, read everything, and check that it can be used."""
    started = time.monotonic()
    try:
        sessions, complaints, seconds = asyncio.run(_read_store(path, started, use))
    except HoldfastError as error:
        return Found({}, [f"it cannot be read: {type(error).__name__}: {error}"], 0.0)
    if seconds > REOPEN_MAX_S:
        complaints.append(f"opening it again took {seconds:.2f} s")
    complaints += integrity(path)
    return Found(sessions, complaints, seconds)


async def _read_store(path, started, use):
    async with open_store(url_of(path)) as store:
        seconds = time.monotonic() - started
        tenant = store.tenant()
        sessions = await sessions_of(tenant)
        verified = await tenant.verify()
        complaints = [str(problem) for problem in verified.problems]
        if use:
            complaints += await _use(tenant, sessions)
    return sessions, complaints, seconds


async def sessions_of(tenant):
    """Everything that a tenant has."""
    found, page = {}, None
    while True:
        listed = await tenant.list(limit=100, page=page)
        for summary in listed.items:
            found[summary.key] = await session_of(tenant, summary.key)
        page = listed.next
        if page is None:
            return found


async def sessions_of_keys(tenant, keys):
    """These sessions."""
    return {key: await session_of(tenant, key) for key in keys}


async def session_of(tenant, key):
    """One session, as the model has it."""
    record = await tenant.load(key)
    branches = {
        branch.name: [entry_value(each) for each in await tenant.read(record.id, branch.name)]
        for branch in record.branches
    }
    draft = record.draft
    told = [] if draft is None else [draft.input.get("text"), *draft.chunks]
    return Session(branches, dict(record.metadata), told)


def entry_value(stored):
    """The value of a stored entry; None when it was erased."""
    entry = stored.entry
    if entry is None:
        return None
    if stored.kind == "message":
        return value_of(entry.text or "")
    if stored.kind == "fold":
        return value_of(entry.replacement.text or "")
    return value_of(entry.data["text"]) if "text" in entry.data else f"a mark: {entry.what}"


async def _use(tenant, sessions):
    """A fault must not leave anything locked or closed behind."""
    try:
        probe = await tenant.create(Record(key="probe of the oracle"), [Message.user("hello")])
        for key in [*sessions, "probe of the oracle"]:
            record = await tenant.load(key)
            lease = await tenant.begin(record.id, "oracle", timedelta(seconds=60), {"text": "x"})
            done = await tenant.append(
                record.id, [Message.user("probe")], branch=record.branch, lease=lease, finish=True
            )
            assert done.last > record.branch_named(record.branch).head
        await tenant.delete(probe.id)
    except Exception as error:
        return [f"it cannot be used afterwards: {type(error).__name__}: {error}"]
    return []


def integrity(path):
    """What SQLite itself has to say about the file; or nanobot, about each of its files."""
    if url_of(path).startswith("jsonl:"):
        files = sorted(Path(path).glob("*.jsonl"))
        return [f"nanobot cannot load {each.name}" for each in files if load_early(each) is None]
    connection = sqlite3.connect(path, timeout=10)
    try:
        said = [row[0] for row in connection.execute("PRAGMA integrity_check")]
    except sqlite3.DatabaseError as error:
        said = [str(error)]
    finally:
        connection.close()
    return [] if said == ["ok"] else [f"SQLite says: {', '.join(said[:3])}"]


def read_raw(path):
    """What is in the table of a control."""
    started = time.monotonic()
    sessions = {}
    connection = sqlite3.connect(path, timeout=10)
    try:
        for (key,) in connection.execute("SELECT session FROM sessions"):
            sessions[key] = Session({"main": []}, {}, [])
        rows = connection.execute("SELECT session, text FROM entries ORDER BY session, seq")
        for key, text in rows:
            value = None if text is None else value_of(text)
            sessions.setdefault(key, Session({"main": []}, {}, [])).branches["main"].append(value)
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
    finally:
        connection.close()
    return Found(sessions, integrity(path), time.monotonic() - started)


def read_files(path):
    """What is in the files of a control."""
    sessions = {}
    for file in Path(path).glob("*.jsonl"):
        values = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        sessions[file.stem] = Session({"main": values}, {}, [])
    return Found(sessions, [], 0.0)


# ---- damaged stores ----


def examine(path, states):
    """How a damaged store answers: "intact", "detected", "shorter", "silent ..." or "uncaught ...".

    Damage is detected when opening, reading or `verify` names it. It is silent when something else
    than what was written is given back and nothing says so; a state that once was, is shorter.
    """
    try:
        return asyncio.run(_examine(path, states))
    except StoreError:
        return "detected"
    except Exception as error:
        return f"uncaught {type(error).__name__}: {error}"


async def _examine(path, states):
    async with open_store(url_of(path)) as store:
        tenant = store.tenant()
        verified = await tenant.verify()
        listed = {summary.key for summary in (await tenant.list(limit=1000)).items}
        found, raised = {}, False
        for key in listed | states[-1].keys():
            try:
                found[key] = await session_of(tenant, key)
            except SessionNotFound:
                if key in listed:
                    raise
            except StoreError:
                raised = True
    if verified.problems or raised:
        return "detected"
    if listed != found.keys():
        return f"silent: {sorted(listed)} are listed, and {sorted(found)} can be loaded"
    if found == states[-1]:
        return "intact"
    if found in states:
        return "shorter"
    return f"silent: {[*_differences(found, states[-1], True)]}"


def examine_raw(path, states):
    """The same for the table of a control, whose only defence is SQLite's own."""
    try:
        found = read_raw(path)
    except (sqlite3.DatabaseError, UnicodeDecodeError, OverflowError, TypeError, AttributeError):
        return "detected"
    if found.complaints:
        return "detected"
    return "intact" if found.sessions == states[-1] else "silent"
