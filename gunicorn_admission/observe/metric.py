"""What a metric is: one key, how it is read, and the three spellings made from the key."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping

from attrs import frozen

from gunicorn_admission.core.statistics import Statistics

__all__ = ["Combine", "Kind", "Labels", "Metric", "Values"]

#: Label values, in the order of :attr:`Metric.labels`.
Labels = tuple[str, ...]

#: What a metric reads now: a number for each combination of label values.
Values = Mapping[Labels, float]

_DOTTED = "gunicorn.admission."
_FLAT = "webhook_ingress_"


class Kind(enum.Enum):
    """
    How a number behaves in time.

    A gauge goes up and down. A counter only grows, until its process ends. A histogram is a
    counter for each of :data:`~gunicorn_admission.core.statistics.DELAY_BUCKETS`.
    """

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


class Combine(enum.Enum):
    """How the numbers of several workers make the number of the node."""

    SUM = "sum"
    MAX = "max"


@frozen(kw_only=True)
class Metric:
    """
    One metric, in all its spellings.

    Args:
        key: What it is called on statsd, after ``gunicorn.admission.``.
        kind: See :class:`Kind`.
        help: One sentence for people.
        read: Takes its values out of a snapshot. For the histogram it reads the number of
            observations; their distribution is ``Statistics.delay_buckets``.
        unit: ``"seconds"``, ``"{request}"``, ``"{slot}"`` or ``"1"``.
        labels: Names of the labels; all their values come from closed lists or from settings,
            never from a request.
        combine: Over the workers of a node.
        stem: The Prometheus name without prefix and ``_total``, where it is not the key.

    Thread safety: immutable.
    """

    key: str
    kind: Kind
    help: str
    read: Callable[[Statistics], Values]
    unit: str = "1"
    labels: tuple[str, ...] = ()
    combine: Combine = Combine.SUM
    stem: str | None = None

    @property
    def statsd_name(self) -> str:
        """Stands beside gunicorn's own; durations are milliseconds."""
        return self.statsd()

    def statsd(self, labels: Labels = (), *, worker: str | None = None) -> str:
        """The statsd name with label values behind it, or of one worker of several."""
        own = "" if worker is None else f"worker.{worker}."
        return ".".join((_DOTTED + own + self.key, *labels))

    @property
    def prometheus_name(self) -> str:
        """With base unit and ``_total``, as Prometheus asks for; durations are seconds."""
        stem = self.stem or self.key + ("_seconds" if self.unit == "seconds" else "")
        return _FLAT + stem + ("_total" if self.kind is Kind.COUNTER else "")

    @property
    def otel_name(self) -> str:
        """Neither unit nor ``total`` in it, as OpenTelemetry asks for; durations are seconds."""
        return _DOTTED + self.key

    @property
    def otel_unit(self) -> str:
        """The unit in UCUM, with annotations such as ``{request}``."""
        return "s" if self.unit == "seconds" else self.unit
