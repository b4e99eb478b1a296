"""
The one thread that does what is due by time.

It runs only while there is something to watch: every 10 ms while requests wait, twice a
second while requests run, not at all once the limiter has been idle for a second. The
first request after that wakes it, which is the only cost it has at rest.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

__all__ = ["Watchdog"]

_IDLE_ROUNDS = 2
_IDLE_SECONDS = 0.5

_log = logging.getLogger("gunicorn_admission")


class Watchdog:
    """
    Calls a function again and again, as often as it asks for.

    Args:
        tick: Does what is due; returns seconds until the next call, or ``None`` when there
            is nothing to watch.
        name: Name of the thread.

    Attributes:
        parked: Nothing is watched now; ``wake`` is needed.

    Thread safety: ``wake`` and ``hurry`` may be called from any thread, with or without the
    limiter's lock: they never wait for it.
    """

    def __init__(self, tick: Callable[[], float | None], name: str) -> None:
        self._tick = tick
        self._name = name
        self._event = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self.parked = True
        self._idle_rounds = 0
        self._complained = False

    def wake(self) -> None:
        """Start watching, if it does not already; tries again next time if it cannot."""
        self.parked = False
        if self._thread is None:
            with self._starting:
                if self._thread is None:
                    thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                    try:
                        thread.start()
                    except RuntimeError:
                        # No more threads. Requests still run, and those who wait in their
                        # own threads still look at the clock themselves.
                        self.parked = True
                        self._complain("the watchdog could not be started")
                        return
                    self._thread = thread
                    return
        self._event.set()

    def hurry(self) -> None:
        """Tick at once: something has to be watched more closely."""
        self._event.set()

    def round(self) -> float | None:
        """Tick once; seconds until the next round, or ``None`` when only ``wake`` ends the rest."""
        delay = self._tick_safely()
        if delay is not None:
            self._idle_rounds = 0
            self.parked = False
            return delay
        self._idle_rounds += 1
        if self._idle_rounds < _IDLE_ROUNDS:
            return _IDLE_SECONDS
        # Said before the last look: whoever came earlier is seen by it, and whoever comes
        # later sees this and wakes us.
        self.parked = True
        delay = self._tick_safely()
        if delay is not None:
            self._idle_rounds = 0
            self.parked = False
        return delay

    def _tick_safely(self) -> float | None:
        try:
            return self._tick()
        except Exception:
            self._complain("a round of the watchdog failed")
            return _IDLE_SECONDS

    def _complain(self, text: str) -> None:
        if not self._complained:
            self._complained = True
            _log.exception("%s; reported once", text)

    def _run(self) -> None:
        while True:
            self._event.wait(self.round())
            self._event.clear()
