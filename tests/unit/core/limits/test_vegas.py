"""VegasLimit against the published unit vectors, and its probes."""

from __future__ import annotations

import pytest

from gunicorn_admission.core.limits import VegasLimit

MILLISECOND = 1_000_000


def after(limit: VegasLimit, rtt_ms: int, inflight: int, *, dropped: bool = False) -> int:
    limit.on_sample(now_ns=1, rtt_ns=rtt_ms * MILLISECOND, inflight=inflight, dropped=dropped)
    return limit.limit


@pytest.fixture
def limit() -> VegasLimit:
    limit = VegasLimit(10, maximum=20)
    assert after(limit, 10, 10) == 10  # the first sample is the baseline
    return limit


def test_no_queue_grows_fast(limit: VegasLimit) -> None:
    assert after(limit, 10, 11) == 16


def test_a_long_queue_shrinks(limit: VegasLimit) -> None:
    assert after(limit, 50, 11) == 9


def test_a_queue_between_the_marks_holds(limit: VegasLimit) -> None:
    assert after(limit, 14, 14) == 10


def test_a_short_queue_grows_by_one_unit(limit: VegasLimit) -> None:
    assert after(limit, 12, 10) == 11  # ceil(10 x (1 - 10/12)) = 2, above 1 and below 3


def test_app_limited_holds_but_a_drop_counts(limit: VegasLimit) -> None:
    assert after(limit, 10, 4) == 10
    assert after(limit, 10, 4, dropped=True) == 9


def test_the_unit_is_the_decade_of_the_limit() -> None:
    limit = VegasLimit(10_000, maximum=20_000)
    assert after(limit, 10_000, 5_000) == 10_000
    assert after(limit, 10_000, 6_000) == 10_024


class Halving(VegasLimit):
    """The decrease that the published smoothing vectors were made with."""

    def _smaller(self, estimate: float) -> float:
        return estimate / 2


@pytest.mark.parametrize(("smoothing", "first", "second"), [(0.5, 75, 56), (1.0, 50, 25)])
def test_smoothing(smoothing: float, first: int, second: int) -> None:
    limit = Halving(100, maximum=200, smoothing=smoothing)
    after(limit, 10, 100)
    assert after(limit, 20, 100) == first
    assert after(limit, 20, 100) == second


def test_smoothing_cannot_round_the_limit_out_of_its_bounds() -> None:
    # (1 - s) x 20 + s x 20 is 19.999999999999996 for this s.
    limit = VegasLimit(20, maximum=20, smoothing=0.012)
    limit.set_bounds(20, 20)
    after(limit, 10, 20)
    assert after(limit, 10, 20) == 20


def test_a_faster_sample_is_the_new_baseline(limit: VegasLimit) -> None:
    assert after(limit, 9, 10) == 10
    assert limit.baseline_ns == 9 * MILLISECOND


def test_rtt_of_zero_is_ignored_rather_than_raised(limit: VegasLimit) -> None:
    for rtt_ms in (0, -1):
        assert after(limit, rtt_ms, 10) == 10
    assert limit.baseline_ns == 10 * MILLISECOND


def test_a_drop_needs_no_rtt(limit: VegasLimit) -> None:
    assert after(limit, 0, 10, dropped=True) == 9
    assert limit.baseline_ns == 10 * MILLISECOND


def probes(limit: VegasLimit, count: int, *, now_ns: int = 0) -> list[int]:
    """Numbers of the samples that raised the baseline; app-limited, so the limit stays."""
    found = []
    for number in range(1, count + 1):
        before = limit.baseline_ns
        limit.on_sample(
            now_ns=now_ns + number,
            rtt_ns=before + MILLISECOND,
            inflight=0,
            dropped=False,
        )
        if limit.baseline_ns > before > 0:
            found.append(number)
    return found


def test_probes_after_jitter_times_multiplier_times_limit_samples() -> None:
    draws = iter([0.5, 0.75, 0.99])
    limit = VegasLimit(4, probe_multiplier=10, jitter=lambda: next(draws))
    assert probes(limit, 60) == [20, 50]


def test_jitter_of_its_own_stays_in_range_and_differs_between_workers() -> None:
    first = [probes(VegasLimit(4, probe_multiplier=25), 100, now_ns=7**k)[0] for k in range(30)]
    assert all(50 <= number <= 100 for number in first)
    assert len(set(first)) > 15


def test_jitter_of_its_own_comes_back_in_a_replay() -> None:
    runs = [probes(VegasLimit(4), 1_000, now_ns=123_456_789) for _ in range(2)]
    assert runs[0] == runs[1] != []
