"""Metric names are an interface: unique, well-formed, and written down here a second time."""

from __future__ import annotations

import re

import attrs
import pytest

from gunicorn_admission.core.statistics import PartitionStatistics, Statistics
from gunicorn_admission.observe.metric import Kind, Metric
from gunicorn_admission.observe.names import BY_KEY, METRICS
from tests.observing import delays, idle, partition

# key -> (Prometheus, labels); statsd and OpenTelemetry say gunicorn.admission.<key>.
# A change here breaks people's dashboards.
PUBLISHED = {
    "limit": ("webhook_ingress_concurrency_limit", ()),
    "limit_estimate": ("webhook_ingress_concurrency_limit_estimate", ()),
    "limit_max": ("webhook_ingress_concurrency_limit_max", ()),
    "inflight": ("webhook_ingress_inflight_requests", ()),
    "queue": ("webhook_ingress_waiting_requests", ()),
    "overloaded": ("webhook_ingress_overloaded", ()),
    "paused": ("webhook_ingress_paused", ()),
    "mode": ("webhook_ingress_mode", ("mode",)),
    "stuck": ("webhook_ingress_stuck_requests", ()),
    "threads_left": ("webhook_ingress_threads_left", ()),
    "starved": ("webhook_ingress_starved", ()),
    "node_limit": ("webhook_ingress_node_limit", ()),
    "node_inflight": ("webhook_ingress_node_inflight_requests", ()),
    "reading": ("webhook_ingress_reading_connections", ()),
    "rtt": ("webhook_ingress_rtt_seconds", ()),
    "release_rate": ("webhook_ingress_release_rate", ()),
    "queue_delay": ("webhook_ingress_queue_delay_seconds", ()),
    "arrivals": ("webhook_ingress_arrivals_total", ()),
    "admitted": ("webhook_ingress_admitted_total", ("priority",)),
    "shed": ("webhook_ingress_shed_total", ("priority", "reason")),
    "would_shed": ("webhook_ingress_would_shed_total", ("priority", "reason")),
    "abandoned": ("webhook_ingress_abandoned_total", ()),
    "bypassed": ("webhook_ingress_bypassed_total", ()),
    "released_twice": ("webhook_ingress_released_twice_total", ()),
    "leaked": ("webhook_ingress_leaked_total", ()),
    "partition_inflight": ("webhook_ingress_partition_inflight_requests", ("partition",)),
    "partition_queue": ("webhook_ingress_partition_waiting_requests", ("partition",)),
    "partition_cap": ("webhook_ingress_partition_cap", ("partition",)),
    "partition_held": ("webhook_ingress_partition_held", ("partition",)),
    "partition_stalled": ("webhook_ingress_partition_stalled", ("partition",)),
    "partition_oldest": ("webhook_ingress_partition_oldest_seconds", ("partition",)),
    "partition_admitted": ("webhook_ingress_partition_admitted_total", ("partition",)),
    "partition_shed": ("webhook_ingress_partition_shed_total", ("partition",)),
}

# Read by no metric: it is over at once; the sum of a metric; part of the histogram.
SILENT = {"closed", "granted", "delay_sum_seconds"}

BUSY = {
    "mode": "monitor",
    "granted_by_priority": {"high": 1},
    "shed": {("low", "overloaded"): 1},
    "would_shed": {("low", "overloaded"): 1},
    "delay_buckets": delays({0.001: 1}),
    "partitions": {"reports": partition()},
}

each_metric = pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.key)


def readings(statistics: Statistics) -> dict[str, object]:
    return {metric.key: dict(metric.read(statistics)) for metric in METRICS}


def test_spellings_are_those_that_were_published() -> None:
    spelled = {metric.key: (metric.prometheus_name, metric.labels) for metric in METRICS}
    assert spelled == PUBLISHED
    for metric in METRICS:
        assert metric.statsd_name == metric.otel_name == f"gunicorn.admission.{metric.key}"


@pytest.mark.parametrize("spelling", ["key", "statsd_name", "prometheus_name", "otel_name"])
def test_spellings_are_unique(spelling: str) -> None:
    assert len({getattr(metric, spelling) for metric in METRICS}) == len(METRICS) == len(BY_KEY)


@each_metric
def test_spellings_follow_the_rules_of_their_systems(metric: Metric) -> None:
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", metric.key)
    assert metric.prometheus_name.endswith("_total") == (metric.kind is Kind.COUNTER)
    assert ("_seconds" in metric.prometheus_name) == (metric.unit == "seconds")
    assert metric.otel_unit == ("s" if metric.unit == "seconds" else metric.unit)
    assert not metric.otel_name.endswith(("total", "seconds"))
    assert metric.help.endswith(".")
    assert "\n" not in metric.help


@each_metric
def test_reads_a_number_for_each_combination_of_labels(metric: Metric) -> None:
    values = metric.read(idle(**BUSY))
    assert values
    for labels, value in values.items():
        assert len(labels) == len(metric.labels)
        assert value >= 0


@each_metric
def test_reads_an_empty_limiter(metric: Metric) -> None:
    values = metric.read(idle())
    assert sum(values.values()) == (1 if metric.key == "mode" else 0)


@pytest.mark.parametrize("name", sorted(attrs.fields_dict(Statistics)))
def test_every_number_of_a_snapshot_is_published(name: str) -> None:
    changed = idle(**{name: BUSY.get(name, 1)})
    assert (readings(changed) == readings(idle())) == (name in SILENT)


@pytest.mark.parametrize("name", sorted(attrs.fields_dict(PartitionStatistics)))
def test_every_number_of_a_class_is_published(name: str) -> None:
    changed = idle(partitions={"reports": partition(**{name: 1})})
    assert readings(changed) != readings(idle(partitions={"reports": partition()}))


def test_statsd_puts_labels_behind_the_name_and_workers_before_it() -> None:
    shed = BY_KEY["shed"]
    assert shed.statsd(("low", "expired")) == "gunicorn.admission.shed.low.expired"
    assert BY_KEY["limit"].statsd(worker="3") == "gunicorn.admission.worker.3.limit"
