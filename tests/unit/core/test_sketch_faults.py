"""
One test for each fault of the sketch that the idea of this project was first told with.

The sketch is a page of Go: a limit from two moving averages of the RTT, a minimum of the
queue delay, one queue, three priorities. Each docstring says what is right instead. Where
the fault lies in the limit, the same scenario is also played with the sketch's rule
(:class:`TwoAverages`), which has to fail it.

Not here, since they are about HTTP or about processes: S31 (an unread body), S32 (paths
that bypass), S35 (many workers) and the half of S36 that the executor measures; see
``tests/integration`` and ``tests/unit/classify``.
"""

from __future__ import annotations

import gc
import math
import weakref
from collections.abc import Callable

import pytest

from gunicorn_admission.core.limits import AdaptiveLimit
from gunicorn_admission.core.limits.base import Limit
from gunicorn_admission.core.policy import PartitionPolicy
from gunicorn_admission.core.snapshot import snapshot
from gunicorn_admission.core.types import Mode, Outcome, Reason, State
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings import Settings
from tests.driving import DEFAULT, HIGH, LOW, MS, Driver, S, Script
from tests.worlds import World, capacity, steady

GRANTED, WAITING, SHED = State.GRANTED, State.WAITING, State.SHED


class TwoAverages:
    """The sketch's rule: a fast and a slow average of the RTT, and the root as headroom."""

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self.estimate = min(20.0, maximum)
        self._fast = self._slow = 0.0

    @property
    def limit(self) -> int:
        return int(self.estimate)

    def on_sample(
        self,
        *,
        now_ns: int,
        rtt_ns: int,
        inflight: int,
        dropped: bool,
        partition: str | None = None,
    ) -> None:
        if not self._slow:
            self._fast = self._slow = rtt_ns
        self._fast += 0.2 * (rtt_ns - self._fast)
        self._slow += 0.01 * (rtt_ns - self._slow)
        gradient = max(0.5, min(1.0, self._slow / self._fast))
        wanted = gradient * self.estimate + math.sqrt(self.estimate)
        self.estimate = max(4.0, min(self._maximum, 0.8 * self.estimate + 0.2 * wanted))

    def set_bounds(self, minimum: int, maximum: int) -> None:
        raise NotImplementedError


Scenario = Callable[[Callable[[int], Limit]], None]


def both(scenario: Scenario) -> Callable[[], None]:
    """Play a scenario with our limit, and show that the sketch's does not pass it."""

    def play() -> None:
        scenario(lambda maximum: AdaptiveLimit(maximum=maximum))
        with pytest.raises(AssertionError):
            scenario(TwoAverages)

    play.__name__ = scenario.__name__
    play.__doc__ = scenario.__doc__
    return play


# -- the limit ---------------------------------------------------------------------------


@both
def test_s01_the_limit_grows_only_while_it_is_used(make: Callable[[int], Limit]) -> None:
    """One request at a time says nothing about what two hundred would do."""
    world = World(make(200), steady(), demand=1)
    world.run(0.5, dropped=True)
    before = world.limit.estimate
    world.run(10)
    assert world.limit.estimate <= before < 150


@both
def test_s02_the_limit_finds_the_capacity(make: Callable[[int], Limit]) -> None:
    """Endless demand on 25 connections ends near 25, not at the top."""
    world = World(make(200), capacity(25))
    world.run(60)
    seen = world.run(30)
    assert 25 <= sum(seen) / len(seen) <= 50


@both
def test_s03_the_limit_learns_by_time_and_not_by_request(make: Callable[[int], Limit]) -> None:
    """A hundred slow requests within a few milliseconds are one moment, not a trend."""
    limit = make(200)
    World(limit, steady(), demand=15).run(30)
    before = limit.estimate
    for i in range(100):
        limit.on_sample(
            now_ns=130 * S + i * 10_000, rtt_ns=100 * MS, inflight=15, dropped=False,
            partition="a",
        )  # fmt: skip
    assert limit.estimate >= 0.9 * before


@both
def test_s04_the_baseline_does_not_learn_the_overload(make: Callable[[int], Limit]) -> None:
    """After two minutes of overload the dependency is still wanted at its own speed."""
    world = World(make(64), capacity(8), demand=6)
    world.run(10)
    world.demand = None
    world.run(120)
    seen = world.run(30)
    assert sum(seen) / len(seen) <= 16


