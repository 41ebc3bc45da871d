"""Parts: what a message is made of when plain text will not do."""

import copy
import pickle

import msgspec
import pytest

from holdfast import parts
from holdfast.errors import InvalidInput
from holdfast.frozen import FrozenDict, thaw
from holdfast.parts import Audio, CallRef, File, Image, Opaque, Text, Thinking, Unknown

# class -> the least it needs, and another value of it
PARTS = {
    Text: ({"text": "words"}, {"text": "other"}),
    Image: ({"data": b"\x89PNG"}, {"url": "https://example.org/a.png"}),
    Audio: ({"data": b"RIFF"}, {"blob": "sha256:aa"}),
    File: ({"data": b"%PDF", "name": "a.pdf"}, {"data": b"%PDF", "name": "b.pdf"}),
    Thinking: ({"text": "hm", "signature": "sig"}, {"text": "hm"}),
    CallRef: ({"id": "call_1"}, {"id": "call_2"}),
    Opaque: ({"provider": "acme", "data": {"k": [1]}}, {"provider": "acme", "data": {"k": [2]}}),
    Unknown: ({"raw": {"type": "hologram", "k": [1]}}, {"raw": {"type": "hologram"}}),
}

TEXT_FIELDS = [
    (Text, "text"),
    (Image, "url"),
    (Image, "blob"),
    (Image, "media_type"),
    (Audio, "url"),
    (Audio, "media_type"),
    (File, "url"),
    (File, "name"),
    (Thinking, "text"),
    (Thinking, "signature"),
    (CallRef, "id"),
    (Opaque, "provider"),
]

OPTIONAL = {"url", "blob", "media_type", "signature", "name"}

NOT_TEXT = {"number": 1, "bytes": b"x", "true": True, "list": ["x"], "object": {"a": 1}}

ALL = pytest.mark.parametrize("kind", PARTS, ids=lambda kind: kind.__name__)
FIELDS = pytest.mark.parametrize(
    ("kind", "field"), TEXT_FIELDS, ids=[f"{k.__name__}.{f}" for k, f in TEXT_FIELDS]
)


def build(kind, **fields):
    given = dict(PARTS[kind][0])
    if fields.keys() & {"data", "url", "blob"}:
        given.pop("data", None)
    return kind(**{**given, **fields})


def test_the_parts_are_those_that_were_designed():
    """Text, Image, Audio, File, Thinking, CallRef, Opaque, Unknown."""
    assert set(parts.PART_TYPES) == set(PARTS)


def test_every_text_field_is_in_the_table():
    """A control of this file: a text field added later cannot go unchecked."""
    found = {
        (kind, field.name)
        for kind in PARTS
        if kind is not Unknown
        for field in msgspec.structs.fields(kind)
        if "str" in str(field.type)
    }

    media = {(kind, f) for kind in (Image, Audio, File) for f in ("url", "blob", "media_type")}
    assert found == set(TEXT_FIELDS) | media


@ALL
def test_parts_are_compared_and_hashed_by_content(kind):
    """Values. Equal ones are one member of a set; different ones are not."""
    mine, other = PARTS[kind]

    assert kind(**mine) == kind(**mine)
    assert hash(kind(**mine)) == hash(kind(**mine))
    assert kind(**mine) != kind(**other)
    assert kind(**mine) != mine
    assert len({kind(**mine), kind(**mine), kind(**other)}) == 2


@ALL
def test_parts_pickle_and_copy(kind):
    """Shared freely, with other processes too."""
    part = kind(**PARTS[kind][0])

    for twin in (pickle.loads(pickle.dumps(part)), copy.copy(part), copy.deepcopy(part)):
        assert type(twin) is kind
        assert twin == part
        assert hash(twin) == hash(part)


@ALL
def test_parts_show_what_they_hold(kind):
    """A repr names the class and does not fail."""
    assert kind.__name__ in repr(kind(**PARTS[kind][0]))


@FIELDS
@pytest.mark.parametrize("name", NOT_TEXT)
def test_a_text_field_takes_text_only(kind, field, name):
    """Bad inputs 44: the error names the field."""
    with pytest.raises(InvalidInput, match=field):
        build(kind, **{field: NOT_TEXT[name]})


@FIELDS
@pytest.mark.parametrize("bad", ["\ud800", "a\udfffb", "\ud83d"], ids=["high", "low", "half"])
def test_a_lone_surrogate_is_refused_in_every_text_field(kind, field, bad):
    """Bad inputs 31: typed, at once, and with the name of the field."""
    with pytest.raises(InvalidInput, match=field):
        build(kind, **{field: bad})


@FIELDS
def test_nul_and_noncharacters_are_kept_in_every_text_field(kind, field):
    """Bad inputs 32, 33: plain characters."""
    assert getattr(build(kind, **{field: "a\0b\uffff"}), field) == "a\0b\uffff"


@FIELDS
def test_none_is_taken_only_where_it_means_something(kind, field):
    """An optional field may be left out; words may not."""
    if field in OPTIONAL:
        given = {field: None, "data": b"x"} if field in ("url", "blob") else {field: None}
        assert getattr(build(kind, **given), field) is None
    else:
        with pytest.raises(InvalidInput, match=field):
            build(kind, **{field: None})


