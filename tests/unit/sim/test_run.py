"""A run: repeatable, and nobody is lost."""

from __future__ import annotations

import pytest
from attrs import evolve

from gunicorn_admission.sim.clock import to_ns
from gunicorn_admission.sim.run import Run, simulate
from gunicorn_admission.sim.scenario import Class, Fault, Phase, Scenario, Sender
from tests.simulating import DB, run, scenario

OVER = scenario(rate=500)


def counts(result: Run) -> tuple[int, ...]:
    one = result.tally.classes[0]
    return (
        one.offered, one.attempts, one.delivered, one.failed, one.gave_up,
        sum(one.refused.values()),
    )  # fmt: skip


def test_a_seed_gives_one_run() -> None:
    assert counts(simulate(OVER, "adaptive", 7)) == counts(simulate(OVER, "adaptive", 7))
    assert counts(simulate(OVER, "adaptive", 7)) != counts(simulate(OVER, "adaptive", 8))


def test_every_limit_meets_the_same_load() -> None:
    runs = [simulate(OVER, limit, 7) for limit in ("adaptive", "fixed:2", "vegas", "none")]
    assert len({tuple(one.tally.timeline.first[0]) for one in runs}) == 1


@pytest.mark.parametrize("limit", ["adaptive", "gradient2", "vegas", "aimd", "pool", "none"])
def test_nobody_is_lost(limit: str) -> None:
    offered, attempts, delivered, failed, gave_up, refused = counts(simulate(OVER, limit, 3))
    assert offered == attempts == delivered + failed + gave_up + refused
    assert offered == pytest.approx(2500, rel=0.1)


def test_time_passes_as_it_should() -> None:
    phases = (
        Phase(name="quiet", seconds=5, rate=20),
        Phase(name="busy", seconds=5, rate=100),
    )
    timeline = simulate(scenario(phases=phases), "pool", 1).tally.timeline
    half = len(timeline.limit) // 2
    assert sum(timeline.first[0][:half]) == pytest.approx(100, rel=0.4)
    assert sum(timeline.first[0][half:]) == pytest.approx(500, rel=0.2)
    assert set(timeline.limit) == {16}


def test_a_calm_server_refuses_nobody() -> None:
    result = run(scenario(rate=80))
    assert result.success == 1.0
    assert result.goodput == pytest.approx(80, rel=0.1)
    assert result.p50 == pytest.approx(0.020, rel=0.1)


def test_bursts_arrive_at_once() -> None:
    burst = Phase(name="load", seconds=5, rate=100, burst=50)
    result = run(scenario(phases=(burst,)), "fixed:16")
    assert result.delay_p99 is not None and result.delay_p99 > 0.1


def test_a_mix_of_its_own_for_a_phase() -> None:
    classes = (Class(name="/a"), Class(name="/b", weight=3))
    phases = (
        Phase(name="one", seconds=5, rate=100),
        Phase(name="two", seconds=5, rate=100, mix={"/b": 0}),
    )
    first = simulate(scenario(classes=classes, phases=phases, measured=("one",)), "pool", 1)
    offered = [one.offered for one in first.tally.classes]
    assert offered[1] / sum(offered) == pytest.approx(0.75, abs=0.08)
    second = simulate(scenario(classes=classes, phases=phases, measured=("two",)), "pool", 1)
    assert second.tally.classes[1].offered == 0


