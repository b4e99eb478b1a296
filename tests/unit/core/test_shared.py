"""A bound beyond the limiter: taken with each slot, given back with it, asked again in time."""

from __future__ import annotations

import pytest

from gunicorn_admission.core.types import Mode, Outcome, Priority, Reason, State
from gunicorn_admission.scoreboard import NodeSlots, Page
from gunicorn_admission.scoreboard.page import Column
from tests.driving import DEFAULT, LOW, MS, Driver, S

GRANTED, WAITING, SHED = State.GRANTED, State.WAITING, State.SHED


def pair(node: int, limit: int = 8, node_cap: int | None = None) -> tuple[Driver, Driver]:
    """Two limiters of one node."""
    page = Page(used=2)
    caps = {} if node_cap is None else {"/db": (node_cap, 1)}
    drivers = []
    for row in range(2):
        page.set(Column.PID, row, row + 1)
        driver = Driver(limit, max_wait_ns=500 * MS)
        driver.controller.shared = NodeSlots(page, row, node, caps)
        drivers.append(driver)
    return drivers[0], drivers[1]


def total(driver: Driver) -> int:
    assert driver.controller.shared is not None
    return driver.controller.shared.total()


def test_both_together_never_run_more_than_the_bound() -> None:
    one, two = pair(4)
    one.fill(3)
    two.fill(1)
    assert one.arrive().state is WAITING
    assert two.arrive().state is WAITING
    assert two.arrive(LOW).state is SHED
    assert total(one) == 4


@pytest.mark.parametrize("outcome", Outcome)
def test_what_ends_here_lets_somebody_run_there(outcome: Outcome) -> None:
    one, two = pair(2)
    first, _ = one.fill(2)
    waiting = two.arrive()
    one.finish(first, outcome=outcome)
    assert waiting.state is WAITING
    one.advance(10)
    two.advance(10)
    assert waiting.state is GRANTED
    assert waiting.delay_ns == 10 * MS
    assert total(one) == 2


def test_a_waiter_here_gets_what_ends_here_if_nobody_else_asks() -> None:
    one, _ = pair(2)
    first, _ = one.fill(2)
    waiting = one.arrive()
    one.finish(first)
    assert waiting.state is GRANTED


def test_the_busy_one_leaves_a_slot_to_the_other_that_waits() -> None:
    one, two = pair(2)
    first, _ = one.fill(2)
    theirs, ours = two.arrive(), one.arrive()
    one.finish(first)
    assert ours.state is WAITING
    two.advance(10)
    assert theirs.state is GRANTED
    one.advance(10)
    assert ours.state is WAITING
    assert total(one) == 2


def test_all_ways_out_give_the_slot_back() -> None:
    one, _ = pair(4)
    gone, streaming, finished, twice = one.fill(4)
    one.abandon(gone)
    one.detach(streaming)
    assert total(one) == 2
    one.finish(streaming, finished, twice)
    one.controller.finish(twice, one.now_ns, Outcome.SUCCESS)
    assert total(one) == 0


def test_a_class_that_has_no_room_on_the_node_lets_others_by() -> None:
    one, two = pair(4, node_cap=1)
    one.fill(1, "/db")
    assert two.arrive(partition="/db").state is WAITING
    assert two.arrive(partition="/a").state is GRANTED
    other = two.arrive(partition="/a")
    assert other.state is GRANTED
    assert total(one) == 3


def test_a_class_found_out_later_is_counted_if_it_has_room_or_must_be() -> None:
    one, two = pair(4, node_cap=1)
    (ticket,) = one.fill(1)
    (other,) = two.fill(1)
    assert one.controller.reclassify(ticket, one.partition("/db"), one.now_ns, False)
    assert not two.controller.reclassify(other, two.partition("/db"), two.now_ns, False)
    assert other.partition.name == "(all)"
    assert two.controller.reclassify(other, two.partition("/db"), two.now_ns)
    assert other.partition.name == "/db"
    one.finish(ticket)
    two.finish(other)
    assert two.arrive(partition="/db").state is GRANTED


@pytest.mark.parametrize("mode", [Mode.MONITOR, Mode.OFF])
def test_where_nothing_is_refused_all_are_counted(mode: Mode) -> None:
    one, two = pair(1)
    two.fill(1)
    waiting = one.arrive()
    one.controller.set_mode(mode, one.now_ns)
    assert waiting.state is GRANTED
    more = one.arrive()
    assert more.state is GRANTED
    assert total(one) == 3
    one.finish(waiting, more)
    assert total(one) == 1


def test_who_waits_for_the_node_is_refused_when_its_time_is_up() -> None:
    one, two = pair(1)
    two.fill(1)
    waiting = one.arrive()
    one.advance(501, step=10)
    assert one.reasons(waiting) == [Reason.EXPIRED]
    assert total(one) == 1


def test_a_probe_of_a_stalled_class_needs_a_slot_of_the_node_too() -> None:
    one, two = pair(4)
    one.serve(10, partition="/db")
    one.fill(3, "/db")
    one.advance(20_000, step=100)
    assert one.partition("/db").stalled
    (last,) = two.fill(1)
    one.pass_time(10 * S / MS)
    assert one.arrive(DEFAULT, "/db").state is SHED
    two.finish(last)
    one.pass_time(10 * S / MS)
    assert one.arrive(Priority.HIGH, "/db").state is GRANTED
