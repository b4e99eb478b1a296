"""
How long a request was under way before it came here, as the proxy in front says.

``X-Request-Start`` is written in three units: seconds (nginx ``t=${msec}``), milliseconds
(Heroku, thruster) and microseconds (Apache ``%t``), with ``t=`` in front or without. They
are too far apart to be confused. The clocks of two machines differ, and a constant
difference looks just like a standing queue; so the smallest age seen of late counts as 0.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["RequestStart"]

_value = re.compile(r"(?:t=)?([0-9]{1,20}(?:\.[0-9]{1,9})?)").fullmatch
_NAMES = ("HTTP_X_REQUEST_START", "HTTP_X_QUEUE_START")
_MICROSECONDS, _MILLISECONDS = 1e14, 1e11
_OLDEST = 300.0
_FUTURE = 1.0
_MEMORY = 60.0


class RequestStart:
    """
    Reads the header of trusted proxies.

    Args:
        now: Seconds since the epoch; the proxy's clock is such a one.

    Thread safety: any thread; a lost update of the smallest age only delays it.
    """

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._least = _OLDEST
        self._before = _OLDEST
        self._since = now()

    def age(self, environ: Mapping[str, Any]) -> float:
        """Seconds that a request waited in front of us; 0.0 where nobody says so credibly."""
        text = next((environ[name] for name in _NAMES if name in environ), None)
        match = _value(text) if isinstance(text, str) else None
        if match is None:
            return 0.0
        started = float(match[1])
        if started > _MICROSECONDS:
            started /= 1e6
        elif started > _MILLISECONDS:
            started /= 1e3
        now = self._now()
        age = now - started
        if not -_FUTURE <= age <= _OLDEST:
            return 0.0
        return age - self._skew(age, now)

    def _skew(self, age: float, now: float) -> float:
        """The smallest age of the last one to two minutes: what clocks differ by."""
        if now - self._since > _MEMORY:
            self._before, self._least, self._since = self._least, age, now
        self._least = min(self._least, age)
        return min(self._least, self._before)
