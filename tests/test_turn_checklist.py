"""What other programs' turns promise, and no other test of ours says."""

import asyncio

import pytest

import holdfast
from holdfast import Settings
from holdfast.errors import DuplicateSession
from holdfast.events import TextDelta, UsageUpdate
from holdfast.testing.fake_provider import Halt
from sessions_for_tests import KEY, asynchronous, events_of, opened, said, talking, until

EARLY = (
    "[System: Your previous response was cancelled by the user before any output was generated.]"
)


@pytest.fixture(params=["memory", "sqlite"])
def url(request, tmp_path):
    return "memory:" if request.param == "memory" else f"sqlite:{tmp_path / 'chats.db'}"


async def stopped(session, model, words, pieces):
    """A turn that is cancelled when the model has said so many pieces."""
    heard = []
    turn = asyncio.create_task(session.send(words, on_event=heard.append))
    await until(lambda: model.requests and len(events_of(TextDelta, heard)) == pieces)
    session.cancel()
    return await turn


@pytest.mark.parametrize(
    ("pieces", "note"),
    [
        (1, '[System: Your previous response was cancelled by the user after: "one"]'),
        (0, EARLY),
    ],
)
@asynchronous
async def test_a_model_is_told_of_a_cancel_if_that_is_asked_for(url, pieces, note):
    """S2-29, S2-30: the note is a message of its own, in the session's own log."""
    settings = Settings(extra={"cancel_note": True})
    halt = Halt("one two", asyncio.Event(), pieces)
    async with talking(url, halt, "Fine.", settings=settings) as (session, model):
        await stopped(session, model, "Go!", pieces)
        await session.send("And now?")

        assert note in model.texts
        assert len(await session.turns()) == 2


@asynchronous
async def test_a_model_is_not_told_of_a_cancel_unasked(url):
    """S2-30: such a note makes models see interruptions everywhere, so it is off."""
    halt = Halt("one two", asyncio.Event(), 1)
    async with talking(url, halt, "Fine.") as (session, model):
        await stopped(session, model, "Go!", 1)
        await session.send("And now?")

        assert model.texts == ["Go!", "one", "And now?"]


@asynchronous
async def test_the_first_report_of_a_full_window_is_told_once(url):
    """S2-46: each report is compared with the threshold; the first over it is told, no other."""
    settings = Settings(budget={"start": 0.003, "target": 0.003})
    look = holdfast.Tool("look", "Looks.", {"type": "object"}, lambda: "a lot " * 200)
    calls = [holdfast.testing.fake_provider.calls("look") for _ in range(3)]
    events = []
    async with talking(url, *calls, "Done.", tools=[look], settings=settings) as (session, _):
        await session.send("Look " * 100, on_event=events.append)

        reports = [event for event in events if isinstance(event, UsageUpdate)]
        flags = [event.is_full for event in reports]
        assert flags.count(True) == 1 and 0 < flags.index(True) < len(flags) - 1


@asynchronous
async def test_what_is_loaded_is_read_without_a_store_and_cannot_be_changed(url):
    """S2-7: a local read, of a value that nothing changes behind one's back."""
    async with talking(url, "Hello.", "Fine.") as (session, _):
        await session.send("I am Ada.")
        before = session.messages
        await session.send("And you?")

        assert [message.text for message in before] == ["I am Ada.", "Hello."]
        assert isinstance(before, tuple) and len(session.messages) == 4


@asynchronous
async def test_a_history_is_replaced_or_emptied(url):
    """S2-8: the session goes on with a copy of other messages, or with none."""
    others = [holdfast.Message.user("I am Bob."), holdfast.Message.assistant("Hello, Bob.")]
    async with talking(url, "Hello, Ada.", "You are Bob.", "Nobody.") as (session, model):
        await session.send("I am Ada.")
        await session.replace(others)
        others.clear()
        await session.send("Who am I?")
        kept = model.texts
        await session.replace([])
        await session.send("Who am I?")

        assert kept == ["I am Bob.", "Hello, Bob.", "Who am I?"]
        assert model.texts == ["Who am I?"]
        assert await said(session, "main") == [("user", "I am Ada."), ("assistant", "Hello, Ada.")]


@asynchronous
async def test_many_who_get_or_create_get_one_session(url):
    """S1-47: whoever comes second reads what the first has made; nobody fails."""
    async with opened(url) as (sessions, _):
        tenant = sessions._tenant
        create, made = tenant.create, []

        async def late(record, *args, **options):
            await asyncio.sleep(0)
            if not made:  # another process is first
                made.append(await create(holdfast.stores.Record(key=record.key)))
            raise DuplicateSession(record.key)

        tenant.create = late
        found = await asyncio.gather(*(sessions.get_or_create(KEY) for _ in range(10)))

        assert len({id(session) for session in found}) == 1
        assert {session.id for session in found} == {made[0].id}
