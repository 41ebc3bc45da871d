"""Records: everything about an entry, versioned; and reading damaged or newer ones."""

import contextlib
import json
import re
import sys
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

import holdfast.codec.record  # noqa: F401  (the name in holdfast.codec is the function)
from holdfast import codec
from holdfast.entries import Call, Fold, Mark, UnknownEntry
from holdfast.errors import Corrupt, FormatTooNew, HoldfastError, InvalidInput, TooLarge
from holdfast.messages import Message, Role, ToolCall
from holdfast.parts import Audio, CallRef, File, Image, Opaque, Text, Thinking, Unknown
from holdfast.usage import Usage

GOLDEN = Path(__file__).parent / "golden" / "codec"
ID = "01950000-0000-7000-8000-00000000000"
NOON = datetime(2026, 2, 1, 12, tzinfo=UTC)

GOLDENS = {
    "record_message.json": Message(
        Role.ASSISTANT,
        (
            Text("Grüße\n\u2028\0"),
            Text("noted", extra={"cache": True}),
            Image(data=b"\0\1\2", media_type="image/png"),
            Image(url="https://example.com/a.png"),
            Audio(blob="b2:ab", media_type="audio/wav"),
            File(data=b"%PDF", media_type="application/pdf", name="a.pdf"),
            Thinking("Hm.", "c2ln"),
            Thinking("", "c2VhbGVk", redacted=True),
            CallRef("call_1"),
            Opaque("anthropic", {"type": "server_tool_use", "id": "s1"}),
            Unknown({"type": "hologram", "depth": 3}),
            Unknown(7),
        ),
        tool_calls=(
            ToolCall(id="call_1", name="weather", arguments='{"city": "Zürich"}', signature="c2ln"),
            ToolCall(
                id="call_2",
                name="time",
                arguments="",
                output="12:00",
                is_error=True,
                extra={"n": 1},
            ),
        ),
        tool_call_id="call_0",
        name="reporter",
        author="helper",
        is_error=True,
        id=ID + "1",
        timestamp=NOON.replace(microsecond=5),
        model="vendor:model",
        prefix="ab12",
        stop="tool_use",
        synthetic="summary",
        extra={"reasoning_content": "…", "list": [1, 2.5, None, 2**53 + 1]},
    ),
    "record_short_message.json": Message.user(
        "I am Ada.", id=ID + "2", timestamp=NOON.replace(tzinfo=timezone(timedelta(hours=1)))
    ),
    "record_fold.json": Fold(
        first=1,
        last=4,
        replacement=Message.user("They met.", id=ID + "4", timestamp=NOON, synthetic="summary"),
        by="compactor",
        why="the window was full",
        tokens_before=100,
        tokens_after=0,
        id=ID + "3",
        timestamp=NOON,
        extra={"round": 2},
    ),
    "record_call.json": Call(
        model="vendor:model",
        about=ID + "1",
        usage=Usage(input=10, output=2, cache_read=4, cache_write=0, reasoning=1),
        stop="stop",
        latency_ms=120,
        cost=Decimal("0.0015"),
        window={"messages": 3},
        digest="ab12",
        request_id="req_1",
        id=ID + "5",
        timestamp=NOON,
        extra={"region": "eu"},
    ),
    "record_mark.json": Mark(
        what="mended",
        about=ID + "1",
        data={"characters": 1},
        id=ID + "6",
        timestamp=NOON,
        extra={"by": "reader"},
    ),
}

SHORT = (
    b'{"v":1,"message":{"role":"user","content":"x","id":"i","timestamp":"2026-02-01T12:00:00Z"%b}}'
)
HEAD = '"id":"i","timestamp":"2026-02-01T12:00:00Z"'


def row(kind, fields):
    return f'{{"v":1,"{kind}":{{{HEAD},{fields}}}}}'.encode()


def outcome(data):
    """What comes of reading a row: an entry that can be stored, or the error; nothing else."""
    try:
        found = codec.read_record(data)
    except (Corrupt, FormatTooNew) as error:
        return error
    assert codec.read_record(codec.record(found)) == found
    return found


