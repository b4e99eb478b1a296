"""
Every metric of the webhooks half, once, and what has been counted in this process.

Names are an interface: people have them in their dashboards. Label values come from closed
lists or from configuration (sources, consumers), never from a request, and their number is
bounded all the same.

Lock: one ``threading.Lock`` for all numbers; nothing is called out under it.
"""

from __future__ import annotations

import bisect
import os
import threading
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from attrs import field, frozen

from gunicorn_admission.core.statistics import DELAY_BUCKETS
from gunicorn_admission.observe.metric import Kind, Labels

__all__ = ["BY_KEY", "CATALOGUE", "Measured", "Metrics", "WebhookMetric", "recorder"]

#: Combinations of label values a metric may have; what comes later is added up as ``other``.
_MOST: Final = 500
_OTHER: Final = "other"


@frozen(kw_only=True)
class WebhookMetric:
    """
    One metric, in its spellings.

    Attributes:
        key: As code and statsd name it.
        kind: See :class:`~gunicorn_admission.observe.metric.Kind`.
        help: One sentence for people.
        labels: Names of the labels.
        unit: ``"seconds"`` or what is counted.
    """

    key: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    unit: str = "1"

    @property
    def prometheus_name(self) -> str:
        """With base unit and ``_total``; durations are seconds."""
        stem = self.key + ("_seconds" if self.unit == "seconds" else "")
        return f"webhook_{stem}" + ("_total" if self.kind is Kind.COUNTER else "")

    def statsd(self, labels: Labels = ()) -> str:
        """The statsd name with label values behind it; durations are milliseconds."""
        return ".".join(("gunicorn.webhooks", self.key, *labels))


CATALOGUE: tuple[WebhookMetric, ...] = (
    WebhookMetric(
        key="intake_requests",
        kind=Kind.COUNTER,
        labels=("source", "outcome"),
        unit="{request}",
        help="Requests to /hooks/<source>, by how they ended.",
    ),
    WebhookMetric(
        key="intake_events",
        kind=Kind.COUNTER,
        labels=("source",),
        unit="{event}",
        help="New events stored; a batch has several.",
    ),
    WebhookMetric(
        key="intake_duplicates",
        kind=Kind.COUNTER,
        labels=("source",),
        unit="{event}",
        help="Events that were stored before, with the same bytes.",
    ),
    WebhookMetric(
        key="id_conflicts",
        kind=Kind.COUNTER,
        labels=("source",),
        unit="{event}",
        help="Events whose id was stored before with other bytes; the first ones are kept.",
    ),
    WebhookMetric(
        key="verify_failures",
        kind=Kind.COUNTER,
        labels=("source", "reason"),
        unit="{request}",
        help="Requests that were not believed, by reason.",
    ),
    WebhookMetric(
        key="secret_old_key_used",
        kind=Kind.COUNTER,
        labels=("source",),
        unit="{request}",
        help="Requests signed with a secret that is about to end.",
    ),
    WebhookMetric(
        key="clock_skew",
        kind=Kind.GAUGE,
        labels=("source",),
        unit="seconds",
        help="Our clock less the sender's at the last request whose attempt was stamped anew.",
    ),
    WebhookMetric(
        key="commit",
        kind=Kind.HISTOGRAM,
        unit="seconds",
        help="Time from a verified request to its commit.",
    ),
    WebhookMetric(
        key="deliveries",
        kind=Kind.COUNTER,
        labels=("consumer", "outcome"),
        unit="{delivery}",
        help="Deliveries, by what became of them.",
    ),
    WebhookMetric(
        key="backlog",
        kind=Kind.GAUGE,
        labels=("consumer", "state"),
        unit="{delivery}",
        help="Deliveries that are not finished, by state.",
    ),
    WebhookMetric(
        key="oldest_unacked_age",
        kind=Kind.GAUGE,
        labels=("consumer",),
        unit="seconds",
        help="Age of the oldest delivery that is not finished; 0 where there is none.",
    ),
    WebhookMetric(
        key="spend_reserved",
        kind=Kind.GAUGE,
        labels=("consumer", "unit", "window"),
        help="Units held for attempts under way or to come, in the present window of a ceiling.",
    ),
    WebhookMetric(
        key="spend_settled",
        kind=Kind.GAUGE,
        labels=("consumer", "unit", "window"),
        help="Units spent in the present window of a ceiling.",
    ),
    WebhookMetric(
        key="spend_ceiling",
        kind=Kind.GAUGE,
        labels=("consumer", "unit", "window"),
        help="Units that the ceiling allows in a window; not there where it only warns.",
    ),
)

