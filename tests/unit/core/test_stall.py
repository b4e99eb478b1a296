"""Calls that never end: frozen, stalled, probed, revived."""

from __future__ import annotations

import pytest

from gunicorn_admission.core.events import EventKind
from gunicorn_admission.core.policy import PartitionPolicy
from gunicorn_admission.core.stall import PROBE_INTERVAL_NS
from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import Outcome, Reason, State
from tests.driving import DEFAULT, HIGH, MS, Driver, S

STALLED, RESUMED = EventKind.STALLED, EventKind.RESUMED


def usual(milliseconds: float = 20, limit: int = 32, **policy: object) -> Driver:
    """A limiter whose requests usually take that long."""
    driver = Driver(limit, **policy)
    driver.serve(milliseconds)
    driver.told()
    return driver


def hang(driver: Driver, count: int = 8, partition: str = "(all)") -> list[Ticket]:
    """Let requests hang until their class is stalled."""
    tickets = driver.fill(count, partition)
    driver.advance(5000, step=500)
    assert driver.partition(partition).stalled
    assert driver.told() == [(STALLED, partition)]
    return tickets


# -- frozen: silent for so long that chance is no explanation ----------------------------


def test_a_busy_class_that_goes_silent_is_frozen_at_what_it_holds() -> None:
    driver = usual()
    driver.fill(8)
    driver.advance(49)
    assert driver.partition().room == 32
    driver.advance(1)  # 8 requests x 50 ms = 20 x 20 ms
    assert driver.partition().frozen_at_ns == driver.now_ns
    assert driver.partition().room == 8
    assert driver.arrive().state is State.WAITING


def test_it_is_found_on_arrival_too_and_not_only_by_the_clock() -> None:
    driver = usual()
    driver.fill(8)
    driver.pass_time(50)
    assert driver.arrive().state is not State.GRANTED
    assert driver.partition().room == 8


@pytest.mark.parametrize(
    ("usual_ms", "count", "silence_ms"),
    [
        (20, 4, 100),
        (20, 8, 50),
        (20, 20, 50),  # never under 50 ms, nor under 2.5 service times
        (200, 20, 500),
        (200, 5, 800),
    ],
)
def test_how_long_silence_must_last(usual_ms: float, count: int, silence_ms: float) -> None:
    driver = usual(usual_ms)
    driver.fill(count)
    driver.advance(silence_ms - 0.001)
    assert not driver.partition().frozen_at_ns
    driver.advance(0.001)
    assert driver.partition().frozen_at_ns


def mixed(driver: Driver, slow_ms: float) -> None:
    """Let requests pass of which some take much longer than usual."""
    for _ in range(3):
        driver.serve(10, 60)
        driver.serve(slow_ms, 1)


def test_where_some_take_a_hundred_times_as_long_silence_means_little() -> None:
    driver = Driver(32)
    mixed(driver, 2000)
    driver.fill(8)
    driver.advance(1800, step=100)
    assert driver.arrive().state is State.GRANTED
    driver.advance(1200, step=100)
    assert driver.partition().frozen_at_ns


def test_but_no_longer_once_they_have_not_for_long() -> None:
    driver = Driver(32)
    mixed(driver, 2000)
    driver.serve(10, 200)
    driver.advance(120_000, step=500)
    driver.fill(8)
    driver.advance(200, step=50)
    assert driver.partition().frozen_at_ns


def test_a_hang_that_ended_is_not_what_takes_long() -> None:
    """The next one is noticed as soon as the first."""
    driver = usual()
    hung = driver.fill(8)
    driver.advance(8000, step=500)
    driver.finish(*hung)
    driver.serve(20, 100)
    driver.fill(8)
    driver.advance(200, step=50)
    assert driver.partition().frozen_at_ns


def test_a_class_that_never_finished_anything_is_judged_late() -> None:
    driver = Driver(32)
    driver.fill(8)
    driver.advance(4999)
    assert not driver.partition().frozen_at_ns
    driver.advance(1)
    assert driver.partition().frozen_at_ns


