"""Log lines about requests, few enough that whoever sends requests cannot fill the disk."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

__all__ = ["Complaints"]

_log = logging.getLogger("gunicorn_admission.intake")

#: Kinds of lines that are remembered; what comes later shares one.
_MOST = 256


class Complaints:
    """
    Writes the first line of a kind, and then at most one in each interval.

    Args:
        interval: Seconds.
        monotonic: Seconds.

    Thread safety: may be called from any thread.
    """

    def __init__(
        self, interval: float = 60.0, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._interval = interval
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._written: dict[tuple[str, ...], tuple[float, int]] = {}  # when, and left out since

    def say(self, level: int, kind: tuple[str, ...], text: str) -> None:
        """
        Write a line, unless one of its kind was written just now.

        Args:
            level: Of the line.
            kind: From closed lists and configuration.
            text: Without secrets and without anything from a body.
        """
        now = self._monotonic()
        with self._lock:
            if kind not in self._written and len(self._written) >= _MOST:
                kind = ("other",)
            written, left_out = self._written.get(kind, (-self._interval, 0))
            if now - written < self._interval:
                self._written[kind] = written, left_out + 1
                return
            self._written[kind] = now, 0
        more = f" ({left_out} more like it were left out)" if left_out else ""
        _log.log(level, "webhooks: %s%s", text, more)
