"""Messages for the search benchmark: always the same, and as fast as they can be drawn.

Words follow Zipf's law over a vocabulary of 50,000; a message has about 60 of them. Every fifth
message names something that no other does (an id, a hash), as tool calls do. Every twentieth is
Chinese or Japanese, of words of two characters.
"""

import random
from collections.abc import Iterator
from itertools import accumulate

VOCABULARY = 50_000
CJK_VOCABULARY = 5_000
WORDS_MEAN = 60
_SYLLABLES = [c + v for c in "bdfghklmnprstvwz" for v in "aeiou"]


def texts(count: int, seed: int = 1) -> Iterator[str]:
    """`count` texts."""
    rnd = random.Random(seed)
    vocabulary = _vocabulary(random.Random(2))
    cjk = cjk_words()
    weights = list(accumulate(1 / (rank + 1) ** 1.05 for rank in range(VOCABULARY)))
    cjk_weights = list(accumulate(1 / (rank + 5) for rank in range(CJK_VOCABULARY)))
    for start in range(0, count, 1_000):
        lengths = [1 + int(rnd.expovariate(1 / WORDS_MEAN)) for _ in range(1_000)]
        drawn = rnd.choices(vocabulary, cum_weights=weights, k=sum(lengths))
        at = 0
        for index in range(min(1_000, count - start)):
            length = lengths[index]
            if index % 20 == 7:
                yield "".join(rnd.choices(cjk, cum_weights=cjk_weights, k=length))
            elif index % 5 == 3:
                yield " ".join([*drawn[at : at + length], f"{rnd.getrandbits(64):016x}"])
            else:
                yield " ".join(drawn[at : at + length])
            at += length


def cjk_words() -> list[str]:
    """The words of two characters, the common ones first: Han, and every fourth of them kana."""
    rnd = random.Random(3)
    han = [chr(code) for code in range(0x4E00, 0x4E00 + 2_500)]
    kana = [chr(code) for code in range(0x30A2, 0x30F0)]
    made = ("".join(rnd.choices(kana if index % 4 == 3 else han, k=2)) for index in range(10**6))
    found = dict.fromkeys(word for word, _ in zip(made, range(CJK_VOCABULARY * 2), strict=False))
    return list(found)[:CJK_VOCABULARY]


def _vocabulary(rnd: random.Random) -> list[str]:
    """Short words first, as in any language."""
    found: dict[str, None] = {}
    while len(found) < VOCABULARY:
        size = 1 + min(3, len(found) // 60 + 1 if len(found) < 180 else rnd.choice((1, 2, 2, 3)))
        found["".join(rnd.choices(_SYLLABLES, k=size))[: rnd.choice((2, 3)) + size * 2]] = None
    return list(found)
