"""Does the queue shrink at all?"""

from __future__ import annotations

import pytest

from gunicorn_admission.core.standing import SLICE_NS, StandingQueue
from tests.driving import S

START = 2 * S + 5


class Slices:
    """Lets slice after slice end with a length of the queue."""

    def __init__(self) -> None:
        self.queue = StandingQueue(START)

    def end(self, *lengths: int, away: int = 0) -> StandingQueue:
        for length in lengths:
            self.queue.turned_away += away
            self.queue.roll(self.queue.ends_ns, length)
        return self.queue


@pytest.mark.parametrize(
    ("lengths", "standing"),
    [
        ([1, 2, 3, 4, 5, 6, 7, 8], True),
        ([3] * 8, True),
        ([8, 7, 6, 5, 4, 3, 2, 1], False),  # works itself off
        ([0] * 8, False),
        ([1, 2, 3, 4, 3, 4, 5, 6], True),  # one of eight may shrink
        ([1, 2, 3, 2, 3, 2, 3, 4], False),
        ([1, 2, 3, 4, 5, 6], False),  # not long enough
    ],
)
def test_it_stands_when_it_does_not_shrink(lengths: list[int], standing: bool) -> None:
    assert Slices().end(*lengths).standing is standing


def test_turning_somebody_away_counts_as_not_shrinking() -> None:
    slices = Slices()
    assert slices.end(*[4, 3] * 4, away=1).standing
    assert not slices.end(0, 0).standing


def test_half_of_the_time_is_lingering() -> None:
    slices = Slices()
    assert slices.end(4, 5, 6, 7, 0, 0, 0, 0).lingering
    assert not slices.end(0).lingering


def test_a_burst_at_half_load_is_none() -> None:
    slices = Slices()
    for _ in range(20):
        assert not slices.end(32, 22, 12, 2, 0, 0, 0).standing


def test_it_ends_with_an_empty_queue() -> None:
    slices = Slices()
    assert slices.end(*[9] * 8).standing
    assert not slices.end(0, 0).standing


def test_one_turned_away_before_a_silence_is_not_a_queue() -> None:
    """A late roll stands for the slices it covers only as far as they are known."""
    queue = StandingQueue(START)
    queue.turned_away = 1
    queue.roll(START + 20 * SLICE_NS, 0)
    assert not queue.standing
    assert not queue.lingering


def test_a_late_roll_of_a_queue_that_stood_counts_for_all() -> None:
    queue = StandingQueue(START)
    queue.roll(START + SLICE_NS, 5)
    queue.roll(START + 20 * SLICE_NS, 5)
    assert queue.standing


def test_silence_clears_it() -> None:
    slices = Slices()
    assert slices.end(*[9] * 8).standing
    slices.queue.roll(slices.queue.ends_ns + 60 * S, 0)
    assert not slices.queue.standing


def test_nothing_is_decided_inside_a_slice() -> None:
    queue = StandingQueue(START)
    ends_ns = queue.ends_ns
    queue.roll(ends_ns - 1, 5)
    assert queue.ends_ns == ends_ns
    queue.turned_away = 2
    queue.roll(ends_ns, 0)
    assert queue.turned_away == 0
    assert queue.ends_ns == ends_ns + SLICE_NS
