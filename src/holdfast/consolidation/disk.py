"""Reading, adding to and taking away the files of a memory."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from holdfast import private_files
from holdfast.stores.disk_errors import translate


def read(path: Path) -> bytes:
    """What is in a regular file; nothing if it is missing."""
    try:
        fd = private_files.open_regular(path, os.O_RDONLY)
        with os.fdopen(fd, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise translate(error, str(path)) from error


def size(path: Path) -> int:
    """How many bytes a file has; 0 if it is missing."""
    try:
        return os.lstat(path).st_size
    except FileNotFoundError:
        return 0


def write(path: Path, data: bytes) -> None:
    """Put these bytes in the place of a file, which may be missing, as may its folder."""
    private_files.check_regular(path)
    private_files.make_folder(path.parent)
    private_files.replace(path, data)


def add(path: Path, at: int, data: bytes) -> None:
    """See that these bytes stand in a file, once, from the byte `at` on.

    Done again after a crash, it finds them there, or completes the beginning of them. Where
    somebody else has written there since, they are looked for behind it, or added at the end.
    """
    private_files.make_folder(path.parent)
    private_files.make_file(path)
    with os.fdopen(private_files.open_regular(path, os.O_RDWR), "r+b") as file:
        start = min(at, file.seek(0, os.SEEK_END))
        file.seek(start)
        there = file.read()
        if data not in there:
            torn = len(there) if data.startswith(there) else 0
            file.seek(-torn, os.SEEK_END)
            file.write(data)
            file.flush()
        os.fsync(file.fileno())


def remove(path: Path) -> None:
    """Take a file away, if it is there, so that it does not come back after a power cut."""
    with suppress(FileNotFoundError):
        path.unlink()
        private_files.sync_folder(path.parent)


def remove_all(folder: Path) -> None:
    """Take a folder away with everything in it, if it is there. No link is followed."""
    for path, folders, files in os.walk(folder, topdown=False, followlinks=False):
        for name in files:
            Path(path, name).unlink(missing_ok=True)
        for name in folders:
            below = Path(path, name)
            below.unlink() if below.is_symlink() else below.rmdir()
    with suppress(FileNotFoundError):
        folder.rmdir()
    if folder.parent.is_dir():
        private_files.sync_folder(folder.parent)


def numbered(folder: Path) -> Iterable[tuple[int, Path]]:
    """The files that are named by a number, in their order."""
    if not folder.is_dir():
        return []
    found = [path for path in folder.iterdir() if path.stem.isdecimal() and path.suffix == ".md"]
    return sorted((int(path.stem), path) for path in found)
