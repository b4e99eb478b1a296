"""
What users of other limiters and servers have complained about, as tests of ours.

A: slots, queues, races. B: baseline and signal. C: growth, floors, little traffic.
E: queues and refusals. The names of the projects and their issues stand in the docstrings.
Those that other tests cover already are listed in ``ELSEWHERE``, which is checked.

Not here, since they are about HTTP or gunicorn: E2 to E5, E9, E10, E12 to E14, E16; and C9,
where ours differs on purpose (the best rate of a second, see ``core/limits/adaptive.py``).
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from gunicorn_admission.core.limits import AdaptiveLimit
from gunicorn_admission.core.policy import PartitionPolicy
from gunicorn_admission.core.snapshot import snapshot
from gunicorn_admission.core.types import Outcome, Priority, Reason, State
from tests.driving import DEFAULT, HIGH, LOW, MS, Driver, S, Script
from tests.worlds import World, capacity, steady

TESTS = Path(__file__).resolve().parents[2]
ADAPTIVE, STALL = "unit/core/test_adaptive.py", "unit/core/test_stall.py"
CONTROLLER, SKETCH = "unit/core/test_controller.py", "unit/core/test_sketch_faults.py"
ACQUIRE, PERMIT = "unit/limiter/test_acquire.py", "unit/limiter/test_permit.py"
HANDOFF, LIVE = "unit/limiter/test_handoff.py", "unit/limiter/test_live_changes.py"

ELSEWHERE = [
    # Netflix #140: checked, then counted
    ("A1", "stress/test_limiter_threads.py", "test_never_more_than_the_limit_run"),
    # Netflix PR #179: a token granted as its waiter gives up
    ("A3", "stress/test_limiter_threads.py", "test_timeouts_against_releases"),
    # Netflix LifoBlockingLimiter: a larger limit wakes nobody
    ("A6", LIVE, "test_a_larger_limit_lets_all_run_who_wait"),
    # Netflix PR #70: one flag for all waiters
    ("A7", "stress/test_limiter_threads.py", "test_no_wake_up_is_lost"),
    # platinummonkey PR #162: waiting spins
    ("A9", HANDOFF, "test_a_wait_costs_no_processor_time"),
    # platinummonkey: the queue grows past its bound
    ("A10", "property/test_controller.py", "test_controller"),
    # Netflix #86: no timeout
    ("A11", ACQUIRE, "test_every_wait_ends"),
    # Netflix BlockingLimiterTest: 49 ms for 50
    ("A12", ACQUIRE, "test_a_waiter_is_refused_at_its_time_and_not_before"),
    ("A12", ACQUIRE, "test_a_timeout_is_never_rounded_down"),
    # Netflix PR #81, #133: lost on an Error
    ("A13", PERMIT, "test_an_exception_says_what_the_call_says_about_capacity"),
    # resilience4j #332, #263: cancelled, or released twice
    ("A14", PERMIT, "test_a_permit_is_released_once"),
    ("A14", HANDOFF, "test_an_interrupted_wait_leaves_no_trace"),
    # resilience4j changeConfig: shrinking blocks
    ("A15", LIVE, "test_a_smaller_limit_never_blocks_and_what_runs_drains"),
    # semian PR #3: registering again resets the count
    (
        "A16",
        "unit/core/test_shares.py",
        "test_a_second_definition_replaces_the_policy_and_keeps_what_runs",
    ),
    ("A16", "unit/limiter/test_registry.py", "test_asking_again_does_not_lose_what_runs"),
    # Netflix PR #134: with a gradient of 0.8 the limit climbs without end
    ("B1", ADAPTIVE, "test_it_finds_the_capacity_under_endless_demand"),
    # failsafe-go #127: the baseline drifts to the incident
    ("B3", SKETCH, "test_s04_the_baseline_does_not_learn_the_overload"),
    # Netflix #165: probed under load
    ("B5", ADAPTIVE, "test_it_does_not_mistake_a_baseline_learned_under_load_for_the_truth"),
    # Envoy #11579: begun before the probe
    ("B6", "unit/core/test_sampling.py", "test_only_what_began_under_its_conditions_counts"),
    # Envoy #10647, #38338: pinned to the floor by a wrong baseline
    ("B7", ADAPTIVE, "test_a_dependency_that_became_slower_is_accepted_as_it_is"),
    # Envoy #9007, #8337: all hosts probe at once
    ("B8", ADAPTIVE, "test_dips_are_short_and_rare"),
    ("B8", ADAPTIVE, "test_dips_of_many_workers_do_not_coincide"),
    # Netflix #98: the queue is in the RTT
    ("B10", CONTROLLER, "test_a_sample_leaves_out_the_wait_and_the_client"),
    # vector PR #3493: fast errors
    ("B13", SKETCH, "test_s06_what_fails_fast_is_no_sample"),
    # Netflix PR #126: nothing but timeouts, so no update
    ("B14", ADAPTIVE, "test_windows_with_nothing_but_drops_shrink"),
    # Netflix PR #58: pauses of the machine
    ("B15", ADAPTIVE, "test_one_pause_of_the_machine_does_not_starve_the_pool"),
    # Netflix #173, Envoy #42243: streams as RTT
    ("B17", CONTROLLER, "test_a_sample_ends_with_the_first_byte"),
    # misk PR #1304: an RTT of 0 raises
    ("B18", ADAPTIVE, "test_a_sample_without_a_time_is_ignored"),
    # platinummonkey PR #166: the limit rises with the latency
    ("B20", "contract/test_limits.py", "test_higher_rtt_never_gives_a_higher_next_limit"),
    # Netflix #35, vector #3255: too slow to grow
    ("C1", ADAPTIVE, "test_it_grows_from_the_floor_to_the_top_within_a_minute"),
    # OpenSearch: log10(1) = 0, stuck at 1
    ("C2", ADAPTIVE, "test_it_leaves_one"),
    # Netflix windowed: too few samples, so thrown away
    ("C3", ADAPTIVE, "test_little_traffic_is_enough_to_learn_from"),
    # Netflix's floor of 20
    ("C5", ADAPTIVE, "test_the_floor_follows_the_pool"),
    # Envoy #9947: below the floor
    ("C6", ADAPTIVE, "test_bounds_can_be_moved"),
    # go-zero PR #2476: shedding has no way out
    ("C8", SKETCH, "test_s13_the_flag_is_lowered_though_nobody_is_admitted"),
    # gunicorn #2260: drop what sat in the queue for too long
    ("E1", SKETCH, "test_s36_the_wait_before_the_handler_counts"),
    # HAProxy #177: newest first, but only under overload
    ("E6", CONTROLLER, "test_when_the_old_ones_are_too_old_the_newest_go_first"),
    # HAProxy #1770: long queues cost much
    ("E7", SKETCH, "test_s33_the_queue_keeps_nobody_who_has_left_it"),
    # HAProxy #2221: which of the 503s was it
    ("E8", CONTROLLER, "test_every_refusal_says_why_and_when_to_come_back"),
    # openziti #3636: a position is not a time
    ("E15", CONTROLLER, "test_who_would_wait_too_long_is_refused_at_once"),
    # conjure-java-runtime PR #786: leaks that nobody sees
    ("E18", PERMIT, "test_a_permit_that_was_dropped_is_reclaimed_and_reported"),
]


@pytest.mark.parametrize(("complaint", "path", "name"), ELSEWHERE)
def test_those_tested_elsewhere_are(complaint: str, path: str, name: str) -> None:
    tree = ast.parse((TESTS / path).read_text("utf-8"))
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert name in names, f"{complaint} was tested there"


# -- A: slots, queues, races -------------------------------------------------------------


def test_a2_classes_together_never_exceed_the_limit() -> None:
    """Netflix #234: ten for one class and seven guaranteed to another were seventeen."""
    driver = Driver(
        10,
        partitions=[
            PartitionPolicy(name="batch", share=0.3),
            PartitionPolicy(name="live", share=0.7),
        ],
    )
    batch = [driver.arrive(partition="batch", timeout=0) for _ in range(20)]
    live = [driver.arrive(partition="live", timeout=0) for _ in range(20)]
    running = [t for t in batch + live if t.state is State.GRANTED]
    assert len(running) == 10
    assert sum(t in running for t in live) >= 6