# --- golden rows ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", GOLDENS)
def test_an_entry_is_written_as_these_very_bytes(name):
    """
    Names on disk are chosen once; a changed byte is a changed format (S2-75, S2-76, A2). S1-6: a
    role is its word.
    """
    assert codec.record(GOLDENS[name]) == (GOLDEN / name).read_bytes()


@pytest.mark.parametrize("name", GOLDENS)
def test_these_bytes_are_read_as_this_entry(name):
    """By the fast path and by the strict one alike; ids, parts and thoughts survive (S2-76)."""
    data = (GOLDEN / name).read_bytes()

    assert codec.read_record(data) == GOLDENS[name]
    assert codec.read_foreign_record(data) == (GOLDENS[name],)
    assert codec.read_foreign_record(data.decode()) == (GOLDENS[name],)


@pytest.mark.parametrize("name", GOLDENS)
def test_types_and_frozenness_survive(name):
    """Equal is not enough: roles are roles, arrays tuples, and nothing can be changed (S1-7)."""
    found = codec.read_record((GOLDEN / name).read_bytes())
    strict = codec.read_foreign_record((GOLDEN / name).read_bytes())[0]

    assert repr(found) == repr(strict) == repr(GOLDENS[name])
    assert hash(found) == hash(GOLDENS[name])
    with pytest.raises((TypeError, AttributeError)):
        found.extra["x"] = 1


@pytest.mark.parametrize("name", GOLDENS)
def test_the_version_comes_first(name):
    """So that a reader can tell the version before anything else is understood."""
    data = codec.record(GOLDENS[name])

    assert data.startswith(b'{"v":1,')
    assert codec.VERSION == 1


def test_defaults_are_absent_and_empty_texts_are_not_defaults():
    """`absent when empty` is None or (), while "" is something that was said."""
    bare = Message.user(None, id="i", timestamp=NOON)
    empty = Message.user("", id="i", timestamp=NOON)
    none = Message.user([], id="i", timestamp=NOON)

    assert codec.record(bare) == (
        b'{"v":1,"message":{"role":"user","id":"i","timestamp":"2026-02-01T12:00:00Z"}}'
    )
    for message in (bare, empty, none):
        assert codec.read_record(codec.record(message)) == message


# --- the table at the top of the module -------------------------------------------------------


def table():
    """The names that the docstring of the module lists, by kind."""
    text = sys.modules["holdfast.codec.record"].__doc__
    names = {"all": set()}
    pending = None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|") or set(line) <= set("|-") or cells[0] == "name":
            continue
        if len(cells) == 1:
            pending = re.split(r",\s*", cells[0])
        elif cells[0] == "" and cells[1] in ("message", "fold", "call", "mark"):
            names[cells[1]] = set(pending)
        elif cells[1] == "all":
            names["all"] |= set(re.split(r",\s*", cells[0]))
    return names


@pytest.mark.parametrize(
    ("kind", "type"), [("message", Message), ("fold", Fold), ("call", Call), ("mark", Mark)]
)
def test_the_table_in_the_docstring_names_the_fields_that_are_written(kind, type):
    """The format is described where it is written: the table must not drift."""
    real = {field.encode_name for field in msgspec.structs.fields(type)}

    assert table()[kind] | (table()["all"] - {"v"}) == real
    assert not table()[kind] & table()["all"]


def test_the_docstring_names_the_parts_and_the_fields_of_a_tool_call():
    import sys

    text = " ".join(sys.modules["holdfast.codec.record"].__doc__.split())
    kinds = re.search(r"object with its `type`: ([a-z, ]+)\.", text)[1]
    fields = re.search(r"A tool call has ([a-z_, ]+)\.", text)[1]

    tags = [
        msgspec.inspect.type_info(part).tag
        for part in (Text, Image, Audio, File, Thinking, CallRef, Opaque)
    ]
    assert kinds.split(", ") == tags
    assert re.findall("[a-z_]{4,}|id", fields.replace("when set", "")) == [
        field.encode_name for field in msgspec.structs.fields(ToolCall)
    ]


