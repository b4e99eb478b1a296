"""A world for limits: service times follow the concurrency, and time follows Little's law."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle

from gunicorn_admission.core.limits.base import Limit
from tests.driving import MS, S

__all__ = ["World", "capacity", "steady"]


class World:
    """
    Feeds a limit with requests that finish at the rate that Little's law gives.

    Args:
        limit: Whom to feed.
        rtt_ms: Service time at a concurrency.
        demand: Concurrency wanted; ``None`` for as much as the limit allows.
    """

    def __init__(
        self, limit: Limit, rtt_ms: Callable[[int], float], demand: int | None = None
    ) -> None:
        self.limit = limit
        self.rtt_ms = rtt_ms
        self.demand = demand
        self.now_ns = 100 * S
        self.seen: list[int] = []

    def run(self, seconds: float, *, dropped: bool = False, classes: str = "a") -> list[int]:
        """Let time pass; the limits seen on the way."""
        end_ns = self.now_ns + round(seconds * S)
        names = cycle(classes)
        self.seen = []
        while self.now_ns < end_ns:
            inflight = self.limit.limit
            if self.demand is not None:
                inflight = min(inflight, self.demand)
            rtt_ns = round(self.rtt_ms(inflight) * MS)
            self.now_ns += max(1, rtt_ns // inflight)
            self.limit.on_sample(
                now_ns=self.now_ns,
                rtt_ns=rtt_ns,
                inflight=inflight,
                dropped=dropped,
                partition=next(names),
            )
            self.seen.append(self.limit.limit)
        return self.seen


def capacity(slots: int, base_ms: float = 20.0) -> Callable[[int], float]:
    """A dependency of so many connections: beyond them the others queue."""
    return lambda inflight: base_ms * max(1.0, inflight / slots)


def steady(milliseconds: float = 20.0) -> Callable[[int], float]:
    return lambda _: milliseconds
