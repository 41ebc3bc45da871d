"""A token of the user's own, out of a file that nobody else can read.

The file holds the token alone, or JSON as programs write it that have signed in:

    gho_...
    {"oauth_token": "gho_..."}                                   or access_token
    {"github.com:Iv1.x": {"user": "ada", "oauth_token": "..."}}  the hosts and apps of an editor
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast import strict
from holdfast.errors import InvalidInput, TooLarge
from holdfast.providers.credentials import Secret, unusable

SIZE_MAX = 65_536
_NAMES = ("oauth_token", "access_token")
_HOST = "github.com"
_SIGN_IN = "sign in again"
_OTHER_FILE = "name the file that holds your token"


def path_of(value: Any, what: str) -> Path:
    """The path of a token file, from the root."""
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise InvalidInput(what, "is the path of a file that holds a token")
    return Path(value).expanduser().absolute()


def read_token(path: Path) -> Secret:
    """The token in the file; AuthError if there is none, or if others could have read it."""
    said = _read(path).strip()
    if not said.startswith("{"):
        token: Any = said
    else:
        try:
            token = _token_in(strict.parse(said, what="the token file").value)
        except (InvalidInput, TooLarge):  # not with its words: they may repeat the file's
            raise unusable(f"{path} is no JSON that can be read", _SIGN_IN) from None
    if not isinstance(token, str) or not token:
        raise unusable(f"{path} holds no token ({' or '.join(_NAMES)})", _SIGN_IN)
    return Secret(token)


def _read(path: Path) -> str:
    # A FIFO would keep us waiting for its other end.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        fd = os.open(path, flags)
        try:
            _check(path, os.fstat(fd))
            return os.read(fd, SIZE_MAX).decode()
        finally:
            os.close(fd)
    except OSError as error:
        raise unusable(f"{path} cannot be read ({error.strerror})", _OTHER_FILE) from None
    except UnicodeDecodeError:
        raise unusable(f"{path} is no text", _OTHER_FILE) from None


def _check(path: Path, there: os.stat_result) -> None:
    if not stat.S_ISREG(there.st_mode) or there.st_size > SIZE_MAX:
        raise unusable(f"{path} is no small file", _OTHER_FILE)
    if os.name == "posix" and stat.S_IMODE(there.st_mode) & 0o077:
        raise unusable(f"{path} can be used by others", "run chmod 600 on it")


def _token_in(value: Any) -> Any:
    """The token of an object, or of the first object in it that is GitHub's."""
    if not isinstance(value, Mapping):
        return None
    for name in _NAMES:
        if value.get(name):
            return value[name]
    apps = (app for name, app in value.items() if name.partition(":")[0] == _HOST)
    return next(filter(None, (_token_in(app) for app in apps if isinstance(app, Mapping))), None)
