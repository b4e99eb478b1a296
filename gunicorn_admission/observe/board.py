"""The worker's row on the shared page: kept up to date, and read as figures of the node."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gunicorn_admission.core.events import Event
from gunicorn_admission.core.statistics import Statistics
from gunicorn_admission.observe.report import Report, Sink
from gunicorn_admission.scoreboard import Page, Row, read

__all__ = ["BoardSink", "node_gauges"]


class BoardSink(Sink):
    """
    Writes a worker's row on each tick, and at once when something changes.

    Args:
        row: The worker's.
        statistics: Takes a snapshot.

    Thread safety: one thread, the reporter's.
    """

    def __init__(self, row: Row, statistics: Callable[[], Statistics]) -> None:
        self._row = row
        self._statistics = statistics

    def report(self, report: Report) -> None:
        """Write the figures of a tick."""
        self._row.publish(report.statistics)

    def on_event(self, event: Event) -> None:
        """Write what holds now: readiness must not wait for the next tick."""
        self._row.publish(self._statistics())


def node_gauges(page: Page) -> Mapping[str, float]:
    """Return gauges of all living workers together, by metric key."""
    alive = [worker for worker in read(page) if worker.pid]
    return {
        "limit": sum(worker.limit for worker in alive),
        "inflight": sum(worker.inflight for worker in alive),
        "queue": sum(worker.waiting for worker in alive),
        "threads_left": sum(worker.threads_left for worker in alive),
    }
