"""Does a queue stand, or does it drain?"""

from __future__ import annotations

import random

import pytest

from gunicorn_admission.core.codel import CoDel
from tests.driving import MS, S

TARGET = 5 * MS
INTERVAL = 100 * MS
START = 3 * S + 1


def codel() -> CoDel:
    return CoDel(INTERVAL, START)


def after(*delays_ms: float, rolled_at_ms: float = 100, c: CoDel | None = None) -> bool:
    """Whether that interval of delays ends in overload."""
    c = c or codel()
    for delay in delays_ms:
        c.observe(round(delay * MS))
    c.roll(START + round(rolled_at_ms * MS), TARGET)
    return c.overloaded


def test_all_above_the_target_for_a_whole_interval_is_overload() -> None:
    assert after(6, 50, 7)


@pytest.mark.parametrize(
    "delays",
    [
        pytest.param([], id="silence"),
        pytest.param([50], id="a single wait proves nothing"),
        pytest.param([50, 0, 50], id="somebody did not wait"),
        pytest.param([50, 5], id="the target itself is tolerated"),
    ],
)
def test_no_overload(delays: list[float]) -> None:
    assert not after(*delays)


def test_the_minimum_counts_wherever_it_stands() -> None:
    assert not after(1, 50)
    assert not after(50, 1)
    assert not after(50, 1, 50)


def test_nothing_is_decided_before_the_interval_ends() -> None:
    c = codel()
    assert not after(50, 50, rolled_at_ms=99.999, c=c)
    c.roll(START + INTERVAL, TARGET)
    assert c.overloaded


def test_the_next_interval_starts_from_nothing() -> None:
    c = codel()
    assert after(1, 1, c=c) is False
    c.observe(50 * MS)
    c.observe(60 * MS)
    c.roll(START + 200 * MS, TARGET)
    assert c.overloaded


@pytest.mark.parametrize("delays", [[], [0], [50], [50, 2]])
def test_an_interval_without_a_queue_clears_it(delays: list[float]) -> None:
    c = codel()
    assert after(50, 50, c=c)
    assert not after(*delays, rolled_at_ms=200, c=c)


def test_waits_that_are_long_past_do_not_set_it() -> None:
    """A burst, then silence: what the first request after it would see is old news."""
    assert not after(8, 8, 8, rolled_at_ms=60_000)
    assert not after(8, 8, 8, rolled_at_ms=200)
    assert after(8, 8, 8, rolled_at_ms=199.9)


def test_intervals_follow_the_clock_that_rolled_them() -> None:
    c = codel()
    c.roll(START + 150 * MS, TARGET)
    assert c.ends_ns == START + 250 * MS
    c.roll(START + 249 * MS, TARGET)
    assert c.ends_ns == START + 250 * MS


def test_agrees_with_a_plain_reading_of_the_rfc() -> None:
    """RFC 8289: above target means that the least delay of one interval was."""
    draw = random.Random(8289)
    c = codel()
    got, naive = [], []
    for _ in range(200):
        delays = [draw.uniform(0, 40) for _ in range(draw.choice([2, 3, 8]))]
        for delay in delays:
            c.observe(round(delay * MS))
        c.roll(c.ends_ns, TARGET)
        got.append(c.overloaded)
        naive.append(min(delays) > 5)
    assert got == naive
    assert 20 < sum(got) < 180
