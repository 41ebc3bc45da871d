"""Which project of Google's an account asks for: found out once, and kept in the accounts file.

`loadCodeAssist` tells it where the account has one. A new account of a tier whose projects are
Google's own is enrolled by `onboardUser`, which takes a while; a tier that wants a project of the
user's own is an error that says so.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from holdfast.errors import AuthError, ConnectionFailed, ProtocolError
from holdfast.providers import fields
from holdfast.providers.antigravity.families import METADATA
from holdfast.providers.antigravity.wire import method
from holdfast.providers.credentials import unusable
from holdfast.providers.fields import Object

PAUSE_S = 5.0
POLLS_MAX = 12
LOAD = method("loadCodeAssist")
ASKED: Object = {"metadata": METADATA}
_ONBOARD = method("onboardUser")
_VENDOR = "antigravity"


class Asking(NamedTuple):
    """How to ask the service: `post` a body to a path, or `get` one."""

    post: Callable[[str, Object], Awaitable[Object]]
    get: Callable[[str], Awaitable[Object]]


async def found_out(name: str, asking: Asking) -> str:
    """The project of the account `name`."""
    loaded = await asking.post(LOAD, ASKED)
    project = _project(loaded)
    if project is None and not fields.object_of(loaded, "currentTier"):
        project = await _onboarded(_tier(name, loaded), asking)
    if project is None:
        raise _none(name, loaded)
    return project


async def _onboarded(tier: str, asking: Asking) -> str | None:
    """The project that a new account is given."""
    import asyncio

    going = await asking.post(_ONBOARD, {"tierId": tier, **ASKED})
    for _ in range(POLLS_MAX):
        if going.get("done") is True:
            return _project(fields.object_of(going, "response"))
        operation = fields.text_of(going, "name")
        if not operation:
            raise ProtocolError("onboardUser names no operation to wait for", _VENDOR)
        await asyncio.sleep(PAUSE_S)
        going = await asking.get(f"v1internal/{operation}")
    raise ConnectionFailed(f"the project is not there after {POLLS_MAX * PAUSE_S:g} s", _VENDOR)


def _project(answer: Object) -> str | None:
    """As a text, or as an object with an id: the two methods differ."""
    said = answer.get("cloudaicompanionProject")
    if isinstance(said, dict):
        said = said.get("id")
    return said if isinstance(said, str) and said else None


def _tier(name: str, loaded: Object) -> str:
    """The tier that a new account is offered."""
    tiers = fields.objects_of(loaded, "allowedTiers")
    offered = next((tier for tier in tiers if tier.get("isDefault") is True), None)
    tier = None if offered is None else fields.text_of(offered, "id")
    if offered is None or tier is None or offered.get("userDefinedCloudaicompanionProject") is True:
        raise _none(name, loaded)
    return tier


def _none(name: str, loaded: Object) -> AuthError:
    reasons = [
        reason
        for tier in fields.objects_of(loaded, "ineligibleTiers")
        if (reason := fields.text_of(tier, "reasonMessage"))
    ]
    said = f" ({'; '.join(reasons)})" if reasons else ""
    return unusable(
        f"account {name!r} has no project{said}",
        'make one in the Google Cloud console, and put its id into the accounts file as "project"',
        _VENDOR,
    )
