"""
The tick: one thread that reads the limiter's snapshot and tells every sink.

Nothing here runs on behalf of a request. The limiter is asked for a snapshot once per interval;
an event costs the thread that caused it one append to a bounded queue, and is told on by the
reporter's thread. One lock serialises ticks; no other lock is taken under it but those of
the snapshot and of the sinks.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from gunicorn_admission.core.events import Event
from gunicorn_admission.core.policy import SECOND
from gunicorn_admission.core.statistics import Statistics
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.observe.report import Report, Sink

__all__ = ["Reporter"]

_log = logging.getLogger("gunicorn_admission")

#: Events kept while a sink blocks; the oldest go first.
_MOST_EVENTS = 1000


class Reporter:
    """
    Tells sinks what the limiter does, once per interval and at each transition.

    It is also the observer to give to the limiter, so that events reach the sinks::

        reporter = Reporter(lambda: limiter.statistics(), [sink])
        limiter = Limiter(settings, observers=[reporter])
        reporter.start()  # in the worker, after the fork

    Args:
        statistics: Takes a snapshot; called on the reporter's thread.
        sinks: Where reports go. One that raises is logged once and never stops the others.
        interval: Seconds between ticks; > 0.
        clock: Monotonic nanoseconds.

    Raises:
        ConfigError: When ``interval`` is not above 0.

    Thread safety: all methods may be called from any thread.
    """

    def __init__(
        self,
        statistics: Callable[[], Statistics],
        sinks: Iterable[Sink] = (),
        interval: float = 10.0,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        if not interval > 0:
            raise ConfigError(
                "interval", interval, "seconds above 0", "10 suits statsd's own flush interval"
            )
        self._statistics = statistics
        self._sinks = tuple(sinks)
        self._interval_ns = round(interval * SECOND)
        self._clock = clock
        self._events: deque[Event] = deque(maxlen=_MOST_EVENTS)
        self._before: Statistics | None = None
        self._ticked_ns = clock()
        self._complained: set[int] = set()
        self._turn = threading.Lock()  # one tick at a time; guards the three above and the sinks
        self._wake = threading.Event()
        self._stopping = False
        self._finished = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread. Call it in the worker: threads do not survive a fork."""
        if self._stopping or (self._thread is not None and self._thread.is_alive()):
            return
        self._thread = threading.Thread(
            target=self._run, name="gunicorn-admission-reporter", daemon=True
        )
        self._thread.start()

    def on_event(self, event: Event) -> None:
        """Note a transition. This alone runs in a request's thread: it appends and returns."""
        self._events.append(event)
        if not self._wake.is_set():
            self._wake.set()

    def tick(self) -> None:
        """Tell all sinks what happened since the last tick. Never raises for a sink's sake."""
        with self._turn:
            if not self._finished:
                self._tick()

    def stop(self, timeout: float = 2.0) -> None:
        """
        Flush once, close the sinks and end the thread.

        Args:
            timeout: Most seconds to wait for a sink that blocks; the thread is then left behind.
        """
        self._stopping = True
        self._wake.set()
        thread = self._thread
        if thread is not None and thread.is_alive():
            thread.join(timeout)
        else:
            self._finish()

    def _run(self) -> None:
        due_ns = self._clock() + self._interval_ns
        while not self._stopping:
            self._wake.wait(max(0, due_ns - self._clock()) / SECOND)
            self._wake.clear()  # before the queue is read, so that no event is slept on
            with self._turn:
                self._tell_events()
            now_ns = self._clock()
            if now_ns >= due_ns and not self._stopping:
                self.tick()
                due_ns = now_ns + self._interval_ns
        self._finish()

    def _finish(self) -> None:
        with self._turn:
            if self._finished:
                return
            self._finished = True
            self._tick()
            for sink in self._sinks:
                with self._spared(sink):
                    sink.close()

    def _tick(self) -> None:
        self._tell_events()
        now_ns = self._clock()
        try:
            now = self._statistics()
            report = Report.between(self._before, now, (now_ns - self._ticked_ns) / SECOND)
        except Exception:
            self._complain(self, "the snapshot for metrics failed; requests are not affected")
            return
        self._before, self._ticked_ns = now, now_ns
        for sink in self._sinks:
            with self._spared(sink):
                sink.report(report)

    def _tell_events(self) -> None:
        while self._events:
            event = self._events.popleft()
            for sink in self._sinks:
                with self._spared(sink):
                    sink.on_event(event)

    @contextmanager
    def _spared(self, sink: Sink) -> Iterator[None]:
        """Let the others go on when this sink raises."""
        try:
            yield
        except Exception:
            self._complain(sink, f"{type(sink).__name__} failed; requests are not affected")

    def _complain(self, about: object, message: str) -> None:
        if id(about) not in self._complained:
            self._complained.add(id(about))
            _log.warning("%s (said once)", message, exc_info=True)
