"""Promises about what is kept: keys of any kind, and every value exactly as it was."""

from datetime import timedelta, timezone
from decimal import Decimal
from typing import Any

from holdfast import codec
from holdfast.entries import Call, Entry, Fold, Mark
from holdfast.errors import DuplicateSession, InvalidInput, SessionNotFound, TooLarge
from holdfast.frozen import FrozenDict
from holdfast.messages import Message, ToolCall
from holdfast.parts import Audio, CallRef, File, Image, Opaque, Text, Thinking, Unknown
from holdfast.stores.base import Tenant
from holdfast.stores.values import Record
from holdfast.testing.contract.harness import (
    NOON,
    ODD_JSON,
    Contract,
    on_tenant,
    only,
    refused,
    session,
    texts,
)
from holdfast.usage import Usage

KEYS = [
    ".",
    "..",
    "../../etc/cron.d/x",
    "..\\..\\x",
    "/etc/passwd",
    "C:\\x",
    "\\\\host\\share",
    "%2e%2e%2f",
    "%252e%252e%252f",
    "..%c0%af",
    "a\0b",
    "a\nb",
    "a\r\nX-H: 1",
    "k" * 300,
    "k" * 1_024,
    "é" * 255,
    "CON",
    "nul.jsonl",
    "aux",
    "a",
    "a.",
    "a ",
    " a",
    "A",
    "caf\u00e9",
    "cafe\u0301",
    "telegram:a_b",
    "telegram:a:b",
    "telegram/a:b",
    "u1/sessions/s2",
    "-rf",
    "--help",
    "@file",
    "~root",
    "a.jsonl",
    "a.tmp",
    "a.lock",
    "a-wal",
    "a\u202eb",
    "a\u200db",
    "аdmin",
    "admin",
    "%",
    "_",
    "*",
    "?",
    "[a-z]",
    "'; DROP TABLE sessions;--",
    "__proto__",
    "constructor",
    "__class__",
    '{"$ne":null}',
    "null",
    "1",
    "\u2028",
    "🐘",
    "\uffff",
    "\x7f",
]

TEXTS = {
    "NUL": "a\0b\0",
    "only NUL": "\0",
    "empty": "",
    "spaces": " \t\n ",
    "line ends": "a\r\nb\rc\nd\x0be\x0cf\x85g\u2028h\u2029i",
    "noncharacters": "\ufffe\uffff\U0001fffe\ufffd\ufeff",
    "beyond the first plane": "🐘\U0001f468\u200d\U0001f469\u200d\U0001f467\U0010ffff",
    "combining marks": "a" + "\u0301" * 10_000,
    "right to left": "\u202eabc\u202c שלום",
    "not normalised": "e\u0301 \u00e9 \ufb01 \u212b",
    "control signs": "".join(map(chr, range(32))) + "\x7f\x9b\x1b]52;c;\x07",
    "JSON": '{"v":1,"message":{"role":"user"}}',
    "a metadata line": '{"_type":"metadata","key":"other"}',
    "code": "{0.__class__} %s ${jndi:ldap://x} {{7*7}} __reduce__ !!python/object $type",
    "SQL": "'; DROP TABLE entries; -- \\ \" ` ?1 :name",
    "role marks": "\n\nHuman: <|im_start|>system </tool_result>",
    "surrogates in words": "\\ud800",
    "base64": "AAAA" * 1_000,
}


def _rich() -> list[Entry]:
    """An entry of every kind with something in every field."""
    odd = FrozenDict(ODD_JSON)
    calls = (
        ToolCall(id="c1", name="look", arguments='{"at": 1, ', signature="s", extra=odd),
        ToolCall(id="c1", name="", arguments="", output="", is_error=True),
        ToolCall(id="", name="go", arguments="null", output="x\0y"),
    )
    parts = (
        Text("a", extra=odd),
        Image(data=bytes(range(256)), media_type="image/png"),
        Image(url="https://example.org/a.png"),
        Audio(data=b""),
        File(data=b"%PDF", name="a.pdf", extra=odd),
        Thinking("hm", signature="sig"),
        Thinking("", redacted=True, signature="sealed"),
        CallRef("c1"),
        Opaque("vendor", odd),
        Unknown({"type": "hologram", "n": [1, 1.0]}),
        Text(""),
    )
    east = timezone(timedelta(hours=5, minutes=45))
    message = Message.assistant(
        parts,
        calls,
        name="n",
        author="a",
        model="v:m",
        prefix="p",
        stop="odd reason",
        synthetic="summary",
        timestamp=NOON.replace(microsecond=1, tzinfo=east),
        extra=odd,
    )
    return [
        message,
        Message.tool("no", "c1", is_error=True, name="look"),
        Message("function", None, name="f"),  # type: ignore[arg-type]
        Message("model", ()),  # type: ignore[arg-type]
        Message.system("be kind", id="an id of the caller's, with spaces \0"),
        Message.user("first", timestamp=NOON.replace(year=1, month=1, day=1)),
        Message.user("last", timestamp=NOON.replace(year=9999, month=12, day=31)),
        Fold(first=1, last=2**53 + 1, replacement=message, by="b", why="w", tokens_before=9),
        Fold(first=1, last=1),
        Call(
            model="v:m",
            about="x",
            usage=Usage(input=2**53 + 1),
            stop="stop",
            latency_ms=5,
            cost=Decimal("0.000000000000000001"),
            window=odd,
            digest="d",
            request_id="r",
            extra=odd,
        ),
        Mark(what="noted", about="x", data=odd, extra=odd),
    ]


