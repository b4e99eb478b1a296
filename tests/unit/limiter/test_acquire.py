"""acquire and try_acquire: who gets a permit, who waits, who is refused and why."""

from __future__ import annotations

import pytest

from gunicorn_admission.core.policy import PartitionPolicy
from gunicorn_admission.core.types import Priority, Reason
from gunicorn_admission.errors import AdmissionError, ConfigError, Rejected
from gunicorn_admission.limiter import Limiter, Permit
from gunicorn_admission.settings import Settings
from gunicorn_admission.testing import FakeClock
from tests.callers import Caller, room

HIGH, DEFAULT, LOW = Priority.HIGH, Priority.DEFAULT, Priority.LOW


def refused(limiter: Limiter, **arguments: object) -> Rejected:
    with pytest.raises(Rejected) as caught:
        limiter.acquire(**arguments)  # type: ignore[arg-type]
    return caught.value


def test_it_works_with_nothing_set() -> None:
    limiter = Limiter()
    with limiter.acquire() as permit:
        assert isinstance(permit, Permit)
        assert limiter.statistics().inflight == 1
    assert limiter.statistics().inflight == 0
    assert limiter.statistics().granted == 1


def test_a_number_is_all_it_takes() -> None:
    limiter = Limiter(Settings(limit=2), clock=FakeClock())
    permits = [limiter.acquire(), limiter.acquire()]
    assert limiter.try_acquire() is None
    permits[0].release()
    assert limiter.try_acquire() is not None


def test_a_permit_knows_its_class() -> None:
    limiter, _ = room(3)
    assert limiter.acquire().priority is DEFAULT
    assert limiter.acquire().partition == "(all)"
    permit = limiter.acquire(priority=HIGH, partition="payments")
    assert (permit.priority, permit.partition, permit.queue_delay) == (HIGH, "payments", 0.0)


def test_the_priority_is_that_of_the_class_unless_given() -> None:
    limiter = Limiter(
        Settings(limit=1), clock=FakeClock(), partitions=[PartitionPolicy(name="a", priority=LOW)]
    )
    assert limiter.acquire(partition="a").priority is LOW
    assert refused(limiter, partition="a", timeout=0).priority is LOW
    assert refused(limiter, partition="a", timeout=0, priority=HIGH).priority is HIGH


def test_a_refusal_says_why_and_when_to_come_back() -> None:
    limiter, _ = room()
    _held = limiter.acquire()
    error = refused(limiter, timeout=0, partition="a")
    assert isinstance(error, AdmissionError)
    assert (error.reason, error.priority, error.partition) == (Reason.OVERLOADED, DEFAULT, "a")
    assert 0.5 <= error.retry_after <= 1.5
    assert limiter.statistics().shed == {("default", "overloaded"): 1}


@pytest.mark.parametrize("priority", Priority)
def test_trying_never_waits(priority: Priority) -> None:
    limiter, _ = room(low_max_wait_ns=10**9)
    _held = limiter.acquire()
    assert limiter.try_acquire(priority=priority) is None
    assert limiter.entered.empty()


def test_trying_waits_as_long_as_it_is_told() -> None:
    limiter, clock = room()
    _held = limiter.acquire()
    caller = Caller(lambda: limiter.try_acquire(timeout=0.2))
    limiter.entered.get()
    clock.advance(0.2)
    assert caller.result() is None


def test_a_waiter_gets_the_slot_that_is_released() -> None:
    limiter, clock = room()
    held = limiter.acquire()
    caller = limiter.waiter()
    clock.advance(0.25)
    held.release()
    assert caller.result().queue_delay == 0.25
    assert limiter.statistics().inflight == 1


@pytest.mark.parametrize("priority", [HIGH, DEFAULT])
def test_a_waiter_is_refused_at_its_time_and_not_before(priority: Priority) -> None:
    limiter, clock = room()
    _held = limiter.acquire()
    caller = limiter.waiter(priority=priority, timeout=0.2)
    clock.advance(0.199_999_999)
    assert limiter.statistics().waiting == 1
    clock.advance(0.000_000_001)
    with pytest.raises(Rejected) as caught:
        caller.result()
    assert caught.value.reason is Reason.EXPIRED
    assert limiter.statistics().waiting == 0


def test_a_timeout_is_never_rounded_down() -> None:
    limiter, clock = room()
    _held = limiter.acquire()
    caller = limiter.waiter(timeout=0.000_000_001_5)
    clock.advance(0.000_000_001)
    assert limiter.statistics().waiting == 1
    clock.advance(0.000_000_001)
    with pytest.raises(Rejected):
        caller.result()


def test_low_does_not_wait_though_its_caller_would() -> None:
    limiter, _ = room()
    _held = limiter.acquire()
    assert refused(limiter, priority=LOW, timeout=5).reason is Reason.OVERLOADED


def test_low_waits_as_long_as_both_allow() -> None:
    limiter, clock = room(low_max_wait_ns=5 * 10**8)
    _held = limiter.acquire()
    short = limiter.waiter(priority=LOW, timeout=0.1)
    long = limiter.waiter(priority=LOW, timeout=60.0)
    clock.advance(0.1)
    assert limiter.statistics().waiting == 1
    clock.advance(0.4)
    for caller in (short, long):
        with pytest.raises(Rejected):
            caller.result()


def test_a_deadline_that_is_hopeless_is_refused_at_once() -> None:
    limiter, clock = room(2)
    for _ in range(20):
        with limiter.acquire():
            clock.advance(0.5)
    with limiter.acquire(deadline=0.5):
        pass
    for _ in range(2):  # one is let through to see whether that is still so
        limiter.try_acquire(deadline=0.4)
    assert refused(limiter, deadline=0.4).reason is Reason.DEADLINE


def test_a_waiter_goes_when_its_deadline_becomes_hopeless() -> None:
    limiter, clock = room()
    _held = limiter.acquire()
    caller = limiter.waiter(deadline=0.3, timeout=5)
    clock.advance(0.3)
    assert limiter.statistics().waiting == 1
    clock.advance(0.000_000_001)
    with pytest.raises(Rejected) as caught:
        caller.result()
    assert caught.value.reason is Reason.DEADLINE


@pytest.mark.parametrize("name", ["timeout", "deadline"])
@pytest.mark.parametrize("seconds", [-0.1, float("inf"), float("nan")])
def test_every_wait_ends(name: str, seconds: float) -> None:
    limiter, _ = room()
    with pytest.raises(ConfigError, match=name):
        limiter.acquire(**{name: seconds})  # type: ignore[arg-type]
    assert limiter.statistics().arrivals == 0


def test_a_wait_of_centuries_can_be_asked_for() -> None:
    limiter, _ = room()
    held = limiter.acquire()
    caller = limiter.waiter(timeout=1e12)
    held.release()
    assert caller.result().queue_delay == 0.0


def test_a_full_queue_is_full() -> None:
    limiter, _ = room(max_queue=1)
    held = limiter.acquire()
    caller = limiter.waiter()
    assert refused(limiter).reason is Reason.QUEUE_FULL
    held.release()
    caller.result()


def test_a_higher_priority_takes_a_place_in_a_full_queue() -> None:
    limiter, _ = room(max_queue=1)
    held = limiter.acquire()
    lower = limiter.waiter()
    higher = limiter.waiter(priority=HIGH)
    with pytest.raises(Rejected) as caught:
        lower.result()
    assert caught.value.reason is Reason.EVICTED
    held.release()
    assert higher.result().priority is HIGH