def test_few_requests_are_left_alone() -> None:
    driver = usual()
    driver.fill(3)
    driver.advance(4000, step=100)
    assert not driver.partition().frozen_at_ns


def test_a_small_pool_is_judged_by_fewer() -> None:
    driver = usual(limit=8)
    driver.fill(2)
    driver.advance(200)
    assert driver.partition().frozen_at_ns


def test_silence_begins_with_the_last_completion() -> None:
    driver = usual()
    tickets = driver.fill(9)
    driver.advance(40)
    driver.finish(tickets[0], outcome=Outcome.IGNORE)
    driver.advance(49)
    assert not driver.partition().frozen_at_ns
    driver.advance(1)
    assert driver.partition().frozen_at_ns


def test_silence_begins_when_an_idle_class_becomes_busy() -> None:
    driver = usual()
    driver.advance(60_000)
    driver.fill(20)
    driver.arrive()
    assert not driver.partition().frozen_at_ns


def test_one_slow_request_says_nothing_about_those_that_join_it() -> None:
    driver = usual()
    driver.fill(1)
    driver.advance(3000, step=500)
    driver.fill(20)
    assert driver.arrive().state is State.GRANTED
    driver.advance(49)
    assert not driver.partition().frozen_at_ns


def test_signs_of_overload_are_no_signs_of_life() -> None:
    driver = usual()
    tickets = driver.fill(9)
    driver.advance(49)
    driver.finish(tickets[0], outcome=Outcome.DROP)
    driver.advance(1)
    assert driver.partition().frozen_at_ns
    driver.finish(tickets[1], outcome=Outcome.DROP)
    assert driver.partition().frozen_at_ns
    driver.finish(tickets[2], outcome=Outcome.IGNORE)
    assert not driver.partition().frozen_at_ns
    assert driver.partition().room == 32


def test_a_client_that_left_before_its_request_ran_is_no_sign_of_life() -> None:
    driver = usual()
    tickets = driver.fill(9)
    driver.advance(50)
    driver.abandon(tickets[0])
    assert driver.partition().frozen_at_ns
    assert driver.partition().inflight == 8


def test_a_first_byte_is_a_sign_of_life() -> None:
    driver = usual()
    tickets = driver.fill(9)
    driver.advance(50)
    driver.detach(tickets[0])
    assert not driver.partition().frozen_at_ns
    driver.advance(49)
    assert not driver.partition().frozen_at_ns


def test_what_a_frozen_class_gives_back_it_may_take_again() -> None:
    driver = usual()
    tickets = driver.fill(8)
    driver.advance(50)
    driver.finish(tickets[0], outcome=Outcome.DROP)
    assert driver.arrive().state is State.GRANTED
    assert driver.arrive().state is State.WAITING


def test_other_classes_go_on() -> None:
    driver = usual()
    driver.fill(8)
    driver.advance(50)
    driver.fill(20, "other")


# -- hung: silent for as long again ------------------------------------------------------


def test_waiting_for_a_hung_class_is_no_use() -> None:
    driver = usual()
    driver.fill(8)
    driver.advance(50)
    waiting = driver.arrive(timeout=10_000)
    driver.advance(49)
    assert waiting.state is State.WAITING
    driver.advance(1)
    assert driver.reasons(waiting, driver.arrive()) == [Reason.STALLED] * 2


def test_what_hangs_does_not_use_up_the_limit_of_the_others() -> None:
    """An adaptive limit of 8 with 8 hung requests would let nobody run."""
    driver = usual(limit=8, max_limit=32)
    driver.fill(8)
    driver.advance(50)
    assert driver.arrive(partition="other", timeout=0).state is State.SHED
    waiting = driver.arrive(partition="other", timeout=1000)
    driver.advance(50)
    assert driver.controller.allowed == 16
    assert waiting.state is State.GRANTED
    driver.fill(7, "other")
    assert driver.arrive(partition="other", timeout=0).state is State.SHED


