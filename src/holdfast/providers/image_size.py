"""How large a picture is, from the first bytes of a PNG, JPEG, GIF or WebP file.

    image_size(data)    # (1280, 720), or None: not one of these, or damaged

Any bytes may come: nothing raises, and no more is read than the headers.
"""

SEGMENTS_MAX = 1_000  # of a JPEG, before its size; real ones have a few dozen


def image_size(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels; None when they cannot be read."""
    size = None
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR":
        size = _numbers(data, 16, 4, "big")
    elif data.startswith((b"GIF87a", b"GIF89a")):
        size = _numbers(data, 6, 2, "little")
    elif data.startswith(b"\xff\xd8"):
        size = _jpeg(data)
    elif data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        size = _webp(data)
    return size if size and size[0] > 0 and size[1] > 0 else None


def _numbers(data: bytes, start: int, length: int, order: str) -> tuple[int, int] | None:
    """Two whole numbers of `length` bytes, one after the other."""
    end = start + 2 * length
    if len(data) < end:
        return None
    first, second = data[start : start + length], data[start + length : end]
    if order == "big":
        return int.from_bytes(first, "big"), int.from_bytes(second, "big")
    return int.from_bytes(first, "little"), int.from_bytes(second, "little")


def _jpeg(data: bytes) -> tuple[int, int] | None:
    """Walk over the segments up to the one that begins the picture, whose size it has."""
    at = 2
    for _ in range(SEGMENTS_MAX):
        while data[at : at + 2] == b"\xff\xff":  # fill bytes
            at += 1
        if len(data) < at + 4 or data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            size = _numbers(data, at + 5, 2, "big")
            return size and (size[1], size[0])  # the height comes first
        if marker in (0xD9, 0xDA):  # the end, or the picture itself
            return None
        alone = marker == 0x01 or 0xD0 <= marker <= 0xD8
        at += 2 if alone else 2 + max(2, int.from_bytes(data[at + 2 : at + 4], "big"))
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    kind = data[12:16]
    if kind == b"VP8X" and len(data) >= 30:
        size = _numbers(data, 24, 3, "little")
        return size and (size[0] + 1, size[1] + 1)
    if kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        size = _numbers(data, 26, 2, "little")
        return size and (size[0] & 0x3FFF, size[1] & 0x3FFF)  # the upper bits scale it
    if kind == b"VP8L" and data[20:21] == b"\x2f" and len(data) >= 25:
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return None
