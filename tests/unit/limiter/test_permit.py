"""The permit: ended exactly once, whatever happens to its holder."""

from __future__ import annotations

import gc
import logging
import threading

import pytest

from gunicorn_admission.core.types import Outcome
from gunicorn_admission.limiter import Limiter
from gunicorn_admission.testing import FakeClock
from tests.callers import Caller, room
from tests.driving import MS, Script


def heard() -> tuple[Limiter, FakeClock, Script]:
    """A limiter and the samples that its limit hears."""
    script, clock = Script(4), FakeClock()
    return Limiter(limit=lambda: script, clock=clock), clock, script


def test_a_permit_is_released_once() -> None:
    limiter, _ = room(2)
    permit = limiter.acquire()
    for outcome in (Outcome.SUCCESS, Outcome.SUCCESS, Outcome.DROP):
        permit.release(outcome)
    seen = limiter.statistics()
    assert (seen.inflight, seen.released_twice) == (0, 2)


def test_released_inside_the_block_is_released() -> None:
    limiter, _ = room(2)
    with limiter.acquire() as permit:
        permit.release()
    seen = limiter.statistics()
    assert (seen.inflight, seen.released_twice) == (0, 0)


@pytest.mark.parametrize("outcome", Outcome)
def test_the_outcome_is_the_callers(outcome: Outcome) -> None:
    limiter, clock, script = heard()
    permit = limiter.acquire()
    clock.advance(0.02)
    permit.release(outcome)
    assert [s["dropped"] for s in script.samples] == {
        Outcome.SUCCESS: [False], Outcome.IGNORE: [], Outcome.DROP: [True],
    }[outcome]  # fmt: skip


@pytest.mark.parametrize(
    ("error", "dropped"),
    [
        (None, [False]),
        (ValueError("a bug"), []),
        (KeyboardInterrupt(), []),
        (SystemExit(1), []),
        (GeneratorExit(), []),
        (TimeoutError("the database"), [True]),
    ],
)
def test_an_exception_says_what_the_call_says_about_capacity(
    error: BaseException | None, dropped: list[bool]
) -> None:
    limiter, clock, script = heard()
    try:
        with limiter.acquire():
            clock.advance(0.02)
            if error is not None:
                raise error
    except BaseException as caught:
        assert caught is error
    assert [s["dropped"] for s in script.samples] == dropped
    assert limiter.statistics().inflight == 0
    assert all(s["rtt_ns"] == 20 * MS for s in script.samples)


def test_any_thread_may_release_it() -> None:
    limiter, _ = room()
    permit = limiter.acquire()
    Caller(permit.release).result()
    assert limiter.statistics().inflight == 0


def test_of_many_who_release_at_once_one_does() -> None:
    limiter, _ = room(2)
    _held, permit = limiter.acquire(), limiter.acquire()
    barrier = threading.Barrier(8)

    def release() -> None:
        barrier.wait()
        permit.release()

    for caller in [Caller(release) for _ in range(8)]:
        caller.result()
    seen = limiter.statistics()
    assert (seen.inflight, seen.released_twice) == (1, 7)


def test_a_permit_that_was_dropped_is_reclaimed_and_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    limiter, clock = room()
    limiter.acquire(partition="reports")
    gc.collect()
    with caplog.at_level(logging.WARNING, "gunicorn_admission"):
        clock.advance(0)
    assert limiter.statistics().leaked == 1
    assert limiter.statistics().inflight == 0
    assert [r for r in caplog.records if "reports" in r.getMessage()]
    assert limiter.try_acquire() is not None


def test_a_dropped_permit_in_a_cycle_too() -> None:
    limiter, clock = room()
    cycle: list[object] = [limiter.acquire()]
    cycle.append(cycle)
    del cycle
    assert limiter.statistics().inflight == 1
    gc.collect()
    clock.advance(0)
    assert limiter.statistics().leaked == 1


def test_a_dropped_permit_lets_who_waits_run() -> None:
    limiter, clock = room()
    permits = [limiter.acquire()]
    caller = limiter.waiter()
    permits.clear()
    gc.collect()
    clock.advance(0)
    caller.result().release()
    assert limiter.statistics().inflight == 0


def test_the_collector_may_come_while_the_lock_is_held() -> None:
    """It runs in any thread, at any allocation; taking the lock there would be a deadlock."""
    limiter, clock = room()
    permits = [limiter.acquire()]
    with limiter._lock:
        permits.clear()
        gc.collect()
    clock.advance(0)
    assert limiter.statistics().leaked == 1


def test_what_ended_or_was_refused_is_no_leak() -> None:
    limiter, clock = room()
    limiter.acquire().release()
    held = limiter.acquire()
    assert limiter.try_acquire() is None
    held.release()
    del held
    gc.collect()
    clock.advance(0)
    assert limiter.statistics().leaked == 0


def test_its_delay_is_that_of_the_grant_and_not_of_the_thread() -> None:
    """The granter stamps it: how long the thread then takes to run is no queueing."""
    limiter, clock = room()
    held = limiter.acquire()
    caller = limiter.waiter()
    clock.advance(0.1)
    with limiter._lock:  # the waiter cannot leave its wait until the lock is free
        limiter._controller.finish(held._ticket, clock(), Outcome.SUCCESS)
        clock._now_ns += 500 * MS
    assert caller.result().queue_delay == pytest.approx(0.1)