def test_what_a_hung_class_takes_again_does_not_use_up_the_limit_either() -> None:
    driver = usual(limit=8, max_limit=32)
    tickets = driver.fill(8)
    driver.advance(100, step=10)
    assert driver.controller.allowed == 16
    driver.finish(tickets[0], outcome=Outcome.DROP)
    assert driver.controller.allowed == 15
    driver.fill(1)
    assert driver.controller.allowed == 16


def test_the_hard_bound_holds_however_many_hang() -> None:
    driver = usual(limit=8, max_limit=12)
    driver.fill(8)
    driver.advance(100, step=10)
    driver.fill(4, "other")
    assert driver.controller.inflight == driver.controller.allowed == 12


# -- stalled: the oldest are far past their usual time -----------------------------------


def test_a_stalled_class_is_refused_but_for_a_probe_now_and_then() -> None:
    """Each waits twice as long as the one before, since those that hang hold threads."""
    driver = usual()
    hang(driver)
    for wait_ns in (PROBE_INTERVAL_NS, PROBE_INTERVAL_NS, 2 * PROBE_INTERVAL_NS):
        driver.advance(wait_ns / MS - 1, step=100)
        assert driver.reasons(driver.arrive()) == [Reason.STALLED]
        driver.advance(1)
        probe, other, high = driver.arrive(), driver.arrive(), driver.arrive(HIGH)
        assert probe.state is State.GRANTED
        assert driver.reasons(other, high) == [Reason.STALLED] * 2
    driver.fill(5, "other")


@pytest.mark.parametrize(("usual_ms", "age_ms"), [(20, 5000), (400, 5000), (800, 8000)])
def test_the_age_is_five_seconds_or_ten_times_the_usual(usual_ms: float, age_ms: float) -> None:
    driver = usual(usual_ms)
    driver.fill(8)
    driver.advance(age_ms - 1, step=500)
    assert not driver.partition().stalled
    driver.advance(501)
    assert driver.partition().stalled


def test_an_unknown_class_is_given_three_times_as_long() -> None:
    driver = Driver(32)
    driver.fill(8)
    driver.advance(14_999, step=500)
    assert not driver.partition().stalled
    driver.advance(501)
    assert driver.partition().stalled


def test_old_ones_must_be_the_half() -> None:
    driver = usual()
    old = driver.fill(4)
    for _ in range(30):
        young = driver.fill(6)
        driver.advance(200)
        driver.finish(*young)
    assert not driver.partition().stalled
    driver.fill(5)
    driver.advance(500)
    assert not driver.partition().stalled
    assert driver.controller.stalls.stuck == len(old)


@pytest.mark.parametrize(("old", "young", "stalled"), [(2, 4, False), (3, 3, True), (3, 4, False)])
def test_half_is_half(old: int, young: int, stalled: bool) -> None:
    driver = usual()
    driver.fill(old)
    driver.advance(4700)
    driver.pass_time(480)
    quick = driver.fill(young)
    driver.advance(20)
    assert driver.partition().stalled is stalled
    assert {t.state for t in quick} == {State.GRANTED}


def test_two_old_requests_of_two_are_a_stall_with_a_way_out() -> None:
    """Too few to be frozen for their silence, but not to be judged by their age."""
    driver = usual()
    hang(driver, 2)
    driver.advance(1000)
    probe = driver.arrive()
    driver.advance(20)
    driver.finish(probe)
    assert driver.told() == [(RESUMED, "(all)")]


def test_one_old_request_alone_is_no_stall() -> None:
    driver = usual()
    driver.fill(1)
    driver.advance(60_000, step=500)
    assert not driver.partition().stalled
    assert driver.controller.stalls.stuck == 1


def test_a_probe_that_was_quick_ends_the_stall() -> None:
    driver = usual()
    hang(driver)
    driver.advance(1000)
    probe = driver.arrive()
    driver.advance(20)
    driver.finish(probe)
    assert driver.told() == [(RESUMED, "(all)")]
    assert not driver.partition().stalled
    driver.fill(20)


