"""What a sink is given on each tick: the state now, and what was counted since the last tick."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from typing import TypeVar

from attrs import frozen

from gunicorn_admission.core.events import Event
from gunicorn_admission.core.statistics import Statistics
from gunicorn_admission.observe.metric import Kind, Values
from gunicorn_admission.observe.names import METRICS

__all__ = ["Report", "Sink"]

K = TypeVar("K", bound=Hashable)


@frozen(kw_only=True)
class Report:
    """
    One tick.

    Attributes:
        statistics: The snapshot; gauges are read from it.
        seconds: Time since the tick before.
        increments: By metric key, what each counter grew by; only what grew.
        delays: Queue delays since the tick before: counts per
            :data:`~gunicorn_admission.core.statistics.DELAY_BUCKETS` bound, and one for the rest.
    """

    statistics: Statistics
    seconds: float
    increments: Mapping[str, Values]
    delays: tuple[int, ...]

    @classmethod
    def between(cls, before: Statistics | None, now: Statistics, seconds: float) -> Report:
        """Compare two snapshots; with none before, all that was counted since start is new."""
        increments = {
            metric.key: _growth(metric.read(before) if before else {}, metric.read(now))
            for metric in METRICS
            if metric.kind is Kind.COUNTER
        }
        old = before.delay_buckets if before else ()
        delays = _growth(dict(enumerate(old)), dict(enumerate(now.delay_buckets)))
        return cls(
            statistics=now,
            seconds=seconds,
            increments=increments,
            delays=tuple(int(delays.get(i, 0)) for i in range(len(now.delay_buckets))),
        )


def _growth(before: Mapping[K, float], now: Mapping[K, float]) -> dict[K, float]:
    """What grew. A total that fell belongs to a new limiter, and counts from zero."""
    grown: dict[K, float] = {}
    for key, total in now.items():
        old = before.get(key, 0)
        if total != old:
            grown[key] = total - old if total > old else total
    return grown


class Sink(ABC):
    """
    Where reports go. Called on the reporter's thread only, one call at a time.

    It may block or raise: requests never notice, and the other sinks still get theirs.
    """

    @abstractmethod
    def report(self, report: Report) -> None:
        """Take one tick."""

    def on_event(self, event: Event) -> None:  # noqa: B027 - most sinks only count
        """Take one transition, soon after it happened."""

    def close(self) -> None:  # noqa: B027
        """Give back what is held. Nothing is called after it."""