# --- versions and kinds -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b'{"v":2,"message":{"role":"user","content":"x","id":"i","timestamp":"2026-02-01T12:00:00Z"}}',
        b'{"v":2,"poem":{}}',
        b'{"v":2}',
        b'{"v":2,"message":{"role":7,"id":[],"timestamp":"long ago"}}',
        b'{"v":99,"a":1,"b":2}',
    ],
)
def test_a_newer_version_is_refused_as_such_and_as_nothing_else(data):
    """FormatTooNew tells the user to update; Corrupt would send them to their backups."""
    with pytest.raises(FormatTooNew) as caught:
        codec.read_record(data, "session 'a', entry 7")

    assert "session 'a', entry 7" in str(caught.value)
    with pytest.raises(FormatTooNew):
        codec.read_foreign_record(data)


@pytest.mark.parametrize("version", ["0", "-1", "null", '"1"', "true", "1.0", "1.5", "[1]", "{}"])
def test_a_version_that_is_none_is_damage(version):
    """Not a version that this or a later holdfast could have written."""
    data = (SHORT % b"").replace(b'"v":1', b'"v":' + version.encode())
    found = outcome(data)

    assert isinstance(found, Corrupt) or (version == "1.0" and isinstance(found, Message))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" ",
        b"{}",
        b'{"v":1}',
        b"[]",
        b"null",
        b"1",
        b'"x"',
        b'{"message":{}}',
        b"\x00" * 64,
        b'{"v":1,"message":null}',
        b'{"v":1,"message":[]}',
        b'{"v":1,"message":{}}',
        b"\xff\xfe",
        SHORT % b"" + b"x",
        SHORT % b"" * 2,
    ],
)
def test_what_is_no_record_is_corrupt_and_the_error_names_its_place(data):
    """`where` names it, so that the damaged row can be found and restored."""
    with pytest.raises(Corrupt, match="row 12"):
        codec.read_record(data, "row 12")
    with pytest.raises(InvalidInput):
        codec.read_foreign_record(data)


@pytest.mark.parametrize(
    "data",
    [
        b'{"v":1,"poem":{"lines":[1,2],  "x":1.0}}',
        b'{"v":1,"poem":{"a":1e2,"\\u0062":"\\u0041"}}',
        b'{"v":1,"poem":"text"}',
        b'{ "v" : 1 , "poem" : [ ] }\n',
        '{"v":1,"poem":{"ü":"\u2028"}}'.encode(),
    ],
)
def test_an_unknown_kind_is_kept_byte_for_byte(data):
    """Kinds unknown to a reader are kept and skipped: not a byte is changed on the way."""
    found = codec.read_record(data)

    assert found == UnknownEntry(kind="poem", raw=data)
    assert codec.record(found) == data
    assert codec.read_foreign_record(data) == (found,)


def test_an_unknown_kind_is_still_checked_strictly_when_it_comes_from_elsewhere():
    """Keeping bytes must not let in what a strict reader refuses."""
    for bad in (b'{"v":1,"poem":{"a":1,"a":2}}', b'{"v":1,"poem":NaN}', b'{"v":1,"poem":1e400}'):
        with pytest.raises(InvalidInput):
            codec.read_foreign_record(bad)


def test_two_kinds_in_one_row_are_damage():
    """A record holds one entry."""
    both = b'{"v":1,"message":{"role":"user",%b},"mark":{"what":"x",%b}}' % (
        HEAD.encode(),
        HEAD.encode(),
    )

    assert isinstance(outcome(both), Corrupt)


# --- what a newer version may have added --------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("message", '"role":"user","content":"x"'),
        ("fold", '"first":1,"last":2'),
        ("call", '"model":"m"'),
        ("mark", '"what":"x"'),
    ],
)
def test_an_unknown_field_lands_in_extra_and_survives(kind, fields):
    """A newer version's field is not lost when an older one reads and writes the entry."""
    data = row(kind, fields + ',"extra":{"old":1},"mood":{"valence":[1,null]}')

    found = codec.read_record(data)

    assert found.extra == {"old": 1, "mood": {"valence": (1, None)}}
    assert codec.read_record(codec.record(found)) == found
    assert codec.read_foreign_record(data) == (found,)


