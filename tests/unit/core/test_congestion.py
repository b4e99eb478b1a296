"""Is there overload, and how long may a request wait because of it?"""

from __future__ import annotations

import pytest

from gunicorn_admission.core.congestion import Congestion
from gunicorn_admission.core.policy import Policy
from gunicorn_admission.core.standing import SLICE_NS
from gunicorn_admission.core.types import Priority
from tests.driving import DEFAULT, HIGH, LOW, MS, S

START = 9 * S + 1


class Times:
    """Rolls a congestion slice by slice."""

    def __init__(self, **policy: int | None) -> None:
        settings = {"max_limit": 8, "max_wait_ns": 500 * MS} | policy
        self.congestion = Congestion(Policy(**settings), START)  # type: ignore[arg-type]
        self.now_ns = START
        self.changes: list[bool] = []

    def slices(self, *waiting: int, delay_ms: float | None = None, full: bool = False) -> bool:
        """Let slices pass with so many waiting at their ends; whether it is overloaded."""
        c = self.congestion
        for length in waiting:
            (c.saturation.full if full else c.saturation.free)(self.now_ns)
            if delay_ms is not None:
                c.codel.observe(round(delay_ms * MS))
            self.now_ns += SLICE_NS
            if c.roll(self.now_ns, length):
                self.changes.append(c.overloaded)
        return c.overloaded


def overloaded(**policy: int | None) -> Times:
    times = Times(**policy)
    assert times.slices(*range(1, 17), full=True)
    return times


def test_a_queue_that_does_not_shrink_is_overload() -> None:
    times = Times()
    assert times.slices(*range(1, 9), full=True)
    assert times.changes == [True]


def test_a_full_pool_without_a_queue_is_not() -> None:
    assert not Times().slices(*[0] * 100, full=True)


def test_a_burst_is_not() -> None:
    times = Times()
    for _ in range(10):
        assert not times.slices(24, 18, 12, 6, 0, 0, 0, 0, full=True)


def test_it_lasts_while_the_limit_is_hit_most_of_the_time() -> None:
    """A limit with slack admits some without a delay, which clears CoDel's flag alone."""
    times = overloaded()
    assert times.slices(*[0, 1] * 20, delay_ms=0, full=True)
    assert times.changes == [True]


def test_it_ends_once_slots_are_free() -> None:
    times = overloaded()
    assert not times.slices(*[0] * 12)
    assert times.changes == [True, False]


def test_it_ends_in_silence() -> None:
    times = overloaded()
    times.congestion.saturation.free(times.now_ns)
    times.congestion.roll(times.now_ns + 60 * S, 0)
    assert not times.congestion.overloaded


def test_it_does_not_flap() -> None:
    """Overload whose queue drains now and then is one overload, not twenty."""
    times = overloaded()
    for _ in range(20):
        times.slices(3, 2, 0, 4, 5, full=True)
    assert times.changes == [True]


def test_codel_alone_does_not_begin_it() -> None:
    """A burst that takes longer than an interval keeps the least delay high all the while."""
    times = Times()
    assert not times.slices(*[9, 8, 7, 6, 5, 4, 3, 2, 1] * 2, delay_ms=60, full=True)


def test_codel_begins_it_where_the_queue_lingers() -> None:
    times = Times()
    assert times.slices(*[5, 6, 5, 6] * 5, delay_ms=60, full=True)


def test_the_target_follows_the_service_time() -> None:
    times = Times()
    c = times.congestion
    for rtt_ms, target_ms in [(1, 5), (20, 5), (80, 20), (1000, 50)]:
        c.rtt_ns = rtt_ms * MS
        times.slices(*[0] * 50)
        assert c.target_ns == target_ms * MS
        assert c.codel.interval_ns == max(100, 20 * target_ms) * MS


def test_a_target_that_was_set_stays() -> None:
    times = Times(target_ns=7 * MS)
    times.congestion.rtt_ns = S
    times.slices(*[0] * 50)
    assert times.congestion.target_ns == 7 * MS
    assert times.congestion.codel.interval_ns == 100 * MS


def test_the_usual_service_time_moves_slowly_and_not_far_at_once() -> None:
    c = Times().congestion
    c.sample(16 * MS)
    assert c.rtt_ns == 16 * MS
    c.sample(32 * MS)
    assert c.rtt_ns == 17 * MS
    c.sample(60 * S)  # counts four times at most
    assert c.rtt_ns == 17 * MS + 3 * 17 * MS // 16
    for _ in range(200):
        c.sample(16 * MS)
    assert c.rtt_ns == pytest.approx(16 * MS, rel=0.01)


@pytest.mark.parametrize("priority", [HIGH, DEFAULT])
def test_everybody_but_low_may_wait_until_there_is_overload(priority: Priority) -> None:
    assert Times().congestion.patience_ns(priority) == 500 * MS
    assert Times().congestion.longest_wait_ns(priority) == 500 * MS


def test_low_waits_only_where_it_is_allowed_and_never_under_overload() -> None:
    assert Times().congestion.patience_ns(LOW) == 0
    assert Times(low_max_wait_ns=50 * MS).congestion.patience_ns(LOW) == 50 * MS
    assert overloaded(low_max_wait_ns=50 * MS).congestion.patience_ns(LOW) == 0


def test_under_overload_default_may_wait_twice_the_target() -> None:
    c = overloaded(target_ns=7 * MS).congestion
    assert c.patience_ns(DEFAULT) == c.longest_wait_ns(DEFAULT) == 14 * MS


def test_under_overload_high_may_wait_about_a_service_time() -> None:
    c = overloaded().congestion
    assert c.patience_ns(DEFAULT) < c.patience_ns(HIGH) <= 100 * MS
    c.rtt_ns = 200 * MS
    assert c.patience_ns(HIGH) == 200 * MS
    c.rtt_ns = 900 * MS
    assert c.patience_ns(HIGH) == 500 * MS


def test_high_that_was_let_in_is_not_thrown_out_by_overload() -> None:
    assert overloaded().congestion.longest_wait_ns(HIGH) == 500 * MS


@pytest.mark.parametrize("priority", Priority)
def test_overload_never_lengthens_a_wait(priority: Priority) -> None:
    calm, busy = Times(max_wait_ns=3 * MS).congestion, overloaded(max_wait_ns=3 * MS).congestion
    assert busy.patience_ns(priority) <= calm.patience_ns(priority) <= 3 * MS


def test_the_next_roll_is_never_in_the_past() -> None:
    times = Times()
    for step_ms in (1, 24, 25, 26, 99, 100, 101, 1000):
        times.now_ns += step_ms * MS
        times.congestion.roll(times.now_ns, 0)
        assert times.now_ns < times.congestion.rolls_at_ns <= times.now_ns + SLICE_NS
