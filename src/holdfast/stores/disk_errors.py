"""What the system says about files, in the words of holdfast.

Only codes and their names are passed on. The message of an OSError may hold a path, so it is not
repeated; it stays readable as the cause.
"""

import errno
import os

from holdfast.errors import StoreError, StoreFull, StoreUnavailable

_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}


def translate(error: OSError | MemoryError, where: str) -> StoreError:
    """The error of ours that says the same; raise it `from error`."""
    if isinstance(error, MemoryError):
        return StoreUnavailable(where, "there is not enough memory")
    if error.errno is None:
        return StoreUnavailable(where, type(error).__name__)
    why = f"{os.strerror(error.errno)} ({errno.errorcode.get(error.errno, error.errno)})"
    return (StoreFull if error.errno in _FULL else StoreUnavailable)(where, why)
