"""What Google would take back: a signature that can be one, and a part that it knows.

Opaque parts are replayed as they came. What a history holds under that name may still be anything,
and a part that Google cannot read would spoil the whole request; so only what is published goes.
"""

import re
from typing import Any

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+(={0,2})")

# Calls and responses are not among these: they come in pairs.
_BY_ANYBODY = {"text": str, "inlineData": dict, "fileData": dict}
_BY_MODEL = dict.fromkeys(
    ("executableCode", "codeExecutionResult", "toolCall", "toolResponse"), dict
)
_BESIDE = {"videoMetadata": dict, "mediaResolution": dict, "partMetadata": dict}


def signature_of(signature: object) -> str | None:
    """A signature that can be one: base64, of either alphabet, filled up or not."""
    if type(signature) is not str or not (found := _BASE64.fullmatch(signature)):
        return None
    filled, size = len(found[1]), len(signature)
    return signature if (size - filled) % 4 != 1 and not (filled and size % 4) else None


def is_part(data: dict[str, Any], is_model: bool) -> bool:
    """Whether Google would take this as a part: one thing that it knows, and what may go along."""
    kinds = {**_BY_ANYBODY, **_BY_MODEL} if is_model else _BY_ANYBODY
    held = [name for name in data if name in kinds]
    if len(held) != 1 or not isinstance(data[held[0]], kinds[held[0]]):
        return False
    for name, value in data.items():
        if name in held:
            continue
        if name == "thoughtSignature":
            is_good = is_model and signature_of(value) is not None
        elif name == "thought":
            is_good = is_model and type(value) is bool
        else:
            is_good = isinstance(value, _BESIDE.get(name, ()))
        if not is_good:
            return False
    return _is_filled(held[0], data[held[0]], is_signed="thoughtSignature" in data)


def _is_filled(name: str, value: Any, *, is_signed: bool) -> bool:
    if name == "text":
        return bool(value) or is_signed
    if name == "inlineData":
        media_type, data = value.get("mimeType"), value.get("data")
        return bool(media_type) and type(media_type) is str and signature_of(data) is not None
    if name == "fileData":
        media_type = value.get("mimeType", "")
        return (
            bool(value.get("fileUri")) and type(value["fileUri"]) is str and type(media_type) is str
        )
    return True
