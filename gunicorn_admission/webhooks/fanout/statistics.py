"""How each consumer stands: what waits, how old it is, and what became of the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import asdict, field, frozen
from sqlalchemy import Connection, func, select

from gunicorn_admission.webhooks.fanout.states import Mode
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import attempts, deliveries, ledger, subscriptions

__all__ = ["COUNTERS", "ConsumerStatistics", "statistics"]

#: What is counted of each consumer.
COUNTERS = (
    "admitted", "completed", "deduplicated", "refused", "deferred", "failed", "dead",
)  # fmt: skip


@frozen(kw_only=True)
class ConsumerStatistics:
    """
    One consumer at one moment.

    Attributes:
        name: Of the consumer.
        mode: Of its subscription.
        backlog: Unfinished deliveries, by state.
        oldest_age: Seconds since the oldest unfinished one was routed, or ``None``.
        objective: The age that is too much, in seconds, or ``None``.
        counters: Since the beginning, by the names of ``COUNTERS``; empty unless asked for.
    """

    name: str
    mode: Mode
    backlog: Mapping[str, int] = field(factory=dict)
    oldest_age: float | None = None
    objective: float | None = None
    counters: Mapping[str, int] = field(factory=dict)

    @property
    def waiting(self) -> int:
        """All that is not finished."""
        return sum(self.backlog.values())

    @property
    def is_late(self) -> bool:
        """Whether the oldest is older than the recovery objective."""
        return (
            self.objective is not None
            and self.oldest_age is not None
            and self.oldest_age > self.objective
            and self.mode is not Mode.DISABLED
        )

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {**asdict(self), "waiting": self.waiting, "is_late": self.is_late}


def statistics(
    store: Store, names: Iterable[str] = (), *, counters: bool = False
) -> list[ConsumerStatistics]:
    """
    Return how consumers stand, by name.

    Args:
        names: Which; all when it is empty.
        counters: Also add up the ledger and all attempts, which takes time where they are many.
    """
    chosen = list(names)
    with store.read() as connection:
        now = store.now()
        query = select(subscriptions).order_by(subscriptions.c.name)
        if chosen:
            query = query.where(subscriptions.c.name.in_(chosen))
        rows = connection.execute(query).all()
        open_ones = _open(connection)
        totals = _totals(connection) if counters else {}
    return [
        ConsumerStatistics(
            name=row.name,
            mode=Mode(row.mode),
            backlog={state: count for state, count, _ in open_ones.get(row.name, ())},
            oldest_age=max(
                ((now - oldest) / 1e6 for *_, oldest in open_ones.get(row.name, ())), default=None
            ),
            objective=None if row.objective_us is None else row.objective_us / 1e6,
            counters=dict.fromkeys(COUNTERS, 0) | totals.get(row.name, {}) if counters else {},
        )
        for row in rows
    ]


def _open(connection: Connection) -> dict[str, list[tuple[str, int, int]]]:
    query = (
        select(
            deliveries.c.subscription,
            deliveries.c.state,
            func.count(),
            func.min(deliveries.c.created_at),
        )
        .where(deliveries.c.finished_at.is_(None))
        .group_by(deliveries.c.subscription, deliveries.c.state)
    )
    found: dict[str, list[tuple[str, int, int]]] = {}
    for name, state, count, oldest in connection.execute(query):
        found.setdefault(name, []).append((state, count, oldest))
    return found


def _totals(connection: Connection) -> dict[str, dict[str, int]]:
    totals: dict[str, dict[str, int]] = {}
    of_ledger = select(
        ledger.c.consumer,
        func.sum(ledger.c.attempts),
        func.count().filter(ledger.c.state == "completed"),
        func.sum(ledger.c.duplicates),
        func.sum(ledger.c.refusals),
        func.sum(ledger.c.deferrals),
    ).group_by(ledger.c.consumer)
    for name, *numbers in connection.execute(of_ledger):
        totals[name] = dict(zip(COUNTERS[:5], map(int, numbers), strict=True))
    of_attempts = (
        select(attempts.c.subscription, func.count())
        .where(attempts.c.outcome.in_(("failed", "dead", "expired")))
        .group_by(attempts.c.subscription)
    )
    for name, count in connection.execute(of_attempts):
        totals.setdefault(name, {})["failed"] = count
    of_dead = (
        select(deliveries.c.subscription, func.count())
        .where(deliveries.c.state == "dead")
        .group_by(deliveries.c.subscription)
    )
    for name, count in connection.execute(of_dead):
        totals.setdefault(name, {})["dead"] = count
    return totals
