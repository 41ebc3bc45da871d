"""Promises about search: every word, whole, in whatever case; and nothing of anybody else's."""

from typing import Any

from holdfast.entries import Entry
from holdfast.errors import InvalidInput, TooLarge
from holdfast.messages import Message, ToolCall
from holdfast.parts import Text
from holdfast.stores.base import Tenant
from holdfast.stores.values import Found, Page, Record
from holdfast.testing.contract.harness import (
    Contract,
    Place,
    fold,
    mark,
    on_store,
    on_tenant,
    only,
    refused,
    said,
    session,
    unknown,
)


async def _seqs(t: Tenant, query: str, **rest: Any) -> list[int]:
    return [hit.stored.seq for hit in (await t.search(query, **rest)).items]


class Searching(Contract):
    @on_tenant("search")
    async def test_a_message_is_found_with_its_place(self, t: Tenant) -> None:
        record = await session(t, "an apple", "a pear")
        rows = await t.read(record.id)

        assert await t.search("pear") == Page((Found(record.id, record.key, rows[1]),))
        assert (await t.search("plum")).items == ()

    @on_store("search")
    async def test_a_damaged_message_hides_no_other(self, place: Place) -> None:
        """It is told as damaged, or not found; it is never given as if it were sound."""
        t = place.tenant
        damaged = await session(t, *(f"a whale {number}" for number in range(10)))
        sound = await session(t, "a whale elsewhere", key="chat:2")
        assert len((await t.search("whale")).items) == 11
        await place.contract.damage(place.store, damaged.id, 6)

        hits = (await t.search("whale")).items

        told = {(hit.session_id, hit.stored.seq) for hit in hits if not hit.damage}
        left = {(damaged.id, seq) for seq in range(1, 11) if seq != 6}
        assert told == left | {(sound.id, 1)}
        assert all(hit.stored.entry is None and hit.stored.seq == 6 for hit in hits if hit.damage)

    @on_tenant("search")
    async def test_every_word_must_be_there(self, t: Tenant) -> None:
        """In one message, in any order, as often as you like."""
        await session(t, "red apple", "green apple", "red pear", "apple, so red")

        assert await _seqs(t, "apple") == [4, 2, 1]
        assert await _seqs(t, "red apple") == [4, 1]
        assert await _seqs(t, "apple red apple") == [4, 1]
        assert await _seqs(t, "green pear") == []

    @on_tenant("search")
    async def test_whole_words_count(self, t: Tenant) -> None:
        await session(t, "pineapple juice", "apples", "an apple-tree", "apple_pie", "v2.5 of x86")

        assert await _seqs(t, "apple") == [4, 3]
        assert await _seqs(t, "app") == []
        assert await _seqs(t, "x86") == [5]

    @on_tenant("search")
    async def test_case_width_and_accents_do_not_count(self, t: Tenant) -> None:
        await session(t, "Café ÉCLAIR", "cafe\u0301", "ＣＡＦＥ", "ΣΊΣΥΦΟΣ", "Straße")

        for query in ("cafe", "CAFÉ", "ｃａｆｅ", "cafe\u0301"):
            assert await _seqs(t, query) == [3, 2, 1], query
        assert await _seqs(t, "éclair") == [1]
        assert await _seqs(t, "σίσυφος") == [4]
        assert await _seqs(t, "STRASSE") == [5]

    @on_tenant("search")
    async def test_scripts_without_spaces_are_found_by_any_run(self, t: Tenant) -> None:
        await session(t, "我在北京塔下等你", "東京タワーへ行く", "서울역에서 만나요", "京")

        assert await _seqs(t, "北京") == [1]
        assert await _seqs(t, "北京塔下") == [1]
        assert await _seqs(t, "京塔") == [1]
        assert await _seqs(t, "你") == [1]
        assert await _seqs(t, "京") == [4, 2, 1]
        assert await _seqs(t, "タワー") == [2]
        assert await _seqs(t, "서울역") == [3]
        assert await _seqs(t, "北塔") == []

    @on_tenant("search")
    async def test_everything_that_a_message_says_is_searched(self, t: Tenant) -> None:
        """Words in parts, what a tool was asked, and what it gave back, in either style."""
        asked = ToolCall(id="c1", name="look", arguments='{"where": "granary"}')
        answered = ToolCall(id="c2", name="look", arguments="{}", output='{"saw": "weasels"}')
        entries: list[Entry] = [
            Message.user([Text("first walrus, "), Text("second otter")]),
            Message.assistant("thinking", [asked]),
            Message.tool("found badgers", "c1"),
            Message("tool", tool_calls=(answered,)),  # type: ignore[arg-type]
        ]
        await t.create(Record(key="chat:1"), entries)

        assert await _seqs(t, "walrus otter") == [1]
        assert await _seqs(t, "granary") == [2]
        assert await _seqs(t, "badgers") == [3]
        assert await _seqs(t, "weasels") == [4]

    @on_tenant("search")
    async def test_only_messages_are_found(self, t: Tenant) -> None:
        entries: list[Entry] = [
            mark("noted", text="walrus"),
            *said("a"),
            fold(2, 2, "walrus"),
            unknown("vote", '"walrus"'),
        ]
        await t.create(Record(key="walrus", agent="walrus"), entries)

        assert await _seqs(t, "walrus") == []

    @on_store("search")
    async def test_the_newest_come_first(self, place: Place) -> None:
        """In one session by seq, whatever times the messages carry; over several as they were
        appended."""
        t = place.tenant
        moment = place.clock.set()
        one, two = await session(t, key="one"), await session(t, key="two")
        expected = []
        for number in range(6):
            record = (one, two)[number % 2]
            place.clock.forward()
            message = Message.user(f"word {number}", timestamp=moment.replace(year=2030 - number))
            done = await t.append(record.id, [message])
            expected.append((record.id, done.first))

        found = [(hit.session_id, hit.stored.seq) for hit in (await t.search("word")).items]

        assert [each for each in found if each[0] == one.id] == [(one.id, n) for n in (3, 2, 1)]
        assert found == expected[::-1]

    @on_tenant("search")
    async def test_pages_of_hits(self, t: Tenant) -> None:
        record = await session(t, *(f"word {number}" for number in range(50)))
        found: list[int] = []
        page = await t.search("word", limit=7)
        while True:
            found += [hit.stored.seq for hit in page.items]
            if page.next is None:
                break
            page = await t.search("word", limit=7, page=page.next)

        assert found == list(range(50, 0, -1))
        assert len((await t.search("word")).items) == 20
        assert len((await t.search("word", session=record.id, limit=50)).items) == 50

    @on_tenant("search", "delete")
    async def test_pages_of_hits_while_others_write_and_delete(self, t: Tenant) -> None:
        """What stays there is given once, whatever comes and goes between the pages."""
        await session(t, *["word"] * 3, key="oldest")
        old = await session(t, *["word"] * 5, key="old")
        await session(t, *["word"] * 9, key="new")

        found = await t.search("word", limit=4)
        hits = [*found.items]
        await t.delete(old.id)
        await session(t, *["word"] * 2, key="newest")
        while found.next is not None:
            found = await t.search("word", limit=4, page=found.next)
            hits += found.items

        assert [hit.key for hit in hits] == ["new"] * 9 + ["oldest"] * 3
        assert len({(hit.session_id, hit.stored.seq) for hit in hits}) == 12

    @on_tenant("search")
    async def test_one_session_alone(self, t: Tenant) -> None:
        one, two = await session(t, "word", key="one"), await session(t, "word", key="two")

        for record in (one, two):
            hit = only((await t.search("word", session=record.id)).items)
            assert (hit.session_id, hit.key) == (record.id, record.key)

    @on_tenant("search", "branch")
    async def test_messages_on_every_branch_are_found_once(self, t: Tenant) -> None:
        """With the position that they have on their branch."""
        record = await session(t, "word a", "b", "c")
        await t.branch(record.id, "other", parent="main", at=2)
        await t.append(record.id, said("word x"), branch="other")

        found = (await t.search("word")).items

        assert [hit.stored.seq for hit in found] == [4, 1]
        assert [hit.stored.position for hit in found] == [2, 0]
        assert found[0].stored.branch == "other"

    @on_tenant("search")
    async def test_a_query_without_a_word_finds_nothing(self, t: Tenant) -> None:
        await session(t, "a", "...", " ", '""', "*")

        for query in ("", " ", "...", "*", '"', '""', "-", "()", "\0", "_", "'", "🐘", "\u200d"):
            assert await t.search(query) == Page(()), query

    @on_tenant("search")
    async def test_no_sign_in_a_query_is_an_operator(self, t: Tenant) -> None:
        """Not for a full-text engine, not for LIKE, not for SQL."""
        record = await session(t, "apple pie", "pear pie", "apple or pear", "not near and text")

        for query in (
            '"apple"',
            '"apple',
            "apple*",
            "^apple",
            "-apple",
            "+apple",
            "(apple",
            "apple)",
            "{apple}",
            "apple%",
            "apple:",
            "apple & !",
            "apple \0",
            "apple'--",
            "<apple>",
            "apple <-> ",
            "apple | ",
        ):
            assert await _seqs(t, query) == [3, 1], query
        assert await _seqs(t, "apple OR pear") == [3]
        assert await _seqs(t, "apple AND pie") == []
        assert await _seqs(t, "apple NOT pie") == []
        assert await _seqs(t, "NEAR(apple pie, 5)") == []
        assert await _seqs(t, "text:apple") == []
        assert await _seqs(t, "app*") == []
        assert await _seqs(t, "'; DROP TABLE sessions;--") == []
        assert await _seqs(t, "not near AND text") == [4]
        assert await t.load(record.key) == record

    @on_tenant("search")
    async def test_everything_appended_before_the_call_is_searched(self, t: Tenant) -> None:
        record = await session(t)
        for number in range(30):
            done = await t.append(record.id, said(f"word{number}"))

            assert await _seqs(t, f"word{number}") == [done.first]

    @on_store("search", shared=True)
    async def test_also_what_another_store_appended(self, place: Place) -> None:
        other = (await place.another()).tenant()
        record = await session(place.tenant, "word")

        assert await _seqs(other, "word") == [1]
        await other.append(record.id, said("word"))
        assert await _seqs(place.tenant, "word") == [2, 1]

    @on_tenant("search", "delete")
    async def test_deleted_sessions_are_not_found(self, t: Tenant) -> None:
        record = await session(t, "word")
        await t.delete(record.id)

        assert await _seqs(t, "word") == []

    @on_tenant("search")
    async def test_long_words_and_long_queries(self, t: Tenant) -> None:
        """Nothing breaks; what is common to both is found."""
        await session(t, "x" * 5_000, "a " + "b" * 300)

        assert await _seqs(t, "x" * 5_000) == [1]
        assert await _seqs(t, "b" * 300 + " a") == [2]
        assert await _seqs(t, " ".join(f"w{number}" for number in range(500))) == []

    @on_store("search")
    async def test_limits_and_pages_are_those_of_list(self, place: Place) -> None:
        t = place.tenant
        await session(t, "word", "word", "word")
        most = place.store.limits.page

        assert len((await t.search("word", limit=most)).items) == 3
        await refused(TooLarge, t.search("word", limit=most + 1))
        await refused((TooLarge, InvalidInput), t.search("word", limit=2**63))
        wrong: list[Any] = [-1, "1; DROP TABLE x", 1.0, None, True]
        for limit in wrong:
            await refused(InvalidInput, t.search("word", limit=limit))
        for page in ("", "nonsense", "0", "' OR 1=1 --", "é"):
            await refused(InvalidInput, t.search("word", page=page))

    @on_store("search")
    async def test_a_search_stays_with_its_tenant(self, place: Place) -> None:
        """Also with another's page."""
        mine, theirs = place.store.tenant("mine"), place.store.tenant("theirs")
        await session(mine, "word mine", "word mine")
        await session(theirs, "word theirs", "word theirs", "word theirs")
        token = (await theirs.search("word", limit=1)).next

        assert {hit.key for hit in (await mine.search("word")).items} == {"chat:1"}
        assert await _seqs(mine, "word") == [2, 1]
        assert await _seqs(mine, "theirs") == []
        try:
            found = (await mine.search("word", page=token)).items
        except InvalidInput:
            return
        assert "theirs" not in repr(found)
