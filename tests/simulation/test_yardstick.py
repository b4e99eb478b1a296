"""Adaptive against the fixed limit of somebody who knows everything, and against no limit."""

from __future__ import annotations

from gunicorn_admission.sim.run import simulate
from tests.simulating import average, run, shorter


def test_overload_from_the_first_moment() -> None:
    over = shorter("yardstick-A", start=30, over=10)
    adaptive = run(over, "adaptive", 31).goodput
    assert adaptive > 0.93 * run(over, "oracle", 31).goodput
    assert adaptive > 1.3 * run(over, "pool", 31).goodput


def test_overload_after_a_calm_time() -> None:
    over = shorter("yardstick-B", calm=15, over=15, after=3)
    adaptive, oracle = run(over, "adaptive", 32), run(over, "oracle", 32)
    assert adaptive.goodput > 0.93 * oracle.goodput
    assert adaptive.success_after is not None and adaptive.success_after > 0.98


def test_a_dependency_that_became_slower_is_not_starved() -> None:
    slow = shorter("yardstick-D", usual=10, slow=20, after=5)
    adaptive = run(slow, "adaptive", 33).goodput
    assert adaptive > 0.90 * run(slow, "oracle", 33).goodput
    assert adaptive > 1.2 * run(slow, "pool", 33).goodput


def test_it_grows_again_when_that_is_over() -> None:
    back = shorter("yardstick-D2", usual=10, slow=20, after=10)
    assert run(back, "adaptive", 34).goodput > 0.97 * run(back, "oracle", 34).goodput


def test_it_settles_near_what_the_database_can_do() -> None:
    over = shorter("yardstick-B", calm=10, over=10, after=1)
    limit = simulate(over, "adaptive", 35).tally.timeline.limit
    assert 8 <= average(limit, 0.7, 0.9) <= 16
