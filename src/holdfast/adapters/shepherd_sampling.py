"""Shepherd's sampling parameters, as settings of a session."""

from typing import Any, NamedTuple

from holdfast.errors import InvalidInput

# Who is named how in a request. A vendor that is not here is given the plain names.
_PLAIN = {
    name: (name,)
    for name in (
        "top_p",
        "top_k",
        "min_p",
        "repeat_penalty",
        "frequency_penalty",
        "presence_penalty",
        "user",
    )
}
_GOOGLE: dict[str, tuple[str, ...]] = {
    "top_p": ("generationConfig", "topP"),
    "top_k": ("generationConfig", "topK"),
    "frequency_penalty": ("generationConfig", "frequencyPenalty"),
    "presence_penalty": ("generationConfig", "presencePenalty"),
}
_NAMES: dict[str, dict[str, tuple[str, ...]]] = {
    "anthropic": {"top_p": ("top_p",), "top_k": ("top_k",), "user": ("metadata", "user_id")},
    "openai": {n: (n,) for n in ("top_p", "frequency_penalty", "presence_penalty", "user")},
    "google": _GOOGLE,
}


class Sampling(NamedTuple):
    """How freely a model chooses its words. -1 is its own default; for penalties -999 is.

    `user` tells the vendor's logs one user from another. What a vendor has no name for is not
    sent to it.
    """

    temperature: float = -1.0
    top_p: float = -1.0
    top_k: int = -1
    min_p: float = -1.0
    repeat_penalty: float = -1.0
    frequency_penalty: float = -999.0
    presence_penalty: float = -999.0
    user: str = ""

    def request(self, vendor: str) -> dict[str, Any]:
        """What goes into a request to this vendor, beside the temperature."""
        names = _NAMES.get(vendor, _PLAIN)
        found: dict[str, Any] = {}
        for name, value in self._asdict().items():
            if name in names and value != getattr(DEFAULTS, name):
                *outer, last = names[name]
                inner = found.setdefault(outer[0], {}) if outer else found
                inner[last] = value
        return found

    def check(self) -> "Sampling":
        """Itself, if all of it are numbers, and the user is text."""
        for name, value in self._asdict().items():
            kinds = (str,) if name == "user" else (int, float)
            if type(value) not in kinds:
                raise InvalidInput(f"sampling.{name}", f"is not a {type(value).__name__}")
        return self


DEFAULTS = Sampling()
