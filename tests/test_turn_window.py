"""Turns and the window: what is folded, when, and what becomes of a request that is too long.

The models here have small windows, and refuse what is longer, as real ones do. The log keeps
everything; only what is shown gets smaller.
"""

from random import Random

import pytest

from holdfast import Message, Settings
from holdfast.entries import Fold
from holdfast.errors import ContextOverflow, DoesNotFit, InvalidInput, Overloaded, RateLimited
from holdfast.events import Folded
from holdfast.parts import Image
from holdfast.testing.fake_provider import Halt
from holdfast.window import BudgetPolicy, CacheAware, Evict, Summarize, Truncate
from sessions_for_tests import (
    Judged,
    asks,
    asynchronous,
    call,
    entries,
    events_of,
    messages,
    opened,
    receipts,
    said,
    talking,
    tool_of,
    turn_count,
)

SAID = "All work and no play makes a dull day. " * 8  # some eighty tokens
CONTEXT = 2_000
POLICIES = (CacheAware(), Evict(), Truncate(keep_turns=2))
PNG = b"\x89PNG\r\n\x1a\n"


def small(*answers, context=CONTEXT, **options):
    return Judged(*answers, context=context, output=200, **options)


def answer(request):
    """An answer that says to what it is one."""
    return f"Answer to {request.messages[-1].text[:12]} {SAID}"


async def talk(session, turns, on_event=None, first=0):
    for turn in range(first, first + turns):
        await session.send(f"Question {turn:03} {SAID}", on_event=on_event)


async def folds(session):
    return [each for each in await entries(session) if isinstance(each, Fold)]


# Before a call, and after a turn


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
@asynchronous
async def test_a_conversation_is_folded_so_that_it_always_fits(url, policy):
    """However long it gets: no request is refused, and nothing is lost from the log."""
    heard = []
    model = small(*[answer] * 40)
    async with talking(url, model=model, policy=policy) as (session, _):
        await talk(session, 40, heard.append)

        assert len(model.requests) == 40  # none had to be tried again
        assert all(request.tokens <= CONTEXT for request in model.requests)
        told = [fold for event in events_of(Folded, heard) for fold in event.folds]
        assert told and [fold.id for fold in await folds(session)] == [fold.id for fold in told]
        assert all(fold.by and fold.why for fold in told)
        assert session.count == 80
        texts = [m.text[:12] for m in await session.read(0, 80) if m.role == "user"]
        assert texts == [f"Question {turn:03}" for turn in range(40)]
        assert "Question 001" not in str(model.texts)  # the first request stays


@asynchronous
async def test_without_a_need_nothing_is_folded(url):
    """The control: with a large window all of it is shown."""
    heard = []
    model = small(*[answer] * 10, context=100_000)
    async with talking(url, model=model) as (session, _):
        await talk(session, 10, heard.append)

        assert not events_of(Folded, heard) and len(model.given[-1]) == 19


@asynchronous
async def test_a_fold_before_a_call_is_in_the_log_before_it(url):
    """S2-42: the receipt says what the model was shown, and what it was not."""
    model = small(*[answer] * 20)
    async with talking(url, model=model, policy=Evict()) as (session, _):
        await talk(session, 20)

        log = await entries(session)
        first = next(place for place, each in enumerate(log) if isinstance(each, Fold))
        later = [r for r in await receipts(session) if log.index(r) > first]
        assert later and later[-1].window["folds"]
        assert later[-1].window["folds"][0]["why"]
        assert later[-1].window["messages"] == len(model.given[-1])


@asynchronous
async def test_the_window_is_folded_after_a_turn_too(url):
    """S2-42: what the answer has filled is made room for at once, not when the user waits."""
    model = small(*["Short."] * 3, "Long. " + SAID * 5)
    async with talking(url, model=model, policy=Truncate(keep_turns=1)) as (session, _):
        for turn in range(3):
            await session.send(f"{turn} {SAID * 4}")
        assert await folds(session) == []
        heard = []
        await session.send(f"Question {SAID}", on_event=heard.append)

        log = await entries(session)
        reply = log.index((await messages(session))[-1])
        assert any(isinstance(each, Fold) for each in log[reply:])
        assert events_of(Folded, heard) and len(model.requests) == 4


@asynchronous
async def test_folds_are_there_in_another_process(file_url):
    """What was folded stays folded, without being planned again."""
    async with talking(file_url, model=small(*[answer] * 20)) as (session, _):
        await talk(session, 20)
        shown = tuple(session.window().messages)
        made = await folds(session)
    async with talking(file_url, model=small(answer)) as (session, model):
        assert made and tuple(session.window().messages) == shown
        await session.send("Well?")

        assert model.requests[0].tokens <= CONTEXT


