"""What went wrong, in the words of the program, as one of our errors."""

import re
import signal
import time
from typing import Any

from holdfast.errors import ConnectionFailed, InvalidRequest, ProviderError, RateLimited
from holdfast.providers.claude_cli import VENDOR
from holdfast.providers.failures import failure
from holdfast.providers.fields import Object
from holdfast.providers.refusals import mask

_RESETS = re.compile(r"usage limit reached\|(\d{10})\b")
_UNKNOWN_SESSION = "No conversation found with session ID"


def is_lost_session(error: ProviderError) -> bool:
    """Whether the program does not know the session any more that it was to go on with."""
    return isinstance(error, InvalidRequest) and _UNKNOWN_SESSION in error.detail


def of_result(line: Object, request_id: str | None, resets_at_s: Any) -> ProviderError:
    """The error that the program's last line tells of."""
    errors = line.get("errors")
    said = [line.get("result"), *(errors if isinstance(errors, list) else ())]
    words = "; ".join(each for each in said if isinstance(each, str) and each.strip())
    if _UNKNOWN_SESSION in words:
        return InvalidRequest(words, VENDOR)
    error = failure(VENDOR, None, {}, _body(line, words, request_id), in_stream=True)
    told = _RESETS.search(words)
    at_s = float(told[1]) if told else resets_at_s
    if isinstance(error, RateLimited) and type(at_s) in (int, float):
        error.retry_after_s = max(0.0, at_s - time.time())
    return error


def _body(line: Object, words: str, request_id: str | None) -> object:
    if "{" in words:
        return words  # the refusal of the service, behind "API Error: 529"
    subtype = line.get("subtype")
    return {
        "message": words or f"the program ended with {subtype}",
        "type": line.get("api_error_type"),
        "status": line.get("api_error_status"),
        "request_id": request_id,
    }


def of_exit(code: int | None, said: str) -> ProviderError:
    """The error of a program that ended without an answer. `said`: the end of its stderr."""
    if _UNKNOWN_SESSION in said:
        return InvalidRequest(said, VENDOR)
    why = f"the program {_ended(code)} before its answer was complete"
    words = mask(" ".join(said.split()))
    error = failure(VENDOR, None, {}, words) if words else ConnectionFailed("", VENDOR)
    error.detail = f"{why}: {words}" if words else why
    return error


def _ended(code: int | None) -> str:
    if code is None:
        return "closed its output"
    if code >= 0:
        return f"ended with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
