"""
What operators see: metrics to statsd, lines in the log.

Start reading in ``names.py``, the one list of metrics; ``reporter.py`` holds the tick that feeds
every sink, away from requests; ``statsd.py`` and ``log.py`` are the sinks, and ``choose.py`` picks
the way to the statsd server that gunicorn's settings name.
"""

from __future__ import annotations

from gunicorn_admission.observe.choose import choose_sink
from gunicorn_admission.observe.log import LogObserver, use_gunicorn_logger
from gunicorn_admission.observe.names import METRICS
from gunicorn_admission.observe.report import Report, Sink
from gunicorn_admission.observe.reporter import Reporter
from gunicorn_admission.observe.start import start_reporting
from gunicorn_admission.observe.statsd import StatsdSink

__all__ = [
    "METRICS",
    "LogObserver",
    "Report",
    "Reporter",
    "Sink",
    "StatsdSink",
    "choose_sink",
    "start_reporting",
    "use_gunicorn_logger",
]
