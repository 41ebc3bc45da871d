"""Importing holdfast is cheap: each module is loaded when one of its names is first used.

A command line tool pays for every import at every start, so what is loaded is counted here,
in a fresh interpreter. How long it takes is measured by `bench/imports.py`.
"""

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import holdfast

TOUCH_ALL = "import holdfast\nfor name in holdfast.__all__:\n    getattr(holdfast, name)"

USE_SQLITE = """
import asyncio, holdfast

async def begin():
    async with holdfast.open({url!r}) as sessions:
        session = await sessions.get_or_create("cli:direct")
        await session.append(holdfast.Message.user("Hello, I am Ada."), once="hello")

async def go_on():
    async with holdfast.open({url!r}) as sessions:
        session = await sessions.get("cli:direct", load="all")
        assert [each.text for each in session.messages] == ["Hello, I am Ada."]
        assert len((await sessions.list()).items) == len((await sessions.search("Ada")).items) == 1
        await session.erase(session.messages[0])
        await sessions.expire()
        await sessions.backup({copy!r})
        await sessions.delete("cli:direct")

asyncio.run(begin())
asyncio.run(go_on())
"""


def loaded(code):
    """Return the names of the modules that `code` adds in a fresh interpreter."""
    # Others may load modules at the start of every interpreter, so only the difference counts.
    # json comes last, or it would add modules itself.
    program = (
        f"import sys\nbefore = set(sys.modules)\n{code}\n"
        "added = sorted(set(sys.modules) - before)\nimport json\nprint(json.dumps(added))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def third_party(modules):
    tops = {name.partition(".")[0] for name in modules}
    return tops - set(sys.stdlib_module_names) - {"holdfast"}


def test_importing_holdfast_loads_only_itself_and_the_standard_library():
    modules = loaded("import holdfast")

    assert "holdfast" in modules
    assert third_party(modules) == set()


def test_importing_holdfast_loads_no_event_loop_and_no_module_of_its_own():
    modules = loaded("import holdfast")

    assert "asyncio" not in modules
    assert {name for name in modules if name.startswith("holdfast.")} == set()


def test_values_and_history_need_no_event_loop():
    """Only what does I/O does: sessions, the manager, and what opens them."""
    code = (
        "import holdfast\nfor name in holdfast.__all__:\n"
        "    if name not in ('Session', 'SessionManager', 'open'): getattr(holdfast, name)"
    )

    assert "asyncio" not in loaded(code)


def test_all_public_names_need_no_dependency_but_msgspec():
    """What msgspec loads itself depends on what is installed."""
    modules = loaded(TOUCH_ALL)

    assert third_party(modules) <= third_party(loaded("import msgspec"))


def test_the_memory_store_needs_no_sql():
    modules = loaded(
        "import asyncio, holdfast\n"
        "async def main(): await holdfast.open('memory:')\n"
        "asyncio.run(main())"
    )

    assert "holdfast.stores.memory" in modules
    assert not {"sqlalchemy", "sqlite3"} & modules


def test_the_postgresql_store_needs_no_sqlalchemy():
    """It takes longer to load than all else together, and its statements are texts."""
    modules = loaded("import holdfast.stores.postgresql.store")

    assert "asyncpg" in modules
    assert "sqlalchemy" not in modules


def test_the_sqlite_store_needs_no_dependency_but_msgspec(tmp_path):
    """Its statements were compiled once for all: making a file, opening it again, writing, reading,
    searching, erasing and copying load no SQLAlchemy.
    """
    program = USE_SQLITE.format(url=f"sqlite:{tmp_path}/chats.db", copy=f"{tmp_path}/copy.db")
    modules = loaded(program)

    assert "holdfast.stores.sqlite.shelf" in modules
    assert "holdfast.stores.sqlite.tables" not in modules
    assert third_party(modules) <= third_party(loaded("import msgspec"))


def test_the_postgresql_store_compiles_no_statements():
    """They are texts, made of its tables and queries once for all."""
    modules = loaded("import holdfast.stores.postgresql.store")

    assert "holdfast.stores.postgresql.statements" in modules
    sources = ("postgresql.tables", "postgresql.queries", "schema", "compiled")
    assert not {f"holdfast.stores.{name}" for name in sources} & modules


def test_the_probe_sees_what_is_loaded():
    """The tests above would pass in vain if it did not."""
    modules = loaded("import asyncio, msgspec")

    assert "asyncio" in modules
    assert "msgspec" in third_party(modules)


def test_the_package_is_marked_as_typed():
    assert (Path(holdfast.__file__).parent / "py.typed").is_file()


def test_the_package_is_installed_with_its_metadata():
    metadata = importlib.metadata.metadata("holdfast")

    assert metadata["Name"] == "holdfast"
    assert metadata["Version"]
