"""How ceilings stand, and what was decided so far: for people, gauges and pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import asdict, frozen
from sqlalchemy import Connection, func, select

from gunicorn_admission.webhooks.gates.book import read_accounts
from gunicorn_admission.webhooks.gates.decision import Standing
from gunicorn_admission.webhooks.gates.gate import Gate
from gunicorn_admission.webhooks.store.schema import gates, ledger

__all__ = ["Tally", "events_in", "gated_consumers", "standings", "tallies"]


@frozen(kw_only=True)
class Tally:
    """
    Counts of one consumer, each derived from the ledger's rows.

    Attributes:
        consumer: Whose.
        admitted: Events that were admitted at least once.
        attempts: Admissions, of which an event may have had several.
        completed: Events whose effect is done.
        deduplicated: Times that a completed event came again.
        refused: Events that were refused, once for each window.
        deferred: Events that were deferred, once for each window.
        states: How many events are in each state now.
    """

    consumer: str
    admitted: int = 0
    attempts: int = 0
    completed: int = 0
    deduplicated: int = 0
    refused: int = 0
    deferred: int = 0
    states: dict[str, int]

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON can hold it."""
        return asdict(self)


def gated_consumers(connection: Connection) -> list[str]:
    """Return the consumers that have a gate, by name."""
    return list(connection.scalars(select(gates.c.consumer).order_by(gates.c.consumer)))


def standings(connection: Connection, gate: Gate, now: int) -> list[Standing]:
    """Return how each ceiling of a gate stands at ``now``, in microseconds since the epoch."""
    return [account.standing() for account in read_accounts(connection, gate.bounds, {}, now)]


def events_in(
    connection: Connection, consumer: str, state: str, limit: int | None = None
) -> list[dict[str, Any]]:
    """Return a consumer's events in one state, those that came to it first at the front."""
    statement = (
        select(ledger)
        .where(
            ledger.c.consumer == consumer,
            ledger.c.state == state,
            ledger.c.state != "completed",  # as the index says it
        )
        .order_by(ledger.c.updated_at, ledger.c.source, ledger.c.event_id)
        .limit(limit)
    )
    found = []
    for row in connection.execute(statement):
        answer = row.answer or {"reason": None, "standing": {}}
        standing = answer["standing"]
        used = standing["reserved"] + standing["settled"] if standing else None
        found.append(
            {
                "consumer": row.consumer,
                "source": row.source,
                "event_id": row.event_id,
                "state": row.state,
                "reason": answer["reason"],
                "ceiling": standing.get("ceiling"),
                "window": standing.get("window"),
                "used": used,
                "cost": standing.get("cost"),
                "since": row.updated_at,
                "until": row.defer_until,
                "attempts": row.attempts,
            }
        )
    return found


def tallies(connection: Connection, consumer: str | None = None) -> Sequence[Tally]:
    """Return the counts of one consumer or of all; reads every row of the ledger."""
    statement = (
        select(
            ledger.c.consumer,
            ledger.c.state,
            func.count().label("events"),
            func.count().filter(ledger.c.attempts > 0).label("admitted"),
            func.sum(ledger.c.attempts).label("attempts"),
            func.sum(ledger.c.duplicates).label("deduplicated"),
            func.sum(ledger.c.refusals).label("refused"),
            func.sum(ledger.c.deferrals).label("deferred"),
        )
        .group_by(ledger.c.consumer, ledger.c.state)
        .order_by(ledger.c.consumer, ledger.c.state)
    )
    if consumer is not None:
        statement = statement.where(ledger.c.consumer == consumer)
    found: dict[str, dict[str, int]] = {}
    states: dict[str, dict[str, int]] = {}
    for row in connection.execute(statement):
        sums = found.setdefault(row.consumer, {})
        for name in ("admitted", "attempts", "deduplicated", "refused", "deferred"):
            sums[name] = sums.get(name, 0) + int(getattr(row, name))
        states.setdefault(row.consumer, {})[row.state] = row.events
    return [
        Tally(
            consumer=name,
            completed=states[name].get("completed", 0),
            states=states[name],
            **sums,
        )
        for name, sums in found.items()
    ]
