"""What can go wrong, named for what the caller can do next.

    HoldfastError
    ├── StoreError
    │   ├── SessionNotFound      create it, or check the key
    │   ├── SessionExpired       renew it, or start anew
    │   ├── DuplicateSession     load it instead
    │   ├── Conflict             refresh, then append
    │   ├── LeaseLost            stop; another runs this turn
    │   ├── Busy                 wait, or cancel the running turn
    │   ├── OnceMismatch         use a new `once` key
    │   ├── StoreFull            free space; what was stored is safe
    │   ├── StoreUnavailable     try again when the cause is gone
    │   │   └── StoreClosed      use it inside `async with`
    │   ├── Corrupt              verify; restore the named part
    │   ├── FormatTooNew         update holdfast
    │   ├── Unsupported          use a store that can
    │   └── NotCopied            see what is named; the rest was copied
    ├── ProviderError
    │   ├── AuthError            check the key
    │   ├── RateLimited          wait `retry_after_s`
    │   ├── Overloaded           try again later
    │   ├── ContextOverflow      send less
    │   ├── OutputLimit          ask for less, or raise max_tokens
    │   ├── InvalidRequest       mend the request; repeating it cannot help
    │   ├── ContentBlocked       change the input
    │   ├── ConnectionFailed     check the network or the address
    │   └── ProtocolError        the service answered something else
    ├── TurnError
    │   ├── ToolUnavailable      pass the tool to open(tools=...)
    │   ├── LimitReached         raise the limit, then resume
    │   └── DoesNotFit           shorten what is named
    ├── InvalidInput             (also a ValueError) mend the argument
    ├── TooLarge                 (also a ValueError) split it, or raise the limit
    └── Cancelled                somebody asked for it

Facts are in `args`, in the order of the constructor, so that every error pickles and copies;
the words are in `__str__` and end with the way out.
"""

from typing import Any as _Any


class HoldfastError(Exception):
    """Anything that holdfast raises on purpose."""


# Stores


class StoreError(HoldfastError):
    """The store could not do what was asked; nothing was half done."""


class SessionNotFound(StoreError):
    """There is no session of this name (for this tenant)."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        return f"there is no session {_short(repr(self.key))}: create it, or check the key"


class SessionExpired(StoreError):
    """The session outlived its time to live. Its data is still there."""

    def __init__(self, key: str, expired_at: str = "") -> None:
        super().__init__(key, expired_at)
        self.key = key
        self.expired_at = expired_at

    def __str__(self) -> str:
        when = f" at {self.expired_at}" if self.expired_at else ""
        return f"session {self.key!r} expired{when}: renew it with update(ttl=...), or start anew"


class DuplicateSession(StoreError):
    """A session of this name is there already."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        return f"there is a session {self.key!r} already: load it, or use get_or_create"


class Conflict(StoreError):
    """Another writer was first. Refresh the session, then try again.

    `expected` and `found` are the head of a branch: seqs. With a `field`, it was that field of
    the record which did not have the value expected; its values may be private, so they are not
    told, and both numbers are 0.
    """

    def __init__(self, key: str, expected: int, found: int, field: str = "") -> None:
        super().__init__(key, expected, found, field)
        self.key = key
        self.expected = expected
        self.found = found
        self.field = field

    def __str__(self) -> str:
        if self.field:
            return (
                f"{self.field} of session {self.key!r} is not what was expected: another writer "
                "changed it first; refresh the session, then update"
            )
        return (
            f"session {self.key!r} is at entry {self.found}, not {self.expected}: "
            "another writer appended first; refresh the session, then append"
        )


class LeaseLost(StoreError):
    """The right to run this turn has passed to another; nothing was written."""

    def __init__(self, key: str, holder: str = "") -> None:
        super().__init__(key, holder)
        self.key = key
        self.holder = holder

    def __str__(self) -> str:
        by = f" to {self.holder}" if self.holder else ""
        return (
            f"the lease on session {self.key!r} was lost{by}: nothing was written; "
            "refresh the session to see what the other turn did"
        )


