"""Models: how much they take, how long they answer, what they cost.

    model = model_of("anthropic", "claude-sonnet-4-5-20250929")
    model.context, model.output, model.prices.input     # 200000, 64000, Decimal('3')
    model_of("azure", "our-deployment").is_known        # False: a cautious guess

The numbers are in `model_table.py`, with the day on which they were true; prices are for estimates.
A name is looked up as it is, then without what vendors and resellers hang on it: a path before it
(`models/gemini-2.5-pro`, `anthropic/claude-sonnet-4.5`), a snapshot or a variant behind it
(`gpt-5-mini-2025-08-07`, `gemini-3-flash-preview`, `gpt-oss:20b`). What is then not in the table is
unknown, even if its name begins like a known one: `gpt-5.2-proo` is no model.

A caller who knows better passes `models=`, a mapping from names, or patterns such as "prod-*", to
models: `{"our-deployment": table()["gpt-5-mini"]}`.
"""

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from types import MappingProxyType

from holdfast.errors import InvalidInput
from holdfast.frozen import Value
from holdfast.providers import model_table
from holdfast.usage import Prices

# The limit of a window that no provider has: the largest that is common.
CONTEXT_WITHOUT_PROVIDER = 1_048_576


class Model(Value, frozen=True, kw_only=True):
    """What is known of a model. The numbers are tokens.

    vendor            who makes or sells it; the prices are this vendor's
    name              as the vendor spells it, without a snapshot
    context           the most that prompt and answer may have together
    output            the longest answer
    prompt            the longest prompt, where that is less than what `context` leaves
    prices            None when they are not known, which does not mean that it is free
    family            the vocabulary its text is counted with
    images            the rule its pictures are counted by
    cache_min_tokens  the shortest prompt that is cached; None when that is not known
    cache_ttl_s       how long it is kept after its last use, at least; None likewise
    is_known          False for a guess: the numbers are then cautious, not true
    """

    vendor: str
    name: str
    context: int
    output: int
    prompt: int | None = None
    prices: Prices | None = None
    family: str = "other"
    images: str = "other"
    cache_min_tokens: int | None = None
    cache_ttl_s: int | None = None
    is_known: bool = True

    def _settle(self) -> None:
        self._settle_texts("vendor", "name", "family", "images")
        optional = ("prompt", "cache_min_tokens", "cache_ttl_s")
        self._settle_counts("context", "output", optional=optional)
        if not self.context or not self.output:
            raise InvalidInput(self.name, "has a context and an output of at least one token")
        if self.prices is not None and not isinstance(self.prices, Prices):
            raise InvalidInput("prices", f"is a Prices or None, not {type(self.prices).__name__}")
        self._settle_flags("is_known")


def model_of(vendor: str, name: str, models: Mapping[str, Model] | None = None) -> Model:
    """What is known of `vendor`'s model `name`; a guess with `is_known=False` if nothing is.

    `models` is asked first. A model that another than its maker sells keeps its limits and loses
    its prices: a reseller has its own.
    """
    if models and (own := _best(name, models)) is not None:
        return own
    known = table()
    for spelling in _spellings(name):
        if (model := known.get(spelling)) is not None:
            return _limited(vendor, _sold_by(vendor, model))
    return _limited(vendor, _guess(vendor, name))


@cache
def table() -> Mapping[str, Model]:
    """All models in the table, by name; it cannot be changed."""
    models: dict[str, Model] = {}
    vendor = ""
    for line in model_table.ROWS.splitlines():
        columns = line.split()
        if len(columns) == 1:
            vendor = columns[0]
        elif columns and columns[0] != "#":
            models[columns[0]] = _row(vendor, columns)
    return MappingProxyType(models)


def _row(vendor: str, columns: list[str]) -> Model:
    name, context, prompt, output, family, images, *money, cache_min = columns
    paid = [None if price == "-" else price for price in money]
    prices = None
    if paid[0] is not None:
        prices = Prices(input=paid[0], output=paid[1], cache_read=paid[2], cache_write=paid[3])  # type: ignore[arg-type]
    return Model(
        vendor=vendor,
        name=name,
        context=int(context),
        output=int(output),
        prompt=None if prompt == "-" else int(prompt),
        prices=prices,
        family=family,
        images=images,
        cache_min_tokens=None if cache_min == "-" else int(cache_min),
        cache_ttl_s=None if cache_min == "-" else model_table.CACHE_TTL_S.get(vendor),
    )