def test_a_probe_that_fails_does_not() -> None:
    driver = usual()
    hang(driver)
    driver.advance(1000)
    probe = driver.arrive()
    driver.finish(probe, outcome=Outcome.DROP)
    assert driver.partition().stalled
    assert driver.reasons(driver.arrive()) == [Reason.STALLED]


def test_a_probe_whose_client_left_does_not() -> None:
    driver = usual()
    hang(driver)
    driver.advance(1000)
    driver.abandon(driver.arrive())
    assert driver.partition().stalled
    assert driver.told() == []


def test_what_comes_back_late_calls_for_a_probe_at_once() -> None:
    driver = usual()
    tickets = hang(driver)
    assert driver.reasons(driver.arrive()) == [Reason.STALLED]
    driver.finish(tickets[0])
    assert driver.partition().stalled
    assert driver.arrive().state is State.GRANTED
    assert driver.reasons(driver.arrive()) == [Reason.STALLED]


def test_what_is_given_up_is_not_replaced() -> None:
    """Drivers give up after 30 s; each time one did, the next arrival would hang for 30 s."""
    driver = usual()
    tickets = hang(driver)
    for ticket in tickets:
        driver.finish(ticket, outcome=Outcome.DROP)
        assert driver.reasons(driver.arrive()) == [Reason.STALLED]
    assert driver.partition().inflight == 0


@pytest.mark.parametrize(
    ("usual_ms", "rtt_ms", "taught"),
    [
        (None, 10_000, True),  # the first of its class: nothing is known yet
        (None, 15_000, False),
        (800, 6000, True),
        (800, 9000, False),
        (20, 4999, True),
        (20, 5000, False),
    ],
)
def test_what_is_a_long_request_and_what_the_end_of_a_hang(
    usual_ms: float | None, rtt_ms: float, taught: bool
) -> None:
    driver = Driver(32) if usual_ms is None else usual(usual_ms)
    before_ns = driver.controller.congestion.rtt_ns
    (ticket,) = driver.fill(1)
    driver.pass_time(rtt_ms)
    driver.finish(ticket)
    assert (driver.controller.congestion.rtt_ns != before_ns) is taught


def test_late_ones_do_not_teach_the_limit() -> None:
    driver = usual()
    tickets = hang(driver)
    before_ns = driver.controller.congestion.rtt_ns
    driver.finish(tickets[0])
    assert driver.controller.congestion.rtt_ns == before_ns


def test_a_probe_is_not_spent_on_who_cannot_make_its_deadline() -> None:
    driver = usual()
    hang(driver)
    driver.advance(1000)
    assert driver.arrive(deadline=0).state is State.SHED
    assert driver.arrive().state is State.GRANTED


def test_a_probe_needs_a_slot_like_everybody() -> None:
    driver = usual(limit=8)
    hang(driver, 6)
    driver.fill(2, "other")
    driver.advance(1000)
    assert driver.controller.inflight == driver.controller.allowed == 8
    assert driver.reasons(driver.arrive()) == [Reason.STALLED]


def test_a_class_at_its_cap_is_not_probed() -> None:
    driver = Driver(32, partitions=[PartitionPolicy(name="(all)", cap=8)])
    driver.serve(20)
    driver.told()
    hang(driver, 8)
    driver.advance(1000)
    assert driver.reasons(driver.arrive()) == [Reason.STALLED]


def test_those_who_wait_for_a_class_that_stalls_are_told() -> None:
    driver = Driver(8, partitions=[PartitionPolicy(name="a", cap=2)])
    driver.serve(20, partition="a")
    a = driver.fill(1, "a")
    driver.advance(4000)
    a += driver.fill(1, "a")
    waiting = driver.arrive(partition="a", timeout=60_000)
    assert waiting.state is State.WAITING
    driver.advance(6000, step=10)
    assert driver.reasons(waiting) == [Reason.STALLED]


# -- lost threads ------------------------------------------------------------------------


def revived(driver: Driver) -> list[Ticket]:
    """Hang some for ever, and let a probe show that the class works again."""
    lost = hang(driver)
    driver.advance(1000)
    probe = driver.arrive()
    driver.advance(20)
    driver.finish(probe)
    driver.told()
    return lost


