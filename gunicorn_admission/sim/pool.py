"""A dependency at work: connections, the line in front of them, faults."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from gunicorn_admission.core.types import Outcome
from gunicorn_admission.sim.clock import Clock, Timeout, to_ns
from gunicorn_admission.sim.request import Request
from gunicorn_admission.sim.scenario import Dependency, Fault

__all__ = ["Pool"]

_HEALTHY = Fault()
_DROP, _IGNORE = Outcome.DROP, Outcome.IGNORE


class _Call(NamedTuple):
    request: Request
    scale: float
    then: Callable[[Request], None]


class Pool:
    """
    One dependency, seen by one worker or shared by all.

    Args:
        dependency: What it is like.
        clock, random: The run's.

    Attributes:
        fault: What is wrong with it now; set by the run.
    """

    __slots__ = (
        "_busy",
        "_clock",
        "_fault",
        "_hung",
        "_line",
        "_mu",
        "_random",
        "_timeout_ns",
        "dependency",
    )

    def __init__(self, dependency: Dependency, clock: Clock, random: Random) -> None:
        self.dependency = dependency
        self._clock = clock
        self._random = random
        self._mu = math.log(dependency.seconds) - dependency.spread**2 / 2
        self._timeout_ns = None if dependency.timeout is None else to_ns(dependency.timeout)
        self._fault = _HEALTHY
        self._busy = 0
        self._line: deque[_Call] = deque()
        self._hung: list[_Call] = []

    def set_fault(self, fault: Fault | None) -> None:
        """Change what is wrong; calls that hung until now go on if that is over."""
        self._fault = fault or _HEALTHY
        if not self._fault.hangs:
            hung, self._hung = self._hung, []
            for call in hung:
                self._serve(call)

    def call(self, request: Request, scale: float, then: Callable[[Request], None]) -> None:
        """
        Call it, then ``then(request)``, with ``request.outcome`` set if the call failed.

        Args:
            scale: It takes so many times the usual time.
        """
        call = _Call(request, scale, then)
        if self._busy < self.dependency.connections:
            self._busy += 1
            self._serve(call)
        else:
            self._line.append(call)

    def _serve(self, call: _Call) -> None:
        dependency, fault, random = self.dependency, self._fault, self._random
        if fault.fails and random.random() < fault.fails:
            self._fail(call, fault.overload, to_ns(fault.fails_after))
            return
        timeout_ns = self._timeout_ns
        if fault.hangs:
            if timeout_ns is None:
                self._hung.append(call)
            else:
                self._fail(call, True, timeout_ns)
            return
        if dependency.lucky and random.random() < dependency.lucky:
            seconds = dependency.lucky_seconds
        else:
            seconds = random.lognormvariate(self._mu, dependency.spread) * call.scale
        seconds *= fault.slower
        if dependency.contention:
            seconds *= 1 + dependency.contention * len(self._line)
        taken_ns = int((seconds + dependency.overhead) * 1e9)
        if timeout_ns is not None and taken_ns > timeout_ns:
            self._fail(call, True, timeout_ns)
        else:
            self._clock.after(taken_ns, self._served, call)

    def _fail(self, call: _Call, overload: bool, after_ns: int) -> None:
        call.request.failed = True
        call.request.outcome = _DROP if overload else _IGNORE
        self._clock.after(after_ns, self._served, call)

    def _served(self, event: Timeout) -> None:
        call: _Call = event._value
        if self._line:
            self._serve(self._line.popleft())
        else:
            self._busy -= 1
        call.then(call.request)
