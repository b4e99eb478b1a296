"""The tick, called from here: what sinks are given, and what a broken one may not do."""

from __future__ import annotations

import logging

import pytest

from gunicorn_admission.core.events import Event, EventKind
from gunicorn_admission.core.statistics import Statistics
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.observe.report import Report, Sink
from gunicorn_admission.observe.reporter import Reporter
from gunicorn_admission.testing import FakeClock
from tests.observing import idle

OVERLOADED = Event(EventKind.OVERLOADED, 1, None, {})
RECOVERED = Event(EventKind.RECOVERED, 2, None, {})


class Recorder(Sink):
    """Notes all calls, in order."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def report(self, report: Report) -> None:
        self.calls.append(report)

    def on_event(self, event: Event) -> None:
        self.calls.append(event)

    def close(self) -> None:
        self.calls.append("closed")

    @property
    def reports(self) -> list[Report]:
        return [call for call in self.calls if isinstance(call, Report)]


class Broken(Sink):
    """Raises whatever it is asked."""

    def report(self, report: Report) -> None:
        raise RuntimeError("no report")

    def on_event(self, event: Event) -> None:
        raise RuntimeError("no event")

    def close(self) -> None:
        raise RuntimeError("no close")


class Source:
    """A limiter of which only the snapshot matters."""

    def __init__(self) -> None:
        self.now: Statistics | None = idle()

    def __call__(self) -> Statistics:
        if self.now is None:
            raise RuntimeError("no snapshot")
        return self.now


def test_each_tick_tells_the_state_and_what_grew() -> None:
    source, sink, clock = Source(), Recorder(), FakeClock()
    reporter = Reporter(source, [sink], 10, clock)
    for arrivals, limit in ((5, 8), (5, 7), (9, 7)):
        source.now = idle(arrivals=arrivals, limit=limit)
        clock.advance(10)
        reporter.tick()
    assert [report.increments["arrivals"] for report in sink.reports] == [{(): 5}, {}, {(): 4}]
    assert [report.statistics.limit for report in sink.reports] == [8, 7, 7]
    assert [report.seconds for report in sink.reports] == [10, 10, 10]


def test_events_come_in_order_and_before_the_report() -> None:
    sink = Recorder()
    reporter = Reporter(Source(), [sink], 10, FakeClock())
    reporter.on_event(OVERLOADED)
    reporter.on_event(RECOVERED)
    assert sink.calls == []
    reporter.tick()
    assert sink.calls == [OVERLOADED, RECOVERED, *sink.reports]
    reporter.tick()
    assert len(sink.calls) == 4


def test_events_are_bounded_and_the_newest_are_kept() -> None:
    sink = Recorder()
    reporter = Reporter(Source(), [sink], 10, FakeClock())
    for at_ns in range(5000):
        reporter.on_event(Event(EventKind.OVERLOADED, at_ns, None, {}))
    reporter.tick()
    events = [call for call in sink.calls if isinstance(call, Event)]
    assert [event.at_ns for event in events] == list(range(4000, 5000))


def test_a_sink_that_raises_is_logged_once_and_stops_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    before, after = Recorder(), Recorder()
    reporter = Reporter(Source(), [before, Broken(), Broken(), after], 10, FakeClock())
    for _ in range(3):
        reporter.on_event(OVERLOADED)
        reporter.tick()
    reporter.stop()
    assert before.calls == after.calls
    assert len(before.calls) == 3 + 3 + 1 + 1
    logged = [record.getMessage() for record in caplog.records]
    assert logged == ["Broken failed; requests are not affected (said once)"] * 2
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
    assert all(record.exc_info for record in caplog.records)


def test_a_snapshot_that_fails_is_logged_once_and_loses_no_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source, sink, clock = Source(), Recorder(), FakeClock()
    reporter = Reporter(source, [sink], 10, clock)
    clock.advance(10)
    reporter.tick()
    source.now = None
    for _ in range(2):
        clock.advance(10)
        reporter.tick()
    source.now = idle(arrivals=6)
    clock.advance(10)
    reporter.tick()
    assert [report.increments["arrivals"] for report in sink.reports] == [{}, {(): 6}]
    assert sink.reports[-1].seconds == 30
    assert len(caplog.records) == 1


def test_stop_flushes_once_closes_and_ends_it() -> None:
    source, sink = Source(), Recorder()
    reporter = Reporter(source, [sink], 10, FakeClock())
    reporter.tick()
    source.now = idle(arrivals=2)
    reporter.on_event(OVERLOADED)
    reporter.stop()
    assert sink.calls[1:] == [OVERLOADED, sink.reports[1], "closed"]
    assert sink.reports[1].increments["arrivals"] == {(): 2}
    reporter.stop()
    reporter.tick()
    reporter.start()
    assert len(sink.calls) == 4


@pytest.mark.parametrize("interval", [0, -1, float("nan")])
def test_refuses_an_interval_that_would_spin(interval: float) -> None:
    with pytest.raises(ConfigError, match="interval"):
        Reporter(Source(), [], interval)
