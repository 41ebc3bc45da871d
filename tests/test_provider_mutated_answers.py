"""Whatever a service sends, the reader raises a ProviderError or gives an answer.

And whichever it is, what had come can be sent again, to every vendor.
"""

import os
from random import Random

import pytest

from mutated_answers import ANSWERS, check, mutated, streamed

pytestmark = pytest.mark.usefixtures("uncovered")

COUNT = int(os.environ.get("HOLDFAST_MUTANTS") or 1_500)


@pytest.mark.parametrize("api", ANSWERS)
def test_the_good_answer_is_read(api):
    response = check(api, streamed(api, ANSWERS[api]))

    assert (response.text, response.thinking, len(response.calls)) == ("Turin", "hm", 1)
    assert (response.stop, response.usage.input, response.usage.output) == ("tool_use", 5, 9)


@pytest.mark.parametrize("api", ANSWERS)
def test_a_wrong_answer_is_an_error_or_an_answer_and_can_be_sent_on(api):
    for seed in range(COUNT):
        try:
            check(api, streamed(api, mutated(Random(seed), ANSWERS[api])))
        except Exception as error:
            raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error
