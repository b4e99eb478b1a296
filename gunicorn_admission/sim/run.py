"""One run: a scenario, a limit, a seed."""

from __future__ import annotations

from bisect import bisect
from itertools import accumulate
from random import Random

from attrs import frozen

from gunicorn_admission.core.policy import SECOND
from gunicorn_admission.sim.clients import Clients
from gunicorn_admission.sim.clock import Clock, ProcessGenerator, to_ns
from gunicorn_admission.sim.limits import Contender, contender
from gunicorn_admission.sim.pool import Pool
from gunicorn_admission.sim.request import Event
from gunicorn_admission.sim.scenario import Phase, Scenario
from gunicorn_admission.sim.tally import BINS, Tally
from gunicorn_admission.sim.worker import Worker

__all__ = ["Run", "simulate"]

#: Time after the last phase in which answers are still waited for.
_DRAIN = 5.0


@frozen(kw_only=True)
class Run:
    """
    What came out of it.

    Attributes:
        scenario, limit, seed: What was run.
        tally: What was counted.
        wasted: Handlers that ended after their client had gone.
    """

    scenario: Scenario
    limit: str
    seed: int
    tally: Tally
    wasted: int


def simulate(scenario: Scenario, limit: str = "adaptive", seed: int = 1) -> Run:
    """
    Run a scenario once.

    Arrivals depend on the seed only, so limits compared under one seed meet the same load.

    Args:
        scenario: What happens.
        limit: See :func:`~gunicorn_admission.sim.limits.contender`.
        seed: The same seed gives the same run.

    Raises:
        ConfigError: The limit is unknown or the settings of the scenario cannot work.

    Thread safety: pure.
    """
    world = _World(scenario, contender(limit, scenario), seed)
    world.clock.run_for(scenario.seconds + _DRAIN)
    world.tally.close()
    wasted = sum(worker.wasted for worker in world.workers)
    return Run(scenario=scenario, limit=limit, seed=seed, tally=world.tally, wasted=wasted)


class _World:
    """Everything of one run, put together."""

    def __init__(self, scenario: Scenario, chosen: Contender, seed: int) -> None:
        self._scenario = scenario
        self._seed = seed
        self.clock = Clock()
        self.tally = Tally(scenario)
        self._clients = Clients(scenario, self.clock, self._random("clients"), self.tally)
        self._shared = {
            one.name: Pool(one, self.clock, self._random(one.name))
            for one in scenario.dependencies
            if one.shared
        }
        resolved = scenario.admission().derive(scenario.threads, waiting_holds_thread=False)
        policy = chosen.policy(resolved.policy)
        self.workers = [
            Worker(
                index=index,
                clock=self.clock,
                random=self._random(f"jitter {index}"),
                policy=policy,
                partitions=resolved.partitions,
                limit=chosen.make(policy, self._random(f"limit {index}")),
                kinds=scenario.classes,
                pools=self._pools(index),
                threads=scenario.threads,
                admission_cpu=scenario.admission_cpu,
                answered=self._clients.answered,
                left=self._clients.left,
            )
            for index in range(scenario.workers)
        ]
        self._clients.workers = self.workers
        self.clock.process(self._live())
        self.clock.process(self._watch())

    def _random(self, what: str) -> Random:
        """An independent stream; adding one more changes none of the others."""
        return Random(f"{self._seed} {what}")

    def _pools(self, index: int) -> dict[str, Pool]:
        own = {
            one.name: Pool(one, self.clock, self._random(f"{one.name} {index}"))
            for one in self._scenario.dependencies
            if not one.shared
        }
        return {**self._shared, **own}

    # -- what happens by itself ------------------------------------------------------

    def _live(self) -> ProcessGenerator:
        random = self._random("arrivals")
        for index, phase in enumerate(self._scenario.phases):
            self.tally.counting = phase.name in self._scenario.counts
            self._break(phase)
            if phase.pause:
                self.clock.process(self._pause(phase))
            yield from self._arrive(index, phase, random)
        self.tally.counting = False
        self._heal()

    def _arrive(self, index: int, phase: Phase, random: Random) -> ProcessGenerator:
        """Poisson arrivals of single requests or of bursts, until the phase ends."""
        clock, send, sleep = self.clock, self._clients.send, self.clock.timeout
        draw, choose = random.expovariate, random.random
        ends_ns = clock.now_ns + to_ns(phase.seconds)
        per_ns = phase.rate / phase.burst / SECOND
        weights = [phase.mix.get(kind.name, kind.weight) for kind in self._scenario.classes]
        bounds = list(accumulate(weights))
        last, total = len(bounds) - 1, bounds[-1]
        while True:
            gap_ns = int(draw(per_ns))
            if clock.now_ns + gap_ns >= ends_ns:
                yield sleep(ends_ns - clock.now_ns)
                return
            yield sleep(gap_ns)
            kinds = [bisect(bounds, choose() * total, 0, last) for _ in range(phase.burst)]
            for kind in sorted(kinds) if phase.ordered else kinds:
                send(Event(kind, index))

    def _break(self, phase: Phase) -> None:
        for worker in self.workers:
            for name, pool in worker.pools.items():
                fault = phase.faults.get(name)
                hit = fault is not None and (fault.workers is None or worker.index in fault.workers)
                pool.set_fault(fault if hit else None)

    def _heal(self) -> None:
        for worker in self.workers:
            for pool in worker.pools.values():
                pool.set_fault(None)

    def _pause(self, phase: Phase) -> ProcessGenerator:
        ends_ns = self.clock.now_ns + to_ns(phase.seconds)
        while self.clock.now_ns + to_ns(phase.pause_every) < ends_ns:
            yield self.clock.timeout(to_ns(phase.pause_every))
            for worker in self.workers:
                worker.pause(to_ns(phase.pause))

    def _watch(self) -> ProcessGenerator:
        """Write down the state of the workers at the end of every slice."""
        timeline = self.tally.timeline
        count = len(self.workers)
        for done in range(BINS):
            yield self.clock.timeout(to_ns(timeline.width))
            controllers = [worker.controller for worker in self.workers]
            timeline.limit.append(sum(c.allowed for c in controllers) / count)
            timeline.inflight.append(sum(c.inflight for c in controllers) / count)
            timeline.waiting.append(sum(c.waiting for c in controllers) / count)
            targets = [c.congestion.target_ns / SECOND for c in controllers]
            timeline.target.append(sum(targets) / count)
            flags = [c.congestion.overloaded for c in controllers]
            timeline.overloaded.append(sum(flags) / count)
            self.tally.slice = min(done + 1, BINS - 1)
