"""
The tick of the webhooks half: what was counted, to statsd and as a line in the log.

It is apart from the limiter's reporter, since webhooks work without a limiter too. Nothing here
runs on behalf of a request.
"""

from __future__ import annotations

import logging
import math
import os
import re
import threading
import time
from collections.abc import Callable, Mapping

from gunicorn_admission.observe.delays import quantile, samples
from gunicorn_admission.observe.metric import Labels
from gunicorn_admission.observe.start import process_wire
from gunicorn_admission.observe.wire import Wire
from gunicorn_admission.webhooks.metrics import BY_KEY, Measured, Metrics, recorder

__all__ = ["Reporting", "start_webhook_reporting"]

_log = logging.getLogger("gunicorn_admission")

#: Timings a tick: the burst must fit the server's receive buffer.
_MOST_TIMINGS = 50


class Reporting:
    """
    Tells statsd and the log what was counted since the last tick.

    Args:
        metrics: Is read.
        wire: The way to statsd; ``None`` for none.
        interval: Seconds between ticks.
        log_interval: Seconds between lines in the log, which are written only when something
            was counted; 0 for none.
        clock: Monotonic seconds.

    Thread safety: :meth:`tick` and :meth:`stop` may be called from any thread.
    """

    def __init__(
        self,
        metrics: Metrics,
        wire: Wire | None,
        interval: float = 1.0,
        log_interval: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._metrics = metrics
        self._wire = wire
        self._interval = interval
        self._log_interval = log_interval
        self._clock = clock
        self._before = Measured()
        self._logged, self._logged_at = Measured(), clock()
        self._turn = threading.Lock()  # one tick at a time; guards the three above
        self._stop = threading.Event()
        self._complained = False

    def start(self) -> None:
        """Start the thread, in the process that serves."""
        threading.Thread(target=self._run, name="gunicorn-admission-webhooks", daemon=True).start()

    def stop(self) -> None:
        """Let the thread end after a last tick."""
        self._stop.set()

    def tick(self) -> None:
        """Report once; never raises for the sake of a server or handler."""
        with self._turn:
            try:
                now = self._metrics.measured()
                if self._wire is not None and self._wire.open():
                    self._send(self._wire, now)
                self._before = now
                if self._log_interval and self._clock() - self._logged_at >= self._log_interval:
                    self._sum_up(now)
            except Exception:
                if not self._complained:
                    self._complained = True
                    _log.warning("webhooks: metrics failed (said once)", exc_info=True)

    def _run(self) -> None:
        while not self._stop.wait(self._interval):
            self.tick()
        self.tick()

    def _send(self, wire: Wire, now: Measured) -> None:
        try:
            for (key, labels), total in now.counters.items():
                grown = total - self._before.counters.get((key, labels), 0)
                if grown:
                    wire.count(BY_KEY[key].statsd(_words(labels)), _number(grown))
            for (key, labels), value in now.gauges.items():
                if math.isfinite(value):
                    scale = 1000 if BY_KEY[key].unit == "seconds" else 1
                    wire.gauge(BY_KEY[key].statsd(_words(labels)), _number(value * scale))
            for (key, labels), counts in _grown(self._before.histograms, now.histograms).items():
                for seconds in samples(counts, _MOST_TIMINGS):
                    wire.timing(BY_KEY[key].statsd(_words(labels)), _number(seconds * 1000))
        finally:
            wire.flush()

    def _sum_up(self, now: Measured) -> None:
        text = _summary(self._logged, now)
        if text:
            seconds = round(self._clock() - self._logged_at)
            _log.info("webhooks: %d s: %s", seconds, text)
        self._logged, self._logged_at = now, self._clock()


def _grown(
    before: Mapping[tuple[str, Labels], tuple[int, ...]],
    now: Mapping[tuple[str, Labels], tuple[int, ...]],
) -> dict[tuple[str, Labels], list[int]]:
    return {
        place: [new - old for new, old in zip(counts, before[place], strict=True)]
        if place in before
        else list(counts)
        for place, counts in now.items()
    }


def _summary(before: Measured, now: Measured) -> str:
    parts = []
    for (key, labels), total in sorted(now.counters.items()):
        grown = total - before.counters.get((key, labels), 0)
        if grown:
            parts.append(f"{key} {' '.join(labels)} {grown:.0f}")
    for (key, _), counts in _grown(before.histograms, now.histograms).items():
        if any(counts):
            median, worst = (quantile(counts, q) * 1000 for q in (0.5, 0.99))
            parts.append(f"{key} {median:.1f} ms median, {worst:.1f} ms p99")
    return ", ".join(parts)


def _words(labels: Labels) -> Labels:
    """Label values as parts of a dotted name."""
    return tuple(re.sub(r"[^A-Za-z0-9_-]+", "_", label).strip("_") or "other" for label in labels)


def _number(value: float) -> float:
    value = round(value, 3)
    return int(value) if value == int(value) else value


_started: dict[int, Reporting] = {}


def start_webhook_reporting(metrics: Metrics = recorder) -> Reporting:
    """
    Start the tick of this process, once; later calls return the one that runs.

    Where gunicorn has admission installed, its statsd is used; elsewhere the one that
    ``GUNICORN_ADMISSION_STATSD_HOST`` or the TOML file names.
    """
    process = os.getpid()
    running = _started.get(process)
    if running is None:
        wire, settings = process_wire()
        made = Reporting(metrics, wire, settings.statsd_interval, settings.log_interval)
        running = _started.setdefault(process, made)
        if running is made:
            made.start()
    return running
