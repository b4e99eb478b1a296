"""Tries the candidates and chooses: every one of them on every resample, under both loads."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from random import Random
from typing import Final

from attrs import evolve, frozen

from gunicorn_admission.sim.figures import Figures, figures, mean
from gunicorn_admission.sim.parallel import in_processes
from gunicorn_admission.sim.run import simulate
from gunicorn_admission.sim.scenario import Scenario
from gunicorn_admission.sim.tune.candidates import CONFIGURED, DEFAULTS, Candidate, candidates
from gunicorn_admission.sim.tune.fit import FEWEST, Fit, fit
from gunicorn_admission.sim.tune.replay import Deployment, Stretch, busiest, scenarios
from gunicorn_admission.sim.tune.windows import Traffic, Window

__all__ = ["Advice", "Row", "advise", "choose"]

#: What counts as the same goodput, and as the same share of requests that succeed.
_SAME: Final = 0.03
_HARMLESS: Final = 0.01
_MUCH: Final = 0.05
#: A shorter delay must be shorter by so much to be worth a setting.
_WORTH: Final = 0.8

#: A context manager around so many runs; what it yields is called after each of them.
Watch = Callable[[int], AbstractContextManager[Callable[[], None]]]
_Job = tuple[str, str, Scenario, str, int]


@frozen(kw_only=True)
class Row:
    """
    What became of the load under one candidate.

    Attributes:
        candidate: Which.
        loads: Means over the resamples, by load: ``logged`` and ``overload``.
    """

    candidate: Candidate
    loads: Mapping[str, Figures]


@frozen(kw_only=True)
class Advice:
    """
    What came out.

    Attributes:
        fit: Of the whole log.
        fits: Of its resamples, one for each seed.
        stretch: What was replayed.
        scenarios: The loads, as the whole log gives them.
        rows: Every candidate, in the order tried.
        chosen: The one that is recommended.
        agreement: Share of the resamples that alone would have recommended it, or one that
            is as good.
    """

    fit: Fit
    fits: tuple[Fit, ...]
    stretch: Stretch
    scenarios: Mapping[str, Scenario]
    rows: tuple[Row, ...]
    chosen: Row
    agreement: float


def advise(
    traffic: Traffic,
    deployment: Deployment,
    seeds: Sequence[int],
    *,
    connections: int | None = None,
    processes: int = 1,
    watch: Watch = lambda runs: nullcontext(lambda: None),
) -> Advice:
    """
    Find settings for the traffic of a log.

    Each seed draws as many windows as the log has, with replacement, fits a service to
    them and runs every candidate on it: what is spread over the seeds is then both the
    chance of the simulation and that of what happened to be logged.

    Args:
        traffic, deployment: What is known.
        seeds: One resample for each.
        connections: Capacity of the service, where the user knows it.
        processes: How many runs at the same time.
        watch: Told how many runs there will be; what it yields is called after each.

    Raises:
        ConfigError: There are too few requests, or configured settings cannot work.
    """
    whole = fit(traffic, connections=connections)
    stretch = busiest(traffic, whole.means)
    tried = candidates(whole, deployment)
    loads = scenarios(traffic, whole, stretch, deployment)
    for one in tried:
        for scenario in loads.values():
            changed = one.apply(scenario)
            changed.admission().derive(changed.threads, waiting_holds_thread=False)
    fits = tuple(_resampled(traffic, seed, connections) for seed in seeds)
    jobs: list[_Job] = [
        (one.name, load, one.apply(scenario), one.limit, seed)
        for seed, each in zip(seeds, fits, strict=True)
        for load, scenario in scenarios(traffic, each, stretch, deployment).items()
        for one in tried
    ]
    found: dict[tuple[str, str, int], Figures] = {}
    with watch(len(jobs)) as done:
        for (name, load, _, _, seed), result in in_processes(_run, jobs, processes):
            found[name, load, seed] = result
            done()

    def rows(chosen: Sequence[int]) -> tuple[Row, ...]:
        return tuple(
            Row(
                candidate=one,
                loads={load: mean([found[one.name, load, s] for s in chosen]) for load in loads},
            )
            for one in tried
        )

    table = rows(seeds)
    chosen = choose(table)
    agree = sum(chosen.candidate in [r.candidate for r in _good(rows([s]))] for s in seeds)
    return Advice(
        fit=whole,
        fits=fits,
        stretch=stretch,
        scenarios=loads,
        rows=table,
        chosen=chosen,
        agreement=agree / len(seeds),
    )


def choose(rows: Sequence[Row]) -> Row:
    """
    Return the row to recommend.

    Of those that refuse nothing of the logged load that another would have served, and that
    serve as much as the best under overload, it is the one with the shortest delays; unless
    what is configured, or the defaults, are among them and not much slower.
    """
    good = _good(rows)
    names = [row.candidate.name for row in good]
    most = max(good, key=lambda row: row.loads["overload"].goodput)
    wanted = (name for name in (CONFIGURED, DEFAULTS) if name in names)
    usual = good[names.index(next(wanted, most.candidate.name))]
    quickest = min(good, key=_slowest)
    return quickest if _slowest(quickest) < _WORTH * _slowest(usual) else usual


def _good(rows: Sequence[Row]) -> list[Row]:
    usable = [row for row in rows if row.candidate.usable]
    served = max(row.loads["logged"].success for row in usable)
    # A limit that refuses much of what was served in fact is worse than none.
    usable += [
        row
        for row in rows
        if row.candidate.unbounded and row.loads["logged"].success > served + _MUCH
    ]
    served = max(row.loads["logged"].success for row in usable)
    # Where the best refuses something too, the logged load was an overload already.
    least = served - _HARMLESS if served > 1 - _HARMLESS else 0.0
    harmless = [row for row in usable if row.loads["logged"].success >= least]
    best = max((row.loads["overload"] for row in harmless), key=lambda one: one.goodput)
    return [row for row in harmless if _as_good(row.loads["overload"], best)]


def _as_good(one: Figures, best: Figures) -> bool:
    """Whether it serves as much, as far as so few runs can tell."""
    chance = 2 * math.hypot(one.spread, best.spread) / math.sqrt(one.seeds)
    return one.goodput >= best.goodput - max(_SAME * best.goodput, chance)


def _slowest(row: Row) -> float:
    return row.loads["overload"].p99 or 0.0


def _resampled(traffic: Traffic, seed: int, connections: int | None) -> Fit:
    random = Random(f"{seed} windows")
    windows: list[Window] = []
    while sum(window.done for window in windows) < FEWEST:  # of few windows some are nearly empty
        windows = random.choices(traffic.windows, k=len(traffic.windows))
    return fit(traffic, windows, connections)


def _run(job: _Job) -> Figures:
    name, _, scenario, limit, seed = job
    return evolve(figures(simulate(scenario, limit, seed)), limit=name)
