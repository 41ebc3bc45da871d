"""The manager: one live object for each key, and what can be done with all of them."""

import asyncio
import gc
import subprocess
import weakref
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

import holdfast
from holdfast import Message, Settings, ids
from holdfast.errors import (
    Busy,
    ConnectionFailed,
    InvalidInput,
    SessionExpired,
    SessionNotFound,
    StoreUnavailable,
)
from holdfast.live import Cache, Live
from holdfast.memory import Memory
from holdfast.retention import Retention
from holdfast.stores import open_store
from holdfast.sweeping import sweep
from holdfast.testing import FakeProvider
from holdfast.testing.fake_provider import Halt
from holdfast.window.budget import Budget
from sessions_for_tests import asynchronous, until

HOUR = timedelta(hours=1)


def later(by):
    """Ids and times as they will be after a while."""
    end = (ids.now_us() + by // timedelta(microseconds=1)) * 1_000
    return ids.using(ids.IdSource(clock_ns=lambda: end))


class Counting:
    """A tenant that counts how often its records are read."""

    def __init__(self, tenant):
        self._tenant = tenant
        self.loads = 0

    def __getattr__(self, name):
        return getattr(self._tenant, name)

    async def load(self, key, **how):
        self.loads += 1
        return await self._tenant.load(key, **how)


class Slow(Counting):
    """A tenant as one on a slow disk: while it is asked, others go on."""

    async def load(self, key, **how):
        await asyncio.sleep(0)
        try:
            return await super().load(key, **how)
        finally:
            await asyncio.sleep(0)


def counted(sessions):
    sessions._tenant = Counting(sessions._tenant)
    return sessions._tenant


async def filled(sessions, count, text="hello"):
    for n in range(count):
        session = await sessions.get_or_create(f"web:{n}")
        await session.append(Message.user(f"{text} {n}"))


# One live object for each key


@asynchronous
async def test_everybody_gets_the_same_object_however_many_ask_at_once(url):
    """S4-29: one object a key, and one session."""
    async with holdfast.open(url) as sessions:
        sessions._tenant = Slow(sessions._tenant)
        found = await asyncio.gather(*(sessions.get_or_create("a") for _ in range(100)))
        await found[0].append(Message.user("I am Ada."))
        sessions._live = Live(Cache())  # as in a process that has just begun
        again = await asyncio.gather(*(sessions.get("a") for _ in range(100)))

        assert len({id(each) for each in found}) == len({id(each) for each in again}) == 1
        assert len((await sessions.list()).items) == 1


@asynchronous
async def test_one_that_is_open_is_given_without_a_look_at_the_store(url):
    """S4-28: what is cached is the same object; what is not is loaded, or created empty."""
    async with holdfast.open(url) as sessions:
        session = await sessions.get_or_create("a")
        tenant = counted(sessions)

        assert await sessions.get("a") is session
        assert await sessions.get_or_create("a") is session
        assert tenant.loads == 0


@asynchronous
async def test_the_cache_is_bounded_and_what_is_in_use_stays_one(url):
    """Who holds a session keeps it; of those nobody uses, the ones used last stay."""
    async with holdfast.open(url, cache=3) as sessions:
        mine = await sessions.get_or_create("web:0")
        await filled(sessions, 10)
        gc.collect()

        assert sessions._live.held == 3
        assert await sessions.get("web:0") is mine
        tenant = counted(sessions)
        await sessions.get("web:9")
        assert tenant.loads == 0
        await sessions.get("web:1")
        assert tenant.loads == 1


@asynchronous
async def test_the_cache_is_bounded_by_bytes_too(url):
    """Also when sessions have grown since they were opened."""
    async with holdfast.open(url, cache=Cache(sessions=100, bytes=100_000)) as sessions:
        for n in range(5):
            session = await sessions.get_or_create(f"web:{n}")
            await session.append(Message.user("x" * 40_000))
            await sessions.get(f"web:{n}")

        assert sessions._live.held == 2


@asynchronous
async def test_what_sessions_grow_by_while_they_are_used_counts(url):
    """Each is asked for once and said much in: nobody comes back to have it measured."""
    async with holdfast.open(url, cache=Cache(sessions=100, bytes=100_000)) as sessions:
        for n in range(5):
            session = await sessions.get_or_create(f"web:{n}")
            await session.append(Message.user("x" * 40_000))

        assert sessions._live.held == 2
        assert sum(each.session.size for each in sessions._live._held.values()) <= 100_000


@asynchronous
async def test_a_cache_of_none_holds_nothing(url):
    async with holdfast.open(url, cache=0) as sessions:
        gone = weakref.ref(await sessions.get_or_create("a"))
        await asyncio.sleep(0)
        gc.collect()

        assert gone() is None
        assert (await sessions.get("a")).key == "a"


@pytest.mark.parametrize("cache", [-1, "many", None, 1.5, True])
def test_a_cache_that_is_none_is_refused(cache):
    with pytest.raises(InvalidInput, match="cache"):
        holdfast.open("memory:", cache=cache)


@asynchronous
async def test_what_another_manager_did_is_seen_when_it_is_used(file_url):
    """Deleted there, it is told here; and the next one who asks is given a new one."""
    async with holdfast.open(file_url) as here, holdfast.open(file_url) as there:
        session = await here.get_or_create("a")
        await (await there.get("a")).append(Message.user("from there"))
        await session.append(Message.user("from here"))
        assert [each.text for each in session.messages] == ["from there", "from here"]

        await there.delete("a")
        with pytest.raises(SessionNotFound):
            await session.append(Message.user("too late"))
        with pytest.raises(SessionNotFound):
            await here.get("a")
        made = await here.get_or_create("a")
        assert made is not session and made.count == 0
        assert await here.get("a") is made


@asynchronous
async def test_one_that_was_made_anew_elsewhere_is_another_one(file_url):
    async with holdfast.open(file_url) as here, holdfast.open(file_url) as there:
        session = await here.get_or_create("a")
        await there.delete("a")
        await there.get_or_create("a", agent="new")

        with pytest.raises(InvalidInput, match="made anew"):
            await session.append(Message.user("to the old one"))
        assert (await here.get("a")).agent == "new"


@asynchronous
async def test_one_whose_time_is_over_is_not_given_from_the_cache(url):
    """It is recreated by who creates, and refused to who does not."""
    async with holdfast.open(url) as sessions:
        session = await sessions.get_or_create("a", ttl=HOUR)
        with later(2 * HOUR):
            with pytest.raises(SessionExpired):
                await sessions.get("a")
            made = await sessions.get_or_create("a", ttl=HOUR)
            assert made is not session and made.id != session.id


@asynchronous
async def test_invalidate_looks_again_and_keeps_the_object(file_url):
    """S4-31: what was dropped from the cache is read anew. Who holds it holds the only one."""
    async with holdfast.open(file_url) as here, holdfast.open(file_url) as there:
        session = await here.get_or_create("a")
        await (await there.get("a")).append(Message.user("from there"))
        assert (await here.get("a")).count == 0

        assert here.invalidate("a") is True
        found = await here.get("a")
        assert found is session and found.count == 1
        assert here.invalidate("nobody") is False


@asynchronous
async def test_a_session_that_expires_at_once_is_given_to_who_made_it(url):
    """However short its life is: it is not made again and again until it lives long enough."""
    async with holdfast.open(url) as sessions:
        session = await sessions.get_or_create("a", ttl=timedelta(microseconds=1))
        assert session.count == 0


@asynchronous
async def test_one_that_expired_in_a_turn_is_busy_until_it_ends(url):
    """It cannot be made anew under a turn: told at once, and by whom it is in use."""
    async with holdfast.open(url, owner="somebody") as sessions:
        session = await sessions.get_or_create("a", ttl=HOUR)
        lease = await sessions._tenant.begin(session.id, "somebody", 24 * HOUR, {})
        with later(2 * HOUR):
            async with asyncio.timeout(5):
                with pytest.raises(Busy, match="somebody"):
                    await sessions.get_or_create("a")
            await sessions._tenant.release(lease)
            assert (await sessions.get_or_create("a")).id != session.id


def test_another_loop_is_refused(url):
    """A manager belongs to the loop that opened it, also for what is open already."""
    sessions = holdfast.open(url)
    with asyncio.Runner() as home:
        home.run(sessions.__aenter__())
        home.run(sessions.get_or_create("a"))
        for work in (sessions.get, sessions.get_or_create):
            for key in ("a", "b"):
                with pytest.raises(InvalidInput, match="event loop"):
                    in_another_loop(work(key))
        assert home.run(sessions.get("a")).key == "a"
        home.run(sessions.close())


def in_another_loop(work):
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


class Held(Counting):
    """A tenant that gives the record of one key only when it is let."""

    def __init__(self, tenant, key):
        super().__init__(tenant)
        self.key = key
        self.free = asyncio.Event()
        self.asked = 0

    async def load(self, key, **how):
        record = await super().load(key, **how)
        if key == self.key:
            self.asked += 1
            await self.free.wait()
        return record


@asynchronous
async def test_a_session_that_takes_long_to_open_holds_up_no_other(url):
    """Those who want the same one wait for each other; there is no lock over all."""
    async with holdfast.open(url, cache=0) as sessions:
        await filled(sessions, 3)
        sessions._live = Live(Cache())  # as in a process that has just begun
        tenant = sessions._tenant = Held(sessions._tenant, "web:0")
        waiting = [asyncio.ensure_future(sessions.get("web:0")) for _ in range(3)]
        async with asyncio.timeout(5):
            for key in ("web:1", "web:2"):
                assert (await sessions.get(key)).key == key
            assert await sessions.delete("web:2")
        assert not any(each.done() for each in waiting)

        tenant.free.set()
        found = await asyncio.gather(*waiting)

        assert len({id(each) for each in found}) == 1
        assert tenant.asked == 1
    assert not sessions._locks


@asynchronous
async def test_one_who_stops_waiting_for_a_session_leaves_it_to_the_others(url):
    async with holdfast.open(url, cache=0) as sessions:
        await filled(sessions, 1)
        sessions._live = Live(Cache())
        tenant = sessions._tenant = Held(sessions._tenant, "web:0")
        first, second = [asyncio.ensure_future(sessions.get("web:0")) for _ in range(2)]
        await asyncio.sleep(0)
        first.cancel()
        tenant.free.set()

        assert (await second).count == 1
        assert first.cancelled()


# Many of them


@asynchronous
async def test_lists_are_paged_and_filtered(url):
    async with holdfast.open(url) as sessions:
        for n in range(5):
            await sessions.get_or_create(f"web:{n}", agent="even" if n % 2 == 0 else "odd")

        first = await sessions.list(limit=3)
        rest = await sessions.list(limit=3, page=first.next)

        keys = [each.key for each in (*first.items, *rest.items)]
        assert keys == [f"web:{n}" for n in (4, 3, 2, 1, 0)]
        assert [each.key for each in (await sessions.list(agent="odd")).items] == ["web:3", "web:1"]


@asynchronous
async def test_lists_go_by_metadata_and_time(url):
    """Every name in `metadata` has to be equal; `since` is inclusive and `until` is not."""
    start = ids.now()
    async with holdfast.open(url) as sessions:
        for n in range(4):
            with later(n * HOUR):
                await sessions.get_or_create(f"web:{n}", metadata={"of": n % 2, "kind": "chat"})

        async def keys(**chosen):
            return [each.key for each in (await sessions.list(**chosen)).items]

        assert await keys(metadata={"of": 1}) == ["web:3", "web:1"]
        assert await keys(metadata={"of": 1, "kind": "chat"}, limit=1) == ["web:3"]
        assert await keys(metadata={"of": 1, "kind": "mail"}) == []
        third = (await sessions.list()).items[1].updated_at
        assert await keys(since=third) == ["web:3", "web:2"]
        assert await keys(until=third) == ["web:1", "web:0"]
        assert await keys(since=start, until=third, metadata={"of": 0}) == ["web:0"]


@asynchronous
async def test_pages_show_each_session_once_while_others_are_written_to(url):
    """What is written to meanwhile comes to the front; nothing that was not is left out."""
    async with holdfast.open(url) as sessions:
        await filled(sessions, 12)
        found, page = [], None
        while True:
            got = await sessions.list(limit=3, page=page)
            found += [each.key for each in got.items]
            if (page := got.next) is None:
                break
            session = await sessions.get("web:0")
            await session.append(Message.user("again"))

        assert sorted({*found, "web:0"}) == sorted(f"web:{n}" for n in range(12))
        assert len(found) == len(set(found))


@asynchronous
async def test_search_is_paged(url):
    async with holdfast.open(url) as sessions:
        await filled(sessions, 5, "a whale")
        first = await sessions.search("whale", limit=3)
        rest = await sessions.search("whale", limit=3, page=first.next)

        keys = [each.key for each in (*first.items, *rest.items)]
        assert keys == [f"web:{n}" for n in (4, 3, 2, 1, 0)] and rest.next is None


@asynchronous
async def test_search_goes_over_all_or_one(url):
    async with holdfast.open(url) as sessions:
        await filled(sessions, 3, "a whale")

        assert len((await sessions.search("whale")).items) == 3
        (found,) = (await sessions.search("whale", key="web:1")).items
        assert found.key == "web:1"
        with pytest.raises(SessionNotFound):
            await sessions.search("whale", key="nobody")


# Taking away


@asynchronous
async def test_delete_removes_one_and_says_whether_it_was_there(url):
    async with holdfast.open(url) as sessions:
        await filled(sessions, 2)

        assert await sessions.delete("web:0") is True
        assert await sessions.delete("web:0") is False
        with pytest.raises(SessionNotFound):
            await sessions.get("web:0")
        assert (await sessions.get("web:1")).count == 1


@asynchronous
async def test_delete_ends_the_turn_that_runs_here(url):
    async with holdfast.open(url, model=FakeProvider("one " * 1_000, pause_s=0.01)) as sessions:
        session = await sessions.get_or_create("a")
        turn = asyncio.ensure_future(session.send("Count."))
        await asyncio.sleep(0.05)

        assert await sessions.delete("a")

        async with asyncio.timeout(2):
            await asyncio.wait([turn])
        assert turn.exception() is not None or str(turn.result().outcome) == "cancelled"


@asynchronous
async def test_an_erased_session_is_in_no_file_and_the_receipt_says_where_was_looked(tmp_path):
    """Its children go with it; what it leaves alone is there."""
    url = f"sqlite:{tmp_path}/chats.db"
    async with holdfast.open(url) as sessions:
        session = await sessions.get_or_create("a", metadata={"title": "canary-title"})
        await session.append(Message.user("canary-text"))
        child = await session.child("scout", inherit=1)
        await child.session.append(Message.user("canary-child"))
        other = await sessions.get_or_create("b")
        await other.append(Message.user("stays"))

        done = await sessions.erase("a")

        assert done.keys == ("a", child.session.key)
        assert done.entries >= 3
        assert f"{tmp_path}/chats.db" in done.looked and f"{tmp_path}/chats.db-wal" in done.looked
        left = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        assert b"canary" not in left and b"stays" in left
        assert [each.key for each in (await sessions.list()).items] == ["b"]
        with pytest.raises(SessionNotFound):
            await sessions.erase("a")


@asynchronous
async def test_what_was_removed_is_given_to_nobody_from_the_cache(url):
    """Children that went with their parent, one that was discarded, what retention has deleted."""
    async with holdfast.open(url) as sessions:
        for key in ("a", "b"):
            await (await sessions.get_or_create(key)).append(Message.user("hello"))
        erased = await (await sessions.get("a")).child("scout")
        discarded = await (await sessions.get("b")).child("scout")
        await sessions.erase("a")
        await discarded.discard("not needed")
        await sessions.retain(Retention(count=0))

        for key in ("a", erased.key, discarded.key, "b"):
            with pytest.raises(SessionNotFound):
                await sessions.get(key)
        assert (await sessions.get_or_create("b")).count == 0


@asynchronous
async def test_a_dry_run_lets_go_of_nothing(url):
    async with holdfast.open(url) as sessions:
        session = await sessions.get_or_create("a")
        await sessions.retain(Retention(count=0), dry_run=True)
        tenant = counted(sessions)

        assert await sessions.get("a") is session and tenant.loads == 0


@asynchronous
async def test_a_turn_that_runs_while_its_session_is_erased_leaves_nothing(tmp_path):
    """Not its partial either, which it keeps when it is cancelled: in no file, at no moment."""
    answer = " ".join(f"canary{n}" for n in range(1_000))
    for delay_s in (0.02, 0.05, 0.1):
        place = tmp_path / str(delay_s)
        place.mkdir()
        model = FakeProvider(answer, pause_s=0.001)
        async with holdfast.open(f"sqlite:{place}/chats.db", model=model) as sessions:
            session = await sessions.get_or_create("a")
            turn = asyncio.ensure_future(session.send("canary, sing."))
            await asyncio.sleep(delay_s)

            done = await sessions.erase("a")

            assert done.keys == ("a",)
            assert left_in(place) == []
            await asyncio.wait([turn], timeout=5)
            turn.exception()
            assert left_in(place) == []


@asynchronous
async def test_what_is_written_while_a_session_is_erased_goes_too(tmp_path, monkeypatch):
    """Behind what was removed already, and before the record goes: it is all done again."""
    async with holdfast.open(f"sqlite:{tmp_path}/chats.db") as sessions:
        session = await sessions.get_or_create("a")
        await session.append(Message.user("canary 1"))
        clear, late = sessions._tenant.clear, ["canary 2"]

        async def clear_first(id):
            cleared = await clear(id)
            if late:
                await sessions._tenant.append(id, [Message.user(late.pop())])
            return cleared

        monkeypatch.setattr(sessions._tenant, "clear", clear_first)
        done = await sessions.erase("a")

        assert late == [] and done.keys == ("a",) and done.entries >= 2
        assert left_in(tmp_path) == []


def left_in(folder):
    """The files that hold a canary. Another process looks, which drops no lock of ours."""
    found = subprocess.run(["grep", "-rl", "canary", folder], capture_output=True, text=True)
    return found.stdout.split()


@asynchronous
async def test_an_expired_session_can_be_deleted_and_erased(url):
    async with holdfast.open(url) as sessions:
        for key in ("a", "b"):
            await sessions.get_or_create(key, ttl=HOUR)
        with later(2 * HOUR):
            assert await sessions.delete("a")
            assert (await sessions.erase("b")).keys == ("b",)
        assert (await sessions.list()).items == ()


# Expiry in the background


@asynchronous
async def test_expired_sessions_are_marked_in_the_background(url, monkeypatch):
    """While nobody asks for anything; and no task is left when the manager is closed."""
    marked = []

    async def noted(tenant, memory):
        done = await sweep(tenant, memory)
        marked.append(done.marked)
        return done

    monkeypatch.setattr("holdfast.sweeping.sweep", noted)
    async with holdfast.open(url, expire_every=timedelta(milliseconds=5)) as sessions:
        await sessions.get_or_create("a", ttl=timedelta(milliseconds=1))
        await until(lambda: sum(marked))


class Broken:
    """A tenant that cannot expire anything."""

    def __init__(self):
        self.calls = 0

    async def expire(self):
        self.calls += 1
        raise StoreUnavailable("it", "is broken")


@asynchronous
async def test_an_error_ends_no_sweeping(url):
    async with holdfast.open(url, expire_every=timedelta(milliseconds=5)) as sessions:
        sessions._sweeping._tenant = broken = Broken()
        await until(lambda: broken.calls > 2)
        assert "is broken" in str(sessions._sweeping.last)


@asynchronous
async def test_more_than_one_batch_is_swept_at_once(url, monkeypatch):
    for place in ("sweeping", "stores.requests", "stores.front"):
        monkeypatch.setattr(f"holdfast.{place}.EXPIRE_MAX", 2)
    async with holdfast.open(url, expire_every=None) as sessions:
        for n in range(7):
            await sessions.get_or_create(f"web:{n}", ttl=timedelta(milliseconds=1))
        await asyncio.sleep(0.01)

        assert (await sessions.expire()).marked == 7


@pytest.mark.parametrize("every", [timedelta(0), timedelta(-1), 5, "hourly"])
def test_a_wrong_interval_is_refused(every):
    with pytest.raises(InvalidInput, match="expire_every"):
        holdfast.open("memory:", expire_every=every)


# What open takes


@asynchronous
async def test_the_budget_of_the_manager_is_for_sessions_that_have_none(url):
    budget = Budget(context=2_000, keep_turns=2)
    model = FakeProvider(context=8_000, output=1_000)
    async with holdfast.open(url, model=model, budget=budget) as sessions:
        plain = await sessions.get_or_create("plain")
        own = await sessions.get_or_create("own", settings=Settings(budget={"context": 4_000}))

        assert plain.window().limit < 2_000
        assert 2_000 < own.window().limit < 4_000


@asynchronous
async def test_a_budget_may_be_named_and_a_wrong_one_is_refused(url):
    async with holdfast.open(url, model=FakeProvider(), budget={"context": 3_000}) as sessions:
        assert (await sessions.get_or_create("a")).window().limit < 3_000
    with pytest.raises(InvalidInput, match="budget"):
        holdfast.open(url, budget={"contexts": 3_000})


@asynchronous
async def test_durability_goes_to_the_store(file_url):
    async with holdfast.open(file_url, durability="fast") as sessions:
        await sessions.get_or_create("a")
    with pytest.raises(InvalidInput, match="durability"):
        holdfast.open(file_url, durability="brave")


# All of it


@asynchronous
async def test_a_backup_is_a_store_and_its_progress_is_told(tmp_path):
    heard = []
    async with holdfast.open(f"sqlite:{tmp_path}/chats.db") as sessions:
        await filled(sessions, 3)
        await sessions.backup(tmp_path / "copy.db", on_progress=heard.append)

    assert heard[-1] == 1.0
    async with open_store(f"sqlite:{tmp_path}/copy.db") as store:
        assert len((await store.tenant().list()).items) == 3


@asynchronous
async def test_close_waits_for_the_turn_that_runs(url):
    async with holdfast.open(url, model=FakeProvider("one two three", pause_s=0.01)) as sessions:
        session = await sessions.get_or_create("a")
        turn = asyncio.ensure_future(session.send("Count."))
        await asyncio.sleep(0.005)

    assert (await turn).text == "one two three"


class Stuck(FakeProvider):
    """A model that cannot be closed."""

    async def close(self):
        raise ConnectionFailed("it hangs on")


@asynchronous
async def test_a_model_that_cannot_be_closed_keeps_neither_store_nor_models_open(
    file_url, monkeypatch
):
    """The error is told, and everything else is closed."""
    closed = []

    class Good(FakeProvider):
        async def close(self):
            closed.append(self.name)

    made = {"one:a": Good(), "two:b": Stuck(), "three:c": Good()}
    monkeypatch.setattr("holdfast.workshop.open_provider", made.__getitem__)
    sessions = await holdfast.open(file_url)
    session = await sessions.get_or_create("a")
    for name in made:
        session.window(name)

    with pytest.raises(ConnectionFailed):
        await sessions.close()

    assert len(closed) == 2
    with pytest.raises(StoreUnavailable):
        await sessions.list()


@asynchronous
async def test_close_waits_for_what_is_asked_while_it_waits(url):
    """Turns in line behind the one that runs come to their end too."""
    model = FakeProvider("one two three", "four", "five", pause_s=0.01)
    async with holdfast.open(url, model=model) as sessions:
        session = await sessions.get_or_create("a")
        turns = [asyncio.ensure_future(session.send(text)) for text in ("1", "2", "3")]
        await asyncio.sleep(0.005)

    assert [(await turn).text for turn in turns] == ["one two three", "four", "five"]


@asynchronous
async def test_who_waits_no_longer_for_a_close_ends_what_runs_which_keeps_what_it_has(
    file_url, tmp_path
):
    """The turn that runs, those in line behind it, and a consolidation; then all is closed."""
    never = asyncio.Event()
    keeper = FakeProvider(Halt("x", never), Halt("y", never))
    memory = Memory(tmp_path, keeper, window=1)
    model = FakeProvider(Halt("one two three", never))
    sessions = await holdfast.open(file_url, model=model, memory=memory)
    session = await sessions.get_or_create("a")
    await (await sessions.get_or_create("b")).append(Message.user("Summarise."))
    turns = [asyncio.ensure_future(session.send(text)) for text in ("1", "2")]
    await until(lambda: model.requests and keeper.requests)

    closing = asyncio.ensure_future(sessions.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing

    assert [(await turn).outcome for turn in turns] == ["cancelled", "cancelled"]
    async with holdfast.open(file_url, memory=memory) as again:  # nobody else has it any more
        kept = (await again.get("a")).messages
        assert [each.text for each in kept] == ["1", "one"] and kept[-1].stop == "cancelled"