@asynchronous
async def test_a_model_with_a_small_window_gets_less(url):
    """In mid-conversation: what it is shown fits it."""
    model, other = small(*[answer] * 12, context=50_000), small("Fine.", name="acme:small")
    async with talking(url, model=model) as (session, _):
        await talk(session, 12)
        result = await session.send("Well?", model=other)

        assert result.text == "Fine." and other.requests[0].tokens <= CONTEXT
        assert len(other.requests) == 1 and other.problems == []


@asynchronous
async def test_a_budget_of_the_session_is_kept_to(url):
    """Although the model has room for more."""
    settings = Settings(budget={"context": 2_000})
    model = small(*[answer] * 20, context=100_000)
    async with talking(url, model=model, settings=settings) as (session, _):
        await talk(session, 20)

        assert all(request.tokens <= 2_200 for request in model.requests)
        assert await folds(session)


@asynchronous
async def test_a_session_is_folded_by_hand(url):
    """`compact` makes folds now, and says which."""
    model = small(*[answer] * 9, context=100_000)
    async with talking(url, model=model) as (session, _):
        await talk(session, 8)
        made = await session.compact(Truncate(keep_turns=2))
        await session.send("Well?")

        assert made and all(isinstance(fold, Fold) for fold in made)
        assert [fold.id for fold in await folds(session)] == [fold.id for fold in made]
        assert len(model.given[-1]) < 8 and session.count == 18


# Tokens that are far from what is counted


class Otherwise(Judged):
    """A model that has so many tokens for each that is counted. It refuses nothing."""

    def __init__(self, ratio, *answers, **options):
        super().__init__(*answers, **options)
        self.ratio = ratio

    async def complete(self, *args, **options):
        response = await super().complete(*args, **options)
        usage = response.usage
        self.real = int(self.ratio * usage.input)
        output = max(1, int(self.ratio * usage.output))
        return response.replace(usage=usage.replace(input=self.real, output=output))


def digs(request):
    return "Found." if request.messages[-1].role == "tool" else asks("dig")


@pytest.mark.parametrize("ratio", [0.3, 0.42, 1.0, 2.5])
@pytest.mark.parametrize("length", [540, 600, 620, 1_200])
@asynchronous
async def test_a_conversation_goes_on_whatever_a_model_makes_of_its_tokens(url, ratio, length):
    """What fits as best known is sent: no uncertainty ends a conversation. And soon the model is
    known."""
    rnd = Random(5)
    dig = tool_of("dig", lambda **_: " ".join(f"w{rnd.randrange(3_000)}" for _ in range(length)))
    model = Otherwise(ratio, *[digs] * 60, context=8_000, output=500)
    async with talking(url, model=model, tools=[dig]) as (session, _):
        for turn in range(15):
            await session.send(f"Dig number {turn}")

        window = session.window()
        assert await turn_count(session) == 15 and model.problems == []
        assert window.used == pytest.approx(model.real, rel=0.15)


@pytest.mark.parametrize("ratio", [0.3, 2.5])
@asynchronous
async def test_what_a_model_makes_of_its_tokens_is_known_in_another_process(file_url, ratio):
    """S3-17: from the receipts that are loaded, although most of the log is passed over."""
    model = Otherwise(ratio, *[answer] * 130, context=8_000, output=500)
    async with talking(file_url, model=model) as (session, _):
        await talk(session, 120)
        assert len(await folds(session)) > 1
    again = Otherwise(ratio, answer, context=8_000, output=500)
    async with talking(file_url, model=again) as (session, _):
        await session.send("Well?")

        assert session.ledger.scale(model.name) == pytest.approx(ratio, rel=0.2)
        assert session.window().used == pytest.approx(again.real, rel=0.15)


@asynchronous
async def test_a_model_that_was_estimated_low_is_asked_again_for_less(url):
    """Five tokens for each that is counted, and refused is what is longer: nothing is left out
    that there is room for, and nothing is said not to fit."""

    class Small(Otherwise):
        async def complete(self, messages, *args, **options):
            tokens = self.ratio * await self.count_tokens(messages, *args)
            if tokens > self.context_limit:
                said = f"{tokens} tokens exceed the limit of {self.context_limit}"
                raise ContextOverflow(said, tokens_found=tokens, tokens_max=self.context_limit)
            return await super().complete(messages, *args, **options)

    model = Small(5, *[answer] * 60, context=8_000, output=500)
    async with talking(url, model=model) as (session, _):
        await talk(session, 30)

        assert await turn_count(session) == 30
        assert session.ledger.scale(model.name) == pytest.approx(5, rel=0.15)


