"""
One core for all threads of a process: CPython's GIL.

A thread keeps it until it blocks or until others have asked for it for the switch
interval (5 ms), so short work is served in order and long work takes turns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from gunicorn_admission.core.policy import MILLISECOND
from gunicorn_admission.sim.clock import Clock, Timeout

__all__ = ["Gil"]

_SWITCH_NS = 5 * MILLISECOND


class _Work(NamedTuple):
    left_ns: int
    whole: bool
    then: Callable[[Any], None]
    value: Any


class Gil:
    """The CPU of one worker."""

    __slots__ = ("_clock", "_held", "_line")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held = False
        self._line: deque[_Work] = deque()

    def run(
        self, need_ns: int, then: Callable[[Any], None], value: Any, *, whole: bool = False
    ) -> None:
        """
        Spend CPU time, then call ``then(value)``.

        Args:
            need_ns: How much.
            then, value: What follows.
            whole: Nobody gets a turn in between; a pause of the whole process.
        """
        self._line.append(_Work(need_ns, whole, then, value))
        if not self._held:
            self._next()

    def _next(self) -> None:
        self._held = True
        work = self._line.popleft()
        turn_ns = work.left_ns if work.whole or not self._line else min(work.left_ns, _SWITCH_NS)
        self._clock.after(turn_ns, self._turned, (work, turn_ns))

    def _turned(self, event: Timeout) -> None:
        work: _Work
        turn_ns: int
        work, turn_ns = event._value
        self._held = False
        left_ns = work.left_ns - turn_ns
        if left_ns > 0:
            self._line.append(work._replace(left_ns=left_ns))
        else:
            work.then(work.value)
        if self._line and not self._held:
            self._next()