def test_a4_those_who_gave_up_take_no_slot() -> None:
    """Failsafe #393: every waiter that timed out ate one permit."""
    driver = Driver(1)
    held = driver.fill(1)[0]
    for _ in range(20):
        driver.arrive(timeout=1)
        driver.pass_time(2)
    driver.finish(held)
    assert driver.controller.inflight == 0
    driver.fill(1)


def test_a17_slots_are_no_kernel_objects_that_die_with_a_thread() -> None:
    """Semian #129: nothing but counts; whoever has the ticket can end it."""
    driver = Driver(1)
    (ticket,) = driver.fill(1)
    driver.controller.finish(ticket, driver.now_ns, Outcome.SUCCESS)
    driver.fill(1)


@pytest.mark.parametrize("change", ["pinned", "moved", "hung", "streaming", "paused"])
def test_a18_the_gauge_is_the_number_that_admission_uses(change: str) -> None:
    """Netflix PR #95: the gauge said 20 while the limit was 41."""
    limit = Script(8)
    driver = Driver(limit, max_limit=16)
    driver.serve(20)
    if change == "pinned":
        driver.controller.set_limit(3, driver.now_ns)
    elif change == "moved":
        limit.limit = 5
        driver.tick()
    elif change == "hung":
        driver.fill(4)
        driver.advance(1000, step=10)
    elif change == "streaming":
        for ticket in driver.fill(8):
            driver.detach(ticket)
        for ticket in driver.fill(4):
            driver.detach(ticket)
    else:
        driver.controller.set_paused(True, driver.now_ns)
    seen = snapshot(driver.controller, driver.now_ns)
    admitted = seen.inflight
    while driver.arrive(partition="other", timeout=0).state is State.GRANTED:
        admitted += 1
    assert seen.limit == admitted