def test_requests_that_never_return_do_not_bring_a_revived_class_back_down() -> None:
    driver = usual()
    revived(driver)
    for _ in range(100):
        ticket = driver.arrive()
        assert ticket.state is State.GRANTED
        driver.advance(20)
        driver.finish(ticket)
        driver.advance(480)  # a little traffic: silence between two requests is no sign
    assert driver.told() == []


def test_a_revived_class_is_frozen_and_stalled_like_any_other() -> None:
    driver = usual()
    revived(driver)
    driver.advance(10_000, step=500)
    driver.fill(4)
    driver.advance(100)
    assert driver.partition().frozen_at_ns
    driver.advance(5400, step=100)
    assert driver.partition().stalled


def test_a_revived_class_is_judged_by_the_pace_of_those_that_live() -> None:
    driver = usual()
    revived(driver)
    driver.fill(4)
    driver.advance(100)
    assert driver.partition().frozen_at_ns
    waiting = driver.arrive(timeout=10_000)
    driver.advance(99)
    assert waiting.state is State.WAITING
    driver.advance(1)
    assert driver.reasons(waiting) == [Reason.STALLED]


def test_lost_threads_do_not_use_up_the_limit() -> None:
    driver = usual(limit=8, max_limit=32)
    lost = revived(driver)
    assert driver.controller.allowed == 16
    more = driver.fill(8)
    driver.finish(lost.pop(), outcome=Outcome.DROP)
    assert driver.controller.allowed == driver.controller.inflight == 15
    driver.finish(*more)
    driver.finish(*lost)
    assert driver.controller.allowed == 8


def test_a_lost_request_that_changes_its_class_is_lost_there_too() -> None:
    driver = usual(limit=8, max_limit=32)
    lost = revived(driver)
    other = driver.partition("other")
    driver.controller.reclassify(lost[0], other, driver.now_ns)
    driver.check()
    driver.advance(15_000)
    assert lost[0] in other.stuck
    assert lost[0] not in driver.partition().stuck


def test_stuck_requests_are_counted_and_forgotten() -> None:
    driver = usual()
    tickets = hang(driver)
    assert driver.controller.stalls.stuck == 8
    driver.finish(*tickets)
    driver.advance(500)
    assert driver.controller.stalls.stuck == 0


def test_the_pool_is_starved_when_too_few_threads_are_left() -> None:
    driver = usual(limit=8, min_limit=2)
    tickets = driver.fill(6)
    driver.advance(6000, step=500)
    assert driver.controller.starved
    assert [kind for kind, _ in driver.told()] == [STALLED, EventKind.STARVED]
    driver.finish(tickets[0], outcome=Outcome.DROP)
    driver.advance(500)
    assert [kind for kind, _ in driver.told()] == [EventKind.REPLENISHED]
    assert not driver.controller.starved


def test_one_stuck_thread_starves_a_pool_that_needs_it() -> None:
    driver = usual(limit=2, min_limit=1)
    driver.fill(1)
    driver.advance(5000, step=500)
    assert driver.controller.starved


def test_an_idle_pool_is_not_starved_however_small() -> None:
    driver = Driver(1, min_limit=1)
    driver.advance(60_000, step=500)
    assert not driver.controller.starved


def test_ages_are_of_the_oldest() -> None:
    driver = Driver(8)
    assert driver.partition().oldest_age_ns(driver.now_ns) == 0
    driver.fill(1)
    driver.advance(1000)
    driver.fill(1)
    driver.advance(1000)
    assert driver.partition().oldest_age_ns(driver.now_ns) == 2 * S


def test_silence_is_measured_by_class() -> None:
    driver = usual()
    driver.serve(20, partition="other")
    driver.fill(8)
    for _ in range(10):
        driver.serve(10, 1, partition="other")
    assert driver.partition().frozen_at_ns
    assert not driver.partition("other").frozen_at_ns
    assert driver.arrive(DEFAULT, "other").state is State.GRANTED
