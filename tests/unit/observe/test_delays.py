"""Quantiles of the delay histogram, and samples that stand for all requests."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gunicorn_admission.core.statistics import DELAY_BUCKETS
from gunicorn_admission.observe.delays import quantile, samples
from tests.observing import delays

histograms = st.lists(
    st.integers(0, 10_000), min_size=len(DELAY_BUCKETS) + 1, max_size=len(DELAY_BUCKETS) + 1
)


@pytest.mark.parametrize(
    ("counts", "q", "seconds"),
    [
        ({}, 0.5, 0.0),
        ({0.0005: 10}, 0.5, 0.00025),
        ({0.0005: 10}, 1.0, 0.0005),
        ({0.01: 4}, 0.5, 0.0075),
        ({0.0005: 90, 0.1: 10}, 0.9, 0.0005),
        ({0.0005: 90, 0.1: 10}, 0.95, 0.075),
        ({math.inf: 1}, 0.5, 10.0),
        ({0.0005: 1, math.inf: 1}, 0.99, 10.0),
    ],
)
def test_quantile(counts: dict[float, int], q: float, seconds: float) -> None:
    assert quantile(delays(counts), q) == pytest.approx(seconds)


@given(histograms, st.floats(0, 1), st.floats(0, 1))
def test_quantiles_rise(counts: list[int], p: float, q: float) -> None:
    low, high = sorted((p, q))
    assert 0 <= quantile(counts, low) <= quantile(counts, high) <= DELAY_BUCKETS[-1]


@given(histograms, st.integers(1, 100))
def test_samples_fall_into_buckets_as_the_requests_did(counts: list[int], most: int) -> None:
    total, taken = sum(counts), samples(counts, most)
    assert len(taken) == min(total, most)
    assert taken == sorted(taken)
    found = Counter(bisect_left(DELAY_BUCKETS, value) for value in taken)
    last = len(DELAY_BUCKETS) - 1  # the open bucket reads as its lower bound
    found[last] += found.pop(last + 1, 0)
    expected = [*counts[:last], counts[last] + counts[last + 1]]
    for bucket, count in enumerate(expected):
        assert abs(found[bucket] - count * len(taken) / max(total, 1)) <= 1 + 1e-9


def test_few_requests_are_all_there() -> None:
    assert samples(delays({0.0005: 2, 0.1: 1}), 50) == pytest.approx([0.000125, 0.000375, 0.075])
