"""
What the simulator costs: an arrival in it, beside the least that one could cost.

    python -m benchmarks.simulator [--rounds 5] [--seconds 20] [--json FILE]
"""

from __future__ import annotations

import random
import time
from functools import partial

from benchmarks.comparison import Comparison, command, interleaved
from gunicorn_admission.core.controller import Controller
from gunicorn_admission.core.limits import AdaptiveLimit
from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import Outcome, Priority, State
from gunicorn_admission.settings import Settings
from gunicorn_admission.sim.clock import Clock, ProcessGenerator, Timeout
from gunicorn_admission.sim.run import simulate
from gunicorn_admission.sim.scenario import Class, Dependency, Phase, Scenario, Sender

__all__ = ["measure"]

_RATE = 800.0
_THREADS = 32
_NODES = 100


def measure(rounds: int, seconds: float) -> list[Comparison]:
    """Everything here; ``seconds`` are virtual, and 800 requests come in each of them."""
    figures = interleaved(
        {
            "ours": partial(_arrival, _scenario(seconds), "adaptive"),
            "none": partial(_arrival, _scenario(seconds), "none"),
            "nodes": partial(_arrival, _scenario(seconds, _NODES), "adaptive"),
            "core": partial(_core, seconds),
            "simpy": partial(_simpy, seconds),
        },
        rounds,
    )
    peers = {
        "simpy": "simpy, two events an arrival",
        "core": "the core alone, offer + finish",
        "none": "the same worker without admission",
    }
    return [
        *(
            Comparison(
                what="simulated arrival", unit="us", ours=figures["ours"], peer=peer,
                theirs=figures[name],
            )
            for name, peer in peers.items()
        ),
        Comparison(
            what=f"simulated arrival, {_NODES} workers", unit="us", ours=figures["nodes"],
            peer="one worker", theirs=figures["ours"],
        ),
        Comparison(
            what="simulated arrivals", unit="/s", ours=[1e6 / one for one in figures["ours"]]
        ),
    ]  # fmt: skip


def _scenario(seconds: float, workers: int = 1) -> Scenario:
    """A database of 500 calls a second, and more than that."""
    return Scenario(
        name="speed",
        title="",
        phases=(Phase(name="over", seconds=seconds, rate=_RATE),),
        classes=(Class(name="/", sender=Sender(patience=1.0)),),
        dependencies=(Dependency(connections=10, seconds=0.020, shared=True),),
        threads=_THREADS,
        workers=workers,
    )


def _arrival(scenario: Scenario, limit: str) -> float:
    """Microseconds of CPU an arrival."""
    began = time.process_time_ns()
    run = simulate(scenario, limit)
    used = time.process_time_ns() - began
    return used / 1000 / sum(one.offered for one in run.tally.classes)


def _core(seconds: float) -> float:
    """The same number of decisions, each granted and ended, with nothing around."""
    policy = Settings().derive(_THREADS, waiting_holds_thread=False).policy
    jitter = random.Random(1).random
    limit = AdaptiveLimit(maximum=policy.max_limit, minimum=policy.min_limit, jitter=jitter)
    controller = Controller(policy, limit, 10**9, jitter)
    partition = controller.shares.get("/")
    count, now_ns = int(seconds * _RATE), 10**9
    began = time.process_time_ns()
    for _ in range(count):
        ticket = Ticket(partition, Priority.DEFAULT, now_ns)
        controller.offer(ticket, now_ns)
        assert ticket.state is State.GRANTED
        now_ns += int(1e9 / _RATE)
        controller.finish(ticket, now_ns, Outcome.SUCCESS)
        controller.events.clear()
        controller.changed.clear()
    return (time.process_time_ns() - began) / 1000 / count


def _simpy(seconds: float) -> float:
    """As many arrivals, each of which ends after a while."""
    clock, count = Clock(), int(seconds * _RATE)
    gap_ns = int(1e9 / _RATE)

    def nothing(timeout: Timeout) -> None:
        """The end of a request."""

    def arrive() -> ProcessGenerator:
        for _ in range(count):
            yield clock.timeout(gap_ns)
            clock.after(20_000_000, nothing)

    clock.process(arrive())
    began = time.process_time_ns()
    clock.run_for(seconds + 1)
    return (time.process_time_ns() - began) / 1000 / count


def main() -> None:
    command(__doc__, measure, rounds=5, seconds=20, of="virtual, of each run")


if __name__ == "__main__":
    main()
