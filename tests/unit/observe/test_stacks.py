"""Where requests hang: once each, grouped by place, without what a request carries."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from gunicorn_admission.core.events import Event, EventKind
from gunicorn_admission.core.partition import Partition
from gunicorn_admission.core.policy import SECOND, PartitionPolicy
from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import Priority, State
from gunicorn_admission.observe.stacks import StackSink
from gunicorn_admission.testing import FakeClock
from tests.observing import idle, report_of

STALLED = Event(EventKind.STALLED, 0, "/db", {})


def one_place(secret: str, entered: threading.Event, leave: threading.Event) -> None:
    entered.set()
    leave.wait()


def other_place(secret: str, entered: threading.Event, leave: threading.Event) -> None:
    entered.set()
    leave.wait()


class World:
    """Requests that hang in threads of their own, and what is logged of them."""

    def __init__(self, caplog: pytest.LogCaptureFixture, stack: ExitStack) -> None:
        self._caplog = caplog
        self._stack = stack
        self.clock = FakeClock()
        self.hanging: list[tuple[Ticket, int]] = []
        self.sink = StackSink(lambda: list(self.hanging), self.clock)

    def hang(self, name: str = "/db", *, at: object = one_place, seconds: float = 9) -> Ticket:
        ticket = Ticket(Partition(PartitionPolicy(name=name), 9), Priority.DEFAULT, 0)
        ticket.state = State.GRANTED
        ticket.thread = self._stack.enter_context(standing(at))
        self.hanging.append((ticket, round(seconds * SECOND)))
        return ticket

    def written(self) -> list[str]:
        # Only its own: what another test dropped may be collected, and told of, at any time.
        lines = [
            record.getMessage() for record in self._caplog.records if record.module == "stacks"
        ]
        self._caplog.clear()
        return lines


@contextmanager
def standing(at: object) -> Iterator[int]:
    entered, leave = threading.Event(), threading.Event()
    thread = threading.Thread(target=at, args=("s3cret", entered, leave))  # type: ignore[arg-type]
    thread.start()
    entered.wait()
    try:
        assert thread.ident
        yield thread.ident
    finally:
        leave.set()
        thread.join()


@pytest.fixture
def world(caplog: pytest.LogCaptureFixture) -> Iterator[World]:
    caplog.set_level(logging.DEBUG, "gunicorn_admission")
    with ExitStack() as stack:
        yield World(caplog, stack)


def test_requests_in_one_place_are_shown_together(world: World) -> None:
    world.hang(seconds=9)
    world.hang(seconds=12.34)
    world.hang(at=other_place)
    world.sink.on_event(STALLED)
    first, second = world.written()
    assert first.startswith(
        "admission: 2 requests of class '/db' hang, the oldest for 12.3 s, here"
    )
    assert "in one_place" in first and "leave.wait()" in first
    assert "in other_place" in second
    assert "s3cret" not in first + second
    assert "threading.py" not in first.splitlines()[1]  # begins in the application


def test_each_request_is_shown_once(world: World) -> None:
    world.hang()
    world.sink.on_event(STALLED)
    assert len(world.written()) == 1
    world.clock.advance(60)
    world.sink.on_event(STALLED)
    assert world.written() == []


def test_later_ones_are_found_on_a_tick_and_known_places_are_short(world: World) -> None:
    world.hang()
    world.sink.on_event(STALLED)
    world.written()
    world.hang()
    world.sink.report(report_of(idle(stuck=2)))
    assert world.written() == []  # too soon
    world.clock.advance(10)
    for stuck in (0, 2):  # the first tick that sees it waits for others
        world.sink.report(report_of(idle(stuck=stuck)))
        assert world.written() == []
    world.sink.report(report_of(idle(stuck=2)))
    (line,) = world.written()
    assert line.startswith(
        "admission: 1 request of class '/db' hangs, the oldest for 9.0 s, in the"
    )
    assert "\n" not in line and "wait at" in line


def test_a_request_that_has_ended_meanwhile_is_left_out(world: World) -> None:
    world.hang().state = State.ENDED
    world.sink.on_event(STALLED)
    assert world.written() == []


def test_one_whose_thread_is_not_known_is_told_without_a_place(world: World) -> None:
    world.hang().thread = 0
    world.sink.on_event(STALLED)
    (line,) = world.written()
    assert line.endswith("; where is not known")


def test_only_the_five_commonest_places_are_written(world: World) -> None:
    for number in range(7):
        world.hang(f"/{number}", at=one_place)
    world.hang("/6")
    world.sink.on_event(STALLED)
    lines = world.written()
    assert len(lines) == 6
    assert "2 requests of class '/6'" in lines[0]
    assert lines[-1] == "admission: 2 more requests hang in other places"


@pytest.mark.parametrize("kind", set(EventKind) - {EventKind.STALLED, EventKind.STARVED})
def test_other_events_are_nothing_to_it(world: World, kind: EventKind) -> None:
    world.hang()
    world.sink.on_event(Event(kind, 0, None, {}))
    assert world.written() == []


def test_stacks_are_cut_to_their_inner_end(world: World) -> None:
    def deep(
        secret: str, entered: threading.Event, leave: threading.Event, level: int = 40
    ) -> None:
        if level:
            deep(secret, entered, leave, level - 1)
        else:
            one_place(secret, entered, leave)

    world.hang(at=deep)
    world.sink.on_event(STALLED)
    (line,) = world.written()
    assert line.count("in deep") < 12
    assert "in one_place" in line
