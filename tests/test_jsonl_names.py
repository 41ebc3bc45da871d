"""Which file a session has: nanobot's own names, and no two sessions in one file."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import HoldfastError
from holdfast.messages import Message
from holdfast.stores import open_store
from holdfast.stores.jsonl import names
from holdfast.stores.values import Record
from sessions_for_tests import asynchronous

# Key, plain name, base64url name; None where no file can have it. Made with nanobot's own code.
GOLDEN = [
    ("telegram:12345678", "telegram_12345678", "dGVsZWdyYW06MTIzNDU2Nzg"),
    ("discord:987654321", "discord_987654321", "ZGlzY29yZDo5ODc2NTQzMjE"),
    ("cli:direct", "cli_direct", "Y2xpOmRpcmVjdA"),
    ("cron:job-abc123", "cron_job-abc123", "Y3Jvbjpqb2ItYWJjMTIz"),
    (
        "slack:C01:1700000000.000100",
        "slack_C01_1700000000.000100",
        "c2xhY2s6QzAxOjE3MDAwMDAwMDAuMDAwMTAw",
    ),
    ("telegram:-1001234567890", "telegram_-1001234567890", "dGVsZWdyYW06LTEwMDEyMzQ1Njc4OTA"),
    (
        "whatsapp:+15551234567@s.whatsapp.net",
        "whatsapp_+15551234567@s.whatsapp.net",
        "d2hhdHNhcHA6KzE1NTUxMjM0NTY3QHMud2hhdHNhcHAubmV0",
    ),
    ("email:a.b+c@example.com", "email_a.b+c@example.com", "ZW1haWw6YS5iK2NAZXhhbXBsZS5jb20"),
    ("feishu:ou_7d8a6e", "feishu_ou_7d8a6e", "ZmVpc2h1Om91XzdkOGE2ZQ"),
    ("unified:default", "unified_default", "dW5pZmllZDpkZWZhdWx0"),
    ("heartbeat", "heartbeat", "aGVhcnRiZWF0"),
    ("", "", ""),
    (":", "_", "Og"),
    (" ", "", "IA"),
    ("  padded:key  ", "padded_key", "ICBwYWRkZWQ6a2V5ICA"),
    ("a:b:c:d", "a_b_c_d", "YTpiOmM6ZA"),
    ("telegram_a:b", "telegram_a_b", "dGVsZWdyYW1fYTpi"),
    ("telegram:a_b", "telegram_a_b", "dGVsZWdyYW06YV9i"),
    ("x:../../etc/passwd", "x_.._.._etc_passwd", "eDouLi8uLi9ldGMvcGFzc3dk"),
    (r"x:..\..\windows\system32", "x_.._.._windows_system32", "eDouLlwuLlx3aW5kb3dzXHN5c3RlbTMy"),
    ("..", "..", "Li4"),
    ("../x", ".._x", "Li4veA"),
    ("/abs/path:1", "_abs_path_1", "L2Ficy9wYXRoOjE"),
    (r"C:\Users\me", "C__Users_me", "QzpcVXNlcnNcbWU"),
    (r'q:<>"|?*/\:', "q__________", "cTo8PiJ8PyovXDo"),
    ("tg:日本語チャット", "tg_日本語チャット", "dGc65pel5pys6Kqe44OB44Oj44OD44OI"),
    ("tg:émoji🙂", "tg_émoji🙂", "dGc6w6ltb2pp8J-Zgg"),
    ("tg:e\u0301", "tg_e\u0301", "dGc6ZcyB"),
    ("tg:\u00e9", "tg_\u00e9", "dGc6w6k"),
    ("tg:\u200bzero", "tg_\u200bzero", "dGc64oCLemVybw"),
    ("tg:a b\tc", "tg_a b\tc", "dGc6YSBiCWM"),
    ("tg:line\nbreak", "tg_line\nbreak", "dGc6bGluZQpicmVhaw"),
    ("tg:tail\n", "tg_tail", "dGc6dGFpbAo"),
    ("\ttg:1\u00a0", "tg_1", "CXRnOjHCoA"),
    ("tg:\u3000wide\u3000", "tg_\u3000wide", "dGc644CAd2lkZeOAgA"),
    ("tg:nul\0x", None, "dGc6bnVsAHg"),
    ("tg:\x1funit\x1f", "tg_\x1funit", "dGc6H3VuaXQf"),
    ("tg:CON", "tg_CON", "dGc6Q09O"),
    ("NUL", "NUL", "TlVM"),
    ("tg:dot.", "tg_dot.", "dGc6ZG90Lg"),
    (".hidden:1", ".hidden_1", "LmhpZGRlbjox"),
    ("tg:" + "a" * 300, None, None),
    ("tg:" + "界" * 100, None, None),
    ("TG:Case", "TG_Case", "VEc6Q2FzZQ"),
    ("tg:%2e%2e%2f", "tg_%2e%2e%2f", "dGc6JTJlJTJlJTJm"),
    ("matrix:!room:server.org", "matrix_!room_server.org", "bWF0cml4OiFyb29tOnNlcnZlci5vcmc"),
]


def test_the_46_golden_names():
    """S4-5, S4-6, S4-7: both names of every key, exactly as nanobot makes them; and whether a file
    can have them."""
    assert len(GOLDEN) == 46
    for key, plain, base64url in GOLDEN:
        found = names.plain_name(key), names.base64_name(key)

        assert found[0] == f"{plain}.jsonl" or plain is None, key
        assert found[1] == f"{base64url}.jsonl" or base64url is None, key
        assert [names.is_usable(name) for name in found] == [
            plain is not None,
            base64url is not None,
        ], key


@given(st.text(min_size=1, max_size=400), st.text(min_size=1, max_size=400))
def test_no_two_keys_have_the_same_name_of_ours(one, other):
    """The name that is left where nanobot's is taken is its key's alone, and always possible."""
    assert (names.own_name(one) == names.own_name(other)) == (one == other)
    for key in (one, other):
        name = names.own_name(key)
        assert names.is_usable(name)
        assert "/" not in name
        assert not name.startswith(".")


@asynchronous
async def test_every_key_of_the_table_gets_its_file(tmp_path):
    """S4-4, B54: under the plain name where there is one, and under another where that is not
    possible;
    each session in a file of its own."""
    async with open_store(f"jsonl:{tmp_path}/s") as store:
        tenant = store.tenant()
        for key, _, _ in GOLDEN[:11] + GOLDEN[12:]:
            await tenant.create(Record(key=key), [Message.user(f"I am {key!r}")])

    files = {path.name: path.read_bytes() for path in (tmp_path / "s").glob("*.jsonl")}
    assert len(files) == 45 - (0 if ".jsonl" in files else 1)
    stored = {json.loads(data.split(b"\n")[0])["key"]: name for name, data in files.items()}
    for key, plain, _ in GOLDEN:
        if plain and plain != "telegram_a_b":
            assert stored[key] == f"{plain}.jsonl"
    assert stored["telegram_a:b"] == "telegram_a_b.jsonl"
    assert stored["telegram:a_b"] != "telegram_a_b.jsonl"


@asynchronous
async def test_two_keys_with_one_plain_name_never_share_a_file(tmp_path):
    """S4-8, B9: whoever comes second gets another file, and finds it again."""
    keys = ["telegram:a_b", "telegram:a:b", "telegram/a:b", "telegram_a_b"]
    for _ in range(2):
        async with open_store(f"jsonl:{tmp_path}/s") as store:
            tenant = store.tenant()
            for key in keys:
                try:
                    record = await tenant.load(key)
                except HoldfastError:
                    record = await tenant.create(Record(key=key))
                await tenant.append(record.id, [Message.user(key)])

    async with open_store(f"jsonl:{tmp_path}/s") as store:
        for key in keys:
            record = await store.tenant().load(key)
            rows = await store.tenant().read(record.id)
            assert [row.entry.text for row in rows] == [key, key]


@pytest.mark.parametrize("second", ["telegram:a:b", "tg:nul\0x", "tg:" + "a" * 300])
@asynchronous
async def test_a_key_without_a_name_of_its_own_changes_nothing_for_the_others(tmp_path, second):
    """A14: it gets a name that is neither of nanobot's, so the folder goes on as it was."""
    for key in ("telegram:a_b", second, "telegram:1"):
        async with open_store(f"jsonl:{tmp_path}/s") as store:
            await store.tenant().create(Record(key=key))

    found = {path.name for path in (tmp_path / "s").glob("*.jsonl")}

    assert found == {"telegram_a_b.jsonl", names.own_name(second), "telegram_1.jsonl"}


