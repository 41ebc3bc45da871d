"""Pictures and documents in the words of OpenAI's Responses API.

A picture is PNG, JPEG, GIF or WebP; a document has a name and a type. Either comes as its bytes, in
a data URL, or as an address that the service fetches. Sound is not taken.
"""

import base64
import mimetypes
import re

from holdfast.messages import Role
from holdfast.parts import File, Image, Media, Part
from holdfast.providers.fields import Object

_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_DETAILS = ("auto", "low", "high", "original")
_ADDRESS = re.compile(r"https?://[^\s/]", re.IGNORECASE)
_DATA_URL = re.compile(r"data:([a-z0-9.+-]+/[a-z0-9.+-]+);base64,([A-Za-z0-9+/]+={0,2})")
_TYPE = re.compile(r"[a-z0-9.+-]+/[a-z0-9.+-]+")


def takes(part: Part, role: Role) -> bool:
    """Whether a message of this role may hold this part."""
    if role not in (Role.USER, Role.TOOL) or not isinstance(part, Image | File):
        return False
    return part_of(part) is not None


def part_of(part: Image | File) -> Object | None:
    """The part as it is sent; None if the service would not take it."""
    return _image(part) if type(part) is Image else _file(part)  # type: ignore[arg-type]


def _image(part: Image) -> Object | None:
    address = part.url if part.url and _ADDRESS.match(part.url) else _data_url(part, _picture(part))
    if address is None or (address.startswith("data:") and _type_of(address) not in _PICTURES):
        return None
    sent: Object = {"type": "input_image", "image_url": address}
    if (detail := part.extra.get("detail")) in _DETAILS:
        sent["detail"] = detail
    return sent


def _file(part: File) -> Object | None:
    if part.url and _ADDRESS.match(part.url):
        return {"type": "input_file", "file_url": part.url}
    data = _data_url(part, _document(part))
    if data is None:
        return None
    ending = mimetypes.guess_extension(_type_of(data)) or ""
    return {"type": "input_file", "filename": part.name or f"document{ending}", "file_data": data}


def _data_url(part: Media, kind: str | None) -> str | None:
    if part.url is not None:
        match = _DATA_URL.fullmatch(part.url)
        return part.url if match and len(match[2]) % 4 == 0 else None
    if not part.data or kind is None or not _TYPE.fullmatch(kind):
        return None
    return f"data:{kind};base64,{base64.b64encode(part.data).decode()}"


def _type_of(data_url: str) -> str:
    return data_url[len("data:") : data_url.index(";")]


def _picture(part: Image) -> str | None:
    """The type of a picture: as it says, else as its first bytes say."""
    if part.media_type:
        return "image/jpeg" if part.media_type == "image/jpg" else part.media_type
    data = part.data or b""
    if data.startswith(b"\x89PNG"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith(b"GIF8"):
        return "image/gif"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


def _document(part: File) -> str | None:
    """The type of a document: as it says, else as its name or its first bytes say."""
    if part.media_type:
        return part.media_type
    if (part.data or b"").startswith(b"%PDF"):
        return "application/pdf"
    return mimetypes.guess_type(part.name)[0] if part.name else None
