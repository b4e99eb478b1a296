"""Scenarios for tests: small, and shorter than those of the library."""

from __future__ import annotations

from statistics import fmean

from attrs import evolve

from gunicorn_admission.sim.figures import Figures, figures, mean
from gunicorn_admission.sim.library import find
from gunicorn_admission.sim.run import simulate
from gunicorn_admission.sim.scenario import Class, Dependency, Phase, Scenario, Sender

DB = Dependency(connections=4, seconds=0.020, contention=0.03)  # 200 requests a second


def scenario(rate: float = 100, seconds: float = 5, **changes: object) -> Scenario:
    """One worker with 16 threads on ``DB``, and one phase of load."""
    given: dict[str, object] = {
        "name": "small",
        "title": "a small one",
        "phases": (Phase(name="load", seconds=seconds, rate=rate),),
        "classes": (Class(name="/", sender=Sender(patience=1.0)),),
        "dependencies": (DB,),
        "threads": 16,
        "oracle": 4,
    }
    return Scenario(**{**given, **changes})  # type: ignore[arg-type]


def shorter(name: str, **seconds: float) -> Scenario:
    """A scenario of the library with phases of other lengths, by their names."""
    found = find(name)
    phases = (
        evolve(phase, seconds=seconds.get(phase.name.replace(" ", "_"), phase.seconds))
        for phase in found.phases
    )
    return evolve(found, phases=tuple(phases))


def run(chosen: Scenario, limit: str = "adaptive", *seeds: int) -> Figures:
    """Mean figures under some seeds; 1 and 2 unless said otherwise."""
    return mean([figures(simulate(chosen, limit, seed)) for seed in seeds or (1, 2)])


def average(values: list[float], begin: float, end: float) -> float:
    """Mean of a stretch of a timeline, from one share of it to another."""
    return fmean(values[int(begin * len(values)) : int(end * len(values))])
