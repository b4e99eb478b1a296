"""Observers hear each transition once, outside the lock, and cannot do harm."""

from __future__ import annotations

import threading

import pytest

from gunicorn_admission.core.events import Event, EventKind
from gunicorn_admission.core.limits import FixedLimit
from gunicorn_admission.limiter import Limiter, Observer
from gunicorn_admission.testing import FakeClock
from tests.callers import PATIENCE, Caller


class Listener:
    """Writes down what it hears."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def on_event(self, event: Event) -> None:
        self.events.append(event)

    @property
    def kinds(self) -> list[EventKind]:
        return [event.kind for event in self.events]


class Broken(Listener):
    def on_event(self, event: Event) -> None:
        super().on_event(event)
        raise RuntimeError("the dashboard is down")


def limiter(*observers: Observer) -> Limiter:
    return Limiter(limit=lambda: FixedLimit(1), clock=FakeClock(), observers=observers)


def test_an_observer_hears_each_change_once_and_in_order() -> None:
    one, two = Listener(), Listener()
    made = limiter(one, two)
    made.pause()
    made.resume()
    made.set_limit(1)
    made.set_mode("monitor")
    made.close()
    made.close()
    assert one.kinds == two.kinds == [
        EventKind.PAUSED, EventKind.UNPAUSED, EventKind.LIMIT_SET, EventKind.MODE_SET,
        EventKind.CLOSED,
    ]  # fmt: skip
    assert one.events[2].data == {"limit": 1}
    assert one.events[3].data == {"mode": "monitor"}
    assert {event.at_ns for event in one.events} == {made._clock()}


def test_requests_are_no_events() -> None:
    listener = Listener()
    made = limiter(listener)
    with made.acquire():
        made.try_acquire()
    assert listener.events == []


def test_an_observer_can_join_later() -> None:
    listener = Listener()
    made = limiter()
    made.pause()
    made.observe(listener)
    made.resume()
    assert listener.kinds == [EventKind.UNPAUSED]
    assert isinstance(listener, Observer)


def test_one_that_fails_is_reported_once_and_the_others_still_hear(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken, listener = Broken(), Listener()
    made = limiter(broken, listener)
    made.pause()
    made.resume()
    assert broken.kinds == listener.kinds == [EventKind.PAUSED, EventKind.UNPAUSED]
    assert len(caplog.records) == 1
    assert "the dashboard is down" in caplog.text


def test_two_that_fail_are_both_reported(caplog: pytest.LogCaptureFixture) -> None:
    made = limiter(Broken(), Broken())
    made.pause()
    assert len(caplog.records) == 2


def test_a_slow_one_holds_up_who_told_it_and_nobody_else() -> None:
    inside, leave = threading.Event(), threading.Event()

    class Slow:
        def on_event(self, event: Event) -> None:
            inside.set()
            assert leave.wait(PATIENCE)

    made = limiter(Slow())
    caller = Caller(lambda: made.set_limit(1))
    assert inside.wait(PATIENCE)
    with made.acquire():
        assert made.statistics().inflight == 1
    leave.set()
    caller.result()


def test_an_observer_may_ask_the_limiter() -> None:
    seen: list[bool] = []

    class Curious:
        def on_event(self, event: Event) -> None:
            seen.append(made.statistics().paused)

    made = limiter(Curious())
    made.pause()
    assert seen == [True]


def test_what_time_brings_is_told_too() -> None:
    listener, clock = Listener(), FakeClock()
    made = Limiter(limit=lambda: FixedLimit(8), clock=clock, observers=[listener])
    permits = [made.acquire(partition="reports") for _ in range(4)]
    for _ in range(40):
        clock.advance(0.5)
    assert EventKind.STALLED in listener.kinds
    stalled = listener.events[listener.kinds.index(EventKind.STALLED)]
    assert stalled.partition == "reports"
    assert stalled.data["inflight"] == 4
    assert float(stalled.data["oldest_seconds"]) >= 15
    for permit in permits:
        permit.release()
