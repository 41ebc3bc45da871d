"""What one message becomes on Google's wire: parts, encoded, that only have to be joined.

A call or a result names its id only if somebody else gave it: an id that we made up, because the
service gave none (`ToolCall.extra["id_is_ours"]`), stays here, and the two find each other by name
and order, as the service does it. Since a result does not know whose id it has, `contents`
decides, when it joins the fragments.

Signatures go back on the very part that they came on, and only to the model that gave them. Gemini
3 refuses a step whose first call has none; for calls that another model made Google publishes a
word to send instead, and it is sent here.

A call that the model only thought of (`extra["thought"]`) and did not sign cannot be verified: it
is left out, with its result.

Media in a result stand inside it, where the model reads them there (Gemini 3, for the types
that are published; an address at Vertex alone): the response names each by `{"$ref": name}`. Other
media follow the last result of the step, each behind a line with its name, and the response has the
bare name.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from holdfast.messages import Message, Role, ToolCall
from holdfast.notes import BLANK, CONTINUE
from holdfast.parts import CallRef, File, Media, Opaque, Part, Text, Thinking
from holdfast.providers import google_arguments, google_media
from holdfast.providers.google_opaque import is_part, signature_of

USER, MODEL = "user", "model"
UNSIGNED = "skip_thought_signature_validator"
MEDIA_OF = "[{label}, from {name}]"

_encode = msgspec.json.Encoder().encode


class Result(NamedTuple):
    """The response of a function, cut where its id may stand; `media` is what follows the step."""

    id: str
    named: bytes
    rest: bytes
    media: tuple[bytes, ...]


class Fragment(NamedTuple):
    """One message: who says it, and its parts with commas between.

    given    ids of its calls that the service is to see
    dropped  ids of its calls that are left out
    result   of a tool's message, instead of the parts
    """

    role: str
    parts: bytes
    given: frozenset[str] | None = None
    dropped: frozenset[str] = frozenset()
    result: Result | None = None


_OPENS = {role: f'{{"role":"{role}","parts":['.encode() for role in (USER, MODEL)}
_OPENS_NEXT = {role: b"]}," + opens for role, opens in _OPENS.items()}
_NONE: frozenset[str] = frozenset()
_made = tuple.__new__  # in half the time of the __new__ that NamedTuple writes


class _Joined(NamedTuple):
    """The first fragments of a conversation, joined: how many, their bytes, who spoke last.

    pieces          to be copied once, when all are there: a long window is megabytes
    given, dropped  of the last calls, as in Fragment
    behind          media of the results of the step that was not over
    """

    number: int = 0
    pieces: tuple[bytes, ...] = (b"[",)
    last: str | None = None
    given: frozenset[str] = _NONE
    dropped: frozenset[str] = _NONE
    behind: tuple[bytes, ...] = ()


def contents(fragments: Sequence[Fragment], settled: int, made: dict[str, Any]) -> msgspec.Raw:
    """The conversation: neighbours of one role are one content, so that the two alternate.

    The first `settled` will be there at the next call, too: what they are joined to is noted in
    `made`, and only what is new is joined then.
    """
    joined = _and(made.get("joined", _Joined()), fragments[:settled])
    made["joined"] = joined
    joined = _and(joined, fragments)
    out = [*joined.pieces, *(b"," + part for part in joined.behind)]
    if joined.last is MODEL:  # the results that had the last word were left out
        out += [_OPENS_NEXT[USER], _text(CONTINUE)]
    return msgspec.Raw(b"".join([*out, b"]}]"]))


def _and(joined: _Joined, fragments: Sequence[Fragment]) -> _Joined:
    """These fragments joined, of which some are already."""
    number, pieces, last, given, dropped, behind = joined
    if number == len(fragments):
        return joined
    out: list[bytes] = []
    for role, parts, calls, left_out, result in fragments[number:]:
        if result is not None:
            if result.id in dropped:
                continue
            named = result.named if result.id in given else b""
            parts = b'{"functionResponse":{' + named + result.rest
            behind += result.media
        elif calls is not None:
            given, dropped = calls, left_out
        if behind and result is None:
            out += [b"," + part for part in behind]
            behind = ()
        if not parts:
            continue
        if role is last:
            out.append(b",")
        else:
            out.append((_OPENS if last is None else _OPENS_NEXT)[role])
            last = role
        out.append(parts)
    return _Joined(len(fragments), (*pieces, b"".join(out)), last, given, dropped, behind)


class Fragments:
    """Makes the fragments for one model (`name` is "vendor:model").

    `is_signed` and `reads_media` say whether it wants signatures, and media in responses;
    `reads_addresses` whether these media may be an address.
    """

    def __init__(
        self,
        name: str,
        vendor: str,
        *,
        is_signed: bool,
        reads_media: bool,
        reads_addresses: bool = False,
    ) -> None:
        self._name = name
        self._vendor = vendor
        self._is_signed = is_signed
        self._reads_media = reads_media
        self._reads_addresses = reads_addresses

    def of(self, message: Message) -> Fragment:
        role = message.role
        if role is Role.ASSISTANT:
            return self._of_model(message)
        if role is Role.TOOL:
            return self._of_tool(message)
        content = message.content
        if isinstance(content, str):
            return _made(Fragment, (USER, _text(content), None, _NONE, None))
        found = [made for part in content or () if (made := self._part(part))]
        return Fragment(USER, b",".join(found) or _text(BLANK))

    # The model's

    def _of_model(self, message: Message) -> Fragment:
        content, calls = message.content, message.tool_calls
        out: list[bytes] = []
        if isinstance(content, str):
            if not calls:
                return _made(Fragment, (MODEL, _text(content), None, _NONE, None))
            out.append(_text(content))
            content = None
        is_own = message.model == self._name
        shown = [each for each in calls if not (each.extra and _is_dropped(each, is_own))]
        made = self._calls(shown, is_own)
        out += made if content is None else self._among(content, shown, made, is_own)
        if not calls:
            return Fragment(MODEL, b",".join(out))
        given = frozenset([each.id for each in shown if not _is_ours(each)])
        dropped = _NONE if len(shown) == len(calls) else _ids(calls) - _ids(shown)
        return _made(Fragment, (MODEL, b",".join(out), given, dropped, None))

    def _among(
        self, content: tuple[Part, ...], calls: list[ToolCall], made: list[bytes], is_own: bool
    ) -> list[bytes]:
        """The calls among the words: in their own order, whatever the places say, because results
        go by it."""
        out: list[bytes] = []
        done = 0
        places = {call.id: index for index, call in enumerate(calls, start=1)}
        for part in content:
            if type(part) is CallRef:
                upto = places.get(part.id, 0)
                out += made[done:upto]
                done = max(done, upto)
            elif words := self._part(part, is_model=True, is_own=is_own):
                out.append(words)
        return out + made[done:]

    def _calls(self, calls: list[ToolCall], is_own: bool) -> list[bytes]:
        out = []
        for index, call in enumerate(calls):
            signature = signature_of(call.signature) if is_own else None
            if signature is None and self._is_signed and index == 0:
                signature = UNSIGNED
            named = b"" if _is_ours(call) else b'"id":' + _encode(call.id) + b","
            is_thought = bool(call.extra) and is_own and call.extra.get("thought") is True
            thought = b',"thought":true' if is_thought else b""
            out.append(
                b'{"functionCall":{%b"name":%b,"args":%b}%b%b}'
                % (
                    named,
                    _encode(call.name),
                    google_arguments.args(call.arguments),
                    thought,
                    _signed(signature),
                )
            )
        return out

    # Anybody's

    def _part(self, part: Part, *, is_model: bool = False, is_own: bool = False) -> bytes | None:
        """A part that is neither a call nor a response; None if there is nothing to send."""
        if isinstance(part, Text):
            signature = signature_of(part.extra.get("signature")) if is_own else None
            return b'{"text":%b%b}' % (_encode(part.text), _signed(signature))
        if isinstance(part, Thinking):
            return _thought(part)
        if isinstance(part, Media):
            found = google_media.source(part)
            if found is None:
                return None
            signature = signature_of(part.extra.get("signature")) if is_own else None
            return _encode(found.wire)[:-1] + _signed(signature) + b"}"
        if isinstance(part, Opaque) and part.provider == self._vendor:
            return _encode(part.data) if is_part(part.data, is_model) else None
        return None

    # A tool's

    def _of_tool(self, message: Message) -> Fragment:
        content, name = message.content, message.name or ""
        if isinstance(content, tuple):
            given, behind = self._given(content, name, message.is_error)
        else:
            given, behind = b'"response":' + _response(content or "", message.is_error), ()
        id = message.tool_call_id or ""
        rest = b'"name":%b,%b}}' % (_encode(name), given)
        result = _made(Result, (id, b'"id":' + _encode(id) + b",", rest, behind))
        return _made(Fragment, (USER, b"", None, _NONE, result))

    def _given(
        self, content: tuple[Part, ...], name: str, is_error: bool
    ) -> tuple[bytes, tuple[bytes, ...]]:
        """What a tool gave back, with the media inside it, and those that follow the step."""
        words: list[str] = []
        refs: list[Any] = []
        inside: list[dict[str, Any]] = []
        behind: list[bytes] = []
        for part in content:
            if isinstance(part, Text):
                words.append(part.text)
            elif isinstance(part, Media) and (found := google_media.source(part)):
                label = _label(part, len(refs) + 1)
                if self._is_read(found):
                    ((kind, fields),) = found.wire.items()
                    inside.append({kind: {**fields, "displayName": label}})
                    refs.append({"$ref": label})
                else:
                    behind += [_text(MEDIA_OF.format(label=label, name=name)), _encode(found.wire)]
                    refs.append(label)
        said = "\n".join(words) if words or not refs else None
        response = b'"response":' + _response(said, is_error, refs)
        parts = b',"parts":' + _encode(inside) if inside else b""
        return response + parts, tuple(behind)

    def _is_read(self, found: google_media.Source) -> bool:
        """Whether the model reads this inside a response."""
        is_of_type = found.media_type in google_media.RESPONSE_TYPES
        is_there = bool(found.data) or (self._reads_addresses and found.url is not None)
        return self._reads_media and is_of_type and is_there

    def detaches(self, part: Media) -> bool:
        """For `Rules.detaches`."""
        found = google_media.source(part)
        return found is not None and not self._is_read(found)


def _text(words: str) -> bytes:
    return b'{"text":' + _encode(words) + b"}"


def _response(words: str | None, is_error: bool, refs: Sequence[Any] = ()) -> bytes:
    """The object that a function gave back: its own, or its words inside one."""
    if words and not is_error and (whole := google_arguments.as_object(words)):
        if not refs:
            return whole
        if b'"media":' not in whole:  # its own, with the media beside what it says
            return whole[:-1] + b"," * (whole != b"{}") + b'"media":' + _encode(refs) + b"}"
    found: dict[str, Any] = {}
    if words is not None:
        found["error" if is_error else "result"] = words
    if refs:
        found["media"] = refs
    return _encode(found)


def _label(part: Media, number: int) -> str:
    """The name of a part among those of its result."""
    kind = type(part).__name__.lower()
    return (
        f"{kind}-{number} {part.name}"
        if isinstance(part, File) and part.name
        else f"{kind}-{number}"
    )


def _is_ours(call: ToolCall) -> bool:
    """Whether we made up its id."""
    return bool(call.extra) and bool(call.extra.get("id_is_ours"))


def _ids(calls: Iterable[ToolCall]) -> frozenset[str]:
    return frozenset(call.id for call in calls)


def _is_dropped(call: ToolCall, is_own: bool) -> bool:
    return is_own and call.extra.get("thought") is True and signature_of(call.signature) is None


def _thought(part: Thinking) -> bytes | None:
    signature = signature_of(part.signature)
    if not part.text and signature is None:
        return None
    return b'{"text":%b,"thought":true%b}' % (_encode(part.text), _signed(signature))


def _signed(signature: str | None) -> bytes:
    return b"" if signature is None else b',"thoughtSignature":"%b"' % signature.encode()