@pytest.mark.parametrize("first_ms", [1.0, 2000.0])
def test_s05_the_first_requests_do_not_decide(first_ms: float) -> None:
    """A probe of 1 ms, or an import of 2 s, is not what requests take."""

    def scenario(make: Callable[[int], Limit]) -> None:
        world = World(make(64), steady(first_ms), demand=4)
        limit = world.limit
        limit.on_sample(
            now_ns=world.now_ns, rtt_ns=round(first_ms * MS), inflight=1, dropped=False,
            partition="a",
        )  # fmt: skip
        world.rtt_ms = steady(50)
        seen = world.run(10)
        assert min(seen) >= 8
        world.rtt_ms, world.demand = capacity(8, 50), None
        world.run(30)
        seen = world.run(10)
        assert sum(seen) / len(seen) <= 20

    both(scenario)()


def test_s06_what_fails_fast_is_no_sample() -> None:
    """Errors of 1 ms say nothing about how long the work takes."""
    driver = Driver(AdaptiveLimit(maximum=32))
    driver.serve(50, 40)
    before = driver.controller.limit.estimate, driver.partition().rtt_ns
    for _ in range(300):
        ticket = driver.arrive()
        driver.advance(1)
        driver.finish(ticket, outcome=Outcome.IGNORE)
    assert (driver.controller.limit.estimate, driver.partition().rtt_ns) == before


@both
def test_s07_a_timeout_from_below_shrinks_the_limit(make: Callable[[int], Limit]) -> None:
    """A call that ran into a timeout is a sign of overload, not a slow success."""
    world = World(make(64), steady(), demand=60)
    world.run(10)
    before = world.limit.estimate
    world.run(2, dropped=True)
    assert world.limit.estimate < 0.9 * before


@both
def test_s08_a_mix_of_endpoints_is_no_congestion(make: Callable[[int], Limit]) -> None:
    """10 ms and 500 ms side by side are two classes, each as fast as ever."""
    limit = make(200)
    estimates = []
    for i in range(5000):
        slow = i % 5 == 4
        limit.on_sample(
            now_ns=i * 10 * MS, rtt_ns=(500 if slow else 10) * MS, inflight=20, dropped=False,
            partition="slow" if slow else "fast",
        )  # fmt: skip
        estimates.append(limit.estimate)
    assert min(estimates[1000:]) >= 150


def test_s09_calls_that_never_end_are_noticed_by_their_age() -> None:
    """They give no sample; the class is held, then refused, and the others go on."""
    driver = Driver(16)
    driver.serve(20)
    hung = driver.fill(8)
    driver.advance(100, step=10)
    assert driver.arrive().state is SHED
    driver.advance(6000, step=500)
    assert driver.partition().stalled
    assert driver.controller.stalls.stuck == len(hung)
    driver.fill(8, "others")


def test_s10_the_limit_never_falls_below_one() -> None:
    """At zero nothing runs, so nothing ends, so nothing is ever learned again."""
    for maximum in (1, 2, 3, 64):
        world = World(AdaptiveLimit(maximum=maximum, minimum=1), steady())
        assert min(world.run(60, dropped=True)) >= 1
    for minimum in (0, -1):
        with pytest.raises(ConfigError):
            AdaptiveLimit(maximum=4, minimum=minimum)


@pytest.mark.parametrize(
    "setting",
    [
        {"max_limit": 0},
        {"limit": 0},
        {"max_wait": -1},
        {"interval": 0},
        {"target_delay": 0},
        {"target_delay": "1s", "interval": "100ms"},
        {"min_limit": 9, "max_limit": 4},
        {"stall_after": 0},
    ],
)
def test_s11_settings_that_cannot_work_are_refused(setting: dict[str, object]) -> None:
    """Where they are made, not where they are first used."""
    with pytest.raises(ConfigError):
        Settings(**setting)  # type: ignore[arg-type]


# -- the flag ----------------------------------------------------------------------------


def burst(driver: Driver, count: int, wait_ms: float) -> None:
    """So many at once, of whom each waits as long as the one before runs."""
    tickets = [driver.arrive(timeout=1000) for _ in range(count)]
    for ticket in tickets:
        assert ticket.state is GRANTED
        driver.pass_time(wait_ms)
        driver.finish(ticket)


