"""The two quotas that an account has, and what differs between the models behind them.

A name that begins with `antigravity-` is on Antigravity's quota, and so is a model that is not
Gemini; other names of Gemini are on that of the Gemini CLI. The service tells the two apart by the
endpoint and by headers. `-low`, `-medium` and `-high` at the end of a Gemini's name say how much it
thinks; a Claude thinks if `-thinking` is in its name.
"""

from collections.abc import Mapping
from typing import NamedTuple

from holdfast.errors import InvalidInput

PREFIX = "antigravity-"
DAILY = "https://daily-cloudcode-pa.sandbox.googleapis.com"
AUTOPUSH = "https://autopush-cloudcode-pa.sandbox.googleapis.com"
PRODUCTION = "https://cloudcode-pa.googleapis.com"

# As every client of this API says of itself when it asks for a project.
METADATA = {
    "ideType": "IDE_UNSPECIFIED",
    "platform": "PLATFORM_UNSPECIFIED",
    "pluginType": "GEMINI",
}


class Family(NamedTuple):
    """A quota: where its models are asked, in this order, and how.

    envelope   fields that stand beside a request
    models     the method that lists them
    """

    name: str
    endpoints: tuple[str, ...]
    headers: Mapping[str, str]
    envelope: Mapping[str, str]
    models: str


ANTIGRAVITY = Family(
    name="antigravity",
    endpoints=(DAILY, AUTOPUSH, PRODUCTION),
    headers={
        "user-agent": "antigravity/1.15.8 linux/amd64",
        "x-goog-api-client": "google-cloud-sdk vscode_cloudshelleditor/0.1",
        "client-metadata": '{"ideType":"IDE_UNSPECIFIED","platform":"PLATFORM_UNSPECIFIED",'
        '"pluginType":"GEMINI"}',
    },
    envelope={"requestType": "agent", "userAgent": "antigravity"},
    models="fetchAvailableModels",
)
GEMINI_CLI = Family(
    name="gemini-cli",
    endpoints=(PRODUCTION,),
    headers={
        "user-agent": "google-api-nodejs-client/9.15.1",
        "x-goog-api-client": "gl-node/22.17.0",
        "client-metadata": "ideType=IDE_UNSPECIFIED,platform=PLATFORM_UNSPECIFIED,"
        "pluginType=GEMINI",
    },
    envelope={"userAgent": "holdfast"},
    models="retrieveUserQuota",
)
_FAMILIES = {each.name: each for each in (ANTIGRAVITY, GEMINI_CLI)}


def family_of(model: str, quota: str | None = None) -> Family:
    """The quota of a model: the one that is named, or the one that its name says."""
    if quota is not None:
        if quota not in _FAMILIES:
            raise InvalidInput("quota", f"is {' or '.join(_FAMILIES)}, not {quota!r:.40}")
        return _FAMILIES[quota]
    return GEMINI_CLI if model.startswith("gemini-") else ANTIGRAVITY


def name_at_service(model: str) -> str:
    """The name by which the service knows a model."""
    return model.removeprefix(PREFIX)


def is_gemini(model: str) -> bool:
    """Whether the service itself understands what is asked; what it asks others, it translates."""
    return "gemini-" in model and "claude" not in model


def is_thinking_claude(model: str) -> bool:
    """Whether it is a Claude that thinks before it answers."""
    return "claude" in model and "-thinking" in model


def level_of(model: str) -> str:
    """How much a Gemini thinks if nobody says it."""
    return next((level for level in ("medium", "high") if model.endswith(f"-{level}")), "low")
