"""When a call is tried again: with a clock that only the tests move, and no waiting."""

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cancel import CancelToken
from holdfast.errors import (
    AuthError,
    Cancelled,
    ConnectionFailed,
    ContentBlocked,
    ContextOverflow,
    InvalidRequest,
    OutputLimit,
    Overloaded,
    ProtocolError,
    RateLimited,
)
from holdfast.providers.retries import TOTAL_S_MAX, TRIES_MAX, Retries, retried

NEVER_S = 30.0


class Clock:
    """Seconds that pass when somebody sleeps."""

    def __init__(self):
        self.now_s = 1000.0
        self.slept = []

    def __call__(self):
        return self.now_s

    async def sleep(self, seconds):
        self.slept.append(seconds)
        self.now_s += seconds


class Service:
    """Answers with what it is told, in turn; an error is raised."""

    def __init__(self, *answers, clock=None, takes_s=0.0):
        self.answers = list(answers)
        self.calls = 0
        self.clock = clock
        self.takes_s = takes_s

    async def __call__(self):
        answer = self.answers[min(self.calls, len(self.answers) - 1)]
        self.calls += 1
        if self.clock:
            self.clock.now_s += self.takes_s
        if isinstance(answer, BaseException):
            raise answer
        return answer


@pytest.fixture
def clock():
    return Clock()


def longest(clock, **options):
    """A policy that always draws the end of its range."""
    return Retries(clock=clock, draw=lambda: 1.0, **options)


def run(service, clock, **options):
    options.setdefault("retries", longest(clock))
    return asyncio.run(retried(service, sleep=clock.sleep, **options))


# The policy


@pytest.mark.parametrize("kind", [RateLimited, Overloaded, ConnectionFailed])
def test_what_time_can_mend_is_tried_again(kind, clock):
    assert longest(clock).wait_s(kind("x")) == 1.0


@pytest.mark.parametrize(
    "error",
    [
        *(kind("x") for kind in (AuthError, ContextOverflow, OutputLimit, InvalidRequest)),
        *(kind("x") for kind in (ContentBlocked, ProtocolError)),
        *(ValueError("x"), TimeoutError(), Cancelled(), asyncio.CancelledError()),
    ],
    ids=lambda error: type(error).__name__,
)
def test_nothing_else_is(error, clock):
    """Typed errors only: what we cannot name, we cannot know to be harmless to repeat."""
    assert longest(clock).wait_s(error) is None


def test_the_bound_doubles_and_the_fifth_failure_is_the_last(clock):
    """S2-62."""
    retries = longest(clock)

    waits = [retries.wait_s(Overloaded()) for _ in range(TRIES_MAX + 1)]

    assert waits == [1.0, 2.0, 4.0, 8.0, None, None]


def test_what_was_amended_is_tried_at_once_whatever_the_error_was(clock):
    """Within the same limits: so many tries, so many seconds, and no output shown."""
    retries = longest(clock)
    waits = [retries.wait_s(AuthError("x"), is_amended=True) for _ in range(TRIES_MAX + 1)]
    late = longest(clock)
    clock.now_s += 61

    assert waits == [0.0, 0.0, 0.0, 0.0, None, None]
    assert late.wait_s(RateLimited(), is_amended=True) is None
    assert longest(clock).wait_s(RateLimited(), is_amended=True, has_output=True) is None


def test_the_bound_ends_somewhere(clock):
    """S2-62."""
    retries = longest(clock, tries_max=3_000, total_s_max=1e9)

    waits = [retries.wait_s(Overloaded()) for _ in range(2_000)]

    assert max(waits) == 30.0


def test_a_wait_may_be_anything_from_zero_up_to_its_bound(clock):
    """Full jitter: clients that failed together do not come back together."""
    draw = random.Random(7).random
    waits = []
    for _ in range(400):
        retries = Retries(clock=clock, draw=draw)
        waits.append([retries.wait_s(Overloaded()) for _ in range(4)])

    for bound_s, drawn in zip((1.0, 2.0, 4.0, 8.0), zip(*waits, strict=True), strict=True):
        assert 0 <= min(drawn) < bound_s * 0.02
        assert bound_s * 0.98 < max(drawn) <= bound_s
        assert bound_s * 0.4 < sum(drawn) / len(drawn) < bound_s * 0.6


def test_the_service_is_not_asked_sooner_than_it_wishes(clock):
    """S2-62."""
    retries = Retries(clock=clock, draw=lambda: 0.0)

    assert retries.wait_s(RateLimited(retry_after_s=7.5)) == 7.5
    assert retries.wait_s(Overloaded(retry_after_s=0.5)) == 0.5
    assert retries.wait_s(Overloaded(retry_after_s=0.0)) == 0.0


def test_a_drawn_wait_that_is_longer_than_the_wish_stays(clock):
    assert longest(clock).wait_s(RateLimited(retry_after_s=0.25)) == 1.0


@pytest.mark.parametrize("asked_s", [60.5, 581_981.3, float("inf"), float("nan")])
def test_a_wish_for_more_than_is_left_ends_it_at_once(asked_s, clock):
    """There is nothing to wait for: the error goes up while its time is still worth telling."""
    assert longest(clock).wait_s(RateLimited(retry_after_s=asked_s)) is None


