"""
What happened, in the log: a line for each transition, and a summary while something is shed.

Never a line for a request. The logger is ``gunicorn_admission``; handlers are the user's business,
or gunicorn's by :func:`use_gunicorn_logger`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from attrs import define

from gunicorn_admission.core.events import Event, EventKind
from gunicorn_admission.core.policy import SECOND
from gunicorn_admission.core.statistics import Statistics
from gunicorn_admission.core.types import Mode
from gunicorn_admission.observe.delays import quantile
from gunicorn_admission.observe.report import Report, Sink

__all__ = ["LogObserver", "use_gunicorn_logger"]

_LOGGER = "gunicorn_admission"

#: How loud each transition is, and what it means.
_WORDS: Mapping[EventKind, tuple[int, str]] = {
    EventKind.OVERLOADED: (logging.WARNING, "overloaded: a queue stands that does not drain"),
    EventKind.RECOVERED: (logging.INFO, "recovered: the queue drains again"),
    EventKind.STALLED: (
        logging.WARNING,
        "stalled: requests hang; new ones are refused, but for a probe now and then",
    ),
    EventKind.RESUMED: (logging.INFO, "resumed: requests end again"),
    EventKind.STARVED: (logging.ERROR, "starved: too few threads are left that do not hang"),
    EventKind.REPLENISHED: (logging.INFO, "replenished: enough threads are free again"),
    EventKind.LIMIT_SET: (logging.INFO, "limit set by hand"),
    EventKind.MODE_SET: (logging.WARNING, "mode set by hand"),
    EventKind.PAUSED: (logging.WARNING, "paused by hand: all requests are refused"),
    EventKind.UNPAUSED: (logging.INFO, "no longer paused"),
    EventKind.CLOSED: (logging.INFO, "closed: the worker stops"),
}

#: Counters that make a summary worth writing.
_WORTH = ("shed", "would_shed", "abandoned", "released_twice", "leaked")

#: Lines of one kind within one interval; a flapping signal must not fill a disk.
_MOST_LINES = 5


@define
class _Budget:
    """Lines of one kind since ``since_ns``, written and left out."""

    since_ns: int
    written: int = 0
    left_out: int = 0


class LogObserver(Sink):
    """
    Writes transitions and summaries.

    Times come with the events and reports, so this has no clock of its own. Records carry
    ``admission_event``, ``admission_partition`` and ``admission_data`` for structured handlers.

    Args:
        interval: Seconds between summaries, which are written only when something was shed or
            is different; 0 for none.
        event_interval: Seconds in which one kind of transition gets five lines.
        logger: By default ``gunicorn_admission``.

    Thread safety: one thread, the reporter's.
    """

    def __init__(
        self,
        interval: float = 60.0,
        *,
        event_interval: float = 60.0,
        logger: logging.Logger | None = None,
    ) -> None:
        self._interval = interval
        self._event_interval_ns = round(event_interval * SECOND)
        self._logger = logger or logging.getLogger(_LOGGER)
        self._budgets: dict[EventKind, _Budget] = {}
        self._summed_up: Statistics | None = None
        self._now: Statistics | None = None
        self._known: tuple[object, ...] | None = None
        self._seconds = 0.0

    def on_event(self, event: Event) -> None:
        """Write one line for a transition, unless its kind has used up its lines."""
        budget = self._budgets.get(event.kind)
        left_out = 0
        if budget is None or event.at_ns - budget.since_ns >= self._event_interval_ns:
            left_out = budget.left_out if budget else 0
            budget = self._budgets[event.kind] = _Budget(event.at_ns)
        if budget.written >= _MOST_LINES:
            budget.left_out += 1
            return
        budget.written += 1
        level, words = _WORDS.get(event.kind, (logging.INFO, event.kind.value))
        about = f"class {event.partition!r} " if event.partition is not None else ""
        text = ", ".join([about + words, *(f"{k} {_short(v)}" for k, v in event.data.items())])
        if left_out:
            text += f" ({left_out} more such lines were left out before)"
        self._write(level, text, event.kind.value, event.partition, event.data)

    def report(self, report: Report) -> None:
        """Take a tick, and write the summary when its time has come."""
        self._now = report.statistics
        self._seconds += report.seconds
        if self._known is None:
            self._known = _condition(report.statistics)
        if self._seconds >= 0.99 * self._interval:  # no tick is exactly on time
            self._sum_up()

    def close(self) -> None:
        """Write what was not summed up yet."""
        self._sum_up()

    def _sum_up(self) -> None:
        if self._now is None or not self._interval:
            return
        span = Report.between(self._summed_up, self._now, self._seconds)
        condition = _condition(self._now)
        if condition != self._known or any(span.increments[key] for key in _WORTH):
            refused = sum(span.increments["shed"].values())
            level = logging.WARNING if refused else logging.INFO
            self._write(level, _summary(span), "summary", None, _figures(span))
        self._summed_up, self._now, self._known = self._now, None, condition
        self._seconds = 0.0

    def _write(
        self, level: int, text: str, event: str, partition: str | None, data: Mapping[str, object]
    ) -> None:
        extra = {
            "admission_event": event,
            "admission_partition": partition,
            "admission_data": dict(data),
        }
        self._logger.log(level, "admission: %s", text, extra=extra)


def _condition(statistics: Statistics) -> tuple[object, ...]:
    """What is worth a line when it is different."""
    s = statistics
    return s.limit, s.mode, s.overloaded, s.paused, s.stuck > 0, _stalled(s)


def _stalled(statistics: Statistics) -> tuple[str, ...]:
    return tuple(sorted(name for name, p in statistics.partitions.items() if p.stalled))


def _figures(span: Report) -> dict[str, object]:
    counts = {key: int(sum(span.increments[key].values())) for key in ("admitted", *_WORTH)}
    s = span.statistics
    state = {"limit": s.limit, "inflight": s.inflight, "waiting": s.waiting}
    return {"seconds": span.seconds, **counts, **state, "overloaded": s.overloaded}


def _summary(span: Report) -> str:
    s = span.statistics
    admitted = sum(span.increments["admitted"].values())
    parts = [f"{_short(round(span.seconds, 1))} s: {admitted:.0f} admitted"]
    for key, words in (("shed", "shed"), ("would_shed", "would be shed")):
        values = span.increments[key]
        if values:
            most_first = sorted(values.items(), key=lambda item: (-item[1], item[0]))
            detail = ", ".join(f"{' '.join(labels)} {n:.0f}" for labels, n in most_first)
            parts.append(f"{sum(values.values()):.0f} {words} ({detail})")
    for key in ("abandoned", "released_twice", "leaked"):
        if span.increments[key]:
            parts.append(f"{sum(span.increments[key].values()):.0f} {key.replace('_', ' ')}")
    parts.append(f"limit {s.limit} of {s.max_limit}, {s.inflight} in flight, {s.waiting} waiting")
    if any(span.delays):
        median, worst = (_short(quantile(span.delays, q) * 1000) for q in (0.5, 0.99))
        parts.append(f"queue delay {median} ms median, {worst} ms p99")
    flags = {"overloaded": s.overloaded, "paused": s.paused, f"{s.stuck} stuck": s.stuck}
    parts += [words for words, set_ in flags.items() if set_]
    if _stalled(s):
        parts.append("stalled: " + " ".join(_stalled(s)))
    if s.mode != Mode.ENFORCE.value:
        parts.append(f"mode {s.mode}")
    return ", ".join(parts)


def _short(value: float | int | str) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(value)


class _Forward(logging.Handler):
    """Hands records to gunicorn's error log, which filters, formats and writes them."""

    def __init__(self, worker_log: Any) -> None:
        super().__init__()
        self._worker_log = worker_log

    def emit(self, record: logging.LogRecord) -> None:
        """Pass the record on whole, or its text to a logger that knows no records."""
        try:
            error_log = getattr(self._worker_log, "error_log", None)
            if not isinstance(error_log, logging.Logger):
                self._worker_log.log(record.levelno, "%s", record.getMessage())
            elif error_log.isEnabledFor(record.levelno):
                error_log.handle(record)
        except Exception:
            self.handleError(record)


def use_gunicorn_logger(worker_log: object) -> bool:
    """
    Let what ``gunicorn_admission`` logs appear in gunicorn's error log.

    Does nothing when that logger has a handler already, from logging settings of the user's or an
    earlier call. Otherwise the messages go to gunicorn's error log and, like gunicorn's own,
    nowhere else; gunicorn's ``loglevel`` decides which.

    Args:
        worker_log: ``worker.log``, or any object with gunicorn's logger methods.

    Returns:
        Whether the messages go there because of this call.
    """
    logger = logging.getLogger(_LOGGER)
    if logger.handlers:
        return False
    logger.addHandler(_Forward(worker_log))
    logger.propagate = False
    logger.disabled = False  # logging.config disables loggers that it does not name
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.DEBUG)  # gunicorn's own level filters behind it
    return True
