"""What the webhooks half counts, and how it reaches statsd and the log."""

from __future__ import annotations

import logging
import os
import threading

import pytest

from gunicorn_admission.observe.metric import Kind
from gunicorn_admission.webhooks.metrics import BY_KEY, CATALOGUE, Measured, Metrics
from gunicorn_admission.webhooks.reporting import Reporting


class Wire:
    """Notes what is sent; fails where it is told to."""

    def __init__(self, *, opens: bool = True) -> None:
        self.sent: list[tuple[str, str, float]] = []
        self.flushed = 0
        self.opens = opens
        self.error: Exception | None = None

    def open(self) -> bool:
        return self.opens

    def gauge(self, name: str, value: float) -> None:
        self._note("gauge", name, value)

    def count(self, name: str, value: float) -> None:
        self._note("count", name, value)

    def timing(self, name: str, milliseconds: float) -> None:
        self._note("timing", name, milliseconds)

    def _note(self, kind: str, name: str, value: float) -> None:
        if self.error is not None:
            raise self.error
        self.sent.append((kind, name, value))

    def flush(self) -> None:
        self.flushed += 1

    def close(self) -> None: ...


class Clock:
    now = 5.0

    def __call__(self) -> float:
        return self.now


def test_names_are_those_of_the_dashboards() -> None:
    assert {metric.prometheus_name for metric in CATALOGUE} >= {
        "webhook_intake_requests_total",
        "webhook_verify_failures_total",
        "webhook_commit_seconds",
        "webhook_clock_skew_seconds",
        "webhook_id_conflicts_total",
        "webhook_secret_old_key_used_total",
    }
    assert len(BY_KEY) == len(CATALOGUE)
    assert all(metric.help.endswith(".") for metric in CATALOGUE)
    assert BY_KEY["verify_failures"].statsd(("git", "too_old")) == (
        "gunicorn.webhooks.verify_failures.git.too_old"
    )


def test_counts_from_many_threads() -> None:
    metrics = Metrics()

    def work() -> None:
        for _ in range(500):
            metrics.count("intake_requests", "git", "stored")
            metrics.observe("commit", 0.003)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    now = metrics.measured()
    assert now.counters == {("intake_requests", ("git", "stored")): 4000}
    assert sum(now.histograms["commit", ()]) == 4000


def test_wrong_use_is_an_error() -> None:
    metrics = Metrics()
    with pytest.raises(KeyError):
        metrics.count("nonsense")
    with pytest.raises(ValueError, match="labels"):
        metrics.count("intake_requests", "git")
    with pytest.raises(ValueError, match="gauge"):
        metrics.count("clock_skew", "git")


def test_series_are_bounded() -> None:
    metrics = Metrics()
    for n in range(20_000):
        metrics.count("intake_events", f"source-{n}")
    counters = metrics.measured().counters
    assert len(counters) <= 500 * len(CATALOGUE) + 1
    assert sum(counters.values()) == 20_000
    assert counters["intake_events", ("other",)] > 0


def test_a_child_begins_with_nothing() -> None:
    metrics = Metrics()
    metrics.count("intake_events", "git")
    pid = os.fork()
    if pid == 0:
        metrics.count("intake_events", "git")
        found = metrics.measured().counters
        os._exit(0 if found == {("intake_events", ("git",)): 1} else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert metrics.measured().counters == {("intake_events", ("git",)): 1}


def test_statsd_gets_increments_gauges_and_timings() -> None:
    metrics, wire = Metrics(), Wire()
    reporting = Reporting(metrics, wire)
    metrics.count("intake_requests", "git", "stored", by=2)
    metrics.gauge("clock_skew", 1.5, "git")
    metrics.observe("commit", 0.0004)
    reporting.tick()
    assert ("count", "gunicorn.webhooks.intake_requests.git.stored", 2) in wire.sent
    assert ("gauge", "gunicorn.webhooks.clock_skew.git", 1500) in wire.sent
    assert ("timing", "gunicorn.webhooks.commit", 0.25) in wire.sent
    wire.sent.clear()
    metrics.count("intake_requests", "(unknown)", "unknown")
    reporting.tick()
    assert [one for one in wire.sent if one[0] != "gauge"] == [
        ("count", "gunicorn.webhooks.intake_requests.unknown.unknown", 1)
    ]
    assert wire.flushed == 2


def test_statsd_that_is_away_is_harmless(caplog: pytest.LogCaptureFixture) -> None:
    metrics, wire = Metrics(), Wire(opens=False)
    reporting = Reporting(metrics, wire)
    metrics.count("intake_events", "git")
    reporting.tick()
    assert wire.sent == []
    wire.opens, wire.error = True, OSError("gone")
    for _ in range(3):
        metrics.count("intake_events", "git")
        reporting.tick()
    assert caplog.text.count("metrics failed (said once)") == 1
    assert wire.flushed == 3


def test_log_sums_up_when_something_was_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    metrics, clock = Metrics(), Clock()
    reporting = Reporting(metrics, None, log_interval=60, clock=clock)
    metrics.count("intake_requests", "git", "stored", by=3)
    metrics.observe("commit", 0.002)
    reporting.tick()
    assert caplog.text == ""  # not yet
    clock.now += 60
    reporting.tick()
    assert "webhooks: 60 s: intake_requests git stored 3, commit" in caplog.text
    caplog.clear()
    clock.now += 60
    reporting.tick()
    assert caplog.text == ""


def test_thread_ends_after_a_last_tick() -> None:
    metrics, wire = Metrics(), Wire()
    flushed = threading.Event()

    class Telling(Wire):
        def flush(self) -> None:
            flushed.set()

    reporting = Reporting(metrics, telling := Telling(), interval=3600)
    reporting.start()
    metrics.count("intake_events", "git")
    reporting.stop()
    assert flushed.wait(10)
    assert ("count", "gunicorn.webhooks.intake_events.git", 1) in telling.sent
    assert wire.sent == []


def test_measured_is_a_copy() -> None:
    metrics = Metrics()
    before = metrics.measured()
    metrics.count("intake_events", "git")
    assert before == Measured()
    assert {metric.kind for metric in CATALOGUE} == set(Kind)