class Values(Contract):
    @on_tenant()
    async def test_nothing_in_a_key_is_special(self, t: Tenant) -> None:
        """No two of these are the same session, and none is a path, a pattern or a command."""
        made = {}
        for number, key in enumerate(KEYS):
            made[key] = (await session(t, f"said {number}", key=key)).id

        assert len(set(made.values())) == len(KEYS)
        for number, key in enumerate(KEYS):
            record = await t.load(key)
            assert (record.key, record.id) == (key, made[key])
            assert texts(await t.read(record.id)) == [f"said {number}"]
            await refused(DuplicateSession, t.create(Record(key=key)))
        assert {item.key for item in (await t.list(limit=100)).items} == set(KEYS)

    @on_tenant("delete")
    async def test_deleting_one_key_leaves_those_that_look_like_it(self, t: Tenant) -> None:
        ids = {key: (await session(t, key=key)).id for key in ("a", "A", "a ", "a%", "%", "_")}

        for key in ("%", "_", "a"):
            assert await t.delete(ids.pop(key))
            await refused(SessionNotFound, t.load(key))

            assert {item.key for item in (await t.list()).items} == set(ids)

    @on_tenant()
    async def test_text_comes_back_exactly(self, t: Tenant) -> None:
        """Every character that can be stored, in every place that holds text."""
        record = await session(t)
        for name, text in TEXTS.items():
            entries: list[Entry] = [
                Message.user(text, name=text, extra=FrozenDict({"t": text, text: 1})),
                Message.assistant((Text(text),), (ToolCall(id=text, name=text, arguments=text),)),
                Mark(what=text or "x", about=text),
            ]
            done = await t.append(record.id, entries)
            rows = await t.read(record.id, start=done.messages - 2)

            assert [row.entry for row in rows] == entries, name

    @on_tenant()
    async def test_entries_come_back_exactly(self, t: Tenant) -> None:
        """With every field filled, down to the bytes of their records."""
        record = await session(t)
        entries = _rich()

        await t.append(record.id, entries)

        for row, entry in zip(await t.read(record.id), entries, strict=True):
            assert row.entry == entry
            assert row.entry is not None
            assert codec.record(row.entry) == codec.record(entry)

    @on_tenant()
    async def test_large_values_come_back_exactly(self, t: Tenant) -> None:
        """A long text, a picture, and the same again, beside it and in another session."""
        text = "".join(chr(0x20 + number * 7 % 0x2000) for number in range(1024 * 1024))
        data = bytes(number * number % 251 for number in range(4096)) * 1280  # 5 MiB
        message = Message.user([Text(text), Image(data=data, media_type="image/png")])
        asked = ToolCall(id="c", name="look", arguments="{}", output=text)
        answer = Message("tool", tool_calls=(asked,))  # type: ignore[arg-type]
        one = await t.create(Record(key="one"), [message, answer])
        two = await session(t, key="two")
        await t.append(two.id, [message])
        await t.append(two.id, [message])

        assert [row.entry for row in await t.read(one.id)] == [message, answer]
        assert [row.entry for row in await t.read(two.id)] == [message, message]
        assert [row.entry for row in await t.tail(two.id, count=1)] == [message]

    @on_tenant()
    async def test_numbers_that_few_can_hold_come_back_or_are_refused(self, t: Tenant) -> None:
        """At once, and not when somebody reads them."""
        numbers: list[Any] = [2**64 - 1, 2**64, -(2**64), 10**30, 10**999, 1e-320]
        for place, number in enumerate(numbers):
            record = await session(t, key=f"{place}")
            message = Message.user("n", extra=FrozenDict({"n": number}))
            try:
                await t.append(record.id, [message])
            except (InvalidInput, TooLarge):
                assert await t.read(record.id) == ()
            else:
                row = only(await t.read(record.id))
                assert repr(row.entry) == repr(message)
            try:
                await t.update(record.id, {"metadata": {"n": number}})
            except (InvalidInput, TooLarge):
                assert (await t.load(record.key)).metadata == {}
            else:
                assert repr((await t.load(record.key)).metadata["n"]) == repr(number)

    @on_tenant()
    async def test_what_is_nested_as_deep_as_may_be_comes_back(self, t: Tenant) -> None:
        deep: Any = "x"
        for _ in range(31):
            deep = {"d": [deep]}
        record = await session(t, metadata={"deep": deep})
        message = Message.user("n", extra=FrozenDict({"deep": deep}))
        await t.append(record.id, [message])

        assert [row.entry for row in await t.read(record.id)] == [message]
        assert (await t.load(record.key)).metadata == record.metadata == FrozenDict({"deep": deep})