# Calls that leave their own turn


@pytest.mark.parametrize(
    "policy",
    [*POLICIES, BudgetPolicy(), BudgetPolicy(notify=True)],
    ids=["CacheAware", "Evict", "Truncate", "BudgetPolicy", "BudgetPolicy with a notice"],
)
@asynchronous
async def test_a_model_knows_what_it_has_called_in_a_turn_that_is_longer_than_its_window(
    url, policy
):
    """S3-29: whatever left is told, request by request, in words that stay as they are until more
    leaves: a prompt begins as the one before it did, but for the calls after a fold."""
    cat = tool_of("cat", lambda path: f"{path}: " + "word " * 1_500)
    steps = [asks(call(f"i{n}", "cat", path=f"file{n}")) for n in range(12)]
    model = small(*steps, "Compared.", context=8_000)
    settings = Settings(limits={"rounds": 30}, budget={"keep_turns": 0})
    async with talking(url, model=model, tools=[cat], policy=policy, settings=settings) as (
        session,
        _,
    ):
        await session.send("Read files 0 to 11, and compare them.")

        folds_made = 0
        for number, given in enumerate(model.given):
            told = "".join(message.text or "" for message in given if message.role == "user")
            called = "".join(each.arguments for message in given for each in message.calls)
            assert all(f'"file{n}"' in told + called for n in range(number)), number
            before = model.given[number - 1] if number else ()
            goes_on = given[: len(before)] == before
            folds_made += not goes_on
            assert goes_on or given[0] == before[0]
        assert 0 < folds_made < 9 and model.problems == []
        assert len(await messages(session)) == 26


@asynchronous
async def test_what_an_overflow_takes_from_a_turn_is_told_too(url):
    """S3-29, S2-59: the model refuses what seemed to fit."""
    cat = tool_of("cat", lambda path: f"{path}: " + "word " * 300)
    steps = [asks(call(f"i{n}", "cat", path=f"file{n}")) for n in range(6)]
    too_long = ContextOverflow("9,500 tokens exceed the limit of 2,000", tokens_max=2_000)
    model = small(*steps, too_long, "Done.", context=100_000)
    async with talking(url, model=model, tools=[cat], policy=Evict()) as (session, _):
        await session.send("Read files 0 to 5.")

        told = model.given[-1][1].text
        assert "earlier calls of this turn" in told and '"file0"' in told
        assert model.problems == []


# What is shown


@asynchronous
async def test_a_question_without_an_answer_is_not_hidden(url):
    """A model would be asked for nothing. It may be shown as something else."""
    async with talking(url, Overloaded(), "Fine.") as (session, model):
        await session.append(Message.user("Well?"))
        with pytest.raises(InvalidInput, match="has no answer yet"):
            await session.fold(0, 1)
        await session.fold(0, 1, Message.user("How are you?"))
        with pytest.raises(Overloaded):
            await session.resume()
        result = await session.resume()
        await session.fold(0, 2)

        assert (result.text, model.texts) == ("Fine.", ["How are you?"])
        assert session.window().messages == ()


@asynchronous
async def test_the_window_is_what_the_model_is_then_sent(url):
    """Message for message, with the system prompt and the tools; then comes what the user says."""
    settings = Settings(system="Be brief.")
    model = small(*[answer] * 30)
    options = {"settings": settings, "tools": [tool_of("look")], "policy": Evict()}
    async with talking(url, model=model, **options) as (session, _):
        compared = 0
        for turn in range(30):
            window = session.window()
            before = await folds(session)
            await session.send(f"Question {turn} {SAID}", on_event=None)
            if window.messages and model.given[-1][: len(window.messages)] == tuple(
                window.messages
            ):
                compared += 1
                assert len(model.given[-1]) == len(window.messages) + 1
                assert window.system == model.requests[-1].system == "Be brief."
                assert [t.name for t in window.tools] == ["look"]
                assert len(window.tokens) == len(window.messages)
            elif window.messages:
                assert len(await folds(session)) > len(before)  # it was folded in between
        assert compared > 15 and await folds(session)


@asynchronous
async def test_asking_for_the_window_changes_nothing(url):
    async with talking(url, model=small(*[answer] * 10)) as (session, _):
        await talk(session, 10)
        before = await entries(session)
        first, second = session.window(), session.window()

        assert first.digest == second.digest and first.used <= first.limit
        assert await entries(session) == before


