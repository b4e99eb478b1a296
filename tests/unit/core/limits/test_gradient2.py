"""Gradient2Limit against the published unit vectors, and its baseline rules."""

from __future__ import annotations

import pytest

from gunicorn_admission.core.limits import Gradient2Limit


def after(limit: Gradient2Limit, rtt_ns: int, inflight: int, *, dropped: bool = False) -> int:
    limit.on_sample(now_ns=1, rtt_ns=rtt_ns, inflight=inflight, dropped=dropped)
    return limit.limit


def test_baseline_is_a_mean_first_and_then_an_exponential_average() -> None:
    limit = Gradient2Limit(long_window=100)
    means = []
    for rtt_ns in range(10, 20):
        after(limit, rtt_ns, 0)
        means.append(limit.baseline_ns)
    assert means == [10.0, 10.5, 11.0, 11.5, 12.0, 12.5, 13.0, 13.5, 14.0, 14.5]
    after(limit, 100, 0)
    assert limit.baseline_ns == pytest.approx(16.19306930693069, rel=1e-15)


def test_platinummonkey_vectors() -> None:
    limit = Gradient2Limit(50, minimum=4, maximum=1000, long_window=100, rtt_tolerance=1.0)
    assert after(limit, 10, 1) == 50
    assert {after(limit, 10 * inflight, inflight) for inflight in range(25)} == {50}
    assert after(limit, 2500, 25) == 45
    assert after(limit, 10, 5) == 45
    for inflight in range(100):
        after(limit, 1000, inflight)
    assert limit.limit == 21
    for _ in range(100):
        after(limit, 1, 1)
    assert limit.limit == 21


def test_a_baseline_over_twice_the_rtt_decays_from_the_next_sample_on() -> None:
    limit = Gradient2Limit(long_window=1)  # the average is the last RTT after the warm-up
    for _ in range(9):
        after(limit, 5_000, 20)
    before = limit.estimate
    after(limit, 1_000, 20)
    assert limit.baseline_ns == 4_600 * 0.95
    assert limit.estimate == before * 0.8 + (before + 4) * 0.2  # gradient 1 by the old one


def test_app_limited_moves_the_baseline_only() -> None:
    limit = Gradient2Limit()
    assert after(limit, 1_000, 9) == 20
    assert (limit.estimate, limit.baseline_ns) == (20.0, 1_000.0)


def test_half_the_limit_is_use_enough() -> None:
    limit = Gradient2Limit()
    after(limit, 1_000, 10)
    assert limit.estimate == 20.8


def test_drops_are_not_looked_at() -> None:
    with_drops, without = Gradient2Limit(minimum=1), Gradient2Limit(minimum=1)
    for rtt_ns in (20, 200, 20, 2_000):
        assert after(with_drops, rtt_ns, 20, dropped=True) == after(without, rtt_ns, 20)
    assert with_drops.estimate == without.estimate


@pytest.mark.parametrize("tolerance", [1.0, 1.5, 2.0])
def test_a_slow_down_within_the_tolerance_still_grows(tolerance: float) -> None:
    limit = Gradient2Limit(rtt_tolerance=tolerance, long_window=100_000)
    for _ in range(10):
        after(limit, 10_000, 0)
    assert after(limit, int(10_000 * tolerance), 20) == 20
    assert limit.estimate > 20.79


def test_the_gradient_is_never_below_a_half() -> None:
    limit = Gradient2Limit(minimum=1, smoothing=1.0)
    for _ in range(10):
        after(limit, 10_000, 0)
    assert after(limit, 10**12, 20) == 14  # 20 / 2 + 4


def test_a_baseline_of_just_twice_the_rtt_does_not_decay() -> None:
    limit = Gradient2Limit()
    after(limit, 3_000, 0)
    after(limit, 1_000, 0)
    assert limit.baseline_ns == 2_000.0