def test_s12_what_is_long_past_is_no_overload() -> None:
    """Waits of a minute ago do not condemn the burst of now."""
    driver = Driver(1, max_wait_ns=500 * MS)
    burst(driver, 4, 8)
    driver.pass_time(60_000)
    driver.fill(1)
    assert not driver.controller.congestion.overloaded
    driver.pass_time(50)
    assert [driver.arrive().state for _ in range(4)] == [WAITING] * 4


def test_s13_the_flag_is_lowered_though_nobody_is_admitted() -> None:
    """Time lowers it, by the watchdog or with the next arrival, whoever that is."""
    for by_tick in (True, False):
        driver = Driver(2, max_wait_ns=500 * MS, max_queue=100)
        held = driver.fill(2)
        while not driver.controller.congestion.overloaded:
            driver.arrive(HIGH, timeout=1000)
            driver.advance(25)
        for ticket in tuple(driver.controller.waitlist):
            driver.abandon(ticket)
        driver.finish(*held)
        if by_tick:
            driver.advance(2000, step=500)
        else:
            driver.pass_time(2000)
            driver.arrive(LOW)
        assert not driver.controller.congestion.overloaded


def test_s14_one_that_waited_is_no_overload() -> None:
    """A single delay in an interval may be chance."""
    driver = Driver(1, max_wait_ns=500 * MS)
    for _ in range(20):
        held, waiting = driver.fill(1)[0], driver.arrive()
        driver.pass_time(6)
        driver.finish(held)
        assert waiting.delay_ns == 6 * MS
        driver.finish(waiting)
        driver.advance(119, step=10)
        assert not driver.controller.congestion.overloaded
        assert not driver.controller.congestion.codel.overloaded


def test_s15_the_delay_ends_with_the_grant() -> None:
    """How long the thread then takes to wake is the scheduler's affair."""
    driver = Driver(1)
    held, waiting = driver.fill(1)[0], driver.arrive()
    driver.pass_time(10)
    driver.finish(held)
    driver.pass_time(80)  # before the waiter's thread even runs
    assert waiting.delay_ns == 10 * MS
    assert driver.controller.totals.delay_sum_ns == 10 * MS


def test_s16_overload_makes_waits_short_and_does_not_refuse_where_nobody_waits() -> None:
    """Free slots are given whatever the flag says; without it a burst may wait for long."""
    driver = Driver(2, max_wait_ns=500 * MS, target_ns=5 * MS)
    calm = driver.fill(2) and driver.arrive()
    assert calm.expires_ns - driver.now_ns == 500 * MS
    driver.abandon(calm)
    driver.controller.congestion.overloaded = True
    busy = driver.arrive()
    assert busy.state is WAITING
    assert busy.expires_ns - driver.now_ns == 10 * MS
    driver.abandon(busy)
    driver.finish(driver.tickets[0])
    assert driver.arrive().state is GRANTED


def test_s17_waits_are_measured_by_the_service_time() -> None:
    """With four slots and 100 ms each, the next slot is 25 ms away: 10 ms never pay."""
    driver = Driver(4, max_wait_ns=500 * MS)
    driver.serve(100, 30)
    congestion = driver.controller.congestion
    assert congestion.target_ns == 25 * MS
    congestion.overloaded = True
    held = driver.fill(4)
    waiting = driver.arrive()
    driver.advance(25)
    driver.finish(held[0])
    assert waiting.state is GRANTED


def test_s18_the_queue_knows_priorities() -> None:
    """One that matters does not stand behind those that do not."""
    driver = Driver(1)
    held = driver.fill(1)[0]
    for _ in range(5):
        driver.arrive(DEFAULT)
    important = driver.arrive(HIGH)
    driver.finish(held)
    assert important.state is GRANTED


def test_s19_high_is_refused_on_arrival_or_not_at_all() -> None:
    """Once let into the queue it is not thrown out because others bring overload."""
    driver = Driver(1, max_wait_ns=500 * MS, max_queue=4)
    driver.fill(1)
    important = driver.arrive(HIGH)
    driver.controller.congestion.overloaded = True
    for priority in (DEFAULT, LOW, DEFAULT, HIGH, HIGH, HIGH, HIGH):
        driver.arrive(priority)
    driver.advance(499)
    assert important.state is WAITING
    refused = [t for t in driver.tickets if t.priority is HIGH and t.state is SHED]
    assert {t.reason for t in refused} == {Reason.QUEUE_FULL}


