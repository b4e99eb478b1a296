"""What the overload benchmark measures on a real server, in the model."""

from __future__ import annotations

from tests.simulating import run, shorter


def test_nothing_is_refused_at_half_the_capacity() -> None:
    assert run(shorter("overload-A"), "adaptive", 41, 42).success == 1.0


def test_bursts_are_not_overload_for_those_who_may_wait() -> None:
    result = run(shorter("overload-AB"), "adaptive", 41, 42)
    assert result.priorities["high"] == 1.0
    assert result.priorities["default"] > 0.98


def test_three_times_the_capacity() -> None:
    over = shorter("overload-BFG", over=4, after=2)
    adaptive, plain = run(over, "adaptive", 43), run(over, "none", 43)
    assert adaptive.goodput > 0.94 * 400
    assert adaptive.priorities["high"] > 0.99
    assert adaptive.priorities["default"] > 5 * adaptive.priorities["low"]
    assert adaptive.p99 is not None and adaptive.p99 < 0.15
    assert adaptive.wasted == 0
    assert adaptive.success_after is not None and adaptive.success_after > 0.98
    # Without admission everybody waits, and most in vain.
    assert plain.priorities["high"] < 0.6
    assert plain.wasted > 0.2


def test_ten_times_the_capacity() -> None:
    over = run(shorter("overload-C", over=3, after=2), "adaptive", 44)
    assert over.goodput > 0.93 * 400
    assert over.priorities["high"] > 0.44
    assert over.priorities["low"] < 0.01


def test_a_slow_database() -> None:
    slow = run(shorter("overload-D"), "adaptive", 45, 46)
    assert slow.goodput > 0.95 * 40
    assert slow.priorities["high"] > 0.5
    assert slow.success_after is not None and slow.success_after > 0.93


def test_a_database_that_hangs() -> None:
    hung = run(shorter("overload-E"), "adaptive", 47, 48)
    assert hung.refusal_p99 is not None and hung.refusal_p99 < 0.05
    assert hung.success_after is not None and hung.success_after > 0.97
    assert hung.gave_up < 0.05


def test_another_database_without_another_setting() -> None:
    other = run(shorter("overload-H", over=4, after=2), "adaptive", 49)
    assert other.goodput > 0.95 * 400
    assert other.priorities["high"] > 0.98
