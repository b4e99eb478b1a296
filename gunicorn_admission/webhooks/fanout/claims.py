"""
Claims: a worker takes deliveries that are due, and the gate admits them, in one transaction.

Rows that another worker is taking are passed over, not waited for. What is taken has a lease with
a token of its own; whoever finishes it later must still hold that token (``acknowledge.py``).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen
from sqlalchemy import ColumnElement, Connection, Row, exists, not_, or_, select

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.fanout.consumers import Consumer
from gunicorn_admission.webhooks.fanout.event import Event
from gunicorn_admission.webhooks.fanout.retry import RetryPolicy
from gunicorn_admission.webhooks.fanout.states import Mode, State
from gunicorn_admission.webhooks.fanout.verdicts import Verdicts
from gunicorn_admission.webhooks.gates import Kind, Ledger
from gunicorn_admission.webhooks.store.schema import deliveries, events, subscriptions

__all__ = ["Claim", "Lease", "claim", "look_ahead"]


@frozen(kw_only=True)
class Lease:
    """
    A delivery that this worker may work on, until its lease ends.

    Attributes:
        seq: Number of the event.
        token: Fences off whoever held it before.
        until: When it ends unless it is extended, in microseconds since the epoch.
        length_us: By how much it is extended.
        event: What the handler gets.
        retry: When another attempt may follow.
    """

    seq: int
    token: str
    until: int
    length_us: int
    event: Event
    retry: RetryPolicy


@frozen(kw_only=True)
class Claim:
    """
    What a claim brought.

    Attributes:
        leases: Deliveries to work on.
        seen: Rows that were taken in hand, the ones that a gate stopped included.
        counts: What became of them, by outcome.
        is_backfilling: Whether older events are still to be added to the subscription.
    """

    leases: tuple[Lease, ...] = ()
    seen: int = 0
    counts: Mapping[str, int] = field(factory=dict)
    is_backfilling: bool = False


def claim(
    connection: Connection,
    ledger: Ledger,
    consumer: Consumer,
    now: int,
    limit: int,
    costs: Mapping[int, Any] | None = None,
) -> Claim:
    """
    Take up to ``limit`` deliveries that are due.

    Args:
        costs: Of the events that may be taken, by number, where the consumer computes costs
            (:func:`look_ahead`); an error in place of a cost is a failed attempt.
    """
    subscription = _subscription(connection, consumer.name)
    if subscription is None or subscription.mode not in (Mode.ACTIVE, Mode.SHADOW):
        return Claim()
    if subscription.order_by is not None and subscription.backfill_next is not None:
        return Claim(is_backfilling=True)  # an older event of the key may be on its way
    if callable(consumer.cost) and costs is None and subscription.mode == Mode.ACTIVE:
        return Claim()  # it became active a moment ago
    rows = _due(connection, subscription, now, limit, costs)
    # One that was held by a worker that is gone may be what killed it: alone, it takes nobody
    # along the next time.
    suspects = [row for row in rows if row.state == State.LEASED]
    rows = suspects[:1] or rows
    verdicts = Verdicts(connection, ledger, consumer, subscription, now)
    leases = []
    for row in rows:
        if subscription.mode == Mode.SHADOW:
            verdicts.skip(row)
        elif row.state != State.LEASED or verdicts.survives(row):
            lease = _admit(verdicts, ledger, row, costs)
            if lease is not None:
                leases.append(lease)
    verdicts.write()
    return Claim(
        leases=tuple(leases),
        seen=len(rows),
        counts=verdicts.counts,
        is_backfilling=subscription.backfill_next is not None,
    )


def look_ahead(
    connection: Connection, consumer: Consumer, now: int, limit: int
) -> dict[int, Event] | None:
    """Return what may be claimed next, by number, without taking it; ``None`` in other modes."""
    subscription = _subscription(connection, consumer.name)
    if subscription is None or subscription.mode != Mode.ACTIVE:
        return None
    rows = _due(connection, subscription, now, limit, None, lock=False)
    return {row.seq: _event(row, consumer.name) for row in rows}


def _subscription(connection: Connection, name: str) -> Row[Any] | None:
    return connection.execute(
        select(subscriptions).where(subscriptions.c.name == name)
    ).one_or_none()


def _due(
    connection: Connection,
    subscription: Row[Any],
    now: int,
    limit: int,
    costs: Mapping[int, Any] | None,
    *,
    lock: bool = True,
) -> list[Row[Any]]:
    conditions: list[ColumnElement[bool]] = [
        deliveries.c.subscription == subscription.name,
        deliveries.c.finished_at.is_(None),
        deliveries.c.visible_at <= now,
    ]
    if subscription.order_by is not None:
        earlier = deliveries.alias("earlier")
        waits = exists().where(
            earlier.c.subscription == subscription.name,
            earlier.c.order_key == deliveries.c.order_key,
            earlier.c.seq < deliveries.c.seq,
            earlier.c.finished_at.is_(None),
        )
        conditions.append(or_(deliveries.c.order_key.is_(None), not_(waits)))
    if costs is not None:
        conditions.append(deliveries.c.seq.in_(list(costs)))
    query = (
        select(
            deliveries.c.seq,
            deliveries.c.state,
            deliveries.c.attempts,
            deliveries.c.lease,
            events.c.source,
            events.c.event_id,
            events.c.type,
            events.c.body,
            events.c.headers,
            events.c.received_at,
            events.c.source_time,
            events.c.traceparent,
        )
        .join(events, events.c.seq == deliveries.c.seq)
        .where(*conditions)
        .order_by(deliveries.c.visible_at, deliveries.c.seq)
        .limit(limit)
    )
    if lock:
        query = query.with_for_update(of=deliveries, skip_locked=True)
    # By number from here on: all who lock ledger rows do it in this order.
    return sorted(connection.execute(query), key=lambda row: row.seq)


def _event(row: Row[Any], consumer: str) -> Event:
    return Event(
        consumer=consumer,
        source=row.source,
        event_id=row.event_id,
        type=row.type,
        body=row.body,
        headers=tuple((name, value) for name, value in row.headers),
        received_at=row.received_at,
        source_time=row.source_time,
        attempt=row.attempts + 1,
        traceparent=row.traceparent,
    )


def _admit(
    verdicts: Verdicts, ledger: Ledger, row: Row[Any], costs: Mapping[int, Any] | None
) -> Lease | None:
    """Ask the gate for one delivery; its lease, if it was admitted."""
    consumer, subscription = verdicts.consumer, verdicts.subscription
    cost = consumer.cost if costs is None else costs[row.seq]
    if isinstance(cost, Exception):
        verdicts.fail(row, cost)
        return None
    token = secrets.token_hex(16)
    until = verdicts.now + subscription.lease_us
    try:
        decision = ledger.admit(
            verdicts.connection,
            consumer=consumer.name,
            source=row.source,
            event_id=row.event_id,
            lease=token,
            lease_until=until,
            now=verdicts.now,
            cost=cost,
            expires_at=row.received_at + subscription.retention_us,
        )
    except ConfigError as error:  # the cost does not fit the gate; nothing was written
        verdicts.fail(row, error)
        return None
    if decision.kind is not Kind.ADMITTED:
        verdicts.stop(row, decision)
        return None
    verdicts.lease(row, decision, token, until)
    return Lease(
        seq=row.seq,
        token=token,
        until=until,
        length_us=subscription.lease_us,
        event=_event(row, consumer.name),
        retry=verdicts.retry,
    )