def test_s20_a_flood_of_low_does_not_take_what_is_held_back() -> None:
    """A share is kept for its class whether it uses it or not."""
    driver = Driver(8, partitions=[PartitionPolicy(name="payments", share=0.25)])
    flood = [driver.arrive(LOW, "analytics") for _ in range(20)]
    assert sum(t.state is GRANTED for t in flood) == 6
    assert [driver.arrive(HIGH, "payments").state for _ in range(2)] == [GRANTED] * 2


def test_s21_low_is_not_refused_while_a_slot_is_free() -> None:
    """Whoever waits for something else, or has waited too long, is no reason."""
    driver = Driver(4, partitions=[PartitionPolicy(name="capped", cap=1)])
    driver.fill(1, "capped")
    assert driver.arrive(partition="capped").state is WAITING
    assert driver.arrive(LOW, "other").state is GRANTED
    driver.pass_time(1000)
    assert driver.arrive(LOW, "other").state is GRANTED


def test_s22_those_who_waited_too_long_do_not_fill_the_queue() -> None:
    """They are out by the clock, not once their threads get to run."""
    driver = Driver(1, max_queue=3)
    driver.fill(1)
    late = [driver.arrive() for _ in range(3)]
    driver.pass_time(100)
    assert driver.arrive().state is WAITING
    assert driver.reasons(*late) == [Reason.EXPIRED] * 3


def test_s23_nothing_is_granted_to_who_has_left() -> None:
    """A client that is gone gives its place, or its slot, to the next."""
    driver = Driver(1)
    held = driver.fill(1)[0]
    gone, stays = driver.arrive(), driver.arrive()
    driver.abandon(gone)
    driver.finish(held)
    assert (gone.state, stays.state) == (SHED, GRANTED)
    next_one = driver.arrive()
    driver.abandon(stays)
    assert next_one.state is GRANTED


@pytest.mark.parametrize("bound", [{"timeout": 20}, {"deadline": 20}])
def test_s24_a_slot_that_comes_too_late_goes_to_the_next(bound: dict[str, float]) -> None:
    """Whose time is over at that moment would only be worked for in vain."""
    driver = Driver(1)
    held = driver.fill(1)[0]
    late, fresh = driver.arrive(**bound), driver.arrive()  # type: ignore[arg-type]
    driver.pass_time(20.001)
    driver.finish(held)
    assert (late.state, fresh.state) == (SHED, GRANTED)


def test_s25_a_slot_is_given_back_once() -> None:
    """A second release would leave a slot too many, for ever."""
    driver = Driver(1)
    ticket = driver.fill(1)[0]
    for _ in range(3):
        driver.finish(ticket)
    driver.fill(1)
    assert driver.arrive(timeout=0).state is SHED
    assert driver.controller.totals.released_twice == 2


def test_s26_a_crash_is_no_sample() -> None:
    """It is often quick, and it frees its slot all the same."""
    limit = Script(1)
    driver = Driver(limit)
    ticket = driver.fill(1)[0]
    driver.pass_time(1)
    driver.finish(ticket, outcome=Outcome.IGNORE)
    assert limit.samples == []
    driver.fill(1)


def test_s27_a_slow_client_is_not_a_slow_service() -> None:
    """Time spent on its bytes, coming or going, is not in the sample."""
    limit = Script(2)
    driver = Driver(limit)
    upload, download = driver.fill(2)
    driver.pass_time(20)
    download.sampled_at_ns = driver.now_ns
    driver.pass_time(980)
    upload.blocked_ns = 980 * MS
    driver.finish(upload, download)
    assert [s["rtt_ns"] for s in limit.samples] == [20 * MS] * 2


