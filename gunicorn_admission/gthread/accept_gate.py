"""
Leaving connections to siblings that can serve them.

Workers accept from one socket. One whose threads are all taken accepts all the same, and
what it has accepted nobody else can serve: with one of two workers blocked, three in four
fast requests stood behind it. So a worker without a free slot does not accept for a
moment. If the connection is still there after that, no sibling wanted it either; then
this one takes it, and answers, and does not stand aside again for a while: a closed gate
at all workers would only move the queue to where nobody is refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from gunicorn_admission.core.policy import MILLISECOND

__all__ = ["AcceptGate"]

_ASIDE = 0.05
_TOGETHER = 1.0
#: A connection that waited for about as long as we stood aside was left by all siblings.
_LEFT_NS = 30 * MILLISECOND


class AcceptGate:
    """
    Stops a worker from accepting for up to 50 ms while it has no free slot.

    Idle keep-alive connections do not count: only slots do.

    Args:
        worker: One of several on one socket; gunicorn 24 or later, its main loop not
            running yet.
        full: Whether no slot is free.

    Thread safety: main loop only.
    """

    def __init__(self, worker: Any, full: Callable[[], bool]) -> None:
        self._worker = worker
        self._full = full
        self._opens_at = 0.0
        self._closes_after = 0.0
        self._enable = worker.set_accept_enabled
        self._turn = worker.wait_for_and_dispatch_events
        worker.set_accept_enabled = self._set_accept_enabled
        worker.wait_for_and_dispatch_events = self._wait

    def arrived(self, waited_ns: int) -> None:
        """A new connection was accepted that had waited for so long in the kernel."""
        if waited_ns >= _LEFT_NS:
            self._closes_after = time.monotonic() + _TOGETHER

    def _set_accept_enabled(self, enabled: bool) -> None:
        if not (enabled and time.monotonic() < self._opens_at):
            self._enable(enabled)

    def _wait(self, timeout: float) -> None:
        worker = self._worker
        if worker.alive and self._full():
            now = time.monotonic()
            if now >= self._opens_at:
                if self._opens_at:
                    self._opens_at = 0.0  # one turn of accepting, then aside again
                elif now >= self._closes_after:
                    self._opens_at = now + _ASIDE
                    self._enable(False)
            if self._opens_at:
                timeout = min(timeout, max(0.0, self._opens_at - now))
        elif self._opens_at:
            self._opens_at = 0.0
            if worker.alive and worker.nr_conns < worker.worker_connections:
                self._enable(True)
        self._turn(timeout)
