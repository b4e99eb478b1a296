"""Cases that mislead limits which learn from latency, each beside a fixed limit."""

from __future__ import annotations

from gunicorn_admission.sim.run import simulate
from tests.simulating import run, shorter


def test_lucky_samples_do_not_crush_it() -> None:
    lucky = shorter("lucky-samples", calm=10, over=10)
    assert run(lucky, "adaptive", 51).goodput > 0.9 * run(lucky, "oracle", 51).goodput


def test_timeouts_that_all_take_equally_long_do_not_open_it() -> None:
    timeouts = shorter("constant-timeouts", calm=8, timeouts=10, after=10)
    timeline = simulate(timeouts, "adaptive", 52).tally.timeline
    assert max(timeline.limit[80:]) <= 32
    assert run(timeouts, "adaptive", 52).goodput > 0.9 * run(timeouts, "oracle", 52).goodput


def test_pauses_of_the_process_do_not_crush_it() -> None:
    paused = shorter("gc-pause", pauses=25)
    adaptive = run(paused, "adaptive", 53)
    assert adaptive.goodput > 0.95 * run(paused, "oracle", 53).goodput
    assert adaptive.limit_mean > 10


def test_cpu_bound_work_is_bounded_by_more_than_the_pool() -> None:
    busy = shorter("cpu-bound", calm=10, over=20)
    adaptive = run(busy, "adaptive", 54)
    assert adaptive.goodput > 0.95 * run(busy, "oracle", 54).goodput
    assert adaptive.goodput > 5 * run(busy, "pool", 54).goodput


def test_the_night_does_not_spoil_the_day() -> None:
    day = shorter("night-then-day", night=200, day=15)
    assert run(day, "adaptive", 55).goodput > 0.9 * run(day, "oracle", 55).goodput


def test_a_retry_storm_passes() -> None:
    storm = shorter("retry-storm", usual=5, slow=10, after=15)
    adaptive, plain = run(storm, "adaptive", 56), run(storm, "none", 56)
    assert adaptive.success_after is not None and adaptive.success_after > 0.8
    assert plain.success_after is not None and plain.success_after < 0.2


def test_reports_do_not_starve_orders() -> None:
    flood = shorter("priority-inversion", usual=5, flood=15, after=3)
    adaptive, plain = run(flood, "adaptive", 57), run(flood, "none", 57)
    assert adaptive.priorities["high"] > 0.9
    assert plain.priorities["high"] < 0.2


def test_it_recovers_from_a_hang() -> None:
    assert run(shorter("recovery", usual=5), "adaptive", 58).success > 0.95
    assert run(shorter("recovery", usual=5), "none", 58).success < 0.1


def test_a_black_hole_takes_one_node_only() -> None:
    hole = shorter("black-hole", before=3, during=12, after=3)
    adaptive, plain = run(hole, "adaptive", 59), run(hole, "none", 59)
    assert adaptive.success > 0.95
    assert adaptive.success > plain.success + 0.1


def test_an_endpoint_that_dies_does_not_take_the_other_along() -> None:
    dies = shorter("one-endpoint-dies", before=3, during=12, after=3)
    adaptive, plain = run(dies, "adaptive", 60), run(dies, "none", 60)
    assert adaptive.success > 0.9
    assert plain.success < 0.7


def test_uneven_workers_on_one_database() -> None:
    uneven = shorter("uneven-workers", calm=5, over=8)
    assert run(uneven, "adaptive", 61).goodput > 1.3 * run(uneven, "pool", 61).goodput