@pytest.mark.parametrize("kind", [Image, Audio, File], ids=["image", "audio", "file"])
@pytest.mark.parametrize("field", ["data", "url", "blob"])
def test_media_comes_in_exactly_one_form(kind, field):
    """Bytes, an address or a stored blob: none would be nothing, two would be a riddle."""
    forms = {"data": b"x", "url": "https://example.org/x", "blob": "sha256:aa"}

    assert getattr(kind(**{field: forms[field]}), field) == forms[field]
    with pytest.raises(InvalidInput):
        kind()
    for other in forms.keys() - {field}:
        with pytest.raises(InvalidInput):
            kind(**{field: forms[field], other: forms[other]})
    with pytest.raises(InvalidInput):
        kind(**forms)


@pytest.mark.parametrize("kind", [Image, Audio, File], ids=["image", "audio", "file"])
@pytest.mark.parametrize("bad", ["text", 1, ["x"], {"a": 1}], ids=["text", "int", "list", "dict"])
def test_data_is_bytes(kind, bad):
    """Bad inputs 47: base64 text is the codec's business; here are bytes."""
    with pytest.raises(InvalidInput, match="data"):
        kind(data=bad)


@pytest.mark.parametrize("kind", [Image, Audio, File], ids=["image", "audio", "file"])
def test_broken_data_is_kept_as_it_is(kind):
    """Bad inputs 47: an empty file, an SVG with a script, any bytes: data, never looked into."""
    for data in (b"", b"\0\xff" * 100, b"<svg onload=alert(1)>"):
        assert kind(data=data, media_type="image/svg+xml").data == data


@pytest.mark.parametrize("bad", [1, 0, None, "yes"], ids=["1", "0", "none", "yes"])
def test_redacted_is_a_boolean(bad):
    """A flag is True or False, so that JSON says the same everywhere."""
    with pytest.raises(InvalidInput, match="redacted"):
        Thinking("", redacted=bad)


def test_thinking_keeps_its_signature():
    """S2-24, S1-27: thinking and the vendor's proof of it are kept."""
    part = Thinking("I think", signature="c2ln", redacted=False)
    sealed = Thinking("", signature="sealed block", redacted=True)

    assert (part.text, part.signature, part.redacted) == ("I think", "c2ln", False)
    assert (sealed.text, sealed.signature, sealed.redacted) == ("", "sealed block", True)
    assert Thinking("x").signature is None


@pytest.mark.parametrize("kind", [Text, Image, Audio, File, Thinking], ids=lambda k: k.__name__)
@pytest.mark.parametrize("bad", [None, [], "x", 1], ids=["none", "list", "text", "number"])
def test_extra_is_an_object(kind, bad):
    """Bad inputs 55: null where an object belongs is a typed error, not an empty object."""
    with pytest.raises(InvalidInput, match="extra"):
        build(kind, extra=bad)


@pytest.mark.parametrize("kind", [Text, Image, Audio, File, Thinking], ids=lambda k: k.__name__)
def test_extra_is_kept(kind):
    """Unknown fields survive."""
    part = build(kind, extra={"cache_control": {"type": "ephemeral"}, "l": [1]})

    assert thaw(part.extra) == {"cache_control": {"type": "ephemeral"}, "l": [1]}
    assert type(part.extra) is FrozenDict


@pytest.mark.parametrize("bad", [None, [], "x", 1], ids=["none", "list", "text", "number"])
def test_an_opaque_block_is_an_object(bad):
    """A vendor's block, replayed verbatim."""
    with pytest.raises(InvalidInput, match="data"):
        Opaque("acme", bad)


def test_an_opaque_block_is_kept_to_the_letter():
    """Order of the names, nesting and types are the vendor's."""
    block = {"type": "server_tool", "z": 1, "a": [{"b": None}, 1.0, True], "e": {}}

    assert thaw(Opaque("acme", block).data) == block
    assert list(Opaque("acme", block).data) == list(block)


@pytest.mark.parametrize(
    "raw",
    [None, True, 7, 1.5, "words", [], [1, {"a": 2}], {}, {"type": "new", "lc": 1}],
    ids=["null", "true", "int", "float", "text", "empty-list", "list", "empty", "object"],
)
def test_an_unknown_part_is_any_json_value(raw):
    """What this version cannot read is kept as it is."""
    assert thaw(Unknown(raw).raw) == raw
    assert type(thaw(Unknown(raw).raw)) is type(raw)


@pytest.mark.parametrize(
    "raw",
    [b"x", {1: 2}, float("nan"), "\ud800", object()],
    ids=["bytes", "key", "nan", "sur", "obj"],
)
def test_an_unknown_part_that_is_not_json_is_refused(raw):
    """It has to be written again, so it has to be JSON."""
    with pytest.raises(InvalidInput):
        Unknown(raw)


def test_true_and_one_are_different_unknown_parts_or_equal_with_equal_hashes():
    """Equality and hash agree, whatever Python says about True and 1."""
    one, true = Unknown(1), Unknown(True)

    assert (one == true) <= (hash(one) == hash(true))


def test_the_type_tells_parts_apart_in_json():
    """Names on disk are chosen once; renaming a class changes no file."""
    told = {
        kind.__name__: msgspec.to_builtins(kind(**given))["type"]
        for kind, (given, _) in PARTS.items()
        if kind is not Unknown
    }

    assert told == {
        "Text": "text",
        "Image": "image",
        "Audio": "audio",
        "File": "file",
        "Thinking": "thinking",
        "CallRef": "call",
        "Opaque": "opaque",
    }


@ALL
def test_a_field_that_does_not_exist_is_refused(kind):
    """A misspelled field is not swallowed."""
    with pytest.raises((TypeError, InvalidInput)):
        kind(**PARTS[kind][0], colour="red")