@asynchronous
async def test_the_window_for_another_model_has_its_limit(url):
    other = small(name="acme:large", context=100_000)
    async with talking(url, model=small(*[answer] * 3), providers=[other]) as (session, _):
        await talk(session, 3)

        assert session.window().limit < CONTEXT < session.window("acme:large").limit
        assert session.window(other).limit == session.window("acme:large").limit


# Summaries


def summing(request):
    """What a model answers that is also asked for summaries."""
    last = request.messages[-1].text
    if last.startswith("Question"):
        return answer(request)
    return "They spoke of work and play."


@asynchronous
async def test_a_summary_is_written_by_the_model(url):
    """And stands in the place of what it sums up."""
    model = small(*[summing] * 60)
    async with talking(url, model=model, policy=Summarize(keep_turns=2)) as (session, _):
        await talk(session, 20)

        assert any("They spoke of work and play." in text for text in model.texts)
        made = await folds(session)
        assert any(
            "work and play" in (fold.replacement.text if fold.replacement else "") for fold in made
        )
        assert session.count == 40 and await turn_count(session) == 20
        assert all(request.tokens <= CONTEXT for request in model.requests)
        assert "They spoke" not in str(await said(session))


@asynchronous
async def test_the_summary_is_told_what_was_said(url):
    """Whoever sums up reads it; it is not asked to answer it."""
    asked = []

    def listen(request):
        if not request.messages[-1].text.startswith("Question"):
            asked.append(request)
        return summing(request)

    model = small(*[listen] * 60)
    async with talking(url, model=model, policy=Summarize(keep_turns=2)) as (session, _):
        await talk(session, 20)

        first = "".join(message.text or "" for message in asked[0].messages)
        assert "Question 000" in first and "Answer to Question 000" in first
        assert asked[0].tools == ()


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "word " * 3_000,
        asks("look"),
        ContextOverflow("too long"),
        Halt("a b", ContextOverflow(), 1),
        RuntimeError("boom"),
    ],
    ids=["empty", "longer", "calls", "refused", "broken", "not even an error of ours"],
)
@asynchronous
async def test_a_bad_summary_does_not_break_the_turn(url, bad):
    """Bad input 114: the conversation goes on and fits, with or without a summary."""

    def listen(request):
        last = request.messages[-1].text or ""
        return answer(request) if last.startswith("Question") else bad

    model = small(*[listen] * 80)
    options = {"policy": Summarize(keep_turns=2), "tools": [tool_of("look")]}
    async with talking(url, model=model, **options) as (session, _):
        await talk(session, 14)

        assert session.count == 28 and await turn_count(session) == 14
        answered = [r for r in model.requests if r.messages[-1].text.startswith("Question")]
        assert len(answered) == 14 and all(r.tokens <= CONTEXT for r in answered)


@pytest.mark.parametrize("bad", ["", " \n", RuntimeError("boom")], ids=repr)
@asynchronous
async def test_a_summary_that_says_nothing_hides_nothing(url, bad):
    """As when it cannot be written; what was paid for it has its receipt."""
    model = small(*[answer] * 4, bad, context=100_000)
    async with talking(url, model=model) as (session, _):
        await talk(session, 4)

        assert await session.compact(Summarize(keep_turns=1)) == ()
        assert len(session.window().messages) == session.count == 8
        assert len(await receipts(session)) == (5 if isinstance(bad, str) else 4)


# A request that is refused


LONG = "\n".join(f"line {n}: {SAID}" for n in range(60))  # some five thousand tokens


def overflow(found=9_000, limit=6_000):
    return ContextOverflow(
        f"{found} tokens exceed the limit of {limit}",
        "fake:model",
        400,
        tokens_found=found,
        tokens_max=limit,
    )


@pytest.mark.parametrize("refusals", [1, 2])
@asynchronous
async def test_a_request_that_is_refused_is_made_smaller(url, refusals):
    """S2-57 to 60: at most twice, each time smaller; the result itself is never taken away."""
    tools = [tool_of("read", lambda **_: LONG)]
    answers = (asks(call("r1", "read")), *[overflow()] * refusals, "I have read it.")
    async with talking(url, *answers, tools=tools) as (session, model):
        heard = []
        result = await session.send("Read!", on_event=heard.append)

        assert result.text == "I have read it." and result.outcome == "response"
        sizes = [request.tokens for request in model.requests[1:]]
        assert len(sizes) == refusals + 1 and sizes == sorted(set(sizes), reverse=True)
        assert [m.tool_call_id for m in model.given[-1] if m.role == "tool"] == ["r1"]
        assert events_of(Folded, heard) and await folds(session)
        assert (await messages(session))[2].text == LONG  # the log keeps all of it