def test_an_unknown_field_of_usage_survives():
    """Tokens of a kind that this version does not count are not forgotten."""
    data = row("call", '"model":"m","usage":{"input":5,"audio":3}')

    found = codec.read_record(data)

    assert found.usage == Usage(input=5)
    assert '"audio":3' in codec.record(found).decode().replace(": ", ":")
    assert codec.read_record(codec.record(found)) == found


@pytest.mark.parametrize(
    "part",
    [
        '{"type":"text","text":"a","mood":1}',
        '{"type":"image","url":"u","mood":1}',
        '{"type":"file","url":"u","name":"n","mood":1}',
        '{"type":"thinking","text":"a","mood":1}',
        '{"type":"call","id":"c","mood":1}',
        '{"type":"opaque","provider":"p","data":{},"mood":1}',
    ],
)
def test_an_unknown_field_of_a_part_survives(part):
    data = (SHORT % b"").replace(b'"x"', b"[" + part.encode() + b"]")

    found = codec.read_record(data)

    assert '"mood":1' in codec.record(found).decode()
    assert codec.read_record(codec.record(found)) == found
    assert codec.read_foreign_record(data) == (found,)


@pytest.mark.parametrize(
    "part",
    [
        '{"type":"hologram","depth":3,"a":[1.0,null]}',
        "7",
        "null",
        "[1,[2]]",
        "true",
        '{"a":1}',
        "{}",
        "1.50",
        '{"type":"video","url":"u"}',
        '{"type":"text"}',
        '{"type":"image","data":"@"}',
        '{"type":null}',
    ],
)
def test_an_unknown_part_is_written_as_it_was(part):
    """A later version finds what was written."""
    data = (SHORT % b"").replace(b'"x"', b"[" + part.encode() + b"]")

    found = codec.read_record(data)

    assert found.content == (Unknown(json.loads(part)),)
    assert json.loads(codec.record(found))["message"]["content"] == [json.loads(part)]
    assert codec.read_record(codec.record(found)) == found


@pytest.mark.parametrize(
    "raw",
    [
        "words",
        {"type": "text", "text": "x"},
        {"type": "call", "id": "c"},
        {"type": "image", "url": "u"},
    ],
)
def test_an_unknown_part_that_could_be_read_is_refused_or_comes_back_the_same(raw):
    """`read_record` gives back an equal entry: a value must not turn into another on the way."""
    try:
        message = Message.user([Unknown(raw)], id="i", timestamp=NOON)
    except InvalidInput:
        return

    assert codec.read_record(codec.record(message)) == message


def test_an_unknown_field_of_a_tool_call_lands_in_its_extra():
    calls = '"tool_calls":[{"id":"c","name":"f","arguments":"{}","mood":1,"extra":{"n":2}}]'
    data = row("message", '"role":"assistant",' + calls)

    (call,) = codec.read_record(data).tool_calls

    assert call == ToolCall(id="c", name="f", arguments="{}", extra={"mood": 1, "n": 2})


def test_a_nested_tool_call_in_a_record_is_read():
    """Both codecs accept flat and nested calls (S0-27)."""
    calls = '"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{"}}]'
    data = row("message", '"role":"assistant",' + calls)

    found = codec.read_record(data)

    assert found.tool_calls == (ToolCall(id="c", name="f", arguments="{"),)
    assert codec.read_foreign_record(data) == (found,)


def test_a_field_that_is_known_and_also_in_extra_loses_neither():
    """`extra` may hold any name, the names of our own fields included."""
    message = Message.user(
        "x",
        id="i",
        timestamp=NOON,
        extra={"role": "system", "v": 2, "extra": {"a": 1}, "kind": "x"},
    )

    assert codec.read_record(codec.record(message)) == message
    assert codec.read_foreign_record(codec.record(message)) == (message,)


