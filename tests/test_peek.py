"""A session, looked at without being opened; and the next request, told part by part."""

import asyncio
from datetime import timedelta

import holdfast
from holdfast import Message, Settings, sync
from holdfast.entries import Call, Fold
from holdfast.peek import Peek
from holdfast.stores.values import Record
from holdfast.testing import FakeProvider
from sessions_for_tests import asynchronous, tool_of


def said(count, start=1):
    """So many turns of two messages."""
    return [
        message
        for number in range(start, start + count)
        for message in (Message.user(f"question {number}"), Message.assistant(f"answer {number}"))
    ]


def numbered(turns):
    """The turns, each with its number and how it begins."""
    return [(turn.number, turn.rows[0].entry.text) for turn in turns]


@asynchronous
async def test_a_branch_is_read_turn_by_turn_over_the_bounds_of_pages(url):
    """However many messages are read at a time, the turns are those of `session.turns()`."""
    async with holdfast.open(url) as sessions:
        session = await sessions.get_or_create("long")
        await session.append(Message.system("Be brief."), *said(700))
        peek = await sessions.peek("long")

        turns = [turn async for turn in peek.turns()]

        assert [turn.number for turn in turns] == list(range(701))
        assert turns[0].rows[0].entry.text == "Be brief."
        stored = await session.turns()
        assert [(turn.number, turn.rows[0].seq) for turn in turns[1:]] == [
            (each.index, each.first_seq) for each in stored
        ]
        assert sum(len(turn.rows) for turn in turns) == 1_401


@asynchronous
async def test_the_last_turns_are_numbered_only_where_that_is_known(url):
    """No more is read than it takes, so the number of a late turn is not known."""
    async with holdfast.open(url) as sessions:
        long = await sessions.get_or_create("long")
        await long.append(*said(100))
        short = await sessions.get_or_create("short")
        await short.append(Message.system("Be brief."), *said(2))

        late = await (await sessions.peek("long")).last_turns(2)
        few = await (await sessions.peek("short")).last_turns(5)

        assert numbered(late) == [(None, "question 99"), (None, "question 100")]
        assert numbered(few) == [(0, "Be brief."), (1, "question 1"), (2, "question 2")]
        assert await (await sessions.peek("long")).last_turns(0) == ()


@asynchronous
async def test_an_expired_session_can_be_looked_at_and_stays_expired(url):
    async with holdfast.open(url) as sessions:
        record = Record(key="old", ttl=timedelta(microseconds=1))
        await sessions._tenant.create(record, [Message.user("Hello.")])

        peek = await sessions.peek("old")

        assert peek.expired_at is not None
        assert [row.entry.text for row in await peek.read()] == ["Hello."]
        assert (await sessions.peek("old")).expired_at == peek.expired_at


@asynchronous
async def test_a_peek_opens_no_model_and_no_session(url):
    """A model that nobody here knows is a name in a record, and nothing else."""
    async with holdfast.open(url) as sessions:
        await sessions.get_or_create("a", settings=Settings(model="gone:model"))
        sessions.invalidate("a")

        peek = await sessions.peek("a")

        assert isinstance(peek, Peek)
        assert peek.record.settings.model == "gone:model"
        assert sessions._live.known("a") is None or not sessions._workshop.has("gone:model")
        assert peek.draft is None


@asynchronous
async def test_each_entry_of_all_branches_is_told_once(url):
    """In the order in which they were written, also where branches share them."""
    async with holdfast.open(url) as sessions:
        session = await sessions.get_or_create("a")
        await session.append(*said(2))
        await session.branch_at(1, "other")
        await session.append(*said(1, start=9))
        peek = await sessions.peek("a")

        seqs = [row.seq async for row in peek.log()]

        assert seqs == sorted(set(seqs))
        assert len(seqs) == peek.record.seq
        main, other = await peek.lines()
        assert (main.shared, main.own, main.turn) == (0, 4, 0)
        assert (other.shared, other.own, other.turn) == (2, 2, 1)
        assert other.began is not None


@asynchronous
async def test_a_fork_is_not_charged_for_what_it_began_with(url):
    """Its receipts are copies of another's; only those made in it are its own."""
    async with holdfast.open(url, model=FakeProvider("one", "two")) as sessions:
        session = await sessions.get_or_create("a")
        await session.send("Hello.")
        fork = await session.fork("b")
        await fork.send("Go on.")

        ours = [call async for call in (await sessions.peek("a")).receipts()]
        theirs = [call async for call in (await sessions.peek("b")).receipts()]

        assert (len(ours), len(theirs)) == (1, 1)
        assert ours[0].id != theirs[0].id