class Busy(StoreError):
    """Another turn runs on this session."""

    def __init__(self, key: str, holder: str = "") -> None:
        super().__init__(key, holder)
        self.key = key
        self.holder = holder

    def __str__(self) -> str:
        by = f" by {self.holder}" if self.holder else ""
        return f"session {self.key!r} is in use{by}: wait for the turn to end, or cancel it"


class OnceMismatch(StoreError):
    """This `once` key was used before, with other content."""

    def __init__(self, key: str, once: str) -> None:
        super().__init__(key, once)
        self.key = key
        self.once = once

    def __str__(self) -> str:
        return (
            f"once={self.once!r} was used in session {self.key!r} with other content: "
            "repeat the first content, or use a new once key"
        )


class StoreFull(StoreError):
    """No room left. What was acknowledged is safe, and the store works again when there is room."""

    def __init__(self, where: str, why: str = "") -> None:
        super().__init__(where, why)
        self.where = where
        self.why = why

    def __str__(self) -> str:
        return f"{_at(self.where, self.why)}: free some space, then try again; nothing was lost"


class StoreUnavailable(StoreError):
    """The store cannot be reached or used just now."""

    _way_out = "try again when the cause is gone"

    def __init__(self, where: str, why: str = "") -> None:
        super().__init__(where, why)
        self.where = where
        self.why = why

    def __str__(self) -> str:
        return f"{_at(self.where, self.why)}: {self._way_out}"


class StoreClosed(StoreUnavailable):
    """The store is not open, or not any more."""

    _way_out = "use it inside `async with holdfast.open(...)`"

    def __init__(self, where: str, why: str = "the store is closed") -> None:
        super().__init__(where, why)


class Corrupt(StoreError):
    """Stored bytes are not what was written."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(where, why)
        self.where = where
        self.why = why

    def __str__(self) -> str:
        damaged = "the stored bytes are damaged; run verify or restore a backup"
        return f"{_at(self.where, self.why)}: {damaged}"


class FormatTooNew(StoreError):
    """A newer holdfast wrote this. It was not touched."""

    def __init__(self, where: str, found: int, known: int) -> None:
        super().__init__(where, found, known)
        self.where = where
        self.found = found
        self.known = known

    def __str__(self) -> str:
        return (
            f"{self.where} has format {self.found}, and this holdfast knows up to "
            f"{self.known}: update holdfast; nothing was changed"
        )


class Unsupported(StoreError):
    """A limitation that the store declares."""

    def __init__(self, what: str, by: str) -> None:
        super().__init__(what, by)
        self.what = what
        self.by = by

    def __str__(self) -> str:
        return f"{self.by} cannot {self.what}: use a store that can"


class NotCopied(StoreError):
    """Some sessions could not be copied to another store; all others were.

    `problems` has one for each, with its place, and `copied` is everything that the copy did.
    """

    def __init__(self, problems: tuple[_Any, ...], copied: _Any = None) -> None:
        super().__init__(problems, copied)
        self.problems = problems
        self.copied = copied

    def __str__(self) -> str:
        named = "; ".join(_short(str(each)) for each in self.problems[:5])
        more = f"; and {len(self.problems) - 5} more" if len(self.problems) > 5 else ""
        return (
            f"not copied: {named}{more}: the other sessions were; settle what is named, then "
            "copy again"
        )


# Providers


class ProviderError(HoldfastError):
    """A model call failed. The history is as it was.

    `partial` is the `Response` as far as it came, if the answer had begun.
    """

    way_out = "see what the service said"
    partial: _Any = None

    def __init__(
        self,
        detail: str = "",
        provider: str = "",
        status: int | None = None,
        request_id: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(detail, provider, status, request_id, retry_after_s)
        self.detail = detail
        self.provider = provider
        self.status = status
        self.request_id = request_id
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        facts = [str(self.status)] if self.status is not None else []
        if self.request_id:
            facts.append(f"request {self.request_id}")
        said = self.detail or type(self).__name__
        where = f"{self.provider}: " if self.provider else ""
        about = f" ({', '.join(facts)})" if facts else ""
        return f"{where}{said}{about}: {self.way_out}"


class AuthError(ProviderError):
    """The service does not accept the credentials."""

    way_out = "check the key and what it may use"


class RateLimited(ProviderError):
    """Too many requests or tokens in a time. Never a context overflow."""

    way_out = "wait, then try again"

    def __str__(self) -> str:
        wait = f"; the service asks for {self.retry_after_s:g} s" if self.retry_after_s else ""
        return super().__str__() + wait


class Overloaded(ProviderError):
    """The service has no room for this request just now."""

    way_out = "try again later"


class ContextOverflow(ProviderError):
    """The request is longer than the model's window."""

    way_out = "send less: compact the session, or use a model with a larger window"

    def __init__(
        self,
        detail: str = "",
        provider: str = "",
        status: int | None = None,
        request_id: str | None = None,
        retry_after_s: float | None = None,
        tokens_found: int | None = None,
        tokens_max: int | None = None,
    ) -> None:
        super().__init__(detail, provider, status, request_id, retry_after_s)
        self.args = (*self.args, tokens_found, tokens_max)
        self.tokens_found = tokens_found
        self.tokens_max = tokens_max


