"""
Metrics to statsd, beside gunicorn's own: ``gunicorn.admission.*``.

What is sent on each tick:

* **Gauges**, all of them, zeros too: a gauge that is sent only when it changes reads as
  nothing after the server restarts.
* **Counters**: the increments. ``shed`` is the sum, ``shed.<priority>.<reason>`` the parts that
  grew, since plain statsd has no labels; the sum is sent when it is 0 too, so that the series
  exists before the first shed.
* **Queue delay**, as a timer in milliseconds, since percentiles of a timer can be taken over
  workers and percentiles that were computed here could not. The histogram's increments are
  turned into at most 50 timings (:func:`~gunicorn_admission.observe.delays.samples`): ``mean``,
  ``median`` and ``upper_90`` are those of all requests, as fine as the histogram's buckets;
  ``upper`` may miss the slowest 1 %. The timer's own ``count`` is that of the timings;
  requests are counted by ``admitted``. No sample rate is given: gunicorn's logger cannot
  write one, and statsd's percentiles ignore it.

**Several workers.** The server adds their counters and merges their timers, but a gauge keeps
whatever came last. So, with ``worker`` given, each sends gauges under its own name,
``gunicorn.admission.worker.<worker>.limit``; in Graphite the node is
``sumSeries(gunicorn.admission.worker.*.limit)``. The plain name then carries the node's total, if
``totals`` knows it, and is not sent otherwise. Durations are milliseconds, like gunicorn's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from gunicorn_admission.observe.delays import samples
from gunicorn_admission.observe.metric import Combine, Kind, Labels, Metric, Values
from gunicorn_admission.observe.names import BY_KEY, METRICS
from gunicorn_admission.observe.report import Report, Sink
from gunicorn_admission.observe.wire import Wire

__all__ = ["StatsdSink"]

#: Timings a tick: the burst must fit the server's receive buffer.
_MOST_TIMINGS = 50
#: Classes with names of their own; what comes later is added up as ``other``.
_MOST_PARTITIONS = 50


class StatsdSink(Sink):
    """
    Sends each report to a statsd server.

    Args:
        wire: The way to the server.
        worker: Which worker of the node this is, from a small closed set, such as its row on the
            scoreboard: pids and ages would leave series behind at each recycling. ``None``
            for a worker without siblings.
        totals: Gauges of the whole node by metric key, for the plain names.

    Thread safety: one thread, the reporter's.
    """

    def __init__(
        self,
        wire: Wire,
        *,
        worker: int | str | None = None,
        totals: Callable[[], Mapping[str, float]] | None = None,
    ) -> None:
        self._wire = wire
        self._worker = None if worker is None else _word(str(worker))
        self._totals = totals
        self._partitions: dict[str, str] = {}
        self._own_gauges: set[str] = set()

    def report(self, report: Report) -> None:
        """Send one tick; what cannot be sent now is dropped."""
        if not self._wire.open():
            return
        try:
            for metric in METRICS:
                if metric.kind is Kind.GAUGE:
                    self._send_gauge(metric, metric.read(report.statistics))
                elif metric.kind is Kind.COUNTER:
                    self._send_counter(metric, report.increments.get(metric.key, {}))
                else:
                    for delay in samples(report.delays, _MOST_TIMINGS):
                        self._wire.timing(metric.statsd_name, _number(metric, delay))
            if self._totals is not None:
                for key, value in self._totals().items():
                    self._wire.gauge(BY_KEY[key].statsd_name, _number(BY_KEY[key], value))
        finally:
            self._wire.flush()

    def close(self) -> None:
        """Zero the gauges that carry this worker's name; statsd would keep them for ever."""
        if self._own_gauges and self._wire.open():
            for name in sorted(self._own_gauges):
                self._wire.gauge(name, 0)
            self._wire.flush()
        self._wire.close()

    def _send_gauge(self, metric: Metric, values: Values) -> None:
        for labels, value in self._spelled(metric, values).items():
            if not math.isfinite(value):
                continue
            name = metric.statsd(labels, worker=self._worker)
            if self._worker is not None:
                self._own_gauges.add(name)
            self._wire.gauge(name, _number(metric, value))

    def _send_counter(self, metric: Metric, values: Values) -> None:
        self._wire.count(metric.statsd_name, _number(metric, sum(values.values())))
        if metric.labels:
            for labels, value in self._spelled(metric, values).items():
                self._wire.count(metric.statsd(labels), _number(metric, value))

    def _spelled(self, metric: Metric, values: Values) -> Values:
        """Make class names fit; two that become one are added, or the larger is kept."""
        if metric.labels != ("partition",):
            return values
        spelled: dict[Labels, float] = {}
        for (partition,), value in values.items():
            labels = (self._partition(partition),)
            before = spelled.get(labels, 0)
            spelled[labels] = (
                before + value if metric.combine is Combine.SUM else max(before, value)
            )
        return spelled

    def _partition(self, name: str) -> str:
        if name not in self._partitions and len(self._partitions) < _MOST_PARTITIONS:
            self._partitions[name] = _word(name)
        return self._partitions.get(name, "other")


def _word(text: str) -> str:
    """One part of a dotted name: letters, digits, ``_`` and ``-``."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", text).strip("_") or "root"


def _number(metric: Metric, value: float) -> float:
    """Milliseconds for durations; microseconds at the finest; whole numbers without a point."""
    value = round(value * 1000 if metric.unit == "seconds" else value, 3)
    return int(value) if value == int(value) else value