def _best(name: str, models: Mapping[str, Model]) -> Model | None:
    """The model under this very name, or under the longest pattern that fits it."""
    fitting = [pattern for pattern in models if fnmatchcase(name, pattern)]
    best = name if name in models else max(fitting, key=len, default=None)
    if best is None:
        return None
    model: object = models[best]
    if not isinstance(model, Model):
        raise InvalidInput(f"models[{best!r}]", f"is a Model, not {type(model).__name__}")
    return model


# ---- how a name may be spelled ----

_PREFIX = re.compile(
    r"^(?:.*/)?(?:antigravity-)?(?:(?:us|eu|apac|global|jp|au)\.)?(?:(?:anthropic|openai)\.)?"
)
_SUFFIX = re.compile(
    r"(?:[-@]20\d{6}|-20\d\d-\d\d-\d\d|-\d{4}|-\d\d-\d\d|-\d{3}|-0"  # snapshots and versions
    r"|-latest|-preview|-exp|-v\d(?::\d)?|[:@][\w.-]*|-customtools"
    r"|(?<=\d)-thinking|(?<=\d-pro)-(?:low|high))$"  # Antigravity's, of one model
)
_SUFFIXES_MAX = 4


def _spellings(name: str) -> Iterator[str]:
    """The name, and what remains of it when one thing after another is taken off."""
    short = _PREFIX.sub("", name.strip().lower())
    if short.startswith("claude"):
        short = short.replace(".", "-")  # resellers write claude-sonnet-4.5
    yield short
    for _ in range(_SUFFIXES_MAX):
        shorter = _SUFFIX.sub("", short)
        if shorter == short:
            return
        short = shorter
        yield short


# ---- who sells it, and what is not known ----

_SELLS_FOR = {"azure": "openai", "claude-cli": "anthropic"}  # at the maker's prices


def _sold_by(vendor: str, model: Model) -> Model:
    if vendor in (model.vendor, "") or _SELLS_FOR.get(vendor) == model.vendor:
        return model
    return model.replace(prices=None, cache_ttl_s=None)


# What a reseller allows, whatever the maker does, by how a name begins: context and output.
_LIMITS = {
    "antigravity": (("claude", 200_000, 64_000), ("gemini", 1_048_576, 65_536)),
}


def _limited(vendor: str, model: Model) -> Model:
    short = next(_spellings(model.name))
    for start, context, output in _LIMITS.get(vendor, ()):
        if short.startswith(start):
            return model.replace(context=context, output=output)
    return model


# Context, output, family and rule for pictures of a model that is not in the table.
_GUESSES = {
    "anthropic": (200_000, 8_192, "claude-4.7", "grid-hi"),  # the newer ones need more tokens
    "claude-cli": (200_000, 32_000, "claude-4.7", "grid-hi"),
    "openai": (128_000, 16_384, "o200k", "tiles"),
    "azure": (128_000, 16_384, "o200k", "tiles"),
    "google": (1_048_576, 8_192, "gemini", "gemini-3"),
    "github": (128_000, 4_096, "o200k", "tiles"),
}
_GUESS = (32_768, 4_096, "other", "other")

# Families that anybody may serve, by how their names begin.
_FAMILIES = (
    ("claude", "claude-4.7", "grid-hi"),
    ("gpt-3.5", "cl100k", "tiles"),
    ("gpt-", "o200k", "tiles"),
    ("chatgpt", "o200k", "tiles"),
    ("gemini", "gemini", "gemini-3"),
    ("gemma", "gemma", "other"),
    ("llama", "llama3", "other"),
    ("meta-llama", "llama3", "other"),
    ("qwen", "qwen", "other"),
    ("qwq", "qwen", "other"),
    ("deepseek", "deepseek", "other"),
    ("mistral", "mistral", "other"),
    ("ministral", "mistral", "other"),
    ("magistral", "mistral", "other"),
    ("devstral", "mistral", "other"),
    ("codestral", "mistral", "other"),
    ("pixtral", "mistral", "other"),
    ("kimi", "kimi", "other"),
    ("glm", "glm", "other"),
)


def _guess(vendor: str, name: str) -> Model:
    context, output, family, images = _GUESSES.get(vendor, _GUESS)
    short = next(_spellings(name))
    for start, its_family, its_images in _FAMILIES:
        if short.startswith(start):
            family, images = its_family, its_images
            break
    return Model(
        vendor=vendor,
        name=name,
        context=context,
        output=output,
        family=family,
        images=images,
        is_known=False,
    )