# --- foreign records are read strictly --------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        SHORT % b',"id":"j"',
        SHORT % b',"extra":{"a":1,"a":2}',
        SHORT % b',"extra":{"a":NaN}',
        SHORT % b',"extra":{"a":1e400}',
        SHORT % b',"role":"system"',
        SHORT.replace(b'"user"', b'"SYSTEM"') % b"",
        SHORT.replace(b'"user"', b'"developer"') % b"",
        SHORT.replace(b"2026-02-01T12:00:00Z", b"2026-02-01T12:00:00") % b"",
        SHORT.replace(b"2026-02-01T12:00:00Z", b"yesterday") % b"",
        SHORT.replace(b'"i"', b'""') % b"",
        SHORT.replace(b'"i"', b"7") % b"",
        SHORT % b',"is_error":"yes"',
        row("fold", '"first":0,"last":2'),
        row("fold", '"first":3,"last":2'),
        row("fold", '"first":1.5,"last":2'),
        row("fold", '"first":true,"last":2'),
        row("fold", '"last":2'),
        row("call", '"model":"m","cost":"-1"'),
        row("call", '"model":"m","cost":"NaN"'),
        row("call", '"model":"m","usage":{"input":-5}'),
        row("call", '"model":"m","latency_ms":"fast"'),
        row("mark", '"about":"x"'),
        row("mark", '"what":""'),
        row("mark", '"what":"x","data":[]'),
        row("mark", '"what":"x","data":[["a",1]]'),
        row("mark", '"what":"x","extra":["ab"]'),
        row("call", '"model":"m","window":["ab"]'),
    ],
    ids=str,
)
def test_a_foreign_record_that_a_caller_could_not_build_is_refused(data):
    """What gets in from elsewhere passes the same checks as what is built here."""
    with pytest.raises(InvalidInput):
        codec.read_foreign_record(data)


@pytest.mark.parametrize(
    "data",
    [
        row("mark", '"what":"x","data":[]'),
        row("mark", '"what":"x","data":[["a",1]]'),
        row("mark", '"what":"x","extra":["ab"]'),
        row("call", '"model":"m","window":["ab"]'),
    ],
    ids=str,
)
def test_a_list_where_an_object_belongs_is_damage(data):
    """A list of pairs must not be taken for an object: nothing like it was ever written."""
    assert isinstance(outcome(data), Corrupt)


@pytest.mark.parametrize(
    "data",
    [
        b'{"v":1,"message":{"role":"user","timestamp":"2026-02-01T12:00:00Z"}}',
        b'{"v":1,"mark":{"what":"x","timestamp":"2026-02-01T12:00:00Z"}}',
        b'{"v":1,"message":{"role":"user","id":"i"}}',
        b'{"v":1,"mark":{"what":"x","id":"i"}}',
    ],
    ids=str,
)
def test_a_row_of_ours_without_id_or_time_is_damage(data):
    """An id is for life (S2-76): inventing one on each reading would give one row many ids."""
    assert isinstance(outcome(data), Corrupt)


def test_a_row_of_ours_with_a_time_without_zone_is_damage():
    """The table says "with offset", and a message's time is always aware."""
    found = outcome((SHORT % b"").replace(b"12:00:00Z", b"12:00:00"))

    assert isinstance(found, Corrupt)


def test_a_half_surrogate_in_our_own_row_is_damage_and_in_a_foreign_one_is_mended():
    """Our own writer cannot have written it; a foreign file is mended, with a mark (S4-27)."""
    data = SHORT.replace(b'"x"', rb'"x\ud800"') % b""

    message, mark = codec.read_foreign_record(data)

    assert message.content == "x\ufffd"
    assert (mark.what, mark.about) == ("mended", message.id)
    found = outcome(data)
    assert isinstance(found, Corrupt) or found.content == "x\ufffd"


# --- damage ---------------------------------------------------------------------------------

SAMPLE = (GOLDEN / "record_message.json").read_bytes()
OTHERS = [(GOLDEN / f"record_{kind}.json").read_bytes() for kind in ("fold", "call", "mark")]


@pytest.mark.parametrize("data", [SAMPLE, *OTHERS], ids=["message", "fold", "call", "mark"])
def test_a_flipped_bit_anywhere_is_an_entry_or_a_typed_error(data):
    """Damage is tried at every byte: no other exception may come out of the reader."""
    for position in range(len(data)):
        for bit in range(8) if len(data) < 600 else (0, 4, 5, 7):
            bad = bytearray(data)
            bad[position] ^= 1 << bit
            found = outcome(bytes(bad))
            if not isinstance(found, HoldfastError):
                assert outcome(codec.record(found)) == found, bytes(bad)


