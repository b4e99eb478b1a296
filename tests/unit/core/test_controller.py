"""The state machine: offer, finish, expire, hand over, change."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from gunicorn_admission.core.events import EventKind
from gunicorn_admission.core.policy import PartitionPolicy
from gunicorn_admission.core.snapshot import snapshot
from gunicorn_admission.core.types import Mode, Outcome, Priority, Reason, State
from tests.driving import DEFAULT, HIGH, LOW, MS, Driver, S, Script

GRANTED, WAITING, SHED, ENDED = State.GRANTED, State.WAITING, State.SHED, State.ENDED


def full(limit: int = 2, **policy: object) -> Driver:
    """A limiter with every slot taken."""
    driver = Driver(limit, **policy)
    driver.fill(limit)
    return driver


def overloaded(**policy: object) -> Driver:
    """A limiter whose queue has stood for so long that the flag is set."""
    driver = full(2, **{"max_wait_ns": 500 * MS} | policy)
    driver.controller.congestion.rtt_ns = 2 * MS
    for _ in range(20):
        driver.arrive(HIGH)
        driver.advance(25)
    assert driver.controller.congestion.overloaded
    for ticket in tuple(driver.controller.waitlist):
        driver.abandon(ticket)
    driver.told()
    return driver


# -- arrival -----------------------------------------------------------------------------


def test_a_free_slot_is_given_at_once() -> None:
    driver = Driver(2)
    ticket = driver.arrive()
    assert ticket.state is GRANTED
    assert ticket.granted_ns == ticket.arrived_ns == driver.now_ns
    assert ticket.delay_ns == 0
    assert driver.controller.inflight == ticket.inflight == 1


@pytest.mark.parametrize("limit", [1, 3, 8])
def test_no_more_than_the_limit_run(limit: int) -> None:
    driver = full(limit)
    assert driver.arrive().state is not GRANTED
    assert driver.controller.inflight == limit


def test_without_a_free_slot_high_and_default_wait_and_low_does_not() -> None:
    driver = full()
    assert [driver.arrive(p).state for p in (HIGH, DEFAULT, LOW)] == [WAITING, WAITING, SHED]
    assert driver.tickets[-1].reason is Reason.OVERLOADED


def test_low_waits_where_the_policy_lets_it() -> None:
    assert full(low_max_wait_ns=5 * MS).arrive(LOW).state is WAITING


def test_the_queue_delay_is_the_time_from_arrival_to_the_slot() -> None:
    driver = Driver(1)
    held = driver.arrive()
    waiting = driver.arrive(age=3)
    driver.pass_time(7)
    driver.finish(held)
    assert waiting.delay_ns == 10 * MS
    assert driver.arrive(age=2, timeout=9).state is WAITING
    driver.finish(waiting)
    assert driver.controller.totals.delay_sum_ns == 12 * MS


def test_who_would_wait_too_long_is_refused_at_once() -> None:
    driver = full(2)
    driver.controller.congestion.rtt_ns = driver.partition().rtt_ns = 60 * MS
    # Two slots are freed each 60 ms: the third in the queue waits 90 ms, the fourth 120.
    waiting = [driver.arrive() for _ in range(3)]
    assert {ticket.state for ticket in waiting} == {WAITING}
    assert driver.reasons(driver.arrive()) == [Reason.PREDICTED_WAIT]


def test_only_those_who_would_be_served_earlier_count() -> None:
    driver = full(2)
    driver.controller.congestion.rtt_ns = 60 * MS
    for _ in range(3):
        driver.arrive(DEFAULT)
    assert driver.arrive(HIGH).state is WAITING


def test_a_higher_priority_is_not_behind_those_of_its_own_class() -> None:
    driver = full(2)
    driver.controller.congestion.rtt_ns = driver.partition().rtt_ns = 60 * MS
    for _ in range(3):
        driver.arrive(DEFAULT)
    assert driver.arrive(HIGH).state is WAITING


def test_a_capped_class_is_predicted_by_its_own_pace() -> None:
    driver = Driver(8, partitions=[PartitionPolicy(name="a", cap=1)])
    driver.fill(1, "a")
    driver.controller.congestion.rtt_ns = 5 * MS
    driver.partition("a").rtt_ns = 80 * MS
    assert driver.arrive(partition="a").state is WAITING
    assert driver.reasons(driver.arrive(partition="a")) == [Reason.PREDICTED_WAIT]


def test_the_time_already_waited_is_a_part_of_the_wait() -> None:
    driver = full(1)
    driver.controller.congestion.rtt_ns = driver.partition().rtt_ns = 30 * MS
    assert driver.arrive(age=60).state is WAITING
    driver.abandon(driver.tickets[-1])
    assert driver.reasons(driver.arrive(age=80)) == [Reason.PREDICTED_WAIT]


def test_after_a_shrink_those_beyond_the_limit_are_waited_for() -> None:
    driver = full(8, max_wait_ns=100 * MS)
    driver.controller.congestion.rtt_ns = 110 * MS
    driver.controller.set_limit(1, driver.now_ns)
    # Of eight in flight all eight must end before the next may run: about a service time.
    assert driver.reasons(driver.arrive()) == [Reason.PREDICTED_WAIT]
    driver.controller.congestion.rtt_ns = 90 * MS
    assert driver.arrive().state is WAITING


def test_a_full_queue_refuses() -> None:
    driver = full(1, max_queue=2)
    driver.arrive()
    driver.arrive()
    assert driver.reasons(driver.arrive()) == [Reason.QUEUE_FULL]
    assert driver.controller.waiting == 2


def test_no_queue_at_all() -> None:
    driver = full(1, max_queue=0)
    assert driver.reasons(driver.arrive(HIGH)) == [Reason.QUEUE_FULL]


def test_a_full_queue_gives_up_the_lowest_and_oldest_for_a_higher() -> None:
    driver = full(1, max_queue=3)
    high, first, second = driver.arrive(HIGH), driver.arrive(), driver.arrive()
    newcomer = driver.arrive(HIGH)
    assert newcomer.state is WAITING
    assert driver.reasons(first, second, high) == [Reason.EVICTED, None, None]
    assert driver.controller.changed == [first]
    assert driver.arrive(HIGH).state is WAITING
    assert driver.reasons(second, driver.arrive(HIGH)) == [Reason.EVICTED, Reason.QUEUE_FULL]


def test_nobody_is_evicted_by_who_is_refused_anyway() -> None:
    driver = full(1, max_queue=1)
    waiting = driver.arrive()
    driver.controller.congestion.rtt_ns = 150 * MS
    assert driver.reasons(driver.arrive(HIGH)) == [Reason.PREDICTED_WAIT]
    assert waiting.state is WAITING


def test_those_past_their_time_do_not_fill_the_queue() -> None:
    driver = full(1, max_queue=2)
    late = [driver.arrive(), driver.arrive()]
    driver.pass_time(100)
    assert driver.arrive().state is WAITING
    assert driver.reasons(*late) == [Reason.EXPIRED] * 2


# -- the caller's own bounds -------------------------------------------------------------


@pytest.mark.parametrize("priority", [HIGH, DEFAULT])
def test_a_timeout_replaces_the_policys(priority: Priority) -> None:
    driver = full(1)
    short, long = driver.arrive(priority, timeout=20), driver.arrive(priority, timeout=800)
    driver.advance(20)
    assert driver.reasons(short, long) == [Reason.EXPIRED, None]
    driver.advance(779)
    assert long.state is WAITING
    driver.advance(1)
    assert driver.reasons(long) == [Reason.EXPIRED]


def test_a_timeout_of_nothing_does_not_wait() -> None:
    for priority in Priority:
        driver = full(1, low_max_wait_ns=50 * MS)
        assert driver.reasons(driver.arrive(priority, timeout=0)) == [Reason.OVERLOADED]


def test_a_timeout_does_not_let_low_wait_longer_than_the_policy() -> None:
    assert full(1).arrive(LOW, timeout=5000).state is SHED
    driver = full(1, low_max_wait_ns=50 * MS)
    long, short = driver.arrive(LOW, timeout=5000), driver.arrive(LOW, timeout=10)
    driver.advance(10)
    assert driver.reasons(long, short) == [None, Reason.EXPIRED]
    driver.advance(40)
    assert driver.reasons(long) == [Reason.EXPIRED]


def test_a_timeout_is_not_cut_short_by_overload() -> None:
    driver = overloaded()
    ticket = driver.arrive(timeout=400)
    driver.advance(399, step=25)
    assert ticket.state is WAITING


def test_a_deadline_that_cannot_be_met_is_refused_though_a_slot_is_free() -> None:
    driver = Driver(4)
    driver.serve(50)
    assert driver.arrive(deadline=50).state is GRANTED
    driver.partition().next_probe_ns = driver.now_ns + S
    for priority in Priority:
        assert driver.reasons(driver.arrive(priority, deadline=40)) == [Reason.DEADLINE]
    assert driver.reasons(driver.arrive(deadline=40, timeout=0)) == [Reason.DEADLINE]


def test_a_class_slower_than_its_deadline_is_looked_at_once_a_second() -> None:
    """It was slow for a while, so its mean is; if nobody ran it would stay slow for ever."""
    driver = Driver(4)
    driver.serve(1000)
    granted = []
    for _ in range(5000):
        ticket = driver.arrive(deadline=500)
        if ticket.state is GRANTED:
            granted.append(driver.now_ns)
            driver.finish(ticket)
            driver.partition().sample(10 * MS)  # quick now
        driver.advance(10)
    gaps = [b - a for a, b in itertools.pairwise(granted)]
    assert min(gaps[:8]) >= S
    assert driver.arrive(deadline=500).state is GRANTED


def test_not_even_as_a_probe_does_one_run_whose_deadline_is_past() -> None:
    assert Driver(4).arrive(deadline=-1, age=5).state is SHED


def test_who_would_get_its_slot_too_late_is_refused_at_once() -> None:
    driver = full(1)
    driver.controller.congestion.rtt_ns = driver.partition().rtt_ns = 50 * MS
    assert driver.arrive(deadline=100).state is WAITING
    driver.abandon(driver.tickets[-1])
    assert driver.reasons(driver.arrive(deadline=99)) == [Reason.DEADLINE]


@pytest.mark.parametrize(
    ("priority", "retries", "refused_after"),
    [(HIGH, False, 10_000), (HIGH, True, 500), (DEFAULT, False, 500)],
)
def test_what_is_lost_when_it_is_refused_waits_until_its_sender_gives_up(
    priority: Priority, retries: bool, refused_after: int
) -> None:
    policy = PartitionPolicy(name="git", retries=retries)
    driver = Driver(1, max_wait_ns=500 * MS, partitions=[policy])
    driver.fill(1)
    ticket = driver.arrive(priority, partition="git", deadline=10_000)
    driver.advance(refused_after - 100)
    assert ticket.state is WAITING
    driver.advance(200)
    assert ticket.state is SHED


def test_the_last_refusal_that_a_subscription_bears_is_not_given_for_a_long_queue() -> None:
    driver = overloaded(partitions=[PartitionPolicy(name="shop", max_refusals=4)])
    driver.controller.congestion.rtt_ns = S
    for _ in range(3):
        assert driver.arrive(partition="shop", deadline=5_000).state is SHED
    fourth = driver.arrive(partition="shop", deadline=5_000)
    assert (fourth.priority, fourth.state) == (HIGH, WAITING)


def test_what_is_lost_when_it_is_refused_waits_though_the_queue_is_long() -> None:
    driver = overloaded(partitions=[PartitionPolicy(name="git", retries=False)])
    driver.controller.congestion.rtt_ns = S
    assert driver.reasons(driver.arrive(HIGH)) == [Reason.PREDICTED_WAIT]
    assert driver.arrive(HIGH, partition="git", deadline=10_000).state is WAITING
    assert driver.reasons(driver.arrive(HIGH, partition="git", deadline=500)) == [Reason.DEADLINE]


def test_a_waiter_goes_when_its_deadline_becomes_hopeless() -> None:
    driver = full(1)
    driver.partition().rtt_ns = 20 * MS
    ticket = driver.arrive(deadline=60)
    driver.advance(40)
    assert ticket.state is WAITING
    driver.advance(0.001)
    assert driver.reasons(ticket) == [Reason.DEADLINE]


def test_a_slot_is_not_handed_to_who_can_no_longer_use_it() -> None:
    driver = Driver(1)
    held = driver.arrive()
    hopeless, fine = driver.arrive(deadline=60), driver.arrive()
    driver.pass_time(10)
    driver.partition().rtt_ns = 55 * MS
    driver.finish(held)
    assert driver.reasons(hopeless) == [Reason.DEADLINE]
    assert fine.state is GRANTED


def test_the_reason_of_an_expiry_does_not_depend_on_what_happened_since() -> None:
    driver = overloaded(max_queue=64)
    ticket = driver.arrive(deadline=60_000)
    longest_ms = (ticket.expires_ns - driver.now_ns) / MS
    driver.controller.congestion.overloaded = False
    driver.advance(longest_ms)
    assert driver.reasons(ticket) == [Reason.EXPIRED]


# -- handing over ------------------------------------------------------------------------


def test_a_freed_slot_goes_to_the_oldest_of_the_highest() -> None:
    driver = full(1)
    order = [driver.arrive(p) for p in (DEFAULT, HIGH, DEFAULT, HIGH)]
    granted = driver.tickets[0]
    for expected in (order[1], order[3], order[0], order[2]):
        driver.finish(granted)
        assert expected.state is GRANTED
        granted = expected
    assert driver.controller.changed == [order[1], order[3], order[0], order[2]]


def test_a_waiter_is_not_overtaken_by_an_arrival() -> None:
    driver = full(1)
    waiting = driver.arrive(DEFAULT)
    assert driver.arrive(HIGH).state is WAITING
    driver.finish(driver.tickets[0])
    assert driver.arrive(HIGH).state is WAITING
    assert waiting.state is WAITING  # the earlier HIGH went first
    assert driver.tickets[2].state is GRANTED


def test_a_waiter_past_its_time_does_not_get_the_slot_of_the_next() -> None:
    driver = full(1)
    late = driver.arrive(timeout=10)
    fresh = driver.arrive(timeout=50)
    driver.pass_time(10)
    driver.finish(driver.tickets[0])
    assert driver.reasons(late) == [Reason.EXPIRED]
    assert fresh.state is GRANTED
    assert fresh.delay_ns == 10 * MS


def test_each_goes_at_its_own_time_though_nobody_ticks() -> None:
    driver = full(1)
    late = [driver.arrive(timeout=10), driver.arrive(timeout=20)]
    fresh = driver.arrive(timeout=90)
    driver.pass_time(10)
    driver.arrive(LOW)
    assert driver.reasons(*late) == [Reason.EXPIRED, None]
    driver.pass_time(10)
    driver.finish(driver.tickets[0])
    assert driver.reasons(*late) == [Reason.EXPIRED] * 2
    assert fresh.state is GRANTED


def test_one_release_may_let_several_run() -> None:
    """A shrunk limit drains; when it grows again every free slot is filled at once."""
    driver = full(4)
    driver.controller.set_limit(1, driver.now_ns)
    waiting = [driver.arrive() for _ in range(4)]
    driver.finish(*driver.tickets[:3])
    assert {t.state for t in waiting} == {WAITING}
    driver.controller.set_limit(4, driver.now_ns)
    driver.check()
    assert [t.state for t in waiting] == [GRANTED, GRANTED, GRANTED, WAITING]


def test_a_class_at_its_cap_does_not_hold_up_the_others() -> None:
    driver = Driver(4, partitions=[PartitionPolicy(name="a", cap=2)])
    a = driver.fill(2, "a")
    b = driver.fill(2, "b")
    blocked, free = driver.arrive(HIGH, "a"), driver.arrive(DEFAULT, "b")
    driver.finish(b[0])
    assert (blocked.state, free.state) == (WAITING, GRANTED)
    driver.finish(a[0])
    assert blocked.state is GRANTED


def test_when_the_old_ones_are_too_old_the_newest_go_first() -> None:
    driver = full(1, max_wait_ns=500 * MS)
    held = driver.tickets[0]
    waiting = [driver.arrive(timeout=5000) for _ in range(3)]
    driver.pass_time(200)
    driver.finish(held)
    assert waiting[0].state is GRANTED  # not overloaded: in order
    driver.controller.congestion.overloaded = True
    driver.finish(waiting[0])
    assert [t.state for t in waiting[1:]] == [WAITING, GRANTED]


def test_the_owner_is_woken_once_under_the_lock() -> None:
    class Wakeable:
        calls = 0

        def notify(self, n: int = 1) -> None:
            self.calls += n

    driver = full(1)
    ticket = driver.arrive()
    ticket.wake = wake = Wakeable()
    driver.finish(driver.tickets[0])
    assert wake.calls == 1
    driver.finish(ticket)
    driver.tick()
    assert wake.calls == 1


# -- the end -----------------------------------------------------------------------------


def test_a_ticket_ends_once() -> None:
    driver = full(2)
    ticket = driver.tickets[0]
    driver.finish(ticket)
    for outcome in Outcome:
        driver.finish(ticket, outcome=outcome)
    assert driver.controller.inflight == 1
    assert driver.controller.totals.released_twice == 3


def test_only_what_runs_can_end() -> None:
    driver = full(1)
    waiting, shed = driver.arrive(), driver.arrive(timeout=0)
    driver.finish(waiting, shed)
    assert (waiting.state, shed.state) == (WAITING, SHED)
    assert driver.controller.inflight == 1


def test_a_client_that_leaves_the_queue_makes_room_in_it() -> None:
    driver = full(1, max_queue=1)
    ticket = driver.arrive()
    driver.abandon(ticket)
    assert driver.reasons(ticket) == [Reason.ABANDONED]
    assert driver.controller.totals.abandoned == 1
    assert driver.arrive().state is WAITING


def test_a_client_that_leaves_before_its_turn_frees_the_slot() -> None:
    driver = full(1)
    waiting = driver.arrive()
    driver.abandon(driver.tickets[0])
    assert driver.tickets[0].state is ENDED
    assert waiting.state is GRANTED
    assert driver.controller.totals.abandoned == 1
    assert driver.controller.limit.limit == 1


def test_who_left_teaches_nothing() -> None:
    limit = Script(2)
    driver = Driver(limit)
    driver.abandon(driver.arrive())
    assert limit.samples == []


def test_leaving_late_changes_nothing() -> None:
    driver = full(1)
    shed = driver.arrive(timeout=0)
    ended = driver.tickets[0]
    driver.finish(ended)
    for ticket in (shed, ended):
        before = ticket.state
        driver.abandon(ticket)
        assert ticket.state is before
    totals = driver.controller.totals
    assert (totals.abandoned, totals.released_twice) == (0, 0)


@pytest.mark.parametrize(
    ("outcome", "samples"),
    [
        (Outcome.SUCCESS, [(30 * MS, False)]),
        (Outcome.IGNORE, []),
        (Outcome.DROP, [(30 * MS, True)]),
    ],
)
def test_what_the_limit_hears(outcome: Outcome, samples: list[tuple[int, bool]]) -> None:
    limit = Script(4)
    driver = Driver(limit)
    driver.fill(1)
    ticket = driver.arrive(partition="a")
    driver.pass_time(30)
    driver.finish(ticket, outcome=outcome)
    assert [(s["rtt_ns"], s["dropped"]) for s in limit.samples] == samples
    for sample in limit.samples:
        assert (sample["inflight"], sample["partition"]) == (2, "a")
        assert sample["now_ns"] == driver.now_ns


def test_a_sample_leaves_out_the_wait_and_the_client() -> None:
    limit = Script(1)
    driver = Driver(limit)
    first = driver.arrive()
    second = driver.arrive()
    driver.pass_time(40)
    driver.finish(first)
    driver.pass_time(50)
    second.blocked_ns = 20 * MS
    driver.finish(second)
    assert [s["rtt_ns"] for s in limit.samples] == [40 * MS, 30 * MS]


def test_a_sample_ends_with_the_first_byte() -> None:
    limit = Script(1)
    driver = Driver(limit)
    ticket = driver.arrive()
    driver.pass_time(10)
    ticket.sampled_at_ns = driver.now_ns
    driver.pass_time(60_000)
    driver.finish(ticket)
    assert [s["rtt_ns"] for s in limit.samples] == [10 * MS]


@pytest.mark.parametrize(
    "policy", [PartitionPolicy(name="a", sampled=False), PartitionPolicy(name="a", stream=True)]
)
def test_what_is_no_measure_of_a_request_is_no_sample(policy: PartitionPolicy) -> None:
    limit = Script(1)
    driver = Driver(limit, partitions=[policy])
    ticket = driver.arrive(partition="a")
    driver.pass_time(10)
    driver.finish(ticket)
    assert limit.samples == []


def test_no_time_at_all_is_no_sample() -> None:
    limit = Script(1)
    driver = Driver(limit)
    ticket = driver.arrive()
    driver.finish(ticket)
    late = driver.arrive()
    driver.pass_time(5)
    late.blocked_ns = S
    driver.finish(late)
    assert limit.samples == []


def test_a_limit_that_moved_is_followed_at_once() -> None:
    limit = Script(1)
    driver = Driver(limit, max_limit=8)
    held = driver.arrive()
    waiting = [driver.arrive() for _ in range(3)]
    limit.limit = 3
    driver.finish(held, outcome=Outcome.IGNORE)
    assert {t.state for t in waiting} == {GRANTED}


@pytest.mark.parametrize("limit", [9, 100])
def test_no_limit_is_above_the_hard_bound(limit: int) -> None:
    driver = Driver(Script(limit), max_limit=8)
    assert driver.controller.allowed == 8
    driver.fill(8)
    assert driver.arrive(timeout=0).state is SHED


# -- streams -----------------------------------------------------------------------------


def test_a_detached_response_frees_its_slot_but_not_its_thread() -> None:
    driver = Driver(Script(2), max_limit=3)
    ticket = driver.arrive()
    driver.detach(ticket)
    assert driver.controller.inflight == 0
    driver.fill(2)
    assert driver.controller.allowed == 2
    driver.detach(driver.tickets[1])
    assert driver.controller.allowed == 1
    driver.finish(ticket)
    assert driver.controller.allowed == 2


def test_detaching_lets_the_next_run() -> None:
    driver = Driver(Script(1), max_limit=2)
    ticket = driver.arrive()
    waiting = driver.arrive()
    driver.detach(ticket)
    assert waiting.state is GRANTED


def test_with_every_thread_streaming_nobody_runs() -> None:
    driver = full(2)
    waiting = driver.arrive()
    driver.detach(driver.tickets[0])
    driver.detach(driver.tickets[1])
    assert driver.controller.allowed == 0
    assert waiting.state is WAITING
    driver.finish(driver.tickets[1])
    assert waiting.state is GRANTED


def test_detaching_twice_or_too_late_changes_nothing() -> None:
    driver = full(2)
    first, second = driver.tickets
    driver.detach(first)
    driver.detach(first)
    driver.finish(second)
    driver.detach(second)
    assert len(driver.controller.streaming) == 1
    driver.finish(first)
    driver.finish(first)
    assert (driver.controller.streaming, driver.controller.inflight) == (set(), 0)
    assert driver.controller.totals.released_twice == 1


def test_a_detached_response_whose_client_left_still_ends_once() -> None:
    driver = full(1)
    ticket = driver.tickets[0]
    driver.detach(ticket)
    driver.abandon(ticket)
    driver.finish(ticket)
    assert driver.controller.streaming == set()
    assert driver.controller.allowed == 1


def test_more_streams_than_threads_leave_nothing_and_no_less() -> None:
    driver = Driver(2, mode=Mode.MONITOR)
    driver.fill(5)
    for ticket in driver.tickets:
        driver.detach(ticket)
    assert driver.controller.allowed == 0
    driver.finish(*driver.tickets)
    assert driver.controller.allowed == 2


# -- other classes -----------------------------------------------------------------------


def test_a_request_may_turn_out_to_be_of_another_class() -> None:
    driver = Driver(
        4, partitions=[PartitionPolicy(name="a", cap=1), PartitionPolicy(name="b", share=0.5)]
    )
    ticket = driver.arrive(partition="a")
    waiting = driver.arrive(partition="a")
    driver.controller.reclassify(ticket, driver.partition("b"), driver.now_ns)
    driver.check()
    assert ticket.partition.name == "b"
    assert waiting.state is GRANTED  # there is room in its class now
    driver.controller.reclassify(ticket, driver.partition("a"), driver.now_ns)
    driver.check()
    driver.finish(ticket)


def test_the_same_class_changes_nothing() -> None:
    driver = full(1)
    driver.controller.reclassify(driver.tickets[0], driver.partition(), driver.now_ns)
    driver.check()


@pytest.mark.parametrize("state", [WAITING, SHED, ENDED])
def test_only_what_runs_changes_its_class(state: State) -> None:
    driver = full(1)
    ticket = driver.arrive(timeout=0 if state is SHED else None)
    if state is ENDED:
        ticket = driver.tickets[0]
        driver.finish(ticket)
    before = ticket.partition
    driver.controller.reclassify(ticket, driver.partition("b"), driver.now_ns)
    driver.check()
    assert ticket.partition is before


def test_a_stream_may_change_its_class_and_is_counted_in_none() -> None:
    driver = full(1)
    ticket = driver.tickets[0]
    driver.detach(ticket)
    driver.controller.reclassify(ticket, driver.partition("b"), driver.now_ns)
    driver.check()
    driver.finish(ticket)
    assert driver.partition("b").inflight == 0


def test_a_sender_that_would_give_up_on_us_gets_in_before() -> None:
    """Shopify deletes a subscription after eight failures in a row."""
    policy = PartitionPolicy(name="shop", max_refusals=8)
    driver = Driver(1, partitions=[policy], max_queue=1)
    driver.fill(1)
    for _ in range(7):
        assert driver.arrive(partition="shop", timeout=0).priority is DEFAULT
    eighth = driver.arrive(partition="shop")
    assert (eighth.priority, eighth.state) == (HIGH, WAITING)
    driver.finish(driver.tickets[0])
    assert eighth.state is GRANTED
    assert driver.arrive(partition="shop", timeout=0).priority is DEFAULT


# -- time --------------------------------------------------------------------------------


def test_waiters_go_at_their_time_and_not_before() -> None:
    driver = full(1)
    ticket = driver.arrive(age=30)
    driver.advance(69.999)
    assert ticket.state is WAITING
    driver.advance(0.001)
    assert driver.reasons(ticket) == [Reason.EXPIRED]
    assert driver.controller.changed == [ticket]


def test_the_clock_is_needed_more_often_while_somebody_waits() -> None:
    driver = full(1)
    assert driver.controller.next_tick_ns(driver.now_ns) - driver.now_ns >= 100 * MS
    driver.arrive()
    assert driver.controller.next_tick_ns(driver.now_ns) - driver.now_ns <= 10 * MS


def test_overload_begins_and_ends_once_and_is_told_with_its_numbers() -> None:
    driver = full(2, max_queue=64, max_wait_ns=500 * MS)
    for _ in range(20):
        driver.arrive(HIGH, timeout=60_000)
        driver.advance(25)
    events = list(driver.controller.events)
    assert driver.told() == [(EventKind.OVERLOADED, None)]
    assert events[0].data.keys() == {"limit", "inflight", "waiting", "target_seconds"}
    for ticket in tuple(driver.controller.waitlist):
        driver.abandon(ticket)
    driver.finish(*driver.tickets[:2])
    driver.advance(60_000, step=500)
    assert driver.told() == [(EventKind.RECOVERED, None)]


@pytest.mark.parametrize(("busy", "waiting"), [(False, 3), (True, 2)])
def test_under_overload_a_wait_is_predicted_with_half_as_much_again(
    busy: bool, waiting: int
) -> None:
    driver = full(2, max_wait_ns=100 * MS)
    driver.controller.congestion.rtt_ns = driver.partition().rtt_ns = 60 * MS
    driver.controller.congestion.overloaded = busy
    states = [driver.arrive(HIGH).state for _ in range(4)]
    assert states == [WAITING] * waiting + [SHED] * (4 - waiting)


@pytest.mark.parametrize(
    ("priority", "timeout", "expected"),
    [(DEFAULT, None, True), (DEFAULT, 0, True), (HIGH, None, True), (LOW, None, False)],
)
def test_turning_away_for_want_of_a_place_is_overload(
    priority: Priority, timeout: float | None, expected: bool
) -> None:
    """But for LOW, which is turned away whenever no slot is free."""
    driver = full(2, max_queue=0)
    for _ in range(8):
        assert driver.arrive(priority, timeout=timeout).state is SHED
        driver.advance(25)
    assert driver.controller.congestion.overloaded is expected


def test_a_queue_that_moves_within_the_target_is_no_overload() -> None:
    """Somebody always waits, but nobody for long."""
    driver = full(1, max_wait_ns=500 * MS)
    running, waiting = driver.tickets[0], driver.arrive()
    for _ in range(300):
        driver.advance(2)
        driver.finish(running)
        running, waiting = waiting, driver.arrive()
        assert (running.state, waiting.state) == (GRANTED, WAITING)
    assert not driver.controller.congestion.overloaded


def test_overload_turns_default_away_but_for_two_places() -> None:
    driver = overloaded()
    assert [driver.arrive().state for _ in range(3)] == [WAITING, WAITING, SHED]
    assert driver.reasons(driver.tickets[-1]) == [Reason.OVERLOADED]
    assert driver.arrive(HIGH).state is WAITING
    assert driver.arrive(timeout=100).state is WAITING  # its caller knows what it wants


def test_overload_leaves_the_newest_in_the_queue() -> None:
    driver = full(2, max_queue=64, max_wait_ns=500 * MS)
    mine = driver.arrive(timeout=400)
    waiting = []
    while not driver.controller.congestion.overloaded:
        waiting.append(driver.arrive())
        driver.advance(25)
    *old, one, two = waiting
    assert len(old) >= 4
    assert driver.reasons(*old) == [Reason.OVERLOADED] * len(old)
    assert driver.reasons(one, two, mine) == [None, None, None]


def test_an_interval_is_closed_by_an_arrival_too() -> None:
    driver = full(1)
    before = driver.controller.congestion.rolls_at_ns
    driver.pass_time(150)
    driver.arrive(timeout=0)
    assert driver.controller.congestion.rolls_at_ns > before + 100 * MS


# -- modes, pauses, the end --------------------------------------------------------------


@pytest.mark.parametrize("mode", [Mode.MONITOR, Mode.OFF])
def test_nobody_is_refused_outside_of_enforce(mode: Mode) -> None:
    driver = Driver(1, mode=mode, max_queue=1)
    driver.fill(20)
    assert driver.arrive(LOW).state is GRANTED
    driver.controller.set_paused(True, driver.now_ns)
    driver.controller.close(driver.now_ns)
    driver.fill(3)
    driver.finish(*driver.tickets)
    assert driver.controller.inflight == 0


def test_monitor_counts_what_it_would_refuse() -> None:
    driver = Driver(2, mode=Mode.MONITOR, max_queue=3)
    for priority in (DEFAULT, DEFAULT, LOW, HIGH, DEFAULT, DEFAULT, HIGH):
        driver.arrive(priority)
    assert driver.controller.totals.would_shed == {
        (LOW, Reason.OVERLOADED): 1,
        (DEFAULT, Reason.QUEUE_FULL): 1,
        (HIGH, Reason.QUEUE_FULL): 1,
    }
    assert driver.controller.totals.shed == {}


def test_monitor_predicts_by_those_beyond_the_limit() -> None:
    driver = Driver(2, mode=Mode.MONITOR)
    driver.controller.congestion.rtt_ns = 130 * MS
    driver.fill(9)
    assert driver.controller.totals.would_shed == {(DEFAULT, Reason.PREDICTED_WAIT): 4}


def test_monitor_sees_overload_though_nobody_waits() -> None:
    driver = Driver(2, mode=Mode.MONITOR)
    for _ in range(20):
        driver.fill(1)
        driver.advance(25)
    assert driver.controller.congestion.overloaded
    assert driver.told() == [(EventKind.OVERLOADED, None)]


def test_off_counts_nothing() -> None:
    driver = Driver(1, mode=Mode.OFF)
    driver.fill(9)
    assert driver.controller.totals.would_shed == {}


@pytest.mark.parametrize("mode", [Mode.MONITOR, Mode.OFF])
def test_leaving_enforce_lets_everybody_run_who_waits(mode: Mode) -> None:
    driver = full(1)
    waiting = [driver.arrive() for _ in range(3)]
    driver.controller.set_mode(mode, driver.now_ns)
    driver.check()
    assert {t.state for t in waiting} == {GRANTED}
    assert driver.controller.changed == waiting
    driver.controller.set_mode(Mode.ENFORCE, driver.now_ns)
    assert driver.arrive(timeout=0).state is SHED
    driver.finish(driver.tickets[0], *waiting[:2])
    assert driver.arrive(timeout=0).state is SHED
    driver.finish(waiting[2])
    driver.fill(1)


def test_a_pause_refuses_all_and_lets_run_what_runs() -> None:
    driver = full(2)
    waiting = driver.arrive()
    driver.controller.set_paused(True, driver.now_ns)
    driver.finish(driver.tickets[0])
    assert driver.reasons(waiting, driver.arrive(HIGH)) == [Reason.PAUSED] * 2
    driver.controller.set_paused(False, driver.now_ns)
    driver.fill(1)
    assert driver.told() == [(EventKind.PAUSED, None), (EventKind.UNPAUSED, None)]


@pytest.mark.parametrize("mode", [Mode.ENFORCE, Mode.MONITOR])
def test_a_pause_is_no_overload(mode: Mode) -> None:
    driver = Driver(2, mode=mode)
    driver.controller.set_paused(True, driver.now_ns)
    for _ in range(80):
        ticket = driver.arrive()
        driver.advance(25)
        if ticket.state is GRANTED:
            driver.finish(ticket)
    assert not driver.controller.congestion.overloaded
    assert not driver.controller.congestion.saturation.sustained
    driver.controller.set_paused(False, driver.now_ns)
    driver.fill(2)


def test_closing_refuses_those_who_wait_and_still_uses_free_slots() -> None:
    driver = full(2)
    waiting = driver.arrive()
    driver.controller.close(driver.now_ns)
    driver.controller.close(driver.now_ns)
    assert driver.reasons(waiting, driver.arrive(HIGH)) == [Reason.STOPPING] * 2
    driver.finish(driver.tickets[0])
    assert driver.arrive().state is GRANTED
    assert driver.told() == [(EventKind.CLOSED, None)]


def test_a_limit_set_by_hand_holds_until_it_is_given_back() -> None:
    limit = Script(4)
    driver = Driver(limit, max_limit=8)
    driver.controller.set_limit(2, driver.now_ns)
    limit.limit = 6
    driver.tick()
    assert driver.controller.allowed == 2
    driver.controller.set_limit(None, driver.now_ns)
    assert driver.controller.allowed == 6
    assert driver.told() == [(EventKind.LIMIT_SET, None)] * 2


def test_a_pool_is_not_full_any_more_once_its_limit_has_grown() -> None:
    driver = full(1, max_limit=4)
    driver.controller.set_limit(4, driver.now_ns)
    driver.advance(1000, step=100)
    assert not driver.controller.congestion.saturation.sustained
    driver.controller.set_limit(1, driver.now_ns)
    driver.advance(1000, step=100)
    assert driver.controller.congestion.saturation.sustained


def test_shrinking_takes_nothing_from_what_runs() -> None:
    driver = full(4)
    driver.controller.set_limit(1, driver.now_ns)
    assert driver.controller.inflight == 4
    for ticket in driver.tickets[:3]:
        driver.finish(ticket)
        assert driver.arrive(timeout=0).state is SHED
    driver.finish(driver.tickets[3])
    driver.fill(1)


def test_a_child_owns_none_of_its_parents_tickets() -> None:
    driver = full(2)
    runs, streams = driver.tickets
    waits = driver.arrive()
    driver.detach(streams)
    driver.controller.disown()
    assert (runs.state, streams.state) == (ENDED, ENDED)
    assert driver.reasons(waits) == [Reason.STOPPING]
    assert waits.retry_after_ns == 0


# -- Retry-After and what is seen --------------------------------------------------------


def test_retry_after_is_the_time_to_drain() -> None:
    driver = full(2, retry_after_ns=(S, 30 * S))
    driver.controller.congestion.rtt_ns = 10 * S
    assert driver.arrive(timeout=0).retry_after_ns == 5 * S
    for _ in range(3):
        driver.arrive(timeout=100_000)
    assert driver.arrive(timeout=0).retry_after_ns == 20 * S
    driver.jitter = 0.0
    assert driver.arrive(timeout=0).retry_after_ns == 10 * S


@pytest.mark.parametrize(
    "refuse",
    [
        lambda d: d.arrive(timeout=0),
        lambda d: d.arrive(deadline=-1),
        lambda d: d.abandon(d.arrive()),
        lambda d: (d.arrive(), d.advance(100)),
        lambda d: (d.arrive(), d.controller.close(d.now_ns)),
        lambda d: (d.arrive(), d.controller.set_paused(True, d.now_ns)),
    ],
)
def test_every_refusal_says_why_and_when_to_come_back(refuse: Callable[[Driver], object]) -> None:
    driver = full(1)
    refuse(driver)
    ticket = driver.tickets[-1]
    assert ticket.state is SHED
    assert ticket.reason is not None
    assert ticket.retry_after_ns >= S // 2


def test_a_snapshot_tells_what_admission_uses() -> None:
    limit = Script(3)
    driver = Driver(limit, max_limit=8, partitions=[PartitionPolicy(name="a", share=0.5, cap=2)])
    driver.serve(20, 1, "a")
    driver.pass_time(1)
    held = driver.fill(1)
    driver.fill(2, "a")
    waiting = driver.arrive(partition="b", timeout=70)
    driver.arrive(LOW)
    driver.pass_time(40)
    driver.finish(held[0], outcome=Outcome.IGNORE)
    driver.finish(held[0])
    seen = snapshot(driver.controller, driver.now_ns)
    assert waiting.state is GRANTED
    assert (seen.limit, seen.estimate, seen.max_limit) == (3, 3.25, 8)
    assert (seen.inflight, seen.waiting, seen.mode) == (3, 0, "enforce")
    assert (seen.arrivals, seen.granted, seen.shed_total) == (6, 5, 1)
    assert seen.granted_by_priority == {"high": 0, "default": 5, "low": 0}
    assert seen.shed == {("low", "overloaded"): 1}
    assert (seen.overloaded, seen.paused, seen.closed) == (False, False, False)
    assert (seen.released_twice, seen.abandoned, seen.leaked) == (1, 0, 0)
    assert sum(seen.delay_buckets) == 5
    assert seen.delay_buckets[0] == 4
    assert seen.delay_sum_seconds == 0.04
    assert seen.rtt_seconds == 0.02
    assert seen.release_rate == 150.0
    a = seen.partitions["a"]
    assert (a.inflight, a.waiting, a.cap, a.held, a.granted, a.shed) == (2, 0, 2, 0, 3, 0)
    assert a.oldest_seconds == 0.04
    assert not a.stalled
    assert driver.controller.policy.max_limit == 8
