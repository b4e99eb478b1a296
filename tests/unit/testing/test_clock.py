"""The clock that is moved by hand."""

from __future__ import annotations

import gc

import pytest

from gunicorn_admission.core.types import Priority
from gunicorn_admission.limiter import Limiter
from gunicorn_admission.settings import Settings
from gunicorn_admission.testing import FakeClock


def test_it_stands_still() -> None:
    clock = FakeClock()
    assert clock() == clock() != 0
    assert FakeClock(5)() == 5


def test_it_moves_by_seconds() -> None:
    clock = FakeClock(0)
    clock.advance(0.25)
    clock.advance(1e-9)
    clock.advance(0)
    assert clock() == 250_000_001


def test_it_does_not_go_back() -> None:
    clock = FakeClock(7)
    with pytest.raises(ValueError, match="cannot go back"):
        clock.advance(-0.1)
    assert clock() == 7


def test_who_subscribes_catches_up_with_the_new_time() -> None:
    class Watch:
        def __init__(self) -> None:
            self.seen: list[int] = []

        def tick(self) -> None:
            self.seen.append(clock())

    clock = FakeClock(0)
    watch = Watch()
    clock.subscribe(watch.tick)
    clock.advance(1e-9)
    clock.advance(1e-9)
    assert watch.seen == [1, 2]


def test_it_keeps_nobody_alive() -> None:
    clock = FakeClock()
    limiters = [Limiter(Settings(limit=1), clock=clock)]
    limiters.clear()
    gc.collect()
    clock.advance(1)
    assert [reference() for reference in clock._ticks] == [None]


def test_a_limiter_on_it_needs_no_real_time() -> None:
    clock = FakeClock()
    limiter = Limiter(Settings(limit=1), clock=clock)
    held = limiter.acquire()
    for _ in range(60):
        clock.advance(1)
    assert limiter.statistics().partitions["(all)"].oldest_seconds == 60
    held.release()
    assert limiter.try_acquire(priority=Priority.LOW) is not None
