"""What happens in the demo: who asks for what, how often, and what the database does."""

from __future__ import annotations

from typing import NamedTuple

CONNECTIONS = 8  # in the database pool
QUERY_SECONDS = 0.040  # usual time of one query
CAPACITY = CONNECTIONS / QUERY_SECONDS  # 200 requests a second, whatever stands in front
THREADS = 32  # of the one gunicorn worker
SEED = 1  # both runs get the same arrivals, to the microsecond


class Kind(NamedTuple):
    """One kind of request; ``patience`` is how many seconds its client waits for the answer."""

    name: str
    method: str
    share: float
    patience: float
    priority: str


KINDS = (
    Kind("payments", "POST", 0.2, 3.0, "high"),
    Kind("updates", "POST", 0.5, 3.0, "default"),
    Kind("analytics", "GET", 0.3, 3.0, "low"),
)
HEALTH = Kind("healthz", "GET", 0.0, 1.0, "exempt")
HEALTH_RATE = 4.0  # a second


class Phase(NamedTuple):
    """Some seconds of one condition; ``rate`` is in requests a second, health checks apart."""

    title: str
    start: float
    end: float
    rate: float
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
        plan.append(Phase(title, start, start + seconds[quick], rate, database))
    return tuple(plan)