@asynchronous
async def test_the_folds_of_any_branch_are_those_in_force(url):
    """A fold that a later one covers whole says nothing any more."""
    async with holdfast.open(url) as sessions:
        session = await sessions.get_or_create("a")
        await session.append(*said(4))
        await session._tenant.append(session.id, [Fold(first=1, last=2), Fold(first=1, last=4)])
        await session.branch_at(4, "other")
        peek = await sessions.peek("a")

        for branch in (None, "main", "other"):
            assert [(each.first, each.last) for each in await peek.folds(branch)] == [(1, 4)]


def test_it_is_there_without_await(file_url):
    with sync.open(file_url) as sessions:
        sessions.get_or_create("a").append(*said(3))

        peek = sessions.peek("a")

        assert numbered(peek.turns()) == [(n, f"question {n}") for n in (1, 2, 3)]
        assert numbered(peek.last_turns(1)) == [(3, "question 3")]


# The next request


@asynchronous
async def test_a_preview_is_the_window_with_its_parts(url):
    """The very window that a turn sends; its parts are its messages, in order."""
    model = FakeProvider("Hello, Ada.")
    async with holdfast.open(url, model=model, tools=[tool_of("look")]) as sessions:
        session = await sessions.get_or_create("a", settings=Settings(system="Be brief."))
        await session.send("I am Ada.")

        told = session.preview()

        assert told.window == session.window()
        assert tuple(piece.message for piece in told.pieces) == tuple(told.window.messages)
        assert [(piece.first, piece.last) for piece in told.pieces] == [(1, 1), (2, 2)]
        assert [piece.is_measured for piece in told.pieces] == [False, True]
        assert told.system_tokens > 0 < told.tools_tokens
        assert told.measured <= told.window.used
        assert told.room.prompt == told.window.limit


@asynchronous
async def test_what_was_measured_is_known_again_after_opening(file_url):
    """The receipts in the log tell how many tokens each answer had, whoever reads them."""
    async with holdfast.open(file_url, model=FakeProvider("one", "two")) as sessions:
        session = await sessions.get_or_create("a")
        await session.send("Hello.")
        await session.send("And again.")
        before = session.preview()
    async with holdfast.open(file_url, model=FakeProvider()) as sessions:
        after = (await sessions.get("a")).preview()

    measured = [(piece.message.text, piece.tokens) for piece in before.pieces if piece.is_measured]
    assert [text for text, _ in measured] == ["one", "two"]
    again = [(piece.message.text, piece.tokens) for piece in after.pieces if piece.is_measured]
    assert again == measured


@asynchronous
async def test_the_receipts_of_an_answer_that_took_several_calls_measure_no_message(url):
    """Neither of two prompts and answers is that of the message that was made of both."""
    async with holdfast.open(url, model=FakeProvider()) as sessions:
        session = await sessions.get_or_create("a")
        answer = Message.assistant("one two")
        shown = {"counted": 10, "tools": 0, "by": session._bench.target().family}
        calls = [
            Call(model="fake:model", about=answer.id, usage=holdfast.Usage(10, n), window=shown)
            for n in (3, 4)
        ]
        await session._tenant.append(session.id, [Message.user("Hello."), answer, *calls])
        await session.refresh()

        assert not any(piece.is_measured for piece in session.preview().pieces)


# Search


def test_the_index_tells_how_far_it_is(file_url):
    """What a search would do first can be done before, with progress; then nothing is left."""
    heard = []

    async def fill():
        async with holdfast.open(file_url) as sessions:
            session = await sessions.get_or_create("a")
            await session.append(*said(800))
            await sessions.index(on_progress=lambda done, total: heard.append((done, total)))
            count = len(heard)
            await sessions.index(on_progress=lambda done, total: heard.append((done, total)))
            assert len(heard) == count
            assert len((await sessions.search("question 700")).items) == 1

    asyncio.run(fill())

    assert heard[0] == (0, 1_600)
    assert heard[-1] == (1_600, 1_600)
    assert [done for done, _ in heard] == sorted({done for done, _ in heard})