@pytest.mark.parametrize(
    ("url", "name"),
    [("jsonl:{}", "cli_direct.jsonl"), ("jsonl:{}?names=base64url", "Y2xpOmRpcmVjdA.jsonl")],
)
@asynchronous
async def test_the_names_of_new_files_can_be_asked_for(tmp_path, url, name):
    """Plain ones in a new folder, and base64url for a current nanobot."""
    async with open_store(url.format(tmp_path / "s")) as store:
        await store.tenant().create(Record(key="cli:direct"))

    assert [path.name for path in (tmp_path / "s").glob("*.jsonl")] == [name]


@asynchronous
async def test_the_folder_of_a_current_nanobot_gets_names_that_it_loads(tmp_path):
    """Where its files have base64url names, so do ours."""
    line = '{"_type": "metadata", "key": "cli:a", "metadata": {}, "last_consolidated": 0}\n'
    (tmp_path / names.base64_name("cli:a")).write_text(line)

    async with open_store(f"jsonl:{tmp_path}") as store:
        await store.tenant().create(Record(key="cli:b"))

    assert (tmp_path / names.base64_name("cli:b")).exists()


def test_a_file_without_a_key_belongs_to_the_likeliest_one():
    """S4-9: since 2026-02-20 nanobot takes the first `_` for the colon, and before that it took
    all."""
    assert names.keys_of("telegram_a_b.jsonl")[:2] == ["telegram:a_b", "telegram:a:b"]
    assert names.keys_of("dGVsZWdyYW06YV9i.jsonl")[0] == "telegram:a_b"
    assert names.keys_of("heartbeat.jsonl") == ["heartbeat", "heartbeat"]
