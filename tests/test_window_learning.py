"""What a model's answers teach: two ratios, each answer for as much as it is worth."""

import pytest

from holdfast.errors import InvalidInput
from holdfast.window.learning import Learned


def after(*answers, error=0.1):
    """A ratio that was taught by these: text, tools, tokens, and perhaps doubt."""
    learned = Learned(error)
    for answer in answers:
        learned.take(*answer)
    return learned


def test_at_first_a_token_is_a_token():
    """Nothing is known yet."""
    learned = Learned()

    assert (learned.text, learned.tools, learned.answers) == (1.0, 1.0, 0)
    assert learned.tokens(100, 20) == 120


def test_a_long_request_teaches_more_than_a_short_one():
    """B51: what is around the messages blurs what is short."""
    assert 1.0 < after((100, 0, 120)).text < after((10_000, 0, 12_000)).text < 1.2


def test_what_a_counter_says_of_itself_is_believed_at_first():
    """One that may be far off is corrected faster."""
    exact, rough = after((5_000, 0, 7_000), error=0.0), after((5_000, 0, 7_000), error=0.75)

    assert exact.text < 1.1 < 1.3 < rough.text < 1.4


def test_what_was_taken_out_teaches_too():
    """After a fold fewer tokens are reported, by the same ratio."""
    assert after((-5_000, 0, -6_000)).text == after((5_000, 0, 6_000)).text > 1.05


def test_a_doubtful_report_teaches_less():
    """Part of it may be something else."""
    assert 1.0 < after((5_000, 0, 6_000, 3_000)).text < after((5_000, 0, 6_000)).text


def test_one_answer_alone_is_never_believed_in_full():
    """At most two standard deviations: 0.1 for a counter that calls itself exact."""
    assert after((5_000, 0, 9_000), error=0.0).text < 1.1


def test_a_few_tokens_too_many_are_no_surprise():
    """Twenty counted and ninety reported is a frame, and no reason to refuse the report."""
    assert after((20, 0, 90)).text > 1.0


def test_three_surprises_have_to_come_in_a_row():
    """One that is as expected makes the next surprise the first again."""
    surprise, usual = (1_000, 0, 5_000), (1_000, 0, 1_000)

    assert after(surprise, surprise, usual, surprise).text == pytest.approx(1.0)
    assert after(surprise, surprise, surprise).text > 1.02


def test_a_few_words_between_surprises_tell_neither_way():
    """A short answer after each long result: the frame is most of it, and tells no ratio."""
    learned = after(*[(4_000, 0, 1_600), (8, 0, 37)] * 6)
    still = after(*[(8, 0, 37)] * 40)

    assert learned.text < 0.6
    assert still.text < 2


def test_texts_alone_tell_texts_from_tools():
    """Together they were as expected; if texts have more, the tools must have had less."""
    both = after((1_000, 1_000, 2_000))
    both.take(2_000, 0, 2_400)

    assert both.text > 1.02
    assert both.tools < 0.98


def test_what_was_learned_long_ago_can_still_change():
    """After any number of answers a few others count for something."""
    learned = after(*[(1_000, 0, 1_000)] * 500)
    for _ in range(10):
        learned.take(1_000, 0, 1_150)

    assert learned.text > 1.05


def test_an_error_before_the_first_answer_is_none():
    """Nothing was learned that could have been wrong."""
    learned = Learned()
    for _ in range(30):
        learned.judge(1_000, 1_000, 2_000)

    assert learned.error(0.2) == 0.2


def test_errors_of_short_texts_are_not_told():
    """They would say more about frames."""
    learned = after((1_000, 0, 1_000))
    for _ in range(30):
        learned.judge(150, 199, 300)

    assert learned.error(0.2) == 0.2


def test_old_errors_are_forgotten():
    """What counts is how good the estimates are now."""
    learned = after((1_000, 0, 1_000))
    for error in (0.5, 0.02):
        for _ in range(60):
            learned.judge(1_000 + 1_000 * error, 1_000, 1_000)

    assert learned.error(0.2) == pytest.approx(0.02)


def test_few_errors_are_filled_up_with_what_the_counter_states():
    """One bad estimate of three is not yet a third of all; two are believed."""
    learned = after((1_000, 0, 1_000))
    learned.judge(1_500, 1_000, 1_000)
    once = learned.error(0.2)
    learned.judge(1_400, 1_000, 1_000)

    assert once == 0.2
    assert learned.error(0.2) == pytest.approx(0.4)
    assert Learned().error(0.0) == 0.05  # no counter is as good as that


def test_what_was_learned_goes_through_json():
    """Everything that the next answer depends on."""
    learned = after((1_000, 300, 1_500), (-200, 0, -300), (10, 0, 5_000))
    learned.judge(1_000, 1_000, 1_100)
    again = Learned.of(learned.values)
    for each in (learned, again):
        each.take(2_000, 0, 2_900)

    assert again.values == learned.values


@pytest.mark.parametrize("name", ["text", "tools", "answers", "refused", "doubts", "ratios"])
def test_nothing_may_be_missing(name):
    """A part would be filled up with what was never learned."""
    values = Learned().values
    del values[name]

    with pytest.raises(InvalidInput, match="learned"):
        Learned.of(values)


def test_a_ratio_that_was_stored_stays_within_reason():
    """Whoever wrote it."""
    learned = Learned.of({**Learned().values, "text": 1e9, "tools": -5})

    assert (learned.text, learned.tools) == (5.0, 0.2)
