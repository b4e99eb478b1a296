"""
Leaving connections to siblings that can serve them.

Workers accept from one socket. One whose threads are all taken accepts all the same, and
what it has accepted nobody else can serve: with one of two workers blocked, about half of
the fast requests stood behind it. So a worker without a free slot does not accept, as
long as somebody else does. It looks every 25 ms; a connection that is still there at the
second look was wanted by no sibling, so then this one accepts, and answers, and does not
stand aside again for a while: with a closed gate at all workers the queue would only move
to where nobody is refused.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from typing import Any

__all__ = ["AcceptGate"]

_LOOK = 0.025
_TOGETHER = 1.0


class AcceptGate:
    """
    Stops a worker from accepting while it has no free slot and its siblings have.

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
        self._aside = False
        self._left_over = False
        self._together_until = 0.0
        self._enable = worker.set_accept_enabled
        self._turn = worker.wait_for_and_dispatch_events
        worker.set_accept_enabled = self._set_accept_enabled
        worker.wait_for_and_dispatch_events = self._wait

    def _set_accept_enabled(self, enabled: bool) -> None:
        """What the main loop asks for each turn; not while standing aside."""
        if not (enabled and self._aside):
            self._enable(enabled)

    def _wait(self, timeout: float) -> None:
        worker = self._worker
        if not worker.alive:
            self._aside = False
        elif self._aside or self._full():
            timeout = min(timeout, self._decide())
        self._turn(timeout)

    def _decide(self) -> float:
        """Stand aside or not; seconds until the next look."""
        now = time.monotonic()
        if now < self._together_until:
            return _TOGETHER
        if not self._full():
            self._open()
            return _TOGETHER
        if not self._aside:
            self._aside, self._left_over = True, False
            self._enable(False)
        elif self._somebody_waits():
            if self._left_over:
                self._together_until = now + _TOGETHER
                self._open()
                return _TOGETHER
            self._left_over = True
        else:
            self._left_over = False
        return _LOOK

    def _open(self) -> None:
        self._aside = False
        worker = self._worker
        if worker.nr_conns < worker.worker_connections:
            self._enable(True)

    def _somebody_waits(self) -> bool:
        poll = select.poll()
        for listener in self._worker.sockets:
            poll.register(listener.fileno(), select.POLLIN)
        return bool(poll.poll(0))
