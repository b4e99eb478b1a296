"""Reporting on a limiter to the log and, where one is named, to a statsd server."""

from __future__ import annotations

import os
import time

from gunicorn_admission.limiter import Limiter
from gunicorn_admission.limiter.hung import stuck
from gunicorn_admission.observe.board import BoardSink, node_gauges
from gunicorn_admission.observe.choose import choose_sink, choose_wire
from gunicorn_admission.observe.log import LogObserver
from gunicorn_admission.observe.report import Sink
from gunicorn_admission.observe.reporter import Reporter
from gunicorn_admission.observe.stacks import StackSink
from gunicorn_admission.observe.wire import Wire
from gunicorn_admission.scoreboard import Row
from gunicorn_admission.settings import Settings, load

__all__ = ["process_wire", "start_reporting"]

#: What the last reporter was given, by process: others who report here report to the same.
_given: dict[int, tuple[Settings, object, object | None]] = {}


def start_reporting(
    limiter: Limiter,
    settings: Settings,
    worker_log: object = None,
    *,
    cfg: object | None = None,
    worker: int | None = None,
    row: Row | None = None,
) -> Reporter:
    """
    Let the log and statsd know what a limiter does; a thread of its own tells them.

    Call it in the process that serves: threads do not survive a fork.

    Args:
        limiter: Is observed.
        settings: Intervals, and the statsd server.
        worker_log, cfg, worker: See :func:`~gunicorn_admission.observe.choose.choose_sink`.
        row: The worker's row on the page that it shares with its siblings.

    Raises:
        ConfigError: When ``statsd_host`` in ``settings`` is no address.
    """
    _given[os.getpid()] = settings, worker_log, cfg
    sinks: list[Sink] = [
        LogObserver(settings.log_interval),
        StackSink(lambda: stuck(limiter), time.monotonic_ns),
    ]
    totals = None
    if row is not None:
        page = row.page
        sinks.append(BoardSink(row, limiter.statistics))
        if worker is not None:
            totals = lambda: node_gauges(page)  # noqa: E731
    statsd = choose_sink(worker_log, settings, cfg=cfg, worker=worker, totals=totals)
    if statsd is not None:
        sinks.append(statsd)
    reporter = Reporter(limiter.statistics, sinks, settings.statsd_interval)
    limiter.observe(reporter)
    reporter.start()
    return reporter


def process_wire() -> tuple[Wire | None, Settings]:
    """
    Return a way of one's own to the statsd server that this process reports to, and settings.

    Where no limiter reports, environment and TOML file say which server that is.

    Raises:
        ConfigError: When ``statsd_host`` there is no address.
    """
    given = _given.get(os.getpid())
    settings, worker_log, cfg = given or (load({}, environ=os.environ)[0], None, None)
    wire, _ = choose_wire(worker_log, settings, cfg)
    return wire, settings
