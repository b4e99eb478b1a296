"""Lines in the log: what they say, how many there may be, and whose log they are in."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from gunicorn_admission.core.events import Event, EventKind
from gunicorn_admission.core.policy import SECOND
from gunicorn_admission.core.statistics import Statistics
from gunicorn_admission.observe.log import LogObserver, use_gunicorn_logger
from tests.observing import delays, idle, partition, report_of

LOGGER = logging.getLogger("gunicorn_admission")


@pytest.fixture(autouse=True)
def untouched_logger(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.DEBUG, "gunicorn_admission")
    handlers, propagate, level = LOGGER.handlers[:], LOGGER.propagate, LOGGER.level
    yield
    LOGGER.handlers[:], LOGGER.propagate = handlers, propagate
    LOGGER.setLevel(level)


class Ticks:
    """Feeds an observer one snapshot each ten seconds."""

    def __init__(self, observer: LogObserver) -> None:
        self.observer = observer
        self.before: Statistics | None = None

    def __call__(self, now: Statistics, times: int = 1, seconds: float = 10.0) -> None:
        for _ in range(times):
            self.observer.report(report_of(now, self.before, seconds))
            self.before = now


def event(kind: EventKind, seconds: float = 0, about: str | None = None, **data: Any) -> Event:
    return Event(kind, round(seconds * SECOND), about, data)


def test_a_transition_is_one_line_with_its_numbers(caplog: pytest.LogCaptureFixture) -> None:
    LogObserver().on_event(event(EventKind.OVERLOADED, limit=14, inflight=14, delay_seconds=0.0512))
    (record,) = caplog.records
    assert record.getMessage() == (
        "admission: overloaded: a queue stands that does not drain, "
        "limit 14, inflight 14, delay_seconds 0.05"
    )
    assert record.levelno == logging.WARNING
    assert record.__dict__["admission_event"] == "overloaded"
    assert record.__dict__["admission_data"]["delay_seconds"] == 0.0512


def test_a_transition_of_a_class_names_it(caplog: pytest.LogCaptureFixture) -> None:
    LogObserver().on_event(event(EventKind.STALLED, about="/reports", age_seconds=6.0))
    assert "class '/reports' stalled: " in caplog.text
    assert "age_seconds 6" in caplog.text
    assert caplog.records[0].__dict__["admission_partition"] == "/reports"


@pytest.mark.parametrize("kind", EventKind)
def test_every_transition_has_words(kind: EventKind, caplog: pytest.LogCaptureFixture) -> None:
    LogObserver().on_event(event(kind))
    assert len(caplog.records[0].getMessage()) > len(f"admission: {kind.value}")


def test_a_flapping_signal_is_cut_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    observer = LogObserver(event_interval=60)
    for second in range(59):
        observer.on_event(event(EventKind.OVERLOADED, second))
        observer.on_event(event(EventKind.RECOVERED, second))
    assert len(caplog.records) == 5 + 5
    observer.on_event(event(EventKind.STALLED, 59, about="db"))
    assert len(caplog.records) == 11  # another kind is not cut
    observer.on_event(event(EventKind.OVERLOADED, 60))
    assert "(54 more such lines were left out before)" in caplog.records[-1].getMessage()
    observer.on_event(event(EventKind.OVERLOADED, 61))
    assert "left out" not in caplog.records[-1].getMessage()


def test_a_summary_says_what_was_shed(caplog: pytest.LogCaptureFixture) -> None:
    tick = Ticks(LogObserver(interval=60))
    tick(idle(limit=14, max_limit=30, granted_by_priority={"high": 100}), times=6)
    assert caplog.records == []
    busy = idle(
        limit=14,
        max_limit=30,
        inflight=14,
        waiting=3,
        overloaded=True,
        granted_by_priority={"high": 300, "default": 1000},
        shed={("low", "overloaded"): 30, ("default", "expired"): 4},
        delay_buckets=delays({0.0005: 1190, 0.05: 10}),
    )
    tick(busy, times=6)
    (record,) = caplog.records
    assert record.getMessage() == (
        "admission: 60 s: 1200 admitted, 34 shed (low overloaded 30, default expired 4), "
        "limit 14 of 30, 14 in flight, 3 waiting, queue delay 0.25 ms median, 0.5 ms p99, "
        "overloaded"
    )
    assert record.levelno == logging.WARNING
    figures = record.__dict__["admission_data"]
    assert (figures["shed"], figures["admitted"], figures["limit"]) == (34, 1200, 14)


def test_a_quiet_minute_is_silent(caplog: pytest.LogCaptureFixture) -> None:
    tick = Ticks(LogObserver(interval=60))
    for total in range(0, 1000, 10):
        tick(idle(limit=14, granted_by_priority={"high": total}, inflight=total % 7))
    tick.observer.close()
    assert caplog.records == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"limit": 8}, "limit 8 of 30"),
        ({"overloaded": True}, ", overloaded"),
        ({"paused": True}, ", paused"),
        ({"mode": "monitor"}, ", mode monitor"),
        ({"stuck": 2}, ", 2 stuck"),
        ({"partitions": {"db": partition(stalled=True)}}, ", stalled: db"),
        ({"abandoned": 3}, "3 abandoned"),
        ({"leaked": 1}, "1 leaked"),
        ({"released_twice": 1}, "1 released twice"),
        ({"would_shed": {("low", "overloaded"): 5}}, "5 would be shed (low overloaded 5)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_different_is_summed_up_once(
    change: dict[str, Any], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    tick = Ticks(LogObserver(interval=60))
    normal = {"limit": 14, "max_limit": 30}
    tick(idle(**normal), times=6)
    tick(idle(**normal | change), times=18)
    (record,) = caplog.records
    assert words in record.getMessage()
    assert record.levelno == logging.INFO


def test_what_was_not_summed_up_is_written_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    tick = Ticks(LogObserver(interval=60))
    tick(idle(shed={("low", "overloaded"): 1}), seconds=7.0)
    assert caplog.records == []
    tick.observer.close()
    assert "admission: 7 s: 0 admitted, 1 shed" in caplog.text
    tick.observer.close()
    assert len(caplog.records) == 1


def test_zero_means_no_summary_and_keeps_transitions(caplog: pytest.LogCaptureFixture) -> None:
    observer = LogObserver(interval=0)
    tick = Ticks(observer)
    tick(idle(shed={("low", "overloaded"): 1}), times=3)
    observer.close()
    assert caplog.records == []
    observer.on_event(event(EventKind.PAUSED))
    assert len(caplog.records) == 1


class Lines(logging.Handler):
    """Keeps formatted lines."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {record.getMessage()}")


