"""What a model may read, write and cost: as its provider says, else as the table of models does."""

from typing import TYPE_CHECKING, NamedTuple

from holdfast.providers.models import Model
from holdfast.usage import Prices

if TYPE_CHECKING:
    from holdfast.providers.base import Provider


class Limits(NamedTuple):
    """Tokens: of prompt and answer together, and of the longest answer."""

    context: int
    output: int


def limits_of(provider: "Provider", model: Model) -> Limits:
    """How much it reads and writes, asked anew each time: some find out as they go."""
    try:
        return Limits(provider.context_limit, provider.output_limit)
    except NotImplementedError:
        return Limits(model.context, model.output)


def prices_of(provider: "Provider", model: Model) -> Prices | None:
    """What its tokens cost, as far as that is known."""
    found: Prices | None = getattr(provider, "prices", None)
    return found or model.prices
