"""F09 on whole turns: a service stalls, resets, half closes or breaks off, and a turn waits for it.

An error comes no later than the limit on silence and a second; nothing is appended, and the draft
has what was said and the words that had come. A cancel is through within a second, from a task or
a thread, and keeps those words as a message. The next turn begins at once and works. No task, no
socket and no lease is left behind.
"""

import asyncio
import time
from typing import NamedTuple

import pytest

import holdfast
from bad_inputs import run
from faults import calls, turn_oracle
from faults.calls import LIMITS, PATIENT
from faults.talk import ANSWER, VENDORS, joined
from faults.test_f09_stalls import ENDS, HEAD, is_ended_at, silences
from faults.tier import pick, some
from holdfast.cancel import CancelToken
from holdfast.errors import ConnectionFailed, HoldfastError, ProviderError
from holdfast.events import Outcome, TextDelta
from holdfast.messages import Role, Stop
from loopback import Loopback, chunked, in_turn
from sessions_for_tests import until

APIS = pick(["anthropic", "openai-chat"], list(VENDORS))
WORDS = (("text", "Fine "), ("text", "again."))
CANCEL_S = 0.25
PARALLEL_MAX = 4
WAYS = ("token", "session", "thread", "task", "leave")


class Ended(NamedTuple):
    """What came of a turn; what was heard of it; how long it took, or how long its cancel took."""

    result: object
    error: BaseException | None
    heard: str
    took_s: float


class Place:
    """A session, and a server that its model asks."""

    def __init__(self, sessions, server, api, limits=LIMITS):
        self.sessions = sessions
        self.server = server
        self.api = api
        self.model = calls.ours(api, server.url, timeout=limits)

    async def begin(self, key):
        self.session = await self.sessions.get_or_create(key, model=self.model)

    async def turn(self, answer, said="u1", *, is_stream=True, cancel=None):
        """One turn, with a service that answers so."""
        self.server.answers = [answer]
        heard, result, error = [], None, None
        started = time.monotonic()
        try:
            if is_stream:
                async with self.session.stream(said, cancel=cancel) as events:
                    async for event in events:
                        heard += [event.text] if isinstance(event, TextDelta) else []
                result = events.result
            else:
                listen = lambda e: heard.append(e.text) if isinstance(e, TextDelta) else None  # noqa: E731
                result = await self.session.send(said, cancel=cancel, on_event=listen)
        except (HoldfastError, asyncio.CancelledError) as raised:
            error = raised
        return Ended(result, error, "".join(heard), time.monotonic() - started)

    async def rows(self):
        tenant = self.sessions._workshop.tenant
        return await tenant.read(self.session.id, self.session.branch)

    async def next_turn(self, how):
        """What is wrong with the turn that follows: it begins at once, and is answered."""
        vendor = VENDORS[self.api]
        self.server.answers = [chunked(joined(vendor.events(WORDS)))]
        try:
            if how == "resume":
                result = await self.session.resume(wait=0)
            else:
                result = await self.session.send("u2", wait=0)
        except HoldfastError as error:
            return [f"the next turn: {error!r}"]
        wrong = [] if result.text == "Fine again." else [f"the next turn says {result.text!r}"]
        wrong += turn_oracle.broken_rules(await self.rows())
        if self.session.draft is not None:
            wrong.append(f"a draft is left: {self.session.draft}")
        return wrong


async def together(folder, api, cases, judge, limits=LIMITS):
    """`judge(place, name, value)` for each case, a few at once: what is wrong, what is left."""
    before = asyncio.all_tasks(), calls.open_sockets()
    room = asyncio.Semaphore(PARALLEL_MAX)  # all at once, they would take each other's time

    async def one(sessions, name, value, judge=judge):
        async with room, Loopback(b"") as server:
            place = Place(sessions, server, api, limits)
            await place.begin(f"{api} {name}")
            try:
                return await judge(place, name, value)
            finally:
                await place.model.close()

    async with holdfast.open(f"sqlite:{folder / 'store.db'}") as sessions:
        await one(
            sessions, "warm", None, lambda place, *_: place.next_turn("send")
        )  # all is loaded
        found = await asyncio.gather(*(one(sessions, *case) for case in cases.items()))
    wrong = {name: each for name, each in zip(cases, found, strict=True) if each}
    left = await calls.leaks(*before)
    return wrong | ({"left behind": left} if left else {})


# Failures


async def failed(place, name, answer):
    """A turn that fails: what is wrong with the error, the draft, the log, and the next turn."""
    is_stream = len(name) % 2 == 0
    ended = await place.turn(answer, is_stream=is_stream)
    wrong, draft = [], place.session.draft
    if not isinstance(ended.error, ProviderError):
        wrong.append(f"it ended with {ended.error!r} {ended.result!r}")
    if ended.took_s > LIMITS.idle + 1:
        wrong.append(f"it took {ended.took_s:.2f} s")
    if await place.rows():
        wrong.append("something was appended")
    if draft is None or (draft.text, draft.ended) != ("u1", "failed"):
        wrong.append(f"the draft is {draft}")
    elif draft.partial != ended.heard:
        wrong.append(f"heard {ended.heard!r}, drafted {draft.partial!r}")
    return wrong + await place.next_turn(("resume", "send")[len(name) % 3 == 0])


