"""Tool calls as they come in pieces.

A piece names its call by `index`. Where it does not, or where a server gives every call the same
one, an id or a name that is new begins another call, and anything else goes on with the last; of
several pieces that come at once, each with the call in its place.
A call is complete when its arguments are whole JSON and another begins, or when the answer ends:
servers are known that announce all calls first, and fill them later.
"""

from typing import Any

import msgspec

from holdfast.errors import ProtocolError
from holdfast.providers import fields
from holdfast.providers import openai_shared as shared
from holdfast.providers.answer import Answer
from holdfast.providers.fields import Object

_decode = msgspec.json.Decoder().decode


class _Open:
    """A call that is being written."""

    __slots__ = ("extra", "id", "key", "name", "pieces", "signature")

    def __init__(self, key: int, id: str, name: str) -> None:
        self.key = key
        self.id = id
        self.name = name
        self.pieces: list[str] = []
        self.signature: str | None = None
        self.extra: Object = {}

    @property
    def is_whole(self) -> bool:
        try:
            _decode("".join(self.pieces))
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return False
        return True


class Calls:
    """The calls of one answer."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._count = 0
        self._open: list[_Open] = []
        self._by_index: dict[int, _Open] = {}
        self._last: _Open | None = None

    def read(self, pieces: Any) -> None:
        """The `tool_calls` of a message or of a piece of one."""
        for place, piece in enumerate(pieces if type(pieces) is list else _objects(pieces)):
            if type(piece) is not dict:
                _objects(pieces)
            index, inner = piece.get("index"), piece.get("function")
            call = self._by_index.get(index) if type(index) is int else None
            if len(piece) > 2 or call is None or type(inner) is not dict or "name" in inner:
                self._read_piece(piece, call, place if len(pieces) > 1 else None)
            elif (said := inner.get("arguments")) is not None:  # nothing but more of them
                self._add(call, said)

    def _read_piece(self, piece: Object, call: _Open | None, place: int | None) -> None:
        is_custom = piece.get("type") == "custom" or (
            piece.get("custom") and "function" not in piece
        )
        kind = "custom" if is_custom else "function"
        inner = fields.object_of(piece, kind)
        found = self._find(piece, inner, call, place)
        said = inner.get("input" if is_custom else "arguments")
        if said is not None:
            self._add(found, said)
        if is_custom:
            found.extra["type"] = "custom"
        if "extra_content" in piece:
            found.signature = signature_of(piece["extra_content"]) or found.signature

    def read_old(self, call: Object) -> None:
        """The `function_call` of old: one, without an id."""
        name, said = fields.text_of(call, "name"), call.get("arguments")
        if name or said:
            found = self._by_index.get(-1) or self._begin(-1, "", name or "")
            self._add(found, "" if said is None else said)

    def end(self) -> None:
        """All calls are complete."""
        for call in self._open:
            self._end(call)
        self._open = []

    # Which call it is

    def _find(self, piece: Object, inner: Object, call: _Open | None, place: int | None) -> _Open:
        id, name = fields.text_of(piece, "id") or "", fields.text_of(inner, "name") or ""
        index = piece.get("index")
        if type(index) is not int:
            index = None
            call = self._without_index(id, name, place)
        elif call is not None and id and name and call.id and id != call.id:
            call = None  # the same index again, for another call
        if call is None:
            return self._begin(index, id, name)
        if id or name:
            call.id, call.name = call.id or id, call.name or name
            self._answer.begin_call(call.key, id=id, name=name)
        return call

    def _without_index(self, id: str, name: str, place: int | None) -> _Open | None:
        for call in self._open:
            if id and call.id == id and not (name and call.is_whole):
                return call
        if id or name:
            return None
        is_there = place is not None and place < len(self._open)
        return self._open[place or 0] if is_there else self._last

    def _begin(self, index: int | None, id: str, name: str) -> _Open:
        while self._open and self._open[0].is_whole:
            self._end(self._open.pop(0))
        call = _Open(self._count, id, name)
        self._count += 1
        if index is not None:
            self._by_index[index] = call
        self._open.append(call)
        self._last = call
        self._answer.begin_call(call.key, id=id, name=name)
        return call

    # What is known of it

    def _add(self, call: _Open, said: Any) -> None:
        """More of the arguments: text, or, from some servers, the object itself."""
        if type(said) is not str:
            if type(said) not in (dict, list):
                raise ProtocolError("the arguments of a call are a text or an object")
            said = fields.encode(said)
        if said:
            call.pieces.append(said)
            self._answer.add_arguments(call.key, said)

    def _end(self, call: _Open) -> None:
        written = "".join(call.pieces) if call.extra.get("type") == "custom" else None
        self._answer.end_call(
            call.key,
            arguments=None if written is None else shared.text_arguments(written),
            signature=call.signature,
            **call.extra,
        )


def signature_of(extra: Any) -> str | None:
    """Google's, in the `extra_content` of a call or of a message."""
    google = extra.get("google") if type(extra) is dict else None
    signature = google.get("thought_signature") if type(google) is dict else None
    return signature if type(signature) is str else None


def _objects(pieces: Any) -> list[Object]:
    return fields.objects_of({"tool_calls": pieces}, "tool_calls")