@pytest.mark.parametrize("data", [SAMPLE, *OTHERS], ids=["message", "fold", "call", "mark"])
def test_a_record_cut_anywhere_is_corrupt(data):
    """Whatever remains of a torn write is not an entry."""
    for length in range(len(data)):
        assert isinstance(outcome(data[:length]), Corrupt), length


def test_any_byte_at_twenty_places_is_an_entry_or_a_typed_error():
    for position in range(0, len(SAMPLE), len(SAMPLE) // 20):
        for byte in range(256):
            outcome(SAMPLE[:position] + bytes([byte]) + SAMPLE[position + 1 :])


def test_a_byte_lost_or_doubled_anywhere_is_an_entry_or_a_typed_error():
    for position in range(len(SAMPLE)):
        outcome(SAMPLE[:position] + SAMPLE[position + 1 :])
        outcome(SAMPLE[:position] + SAMPLE[position : position + 1] + SAMPLE[position:])


def test_damage_in_a_foreign_record_is_a_typed_error_too():
    for position in range(len(SAMPLE)):
        bad = bytearray(SAMPLE)
        bad[position] ^= 0x41
        with contextlib.suppress(HoldfastError):
            codec.read_foreign_record(bytes(bad))


def test_nesting_as_deep_as_a_caller_may_build_survives_in_every_place():
    """64 levels in extra, in a part and in a fold's message: the row around them adds its own."""
    deep = "x"
    for _ in range(63):
        deep = [deep]
    message = Message(
        Role.USER,
        (Text("x", extra={"a": deep}), Opaque("p", {"a": deep})),
        tool_calls=(ToolCall(id="c", name="f", arguments="", extra={"a": deep}),),
        id="i",
        timestamp=NOON,
        extra={"a": deep},
    )
    fold = Fold(first=1, last=1, replacement=message, id="f", timestamp=NOON)

    for entry in (message, fold):
        assert codec.read_record(codec.record(entry)) == entry
        assert codec.read_foreign_record(codec.record(entry)) == (entry,)
        newer = codec.record(entry).replace(b'"id":"i"', b'"id":"i","mood":1')
        assert codec.read_record(newer) is not None


def test_a_large_row_of_ours_is_read_whichever_path_it_takes():
    """Limits are for what comes from elsewhere: what was taken and written is never too large."""
    large = Message.user("x", extra={"n": list(range(100_001))})
    newer = codec.record(large).replace(b'"role"', b'"mood":1,"role"', 1)

    assert codec.read_record(codec.record(large)) == large
    assert codec.read_record(newer).extra["n"] == large.extra["n"]
    with pytest.raises(TooLarge):
        codec.read_foreign_record(newer)


def test_a_name_in_extra_and_beside_it_is_damage():
    """Which of the two is meant nobody can say, and neither may be lost."""
    row = codec.record(Message.user("x", extra={"mood": 2}))

    with pytest.raises(Corrupt, match="mood"):
        codec.read_record(row.replace(b'"role"', b'"mood":1,"role"', 1))


@pytest.mark.parametrize(
    "data", ['{"v":1,"poem":"a\ud800"}', rb'{"v":1,"poem":"a\ud800"}'], ids=["text", "bytes"]
)
def test_an_unknown_kind_with_broken_characters_is_mended_and_can_be_stored(data):
    """What comes from elsewhere is never damage later on."""
    entry, mark = codec.read_foreign_record(data)

    assert codec.read_record(codec.record(entry)) == entry
    assert entry.raw == '{"v":1,"poem":"a\ufffd"}'.encode()
    assert mark.what == "mended"


def test_a_receipt_without_usage_has_the_same_bytes_however_it_was_made():
    """An empty usage that was read, or that a caller made, is written as none at all."""
    made = Call(model="m", usage=Usage())

    assert b"usage" not in codec.record(made)
    assert codec.record(codec.read_record(codec.record(made))) == codec.record(made)