class TestSenders:
    """What clients do when they are turned away."""

    @staticmethod
    def broken(sender: Sender) -> Scenario:
        fault = {"db": Fault(fails=1.0)}
        phases = (
            Phase(name="broken", seconds=2, rate=50, faults=fault),
            Phase(name="well", seconds=4, rate=1),
        )
        classes = (Class(name="/", sender=sender),)
        return scenario(phases=phases, classes=classes, measured=("broken",))

    def test_without_retries_a_failure_is_final(self) -> None:
        result = run(self.broken(Sender()))
        assert (result.success, result.attempts, result.failed) == (0.0, 1.0, 1.0)

    def test_a_retry_can_succeed(self) -> None:
        result = run(self.broken(Sender(retries=(3.0,), jitter=0.0)))
        assert result.success == 1.0
        assert result.attempts == 2.0

    def test_retries_end(self) -> None:
        result = run(self.broken(Sender(retries=(0.01, 0.01))))
        assert result.attempts == pytest.approx(3.0, abs=0.05)

    def test_retry_after_is_obeyed_by_those_who_do(self) -> None:
        polite = Sender(retries=(0.05,))
        rude = evolve(polite, obeys_retry_after=False)
        over = scenario(rate=1000, seconds=2, classes=(Class(name="/", sender=polite),))
        rudely = evolve(over, classes=(Class(name="/", sender=rude),))
        # The smallest Retry-After is half a second, so most of theirs come after the load.
        assert run(over).success > run(rudely).success + 0.1

    def test_lost_patience(self) -> None:
        slow = Phase(name="load", seconds=3, rate=50, faults={"db": Fault(slower=20.0)})
        impatient = (Class(name="/", sender=Sender(patience=0.1)),)
        result = run(scenario(phases=(slow,), classes=impatient), "none")
        assert result.success == 0.0
        assert result.gave_up == 1.0
        assert result.wasted == 1.0


class TestWorkers:
    """Several processes behind a balancer."""

    def test_a_dependency_of_their_own_or_a_shared_one(self) -> None:
        own = scenario(rate=500, workers=4)
        assert run(own, "fixed:4").success > 0.98
        shared = scenario(rate=500, workers=4, dependencies=(evolve(DB, shared=True),))
        assert run(shared, "fixed:4").success < 0.5

    def test_a_fault_that_hits_one(self) -> None:
        phases = (
            Phase(name="load", seconds=4, rate=100, faults={"db": Fault(fails=1.0, workers=(1,))}),
        )
        turns = scenario(phases=phases, workers=2, balancing="round_robin")
        assert run(turns).success == pytest.approx(0.5, abs=0.01)
        assert run(evolve(turns, elsewhere=1)).success == 1.0

    def test_the_least_busy_is_chosen(self) -> None:
        phases = (
            Phase(name="load", seconds=4, rate=100, faults={"db": Fault(hangs=True, workers=(1,))}),
        )
        hung = scenario(phases=phases, workers=2)
        assert run(evolve(hung, balancing="least"), "none").success > 0.9
        assert run(evolve(hung, balancing="random"), "none").success < 0.6

    def test_one_may_get_more(self) -> None:
        even = scenario(rate=300, workers=3, settings={"max_queue": 0})
        # 100/s each fit into 8 slots nearly always; 300/s are more than 200/s in any case.
        assert run(even, "fixed:8").refused < 0.02
        assert run(evolve(even, uneven=2.0), "fixed:8").refused > 0.1

    def test_hundreds_of_them(self) -> None:
        many = scenario(rate=3000, seconds=1, workers=300, balancing="round_robin")
        result = run(many, "adaptive", 1)
        assert result.success == 1.0
        assert result.goodput == pytest.approx(3000, rel=0.1)


def test_work_under_the_gil_is_bounded_by_one_core() -> None:
    busy = (Class(name="/", dependency=None, cpu=0.010, sender=Sender(patience=5)),)
    result = run(scenario(rate=300, classes=busy, dependencies=()), "pool")
    assert result.goodput == pytest.approx(100, rel=0.05)


def test_decisions_cost_what_they_cost() -> None:
    costly = scenario(rate=200, admission_cpu=0.010)
    assert run(costly).success < run(scenario(rate=200)).success - 0.2


def test_a_pause_shows_in_the_latency() -> None:
    load = Phase(name="load", seconds=6, rate=100)
    classes = (Class(name="/", cpu=0.0005, sender=Sender(patience=1.0)),)
    steady = run(scenario(phases=(load,), classes=classes))
    paused = evolve(load, pause_every=1.0, pause=0.3)
    halting = run(scenario(phases=(paused,), classes=classes))
    assert steady.p99 is not None and halting.p99 is not None
    assert halting.p99 > steady.p99 + 0.1


def test_seconds_become_nanoseconds() -> None:
    assert to_ns(0.000_000_001) == 1
    assert to_ns(1.5) == 1_500_000_000
