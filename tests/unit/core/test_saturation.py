"""Time spent at the limit."""

from __future__ import annotations

import pytest

from gunicorn_admission.core.saturation import Saturation
from tests.driving import MS, S

START = 5 * S + 3


def saturation() -> Saturation:
    return Saturation(100 * MS, START)


def run(s: Saturation, *shares: float, first: int = 0) -> bool:
    """Let intervals pass, each full for that share of it; whether it is sustained then."""
    for i, share in enumerate(shares, first):
        opened_ns = START + i * 100 * MS
        if share:
            s.full(opened_ns)
            if share < 1:
                s.free(opened_ns + round(share * 100 * MS))
        elif i:
            s.free(opened_ns)
        s.roll(opened_ns + 100 * MS)
    return s.sustained


@pytest.mark.parametrize(
    ("shares", "sustained"),
    [
        ((1, 1, 1), True),
        ((0.5, 0.5, 0.5), True),
        ((0.4, 0.5, 0.5), False),
        ((1, 0, 0), False),  # a burst
        ((1, 0.5, 0.1), True),
        ((1, 1), True),
        ((1,), False),
        ((0, 0, 0), False),
        ((1, 1, 1, 0, 0), False),  # forgotten after three
    ],
)
def test_it_is_the_share_of_three_intervals(shares: tuple[float, ...], sustained: bool) -> None:
    assert run(saturation(), *shares) is sustained


def test_what_stays_full_is_counted_in_each_interval() -> None:
    s = saturation()
    s.full(START)
    s.full(START + 10 * MS)  # said again by the next grant: still the same time
    for i in range(1, 4):
        s.roll(START + i * 100 * MS)
    assert s.sustained


def test_nothing_is_decided_before_the_interval_ends() -> None:
    s = saturation()
    assert run(s, 1, 1, 1)
    s.free(START + 300 * MS)
    s.roll(START + 399 * MS)
    assert s.sustained


def test_a_late_roll_stands_for_all_it_covers() -> None:
    """After ten seconds of silence there is no memory of what was before."""
    s = saturation()
    assert run(s, 1, 1, 1)
    s.free(START + 300 * MS)
    s.roll(START + 10 * S)
    assert not s.sustained


def test_free_without_full_changes_nothing() -> None:
    s = saturation()
    s.free(START + 50 * MS)
    s.roll(START + 100 * MS)
    assert not s.sustained


def test_times_that_overlap_a_little_do_no_harm() -> None:
    """Arrivals read the clock before they hold the lock, so one may be late by some time."""
    s = saturation()
    s.roll(START + 100 * MS)
    s.full(START + 99 * MS)
    s.free(START + 99 * MS)
    assert not run(s, 0, 0, first=1)
    assert run(s, 1, 1, 1, first=3)
