"""The server: where it is, how a connection to it is made, and what it says of itself.

    postgresql://user:password@host1:5432,host2:5432/database?notify=off&pool=20

With several hosts, the one that can be written to is used; after a failover that is another one.
What follows the `?` goes to PostgreSQL, but for two things that are ours: `pool`, the most
connections, and `notify=off`, for a pooler that gives a connection to another client after every
transaction (such as PgBouncer's mode "transaction"). Then nothing is used that outlives a
transaction: no LISTEN, no prepared statement, no setting of a session.
"""

import asyncio
import os
import re
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit
from uuid import UUID

import asyncpg

from holdfast.errors import InvalidInput, StoreUnavailable
from holdfast.stores.postgresql.names import SETTING

Durability = Literal["sync", "fast"]
VERSION_MIN = 14
HURRY_MS = 250  # that a batch waits for a lock, before it goes on without who has it
POOL = 10
POOL_MIN = 2
CONNECT_S = 3.0  # for one host
COMMAND_S = 60.0  # for anything: also a commit may wait, for a standby that is gone
SYNCED = ("on", "remote_apply")
SETTINGS = {
    "application_name": "holdfast",
    "statement_timeout": "30s",
    "lock_timeout": "10s",
    "idle_in_transaction_session_timeout": "30s",
    "tcp_keepalives_idle": "60",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
    "jit": "off",
}
# The same on our side; and how long what was sent may stay without an answer of the machine.
_ALIVE = {
    "TCP_KEEPIDLE": 60,
    "TCP_KEEPALIVE": 60,  # its name on macOS
    "TCP_KEEPINTVL": 10,
    "TCP_KEEPCNT": 3,
    "TCP_USER_TIMEOUT": 30_000,
}
_HOST = re.compile(r"(\[[0-9a-fA-F:.%]+\]|[^\[\]:/?#\s]*)(:[0-9]{1,5})?")
_LOOK = """SELECT current_setting('server_version_num')::int AS version,
    (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint AS boot,
    pg_is_in_recovery() OR current_setting('transaction_read_only')::bool AS is_read_only,
    current_setting('synchronous_commit') AS synchronous_commit,
    current_setting('fsync') = 'on' AND current_setting('full_page_writes') = 'on' AS is_safe,
    current_setting('synchronous_standby_names') AS standby_names,
    (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user) AS is_above_rules
"""
_STANDBYS = "SELECT application_name, state, sync_state FROM pg_stat_replication"
_PREPARE = f"""SELECT set_config('{SETTING}', $1, true), set_config('synchronous_commit', $2, true),
    set_config('statement_timeout', $3, true), set_config('lock_timeout', $4, true),
    set_config('idle_in_transaction_session_timeout', $5, true)"""
_LIMITS = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")


class Address(NamedTuple):
    """A URL taken apart: a DSN for each host, what may be shown of them, and our own options."""

    dsns: tuple[str, ...]
    shown: str
    pool: int
    is_pooled: bool
    given: frozenset[str] = frozenset()  # options that are PostgreSQL's

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"  # the others may hold a password


def read_url(url: str) -> Address:
    """The address in a URL; InvalidInput if it is none. No error shows a password."""
    try:
        parts = urlsplit(url)
        options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise InvalidInput("a store URL", "cannot be read: see docs/stores.md") from None
    ours = {name: value for name, value in options if name in ("pool", "notify")}
    theirs = [(name, value) for name, value in options if name not in ours]
    if (notify := ours.get("notify", "on")) not in ("on", "off"):
        raise InvalidInput("notify", "in a store URL is on or off")
    user, at, hosts = parts.netloc.rpartition("@")
    pool = ours.get("pool", str(POOL))
    if not (pool.isascii() and pool.isdigit() and POOL_MIN <= int(pool) <= 1_000):
        raise InvalidInput("pool", f"in a store URL is a number from {POOL_MIN} to 1000")
    if "\0" in url or not all(map(_HOST.fullmatch, hosts.split(","))):
        raise InvalidInput("a store URL", "has a host or a port that cannot be one")
    query = urlencode([each for each in theirs if each[0] != "target_session_attrs"])
    dsns = tuple(
        urlunsplit(("postgresql", f"{user}{at}{host}", parts.path, query, ""))
        for host in hosts.split(",")
    )
    shown = f"postgresql://{hosts}{quote(parts.path)}"
    return Address(dsns, shown, int(pool), notify == "off", frozenset(name for name, _ in theirs))


class Facts(NamedTuple):
    """What a server said of itself when a connection was made."""

    version: int
    boot: int
    is_read_only: bool
    synchronous_commit: str
    is_safe: bool
    standby_names: str
    is_above_rules: bool


class Standby(NamedTuple):
    """A server that follows: its name, its `state`, and whether commits wait for it (`sync`)."""

    name: str
    state: str
    sync: str


