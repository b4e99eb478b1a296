"""A clock that stands still until a test moves it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable

__all__ = ["FakeClock"]


class FakeClock:
    """
    Monotonic nanoseconds under a test's control; call it to read it.

    Hand it to ``Limiter(clock=...)``. Moving it does at once what the limiter would have
    done in that time: requests that have waited too long are refused, intervals close.

    Args:
        start_ns: First reading. Not 0, so that a confusion with "never" shows.

    Thread safety: may be read and moved from any thread.
    """

    def __init__(self, start_ns: int = 1_000_000_007) -> None:
        self._now_ns = start_ns
        self._lock = threading.Lock()
        self._ticks: list[weakref.WeakMethod[Callable[[], None]]] = []

    def __call__(self) -> int:
        """Return the present reading in nanoseconds."""
        return self._now_ns

    def advance(self, seconds: float) -> None:
        """
        Move forward and let subscribers catch up.

        Raises:
            ValueError: The duration is negative; monotonic clocks do not go back.
        """
        if seconds < 0:
            raise ValueError(f"a monotonic clock cannot go back by {seconds} s")
        with self._lock:
            self._now_ns += round(seconds * 1_000_000_000)
        for reference in list(self._ticks):
            tick = reference()
            if tick is not None:
                tick()

    def subscribe(self, tick: Callable[[], None]) -> None:
        """Call a bound method after each move, for as long as its object lives."""
        self._ticks.append(weakref.WeakMethod(tick))
