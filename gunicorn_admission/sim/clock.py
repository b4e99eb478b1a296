"""
Virtual time, in whole nanoseconds, on simpy's schedule.

What happens once for every request is a callback; only what happens rarely (sources of
load, phases, sampling) is a simpy process. A process for each request would cost more
than the core that is being simulated (see ``docs/decisions``).
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import simpy
from simpy.events import ProcessGenerator, Timeout

from gunicorn_admission.core.policy import SECOND
from gunicorn_admission.settings.durations import to_ns

__all__ = ["Clock", "ProcessGenerator", "Timeout", "to_ns"]

#: Not 0, which the core takes for "never" here and there.
_START_NS = SECOND


class Clock(simpy.Environment):
    """
    The time of one run; it never moves by itself.

    Attributes:
        start_ns: Its first reading.
    """

    def __init__(self) -> None:
        super().__init__(initial_time=_START_NS)
        self.start_ns = _START_NS

    if TYPE_CHECKING:

        @property
        def now_ns(self) -> int:
            """Present time."""
            ...

    else:
        # Read several times for each request, so without a call into Python.
        now_ns = property(attrgetter("_now"))

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return (self.now_ns - self.start_ns) / SECOND

    def after(self, delay_ns: int, call: Callable[[Timeout], None], value: Any = None) -> None:
        """Call with an event that carries ``value``, so many nanoseconds from now."""
        Timeout(self, delay_ns, value).callbacks.append(call)

    def run_for(self, seconds: float) -> None:
        """Let time pass until so many seconds after the start."""
        self.run(until=self.start_ns + to_ns(seconds))
