"""Hypothesis strategies for every value, shared by the property tests.

Each strategy builds through the public constructors, so whatever it yields is something that a
caller may hold. Texts contain every character but lone surrogates, which constructors refuse.
"""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

from hypothesis import strategies as st

from holdfast.codec import lango, nanobot
from holdfast.entries import Call, Fold, Mark, UnknownEntry
from holdfast.messages import Message, Role, ToolCall
from holdfast.parts import Audio, CallRef, File, Image, Opaque, Text, Thinking, Unknown
from holdfast.usage import Usage

# Characters that break careless programs come up often, not once in a million. One choice of a
# whole text is much quicker than a choice for each character.
AWKWARD = [
    "\x00",
    "a\nb",
    "a\r\nb",
    "\t",
    'say "x"',
    "\\",
    "</b>&",
    "\x7f\x1b[0m",
    "\x85",
    "a\u2028b\u2029c",
    "\ufeffa",
    "�",
    "\ufffe\uffff",
    "é",
    "é",
    "😀",
    "\U0010ffff",
    "\\ud800",
    " a ",
    "{0.__class__}",
    "%s",
    "\n\nHuman:",
    "null",
    "0",
    "{}",
    "[]",
]
_CHARACTERS = st.characters(exclude_categories=["Cs"])

texts = st.text(_CHARACTERS, max_size=6) | st.sampled_from(AWKWARD)
words = st.text(_CHARACTERS, min_size=1, max_size=6) | st.sampled_from(AWKWARD)
optional_texts = st.none() | texts
keys = st.sampled_from(["a", "b", "type", "text", "id", "role", "content", "name", ""]) | texts

integers = st.integers(-(2**70), 2**70) | st.sampled_from([2**53 + 1, 2**63, -(2**63) - 1])
floats = st.floats(allow_nan=False, allow_infinity=False)
json_scalars = st.none() | st.booleans() | integers | floats | texts
# Three levels by hand: st.recursive would find no more here, and takes twice the time.
_json_lists = st.lists(json_scalars, max_size=2)
json_values = st.one_of(
    json_scalars,
    _json_lists,
    st.dictionaries(keys, json_scalars | _json_lists, max_size=2),
)
json_objects = st.dictionaries(keys, json_values, max_size=2)
extras = st.just({}) | json_objects
# Extra fields that no shape has a name for, so that they can stand beside its own.
fair_extras = st.just({}) | st.dictionaries(
    st.sampled_from(["mood", "x-y", "tools_used", "Größe", " "]), json_values, max_size=2
)

# Text that is shaped like JSON, right or wrong: what a model writes as arguments.
json_texts = st.one_of(
    st.sampled_from(["", "{}", '{"a": 1}', '{"a":1}', '{"a": ', "[1,2]", "null", '"x"', "{'a'}"]),
    st.sampled_from(['{"a":1.0}', '{"a":1e2}', '{"a":1,"a":2}', '{"a":NaN}', '{"a":"\\ud800"}']),
    texts,
)

zones = st.sampled_from(
    [UTC] + [timezone(timedelta(minutes=m)) for m in (60, -480, 345, 840, -720, 1439, -1439)]
)
times = st.one_of(
    st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1), timezones=zones),
    st.datetimes(timezones=zones),
).map(lambda time: time.replace(fold=0))

_ADDRESSES = st.sampled_from(
    [
        "https://example.com/a.png",
        "data:image/png;base64,AAEC",
        "data:,x",
        "data:;base64,",
        "data:",
        "data:image/png;base64,@@@",
        "data:image/png;base64,AAE",
        "DATA:image/png;base64,AAEC",
        "data:image/png;base64,AAEC\n",
        "data:text/plain;charset=x;base64,AAEC",
    ]
)
media_sources = st.one_of(
    st.binary(max_size=8).map(lambda data: {"data": data}),
    (words | _ADDRESSES).map(lambda url: {"url": url}),
    words.map(lambda blob: {"blob": blob}),
)


# Elements that no version of this library could take for one of its own parts.
unknowns = st.one_of(
    st.none() | st.booleans() | integers | floats | st.lists(json_values, max_size=2),
    json_objects.map(lambda raw: {**raw, "type": "hologram"}),
    st.dictionaries(texts, json_values, max_size=2).map(lambda raw: {**raw, "type": 7}),
    json_objects.map(lambda raw: {key: raw[key] for key in raw if key != "type"}),
).map(Unknown)
call_refs = st.builds(CallRef, texts)


def _media(kind, extras, **more):
    return st.builds(
        lambda source, **fields: kind(**source, **fields),
        media_sources,
        media_type=optional_texts,
        extra=extras,
        **more,
    )


def _parts(extras):
    return st.one_of(
        st.builds(Text, texts, extra=extras),
        _media(Image, extras),
        _media(Audio, extras),
        _media(File, extras, name=optional_texts),
        st.builds(Thinking, texts, signature=optional_texts, redacted=st.booleans(), extra=extras),
        call_refs,
        st.builds(Opaque, texts, data=json_objects),
        unknowns,
    )


def _contents(extras):
    return st.one_of(st.none(), texts, st.lists(_parts(extras), max_size=3))


