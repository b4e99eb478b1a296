"""The default limit, in a world where the service time follows the concurrency at once."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import cycle

import pytest

from gunicorn_admission.core.limits import AdaptiveLimit
from gunicorn_admission.errors import ConfigError
from tests.driving import MS, S
from tests.worlds import World, capacity, steady


def world(rtt_ms: Callable[[int], float], maximum: int = 64, demand: int | None = None) -> World:
    return World(AdaptiveLimit(maximum=maximum), rtt_ms, demand)


def test_it_starts_at_the_top_within_what_is_reasonable_unproven() -> None:
    limit = AdaptiveLimit(maximum=64)
    assert limit.estimate == 64.0
    assert 8 <= limit.limit <= 64
    assert AdaptiveLimit(maximum=4).limit == 4


def test_the_floor_follows_the_pool() -> None:
    shrunk = world(steady())
    shrunk.run(60, dropped=True)
    assert shrunk.limit.limit == 8  # an eighth of 64
    small = world(steady(), maximum=4)
    small.run(60, dropped=True)
    assert small.limit.limit == 1


@pytest.mark.parametrize(
    "bounds",
    [
        {"maximum": 0},
        {"maximum": 4, "minimum": 5},
        {"maximum": 4, "minimum": 0},
        {"maximum": 2.5},
        {"maximum": True},
    ],
)
def test_bounds_are_checked(bounds: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        AdaptiveLimit(**bounds)


@pytest.mark.parametrize("slots", [8, 12, 16, 32])
def test_it_finds_the_capacity_under_endless_demand(slots: int) -> None:
    w = world(capacity(slots))
    w.run(60)
    seen = w.run(60)
    # Half as much again is the tolerance; all beyond it only makes a queue below.
    assert slots <= sum(seen) / len(seen) <= 2.0 * slots
    assert max(seen) < 64 or slots == 32


def test_it_finds_it_soon() -> None:
    w = world(capacity(8), demand=6)
    w.run(5)
    w.demand = None
    w.run(3)
    assert w.limit.limit <= 16


def test_it_does_not_mistake_a_baseline_learned_under_load_for_the_truth() -> None:
    """All samples ever seen were taken under overload; a dip shows what they hid."""
    w = world(capacity(8))
    assert w.limit.limit > 8
    w.run(120)
    seen = w.run(30)
    assert sum(seen) / len(seen) <= 16


def test_it_grows_from_the_floor_to_the_top_within_a_minute() -> None:
    w = world(steady())
    w.run(60, dropped=True)
    assert w.limit.limit == 8
    w.run(60)
    assert w.limit.limit == 64


def test_it_leaves_one() -> None:
    w = world(steady(), maximum=4)
    w.run(60, dropped=True)
    assert w.limit.limit == 1
    w.run(30)
    assert w.limit.limit == 4


def test_it_does_not_grow_while_it_is_not_used() -> None:
    w = world(steady())
    w.run(60, dropped=True)
    w.demand = 3
    assert set(w.run(60)) == {8}


def test_a_mix_of_fast_and_slow_classes_is_no_congestion() -> None:
    kinds = {"f": 10.0, "s": 500.0}
    names = cycle("ffffs")
    now = {"class": "f"}

    def rtt(_: int) -> float:
        return kinds[now["class"]]

    limit = AdaptiveLimit(maximum=32)
    now_ns = 0
    for _ in range(20_000):
        now["class"] = next(names)
        now_ns += 10 * MS
        rtt_ns = round(rtt(0) * MS)
        limit.on_sample(
            now_ns=now_ns, rtt_ns=rtt_ns, inflight=limit.limit, dropped=False,
            partition=now["class"],
        )  # fmt: skip
    assert limit.estimate == 32.0


def test_a_changed_mix_is_no_congestion() -> None:
    limit = AdaptiveLimit(maximum=32)
    now_ns = 0
    for phase in ("ffffs", "sssss", "fssss"):
        for name, _ in zip(cycle(phase), range(2000), strict=False):
            now_ns += 10 * MS
            limit.on_sample(
                now_ns=now_ns, rtt_ns=(10 if name == "f" else 500) * MS, inflight=12,
                dropped=False, partition=name,
            )  # fmt: skip
    assert limit.estimate == 32.0


@pytest.mark.parametrize("sigma", [0.5, 1.0, 1.5])
def test_service_times_that_vary_by_chance_are_no_congestion(sigma: float) -> None:
    """Nothing is in their way: the median of twenty is wrong by chance, and often."""
    draw = random.Random(17)
    world = World(
        AdaptiveLimit(maximum=32), lambda _: 20 * draw.lognormvariate(0, sigma), demand=12
    )
    world.run(30)
    assert min(world.run(60)) >= 12
    assert world.limit.estimate >= 24
    assert world.limit._baselines.get("a").rtt_ns == pytest.approx(20 * MS, rel=0.25)


def test_a_dip_shows_nothing_of_requests_that_are_too_short() -> None:
    """Seven of ten take 1 ms: their being as fast as ever says nothing about the others."""
    limit = AdaptiveLimit(maximum=64)
    for i in range(60_000):
        name, rtt_ms = ("slow", 20) if i % 10 >= 7 else ("fast", 1)
        limit.on_sample(
            now_ns=S + i * MS, rtt_ns=rtt_ms * MS, inflight=limit.limit, dropped=False,
            partition=name,
        )  # fmt: skip
    assert limit._baselines.get("slow").rtt_ns == 20 * MS


def test_windows_with_nothing_but_drops_shrink() -> None:
    w = world(steady())
    w.run(5)
    before = w.limit.estimate
    w.run(1, dropped=True)
    assert w.limit.estimate < before


def test_a_drop_costs_a_tenth_a_window_however_many_there_are() -> None:
    w = world(steady())
    w.run(0.09, dropped=True)
    assert w.limit.estimate == 64.0
    w.run(0.1, dropped=True)
    assert w.limit.estimate == pytest.approx(57.6)


@pytest.mark.parametrize("rtt_ns", [0, -5])
def test_a_sample_without_a_time_is_ignored(rtt_ns: int) -> None:
    limit = AdaptiveLimit(maximum=16)
    for i in range(100):
        limit.on_sample(now_ns=i * S, rtt_ns=rtt_ns, inflight=5, dropped=False)
    assert limit.estimate == 16.0


def test_one_pause_of_the_machine_does_not_starve_the_pool() -> None:
    """Everything took four times as long for a moment; the best rate of a second remembers."""
    w = world(capacity(8))
    w.run(120)
    w.rtt_ms = lambda inflight: 4 * capacity(8)(inflight)
    w.run(0.2)
    assert w.limit.limit >= 8
    w.rtt_ms = capacity(8)
    w.run(5)
    assert 8 <= w.limit.limit <= 16


def test_a_dependency_that_became_slower_is_accepted_as_it_is() -> None:
    """Five times slower with the same number of connections: the floor is not the answer."""
    w = world(capacity(16), demand=12)
    w.run(30)
    w.rtt_ms, w.demand = capacity(16, base_ms=100.0), None
    w.run(60)
    seen = w.run(60)
    assert sum(seen) / len(seen) >= 14


def test_and_one_that_is_quick_again_too() -> None:
    w = world(capacity(16, base_ms=100.0), demand=12)
    w.run(60)
    w.rtt_ms, w.demand = capacity(16), None
    w.run(60)
    seen = w.run(60)
    assert 16 <= sum(seen) / len(seen) <= 32


def test_little_traffic_is_enough_to_learn_from() -> None:
    """Three requests a second never fill a window of 20; they are carried over instead."""
    w = world(lambda n: 300.0 * n, maximum=32, demand=1)
    w.run(60)
    w.rtt_ms, w.demand = (lambda n: 1500.0), 8
    before = w.limit.limit
    w.run(20)
    assert w.limit.limit < before


def test_a_lone_request_is_never_congestion() -> None:
    w = world(steady(), demand=1)
    w.run(30)
    w.rtt_ms = steady(400.0)
    w.run(3)
    assert w.limit.estimate == 64.0


def test_dips_are_short_and_rare() -> None:
    w = world(capacity(16))
    w.run(60)
    seen = w.run(300)
    usual = sorted(seen)[len(seen) // 2]
    assert sum(n <= 0.6 * usual for n in seen) <= 0.05 * len(seen)


def test_dips_of_many_workers_do_not_coincide() -> None:
    def first_dip(jitter: float) -> int:
        limit = AdaptiveLimit(maximum=64, jitter=lambda: jitter)
        w = World(limit, capacity(16))
        while limit._dip.since_ns < 0:
            w.run(0.1)
        return w.now_ns

    dips = [first_dip(j / 4) for j in range(4)]
    assert dips == sorted(dips)
    assert dips[-1] - dips[0] >= 200 * MS


def test_bounds_can_be_moved() -> None:
    limit = AdaptiveLimit(maximum=64)
    limit.set_bounds(2, 4)
    assert limit.limit == 4
    assert limit.estimate == 4.0
    limit.set_bounds(6, 9)
    assert limit.limit == 6
    with pytest.raises(ConfigError):
        limit.set_bounds(3, 2)


def test_it_says_what_it_is() -> None:
    assert repr(AdaptiveLimit(maximum=16)) == (
        "AdaptiveLimit(estimate=16.0, minimum=2, maximum=16)"
    )
