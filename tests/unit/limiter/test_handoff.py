"""Between threads: direct hand-off, nothing lost on the way, not even by an exception."""

from __future__ import annotations

import gc
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

import pytest

from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import Outcome, Priority, Reason, State
from gunicorn_admission.errors import Rejected
from tests.callers import PATIENCE, Caller, Room, room


def test_slots_are_handed_over_in_order() -> None:
    limiter, _ = room()
    permit = limiter.acquire()
    callers = [
        limiter.waiter(priority=p)
        for p in (Priority.DEFAULT, Priority.HIGH, Priority.DEFAULT, Priority.HIGH)
    ]
    for index in (1, 3, 0, 2):
        permit.release()
        permit = callers[index].result()
        assert limiter.statistics().inflight == 1
    assert limiter.statistics().waiting == 0


def test_a_slot_is_taken_before_the_waiter_runs() -> None:
    """Nobody can slip in between: the slot is counted by who releases it."""
    limiter, _ = room()
    held = limiter.acquire()
    ticket = Ticket(limiter.partition(None), Priority.DEFAULT, 0, 10**12)
    assert limiter.offer(ticket, limiter._clock()) is State.WAITING
    held.release()
    assert ticket.state is State.GRANTED
    assert limiter.try_acquire() is None


def test_one_release_wakes_one() -> None:
    limiter, _ = room()
    held = limiter.acquire()
    first, second = limiter.waiter(), limiter.waiter()
    held.release()
    permit = first.result()
    assert limiter.statistics().waiting == 1
    permit.release()
    second.result()


def test_a_wait_costs_no_processor_time() -> None:
    limiter, _ = room()
    held = limiter.acquire()
    used: list[float] = []

    def wait() -> None:
        before = time.thread_time()
        limiter.acquire(timeout=60).release()
        used.append(time.thread_time() - before)

    callers = [Caller(wait) for _ in range(3)]
    for _ in callers:
        limiter.entered.get(timeout=PATIENCE)
    gate = threading.Event()
    timer = threading.Timer(0.25, gate.set)
    timer.start()
    assert gate.wait(PATIENCE)  # a quarter of a second in which a spinning wait would burn
    held.release()
    for caller in callers:
        caller.result()
    assert max(used) < 0.1


# -- exceptions in a wait ----------------------------------------------------------------


class Interrupted(BaseException):
    """What a signal handler raises."""


class Interrupter:
    """Raises in the main thread once it waits in a limiter."""

    def __init__(self, limiter: Room) -> None:
        self._limiter = limiter
        self._before: object = None

    def __enter__(self) -> Interrupter:
        def interrupt(number: int, frame: FrameType | None) -> None:
            raise Interrupted

        self._before = signal.signal(signal.SIGUSR1, interrupt)
        main = threading.main_thread().ident
        assert main is not None

        def wait_and_send() -> None:
            self._limiter.entered.get(timeout=PATIENCE)
            signal.pthread_kill(main, signal.SIGUSR1)

        self._sender = Caller(wait_and_send)
        return self

    def __exit__(self, *_: object) -> None:
        self._sender.result()
        signal.signal(signal.SIGUSR1, self._before)  # type: ignore[arg-type]


def test_an_interrupted_wait_leaves_no_trace() -> None:
    limiter, clock = room()
    held = limiter.acquire()
    for _ in range(5):
        with Interrupter(limiter), pytest.raises(Interrupted):
            limiter.acquire()
        gc.collect()
        clock.advance(0)  # one that was hit before it could wait is cleaned up here
        seen = limiter.statistics()
        assert (seen.inflight, seen.waiting) == (1, 0)
    assert limiter.statistics().shed[("default", "abandoned")] == 5
    held.release()
    assert limiter.try_acquire() is not None


def fails_in_wait(limiter: Room, then: Callable[[], None]) -> None:
    """Wait in vain: as soon as the thread sleeps, do something and raise."""

    class Condition(threading.Condition):
        def wait(self, timeout: float | None = None) -> bool:
            then()
            raise Interrupted

    original = threading.Condition
    threading.Condition = Condition  # type: ignore[misc, assignment]
    try:
        with pytest.raises(Interrupted):
            limiter.acquire()
    finally:
        threading.Condition = original  # type: ignore[misc]


def test_a_slot_granted_in_the_moment_of_the_exception_goes_to_the_next() -> None:
    limiter, clock = room()
    held = limiter.acquire()

    def grant() -> None:  # the lock is held here, as it is after a wait was interrupted
        limiter._controller.finish(held._ticket, clock(), Outcome.SUCCESS)

    fails_in_wait(limiter, grant)
    assert limiter.statistics().inflight == 0
    assert limiter.try_acquire() is not None


def test_what_others_must_be_told_is_told_though_a_wait_failed() -> None:
    limiter, clock = room()
    held = limiter.acquire()
    told: list[Ticket] = []
    other = Ticket(limiter.partition(None), Priority.LOW, clock(), decided=told.append)

    def grant_and_queue_another() -> None:
        limiter._controller.finish(held._ticket, clock(), Outcome.SUCCESS)
        other.priority = Priority.DEFAULT
        limiter._controller.offer(other, clock())

    fails_in_wait(limiter, grant_and_queue_another)
    assert other.state is State.GRANTED
    assert told == [other]


