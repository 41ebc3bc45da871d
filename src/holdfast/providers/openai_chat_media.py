"""Pictures, sound and documents as Chat Completions take them.

| part  | goes as                                                                           |
|-------|-----------------------------------------------------------------------------------|
| Image | `image_url`: its address, or its bytes in a data URL (png, jpeg, gif, webp)       |
| Audio | `input_audio`: its bytes (wav, mp3)                                               |
| File  | `file`: the bytes of a PDF, at OpenRouter also its address; any other document    |
|       | that is text goes as text                                                         |

Only the user shows media. A tool's message takes text alone, so what a tool gave back goes into a
user's message behind the results (see `openai_chat`).
"""

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any

from holdfast.messages import Role
from holdfast.parts import Audio, File, Image, Media
from holdfast.providers.fields import Object
from holdfast.providers.openai_chat_dialect import Dialect

IMAGES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
SOUNDS = {
    **dict.fromkeys(("audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"), "wav"),
    **dict.fromkeys(("audio/mpeg", "audio/mp3"), "mp3"),
}
PDF = "application/pdf"
DETAILS = frozenset(("auto", "low", "high"))
_TEXTS = re.compile(r"text/|application/(?:[\w.+-]+\+)?(?:json|xml|yaml|x-yaml|toml|javascript)$")
_WEB = re.compile(r"https?://[^\s]")
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w-]+=[^;,]*)*;base64,")
# How the bytes of each kind begin.
_BEGINNINGS = (
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF", PDF),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
)


def media_type(part: Media) -> str | None:
    """What kind of media it is: as it says itself, or as its bytes look."""
    if part.media_type:
        return part.media_type.partition(";")[0].strip().lower()
    data = part.data or b""
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(data[8:12])
    return next((kind for begin, kind in _BEGINNINGS if data.startswith(begin)), None)


def part_of(part: Any, dialect: Dialect) -> Object | None:
    """The part as the wire has it, or None where it cannot be sent."""
    make = _MAKERS.get(type(part))
    return None if make is None else make(part, dialect)


def taker(dialect: Dialect) -> Callable[[Any, Role], bool]:
    """For `Rules.takes`: what can be shown to a server of this dialect, and in whose message."""

    def takes(part: Any, role: Role) -> bool:
        if role is Role.ASSISTANT:  # what it said aloud is there in words
            return type(part) is Audio and "transcript" in part.extra
        if role is Role.TOOL and dialect.alternates and type(part) is not File:
            return False  # the user's message behind it would be the second in a row
        if role not in (Role.USER, Role.TOOL):
            return False
        return part_of(part, dialect) is not None

    return takes


def text_of(file: File) -> str | None:
    """The words of a document that is text, behind its name; None if it is none."""
    kind = media_type(file)
    if not (file.data and kind and _TEXTS.match(kind)):
        return None
    try:
        words = file.data.decode()
    except UnicodeDecodeError:
        return None
    return f"{file.name}:\n{words}" if file.name else words


def from_url(url: str, kind: type[Image] = Image) -> Image | None:
    """A picture in an answer: its bytes if they are in the URL, else the address."""
    match = _DATA_URL.match(url)
    if match is None:
        return kind(url=url) if _WEB.match(url) else None
    try:
        data = base64.b64decode(url[match.end() :], validate=True)
    except (binascii.Error, ValueError):
        return None
    return kind(data=data, media_type=match[1])


def _image(image: Image, dialect: Dialect) -> Object | None:
    if not dialect.has_images or not (url := _image_url(image)):
        return None
    shown: Object = {"url": url}
    if image.extra.get("detail") in DETAILS:
        shown["detail"] = image.extra["detail"]
    return {"type": "image_url", "image_url": shown}


def _image_url(image: Image) -> str | None:
    if image.url is not None:
        is_good = _WEB.match(image.url) or _is_data(image.url)
        return image.url if is_good else None
    kind = media_type(image)
    return _data_url(kind, image.data) if image.data and kind in IMAGES else None


def _audio(audio: Audio, dialect: Dialect) -> Object | None:
    sound = SOUNDS.get(media_type(audio) or "")
    if not (dialect.has_files and audio.data and sound):
        return None
    return {"type": "input_audio", "input_audio": {"data": _base64(audio.data), "format": sound}}


def _file(file: File, dialect: Dialect) -> Object | None:
    if (words := text_of(file)) is not None:
        return {"type": "text", "text": words}
    kind = media_type(file)
    if dialect.has_file_urls and file.url and _WEB.match(file.url) and kind in (None, PDF):
        data = file.url
    elif dialect.has_files and file.data and kind == PDF:
        data = _data_url(PDF, file.data)
    else:
        return None
    return {"type": "file", "file": {"filename": file.name or "document.pdf", "file_data": data}}


def _data_url(kind: str | None, data: bytes | None) -> str:
    return f"data:{kind};base64,{_base64(data or b'')}"


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _is_data(url: str) -> bool:
    found = from_url(url) if url.startswith("data:") else None
    return found is not None and bool(found.data)


_MAKERS: dict[type, Callable[[Any, Dialect], Object | None]] = {
    Image: _image,
    Audio: _audio,
    File: _file,
}
