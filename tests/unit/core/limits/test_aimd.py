"""AIMDLimit against the published unit vectors."""

from __future__ import annotations

import pytest

from gunicorn_admission.core.limits import AIMDLimit

MILLISECOND = 1_000_000


def after(limit: AIMDLimit, rtt_ns: int, inflight: int, *, dropped: bool = False) -> int:
    limit.on_sample(now_ns=1, rtt_ns=rtt_ns, inflight=inflight, dropped=dropped)
    return limit.limit


def test_success_adds_one() -> None:
    assert after(AIMDLimit(20), MILLISECOND, 10) == 21


def test_app_limited_success_adds_nothing() -> None:
    assert after(AIMDLimit(20), MILLISECOND, 9) == 20


@pytest.mark.parametrize("rtt_ns", [0, MILLISECOND])
def test_drop_takes_a_tenth_and_needs_no_rtt(rtt_ns: int) -> None:
    assert after(AIMDLimit(30), rtt_ns, 0, dropped=True) == 27


def test_success_stops_at_the_maximum() -> None:
    assert after(AIMDLimit(21, maximum=21), MILLISECOND, 10) == 21


def test_drop_stops_at_the_minimum() -> None:
    assert after(AIMDLimit(20), MILLISECOND, 10, dropped=True) == 20
    assert after(AIMDLimit(1, minimum=1), MILLISECOND, 1, dropped=True) == 1


def test_platinummonkey_vectors() -> None:
    assert after(AIMDLimit(10, minimum=1), MILLISECOND, 10) == 11
    assert after(AIMDLimit(10, minimum=1), MILLISECOND, 10, dropped=True) == 9


def test_only_more_than_the_timeout_counts_as_a_drop() -> None:
    limit = AIMDLimit(30, timeout_ns=50 * MILLISECOND)
    assert after(limit, 50 * MILLISECOND, 30) == 31
    assert after(limit, 50 * MILLISECOND + 1, 30) == 27


def test_a_success_without_rtt_is_no_sample() -> None:
    assert after(AIMDLimit(30), 0, 30) == 30
