"""Connections, the line in front of them, and what can be wrong."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from gunicorn_admission.core.types import Outcome
from gunicorn_admission.sim.clock import Clock
from gunicorn_admission.sim.pool import Pool
from gunicorn_admission.sim.scenario import Dependency, Fault


class Calls:
    """Calls a pool and notes what came back when, in milliseconds since the start."""

    def __init__(self, **dependency: Any) -> None:
        given = {"connections": 2, "seconds": 0.010, "spread": 0.0, **dependency}
        self.clock = Clock()
        self.pool = Pool(Dependency(**given), self.clock, Random(1))
        self.back: list[tuple[float, Outcome]] = []

    def call(self, count: int = 1, scale: float = 1.0) -> None:
        for _ in range(count):
            request: Any = SimpleNamespace(outcome=Outcome.SUCCESS, failed=False)
            self.pool.call(request, scale, self.note)

    def note(self, request: Any) -> None:
        assert request.failed is (request.outcome is not Outcome.SUCCESS)
        took_ns = self.clock.now_ns - self.clock.start_ns
        self.back.append((round(took_ns / 1_000_000, 3), request.outcome))

    def times(self, until: float) -> list[float]:
        self.clock.run_for(until)
        return [at for at, _ in self.back]

    def outcomes(self, until: float) -> list[Outcome]:
        self.clock.run_for(until)
        return [outcome for _, outcome in self.back]


def test_the_rest_waits_in_line() -> None:
    calls = Calls()
    calls.call(5)
    assert calls.times(1) == [10, 10, 20, 20, 30]


def test_a_crowd_slows_it_down() -> None:
    calls = Calls(contention=0.1)
    calls.call(5)
    # In line when each of them began: 0, 0, 2, 1, 0.
    assert calls.times(1) == [10, 10, 21, 22, 31]


def test_scale_and_overhead() -> None:
    calls = Calls(overhead=0.001)
    calls.call(scale=3.0)
    assert calls.times(1) == [31]


def test_the_mean_is_what_it_says() -> None:
    calls = Calls(connections=2000, spread=0.5)
    calls.call(2000)
    assert sum(calls.times(1)) / 2000 == pytest.approx(10, rel=0.05)


def test_slower() -> None:
    calls = Calls()
    calls.pool.set_fault(Fault(slower=4.0))
    calls.call()
    calls.pool.set_fault(None)
    calls.call()
    assert calls.times(1) == [10, 40]


def test_hanging_calls_end_when_the_fault_does() -> None:
    calls = Calls()
    calls.pool.set_fault(Fault(hangs=True))
    calls.call(3)
    assert calls.times(0.5) == []
    calls.pool.set_fault(None)
    assert calls.times(1) == [510, 510, 520]


def test_hanging_calls_hold_their_connections() -> None:
    calls = Calls(connections=1)
    calls.pool.set_fault(Fault(hangs=True))
    calls.call()
    calls.clock.run_for(0.1)
    calls.pool.set_fault(Fault(slower=1.0))
    calls.call()
    assert calls.times(1) == [110, 120]


def test_a_timeout_is_a_sign_of_overload() -> None:
    calls = Calls(timeout=0.025)
    calls.pool.set_fault(Fault(hangs=True))
    calls.call()
    calls.pool.set_fault(Fault(slower=5.0))
    calls.call()
    assert calls.outcomes(1) == [Outcome.DROP, Outcome.DROP]
    assert calls.times(1.1) == [25, 25]


@pytest.mark.parametrize(("overload", "outcome"), [(True, Outcome.DROP), (False, Outcome.IGNORE)])
def test_failures(overload: bool, outcome: Outcome) -> None:
    calls = Calls()
    calls.pool.set_fault(Fault(fails=1.0, fails_after=0.002, overload=overload))
    calls.call(2)
    assert calls.outcomes(1) == [outcome, outcome]
    assert calls.times(1.1) == [2, 2]


def test_some_are_lucky() -> None:
    calls = Calls(connections=1000, lucky=0.1, lucky_seconds=0.001)
    calls.call(1000)
    assert 50 < calls.times(1).count(1) < 200