@asynchronous
async def test_a_request_that_is_always_refused_is_given_up(url):
    """B28: after three calls: DoesNotFit names what does not; the turn can be taken up again."""
    tools = [tool_of("read", lambda **_: LONG)]
    answers = (asks(call("r1", "read")), *[overflow()] * 9)
    async with talking(url, *answers, tools=tools) as (session, model):
        with pytest.raises(DoesNotFit) as raised:
            await session.send("Read!")

        assert len(model.requests) <= 4 and raised.value.what
        sizes = [request.tokens for request in model.requests[1:]]
        assert sizes == sorted(set(sizes), reverse=True)
        assert [role for role, _ in await said(session)] == ["user", "assistant", "tool"]
        model._answers[:] = ["At last."]
        assert (await session.resume()).text == "At last."


@asynchronous
async def test_a_refusal_of_the_first_call_folds_what_came_before(url):
    """The window was thought to be larger than it is."""
    model = small(*[answer] * 10, overflow(3_000, 1_500), "Fine.", context=100_000)
    async with talking(url, model=model) as (session, _):
        await talk(session, 10)
        result = await session.send("Well?")

        assert result.text == "Fine."
        assert model.requests[-1].tokens < model.requests[-2].tokens
        assert model.texts[-1] == "Well?" and session.count == 22


@asynchronous
async def test_a_refusal_that_tells_the_limit_alone_is_enough_to_fit(url):
    """Some services do not say how long the request was: what was counted here has to do."""

    def gate(request):
        return overflow(None, 1_500) if request.tokens > 1_500 else "Fine."

    model = small(*[answer] * 30, gate, gate, context=100_000)
    async with talking(url, model=model) as (session, _):
        await talk(session, 30)
        result = await session.send("Well?")

        assert result.text == "Fine."
        assert model.requests[-2].tokens > 4_000 and model.requests[-1].tokens <= 1_500


@asynchronous
async def test_a_rate_limit_is_no_overflow(url):
    """Nothing is folded for it, whatever its words are."""
    error = RateLimited("this would exceed the limit of 30,000 input tokens per minute")
    async with talking(url, *[answer] * 3, error) as (session, _):
        await talk(session, 3)
        with pytest.raises(RateLimited):
            await session.send("Well?")

        assert await folds(session) == []


# What does not fit at all


@asynchronous
async def test_what_is_too_long_for_the_window_is_named(url):
    """B28: the user's message is kept in the draft, the log is as it was, and no money is spent."""
    model = small("Hello.", "Fine.")
    async with talking(url, model=model) as (session, _):
        await session.send("Hello?")
        before = await said(session)
        with pytest.raises(DoesNotFit) as raised:
            await session.send("Read this! " + LONG)

        assert raised.value.what and raised.value.tokens > raised.value.tokens_max
        assert raised.value.tokens_max <= CONTEXT
        assert session.draft.text == "Read this! " + LONG and not session.draft.is_running
        assert await said(session) == before and len(model.requests) <= 3
        assert (await session.send("Never mind.")).text == "Fine."


@asynchronous
async def test_what_is_too_long_here_can_be_sent_to_a_larger_model(url):
    large = small("I have read it.", name="acme:large", context=100_000)
    async with talking(url, model=small()) as (session, _):
        with pytest.raises(DoesNotFit):
            await session.send("Read this! " + LONG)
        result = await session.send("Read this! " + LONG, model=large)

        assert result.text == "I have read it." and large.problems == []


@asynchronous
async def test_a_result_that_is_too_long_is_cut_and_not_refused(url):
    """B28: the tool has run; the model is shown as much of it as fits."""
    model = small(asks(call("r1", "read")), "I have read some.")
    async with talking(url, model=model, tools=[tool_of("read", lambda **_: LONG)]) as (s, _):
        result = await s.send("Read!")

        assert result.text == "I have read some."
        assert model.requests[-1].tokens <= CONTEXT and len(model.requests) == 2
        assert (await messages(s))[2].text == LONG


@asynchronous
async def test_pictures_count(url):
    """B51: a window is not only full of words."""
    model = small(*["Nice."] * 12, context=4_000)
    async with talking(url, model=model) as (session, _):
        for _ in range(12):
            await session.send(["Look!", Image(data=PNG + bytes(3_000), media_type="image/png")])

        assert len(model.requests) == 12 and session.window().used <= session.window().limit


@asynchronous
async def test_two_sessions_fold_for_themselves(url):
    model = small(*[answer] * 24)
    async with opened(url, model=model) as (sessions, _):
        long, short = await sessions.get_or_create("a"), await sessions.get_or_create("b")
        await talk(long, 20)
        await talk(short, 2)

        assert await folds(long) and not await folds(short)