#: The same by key.
BY_KEY: Mapping[str, WebhookMetric] = MappingProxyType({one.key: one for one in CATALOGUE})


@frozen(kw_only=True)
class Measured:
    """
    All numbers at one moment.

    Attributes:
        counters: Totals since the process began, by key and labels.
        gauges: Last values, by key and labels.
        histograms: Counts per :data:`~gunicorn_admission.core.statistics.DELAY_BUCKETS` bound and
            one for the rest, by key and labels.
    """

    counters: Mapping[tuple[str, Labels], float] = field(factory=dict)
    gauges: Mapping[tuple[str, Labels], float] = field(factory=dict)
    histograms: Mapping[tuple[str, Labels], tuple[int, ...]] = field(factory=dict)


class Metrics:
    """
    Counts what happens in this process. A fork begins with nothing counted.

    Args:
        catalogue: The metrics there are.

    Thread safety: all methods may be called from any thread.
    """

    def __init__(self, catalogue: Iterable[WebhookMetric] = CATALOGUE) -> None:
        self._catalogue = {metric.key: metric for metric in catalogue}
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._counters: dict[tuple[str, Labels], float] = {}
        self._gauges: dict[tuple[str, Labels], float] = {}
        self._histograms: dict[tuple[str, Labels], list[int]] = {}

    def count(self, key: str, *labels: str, by: float = 1) -> None:
        """Add to a counter; its labels in the order of the catalogue."""
        self._check(key, Kind.COUNTER, labels)
        with self._lock:
            place = self._place(self._counters, key, labels)
            self._counters[place] = self._counters.get(place, 0) + by

    def gauge(self, key: str, value: float, *labels: str) -> None:
        """Set a gauge."""
        self._check(key, Kind.GAUGE, labels)
        with self._lock:
            self._gauges[self._place(self._gauges, key, labels)] = value

    def observe(self, key: str, seconds: float, *labels: str) -> None:
        """Add a duration to a histogram."""
        self._check(key, Kind.HISTOGRAM, labels)
        with self._lock:
            place = self._place(self._histograms, key, labels)
            buckets = self._histograms.setdefault(place, [0] * (len(DELAY_BUCKETS) + 1))
            buckets[bisect.bisect_left(DELAY_BUCKETS, seconds)] += 1

    def measured(self) -> Measured:
        """Return a copy of all numbers."""
        if self._process != os.getpid():
            self._begin()
        with self._lock:
            return Measured(
                counters=dict(self._counters),
                gauges=dict(self._gauges),
                histograms={place: tuple(counts) for place, counts in self._histograms.items()},
            )

    def _check(self, key: str, kind: Kind, labels: Labels) -> None:
        metric = self._catalogue[key]
        if metric.kind is not kind or len(labels) != len(metric.labels):
            raise ValueError(f"{key} is a {metric.kind.value} with labels {metric.labels}")
        if self._process != os.getpid():
            self._begin()

    def _place(
        self, numbers: Mapping[tuple[str, Labels], object], key: str, labels: Labels
    ) -> tuple[str, Labels]:
        place = key, labels
        if place not in numbers and len(numbers) >= _MOST * len(self._catalogue):
            return key, (_OTHER,) * len(labels)
        return place


#: What everything in this process counts with, unless it was given another.
recorder: Final = Metrics()
