"""What a report becomes on statsd, over a wire that only notes it."""

from __future__ import annotations

import math

import pytest

from gunicorn_admission.core.statistics import Statistics
from gunicorn_admission.observe.metric import Kind
from gunicorn_admission.observe.names import METRICS
from gunicorn_admission.observe.statsd import StatsdSink
from tests.observing import delays, idle, partition, report_of

PREFIX = "gunicorn.admission."


class Notes:
    """A wire to nowhere."""

    def __init__(self, *, ready: bool = True) -> None:
        self.ready = ready
        self.gauges: dict[str, float] = {}
        self.counts: dict[str, float] = {}
        self.timings: list[tuple[str, float]] = []
        self.flushed = 0
        self.closed = False

    def open(self) -> bool:
        return self.ready

    def gauge(self, name: str, value: float) -> None:
        assert name not in self.gauges, "sent twice in a tick"
        self.gauges[name] = value

    def count(self, name: str, value: float) -> None:
        assert name not in self.counts, "sent twice in a tick"
        self.counts[name] = value

    def timing(self, name: str, milliseconds: float) -> None:
        self.timings.append((name, milliseconds))

    def flush(self) -> None:
        self.flushed += 1

    def close(self) -> None:
        self.closed = True


def sent(statistics: Statistics) -> Notes:
    notes = Notes()
    StatsdSink(notes).report(report_of(statistics))
    assert notes.flushed == 1
    return notes


def test_all_gauges_and_sums_are_sent_when_they_are_zero() -> None:
    notes = sent(idle(partitions={"reports": partition()}))
    plain = {metric.statsd_name for metric in METRICS if not metric.labels}
    gauges = {metric.statsd_name for metric in METRICS if metric.kind is Kind.GAUGE}
    counters = {metric.statsd_name for metric in METRICS if metric.kind is Kind.COUNTER}
    modes = {f"{PREFIX}mode.enforce": 1, f"{PREFIX}mode.monitor": 0, f"{PREFIX}mode.off": 0}
    assert {name: notes.gauges[name] for name in gauges & plain} == dict.fromkeys(gauges & plain, 0)
    assert notes.gauges.items() >= modes.items()
    assert notes.gauges[f"{PREFIX}partition_inflight.reports"] == 0
    assert notes.counts == dict.fromkeys(counters, 0)
    assert notes.timings == []


def test_gauges_are_numbers_as_statsd_reads_them() -> None:
    gauges = sent(
        idle(limit=14, estimate=14.23456, overloaded=True, rtt_seconds=0.0415, release_rate=337.0)
    ).gauges
    assert gauges[f"{PREFIX}limit"] == 14
    assert gauges[f"{PREFIX}limit_estimate"] == 14.235
    assert str(gauges[f"{PREFIX}overloaded"]) == "1"
    assert gauges[f"{PREFIX}rtt"] == 41.5  # milliseconds
    assert str(gauges[f"{PREFIX}release_rate"]) == "337"


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_what_is_no_number_is_left_out(number: float) -> None:
    notes = sent(idle(estimate=number, limit=3))
    assert f"{PREFIX}limit_estimate" not in notes.gauges
    assert notes.gauges[f"{PREFIX}limit"] == 3


def test_counters_are_a_sum_and_the_parts_that_grew() -> None:
    before = idle(shed={("low", "overloaded"): 30, ("high", "stopping"): 1})
    now = idle(shed={("low", "overloaded"): 34, ("default", "expired"): 2, ("high", "stopping"): 1})
    notes = Notes()
    StatsdSink(notes).report(report_of(now, before))
    assert {name: n for name, n in notes.counts.items() if name.startswith(f"{PREFIX}shed")} == {
        f"{PREFIX}shed": 6,
        f"{PREFIX}shed.low.overloaded": 4,
        f"{PREFIX}shed.default.expired": 2,
    }


def test_queue_delay_is_a_timer_in_milliseconds() -> None:
    notes = sent(idle(delay_buckets=delays({0.0005: 2, 0.1: 1})))
    assert notes.timings == [(f"{PREFIX}queue_delay", value) for value in (0.125, 0.375, 75)]


def test_a_burst_of_timings_is_bounded_and_keeps_its_percentiles() -> None:
    notes = sent(idle(delay_buckets=delays({0.0005: 90_000, 0.1: 10_000})))
    values = sorted(value for _, value in notes.timings)
    assert len(values) == 50
    assert values[44] <= 0.5  # upper_90 and below
    assert values[45] > 50


def test_workers_keep_their_gauges_apart_and_share_their_counters() -> None:
    notes = Notes()
    sink = StatsdSink(notes, worker=3)
    sink.report(report_of(idle(limit=9, arrivals=4, partitions={"reports": partition(inflight=2)})))
    assert notes.gauges[f"{PREFIX}worker.3.limit"] == 9
    assert notes.gauges[f"{PREFIX}worker.3.partition_inflight.reports"] == 2
    assert all(name.startswith(f"{PREFIX}worker.3.") for name in notes.gauges)
    assert notes.counts[f"{PREFIX}arrivals"] == 4


def test_plain_gauges_carry_the_total_of_the_node_where_it_is_known() -> None:
    notes = Notes()
    sink = StatsdSink(notes, worker=3, totals=lambda: {"limit": 36, "rtt": 0.02})
    sink.report(report_of(idle(limit=9)))
    assert notes.gauges[f"{PREFIX}limit"] == 36
    assert notes.gauges[f"{PREFIX}rtt"] == 20
    assert notes.gauges[f"{PREFIX}worker.3.limit"] == 9


def test_a_total_that_fails_loses_nothing_else() -> None:
    notes = Notes()

    def fail() -> dict[str, float]:
        raise RuntimeError("no scoreboard")

    with pytest.raises(RuntimeError):
        StatsdSink(notes, worker=3, totals=fail).report(report_of(idle(limit=9)))
    assert notes.gauges[f"{PREFIX}worker.3.limit"] == 9
    assert notes.flushed == 1


def test_a_worker_that_ends_leaves_no_gauge_behind() -> None:
    notes = Notes()
    sink = StatsdSink(notes, worker=3)
    sink.report(report_of(idle(limit=9, partitions={"reports": partition(inflight=2)})))
    last = dict(notes.gauges)
    notes.gauges.clear()
    sink.close()
    assert notes.gauges == dict.fromkeys(last, 0)
    assert notes.closed


def test_a_worker_without_siblings_leaves_its_last_gauges() -> None:
    # Its successor may have sent already, under the same names.
    notes = Notes()
    sink = StatsdSink(notes)
    sink.report(report_of(idle(limit=9)))
    notes.gauges.clear()
    sink.close()
    assert notes.gauges == {}
    assert notes.closed


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("/payments", "payments"),
        ("/a/b", "a_b"),
        ("api.v1.list", "api_v1_list"),
        ("/", "root"),
        ("caf\N{LATIN SMALL LETTER E WITH ACUTE}:1|c\nx", "caf_1_c_x"),
        ("slow-reports", "slow-reports"),
    ],
)
def test_class_names_become_one_word(name: str, word: str) -> None:
    notes = sent(idle(partitions={name: partition(inflight=1)}))
    assert notes.gauges[f"{PREFIX}partition_inflight.{word}"] == 1


def test_classes_that_are_spelled_alike_are_one() -> None:
    a = partition(inflight=1, granted=5, stalled=True, oldest_seconds=2.0)
    b = partition(inflight=2, granted=7, stalled=False, oldest_seconds=9.0)
    notes = sent(idle(partitions={"/a/b": a, "/a.b": b}))
    assert notes.gauges[f"{PREFIX}partition_inflight.a_b"] == 3
    assert notes.gauges[f"{PREFIX}partition_oldest.a_b"] == 9000
    assert notes.gauges[f"{PREFIX}partition_stalled.a_b"] == 1
    assert notes.counts[f"{PREFIX}partition_admitted.a_b"] == 12


def test_many_classes_are_bounded_and_keep_their_names() -> None:
    notes = Notes()
    sink = StatsdSink(notes)
    early = {f"class{i}": partition(inflight=1) for i in range(48)}
    sink.report(report_of(idle(partitions=early)))
    late = {f"alate{i}": partition(inflight=1) for i in range(10)}
    notes.gauges.clear()
    notes.counts.clear()
    sink.report(report_of(idle(partitions=late | early)))
    names = [name for name in notes.gauges if name.startswith(f"{PREFIX}partition_inflight")]
    assert len(names) == 51
    assert notes.gauges[f"{PREFIX}partition_inflight.class47"] == 1
    assert notes.gauges[f"{PREFIX}partition_inflight.other"] == 8


def test_nothing_is_sent_while_the_wire_is_down() -> None:
    notes = Notes(ready=False)
    sink = StatsdSink(notes, worker=1)
    sink.report(report_of(idle(limit=9, arrivals=1)))
    sink.close()
    assert notes.gauges == notes.counts == {}
    assert notes.closed
