"""From the counts of a run to the figures that are compared."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from math import ceil
from statistics import fmean, stdev
from typing import Any

from attrs import asdict, evolve, fields, frozen

from gunicorn_admission.core.types import Priority
from gunicorn_admission.sim.run import Run
from gunicorn_admission.sim.tally import ClassTally

__all__ = ["Figures", "figures", "mean", "percentile"]


@frozen(kw_only=True)
class Figures:
    """
    One row of a comparison. Rates are per second, times in seconds, the rest shares.

    Attributes:
        limit: Name of the limit.
        goodput: Successes in time, while the phases that count went on, per second.
        spread: Standard deviation of ``goodput`` over the seeds; 0.0 for one.
        offered: Requests that the clients wanted served, per second.
        success: Share of the offered that succeeded.
        classes: The same by class.
        priorities: The same by priority; those that do not occur are left out.
        p50, p99: Time from sending to answer of what succeeded.
        delay_p99: Queue delay of it.
        refusal_p99: Time to a refusal.
        refused, gave_up, failed: Share of the attempts that ended so.
        reasons: Share of the attempts refused, by reason.
        attempts: Attempts for each offered request.
        wasted: Requests that were worked on for clients that had gone, per offered one.
        limit_mean, limit_low, limit_high: Of the limit that admission used, over the run.
        success_after: ``success`` in the phase after, if the scenario has one.
        seeds: How many runs this is the mean of.
    """

    limit: str
    goodput: float
    spread: float = 0.0
    offered: float
    success: float
    classes: dict[str, float]
    priorities: dict[str, float]
    p50: float | None
    p99: float | None
    delay_p99: float | None
    refusal_p99: float | None
    refused: float
    gave_up: float
    failed: float
    reasons: dict[str, float]
    attempts: float
    wasted: float
    limit_mean: float
    limit_low: float
    limit_high: float
    success_after: float | None
    seeds: int = 1

    def to_dict(self) -> dict[str, object]:
        """Everything by name, for JSON; numbers with six significant digits."""
        return {key: _rounded(value) for key, value in asdict(self).items()}


def percentile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that so large a share does not exceed; ``None`` of nothing."""
    if not values:
        return None
    return sorted(values)[max(0, ceil(len(values) * share) - 1)]


def figures(run: Run) -> Figures:
    """Work the figures of a run out."""
    scenario, tally = run.scenario, run.tally
    classes = tally.classes
    seconds = sum(p.seconds for p in scenario.phases if p.name in scenario.counts)
    offered = sum(one.offered for one in classes)
    attempts = sum(one.attempts for one in classes)
    times = _joined(one.seconds for one in classes)
    reasons: dict[str, int] = {}
    for one in classes:
        for reason, count in one.refused.items():
            reasons[reason] = reasons.get(reason, 0) + count
    after = tally.after_delivered / tally.after_offered if tally.after_offered else None
    limits = tally.timeline.limit
    return Figures(
        limit=run.limit,
        goodput=tally.good / seconds,
        offered=offered / seconds,
        success=_success(classes),
        classes={
            kind.name: _success([one]) for kind, one in zip(scenario.classes, classes, strict=True)
        },
        priorities=_by_priority(run),
        p50=percentile(times, 0.5),
        p99=percentile(times, 0.99),
        delay_p99=percentile(_joined(one.delays for one in classes), 0.99),
        refusal_p99=percentile(_joined(one.refusals for one in classes), 0.99),
        refused=_share(sum(reasons.values()), attempts),
        gave_up=_share(sum(one.gave_up for one in classes), attempts),
        failed=_share(sum(one.failed for one in classes), attempts),
        reasons={reason: _share(reasons[reason], attempts) for reason in sorted(reasons)},
        attempts=attempts / offered if offered else 0.0,
        wasted=_share(run.wasted, offered),
        limit_mean=fmean(limits),
        limit_low=min(limits),
        limit_high=max(limits),
        success_after=after,
    )


def mean(rows: Sequence[Figures]) -> Figures:
    """The mean of runs that differ in their seed only."""
    first = rows[0]
    merged: dict[str, Any] = {}
    for name in (field.name for field in fields(Figures)):
        values = [getattr(row, name) for row in rows]
        if isinstance(values[0], dict):
            keys = sorted({key for value in values for key in value})
            merged[name] = {k: fmean(value.get(k, 0.0) for value in values) for k in keys}
        elif name not in ("limit", "seeds", "spread"):
            known = [value for value in values if value is not None]
            merged[name] = fmean(known) if known else None
    spread = stdev(row.goodput for row in rows) if len(rows) > 1 else 0.0
    return evolve(first, **merged, spread=spread, seeds=len(rows))


def _success(classes: Iterable[ClassTally]) -> float:
    tallies = list(classes)
    return _share(sum(t.delivered for t in tallies), sum(t.offered for t in tallies), 1.0)


def _by_priority(run: Run) -> dict[str, float]:
    groups: dict[Priority, list[ClassTally]] = {}
    for priority, tally in zip(run.scenario.priorities(), run.tally.classes, strict=True):
        groups.setdefault(priority, []).append(tally)
    return {p.name.lower(): _success(groups[p]) for p in Priority if p in groups}


def _joined(arrays: Iterable[array[float]]) -> array[float]:
    joined = array("d")
    for one in arrays:
        joined.extend(one)
    return joined


def _share(part: float, whole: float, otherwise: float = 0.0) -> float:
    return part / whole if whole else otherwise


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return value
