"""
Backfill: deliveries of events that are older than their subscription.

In small transactions, none of which holds up an intake. How far it came stands in the row of the
subscription, so that another worker goes on where one has died.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, select, update

from gunicorn_admission.webhooks.fanout.fields import Fields
from gunicorn_admission.webhooks.fanout.route import Route
from gunicorn_admission.webhooks.fanout.routing import delivery_row
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import deliveries, events, subscriptions
from gunicorn_admission.webhooks.store.statements import insert

__all__ = ["backfill", "backfill_step"]

#: Events in one transaction. It parses their bodies, and on SQLite an intake waits for it.
STEP: Final = 50


def backfill(store: Store, name: str) -> int:
    """
    Add what is missing of a subscription's older events.

    Safe to run in several processes at once, and while workers deliver.

    Returns:
        How many deliveries were added.
    """
    added = 0
    while (
        step := store.write(lambda connection: backfill_step(connection, name, store.now()))
    ) >= 0:
        added += step
    return added


def backfill_step(connection: Connection, name: str, now: int, limit: int = STEP) -> int:
    """
    Look at some older events.

    Returns:
        How many deliveries were added; -1 when there was nothing left to look at.
    """
    row = connection.execute(
        select(subscriptions)
        .where(subscriptions.c.name == name, subscriptions.c.backfill_next.is_not(None))
        .with_for_update()
    ).one_or_none()
    if row is None:
        return -1
    found = connection.execute(
        select(events.c.seq, events.c.source, events.c.type, events.c.headers, events.c.body)
        .where(events.c.seq >= row.backfill_next, events.c.seq < row.backfill_end)
        .order_by(events.c.seq)
        .limit(limit)
    ).all()
    route = Route.of(row.name, row.filter, row.order_by)
    rows = []
    for event in found:
        fields = Fields(
            source=event.source, type=event.type, headers=event.headers, body=event.body
        )
        if route.wants(fields):
            rows.append(delivery_row(route, event.seq, fields, now))
    added = 0
    if rows:
        statement = insert(connection, deliveries).on_conflict_do_nothing()
        added = len(connection.execute(statement.returning(deliveries.c.seq), rows).all())
    rest = found[-1].seq + 1 if len(found) == limit else None
    connection.execute(
        update(subscriptions)
        .where(subscriptions.c.name == name)
        .values(backfill_next=rest, backfill_end=row.backfill_end if rest else None)
    )
    return added