def test_what_is_left_shrinks_with_the_clock(clock):
    retries = longest(clock)
    clock.now_s += 40.0

    assert retries.wait_s(RateLimited(retry_after_s=20.0)) == 20.0
    clock.now_s += 0.1
    assert retries.wait_s(RateLimited(retry_after_s=20.0)) is None


def test_a_drawn_wait_never_reaches_beyond_what_is_left(clock):
    retries = longest(clock)
    clock.now_s += TOTAL_S_MAX - 0.25

    assert retries.wait_s(Overloaded()) == 0.25
    clock.now_s += 0.25
    assert retries.wait_s(Overloaded()) is None


def test_a_negative_wish_is_none(clock):
    assert Retries(clock=clock, draw=lambda: 0.5).wait_s(Overloaded(retry_after_s=-3)) == 0.5


def test_never_after_output_was_shown(clock):
    """The reader would see two beginnings."""
    assert longest(clock).wait_s(Overloaded(), has_output=True) is None


@given(
    st.lists(
        st.tuples(
            st.sampled_from([RateLimited, Overloaded, ConnectionFailed]),
            st.none() | st.floats(),
            st.floats(0, 30),
        ),
        max_size=12,
    ),
    st.floats(0, 1),
)
def test_whatever_happens_there_are_five_tries_that_begin_within_a_minute(failures, drawn):
    clock = Clock()
    retries = Retries(clock=clock, draw=lambda: drawn)
    tries = 1
    for kind, asked_s, takes_s in failures:
        clock.now_s += takes_s
        wait_s = retries.wait_s(kind("x", retry_after_s=asked_s))
        if wait_s is None:
            break
        assert wait_s >= 0
        clock.now_s += wait_s
        tries += 1

        assert clock.now_s - 1000.0 <= TOTAL_S_MAX + 1e-6
        assert tries <= TRIES_MAX


# Carrying it out


def test_the_answer_of_the_first_try_that_succeeds(clock):
    service = Service(Overloaded(), RateLimited(retry_after_s=3.0), "hello")
    heard = []

    answer = run(service, clock, on_retry=lambda *facts: heard.append(facts))

    assert answer == "hello"
    assert clock.slept == [1.0, 3.0]
    assert [(type(error), failed, wait_s) for error, failed, wait_s in heard] == [
        (Overloaded, 1, 1.0),
        (RateLimited, 2, 3.0),
    ]


def test_after_five_tries_the_last_error_is_raised_unchanged(clock):
    last = Overloaded("the fifth")
    service = Service(*(Overloaded(str(number)) for number in range(4)), last)

    with pytest.raises(Overloaded) as raised:
        run(service, clock)

    assert raised.value is last
    assert service.calls == 5
    assert clock.slept == [1.0, 2.0, 4.0, 8.0]


def test_slow_failures_use_up_the_minute(clock):
    service = Service(ConnectionFailed(), clock=clock, takes_s=29.0)

    with pytest.raises(ConnectionFailed):
        run(service, clock)

    assert service.calls == 3
    assert clock.slept == [1.0, 1.0]


def test_a_long_wish_is_not_waited_for(clock):
    service = Service(RateLimited(retry_after_s=581_981.3))

    with pytest.raises(RateLimited):
        run(service, clock)

    assert (service.calls, clock.slept) == (1, [])


@pytest.mark.parametrize("error", [InvalidRequest(), ContextOverflow(), KeyError("x")])
def test_other_errors_go_up_at_once(error, clock):
    service = Service(error, "hello")

    with pytest.raises(type(error)):
        run(service, clock)

    assert (service.calls, clock.slept) == (1, [])


def test_no_second_try_once_something_was_shown(clock):
    shown = []

    async def call():
        shown.append("Once upon")
        raise Overloaded

    with pytest.raises(Overloaded):
        run(call, clock, has_output=lambda: bool(shown))

    assert shown == ["Once upon"]


def test_a_cancelled_token_lets_no_try_begin(clock):
    token = CancelToken()
    token.cancel("stop")
    service = Service("hello")

    with pytest.raises(Cancelled):
        run(service, clock, cancel_token=token)

    assert service.calls == 0


def test_a_cancel_ends_the_wait():
    """With a real sleep of half a minute, and a cancel as soon as it has begun."""
    token = CancelToken()
    service = Service(RateLimited(retry_after_s=NEVER_S), "hello")

    def on_retry(*facts):
        asyncio.get_running_loop().call_later(0.01, token.cancel, "the user pressed stop")

    async def main():
        call = retried(service, cancel_token=token, on_retry=on_retry)
        return await asyncio.wait_for(call, NEVER_S / 2)

    with pytest.raises(Cancelled) as raised:
        asyncio.run(main())

    assert raised.value.reason == "the user pressed stop"
    assert service.calls == 1


def test_cancelling_the_task_ends_the_wait():
    service = Service(Overloaded(retry_after_s=NEVER_S), "hello")

    async def main():
        waiting = asyncio.Event()
        task = asyncio.create_task(retried(service, on_retry=lambda *facts: waiting.set()))
        await waiting.wait()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return service.calls

    assert asyncio.run(main()) == 1


def test_without_a_sleep_of_its_own_it_really_waits():
    service = Service(Overloaded(retry_after_s=0.01), "hello")

    assert asyncio.run(retried(service, retries=Retries(draw=lambda: 0.0))) == "hello"
