"""What an operator changes while requests run and wait."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gunicorn_admission.core.types import Mode, Priority, Reason
from gunicorn_admission.errors import ConfigError, Rejected
from gunicorn_admission.limiter import Limiter
from tests.callers import Caller, room


def test_a_larger_limit_lets_all_run_who_wait() -> None:
    limiter, _ = room(1, max_limit=8)
    held = limiter.acquire()
    callers = [limiter.waiter() for _ in range(3)]
    limiter.set_limit(4)
    permits = [held, *(caller.result() for caller in callers)]
    assert limiter.statistics().inflight == 4
    assert limiter.try_acquire() is None
    for permit in permits:
        permit.release()


def test_a_smaller_limit_never_blocks_and_what_runs_drains() -> None:
    limiter, _ = room(4)
    permits = [limiter.acquire() for _ in range(4)]
    Caller(lambda: limiter.set_limit(1)).result()
    assert limiter.statistics().inflight == 4
    for permit in permits[:3]:
        permit.release()
        assert limiter.try_acquire() is None
    permits[3].release()
    assert limiter.try_acquire() is not None


def test_the_limit_can_be_given_back_to_the_algorithm() -> None:
    limiter, _ = room(3)
    limiter.set_limit(1)
    assert limiter.statistics().limit == 1
    limiter.set_limit(None)
    assert limiter.statistics().limit == 3


@pytest.mark.parametrize("limit", [0, -1, 9, 2.0, True, "3"])
def test_a_limit_that_cannot_work_is_refused(limit: object) -> None:
    limiter, _ = room(4, max_limit=8)
    with pytest.raises(ConfigError, match="from 1 to 8"):
        limiter.set_limit(limit)  # type: ignore[arg-type]
    assert limiter.statistics().limit == 4


@pytest.mark.parametrize("mode", ["monitor", Mode.OFF])
def test_outside_of_enforce_those_who_wait_run(mode: Mode | str) -> None:
    limiter, _ = room()
    _held = limiter.acquire()
    callers = [limiter.waiter() for _ in range(3)]
    limiter.set_mode(mode)
    assert len([caller.result() for caller in callers]) == 3
    assert limiter.statistics().mode == Mode(mode).value
    limiter.set_mode("enforce")


def test_monitor_counts_what_it_would_refuse() -> None:
    limiter, _ = room(1, max_queue=0)
    limiter.set_mode("monitor")
    permits = [limiter.acquire(priority=Priority.LOW) for _ in range(3)]
    seen = limiter.statistics()
    assert seen.would_shed == {("low", "overloaded"): 2}
    assert (seen.shed_total, seen.inflight) == (0, 3)
    for permit in permits:
        permit.release()


def test_a_mode_that_is_none_is_refused() -> None:
    limiter, _ = room()
    with pytest.raises(ConfigError, match="enforce, monitor, off"):
        limiter.set_mode("dry-run")


def test_a_pause_refuses_all_and_can_be_ended() -> None:
    limiter, _ = room(2)
    held = limiter.acquire()
    limiter.pause()
    with pytest.raises(Rejected) as caught:
        limiter.acquire(priority=Priority.HIGH)
    assert caught.value.reason is Reason.PAUSED
    assert limiter.statistics().paused
    held.release()
    limiter.resume()
    assert limiter.try_acquire() is not None


@pytest.mark.parametrize(
    ("change", "reason"),
    [(Limiter.pause, Reason.PAUSED), (Limiter.close, Reason.STOPPING)],
)
def test_those_who_wait_are_answered(change: Callable[[Limiter], None], reason: Reason) -> None:
    limiter, _ = room()
    _held = limiter.acquire()
    callers = [limiter.waiter(timeout=3600) for _ in range(3)]
    change(limiter)
    for caller in callers:
        with pytest.raises(Rejected) as caught:
            caller.result()
        assert caught.value.reason is reason


def test_closed_it_still_gives_free_slots_but_lets_nobody_wait() -> None:
    limiter, _ = room(1)
    limiter.close()
    limiter.close()
    held = limiter.acquire()
    with pytest.raises(Rejected) as caught:
        limiter.acquire()
    assert caught.value.reason is Reason.STOPPING
    assert limiter.statistics().closed
    held.release()


def test_slots_taken_while_paused_come_back_once() -> None:
    limiter, _ = room(2)
    held = [limiter.acquire(), limiter.acquire()]
    limiter.pause()
    for permit in held:
        permit.release()
    limiter.resume()
    assert [limiter.try_acquire() is not None for _ in range(3)] == [True, True, False]


def test_the_policy_can_be_read() -> None:
    limiter, _ = room(2, max_limit=7)
    assert limiter.policy.max_limit == 7


def test_exempt_requests_are_counted_and_nothing_else() -> None:
    limiter, _ = room()
    limiter.bypassed()
    seen = limiter.statistics()
    assert (seen.bypassed, seen.arrivals, seen.inflight) == (1, 0, 0)
