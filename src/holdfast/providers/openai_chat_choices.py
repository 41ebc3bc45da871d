"""What an answer has beside its words: further choices, sound, and facts of every kind."""

import base64
import binascii
from typing import Any

from holdfast import text
from holdfast.frozen import FrozenDict
from holdfast.parts import Audio
from holdfast.providers import fields
from holdfast.providers.fields import Object


def keep(kept: Object, name: str, value: Any) -> None:
    """Add a fact to those that came before: lists grow, objects are merged, others replaced."""
    if value is None or value in ("", [], {}):
        return
    before = kept.get(name)
    if type(before) is list and type(value) is list:
        before += value
    elif type(before) is dict and type(value) is dict:
        for inner, more in value.items():
            keep(before, inner, more)
    else:
        kept[name] = value


def add_choice(kept: Object, choice: Object) -> None:
    """A piece of another choice than the first: put together under `choices`."""
    others: list[Object] = kept.setdefault("choices", [])
    index = choice["index"]
    found = next((each for each in others if each["index"] == index), None)
    if found is None:
        found = {"index": index, "message": {}}
        others.append(found)
    _add_message(found["message"], fields.object_of(choice, "delta"))
    for name, value in choice.items():
        if name not in ("index", "delta"):
            keep(found, name, value)


def _add_message(message: Object, said: Object) -> None:
    for name, value in said.items():
        if name == "tool_calls":
            for piece in fields.objects_of(said, name):
                _add_call(message.setdefault(name, []), piece)
        elif name != "role" and type(value) is str and type(message.get(name)) is str:
            message[name] += value
        else:
            keep(message, name, value)


def _add_call(calls: list[Object], piece: Object) -> None:
    index = piece.get("index")
    found = next((call for call in calls if call.get("index") == index), None)
    function, more = None, piece.get("function")
    if found is not None:
        function = found.get("function")
    if type(function) is not dict or type(more) is not dict:
        calls.append(piece)
        return
    if type(arguments := more.get("arguments")) is str:
        function["arguments"] = (function.get("arguments") or "") + arguments


class Sound:
    """What the model says aloud, and its words."""

    def __init__(self) -> None:
        self._data: list[str] = []
        self._said: list[str] = []
        self._extra: Object = {}

    def add(self, audio: Object) -> str:
        """More of it; returns the words that came with it."""
        data, words = fields.text_of(audio, "data"), fields.text_of(audio, "transcript") or ""
        if data:
            self._data.append(data)
        self._said.append(words)
        self._extra |= {n: v for n, v in audio.items() if n not in ("data", "transcript") and v}
        return words

    def part(self) -> Audio | None:
        """The sound, if there was any that can be read."""
        try:
            data = b"".join(base64.b64decode(each, validate=True) for each in self._data)
        except (binascii.Error, ValueError):
            return None
        if not data:
            return None
        kind = "audio/wav" if data[:4] == b"RIFF" else None
        extra = {n: v for n, v in self._extra.items() if type(v) in (str, int)}
        said = text.mend("".join(self._said))[0]
        return Audio(data=data, media_type=kind, extra=FrozenDict({**extra, "transcript": said}))
