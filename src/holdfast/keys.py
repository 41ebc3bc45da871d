"""Session keys: the caller's name for a conversation, `channel:chat_id` by custom."""

from holdfast import text
from holdfast.errors import InvalidInput, TooLarge

KEY_BYTES_MAX = 1_024


def check_key(key: str) -> str:
    """The key, if it can name a session: any text without lone surrogates, of 1 to 1,024 bytes.

    Nothing in a key is special. Dots, slashes, colons, spaces and control characters are plain
    characters of a name; no two keys name the same session.
    """
    if type(key) is not str:
        raise InvalidInput("a session key", f"is a string, not {type(key).__name__}")
    text.check(key, "a session key")
    size = len(key) if key.isascii() else len(key.encode())
    if not size:
        raise InvalidInput("a session key", "is empty: use a name such as 'telegram:12345678'")
    if size > KEY_BYTES_MAX:
        raise TooLarge("a session key, in bytes,", size, KEY_BYTES_MAX)
    return key


def session_key(channel: str, chat_id: str, override: str | None = None) -> str:
    """`channel:chat_id`, as in `telegram:12345678`; an override that is not empty wins."""
    if override is not None and type(override) is not str:
        raise InvalidInput("override", f"is a string, not {type(override).__name__}")
    if override:
        return check_key(override)
    for name, value in (("channel", channel), ("chat_id", chat_id)):
        if type(value) is not str:
            raise InvalidInput(name, f"is a string, not {type(value).__name__}")
    return check_key(f"{channel}:{chat_id}")
