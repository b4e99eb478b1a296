"""What happens in the demo: who asks for what, how often, and what the database does."""

from __future__ import annotations

from typing import NamedTuple

CONNECTIONS = 8  # in the database pool
QUERY_SECONDS = 0.040  # usual time of one query
CAPACITY = CONNECTIONS / QUERY_SECONDS  # 200 requests a second, whatever stands in front
THREADS = 32  # of the one gunicorn worker
SEED = 1  # both runs get the same arrivals, to the microsecond


class Kind(NamedTuple):
    """One kind of request; ``share`` is its part of the mix."""

    name: str
    method: str
    share: float
    priority: str


KINDS = (
    Kind("payments", "POST", 0.2, "high"),
    Kind("updates", "POST", 0.5, "default"),
    Kind("analytics", "GET", 0.3, "low"),
)
HEALTH = Kind("healthz", "GET", 0.0, "exempt")
HEALTH_RATE = 4.0  # a second
HEALTH_PATIENCE = 1.0  # seconds; then a load balancer counts a failure


class Phase(NamedTuple):
    """Some seconds of one condition; health checks come on top of it."""

    title: str
    start: float  # seconds since the first phase began
    end: float
    rate: float  # requests a second
    patience: float  # seconds that a client waits for its answer
    database: str  # "normal" or "hang"


NORMAL, BLOCKED, UNBLOCKED, OVERLOAD, RELIEVED = range(5)


def phases(quick: bool) -> tuple[Phase, ...]:
    """The plot of the demo, in the order of the indices above: 42 seconds, 16 with ``quick``."""
    usual, much = CAPACITY / 2, CAPACITY * 3
    plot = (
        ("normal", (5, 2), usual, "normal"),
        ("database blocked", (9, 4), usual, "hang"),
        ("recovery", (9, 3), usual, "normal"),
        ("overload 3x", (10, 4), much, "normal"),
        ("recovery", (9, 3), usual, "normal"),
    )
    plan: list[Phase] = []
    for title, seconds, rate, database in plot:
        start = plan[-1].end if plan else 0.0
        patience = 1.0 if quick else 3.0
        plan.append(Phase(title, start, start + seconds[quick], rate, patience, database))
    return tuple(plan)
