"""When a refused sender may come back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gunicorn_admission.core.retry_after import drain_time_ns
from tests.driving import MS, S

BOUNDS = (S, 30 * S)


@pytest.mark.parametrize(
    ("excess", "service_ms", "slots", "seconds"),
    [
        (1, 100, 10, 1.0),  # ten milliseconds: the lower bound
        (100, 500, 10, 5.0),
        (100, 500, 5, 10.0),
        (10_000, 500, 5, 30.0),  # a quarter of an hour: the upper bound
        (100, 0, 10, 1.0),  # service time unknown
        (100, 500, 0, 30.0),  # paused: no slots at all
    ],
)
def test_it_is_the_time_to_drain_within_bounds(
    excess: int, service_ms: int, slots: int, seconds: float
) -> None:
    assert drain_time_ns(excess, service_ms * MS, slots, BOUNDS, 0.5) == seconds * S


def test_jitter_spreads_it_from_half_to_half_as_much_again() -> None:
    drawn = [drain_time_ns(100, 500 * MS, 10, BOUNDS, j / 10) for j in range(10)]
    assert drawn[0] == 2.5 * S
    assert drawn == sorted(set(drawn))
    assert drawn[-1] < 7.5 * S


@given(
    excess=st.integers(0, 10**6),
    service_ns=st.integers(0, 10**12),
    slots=st.integers(-2, 1000),
    jitter=st.floats(0, 1, exclude_max=True),
)
def test_it_stays_within_its_bounds(
    excess: int, service_ns: int, slots: int, jitter: float
) -> None:
    assert S // 2 <= drain_time_ns(excess, service_ns, slots, BOUNDS, jitter) <= 45 * S


@given(excess=st.integers(1, 1000), more=st.integers(0, 1000), jitter=st.floats(0, 0.99))
def test_more_to_drain_is_never_sooner(excess: int, more: int, jitter: float) -> None:
    def after(n: int) -> int:
        return drain_time_ns(n, 50 * MS, 4, BOUNDS, jitter)

    assert after(excess) <= after(excess + more)
