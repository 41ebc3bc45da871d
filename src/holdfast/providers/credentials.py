"""Keys, and how they stay out of everything that can be read.

A `Secret` shows itself as ***, wherever it is printed, and is not pickled. `Credentials` knows
where a key comes from, and reads it at each try: what was given, or the environment. `Headers`
shows its names alone. `Hidden` takes secrets out of an error that is about to reach somebody.
"""

import os
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Never

from holdfast.errors import AuthError, InvalidInput, ProviderError
from holdfast.providers.refusals import MASK

LENGTH_MAX = 16_384
# A word this short is found in any text; hiding it would hide nothing else but sense.
HIDDEN_LENGTH_MIN = 6


class Secret:
    """A text that is not shown: in `repr`, `str`, an f-string, a log. `reveal()` gives it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The text itself."""
        return self._value

    def __repr__(self) -> str:
        return MASK

    def __format__(self, spec: str) -> str:
        return format(MASK, spec)

    def __reduce__(self) -> Never:
        raise TypeError("a secret is not pickled: read it again where it is needed")

    def __copy__(self) -> "Secret":
        return self

    def __deepcopy__(self, _memo: object) -> "Secret":
        return self


Key = str | Secret | Callable[[], str | Secret | Awaitable[str | Secret]]


class Headers(dict[str, str]):
    """Headers of a request; `repr` shows their names."""

    def __repr__(self) -> str:
        return f"<headers: {', '.join(self)}>"


class Credentials:
    """The key of a service: what was `given`, else the first of these variables that is set.

    What was given may be a function, asked at each try, for keys that change; it may be async.
    """

    def __init__(self, given: Key | None, variables: tuple[str, ...] = ()) -> None:
        if not (given is None or isinstance(given, str | Secret) or callable(given)):
            raise InvalidInput("api_key", "is a string, or a function that gives one")
        self._given = Secret(given) if isinstance(given, str) else given
        self._variables = variables

    @property
    def is_given(self) -> bool:
        """Whether the caller passed one, so that the environment is not asked."""
        return self._given is not None

    @property
    def way_out(self) -> str:
        """What to do when there is none."""
        names = " or ".join(self._variables)
        return f"set {names}, or pass api_key=" if names else "pass api_key="

    async def read(self, provider: str) -> Secret | None:
        """The key as it is now, or None. One that no header can hold is an AuthError."""
        found: Any = self._given
        if callable(found) and not isinstance(found, Secret):
            found = found()
            if isinstance(found, Awaitable):
                found = await found
        if found is None and self._given is None:
            found = next(filter(None, map(os.environ.get, self._variables)), None)
        value = found.reveal() if isinstance(found, Secret) else found
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            raise InvalidInput("api_key", f"gave {type(value).__name__}, and a key is a string")
        value = value.strip()  # a file or a shell leaves a newline behind it
        if not is_header_value(value):
            raise unusable("the key has characters that no header can hold", self.way_out, provider)
        return Secret(value)


def unusable(
    why: str,
    way_out: str,
    provider: str = "",
    status: int | None = None,
    request_id: str | None = None,
) -> AuthError:
    """The error for credentials that cannot be used, which says what to do about these."""
    error = AuthError(why, provider, status, request_id)
    error.way_out = way_out
    return error


def is_header_value(value: str) -> bool:
    """Whether a header can hold it: no line may begin in it, or another header would."""
    return value.isascii() and value.isprintable() and 0 < len(value) <= LENGTH_MAX


class Hidden:
    """The secrets of one call, to be taken out of what is told about it."""

    def __init__(self, secrets: Iterable[Secret | None]) -> None:
        values = {secret.reveal() for secret in secrets if secret is not None}
        # The longest first: one may begin with another.
        self._values = sorted((v for v in values if len(v) >= HIDDEN_LENGTH_MIN), key=len)[::-1]

    def text(self, words: str) -> str:
        """The words with *** for each secret."""
        for value in self._values:
            words = words.replace(value, MASK)
        return words

    def error(self, error: ProviderError) -> None:
        """Mend an error in place, all its texts."""
        for name in ("detail", "request_id"):
            said = getattr(error, name, None)
            if isinstance(said, str):
                setattr(error, name, self.text(said))
        error.args = tuple(self.text(a) if isinstance(a, str) else a for a in error.args)
