"""Budgets: what a window may have, what is kept for an answer, and how long one result may be."""

import pytest

from holdfast.errors import InvalidInput
from holdfast.window.budget import (
    Budget,
    Room,
    answer_tokens,
    max_tokens,
    result_limit,
    result_share,
)

# ---- what is kept for an answer ----


@pytest.mark.parametrize(
    ("context", "tokens", "capped"),
    [
        (8_000, 1_374, 1_374),
        (8_192, 1_408, 1_408),
        (16_000, 2_856, 2_856),
        (16_384, 2_929, 2_929),
        (32_000, 6_144, 4_096),
        (32_768, 6_312, 4_096),
        (64_000, 14_016, 4_096),
        (65_536, 14_437, 4_096),
        (128_000, 34_944, 4_096),
        (200_000, 60_000, 4_096),
        (4_096, 689, 689),
        (1_024, 169, 169),
        (0, 0, 0),
    ],
)
def test_an_answer_gets_a_share_of_half_the_context(context, tokens, capped):
    """S3-13: a third of half the context, up to 0.6 of it when that is large; the model's longest
    answer caps it."""
    assert answer_tokens(context) == tokens
    assert answer_tokens(context, 4_096) == capped


def test_a_longest_answer_of_none_is_no_cap():
    """S3-13: 0 is a model that does not say how long its answers are."""
    assert answer_tokens(32_000, 0) == answer_tokens(32_000, None) == 6_144


@pytest.mark.parametrize(
    ("context", "share"),
    [
        (8_192, 0.357648),
        (16_384, 0.385296),
        (32_768, 0.440592),
        (65_536, 0.551184),
        (80_000, 0.60),
        (200_000, 0.60),
        (0, 0.33),
    ],
)
def test_one_result_gets_a_share_of_the_whole_context(context, share):
    """S3-14: the same formula as for answers, but of the whole context."""
    assert result_share(context) == pytest.approx(share, abs=1e-9)


# ---- how long the answer may be ----

ROOM = Room(32_000, 6_144, 25_856)


@pytest.mark.parametrize(
    ("used", "setting", "tokens"),
    [
        (0, 0, 6_144),  # the prompt leaves more than is kept for an answer
        (25_856, 0, 6_144),
        (28_000, 0, 4_000),
        (31_999, 0, 1),
        (32_000, 0, 0),
        (40_000, 0, 0),
        (28_000, -1, None),
        (28_000, 9_000, 9_000),
        (28_000, 1, 1),
    ],
)
def test_an_answer_may_have_what_the_prompt_leaves(used, setting, tokens):
    """S3-15: free is what the context has beyond the prompt, at most what is kept for an answer;
    -1 is no limit, and a number is taken as it is."""
    assert max_tokens(ROOM, used, setting) == tokens


def test_nothing_is_taken_off_twice():
    """B32: system prompt, last question and last answer are part of the prompt; an answer still has
    all that the prompt leaves free."""
    system, question, answer, new = 500, 9_000, 9_000, 9_000
    used = system + question + answer + new

    assert max_tokens(ROOM, used) == 32_000 - 27_500


@pytest.mark.parametrize("setting", [-2, -100])
def test_a_setting_below_no_limit_is_refused(setting):
    """S3-15: -1 is the only number below 0 that means something."""
    with pytest.raises(InvalidInput, match="max_tokens"):
        max_tokens(ROOM, 0, setting)


# ---- how long one result may be ----


@pytest.mark.parametrize(
    ("context", "reserved", "tokens"),
    [
        (80_000, 20_000, 36_000),
        (200_000, 0, 120_000),
        (8_192, 2_000, 2_214),  # 6192 x 0.357648
        (8_192, 8_192, 0),
        (8_192, 9_000, 0),
        (0, 0, 0),
    ],
)
def test_one_result_may_have_a_share_of_what_is_free(context, reserved, tokens):
    """S3-16: the share of the context, times what is not reserved of it."""
    assert result_limit(context, reserved) == tokens


def test_a_limit_of_the_caller_can_only_make_it_smaller():
    """S3-16: the smaller of both holds, but not for a tool that is asked to read everything."""
    assert result_limit(80_000, 20_000, 5_000) == 5_000
    assert result_limit(80_000, 20_000, 50_000) == 36_000
    assert result_limit(80_000, 20_000, 0) == 0
    assert result_limit(80_000, 20_000, 5_000, is_all=True) == 36_000