def test_a19_no_wait_means_no_wait() -> None:
    """Netflix #154: something called blocking did not block, and the other way round."""
    driver = Driver(1, max_wait_ns=0)
    driver.fill(1)
    for priority in Priority:
        assert driver.reasons(driver.arrive(priority)) == [Reason.OVERLOADED]


def test_a21_one_time_to_give_up_for_each_wait() -> None:
    """Platinummonkey's limiter waited the timeout again after each attempt."""
    driver = Driver(1)
    driver.fill(1)
    ticket = driver.arrive(timeout=50)
    for _ in range(49):
        driver.arrive(HIGH, timeout=0)
        driver.advance(1)
    assert ticket.state is State.WAITING
    driver.advance(1)
    assert driver.reasons(ticket) == [Reason.EXPIRED]


# -- B: baseline and signal --------------------------------------------------------------


def test_b2_when_all_time_out_alike_the_limit_falls() -> None:
    """Netflix #137: no variation at 5 s each, so the limit went to its maximum."""
    world = World(AdaptiveLimit(maximum=64), steady(), demand=40)
    world.run(10)
    world.rtt_ms, world.demand = steady(5000), None
    world.run(60, dropped=True)
    assert world.limit.limit == 8


def test_b4_one_lucky_request_does_not_crush_the_limit() -> None:
    """Netflix #37: one answer of 150 ms from a service of 300 ms."""
    world = World(AdaptiveLimit(maximum=64), steady(300), demand=40)
    world.run(10)
    before = world.limit.limit
    world.rtt_ms = steady(150)
    world.run(0.003)
    world.rtt_ms = steady(300)
    assert min(world.run(20)) >= 0.9 * before


def test_b9_a_dip_stays_above_the_floor() -> None:
    """Envoy #46532: one setting was both the floor and the concurrency of a probe."""
    world = World(AdaptiveLimit(maximum=64, minimum=10), capacity(12))
    assert min(world.run(120)) >= 10


def test_b11_answers_that_come_in_batches_are_no_congestion() -> None:
    """Netflix #159: each tenth request waits for a flush, and takes ten times as long."""
    count = iter(range(10**9))
    world = World(AdaptiveLimit(maximum=64), lambda _: 200.0 if next(count) % 10 == 9 else 20.0)
    world.run(30)
    assert min(world.run(30)) >= 32