@pytest.mark.parametrize("api", APIS)
def test_silence_ends_the_turn_at_the_limit_and_the_draft_remains(fast_path, api):
    answers = {
        where: in_turn(*pieces, pause_s=0.001, then="hang")
        for where, pieces in silences(api).items()
    }

    assert run(together(fast_path, api, answers, failed)) == {}


@pytest.mark.parametrize("api", APIS)
def test_a_stream_that_breaks_off_ends_the_turn_and_the_draft_remains(fast_path, api):
    """Closed, reset or half closed behind each event, and a tidy end of the transfer."""
    events = [event.encoded() for event in VENDORS[api].events(ANSWER)]
    cuts = some(range(is_ended_at(api, events)), pick(4, 100))
    answers = {
        f"{then} behind {cut}": in_turn(HEAD + b"".join(events[:cut]), pause_s=0.02, then=then)
        for then in ENDS
        for cut in cuts
    }
    answers |= {f"tidy behind {cut}": chunked(b"".join(events[:cut])) for cut in cuts if cut}

    assert run(together(fast_path, api, answers, failed)) == {}


# Cancelling


def cancelling(way):
    """A judge of turns that are cancelled in the middle of silence."""

    async def judge(place, name, answer):
        token, stopped = CancelToken(), []
        work = asyncio.ensure_future(place.turn(answer, cancel=token, is_stream=way == "leave"))
        await until(lambda: place.server.requests)
        await asyncio.sleep(CANCEL_S)

        def stop():
            stopped.append(time.monotonic())
            {"token": token.cancel, "session": place.session.cancel}.get(way, work.cancel)()

        if way == "thread":
            await asyncio.to_thread(place.session.cancel)
            stopped.append(time.monotonic())
        else:
            stop()
        await asyncio.wait([work])
        took_s = time.monotonic() - stopped[0]
        return await cancelled_wrongly(place, work.result(), way, took_s)

    return judge


async def cancelled_wrongly(place, ended, way, took_s):
    wrong, rows = [], await place.rows()
    said = turn_oracle.messages_of(rows)
    if took_s > 1:
        wrong.append(f"the cancel took {took_s:.2f} s")
    is_told = isinstance(ended.error, asyncio.CancelledError) or (
        ended.result is not None and ended.result.outcome is Outcome.CANCELLED
    )
    if not is_told:
        wrong.append(f"it ended with {ended.error!r} {ended.result!r}")
    if not said or said[0].text != "u1":
        wrong.append(f"what was said is not stored: {said}")
    kept = [each for each in said if each.role is Role.ASSISTANT]
    if ended.heard and ([each.text for each in kept], kept[0].stop) != (
        [ended.heard],
        Stop.CANCELLED,
    ):
        wrong.append(f"heard {ended.heard!r}, stored {kept}")
    if len(turn_oracle.marks_of(rows, "cancelled")) != 1:
        wrong.append("no mark says that it was cancelled")
    return wrong + await place.next_turn("send")


@pytest.mark.parametrize("way", WAYS)
def test_a_cancel_in_the_middle_of_silence_is_through_within_a_second(fast_path, way):
    api = "anthropic"
    answers = {
        where: in_turn(*pieces, pause_s=0.001, then="hang")
        for where, pieces in silences(api).items()
        if where != "inside an error"
    }

    assert run(together(fast_path, api, answers, cancelling(way), PATIENT)) == {}


# Controls


class Swallowing(calls.Naive):
    """Takes what had come for the answer, and hears no cancel."""

    vendor = "swallowing"

    async def complete(self, messages, *_, on_chunk=None, **__):
        return await super().complete(messages, on_chunk)


def test_a_model_that_takes_a_broken_stream_for_an_answer_is_caught(fast_path):
    async def judge(place, name, answer):
        place.model = Swallowing(place.api, place.server.url)
        place.session.bind(model=place.model)
        await place.session.update(model=place.model)
        return await failed(place, name, answer)

    events = VENDORS["anthropic"].events(ANSWER)
    wrong = run(together(fast_path, "anthropic", {"cut": chunked(joined(events[:5]))}, judge))

    assert "something was appended" in wrong["cut"]


def test_a_turn_that_drops_its_draft_is_caught(fast_path, monkeypatch):
    from holdfast.steps.hold import Hold

    let_go = Hold.let_go

    async def drops(self, why="", *, drop=False):
        await let_go(self, why, drop=True)

    monkeypatch.setattr(Hold, "let_go", drops)
    answers = {"close": in_turn(HEAD, then="close")}

    wrong = run(together(fast_path, "anthropic", answers, failed))

    assert any("the draft is None" in each for each in wrong["close"]), wrong


def test_the_errors_are_of_the_connection(fast_path):
    """Which of our errors it is: one that says that asking again may help."""

    async def judge(place, name, answer):
        ended = await place.turn(answer)
        return [] if type(ended.error) is ConnectionFailed else [repr(ended.error)]

    answers = {then: in_turn(HEAD, pause_s=0.02, then=then) for then in (*ENDS, "hang")}

    assert run(together(fast_path, "anthropic", answers, judge)) == {}