class OutputLimit(ProviderError):
    """The answer was cut at the most that the model may write."""

    way_out = "raise max_tokens, or ask for less at a time"


class InvalidRequest(ProviderError):
    """The service refuses this request as it is; repeating it cannot help."""

    way_out = "mend the request; repeating it cannot help"


class ContentBlocked(ProviderError):
    """The service's filter stopped the input or the answer."""

    way_out = "change the input"


class ConnectionFailed(ProviderError):
    """No connection, or it broke before the answer was complete."""

    way_out = "check the network and the address, then try again"


class ProtocolError(ProviderError):
    """The answer is not what this API promises."""

    way_out = "check the address and the model; the service answered something else"


# Turns


class TurnError(HoldfastError):
    """The turn cannot go on; what it finished is stored, and it can be resumed."""


class ToolUnavailable(TurnError):
    """The model asks for a tool that is declared, but that nobody can run here."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"tool {self.name!r} has nothing to run it: pass it to open(tools=...), then resume"


class LimitReached(TurnError):
    """A limit on rounds, tokens or money stopped the turn."""

    def __init__(self, limit: str, allowed: float, used: float) -> None:
        super().__init__(limit, allowed, used)
        self.limit = limit
        self.allowed = allowed
        self.used = used

    def __str__(self) -> str:
        return (
            f"the limit of {self.allowed:g} {self.limit} is reached ({self.used:g} used): "
            "raise it, then resume"
        )


class DoesNotFit(TurnError):
    """Even after every fold that may be made, this is more than the window holds."""

    def __init__(self, what: str, tokens: int, tokens_max: int) -> None:
        super().__init__(what, tokens, tokens_max)
        self.what = what
        self.tokens = tokens
        self.tokens_max = tokens_max

    def __str__(self) -> str:
        return (
            f"{self.what} has {self.tokens} tokens and {self.tokens_max} fit: "
            "shorten it, or use a model with a larger window"
        )


# Values


class InvalidInput(HoldfastError, ValueError):
    """An argument or a foreign document that cannot be taken; nothing was changed."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(what, why)
        self.what = what
        self.why = why

    def __str__(self) -> str:
        return f"{_short(self.what)} {_short(self.why)}"


class TooLarge(HoldfastError, ValueError):
    """More than a limit allows; nothing was changed."""

    def __init__(self, what: str, size: int, size_max: int) -> None:
        super().__init__(what, size, size_max)
        self.what = what
        self.size = size
        self.size_max = size_max

    def __str__(self) -> str:
        return f"{self.what} is {self.size}, and at most {self.size_max} is allowed: split it"


class Cancelled(HoldfastError):
    """Somebody asked for it, through a CancelToken.

    `partial` is what there was of a model's answer (a `Response`), if one was cut off.
    """

    partial: _Any = None

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"cancelled: {self.reason}" if self.reason else "cancelled"


def _at(where: str, why: str) -> str:
    return f"{_short(where)}: {_short(why)}" if why else _short(where)


def _short(words: str) -> str:
    """Words that may repeat a name of any length, fit to be read."""
    return words if len(words) <= 1_000 else f"{words[:800]} ... {words[-100:]}"
