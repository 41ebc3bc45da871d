"""The limit for counting in bench/window.py: the tokeniser alone, given the texts alone."""

from collections.abc import Callable, Iterable
from importlib.util import find_spec

from holdfast.providers.tokens import estimate


def tokenizer() -> Callable[[str], int]:
    """What counts the tokens of a text: the vocabulary of o200k, or the estimate without it."""
    if not find_spec("splintr"):
        return lambda text: estimate(text, "o200k")
    from splintr import Tokenizer

    encode = Tokenizer.from_pretrained("o200k_base").encode_ordinary
    return lambda text: len(encode(text))


def count_all(texts: Iterable[str], count: Callable[[str], int]) -> int:
    """The tokens of all texts."""
    return sum(count(text) for text in texts)
