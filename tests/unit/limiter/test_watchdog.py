"""The one thread that does what is due by time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

import pytest

from gunicorn_admission.core.limits import FixedLimit
from gunicorn_admission.core.policy import Policy
from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import Priority, Reason, State
from gunicorn_admission.errors import Rejected
from gunicorn_admission.limiter import Limiter
from gunicorn_admission.limiter.watchdog import Watchdog
from tests.callers import PATIENCE, room


def dog(tick: Callable[[], float | None]) -> Watchdog:
    return Watchdog(tick, "test-watchdog")


def test_it_does_as_the_tick_says() -> None:
    delays: Iterator[float | None] = iter([0.01, 0.5])
    watchdog = dog(lambda: next(delays))
    assert watchdog.round() == 0.01
    assert watchdog.round() == 0.5
    assert not watchdog.parked


def test_it_rests_when_all_has_been_quiet_for_a_second() -> None:
    watchdog = dog(lambda: None)
    watchdog.parked = False
    assert watchdog.round() == 0.5
    assert not watchdog.parked
    assert watchdog.round() is None
    assert watchdog.parked


def test_quiet_is_counted_anew_after_work() -> None:
    delays: Iterator[float | None] = iter([None, 0.5, None])
    watchdog = dog(lambda: next(delays))
    assert [watchdog.round() for _ in range(3)] == [0.5, 0.5, 0.5]
    assert not watchdog.parked


def test_who_comes_as_it_goes_to_rest_is_seen() -> None:
    """After its last look and before it says that it rests: nobody would wake it."""
    busy: list[bool] = []
    looks = 0

    def tick() -> float | None:
        nonlocal looks
        looks += 1
        seen = bool(busy)
        if looks == 2:
            busy.append(True)
            assert not watchdog.parked, "a request would see this, and wake it"
        return 0.5 if seen else None

    watchdog = dog(tick)
    watchdog.parked = False
    watchdog.round()
    assert watchdog.round() == 0.5
    assert not watchdog.parked


def test_who_comes_after_that_wakes_it() -> None:
    ticks = threading.Semaphore(0)
    watchdog = dog(lambda: ticks.release())
    watchdog.wake()
    for _ in range(3):  # two rounds and the last look
        assert ticks.acquire(timeout=PATIENCE)
    for _ in range(3):
        watchdog.wake()
        assert ticks.acquire(timeout=PATIENCE)


def test_hurrying_ends_a_pause() -> None:
    ticks = threading.Semaphore(0)

    def tick() -> float | None:
        ticks.release()
        return 1e6

    watchdog = dog(tick)
    watchdog.wake()
    assert ticks.acquire(timeout=PATIENCE)
    watchdog.hurry()
    assert ticks.acquire(timeout=PATIENCE)


def test_a_tick_that_fails_does_not_end_it(caplog: pytest.LogCaptureFixture) -> None:
    outcomes: Iterator[float | Exception | None] = iter([ValueError("a bug"), ValueError(), 0.01])

    def tick() -> float | None:
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    watchdog = dog(tick)
    with caplog.at_level(logging.ERROR, "gunicorn_admission"):
        assert [watchdog.round() for _ in range(3)] == [0.5, 0.5, 0.01]
    assert len(caplog.records) == 1
    assert "a bug" in caplog.text


def test_many_wake_it_and_one_thread_runs() -> None:
    ticks = threading.Semaphore(0)

    def tick() -> float | None:
        ticks.release()
        return 1e6

    watchdog = Watchdog(tick, "only-one")
    barrier = threading.Barrier(8)

    def wake() -> None:
        barrier.wait(PATIENCE)
        watchdog.wake()

    threads = [threading.Thread(target=wake) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert ticks.acquire(timeout=PATIENCE)
    assert len([t for t in threading.enumerate() if t.name == "only-one"]) == 1


def test_a_thread_that_cannot_be_started_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    limiter, _ = room(2)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fail)
        for _ in range(2):
            with limiter.acquire():
                assert limiter.statistics().inflight == 1
    assert len(caplog.records) == 1
    assert limiter._watchdog.parked
    with limiter.acquire():
        assert not limiter._watchdog.parked


# -- in a limiter ------------------------------------------------------------------------


def threads() -> int:
    return sum(t.name == "admission-watchdog" for t in threading.enumerate())


def test_nothing_is_started_before_the_first_request() -> None:
    before = threads()
    limiter, _ = room()
    limiter.statistics()
    limiter.set_limit(1)
    assert threads() == before
    limiter.acquire().release()
    assert threads() == before + 1


def test_how_closely_it_watches() -> None:
    limiter, clock = room()
    assert limiter._watch() is None
    held = limiter.acquire()
    assert limiter._watch() == 0.5
    waiting = Ticket(limiter.partition(None), Priority.DEFAULT, clock(), 10**12)
    limiter.offer(waiting, clock())
    assert limiter._watch() == 0.01
    limiter.abandon(waiting)
    held.release()
    assert limiter._watch() is None
    limiter._controller.congestion.overloaded = True
    assert limiter._watch() is not None  # until the flag is down


def test_each_round_does_what_an_adapter_asks_for() -> None:
    limiter, _ = room()
    rounds: list[bool] = []
    limiter.each_round = lambda: rounds.append(limiter._lock.locked())
    limiter._watch()
    assert rounds == [False]


def test_a_waiter_without_a_thread_is_told_when_its_time_is_over() -> None:
    """On the real clock: nobody but the watchdog is there to look."""
    told = threading.Event()
    policy = Policy(max_limit=1, max_wait_ns=20_000_000)
    limiter = Limiter(policy=policy, limit=lambda: FixedLimit(1))
    held = limiter.acquire()
    now_ns = time.monotonic_ns()
    ticket = Ticket(limiter.partition(None), Priority.DEFAULT, now_ns, decided=lambda _: told.set())
    limiter.offer(ticket, now_ns)
    assert told.wait(PATIENCE)
    assert (ticket.state, ticket.reason) == (State.SHED, Reason.EXPIRED)
    assert time.monotonic_ns() - now_ns >= 20_000_000
    held.release()


def test_a_thread_that_waits_looks_at_the_clock_itself() -> None:
    policy = Policy(max_limit=1, max_wait_ns=20_000_000)
    limiter = Limiter(policy=policy, limit=lambda: FixedLimit(1))
    held = limiter.acquire()
    limiter._watchdog.hurry = lambda: None  # type: ignore[method-assign]
    limiter._watchdog._event = threading.Event()  # and nobody sets this one
    before_ns = time.monotonic_ns()
    with pytest.raises(Rejected):
        limiter.acquire()
    assert time.monotonic_ns() - before_ns >= 20_000_000
    held.release()


class Interposed:
    """The limiter's lock, which lets something else happen as it is left."""

    def __init__(self, lock: Any, then: Callable[[], None]) -> None:
        self._lock, self._then = lock, then

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._lock.release()
        then, self._then = self._then, lambda: None
        then()


def test_of_two_who_begin_to_wait_at_once_one_hurries_it() -> None:
    """Each would see two in the queue, and think that the other has said so."""
    limiter, clock = room()
    held = limiter.acquire()
    hurried: list[bool] = []
    limiter._watchdog.hurry = lambda: hurried.append(True)  # type: ignore[method-assign]
    limiter._watchdog.parked = False
    first, second = (
        Ticket(limiter.partition(None), Priority.DEFAULT, clock(), 10**12) for _ in range(2)
    )
    interposed = Interposed(limiter._lock, lambda: limiter.offer(second, clock()) and None)
    limiter._lock = interposed  # type: ignore[assignment]
    limiter.offer(first, clock())
    assert limiter._controller.waiting == 2
    assert hurried
    held.release()