def _some_of(*names):
    """A few of these fields, with a text each: quicker than a choice for every one of them."""
    return st.dictionaries(st.sampled_from(names), texts, max_size=3)


def _tool_calls(extras):
    return st.builds(
        lambda arguments, extra, is_error, fields: ToolCall(
            **{"id": "call_1", "name": "f", "arguments": arguments, **fields},
            is_error=is_error,
            extra=extra,
        ),
        json_texts,
        extras,
        st.booleans(),
        _some_of("id", "name", "output", "signature"),
    )


def _messages(extras):
    return st.builds(
        lambda role, content, tool_calls, is_error, id, timestamp, extra, fields: Message(
            role,
            content,
            tool_calls=tool_calls,
            is_error=is_error,
            id=id,
            timestamp=timestamp,
            extra=extra,
            **fields,
        ),
        roles,
        _contents(extras),
        st.lists(_tool_calls(extras), max_size=2),
        st.booleans(),
        words,
        times,
        extras,
        _some_of("tool_call_id", "name", "author", "model", "prefix", "stop", "synthetic"),
    )


roles = st.sampled_from(Role)
messages = _messages(extras)
fair_messages = _messages(fair_extras)

counts = st.none() | st.integers(0, 2**40)
usages = st.builds(
    Usage, input=counts, output=counts, cache_read=counts, cache_write=counts, reasoning=counts
)
amounts = st.one_of(
    st.none(),
    st.decimals(Decimal(0), Decimal(10**6), places=6, allow_nan=False),
    st.sampled_from([Decimal(0), Decimal("1E+2"), Decimal("0.0000000015")]),
)
seqs = st.integers(1, 2**40)
folds = st.builds(
    lambda ends, **fields: Fold(first=min(ends), last=max(ends), **fields),
    st.tuples(seqs, seqs),
    replacement=st.none() | messages,
    by=texts,
    why=texts,
    tokens_before=counts,
    tokens_after=counts,
    id=words,
    timestamp=times,
    extra=extras,
)
calls = st.builds(
    Call,
    model=texts,
    about=optional_texts,
    usage=usages,
    stop=optional_texts,
    latency_ms=counts,
    cost=amounts,
    window=json_objects,
    digest=optional_texts,
    request_id=optional_texts,
    id=words,
    timestamp=times,
    extra=extras,
)
marks = st.builds(
    Mark,
    what=words,
    about=optional_texts,
    data=json_objects,
    id=words,
    timestamp=times,
    extra=extras,
)
known_entries = messages | folds | calls | marks
unknown_entries = st.integers(0, 99).map(
    lambda number: UnknownEntry(kind="poem", raw=b'{"v":1,"poem":{"lines": %d}}' % number)
)
entries = known_entries | unknown_entries

nanobot_metadata = st.builds(
    nanobot.Metadata,
    key=optional_texts,
    created_at=texts,
    updated_at=texts,
    metadata=json_objects,
    last_consolidated=st.integers(0, 2**40),
)

lango_sessions = st.builds(
    lango.Session,
    key=texts,
    agent_id=texts,
    channel_type=texts,
    channel_id=texts,
    history=st.lists(
        st.builds(Message, roles, texts, author=optional_texts, id=words, timestamp=times),
        max_size=2,
    ).map(tuple),
    metadata=st.dictionaries(texts, texts, max_size=2),
    model=texts,
    created_at=times,
    updated_at=times,
)

# Documents from elsewhere: text that looks like a message, JSON of any kind, and plain noise.
_FIELD_NAMES = st.sampled_from(
    [
        "role",
        "content",
        "tool_calls",
        "toolCalls",
        "tool_call_id",
        "name",
        "author",
        "timestamp",
        "parts",
        "message_id",
        "type",
        "text",
        "id",
        "arguments",
        "function",
        "args",
        "input",
        "output",
        "result",
        "is_error",
        "_type",
        "key",
        "metadata",
        "last_consolidated",
        "messages",
        "v",
        "message",
        "fold",
        "call",
        "mark",
        "first",
        "last",
        "what",
        "data",
        "url",
        "image_url",
        "extra",
        "history",
        "createdAt",
        "updatedAt",
        "cost",
        "usage",
        "replacement",
        "model",
        "mime_type",
        "signature",
        "thought",
        "thoughtSignature",
        "call_id",
        "attachments",
        "stop",
    ]
)
_FIELD_VALUES = st.one_of(
    json_scalars,
    roles.map(str),
    st.sampled_from(
        [
            "metadata",
            "text",
            "image",
            "image_url",
            "function_call",
            "function_response",
            "thinking",
            "inline_data",
            "thought",
            "opaque",
            "call",
            "2026-02-01T12:00:00Z",
            "2026-02-01",
            "!!!",
            "data:image/png;base64,AAEC",
            "data:,",
            "AAEC",
            "0001-01-01T00:00:00+14:00",
            1,
            -1,
            0,
        ]
    ),
)
foreign_values = st.recursive(
    _FIELD_VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_FIELD_NAMES, inner, max_size=5),
    max_leaves=8,
)
foreign_objects = st.dictionaries(_FIELD_NAMES, foreign_values, max_size=6)