def test_b12_probes_of_a_millisecond_set_no_baseline_for_the_others() -> None:
    """Netflix PR #125, Envoy #8274: health checks made the window, and 1 ms the norm."""
    world = World(AdaptiveLimit(maximum=64), steady(1), demand=1)
    world.run(30, classes="p")
    world.rtt_ms, world.demand = steady(50), 30
    world.run(10, classes="w")
    assert world.limit.estimate == 64.0


def test_b16_what_hangs_is_named() -> None:
    """Netflix #171: a slow dependency looked like the service's own overload."""
    driver = Driver(16)
    driver.serve(20, partition="reports")
    driver.fill(6, "reports")
    driver.advance(6000, step=500)
    assert [name for _, name in driver.told()] == ["reports"]
    seen = snapshot(driver.controller, driver.now_ns)
    assert seen.partitions["reports"].stalled
    assert seen.partitions["reports"].oldest_seconds == 6.0
    assert not seen.overloaded


@pytest.mark.parametrize(("base_ms", "most"), [(1.0, 40), (5.0, 24), (20.0, 24), (400.0, 24)])
def test_b19_fast_and_slow_services_are_both_learned_from(base_ms: float, most: int) -> None:
    """Platinummonkey took 100 ms for 100 us, and threw all faster traffic away."""
    world = World(AdaptiveLimit(maximum=64), capacity(12, base_ms), demand=10)
    world.run(min(30, 4 * base_ms + 2))
    world.demand = None
    world.run(min(30, 10 * base_ms + 2))
    assert 8 <= world.limit.limit <= most


# -- C: growth, floors, little traffic ---------------------------------------------------


def test_c4_a_quiet_hour_does_not_cost_the_limit() -> None:
    """Failsafe-go: a bound by what was in flight lately made the limit fall in each lull."""
    world = World(AdaptiveLimit(maximum=64), steady(), demand=50)
    world.run(20)
    before = world.limit.limit
    world.demand = 2
    world.run(20)
    assert world.limit.limit >= 0.8 * before
    assert world.limit.estimate == 64.0


def test_c7_the_estimate_is_not_cut_to_an_integer() -> None:
    """Envoy #31695: a gradient between 0 and 1 was shown as 0."""
    driver = Driver(Script(3))
    assert snapshot(driver.controller, driver.now_ns).estimate == 3.25


def test_c10_a_burst_cannot_outrun_the_bound_of_the_queue() -> None:
    """Mimir PR #10772: thousands came in before the next look at the queue."""
    driver = Driver(2, max_queue=5)
    driver.fill(2)
    burst = [driver.arrive() for _ in range(1000)]
    assert sum(t.state is State.WAITING for t in burst) == 5
    assert {r for r in driver.reasons(*burst) if r} == {Reason.QUEUE_FULL}


# -- E: queues and refusals --------------------------------------------------------------


def test_e11_a_burst_at_low_load_is_served() -> None:
    """Envoy #18152: refused with a mean use of two percent."""
    driver = Driver(8, max_wait_ns=500 * MS, max_queue=64)
    driver.serve(20)
    for _ in range(10):
        burst = [driver.arrive() for _ in range(32)]
        while any(t.state is not State.ENDED for t in burst):
            running = [t for t in burst if t.state is State.GRANTED]
            driver.advance(20, step=10)
            driver.finish(*running)
        driver.advance(4000, step=500)
    assert driver.controller.totals.shed == {}


def test_e17_a_refusal_is_counted_where_it_is_decided() -> None:
    """LiteLLM PR #36639: a 429 from upstream counted as a refusal of its own."""
    driver = Driver(2)
    driver.finish(*driver.fill(2), outcome=Outcome.DROP)
    assert driver.controller.totals.shed == {}
    driver.fill(2)
    driver.arrive(LOW)
    assert driver.controller.totals.shed == {(LOW, Reason.OVERLOADED): 1}


def test_e14_a_class_that_must_be_heard_is_not_behind_the_others() -> None:
    """Fuel-core #2319: the probe waited behind the limit, and the pod was restarted."""
    driver = Driver(4, partitions=[PartitionPolicy(name="probe", share=0.25)])
    driver.fill(3, "work")
    for _ in range(20):
        driver.arrive(DEFAULT, "work")
    assert driver.arrive(DEFAULT, "probe").state is State.GRANTED
    assert driver.now_ns > S
