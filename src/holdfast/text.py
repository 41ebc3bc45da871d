"""Text that every store, file and vendor can carry.

A Python string may hold half of a surrogate pair; UTF-8 cannot, and a conversation that holds one
can be neither stored nor sent. So a lone surrogate never gets in: a caller who passes one gets
InvalidInput, and in text from a model, a tool or a file it becomes U+FFFD, counted, so that the
reader can leave a mark. NUL and every other character are kept.
"""

import unicodedata

from holdfast.errors import InvalidInput

# Letters of several scripts, and pictures of several characters, are joined with these two.
_JOINERS = "\u200c\u200d"


def check(text: str, what: str) -> None:
    """Raise InvalidInput when `text` holds a lone surrogate; `what` names it for the reader."""
    if text.isascii():  # a flag of the string, not a scan
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            what,
            f"has half of a surrogate pair (U+{ord(text[error.start]):04X}) at character "
            f"{error.start}: decode the text with errors='replace' before passing it",
        ) from None


def mend(text: str) -> tuple[str, int]:
    """The text with each lone surrogate as U+FFFD, and how many there were.

    Two halves that stand side by side, as a careless decoder leaves them, become their character.
    """
    if text.isascii():
        return text, 0
    try:
        text.encode()
    except UnicodeEncodeError:
        mended = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return mended, mended.count("\ufffd") - text.count("\ufffd")
    return text, 0


def decode(data: bytes) -> tuple[str, int]:
    """The text in `data`, and how many pieces of it were not UTF-8; each of those is a U+FFFD."""
    try:
        return data.decode(), 0
    except UnicodeDecodeError:
        mended = data.decode(errors="replace")
        return mended, mended.count("\ufffd") - data.count("\ufffd".encode())


def safe(text: str, *, keep: str = "\n\t") -> str:
    """The text, with what could steer a terminal, or turn the writing, shown as what it is."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        c
        if c.isprintable() or c in keep or c in _JOINERS or unicodedata.category(c) == "Zs"
        else _shown(c)
        for c in text
    )


def _shown(c: str) -> str:
    code = ord(c)
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )
