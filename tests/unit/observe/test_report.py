"""Increments between two snapshots."""

from __future__ import annotations

from tests.observing import delays, idle, partition, report_of


def test_first_report_holds_all_since_the_start() -> None:
    now = idle(arrivals=7, shed={("low", "overloaded"): 2}, delay_buckets=delays({0.001: 5}))
    report = report_of(now)
    assert report.increments["arrivals"] == {(): 7}
    assert report.increments["shed"] == {("low", "overloaded"): 2}
    assert report.delays == delays({0.001: 5})
    assert report.statistics is now


def test_only_what_grew_is_there() -> None:
    before = idle(
        arrivals=7,
        granted_by_priority={"high": 3, "low": 1},
        shed={("low", "overloaded"): 2},
        delay_buckets=delays({0.001: 5}),
        partitions={"reports": partition(granted=2)},
    )
    now = idle(
        arrivals=9,
        granted_by_priority={"high": 4, "low": 1},
        shed={("low", "overloaded"): 2, ("default", "expired"): 1},
        delay_buckets=delays({0.001: 5, 0.1: 1}),
        partitions={"reports": partition(granted=2), "new": partition(granted=1)},
    )
    report = report_of(now, before, seconds=3.5)
    assert report.seconds == 3.5
    assert report.increments["arrivals"] == {(): 2}
    assert report.increments["admitted"] == {("high",): 1}
    assert report.increments["shed"] == {("default", "expired"): 1}
    assert report.increments["partition_admitted"] == {("new",): 1}
    assert report.increments["leaked"] == {}
    assert report.delays == delays({0.1: 1})


def test_totals_that_fell_belong_to_a_new_limiter() -> None:
    before = idle(arrivals=100, delay_buckets=delays({0.001: 50}))
    report = report_of(idle(arrivals=4, delay_buckets=delays({0.001: 3})), before)
    assert report.increments["arrivals"] == {(): 4}
    assert report.delays == delays({0.001: 3})
