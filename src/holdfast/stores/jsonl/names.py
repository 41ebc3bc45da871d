"""File names: nanobot's, and what is done where a key has none that can be used.

| name      | of `telegram:a_b`              | written by                                        |
|-----------|--------------------------------|---------------------------------------------------|
| plain     | `telegram_a_b.jsonl`           | nanobot before 2026-06-26, and its Go port         |
| base64url | `dGVsZWdyYW06YV9i.jsonl`       | nanobot since then, which loads no others          |
| own       | `telegram_a_b~<digest>.jsonl`  | us, where the other is too long, not possible, or  |
|           |                                | another session's                                 |

Many keys have one plain name, so a name is never the identity of a session: the key is that is
stored in the file, and for files from before 2026-02-20, which store none, the one that their name
was most likely made of.
"""

import base64
import binascii
import re
from collections.abc import Iterable
from hashlib import blake2b

from holdfast.errors import HoldfastError
from holdfast.keys import check_key

SUFFIX = ".jsonl"
BYTES_MAX = 255
_UNSAFE = re.compile(r'[<>:"/\\|?*]')
_SHOWN_MAX = 40


def plain_name(key: str) -> str:
    """The name that nanobot gave every file until June 2026, exactly."""
    return _UNSAFE.sub("_", key).strip() + SUFFIX


def base64_name(key: str) -> str:
    """The name that nanobot gives since."""
    return base64.urlsafe_b64encode(key.encode()).decode().rstrip("=") + SUFFIX


def own_name(key: str) -> str:
    """A name that no other key has, and every file system takes."""
    return f"{shown_part(key)}~{digest_of(key)}{SUFFIX}"


def shown_part(name: str) -> str:
    """As much of a name as any file system takes, for people to know it by."""
    return re.sub(r"[^0-9A-Za-z._-]", "_", name)[:_SHOWN_MAX].lstrip(".")


def digest_of(text: str) -> str:
    """32 hexadecimal digits that stand for a text and for no other."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


def is_usable(name: str) -> bool:
    """Whether a file can have this name."""
    return "\0" not in name and len(name.encode()) <= BYTES_MAX


def names_of(key: str, *, is_base64: bool) -> list[str]:
    """The names that the file of a session may have, the likeliest first."""
    plain, base64url = plain_name(key), base64_name(key)
    wanted = [base64url, plain] if is_base64 else [plain, base64url]
    return [*filter(is_usable, wanted), own_name(key)]


def names_for(key: str, *, is_base64: bool) -> list[str]:
    """The names to give a new file: that of the folder's nanobot, or else one of our own. Its other
    name would make the folder look like one of another nanobot."""
    wanted = base64_name(key) if is_base64 else plain_name(key)
    return [*filter(is_usable, [wanted]), own_name(key)]


def keys_of(name: str) -> list[str]:
    """The keys that a file without a stored key may belong to, the likeliest first."""
    stem = name.removesuffix(SUFFIX)
    found = [stem.replace("_", ":", 1), stem.replace("_", ":")]
    if (decoded := base64_key(name)) is not None:
        found.insert(0, decoded)
    return [key for key in found if _is_key(key)]


def base64_key(name: str) -> str | None:
    """The key of which this is the base64url name, if it can be one."""
    stem = name.removesuffix(SUFFIX)
    try:
        key = base64.urlsafe_b64decode(stem + "=" * (-len(stem) % 4)).decode()
    except (binascii.Error, ValueError):
        return None
    return key if base64_name(key) == name and _is_key(key) and key.isprintable() else None


def are_base64(names: Iterable[str]) -> bool:
    """Whether among these files of a folder are some that a current nanobot has named."""
    return any(":" in (base64_key(name) or "") for name in names if name.endswith(SUFFIX))


def _is_key(key: str) -> bool:
    try:
        check_key(key)
    except HoldfastError:
        return False
    return True
