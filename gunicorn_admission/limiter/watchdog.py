"""
The one thread that does what is due by time.

It runs only while there is something to watch: every 10 ms while requests wait, twice a
second while requests run, not at all once the limiter has been idle for a second. The
first request after that wakes it, which is the only cost it has at rest.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

__all__ = ["Watchdog"]

_IDLE_ROUNDS = 2


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

    def wake(self) -> None:
        """Start watching, if it does not already."""
        self.parked = False
        if self._thread is None:
            with self._starting:
                if self._thread is None:
                    self._thread = threading.Thread(
                        target=self._run, name=self._name, daemon=True
                    )
                    self._thread.start()
                    return
        self._event.set()

    def hurry(self) -> None:
        """Tick at once: something has to be watched more closely."""
        self._event.set()

    def _run(self) -> None:
        idle = 0
        while True:
            delay = self._tick()
            if delay is None:
                idle += 1
                delay = 0.5
                if idle >= _IDLE_ROUNDS:
                    # Said before the wait, so that a wake-up in between is not lost.
                    self.parked = True
                    delay = None
            else:
                idle = 0
            self._event.wait(delay)
            self._event.clear()
            self.parked = False