def test_s28_after_a_shrink_nobody_waits_in_vain() -> None:
    """Who would wait for longer than it may is told at once."""
    driver = Driver(Script(8), max_wait_ns=100 * MS)
    driver.serve(120)
    driver.fill(8)
    driver.controller.set_limit(1, driver.now_ns)
    assert driver.reasons(driver.arrive()) == [Reason.PREDICTED_WAIT]


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.controller.set_limit(3, d.now_ns),
        lambda d: d.controller.set_mode(Mode.MONITOR, d.now_ns),
        lambda d: d.abandon(d.tickets[0]),
        lambda d: d.detach(d.tickets[0]),
    ],
    ids=["limit", "mode", "client left", "stream"],
)
def test_s29_whatever_makes_room_lets_somebody_in(change: Callable[[Driver], None]) -> None:
    """Not a release alone: a limit, a mode, a client that left."""
    driver = Driver(Script(2), max_limit=4)
    driver.fill(2)
    waiting = driver.arrive()
    change(driver)
    assert waiting.state is GRANTED


def test_s30_retry_after_is_measured_and_never_the_same() -> None:
    """The time to drain what is there, spread, so that they do not come back together."""
    driver = Driver(1)
    driver.fill(1)
    driver.controller.congestion.rtt_ns = 4 * S
    seen = []
    for jitter in (0.0, 0.25, 0.5, 0.75):
        driver.jitter = jitter
        seen.append(driver.arrive(timeout=0).retry_after_ns)
    assert seen == [2 * S, 3 * S, 4 * S, 5 * S]
    driver.controller.congestion.rtt_ns = 8 * S
    assert driver.arrive(timeout=0).retry_after_ns == 10 * S


def test_s33_the_queue_keeps_nobody_who_has_left_it() -> None:
    """Neither in front nor in the middle, so that it never costs more than who is in it."""
    driver = Driver(1, max_queue=100)
    driver.fill(1)
    left = [driver.arrive() for _ in range(50)]
    stays = driver.arrive(timeout=100_000)
    for ticket in left[::2]:
        driver.abandon(ticket)
    driver.advance(100)
    references = [weakref.ref(ticket) for ticket in left]
    driver.controller.changed.clear()
    driver.tickets.clear()
    del left, ticket
    gc.collect()
    assert [reference() for reference in references] == [None] * 50
    assert list(driver.controller.waitlist) == [stays]


def test_s34_everything_decided_is_counted_with_its_reason() -> None:
    """Limit, in flight, refused by priority and reason, delay, overload."""
    driver = Driver(2, max_queue=1)
    driver.fill(2)
    driver.arrive(HIGH)
    for priority in (HIGH, DEFAULT, LOW):
        driver.arrive(priority)
    seen = snapshot(driver.controller, driver.now_ns)
    assert (seen.limit, seen.inflight, seen.waiting) == (2, 2, 1)
    assert seen.shed == {
        ("high", "queue_full"): 1, ("default", "queue_full"): 1, ("low", "overloaded"): 1,
    }  # fmt: skip
    assert sum(seen.delay_buckets) == seen.granted == 2
    assert seen.overloaded is False


def test_s36_the_wait_before_the_handler_counts() -> None:
    """In the kernel, or in the pool's own queue: arrival is when the bytes came."""
    driver = Driver(1, max_wait_ns=100 * MS)
    held = driver.fill(1)[0]
    ticket = driver.arrive(age=60)
    assert ticket.expires_ns - driver.now_ns == 40 * MS
    driver.pass_time(10)
    driver.finish(held)
    assert ticket.delay_ns == 70 * MS


@both
def test_s37_a_lone_request_is_never_congestion(make: Callable[[int], Limit]) -> None:
    """Where only one runs, no queue can be the cause of its slowness."""
    world = World(make(64), steady(), demand=1)
    world.run(30)
    before = world.limit.estimate
    world.rtt_ms = steady(200)
    world.run(3)
    assert world.limit.estimate >= before


def test_s38_a_release_wakes_one_however_many_wait() -> None:
    """What it costs under the lock does not depend on the length of the queue."""

    class Wakeable:
        def __init__(self, ticket: object) -> None:
            self.ticket = ticket

        def notify(self, n: int = 1) -> None:
            woken.append((self.ticket, n))

    woken: list[tuple[object, int]] = []
    driver = Driver(1, max_queue=100)
    held = driver.fill(1)[0]
    waiting = [driver.arrive() for _ in range(64)]
    for ticket in waiting:
        ticket.wake = Wakeable(ticket)
    driver.finish(held)
    assert woken == [(waiting[0], 1)]
