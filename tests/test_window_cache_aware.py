"""CacheAware: when, what and how deep it folds, and what it says about it."""

from math import sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.messages import Message, ToolCall
from holdfast.usage import Prices
from holdfast.window.budget import Budget
from holdfast.window.cache_aware import CacheAware, Rates, growth, rates_of
from holdfast.window.plan import apply
from holdfast.window.situation import Situation
from holdfast.window.view import View

ANTHROPIC = Prices(input="3", output="15", cache_read="0.30", cache_write="3.75")
UNCACHED = Prices(input="3", output="15")


def count(message):
    """A token a character, and one for each message and call."""
    calls = sum(1 + len(call.arguments) for call in message.tool_calls)
    return 1 + len(message.text or "") + calls


def turn(number, size, result=0):
    """A user's message and an answer of `size` tokens in all; with a tool result if asked for."""
    said = [Message.user(f"q{number:03}" + "u" * (size // 2 - 5))]
    if result:
        call = ToolCall(id=f"c{number}", name="look", arguments="{}")
        said += [
            Message.assistant(tool_calls=[call]),
            Message.tool("r" * (result - 1), tool_call_id=call.id, name="look"),
        ]
    return [*said, Message.assistant(f"a{number:03}" + "a" * (size // 2 - 5))]


def view_of(messages):
    view = View(count)
    for seq, message in enumerate(messages, start=1):
        view.add(seq, message)
    return view


def talk(turns, size=100, result=0):
    """So many turns, and the question of one more."""
    said = [message for number in range(1, turns + 1) for message in turn(number, size, result)]
    return view_of([*said, Message.user("now what?")])


def situation(view, limit, **fields):
    return Situation(limit=limit, used=view.total, **fields)


def fold(view, plan, summaries=()):
    return view.with_folds(apply(plan, summaries))


def words(view):
    return [message.text for message in view.rendered().messages]


# When


def test_what_fits_is_left_alone():
    """Up to the last token: every fold makes the prompt new."""
    view = talk(9)

    plan = CacheAware().plan(view, situation(view, view.total))

    assert not plan and plan.tokens_after == plan.tokens_before == view.total
    assert plan.reason == "910 of 910 tokens (100%): nothing has to be folded"


def test_it_folds_when_the_window_is_full():
    view = talk(9)

    plan = CacheAware().plan(view, situation(view, view.total - 1))

    assert plan.by == "cache-aware" and plan.freed > 0
    assert fold(view, plan).total == plan.tokens_after < view.total


def test_what_may_be_too_much_counts_as_full():
    """An estimate has a margin: the request fits for certain, or it is made smaller."""
    view = talk(9)

    assert CacheAware().plan(view, situation(view, view.total + 9, margin=10))
    assert not CacheAware().plan(view, situation(view, view.total + 10, margin=10))


def test_a_cache_that_went_cold_makes_folding_free():
    """All of it has to be written anyway: so it folds a little before it would have to."""
    view = talk(95)
    warm = situation(view, view.total * 100 // 99, prices=ANTHROPIC, cache_ttl_s=300, pause_s=299)

    assert not CacheAware().plan(view, warm)
    plan = CacheAware().plan(view, warm.replace(pause_s=301))

    assert plan and "the cache has gone cold, so folding costs nothing" in plan.reason
    assert plan.numbers["cost"] == 0 < plan.numbers["rewritten"]
    assert "costs as much more as 0 tokens" in plan.reason


def test_a_cold_cache_is_no_reason_to_forget_early():
    """Below the start of the budget, or when what is folded would be missed for a long time."""
    view = talk(95)
    cold = {"prices": ANTHROPIC, "cache_ttl_s": 300, "pause_s": 1e6}

    assert not CacheAware().plan(view, situation(view, view.total * 100 // 79, **cold))
    assert CacheAware().plan(view, situation(view, view.total * 100 // 96, **cold))
    assert not CacheAware(worth=9.0).plan(view, situation(view, view.total * 100 // 96, **cold))


@pytest.mark.parametrize("unknown", [{"pause_s": 1e9}, {"cache_ttl_s": 1}], ids=str)
def test_without_a_pause_or_a_time_to_live_the_cache_counts_as_warm(unknown):
    view = talk(95)

    assert not CacheAware().plan(view, situation(view, view.total + 1, **unknown))


def test_it_folds_when_it_is_asked_to():
    view = talk(20)

    plan = CacheAware().plan(view, situation(view, 10_000, trigger="manual"))

    assert not plan, "what is below the goal stays"
    assert CacheAware().plan(view, situation(view, view.total + 1, trigger="manual"))


# How deep


def goal(view, limit, policy=None, **fields):
    plan = (policy or CacheAware()).plan(view, situation(view, limit, **fields))
    return plan.numbers["goal"]


def test_the_depth_is_the_square_root_of_price_times_growth():
    """sqrt(2 * (write - read) * window * growth / worth), here with numbers one can follow."""
    view = talk(100)  # 101 tokens for each call, but for the last question
    limit = view.total - 1
    step = sqrt(2 * (1.25 - 0.10) * limit * growth(view.items) / 0.20)

    found = goal(view, limit, prices=ANTHROPIC, budget=Budget(target=0.8))

    assert found == int(limit - step)
    assert 0.3 * limit < found < 0.8 * limit


def test_dearer_writes_make_deeper_folds_and_dearer_gaps_shallower_ones():
    view = talk(100)
    limit, free = view.total - 1, Budget(start=1.0, target=1.0)
    cheap = Prices(input="3", output="15", cache_read="1.50", cache_write="3")

    usual = goal(view, limit, prices=ANTHROPIC, budget=free)

    assert goal(view, limit, prices=cheap, budget=free) > usual
    assert goal(view, limit, CacheAware(worth=0.4), prices=ANTHROPIC, budget=free) > usual
    assert goal(view, limit, CacheAware(worth=0.1), prices=ANTHROPIC, budget=free) < usual


def test_a_quickly_growing_window_is_folded_deeper():
    free = Budget(start=1.0, target=1.0)
    slow, quick = talk(100, size=40), talk(20, size=200)

    shares = [goal(v, v.total - 1, budget=free) / v.total for v in (slow, quick)]

    assert shares[1] < shares[0]


def test_where_nothing_is_cached_it_goes_to_the_target():
    """Writing costs as much as reading, and a deeper fold would save nothing."""
    view = talk(100)
    limit = view.total - 1

    assert goal(view, limit, prices=UNCACHED) == int(0.6 * limit)


def test_it_goes_no_deeper_than_it_may():
    view = talk(3, size=400)
    limit = view.total - 1

    assert goal(view, limit) == int(0.3 * limit)
    assert goal(view, limit, CacheAware(deepest=0.5)) == int(0.5 * limit)
    assert goal(view, limit, CacheAware(deepest=0.9)) == int(0.6 * limit), "the target wins"


def test_it_folds_no_turn_more_than_it_has_to():
    """With the newest of the folded turns put back, the window is above the goal."""
    view = talk(100)

    plan = CacheAware().plan(view, situation(view, view.total - 1))

    assert plan.tokens_after <= plan.numbers["goal"] < plan.tokens_after + 101


def test_prices_that_are_not_known_are_taken_as_usual():
    """A model at home costs nothing, but it has to read what is new all the same."""
    free = Prices(input="0", output="0")

    assert rates_of(None) == rates_of(free) == Rates(0.10, 1.25)
    assert rates_of(ANTHROPIC) == Rates(0.10, 1.25)
    assert rates_of(UNCACHED) == Rates(1.0, 1.0)


# What


def test_the_oldest_turns_go_and_a_note_says_so():
    """The first request stays, and so do the latest turns."""
    view = talk(100)

    after = fold(view, CacheAware().plan(view, situation(view, view.total - 1)))

    said = words(after)
    gone = 100 - sum(text.startswith("q") for text in said) + 1
    assert said[0].startswith("q001")
    assert said[1] == f"[{gone} earlier turns not shown here.]"
    assert said[-2].startswith("a100") and said[-1] == "now what?"
    assert said[2][:4] == f"q{gone + 1:03}"


def test_a_second_fold_takes_the_place_of_the_first():
    """However long a conversation goes on, what is in force stays short."""
    view = talk(30)
    policy = CacheAware()
    seq = len(view) + 1

    folds = 0
    for number in range(31, 300):
        for message in turn(number, 100):
            view.add(seq := seq + 1, message)
        if plan := policy.plan(view, situation(view, 3_000)):
            folds += 1
            for each in apply(plan):
                view.add(seq := seq + 1, each)
            assert view.total == plan.tokens_after

    assert folds > 5
    assert len(view.folds) == 1
    assert words(view)[1].startswith("[2") and words(view)[0].startswith("q001")


def test_pinned_turns_and_what_the_system_says_stay():
    said = [message for number in range(1, 31) for message in turn(number, 100)]
    said.insert(8, Message.system("never forget this"))
    view = view_of([*said, Message.user("now what?")])

    plan = CacheAware().plan(view, situation(view, 1_500, budget=Budget(pinned=(3, 12))))
    after = words(fold(view, plan))

    for kept in ("q001", "q003", "a003", "q012", "a012", "q030"):
        assert any(text.startswith(kept) for text in after), kept
    assert "never forget this" in after
    assert not any(text.startswith(("a001", "q002", "q011", "q013")) for text in after)


def test_the_latest_turns_are_kept_whole():
    """Also when the goal is not reached by the others."""
    view = talk(30)
    budget = Budget(keep_turns=12)

    plan = CacheAware().plan(view, situation(view, view.total - 1, budget=budget))
    after = words(fold(view, plan))

    assert plan.tokens_after > plan.numbers["goal"]
    assert [text[:4] for text in after if text[0] == "q"] == [
        "q001",
        *(f"q{n:03}" for n in range(20, 31)),
    ]


def test_the_latest_turns_give_way_when_they_are_more_than_half_of_the_window():
    """But never the turn that is running."""
    view = talk(4, size=1_000)

    plan = CacheAware().plan(view, situation(view, view.total - 1))
    after = words(fold(view, plan))

    assert after[-1] == "now what?"
    assert plan.tokens_after <= plan.numbers["goal"]


def test_nothing_that_can_be_folded_is_a_plan_without_steps():
    view = view_of([Message.user("u" * 1_000)])

    plan = CacheAware().plan(view, situation(view, 500))

    assert not plan
    assert plan.reason == "the window is full, but nothing more can be folded"


def test_results_that_were_long_answered_are_shortened_with_a_fold():
    """They have to be written anew anyway; those of the latest turns stay whole."""
    view = talk(40, result=900)

    plan = CacheAware().plan(view, situation(view, view.total - 1))
    after = fold(view, plan)

    results = [m for m in after.rendered().messages if m.tool_call_id]
    assert [count(m) > 500 for m in results[-4:]] == [True] * 4
    assert sum(count(m) <= 200 for m in results[:-4]) >= len(results) // 2
    assert after.total == plan.tokens_after


def test_results_near_the_end_are_shortened_alone_when_that_is_cheaper():
    """Little stands behind them: the rest of the prompt stays as it is cached."""
    early = [message for number in range(1, 61) for message in turn(number, 100)]
    late = [message for number in range(61, 71) for message in turn(number, 20, result=400)]
    view = view_of([*early, *late, Message.user("now what?")])
    budget = Budget(keep_turns=1)

    plan = CacheAware().plan(view, situation(view, view.total - 1, budget=budget))
    after = fold(view, plan)

    assert {step.kind for step in plan.steps} == {"shorten"}
    assert words(after)[:120] == words(view)[:120]
    assert plan.freed >= 0.1 * view.total


def test_folded_turns_can_be_summed_up():
    view = talk(60)
    policy = CacheAware(is_summing_up=True)

    plan = policy.plan(view, situation(view, view.total - 1))
    (step,) = plan.to_summarize
    after = fold(view, plan, ["They talked."])

    assert step.messages[0].text.startswith("a001")
    assert step.tokens_after < step.tokens_before / 3
    assert "They talked." in words(after)[1]
    assert after.total < plan.tokens_after


# All of it


def test_the_reason_says_what_was_done_in_words_and_numbers():
    view = talk(100)

    plan = CacheAware().plan(view, situation(view, view.total - 1, prices=ANTHROPIC))

    assert plan.reason.startswith(f"the window is full: {view.total:,} of {view.total - 1:,} tok")
    assert f"{plan.tokens_after:,} are left" in plan.reason
    for name in ("rewritten", "cost", "calls"):
        assert f"{plan.numbers[name]:,}" in plan.reason
    assert plan.numbers["cost"] == round(1.15 * plan.numbers["rewritten"])


turns = st.lists(
    st.tuples(st.integers(20, 300), st.sampled_from([0, 0, 30, 400, 2_000])),
    min_size=1,
    max_size=60,
)


@given(turns, st.integers(200, 6_000), st.integers(0, 6), st.booleans())
@settings(max_examples=200, deadline=None)
def test_between_folds_the_prompt_only_grows_at_its_end(shape, limit, keep, is_cold):
    """And the same view and situation give the same plan, which says what it will have."""
    view, seq, shown = View(count), 0, ()
    policy, budget = CacheAware(), Budget(keep_turns=keep)
    pause = 301.0 if is_cold else 0.0
    for number, (size, result) in enumerate(shape, start=1):
        for message in turn(number, size, result):
            if message.role == "assistant":
                asked = situation(view, limit, budget=budget, cache_ttl_s=300, pause_s=pause)
                plan = policy.plan(view, asked)
                assert plan == policy.plan(view, asked)
                for each in apply(plan):
                    view.add(seq := seq + 1, each)
                messages = view.rendered().messages
                assert view.total == plan.tokens_after <= plan.tokens_before
                assert plan or messages[: len(shown)] == shown
                shown = messages
            view.add(seq := seq + 1, message)


@pytest.mark.parametrize(
    "bad",
    [{"worth": 0}, {"worth": -1}, {"deepest": 1.1}, {"result_tokens": -1}, {"is_summing_up": 1}],
    ids=str,
)
def test_what_makes_no_sense_is_refused(bad):
    with pytest.raises(InvalidInput, match=next(iter(bad))):
        CacheAware(**bad)
