"""
What a service is like, as far as its windows tell: usual times, their spread, capacity.

A request's slowdown is its time over the usual time of its class; ``capacity.py`` finds out
from which load on there is one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Final, NamedTuple

from attrs import frozen

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.sim.tune.capacity import Capacity, capacity_of
from gunicorn_admission.sim.tune.windows import Traffic, Window

__all__ = ["FEWEST", "Fit", "fit", "misfit"]

#: Requests without which nothing is said.
FEWEST: Final = 30
#: Least busy part of the requests, but so many at least, from which usual times are taken.
_QUIET: Final = 0.1
_QUIET_LEAST: Final = 300
_SETTLED: Final = 10  # requests that make a mean


@frozen(kw_only=True)
class Fit:
    """
    A service that behaves like the one in the log.

    Attributes:
        means: Usual seconds of each class.
        mean: Of all together.
        sigma: Spread of their logarithm.
        capacity: See there.
    """

    means: tuple[float, ...]
    mean: float
    sigma: float
    capacity: Capacity

    @property
    def per_second(self) -> float:
        """Requests per second at best, of the mix in the log."""
        return self.capacity.connections / self.mean


def fit(
    traffic: Traffic, windows: Sequence[Window] | None = None, connections: int | None = None
) -> Fit:
    """
    Fit a service to windows.

    Args:
        traffic: They belong to it.
        windows: Those that count, possibly some of them twice; all of them if not given.
        connections: What the user knows about the capacity.

    Raises:
        ConfigError: There are too few requests.

    Thread safety: pure.
    """
    chosen = traffic.windows if windows is None else windows
    total = sum(window.done for window in chosen)
    if total < FEWEST:
        raise ConfigError(
            "access log", total, f"at least {FEWEST} requests that were served",
            "let it run for longer; some thousand requests of a busy hour say most",
        )  # fmt: skip
    means, mean, sigma = _service(traffic, chosen, total)
    capacity, offset = capacity_of(chosen, means, traffic.width, connections)
    # Windows were called quiet for their short times, among other things, so these are a
    # little too short: all windows together say by how much.
    longer = math.exp(offset)
    return Fit(
        means=tuple(one * longer for one in means),
        mean=mean * longer,
        sigma=sigma,
        capacity=capacity,
    )


def _service(
    traffic: Traffic, windows: Sequence[Window], total: int
) -> tuple[tuple[float, ...], float, float]:
    """Means by class and of all, and the pooled spread, from the least busy windows."""
    ordered = sorted(windows, key=lambda window: window.busy)
    quiet: list[Window] = []
    count = 0
    for window in ordered:
        quiet.append(window)
        count += window.done
        if count >= max(_QUIET_LEAST, total * _QUIET):
            break
    few, all_ = _sums(quiet), _sums(windows)
    overall = sum(s.spent for s in few.values()) / count
    means = []
    within = freedom = 0.0
    for kind in range(len(traffic.classes)):
        found = few.get(kind)
        if found is None or found.done < _SETTLED:
            found = all_.get(kind)
        if found is None:
            means.append(overall)
            continue
        means.append(found.spent / found.done)
        within += found.squares - found.logs**2 / found.done
        freedom += found.done - 1
    sigma = math.sqrt(max(0.0, within) / freedom) if freedom > 0 else 0.0
    done = [all_[kind].done if kind in all_ else 0 for kind in range(len(means))]
    mean = sum(n * each for n, each in zip(done, means, strict=True)) / total
    return tuple(means), mean, min(sigma, 2.0)


class _Sum(NamedTuple):
    done: int
    spent: float
    logs: float
    squares: float


def _sums(windows: Sequence[Window]) -> dict[int, _Sum]:
    found: dict[int, _Sum] = {}
    for window in windows:
        for kind, cell in window.cells.items():
            old = found.get(kind, _Sum(0, 0.0, 0.0, 0.0))
            found[kind] = _Sum(
                old.done + cell.done,
                old.spent + cell.spent,
                old.logs + cell.logs,
                old.squares + cell.squares,
            )
    return found


def misfit(traffic: Traffic) -> float:
    """
    Return how far the durations are from log-normal: Kolmogorov-Smirnov, 0 is perfect.

    Each class is compared with its own best log-normal; the busier classes weigh more.
    """
    worst = weight = 0.0
    for times in traffic.times:
        logs = sorted(math.log(max(one, 1e-6)) for one in times)
        if len(logs) < _SETTLED or logs[0] == logs[-1]:
            continue
        shape = NormalDist.from_samples(logs)
        far = max(
            abs(shape.cdf(value) - (place + 0.5) / len(logs)) for place, value in enumerate(logs)
        )
        worst += far * len(logs)
        weight += len(logs)
    return worst / weight if weight else 0.0