@pytest.mark.parametrize(
    "arguments", [(-1, 0), (8_192, -1), (8_192, 0, -1), (8_192.5, 0), (True, 0), (8_192, "0")]
)
def test_a_result_limit_is_of_whole_numbers(arguments):
    """S3-16: tokens are counted."""
    with pytest.raises(InvalidInput, match="whole number"):
        result_limit(*arguments)


# ---- budgets ----


def test_a_budget_has_the_designed_defaults():
    """Context and reserve are the model's own unless they are given."""
    budget = Budget()

    assert (budget.context, budget.reserve, budget.keep_turns) == (None, None, 5)
    assert (budget.start, budget.target, budget.pressure) == (0.80, 0.60, 0.90)
    assert budget.pinned == ()


@pytest.mark.parametrize(
    ("budget", "limits", "room"),
    [
        (Budget(), (32_000,), (32_000, 6_144, 25_856)),
        (Budget(), (32_000, 4_096), (32_000, 4_096, 27_904)),
        (Budget(context=32_000), (200_000, 64_000), (32_000, 6_144, 25_856)),
        (Budget(context=500_000), (32_000,), (32_000, 6_144, 25_856)),
        (Budget(reserve=1_000), (32_000, 4_096), (32_000, 1_000, 31_000)),
        (Budget(reserve=9_000), (32_000, 4_096), (32_000, 4_096, 27_904)),
        (Budget(reserve=0), (32_000, 4_096), (32_000, 0, 32_000)),
        (Budget(reserve=40_000), (32_000,), (32_000, 40_000, 0)),
    ],
)
def test_a_room_is_within_the_budget_and_the_model(budget, limits, room):
    """The smaller of both holds, for the context and for the answer."""
    assert budget.room(*limits) == Room(*room)


def test_a_model_that_limits_its_prompts_leaves_no_more_room():
    """A prompt has what the answer leaves, at most what the model takes."""
    assert Budget().room(400_000, 128_000, prompt=272_000).prompt == 272_000
    assert Budget().room(400_000, 128_000, prompt=300_000).prompt == 400_000 - 120_000
    assert Budget(context=32_000).room(400_000, 128_000, prompt=272_000).prompt == 25_856


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"context": 0}, "context"),
        ({"context": -1}, "context"),
        ({"context": 1.5}, "context"),
        ({"context": True}, "context"),
        ({"context": "32000"}, "context"),
        ({"reserve": -1}, "reserve"),
        ({"reserve": "many"}, "reserve"),
        ({"context": 1_000, "reserve": 1_000}, "reserve"),
        ({"context": 1_000, "reserve": 2_000}, "reserve"),
        ({"start": 1.1}, "start"),
        ({"start": -0.1}, "start"),
        ({"start": None}, "start"),
        ({"start": float("nan")}, "start"),
        ({"target": 1.5}, "target"),
        ({"target": "half"}, "target"),
        ({"target": 0.9}, "target"),  # above start
        ({"pressure": 2}, "pressure"),
        ({"pressure": float("inf")}, "pressure"),
        ({"keep_turns": -1}, "keep_turns"),
        ({"keep_turns": 2.0}, "keep_turns"),
        ({"keep_turns": None}, "keep_turns"),
        ({"pinned": 1}, "pinned"),
        ({"pinned": (0,)}, "pinned"),
        ({"pinned": (-3,)}, "pinned"),
        ({"pinned": (True,)}, "pinned"),
        ({"pinned": ("1",)}, "pinned"),
        ({"pinned": (1.0,)}, "pinned"),
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(fields, named):
    """The error names the field, whoever builds it."""
    with pytest.raises(InvalidInput, match=named):
        Budget(**fields)
    with pytest.raises(InvalidInput, match=named):
        Budget.of(fields)


def test_a_budget_is_read_from_json():
    """Settings hold it as a JSON object, with a list for a tuple and whole numbers for shares."""
    budget = Budget.of({"context": 32_000, "start": 1, "pinned": [1, 4]})

    assert budget == Budget(context=32_000, start=1.0, pinned=(1, 4))
    assert Budget.of({}) == Budget()


@pytest.mark.parametrize("values", [None, [], "context", 7])
def test_only_an_object_is_a_budget(values):
    """Anything else is refused before a field is looked for."""
    with pytest.raises(InvalidInput, match="budget"):
        Budget.of(values)


@pytest.mark.parametrize("name", ["contxt", "room", "__class__", 7])
def test_a_misspelt_field_of_a_budget_is_refused(name):
    """The error lists the fields that there are."""
    with pytest.raises(InvalidInput, match=r"is not known.*keep_turns"):
        Budget.of({name: 1})
