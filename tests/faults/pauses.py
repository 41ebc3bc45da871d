"""Two processes that run a turn of one session; the first will be stopped in the middle of it."""

import asyncio
from datetime import timedelta

from faults.log import Log
from faults.turns import SETTINGS, Effects, Model, note, opened, tools, watch
from holdfast.errors import HoldfastError
from holdfast.steps import hold as holds
from holdfast.steps import scribe

LEASE = timedelta(milliseconds=120)
WORDS = 400  # of an answer that takes seconds: longer than anything else here
PAUSE_S = 0.01


def hold(path, log_path, said):
    """A turn that takes its time, in the model or in its tools."""
    asyncio.run(_turn(path, log_path, said, Model(pause_s=PAUSE_S, words=WORDS), pause_s=1.0))


def hold_unfenced(path, log_path, said):
    """The same, by one who does not say under which lease he writes, as if there were none."""
    asyncio.run(_turn(path, log_path, said, Model(pause_s=PAUSE_S, words=80), is_fenced=False))


def take(path, log_path, said):
    """A turn that begins when the lease of the other is over."""
    asyncio.run(_turn(path, log_path, said, Model()))


async def _turn(path, log_path, said, model, *, pause_s=0.0, is_fenced=True):
    holds.LEASE, scribe.RENEW_S = LEASE, LEASE.total_seconds() / 3
    log, effects = Log(log_path), Effects(f"{path}.effects")
    async with opened(path, model, tools(effects, pause_s=pause_s)) as sessions:
        if not is_fenced:
            _forget_leases(sessions._workshop.tenant)
        watch(sessions, log)
        session = await sessions.get_or_create("chat", settings=SETTINGS)
        error = ""
        try:
            await session.send(said)
        except HoldfastError as raised:
            error = type(raised).__name__
        note(log, do="ended", session="chat", error=error)


def _forget_leases(tenant):
    append = tenant.append

    async def unfenced(id, entries, **options):
        kept = {name: options[name] for name in ("branch", "after", "once") if name in options}
        return await append(id, entries, **kept)

    async def renewed(lease, ttl=None):
        return lease

    tenant.append, tenant.renew = unfenced, renewed