def test_a_slot_is_not_lost_between_the_grant_and_the_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limiter, clock = room()
    original = limiter.offer

    def offer(ticket: Ticket, now_ns: int) -> State:
        original(ticket, now_ns)
        raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(limiter, "offer", offer)
        with pytest.raises(Interrupted):
            limiter.acquire()
    gc.collect()
    clock.advance(0)
    assert limiter.statistics().inflight == 0
    assert limiter.try_acquire() is not None


def test_a_place_in_the_queue_is_not_lost_before_its_owner_sleeps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limiter, clock = room()
    held = limiter.acquire()

    def wait(ticket: Ticket) -> None:
        raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(limiter, "wait", wait)
        with pytest.raises(Interrupted):
            limiter.acquire()
    gc.collect()
    clock.advance(0)
    seen = limiter.statistics()
    assert (seen.waiting, seen.abandoned, seen.leaked) == (0, 1, 0)
    held.release()
    assert limiter.try_acquire() is not None


# -- for adapters with a waiting room of their own ---------------------------------------


def ticket(limiter: Room, told: list[Ticket]) -> Ticket:
    return Ticket(limiter.partition(None), Priority.DEFAULT, limiter._clock(), decided=told.append)


def test_the_owner_of_a_ticket_is_told_without_the_lock() -> None:
    limiter, clock = room()
    held = limiter.acquire()
    free: list[bool] = []

    def decided(_: Ticket) -> None:
        free.append(limiter._lock.acquire(blocking=False))
        limiter._lock.release()

    waiting = Ticket(limiter.partition(None), Priority.DEFAULT, clock(), decided=decided)
    limiter.offer(waiting, clock())
    held.release()
    assert free == [True]


def test_an_owner_that_fails_does_not_keep_the_news_from_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    limiter, clock = room()
    held = limiter.acquire()
    told: list[Ticket] = []

    def fail(_: Ticket) -> None:
        raise RuntimeError("a bug of the adapter")

    first = Ticket(limiter.partition(None), Priority.DEFAULT, clock(), decided=fail)
    second = ticket(limiter, told)
    for one in (first, second):
        limiter.offer(one, clock())
    limiter.close()
    assert told == [second]
    assert "a bug of the adapter" in caplog.text
    held.release()


def test_who_arrives_is_told_by_the_answer_and_not_again() -> None:
    limiter, clock = room()
    told: list[Ticket] = []
    granted, waiting = ticket(limiter, told), ticket(limiter, told)
    assert limiter.offer(granted, clock()) is State.GRANTED
    assert limiter.offer(waiting, clock()) is State.WAITING
    assert told == []
    limiter.finish(granted, Outcome.SUCCESS)
    assert told == [waiting]


def test_who_ends_may_go_on_with_the_next_itself() -> None:
    limiter, clock = room()
    told: list[Ticket] = []
    first, second, third = (ticket(limiter, told) for _ in range(3))
    for one in (first, second, third):
        limiter.offer(one, clock())
    assert limiter.finish_and_take(first, Outcome.SUCCESS) is second
    assert told == []
    limiter.abandon(third)
    assert told == [third]
    assert limiter.finish_and_take(second, Outcome.SUCCESS) is None


def test_those_who_sleep_are_woken_and_not_taken() -> None:
    limiter, clock = room()
    first = ticket(limiter, [])
    limiter.offer(first, clock())
    caller = limiter.waiter()
    assert limiter.finish_and_take(first, Outcome.SUCCESS) is None
    caller.result().release()


def test_detaching_and_reclassifying_tell_who_may_run_now() -> None:
    limiter, clock = room(1, max_limit=2)
    told: list[Ticket] = []
    first, second = ticket(limiter, told), ticket(limiter, told)
    for one in (first, second):
        limiter.offer(one, clock())
    limiter.detach(first)
    assert told == [second]
    limiter.finish(first, Outcome.SUCCESS)
    limiter.reclassify(second, "other", Priority.HIGH)
    assert (second.partition.name, second.priority) == ("other", Priority.HIGH)
    limiter.finish(second, Outcome.SUCCESS)
    assert limiter.statistics().inflight == 0


def test_reclassifying_one_that_waits_changes_nothing() -> None:
    limiter, clock = room()
    held = limiter.acquire()
    waiting = ticket(limiter, [])
    limiter.offer(waiting, clock())
    limiter.reclassify(waiting, "other", Priority.HIGH)
    assert (waiting.partition.name, waiting.priority) == ("(all)", Priority.DEFAULT)
    held.release()
    assert waiting.state is State.GRANTED


def test_the_class_of_a_reclassified_request_gives_its_priority() -> None:
    limiter, clock = room()
    one = ticket(limiter, [])
    limiter.offer(one, clock())
    limiter.reclassify(one, "other")
    assert one.priority is Priority.DEFAULT


def test_the_lock_is_free_after_every_refusal() -> None:
    limiter, _ = room(max_queue=0)
    _held = limiter.acquire()
    for _ in range(3):
        with pytest.raises(Rejected) as caught:
            limiter.acquire()
        assert caught.value.reason is Reason.QUEUE_FULL
    assert limiter._lock.acquire(blocking=False)
    limiter._lock.release()