class Link:
    """A connection, and for whom it may see rows."""

    def __init__(self, raw: Any, facts: Facts, server: "Server") -> None:
        self.raw = raw
        self.facts = facts
        self._server = server
        self._tenants = ""
        self._is_hurried = False

    @property
    def is_closed(self) -> bool:
        return bool(self.raw.is_closed())

    async def allow(self, tenants: str) -> None:
        """See the rows of these tenants, and of no others."""
        if self._tenants != tenants:
            await self.raw.fetchrow(f"SELECT set_config('{SETTING}', $1, false)", tenants)
            self._tenants = tenants

    async def hurry(self) -> None:
        """Wait for no lock any longer, but in transactions."""
        if not self._is_hurried:
            await self.raw.execute(f"SET lock_timeout = {HURRY_MS}")
            self._is_hurried = True

    async def begin(
        self, tenants: str, *, is_reading: bool = False, is_hurried: bool = False
    ) -> None:
        """Begin a transaction, in which rows of these tenants are seen."""
        if not self._server.address.is_pooled:
            await self.allow(tenants)
        kind = "ISOLATION LEVEL REPEATABLE READ READ ONLY" if is_reading else "READ WRITE"
        patience = "; SET LOCAL lock_timeout TO DEFAULT" if self._is_hurried else ""
        await self.raw.execute(f"BEGIN {kind}{patience}")
        if self._server.address.is_pooled:
            limits = [SETTINGS[name] for name in _LIMITS]
            if is_hurried:
                limits[1] = f"{HURRY_MS}ms"
            await self.raw.fetchrow(_PREPARE, tenants, self._server.commit_setting, *limits)

    async def close(self) -> None:
        await self.raw.close(timeout=1)

    def terminate(self) -> None:
        """Close it without a word. What it was asked for may still happen."""
        self.raw.terminate()

    def abandon(self) -> None:
        """Close this process's copy of the connection; that of the parent goes on."""
        socket = self.raw._transport.get_extra_info("socket")
        with suppress(OSError, AttributeError):
            os.close(socket.fileno())


class Server:
    """The server of a store, wherever it is now."""

    def __init__(self, address: Address, durability: Durability) -> None:
        self.address = address
        self.where = address.shown
        self.durability = durability
        self.facts: Facts | None = None
        self._latest = 0

    @property
    def commit_setting(self) -> str:
        """What synchronous_commit has to be."""
        if self.durability == "fast":
            return "off"
        known = self.facts.synchronous_commit if self.facts else "on"
        return known if known in SYNCED else "on"

    @property
    def boot(self) -> int:
        """When the server was started that was reached last."""
        return self.facts.boot if self.facts else 0

    async def connect(self) -> Link:
        """A connection to the host that can be written to; the error of the last one if none can.

        The host that was right the last time is tried first.
        """
        dsns = self.address.dsns
        problem: Exception = StoreUnavailable(self.where, "it has no host that can be written to")
        for step in range(len(dsns)):
            at = (self._latest + step) % len(dsns)
            try:
                link = await self._connect(dsns[at])
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                problem = error
                continue
            if not link.facts.is_read_only:
                self._latest, self.facts = at, link.facts
                return link
            link.terminate()
        raise problem

    async def _connect(self, dsn: str) -> Link:
        options: dict[str, Any] = {"statement_cache_size": 256, "max_cached_statement_lifetime": 0}
        if self.address.is_pooled:
            options = {"statement_cache_size": 0}
        else:
            given = self.address.given
            wanted = {name: value for name, value in SETTINGS.items() if name not in given}
            options["server_settings"] = wanted | {"synchronous_commit": self.commit_setting}
        raw: Any = None
        try:
            async with asyncio.timeout(CONNECT_S):
                raw = await asyncpg.connect(
                    dsn, timeout=CONNECT_S, command_timeout=COMMAND_S, **options
                )
                facts = await facts_of(raw)
        except ValueError:  # its words may hold any part of the URL
            raise InvalidInput("a store URL", "has an option that cannot be read") from None
        except BaseException:
            if raw is not None:
                raw.terminate()
            raise
        _keep_alive(raw)
        return Link(raw, facts, self)

    def check(self) -> None:
        """That the server is what it has to be, by what it said when we connected."""
        assert self.facts is not None
        if self.facts.version < VERSION_MIN * 10_000:
            found = self.facts.version // 10_000
            raise StoreUnavailable(
                self.where, f"it is PostgreSQL {found}: use {VERSION_MIN} or later"
            )
        taken = self.facts.synchronous_commit
        is_right = taken == "off" if self.durability == "fast" else taken in SYNCED
        if not is_right and not self.address.is_pooled:
            raise StoreUnavailable(
                self.where, f"synchronous_commit stays {taken}: it has to be {self.commit_setting}"
            )


def _keep_alive(raw: Any) -> None:
    """Send something now and then, also where nobody asks for anything.

    Firewalls forget a connection that is silent for long, as that of one who listens; and a machine
    that is off does not say so.
    """
    ours = raw._transport.get_extra_info("socket")
    if ours.family not in (socket.AF_INET, socket.AF_INET6):
        return
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _ALIVE.items():
        if (option := getattr(socket, name, None)) is not None:
            with suppress(OSError):  # not every system has all of them
                ours.setsockopt(socket.IPPROTO_TCP, option, value)


async def facts_of(raw: Any) -> Facts:
    """What the server says of itself."""
    return Facts(*await raw.fetchrow(_LOOK))


async def standbys_of(link: Link) -> tuple[Standby, ...]:
    """The servers that follow this one, as far as the role may see them."""
    return tuple(Standby(*row) for row in await link.raw.fetch(_STANDBYS))


def problems_of(facts: Facts, standbys: Sequence[Standby]) -> list[str]:
    """What is doubtful about a server, each with the way out."""
    found = []
    if not facts.is_safe:
        found.append("fsync or full_page_writes is off: a power cut damages it; switch them on")
    if facts.is_above_rules:
        found.append(
            "the role is above row-level security: use one without SUPERUSER and BYPASSRLS"
        )
    if facts.standby_names and not any(each.sync in ("sync", "quorum") for each in standbys):
        found.append(
            "synchronous_standby_names is set, and no standby is in sync: look at "
            "pg_stat_replication (a role needs pg_monitor to see it)"
        )
    found += [
        f"standby {each.name!r} is {each.state} and async: what it has not got is lost with the "
        "primary; name it in synchronous_standby_names"
        for each in standbys
        if each.sync == "async"
    ]
    return found


def as_array(tenants: "list[UUID]") -> str:
    """Digests of tenants, in the words of the setting."""
    return "{" + ",".join(map(str, tenants)) + "}"
