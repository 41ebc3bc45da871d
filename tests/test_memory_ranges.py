"""When messages are due to be summarised, and which: the golden table."""

import pytest

from holdfast.consolidation.ranges import Range, is_due, range_of, usable

GOLDEN = [
    # messages, counter, window: what is summarised, and where the counter is then
    ((25, 0, 50), None),
    ((26, 0, 50), (0, 0, 1)),
    ((51, 0, 50), (0, 25, 26)),
    ((60, 0, 50), (0, 34, 35)),
    ((60, 35, 50), None),
    ((85, 35, 50), (35, 59, 60)),
    ((100, 0, 100), (0, 49, 50)),
]


@pytest.mark.parametrize(("given", "wanted"), GOLDEN, ids=str)
def test_the_golden_table_of_ranges(given, wanted):
    """S4-43, S4-38: all but the last half window, from the counter on; it is there afterwards."""
    found = range_of(*given)

    assert found == (None if wanted is None else Range(wanted[0], wanted[1] + 1))
    assert found is None or found.stop == wanted[2]


@pytest.mark.parametrize(
    ("count", "counter", "wanted"),
    [
        (49, 0, False),
        (50, 0, True),
        (51, 0, True),
        (60, 35, False),
        (84, 35, False),
        (85, 35, True),
    ],
)
def test_a_window_of_new_messages_is_due_and_not_one_less(count, counter, wanted):
    """S4-42: what was summarised before does not count, so it is not due again at every message."""
    assert is_due(count, counter, 50) is wanted


@pytest.mark.parametrize("count", [1, 2, 3, 10])
def test_a_window_of_one_keeps_nothing_back(count):
    """B8: half of it is 0 messages, and that is not the same as none of the list."""
    assert range_of(count, 0, 1) == Range(0, count)
    assert range_of(count, count, 1) is None


@pytest.mark.parametrize("counter", [-1, -40, 61, 10**9, None, True, "12", 3.0])
def test_a_counter_that_cannot_be_one_takes_everything(counter):
    """B8, S4-22: below zero it would mean the end of the list, beyond it nothing at all."""
    assert usable(counter, 60) == 0
    assert range_of(60, counter, 50) == Range(0, 35)
    assert is_due(60, counter, 50)


@pytest.mark.parametrize(("count", "counter", "stop"), [(60, 35, 60), (1, 0, 1), (26, 0, 26)])
def test_an_archive_takes_every_message_that_is_new(count, counter, stop):
    """S4-44: nothing is kept back."""
    assert range_of(count, counter, 50, is_all=True) == Range(counter, stop)
    assert range_of(count, count, 50, is_all=True) is None
