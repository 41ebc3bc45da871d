"""Pictures, sound and documents as Google takes them.

Bytes go inline, in base64, with their type, which Google insists on: where nobody said it, the
first bytes tell. An address goes as it is, if Google can read it: `https:` (the web, uploaded
files, YouTube) or `gs:`. What is neither, or of a type that is not published as supported, is not
taken, and `prepare` names it in its place.
"""

import base64
import binascii
import re
from typing import NamedTuple

from holdfast.messages import Role
from holdfast.parts import Audio, File, Image, Media

# Of these the whole family is taken; of pictures and documents what is published.
_FAMILIES = ("audio/", "video/", "text/")
_TYPES = frozenset(
    (
        *("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"),
        *("application/pdf", "application/json", "application/xml", "application/rtf"),
        *("application/x-javascript", "application/javascript", "application/x-python"),
    )
)
# What may stand inside the response of a function, with Gemini 3 and later.
RESPONSE_TYPES = frozenset(
    ("image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain")
)
_SAME = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "audio/x-wav": "audio/wav"}
_MAGIC = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (8, b"WEBP", "image/webp"),
    (4, b"ftypheic", "image/heic"),
    (0, b"%PDF-", "application/pdf"),
    (8, b"WAVE", "audio/wav"),
    (0, b"ID3", "audio/mp3"),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
)
_EXTENSIONS = {
    "bmp": "image/bmp",
    "csv": "text/csv",
    "flac": "audio/flac",
    "gif": "image/gif",
    "heic": "image/heic",
    "heif": "image/heif",
    "html": "text/html",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "json": "application/json",
    "md": "text/markdown",
    "mov": "video/quicktime",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "ogg": "audio/ogg",
    "pdf": "application/pdf",
    "png": "image/png",
    "txt": "text/plain",
    "wav": "audio/wav",
    "webm": "video/webm",
    "webp": "image/webp",
    "xml": "application/xml",
}
_TYPE = re.compile(r"[a-z0-9.+-]+/[a-z0-9.+*-]+(?: *; *[\w.+-]+=[\w.+-]+)*", re.IGNORECASE)
_DATA_URL = re.compile(r"data:([^,;]*)(?:;[^,;]*)*?;base64,(.+)", re.IGNORECASE | re.DOTALL)
_ADDRESS = re.compile(r"(?:https|gs)://[^\s\x00-\x1f]+")
_EXTENSION = re.compile(r"\.([a-z0-9]{2,5})(?:[?#].*)?\Z", re.IGNORECASE)


class Source(NamedTuple):
    """Where the bytes of a part are: in `data`, or at `url`."""

    media_type: str | None
    data: bytes | None
    url: str | None

    @property
    def wire(self) -> dict[str, dict[str, str]]:
        """The part as Google has it."""
        if self.data is not None:
            data = base64.b64encode(self.data).decode()
            return {"inlineData": {"mimeType": self.media_type or "", "data": data}}
        assert self.url is not None
        typed = {"mimeType": self.media_type} if self.media_type else {}
        return {"fileData": {"fileUri": self.url, **typed}}


def source(part: Media) -> Source | None:
    """What to send for this part; None if Google would not take it."""
    if part.data is not None:
        return _inline(part.data, part.media_type)
    if part.url is None:
        return None
    if found := _DATA_URL.fullmatch(part.url):
        try:
            data = binascii.a2b_base64(found[2], strict_mode=True)
        except ValueError:
            return None
        return _inline(data, found[1] or part.media_type)
    if not _ADDRESS.fullmatch(part.url):
        return None
    media_type = _typed(part.media_type) or _type_of_address(part.url)
    is_taken = media_type is None or _is_taken(media_type)
    return Source(media_type, None, part.url) if is_taken else None


def takes(part: Media, _role: Role) -> bool:
    """Whether Google takes this part, in whichever role."""
    return source(part) is not None


def made(data: str, media_type: str | None, **extra: object) -> Media:
    """What the model made, from base64; ValueError if it is none."""
    filled = data.translate(_FROM_URL_SAFE) + "=" * (-len(data) % 4)
    content = base64.b64decode(filled, validate=True)
    family = (media_type or "").partition("/")[0]
    kind = {"image": Image, "audio": Audio}.get(family, File)
    return kind(data=content, media_type=media_type, extra=extra)


_FROM_URL_SAFE = str.maketrans("-_", "+/")


def _inline(data: bytes, media_type: str | None) -> Source | None:
    known = _typed(media_type) or _type_of_bytes(data)
    return Source(known, data, None) if data and known and _is_taken(known) else None


def _typed(media_type: str | None) -> str | None:
    if media_type is None or not _TYPE.fullmatch(media_type):
        return None
    return _SAME.get(media_type.lower(), media_type)


def _is_taken(media_type: str) -> bool:
    lower = media_type.lower()
    return lower.startswith(_FAMILIES) or lower.partition(";")[0].strip() in _TYPES


def _type_of_bytes(data: bytes) -> str | None:
    return next((kind for at, magic, kind in _MAGIC if data.startswith(magic, at)), None)


def _type_of_address(url: str) -> str | None:
    found = _EXTENSION.search(url)
    return _EXTENSIONS.get(found[1].lower()) if found else None