def error_log(level: int) -> tuple[Any, Lines]:
    log, lines = logging.Logger("gunicorn.error", level), Lines()
    log.addHandler(lines)
    return SimpleNamespace(error_log=log), lines


def test_gunicorns_error_log_shows_the_lines_at_its_level(
    caplog: pytest.LogCaptureFixture,
) -> None:
    LOGGER.setLevel(logging.NOTSET)
    worker_log, lines = error_log(logging.INFO)
    assert use_gunicorn_logger(worker_log)
    observer = LogObserver()
    observer.on_event(event(EventKind.OVERLOADED))
    observer.on_event(event(EventKind.RECOVERED))
    LOGGER.debug("too fine for gunicorn")
    assert [line.split(":")[0] for line in lines.lines] == ["WARNING admission", "INFO admission"]
    assert caplog.records == []  # once, not in a root handler as well


def test_logging_settings_that_do_not_name_us_do_not_silence_us() -> None:
    LOGGER.disabled = True  # what dictConfig does to loggers it finds
    worker_log, lines = error_log(logging.INFO)
    use_gunicorn_logger(worker_log)
    LogObserver().on_event(event(EventKind.OVERLOADED))
    assert len(lines.lines) == 1


def test_gunicorns_level_holds() -> None:
    worker_log, lines = error_log(logging.WARNING)
    use_gunicorn_logger(worker_log)
    LogObserver().on_event(event(EventKind.RECOVERED))
    assert lines.lines == []


def test_a_handler_of_the_users_is_left_alone() -> None:
    own = Lines()
    LOGGER.addHandler(own)
    worker_log, lines = error_log(logging.INFO)
    assert not use_gunicorn_logger(worker_log)
    LogObserver().on_event(event(EventKind.OVERLOADED))
    assert len(own.lines) == 1
    assert lines.lines == []
    assert LOGGER.propagate


def test_asking_twice_does_not_write_twice() -> None:
    worker_log, lines = error_log(logging.INFO)
    assert use_gunicorn_logger(worker_log)
    assert not use_gunicorn_logger(worker_log)
    LogObserver().on_event(event(EventKind.OVERLOADED))
    assert len(lines.lines) == 1


def test_a_logger_class_without_a_standard_logger_gets_the_text() -> None:
    calls: list[str] = []
    log = SimpleNamespace(log=lambda level, text, *args: calls.append(f"{level} {text % args}"))
    use_gunicorn_logger(log)
    LOGGER.info("100 %% of %s", "it")
    assert calls == ["20 100 % of it"]


def test_a_logger_class_that_raises_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    use_gunicorn_logger(object())
    LogObserver().on_event(event(EventKind.OVERLOADED))
