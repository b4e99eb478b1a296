"""Deliveries as metrics: what became of them, what waits, and how old that is."""

from __future__ import annotations

import threading

from gunicorn_admission.webhooks.fanout.statistics import statistics
from gunicorn_admission.webhooks.gates.gate import load_gate
from gunicorn_admission.webhooks.gates.standings import gated_consumers, standings
from gunicorn_admission.webhooks.metrics import Metrics, recorder
from gunicorn_admission.webhooks.store import Store, StoreError

__all__ = ["Gauges", "count_outcome"]


def count_outcome(consumer: str, outcome: str, times: int) -> None:
    """Count what became of deliveries; what a :class:`Runner` tells its observer."""
    recorder.count("deliveries", consumer, outcome, by=times)


class Gauges:
    """
    Measures the backlog of every subscription, and how the ceilings stand.

    Args:
        store: Where the deliveries are.
        metrics: Is set.

    Thread safety: one thread at a time.
    """

    def __init__(self, store: Store, metrics: Metrics = recorder) -> None:
        self._store = store
        self._metrics = metrics
        self._seen: set[tuple[str, str]] = set()

    def tick(self) -> None:
        """
        Measure once.

        Raises:
            StoreError: The store did not answer.
        """
        found: dict[tuple[str, str], int] = {}
        for one in statistics(self._store):
            found |= {(one.name, state): count for state, count in one.backlog.items()}
            self._metrics.gauge("oldest_unacked_age", one.oldest_age or 0.0, one.name)
        self._seen |= found.keys()
        for name, state in self._seen:  # what has emptied says so
            self._metrics.gauge("backlog", found.get((name, state), 0), name, state)
        self._spend()

    def _spend(self) -> None:
        with self._store.read() as connection:
            now = self._store.now()
            for consumer in gated_consumers(connection):
                gate = load_gate(connection, consumer)
                for standing in standings(connection, gate, now) if gate else ():
                    labels = (consumer, standing.unit, standing.span)
                    self._metrics.gauge("spend_reserved", standing.reserved, *labels)
                    self._metrics.gauge("spend_settled", standing.settled, *labels)
                    if standing.hard is not None:
                        self._metrics.gauge("spend_ceiling", standing.hard, *labels)

    def run(self, stop: threading.Event, interval: float = 10.0) -> None:
        """Measure until told to stop."""
        while not stop.wait(interval):
            try:
                self.tick()
            except StoreError:
                pass  # the claims say so already
