"""How much more than enough the limit may be."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle, islice
from random import Random

import pytest

from gunicorn_admission.core.slack import Slack


def fed(rate: Callable[[int], float], limits: tuple[int, ...], windows: int = 400) -> Slack:
    slack, random = Slack(), Random(3)
    for limit in islice(cycle(limits), windows):
        slack.learn(limit, rate(limit) * random.lognormvariate(0, 0.03))
    return slack


def test_it_begins_with_a_fifth() -> None:
    assert Slack().factor == 1.2


def test_there_is_none_where_throughput_falls_with_the_limit() -> None:
    assert fed(lambda limit: 500 / (1 + 0.03 * (limit - 10)), (11, 12, 13)).factor < 1.05


@pytest.mark.parametrize("capacity", [1, 100])
def test_it_stays_where_throughput_keeps_up_or_does_not_care(capacity: int) -> None:
    assert fed(lambda limit: 50.0 * min(limit, capacity), (11, 12, 13)).factor > 1.12


def test_it_comes_back_when_throughput_rises_again() -> None:
    slack = fed(lambda limit: 500 / (1 + 0.03 * (limit - 10)), (11, 12, 13))
    least = slack.factor
    random = Random(4)
    for limit in islice(cycle((11, 12, 13)), 400):
        slack.learn(limit, 50.0 * limit * random.lognormvariate(0, 0.03))
    assert slack.factor > max(1.15, least)


def test_a_limit_that_does_not_move_says_nothing() -> None:
    assert fed(lambda limit: 100.0, (12,)).factor == 1.2


def test_what_was_seen_far_away_does_not_count() -> None:
    slack = fed(lambda limit: 500 / (1 + 0.03 * (limit - 10)), (11, 12, 13), 60)
    slack.learn(40, 100.0)
    before = slack.factor
    for _ in range(7):
        slack.learn(41, 90.0)
    assert slack.factor >= before


def test_it_can_be_told_to_forget() -> None:
    slack = fed(lambda limit: 500 / (1 + 0.03 * (limit - 10)), (11, 12, 13))
    slack.forget()
    assert slack.factor == 1.2
