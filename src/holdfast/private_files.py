"""Files and folders for nobody but us: how they are made, opened, and judged.

A file of ours is a regular file of mode 0600. A name that leads elsewhere (a symbolic link, a
FIFO, a device) is refused, because who can put one there could make us write to any file.
"""

import errno
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path

from holdfast import text
from holdfast.errors import InvalidInput, StoreUnavailable

_KINDS = {stat.S_IFLNK: "symbolic link", stat.S_IFDIR: "directory", stat.S_IFIFO: "FIFO"}
_MOUNTS = Path("/proc/self/mountinfo")
# Locks or shared memory do not work there as SQLite needs them, or a sync is not a sync.
_DOUBTFUL = ("9p", "afs", "ceph", "cifs", "nfs", "nfs4", "smb", "smb3", "smbfs") + (
    "fuse.glusterfs",
    "fuse.s3fs",
    "fuse.sshfs",
)


def absolute(path: str | os.PathLike[str]) -> Path:
    """The path of a file, from the root. InvalidInput where no file can have it."""
    try:
        name = os.fspath(path)
    except TypeError:
        raise InvalidInput(
            "the path", f"is a {type(path).__name__}, not a text or a Path"
        ) from None
    if not isinstance(name, str):
        raise InvalidInput("the path", "is bytes: decode it with os.fsdecode")
    text.check(name, "the path")
    if "\0" in name:
        raise InvalidInput("the path", "has a NUL character in it")
    if name == ":memory:":
        raise InvalidInput("the path", "is ':memory:': use MemoryStore to keep nothing on disk")
    if not name or name.endswith(("/", os.sep)):
        raise InvalidInput(f"the path {name!r}", "names no file")
    if name.startswith(("~/", f"~{os.sep}")):
        name = os.path.expanduser(name)
    return Path(name).absolute()


def open_regular(path: Path, flags: int) -> int:
    """A descriptor of a regular file, never followed through a link, never given to a program."""
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    flags |= getattr(os, "O_NONBLOCK", 0)  # a FIFO would keep us waiting for its other end
    fd = os.open(path, flags, 0o600)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise StoreUnavailable(str(path), "it is not a regular file")
    return fd


def is_at(fd: int, path: Path) -> bool:
    """Whether the open file still is the one at `path`."""
    try:
        there = os.lstat(path)
    except FileNotFoundError:
        return False
    here = os.fstat(fd)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def check_regular(path: Path) -> None:
    """StoreUnavailable if anything but a regular file has this name; it may be missing."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "device or socket")
        raise StoreUnavailable(str(path), f"it is a {kind}, not a regular file")


def make_folder(folder: Path) -> None:
    """Make what is missing of it, for us alone, so that it is there after a power cut."""
    if folder.is_dir():
        return
    if folder != folder.parent:
        make_folder(folder.parent)
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        return
    sync_folder(folder.parent)


def make_file(path: Path) -> None:
    """Make it if it is missing, so that it is there after a power cut."""
    try:
        os.close(open_regular(path, os.O_RDWR | os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    sync_folder(path.parent)


def replace(path: Path, data: bytes) -> None:
    """Put these bytes in the place of a file: who reads it finds the old ones or the new ones.

    For one writer at a time. What a writer that was cut off left beside it is taken away.
    """
    write(path, [data])


def write(path: Path, pieces: Iterable[bytes], *, is_new: bool = False) -> int:
    """The same with what comes in pieces; how many bytes they were.

    What goes wrong with the pieces leaves everything as it was. With `is_new`, FileExistsError if
    there is a file of that name by then.
    """
    beside = path.with_name(f"{path.name}.tmp")
    beside.unlink(missing_ok=True)
    fd = open_regular(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with os.fdopen(fd, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(fd)
            size = file.tell()
        if is_new:
            _name_new(beside, path)
        os.replace(beside, path)
        beside.unlink(missing_ok=True)  # a rename of one file to its other name does nothing
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
    return size


def _name_new(beside: Path, path: Path) -> None:
    """Take the name; FileExistsError if something has it, which a rename would not notice."""
    try:
        os.link(beside, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: looking is the best there is
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk."""
    if not hasattr(os, "O_DIRECTORY"):
        return  # Windows does not open a directory
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def problems(path: Path) -> list[str]:
    """What is doubtful about a file, in sentences with the way out; nothing if it is missing."""
    try:
        there = os.lstat(path)
    except FileNotFoundError:
        return []
    found = []
    if os.name == "posix" and stat.S_IMODE(there.st_mode) & 0o077:
        found.append(f"{path} can be used by others: run chmod 600 on it")
    if there.st_nlink > 1:
        found.append(f"{path} has a second name (a hard link): keep one, and delete the others")
    return found


def folder_problems(folder: Path) -> list[str]:
    """What is doubtful about a folder and the file system it is on."""
    found = []
    if os.name == "posix" and stat.S_IMODE(os.stat(folder).st_mode) & 0o077:
        found.append(
            f"{folder} can be entered or listed by others: run chmod 700 on it, or use a folder of "
            "the store's own"
        )
    kind = file_system(folder)
    if kind in _DOUBTFUL:
        found.append(f"{folder} is on {kind}, where locks cannot be trusted: use a local disk")
    elif kind == "overlay":
        found.append(f"{folder} is on overlay, gone with its container: use a volume to keep it")
    return found


def file_system(folder: Path) -> str:
    """The type of the file system that a folder is on; "" where the system does not tell."""
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
    there = folder.resolve()
    kind, longest = "", -1
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5 or not after:
            continue
        mount = Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4]))
        # Of two mounts on one place, the later one covers the other.
        if there.is_relative_to(mount) and len(mount.parts) >= longest:
            kind, longest = after.split(" ")[0], len(mount.parts)
    return kind
