"""Several limits under the same loads, in as many processes as there are cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from gunicorn_admission.sim.figures import Figures, figures, mean
from gunicorn_admission.sim.limits import contender
from gunicorn_admission.sim.parallel import in_processes
from gunicorn_admission.sim.run import Run, simulate
from gunicorn_admission.sim.scenario import Scenario

__all__ = ["Comparison", "compare"]


@frozen(kw_only=True)
class Comparison:
    """
    What came out.

    Attributes:
        scenario, seeds: What was run.
        rows: A mean over the seeds for each limit, in the order in which they were asked for.
        runs: The run under the first seed for each of them, for plots.
    """

    scenario: Scenario
    seeds: tuple[int, ...]
    rows: tuple[Figures, ...]
    runs: tuple[Run, ...]


def compare(
    scenario: Scenario,
    limits: Sequence[str],
    seeds: Sequence[int],
    *,
    processes: int = 1,
    done: Callable[[], None] = lambda: None,
) -> Comparison:
    """
    Run a scenario under each limit and seed.

    Args:
        scenario: What happens.
        limits: See :func:`~gunicorn_admission.sim.limits.contender`.
        seeds: One run of each limit under each of them.
        processes: How many runs at the same time; 1 stays in this process.
        done: Called after each run.

    Raises:
        ConfigError: A limit is unknown or the settings of the scenario cannot work.
    """
    for limit in limits:
        contender(limit, scenario)
    scenario.admission().derive(scenario.threads, waiting_holds_thread=False)
    jobs = [(scenario, limit, seed) for limit in limits for seed in seeds]
    runs: dict[tuple[str, int], Run] = {}
    for _, run in in_processes(_run, jobs, processes):
        runs[run.limit, run.seed] = run
        done()
    return Comparison(
        scenario=scenario,
        seeds=tuple(seeds),
        rows=tuple(mean([figures(runs[limit, seed]) for seed in seeds]) for limit in limits),
        runs=tuple(runs[limit, seeds[0]] for limit in limits),
    )


def _run(job: tuple[Scenario, str, int]) -> Run:
    return simulate(*job)
